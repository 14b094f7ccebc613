//! 16-bit floats: stored as such, computed with as f32, rounded when they are stored.

use std::sync::Arc;

use tidemill::{Accelerator, Conv2d, DType, Epilogue, F16, Matmul, Recording, Result, Tensor, Value};

use super::data::{BENCHED, BENCHED_SIDE, LENGTHS, SPECIAL, uniform};
use super::matmul::operand;
use super::pairs::{broadcast, stretched};
use super::reference::{self, convolution::Convolution, matmul::MatmulReference};
use super::{Array, Bound, Case, Expected, Input, Kind, Record};

/// Adds the cases.
pub(crate) fn cases(out: &mut Vec<Case>) {
    casts(out);
    elementwise(out);
    chains(out);
    products(out);
    convolutions(out);
}

/// A half has 11 bits: the square of half of the last one, relative, is 6e-8.
const ROUNDED: Bound = Bound::Nmse(1e-7);
/// As for f32: nothing is rounded to a half.
const WIDE: Bound = Bound::Nmse(1e-10);

fn halves(values: &[f32]) -> Vec<F16> {
    values.iter().map(|&x| F16::from_f32(x)).collect()
}

/// Numbers that are halves.
fn some(extents: &[usize], seed: u64) -> Input {
    let n = extents.iter().product();
    Input::new(extents, move || halves(&uniform(n, -0.5, 1.0, seed)))
}

/// The nearest half.
fn rounded(x: f32) -> f64 {
    f64::from(F16::from_f32(x).to_f32())
}

/// Every half there is, and floats that are none.
fn casts(out: &mut Vec<Case>) {
    type Step = fn(&Recording, &[Tensor]) -> Result<Value>;
    let case = |what: String, input: Input, to: Kind, record: Step, exact: fn(f32) -> f64| {
        let expected = move |x: &[Array]| Expected::Floats(x[0].floats().iter().map(|x| exact(*x)).collect());
        Case::new("cast_f16", "elementwise", what, vec![input], to, record, expected)
            .flops(to.shape.elements())
    };
    let every = Input::new(&[1 << 16], || (0..=u16::MAX).map(F16::from_bits).collect());
    let (widen, narrow): (Step, Step) = (|r, t| r.cast(&t[0], DType::F32), |r, t| r.cast(&t[0], DType::F16));
    out.push(case("every half to f32".to_owned(), every, Kind::of::<f32>(&[1 << 16]), widen, f64::from));
    let from_f32 = |n: usize| {
        let x = Input::new(&[n], move || {
            let mut data = uniform(n, -70_000.0, 70_000.0, 1);
            // Those around the smallest, too.
            data.iter_mut().step_by(3).for_each(|x| *x *= 1e-9);
            data.iter_mut().zip(SPECIAL).for_each(|(to, from)| *to = from);
            data
        });
        case(format!("[{n}] from f32"), x, Kind::of::<F16>(&[n]), narrow, rounded)
    };
    out.extend(LENGTHS.map(from_f32));
    out.push(from_f32(BENCHED).bench("op_cast_f16"));
    let there_and_back: Step = |r, t| {
        let integers = r.cast(&t[0], DType::I32)?;
        r.cast(integers, DType::F16)
    };
    let numbers = Input::new(&[1001], || halves(&uniform(1001, -100.0, 100.0, 2)));
    let truncated = |x: f32| f64::from(x).trunc() + 0.0;
    let what = "to integers and back".to_owned();
    out.push(case(what, numbers, Kind::of::<F16>(&[1001]), there_and_back, truncated));
}

const PAIRS: [&str; 5] = ["add", "sub", "mul", "div", "max"];

