//! What build.rs makes of headers, includes and manifests.

#![allow(clippy::expect_used, reason = "a test fails by panicking")]

#[path = "../src/fnv1a.rs"]
mod fnv1a;
#[path = "../build/kernels.rs"]
mod kernels;
#[path = "../build/manifest.rs"]
mod manifest;

use std::collections::BTreeSet;

use fnv1a::Fnv1a;
use kernels::{Module, Tree, combinations, includes, spell};

fn tree(files: &[(&str, &str)]) -> Tree {
    let mut tree = Tree::default();
    for (path, text) in files {
        tree.insert(path, text);
    }
    tree
}

fn modules(files: &[(&str, &str)]) -> Vec<Module> {
    tree(files).modules().expect("the sources should be in order")
}

fn mistakes(files: &[(&str, &str)]) -> Vec<String> {
    tree(files).modules().expect_err("a mistake should be found")
}

fn names(modules: &[Module]) -> Vec<&str> {
    modules.iter().map(|module| module.name.as_str()).collect()
}

#[test]
fn a_header_line_is_a_cross_product() {
    let text = "#version 460\n//! build: LOAD=BUFFER,TEXEL STEPS=1,8\nvoid main() {}\n";
    let found = modules(&[("map.comp", text), ("plain.comp", "void main() {}")]);
    assert_eq!(names(&found), ["map.buffer.1", "map.buffer.8", "map.texel.1", "map.texel.8", "plain"]);
    assert_eq!(spell(&found[3].defines), "LOAD=TEXEL STEPS=8");
    assert_eq!(found[3].kernel, "map");
}

#[test]
fn several_header_lines_are_a_union() {
    let text = "//! build: LOAD=BUFFER STEPS=1\n//! build: LOAD=BUFFER,TEXEL STEPS=1\n";
    assert_eq!(names(&modules(&[("map.comp", text)])), ["map.buffer.1", "map.texel.1"]);
}

#[test]
fn files_in_folders_are_includes_and_no_kernels() {
    assert!(modules(&[("lib/load.glsl", ""), ("lib/odd.comp", "")]).is_empty());
}

#[test]
fn mistakes_in_headers_name_file_line_and_the_part() {
    for (header, what) in [
        ("//! build: LOAD", "`LOAD`: expected KEY=VALUE"),
        ("//! build: LOAD=", "letters, digits"),
        ("//! build: LOAD=A,,B", "letters, digits"),
        ("//! build: LO-AD=A", "letters, digits"),
        ("//! build: A=1 A=2", "`A` is given twice"),
        ("//! build:", "expected KEY=VALUE"),
    ] {
        let found = combinations(&format!("#version 460\n{header}\n")).expect_err(header);
        assert_eq!(found.line, 2, "{header}");
        assert!(found.what.contains(what), "{header}: {}", found.what);
    }
    let found = mistakes(&[("map.comp", "\n//! build: LOAD\n")]);
    assert!(found[0].starts_with("glsl/map.comp:2: `LOAD`"), "{found:?}");
}

#[test]
fn one_name_for_two_modules_is_a_mistake() {
    let found = mistakes(&[("map.comp", "//! build: LOAD=A\n//! build: STORE=A\n")]);
    assert!(found[0].contains("`map.a` would be two modules: LOAD=A and STORE=A"), "{found:?}");
    assert!(mistakes(&[("map.comp", "//! build: LOAD=A,a\n")])[0].contains("`map.a`"));
}

#[test]
fn kernels_have_plain_names() {
    assert!(mistakes(&[("map.v2.comp", "")])[0].starts_with("glsl/map.v2.comp:1:"));
}

#[test]
fn includes_are_found_where_the_preprocessor_finds_them() {
    let text = r#"#include "lib/a.glsl"
  #  include   "lib/b.glsl" // why
// #include "lib/c.glsl"
#define include
"#;
    let found = includes(text).collect::<Vec<_>>();
    assert_eq!(found, [(1, Ok("lib/a.glsl")), (2, Ok("lib/b.glsl"))]);
    assert!(includes("#include <lib/a.glsl>").all(|(line, include)| line == 1 && include.is_err()));
}

