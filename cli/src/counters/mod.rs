//! `tidemill counters`: the work of a fixed list of programs on the device, in figures that don't depend on time. They
//! are in `tests/counters.txt`, so that reviewers see a change of the work. `./dev counters` runs it with the settings
//! that it needs.

mod figures;
mod programs;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use tidemill::device::DeviceInfo;
use tidemill::{Accelerator, Config, Prewarm};

use self::figures::{Bound, Table, differences};
use crate::Outcome;
use crate::bench::benchmark::Result;
use crate::style::print;

/// Arguments of `counters`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Only the programs whose name contains this, printed instead of written
    name: Option<String>,
    /// Compare with the file instead of writing it
    #[arg(long, conflicts_with = "name")]
    check: bool,
    /// The file with the figures
    #[arg(long, default_value = "tests/counters.txt")]
    file: PathBuf,
    /// The folder with the modules
    #[arg(long, default_value = "spirv")]
    spirv: PathBuf,
}

/// The driver whose figures these are: which kernels run, and how, depends on it.
const DEVICE: &str = "llvmpipe";
const DRIVER: &str = "Mesa 22.3.6 ";
/// The threads that it runs on.
const THREADS: &str = "2";

/// Modules that the crate may have, and pipelines that it may make ahead where nothing was used before.
const MOST_MODULES: u64 = 200;
const MOST_PREWARMED: u64 = 32;

/// Runs one of the programs, which checks its results.
pub(crate) fn run_program(name: &str, gpu: &Accelerator) -> Result<()> {
    let program = programs::all()?.into_iter().find(|program| program.name == name);
    let program = program.ok_or_else(|| format!("there is no program {name}"))?;
    (program.run)(gpu)
}

pub(crate) fn run(args: &Args) -> Outcome {
    let Some(device) = Accelerator::devices()?.into_iter().find(is_the_one) else {
        let found: Vec<String> =
            Accelerator::devices()?.iter().map(|d| format!("{} ({})", d.name, d.driver)).collect();
        let found = found.join(", ");
        print(&format!(
            "counters: NOT COMPARED. They are of lavapipe, {DRIVER}and the devices here are {found}.\n"
        ))?;
        return Ok(ExitCode::SUCCESS);
    };
    if std::env::var("LP_NUM_THREADS").as_deref() != Ok(THREADS) {
        return Err(format!("LP_NUM_THREADS must be {THREADS}: run ./dev counters, which sets it").into());
    }
    let config = || Config::new().device_index(device.index).prewarm(Prewarm::Off).tuned(false).no_cache();
    let mut table = Table::default();
    for program in programs::all()? {
        if args.name.as_ref().is_none_or(|part| program.name.contains(part.as_str())) {
            let gpu = Accelerator::new(&config().fusion(program.fused))?;
            (program.run)(&gpu).map_err(|error| format!("{}: {error}", program.name))?;
            gpu.synchronize()?;
            table.rows.push((program.name, gpu.stats().into()));
        }
    }
    if args.name.is_some() {
        print(&table.to_string())?;
        return Ok(ExitCode::SUCCESS);
    }
    let (modules, bytes) = modules(&args.spirv)?;
    table.whole = vec![
        Bound { what: "modules in spirv/", figure: modules, most: Some(MOST_MODULES) },
        Bound { what: "bytes of SPIR-V", figure: bytes, most: None },
        Bound { what: "pipelines of the prewarm", figure: prewarmed(config())?, most: Some(MOST_PREWARMED) },
    ];
    let text = table.to_string();
    let exceeded: Vec<String> = table.whole.iter().filter_map(Bound::exceeded).collect();
    if !exceeded.is_empty() {
        return Err(exceeded.join("; ").into());
    }
    if args.check { check(&args.file, &text) } else { write(&args.file, &text) }
}

fn is_the_one(device: &DeviceInfo) -> bool {
    device.name.starts_with(DEVICE) && device.driver.contains(DRIVER) && device.refused.is_empty()
}

/// How many modules there are, and their bytes.
fn modules(folder: &Path) -> Result<(u64, u64)> {
    let (mut modules, mut bytes) = (0, 0);
    for file in std::fs::read_dir(folder).map_err(|error| format!("{}: {error}", folder.display()))? {
        let file = file?;
        if file.path().extension().is_some_and(|extension| extension == "spv") {
            modules += 1;
            bytes += file.metadata()?.len();
        }
    }
    Ok((modules, bytes))
}

/// How many pipelines are made ahead where nothing was used before. Dropping the accelerator ends it.
fn prewarmed(config: Config) -> Result<u64> {
    let gpu = Accelerator::new(&config.prewarm(Prewarm::Background))?;
    loop {
        let status = gpu.prewarm_status();
        if status.catalog > 0 || status.finished {
            return Ok(status.catalog as u64);
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn write(file: &Path, text: &str) -> Outcome {
    std::fs::write(file, text).map_err(|error| format!("{}: {error}", file.display()))?;
    print(&format!("counters: {} written\n", file.display()))?;
    Ok(ExitCode::SUCCESS)
}

fn check(file: &Path, text: &str) -> Outcome {
    let kept = std::fs::read_to_string(file).map_err(|error| format!("{}: {error}", file.display()))?;
    let differences = differences(&kept, text);
    if differences.is_empty() {
        print(&format!("counters: as in {}\n", file.display()))?;
        return Ok(ExitCode::SUCCESS);
    }
    print(&differences)?;
    let (file, hint) = (file.display(), "if that is meant, run ./dev counters and commit the file");
    Err(format!("the figures differ from those of {file}: {hint}").into())
}
