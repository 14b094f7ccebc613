//! Profiles and figures as JSON. Times are nanoseconds; what is not known is `null`.

use serde_json::{Value, json};
use tidemill::Kernel;
use tidemill::device::DeviceInfo;
use tidemill::explain::{ExplainedStep, ExplainedValue, Explanation, Role};
use tidemill::profile::{Clock, Figure, HostTime, Peaks, Profile, Row, Run, Throughput};
use tidemill::stats::Stats;
use tidemill::stream::{StreamReport, StreamStats};
use tidemill::tune::{Trial, TrialOutcome, Tuning, VariantInfo};

pub(crate) fn device(info: &DeviceInfo) -> Value {
    let (major, minor, patch) = info.api_version;
    json!({
        "index": info.index,
        "name": info.name,
        "kind": info.kind.to_string(),
        "driver": info.driver,
        "api_version": format!("{major}.{minor}.{patch}"),
        "memory_bytes": info.memory_bytes,
        "subgroup_size": info.limits.subgroup_size,
        "buffer_bytes": info.limits.buffer_bytes,
        "push_constant_bytes": info.limits.push_constant_bytes,
        "groups": info.limits.groups,
        "local_size": info.limits.local_size,
        "invocations": info.limits.invocations,
        "timestamps": info.timestamps.is_some(),
        "refused": info.refused,
    })
}

pub(crate) fn stats(stats: &Stats) -> Value {
    json!({
        "submissions": stats.submissions,
        "dispatches": stats.dispatches,
        "barriers": stats.barriers,
        "bytes_up": stats.bytes_up,
        "bytes_down": stats.bytes_down,
        "bytes_moved": stats.bytes_moved,
        "temporaries": stats.temporaries,
        "temporary_bytes": stats.temporary_bytes,
        "in_flight": stats.in_flight,
        "encoded": stats.commands.encoded,
        "plan_encoded": stats.commands.plan_encoded,
        "plan_copies": stats.commands.plan_copies,
        "pipelines_made": stats.pipelines.made,
        "pool": {
            "live_bytes": stats.pool.live_bytes,
            "live_blocks": stats.pool.live_blocks,
            "cached_bytes": stats.pool.cached_bytes,
            "cached_blocks": stats.pool.cached_blocks,
            "peak_bytes": stats.pool.peak_bytes,
            "hits": stats.pool.hits,
            "misses": stats.pool.misses,
            "staging_bytes": stats.pool.staging_bytes,
            "peak_staging_bytes": stats.pool.peak_staging_bytes,
            "guard_bytes_touched": stats.pool.guard_bytes_touched,
        },
    })
}

pub(crate) fn profile(profile: &Profile) -> Value {
    json!({
        "mode": profile.mode.to_string(),
        "submission": profile.submission,
        "busy_ns": profile.busy_ns(),
        "idle_ns": profile.idle_ns(),
        "span_ns": profile.span_ns(),
        "barriers": profile.barriers,
        "host": host(&profile.host),
        "rows": profile.rows.iter().map(row).collect::<Vec<_>>(),
    })
}

fn row(row: &Row) -> Value {
    let throughput = row.figure.throughput();
    let figure = |of: fn(&Throughput) -> Option<f64>| throughput.and_then(of);
    let error = match &row.figure {
        Figure::Impossible(error) => Some(error.to_string()),
        _ => None,
    };
    json!({
        "label": row.label,
        "kernel": row.kernel,
        "groups": row.groups,
        "start_ns": row.start_ns,
        "end_ns": row.end_ns,
        "barrier": row.barrier,
        "overlaps": row.overlaps,
        "bytes": row.bytes,
        "flops": row.flops,
        "gflops": figure(|t| t.gflops),
        "gbytes_per_s": figure(|t| t.gbytes_per_s),
        "roofline": figure(|t| t.roofline),
        "error": error,
    })
}

fn host(host: &HostTime) -> Value {
    json!({
        "record_ns": host.record_ns,
        "encode_ns": host.encode_ns,
        "pipelines_made": host.pipelines_made,
        "pipelines_ns": host.pipelines_ns,
        "submit_ns": host.submit_ns,
        "wait_ns": host.wait_ns,
    })
}

pub(crate) fn kernel(kernel: &Kernel) -> Value {
    let reflection = kernel.reflection();
    let binding = |binding: &tidemill::spirv::Binding| {
        json!({
            "set": binding.set,
            "binding": binding.binding,
            "kind": binding.kind.to_string(),
            "name": binding.name,
            "writes": binding.access.writes(),
        })
    };
    json!({
        "name": kernel.name(),
        "entry_point": reflection.entry_point,
        "bindings": reflection.bindings.iter().map(binding).collect::<Vec<_>>(),
        "push_constant_bytes": reflection.push_constant_bytes,
        "local_size": reflection.local_size_with(&[]),
        "specializations": reflection.specializations.iter().map(|constant| constant.id).collect::<Vec<_>>(),
    })
}

pub(crate) fn peaks(peaks: &Peaks) -> Value {
    let bandwidth = |at: &tidemill::profile::Bandwidth| json!({ "working_set_bytes": at.working_set_bytes, "gbytes_per_s": at.gbytes_per_s });
    json!({
        "gflops": peaks.gflops,
        "bandwidths": peaks.bandwidths.iter().map(bandwidth).collect::<Vec<_>>(),
        "dispatch_floor_ns": peaks.dispatch_floor_ns,
    })
}

