//! Tensors on memory of the application. The contract is `HostMemory`'s; everything here is safe.

use std::ops::Range;

use crate::error::{Error, HostError, Result};
use crate::runtime::accelerator::Accelerator;
use crate::runtime::core::check_size;
use crate::runtime::pool::WriteMode;
use crate::runtime::tensor::{Contents, Storage, Tensor};
use crate::shape::{DType, Shape};
use crate::vk::buffer::{HostMemory, MemoryKind};

impl Accelerator {
    /// A tensor on memory of the application, from a byte of it on, without a copy: weights in a mapped file, say.
    ///
    /// It is an operand like any other, for as long as one likes: the memory is kept until the last tensor on it, and
    /// the last submission that reads it, are gone. Nothing writes it: [`write`](Tensor::write) and a plan's output
    /// give the tensor memory of its own instead, and then [`is_imported`](Tensor::is_imported) is `false`. It takes
    /// none of the pool and does not count against its cap;
    /// [`Stats::imported_bytes`](crate::stats::Stats::imported_bytes) counts it.
    ///
    /// The device reads the memory where it is. Integrated GPUs and software drivers do so at full speed; a card does
    /// so over the bus, each time, so what it reads more than once is better uploaded.
    ///
    /// ```
    /// # fn main() -> tidemill::Result<()> {
    /// use tidemill::interop::HostMemory;
    /// use tidemill::{Accelerator, DType, Error};
    /// let gpu = Accelerator::global()?;
    /// let weights = HostMemory::new(vec![0u8; 1 << 16]);
    /// match gpu.import(&weights, 0, [128, 128], DType::F32) {
    ///     Ok(w) => assert!(w.is_imported()),
    ///     // No such device, a driver that refuses, or a bad address: it says what to do.
    ///     Err(Error::Host(why)) => println!("{why}"),
    ///     Err(error) => return Err(error),
    /// }
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// [`HostError::MemoryRange`] if the tensor does not lie in the memory; [`HostError::NoHostPointers`] if the device
    /// has no `VK_EXT_external_memory_host`; [`HostError::MemoryAddress`] if the tensor's address is not a multiple of
    /// [`Limits::offset_alignment`](crate::device::Limits::offset_alignment); [`HostError::MemoryPages`] if the
    /// device's pages ([`Limits::host_pointer_alignment`](crate::device::Limits::host_pointer_alignment)) are larger
    /// than the system's, and those around the tensor reach beyond the memory; [`HostError::ImportRefused`] if the
    /// driver does not take it: some take no mapped files, and they may refuse to import a page twice, as two tensors
    /// that share one do; [`Error::TooLarge`].
    pub fn import(
        &self,
        memory: &HostMemory,
        offset_bytes: usize,
        shape: impl Into<Shape>,
        dtype: DType,
    ) -> Result<Tensor> {
        let shape = shape.into();
        let range = self.part(memory, offset_bytes, shape, dtype)?;
        if range.is_empty() {
            return self.upload_bytes(&[], shape, dtype);
        }
        let core = self.core();
        let lease = core.pool.import(memory, range)?;
        Ok(Tensor::from_parts(Storage::new(core, dtype, Some(lease), Contents::Host), shape))
    }

    /// As [`import`](Accelerator::import) where that can be done, and as [`upload`](Accelerator::upload) otherwise;
    /// says why it was copied then. For programs that want their weights on any device.
    ///
    /// # Errors
    ///
    /// [`HostError::MemoryRange`]; [`Error::TooLarge`]; [`Error::OutOfMemory`].
    pub fn import_or_upload(
        &self,
        memory: &HostMemory,
        offset_bytes: usize,
        shape: impl Into<Shape>,
        dtype: DType,
    ) -> Result<(Tensor, Option<HostError>)> {
        let shape = shape.into();
        let range = self.part(memory, offset_bytes, shape, dtype)?;
        match self.import(memory, offset_bytes, shape, dtype) {
            Err(Error::Host(why)) => {
                let tensor = self.upload_bytes(&memory.as_bytes()[range], shape, dtype)?;
                Ok((tensor, Some(why)))
            }
            imported => Ok((imported?, None)),
        }
    }

    /// Where a tensor lies in the memory.
    fn part(&self, memory: &HostMemory, offset: usize, shape: Shape, dtype: DType) -> Result<Range<usize>> {
        let core = self.core();
        core.open()?;
        check_size(core, "import", shape, dtype)?;
        let (needs, got) = (shape.elements() * dtype.size_bytes(), memory.as_bytes().len());
        match offset.checked_add(needs).filter(|end| *end <= got) {
            Some(end) => Ok(offset..end),
            None => Err(HostError::MemoryRange { offset, needs, got }.into()),
        }
    }

    fn upload_bytes(&self, bytes: &[u8], shape: Shape, dtype: DType) -> Result<Tensor> {
        let core = self.core();
        let lease = core.acquire(MemoryKind::Device, bytes.len() as u64)?;
        let contents = core.fill_from(&lease, WriteMode::InPlace, bytes)?;
        Ok(Tensor::from_parts(Storage::new(core, dtype, Some(lease), contents), shape))
    }
}

impl Tensor {
    /// Whether its contents are still in the application's own memory, as [`Accelerator::import`] left them.
    pub fn is_imported(&self) -> bool {
        self.storage.is_imported()
    }
}
