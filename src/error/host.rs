//! What can go wrong on a host's own device.

/// What can go wrong with a device, a buffer or a command buffer of the host's.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum HostError {
    /// The device was made without something that can't be done without.
    #[error(
        "the host's device {device} was made without {}; enable what tidemill::interop::DeviceNeeds lists when making it",
        .missing.join(", ")
    )]
    DeviceLacks {
        /// The device.
        device: String,
        /// What is missing.
        missing: Vec<String>,
    },
    /// The host's lock gave control back without having let the call through.
    #[error("the host's queue lock did not make the call it was given: QueueLock::with_queue must, once")]
    QueueLock,
    /// A buffer was not made for what kernels do with it.
    #[error(
        "wrap: the host's buffer was made without {missing}; make it with tidemill::interop::BUFFER_USAGE"
    )]
    BufferUsage {
        /// The usages that it lacks.
        missing: String,
    },
    /// A range that is too short.
    #[error(
        "wrap: {needs} bytes are needed (whole groups of 16: kernels load so many at a time), the range has {got}"
    )]
    BufferSize {
        /// What the tensor takes.
        needs: u64,
        /// What the range has.
        got: u64,
    },
    /// A range that begins where no binding may.
    #[error("wrap: the range begins at byte {offset}, which is no multiple of the device's {alignment}")]
    BufferOffset {
        /// Where it begins.
        offset: u64,
        /// What it must be a multiple of.
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
    /// A tensor that reaches out of the application's memory.
    #[error("import: {needs} bytes from byte {offset} on do not lie in the memory's {got}")]
    MemoryRange {
        /// Where the tensor begins.
        offset: usize,
        /// How long it is.
        needs: usize,
        /// How long the memory is.
        got: usize,
    },
    /// A tensor that begins where no binding may.
    #[error(
        "import: byte {offset} of the memory has address {address:#x}, which is no multiple of the device's {alignment}; lay the \
         data out like that, or let Accelerator::import_or_upload copy it"
    )]
    MemoryAddress {
        /// Where the tensor begins in the memory.
        offset: usize,
        /// The address of that.
        address: u64,
        /// What it must be a multiple of.
        alignment: u64,
    },
    /// The device imports pages so large that those around the tensor are not all the memory's.
    #[error(
        "import: the device imports {pages} bytes at a time, and around the tensor at byte {offset} those reach beyond the memory's \
         {memory} bytes; begin and end the memory at multiples of that, or let Accelerator::import_or_upload copy it"
    )]
    MemoryPages {
        /// What is imported at a time.
        pages: u64,
        /// Where the tensor begins in the memory.
        offset: usize,
        /// How long the memory is.
        memory: usize,
    },
    /// The driver does not take this memory: some take no mapped files, or no memory that can't be written.
    #[error(
        "import: the driver does not take this memory ({call}: {result}); Accelerator::import_or_upload copies it instead"
    )]
    ImportRefused {
        /// The Vulkan function that said so.
        call: &'static str,
        /// Its result.
        result: String,
    },
    /// Memory of the host's was expected, and this is the pool's.
    #[error(
        "{op}: the tensor is not a wrapped buffer of the host's; keep() gives results memory of their own"
    )]
    NotWrapped {
        /// The operation.
        op: &'static str,
    },
    /// Commands for the host's command buffer read what is still on its way to the device.
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
    /// The host submits its command buffer, so that there is no submission of ours to wait with or to signal.
    #[error(
        "record_into: {waits} waits and {signals} signals were asked for; the host's own submission has to have them"
    )]
    NoSubmission {
        /// Points to wait for.
        waits: usize,
        /// Points to signal.
        signals: usize,
    },
}