/// Sums, products and quotients in f32 are exact enough that rounding them again gives the nearest half.
fn elementwise(out: &mut Vec<Case>) {
    for op in PAIRS {
        for n in [1, 2, 3, 4, 5, 7, 8, 9, 257, 2049, 100_003] {
            out.push(binary(op, format!("{op} [{n}]"), &[n], &[n]));
        }
    }
    for (lhs, rhs) in
        [([7, 5], [1, 5]), ([6, 8], [1, 8]), ([6, 8], [6, 1]), ([9, 3], [1, 1]), ([1, 12], [5, 12])]
    {
        out.push(binary("mul", format!("mul {lhs:?} with {rhs:?}"), &lhs, &rhs));
    }
    out.push(binary("add", format!("add [{BENCHED}]"), &[BENCHED], &[BENCHED]).bench("op_binary_f16"));
    for n in [1, 6, 1001] {
        out.push(permute(n, 3));
    }
    out.push(permute(BENCHED_SIDE, BENCHED_SIDE).bench("op_permute_f16"));
}

fn binary(op: &'static str, what: String, lhs: &[usize], rhs: &[usize]) -> Case {
    let to = broadcast(&[lhs, rhs]);
    let (n, from) = (to.iter().product(), [stretched(lhs, &to), stretched(rhs, &to)]);
    let record = move |r: &Recording, t: &[Tensor]| match op {
        "add" => r.add(&t[0], &t[1]),
        "sub" => r.sub(&t[0], &t[1]),
        "mul" => r.mul(&t[0], &t[1]),
        "div" => r.div(&t[0], &t[1]),
        _ => r.max(&t[0], &t[1]),
    };
    let expected = move |x: &[Array]| {
        let (a, b) = (x[0].floats(), x[1].floats());
        let exact = |i| reference::binary(op, f64::from(a[from[0](i)]), f64::from(b[from[1](i)]));
        Expected::Floats((0..n).map(|i| rounded(exact(i) as f32)).collect())
    };
    let (inputs, result) = (vec![some(lhs, 1), some(rhs, 2)], Kind::of::<F16>(&to));
    Case::new("binary_f16", "elementwise", what, inputs, result, record, expected).flops(n)
}

fn permute(rows: usize, columns: usize) -> Case {
    let expected = move |x: &[Array]| {
        let (x, from) = (x[0].floats(), |i: usize| i % rows * columns + i / rows);
        Expected::Floats((0..rows * columns).map(|i| f64::from(x[from(i)])).collect())
    };
    let (what, inputs) = (format!("[{rows}, {columns}]"), vec![some(&[rows, columns], 1)]);
    let result = Kind::of::<F16>(&[columns, rows]);
    Case::new("permute_f16", "elementwise", what, inputs, result, |r, t| r.permute(&t[0], [1, 0]), expected)
}

/// Fused, the results in between are rounded as if they had been stored.
fn chains(out: &mut Vec<Case>) {
    let case = |n: usize| {
        let record = |r: &Recording, t: &[Tensor]| {
            let product = r.mul(&t[0], &t[1])?;
            let sum = r.add(product, &t[0])?;
            let active = r.relu(sum)?;
            r.scale(active, 3.0f32)
        };
        let expected = |x: &[Array]| {
            let half = |x: f32| F16::from_f32(x).to_f32();
            let exact = |(a, b): (&f32, &f32)| rounded(half(half(a * b) + a).max(0.0) * 3.0);
            Expected::Floats(x[0].floats().iter().zip(&*x[1].floats()).map(exact).collect())
        };
        let (what, inputs) = (format!("relu(a * b + a) * 3 [{n}]"), vec![some(&[n], 1), some(&[n], 2)]);
        Case::new("chain_f16", "elementwise", what, inputs, Kind::of::<F16>(&[n]), record, expected)
            .flops(4 * n)
    };
    out.extend([5, 1000, 4097].map(case));
    out.push(case(BENCHED).bench("op_chain_f16"));
}

