//! Windows that slide over images: their options, and the shapes that pooling makes.

use smallvec::SmallVec;

use super::{MAX_RANK, Shape, product};
use crate::error::{Error, Result};

/// The windows of images of three dimensions, innermost first; those that are not there have one element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Windows {
    /// Images side by side in front of these dimensions.
    pub(crate) images: usize,
    /// Extents of an input image.
    pub(crate) image: [usize; 3],
    /// And of an output image.
    pub(crate) extents: [usize; 3],
    /// Steps of a window; of the largest one where they differ.
    pub(crate) window: [usize; 3],
    pub(crate) strides: [usize; 3],
    pub(crate) dilation: [usize; 3],
    /// Padding in front.
    pub(crate) before: [usize; 3],
    /// The input and the padding behind it.
    pub(crate) after: [usize; 3],
    /// Windows are those that cut the image into as many parts as there are outputs.
    pub(crate) adaptive: bool,
}

impl Windows {
    /// Where the window of an output begins in a dimension, and how many of its steps lie in the input or its padding.
    pub(crate) fn reach(&self, d: usize, at: usize) -> (isize, usize) {
        if self.adaptive {
            let begin = at * self.image[d] / self.extents[d];
            let end = ((at + 1) * self.image[d]).div_ceil(self.extents[d]);
            return (begin as isize, end - begin);
        }
        let begin = (at * self.strides[d]) as isize - self.before[d] as isize;
        let left = (self.after[d] as isize - begin).max(0) as usize;
        (begin, left.div_ceil(self.dilation[d]).min(self.window[d]))
    }
}

/// The windows of a pooling: extents, stride, padding, dilation, and how the last ones are counted. They have one
/// dimension to three, which are the last ones of the operand; what lies before are images of their own.
///
/// ```
/// # fn main() -> tidemill::Result<()> {
/// use tidemill::Pool;
/// let gpu = tidemill::Accelerator::global()?;
/// let x = gpu.upload(&[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0], [1, 2, 4])?;
/// let y = gpu.run(|r| r.max_pool(&x, Pool::new(&[2, 2]).stride(&[2, 2])))?;
/// assert_eq!((y.shape(), y.read::<f32>()?), ([1, 1, 2].into(), vec![6.0, 8.0]));
/// # Ok(()) }
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct Pool {
    window: SmallVec<[usize; 3]>,
    stride: Option<SmallVec<[usize; 3]>>,
    padding: SmallVec<[(usize, usize); 3]>,
    dilation: SmallVec<[usize; 3]>,
    ceil: bool,
    count_padding: bool,
}

impl Pool {
    /// Windows of these extents, outermost first, one beside the other.
    pub fn new(window: &[usize]) -> Pool {
        Pool {
            window: window.into(),
            stride: None,
            padding: SmallVec::new(),
            dilation: SmallVec::new(),
            ceil: false,
            count_padding: false,
        }
    }

    /// Steps from one window to the next, in each dimension; the window's extents if it is not said.
    pub fn stride(mut self, stride: &[usize]) -> Pool {
        self.stride = Some(stride.into());
        self
    }

    /// Padding before and after the image, in each dimension; less than a window reaches. Its elements are never the
    /// largest, and zeros in sums.
    pub fn padding(mut self, padding: &[(usize, usize)]) -> Pool {
        self.padding = padding.into();
        self
    }

    /// Steps between the elements of a window, in each dimension; 1 if they are neighbours.
    pub fn dilation(mut self, dilation: &[usize]) -> Pool {
        self.dilation = dilation.into();
        self
    }

    /// A last window that reaches beyond the padding counts, if it begins before the padding behind the image.
    pub fn ceil(mut self) -> Pool {
        self.ceil = true;
        self
    }

    /// Means divide by the elements of the padding, too.
    pub fn count_padding(mut self) -> Pool {
        self.count_padding = true;
        self
    }

    pub(crate) fn counts_padding(&self) -> bool {
        self.count_padding
    }

    /// The windows over an operand, and the shape of the result.
    pub(crate) fn plan(&self, op: &'static str, shape: Shape) -> Result<(Windows, Shape)> {
        let rank = checked_rank(op, "window", self.window.len(), shape)?;
        let stride = self.stride.as_ref().unwrap_or(&self.window);
        for (name, given) in
            [("stride", stride.len()), ("padding", self.padding.len()), ("dilation", self.dilation.len())]
        {
            let may_lack = name != "stride";
            if given != rank && !(may_lack && given == 0) {
                return Err(refused(op, name, given, format!("have {rank} numbers, as the window")));
            }
        }
        let mut windows = Windows::of_ones(shape, rank);
        let mut dims: SmallVec<[usize; MAX_RANK]> = shape.dims().into();
        for (i, d) in (0..rank).rev().enumerate() {
            let (window, stride) = (self.window[i], stride[i]);
            let (before, after) = self.padding.get(i).copied().unwrap_or_default();
            let dilation = self.dilation.get(i).copied().unwrap_or(1);
            for (name, given) in [("window", window), ("stride", stride), ("dilation", dilation)] {
                if !(1..=MOST).contains(&given) {
                    return Err(refused(op, name, given, format!("be from 1 to {MOST} in each dimension")));
                }
            }
            let reach = dilation.saturating_mul(window - 1).saturating_add(1);
            if before.max(after) >= reach {
                let rule = format!("be less than {reach}, which is what a window reaches in that dimension");
                return Err(refused(op, "padding", before.max(after), rule));
            }
            let padded = windows.image[d].saturating_add(before).saturating_add(after);
            if padded < reach || windows.image[d] == 0 {
                return Err(refused(
                    op,
                    "window",
                    reach,
                    format!("not reach beyond the padded extent, {padded}"),
                ));
            }
            let mut count = (padded - reach) / stride + 1;
            if self.ceil && (padded - reach) % stride != 0 && count * stride < windows.image[d] + before {
                count += 1;
            }
            (windows.window[d], windows.strides[d], windows.dilation[d]) = (window, stride, dilation);
            (windows.before[d], windows.after[d]) = (before, windows.image[d] + after);
            windows.extents[d] = count;
            let last = dims.len() - 1;
            dims[last - d] = count;
        }
        Ok((windows, Shape::new(&dims).unwrap_or_default()))
    }
}

