//! Folders are layers, and arrows point down only: `docs/ARCHITECTURE.md` says which may use which. Inside a folder,
//! files do not name each other in a circle.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]
#![allow(unreachable_pub, reason = "a test binary exports nothing")]

use std::collections::{BTreeMap, BTreeSet};
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

const BASE: &[&str] = &["disk", "elementwise_ops", "error", "fnv1a", "shape", "spirv"];

/// Each layer with what it may use.
fn layers() -> Vec<(&'static str, Vec<&'static str>)> {
    let with = |more: &[&'static str]| [BASE, more].concat();
    vec![
        ("disk.rs", BASE.to_vec()),
        ("elementwise_ops.rs", BASE.to_vec()),
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
        // What has its items right there is no file: the pages whose snippets are doctests.
        let Some(name) = rest.trim_end().strip_suffix(';') else { continue };
        let known = layers().iter().any(|(layer, _)| layer.trim_end_matches(".rs") == name);
        assert!(known, "mod {name} of lib.rs is in no layer");
    }
}

/// What a `use` tree names: each path in full.
fn paths_of(tree: &str) -> Vec<String> {
    let Some((before, list)) = tree.split_once('{') else { return vec![tree.trim().to_owned()] };
    let (mut depth, mut item, mut found) = (0, String::new(), Vec::new());
    let mut add = |item: &mut String| {
        found.extend(paths_of(item).into_iter().map(|path| format!("{}{path}", before.trim())));
        item.clear();
    };
    for c in list.chars() {
        match c {
            '}' if depth == 0 => break,
            ',' if depth == 0 => {
                add(&mut item);
                continue;
            }
            '{' => depth += 1,
            '}' => depth -= 1,
            _ => {}
        }
        item.push(c);
    }
    add(&mut item);
    found
}

/// The paths of this crate that a text names, in `use` and elsewhere.
fn named_paths(text: &str) -> Vec<String> {
    let (mut found, mut rest) = (Vec::new(), String::new());
    for statement in text.split(';') {
        match statement.rfind("use ").filter(|&at| {
            matches!(statement[at + 4..].trim_start().split("::").next(), Some("crate" | "super" | "self"))
        }) {
            Some(at) => {
                found.extend(paths_of(&statement[at + 4..]));
                rest.push_str(&statement[..at]);
            }
            None => rest.push_str(statement),
        }
        rest.push(';');
    }
    let part = |c: char| c.is_alphanumeric() || c == '_' || c == ':';
    let words = rest.split(|c| !part(c)).filter(|word| {
        word.starts_with("crate::") || word.starts_with("super::") || word.starts_with("self::")
    });
    found.extend(words.map(str::to_owned));
    found
}

/// Every module of `src/` with the modules that it names, by their paths: `["vk", "buffer"]`.
type Modules = BTreeMap<Vec<String>, BTreeSet<Vec<String>>>;

fn modules() -> Modules {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut texts: BTreeMap<Vec<String>, String> = BTreeMap::new();
    for (file, text) in sources(".") {
        let file = file.strip_prefix(&src).unwrap().with_extension("");
        let mut path: Vec<String> =
            file.iter().map(|part| part.to_string_lossy().into_owned()).filter(|part| part != ".").collect();
        // A file's own tests may look further.
        if path.last().is_some_and(|last| last.ends_with("tests") || last == "lib") {
            continue;
        }
        if path.last().is_some_and(|last| last == "mod") {
            path.pop();
        }
        let text = text.split("#[cfg(test)]\nmod ").next().unwrap_or_default();
        texts.insert(path, code(text));
    }
    let resolve = |from: &[String], named: &str| {
        let mut at = from.to_vec();
        for (i, part) in named.split("::").enumerate() {
            match part {
                "crate" if i == 0 => at.clear(),
                "self" => {}
                "super" => drop(at.pop()),
                name => {
                    at.push(name.split_whitespace().next().unwrap_or_default().to_owned());
                    if !texts.contains_key(&at) {
                        at.pop();
                        break;
                    }
                }
            }
        }
        at
    };
    let names = |(path, text): (&Vec<String>, &String)| {
        (path.clone(), named_paths(text).iter().map(|named| resolve(path, named)).collect())
    };
    texts.iter().map(names).collect()
}

/// The files and folders of a folder that name each other in a circle, each circle in one set. A file may name what its
/// parent has, and a parent its children.
fn knots(modules: &Modules, folder: &[String]) -> BTreeSet<BTreeSet<String>> {
    let unit = |path: &[String]| path.strip_prefix(folder).and_then(|rest| rest.first()).cloned();
    let mut uses: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (path, named) in modules {
        let Some(from) = unit(path) else { continue };
        let others = named.iter().filter_map(|named| unit(named)).filter(|to| *to != from);
        uses.entry(from.clone()).or_default().extend(others);
    }
    // What can be reached from each, by as many steps as there are units.
    let mut reached = uses.clone();
    for _ in 0..uses.len() {
        for further in reached.values_mut() {
            let next: Vec<String> = further.iter().flat_map(|to| uses[to].iter().cloned()).collect();
            further.extend(next);
        }
    }
    let circle = |from: &String| -> BTreeSet<String> {
        reached[from].iter().filter(|to| reached[*to].contains(from)).cloned().collect()
    };
    uses.keys().map(circle).filter(|circle| circle.len() > 1).collect()
}

/// The circles that there are, with what keeps them. No other may come, and one that is untied leaves the list.
const KNOTS: &[(&str, &[&str])] = &[
    // What an accelerator is, and the threads that keep it alive while they work for it.
    ("runtime", &["background", "core", "wakers"]),
    // A tensor gives its accelerator, and an accelerator makes tensors.
    ("runtime", &["accelerator", "tensor"]),
    // A device, its buffers, and what the host application may put in the place of both (`raw`).
    ("vk", &["buffer", "device", "raw"]),
];

#[test]
fn no_room_is_a_knot_inside() {
    let modules = modules();
    let folders: BTreeSet<Vec<String>> =
        modules.keys().flat_map(|path| (1..path.len()).map(|n| path[..n].to_vec())).collect();
    assert!(folders.len() > 20, "only {} folders were found", folders.len());
    let mut found = BTreeSet::new();
    for folder in folders {
        for knot in knots(&modules, &folder) {
            found.insert((folder.join("/"), knot));
        }
    }
    let known: BTreeSet<(String, BTreeSet<String>)> = KNOTS
        .iter()
        .map(|(folder, knot)| (folder.to_string(), knot.iter().map(|unit| unit.to_string()).collect()))
        .collect();
    let new: Vec<_> = found.difference(&known).collect();
    assert!(new.is_empty(), "these files name each other in a circle: {new:?}");
    let gone: Vec<_> = known.difference(&found).collect();
    assert!(
        gone.is_empty(),
        "these circles have changed or are untied, so KNOTS is to be corrected: {gone:?}"
    );
}

/// What a driver needs is a named flag of `vk/workarounds.rs`.
#[test]
fn only_the_description_of_devices_asks_for_software_drivers() {
    let may = ["vk/workarounds.rs", "vk/kind.rs", "vk/choice.rs"];
    let mut seen = 0;
    for (file, text) in sources(".") {
        // A file's own tests may.
        let text = text.split("#[cfg(test)]").next().unwrap_or_default();
        if code(text).contains("DeviceKind::Cpu") {
            seen += 1;
            assert!(may.iter().any(|may| file.ends_with(may)), "{} asks for DeviceKind::Cpu", file.display());
        }
    }
    assert!(seen > 0, "nothing asks for DeviceKind::Cpu");
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
        let baseline = file.components().any(|c| c.as_os_str().to_string_lossy().starts_with("baseline"));
        assert!(baseline || !has_word(&code(&text), "unsafe"), "{} has unsafe code", file.display());
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
    let text = "use crate::{vk::{x, y::Z}, ir}; use std::fmt; fn f() { super::g::h(); self::i }";
    let paths = ["crate::vk::x", "crate::vk::y::Z", "crate::ir", "super::g::h", "self::i"];
    assert_eq!(named_paths(text), paths);
    let path = |text: &str| text.split('/').map(str::to_owned).collect::<Vec<_>>();
    let modules = |uses: &[(&str, &str)]| -> Modules {
        uses.iter().map(|(from, to)| (path(from), BTreeSet::from([path(to)]))).collect()
    };
    let circle = modules(&[("vk/a", "vk/b"), ("vk/b", "vk/c/d"), ("vk/c", "ir"), ("vk/c/d", "vk/a")]);
    let set = |units: &[&str]| units.iter().map(|unit| unit.to_string()).collect::<BTreeSet<_>>();
    assert_eq!(knots(&circle, &path("vk")), BTreeSet::from([set(&["a", "b", "c"])]));
    assert_eq!(knots(&circle, &path("vk/c")), BTreeSet::new());
    let line = modules(&[("vk/a", "vk/b"), ("vk/b", "vk"), ("vk", "vk/a")]);
    assert_eq!(knots(&line, &path("vk")), BTreeSet::new(), "a parent is in no circle with its children");
}
