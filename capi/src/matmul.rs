//! Matrix products.

use std::mem::MaybeUninit;

use tidemill::Matmul;

use crate::epilogue::{epilogue, tm_step};
use crate::options::{self, Options, options};
use crate::recording::{record, tm_recording, tm_value};
use crate::status::{guard, tm_status};

/// How a matrix product is taken. Begin with tm_matmul_defaults().
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct tm_matmul_options {
    /// sizeof(tm_matmul_options), as tm_matmul_defaults() sets it.
    pub size: usize,
    /// The left operand is stored with its last two dimensions exchanged.
    pub transpose_lhs: bool,
    /// The right operand is stored with its last two dimensions exchanged.
    pub transpose_rhs: bool,
    /// The product is multiplied with this first.
    pub alpha: f32,
    /// Then `beta` times `accumulate`, broadcast, is added, if that is a value.
    pub beta: f32,
    /// What is added, or all zeros.
    pub accumulate: tm_value,
    /// And at last these are done, in their order.
    pub steps: *const tm_step,
    /// How many there are.
    pub step_count: usize,
}

options!(tm_matmul_options, least: size_of::<tm_matmul_options>(), defaults: tm_matmul_options {
    size: size_of::<tm_matmul_options>(),
    transpose_lhs: false,
    transpose_rhs: false,
    alpha: 1.0,
    beta: 1.0,
    accumulate: tm_value::NONE,
    steps: std::ptr::null(),
    step_count: 0,
});

/// The plain product. tm_matmul_defaults() calls it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tm_matmul_options_init(options: *mut tm_matmul_options, size: usize) -> tm_status {
    guard("tm_matmul_options_init", || {
        // SAFETY: contract 1: so many bytes are there.
        unsafe { options::write(options, size, "options", tm_matmul_options::DEFAULTS) }
    })
}

/// The matrix product, of batches too, as in NumPy; floats. NULL for `options` is the plain product.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tm_matmul(
    recording: Option<&tm_recording>,
    lhs: tm_value,
    rhs: tm_value,
    options: *const tm_matmul_options,
    out: Option<&mut MaybeUninit<tm_value>>,
) -> tm_status {
    record("tm_matmul", recording, out, |r, scope| {
        // SAFETY: contract 1.
        let lhs = unsafe { scope.operand(lhs, "lhs") }?;
        // SAFETY: contract 1.
        let rhs = unsafe { scope.operand(rhs, "rhs") }?;
        let mut how = Matmul::new();
        if !options.is_null() {
            // SAFETY: contract 1.
            let options = unsafe { options::read(options, "options") }?;
            how = how.alpha(options.alpha);
            if options.transpose_lhs {
                how = how.transpose_lhs();
            }
            if options.transpose_rhs {
                how = how.transpose_rhs();
            }
            if !options.accumulate.is_none() {
                // SAFETY: contract 1.
                let operand = unsafe { scope.operand(options.accumulate, "accumulate") }?;
                how = how.accumulate(options.beta, operand);
            }
            // SAFETY: contract 1.
            how = how.epilogue(unsafe { epilogue(scope, options.steps, options.step_count) }?);
        }
        Ok(r.matmul_with(lhs, rhs, how)?)
    })
}
