//! Sources and what they include, read from files.

use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};

use super::limits::{MOST_BYTES, too_large};
use crate::error::GlslError;

/// The text of a regular file of at most [`MOST_BYTES`]. Links are followed: the file is the user's choice, and where
/// an include may lead is checked before.
pub(super) fn read(path: &Path) -> Result<String, GlslError> {
    let failed = |detail: String| GlslError::File { path: path.to_owned(), detail };
    let system = |error: std::io::Error| failed(error.to_string());
    let fits = |meta: fs::Metadata| {
        if !meta.is_file() {
            return Err(failed("it is no regular file".to_owned()));
        }
        let bytes = usize::try_from(meta.len()).unwrap_or(usize::MAX);
        if bytes > MOST_BYTES {
            return Err(too_large(format!("{}: bytes of source", path.display()), bytes, MOST_BYTES));
        }
        Ok(())
    };
    // Looked at before it is opened: a FIFO would wait for its other end.
    fits(fs::metadata(path).map_err(system)?)?;
    let file = File::open(path).map_err(system)?;
    fits(file.metadata().map_err(system)?)?;
    let mut text = String::new();
    // It may grow meanwhile; one byte too many is told by the limit on all that is read.
    file.take(MOST_BYTES as u64 + 1).read_to_string(&mut text).map_err(system)?;
    Ok(text)
}

/// A folder by a name that is not empty.
pub(super) fn or_here(folder: &Path) -> &Path {
    if folder.as_os_str().is_empty() { Path::new(".") } else { folder }
}

/// The first file of that name, or where it was looked for. It must lie in one of the roots, wherever links lead.
pub(super) fn find(wanted: &str, folders: &[&Path], roots: &[PathBuf]) -> Result<PathBuf, String> {
    for folder in folders {
        let path = folder.join(wanted);
        if !path.is_file() {
            continue;
        }
        let real = fs::canonicalize(&path).map_err(|e| format!("{}: {e}", path.display()))?;
        if !roots.iter().any(|root| real.starts_with(root)) {
            return Err(format!(
                "{wanted} leads out of the folders that files may be included from; give its own with include_dir"
            ));
        }
        return Ok(path);
    }
    let shown = |folder: &&Path| or_here(folder).display().to_string();
    let looked: Vec<String> = folders.iter().map(shown).collect();
    let looked = if looked.is_empty() {
        "no folder (give one with include_dir)".to_owned()
    } else {
        looked.join(", ")
    };
    Err(format!("there is no {wanted} in {looked}"))
}
