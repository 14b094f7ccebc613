//! Reductions.

use tidemill::cpu;
use tidemill::{Axes, DType, Recording, Result, Tensor, Value};

use super::data::{BENCHED, BENCHED_SIDE, Random, SPECIAL, uniform};
use super::reference::reduce::{View, number, place};
use super::{Array, Bound, Case, Expected, Input, Kind, twin};

const OPS: [&str; 9] = ["sum", "mean", "prod", "amax", "amin", "argmax", "argmin", "norm", "variance"];

/// One rounding of an f32.
const EPS: f64 = 1.0 / (1u64 << 24) as f64;

/// Every kind of row: within a texel, across texels, within a block, one lane's, one subgroup's, several parts.
const ROWS: [usize; 20] = [
    1, 2, 3, 4, 5, 7, 31, 127, 129, 255, 256, 257, 1023, 1025, 4099, 16_384, 32_771, 65_537, 100_003,
    1_000_003,
];

const SHAPES: [&[usize]; 18] = [
    &[1, 1],
    &[1, 257],
    &[257, 1],
    &[3, 5],
    &[5, 3],
    &[1021, 7],
    &[7, 1021],
    &[64, 1024],
    &[1000, 33],
    &[2, 40_009],
    &[40_009, 2],
    &[70_001, 3],
    &[3, 5, 7],
    &[2, 131, 6],
    &[5, 1, 9],
    &[1, 1, 1, 1],
    &[3, 4, 5, 6],
    &[2, 67, 3, 4],
];

/// Adds the cases.
pub(crate) fn cases(out: &mut Vec<Case>) {
    for op in OPS {
        for n in ROWS {
            out.push(reduction(op, vec![n], Some(0), false, Data::Ordinary));
        }
        for shape in SHAPES {
            for axis in 0..shape.len() {
                let keep = axis % 2 == 1;
                out.push(reduction(op, shape.to_vec(), Some(axis), keep, Data::Ordinary));
            }
            out.push(reduction(op, shape.to_vec(), None, shape.len() == 3, Data::Ordinary));
        }
        for shape in [vec![256, 5], vec![5, 256], vec![16, 300], vec![SPECIAL.len()]] {
            out.push(reduction(op, shape, Some(0), false, Data::Special));
        }
        out.push(reduction(op, vec![1000, 3], Some(1), false, Data::Special));
        out.push(reduction(op, vec![300, 130], Some(1), false, Data::Special));
        // Many short rows, which an invocation takes four at a time.
        for (rows, extent) in [(1024, 4), (1025, 1), (1026, 2), (1027, 3), (2049, 7), (1030, 10), (1055, 16)]
        {
            out.push(reduction(op, vec![rows, extent], Some(1), extent == 7, Data::Ordinary));
        }
        out.push(reduction(op, vec![1027, 5], Some(1), false, Data::Special));
    }
    for op in ["sum", "mean", "norm", "variance"] {
        for shape in [vec![4099], vec![1_000_003], vec![37, 2051], vec![2051, 37]] {
            for axis in 0..shape.len() {
                out.push(reduction(op, shape.clone(), Some(axis), false, Data::Hostile));
                out.push(reduction(op, shape.clone(), Some(axis), false, Data::Offset));
            }
        }
    }
    for op in ["sum", "amax", "argmin"] {
        out.push(reduction(op, vec![300_007, 11], Some(1), false, Data::Ordinary).large());
        out.push(reduction(op, vec![400_009, 2, 3], Some(0), false, Data::Ordinary).large());
        out.push(reduction(op, vec![2, 1_500_000], Some(0), false, Data::Ordinary).large());
        out.push(reduction(op, vec![1 << 26], None, false, Data::Hostile).large());
    }
    // Past the loop limit of lavapipe, were it one row for one invocation; and past what one storage binding spans.
    out.push(reduction("sum", vec![(1 << 26) + 5], None, false, Data::Ordinary).large());
    out.push(reduction("variance", vec![(1 << 25) + 1], None, false, Data::Offset).large());
    out.push(reduction("sum", vec![1, 2, 35_000_003], Some(1), false, Data::Ordinary).large());
    for op in ["sum", "amax", "amin", "argmax", "argmin"] {
        for (shape, axis) in
            [(vec![5], 0), (vec![100_003], 0), (vec![37, 131], 1), (vec![131, 37], 0), (vec![1037, 5], 1)]
        {
            let n = shape.iter().product();
            for dtype in [DType::I32, DType::U32] {
                let x = Input::words(dtype, &shape, move || integers(n));
                out.push(reduced(op, x, Some(axis), false, &format!(" {dtype}")));
            }
        }
    }
    for op in OPS {
        for (shape, axes) in [
            (&[6, 7, 8][..], &[0, 1][..]),
            (&[6, 7, 8], &[2, 1]),
            (&[6, 7, 8], &[0, 2]),
            (&[3, 5, 4, 6], &[1, 2]),
            (&[3, 5, 4, 6], &[-1, 0]),
            (&[3, 5, 4, 6], &[0, 2, 3]),
            (&[3, 1, 40, 6], &[0, 2]),
            (&[37, 65, 12], &[0, 2]),
            (&[2, 3, 2, 5, 3, 4], &[0, 2, 4]),
            (&[2, 2, 3, 2, 2, 3, 2, 3], &[0, 2, 4, 6]),
            (&[5, 9], &[]),
        ] {
            out.push(several(op, shape, axes, false));
            out.push(several(op, shape, axes, true));
        }
    }
    for variance in [false, true] {
        for (shape, axes) in
            [(&[37, 65][..], &[1][..]), (&[8, 3, 40], &[0, 2]), (&[4099], &[0]), (&[0, 5], &[1])]
        {
            out.push(moments(shape, axes, variance));
        }
    }
    out.push(moments(&[BENCHED_SIDE, BENCHED_SIDE], &[1], true).bench("op_moments"));
    for n in [0, 1, 3, 5, 255, 256, 257, 4099, 65_537, 1_000_003] {
        out.push(dot(n));
    }
    out.push(dot(1 << 25).large());
    timed(out);
}

