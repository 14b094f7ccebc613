//! Convolutions over two dimensions.

use super::epilogue::{Epilogue, Target};
use super::width::check_float;
use crate::error::{Error, Result};
use crate::ir::conv2d::{Convolution, PackWeights};
use crate::ir::value::ValueId;
use crate::kernels::conv2d;
use crate::runtime::accelerator::Accelerator;
use crate::runtime::operand::IntoOperand;
use crate::runtime::recording::{Operand, Recording, Value};
use crate::runtime::tensor::Tensor;
use crate::shape::{DType, Shape};

const OP: &str = "conv2d";

/// The most that a stride, a dilation or a padding may be: kernels hold them in 16 bits.
const MOST: usize = u16::MAX as usize;

/// How a convolution is taken: stride, padding, dilation, groups, and what is done before the result is stored.
///
/// ```
/// # fn main() -> tidemill::Result<()> {
/// use tidemill::{Conv2d, Epilogue};
/// let gpu = tidemill::Accelerator::global()?;
/// let image = gpu.upload(&[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0], [1, 1, 3, 3])?;
/// let sum_of_nine = gpu.upload(&[1.0f32; 9], [1, 1, 3, 3])?;
/// let weights = gpu.prepare_weights(&sum_of_nine, 1)?;
/// let bias = gpu.upload(&[-20.0f32], [1])?;
/// let how = Conv2d::new().padding([1, 1]).stride([2, 2]).epilogue(Epilogue::bias(&bias).relu());
/// let y = gpu.run(|r| r.conv2d_with(&image, &weights, how))?;
/// assert_eq!(y.shape().dims(), [1, 1, 2, 2]);
/// assert_eq!(y.read::<f32>()?, [0.0, 0.0, 4.0, 8.0]);
/// # Ok(()) }
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct Conv2d<'a> {
    stride: [usize; 2],
    padding: [usize; 2],
    dilation: [usize; 2],
    groups: Option<usize>,
    epilogue: Epilogue<'a>,
}

impl Default for Conv2d<'_> {
    fn default() -> Self {
        Conv2d::new()
    }
}

impl<'a> Conv2d<'a> {
    /// Every pixel, no padding, one group.
    pub fn new() -> Conv2d<'a> {
        Conv2d { stride: [1; 2], padding: [0; 2], dilation: [1; 2], groups: None, epilogue: Epilogue::new() }
    }

    /// Steps between the kernel's places, in height and width.
    pub fn stride(mut self, stride: [usize; 2]) -> Conv2d<'a> {
        self.stride = stride;
        self
    }

    /// Rows of zeros above and below, and columns of zeros left and right.
    pub fn padding(mut self, padding: [usize; 2]) -> Conv2d<'a> {
        self.padding = padding;
        self
    }

    /// Steps between the kernel's taps, in height and width; 1 if they are neighbours.
    pub fn dilation(mut self, dilation: [usize; 2]) -> Conv2d<'a> {
        self.dilation = dilation;
        self
    }

    /// Channels are divided into this many groups, each convolved for itself; as many as there are channels is a
    /// depthwise convolution. Prepared weights know their groups, and this must agree with them if it is said.
    pub fn groups(mut self, groups: usize) -> Conv2d<'a> {
        self.groups = Some(groups);
        self
    }

    /// And at last this is done.
    pub fn epilogue(mut self, epilogue: Epilogue<'a>) -> Conv2d<'a> {
        self.epilogue = epilogue;
        self
    }
}

impl<'a> From<Epilogue<'a>> for Conv2d<'a> {
    fn from(epilogue: Epilogue<'a>) -> Conv2d<'a> {
        Conv2d::new().epilogue(epilogue)
    }
}

/// A convolution's weights in the order in which kernels read them; [`Accelerator::prepare_weights`] makes them, once
/// for as many convolutions as there will be.
#[derive(Clone, Debug)]
pub struct PreparedWeights {
    laid_out: Tensor,
    shape: Shape,
    groups: usize,
}

