//! Elementwise programs: what the ops append, and how they become dispatches of `glsl/map.comp`.

use smallvec::{SmallVec, smallvec};

use super::catalog::{Catalog, Family, Load, map_module};
use super::graph::{Access, Graph, Label, LabelName, Node, Origin, ValueId, Work};
pub(crate) use super::op_code::OpCode;
use super::pipelines::PipelineKey;
use crate::error::{Error, Result};
use crate::shape::{DType, MAX_RANK, Shape};

/// Inputs of one program.
pub(crate) const MAX_INPUTS: usize = 3;
/// Scalars of one program.
pub(crate) const MAX_SCALARS: usize = 3;
/// In a step's word, scalars are numbered from here.
const SCALAR_OPERAND: u32 = 32;

/// An operand of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operand {
    Input(u8),
    Scalar(u8),
}

/// One step of a program.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Step {
    pub(crate) op: OpCode,
    /// Unused operands repeat the first.
    pub(crate) operands: [Operand; 3],
}

impl Step {
    /// As the shader reads it.
    fn word(&self) -> u32 {
        let code = |operand| match operand {
            Operand::Input(k) => u32::from(k),
            Operand::Scalar(k) => SCALAR_OPERAND + u32::from(k),
        };
        let [a, b, c] = self.operands;
        self.op as u32 | code(a) << 8 | code(b) << 16 | code(c) << 24
    }
}

/// An input, and how an index of the output finds its element.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MapInput {
    pub(crate) value: ValueId,
    /// For each dimension of the output, outermost first, in elements; negative strides wrap.
    pub(crate) strides: [u32; MAX_RANK],
    pub(crate) offset: u32,
}

/// An elementwise program over a dense output.
#[derive(Clone, Debug)]
pub(crate) struct Map {
    pub(crate) step: Step,
    pub(crate) inputs: SmallVec<[MapInput; MAX_INPUTS]>,
    pub(crate) scalars: [u32; MAX_SCALARS],
    pub(crate) output: ValueId,
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

/// How the shader indexes an input; numbers as there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    Dense = 0,
    Scalar = 1,
    Vector = 2,
    Splat = 3,
    Gather = 4,
}

/// The index space with as few dimensions as the inputs allow, innermost first.
#[derive(Debug, PartialEq, Eq)]
struct Space {
    extents: SmallVec<[u32; MAX_RANK]>,
    strides: SmallVec<[[u32; MAX_RANK]; MAX_INPUTS]>,
}

impl Space {
    /// Drops dimensions of one element, and merges neighbours that every input walks through in one go.
    fn collapse(shape: &Shape, inputs: &[MapInput]) -> Space {
        let mut space = Space { extents: smallvec![], strides: smallvec![[0; MAX_RANK]; inputs.len()] };
        for d in (0..shape.rank()).rev() {
            let extent = shape.dims()[d] as u32;
            if extent == 1 {
                continue;
            }
            let top = space.extents.len();
            let merges = top > 0
                && inputs.iter().zip(&space.strides).all(|(input, strides)| {
                    input.strides[d] == strides[top - 1].wrapping_mul(space.extents[top - 1])
                });
            if merges {
                space.extents[top - 1] *= extent;
                continue;
            }
            space.extents.push(extent);
            for (input, strides) in inputs.iter().zip(&mut space.strides) {
                strides[top] = input.strides[d];
            }
        }
        space
    }

    /// How many different elements of its inputs `count` elements of the output need, at the most.
    fn elements_read(&self, count: u64) -> u64 {
        let distinct = |strides: &[u32; MAX_RANK]| -> u64 {
            let walked = self.extents.iter().zip(strides).filter(|(_, stride)| **stride != 0);
            walked.map(|(extent, _)| u64::from(*extent)).product()
        };
        self.strides.iter().map(|strides| distinct(strides).min(count)).sum()
    }

