//! Convolutions: how they become dispatches of `glsl/conv_direct.comp` and `glsl/conv_tile.comp`.

mod direct;
mod inspected;
pub(crate) mod schemes;
#[cfg(test)]
mod tests;
mod tile;

use smallvec::{SmallVec, smallvec};

use crate::error::{Error, Result};
use crate::ir::branches::branch;
use crate::ir::conv2d::{Convolution, Weights};
use crate::ir::epilogue::{Epilogue, PushResult};
use crate::ir::graph::{Access, Graph, Label, Node, Origin, ValueId};
use crate::kernels::catalog::{Catalog, Family, Load};
use crate::kernels::epilogue::set_constants;
use crate::kernels::launch::Launch;
use crate::kernels::matmul::sum::Parts;
use crate::kernels::modules::constants::{Constants, Includes, KernelFile};
use crate::kernels::modules::epilogue;
use crate::kernels::pack::Pack;
use crate::kernels::together::one_batch;
use crate::shape::{DType, Shape, product};
use crate::vk::physical::Limits;
use schemes::Scheme;

pub(crate) use inspected::inspected;

const OP: &str = "conv2d";

/// Appends the dispatch that lays weights out as `[group][channel][kernel row][tap][row]`, rows padded to fours.
pub(crate) fn prepare(
    weights: &Weights,
    label: &Label,
    graph: &mut Graph,
    catalog: &Catalog,
) -> Result<(ValueId, Vec<Node>)> {
    // A copy loads as elementwise work does: what is laid out is the same for every scheme.
    let elements = graph.value(weights.value).shape.elements() as u64;
    let load = catalog.load_of(catalog.variant(Family::Map, elements).load, graph, [weights.value]);
    let mut nodes = Vec::new();
    let pack = Pack {
        op: OP,
        source: weights.value,
        rows: weights.depth,
        columns: weights.rows,
        transposed: true,
        top: 0,
        left: 0,
        panels: 1,
        panel_vecs: weights.rows.div_ceil(4),
        panel_rows: weights.depth,
        batch: [1, weights.groups],
        strides: [0, weights.rows * weights.depth],
    };
    let value = pack.lower(load, label, graph, catalog, &mut nodes)?;
    Ok((value, nodes))
}

/// Refuses results of which not even one image fits a binding.
pub(crate) fn check_result(result: Shape, limits: &Limits) -> Result<()> {
    let [images, image @ ..] = result.dims() else { return Ok(()) };
    let bytes = 4u64.saturating_mul(product(image) as u64);
    let limit = window_bytes(limits);
    if branch!("convolution: no image fits", *images > 0 && bytes > limit) {
        Err(Error::Binding { op: OP, shape: result, bytes, limit })
    } else {
        Ok(())
    }
}

/// What one dispatch may write: a binding may have to begin a little before it.
fn window_bytes(limits: &Limits) -> u64 {
    limits.storage_range_bytes - limits.offset_alignment
}

/// A kernel with its tile and its share of the sums, for one dispatch of some images.
trait Way {
    /// The kernel's own push constants.
    type Push: bytemuck::NoUninit;

    /// The kernel.
    type Kernel: KernelFile + Includes<epilogue::File>;

    fn module(&self, load: Load, plain: bool) -> <Self::Kernel as KernelFile>::Module;
    /// The module with texel loads and the commonest operations whose subgroups store together, if there is one for so many
    /// images of this result.
    fn module_together(
        &self,
        images: u32,
        result: &PushResult,
        catalog: &Catalog,
    ) -> Option<<Self::Kernel as KernelFile>::Module> {
        let _ = (images, result, catalog);
        None
    }
    /// Constants of the kernel, for an input that is f16 or not.
    fn constants(&self, half: bool) -> Constants<Self::Kernel>;
    /// Tiles of one image's result at least; images may share tiles.
    fn tiles(&self, images: u32) -> u64;
    /// The third dimension of the grid, for so many parts.
    fn depth(&self, images: u32, parts: u32) -> u32;
    /// Units of a sum, and how many of them make a step of the kernel's loop.
    fn units(&self) -> (u32, u32);
    /// Whether results are stored in aligned groups of four that are all inside rows of such a pitch; and whether
    /// they begin at multiples of four at the least.
    fn stores(&self, pitch: u32) -> (bool, bool);
    fn push(&self, images: u32, chunk: u32, result: PushResult) -> Self::Push;
}

