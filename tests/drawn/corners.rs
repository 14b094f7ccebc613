//! Problems for branches that chance seldom comes to, each on the device where it does.

use tidemill_cases::reference::convolution::Convolution;

use crate::attention::Told;
use crate::twin::{Known, Made, Twin};

/// A problem: the device, what it is, and how it is drawn.
pub struct Corner {
    pub device: &'static str,
    pub name: &'static str,
    pub draw: for<'a, 'b> fn(&'b mut Twin<'a>) -> Made,
}

const fn corner(
    device: &'static str,
    name: &'static str,
    draw: for<'a, 'b> fn(&'b mut Twin<'a>) -> Made,
) -> Corner {
    Corner { device, name, draw }
}

pub const CORNERS: &[Corner] = &[
    corner("default variants", "single columns with gaps", |t| {
        let x = t.tensor(&[2, 64, 1])?;
        t.pad(&x, &[(0, 0), (1, 1), (0, 3)])
    }),
    corner("default variants", "rows that begin anywhere", |t| t.side_by_side([16, 256, 3])),
    corner("default variants", "few whole workgroups", |t| t.side_by_side([17, 256, 8])),
    corner("narrow, buffers", "an input in windows", |t| t.side_by_side([100, 257, 3])),
    corner("default variants", "whole workgroups side by side", |t| t.side_by_side([16, 256, 256])),
    corner("default variants", "many rows, some apart", |t| t.side_by_side([1025, 256, 8])),
    corner("short texel views", "a place beyond a texel view", |t| t.side_by_side([100, 256, 8])),
    corner("narrow", "rows far apart", |t| t.side_by_side([16, 256, 3840])),
    corner("narrow", "rows beyond a binding", |t| t.side_by_side([2, 20_001, 17_003])),
    corner("default variants", "many gathered rows", |t| t.rows_of([5, 512], 513)),
    corner("default variants", "a workgroup of gathered rows", |t| t.rows_of([5, 512], 4)),
    corner("narrow, buffers", "a table beyond a binding", |t| t.rows_of([100, 257], 7)),
    corner("default variants", "slices along an axis", |t| t.gather_along([3, 5, 8], 33)),
    corner("default variants", "an element for each number", |t| t.gather_each([3, 5, 8], 33)),
    corner("default variants", "the largest of many", |t| t.scatter_largest([3, 5, 8], 33)),
    corner("narrow", "places beyond a binding", |t| t.scatter_largest([1, 20_001, 1], 33)),
    corner("default variants", "the last of many", |t| t.replace([3, 5, 8], 33)),
    corner("default variants", "sums of rows by fours", |t| t.running([5, 8, 1])),
    corner("default variants", "sums of rows of several parts", |t| t.running([1, 1001, 1])),
    corner("default variants", "sums of columns by fours", |t| t.running([3, 9, 4])),
    corner("default variants", "sums of columns of several parts", |t| t.running([3, 1000, 5])),
    corner("default variants", "rows in order, by fours", |t| t.in_order([5, 300])),
    corner("default variants", "rows in order", |t| t.in_order([5, 301])),
    corner("narrow", "counts beyond a binding", |t| t.in_order([2000, 4])),
    corner("default variants", "sums of few rows by segment", |t| t.add_up([3, 5, 8], 33)),
    corner("default variants", "sums of chunks by segment", |t| t.add_up([2, 3, 5], 300)),
    corner("default variants", "few bins", |t| t.count_numbers(1000, 10)),
    corner("default variants", "many bins", |t| t.count_numbers(1000, 3000)),
    corner("default variants", "a sum of what four tensors make", |t| {
        let [a, b, c, d] =
            [t.tensor(&[8, 300])?, t.tensor(&[8, 300])?, t.tensor(&[8, 300])?, t.tensor(&[8, 300])?];
        let (first, second) = (t.binary("sub", &a, &b)?, t.binary("max", &c, &d)?);
        let both = t.binary("add", &first, &second)?;
        t.reduce("sum", &both, 1)
    }),
    corner("narrow, buffers", "sums of rows in windows", |t| t.sums([8, 3000, 1])),
    corner("narrow", "a row of tiles beyond a binding", |t| {
        let (a, b) = (t.tensor(&[40, 4])?, t.tensor(&[4, 20_001])?);
        t.matmul(&a, &b, [false; 2])
    }),
    corner("default variants", "a view of many dimensions", |t| t.reversed(&[2, 3, 2, 3, 2, 3])),
    corner("default variants", "a view of many dimensions that one kernel walks over", |t| {
        let x = t.tensor(&[2, 3, 2, 1, 3, 5])?;
        t.permute(&x, &[0, 1, 3, 2, 5, 4])
    }),
    corner("narrow", "a large view of many dimensions", |t| t.reversed(&[3, 5, 4, 7, 6, 8, 5])),
    corner("default variants", "mostly zeros", |t| {
        t.images([1, 1, 4, 4], [1, 1, 1, 1], |c| (c.stride, c.padding) = ([50, 20], [300; 2]))
    }),
    corner("narrow", "a padded copy beyond a binding", |t| {
        t.images([1, 4, 64, 64], [3, 4, 3, 3], |c| c.padding = [1; 2])
    }),
    corner("for GPUs", "four pixels", |t| t.images([1, 1, 1, 4], [1, 1, 1, 1], |_| ())),
    corner("for GPUs", "pixels as columns", |t| t.images([2, 5, 6, 6], [108, 5, 1, 1], |_| ())),
    corner("for GPUs", "pixels that are no groups of four", |t| {
        t.images([2, 5, 7, 7], [128, 5, 1, 1], |_| ())
    }),
    corner("for GPUs", "tiles that are full and too few", |t| {
        t.images([1, 2, 16, 16], [128, 2, 3, 3], |c| c.padding = [1; 2])
    }),
    corner("convolutions in tiles of 128", "more taps than bits", |t| {
        t.images([1, 2, 9, 12], [40, 2, 6, 6], |c| c.padding = [3; 2])
    }),
    corner("default variants", "four channels", |t| t.images([1, 3, 16, 16], [4, 3, 1, 1], |_| ())),
    corner("default variants", "nine taps", |t| t.images([1, 1, 1, 20], [5, 1, 1, 9], |_| ())),
    corner("without shuffles", "a direct convolution", |t| t.images([1, 2, 8, 8], [5, 2, 3, 3], |_| ())),
    corner("default variants", "seven pixels in a row", |t| t.images([1, 3, 8, 7], [8, 3, 1, 1], |_| ())),
    corner("default variants", "whole tiles of an image", |t| {
        t.images([1, 3, 16, 16], [32, 3, 1, 1], |_| ())
    }),
    corner("default variants", "whole tiles of two", |t| t.images([2, 3, 16, 16], [32, 3, 1, 1], |_| ())),
    corner("narrow", "more tiles than a line of workgroups", |t| {
        t.images([1, 3, 16, 16], [32, 3, 1, 1], |_| ())
    }),
    corner("narrow", "images in windows", |t| t.images([3, 4, 64, 64], [3, 4, 1, 1], |_| ())),
    corner("narrow", "parts of an image beyond a binding", |t| {
        t.images([1, 65_003, 23, 4], [91, 65_003, 1, 1], |_| ())
    }),
    corner("default variants", "a loop beyond what the driver runs", |t| {
        t.images([1, 65_003, 1, 1], [97, 65_003, 1, 1], |_| ())
    }),
    corner("narrow", "more parts of a row than lanes", |t| t.shares([1, 150_000, 1])),
    corner("narrow", "more states than a binding spans", |t| t.shares([3, 20, 1021])),
    corner("narrow", "more columns than a binding spans", |t| t.shares([1, 1, 20_001])),
    corner("narrow", "more rows than a line of workgroups", |t| t.shares([64, 256, 1])),
    corner("default variants", "whole workgroups of rows", |t| t.shares([64, 256, 1])),
    corner("default variants", "many rows", |t| t.shares([130, 300, 1])),
    corner("texels, cramped", "rows that are stored apart", |t| t.shares([64, 256, 1])),
    corner("for GPUs", "a row for a whole workgroup", |t| t.shares([2, 2048, 1])),
    corner("narrow", "sums of more columns than a binding spans", |t| t.sums([1, 2, 20_001])),
    corner("narrow", "short rows beyond a binding", |t| t.sums([5000, 10, 1])),
    corner("narrow, buffers", "one row beyond a binding", |t| t.sums([1, 1, 20_001])),
    corner("narrow, buffers", "states of columns beyond a binding", |t| t.sums([1, 2, 20_001])),
    corner("narrow, buffers", "columns in windows of blocks", |t| t.sums([1, 131, 1021])),
    corner("narrow, buffers", "columns in windows of rows", |t| t.sums([1, 20, 5000])),
    corner("default variants", "columns whose parts are joined one by one", |t| t.sums([1, 131, 1021])),
    corner("default variants", "a prologue of many short rows", |t| {
        let x = t.tensor(&[2000, 10])?;
        let x = t.unary("neg", &x)?;
        t.reduce("sum", &x, 1)
    }),
    corner("default variants", "a prologue of two", |t| {
        let x = t.tensor(&[8, 300])?;
        let x = t.unary("neg", &x)?;
        let sums = t.reduce("sum", &x, 1)?;
        t.keep(&sums)?;
        t.softmax(&x, 1, false)
    }),
    corner("default variants", "a prologue of a dot product", |t| {
        let (a, b) = (t.tensor(&[300])?, t.tensor(&[300])?);
        let a = t.unary("neg", &a)?;
        t.dot(&a, &b)
    }),
    corner("default variants", "a variance of rows", |t| {
        let x = t.tensor(&[8, 300])?;
        t.reduce("variance", &x, 1)
    }),
    corner("default variants", "a prologue that is expensive", |t| {
        let x = t.tensor(&[8, 100])?;
        let x = t.unary("sigmoid", &x)?;
        t.softmax(&x, 1, false)
    }),
    corner("default variants", "a matmul of nothing", |t| t.times_plain([4, 5, 0])),
    corner("default variants", "few columns in place", |t| t.times_plain([20, 3, 8])),
    corner("default variants", "batches of odd rows", |t| t.times_each(3, [20, 21, 8])),
    corner("texels, cramped", "batches that can not have a padded output", |t| t.times_each(2, [40, 33, 8])),
    corner("narrow", "a result that has no room for padding", |t| t.times_plain([256, 257, 4])),
    corner("buffers, cramped", "long steps for one", |t| t.times_plain([40, 33, 44])),
    corner("buffers, cramped", "one panel", |t| t.times_plain([40, 32, 128])),
    corner("buffers, cramped", "long steps for both", |t| t.times_plain([40, 70, 36])),
    corner("texels, cramped", "a sum beyond what the driver runs", |t| t.times_plain([13, 1, 260_001])),
    corner("default variants", "panels", |t| t.times_plain([385, 404, 1312])),
    corner("default variants", "an epilogue in another shape", |t| {
        let matmul = t.times_plain([6, 4, 5])?;
        let seen = t.reshape(&matmul, &[4, 6])?;
        let row = t.tensor(&[6])?;
        t.binary("add", &seen, &row)
    }),
    corner("default variants", "a matmul added to more matrices than it is", |t| {
        let matmul = t.times_plain([6, 4, 5])?;
        let others = t.tensor(&[3, 6, 4])?;
        t.binary("add", &others, &matmul)
    }),
    corner("default variants", "columns of an epilogue that lie apart", |t| {
        let matmul = t.times_plain([40, 36, 5])?;
        let other = t.tensor(&[36, 40])?;
        let other = t.permute(&other, &[1, 0])?;
        t.diamond(matmul, other)
    }),
    corner("default variants", "an epilogue with a part of a tensor", |t| {
        let matmul = t.times_plain([40, 36, 5])?;
        let other = t.tensor(&[41, 36])?;
        let other = t.slice(&other, &[1..41, 0..36])?;
        t.diamond(matmul, other)
    }),
    corner("default variants", "an epilogue with halves", |t| {
        let matmul = t.times_plain([40, 36, 5])?;
        let other = t.tensor_of(&[40, 36], true)?;
        let other = t.unary("to_float", &other)?;
        t.diamond(matmul, other)
    }),
    corner("default variants", "an epilogue that modules of matmuls lack", |t| {
        let matmul = t.times_plain([6, 4, 5])?;
        t.unary("atan", &matmul)
    }),
    corner("default variants", "an epilogue with pieces of rows", |t| {
        let matmul = t.times_plain([6, 20, 5])?;
        let seen = t.reshape(&matmul, &[6, 4, 5])?;
        let piece = t.tensor(&[5])?;
        t.binary("add", &seen, &piece)
    }),
    corner("default variants", "more steps than a program has", |t| {
        let x = t.tensor(&[100])?;
        (0..10).try_fold(x, |x, _| {
            let x = t.unary("neg", &x)?;
            t.unary("clip", &x)
        })
    }),
    corner("default variants", "a large matmul", |t| t.times_plain([513, 512, 8])),
    corner("default variants", "one matmul twice", |t| {
        let (a, b) = (t.tensor(&[20, 8])?, t.tensor(&[8, 12])?);
        let (once, again) = (t.matmul(&a, &b, [false; 2])?, t.matmul(&a, &b, [false; 2])?);
        let once = t.unary("relu", &once)?;
        t.binary("add", &once, &again)
    }),
    corner("default variants", "one matmul twice, with two epilogues", |t| {
        let (a, b) = (t.tensor(&[20, 8])?, t.tensor(&[8, 12])?);
        let (once, again) = (t.matmul(&a, &b, [false; 2])?, t.matmul(&a, &b, [false; 2])?);
        let once = t.unary("relu", &once)?;
        t.keep(&once)?;
        t.unary("neg", &again)
    }),
    corner("default variants", "one sum twice, and the second kept", |t| {
        let x = t.tensor(&[8, 300])?;
        let (once, again) = (t.reduce("sum", &x, 1)?, t.reduce("sum", &x, 1)?);
        t.keep(&again)?;
        t.binary("add", &once, &again)
    }),
    corner("default variants", "one sum twice, and both kept", |t| {
        let x = t.tensor(&[8, 300])?;
        let once = t.reduce("sum", &x, 1)?;
        t.keep(&once)?;
        t.reduce("sum", &x, 1)
    }),
    corner("default variants", "sums of nothing, of two types", |t| {
        let x = t.tensor(&[5, 0])?;
        let whole = t.unary("to_int", &x)?;
        let (sum, whole) = (t.reduce("sum", &x, 1)?, t.reduce("sum", &whole, 1)?);
        let whole = t.unary("to_float", &whole)?;
        t.binary("add", &sum, &whole)
    }),
    corner("narrow, buffers", "rows in windows, with an epilogue that is too large", |t| {
        let matmul = t.times_plain([200, 101, 4])?;
        t.keep(&matmul)?;
        let matmul = t.times_plain([200, 101, 4])?;
        let other = t.tensor(&[200, 101])?;
        t.binary("add", &matmul, &other)
    }),
    corner("narrow, buffers", "a small part of a large tensor", |t| {
        let x = t.tensor(&[1000, 100])?;
        t.slice(&x, &[500..520, 3..50])
    }),
    corner("default variants", "a sum of whole numbers", |t| {
        let x = t.tensor(&[8, 300])?;
        let whole = t.unary("to_int", &x)?;
        let sum = t.reduce("sum", &whole, 1)?;
        t.unary("to_float", &sum)
    }),
    corner("default variants", "a variance of columns", |t| {
        let x = t.tensor(&[300, 8])?;
        t.reduce("variance", &x, 0)
    }),
    corner("for GPUs", "a right-hand side of halves", |t| {
        // The left-hand side's rows are no fours, so that it is packed, and widened by that.
        let (a, b) = (t.tensor_of(&[20, 5], true)?, t.tensor_of(&[5, 32], true)?);
        let matmul = t.matmul(&a, &b, [false; 2])?;
        t.unary("to_float", &matmul)
    }),
    corner("narrow", "no image that fits a binding", |t| t.images([1, 1, 130, 130], [1, 1, 1, 1], |_| ())),
    corner("default variants", "more matmuls twice than are tried one by one", |t| {
        for n in 1..=9 {
            let (a, b) = (t.tensor(&[20, 8])?, t.tensor(&[8, 4 * n])?);
            let (once, again) = (t.matmul(&a, &b, [false; 2])?, t.matmul(&a, &b, [false; 2])?);
            let both = t.binary("add", &once, &again)?;
            t.keep(&both)?;
        }
        t.tensor(&[1])
    }),
    corner("default variants", "a program twice, before sums of columns", |t| {
        let x = t.tensor(&[300, 8])?;
        let (once, again) = (t.unary("neg", &x)?, t.unary("neg", &x)?);
        let (sum, largest) = (t.reduce("sum", &once, 0)?, t.reduce("amax", &again, 0)?);
        t.binary("add", &sum, &largest)
    }),
    corner("default variants", "a matmul, and with its left-hand side transposed", |t| {
        let (a, b) = (t.tensor(&[8, 8])?, t.tensor(&[8, 8])?);
        let (plain, turned) = (t.matmul(&a, &b, [false; 2])?, t.matmul(&a, &b, [true, false])?);
        t.binary("sub", &plain, &turned)
    }),
    corner("default variants", "a convolution twice", |t| {
        let mut how = Convolution {
            input: [1, 3, 6, 6],
            weights: [8, 3, 3, 3],
            stride: [1; 2],
            padding: [1, 0],
            dilation: [1; 2],
            groups: 1,
        };
        let (x, w) = (t.tensor(&how.input)?, t.tensor(&how.weights)?);
        let (once, again) = (t.conv2d(&x, &w, &how)?, t.conv2d(&x, &w, &how)?);
        let both = t.binary("add", &once, &again)?;
        t.keep(&both)?;
        // As large, and another one.
        how.padding = [0, 1];
        t.conv2d(&x, &w, &how)
    }),
    corner("default variants", "one softmax twice", |t| {
        let x = t.tensor(&[8, 300])?;
        let (once, again) = (t.softmax(&x, 1, false)?, t.softmax(&x, 1, false)?);
        t.keep(&once)?;
        t.unary("neg", &again)
    }),
    corner("default variants", "one norm twice, and another", |t| {
        let (x, gamma) = (t.tensor(&[8, 300])?, t.tensor(&[300])?);
        let (once, again) = (t.rms_norm(&x, &gamma, 0.5)?, t.rms_norm(&x, &gamma, 0.5)?);
        let other = t.rms_norm(&x, &gamma, 0.25)?;
        t.keep(&once)?;
        t.keep(&other)?;
        t.unary("neg", &again)
    }),
    corner("narrow", "pooling in windows", |t| {
        let x = t.tensor(&[3, 20_000])?;
        t.pairs(&x)
    }),
    corner("narrow", "resizing in windows", |t| {
        let x = t.tensor(&[4, 8000])?;
        t.doubled(&x)
    }),
    corner("default variants", "attention twice, and to more", |t| t.attend_twice()),
    corner("default variants", "one query and many keys", |t| {
        t.attend([1, 1], [1, 1100], [16, 32], Told::default())
    }),
    corner("default variants", "columns for two vecs of a lane", |t| {
        t.attend([2, 2], [20, 33], [20, 64], Told { mask: Some(true), ..Told::default() })
    }),
    corner("default variants", "columns for four vecs of a lane", |t| {
        t.attend([2, 2], [20, 32], [16, 132], Told { mask: Some(false), ..Told::default() })
    }),
    corner("default variants", "more keys than a loop goes through", |t| {
        t.attend([4, 1], [16, 27_000], [244, 4], Told::default())
    }),
    corner("for GPUs", "few queries and shuffles", |t| t.attend([4, 2], [2, 40], [8, 8], Told::default())),
    corner("default variants", "angles for two", |t| t.rotated()),
    corner("for GPUs", "tiles", |t| t.attend([2, 2], [20, 40], [8, 8], Told::default())),
    corner("for GPUs", "wide tiles", |t| t.attend([2, 2], [20, 40], [8, 100], Told::default())),
    corner("without shuffles", "few queries", |t| t.attend([2, 2], [2, 40], [8, 8], Told::default())),
    corner("narrow", "heads in windows", |t| t.attend([3, 3], [100, 40], [8, 64], Told::default())),
    corner("narrow", "a head beyond a binding", |t| t.attend([2, 2], [300, 8], [8, 64], Told::default())),
    corner("narrow", "a normalised row beyond a binding", |t| {
        let x = t.tensor(&[2, 20_001])?;
        t.norm_of_rows(&x, true, false)
    }),
    corner("default variants", "the same rows twice", |t| {
        let table = t.tensor(&[5, 512])?;
        let numbers = t.gpu.upload(&[4u32, 0, 9], [3])?;
        let rows = [4, 0, 9];
        let (once, again) =
            (t.gather_these(&table, &numbers, &rows)?, t.gather_these(&table, &numbers, &rows)?);
        t.binary("sub", &once, &again)
    }),
    corner("default variants", "one copy twice", |t| {
        let x = t.tensor(&[100])?;
        let (once, again) = (t.unary("copy", &x)?, t.unary("copy", &x)?);
        t.binary("add", &once, &again)
    }),
    corner("default variants", "one tensor alone, put side by side twice", |t| {
        let x = t.tensor(&[100])?;
        let (once, again) = (t.concat(std::slice::from_ref(&x), 0)?, t.concat(&[x], 0)?);
        t.binary("add", &once, &again)
    }),
    corner("default variants", "one resizing twice", |t| {
        let x = t.tensor(&[3, 20])?;
        let (once, again) = (t.doubled(&x)?, t.doubled(&x)?);
        t.binary("add", &once, &again)
    }),
    corner("default variants", "resizing of nothing", |t| {
        let x = t.tensor(&[0, 20])?;
        t.doubled(&x)
    }),
    corner("default variants", "one pooling twice", |t| {
        let x = t.tensor(&[3, 20])?;
        let (once, again) = (t.pairs(&x)?, t.pairs(&x)?);
        t.binary("add", &once, &again)
    }),
    corner("default variants", "pooling of nothing", |t| {
        let x = t.tensor(&[0, 20])?;
        t.pairs(&x)
    }),
    corner("default variants", "one count twice", |t| {
        let (once, again) = (t.count(100)?, t.count(100)?);
        t.binary("add", &once, &again)
    }),
    corner("default variants", "one sum of nothing twice", |t| {
        let x = t.tensor(&[5, 0])?;
        let (once, again) = (t.reduce("sum", &x, 1)?, t.reduce("sum", &x, 1)?);
        t.binary("add", &once, &again)
    }),
    corner("default variants", "one sum twice, each with a program in front", |t| {
        let x = t.tensor(&[8, 300])?;
        let (once, again) = (t.unary("neg", &x)?, t.unary("neg", &x)?);
        let once = t.reduce("sum", &once, 1)?;
        let again = t.reduce("sum", &again, 1)?;
        t.binary("add", &once, &again)
    }),
];

