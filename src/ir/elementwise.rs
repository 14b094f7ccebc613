//! Elementwise ops: what the ops append, what fusion joins, and what `glsl/elementwise.comp` runs.

use smallvec::{SmallVec, smallvec};

pub(crate) use crate::ir::op_code::OpCode;
use crate::ir::value::ValueId;
use crate::shape::{MAX_RANK, Shape};

/// Inputs of one elementwise op.
pub(crate) const MAX_INPUTS: usize = 4;
/// Scalars of one elementwise op.
pub(crate) const MAX_SCALARS: usize = 3;
/// In a step's word, scalars are numbered from here, and earlier steps from there.
const SCALAR_OPERAND: u32 = 32;
const STEP_OPERAND: u32 = 64;

/// An operand of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operand {
    Input(u8),
    Scalar(u8),
    /// The result of an earlier step.
    Step(u8),
}

/// One step of an elementwise op.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Step {
    pub(crate) op: OpCode,
    /// Unused operands repeat the first.
    pub(crate) operands: [Operand; 3],
}

impl Step {
    /// As the shader reads it.
    pub(crate) fn word(&self) -> u32 {
        let code = |operand| match operand {
            Operand::Input(k) => u32::from(k),
            Operand::Scalar(k) => SCALAR_OPERAND + u32::from(k),
            Operand::Step(k) => STEP_OPERAND + u32::from(k),
        };
        let [a, b, c] = self.operands;
        self.op as u32 | code(a) << 8 | code(b) << 16 | code(c) << 24
    }
}

/// An input, and how an index of the output finds its element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ElementwiseInput {
    pub(crate) value: ValueId,
    /// For each dimension of the output, outermost first, in elements.
    pub(crate) strides: [u32; MAX_RANK],
    pub(crate) offset: u32,
}

/// The strides of a prologue's input that is each element's place in its row: it is counted, and nothing of its value
/// is read.
pub(crate) const COUNTED: [u32; MAX_RANK] = [u32::MAX; MAX_RANK];

/// A step's result that is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ElementwiseOutput {
    pub(crate) step: u8,
    pub(crate) value: ValueId,
}

/// An elementwise op over dense outputs of one shape.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Elementwise {
    pub(crate) steps: SmallVec<[Step; 1]>,
    pub(crate) inputs: SmallVec<[ElementwiseInput; MAX_INPUTS]>,
    pub(crate) scalars: SmallVec<[u32; MAX_SCALARS]>,
    pub(crate) outputs: SmallVec<[ElementwiseOutput; 1]>,
}

impl Elementwise {
    /// An elementwise op of one operation.
    pub(crate) fn single(
        op: OpCode,
        operands: [Operand; 3],
        inputs: SmallVec<[ElementwiseInput; MAX_INPUTS]>,
        scalars: SmallVec<[u32; MAX_SCALARS]>,
        output: ValueId,
    ) -> Elementwise {
        let outputs = smallvec![ElementwiseOutput { step: 0, value: output }];
        Elementwise { steps: smallvec![Step { op, operands }], inputs, scalars, outputs }
    }

    /// The value that it makes, if it makes one alone. That is its last step's result: every step leads to a result,
    /// and nothing comes after the last one.
    pub(crate) fn only_output(&self) -> Option<ValueId> {
        let [output] = self.outputs[..] else { return None };
        debug_assert_eq!(usize::from(output.step) + 1, self.steps.len(), "{self:?}");
        Some(output.value)
    }
}

/// Strides of a dense tensor, outermost first.
pub(crate) fn dense_strides(shape: &Shape) -> [u32; MAX_RANK] {
    let mut strides = [0; MAX_RANK];
    let mut stride = 1u32;
    for d in (0..shape.rank()).rev() {
        strides[d] = stride;
        stride = stride.wrapping_mul(shape.dims()[d] as u32);
    }
    strides
}
