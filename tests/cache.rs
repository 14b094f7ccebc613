//! The cache folder as an enemy, or a process that was killed, may leave it. Each start is a child process of this test
//! binary.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]
#![allow(unsafe_code, reason = "calls of C's that end the process in the middle of a write")]

#[path = "../src/fnv1a.rs"]
mod fnv1a;

use std::ffi::{CStr, OsStr, c_char, c_int, c_void};
use std::fs;
use std::ops::ControlFlow::Continue;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant, SystemTime};

use fnv1a::Fnv1a;
use tidemill::hybrid::{Hybrid, Policy};
use tidemill::tune::TuneOptions;
use tidemill::{Accelerator, Config, Prewarm};

/// Names the child's cache folder.
const FOLDER: &str = "TIDEMILL_TEST_FOLDER";
/// What the child does.
const DOES: &str = "TIDEMILL_TEST_DOES";
/// Where the child says how many pipelines were made before it did anything.
const MADE: &str = "TIDEMILL_TEST_MADE";
/// Where the child is killed: how a file's name begins, and after how many of its bytes, or `rename`.
const DIES: &str = "TIDEMILL_TEST_DIES";
/// Nothing here takes so long unless it hangs.
const PATIENCE: Duration = Duration::from_secs(120);

/// The calls by which `std` writes and renames files, with a `kill -9` in them. This binary's own definitions come
/// before C's.
mod calls {
    use super::*;

    const KILL: c_int = 9;
    const HERE: c_int = -100;

    #[repr(C)]
    struct Part {
        bytes: *const c_void,
        count: usize,
    }

    unsafe extern "C" {
        safe fn getpid() -> c_int;
        safe fn kill(process: c_int, signal: c_int) -> c_int;
        fn writev(file: c_int, parts: *const Part, count: c_int) -> isize;
        fn renameat(from_folder: c_int, from: *const c_char, to_folder: c_int, to: *const c_char) -> c_int;
    }

    /// The file, and the bytes after which this process is killed; without these, before the file gets its name.
    fn death() -> Option<&'static (String, Option<usize>)> {
        static DEATH: OnceLock<Option<(String, Option<usize>)>> = OnceLock::new();
        let read = || {
            let text = std::env::var(DIES).ok()?;
            let (file, at) = text.split_once(' ')?;
            Some((file.to_owned(), at.parse().ok()))
        };
        DEATH.get_or_init(read).as_ref()
    }

    fn is_of(path: &Path, file: &str) -> bool {
        path.file_name().is_some_and(|name| name.as_bytes().starts_with(file.as_bytes()))
    }

    #[unsafe(no_mangle)]
    extern "C" fn write(file: c_int, bytes: *const c_void, count: usize) -> isize {
        let at = death().and_then(|(name, at)| {
            let path = fs::read_link(format!("/proc/self/fd/{file}")).ok()?;
            at.filter(|_| is_of(&path, name))
        });
        let part = Part { bytes, count: at.map_or(count, |at| at.min(count)) };
        // SAFETY: the bytes are the caller's, who has as many.
        let written = unsafe { writev(file, &part, 1) };
        if at.is_some() {
            kill(getpid(), KILL);
        }
        written
    }

    #[unsafe(no_mangle)]
    extern "C" fn rename(from: *const c_char, to: *const c_char) -> c_int {
        // SAFETY: the caller has a path that ends with a zero.
        let path = unsafe { CStr::from_ptr(to) };
        if death().is_some_and(|(name, at)| {
            at.is_none() && is_of(Path::new(OsStr::from_bytes(path.to_bytes())), name)
        }) {
            kill(getpid(), KILL);
        }
        // SAFETY: both paths are the caller's.
        unsafe { renameat(HERE, from, HERE, to) }
    }
}

