//! The table of cases, on every variant in the catalog.

use crate::fnv1a;

#[path = "../../build/kernels.rs"]
#[allow(dead_code, reason = "build.rs and tests/build_script.rs use the rest")]
mod kernels;

use std::path::Path;
use std::sync::{Arc, Mutex};

use tidemill::{Config, Prewarm};
use tidemill_cases as table;

/// The kernels of operations: all but `peak`, which `profile.rs` runs.
const KERNELS: [&str; 18] = [
    "matmul_",
    "conv_",
    "elementwise.",
    "reduce_",
    "softmax_",
    "norm_",
    "attention_",
    "rotary_",
    "copy_",
    "gather.",
    "generate",
    "locate.",
    "scatter.",
    "histogram.",
    "scan.",
    "radix_",
    "search.",
    "segments.",
];

/// The modules that `glsl/` asks for, of kernels whose names begin like that.
fn modules_of(prefixes: &[&str]) -> Vec<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("glsl");
    let mut tree = kernels::Tree::default();
    for (folder, prefix) in [(folder.clone(), ""), (folder.join("lib"), "lib/")] {
        for file in std::fs::read_dir(folder).unwrap().map(|file| file.unwrap()) {
            let name = format!("{prefix}{}", file.file_name().to_string_lossy());
            if file.file_type().unwrap().is_file() {
                tree.insert(&name, &std::fs::read_to_string(file.path()).unwrap());
            }
        }
    }
    let all = tree.modules().unwrap().into_iter().map(|module| module.name);
    let found: Vec<_> = all.filter(|name| prefixes.iter().any(|prefix| name.starts_with(prefix))).collect();
    assert!(prefixes.iter().all(|prefix| found.iter().any(|name| name.starts_with(prefix))), "{found:?}");
    found
}

#[test]
fn every_case_passes_on_every_variant() {
    let messages: Arc<Mutex<Vec<String>>> = Arc::default();
    let sink = messages.clone();
    let config = || {
        let sink = sink.clone();
        let on_message = move |message: &str| sink.lock().unwrap().push(message.to_owned());
        Config::new().validation(true).on_message(on_message).no_cache().prewarm(Prewarm::Off)
    };
    let report = table::report::run_table(&table::all(), true, config, |_| ()).unwrap();
    let failures: Vec<_> = report.rows.values().flat_map(|row| row.failures.clone()).collect();
    let (cases, failed) = report.totals();
    for (op, row) in &report.rows {
        println!("{op}: {} cases, worst {:.3e} {}", row.cases, row.worst.worst, row.worst.bound.unit());
    }
    println!("{cases} cases, {failed} failed, {} guard bytes touched", report.guard_bytes_touched());
    assert!(failures.is_empty(), "{} of {cases}:\n{}", failures.len(), failures.join("\n"));
    assert_eq!(report.guard_bytes_touched(), 0);
    assert!(cases >= 1500, "{cases} cases");
    // What nothing executes may be anything. Cases are single operations on few elements; what runs several at once, or
    // whole workgroups only, is compared elsewhere.
    let mut kernels = report.kernels;
    kernels.extend(crate::fused_modules::run());
    kernels.extend(crate::uniform_store::run_elementwise_and_softmax());
    // Where the driver stores them otherwise, these are never chosen.
    let chosen = |module: &str| {
        let uniform =
            ["matmul_", "conv_"].iter().any(|of| module.starts_with(of)) && module.contains(".uniform.");
        !uniform || crate::uniform_store::stores_uniformly(&crate::harness::gpu())
    };
    let idle = |module: &String| !kernels.contains(module) && chosen(module);
    let idle: Vec<_> = modules_of(&KERNELS).into_iter().filter(idle).collect();
    assert!(idle.is_empty(), "nothing runs {idle:?}");
    let messages = messages.lock().unwrap();
    assert!(messages.is_empty(), "validation says:\n{}", messages.join("\n\n"));
}

