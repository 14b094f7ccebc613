//! The public interface of the crate, as a text: `tests/public-api.txt`. It is made of the sources, so that every
//! change of it is seen in review (`./dev api` writes it anew). What is `pub` can be reached from outside, by the lint
//! `unreachable_pub`.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// Every Rust file of the library, in order.
fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    let mut entries: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    entries.sort();
    for entry in entries {
        if entry.is_dir() {
            files(&entry, found);
        } else if entry.extension().is_some_and(|e| e == "rs") && !entry.ends_with("tests.rs") {
            found.push(entry);
        }
    }
}

fn indent(line: &str) -> usize {
    line.len() - line.trim_start().len()
}

/// A file's lines without comments, blank lines and modules of tests. The sources are as rustfmt leaves them, so a
/// block ends at a bracket with its own indentation.
fn code(text: &str) -> Vec<&str> {
    let mut lines = Vec::new();
    let mut skipped: Option<usize> = None;
    let mut test = false;
    for line in text.lines() {
        let trimmed = line.trim_start();
        if let Some(depth) = skipped {
            if indent(line) == depth && trimmed.starts_with('}') {
                skipped = None;
            }
        } else if trimmed.starts_with("#[cfg(test)]") {
            test = true;
        } else if test && trimmed.ends_with('{') {
            (skipped, test) = (Some(indent(line)), false);
        } else if !trimmed.is_empty() && !trimmed.starts_with("//") {
            test = false;
            lines.push(line);
        }
    }
    lines
}

/// From a line on, until brackets are closed and a body or the next item begins: as one line, and how many there were.
fn signature(lines: &[&str]) -> (String, usize) {
    let mut text = String::new();
    let mut depth = 0i32;
    for (taken, line) in lines.iter().enumerate() {
        let trimmed = line.trim();
        depth += trimmed.matches(['(', '[']).count() as i32 - trimmed.matches([')', ']']).count() as i32;
        let glue = text.is_empty() || text.ends_with('(') || trimmed.starts_with([')', ']']);
        text += if glue { "" } else { " " };
        text += trimmed;
        let whole = depth <= 0 && trimmed.ends_with(['{', ';', '}', ',']) && !text.starts_with("pub use");
        if whole || text.starts_with("pub use") && trimmed.ends_with(';') {
            let end = text.trim_end_matches(['{', ';', ',']).trim_end().replace(",)", ")");
            return (end, taken + 1);
        }
    }
    (text, lines.len())
}

/// The lines of the block that the line before opens, at that indentation.
fn body<'a>(lines: &[&'a str], depth: usize) -> Vec<&'a str> {
    let inside = |line: &&&str| indent(line) > depth || !line.trim_start().starts_with('}');
    lines.iter().take_while(inside).copied().collect()
}

/// What a block of fields, variants or methods shows of itself.
fn members(kind: &str, lines: &[&str], out: &mut Vec<String>) {
    let mut at = 0;
    while at < lines.len() {
        let trimmed = lines[at].trim();
        let shown = match kind {
            "struct" => trimmed.starts_with("pub ") || trimmed == "#[non_exhaustive]",
            "trait" => {
                ["fn ", "type ", "const ", "unsafe fn "].iter().any(|start| trimmed.starts_with(start))
            }
            _ => !trimmed.starts_with('}') && (trimmed == "#[non_exhaustive]" || !trimmed.starts_with("#[")),
        };
        if trimmed.starts_with("#[") {
            let (text, taken) = signature_of_attribute(&lines[at..]);
            out.extend(shown.then_some(text));
            at += taken;
        } else if shown && kind == "enum" {
            out.push(trimmed.to_owned());
            at += 1;
        } else if shown {
            let (text, taken) = signature(&lines[at..]);
            out.push(text);
            at += taken;
        } else {
            at += 1;
        }
    }
}

/// An attribute, which may take several lines.
fn signature_of_attribute(lines: &[&str]) -> (String, usize) {
    let mut depth = 0;
    for (taken, line) in lines.iter().enumerate() {
        depth += line.matches('[').count() as i32 - line.matches(']').count() as i32;
        if depth <= 0 {
            let text: Vec<_> = lines[..=taken].iter().map(|line| line.trim()).collect();
            return (text.join(" "), taken + 1);
        }
    }
    (String::new(), lines.len())
}