/// Those that benches time.
fn timed(out: &mut Vec<Case>) {
    const SIDE: usize = BENCHED_SIDE;
    let ordinary = |op, shape: &[usize], axis| reduction(op, shape.to_vec(), axis, false, Data::Ordinary);
    for op in OPS {
        out.push(ordinary(op, &[BENCHED], None).bench(format!("op_{op}")));
    }
    out.push(ordinary("sum", &[SIDE, SIDE], Some(1)).bench("op_sum_rows"));
    out.push(ordinary("sum", &[BENCHED / 4, 4], Some(1)).bench("op_sum_rows_of_4"));
    out.push(ordinary("sum", &[BENCHED / 3, 3], Some(1)).bench("op_sum_rows_of_3"));
    out.push(ordinary("argmax", &[BENCHED / 10, 10], Some(1)).bench("op_argmax_rows_of_10"));
    out.push(ordinary("sum", &[SIDE, SIDE], Some(0)).bench("op_sum_columns"));
    out.push(ordinary("sum", &[1 << 22], None).bench("sum_4m"));
    out.push(dot(BENCHED).bench("op_dot"));
    out.push(dot(1 << 22).bench("dot_4m"));
}

/// What the elements are.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Data {
    Ordinary,
    /// Infinities, NaNs, zeros of both signs.
    Special,
    /// Large elements that cancel, small ones between them.
    Hostile,
    /// A large common offset.
    Offset,
}

impl Data {
    fn make(self, op: &str, n: usize) -> Vec<f32> {
        let mut random = Random::new(n as u64);
        match self {
            Data::Ordinary if op == "prod" => {
                let width = 1.0 / (n as f32).sqrt();
                uniform(n, 1.0 - 0.5 * width, 1.0 + 0.5 * width, 3)
            }
            Data::Ordinary if op.starts_with('a') => {
                // Few different ones: the first of many equals is asked for.
                (0..n).map(|_| (random.bits() % 1000) as f32 - 500.0).collect()
            }
            Data::Ordinary => uniform(n, -4.0, 4.0, 3),
            // Mostly harmless, or every result would be NaN.
            Data::Special => (0..n)
                .map(|_| match SPECIAL.get((random.bits() % 64) as usize) {
                    Some(&special) if op.starts_with('a') || usual(special) => special,
                    _ => random.uniform(-1.0, 1.0),
                })
                .collect(),
            Data::Hostile => (0..n)
                .map(|i| match i % 4 {
                    0 => 1e7 + (i % 1024) as f32,
                    1 => random.uniform(-1.0, 1.0),
                    2 => -1e7 - (i % 1024) as f32,
                    _ => 0.1,
                })
                .collect(),
            Data::Offset => (0..n).map(|_| 10_000.0 + random.uniform(0.0, 1.0)).collect(),
        }
    }
}

/// Not on the way to an overflow or underflow of its own.
fn usual(x: f32) -> bool {
    !x.is_finite() || x == 0.0 || (1e-3..1e3).contains(&x.abs())
}

