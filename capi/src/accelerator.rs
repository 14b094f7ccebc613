//! The accelerator.

use std::ffi::{c_char, c_void};
use std::mem::MaybeUninit;
use std::sync::Mutex;

use tidemill::Accelerator;

use crate::arguments::{given, handle, lock, place, string, text};
use crate::config::{configured, tm_config};
use crate::host_device::{called, tm_call_fn};
use crate::json;
use crate::status::{Failure, guard, guarded, tm_status};

/// The device and all that is owned once: compiled kernels, the pool of buffers, the queue.
#[derive(Debug)]
pub struct tm_accelerator {
    /// `None` once it was closed.
    accelerator: Mutex<Option<Accelerator>>,
}

impl tm_accelerator {
    pub(crate) fn new(accelerator: Accelerator) -> tm_accelerator {
        tm_accelerator { accelerator: Mutex::new(Some(accelerator)) }
    }

    pub(crate) fn get(&self) -> Result<Accelerator, Failure> {
        Ok(lock(&self.accelerator)?.clone().ok_or(tidemill::Error::Closed)?)
    }
}

/// The accelerator behind a handle.
pub(crate) fn opened(gpu: Option<&tm_accelerator>) -> Result<Accelerator, Failure> {
    given(gpu, "gpu")?.get()
}

/// The process's own accelerator, on the best device there is; made by the first call. After a loss of the device the
/// next call makes a new one. Each call gives a handle to free; the accelerator itself stays.
#[unsafe(no_mangle)]
pub extern "C" fn tm_accelerator_global(gpu: Option<&mut MaybeUninit<*mut tm_accelerator>>) -> tm_status {
    guard("tm_accelerator_global", || {
        let gpu = place(gpu, "gpu")?;
        *gpu = handle(tm_accelerator::new(Accelerator::global()?));
        Ok(())
    })
}

/// An accelerator of your own. NULL for `config` means the defaults.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tm_accelerator_new(
    config: *const tm_config,
    gpu: Option<&mut MaybeUninit<*mut tm_accelerator>>,
) -> tm_status {
    guard("tm_accelerator_new", || {
        let gpu = place(gpu, "gpu")?;
        // SAFETY: the caller keeps the contract.
        let config = unsafe { configured(config) }?;
        *gpu = handle(tm_accelerator::new(Accelerator::new(&config)?));
        Ok(())
    })
}

/// Waits for all work, and closes: calls on it give TM_CLOSED from then on. TM_STILL_IN_USE, with how many, if tensors,
/// recordings, submissions or other handles of the same accelerator are still there; it is closed then, too. The handle
/// still has to be freed. Only needed by those who must know that nothing is left on the device.
#[unsafe(no_mangle)]
pub extern "C" fn tm_accelerator_close(gpu: Option<&tm_accelerator>) -> tm_status {
    guard("tm_accelerator_close", || {
        let taken = lock(&given(gpu, "gpu")?.accelerator)?.take();
        Ok(taken.ok_or(tidemill::Error::Closed)?.close()?)
    })
}

/// Waits until everything submitted is done.
#[unsafe(no_mangle)]
pub extern "C" fn tm_synchronize(gpu: Option<&tm_accelerator>) -> tm_status {
    guard("tm_synchronize", || Ok(opened(gpu)?.synchronize()?))
}

/// Frees the memory that the pool keeps for later; `freed_bytes`, if not NULL, gets how much that was.
#[unsafe(no_mangle)]
pub extern "C" fn tm_trim(
    gpu: Option<&tm_accelerator>,
    freed_bytes: Option<&mut MaybeUninit<u64>>,
) -> tm_status {
    guard("tm_trim", || {
        let freed = opened(gpu)?.trim();
        if let Some(freed_bytes) = freed_bytes {
            freed_bytes.write(freed);
        }
        Ok(())
    })
}

/// Every Vulkan device of the machine as a JSON array, with why it can't be used if so.
#[unsafe(no_mangle)]
pub extern "C" fn tm_devices_json(json: Option<&mut MaybeUninit<*mut c_char>>) -> tm_status {
    guard("tm_devices_json", || {
        let out = place(json, "json")?;
        let devices: Vec<_> = Accelerator::devices()?.iter().map(json::device).collect();
        *out = string(serde_json::Value::from(devices).to_string());
        Ok(())
    })
}

