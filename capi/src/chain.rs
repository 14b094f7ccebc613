//! The operations of chains.

use std::ffi::c_void;
use std::mem::MaybeUninit;
use std::ops::Range;

use tidemill::hybrid::{Chain, Link};
use tidemill::{Axes, DType, cpu};

use crate::arguments::{Scalar, count, dtype, dtype_number, elements, elements_mut, given, shape, tm_dtype};
use crate::convolution::tm_conv2d_options;
use crate::elementwise::{
    TM_ADD, TM_DIV, TM_EQ, TM_GE, TM_GT, TM_LE, TM_LT, TM_MAX, TM_MIN, TM_MUL, TM_NE, TM_POW, TM_SUB,
    tm_binary_op, tm_unary_op,
};
use crate::hybrid::{step, tm_chain, tm_link, with_chain};
use crate::matmul::tm_matmul_options;
use crate::options;
use crate::reduce::{
    TM_ALL_AXES, TM_AMAX, TM_AMIN, TM_ARGMAX, TM_ARGMIN, TM_MEAN, TM_NORM, TM_PROD, TM_SUM, TM_VARIANCE,
    tm_reduce_op,
};
use crate::status::{Failure, guard, tm_status};
use crate::tensor::{put_shape, tm_tensor};

/// Runs an expression with `$T` as the Rust type of elements that the CPU computes with.
macro_rules! words_of {
    ($dtype:expr, $T:ident => $body:expr) => {
        match $dtype {
            DType::F32 => {
                type $T = f32;
                $body
            }
            DType::I32 => {
                type $T = i32;
                $body
            }
            DType::U32 => {
                type $T = u32;
                $body
            }
            other => Err(Failure::new(
                tm_status::TM_TYPE,
                format!("elements of chains are f32, i32 or u32, not {other}"),
            )),
        }
    };
}

/// An operand: `size_bytes` bytes at `data`, which must be all elements of its shape, and stay there until
/// tm_hybrid_chain returns.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tm_chain_input(
    chain: Option<&tm_chain>,
    dtype: tm_dtype,
    dims: *const usize,
    rank: usize,
    data: *const c_void,
    size_bytes: usize,
    out: Option<&mut MaybeUninit<tm_link>>,
) -> tm_status {
    step("tm_chain_input", chain, out, |chain, _| {
        // SAFETY: contract 1.
        let shape = unsafe { shape("input", dims, rank) }?;
        words_of!(self::dtype(dtype)?, T => {
            // SAFETY: contract 1; the caller leaves it there until the chain was carried out.
            let data: &'static [T] = unsafe { elements(data.cast(), count::<T>(size_bytes, "data")?, "data") }?;
            Ok(chain.input_of(cpu::View::new(data, shape))?)
        })
    })
}

/// An operand that is on the device. The tensor's handle stays until tm_hybrid_chain returns.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tm_chain_tensor(
    chain: Option<&tm_chain>,
    tensor: *const tm_tensor,
    out: Option<&mut MaybeUninit<tm_link>>,
) -> tm_status {
    step("tm_chain_tensor", chain, out, |chain, _| {
        // SAFETY: contract 1; the caller leaves it there until the chain was carried out.
        let tensor: &'static tm_tensor = given(unsafe { tensor.as_ref() }, "tensor")?;
        Ok(chain.input(&tensor.tensor)?)
    })
}

/// A result goes to `data`, which has room for exactly `size_bytes` bytes: all its elements.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tm_chain_output(
    chain: Option<&tm_chain>,
    x: tm_link,
    data: *mut c_void,
    size_bytes: usize,
) -> tm_status {
    guard("tm_chain_output", || {
        with_chain(chain, |chain, links| {
            let x = links.link(x, "x")?;
            words_of!(chain.dtype(x)?, T => {
                let count = count::<T>(size_bytes, "data")?;
                // SAFETY: contract 1; nothing else uses it until the chain was carried out.
                let data: &'static mut [T] = unsafe { elements_mut(data.cast(), count, "data") }?;
                Ok(chain.output(x, data)?)
            })
        })
    })
}

