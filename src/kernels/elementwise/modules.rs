//! The modules of `glsl/map.comp`: which elementwise programs each has room for, and which one a program gets.

use crate::ir::elementwise::{MAX_SCALARS, Map};
use crate::ir::op_code::OpSet;
use crate::kernels::catalog::Load;

/// A module of `glsl/map.comp`, and what it has room for.
#[derive(Debug)]
pub(crate) struct MapModule {
    pub(crate) name: &'static str,
    load: Load,
    pub(crate) inputs: usize,
    steps: usize,
    pub(crate) outputs: usize,
    pub(crate) ops: OpSet,
}

const fn map(name: &'static str, load: Load, [inputs, steps, outputs]: [usize; 3], ops: OpSet) -> MapModule {
    MapModule { name, load, inputs, steps, outputs, ops }
}

/// What compiles fastest first.
static MAP_MODULES: &[MapModule] = &[
    map("map.buffer.1.1.1.plain", Load::Buffer, [1, 1, 1], OpSet::Plain),
    map("map.buffer.2.1.1.plain", Load::Buffer, [2, 1, 1], OpSet::Plain),
    map("map.buffer.1.1.1.light", Load::Buffer, [1, 1, 1], OpSet::Light),
    map("map.buffer.2.1.1.light", Load::Buffer, [2, 1, 1], OpSet::Light),
    map("map.buffer.3.1.1.light", Load::Buffer, [3, 1, 1], OpSet::Light),
    map("map.buffer.1.1.1.all", Load::Buffer, [1, 1, 1], OpSet::All),
    map("map.buffer.2.1.1.all", Load::Buffer, [2, 1, 1], OpSet::All),
    map("map.buffer.4.4.1.plain", Load::Buffer, [4, 4, 1], OpSet::Plain),
    map("map.buffer.4.16.4.light", Load::Buffer, [4, 16, 4], OpSet::Light),
    map("map.buffer.4.4.1.all", Load::Buffer, [4, 4, 1], OpSet::All),
    map("map.texel.1.1.1.plain", Load::Texel, [1, 1, 1], OpSet::Plain),
    map("map.texel.2.1.1.plain", Load::Texel, [2, 1, 1], OpSet::Plain),
    map("map.texel.1.1.1.light", Load::Texel, [1, 1, 1], OpSet::Light),
    map("map.texel.2.1.1.light", Load::Texel, [2, 1, 1], OpSet::Light),
    map("map.texel.3.1.1.light", Load::Texel, [3, 1, 1], OpSet::Light),
    map("map.texel.1.1.1.all", Load::Texel, [1, 1, 1], OpSet::All),
    map("map.texel.2.1.1.all", Load::Texel, [2, 1, 1], OpSet::All),
    map("map.texel.4.4.1.plain", Load::Texel, [4, 4, 1], OpSet::Plain),
    map("map.texel.4.16.4.light", Load::Texel, [4, 16, 4], OpSet::Light),
    map("map.texel.4.4.1.all", Load::Texel, [4, 4, 1], OpSet::All),
];

/// Those whose subgroups store together.
static TOGETHER: &[MapModule] = &[
    map("map.texel.together.1.1.1.plain", Load::Texel, [1, 1, 1], OpSet::Plain),
    map("map.texel.together.2.1.1.plain", Load::Texel, [2, 1, 1], OpSet::Plain),
    map("map.texel.together.1.1.1.light", Load::Texel, [1, 1, 1], OpSet::Light),
    map("map.texel.together.2.1.1.light", Load::Texel, [2, 1, 1], OpSet::Light),
    map("map.texel.together.1.1.1.all", Load::Texel, [1, 1, 1], OpSet::All),
    map("map.texel.together.2.1.1.all", Load::Texel, [2, 1, 1], OpSet::All),
    map("map.texel.together.4.4.1.plain", Load::Texel, [4, 4, 1], OpSet::Plain),
];

/// Whether some module can run the program, however its inputs are indexed. Fusion asks before it joins.
pub(crate) fn map_fits(program: &Map) -> bool {
    program.scalars.len() <= MAX_SCALARS && MAP_MODULES.iter().any(|module| module.holds(program, true))
}

/// The module of an elementwise program: the first that holds it. `strided`: some input is neither dense nor a scalar.
pub(crate) fn map_module(load: Load, program: &Map, strided: bool) -> &'static MapModule {
    // Ops append programs of one step, which always fit; fusion joins only what does.
    let found = MAP_MODULES.iter().find(|module| module.load == load && module.holds(program, strided));
    found.unwrap_or(&MAP_MODULES[0])
}

/// The module that stores together and holds the program, if there is one.
pub(crate) fn map_module_together(program: &Map, strided: bool) -> Option<&'static MapModule> {
    TOGETHER.iter().find(|module| module.holds(program, strided))
}

impl MapModule {
    fn holds(&self, program: &Map, strided: bool) -> bool {
        program.inputs.len() <= self.inputs
            && program.steps.len() <= self.steps
            && program.outputs.len() <= self.outputs
            && program.steps.iter().all(|step| step.op.set() <= self.ops)
            && !(strided && self.ops == OpSet::Plain)
    }
}