/// A folder of the test's own, gone with it. The cache folder in it is the platform's for the children.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Folder {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name = format!("tidemill-cache-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let path = std::env::temp_dir().join(name);
        fs::create_dir_all(path.join("tidemill")).unwrap();
        Folder(path)
    }

    fn cache(&self) -> PathBuf {
        self.0.join("tidemill")
    }

    /// The files in it, in order.
    fn files(&self) -> Vec<PathBuf> {
        let mut files: Vec<_> =
            fs::read_dir(self.cache()).unwrap().map(|entry| entry.unwrap().path()).collect();
        files.sort();
        files
    }

    /// The whole file whose name begins so.
    fn file(&self, begin: &str) -> PathBuf {
        let named = |path: &PathBuf| {
            !is_beside(path) && path.file_name().unwrap().as_bytes().starts_with(begin.as_bytes())
        };
        let found: Vec<_> = self.files().into_iter().filter(named).collect();
        assert_eq!(found.len(), 1, "{begin}: {found:?}");
        found[0].clone()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Whether it is not whole yet, and never will be if its writer was killed.
fn is_beside(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "tmp")
}

/// What the children do: compute something, and leave files.
#[test]
#[ignore = "the other tests run it, as a process of its own"]
fn in_a_child_process() {
    let (Some(folder), Ok(does)) = (std::env::var_os(FOLDER), std::env::var(DOES)) else { return };
    if does == "calibrate without a device" {
        assert!(Hybrid::new(Policy::Auto).unwrap().accelerator().is_err());
        return;
    }
    let prewarm = if does == "remember" { Prewarm::Blocking } else { Prewarm::Off };
    let gpu = Accelerator::new(&Config::new().prewarm(prewarm).cache_dir(&folder)).unwrap();
    if let Some(file) = std::env::var_os(MADE) {
        fs::write(file, gpu.stats().pipelines.made.to_string()).unwrap();
    }
    // No time: what is known stays, and is written again.
    let tune = |time| gpu.tune(&TuneOptions::new().family("softmax").budget(time), |_| Continue(())).unwrap();
    match does.as_str() {
        "run" | "remember" => compute(&gpu),
        "tune" => drop(tune(PATIENCE)),
        "tune again" => drop(tune(Duration::ZERO)),
        "measure peaks" => drop(gpu.peaks().unwrap()),
        "calibrate" => drop(Hybrid::calibrate(&gpu).unwrap()),
        "find everything" => {
            assert!(gpu.pipeline_cache().unwrap().1, "the pipeline cache is loaded");
            let wanted = |config: Config| {
                let gpu = Accelerator::new(&config.prewarm(Prewarm::Background)).unwrap();
                while gpu.prewarm_status().catalog == 0 {
                    std::thread::yield_now();
                }
                gpu.prewarm_status().catalog
            };
            let catalog = wanted(Config::new().no_cache());
            assert!(wanted(Config::new().cache_dir(&folder)) > catalog, "the history is parsed");
            // The caller sees whether they are measured: they are written then.
            gpu.peaks().unwrap();
            Hybrid::with_accelerator(gpu, Policy::Auto).unwrap();
        }
        _ => panic!("{does}"),
    }
}

/// Pipelines of several kernels, some of which no catalog has.
fn compute(gpu: &Accelerator) {
    let a = gpu.upload(&[1.0f32; 64], [64]).unwrap();
    let done = gpu.run(|r| {
        let x = r.sub(&a, &a)?;
        r.max(x, &a)
    });
    assert_eq!(done.unwrap().read::<f32>().unwrap(), [1.0; 64]);
    let shares = gpu.run(|r| {
        let x = r.reshape(&a, [8, 8])?;
        let x = r.matmul(x, x)?;
        r.softmax(x, -1)
    });
    assert_eq!(shares.unwrap().read::<f32>().unwrap(), [0.125; 64]);
}

fn command(folder: &Folder, does: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "in_a_child_process", "--ignored", "--nocapture", "--test-threads=1"]);
    // The driver writes no files of its own.
    command.env(FOLDER, folder.cache()).env(DOES, does).env("MESA_SHADER_CACHE_DISABLE", "true");
    command.env("XDG_CACHE_HOME", &folder.0);
    if does == "calibrate without a device" {
        command.env("VK_DRIVER_FILES", "/nonexistent").env("VK_ICD_FILENAMES", "/nonexistent");
    }
    command
}

