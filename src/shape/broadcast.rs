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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_stretch_as_numpy_has_it() {
        let both = |a: &[usize], b: &[usize]| {
            broadcast("add", Shape::new(a).unwrap(), Shape::new(b).unwrap()).map(|s| s.dims().to_vec())
        };
        assert_eq!(both(&[], &[]).unwrap(), []);
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
