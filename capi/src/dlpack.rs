//! Tensors from and to other libraries of the same process, by DLPack.

use std::any::Any;
use std::ffi::c_void;
use std::mem::MaybeUninit;
use std::ptr::NonNull;

use tidemill::interop::HostMemory;
use tidemill::{DType, Error, MAX_RANK, Shape};

use crate::accelerator::{opened, tm_accelerator};
use crate::arguments::{elements, given, handle, place, with_type};
use crate::status::{Failure, guard, tm_status};
use crate::tensor::tm_tensor;

/// `DLDevice`.
#[repr(C)]
#[derive(Clone, Copy)]
struct Device {
    kind: i32,
    id: i32,
}

/// `DLDataType`.
#[repr(C)]
#[derive(Clone, Copy)]
struct DataType {
    code: u8,
    bits: u8,
    lanes: u16,
}

/// `DLTensor`.
#[repr(C)]
struct Described {
    data: *mut c_void,
    device: Device,
    rank: i32,
    dtype: DataType,
    dims: *mut i64,
    /// In elements; null for a dense row-major tensor.
    strides: *mut i64,
    offset_bytes: u64,
}

/// `DLManagedTensor`, the struct that capsules called "dltensor" have.
#[repr(C)]
struct Managed {
    described: Described,
    owner: *mut c_void,
    deleter: Option<unsafe extern "C" fn(managed: *mut Managed)>,
}

/// `kDLCPU`.
const CPU: i32 = 1;

/// The element types with their codes (`kDLInt`, `kDLUInt`, `kDLFloat`) and bits.
const TYPES: [(DType, u8, u8); 4] =
    [(DType::I32, 0, 32), (DType::U32, 1, 32), (DType::F32, 2, 32), (DType::F16, 2, 16)];

/// What is handed out: a copy of a tensor's contents.
struct Copied {
    managed: Managed,
    dims: [i64; MAX_RANK],
    /// The elements, in a vector of their type.
    _data: Box<dyn Any>,
}

unsafe extern "C" fn free_copy(managed: *mut Managed) {
    // SAFETY: it was made below, and is given back once, as DLPack says.
    let owner = unsafe { (*managed).owner };
    // SAFETY: as above: the owner is the box that it came from.
    drop(unsafe { Box::from_raw(owner.cast::<Copied>()) });
}

/// The contents for another library of this process that takes DLPack: `managed` gets a `DLManagedTensor *` of
/// dlpack.h, dense and in the CPU's memory. It is a copy, which the caller owns: its deleter
/// frees it. Waits for the submission that writes the contents, and for nothing else.
#[unsafe(no_mangle)]
pub extern "C" fn tm_tensor_to_dlpack(
    tensor: Option<&tm_tensor>,
    managed: Option<&mut MaybeUninit<*mut c_void>>,
) -> tm_status {
    guard("tm_tensor_to_dlpack", || {
        let out = place(managed, "managed")?;
        let tensor = &given(tensor, "tensor")?.tensor;
        let (shape, dtype) = (tensor.shape(), tensor.dtype());
        let known = TYPES.iter().find(|(of, ..)| *of == dtype);
        let (_, code, bits) =
            *known.ok_or_else(|| Failure::argument(format!("{dtype} has no code in DLPack")))?;
        let contents: Result<(*mut c_void, Box<dyn Any>), Failure> = with_type!(dtype, T => {
            let mut data = tensor.read::<T>()?;
            Ok((data.as_mut_ptr().cast(), Box::new(data)))
        });
        let (data, owned) = contents?;
        let mut dims = [0; MAX_RANK];
        for (to, extent) in dims.iter_mut().zip(shape.dims()) {
            *to = *extent as i64;
        }
        let described = Described {
            data,
            device: Device { kind: CPU, id: 0 },
            rank: shape.rank() as i32,
            dtype: DataType { code, bits, lanes: 1 },
            dims: std::ptr::null_mut(),
            strides: std::ptr::null_mut(),
            offset_bytes: 0,
        };
        let managed = Managed { described, owner: std::ptr::null_mut(), deleter: Some(free_copy) };
        let copied = handle(Copied { managed, dims, _data: owned });
        // SAFETY: just made.
        let copied = unsafe { &mut *copied };
        copied.managed.described.dims = copied.dims.as_mut_ptr();
        let owner = std::ptr::from_mut(copied);
        copied.managed.owner = owner.cast();
        *out = std::ptr::from_mut(&mut copied.managed).cast();
        Ok(())
    })
}

/// A tensor of another library, which is given back when nothing reads it any more.
struct Taken(NonNull<Managed>);

// SAFETY: contract 4: the deleter may be called on any thread.
unsafe impl Send for Taken {}
// SAFETY: as above; nothing changes it until it is dropped.
unsafe impl Sync for Taken {}

