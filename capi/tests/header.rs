//! The checked-in header is what cbindgen makes of the sources. `./dev header` writes it anew.

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