fn bound(op: &str, extent: usize) -> Bound {
    match op {
        "sum" | "norm" => Bound::Scaled(4.0 * EPS),
        "dot" | "mean" => Bound::Scaled(5.0 * EPS),
        "prod" => Bound::Scaled(extent as f64 * EPS),
        "variance" => Bound::Scaled(8.0 * EPS),
        _ => Bound::Exact,
    }
}

fn record(r: &Recording, op: &str, x: &Tensor, axes: Axes) -> Result<Value> {
    match op {
        "sum" => r.sum(x, axes),
        "mean" => r.mean(x, axes),
        "prod" => r.prod(x, axes),
        "amax" => r.amax(x, axes),
        "amin" => r.amin(x, axes),
        "argmax" => r.argmax(x, axes),
        "argmin" => r.argmin(x, axes),
        "norm" => r.norm(x, axes),
        _ => r.variance(x, axes),
    }
}

fn axes_of(axis: Option<usize>, rank: usize, keep: bool) -> Axes {
    // Both ways to count are asked for.
    let axes =
        axis.map_or(Axes::ALL, |a| if keep { Axes::from(a) } else { Axes::at(a as isize - rank as isize) });
    if keep { axes.keep() } else { axes }
}

/// The shape that a result must have.
fn left(shape: &[usize], axis: Option<usize>, keep: bool) -> Vec<usize> {
    let reduced = |d: usize| axis.is_none_or(|a| a == d);
    let dims = shape.iter().enumerate().filter(|&(d, _)| keep || !reduced(d));
    dims.map(|(d, &extent)| if reduced(d) { 1 } else { extent }).collect()
}

fn describe(shape: &[usize], axis: Option<usize>, keep: bool, data: &str) -> String {
    let axis = axis.map_or("all axes".to_owned(), |a| format!("axis {a}"));
    format!("{shape:?} {axis}{}{data}", if keep { " kept" } else { "" })
}

fn reduction(op: &'static str, shape: Vec<usize>, axis: Option<usize>, keep: bool, data: Data) -> Case {
    let note = if data == Data::Ordinary { String::new() } else { format!(" {data:?}").to_lowercase() };
    let n = shape.iter().product();
    reduced(op, Input::new(&shape, move || data.make(op, n)), axis, keep, &note)
}

fn reduced(op: &'static str, x: Input, axis: Option<usize>, keep: bool, note: &str) -> Case {
    let (dtype, shape) = (x.kind.dtype, x.kind.shape.dims().to_vec());
    let what = describe(&shape, axis, keep, note);
    let result = Kind::new(if op.starts_with("arg") { DType::U32 } else { dtype }, &left(&shape, axis, keep));
    let (axes, view) = (axes_of(axis, shape.len(), keep), View::new(&shape, axis));
    let expected = move |x: &[Array]| match dtype {
        DType::F32 => float_results(op, view, x[0].of()),
        DType::I32 => integer_results(op, view, |k| i64::from(x[0].of::<i32>()[k])),
        _ => integer_results(op, view, |k| i64::from(x[0].of::<u32>()[k])),
    };
    let record = move |r: &Recording, t: &[Tensor]| record(r, op, &t[0], axes);
    Case::new(op, "reduce", what, vec![x], result, record, expected)
        .bound(if dtype == DType::F32 { bound(op, view.extent) } else { Bound::Exact })
        .flops(shape.iter().product())
        .twin(move |x, out| twin::reduce(op, &x[0], axes, out))
}

/// The elements with the dimensions that are reduced behind the others, in their order, and the shape of a result.
fn gathered(shape: &[usize], axes: &[isize], keep: bool) -> (Vec<usize>, View, Vec<usize>) {
    let rank = shape.len() as isize;
    let reduced = |d: usize| axes.iter().any(|axis| (axis + rank) % rank == d as isize);
    let of = |wanted: bool| (0..shape.len()).filter(move |&d| reduced(d) == wanted);
    let order: Vec<usize> = of(false).chain(of(true)).collect();
    let strides: Vec<usize> = (0..shape.len()).map(|d| shape[d + 1..].iter().product()).collect();
    let n: usize = shape.iter().product();
    let place = |mut i: usize| {
        order.iter().rev().fold(0, |at, &d| {
            let coordinate = i % shape[d];
            i /= shape[d];
            at + coordinate * strides[d]
        })
    };
    let extents = |wanted| of(wanted).map(|d| shape[d]).product::<usize>();
    let view = View::new(&[extents(false), extents(true)], Some(1));
    let kept = (0..shape.len()).filter(|&d| keep || !reduced(d));
    let left = kept.map(|d| if reduced(d) { 1 } else { shape[d] }).collect();
    ((0..n).map(place).collect(), view, left)
}

