//! The common part of all elementwise operations: broadcasting, blocks, threads.

use smallvec::SmallVec;

use super::parallel::{Grain, pieces};
use super::simd;
use super::streaming::Stores;
use super::view::{View, check_length};
use crate::error::Result;
use crate::shape::broadcast::broadcast;
use crate::shape::{Element, MAX_RANK, Shape};

/// Elements of a repeated operand that are written out at a time.
const BLOCK: usize = 1024;

/// An operation of one operand.
pub(super) fn unary<'a, A: Element, R: Element>(
    op: &'static str,
    x: impl Into<View<'a, A>>,
    out: &mut [R],
    grain: Grain,
    f: impl Fn(A) -> R + Copy + Sync + Send,
) -> Result<Shape> {
    let x = x.into().checked(op)?;
    check_length(op, x.shape(), out.len())?;
    let data = x.data();
    let whole = out.len();
    pieces(out, grain, |first, out| {
        simd::map1(&data[first..first + out.len()], out, &Stores::of_result::<R>(whole, grain), f);
    });
    Ok(x.shape())
}

/// An operation of two operands, which broadcast.
pub(super) fn binary<A: Element, R: Element>(
    op: &'static str,
    lhs: View<'_, A>,
    rhs: View<'_, A>,
    out: &mut [R],
    grain: Grain,
    f: impl Fn(A, A) -> R + Copy + Sync + Send,
) -> Result<Shape> {
    broadcast_map(op, [lhs, rhs], out, grain, |[x, y], out, stores| simd::map2(x, y, out, stores, f))
}

/// Calls `kernel` on stretches of operands that broadcast, written out where they repeat one element.
pub(super) fn broadcast_map<A: Element, R: Element, const N: usize>(
    op: &'static str,
    operands: [View<'_, A>; N],
    out: &mut [R],
    grain: Grain,
    kernel: impl Fn([&[A]; N], &mut [R], &Stores) + Sync + Send,
) -> Result<Shape> {
    let mut shape = Shape::default();
    // Pair by pair, so that a refusal names the two shapes that disagree.
    for (k, a) in operands.iter().enumerate() {
        a.checked(op)?;
        for b in &operands[k + 1..] {
            broadcast(op, a.shape(), b.shape())?;
        }
        shape = broadcast(op, shape, a.shape())?;
    }
    check_length(op, shape, out.len())?;
    let data = operands.map(|operand| operand.data());
    if operands.iter().all(|operand| operand.shape() == shape) {
        let whole = out.len();
        pieces(out, grain, |first, out| {
            kernel(data.map(|x| &x[first..first + out.len()]), out, &Stores::of_result::<R>(whole, grain));
        });
        return Ok(shape);
    }
    let runs = Runs::new(operands.map(|operand| operand.shape()), &shape);
    pieces(out, grain, |first, out| {
        let mut splats = data.map(|x| [x.first().copied().unwrap_or_else(A::zeroed); BLOCK]);
        let mut done = 0;
        while done < out.len() {
            let (row, column) = ((first + done) / runs.width, (first + done) % runs.width);
            let length = (runs.width - column).min(out.len() - done);
            let starts = runs.starts(row);
            for n in 0..N {
                if runs.inner[n] == 0 {
                    splats[n][..length.min(BLOCK)].fill(data[n][starts[n]]);
                }
            }
            // Nothing is written out if all operands go along.
            let block = if runs.inner.contains(&0) { BLOCK } else { length };
            for begin in (0..length).step_by(block) {
                let size = block.min(length - begin);
                let stretches = std::array::from_fn(|n| match runs.inner[n] {
                    0 => &splats[n][..size],
                    _ => &data[n][starts[n] + column + begin..][..size],
                });
                // Short stretches begin and end within a line, which is slow to write in two ways.
                kernel(stretches, &mut out[done + begin..][..size], &Stores::ORDINARY);
            }
            done += length;
        }
    });
    Ok(shape)
}

/// Dense operands read as if they had a larger shape: runs of `width` elements in which each operand either goes along
/// or repeats one element.
struct Runs<const N: usize> {
    width: usize,
    inner: [usize; N],
    /// Extents outside of the runs with the operands' strides, innermost first.
    outer: SmallVec<[(usize, [usize; N]); MAX_RANK]>,
}

impl<const N: usize> Runs<N> {
    fn new(from: [Shape; N], to: &Shape) -> Runs<N> {
        let mut dimensions: SmallVec<[(usize, [usize; N]); MAX_RANK]> = SmallVec::new();
        let mut dense = [1; N];
        for (d, &extent) in to.dims().iter().enumerate().rev() {
            let strides = std::array::from_fn(|n| {
                let own = (d + from[n].rank()).checked_sub(to.rank()).map_or(1, |d| from[n].dims()[d]);
                let stride = if own == extent { dense[n] } else { 0 };
                dense[n] *= own;
                stride
            });
            if extent == 1 {
                continue;
            }
            // Neighbours in which every operand goes on, or stays, are one dimension.
            match dimensions.last_mut() {
                Some((inner, steps)) if (0..N).all(|n| strides[n] == steps[n] * *inner) => *inner *= extent,
                _ => dimensions.push((extent, strides)),
            }
        }
        let (width, inner) = if dimensions.is_empty() { (1, [1; N]) } else { dimensions.remove(0) };
        Runs { width, inner, outer: dimensions }
    }

    /// Where the run of this number begins in each operand.
    fn starts(&self, mut run: usize) -> [usize; N] {
        let mut starts = [0; N];
        for (extent, strides) in &self.outer {
            let coordinate = run % extent;
            run /= extent;
            for n in 0..N {
                starts[n] += coordinate * strides[n];
            }
        }
        starts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbouring_dimensions_become_one_run() {
        let runs = |a: &[usize], b: &[usize], to: &[usize]| {
            let shapes = [a, b].map(|s| Shape::new(s).unwrap());
            let runs = Runs::new(shapes, &Shape::new(to).unwrap());
            (runs.width, runs.inner, runs.outer.to_vec())
        };
        assert_eq!(runs(&[2, 3], &[], &[2, 3]), (6, [1, 0], vec![]));
        assert_eq!(runs(&[2, 3], &[3], &[2, 3]), (3, [1, 1], vec![(2, [3, 0])]));
        assert_eq!(runs(&[2, 3], &[2, 1], &[2, 3]), (3, [1, 0], vec![(2, [3, 1])]));
        assert_eq!(runs(&[4, 2, 3], &[4, 1, 1], &[4, 2, 3]), (6, [1, 0], vec![(4, [6, 1])]));
        assert_eq!(runs(&[1, 1], &[1], &[1, 1]), (1, [1, 1], vec![]));
    }
}
