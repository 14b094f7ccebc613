//! `tidemill isa`: what the compilers of GPUs make of the kernels that are meant for them. Mesa's drivers compile for
//! hardware that is not there, so this needs the drivers and no GPU.

mod assembly;
mod print;
mod statistics;
mod targets;

use std::process::{Command, ExitCode, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use tidemill::device::DeviceInfo;
use tidemill::tune::{CompiledKernel, compiled_kernels};
use tidemill::{Config, Error};

use crate::Outcome;
use assembly::{MainLoop, main_loop};
use statistics::{Compiler, Statistics};
use targets::{NOT_JUDGED, TARGETS, Target};

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Only kernels and variants whose name contains this
    part: Option<String>,
    /// Print one JSON object a line
    #[arg(long)]
    json: bool,
    /// Only this GPU, every pipeline apart: navi21, navi31, tgl, dg2, mtl, lnl or bmg
    #[arg(long)]
    device: Option<String>,
    /// Only one GPU for each of the compilers' back ends, as the tests do
    #[arg(long, conflicts_with = "device")]
    back_ends: bool,
    /// Print the device's instructions, too
    #[arg(long, conflicts_with = "json")]
    assembly: bool,
    /// Compile for the device that Vulkan offers, not for those that are not there
    #[arg(long)]
    here: bool,
}

pub(crate) fn run(args: &Args) -> Outcome {
    if args.here {
        return here(args);
    }
    let is_wanted = |target: &Target| {
        let named = args.device.as_ref().is_none_or(|code| code == target.code);
        named && (target.often || !args.back_ends)
    };
    let targets: Vec<Target> = TARGETS.into_iter().filter(is_wanted).collect();
    if targets.is_empty() {
        let known = TARGETS.map(|target| target.code).join(", ");
        return Err(format!("no GPU is called {:?}: {known}", args.device.as_deref().unwrap_or("")).into());
    }
    let judged = judge_all(args, &targets);
    let outputs: Vec<&str> = judged.iter().filter_map(|one| one.as_deref().ok()).collect();
    if args.lists_pipelines() {
        crate::style::print(&outputs.concat())?;
    } else {
        let devices: Vec<(&str, &str)> = targets
            .iter()
            .zip(&judged)
            .filter_map(|(target, lines)| Some((target.code, lines.as_deref().ok()?)))
            .collect();
        crate::style::print(&print::matrix(&devices)?)?;
    }
    let mut all = true;
    for (target, why) in
        targets.iter().zip(&judged).filter_map(|(target, one)| Some((target, one.as_ref().err()?)))
    {
        all = false;
        eprintln!(
            "FAILED: {} {}: {why}; `./dev setup --ci` brings what is needed",
            target.vendor.name(),
            target.code
        );
    }
    if args.device.is_none() {
        for (device, why) in NOT_JUDGED {
            eprintln!("not judged: {device}: {why}");
        }
    }
    Ok(if all { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

impl Args {
    /// Whether each pipeline is listed for itself, and not all in one table of kernels and GPUs.
    fn lists_pipelines(&self) -> bool {
        self.json || self.assembly || self.device.is_some()
    }
}

/// What each GPU's process printed, or why it can't be judged. As many at a time as there are processors.
fn judge_all(args: &Args, targets: &[Target]) -> Vec<Result<String, String>> {
    let judged: Vec<_> = targets.iter().map(|_| Mutex::new(Err(String::new()))).collect();
    let next = AtomicUsize::new(0);
    let work = || {
        while let Some((target, place)) = {
            let i = next.fetch_add(1, Ordering::Relaxed);
            targets.get(i).zip(judged.get(i))
        } {
            let result = judge(args, *target);
            *place.lock().unwrap_or_else(|poisoned| poisoned.into_inner()) = result;
        }
    };
    let workers = std::thread::available_parallelism().map_or(1, |n| n.get()).min(targets.len());
    std::thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(work);
        }
    });
    judged.into_iter().map(|one| one.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner())).collect()
}

