//! The Markdown pages of the repository: every link leads somewhere, every page of docs/ is in the book, and every
//! snippet in Rust is a doctest.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Component, Path, PathBuf};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The files below a folder whose names end so, by their paths from it.
fn files(folder: &Path, end: &str) -> BTreeSet<PathBuf> {
    let mut found = BTreeSet::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(&next).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.to_str().unwrap().ends_with(end) {
                found.insert(path.strip_prefix(folder).unwrap().to_owned());
            }
        }
    }
    found
}

/// The Markdown files in the root folder and in docs/, with their texts.
fn pages() -> BTreeMap<PathBuf, String> {
    let in_root = fs::read_dir(root()).unwrap().map(|entry| PathBuf::from(entry.unwrap().file_name()));
    let in_root = in_root.filter(|name| name.extension().is_some_and(|end| end == "md"));
    let in_docs = files(&root().join("docs"), ".md").into_iter().map(|name| Path::new("docs").join(name));
    in_root
        .chain(in_docs)
        .map(|name| (name.clone(), fs::read_to_string(root().join(&name)).unwrap()))
        .collect()
}

/// Lines with their numbers.
type Lines<'a> = Vec<(usize, &'a str)>;

/// A page's lines: those of its prose, and the first ones of its blocks of code.
fn lines(text: &str) -> (Lines<'_>, Lines<'_>) {
    let (mut prose, mut fences, mut inside) = (Vec::new(), Vec::new(), false);
    for (i, line) in text.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            if !inside {
                fences.push((i + 1, line.trim()));
            }
            inside = !inside;
        } else if !inside {
            prose.push((i + 1, line));
        }
    }
    assert!(!inside, "a block of code has no end:\n{text}");
    (prose, fences)
}

/// A line without what stands between backticks.
fn without_code(line: &str) -> String {
    line.split('`').step_by(2).collect::<Vec<_>>().join("`")
}

/// Where the links of a line lead.
fn links(line: &str) -> Vec<String> {
    let line = without_code(line);
    let targets = line.split("](").skip(1).filter_map(|rest| rest.split_once(')'));
    targets.map(|(target, _)| target.to_owned()).collect()
}

/// The anchor that code hosts and mdBook give to a heading.
fn anchor(heading: &str) -> String {
    let kept = heading.trim().chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c));
    kept.flat_map(char::to_lowercase).map(|c| if c == ' ' { '-' } else { c }).collect()
}

fn anchors(text: &str) -> BTreeSet<String> {
    let mut seen = BTreeMap::<String, usize>::new();
    let headings = lines(text).0.into_iter().filter(|(_, line)| line.starts_with('#'));
    let named = headings.map(|(_, line)| {
        let name = anchor(line.trim_start_matches('#'));
        let times = seen.entry(name.clone()).and_modify(|times| *times += 1).or_insert(0);
        if *times == 0 { name } else { format!("{name}-{times}") }
    });
    named.collect()
}

/// A path without `.` and `..`; `None` if it leads out of where it begins.
fn normal(path: &Path) -> Option<PathBuf> {
    let mut parts = PathBuf::new();
    for part in path.components() {
        match part {
            Component::Normal(name) => parts.push(name),
            Component::CurDir => {}
            Component::ParentDir => {
                if !parts.pop() {
                    return None;
                }
            }
            _ => return None,
        }
    }
    Some(parts)
}

/// What is wrong with a link of a page.
fn mistake(pages: &BTreeMap<PathBuf, String>, page: &Path, target: &str) -> Option<&'static str> {
    if target.starts_with("https://") {
        return None;
    }
    if target.contains("://") {
        return Some("is not by https");
    }
    let (file, name) = target.split_once('#').unwrap_or((target, ""));
    let path =
        if file.is_empty() { Some(page.to_owned()) } else { normal(&page.parent().unwrap().join(file)) };
    let Some(path) = path.filter(|path| root().join(path).exists()) else { return Some("leads to no file") };
    if page.starts_with("docs") && !path.starts_with("docs") {
        return Some("leads out of the book: name the file as code");
    }
    if name.is_empty() {
        return None;
    }
    let known = pages.get(&path).is_some_and(|text| anchors(text).contains(name));
    (!known).then_some("names no heading of that page")
}

#[test]
fn links_lead_to_files_and_headings() {
    let pages = pages();
    let mut mistakes = Vec::new();
    for (page, text) in &pages {
        for (number, line) in lines(text).0 {
            for target in links(line) {
                if let Some(what) = mistake(&pages, page, &target) {
                    mistakes.push(format!("{}:{number}: {target} {what}", page.display()));
                }
            }
        }
    }
    assert!(mistakes.is_empty(), "{}", mistakes.join("\n"));
}