impl PreparedWeights {
    /// The shape of the weights that they were made from: `[channels of the result, channels in a group, height,
    /// width]`.
    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// The groups that they were made for.
    pub fn groups(&self) -> usize {
        self.groups
    }
}

/// The weights of a convolution: prepared ones, or a tensor or value as it is, which is laid out anew each time.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum ConvWeights<'a> {
    /// Laid out once.
    Prepared(&'a PreparedWeights),
    /// Laid out in this recording, by one dispatch more that reads and writes all of them.
    Plain(Operand<'a>),
}

impl<'a> From<&'a PreparedWeights> for ConvWeights<'a> {
    fn from(weights: &'a PreparedWeights) -> ConvWeights<'a> {
        ConvWeights::Prepared(weights)
    }
}

impl<'a> From<&'a Tensor> for ConvWeights<'a> {
    fn from(weights: &'a Tensor) -> ConvWeights<'a> {
        ConvWeights::Plain(weights.into())
    }
}

impl From<Value> for ConvWeights<'_> {
    fn from(weights: Value) -> Self {
        ConvWeights::Plain(weights.into())
    }
}

impl Accelerator {
    /// Lays the weights of a convolution out as kernels read them: `[channels of the result, channels in a group,
    /// height, width]`, for this many groups. What is laid out is f32, for weights of f16, too. The tensor itself is
    /// not needed any more after this.
    ///
    /// # Errors
    ///
    /// [`Error::Dimensions`], [`Error::Type`] and [`Error::Parameter`] if these can't be a convolution's weights.
    pub fn prepare_weights(&self, weights: &Tensor, groups: usize) -> Result<PreparedWeights> {
        let shape = weights.shape();
        let laid_out = self.run(|r| {
            let value = r.resolve("prepare_weights", weights)?;
            let laid_out = r.lay_out_weights("prepare_weights", value, groups)?;
            Ok(r.handle(laid_out))
        })?;
        Ok(PreparedWeights { laid_out, shape, groups })
    }
}

