//! Commands: dispatches, copies and fills, each with the bytes that it reads and writes. Plain data, as operations are.

use smallvec::SmallVec;

use crate::ir::pipeline_key::PipelineKey;
use crate::ir::value::{Access, Label, Values};

/// The action of a command.
#[allow(clippy::large_enum_variant, reason = "almost all of them are dispatches")]
#[derive(Clone, Debug)]
pub(crate) enum Action {
    /// A dispatch; its accesses are its arguments, in the order of the bindings.
    Dispatch { pipeline: PipelineKey, push: SmallVec<[u8; 128]>, groups: [u32; 3] },
    /// A copy from the first access to the second.
    Copy,
    /// A fill of the only access with a 4-byte word.
    Fill { word: u32 },
}

impl Action {
    /// The pipeline of a dispatch.
    pub(crate) fn pipeline(&self) -> Option<&PipelineKey> {
        match self {
            Action::Dispatch { pipeline, .. } => Some(pipeline),
            Action::Copy | Action::Fill { .. } => None,
        }
    }

    /// The module of a dispatch; `copy` and `fill` for the device's own commands.
    pub(crate) fn name(&self) -> &str {
        match self {
            Action::Dispatch { pipeline, .. } => pipeline.kernel.name(),
            Action::Copy => "copy",
            Action::Fill { .. } => "fill",
        }
    }
}

/// One step of a submission.
#[derive(Clone, Debug)]
pub(crate) struct Command {
    pub(crate) label: Label,
    pub(crate) action: Action,
    pub(crate) accesses: SmallVec<[Access; 4]>,
    /// The cost that profiles count.
    pub(crate) cost: Cost,
    /// A bit for each access: those that read element for element, so that a result may be written over them.
    pub(crate) in_place: u32,
    /// It goes on with the operation of the command in front of it, for other elements: each reads in place only what
    /// it writes.
    pub(crate) continues: bool,
}

/// The work of a command, by convention rather than by instruction:
/// - **flops**: one per element and step of an elementwise op, whatever the step (a division and an exponential
///   count as one, a copy as none); two per multiply-add of a matmul; one per element that a reduction takes in.
/// - **bytes**: what must cross the memory bus at the least, each byte that is read once and each that is written once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Cost {
    /// `None` if no one has said.
    pub(crate) flops: Option<u64>,
    /// `None` if no one can say.
    pub(crate) bytes: Option<u64>,
}

impl Command {
    /// A command without arithmetic that reads and writes each of its accesses once; `with_flops` and `with_bytes` say
    /// otherwise.
    pub(crate) fn new(label: Label, action: Action, accesses: SmallVec<[Access; 4]>) -> Command {
        let bytes = accesses.iter().map(|access| access.bytes).sum();
        let cost = Cost { flops: Some(0), bytes: Some(bytes) };
        Command { label, action, accesses, cost, in_place: 0, continues: false }
    }

    /// Counts this many floating-point operations.
    pub(crate) fn with_flops(mut self, flops: u64) -> Command {
        self.cost.flops = Some(flops);
        self
    }

    /// Counts this many bytes instead of all that the accesses span.
    pub(crate) fn with_bytes(mut self, bytes: u64) -> Command {
        self.cost.bytes = Some(bytes);
        self
    }

    /// Says which accesses a result may be written over.
    pub(crate) fn with_in_place(mut self, accesses: u32) -> Command {
        self.in_place = accesses;
        self
    }

    /// Says whether it goes on with what the command in front of it does.
    pub(crate) fn with_continues(mut self, continues: bool) -> Command {
        self.continues = continues;
        self
    }

    /// Counts as the caller says, which may be not at all.
    pub(crate) fn with_cost(mut self, cost: Cost) -> Command {
        self.cost = cost;
        self
    }
}

/// A lowered graph: the recorded values, those that lowering has added behind them, and the commands in order.
#[derive(Clone, Debug, Default)]
pub(crate) struct Lowered {
    pub(crate) values: Values,
    pub(crate) commands: Vec<Command>,
}