/// The accelerator's device as JSON: name, kind, driver, limits.
#[unsafe(no_mangle)]
pub extern "C" fn tm_device_json(
    gpu: Option<&tm_accelerator>,
    json: Option<&mut MaybeUninit<*mut c_char>>,
) -> tm_status {
    guard("tm_device_json", || {
        let out = place(json, "json")?;
        *out = string(json::device(opened(gpu)?.device()).to_string());
        Ok(())
    })
}

/// Statistics of the accelerator, as JSON: submissions, dispatches, barriers, bytes, pool, pipelines.
#[unsafe(no_mangle)]
pub extern "C" fn tm_stats_json(
    gpu: Option<&tm_accelerator>,
    json: Option<&mut MaybeUninit<*mut c_char>>,
) -> tm_status {
    guard("tm_stats_json", || {
        let out = place(json, "json")?;
        *out = string(json::stats(&opened(gpu)?.stats()).to_string());
        Ok(())
    })
}

/// Where files are kept between runs, as JSON: the pipeline cache's `file`, whether an earlier process's was taken up
/// (`loaded`), and the `problem` if the default folder can't be used.
#[unsafe(no_mangle)]
pub extern "C" fn tm_cache_json(
    gpu: Option<&tm_accelerator>,
    json: Option<&mut MaybeUninit<*mut c_char>>,
) -> tm_status {
    guard("tm_cache_json", || {
        let out = place(json, "json")?;
        let gpu = opened(gpu)?;
        let cache = gpu.pipeline_cache();
        let text = serde_json::json!({
            "file": cache.map(|(file, _)| file.display().to_string()),
            "loaded": cache.is_some_and(|(_, loaded)| loaded),
            "problem": gpu.cache_problem(),
        });
        *out = string(text.to_string());
        Ok(())
    })
}

/// Peaks of the device, as JSON: GFLOP/s, GB/s by working set, and the time of an empty dispatch. Measured when first
/// asked for (some tenths of a second), then kept, on disk too.
#[unsafe(no_mangle)]
pub extern "C" fn tm_peaks_json(
    gpu: Option<&tm_accelerator>,
    json: Option<&mut MaybeUninit<*mut c_char>>,
) -> tm_status {
    guard("tm_peaks_json", || {
        let out = place(json, "json")?;
        *out = string(json::peaks(&opened(gpu)?.peaks()?).to_string());
        Ok(())
    })
}

/// Lets RenderDoc record what `work` submits. `file`, if not NULL, gets the path: `name` with ".rdc" behind it. Work
/// before is waited for, and so is work inside. TM_PROFILE says what is missing, before `work` is called; TM_CALLBACK,
/// without a file, if it gives another number than 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tm_capture(
    gpu: Option<&tm_accelerator>,
    name: *const c_char,
    work: tm_call_fn,
    user: *mut c_void,
    file: Option<&mut MaybeUninit<*mut c_char>>,
) -> tm_status {
    guard("tm_capture", || {
        let out = file.map(|file| file.write(std::ptr::null_mut()));
        // SAFETY: contracts 1 and 3.
        let name = given(unsafe { text(name, "name") }?, "name")?;
        let work = given(work, "work")?;
        let mut failure = None;
        let captured = opened(gpu)?.capture(name, || {
            // SAFETY: contract 4.
            called("work", unsafe { work(user) }).map_err(|failed| {
                failure = Some(failed);
                // Only says that there is a failure.
                tidemill::Error::Closed
            })
        });
        if let Some(failure) = failure {
            return Err(failure);
        }
        let ((), path) = captured?;
        if let Some(out) = out {
            *out = string(path.display().to_string());
        }
        Ok(())
    })
}

/// Messages of the validation layer since the last call, as a JSON array of strings.
#[unsafe(no_mangle)]
pub extern "C" fn tm_validation_messages_json(
    gpu: Option<&tm_accelerator>,
    json: Option<&mut MaybeUninit<*mut c_char>>,
) -> tm_status {
    guard("tm_validation_messages_json", || {
        let out = place(json, "json")?;
        *out = string(serde_json::Value::from(opened(gpu)?.validation_messages()).to_string());
        Ok(())
    })
}

/// Frees the handle. The device goes with the last handle of anything on it. NULL is allowed.
#[unsafe(no_mangle)]
pub extern "C" fn tm_accelerator_free(gpu: Option<Box<tm_accelerator>>) {
    guarded((), || drop(gpu));
}
