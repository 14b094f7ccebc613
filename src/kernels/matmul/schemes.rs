//! The catalog's rows for matmuls: kernels, tiles and when to use which. Data; nothing here decides.

use crate::kernels::modules::Load;
use crate::kernels::variant::{Abilities, DefaultFor};
use crate::vk::architecture::Architecture;
use crate::vk::physical::Limits;

/// A kernel with its tile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tile {
    /// `glsl/matmul_rows.comp`: `rows` x (4 * lanes * width) of the result per subgroup. A device uses no more lanes
    /// than its architecture likes.
    Rows { lanes: u32, rows: u32, width: u32 },
    /// `glsl/matmul_tile.comp`: m x n of the result per workgroup, k at a time, a frame of rows x columns per
    /// invocation.
    Shared { m: u32, n: u32, k: u32, frame: [u32; 2] },
    /// `glsl/matmul_dot.comp`: `rows` rows of the result, which has at most `columns`, per subgroup.
    Dot { lanes: u32, rows: u32, columns: u32 },
}

/// When a tile is taken. The first rule of a scheme that fits is; the last fits all.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rule {
    pub(crate) tile: Tile,
    /// For results of at most this many rows.
    pub(crate) most_rows: u32,
    /// And at most this many columns.
    pub(crate) most_columns: u32,
    /// That make at least this many tiles, in hundredths of what keeps the device busy.
    pub(crate) least_busy: u64,
    /// On architectures whose invocations keep this many sums.
    pub(crate) accumulators: u32,
}

/// One way of carrying out matmuls.
#[derive(Debug)]
pub(crate) struct Scheme {
    pub(crate) name: &'static str,
    pub(crate) load: Load,
    pub(crate) rules: &'static [Rule],
    /// Workgroups that keep a device busy, where that is not what its architecture tells. Where there are fewer, k is
    /// split.
    pub(crate) busy_groups: Option<u64>,
    /// The least of k that a part is worth.
    pub(crate) least_part: u32,
    /// Right-hand sides of this many elements are packed into panels, if
    pub(crate) panel_elements: u64,
    /// the result has this many tiles of rows, each of which reads all of it.
    pub(crate) panel_tiles: u32,
    /// Right-hand sides whose rows begin anywhere are read as they are, if tiles times k are at most this many: reading
    /// them is slower, packing them is a dispatch.
    pub(crate) unaligned_depth: u64,
    /// Left-hand sides are packed for long steps along k, where the right-hand side is packed and has this many
    /// columns.
    pub(crate) long_step_columns: u32,
    /// Results of this many elements whose rows are no whole groups of four are written to a padded output and copied.
    pub(crate) padded_output_elements: u64,
    /// Rows of the left-hand side that are kept in a cache while all of the right-hand side goes by.
    pub(crate) band_bytes: u64,
    /// Whether results are stored in loops: takes half the time to compile where that is long, and registers are moved.
    pub(crate) rolled: bool,
    pub(crate) default_for: DefaultFor,
}

impl Tile {
    /// Whether a device with these abilities can run it.
    pub(crate) fn runs_with(self, shuffles: bool, limits: &Limits, architecture: &Architecture) -> bool {
        let able = shuffles || matches!(self, Tile::Shared { .. });
        able && self.on(architecture).fits(limits)
    }
}

impl Scheme {
    /// Whether a device with these abilities can carry it out, for all shapes.
    pub(crate) fn runs_with(&self, device: &Abilities<'_>) -> bool {
        let &Abilities { texels, shuffles, limits, ref architecture, .. } = device;
        let last = self.rules.last();
        (texels || self.load == Load::Buffer)
            && last.is_some_and(|rule| rule.tile.runs_with(shuffles, limits, architecture))
    }

    /// Workgroups that keep the device busy.
    pub(super) fn busy_groups(&self, architecture: &Architecture) -> u64 {
        self.busy_groups.unwrap_or(architecture.busy_groups)
    }
}

const ANY: u32 = u32::MAX;

const fn only(tile: Tile) -> Rule {
    Rule { tile, most_rows: ANY, most_columns: ANY, least_busy: 0, accumulators: 0 }
}

const fn thin(tile: Tile, most_rows: u32, most_columns: u32) -> Rule {
    Rule { most_rows, most_columns, ..only(tile) }
}

/// For results of tiles enough, in hundredths of what keeps the device busy, on devices with the registers for it.
const fn enough(tile: Tile, least_busy: u64, accumulators: u32) -> Rule {
    Rule { least_busy, accumulators, ..only(tile) }
}

// On lavapipe tiles of 32 rows x 32 columns are best (24 rows: 3 % slower) and compile in a fraction of the time that
// larger ones take;
// 32 iterations is the most that Mesa unrolls (`bench matmul`).
const ROWS_32: Tile = Tile::Rows { lanes: 8, rows: 32, width: 1 };
const ROWS_16: Tile = Tile::Rows { lanes: 8, rows: 16, width: 1 };
const ROWS_4: Tile = Tile::Rows { lanes: 8, rows: 4, width: 4 };
const ROWS_1: Tile = Tile::Rows { lanes: 8, rows: 1, width: 4 };
const DOT: Tile = Tile::Dot { lanes: 8, rows: 8, columns: 16 };

