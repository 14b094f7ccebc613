//! Tuning: what is measured, what is used, and what becomes of files.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::fnv1a::Fnv1a;
use crate::harness::{Gpu, config, gpu, gpu_with};
use tidemill::profile::Profiling;
use tidemill::tune::{TrialOutcome, TuneOptions, Tuning};
use tidemill::{Config, Conv2d, Error};

/// A folder of the test's own, gone with it.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("tidemill-tune-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    fn config(&self) -> Config {
        config().cache_dir(&self.0)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn tune(gpu: &Gpu, options: &TuneOptions) -> Tuning {
    gpu.tune(options, |_| ControlFlow::Continue(())).unwrap()
}

/// What is used for each class of a family: `large buffer-shared`.
fn used(gpu: &Gpu, family: &str) -> Vec<String> {
    let variants = gpu.variants().into_iter().filter(|variant| variant.family == family);
    let mut used: Vec<String> = variants
        .flat_map(|variant| {
            variant.used_for.iter().map(|class| format!("{class} {}", variant.name)).collect::<Vec<_>>()
        })
        .collect();
    used.sort();
    used
}

/// As the files have it.
fn checksum(text: &str) -> u64 {
    let mut hash = Fnv1a::new();
    hash.add(text.as_bytes());
    hash.0
}

/// Writes a file of winners for the device that `original` is of, or with another first line.
fn write_winners(file: &Path, original: &str, first: Option<&str>, winners: &str) {
    let key = original.lines().next().unwrap();
    let body = format!("{}\n{winners}", first.unwrap_or(key));
    std::fs::write(file, format!("{body}sum {:016x}\n", checksum(&body))).unwrap();
}

#[test]
fn candidates_are_measured_and_winners_are_used_and_kept() {
    let folder = Folder::new("kept");
    let gpu = gpu_with(folder.config());
    let mut told = Vec::new();
    let options = TuneOptions::new().family("softmax").family("reduce");
    let tuning = gpu.tune(&options, |progress| {
        assert!(progress.tried <= progress.total && progress.elapsed > Duration::ZERO);
        told.push((progress.tried, progress.trial.variant));
        ControlFlow::Continue(())
    });
    let tuning = tuning.unwrap();
    assert!(!tuning.cancelled && !tuning.out_of_time);
    assert_eq!(told.len(), tuning.trials.len());
    for (family, variants) in [("reduce", 3), ("softmax", 4)] {
        for class in ["small", "large"] {
            let trials: Vec<_> =
                tuning.trials.iter().filter(|t| t.family == family && t.class == class).collect();
            assert_eq!(trials.len(), variants, "{family} {class}");
            assert!(trials[0].is_default);
            for trial in &trials {
                // A loaded machine may have the clocks disagree; a result may not be wrong.
                assert!(
                    matches!(trial.outcome, TrialOutcome::Measured { .. } | TrialOutcome::Impossible),
                    "{trial:?}"
                );
            }
            assert!(trials.iter().any(|trial| trial.outcome.ns().is_some()), "{trials:?}");
            let winners: Vec<_> = trials.iter().filter(|trial| trial.is_winner).collect();
            assert!(winners.len() <= 1);
            for winner in winners {
                assert!(used(&gpu, family).contains(&format!("{class} {}", winner.variant)));
            }
        }
    }
    assert!(tuning.file.as_ref().unwrap().exists());
    // The next start takes them up.
    let next = gpu_with(folder.config());
    for family in ["elementwise", "reduce", "softmax", "norm", "matmul", "conv2d"] {
        assert_eq!(used(&next, family), used(&gpu, family));
    }
}

#[test]
fn winners_of_a_file_are_used_unless_the_user_says_otherwise() {
    let folder = Folder::new("used");
    let first = gpu_with(folder.config());
    let file = tune(&first, &TuneOptions::new().family("softmax")).file.unwrap();
    let original = std::fs::read_to_string(&file).unwrap();
    write_winners(&file, &original, None, "softmax large buffer-shared\nsoftmax small buffer-shuffle\n");

    let gpu = gpu_with(folder.config());
    assert_eq!(used(&gpu, "softmax"), ["large buffer-shared", "small buffer-shuffle"]);
    for (rows, kernel) in [(1024, "softmax_rows.buffer.shared"), (4, "softmax_rows.buffer.shuffle")] {
        let x = gpu.upload(&vec![0.5f32; rows * 1024], [rows, 1024]).unwrap();
        let r = gpu.begin_recording().unwrap();
        r.profiling(Profiling::Timeline);
        let y = r.softmax(&x, -1).unwrap();
        let y = r.keep(y).unwrap();
        let profile = r.end_recording().unwrap().profile().unwrap();
        assert!(profile.rows[0].kernel.starts_with(kernel), "{}", profile.rows[0].kernel);
        assert!(y.read::<f32>().unwrap().iter().all(|y| (y * 1024.0 - 1.0).abs() < 1e-5));
    }

    let asked = gpu_with(folder.config().variant("softmax", "texel-shuffle"));
    assert_eq!(used(&asked, "softmax"), ["large texel-shuffle", "small texel-shuffle"]);
    // Nor is it up for choice; what another run found stays in the file.
    let tuning = tune(&asked, &TuneOptions::new().family("softmax"));
    assert!(tuning.trials.is_empty());
    assert_eq!(used(&gpu_with(folder.config()), "softmax"), ["large buffer-shared", "small buffer-shuffle"]);
    let untuned = gpu_with(folder.config().tuned(false));
    assert_eq!(used(&untuned, "softmax"), used(&crate::harness::gpu(), "softmax"));
}

