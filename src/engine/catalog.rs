//! The catalog: which kernels there are, in which variants, and which one a device gets.

use std::sync::OnceLock;

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
    Variant { family: Family::Map, name: "texel-64x8", load: Load::Texel, local_size: 64, vecs: 8, suits: Suits::Software },
    Variant { family: Family::Map, name: "buffer-256x1", load: Load::Buffer, local_size: 256, vecs: 1, suits: Suits::Gpu },
    Variant { family: Family::Map, name: "buffer-64x8", load: Load::Buffer, local_size: 64, vecs: 8, suits: Suits::Candidate },
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
        super::map::prewarm(self)
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

/// The module of an elementwise program.
pub(crate) fn map_module(load: Load, inputs: usize) -> &'static str {
    match (load, inputs) {
        (Load::Buffer, 0 | 1) => "map.buffer.1.1",
        (Load::Buffer, 2) => "map.buffer.2.1",
        (Load::Buffer, _) => "map.buffer.3.1",
        (Load::Texel, 0 | 1) => "map.texel.1.1",
        (Load::Texel, 2) => "map.texel.2.1",
        (Load::Texel, _) => "map.texel.3.1",
    }
}
