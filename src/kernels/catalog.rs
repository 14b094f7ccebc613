//! The catalog: which kernels there are, in which variants, and which one a device gets.

use std::sync::{Arc, OnceLock};

use parking_lot::RwLock;

use crate::error::{Error, Result};
use crate::ir::branches::branch;
use crate::ir::pipeline_key::PipelineKey;
use crate::ir::value::{ValueId, Values};
use crate::kernels::bindings::texel_fits;
use crate::kernels::conv2d::schemes as convolutions;
use crate::kernels::matmul::schemes::{self, SCHEMES, Scheme};
use crate::kernels::modules::Module;
use crate::kernels::modules::constants::Specialized;
use crate::kernels::variant_table::{Choices, Class, Winner};
use crate::shape::Shape;
use crate::vk::kernel::Kernel;
use crate::vk::physical::{DeviceInfo, Limits};

/// How a kernel reads its inputs: from storage buffers on GPUs, from storage texel buffers on software drivers.
pub(crate) use crate::kernels::modules::Load;

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
    /// Whether the invocations of a subgroup store together where they can: `glsl/lib/together.glsl`.
    pub(crate) together: bool,
    suits: Suits,
}

/// What kind of device a variant or a scheme is the default for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Suits {
    Gpu,
    Software,
    /// Nobody's default: for the tuner.
    Candidate,
    /// Nobody's choice: comes to every branch of the lowering with small shapes.
    Tests,
}

impl Suits {
    /// What a device's defaults suit. Those of software drivers need texel views of the engine's format.
    pub(crate) fn of(device: &DeviceInfo) -> Suits {
        match device.workarounds.texel_loads && device.features.storage_texel {
            true => Suits::Software,
            false => Suits::Gpu,
        }
    }
}

/// Every variant there is.
static VARIANTS: &[Variant] = &[
    // 64 lanes x 8 is what `bench elementwise` likes best on lavapipe.
    variant(Family::Map, "texel-together", Load::Texel, Tree::Apart, 64, 8, Suits::Software).together(),
    variant(Family::Map, "texel-64x8", Load::Texel, Tree::Apart, 64, 8, Suits::Software),
    variant(Family::Map, "buffer-256x1", Load::Buffer, Tree::Apart, 256, 1, Suits::Gpu),
    variant(Family::Map, "buffer-64x8", Load::Buffer, Tree::Apart, 64, 8, Suits::Candidate),
    variant(Family::Reduce, "texel-shuffle", Load::Texel, Tree::Shuffle, 64, 8, Suits::Software),
    variant(Family::Reduce, "buffer-shared", Load::Buffer, Tree::Shared, 256, 8, Suits::Gpu),
    variant(Family::Reduce, "buffer-shuffle", Load::Buffer, Tree::Shuffle, 64, 8, Suits::Candidate),
    // 40 texels in each of 8 lanes hold a row of 1024 wherever it begins.
    variant(Family::Softmax, "texel-together", Load::Texel, Tree::Shuffle, 64, 40, Suits::Software)
        .together(),
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
    Variant { family, name, load, tree, local_size, vecs, together: false, suits }
}

impl Variant {
    const fn together(mut self) -> Variant {
        self.together = true;
        self
    }
}

impl Family {
    /// All of them, each at its own place.
    pub(crate) const ALL: &[Family] = &[Family::Map, Family::Reduce, Family::Softmax];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Family::Map => "map",
            Family::Reduce => "reduce",
            Family::Softmax => "softmax",
        }
    }
}

/// A kernel variant, as [`Accelerator::variants`](crate::Accelerator::variants) lists it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct VariantInfo {
    /// The family.
    pub family: &'static str,
    /// The variant's name.
    pub name: &'static str,
    /// Whether this accelerator uses it.
    pub in_use: bool,
    /// The classes of shapes that it is used for; all, unless [tuning](crate::Accelerator::tune) found it better for some.
    pub used_for: Vec<&'static str>,
}

/// The kernels and the chosen variants of one accelerator.
#[derive(Debug)]
pub(crate) struct Catalog {
    /// What is used now, and what the device would use without tuning.
    choices: RwLock<Choices>,
    defaults: Choices,
    /// Families whose variant the user has asked for: tuning leaves them alone.
    fixed: Vec<String>,
    /// Those that the device can run.
    possible: Vec<&'static Variant>,
    /// Whether kernels may load through texel views.
    texels: bool,
    /// Whether kernels may shuffle among the invocations of a subgroup: the device can, and its size is known.
    pub(crate) shuffles: bool,
    /// Whether the subgroups of products and convolutions store together: `glsl/lib/together.glsl`.
    pub(crate) together: bool,
    kernels: Arc<[OnceLock<Kernel>]>,
    pub(crate) limits: Limits,
}

