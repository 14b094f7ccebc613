//! Buffers with their memory, mapping and texel views.

mod import;

use std::ptr::NonNull;
use std::sync::{Arc, OnceLock};

use ash::vk;
use gpu_allocator::vulkan::{Allocation, AllocationCreateDesc, AllocationScheme};
use gpu_allocator::{AllocationError, MemoryLocation};
use parking_lot::Mutex;

pub use self::import::HostMemory;
use self::import::Imported;
use super::device::Device;
use super::raw::HostBuffer;
pub(crate) use super::usage::MemoryKind;
use super::usage::{BUFFER_USAGE, TEXEL_FORMAT};
use super::{check, process};
use crate::error::{Error, Result};

/// A buffer, bound to its memory for life.
#[derive(Debug)]
pub(crate) struct Buffer {
    raw: vk::Buffer,
    /// Where it begins: in a host's buffer, not always at the start.
    base: u64,
    size_bytes: u64,
    /// Where the host finds the contents; it never writes those that were imported.
    mapped: Option<NonNull<u8>>,
    coherent: bool,
    cached: bool,
    whole_view: OnceLock<vk::BufferView>,
    other_views: Mutex<Vec<(vk::Format, u64, u64, vk::BufferView)>>,
    allocation: Option<Allocation>,
    /// The application's memory, if that is what is behind it.
    imported: Option<Imported>,
    /// Its size, if it is staging memory.
    staging_bytes: u64,
    /// It is the host's, and so not ours to destroy.
    adopted: bool,
    device: Arc<Device>,
}

// SAFETY: `mapped` is the only field that is not Send/Sync by itself. It points into memory that `allocation` keeps
// mapped, or `imported` keeps alive, as long as the buffer lives; who may touch that memory when is contract 5.
unsafe impl Send for Buffer {}
// SAFETY: as above.
unsafe impl Sync for Buffer {}

/// The device's memory type for a kind, best first, among those that a buffer allows.
fn memory_type(
    types: &[vk::MemoryType],
    heaps: &[vk::MemoryHeap],
    kind: MemoryKind,
    allowed: u32,
) -> Option<u32> {
    use vk::MemoryPropertyFlags as Flags;
    let heap_bytes = |t: &vk::MemoryType| heaps.get(t.heap_index as usize).map_or(0, |h| h.size);
    let largest_local = types
        .iter()
        .filter(|t| t.property_flags.contains(Flags::DEVICE_LOCAL))
        .map(heap_bytes)
        .max()
        .unwrap_or(0);
    let score = |t: &vk::MemoryType| -> Option<u32> {
        let has = |flags| t.property_flags.contains(flags);
        let points = |flags, points| if has(flags) { points } else { 0 };
        if has(Flags::LAZILY_ALLOCATED) || has(Flags::PROTECTED) || has(Flags::DEVICE_COHERENT_AMD) {
            return None;
        }
        match kind {
            // Host-visible device memory counts only where it is the whole of it (integrated GPUs, resizable BAR,
            // software drivers): the classic 256 MiB window is too small to live in.
            MemoryKind::Device => {
                let mapped = has(Flags::HOST_VISIBLE) && heap_bytes(t) >= largest_local;
                let visible = if mapped {
                    8 + points(Flags::HOST_CACHED, 4) + points(Flags::HOST_COHERENT, 2)
                } else if has(Flags::HOST_VISIBLE) {
                    0
                } else {
                    4
                };
                Some(points(Flags::DEVICE_LOCAL, 64) + visible)
            }
            // Not device-local: that would take the small window away from those who need it.
            MemoryKind::Upload => has(Flags::HOST_VISIBLE).then(|| {
                8 + points(Flags::HOST_COHERENT, 4)
                    - points(Flags::DEVICE_LOCAL, 2)
                    - points(Flags::HOST_CACHED, 1)
            }),
            MemoryKind::Readback => has(Flags::HOST_VISIBLE).then(|| {
                8 + points(Flags::HOST_CACHED, 8) + points(Flags::HOST_COHERENT, 2)
                    - points(Flags::DEVICE_LOCAL, 1)
            }),
        }
    };
    types
        .iter()
        .enumerate()
        .filter(|(i, _)| allowed & (1 << i) != 0)
        .filter_map(|(i, t)| Some((score(t)?, std::cmp::Reverse(i))))
        .max()
        .map(|(_, std::cmp::Reverse(i))| i as u32)
}

/// The bytes of the heap that memory of a kind comes from, and what the system grants this process of them, where it
/// says.
pub(crate) fn heap_and_budget(device: &Device, kind: MemoryKind) -> (u64, Option<u64>) {
    let index = memory_type(&device.memory_types, &device.heaps, kind, u32::MAX);
    index.map_or((0, None), |index| device.heap_and_budget(index))
}