    fn mode(&self, k: usize, offset: u32) -> Mode {
        let (rank, strides) = (self.extents.len(), &self.strides[k]);
        if strides[..rank].iter().all(|&s| s == 0) {
            return Mode::Scalar;
        }
        let mut dense = 1u32;
        let is_dense = self.extents.iter().zip(strides).all(|(extent, &stride)| {
            let expected = dense;
            dense = dense.wrapping_mul(*extent);
            stride == expected
        });
        if is_dense && offset % 4 == 0 {
            return Mode::Dense;
        }
        // A last group of fewer than four elements would run over the end of its row.
        if self.extents[0] % 4 != 0 {
            return Mode::Gather;
        }
        match strides[0] {
            0 => Mode::Splat,
            1 if offset % 4 == 0 && strides[1..rank].iter().all(|s| s % 4 == 0) => Mode::Vector,
            _ => Mode::Gather,
        }
    }
}

/// An unsigned division by `d` as a multiplication and a shift, right for every dividend below 2^31:
/// `n / d == (n * multiplier >> 32) >> shift`.
fn division(d: u32) -> (u32, u32) {
    // The smallest l with d <= 2^l; the multiplier is 2^(31+l) / d rounded up, which fits in 32 bits.
    let l = d.max(2).next_power_of_two().trailing_zeros();
    (((1u64 << (31 + l)) / u64::from(d.max(2)) + 1) as u32, l - 1)
}

/// Stands for "no such dimension": everything lies in it.
const ENDLESS: u32 = 1 << 31;

/// The push constants of `glsl/map.comp`, before those of the inputs.
#[repr(C)]
#[derive(Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
struct Push {
    count: u32,
    first: u32,
    extents: [u32; 3],
    magic: [u32; 3],
    shifts: u32,
    scalars: [u32; MAX_SCALARS],
}

/// The push constants of one input.
#[repr(C)]
#[derive(Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
struct PushInput {
    strides: [u32; MAX_RANK],
    offset: u32,
}

/// Elements that one dispatch may cover: indices stay below 2^31.
const WINDOW_ELEMENTS: u64 = 1 << 30;

impl Map {
    /// What so many elements count as: see `Cost`.
    fn flops(&self, dtype: DType, elements: u64) -> u64 {
        if self.step.op == OpCode::Copy || dtype != DType::F32 { 0 } else { elements }
    }

