//! Which variant serves which shapes: the device's defaults, what tuning has found, what the user asked for.

use crate::kernels::catalog::{Family, Variant};
use crate::kernels::conv2d::schemes as convolutions;
use crate::kernels::matmul::schemes::{self, Scheme};

/// Shapes that variants are chosen for apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Class {
    /// Work that is over before all of a device is busy.
    Small,
    /// Work that keeps a device busy.
    Large,
    /// Products with few rows or few columns; convolutions with few channels in a group.
    Thin,
    /// Products of at most four rows.
    Row,
    /// Products of at most four columns.
    Column,
}

/// Elements from which elementwise work, reductions and softmax are large; of the result of a convolution.
const LARGE_ELEMENTS: u64 = 1 << 16;
/// Elements of the result from which a product is large.
const LARGE_RESULT: u64 = 512 * 512;
/// Rows or columns up to which a product is thin.
const THIN: u32 = 64;
/// And up to which it is nearly a vector. Channels of the result in a group up to which a convolution is thin.
const VECTOR: u32 = 4;

impl Class {
    const LINEAR: &[Class] = &[Class::Small, Class::Large];
    const CONVOLUTIONS: &[Class] = &[Class::Small, Class::Large, Class::Thin];
    const PRODUCTS: &[Class] = &[Class::Small, Class::Large, Class::Thin, Class::Row, Class::Column];

    /// Of work on so many elements.
    pub(crate) fn of_elements(elements: u64) -> Class {
        if elements < LARGE_ELEMENTS { Class::Small } else { Class::Large }
    }

    /// Of a product with a result of `m` rows and `n` columns.
    pub(crate) fn of_product(m: u32, n: u32) -> Class {
        if n <= VECTOR {
            Class::Column
        } else if m <= VECTOR {
            Class::Row
        } else if m.min(n) <= THIN {
            Class::Thin
        } else if u64::from(m) * u64::from(n) < LARGE_RESULT {
            Class::Small
        } else {
            Class::Large
        }
    }

    /// Of a convolution whose groups have so many channels of the result, and whose result has so many elements.
    pub(crate) fn of_convolution(rows: u32, elements: u64) -> Class {
        if rows <= VECTOR { Class::Thin } else { Class::of_elements(elements) }
    }

    /// Those that a family tells apart.
    pub(crate) fn all_of(family: &str) -> &'static [Class] {
        match family {
            schemes::FAMILY => Class::PRODUCTS,
            convolutions::FAMILY => Class::CONVOLUTIONS,
            _ => Class::LINEAR,
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

/// A variant for every family and class.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Choices {
    linear: [[&'static Variant; Class::LINEAR.len()]; Family::ALL.len()],
    products: [&'static Scheme; Class::PRODUCTS.len()],
    convolutions: [&'static convolutions::Scheme; Class::CONVOLUTIONS.len()],
}

impl Choices {
    /// One variant of each family for all of its classes, in the order of [`Family::ALL`].
    pub(crate) fn new(
        linear: [&'static Variant; Family::ALL.len()],
        products: &'static Scheme,
        convolutions: &'static convolutions::Scheme,
    ) -> Choices {
        Choices {
            linear: linear.map(|variant| [variant; Class::LINEAR.len()]),
            products: [products; Class::PRODUCTS.len()],
            convolutions: [convolutions; Class::CONVOLUTIONS.len()],
        }
    }

    pub(crate) fn variant(&self, family: Family, class: Class) -> &'static Variant {
        // Only products and convolutions have more classes than two.
        self.linear[family as usize][(class as usize).min(1)]
    }

    pub(crate) fn products(&self, class: Class) -> &'static Scheme {
        self.products[class as usize]
    }

    pub(crate) fn convolutions(&self, class: Class) -> &'static convolutions::Scheme {
        self.convolutions[class as usize]
    }

    pub(crate) fn set_variant(&mut self, class: Class, variant: &'static Variant) {
        self.linear[variant.family as usize][(class as usize).min(1)] = variant;
    }

    pub(crate) fn set_products(&mut self, class: Class, scheme: &'static Scheme) {
        self.products[class as usize] = scheme;
    }

    pub(crate) fn set_convolutions(&mut self, class: Class, scheme: &'static convolutions::Scheme) {
        self.convolutions[class as usize] = scheme;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_fall_into_classes() {
        assert_eq!(Class::of_elements(65_535), Class::Small);
        assert_eq!(Class::of_elements(65_536), Class::Large);
        let products = [
            ([1, 1], Class::Column),
            ([4096, 4], Class::Column),
            ([4, 4096], Class::Row),
            ([5, 4096], Class::Thin),
            ([4096, 64], Class::Thin),
            ([65, 65], Class::Small),
            ([512, 511], Class::Small),
            ([512, 512], Class::Large),
        ];
        for ([m, n], class) in products {
            assert_eq!(Class::of_product(m, n), class, "{m} x {n}");
        }
        assert_eq!(Class::of_convolution(4, 1 << 20), Class::Thin);
        assert_eq!(Class::of_convolution(5, 65_535), Class::Small);
        assert_eq!(Class::of_convolution(5, 65_536), Class::Large);
    }

    #[test]
    fn classes_are_places_in_their_family() {
        for classes in [Class::LINEAR, Class::CONVOLUTIONS, Class::PRODUCTS] {
            assert!(classes.iter().enumerate().all(|(place, class)| *class as usize == place));
        }
    }
}