#[test]
fn a_missing_include_is_named_where_it_is_asked_for() {
    let found =
        mistakes(&[("map.comp", "#include \"lib/a.glsl\"\n"), ("lib/a.glsl", "\n#include \"lib/b.glsl\"\n")]);
    assert_eq!(found, ["glsl/lib/a.glsl:2: includes \"lib/b.glsl\", but there is no glsl/lib/b.glsl"]);
}

#[test]
fn fnv1a_agrees_with_its_published_vectors() {
    for (text, expected) in
        [("", 0xcbf2_9ce4_8422_2325_u64), ("a", 0xaf63_dc4c_8601_ec8c), ("foobar", 0x8594_4171_f739_67e8)]
    {
        let mut hash = Fnv1a::new();
        hash.add(text.as_bytes());
        assert_eq!(hash.0, expected, "{text}");
    }
}

#[test]
fn the_hash_sees_every_source_and_define_and_nothing_else() {
    let main = ("map.comp", "//! build: LOAD=BUFFER,TEXEL\n#include \"lib/a.glsl\"\n");
    let (a, b) =
        (("lib/a.glsl", "#include \"lib/b.glsl\"\n"), ("lib/b.glsl", "float x;\n#include \"lib/a.glsl\"\n"));
    let hashes =
        |files: &[(&str, &str)]| modules(files).iter().map(|module| module.source_hash).collect::<Vec<_>>();
    let base = hashes(&[main, a, b]);
    assert_ne!(base[0], base[1], "the defines differ");
    assert_eq!(base, hashes(&[main, a, b, ("lib/unused.glsl", "anything")]));
    let crlf = [main, a, b].map(|(path, text)| (path, text.replace('\n', "\r\n")));
    let crlf = crlf.each_ref().map(|(path, text)| (*path, text.as_str()));
    assert_eq!(base, hashes(&crlf));
    for changed in [
        [("map.comp", "//! build: LOAD=BUFFER,TEXEL\n\n#include \"lib/a.glsl\"\n"), a, b],
        [main, ("lib/a.glsl", "#include \"lib/b.glsl\"\nfloat y;\n"), b],
        [main, a, ("lib/b.glsl", "float y;\n#include \"lib/a.glsl\"\n")],
    ] {
        let found = hashes(&changed);
        assert!(base[0] != found[0] && base[1] != found[1], "{changed:?}");
    }
}

#[test]
fn the_manifest_finds_missing_stale_and_surplus_modules() {
    let found = modules(&[("map.comp", "//! build: LOAD=BUFFER,TEXEL\n"), ("sum.comp", "")]);
    let text = manifest::write(&found);
    let files = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<BTreeSet<_>>();
    let all = files(&["map.buffer", "map.texel", "sum"]);
    assert_eq!(manifest::check(&found, &text, &all), [""; 0]);
    assert_eq!(manifest::check(&found, &text.replace('\n', "\r\n"), &all), [""; 0]);

    let missing = manifest::check(&found, &text, &files(&["map.texel", "sum"]));
    assert_eq!(missing, ["spirv/map.buffer.spv is missing"]);
    let edited = modules(&[("map.comp", "//! build: LOAD=BUFFER,TEXEL\n"), ("sum.comp", "float x;")]);
    let stale = manifest::check(&edited, &text, &all);
    assert_eq!(stale, ["spirv/sum.spv is stale: glsl/sum.comp or a file it includes has changed"]);
    let surplus = manifest::check(&found[..2], &text, &all);
    assert_eq!(surplus, ["spirv/sum.spv is surplus: no kernel in glsl/ makes it"]);
    let unlisted = manifest::check(&found, "", &all);
    assert_eq!(unlisted.len(), 3);
    assert!(unlisted[0].contains("not in spirv/MANIFEST"));
}

#[test]
fn damaged_modules_are_told_from_whole_ones() {
    let whole = [[0x03, 0x02, 0x23, 0x07].as_slice(), &[0; 16]].concat();
    assert_eq!(manifest::damage(&whole), None);
    assert!(manifest::damage(&whole[..19]).is_some());
    assert!(manifest::damage(b"version https://git-lfs.github.com/spec/v1\n....").is_some());
}
