//! Tensors.

use std::ffi::c_void;
use std::mem::MaybeUninit;

use tidemill::{Error, MAX_RANK, Tensor};

use crate::TM_MAX_RANK;
use crate::accelerator::{opened, tm_accelerator};
use crate::arguments::{
    count, dtype, dtype_number, elements, elements_mut, given, handle, place, shape, tm_dtype, with_type,
};
use crate::status::{Failure, guard, guarded, tm_status};

/// A dense, row-major tensor in device memory. Operations never change one; tm_tensor_write does, and what was recorded
/// before sees the old contents.
#[derive(Debug)]
pub struct tm_tensor {
    pub(crate) tensor: Tensor,
}

/// A tensor with a copy of `size_bytes` bytes at `data`, which must be all elements of its shape.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tm_upload(
    gpu: Option<&tm_accelerator>,
    dtype: tm_dtype,
    dims: *const usize,
    rank: usize,
    data: *const c_void,
    size_bytes: usize,
    tensor: Option<&mut MaybeUninit<*mut tm_tensor>>,
) -> tm_status {
    guard("tm_upload", || {
        let out = place(tensor, "tensor")?;
        let gpu = opened(gpu)?;
        // SAFETY: contract 1.
        let shape = unsafe { shape("upload", dims, rank) }?;
        let tensor: Result<Tensor, Failure> = with_type!(self::dtype(dtype)?, T => {
            // SAFETY: contract 1.
            let data = unsafe { elements(data.cast::<T>(), count::<T>(size_bytes, "data")?, "data") }?;
            Ok(gpu.upload(data, shape)?)
        });
        *out = handle(tm_tensor { tensor: tensor? });
        Ok(())
    })
}

/// A tensor of indices, of TM_I32, from `count` 64-bit ones, which must be all elements of its shape. TM_PARAMETER if
/// one does not fit; the message has the first.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tm_upload_indices(
    gpu: Option<&tm_accelerator>,
    dims: *const usize,
    rank: usize,
    data: *const i64,
    count: usize,
    tensor: Option<&mut MaybeUninit<*mut tm_tensor>>,
) -> tm_status {
    guard("tm_upload_indices", || {
        let out = place(tensor, "tensor")?;
        let gpu = opened(gpu)?;
        // SAFETY: contract 1.
        let shape = unsafe { shape("upload_indices", dims, rank) }?;
        // SAFETY: contract 1.
        let data = unsafe { elements(data, count, "data") }?;
        *out = handle(tm_tensor { tensor: gpu.upload_indices(data, shape)? });
        Ok(())
    })
}

/// A tensor of zeros.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tm_zeros(
    gpu: Option<&tm_accelerator>,
    dtype: tm_dtype,
    dims: *const usize,
    rank: usize,
    tensor: Option<&mut MaybeUninit<*mut tm_tensor>>,
) -> tm_status {
    guard("tm_zeros", || {
        let out = place(tensor, "tensor")?;
        let gpu = opened(gpu)?;
        // SAFETY: contract 1.
        let shape = unsafe { shape("zeros", dims, rank) }?;
        let tensor: Result<Tensor, Failure> =
            with_type!(self::dtype(dtype)?, T => Ok(gpu.zeros::<T>(shape)?));
        *out = handle(tm_tensor { tensor: tensor? });
        Ok(())
    })
}

/// A tensor without contents: to be written, or to be bound as a plan's output.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tm_empty(
    gpu: Option<&tm_accelerator>,
    dtype: tm_dtype,
    dims: *const usize,
    rank: usize,
    tensor: Option<&mut MaybeUninit<*mut tm_tensor>>,
) -> tm_status {
    guard("tm_empty", || {
        let out = place(tensor, "tensor")?;
        let gpu = opened(gpu)?;
        // SAFETY: contract 1.
        let shape = unsafe { shape("empty", dims, rank) }?;
        *out = handle(tm_tensor { tensor: gpu.empty(shape, self::dtype(dtype)?)? });
        Ok(())
    })
}

/// Overwrites the contents. Never waits for the device: what still uses the old contents keeps them.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tm_tensor_write(
    tensor: Option<&tm_tensor>,
    data: *const c_void,
    size_bytes: usize,
) -> tm_status {
    guard("tm_tensor_write", || {
        let tensor = &given(tensor, "tensor")?.tensor;
        with_type!(tensor.dtype(), T => {
            // SAFETY: contract 1.
            let data = unsafe { elements(data.cast::<T>(), count::<T>(size_bytes, "data")?, "data") }?;
            Ok(tensor.write(data)?)
        })
    })
}

