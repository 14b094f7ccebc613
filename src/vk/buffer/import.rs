//! Buffers on memory of the application (`VK_EXT_external_memory_host`). The device only reads them.

use std::fmt;
use std::ops::Range;
use std::ptr::NonNull;
use std::sync::Arc;

use ash::vk;

use super::super::check;
use super::super::device::Device;
use super::super::usage::BUFFER_USAGE;
use super::Buffer;
use crate::error::{Error, HostError, Result};

/// No system has smaller pages. A page that holds one byte of an allocation is mapped for as long as that is.
const LEAST_PAGE_BYTES: u64 = 4096;
/// Kernels load this many bytes at a time.
const LOAD_BYTES: u64 = 16;

/// Memory of the application that tensors can be made on without a copy:
/// [`Accelerator::import`](crate::Accelerator::import).
///
/// It owns whatever the bytes are borrowed from: a `Vec<u8>`, an `Arc<[u8]>`, a mapped file. The owner is dropped when
/// the last clone of this, the last tensor on it and the last submission that uses one of those are gone; on any
/// thread, so its `Drop` must not call Tidemill.
///
/// The bytes are borrowed for all that time, so nothing in this process can change them. A file that is mapped can be
/// changed or cut short by others: who maps it vouches that they do not, since that is what crates for mapping files
/// ask for in their `unsafe` functions.
///
/// ```
/// # fn main() -> tidemill::Result<()> {
/// use tidemill::interop::HostMemory;
/// use tidemill::{Accelerator, DType};
/// // Or a file that the crate `memmap2` maps: `HostMemory::new(map)`.
/// let weights = HostMemory::new(vec![0u8; 1 << 20]);
/// let gpu = Accelerator::global()?;
/// // Without a copy where the device, the driver and the address allow it.
/// let (w, copied) = gpu.import_or_upload(&weights, 4096, [512, 128], DType::F32)?;
/// if let Some(why) = copied {
///     println!("uploaded: {why}");
/// }
/// assert_eq!(w.read::<f32>()?, [0.0; 512 * 128]);
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct HostMemory {
    bytes: NonNull<[u8]>,
    /// Lends the bytes, and is never handed out again.
    _owner: Arc<dyn AsRef<[u8]> + Send + Sync>,
}

// SAFETY: the owner may be used and dropped on any thread, and the bytes are a shared borrow of it.
unsafe impl Send for HostMemory {}
// SAFETY: as above.
unsafe impl Sync for HostMemory {}

impl HostMemory {
    /// Takes what owns the bytes.
    pub fn new(owner: impl AsRef<[u8]> + Send + Sync + 'static) -> HostMemory {
        let owner: Arc<dyn AsRef<[u8]> + Send + Sync> = Arc::new(owner);
        let bytes = NonNull::from((*owner).as_ref());
        HostMemory { bytes, _owner: owner }
    }

    /// The bytes.
    pub fn as_bytes(&self) -> &[u8] {
        // SAFETY: a shared borrow of the owner, which stays where it is, and which no one else can reach, until this
        // and its clones are gone.
        unsafe { self.bytes.as_ref() }
    }
}

impl fmt::Debug for HostMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "HostMemory({} bytes)", self.bytes.len())
    }
}

/// The imported memory of a buffer.
#[derive(Debug)]
pub(super) struct Imported {
    memory: vk::DeviceMemory,
    _host: HostMemory,
}

impl Imported {
    /// Contract 4: the buffer is gone, and nothing pending uses the memory.
    pub(super) fn free(self, device: &Device) {
        // SAFETY: contracts 1 and 4. A null handle is none.
        unsafe { device.raw.free_memory(self.memory, None) };
    }
}

/// The pages that are imported for a tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Window {
    /// The address of the first page, as the device counts pages.
    start: u64,
    bytes: u64,
    /// Where in it the tensor begins.
    offset: u64,
}

