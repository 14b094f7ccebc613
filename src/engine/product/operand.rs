//! Operands as kernels read them: where they are, or packed into rows that are multiples of four elements.

use smallvec::{SmallVec, smallvec};

use super::{Factor, Lowering, Product};
use crate::engine::catalog::Load;
use crate::engine::graph::{Access, Label, LabelName, Node, Origin, ValueId, Work};
use crate::engine::pipelines::PipelineKey;
use crate::error::{Error, Result};
use crate::shape::{DType, Shape};

/// An operand; strides in groups of four elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Operand {
    pub(super) value: ValueId,
    pub(super) row: u32,
    /// From one tile of columns to the next, where a kernel reads panels.
    pub(super) panel: u32,
    pub(super) batch: [u32; 2],
    /// Groups of four in a row.
    pub(super) width: u32,
    pub(super) along_k: bool,
}

/// How an operand is packed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Packing {
    /// Each row padded.
    AsIs,
    /// Rows along k, padded.
    AlongK,
    /// Panels of so many columns, k rows each.
    Panels(u32),
}

/// The operand as it lies in memory, if kernels can read that: every row must begin at a multiple of four elements,
/// and be one, unless the kernel takes the last few of k one by one.
pub(super) fn in_place(factor: &Factor, across: u32, k: u32, tail: bool) -> Option<Operand> {
    let (rows, length) = if factor.along_k { (across, k) } else { (k, across) };
    let whole = length % 4 == 0 || (rows == 1 && (tail || !factor.along_k));
    let aligned = factor.batch.iter().all(|stride| stride % 4 == 0);
    (whole && aligned).then(|| Operand {
        value: factor.value,
        row: length / 4,
        panel: 0,
        batch: factor.batch.map(|stride| stride / 4),
        width: length.div_ceil(4),
        along_k: factor.along_k,
    })
}

/// The push constants of `glsl/product_pack.comp`.
#[repr(C)]
#[derive(Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
struct PackPush {
    rows: u32,
    columns: u32,
    stride: u32,
    last: u32,
    panels: u32,
    panel_vecs: u32,
    panel_rows: u32,
    blocks: u32,
    first: u32,
    count: u32,
    first_vec: u32,
    batch_inner: u32,
    batch: [u32; 2],
}

/// Invocations of a workgroup that packs.
const LOCAL_SIZE: u32 = 64;

