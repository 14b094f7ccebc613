//! Variants of a kernel family: the devices for which they are the default, what they need, and the shapes that they
//! are for.

use std::fmt;

use crate::ir::branches::branch;
use crate::kernels::modules::Load;
use crate::vk::architecture::Architecture;
use crate::vk::physical::{DeviceInfo, Limits};

/// The kind of device for which a variant is the default.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DefaultFor {
    Gpu,
    Software,
    /// No device's default: for the tuner.
    Candidate,
    /// Never chosen: takes tests to every branch of the lowering with small shapes.
    Tests,
}

impl DefaultFor {
    /// What a device's defaults suit. Those of software drivers need texel views of the engine's format.
    pub(crate) fn of(device: &DeviceInfo) -> DefaultFor {
        match device.workarounds.texel_loads && device.features.storage_texel {
            true => DefaultFor::Software,
            false => DefaultFor::Gpu,
        }
    }
}

/// Abilities of a device that variants need.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Abilities<'a> {
    /// Kernels may load through texel views.
    pub(crate) texels: bool,
    /// Kernels may shuffle among the invocations of a subgroup: the device can, and its size is known.
    pub(crate) shuffles: bool,
    /// The invocations of a subgroup can store to one address: `glsl/lib/uniform_store.glsl`.
    pub(crate) uniform_store: bool,
    pub(crate) limits: &'a Limits,
    pub(crate) architecture: Architecture,
}

/// One way of doing a family's job: an entry of its table.
pub(crate) trait AnyVariant: fmt::Debug + Sync {
    fn name(&self) -> &'static str;

    fn default_for(&self) -> DefaultFor;

    /// Whether such a device can run it, for all shapes.
    fn runs_with(&self, device: &Abilities<'_>) -> bool;

    /// Whether subgroups use uniform stores: such a variant is a default only where the workarounds say that it is
    /// faster.
    fn stores_uniformly(&self) -> bool {
        false
    }
}

/// How the invocations of a workgroup join their partial results.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Tree {
    /// They have none in common.
    Apart,
    /// Through shared memory: GPUs, and devices without shuffles.
    Shared,
    /// By shuffles inside a subgroup: software drivers.
    Shuffle,
}

/// A variant of a family that works through elements or rows one after the other.
#[derive(Debug)]
pub(crate) struct Variant {
    pub(crate) name: &'static str,
    pub(crate) load: Load,
    pub(crate) tree: Tree,
    /// Invocations of a workgroup.
    pub(crate) local_size: u32,
    /// Groups of four elements per invocation; the largest number, where that depends on the shape.
    pub(crate) vec4s: u32,
    /// Whether the invocations of a subgroup use uniform stores where they can: `glsl/lib/uniform_store.glsl`.
    pub(crate) uniform_store: bool,
    default_for: DefaultFor,
}

impl Variant {
    pub(crate) const fn new(
        name: &'static str,
        load: Load,
        tree: Tree,
        local_size: u32,
        vec4s: u32,
        default_for: DefaultFor,
    ) -> Variant {
        Variant { name, load, tree, local_size, vec4s, uniform_store: false, default_for }
    }

    pub(crate) const fn uniform_store(mut self) -> Variant {
        self.uniform_store = true;
        self
    }

    /// Elements that a workgroup works through, where that does not depend on the shape.
    pub(crate) fn elements_of_group(&self) -> u64 {
        u64::from(self.local_size * self.vec4s * 4)
    }
}

impl AnyVariant for Variant {
    fn name(&self) -> &'static str {
        self.name
    }

    fn default_for(&self) -> DefaultFor {
        self.default_for
    }

    fn runs_with(&self, device: &Abilities<'_>) -> bool {
        (self.load != Load::Texel || device.texels)
            && (self.tree != Tree::Shuffle || device.shuffles)
            && (!self.uniform_store || device.uniform_store)
            && self.local_size <= device.limits.invocations.min(device.limits.local_size[0])
    }

    fn stores_uniformly(&self) -> bool {
        self.uniform_store
    }
}

/// Shapes that variants are chosen for apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Class {
    /// Work that is over before all of a device is busy.
    Small,
    /// Work that keeps a device busy.
    Large,
    /// Matmuls with few rows or few columns; convolutions with few channels in a group.
    Thin,
    /// Matmuls of at most four rows.
    Row,
    /// Matmuls of at most four columns.
    Column,
}

/// Elements from which elementwise work, reductions and softmax are large; of the result of a convolution.
const LARGE_ELEMENTS: u64 = 1 << 16;
/// Elements of the result from which a matmul is large.
const LARGE_RESULT: u64 = 512 * 512;
/// Rows or columns up to which a matmul is thin.
const THIN: u32 = 64;
/// And up to which it is nearly a vector. Channels of the result in a group up to which a convolution is thin.
const VECTOR: u32 = 4;

impl Class {
    /// All of them. The classes of a family stand first here.
    pub(crate) const ALL: &[Class] = &[Class::Small, Class::Large, Class::Thin, Class::Row, Class::Column];
    /// Of families that are chosen by the number of elements alone.
    pub(crate) const BY_ELEMENTS: &[Class] = &[Class::Small, Class::Large];

    /// Of work on this many elements.
    pub(crate) fn of_elements(elements: u64) -> Class {
        if branch!("class: few elements", elements < LARGE_ELEMENTS) { Class::Small } else { Class::Large }
    }

    /// Of a matmul with a result of `m` rows and `n` columns.
    pub(crate) fn of_matmul(m: u32, n: u32) -> Class {
        if branch!("class: column", n <= VECTOR) {
            Class::Column
        } else if branch!("class: row", m <= VECTOR) {
            Class::Row
        } else if branch!("class: thin", m.min(n) <= THIN) {
            Class::Thin
        } else if branch!("class: small result", u64::from(m) * u64::from(n) < LARGE_RESULT) {
            Class::Small
        } else {
            Class::Large
        }
    }

    /// Of a convolution whose groups have this many channels of the result, and whose result has this many elements.
    pub(crate) fn of_convolution(rows: u32, elements: u64) -> Class {
        if branch!("class: few channels", rows <= VECTOR) {
            Class::Thin
        } else {
            Class::of_elements(elements)
        }
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Class::Small => "small",
            Class::Large => "large",
            Class::Thin => "thin",
            Class::Row => "row",
            Class::Column => "column",
        }
    }
}

/// The variant that measured best for a class of shapes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Winner {
    pub(crate) family: &'static str,
    pub(crate) class: Class,
    pub(crate) variant: &'static str,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_fall_into_classes() {
        assert_eq!(Class::of_elements(65_535), Class::Small);
        assert_eq!(Class::of_elements(65_536), Class::Large);
        let matmuls = [
            ([1, 1], Class::Column),
            ([4096, 4], Class::Column),
            ([4, 4096], Class::Row),
            ([5, 4096], Class::Thin),
            ([4096, 64], Class::Thin),
            ([65, 65], Class::Small),
            ([512, 511], Class::Small),
            ([512, 512], Class::Large),
        ];
        for ([m, n], class) in matmuls {
            assert_eq!(Class::of_matmul(m, n), class, "{m} x {n}");
        }
        assert_eq!(Class::of_convolution(4, 1 << 20), Class::Thin);
        assert_eq!(Class::of_convolution(5, 65_535), Class::Small);
        assert_eq!(Class::of_convolution(5, 65_536), Class::Large);
    }

    #[test]
    fn classes_are_places() {
        assert!(Class::ALL.iter().enumerate().all(|(place, class)| *class as usize == place));
    }
}
