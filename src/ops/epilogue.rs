//! What is done to a matmul, or to a convolution, on its way to memory.

use smallvec::{SmallVec, smallvec};

use super::elementwise::{broadcast, broadcast_strides, check_float, finite, not_nan, parameter};
use crate::error::{Error, Result};
use crate::ir::elementwise::OpCode;
use crate::ir::epilogue::{self as ir, Extra, MAX_EXTRAS, MAX_SCALARS, MAX_STEPS, Source, Step};
use crate::ir::value::ValueId;
use crate::runtime::operand::IntoOperand;
use crate::runtime::recording::{Operand, Recording};
use crate::shape::{DType, Shape};

/// What is done to the elements of a matmul or of a convolution before they are stored, in the same dispatch: bias,
/// activation, scale, residual. Steps run in the order in which they are said.
///
/// At most six steps with two tensors and four scalars.
///
/// ```
/// # fn main() -> tidemill::Result<()> {
/// use tidemill::Epilogue;
/// let gpu = tidemill::Accelerator::global()?;
/// let x = gpu.upload(&[1.0f32, -2.0], [1, 2])?;
/// let w = gpu.upload(&[1.0f32, 0.0, 0.0, 1.0], [2, 2])?;
/// let b = gpu.upload(&[0.5f32, 0.5], [2])?;
/// let h = gpu.run(|r| r.matmul_with(&x, &w, Epilogue::bias(&b).relu()))?;
/// assert_eq!(h.read::<f32>()?, [1.5, 0.0]);
/// # Ok(()) }
/// ```
#[derive(Clone, Debug, Default)]
#[must_use]
pub struct Epilogue<'a> {
    items: SmallVec<[Item<'a>; 4]>,
}

