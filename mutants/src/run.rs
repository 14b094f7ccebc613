//! Runs test binaries, until a test fails.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

use crate::list::Run;

/// What is left to run hangs after so long, and after this many times what it takes with no mutant on.
const PATIENCE: (Duration, u32) = (Duration::from_secs(20), 5);
/// With none on, tests may take so long: the slowest take half a minute where nothing else runs.
const LONGEST: Duration = Duration::from_secs(600);

/// How long tests may take that take so long with no mutant on.
pub(crate) fn limit(known: Option<Duration>) -> Duration {
    known.map_or(LONGEST, |known| PATIENCE.0 + PATIENCE.1 * known)
}

/// How a run ended.
pub(crate) enum End {
    /// This many tests passed.
    Passed(usize),
    /// A test failed, the process did, or it did not end.
    Failed { by: String, output: Vec<String> },
}

/// Runs the tests of those names for so long, with a mutant's switch turned on or none.
pub(crate) fn run(
    executable: &Path,
    tree: &Path,
    run: &Run,
    mutant: Option<usize>,
    limit: Duration,
) -> Result<End, String> {
    let mut command = Command::new(executable);
    for word in &run.names {
        match word.split_once('=') {
            Some((variable, value)) => command.env(variable, value),
            None => command.arg(word),
        };
    }
    command.current_dir(tree).env_remove("TIDEMILL_MUTANT");
    if let Some(number) = mutant {
        command.env("TIDEMILL_MUTANT", number.to_string());
    }
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|error| format!("{}: {error}", executable.display()))?;
    let end = watch(&mut child, limit);
    let _ = child.kill();
    let status = child.wait().map_err(|error| error.to_string())?;
    Ok(match end {
        Watched::Failed(by, output) => End::Failed { by, output },
        Watched::Ended(passed, _) if status.success() => End::Passed(passed),
        Watched::Ended(_, output) => End::Failed { by: format!("the process, {status}"), output },
    })
}

enum Watched {
    Failed(String, Vec<String>),
    Ended(usize, Vec<String>),
}

fn watch(child: &mut Child, limit: Duration) -> Watched {
    let deadline = Instant::now() + limit;
    let (sender, lines) = mpsc::channel();
    let stdout = child.stdout.take();
    std::thread::spawn(move || {
        let lines = stdout.into_iter().flat_map(|out| BufReader::new(out).lines().map_while(Result::ok));
        lines.take_while(|line| sender.send(line.clone()).is_ok()).for_each(drop);
    });
    let (mut output, mut passed) = (Vec::new(), 0);
    loop {
        match lines.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
            Ok(line) => {
                let test = line.strip_prefix("test ").and_then(|rest| rest.split_once(" ... "));
                passed += usize::from(test.is_some_and(|(_, how)| how == "ok"));
                output.push(line.clone());
                if let Some((name, "FAILED")) = test {
                    return Watched::Failed(name.to_owned(), output);
                }
            }
            Err(RecvTimeoutError::Disconnected) => return Watched::Ended(passed, output),
            Err(RecvTimeoutError::Timeout) => {
                return Watched::Failed(format!("the limit of {} s", limit.as_secs()), output);
            }
        }
    }
}

/// Builds the test binaries of the copy. Gives where they are, by name.
pub(crate) fn build(
    tree: &Path,
    target: &Path,
    features: &str,
    binaries: &[&str],
) -> Result<Vec<(String, PathBuf)>, String> {
    let mut command = Command::new("cargo");
    command.args(["test", "--no-run", "-p", "tidemill", "--features", features]);
    command.arg("--message-format=json-render-diagnostics").current_dir(tree).env("CARGO_TARGET_DIR", target);
    for binary in binaries {
        if *binary == "lib" {
            command.arg("--lib")
        } else {
            command.args(["--test", binary])
        };
    }
    let built = command.stderr(Stdio::inherit()).output().map_err(|error| format!("cargo: {error}"))?;
    if !built.status.success() {
        return Err("the copy with switches does not build".to_owned());
    }
    let mut found = Vec::new();
    for line in String::from_utf8_lossy(&built.stdout).lines() {
        let Ok(message) = serde_json::from_str::<serde_json::Value>(line) else { continue };
        let (target, executable) = (&message["target"], message["executable"].as_str());
        if let Some(executable) = executable.filter(|_| message["profile"]["test"] == true) {
            let is_lib = target["kind"][0] == "lib";
            let name = if is_lib { "lib" } else { target["name"].as_str().unwrap_or_default() };
            found.push((name.to_owned(), PathBuf::from(executable)));
        }
    }
    Ok(found)
}
