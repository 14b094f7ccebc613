//! Recordings, and the values in them.

use std::ffi::c_char;
use std::mem::MaybeUninit;
use std::ptr::NonNull;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use tidemill::explain::Explanation;
use tidemill::{Operand, Recording, Value};

use crate::TM_MAX_RANK;
use crate::accelerator::{opened, tm_accelerator};
use crate::arguments::{dtype_number, given, handle, lock, place, string, tm_dtype};
use crate::config::{profiling, tm_profiling};
use crate::json;
use crate::plan::tm_plan;
use crate::status::{Failure, guard, guarded, tm_status};
use crate::submission::tm_submission;
use crate::tensor::{put_shape, tm_tensor};

/// A list of operations between tm_begin_recording and tm_end_recording, which become one submission. An
/// operation that fails leaves it as it was.
#[derive(Debug)]
pub struct tm_recording {
    /// The upper bits of its values' ids.
    number: u64,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    recording: Held,
    values: Vec<Value>,
}

/// The recording of a handle.
#[derive(Debug)]
enum Held {
    /// The handle's own.
    Own(Box<Recording>),
    /// A stream's, which ends it itself.
    Lent(Lent),
    /// It has ended.
    Ended,
}

impl Held {
    fn recording(&self) -> Result<&Recording, Failure> {
        match self {
            Held::Own(recording) => Ok(recording),
            // SAFETY: contract 5: the recording outlives the handle.
            Held::Lent(lent) => Ok(unsafe { lent.0.as_ref() }),
            Held::Ended => Err(ended()),
        }
    }
}

/// A recording that a stream owns, for the time of a callback.
#[derive(Debug)]
struct Lent(NonNull<Recording>);

// SAFETY: contract 5: the stream leaves the recording alone during the callback, and the handle's lock lets one thread
// at a time use it. A recording is `Send`.
unsafe impl Send for Lent {}

/// An operand: a tensor (tm_of makes one), or what an operation of the same recording gave. It owns nothing and is not
/// freed; that of a tensor is good as long as the tensor's handle. All zeros is no value.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct tm_value {
    /// The tensor, or NULL.
    pub tensor: *const tm_tensor,
    /// Names a result of an operation; 0 if it is a tensor.
    pub id: u64,
}

impl tm_value {
    pub(crate) const NONE: tm_value = tm_value { tensor: std::ptr::null(), id: 0 };

    /// Whether it is neither a tensor nor a value.
    pub(crate) fn is_none(self) -> bool {
        self.tensor.is_null() && self.id == 0
    }
}

/// Bits of an id that count the values of a recording.
const INDEX_BITS: u32 = 24;
static NEXT: AtomicU64 = AtomicU64::new(1);

/// How operands of C are found.
pub(crate) struct Scope<'a> {
    number: u64,
    values: &'a [Value],
}

impl Scope<'_> {
    /// # Safety
    ///
    /// Contract 1, for `'a`.
    pub(crate) unsafe fn operand<'a>(&self, value: tm_value, name: &str) -> Result<Operand<'a>, Failure> {
        if !value.tensor.is_null() {
            // SAFETY: contract 1.
            let tensor: &'a tm_tensor = unsafe { &*value.tensor };
            return Ok(Operand::Tensor(&tensor.tensor));
        }
        if value.id == 0 {
            return Err(Failure::argument(format!("{name} is no value and no tensor")));
        }
        if value.id >> INDEX_BITS != self.number {
            let message =
                format!("{name} belongs to another recording; keep it there and use the tensor here");
            return Err(Failure::new(tm_status::TM_FOREIGN, message));
        }
        let index = (value.id & ((1 << INDEX_BITS) - 1)) as usize;
        let found = self.values.get(index);
        let found =
            found.ok_or_else(|| Failure::argument(format!("{name} has an id that was not given out")))?;
        Ok(Operand::Value(*found))
    }
}

impl tm_recording {
    fn new(recording: Held) -> tm_recording {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let state = State { recording, values: Vec::new() };
        tm_recording { number, state: Mutex::new(state) }
    }

    /// A recording that a stream will end.
    ///
    /// # Safety
    ///
    /// Contract 5: the recording must outlive the handle, and nothing else may use it as long as the handle is there.
    pub(crate) unsafe fn lent(recording: &Recording) -> tm_recording {
        tm_recording::new(Held::Lent(Lent(NonNull::from(recording))))
    }

