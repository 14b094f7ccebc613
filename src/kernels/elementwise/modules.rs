//! The modules of `glsl/elementwise.comp`: the op lists that each has room for, and the choice of one.

use crate::ir::elementwise::{Elementwise, MAX_SCALARS};
use crate::ir::op_code::OpSet;
use crate::kernels::catalog::Load;
use crate::kernels::modules::elementwise::Module;
use crate::kernels::modules::{self, Ops};

/// The module that compiles fastest comes first. Names have the load path, inputs, steps, outputs and operations that
/// there is room for.
static MODULES: &[Module] = &[
    Module::BufferInputs1Steps1Outputs1Plain,
    Module::BufferInputs2Steps1Outputs1Plain,
    Module::BufferInputs1Steps1Outputs1Light,
    Module::BufferInputs2Steps1Outputs1Light,
    Module::BufferInputs3Steps1Outputs1Light,
    Module::BufferInputs1Steps1Outputs1All,
    Module::BufferInputs2Steps1Outputs1All,
    Module::BufferInputs4Steps4Outputs1Plain,
    Module::BufferInputs4Steps16Outputs4Light,
    Module::BufferInputs4Steps4Outputs1All,
    Module::BufferInputs2Steps1Outputs1Every,
    Module::BufferInputs4Steps4Outputs1Every,
    Module::TexelInputs1Steps1Outputs1Plain,
    Module::TexelInputs2Steps1Outputs1Plain,
    Module::TexelInputs1Steps1Outputs1Light,
    Module::TexelInputs2Steps1Outputs1Light,
    Module::TexelInputs3Steps1Outputs1Light,
    Module::TexelInputs1Steps1Outputs1All,
    Module::TexelInputs2Steps1Outputs1All,
    Module::TexelInputs4Steps4Outputs1Plain,
    Module::TexelInputs4Steps16Outputs4Light,
    Module::TexelInputs4Steps4Outputs1All,
    Module::TexelInputs2Steps1Outputs1Every,
    Module::TexelInputs4Steps4Outputs1Every,
];

/// Those whose subgroups use uniform stores.
static UNIFORM: &[Module] = &[
    Module::TexelUniformInputs1Steps1Outputs1Plain,
    Module::TexelUniformInputs2Steps1Outputs1Plain,
    Module::TexelUniformInputs1Steps1Outputs1Light,
    Module::TexelUniformInputs2Steps1Outputs1Light,
    Module::TexelUniformInputs1Steps1Outputs1All,
    Module::TexelUniformInputs2Steps1Outputs1All,
    Module::TexelUniformInputs4Steps4Outputs1Plain,
];

/// Whether some module can run the elementwise op, however its inputs are indexed. Fusion asks before it joins.
pub(crate) fn elementwise_fits(elementwise: &Elementwise) -> bool {
    elementwise.scalars.len() <= MAX_SCALARS && MODULES.iter().any(|module| module.holds(elementwise, true))
}

/// The module of an elementwise op: the first that holds it. `strided`: some input is neither dense nor a scalar.
pub(crate) fn elementwise_module(load: Load, elementwise: &Elementwise, strided: bool) -> Module {
    // Recorded elementwise ops have one step, which always fits; fusion joins only what does.
    let mut of_load = MODULES.iter().filter(|module| module.load() == Some(load));
    of_load.find(|module| module.holds(elementwise, strided)).copied().unwrap_or(MODULES[0])
}

/// The module that uses uniform stores and holds the elementwise op, if there is one.
pub(crate) fn elementwise_uniform_module(elementwise: &Elementwise, strided: bool) -> Option<Module> {
    UNIFORM.iter().find(|module| module.holds(elementwise, strided)).copied()
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

    fn holds(self, elementwise: &Elementwise, strided: bool) -> bool {
        elementwise.inputs.len() <= self.inputs()
            && elementwise.steps.len() <= self.defines().steps
            && elementwise.outputs.len() <= self.outputs()
            && elementwise.steps.iter().all(|step| step.op.set() <= self.ops())
            && !(strided && self.ops() == OpSet::Plain)
    }
}
