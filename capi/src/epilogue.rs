//! Epilogues of matmuls and convolutions.

use tidemill::Epilogue;

use crate::arguments::elements;
use crate::recording::{Scope, tm_value};
use crate::status::Failure;

/// A step of an epilogue: TM_STEP_BIAS and so on.
pub type tm_step_op = u32;
/// Plus an element of `operand` for each column of a matmul, or channel of a convolution. As the first step only.
pub const TM_STEP_BIAS: tm_step_op = 0;
/// Plus an element of `operand` for each row of a matmul, or channel of a convolution. As the first step only.
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
macro_rules! step_constants {
    (one_operand { $($section:ident {
        $($(#[$doc:meta])* $name:ident($variant:ident) {
            cost: $cost:ident, codes: $row_codes:tt, cpu: $cpu:expr,
            c: $c:ident = $number:literal $c_doc:literal $(, step: $step:ident = $step_number:literal)?
        })*
    })* } other_codes $codes:tt) => {
        $($($(
            #[doc = concat!("As ", stringify!($c), ".")]
            pub const $step: tm_step_op = $step_number;
        )?)*)*

        fn function(epilogue: Epilogue<'_>, op: tm_step_op) -> Result<Epilogue<'_>, Failure> {
            Ok(match op {
                $($($($step => epilogue.$name(),)?)*)*
                other => return Err(Failure::unknown("the op of a step", other)),
            })
        }
    };
}

tidemill::elementwise_ops!(step_constants);

/// As tm_leaky_relu, with `a` for alpha.
pub const TM_STEP_LEAKY_RELU: tm_step_op = 18;
/// As tm_elu, with `a` for alpha.
pub const TM_STEP_ELU: tm_step_op = 19;
/// As tm_clip, from `a` to `b`.
pub const TM_STEP_CLIP: tm_step_op = 20;

/// A step of an epilogue: it runs on the elements of a matmul or a convolution before they are stored. At most six
/// steps with two operands and four numbers.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct tm_step {
    /// The operation.
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
            TM_STEP_LEAKY_RELU => epilogue.leaky_relu(step.a),
            TM_STEP_ELU => epilogue.elu(step.a),
            TM_STEP_CLIP => epilogue.clip(step.a, step.b),
            other => function(epilogue, other)?,
        };
    }
    Ok(epilogue)
}
