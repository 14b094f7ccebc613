//! Operations on the CPU or the device, whichever is predicted to be faster.

use std::ffi::{c_char, c_void};
use std::mem::MaybeUninit;
use std::ptr::NonNull;
use std::sync::Mutex;

use tidemill::Error;
use tidemill::hybrid::{Calibration, Chain, Hybrid, Link, Part, Policy, Side, Why};

use crate::accelerator::{opened, tm_accelerator};
use crate::arguments::{given, handle, lock, place, string, text};
use crate::host_device::called;
use crate::options::{self, Options, options};
use crate::status::{Failure, guard, guarded, tm_status};

/// How the side of operations is chosen: TM_POLICY_AUTO and so on.
pub type tm_policy = u32;
/// By predicted times of both sides.
pub const TM_POLICY_AUTO: tm_policy = 0;
/// Always the CPU.
pub const TM_POLICY_CPU: tm_policy = 1;
/// Always the device.
pub const TM_POLICY_GPU: tm_policy = 2;

fn policy(number: tm_policy) -> Result<Policy, Failure> {
    match number {
        TM_POLICY_AUTO => Ok(Policy::Auto),
        TM_POLICY_CPU => Ok(Policy::Cpu),
        TM_POLICY_GPU => Ok(Policy::Gpu),
        other => Err(Failure::unknown("policy", other)),
    }
}

/// Operations on the CPU or the device, whichever is predicted to be faster.
#[derive(Debug)]
pub struct tm_hybrid {
    hybrid: Hybrid,
}

/// With the process's own accelerator, or without one if the machine has no device that can be used. Measures the
/// machine if that was not done before.
#[unsafe(no_mangle)]
pub extern "C" fn tm_hybrid_new(
    policy: tm_policy,
    hybrid: Option<&mut MaybeUninit<*mut tm_hybrid>>,
) -> tm_status {
    guard("tm_hybrid_new", || {
        let out = place(hybrid, "hybrid")?;
        *out = handle(tm_hybrid { hybrid: Hybrid::new(self::policy(policy)?)? });
        Ok(())
    })
}

/// With an accelerator of the caller's.
#[unsafe(no_mangle)]
pub extern "C" fn tm_hybrid_with_accelerator(
    gpu: Option<&tm_accelerator>,
    policy: tm_policy,
    hybrid: Option<&mut MaybeUninit<*mut tm_hybrid>>,
) -> tm_status {
    guard("tm_hybrid_with_accelerator", || {
        let out = place(hybrid, "hybrid")?;
        let (gpu, policy) = (opened(gpu)?, self::policy(policy)?);
        *out = handle(tm_hybrid { hybrid: Hybrid::with_accelerator(gpu, policy)? });
        Ok(())
    })
}

/// The measured times of the machine, as a text for tm_hybrid_with_calibration.
#[unsafe(no_mangle)]
pub extern "C" fn tm_hybrid_calibration(
    hybrid: Option<&tm_hybrid>,
    text: Option<&mut MaybeUninit<*mut c_char>>,
) -> tm_status {
    guard("tm_hybrid_calibration", || {
        let out = place(text, "text")?;
        *out = string(given(hybrid, "hybrid")?.hybrid.placement().calibration().to_text());
        Ok(())
    })
}

/// With times that the caller has, as tm_hybrid_calibration gave them.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tm_hybrid_with_calibration(
    gpu: Option<&tm_accelerator>,
    calibration: *const c_char,
    policy: tm_policy,
    hybrid: Option<&mut MaybeUninit<*mut tm_hybrid>>,
) -> tm_status {
    guard("tm_hybrid_with_calibration", || {
        let out = place(hybrid, "hybrid")?;
        // SAFETY: contracts 1 and 3.
        let times = given(unsafe { text(calibration, "calibration") }?, "calibration")?;
        let times = Calibration::from_text(times)
            .ok_or_else(|| Failure::argument("the text is no calibration".to_owned()))?;
        let hybrid = Hybrid::with_calibration(opened(gpu)?, times, self::policy(policy)?);
        *out = handle(tm_hybrid { hybrid });
        Ok(())
    })
}

