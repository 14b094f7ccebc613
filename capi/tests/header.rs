//! The checked-in header is what cbindgen makes of the sources (`./dev header` writes it anew), and the sources leave no
//! operation of the Rust library out.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

use std::path::Path;

fn header() -> String {
    let crate_dir = Path::new(env!("CARGO_MANIFEST_DIR"));
    let config = cbindgen::Config::from_file(crate_dir.join("cbindgen.toml")).expect("cbindgen.toml");
    let builder = cbindgen::Builder::new().with_config(config).with_src(crate_dir.join("src/lib.rs"));
    let mut text = Vec::new();
    builder.generate().expect("cbindgen should understand the sources").write(&mut text);
    String::from_utf8(text).expect("a header is UTF-8")
}

#[test]
fn the_header_is_current() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("include/tidemill.h");
    let made = header();
    if std::env::var_os("TIDEMILL_WRITE_HEADER").is_some() {
        std::fs::write(&file, made).unwrap();
        return;
    }
    let is = std::fs::read_to_string(&file).unwrap_or_default();
    let differs = is.lines().zip(made.lines()).position(|(is, made)| is != made);
    let line = differs.unwrap_or_else(|| is.lines().count().min(made.lines().count())) + 1;
    assert!(is == made, "capi/include/tidemill.h is not current from line {line} on: run ./dev header");
}

/// The Rust files of a folder, as one text.
fn sources(folder: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    files.map(|file| std::fs::read_to_string(file).unwrap()).collect()
}

/// What a line of `src/ops/` defines for users: `pub fn name<…`, or rows of its macros such as `name: Codes…`,
/// `name(parameter): Codes…`, `name, name_scalar: EQ, …`.
fn defined(line: &str) -> Vec<&str> {
    let is_name = |name: &&str| !name.is_empty() && name.chars().all(|c| c.is_ascii_lowercase() || c == '_');
    if let Some(rest) = line.strip_prefix("    pub fn ") {
        return rest.split(['<', '(']).take(1).filter(is_name).collect();
    }
    let row = line.strip_prefix("    ").filter(|row| row.ends_with(';') && !row.starts_with(' '));
    let Some((names, value)) = row.and_then(|row| row.split_once(": ")) else { return Vec::new() };
    if !value.starts_with(|c: char| c.is_ascii_uppercase()) {
        return Vec::new();
    }
    names.split(", ").map(|name| name.split('(').next().unwrap_or(name)).filter(is_name).collect()
}

#[test]
fn no_operation_is_left_out() {
    let (ops, capi) = (sources("../src/ops"), sources("src"));
    let names: Vec<&str> = ops.lines().flat_map(defined).collect();
    // One of each form, so that none of them is overlooked.
    assert!(
        ["exp", "relu", "scale", "lt_scalar", "matmul_with", "gelu_erf"].iter().all(|n| names.contains(n))
    );
    assert!(names.len() > 80, "{names:?}");
    let is_called = |name: &&&str| {
        [".", "::"].iter().any(|before| capi.contains(&format!("{before}{name}(")))
            || capi.contains(&format!(".{name}::<"))
    };
    let missing: Vec<_> = names.iter().filter(|name| !is_called(name)).collect();
    // `matmul_with` is what `tm_matmul` calls.
    assert_eq!(missing, [&"matmul"], "operations that C does not have");
}
