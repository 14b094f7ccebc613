//! The catalog: which kernels there are, in which variants, and which one a device gets.

use std::sync::OnceLock;

use super::map::{MAX_SCALARS, Map};
use super::modules::{self, MODULES};
use super::pipelines::PipelineKey;
use crate::error::{Error, Result};
use crate::vk::kernel::Kernel;
use crate::vk::physical::{DeviceInfo, DeviceKind, Limits};

/// How a kernel reads its inputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Load {
    /// Storage buffers: GPUs.
    Buffer,
    /// Storage texel buffers: software drivers.
    Texel,
}

/// Kernels that do the same job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Family {
    /// Elementwise programs.
    Map,
}

/// One way of doing a family's job.
#[derive(Debug)]
pub(crate) struct Variant {
    pub(crate) family: Family,
    pub(crate) name: &'static str,
    pub(crate) load: Load,
    /// Invocations of a workgroup.
    pub(crate) local_size: u32,
    /// Groups of four elements per invocation.
    pub(crate) vecs: u32,
    suits: Suits,
}

/// What kind of device a variant is the default for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Suits {
    Gpu,
    Software,
    /// Nobody's default: for tests and for the tuner.
    Candidate,
}

/// Every variant there is.
static VARIANTS: &[Variant] = &[
    // 64 lanes x 8 is what `bench elementwise` likes best on lavapipe.
    Variant {
        family: Family::Map,
        name: "texel-64x8",
        load: Load::Texel,
        local_size: 64,
        vecs: 8,
        suits: Suits::Software,
    },
    Variant {
        family: Family::Map,
        name: "buffer-256x1",
        load: Load::Buffer,
        local_size: 256,
        vecs: 1,
        suits: Suits::Gpu,
    },
    Variant {
        family: Family::Map,
        name: "buffer-64x8",
        load: Load::Buffer,
        local_size: 64,
        vecs: 8,
        suits: Suits::Candidate,
    },
];

impl Family {
    fn name(self) -> &'static str {
        match self {
            Family::Map => "map",
        }
    }
}

/// A kernel variant, as [`Accelerator::variants`](crate::Accelerator::variants) lists it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct VariantInfo {
    /// The family.
    pub family: &'static str,
    /// The variant's name.
    pub name: &'static str,
    /// Whether this accelerator uses it.
    pub in_use: bool,
}

/// The kernels and the chosen variants of one accelerator.
#[derive(Debug)]
pub(crate) struct Catalog {
    map: &'static Variant,
    kernels: Vec<OnceLock<Kernel>>,
    pub(crate) limits: Limits,
}

impl Catalog {
    pub(crate) fn new(device: &DeviceInfo, wanted: &[(String, String)]) -> Result<Catalog> {
        for (family, name) in wanted {
            if !VARIANTS.iter().any(|v| v.family.name() == family && v.name == name) {
                let known = VARIANTS.iter().map(|v| format!("{} {}", v.family.name(), v.name)).collect();
                return Err(Error::NoSuchVariant { wanted: format!("{family} {name}"), known });
            }
        }
        // The texel path needs a texel view of the engine's format.
        let software = device.kind == DeviceKind::Cpu && device.features.storage_texel;
        let suits = if software { Suits::Software } else { Suits::Gpu };
        let choose = |family: Family| {
            let of_family = || VARIANTS.iter().filter(move |v| v.family == family);
            let asked = wanted.iter().rev().find(|(f, _)| f == family.name());
            let asked = asked.and_then(|(_, name)| of_family().find(|v| v.name == name));
            asked.or_else(|| of_family().find(|v| v.suits == suits)).unwrap_or(&VARIANTS[0])
        };
        Ok(Catalog {
            map: choose(Family::Map),
            kernels: MODULES.iter().map(|_| OnceLock::new()).collect(),
            limits: device.limits,
        })
    }