/// The extents of a link: `dims` has room for TM_MAX_RANK of them, and `rank` gets how many there are.
#[unsafe(no_mangle)]
pub extern "C" fn tm_chain_shape(
    chain: Option<&tm_chain>,
    x: tm_link,
    dims: Option<&mut MaybeUninit<[usize; 4]>>,
    rank: Option<&mut MaybeUninit<usize>>,
) -> tm_status {
    guard("tm_chain_shape", || {
        let shape = with_chain(chain, |chain, links| Ok(chain.shape(links.link(x, "x")?)?))?;
        put_shape(shape, dims, rank)
    })
}

/// The element type of a link.
#[unsafe(no_mangle)]
pub extern "C" fn tm_chain_dtype(
    chain: Option<&tm_chain>,
    x: tm_link,
    dtype: Option<&mut MaybeUninit<tm_dtype>>,
) -> tm_status {
    guard("tm_chain_dtype", || {
        let out = given(dtype, "dtype")?;
        let dtype = with_chain(chain, |chain, links| Ok(chain.dtype(links.link(x, "x")?)?))?;
        out.write(dtype_number(dtype)?);
        Ok(())
    })
}

macro_rules! unary_of_chains {
    (one_operand { $($section:ident {
        $($(#[$doc:meta])* $name:ident($variant:ident) {
            cost: $cost:ident, codes: $row_codes:tt, cpu: $cpu:expr,
            c: $c:ident = $number:literal $c_doc:literal $($step:tt)*
        })*
    })* } other_codes $codes:tt) => {
        fn unary(chain: &mut Chain<'static>, op: tm_unary_op, x: Link) -> Result<Link, Failure> {
            Ok(match op {
                $($($c => chain.$name(x)?,)*)*
                other => return Err(Failure::unknown("op", other)),
            })
        }
    };
}

use crate::elementwise::*;

tidemill::elementwise_ops!(unary_of_chains);

/// As tm_unary.
#[unsafe(no_mangle)]
pub extern "C" fn tm_chain_unary(
    chain: Option<&tm_chain>,
    op: tm_unary_op,
    x: tm_link,
    out: Option<&mut MaybeUninit<tm_link>>,
) -> tm_status {
    step("tm_chain_unary", chain, out, |chain, links| unary(chain, op, links.link(x, "x")?))
}

/// As tm_binary.
#[unsafe(no_mangle)]
pub extern "C" fn tm_chain_binary(
    chain: Option<&tm_chain>,
    op: tm_binary_op,
    a: tm_link,
    b: tm_link,
    out: Option<&mut MaybeUninit<tm_link>>,
) -> tm_status {
    step("tm_chain_binary", chain, out, |chain, links| {
        let (a, b) = (links.link(a, "a")?, links.link(b, "b")?);
        Ok(match op {
            TM_ADD => chain.add(a, b)?,
            TM_SUB => chain.sub(a, b)?,
            TM_MUL => chain.mul(a, b)?,
            TM_DIV => chain.div(a, b)?,
            TM_POW => chain.pow(a, b)?,
            TM_MIN => chain.min(a, b)?,
            TM_MAX => chain.max(a, b)?,
            TM_EQ => chain.eq(a, b)?,
            TM_NE => chain.ne(a, b)?,
            TM_LT => chain.lt(a, b)?,
            TM_LE => chain.le(a, b)?,
            TM_GT => chain.gt(a, b)?,
            TM_GE => chain.ge(a, b)?,
            other => return Err(Failure::unknown("op", other)),
        })
    })
}

/// As tm_binary_scalar.
#[unsafe(no_mangle)]
pub extern "C" fn tm_chain_binary_scalar(
    chain: Option<&tm_chain>,
    op: tm_binary_op,
    a: tm_link,
    b: f64,
    out: Option<&mut MaybeUninit<tm_link>>,
) -> tm_status {
    step("tm_chain_binary_scalar", chain, out, |chain, links| {
        let a = links.link(a, "a")?;
        match chain.dtype(a)? {
            DType::F32 if op == TM_POW => Ok(chain.pow_scalar(a, f32::from_number(b)?)?),
            DType::I32 => with_scalar(chain, op, a, i32::from_number(b)?),
            DType::U32 => with_scalar(chain, op, a, u32::from_number(b)?),
            _ => with_scalar(chain, op, a, f32::from_number(b)?),
        }
    })
}