/// # Convolutions
impl Recording {
    /// The convolution of images `[image, channel, y, x]` with weights `[channel of the result, channel in its group,
    /// y, x]`, as neural networks have it (the kernel is not turned around); f32 and f16, the result as the input.
    ///
    /// Take [`PreparedWeights`] where weights serve more than once: a plain tensor is laid out anew by each call.
    /// Sums are taken in f32, in an order that depends on the shapes, the device and what
    /// [tuning](Accelerator::tune) has found, and on nothing else.
    ///
    /// ```
    /// # fn main() -> tidemill::Result<()> {
    /// let gpu = tidemill::Accelerator::global()?;
    /// let image = gpu.upload(&[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0], [1, 1, 3, 3])?;
    /// let weights = gpu.prepare_weights(&gpu.upload(&[1.0f32; 4], [1, 1, 2, 2])?, 1)?;
    /// let y = gpu.run(|r| r.conv2d(&image, &weights))?;
    /// assert_eq!(y.read::<f32>()?, [12.0, 16.0, 24.0, 28.0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::Dimensions`], [`Error::Shapes`], [`Error::Type`] and [`Error::Parameter`] if operands and choices do
    /// not fit each other; [`Error::BindingTooLarge`] if the input, or one image of the result, is larger than a
    /// binding; [`Error::TooLarge`] if no buffer can hold the result.
    pub fn conv2d<'a>(
        &self,
        input: impl IntoOperand<'a>,
        weights: impl Into<ConvWeights<'a>>,
    ) -> Result<Value> {
        self.conv2d_with(input, weights, Conv2d::new())
    }

    /// [`conv2d`](Recording::conv2d) with stride, padding, dilation, groups and an epilogue: a [`Conv2d`], or an
    /// [`Epilogue`] alone.
    ///
    /// # Errors
    ///
    /// As [`conv2d`](Recording::conv2d), and those of the epilogue as for [`matmul_with`](Recording::matmul_with).
    pub fn conv2d_with<'a, 'b>(
        &self,
        input: impl IntoOperand<'a>,
        weights: impl Into<ConvWeights<'a>>,
        with: impl Into<Conv2d<'b>>,
    ) -> Result<Value> {
        let (weights, with) = (weights.into(), with.into());
        let input = self.resolve(OP, input)?;
        let (shape, dtype) = self.images(input)?;
        let (kernel, groups) = self.kernel(weights, &with)?;
        let geometry = Geometry::new(shape, kernel, groups, &with)?;
        conv2d::check_result(geometry.result, &self.core().catalog.limits)?;
        let epilogue = with.epilogue.resolve(self, Target::Images(geometry.result))?;
        let output = self.produce(OP, geometry.result, DType::F32)?;
        if geometry.images == 0 {
            return self.cast(self.handle(output), dtype);
        }
        self.all_or_nothing(|r| r.convolve(input, weights, geometry, epilogue, output, dtype))
    }

    /// Appends the nodes of a convolution that was checked.
    fn convolve(
        &self,
        input: ValueId,
        weights: ConvWeights<'_>,
        geometry: Geometry,
        epilogue: crate::ir::epilogue::Epilogue,
        output: ValueId,
        dtype: DType,
    ) -> Result<Value> {
        let weights = match weights {
            ConvWeights::Prepared(prepared) => self.resolve(OP, &prepared.laid_out)?,
            ConvWeights::Plain(operand) => {
                let value = self.resolve(OP, operand)?;
                self.lay_out_weights(OP, value, geometry.groups)?
            }
        };
        let label = self.label(OP, output);
        let convolution = geometry.convolution(input, weights, epilogue, output);
        self.push(label, convolution)?;
        // Sums are in f32, and are rounded once, in the end.
        self.cast(self.handle(output), dtype)
    }

    fn images(&self, id: ValueId) -> Result<(Shape, DType)> {
        let (shape, dtype) = self.kind(id);
        check_float(OP, "input", dtype)?;
        if shape.rank() != 4 {
            return Err(Error::Dimensions { op: OP, what: "input", shape, expected: 4 });
        }
        Ok((shape, dtype))
    }

    /// The weights' shape and groups.
    fn kernel(&self, weights: ConvWeights<'_>, with: &Conv2d<'_>) -> Result<(Shape, usize)> {
        match weights {
            ConvWeights::Prepared(prepared) => match with.groups {
                Some(said) if said != prepared.groups => {
                    let rule = format!("be {}, as the weights were prepared", prepared.groups);
                    Err(Error::Parameter { op: OP, name: "groups", value: said as f64, rule })
                }
                _ => Ok((prepared.shape, prepared.groups)),
            },
            ConvWeights::Plain(operand) => {
                let value = self.resolve(OP, operand)?;
                let groups = with.groups.unwrap_or(1);
                check_weights(OP, self.kind(value), groups)?;
                Ok((self.kind(value).0, groups))
            }
        }
    }

    /// Appends what lays weights out as kernels read them.
    fn lay_out_weights(&self, op: &'static str, value: ValueId, groups: usize) -> Result<ValueId> {
        let kind = self.kind(value);
        check_weights(op, kind, groups)?;
        let dims = kind.0.dims();
        let depth = dims[1] * dims[2] * dims[3];
        let rows = dims[0] / groups;
        let mut pack = PackWeights {
            weights: value,
            groups: groups as u32,
            rows: rows as u32,
            depth: depth as u32,
            output: value,
        };
        pack.output = self.produce_unchecked(pack.shape(), DType::F32);
        self.push(self.label(op, value), pack)?;
        Ok(pack.output)
    }
}

