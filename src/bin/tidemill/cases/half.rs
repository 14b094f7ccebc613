//! 16-bit floats: stored as such, computed with as f32, rounded when they are stored.

use tidemill::{Accelerator, Conv2d, DType, Epilogue, F16, Matmul, Recording, Result, Shape, Tensor, Value};

use super::data::{LENGTHS, SPECIAL, uniform};
use super::reference::{self, convolution::Convolution, product::Product};
use super::{Bound, Case, Check, compare};

/// Adds the cases.
pub fn cases(out: &mut Vec<Case>) {
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

fn widened(values: &[F16]) -> Vec<f32> {
    values.iter().map(|x| x.to_f32()).collect()
}

/// Numbers that are halves, as floats and as a tensor.
fn upload(gpu: &Accelerator, shape: &[usize], seed: u64) -> Result<(Vec<f32>, Tensor)> {
    let data = halves(&uniform(shape.iter().product(), -0.5, 1.0, seed));
    let tensor = gpu.upload(&data, Shape::new(shape).unwrap_or_default())?;
    Ok((widened(&data), tensor))
}

/// Every half there is, and floats that are none.
fn casts(out: &mut Vec<Case>) {
    out.push(Case::new("cast_f16", "map", "every half to f32".to_owned(), |gpu| {
        let all: Vec<F16> = (0..=u16::MAX).map(F16::from_bits).collect();
        let x = gpu.upload(&all, [all.len()])?;
        let got = gpu.run(|r| r.cast(&x, DType::F32))?.read::<f32>()?;
        let expected: Vec<f64> = all.iter().map(|x| f64::from(x.to_f32())).collect();
        Ok(compare(&expected, &got, Bound::Exact))
    }));
    for n in LENGTHS {
        out.push(Case::new("cast_f16", "map", format!("[{n}] from f32"), move |gpu| {
            let mut data = uniform(n, -70_000.0, 70_000.0, 1);
            // Those around the smallest, too.
            data.iter_mut().step_by(3).for_each(|x| *x *= 1e-9);
            for (to, from) in data.iter_mut().zip(SPECIAL) {
                *to = from;
            }
            let x = gpu.upload(&data, [n])?;
            let got = gpu.run(|r| r.cast(&x, DType::F16))?.read::<F16>()?;
            let expected: Vec<f64> = data.iter().map(|&x| f64::from(F16::from_f32(x).to_f32())).collect();
            Ok(compare(&expected, &widened(&got), Bound::Exact))
        }));
    }
    out.push(Case::new("cast_f16", "map", "to integers and back".to_owned(), |gpu| {
        let data = halves(&uniform(1001, -100.0, 100.0, 2));
        let x = gpu.upload(&data, [1001])?;
        let back = gpu.run(|r| {
            let integers = r.cast(&x, DType::I32)?;
            r.cast(integers, DType::F16)
        })?;
        let expected: Vec<f64> = data.iter().map(|x| f64::from(x.to_f32()).trunc() + 0.0).collect();
        Ok(compare(&expected, &widened(&back.read::<F16>()?), Bound::Exact))
    }));
}

/// An operation on two tensors, broadcast, and its reference.
type Pair = (&'static str, fn(&mut Recording, &Tensor, &Tensor) -> Result<Value>);

const PAIRS: [Pair; 5] = [
    ("add", |r, a, b| r.add(a, b)),
    ("sub", |r, a, b| r.sub(a, b)),
    ("mul", |r, a, b| r.mul(a, b)),
    ("div", |r, a, b| r.div(a, b)),
    ("max", |r, a, b| r.max(a, b)),
];

/// Sums, products and quotients in f32 are exact enough that rounding them again gives the nearest half.
fn elementwise(out: &mut Vec<Case>) {
    for (name, op) in PAIRS {
        for n in [1, 2, 3, 4, 5, 7, 8, 9, 257, 2049, 100_003] {
            out.push(Case::new("binary_f16", "map", format!("{name} [{n}]"), move |gpu| {
                let ((a, ta), (b, tb)) = (upload(gpu, &[n], 1)?, upload(gpu, &[n], 2)?);
                let got = gpu.run(|r| op(r, &ta, &tb))?.read::<F16>()?;
                let exact = |(a, b): (&f32, &f32)| reference::binary(name, f64::from(*a), f64::from(*b));
                let expected: Vec<f64> = a
                    .iter()
                    .zip(&b)
                    .map(exact)
                    .map(|x| f64::from(F16::from_f32(x as f32).to_f32()))
                    .collect();
                Ok(compare(&expected, &widened(&got), Bound::Exact))
            }));
        }
    }
    for (lhs, rhs) in
        [([7, 5], [1, 5]), ([6, 8], [1, 8]), ([6, 8], [6, 1]), ([9, 3], [1, 1]), ([1, 12], [5, 12])]
    {
        out.push(Case::new("binary_f16", "map", format!("mul {lhs:?} with {rhs:?}"), move |gpu| {
            let ((a, ta), (b, tb)) = (upload(gpu, &lhs, 1)?, upload(gpu, &rhs, 2)?);
            let got = gpu.run(|r| r.mul(&ta, &tb))?.read::<F16>()?;
            let (rows, columns) = (lhs[0].max(rhs[0]), lhs[1].max(rhs[1]));
            let at = |data: &[f32], shape: [usize; 2], i: usize| {
                let (row, column) = (i / columns % shape[0], i % columns % shape[1]);
                data[row * shape[1] + column]
            };
            let exact = |i: usize| F16::from_f32(at(&a, lhs, i) * at(&b, rhs, i)).to_f32();
            let expected: Vec<f64> = (0..rows * columns).map(|i| f64::from(exact(i))).collect();
            Ok(compare(&expected, &widened(&got), Bound::Exact))
        }));
    }
    for n in [1, 6, 1001] {
        out.push(Case::new("permute_f16", "map", format!("[{n}, 3]"), move |gpu| {
            let (data, x) = upload(gpu, &[n, 3], 1)?;
            let got = gpu.run(|r| r.permute(&x, &[1, 0]))?.read::<F16>()?;
            let expected: Vec<f64> = (0..3 * n).map(|i| f64::from(data[i % n * 3 + i / n])).collect();
            Ok(compare(&expected, &widened(&got), Bound::Exact))
        }));
    }
}

/// Fused, the results in between are rounded as if they had been stored.
fn chains(out: &mut Vec<Case>) {
    for n in [5, 1000, 4097] {
        out.push(Case::new("chain_f16", "map", format!("relu(a * b + a) * 3 [{n}]"), move |gpu| {
            let ((a, ta), (b, tb)) = (upload(gpu, &[n], 1)?, upload(gpu, &[n], 2)?);
            let got = gpu.run(|r| {
                let product = r.mul(&ta, &tb)?;
                let sum = r.add(product, &ta)?;
                let active = r.relu(sum)?;
                r.scale(active, 3.0f32)
            })?;
            let half = |x: f32| F16::from_f32(x).to_f32();
            let exact = |(a, b): (&f32, &f32)| half(half(half(a * b) + a).max(0.0) * 3.0);
            let expected: Vec<f64> = a.iter().zip(&b).map(exact).map(f64::from).collect();
            Ok(compare(&expected, &widened(&got.read::<F16>()?), Bound::Exact))
        }));
    }
}

/// A result in its own type, as floats.
fn read(result: &Tensor) -> Result<Vec<f32>> {
    if result.dtype() == DType::F16 { Ok(widened(&result.read()?)) } else { result.read() }
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
        Case::new("matmul_f16", "matmul", what, move |gpu| self.run(gpu))
    }

    fn run(&self, gpu: &Accelerator) -> Result<Check> {
        let operand = |shape: &[usize], half: bool, seed| -> Result<(Vec<f32>, Tensor)> {
            if half {
                return upload(gpu, shape, seed);
            }
            let data = uniform(shape.iter().product(), -0.5, 1.0, seed);
            let tensor = gpu.upload(&data, Shape::new(shape).unwrap_or_default())?;
            Ok((data, tensor))
        };
        let reference = Product::new(&self.lhs, &self.rhs, self.transposed);
        let ((a, ta), (b, tb)) =
            (operand(&self.lhs, self.halves[0], 1)?, operand(&self.rhs, self.halves[1], 2)?);
        let (bias, t_bias) = upload(gpu, &[reference.columns], 3)?;
        let (column_bias, t_column_bias) = upload(gpu, &[reference.rows], 4)?;
        let (residual, t_residual) = upload(gpu, &reference.shape, 5)?;
        let epilogue = match self.then {
            Then16::Bias => Epilogue::bias(&t_bias),
            Then16::ColumnBiasResidual => Epilogue::column_bias(&t_column_bias).plus(&t_residual),
        };
        let mut how = Matmul::new().epilogue(epilogue);
        if self.transposed[0] {
            how = how.transpose_lhs();
        }
        if self.transposed[1] {
            how = how.transpose_rhs();
        }
        let c = gpu.run(|r| r.matmul_with(&ta, &tb, how))?;
        let mut expected = reference.of(&a, &b);
        for (at, e) in expected.iter_mut().enumerate() {
            let (row, column) = (at / reference.columns % reference.rows, at % reference.columns);
            *e += match self.then {
                Then16::Bias => f64::from(bias[column]),
                Then16::ColumnBiasResidual => f64::from(column_bias[row]) + f64::from(residual[at]),
            };
        }
        let both = self.halves == [true; 2];
        assert_eq!(c.dtype(), if both { DType::F16 } else { DType::F32 });
        Ok(compare(&expected, &read(&c)?, if both { ROUNDED } else { WIDE }))
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
        let Convolution { input, weights, groups, dilation, .. } = layer;
        let what = format!("{input:?} * {weights:?} groups {groups} dilation {dilation:?}");
        out.push(Case::new("conv2d_f16", "conv2d", what, move |gpu| {
            let ((x, tx), (w, tw)) = (upload(gpu, &layer.input, 1)?, upload(gpu, &layer.weights, 2)?);
            let (residual, t_residual) = upload(gpu, &layer.result(), 3)?;
            let weights = gpu.prepare_weights(&tw, layer.groups)?;
            let how = Conv2d::new().stride(layer.stride).padding(layer.padding).dilation(layer.dilation);
            let y = gpu.run(|r| r.conv2d(&tx, &weights, how.epilogue(Epilogue::new().plus(&t_residual))))?;
            let mut expected = layer.of(&x, &w);
            expected.iter_mut().zip(&residual).for_each(|(e, r)| *e += f64::from(*r));
            Ok(compare(&expected, &read(&y)?, ROUNDED))
        }));
    }
}