/// Measures the machine again and keeps the result for the next tm_hybrid_new.
#[unsafe(no_mangle)]
pub extern "C" fn tm_hybrid_calibrate(gpu: Option<&tm_accelerator>) -> tm_status {
    guard("tm_hybrid_calibrate", || {
        Hybrid::calibrate(&opened(gpu)?)?;
        Ok(())
    })
}

/// Frees the handle. NULL is allowed.
#[unsafe(no_mangle)]
pub extern "C" fn tm_hybrid_free(hybrid: Option<Box<tm_hybrid>>) {
    guarded((), || drop(hybrid));
}

/// Operations that are carried out together on one side, while tm_hybrid_chain records them. Elements are f32, i32 or
/// u32.
#[derive(Debug)]
pub struct tm_chain {
    state: Mutex<Recorded>,
}

#[derive(Debug)]
pub(crate) struct Recorded {
    chain: NonNull<Chain<'static>>,
    links: Vec<Link>,
}

// SAFETY: the chain is used under the lock of the handle only, while the thread that owns it waits for C's function.
unsafe impl Send for Recorded {}

impl Recorded {
    pub(crate) fn link(&self, link: tm_link, name: &str) -> Result<Link, Failure> {
        let index = (link as usize).checked_sub(1);
        let found = index.and_then(|index| self.links.get(index));
        found
            .copied()
            .ok_or_else(|| Failure::argument(format!("{name} is {link}, which this chain did not give")))
    }
}

/// An operand or a result of a chain: a number that a function gave, which is good in that chain. 0 is none.
pub type tm_link = u32;

/// Records a chain. 0 says that it worked. It must not throw.
pub type tm_chain_fn = Option<unsafe extern "C" fn(chain: *mut tm_chain, user: *mut c_void) -> i32>;

/// Where a chain went: TM_SIDE_CPU or TM_SIDE_GPU.
pub type tm_side = u32;
/// The CPU.
pub const TM_SIDE_CPU: tm_side = 0;
/// The device.
pub const TM_SIDE_GPU: tm_side = 1;

/// Why a side was chosen: TM_WHY_CHEAPER and so on.
pub type tm_why = u32;
/// It is the cheaper one.
pub const TM_WHY_CHEAPER: tm_why = 0;
/// Its price is not known yet.
pub const TM_WHY_UNTRIED: tm_why = 1;
/// Its price is measured again.
pub const TM_WHY_CHECKED: tm_why = 2;
/// The policy says so.
pub const TM_WHY_POLICY: tm_why = 3;
/// There is no device, or nothing was measured of it.
pub const TM_WHY_NO_DEVICE: tm_why = 4;

/// The largest part of a predicted time: TM_PART_COMPUTE and so on.
pub type tm_part = u32;
/// The operations.
pub const TM_PART_COMPUTE: tm_part = 0;
/// Moving operands and results.
pub const TM_PART_TRANSFER: tm_part = 1;
/// The submission.
pub const TM_PART_SUBMISSION: tm_part = 2;

/// Where a chain went, and why. Set `size` before the call.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct tm_decision {
    /// sizeof(tm_decision).
    pub size: usize,
    /// The side that did the work.
    pub side: tm_side,
    /// Why that one.
    pub why: tm_why,
    /// The largest part of the device's predicted time; without a device, of the CPU's.
    pub dominant: tm_part,
    /// The predicted time on the CPU.
    pub cpu_us: f64,
    /// The predicted time on the device, with transfers; negative if no device was measured.
    pub gpu_us: f64,
}

options!(tm_decision, least: size_of::<tm_decision>(), defaults: tm_decision {
    size: size_of::<tm_decision>(),
    side: TM_SIDE_CPU,
    why: TM_WHY_CHEAPER,
    dominant: TM_PART_COMPUTE,
    cpu_us: 0.0,
    gpu_us: -1.0,
});

