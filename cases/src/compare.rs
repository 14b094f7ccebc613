//! Results and what they should be.

use super::array::Array;
use super::reference::matmul::Projections;

/// How far a result may be from the reference.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Bound {
    /// Bit for bit (any NaN is as good as any other).
    Exact,
    /// Units in the last place of the exact result, as an f32.
    Ulp(f64),
    /// The error over the larger of 1 and the exact result's magnitude.
    Absolute(f64),
    /// The error over the given scale, which the case chooses: the sum of magnitudes for a sum.
    Scaled(f64),
    /// Squared error over squared reference, summed over the whole result.
    Nmse(f64),
}

impl Bound {
    /// The number.
    pub fn limit(self) -> f64 {
        match self {
            Bound::Exact => 0.0,
            Bound::Ulp(x) | Bound::Absolute(x) | Bound::Scaled(x) | Bound::Nmse(x) => x,
        }
    }

    /// The unit.
    pub fn unit(self) -> &'static str {
        match self {
            Bound::Exact => "bits",
            Bound::Ulp(_) => "ulp",
            Bound::Absolute(_) => "abs",
            Bound::Scaled(_) => "scaled",
            Bound::Nmse(_) => "nmse",
        }
    }
}

/// The outcome of a case.
#[derive(Clone, Debug)]
pub struct Check {
    /// The largest error, in the bound's unit.
    pub worst: f64,
    /// Where it was.
    pub at: String,
    /// What is allowed.
    pub bound: Bound,
}

impl Check {
    /// Whether the result is good enough. A NaN is not.
    pub fn passed(&self) -> bool {
        self.worst <= self.bound.limit()
    }
}

/// The expected result.
#[derive(Debug)]
pub enum Expected {
    /// These bits.
    Words(Vec<u32>),
    /// Numbers.
    Floats(Vec<f64>),
    /// Numbers, and the scale of each for [`Bound::Scaled`].
    Scaled(Vec<(f64, f64)>),
    /// A matrix that gives these vectors for some others.
    Projected(Projections),
}

impl Expected {
    /// Compares a result with it.
    pub fn check(&self, got: &Array, bound: Bound) -> Check {
        match self {
            Expected::Words(expected) => compare_words(expected, &got.widened(), bound),
            Expected::Floats(expected) => compare(expected, &got.floats(), bound),
            Expected::Scaled(expected) => {
                let values: Vec<f64> = expected.iter().map(|e| e.0).collect();
                compare_scaled(&values, &got.floats(), bound, |i| expected[i].1)
            }
            Expected::Projected(projections) => {
                Check { worst: projections.nmse(got.of()), at: String::new(), bound }
            }
        }
    }
}

impl Expected {
    /// Compares the result of a device that may take denormals for zeros, in operands, in results and on the way.
    /// `flushed` is what comes of operands without denormals; each element may be one or the other, or be off by no
    /// more than `least`: the least number that is not denormal, by as much as the operation multiplies it.
    pub fn check_flushing(&self, flushed: &Expected, got: &Array, bound: Bound, least: f64) -> Check {
        let got_floats = got.floats();
        match (self, flushed) {
            (Expected::Words(kept), Expected::Words(flushed)) if kept.len() == flushed.len() => {
                let nearest = |((&kept, &flushed), &got)| if got == flushed { flushed } else { kept };
                let expected = kept.iter().zip(flushed).zip(got.of::<u32>()).map(nearest).collect();
                Expected::Words(expected).check(got, bound)
            }
            (Expected::Floats(kept), Expected::Floats(flushed)) => {
                let both = kept.iter().zip(flushed).zip(got_floats.iter());
                let nearest =
                    both.map(|((&kept, &flushed), &got)| flushing([kept, flushed], got, bound, 1.0, least));
                Expected::Floats(nearest.collect()).check(got, bound)
            }
            (Expected::Scaled(kept), Expected::Scaled(flushed)) => {
                let both = kept.iter().zip(flushed).zip(got_floats.iter());
                let nearest = both.map(|((&(kept, scale), &(flushed, _)), &got)| {
                    (flushing([kept, flushed], got, bound, scale, least), scale)
                });
                Expected::Scaled(nearest.collect()).check(got, bound)
            }
            _ => self.check(got, bound),
        }
    }
}