#[test]
fn a_corrupt_or_foreign_file_is_a_miss() {
    let folder = Folder::new("corrupt");
    let first = gpu_with(folder.config());
    let file = tune(&first, &TuneOptions::new().family("softmax")).file.unwrap();
    let original = std::fs::read_to_string(&file).unwrap();
    let winners = "softmax large buffer-shared\n";
    let defaults = used(&gpu(), "softmax");

    write_winners(&file, &original, None, winners);
    let good = std::fs::read_to_string(&file).unwrap();
    assert_ne!(used(&gpu_with(folder.config()), "softmax"), defaults);

    let refused = |what: &str| assert_eq!(used(&gpu_with(folder.config()), "softmax"), defaults, "{what}");
    write_winners(&file, &original, Some("for another device"), winners);
    refused("another device's");
    write_winners(&file, &original, None, "softmax large buffer-gone\n");
    refused("another version's");
    write_winners(&file, &original, None, "softmax enormous buffer-shared\n");
    refused("an unknown class");
    std::fs::write(&file, good.replace("buffer-shared", "buffer-shuffle")).unwrap();
    refused("changed");
    std::fs::write(&file, &good[..good.len() - 2]).unwrap();
    refused("cut off");
    std::fs::write(&file, b"\xff\x00\xfe").unwrap();
    refused("no text");
    std::fs::write(&file, "").unwrap();
    refused("empty");
}

#[test]
fn cancelling_changes_nothing() {
    let folder = Folder::new("cancel");
    let gpu = gpu_with(folder.config());
    let before = used(&gpu, "reduce");
    let tuning = gpu.tune(&TuneOptions::new().family("reduce"), |progress| match progress.tried {
        2 => ControlFlow::Break(()),
        _ => ControlFlow::Continue(()),
    });
    let tuning = tuning.unwrap();
    assert!(tuning.cancelled && !tuning.out_of_time);
    assert_eq!(tuning.trials.len(), 2);
    assert!(!tuning.file.unwrap().exists());
    assert_eq!(used(&gpu, "reduce"), before);
}

#[test]
fn nothing_is_begun_when_time_is_out() {
    let gpu = gpu();
    let mut told = None;
    let tuning = gpu.tune(&TuneOptions::new().budget(Duration::from_secs(1)), |progress| {
        told = Some((progress.tried, progress.total));
        ControlFlow::Continue(())
    });
    let tuning = tuning.unwrap();
    // Matmuls and convolutions take longer than that.
    let (tried, total) = told.unwrap();
    assert!(tuning.out_of_time && !tuning.cancelled);
    assert!(tried == tuning.trials.len() && tried < total, "{tried} of {total}");
    assert!(tuning.elapsed >= Duration::from_secs(1));
    assert!(tuning.trials.iter().any(|trial| matches!(trial.outcome, TrialOutcome::Measured { .. })));
    // Only classes of which everything was tried have a winner.
    let of = |trial: &tidemill::tune::Trial| (trial.family, trial.class);
    let candidates = |family: &str| gpu.variants().iter().filter(|v| v.family == family).count();
    for winner in tuning.trials.iter().filter(|trial| trial.is_winner) {
        let trials = tuning.trials.iter().filter(|trial| of(trial) == of(winner)).count();
        assert_eq!(trials, candidates(winner.family), "{winner:?}");
    }
}

#[test]
fn no_time_is_no_trial() {
    let gpu = gpu();
    let before = used(&gpu, "matmul");
    let tuning = tune(&gpu, &TuneOptions::new().budget(Duration::ZERO));
    assert!(tuning.out_of_time && !tuning.cancelled && tuning.trials.is_empty());
    assert_eq!(used(&gpu, "matmul"), before);
    assert!(tuning.file.is_none());
}

