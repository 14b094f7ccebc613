//! Turns `glsl/` into the embedded SPIR-V modules and the Rust items that name them and their specialization constants,
//! `$OUT_DIR/modules.rs`.
//!
//! With the feature `compile-kernels` the modules are compiled here. Without it the ones checked in under `spirv/` are
//! embedded, after a check against the sources, so that dependents need no C++ toolchain. With both the feature and
//! `TIDEMILL_WRITE_SPIRV=1` the checked-in ones are written anew; `./dev shaders` does that. On docs.rs they are
//! embedded in any case.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::{env, fs};

/// docs.rs shows all features and has no shaderc. Known when this program is compiled, so that it does not link to it
/// there.
#[cfg(feature = "compile-kernels")]
const ON_DOCS_RS: bool = option_env!("DOCS_RS").is_some();

#[cfg(feature = "compile-kernels")]
#[path = "build/compile.rs"]
mod compile;
#[path = "build/constants.rs"]
mod constants;
#[path = "src/fnv1a.rs"]
mod fnv1a;
#[path = "build/items.rs"]
mod items;
#[path = "build/kernels.rs"]
mod kernels;
#[path = "build/link.rs"]
mod link;
#[path = "build/manifest.rs"]
mod manifest;

use kernels::{Module, Tree};

const WRITE: &str = "TIDEMILL_WRITE_SPIRV";
const REFRESH: &str = "run ./dev shaders";

fn main() {
    if let Err(mistakes) = run() {
        // `cargo::error` and not a panic: cargo then shows these lines alone, and fails the build.
        for line in mistakes.iter().flat_map(|mistake| mistake.lines()) {
            println!("cargo::error={line}");
        }
    }
}

fn run() -> Result<(), Vec<String>> {
    let root = PathBuf::from(variable("CARGO_MANIFEST_DIR")?);
    let out = PathBuf::from(variable("OUT_DIR")?);
    let write = env::var_os(WRITE).is_some_and(|value| value == "1");
    println!("cargo::rerun-if-env-changed={WRITE}");
    println!("cargo::rerun-if-changed=glsl");
    link::check(&root, &out)?;
    if write || !cfg!(feature = "compile-kernels") {
        println!("cargo::rerun-if-changed=spirv");
    }

    let mut tree = Tree::default();
    read_tree(&root.join("glsl"), "", &mut tree)?;
    let modules = tree.modules()?;
    let items = items::write(&tree, &modules)?;
    let spirv = root.join("spirv");
    let bytes = match compiled(&tree, &modules, &out, write)? {
        Some(bytes) if write => {
            write_checked_in(&spirv, &modules, &bytes)?;
            // What a build without the feature is going to find.
            read_checked_in(&spirv, &modules)?
        }
        Some(bytes) => bytes,
        None if write => return Err(vec![format!("{WRITE}=1 needs the feature `compile-kernels`")]),
        None => read_checked_in(&spirv, &modules)?,
    };
    // Gone while the modules are not yet those that it names.
    let (manifest, made) = (out.join("MANIFEST"), format!("{}\n{}", compiler(), manifest::write(&modules)));
    if fs::read_to_string(&manifest).is_ok_and(|last| last != made) {
        fs::remove_file(&manifest).map_err(|error| failed(&manifest, &error))?;
    }
    for (module, bytes) in modules.iter().zip(&bytes) {
        write_if_changed(&out.join(format!("{}.spv", module.name)), bytes)?;
    }
    write_if_changed(&manifest, made.as_bytes())?;
    write_if_changed(&out.join("modules.rs"), items.as_bytes())
}

/// The compiler is linked into this program, so another one is another program: this is when it was made.
fn compiler() -> String {
    let file = env::current_exe().and_then(fs::metadata).and_then(|file| file.modified());
    file.map_or_else(|_| String::new(), |at| format!("{at:?}"))
}

/// What shaderc makes of the modules. Those whose sources have not changed since this build script last ran are taken
/// from there, unless `all` are asked for.
#[cfg(feature = "compile-kernels")]
fn compiled(
    tree: &Tree,
    modules: &[Module],
    out: &Path,
    all: bool,
) -> Result<Option<Vec<Vec<u8>>>, Vec<String>> {
    if ON_DOCS_RS {
        return Ok(None);
    }
    let last = if all { String::new() } else { fs::read_to_string(out.join("MANIFEST")).unwrap_or_default() };
    let known = last.strip_prefix(&compiler()).unwrap_or_default();
    let recorded = manifest::recorded(known);
    let reused = |module: &Module| {
        let unchanged = recorded.get(module.name.as_str()) == Some(&&*module.hash());
        if unchanged { fs::read(out.join(format!("{}.spv", module.name))).ok() } else { None }
    };
    compile::compile(tree, modules, reused).map(Some)
}

