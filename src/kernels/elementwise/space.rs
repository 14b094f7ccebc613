//! The index space of an elementwise op, and how each input is found in it.

use std::ops::Range;

use smallvec::{SmallVec, smallvec};

use crate::ir::branches::branch;
use crate::ir::elementwise::{ElementwiseInput, MAX_INPUTS};
use crate::shape::{MAX_RANK, Shape};

/// How the shader indexes an input; numbers as there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    Dense = 0,
    Scalar = 1,
    Vector = 2,
    Splat = 3,
    Strided = 4,
    Gather = 5,
}

/// The index space with as few dimensions as the inputs allow, innermost first.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Space {
    pub(super) extents: SmallVec<[u32; MAX_RANK]>,
    pub(super) strides: SmallVec<[[u32; MAX_RANK]; MAX_INPUTS]>,
}

impl Space {
    /// Drops dimensions of one element, and merges neighbours that every input walks through in one go.
    pub(super) fn collapse(shape: &Shape, inputs: &[ElementwiseInput]) -> Space {
        let mut space = Space { extents: smallvec![], strides: smallvec![[0; MAX_RANK]; inputs.len()] };
        for d in (0..shape.rank()).rev() {
            let extent = shape.dims()[d] as u32;
            if branch!("space: of one", extent == 1) {
                continue;
            }
            let top = space.extents.len();
            let merges = top > 0
                && inputs.iter().zip(&space.strides).all(|(input, strides)| {
                    input.strides[d] == strides[top - 1].wrapping_mul(space.extents[top - 1])
                });
            if branch!("space: merges", merges) {
                space.extents[top - 1] *= extent;
                continue;
            }
            space.extents.push(extent);
            for (input, strides) in inputs.iter().zip(&mut space.strides) {
                strides[top] = input.strides[d];
            }
        }
        space
    }

    pub(super) fn modes(&self, inputs: &[ElementwiseInput]) -> SmallVec<[Mode; MAX_INPUTS]> {
        inputs.iter().enumerate().map(|(k, input)| self.mode(k, input.offset)).collect()
    }

    /// How many bytes of its inputs, of elements of these sizes, `count` elements of the output need, at the most.
    pub(super) fn bytes_read(&self, count: u64, sizes: &[u64]) -> u64 {
        let distinct = |strides: &[u32; MAX_RANK]| -> u64 {
            let walked = self.extents.iter().zip(strides).filter(|(_, stride)| **stride != 0);
            walked.map(|(extent, _)| u64::from(*extent)).product()
        };
        self.strides.iter().zip(sizes).map(|(strides, size)| size * distinct(strides).min(count)).sum()
    }

    /// Which elements of an input are read: from the first to behind the last.
    pub(super) fn reach(&self, k: usize, offset: u32) -> Range<u64> {
        // A negative stride is its complement.
        let far = |(extent, stride): (&u32, &u32)| i64::from(extent - 1) * i64::from(*stride as i32);
        let (mut first, mut last) = (i64::from(offset), i64::from(offset));
        for distance in self.extents.iter().zip(&self.strides[k]).map(far) {
            first += distance.min(0);
            last += distance.max(0);
        }
        first.max(0) as u64..last.max(0) as u64 + 1
    }

