//! Pipelines that an application has used: remembered on disk beside the pipeline cache, so that its next start makes
//! them ahead. Fused op lists are what this is for: no catalog can list them. Each application has a file of its own,
//! so that what one does costs no other anything.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use crate::disk::{self, fnv1a, verify_checksum, with_checksum};
use crate::fnv1a::Fnv1a;
use crate::ir::pipeline_key::{PipelineKey, Specialization};
use crate::kernels::bounds;
use crate::kernels::catalog::Catalog;
use crate::kernels::modules::Module;
use crate::kernels::modules::constants::Specialized;

/// The most that are remembered: those used last.
const MOST: usize = 128;
/// What was not used in this many runs of the application in a row is forgotten.
const MOST_RUNS: u32 = 8;
/// The most files there are, for applications, devices and versions: those written last.
const MOST_FILES: usize = 64;
/// What the files are for, and the version of their format.
const FORMAT: &str = "tidemill pipelines 3";

/// A pipeline of an embedded module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    module: Module,
    specialization: Specialization,
}

impl Entry {
    /// `None` for kernels of users' own, which are not ours to make, and for what would not be taken from a file.
    pub(crate) fn of(key: &PipelineKey) -> Option<Entry> {
        let module = Module::find(key.kernel.name()).filter(|_| key.kernel.is_embedded())?;
        let known = bounds::may_be_ours(module, &key.specialization);
        known.then(|| Entry { module, specialization: key.specialization.clone() })
    }
}

/// What a file has: a pipeline, and in how many runs since then it was not used.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Known {
    entry: Entry,
    unused_runs: u32,
}

/// What was used in this process and in earlier ones of the application.
#[derive(Debug, Default)]
pub(crate) struct History {
    file: Option<PathBuf>,
    /// Of earlier processes, the one used last first.
    before: Vec<Known>,
    /// Of this process, in the order of first use.
    now: Vec<Entry>,
    saved: usize,
    /// There was a file: the application has been started before.
    known: bool,
    /// There was none, and this start has the whole catalog made ahead: later ones need not, whatever this one uses.
    first_start: bool,
    /// This process has written the file.
    written: bool,
}

impl History {
    /// Reads the application's file beside the pipeline cache's; one that is missing, foreign or corrupt is a miss.
    /// `key` tells devices and drivers apart.
    pub(crate) fn open(pipeline_cache: Option<&Path>, key: &str, application: &str) -> History {
        let Some(folder) = pipeline_cache.and_then(|file| file.parent()) else { return History::default() };
        let hash = fnv1a(format!("{key}|{:x}|{application}", table()).as_bytes());
        let file = folder.join(format!("seen-{}-{hash:016x}.txt", readable(application)));
        let before = read(&file);
        History {
            known: before.is_some(),
            before: before.unwrap_or_default(),
            file: Some(file),
            ..History::default()
        }
    }

    /// Whether the application has been started before.
    pub(crate) fn is_known(&self) -> bool {
        self.known
    }

    /// Takes note that the whole catalog is made ahead, so that the next start does not begin with that again.
    pub(crate) fn note_first_start(&mut self) {
        self.first_start = !self.known;
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
            let Entry { module, specialization } = entry.clone();
            catalog.pipeline(Specialized { module, specialization }).ok()
        };
        self.before.iter().map(|known| &known.entry).filter_map(key).collect()
    }

    /// What was used in this process, if any of it was not when this was last asked, or if the next start is to know of
    /// this one.
    fn changes(&mut self) -> Option<Changes> {
        let is_new = self.saved < self.now.len() || self.first_start;
        let file = self.file.clone().filter(|_| is_new)?;
        let first = !self.written;
        (self.saved, self.first_start, self.written) = (self.now.len(), false, true);
        Some(Changes { file, used: self.now.iter().rev().cloned().collect(), first })
    }

    /// Writes the file if there is something new. A disk that refuses costs the next start some time and nothing else.
    pub(crate) fn save(history: &parking_lot::Mutex<History>) {
        let changes = history.lock().changes();
        if let Some(Changes { file, used, first }) = changes {
            // Read again: other processes may have written what they used.
            let all = with_older(used, read(&file).unwrap_or_default(), first);
            disk::write(&file, to_text(&all).as_bytes());
            if first {
                sweep(&file);
            }
        }
    }
}

