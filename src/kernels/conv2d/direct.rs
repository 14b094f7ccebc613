//! `glsl/conv_direct.comp`.

use super::schemes::Scheme;
use super::{ConvKernel, Lowering, OP};
use crate::error::Result;
use crate::ir::branches::branch;
use crate::ir::conv2d::Convolution;
use crate::ir::epilogue::PushResult;
use crate::ir::value::ValueId;
use crate::kernels::catalog::{Catalog, Load};
use crate::kernels::modules::constants::Constants;
use crate::kernels::modules::conv_direct;
use crate::kernels::pack::Pack;
use crate::kernels::uniform_store::{MOST_SUBGROUPS, whole_subgroups};
use crate::vk::physical::Limits;

/// Invocations of a workgroup that hands nothing round.
const LOCAL_SIZE: u32 = 64;
/// Elements of an input row that one kernel row of four pixels may span: they are loaded into registers.
const MOST_SPAN: u32 = 100;

/// Bytes of a padded copy, whatever it holds.
const MOST_ZEROS: u64 = 1 << 20;

/// A convolution's kernel, and where its operands lie.
pub(super) struct Direct<'a> {
    convolution: &'a Convolution,
    lanes: u32,
    /// Channels of the result that an invocation owns.
    rows: u32,
    /// Kernel rows in an iteration.
    unroll: u32,
    /// Of the input as it is read, in groups of four: from one row to the next, one channel, one image.
    pitches: [u32; 3],
}

/// The push constants of the kernel.
#[repr(C)]
#[derive(Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
pub(super) struct Push {
    width: u32,
    groups: u32,
    group_rows: u32,
    quads: u32,
    x_row: u32,
    x_tap: u32,
    x_channel: u32,
    x_image: u32,
    w_tap: u32,
    channels: u32,
    taps_y: u32,
    chunk: u32,
    result: PushResult,
}

impl<'a> Direct<'a> {
    /// `None` if the scheme, the device or the kernel can't.
    pub(super) fn new(c: &'a Convolution, scheme: &Scheme, catalog: &Catalog) -> Option<Direct<'a>> {
        let direct = scheme.direct.filter(|_| branch!("direct: rows", c.rows <= scheme.direct_rows))?;
        let taps = c.taps[1];
        let span = (3 * u64::from(c.stride[1])) + u64::from(taps - 1) * u64::from(c.dilation[1]) + 1;
        if branch!("direct: many taps", taps > direct.most_taps)
            || branch!("direct: wide span", span > u64::from(MOST_SPAN))
        {
            return None;
        }
        let wanted = c.rows.next_power_of_two().min(direct.most_rows);
        // Many taps are few channels' work.
        let rows = if branch!("direct: taps", taps > 8) { wanted.min(direct.most_rows / 2) } else { wanted };
        // Its modules shuffle, though not for so few rows.
        if branch!("direct: no shuffles", !catalog.shuffles) {
            return None;
        }
        let steps = c.channels * c.taps[0];
        let fits = |u: &u32| steps.is_multiple_of(*u) && (*u == 1 || u * rows * taps <= direct.unrolled);
        let unroll = [8, 4, 3, 2, 1].into_iter().find(fits)?;
        if c.needs_copy() && !branch!("direct: copy is worth it", c.copy_is_worth_it(&catalog.limits)) {
            return None;
        }
        let lanes = direct.lanes.min(catalog.limits.subgroup_size);
        Some(Direct { convolution: c, lanes, rows, unroll, pitches: [0; 3] })
    }

    /// The input with zeros around it and rows of whole vectors: a copy, unless it is like that as it lies.
    pub(super) fn padded(&mut self, c: &Convolution, lowering: &mut Lowering<'_>) -> Result<ValueId> {
        let channels = c.groups * c.channels;
        let [height, row] = c.size;
        let copy = c.copy();
        branch!("direct: copied", copy.is_some());
        let Some(pack) = copy else {
            self.pitches = [row / 4, height * (row / 4), channels * height * (row / 4)];
            return Ok(c.input);
        };
        let launch = lowering.launch;
        let value =
            pack.lower(launch.load, launch.label, lowering.values, launch.catalog, lowering.commands)?;
        let Pack { panel_rows, panel_vec4s: width, .. } = pack;
        self.pitches = [width, panel_rows * width, channels * panel_rows * width];
        Ok(value)
    }

    fn local_size(&self) -> u32 {
        if branch!("direct: handed round", self.rows > 4) { self.lanes } else { LOCAL_SIZE }
    }

    /// Groups of four pixels.
    fn quads(&self, images: u32) -> u32 {
        let [height, width] = self.convolution.result;
        images * height * width.div_ceil(4)
    }
}

impl Convolution {
    /// What the kernel reads of a padded image: rows, and groups of four in a row.
    fn padded_size(&self) -> [u32; 2] {
        let reach = |d: usize| (self.taps[d] - 1) * self.dilation[d] + 1;
        let vec4s = (3 * self.stride[1] + reach(1) - 1) / 4 + 1;
        let width = (self.result[1].div_ceil(4) - 1) * self.stride[1] + vec4s;
        [(self.result[0] - 1) * self.stride[0] + reach(0), width]
    }