    pub(super) fn mode(&self, k: usize, offset: u32) -> Mode {
        let (rank, strides) = (self.extents.len(), &self.strides[k]);
        if strides[..rank].iter().all(|&s| s == 0) {
            branch!("space: scalar");
            return Mode::Scalar;
        }
        let mut dense = 1u32;
        let is_dense = self.extents.iter().zip(strides).all(|(extent, &stride)| {
            let expected = dense;
            dense = dense.wrapping_mul(*extent);
            stride == expected
        });
        if is_dense && branch!("space: dense", offset.is_multiple_of(4)) {
            return Mode::Dense;
        }
        // A last group of fewer than four elements would run over the end of its row.
        if branch!("space: gather", !self.extents[0].is_multiple_of(4)) {
            return Mode::Gather;
        }
        match strides[0] {
            0 => {
                branch!("space: splat");
                Mode::Splat
            }
            1 if branch!("space: vector begins at four", offset.is_multiple_of(4))
                && branch!("space: vectors of four", strides[1..rank].iter().all(|s| s % 4 == 0)) =>
            {
                Mode::Vector
            }
            _ => {
                branch!("space: strided");
                Mode::Strided
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::elementwise::dense_strides;

    fn input(strides: [u32; 4]) -> ElementwiseInput {
        ElementwiseInput { value: 0, strides, offset: 0 }
    }

    #[test]
    fn dimensions_collapse_where_every_input_allows() {
        let shape = Shape::from([2, 3, 4, 8]);
        let dense = input(dense_strides(&shape));
        let space = Space::collapse(&shape, &[dense]);
        assert_eq!((space.extents.as_slice(), space.mode(0, 0)), (&[192][..], Mode::Dense));
        let row = input([0, 0, 0, 1]);
        let space = Space::collapse(&shape, &[dense, row]);
        assert_eq!(space.extents.as_slice(), [8, 24]);
        assert_eq!((space.mode(0, 0), space.mode(1, 0)), (Mode::Dense, Mode::Vector));
        let column = input([12, 4, 1, 0]);
        let space = Space::collapse(&shape, &[dense, column]);
        assert_eq!((space.extents.as_slice(), space.mode(1, 0)), (&[8, 24][..], Mode::Splat));
        let transposed = input([96, 32, 1, 4]);
        assert_eq!(Space::collapse(&shape, &[transposed]).mode(0, 0), Mode::Strided);
        assert_eq!(Space::collapse(&shape, &[input([0; 4])]).mode(0, 0), Mode::Scalar);
    }

    /// The shader loads groups of four elements, which begin at multiples of four.
    #[test]
    fn only_whole_groups_of_four_are_read_as_such() {
        let mode = |shape: Shape, strides: [u32; 4], offset: u32| {
            Space::collapse(&shape, &[input(strides)]).mode(0, offset)
        };
        for (offset, dense) in [(0, true), (1, false), (2, false), (3, false), (4, true), (1 << 20, true)] {
            assert_eq!(mode([16].into(), [1, 0, 0, 0], offset) == Mode::Dense, dense, "{offset}");
            assert_eq!(mode([3, 16].into(), [20, 1, 0, 0], offset) == Mode::Vector, dense, "{offset}");
        }
        for (stride, whole) in [(17, false), (18, false), (19, false), (20, true), (16 * 3, true), (0, true)]
        {
            let found = mode([3, 16].into(), [stride, 1, 0, 0], 0);
            assert_eq!(found == Mode::Vector, whole, "{stride}: {found:?}");
        }
        assert_eq!(mode([3, 15].into(), [20, 1, 0, 0], 0), Mode::Gather, "rows end within a group");
        assert_eq!(
            mode([3, 15].into(), [1, 0, 0, 0], 0),
            Mode::Gather,
            "and so does an element for each row"
        );
    }

    #[test]
    fn what_is_read_lies_between_the_ends() {
        let column = ElementwiseInput { value: 0, strides: [10, 1, 0, 0], offset: 3 };
        let reach =
            |shape: Shape, input: ElementwiseInput| Space::collapse(&shape, &[input]).reach(0, input.offset);
        assert_eq!(reach([4, 2].into(), column), 3..3 + 30 + 1 + 1);
        let backwards = ElementwiseInput { value: 0, strides: [10, 2u32.wrapping_neg(), 0, 0], offset: 8 };
        assert_eq!(reach([4, 3].into(), backwards), 4..8 + 30 + 1);
        assert_eq!(reach([1].into(), ElementwiseInput { value: 0, strides: [0; 4], offset: 77 }), 77..78);
    }
}