/// What is to be written.
#[derive(Debug)]
struct Changes {
    file: PathBuf,
    /// The last used first.
    used: Vec<Entry>,
    /// Whether this process has written nothing yet.
    first: bool,
}

/// The name of the running program.
pub(crate) fn executable() -> String {
    let path = std::env::current_exe().ok();
    path.as_deref()
        .and_then(Path::file_stem)
        .map_or_else(String::new, |name| name.to_string_lossy().into_owned())
}

/// The part of a name that a file name can have, so that a reader of the folder recognises it.
fn readable(application: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || c == '-' || c == '_' { c } else { '_' };
    application.chars().take(40).map(plain).collect()
}

/// Removes the files that were written longest ago, as far as there are too many.
fn sweep(file: &Path) {
    let Some(entries) = file.parent().and_then(|folder| std::fs::read_dir(folder).ok()) else { return };
    let history = entries.flatten().filter(|entry| {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        name.starts_with("seen-") && name.ends_with(".txt")
    });
    let mut dated: Vec<_> = history
        .filter_map(|entry| Some((entry.metadata().ok()?.modified().ok()?, entry.path())))
        .filter(|(_, path)| path != file)
        .collect();
    dated.sort_unstable_by(|a, b| b.cmp(a));
    for (_, old) in dated.into_iter().skip(MOST_FILES - 1) {
        let _ = std::fs::remove_file(old);
    }
}

/// What a file has; `None` if it is missing, foreign or corrupt.
fn read(file: &Path) -> Option<Vec<Known>> {
    disk::read_text(file).and_then(|text| from_text(&text))
}

/// As many as are remembered: those just used, and then those that are known of old. In a `new_run` these have aged by
/// one.
fn with_older(used: Vec<Entry>, older: Vec<Known>, new_run: bool) -> Vec<Known> {
    let mut all: Vec<_> = used.into_iter().map(|entry| Known { entry, unused_runs: 0 }).collect();
    for mut known in older {
        known.unused_runs += u32::from(new_run);
        if known.unused_runs < MOST_RUNS && !all.iter().any(|other| other.entry == known.entry) {
            all.push(known);
        }
    }
    all.truncate(MOST);
    all
}

/// Changes whenever a module does: what its constants mean may have changed, too.
fn table() -> u64 {
    let mut hash = Fnv1a::new();
    Module::all().for_each(|module| hash.add(module.words()));
    hash.0
}

/// A line for each, with a checksum: the runs without it, the module, and `id=bits` for its constants.
fn to_text(all: &[Known]) -> String {
    let mut lines = String::new();
    for Known { entry, unused_runs } in all {
        // Writing to a string can't fail.
        let _ = write!(lines, "{unused_runs} {}", entry.module.name());
        for (id, bits) in &entry.specialization {
            let _ = write!(lines, " {id}={bits:x}");
        }
        lines.push('\n');
    }
    with_checksum(FORMAT, &lines)
}