#[test]
fn every_family_has_something_to_try() {
    let gpu = gpu();
    for family in ["elementwise", "reduce", "softmax", "norm", "matmul", "conv2d"] {
        let mut seen = None;
        // The default of the first class alone.
        let tuning = gpu.tune(&TuneOptions::new().family(family), |progress| {
            seen = Some(progress.trial.clone());
            ControlFlow::Break(())
        });
        assert!(tuning.unwrap().cancelled);
        let seen = seen.unwrap();
        let sound = matches!(seen.outcome, TrialOutcome::Measured { .. } | TrialOutcome::Impossible);
        assert!(seen.family == family && seen.is_default && sound, "{seen:?}");
    }
    let unknown = gpu.tune(&TuneOptions::new().family("fft"), |_| ControlFlow::Continue(()));
    assert!(matches!(unknown, Err(Error::NoSuchVariant { wanted, .. }) if wanted == "fft"));
}

#[test]
fn prepared_weights_serve_every_way_of_convolving() {
    let folder = Folder::new("conv2d");
    let gpu = gpu_with(folder.config());
    // Weights are laid out once for all candidates of a class, and every result is checked.
    let tuning = tune(&gpu, &TuneOptions::new().family("conv2d"));
    // All but the one that is for tests.
    let variants = gpu.variants().iter().filter(|variant| variant.family == "conv2d").count() - 1;
    assert_eq!(tuning.trials.len(), 3 * variants);
    assert!(tuning.trials.iter().any(|trial| trial.outcome.ns().is_some()));
    assert!(tuning.trials.iter().all(|trial| trial.variant != "texel-tile"));
    for trial in &tuning.trials {
        let sound = matches!(trial.outcome, TrialOutcome::Measured { .. } | TrialOutcome::Impossible);
        assert!(sound, "{trial:?}");
    }
    // What a file names is used, by class.
    let file = tuning.file.unwrap();
    let original = std::fs::read_to_string(&file).unwrap();
    write_winners(&file, &original, None, "conv2d small buffer-tile-64\nconv2d thin texel-tile\n");
    let gpu = gpu_with(folder.config());
    for (rows, kernel) in [(8, "conv_tile.buffer"), (4, "conv_tile.texel")] {
        let (x, w) =
            (gpu.upload(&[0.5f32; 48], [1, 3, 4, 4]), gpu.upload(&vec![2.0f32; rows * 3], [rows, 3, 1, 1]));
        let weights = gpu.prepare_weights(&w.unwrap(), 1).unwrap();
        let r = gpu.begin_recording().unwrap();
        let y = r.conv2d_with(&x.unwrap(), &weights, Conv2d::new()).unwrap();
        let y = r.keep(y).unwrap();
        let explanation = r.explain().unwrap();
        assert!(explanation.run[0].kernel.as_ref().unwrap().starts_with(kernel), "{explanation}");
        r.end_recording().unwrap().wait().unwrap();
        assert!(y.read::<f32>().unwrap().iter().all(|y| *y == 3.0));
    }
}

#[test]
fn a_winner_of_a_file_changes_the_kernels_of_matmuls() {
    let folder = Folder::new("matmul");
    let first = gpu_with(folder.config());
    let file = tune(&first, &TuneOptions::new().family("softmax")).file.unwrap();
    let original = std::fs::read_to_string(&file).unwrap();
    write_winners(&file, &original, None, "matmul small buffer-tile-64\nmatmul row buffer-rows\n");
    let gpu = gpu_with(folder.config());
    let kernel = |gpu: &Gpu, [m, n]: [usize; 2]| {
        let (a, b) = (gpu.upload(&vec![0.5f32; m * 8], [m, 8]), gpu.upload(&vec![2.0f32; 8 * n], [8, n]));
        let r = gpu.begin_recording().unwrap();
        let c = r.matmul(&a.unwrap(), &b.unwrap()).unwrap();
        let c = r.keep(c).unwrap();
        let kernel = r.explain().unwrap().run[0].kernel.clone().unwrap();
        r.end_recording().unwrap().wait().unwrap();
        assert!(c.read::<f32>().unwrap().iter().all(|c| *c == 8.0));
        kernel
    };
    assert_eq!(kernel(&gpu, [96, 96]), "matmul_tile.buffer.plain");
    assert_eq!(kernel(&gpu, [2, 96]), "matmul_rows.buffer.plain");
    let default = crate::harness::gpu();
    for shape in [[96, 96], [2, 96]] {
        assert!(!kernel(&default, shape).contains(".buffer"));
    }
    // Classes that the file does not name are as they were.
    assert_eq!(kernel(&gpu, [96, 2]), kernel(&default, [96, 2]));
}
