//! Copies of matrices in rows of whole groups of four elements, with zeros around them: `glsl/matmul_pack.comp`. Halves
//! are widened on the way. Matmuls have operands packed that kernels can't read in place, convolutions their inputs and
//! weights.

use smallvec::{SmallVec, smallvec};

use crate::error::{Error, Result};
use crate::ir::branches::branch;
use crate::ir::command::{Action, Command};
use crate::ir::pipeline_key::PipelineKey;
use crate::ir::value::{Access, Label, LabelName, Origin, ValueId, Values};
use crate::kernels::bindings::grid;
use crate::kernels::catalog::{Catalog, Load};
use crate::kernels::modules::constants::Constants;
use crate::kernels::modules::matmul_pack;
use crate::shape::{DType, Format, Shape};
use crate::vk::physical::Limits;

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
    pub(crate) panel_vec4s: u32,
    pub(crate) panel_rows: u32,
    /// Extents and strides of the source's batch dimensions, in elements.
    pub(crate) batch: [u32; 2],
    pub(crate) strides: [u32; 2],
}

/// The push constants of `glsl/matmul_pack.comp`.
#[repr(C)]
#[derive(Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
struct Push {
    rows: u32,
    columns: u32,
    stride: u32,
    last: u32,
    panels: u32,
    panel_vec4s: u32,
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
const MOST_VEC4S: u64 = 1 << 29;

impl Pack {
    /// Groups of four in the copy of one matrix.
    pub(crate) fn vec4s(&self) -> u64 {
        u64::from(self.panels) * u64::from(self.panel_rows) * u64::from(self.panel_vec4s)
    }

    /// Groups of four in the copies of all matrices.
    fn all_vec4s(&self) -> u64 {
        u64::from(self.batch[0] * self.batch[1]) * self.vec4s()
    }

    /// The shape of what it makes.
    pub(crate) fn shape(&self) -> Shape {
        Shape::from([self.all_vec4s() as usize, 4])
    }

    /// The units of a window, whole panels, or rows by fours where there is one panel only: how many there are, and
    /// blocks and groups of four in each.
    fn units(&self) -> (u32, u32, u64) {
        let per_panel = self.per_panel();
        if branch!("pack: windows of rows", self.batch == [1, 1] && self.panels == 1) {
            (self.panel_rows.div_ceil(4), self.panel_vec4s, 4 * u64::from(self.panel_vec4s))
        } else {
            (self.batch[0] * self.batch[1] * self.panels, per_panel, self.vec4s() / u64::from(self.panels))
        }
    }

    fn per_panel(&self) -> u32 {
        self.panel_rows.div_ceil(4) * self.panel_vec4s
    }

    /// How many units one dispatch copies at the most; 0 if not even the fewest fit a binding.
    fn window(&self, limits: &Limits) -> u32 {
        let (units, _, unit_vec4s) = self.units();
        let most = (limits.storage_range_bytes / 16 / unit_vec4s).min(1 << 20) as u32;
        // By sixteens they begin where bindings may.
        if branch!("pack: one window", most >= units) { units } else { most / 16 * 16 }
    }

    /// Refuses what no binding can span.
    pub(crate) fn check(&self, load: Load, values: &Values, catalog: &Catalog) -> Result<()> {
        let shape = values.value(self.source).shape;
        let too_large = |bytes, limit| Err(Error::BindingTooLarge { op: self.op, shape, bytes, limit });
        if self.all_vec4s() >= MOST_VEC4S {
            return too_large(16 * self.all_vec4s(), 16 * MOST_VEC4S);
        }
        catalog.check_inputs(self.op, load, [values.binding(self.source)])?;
        let limits = &catalog.limits;
        if branch!("pack: too wide", self.window(limits) == 0) {
            let (_, _, unit_vec4s) = self.units();
            return too_large(16 * 16 * unit_vec4s, limits.storage_range_bytes);
        }
        Ok(())
    }

    /// Appends the dispatches that copy, into a value of their own: one, or more where the copy is larger than a
    /// binding.
    pub(crate) fn lower(
        &self,
        load: Load,
        label: &Label,
        values: &mut Values,
        catalog: &Catalog,
        out: &mut Vec<Command>,
    ) -> Result<ValueId> {
        self.check(load, values, catalog)?;
        let value = values.add_value(self.shape(), DType::F32, Origin::Produced);
        self.lower_into(value, load, label, values, catalog, out)?;
        Ok(value)
    }

    /// The same into a value of [`shape`](Pack::shape), for what was [checked](Pack::check).
    pub(crate) fn lower_into(
        &self,
        value: ValueId,
        load: Load,
        label: &Label,
        values: &Values,
        catalog: &Catalog,
        out: &mut Vec<Command>,
    ) -> Result<()> {
        let source = values.whole(self.source, false);
        let across = branch!("pack: across", self.transposed);
        let stride = if across { self.rows } else { self.columns };
        let push = Push {
            rows: self.rows,
            columns: self.columns,
            stride,
            last: (source.bytes.div_ceil(16) - 1) as u32,
            panels: self.panels,
            panel_vec4s: self.panel_vec4s,
            panel_rows: self.panel_rows,
            blocks: self.panels * self.per_panel(),
            first: 0,
            count: 0,
            first_vec: 0,
            batch_inner: self.batch[1],
            strides: self.strides,
            top: self.top,
            left: self.left,
        };
        let limits = &catalog.limits;
        let ((units, unit_blocks, unit_vec4s), most) = (self.units(), self.window(limits));
        let format = values.value(self.source).dtype.format();
        let pipeline = self.pipeline(load, stride, format, catalog)?;
        let whole = values.whole(value, true);
        for i in 0..units.div_ceil(most) {
            let (first, count) = (i * most, most.min(units - i * most));
            let first_vec = u64::from(first) * unit_vec4s;
            let offset = 16 * first_vec;
            let bytes = (16 * u64::from(count) * unit_vec4s).min(whole.bytes - offset);
            let blocks = count * unit_blocks;
            let push =
                Push { first: first * unit_blocks, count: blocks, first_vec: first_vec as u32, ..push };
            let action = Action::Dispatch {
                pipeline: pipeline.clone(),
                push: SmallVec::from_slice(bytemuck::bytes_of(&push)),
                groups: grid(u64::from(blocks.div_ceil(LOCAL_SIZE)), limits),
            };
            let label = Label { op: LabelName::Op("pack"), ..label.clone() };
            out.push(Command::new(label, action, smallvec![source, Access { offset, bytes, ..whole }]));
        }
        Ok(())
    }

    fn pipeline(&self, load: Load, stride: u32, format: Format, catalog: &Catalog) -> Result<PipelineKey> {
        branch!("pack: packed", format != Format::Word);
        let aligned = [self.strides[0], self.strides[1], stride, self.left].iter().all(|s| s % 4 == 0);
        let constants = Constants::<matmul_pack::File>::new(LOCAL_SIZE)
            .with(matmul_pack::TRANSPOSED, branch!("pack: transposed", self.transposed))
            .with(matmul_pack::ALIGNED, branch!("pack: aligned", aligned))
            .with(matmul_pack::SOURCE_FORMAT, format as u32);
        catalog.pipeline(constants.of(match load {
            Load::Buffer => matmul_pack::Module::Buffer,
            Load::Texel => matmul_pack::Module::Texel,
        }))
    }
}
