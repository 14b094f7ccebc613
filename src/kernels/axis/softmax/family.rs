//! The family of softmax and its logarithm.

use crate::kernels::catalog::{Family, Load};
use crate::kernels::variant::{Class, DefaultFor, Tree, Variant};
use crate::shape::Shape;

pub(crate) static FAMILY: Family<Variant> = Family {
    name: "softmax",
    classes: Class::BY_ELEMENTS,
    variants: &[
        // 40 texels in each of 8 lanes hold a row of 1024 wherever it begins.
        Variant::new("texel-uniform", Load::Texel, Tree::Shuffle, 64, 40, DefaultFor::Software)
            .uniform_store(),
        Variant::new("texel-shuffle", Load::Texel, Tree::Shuffle, 64, 40, DefaultFor::Software),
        Variant::new("buffer-shared", Load::Buffer, Tree::Shared, 256, 8, DefaultFor::Gpu),
        Variant::new("buffer-shuffle", Load::Buffer, Tree::Shuffle, 64, 40, DefaultFor::Candidate),
    ],
    problem: |class, _| vec![Shape::from([if class == Class::Large { 1024 } else { 16 }, 1024])],
    prewarm: super::prewarm,
    inspected: super::prewarm,
};
