//! `tidemill info`: devices and drivers, which will be used and why, and what is missing.

use std::fmt::Write;
use std::process::ExitCode;

use serde_json::{Value, json};
use tidemill::device::{DeviceChoice, DeviceInfo};
use tidemill::stats::PrewarmStatus;
use tidemill::{Accelerator, Config, Error, Prewarm};

use crate::Outcome;
use crate::style::{Style, bytes, grouped, print};

/// Arguments of `info`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// The pool's size classes, in words; `runtime/pool.rs` has them in code and tests.
const POOL_CLASSES: &str =
    "multiples of 256 B up to 2 KiB, then 8 per doubling; at most 255 B or 1/8 of a request is unused";

/// The findings.
struct Report {
    devices: tidemill::Result<Vec<DeviceInfo>>,
    rule: String,
    /// The accelerator that a program would get, fully warmed.
    chosen: tidemill::Result<(Accelerator, PrewarmStatus)>,
    /// Whether the validation layer works; only asked where a device does.
    validation: tidemill::Result<()>,
}

pub(crate) fn run(args: &Args) -> Outcome {
    let report = gather();
    if args.json {
        print(&format!("{:#}\n", as_json(&report)))?;
    } else {
        print(&as_text(&report, Style::stdout())?)?;
    }
    Ok(if report.chosen.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn gather() -> Report {
    let rule = match std::env::var("TIDEMILL_DEVICE") {
        Ok(text) if !text.is_empty() => {
            format!("TIDEMILL_DEVICE={text} asks for {}", DeviceChoice::parse(&text))
        }
        _ => "the best kind: discrete, integrated, virtual, cpu; TIDEMILL_DEVICE overrides it".to_owned(),
    };
    let chosen = Accelerator::new(&Config::new()).map(|gpu| {
        let prewarm = gpu.wait_prewarmed();
        (gpu, prewarm)
    });
    let checked = Config::new().validation(true).no_cache().prewarm(Prewarm::Off);
    let validation = match &chosen {
        Ok(_) => Accelerator::new(&checked).map(drop),
        Err(error) => Err(error.clone()),
    };
    Report { devices: Accelerator::devices(), rule, chosen, validation }
}

/// What is missing on this machine, each with the way to get it.
fn missing(report: &Report) -> Vec<String> {
    let mut missing = Vec::new();
    match (&report.devices, &report.chosen) {
        (Err(error), _) | (Ok(_), Err(error)) => missing.push(error.to_string()),
        (Ok(_), Ok((gpu, _))) => {
            if let Err(error) = &report.validation {
                let what = if matches!(error, Error::LayerMissing { .. }) {
                    "only tests need it"
                } else {
                    "validation"
                };
                missing.push(format!("{what}: {error}"));
            }
            missing.extend(gpu.cache_problem().map(|why| format!("no cache between runs: {why}")));
        }
    }
    missing
}

fn features(device: &DeviceInfo) -> Vec<&'static str> {
    let f = &device.features;
    let all = [
        (f.push_descriptors, "push descriptors"),
        (f.memory_budget, "memory budget"),
        (f.host_pointers, "imports host pointers"),
        (f.device_fault, "tells why it was lost"),
        (f.portability_subset, "portability subset"),
        (f.subgroup_shuffle, "subgroup shuffle"),
        (f.subgroup_shuffle_relative, "subgroup relative shuffle"),
        (f.subgroup_arithmetic, "subgroup arithmetic"),
        (f.subgroup_clustered, "subgroup clustered arithmetic"),
        (f.subgroup_vote, "subgroup vote"),
        (f.subgroup_ballot, "subgroup ballot"),
        (f.subgroup_quad, "subgroup quad"),
        (f.subgroup_extended_types, "subgroup extended types"),
        (f.subgroup_size_control, "subgroup size control"),
        (f.full_subgroups, "full subgroups"),
        (f.storage_texel, "storage texels"),
        (f.preserves_denormals, "preserves denormals"),
        (f.int64, "int64"),
        (f.float64, "float64"),
        (f.float16, "float16"),
        (f.int16, "int16"),
        (f.int8, "int8"),
        (f.storage16, "16-bit storage"),
        (f.storage8, "8-bit storage"),
    ];
    all.into_iter().filter_map(|(there, name)| there.then_some(name)).collect()
}

fn as_text(report: &Report, style: Style) -> Result<String, std::fmt::Error> {
    let mut out = String::new();
    let chosen = report.chosen.as_ref().ok();
    if let Ok(devices) = &report.devices {
        for device in devices {
            let used = chosen.is_some_and(|(gpu, _)| gpu.device().index == device.index);
            device_text(&mut out, device, used, style)?;
        }
    }
    if let Some((gpu, prewarm)) = chosen {
        let row = |out: &mut String, name: &str, text: &str| {
            writeln!(out, "  {} {text}", style.dim(&format!("{name:<16}")))
        };
        writeln!(out, "{}", style.bold("engine"))?;
        row(&mut out, "device", &gpu.device().name)?;
        row(&mut out, "chosen by", &report.rule)?;
        row(&mut out, "pool classes", POOL_CLASSES)?;
        let kernels: Vec<String> =
            gpu.variants().iter().filter(|v| v.in_use).map(|v| format!("{} {}", v.family, v.name)).collect();
        row(&mut out, "kernel variants", &format!("{} of {}", kernels.join(", "), gpu.variants().len()))?;
        let ms = prewarm.elapsed_us as f64 / 1e3;
        let catalog =
            format!("{} pipelines, {} warm after {ms:.1} ms of work", prewarm.catalog, prewarm.warmed);
        row(&mut out, "catalog", &catalog)?;
        let cache = match gpu.pipeline_cache() {
            Some((file, loaded)) => {
                let state = if loaded { "loaded from an earlier run" } else { "new" };
                format!("{} ({state})", file.display())
            }
            None => "off".to_owned(),
        };
        row(&mut out, "pipeline cache", &cache)?;
        row(
            &mut out,
            "validation",
            if report.validation.is_ok() { "layer installed" } else { "not available" },
        )?;
    }
    let missing = missing(report);
    if !missing.is_empty() {
        writeln!(out, "{}", style.bold("missing"))?;
        for what in missing {
            writeln!(out, "  {}", style.bad(&what))?;
        }
    }
    Ok(out)
}

fn device_text(out: &mut String, device: &DeviceInfo, used: bool, style: Style) -> std::fmt::Result {
    let state = match (device.is_usable(), used) {
        (true, true) => style.good("used"),
        (true, false) => style.dim("usable"),
        (false, _) => style.bad(&format!("can't be used: {}", device.refused.join(", "))),
    };
    writeln!(out, "{} {state}", style.bold(&format!("device {}: {}", device.index, device.name)))?;
    let (major, minor, patch) = device.api_version;
    let limits = &device.limits;
    let rows = [
        ("kind", device.kind.to_string()),
        ("driver", format!("{}, Vulkan {major}.{minor}.{patch}", device.driver)),
        ("memory", bytes(device.memory_bytes)),
        (
            "bindings",
            format!(
                "{} each, {} texels in a view, {} texel views, offsets by {} B",
                bytes(limits.storage_range_bytes),
                grouped(limits.texel_elements),
                grouped(u64::from(limits.texel_bindings)),
                limits.offset_alignment
            ),
        ),
        (
            "workgroups",
            format!(
                "{} invocations in subgroups of {}, {} shared, {} groups, {} B push constants",
                grouped(u64::from(limits.invocations)),
                limits.subgroup_size,
                bytes(u64::from(limits.shared_bytes)),
                limits.groups.map(|n| grouped(u64::from(n))).join(" x "),
                limits.push_constant_bytes
            ),
        ),
        ("features", features(device).join(", ")),
    ];
    for (name, text) in rows {
        writeln!(out, "  {} {text}", style.dim(&format!("{name:<16}")))?;
    }
    Ok(())
}

/// A device as scripts read it.
pub(crate) fn device_json(d: &DeviceInfo) -> Value {
    let (major, minor, patch) = d.api_version;
    json!({
        "index": d.index, "name": d.name, "kind": d.kind.to_string(), "driver": d.driver,
        "vulkan": format!("{major}.{minor}.{patch}"), "memory_bytes": d.memory_bytes,
        "usable": d.is_usable(), "refused": d.refused, "features": features(d),
        "limits": {
            "storage_range_bytes": d.limits.storage_range_bytes, "texel_elements": d.limits.texel_elements,
            "texel_bindings": d.limits.texel_bindings, "offset_alignment": d.limits.offset_alignment,
            "buffer_bytes": d.limits.buffer_bytes, "groups": d.limits.groups,
            "local_size": d.limits.local_size, "invocations": d.limits.invocations,
            "push_constant_bytes": d.limits.push_constant_bytes, "shared_bytes": d.limits.shared_bytes,
            "subgroup_size": d.limits.subgroup_size, "subgroup_sizes": d.limits.subgroup_sizes,
        },
    })
}

fn as_json(report: &Report) -> Value {
    let engine = report.chosen.as_ref().ok().map(|(gpu, prewarm)| {
        let variants: Vec<Value> = gpu
            .variants()
            .iter()
            .map(
                |v| json!({ "family": v.family, "name": v.name, "in_use": v.in_use, "used_for": v.used_for }),
            )
            .collect();
        let cache = gpu.pipeline_cache().map(|(file, loaded)| json!({ "file": file, "loaded": loaded }));
        json!({
            "device": gpu.device().index, "variants": variants, "pool_classes": POOL_CLASSES,
            "prewarm": {
                "catalog": prewarm.catalog, "warmed": prewarm.warmed, "elapsed_us": prewarm.elapsed_us,
            },
            "pipeline_cache": cache, "validation": report.validation.is_ok(),
        })
    });
    json!({
        "devices": report.devices.as_deref().unwrap_or_default().iter().map(device_json).collect::<Vec<_>>(),
        "rule": report.rule,
        "engine": engine,
        "missing": missing(report),
    })
}
