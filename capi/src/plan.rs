//! Plans: recordings that are submitted again and again.

use std::mem::MaybeUninit;
use std::sync::{Mutex, MutexGuard};

use tidemill::Plan;

use crate::arguments::{given, handle, lock};
use crate::config::{profiling, tm_profiling};
use crate::status::{Failure, guard, guarded, tm_status};
use crate::submission::tm_submission;
use crate::tensor::tm_tensor;

/// A recording kept to be submitted again and again with no re-recording. It reads its tensors when it is submitted:
/// what was written to them since is seen.
#[derive(Debug)]
pub struct tm_plan {
    plan: Mutex<Plan>,
}

impl tm_plan {
    pub(crate) fn new(plan: Plan) -> tm_plan {
        tm_plan { plan: Mutex::new(plan) }
    }

    pub(crate) fn lock(&self) -> Result<MutexGuard<'_, Plan>, Failure> {
        lock(&self.plan)
    }
}

/// Hands it to the device as one submission; waits for nothing. `submission` may be NULL.
#[unsafe(no_mangle)]
pub extern "C" fn tm_plan_submit(
    plan: Option<&tm_plan>,
    submission: Option<&mut MaybeUninit<*mut tm_submission>>,
) -> tm_status {
    guard("tm_plan_submit", || {
        let out = submission.map(|out| out.write(std::ptr::null_mut()));
        let submission = given(plan, "plan")?.lock()?.submit()?;
        if let Some(out) = out {
            *out = handle(tm_submission { submission });
        }
        Ok(())
    })
}

/// From now on `tensor` stands in the place of `recorded`, which was read or kept when the plan was recorded. The plan
/// keeps what it needs of it. Submissions in flight are not affected.
#[unsafe(no_mangle)]
pub extern "C" fn tm_plan_bind(
    plan: Option<&tm_plan>,
    recorded: Option<&tm_tensor>,
    tensor: Option<&tm_tensor>,
) -> tm_status {
    guard("tm_plan_bind", || {
        let (recorded, tensor) = (given(recorded, "recorded")?, given(tensor, "tensor")?);
        Ok(given(plan, "plan")?.lock()?.bind(&recorded.tensor, &tensor.tensor)?)
    })
}

/// Profiles its submissions in their own way, whatever the accelerator's is.
#[unsafe(no_mangle)]
pub extern "C" fn tm_plan_profiling(plan: Option<&tm_plan>, mode: tm_profiling) -> tm_status {
    guard("tm_plan_profiling", || {
        let mode = profiling(mode)?;
        given(plan, "plan")?.lock()?.profiling(mode);
        Ok(())
    })
}

/// Frees the handle. Submissions in flight go on. NULL is allowed.
#[unsafe(no_mangle)]
pub extern "C" fn tm_plan_free(plan: Option<Box<tm_plan>>) {
    guarded((), || drop(plan));
}
