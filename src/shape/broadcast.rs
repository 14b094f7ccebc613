//! Shapes that stretch to each other.

use super::{MAX_RANK, Shape};
use crate::error::{Error, Result};

/// The shape that both shapes stretch to, as NumPy has it: aligned at the last dimension, ones repeat.
pub(crate) fn broadcast(op: &'static str, lhs: Shape, rhs: Shape) -> Result<Shape> {
    if lhs == rhs {
        return Ok(lhs);
    }
    let rank = lhs.rank().max(rhs.rank());
    let extent =
        |shape: &Shape, d: usize| (d + shape.rank()).checked_sub(rank).map_or(1, |inner| shape.dims()[inner]);
    let mut extents = [0; MAX_RANK];
    for (d, both) in extents[..rank].iter_mut().enumerate() {
        *both = match (extent(&lhs, d), extent(&rhs, d)) {
            (a, b) if a == b => a,
            (1, b) => b,
            (a, 1) => a,
            (a, b) => {
                let why = format!("{a} != {b} in dimension {d}");
                return Err(Error::Shapes { op, lhs, rhs, why });
            }
        };
    }
    Shape::new(&extents[..rank]).ok_or(Error::Rank { op, rank })
}

/// The stride with which neighbouring dimensions of these strides are walked through as if they were one; `None` if
/// that can't be.
pub(crate) fn stride_along(extents: &[usize], strides: &[u32]) -> Option<u32> {
    let mut walked: Option<(u32, u64)> = None;
    for (&extent, &stride) in extents.iter().zip(strides).rev().filter(|(extent, _)| **extent != 1) {
        let first = match walked {
            None => stride,
            Some((first, next)) if next == u64::from(stride) => first,
            Some(_) => return None,
        };
        walked = Some((first, u64::from(stride).saturating_mul(extent as u64)));
    }
    Some(walked.map_or(0, |(first, _)| first))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dimensions_are_walked_through_as_one_where_strides_allow() {
        assert_eq!(stride_along(&[], &[]), Some(0));
        assert_eq!(stride_along(&[2, 3, 5], &[15, 5, 1]), Some(1));
        assert_eq!(stride_along(&[2, 3, 5], &[30, 10, 2]), Some(2));
        assert_eq!(stride_along(&[2, 1, 5], &[5, 77, 1]), Some(1));
        assert_eq!(stride_along(&[2, 3, 5], &[0, 0, 0]), Some(0));
        assert_eq!(stride_along(&[2, 3, 5], &[0, 5, 1]), None);
        assert_eq!(stride_along(&[2, 3, 5], &[3, 1, 0]), None);
    }

    #[test]
    fn shapes_stretch_as_numpy_has_it() {
        let both = |a: &[usize], b: &[usize]| {
            broadcast("add", Shape::new(a).unwrap(), Shape::new(b).unwrap()).map(|s| s.dims().to_vec())
        };
        assert_eq!(both(&[], &[]).unwrap(), [0usize; 0]);
        assert_eq!(both(&[], &[2, 3]).unwrap(), [2, 3]);
        assert_eq!(both(&[3], &[2, 1]).unwrap(), [2, 3]);
        assert_eq!(both(&[2, 1, 4, 1], &[3, 1, 5]).unwrap(), [2, 3, 4, 5]);
        assert_eq!(both(&[1], &[0]).unwrap(), [0]);
        let said = |a: &[usize], b: &[usize]| both(a, b).unwrap_err().to_string();
        assert_eq!(said(&[4, 3], &[5, 3]), "add: lhs [4, 3] and rhs [5, 3]: 4 != 5 in dimension 0");
        assert_eq!(said(&[2, 4, 3], &[5, 3]), "add: lhs [2, 4, 3] and rhs [5, 3]: 4 != 5 in dimension 1");
        assert_eq!(said(&[0], &[3]), "add: lhs [0] and rhs [3]: 0 != 3 in dimension 0");
    }
}