    /// The copy that the kernel reads, unless it reads the input as it lies.
    pub(super) fn copy(&self) -> Option<Pack> {
        let ([panel_rows, width], [height, row]) = (self.padded_size(), self.size);
        let pack = Pack {
            op: OP,
            source: self.input,
            rows: height,
            columns: row,
            transposed: false,
            top: self.padding[0],
            left: self.padding[1],
            panels: 1,
            panel_vec4s: width,
            panel_rows,
            batch: [1, self.images * self.groups * self.channels],
            strides: [0, height * row],
        };
        self.needs_copy().then_some(pack)
    }

    /// Whether the kernel can't read the input as it lies.
    fn needs_copy(&self) -> bool {
        let row = self.size[1];
        self.padding != [0, 0] || !row.is_multiple_of(4) || self.padded_size()[1] > row / 4
    }

    /// Not where it would be mostly zeros, or longer than a binding: tiles do without.
    fn copy_is_worth_it(&self, limits: &Limits) -> bool {
        let product = |extents: &[u32]| extents.iter().map(|&extent| u64::from(extent)).product::<u64>();
        let [panel_rows, width] = self.padded_size();
        let channels = [self.images, self.groups, self.channels];
        let padded = 16 * product(&[panel_rows, width]);
        let copied = product(&channels).saturating_mul(padded);
        let needed = 4 * product(&channels) * product(&self.size) + 4 * product(&self.extents());
        branch!("direct: copy fits", copied <= limits.storage_range_bytes)
            && branch!("direct: few zeros", copied <= MOST_ZEROS.max(8 * needed))
    }
}

impl ConvKernel for Direct<'_> {
    type Push = Push;
    type Kernel = conv_direct::File;

    fn module(&self, load: Load, plain: bool) -> conv_direct::Module {
        match (load, plain) {
            (Load::Buffer, true) => conv_direct::Module::BufferPlain,
            (Load::Buffer, false) => conv_direct::Module::BufferAll,
            (Load::Texel, true) => conv_direct::Module::TexelPlain,
            (Load::Texel, false) => conv_direct::Module::TexelAll,
        }
    }

    fn uniform_module(
        &self,
        images: u32,
        result: &PushResult,
        catalog: &Catalog,
    ) -> Option<conv_direct::Module> {
        let (c, limits) = (self.convolution, &catalog.limits);
        let whole = branch!("direct: whole subgroups", self.quads(1).is_multiple_of(self.lanes))
            && branch!("direct: whole fours", c.result[1].is_multiple_of(4))
            && branch!("direct: pixels by eight", c.pixels().is_multiple_of(8))
            && branch!("direct: whole rows", c.rows.is_multiple_of(self.rows));
        let alone = images == 1 && result.first_batch == 0 && result.c_base == 0 && c.groups == 1;
        // The grid is a line: there may be no subgroup too many.
        let fits = self.tiles(1) <= u64::from(limits.groups[0]).min(MOST_SUBGROUPS);
        let able = catalog.uniform_store
            && self.lanes == limits.subgroup_size
            && whole_subgroups(self.lanes, limits);
        (whole
            && branch!("direct: alone", alone)
            && branch!("direct: line of tiles", fits)
            && branch!("direct: uniform store", self.rows > 4)
            && able)
            .then_some(conv_direct::Module::TexelUniformPlain)
    }

    fn constants(&self, is_f16: bool) -> Constants<conv_direct::File> {
        let c = self.convolution;
        Constants::new(self.local_size())
            .with(conv_direct::LANES, self.lanes)
            .with(conv_direct::ROWS, self.rows)
            .with(conv_direct::TAPS, c.taps[1])
            .with(conv_direct::STRIDE, c.stride[1])
            .with(conv_direct::DILATION, c.dilation[1])
            .with(conv_direct::UNROLL, self.unroll)
            .with(conv_direct::IS_F16, is_f16)
    }

    fn tiles(&self, images: u32) -> u64 {
        let c = self.convolution;
        u64::from(self.quads(images).div_ceil(self.local_size()))
            * u64::from(c.groups * c.rows.div_ceil(self.rows))
    }

    fn depth(&self, _images: u32, parts: u32) -> u32 {
        parts
    }

    fn units(&self) -> (u32, u32) {
        (self.convolution.channels * self.convolution.taps[0], self.unroll)
    }

    fn stores(&self, _pitch: u32) -> (bool, bool) {
        let whole = self.convolution.result[1].is_multiple_of(4);
        branch!("direct: stores fours", whole);
        (whole, whole)
    }

    fn push(&self, images: u32, chunk: u32, result: PushResult) -> Push {
        let c = self.convolution;
        let [row, channel, image] = self.pitches;
        Push {
            width: c.result[1],
            groups: c.groups,
            group_rows: c.rows,
            quads: self.quads(images),
            x_row: c.stride[0] * row,
            x_tap: c.dilation[0] * row,
            x_channel: channel,
            x_image: image,
            w_tap: c.rows.div_ceil(4),
            channels: c.channels,
            taps_y: c.taps[0],
            chunk,
            result,
        }
    }
}
