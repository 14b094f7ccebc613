//! The kernels for GPUs, judged by their vendors' compilers: `tidemill isa` compiles them for hardware that is not
//! there. `docs/roofline.md` says what the targets are for, `docs/gpus.md` what was judged by what.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]
#![allow(unreachable_pub, reason = "a test binary exports nothing")]

#[path = "../../src/fnv1a.rs"]
mod fnv1a;
#[path = "../../tests/gpu/harness.rs"]
#[allow(dead_code, reason = "only what the seam needs of it")]
mod harness;
#[path = "../../build/kernels.rs"]
#[allow(dead_code, reason = "build.rs and tests/build_script.rs use the rest")]
mod kernels;
#[path = "../../tests/seam/mod.rs"]
mod seam;

use std::collections::BTreeSet;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use seam::Seam;
use serde_json::Value;
use tidemill::tune::compiled_kernels;
use tidemill::{Config, Error};

/// What a tile must reach, all at once.
struct Target {
    kernel: &'static str,
    /// Constants that tell the tile: rows and columns of one in shared memory and of `matmul_dot`, lanes and rows of
    /// others in registers.
    tile: (u64, u64),
    least_waves: u64,
    /// With operands of f32, and of f16, which are widened in the loop.
    least_fma_shares: [f64; 2],
}

const fn target(
    kernel: &'static str,
    tile: (u64, u64),
    least_waves: u64,
    least_fma_shares: [f64; 2],
) -> Target {
    Target { kernel, tile, least_waves, least_fma_shares }
}

/// What one release of Mesa gives for a chip, or a little less. Another release schedules otherwise, and its figures
/// say nothing of our kernels: so they belong to both.
struct Figures {
    chip: &'static str,
    mesa: &'static str,
    targets: &'static [Target],
}

const FIGURES: &[Figures] = &[
    Figures { chip: "navi21", mesa: "22.3", targets: NAVI21_BY_22_3 },
    Figures { chip: "navi21", mesa: "25.0", targets: NAVI21_BY_25_0 },
    Figures { chip: "navi31", mesa: "25.0", targets: NAVI31_BY_25_0 },
];

/// Convolutions find the place of every element that they load, so less of their loop is multiply-adds; of products
/// with few rows or columns, memory sets the pace: their registers hold 8 loads and more that are in flight, which costs
/// waves. The same goes for the tables below.
const NAVI21_BY_22_3: &[Target] = &[
    target("matmul_tile", (32, 32), 14, [0.70, 0.62]),
    target("matmul_tile", (64, 64), 20, [0.77, 0.72]),
    target("matmul_tile", (128, 64), 12, [0.82, 0.78]),
    target("matmul_tile", (128, 128), 8, [0.87, 0.84]),
    target("matmul_rows", (32, 4), 16, [0.67, 0.49]),
    target("matmul_rows", (32, 1), 16, [0.60, 0.32]),
    target("matmul_rows", (8, 16), 8, [0.74, 0.66]),
    target("matmul_rows", (8, 4), 7, [0.80, 0.60]),
    target("matmul_rows", (8, 1), 10, [0.62, 0.31]),
    target("matmul_dot", (4, 1), 16, [0.55, 0.26]),
    target("matmul_dot", (4, 3), 12, [0.70, 0.42]),
    target("matmul_dot", (4, 10), 9, [0.83, 0.54]),
    target("matmul_dot", (8, 1), 21, [0.50, 0.27]),
    target("matmul_dot", (8, 3), 12, [0.71, 0.45]),
    target("matmul_dot", (8, 10), 6, [0.86, 0.64]),
    target("conv_tile", (32, 32), 12, [0.57, 0.49]),
    target("conv_tile", (64, 64), 16, [0.68, 0.62]),
    target("conv_tile", (128, 64), 10, [0.75, 0.71]),
    target("conv_tile", (128, 128), 7, [0.80, 0.75]),
];