fn with_scalar<T: Scalar + cpu::Number>(
    chain: &mut Chain<'static>,
    op: tm_binary_op,
    a: Link,
    b: T,
) -> Result<Link, Failure> {
    Ok(match op {
        TM_ADD => chain.add_scalar(a, b)?,
        TM_SUB => chain.sub_scalar(a, b)?,
        TM_MUL => chain.scale(a, b)?,
        TM_DIV => chain.div_scalar(a, b)?,
        TM_MIN => chain.min_scalar(a, b)?,
        TM_MAX => chain.max_scalar(a, b)?,
        TM_EQ => chain.eq_scalar(a, b)?,
        TM_NE => chain.ne_scalar(a, b)?,
        TM_LT => chain.lt_scalar(a, b)?,
        TM_LE => chain.le_scalar(a, b)?,
        TM_GT => chain.gt_scalar(a, b)?,
        TM_GE => chain.ge_scalar(a, b)?,
        other => return Err(Failure::unknown("op", other)),
    })
}

/// As tm_leaky_relu.
#[unsafe(no_mangle)]
pub extern "C" fn tm_chain_leaky_relu(
    chain: Option<&tm_chain>,
    x: tm_link,
    alpha: f32,
    out: Option<&mut MaybeUninit<tm_link>>,
) -> tm_status {
    step("tm_chain_leaky_relu", chain, out, |chain, links| Ok(chain.leaky_relu(links.link(x, "x")?, alpha)?))
}

/// As tm_elu.
#[unsafe(no_mangle)]
pub extern "C" fn tm_chain_elu(
    chain: Option<&tm_chain>,
    x: tm_link,
    alpha: f32,
    out: Option<&mut MaybeUninit<tm_link>>,
) -> tm_status {
    step("tm_chain_elu", chain, out, |chain, links| Ok(chain.elu(links.link(x, "x")?, alpha)?))
}

/// As tm_celu.
#[unsafe(no_mangle)]
pub extern "C" fn tm_chain_celu(
    chain: Option<&tm_chain>,
    x: tm_link,
    alpha: f32,
    out: Option<&mut MaybeUninit<tm_link>>,
) -> tm_status {
    step("tm_chain_celu", chain, out, |chain, links| Ok(chain.celu(links.link(x, "x")?, alpha)?))
}

/// As tm_clip.
#[unsafe(no_mangle)]
pub extern "C" fn tm_chain_clip(
    chain: Option<&tm_chain>,
    x: tm_link,
    lo: f32,
    hi: f32,
    out: Option<&mut MaybeUninit<tm_link>>,
) -> tm_status {
    step("tm_chain_clip", chain, out, |chain, links| Ok(chain.clip(links.link(x, "x")?, lo, hi)?))
}

/// As tm_select.
#[unsafe(no_mangle)]
pub extern "C" fn tm_chain_select(
    chain: Option<&tm_chain>,
    mask: tm_link,
    a: tm_link,
    b: tm_link,
    out: Option<&mut MaybeUninit<tm_link>>,
) -> tm_status {
    step("tm_chain_select", chain, out, |chain, links| {
        Ok(chain.select(links.link(mask, "mask")?, links.link(a, "a")?, links.link(b, "b")?)?)
    })
}

/// As tm_cast.
#[unsafe(no_mangle)]
pub extern "C" fn tm_chain_cast(
    chain: Option<&tm_chain>,
    x: tm_link,
    to: tm_dtype,
    out: Option<&mut MaybeUninit<tm_link>>,
) -> tm_status {
    step("tm_chain_cast", chain, out, |chain, links| Ok(chain.cast(links.link(x, "x")?, dtype(to)?)?))
}

/// As tm_reduce.
#[unsafe(no_mangle)]
pub extern "C" fn tm_chain_reduce(
    chain: Option<&tm_chain>,
    op: tm_reduce_op,
    x: tm_link,
    axis: i32,
    keep: bool,
    out: Option<&mut MaybeUninit<tm_link>>,
) -> tm_status {
    step("tm_chain_reduce", chain, out, |chain, links| {
        let x = links.link(x, "x")?;
        let axes = if axis == TM_ALL_AXES { Axes::ALL } else { Axes::at(axis as isize) };
        let axes = if keep { axes.keep() } else { axes };
        Ok(match op {
            TM_SUM => chain.sum(x, axes)?,
            TM_MEAN => chain.mean(x, axes)?,
            TM_PROD => chain.prod(x, axes)?,
            TM_AMAX => chain.amax(x, axes)?,
            TM_AMIN => chain.amin(x, axes)?,
            TM_ARGMAX => chain.argmax(x, axes)?,
            TM_ARGMIN => chain.argmin(x, axes)?,
            TM_NORM => chain.norm(x, axes)?,
            TM_VARIANCE => chain.variance(x, axes)?,
            other => return Err(Failure::unknown("op", other)),
        })
    })
}

