//! What candidates are measured on: for every family and class a shape in the middle of it, with operands that are the same in
//! every run, and a check of the result against f64.

use super::check::{Images, TAPS, is_convolution, is_product};
use super::numbers::numbers;
use crate::Shape;
use crate::error::Result;
use crate::kernels::variant_table::Class;
use crate::ops::conv2d::{Conv2d, ConvWeights, PreparedWeights};
use crate::runtime::accelerator::Accelerator;
use crate::runtime::recording::{Recording, Value};
use crate::runtime::tensor::Tensor;

/// Rows of reductions and softmax.
const ROW: usize = 1024;

/// The operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Work {
    Add { elements: usize },
    SumRows { rows: usize },
    Softmax { rows: usize },
    Product { m: usize, n: usize, k: usize },
    Convolution(Images),
}

/// A piece of work with its operands, on the device and on the host.
#[derive(Debug)]
pub(super) struct Problem {
    work: Work,
    host: Vec<Vec<f32>>,
    tensors: Vec<Tensor>,
    /// Of a convolution: laid out once, for all candidates.
    weights: Option<PreparedWeights>,
}

impl Work {
    /// A shape for the class. Software drivers get less to do, so that the slowest candidate takes tenths of a second.
    fn new(family: &str, class: Class, software: bool) -> Work {
        let large = class == Class::Large;
        match family {
            "map" => Work::Add { elements: if large { 1 << 22 } else { 1 << 14 } },
            "reduce" => Work::SumRows { rows: if large { 2048 } else { 16 } },
            "softmax" => Work::Softmax { rows: if large { 1024 } else { 16 } },
            "conv2d" => {
                let [groups, channels, rows, size] = match (class, software) {
                    (Class::Thin, true) => [32, 1, 1, 32],
                    (Class::Thin, false) => [256, 1, 1, 56],
                    (Class::Large, true) => [1, 32, 64, 32],
                    (Class::Large, false) => [1, 128, 128, 56],
                    (_, true) => [1, 16, 32, 14],
                    (_, false) => [1, 64, 64, 14],
                };
                Work::Convolution(Images { groups, channels, rows, size })
            }
            _ => {
                let [m, n, k] = match (class, software) {
                    (Class::Small, _) => [256, 256, 256],
                    (Class::Large, true) => [512, 512, 256],
                    (Class::Large, false) => [2048, 2048, 1024],
                    (Class::Thin, true) => [32, 1024, 1024],
                    (Class::Thin, false) => [64, 4096, 2048],
                    (Class::Row, true) => [1, 1024, 1024],
                    (Class::Row, false) => [1, 4096, 4096],
                    (Class::Column, true) => [1024, 1, 1024],
                    (Class::Column, false) => [4096, 1, 4096],
                };
                Work::Product { m, n, k }
            }
        }
    }

    fn operands(self) -> Vec<Shape> {
        match self {
            Work::Add { elements } => vec![Shape::from([elements]); 2],
            Work::SumRows { rows } | Work::Softmax { rows } => vec![Shape::from([rows, ROW])],
            Work::Product { m, n, k } => vec![Shape::from([m, k]), Shape::from([k, n])],
            Work::Convolution(Images { groups, channels, rows, size }) => {
                let images = Shape::from([1, groups * channels, size, size]);
                vec![images, Shape::from([groups * rows, channels, TAPS, TAPS])]
            }
        }
    }
}

impl Problem {
    pub(super) fn new(gpu: &Accelerator, family: &str, class: Class) -> Result<Problem> {
        let work = Work::new(family, class, gpu.device().workarounds.runs_on_host_cores);
        let (mut host, mut tensors) = (Vec::new(), Vec::new());
        for (i, shape) in work.operands().into_iter().enumerate() {
            let data = numbers(shape.elements(), i as u64 + 1);
            tensors.push(gpu.upload(&data, shape)?);
            host.push(data);
        }
        let weights = match work {
            Work::Convolution(images) => Some(gpu.prepare_weights(&tensors[1], images.groups)?),
            _ => None,
        };
        Ok(Problem { work, host, tensors, weights })
    }

