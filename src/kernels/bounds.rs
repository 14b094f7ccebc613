//! What the catalog's variants and the lowering can make of each specialization constant. A history file may be
//! damaged, or planted: what it names is compiled by the driver, which unrolls loops by these numbers.

use crate::ir::op_code::OpCode;
use crate::kernels::modules::constants::Constant;
use crate::kernels::modules::{ConstantName, KernelName, Module, conv_direct};

/// The values that a constant takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Bound {
    /// A size: 1 to so much.
    Size(u32),
    /// A number from 0 to so much.
    Most(u32),
    /// Yes or no.
    Flag,
    /// A step of an op list: an operation and its operands.
    Step,
    /// Bits, or a divisor: no loop and no array goes by it.
    Any,
}

use Bound::{Any, Flag, Most, Size, Step};

/// Invocations of a workgroup, on any device.
const GROUP: Bound = Size(1024);
/// Lanes of a subgroup.
const LANES: Bound = Size(128);
/// Multiplications and additions that a convolution unrolls.
const MOST_UNROLLED: u32 = 288;

/// Every constant has a bound, or this does not compile.
fn bound(constant: ConstantName) -> Bound {
    use ConstantName as C;
    match constant {
        C::LocalSize | C::LanesLanes => GROUP,
        C::LinearVec4s => Size(8),
        C::LinearSubgroup => LANES,

        C::ElementwiseModes | C::ElementwiseStored | C::ElementwiseFormats => Any,
        C::ElementwiseDims => Most(4),
        C::CopyStridedDims => Size(8),
        C::CopyStridedPerWord => Size(4),
        C::ElementwiseResults => Size(4),
        C::ElementwiseWhole => Flag,
        C::OpListCount => Size(16),
        C::OpListStep => Step,
        C::PrologueSingle => Most(15),
        C::ProloguePlaces => Most(7),

        C::EpilogueWide => Flag,
        C::EpilogueSteps => Most(6),
        C::EpilogueStep => Step,
        C::EpilogueMode => Most(63),
        C::MatrixOperandsLhsFormat | C::MatrixOperandsRhsFormat | C::MatmulPackSourceFormat => Most(7),

        C::TileTileM | C::TileTileN => Size(128),
        C::TileTileK => Size(16),
        C::TileFrameM | C::TileFrameN => Size(8),
        C::MatmulTileAKContiguous | C::MatmulTileBKContiguous => Flag,
        C::MatmulRowsLanes | C::MatmulDotLanes | C::ConvDirectLanes => LANES,
        C::MatmulRowsRows => Size(32),
        C::MatmulRowsWidth => Size(4),
        C::MatmulRowsTail | C::MatmulRowsRolled | C::MatmulRowsUnaligned => Flag,
        C::MatmulRowsKStep => Size(8),
        C::MatmulDotRows => Size(8),
        C::MatmulDotColumns => Size(16),
        C::MatmulDotUnroll => Size(2),
        C::MatmulDotKContiguous => Flag,
        C::MatmulPackTransposed | C::MatmulPackAligned => Flag,

        C::ConvDirectRows => Size(32),
        C::ConvDirectTaps => Size(16),
        C::ConvDirectStride | C::ConvDirectDilation => Size(100),
        C::ConvDirectUnroll => Size(MOST_UNROLLED),
        C::ConvTileTapsY | C::ConvTileTapsX => Any,
        C::ConvDirectInputFormat | C::ConvTileInputFormat => Most(7),

        C::MonoidMonoid => Most(5),
        C::MonoidTerm => Most(15),
        C::MonoidFinish => Most(3),
        C::ReduceColumnsAligned | C::SoftmaxColumnsAligned => Flag,
        C::ReduceShortExtent => Size(16),
        C::SoftmaxLogarithm | C::SoftmaxRowsFull | C::SoftmaxRowsFew => Flag,
        C::SoftmaxRowsMode | C::SoftmaxColumnsMode => Most(3),
        C::SoftmaxRowsVec4s | C::NormRowsVec4s => Size(40),
        C::NormRowsSweeps | C::NormRowsFull | C::NormRowsCentred | C::NormRowsShifted => Flag,
        C::NormRowsWeights => Most(2),

        C::AttentionQFormat | C::AttentionKFormat | C::AttentionVFormat => Most(7),
        C::AttentionMask => Most(2),
        C::AttentionCausal | C::AttentionWindowed | C::AttentionCapped | C::AttentionMaskFours => Flag,
        C::AttentionMeasured | C::AttentionPartial => Flag,
        C::AttentionRowsLanes => LANES,
        C::AttentionRowsRows => Size(16),
        C::AttentionRowsWidth | C::AttentionRowsStep => Size(4),
        C::AttentionTileVec4s => Size(2),
        C::RotaryAnglesInterleaved | C::RotaryAnglesStart => Flag,

        C::GatherAligned | C::GatherSingle | C::HistogramSharedBins => Flag,
        C::GatherIndexed => Most(3),
        C::ScanWalk | C::ScanPass => Most(2),
        C::ScanMonoid => Most(5),
        C::ScanKey | C::RadixKey | C::SearchKey => Most(2),
        C::ScanExclusive | C::ScanReverse | C::SearchBehind | C::SegmentsChunks => Flag,
        C::RadixEncode | C::RadixDescending | C::RadixAligned => Flag,
        C::RadixScatterLast | C::RadixScatterWithKeys | C::RadixScatterWithPlaces => Flag,
        C::LocateDepth => Size(8),
        C::ScatterKind => Most(9),
        C::ResizeMode => Most(3),
        C::PoolKind => Most(4),
        C::PoolAdaptive => Flag,
        C::GenerateKind | C::CopyBoxFit => Most(3),
        C::CopyBoxDims => Most(4),
        C::PeakKind => Most(2),
    }
}

