//! The catalog: what a family of kernels declares, and which of its variants a device gets.

use std::fmt;
use std::sync::{Arc, OnceLock};

use parking_lot::RwLock;

use crate::error::{Error, Result};
use crate::ir::branches::branch;
use crate::ir::pipeline_key::PipelineKey;
use crate::ir::value::{ValueId, Values};
use crate::kernels::bindings::texel_fits;
use crate::kernels::modules::Module;
use crate::kernels::modules::constants::Specialized;
use crate::kernels::variant::{Abilities, AnyVariant, Class, DefaultFor, Winner};
use crate::shape::Shape;
use crate::vk::architecture::Architecture;
use crate::vk::kernel::Kernel;
use crate::vk::physical::{DeviceInfo, Limits};

/// How a kernel reads its inputs: from storage buffers on GPUs, from storage texel buffers on software drivers.
pub(crate) use crate::kernels::modules::Load;

/// A family: kernels that do the same work. The rest of the crate knows only this of them. Each family's folder
/// declares one, and `families.rs` lists them.
#[derive(Debug)]
pub(crate) struct Family<V: 'static> {
    /// Its name for users and on disk.
    pub(crate) name: &'static str,
    /// The classes of shapes for which it chooses variants apart. They stand first in [`Class::ALL`].
    pub(crate) classes: &'static [Class],
    /// Of the variants for one kind of device, the first that the device can run is its default.
    pub(crate) variants: &'static [V],
    /// The operands of a problem in the middle of a class, for the tuner. Software drivers (the flag) get less to do,
    /// so that the slowest candidate takes tenths of a second.
    pub(crate) problem: fn(Class, bool) -> Vec<Shape>,
    /// The pipelines to make ahead: what common calls ask for.
    pub(crate) prewarm: fn(&Catalog) -> Result<Vec<PipelineKey>>,
    /// The pipelines by which the chosen variant is judged.
    pub(crate) inspected: fn(&Catalog) -> Result<Vec<PipelineKey>>,
}

/// A family, whatever its variants are made of.
pub(crate) trait AnyFamily: fmt::Debug + Sync {
    fn name(&self) -> &'static str;

    fn classes(&self) -> &'static [Class];

    fn variants(&self) -> Vec<&'static dyn AnyVariant>;

    fn problem(&self, class: Class, software: bool) -> Vec<Shape>;

    fn prewarm(&self, catalog: &Catalog) -> Result<Vec<PipelineKey>>;

    fn inspected(&self, catalog: &Catalog) -> Result<Vec<PipelineKey>>;
}

impl<V: AnyVariant> AnyFamily for Family<V> {
    fn name(&self) -> &'static str {
        self.name
    }

    fn classes(&self) -> &'static [Class] {
        self.classes
    }

    fn variants(&self) -> Vec<&'static dyn AnyVariant> {
        self.variants.iter().map(|variant| variant as &dyn AnyVariant).collect()
    }

    fn problem(&self, class: Class, software: bool) -> Vec<Shape> {
        (self.problem)(class, software)
    }

    fn prewarm(&self, catalog: &Catalog) -> Result<Vec<PipelineKey>> {
        (self.prewarm)(catalog)
    }

    fn inspected(&self, catalog: &Catalog) -> Result<Vec<PipelineKey>> {
        (self.inspected)(catalog)
    }
}

/// Every family there is.
pub(crate) type Families = &'static [&'static dyn AnyFamily];

/// The places, in its family's table, of the variants for each class.
type Choice = [usize; Class::ALL.len()];

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
    /// The classes of shapes that it is used for; all, unless [tuning](crate::Accelerator::tune) found it better for
    /// some.
    pub used_for: Vec<&'static str>,
}

/// The kernels and the chosen variants of one accelerator.
#[derive(Debug)]
pub(crate) struct Catalog {
    pub(crate) families: Families,
    /// What is used now, and what the device would use without tuning: for each family.
    choices: RwLock<Vec<Choice>>,
    defaults: Vec<Choice>,
    /// Families whose variant the user has asked for: tuning leaves them alone.
    fixed: Vec<String>,
    /// Whether kernels may load through texel views.
    texels: bool,
    /// Whether kernels may shuffle among the invocations of a subgroup: the device can, and its size is known.
    pub(crate) shuffles: bool,
    /// Whether subgroups can use uniform stores, and
    can_store_uniformly: bool,
    /// whether those of matmuls and convolutions do: `glsl/lib/uniform_store.glsl`.
    pub(crate) uniform_store: bool,
    kernels: Arc<[OnceLock<Kernel>]>,
    /// The device's, with the subgroup size that kernels ask for.
    pub(crate) limits: Limits,
    /// What shapes the kernels, besides the limits.
    pub(crate) architecture: Architecture,
}

