//! The family of attention.

use super::inspected::inspected;
use crate::kernels::catalog::{Family, Load};
use crate::kernels::variant::{Abilities, AnyVariant, Class, DefaultFor};
use crate::shape::Shape;

/// How queries, keys and values are multiplied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// `glsl/attention_rows.comp`: in registers, with shuffles; up to so many rows per subgroup.
    Rows(u32),
    /// `glsl/attention_tile.comp`: through shared memory. Few rows go the other way where there are shuffles.
    Tile,
}

/// One way of carrying out attention.
#[derive(Debug)]
pub(crate) struct Scheme {
    pub(super) name: &'static str,
    pub(super) load: Load,
    pub(super) way: Way,
    /// Workgroups that keep a device busy, where that is not what its architecture tells. Where there are fewer, keys
    /// are split.
    pub(super) busy_groups: Option<u64>,
    /// The fewest keys that a part is worth.
    pub(super) least_part: u64,
    default_for: DefaultFor,
}

const fn scheme(name: &'static str, load: Load, way: Way, default_for: DefaultFor) -> Scheme {
    Scheme { name, load, way, busy_groups: None, least_part: 256, default_for }
}

pub(crate) static FAMILY: Family<Scheme> = Family {
    name: "attention",
    classes: Class::BY_ELEMENTS,
    variants: &[
        Scheme {
            busy_groups: Some(4),
            ..scheme("texel-rows", Load::Texel, Way::Rows(16), DefaultFor::Software)
        },
        scheme("buffer-tile", Load::Buffer, Way::Tile, DefaultFor::Gpu),
        scheme("buffer-rows", Load::Buffer, Way::Rows(4), DefaultFor::Candidate),
        Scheme {
            busy_groups: Some(64),
            least_part: 32,
            ..scheme("texel-rows-split", Load::Texel, Way::Rows(4), DefaultFor::Tests)
        },
        Scheme {
            busy_groups: Some(64),
            least_part: 32,
            ..scheme("buffer-tile-split", Load::Buffer, Way::Tile, DefaultFor::Tests)
        },
    ],
    problem: |class, _| {
        let [heads, tokens] = if class == Class::Large { [4, 256] } else { [2, 64] };
        vec![Shape::from([heads, tokens, 64]); 3]
    },
    // What is made ahead is little, and few programs attend.
    prewarm: |_| Ok(Vec::new()),
    inspected,
};

impl AnyVariant for Scheme {
    fn name(&self) -> &'static str {
        self.name
    }

    fn default_for(&self) -> DefaultFor {
        self.default_for
    }

    fn runs_with(&self, device: &Abilities<'_>) -> bool {
        (self.load != Load::Texel || device.texels)
            && match self.way {
                Way::Rows(_) => device.shuffles,
                // What Vulkan asks of every device: 128 invocations and 16 KiB of shared memory.
                Way::Tile => true,
            }
    }
}
