//! Convolutions.

use std::mem::MaybeUninit;

use tidemill::args::ConvWeights;
use tidemill::{Conv2d, PreparedWeights};

use crate::accelerator::{opened, tm_accelerator};
use crate::arguments::{given, handle, place};
use crate::epilogue::{epilogue, tm_step};
use crate::options::{self, Options, options};
use crate::recording::{Scope, record, tm_recording, tm_value};
use crate::status::{Failure, guard, guarded, tm_status};
use crate::tensor::tm_tensor;

/// How a convolution is taken. Begin with tm_conv2d_defaults(). Pairs are height, width.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct tm_conv2d_options {
    /// sizeof(tm_conv2d_options), as tm_conv2d_defaults() sets it.
    pub size: usize,
    /// Steps between the kernel's places.
    pub stride: [usize; 2],
    /// Rows of zeros above and below, and columns of zeros left and right.
    pub padding: [usize; 2],
    /// Steps between the kernel's taps.
    pub dilation: [usize; 2],
    /// Groups of channels; 0 is one group, or as many as prepared weights have.
    pub groups: usize,
    /// And at last these are done, in their order.
    pub steps: *const tm_step,
    /// How many there are.
    pub step_count: usize,
}

/// A convolution's weights in the order in which kernels read them.
#[derive(Debug)]
pub struct tm_weights {
    weights: PreparedWeights,
}

options!(tm_conv2d_options, least: size_of::<tm_conv2d_options>(), defaults: tm_conv2d_options {
    size: size_of::<tm_conv2d_options>(),
    stride: [1; 2],
    padding: [0; 2],
    dilation: [1; 2],
    groups: 0,
    steps: std::ptr::null(),
    step_count: 0,
});

/// Every pixel, no padding, one group. tm_conv2d_defaults() calls it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tm_conv2d_options_init(options: *mut tm_conv2d_options, size: usize) -> tm_status {
    guard("tm_conv2d_options_init", || {
        // SAFETY: contract 1: this many bytes are there.
        unsafe { options::write(options, size, "options", tm_conv2d_options::DEFAULTS) }
    })
}

/// # Safety
///
/// Contract 1, for `'a`.
unsafe fn conv2d<'a>(scope: &Scope<'_>, options: *const tm_conv2d_options) -> Result<Conv2d<'a>, Failure> {
    let how = Conv2d::new();
    if options.is_null() {
        return Ok(how);
    }
    // SAFETY: contract 1.
    let options = unsafe { options::read(options, "options") }?;
    let how = how.stride(options.stride).padding(options.padding).dilation(options.dilation);
    let how = if options.groups > 0 { how.groups(options.groups) } else { how };
    // SAFETY: contract 1.
    Ok(how.epilogue(unsafe { epilogue(scope, options.steps, options.step_count) }?))
}

/// The convolution of images [image, channel, y, x] with weights [channel of the result, channel in its group, y, x];
/// floats. NULL for `options` means the defaults. Weights that serve more than once are better prepared.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tm_conv2d(
    recording: Option<&tm_recording>,
    images: tm_value,
    weights: tm_value,
    options: *const tm_conv2d_options,
    out: Option<&mut MaybeUninit<tm_value>>,
) -> tm_status {
    record("tm_conv2d", recording, out, |r, scope| {
        // SAFETY: contract 1.
        let images = unsafe { scope.operand(images, "images") }?;
        // SAFETY: contract 1.
        let weights = unsafe { scope.operand(weights, "weights") }?;
        // SAFETY: contract 1.
        let how = unsafe { conv2d(scope, options) }?;
        Ok(r.conv2d_with(images, ConvWeights::Plain(weights), how)?)
    })
}

/// As tm_conv2d, with prepared weights.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tm_conv2d_prepared(
    recording: Option<&tm_recording>,
    images: tm_value,
    weights: Option<&tm_weights>,
    options: *const tm_conv2d_options,
    out: Option<&mut MaybeUninit<tm_value>>,
) -> tm_status {
    record("tm_conv2d_prepared", recording, out, |r, scope| {
        // SAFETY: contract 1.
        let images = unsafe { scope.operand(images, "images") }?;
        let weights = &given(weights, "weights")?.weights;
        // SAFETY: contract 1.
        let how = unsafe { conv2d(scope, options) }?;
        Ok(r.conv2d_with(images, weights, how)?)
    })
}

/// Lays weights out for as many convolutions as there will be. The tensor is not needed any more after this.
#[unsafe(no_mangle)]
pub extern "C" fn tm_prepare_weights(
    gpu: Option<&tm_accelerator>,
    weights: Option<&tm_tensor>,
    groups: usize,
    prepared: Option<&mut MaybeUninit<*mut tm_weights>>,
) -> tm_status {
    guard("tm_prepare_weights", || {
        let out = place(prepared, "prepared")?;
        let weights = &given(weights, "weights")?.tensor;
        *out = handle(tm_weights { weights: opened(gpu)?.prepare_weights(weights, groups)? });
        Ok(())
    })
}

/// Frees the handle. NULL is allowed.
#[unsafe(no_mangle)]
pub extern "C" fn tm_weights_free(weights: Option<Box<tm_weights>>) {
    guarded((), || drop(weights));
}
