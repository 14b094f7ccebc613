//! Measures the machine that this runs on, and keeps what came out.

use std::process::Command;
use std::time::Instant;

use super::calibration::Calibration;
use super::measure::Probe;
use super::work::Class;
use crate::cpu::{self, parallel};
use crate::error::{Error, Result};
use crate::ops::conv2d::Conv2d;
use crate::runtime::accelerator::Accelerator;
use crate::runtime::disk_cache;
use crate::runtime::tensor::Tensor;

/// Of each measurement the best of this many is taken, after one that does not count: there are several passes.
const REPEATS: usize = 2;
/// Columns of what softmax is measured on.
const ROW: usize = 1024;

/// The machine itself.
struct Machine<'a> {
    gpu: Option<&'a Accelerator>,
    x: Vec<f32>,
    out: Vec<f32>,
}

/// The best of some runs, in microseconds.
fn best(mut run: impl FnMut() -> Result<()>) -> Result<f64> {
    run()?;
    let mut best = f64::INFINITY;
    for _ in 0..REPEATS {
        let begun = Instant::now();
        run()?;
        best = best.min(begun.elapsed().as_secs_f64() * 1e6);
    }
    Ok(best.max(0.01))
}

/// The side of a square matrix whose product with another has this many multiplications.
fn side(amount: usize) -> usize {
    (amount as f64).cbrt().round() as usize
}

/// Channels of what convolutions are measured on, before and after.
const CHANNELS: usize = 16;
/// Elements of their weights.
const WEIGHTS: usize = 9 * CHANNELS * CHANNELS;
const KERNEL: [usize; 4] = [CHANNELS, CHANNELS, 3, 3];

fn image(amount: usize) -> [usize; 4] {
    [1, CHANNELS, image_side(amount), image_side(amount)]
}

/// The side of a square image whose convolution has this many multiplications.
fn image_side(amount: usize) -> usize {
    ((amount / WEIGHTS) as f64).sqrt().round() as usize
}

/// The elements that a measurement works on.
fn elements(class: Class, amount: usize) -> usize {
    match class {
        Class::Matmul => side(amount).pow(2),
        Class::Conv => CHANNELS * image_side(amount).pow(2),
        _ => amount,
    }
}

impl Probe for Machine<'_> {
    type Error = Error;

    fn cpu_us(&mut self, class: Class, amount: usize) -> Result<f64> {
        let n = elements(class, amount);
        self.x.resize(self.x.len().max(n), 0.5);
        self.out.resize(self.out.len().max(n), 0.0);
        let (x, weights, out) = (&self.x[..n], &[0.5; WEIGHTS], &mut self.out[..n]);
        best(|| {
            match class {
                Class::Memory => cpu::add(x, x, out),
                Class::Transcendental => cpu::gelu(x, out),
                Class::Reduction => cpu::sum(x, 0, &mut out[..1]),
                Class::Softmax => cpu::softmax((x, [n / ROW, ROW]), -1, out),
                Class::Matmul => {
                    let square = [side(amount); 2];
                    cpu::matmul((x, square), (x, square), out)
                }
                Class::Conv => {
                    let how = cpu::Conv2d::new().padding([1, 1]);
                    cpu::conv2d_with((x, image(amount)), (weights, KERNEL), how, out)
                }
            }?;
            Ok(())
        })
    }

    fn gpu_us(&mut self, class: Class, amount: usize) -> Result<Option<f64>> {
        let Some(gpu) = self.gpu else { return Ok(None) };
        let n = elements(class, amount);
        self.x.resize(self.x.len().max(n), 0.5);
        let x = match class {
            Class::Softmax => gpu.upload(&self.x[..n], [n / ROW, ROW])?,
            Class::Matmul => gpu.upload(&self.x[..n], [side(amount); 2])?,
            Class::Conv => gpu.upload(&self.x[..n], image(amount))?,
            _ => gpu.upload(&self.x[..n], [n])?,
        };
        let weights = gpu.upload(&[0.5f32; WEIGHTS], KERNEL)?;
        best(|| {
            let r = gpu.begin_recording()?;
            let value = match class {
                Class::Memory => r.add(&x, &x),
                Class::Transcendental => r.gelu(&x),
                Class::Reduction => r.sum(&x, 0),
                Class::Softmax => r.softmax(&x, -1),
                Class::Matmul => r.matmul(&x, &x),
                Class::Conv => r.conv2d_with(&x, &weights, Conv2d::new().padding([1, 1])),
            }?;
            r.keep(value)?;
            r.end_recording()?.wait()
        })
        .map(Some)
    }

    fn transfer_us(&mut self, bytes: usize) -> Result<Option<[f64; 3]>> {
        let Some(gpu) = self.gpu else { return Ok(None) };
        let n = bytes / 4;
        self.x.resize(self.x.len().max(n), 0.5);
        self.out.resize(self.out.len().max(n), 0.0);
        let (x, out) = (&self.x[..n], &mut self.out[..n]);
        // An upload may be carried out with the submission that needs it, so both have one.
        let touch = |tensor: &Tensor| -> Result<()> {
            let r = gpu.begin_recording()?;
            let value = r.slice(tensor, 0..1)?;
            r.keep(value)?;
            r.end_recording()?.wait()
        };
        let there = gpu.upload(x, [n])?;
        let without = best(|| touch(&there))?;
        let with = best(|| touch(&gpu.upload(x, [n])?))?;
        let down = best(|| there.read_into(out))?;
        Ok(Some([without, with, down]))
    }

    fn dispatches_us(&mut self, count: usize) -> Result<Option<f64>> {
        let Some(gpu) = self.gpu else { return Ok(None) };
        let x = gpu.upload(&[0.5f32; 4], [1, 4])?;
        best(|| {
            let r = gpu.begin_recording()?;
            // No softmax is fused with another.
            let mut value = r.softmax(&x, -1)?;
            for _ in 1..count {
                value = r.softmax(value, -1)?;
            }
            r.keep(value)?;
            r.end_recording()?.wait()
        })
        .map(Some)
    }
}

