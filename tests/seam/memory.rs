//! Memory types that the driver has not: device memory that the host can't reach, and memory that is not coherent.
//!
//! All of it is really the driver's one host-visible type. What is called not coherent is mapped to a shadow, which
//! meets the real memory only when it is flushed or invalidated: a forgotten call gives wrong bytes.

use std::ffi::c_void;

use ash::vk;
use ash::vk::MemoryPropertyFlags as Flags;

use super::state;
use super::table::real;

/// What the device claims to have.
#[derive(Clone, Debug)]
pub struct FakeMemory {
    pub types: Vec<(Flags, u32)>,
    pub heaps: Vec<u64>,
    /// `nonCoherentAtomSize`.
    pub atom: u64,
    /// Added to what a buffer needs, so that neighbours do not come to lie on round offsets by luck.
    pub extra_bytes: u64,
}

impl FakeMemory {
    /// A card with memory of its own, and two kinds of host memory.
    pub fn discrete() -> FakeMemory {
        let host = Flags::HOST_VISIBLE | Flags::HOST_COHERENT;
        FakeMemory {
            types: vec![(Flags::DEVICE_LOCAL, 0), (host, 1), (host | Flags::HOST_CACHED, 1)],
            heaps: vec![1 << 30, 4 << 30],
            atom: 64,
            extra_bytes: 0,
        }
    }

    /// A card whose host memory is not coherent.
    pub fn discrete_not_coherent() -> FakeMemory {
        let types = vec![(Flags::DEVICE_LOCAL, 0), (Flags::HOST_VISIBLE | Flags::HOST_CACHED, 1)];
        FakeMemory { types, atom: 256, extra_bytes: 64, ..FakeMemory::discrete() }
    }

    /// A chip with one memory for all, which is not coherent.
    pub fn integrated_not_coherent() -> FakeMemory {
        let types = vec![(Flags::DEVICE_LOCAL | Flags::HOST_VISIBLE | Flags::HOST_CACHED, 0)];
        FakeMemory { types, heaps: vec![2 << 30], atom: 256, extra_bytes: 64 }
    }

    /// One memory for all that the host writes well and reads badly.
    pub fn write_combined() -> FakeMemory {
        let types = vec![
            (Flags::DEVICE_LOCAL | Flags::HOST_VISIBLE | Flags::HOST_COHERENT, 0),
            (Flags::HOST_VISIBLE | Flags::HOST_COHERENT | Flags::HOST_CACHED, 1),
        ];
        FakeMemory { types, ..FakeMemory::discrete() }
    }
}

/// An allocation of a fake type.
pub(super) struct Allocation {
    flags: Flags,
    size: u64,
    mapped: usize,
    shadow: Option<Vec<u64>>,
}

pub(super) fn properties(out: &mut vk::PhysicalDeviceMemoryProperties) {
    state(|s| {
        let Some(memory) = &s.memory else { return };
        *out = vk::PhysicalDeviceMemoryProperties::default();
        out.memory_type_count = memory.types.len() as u32;
        out.memory_heap_count = memory.heaps.len() as u32;
        for (to, &(property_flags, heap_index)) in out.memory_types.iter_mut().zip(&memory.types) {
            *to = vk::MemoryType { property_flags, heap_index };
        }
        for (i, (to, &size)) in out.memory_heaps.iter_mut().zip(&memory.heaps).enumerate() {
            let flags = if i == 0 { vk::MemoryHeapFlags::DEVICE_LOCAL } else { vk::MemoryHeapFlags::empty() };
            *to = vk::MemoryHeap { size, flags };
        }
    });
}

/// Tells the budget that a test wants. The driver, which may not know the struct, does not get to see it.
pub(super) unsafe fn properties2(
    physical: vk::PhysicalDevice,
    out: &mut vk::PhysicalDeviceMemoryProperties2<'_>,
) {
    let chain = std::mem::replace(&mut out.p_next, std::ptr::null_mut());
    unsafe { real::vkGetPhysicalDeviceMemoryProperties2(physical, out) };
    out.p_next = chain;
    properties(&mut out.memory_properties);
    let kind = vk::StructureType::PHYSICAL_DEVICE_MEMORY_BUDGET_PROPERTIES_EXT;
    let found = unsafe { super::subgroups::find(chain.cast_const().cast(), kind) };
    if let Some(found) = found {
        let found: &mut vk::PhysicalDeviceMemoryBudgetPropertiesEXT<'_> = unsafe { &mut *found };
        state(|s| {
            found.heap_budget = [s.budget.unwrap_or(0); vk::MAX_MEMORY_HEAPS];
            found.heap_usage = [s.memory_bytes.values().sum(); vk::MAX_MEMORY_HEAPS];
        });
    }
}

pub(super) fn requirements(out: &mut vk::MemoryRequirements) {
    state(|s| {
        if let Some(memory) = &s.memory {
            out.memory_type_bits = (1 << memory.types.len()) - 1;
            out.size += memory.extra_bytes;
        }
    });
}

