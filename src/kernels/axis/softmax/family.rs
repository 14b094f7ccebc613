//! The family of softmax and its logarithm.

use crate::kernels::catalog::{Family, Load};
use crate::kernels::variant::{Class, Suits, Tree, Variant};
use crate::shape::Shape;

pub(crate) static FAMILY: Family<Variant> = Family {
    name: "softmax",
    classes: Class::BY_ELEMENTS,
    variants: &[
        // 40 texels in each of 8 lanes hold a row of 1024 wherever it begins.
        Variant::new("texel-together", Load::Texel, Tree::Shuffle, 64, 40, Suits::Software).together(),
        Variant::new("texel-shuffle", Load::Texel, Tree::Shuffle, 64, 40, Suits::Software),
        Variant::new("buffer-shared", Load::Buffer, Tree::Shared, 256, 8, Suits::Gpu),
        Variant::new("buffer-shuffle", Load::Buffer, Tree::Shuffle, 64, 40, Suits::Candidate),
    ],
    problem: |class, _| vec![Shape::from([if class == Class::Large { 1024 } else { 16 }, 1024])],
    prewarm: super::prewarm,
    inspected: super::prewarm,
};