impl Convolution {
    fn pixels(&self) -> u32 {
        self.result[0] * self.result[1]
    }

    /// Channels of the result.
    fn all_rows(&self) -> u32 {
        self.groups * self.rows
    }

    /// Products in one element of the result.
    fn depth(&self) -> u32 {
        self.channels * self.taps[0] * self.taps[1]
    }

    /// Images, channels and pixels of the result, as the epilogue counts them.
    pub(crate) fn extents(&self) -> [u32; 3] {
        [self.images, self.all_rows(), self.pixels()]
    }

    /// Appends the dispatches that carry the convolution out: usually one, and before it one that puts zeros around the
    /// input; after it one that adds up parts of split sums; more where the result is larger than a binding.
    pub(crate) fn lower(
        &self,
        label: &Label,
        graph: &mut Graph,
        catalog: &Catalog,
        out: &mut Vec<Node>,
    ) -> Result<()> {
        let results = u64::from(self.images) * u64::from(self.all_rows()) * u64::from(self.pixels());
        let scheme = catalog.convolutions(self.rows, results);
        let extras = self.epilogue.extras.iter().map(|extra| extra.value);
        let load = catalog.load_of(scheme.load, graph, [self.input, self.weights].into_iter().chain(extras));
        let launch = Launch { op: OP, label, catalog, load };
        let mut lowering = Lowering { launch, scheme, convolution: self, graph, nodes: out };
        let direct = direct::Direct::new(self, scheme, catalog);
        branch!("convolution: direct", direct.is_some());
        let first = match direct {
            Some(mut way) => {
                let input = way.padded(self, &mut lowering)?;
                let first = lowering.nodes.len();
                lowering.dispatches(&way, input)?;
                first
            }
            None => {
                let first = lowering.nodes.len();
                lowering.dispatches(&tile::Tiles::new(self, scheme, &catalog.limits), self.input)?;
                first
            }
        };
        if let [node] = &mut out[first..] {
            node.cost.flops = Some(2 * results * u64::from(self.depth()));
        }
        Ok(())
    }
}

struct Lowering<'a> {
    launch: Launch<'a>,
    scheme: &'static Scheme,
    convolution: &'a Convolution,
    graph: &'a mut Graph,
    nodes: &'a mut Vec<Node>,
}

