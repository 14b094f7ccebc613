//! What does not compile, and what the compiler then says: each file of `tests/ui/` is a program with one mistake. Its
//! comments `//~ text` are what the compiler's message must have in it. A file without one must compile.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

use std::path::{Path, PathBuf};
use std::process::Command;

/// The library as cargo has built it for the tests, and the folder with what it depends on. `./dev test` says how it
/// was built, so that nothing is built here.
fn library() -> (PathBuf, PathBuf) {
    let flags = std::env::var("TIDEMILL_C_BUILD").unwrap_or_else(|_| "--lib".to_owned());
    let build = Command::new(env!("CARGO"))
        .args(["build", "--quiet", "--message-format=json"])
        .args(flags.split_whitespace())
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap();
    assert!(build.status.success(), "{}", String::from_utf8_lossy(&build.stderr));
    let messages = String::from_utf8(build.stdout).unwrap();
    let artifact = |line: &&str| {
        line.contains("\"reason\":\"compiler-artifact\"") && line.contains("\"name\":\"tidemill\"")
    };
    // Cargo's file names have no quotes and no escapes, except of backslashes.
    let mut paths = messages.lines().filter(artifact).flat_map(|line| line.split('"'));
    let library = paths.rfind(|path| path.ends_with(".rlib")).expect("an rlib of the library");
    let library = PathBuf::from(library.replace("\\\\", "\\"));
    let built = library.parent().unwrap();
    let dependencies = if built.ends_with("deps") { built.to_owned() } else { built.join("deps") };
    (library, dependencies)
}

/// Compiles one program, without making code.
fn compile(program: &Path, (library, dependencies): &(PathBuf, PathBuf)) -> (bool, String) {
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let out = Path::new(env!("CARGO_TARGET_TMPDIR")).join("ui");
    std::fs::create_dir_all(&out).unwrap();
    let compiled = Command::new(rustc)
        .args([
            "--edition",
            "2024",
            "--crate-type",
            "lib",
            "--emit",
            "metadata",
            "--color",
            "never",
            "--out-dir",
        ])
        .arg(out)
        .arg("--extern")
        .arg(format!("tidemill={}", library.display()))
        .arg("-L")
        .arg(format!("dependency={}", dependencies.display()))
        .arg(program)
        .output()
        .unwrap();
    (compiled.status.success(), String::from_utf8_lossy(&compiled.stderr).into_owned())
}

#[test]
fn mistakes_are_explained_by_the_compiler() {
    let library = library();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/ui");
    let mut programs: Vec<_> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    programs.sort();
    assert!(programs.len() >= 4, "{programs:?}");
    let mut failures = Vec::new();
    for program in programs {
        let text = std::fs::read_to_string(&program).unwrap();
        let expected: Vec<&str> =
            text.lines().filter_map(|line| line.split_once("//~ ")).map(|(_, text)| text.trim()).collect();
        let (compiles, said) = compile(&program, &library);
        let unbroken = said.split_whitespace().collect::<Vec<_>>().join(" ");
        let missing: Vec<_> = expected.iter().filter(|text| !unbroken.contains(**text)).collect();
        if compiles != expected.is_empty() || !missing.is_empty() {
            failures
                .push(format!("{}: compiles: {compiles}, missing {missing:?} in\n{said}", program.display()));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}
