//! Problems of each family, on both sides of the constants that steer it. The numbers are those of `src/kernels`: tiles
//! and rules of `matmul/schemes.rs` and `conv2d/schemes.rs`, heuristics of `reduce` and `softmax`, and elements of a
//! workgroup of `elementwise`.

use tidemill::Result;
use tidemill_cases::reference::convolution::Convolution;

use crate::twin::{Known, Made, Twin};

/// A family, and what draws one of its problems.
pub type Family = (&'static str, for<'a, 'b> fn(&'b mut Twin<'a>) -> Made);

pub const FAMILIES: [Family; 15] = [
    ("matmul", |t| t.matmul_problem()),
    ("vector", |t| t.matmul_with_vector()),
    ("padded output", |t| t.large_matmul()),
    ("batches", |t| t.batches()),
    ("deep matmul", |t| t.deep_matmul()),
    ("convolution", |t| t.convolution()),
    ("odd convolution", |t| t.odd_convolution()),
    ("reduction", |t| t.reduction()),
    ("softmax", |t| t.any_softmax()),
    ("norm", |t| t.any_norm()),
    ("attention", |t| t.any_attention()),
    ("elementwise", |t| t.elementwise()),
    ("place", |t| t.place()),
    ("gather", |t| t.gathered()),
    ("indexed", |t| t.indexed()),
];

/// Tiles of rows and columns, and what makes a matmul thin.
const ROWS: [usize; 7] = [1, 4, 8, 16, 32, 64, 130];
const COLUMNS: [usize; 7] = [1, 4, 16, 32, 64, 128, 512];
/// Steps along k, chunks, the least part that is worth splitting, rows that are packed longer.
const INNER: [usize; 8] = [1, 4, 8, 16, 64, 256, 512, 1024];

impl Twin<'_> {
    fn flip(&mut self) -> bool {
        self.random.once_in(2)
    }

    /// A matrix of these extents, as it is or transposed.
    fn matrix(&mut self, batch: &[usize], [rows, columns]: [usize; 2], transposed: bool) -> Made {
        let matrix = if transposed { [columns, rows] } else { [rows, columns] };
        let dims: Vec<usize> = batch.iter().copied().chain(matrix).collect();
        if self.random.once_in(8) { self.tensor_of(&dims, true) } else { self.operand(&dims) }
    }

    fn times(&mut self, [m, n, k]: [usize; 3], batches: [&[usize]; 2]) -> Made {
        let transposed = [self.flip(), self.flip()];
        let a = self.matrix(batches[0], [m, k], transposed[0])?;
        let b = self.matrix(batches[1], [k, n], transposed[1])?;
        let c = self.matmul(&a, &b, transposed)?;
        if c.half { self.unary("to_float", &c) } else { Ok(c) }
    }

    fn matmul_problem(&mut self) -> Made {
        let (m, n) = (self.random.near_one_of(&ROWS), self.random.near_one_of(&COLUMNS));
        let k = if self.random.once_in(24) { 0 } else { self.random.near_one_of(&INNER) };
        self.times([m, n, k], [&[], &[]])
    }

    fn matmul_with_vector(&mut self) -> Made {
        let (n, k) = (self.random.near_one_of(&[1, 16, 128, 2048]), self.random.near_one_of(&INNER));
        match self.random.below(3) {
            0 => {
                let (a, v) = (self.operand(&[n, k])?, self.operand(&[k])?);
                self.matmul(&a, &v, [false; 2])
            }
            1 => {
                let (v, b) = (self.operand(&[k])?, self.operand(&[k, n])?);
                self.matmul(&v, &b, [false; 2])
            }
            _ => {
                let (v, b) = (self.operand(&[1, k])?, self.operand(&[n, k])?);
                self.matmul(&v, &b, [false, true])
            }
        }
    }

    /// Results of about 65,536 elements, the size from which rows that are no whole groups of four have a padded
    /// output.
    fn large_matmul(&mut self) -> Made {
        let n = self.random.pick(&[1, 3, 5, 16, 17, 63, 130, 257, 1025]);
        let m = (65_536usize).div_ceil(n);
        let (m, k) = (self.random.near(m), self.random.pick(&[1, 3, 4, 8, 13]));
        if n == 1 && self.flip() {
            let (a, v) = (self.operand(&[m, k])?, self.operand(&[k])?);
            return self.matmul(&a, &v, [false; 2]);
        }
        self.times([m, n, k], [&[], &[]])
    }

    fn batches(&mut self) -> Made {
        let batch: [&[usize]; 2] = self.random.pick(&[
            [&[3], &[3]],
            [&[3], &[]],
            [&[], &[3]],
            [&[2, 3], &[3]],
            [&[2, 1], &[2, 3]],
            [&[2, 3], &[1, 1]],
            [&[1, 3], &[2, 1]],
            [&[0], &[]],
            [&[9], &[9]],
        ]);
        let (m, n) = (self.random.near_one_of(&[1, 4, 32, 64]), self.random.near_one_of(&[1, 4, 16, 64]));
        let k = self.random.near_one_of(&[4, 8, 64, 512]);
        self.times([m, n, k], batch)
    }

    /// Sums that are split to keep a device busy.
    fn deep_matmul(&mut self) -> Made {
        let (mnk, transposed) = match self.random.below(2) {
            0 => ([60, 70, self.random.near(2048)], [self.flip(), self.flip()]),
            _ => ([self.random.near(4), self.random.near(128), self.random.near(4096)], [false, self.flip()]),
        };
        let [m, n, k] = mnk;
        let stored = |[rows, columns]: [usize; 2], transposed: bool| {
            if transposed { [columns, rows] } else { [rows, columns] }
        };
        let a = self.tensor(&stored([m, k], transposed[0]))?;
        let b = self.tensor(&stored([k, n], transposed[1]))?;
        self.matmul(&a, &b, transposed)
    }

    fn convolve(&mut self, how: &Convolution) -> Made {
        let x = if self.random.once_in(8) {
            self.tensor_of(&how.input, true)?
        } else {
            self.operand(&how.input)?
        };
        let w = self.operand(&how.weights)?;
        let y = self.conv2d(&x, &w, how)?;
        if y.half { self.unary("to_float", &y) } else { Ok(y) }
    }

    /// Channels of the result that invocations own, few and many taps, whole fours of pixels and others, several
    /// images.
    fn convolution(&mut self) -> Made {
        let groups = self.random.pick(&[1, 1, 1, 2, 4]);
        let rows = self.random.pick(&[1, 3, 4, 5, 8, 16, 32, 33, 64]);
        let channels = self.random.pick(&[1, 2, 3, 4, 8, 24]);
        let taps = self.random.pick(&[[1, 1], [3, 3], [1, 3], [3, 2], [2, 5], [1, 9], [1, 17]]);
        let stride = self.random.pick(&[[1, 1], [1, 1], [2, 2], [1, 3]]);
        let padding = self.random.pick(&[[0, 0], [1, 1], [0, 2], [3, 1]]);
        let dilation = self.random.pick(&[[1, 1], [1, 1], [2, 1], [1, 2]]);
        let images = self.random.pick(&[1, 1, 2, 5]);
        let reach = |d: usize| (taps[d] - 1) * dilation[d] + 1;
        let size = [self.random.pick(&[1, 5, 8, 16]), self.random.pick(&[1, 4, 7, 8, 16, 32])];
        let size = [0, 1].map(|d| size[d].max(reach(d)));
        self.convolve(&Convolution {
            input: [images, groups * channels, size[0], size[1]],
            weights: [groups * rows, channels, taps[0], taps[1]],
            stride,
            padding,
            dilation,
            groups,
        })
    }

    /// Where a direct convolution does not pay, sums are split, or tiles are whole.
    fn odd_convolution(&mut self) -> Made {
        let plain = Convolution {
            input: [1, 1, 4, 4],
            weights: [1, 1, 1, 1],
            stride: [1; 2],
            padding: [0; 2],
            dilation: [1; 2],
            groups: 1,
        };
        let how = match self.random.below(4) {
            // Taps that are far apart.
            0 => Convolution {
                input: [1, 2, 3, 130],
                weights: [5, 2, 1, 3],
                dilation: [1, self.random.near(48)],
                ..plain
            },
            // Sums that are split.
            1 => {
                let channels = self.random.near(128);
                Convolution {
                    input: [1, channels, 3, 4],
                    weights: [5, channels, 3, 3],
                    padding: [1; 2],
                    ..plain
                }
            }
            // Whole tiles for uniform stores.
            2 => Convolution {
                input: [1, 3, 16, 16],
                weights: [self.random.pick(&[32, 64]), 3, 1, 1],
                ..plain
            },
            _ => Convolution {
                input: [self.random.pick(&[0, 1, 3]), 4, 64, 64],
                weights: [self.random.near(64), 4, 1, 1],
                ..plain
            },
        };
        self.convolve(&how)
    }

    /// Lines along an axis: `[outer, extent, inner]`.
    fn lines(&mut self, extents: &[usize], outer: &[usize]) -> Result<(Known, usize)> {
        let extent = self.random.near_one_of(extents);
        // Not much more than half a million elements.
        let room = (1usize << 19).div_ceil(extent).max(1);
        let inner = if self.flip() { 1 } else { self.random.pick(&[2, 3, 4, 5, 8, 65, 128, 1021]).min(room) };
        let outer = self.random.near_one_of(outer).min(room.div_ceil(inner)).max(1);
        let dims = [outer, extent, inner];
        let x = if self.random.once_in(3) { self.operand(&dims)? } else { self.tensor(&dims)? };
        // An elementwise op in front, with one operand, or with several of several kinds.
        let x = match self.random.below(8) {
            0 => self.unary("neg", &x)?,
            1 => {
                let one = self.tensor(&[1])?;
                self.binary("add", &x, &one)?
            }
            2 => {
                let other = self.tensor(&dims)?;
                let x = self.binary("sub", &x, &other)?;
                self.unary("abs", &x)?
            }
            3 => {
                let row = self.tensor(&[inner])?;
                self.binary("max", &x, &row)?
            }
            4 => (0..5).try_fold(x, |x, _| self.unary("neg", &x))?,
            5 => {
                let (a, b, c) = (self.tensor(&dims)?, self.tensor(&dims)?, self.tensor(&dims)?);
                let x = self.binary("add", &x, &a)?;
                let x = self.binary("sub", &x, &b)?;
                self.binary("max", &x, &c)?
            }
            6 => {
                let x = self.tensor_of(&dims, true)?;
                self.unary("to_float", &x)?
            }
            _ => x,
        };
        if self.random.once_in(6) {
            self.keep(&x)?;
        }
        if inner == 1 && self.flip() {
            return Ok((self.reshape(&x, &[outer, extent])?, 1));
        }
        Ok((x, 1))
    }

    fn reduction(&mut self) -> Made {
        const EXTENTS: [usize; 11] = [1, 4, 16, 32, 64, 128, 2048, 4096, 16_384, 33_000, 131_072];
        if self.random.once_in(8) {
            let n = self.random.near_one_of(&EXTENTS);
            let (a, b) = (self.operand(&[n])?, self.operand(&[n])?);
            let a = if self.flip() { self.unary("neg", &a)? } else { a };
            return self.dot(&a, &b);
        }
        let (x, axis) = self.lines(&EXTENTS, &[1, 2, 8, 64, 512, 1024, 4096])?;
        let op = self.random.pick(&["sum", "sum", "amax", "mean", "variance"]);
        self.reduce(op, &x, axis)
    }

    fn any_softmax(&mut self) -> Made {
        const EXTENTS: [usize; 12] = [1, 4, 16, 32, 128, 256, 512, 1024, 1280, 4096, 8192, 65_536];
        let (x, axis) = self.lines(&EXTENTS, &[1, 2, 8, 64, 128, 512])?;
        let logarithm = self.random.once_in(4);
        self.softmax(&x, axis, logarithm)
    }

    /// Rows in registers and others, whole texels and others, with weights for elements and for channels.
    fn any_norm(&mut self) -> Made {
        const EXTENTS: [usize; 10] = [1, 4, 8, 16, 32, 128, 512, 1024, 1280, 8192];
        if self.flip() {
            let channels = self.random.pick(&[2, 4, 6, 8, 16]);
            let groups = self.random.pick(&[1, 2, channels]);
            let pixels = self.random.pick(&[1, 3, 4, 49, 64]);
            let images = self.random.pick(&[1, 3, 70]);
            let x = self.tensor(&[images, channels, pixels])?;
            return self.group_norm(&x, groups);
        }
        let extent = self.random.near_one_of(&EXTENTS);
        let rows = self.random.near_one_of(&[1, 8, 64, 130]);
        let x = self.tensor(&[rows, extent])?;
        let (centred, adds) = (self.flip(), self.flip());
        self.norm_of_rows(&x, centred, adds)
    }

    /// What workgroups walk over, what is large, and where a tail is a dispatch of its own.
    fn elementwise(&mut self) -> Made {
        let elements = self.random.pick(&[0, 1, 4, 1024, 2048, 4096, 65_536, 262_144, 264_192]);
        let elements = if self.flip() { elements } else { self.random.near(elements) };
        let dims = self.random.extents(elements);
        let x = self.operand(&dims)?;
        let x = if self.flip() { self.unary("neg", &x)? } else { x };
        if self.random.once_in(4) { self.unary("sigmoid", &x) } else { Ok(x) }
    }

    /// Boxes of a larger tensor: concatenation and padding.
    fn place(&mut self) -> Made {
        let row = self.random.pick(&[1, 2, 3, 4, 8, 252, 256, 260, 512, 1024]);
        let rows = self.random.pick(&[0, 1, 3, 4, 8, 64, 513, 1025]);
        let outer = self.random.pick(&[1, 1, 2, 3]);
        let x = self.operand(&[outer, rows, row])?;
        if self.flip() {
            let pads: Vec<(usize, usize)> =
                (0..3).map(|_| self.random.pick(&[(0, 0), (0, 0), (8, 0), (1, 2), (0, 8)])).collect();
            return self.pad(&x, &pads);
        }
        let axis = self.random.below(3);
        let mut dims = x.dims.clone();
        dims[axis] = self.random.pick(&[1, 5, 8, 256]);
        let y = self.operand(&dims)?;
        let parts = if self.flip() { [x, y] } else { [y, x] };
        self.concat(&parts, axis)
    }

    fn gathered(&mut self) -> Made {
        let width = self.random.pick(&[1, 2, 3, 4, 8, 257, 512, 1024]);
        let height = self.random.pick(&[0, 1, 5, 100]);
        let rows = self.random.pick(&[0, 1, 7, 64, 260, 1025]);
        let table = self.operand(&[height, width])?;
        self.gather(&table, rows)
    }
}
