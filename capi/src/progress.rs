//! Long calls: making pipelines ahead, and tuning; with progress, and a way to cancel them.

use std::ffi::{CString, c_char, c_void};
use std::mem::MaybeUninit;
use std::ops::ControlFlow;
use std::time::Duration;

use tidemill::stats::PrepareProgress;
use tidemill::tune::TuneOptions;

use crate::accelerator::{opened, tm_accelerator};
use crate::arguments::{elements, given, place, string, text};
use crate::json;
use crate::options::{self, options};
use crate::plan::tm_plan;
use crate::recording::tm_recording;
use crate::status::{Failure, guard, tm_status};

/// How far something has come.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct tm_progress {
    /// sizeof(tm_progress) of the library.
    pub size: usize,
    /// What is done: pipelines that are ready, those that were there before among them, or candidates that were
    /// tried.
    pub done: usize,
    /// The total.
    pub total: usize,
    /// Time since the call.
    pub elapsed_ns: u64,
    /// When tuning, the candidate that was just tried, as JSON; NULL otherwise. Good during the call.
    pub trial: *const c_char,
}

/// Gets progress, on the thread that waits for it. 0 goes on, any other number ends it. It must not throw.
pub type tm_progress_fn =
    Option<unsafe extern "C" fn(progress: *const tm_progress, user: *mut c_void) -> i32>;

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// Tells C. NULL goes on.
fn tell(function: tm_progress_fn, progress: &tm_progress, user: *mut c_void) -> ControlFlow<()> {
    let Some(function) = function else { return ControlFlow::Continue(()) };
    // SAFETY: contract 4; the progress lives as long as the call.
    match unsafe { function(progress, user) } {
        0 => ControlFlow::Continue(()),
        _ => ControlFlow::Break(()),
    }
}

fn of_pipelines(progress: &PrepareProgress) -> tm_progress {
    tm_progress {
        size: size_of::<tm_progress>(),
        done: progress.ready,
        total: progress.total,
        elapsed_ns: nanoseconds(progress.elapsed),
        trial: std::ptr::null(),
    }
}

/// Makes every pipeline that the recording will need, on several threads, before it ends. `progress`, if not NULL, is
/// told of each and can end it: TM_CANCELLED. The recording stays as it was, and the pipelines that were made stay.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tm_prepare(
    recording: Option<&tm_recording>,
    progress: tm_progress_fn,
    user: *mut c_void,
) -> tm_status {
    guard("tm_prepare", || {
        given(recording, "recording")?.record(|r, _| {
            r.prepare(|told| tell(progress, &of_pipelines(&told), user))?;
            Ok(Vec::new())
        })?;
        Ok(())
    })
}

/// Has the driver compile what is left to compile before the plan's first submission; some drivers do so at the first
/// dispatch. As tm_prepare, which is to be called before tm_into_plan where making pipelines takes the time.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tm_plan_prepare(
    plan: Option<&tm_plan>,
    progress: tm_progress_fn,
    user: *mut c_void,
) -> tm_status {
    guard("tm_plan_prepare", || {
        let plan = given(plan, "plan")?.lock()?;
        Ok(plan.prepare(|told| tell(progress, &of_pipelines(&told), user))?)
    })
}

/// How far prewarming has come. Set `size` before the call.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct tm_prewarming {
    /// sizeof(tm_prewarming).
    pub size: usize,
    /// Pipelines that are wanted warm: the catalog's, and those that earlier processes of the application have used.
    pub catalog: usize,
    /// Those that are. Where there were such processes, the rest is made when it is used.
    pub warmed: usize,
    /// The time spent on them.
    pub elapsed_us: u64,
    /// Whether all that can be done is done.
    pub finished: bool,
}

options!(tm_prewarming, least: size_of::<tm_prewarming>(), defaults: tm_prewarming {
    size: size_of::<tm_prewarming>(),
    catalog: 0,
    warmed: 0,
    elapsed_us: 0,
    finished: false,
});

fn prewarming(status: tidemill::stats::PrewarmStatus) -> tm_prewarming {
    tm_prewarming {
        size: size_of::<tm_prewarming>(),
        catalog: status.catalog,
        warmed: status.warmed,
        elapsed_us: status.elapsed_us,
        finished: status.finished,
    }
}