fn products(out: &mut Vec<Case>) {
    for (m, n, k) in [
        (1, 1, 1),
        (4, 4, 4),
        (5, 7, 9),
        (8, 33, 16),
        (33, 64, 20),
        (64, 40, 36),
        (17, 35, 12),
        (40, 1, 64),
        (1, 40, 64),
        (3, 50, 41),
        (50, 3, 41),
        (70, 66, 130),
        (2, 5, 1023),
    ] {
        // Which operands are halves; the result is one if both are.
        for halves in [[true, true], [true, false], [false, true]] {
            out.push(Product16 { halves, ..Product16::new(&[m, k], &[k, n]) }.case());
        }
    }
    for halves in [[true, true], [true, false], [false, true]] {
        // Either way round, in batches, and in parts of a sum.
        for transposed in [[true, false], [false, true], [true, true]] {
            for (lhs, rhs) in [([36, 40], [40, 33]), ([5, 9], [9, 7]), ([3, 300], [300, 10])] {
                let swap = |[rows, columns]: [usize; 2], wanted| match wanted {
                    true => [columns, rows],
                    false => [rows, columns],
                };
                let (lhs, rhs) = (swap(lhs, transposed[0]), swap(rhs, transposed[1]));
                out.push(Product16 { halves, transposed, ..Product16::new(&lhs, &rhs) }.case());
            }
        }
        for (lhs, rhs) in [
            (&[3, 5, 8][..], &[3, 8, 12][..]),
            (&[2, 5, 7], &[2, 7, 9]),
            (&[4, 6], &[3, 6, 10]),
            (&[7, 1040], &[1040, 10]),
            (&[2, 3, 1000], &[2, 1000, 6]),
        ] {
            out.push(Product16 { halves, ..Product16::new(lhs, rhs) }.case());
            out.push(
                Product16 { halves, then: Then16::ColumnBiasResidual, ..Product16::new(lhs, rhs) }.case(),
            );
        }
    }
    out.push(Product16::new(&[256, 256], &[256, 256]).case().bench("op_matmul_f16"));
}

/// What is done after a product: halves, too.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Then16 {
    Bias,
    ColumnBiasResidual,
}

/// A product with operands that are halves or not.
#[derive(Clone, Debug)]
struct Product16 {
    lhs: Vec<usize>,
    rhs: Vec<usize>,
    transposed: [bool; 2],
    halves: [bool; 2],
    then: Then16,
}

impl Product16 {
    fn new(lhs: &[usize], rhs: &[usize]) -> Product16 {
        let (lhs, rhs) = (lhs.to_vec(), rhs.to_vec());
        Product16 { lhs, rhs, transposed: [false; 2], halves: [true; 2], then: Then16::Bias }
    }

    fn case(self) -> Case {
        let Product16 { lhs, rhs, transposed, halves, then } = &self;
        let what = format!("{lhs:?} x {rhs:?} transposed {transposed:?} halves {halves:?} then {then:?}");
        let reference = MatmulReference::new(lhs, rhs, *transposed);
        let factor = |shape: &[usize], half: bool, seed| match half {
            true => some(shape, seed),
            false => operand(shape, false, seed),
        };
        let mut inputs = vec![factor(lhs, halves[0], 1), factor(rhs, halves[1], 2)];
        match then {
            Then16::Bias => inputs.push(some(&[reference.columns], 3)),
            Then16::ColumnBiasResidual => {
                inputs.extend([some(&[reference.rows], 4), some(&reference.shape, 5)]);
            }
        }
        let both = *halves == [true; 2];
        let result = Kind::new(if both { DType::F16 } else { DType::F32 }, &reference.visible);
        let flops = reference.flops();
        let spec = Arc::new(self);
        let on_device = spec.clone();
        let record = move |r: &Recording, t: &[Tensor]| r.matmul_with(&t[0], &t[1], on_device.how(t));
        let expected = move |x: &[Array]| spec.expected(x, &reference);
        Case::new("matmul_f16", "matmul", what, inputs, result, record, expected)
            .bound(if both { ROUNDED } else { WIDE })
            .flops(flops)
    }

