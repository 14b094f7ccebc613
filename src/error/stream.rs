//! Errors of streams.

/// An error of a [`Stream`](crate::Stream).
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StreamError {
    /// A stream needs at least one slot.
    #[error("a stream needs 1 slot or more, got 0; 3 keep the device busy")]
    NoSlots,
    /// More slots than a stream can have.
    #[error("a stream can have at most {most} slots, got {slots}; 3 keep the device busy")]
    TooManySlots {
        /// The requested value.
        slots: usize,
        /// The most there can be.
        most: usize,
    },
    /// Every slot holds a batch, and the caller is the one who must pop one.
    #[error(
        "all {slots} slots hold batches: pop one before the next push, or split the stream for two threads"
    )]
    Full {
        /// The stream's slots.
        slots: usize,
    },
    /// The other half of the stream is gone.
    #[error("the stream's consumer is gone: no one will pop what is pushed")]
    Closed,
    /// [`StreamControl::finish`](crate::stream::StreamControl::finish) was called.
    #[error("the stream was finished: nothing more can be pushed")]
    Finished,
    /// [`StreamControl::cancel`](crate::stream::StreamControl::cancel) was called.
    #[error("the stream was cancelled: nothing more can be pushed or popped")]
    Cancelled,
    /// A batch was pushed without one of its inputs.
    #[error("batch {batch}: input {input} was not written")]
    NotFilled {
        /// The batch's number.
        batch: u64,
        /// The input's.
        input: usize,
    },
    /// There is no such input.
    #[error("input {input} does not exist, the stream has {inputs}")]
    NoSuchInput {
        /// The requested value.
        input: usize,
        /// How many there are.
        inputs: usize,
    },
    /// There is no such output.
    #[error("output {output} does not exist, the stream has {outputs}")]
    NoSuchOutput {
        /// The requested value.
        output: usize,
        /// How many there are.
        outputs: usize,
    },
    /// A partial batch has at least one row and at most as many as a whole one.
    #[error(
        "a batch of {rows} rows does not fit, the stream's first input has {most}; give 1 to {most} rows"
    )]
    Rows {
        /// The requested value.
        rows: usize,
        /// The extent of the first input's first dimension.
        most: usize,
    },
}
