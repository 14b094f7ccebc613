//! Group `ops`: every op on about a million elements that are on the device, against the loop that one writes by hand.
//! Only on request: it is a list of what is slow, not a comparison with something strong.

use std::time::Instant;

use tidemill::{Accelerator, Axes, DType, Operand, Recording, Shape, Tensor, Value};

use super::work::{Bar, Make, Result, Unit, Work};

/// Elements of the vectors, and of the square matrices.
const N: usize = 1 << 20;
const SIDE: usize = 1 << 10;

/// `op_NAME`: the shapes of the operands, how we record it, and the loop.
macro_rules! works {
    ($($name:literal: $shapes:expr, $record:expr, $scalar:expr;)*) => {
        &[$((concat!("op_", $name), |gpu| compare(gpu, $shapes, $record, $scalar))),*]
    };
}

/// The group's works.
pub(crate) static WORKS: &[(&str, Make)] = works! {
    "copy": &[&[N]], |r, t| r.copy(&t[0]), |x, o| each(x, o, |x| x);
    "fill": &[&[N]], |r, _| r.fill([N], 0.5f32), |_, o| o.fill(0.5);
    "neg": &[&[N]], |r, t| r.neg(&t[0]), |x, o| each(x, o, |x| -x);
    "abs": &[&[N]], |r, t| r.abs(&t[0]), |x, o| each(x, o, f32::abs);
    "sign": &[&[N]], |r, t| r.sign(&t[0]), |x, o| each(x, o, |x| if x == 0.0 { x } else { x.signum() });
    "floor": &[&[N]], |r, t| r.floor(&t[0]), |x, o| each(x, o, f32::floor);
    "ceil": &[&[N]], |r, t| r.ceil(&t[0]), |x, o| each(x, o, f32::ceil);
    "round": &[&[N]], |r, t| r.round(&t[0]), |x, o| each(x, o, f32::round_ties_even);
    "sqrt": &[&[N]], |r, t| r.sqrt(&t[0]), |x, o| each(x, o, f32::sqrt);
    "rsqrt": &[&[N]], |r, t| r.rsqrt(&t[0]), |x, o| each(x, o, |x| 1.0 / x.sqrt());
    "recip": &[&[N]], |r, t| r.recip(&t[0]), |x, o| each(x, o, f32::recip);
    "exp": &[&[N]], |r, t| r.exp(&t[0]), |x, o| each(x, o, f32::exp);
    "log": &[&[N]], |r, t| r.log(&t[0]), |x, o| each(x, o, f32::ln);
    "sin": &[&[N]], |r, t| r.sin(&t[0]), |x, o| each(x, o, f32::sin);
    "cos": &[&[N]], |r, t| r.cos(&t[0]), |x, o| each(x, o, f32::cos);
    "relu": &[&[N]], |r, t| r.relu(&t[0]), |x, o| each(x, o, |x| x.max(0.0));
    "leaky_relu": &[&[N]], |r, t| r.leaky_relu(&t[0], 0.1), |x, o| each(x, o, |x| if x < 0.0 { 0.1 * x } else { x });
    "elu": &[&[N]], |r, t| r.elu(&t[0], 1.0), |x, o| each(x, o, |x| if x < 0.0 { x.exp_m1() } else { x });
    "clip": &[&[N]], |r, t| r.clip(&t[0], 1.0, 2.0), |x, o| each(x, o, |x| x.clamp(1.0, 2.0));
    "sigmoid": &[&[N]], |r, t| r.sigmoid(&t[0]), |x, o| each(x, o, |x| 1.0 / (1.0 + (-x).exp()));
    "tanh": &[&[N]], |r, t| r.tanh(&t[0]), |x, o| each(x, o, f32::tanh);
    "swish": &[&[N]], |r, t| r.swish(&t[0]), |x, o| each(x, o, |x| x / (1.0 + (-x).exp()));
    "gelu": &[&[N]], |r, t| r.gelu(&t[0]), |x, o| each(x, o, gelu);
    "softplus": &[&[N]], |r, t| r.softplus(&t[0]), |x, o| each(x, o, |x| x.exp().ln_1p());
    "add": &[&[N], &[N]], |r, t| r.add(&t[0], &t[1]), |x, o| pairs(x, o, |a, b| a + b);
    "sub": &[&[N], &[N]], |r, t| r.sub(&t[0], &t[1]), |x, o| pairs(x, o, |a, b| a - b);
    "mul": &[&[N], &[N]], |r, t| r.mul(&t[0], &t[1]), |x, o| pairs(x, o, |a, b| a * b);
    "div": &[&[N], &[N]], |r, t| r.div(&t[0], &t[1]), |x, o| pairs(x, o, |a, b| a / b);
    "pow": &[&[N], &[N]], |r, t| r.pow(&t[0], &t[1]), |x, o| pairs(x, o, f32::powf);
    "minimum": &[&[N], &[N]], |r, t| r.min(&t[0], &t[1]), |x, o| pairs(x, o, f32::min);
    "maximum": &[&[N], &[N]], |r, t| r.max(&t[0], &t[1]), |x, o| pairs(x, o, f32::max);
    "less": &[&[N], &[N]], |r, t| r.lt(&t[0], &t[1]), |x, o| pairs(x, o, |a, b| if a < b { 1.0 } else { 0.0 });
    "scale": &[&[N]], |r, t| r.scale(&t[0], 3.0f32), |x, o| each(x, o, |x| 3.0 * x);
    "add_scalar": &[&[N]], |r, t| r.add_scalar(&t[0], 3.0f32), |x, o| each(x, o, |x| x + 3.0);
    "add_row": &[&[SIDE, SIDE], &[SIDE]], |r, t| r.add(&t[0], &t[1]), |x, o| by_row(x, o, |_, j| j);
    "add_column": &[&[SIDE, SIDE], &[SIDE, 1]], |r, t| r.add(&t[0], &t[1]), |x, o| by_row(x, o, |i, _| i);
    "cast": &[&[N]], |r, t| r.cast(&t[0], DType::U32), |x, o| each(x, o, |x| (x as u32) as f32);
    "sum": &[&[N]], |r, t| r.sum(&t[0], Axes::ALL), |x, o| o[0] = x[0].iter().sum();
    "mean": &[&[N]], |r, t| r.mean(&t[0], Axes::ALL), |x, o| o[0] = x[0].iter().sum::<f32>() / N as f32;
    "amax": &[&[N]], |r, t| r.amax(&t[0], Axes::ALL), |x, o| o[0] = x[0].iter().copied().fold(f32::MIN, f32::max);
    "argmax": &[&[N]], |r, t| r.argmax(&t[0], Axes::ALL), |x, o| o[0] = largest(&x[0]);
    "norm": &[&[N]], |r, t| r.norm(&t[0], Axes::ALL), |x, o| o[0] = x[0].iter().map(|x| x * x).sum::<f32>().sqrt();
    "dot": &[&[N], &[N]], |r, t| r.dot(&t[0], &t[1]), |x, o| o[0] = x[0].iter().zip(&x[1]).map(|(a, b)| a * b).sum();
    "variance": &[&[N]], |r, t| r.variance(&t[0], Axes::ALL), |x, o| o[0] = variance(&x[0]);
    "sum_rows": &[&[SIDE, SIDE]], |r, t| r.sum(&t[0], 1), |x, o| rows(x, o, SIDE, |row| row.iter().sum());
    "sum_rows_of_4": &[&[N / 4, 4]], |r, t| r.sum(&t[0], 1), |x, o| rows(x, o, 4, |row| row.iter().sum());
    "sum_rows_of_3": &[&[N / 3, 3]], |r, t| r.sum(&t[0], 1), |x, o| rows(x, o, 3, |row| row.iter().sum());
    "argmax_rows_of_10": &[&[N / 10, 10]], |r, t| r.argmax(&t[0], 1), |x, o| rows(x, o, 10, largest);
    "sum_columns": &[&[SIDE, SIDE]], |r, t| r.sum(&t[0], 0), |x, o| sum_columns(&x[0], o);
    "softmax_rows": &[&[SIDE, SIDE]], |r, t| r.softmax(&t[0], 1), |x, o| softmax(&x[0], o, SIDE);
    "softmax_rows_of_10": &[&[N / 10, 10]], |r, t| r.softmax(&t[0], 1), |x, o| softmax(&x[0], o, 10);
    "softmax_columns": &[&[SIDE, SIDE]], |r, t| r.softmax(&t[0], 0), |x, o| softmax_columns(&x[0], o);
    "transpose": &[&[SIDE, SIDE]], |r, t| r.transpose(&t[0]), |x, o| strided(x, o, |i, j| j * SIDE + i);
    "slice": &[&[SIDE, SIDE + 4]], |r, t| r.slice(&t[0], [0..SIDE, 4..SIDE + 4]), |x, o| strided(x, o, |i, j| i * (SIDE + 4) + j + 4);
    "slice_unaligned": &[&[SIDE, SIDE + 1]], |r, t| r.slice(&t[0], [0..SIDE, 1..SIDE + 1]), |x, o| strided(x, o, |i, j| i * (SIDE + 1) + j + 1);
    "concat": &[&[SIDE, SIDE / 2], &[SIDE, SIDE / 2]], |r, t| r.concat(&both(t), 1), |x, o| concat(x, o, SIDE / 2);
    "concat_unaligned": &[&[SIDE, 511], &[SIDE, 513]], |r, t| r.concat(&both(t), 1), |x, o| concat(x, o, 511);
    "pad": &[&[SIDE, SIDE]], |r, t| r.pad(&t[0], &[(1, 1), (1, 1)], 0.0f32), |x, o| pad(&x[0], o);
    "iota": &[&[N]], |r, _| r.iota::<f32>([N]), |_, o| o.iter_mut().enumerate().for_each(|(i, o)| *o = i as f32);
};

