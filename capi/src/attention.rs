//! Attention.

use std::mem::MaybeUninit;

use tidemill::{Attention, RotaryPairs};

use crate::options::{self, Options, options};
use crate::recording::{record, tm_recording, tm_value};
use crate::status::{Failure, guard, tm_status};

/// How attention is taken. Begin with tm_attention_defaults().
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct tm_attention_options {
    /// sizeof(tm_attention_options), as tm_attention_defaults() sets it.
    pub size: usize,
    /// A query sees no key behind its own place. Queries are the last ones of the keys.
    pub causal: bool,
    /// A query sees keys less than so many places away only; 0 is no window.
    pub window: u32,
    /// The factor of scores; 0 is 1 / sqrt(depth).
    pub scale: f32,
    /// Scores become soft_cap * tanh(score / soft_cap); 0 is no cap.
    pub soft_cap: f32,
    /// Floats that are added to scores, or u32 of which a 0 hides a key; or all zeros.
    pub mask: tm_value,
    /// One u32: how many of the keys there are; or all zeros, which is all of them.
    pub length: tm_value,
}

options!(tm_attention_options, least: size_of::<tm_attention_options>(), defaults: tm_attention_options {
    size: size_of::<tm_attention_options>(),
    causal: false,
    window: 0,
    scale: 0.0,
    soft_cap: 0.0,
    mask: tm_value::NONE,
    length: tm_value::NONE,
});

/// Every query sees every key. tm_attention_defaults() calls it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tm_attention_options_init(
    options: *mut tm_attention_options,
    size: usize,
) -> tm_status {
    guard("tm_attention_options_init", || {
        // SAFETY: contract 1: so many bytes are there.
        unsafe { options::write(options, size, "options", tm_attention_options::DEFAULTS) }
    })
}

/// softmax(scale * q * transposed k + mask) * v of [batch, heads, tokens, depth] with [batch, kv_heads, keys, depth]
/// and [batch, kv_heads, keys, width]; floats. Scores are never in memory. NULL for `options` means the defaults.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tm_attention(
    recording: Option<&tm_recording>,
    q: tm_value,
    k: tm_value,
    v: tm_value,
    options: *const tm_attention_options,
    out: Option<&mut MaybeUninit<tm_value>>,
) -> tm_status {
    record("tm_attention", recording, out, |r, scope| {
        // SAFETY: contract 1.
        let q = unsafe { scope.operand(q, "q") }?;
        // SAFETY: contract 1.
        let k = unsafe { scope.operand(k, "k") }?;
        // SAFETY: contract 1.
        let v = unsafe { scope.operand(v, "v") }?;
        let mut how = Attention::new();
        if !options.is_null() {
            // SAFETY: contract 1.
            let options = unsafe { options::read(options, "options") }?;
            how = if options.causal { how.causal() } else { how };
            how = if options.window == 0 { how } else { how.window(options.window) };
            how = if options.scale == 0.0 { how } else { how.scale(options.scale) };
            how = if options.soft_cap == 0.0 { how } else { how.soft_cap(options.soft_cap) };
            if !options.mask.is_none() {
                // SAFETY: contract 1.
                how = how.mask(unsafe { scope.operand(options.mask, "mask") }?);
            }
            if !options.length.is_none() {
                // SAFETY: contract 1.
                how = how.length(unsafe { scope.operand(options.length, "length") }?);
            }
        }
        Ok(r.attention(q, k, v, how)?)
    })
}

/// Which columns tm_rotary turns together: TM_ROTARY_HALVES and so on.
pub type tm_rotary_pairs = u32;
/// i and i + depth / 2.
pub const TM_ROTARY_HALVES: tm_rotary_pairs = 0;
/// 2 * i and 2 * i + 1.
pub const TM_ROTARY_NEIGHBOURS: tm_rotary_pairs = 1;

/// Rotary embedding of [..., tokens, depth]; floats. `positions` are u32: one for each token, or that of the first. The
/// usual base is 10000.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tm_rotary(
    recording: Option<&tm_recording>,
    x: tm_value,
    positions: tm_value,
    base: f32,
    pairs: tm_rotary_pairs,
    out: Option<&mut MaybeUninit<tm_value>>,
) -> tm_status {
    record("tm_rotary", recording, out, |r, scope| {
        // SAFETY: contract 1.
        let x = unsafe { scope.operand(x, "x") }?;
        // SAFETY: contract 1.
        let positions = unsafe { scope.operand(positions, "positions") }?;
        let pairs = match pairs {
            TM_ROTARY_HALVES => RotaryPairs::Halves,
            TM_ROTARY_NEIGHBOURS => RotaryPairs::Neighbours,
            other => return Err(Failure::unknown("pairs", other)),
        };
        Ok(r.rotary(x, positions, base, pairs)?)
    })
}
