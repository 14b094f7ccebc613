//! What build.rs makes of headers, includes and manifests.

#![allow(clippy::expect_used, reason = "a test fails by panicking")]

#[path = "../build/constants.rs"]
mod constants;
#[path = "../src/fnv1a.rs"]
mod fnv1a;
#[path = "../build/items.rs"]
mod items;
#[path = "../build/kernels.rs"]
mod kernels;
#[allow(dead_code, reason = "the trial itself is the build's")]
#[path = "../build/link.rs"]
mod link;
#[path = "../build/manifest.rs"]
mod manifest;

use std::collections::BTreeSet;

use constants::{Kind, constants, groups};
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
    let found = modules(&[("elementwise.comp", text), ("plain.comp", "void main() {}")]);
    assert_eq!(
        names(&found),
        [
            "elementwise.buffer.steps1",
            "elementwise.buffer.steps8",
            "elementwise.texel.steps1",
            "elementwise.texel.steps8",
            "plain"
        ]
    );
    assert_eq!(spell(&found[3].defines), "LOAD=TEXEL STEPS=8");
    assert_eq!(found[3].kernel, "elementwise");
}

#[test]
fn several_header_lines_are_a_union() {
    let text = "//! build: LOAD=BUFFER STEPS=1\n//! build: LOAD=BUFFER,TEXEL STEPS=1\n";
    assert_eq!(
        names(&modules(&[("elementwise.comp", text)])),
        ["elementwise.buffer.steps1", "elementwise.texel.steps1"]
    );
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
    let found = mistakes(&[("elementwise.comp", "\n//! build: LOAD\n")]);
    assert!(found[0].starts_with("glsl/elementwise.comp:2: `LOAD`"), "{found:?}");
}

#[test]
fn one_name_for_two_modules_is_a_mistake() {
    let found = mistakes(&[("elementwise.comp", "//! build: LOAD=A\n//! build: STORE=A\n")]);
    assert!(found[0].contains("`elementwise.a` would be two modules: LOAD=A and STORE=A"), "{found:?}");
    assert!(mistakes(&[("elementwise.comp", "//! build: LOAD=A,a\n")])[0].contains("`elementwise.a`"));
}

#[test]
fn kernels_have_plain_names() {
    assert!(mistakes(&[("elementwise.v2.comp", "")])[0].starts_with("glsl/elementwise.v2.comp:1:"));
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
    let found = mistakes(&[
        ("elementwise.comp", "#include \"lib/a.glsl\"\n"),
        ("lib/a.glsl", "\n#include \"lib/b.glsl\"\n"),
    ]);
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
    let main = ("elementwise.comp", "//! build: LOAD=BUFFER,TEXEL\n#include \"lib/a.glsl\"\n");
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
        [("elementwise.comp", "//! build: LOAD=BUFFER,TEXEL\n\n#include \"lib/a.glsl\"\n"), a, b],
        [main, ("lib/a.glsl", "#include \"lib/b.glsl\"\nfloat y;\n"), b],
        [main, a, ("lib/b.glsl", "float y;\n#include \"lib/a.glsl\"\n")],
    ] {
        let found = hashes(&changed);
        assert!(base[0] != found[0] && base[1] != found[1], "{changed:?}");
    }
}

#[test]
fn constants_are_read_from_their_declarations() {
    let text = "layout(local_size_x_id = 0) in;\n\
        layout(constant_id = 1) const uint ROWS = 8;  // of a tile\n\
        // layout(constant_id = 2) const uint GONE = 1;\n\
        #if INPUTS == 2\n  layout( constant_id=3 ) const bool IS_F16 = false;\n#endif\n\
        layout(constant_id = 1) const uint ROWS = 4;\n";
    let found = constants(text).expect("all are declarations");
    let found: Vec<_> = found.iter().map(|c| (c.id, c.kind, c.name.as_str(), c.comment.as_str())).collect();
    assert_eq!(
        found,
        [
            (0, Kind::LocalSize, "LOCAL_SIZE", ""),
            (1, Kind::Uint, "ROWS", "of a tile"),
            (3, Kind::Bool, "IS_F16", "")
        ]
    );
    for wrong in [
        "layout(constant_id = X) const uint A = 1;",
        "layout(constant_id = 1) const float A = 1;",
        "layout(constant_id = 1) const uint A = 1, B = 2;",
        "layout(constant_id = 1)",
        "layout(local_size_y_id = 1) in;",
        "layout(local_size_x_id = 0, local_size_y_id = 1) in;",
    ] {
        let found = constants(&format!("void f();\n{wrong}\n")).expect_err(wrong);
        assert!(found.line == 2 && found.what.starts_with("expected layout("), "{wrong}: {found:?}");
    }
    let twice = "layout(constant_id = 1) const uint A = 1;\nlayout(constant_id = 2) const uint A = 1;\n";
    assert!(constants(twice).expect_err("two ids").what.contains("`A` was declared as another constant: 1"));
}

#[test]
fn constants_that_are_numbered_are_an_array() {
    let declare = |(id, name): (usize, &&str)| format!("layout(constant_id = {id}) const uint {name} = 0;\n");
    let text: String =
        ["STEPS", "STEP0", "STEP1", "OTHER2", "STEP2", "STEP4"].iter().enumerate().map(declare).collect();
    let found = groups(&constants(&text).expect("all are declarations"));
    let found: Vec<_> = found.iter().map(|g| (g.name.as_str(), g.ids.as_slice(), g.is_array)).collect();
    let alone = |name, ids| (name, ids, false);
    assert_eq!(
        found,
        [alone("STEPS", &[0][..]), ("STEP", &[1, 2, 4], true), alone("OTHER2", &[3]), alone("STEP4", &[5]),]
    );
}