#[derive(Clone, Debug)]
enum Item<'a> {
    /// With a tensor that is broadcast to the result's shape.
    Tensor { name: &'static str, op: OpCode, operand: Operand<'a> },
    /// Plus an element for each column; for each channel of a convolution.
    Bias { operand: Operand<'a> },
    /// Plus an element for each row; for each channel of a convolution.
    ColumnBias { operand: Operand<'a> },
    /// With up to two parameters.
    Scalars { name: &'static str, op: OpCode, parameters: SmallVec<[f32; 2]> },
    /// `beta` times a tensor is added.
    Accumulate { beta: f32, operand: Operand<'a> },
}

macro_rules! functions {
    (one_operand { $($section:ident {
        $($(#[$doc:meta])* $name:ident($variant:ident) {
            cost: $cost:ident, codes: [$code:ident = $number:literal $($more:tt)*], cpu: $cpu:expr,
            c: $c:ident = $c_number:literal $c_doc:literal $(, step: $step:ident = $step_number:literal)?
        })*
    })* } other_codes $codes:tt) => {
        /// # Functions
        ///
        /// As the operations of the same names, to a bit.
        #[allow(clippy::should_implement_trait, reason = "steps of an epilogue, not arithmetic of epilogues")]
        impl<'a> Epilogue<'a> {$($($(
            #[doc = concat!("[`Recording::", stringify!($name), "`]; `", stringify!($step), "` in C.")]
            pub fn $name(self) -> Epilogue<'a> {
                self.scalars(stringify!($name), OpCode::$code, &[])
            }
        )?)*)*}
    };
}

crate::elementwise_ops!(functions);

#[allow(clippy::should_implement_trait, reason = "steps of an epilogue, not arithmetic of epilogues")]
impl<'a> Epilogue<'a> {
    /// Nothing is done yet.
    pub fn new() -> Epilogue<'a> {
        Epilogue::default()
    }

    /// Begins with a bias for each column of a matmul, a vector as long as a row; or for each channel of a
    /// convolution.
    pub fn bias(bias: impl IntoOperand<'a>) -> Epilogue<'a> {
        let mut epilogue = Epilogue::new();
        epilogue.items.push(Item::Bias { operand: bias.into() });
        epilogue
    }

    /// Begins with a bias for each row of a matmul, a vector as long as a column; or for each channel of a
    /// convolution.
    pub fn column_bias(bias: impl IntoOperand<'a>) -> Epilogue<'a> {
        let mut epilogue = Epilogue::new();
        epilogue.items.push(Item::ColumnBias { operand: bias.into() });
        epilogue
    }

    /// Adds a tensor, broadcast to the result's shape: a residual.
    pub fn plus(self, operand: impl IntoOperand<'a>) -> Epilogue<'a> {
        self.tensor("plus", OpCode::AddF32, operand.into())
    }

    /// Subtracts a tensor, broadcast to the result's shape.
    pub fn minus(self, operand: impl IntoOperand<'a>) -> Epilogue<'a> {
        self.tensor("minus", OpCode::SubF32, operand.into())
    }

    /// Multiplies with a tensor, broadcast to the result's shape.
    pub fn times(self, operand: impl IntoOperand<'a>) -> Epilogue<'a> {
        self.tensor("times", OpCode::MulF32, operand.into())
    }

    /// Multiplies with a number.
    pub fn scale(self, factor: f32) -> Epilogue<'a> {
        self.scalars("scale", OpCode::MulF32, &[factor])
    }

    /// Adds a number.
    pub fn add_scalar(self, summand: f32) -> Epilogue<'a> {
        self.scalars("add_scalar", OpCode::AddF32, &[summand])
    }

    /// [`Recording::leaky_relu`].
    pub fn leaky_relu(self, alpha: f32) -> Epilogue<'a> {
        self.scalars("leaky_relu", OpCode::LeakyReluF32, &[alpha])
    }

    /// [`Recording::elu`].
    pub fn elu(self, alpha: f32) -> Epilogue<'a> {
        self.scalars("elu", OpCode::EluF32, &[alpha])
    }

    /// [`Recording::clip`].
    pub fn clip(self, lo: f32, hi: f32) -> Epilogue<'a> {
        self.scalars("clip", OpCode::ClipF32, &[lo, hi])
    }

    fn tensor(mut self, name: &'static str, op: OpCode, operand: Operand<'a>) -> Epilogue<'a> {
        self.items.push(Item::Tensor { name, op, operand });
        self
    }

    fn scalars(mut self, name: &'static str, op: OpCode, parameters: &[f32]) -> Epilogue<'a> {
        self.items.push(Item::Scalars { name, op, parameters: SmallVec::from_slice(parameters) });
        self
    }

    /// `beta * operand` is added before all else.
    pub(super) fn accumulating(mut self, beta: f32, operand: Operand<'a>) -> Epilogue<'a> {
        self.items.insert(0, Item::Accumulate { beta, operand });
        self
    }

    /// The engine's form.
    pub(super) fn resolve(&self, recording: &Recording, target: Target) -> Result<ir::Epilogue> {
        let mut out = ir::Epilogue::default();
        for item in &self.items {
            match item {
                Item::Tensor { name, op, operand } => {
                    let extra = stretched(recording, name, *operand, target, &mut out)?;
                    step(&mut out, *op, &[extra]);
                }
                Item::Bias { operand } => {
                    let extra = match target {
                        Target::Matrices { .. } => stretched(recording, "bias", *operand, target, &mut out)?,
                        Target::Images { .. } => per_row(recording, "bias", *operand, target, &mut out)?,
                    };
                    step(&mut out, OpCode::AddF32, &[extra]);
                }
                Item::ColumnBias { operand } => {
                    let extra = per_row(recording, "column_bias", *operand, target, &mut out)?;
                    step(&mut out, OpCode::AddF32, &[extra]);
                }
                Item::Scalars { name, op, parameters } => {
                    check_parameters(name, *op, parameters)?;
                    let operands: SmallVec<[Source; 2]> =
                        parameters.iter().map(|p| scalar(&mut out, *p)).collect();
                    step(&mut out, *op, &operands);
                }
                Item::Accumulate { beta, operand } => {
                    let extra = stretched(recording, "accumulate", *operand, target, &mut out)?;
                    let beta = scalar(&mut out, *beta);
                    out.steps.push(Step { op: OpCode::MulF32, operands: [extra, beta, extra] });
                    let scaled = out.last();
                    out.steps
                        .push(Step { op: OpCode::AddF32, operands: [Source::Accumulator, scaled, scaled] });
                }
            }
        }
        if !out.fits() {
            let got = [out.steps.len(), out.extras.len(), out.scalars.len()];
            return Err(Error::Epilogue { op: target.op(), got, most: [MAX_STEPS, MAX_EXTRAS, MAX_SCALARS] });
        }
        Ok(out)
    }
}

fn check_parameters(name: &'static str, op: OpCode, parameters: &[f32]) -> Result<()> {
    match (op, parameters) {
        (OpCode::LeakyReluF32 | OpCode::EluF32, [alpha]) => finite(name, "alpha", *alpha),
        (OpCode::ClipF32, [lo, hi]) => {
            not_nan(name, "lo", *lo)?;
            not_nan(name, "hi", *hi)?;
            let rule = format!("not be above hi, which is {hi}");
            if lo > hi { Err(parameter(name, "lo", *lo, &rule)) } else { Ok(()) }
        }
        _ => Ok(()),
    }
}

/// Appends a step on what the last one left.
fn step(out: &mut ir::Epilogue, op: OpCode, with: &[Source]) {
    let first = out.last();
    let operand = |i: usize| with.get(i).copied().unwrap_or(first);
    out.steps.push(Step { op, operands: [first, operand(0), operand(1)] });
}

fn scalar(out: &mut ir::Epilogue, value: f32) -> Source {
    let known = out.scalars.iter().position(|&bits| bits == value.to_bits());
    let index = known.unwrap_or_else(|| {
        out.scalars.push(value.to_bits());
        out.scalars.len() - 1
    });
    Source::Scalar(index as u8)
}

/// What an epilogue works on: rows of columns, in batches.
#[derive(Clone, Copy, Debug)]
pub(super) enum Target {
    /// A matmul's result, of rank 2 or more.
    Matrices(Shape),
    /// A convolution's: `[image][channel][y][x]`. Rows are channels, columns pixels.
    Images(Shape),
}

impl Target {
    fn op(self) -> &'static str {
        match self {
            Target::Matrices(_) => "matmul",
            Target::Images(_) => "conv2d",
        }
    }

    fn shape(self) -> Shape {
        match self {
            Target::Matrices(shape) | Target::Images(shape) => shape,
        }
    }
}

/// An extra input as a source; one that is known already is not bound twice.
fn source(out: &mut ir::Epilogue, extra: Extra) -> Source {
    let known = out.extras.iter().position(|known| *known == extra);
    let index = known.unwrap_or_else(|| {
        out.extras.push(extra);
        out.extras.len() - 1
    });
    Source::Extra(index as u8)
}

/// The operand, which must be f32 or f16: with its shape, and whether it is f16.
fn resolve_float(
    recording: &Recording,
    name: &'static str,
    operand: Operand<'_>,
) -> Result<(ValueId, Shape, bool)> {
    let value: ValueId = recording.resolve(name, operand)?;
    let (shape, dtype) = recording.kind(value);
    check_float(name, "operand", dtype)?;
    Ok((value, shape, dtype == DType::F16))
}

/// An input with one element for each row.
fn per_row(
    recording: &Recording,
    name: &'static str,
    operand: Operand<'_>,
    target: Target,
    out: &mut ir::Epilogue,
) -> Result<Source> {
    let (value, from, is_f16) = resolve_float(recording, name, operand)?;
    let shape = target.shape();
    let (rows, what) = match target {
        Target::Matrices(_) => (shape.dims()[shape.rank() - 2], "rows"),
        Target::Images(_) => (shape.dims()[1], "channels"),
    };
    if from.dims() != [rows] {
        let why = format!("a bias for each of {rows} {what} must be [{rows}]");
        return Err(Error::Shapes { op: name, lhs: from, rhs: shape, why });
    }
    // One row of one element is not walked over.
    let row = u32::from(rows > 1);
    Ok(source(out, Extra { value, batch: [0, 0], row, column: 0, is_f16 }))
}

/// An input that is broadcast to the result's shape.
fn stretched(
    recording: &Recording,
    name: &'static str,
    operand: Operand<'_>,
    target: Target,
    out: &mut ir::Epilogue,
) -> Result<Source> {
    let (value, from, is_f16) = resolve_float(recording, name, operand)?;
    let shape = target.shape();
    let refuse = |why: &str| Error::Shapes { op: name, lhs: from, rhs: shape, why: why.to_owned() };
    if broadcast(name, from, shape)? != shape {
        return Err(refuse("the product does not stretch to its operands"));
    }
    let strides = broadcast_strides(&from, &shape);
    let mut all: SmallVec<[u32; 4]> = smallvec![0; 4 - shape.rank()];
    all.extend_from_slice(&strides[..shape.rank()]);
    let [first, second, third, last] = [all[0], all[1], all[2], all[3]];
    let extra = match target {
        Target::Matrices(_) => Extra { value, batch: [first, second], row: third, column: last, is_f16 },
        Target::Images(_) => {
            // Pixels are one dimension here, so the operand must have all of them or one for all.
            let (height, width) = (shape.dims()[2], shape.dims()[3]);
            let column = match (height, width) {
                (_, 1) => third,
                (1, _) => last,
                _ if u64::from(third) == u64::from(last) * width as u64 => last,
                _ => return Err(refuse("an operand has all pixels of a channel, or one for all of them")),
            };
            Extra { value, batch: [0, first], row: second, column, is_f16 }
        }
    };
    Ok(source(out, extra))
}