impl Window {
    /// Whole pages around a tensor. `None` if they reach further than the memory does: beyond its first and its last
    /// page, as no system has smaller ones. What else lies on those is not the tensor's, and never looked at.
    fn new(memory: Range<u64>, tensor: Range<u64>, alignment: u64) -> Option<Window> {
        let start = tensor.start - tensor.start % alignment;
        let end = tensor.end.checked_next_multiple_of(LOAD_BYTES)?.checked_next_multiple_of(alignment)?;
        let first = memory.start - memory.start % LEAST_PAGE_BYTES;
        let last = memory.end.checked_next_multiple_of(LEAST_PAGE_BYTES)?;
        let offset = tensor.start - start;
        (first <= start && end <= last).then_some(Window { start, bytes: end - start, offset })
    }
}

fn refusal(call: &'static str, result: String) -> Error {
    HostError::ImportRefused { call, result }.into()
}

fn refused<T>(call: &'static str, result: ash::prelude::VkResult<T>) -> Result<T> {
    check(call, result).map_err(|error| match error {
        Error::Vulkan { call, result } => refusal(call, result),
        error => error,
    })
}

const HOST: vk::ExternalMemoryHandleTypeFlags = vk::ExternalMemoryHandleTypeFlags::HOST_ALLOCATION_EXT;
const ASK: &str = "vkGetMemoryHostPointerPropertiesEXT";

impl HostMemory {
    /// Where a tensor lies in whole pages, if the device takes it there.
    fn window(&self, device: &Device, range: &Range<usize>) -> std::result::Result<Window, HostError> {
        let limits = &device.info.limits;
        let start = self.bytes.cast::<u8>().addr().get() as u64;
        let memory = start..start + self.bytes.len() as u64;
        let tensor = start + range.start as u64..start + range.end as u64;
        let (offset, address, alignment) = (range.start, tensor.start, limits.offset_alignment);
        if !address.is_multiple_of(alignment) {
            return Err(HostError::MemoryAddress { offset, address, alignment });
        }
        let pages = limits.host_pointer_alignment;
        let memory_bytes = self.bytes.len();
        let window = Window::new(memory, tensor, pages);
        window.ok_or(HostError::MemoryPages { pages, offset, memory: memory_bytes })
    }
}

impl Buffer {
    /// A buffer on a range of the application's memory, which is not empty and lies in it.
    pub(crate) fn import(
        device: &Arc<Device>,
        host: &HostMemory,
        range: Range<usize>,
        name: &str,
    ) -> Result<Buffer> {
        let Some(host_pointers) = &device.host_pointers else {
            return Err(HostError::NoHostPointers { device: device.info.name.clone() }.into());
        };
        let window = host.window(device, &range)?;
        let tensor = host.bytes.cast::<u8>().as_ptr().wrapping_add(range.start);
        let first = tensor.wrapping_sub(window.offset as usize).cast::<std::ffi::c_void>();
        let mut allowed = vk::MemoryHostPointerPropertiesEXT::default();
        let ask = host_pointers.fp().get_memory_host_pointer_properties_ext;
        // SAFETY: contracts 1, 7 and 12.
        let asked = unsafe { ask(device.raw.handle(), HOST, first, &mut allowed) };
        refused(ASK, asked.result())?;

        let tensor_bytes = (range.len() as u64).next_multiple_of(LOAD_BYTES);
        let mut bytes = window.offset + tensor_bytes;
        if device.info.workarounds.odd_buffer_sizes && bytes.is_power_of_two() && bytes < window.bytes {
            bytes += LOAD_BYTES;
        }
        let mut external = vk::ExternalMemoryBufferCreateInfo::default().handle_types(HOST);
        let create = vk::BufferCreateInfo::default().size(bytes).usage(BUFFER_USAGE).push_next(&mut external);
        // SAFETY: contracts 1, 6 and 7.
        let raw = refused("vkCreateBuffer", unsafe { device.raw.create_buffer(&create, None) })?;
        let mut buffer = Buffer::around(device, raw, window.offset, tensor_bytes);
        // SAFETY: contract 2.
        let requirements = unsafe { device.raw.get_buffer_memory_requirements(raw) };
        if requirements.size > window.bytes {
            let result = format!("{} bytes for a buffer on {}", requirements.size, window.bytes);
            return Err(refusal("vkGetBufferMemoryRequirements", result));
        }
        let allowed = allowed.memory_type_bits & requirements.memory_type_bits;
        // What the host wrote must be there without a flush: nothing is mapped that could be flushed.
        let coherent = vk::MemoryPropertyFlags::HOST_VISIBLE | vk::MemoryPropertyFlags::HOST_COHERENT;
        let fits =
            |(i, t): (usize, &vk::MemoryType)| allowed & (1 << i) != 0 && t.property_flags.contains(coherent);
        let index = device.memory_types.iter().enumerate().position(fits);
        let index =
            index.ok_or_else(|| refusal(ASK, format!("no coherent memory type among {allowed:#b}")))?;
        let mut import = vk::ImportMemoryHostPointerInfoEXT::default().handle_type(HOST).host_pointer(first);
        let allocate = vk::MemoryAllocateInfo::default()
            .allocation_size(window.bytes)
            .memory_type_index(index as u32)
            .push_next(&mut import);
        // SAFETY: contracts 1, 6, 7 and 12.
        let memory = refused("vkAllocateMemory", unsafe { device.raw.allocate_memory(&allocate, None) })?;
        buffer.imported = Some(Imported { memory, _host: host.clone() });
        // SAFETY: contract 2; a fresh buffer and the memory that was imported for it.
        refused("vkBindBufferMemory", unsafe { device.raw.bind_buffer_memory(raw, memory, 0) })?;
        buffer.mapped = NonNull::new(tensor);
        buffer.cached = true;
        device.name_object(raw, name);
        Ok(buffer)
    }