impl Twin<'_> {
    fn side_by_side(&mut self, [rows, first, second]: [usize; 3]) -> Made {
        let parts = [self.tensor(&[rows, first])?, self.tensor(&[rows, second])?];
        self.concat(&parts, 1)
    }

    /// A tensor with its dimensions in reverse order.
    fn reversed(&mut self, dims: &[usize]) -> Made {
        let x = self.tensor(dims)?;
        let order: Vec<usize> = (0..dims.len()).rev().collect();
        self.permute(&x, &order)
    }

    fn rows_of(&mut self, table: [usize; 2], rows: usize) -> Made {
        let table = self.tensor(&table)?;
        self.gather(&table, rows)
    }

    fn images(&mut self, input: [usize; 4], weights: [usize; 4], with: fn(&mut Convolution)) -> Made {
        let mut how =
            Convolution { input, weights, stride: [1; 2], padding: [0; 2], dilation: [1; 2], groups: 1 };
        with(&mut how);
        let (x, w) = (self.tensor(&input)?, self.tensor(&weights)?);
        self.conv2d(&x, &w, &how)
    }

    fn shares(&mut self, extents: [usize; 3]) -> Made {
        let x = self.tensor(&extents)?;
        self.softmax(&x, 1, false)
    }

    fn sums(&mut self, extents: [usize; 3]) -> Made {
        let x = self.tensor(&extents)?;
        self.reduce("sum", &x, 1)
    }

    /// Two elementwise ops that read a value, one of them another one, too; they fuse into one.
    fn diamond(&mut self, x: Known, other: Known) -> Made {
        let left = self.unary("relu", &x)?;
        let right = self.binary("max", &x, &other)?;
        self.binary("sub", &left, &right)
    }

    /// This many matmuls.
    fn times_each(&mut self, batch: usize, [m, n, k]: [usize; 3]) -> Made {
        let (a, b) = (self.tensor(&[batch, m, k])?, self.tensor(&[batch, k, n])?);
        self.matmul(&a, &b, [false; 2])
    }

    fn times_plain(&mut self, [m, n, k]: [usize; 3]) -> Made {
        let (a, b) = (self.tensor(&[m, k])?, self.tensor(&[k, n])?);
        self.matmul(&a, &b, [false; 2])
    }
}
