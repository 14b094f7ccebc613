//! `tidemill isa`: what AMD's compiler makes of the kernels that are meant for GPUs. Mesa's RADV compiles for hardware
//! that is not there, so this needs the driver and no GPU.

mod assembly;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use serde_json::Value;
use tidemill::{CompiledKernel, Config, DeviceInfo, Error, compiled_kernels};

use crate::Outcome;
use crate::json::{figure, line};
use crate::style::Style;
use assembly::{MainLoop, main_loop};

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Only kernels and variants whose name contains this
    part: Option<String>,
    /// Print one JSON object a line
    #[arg(long)]
    json: bool,
    /// Print the device's instructions, too
    #[arg(long, conflicts_with = "json")]
    assembly: bool,
    /// Compile for the device that Vulkan offers, not for those that are not there
    #[arg(long)]
    here: bool,
}

/// A generation of GPUs that is compiled for, and how RADV calls one of its chips.
struct Target {
    generation: &'static str,
    chip: &'static str,
    /// Which driver is asked first; the other one if it does not know the chip.
    first: fn() -> Vec<PathBuf>,
    then: fn() -> Vec<PathBuf>,
}

const TARGETS: [Target; 2] = [
    Target { generation: "RDNA2", chip: "navi21", first: installed, then: unpacked },
    Target { generation: "RDNA3", chip: "navi31", first: unpacked, then: installed },
];

