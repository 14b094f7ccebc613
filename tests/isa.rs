//! The kernels for GPUs, judged by AMD's own compiler: `tidemill isa` compiles them with RADV for hardware that is not
//! there. `docs/roofline.md` says what the bars are for.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]
#![allow(unreachable_pub, reason = "a test binary exports nothing")]

#[path = "gpu/harness.rs"]
#[allow(dead_code, reason = "only what the seam needs of it")]
mod harness;
mod seam;

use std::process::Command;

use seam::Seam;
use serde_json::Value;
use tidemill::{Config, Error, compiled_kernels};

/// What a tile must reach, all at once.
struct Bar {
    kernel: &'static str,
    device: &'static str,
    /// Rows and columns of the tile.
    tile: (u64, u64),
    least_waves: u64,
    least_fma_share: f64,
}

const fn bar(
    kernel: &'static str,
    device: &'static str,
    tile: (u64, u64),
    least_waves: u64,
    least_fma_share: f64,
) -> Bar {
    Bar { kernel, device, tile, least_waves, least_fma_share }
}

/// A little below what Mesa 22.3 (NAVI21) and 25.0 (NAVI31) give. Convolutions find the place of every element that they
/// load, so less of their loop is multiply-adds.
const BARS: &[Bar] = &[
    bar("product_tile", "NAVI21", (32, 32), 14, 0.70),
    bar("product_tile", "NAVI21", (64, 64), 20, 0.77),
    bar("product_tile", "NAVI21", (128, 128), 8, 0.87),
    bar("product_tile", "NAVI31", (32, 32), 12, 0.68),
    bar("product_tile", "NAVI31", (64, 64), 20, 0.73),
    bar("product_tile", "NAVI31", (128, 128), 12, 0.85),
    bar("conv_tile", "NAVI21", (32, 32), 12, 0.45),
    bar("conv_tile", "NAVI21", (64, 64), 20, 0.59),
    bar("conv_tile", "NAVI31", (32, 32), 12, 0.48),
    bar("conv_tile", "NAVI31", (64, 64), 20, 0.60),
];

fn compiled() -> Vec<Value> {
    let output = Command::new(env!("CARGO_BIN_EXE_tidemill")).args(["isa", "--json"]).output().unwrap();
    let (stdout, stderr) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{}\n{stderr}", output.status);
    stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn constant(line: &Value, id: u32) -> Option<u64> {
    let constants = line["constants"].as_str()?.split(' ');
    constants
        .filter_map(|pair| pair.split_once('='))
        .find(|(known, _)| *known == id.to_string())?
        .1
        .parse()
        .ok()
}

#[test]
fn kernels_for_gpus_compile_to_good_instructions() {
    let lines = compiled();
    let mut failures = Vec::new();
    for family in ["map", "reduce", "softmax", "matmul", "conv2d", "other"] {
        assert!(lines.iter().any(|line| line["family"] == family), "nothing of {family} was compiled");
    }
    for line in &lines {
        for key in ["kernel", "variant", "device"] {
            assert!(line[key].is_string(), "{key} in {line}");
        }
        for key in ["vgprs", "spills", "lds", "waves", "fma_share"] {
            assert!(line[key].is_number(), "{key} in {line}");
        }
        assert!(line["vgprs"].as_u64() > Some(0), "{line}");
        if line["spills"] != 0 {
            failures.push(format!("spills: {line}"));
        }
    }
    let kernel = |line: &Value| line["kernel"].as_str().unwrap().split('.').next().unwrap().to_owned();
    let tiles = lines.iter().filter(|line| BARS.iter().any(|bar| bar.kernel == kernel(line)));
    let mut judged = Vec::new();
    for line in tiles {
        let tile = (constant(line, 1).unwrap(), constant(line, 2).unwrap());
        let device = line["device"].as_str().unwrap();
        let meant = |bar: &Bar| bar.kernel == kernel(line) && device.contains(bar.device) && bar.tile == tile;
        let bar = BARS.iter().position(meant);
        let bar = bar.unwrap_or_else(|| panic!("no bar is stated for {line}"));
        judged.push(bar);
        let bar = &BARS[bar];
        let (waves, share) = (line["waves"].as_u64().unwrap(), line["fma_share"].as_f64().unwrap());
        if waves < bar.least_waves || share < bar.least_fma_share {
            failures.push(format!("below {} waves at {}: {line}", bar.least_waves, bar.least_fma_share));
        }
        if line["global_load_bits"] != 128 || line["lds_load_bits"] != 128 {
            failures.push(format!("narrow loads: {line}"));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    for (i, bar) in BARS.iter().enumerate().filter(|(_, bar)| bar.device == "NAVI21") {
        assert!(judged.contains(&i), "no {} of {:?} was compiled for {}", bar.kernel, bar.tile, bar.device);
    }
}

#[test]
fn a_driver_that_tells_nothing_is_named() {
    let seam = Seam::take();
    seam.hide_extension(c"VK_KHR_pipeline_executable_properties");
    let result = compiled_kernels(&seam.config());
    assert!(matches!(&result, Err(Error::NoDisassembly { device }) if !device.is_empty()), "{result:?}");
}

#[test]
fn every_question_to_the_driver_can_fail() {
    // In a process for which RADV has a GPU: the environment is read once.
    let mut manifests =
        std::fs::read_dir("/usr/share/vulkan/icd.d").unwrap().map(|file| file.unwrap().path());
    let radv = manifests.find(|file| file.to_string_lossy().contains("radeon_icd")).unwrap();
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "in_a_process_with_a_gpu_that_is_not_there", "--ignored", "--nocapture"]);
    command.env("RADV_FORCE_FAMILY", "navi21").env("NODEVICE_SELECT", "1").env("VK_DRIVER_FILES", radv);
    let output = command.env_remove("TIDEMILL_DEVICE").output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
#[ignore = "run by every_question_to_the_driver_can_fail"]
fn in_a_process_with_a_gpu_that_is_not_there() {
    let seam = Seam::take();
    let calls = [
        "vkGetPipelineExecutablePropertiesKHR",
        "vkGetPipelineExecutableStatisticsKHR",
        "vkGetPipelineExecutableInternalRepresentationsKHR",
        "vkCreateComputePipelines",
    ];
    for name in calls {
        for nth in 1..=2 {
            seam.fail_nth(name, nth);
            let result = compiled_kernels(&Config::new().entry(seam::entry()));
            assert!(
                matches!(&result, Err(Error::Vulkan { call, .. }) if *call == name),
                "{name}: {result:?}"
            );
            assert_eq!(seam.live(), (0, 0));
        }
    }
}
