//! Folders are layers, and arrows point down only: `docs/ARCHITECTURE.md` says which may use which.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]
#![allow(unreachable_pub, reason = "a test binary exports nothing")]

use std::fs;
use std::path::{Path, PathBuf};

/// Every Rust file below a folder or file of `src/`, with its text.
fn sources(of: &str) -> Vec<(PathBuf, String)> {
    fn walk(path: &Path, found: &mut Vec<(PathBuf, String)>) {
        if path.is_dir() {
            for entry in fs::read_dir(path).unwrap() {
                walk(&entry.unwrap().path(), found);
            }
        } else if path.extension().is_some_and(|e| e == "rs") {
            found.push((path.to_owned(), fs::read_to_string(path).unwrap()));
        }
    }
    let mut found = Vec::new();
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("src").join(of);
    if path.exists() {
        walk(&path, &mut found);
    }
    found
}

/// Code without comments, so that prose may name what it likes.
fn code(text: &str) -> String {
    text.lines().map(|line| line.split("//").next().unwrap_or_default()).collect::<Vec<_>>().join("\n")
}

/// Whether a word stands in a text, whole.
fn has_word(text: &str, word: &str) -> bool {
    let part = |c: char| c.is_alphanumeric() || c == '_';
    text.match_indices(word).any(|(at, _)| {
        !text[..at].chars().next_back().is_some_and(part)
            && !text[at + word.len()..].chars().next().is_some_and(part)
    })
}

/// The modules of this crate that a text names by `crate::`, in lists too.
fn named_modules(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for (at, _) in text.match_indices("crate::") {
        let rest = &text[at + "crate::".len()..];
        let first =
            |text: &str| text.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect::<String>();
        if let Some(list) = rest.strip_prefix('{') {
            let mut depth = 0;
            let mut item = String::new();
            for c in list.chars() {
                match c {
                    '{' => depth += 1,
                    '}' if depth == 0 => break,
                    '}' => depth -= 1,
                    ',' if depth == 0 => {
                        found.push(first(item.trim()));
                        item.clear();
                        continue;
                    }
                    _ => {}
                }
                item.push(c);
            }
            found.push(first(item.trim()));
        } else {
            found.push(first(rest));
        }
    }
    found
}

const BASE: &[&str] = &["disk", "error", "fnv1a", "shape", "spirv"];

