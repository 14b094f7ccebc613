//! Streams: the same work on batch after batch.

use std::ffi::{c_char, c_void};
use std::mem::MaybeUninit;
use std::sync::Mutex;
use std::time::Duration;

use tidemill::error::StreamError;
use tidemill::stream::{Batch, Consumer, Producer, Slot, StreamBuilder, StreamControl, StreamStats};
use tidemill::{DType, Error, Recording, Value};

use crate::accelerator::{opened, tm_accelerator};
use crate::arguments::{
    count, dtype, elements, elements_mut, given, handle, lock, place, shape, string, tm_dtype, with_type,
};
use crate::json;
use crate::profile::tm_run;
use crate::recording::{tm_recording, tm_value};
use crate::status::{Failure, guard, guarded, last_message, tm_status};
use crate::submission::timeout;
use crate::tensor::tm_tensor;

/// The same work on batch after batch, with slots in rotation: while the device works on one batch, the host prepares
/// the next and consumes the last. One thread may push while another one pops.
#[derive(Debug)]
pub struct tm_stream {
    inputs: Vec<DType>,
    /// `None` once it was finished.
    producer: Mutex<Option<Producer>>,
    consumer: Mutex<Consumer>,
    /// Ends it while others hold the locks.
    control: StreamControl,
}

/// The most inputs, and the most outputs, that a stream takes from C.
const MOST_TENSORS: usize = 1024;

/// A batch that is done. It holds its slot until it is freed.
#[derive(Debug)]
pub struct tm_batch {
    batch: Batch,
}

/// An input of every batch. Its first dimension counts the rows of a batch.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct tm_stream_input {
    /// Its element type,
    pub dtype: tm_dtype,
    /// its extents,
    pub dims: *const usize,
    /// and how many of them there are.
    pub rank: usize,
}

/// The contents of an input.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct tm_bytes {
    /// Where they are,
    pub data: *const c_void,
    /// and how many.
    pub size_bytes: usize,
}

/// Records what is done with a batch: gets a recording and the inputs, which are the library's, and writes as many
/// outputs as were announced. 0 says that it worked. It must not throw, and must not end or free the recording.
pub type tm_record_fn = Option<
    unsafe extern "C" fn(
        recording: *mut tm_recording,
        inputs: *const *const tm_tensor,
        outputs: *mut tm_value,
        user: *mut c_void,
    ) -> i32,
>;

/// The argument of `tm_record_fn`.
struct Recorder {
    function:
        unsafe extern "C" fn(*mut tm_recording, *const *const tm_tensor, *mut tm_value, *mut c_void) -> i32,
    output_count: usize,
    user: *mut c_void,
}

impl Recorder {
    /// Lends the recording to C for the time of the call.
    fn call(&self, r: &Recording, inputs: &[tidemill::Tensor]) -> Result<Vec<Value>, Failure> {
        if inputs.is_empty() {
            return Err(Failure::argument("there are no inputs".to_owned()));
        }
        // SAFETY: contract 5: `r` is not used below, and the handle goes with this call.
        let mut lent = unsafe { tm_recording::lent(r) };
        let inputs: Vec<tm_tensor> =
            inputs.iter().map(|tensor| tm_tensor { tensor: tensor.clone() }).collect();
        let pointers: Vec<*const tm_tensor> = inputs.iter().map(std::ptr::from_ref).collect();
        let mut outputs = vec![tm_value::NONE; self.output_count];
        // SAFETY: contract 4; everything it gets lives as long as the call.
        let said = unsafe { (self.function)(&mut lent, pointers.as_ptr(), outputs.as_mut_ptr(), self.user) };
        if said != 0 {
            let message =
                format!("the recording function gave {said}; the last message is: {}", last_message());
            return Err(Failure::new(tm_status::TM_CALLBACK, message));
        }
        // SAFETY: the callback's values are as contract 1 says, and the inputs are still here.
        unsafe { lent.outputs(&outputs) }
    }
}

