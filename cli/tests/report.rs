//! `tidemill report`: the file has every part, and nothing of who made it and where.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

/// Runs the command as a user of this home and this name.
fn report(home: &Path, user: &str, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tidemill"));
    command.arg("report").args(arguments).current_dir(home);
    command.env("HOME", home).env("USER", user).env("LOGNAME", user).env_remove("XDG_CACHE_HOME");
    command.output().unwrap()
}

/// Every text in a value.
fn texts(value: &Value, out: &mut Vec<String>) {
    match value {
        Value::String(text) => out.push(text.clone()),
        Value::Array(values) => values.iter().for_each(|value| texts(value, out)),
        Value::Object(fields) => fields.iter().for_each(|(key, value)| {
            out.push(key.clone());
            texts(value, out);
        }),
        _ => {}
    }
}

#[test]
fn the_quick_report_has_every_part_and_nothing_personal() {
    let folder = std::env::temp_dir().join(format!("tidemill-report-{}", std::process::id()));
    let home = folder.join("home-of-somebody");
    std::fs::create_dir_all(&home).unwrap();
    let done = report(&home, "somebody-else", &["--quick"]);
    let said = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "{}: {said}", done.status);
    assert_eq!(String::from_utf8_lossy(&done.stdout).trim(), "tidemill-report.html");
    let page = std::fs::read_to_string(home.join("tidemill-report.html")).unwrap();
    let data =
        page.split_once("id=\"report\">").and_then(|(_, rest)| rest.split_once("</script>")).unwrap().0;
    let data: Value = serde_json::from_str(data).unwrap();

    assert_eq!((&data["form"], &data["quick"]), (&1.into(), &true.into()));
    assert_eq!(data["failures"], serde_json::json!([]));
    for part in ["device", "cases", "bench", "tune", "crossover", "pipelines"] {
        assert!(data[part]["seconds"].as_f64().is_some_and(|seconds| seconds >= 0.0), "{part}");
        // Progress is told where no result is.
        assert!(said.lines().any(|line| line == format!("{part} …")), "{part}: {said}");
    }
    let device = &data["device"]["devices"][data["device"]["used"].as_u64().unwrap() as usize];
    for key in ["name", "driver", "kind", "limits", "features"] {
        assert!(!device[key].is_null(), "{key} of {device}");
    }
    assert!(data["cases"]["cases"].as_u64() > Some(500) && data["cases"]["failed"] == 0, "{}", data["cases"]);
    assert!(data["cases"]["operations"].as_array().unwrap().len() > 100);
    assert_eq!(data["bench"]["benchmarks"].as_array().unwrap().len(), 5, "{}", data["bench"]);
    assert!(data["tune"]["trials"].as_array().is_some_and(|trials| !trials.is_empty()), "{}", data["tune"]);
    assert!(data["crossover"]["cells"].as_array().unwrap().len() >= 8, "{}", data["crossover"]);
    assert!(page.contains("<polyline") && page.contains(device["name"].as_str().unwrap()));
    // lavapipe's compiler tells nothing, and that is no failure.
    let why = data["pipelines"]["error"].as_str().unwrap();
    assert!(why.contains("VK_KHR_pipeline_executable_properties"), "{why}");

    let mut all = Vec::new();
    texts(&data, &mut all);
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    for text in &all {
        for folder in [&home, &folder, &std::env::temp_dir()] {
            assert!(!text.contains(folder.to_str().unwrap()), "{text}");
        }
        let mut words = text.split(|c: char| !(c.is_alphanumeric() || "_-".contains(c)));
        assert!(
            !words.any(|word| word == "somebody-else" || word == host.trim() && !word.is_empty()),
            "{text}"
        );
    }
    // Nothing is kept for other programs.
    let left: Vec<_> = std::fs::read_dir(&home).unwrap().map(|file| file.unwrap().file_name()).collect();
    assert!(left.iter().all(|name| name == "tidemill-report.html" || name == ".cache"), "{left:?}");

    let done = report(&home, "somebody-else", &["--only", "device", "device.json"]);
    assert!(done.status.success());
    let data: Value = serde_json::from_slice(&std::fs::read(home.join("device.json")).unwrap()).unwrap();
    assert!(data["device"].is_object() && data["cases"].is_null(), "{data}");

    let done = report(&home, "somebody-else", &["--only", "device", "no/such/folder.html"]);
    assert!(!done.status.success() && String::from_utf8_lossy(&done.stderr).contains("could not be written"));
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn without_a_device_the_report_says_so_and_fails() {
    let folder = std::env::temp_dir().join(format!("tidemill-no-device-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let none = folder.join("none.json");
    let mut command = Command::new(env!("CARGO_BIN_EXE_tidemill"));
    command.args(["report", "--only", "cases", "none.json"]).current_dir(&folder);
    command.env("VK_DRIVER_FILES", "/nowhere.json").env("VK_ICD_FILENAMES", "/nowhere.json");
    assert!(!command.output().unwrap().status.success());
    let data: Value = serde_json::from_slice(&std::fs::read(none).unwrap()).unwrap();
    assert!(data["cases"]["error"].is_string() && data["failures"][0].is_string(), "{data}");
    std::fs::remove_dir_all(&folder).unwrap();
}
