//! A recording and its reference, grown together. Elements are small whole numbers wherever that can be: every order of
//! adding up gives the same then, and results are compared to the bit.

use std::ops::Range;
use std::rc::Rc;

use tidemill::{
    Accelerator, Axes, Conv2d, Coordinates, DType, F16, Interpolation, Matmul, Operand, Pool, Recording,
    Result, Shape, Tensor, Value,
};
use tidemill_cases::reference;
use tidemill_cases::reference::convolution::Convolution;
use tidemill_cases::reference::matmul::MatmulReference;
use tidemill_cases::reference::reduce::{self, View};

use crate::random::Random;

/// What elements are cut to before they are multiplied.
pub const BOUND: f32 = 4.0;

/// A value of the recording, and what is in it.
#[derive(Clone)]
pub struct Known {
    pub value: Value,
    pub dims: Vec<usize>,
    pub data: Rc<Vec<f32>>,
    pub half: bool,
    /// How far off it may be, for one; exact values may be operands again.
    pub tolerance: f64,
    /// Its line of the story.
    pub number: usize,
}

impl Known {
    pub fn elements(&self) -> usize {
        self.data.len()
    }

    pub fn rank(&self) -> usize {
        self.dims.len()
    }

    pub fn exact(&self) -> bool {
        self.tolerance == 0.0
    }
}

pub type Made = Result<Known>;

/// A recording and its reference.
pub struct Twin<'a> {
    pub gpu: &'a Accelerator,
    pub r: Recording,
    pub random: Random,
    /// What was recorded, line by line.
    pub story: Vec<String>,
    pub kept: Vec<(Tensor, Known)>,
}

/// Strides of a dense tensor.
fn dense(dims: &[usize]) -> Vec<usize> {
    let mut strides = vec![1; dims.len()];
    for d in (1..dims.len()).rev() {
        strides[d - 1] = strides[d] * dims[d];
    }
    strides
}

fn shape(dims: &[usize]) -> Shape {
    Shape::new(dims).expect("no more dimensions than tensors have")
}

/// The elements that strides and an offset select.
fn strided(data: &[f32], dims: &[usize], strides: &[usize], offset: usize) -> Vec<f32> {
    let mut out = Vec::with_capacity(dims.iter().product());
    let mut at = vec![0; dims.len()];
    for _ in 0..dims.iter().product() {
        out.push(data[offset + at.iter().zip(strides).map(|(i, s)| i * s).sum::<usize>()]);
        for d in (0..dims.len()).rev() {
            at[d] += 1;
            if at[d] < dims[d] {
                break;
            }
            at[d] = 0;
        }
    }
    out
}

/// Strides that stretch a shape to a larger one.
fn stretched(from: &[usize], to: &[usize]) -> Vec<usize> {
    let (own, missing) = (dense(from), to.len() - from.len());
    (0..to.len()).map(|d| if d < missing || from[d - missing] == 1 { 0 } else { own[d - missing] }).collect()
}

/// A normalised row: whether the mean is subtracted, epsilon, and each element's factor and what is added to it.
fn normalised(row: &[f32], (centred, epsilon): (bool, f32), weights: impl Fn(usize) -> [f32; 2]) -> Vec<f32> {
    let mean_of =
        |f: &dyn Fn(f64) -> f64| row.iter().map(|x| f(f64::from(*x))).sum::<f64>() / row.len() as f64;
    let mean = if centred { mean_of(&|x| x) } else { 0.0 };
    let scale = 1.0 / (mean_of(&|x| (x - mean).powi(2)) + f64::from(epsilon)).sqrt();
    let weighed = |(k, x): (usize, &f32)| {
        let [gamma, beta] = weights(k).map(f64::from);
        ((f64::from(*x) - mean) * scale * gamma + beta) as f32
    };
    row.iter().enumerate().map(weighed).collect()
}

