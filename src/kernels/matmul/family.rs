//! The family of matmuls.

use super::examples::{inspected, prewarm};
use super::schemes::{SCHEMES, Scheme};
use crate::kernels::catalog::Family;
use crate::kernels::variant::{Abilities, AnyVariant, Class, DefaultFor};
use crate::shape::Shape;

pub(crate) static FAMILY: Family<Scheme> =
    Family { name: "matmul", classes: Class::ALL, variants: SCHEMES, problem, prewarm, inspected };

impl AnyVariant for Scheme {
    fn name(&self) -> &'static str {
        self.name
    }

    fn default_for(&self) -> DefaultFor {
        self.default_for
    }

    fn runs_with(&self, device: &Abilities<'_>) -> bool {
        self.runs_with(device)
    }
}

fn problem(class: Class, software: bool) -> Vec<Shape> {
    let [m, n, k] = match (class, software) {
        (Class::Small, _) => [256, 256, 256],
        (Class::Large, true) => [512, 512, 256],
        (Class::Large, false) => [2048, 2048, 1024],
        (Class::Thin, true) => [32, 1024, 1024],
        (Class::Thin, false) => [64, 4096, 2048],
        (Class::Row, true) => [1, 1024, 1024],
        (Class::Row, false) => [1, 4096, 4096],
        (Class::Column, true) => [1024, 1, 1024],
        (Class::Column, false) => [4096, 1, 4096],
    };
    vec![Shape::from([m, k]), Shape::from([k, n])]
}