/// Numbers are multiplied with each other in 32 bits.
const MOST: usize = u16::MAX as usize;

/// Windows that cut the last dimensions of an operand into this many parts, as equal as can be.
pub(crate) fn adaptive(op: &'static str, shape: Shape, parts: &[usize]) -> Result<(Windows, Shape)> {
    let rank = checked_rank(op, "parts", parts.len(), shape)?;
    let mut windows = Windows::of_ones(shape, rank);
    let mut dims: SmallVec<[usize; MAX_RANK]> = shape.dims().into();
    for (d, &count) in parts.iter().rev().enumerate() {
        let image = windows.image[d];
        if !(1..=MOST).contains(&count) || !(1..=MOST).contains(&image) {
            let (name, given) =
                if (1..=MOST).contains(&count) { ("extent", image) } else { ("parts", count) };
            return Err(refused(op, name, given, format!("be from 1 to {MOST} in each dimension")));
        }
        windows.extents[d] = count;
        let last = dims.len() - 1;
        dims[last - d] = count;
    }
    windows.adaptive = true;
    for d in 0..rank {
        let longest = (0..windows.extents[d]).map(|at| windows.reach(d, at).1).max();
        windows.window[d] = longest.unwrap_or(1);
    }
    Ok((windows, Shape::new(&dims).unwrap_or_default()))
}

fn checked_rank(op: &'static str, name: &'static str, rank: usize, shape: Shape) -> Result<usize> {
    let most = shape.rank().min(3);
    let rule = format!("have 1 to {most} numbers: at most three, and no more than {shape} has dimensions");
    if (1..=most).contains(&rank) { Ok(rank) } else { Err(refused(op, name, rank, rule)) }
}

fn refused(op: &'static str, name: &'static str, value: usize, rule: String) -> Error {
    Error::Parameter { op, name, value: value as f64, rule }
}

impl Windows {
    /// Windows of one element over the last dimensions.
    fn of_ones(shape: Shape, rank: usize) -> Windows {
        let (outer, inner) = shape.dims().split_at(shape.rank() - rank);
        let mut image = [1; 3];
        image.iter_mut().zip(inner.iter().rev()).for_each(|(to, extent)| *to = *extent);
        Windows {
            images: product(outer),
            image,
            extents: image,
            window: [1; 3],
            strides: [1; 3],
            dilation: [1; 3],
            before: [0; 3],
            after: image,
            adaptive: false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_are_counted() {
        let shape = |pool: &Pool, dims: &[usize]| {
            pool.plan("max_pool", Shape::new(dims).unwrap()).map(|(_, shape)| shape.dims().to_vec()).unwrap()
        };
        let three = Pool::new(&[3, 3]).stride(&[2, 2]).padding(&[(1, 1), (1, 1)]);
        assert_eq!(shape(&three, &[1, 64, 112, 112]), [1, 64, 56, 56]);
        assert_eq!(shape(&Pool::new(&[2]), &[5, 7]), [5, 3]);
        assert_eq!(shape(&Pool::new(&[2]).ceil(), &[5, 7]), [5, 4]);
        // A window that would begin behind the image is none.
        assert_eq!(shape(&Pool::new(&[2]).stride(&[3]).padding(&[(0, 1)]).ceil(), &[5, 6]), [5, 2]);
        assert_eq!(shape(&Pool::new(&[2, 2, 2]).dilation(&[1, 2, 3]), &[2, 4, 4, 4]), [2, 2, 1, 1]);
    }

    #[test]
    fn what_no_window_can_be_is_refused() {
        let refused = |pool: Pool, dims: &[usize]| {
            pool.plan("max_pool", Shape::new(dims).unwrap()).unwrap_err().to_string()
        };
        assert!(refused(Pool::new(&[]), &[4]).contains("window is 0"));
        assert!(refused(Pool::new(&[2, 2]), &[4]).contains("window is 2"));
        assert!(refused(Pool::new(&[2]).stride(&[0]), &[4]).contains("stride is 0"));
        assert!(refused(Pool::new(&[2]).padding(&[(2, 0)]), &[4]).contains("padding is 2"));
        assert!(refused(Pool::new(&[5]), &[4]).contains("not reach beyond the padded extent, 4"));
    }
}
