//! What Rust can do, C can do: every public method of the library is called by the sources of the C library, or stands
//! below with the reason why not.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// What C has in another way.
const COMPUTED: &str = "a program computes it from the figures in the JSON";
const ONE_OP: &str = "a chain of one operation";
const CLOSURES: &str = "it measures closures of Rust by the host's clock; a program of C has its own";
const INTERNALS: &str =
    "what decides in Hybrid, for tests and tools; C has the decision and the calibration as a text";
const REFLECTED: &str = "tm_kernel_json has what C needs of a shader's description";
const OWN_ERRORS: &str = "errors of the caller's own type are Rust's";
const BITS: &str = "a float of 16 bits is two bytes in C";

/// Methods, or whole types, that C does not have.
const WITHOUT: &[(&str, &str)] = &[
    ("Accelerator::measure", CLOSURES),
    ("Measurement", CLOSURES),
    ("Calibration::measure", INTERNALS),
    ("Class", INTERNALS),
    ("Curve", INTERNALS),
    ("Placement", INTERNALS),
    ("Work", INTERNALS),
    ("Access", REFLECTED),
    ("Capability", REFLECTED),
    ("Reflection", REFLECTED),
    ("Hybrid::slow_cpu", "for tests of the library"),
    ("Hybrid::matmul", ONE_OP),
    ("Chain::matmul", "tm_chain_matmul without options"),
    ("Recording::matmul", "tm_matmul without options"),
    ("Hybrid::conv2d", ONE_OP),
    ("Chain::conv2d", "tm_chain_conv2d without options"),
    ("Recording::conv2d", "tm_conv2d without options"),
    ("Plan::set", "tm_plan_set_argument, by the name"),
    ("Accelerator::run_submitted", "tm_end_recording gives the submission"),
    ("Accelerator::try_run", OWN_ERRORS),
    ("Stream::try_run", OWN_ERRORS),
    ("StreamBuilder::try_record", OWN_ERRORS),
    ("Consumer::try_pop", "tm_stream_pop with a timeout of 0"),
    ("Stream::try_pop", "tm_stream_pop with a timeout of 0"),
    ("Stream::is_full", "tm_stream_stats_json has both numbers"),
    ("Stream::in_flight", "tm_stream_stats_json has it"),
    ("Slot::batch", "C pushes the contents of a batch at once, and counts"),
    ("DeviceChoice::parse", "the variable TIDEMILL_DEVICE takes such a text"),
    ("DeviceInfo::is_usable", COMPUTED),
    ("IdleTime::total_ns", COMPUTED),
    ("Peaks", COMPUTED),
    ("Profile::ns_since", COMPUTED),
    ("Row::duration_ns", COMPUTED),
    ("Run::errors", COMPUTED),
    ("StreamReport::ns_per_batch", COMPUTED),
    ("Bf16", BITS),
    ("F16", BITS),
    ("View", "a slice with a shape: C gives data and dims"),
    ("HostMemory::as_bytes", "the memory is the program's own"),
    ("TensorWriter::remaining", "C writes all elements through a pointer"),
    ("TensorWriter::extend_from_slice", "C writes all elements through a pointer"),
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// The Rust files below a folder.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for path in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        if path.is_dir() {
            found.extend(files(&path));
        } else if path.extension().is_some_and(|end| end == "rs") {
            found.push(path);
        }
    }
    found
}

fn is_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

/// What a text re-exports, with the paths of one `pub use` as one text.
fn exports(text: &str) -> Vec<&str> {
    let items = text.match_indices("pub use ").filter(|(at, _)| text[..*at].ends_with(['\n', ' ']));
    items.filter_map(|(at, _)| text[at + "pub use ".len()..].split(';').next()).collect()
}

/// Files of the crate's public modules.
fn public_modules() -> Vec<PathBuf> {
    let lib = std::fs::read_to_string(root().join("src/lib.rs")).unwrap();
    let modules = lib.lines().filter_map(|line| line.strip_prefix("pub mod ")?.strip_suffix(';'));
    let named = modules.flat_map(|name| [format!("src/{name}.rs"), format!("src/{name}/mod.rs")]);
    let named = named.chain(["src/vk/raw.rs".to_owned()]);
    named.map(|file| root().join(file)).filter(|file| file.exists()).collect()
}

/// The types that users of the crate can name: what is re-exported, and what public modules declare.
fn public_types() -> BTreeSet<String> {
    let public = public_modules();
    let mut types = BTreeSet::new();
    for file in files(&root().join("src")) {
        let text = std::fs::read_to_string(&file).unwrap();
        for item in exports(&text) {
            let names = item.split(|c| !is_name(c)).filter(|name| name.starts_with(char::is_uppercase));
            types.extend(names.map(str::to_owned));
        }
        let is_public = public.contains(&file);
        for declared in ["\npub struct ", "\npub enum "].iter().filter(|_| is_public) {
            let names = text.split(declared).skip(1).map(|rest| rest.split(|c| !is_name(c)).next());
            types.extend(names.flatten().map(str::to_owned));
        }
    }
    types
}

/// The type of a line `impl Type<…> {`; none for implementations of traits.
fn implemented(line: &str) -> Option<&str> {
    let mut rest = line.strip_prefix("impl")?;
    if let Some(parameters) = rest.strip_prefix('<') {
        let mut depth = 1;
        let end = parameters.find(|c| {
            depth += i32::from(c == '<') - i32::from(c == '>');
            depth == 0
        })?;
        rest = &parameters[end + 1..];
    }
    if rest.contains(" for ") { None } else { rest.trim().split(|c| !is_name(c)).next() }
}

