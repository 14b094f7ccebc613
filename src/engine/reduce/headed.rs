//! Reductions of what an elementwise program makes: modules of `glsl/reduce_rows.comp` that run it as they load.

use smallvec::SmallVec;

use super::{Reduce, short};
use crate::engine::catalog::{Load, Tree};
use crate::engine::graph::ValueId;
use crate::engine::map::{MAX_SCALARS, Map};
use crate::engine::op_code::OpSet;

/// Inputs that a module has room for,
const INPUTS: usize = 3;
/// and steps.
const STEPS: usize = 4;

impl Reduce {
    /// Whether it can run this program as it loads: it reduces whole rows of one input, and not many short ones, which
    /// are added up in another order.
    pub(crate) fn takes(&self, head: &Map) -> bool {
        self.second.is_none()
            && self.head.is_none()
            && self.geometry.is_rows()
            && !short::is_worth_it(self.geometry)
            && (1..=INPUTS).contains(&head.inputs.len())
            && head.steps.len() <= STEPS
            && head.scalars.len() <= MAX_SCALARS
            && head.steps.iter().all(|step| step.op.set() <= OpSet::Light)
    }

    /// What the kernel of rows binds and reads element for element. The first stands behind bindings that are not used.
    pub(super) fn inputs(&self) -> SmallVec<[ValueId; INPUTS]> {
        match &self.head {
            Some(head) => (0..INPUTS).map(|k| head.inputs.get(k).unwrap_or(&head.inputs[0]).value).collect(),
            None => SmallVec::from_slice(&[self.input]),
        }
    }

    /// How many of those bindings are not used.
    pub(super) fn unused_inputs(&self) -> u64 {
        self.head.as_ref().map_or(0, |head| (INPUTS - head.inputs.len()) as u64)
    }
}

/// The specialization constants of `glsl/lib/program.glsl`, and a bit for each input that is one element for all.
pub(super) fn specialization(head: &Map) -> impl Iterator<Item = (u32, u32)> {
    let single = head.inputs.iter().enumerate().filter(|(_, input)| input.strides == [0; 4]);
    let single = single.fold(0, |all, (k, _)| all | 1 << k);
    let steps = head.steps.iter().zip(8..).map(|(step, id)| (id, step.word()));
    [(5, single), (6, head.steps.len() as u32)].into_iter().chain(steps)
}

/// The push constants that follow those of the kernel.
pub(super) fn push(head: &Map) -> [u32; MAX_SCALARS] {
    std::array::from_fn(|k| head.scalars.get(k).copied().unwrap_or(0))
}

pub(super) fn module(load: Load, tree: Tree) -> &'static str {
    match (load, tree) {
        (Load::Texel, Tree::Shuffle) => "reduce_rows.texel.shuffle.3.4.light",
        (Load::Buffer, Tree::Shuffle) => "reduce_rows.buffer.shuffle.3.4.light",
        _ => "reduce_rows.buffer.shared.3.4.light",
    }
}