/// Where Mesa 22.3 tells of 20 or 32 waves, 25.0 tells of 16, and the tile of 64x64 has less of multiply-adds.
const NAVI21_BY_25_0: &[Target] = &[
    target("matmul_tile", (32, 32), 12, [0.70, 0.64]),
    target("matmul_tile", (64, 64), 20, [0.70, 0.69]),
    target("matmul_tile", (128, 64), 12, [0.79, 0.75]),
    target("matmul_tile", (128, 128), 8, [0.87, 0.84]),
    target("matmul_rows", (32, 4), 16, [0.67, 0.51]),
    target("matmul_rows", (32, 1), 16, [0.60, 0.34]),
    target("matmul_rows", (8, 16), 8, [0.74, 0.66]),
    target("matmul_rows", (8, 4), 7, [0.80, 0.61]),
    target("matmul_rows", (8, 1), 10, [0.62, 0.32]),
    target("matmul_dot", (4, 1), 16, [0.55, 0.28]),
    target("matmul_dot", (4, 3), 12, [0.70, 0.44]),
    target("matmul_dot", (4, 10), 9, [0.83, 0.56]),
    target("matmul_dot", (8, 1), 16, [0.50, 0.30]),
    target("matmul_dot", (8, 3), 12, [0.71, 0.45]),
    target("matmul_dot", (8, 10), 6, [0.86, 0.66]),
    target("conv_tile", (32, 32), 12, [0.55, 0.49]),
    target("conv_tile", (64, 64), 16, [0.66, 0.61]),
    target("conv_tile", (128, 64), 10, [0.74, 0.72]),
    target("conv_tile", (128, 128), 7, [0.77, 0.74]),
];

const NAVI31_BY_25_0: &[Target] = &[
    target("matmul_tile", (32, 32), 12, [0.68, 0.69]),
    target("matmul_tile", (64, 64), 20, [0.73, 0.73]),
    target("matmul_tile", (128, 64), 18, [0.81, 0.80]),
    target("matmul_tile", (128, 128), 12, [0.86, 0.86]),
    target("matmul_rows", (32, 4), 16, [0.67, 0.51]),
    target("matmul_rows", (32, 1), 16, [0.60, 0.34]),
    target("matmul_rows", (8, 16), 12, [0.74, 0.67]),
    target("matmul_rows", (8, 4), 10, [0.80, 0.61]),
    target("matmul_rows", (8, 1), 12, [0.62, 0.34]),
    target("matmul_dot", (4, 1), 16, [0.55, 0.28]),
    target("matmul_dot", (4, 3), 16, [0.70, 0.46]),
    target("matmul_dot", (4, 10), 12, [0.83, 0.58]),
    target("matmul_dot", (8, 1), 16, [0.50, 0.30]),
    target("matmul_dot", (8, 3), 16, [0.71, 0.47]),
    target("matmul_dot", (8, 10), 8, [0.86, 0.66]),
    target("conv_tile", (32, 32), 12, [0.57, 0.55]),
    target("conv_tile", (64, 64), 20, [0.66, 0.63]),
    target("conv_tile", (128, 64), 16, [0.74, 0.72]),
    target("conv_tile", (128, 128), 8, [0.79, 0.79]),
];

/// The kernels of which some tile has a target.
const TILED: [&str; 4] = ["matmul_tile", "matmul_rows", "matmul_dot", "conv_tile"];

/// Whether an operand is f16.
fn is_f16(line: &Value) -> bool {
    let id = if line["kernel"].as_str().unwrap().starts_with("conv") { 8 } else { 42 };
    constant(line, id).is_some_and(|mask| mask != 0)
}

/// What the command prints: all of it, and what it says of GPUs that it can't judge.
fn compiled(arguments: &[&str]) -> (Vec<Value>, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tidemill"));
    let output = command.args(["isa", "--json"]).args(arguments).output().unwrap();
    let (stdout, stderr) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    // A GPU that is not judged is a failure, and no other failure is.
    assert_eq!(output.status.success(), !stderr.contains("FAILED"), "{}\n{stderr}", output.status);
    (stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect(), stderr.into_owned())
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

/// The modules for GPUs that `glsl/` asks for: those that load no texels.
fn modules() -> Vec<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../glsl");
    let mut tree = kernels::Tree::default();
    for (folder, prefix) in [(folder.clone(), ""), (folder.join("lib"), "lib/")] {
        for file in std::fs::read_dir(folder).unwrap().map(|file| file.unwrap()) {
            if file.file_type().unwrap().is_file() {
                let name = format!("{prefix}{}", file.file_name().to_string_lossy());
                tree.insert(&name, &std::fs::read_to_string(file.path()).unwrap());
            }
        }
    }
    let all = tree.modules().unwrap().into_iter().map(|module| module.name);
    all.filter(|name| !name.contains(".texel")).collect()
}

/// A file that `./dev setup --ci` puts into the cache.
fn in_cache(file: &str) -> PathBuf {
    let var = |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let caches = var("XDG_CACHE_HOME").or_else(|| var("HOME").map(|home| home.join(".cache")));
    let cache = var("TIDEMILL_CACHE").or_else(|| caches.map(|caches| caches.join("tidemill")));
    cache.unwrap_or_default().join(file)
}