/// A reduction over several axes.
fn several(op: &'static str, shape: &[usize], axes: &'static [isize], keep: bool) -> Case {
    let (places, view, left) = gathered(shape, axes, keep);
    let over = if keep { Axes::of(axes).keep() } else { Axes::of(axes) };
    let n = shape.iter().product();
    let x = Input::new(shape, move || Data::Ordinary.make(op, n));
    let result = Kind::new(if op.starts_with("arg") { DType::U32 } else { DType::F32 }, &left);
    let expected = move |x: &[Array]| {
        let x: Vec<f32> = places.iter().map(|at| x[0].of::<f32>()[*at]).collect();
        float_results(op, view, &x)
    };
    let what = format!("{shape:?} axes {axes:?}{}", if keep { " kept" } else { "" });
    let record = move |r: &Recording, t: &[Tensor]| record(r, op, &t[0], over);
    Case::new(op, "reduce", what, vec![x], result, record, expected)
        .bound(bound(op, view.extent))
        .flops(n)
        .twin(move |x, out| twin::reduce(op, &x[0], over, out))
}

/// One of the two results.
fn moments(shape: &[usize], axes: &'static [isize], variance: bool) -> Case {
    let (places, view, left) = gathered(shape, axes, false);
    let op = if variance { "variance" } else { "mean" };
    let n = shape.iter().product();
    let x = Input::new(shape, move || Data::Ordinary.make(op, n));
    let expected = move |x: &[Array]| {
        let x: Vec<f32> = places.iter().map(|at| x[0].of::<f32>()[*at]).collect();
        float_results(op, view, &x)
    };
    let record = move |r: &Recording, t: &[Tensor]| {
        let (mean, of_squares) = r.moments(&t[0], Axes::of(axes))?;
        Ok(if variance { of_squares } else { mean })
    };
    let (what, result) = (format!("{shape:?} axes {axes:?}: {op}"), Kind::of::<f32>(&left));
    Case::new("moments", "reduce", what, vec![x], result, record, expected)
        .bound(bound("variance", view.extent))
        .flops(n)
        .twin(move |x, out| {
            let mut other = vec![0.0; out.kind.shape.elements()];
            let (x, out) = (x[0].view(), out.of_mut());
            let (means, variances) = if variance { (&mut other[..], out) } else { (out, &mut other[..]) };
            cpu::moments(x, Axes::of(axes), means, variances)
        })
}

fn float_results(op: &str, view: View, x: &[f32]) -> Expected {
    let line = |i: usize| view.line(i).map(|k| f64::from(x[k]));
    if op.starts_with("arg") {
        return Expected::Words((0..view.lines()).map(|i| place(op, line(i)) as u32).collect());
    }
    Expected::Scaled((0..view.lines()).map(|i| number(op, line(i))).map(|e| (e.value, e.scale)).collect())
}

/// Integers; every fifth one is the smallest or the largest there is.
fn integers(n: usize) -> Vec<u32> {
    let mut random = Random::new(5);
    let extremes = [0, u32::MAX, i32::MIN as u32, i32::MAX as u32, 1];
    (0..n).map(|i| if i % 5 == 2 { extremes[i / 5 % 5] } else { random.bits() as u32 }).collect()
}

fn integer_results(op: &str, view: View, element: impl Fn(usize) -> i64) -> Expected {
    let result = |i: usize| {
        let line = || view.line(i).map(&element);
        match op {
            "sum" => line().fold(0i64, i64::wrapping_add) as u32,
            "amax" => line().max().unwrap_or(0) as u32,
            "amin" => line().min().unwrap_or(0) as u32,
            // 32-bit integers are exact in f64.
            _ => place(op, line().map(|x| x as f64)) as u32,
        }
    };
    Expected::Words((0..view.lines()).map(result).collect())
}

fn dot(n: usize) -> Case {
    let inputs = vec![
        Input::new(&[n], move || uniform(n, -4.0, 4.0, 1)),
        Input::new(&[n], move || uniform(n, -1.0, 3.0, 2)),
    ];
    let expected = |x: &[Array]| {
        let pairs = x[0].of::<f32>().iter().zip(x[1].of::<f32>());
        let sum = number("sum", pairs.map(|(a, b)| f64::from(*a) * f64::from(*b)));
        Expected::Scaled(vec![(sum.value, sum.scale)])
    };
    let record = |r: &Recording, t: &[Tensor]| r.dot(&t[0], &t[1]);
    Case::new("dot", "reduce", format!("[{n}]"), inputs, Kind::of::<f32>(&[]), record, expected)
        .bound(bound("dot", n))
        .flops(2 * n)
        .twin(|x, out| cpu::dot(x[0].of::<f32>(), x[1].of::<f32>(), out.of_mut()))
}