pub(crate) fn explanation(explanation: &Explanation) -> Value {
    json!({
        "values": explanation.values.iter().map(explained_value).collect::<Vec<_>>(),
        "recorded": explanation.recorded.iter().map(explained_step).collect::<Vec<_>>(),
        "run": explanation.run.iter().map(explained_step).collect::<Vec<_>>(),
        "barriers": explanation.barriers,
        "input_bytes": explanation.input_bytes,
        "output_bytes": explanation.output_bytes,
        "temporary_bytes": explanation.temporary_bytes,
        "unshared_bytes": explanation.unshared_bytes,
    })
}

fn explained_value(value: &ExplainedValue) -> Value {
    let role = match value.role {
        Role::Input => "input",
        Role::Output => "output",
        Role::State => "state",
        Role::Argument => "argument",
        _ => "temporary",
    };
    json!({
        "role": role,
        "dims": value.shape.dims(),
        "dtype": value.dtype.to_string(),
        "bytes": value.bytes,
        "block": value.block,
        "argument": value.argument.as_ref().map(|argument| json!({
            "name": argument.name, "least": argument.least, "most": argument.most,
        })),
    })
}

fn explained_step(step: &ExplainedStep) -> Value {
    json!({
        "label": step.label,
        "reads": step.reads,
        "writes": step.writes,
        "kernel": step.kernel,
        "bytes": step.bytes,
        "barrier": step.barrier,
        "dropped": step.dropped,
    })
}

pub(crate) fn trial(trial: &Trial) -> Value {
    let (outcome, why) = match &trial.outcome {
        TrialOutcome::Measured { .. } => ("measured", None),
        TrialOutcome::Wrong => ("wrong", None),
        TrialOutcome::Impossible => ("impossible", None),
        TrialOutcome::Failed(why) => ("failed", Some(why)),
        _ => ("other", None),
    };
    json!({
        "family": trial.family,
        "class": trial.class,
        "work": trial.work,
        "variant": trial.variant,
        "is_default": trial.is_default,
        "is_winner": trial.is_winner,
        "outcome": outcome,
        "why": why,
        "ns": trial.outcome.ns(),
    })
}

pub(crate) fn tuning(tuning: &Tuning) -> Value {
    json!({
        "trials": tuning.trials.iter().map(trial).collect::<Vec<_>>(),
        "cancelled": tuning.cancelled,
        "out_of_time": tuning.out_of_time,
        "elapsed_ns": tuning.elapsed.as_nanos() as u64,
        "file": tuning.file.as_ref().map(|file| file.display().to_string()),
    })
}

pub(crate) fn variants(variants: &[VariantInfo]) -> Value {
    let variant = |variant: &VariantInfo| {
        json!({
            "family": variant.family,
            "name": variant.name,
            "in_use": variant.in_use,
            "used_for": variant.used_for,
        })
    };
    variants.iter().map(variant).collect()
}

pub(crate) fn run(run: &Run) -> Value {
    let clock_uncertainty_ns = match run.clock {
        Clock::Calibrated { uncertainty_ns } => Some(uncertainty_ns),
        _ => None,
    };
    let (device, error) = match &run.gpu {
        Some(Ok(device)) => (Some(device), None),
        Some(Err(error)) => (None, Some(error.to_string())),
        None => (None, None),
    };
    json!({
        "name": run.name,
        "mode": run.mode.to_string(),
        "device": run.device,
        "driver": run.driver,
        "clock": run.clock.to_string(),
        "clock_uncertainty_ns": clock_uncertainty_ns,
        "wall_ns": run.wall_ns,
        "busy_ns": device.map(|device| device.busy_ns),
        "idle_ns": device.and_then(|device| device.idle_ns),
        "utilisation": device.and_then(|device| device.utilisation),
        "error": error,
        "host": host(&run.host),
        "submissions": run.submissions,
        "dispatches": run.dispatches,
        "barriers": run.barriers,
        "bytes_up": run.bytes_up,
        "bytes_down": run.bytes_down,
        "pool_hits": run.pool_hits,
        "pool_misses": run.pool_misses,
        "pipelines_made": run.pipelines_made,
        "profiles": run.profiles.iter().map(profile).collect::<Vec<_>>(),
    })
}

pub(crate) fn stream_stats(stats: &StreamStats) -> Value {
    json!({
        "slots": stats.slots,
        "pushed": stats.pushed,
        "popped": stats.popped,
        "in_flight": stats.in_flight,
        "push_waits": stats.push_waits,
        "push_wait_ns": stats.push_wait.as_nanos() as u64,
        "pop_waits": stats.pop_waits,
        "pop_wait_ns": stats.pop_wait.as_nanos() as u64,
    })
}

pub(crate) fn stream_report(report: &StreamReport) -> Value {
    json!({
        "batches": report.batches,
        "wall_ns": report.wall_ns,
        "busy_ns": report.busy_ns,
        "utilisation": report.utilisation(),
        "idle": {
            "preparation_ns": report.idle.preparation_ns,
            "consumption_ns": report.idle.consumption_ns,
            "submission_ns": report.idle.submission_ns,
            "within_ns": report.idle.within_ns,
            "other_ns": report.idle.other_ns,
        },
    })
}
