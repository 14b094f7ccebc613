//! The modules of `glsl/map.comp`: which elementwise programs each has room for, and which one a program gets.

use crate::ir::elementwise::{MAX_SCALARS, Map};
use crate::ir::op_code::OpSet;
use crate::kernels::catalog::Load;
use crate::kernels::modules::map::Module;
use crate::kernels::modules::{self, Ops};

/// What compiles fastest first. The names have the load path, inputs, steps, outputs and operations that there is room for.
static MODULES: &[Module] = &[
    Module::Buffer1_1_1Plain,
    Module::Buffer2_1_1Plain,
    Module::Buffer1_1_1Light,
    Module::Buffer2_1_1Light,
    Module::Buffer3_1_1Light,
    Module::Buffer1_1_1All,
    Module::Buffer2_1_1All,
    Module::Buffer4_4_1Plain,
    Module::Buffer4_16_4Light,
    Module::Buffer4_4_1All,
    Module::Buffer2_1_1Every,
    Module::Buffer4_4_1Every,
    Module::Texel1_1_1Plain,
    Module::Texel2_1_1Plain,
    Module::Texel1_1_1Light,
    Module::Texel2_1_1Light,
    Module::Texel3_1_1Light,
    Module::Texel1_1_1All,
    Module::Texel2_1_1All,
    Module::Texel4_4_1Plain,
    Module::Texel4_16_4Light,
    Module::Texel4_4_1All,
    Module::Texel2_1_1Every,
    Module::Texel4_4_1Every,
];

/// Those whose subgroups store together.
static TOGETHER: &[Module] = &[
    Module::TexelTogether1_1_1Plain,
    Module::TexelTogether2_1_1Plain,
    Module::TexelTogether1_1_1Light,
    Module::TexelTogether2_1_1Light,
    Module::TexelTogether1_1_1All,
    Module::TexelTogether2_1_1All,
    Module::TexelTogether4_4_1Plain,
];

/// Whether some module can run the program, however its inputs are indexed. Fusion asks before it joins.
pub(crate) fn map_fits(program: &Map) -> bool {
    program.scalars.len() <= MAX_SCALARS && MODULES.iter().any(|module| module.holds(program, true))
}

/// The module of an elementwise program: the first that holds it. `strided`: some input is neither dense nor a scalar.
pub(crate) fn map_module(load: Load, program: &Map, strided: bool) -> Module {
    // Ops append programs of one step, which always fit; fusion joins only what does.
    let mut of_load = MODULES.iter().filter(|module| module.load() == Some(load));
    of_load.find(|module| module.holds(program, strided)).copied().unwrap_or(MODULES[0])
}

/// The module that stores together and holds the program, if there is one.
pub(crate) fn map_module_together(program: &Map, strided: bool) -> Option<Module> {
    TOGETHER.iter().find(|module| module.holds(program, strided)).copied()
}

impl Module {
    fn defines(self) -> &'static modules::Defines {
        modules::Module::from(self).defines()
    }

    fn load(self) -> Option<Load> {
        self.defines().load
    }

    pub(crate) fn inputs(self) -> usize {
        self.defines().inputs
    }

    pub(crate) fn outputs(self) -> usize {
        self.defines().outputs
    }

    pub(crate) fn ops(self) -> OpSet {
        match self.defines().ops {
            Some(Ops::Plain) => OpSet::Plain,
            Some(Ops::Light) => OpSet::Light,
            Some(Ops::All) => OpSet::All,
            Some(Ops::Every) | None => OpSet::Every,
        }
    }

    fn holds(self, program: &Map, strided: bool) -> bool {
        program.inputs.len() <= self.inputs()
            && program.steps.len() <= self.defines().steps
            && program.outputs.len() <= self.outputs()
            && program.steps.iter().all(|step| step.op.set() <= self.ops())
            && !(strided && self.ops() == OpSet::Plain)
    }
}