    /// Appends the dispatches that carry the program out: one, or more where the output is larger than a binding.
    pub(crate) fn lower(
        &self,
        label: &Label,
        graph: &Graph,
        catalog: &Catalog,
        out: &mut Vec<Node>,
    ) -> Result<()> {
        let shape = graph.value(self.output).shape;
        let elements = shape.elements() as u64;
        if elements == 0 {
            return Ok(());
        }
        let limits = &catalog.limits;
        let variant = catalog.variant(Family::Map);
        let space = Space::collapse(&shape, &self.inputs);
        let modes: SmallVec<[Mode; MAX_INPUTS]> =
            self.inputs.iter().enumerate().map(|(k, input)| space.mode(k, input.offset)).collect();
        let strided = |mode: Mode| !matches!(mode, Mode::Dense | Mode::Scalar);

        let input_bytes = |input: &MapInput| graph.bytes(graph.root(input.value));
        let fits_texels = self.inputs.iter().all(|input| input_bytes(input) / 16 < limits.texel_elements);
        let load = match variant.load {
            Load::Texel if fits_texels && self.inputs.len() <= limits.texel_bindings as usize => Load::Texel,
            _ => Load::Buffer,
        };
        if load == Load::Buffer {
            // A strided input can't be cut into windows: any part of the output may need any part of it.
            let large = |(input, mode): &(&MapInput, &Mode)| {
                strided(**mode) && input_bytes(input) > limits.storage_range_bytes
            };
            if let Some((input, _)) = self.inputs.iter().zip(&modes).find(large) {
                return Err(Error::TooLarge {
                    op: "strided operand",
                    shape: graph.value(input.value).shape,
                    bytes: input_bytes(input),
                    limit: limits.storage_range_bytes,
                });
            }
        }

        let mut specialization = smallvec![
            (0, variant.local_size),
            (1, variant.vecs),
            (2, limits.subgroup_size.clamp(1, variant.local_size)),
            (3, modes.iter().enumerate().map(|(k, &mode)| (mode as u32) << (4 * k)).sum()),
        ];
        specialization.push((4, self.step.word()));
        let kernel = catalog.kernel(map_module(load, self.inputs.len()))?.clone();
        let pipeline = PipelineKey { kernel, specialization };

        let per_group = u64::from(variant.local_size * variant.vecs * 4);
        let window = WINDOW_ELEMENTS
            .min(limits.storage_range_bytes / 4)
            .min(per_group * u64::from(limits.groups[0]) * u64::from(limits.groups[1]));
        // Windows begin where bindings may.
        let window = window / per_group.max(limits.offset_alignment) * per_group.max(limits.offset_alignment);
        let divisions = |d: usize| {
            let extent = space.extents.get(d).copied();
            // The outermost dimension takes what is left, so it needs no division.
            let extent = if d + 1 < space.extents.len() { extent } else { None };
            let extent = extent.unwrap_or(ENDLESS);
            (extent, division(extent))
        };
        let divisions = [divisions(0), divisions(1), divisions(2)];
        let mut first = 0;
        while first < elements {
            let count = window.min(elements - first);
            let push = Push {
                count: count as u32,
                first: first as u32,
                extents: divisions.map(|(extent, _)| extent),
                magic: divisions.map(|(_, (multiplier, _))| multiplier),
                shifts: divisions.iter().enumerate().map(|(d, (_, (_, shift)))| shift << (8 * d)).sum(),
                scalars: self.scalars,
            };
            let mut bytes: SmallVec<[u8; 128]> = SmallVec::from_slice(bytemuck::bytes_of(&push));
            let mut accesses: SmallVec<[Access; 4]> = SmallVec::new();
            for ((input, mode), strides) in self.inputs.iter().zip(&modes).zip(&space.strides) {
                let mut access = graph.whole(input.value, false);
                access.bytes = input_bytes(input);
                let mut offset = u64::from(input.offset);
                if *mode == Mode::Dense {
                    // A storage binding is moved to the window; a texel view spans the whole, and the index moves.
                    offset += first;
                    if load == Load::Buffer {
                        access.offset = 4 * offset / limits.offset_alignment * limits.offset_alignment;
                        offset -= access.offset / 4;
                        access.bytes = 4 * (offset + count);
                    }
                }
                let input = PushInput { strides: *strides, offset: offset as u32 };
                bytes.extend_from_slice(bytemuck::bytes_of(&input));
                accesses.push(access);
            }
            let output = graph.whole(self.output, true);
            accesses.push(Access { offset: 4 * first, bytes: 4 * count, ..output });
            let groups = count.div_ceil(per_group);
            let x = groups.min(u64::from(limits.groups[0]));
            let groups = [x as u32, groups.div_ceil(x) as u32, 1];
            let work = Work::Dispatch { pipeline: pipeline.clone(), push: bytes, groups };
            let node = Node::new(label.clone(), work, accesses);
            out.push(node.with_flops(self.flops(label.dtype, count)).with_bytes(4 * (space.elements_read(count) + count)));
            first += count;
        }
        Ok(())
    }
}

/// Operations on one dense operand that are made ahead, and on two.
const COMMON: (&[OpCode], &[OpCode]) = (
    &[
        OpCode::Copy,
        OpCode::MulF32,
        OpCode::AddF32,
        OpCode::ReluF32,
        OpCode::ExpF32,
        OpCode::SigmoidF32,
        OpCode::TanhF32,
        OpCode::GeluF32,
    ],
    &[OpCode::AddF32, OpCode::SubF32, OpCode::MulF32, OpCode::DivF32],
);

