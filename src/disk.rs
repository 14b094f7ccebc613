//! Files that are kept between runs: one place that reads and writes them. The folder may be anybody's, and a process
//! may be killed at any moment, so nothing is believed: only regular files up to a stated size are read, a file is
//! replaced as a whole, and what is written on the way is new, private and swept when its writer has gone.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use crate::fnv1a::Fnv1a;

/// The largest text that is read: histories, tuning, peaks and calibrations have some kilobytes.
pub(crate) const MOST_TEXT_BYTES: u64 = 1 << 20;
/// The largest pipeline cache that is read or written. Drivers' caches have some megabytes.
pub(crate) const MOST_CACHE_BYTES: u64 = 256 << 20;

/// The ending of a file until it is whole; also of files whose writer was killed.
const TEMPORARY: &str = "tmp";
/// A writer that has not finished within this time is dead.
const STALE: Duration = Duration::from_secs(3600);
/// This many entries of a folder are looked at to sweep it.
const MOST_ENTRIES: usize = 10_000;
/// This many names that are taken already are tried.
const ATTEMPTS: usize = 16;

/// Makes the folder, private if it is new, and says whether files can be made in it. What killed writers left is swept.
pub(crate) fn open_folder(folder: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)?;
    sweep(folder);
    let (probe, file) = create_beside(&folder.join("probe"))?;
    drop(file);
    fs::remove_file(probe)
}

/// The contents of a regular file of at most this many bytes; `None` for anything else.
pub(crate) fn read(path: &Path, most_bytes: u64) -> Option<Vec<u8>> {
    let file = open(path).ok()?;
    // Of what was opened: by its name, something else may be found by now.
    let meta = file.metadata().ok()?;
    if !meta.is_file() || meta.len() > most_bytes {
        return None;
    }
    let mut bytes = Vec::new();
    // It may grow meanwhile.
    file.take(most_bytes + 1).read_to_end(&mut bytes).ok()?;
    (bytes.len() as u64 <= most_bytes).then_some(bytes)
}

/// `O_NONBLOCK` and `O_NOFOLLOW`, where their numbers are known (`fcntl.h` of Linux by architecture, and of Apple's and
/// the BSDs' systems): a FIFO is opened without waiting for its other end, and a link is not followed.
#[cfg(unix)]
const OPEN_FLAGS: Option<i32> = if cfg!(any(target_os = "linux", target_os = "android")) {
    if cfg!(any(target_arch = "x86", target_arch = "x86_64", target_arch = "riscv64", target_arch = "s390x"))
    {
        Some(0o4_000 | 0o400_000)
    } else if cfg!(any(target_arch = "arm", target_arch = "aarch64", target_arch = "powerpc64")) {
        Some(0o4_000 | 0o100_000)
    } else {
        None
    }
} else if cfg!(any(
    target_vendor = "apple",
    target_os = "freebsd",
    target_os = "netbsd",
    target_os = "openbsd",
    target_os = "dragonfly"
)) {
    Some(0x4 | 0x100)
} else {
    None
};

/// Opens a file to read, and never blocks.
fn open(path: &Path) -> io::Result<File> {
    #[cfg(unix)]
    if let Some(flags) = OPEN_FLAGS {
        let mut options = OpenOptions::new();
        std::os::unix::fs::OpenOptionsExt::custom_flags(&mut options, flags);
        return options.read(true).open(path);
    }
    // Elsewhere it is looked at before it is opened. A swap in between is not noticed.
    match fs::symlink_metadata(path)?.is_file() {
        true => File::open(path),
        false => Err(io::ErrorKind::InvalidInput.into()),
    }
}

/// A text of at most [`MOST_TEXT_BYTES`].
pub(crate) fn read_text(path: &Path) -> Option<String> {
    String::from_utf8(read(path, MOST_TEXT_BYTES)?).ok()
}

/// Writes beside the file and renames over it: a reader sees the old or the new one, whole, and so does a reader after
/// a process that was killed here. A disk that refuses costs the next start some time and nothing else, so it is no
/// error.
pub(crate) fn write(path: &Path, bytes: &[u8]) {
    let Ok((beside, mut file)) = create_beside(path) else { return };
    let written = file.write_all(bytes);
    drop(file);
    if written.and_then(|()| fs::rename(&beside, path)).is_err() {
        let _ = fs::remove_file(&beside);
    }
}

/// A new file beside another one, private: never one that is there already, be it a link that somebody has planted.
fn create_beside(path: &Path) -> io::Result<(PathBuf, File)> {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut last = io::Error::from(io::ErrorKind::AlreadyExists);
    for _ in 0..ATTEMPTS {
        let nth = NEXT.fetch_add(1, Ordering::Relaxed);
        let beside = path.with_extension(format!("{}-{nth}.{TEMPORARY}", std::process::id()));
        match options.open(&beside) {
            Ok(file) => return Ok((beside, file)),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => last = error,
            Err(error) => return Err(error),
        }
    }
    Err(last)
}