    fn how<'a>(&self, t: &'a [Tensor]) -> Matmul<'a> {
        let epilogue = match self.then {
            Then16::Bias => Epilogue::bias(&t[2]),
            Then16::ColumnBiasResidual => Epilogue::column_bias(&t[2]).plus(&t[3]),
        };
        let mut how = Matmul::new().epilogue(epilogue);
        if self.transposed[0] {
            how = how.transpose_lhs();
        }
        if self.transposed[1] {
            how = how.transpose_rhs();
        }
        how
    }

    fn expected(&self, x: &[Array], reference: &MatmulReference) -> Expected {
        let mut expected = reference.of(&x[0].floats(), &x[1].floats());
        let bias = x[2].floats();
        for (at, e) in expected.iter_mut().enumerate() {
            let (row, column) = (at / reference.columns % reference.rows, at % reference.columns);
            *e += f64::from(bias[if self.then == Then16::Bias { column } else { row }]);
        }
        if let Some(residual) = x.get(3) {
            expected.iter_mut().zip(&*residual.floats()).for_each(|(e, r)| *e += f64::from(*r));
        }
        Expected::Floats(expected)
    }
}

fn convolutions(out: &mut Vec<Case>) {
    let spread = |input, weights, stride, padding, groups, dilation| Convolution {
        input,
        weights,
        stride: [stride; 2],
        padding: [padding; 2],
        dilation: [dilation; 2],
        groups,
    };
    let layer = |input, weights, stride, padding, groups| spread(input, weights, stride, padding, groups, 1);
    for layer in [
        layer([1, 3, 6, 8], [5, 3, 1, 1], 1, 0, 1),
        layer([2, 3, 5, 7], [6, 3, 3, 3], 1, 1, 1),
        layer([1, 4, 9, 12], [8, 4, 3, 3], 2, 0, 1),
        layer([1, 8, 6, 6], [8, 1, 3, 3], 1, 1, 8),
        layer([1, 6, 7, 5], [12, 3, 2, 3], 1, 1, 2),
        layer([1, 100, 3, 5], [6, 100, 3, 3], 1, 1, 1),
        spread([1, 3, 13, 18], [6, 3, 3, 3], 1, 2, 1, 2),
        spread([2, 4, 12, 16], [4, 2, 2, 3], 2, 1, 2, 3),
    ] {
        out.push(convolution(layer));
    }
    let timed = layer([1, 16, 32, 32], [16, 16, 3, 3], 1, 1, 1);
    out.push(convolution(timed).bench("op_conv2d_f16"));
}

fn convolution(layer: Convolution) -> Case {
    let Convolution { input, weights, groups, dilation, .. } = layer;
    let what = format!("{input:?} * {weights:?} groups {groups} dilation {dilation:?}");
    let inputs = vec![some(&input, 1), some(&weights, 2), some(&layer.result(), 3)];
    let (result, flops) = (Kind::of::<F16>(&layer.result()), layer.flops());
    let (stride, padding) = (layer.stride, layer.padding);
    let prepare = move |gpu: &Accelerator, t: Vec<Tensor>| -> Result<Record> {
        let weights = gpu.prepare_weights(&t[1], groups)?;
        Ok(Box::new(move |r| {
            let how = Conv2d::new().stride(stride).padding(padding).dilation(dilation);
            r.conv2d_with(&t[0], &weights, how.epilogue(Epilogue::new().plus(&t[2])))
        }))
    };
    let expected = move |x: &[Array]| {
        let mut expected = layer.of(&x[0].floats(), &x[1].floats());
        expected.iter_mut().zip(&*x[2].floats()).for_each(|(e, r)| *e += f64::from(*r));
        Expected::Floats(expected)
    };
    Case::prepared("conv2d_f16", "conv2d", what, inputs, result, prepare, expected)
        .bound(ROUNDED)
        .flops(flops)
}
