//! Elementwise ops that kernels of rows run as they load: modules of `glsl/reduce_rows.comp` and `softmax_rows.comp`
//! with `STEPS`.

use std::ops::Range;

use smallvec::SmallVec;

use crate::ir::branches::branch;
use crate::ir::command::{Action, Command};
use crate::ir::elementwise::{COUNTED, Elementwise, ElementwiseInput, MAX_SCALARS};
use crate::ir::op_code::OpSet;
use crate::ir::value::{Access, Label, ValueId, Values};
use crate::kernels::axis::split::input_window;
use crate::kernels::catalog::Load;
use crate::kernels::modules::constants::{Constants, Includes, KernelFile};
use crate::kernels::modules::{op_list, prologue};
use crate::shape::{DType, MAX_RANK};
use crate::vk::physical::Limits;

/// Inputs that a module has room for,
const INPUTS: usize = 3;
/// and steps.
const STEPS: usize = 4;

/// Whether the modules have room for the elementwise op, and its operations.
pub(crate) fn fits(prologue: &Elementwise) -> bool {
    branch!("prologue: inputs", (1..=INPUTS).contains(&prologue.inputs.len()))
        && branch!("prologue: steps", prologue.steps.len() <= STEPS)
        && prologue.scalars.len() <= MAX_SCALARS
        && branch!("prologue: light", prologue.steps.iter().all(|step| step.op.set() <= OpSet::Light))
}

/// What a kernel binds and reads element for element: the elementwise op's inputs, or its own. The first stands behind
/// bindings that are not used.
pub(crate) fn inputs(prologue: Option<&Elementwise>, own: ValueId) -> SmallVec<[ValueId; INPUTS]> {
    branch!("prologue: by a fused op", prologue.is_some());
    match prologue {
        Some(prologue) => {
            (0..INPUTS).map(|k| prologue.inputs.get(k).unwrap_or(&prologue.inputs[0]).value).collect()
        }
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

impl Bound {
    /// The dispatch that reads so many elements by these bindings, and writes by those that were added.
    pub(crate) fn command(
        self,
        label: &Label,
        action: Action,
        prologue: Option<&Elementwise>,
        (dtype, elements): (DType, u64),
    ) -> Command {
        let flops = elements + prologue.map_or(0, |prologue| prologue.flops(dtype, elements));
        let bytes = self.accesses.iter().map(|access| access.bytes).sum::<u64>() - self.spare;
        Command::new(label.clone(), action, self.accesses).with_flops(flops).with_bytes(bytes)
    }
}

/// Binds these words of what a kernel reads.
pub(crate) fn bind(
    prologue: Option<&Elementwise>,
    own: ValueId,
    values: &Values,
    words: &Range<u64>,
    load: Load,
    limits: &Limits,
) -> Bound {
    let (mut accesses, mut origin) = (SmallVec::<[Access; 4]>::new(), 0);
    for input in inputs(prologue, own) {
        // Those that are not one element for all have the same size, and windows that begin at the same place.
        let window = input_window(values, input, words.clone(), load, limits);
        accesses.push(window.access);
        origin = window.origin.max(origin);
    }
    let unused = prologue.map_or(0, |prologue| (INPUTS - prologue.inputs.len()) as u64);
    let spare = accesses[0].bytes * unused;
    Bound { accesses, origin, spare }
}

/// Sets the constants of `glsl/lib/prologue.glsl` and `glsl/lib/op_list.glsl`.
pub(crate) fn set_constants<K>(prologue: &Elementwise, constants: &mut Constants<K>)
where
    K: KernelFile + Includes<prologue::File> + Includes<op_list::File>,
{
    let mask = |fits: fn(&ElementwiseInput) -> bool| {
        prologue.inputs.iter().enumerate().fold(0, |all, (k, input)| all | u32::from(fits(input)) << k)
    };
    constants.set(prologue::SINGLE, mask(|input| input.strides == [0; MAX_RANK]));
    constants.set(prologue::PLACES, mask(|input| input.strides == COUNTED));
    constants.set(op_list::COUNT, prologue.steps.len() as u32);
    for (constant, step) in op_list::STEP.into_iter().zip(&prologue.steps) {
        constants.set(constant, step.word());
    }
}

/// The push constants of a kernel, and behind them those of the elementwise op.
pub(crate) fn push(own: &impl bytemuck::NoUninit, prologue: Option<&Elementwise>) -> SmallVec<[u8; 128]> {
    let mut push = SmallVec::from_slice(bytemuck::bytes_of(own));
    let scalars = |prologue: &Elementwise| -> [u32; MAX_SCALARS] {
        std::array::from_fn(|k| prologue.scalars.get(k).copied().unwrap_or(0))
    };
    push.extend(prologue.into_iter().flat_map(scalars).flat_map(u32::to_ne_bytes));
    push
}