/// The names of the operations that a file of `src/ops` defines, one by one or in the rows of a macro.
fn operations(source: &str) -> Vec<&str> {
    let is_name = |name: &str| {
        !name.is_empty() && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
    };
    let mut names = Vec::new();
    for line in source.lines().filter_map(|line| line.strip_prefix("    ")) {
        if let Some(function) = line.strip_prefix("pub fn ") {
            names.extend(function.split(['<', '(']).next());
        } else if let Some((row, _)) = line.split_once(": ").filter(|(_, codes)| {
            codes.starts_with("Codes::")
                || ["EQ,", "NE,", "LT,", "LE,"].iter().any(|code| codes.starts_with(code))
        }) {
            names.extend(row.split(", ").filter_map(|name| name.split('(').next()));
        }
    }
    names.into_iter().filter(|name| is_name(name)).collect()
}

#[test]
fn every_operation_has_cases() {
    const SOURCES: [&str; 13] = [
        include_str!("../../src/ops/activation.rs"),
        include_str!("../../src/ops/binary.rs"),
        include_str!("../../src/ops/cast.rs"),
        include_str!("../../src/ops/compare.rs"),
        include_str!("../../src/ops/generate.rs"),
        include_str!("../../src/ops/index.rs"),
        include_str!("../../src/ops/layout.rs"),
        include_str!("../../src/ops/norm.rs"),
        include_str!("../../src/ops/reduce.rs"),
        include_str!("../../src/ops/scalar.rs"),
        include_str!("../../src/ops/scan.rs"),
        include_str!("../../src/ops/softmax.rs"),
        include_str!("../../src/ops/sort.rs"),
    ];
    let mut names: Vec<&str> = SOURCES.iter().flat_map(|source| operations(source)).collect();
    assert!(names.len() >= 50 && names.contains(&"gt_scalar") && names.contains(&"elu"), "{names:?}");
    names.extend(table::elementwise::IN_THE_TABLE);
    // Those of the engine and of files that have other functions beside.
    names.extend(["fill", "copy", "reshape", "matmul", "conv2d", "attention", "rotary"]);
    let cases = table::all();
    names.retain(|name| !cases.iter().any(|case| case.op == *name));
    assert!(names.is_empty(), "without cases: {names:?}");
}

/// What the benches time is what the tests check.
#[test]
fn every_operation_is_timed_and_no_two_cases_by_one_name() {
    let cases = table::all();
    let timed = |op: &str| cases.iter().any(|case| case.op == op && case.bench.is_some());
    let mut untimed: Vec<&str> = cases.iter().map(|case| case.op).filter(|op| !timed(op)).collect();
    untimed.dedup();
    assert!(untimed.is_empty(), "no bench times {untimed:?}");
    let mut names: Vec<&String> = cases.iter().filter_map(|case| case.bench.as_ref()).collect();
    let count = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), count, "two cases have one name");
}

#[test]
fn cases_know_what_they_compute_and_move() {
    let cases = table::all();
    let amounts = |name: &str| {
        let case = cases.iter().find(|case| case.bench.as_deref() == Some(name)).unwrap();
        (case.flops, case.size_bytes())
    };
    assert_eq!(amounts("matmul_64x4096x4096"), (2 * 64 * 4096 * 4096, 4 * (2 * 64 * 4096 + 4096 * 4096)));
    assert_eq!(amounts("add_16m"), (1 << 24, 12 << 24));
    assert_eq!(amounts("sum_4m"), (1 << 22, (4 << 22) + 4));
    assert_eq!(amounts("op_permute_f16"), (0, 4 << 20));
    let (pixels, taps) = (56 * 56, 64 * 9);
    assert_eq!(amounts("conv_64x56_64_3x3"), (2 * 64 * pixels * taps, 4 * (2 * 64 * pixels + 64 * taps)));
}
