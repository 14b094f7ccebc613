//! Elementwise programs become dispatches of `glsl/map.comp`.

use smallvec::{SmallVec, smallvec};

use super::catalog::{Catalog, Family, Load, Variant};
use super::division::Divisions;
use super::graph::{Access, Graph, Label, LabelName, Node, Origin, Work};
use super::map::{MAX_INPUTS, MAX_SCALARS, Map, MapInput, OpCode, Operand, dense_strides};
use super::map_modules::map_module;
use super::op_code::OpSet;
use super::pipelines::{PipelineKey, Specialization};
use crate::error::{Error, Result};
use crate::shape::{DType, MAX_RANK, Shape};

/// How the shader indexes an input; numbers as there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    Dense = 0,
    Scalar = 1,
    Vector = 2,
    Splat = 3,
    Strided = 4,
    Gather = 5,
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

    /// How many bytes of its inputs, of elements of these sizes, `count` elements of the output need, at the most.
    fn bytes_read(&self, count: u64, sizes: &[u64]) -> u64 {
        let distinct = |strides: &[u32; MAX_RANK]| -> u64 {
            let walked = self.extents.iter().zip(strides).filter(|(_, stride)| **stride != 0);
            walked.map(|(extent, _)| u64::from(*extent)).product()
        };
        self.strides.iter().zip(sizes).map(|(strides, size)| size * distinct(strides).min(count)).sum()
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
        if is_dense && offset.is_multiple_of(4) {
            return Mode::Dense;
        }
        // A last group of fewer than four elements would run over the end of its row.
        if !self.extents[0].is_multiple_of(4) {
            return Mode::Gather;
        }
        match strides[0] {
            0 => Mode::Splat,
            1 if offset.is_multiple_of(4) && strides[1..rank].iter().all(|s| s % 4 == 0) => Mode::Vector,
            _ => Mode::Strided,
        }
    }
}

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

/// From so many elements on, those that don't fill a workgroup get a dispatch of their own: on lavapipe a dispatch costs
/// some 15 us, and looking where the end is a third of an add's time (`bench elementwise`).
const TAIL_APART_ELEMENTS: u64 = 1 << 18;

/// The specialization constant that says that no workgroup reaches past the end.
const WHOLE: u32 = 24;
/// The one that says which inputs and outputs are f16.
const HALVES: u32 = 25;

impl Map {
    /// What so many elements count as: see `Cost`.
    pub(super) fn flops(&self, dtype: DType, elements: u64) -> u64 {
        let steps = self.steps.iter().filter(|step| step.op != OpCode::Copy).count() as u64;
        if matches!(dtype, DType::F32 | DType::F16) { elements * steps } else { 0 }
    }

