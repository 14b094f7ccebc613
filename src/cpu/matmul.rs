//! Matrix products.

use smallvec::SmallVec;

use super::elementwise::broadcast_map;
use super::gemm::{self, gemm};
use super::parallel::{self, LIGHT};
use super::simd;
use super::view::{View, check_length};
use crate::error::{Error, Result};
use crate::shape::Shape;
use crate::shape::broadcast::broadcast;

/// How a matrix product is taken: operands transposed, scaled, added to something.
#[derive(Clone, Copy, Debug)]
#[must_use]
pub struct Matmul<'a> {
    pub(crate) transpose_lhs: bool,
    pub(crate) transpose_rhs: bool,
    pub(crate) alpha: f32,
    pub(crate) accumulate: Option<(f32, View<'a, f32>)>,
}

impl Default for Matmul<'_> {
    fn default() -> Self {
        Matmul::new()
    }
}

impl<'a> Matmul<'a> {
    /// The plain product.
    pub fn new() -> Matmul<'a> {
        Matmul { transpose_lhs: false, transpose_rhs: false, alpha: 1.0, accumulate: None }
    }

    /// The left operand is stored with its last two dimensions exchanged.
    pub fn transpose_lhs(mut self) -> Matmul<'a> {
        self.transpose_lhs = true;
        self
    }

    /// The right operand is stored with its last two dimensions exchanged.
    pub fn transpose_rhs(mut self) -> Matmul<'a> {
        self.transpose_rhs = true;
        self
    }

    /// The product is multiplied with this first.
    pub fn alpha(mut self, alpha: f32) -> Matmul<'a> {
        self.alpha = alpha;
        self
    }

    /// Then `beta` times an operand, broadcast to the result's shape, is added.
    pub fn accumulate(mut self, beta: f32, operand: impl Into<View<'a, f32>>) -> Matmul<'a> {
        self.accumulate = Some((beta, operand.into()));
        self
    }
}

/// [`Recording::matmul`](crate::Recording::matmul): the product over the last two dimensions, batches broadcast.
///
/// ```
/// # fn main() -> tidemill::Result<()> {
/// use tidemill::cpu;
/// let mut c = [0.0; 4];
/// cpu::matmul((&[1.0, 2.0, 3.0, 4.0], [2, 2]), (&[0.0, 1.0, 1.0, 0.0], [2, 2]), &mut c)?;
/// assert_eq!(c, [2.0, 1.0, 4.0, 3.0]);
/// # Ok(()) }
/// ```
///
/// # Errors
///
/// [`Error::InnerDimension`] and [`Error::Shapes`] if the shapes do not fit, [`Error::Length`] if data and shape, or
/// shape and output, do not.
pub fn matmul<'a>(
    lhs: impl Into<View<'a, f32>>,
    rhs: impl Into<View<'a, f32>>,
    out: &mut [f32],
) -> Result<Shape> {
    matmul_with(lhs, rhs, Matmul::new(), out)
}

/// [`matmul`] with all the choices that [`Matmul`] has.
///
/// # Errors
///
/// Those of [`matmul`], and [`Error::Shapes`] if what is accumulated does not stretch to the result.
pub fn matmul_with<'a>(
    lhs: impl Into<View<'a, f32>>,
    rhs: impl Into<View<'a, f32>>,
    with: Matmul<'_>,
    out: &mut [f32],
) -> Result<Shape> {
    let op = "matmul";
    let (a, b) = (lhs.into().checked(op)?, rhs.into().checked(op)?);
    let (lhs, rhs) = (a.shape(), b.shape());
    let extents = Extents::new(op, lhs, rhs, &with)?;
    check_length(op, extents.visible, out.len())?;
    let [m, n, k] = extents.mnk;
    if out.is_empty() {
        return Ok(extents.visible);
    }
    let (columns_a, columns_b) =
        (if with.transpose_lhs { m } else { k }, if with.transpose_rhs { k } else { n });
    let batches = extents.batch.elements();
    // Many small products go side by side, each on one thread.
    let alone = batches < parallel::threads();
    let work = if alone { usize::MAX } else { m * n * k.max(1) };
    let one = |number: usize, out: &mut [f32]| {
        let [at_a, at_b] = extents.starts(number);
        let a = gemm::Matrix::new(&a.data()[at_a..], columns_a, with.transpose_lhs);
        let b = gemm::Matrix::new(&b.data()[at_b..], columns_b, with.transpose_rhs);
        multiply([m, n, k], a, b, with.alpha, out, alone);
    };
    if alone {
        out.chunks_mut(m * n).enumerate().for_each(|(number, out)| one(number, out));
    } else {
        parallel::rows(out, m * n, work, LIGHT, |first, out| {
            out.chunks_mut(m * n).enumerate().for_each(|(i, out)| one(first + i, out));
        });
    }
    if let Some((beta, operand)) = with.accumulate {
        accumulate(op, beta, operand, extents.full, out)?;
    }
    Ok(extents.visible)
}

