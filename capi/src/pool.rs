//! Pooling.

use std::mem::MaybeUninit;

use tidemill::{Coordinates, Interpolation, Pool};

use crate::arguments::elements;
use crate::recording::{record, tm_recording, tm_value};
use crate::status::{Failure, tm_status};

/// The result for each window: TM_POOL_MAX and so on.
pub type tm_pool_op = u32;
/// The largest element.
pub const TM_POOL_MAX: tm_pool_op = 0;
/// The place of the largest element, counted through the dimensions of the windows; u32.
pub const TM_POOL_MAX_PLACE: tm_pool_op = 1;
/// The mean of the elements inside.
pub const TM_POOL_AVERAGE: tm_pool_op = 2;
/// (sum of |x|^p)^(1/p).
pub const TM_POOL_NORM: tm_pool_op = 3;

/// A flag of tm_pool: a last window that reaches beyond the padding counts.
pub const TM_POOL_CEIL: u32 = 1;
/// A flag of tm_pool: means divide by the elements of the padding, too.
pub const TM_POOL_COUNT_PADDING: u32 = 2;

/// # Safety
///
/// Contract 1: NULL, or `count` numbers.
unsafe fn given<'a>(numbers: *const usize, count: usize, name: &str) -> Result<Option<&'a [usize]>, Failure> {
    // SAFETY: contract 1.
    if numbers.is_null() { Ok(None) } else { unsafe { elements(numbers, count, name) }.map(Some) }
}

/// A number from each window of the last `rank` dimensions, one to three; floats. `window`, `stride` and `dilation`
/// have a number for each dimension, `padding` two, before and after it. NULL stands for windows side by side, for no
/// padding, for neighbours. `p` is read by TM_POOL_NORM alone.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tm_pool(
    recording: Option<&tm_recording>,
    op: tm_pool_op,
    x: tm_value,
    window: *const usize,
    stride: *const usize,
    padding: *const usize,
    dilation: *const usize,
    rank: usize,
    flags: u32,
    p: f32,
    out: Option<&mut MaybeUninit<tm_value>>,
) -> tm_status {
    record("tm_pool", recording, out, |r, scope| {
        // SAFETY: contract 1.
        let x = unsafe { scope.operand(x, "x") }?;
        // SAFETY: contract 1.
        let mut pool = Pool::new(unsafe { elements(window, rank, "window") }?);
        // SAFETY: contract 1.
        if let Some(stride) = unsafe { given(stride, rank, "stride") }? {
            pool = pool.stride(stride);
        }
        // SAFETY: contract 1.
        if let Some(padding) = unsafe { given(padding, rank.saturating_mul(2), "padding") }? {
            let pairs: Vec<_> = padding.chunks_exact(2).map(|pair| (pair[0], pair[1])).collect();
            pool = pool.padding(&pairs);
        }
        // SAFETY: contract 1.
        if let Some(dilation) = unsafe { given(dilation, rank, "dilation") }? {
            pool = pool.dilation(dilation);
        }
        if flags & !(TM_POOL_CEIL | TM_POOL_COUNT_PADDING) != 0 {
            return Err(Failure::unknown("flags", flags));
        }
        pool = if flags & TM_POOL_CEIL != 0 { pool.ceil() } else { pool };
        pool = if flags & TM_POOL_COUNT_PADDING != 0 { pool.count_padding() } else { pool };
        Ok(match op {
            TM_POOL_MAX => r.max_pool(x, pool)?,
            TM_POOL_MAX_PLACE => r.max_pool_with_places(x, pool)?.1,
            TM_POOL_AVERAGE => r.average_pool(x, pool)?,
            TM_POOL_NORM => r.norm_pool(x, p, pool)?,
            other => return Err(Failure::unknown("op", other)),
        })
    })
}