impl Catalog {
    pub(crate) fn new(device: &DeviceInfo, wanted: &[(String, String)]) -> Result<Catalog> {
        for (family, name) in wanted {
            if !all_variants().any(|known| known == (family.as_str(), name.as_str())) {
                let known = all_variants().map(|(family, name)| format!("{family} {name}")).collect();
                return Err(Error::NoSuchVariant { wanted: format!("{family} {name}"), known });
            }
        }
        let suits = Suits::of(device);
        let shuffles = device.shuffles();
        let together = shuffles && device.features.subgroup_extended_types && device.features.int64;
        // A variant that is asked for by name is taken in any case, and its kernels say what they lack.
        let possible = |v: &Variant| {
            (v.load != Load::Texel || device.features.storage_texel)
                && (v.tree != Tree::Shuffle || shuffles)
                && (!v.together || together)
                && v.local_size <= device.limits.invocations.min(device.limits.local_size[0])
        };
        let choose = |family: Family| {
            let of_family = || VARIANTS.iter().filter(move |v| v.family == family);
            let asked = wanted.iter().rev().find(|(f, _)| f == family.name());
            let asked = asked.and_then(|(_, name)| of_family().find(|v| v.name == name));
            let suited = |suits: Suits| {
                let fast = |v: &&Variant| !v.together || device.workarounds.uniform_stores;
                of_family().filter(fast).find(move |v| v.suits == suits && possible(v))
            };
            let default = suited(suits).or_else(|| suited(Suits::Gpu)).or_else(|| suited(Suits::Candidate));
            asked.or(default).unwrap_or(&VARIANTS[0])
        };
        let linear = [choose(Family::Map), choose(Family::Reduce), choose(Family::Softmax)];
        let defaults =
            Choices::new(linear, schemes::choose(device, wanted), convolutions::choose(device, wanted));
        Ok(Catalog {
            choices: RwLock::new(defaults),
            defaults,
            fixed: wanted.iter().map(|(family, _)| family.clone()).collect(),
            possible: VARIANTS.iter().filter(|v| possible(v)).collect(),
            texels: device.features.storage_texel,
            shuffles,
            together: together && device.workarounds.uniform_stores,
            kernels: Module::all().map(|_| OnceLock::new()).collect(),
            limits: device.limits,
        })
    }