/// Each layer with what it may use.
fn layers() -> Vec<(&'static str, Vec<&'static str>)> {
    let with = |more: &[&'static str]| [BASE, more].concat();
    vec![
        ("disk.rs", BASE.to_vec()),
        ("error.rs", BASE.to_vec()),
        ("fnv1a.rs", BASE.to_vec()),
        ("error", BASE.to_vec()),
        ("shape.rs", BASE.to_vec()),
        ("shape", BASE.to_vec()),
        ("spirv.rs", BASE.to_vec()),
        ("spirv", BASE.to_vec()),
        ("vk", with(&["vk"])),
        ("ir", with(&["vk", "ir"])),
        ("kernels", with(&["vk", "ir", "kernels"])),
        ("fusion", with(&["ir", "kernels", "fusion"])),
        ("schedule", with(&["vk", "ir", "kernels", "fusion", "schedule"])),
        ("runtime", with(&["vk", "ir", "kernels", "fusion", "schedule", "runtime"])),
        ("ops", with(&["ir", "kernels", "runtime", "ops"])),
        ("report", with(&["schedule", "runtime", "report"])),
        ("tune", with(&["kernels", "runtime", "ops", "tune"])),
        ("cpu", with(&["cpu"])),
        ("stream", with(&["runtime", "ops", "cpu", "stream", "hybrid"])),
        ("hybrid", with(&["runtime", "ops", "cpu", "stream", "hybrid"])),
    ]
}

#[test]
fn layers_use_only_what_lies_below() {
    let mut seen = 0;
    for (layer, may) in layers() {
        for (file, text) in sources(layer) {
            seen += 1;
            // A file's own tests may look further.
            let text = text.split("#[cfg(test)]\nmod ").next().unwrap_or_default();
            for module in named_modules(&code(text)) {
                // Types by their public names are the crate's own doing.
                if module.chars().next().is_none_or(char::is_lowercase) {
                    assert!(may.contains(&module.as_str()), "{} uses crate::{module}", file.display());
                }
            }
        }
    }
    assert!(seen > 30, "only {seen} files were found");
}

#[test]
fn every_module_is_in_a_layer() {
    let (_, lib) = sources("lib.rs").pop().unwrap();
    for line in code(&lib).lines() {
        let Some((_, rest)) = line.split_once("mod ") else { continue };
        let name = rest.trim_end_matches([';', ' ']);
        let known = layers().iter().any(|(layer, _)| layer.trim_end_matches(".rs") == name);
        assert!(known, "mod {name} of lib.rs is in no layer");
    }
}

/// `spawn` of the standard library panics where there is no thread to be had, and so does rayon.
#[test]
fn threads_are_asked_for_where_they_may_be_refused() {
    for (file, text) in sources(".") {
        let code = code(text.split("#[cfg(test)]").next().unwrap_or_default());
        for spawn in ["thread::spawn(", "scope.spawn("] {
            assert!(!code.contains(spawn), "{} has {spawn}", file.display());
        }
        let pool = file.ends_with("cpu/parallel.rs");
        assert!(pool || !has_word(&code, "rayon"), "{} names rayon", file.display());
    }
}

#[test]
fn only_vk_knows_vulkan_and_unsafe() {
    for (layer, _) in layers().into_iter().filter(|(layer, _)| *layer != "vk") {
        for (file, text) in sources(layer) {
            let code = code(&text);
            for word in ["ash", "gpu_allocator"] {
                assert!(!has_word(&code, word), "{} names {word}", file.display());
            }
            // Stores that bypass the cache have no safe form: docs/decisions.md.
            let stores = file.ends_with("cpu/streaming.rs");
            assert!(stores || !has_word(&code, "unsafe"), "{} has unsafe code", file.display());
        }
    }
    // The command line may drive Vulkan itself where it measures what we are compared with.
    for (file, text) in sources("../cli/src") {
        let anchor = file.components().any(|c| c.as_os_str().to_string_lossy().starts_with("anchor"));
        assert!(anchor || !has_word(&code(&text), "unsafe"), "{} has unsafe code", file.display());
    }
}

#[test]
fn ops_neither_wait_nor_read() {
    for (file, text) in sources("ops") {
        // The files' own tests may.
        let text = text.split("#[cfg(test)]").next().unwrap_or_default();
        for call in
            [".wait(", ".wait_timeout(", ".synchronize(", ".read(", ".read::<", ".read_into(", ".acquire("]
        {
            assert!(!code(text).contains(call), "{} calls {call})", file.display());
        }
    }
}

#[test]
fn safety_is_argued_at_every_unsafe_block() {
    let (_, contract) = sources("vk/mod.rs").pop().unwrap();
    assert!(contract.contains("# The contract"));
    let mut blocks = 0;
    for (file, text) in sources("vk").into_iter().chain(sources("cpu")) {
        let lines: Vec<&str> = text.lines().collect();
        for (i, line) in lines.iter().enumerate() {
            if !line.contains("unsafe {") && !line.trim_start().starts_with("unsafe impl") {
                continue;
            }
            blocks += 1;
            let above = lines[i.saturating_sub(4)..=i].iter().any(|l| l.contains("SAFETY:"));
            assert!(above, "{}:{}: no SAFETY comment", file.display(), i + 1);
        }
    }
    assert!(blocks > 40);
}

#[test]
fn the_check_itself_sees() {
    assert_eq!(named_modules("use crate::{vk::x, error::{A, B}}; crate::ir::y"), ["vk", "error", "ir"]);
    assert!(has_word("use ash::vk;", "ash") && !has_word("crash flash::x", "ash"));
    assert_eq!(code("a // unsafe\nb"), "a \nb");
}