    /// Has operations recorded, and gives their values to C.
    pub(crate) fn record(
        &self,
        record: impl FnOnce(&Recording, &Scope<'_>) -> Result<Vec<Value>, Failure>,
    ) -> Result<Vec<tm_value>, Failure> {
        let mut state = lock(&self.state)?;
        let State { recording, values } = &mut *state;
        let made = record(recording.recording()?, &Scope { number: self.number, values })?;
        if values.len() + made.len() > 1 << INDEX_BITS {
            return Err(Failure::argument(format!("a recording has at most {} values", 1 << INDEX_BITS)));
        }
        let first = (self.number << INDEX_BITS) + values.len() as u64;
        values.extend(&made);
        let ids = (first..).take(made.len());
        Ok(ids.map(|id| tm_value { tensor: std::ptr::null(), id }).collect())
    }

    /// Takes the recording out, to be ended by the caller of C.
    pub(crate) fn end(&self) -> Result<Recording, Failure> {
        let mut state = lock(&self.state)?;
        match std::mem::replace(&mut state.recording, Held::Ended) {
            Held::Own(recording) => Ok(*recording),
            Held::Ended => Err(ended()),
            lent @ Held::Lent(_) => {
                state.recording = lent;
                Err(Failure::argument("the stream ends this recording itself".to_owned()))
            }
        }
    }

    /// The values that these are in the recording.
    ///
    /// # Safety
    ///
    /// Contract 1 for the values.
    pub(crate) unsafe fn outputs(&self, outputs: &[tm_value]) -> Result<Vec<Value>, Failure> {
        let state = lock(&self.state)?;
        let scope = Scope { number: self.number, values: &state.values };
        let recording = state.recording.recording()?;
        let values = outputs.iter().map(|output| {
            // SAFETY: contract 1.
            let operand = unsafe { scope.operand(*output, "an output") }?;
            value(recording, operand)
        });
        values.collect()
    }
}

/// The operand as a value: a tensor becomes one without being copied.
pub(crate) fn value(recording: &Recording, operand: Operand<'_>) -> Result<Value, Failure> {
    match operand {
        Operand::Value(value) => Ok(value),
        Operand::Tensor(tensor) => Ok(recording.reshape(tensor, tensor.shape())?),
        other => Ok(recording.copy(other)?),
    }
}

fn ended() -> Failure {
    Failure::new(tm_status::TM_CLOSED, "the recording has ended".to_owned())
}

/// Records one operation.
pub(crate) fn record(
    call: &str,
    recording: Option<&tm_recording>,
    out: Option<&mut MaybeUninit<tm_value>>,
    op: impl FnOnce(&Recording, &Scope<'_>) -> Result<Value, Failure>,
) -> tm_status {
    guard(call, || {
        let out = given(out, "out")?.write(tm_value::NONE);
        let made = given(recording, "recording")?.record(|r, scope| Ok(vec![op(r, scope)?]))?;
        *out = made.first().copied().unwrap_or(tm_value::NONE);
        Ok(())
    })
}

/// A place for a value, and what C calls it.
type Place<'a> = (Option<&'a mut MaybeUninit<tm_value>>, &'static str);

/// As [`record`], for an operation that gives two values.
pub(crate) fn record_two(
    call: &str,
    recording: Option<&tm_recording>,
    first: Place<'_>,
    second: Place<'_>,
    op: impl FnOnce(&Recording, &Scope<'_>) -> Result<[Value; 2], Failure>,
) -> tm_status {
    guard(call, || {
        let places = [first, second].map(|(out, name)| Ok(given(out, name)?.write(tm_value::NONE)));
        let [first, second]: [Result<_, Failure>; 2] = places;
        let (first, second) = (first?, second?);
        let made = given(recording, "recording")?.record(|r, scope| Ok(op(r, scope)?.to_vec()))?;
        *first = made.first().copied().unwrap_or(tm_value::NONE);
        *second = made.get(1).copied().unwrap_or(tm_value::NONE);
        Ok(())
    })
}

/// A tensor as an operand.
#[unsafe(no_mangle)]
pub extern "C" fn tm_of(tensor: *const tm_tensor) -> tm_value {
    tm_value { tensor, id: 0 }
}

/// Begins a recording.
#[unsafe(no_mangle)]
pub extern "C" fn tm_begin_recording(
    gpu: Option<&tm_accelerator>,
    recording: Option<&mut MaybeUninit<*mut tm_recording>>,
) -> tm_status {
    guard("tm_begin_recording", || {
        let out = place(recording, "recording")?;
        *out = handle(tm_recording::new(Held::Own(Box::new(opened(gpu)?.begin_recording()?))));
        Ok(())
    })
}

/// Makes a value a tensor that outlives the recording. It has contents once the recording was submitted.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tm_keep(
    recording: Option<&tm_recording>,
    x: tm_value,
    tensor: Option<&mut MaybeUninit<*mut tm_tensor>>,
) -> tm_status {
    guard("tm_keep", || {
        let out = place(tensor, "tensor")?;
        given(recording, "recording")?.record(|r, scope| {
            // SAFETY: contract 1.
            let value = value(r, unsafe { scope.operand(x, "x") }?)?;
            *out = handle(tm_tensor { tensor: r.keep(value)? });
            Ok(Vec::new())
        })?;
        Ok(())
    })
}

/// The extents of an operand: `dims` has room for TM_MAX_RANK of them, and `rank` gets how many there are.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tm_value_shape(
    recording: Option<&tm_recording>,
    x: tm_value,
    dims: Option<&mut MaybeUninit<[usize; TM_MAX_RANK]>>,
    rank: Option<&mut MaybeUninit<usize>>,
) -> tm_status {
    guard("tm_value_shape", || {
        given(recording, "recording")?.record(|r, scope| {
            // SAFETY: contract 1.
            let shape = r.shape(unsafe { scope.operand(x, "x") }?)?;
            put_shape(shape, dims, rank)?;
            Ok(Vec::new())
        })?;
        Ok(())
    })
}

/// The element type of an operand.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tm_value_dtype(
    recording: Option<&tm_recording>,
    x: tm_value,
    dtype: Option<&mut MaybeUninit<tm_dtype>>,
) -> tm_status {
    guard("tm_value_dtype", || {
        let out = given(dtype, "dtype")?;
        given(recording, "recording")?.record(|r, scope| {
            // SAFETY: contract 1.
            out.write(dtype_number(r.dtype(unsafe { scope.operand(x, "x") }?)?)?);
            Ok(Vec::new())
        })?;
        Ok(())
    })
}