/// As tm_dot.
#[unsafe(no_mangle)]
pub extern "C" fn tm_chain_dot(
    chain: Option<&tm_chain>,
    a: tm_link,
    b: tm_link,
    out: Option<&mut MaybeUninit<tm_link>>,
) -> tm_status {
    step("tm_chain_dot", chain, out, |chain, links| Ok(chain.dot(links.link(a, "a")?, links.link(b, "b")?)?))
}

/// As tm_softmax.
#[unsafe(no_mangle)]
pub extern "C" fn tm_chain_softmax(
    chain: Option<&tm_chain>,
    x: tm_link,
    axis: i32,
    out: Option<&mut MaybeUninit<tm_link>>,
) -> tm_status {
    step(
        "tm_chain_softmax",
        chain,
        out,
        |chain, links| Ok(chain.softmax(links.link(x, "x")?, axis as isize)?),
    )
}

/// As tm_log_softmax.
#[unsafe(no_mangle)]
pub extern "C" fn tm_chain_log_softmax(
    chain: Option<&tm_chain>,
    x: tm_link,
    axis: i32,
    out: Option<&mut MaybeUninit<tm_link>>,
) -> tm_status {
    step("tm_chain_log_softmax", chain, out, |chain, links| {
        Ok(chain.log_softmax(links.link(x, "x")?, axis as isize)?)
    })
}

fn no_epilogue(step_count: usize) -> Result<(), Failure> {
    if step_count == 0 {
        return Ok(());
    }
    let message = format!("options have {step_count} steps; record them as operations of the chain");
    Err(Failure::argument(message))
}

/// As tm_matmul. Options may transpose and scale; what is added to the product is an operation of its own here.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tm_chain_matmul(
    chain: Option<&tm_chain>,
    lhs: tm_link,
    rhs: tm_link,
    options: *const tm_matmul_options,
    out: Option<&mut MaybeUninit<tm_link>>,
) -> tm_status {
    step("tm_chain_matmul", chain, out, |chain, links| {
        let mut how = cpu::Matmul::new();
        if !options.is_null() {
            // SAFETY: contract 1.
            let options = unsafe { options::read(options, "options") }?;
            no_epilogue(options.step_count)?;
            if !options.accumulate.is_none() {
                let message = "options have something to accumulate; add it by tm_chain_binary".to_owned();
                return Err(Failure::argument(message));
            }
            how = how.alpha(options.alpha);
            if options.transpose_lhs {
                how = how.transpose_lhs();
            }
            if options.transpose_rhs {
                how = how.transpose_rhs();
            }
        }
        Ok(chain.matmul_with(links.link(lhs, "lhs")?, links.link(rhs, "rhs")?, how)?)
    })
}

/// As tm_conv2d, without steps.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tm_chain_conv2d(
    chain: Option<&tm_chain>,
    images: tm_link,
    weights: tm_link,
    options: *const tm_conv2d_options,
    out: Option<&mut MaybeUninit<tm_link>>,
) -> tm_status {
    step("tm_chain_conv2d", chain, out, |chain, links| {
        let mut how = cpu::Conv2d::new();
        if !options.is_null() {
            // SAFETY: contract 1.
            let options = unsafe { options::read(options, "options") }?;
            no_epilogue(options.step_count)?;
            how = how.stride(options.stride).padding(options.padding).dilation(options.dilation);
            if options.groups > 0 {
                how = how.groups(options.groups);
            }
        }
        Ok(chain.conv2d_with(links.link(images, "images")?, links.link(weights, "weights")?, how)?)
    })
}

/// As tm_permute.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tm_chain_permute(
    chain: Option<&tm_chain>,
    x: tm_link,
    order: *const usize,
    rank: usize,
    out: Option<&mut MaybeUninit<tm_link>>,
) -> tm_status {
    step("tm_chain_permute", chain, out, |chain, links| {
        // SAFETY: contract 1.
        Ok(chain.permute(links.link(x, "x")?, unsafe { elements(order, rank, "order") }?)?)
    })
}

