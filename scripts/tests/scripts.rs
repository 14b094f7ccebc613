//! The scripts that choose, run, time and compare: `./dev test NAME`, `./dev test`, `./dev test --timings`, `./dev
//! counters`.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

use std::path::{Path, PathBuf};
use std::process::Command;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// A bash command in the repository; what it prints, with whether it succeeded.
fn bash(command: &str) -> (bool, String) {
    let output = Command::new("bash").args(["-euo", "pipefail", "-c", command]).current_dir(root()).output();
    let output = output.expect("bash is there");
    let said = [output.stdout, output.stderr].concat();
    (output.status.success(), String::from_utf8_lossy(&said).into_owned())
}

/// A file that is this process's own.
fn file(name: &str, text: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::write(&path, text).unwrap();
    path
}

/// The sources of the repository, without what is built.
fn sources(folder: &Path, found: &mut Vec<String>) {
    for entry in std::fs::read_dir(root().join(folder)).unwrap().map(|entry| entry.unwrap()) {
        let path = folder.join(entry.file_name());
        let name = path.to_str().unwrap();
        if entry.file_type().unwrap().is_dir() {
            if !name.starts_with('.') && name != "target" {
                sources(&path, found);
            }
        } else if name.ends_with(".rs") {
            found.push(name.to_owned());
        }
    }
}

/// What `./dev test NAME` builds.
fn targets(name: &str) -> Vec<String> {
    let mut files = Vec::new();
    sources(Path::new(""), &mut files);
    let output = Command::new("awk")
        .args(["-v", &format!("name={name}"), "-f", "scripts/tests.awk"])
        .args(files)
        .current_dir(root())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let mut found: Vec<String> = String::from_utf8_lossy(&output.stdout).lines().map(str::to_owned).collect();
    found.sort();
    found
}

#[test]
fn a_binary_is_found_by_its_name_alone() {
    for (name, target) in [
        ("gpu", "tidemill --test gpu"),
        ("cpu", "tidemill --test cpu"),
        ("isa", "tidemill-cli --test isa"),
        ("programs", "tidemill-capi --test programs"),
        ("window", "embed_window --test window"),
        ("scripts", "tidemill-scripts --test scripts"),
    ] {
        assert_eq!(targets(name), [target], "{name}");
    }
}

#[test]
fn a_part_of_a_path_finds_the_binaries_that_hold_it() {
    assert_eq!(targets("every_case_passes_on_every_v"), ["tidemill --test gpu"]);
    assert_eq!(targets("cases::every_case"), ["tidemill --test gpu"]);
    assert_eq!(targets("a_part_of_a_path"), ["tidemill-scripts --test scripts"]);
    assert!(
        targets("a_snippet_stands_there").contains(&"tidemill-mutants --bin tidemill-mutants".to_owned())
    );
}

/// `matmul` is a function of the command line and of the C library, too.
#[test]
fn only_tests_count() {
    let found = targets("matmul");
    assert!(found.contains(&"tidemill --test gpu".to_owned()), "{found:?}");
    for helper in ["tidemill-cli --bin tidemill", "tidemill-capi --lib"] {
        assert!(!found.contains(&helper.to_owned()), "{found:?}");
    }
    // A folder that binaries share, and a function in it.
    assert!(targets("seam").iter().all(|target| !target.ends_with("--test seam")));
    assert!(targets("no_test_is_called_like_this_").is_empty());
}

const LOG: &str = "\
     Running unittests src/lib.rs (target/debug/deps/tidemill-b305d7d874d9e6e6)
test result: ok. 200 passed; 1 failed; 2 ignored; 0 measured; 0 filtered out; finished in 2.50s
     Running unittests src/lib.rs (target/debug/deps/tidemill_cases-18a518e76e9c0cc4)
test result: ok. 2 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s
     Running unittests src/main.rs (target/debug/deps/tidemill-98a32df5c461192b)
test result: ok. 25 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 6.50s
     Running tests/cache.rs (target/debug/deps/cache-71976476a85dc2ce)
