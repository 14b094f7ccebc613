//! Softmax and its logarithm.

use tidemill::{Shape, cpu};

use super::data::{Random, SPECIAL, uniform};
use super::reference::reduce::View;
use super::reference::softmax::softmax;
use super::{Bound, Case, On, compare_scaled};

const EPS: f64 = 1.0 / (1u64 << 24) as f64;

/// Rows that one lane, one subgroup and one workgroup hold, and that none does; with every misalignment.
const ROWS: [usize; 22] = [
    1, 2, 3, 4, 5, 7, 10, 29, 31, 33, 127, 255, 256, 257, 1000, 1021, 1024, 1025, 4099, 20_000, 100_003,
    1_000_003,
];

const SHAPES: [(&[usize], usize); 22] = [
    (&[3, 5], 0),
    (&[5, 3], 1),
    (&[1021, 7], 1),
    (&[7, 1021], 0),
    (&[7, 1021], 1),
    (&[130, 1024], 1),
    (&[64, 1024], 0),
    (&[70_001, 3], 1),
    (&[40_009, 2], 0),
    (&[3, 9001], 1),
    (&[3, 5, 7], 0),
    (&[3, 5, 7], 1),
    (&[3, 5, 7], 2),
    (&[2, 131, 6], 1),
    (&[2, 130, 8], 1),
    (&[5, 1, 9], 1),
    (&[1, 1, 1, 1], 2),
    (&[3, 4, 5, 6], 0),
    (&[3, 4, 5, 6], 1),
    (&[3, 4, 5, 6], 2),
    (&[3, 4, 5, 6], 3),
    (&[2, 20_001, 3], 1),
];

/// Adds the cases.
pub fn cases(out: &mut Vec<Case>) {
    for op in ["softmax", "log_softmax"] {
        for n in ROWS {
            out.push(case(op, vec![n], 0, Data::Ordinary));
        }
        for (shape, axis) in SHAPES {
            out.push(case(op, shape.to_vec(), axis, Data::Ordinary));
        }
        for (shape, axis) in [
            (vec![300, 3], 1),
            (vec![300, 17], 1),
            (vec![100, 40], 1),
            (vec![40, 101], 0),
            (vec![41, 100], 0),
            (vec![9, 1030], 1),
            (vec![3, 70_000], 1),
            (vec![9000, 3], 0),
        ] {
            out.push(case(op, shape.clone(), axis, Data::Special));
            out.push(case(op, shape.clone(), axis, Data::Masked));
            out.push(case(op, shape, axis, Data::Wide));
        }
        out.push(case(op, vec![4096, 1024], 1, Data::Ordinary).large());
    }
    // Past what one storage binding spans, in parts and in whole rows; columns of many parts; many groups.
    out.push(case("softmax", vec![(1 << 25) + 77], 0, Data::Ordinary).large());
    out.push(case("softmax", vec![33_000, 1023], 1, Data::Ordinary).large());
    out.push(case("log_softmax", vec![2, 40_000, 101], 1, Data::Ordinary).large());
    out.push(case("log_softmax", vec![400_009, 11], 1, Data::Ordinary).large());
}

/// What the elements are.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Data {
    Ordinary,
    /// Infinities and NaNs, in some rows.
    Special,
    /// Much of it −∞, and some rows nothing else.
    Masked,
    /// So far apart that shares underflow.
    Wide,
}

impl Data {
    fn make(self, shape: &[usize], axis: usize) -> Vec<f32> {
        let n = shape.iter().product();
        let mut random = Random::new(n as u64);
        let view = View::new(shape, Some(axis));
        match self {
            Data::Ordinary => uniform(n, -6.0, 6.0, 3),
            Data::Wide => uniform(n, -120.0, 5000.0, 4),
            Data::Special => {
                let mut x = uniform(n, -6.0, 6.0, 5);
                for i in (0..view.lines()).step_by(2) {
                    let at = view.line(i).nth(random.bits() as usize % view.extent).unwrap_or(0);
                    let special = SPECIAL[random.bits() as usize % SPECIAL.len()];
                    x[at] = if random.bits().is_multiple_of(8) { -special } else { special };
                }
                x
            }
            Data::Masked => {
                let mut x = uniform(n, -6.0, 6.0, 6);
                for i in 0..view.lines() {
                    let all = random.bits().is_multiple_of(4);
                    for at in view.line(i) {
                        if all || random.bits().is_multiple_of(2) {
                            x[at] = f32::NEG_INFINITY;
                        }
                    }
                }
                x
            }
        }
    }
}

fn case(op: &'static str, shape: Vec<usize>, axis: usize, data: Data) -> Case {
    let note = if data == Data::Ordinary { String::new() } else { format!(" {data:?}").to_lowercase() };
    Case::both(op, "softmax", format!("{shape:?} axis {axis}{note}"), move |on| {
        let logarithm = op == "log_softmax";
        let x = data.make(&shape, axis);
        let dims = Shape::new(&shape).unwrap_or_default();
        // Both ways to count are asked for.
        let axis_asked =
            if axis.is_multiple_of(2) { axis as isize } else { axis as isize - shape.len() as isize };
        let mut result = vec![0.0; x.len()];
        match on {
            On::Gpu(gpu) => {
                let tensor = gpu.upload(&x, dims)?;
                let kept = gpu.run(|r| match logarithm {
                    true => r.log_softmax(&tensor, axis_asked),
                    false => r.softmax(&tensor, axis_asked),
                })?;
                result = kept.read()?;
            }
            On::Cpu if logarithm => {
                cpu::log_softmax((&x, dims), axis_asked, &mut result)?;
            }
            On::Cpu => {
                cpu::softmax((&x, dims), axis_asked, &mut result)?;
            }
        }
        let view = View::new(&shape, Some(axis));
        let mut expected = vec![(0.0, 0.0); x.len()];
        for i in 0..view.lines() {
            let line = softmax(logarithm, view.line(i).map(|k| f64::from(x[k])));
            for (at, y) in view.line(i).zip(line) {
                expected[at] = y;
            }
        }
        let values: Vec<f64> = expected.iter().map(|e| e.0).collect();
        // In units of 8 roundings.
        let scale = |i: usize| {
            let (y, below) = expected[i];
            // What lies 87 below the largest may become 0.
            if logarithm { y.abs().max(1.0) } else { y * (1.0 + below / 8.0) + 1.7e-38 / (8.0 * EPS) }
        };
        Ok(compare_scaled(&values, &result, Bound::Scaled(8.0 * EPS), scale))
    })
}
