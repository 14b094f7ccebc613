//! Errors on a host's own device.

/// An error with a device, a buffer or a command buffer of the host.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum HostError {
    /// The device was created without something that the engine needs.
    #[error(
        "the host's device {device} was created without {}; enable what tidemill::interop::DeviceNeeds lists when you create it",
        .missing.join(", ")
    )]
    DeviceLacks {
        /// The device.
        device: String,
        /// Missing features and extensions.
        missing: Vec<String>,
    },
    /// The host's lock returned without having made the call.
    #[error("QueueLock::with_queue did not make the call that it was given; it must make it exactly once")]
    QueueLock,
    /// A buffer was created without usages that kernels need.
    #[error(
        "wrap: the host's buffer was created without {missing}; create it with tidemill::interop::BUFFER_USAGE"
    )]
    BufferUsage {
        /// The usages that it lacks.
        missing: String,
    },
    /// A range that is too short.
    #[error(
        "wrap: {needs} bytes are needed (a multiple of 16: kernels load 16 bytes at a time), the range has {got}"
    )]
    BufferSize {
        /// Bytes that the tensor takes.
        needs: u64,
        /// Bytes of the range.
        got: u64,
    },
    /// A range begins where no binding may begin.
    #[error(
        "wrap: the range begins at byte {offset}, it must begin at a multiple of the device's {alignment}"
    )]
    BufferOffset {
        /// Where it begins.
        offset: u64,
        /// The required alignment.
        alignment: u64,
    },
    /// The device can't read the application's own memory.
    #[error(
        "import: {device} has no VK_EXT_external_memory_host, or was made without it; Accelerator::import_or_upload copies instead"
    )]
    NoHostPointers {
        /// The device.
        device: String,
    },
    /// A tensor reaches beyond the application's memory.
    #[error("import: {needs} bytes from byte {offset} on reach beyond the memory's {got}")]
    MemoryRange {
        /// Where the tensor begins.
        offset: usize,
        /// How long it is.
        needs: usize,
        /// How long the memory is.
        got: usize,
    },
    /// A tensor begins where no binding may begin.
    #[error(
        "import: byte {offset} of the memory has address {address:#x}, which is not a multiple of the device's {alignment}; align the \
         data, or let Accelerator::import_or_upload copy it"
    )]
    MemoryAddress {
        /// Where the tensor begins in the memory.
        offset: usize,
        /// The address of that.
        address: u64,
        /// The required alignment.
        alignment: u64,
    },
    /// The device imports whole pages, and the pages around the tensor reach beyond the memory.
    #[error(
        "import: the device imports pages of {pages} bytes; those around the tensor at byte {offset} reach beyond the memory's \
         {memory} bytes; begin and end the memory at multiples of {pages}, or let Accelerator::import_or_upload copy it"
    )]
    MemoryPages {
        /// The size of a page.
        pages: u64,
        /// Where the tensor begins in the memory.
        offset: usize,
        /// How long the memory is.
        memory: usize,
    },
    /// The driver refused this memory. Some drivers refuse mapped files, or memory that is read-only.
    #[error(
        "import: the driver does not take this memory ({call}: {result}); Accelerator::import_or_upload copies it instead"
    )]
    ImportRefused {
        /// The Vulkan function that said so.
        call: &'static str,
        /// Its result.
        result: String,
    },
    /// The tensor must be in memory of the host, and is in memory of the pool.
    #[error(
        "{op}: the tensor is not a wrapped buffer of the host; wrap one, or use keep(), which takes memory from the pool"
    )]
    NotWrapped {
        /// The operation.
        op: &'static str,
    },
    /// Commands for the host's command buffer read tensors whose uploads were not submitted yet.
    #[error(
        "record_into: {uploads} uploads of {bytes} bytes to tensors that it reads were not submitted yet; \
         call Accelerator::flush before"
    )]
    UploadsPending {
        /// How many.
        uploads: usize,
        /// How much.
        bytes: u64,
    },
    /// The host submits its command buffer itself, so the engine has no submission that could wait or signal.
    #[error(
        "record_into: {waits} waits and {signals} signals were requested; put them into the host's own submission"
    )]
    NoSubmission {
        /// Points to wait for.
        waits: usize,
        /// Points to signal.
        signals: usize,
    },
}