/// A stream: `slots` batches may be on their way (3 keep the device busy, the maximum is 1024), each with `input_count`
/// inputs and `output_count` outputs, 1024 at the most. `record` is called once, before this returns. Other tensors
/// that it uses are shared by all batches.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tm_stream_new(
    gpu: Option<&tm_accelerator>,
    slots: usize,
    inputs: *const tm_stream_input,
    input_count: usize,
    output_count: usize,
    record: tm_record_fn,
    user: *mut c_void,
    stream: Option<&mut MaybeUninit<*mut tm_stream>>,
) -> tm_status {
    guard("tm_stream_new", || {
        let out = place(stream, "stream")?;
        for (name, count) in [("input_count", input_count), ("output_count", output_count)] {
            if count > MOST_TENSORS {
                return Err(Failure::argument(format!("{name} is {count}, the maximum is {MOST_TENSORS}")));
            }
        }
        let recorder = Recorder { function: given(record, "record")?, output_count, user };
        // SAFETY: contract 1.
        let inputs: &[tm_stream_input] = unsafe { elements(inputs, input_count, "inputs") }?;
        let mut builder = opened(gpu)?.stream().slots(slots);
        let mut dtypes = Vec::new();
        for input in inputs {
            // SAFETY: contract 1.
            let shape = unsafe { shape("stream", input.dims, input.rank) }?;
            let dtype = dtype(input.dtype)?;
            dtypes.push(dtype);
            let with_input: Result<StreamBuilder, Failure> =
                with_type!(dtype, T => Ok(builder.input::<T>(shape)));
            builder = with_input?;
        }
        let mut failure = None;
        let made = builder.record(|r, inputs| {
            recorder.call(r, inputs).map_err(|failed| {
                failure = Some(failed);
                // Only says that there is a failure.
                Error::Closed
            })
        });
        if let Some(failure) = failure {
            return Err(failure);
        }
        let made = made?;
        let control = made.control();
        let (producer, consumer) = made.split();
        let (producer, consumer) = (Mutex::new(Some(producer)), Mutex::new(consumer));
        *out = handle(tm_stream { inputs: dtypes, producer, consumer, control });
        Ok(())
    })
}

impl tm_stream {
    /// From the end that no thread waits on; both ends know the same.
    fn stats(&self) -> Result<StreamStats, Failure> {
        if let Some(stats) = self.producer.try_lock().ok().and_then(|end| Some(end.as_ref()?.stats())) {
            return Ok(stats);
        }
        if let Ok(consumer) = self.consumer.try_lock() {
            return Ok(consumer.stats());
        }
        // While both wait, a batch or a slot is about to come.
        if let Some(producer) = lock(&self.producer)?.as_ref() {
            return Ok(producer.stats());
        }
        Ok(lock(&self.consumer)?.stats())
    }

    /// Writes the inputs of a batch.
    ///
    /// # Safety
    ///
    /// Contract 1.
    unsafe fn fill(&self, slot: &mut Slot<'_>, inputs: &[tm_bytes], rows: usize) -> Result<(), Failure> {
        if rows > 0 {
            slot.rows(rows)?;
        }
        for (i, (input, dtype)) in inputs.iter().zip(&self.inputs).enumerate() {
            let name = format!("inputs[{i}]");
            let written: Result<(), Failure> = with_type!(*dtype, T => {
                // SAFETY: contract 1.
                let data = unsafe { elements(input.data.cast::<T>(), count::<T>(input.size_bytes, &name)?, &name) }?;
                Ok(slot.write(i, data)?)
            });
            written?;
        }
        Ok(())
    }
}