impl Bound {
    fn holds(self, bits: u32) -> bool {
        match self {
            Size(most) => (1..=most).contains(&bits),
            Most(most) => bits <= most,
            Flag => bits <= 1,
            Step => ((bits & 0xff) as usize) < OpCode::ALL.len(),
            Any => true,
        }
    }
}

/// Whether a pipeline of this module with these constants may have been made by this crate.
pub(crate) fn may_be_ours(module: Module, specialization: &[(u32, u32)]) -> bool {
    let constants = module.kernel().constants();
    let each = specialization.iter().enumerate().all(|(i, (id, bits))| {
        let once = specialization[..i].iter().all(|(known, _)| known != id);
        let mut named = constants.iter().filter(|(known, _)| known == id);
        once && named.any(|(_, name)| bound(*name).holds(*bits))
    });
    // What is unrolled together is bounded together; each alone may be as much as the bound says.
    let value = |constant: Constant<conv_direct::File, u32>| {
        let given = specialization.iter().find(|(known, _)| *known == constant.id());
        given.map_or(1, |(_, bits)| *bits)
    };
    each && match module.kernel() {
        KernelName::ConvDirect => {
            let unroll = value(conv_direct::UNROLL);
            let loops = [unroll, value(conv_direct::ROWS), value(conv_direct::TAPS)].map(u64::from);
            unroll == 1 || loops.iter().product::<u64>() <= u64::from(MOST_UNROLLED)
        }
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::conv2d::schemes as convolutions;
    use crate::kernels::matmul::schemes::{SCHEMES, Tile};
    use crate::kernels::modules::constants::{Constants, Specialized};
    use crate::kernels::modules::{
        conv_tile, elementwise, matmul_dot, matmul_rows, matmul_tile, softmax_rows, tile,
    };
    use crate::spirv::Reflection;

    fn are_ours(kernel: &Specialized) -> bool {
        may_be_ours(kernel.module, &kernel.specialization)
    }

    #[test]
    fn defaults_are_within_the_bounds() {
        for module in Module::all() {
            for constant in Reflection::parse(module.words()).unwrap().specializations {
                let default = [(constant.id, constant.default_bits as u32)];
                assert!(may_be_ours(module, &default), "{}: constant {}", module.name(), constant.id);
            }
            assert!(are_ours(&module.with_defaults(64)), "{}", module.name());
        }
    }

    #[test]
    fn the_catalogs_tiles_are_within_the_bounds() {
        for tile in SCHEMES.iter().flat_map(|scheme| scheme.rules).map(|rule| rule.tile) {
            let kernel = match tile {
                Tile::Rows { lanes, rows, width } => Constants::<matmul_rows::File>::new(lanes.min(64))
                    .with(matmul_rows::LANES, lanes.min(64))
                    .with(matmul_rows::ROWS, rows)
                    .with(matmul_rows::WIDTH, width)
                    .of(matmul_rows::Module::TexelAll),
                Tile::Dot { lanes, rows, columns } => Constants::<matmul_dot::File>::new(lanes.min(64))
                    .with(matmul_dot::LANES, lanes.min(64))
                    .with(matmul_dot::ROWS, rows)
                    .with(matmul_dot::COLUMNS, columns)
                    .of(matmul_dot::Module::TexelAll),
                Tile::Shared { m, n, k, frame } => Constants::<matmul_tile::File>::new(64)
                    .with(tile::TILE_M, m)
                    .with(tile::TILE_N, n)
                    .with(tile::TILE_K, k)
                    .with(tile::FRAME_M, frame[0])
                    .with(tile::FRAME_N, frame[1])
                    .of(matmul_tile::Module::TexelAll),
            };
            assert!(are_ours(&kernel), "{tile:?}");
        }
        for scheme in convolutions::SCHEMES {
            for direct in scheme.direct.iter() {
                let module = conv_direct::Module::TexelAll;
                let rows = Constants::<conv_direct::File>::new(64)
                    .with(conv_direct::LANES, direct.lanes)
                    .with(conv_direct::ROWS, direct.most_rows)
                    .with(conv_direct::TAPS, direct.most_taps)
                    .with(conv_direct::UNROLL, 1);
                assert!(are_ours(&rows.of(module)), "{direct:?}");
                let unrolled = Constants::<conv_direct::File>::new(64)
                    .with(conv_direct::ROWS, 1)
                    .with(conv_direct::TAPS, 1)
                    .with(conv_direct::UNROLL, direct.unrolled);
                assert!(are_ours(&unrolled.of(module)), "{direct:?}");
            }
            for tile in scheme.tiles {
                let constants = Constants::<conv_tile::File>::new(64)
                    .with(tile::TILE_M, tile.m)
                    .with(tile::TILE_N, tile.n)
                    .with(tile::TILE_K, tile.k)
                    .with(tile::FRAME_M, tile.frame[0])
                    .with(tile::FRAME_N, tile.frame[1]);
                assert!(are_ours(&constants.of(conv_tile::Module::TexelAll)), "{tile:?}");
            }
        }
    }

    #[test]
    fn hostile_constants_are_none_of_ours() {
        let elementwise: Module = elementwise::Module::TexelInputs1Steps1Outputs1All.into();
        let direct: Module = conv_direct::Module::TexelAll.into();
        let softmax: Module = softmax_rows::Module::TexelShuffleInputs1.into();
        for (module, constants) in [
            (elementwise, &[(1, u32::MAX)][..]),
            (elementwise, &[(0, 0)]),
            (elementwise, &[(1, 8), (1, 8)]),
            (elementwise, &[(99, 0)]),
            (elementwise, &[(8, 0xff)]),
            (matmul_rows::Module::TexelAll.into(), &[(2, 33)]),
            (matmul_tile::Module::TexelAll.into(), &[(3, 1 << 20)]),
            // An id that the kernel has not.
            (matmul_dot::Module::TexelAll.into(), &[(7, 0)]),
            (direct, &[(3, 17)]),
            (direct, &[(2, 32), (3, 16), (6, 2)]),
            (softmax, &[(4, 41)]),
        ] {
            assert!(!may_be_ours(module, constants), "{module:?} {constants:?}");
        }
    }
}
