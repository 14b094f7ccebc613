//! The machine as it may be: no loader, no driver, no layer, other devices, cache folders of all kinds. Each is a child
//! process of this test binary, since the environment is read once.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]
#![allow(unreachable_pub, reason = "a test binary exports nothing")]

#[path = "gpu/harness.rs"]
mod harness;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Barrier;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;

use tidemill::device::DeviceKind;
use tidemill::hybrid::{Hybrid, Policy};
use tidemill::{Accelerator, Config, Error, Prewarm};

/// Says to the child what to do.
const MODE: &str = "TIDEMILL_TEST_CHILD";
/// Stands before the child's answer.
const ANSWER: &str = "the answer is: ";

/// A folder of the test's own, gone with it.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Folder {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name = format!("tidemill-test-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    fn path(&self) -> &Path {
        &self.0
    }

    fn names(&self) -> Vec<String> {
        let files = std::fs::read_dir(&self.0).unwrap();
        files.map(|file| file.unwrap().file_name().into_string().unwrap()).collect()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Runs this binary once more, to do what `mode` says in this environment.
fn child(mode: &str, environment: &[(&str, &Path)]) -> String {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "in_a_child_process", "--ignored", "--nocapture", "--test-threads=1"]);
    command.env(MODE, mode).env_remove("TIDEMILL_DEVICE");
    for (name, value) in environment {
        command.env(name, value);
    }
    let output = command.output().unwrap();
    let (stdout, stderr) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{mode}: {}\n{stdout}\n{stderr}", output.status);
    let answer = stdout.lines().find_map(|line| line.split_once(ANSWER));
    answer.unwrap_or_else(|| panic!("{mode}: no answer\n{stdout}\n{stderr}")).1.to_owned()
}

fn plain() -> Config {
    Config::new().no_cache().prewarm(Prewarm::Off)
}

fn in_words<T>(result: Result<T, Error>, right: impl FnOnce(T) -> String) -> String {
    match result {
        Ok(value) => right(value),
        // The variant too, before its message.
        Err(error) => {
            let variant = match &error {
                Error::NoLoader { .. } => "NoLoader",
                Error::NoDriver { .. } => "NoDriver",
                Error::NoUsableDevice { .. } => "NoUsableDevice",
                Error::DeviceNotFound { .. } => "DeviceNotFound",
                Error::LayerMissing { .. } => "LayerMissing",
                _ => "another",
            };
            format!("{variant}: {error}")
        }
    }
}

/// What the children do.
#[test]
#[ignore = "the other tests run it, in an environment of their own"]
fn in_a_child_process() {
    let Ok(mode) = std::env::var(MODE) else { return };
    let answer = match mode.as_str() {
        "new" => in_words(Accelerator::new(&plain()), |gpu| gpu.device().kind.to_string()),
        "new by index" => {
            in_words(Accelerator::new(&plain().device_index(0)), |gpu| gpu.device().kind.to_string())
        }
        "validated" => in_words(Accelerator::new(&harness::config()), |_| "made".to_owned()),
        "devices" => in_words(Accelerator::devices(), |all| format!("{} devices", all.len())),
        "cached" => in_words(Accelerator::new(&Config::new().prewarm(Prewarm::Off)), |gpu| {
            let a = gpu.upload(&[1.0f32; 4], [4]).unwrap();
            let sum = gpu.run(|r| r.add(&a, &a)).unwrap().read::<f32>().unwrap();
            let loaded = gpu.pipeline_cache().map(|(_, loaded)| loaded);
            format!("{sum:?}, loaded {loaded:?}, problem: {}", gpu.cache_problem().unwrap_or("none"))
        }),
        "global" => global(),
        "hybrid" => in_words(Hybrid::new(Policy::Auto), |hybrid| {
            let mut sum = [0.0; 2];
            let ran = hybrid.add(&[1.0, 2.0], &[3.0, 4.0], &mut sum).unwrap();
            let why = in_words(hybrid.accelerator().map_err(Error::clone), |_| "a device".to_owned());
            // What another one measured would not be the same to the last digit.
            let again = Hybrid::new(Policy::Auto).unwrap();
            assert_eq!(again.placement().calibration(), hybrid.placement().calibration());
            format!("{sum:?} on {:?} for {:?}; {why}", ran.decision.side, ran.decision.why)
        }),
        "hybrid on the device" => in_words(Hybrid::new(Policy::Gpu), |_| "made".to_owned()),
        "exit" => {
            // The background thread is at work when the process ends.
            let gpu = Accelerator::global().unwrap();
            let a = gpu.upload(&[1.0f32; 4], [4]).unwrap();
            let sum = gpu.run(|r| r.add(&a, &a)).unwrap();
            assert_eq!(sum.read::<f32>().unwrap(), [2.0; 4]);
            while gpu.prewarm_status().warmed == 0 {
                thread::yield_now();
            }
            println!("{ANSWER}gone");
            std::process::exit(0);
        }
        other => panic!("{other}?"),
    };
    println!("{ANSWER}{answer}");
}