const TILE: (&str, &str) = (
    "lib/tile.glsl",
    "layout(local_size_x_id = 0) in;\nlayout(constant_id = 1) const uint TILE_M = 64;  // rows of \"A\"\n",
);

#[test]
fn items_are_a_kernels_modules_and_the_constants_of_every_file() {
    let map = "//! build: INPUTS=1,2 STEPS=4 OPS=ALL\n#include \"lib/tile.glsl\"\n\
        layout(constant_id = 2) const bool IS_F16 = false;\n";
    let files =
        [("elementwise.comp", map), TILE, ("lib/unused.glsl", "layout(constant_id = 9) const uint X = 0;\n")];
    let text = items::write(&tree(&files), &modules(&files)).expect("the sources should be in order");
    for item in [
        "pub(crate) mod elementwise {",
        "Inputs1Steps4All = 0,",
        "Inputs2Steps4All = 1,",
        "pub(crate) const IS_F16: super::Constant<File, bool> = super::Constant::new(2);",
        "impl super::Includes<super::tile::File> for File {}",
        "impl super::Includes<super::elementwise::File> for File {}",
        "const LOCAL_SIZE: u32 = 0;",
        "pub(crate) mod tile {",
        r#"#[doc = "rows of \"A\""]"#,
        "pub(crate) const TILE_M: super::Constant<File, u32> = super::Constant::new(1);",
        "(1, ConstantName::TileTileM),",
        "inputs: 2,",
        "ops: Some(Ops::All),",
    ] {
        assert!(text.contains(item), "{item} is missing in\n{text}");
    }
    assert!(!text.contains("unused"), "{text}");
}

#[test]
fn kernels_without_a_local_size_and_files_of_one_name_are_mistakes() {
    let found = |files: &[(&str, &str)]| items::write(&tree(files), &modules(files)).expect_err("a mistake");
    let what = "a kernel's local size is layout(local_size_x_id = 0) in; in it or in one file it includes";
    assert_eq!(found(&[("elementwise.comp", "")]), [format!("glsl/elementwise.comp:1: {what}")]);
    let twice = "#include \"lib/tile.glsl\"\nlayout(local_size_x_id = 0) in;\n";
    assert_eq!(found(&[("elementwise.comp", twice), TILE]), [format!("glsl/elementwise.comp:1: {what}")]);
    let same = "#include \"lib/tile.glsl\"\n";
    assert_eq!(found(&[("tile.comp", same), TILE]), ["glsl/tile.comp:1: has the name of glsl/lib/tile.glsl"]);
    let wrong = ("lib/tile.glsl", "\nlayout(constant_id = 1) const int A = 1;\n");
    assert!(
        found(&[("elementwise.comp", same), wrong])[0].starts_with("glsl/lib/tile.glsl:2: expected layout(")
    );
}

#[test]
fn the_manifest_finds_missing_stale_and_surplus_modules() {
    let found = modules(&[("elementwise.comp", "//! build: LOAD=BUFFER,TEXEL\n"), ("sum.comp", "")]);
    let text = manifest::write(&found);
    let files = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<BTreeSet<_>>();
    let all = files(&["elementwise.buffer", "elementwise.texel", "sum"]);
    assert_eq!(manifest::check(&found, &text, &all), [""; 0]);
    assert_eq!(manifest::check(&found, &text.replace('\n', "\r\n"), &all), [""; 0]);

    let missing = manifest::check(&found, &text, &files(&["elementwise.texel", "sum"]));
    assert_eq!(missing, ["spirv/elementwise.buffer.spv is missing"]);
    let edited = modules(&[("elementwise.comp", "//! build: LOAD=BUFFER,TEXEL\n"), ("sum.comp", "float x;")]);
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

/// Of a program that does not link for want of what the system's shaderc was built from.
#[test]
fn a_shaderc_that_does_not_link_is_refused_with_the_way_out() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let said =
        "/usr/bin/ld: libshaderc.so: undefined reference to `glslang::x'\ncollect2: error: ld returned 1";
    let lines = link::refusal(root, said);
    assert!(
        lines[0].ends_with("does not link: /usr/bin/ld: libshaderc.so: undefined reference to `glslang::x'")
    );
    // What it names is there, in the package, too.
    let read = |path: &str| std::fs::read_to_string(root.join(path)).expect("a file of the crate");
    for (path, packed) in
        [("scripts/shaderc-archive.sh", "/scripts/shaderc-archive.sh"), ("docs/shaderc.md", "/docs/*.md")]
    {
        let named = root.join(path).display().to_string();
        assert!(lines.iter().any(|line| line.contains(&named)), "{path}: {lines:?}");
        assert!(read(path).len() > 100 && read("Cargo.toml").contains(&format!("\"{packed}\"")), "{path}");
    }
    // The page has the same packages and the same setting.
    let page = read("docs/shaderc.md");
    for line in lines.iter().filter(|line| line.contains("apt-get") || line.contains("export")) {
        assert!(page.contains(line.trim()), "{line}");
    }
}
