//! The checked-in header is what cbindgen makes of the sources (`./dev header` writes it anew), and the sources leave
//! no operation of the Rust library out.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

use std::path::{Path, PathBuf};

/// What the table of elementwise operations makes in a file of `src/`, as text: cbindgen expands no macros.
macro_rules! constants {
    (one_operand { $($section:ident {
        $($(#[$doc:meta])* $name:ident($variant:ident) {
            cost: $cost:ident, codes: $row_codes:tt, cpu: $cpu:expr,
            c: $c:ident = $number:literal $c_doc:literal $(, step: $step:ident = $step_number:literal)?
        })*
    })* } other_codes $codes:tt) => {
        const OPS: &[Constant] = &[$($((stringify!($c), $number, $c_doc),)*)*];
        const STEPS: &[Constant] = &[$($($(
            (stringify!($step), $step_number, concat!("As ", stringify!($c), ".")),
        )?)*)*];
    };
}

tidemill::elementwise_ops!(constants);

/// Name, number and documentation.
type Constant = (&'static str, u32, &'static str);

fn declarations(of_type: &str, constants: &[Constant]) -> String {
    let mut constants = constants.to_vec();
    constants.sort_by_key(|(_, number, _)| *number);
    let line =
        |(name, number, doc): &Constant| format!("/// {doc}\npub const {name}: {of_type} = {number};\n");
    constants.iter().map(line).collect()
}

/// A copy of the sources with those constants in the place of the macros that make them.
fn expanded() -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("expanded");
    std::fs::create_dir_all(&folder).unwrap();
    let macros = [
        ("elementwise.rs", "macro_rules! unary_constants", declarations("tm_unary_op", OPS)),
        ("epilogue.rs", "macro_rules! step_constants", declarations("tm_step_op", STEPS)),
    ];
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    for file in std::fs::read_dir(sources).unwrap().map(|entry| entry.unwrap().path()) {
        let mut text = std::fs::read_to_string(&file).unwrap();
        for (_, begin, constants) in macros.iter().filter(|(name, ..)| file.ends_with(name)) {
            assert_eq!(text.matches(begin).count(), 1, "{}: {begin}", file.display());
            text = text.replace(begin, &format!("{constants}\n{begin}"));
        }
        std::fs::write(folder.join(file.file_name().unwrap()), text).unwrap();
    }
    folder
}

fn header() -> String {
    let crate_dir = Path::new(env!("CARGO_MANIFEST_DIR"));
    let config = cbindgen::Config::from_file(crate_dir.join("cbindgen.toml")).expect("cbindgen.toml");
    let builder = cbindgen::Builder::new().with_config(config).with_src(expanded().join("lib.rs"));
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
/// `name(parameter): Codes…`, `name, name_scalar: EQ, …`. What comes from the table of elementwise operations is in C
/// by the same rows.
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
    assert!(["clip", "add", "scale", "lt_scalar", "matmul_with"].iter().all(|n| names.contains(n)));
    assert!(names.len() > 60, "{names:?}");
    let is_called = |name: &&&str| {
        [".", "::"].iter().any(|before| capi.contains(&format!("{before}{name}(")))
            || capi.contains(&format!(".{name}::<"))
    };
    let missing: Vec<_> = names.iter().filter(|name| !is_called(name)).collect();
    // `matmul_with` is what `tm_matmul` calls.
    assert_eq!(missing, [&"matmul"], "operations that C does not have");
}
