//! The operations on slices, on the CPU: SIMD chosen at run time, threads where they pay. Works without Vulkan.
//!
//! This module owns its kernels and the threads that they run on. It takes slices with shapes, and gives results into a
//! slice of the caller's. It knows nothing of devices, recordings or the rest of the engine but shapes and errors.
//!
//! Each function is the twin of a [`Recording`](crate::Recording) method of the same name: the same definition, the
//! same rules for shapes, the same bounds on the error, checked against the same reference with the same cases. An
//! operand is a [`View`] (a slice with a shape; a bare slice is a vector), the result goes into a slice of the
//! caller's, and the function returns the result's shape. Elements are f32, i32 or u32; those of fewer bytes are a way
//! of storing on the device, which [`cast`] makes and reads here, and integers of any size have their operations on
//! bits. Epilogues are operations of their own here, and a copy or a fill is the slice's own.
//!
//! ```
//! # fn main() -> tidemill::Result<()> {
//! use tidemill::cpu;
//! let (x, row) = ([1.0f32, 2.0, 3.0, 4.0], [10.0f32, 20.0]);
//! let mut sum = [0.0; 4];
//! let shape = cpu::add((&x, [2, 2]), &row, &mut sum)?;
//! assert_eq!(sum, [11.0, 22.0, 13.0, 24.0]);
//! assert_eq!(shape, [2, 2].into());
//!
//! let refused = cpu::add((&x, [2, 2]), &row, &mut [0.0; 3]).unwrap_err();
//! assert_eq!(refused.to_string(), "add: shape [2, 2] holds 4 elements, the data has 3");
//! # Ok(()) }
//! ```
//!
//! Threads are rayon's: a program that sizes rayon's global pool, or calls from inside a pool of its own, decides how
//! many there are. Where the system gives none, the caller's does all the work. The same operands give the same bits,
//! however many threads there are.

mod attention;
mod binary;
mod bits;
mod cast;
mod compare;
pub(crate) mod conv2d;
mod elementwise;
mod gemm;
mod generate;
mod index;
mod layout;
mod lines;
mod math;
pub(crate) mod matmul;
mod norm;
mod number;
pub(crate) mod parallel;
mod pool;
pub(crate) mod reduce;
mod resize;
mod scan;
mod simd;
mod softmax;
mod sort;
mod streaming;
mod unary;
pub(crate) mod view;

pub use attention::{Attention, Mask, attention, rotary};
pub use binary::{
    add, add_scalar, atan2, clamp, copysign, div, div_scalar, fmod, hypot, max, max_scalar, min, min_scalar,
    modulo, mul, pow, pow_scalar, prelu, scale, sub, sub_scalar,
};
pub use bits::{Integer, bit_and, bit_not, bit_or, bit_xor, count_ones, shift_left, shift_right};
pub use cast::{Cast, cast};
pub use compare::{
    eq, eq_scalar, ge, ge_scalar, gt, gt_scalar, is_inf, is_nan, le, le_scalar, logical_and, logical_not,
    logical_or, logical_xor, lt, lt_scalar, ne, ne_scalar, select,
};
pub use conv2d::{Conv2d, conv2d, conv2d_with};
pub use generate::{iota, random_normal, random_uniform};
pub use index::{
    bincount, bincount_weighted, count_outside, gather, gather_elements, gather_nd, one_hot, scatter,
    scatter_add, scatter_max, scatter_min, segment_sum,
};
pub use layout::{broadcast_to, concat, gather_rows, pad, permute, slice, slice_step, stack, transpose};
pub use matmul::{Matmul, matmul, matmul_with};
pub use norm::{add_layer_norm, add_rms_norm, batch_norm, group_norm, instance_norm, layer_norm, rms_norm};
pub use number::{Number, Signed};
pub use pool::{
    adaptive_average_pool, adaptive_max_pool, average_pool, max_pool, max_pool_places, norm_pool,
};
pub use reduce::{amax, amin, argmax, argmin, dot, mean, moments, norm, prod, sum, variance};
pub use resize::{pixel_shuffle, pixel_unshuffle, resize};
pub use scan::{cummax, cummin, cumprod, cumsum};
pub use softmax::{log_softmax, softmax};
pub use sort::{argsort, compact, nonzero, searchsorted, sort, sort_by_key, topk, unique};
pub use unary::*;
pub use view::View;