    /// Whether it is the application's memory.
    pub(crate) fn is_imported(&self) -> bool {
        self.imported.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: u64 = 4096;

    #[test]
    fn whole_pages_are_imported() {
        let memory = 10 * PAGE..20 * PAGE;
        let window = |tensor| Window::new(memory.clone(), tensor, PAGE);
        let start = 10 * PAGE;
        assert_eq!(window(start..start + 4), Some(Window { start, bytes: PAGE, offset: 0 }));
        assert_eq!(window(start + 64..start + PAGE), Some(Window { start, bytes: PAGE, offset: 64 }));
        assert_eq!(window(start + 64..start + PAGE + 1), Some(Window { start, bytes: 2 * PAGE, offset: 64 }));
        let start = 19 * PAGE;
        assert_eq!(window(start..20 * PAGE), Some(Window { start, bytes: PAGE, offset: 0 }));
    }

    #[test]
    fn the_first_and_the_last_page_need_not_be_whole() {
        let memory = 10 * PAGE + 32..12 * PAGE + 100;
        let whole = Window { start: 10 * PAGE, bytes: 3 * PAGE, offset: 32 };
        assert_eq!(Window::new(memory.clone(), memory, PAGE), Some(whole));
    }

    /// Where the device counts in larger pages than systems have, the pages around the memory may be unmapped.
    #[test]
    fn large_pages_do_not_reach_beyond_the_memory() {
        let large = 16 * PAGE;
        let window = |memory, tensor| Window::new(memory, tensor, large);
        let (start, end) = (large, 3 * large);
        assert_eq!(window(start..end, start..end), Some(Window { start, bytes: 2 * large, offset: 0 }));
        assert_eq!(window(start + PAGE..end, start + PAGE..end), None);
        assert_eq!(window(start..end - PAGE, start..end - PAGE), None);
        let inside = Window { start, bytes: large, offset: 2 * PAGE };
        assert_eq!(window(start..end - PAGE, start + 2 * PAGE..start + 3 * PAGE), Some(inside));
    }

    #[test]
    fn the_last_byte_of_the_address_space_is_no_overflow() {
        let memory = u64::MAX - 2 * PAGE..u64::MAX;
        assert_eq!(Window::new(memory.clone(), memory, PAGE), None);
    }

    /// An owner that lends its own bytes stays where they are.
    #[test]
    fn the_owner_does_not_move() {
        let memory = HostMemory::new([7u8; 100]);
        let clone = memory.clone();
        drop(memory);
        assert_eq!(clone.as_bytes(), [7; 100]);
        assert_eq!(HostMemory::new(Vec::new()).as_bytes(), [0u8; 0]);
    }
}
