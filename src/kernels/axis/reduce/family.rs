//! The family of reductions.

use crate::kernels::catalog::{Family, Load};
use crate::kernels::variant::{Class, DefaultFor, Tree, Variant};
use crate::shape::Shape;

pub(crate) static FAMILY: Family<Variant> = Family {
    name: "reduce",
    classes: Class::BY_ELEMENTS,
    variants: &[
        Variant::new("texel-shuffle", Load::Texel, Tree::Shuffle, 64, 8, DefaultFor::Software),
        Variant::new("buffer-shared", Load::Buffer, Tree::Shared, 256, 8, DefaultFor::Gpu),
        Variant::new("buffer-shuffle", Load::Buffer, Tree::Shuffle, 64, 8, DefaultFor::Candidate),
    ],
    problem: |class, _| vec![Shape::from([if class == Class::Large { 2048 } else { 16 }, 1024])],
    prewarm: super::prewarm,
    inspected: super::prewarm,
};
