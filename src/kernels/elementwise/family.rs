//! The family of elementwise kernels. Copies and generators choose by it, too.

use crate::kernels::catalog::{Family, Load};
use crate::kernels::variant::{Class, DefaultFor, Tree, Variant};
use crate::shape::Shape;

pub(crate) static FAMILY: Family<Variant> = Family {
    name: "elementwise",
    classes: Class::BY_ELEMENTS,
    variants: &[
        // 64 lanes x 8 is what `bench elementwise` likes best on lavapipe.
        Variant::new("texel-uniform", Load::Texel, Tree::Apart, 64, 8, DefaultFor::Software).uniform_store(),
        Variant::new("texel-64x8", Load::Texel, Tree::Apart, 64, 8, DefaultFor::Software),
        Variant::new("buffer-256x1", Load::Buffer, Tree::Apart, 256, 1, DefaultFor::Gpu),
        Variant::new("buffer-64x8", Load::Buffer, Tree::Apart, 64, 8, DefaultFor::Candidate),
    ],
    problem: |class, _| vec![Shape::from([if class == Class::Large { 1 << 22 } else { 1 << 14 }]); 2],
    prewarm: super::prewarm,
    inspected: super::prewarm,
};