impl<'a> Twin<'a> {
    pub fn new(gpu: &'a Accelerator, seed: u64) -> Result<Twin<'a>> {
        let r = gpu.begin_recording()?;
        Ok(Twin { gpu, r, random: Random(seed), story: Vec::new(), kept: Vec::new() })
    }

    pub fn known(&mut self, what: String, value: Value, dims: Vec<usize>, data: Vec<f32>) -> Known {
        assert_eq!(dims.iter().product::<usize>(), data.len(), "{what}");
        let number = self.story.len();
        self.story.push(format!("%{number} = {what}: {dims:?}"));
        let half = self.r.dtype(value).is_ok_and(|dtype| dtype == DType::F16);
        Known { value, dims, data: Rc::new(data), half, tolerance: 0.0, number }
    }

    /// A tensor of small whole numbers.
    pub fn tensor(&mut self, dims: &[usize]) -> Made {
        self.tensor_of(dims, false)
    }

    pub fn tensor_of(&mut self, dims: &[usize], half: bool) -> Made {
        let count = dims.iter().product();
        let data: Vec<f32> = (0..count).map(|_| self.random.below(9) as f32 - BOUND).collect();
        let tensor = if half {
            self.gpu.upload(&data.iter().map(|x| F16::from_f32(*x)).collect::<Vec<_>>(), shape(dims))?
        } else {
            self.gpu.upload(&data, shape(dims))?
        };
        let value = self.r.reshape(&tensor, shape(dims))?;
        let what = if half { "halves" } else { "tensor" };
        Ok(self.known(what.to_owned(), value, dims.to_vec(), data))
    }

    /// The numbers from 0 on.
    pub fn count(&mut self, numbers: usize) -> Made {
        let value = self.r.iota::<f32>([numbers])?;
        Ok(self.known("iota".to_owned(), value, vec![numbers], (0..numbers).map(|n| n as f32).collect()))
    }

    pub fn reshape(&mut self, x: &Known, dims: &[usize]) -> Made {
        let value = self.r.reshape(x.value, shape(dims))?;
        let made =
            self.known(format!("reshape(%{})", x.number), value, dims.to_vec(), x.data.as_ref().clone());
        Ok(Known { tolerance: x.tolerance, ..made })
    }

    fn view(
        &mut self,
        what: String,
        x: &Known,
        value: Value,
        dims: Vec<usize>,
        at: (Vec<usize>, usize),
    ) -> Known {
        let data = strided(&x.data, &dims, &at.0, at.1);
        let made = self.known(what, value, dims, data);
        Known { tolerance: x.tolerance, ..made }
    }

    pub fn permute(&mut self, x: &Known, order: &[usize]) -> Made {
        let value = self.r.permute(x.value, order)?;
        let own = dense(&x.dims);
        let (dims, strides) =
            (order.iter().map(|d| x.dims[*d]).collect(), order.iter().map(|d| own[*d]).collect());
        Ok(self.view(format!("permute(%{}, {order:?})", x.number), x, value, dims, (strides, 0)))
    }

    pub fn slice(&mut self, x: &Known, ranges: &[Range<usize>]) -> Made {
        let value = self.r.slice(x.value, ranges)?;
        let own = dense(&x.dims);
        let offset = ranges.iter().zip(&own).map(|(range, stride)| range.start * stride).sum();
        let dims = ranges.iter().map(|range| range.len()).collect();
        Ok(self.view(format!("slice(%{}, {ranges:?})", x.number), x, value, dims, (own, offset)))
    }

    pub fn broadcast(&mut self, x: &Known, dims: &[usize]) -> Made {
        let value = self.r.broadcast_to(x.value, shape(dims))?;
        let strides = stretched(&x.dims, dims);
        Ok(self.view(format!("broadcast(%{})", x.number), x, value, dims.to_vec(), (strides, 0)))
    }

    /// An elementwise operation of one operand.
    pub fn unary(&mut self, op: &str, x: &Known) -> Made {
        let (r, v) = (&mut self.r, x.value);
        let value = match op {
            "neg" => r.neg(v)?,
            "abs" => r.abs(v)?,
            "relu" => r.relu(v)?,
            "double" => r.scale(v, 2.0f32)?,
            "clip" => r.clip(v, -BOUND, BOUND)?,
            "sigmoid" => r.sigmoid(v)?,
            "atan" => r.atan(v)?,
            "to_half" => r.cast(v, DType::F16)?,
            "to_float" => r.cast(v, DType::F32)?,
            "to_int" => r.cast(v, DType::I32)?,
            "copy" => r.copy(v)?,
            _ => panic!("no operation {op}"),
        };
        let f = |x: &f32| match op {
            "double" => 2.0 * x,
            "to_half" | "to_float" | "to_int" | "copy" => *x,
            _ => reference::unary(op, f64::from(*x), [-BOUND, BOUND].map(f64::from)) as f32,
        };
        let data = x.data.iter().map(f).collect();
        let made = self.known(format!("{op}(%{})", x.number), value, x.dims.clone(), data);
        let tolerance = if matches!(op, "sigmoid" | "atan") { 1e-5 } else { x.tolerance };
        Ok(Known { tolerance, ..made })
    }

    /// An elementwise operation of two operands, stretched to one shape.
    pub fn binary(&mut self, op: &str, a: &Known, b: &Known) -> Made {
        let (r, x, y) = (&mut self.r, a.value, b.value);
        let value = match op {
            "add" => r.add(x, y)?,
            "sub" => r.sub(x, y)?,
            "max" => r.max(x, y)?,
            _ => panic!("no operation {op}"),
        };
        let rank = a.rank().max(b.rank());
        let extent = |x: &Known, d: usize| (x.rank() + d).checked_sub(rank).map_or(1, |d| x.dims[d]);
        let dims: Vec<usize> =
            (0..rank).map(|d| if extent(a, d) == 1 { extent(b, d) } else { extent(a, d) }).collect();
        let [x, y] = [a, b].map(|x| strided(&x.data, &dims, &stretched(&x.dims, &dims), 0));
        let f = |(x, y): (&f32, &f32)| reference::binary(op, f64::from(*x), f64::from(*y)) as f32;
        let data = x.iter().zip(&y).map(f).collect();
        Ok(self.known(format!("{op}(%{}, %{})", a.number, b.number), value, dims, data))
    }

    pub fn matmul(&mut self, a: &Known, b: &Known, transposed: [bool; 2]) -> Made {
        let mut how = Matmul::new();
        how = if transposed[0] { how.transpose_lhs() } else { how };
        how = if transposed[1] { how.transpose_rhs() } else { how };
        let value = self.r.matmul_with(a.value, b.value, how)?;
        let matmul = MatmulReference::new(&a.dims, &b.dims, transposed);
        let data = matmul.of(&a.data, &b.data).into_iter().map(|x| x as f32).collect();
        let what = format!("matmul(%{}, %{}, transposed {transposed:?})", a.number, b.number);
        Ok(self.known(what, value, matmul.visible.clone(), data))
    }

    pub fn conv2d(&mut self, x: &Known, w: &Known, how: &Convolution) -> Made {
        let with =
            Conv2d::new().stride(how.stride).padding(how.padding).dilation(how.dilation).groups(how.groups);
        let value = self.r.conv2d_with(x.value, w.value, with)?;
        let data = how.of(&x.data, &w.data).into_iter().map(|x| x as f32).collect();
        let Convolution { stride, padding, dilation, groups, .. } = how;
        let what = format!(
            "conv2d(%{}, %{}, stride {stride:?}, padding {padding:?}, dilation {dilation:?}, groups {groups})",
            x.number, w.number
        );
        Ok(self.known(what, value, how.result().to_vec(), data))
    }

    /// A reduction along an axis.
    pub fn reduce(&mut self, op: &str, x: &Known, axis: usize) -> Made {
        let (r, v, axes) = (&mut self.r, x.value, Axes::at(axis as isize));
        let value = match op {
            "sum" => r.sum(v, axes)?,
            "amax" => r.amax(v, axes)?,
            "mean" => r.mean(v, axes)?,
            "variance" => r.variance(v, axes)?,
            _ => panic!("no operation {op}"),
        };
        let view = View::new(&x.dims, Some(axis));
        let line = |i: usize| reduce::number(op, view.line(i).map(|at| f64::from(x.data[at]))).value as f32;
        let data = (0..view.lines()).map(line).collect();
        let mut dims = x.dims.clone();
        dims.remove(axis);
        let made = self.known(format!("{op}(%{}, {axis})", x.number), value, dims, data);
        let tolerance = if matches!(op, "mean" | "variance") { 1e-4 } else { 0.0 };
        Ok(Known { tolerance, ..made })
    }

    /// The largest of each two neighbours.
    pub fn pairs(&mut self, x: &Known) -> Made {
        let value = self.r.max_pool(x.value, Pool::new(&[2]))?;
        let mut dims = x.dims.clone();
        let width = dims.last().copied().unwrap_or(1);
        if let Some(last) = dims.last_mut() {
            *last /= 2;
        }
        let larger = |row: &[f32]| row.chunks_exact(2).map(|pair| pair[0].max(pair[1])).collect::<Vec<_>>();
        let data = x.data.chunks(width.max(1)).flat_map(larger).collect();
        Ok(self.known(format!("pairs(%{})", x.number), value, dims, data))
    }

    /// Each element twice.
    pub fn doubled(&mut self, x: &Known) -> Made {
        let mut dims = x.dims.clone();
        let width = 2 * dims.last().copied().unwrap_or(1);
        if let Some(last) = dims.last_mut() {
            *last = width;
        }
        let value = self.r.resize(x.value, &[width], Interpolation::Nearest, Coordinates::HalfPixel)?;
        let data = x.data.iter().flat_map(|x| [*x, *x]).collect();
        Ok(self.known(format!("doubled(%{})", x.number), value, dims, data))
    }

    /// The dot product of two vectors.
    pub fn dot(&mut self, a: &Known, b: &Known) -> Made {
        let value = self.r.dot(a.value, b.value)?;
        let sum: f64 = a.data.iter().zip(b.data.iter()).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum();
        Ok(self.known(format!("dot(%{}, %{})", a.number, b.number), value, Vec::new(), vec![sum as f32]))
    }

    pub fn softmax(&mut self, x: &Known, axis: usize, logarithm: bool) -> Made {
        let value = if logarithm {
            self.r.log_softmax(x.value, axis as isize)?
        } else {
            self.r.softmax(x.value, axis as isize)?
        };
        let view = View::new(&x.dims, Some(axis));
        let mut data = vec![0.0; x.elements()];
        for i in 0..view.lines() {
            let line = view.line(i).map(|at| f64::from(x.data[at]));
            let shares = reference::softmax::softmax(logarithm, line);
            view.line(i).zip(shares).for_each(|(at, (share, _))| data[at] = share as f32);
        }
        let what = format!("softmax(%{}, {axis}, logarithm {logarithm})", x.number);
        let made = self.known(what, value, x.dims.clone(), data);
        Ok(Known { tolerance: 1e-5, ..made })
    }

    /// Layer norm of the last dimension, or without the mean; of a sum with another tensor, if it adds.
    pub fn norm_of_rows(&mut self, x: &Known, centred: bool, adds: bool) -> Made {
        let extent = x.dims[x.rank() - 1];
        let residual = self.tensor(&x.dims.clone())?;
        let (gamma, beta) = (self.tensor(&[extent])?, self.tensor(&[extent])?);
        let [sum, value] = match (centred, adds) {
            (true, true) => self.r.add_layer_norm(x.value, residual.value, gamma.value, beta.value, 0.5)?,
            (true, false) => [x.value, self.r.layer_norm(x.value, gamma.value, beta.value, 0.5)?],
            (false, true) => self.r.add_rms_norm(x.value, residual.value, gamma.value, 0.5)?,
            (false, false) => [x.value, self.r.rms_norm(x.value, gamma.value, 0.5)?],
        };
        let added = |(a, b): (&f32, &f32)| if adds { a + b } else { *a };
        let sums: Vec<f32> = x.data.iter().zip(residual.data.iter()).map(added).collect();
        let zero = vec![0.0; extent];
        let beta = if centred { &beta.data[..] } else { &zero };
        let data =
            sums.chunks(extent).flat_map(|row| normalised(row, (centred, 0.5), |k| [gamma.data[k], beta[k]]));
        let data: Vec<f32> = data.collect();
        let what = format!("norm(%{}, centred {centred}, adds {adds})", x.number);
        if adds {
            let sum = self.known("the sum".to_owned(), sum, x.dims.clone(), sums);
            self.keep(&sum)?;
        }
        let made = self.known(what, value, x.dims.clone(), data);
        Ok(Known { tolerance: 1e-5, ..made })
    }

    /// RMS norm of the last dimension.
    pub fn rms_norm(&mut self, x: &Known, gamma: &Known, epsilon: f32) -> Made {
        let value = self.r.rms_norm(x.value, gamma.value, epsilon)?;
        let data = x.data.chunks(gamma.elements());
        let data = data.flat_map(|row| normalised(row, (false, epsilon), |k| [gamma.data[k], 0.0])).collect();
        let what = format!("rms_norm(%{}, %{}, {epsilon})", x.number, gamma.number);
        let made = self.known(what, value, x.dims.clone(), data);
        Ok(Known { tolerance: 1e-5, ..made })
    }

    /// Group norm of `[images, channels, pixels]`.
    pub fn group_norm(&mut self, x: &Known, groups: usize) -> Made {
        let (channels, pixels) = (x.dims[1], x.dims[2]);
        let (gamma, beta) = (self.tensor(&[channels])?, self.tensor(&[channels])?);
        let value = self.r.group_norm(x.value, groups, gamma.value, beta.value, 0.5)?;
        let rows = x.data.chunks(channels / groups * pixels).enumerate();
        let data = rows.flat_map(|(i, row)| {
            let first = i % groups * (channels / groups);
            normalised(row, (true, 0.5), |k| [&gamma, &beta].map(|weights| weights.data[first + k / pixels]))
        });
        let data: Vec<f32> = data.collect();
        let made = self.known(format!("group_norm(%{}, {groups})", x.number), value, x.dims.clone(), data);
        Ok(Known { tolerance: 1e-5, ..made })
    }

    pub fn concat(&mut self, parts: &[Known], axis: usize) -> Made {
        let operands: Vec<Operand<'_>> = parts.iter().map(|part| part.value.into()).collect();
        let value = self.r.concat(&operands, axis as isize)?;
        let mut dims = parts[0].dims.clone();
        dims[axis] = parts.iter().map(|part| part.dims[axis]).sum();
        let mut data = Vec::new();
        let rows = |part: &Known| part.dims[axis..].iter().product::<usize>();
        for outer in 0..dims[..axis].iter().product() {
            for part in parts {
                data.extend_from_slice(&part.data[outer * rows(part)..][..rows(part)]);
            }
        }
        let numbers: Vec<usize> = parts.iter().map(|part| part.number).collect();
        Ok(self.known(format!("concat(%{numbers:?}, {axis})"), value, dims, data))
    }

    pub fn pad(&mut self, x: &Known, pads: &[(usize, usize)]) -> Made {
        let value = self.r.pad(x.value, pads, 3.0f32)?;
        let dims: Vec<usize> =
            x.dims.iter().zip(pads).map(|(n, (before, after))| n + before + after).collect();
        let strides = dense(&dims);
        let corner: usize = pads.iter().zip(&strides).map(|((before, _), stride)| before * stride).sum();
        let mut data = vec![3.0; dims.iter().product()];
        let places = strided_places(&x.dims, &strides);
        places.into_iter().zip(x.data.iter()).for_each(|(at, x)| data[corner + at] = *x);
        Ok(self.known(format!("pad(%{}, {pads:?})", x.number), value, dims, data))
    }

    /// Rows by their numbers, of which some are outside.
    pub fn gather(&mut self, table: &Known, rows: usize) -> Made {
        let height = table.dims[0];
        let wanted: Vec<u32> = (0..rows).map(|_| self.random.below(height + 2) as u32).collect();
        self.gather_these(table, &self.gpu.upload(&wanted, [rows])?, &wanted)
    }

    /// The rows of these numbers, which the tensor has.
    pub fn gather_these(&mut self, table: &Known, numbers: &Tensor, wanted: &[u32]) -> Made {
        let (rows, height) = (wanted.len(), table.dims[0]);
        let width = table.dims[1..].iter().product::<usize>();
        let value = self.r.gather_rows(table.value, numbers)?;
        let zeros = vec![0.0; width];
        let row = |n: &u32| match *n as usize {
            n if n < height => &table.data[n * width..][..width],
            _ => &zeros[..],
        };
        let data = wanted.iter().flat_map(|n| row(n).to_vec()).collect();
        let dims = [rows].into_iter().chain(table.dims[1..].iter().copied()).collect();
        Ok(self.known(format!("gather(%{}, {rows} rows)", table.number), value, dims, data))
    }

    pub fn keep(&mut self, x: &Known) -> Result<()> {
        let tensor = self.r.keep(x.value)?;
        self.story.push(format!("keep %{}", x.number));
        self.kept.push((tensor, x.clone()));
        Ok(())
    }

    /// Runs the recording and compares what was kept. What is wrong, if something is.
    pub fn finish(self) -> Result<Option<String>> {
        let Twin { r, kept, .. } = self;
        drop(r.end_recording()?);
        for (tensor, known) in kept {
            if tensor.shape().dims() != known.dims {
                return Ok(Some(format!("%{} is {}", known.number, tensor.shape())));
            }
            let got: Vec<f32> = if known.half {
                tensor.read::<F16>()?.iter().map(|x| x.to_f32()).collect()
            } else {
                tensor.read::<f32>()?
            };
            // A zero may have either sign: sums of whole numbers have none to keep.
            let near = |(got, expected): (&f32, &f32)| {
                f64::from((got - expected).abs()) <= known.tolerance * f64::from(expected.abs().max(1.0))
            };
            let wrong: Vec<usize> = (0..got.len()).filter(|&i| !near((&got[i], &known.data[i]))).collect();
            if let Some(&first) = wrong.first() {
                return Ok(Some(format!(
                    "{} of {} elements of %{} are wrong; the first, [{first}], is {}, not {}",
                    wrong.len(),
                    got.len(),
                    known.number,
                    got[first],
                    known.data[first]
                )));
            }
        }
        Ok(None)
    }
}

/// Where the elements of a box lie in a tensor with these strides.
fn strided_places(dims: &[usize], strides: &[usize]) -> Vec<usize> {
    let own = dense(dims);
    let place = |i: usize| (0..dims.len()).map(|d| i / own[d] % dims[d] * strides[d]).sum();
    (0..dims.iter().product()).map(place).collect()
}
