//! Dispatches of matmuls and convolutions: a line of tiles folded into a grid, inputs checked against what bindings
//! span.

use smallvec::SmallVec;

use crate::error::Result;
use crate::ir::branches::branch;
use crate::ir::command::{Action, Command, Cost};
use crate::ir::pipeline_key::PipelineKey;
use crate::ir::value::{Access, Label, Values};
use crate::kernels::bindings::grid;
use crate::kernels::catalog::{Catalog, Load};
use crate::kernels::modules::constants::Specialized;

/// The common part of the dispatches of one operation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Launch<'a> {
    /// For errors.
    pub(crate) op: &'static str,
    pub(crate) label: &'a Label,
    pub(crate) catalog: &'a Catalog,
    pub(crate) load: Load,
}

impl Launch<'_> {
    /// A dispatch of this many tiles, `z` times. Its flops are not set yet: the operation sets them, if it is one
    /// dispatch.
    pub(crate) fn command(
        &self,
        values: &Values,
        kernel: Specialized,
        push: &[u8],
        (tiles, z): (u64, u32),
        accesses: SmallVec<[Access; 4]>,
    ) -> Result<Command> {
        let read = accesses.iter().filter(|access| !access.write);
        let read = read.map(|access| (values.value(access.value).shape, access.bytes));
        self.catalog.check_inputs(self.op, self.load, read)?;
        let [x, y, _] = grid(tiles, &self.catalog.limits);
        branch!("launch: wraps", y > 1);
        let groups = [x, y, z];
        let pipeline = self.catalog.pipeline(kernel)?;
        let push = SmallVec::from_slice(push);
        let bytes = bytes_touched(values, &accesses);
        let command = Command::new(self.label.clone(), Action::Dispatch { pipeline, push, groups }, accesses);
        Ok(command.with_cost(Cost { flops: None, bytes: Some(bytes) }))
    }
}

/// What the accesses span, each value once: some stand behind bindings that are not used.
fn bytes_touched(values: &Values, accesses: &[Access]) -> u64 {
    let root = |access: &Access| values.root(access.value);
    let first =
        |(i, access): &(usize, &Access)| accesses[..*i].iter().all(|other| root(other) != root(access));
    accesses.iter().enumerate().filter(first).map(|(_, access)| access.bytes).sum()
}

/// The pipelines of commands that are dispatches.
pub(crate) fn pipelines_of(commands: Vec<Command>) -> Vec<PipelineKey> {
    commands.iter().filter_map(|command| command.action.pipeline().cloned()).collect()
}