/// # Safety
///
/// Contract 1.
unsafe fn push(
    call: &str,
    stream: Option<&tm_stream>,
    inputs: *const tm_bytes,
    rows: usize,
    wait: bool,
) -> tm_status {
    guard(call, || {
        let stream = given(stream, "stream")?;
        // SAFETY: contract 1.
        let inputs = unsafe { elements(inputs, stream.inputs.len(), "inputs") }?;
        let mut producer = lock(&stream.producer)?;
        let producer = producer
            .as_mut()
            .ok_or_else(|| Failure::new(tm_status::TM_CLOSED, "the stream was finished".to_owned()))?;
        let mut failure = None;
        let fill = |slot: &mut Slot<'_>| {
            // SAFETY: contract 1.
            unsafe { stream.fill(slot, inputs, rows) }.map_err(|failed| {
                failure = Some(failed);
                // Only says that there is a failure.
                Error::Closed
            })
        };
        let pushed = if wait { producer.push(fill).map(|()| true) } else { producer.try_push(fill) };
        match (failure, pushed) {
            (Some(failure), _) => Err(failure),
            (None, Ok(true)) => Ok(()),
            (None, Ok(false)) => Err(Error::from(StreamError::Full { slots: producer.stats().slots }).into()),
            (None, Err(error)) => Err(error.into()),
        }
    })
}

/// Copies the inputs of a batch (as many as the stream has) into a slot and hands it to the device. Waits while every
/// slot holds a batch: for two threads. `rows` is 0 for a whole batch, or how many rows a partial one has: inputs then
/// have so many, and outputs give this many.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tm_stream_push(
    stream: Option<&tm_stream>,
    inputs: *const tm_bytes,
    rows: usize,
) -> tm_status {
    // SAFETY: the caller keeps the contract.
    unsafe { push("tm_stream_push", stream, inputs, rows, true) }
}

/// As tm_stream_push, but gives TM_STREAM_FULL instead of waiting: for one thread, which then pops.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tm_stream_try_push(
    stream: Option<&tm_stream>,
    inputs: *const tm_bytes,
    rows: usize,
) -> tm_status {
    // SAFETY: the caller keeps the contract.
    unsafe { push("tm_stream_try_push", stream, inputs, rows, false) }
}

/// Says that no more batches will be pushed. tm_stream_pop then gives what is left, and NULL after that. A
/// tm_stream_push that waits for a slot on another thread is refused with TM_CLOSED, as later ones are.
#[unsafe(no_mangle)]
pub extern "C" fn tm_stream_finish(stream: Option<&tm_stream>) -> tm_status {
    guard("tm_stream_finish", || {
        let stream = given(stream, "stream")?;
        // Before the lock, which a push that waits holds.
        stream.control.finish();
        drop(lock(&stream.producer)?.take());
        Ok(())
    })
}

/// Ends the stream at once, from any thread: a tm_stream_push or tm_stream_pop that waits on another one, and every
/// later one, gives TM_CLOSED. (A tm_stream_pop that waits for the device returns when the batch is done.) Batches that
/// were popped stay good; the others are lost. Waits for nothing. The handle is still to be freed, when no call uses it
/// any more.
#[unsafe(no_mangle)]
pub extern "C" fn tm_stream_cancel(stream: Option<&tm_stream>) -> tm_status {
    guard("tm_stream_cancel", || {
        given(stream, "stream")?.control.cancel();
        Ok(())
    })
}

/// The next batch, in order; waits for it, and for one to be pushed, but no longer than `timeout_ns`: TM_TIMEOUT then,
/// and nothing has changed. `batch` gets NULL when the stream was finished and everything was popped.
#[unsafe(no_mangle)]
pub extern "C" fn tm_stream_pop(
    stream: Option<&tm_stream>,
    timeout_ns: u64,
    batch: Option<&mut MaybeUninit<*mut tm_batch>>,
) -> tm_status {
    guard("tm_stream_pop", || {
        let out = place(batch, "batch")?;
        let stream = given(stream, "stream")?;
        let mut consumer = lock(&stream.consumer)?;
        let popped = match timeout_ns {
            crate::TM_FOREVER => consumer.pop()?,
            ns => consumer.pop_timeout(Duration::from_nanos(ns))?,
        };
        match popped {
            Some(batch) => *out = handle(tm_batch { batch }),
            // A producer that is just pushing holds the lock, and is not gone.
            None if timeout_ns != crate::TM_FOREVER
                && (stream.producer.try_lock().map_or(true, |producer| producer.is_some())
                    || consumer.stats().in_flight > 0) =>
            {
                return Err(timeout(timeout_ns));
            }
            None => {}
        }
        Ok(())
    })
}

