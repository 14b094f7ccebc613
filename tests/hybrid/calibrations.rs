//! What is measured is kept, by what it is true of, and measured again where it can't be trusted.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

use tidemill::hybrid::{Hybrid, Policy};
use tidemill::{Accelerator, Prewarm};

use crate::harness;

/// A folder of the test's own, gone with it.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Folder {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name = format!("tidemill-hybrid-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    /// The one file of times.
    fn calibration(&self) -> PathBuf {
        let files = std::fs::read_dir(&self.0).unwrap().map(|file| file.unwrap().path());
        let of_times =
            |path: &PathBuf| path.file_name().unwrap().to_str().unwrap().starts_with("calibration-");
        let found: Vec<PathBuf> = files.filter(of_times).collect();
        assert_eq!(found.len(), 1, "{found:?}");
        found[0].clone()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[test]
fn a_machine_is_measured_once_and_again_if_its_file_is_not_whole() {
    let folder = Folder::new();
    let gpu = harness::gpu_with(harness::config().cache_dir(&folder.0));
    let submitted = || gpu.stats().submissions;
    let times = || {
        let hybrid = Hybrid::with_accelerator(Accelerator::clone(&gpu), Policy::Auto).unwrap();
        hybrid.placement().calibration().clone()
    };
    let first = times();
    assert!(submitted() > 0);
    let device = first.gpu.as_ref().unwrap();
    assert!(device.submission_us + device.dispatch_us > 0.0, "{device:?}");
    let file = folder.calibration();
    let whole = std::fs::read_to_string(&file).unwrap();
    let before = submitted();
    assert_eq!((times(), submitted()), (first.clone(), before), "measured twice");
    // One digit, the end, everything, and another device's.
    let digit = whole.replacen("cpu memory 1024:", "cpu memory 1025:", 1);
    assert_ne!(digit, whole);
    let other = whole.replacen("for ", "for another ", 1);
    for bad in [&digit, &whole[..whole.len() / 2], "", &other] {
        std::fs::write(&file, bad).unwrap();
        let before = submitted();
        let again = times();
        assert!(submitted() > before, "a file that is not whole was taken:\n{bad}");
        let before = submitted();
        assert_eq!((times(), submitted()), (again, before), "what was measured again was not kept");
    }
}

#[test]
fn the_file_names_the_cpu() {
    let folder = Folder::new();
    let gpu = harness::gpu_with(harness::config().cache_dir(&folder.0));
    Hybrid::calibrate(&gpu).unwrap();
    let name = folder.calibration().file_name().unwrap().to_str().unwrap().to_owned();
    assert!(name.contains(std::env::consts::ARCH), "{name}");
    let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    if let Some(model) = info.lines().find_map(|line| line.strip_prefix("model name\t: ")) {
        let plain: String = model.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
        assert!(name.contains(&plain), "{name} has no {plain}");
    }
}

#[test]
fn nothing_is_measured_while_pipelines_are_made() {
    let folder = Folder::new();
    let config = harness::config().cache_dir(&folder.0).prewarm(Prewarm::Background);
    let gpu = harness::gpu_with(config);
    Hybrid::with_accelerator(Accelerator::clone(&gpu), Policy::Auto).unwrap();
    assert!(gpu.prewarm_status().finished);
}
