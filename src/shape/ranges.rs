//! A box of a tensor.

use std::ops::Range;

use smallvec::{SmallVec, smallvec};

use super::MAX_RANK;

/// The ranges that [`Recording::slice`](crate::Recording::slice) takes: one, or an array or slice of them.
#[derive(Clone, Debug)]
pub struct Ranges(pub(crate) SmallVec<[Range<usize>; MAX_RANK]>);

impl From<Range<usize>> for Ranges {
    fn from(range: Range<usize>) -> Ranges {
        Ranges(smallvec![range])
    }
}

impl<const N: usize> From<[Range<usize>; N]> for Ranges {
    fn from(ranges: [Range<usize>; N]) -> Ranges {
        Ranges(ranges.into_iter().collect())
    }
}

impl From<&[Range<usize>]> for Ranges {
    fn from(ranges: &[Range<usize>]) -> Ranges {
        Ranges(ranges.iter().cloned().collect())
    }
}
