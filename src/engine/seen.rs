//! Pipelines that programs have used: remembered on disk beside the pipeline cache, so that the next start makes them
//! ahead. Fused op lists are what this is for: no catalog can list them.

use std::fmt::Write;
use std::path::PathBuf;

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
    pub(crate) fn open(pipeline_cache: Option<&std::path::Path>, key: &str) -> Seen {
        let Some(folder) = pipeline_cache.and_then(|file| file.parent()) else { return Seen::default() };
        let file = folder.join(format!("seen-{:016x}.txt", fnv1a(format!("{key}|{:x}", table()).as_bytes())));
        let before =
            std::fs::read_to_string(&file).ok().and_then(|text| from_text(&text)).unwrap_or_default();
        Seen { file: Some(file), before, now: Vec::new(), saved: 0 }
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

    /// What is to be written, and where, if anything was used that was not when this was last asked.
    fn changes(&mut self) -> Option<(PathBuf, String)> {
        let file = self.file.clone().filter(|_| self.saved < self.now.len())?;
        self.saved = self.now.len();
        let older = self.before.iter().filter(|entry| !self.now.contains(entry));
        let all: Vec<Entry> = self.now.iter().rev().chain(older).take(MOST).cloned().collect();
        Some((file, to_text(&all)))
    }

    /// Writes the file if there is something new. A disk that refuses costs the next start some time and nothing else.
    pub(crate) fn save(seen: &parking_lot::Mutex<Seen>) {
        let changes = seen.lock().changes();
        if let Some((file, text)) = changes {
            write_atomically(&file, text.as_bytes());
        }
    }
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

    #[test]
    fn what_was_used_last_is_remembered_and_the_rest_is_bounded() {
        let entry = |bits: u32| Entry { module: 0, specialization: smallvec![(0, bits)] };
        let before: Vec<Entry> = (0..100).map(entry).collect();
        let mut seen = Seen { file: Some(PathBuf::new()), before, ..Seen::default() };
        assert!(seen.changes().is_none(), "nothing was used");
        (90..150).for_each(|bits| seen.note(entry(bits)));
        seen.note(entry(90));
        let written = from_text(&seen.changes().unwrap().1).unwrap();
        assert_eq!(written.len(), MOST);
        assert_eq!((&written[0], &written[59], &written[60]), (&entry(149), &entry(90), &entry(0)));
        assert!(seen.changes().is_none(), "already written");
    }
}