pub(crate) fn run(args: &Args) -> Outcome {
    if args.here {
        return here(args);
    }
    let mut compiled = 0;
    for target in TARGETS {
        let (generation, chip) = (target.generation, target.chip);
        let mut known = false;
        for driver in (target.first)().into_iter().chain((target.then)()) {
            // The environment is read once, so each device has a process of its own.
            known = elsewhere(args, chip, &driver)?;
            if known {
                break;
            }
        }
        compiled += usize::from(known);
        if !known {
            eprintln!(
                "{generation}: no RADV here compiles for {chip}; `./dev setup --ci` unpacks one that does"
            );
        }
    }
    Ok(if compiled > 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The manifests of the system's RADV.
fn installed() -> Vec<PathBuf> {
    let folders = ["/usr/share/vulkan/icd.d", "/etc/vulkan/icd.d", "/usr/local/share/vulkan/icd.d"];
    let files = folders.iter().filter_map(|folder| std::fs::read_dir(folder).ok()).flatten().flatten();
    let radv = |file: &PathBuf| {
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with("radeon_icd") && !name.contains("i686")
    };
    files.map(|file| file.path()).filter(radv).collect()
}

/// The manifest of the newer RADV that `./dev setup --ci` unpacks, in the folder that it uses.
fn unpacked() -> Vec<PathBuf> {
    let var = |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let caches = || var("XDG_CACHE_HOME").or_else(|| var("HOME").map(|home| home.join(".cache")));
    let cache = var("TIDEMILL_CACHE").or_else(|| caches().map(|caches| caches.join("tidemill")));
    cache.map(|cache| cache.join("mesa/radeon_icd.json")).filter(|file| file.exists()).into_iter().collect()
}

/// What the process ends with in which there is no device: its driver does not know the chip.
const NO_DEVICE: u8 = 3;

/// Compiles in a process for which RADV has this chip; `false` if it does not know it.
fn elsewhere(args: &Args, chip: &str, driver: &Path) -> Result<bool, Box<dyn std::error::Error>> {
    let mut command = Command::new(std::env::current_exe()?);
    command.args(["isa", "--here"]).args(args.part.as_deref());
    command.args(args.json.then_some("--json")).args(args.assembly.then_some("--assembly"));
    command.env("RADV_FORCE_FAMILY", chip).env("NODEVICE_SELECT", "1").env("VK_DRIVER_FILES", driver);
    command.env_remove("VK_ICD_FILENAMES").env_remove("TIDEMILL_DEVICE");
    // What RADV says of hardware that is not there is no news.
    let output = command.stdin(Stdio::null()).output()?;
    std::io::stdout().lock().write_all(&output.stdout)?;
    let said = String::from_utf8_lossy(&output.stderr);
    // RADV 22.3 gives up the process over a chip that it does not know, and says so before.
    if output.status.code() == Some(i32::from(NO_DEVICE)) || said.contains("Unknown family") {
        return Ok(false);
    }
    if !output.status.success() {
        return Err(format!("{chip} by {}: {}: {}", driver.display(), output.status, said.trim()).into());
    }
    Ok(true)
}

/// A row of the table.
struct Row<'a> {
    kernel: &'a CompiledKernel,
    vgprs: u64,
    /// Registers of both kinds that went to memory.
    spills: u64,
    /// Bytes of memory per invocation for what found no register.
    scratch: u64,
    lds: u64,
    waves: u64,
    main: MainLoop,
}

impl<'a> Row<'a> {
    /// Reads the statistics by the names that RADV gives them; the name of one that is not there.
    fn new(kernel: &'a CompiledKernel) -> Result<Row<'a>, String> {
        let statistic = |name: &str| {
            let found = kernel.statistics.iter().find(|(known, _)| known == name);
            let there =
                || kernel.statistics.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>().join(", ");
            let missing =
                || format!("{}: the driver has no statistic `{name}`, but {}", kernel.kernel, there());
            found.map(|(_, value)| *value as u64).ok_or_else(missing)
        };
        Ok(Row {
            kernel,
            vgprs: statistic("VGPRs")?,
            spills: statistic("Spilled SGPRs")? + statistic("Spilled VGPRs")?,
            scratch: statistic("Scratch size")?,
            lds: statistic("LDS size")?,
            waves: statistic("Subgroups per SIMD")?,
            main: main_loop(&kernel.assembly),
        })
    }

    fn constants(&self) -> String {
        let pairs = self.kernel.constants.iter().map(|(id, bits)| format!("{id}={bits}"));
        pairs.collect::<Vec<_>>().join(" ")
    }
}

fn here(args: &Args) -> Outcome {
    let (device, kernels) = match compiled_kernels(&Config::new()) {
        Ok(compiled) => compiled,
        Err(error) if is_without_device(&error) => {
            eprintln!("{error}");
            return Ok(ExitCode::from(NO_DEVICE));
        }
        Err(error) => return Err(error.into()),
    };
    let wanted = |kernel: &&CompiledKernel| {
        let name = format!("{} {} {}", kernel.family, kernel.kernel, kernel.variant);
        args.part.as_ref().is_none_or(|part| name.contains(part.as_str()))
    };
    let rows = kernels.iter().filter(wanted).map(Row::new).collect::<Result<Vec<_>, _>>()?;
    let mut out = std::io::stdout().lock();
    if args.json {
        print_json(&mut out, &device, &rows)?
    } else {
        print_table(&mut out, args, &device, &rows)?
    }
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

fn print_json(out: &mut impl Write, device: &DeviceInfo, rows: &[Row<'_>]) -> std::io::Result<()> {
    for row in rows {
        let bits = |bits: Option<u32>| bits.map_or(Value::Null, Value::from);
        let fields = [
            ("kernel", row.kernel.kernel.as_str().into()),
            ("variant", row.kernel.variant.into()),
            ("device", device.name.as_str().into()),
            ("vgprs", row.vgprs.into()),
            ("spills", row.spills.into()),
            ("lds", row.lds.into()),
            ("waves", row.waves.into()),
            ("fma_share", figure(row.main.fma_share())),
            ("global_load_bits", bits(row.main.global_load_bits)),
            ("lds_load_bits", bits(row.main.lds_load_bits)),
            ("family", row.kernel.family.into()),
            ("constants", row.constants().into()),
            ("scratch", row.scratch.into()),
            ("driver", device.driver.as_str().into()),
        ];
        writeln!(out, "{}", line(&fields))?;
    }
    Ok(())
}

fn print_table(
    out: &mut impl Write,
    args: &Args,
    device: &DeviceInfo,
    rows: &[Row<'_>],
) -> std::io::Result<()> {
    let style = Style::stdout();
    writeln!(out, "{} {}", style.bold(&device.name), style.dim(&device.driver))?;
    let head = format!(
        "{:<30} {:<16} {:>5} {:>6} {:>6} {:>5} {:>6} {:>7} {:>7}  constants",
        "kernel", "variant", "VGPRs", "spills", "LDS", "waves", "FMA", "global", "shared"
    );
    writeln!(out, "{}", style.dim(&head))?;
    for row in rows {
        let bits = |bits: Option<u32>| bits.map_or("-".to_owned(), |bits| format!("{bits} bit"));
        writeln!(
            out,
            "{:<30} {:<16} {:>5} {:>6} {:>6} {:>5} {:>5.1}% {:>7} {:>7}  {}",
            row.kernel.kernel,
            row.kernel.variant,
            row.vgprs,
            row.spills,
            row.lds,
            row.waves,
            100.0 * row.main.fma_share(),
            bits(row.main.global_load_bits),
            bits(row.main.lds_load_bits),
            style.dim(&row.constants()),
        )?;
        if args.assembly {
            writeln!(out, "{}", row.kernel.assembly)?;
        }
    }
    writeln!(out)
}
