//! A box of a tensor.

use std::ops::{Range, RangeFrom, RangeFull, RangeInclusive, RangeTo, RangeToInclusive};

use smallvec::{SmallVec, smallvec};

use super::MAX_RANK;

/// The ranges that [`Recording::slice`](crate::Recording::slice) takes: one of Rust's ranges (`2..5`, `2..`, `..5`,
/// `2..=4`, `..=4`, `..`), an array or a slice of equal ones, or a tuple of different ones: `(.., 1..3)`.
#[derive(Clone, Debug)]
pub struct Ranges(pub(crate) SmallVec<[AxisRange; MAX_RANK]>);

/// A range of one dimension.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AxisRange {
    start: usize,
    /// `None` is the dimension's own.
    end: Option<usize>,
}

impl AxisRange {
    /// The range in a dimension of that extent.
    pub(crate) fn within(self, extent: usize) -> Range<usize> {
        self.start..self.end.unwrap_or(extent.max(self.start))
    }
}

macro_rules! ranges {
    ($($range:ty: $r:ident => $start:expr, $end:expr;)*) => {$(
        impl From<$range> for AxisRange {
            fn from($r: $range) -> AxisRange {
                AxisRange { start: $start, end: $end }
            }
        }

        impl From<$range> for Ranges {
            fn from(range: $range) -> Ranges {
                Ranges(smallvec![range.into()])
            }
        }

        impl<const N: usize> From<[$range; N]> for Ranges {
            fn from(ranges: [$range; N]) -> Ranges {
                Ranges(ranges.into_iter().map(AxisRange::from).collect())
            }
        }

        impl From<&[$range]> for Ranges {
            fn from(ranges: &[$range]) -> Ranges {
                Ranges(ranges.iter().cloned().map(AxisRange::from).collect())
            }
        }
    )*};
}

ranges! {
    Range<usize>: r => r.start, Some(r.end);
    RangeFrom<usize>: r => r.start, None;
    RangeTo<usize>: r => 0, Some(r.end);
    RangeFull: _r => 0, None;
    // Nothing has usize::MAX elements, so the sum may saturate: such a range lies outside of everything.
    RangeInclusive<usize>: r => *r.start(), Some(r.end().saturating_add(1));
    RangeToInclusive<usize>: r => 0, Some(r.end.saturating_add(1));
}

macro_rules! tuples {
    ($(($($type:ident $range:ident),*))*) => {$(
        impl<$($type: Into<Ranges>),*> From<($($type,)*)> for Ranges {
            fn from(($($range,)*): ($($type,)*)) -> Ranges {
                let mut all = SmallVec::new();
                $(all.extend($range.into().0);)*
                Ranges(all)
            }
        }
    )*};
}

tuples! { (A a, B b) (A a, B b, C c) (A a, B b, C c, D d) }

#[cfg(test)]
#[allow(clippy::single_range_in_vec_init, reason = "one range, of one dimension")]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_range_is_one_within_its_dimension() {
        let within = |ranges: Ranges| ranges.0.iter().map(|range| range.within(7)).collect::<Vec<_>>();
        assert_eq!(within((2..5).into()), [2..5]);
        assert_eq!(within([2.., 3..].into()), [2..7, 3..7]);
        assert_eq!(within((.., ..5, 2..=4, ..=4).into()), [0..7, 0..5, 2..5, 0..5]);
        assert_eq!(within((0..=usize::MAX).into()), [0..usize::MAX]);
        // One that begins behind the end is refused as it was given.
        assert_eq!(within((9..).into()), [9..9]);
    }
}