/// A buffer without memory. `Ok(None)` is out of memory.
fn create(device: &Device, size_bytes: u64, kind: MemoryKind) -> Result<Option<vk::Buffer>> {
    use vk::BufferUsageFlags as Usage;
    let usage = match kind {
        MemoryKind::Device => BUFFER_USAGE,
        MemoryKind::Upload | MemoryKind::Readback => Usage::TRANSFER_SRC | Usage::TRANSFER_DST,
    };
    let odd = device.info.workarounds.odd_buffer_sizes && size_bytes.is_power_of_two();
    let info = vk::BufferCreateInfo::default().size(size_bytes + 16 * u64::from(odd)).usage(usage);
    // SAFETY: contracts 1, 6 and 7.
    match unsafe { device.raw.create_buffer(&info, None) } {
        Err(vk::Result::ERROR_OUT_OF_DEVICE_MEMORY | vk::Result::ERROR_OUT_OF_HOST_MEMORY) => Ok(None),
        other => check("vkCreateBuffer", other).map(Some),
    }
}

impl Buffer {
    /// Makes a buffer. `Ok(None)` is out of memory, or beyond the process's budget, which the caller has means against.
    pub(crate) fn new(
        device: &Arc<Device>,
        size_bytes: u64,
        kind: MemoryKind,
        name: &str,
    ) -> Result<Option<Buffer>> {
        let Some(raw) = create(device, size_bytes, kind)? else { return Ok(None) };
        let mut buffer = Buffer::around(device, raw, 0, size_bytes);
        // SAFETY: contract 2.
        let mut requirements = unsafe { device.raw.get_buffer_memory_requirements(raw) };
        let Some(index) =
            memory_type(&device.memory_types, &device.heaps, kind, requirements.memory_type_bits)
        else {
            let (types, allowed) = (device.memory_types.len(), requirements.memory_type_bits);
            return Err(Error::NoMemoryType { purpose: kind.purpose(), types, allowed });
        };
        if !device.has_room(index, requirements.size) {
            return Ok(None);
        }
        // The choice is made here, so the allocator gets no other.
        requirements.memory_type_bits = 1 << index;
        let flags = device.memory_types[index as usize].property_flags;
        buffer.coherent = flags.contains(vk::MemoryPropertyFlags::HOST_COHERENT);
        buffer.cached = flags.contains(vk::MemoryPropertyFlags::HOST_CACHED);
        let Some(allocation) = buffer.allocate(requirements, kind, name)? else { return Ok(None) };
        buffer.mapped = allocation.mapped_ptr().map(NonNull::cast);
        // SAFETY: the allocation stays in this buffer until `Drop` frees it.
        let memory = unsafe { allocation.memory() };
        let offset = allocation.offset();
        if kind.is_staging() {
            buffer.staging_bytes = allocation.size();
            device.room.staging_made(buffer.staging_bytes);
        }
        buffer.allocation = Some(allocation);
        // SAFETY: contract 2; a fresh buffer and the memory that was allocated for it.
        check("vkBindBufferMemory", unsafe { device.raw.bind_buffer_memory(raw, memory, offset) })?;
        device.name_object(raw, name);
        Ok(Some(buffer))
    }

    /// Memory for the buffer: a part of what is shared, or memory of its own. `Ok(None)` is out of memory.
    fn allocate(
        &self,
        requirements: vk::MemoryRequirements,
        kind: MemoryKind,
        name: &str,
    ) -> Result<Option<Allocation>> {
        let device = &self.device;
        let allocate = |requirements: vk::MemoryRequirements, allocation_scheme| {
            let location = MemoryLocation::Unknown;
            let desc = AllocationCreateDesc { name, requirements, location, linear: true, allocation_scheme };
            let apart = allocation_scheme != AllocationScheme::GpuAllocatorManaged;
            device.allocator.lock().as_mut().map(|allocator| {
                match device.room.has_room(kind, requirements.size, apart, allocator.capacity()) {
                    true => allocator.allocate(&desc),
                    false => Err(AllocationError::OutOfMemory),
                }
            })
        };
        let mut shared = requirements;
        if !self.coherent {
            // Whole atoms of its own: a flush or an invalidation never reaches a neighbour's bytes.
            let atom = device.info.limits.non_coherent_atom;
            shared.alignment = requirements.alignment.max(atom);
            shared.size = requirements.size.next_multiple_of(atom);
        }
        let apart = device.room.is_apart(kind, requirements.size);
        let mut allocation = match apart {
            true => allocate(requirements, AllocationScheme::DedicatedBuffer(self.raw)),
            false => allocate(shared, AllocationScheme::GpuAllocatorManaged),
        };
        if !apart && matches!(allocation, Some(Err(AllocationError::OutOfMemory))) {
            // What is shared comes in large pieces; there may be room for just this one.
            allocation = allocate(requirements, AllocationScheme::DedicatedBuffer(self.raw));
        }
        match allocation {
            Some(Ok(allocation)) => Ok(Some(allocation)),
            Some(Err(AllocationError::OutOfMemory)) => Ok(None),
            Some(Err(e)) => Err(Error::Vulkan { call: "vkAllocateMemory", result: e.to_string() }),
            None => Err(Error::Closed),
        }
    }

