//! Elementwise programs that kernels of rows run as they load: modules of `glsl/reduce_rows.comp` and `softmax_rows.comp` with
//! `STEPS`.

use std::ops::Range;

use smallvec::SmallVec;

use crate::ir::branches::branch;
use crate::ir::elementwise::{COUNTED, MAX_SCALARS, Map, MapInput};
use crate::ir::op_code::OpSet;
use crate::ir::value::{Access, ValueId, Values};
use crate::kernels::axis::span::input_window;
use crate::kernels::catalog::Load;
use crate::kernels::modules::constants::{Constants, Includes, KernelFile};
use crate::kernels::modules::{head, program};
use crate::vk::physical::Limits;

/// Inputs that a module has room for,
const INPUTS: usize = 3;
/// and steps.
const STEPS: usize = 4;

/// Whether the modules have room for the program, and its operations.
pub(crate) fn fits(head: &Map) -> bool {
    branch!("headed: inputs", (1..=INPUTS).contains(&head.inputs.len()))
        && branch!("headed: steps", head.steps.len() <= STEPS)
        && head.scalars.len() <= MAX_SCALARS
        && branch!("headed: light", head.steps.iter().all(|step| step.op.set() <= OpSet::Light))
}

/// What a kernel binds and reads element for element: the program's inputs, or its own. The first stands behind bindings that
/// are not used.
pub(crate) fn inputs(head: Option<&Map>, own: ValueId) -> SmallVec<[ValueId; INPUTS]> {
    branch!("headed: by a program", head.is_some());
    match head {
        Some(head) => (0..INPUTS).map(|k| head.inputs.get(k).unwrap_or(&head.inputs[0]).value).collect(),
        None => SmallVec::from_slice(&[own]),
    }
}

/// The bindings of inputs that are read element for element.
#[derive(Debug)]
pub(crate) struct Bound {
    pub(crate) accesses: SmallVec<[Access; 4]>,
    /// Where they begin, in elements.
    pub(crate) origin: u32,
    /// Bytes of bindings that are not used.
    pub(crate) spare: u64,
}

/// Binds these words of what a kernel reads.
pub(crate) fn bind(
    head: Option<&Map>,
    own: ValueId,
    values: &Values,
    words: &Range<u64>,
    load: Load,
    limits: &Limits,
) -> Bound {
    let (mut accesses, mut origin) = (SmallVec::<[Access; 4]>::new(), 0);
    for input in inputs(head, own) {
        // Those that are not one element for all have the same size, and windows that begin at the same place.
        let window = input_window(values, input, words.clone(), load, limits);
        accesses.push(window.access);
        origin = window.origin.max(origin);
    }
    let unused = head.map_or(0, |head| (INPUTS - head.inputs.len()) as u64);
    let spare = accesses[0].bytes * unused;
    Bound { accesses, origin, spare }
}

/// Sets the constants of `glsl/lib/head.glsl` and `glsl/lib/program.glsl`.
pub(crate) fn set_constants<K>(head: &Map, constants: &mut Constants<K>)
where
    K: KernelFile + Includes<head::File> + Includes<program::File>,
{
    let mask = |fits: fn(&MapInput) -> bool| {
        head.inputs.iter().enumerate().fold(0, |all, (k, input)| all | u32::from(fits(input)) << k)
    };
    constants.set(head::SINGLE, mask(|input| input.strides == [0; 4]));
    constants.set(head::PLACES, mask(|input| input.strides == COUNTED));
    constants.set(program::COUNT, head.steps.len() as u32);
    for (constant, step) in program::STEP.into_iter().zip(&head.steps) {
        constants.set(constant, step.word());
    }
}

/// The push constants that follow those of the kernel.
pub(crate) fn push(head: &Map) -> [u32; MAX_SCALARS] {
    std::array::from_fn(|k| head.scalars.get(k).copied().unwrap_or(0))
}