#[test]
fn the_check_of_links_sees() {
    let page = |name: &str, text: &str| (PathBuf::from(name), text.to_owned());
    let pages = BTreeMap::from([
        page("README.md", "# One `two`, three\n```text\n# none\n```\n## One two three\n"),
        page("docs/c.md", "# C\n"),
    ]);
    let of = |page: &str, target: &str| mistake(&pages, Path::new(page), target);
    for (page, target) in [
        ("README.md", "docs/c.md#c"),
        ("README.md", "#one-two-three"),
        ("README.md", "#one-two-three-1"),
        ("README.md", "src/lib.rs"),
        ("docs/c.md", "https://renderdoc.org"),
        ("docs/c.md", "../docs/graph.svg"),
    ] {
        assert_eq!(of(page, target), None, "{target}");
    }
    for (page, target) in [
        ("README.md", "docs/none.md"),
        ("README.md", "#none"),
        ("README.md", "../README.md"),
        ("README.md", "/README.md"),
        ("README.md", "http://renderdoc.org"),
        ("docs/c.md", "../README.md"),
        ("docs/c.md", "c.md#d"),
    ] {
        assert!(of(page, target).is_some(), "{target}");
    }
    assert_eq!(links("`[a](b)` ![c](d) and [e](f#g)"), ["d", "f#g"]);
}

#[test]
fn every_page_of_docs_is_in_the_book_once() {
    let summary = fs::read_to_string(root().join("docs/SUMMARY.md")).unwrap();
    let mut listed: Vec<PathBuf> = summary.lines().flat_map(links).map(PathBuf::from).collect();
    listed.sort();
    let mut pages = files(&root().join("docs"), ".md");
    pages.remove(Path::new("SUMMARY.md"));
    assert_eq!(listed, Vec::from_iter(pages), "docs/SUMMARY.md lists each page of docs/ once");
}

/// `rustdoc` takes a block without a language for Rust. What it does not compile may be wrong.
#[test]
fn every_snippet_says_its_language_and_those_in_rust_are_doctests() {
    let crate_root = fs::read_to_string(root().join("src/lib.rs")).unwrap();
    for (page, text) in pages() {
        let page = page.display();
        let fences = lines(&text).1;
        for (number, fence) in &fences {
            assert!(fence.len() > 3, "{page}:{number}: a block of code names its language, or `text`");
            assert!(
                !fence.contains("ignore"),
                "{page}:{number}: a snippet is compiled (`no_run` if it can't run)"
            );
        }
        if fences.iter().any(|(_, fence)| fence.starts_with("```rust")) {
            let included = format!("include_str!(\"../{page}\")");
            assert!(crate_root.contains(&included), "{page} has Rust: add it to `mod pages` in src/lib.rs");
        }
    }
}

/// The values of an attribute in a page of HTML.
fn attributes<'a>(html: &'a str, name: &str) -> Vec<&'a str> {
    let begin = format!(" {name}=\"");
    html.split(begin.as_str())
        .skip(1)
        .filter_map(|rest| rest.split_once('"'))
        .map(|(value, _)| value)
        .collect()
}

#[test]
#[ignore = "needs the book, which `./dev book` builds"]
fn links_of_the_built_book_lead_to_files_and_anchors() {
    let book = std::env::var_os("CARGO_TARGET_DIR")
        .map_or_else(|| root().join("target"), PathBuf::from)
        .join("book");
    let names = files(&book, ".html");
    assert!(names.contains(Path::new("recording.html")), "no book in {}: run ./dev book", book.display());
    let read = |name: &PathBuf| (name.clone(), fs::read_to_string(book.join(name)).unwrap());
    let pages: BTreeMap<PathBuf, String> = names.iter().map(read).collect();
    let (mut mistakes, mut seen) = (Vec::new(), 0);
    for (page, html) in &pages {
        // The page for addresses that do not exist has a base of its own.
        if page == Path::new("404.html") {
            continue;
        }
        for target in attributes(html, "href").into_iter().chain(attributes(html, "src")) {
            if target.contains("://") {
                continue;
            }
            seen += 1;
            let (file, name) = target.split_once('#').unwrap_or((target, ""));
            let path =
                if file.is_empty() { Some(page.clone()) } else { normal(&page.parent().unwrap().join(file)) };
            let there = path.as_ref().is_some_and(|path| book.join(path).exists());
            let has = |html: &String| attributes(html, "id").contains(&name);
            if !there || (!name.is_empty() && !path.and_then(|path| pages.get(&path)).is_some_and(has)) {
                mistakes.push(format!("{}: {target}", page.display()));
            }
        }
    }
    assert!(mistakes.is_empty(), "dead links:\n{}", mistakes.join("\n"));
    assert!(seen > 100, "{seen} links in a book of {} pages", pages.len());
}