fn global() -> String {
    let threads = 16;
    let barrier = Barrier::new(threads);
    let all: Vec<Accelerator> = thread::scope(|scope| {
        let make = || {
            barrier.wait();
            Accelerator::global().unwrap()
        };
        let threads: Vec<_> = (0..threads).map(|_| scope.spawn(make)).collect();
        threads.into_iter().map(|t| t.join().unwrap()).collect()
    });
    let a = all[0].upload(&[1.0f32], [1]).unwrap();
    for gpu in &all {
        // Another accelerator would refuse the tensor.
        gpu.run(|r| r.add(&a, &a)).unwrap();
    }
    assert_eq!(all[15].stats().submissions, 16);
    // One that could not be closed is the same as before; a closed one is not given out again.
    assert!(matches!(all[3].clone().close(), Err(Error::StillInUse { tensors: 1, handles: 16 })));
    let same = Accelerator::global().unwrap();
    same.run(|r| r.add(&a, &a)).unwrap();
    drop((a, all));
    same.close().unwrap();
    assert_eq!(Accelerator::global().unwrap().stats().submissions, 0);
    Accelerator::global().unwrap().close().unwrap();
    "one for all".to_owned()
}

#[test]
#[cfg(target_os = "linux")]
fn no_loader() {
    // The system's search goes through this folder first, and ends at a file that is no library.
    let folder = Folder::new();
    std::fs::write(folder.path().join("libvulkan.so.1"), b"").unwrap();
    for mode in ["new", "devices"] {
        let text = child(mode, &[("LD_LIBRARY_PATH", folder.path())]);
        assert!(
            text.starts_with("NoLoader: no Vulkan loader: looked for libvulkan.so.1 on the library path ("),
            "{text}"
        );
        assert!(
            text.contains("file too short") && text.contains("install it: Debian/Ubuntu `libvulkan1`"),
            "{text}"
        );
    }
}

#[test]
fn no_driver() {
    let nowhere = Path::new("/no/such/driver.json");
    for mode in ["new", "devices"] {
        let text = child(mode, &[("VK_DRIVER_FILES", nowhere), ("VK_ICD_FILENAMES", nowhere)]);
        assert!(
            text.starts_with("NoDriver: no Vulkan driver: the loader found none (vkCreateInstance: "),
            "{text}"
        );
        assert!(text.contains("VK_DRIVER_FILES is \"/no/such/driver.json\""), "{text}");
        assert!(text.contains("`mesa-vulkan-drivers`"), "{text}");
    }
}

#[test]
fn no_layer() {
    let folder = Folder::new();
    let text = child("validated", &[("VK_LAYER_PATH", folder.path())]);
    assert!(
        text.starts_with("LayerMissing: the layer VK_LAYER_KHRONOS_validation is not installed;"),
        "{text}"
    );
    assert!(text.contains("`vulkan-validationlayers`"), "{text}");
    assert_eq!(
        child("new", &[("VK_LAYER_PATH", folder.path())]),
        child("new", &[]),
        "it is not needed otherwise"
    );
}