    /// The chosen variant of a family, for work on so many elements.
    pub(crate) fn variant(&self, family: Family, elements: u64) -> &'static Variant {
        self.choices.read().variant(family, Class::of_elements(elements))
    }

    /// The chosen way of carrying out products whose result has `m` rows and `n` columns.
    pub(crate) fn products(&self, m: u32, n: u32) -> &'static Scheme {
        self.choices.read().products(Class::of_product(m, n))
    }

    /// The chosen way of carrying out convolutions with so many channels of the result in a group, and so many elements.
    pub(crate) fn convolutions(&self, rows: u32, elements: u64) -> &'static convolutions::Scheme {
        self.choices.read().convolutions(Class::of_convolution(rows, elements))
    }

    /// Uses what tuning has found, where the user has not asked for something else and the device can run it. Where
    /// nothing was found the default holds.
    pub(crate) fn adopt(&self, winners: &[Winner]) {
        let mut choices = self.defaults;
        for winner in winners.iter().filter(|winner| !self.is_fixed(winner.family)) {
            let Winner { family, class, variant } = *winner;
            if family == schemes::FAMILY {
                let scheme = self.possible_products().find(|s| s.name == variant);
                scheme.into_iter().for_each(|scheme| choices.set_products(class, scheme));
            } else if family == convolutions::FAMILY {
                let scheme = self.possible_convolutions().find(|s| s.name == variant);
                scheme.into_iter().for_each(|scheme| choices.set_convolutions(class, scheme));
            } else {
                let variant = self.possible.iter().find(|v| v.family.name() == family && v.name == variant);
                variant.into_iter().for_each(|variant| choices.set_variant(class, variant));
            }
        }
        *self.choices.write() = choices;
    }

    /// Whether the user has asked for a variant of this family.
    pub(crate) fn is_fixed(&self, family: &str) -> bool {
        self.fixed.iter().any(|fixed| fixed == family)
    }

    /// A catalog of the same kernels that uses this variant for all shapes: to try it out.
    pub(crate) fn trying(&self, family: &'static str, variant: &'static str) -> Catalog {
        let catalog = Catalog {
            choices: RwLock::new(self.defaults),
            defaults: self.defaults,
            fixed: Vec::new(),
            possible: self.possible.clone(),
            texels: self.texels,
            shuffles: self.shuffles,
            together: self.together,
            kernels: self.kernels.clone(),
            limits: self.limits,
        };
        let winner = |&class: &Class| Winner { family, class, variant };
        catalog.adopt(&Class::all_of(family).iter().map(winner).collect::<Vec<_>>());
        catalog
    }

    /// The families, each with the variants that the device can run and that may win.
    pub(crate) fn candidates(&self) -> Vec<(&'static str, Vec<&'static str>)> {
        let mut all = self.all_possible();
        all.retain(|(.., suits)| *suits != Suits::Tests);
        let of = |family| all.iter().filter(move |(known, ..)| *known == family).map(|(_, name, _)| *name);
        families().map(|family| (family, of(family).collect())).collect()
    }

    fn possible_products(&self) -> impl Iterator<Item = &'static Scheme> {
        SCHEMES.iter().filter(|s| s.runs_with(self.texels, self.shuffles, &self.limits))
    }

    fn possible_convolutions(&self) -> impl Iterator<Item = &'static convolutions::Scheme> {
        convolutions::SCHEMES.iter().filter(|s| s.runs_with(self.texels, self.shuffles, &self.limits))
    }

    /// Family and name of every variant that the device can run, and whose default it is.
    fn all_possible(&self) -> Vec<(&'static str, &'static str, Suits)> {
        let linear = self.possible.iter().map(|v| (v.family.name(), v.name, v.suits));
        let products = self.possible_products().map(|s| (schemes::FAMILY, s.name, s.suits));
        let convolutions = self.possible_convolutions().map(|s| (convolutions::FAMILY, s.name, s.suits));
        linear.chain(products).chain(convolutions).collect()
    }

    /// Where something else than the default is used, since tuning has found it.
    pub(crate) fn tuned(&self) -> Vec<Winner> {
        let all =
            families().flat_map(|family| Class::all_of(family).iter().map(move |&class| (family, class)));
        let differs = |&(family, class): &(&'static str, Class)| {
            self.used(family, class, false) != self.used(family, class, true)
        };
        let winner = |(family, class)| Winner { family, class, variant: self.used(family, class, false) };
        all.filter(differs).map(winner).collect()
    }

    /// What is used for a class of shapes; by default, or now.
    pub(crate) fn used(&self, family: &'static str, class: Class, by_default: bool) -> &'static str {
        let choices = if by_default { self.defaults } else { *self.choices.read() };
        match Family::ALL.iter().find(|known| known.name() == family) {
            Some(&family) => choices.variant(family, class).name,
            None if family == convolutions::FAMILY => choices.convolutions(class).name,
            None => choices.products(class).name,
        }
    }

    /// Every variant that the device can run, and which are in use.
    pub(crate) fn variants(&self) -> Vec<VariantInfo> {
        let info = |family: &'static str, name: &'static str| {
            let classes = Class::all_of(family).iter();
            let uses = |class: &&Class| self.used(family, **class, false) == name;
            let used_for: Vec<&'static str> = classes.filter(uses).map(|class| class.name()).collect();
            VariantInfo { family, name, in_use: !used_for.is_empty(), used_for }
        };
        self.all_possible().into_iter().map(|(family, name, _)| info(family, name)).collect()
    }

    /// The pipelines to make ahead: what common calls will ask for.
    pub(crate) fn prewarm(&self) -> Result<Vec<PipelineKey>> {
        let mut keys = Vec::new();
        for family in families() {
            keys.extend(self.prewarm_family(family)?);
        }
        Ok(keys)
    }

    /// The load path that is wanted, where texel views can span all of the values. For kernels of four inputs.
    pub(crate) fn load_of(
        &self,
        wanted: Load,
        values: &Values,
        inputs: impl IntoIterator<Item = ValueId>,
    ) -> Load {
        let fits = |id: ValueId| texel_fits(values, id, &self.limits);
        if branch!("load: texels wanted", wanted == Load::Texel)
            && branch!("load: texel bindings", self.limits.texel_bindings >= 4)
            && branch!("load: texels fit", inputs.into_iter().all(fits))
        {
            Load::Texel
        } else {
            Load::Buffer
        }
    }

    /// Refuses inputs, by shape and size, that no storage binding can span.
    pub(crate) fn check_inputs(
        &self,
        op: &'static str,
        load: Load,
        inputs: impl IntoIterator<Item = (Shape, u64)>,
    ) -> Result<()> {
        let limit = self.limits.storage_range_bytes;
        match inputs.into_iter().find(|(_, bytes)| load == Load::Buffer && *bytes > limit) {
            Some((shape, bytes)) => {
                branch!("load: input beyond a binding");
                Err(Error::Binding { op, shape, bytes, limit })
            }
            None => Ok(()),
        }
    }

    /// Those of one family. Convolutions have none: their pipelines know the kernel's extents.
    pub(crate) fn prewarm_family(&self, family: &str) -> Result<Vec<PipelineKey>> {
        match family {
            "map" => crate::kernels::elementwise::prewarm(self),
            "reduce" => crate::kernels::axis::reduce::prewarm(self),
            "softmax" => crate::kernels::axis::softmax::prewarm(self),
            schemes::FAMILY => crate::kernels::matmul::prewarm(self),
            _ => Ok(Vec::new()),
        }
    }

    /// The pipelines of one family by which its chosen variant is judged.
    pub(crate) fn inspected_family(&self, family: &str) -> Result<Vec<PipelineKey>> {
        match family {
            schemes::FAMILY => crate::kernels::matmul::inspected(self),
            convolutions::FAMILY => crate::kernels::conv2d::inspected(self),
            _ => self.prewarm_family(family),
        }
    }

    /// Family and name of the variants that the device can run and that are meant for GPUs, or may win there.
    pub(crate) fn meant_for_gpus(&self) -> Vec<(&'static str, &'static str)> {
        let all = self.all_possible().into_iter();
        let meant = |suits| matches!(suits, Suits::Gpu | Suits::Candidate);
        all.filter(|(.., suits)| meant(*suits)).map(|(family, name, _)| (family, name)).collect()
    }

    /// The kernel of an embedded module; reflected when first asked for.
    pub(crate) fn kernel(&self, module: Module) -> Result<&Kernel> {
        // Tables of modules are many: that each entry is used is seen here.
        #[cfg(debug_assertions)]
        crate::ir::branches::note(module.name(), None);
        let cell = &self.kernels[module.index()];
        if let Some(kernel) = cell.get() {
            return Ok(kernel);
        }
        let kernel = Kernel::embedded(module.name(), module.words())?;
        Ok(cell.get_or_init(|| kernel))
    }

    /// The pipeline of a module and its constants.
    pub(crate) fn pipeline(&self, kernel: Specialized) -> Result<PipelineKey> {
        let Specialized { module, specialization } = kernel;
        Ok(PipelineKey { kernel: self.kernel(module)?.clone(), specialization })
    }
}

