//! Problems on which candidates are measured: for every family and class a shape in the middle of it, with operands
//! that are the same in every run, and a check of the result against f64.

use super::check::{Images, TAPS, is_attention, is_convolution, is_matmul};
use super::numbers::numbers;
use crate::Shape;
use crate::error::{Error, Result};
use crate::kernels::catalog::AnyFamily;
use crate::kernels::variant::Class;
use crate::ops::attention::Attention;
use crate::ops::conv2d::{Conv2d, ConvWeights, PreparedWeights};
use crate::runtime::accelerator::Accelerator;
use crate::runtime::recording::{Recording, Value};
use crate::runtime::tensor::Tensor;

/// What is done with the operands that a family declares.
#[derive(Debug)]
struct Task {
    family: &'static str,
    /// Its name in tables.
    name: fn(&[Shape]) -> String,
    /// Data that is made once, for all candidates.
    prepare: fn(&Accelerator, &[Tensor]) -> Result<Option<PreparedWeights>>,
    record: fn(&Problem, &Recording) -> Result<Value>,
    /// Whether a result is right, to what rounding allows.
    is_right: fn(&Problem, &[f32]) -> bool,
}

/// One for each family.
static TASKS: &[Task] = &[
    Task {
        family: "elementwise",
        name: |shapes| format!("add {}", shapes[0].elements()),
        prepare: |_, _| Ok(None),
        record: |problem, r| r.add(&problem.tensors[0], &problem.tensors[1]),
        is_right: |problem, result| {
            let sums = problem.host[0].iter().zip(&problem.host[1]).map(|(a, b)| a + b);
            result.len() == problem.host[0].len() && sums.zip(result).all(|(sum, got)| sum == *got)
        },
    },
    Task {
        family: "reduce",
        name: |shapes| format!("sum {}x{}, rows", shapes[0].dims()[0], shapes[0].dims()[1]),
        prepare: |_, _| Ok(None),
        record: |problem, r| r.sum(&problem.tensors[0], -1),
        is_right: |problem, result| {
            let columns = problem.shapes[0].dims()[1];
            let near = |row: &[f32], got: f32| {
                let sum: f64 = row.iter().map(|&x| f64::from(x)).sum();
                (sum - f64::from(got)).abs() <= 1e-6 * columns as f64
            };
            let rows = problem.host[0].chunks_exact(columns);
            result.len() == rows.len() && rows.zip(result).all(|(row, got)| near(row, *got))
        },
    },
    Task {
        family: "softmax",
        name: |shapes| format!("softmax {}x{}, rows", shapes[0].dims()[0], shapes[0].dims()[1]),
        prepare: |_, _| Ok(None),
        record: |problem, r| r.softmax(&problem.tensors[0], -1),
        is_right: |problem, result| {
            let near = |row: &[f32], got: &[f32]| {
                let powers: Vec<f64> = row.iter().map(|&x| f64::from(x).exp()).collect();
                let sum: f64 = powers.iter().sum();
                powers.iter().zip(got).all(|(power, got)| {
                    let wanted = power / sum;
                    (wanted - f64::from(*got)).abs() <= 1e-5 * wanted
                })
            };
            problem.rows_are(result, near)
        },
    },
    Task {
        family: "norm",
        name: |shapes| format!("layer norm {}x{}, rows", shapes[0].dims()[0], shapes[0].dims()[1]),
        prepare: |_, _| Ok(None),
        record: |problem, r| {
            let [x, gamma, beta] = [0, 1, 2].map(|k| &problem.tensors[k]);
            r.layer_norm(x, gamma, beta, 1e-5)
        },
        is_right: |problem, result| {
            let near = |row: &[f32], got: &[f32]| {
                let mean_of = |f: &dyn Fn(f64) -> f64| {
                    row.iter().map(|&x| f(f64::from(x))).sum::<f64>() / row.len() as f64
                };
                let mean = mean_of(&|x| x);
                let scale = 1.0 / (mean_of(&|x| (x - mean).powi(2)) + 1e-5).sqrt();
                let weights = problem.host[1].iter().zip(&problem.host[2]);
                row.iter().zip(weights).zip(got).all(|((&x, (&gamma, &beta)), &got)| {
                    let wanted = (f64::from(x) - mean) * scale * f64::from(gamma) + f64::from(beta);
                    (wanted - f64::from(got)).abs() <= 1e-5 * wanted.abs().max(1.0)
                })
            };
            problem.rows_are(result, near)
        },
    },
    Task {
        family: "matmul",
        name: |shapes| {
            let [m, n, k] = matmul(shapes);
            format!("matmul {m}x{n}x{k}")
        },
        prepare: |_, _| Ok(None),
        record: |problem, r| r.matmul(&problem.tensors[0], &problem.tensors[1]),
        is_right: |problem, result| {
            is_matmul(matmul(&problem.shapes), &problem.host[0], &problem.host[1], result)
        },
    },
    Task {
        family: "conv2d",
        name: |shapes| {
            let Images { groups, channels, rows, size } = images(shapes);
            match groups {
                1 => format!("conv2d {channels}x{size}x{size} to {rows}, {TAPS}x{TAPS}"),
                _ => format!("conv2d {groups}x{size}x{size} depthwise, {TAPS}x{TAPS}"),
            }
        },
        prepare: |gpu, tensors| {
            let groups = images(&[tensors[0].shape(), tensors[1].shape()]).groups;
            gpu.prepare_weights(&tensors[1], groups).map(Some)
        },
        record: |problem, r| {
            let plain = ConvWeights::from(&problem.tensors[1]);
            let weights = problem.weights.as_ref().map_or(plain, ConvWeights::from);
            let how = Conv2d::new().padding([TAPS / 2; 2]).groups(images(&problem.shapes).groups);
            r.conv2d_with(&problem.tensors[0], weights, how)
        },
        is_right: |problem, result| {
            is_convolution(images(&problem.shapes), &problem.host[0], &problem.host[1], result)
        },
    },
    Task {
        family: "attention",
        name: |shapes| {
            let [heads, tokens, depth] = attended(shapes);
            format!("attention {heads}x{tokens}x{depth}")
        },
        prepare: |_, _| Ok(None),
        record: |problem, r| {
            let [q, k, v] = [0, 1, 2].map(|i| &problem.tensors[i]);
            r.attention(q, k, v, Attention::new())
        },
        is_right: |problem, result| {
            let [q, k, v] = [0, 1, 2].map(|i| problem.host[i].as_slice());
            is_attention(attended(&problem.shapes), [q, k, v], result)
        },
    },
];