/// The stream in figures, as JSON: batches, and how often and how long each end waited.
#[unsafe(no_mangle)]
pub extern "C" fn tm_stream_stats_json(
    stream: Option<&tm_stream>,
    json: Option<&mut MaybeUninit<*mut c_char>>,
) -> tm_status {
    guard("tm_stream_stats_json", || {
        let out = place(json, "json")?;
        let stats = given(stream, "stream")?.stats()?;
        *out = string(json::stream_stats(&stats).to_string());
        Ok(())
    })
}

/// Reports what the device waited for in a profiled run of the stream, as JSON.
#[unsafe(no_mangle)]
pub extern "C" fn tm_stream_report_json(
    stream: Option<&tm_stream>,
    run: Option<&tm_run>,
    json: Option<&mut MaybeUninit<*mut c_char>>,
) -> tm_status {
    guard("tm_stream_report_json", || {
        let out = place(json, "json")?;
        let report = lock(&given(stream, "stream")?.consumer)?.report(&given(run, "run")?.run)?;
        *out = string(json::stream_report(&report).to_string());
        Ok(())
    })
}

/// Frees the handle; waits for nothing. Batches that were popped stay good. NULL is allowed.
#[unsafe(no_mangle)]
pub extern "C" fn tm_stream_free(stream: Option<Box<tm_stream>>) {
    guarded((), || drop(stream));
}

/// Its number, from 0; 0 for NULL, too.
#[unsafe(no_mangle)]
pub extern "C" fn tm_batch_number(batch: Option<&tm_batch>) -> u64 {
    guarded(0, || batch.map_or(0, |batch| batch.batch.number()))
}

/// Its rows, if it is a partial one; 0 if it is whole.
#[unsafe(no_mangle)]
pub extern "C" fn tm_batch_rows(batch: Option<&tm_batch>) -> usize {
    guarded(0, || batch.and_then(|batch| batch.batch.rows()).unwrap_or(0))
}

/// Copies an output to `data`, which has room for exactly `size_bytes` bytes: all its elements, or those of a partial
/// batch's rows.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tm_batch_read(
    batch: Option<&tm_batch>,
    output: usize,
    data: *mut c_void,
    size_bytes: usize,
) -> tm_status {
    guard("tm_batch_read", || {
        let batch = &given(batch, "batch")?.batch;
        with_type!(batch.output(output)?.dtype(), T => {
            // SAFETY: contract 1.
            let data = unsafe { elements_mut(data.cast::<T>(), count::<T>(size_bytes, "data")?, "data") }?;
            Ok(batch.read_into(output, data)?)
        })
    })
}

/// An output as a tensor, for further work on the device: a handle to free. When the batch is freed, a later one may
/// replace its contents.
#[unsafe(no_mangle)]
pub extern "C" fn tm_batch_output(
    batch: Option<&tm_batch>,
    output: usize,
    tensor: Option<&mut MaybeUninit<*mut tm_tensor>>,
) -> tm_status {
    guard("tm_batch_output", || {
        let out = place(tensor, "tensor")?;
        *out = handle(tm_tensor { tensor: given(batch, "batch")?.batch.output(output)?.clone() });
        Ok(())
    })
}

/// The device's work for it, as JSON. TM_PROFILE if it was not profiled.
#[unsafe(no_mangle)]
pub extern "C" fn tm_batch_profile_json(
    batch: Option<&tm_batch>,
    json: Option<&mut MaybeUninit<*mut c_char>>,
) -> tm_status {
    guard("tm_batch_profile_json", || {
        let out = place(json, "json")?;
        *out = string(json::profile(&given(batch, "batch")?.batch.profile()?).to_string());
        Ok(())
    })
}

/// Frees the handle, and its slot for another batch. NULL is allowed.
#[unsafe(no_mangle)]
pub extern "C" fn tm_batch_free(batch: Option<Box<tm_batch>>) {
    guarded((), || drop(batch));
}
