//! The copy of the workspace that has the switches.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::list::Mutant;
use crate::rewrite::{Site, find, rewrite};

/// What is put into the crate: whether a mutant's switch is on.
const SWITCH: &str = "\
//! Which mistake this process makes on purpose.
use std::sync::OnceLock;

/// Whether it is this one.
pub(crate) fn is(number: u32) -> bool {
    static ON: OnceLock<Option<u32>> = OnceLock::new();
    *ON.get_or_init(|| std::env::var(\"TIDEMILL_MUTANT\").ok().and_then(|text| text.parse().ok())) == Some(number)
}
";

/// The sources with all switches, by their paths.
pub(crate) fn switched(root: &Path, mutants: &[Mutant]) -> Result<BTreeMap<String, String>, String> {
    let mut files: BTreeMap<String, String> = BTreeMap::new();
    for file in mutants.iter().map(|mutant| &mutant.file) {
        if files.contains_key(file) {
            continue;
        }
        let source = fs::read_to_string(root.join(file)).map_err(|error| format!("{file}: {error}"))?;
        let mut sites = Vec::new();
        for (number, mutant) in mutants.iter().enumerate().filter(|(_, mutant)| mutant.file == *file) {
            let span =
                find(&source, &mutant.old).map_err(|why| format!("[{}] {file}: {why}", mutant.name))?;
            sites.push(Site { number, span, new: &mutant.new });
        }
        let text = rewrite(&source, &sites).map_err(|why| format!("{file}: {why}"))?;
        files.insert(file.clone(), text);
    }
    Ok(files)
}

/// Makes the copy what the workspace is now, with switches. Files that are the same are left alone, so that cargo
/// builds only what has changed.
pub(crate) fn make(root: &Path, tree: &Path, mutants: &[Mutant]) -> Result<(), String> {
    let mut switched = switched(root, mutants)?;
    let crate_root =
        fs::read_to_string(root.join("src/lib.rs")).map_err(|error| format!("src/lib.rs: {error}"))?;
    // Switches stand in parentheses that may not be needed, and after some of them code is dead.
    let allowed = "#![allow(warnings, clippy::all, reason = \"a mutant\")]";
    switched.insert("src/lib.rs".to_owned(), format!("{allowed}{crate_root}\nmod mutant;\n"));
    switched.insert("src/mutant.rs".to_owned(), SWITCH.to_owned());
    let listed = Command::new("git")
        .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
        .current_dir(root)
        .output()
        .map_err(|error| format!("git ls-files: {error}"))?;
    let listed = String::from_utf8_lossy(&listed.stdout).into_owned();
    let mut names: Vec<&str> = listed.split('\0').filter(|name| root.join(name).is_file()).collect();
    names.extend(["src/mutant.rs"]);
    for name in &names {
        let text = match switched.get(*name) {
            Some(text) => text.clone().into_bytes(),
            None => fs::read(root.join(name)).map_err(|error| format!("{name}: {error}"))?,
        };
        put(&tree.join(name), &text).map_err(|error| format!("{name} in the copy: {error}"))?;
    }
    let mut there = Vec::new();
    walk(tree, &mut there).map_err(|error| format!("{}: {error}", tree.display()))?;
    for path in there {
        let known = path.strip_prefix(tree).is_ok_and(|name| names.iter().any(|n| Path::new(n) == name));
        if !known {
            fs::remove_file(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        }
    }
    Ok(())
}

fn put(path: &Path, text: &[u8]) -> io::Result<()> {
    if fs::read(path).is_ok_and(|there| there == text) {
        return Ok(());
    }
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    fs::write(path, text)
}

fn walk(folder: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() { walk(&path, files)? } else { files.push(path) }
    }
    Ok(())
}