/// How much of the application's memory is imported at a time, as the test wants it.
pub(super) unsafe fn host_pages(out: &mut vk::PhysicalDeviceProperties2<'_>) {
    let kind = vk::StructureType::PHYSICAL_DEVICE_EXTERNAL_MEMORY_HOST_PROPERTIES_EXT;
    let found = unsafe { super::subgroups::find(out.p_next.cast(), kind) };
    if let (Some(bytes), Some(found)) = (state(|s| s.host_pages), found) {
        let found: &mut vk::PhysicalDeviceExternalMemoryHostPropertiesEXT<'_> = unsafe { &mut *found };
        found.min_imported_host_pointer_alignment = bytes;
    }
}

/// Memory of the application goes with every type that the host can reach.
pub(super) fn host_pointer(out: &mut vk::MemoryHostPointerPropertiesEXT<'_>) {
    state(|s| {
        if let Some(memory) = &s.memory {
            let visible = memory.types.iter().enumerate().filter(|(_, t)| t.0.contains(Flags::HOST_VISIBLE));
            out.memory_type_bits = visible.map(|(i, _)| 1 << i).sum();
        }
    });
}

pub(super) unsafe fn allocate(
    device: vk::Device,
    info: &vk::MemoryAllocateInfo<'_>,
    c: *const vk::AllocationCallbacks<'_>,
    out: *mut vk::DeviceMemory,
) -> vk::Result {
    let fake = state(|s| s.memory.as_ref().map(|memory| memory.types[info.memory_type_index as usize].0));
    let mut info = *info;
    if fake.is_some() {
        // Software drivers put the type that has everything first.
        info.memory_type_index = 0;
        // Whether memory is dedicated is between the two of us: the driver has other ideas of the buffer's size.
        let import = vk::StructureType::IMPORT_MEMORY_HOST_POINTER_INFO_EXT;
        let import: Option<*mut c_void> = unsafe { super::subgroups::find(info.p_next.cast(), import) };
        info.p_next = import.map_or(std::ptr::null(), |import| import.cast_const());
    }
    let result = unsafe { real::vkAllocateMemory(device, &info, c, out) };
    if result == vk::Result::SUCCESS {
        state(|s| {
            s.memory_bytes.insert(unsafe { *out }, info.allocation_size);
            s.peak_memory_bytes = s.peak_memory_bytes.max(s.memory_bytes.values().sum());
        });
    }
    if let (Some(flags), vk::Result::SUCCESS) = (fake, result) {
        let allocation = Allocation { flags, size: info.allocation_size, mapped: 0, shadow: None };
        state(|s| s.allocations.insert(unsafe { *out }, allocation));
    }
    result
}

pub(super) unsafe fn map(memory: vk::DeviceMemory, pointer: &mut *mut c_void) -> vk::Result {
    state(|s| {
        let Some(allocation) = s.allocations.get_mut(&memory) else { return vk::Result::SUCCESS };
        if !allocation.flags.contains(Flags::HOST_VISIBLE) {
            s.violations.push("memory that the host can't reach was mapped".to_owned());
            return vk::Result::ERROR_MEMORY_MAP_FAILED;
        }
        if !allocation.flags.contains(Flags::HOST_COHERENT) {
            allocation.mapped = pointer.expose_provenance();
            let shadow = allocation.shadow.insert(vec![0; allocation.size.div_ceil(8) as usize]);
            *pointer = shadow.as_mut_ptr().cast();
        }
        vk::Result::SUCCESS
    })
}

/// Copies ranges between shadows and memory.
fn transfer(call: &str, ranges: &[vk::MappedMemoryRange<'_>], to_device: bool) -> vk::Result {
    state(|s| {
        let atom = s.memory.as_ref().map_or(1, |memory| memory.atom);
        for range in ranges {
            let Some(allocation) = s.allocations.get_mut(&range.memory) else { continue };
            let (offset, size) = (range.offset, range.size);
            let end = offset.saturating_add(size);
            let whole = size % atom == 0 || end == allocation.size;
            if offset % atom != 0 || !whole || end > allocation.size || size == 0 {
                let of = allocation.size;
                s.violations.push(format!("{call}: {offset} + {size} of {of} bytes, atoms of {atom}"));
                continue;
            }
            let Some(shadow) = &mut allocation.shadow else {
                s.violations.push(format!("{call}: the memory is coherent or not mapped"));
                continue;
            };
            let real =
                std::ptr::with_exposed_provenance_mut::<u8>(allocation.mapped).wrapping_add(offset as usize);
            let shadow = shadow.as_mut_ptr().cast::<u8>().wrapping_add(offset as usize);
            let (from, to) = if to_device { (shadow, real) } else { (real, shadow) };
            unsafe { std::ptr::copy_nonoverlapping(from, to, size as usize) };
        }
        vk::Result::SUCCESS
    })
}

pub(super) fn flush(ranges: &[vk::MappedMemoryRange<'_>]) -> vk::Result {
    transfer("vkFlushMappedMemoryRanges", ranges, true)
}

pub(super) fn invalidate(ranges: &[vk::MappedMemoryRange<'_>]) -> vk::Result {
    transfer("vkInvalidateMappedMemoryRanges", ranges, false)
}
