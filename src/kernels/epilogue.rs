//! Epilogues as `glsl/lib/epilogue.glsl` takes them.

use crate::ir::branches::branch;
use crate::ir::epilogue::Epilogue;
use crate::kernels::modules::constants::{Constants, Includes, KernelFile};
use crate::kernels::modules::epilogue::{File, MODE, STEP, STEPS, WIDE};

/// Sets the epilogue's constants. `wide`: columns come in aligned groups of four that are all inside; `aligned`: they
/// begin at multiples of four.
pub(crate) fn set_constants<K: KernelFile + Includes<File>>(
    epilogue: &Epilogue,
    (wide, aligned): (bool, bool),
    constants: &mut Constants<K>,
) {
    constants.set(WIDE, branch!("epilogue: wide", wide));
    if epilogue.steps.is_empty() {
        return;
    }
    constants.set(STEPS, epilogue.steps.len() as u32);
    for (constant, step) in STEP.into_iter().zip(&epilogue.steps) {
        constants.set(constant, step.word());
    }
    for (constant, extra) in MODE.into_iter().zip(&epilogue.extras) {
        constants.set(constant, extra.mode(aligned));
    }
}
