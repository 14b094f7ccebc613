//! By what kernels are shaped for one GPU and for another: a table by vendor, with reasons.
//!
//! No figure here was timed on a card. They follow from registers, spills and occupancy as the vendors' compilers tell
//! them (`./dev isa`, docs/gpus.md). A device that the table does not know gets the row that asks for least.

use super::kind::DeviceKind;
use super::limits::Limits;

/// The parameters of one device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Architecture {
    /// Lanes of a subgroup in kernels whose lanes exchange values.
    pub(crate) lanes: u32,
    /// The same where a lane keeps many values.
    pub(crate) crowded_lanes: u32,
    /// Sums of f32 that an invocation keeps, at most.
    pub(crate) accumulators: u32,
    /// Workgroups that keep the device busy. Where there are fewer, tiles are smaller and sums are split.
    pub(crate) busy_groups: u64,
}

/// How wide the subgroups of a vendor's GPUs are at best.
#[derive(Clone, Copy, Debug)]
enum Width {
    /// This many lanes, or the nearest that the device has.
    Lanes(u32),
    /// The narrowest that the device has.
    Narrowest,
}

#[derive(Clone, Copy, Debug)]
struct Row {
    vendor: u32,
    lanes: Width,
    crowded_lanes: Width,
    accumulators: u32,
}

/// RDNA takes 32 lanes, GCN and CDNA have only 64. A lane has up to 256 registers (`ACO` gives 120 to the tile with 64
/// sums).
const AMD: Row =
    Row { vendor: 0x1002, lanes: Width::Lanes(32), crowded_lanes: Width::Lanes(32), accumulators: 64 };

/// A lane has up to 255 registers. NAK gives 120 to the tile with 64 sums, for 16 warps.
const NVIDIA: Row = Row { vendor: 0x10de, ..AMD };

/// A hardware thread has 128 registers, each as wide as the narrowest subgroup (8 lanes, 16 on Xe2). So a lane has 128
/// words in that, 64 in twice as many lanes, 32 in four times as many. The tile with 64 sums spills 147 times at 128
/// words.
const INTEL: Row =
    Row { vendor: 0x8086, lanes: Width::Lanes(16), crowded_lanes: Width::Narrowest, accumulators: 32 };

/// With 64 sums 384 threads are left on a core, with 32 there are 576 (Honeykrisp, M1).
const APPLE: Row = Row { vendor: 0x106b, accumulators: 32, ..AMD };

/// Subgroups have 64 lanes at least. With 64 sums 4 waves are left, with 32 there are 6 (Turnip, Adreno 750).
const QUALCOMM: Row = Row { vendor: 0x5143, ..APPLE };

/// Software drivers have variants of their own. Those for GPUs run there in tests, with the largest tiles.
const LAVAPIPE: Row = Row { vendor: 0x10005, ..AMD };
const SWIFTSHADER: Row = Row { vendor: 0x1ae0, ..AMD };

/// Nothing is known, so what all of the others can keep in registers.
const UNKNOWN: Row = Row { vendor: 0, ..APPLE };

const ROWS: [Row; 7] = [AMD, NVIDIA, INTEL, APPLE, QUALCOMM, LAVAPIPE, SWIFTSHADER];

/// Workgroups for each core (compute unit, multiprocessor): two, so that one computes while the other waits at a
/// barrier.
const GROUPS_PER_CORE: u64 = 2;
/// For a card that does not tell its cores: as many as for 64 of them.
const GROUPS_OF_A_CARD: u64 = 128;
/// Integrated GPUs have 4 to 16 cores.
const GROUPS_OF_AN_INTEGRATED_GPU: u64 = 32;

impl Architecture {
    /// For a device of this PCI vendor. `cores`: where an extension tells them.
    pub(crate) fn new(vendor: u32, kind: DeviceKind, cores: Option<u32>, limits: &Limits) -> Architecture {
        let row = ROWS.into_iter().find(|row| row.vendor == vendor).unwrap_or(UNKNOWN);
        Architecture {
            lanes: row.lanes.of(limits),
            crowded_lanes: row.crowded_lanes.of(limits),
            accumulators: row.accumulators,
            busy_groups: match (cores, kind) {
                (Some(cores @ 1..), _) => GROUPS_PER_CORE * u64::from(cores),
                (_, DeviceKind::Integrated) => GROUPS_OF_AN_INTEGRATED_GPU,
                _ => GROUPS_OF_A_CARD,
            },
        }
    }
}

impl Width {
    fn of(self, limits: &Limits) -> u32 {
        let [least, most] = match limits.subgroup_sizes {
            // Not told: subgroups have one size.
            [0, _] | [_, 0] => [limits.subgroup_size; 2],
            sizes => sizes,
        };
        let wanted = match self {
            Width::Lanes(lanes) => lanes,
            Width::Narrowest => least,
        };
        wanted.max(least).min(most.min(limits.subgroup_size)).max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vk::physical::DeviceInfo;

    fn of(vendor: u32, sizes: [u32; 2], size: u32) -> Architecture {
        let mut limits = DeviceInfo::example(DeviceKind::Discrete).limits;
        (limits.subgroup_sizes, limits.subgroup_size) = (sizes, size);
        Architecture::new(vendor, DeviceKind::Discrete, None, &limits)
    }

    #[test]
    fn lanes_follow_the_vendor_and_what_the_device_has() {
        for (what, vendor, sizes, size, lanes, crowded) in [
            ("RDNA", AMD.vendor, [32, 64], 64, 32, 32),
            ("GCN", AMD.vendor, [64, 64], 64, 64, 64),
            ("NVIDIA", NVIDIA.vendor, [32, 32], 32, 32, 32),
            ("Intel before Xe2", INTEL.vendor, [8, 32], 32, 16, 8),
            ("Xe2", INTEL.vendor, [16, 32], 32, 16, 16),
            ("Adreno", QUALCOMM.vendor, [64, 128], 128, 64, 64),
            ("Apple", APPLE.vendor, [32, 32], 32, 32, 32),
            ("Mali", 0x13b5, [16, 16], 16, 16, 16),
            ("subgroups of one", 0x1234, [1, 1], 1, 1, 1),
            ("sizes that are not told", 0x1234, [0, 0], 8, 8, 8),
        ] {
            let found = of(vendor, sizes, size);
            assert_eq!([found.lanes, found.crowded_lanes], [lanes, crowded], "{what}");
        }
    }

    #[test]
    fn only_vendors_with_registers_for_it_get_large_frames() {
        for (vendor, most) in
            [(AMD, 64), (NVIDIA, 64), (INTEL, 32), (APPLE, 32), (QUALCOMM, 32), (UNKNOWN, 32)]
        {
            assert_eq!(of(vendor.vendor, [32; 2], 32).accumulators, most, "{vendor:?}");
        }
    }

    #[test]
    fn a_device_is_busy_by_its_cores() {
        let limits = DeviceInfo::example(DeviceKind::Discrete).limits;
        let busy = |kind, cores| Architecture::new(AMD.vendor, kind, cores, &limits).busy_groups;
        assert_eq!(busy(DeviceKind::Discrete, Some(96)), 192);
        assert_eq!(busy(DeviceKind::Integrated, Some(12)), 24);
        assert_eq!(busy(DeviceKind::Discrete, Some(0)), 128);
        assert_eq!(busy(DeviceKind::Discrete, None), 128);
        assert_eq!(busy(DeviceKind::Integrated, None), 32);
        assert_eq!(busy(DeviceKind::Cpu, None), 128);
    }
}
