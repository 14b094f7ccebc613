//! Errors of users' GLSL.

use std::fmt;
use std::path::PathBuf;

/// Why GLSL did not become a kernel.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum GlslError {
    /// The file can't be read.
    #[error("{}: {detail}", .path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The system's own words.
        detail: String,
    },
    /// The compiler found mistakes.
    #[error("{}", Lines(.mistakes))]
    Mistakes {
        /// In the order of the compiler.
        mistakes: Vec<GlslMistake>,
    },
    /// A text contains a NUL character.
    #[error("{what} contains a NUL character, where the compiler would stop; remove it")]
    Nul {
        /// The text.
        what: String,
    },
    /// The name of a define is not valid.
    #[error("define {name:?} is not a name; use letters, digits and _, and begin with no digit")]
    Define {
        /// The given value.
        name: String,
    },
    /// A source would take the compiler too much memory, or nests too deep.
    #[error("{what}: {got}, the maximum is {most}")]
    TooLarge {
        /// The file, and what is counted.
        what: String,
        /// How much there is.
        got: usize,
        /// How much there may be.
        most: usize,
    },
    /// Its accesses can't be kept inside its bindings, or it is too large for drivers.
    #[error("{kernel} {why}; only `compile_unguarded` accepts it")]
    Unguardable {
        /// The kernel's name.
        kernel: String,
        /// The reason.
        why: String,
    },
    /// The compiler itself failed.
    #[error("shaderc: {0}")]
    Compiler(String),
}

/// A mistake in GLSL, and where it is.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct GlslMistake {
    /// The file as it was named: by the user, or by an `#include` and the folder it was found in.
    pub file: String,
    /// The line, where the compiler knows it.
    pub line: Option<u32>,
    /// The compiler's message.
    pub text: String,
}

impl fmt::Display for GlslMistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "{}:{line}: {}", self.file, self.text),
            None => write!(f, "{}: {}", self.file, self.text),
        }
    }
}

/// Writes one mistake per line.
struct Lines<'a>(&'a [GlslMistake]);

impl fmt::Display for Lines<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, mistake) in self.0.iter().enumerate() {
            let separator = if i == 0 { "" } else { "\n" };
            write!(f, "{separator}{mistake}")?;
        }
        Ok(())
    }
}
