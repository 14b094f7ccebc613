//! The cache folder as an enemy, or a process that was killed, may leave it. Each start is a child process of this test binary.
#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]
#![allow(unsafe_code, reason = "a limit on the sizes of files is C's to set")]

use std::fs;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant, SystemTime};

use tidemill::{Accelerator, Config, Prewarm};

/// Names the child's cache folder.
const FOLDER: &str = "TIDEMILL_TEST_FOLDER";
/// The child makes what is remembered before it does anything.
const REMEMBERS: &str = "TIDEMILL_TEST_REMEMBERS";
/// Nothing here takes so long unless it hangs.
const PATIENCE: Duration = Duration::from_secs(120);

/// A folder of the test's own, gone with it.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Folder {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name = format!("tidemill-cache-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let path = std::env::temp_dir().join(name);
        fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    /// The files in it, in order.
    fn files(&self) -> Vec<PathBuf> {
        let mut files: Vec<_> = fs::read_dir(&self.0).unwrap().map(|entry| entry.unwrap().path()).collect();
        files.sort();
        files
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// What the children do: compute something, and leave files.
#[test]
#[ignore = "the other tests run it, as a process of its own"]
fn in_a_child_process() {
    let Some(folder) = std::env::var_os(FOLDER) else { return };
    let prewarm = if std::env::var_os(REMEMBERS).is_some() { Prewarm::Blocking } else { Prewarm::Off };
    let gpu = Accelerator::new(&Config::new().prewarm(prewarm).cache_dir(folder)).unwrap();
    let a = gpu.upload(&[1.0f32; 64], [64]).unwrap();
    let done = gpu.run(|r| {
        let x = r.sub(&a, &a)?;
        r.max(x, &a)
    });
    assert_eq!(done.unwrap().read::<f32>().unwrap(), [1.0; 64]);
}

fn command(folder: &Folder) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "in_a_child_process", "--ignored", "--nocapture", "--test-threads=1"]);
    // The driver writes no files of its own.
    command.env(FOLDER, &folder.0).env("MESA_SHADER_CACHE_DISABLE", "true");
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

/// A start with this cache folder, in which no file may become larger than the limit: a write that would make one so ends the process
/// there, as `kill -9` would.
fn start(folder: &Folder, most_bytes: Option<u64>) -> ExitStatus {
    let mut command = command(folder);
    if let Some(most) = most_bytes {
        unsafe extern "C" {
            fn setrlimit(resource: i32, limits: *const [u64; 2]) -> i32;
        }
        const FILE_SIZE: i32 = 1;
        let limit = move || {
            // SAFETY: the limits live for the length of the call.
            match unsafe { setrlimit(FILE_SIZE, &[most, most]) } {
                0 => Ok(()),
                _ => Err(std::io::Error::last_os_error()),
            }
        };
        // SAFETY: called between fork and exec, where a plain system call may be.
        unsafe { command.pre_exec(limit) };
    }
    wait(&mut command)
}

/// A folder with all the files of a first start.
fn used_folder() -> (Folder, Vec<(PathBuf, Vec<u8>)>) {
    let folder = Folder::new();
    assert!(start(&folder, None).success());
    let files: Vec<_> =
        folder.files().into_iter().map(|file| (file.clone(), fs::read(file).unwrap())).collect();
    assert!(files.len() >= 2, "pipelines and history: {files:?}");
    (folder, files)
}

#[test]
fn a_process_killed_at_any_write_leaves_whole_files() {
    let (folder, files) = used_folder();
    let largest = files.iter().map(|(_, bytes)| bytes.len() as u64).max().unwrap();
    let mut killed = 0;
    for most in (0..largest).step_by(37) {
        let status = start(&folder, Some(most));
        killed += u32::from(status.signal().is_some());
        for (file, _) in &files {
            // A file of which only a part was written would have as many bytes as the limit allows.
            assert_ne!(fs::read(file).unwrap().len() as u64, most, "a half of {}", file.display());
        }
    }
    assert!(killed > 3, "{killed} processes were killed while they wrote");
    let left =
        |folder: &Folder| folder.files().into_iter().filter(|f| !files.iter().any(|(known, _)| known == f));
    assert_eq!(left(&folder).count(), killed as usize, "half files, under names of their own");
    assert!(start(&folder, None).success());
    assert_eq!(left(&folder).count(), killed as usize, "whose writers may be at it still");
    for file in left(&folder) {
        let old = SystemTime::now() - Duration::from_secs(24 * 3600);
        fs::File::options().write(true).open(file).unwrap().set_modified(old).unwrap();
    }
    assert!(start(&folder, None).success());
    assert_eq!(left(&folder).count(), 0);
}

/// Replaces each file of a used folder in turn.
fn with_each_file_replaced(replace: impl Fn(&Path)) {
    let (folder, files) = used_folder();
    for (file, bytes) in &files {
        fs::remove_file(file).unwrap();
        replace(file);
        assert!(start(&folder, None).success(), "{}", file.display());
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

/// As the engine's, to seal what it would believe.
fn fnv1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, &b| (hash ^ u64::from(b)).wrapping_mul(0x0100_0000_01b3))
}

#[test]
fn a_history_with_hostile_constants_is_not_compiled() {
    let (folder, files) = used_folder();
    let (history, bytes) = files.iter().find(|(_, bytes)| bytes.starts_with(b"tidemill pipelines")).unwrap();
    let text = String::from_utf8(bytes.clone()).unwrap();
    let (head, lines) = text.split_once('\n').unwrap();
    let (mark, sum) = head.rsplit_once(' ').unwrap();
    assert_eq!(sum, format!("{:016x}", fnv1a(lines.as_bytes())), "sealed as this test does it");
    // Rows and columns in registers, and steps of k: all of it is unrolled.
    for hostile in [
        "product_rows.texel.plain 0=8 1=8 2=400 3=400 4=0 5=0 6=400\n",
        "softmax_rows.texel.shuffle 0=40 1=8 2=0 3=0 4=100000 5=0\n",
        "map.texel.1 0=40 1=ffffffff 2=8 3=ffffffff 4=1\n",
    ] {
        let planted = format!("{mark} {:016x}\n{hostile}", fnv1a(hostile.as_bytes()));
        fs::write(history, planted).unwrap();
        let mut command = command(&folder);
        // What is compiled may come from the driver's own cache here.
        let status = wait(command.env(REMEMBERS, "1").env_remove("MESA_SHADER_CACHE_DISABLE"));
        assert!(status.success(), "{hostile}");
    }
}
