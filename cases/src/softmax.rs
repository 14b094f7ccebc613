//! Softmax and its logarithm.

use tidemill::{Recording, Tensor, cpu};

use super::data::{BENCHED, BENCHED_SIDE, Random, SPECIAL, uniform};
use super::reference::reduce::View;
use super::reference::softmax::softmax;
use super::{Array, Bound, Case, Expected, Input, Kind};

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
pub(crate) fn cases(out: &mut Vec<Case>) {
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
    }
    // Past what one storage binding spans, in parts and in whole rows; columns of many parts; many groups.
    out.push(case("softmax", vec![(1 << 25) + 77], 0, Data::Ordinary).large());
    out.push(case("softmax", vec![33_000, 1023], 1, Data::Ordinary).large());
    out.push(case("log_softmax", vec![2, 40_000, 101], 1, Data::Ordinary).large());
    out.push(case("log_softmax", vec![400_009, 11], 1, Data::Ordinary).large());
    timed(out);
}

/// Those that benches time, and one more of that size.
fn timed(out: &mut Vec<Case>) {
    const SIDE: usize = BENCHED_SIDE;
    let ordinary = |op, shape: [usize; 2], axis| case(op, shape.to_vec(), axis, Data::Ordinary);
    out.push(ordinary("softmax", [4096, 1024], 1).bench("softmax_4096x1024"));
    out.push(ordinary("softmax", [1, BENCHED], 1).bench("softmax_1m"));
    out.push(ordinary("softmax", [SIDE, SIDE], 1).bench("op_softmax_rows"));
    out.push(ordinary("softmax", [BENCHED / 10, 10], 1).bench("op_softmax_rows_of_10"));
    out.push(ordinary("softmax", [SIDE, SIDE], 0).bench("op_softmax_columns"));
    out.push(ordinary("log_softmax", [SIDE, SIDE], 1).bench("op_log_softmax_rows"));
    out.push(ordinary("log_softmax", [4096, 1024], 1).large());
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
    let what = format!("{shape:?} axis {axis}{note}");
    let logarithm = op == "log_softmax";
    // Both ways to count are asked for.
    let asked = if axis.is_multiple_of(2) { axis as isize } else { axis as isize - shape.len() as isize };
    let (view, result, n) =
        (View::new(&shape, Some(axis)), Kind::of::<f32>(&shape), shape.iter().product::<usize>());
    let x = Input::new(&shape.clone(), move || data.make(&shape, axis));
    let expected = move |x: &[Array]| {
        let x = x[0].of::<f32>();
        let mut expected = vec![(0.0, 0.0); x.len()];
        for i in 0..view.lines() {
            let line = softmax(logarithm, view.line(i).map(|k| f64::from(x[k])));
            for (at, (y, below)) in view.line(i).zip(line) {
                expected[at] = (y, scale(logarithm, y, below));
            }
        }
        Expected::Scaled(expected)
    };
    let record = move |r: &Recording, t: &[Tensor]| match logarithm {
        true => r.log_softmax(&t[0], asked),
        false => r.softmax(&t[0], asked),
    };
    Case::new(op, "softmax", what, vec![x], result, record, expected)
        .bound(Bound::Scaled(8.0 * EPS))
        // A difference, an exponential, a sum and a quotient each.
        .flops(4 * n)
        .twin(move |x, out| match logarithm {
            true => cpu::log_softmax(x[0].view(), asked, out.of_mut()),
            false => cpu::softmax(x[0].view(), asked, out.of_mut()),
        })
}

/// What 8 roundings are relative to, for an element so far below the largest.
fn scale(logarithm: bool, y: f64, below: f64) -> f64 {
    // What lies 87 below the largest may become 0.
    if logarithm { y.abs().max(1.0) } else { y * (1.0 + below / 8.0) + 1.7e-38 / (8.0 * EPS) }
}
