//! The family of convolutions.

use super::inspected::inspected;
use super::schemes::{SCHEMES, Scheme};
use crate::kernels::catalog::Family;
use crate::kernels::variant::{Abilities, AnyVariant, Class, DefaultFor};
use crate::shape::Shape;

pub(crate) static FAMILY: Family<Scheme> = Family {
    name: "conv2d",
    classes: &[Class::Small, Class::Large, Class::Thin],
    variants: SCHEMES,
    problem,
    // None: pipelines know the kernel's extents.
    prewarm: |_| Ok(Vec::new()),
    inspected,
};

/// Rows and columns of the kernel of the tuner's problems.
pub(crate) const PROBLEM_TAPS: usize = 3;

impl AnyVariant for Scheme {
    fn name(&self) -> &'static str {
        self.name
    }

    fn default_for(&self) -> DefaultFor {
        self.default_for
    }

    fn runs_with(&self, device: &Abilities<'_>) -> bool {
        self.runs_with(device.texels, device.shuffles, device.limits)
    }
}

/// One image of this many groups of channels, and kernels that make this many rows (channels of the result) of each
/// group.
fn problem(class: Class, software: bool) -> Vec<Shape> {
    let [groups, channels, rows, size] = match (class, software) {
        (Class::Thin, true) => [32, 1, 1, 32],
        (Class::Thin, false) => [256, 1, 1, 56],
        (Class::Large, true) => [1, 32, 64, 32],
        (Class::Large, false) => [1, 128, 128, 56],
        (_, true) => [1, 16, 32, 14],
        (_, false) => [1, 64, 64, 14],
    };
    let kernels = [groups * rows, channels, PROBLEM_TAPS, PROBLEM_TAPS];
    vec![Shape::from([1, groups * channels, size, size]), Shape::from(kernels)]
}
