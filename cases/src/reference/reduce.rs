//! Reductions.

/// A tensor seen as `[outer, extent, inner]`.
#[derive(Clone, Copy, Debug)]
pub struct View {
    /// Elements of the axes in front.
    pub outer: usize,
    /// Elements of the axis.
    pub extent: usize,
    /// Elements of the axes behind.
    pub inner: usize,
}

impl View {
    /// Along one axis, or with all elements in one line.
    pub fn new(shape: &[usize], axis: Option<usize>) -> View {
        let product = |dims: &[usize]| dims.iter().product();
        match axis {
            Some(a) => {
                View { outer: product(&shape[..a]), extent: shape[a], inner: product(&shape[a + 1..]) }
            }
            None => View { outer: 1, extent: product(shape), inner: 1 },
        }
    }

    /// How many lines there are.
    pub fn lines(self) -> usize {
        self.outer * self.inner
    }

    /// Where the elements of one line are.
    pub fn line(self, i: usize) -> impl Iterator<Item = usize> + Clone {
        let first = i / self.inner * self.extent * self.inner + i % self.inner;
        (0..self.extent).map(move |k| first + k * self.inner)
    }
}

/// A result, and the scale of its rounding errors.
#[derive(Clone, Copy, Debug)]
pub struct Reduced {
    /// The result.
    pub value: f64,
    /// The scale of its rounding errors.
    pub scale: f64,
}

/// A reduction of one line to a number.
pub fn number(op: &str, line: impl Iterator<Item = f64> + Clone) -> Reduced {
    let n = line.clone().count() as f64;
    let sum = |f: &dyn Fn(f64) -> f64| line.clone().fold(0.0, |s, x| s + f(x));
    let relative = |value: f64| Reduced { value, scale: value.abs() };
    match op {
        "sum" => Reduced { value: sum(&|x| x), scale: sum(&f64::abs) },
        "mean" => Reduced { value: sum(&|x| x) / n, scale: sum(&f64::abs) / n },
        "prod" => relative(line.fold(1.0, |p, x| p * x)),
        "norm" => relative(sum(&|x| x * x).sqrt()),
        "variance" => {
            let mean = sum(&|x| x) / n;
            let rounding = sum(&|x| x - mean);
            relative((sum(&|x| (x - mean) * (x - mean)) - rounding * rounding / n) / n)
        }
        _ => relative(line.clone().nth(place(op, line)).unwrap_or(f64::NAN)),
    }
}

/// The place of the element that counts: the first of equals, and NaN before all else.
/// `amax` and `amin` tell zeros apart by their sign, the others don't.
pub fn place(op: &str, line: impl Iterator<Item = f64>) -> usize {
    let above = |x: f64, best: f64| match op {
        "amax" => x > best || (x == 0.0 && best == 0.0 && best.is_sign_negative() && x.is_sign_positive()),
        "amin" => x < best || (x == 0.0 && best == 0.0 && best.is_sign_positive() && x.is_sign_negative()),
        "argmax" => x > best,
        _ => x < best,
    };
    let mut found: Option<(usize, f64)> = None;
    for (i, x) in line.enumerate() {
        if found.is_none_or(|(_, best)| !best.is_nan() && (x.is_nan() || above(x, best))) {
            found = Some((i, x));
        }
    }
    found.map_or(0, |(i, _)| i)
}
