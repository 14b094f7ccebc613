//! The command line, as it is called from a terminal or a script.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]
#![allow(unreachable_pub, reason = "a test binary exports nothing")]

use tidemill_cases::crossover as cells;

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

/// A cache folder of a test's own.
fn folder(test: &str) -> PathBuf {
    let path = std::env::temp_dir().join(format!("tidemill-{test}-{}", std::process::id()));
    std::fs::create_dir_all(&path).unwrap();
    path
}

/// Runs the command; what it prints.
fn tidemill(cache: &Path, arguments: &[&str]) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tidemill"));
    let output = command.args(arguments).env("XDG_CACHE_HOME", cache).output().unwrap();
    let (stdout, stderr) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{arguments:?}: {}\n{stdout}\n{stderr}", output.status);
    stdout.into_owned()
}

fn json(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}"))).collect()
}

fn above_zero(line: &Value, name: &str) {
    assert!(line[name].as_f64().is_some_and(|us| us > 0.0), "{name} of {line}");
}

#[test]
fn both_sides_are_measured_and_shown() {
    let cache = folder("crossover");

    let text = tidemill(&cache, &["calibrate"]);
    for side in ["CPU", "device"] {
        for class in ["memory", "transcendental", "reduction", "softmax", "matmul", "conv"] {
            let of = |line: &&str| line.starts_with(side) && line.split_whitespace().nth(1) == Some(class);
            assert_eq!(text.lines().filter(of).count(), 1, "{side} {class}:\n{text}");
        }
    }
    for part in [
        "to the device",
        "from the device",
        "a submission alone: ",
        "each dispatch in it: ",
        "spread: ",
        " and kept",
    ] {
        assert!(text.contains(part), "{part}:\n{text}");
    }

    let lines = json(&tidemill(&cache, &["calibrate", "--json"]));
    let (last, curves) = lines.split_last().unwrap();
    let alone = ["submission_us", "dispatch_us"].map(|name| last[name].as_f64().unwrap());
    assert!(alone.iter().sum::<f64>() > 0.0, "{last}");
    for line in curves {
        above_zero(line, "amount");
        above_zero(line, "us");
        assert!(line["spread"].as_f64().is_some_and(|spread| spread >= 1.0), "{line}");
    }
    for side in ["CPU", "device", "to the device", "from the device"] {
        assert!(curves.iter().any(|line| line["side"] == side), "{side}");
    }

    let page = cache.join("plots.html");
    let lines = json(&tidemill(
        &cache,
        &["crossover", "--json", "--largest", "1024", "--html", page.to_str().unwrap()],
    ));
    let ops: Vec<&str> = lines.iter().map(|line| line["op"].as_str().unwrap()).collect();
    assert_eq!(ops, cells::OPS.map(|op| op.name()));
    for line in &lines {
        assert_eq!(line["n"], 1024);
        for time in ["cpu_us", "gpu_us", "gpu_resident_us", "auto_us"] {
            above_zero(line, time);
        }
        assert!(line["chose"] == "CPU" || line["chose"] == "GPU", "{line}");
        assert!(line["regret"].as_f64().is_some_and(|regret| regret >= 1.0), "{line}");
    }
    let page = std::fs::read_to_string(page).unwrap();
    assert_eq!(page.matches("<figure>").count(), cells::OPS.len());

    let text = tidemill(&cache, &["crossover", "add", "--largest", "4096"]);
    let rows: Vec<&str> = text.lines().filter(|line| line.starts_with("add ")).collect();
    assert_eq!(rows.len(), 2, "{text}");
    assert!(rows[1].contains("4,096"), "{text}");
    assert!(text.contains("\nregret: "), "{text}");

    std::fs::remove_dir_all(&cache).unwrap();
}

#[test]
fn cases_tell_a_row_per_operation_and_last_the_totals() {
    let cache = folder("cases");
    let lines = json(&tidemill(&cache, &["cases", "gather_rows", "--variants", "all", "--json"]));
    let [row, totals] = &lines[..] else { panic!("{lines:?}") };
    assert_eq!((row["op"].as_str(), row["failed"].as_u64()), (Some("gather_rows"), Some(0)));
    assert_eq!(row["guard_bytes_touched"].as_u64(), Some(0));
    let cases = row["cases"].as_u64().unwrap();
    assert!(cases > 100, "on each variant: {cases}");
    assert_eq!(*totals, serde_json::json!({ "cases": cases, "failed": 0, "guard_bytes_touched": 0 }));
    std::fs::remove_dir_all(&cache).unwrap();
}

#[test]
fn tuning_prints_how_every_candidate_fared() {
    let cache = folder("tune");
    let lines = json(&tidemill(&cache, &["tune", "softmax", "--budget", "60", "--json"]));
    for class in ["small", "large"] {
        let of_class: Vec<_> = lines.iter().filter(|line| line["class"] == class).collect();
        assert!(of_class.len() > 1 && of_class[0]["default"] == true, "{lines:?}");
        assert!(of_class.iter().any(|line| line["outcome"] == "measured"), "{lines:?}");
    }
    for line in &lines {
        assert_eq!(line["family"], "softmax");
        // A loaded machine may have the clocks disagree; a result may not be wrong.
        let measured = line["outcome"] == "measured";
        assert!(measured || line["outcome"] == "impossible", "{line}");
        assert!(line["ns"].is_number() == measured && (measured || line["winner"] == false), "{line}");
    }
    let mut kept = std::fs::read_dir(cache.join("tidemill")).unwrap().map(|file| file.unwrap().file_name());
    assert!(kept.any(|name| name.to_string_lossy().starts_with("tuning-")));
    std::fs::remove_dir_all(&cache).unwrap();
}
