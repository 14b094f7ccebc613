//! What the catalog's variants and the lowering can make of each specialization constant. A history file may be damaged, or planted: what
//! it names is compiled by the driver, which unrolls loops by these numbers.

use crate::ir::op_code::OpCode;

/// The values that a constant takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Bound {
    /// A size: 1 to so much.
    Size(u32),
    /// A number from 0 to so much.
    Most(u32),
    /// Yes or no.
    Flag,
    /// A step of a program: an operation and its operands.
    Step,
    /// Bits, or a divisor: no loop and no array goes by it.
    Any,
}

use Bound::{Any, Flag, Most, Size, Step};

/// Invocations of a workgroup, on any device.
const GROUP: Bound = Size(1024);
/// Lanes of a subgroup.
const LANES: Bound = Size(128);

/// The constants of `glsl/lib/epilogue.glsl` and `glsl/lib/factors.glsl`.
const EPILOGUE: &[(u32, Bound)] = &[
    (32, Flag),
    (33, Most(6)),
    (34, Step),
    (35, Step),
    (36, Step),
    (37, Step),
    (38, Step),
    (39, Step),
    (40, Most(15)),
    (41, Most(15)),
    (42, Most(3)),
];

/// The steps of `glsl/lib/program.glsl`: constants 8 to 23.
const STEPS: std::ops::Range<u32> = 8..24;

/// The constants of each kernel that are not an epilogue's or a program's steps.
const KERNELS: &[(&str, &[(u32, Bound)])] = &[
    (
        "conv_direct",
        &[
            (0, GROUP),
            (1, LANES),
            (2, Size(32)),
            (3, Size(16)),
            (4, Size(100)),
            (5, Size(100)),
            (6, Size(288)),
            (7, Flag),
        ],
    ),
    (
        "conv_tile",
        &[
            (0, GROUP),
            (1, Size(128)),
            (2, Size(128)),
            (3, Size(16)),
            (4, Size(8)),
            (5, Size(8)),
            (6, Any),
            (7, Any),
            (8, Flag),
        ],
    ),
    ("gather", &[(0, GROUP), (1, Size(8)), (2, LANES), (3, Flag), (4, Flag)]),
    ("generate", &[(0, GROUP), (1, Size(8)), (2, LANES), (3, Most(3))]),
    (
        "map",
        &[
            (0, GROUP),
            (1, Size(8)),
            (2, LANES),
            (3, Any),
            (4, Most(4)),
            (5, Any),
            (6, Size(16)),
            (7, Size(4)),
            (24, Flag),
            (25, Any),
        ],
    ),
    ("peak", &[(0, GROUP), (1, Most(2))]),
    ("place", &[(0, GROUP), (1, Size(8)), (2, LANES), (3, Most(3)), (4, Most(4))]),
    ("product_dot", &[(0, GROUP), (1, LANES), (2, Size(8)), (3, Size(16)), (4, Flag), (7, Flag)]),
    ("product_pack", &[(0, GROUP), (1, Flag), (2, Flag), (3, Flag)]),
    (
        "product_rows",
        &[(0, GROUP), (1, LANES), (2, Size(32)), (3, Size(4)), (4, Flag), (5, Flag), (6, Size(8)), (7, Flag)],
    ),
    ("product_sum", &[(0, GROUP)]),
    (
        "product_tile",
        &[
            (0, GROUP),
            (1, Size(128)),
            (2, Size(128)),
            (3, Size(16)),
            (4, Size(8)),
            (5, Size(8)),
            (6, Flag),
            (7, Flag),
        ],
    ),
    ("reduce_columns", &[(0, GROUP), (1, GROUP), (2, Most(5)), (3, Most(15)), (4, Most(3)), (5, Flag)]),
    ("reduce_merge", &[(0, GROUP), (1, GROUP), (2, Most(5)), (3, Most(15)), (4, Most(3))]),
    (
        "reduce_rows",
        &[(0, GROUP), (1, GROUP), (2, Most(5)), (3, Most(15)), (4, Most(3)), (6, Size(16)), (7, Most(15))],
    ),
    ("reduce_short", &[(0, GROUP), (2, Most(5)), (3, Most(15)), (4, Most(3)), (5, Size(16))]),
    ("softmax_columns", &[(0, GROUP), (1, GROUP), (2, Most(3)), (3, Flag), (5, Flag)]),
    (
        "softmax_rows",
        &[
            (0, GROUP),
            (1, GROUP),
            (2, Most(3)),
            (3, Flag),
            (4, Size(40)),
            (5, Flag),
            (6, Most(16)),
            (7, Most(15)),
        ],
    ),
];

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