#[cfg(not(feature = "compile-kernels"))]
fn compiled(_: &Tree, _: &[Module], _: &Path, _: bool) -> Result<Option<Vec<Vec<u8>>>, Vec<String>> {
    Ok(None)
}

fn read_checked_in(spirv: &Path, modules: &[Module]) -> Result<Vec<Vec<u8>>, Vec<String>> {
    let manifest = match fs::read_to_string(spirv.join("MANIFEST")) {
        // A crate without kernels needs no manifest; with kernels, each of them is then called missing.
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
        text => text.map_err(|error| failed(&spirv.join("MANIFEST"), &error))?,
    };
    let mut mistakes = manifest::check(modules, &manifest, &checked_in(spirv)?);
    let mut all = Vec::new();
    if mistakes.is_empty() {
        for Module { name, .. } in modules {
            let path = spirv.join(format!("{name}.spv"));
            let bytes = fs::read(&path).map_err(|error| failed(&path, &error))?;
            mistakes.extend(manifest::damage(&bytes).map(|what| format!("spirv/{name}.spv {what}")));
            all.push(bytes);
        }
    }
    if mistakes.is_empty() {
        return Ok(all);
    }
    Err(mistakes.into_iter().map(|mistake| format!("{mistake}; {REFRESH}")).collect())
}

/// The names of the modules that have a file under `spirv/`.
fn checked_in(spirv: &Path) -> Result<BTreeSet<String>, Vec<String>> {
    let names = list(spirv)?.into_iter();
    Ok(names.filter_map(|(name, _)| name.strip_suffix(".spv").map(str::to_owned)).collect())
}

fn write_checked_in(spirv: &Path, modules: &[Module], bytes: &[Vec<u8>]) -> Result<(), Vec<String>> {
    fs::create_dir_all(spirv).map_err(|error| failed(spirv, &error))?;
    let mut surplus = checked_in(spirv)?;
    for (module, bytes) in modules.iter().zip(bytes) {
        surplus.remove(&module.name);
        write_if_changed(&spirv.join(format!("{}.spv", module.name)), bytes)?;
    }
    for name in surplus {
        let path = spirv.join(format!("{name}.spv"));
        fs::remove_file(&path).map_err(|error| failed(&path, &error))?;
    }
    // Last: where the build is interrupted before, the old manifest calls the new modules stale.
    write_if_changed(&spirv.join("MANIFEST"), manifest::write(modules).as_bytes())
}

/// Reads everything below `folder` that can be a kernel or an include.
fn read_tree(folder: &Path, prefix: &str, tree: &mut Tree) -> Result<(), Vec<String>> {
    for (name, path) in list(folder)? {
        let relative = format!("{prefix}{name}");
        if path.is_dir() {
            read_tree(&path, &format!("{relative}/"), tree)?;
        } else if [".comp", ".glsl"].iter().any(|end| name.ends_with(end)) {
            tree.insert(&relative, &fs::read_to_string(&path).map_err(|error| failed(&path, &error))?);
        }
    }
    Ok(())
}

/// Names and paths in a folder; nothing where there is no such folder.
fn list(folder: &Path) -> Result<Vec<(String, PathBuf)>, Vec<String>> {
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.map_err(|error| failed(folder, &error))?,
    };
    let mut all = Vec::new();
    for entry in entries {
        let entry = entry.map_err(|error| failed(folder, &error))?;
        all.push((entry.file_name().to_string_lossy().into_owned(), entry.path()));
    }
    Ok(all)
}

/// Leaves the time stamp of an unchanged file alone: cargo goes by it.
fn write_if_changed(path: &Path, bytes: &[u8]) -> Result<(), Vec<String>> {
    if fs::read(path).is_ok_and(|known| known == bytes) {
        return Ok(());
    }
    fs::write(path, bytes).map_err(|error| failed(path, &error))
}

fn failed(path: &Path, error: &std::io::Error) -> Vec<String> {
    vec![format!("{}: {error}", path.display())]
}

fn variable(name: &str) -> Result<String, Vec<String>> {
    env::var(name).map_err(|error| vec![format!("{name}: {error}")])
}
