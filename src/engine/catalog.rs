//! The catalog: which kernels there are, in which variants, and which one a device gets.

use std::sync::OnceLock;

use super::map::{MAX_SCALARS, Map};
use super::modules::{self, MODULES};
use super::pipelines::PipelineKey;
use super::product::schemes::{self, SCHEMES, Scheme};
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
    /// Reductions.
    Reduce,
    /// Softmax and its logarithm.
    Softmax,
}

/// How the invocations of a workgroup join their partial results.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Tree {
    /// They have none in common.
    Apart,
    /// Through shared memory: GPUs, and devices without shuffles.
    Shared,
    /// By shuffles inside a subgroup: software drivers.
    Shuffle,
}

/// One way of doing a family's job.
#[derive(Debug)]
pub(crate) struct Variant {
    pub(crate) family: Family,
    pub(crate) name: &'static str,
    pub(crate) load: Load,
    pub(crate) tree: Tree,
    /// Invocations of a workgroup.
    pub(crate) local_size: u32,
    /// Groups of four elements per invocation; most of them, where that depends on the shape.
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
    variant(Family::Map, "texel-64x8", Load::Texel, Tree::Apart, 64, 8, Suits::Software),
    variant(Family::Map, "buffer-256x1", Load::Buffer, Tree::Apart, 256, 1, Suits::Gpu),
    variant(Family::Map, "buffer-64x8", Load::Buffer, Tree::Apart, 64, 8, Suits::Candidate),
    variant(Family::Reduce, "texel-shuffle", Load::Texel, Tree::Shuffle, 64, 8, Suits::Software),
    variant(Family::Reduce, "buffer-shared", Load::Buffer, Tree::Shared, 256, 8, Suits::Gpu),
    variant(Family::Reduce, "buffer-shuffle", Load::Buffer, Tree::Shuffle, 64, 8, Suits::Candidate),
    // 40 texels in each of 8 lanes hold a row of 1024 wherever it begins.
    variant(Family::Softmax, "texel-shuffle", Load::Texel, Tree::Shuffle, 64, 40, Suits::Software),
    variant(Family::Softmax, "buffer-shared", Load::Buffer, Tree::Shared, 256, 8, Suits::Gpu),
    variant(Family::Softmax, "buffer-shuffle", Load::Buffer, Tree::Shuffle, 64, 40, Suits::Candidate),
];

/// A row of the table.
const fn variant(
    family: Family,
    name: &'static str,
    load: Load,
    tree: Tree,
    local_size: u32,
    vecs: u32,
    suits: Suits,
) -> Variant {
    Variant { family, name, load, tree, local_size, vecs, suits }
}

impl Family {
    fn name(self) -> &'static str {
        match self {
            Family::Map => "map",
            Family::Reduce => "reduce",
            Family::Softmax => "softmax",
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
    reduce: &'static Variant,
    softmax: &'static Variant,
    /// Those that the device can run.
    possible: Vec<&'static Variant>,
    products: &'static Scheme,
    /// Whether kernels may load through texel views.
    texels: bool,
    /// Whether kernels may shuffle among the invocations of a subgroup.
    pub(crate) shuffles: bool,
    kernels: Vec<OnceLock<Kernel>>,
    pub(crate) limits: Limits,
}

impl Catalog {
    pub(crate) fn new(device: &DeviceInfo, wanted: &[(String, String)]) -> Result<Catalog> {
        for (family, name) in wanted {
            let all = || {
                let schemes = SCHEMES.iter().map(|s| (schemes::FAMILY, s.name));
                VARIANTS.iter().map(|v| (v.family.name(), v.name)).chain(schemes)
            };
            if !all().any(|known| known == (family.as_str(), name.as_str())) {
                let known = all().map(|(family, name)| format!("{family} {name}")).collect();
                return Err(Error::NoSuchVariant { wanted: format!("{family} {name}"), known });
            }
        }
        // The texel path needs a texel view of the engine's format.
        let software = device.kind == DeviceKind::Cpu && device.features.storage_texel;
        let suits = if software { Suits::Software } else { Suits::Gpu };
        // A variant that is asked for by name is taken in any case, and its kernels say what they lack.
        let possible = |v: &Variant| {
            (v.load != Load::Texel || device.features.storage_texel)
                && (v.tree != Tree::Shuffle || device.features.subgroup_shuffle)
        };
        let choose = |family: Family| {
            let of_family = || VARIANTS.iter().filter(move |v| v.family == family);
            let asked = wanted.iter().rev().find(|(f, _)| f == family.name());
            let asked = asked.and_then(|(_, name)| of_family().find(|v| v.name == name));
            let suited = |suits: Suits| of_family().find(move |v| v.suits == suits && possible(v));
            asked.or_else(|| suited(suits)).or_else(|| suited(Suits::Gpu)).unwrap_or(&VARIANTS[0])
        };
        Ok(Catalog {
            map: choose(Family::Map),
            reduce: choose(Family::Reduce),
            softmax: choose(Family::Softmax),
            possible: VARIANTS.iter().filter(|v| possible(v)).collect(),
            products: schemes::choose(device, wanted),
            texels: device.features.storage_texel,
            shuffles: device.features.subgroup_shuffle,
            kernels: MODULES.iter().map(|_| OnceLock::new()).collect(),
            limits: device.limits,
        })
    }

    /// The chosen variant of a family.
    pub(crate) fn variant(&self, family: Family) -> &'static Variant {
        match family {
            Family::Map => self.map,
            Family::Reduce => self.reduce,
            Family::Softmax => self.softmax,
        }
    }

    /// The chosen way of carrying out matrix products.
    pub(crate) fn products(&self) -> &'static Scheme {
        self.products
    }

    /// Every variant that the device can run, and which are in use.
    pub(crate) fn variants(&self) -> Vec<VariantInfo> {
        let info = |v: &'static Variant| VariantInfo {
            family: v.family.name(),
            name: v.name,
            in_use: std::ptr::eq(self.variant(v.family), v),
        };
        let scheme = |s: &'static Scheme| VariantInfo {
            family: schemes::FAMILY,
            name: s.name,
            in_use: std::ptr::eq(self.products, s),
        };
        let schemes = SCHEMES.iter().filter(|s| s.runs_with(self.texels, self.shuffles)).map(scheme);
        self.possible.iter().copied().map(info).chain(schemes).collect()
    }

    /// The pipelines to make ahead: what common calls will ask for.
    pub(crate) fn prewarm(&self) -> Result<Vec<PipelineKey>> {
        let mut keys = super::lower::prewarm(self)?;
        keys.extend(super::reduce::prewarm(self)?);
        keys.extend(super::softmax::prewarm(self)?);
        keys.extend(super::product::prewarm(self)?);
        Ok(keys)
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