/// The names of all families.
fn families() -> impl Iterator<Item = &'static str> {
    Family::ALL.iter().map(|family| family.name()).chain([schemes::FAMILY, convolutions::FAMILY])
}

/// Family and name of every variant there is.
fn all_variants() -> impl Iterator<Item = (&'static str, &'static str)> {
    let products = SCHEMES.iter().map(|s| (schemes::FAMILY, s.name));
    let convolutions = convolutions::SCHEMES.iter().map(|s| (convolutions::FAMILY, s.name));
    VARIANTS.iter().map(|v| (v.family.name(), v.name)).chain(products).chain(convolutions)
}

/// The winner that a file names, if there is such a family, class and variant.
pub(crate) fn find_winner(family: &str, class: &str, variant: &str) -> Option<Winner> {
    let (family, variant) = all_variants().find(|known| *known == (family, variant))?;
    let class = *Class::all_of(family).iter().find(|known| known.name() == class)?;
    Some(Winner { family, class, variant })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vk::physical::DeviceKind;

    /// What the thread in the background makes ahead keeps a core busy on drivers that compile slowly.
    #[test]
    fn at_most_32_pipelines_are_made_ahead_on_any_kind_of_device() {
        for kind in [DeviceKind::Discrete, DeviceKind::Integrated, DeviceKind::Cpu] {
            let mut device = DeviceInfo::example(kind);
            // Large tensors are read through texel views on the devices that there are.
            device.limits.texel_elements = 1 << 27;
            let catalog = Catalog::new(&device, &[]).unwrap();
            let keys = catalog.prewarm().unwrap();
            let each: Vec<_> = families().map(|f| (f, catalog.prewarm_family(f).unwrap().len())).collect();
            assert!((8..=32).contains(&keys.len()), "{} on {kind}: {each:?}", keys.len());
        }
    }
}
