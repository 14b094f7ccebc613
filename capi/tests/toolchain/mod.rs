//! Compiling and running programs of C and C++ against the library as it is installed.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

/// The folder of the crate.
pub fn crate_dir() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// A folder for what a test makes.
pub fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

/// Where the library is installed, by the recipe that users have. Done once.
pub fn prefix() -> &'static Path {
    static PREFIX: OnceLock<PathBuf> = OnceLock::new();
    PREFIX.get_or_init(|| {
        let prefix = folder("prefix");
        succeed(Command::new(crate_dir().join("install.sh")).arg("--dev").arg(&prefix));
        prefix
    })
}

/// A block of code in docs/c.md, in this language.
pub fn from_docs(language: &str) -> String {
    let text = std::fs::read_to_string(crate_dir().join("../docs/c.md")).unwrap();
    let (_, block) = text.split_once(&format!("\n```{language}\n")).expect("docs/c.md has such a block");
    block.split_once("\n```\n").expect("it has an end").0.to_owned() + "\n"
}

/// Runs a command that must succeed, and gives what it said.
pub fn succeed(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|e| panic!("{command:?}: {e}"));
    assert!(output.status.success(), "{command:?}: {}\n{}", output.status, said(&output));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Both of a program's outputs.
pub fn said(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

/// A compiler that takes no warning: that of C11, or of C++17 for a `.cpp`.
pub fn compiler(source: &Path) -> Command {
    let cpp = source.extension() == Some(OsStr::new("cpp"));
    let mut command = Command::new(if cpp { "c++" } else { "cc" });
    command.arg(if cpp { "-std=c++17" } else { "-std=c11" });
    command.args(["-Wall", "-Wextra", "-Werror", "-pedantic", "-g"]);
    command.arg(source);
    command
}