#[test]
fn the_environment_names_a_device() {
    let with = |mode: &str, wanted: &str| child(mode, &[("TIDEMILL_DEVICE", Path::new(wanted))]);
    let devices = Accelerator::devices().unwrap();
    let first = devices.iter().find(|d| d.is_usable()).expect("the tests need a Vulkan device");
    let kind = first.kind.to_string();
    assert_eq!(with("new", &first.index.to_string()), kind);
    assert_eq!(with("new", &kind.to_uppercase()), kind);
    assert_eq!(with("new", &first.name[1..5].to_lowercase()), kind);
    assert_eq!(with("new", ""), child("new", &[]), "an empty one counts as none");
    let way_out = "set it to an index, a kind or a part of a device's name, or unset it";
    let blank = format!("TIDEMILL_DEVICE is set to \" \", which is blank; {way_out}");
    assert!(with("new", " ").ends_with(&blank), "{}", with("new", " "));
    #[cfg(unix)]
    {
        use std::os::unix::ffi::OsStrExt;
        let bytes = Path::new(std::ffi::OsStr::from_bytes(b"\xff"));
        let text = child("new", &[("TIDEMILL_DEVICE", bytes)]);
        assert!(text.ends_with(&format!("which is not UTF-8; {way_out}")), "{text}");
    }
    let text = with("new", "no such card");
    assert!(
        text.starts_with("DeviceNotFound: no device matches a name with \"no such card\"; there are: "),
        "{text}"
    );
    assert!(text.contains(&format!("{} (does not match)", first.name)), "{text}");
    assert!(with("new", "99").starts_with("DeviceNotFound: no device matches index 99;"));
    // What the program says comes first.
    if first.index == 0 {
        assert_eq!(with("new by index", "no such card"), kind);
    }
}

#[test]
fn a_program_names_a_device() {
    let text = |config: Config| Accelerator::new(&config).unwrap_err().to_string();
    assert!(text(plain().device_index(99)).starts_with("no device matches index 99; there are: "));
    assert!(
        text(plain().device_name("abacus"))
            .starts_with("no device matches a name with \"abacus\"; there are: ")
    );
    assert!(
        text(plain().device_kind(DeviceKind::Other)).starts_with("no device matches kind other; there are: ")
    );
    let first = Accelerator::devices().unwrap().into_iter().find(|d| d.is_usable()).unwrap();
    for config in [
        plain().device_index(first.index),
        plain().device_kind(first.kind),
        plain().device_name(&first.name.to_uppercase()),
    ] {
        assert_eq!(Accelerator::new(&config).unwrap().device().name, first.name);
    }
}

#[test]
fn a_cache_folder_that_can_not_be_used() {
    let folder = Folder::new();
    let file = folder.path().join("file");
    std::fs::write(&file, b"").unwrap();
    let error =
        Accelerator::new(&Config::new().prewarm(Prewarm::Off).cache_dir(file.join("below"))).unwrap_err();
    let empty = Accelerator::new(&Config::new().prewarm(Prewarm::Off).cache_dir("")).unwrap_err().to_string();
    assert!(empty.starts_with("cache folder : the path is empty; "), "{empty}");
    assert!(matches!(error, Error::CacheFolder { .. }));
    let text = error.to_string();
    assert!(text.starts_with(&format!("cache folder {}/below: ", file.display())), "{text}");
    assert!(text.ends_with("; choose another with Config::cache_dir, or turn it off"), "{text}");
    // The default one is done without, and says so.
    let text = child("cached", &[("XDG_CACHE_HOME", &file)]);
    assert!(text.starts_with("[2.0, 2.0, 2.0, 2.0], loaded None, problem: "), "{text}");
    assert!(text.contains("file/tidemill: "), "{text}");
}

#[test]
fn the_pipeline_cache_outlives_the_process() {
    let folder = Folder::new();
    let environment = [("XDG_CACHE_HOME", folder.path())];
    let ran = |loaded: bool| format!("[2.0, 2.0, 2.0, 2.0], loaded Some({loaded}), problem: none");
    assert_eq!(child("cached", &environment), ran(false));
    assert_eq!(child("cached", &environment), ran(true));
}

/// An accelerator that has made a pipeline, with its cache's file and whether that was loaded.
fn with_cache(folder: &Folder) -> (PathBuf, bool) {
    let gpu =
        harness::gpu_with(Config::new().validation(true).prewarm(Prewarm::Off).cache_dir(folder.path()));
    let a = gpu.upload(&[1.0f32; 4], [4]).unwrap();
    assert_eq!(gpu.run(|r| r.add(&a, &a)).unwrap().read::<f32>().unwrap(), [2.0; 4]);
    let (file, loaded) = gpu.pipeline_cache().unwrap();
    (file.to_owned(), loaded)
}