impl Drop for Taken {
    fn drop(&mut self) {
        // SAFETY: contract 1: it is there until its deleter was called.
        if let Some(deleter) = unsafe { self.0.as_ref() }.deleter {
            // SAFETY: as above; this is the one call.
            unsafe { deleter(self.0.as_ptr()) }
        }
    }
}

/// Its elements.
struct Lent {
    bytes: &'static [u8],
    _taken: Taken,
}

impl AsRef<[u8]> for Lent {
    fn as_ref(&self) -> &[u8] {
        self.bytes
    }
}

impl Described {
    fn dtype(&self) -> Result<DType, Failure> {
        let DataType { code, bits, lanes } = self.dtype;
        let found = TYPES.iter().find(|(_, known, wide)| (*known, *wide, 1) == (code, bits, lanes));
        let unknown = || {
            let what = format!("elements have code {code}, {bits} bits and {lanes} lanes");
            let message = format!("{what}; float32, float16, int32 and uint32 can be taken");
            Failure::new(tm_status::TM_TYPE, message)
        };
        found.map(|(dtype, ..)| *dtype).ok_or_else(unknown)
    }

    /// # Safety
    ///
    /// Contract 1.
    unsafe fn shape(&self) -> Result<Shape, Failure> {
        const OP: &str = "tm_tensor_from_dlpack";
        let rank = usize::try_from(self.rank).unwrap_or(usize::MAX);
        if rank > MAX_RANK {
            return Err(Error::Rank { op: OP, rank }.into());
        }
        // SAFETY: contract 1.
        let dims = unsafe { elements(self.dims, rank, "shape") }?;
        let mut extents = [0; MAX_RANK];
        for (to, extent) in extents.iter_mut().zip(dims) {
            *to = usize::try_from(*extent)
                .map_err(|_| Failure::new(tm_status::TM_SHAPE, format!("an extent is {extent}")))?;
        }
        Shape::new(&extents[..rank]).ok_or_else(|| Error::Rank { op: OP, rank }.into())
    }

    /// # Safety
    ///
    /// Contract 1.
    unsafe fn check_dense(&self, shape: Shape) -> Result<(), Failure> {
        if self.strides.is_null() || shape.elements() == 0 {
            return Ok(());
        }
        // SAFETY: contract 1.
        let strides = unsafe { elements(self.strides, shape.rank(), "strides") }?;
        let mut dense = 1;
        for (d, (extent, stride)) in shape.dims().iter().zip(strides).enumerate().rev() {
            if *extent > 1 && *stride != dense {
                let what = format!("dimension {d} of {shape} has stride {stride}");
                let message = format!("{what}, and {dense} in a dense row-major tensor; copy it to one");
                return Err(Failure::new(tm_status::TM_SHAPE, message));
            }
            dense *= *extent as i64;
        }
        Ok(())
    }
}

/// A tensor of another library of this process: `managed` is a `DLManagedTensor *` of dlpack.h, dense and row-major, in
/// the CPU's memory. It is the library's from this call on, whether the call works or fails. Without a copy where that
/// can be done, as tm_import; then its deleter is called when the last tensor on it and the last submission that reads
/// it are gone, on any thread. Nothing writes the memory until then. It must not throw.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tm_tensor_from_dlpack(
    gpu: Option<&tm_accelerator>,
    managed: *mut c_void,
    tensor: Option<&mut MaybeUninit<*mut tm_tensor>>,
) -> tm_status {
    guard("tm_tensor_from_dlpack", || {
        let taken = NonNull::new(managed.cast::<Managed>()).map(Taken);
        let out = place(tensor, "tensor")?;
        let gpu = opened(gpu)?;
        let taken = given(taken, "managed")?;
        // SAFETY: contract 1.
        let described = unsafe { &taken.0.as_ref().described };
        if described.device.kind != CPU {
            let kind = described.device.kind;
            return Err(Failure::argument(format!(
                "the tensor is on a device of type {kind}; only the CPU's (1) can be read"
            )));
        }
        let dtype = described.dtype()?;
        // SAFETY: contract 1.
        let shape = unsafe { described.shape() }?;
        // SAFETY: as above.
        unsafe { described.check_dense(shape) }?;
        let data = described.data.cast::<u8>().wrapping_add(described.offset_bytes as usize);
        // SAFETY: contract 1; it stays there, and as it is, until the deleter was called.
        let bytes: &'static [u8] = unsafe { elements(data, shape.elements() * dtype.size_bytes(), "data") }?;
        let memory = HostMemory::new(Lent { bytes, _taken: taken });
        let (imported, _) = gpu.import_or_upload(&memory, 0, shape, dtype)?;
        *out = handle(tm_tensor { tensor: imported });
        Ok(())
    })
}