    /// The chosen variant of a family.
    pub(crate) fn variant(&self, family: Family) -> &'static Variant {
        match family {
            Family::Map => self.map,
        }
    }

    /// Every variant, and which are in use.
    pub(crate) fn variants(&self) -> Vec<VariantInfo> {
        let info = |v: &'static Variant| VariantInfo {
            family: v.family.name(),
            name: v.name,
            in_use: std::ptr::eq(self.variant(v.family), v),
        };
        VARIANTS.iter().map(info).collect()
    }

    /// The pipelines to make ahead: what common calls will ask for.
    pub(crate) fn prewarm(&self) -> Result<Vec<PipelineKey>> {
        super::lower::prewarm(self)
    }

    /// The kernel of an embedded module; reflected when first asked for.
    pub(crate) fn kernel(&self, module: &'static str) -> Result<&Kernel> {
        let index = modules::find(module).ok_or_else(|| Error::NoSuchVariant {
            wanted: module.to_owned(),
            known: MODULES.iter().map(|m| m.name.to_owned()).collect(),
        })?;
        let cell = &self.kernels[index];
        if let Some(kernel) = cell.get() {
            return Ok(kernel);
        }
        let kernel = Kernel::embedded(module, MODULES[index].words())?;
        Ok(cell.get_or_init(|| kernel))
    }
}

/// A module of `glsl/map.comp`, and what it has room for.
#[derive(Debug)]
pub(crate) struct MapModule {
    pub(crate) name: &'static str,
    load: Load,
    pub(crate) inputs: usize,
    steps: usize,
    pub(crate) outputs: usize,
    /// Whether it has the operations that take long to compile.
    heavy: bool,
}

const fn map(name: &'static str, load: Load, [inputs, steps, outputs]: [usize; 3], heavy: bool) -> MapModule {
    MapModule { name, load, inputs, steps, outputs, heavy }
}

/// What compiles fastest first.
static MAP_MODULES: &[MapModule] = &[
    map("map.buffer.1.1.1.light", Load::Buffer, [1, 1, 1], false),
    map("map.buffer.2.1.1.light", Load::Buffer, [2, 1, 1], false),
    map("map.buffer.3.1.1.light", Load::Buffer, [3, 1, 1], false),
    map("map.buffer.1.1.1.all", Load::Buffer, [1, 1, 1], true),
    map("map.buffer.2.1.1.all", Load::Buffer, [2, 1, 1], true),
    map("map.buffer.4.16.4.light", Load::Buffer, [4, 16, 4], false),
    map("map.buffer.4.4.1.all", Load::Buffer, [4, 4, 1], true),
    map("map.texel.1.1.1.light", Load::Texel, [1, 1, 1], false),
    map("map.texel.2.1.1.light", Load::Texel, [2, 1, 1], false),
    map("map.texel.3.1.1.light", Load::Texel, [3, 1, 1], false),
    map("map.texel.1.1.1.all", Load::Texel, [1, 1, 1], true),
    map("map.texel.2.1.1.all", Load::Texel, [2, 1, 1], true),
    map("map.texel.4.16.4.light", Load::Texel, [4, 16, 4], false),
    map("map.texel.4.4.1.all", Load::Texel, [4, 4, 1], true),
];

/// Whether some module can run the program. Fusion asks before it joins.
pub(crate) fn map_fits(program: &Map) -> bool {
    program.scalars.len() <= MAX_SCALARS && MAP_MODULES.iter().any(|module| module.holds(program))
}

/// The module of an elementwise program: the first that holds it.
pub(crate) fn map_module(load: Load, program: &Map) -> &'static MapModule {
    // Ops append programs of one step, which always fit; fusion joins only what does.
    let found = MAP_MODULES.iter().find(|module| module.load == load && module.holds(program));
    found.unwrap_or(&MAP_MODULES[0])
}

impl MapModule {
    fn holds(&self, program: &Map) -> bool {
        program.inputs.len() <= self.inputs
            && program.steps.len() <= self.steps
            && program.outputs.len() <= self.outputs
            && (self.heavy || !program.steps.iter().any(|step| step.op.is_heavy()))
    }
}