/// Public methods of public types, by type. (What macros make of the table of elementwise operations is in C by the
/// same table, and what is in `src/ops` is for `header.rs` to check.)
fn methods() -> BTreeMap<String, BTreeSet<String>> {
    let types = public_types();
    let mut methods: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for file in files(&root().join("src")) {
        let text = std::fs::read_to_string(&file).unwrap();
        let mut of = None;
        for line in text.lines() {
            if line.starts_with("impl") {
                of = implemented(line).filter(|name| types.contains(*name));
            }
            let public = ["    pub fn ", "    pub const fn ", "    pub unsafe fn "];
            let name = public.iter().find_map(|before| line.strip_prefix(before));
            if let (Some(of), Some(name)) = (of, name) {
                let name = name.split(|c| !is_name(c)).next().unwrap_or_default();
                methods.entry(of.to_owned()).or_default().insert(name.to_owned());
            }
        }
    }
    methods
}

/// Whether the sources of the C library call a method, or hand it on by its path.
fn is_called(capi: &str, name: &str) -> bool {
    let called = [format!(".{name}("), format!(".{name}::<")];
    let path = format!("::{name}");
    called.iter().any(|call| capi.contains(call))
        || capi.match_indices(&path).any(|(at, _)| {
            let rest = &capi[at + path.len()..];
            // A module of that name is no call.
            let in_module = rest.starts_with("::") && !rest.starts_with("::<");
            !in_module && !rest.starts_with(is_name)
        })
}

/// Functions that `lib.rs` and public modules re-export. (Those of `cpu` are in C as chains on the CPU.)
fn functions() -> BTreeSet<String> {
    let modules = public_modules().into_iter().filter(|file| !file.ends_with("cpu/mod.rs"));
    let modules = std::iter::once(root().join("src/lib.rs")).chain(modules);
    let modules: String = modules.map(|file| std::fs::read_to_string(file).unwrap()).collect();
    let all: Vec<String> =
        files(&root().join("src")).iter().map(|file| std::fs::read_to_string(file).unwrap()).collect();
    let mut functions = BTreeSet::new();
    for item in exports(&modules) {
        let items = item.split_once('{').map_or(item, |(_, items)| items.trim_end_matches('}'));
        for path in items.split(',') {
            let path = path.trim().split(" as ").next().unwrap_or_default();
            let name = path.rsplit("::").next().unwrap_or_default();
            let declared = [format!("\npub fn {name}("), format!("\npub fn {name}<")];
            if !name.is_empty() && all.iter().any(|text| declared.iter().any(|line| text.contains(line))) {
                functions.insert(name.to_owned());
            }
        }
    }
    functions
}

/// The sources of the C library, as one text.
fn sources_of_c() -> String {
    let sources = files(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"));
    sources.iter().map(|file| std::fs::read_to_string(file).unwrap()).collect()
}

#[test]
fn functions_of_rust_are_in_c() {
    let without = [
        ("check", "every call of C checks the process by itself"),
        ("checksum", CLOSURES),
        ("compiled_kernels", "for work on the kernels of the library: `./dev isa`"),
    ];
    let (capi, functions) = (sources_of_c(), functions());
    assert!(functions.contains("html_report"), "{functions:?}");
    for (name, _) in without {
        assert!(functions.contains(name), "{name} is on the list and not in the library");
    }
    let is_listed = |name: &str| without.iter().any(|(listed, _)| *listed == name);
    let missing: Vec<_> =
        functions.iter().filter(|name| !is_listed(name) && !capi.contains(&format!("{name}("))).collect();
    assert!(missing.is_empty(), "C has neither these nor a reason in the list: {missing:?}");
}

#[test]
fn what_rust_can_do_c_can_do() {
    let capi = sources_of_c();
    let methods = methods();
    // One of each kind of file, so that none is overlooked.
    for (of, name) in
        [("Accelerator", "from_raw"), ("HostDevice", "new"), ("Chain", "output"), ("Plan", "bind")]
    {
        assert!(methods.get(of).is_some_and(|names| names.contains(name)), "{of}::{name} was not found");
    }
    assert!(methods.values().map(BTreeSet::len).sum::<usize>() > 250, "{methods:?}");
    let all: BTreeSet<String> = methods
        .iter()
        .flat_map(|(of, names)| names.iter().map(move |name| format!("{of}::{name}")))
        .collect();
    let listed = |method: &str| {
        let of = method.split("::").next();
        WITHOUT.iter().any(|(name, _)| *name == method || Some(*name) == of)
    };
    let called = |method: &str| method.split("::").nth(1).is_some_and(|name| is_called(&capi, name));
    let missing: Vec<_> = all.iter().filter(|method| !listed(method) && !called(method)).collect();
    assert!(missing.is_empty(), "C has neither these nor a reason in the list: {missing:#?}");
    for (name, why) in WITHOUT {
        let there = all.contains(*name) || methods.contains_key(*name);
        assert!(there && !why.is_empty(), "{name} is on the list and not in the library");
        assert!(!name.contains("::") || !called(name), "{name} is on the list, and C has it");
    }
}