/// Runs it, and kills it if it hangs.
fn wait(command: &mut Command) -> ExitStatus {
    let mut child = command.stdout(std::process::Stdio::null()).spawn().unwrap();
    let began = Instant::now();
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return status;
        }
        if began.elapsed() > PATIENCE {
            let _ = child.kill();
            panic!("the process does not end");
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn start(folder: &Folder, does: &str) {
    assert!(wait(&mut command(folder, does)).success(), "{does}");
}

/// A folder with the files of a first start.
fn used_folder() -> (Folder, Vec<(PathBuf, Vec<u8>)>) {
    let folder = Folder::new();
    start(&folder, "run");
    let files: Vec<_> =
        folder.files().into_iter().map(|file| (file.clone(), fs::read(file).unwrap())).collect();
    assert!(files.len() >= 2, "pipelines and history: {files:?}");
    (folder, files)
}

/// Kills a child when it has written this many hundredths of a file, before and after which stand the same bytes. The
/// last time it has written all of it, and is about to give it its name.
fn kill_at(folder: &Folder, does: &str, begin: &str, hundredths: &[usize]) {
    let file = folder.file(begin);
    let before = fs::read(&file).unwrap();
    let beside = || folder.files().into_iter().filter(|path| is_beside(path)).count();
    for hundredths in hundredths.iter().map(Some).chain([None]) {
        let left = beside();
        // The last byte, too, counts.
        let bytes = hundredths.map(|n| if *n == 99 { before.len() - 1 } else { before.len() * n / 100 });
        let at = bytes.map_or_else(|| "rename".to_owned(), |bytes| bytes.to_string());
        let status = wait(command(folder, does).env(DIES, format!("{begin} {at}")));
        assert_eq!(status.signal(), Some(9), "{does} until {at} of {begin}: {status}");
        assert!(fs::read(&file).unwrap() == before, "{begin} is another one after a kill at {at}");
        assert_eq!(
            beside(),
            left + 1,
            "what was written of {begin} until {at} stands under a name of its own"
        );
    }
}

/// Files that only another measurement replaces.
const MEASURED: [&str; 2] = ["peaks-", "calibration-"];

#[test]
fn a_process_killed_at_any_write_leaves_whole_files() {
    let folder = Folder::new();
    for does in ["run", "tune", "measure peaks", "calibrate"] {
        start(&folder, does);
    }
    let whole = folder.files();
    let known = ["pipelines-", "seen-", "tuning-", "peaks-", "calibration-"].map(|begin| folder.file(begin));
    assert!(whole.len() == 5 && known.iter().all(|file| whole.contains(file)), "there are others: {whole:?}");
    let inodes = || MEASURED.map(|begin| fs::metadata(folder.file(begin)).unwrap().ino());
    let all_is_found = || {
        let before = inodes();
        start(&folder, "find everything");
        assert_eq!(inodes(), before, "what was measured is read, and not measured again");
    };
    all_is_found();

    kill_at(&folder, "run", "pipelines-", &[0, 1, 20, 50, 80, 99, 100]);
    all_is_found();
    // The pipelines of these runs are saved before the history, which is as it was.
    kill_at(&folder, "run", "seen-", &[0, 1, 20, 50, 80, 99, 100]);
    all_is_found();
    let tuned = fs::read(folder.file("tuning-")).unwrap();
    kill_at(&folder, "tune again", "tuning-", &[0, 50, 99, 100]);
    start(&folder, "tune again");
    assert!(fs::read(folder.file("tuning-")).unwrap() == tuned, "what was found stays, so it is read");
    kill_at(&folder, "calibrate", "calibration-", &[50]);
    all_is_found();
    // Another device's are not read, but replaced.
    let peaks = folder.file("peaks-");
    fs::write(&peaks, "for another device\n".repeat(20)).unwrap();
    kill_at(&folder, "measure peaks", "peaks-", &[50]);
    start(&folder, "measure peaks");
    assert!(!fs::read(&peaks).unwrap().starts_with(b"for another device"));
    all_is_found();

    let left = || folder.files().into_iter().filter(|file| is_beside(file));
    assert_eq!(left().count(), 8 + 8 + 5 + 2 + 2, "whose writers may be at it still");
    for file in left() {
        let old = SystemTime::now() - Duration::from_secs(24 * 3600);
        fs::File::options().write(true).open(file).unwrap().set_modified(old).unwrap();
    }
    start(&folder, "run");
    assert_eq!(left().count(), 0);
    assert_eq!(folder.files(), whole);
}

#[test]
fn so_it_is_on_a_machine_without_a_device() {
    let folder = Folder::new();
    start(&folder, "calibrate without a device");
    let file = folder.file("calibration-");
    let inode = || fs::metadata(&file).unwrap().ino();
    let before = inode();
    start(&folder, "calibrate without a device");
    assert_eq!(inode(), before, "it is read, and not measured again");
    fs::write(&file, "for another CPU\n".repeat(20)).unwrap();
    kill_at(&folder, "calibrate without a device", "calibration-", &[50]);
    start(&folder, "calibrate without a device");
    assert!(!fs::read(&file).unwrap().starts_with(b"for another CPU"));
}

/// Replaces each file of a used folder in turn.
fn with_each_file_replaced(replace: impl Fn(&Path)) {
    let (folder, files) = used_folder();
    for (file, bytes) in &files {
        fs::remove_file(file).unwrap();
        replace(file);
        start(&folder, "run");
        let _ = fs::remove_file(file);
        fs::write(file, bytes).unwrap();
    }
}

#[test]
fn fifos_devices_and_huge_files_are_not_read() {
    with_each_file_replaced(|file| {
        assert!(Command::new("mkfifo").arg(file).status().unwrap().success());
    });
    with_each_file_replaced(|file| std::os::unix::fs::symlink("/dev/zero", file).unwrap());
    with_each_file_replaced(|file| fs::File::create(file).unwrap().set_len(1 << 42).unwrap());
}

/// As the engine seals what it believes.
fn with_checksum(body: &str) -> String {
    let mut hash = Fnv1a::new();
    hash.add(body.as_bytes());
    format!("{body}sum {:016x}\n", hash.0)
}

#[test]
fn a_history_with_hostile_constants_is_not_compiled() {
    let (folder, files) = used_folder();
    let (history, bytes) =
        files.iter().find(|(_, bytes)| bytes.starts_with(b"for tidemill pipelines")).unwrap();
    let text = String::from_utf8(bytes.clone()).unwrap();
    let (body, _) = text.rsplit_once("sum ").unwrap();
    assert_eq!(text, with_checksum(body), "the checksum as this test computes it");
    let (head, lines) = body.split_once('\n').unwrap();
    // The pipelines that a start makes ahead where this is the history.
    let made_with = |line: &str| -> u64 {
        fs::write(history, with_checksum(&format!("{head}\n{line}\n"))).unwrap();
        let made = folder.0.join("made");
        let mut command = command(&folder, "remember");
        // What is compiled may come from the driver's own cache here.
        command.env(MADE, &made).env_remove("MESA_SHADER_CACHE_DISABLE");
        assert!(wait(&mut command).success(), "{line}");
        fs::read_to_string(made).unwrap().parse().unwrap()
    };
    let catalog = made_with("none of ours");
    let line_of = |kernel: &str| {
        let found = lines.lines().find(|line| line.split(' ').nth(1).unwrap().starts_with(kernel));
        found.unwrap_or_else(|| panic!("no {kernel} in {lines}"))
    };
    let with = |line: &str, id: u32, bits: u32| {
        let begin = format!("{id}=");
        let mut words: Vec<String> =
            line.split(' ').filter(|word| !word.starts_with(&begin)).map(str::to_owned).collect();
        words.push(format!("{id}={bits:x}"));
        words.join(" ")
    };
    // A line as it stands in the file is believed, and so is one that a run could have written.
    let map = line_of("elementwise.");
    for sane in [map.to_owned(), with(map, 0, 96)] {
        assert_eq!(made_with(&sane), catalog + 1, "{sane}");
    }
    // Workgroups, and what is unrolled.
    let (matmul, softmax) = (line_of("matmul_"), line_of("softmax_rows."));
    for hostile in [
        with(map, 0, u32::MAX),
        with(map, 1, 1 << 16),
        with(map, 8, 0xff),
        with(map, 77, 1),
        format!("{map} {}", map.split(' ').nth(2).unwrap()),
        with(matmul, 2, 400),
        with(matmul, 3, 400),
        with(softmax, 4, 0x100_000),
    ] {
        assert_eq!(made_with(&hostile), catalog, "{hostile}");
    }
}
