//! Copies of matrices in rows of whole groups of four elements, with zeros around them: `glsl/product_pack.comp`.
//! Halves are widened on the way. Matrix products have operands packed that kernels can't read in place, convolutions their inputs and weights.

use smallvec::{SmallVec, smallvec};

use crate::error::{Error, Result};
use crate::ir::branches::branch;
use crate::ir::graph::{Access, Graph, Label, LabelName, Node, Origin, ValueId, Work};
use crate::ir::pipeline_key::PipelineKey;
use crate::kernels::catalog::{Catalog, Load};
use crate::kernels::modules::constants::Constants;
use crate::kernels::modules::product_pack;
use crate::shape::{DType, Shape};

/// What is copied where: dense matrices into `[batch][panel][panel_rows][panel_vecs]` groups of four.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pack {
    /// For errors.
    pub(crate) op: &'static str,
    pub(crate) source: ValueId,
    /// Of one matrix, as the copy has it.
    pub(crate) rows: u32,
    pub(crate) columns: u32,
    /// Whether neighbours in memory are neighbouring rows.
    pub(crate) transposed: bool,
    /// Rows and columns of zeros before the matrix.
    pub(crate) top: u32,
    pub(crate) left: u32,
    /// Panels side by side, that hold all columns.
    pub(crate) panels: u32,
    /// Width of a panel, in groups of four.
    pub(crate) panel_vecs: u32,
    pub(crate) panel_rows: u32,
    /// Extents and strides of the source's batch dimensions, in elements.
    pub(crate) batch: [u32; 2],
    pub(crate) strides: [u32; 2],
}

/// The push constants of `glsl/product_pack.comp`.
#[repr(C)]
#[derive(Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
struct Push {
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
    strides: [u32; 2],
    top: u32,
    left: u32,
}

/// Invocations of a workgroup.
const LOCAL_SIZE: u32 = 64;
/// Groups of four that indices can count.
const MOST_VECS: u64 = 1 << 29;

impl Pack {
    /// Groups of four in the copy of one matrix.
    pub(crate) fn vecs(&self) -> u64 {
        u64::from(self.panels) * u64::from(self.panel_rows) * u64::from(self.panel_vecs)
    }

    /// Appends the dispatches that copy: one, or more where the copy is larger than a binding.
    pub(crate) fn lower(
        &self,
        load: Load,
        label: &Label,
        graph: &mut Graph,
        catalog: &Catalog,
        out: &mut Vec<Node>,
    ) -> Result<ValueId> {
        let batches = self.batch[0] * self.batch[1];
        let vecs = u64::from(batches) * self.vecs();
        if vecs >= MOST_VECS {
            return Err(self.too_large(graph, 16 * vecs, 16 * MOST_VECS));
        }
        let value = graph.add_value(Shape::from([vecs as usize, 4]), DType::F32, Origin::Produced);
        let source = graph.whole(self.source, false);
        catalog.check_inputs(self.op, graph, load, &[source])?;
        let across = branch!("pack: across", self.transposed);
        let stride = if across { self.rows } else { self.columns };
        let per_panel = self.panel_rows.div_ceil(4) * self.panel_vecs;
        let push = Push {
            rows: self.rows,
            columns: self.columns,
            stride,
            last: (source.bytes.div_ceil(16) - 1) as u32,
            panels: self.panels,
            panel_vecs: self.panel_vecs,
            panel_rows: self.panel_rows,
            blocks: self.panels * per_panel,
            first: 0,
            count: 0,
            first_vec: 0,
            batch_inner: self.batch[1],
            strides: self.strides,
            top: self.top,
            left: self.left,
        };
        // Windows are whole panels, or rows by fours where there is one panel only.
        let (units, unit_blocks, unit_vecs) =
            if branch!("pack: windows of rows", batches == 1 && self.panels == 1) {
                (self.panel_rows.div_ceil(4), self.panel_vecs, 4 * u64::from(self.panel_vecs))
            } else {
                (batches * self.panels, per_panel, self.vecs() / u64::from(self.panels))
            };
        let limits = &catalog.limits;
        let most = (limits.storage_range_bytes / 16 / unit_vecs).min(1 << 20) as u32;
        // By sixteens they begin where bindings may.
        let most = if branch!("pack: one window", most >= units) { units } else { most / 16 * 16 };
        if branch!("pack: too wide", most == 0) {
            return Err(self.too_large(graph, 16 * 16 * unit_vecs, limits.storage_range_bytes));
        }
        let is_half = graph.value(self.source).dtype == DType::F16;
        let pipeline = self.pipeline(load, stride, is_half, catalog)?;
        let whole = graph.whole(value, true);
        for i in 0..units.div_ceil(most) {
            let (first, count) = (i * most, most.min(units - i * most));
            let first_vec = u64::from(first) * unit_vecs;
            let offset = 16 * first_vec;
            let bytes = (16 * u64::from(count) * unit_vecs).min(whole.bytes - offset);
            let blocks = count * unit_blocks;
            let push =
                Push { first: first * unit_blocks, count: blocks, first_vec: first_vec as u32, ..push };
            let groups = blocks.div_ceil(LOCAL_SIZE);
            let x = groups.min(limits.groups[0]);
            let work = Work::Dispatch {
                pipeline: pipeline.clone(),
                push: SmallVec::from_slice(bytemuck::bytes_of(&push)),
                groups: [x, groups.div_ceil(x), 1],
            };
            let label = Label { op: LabelName::Op("pack"), ..label.clone() };
            out.push(Node::new(label, work, smallvec![source, Access { offset, bytes, ..whole }]));
        }
        Ok(value)
    }

    fn pipeline(&self, load: Load, stride: u32, is_half: bool, catalog: &Catalog) -> Result<PipelineKey> {
        let aligned = [self.strides[0], self.strides[1], stride, self.left].iter().all(|s| s % 4 == 0);
        let constants = Constants::<product_pack::File>::new(LOCAL_SIZE)
            .with(product_pack::TRANSPOSED, branch!("pack: transposed", self.transposed))
            .with(product_pack::ALIGNED, branch!("pack: aligned", aligned))
            .with(product_pack::IS_HALF, branch!("pack: half", is_half));
        catalog.pipeline(constants.of(match load {
            Load::Buffer => product_pack::Module::Buffer,
            Load::Texel => product_pack::Module::Texel,
        }))
    }

    fn too_large(&self, graph: &Graph, bytes: u64, limit: u64) -> Error {
        Error::Binding { op: self.op, shape: graph.value(self.source).shape, bytes, limit }
    }
}