fn decision(decision: &tidemill::hybrid::Decision) -> Result<tm_decision, Failure> {
    let why = match decision.why {
        Why::Cheaper => TM_WHY_CHEAPER,
        Why::Untried => TM_WHY_UNTRIED,
        Why::Checked => TM_WHY_CHECKED,
        Why::Policy => TM_WHY_POLICY,
        Why::NoDevice => TM_WHY_NO_DEVICE,
        other => return Err(no_number(&format!("{other:?}"))),
    };
    let dominant = match decision.dominant {
        Part::Compute => TM_PART_COMPUTE,
        Part::Transfer => TM_PART_TRANSFER,
        Part::Submission => TM_PART_SUBMISSION,
        other => return Err(no_number(&format!("{other:?}"))),
    };
    let side = if decision.side == Side::Gpu { TM_SIDE_GPU } else { TM_SIDE_CPU };
    let gpu_us = decision.gpu_us.unwrap_or(-1.0);
    Ok(tm_decision { side, why, dominant, cpu_us: decision.cpu_us, gpu_us, ..tm_decision::DEFAULTS })
}

fn no_number(name: &str) -> Failure {
    Failure::new(tm_status::TM_OTHER, format!("{name} has no number in this ABI"))
}

/// Records operations by a function, and carries them out on the side where all of them together are predicted to be
/// faster: what goes in is moved once, what lies between is not moved at all. Inputs and outputs are read and written
/// before this returns. `decision` may be NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tm_hybrid_chain(
    hybrid: Option<&tm_hybrid>,
    record: tm_chain_fn,
    user: *mut c_void,
    decision: *mut tm_decision,
) -> tm_status {
    guard("tm_hybrid_chain", || {
        let hybrid = &given(hybrid, "hybrid")?.hybrid;
        let record = given(record, "record")?;
        let mut failure = None;
        let decided = hybrid.chain(|chain: &mut Chain<'static>| {
            let state = Recorded { chain: NonNull::from(chain), links: Vec::new() };
            let mut lent = tm_chain { state: Mutex::new(state) };
            // SAFETY: contract 4; the chain lives as long as the call.
            called("record", unsafe { record(&raw mut lent, user) }).map_err(|failed| {
                failure = Some(failed);
                // Only says that there is a failure.
                Error::Closed
            })
        });
        if let Some(failure) = failure {
            return Err(failure);
        }
        let decided = decided?;
        if decision.is_null() {
            return Ok(());
        }
        // SAFETY: contract 1.
        unsafe { options::fill(decision, "decision", self::decision(&decided)?) }
    })
}

/// Has the chain do something.
pub(crate) fn with_chain<R>(
    chain: Option<&tm_chain>,
    act: impl FnOnce(&mut Chain<'static>, &Recorded) -> Result<R, Failure>,
) -> Result<R, Failure> {
    let state = lock(&given(chain, "chain")?.state)?;
    // SAFETY: it is borrowed by nothing else while C's function runs, and the lock is held.
    let chain = unsafe { &mut *state.chain.as_ptr() };
    act(chain, &state)
}

/// Records an operation of a chain.
pub(crate) fn step(
    call: &str,
    chain: Option<&tm_chain>,
    out: Option<&mut MaybeUninit<tm_link>>,
    op: impl FnOnce(&mut Chain<'static>, &Recorded) -> Result<Link, Failure>,
) -> tm_status {
    guard(call, || {
        let out = given(out, "out")?.write(0);
        let mut state = lock(&given(chain, "chain")?.state)?;
        // SAFETY: it is borrowed by nothing else while C's function runs, and the lock is held.
        let chain = unsafe { &mut *state.chain.as_ptr() };
        let link = op(chain, &state)?;
        state.links.push(link);
        *out = u32::try_from(state.links.len())
            .map_err(|_| Failure::argument("a chain has at most 4294967295 links".to_owned()))?;
        Ok(())
    })
}