fn each(x: &[Vec<f32>], out: &mut [f32], f: impl Fn(f32) -> f32) {
    out.iter_mut().zip(&x[0]).for_each(|(o, x)| *o = f(*x));
}

fn pairs(x: &[Vec<f32>], out: &mut [f32], f: impl Fn(f32, f32) -> f32) {
    out.iter_mut().zip(x[0].iter().zip(&x[1])).for_each(|(o, (a, b))| *o = f(*a, *b));
}

/// Adds to each element of a matrix the one of a vector that row and column choose.
fn by_row(x: &[Vec<f32>], out: &mut [f32], choose: impl Fn(usize, usize) -> usize) {
    for (i, (row, out)) in x[0].chunks_exact(SIDE).zip(out.chunks_exact_mut(SIDE)).enumerate() {
        for (j, (x0, out)) in row.iter().zip(out).enumerate() {
            *out = x0 + x[1][choose(i, j)];
        }
    }
}

fn rows(x: &[Vec<f32>], out: &mut [f32], width: usize, f: impl Fn(&[f32]) -> f32) {
    out.iter_mut().zip(x[0].chunks_exact(width)).for_each(|(o, row)| *o = f(row));
}

fn strided(x: &[Vec<f32>], out: &mut [f32], from: impl Fn(usize, usize) -> usize) {
    for (i, out) in out.chunks_exact_mut(SIDE).enumerate() {
        out.iter_mut().enumerate().for_each(|(j, o)| *o = x[0][from(i, j)]);
    }
}