/// How far prewarming has come.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tm_prewarm_status(
    gpu: Option<&tm_accelerator>,
    status: *mut tm_prewarming,
) -> tm_status {
    guard("tm_prewarm_status", || {
        let found = prewarming(opened(gpu)?.prewarm_status());
        // SAFETY: contract 1.
        unsafe { options::fill(status, "status", found) }
    })
}

/// Waits until prewarming in the background is finished.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tm_wait_prewarmed(
    gpu: Option<&tm_accelerator>,
    status: *mut tm_prewarming,
) -> tm_status {
    guard("tm_wait_prewarmed", || {
        let found = prewarming(opened(gpu)?.wait_prewarmed());
        // SAFETY: contract 1.
        unsafe { options::fill(status, "status", found) }
    })
}

/// Options of tuning: families, and time. All zeros but `size` is every family, for a minute at the most.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct tm_tune_options {
    /// sizeof(tm_tune_options).
    pub size: usize,
    /// Nothing new is begun after this time; 0 is a minute.
    pub budget_ns: u64,
    /// The families to tune, by the names that tm_variants_json has; none for all.
    pub families: *const *const c_char,
    /// How many there are.
    pub family_count: usize,
}

options!(tm_tune_options, least: size_of::<tm_tune_options>(), defaults: tm_tune_options {
    size: size_of::<tm_tune_options>(),
    budget_ns: 0,
    families: std::ptr::null(),
    family_count: 0,
});

impl tm_tune_options {
    /// # Safety
    ///
    /// Contracts 1 and 3.
    unsafe fn read(&self) -> Result<TuneOptions, Failure> {
        let mut options = TuneOptions::new();
        if self.budget_ns > 0 {
            options = options.budget(Duration::from_nanos(self.budget_ns));
        }
        // SAFETY: contract 1.
        let families = unsafe { elements(self.families, self.family_count, "families") }?;
        for (i, family) in families.iter().enumerate() {
            let name = format!("families[{i}]");
            // SAFETY: contracts 1 and 3.
            options = options.family(given(unsafe { text(*family, &name) }?, &name)?);
        }
        Ok(options)
    }
}

/// Measures the candidates of every kernel family for every class of shapes on this device, and uses the best from
/// now on; the next start uses them, too. NULL for `options` means the defaults. `progress`, if not NULL, is told of
/// every candidate and can end it: then nothing is changed, and the JSON says `cancelled`. `json`, if not NULL, gets
/// what came of it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tm_tune(
    gpu: Option<&tm_accelerator>,
    options: *const tm_tune_options,
    progress: tm_progress_fn,
    user: *mut c_void,
    json: Option<&mut MaybeUninit<*mut c_char>>,
) -> tm_status {
    guard("tm_tune", || {
        let out = json.map(|json| json.write(std::ptr::null_mut()));
        let gpu = opened(gpu)?;
        let mut wanted = TuneOptions::new();
        if !options.is_null() {
            // SAFETY: contract 1.
            let options = unsafe { options::read(options, "options") }?;
            // SAFETY: contracts 1 and 3.
            wanted = unsafe { options.read() }?;
        }
        let tuning = gpu.tune(&wanted, |told| {
            let trial = CString::new(json::trial(told.trial).to_string()).unwrap_or_default();
            let told = tm_progress {
                size: size_of::<tm_progress>(),
                done: told.tried,
                total: told.total,
                elapsed_ns: nanoseconds(told.elapsed),
                trial: trial.as_ptr(),
            };
            tell(progress, &told, user)
        })?;
        if let Some(out) = out {
            *out = string(json::tuning(&tuning).to_string());
        }
        Ok(())
    })
}

/// Every kernel variant, and which ones this accelerator uses, as a JSON array.
#[unsafe(no_mangle)]
pub extern "C" fn tm_variants_json(
    gpu: Option<&tm_accelerator>,
    json: Option<&mut MaybeUninit<*mut c_char>>,
) -> tm_status {
    guard("tm_variants_json", || {
        let out = place(json, "json")?;
        *out = string(json::variants(&opened(gpu)?.variants()).to_string());
        Ok(())
    })
}