test result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 3 filtered out; finished in 1.00s
test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 4.00s
   Doc-tests tidemill
test result: ok. 70 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 12.00s
test result: ok. 6 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 4.00s
all doctests ran in 17.31s; merged doctests compilation took 0.84s
";

const UNITS: &str = r#"
    "name": "host_side",
    "target": " host_side \"bin\"",
    "duration": 4.00,
    "name": "rayon",
    "target": "",
    "duration": 9.00,
"#;

#[test]
fn a_test_binary_runs_in_one_lane() {
    let lane =
        |binary: &str| bash(&format!("source scripts/lane.sh; lane_of target/debug/deps/{binary}-0a1b2c")).1;
    assert_eq!([lane("faults"), lane("gpu")], ["beside\n", "others\n"]);
    // Doctests have no hash in their names.
    assert_eq!(bash("source scripts/lane.sh; lane_of /tmp/rust_out").1, "others\n");
    let echo = |lane: &str| bash(&format!("TIDEMILL_LANE={lane} scripts/lane.sh /bin/echo ran"));
    assert_eq!(echo("beside"), (true, String::new()));
    assert_eq!(echo("others"), (true, "ran\n".into()));
    assert!(!bash("TIDEMILL_LANE=others scripts/lane.sh /bin/false").0, "a failure stays one");
}

#[test]
fn what_runs_beside_exists() {
    let text = std::fs::read_to_string(root().join("scripts/lane.sh")).unwrap();
    let beside = text.lines().find(|line| line.contains("beside\\n")).unwrap();
    let (names, _) = beside.trim().split_once(')').unwrap();
    for name in names.split(" | ") {
        assert!(targets(name).iter().any(|target| target.ends_with(&format!("--test {name}"))), "{name}");
    }
}

#[test]
fn timings_have_a_row_for_each_binary() {
    let (units, log) = (file("units.html", UNITS), file("test.log", LOG));
    let (succeeded, table) =
        bash(&format!("awk -f scripts/timings.awk '{}' '{}'", units.display(), log.display()));
    assert!(succeeded, "{table}");
    for row in [
        "| host_side: host_side bin | 4 |",
        "| everything else that is depended on | 9 |",
        "| tidemill, unit tests of src/lib.rs | 201 | 2.5 |",
        "| tidemill_cases, unit tests of src/lib.rs | 2 | 0.0 |",
        "| tidemill, unit tests of src/main.rs | 25 | 6.5 |",
        "| cache | 3 | 4.0 |",
        "| tidemill, doctests | 76 | 17.3 |",
        "| all | 307 | 30 |",
    ] {
        assert!(table.lines().any(|line| line == row), "{row} in:\n{table}");
    }
}

/// The functions of `scripts/counters.sh`, with programs of our own instead of cargo and callgrind.
fn counters(command: &str) -> (bool, String) {
    bash(&format!(
        "source scripts/setup.sh; source scripts/counters.sh; setup_callgrind() {{ true; }}; {command}"
    ))
}

#[test]
fn a_build_that_fails_counts_nothing() {
    let kept = file("instructions.txt", "kept\n");
    let (succeeded, said) = counters(&format!(
        "INSTRUCTIONS='{}'; cargo() {{ return 101; }}; count_instructions && echo went on",
        kept.display()
    ));
    assert!(!succeeded && said.contains("host_side does not build") && !said.contains("went on"), "{said}");
    assert_eq!(std::fs::read_to_string(kept).unwrap(), "kept\n");
}

#[test]
fn a_cpu_is_known_by_more_than_its_name() {
    let of = |model: u32| {
        let text = format!(
            "processor\t: 0\ncpu family\t: 25\nmodel\t\t: {model}\nmodel name\t: AMD EPYC\nstepping\t: 1\n\n\
             processor\t: 1\ncpu family\t: 99\n"
        );
        let cpu = file(&format!("cpu{model}"), &text);
        counters(&format!("cpu_model '{}'", cpu.display())).1
    };
    assert_eq!(of(17), "AMD EPYC, family 25, model 17, stepping 1\n");
    assert_ne!(of(17), of(1));
}