fn both(tensors: &[Tensor]) -> [Operand<'_>; 2] {
    [(&tensors[0]).into(), (&tensors[1]).into()]
}

fn concat(x: &[Vec<f32>], out: &mut [f32], first: usize) {
    for (i, out) in out.chunks_exact_mut(SIDE).enumerate() {
        out[..first].copy_from_slice(&x[0][i * first..][..first]);
        out[first..].copy_from_slice(&x[1][i * (SIDE - first)..][..SIDE - first]);
    }
}

fn pad(x: &[f32], out: &mut [f32]) {
    out.fill(0.0);
    for (row, out) in x.chunks_exact(SIDE).zip(out[SIDE + 2..].chunks_exact_mut(SIDE + 2)) {
        out[1..=SIDE].copy_from_slice(row);
    }
}

fn gelu(x: f32) -> f32 {
    0.5 * x * (1.0 + (0.797_884_6 * (x + 0.044_715 * x * x * x)).tanh())
}

fn largest(x: &[f32]) -> f32 {
    let mut best = 0;
    for (i, v) in x.iter().enumerate() {
        if *v > x[best] {
            best = i;
        }
    }
    best as f32
}

fn variance(x: &[f32]) -> f32 {
    let mean = x.iter().sum::<f32>() / x.len() as f32;
    x.iter().map(|x| (x - mean) * (x - mean)).sum::<f32>() / x.len() as f32
}