/// What the process ends with in which there is no device: its driver does not know the GPU.
const NO_DEVICE: u8 = 3;

/// Compiles in a process of its own, by the first driver that knows the GPU.
fn judge(args: &Args, target: Target) -> Result<String, String> {
    for driver in target.drivers() {
        let program = std::env::current_exe().map_err(|error| error.to_string())?;
        let mut command = Command::new(program);
        command.args(["isa", "--here", "--device", target.code]).args(args.part.as_deref());
        command.args(args.assembly.then_some("--assembly"));
        command.args((args.json || !args.lists_pipelines()).then_some("--json"));
        target.set(&mut command, &driver)?;
        // What a driver says of hardware that is not there is no news.
        let output = command.stdin(Stdio::null()).output().map_err(|error| error.to_string())?;
        let said = String::from_utf8_lossy(&output.stderr);
        // RADV 22.3 gives up the process over a chip that it does not know, and says so before.
        if output.status.code() == Some(i32::from(NO_DEVICE)) || said.contains("Unknown family") {
            continue;
        }
        if !output.status.success() {
            return Err(format!("{}: {}: {}", driver.display(), output.status, said.trim()));
        }
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    Err("no driver here compiles for it".to_owned())
}

/// A compiled kernel, judged.
struct Row<'a> {
    kernel: &'a CompiledKernel,
    statistics: Statistics,
    main: MainLoop,
}

impl<'a> Row<'a> {
    fn new(kernel: &'a CompiledKernel, compiler: Compiler, device: &DeviceInfo) -> Result<Row<'a>, String> {
        let statistics =
            compiler.read(&kernel.statistics).map_err(|error| format!("{}: {error}", kernel.kernel))?;
        let lanes = statistics.lanes.unwrap_or(device.limits.subgroup_size.into());
        Ok(Row { kernel, statistics, main: main_loop(compiler, lanes, &kernel.assembly) })
    }

    fn constants(&self) -> String {
        let pairs = self.kernel.constants.iter().map(|(id, bits)| format!("{id}={bits}"));
        pairs.collect::<Vec<_>>().join(" ")
    }

    /// Of kernels that are made of multiply-adds.
    fn instructions_per_mac(&self) -> Option<f64> {
        let of = ["matmul_tile", "matmul_rows", "matmul_dot", "conv_"];
        let is_product = of.iter().any(|name| self.kernel.kernel.starts_with(name));
        self.main.instructions_per_mac().filter(|_| is_product)
    }
}

/// Compiles for the device that Vulkan offers in this process.
fn here(args: &Args) -> Outcome {
    let (mut device, kernels) = match compiled_kernels(&Config::new()) {
        Ok(compiled) => compiled,
        Err(error) if is_without_device(&error) => {
            eprintln!("{error}");
            return Ok(ExitCode::from(NO_DEVICE));
        }
        Err(error) => return Err(error.into()),
    };
    let compiler = Compiler::of(&device.driver)
        .ok_or_else(|| format!("{}: nobody here knows the statistics of {}", device.name, device.driver))?;
    let wanted = |kernel: &&CompiledKernel| {
        let name = format!("{} {} {}", kernel.family, kernel.kernel, kernel.variant);
        args.part.as_ref().is_none_or(|part| name.contains(part.as_str()))
    };
    let rows = kernels.iter().filter(wanted).map(|kernel| Row::new(kernel, compiler, &device));
    let rows = rows.collect::<Result<Vec<_>, _>>()?;
    if let Some(code) = &args.device {
        device.name = format!("{code}: {}", device.name);
    }
    crate::style::print(&match args.json {
        true => print::json(&device, compiler, &rows),
        false => print::pipelines(&device, &rows, args.assembly),
    })?;
    Ok(ExitCode::SUCCESS)
}

/// Whether there is no device at all. One that is there and won't do is a failure like any other.
fn is_without_device(error: &Error) -> bool {
    match error {
        Error::NoDriver { .. } => true,
        Error::NoUsableDevice { refused, .. } => refused.is_empty(),
        _ => false,
    }
}