/// Of what may come out with denormals and without, what did; where neither did, the first.
fn flushing([kept, flushed]: [f64; 2], got: f32, bound: Bound, scale: f64, least: f64) -> f64 {
    let meets = |expected: &f64| element_error(*expected, got, bound, &|_| scale, 0) <= bound.limit();
    let near = |expected: &f64| {
        let zero_of_other_sign = *expected == 0.0 && got == 0.0;
        (expected - f64::from(got)).abs() <= least && !zero_of_other_sign
    };
    match [kept, flushed].iter().find(|expected| meets(expected)) {
        Some(expected) => *expected,
        None if [kept, flushed].iter().any(near) => f64::from(got),
        None => kept,
    }
}

/// Compares an f32 result with the reference.
pub fn compare(expected: &[f64], got: &[f32], bound: Bound) -> Check {
    compare_scaled(expected, got, bound, |_| 1.0)
}

/// As [`compare`], with the scale of each element for [`Bound::Scaled`].
fn compare_scaled(expected: &[f64], got: &[f32], bound: Bound, scale: impl Fn(usize) -> f64) -> Check {
    if expected.len() != got.len() {
        let at = format!("{} elements instead of {}", got.len(), expected.len());
        return Check { worst: f64::INFINITY, at, bound };
    }
    if let Bound::Nmse(_) = bound {
        let noise: f64 = expected.iter().zip(got).map(|(e, g)| (e - f64::from(*g)).powi(2)).sum();
        let signal: f64 = expected.iter().map(|e| e * e).sum();
        let worst = if noise == 0.0 { 0.0 } else { noise / signal };
        return Check { worst, at: String::new(), bound };
    }
    let mut check = Check { worst: 0.0, at: String::new(), bound };
    for (i, (&e, &g)) in expected.iter().zip(got).enumerate() {
        let error = element_error(e, g, bound, &scale, i);
        if error > check.worst || error.is_nan() {
            check.worst = error;
            check.at = format!("[{i}]: {g:e} for {e:e}");
            if error.is_nan() {
                break;
            }
        }
    }
    check
}

fn element_error(e: f64, g: f32, bound: Bound, scale: &impl Fn(usize) -> f64, i: usize) -> f64 {
    if e.is_nan() || g.is_nan() {
        return if e.is_nan() && g.is_nan() { 0.0 } else { f64::INFINITY };
    }
    let rounded = e as f32;
    if e == 0.0 && g == 0.0 && e.is_sign_negative() != g.is_sign_negative() {
        // A zero that is none by rounding has the sign that the documentation says.
        return f64::INFINITY;
    }
    // Where bits count, so does the sign of every zero.
    let same = rounded == g && (bound != Bound::Exact || rounded.to_bits() == g.to_bits());
    if same {
        let finite = g.is_finite() && e.is_finite();
        return if matches!(bound, Bound::Ulp(_)) && finite {
            (e - f64::from(g)).abs() / ulp(e)
        } else {
            0.0
        };
    }
    if rounded.is_infinite() || g.is_infinite() {
        // One of the two overflowed: fine if the other is within the bound of the largest number.
        let near =
            |x: f64| x.abs() >= f64::from(f32::MAX) * (1.0 - 1e-6) && x.signum() == f64::from(g).signum();
        return if near(e) && near(f64::from(g)) { 0.0 } else { f64::INFINITY };
    }
    let error = (e - f64::from(g)).abs();
    match bound {
        Bound::Exact => f64::INFINITY,
        Bound::Ulp(_) => {
            // Devices may flush denormals.
            if e.abs() < f64::from(f32::MIN_POSITIVE) && error <= f64::from(f32::MIN_POSITIVE) {
                0.0
            } else {
                error / ulp(e)
            }
        }
        Bound::Absolute(_) => error / e.abs().max(1.0),
        Bound::Scaled(_) | Bound::Nmse(_) => error / scale(i).max(f64::from(f32::MIN_POSITIVE)),
    }
}

/// The distance between f32 numbers around `x`.
fn ulp(x: f64) -> f64 {
    let x = x.abs().max(f64::from(f32::MIN_POSITIVE)).min(f64::from(f32::MAX));
    2f64.powi(x.log2().floor() as i32 - 23)
}

/// Compares bit for bit, whatever the bound.
fn compare_words(expected: &[u32], got: &[u32], bound: Bound) -> Check {
    let at = match expected.iter().zip(got).position(|(e, g)| e != g) {
        _ if expected.len() != got.len() => format!("{} elements for {}", got.len(), expected.len()),
        Some(i) => format!("[{i}]: {} for {}", got[i], expected[i]),
        None => return Check { worst: 0.0, at: String::new(), bound },
    };
    Check { worst: f64::INFINITY, at, bound }
}