impl Lowering<'_> {
    fn dispatches(&mut self, way: &impl Way, input: ValueId) -> Result<()> {
        let limits = self.launch.catalog.limits;
        let c = self.convolution;
        let (rows, n) = (c.all_rows(), c.pixels());
        let (count, chunk) = self.split(way);
        // Parts lie in rows of whole vectors, results do not.
        let split = branch!("convolution: split", count > 1);
        let pitch = if split { n.next_multiple_of(4) } else { n };
        let image_bytes = 4 * u64::from(rows) * u64::from(pitch) * u64::from(count);
        let most = window_bytes(&limits) / image_bytes;
        let most = most.min(u64::from(limits.groups[2] / count)).min(u64::from(c.images)) as u32;
        if most == 0 {
            branch!("convolution: an image is too large");
            let shape = self.graph.value(c.output).shape;
            let limit = window_bytes(&limits);
            return Err(Error::Binding { op: OP, shape, bytes: image_bytes, limit });
        }
        let mut first = 0;
        while first < c.images {
            branch!("convolution: later window", first > 0);
            let images = most.min(c.images - first);
            let byte = 4 * u64::from(first) * u64::from(rows) * u64::from(n);
            let offset = byte / limits.offset_alignment * limits.offset_alignment;
            let bytes = 4 * u64::from(images) * u64::from(rows) * u64::from(n) + (byte - offset);
            let target = Access { offset, bytes, ..self.graph.whole(c.output, true) };
            let result = PushResult {
                m: rows,
                n,
                first_row: 0,
                first_batch: first,
                batch_inner: c.images,
                c_row: n,
                c_batch: rows * n,
                c_base: ((byte - offset) / 4) as u32,
                alpha: 1.0,
                ..PushResult::default()
            };
            let result = result.with(&c.epilogue);
            if branch!("convolution: one part", count == 1) {
                let [x0, x1] = c.epilogue.inputs(c.weights).map(|value| self.graph.whole(value, false));
                let push = way.push(images, chunk, result);
                let plain_texels = c.epilogue.is_plain() && self.launch.load == Load::Texel;
                let together = way.module_together(images, &result, self.launch.catalog);
                let together = together.filter(|_| branch!("convolution: plain texels", plain_texels));
                let module = together.unwrap_or_else(|| way.module(self.launch.load, c.epilogue.is_plain()));
                branch!("convolution: together", together.is_some());
                let push: SmallVec<[u8; 128]> = match together {
                    Some(_) => {
                        let operands = bytemuck::bytes_of(&push);
                        one_batch(&operands[..operands.len() - size_of::<PushResult>()], &result)
                    }
                    None => SmallVec::from_slice(bytemuck::bytes_of(&push)),
                };
                let kernel = (module, way.stores(pitch));
                self.dispatch(way, input, &c.epilogue, &push, (images, 1), kernel, [x0, x1, target])?;
            } else {
                let shape = Shape::from([(count * images * rows) as usize, pitch as usize]);
                let value = self.graph.add_value(shape, DType::F32, Origin::Produced);
                let spare = self.graph.whole(c.weights, false);
                let to = self.graph.whole(value, true);
                let of_part = PushResult { c_row: pitch, c_batch: rows * pitch, c_base: 0, ..result };
                let push = way.push(images, chunk, of_part);
                let plain = Epilogue::default();
                let kernel = (way.module(self.launch.load, true), way.stores(pitch));
                let push = bytemuck::bytes_of(&push);
                self.dispatch(way, input, &plain, push, (images, count), kernel, [spare, spare, to])?;
                let parts = Parts { value, count, batches: images, rows, pitch };
                self.nodes.push(parts.sum(&self.launch, self.graph, result, &c.epilogue, target)?);
            }
            first += images;
        }
        Ok(())
    }

    /// One dispatch of the kernel, a module and how it stores; `others` are the epilogue's inputs and the output.
    #[allow(clippy::too_many_arguments, reason = "all of it describes one dispatch")]
    fn dispatch<W: Way>(
        &mut self,
        way: &W,
        input: ValueId,
        epilogue: &Epilogue,
        push: &[u8],
        (images, parts): (u32, u32),
        (module, (wide, aligned)): (<W::Kernel as KernelFile>::Module, (bool, bool)),
        others: [Access; 3],
    ) -> Result<()> {
        let mut constants = way.constants(self.graph.value(input).dtype == DType::F16);
        set_constants(epilogue, (wide, aligned), &mut constants);
        let kernel = constants.of(module);
        let mut accesses: SmallVec<[Access; 4]> =
            smallvec![self.graph.whole(input, false), self.graph.whole(self.convolution.weights, false)];
        accesses.extend(others);
        let grid = (way.tiles(images), way.depth(images, parts));
        self.nodes.push(self.launch.node(self.graph, kernel, push, grid, accesses)?);
        Ok(())
    }

    /// Into how many parts sums are split, and how many units each but the last has: several where tiles are fewer than
    /// what keeps the device busy and the parts of an image fit a binding, or where a loop would be longer than it may be.
    fn split(&self, way: &impl Way) -> (u32, u32) {
        let (c, scheme) = (self.convolution, self.scheme);
        let (units, step) = way.units();
        let tiles = way.tiles(c.images) * u64::from(way.depth(c.images, 1));
        let worth = u64::from(c.depth() / scheme.least_part);
        let part_bytes = 4 * u64::from(c.all_rows()) * u64::from(c.pixels().next_multiple_of(4));
        let room = window_bytes(&self.launch.catalog.limits) / part_bytes;
        let wanted = scheme.busy_groups.div_ceil(tiles).min(8).min(worth).min(room).max(1) as u32;
        let longest = crate::kernels::matmul::shape::MOST_ITERATIONS.saturating_mul(step);
        let chunk = units.div_ceil(wanted).next_multiple_of(step);
        branch!("convolution: split to be busy", wanted > 1);
        branch!("convolution: split to be short", chunk > longest);
        let chunk = chunk.min(longest);
        (units.div_ceil(chunk), chunk)
    }
}
