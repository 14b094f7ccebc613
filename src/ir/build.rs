//! Graphs for tests, written down like a recording.

use smallvec::{SmallVec, smallvec};

use crate::ir::copy::{Copy, CopyBox};
use crate::ir::elementwise::{Elementwise, ElementwiseInput, MAX_INPUTS, OpCode, Operand, dense_strides};
use crate::ir::epilogue::Epilogue;
use crate::ir::graph::{Graph, Node};
use crate::ir::matmul::{Matmul, MatrixOperand};
use crate::ir::op::Op;
use crate::ir::reduce::{Reduce, Reduction};
use crate::ir::softmax::Softmax;
use crate::ir::value::{Label, LabelName, Origin, StateId, ValueId};
use crate::shape::axes::Geometry;
use crate::shape::{DType, MAX_RANK, Shape};

/// A graph that grows.
#[derive(Clone, Debug, Default)]
pub(crate) struct Build {
    pub(crate) graph: Graph,
}

impl Build {
    pub(crate) fn shape(&self, value: ValueId) -> Shape {
        self.graph.value(value).shape
    }

    pub(crate) fn tensor(&mut self, shape: impl Into<Shape>) -> ValueId {
        self.graph.add_value(shape.into(), DType::F32, Origin::Tensor(0))
    }

    /// A tensor that is updated, of which a version was captured before.
    pub(crate) fn state(&mut self, captured: ValueId) -> StateId {
        let version = self.graph.values.len() as u32;
        self.graph.values[captured as usize].origin = Origin::Tensor(version);
        self.graph.values.add_state(smallvec![version])
    }

    /// The tensor after something has written it.
    pub(crate) fn state_version(&mut self, state: StateId, like: ValueId) -> ValueId {
        self.graph.add_value(self.shape(like), DType::F32, Origin::State(state))
    }

    pub(crate) fn produced(&mut self, shape: impl Into<Shape>) -> ValueId {
        self.graph.add_value(shape.into(), DType::F32, Origin::Produced)
    }

    pub(crate) fn alias(&mut self, of: ValueId, shape: impl Into<Shape>) -> ValueId {
        let (root, dtype) = (self.graph.root(of), self.graph.value(of).dtype);
        self.graph.add_value(shape.into(), dtype, Origin::Alias(root))
    }

    pub(crate) fn keep(&mut self, value: ValueId) {
        let root = self.graph.root(value);
        self.graph.values[root as usize].kept = Some(0);
    }

    /// Appends an operation, labelled with a value's shape.
    pub(crate) fn push(&mut self, name: &'static str, of: ValueId, op: impl Into<Op>) {
        let label = Label { op: LabelName::Op(name), shape: self.shape(of), dtype: DType::F32 };
        self.graph.nodes.push(Node::new(label, op));
    }

    /// One elementwise operation on values that are read with these strides.
    pub(crate) fn strided(
        &mut self,
        op: OpCode,
        shape: Shape,
        operands: &[(ValueId, [u32; MAX_RANK])],
    ) -> ValueId {
        let mut inputs: SmallVec<[ElementwiseInput; MAX_INPUTS]> = SmallVec::new();
        let mut code: SmallVec<[Operand; 3]> = SmallVec::new();
        for &(value, strides) in operands {
            let input = ElementwiseInput { value, strides, offset: 0 };
            let place = inputs.iter().position(|known| *known == input).unwrap_or(inputs.len());
            if place == inputs.len() {
                inputs.push(input);
            }
            code.push(Operand::Input(place as u8));
        }
        let output = self.produced(shape);
        let operands = [0, 1, 2].map(|k| code.get(k).copied().unwrap_or(code[0]));
        self.push("op", output, Elementwise::single(op, operands, inputs, smallvec![], output));
        output
    }

    /// One elementwise operation in the shape of its first operand. One of another shape is a row.
    pub(crate) fn op(&mut self, op: OpCode, operands: &[ValueId]) -> ValueId {
        let shape = self.shape(operands[0]);
        let strides = |value| if self.shape(value) == shape { dense_strides(&shape) } else { [0, 1, 0, 0] };
        let operands: Vec<_> = operands.iter().map(|&value| (value, strides(value))).collect();
        self.strided(op, shape, &operands)
    }

    /// The elementwise op that was appended last.
    pub(crate) fn last_elementwise(&mut self) -> &mut Elementwise {
        match self.graph.nodes.last_mut() {
            Some(Node { op: Op::Elementwise(elementwise), .. }) => elementwise,
            other => panic!("no elementwise op: {other:?}"),
        }
    }

    /// The matmul of two matrices.
    pub(crate) fn matmul(&mut self, a: ValueId, b: ValueId) -> ValueId {
        let (rows, columns) = (self.shape(a), self.shape(b));
        let (&[m, k], &[k_rows, n]) = (rows.dims(), columns.dims()) else { panic!("no matrices") };
        assert_eq!(k, k_rows);
        let output = self.produced([m, n]);
        let matrix = |value, k_contiguous| MatrixOperand { value, k_contiguous, batch: [0; 2] };
        let matmul = Matmul {
            m: m as u32,
            n: n as u32,
            k: k as u32,
            batch: [1; 2],
            lhs: matrix(a, true),
            rhs: matrix(b, false),
            alpha: 1.0,
            epilogue: Epilogue::default(),
            output,
        };
        self.push("matmul", output, matmul);
        output
    }

    pub(crate) fn reduce(
        &mut self,
        reduction: Reduction,
        input: ValueId,
        second: Option<ValueId>,
        axis: usize,
    ) -> ValueId {
        let shape = self.shape(input);
        let mut left = shape.dims().to_vec();
        left[axis] = 1;
        let output = self.produced(Shape::new(&left).expect("no more dimensions than before"));
        let geometry = Geometry::along(&shape, axis);
        let reduce = Reduce { op: "sum", reduction, input, second, prologue: None, geometry, output };
        self.push("sum", input, reduce);
        output
    }

    pub(crate) fn softmax(&mut self, logarithm: bool, input: ValueId, axis: usize) -> ValueId {
        let output = self.produced(self.shape(input));
        let geometry = Geometry::along(&self.shape(input), axis);
        self.push(
            "softmax",
            input,
            Softmax { op: "softmax", logarithm, input, prologue: None, geometry, output },
        );
        output
    }

    pub(crate) fn copy(&mut self, input: ValueId) -> ValueId {
        let output = self.produced(self.shape(input));
        self.push("copy", output, Copy { input, output });
        output
    }

    /// One after the other, as vectors: a value that several operations write.
    pub(crate) fn concat(&mut self, parts: &[ValueId]) -> ValueId {
        let lengths: Vec<usize> = parts.iter().map(|&part| self.shape(part).elements()).collect();
        let output = self.produced([lengths.iter().sum::<usize>()]);
        let mut at = 0;
        for (&input, &length) in parts.iter().zip(&lengths) {
            let corner = [at, 0, 0, 0];
            self.push(
                "concat",
                output,
                CopyBox { input, shape: [length].into(), output, corner, over: None },
            );
            at += length;
        }
        output
    }
}
