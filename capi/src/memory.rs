//! Tensors that a function of C's fills, and tensors on memory of the application.

use std::ffi::{c_char, c_void};
use std::mem::MaybeUninit;

use tidemill::interop::HostMemory;
use tidemill::{Tensor, TensorWriter};

use crate::accelerator::{opened, tm_accelerator};
use crate::arguments::{User, dtype, elements, given, handle, place, shape, string, tm_dtype, with_type};
use crate::host_device::called;
use crate::status::{Failure, guard, guarded, tm_status};
use crate::tensor::tm_tensor;

/// Writes the contents of a tensor: all `size_bytes` bytes at `data`, which are zeros before. 0 says that it worked.
/// It must not throw.
pub type tm_fill_fn =
    Option<unsafe extern "C" fn(data: *mut c_void, size_bytes: usize, user: *mut c_void) -> i32>;

/// Has C write the elements, and says what it gave.
fn fill<T: tidemill::Element>(
    writer: &mut TensorWriter<'_, T>,
    function: unsafe extern "C" fn(*mut c_void, usize, *mut c_void) -> i32,
    user: *mut c_void,
) -> i32 {
    let data = writer.rest();
    // SAFETY: contract 4; the elements live as long as the call.
    unsafe { function(data.as_mut_ptr().cast(), size_of_val(data), user) }
}

/// A tensor whose contents a function writes straight into mapped memory, with no copy in between. (Where the host
/// can't reach the device's memory, that is staging memory up to 8 MiB, and ordinary memory for more.) TM_CALLBACK,
/// and no tensor, if it gives another number than 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tm_upload_with(
    gpu: Option<&tm_accelerator>,
    dtype: tm_dtype,
    dims: *const usize,
    rank: usize,
    fill: tm_fill_fn,
    user: *mut c_void,
    tensor: Option<&mut MaybeUninit<*mut tm_tensor>>,
) -> tm_status {
    guard("tm_upload_with", || {
        let out = place(tensor, "tensor")?;
        let gpu = opened(gpu)?;
        let function = given(fill, "fill")?;
        // SAFETY: contract 1.
        let shape = unsafe { shape("upload_with", dims, rank) }?;
        let mut said = 0;
        let tensor: Result<Tensor, Failure> = with_type!(self::dtype(dtype)?, T => {
            Ok(gpu.upload_with::<T>(shape, |writer| said = self::fill(writer, function, user))?)
        });
        let tensor = tensor?;
        called("fill", said)?;
        *out = handle(tm_tensor { tensor });
        Ok(())
    })
}

/// Overwrites the contents as tm_upload_with makes them. What still uses the old contents keeps them. TM_CALLBACK if
/// the function gives another number than 0: the contents are then what it left, and zeros.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tm_tensor_write_with(
    tensor: Option<&tm_tensor>,
    fill: tm_fill_fn,
    user: *mut c_void,
) -> tm_status {
    guard("tm_tensor_write_with", || {
        let tensor = &given(tensor, "tensor")?.tensor;
        let function = given(fill, "fill")?;
        let mut said = 0;
        let written: Result<(), Failure> = with_type!(tensor.dtype(), T => {
            Ok(tensor.write_with::<T>(|writer| said = self::fill(writer, function, user))?)
        });
        written?;
        called("fill", said)
    })
}

/// Memory of the application that tensors may lie in: a mapped file of weights, say.
#[derive(Debug)]
pub struct tm_host_memory {
    memory: HostMemory,
}

/// Takes memory back: nothing reads it any more. It is called once, on any thread, and must not throw.
pub type tm_release_fn = Option<unsafe extern "C" fn(user: *mut c_void)>;

/// Memory of C's, which is given back when nothing reads it any more.
struct Owner {
    bytes: &'static [u8],
    release: tm_release_fn,
    user: User,
}

impl AsRef<[u8]> for Owner {
    fn as_ref(&self) -> &[u8] {
        self.bytes
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        if let Some(release) = self.release {
            // SAFETY: contract 4.
            unsafe { release(self.user.pointer()) }
        }
    }
}

