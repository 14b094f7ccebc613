//! What is done to a product or a convolution before it is stored.

use tidemill::Epilogue;

use crate::arguments::elements;
use crate::recording::{Scope, tm_value};
use crate::status::Failure;

/// A step of an epilogue: TM_STEP_BIAS and so on.
pub type tm_step_op = u32;
/// Plus an element of `operand` for each column of a product, or channel of a convolution. As the first step only.
pub const TM_STEP_BIAS: tm_step_op = 0;
/// Plus an element of `operand` for each row of a product, or channel of a convolution. As the first step only.
pub const TM_STEP_COLUMN_BIAS: tm_step_op = 1;
/// Plus `operand`, broadcast.
pub const TM_STEP_PLUS: tm_step_op = 2;
/// Minus `operand`, broadcast.
pub const TM_STEP_MINUS: tm_step_op = 3;
/// Times `operand`, broadcast.
pub const TM_STEP_TIMES: tm_step_op = 4;
/// Times `a`.
pub const TM_STEP_SCALE: tm_step_op = 5;
/// Plus `a`.
pub const TM_STEP_ADD_SCALAR: tm_step_op = 6;
/// As TM_RELU.
pub const TM_STEP_RELU: tm_step_op = 7;
/// As TM_SIGMOID.
pub const TM_STEP_SIGMOID: tm_step_op = 8;
/// As TM_TANH.
pub const TM_STEP_TANH: tm_step_op = 9;
/// As TM_SWISH.
pub const TM_STEP_SWISH: tm_step_op = 10;
/// As TM_GELU.
pub const TM_STEP_GELU: tm_step_op = 11;
/// As TM_GELU_ERF.
pub const TM_STEP_GELU_ERF: tm_step_op = 12;
/// As TM_SOFTPLUS.
pub const TM_STEP_SOFTPLUS: tm_step_op = 13;
/// As TM_EXP.
pub const TM_STEP_EXP: tm_step_op = 14;
/// As TM_SQRT.
pub const TM_STEP_SQRT: tm_step_op = 15;
/// As TM_ABS.
pub const TM_STEP_ABS: tm_step_op = 16;
/// As TM_NEG.
pub const TM_STEP_NEG: tm_step_op = 17;
/// As tm_leaky_relu, with `a` for alpha.
pub const TM_STEP_LEAKY_RELU: tm_step_op = 18;
/// As tm_elu, with `a` for alpha.
pub const TM_STEP_ELU: tm_step_op = 19;
/// As tm_clip, from `a` to `b`.
pub const TM_STEP_CLIP: tm_step_op = 20;

/// A step of what is done to a product or a convolution before it is stored, in the same dispatch. At most six steps with
/// two operands and four numbers.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct tm_step {
    /// What is done.
    pub op: tm_step_op,
    /// The operand of steps that have one; f32.
    pub operand: tm_value,
    /// The first number of steps that have one.
    pub a: f32,
    /// The second number.
    pub b: f32,
}

/// # Safety
///
/// Contract 1, for `'a`.
pub(crate) unsafe fn epilogue<'a>(
    scope: &Scope<'_>,
    steps: *const tm_step,
    step_count: usize,
) -> Result<Epilogue<'a>, Failure> {
    let mut epilogue = Epilogue::new();
    // SAFETY: contract 1.
    let steps: &[tm_step] = unsafe { elements(steps, step_count, "steps") }?;
    for (i, step) in steps.iter().enumerate() {
        // SAFETY: contract 1.
        let operand = || unsafe { scope.operand(step.operand, &format!("the operand of step {i}")) };
        epilogue = match step.op {
            TM_STEP_BIAS | TM_STEP_COLUMN_BIAS if i > 0 => {
                return Err(Failure::argument(format!("step {i} is a bias, which only the first can be")));
            }
            TM_STEP_BIAS => Epilogue::bias(operand()?),
            TM_STEP_COLUMN_BIAS => Epilogue::column_bias(operand()?),
            TM_STEP_PLUS => epilogue.plus(operand()?),
            TM_STEP_MINUS => epilogue.minus(operand()?),
            TM_STEP_TIMES => epilogue.times(operand()?),
            TM_STEP_SCALE => epilogue.scale(step.a),
            TM_STEP_ADD_SCALAR => epilogue.add_scalar(step.a),
            TM_STEP_RELU => epilogue.relu(),
            TM_STEP_SIGMOID => epilogue.sigmoid(),
            TM_STEP_TANH => epilogue.tanh(),
            TM_STEP_SWISH => epilogue.swish(),
            TM_STEP_GELU => epilogue.gelu(),
            TM_STEP_GELU_ERF => epilogue.gelu_erf(),
            TM_STEP_SOFTPLUS => epilogue.softplus(),
            TM_STEP_EXP => epilogue.exp(),
            TM_STEP_SQRT => epilogue.sqrt(),
            TM_STEP_ABS => epilogue.abs(),
            TM_STEP_NEG => epilogue.neg(),
            TM_STEP_LEAKY_RELU => epilogue.leaky_relu(step.a),
            TM_STEP_ELU => epilogue.elu(step.a),
            TM_STEP_CLIP => epilogue.clip(step.a, step.b),
            other => return Err(Failure::unknown("the op of a step", other)),
        };
    }
    Ok(epilogue)
}