    /// A range of a buffer of the host's, whose memory is out of our sight. Its size and place were checked.
    pub(crate) fn adopt(device: &Arc<Device>, host: HostBuffer) -> Buffer {
        let mut buffer = Buffer::around(device, host.buffer, host.offset_bytes, host.size_bytes);
        buffer.adopted = true;
        buffer
    }

    /// A range of Vulkan's buffer, without memory so far.
    fn around(device: &Arc<Device>, raw: vk::Buffer, base: u64, size_bytes: u64) -> Buffer {
        Buffer {
            raw,
            base,
            size_bytes,
            mapped: None,
            coherent: true,
            cached: false,
            whole_view: OnceLock::new(),
            other_views: Mutex::new(Vec::new()),
            allocation: None,
            imported: None,
            staging_bytes: 0,
            adopted: false,
            device: device.clone(),
        }
    }

    /// Where a place in it is in Vulkan's buffer.
    pub(crate) fn at(&self, offset: u64) -> u64 {
        self.base + offset
    }

    pub(crate) fn raw(&self) -> vk::Buffer {
        self.raw
    }

    pub(crate) fn size_bytes(&self) -> u64 {
        self.size_bytes
    }

    /// Whether the host can write to it in place.
    pub(crate) fn is_mapped(&self) -> bool {
        self.mapped.is_some() && self.imported.is_none()
    }

    /// Whether the host can read it in place at a decent speed (write-combined memory can't be).
    pub(crate) fn is_readable(&self) -> bool {
        self.mapped.is_some() && self.cached
    }

    /// A texel view of the range; of more than that if the kernel masks its tails. Views are kept.
    pub(crate) fn texel_view(
        &self,
        format: vk::Format,
        offset: u64,
        bytes: u64,
        masks_tails: bool,
    ) -> Result<vk::BufferView> {
        let fits = self.size_bytes / 16 <= self.device.info.limits.texel_elements;
        if masks_tails && format == TEXEL_FORMAT && offset == 0 && fits {
            // A view of the whole block serves every range that starts with it: kernels mask their tails.
            if let Some(view) = self.whole_view.get() {
                return Ok(*view);
            }
            let view = self.make_view(format, 0, self.size_bytes / 16 * 16)?;
            if let Err(surplus) = self.whole_view.set(view) {
                // SAFETY: contract 1; another thread was faster, and no one has seen this one.
                unsafe { self.device.raw.destroy_buffer_view(surplus, None) };
            }
            return Ok(self.whole_view.get().copied().unwrap_or(view));
        }
        let mut views = self.other_views.lock();
        if let Some(found) = views.iter().find(|v| (v.0, v.1, v.2) == (format, offset, bytes)) {
            return Ok(found.3);
        }
        let view = self.make_view(format, offset, bytes)?;
        views.push((format, offset, bytes, view));
        Ok(view)
    }

    fn make_view(&self, format: vk::Format, offset: u64, range: u64) -> Result<vk::BufferView> {
        let info = vk::BufferViewCreateInfo::default()
            .buffer(self.raw)
            .format(format)
            .offset(self.at(offset))
            .range(range);
        // SAFETY: contracts 1, 6 and 7.
        check("vkCreateBufferView", unsafe { self.device.raw.create_buffer_view(&info, None) })
    }

    /// Lets the host write the first `bytes` of the mapping in place; `None` where there is no mapping.
    ///
    /// Contract 5: no pending submission may use the buffer.
    pub(crate) fn with_mapped<R>(&self, bytes: u64, write: impl FnOnce(&mut [u8]) -> R) -> Option<Result<R>> {
        let mapped = self.mapped.filter(|_| self.is_mapped())?;
        let len = bytes.min(self.size_bytes) as usize;
        // SAFETY: contract 5; the mapping spans the buffer and lives as long as it does.
        let slice = unsafe { std::slice::from_raw_parts_mut(mapped.as_ptr(), len) };
        let result = write(slice);
        Some(self.flush(len as u64).map(|()| result))
    }

    /// Copies `into.len()` bytes from the start of the mapping.
    ///
    /// Contract 5: no pending submission may write the buffer.
    pub(crate) fn read_bytes(&self, offset: u64, into: &mut [u8]) -> Result<()> {
        let (Some(mapped), true) = (self.mapped, offset + into.len() as u64 <= self.size_bytes) else {
            return Err(Error::Vulkan { call: "vkMapMemory", result: "not mapped".to_owned() });
        };
        self.invalidate(offset + into.len() as u64)?;
        // SAFETY: in range, as checked above.
        let from = unsafe { mapped.as_ptr().add(offset as usize) };
        // SAFETY: contract 5; `into` is the caller's own memory and can't overlap the mapping.
        unsafe { std::ptr::copy_nonoverlapping(from, into.as_mut_ptr(), into.len()) };
        Ok(())
    }

