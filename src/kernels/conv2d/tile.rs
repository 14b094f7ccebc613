//! `glsl/conv_tile.comp`.

use super::ConvKernel;
use super::schemes::{Scheme, TILE_32, Tile};
use crate::ir::branches::branch;
use crate::ir::conv2d::Convolution;
use crate::ir::epilogue::PushResult;
use crate::kernels::catalog::{Catalog, Load};
use crate::kernels::modules::constants::Constants;
use crate::kernels::modules::{conv_tile, tile};

/// A convolution's tile.
pub(super) struct Tiles<'a> {
    convolution: &'a Convolution,
    tile: Tile,
}

/// The push constants of the kernel.
#[repr(C)]
#[derive(Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
pub(super) struct Push {
    width: u32,
    groups: u32,
    group_rows: u32,
    images: u32,
    x_width: u32,
    x_height: u32,
    channels: u32,
    stride: u32,
    dilation: u32,
    left: u32,
    top: u32,
    w_tap: u32,
    chunk: u32,
    result: PushResult,
}

impl<'a> Tiles<'a> {
    pub(super) fn new(c: &'a Convolution, scheme: &Scheme, catalog: &Catalog) -> Tiles<'a> {
        let busy = scheme.busy_groups(&catalog.architecture);
        let with = |tile: &Tile| Tiles { convolution: c, tile: *tile };
        let enough = |conv: &Tiles<'_>| {
            let tiles = conv.tiles(1) * u64::from(c.images);
            branch!("convolution: tiles enough", 100 * tiles >= conv.tile.least_busy * busy)
        };
        let mut fitting = scheme.tiles.iter().filter(|tile| tile.fits(&catalog.limits)).map(with);
        fitting.find(enough).unwrap_or(with(&TILE_32))
    }
}

impl ConvKernel for Tiles<'_> {
    type Push = Push;
    type Kernel = conv_tile::File;

    fn module(&self, load: Load, plain: bool) -> conv_tile::Module {
        match (load, plain) {
            (Load::Buffer, true) => conv_tile::Module::BufferPlain,
            (Load::Buffer, false) => conv_tile::Module::BufferAll,
            (Load::Texel, true) => conv_tile::Module::TexelPlain,
            (Load::Texel, false) => conv_tile::Module::TexelAll,
        }
    }

    fn constants(&self, is_f16: bool) -> Constants<conv_tile::File> {
        let Tile { m, n, k, frame, .. } = self.tile;
        let [taps_y, taps_x] = self.convolution.taps;
        Constants::new((m / frame) * (n / frame))
            .with(tile::TILE_M, m)
            .with(tile::TILE_N, n)
            .with(tile::TILE_K, k)
            .with(tile::FRAME_M, frame)
            .with(tile::FRAME_N, frame)
            .with(conv_tile::TAPS_Y, taps_y)
            .with(conv_tile::TAPS_X, taps_x)
            .with(conv_tile::IS_F16, is_f16)
    }

    fn tiles(&self, _images: u32) -> u64 {
        let c = self.convolution;
        u64::from(c.pixels().div_ceil(self.tile.n)) * u64::from(c.groups * c.rows.div_ceil(self.tile.m))
    }

    fn depth(&self, images: u32, parts: u32) -> u32 {
        images * parts
    }

    fn units(&self) -> (u32, u32) {
        (self.convolution.depth(), self.tile.k)
    }

    fn stores(&self, pitch: u32) -> (bool, bool) {
        (branch!("convolution: wide", pitch.is_multiple_of(4)), true)
    }

    fn push(&self, images: u32, chunk: u32, result: PushResult) -> Push {
        let c = self.convolution;
        // The ops take strides and dilations that fit.
        let both = |[y, x]: [u32; 2]| x | y << 16;
        Push {
            width: c.result[1],
            groups: c.groups,
            group_rows: c.rows,
            images,
            x_width: c.size[1],
            x_height: c.size[0],
            channels: c.channels,
            stride: both(c.stride),
            dilation: both(c.dilation),
            left: c.padding[1],
            top: c.padding[0],
            w_tap: c.rows.div_ceil(4),
            chunk,
            result,
        }
    }
}