/// The public items of a file, under the blocks in which they stand.
fn items(lines: &[&str], types: &BTreeSet<String>) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut attributes: Vec<String> = Vec::new();
    let (mut header, mut header_depth) = (String::new(), 0);
    let mut at = 0;
    while at < lines.len() {
        let (line, trimmed) = (lines[at], lines[at].trim());
        if !header.is_empty() && indent(line) <= header_depth {
            header.clear();
        }
        if trimmed.starts_with("#[") {
            let (text, taken) = signature_of_attribute(&lines[at..]);
            if text == "#[non_exhaustive]" || text == "#[doc(hidden)]" || text.starts_with("#[cfg(feature") {
                attributes.push(text);
            } else if let Some(derived) = text.strip_prefix("#[derive(") {
                attributes.push(format!("#[derive({derived}"));
            }
            at += taken;
            continue;
        }
        let begins = trimmed.starts_with("impl") || trimmed.starts_with("unsafe impl");
        if begins && (trimmed.ends_with('{') || trimmed.contains('<')) {
            let (text, taken) = signature(&lines[at..]);
            (header, header_depth) = (text.trim_end_matches(['}', '{']).trim_end().to_owned(), indent(line));
            let of = header.rsplit(" for ").next().unwrap_or_default();
            let of: String = of.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
            if header.contains(" for ") && types.contains(&of) && !header.contains("Sealed") {
                found.push((String::new(), header.clone()));
            }
            at += taken;
        } else if trimmed.starts_with("pub ") {
            let (text, taken) = signature(&lines[at..]);
            let kind =
                ["struct", "enum", "trait"].into_iter().find(|kind| text.contains(&format!("pub {kind} ")));
            let opens = lines[at + taken - 1].trim_end().ends_with('{');
            let before = attributes.iter().map(|attribute| format!("{attribute} ")).collect::<String>();
            found.push((header.clone(), before + text.trim_end_matches(" {}")));
            at += taken;
            if let (Some(kind), true) = (kind, opens) {
                let block = body(&lines[at..], indent(line));
                let mut inner = Vec::new();
                members(kind, &block, &mut inner);
                found.extend(inner.into_iter().map(|member| (header.clone(), format!("    {member}"))));
                at += block.len();
            }
        } else {
            // A row of a table of operations: `name: Codes…;` or `name(parameter): Codes…;`.
            let row = trimmed.strip_suffix(';').and_then(|row| row.split_once(": "));
            let name = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "_(), ".contains(c);
            if let Some((names, value)) = row
                && names.chars().all(name)
                && value.starts_with(|c: char| c.is_ascii_uppercase())
                && !names.starts_with("let ")
            {
                found.push(("rows of a macro".to_owned(), names.to_owned()));
            }
            // A row of the table of elementwise operations: `name(Variant) {`.
            if let Some((name, variant)) = trimmed.strip_suffix(") {").and_then(|row| row.split_once('('))
                && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
                && variant.starts_with(|c: char| c.is_ascii_uppercase())
                && variant.chars().all(char::is_alphanumeric)
            {
                found.push(("rows of a macro".to_owned(), name.to_owned()));
            }
            at += 1;
        }
        attributes.clear();
    }
    found
}

fn api() -> String {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut paths = Vec::new();
    files(&src, &mut paths);
    let texts: Vec<_> = paths.iter().map(|path| std::fs::read_to_string(path).unwrap()).collect();
    let types: BTreeSet<String> = texts
        .iter()
        .flat_map(|text| code(text))
        .filter_map(|line| {
            ["pub struct ", "pub enum "].iter().find_map(|start| line.trim().strip_prefix(start))
        })
        .map(|rest| rest.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect())
        .collect();
    let mut out = String::new();
    for (path, text) in paths.iter().zip(&texts) {
        let found = items(&code(text), &types);
        if found.is_empty() {
            continue;
        }
        writeln!(out, "\n# {}", path.strip_prefix(&src).unwrap().display()).unwrap();
        let mut under = String::new();
        for (header, item) in found {
            if header != under {
                under = header;
                if !under.is_empty() {
                    writeln!(out, "{under}").unwrap();
                }
            }
            writeln!(out, "{}{item}", if under.is_empty() { "" } else { "    " }).unwrap();
        }
    }
    out.trim_start().to_owned()
}

#[test]
fn the_public_interface_is_as_it_was_reviewed() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/public-api.txt");
    let made = api();
    if std::env::var_os("TIDEMILL_WRITE_API").is_some() {
        std::fs::write(&file, made).unwrap();
        return;
    }
    let is = std::fs::read_to_string(&file).unwrap_or_default();
    let missing = |of: &str, from: &str| {
        let known: BTreeSet<&str> = from.lines().collect();
        of.lines().filter(|line| !known.contains(line)).map(|line| format!("\n  {line}")).collect::<String>()
    };
    assert!(
        is == made,
        "the public interface differs from tests/public-api.txt; if that is meant, run ./dev api.\nnew:{}\ngone:{}",
        missing(&made, &is),
        missing(&is, &made)
    );
}