    /// The buffer's first bytes as a range of its memory: in whole atoms, or up to the end of memory of its own.
    fn mapped_range(&self, bytes: u64) -> Option<vk::MappedMemoryRange<'static>> {
        if self.coherent || bytes == 0 {
            return None;
        }
        let allocation = self.allocation.as_ref()?;
        let atom = self.device.info.limits.non_coherent_atom;
        // SAFETY: the handle is only named in the range below, the allocation stays here.
        let memory = unsafe { allocation.memory() };
        let size = bytes.next_multiple_of(atom).min(allocation.size());
        Some(vk::MappedMemoryRange::default().memory(memory).offset(allocation.offset()).size(size))
    }

    fn flush(&self, bytes: u64) -> Result<()> {
        let Some(range) = self.mapped_range(bytes) else { return Ok(()) };
        // SAFETY: contract 2; the memory is mapped.
        let flushed = unsafe { self.device.raw.flush_mapped_memory_ranges(&[range]) };
        check("vkFlushMappedMemoryRanges", flushed)
    }

    fn invalidate(&self, bytes: u64) -> Result<()> {
        let Some(range) = self.mapped_range(bytes) else { return Ok(()) };
        // SAFETY: contract 2; the memory is mapped.
        let invalidated = unsafe { self.device.raw.invalidate_mapped_memory_ranges(&[range]) };
        check("vkInvalidateMappedMemoryRanges", invalidated)
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        if process::is_forked() {
            std::mem::forget((self.allocation.take(), self.imported.take()));
            return;
        }
        let views = self.whole_view.take().into_iter();
        for view in views.chain(self.other_views.get_mut().drain(..).map(|v| v.3)) {
            // SAFETY: contracts 1 and 4.
            unsafe { self.device.raw.destroy_buffer_view(view, None) };
        }
        if !self.adopted {
            // SAFETY: contracts 1 and 4.
            unsafe { self.device.raw.destroy_buffer(self.raw, None) };
        }
        if let (Some(allocation), Some(allocator)) =
            (self.allocation.take(), self.device.allocator.lock().as_mut())
        {
            // Freeing fails only for an allocation of another allocator.
            let _ = allocator.free(allocation);
            self.device.room.staging_freed(self.staging_bytes);
        }
        if let Some(imported) = self.imported.take() {
            imported.free(&self.device);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use vk::MemoryPropertyFlags as Flags;

    fn pick(types: &[(Flags, u32)], heaps: &[u64], kind: MemoryKind) -> Option<u32> {
        let types: Vec<_> = types
            .iter()
            .map(|&(property_flags, heap_index)| vk::MemoryType { property_flags, heap_index })
            .collect();
        let heaps: Vec<_> = heaps.iter().map(|&size| vk::MemoryHeap { size, ..Default::default() }).collect();
        memory_type(&types, &heaps, kind, u32::MAX)
    }

    #[test]
    fn a_discrete_card_with_a_small_window_stages() {
        let window = Flags::DEVICE_LOCAL | Flags::HOST_VISIBLE | Flags::HOST_COHERENT;
        let host = Flags::HOST_VISIBLE | Flags::HOST_COHERENT;
        let types = [(Flags::DEVICE_LOCAL, 0), (host, 1), (host | Flags::HOST_CACHED, 1), (window, 2)];
        let heaps = [8 << 30, 16 << 30, 256 << 20];
        assert_eq!(pick(&types, &heaps, MemoryKind::Device), Some(0));
        assert_eq!(pick(&types, &heaps, MemoryKind::Upload), Some(1));
        assert_eq!(pick(&types, &heaps, MemoryKind::Readback), Some(2));
    }

    #[test]
    fn resizable_bar_and_integrated_are_mapped_in_place() {
        let all = Flags::DEVICE_LOCAL | Flags::HOST_VISIBLE | Flags::HOST_COHERENT;
        assert_eq!(pick(&[(Flags::DEVICE_LOCAL, 0), (all, 0)], &[8 << 30], MemoryKind::Device), Some(1));
        let types = [(all, 0), (all | Flags::HOST_CACHED, 0)];
        assert_eq!(pick(&types, &[8 << 30], MemoryKind::Device), Some(1));
    }

    #[test]
    fn no_host_memory_is_no_staging() {
        assert_eq!(pick(&[(Flags::DEVICE_LOCAL, 0)], &[1 << 30], MemoryKind::Upload), None);
    }
}
