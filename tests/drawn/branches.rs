//! Every branch of lowering and fusion is taken, both ways where it is a condition.

use std::collections::BTreeSet;
use std::path::Path;

/// A branch, and which way, where it is a condition.
type Branch = (String, Option<bool>);

fn describe((name, way): &Branch) -> String {
    match way {
        None => name.clone(),
        Some(true) => format!("{name}: yes"),
        Some(false) => format!("{name}: no"),
    }
}

/// Every `branch!` of the sources.
fn all() -> Vec<Branch> {
    let mut texts = Vec::new();
    read(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), &mut texts);
    let mut found = Vec::new();
    for text in texts {
        for (at, call) in text.match_indices("branch!(") {
            let rest = text[at + call.len()..].trim_start();
            // The macro's own definition has no name there.
            let Some((name, rest)) = rest.strip_prefix('"').and_then(|rest| rest.split_once('"')) else {
                continue;
            };
            let condition = rest.trim_start().starts_with(',');
            let ways: &[Option<bool>] = if condition { &[Some(true), Some(false)] } else { &[None] };
            found.extend(ways.iter().map(|way| (name.to_owned(), *way)));
        }
    }
    found
}

fn read(path: &Path, texts: &mut Vec<String>) {
    if path.is_dir() {
        for entry in std::fs::read_dir(path).unwrap() {
            read(&entry.unwrap().path(), texts);
        }
    } else if path.extension().is_some_and(|extension| extension == "rs") {
        texts.push(std::fs::read_to_string(path).unwrap());
    }
}

/// Fails with the branches that this thread has not taken.
pub fn check_all_taken() {
    let taken: BTreeSet<String> =
        tidemill::branches_taken().iter().map(|(name, way)| describe(&((*name).to_owned(), *way))).collect();
    let all: Vec<String> = all().iter().map(describe).collect();
    let untaken: Vec<&String> = all.iter().filter(|branch| !taken.contains(*branch)).collect();
    println!("{} of {} branches are taken", all.len() - untaken.len(), all.len());
    assert!(
        untaken.is_empty(),
        "no problem takes\n{}",
        untaken.iter().map(|b| format!("  {b}\n")).collect::<String>()
    );
}

#[test]
fn every_branch_has_a_name_of_its_own() {
    let mut names: Vec<String> = all().iter().map(describe).collect();
    assert!(names.len() > 200, "{} branches", names.len());
    names.sort_unstable();
    let twice: Vec<_> = names.windows(2).filter(|pair| pair[0] == pair[1]).map(|pair| &pair[0]).collect();
    assert!(twice.is_empty(), "{twice:?}");
}