/// The shape of a product, and the number of its multiplications.
pub(crate) fn plan(lhs: Shape, rhs: Shape, with: &Matmul<'_>) -> Result<(Shape, f64)> {
    let extents = Extents::new("matmul", lhs, rhs, with)?;
    Ok((extents.visible, extents.full.elements() as f64 * extents.mnk[2] as f64))
}

/// `out += beta * operand`, broadcast.
fn accumulate(
    op: &'static str,
    beta: f32,
    operand: View<'_, f32>,
    shape: Shape,
    out: &mut [f32],
) -> Result<()> {
    if broadcast(op, operand.shape(), shape)? != shape {
        let why = "the product does not stretch to its operands".to_owned();
        return Err(Error::Shapes { op, lhs: operand.shape(), rhs: shape, why });
    }
    let before = out.to_vec();
    let operands = [View::new(&before, shape), operand];
    broadcast_map(op, operands, out, LIGHT, |[x, y], out, stores| {
        simd::map2(x, y, out, stores, |x, y| x + beta * y);
    })?;
    Ok(())
}

/// One product; vectors have loops of their own, since nothing in them is used twice.
fn multiply(
    [m, n, k]: [usize; 3],
    a: gemm::Matrix<'_>,
    b: gemm::Matrix<'_>,
    alpha: f32,
    out: &mut [f32],
    threads: bool,
) {
    let dots = |rows: gemm::Matrix<'_>, vector: &[f32], out: &mut [f32]| {
        parallel::rows(out, 1, k, LIGHT, |first, out| {
            for (i, out) in out.iter_mut().enumerate() {
                *out = alpha * simd::dot(&rows.data[(first + i) * rows.row..][..k], vector) as f32;
            }
        });
    };
    if k == 0 {
        out.fill(0.0);
    } else if n == 1 && a.column == 1 && (b.row == 1 || k == 1) {
        dots(a, &b.data[..k], out);
    } else if m == 1 && b.row == 1 && (a.column == 1 || k == 1) {
        dots(gemm::Matrix { data: b.data, row: b.column, column: 1 }, &a.data[..k], out);
    } else {
        gemm([m, n, k], a, b, alpha, out, threads);
    }
}

/// The extents of a product.
struct Extents {
    mnk: [usize; 3],
    batch: Shape,
    /// Batches of the operands, and elements of one of their matrices.
    own: [(Shape, usize); 2],
    /// With the dimensions that vectors stand for, and without.
    full: Shape,
    visible: Shape,
}

impl Extents {
    fn new(op: &'static str, lhs: Shape, rhs: Shape, with: &Matmul<'_>) -> Result<Extents> {
        let matrix = |shape: Shape, transposed: bool, left: bool| {
            let dims = shape.dims();
            let (rows, columns) = match *dims {
                [] => return Err(Error::NotMatrix { op, shape }),
                [n] => {
                    if left {
                        (1, n)
                    } else {
                        (n, 1)
                    }
                }
                [.., rows, columns] => {
                    if transposed {
                        (columns, rows)
                    } else {
                        (rows, columns)
                    }
                }
            };
            Ok((rows, columns, Shape::new(&dims[..dims.len().saturating_sub(2)]).unwrap_or_default()))
        };
        let (m, k, batch_a) = matrix(lhs, with.transpose_lhs, true)?;
        let (inner, n, batch_b) = matrix(rhs, with.transpose_rhs, false)?;
        if k != inner {
            return Err(Error::InnerDimension { op, lhs, rhs, inner: [k, inner] });
        }
        let batch = broadcast(op, batch_a, batch_b).map_err(|e| match e {
            Error::Shapes { why, .. } => Error::Shapes { op, lhs, rhs, why },
            other => other,
        })?;
        let with_batch = |last: &[usize]| {
            let extents: SmallVec<[usize; 6]> = batch.dims().iter().chain(last).copied().collect();
            Shape::new(&extents).ok_or(Error::Rank { op, rank: extents.len() })
        };
        let mut seen: SmallVec<[usize; 2]> = SmallVec::new();
        seen.extend((lhs.rank() > 1).then_some(m));
        seen.extend((rhs.rank() > 1).then_some(n));
        Ok(Extents {
            mnk: [m, n, k],
            batch,
            own: [(batch_a, m * k), (batch_b, k * n)],
            full: with_batch(&[m, n])?,
            visible: with_batch(&seen)?,
        })
    }

    /// Where the operands' matrices of this number begin.
    fn starts(&self, number: usize) -> [usize; 2] {
        std::array::from_fn(|side| {
            let (own, size) = self.own[side];
            let (mut rest, mut at, mut stride) = (number, 0, size);
            for (d, &extent) in self.batch.dims().iter().enumerate().rev() {
                let coordinate = rest % extent;
                rest /= extent;
                if let Some(d) = (d + own.rank()).checked_sub(self.batch.rank()) {
                    at += if own.dims()[d] == 1 { 0 } else { coordinate * stride };
                    stride *= own.dims()[d];
                }
            }
            at
        })
    }
}