impl Lowering<'_> {
    /// Packs a factor of `across` rows or columns.
    pub(super) fn pack(
        &mut self,
        product: &Product,
        factor: &Factor,
        across: u32,
        packing: Packing,
    ) -> Result<Operand> {
        let k = product.k;
        let (along_k, width) = match packing {
            Packing::AsIs => (factor.along_k, None),
            Packing::AlongK => (true, None),
            Packing::Panels(width) => (false, Some(width)),
        };
        let (rows, columns) = if along_k { (across, k) } else { (k, across) };
        let width = width.unwrap_or(columns.next_multiple_of(4));
        let (panels, panel_vecs) = (columns.div_ceil(width), width / 4);
        // Matrices that several batches share are packed once.
        let distinct = [0, 1].map(|d| if factor.batch[d] == 0 { 1 } else { product.batch[d] });
        let batches = distinct[0] * distinct[1];
        // Panels end with whole steps of k.
        let panel_rows = if matches!(packing, Packing::Panels(_)) { rows.next_multiple_of(4) } else { rows };
        let per_panel = panel_rows.div_ceil(4) * panel_vecs;
        let vecs = u64::from(panels) * u64::from(panel_rows) * u64::from(panel_vecs);
        let shape = Shape::from([batches as usize, vecs as usize, 4]);
        let source = self.graph.whole(factor.value, false);
        let contiguous = if factor.along_k { k } else { across };
        let push = PackPush {
            rows,
            columns,
            stride: contiguous,
            last: (source.bytes.div_ceil(16) - 1) as u32,
            panels,
            panel_vecs,
            panel_rows,
            blocks: panels * per_panel,
            first: 0,
            count: 0,
            first_vec: 0,
            batch_inner: distinct[1],
            batch: factor.batch,
        };
        if u64::from(batches) * vecs >= 1 << 29 {
            return Err(self.too_large(16 * vecs * u64::from(batches), 16 << 29, product));
        }
        let value = self.graph.add_value(shape, DType::F32, Origin::Produced);
        self.pack_windows(product, factor, along_k, &push, (batches, vecs), source, value)?;
        let size = vecs as u32;
        let inner = if factor.batch[1] == 0 { 0 } else { size };
        let outer = if factor.batch[0] == 0 { 0 } else { distinct[1] * size };
        Ok(Operand {
            value,
            row: panel_vecs,
            panel: panel_rows * panel_vecs,
            batch: [outer, inner],
            width: panels * panel_vecs,
            along_k,
        })
    }

    /// The dispatches that pack: one, or more where the output is larger than a binding.
    #[allow(clippy::too_many_arguments, reason = "all of it describes one copy")]
    fn pack_windows(
        &mut self,
        product: &Product,
        factor: &Factor,
        along_k: bool,
        push: &PackPush,
        (batches, vecs): (u32, u64),
        source: Access,
        value: ValueId,
    ) -> Result<()> {
        let limits = self.catalog.limits;
        // Windows are whole panels, or rows by fours where there is one panel only.
        let one = batches == 1 && push.panels == 1;
        let (units, unit_blocks, unit_vecs) = if one {
            (push.panel_rows.div_ceil(4), push.panel_vecs, 4 * u64::from(push.panel_vecs))
        } else {
            (batches * push.panels, push.blocks / push.panels, vecs / u64::from(push.panels))
        };
        let most = (limits.storage_range_bytes / 16 / unit_vecs).min(1 << 20) as u32;
        // By sixteens they begin where bindings may.
        let most = if most >= units { units } else { most / 16 * 16 };
        if most == 0 {
            return Err(self.too_large(16 * 16 * unit_vecs, limits.storage_range_bytes, product));
        }
        let aligned = factor.batch.iter().all(|s| s % 4 == 0) && push.stride % 4 == 0;
        let specialization =
            smallvec![(0, LOCAL_SIZE), (1, u32::from(along_k != factor.along_k)), (2, u32::from(aligned))];
        let module = match self.load {
            Load::Buffer => "product_pack.buffer",
            Load::Texel => "product_pack.texel",
        };
        let pipeline = PipelineKey { kernel: self.catalog.kernel(module)?.clone(), specialization };
        let whole = self.graph.whole(value, true);
        self.check_inputs(&[source])?;
        for i in 0..units.div_ceil(most) {
            let (first, count) = (i * most, most.min(units - i * most));
            let first_vec = u64::from(first) * unit_vecs;
            let offset = 16 * first_vec;
            let bytes = (16 * u64::from(count) * unit_vecs).min(whole.bytes - offset);
            let blocks = count * unit_blocks;
            let push =
                PackPush { first: first * unit_blocks, count: blocks, first_vec: first_vec as u32, ..*push };
            let groups = blocks.div_ceil(LOCAL_SIZE);
            let x = groups.min(limits.groups[0]);
            let groups = [x, groups.div_ceil(x), 1];
            let push: SmallVec<[u8; 128]> = SmallVec::from_slice(bytemuck::bytes_of(&push));
            let label = Label { op: LabelName::Op("pack"), ..self.label.clone() };
            let work = Work::Dispatch { pipeline: pipeline.clone(), push, groups };
            let accesses = smallvec![source, Access { offset, bytes, ..whole }];
            self.out.push(Node::new(label, work, accesses));
        }
        Ok(())
    }

    fn too_large(&self, bytes: u64, limit: u64, product: &Product) -> Error {
        Error::TooLarge { op: "matmul", shape: self.graph.value(product.output).shape, bytes, limit }
    }
}