/// A piece of work with its operands, on the device and on the host.
#[derive(Debug)]
pub(super) struct Problem {
    task: &'static Task,
    shapes: Vec<Shape>,
    host: Vec<Vec<f32>>,
    tensors: Vec<Tensor>,
    weights: Option<PreparedWeights>,
}

/// Rows, columns and inner extent of a matmul.
fn matmul(shapes: &[Shape]) -> [usize; 3] {
    [shapes[0].dims()[0], shapes[1].dims()[1], shapes[0].dims()[1]]
}

/// Heads, tokens and depth of attention.
fn attended(shapes: &[Shape]) -> [usize; 3] {
    let dims = shapes[0].dims();
    [dims[0], dims[1], dims[2]]
}

/// The images of a convolution.
fn images(shapes: &[Shape]) -> Images {
    let (input, kernels) = (shapes[0].dims(), shapes[1].dims());
    let groups = input[1] / kernels[1];
    Images { groups, channels: kernels[1], rows: kernels[0] / groups, size: input[2] }
}

impl Problem {
    pub(super) fn new(gpu: &Accelerator, family: &dyn AnyFamily, class: Class) -> Result<Problem> {
        let task = TASKS.iter().find(|task| task.family == family.name());
        let task = task.ok_or_else(|| Error::NoSuchVariant {
            wanted: family.name().to_owned(),
            known: TASKS.iter().map(|task| task.family.to_owned()).collect(),
        })?;
        let shapes = family.problem(class, gpu.device().workarounds.runs_on_host_cores);
        let (mut host, mut tensors) = (Vec::new(), Vec::new());
        for (i, shape) in shapes.iter().enumerate() {
            let data = numbers(shape.elements(), i as u64 + 1);
            tensors.push(gpu.upload(&data, *shape)?);
            host.push(data);
        }
        let weights = (task.prepare)(gpu, &tensors)?;
        Ok(Problem { task, shapes, host, tensors, weights })
    }

    pub(super) fn name(&self) -> String {
        (self.task.name)(&self.shapes)
    }

    pub(super) fn record(&self, r: &Recording) -> Result<Value> {
        (self.task.record)(self, r)
    }

    pub(super) fn is_right(&self, result: &[f32]) -> bool {
        (self.task.is_right)(self, result)
    }

    /// Whether each row of the result is near what belongs to that row of the first operand.
    fn rows_are(&self, result: &[f32], near: impl Fn(&[f32], &[f32]) -> bool) -> bool {
        let columns = self.shapes[0].dims()[1];
        let mut rows = self.host[0].chunks_exact(columns).zip(result.chunks_exact(columns));
        result.len() == self.host[0].len() && rows.all(|(row, got)| near(row, got))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::families;

    #[test]
    fn every_family_has_a_task_and_every_shape_is_of_its_class() {
        for family in families::ALL {
            let tasks = TASKS.iter().filter(|task| task.family == family.name()).count();
            assert_eq!(tasks, 1, "{}", family.name());
            for (&class, software) in
                family.classes().iter().flat_map(|class| [(class, true), (class, false)])
            {
                let shapes = family.problem(class, software);
                let found = match family.name() {
                    "matmul" => {
                        let [m, n, _] = matmul(&shapes);
                        Class::of_matmul(m as u32, n as u32)
                    }
                    "conv2d" => {
                        let Images { groups, rows, size, .. } = images(&shapes);
                        Class::of_convolution(rows as u32, (groups * rows * size * size) as u64)
                    }
                    _ => Class::of_elements(shapes[0].elements() as u64),
                };
                assert_eq!(found, class, "{}", family.name());
            }
        }
        assert_eq!(TASKS.len(), families::ALL.len());
    }
}