/// The bound of a kernel's constant; `None` if it has no such constant.
fn bound(kernel: &str, id: u32) -> Option<Bound> {
    let (_, own) = KERNELS.iter().find(|(name, _)| *name == kernel)?;
    let known = own.iter().chain(EPILOGUE).find(|(known, _)| *known == id);
    known.map(|(_, bound)| *bound).or_else(|| STEPS.contains(&id).then_some(Step))
}

/// Whether a pipeline of this module with these constants may have been made by this crate.
pub(crate) fn may_be_ours(module: &str, specialization: &[(u32, u32)]) -> bool {
    let kernel = module.split('.').next().unwrap_or_default();
    let value = |id: u32| specialization.iter().find(|(known, _)| *known == id).map_or(1, |(_, bits)| *bits);
    let each = specialization.iter().enumerate().all(|(i, (id, bits))| {
        let once = specialization[..i].iter().all(|(known, _)| known != id);
        once && bound(kernel, *id).is_some_and(|bound| bound.holds(*bits))
    });
    // What is unrolled together is bounded together; each alone may be as much as the bound says.
    let known = KERNELS.iter().any(|(name, _)| *name == kernel);
    known
        && each
        && match kernel {
            "conv_direct" => {
                let unroll = value(6);
                unroll == 1 || u64::from(unroll) * u64::from(value(2)) * u64::from(value(3)) <= 288
            }
            _ => true,
        }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::conv2d::schemes as convolutions;
    use crate::kernels::matmul::schemes::{SCHEMES, Tile};
    use crate::kernels::modules::MODULES;
    use crate::spirv::Reflection;

    #[test]
    fn every_constant_of_every_module_has_a_bound_that_holds_its_default() {
        for module in MODULES {
            let kernel = module.name.split('.').next().unwrap();
            for constant in Reflection::parse(module.words()).unwrap().specializations {
                let bound = bound(kernel, constant.id);
                assert!(bound.is_some(), "{}: constant {}", module.name, constant.id);
            }
            assert!(may_be_ours(module.name, &[]), "{}", module.name);
        }
        for (kernel, _) in KERNELS {
            assert!(MODULES.iter().any(|module| module.name.split('.').next() == Some(kernel)), "{kernel}");
        }
    }

    #[test]
    fn the_catalogs_tiles_are_within_the_bounds() {
        for tile in SCHEMES.iter().flat_map(|scheme| scheme.rules).map(|rule| rule.tile) {
            let (module, constants) = match tile {
                Tile::Rows { lanes, rows, width } => {
                    ("product_rows.texel.all", vec![(1, lanes), (2, rows), (3, width)])
                }
                Tile::Dot { lanes, rows, columns } => {
                    ("product_dot.texel.all", vec![(1, lanes), (2, rows), (3, columns)])
                }
                Tile::Shared { m, n, k, frame } => {
                    ("product_tile.texel.all", vec![(1, m), (2, n), (3, k), (4, frame), (5, frame)])
                }
            };
            assert!(may_be_ours(module, &constants), "{tile:?}");
        }
        for scheme in convolutions::SCHEMES {
            for direct in scheme.direct.iter() {
                let constants = [(1, direct.lanes), (2, direct.most_rows), (3, direct.most_taps), (6, 1)];
                assert!(may_be_ours("conv_direct.texel.all", &constants), "{direct:?}");
                assert!(may_be_ours("conv_direct.texel.all", &[(2, 1), (3, 1), (6, direct.unrolled)]));
            }
            for tile in scheme.tiles {
                let constants = [(1, tile.m), (2, tile.n), (3, tile.k), (4, tile.frame), (5, tile.frame)];
                assert!(may_be_ours("conv_tile.texel.all", &constants), "{tile:?}");
            }
        }
    }

    #[test]
    fn hostile_constants_are_none_of_ours() {
        for (module, constants) in [
            ("map.texel.8", &[(1, u32::MAX)][..]),
            ("map.texel.8", &[(0, 0)]),
            ("map.texel.8", &[(1, 8), (1, 8)]),
            ("map.texel.8", &[(99, 0)]),
            ("map.texel.8", &[(8, 0xff)]),
            ("product_rows.texel.all", &[(2, 33)]),
            ("product_tile.texel.all", &[(3, 1 << 20)]),
            ("conv_direct.texel.all", &[(3, 17)]),
            ("conv_direct.texel.all", &[(2, 32), (3, 16), (6, 2)]),
            ("softmax_rows.texel.shuffle", &[(4, 41)]),
            ("no_such_kernel", &[]),
        ] {
            assert!(!may_be_ours(module, constants), "{module} {constants:?}");
        }
    }
}
