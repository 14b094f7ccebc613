//! Normalisation.

use std::mem::MaybeUninit;

use crate::recording::{record, record_two, tm_recording, tm_value};
use crate::status::tm_status;

/// Layer normalisation over the last dimensions, as many as `gamma` has:
/// (x - mean) / sqrt(variance + epsilon) * gamma + beta.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tm_layer_norm(
    recording: Option<&tm_recording>,
    x: tm_value,
    gamma: tm_value,
    beta: tm_value,
    epsilon: f32,
    out: Option<&mut MaybeUninit<tm_value>>,
) -> tm_status {
    record("tm_layer_norm", recording, out, |r, scope| {
        // SAFETY: contract 1.
        let x = unsafe { scope.operand(x, "x") }?;
        // SAFETY: contract 1.
        let gamma = unsafe { scope.operand(gamma, "gamma") }?;
        // SAFETY: contract 1.
        let beta = unsafe { scope.operand(beta, "beta") }?;
        Ok(r.layer_norm(x, gamma, beta, epsilon)?)
    })
}

/// x + residual, and its layer normalisation, in one pass.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tm_add_layer_norm(
    recording: Option<&tm_recording>,
    x: tm_value,
    residual: tm_value,
    gamma: tm_value,
    beta: tm_value,
    epsilon: f32,
    sum: Option<&mut MaybeUninit<tm_value>>,
    out: Option<&mut MaybeUninit<tm_value>>,
) -> tm_status {
    record_two("tm_add_layer_norm", recording, (sum, "sum"), (out, "out"), |r, scope| {
        // SAFETY: contract 1.
        let x = unsafe { scope.operand(x, "x") }?;
        // SAFETY: contract 1.
        let residual = unsafe { scope.operand(residual, "residual") }?;
        // SAFETY: contract 1.
        let gamma = unsafe { scope.operand(gamma, "gamma") }?;
        // SAFETY: contract 1.
        let beta = unsafe { scope.operand(beta, "beta") }?;
        Ok(r.add_layer_norm(x, residual, gamma, beta, epsilon)?)
    })
}

/// Normalisation by the root mean square over the last dimensions, as many as `gamma` has:
/// x / sqrt(mean(x * x) + epsilon) * gamma.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tm_rms_norm(
    recording: Option<&tm_recording>,
    x: tm_value,
    gamma: tm_value,
    epsilon: f32,
    out: Option<&mut MaybeUninit<tm_value>>,
) -> tm_status {
    record("tm_rms_norm", recording, out, |r, scope| {
        // SAFETY: contract 1.
        let x = unsafe { scope.operand(x, "x") }?;
        // SAFETY: contract 1.
        let gamma = unsafe { scope.operand(gamma, "gamma") }?;
        Ok(r.rms_norm(x, gamma, epsilon)?)
    })
}

/// x + residual, and its normalisation by the root mean square, in one pass.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tm_add_rms_norm(
    recording: Option<&tm_recording>,
    x: tm_value,
    residual: tm_value,
    gamma: tm_value,
    epsilon: f32,
    sum: Option<&mut MaybeUninit<tm_value>>,
    out: Option<&mut MaybeUninit<tm_value>>,
) -> tm_status {
    record_two("tm_add_rms_norm", recording, (sum, "sum"), (out, "out"), |r, scope| {
        // SAFETY: contract 1.
        let x = unsafe { scope.operand(x, "x") }?;
        // SAFETY: contract 1.
        let residual = unsafe { scope.operand(residual, "residual") }?;
        // SAFETY: contract 1.
        let gamma = unsafe { scope.operand(gamma, "gamma") }?;
        Ok(r.add_rms_norm(x, residual, gamma, epsilon)?)
    })
}

/// Group normalisation of [images, channels, ...] in `groups` of channels; `gamma` and `beta` have a number
/// for each channel.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tm_group_norm(
    recording: Option<&tm_recording>,
    x: tm_value,
    groups: usize,
    gamma: tm_value,
    beta: tm_value,
    epsilon: f32,
    out: Option<&mut MaybeUninit<tm_value>>,
) -> tm_status {
    record("tm_group_norm", recording, out, |r, scope| {
        // SAFETY: contract 1.
        let x = unsafe { scope.operand(x, "x") }?;
        // SAFETY: contract 1.
        let gamma = unsafe { scope.operand(gamma, "gamma") }?;
        // SAFETY: contract 1.
        let beta = unsafe { scope.operand(beta, "beta") }?;
        Ok(r.group_norm(x, groups, gamma, beta, epsilon)?)
    })
}

/// Instance normalisation of [images, channels, ...]: each channel of each image for itself.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tm_instance_norm(
    recording: Option<&tm_recording>,
    x: tm_value,
    gamma: tm_value,
    beta: tm_value,
    epsilon: f32,
    out: Option<&mut MaybeUninit<tm_value>>,
) -> tm_status {
    record("tm_instance_norm", recording, out, |r, scope| {
        // SAFETY: contract 1.
        let x = unsafe { scope.operand(x, "x") }?;
        // SAFETY: contract 1.
        let gamma = unsafe { scope.operand(gamma, "gamma") }?;
        // SAFETY: contract 1.
        let beta = unsafe { scope.operand(beta, "beta") }?;
        Ok(r.instance_norm(x, gamma, beta, epsilon)?)
    })
}

/// Batch normalisation of [images, channels, ...] as in inference: with a mean, a variance, a gamma and a
/// beta for each channel.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tm_batch_norm(
    recording: Option<&tm_recording>,
    x: tm_value,
    mean: tm_value,
    variance: tm_value,
    gamma: tm_value,
    beta: tm_value,
    epsilon: f32,
    out: Option<&mut MaybeUninit<tm_value>>,
) -> tm_status {
    record("tm_batch_norm", recording, out, |r, scope| {
        // SAFETY: contract 1.
        let x = unsafe { scope.operand(x, "x") }?;
        // SAFETY: contract 1.
        let mean = unsafe { scope.operand(mean, "mean") }?;
        // SAFETY: contract 1.
        let variance = unsafe { scope.operand(variance, "variance") }?;
        // SAFETY: contract 1.
        let gamma = unsafe { scope.operand(gamma, "gamma") }?;
        // SAFETY: contract 1.
        let beta = unsafe { scope.operand(beta, "beta") }?;
        Ok(r.batch_norm(x, mean, variance, gamma, beta, epsilon)?)
    })
}
