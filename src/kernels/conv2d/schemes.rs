//! The catalog's rows for convolutions: kernels, tiles and when to use which. Data; nothing here decides.

use crate::kernels::matmul::shape::shared_tile_fits;
use crate::kernels::modules::Load;
use crate::kernels::variant::DefaultFor;
use crate::vk::architecture::Architecture;
use crate::vk::physical::Limits;

/// `glsl/conv_direct.comp`: what it can do, and how it likes it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Direct {
    /// Lanes of a subgroup that hand weights round; as many as a device has, where that is fewer.
    pub(crate) lanes: u32,
    /// Channels of the result that one invocation owns, at most; a power of two. From 8 on weights are handed round.
    pub(crate) most_rows: u32,
    /// Taps in a row of the kernel, at most: they are unrolled.
    pub(crate) most_taps: u32,
    /// Multiply-adds of four in an iteration, about: more take longer to compile, fewer longer to run.
    pub(crate) unrolled: u32,
}

/// `glsl/conv_tile.comp`: m channels x n pixels of the result per workgroup, k at a time, a frame of rows x columns per
/// invocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Tile {
    pub(crate) m: u32,
    pub(crate) n: u32,
    pub(crate) k: u32,
    pub(crate) frame: [u32; 2],
    /// Taken if there are at least this many tiles, in hundredths of what keeps the device busy.
    pub(crate) least_busy: u64,
    /// And if the tiles, with what is empty of them, compute at most so much, in hundredths of what [`TILE_32`]
    /// computes.
    pub(crate) most_computed: u64,
    /// On architectures whose invocations keep so many sums, and the places of the elements that they load.
    pub(crate) accumulators: u32,
}

impl Tile {
    /// Whether workgroups of this tile fit the device.
    pub(crate) fn fits(&self, limits: &Limits) -> bool {
        shared_tile_fits([self.m, self.n, self.k], self.frame, limits)
    }
}

/// One way of carrying out convolutions: directly where that can be, in tiles otherwise.
#[derive(Debug)]
pub(crate) struct Scheme {
    pub(crate) name: &'static str,
    pub(crate) load: Load,
    pub(crate) direct: Option<Direct>,
    /// Groups with this many channels of the result, at most, are convolved directly: tiles would be mostly empty.
    pub(crate) direct_rows: u32,
    /// The first that has tiles enough; the last has in any case.
    pub(crate) tiles: &'static [Tile],
    /// Workgroups that keep a device busy, where that is not what its architecture tells. Where there are fewer, the
    /// sums are split.
    pub(crate) busy_groups: Option<u64>,
    /// The fewest multiply-adds of a part of a split sum.
    pub(crate) least_part: u32,
    /// Whether kernels of 1 x 1 are products of matrices.
    pub(crate) products: bool,
    pub(crate) default_for: DefaultFor,
}

// Rows and what is unrolled as `bench conv` likes them on lavapipe; 32 iterations is the most that Mesa unrolls.
const SOFTWARE: Direct = Direct { lanes: 8, most_rows: 32, most_taps: 16, unrolled: 288 };
/// Without shuffles, for groups of few channels: depthwise convolutions above all.
const THIN: Direct = Direct { lanes: 1, most_rows: 4, most_taps: 16, unrolled: 64 };

/// What every device can run, too.
pub(super) const TILE_32: Tile =
    Tile { m: 32, n: 32, k: 16, frame: [4; 2], least_busy: 0, most_computed: u64::MAX, accumulators: 0 };
// A fifth more work is as much as a larger tile gains: 1.98, 1.75, 1.47 and 1.30 instructions per multiply-add (`./dev
// isa conv_tile --device navi31`).
const TILE_64: Tile = Tile { m: 64, n: 64, least_busy: 50, most_computed: 120, ..TILE_32 };
// Intel's compiler spills with 32 sums already: places take 12 registers more than in a matmul.
const TILE_128_64: Tile = Tile { m: 128, frame: [8, 4], least_busy: 100, accumulators: 64, ..TILE_64 };
const TILE_128: Tile = Tile { n: 128, frame: [8; 2], ..TILE_128_64 };

/// The same wherever it fits.
const fn always(tile: Tile) -> Tile {
    Tile { least_busy: 0, most_computed: u64::MAX, ..tile }
}

const ANY: u32 = u32::MAX;

/// A scheme of one tile for GPUs, which competes with their default on equal terms.
const fn tile(name: &'static str, tiles: &'static [Tile]) -> Scheme {
    Scheme {
        name,
        load: Load::Buffer,
        direct: None,
        direct_rows: 0,
        tiles,
        busy_groups: None,
        least_part: 256,
        products: false,
        default_for: DefaultFor::Candidate,
    }
}

/// Every scheme there is.
pub(crate) static SCHEMES: &[Scheme] = &[
    Scheme {
        name: "texel-direct",
        load: Load::Texel,
        direct: Some(SOFTWARE),
        direct_rows: ANY,
        tiles: &[TILE_32],
        busy_groups: Some(4),
        least_part: 256,
        products: false,
        default_for: DefaultFor::Software,
    },
    Scheme {
        name: "buffer-tile",
        load: Load::Buffer,
        direct: Some(THIN),
        direct_rows: 4,
        tiles: &[TILE_128, TILE_128_64, TILE_64, TILE_32],
        busy_groups: None,
        least_part: 256,
        products: true,
        default_for: DefaultFor::Gpu,
    },
    // For software drivers whose texel loads are not the faster ones.
    Scheme {
        name: "buffer-direct",
        load: Load::Buffer,
        direct: Some(SOFTWARE),
        direct_rows: ANY,
        tiles: &[TILE_32],
        busy_groups: Some(4),
        least_part: 256,
        products: false,
        default_for: DefaultFor::Candidate,
    },
    tile("buffer-tile-64", &[always(TILE_64)]),
    tile("buffer-tile-128x64", &[always(TILE_128_64)]),
    tile("buffer-tile-128", &[always(TILE_128)]),
    // Splits from small sums on, so that tests come to it.
    Scheme {
        name: "texel-tile",
        load: Load::Texel,
        direct: None,
        direct_rows: 0,
        tiles: &[TILE_32],
        busy_groups: Some(4),
        least_part: 16,
        products: false,
        default_for: DefaultFor::Tests,
    },
];

impl Scheme {
    /// Workgroups that keep the device busy.
    pub(super) fn busy_groups(&self, architecture: &Architecture) -> u64 {
        self.busy_groups.unwrap_or(architecture.busy_groups)
    }

    /// Whether a device with these abilities can carry it out, for all shapes.
    pub(crate) fn runs_with(&self, texels: bool, shuffles: bool, limits: &Limits) -> bool {
        (texels || self.load == Load::Buffer)
            && (shuffles || self.direct.is_none_or(|d| d.most_rows <= 4))
            && self.tiles.last().is_some_and(|tile| tile.fits(limits))
    }
}