#[test]
fn a_foreign_or_corrupt_cache_file_is_a_miss() {
    let folder = Folder::new();
    let (file, loaded) = with_cache(&folder);
    assert!(!loaded);
    let good = std::fs::read(&file).unwrap();
    assert_eq!(with_cache(&folder), (file.clone(), true));
    let mut flipped = good.clone();
    *flipped.last_mut().unwrap() ^= 1;
    // Another device's: the key is written after the mark and a length.
    let mut foreign = good.clone();
    foreign[12] ^= 1;
    for bad in [flipped, foreign, good[..good.len() / 2].to_vec(), Vec::new(), b"something else".to_vec()] {
        std::fs::write(&file, bad).unwrap();
        assert_eq!(with_cache(&folder), (file.clone(), false));
        assert_eq!(with_cache(&folder), (file.clone(), true), "it was written anew");
    }
    let mut left: Vec<String> = folder.names();
    left.sort();
    assert!(left.len() == 2 && left[1].starts_with("seen-"), "no probes, no halves: {left:?}");
    assert_eq!(Some(left[0].as_str()), file.file_name().and_then(|name| name.to_str()));
}

/// A fused program on an accelerator that makes ahead what it remembers: how many pipelines it wanted, and how many
/// were new when the program ran.
fn fused(folder: &Folder) -> (usize, u64) {
    let config = Config::new().validation(true).prewarm(Prewarm::Blocking).cache_dir(folder.path());
    let gpu = harness::gpu_with(config.profiling(tidemill::profile::Profiling::Timeline));
    let a = gpu.upload(&[1.0f32; 64], [64]).unwrap();
    let r = gpu.begin_recording().unwrap();
    let x = r.sub(&a, &a).unwrap();
    let x = r.neg(x).unwrap();
    let x = r.max(x, &a).unwrap();
    let kept = r.keep(x).unwrap();
    let profile = r.end_recording().unwrap().profile().unwrap();
    assert_eq!(kept.read::<f32>().unwrap(), [1.0; 64]);
    assert_eq!(profile.rows.len(), 1, "one dispatch");
    let host = profile.host;
    assert_eq!(host.pipelines_made > 0, host.pipelines_ns > 0);
    assert_eq!(host.pipelines_made > 0, profile.to_string().contains("new pipelines"), "{profile}");
    (gpu.prewarm_status().catalog, host.pipelines_made)
}

#[test]
fn op_lists_once_seen_are_made_ahead_at_the_next_start() {
    let folder = Folder::new();
    let (catalog, made) = fused(&folder);
    assert_eq!(made, 1, "a new list");
    assert_eq!(fused(&folder), (catalog + 1, 0));
    let seen = folder.names().into_iter().find(|name| name.starts_with("seen-")).unwrap();
    let file = folder.path().join(seen);
    let good = std::fs::read(&file).unwrap();
    std::fs::write(&file, &good[..good.len() / 2]).unwrap();
    assert_eq!(fused(&folder), (catalog, 1), "corrupt is a miss");
    assert_eq!(std::fs::read(&file).unwrap(), good, "and written anew");
}

#[test]
fn many_accelerators_share_a_cache_folder() {
    let folder = Folder::new();
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| with_cache(&folder));
        }
    });
    assert!(with_cache(&folder).1);
}

#[test]
fn the_global_one_is_one_for_all() {
    let folder = Folder::new();
    assert_eq!(child("global", &[("XDG_CACHE_HOME", folder.path())]), "one for all");
}

#[test]
fn a_process_may_end_at_any_time() {
    let folder = Folder::new();
    for _ in 0..3 {
        assert_eq!(child("exit", &[("XDG_CACHE_HOME", folder.path())]), "gone");
    }
}

#[test]
fn without_a_device_everything_runs_on_the_cpu_and_says_so() {
    let nowhere = Path::new("/no/such/driver.json");
    let folder = Folder::new();
    let environment =
        [("VK_DRIVER_FILES", nowhere), ("VK_ICD_FILENAMES", nowhere), ("XDG_CACHE_HOME", folder.path())];
    let said = child("hybrid", &environment);
    assert!(said.starts_with("[4.0, 6.0] on Cpu for NoDevice; NoDriver: no Vulkan driver"), "{said}");
    let said = child("hybrid on the device", &environment);
    assert!(said.starts_with("NoDriver: "), "{said}");
}