/// How tm_resize makes an element: TM_NEAREST and so on.
pub type tm_interpolation = u32;
/// The nearest one, of two the lower.
pub const TM_NEAREST: tm_interpolation = 0;
/// The one below.
pub const TM_BELOW: tm_interpolation = 1;
/// Of the two around it, in each dimension.
pub const TM_LINEAR: tm_interpolation = 2;
/// Of four, in each dimension.
pub const TM_CUBIC: tm_interpolation = 3;

/// Where elements of a resized image lie: TM_HALF_PIXEL and so on.
pub type tm_coordinates = u32;
/// (x + 1/2) * from / to - 1/2.
pub const TM_HALF_PIXEL: tm_coordinates = 0;
/// x * (from - 1) / (to - 1).
pub const TM_ALIGN_CORNERS: tm_coordinates = 1;
/// x * from / to.
pub const TM_ASYMMETRIC: tm_coordinates = 2;

/// The last `rank` dimensions, one to three, with other extents; floats.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tm_resize(
    recording: Option<&tm_recording>,
    x: tm_value,
    extents: *const usize,
    rank: usize,
    interpolation: tm_interpolation,
    coordinates: tm_coordinates,
    out: Option<&mut MaybeUninit<tm_value>>,
) -> tm_status {
    record("tm_resize", recording, out, |r, scope| {
        // SAFETY: contract 1.
        let x = unsafe { scope.operand(x, "x") }?;
        // SAFETY: contract 1.
        let extents = unsafe { elements(extents, rank, "extents") }?;
        let interpolation = match interpolation {
            TM_NEAREST => Interpolation::Nearest,
            TM_BELOW => Interpolation::Floor,
            TM_LINEAR => Interpolation::Linear,
            TM_CUBIC => Interpolation::Cubic,
            other => return Err(Failure::unknown("interpolation", other)),
        };
        let coordinates = match coordinates {
            TM_HALF_PIXEL => Coordinates::HalfPixel,
            TM_ALIGN_CORNERS => Coordinates::AlignCorners,
            TM_ASYMMETRIC => Coordinates::Asymmetric,
            other => return Err(Failure::unknown("coordinates", other)),
        };
        Ok(r.resize(x, extents, interpolation, coordinates)?)
    })
}

/// Channels to pixels: [..., c * f * f, h, w] to [..., c, h * f, w * f].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tm_pixel_shuffle(
    recording: Option<&tm_recording>,
    x: tm_value,
    factor: usize,
    out: Option<&mut MaybeUninit<tm_value>>,
) -> tm_status {
    record("tm_pixel_shuffle", recording, out, |r, scope| {
        // SAFETY: contract 1.
        Ok(r.pixel_shuffle(unsafe { scope.operand(x, "x") }?, factor)?)
    })
}

/// Pixels to channels: [..., c, h * f, w * f] to [..., c * f * f, h, w].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tm_pixel_unshuffle(
    recording: Option<&tm_recording>,
    x: tm_value,
    factor: usize,
    out: Option<&mut MaybeUninit<tm_value>>,
) -> tm_status {
    record("tm_pixel_unshuffle", recording, out, |r, scope| {
        // SAFETY: contract 1.
        Ok(r.pixel_unshuffle(unsafe { scope.operand(x, "x") }?, factor)?)
    })
}

/// As tm_pool, TM_POOL_MAX and TM_POOL_AVERAGE, with windows that cut the last `rank` dimensions into this many parts.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tm_adaptive_pool(
    recording: Option<&tm_recording>,
    op: tm_pool_op,
    x: tm_value,
    parts: *const usize,
    rank: usize,
    out: Option<&mut MaybeUninit<tm_value>>,
) -> tm_status {
    record("tm_adaptive_pool", recording, out, |r, scope| {
        // SAFETY: contract 1.
        let x = unsafe { scope.operand(x, "x") }?;
        // SAFETY: contract 1.
        let parts = unsafe { elements(parts, rank, "parts") }?;
        Ok(match op {
            TM_POOL_MAX => r.adaptive_max_pool(x, parts)?,
            TM_POOL_AVERAGE => r.adaptive_average_pool(x, parts)?,
            other => return Err(Failure::unknown("op", other)),
        })
    })
}
