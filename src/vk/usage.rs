//! What buffers are made for.

use ash::vk;

/// What a host's buffer must have been made for to become a tensor. Tidemill's own have the same.
pub const BUFFER_USAGE: vk::BufferUsageFlags = vk::BufferUsageFlags::from_raw(
    vk::BufferUsageFlags::TRANSFER_SRC.as_raw()
        | vk::BufferUsageFlags::TRANSFER_DST.as_raw()
        | vk::BufferUsageFlags::STORAGE_BUFFER.as_raw()
        | vk::BufferUsageFlags::STORAGE_TEXEL_BUFFER.as_raw()
        | vk::BufferUsageFlags::UNIFORM_TEXEL_BUFFER.as_raw()
        | vk::BufferUsageFlags::UNIFORM_BUFFER.as_raw(),
);

/// The format of the engine's own texel views: 16 raw bytes, so that one view serves every element type and a load
/// can't touch a NaN's bits.
pub(crate) const TEXEL_FORMAT: vk::Format = vk::Format::R32G32B32A32_UINT;

/// What a buffer's memory is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum MemoryKind {
    /// Read and written by the device; mapped too where the device's own memory is.
    Device,
    /// Written by the host, copied from by the device.
    Upload,
    /// Copied to by the device, read by the host.
    Readback,
}

impl MemoryKind {
    /// Whether data only passes through.
    pub(crate) fn is_staging(self) -> bool {
        self != MemoryKind::Device
    }

    pub(super) fn purpose(self) -> &'static str {
        match self {
            MemoryKind::Device => "for tensors",
            MemoryKind::Upload => "that the host can write",
            MemoryKind::Readback => "that the host can read",
        }
    }
}