/// All of it or nothing.
fn from_text(text: &str) -> Option<Vec<Known>> {
    let entries = verify_checksum(text, FORMAT)?.lines().take(MOST).map(|line| {
        let mut words = line.split(' ');
        let unused_runs = words.next()?.parse::<u32>().ok().filter(|runs| *runs < MOST_RUNS)?;
        let module = Module::find(words.next()?)?;
        let constant = |word: &str| {
            let (id, bits) = word.split_once('=')?;
            Some((id.parse().ok()?, u32::from_str_radix(bits, 16).ok()?))
        };
        let specialization: Specialization = words.map(constant).collect::<Option<_>>()?;
        // A checksum tells damage, not malice.
        let ours = bounds::may_be_ours(module, &specialization);
        ours.then_some(Known { entry: Entry { module, specialization }, unused_runs })
    });
    entries.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::modules::{elementwise, generate};
    use smallvec::smallvec;

    fn module() -> Module {
        elementwise::Module::BufferInputs1Steps1Outputs1All.into()
    }

    fn entries() -> Vec<Known> {
        let entry = Entry { module: module(), specialization: smallvec![(0, 64), (8, 0xffff_ff01)] };
        let other = Entry { module: generate::Module::Only.into(), specialization: smallvec![] };
        vec![Known { entry, unused_runs: 0 }, Known { entry: other, unused_runs: 7 }]
    }

    #[test]
    fn a_file_is_taken_only_whole() {
        let text = to_text(&entries());
        assert_eq!(from_text(&text), Some(entries()));
        for cut in 0..text.len() {
            assert_eq!(from_text(&text[..cut]), None, "cut at {cut}");
        }
        assert_eq!(from_text(&text.replace("=40", "=41")), None);
        // With a checksum that is right.
        let hostile = |entry| to_text(&[Known { entry, unused_runs: 0 }]);
        assert_eq!(
            from_text(&hostile(Entry { module: module(), specialization: smallvec![(0, u32::MAX)] })),
            None
        );
        assert_eq!(from_text(&hostile(Entry { module: module(), specialization: smallvec![(77, 1)] })), None);
        assert_eq!(from_text(""), None);
    }

    fn entry(bits: u32) -> Entry {
        Entry { module: module(), specialization: smallvec![(0, bits)] }
    }

    #[test]
    fn what_was_used_last_is_remembered_and_the_rest_is_bounded() {
        let mut history = History { file: Some(PathBuf::new()), ..History::default() };
        assert!(history.changes().is_none(), "nothing was used");
        (90..150).for_each(|bits| history.note(entry(bits)));
        history.note(entry(90));
        let known = |unused_runs: u32| move |bits: u32| Known { entry: entry(bits), unused_runs };
        let changes = history.changes().unwrap();
        assert!(changes.first);
        let written = with_older(changes.used, (0..100).map(known(0)).collect(), changes.first);
        assert_eq!(written.len(), MOST);
        assert_eq!((&written[0], &written[59], &written[60]), (&known(0)(149), &known(0)(90), &known(1)(0)));
        assert!(history.changes().is_none(), "already written");
        history.note(entry(200));
        assert!(!history.changes().unwrap().first, "one run ages the others once");
        let mut history = History { file: Some(PathBuf::new()), ..History::default() };
        history.note_first_start();
        assert!(history.changes().is_some_and(|changes| changes.first && changes.used.is_empty()));
        history.note(entry(1));
        assert!(!history.changes().unwrap().first, "likewise");
        let mut history = History { file: Some(PathBuf::new()), known: true, ..History::default() };
        history.note_first_start();
        assert!(history.changes().is_none(), "it is known already");
        assert_eq!(from_text(&to_text(&[])), Some(Vec::new()), "known, and nothing used");
    }

    #[test]
    fn what_no_run_uses_any_more_is_forgotten() {
        let mut all = vec![Known { entry: entry(1), unused_runs: 0 }];
        for run in 1..MOST_RUNS {
            all = with_older(vec![entry(2)], all, true);
            assert_eq!(all[1], Known { entry: entry(1), unused_runs: run });
            all = with_older(vec![entry(2)], all, false);
        }
        all = with_older(vec![entry(2)], all, true);
        assert_eq!(all, [Known { entry: entry(2), unused_runs: 0 }]);
    }

    #[test]
    fn applications_have_files_of_their_own_and_there_are_so_many() {
        let folder = std::env::temp_dir().join(format!("tidemill-applications-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let open = |application: &str| {
            parking_lot::Mutex::new(History::open(
                Some(&folder.join("pipelines.bin")),
                "a device",
                application,
            ))
        };
        for i in 0..MOST_FILES as u32 + 10 {
            let history = open(&format!("an application/{i}"));
            assert_eq!(history.lock().before, [], "what another used");
            history.lock().note(entry(i));
            History::save(&history);
        }
        let files = std::fs::read_dir(&folder).unwrap().count();
        let last = open(&format!("an application/{}", MOST_FILES + 9)).into_inner().before;
        std::fs::remove_dir_all(&folder).unwrap();
        assert_eq!((files, last.len()), (MOST_FILES, 1));
    }

    #[test]
    fn processes_side_by_side_keep_what_the_others_used() {
        let folder = std::env::temp_dir().join(format!("tidemill-seen-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let open = || {
            parking_lot::Mutex::new(History::open(
                Some(&folder.join("pipelines.bin")),
                "a device",
                "a program",
            ))
        };
        let (one, other) = (open(), open());
        for (history, bits) in [(&one, 1), (&other, 2), (&one, 3)] {
            history.lock().note(entry(bits));
            History::save(history);
        }
        let before: Vec<_> = open().into_inner().before.into_iter().map(|known| known.entry).collect();
        std::fs::remove_dir_all(&folder).unwrap();
        assert_eq!(before, [3, 1, 2].map(entry));
    }
}