/// Ends the recording and hands it to the device as one submission; waits for nothing. `submission` may be NULL:
/// reading a kept tensor waits by itself. The recording's handle still has to be freed.
#[unsafe(no_mangle)]
pub extern "C" fn tm_end_recording(
    recording: Option<&tm_recording>,
    submission: Option<&mut MaybeUninit<*mut tm_submission>>,
) -> tm_status {
    guard("tm_end_recording", || {
        let out = submission.map(|out| out.write(std::ptr::null_mut()));
        let submission = given(recording, "recording")?.end()?.end_recording()?;
        if let Some(out) = out {
            *out = handle(tm_submission { submission });
        }
        Ok(())
    })
}

/// Ends the recording as a plan, which submits it as often as it is wanted. The recording's handle still has to be
/// freed.
#[unsafe(no_mangle)]
pub extern "C" fn tm_into_plan(
    recording: Option<&tm_recording>,
    plan: Option<&mut MaybeUninit<*mut tm_plan>>,
) -> tm_status {
    guard("tm_into_plan", || {
        let out = place(plan, "plan")?;
        *out = handle(tm_plan::new(given(recording, "recording")?.end()?.into_plan()?));
        Ok(())
    })
}

/// Profiles this recording in its own way, whatever the accelerator's is.
#[unsafe(no_mangle)]
pub extern "C" fn tm_recording_profiling(recording: Option<&tm_recording>, mode: tm_profiling) -> tm_status {
    guard("tm_recording_profiling", || {
        let mode = profiling(mode)?;
        given(recording, "recording")?.record(|r, _| {
            r.profiling(mode);
            Ok(Vec::new())
        })?;
        Ok(())
    })
}

fn explain(
    call: &str,
    recording: Option<&tm_recording>,
    text: Option<&mut MaybeUninit<*mut c_char>>,
    show: impl FnOnce(&Explanation) -> String,
) -> tm_status {
    guard(call, || {
        let out = place(text, "text")?;
        given(recording, "recording")?.record(|r, _| {
            *out = string(show(&r.explain()?));
            Ok(Vec::new())
        })?;
        Ok(())
    })
}

/// Explains what will run if the recording ends now, as a text: fused operations, barriers, stored values.
#[unsafe(no_mangle)]
pub extern "C" fn tm_explain(
    recording: Option<&tm_recording>,
    text: Option<&mut MaybeUninit<*mut c_char>>,
) -> tm_status {
    explain("tm_explain", recording, text, Explanation::to_string)
}

/// The same as JSON: values, the operations as they were recorded, and what will run. `reads` and `writes` are places
/// in `values`.
#[unsafe(no_mangle)]
pub extern "C" fn tm_explain_json(
    recording: Option<&tm_recording>,
    text: Option<&mut MaybeUninit<*mut c_char>>,
) -> tm_status {
    explain("tm_explain_json", recording, text, |explanation| json::explanation(explanation).to_string())
}

/// The same as a drawing, an SVG file.
#[unsafe(no_mangle)]
pub extern "C" fn tm_explain_svg(
    recording: Option<&tm_recording>,
    text: Option<&mut MaybeUninit<*mut c_char>>,
) -> tm_status {
    explain("tm_explain_svg", recording, text, Explanation::to_svg)
}

/// The same as a graph for Graphviz.
#[unsafe(no_mangle)]
pub extern "C" fn tm_explain_dot(
    recording: Option<&tm_recording>,
    text: Option<&mut MaybeUninit<*mut c_char>>,
) -> tm_status {
    explain("tm_explain_dot", recording, text, Explanation::to_dot)
}

/// Frees the handle. A recording that has not ended is discarded. NULL is allowed.
#[unsafe(no_mangle)]
pub extern "C" fn tm_recording_free(recording: Option<Box<tm_recording>>) {
    guarded((), || drop(recording));
}