impl Catalog {
    pub(crate) fn new(
        families: Families,
        device: &DeviceInfo,
        wanted: &[(String, String)],
    ) -> Result<Catalog> {
        let all = || {
            let names = |family: &'static dyn AnyFamily| {
                family.variants().into_iter().map(|variant| (family.name(), variant.name()))
            };
            families.iter().flat_map(move |family| names(*family))
        };
        for (family, name) in wanted {
            if !all().any(|known| known == (family.as_str(), name.as_str())) {
                let known = all().map(|(family, name)| format!("{family} {name}")).collect();
                return Err(Error::NoSuchVariant { wanted: format!("{family} {name}"), known });
            }
        }
        let shuffles = device.shuffles();
        let can_store_uniformly =
            shuffles && device.features.subgroup_extended_types && device.features.int64;
        let architecture = device.architecture();
        let mut catalog = Catalog {
            families,
            choices: RwLock::default(),
            defaults: Vec::new(),
            fixed: wanted.iter().map(|(family, _)| family.clone()).collect(),
            texels: device.features.storage_texel,
            shuffles,
            can_store_uniformly,
            uniform_store: can_store_uniformly && device.workarounds.uniform_stores,
            kernels: Module::all().map(|_| OnceLock::new()).collect(),
            limits: Limits { subgroup_size: architecture.lanes, ..device.limits },
            architecture,
        };
        // A variant that is asked for by name is taken in any case, and its kernels say what they lack.
        let choose = |family: &'static dyn AnyFamily| {
            let asked = wanted.iter().rev().find(|(known, _)| known == family.name());
            let place = |name: &String| family.variants().iter().position(|v| v.name() == name);
            let chosen = asked.and_then(|(_, name)| place(name));
            [chosen.unwrap_or_else(|| catalog.default_of(family, device)); Class::ALL.len()]
        };
        catalog.defaults = families.iter().map(|family| choose(*family)).collect();
        catalog.choices = RwLock::new(catalog.defaults.clone());
        Ok(catalog)
    }

    /// The place of the variant that a device gets if neither the user nor tuning has found another.
    fn default_of(&self, family: &'static dyn AnyFamily, device: &DeviceInfo) -> usize {
        let fast =
            |variant: &dyn AnyVariant| !variant.stores_uniformly() || device.workarounds.uniform_stores;
        let suited = |default_for: DefaultFor| {
            self.possible(family).into_iter().find(|(_, v)| v.default_for() == default_for && fast(*v))
        };
        let found = suited(DefaultFor::of(device)).or_else(|| suited(DefaultFor::Gpu));
        let found = found.or_else(|| suited(DefaultFor::Candidate)).map(|(place, _)| place);
        // On the smallest devices none runs as it is. Lowering makes workgroups of those for GPUs smaller, and they
        // need no shuffles.
        found
            .or_else(|| family.variants().iter().position(|v| v.default_for() == DefaultFor::Gpu))
            .unwrap_or(0)
    }

    /// The variants of a family that the device can run, with their places.
    fn possible(&self, family: &'static dyn AnyFamily) -> Vec<(usize, &'static dyn AnyVariant)> {
        let Catalog {
            texels, shuffles, can_store_uniformly: uniform_store, ref limits, architecture, ..
        } = *self;
        let device = Abilities { texels, shuffles, uniform_store, limits, architecture };
        family.variants().into_iter().enumerate().filter(|(_, v)| v.runs_with(&device)).collect()
    }

    /// The place of a family.
    fn place(&self, family: &str) -> Option<usize> {
        self.families.iter().position(|known| known.name() == family)
    }

    /// The chosen variant of a family for a class of shapes.
    pub(crate) fn variant<V: AnyVariant>(&self, family: &Family<V>, class: Class) -> &'static V {
        let chosen = self.place(family.name).map_or(0, |place| self.choices.read()[place][class as usize]);
        &family.variants[chosen]
    }

    /// Uses the winners of tuning, unless the user has asked for another variant or the device can't run them. Other
    /// classes keep the default.
    pub(crate) fn adopt(&self, winners: &[Winner]) {
        let mut choices = self.defaults.clone();
        for winner in winners.iter().filter(|winner| !self.is_fixed(winner.family)) {
            let Some(place) = self.place(winner.family) else { continue };
            let possible = self.possible(self.families[place]);
            if let Some((variant, _)) = possible.iter().find(|(_, v)| v.name() == winner.variant) {
                choices[place][winner.class as usize] = *variant;
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
            families: self.families,
            choices: RwLock::default(),
            defaults: self.defaults.clone(),
            fixed: Vec::new(),
            texels: self.texels,
            shuffles: self.shuffles,
            can_store_uniformly: self.can_store_uniformly,
            uniform_store: self.uniform_store,
            kernels: self.kernels.clone(),
            limits: self.limits,
            architecture: self.architecture,
        };
        let winners = Class::ALL.iter().map(|&class| Winner { family, class, variant });
        catalog.adopt(&winners.collect::<Vec<_>>());
        catalog
    }

    /// The families, each with the variants that the device can run and that may win.
    pub(crate) fn candidates(&self) -> Vec<(&'static dyn AnyFamily, Vec<&'static str>)> {
        let of = |family| {
            let all = self.possible(family).into_iter().filter(|(_, v)| v.default_for() != DefaultFor::Tests);
            (family, all.map(|(_, variant)| variant.name()).collect())
        };
        self.families.iter().map(|family| of(*family)).collect()
    }

    /// Where something else than the default is used, since tuning has found it.
    pub(crate) fn tuned(&self) -> Vec<Winner> {
        let mut winners = Vec::new();
        for &family in self.families {
            for &class in family.classes() {
                let variant = self.used(family, class, false);
                if variant != self.used(family, class, true) {
                    winners.push(Winner { family: family.name(), class, variant });
                }
            }
        }
        winners
    }

    /// The variant for a class of shapes: the default one, or the current one.
    pub(crate) fn used(
        &self,
        family: &'static dyn AnyFamily,
        class: Class,
        by_default: bool,
    ) -> &'static str {
        let of =
            |choices: &[Choice]| self.place(family.name()).map_or(0, |place| choices[place][class as usize]);
        let chosen = if by_default { of(&self.defaults) } else { of(&self.choices.read()) };
        family.variants()[chosen].name()
    }

    /// Every variant that the device can run, and which are in use.
    pub(crate) fn variants(&self) -> Vec<VariantInfo> {
        let info = |family: &'static dyn AnyFamily, name: &'static str| {
            let classes = family.classes().iter();
            let uses = |class: &&Class| self.used(family, **class, false) == name;
            let used_for: Vec<&'static str> = classes.filter(uses).map(|class| class.name()).collect();
            VariantInfo { family: family.name(), name, in_use: !used_for.is_empty(), used_for }
        };
        let of = |family| self.possible(family).into_iter().map(move |(_, v)| info(family, v.name()));
        self.families.iter().flat_map(|family| of(*family)).collect()
    }

    /// The pipelines to make ahead: what common calls will ask for.
    pub(crate) fn prewarm(&self) -> Result<Vec<PipelineKey>> {
        let mut keys = Vec::new();
        for family in self.families {
            keys.extend(family.prewarm(self)?);
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
                Err(Error::BindingTooLarge { op, shape, bytes, limit })
            }
            None => Ok(()),
        }
    }

    /// The variants that the device can run and that are meant for GPUs, or may win there, with their families.
    pub(crate) fn meant_for_gpus(&self) -> Vec<(&'static dyn AnyFamily, &'static str)> {
        let meant = |(_, v): &(usize, &dyn AnyVariant)| {
            matches!(v.default_for(), DefaultFor::Gpu | DefaultFor::Candidate)
        };
        let of =
            |family| self.possible(family).into_iter().filter(meant).map(move |(_, v)| (family, v.name()));
        self.families.iter().flat_map(|family| of(*family)).collect()
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