/// The pipelines of the commonest operations on dense operands, and with a scalar. Others are made when first used:
/// some 30 ms each on lavapipe, so that all of them in all modes would keep a core busy for seconds.
pub(crate) fn prewarm(catalog: &Catalog) -> Result<Vec<PipelineKey>> {
    let mut graph = Graph::default();
    let shape = Shape::from([4]);
    let [a, b, output] = [0; 3].map(|_| graph.add_value(shape, DType::F32, Origin::Produced));
    let input = |value| MapInput { value, strides: dense_strides(&shape), offset: 0 };
    let label = Label { op: LabelName::Op("prewarm"), shape, dtype: DType::F32 };
    let mut nodes = Vec::new();
    let (one, two) = COMMON;
    for (ops, inputs) in [(one, &[a][..]), (two, &[a, b])] {
        for &op in ops {
            let inputs: SmallVec<_> = inputs.iter().map(|value| input(*value)).collect();
            let second = match op {
                _ if inputs.len() == 2 => Operand::Input(1),
                OpCode::AddF32 | OpCode::MulF32 => Operand::Scalar(0),
                _ => Operand::Input(0),
            };
            let step = Step { op, operands: [Operand::Input(0), second, Operand::Input(0)] };
            let map = Map { step, inputs, scalars: [0; MAX_SCALARS], output };
            map.lower(&label, &graph, catalog, &mut nodes)?;
        }
    }
    let keys = nodes.into_iter().filter_map(|node| match node.work {
        Work::Dispatch { pipeline, .. } => Some(pipeline),
        _ => None,
    });
    Ok(keys.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn division_by_multiplication_is_exact() {
        let divisors = (1..70).chain([127, 128, 1000, 65_535, 65_536, 65_537, 1 << 20, (1 << 30) - 1, 1 << 30, ENDLESS]);
        for d in divisors.filter(|&d| d > 1) {
            let (multiplier, shift) = division(d);
            let near = (1..40).map(|k| (k * u64::from(d)).min((1 << 31) - 1) as u32);
            let dividends = near.flat_map(|n| [n - 1, n, n + 1]).chain([0, 1, (1 << 31) - 1]);
            for n in dividends.filter(|&n| n < 1 << 31) {
                let q = ((u64::from(n) * u64::from(multiplier)) >> 32) as u32 >> shift;
                assert_eq!(q, n / d, "{n} / {d}");
            }
        }
    }

    fn input(strides: [u32; 4]) -> MapInput {
        MapInput { value: 0, strides, offset: 0 }
    }

    #[test]
    fn dimensions_collapse_where_every_input_allows() {
        let shape = Shape::from([2, 3, 4, 8]);
        let dense = input(dense_strides(&shape));
        let space = Space::collapse(&shape, &[dense]);
        assert_eq!((space.extents.as_slice(), space.mode(0, 0)), (&[192][..], Mode::Dense));
        let row = input([0, 0, 0, 1]);
        let space = Space::collapse(&shape, &[dense, row]);
        assert_eq!(space.extents.as_slice(), [8, 24]);
        assert_eq!((space.mode(0, 0), space.mode(1, 0)), (Mode::Dense, Mode::Vector));
        let column = input([12, 4, 1, 0]);
        let space = Space::collapse(&shape, &[dense, column]);
        assert_eq!((space.extents.as_slice(), space.mode(1, 0)), (&[8, 24][..], Mode::Splat));
        let transposed = input([96, 32, 1, 4]);
        assert_eq!(Space::collapse(&shape, &[transposed]).mode(0, 0), Mode::Gather);
        assert_eq!(Space::collapse(&shape, &[input([0; 4])]).mode(0, 0), Mode::Scalar);
    }
}