    /// Appends the dispatches that carry the program out: one, or more where an output is larger than a binding.
    pub(crate) fn lower(
        &self,
        label: &Label,
        graph: &Graph,
        catalog: &Catalog,
        out: &mut Vec<Node>,
    ) -> Result<()> {
        let shape =
            self.outputs.first().map_or_else(Shape::default, |output| graph.value(output.value).shape);
        let elements = shape.elements() as u64;
        if elements == 0 {
            return Ok(());
        }
        let limits = &catalog.limits;
        let variant = catalog.variant(Family::Map, elements);
        let space = Space::collapse(&shape, &self.inputs);
        let modes: SmallVec<[Mode; MAX_INPUTS]> =
            self.inputs.iter().enumerate().map(|(k, input)| space.mode(k, input.offset)).collect();
        let load = self.load_path(graph, catalog, variant, &modes)?;
        let strided = modes.iter().any(|mode| !matches!(mode, Mode::Dense | Mode::Scalar));
        let halves = self.halves(graph);
        let module = map_module(load, self, strided || halves != 0);
        let kernel = catalog.kernel(module.name)?;
        let mut specialization = self.specialization(catalog, variant, &space, &modes);
        specialization.extend((halves != 0).then_some((HALVES, halves)));
        let size = |value| graph.value(value).dtype.size_bytes() as u64;
        let sizes: SmallVec<[u64; MAX_INPUTS]> = self.inputs.iter().map(|input| size(input.value)).collect();

        let per_group = u64::from(variant.local_size * variant.vecs * 4);
        let window = WINDOW_ELEMENTS
            .min(limits.storage_range_bytes / 4)
            .min(per_group * u64::from(limits.groups[0]) * u64::from(limits.groups[1]));
        // Windows begin where bindings may.
        let unit = per_group.max(limits.offset_alignment);
        let window = window / unit * unit;
        // Operations are held up by looking where the end is. A pipeline of dear ones costs more to make, so that small
        // sizes share one.
        let unguarded_from = if module.ops < OpSet::All { 0 } else { TAIL_APART_ELEMENTS };
        let divisions = Divisions::new(&space.extents);
        let mut scalars = [0; MAX_SCALARS];
        scalars[..self.scalars.len()].copy_from_slice(&self.scalars);
        let mut first = 0;
        while first < elements {
            let rest = window.min(elements - first);
            let without_tail = rest / unit * unit;
            let tail_apart = variant.vecs > 1 && rest >= TAIL_APART_ELEMENTS;
            let count = if tail_apart { without_tail } else { rest };
            let whole = variant.vecs > 1 && count == without_tail && count >= unguarded_from;
            let pipeline = PipelineKey {
                kernel: kernel.clone(),
                specialization: specialization.iter().copied().chain(whole.then_some((WHOLE, 1))).collect(),
            };
            let push = Push {
                count: count as u32,
                first: first as u32,
                extents: divisions.extents,
                magic: divisions.magic,
                shifts: divisions.shifts,
                scalars,
            };
            let mut bytes: SmallVec<[u8; 128]> = SmallVec::from_slice(bytemuck::bytes_of(&push));
            let mut accesses: SmallVec<[Access; 4]> = SmallVec::new();
            for (k, (input, mode)) in self.inputs.iter().zip(&modes).enumerate() {
                let mut access = graph.whole(input.value, false);
                access.bytes = graph.bytes(graph.root(input.value));
                let mut offset = u64::from(input.offset);
                if *mode == Mode::Dense {
                    // A storage binding is moved to the window; a texel view spans the whole, and the index moves.
                    offset += first;
                    if load == Load::Buffer {
                        access.offset = sizes[k] * offset / limits.offset_alignment * limits.offset_alignment;
                        offset -= access.offset / sizes[k];
                        access.bytes = (sizes[k] * (offset + count)).next_multiple_of(4);
                    }
                }
                let input = PushInput { strides: space.strides[k], offset: offset as u32 };
                bytes.extend_from_slice(bytemuck::bytes_of(&input));
                accesses.push(access);
            }
            // Bindings that the program does not use must have something behind them.
            let spare = accesses.first().copied();
            while accesses.len() < module.inputs {
                accesses.extend(spare);
                bytes.extend_from_slice(bytemuck::bytes_of(&PushInput { strides: [0; MAX_RANK], offset: 0 }));
            }
            for k in 0..module.outputs {
                let output = self.outputs.get(k).unwrap_or(&self.outputs[0]);
                let (whole, size) = (graph.whole(output.value, true), size(output.value));
                let bytes = (size * count).next_multiple_of(4);
                accesses.push(Access { offset: size * first, bytes, ..whole });
            }
            let groups = count.div_ceil(per_group);
            let x = groups.min(u64::from(limits.groups[0]));
            let groups = [x as u32, groups.div_ceil(x) as u32, 1];
            let work = Work::Dispatch { pipeline, push: bytes, groups };
            // Bindings that stand in for none are not counted.
            let written: u64 = self.outputs.iter().map(|output| size(output.value) * count).sum();
            let touched = space.bytes_read(count, &sizes) + written;
            let in_place = if count == elements { self.in_place(graph, &modes, module.inputs) } else { 0 };
            let node = Node::new(label.clone(), work, accesses).with_in_place(in_place);
            out.push(node.with_flops(self.flops(label.dtype, count)).with_bytes(touched));
            first += count;
        }
        Ok(())
    }

    /// Which inputs and outputs are f16, as the shader has it.
    fn halves(&self, graph: &Graph) -> u32 {
        let half = |value| u32::from(graph.value(value).dtype == DType::F16);
        let inputs = self.inputs.iter().enumerate().map(|(k, input)| half(input.value) << k);
        let outputs = self.outputs.iter().enumerate().map(|(k, output)| half(output.value) << (8 + k));
        inputs.chain(outputs).sum()
    }

    /// A bit for each of a module's inputs that an output may be written over: those that are read element for element.
    fn in_place(&self, graph: &Graph, modes: &[Mode], inputs: usize) -> u32 {
        // Halves are loaded together with those of a neighbour, and do not lie where words do.
        let half = |value| graph.value(value).dtype == DType::F16;
        let halves = self.outputs.iter().any(|output| half(output.value));
        let dense = |k: usize| {
            let input = &self.inputs[k];
            modes[k] == Mode::Dense && input.offset == 0 && !halves && !half(input.value)
        };
        // Bindings that stand in for none are never read; the first input is behind them.
        (0..inputs).filter(|&k| k >= modes.len() || dense(k)).fold(0, |all, k| all | 1 << k)
    }