fn parameter(op: &'static str, name: &'static str, value: usize, rule: String) -> Error {
    Error::Parameter { op, name, value: value as f64, rule }
}

/// Four dimensions with something in each, and rows that the groups divide.
fn check_weights(op: &'static str, (shape, got): (Shape, DType), groups: usize) -> Result<()> {
    check_float(op, "weight tensor", got)?;
    if shape.rank() != 4 || shape.elements() == 0 {
        return Err(Error::Dimensions { op, what: "weights", shape, expected: 4 });
    }
    let rows = shape.dims()[0];
    if groups == 0 || rows % groups != 0 {
        return Err(parameter(op, "groups", groups, format!("divide the result's {rows} channels")));
    }
    Ok(())
}

/// The extents of a convolution, checked.
struct Geometry {
    images: usize,
    groups: usize,
    channels: usize,
    rows: usize,
    size: [usize; 2],
    taps: [usize; 2],
    stride: [usize; 2],
    dilation: [usize; 2],
    padding: [usize; 2],
    result: Shape,
}

impl Geometry {
    fn new(input: Shape, weights: Shape, groups: usize, with: &Conv2d<'_>) -> Result<Geometry> {
        let ([images, all_channels, height, width], [all_rows, channels, kernel_height, kernel_width]) =
            (extents(input), extents(weights));
        let refuse = |why: String| Error::Shapes { op: OP, lhs: input, rhs: weights, why };
        if all_channels != channels.saturating_mul(groups) {
            return Err(refuse(format!(
                "{all_channels} channels != {channels} in each of {groups} group{}",
                if groups == 1 { "" } else { "s" }
            )));
        }
        for (name, values, least) in
            [("stride", with.stride, 1), ("dilation", with.dilation, 1), ("padding", with.padding, 0)]
        {
            if let Some(value) = values.into_iter().find(|value| !(least..=MOST).contains(value)) {
                return Err(parameter(OP, name, value, format!("be between {least} and {MOST}")));
            }
        }
        let (size, taps) = ([height, width], [kernel_height, kernel_width]);
        if size.contains(&0) {
            return Err(refuse("images without pixels".to_owned()));
        }
        let mut result = [0; 2];
        for d in 0..2 {
            let reach = (taps[d] - 1).saturating_mul(with.dilation[d]).saturating_add(1);
            // An empty batch may have images of any size.
            let padded = size[d].saturating_add(2 * with.padding[d]);
            if reach > padded {
                let which = ["rows", "columns"][d];
                return Err(refuse(format!("a kernel of {reach} {which} on {padded} with padding")));
            }
            result[d] = ((padded - reach) / with.stride[d]).saturating_add(1);
        }
        Ok(Geometry {
            images,
            groups,
            channels,
            rows: all_rows / groups,
            size,
            taps,
            stride: with.stride,
            dilation: with.dilation,
            padding: with.padding,
            result: Shape::from([images, all_rows, result[0], result[1]]),
        })
    }

    fn convolution(
        &self,
        input: ValueId,
        weights: ValueId,
        epilogue: crate::ir::epilogue::Epilogue,
        output: ValueId,
    ) -> Convolution {
        // All of them are extents of tensors, or checked to be small.
        let pair = |values: [usize; 2]| values.map(|value| value as u32);
        let [_, _, height, width] = extents(self.result);
        Convolution {
            input,
            weights,
            images: self.images as u32,
            groups: self.groups as u32,
            channels: self.channels as u32,
            rows: self.rows as u32,
            size: pair(self.size),
            taps: pair(self.taps),
            result: pair([height, width]),
            stride: pair(self.stride),
            dilation: pair(self.dilation),
            padding: pair(self.padding),
            epilogue,
            output,
        }
    }
}

/// The extents of a shape of rank 4.
fn extents(shape: Shape) -> [usize; 4] {
    let mut all = [0; 4];
    all.copy_from_slice(shape.dims());
    all
}
