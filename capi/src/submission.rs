//! Submissions: work on its way.

use std::ffi::c_char;
use std::mem::MaybeUninit;
use std::time::Duration;

use tidemill::Submission;

use crate::arguments::{given, place, string};
use crate::json;
use crate::status::{Failure, guard, guarded, tm_status};

/// Work that was handed to the device. Freeing it waits for nothing and loses nothing.
#[derive(Debug)]
pub struct tm_submission {
    pub(crate) submission: Submission,
}

/// Waits until the work is done, or for `timeout_ns` at most: TM_TIMEOUT then, and the work goes on. TM_FOREVER waits.
#[unsafe(no_mangle)]
pub extern "C" fn tm_submission_wait(submission: Option<&tm_submission>, timeout_ns: u64) -> tm_status {
    guard("tm_submission_wait", || {
        let submission = &given(submission, "submission")?.submission;
        if timeout_ns == crate::TM_FOREVER {
            return Ok(submission.wait()?);
        }
        match submission.wait_timeout(Duration::from_nanos(timeout_ns))? {
            true => Ok(()),
            false => Err(timeout(timeout_ns)),
        }
    })
}

pub(crate) fn timeout(timeout_ns: u64) -> Failure {
    Failure::new(tm_status::TM_TIMEOUT, format!("not done after {timeout_ns} ns"))
}

/// Whether the work is done. Never waits.
#[unsafe(no_mangle)]
pub extern "C" fn tm_submission_is_complete(
    submission: Option<&tm_submission>,
    complete: Option<&mut MaybeUninit<bool>>,
) -> tm_status {
    guard("tm_submission_is_complete", || {
        let out = given(complete, "complete")?;
        out.write(given(submission, "submission")?.submission.is_complete()?);
        Ok(())
    })
}

/// Its number on the accelerator's timeline, from 1; numbers complete in order. 0 for NULL.
#[unsafe(no_mangle)]
pub extern "C" fn tm_submission_number(submission: Option<&tm_submission>) -> u64 {
    guarded(0, || submission.map_or(0, |submission| submission.submission.number()))
}

/// The device's work, dispatch by dispatch, as JSON. Waits until the work is done. TM_PROFILE if it was not profiled.
#[unsafe(no_mangle)]
pub extern "C" fn tm_submission_profile_json(
    submission: Option<&tm_submission>,
    json: Option<&mut MaybeUninit<*mut c_char>>,
) -> tm_status {
    guard("tm_submission_profile_json", || {
        let out = place(json, "json")?;
        *out = string(json::profile(&given(submission, "submission")?.submission.profile()?).to_string());
        Ok(())
    })
}

/// Frees the handle. NULL is allowed.
#[unsafe(no_mangle)]
pub extern "C" fn tm_submission_free(submission: Option<Box<tm_submission>>) {
    guarded((), || drop(submission));
}