    /// The variant's load path, or storage buffers where a limit of texel buffers is in the way.
    fn load_path(&self, graph: &Graph, catalog: &Catalog, variant: &Variant, modes: &[Mode]) -> Result<Load> {
        let limits = &catalog.limits;
        let bytes = |input: &MapInput| graph.bytes(graph.root(input.value));
        let fits = self.inputs.iter().all(|input| bytes(input) / 16 < limits.texel_elements)
            && MAX_INPUTS <= limits.texel_bindings as usize;
        if variant.load == Load::Texel && fits {
            return Ok(Load::Texel);
        }
        // A strided input can't be cut into windows: any part of the output may need any part of it.
        let large = |(input, mode): &(&MapInput, &Mode)| {
            !matches!(mode, Mode::Dense | Mode::Scalar) && bytes(input) > limits.storage_range_bytes
        };
        match self.inputs.iter().zip(modes).find(large) {
            Some((input, _)) => Err(Error::TooLarge {
                op: "strided operand",
                shape: graph.value(input.value).shape,
                bytes: bytes(input),
                limit: limits.storage_range_bytes,
            }),
            None => Ok(Load::Buffer),
        }
    }

    fn specialization(
        &self,
        catalog: &Catalog,
        variant: &Variant,
        space: &Space,
        modes: &[Mode],
    ) -> Specialization {
        let mut all: Specialization = smallvec![
            (0, variant.local_size),
            (1, variant.vecs),
            (2, catalog.limits.subgroup_size.clamp(1, variant.local_size)),
            // All ones stand for an input that is not used.
            (
                3,
                modes
                    .iter()
                    .enumerate()
                    .fold(u32::MAX, |all, (k, &mode)| all & !(15 << (4 * k)) | (mode as u32) << (4 * k))
            ),
            (4, space.extents.len() as u32),
        ];
        if self.steps.len() > 1 {
            all.push((5, self.outputs.iter().enumerate().map(|(k, o)| u32::from(o.step) << (8 * k)).sum()));
            all.push((6, self.steps.len() as u32));
            all.push((7, self.outputs.len() as u32));
        }
        all.extend(self.steps.iter().enumerate().map(|(k, step)| (8 + k as u32, step.word())));
        all
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

/// The pipelines of the commonest operations on dense operands, and with a scalar: of any size, and cheap ones of whole
/// workgroups. Others are made when first used: some 30 ms each on lavapipe, so that all of them in all modes would
/// keep a core busy for seconds.
pub(crate) fn prewarm(catalog: &Catalog) -> Result<Vec<PipelineKey>> {
    let mut nodes = Vec::new();
    let (one, two) = COMMON;
    let per_group = |elements: usize| {
        let variant = catalog.variant(Family::Map, elements as u64);
        4 * (variant.local_size * variant.vecs) as usize
    };
    let (few, many) = (4usize, 1usize << 20);
    for elements in
        [few, few.next_multiple_of(per_group(few)), many + few, many.next_multiple_of(per_group(many))]
    {
        let mut graph = Graph::default();
        let shape = Shape::from([elements]);
        let [a, b, output] = [0; 3].map(|_| graph.add_value(shape, DType::F32, Origin::Produced));
        let input = |value| MapInput { value, strides: dense_strides(&shape), offset: 0 };
        let label = Label { op: LabelName::Op("prewarm"), shape, dtype: DType::F32 };
        for (ops, inputs) in [(one, &[a][..]), (two, &[a, b])] {
            for &op in ops {
                let inputs: SmallVec<_> = inputs.iter().map(|value| input(*value)).collect();
                let second = match op {
                    _ if inputs.len() == 2 => Operand::Input(1),
                    OpCode::AddF32 | OpCode::MulF32 => Operand::Scalar(0),
                    _ => Operand::Input(0),
                };
                let operands = [Operand::Input(0), second, Operand::Input(0)];
                let map = Map::single(op, operands, inputs, smallvec![0; MAX_SCALARS], output);
                map.lower(&label, &graph, catalog, &mut nodes)?;
            }
        }
    }
    let mut keys = Vec::new();
    for node in nodes {
        if let Work::Dispatch { pipeline, .. } = node.work
            && !keys.contains(&pipeline)
        {
            keys.push(pipeline);
        }
    }
    Ok(keys)
}

#[cfg(test)]
mod tests {
    use super::*;

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
        assert_eq!(Space::collapse(&shape, &[transposed]).mode(0, 0), Mode::Strided);
        assert_eq!(Space::collapse(&shape, &[input([0; 4])]).mode(0, 0), Mode::Scalar);
    }
}