/// As tm_transpose.
#[unsafe(no_mangle)]
pub extern "C" fn tm_chain_transpose(
    chain: Option<&tm_chain>,
    x: tm_link,
    out: Option<&mut MaybeUninit<tm_link>>,
) -> tm_status {
    step("tm_chain_transpose", chain, out, |chain, links| Ok(chain.transpose(links.link(x, "x")?)?))
}

/// As tm_slice.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tm_chain_slice(
    chain: Option<&tm_chain>,
    x: tm_link,
    begin: *const usize,
    end: *const usize,
    count: usize,
    out: Option<&mut MaybeUninit<tm_link>>,
) -> tm_status {
    step("tm_chain_slice", chain, out, |chain, links| {
        // SAFETY: contract 1.
        let begin = unsafe { elements(begin, count, "begin") }?;
        // SAFETY: contract 1.
        let end = unsafe { elements(end, count, "end") }?;
        let ranges: Vec<Range<usize>> = begin.iter().zip(end).map(|(&begin, &end)| begin..end).collect();
        Ok(chain.slice(links.link(x, "x")?, &ranges[..])?)
    })
}

/// As tm_broadcast_to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tm_chain_broadcast_to(
    chain: Option<&tm_chain>,
    x: tm_link,
    dims: *const usize,
    rank: usize,
    out: Option<&mut MaybeUninit<tm_link>>,
) -> tm_status {
    step("tm_chain_broadcast_to", chain, out, |chain, links| {
        // SAFETY: contract 1.
        let shape = unsafe { shape("broadcast_to", dims, rank) }?;
        Ok(chain.broadcast_to(links.link(x, "x")?, shape)?)
    })
}

/// # Safety
///
/// Contract 1.
unsafe fn links_of(
    links: &crate::hybrid::Recorded,
    xs: *const tm_link,
    count: usize,
) -> Result<Vec<Link>, Failure> {
    // SAFETY: contract 1.
    let xs = unsafe { elements(xs, count, "xs") }?;
    xs.iter().enumerate().map(|(i, x)| links.link(*x, &format!("xs[{i}]"))).collect()
}

/// As tm_concat.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tm_chain_concat(
    chain: Option<&tm_chain>,
    xs: *const tm_link,
    count: usize,
    axis: i32,
    out: Option<&mut MaybeUninit<tm_link>>,
) -> tm_status {
    step("tm_chain_concat", chain, out, |chain, links| {
        // SAFETY: contract 1.
        Ok(chain.concat(&unsafe { links_of(links, xs, count) }?, axis as isize)?)
    })
}

/// As tm_stack.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tm_chain_stack(
    chain: Option<&tm_chain>,
    xs: *const tm_link,
    count: usize,
    axis: i32,
    out: Option<&mut MaybeUninit<tm_link>>,
) -> tm_status {
    step("tm_chain_stack", chain, out, |chain, links| {
        // SAFETY: contract 1.
        Ok(chain.stack(&unsafe { links_of(links, xs, count) }?, axis as isize)?)
    })
}

/// As tm_pad.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tm_chain_pad(
    chain: Option<&tm_chain>,
    x: tm_link,
    before: *const usize,
    after: *const usize,
    rank: usize,
    element: f64,
    out: Option<&mut MaybeUninit<tm_link>>,
) -> tm_status {
    step("tm_chain_pad", chain, out, |chain, links| {
        let x = links.link(x, "x")?;
        // SAFETY: contract 1.
        let before = unsafe { elements(before, rank, "before") }?;
        // SAFETY: contract 1.
        let after = unsafe { elements(after, rank, "after") }?;
        let pads: Vec<(usize, usize)> = before.iter().copied().zip(after.iter().copied()).collect();
        words_of!(chain.dtype(x)?, T => Ok(chain.pad(x, &pads, T::from_number(element)?)?))
    })
}

/// As tm_gather_rows.
#[unsafe(no_mangle)]
pub extern "C" fn tm_chain_gather_rows(
    chain: Option<&tm_chain>,
    table: tm_link,
    rows: tm_link,
    out: Option<&mut MaybeUninit<tm_link>>,
) -> tm_status {
    step("tm_chain_gather_rows", chain, out, |chain, links| {
        Ok(chain.gather_rows(links.link(table, "table")?, links.link(rows, "rows")?)?)
    })
}