/// Removes what writers left that were killed.
fn sweep(folder: &Path) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    let now = SystemTime::now();
    for path in entries.take(MOST_ENTRIES).filter_map(|entry| Some(entry.ok()?.path())) {
        let age = || now.duration_since(fs::symlink_metadata(&path).ok()?.modified().ok()?).ok();
        if is_temporary(&path) && age().is_some_and(|age| age > STALE) {
            let _ = fs::remove_file(&path);
        }
    }
}

/// Whether a name is one that [`create_beside`] gives: `name.PROCESS-NUMBER.tmp`.
fn is_temporary(path: &Path) -> bool {
    let number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let stem = path.extension().filter(|e| *e == TEMPORARY).and_then(|_| path.file_stem());
    let writer = stem.and_then(|stem| Path::new(stem).extension()).and_then(|writer| writer.to_str());
    writer
        .and_then(|writer| writer.split_once('-'))
        .is_some_and(|(process, nth)| number(process) && number(nth))
}

/// The text between a line that says what it is for and a checksum of both: the one format of every text that is kept.
pub(crate) fn with_checksum(key: &str, text: &str) -> String {
    let text = format!("for {key}\n{text}");
    let sum = fnv1a(text.as_bytes());
    text + &format!("sum {sum:016x}\n")
}

/// The text of [`with_checksum`], if it is whole and for the same key. The checksum shows damage, not malice.
pub(crate) fn verify_checksum<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    let (body, sum) = text.strip_suffix('\n')?.rsplit_once("sum ")?;
    if sum != format!("{:016x}", fnv1a(body.as_bytes())) {
        return None;
    }
    body.strip_prefix("for ")?.strip_prefix(key)?.strip_prefix('\n')
}