/// Measures the CPU, and the device if there is one.
fn calibrate(gpu: Option<&Accelerator>) -> Result<Calibration> {
    let mut machine = Machine { gpu, x: Vec::new(), out: Vec::new() };
    // Every amount that is measured gives a time, so every curve has a point.
    Calibration::measure(&mut machine)?.ok_or(Error::Closed)
}

/// The name of what is kept: it names the CPU, and how many threads there are. The device and its driver stand in the
/// file's name in any case.
fn name() -> String {
    let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = model(&info).or_else(other_model).unwrap_or_default();
    let plain: String = model.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
    format!("calibration-{}-{plain}-{}", std::env::consts::ARCH, parallel::threads())
}

/// The CPU by Linux's description: its name where that is known (x86), otherwise the numbers of its maker for each kind
/// of core that there is (ARM).
fn model(info: &str) -> Option<String> {
    let fields = info.lines().filter_map(|line| line.split_once(':'));
    let fields: Vec<(&str, &str)> = fields.map(|(name, value)| (name.trim(), value.trim())).collect();
    if let Some((_, name)) = fields.iter().find(|(name, _)| *name == "model name") {
        return Some((*name).to_owned());
    }
    let mut cores: Vec<String> = Vec::new();
    for (name, value) in fields {
        match name {
            "CPU implementer" => cores.push(value.to_owned()),
            "CPU variant" | "CPU part" | "CPU revision" => {
                cores.last_mut().into_iter().for_each(|core| *core += &format!(".{value}"));
            }
            _ => {}
        }
    }
    cores.sort();
    cores.dedup();
    (!cores.is_empty()).then(|| cores.join("-"))
}

/// The CPU by other systems.
fn other_model() -> Option<String> {
    if cfg!(target_vendor = "apple") {
        let asked =
            Command::new("/usr/sbin/sysctl").args(["-n", "machdep.cpu.brand_string"]).output().ok()?;
        return String::from_utf8(asked.stdout).ok().map(|name| name.trim().to_owned());
    }
    // Windows sets it.
    std::env::var("PROCESSOR_IDENTIFIER").ok()
}

/// The calibration measured before on this machine, or a new one.
pub(super) fn stored_or_measured(gpu: &Accelerator) -> Result<Calibration> {
    match disk_cache::read(gpu.device(), gpu.core().folder(), &name())
        .as_deref()
        .and_then(Calibration::from_text)
    {
        Some(calibration) if calibration.gpu.is_some() => Ok(calibration),
        _ => measure_and_store(gpu),
    }
}

/// Measures when nothing else is done on the device: pipelines that are made meanwhile would count as its time.
pub(super) fn measure_and_store(gpu: &Accelerator) -> Result<Calibration> {
    gpu.wait_prewarmed();
    let calibration = calibrate(Some(gpu))?;
    disk_cache::write(gpu.device(), gpu.core().folder(), &name(), &calibration.to_text());
    Ok(calibration)
}

/// As [`stored_or_measured`], on a machine without a device.
pub(super) fn stored_or_measured_without_device() -> Result<Calibration> {
    if let Some(known) = disk_cache::read_without_device(&name()).as_deref().and_then(Calibration::from_text)
    {
        return Ok(known);
    }
    let calibration = calibrate(None)?;
    disk_cache::write_without_device(&name(), &calibration.to_text());
    Ok(calibration)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cpu_is_named_by_what_tells_it_apart() {
        let x86 =
            "processor\t: 0\nvendor_id\t: AuthenticAMD\nmodel\t\t: 97\nmodel name\t: AMD Ryzen 9 7950X\n";
        assert_eq!(model(x86).as_deref(), Some("AMD Ryzen 9 7950X"));
        let core = |n: u32, part: &str| {
            format!(
                "processor\t: {n}\nCPU implementer\t: 0x41\nCPU architecture: 8\nCPU variant\t: 0x1\nCPU part\t: {part}\n\
                 CPU revision\t: 0\n\n"
            )
        };
        let arm = core(0, "0xd05") + &core(1, "0xd05") + &core(2, "0xd41");
        assert_eq!(model(&arm).as_deref(), Some("0x41.0x1.0xd05.0-0x41.0x1.0xd41.0"));
        assert_ne!(model(&arm), model(&core(0, "0xd0b")));
        assert_eq!(model(""), None);
    }

    #[test]
    fn the_name_of_a_file_has_the_cpu_in_it() {
        let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let model = model(&info).or_else(other_model).unwrap_or_default();
        assert!(!model.is_empty());
        let words = model.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
        for word in words {
            assert!(name().contains(word), "{} has no {word}", name());
        }
        assert!(name().ends_with(&format!("-{}", parallel::threads())));
    }
}