/// One for each of the back ends of Intel's compiler.
const INTEL: [&str; 2] = ["dg2", "bmg"];
/// The others, by the codes that `device` begins with.
const MORE_OF_INTEL: [&str; 3] = ["tgl", "mtl", "lnl"];
/// The release by which no default kernel spills on Intel. Another one gives registers otherwise.
const INTEL_JUDGED_BY: &str = "25.0";

#[test]
fn kernels_for_gpus_compile_to_good_instructions() {
    judge_all(&["--back-ends"], &INTEL);
}

#[test]
#[ignore = "compiles for three more GPUs with the same back ends: ./dev test --long"]
fn kernels_compile_to_good_instructions_for_every_gpu() {
    judge_all(&[], &[INTEL.as_slice(), &MORE_OF_INTEL].concat());
}

fn judge_all(arguments: &[&str], intel: &[&'static str]) {
    let (lines, said) = compiled(arguments);
    // What it can't do without is installed; the others must count where what they need is there.
    let mut devices = vec!["navi21"];
    if in_cache("mesa/radeon_icd.json").exists() {
        devices.push("navi31");
    }
    if in_cache("mesa/intel_icd.json").exists() && in_cache("drm-shim/intel.so").exists() {
        devices.extend(intel);
    }
    for device in &devices {
        assert!(lines.iter().any(|line| code(line) == *device), "{device} was not judged: {said}");
    }
    let mut failures = Vec::new();
    for family in ["elementwise", "reduce", "softmax", "norm", "matmul", "conv2d", "attention", "other"] {
        assert!(lines.iter().any(|line| line["family"] == family), "nothing of {family} was compiled");
    }
    let name = |line: &Value| line["kernel"].as_str().unwrap().to_owned();
    for device in &devices {
        let missing: Vec<_> = modules()
            .into_iter()
            .filter(|module| !lines.iter().any(|line| code(line) == *device && name(line) == *module))
            .collect();
        assert!(missing.is_empty(), "not compiled for {device}: {missing:?}");
    }
    for line in &lines {
        for key in ["vendor", "kernel", "variant", "device", "driver"] {
            assert!(line[key].is_string(), "{key} in {line}");
        }
        for key in ["registers", "spills", "occupancy", "vgprs", "scratch", "lds", "waves", "fma_share"] {
            assert!(line[key].is_number(), "{key} in {line}");
        }
        assert!(line["default"].is_boolean() && !mesa(line).is_empty(), "{line}");
        assert!(line["registers"].as_u64() > Some(0), "{line}");
        assert_eq!((&line["vgprs"], &line["waves"]), (&line["registers"], &line["occupancy"]), "{line}");
        // Of what only multiplies and adds, and of nothing else.
        let figure = line["instructions_per_mac"].as_f64();
        assert_eq!(figure.is_some(), multiplies(line), "{line}");
        assert!(figure.is_none_or(|figure| (0.5..200.0).contains(&figure)), "{line}");
        if spills_where_it_may_not(line) {
            failures.push(format!("spills: {line}"));
        }
    }
    for figures in FIGURES {
        let made = |line: &&Value| code(line) == figures.chip && mesa(line) == figures.mesa;
        failures.extend(judge(figures, &lines.iter().filter(made).collect::<Vec<_>>()));
    }
    let amd = lines.iter().filter(|line| line["vendor"] == "AMD");
    for line in amd.filter(|line| TILED.contains(&kernel(line).as_str())) {
        let shared = line["lds"] != 0;
        // A convolution reads single words of its input.
        let bits = if kernel(line) == "conv_tile" { 32 } else { 128 };
        if line["global_load_bits"] != bits || (shared && line["lds_load_bits"] != 128) {
            failures.push(format!("narrow loads: {line}"));
        }
    }
    for line in lines.iter().filter(|line| code(line) == "navi31" && mesa(line) == "25.0") {
        failures.extend(judge_counts(line));
    }
    say_what_has_no_figures(&lines);
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// The GPU, as Mesa calls it: what stands before its name.
fn code(line: &Value) -> &str {
    line["device"].as_str().unwrap().split(':').next().unwrap()
}

/// Whether a kernel is made of multiply-adds.
fn multiplies(line: &Value) -> bool {
    TILED.contains(&kernel(line).as_str()) || kernel(line) == "conv_direct"
}

/// On AMD nothing may spill, on Intel no kernel that is a default.
fn spills_where_it_may_not(line: &Value) -> bool {
    match line["vendor"] == "AMD" {
        true => line["spills"] != 0 || line["scratch"] != 0,
        false => line["default"] == true && mesa(line) == INTEL_JUDGED_BY && line["spills"] != 0,
    }
}

fn kernel(line: &Value) -> String {
    line["kernel"].as_str().unwrap().split('.').next().unwrap().to_owned()
}

/// The release of Mesa that compiled it: "25.0" of "radv, Mesa 25.0.7-2".
fn mesa(line: &Value) -> String {
    let driver = line["driver"].as_str().unwrap();
    let version = driver.rsplit("Mesa ").next().unwrap_or_default();
    assert!(version.starts_with(|c: char| c.is_ascii_digit()), "no version of Mesa in {driver:?}");
    version.split(['.', '-', ' ']).take(2).collect::<Vec<_>>().join(".")
}

/// What lies below the figures; nothing if this driver is not here. A tile without a target, or a target without a
/// tile, is a failure.
fn judge(figures: &Figures, lines: &[&Value]) -> Vec<String> {
    let (mut failures, mut judged) = (Vec::new(), Vec::new());
    for line in lines.iter().filter(|line| TILED.contains(&kernel(line).as_str())) {
        let first = if kernel(line) == "matmul_dot" { 2 } else { 1 };
        let tile = (constant(line, first).unwrap(), constant(line, first + 1).unwrap());
        let meant = |target: &Target| target.kernel == kernel(line) && target.tile == tile;
        let Some(target) = figures.targets.iter().position(meant) else {
            failures.push(format!("no target is stated for {line}"));
            continue;
        };
        judged.push(target);
        let target = &figures.targets[target];
        let (waves, share) = (line["waves"].as_u64().unwrap(), line["fma_share"].as_f64().unwrap());
        let least_share = target.least_fma_shares[usize::from(is_f16(line))];
        if waves < target.least_waves || share < least_share {
            failures.push(format!("below {} waves at {least_share}: {line}", target.least_waves));
        }
    }
    let missing =
        figures.targets.iter().enumerate().filter(|(i, _)| !lines.is_empty() && !judged.contains(i));
    failures.extend(missing.map(|(_, target)| {
        format!("no {} of {:?} was compiled for {}", target.kernel, target.tile, figures.chip)
    }));
    failures
}

/// Instructions per multiply-add of convolutions of f32 in tiles of 128x128, and of 128x64, at most.
const CONV_PER_MAC: [f64; 2] = [1.35, 1.5];
/// Loads that matrix-vector kernels have on their way before they wait, at least.
const IN_FLIGHT: u64 = 8;

/// What is wrong with a default kernel for NAVI31, as Mesa 25.0 compiles it: convolutions of 3 x 3 and smaller, and
/// products with one row or column.
fn judge_counts(line: &Value) -> Option<String> {
    let is = |id, value| constant(line, id) == Some(value);
    let large = kernel(line) == "conv_tile" && is(1, 128) && !is_f16(line);
    let most = CONV_PER_MAC[usize::from(!is(2, 128))];
    if large && line["instructions_per_mac"].as_f64() > Some(most) {
        return Some(format!("more than {most} instructions per multiply-add: {line}"));
    }
    let vector = match kernel(line).as_str() {
        "matmul_rows" => is(2, 1),
        "matmul_dot" => is(3, 1),
        _ => false,
    };
    let few = line["default"] == true && vector && line["loads_in_flight"].as_u64() < Some(IN_FLIGHT);
    few.then(|| format!("fewer than {IN_FLIGHT} loads on their way: {line}"))
}

/// Names the drivers that were judged only by what holds everywhere: no spills, loads of 128 bits.
fn say_what_has_no_figures(lines: &[Value]) {
    let drivers: BTreeSet<_> = lines.iter().map(|line| (code(line), mesa(line))).collect();
    for (device, mesa) in drivers {
        let figures = FIGURES.iter().any(|known| device == known.chip && mesa == known.mesa);
        if !figures && mesa != INTEL_JUDGED_BY {
            // Not by `eprintln`, which a test that passes keeps to itself.
            let _ = writeln!(
                std::io::stderr(),
                "{device} by Mesa {mesa}: no figures are stated, so only spills and the width of loads were judged"
            );
        }
    }
}

#[test]
fn a_driver_that_tells_nothing_is_named() {
    let seam = Seam::take();
    seam.hide_extension(c"VK_KHR_pipeline_executable_properties");
    let refused = compiled_kernels(&seam.config()).unwrap_err().to_string();
    let (device, why) = refused.split_once(": ").unwrap();
    assert!(!device.is_empty());
    assert_eq!(why, "the driver lacks VK_KHR_pipeline_executable_properties, so it shows no instructions");
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