fn sum_columns(x: &[f32], out: &mut [f32]) {
    out.fill(0.0);
    for row in x.chunks_exact(SIDE) {
        out.iter_mut().zip(row).for_each(|(o, x)| *o += x);
    }
}

/// As in group `reduce`.
fn softmax(x: &[f32], out: &mut [f32], width: usize) {
    super::reduce::scalar_softmax(x, width, out);
}

fn softmax_columns(x: &[f32], out: &mut [f32]) {
    for j in 0..SIDE {
        let column = || (j..x.len()).step_by(SIDE);
        let largest = column().map(|i| x[i]).fold(f32::MIN, f32::max);
        let mut sum = 0.0;
        for i in column() {
            out[i] = (x[i] - largest).exp();
            sum += out[i];
        }
        column().for_each(|i| out[i] /= sum);
    }
}

/// A result as floats, whatever its type.
fn floats(tensor: &Tensor) -> Result<Vec<f32>> {
    Ok(match tensor.dtype() {
        DType::U32 => tensor.read::<u32>()?.into_iter().map(|x| x as f32).collect(),
        _ => tensor.read::<f32>()?,
    })
}

fn compare(
    gpu: &Accelerator,
    shapes: &[&[usize]],
    record: fn(&mut Recording, &[Tensor]) -> tidemill::Result<Value>,
    scalar: fn(&[Vec<f32>], &mut [f32]),
) -> Result<Work> {
    // Positive, so that every function is defined, and of many sizes.
    let data =
        |k: usize, n: usize| (0..n).map(|i| 0.25 + ((i * 37 + k * 11) % 1009) as f32 / 256.0).collect();
    let host: Vec<Vec<f32>> =
        shapes.iter().enumerate().map(|(k, shape)| data(k, shape.iter().product())).collect();
    let tensors: Vec<Tensor> = shapes
        .iter()
        .zip(&host)
        .map(|(shape, x)| gpu.upload(x, Shape::new(shape).unwrap_or_default()))
        .collect::<tidemill::Result<_>>()?;
    let elements = host.iter().map(Vec::len).max().unwrap_or(0);
    let length = gpu.run(|r| record(r, &tensors))?.shape().elements();
    let mut out = vec![0.0; length];
    scalar(&host, &mut out);
    let expected = out.clone();
    let gpu = gpu.clone();
    Ok(Work {
        n: elements,
        unit: Unit::Micros,
        amount: 1.0,
        bar: Bar::Ratio(1.0),
        ours: Box::new(move |check| {
            let begun = Instant::now();
            let mut r = gpu.begin_recording()?;
            let value = record(&mut r, &tensors)?;
            let kept = r.keep(value)?;
            r.end_recording()?.wait()?;
            let time = begun.elapsed();
            if check {
                // The loop adds up in f32, one after the other: it is the one that is off.
                let near = |g: f32, e: f32| (g - e).abs() <= 1e-3 * e.abs().max(1.0);
                let got = floats(&kept)?;
                if let Some(i) = got.iter().zip(&expected).position(|(g, e)| !near(*g, *e)) {
                    return Err(format!("[{i}] is {}, the loop says {}", got[i], expected[i]).into());
                }
            }
            Ok(time)
        }),
        anchor: Some((
            "a loop in Rust, one thread",
            Box::new(move |_| {
                let begun = Instant::now();
                scalar(&host, &mut out);
                std::hint::black_box(&mut out);
                Ok(begun.elapsed())
            }),
        )),
    })
}