/// As many lanes as the architecture likes.
const WAVE: u32 = u32::MAX;
const WAVE_ROWS_4: Tile = Tile::Rows { lanes: WAVE, rows: 4, width: 1 };
const WAVE_ROWS_1: Tile = Tile::Rows { lanes: WAVE, rows: 1, width: 1 };
const WAVE_DOT_4: Tile = Tile::Dot { lanes: WAVE, rows: 4, columns: 4 };
const WAVE_DOT: Tile = Tile::Dot { lanes: WAVE, rows: 4, columns: 16 };
const SHARED_32: Tile = Tile::Shared { m: 32, n: 32, k: 16, frame: [4; 2] };
const SHARED_64: Tile = Tile::Shared { m: 64, n: 64, k: 16, frame: [4; 2] };
// Half of the sums of the largest, so what has no room for those gets it.
const SHARED_128_64: Tile = Tile::Shared { m: 128, n: 64, k: 16, frame: [8, 4] };
const SHARED_128: Tile = Tile::Shared { m: 128, n: 128, k: 16, frame: [8; 2] };

/// For every device: Vulkan guarantees 128 invocations and 16 KiB of shared memory.
pub(super) const SMALLEST: Tile = SHARED_32;

const NO_PANELS: u64 = u64::MAX;
const NO_PADDED_OUTPUT: u64 = u64::MAX;

/// A scheme of one tile for GPUs, which competes with their default on equal terms.
const fn tile(name: &'static str, load: Load, rules: &'static [Rule]) -> Scheme {
    Scheme {
        name,
        load,
        rules,
        busy_groups: None,
        least_part: 256,
        panel_elements: NO_PANELS,
        panel_tiles: ANY,
        unaligned_depth: 4096,
        long_step_columns: ANY,
        padded_output_elements: NO_PADDED_OUTPUT,
        band_bytes: 1 << 20,
        rolled: false,
        default_for: DefaultFor::Candidate,
    }
}

/// A scheme of one tile that splits, packs and goes by bands from small shapes on, so that tests come to it.
const fn cramped(name: &'static str, load: Load, rules: &'static [Rule], panel_elements: u64) -> Scheme {
    Scheme {
        name,
        load,
        rules,
        busy_groups: Some(4),
        least_part: 64,
        panel_elements,
        panel_tiles: 2,
        unaligned_depth: 256,
        long_step_columns: 64,
        padded_output_elements: 1 << 10,
        band_bytes: 1 << 12,
        rolled: false,
        default_for: DefaultFor::Tests,
    }
}

/// Every scheme there is.
pub(crate) static SCHEMES: &[Scheme] = &[
    Scheme {
        name: "texel-rows",
        load: Load::Texel,
        rules: &[
            thin(DOT, ANY, 16),
            thin(ROWS_1, 1, ANY),
            thin(ROWS_4, 4, ANY),
            thin(ROWS_16, 32, ANY),
            only(ROWS_32),
        ],
        busy_groups: Some(4),
        least_part: 256,
        panel_elements: 1 << 19,
        panel_tiles: 12,
        unaligned_depth: 4096,
        long_step_columns: 512,
        padded_output_elements: 1 << 16,
        band_bytes: 400 << 10,
        rolled: true,
        default_for: DefaultFor::Software,
    },
    Scheme {
        name: "buffer-shared",
        load: Load::Buffer,
        rules: &[
            thin(WAVE_DOT_4, ANY, 4),
            thin(WAVE_DOT, ANY, 16),
            thin(WAVE_ROWS_1, 1, ANY),
            thin(WAVE_ROWS_4, 4, ANY),
            enough(SHARED_128, 100, 64),
            enough(SHARED_128_64, 100, 32),
            enough(SHARED_64, 50, 0),
            only(SHARED_32),
        ],
        busy_groups: None,
        least_part: 256,
        panel_elements: NO_PANELS,
        panel_tiles: ANY,
        unaligned_depth: 4096,
        long_step_columns: ANY,
        padded_output_elements: NO_PADDED_OUTPUT,
        band_bytes: 1 << 20,
        rolled: false,
        default_for: DefaultFor::Gpu,
    },
    // For software drivers whose texel loads are not the faster ones.
    Scheme {
        name: "buffer-rows",
        load: Load::Buffer,
        rules: &[thin(DOT, ANY, 16), thin(ROWS_1, 1, ANY), thin(ROWS_4, 4, ANY), only(ROWS_16)],
        busy_groups: Some(4),
        least_part: 256,
        panel_elements: 1 << 19,
        panel_tiles: 12,
        unaligned_depth: 4096,
        long_step_columns: 512,
        padded_output_elements: 1 << 16,
        band_bytes: 400 << 10,
        rolled: false,
        default_for: DefaultFor::Candidate,
    },
    tile("buffer-tile-32", Load::Buffer, &[only(SHARED_32)]),
    tile("buffer-tile-64", Load::Buffer, &[only(SHARED_64)]),
    tile("buffer-tile-128x64", Load::Buffer, &[only(SHARED_128_64)]),
    tile("buffer-tile-128", Load::Buffer, &[only(SHARED_128)]),
    tile("texel-tile-64", Load::Texel, &[only(SHARED_64)]),
    cramped("buffer-rows-16", Load::Buffer, &[only(ROWS_16)], 1 << 12),
    cramped("texel-rows-4", Load::Texel, &[only(ROWS_4)], NO_PANELS),
];
