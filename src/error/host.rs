//! What can go wrong on a host's own device.

/// What can go wrong with a device, a buffer or a command buffer of the host's.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum HostError {
    /// The device was made without something that can't be done without.
    #[error(
        "the host's device {device} was made without {}; enable what tidemill::raw::DeviceNeeds lists when making it",
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
    #[error("wrap: the host's buffer was made without {missing}; make it with tidemill::raw::BUFFER_USAGE")]
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