/// Copies the contents to `data`, which has room for exactly `size_bytes` bytes: all elements. Waits for the submission
/// that writes them, and for nothing else.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tm_tensor_read(
    tensor: Option<&tm_tensor>,
    data: *mut c_void,
    size_bytes: usize,
) -> tm_status {
    guard("tm_tensor_read", || {
        let tensor = &given(tensor, "tensor")?.tensor;
        with_type!(tensor.dtype(), T => {
            let count = count::<T>(size_bytes, "data")?;
            if count != tensor.shape().elements() {
                return Err(Error::Length { op: "read", shape: tensor.shape(), got: count }.into());
            }
            // SAFETY: contract 1.
            let data = unsafe { elements_mut(data.cast::<T>(), count, "data") }?;
            Ok(tensor.read_into(data)?)
        })
    })
}

/// The extents: `dims` has room for TM_MAX_RANK of them, and `rank` gets how many there are.
#[unsafe(no_mangle)]
pub extern "C" fn tm_tensor_shape(
    tensor: Option<&tm_tensor>,
    dims: Option<&mut MaybeUninit<[usize; TM_MAX_RANK]>>,
    rank: Option<&mut MaybeUninit<usize>>,
) -> tm_status {
    guard("tm_tensor_shape", || {
        let shape = given(tensor, "tensor")?.tensor.shape();
        put_shape(shape, dims, rank)
    })
}

pub(crate) fn put_shape(
    shape: tidemill::Shape,
    dims: Option<&mut MaybeUninit<[usize; TM_MAX_RANK]>>,
    rank: Option<&mut MaybeUninit<usize>>,
) -> Result<(), Failure> {
    const { assert!(MAX_RANK == TM_MAX_RANK) };
    let (dims, rank) = (given(dims, "dims")?, given(rank, "rank")?);
    let mut extents = [0; MAX_RANK];
    extents[..shape.rank()].copy_from_slice(shape.dims());
    dims.write(extents);
    rank.write(shape.rank());
    Ok(())
}

/// The element type.
#[unsafe(no_mangle)]
pub extern "C" fn tm_tensor_dtype(
    tensor: Option<&tm_tensor>,
    dtype: Option<&mut MaybeUninit<tm_dtype>>,
) -> tm_status {
    guard("tm_tensor_dtype", || {
        let out = given(dtype, "dtype")?;
        out.write(dtype_number(given(tensor, "tensor")?.tensor.dtype())?);
        Ok(())
    })
}

/// The size of the contents; 0 for NULL.
#[unsafe(no_mangle)]
pub extern "C" fn tm_tensor_size_bytes(tensor: Option<&tm_tensor>) -> u64 {
    guarded(0, || tensor.map_or(0, |tensor| tensor.tensor.size_bytes()))
}

/// The same contents with another shape of as many elements, as a handle of its own; nothing is copied.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tm_tensor_reshape(
    tensor: Option<&tm_tensor>,
    dims: *const usize,
    rank: usize,
    reshaped: Option<&mut MaybeUninit<*mut tm_tensor>>,
) -> tm_status {
    guard("tm_tensor_reshape", || {
        let out = place(reshaped, "reshaped")?;
        // SAFETY: contract 1.
        let shape = unsafe { shape("reshape", dims, rank) }?;
        *out = handle(tm_tensor { tensor: given(tensor, "tensor")?.tensor.reshape(shape)? });
        Ok(())
    })
}

/// A handle of the accelerator that the tensor is on, to be freed.
#[unsafe(no_mangle)]
pub extern "C" fn tm_tensor_accelerator(
    tensor: Option<&tm_tensor>,
    gpu: Option<&mut MaybeUninit<*mut tm_accelerator>>,
) -> tm_status {
    guard("tm_tensor_accelerator", || {
        let out = place(gpu, "gpu")?;
        *out = handle(tm_accelerator::new(given(tensor, "tensor")?.tensor.accelerator()));
        Ok(())
    })
}

/// One more handle of the same tensor.
#[unsafe(no_mangle)]
pub extern "C" fn tm_tensor_clone(
    tensor: Option<&tm_tensor>,
    clone: Option<&mut MaybeUninit<*mut tm_tensor>>,
) -> tm_status {
    guard("tm_tensor_clone", || {
        let out = place(clone, "clone")?;
        *out = handle(tm_tensor { tensor: given(tensor, "tensor")?.tensor.clone() });
        Ok(())
    })
}

/// Frees the handle. The memory goes back to the pool with the last handle and the last submission that uses it. NULL
/// is allowed.
#[unsafe(no_mangle)]
pub extern "C" fn tm_tensor_free(tensor: Option<Box<tm_tensor>>) {
    guarded((), || drop(tensor));
}
