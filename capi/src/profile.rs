//! Profiles of whole runs.

use std::ffi::c_char;
use std::mem::MaybeUninit;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use tidemill::profile::{Run, Session, html_report};

use crate::accelerator::{opened, tm_accelerator};
use crate::arguments::{elements, given, handle, lock, place, string, text};
use crate::config::{profiling, tm_profiling};
use crate::json;
use crate::recording::tm_recording;
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

/// Does something with a session that goes on.
fn with_session(session: Option<&tm_session>, act: impl FnOnce(&Session)) -> Result<(), Failure> {
    let session = lock(&given(session, "session")?.session)?;
    let ended = || Failure::new(tm_status::TM_CLOSED, "the session has ended".to_owned());
    act(session.as_ref().ok_or_else(ended)?);
    Ok(())
}

/// Adds something of the caller's own to the run, which began and ended so long ago: it gets a lane in traces and
/// reports.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tm_session_note(
    session: Option<&tm_session>,
    track: *const c_char,
    name: *const c_char,
    began_ns_ago: u64,
    ended_ns_ago: u64,
) -> tm_status {
    guard("tm_session_note", || {
        let now = Instant::now();
        // SAFETY: contracts 1 and 3.
        let track = given(unsafe { text(track, "track") }?, "track")?;
        // SAFETY: as above.
        let name = given(unsafe { text(name, "name") }?, "name")?;
        let at = |ns: u64| now.checked_sub(Duration::from_nanos(ns)).unwrap_or(now);
        with_session(session, |session| session.note(track, name, at(began_ns_ago), at(ended_ns_ago)))
    })
}

/// Adds a drawing of what a recording will do to the run's page.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tm_session_graph(
    session: Option<&tm_session>,
    name: *const c_char,
    recording: Option<&tm_recording>,
) -> tm_status {
    guard("tm_session_graph", || {
        // SAFETY: contracts 1 and 3.
        let name = given(unsafe { text(name, "name") }?, "name")?;
        let mut explained = None;
        given(recording, "recording")?.record(|r, _| {
            explained = Some(r.explain()?);
            Ok(Vec::new())
        })?;
        with_session(session, |session| {
            if let Some(explained) = explained {
                session.graph(name, explained);
            }
        })
    })
}

/// TM_PROFILE, with the first of them, if the run has figures that can't be true.
#[unsafe(no_mangle)]
pub extern "C" fn tm_run_check(run: Option<&tm_run>) -> tm_status {
    guard("tm_run_check", || Ok(given(run, "run")?.run.check()?))
}

/// Several runs as one page for a browser.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tm_html_report(
    title: *const c_char,
    runs: *const *const tm_run,
    run_count: usize,
    text: Option<&mut MaybeUninit<*mut c_char>>,
) -> tm_status {
    guard("tm_html_report", || {
        let out = place(text, "text")?;
        // SAFETY: contracts 1 and 3.
        let title = given(unsafe { self::text(title, "title") }?, "title")?;
        let mut found = Vec::new();
        // SAFETY: contract 1.
        for (i, run) in unsafe { elements(runs, run_count, "runs") }?.iter().enumerate() {
            // SAFETY: contract 1.
            found.push(&given(unsafe { run.as_ref() }, &format!("runs[{i}]"))?.run);
        }
        *out = string(html_report(title, &found));
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