    /// What it is called in tables.
    pub(super) fn name(&self) -> String {
        match self.work {
            Work::Add { elements } => format!("add {elements}"),
            Work::SumRows { rows } => format!("sum {rows}x{ROW}, rows"),
            Work::Softmax { rows } => format!("softmax {rows}x{ROW}, rows"),
            Work::Product { m, n, k } => format!("matmul {m}x{n}x{k}"),
            Work::Convolution(Images { groups: 1, channels, rows, size }) => {
                format!("conv2d {channels}x{size}x{size} to {rows}, {TAPS}x{TAPS}")
            }
            Work::Convolution(Images { groups, size, .. }) => {
                format!("conv2d {groups}x{size}x{size} depthwise, {TAPS}x{TAPS}")
            }
        }
    }

    pub(super) fn record(&self, r: &mut Recording) -> Result<Value> {
        let operand = &self.tensors;
        match self.work {
            Work::Add { .. } => r.add(&operand[0], &operand[1]),
            Work::SumRows { .. } => r.sum(&operand[0], -1),
            Work::Softmax { .. } => r.softmax(&operand[0], -1),
            Work::Product { .. } => r.matmul(&operand[0], &operand[1]),
            Work::Convolution(images) => {
                let plain = ConvWeights::from(&operand[1]);
                let weights = self.weights.as_ref().map_or(plain, ConvWeights::from);
                let how = Conv2d::new().padding([TAPS / 2; 2]).groups(images.groups);
                r.conv2d(&operand[0], weights, how)
            }
        }
    }

    /// Whether a result is right, to what rounding allows.
    pub(super) fn is_right(&self, result: &[f32]) -> bool {
        let rows = |data: &'_ [f32]| data.chunks_exact(ROW).map(<[f32]>::to_vec).collect::<Vec<_>>();
        match self.work {
            Work::Add { elements } => {
                let sums = self.host[0].iter().zip(&self.host[1]).map(|(a, b)| a + b);
                result.len() == elements && sums.zip(result).all(|(sum, got)| sum == *got)
            }
            Work::SumRows { rows: count } => {
                let near = |row: &Vec<f32>, got: f32| {
                    let sum: f64 = row.iter().map(|&x| f64::from(x)).sum();
                    (sum - f64::from(got)).abs() <= 1e-6 * ROW as f64
                };
                let rows = rows(&self.host[0]);
                result.len() == count && rows.iter().zip(result).all(|(row, got)| near(row, *got))
            }
            Work::Softmax { rows: count } => {
                let near = |row: &Vec<f32>, got: &Vec<f32>| {
                    let powers: Vec<f64> = row.iter().map(|&x| f64::from(x).exp()).collect();
                    let sum: f64 = powers.iter().sum();
                    powers.iter().zip(got).all(|(power, got)| {
                        let wanted = power / sum;
                        (wanted - f64::from(*got)).abs() <= 1e-5 * wanted
                    })
                };
                let (rows, results) = (rows(&self.host[0]), rows(result));
                result.len() == count * ROW && rows.iter().zip(&results).all(|(row, got)| near(row, got))
            }
            Work::Product { m, n, k } => is_product([m, n, k], &self.host[0], &self.host[1], result),
            Work::Convolution(images) => is_convolution(images, &self.host[0], &self.host[1], result),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_shape_is_of_its_class() {
        let both = ["map", "reduce", "softmax", "matmul", "conv2d"].map(|f| [(f, true), (f, false)]);
        for (family, software) in both.into_iter().flatten() {
            for &class in Class::all_of(family) {
                let found = match Work::new(family, class, software) {
                    Work::Add { elements } => Class::of_elements(elements as u64),
                    Work::SumRows { rows } | Work::Softmax { rows } => {
                        Class::of_elements((rows * ROW) as u64)
                    }
                    Work::Product { m, n, .. } => Class::of_product(m as u32, n as u32),
                    Work::Convolution(Images { groups, rows, size, .. }) => {
                        Class::of_convolution(rows as u32, (groups * rows * size * size) as u64)
                    }
                };
                assert_eq!(found, class, "{family}");
            }
        }
    }
}