/// Says that `size_bytes` bytes at `data` stay as they are, and readable, until `release` is called: when the handle
/// was freed, and the last tensor on it and the last submission that reads it are gone. `release` may be NULL for
/// memory that is there until the process ends.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tm_host_memory_new(
    data: *const c_void,
    size_bytes: usize,
    release: tm_release_fn,
    user: *mut c_void,
    memory: Option<&mut MaybeUninit<*mut tm_host_memory>>,
) -> tm_status {
    guard("tm_host_memory_new", || {
        let out = place(memory, "memory")?;
        given((!data.is_null()).then_some(()), "data")?;
        // SAFETY: contract 1; the caller leaves it there until the owner is dropped.
        let bytes: &'static [u8] = unsafe { elements(data.cast(), size_bytes, "data") }?;
        *out = handle(tm_host_memory { memory: HostMemory::new(Owner { bytes, release, user: User(user) }) });
        Ok(())
    })
}

/// Frees the handle. Tensors on the memory keep it. NULL is allowed.
#[unsafe(no_mangle)]
pub extern "C" fn tm_host_memory_free(memory: Option<Box<tm_host_memory>>) {
    guarded((), || drop(memory));
}

/// A tensor on memory of the application, from a byte of it on, without a copy. The device reads the memory where it
/// is; nothing writes it: tm_tensor_write and a plan's output give the tensor memory of its own instead. It takes
/// none of the pool.
///
/// TM_HOST says why it can't be done: the device has no VK_EXT_external_memory_host, the driver refuses, or the
/// tensor does not begin at a multiple of the device's minStorageBufferOffsetAlignment. tm_import_or_upload copies
/// then.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tm_import(
    gpu: Option<&tm_accelerator>,
    memory: Option<&tm_host_memory>,
    offset_bytes: usize,
    dtype: tm_dtype,
    dims: *const usize,
    rank: usize,
    tensor: Option<&mut MaybeUninit<*mut tm_tensor>>,
) -> tm_status {
    guard("tm_import", || {
        let out = place(tensor, "tensor")?;
        let gpu = opened(gpu)?;
        let memory = &given(memory, "memory")?.memory;
        // SAFETY: contract 1.
        let shape = unsafe { shape("import", dims, rank) }?;
        *out = handle(tm_tensor { tensor: gpu.import(memory, offset_bytes, shape, self::dtype(dtype)?)? });
        Ok(())
    })
}

/// As tm_import where that can be done, and as tm_upload otherwise: `why`, if not NULL, then gets the reason, to be
/// freed with tm_string_free, and NULL otherwise.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tm_import_or_upload(
    gpu: Option<&tm_accelerator>,
    memory: Option<&tm_host_memory>,
    offset_bytes: usize,
    dtype: tm_dtype,
    dims: *const usize,
    rank: usize,
    why: Option<&mut MaybeUninit<*mut c_char>>,
    tensor: Option<&mut MaybeUninit<*mut tm_tensor>>,
) -> tm_status {
    guard("tm_import_or_upload", || {
        let out = place(tensor, "tensor")?;
        let why = why.map(|why| why.write(std::ptr::null_mut()));
        let gpu = opened(gpu)?;
        let memory = &given(memory, "memory")?.memory;
        // SAFETY: contract 1.
        let shape = unsafe { shape("import", dims, rank) }?;
        let (tensor, copied) = gpu.import_or_upload(memory, offset_bytes, shape, self::dtype(dtype)?)?;
        if let (Some(why), Some(reason)) = (why, copied) {
            *why = string(reason.to_string());
        }
        *out = handle(tm_tensor { tensor });
        Ok(())
    })
}

/// Whether the contents are still in the application's own memory, as tm_import left them; false for NULL.
#[unsafe(no_mangle)]
pub extern "C" fn tm_tensor_is_imported(tensor: Option<&tm_tensor>) -> bool {
    guarded(false, || tensor.is_some_and(|tensor| tensor.tensor.is_imported()))
}
