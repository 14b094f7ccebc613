//! `./dev mutants`: one build of the crate with a switch for each mistake in `list.txt`, and a run of the tests that
//! should fail for it. A mistake that no test sees survives, and is named.

mod list;
mod rewrite;
mod run;
mod tree;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use list::{Mutant, Run};
use run::End;

const LIST: &str = include_str!("../list.txt");

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let features = arguments.next().unwrap_or_default();
    match all(&features, &arguments.collect::<Vec<_>>()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(why) => {
            eprintln!("mutants: {why}");
            ExitCode::FAILURE
        }
    }
}

/// The workspace.
fn root() -> &'static Path {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here)
}

/// Builds, sees that the tests pass as the code is, and runs them against each mutant whose name has one of these
/// words.
fn all(features: &str, words: &[String]) -> Result<bool, String> {
    let mutants = list::parse(LIST).map_err(|why| format!("mutants/list.txt: {why}"))?;
    let wanted = |mutant: &Mutant| words.is_empty() || words.iter().any(|word| mutant.name.contains(word));
    let chosen: Vec<(usize, &Mutant)> = mutants.iter().enumerate().filter(|(_, m)| wanted(m)).collect();
    if chosen.is_empty() {
        return Err(format!("none of the {} mutants has such a name", mutants.len()));
    }
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or(root().join("target"), PathBuf::from);
    let (copy, target) = (target.join("mutants/tree"), target.join("mutants/target"));
    // All switches, whichever are wanted, so that the next run builds no more than other test binaries.
    tree::make(root(), &copy, &mutants)?;
    let binaries: BTreeSet<&str> =
        chosen.iter().flat_map(|(_, mutant)| &mutant.runs).map(|run| run.binary.as_str()).collect();
    let begun = Instant::now();
    let built = run::build(&copy, &target, features, &binaries.into_iter().collect::<Vec<_>>())?;
    println!("built in {:.0} s", begun.elapsed().as_secs_f64());
    let begun = Instant::now();
    let runs = |run: &Run, mutant, known| {
        let executable = built.iter().find(|(name, _)| *name == run.binary);
        let (_, executable) = executable.ok_or_else(|| format!("there is no test binary {}", run.binary))?;
        run::run(executable, &copy, run, mutant, run::limit(known))
    };

    // What each takes with no mutant on.
    let mut known: Vec<(&Run, Duration)> = Vec::new();
    for run in chosen.iter().flat_map(|(_, mutant)| &mutant.runs) {
        if known.iter().any(|(known, _)| *known == run) {
            continue;
        }
        let start = Instant::now();
        let end = runs(run, None, None)?;
        known.push((run, start.elapsed()));
        match end {
            End::Passed(0) => return Err(format!("{run}: there is no such test")),
            End::Passed(_) => {}
            End::Failed { by, output } => {
                return Err(format!("{run} fails with no mutant on, by {by}:\n{}", output.join("\n")));
            }
        }
    }
    println!("with no mutant on, all tests pass: {:.0} s", begun.elapsed().as_secs_f64());

    let longest = chosen.iter().map(|(_, mutant)| mutant.name.len()).max().unwrap_or(0);
    let mut survivors = Vec::new();
    for (number, mutant) in &chosen {
        let start = Instant::now();
        let mut killed = None;
        for run in &mutant.runs {
            let takes = known.iter().find(|(known, _)| *known == run).map(|(_, takes)| *takes);
            if let End::Failed { by, .. } = runs(run, Some(*number), takes)? {
                killed = Some(format!("killed by {} {by}", run.binary));
                break;
            }
        }
        survivors.extend(killed.is_none().then_some(&mutant.name));
        let how = killed.unwrap_or_else(|| "SURVIVES".to_owned());
        println!("{:longest$}  {how}, {:.1} s", mutant.name, start.elapsed().as_secs_f64());
    }
    let (all, seconds) = (chosen.len(), begun.elapsed().as_secs_f64());
    println!("{all} mutants, {} survive, {seconds:.0} s", survivors.len());
    for name in &survivors {
        println!("survives: {name}");
    }
    Ok(survivors.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A change of a line that a mutant changes also changes the list.
    #[test]
    fn every_mutant_has_its_place_in_the_sources() {
        let mutants = list::parse(LIST).unwrap();
        if let Err(why) = tree::switched(root(), &mutants) {
            panic!("mutants/list.txt: {why}");
        }
        for run in mutants.iter().flat_map(|mutant| &mutant.runs) {
            let tests = root().join("tests");
            let files = [format!("{}.rs", run.binary), format!("{}/main.rs", run.binary)];
            assert!(
                run.binary == "lib" || files.iter().any(|file| tests.join(file).is_file()),
                "{run}: there is no such test binary"
            );
            // A name that selects no test would make every mistake survive.
            for name in run.names.iter().filter(|name| run.binary == "lib" && name.contains("::")) {
                let module = root().join("src").join(name.trim_end_matches("::").replace("::", "/"));
                let exists = module.is_dir() || module.with_extension("rs").is_file();
                assert!(exists, "{run}: there is no module {name}");
            }
        }
    }
}
