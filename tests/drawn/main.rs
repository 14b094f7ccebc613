//! Problems that are drawn by chance, of every family and on both sides of the constants that steer lowering and
//! fusion, with views in between: fused and unfused, on every variant, on devices with little room. All of them are
//! compared with the reference in f64. That they come to every branch of lowering and fusion is measured:
//! `branches.rs`.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]
#![allow(unreachable_pub, reason = "a test binary exports nothing")]

mod attention;
#[cfg(debug_assertions)]
mod branches;
mod corners;
mod devices;
#[path = "../gpu/fixtures.rs"]
mod fixtures;
#[path = "../gpu/harness.rs"]
mod harness;
mod indexed;
mod problems;
#[path = "../gpu/random.rs"]
mod random;
#[path = "../seam/mod.rs"]
mod seam;
mod state;
mod twin;
mod views;

use std::time::Instant;

use tidemill::{Accelerator, Error, Result};

use corners::CORNERS;
use devices::Device;
use problems::FAMILIES;
use twin::{Known, Made, Twin};

/// What became of the problems of a device.
#[derive(Default)]
struct Tally {
    right: usize,
    /// A binding of the device can't span what an operation must see, and it said so.
    refused: usize,
    wrong: Vec<String>,
}

impl Tally {
    /// Draws a problem, runs it on each accelerator, and compares. What fails is told by the name and the seed that
    /// draw it again, and by what was recorded.
    fn run(&mut self, device: &Device, name: &str, seed: u64, draw: impl Fn(&mut Twin<'_>) -> Made) {
        for (gpu, fusion) in device.accelerators() {
            let outcome = run(gpu, seed, &draw, device.is_poor());
            match outcome {
                Ok(true) => self.right += 1,
                Ok(false) => self.refused += 1,
                Err(what) => {
                    let failure = format!("{name}, SEED={seed}, fusion {fusion}, {}:\n{what}", device.name);
                    eprintln!("{failure}\n");
                    self.wrong.push(failure);
                }
            }
        }
    }
}

/// Whether the problem is right, or was refused; otherwise what is wrong.
fn run(
    gpu: &Accelerator,
    seed: u64,
    draw: impl Fn(&mut Twin<'_>) -> Made,
    may_refuse: bool,
) -> std::result::Result<bool, String> {
    let mut twin = Twin::new(gpu, seed).map_err(|error| error.to_string())?;
    let recorded: Result<()> = draw(&mut twin).and_then(|last: Known| twin.keep(&last));
    let story = twin.story.join("\n");
    let told = |what: String| format!("{what}\n{story}");
    let done = match recorded {
        Ok(()) => true,
        // Nothing of what is refused is recorded, and what was before it runs.
        Err(Error::BindingTooLarge { .. }) if may_refuse => false,
        Err(error) => return Err(told(error.to_string())),
    };
    match twin.finish() {
        Ok(None) => Ok(done),
        Ok(Some(wrong)) => Err(told(wrong)),
        Err(error) => Err(told(error.to_string())),
    }
}

/// Runs this many problems of each family on each device, and its corners; what is wrong.
fn check(first: u64, count: u64) {
    let mut wrong = Vec::new();
    for (i, mut device) in devices::all().into_iter().enumerate() {
        let (begun, mut tally) = (Instant::now(), Tally::default());
        device.open();
        let first = first + i as u64 * count;
        for (name, draw) in FAMILIES.iter().filter(|family| device.takes(family.0)) {
            for seed in first..first + count {
                tally.run(&device, name, seed, |twin| draw(twin).and_then(|made| twin.after(made)));
            }
        }
        for corner in CORNERS.iter().filter(|corner| corner.device == device.name) {
            tally.run(&device, corner.name, first, corner.draw);
        }
        device.close();
        let Tally { right, refused, wrong: of_device } = tally;
        let took = begun.elapsed();
        println!("{}: {right} right, {refused} refused, {} wrong, {took:.1?}", device.name, of_device.len());
        wrong.extend(of_device);
    }
    assert!(wrong.is_empty(), "{} are wrong:\n\n{}", wrong.len(), wrong.join("\n\n"));
}

/// Problems of each family on each device: what takes less than a minute, and what takes some.
const FEW: u64 = 1;
const MANY: u64 = 12;

#[test]
fn problems_come_out_right_and_come_to_every_branch() {
    check(0, FEW);
    state::come_out_right(&harness::gpu());
    state::deep_boxes_come_out_right(&harness::gpu());
    state::come_out_right(&harness::gpu_with(harness::config().fusion(false)));
    #[cfg(debug_assertions)]
    branches::check_all_taken();
}

/// `./dev test --long`.
#[test]
#[ignore = "takes minutes"]
fn many_problems_come_out_right() {
    check(1000, MANY);
}

/// One problem again: `SEED=7 FAMILY=vector`, as a failure names them, on every device.
#[test]
#[ignore = "for one seed"]
fn one_problem() {
    let variable = |name: &str| std::env::var(name).unwrap_or_default();
    let (first, wanted): (u64, _) = (variable("SEED").parse().expect("SEED"), variable("FAMILY"));
    let count: u64 = variable("COUNT").parse().unwrap_or(1);
    let is_wanted = |name: &str| wanted == name || wanted == name.replace(' ', "-");
    let mut tally = Tally::default();
    for mut device in devices::all().into_iter().filter(|device| device.name.contains(&variable("DEVICE"))) {
        device.open();
        for seed in first..first + count {
            for (name, draw) in FAMILIES.iter().filter(|family| is_wanted(family.0)) {
                tally.run(&device, name, seed, |twin| draw(twin).and_then(|made| twin.after(made)));
            }
            for corner in CORNERS.iter().filter(|c| is_wanted(c.name) && c.device == device.name) {
                tally.run(&device, corner.name, seed, corner.draw);
            }
        }
        device.close();
    }
    assert!(tally.wrong.is_empty() && tally.right + tally.refused > 0, "{}", tally.wrong.join("\n\n"));
}
