//! Profiles of whole runs.

use std::ffi::c_char;
use std::mem::MaybeUninit;
use std::sync::Mutex;

use tidemill::{Run, Session};

use crate::accelerator::{opened, tm_accelerator};
use crate::arguments::{given, handle, lock, place, string, text};
use crate::config::{profiling, tm_profiling};
use crate::json;
use crate::status::{Failure, guard, guarded, tm_status};

/// A run that is being profiled.
#[derive(Debug)]
pub struct tm_session {
    /// `None` once it was finished.
    session: Mutex<Option<Session>>,
}

/// Everything that was submitted between two moments, with times.
#[derive(Debug)]
pub struct tm_run {
    pub(crate) run: Run,
}

/// Profiles everything that the accelerator does from now on. One session at a time.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tm_begin_profiling(
    gpu: Option<&tm_accelerator>,
    name: *const c_char,
    mode: tm_profiling,
    session: Option<&mut MaybeUninit<*mut tm_session>>,
) -> tm_status {
    guard("tm_begin_profiling", || {
        let out = place(session, "session")?;
        // SAFETY: contracts 1 and 3.
        let name = given(unsafe { text(name, "name") }?, "name")?;
        let session = opened(gpu)?.begin_profiling(name, profiling(mode)?)?;
        *out = handle(tm_session { session: Mutex::new(Some(session)) });
        Ok(())
    })
}

/// Waits for everything submitted, ends the session and gives its figures. The session's handle still has to be freed.
#[unsafe(no_mangle)]
pub extern "C" fn tm_session_finish(
    session: Option<&tm_session>,
    run: Option<&mut MaybeUninit<*mut tm_run>>,
) -> tm_status {
    guard("tm_session_finish", || {
        let out = place(run, "run")?;
        let session = lock(&given(session, "session")?.session)?.take();
        let session =
            session.ok_or_else(|| Failure::new(tm_status::TM_CLOSED, "the session has ended".to_owned()))?;
        *out = handle(tm_run { run: session.finish()? });
        Ok(())
    })
}

/// Frees the handle. A session that was not finished is discarded. NULL is allowed.
#[unsafe(no_mangle)]
pub extern "C" fn tm_session_free(session: Option<Box<tm_session>>) {
    guarded((), || drop(session));
}

fn give(
    call: &str,
    run: Option<&tm_run>,
    out: Option<&mut MaybeUninit<*mut c_char>>,
    make: impl FnOnce(&Run) -> String,
) -> tm_status {
    guard(call, || {
        let out = place(out, "text")?;
        *out = string(make(&given(run, "run")?.run));
        Ok(())
    })
}

/// The run as JSON: totals, and a profile of each submission.
#[unsafe(no_mangle)]
pub extern "C" fn tm_run_json(
    run: Option<&tm_run>,
    text: Option<&mut MaybeUninit<*mut c_char>>,
) -> tm_status {
    give("tm_run_json", run, text, |run| json::run(run).to_string())
}

/// The run as a trace for ui.perfetto.dev.
#[unsafe(no_mangle)]
pub extern "C" fn tm_run_trace_json(
    run: Option<&tm_run>,
    text: Option<&mut MaybeUninit<*mut c_char>>,
) -> tm_status {
    give("tm_run_trace_json", run, text, Run::trace_json)
}

/// The run as a page for a browser.
#[unsafe(no_mangle)]
pub extern "C" fn tm_run_html(
    run: Option<&tm_run>,
    text: Option<&mut MaybeUninit<*mut c_char>>,
) -> tm_status {
    give("tm_run_html", run, text, Run::html)
}

/// The run as a table for a terminal.
#[unsafe(no_mangle)]
pub extern "C" fn tm_run_table(
    run: Option<&tm_run>,
    text: Option<&mut MaybeUninit<*mut c_char>>,
) -> tm_status {
    give("tm_run_table", run, text, Run::to_string)
}

/// Frees the handle. NULL is allowed.
#[unsafe(no_mangle)]
pub extern "C" fn tm_run_free(run: Option<Box<tm_run>>) {
    guarded((), || drop(run));
}
