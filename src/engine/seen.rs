//! Pipelines that programs have used: remembered on disk beside the pipeline cache, so that the next start makes them
//! ahead. Fused op lists are what this is for: no catalog can list them.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use super::catalog::Catalog;
use super::modules::{self, MODULES};
use super::pipelines::{PipelineKey, Specialization};
use crate::vk::pipeline::{fnv1a, write_atomically};

/// The most that are remembered: those used last.
const MOST: usize = 128;
const HEAD: &str = "tidemill pipelines 1";

/// A pipeline of an embedded module: the module's index, and its specialization.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    module: usize,
    specialization: Specialization,
}

impl Entry {
    /// `None` for kernels of users' own, which are not ours to make.
    pub(crate) fn of(key: &PipelineKey) -> Option<Entry> {
        let module = modules::find(key.kernel.name()).filter(|_| key.kernel.is_embedded())?;
        Some(Entry { module, specialization: key.specialization.clone() })
    }
}

/// What was used in this process and in earlier ones.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    file: Option<PathBuf>,
    /// Of earlier processes, the one used last first.
    before: Vec<Entry>,
    /// Of this process, in the order of first use.
    now: Vec<Entry>,
    saved: usize,
}

impl Seen {
    /// Reads the file beside the pipeline cache's; one that is missing, foreign or corrupt is a miss. `key` tells
    /// devices and drivers apart.
    pub(crate) fn open(pipeline_cache: Option<&Path>, key: &str) -> Seen {
        let Some(folder) = pipeline_cache.and_then(|file| file.parent()) else { return Seen::default() };
        let file = folder.join(format!("seen-{:016x}.txt", fnv1a(format!("{key}|{:x}", table()).as_bytes())));
        Seen { before: read(&file), file: Some(file), now: Vec::new(), saved: 0 }
    }

    /// Takes note of a pipeline that is used for the first time in this process.
    pub(crate) fn note(&mut self, entry: Entry) {
        if !self.now.contains(&entry) {
            self.now.push(entry);
        }
    }

    /// What earlier processes used.
    pub(crate) fn remembered(&self, catalog: &Catalog) -> Vec<PipelineKey> {
        let key = |entry: &Entry| {
            let kernel = catalog.kernel(MODULES[entry.module].name).ok()?.clone();
            Some(PipelineKey { kernel, specialization: entry.specialization.clone() })
        };
        self.before.iter().filter_map(key).collect()
    }

    /// The file, and what was used in this process, the last first, if any of it was not when this was last asked.
    fn changes(&mut self) -> Option<(PathBuf, Vec<Entry>)> {
        let file = self.file.clone().filter(|_| self.saved < self.now.len())?;
        self.saved = self.now.len();
        Some((file, self.now.iter().rev().cloned().collect()))
    }

    /// Writes the file if there is something new. A disk that refuses costs the next start some time and nothing else.
    pub(crate) fn save(seen: &parking_lot::Mutex<Seen>) {
        let changes = seen.lock().changes();
        if let Some((file, used)) = changes {
            // Read again: other processes may have written what they used.
            let all = with_older(used, read(&file));
            write_atomically(&file, to_text(&all).as_bytes());
        }
    }
}

/// What a file has; nothing if it is missing, foreign or corrupt.
fn read(file: &Path) -> Vec<Entry> {
    std::fs::read_to_string(file).ok().and_then(|text| from_text(&text)).unwrap_or_default()
}

/// As many as are remembered: those just used, and then those that are known of old.
fn with_older(mut used: Vec<Entry>, older: Vec<Entry>) -> Vec<Entry> {
    for entry in older {
        if !used.contains(&entry) {
            used.push(entry);
        }
    }
    used.truncate(MOST);
    used
}

/// Changes whenever a module does: what its constants mean may have changed, too.
fn table() -> u64 {
    MODULES
        .iter()
        .flat_map(|module| module.words())
        .fold(0xcbf2_9ce4_8422_2325, |hash, &word| (hash ^ u64::from(word)).wrapping_mul(0x0100_0000_01b3))
}

/// The head with a checksum of the rest, then a line for each: the module, and `id=bits` for its constants.
fn to_text(entries: &[Entry]) -> String {
    let mut lines = String::new();
    for entry in entries {
        lines.push_str(MODULES[entry.module].name);
        for (id, bits) in &entry.specialization {
            // Writing to a string can't fail.
            let _ = write!(lines, " {id}={bits:x}");
        }
        lines.push('\n');
    }
    format!("{HEAD} {:016x}\n{lines}", fnv1a(lines.as_bytes()))
}

/// All of it or nothing.
fn from_text(text: &str) -> Option<Vec<Entry>> {
    let (head, lines) = text.split_once('\n')?;
    let sum = head.strip_prefix(HEAD)?.strip_prefix(' ')?;
    if u64::from_str_radix(sum, 16).ok()? != fnv1a(lines.as_bytes()) {
        return None;
    }
    let entries = lines.lines().take(MOST).map(|line| {
        let mut words = line.split(' ');
        let module = modules::find(words.next()?)?;
        let constant = |word: &str| {
            let (id, bits) = word.split_once('=')?;
            Some((id.parse().ok()?, u32::from_str_radix(bits, 16).ok()?))
        };
        Some(Entry { module, specialization: words.map(constant).collect::<Option<_>>()? })
    });
    entries.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use smallvec::smallvec;

    fn entries() -> Vec<Entry> {
        vec![
            Entry { module: 0, specialization: smallvec![(0, 64), (8, 0xffff_ffff)] },
            Entry { module: 1, specialization: smallvec![] },
        ]
    }

    #[test]
    fn a_file_is_taken_only_whole() {
        let text = to_text(&entries());
        assert_eq!(from_text(&text), Some(entries()));
        for cut in 0..text.len() {
            assert_eq!(from_text(&text[..cut]), None, "cut at {cut}");
        }
        assert_eq!(from_text(&text.replace("=40", "=41")), None);
        assert_eq!(from_text(""), None);
    }

    fn entry(bits: u32) -> Entry {
        Entry { module: 0, specialization: smallvec![(0, bits)] }
    }

    #[test]
    fn what_was_used_last_is_remembered_and_the_rest_is_bounded() {
        let mut seen = Seen { file: Some(PathBuf::new()), ..Seen::default() };
        assert!(seen.changes().is_none(), "nothing was used");
        (90..150).for_each(|bits| seen.note(entry(bits)));
        seen.note(entry(90));
        let written = with_older(seen.changes().unwrap().1, (0..100).map(entry).collect());
        assert_eq!(written.len(), MOST);
        assert_eq!((&written[0], &written[59], &written[60]), (&entry(149), &entry(90), &entry(0)));
        assert!(seen.changes().is_none(), "already written");
    }

    #[test]
    fn processes_side_by_side_keep_what_the_others_used() {
        let folder = std::env::temp_dir().join(format!("tidemill-seen-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let open = || parking_lot::Mutex::new(Seen::open(Some(&folder.join("pipelines.bin")), "a device"));
        let (one, other) = (open(), open());
        for (seen, bits) in [(&one, 1), (&other, 2), (&one, 3)] {
            seen.lock().note(entry(bits));
            Seen::save(seen);
        }
        let before = open().into_inner().before;
        std::fs::remove_dir_all(&folder).unwrap();
        assert_eq!(before, [3, 1, 2].map(entry));
    }
}
