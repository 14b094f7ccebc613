//! What a driver's compiler makes of the catalog: the means to judge kernels by a GPU's own instructions, with or
//! without the GPU.

use crate::error::Result;
use crate::ir::pipeline_key::PipelineKey;
use crate::kernels::catalog::{Catalog, Load};
use crate::kernels::families;
use crate::kernels::modules::Module;
use crate::runtime::config::Config;
use crate::runtime::core::device_choice;
use crate::runtime::pipelines::Pipelines;
use crate::vk::choice::choose;
use crate::vk::describe;
use crate::vk::device::Device;
use crate::vk::instance::Instance;
use crate::vk::physical::DeviceInfo;
use crate::vk::pipeline::PipelineCache;

/// The family of kernels that have no variants.
const OTHERS: &str = "other";
/// Invocations of a workgroup of theirs.
const LOCAL_SIZE: u32 = 64;

/// A kernel of the catalog as a driver compiled it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct CompiledKernel {
    /// The family, as in [`VariantInfo`](crate::tune::VariantInfo); `other` for modules that no variant's common calls
    /// ask for, which are compiled once, with their defaults.
    pub family: &'static str,
    /// The variant.
    pub variant: &'static str,
    /// The SPIR-V module.
    pub kernel: String,
    /// Specialization constants: (id, bits).
    pub constants: Vec<(u32, u32)>,
    /// Whether the catalog picks it for this device, untuned, for some of those calls.
    pub default: bool,
    /// The driver's own statistics, by its own names.
    pub statistics: Vec<(String, f64)>,
    /// The device's instructions, as the driver prints them.
    pub assembly: String,
}

/// Compiles every variant of the catalog that is meant for GPUs and that the device can run, for what common calls ask
/// for (of products also for operands that lie otherwise, of those and of convolutions also of halves and with
/// epilogues), then with their defaults the modules that were not among those, but for such as load texels; and gives
/// what came of it. Nothing is dispatched, so a driver without hardware will do.
///
/// ```no_run
/// # fn main() -> tidemill::Result<()> {
/// let (device, kernels) = tidemill::tune::compiled_kernels(&tidemill::Config::new())?;
/// for kernel in &kernels {
///     println!("{} {}: {:?}", device.name, kernel.kernel, kernel.statistics);
/// }
/// # Ok(()) }
/// ```
///
/// # Errors
///
/// [`Error::NoDisassembly`](crate::Error::NoDisassembly) if the driver keeps its doings to itself; those of
/// [`Accelerator::new`](crate::Accelerator::new).
pub fn compiled_kernels(config: &Config) -> Result<(DeviceInfo, Vec<CompiledKernel>)> {
    let sink = config.on_message.clone().map(|s| s.0);
    let instance = Instance::new(config.entry.clone().map(|e| e.0), config.validation, sink)?;
    let devices = describe::enumerate(&instance)?;
    let info = choose(&devices, &device_choice(config)?)?;
    let device = Device::with_executables(instance, info)?;
    let pipelines = Pipelines::new(&device, PipelineCache::new(&device, None)?, "");
    let mut compiled: Vec<CompiledKernel> = Vec::new();
    let all = Catalog::new(families::ALL, &device.info, &[])?;
    for (family, variant) in all.meant_for_gpus() {
        let wanted = [(family.name().to_owned(), variant.to_owned())];
        let catalog = Catalog::new(families::ALL, &device.info, &wanted)?;
        // Another variant may ask for the very same pipeline, and a default may be one for some shapes alone.
        let is_used = family.classes().iter().any(|class| all.used(family, *class, true) == variant);
        let defaults = if is_used { family.inspected(&all)? } else { Vec::new() };
        let mut seen = Vec::new();
        for key in family.inspected(&catalog)? {
            if !seen.contains(&key) {
                let known = compiled.iter().find(|one| {
                    one.kernel == key.kernel.name() && one.constants[..] == key.specialization[..]
                });
                // What several variants ask for is compiled once.
                let mut one = match known {
                    Some(known) => CompiledKernel { family: family.name(), variant, ..known.clone() },
                    None => compile(&pipelines, family.name(), variant, &key)?,
                };
                // Each catalog reflects modules for itself, so kernels are compared by name.
                one.default = defaults.iter().any(|default| {
                    default.kernel.name() == key.kernel.name() && default.specialization == key.specialization
                });
                compiled.push(one);
                seen.push(key);
            }
        }
    }
    // Kernels without variants, those of other axes, and those for op lists that only recordings have.
    for module in Module::all().filter(|module| module.defines().load != Some(Load::Texel)) {
        if !compiled.iter().any(|one| one.kernel == module.name()) {
            let key = all.pipeline(module.with_defaults(LOCAL_SIZE))?;
            let mut one = compile(&pipelines, OTHERS, "defaults", &key)?;
            // Such modules go with the variants that sum up in the same way; all others are every device's.
            let shuffles = |name: &str| name.contains(".shuffle");
            one.default = !shuffles(module.name())
                || compiled.iter().any(|other| other.default && shuffles(&other.kernel));
            compiled.push(one);
        }
    }
    Ok((device.info.clone(), compiled))
}

fn compile(
    pipelines: &Pipelines,
    family: &'static str,
    variant: &'static str,
    key: &PipelineKey,
) -> Result<CompiledKernel> {
    let executable = pipelines.make(key)?.executable()?;
    Ok(CompiledKernel {
        family,
        variant,
        kernel: key.kernel.name().to_owned(),
        constants: key.specialization.to_vec(),
        default: false,
        statistics: executable.statistics,
        assembly: executable.assembly,
    })
}