/// The hash of bytes: names and checks files.
pub(crate) fn fnv1a(bytes: &[u8]) -> u64 {
    let mut hash = Fnv1a::new();
    hash.add(bytes);
    hash.0
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A folder of the test's own, gone when it ends.
    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Folder {
            let path = std::env::temp_dir().join(format!("tidemill-disk-{name}-{}", std::process::id()));
            let _ = fs::remove_dir_all(&path);
            open_folder(&path).unwrap();
            Folder(path)
        }

        fn file(&self, name: &str) -> PathBuf {
            self.0.join(name)
        }

        fn names(&self) -> Vec<String> {
            let entries = fs::read_dir(&self.0).unwrap();
            let mut names: Vec<_> =
                entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
            names.sort();
            names
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn a_file_is_replaced_as_a_whole_and_leaves_nothing_beside() {
        let folder = Folder::new("replaced");
        let file = folder.file("a.txt");
        assert_eq!(read_text(&file), None);
        for text in ["one", "", "a longer text"] {
            write(&file, text.as_bytes());
            assert_eq!(read_text(&file).as_deref(), Some(text));
        }
        assert_eq!(folder.names(), ["a.txt"]);
    }

    #[test]
    fn only_regular_files_up_to_a_size_are_read() {
        let folder = Folder::new("regular");
        let file = folder.file("a.bin");
        write(&file, &[7; 100]);
        assert_eq!((read(&file, 100).map(|b| b.len()), read(&file, 99)), (Some(100), None));
        assert_eq!((read(&folder.0, 100), read(&folder.file("none"), 100)), (None, None));
        File::create(folder.file("huge")).unwrap().set_len(1 << 40).unwrap();
        assert_eq!(read(&folder.file("huge"), MOST_CACHE_BYTES), None);
    }

    #[cfg(unix)]
    #[test]
    fn fifos_devices_and_links_are_not_read() {
        let folder = Folder::new("fifos");
        let fifo = folder.file("fifo");
        assert!(std::process::Command::new("mkfifo").arg(&fifo).status().unwrap().success());
        assert_eq!(read(&fifo, 100), None, "and nothing waits for its other end");
        assert_eq!(read(Path::new("/dev/zero"), 100), None);
        write(&folder.file("there"), b"text");
        std::os::unix::fs::symlink(folder.file("there"), folder.file("link")).unwrap();
        assert_eq!(read(&folder.file("link"), 100), None);
        // A link, too, is replaced, and not followed.
        write(&folder.file("link"), b"new");
        assert_eq!(read_text(&folder.file("there")).as_deref(), Some("text"));
        assert_eq!(read_text(&folder.file("link")).as_deref(), Some("new"));
    }

    #[test]
    fn a_text_with_a_checksum_is_taken_only_whole_and_for_its_own_key() {
        for text in ["", "a line\n", "sum 0\nfor a\n"] {
            let text_in_file = with_checksum("a key", text);
            assert_eq!(verify_checksum(&text_in_file, "a key"), Some(text));
            assert_eq!(verify_checksum(&text_in_file, "a kez"), None);
            assert_eq!(verify_checksum(&text_in_file, "a"), None);
            for at in 0..text_in_file.len() {
                assert_eq!(verify_checksum(&text_in_file[..at], "a key"), None, "cut at {at}");
                let mut bytes = text_in_file.clone().into_bytes();
                bytes[at] ^= 1;
                assert_eq!(
                    verify_checksum(&String::from_utf8_lossy(&bytes), "a key"),
                    None,
                    "flipped at {at}"
                );
            }
        }
    }

    #[cfg(unix)]
    #[test]
    fn what_is_swapped_for_a_fifo_or_a_link_is_not_waited_for_nor_followed() {
        use std::sync::mpsc;
        assert!(OPEN_FLAGS.is_some(), "the numbers of this system");
        let folder = Folder::new("swapped");
        let [file, fifo, there, new] = ["file", "fifo", "there", "new"].map(|name| folder.file(name));
        assert!(std::process::Command::new("mkfifo").arg(&fifo).status().unwrap().success());
        write(&there, b"elsewhere");
        write(&file, b"text");
        let (done, reads) = mpsc::channel();
        let name = file.clone();
        std::thread::spawn(move || {
            for _ in 0..5_000 {
                let got = read(&name, 100);
                assert!(matches!(got.as_deref(), None | Some(b"text")), "{got:?}");
            }
            done.send(()).unwrap();
        });
        // The name is a file, a FIFO and a link in turn: between any two calls of the reader's, at some time.
        let begun = std::time::Instant::now();
        loop {
            fs::hard_link(&fifo, &new).unwrap();
            fs::rename(&new, &file).unwrap();
            write(&file, b"text");
            std::os::unix::fs::symlink(&there, &new).unwrap();
            fs::rename(&new, &file).unwrap();
            write(&file, b"text");
            match reads.try_recv() {
                Ok(()) => break,
                Err(mpsc::TryRecvError::Disconnected) => panic!("the reader has failed"),
                Err(mpsc::TryRecvError::Empty) => {
                    assert!(begun.elapsed() < Duration::from_secs(120), "the reader waits for a FIFO")
                }
            }
        }
    }

    #[cfg(unix)]
    #[test]
    fn planted_links_are_not_written_through() {
        let folder = Folder::new("planted");
        let precious = folder.file("precious");
        write(&precious, b"precious");
        let file = folder.file("a.txt");
        // Under any name that the next writers may take.
        for nth in 0..64 {
            for name in ["probe", "a"] {
                let beside = folder.file(&format!("{name}.{}-{nth}.tmp", std::process::id()));
                std::os::unix::fs::symlink(&precious, beside).unwrap();
            }
        }
        for _ in 0..100 {
            let _ = open_folder(&folder.0);
            write(&file, b"text");
        }
        assert_eq!(read_text(&precious).as_deref(), Some("precious"));
        assert_eq!(read_text(&file).as_deref(), Some("text"), "names that are taken are passed over");
    }

    #[cfg(unix)]
    #[test]
    fn files_and_new_folders_are_private() {
        use std::os::unix::fs::PermissionsExt;
        let folder = Folder::new("private");
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        write(&folder.file("a.txt"), b"text");
        assert_eq!((mode(&folder.0), mode(&folder.file("a.txt"))), (0o700, 0o600));
        // One that is there already is its owner's affair.
        let open = folder.file("open");
        fs::create_dir(&open).unwrap();
        fs::set_permissions(&open, fs::Permissions::from_mode(0o755)).unwrap();
        open_folder(&open).unwrap();
        assert_eq!(mode(&open), 0o755);
    }

    #[test]
    fn what_killed_writers_left_is_swept_once_it_is_stale() {
        let folder = Folder::new("swept");
        let old = SystemTime::now() - 2 * STALE;
        for name in ["a.12-3.tmp", "pipelines-0.4-5.tmp"] {
            write(&folder.file("x"), b"");
            fs::rename(folder.file("x"), folder.file(name)).unwrap();
            File::options().write(true).open(folder.file(name)).unwrap().set_modified(old).unwrap();
        }
        for name in ["mine.tmp", "a.txt", "a.b-1.tmp", "-.tmp"] {
            write(&folder.file("x"), b"");
            fs::rename(folder.file("x"), folder.file(name)).unwrap();
            File::options().write(true).open(folder.file(name)).unwrap().set_modified(old).unwrap();
        }
        let (young, file) = create_beside(&folder.file("young")).unwrap();
        drop(file);
        open_folder(&folder.0).unwrap();
        let mut left =
            vec!["-.tmp", "a.b-1.tmp", "a.txt", "mine.tmp", young.file_name().unwrap().to_str().unwrap()];
        left.sort_unstable();
        assert_eq!(folder.names(), left);
    }
}
