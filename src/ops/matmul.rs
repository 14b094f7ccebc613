//! Matmuls.

use smallvec::SmallVec;

use super::elementwise::{broadcast, broadcast_strides};
use super::epilogue::{Epilogue, Target};
use super::width::check_float;
use crate::error::{Error, Result};
use crate::ir::matmul::{self, MatrixOperand};
use crate::ir::value::{Label, LabelName, ValueId};
use crate::runtime::operand::IntoOperand;
use crate::runtime::recording::{Operand, Recording, Value};
use crate::shape::broadcast::stride_along;
use crate::shape::{DType, MAX_RANK, Shape};

/// How a matmul is taken: operands transposed, scaled, added to something, and what is done before the result
/// is stored.
///
/// ```
/// # fn main() -> tidemill::Result<()> {
/// use tidemill::{Epilogue, Matmul};
/// let gpu = tidemill::Accelerator::global()?;
/// let x = gpu.upload(&[1.0f32, 2.0], [1, 2])?;
/// let weights = gpu.upload(&[1.0f32, 1.0, 3.0, 4.0, 0.0, 1.0], [3, 2])?; // a row per output
/// let before = gpu.upload(&[10.0f32, 20.0, 30.0], [1, 3])?;
/// let how = Matmul::new().transpose_rhs().alpha(2.0).accumulate(0.5, &before);
/// let y = gpu.run(|r| r.matmul_with(&x, &weights, how.epilogue(Epilogue::new().add_scalar(1.0))))?;
/// assert_eq!(y.read::<f32>()?, [12.0, 33.0, 20.0]);
/// # Ok(()) }
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct Matmul<'a> {
    transpose_lhs: bool,
    transpose_rhs: bool,
    alpha: f32,
    accumulate: Option<(f32, Operand<'a>)>,
    epilogue: Epilogue<'a>,
}

impl Default for Matmul<'_> {
    fn default() -> Self {
        Matmul::new()
    }
}

impl<'a> Matmul<'a> {
    /// The plain matmul.
    pub fn new() -> Matmul<'a> {
        Matmul {
            transpose_lhs: false,
            transpose_rhs: false,
            alpha: 1.0,
            accumulate: None,
            epilogue: Epilogue::new(),
        }
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

    /// The matmul is multiplied with this first.
    pub fn alpha(mut self, alpha: f32) -> Matmul<'a> {
        self.alpha = alpha;
        self
    }

    /// Then `beta` times an operand, broadcast to the result's shape, is added. The operand itself stays as it is.
    pub fn accumulate(mut self, beta: f32, operand: impl IntoOperand<'a>) -> Matmul<'a> {
        self.accumulate = Some((beta, operand.into()));
        self
    }

    /// And at last this is done.
    pub fn epilogue(mut self, epilogue: Epilogue<'a>) -> Matmul<'a> {
        self.epilogue = epilogue;
        self
    }
}

impl<'a> From<Epilogue<'a>> for Matmul<'a> {
    fn from(epilogue: Epilogue<'a>) -> Matmul<'a> {
        Matmul::new().epilogue(epilogue)
    }
}

/// # Matmuls
impl Recording {
    /// The matmul over the last two dimensions; f32 and f16, the result f16 if both operands are. Dimensions before
    /// those are batches, broadcast as elementwise operations do it. An operand of rank 1 is a row on the left and a
    /// column on the right, and the result has no such dimension then.
    ///
    /// Sums are taken in f32, in an order that depends on the shapes, the device and what
    /// [tuning](crate::Accelerator::tune) has found, and on nothing else: the same operands give the same bits.
    ///
    /// ```
    /// # fn main() -> tidemill::Result<()> {
    /// let gpu = tidemill::Accelerator::global()?;
    /// let a = gpu.upload(&[1.0f32, 2.0, 3.0, 4.0], [2, 2])?;
    /// let b = gpu.upload(&[0.0f32, 1.0, 1.0, 0.0], [2, 2])?;
    /// assert_eq!(gpu.run(|r| r.matmul(&a, &b))?.read::<f32>()?, [2.0, 1.0, 4.0, 3.0]);
    /// let c = gpu.upload(&[1.0f32; 3], [3])?;
    /// let refused = gpu.run(|r| r.matmul(&a, &c)).unwrap_err();
    /// assert_eq!(refused.to_string(), "matmul: lhs [2, 2] x rhs [3]: inner 2 != 3");
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::InnerDimension`] and [`Error::Shapes`] if the shapes do not fit, [`Error::Type`] if an operand is not a
    /// float, [`Error::TooLarge`] if no buffer can hold the result, [`Error::BindingTooLarge`] if an operand is larger
    /// than a binding.
    pub fn matmul<'a>(&self, lhs: impl IntoOperand<'a>, rhs: impl IntoOperand<'a>) -> Result<Value> {
        self.matmul_with(lhs, rhs, Matmul::new())
    }

    /// [`matmul`](Recording::matmul) with an [`Epilogue`], or with all the choices that [`Matmul`] has.
    ///
    /// # Errors
    ///
    /// As [`matmul`](Recording::matmul), and those of the epilogue: [`Error::Epilogue`] if it is too long,
    /// [`Error::Shapes`] if an operand does not stretch to the result, [`Error::Parameter`].
    pub fn matmul_with<'a, 'b>(
        &self,
        lhs: impl IntoOperand<'a>,
        rhs: impl IntoOperand<'a>,
        with: impl Into<Matmul<'b>>,
    ) -> Result<Value> {
        let (op, with) = ("matmul", with.into());
        let (a, b) = (self.resolve(op, lhs)?, self.resolve(op, rhs)?);
        let ((lhs, lhs_dtype), (rhs, rhs_dtype)) = (self.kind(a), self.kind(b));
        check_float(op, "lhs", lhs_dtype)?;
        check_float(op, "rhs", rhs_dtype)?;
        // Sums are in f32, and are rounded once, in the end.
        let result = if lhs_dtype == rhs_dtype { lhs_dtype } else { DType::F32 };
        let left = Matrix::new(lhs, with.transpose_lhs, true).ok_or(Error::NotMatrix { op, shape: lhs })?;
        let right = Matrix::new(rhs, with.transpose_rhs, false).ok_or(Error::NotMatrix { op, shape: rhs })?;
        if left.columns != right.rows {
            return Err(Error::InnerDimension { op, lhs, rhs, inner: [left.columns, right.rows] });
        }
        let (m, n, k) = (left.rows, right.columns, left.columns);
        let batch = broadcast(op, left.batch, right.batch).map_err(|e| match e {
            Error::Shapes { why, .. } => Error::Shapes { op, lhs, rhs, why },
            other => other,
        })?;
        let strides = [&left, &right].map(|matrix| broadcast_strides(&matrix.batch, &batch));
        let Some(split) = split_of(&batch, &strides) else {
            // An operand that is stretched in several places can't be walked over in two batch dimensions.
            return self.all_or_nothing(|r| {
                let whole = |id: ValueId, matrix: &Matrix, shape: Shape| {
                    if matrix.batch.elements() == 1 {
                        return Ok(r.handle(id));
                    }
                    let matrix = &shape.dims()[shape.rank() - 2..];
                    let dims: SmallVec<[usize; MAX_RANK]> =
                        batch.dims().iter().chain(matrix).copied().collect();
                    r.broadcast_to(
                        r.handle(id),
                        Shape::new(&dims).ok_or(Error::Rank { op, rank: dims.len() })?,
                    )
                };
                r.matmul_with(whole(a, &left, lhs)?, whole(b, &right, rhs)?, with)
            });
        };
        let extents: SmallVec<[usize; 6]> = batch.dims().iter().copied().chain([m, n]).collect();
        let full = Shape::new(&extents).ok_or(Error::Rank { op, rank: extents.len() })?;
        // A vector's dimension is there while the matmul is taken, and gone after.
        let mut visible: SmallVec<[usize; 6]> = SmallVec::from_slice(batch.dims());
        visible.extend((lhs.rank() > 1).then_some(m));
        visible.extend((rhs.rank() > 1).then_some(n));
        let shape = Shape::new(&visible).ok_or(Error::Rank { op, rank: visible.len() })?;
        let epilogue = match with.accumulate {
            Some((beta, operand)) => with.epilogue.accumulating(beta, operand),
            None => with.epilogue,
        };
        let epilogue = epilogue.resolve(self, Target::Matrices { shape: full, split })?;
        let output = self.produce(op, shape, DType::F32)?;
        let finished = |r: &Recording| r.cast(r.handle(output), result);
        if m == 0 || n == 0 || batch.elements() == 0 {
            return finished(self);
        }

        let (outer, inner) = batch.dims().split_at(split);
        let [lhs_strides, rhs_strides] =
            [(&left, strides[0]), (&right, strides[1])].map(|(matrix, strides)| {
                let size = (matrix.rows * matrix.columns) as u32;
                [(outer, &strides[..split]), (inner, &strides[split..])]
                    .map(|(extents, strides)| stride_along(extents, strides).unwrap_or(0) * size)
            });
        let recorded = matmul::Matmul {
            m: m as u32,
            n: n as u32,
            k: k as u32,
            batch: [outer, inner].map(|extents| extents.iter().product::<usize>() as u32),
            lhs: MatrixOperand { value: a, k_contiguous: !with.transpose_lhs, batch: lhs_strides },
            rhs: MatrixOperand { value: b, k_contiguous: with.transpose_rhs, batch: rhs_strides },
            alpha: with.alpha,
            epilogue,
            output,
        };
        let mut sizes: SmallVec<[usize; MAX_RANK]> = SmallVec::from_slice(&[m, n, k]);
        if batch.elements() > 1 {
            sizes.insert(0, batch.elements());
        }
        let label =
            Label { op: LabelName::Op(op), shape: Shape::new(&sizes).unwrap_or(shape), dtype: DType::F32 };
        self.push(label, recorded)?;
        finished(self)
    }
}

/// Where the batch dimensions of a matmul are split in two, so that every operand walks through each part in one go: in
/// front of the last one, if that will do.
fn split_of(batch: &Shape, operands: &[[u32; MAX_RANK]]) -> Option<usize> {
    (0..batch.rank().max(1)).rev().find(|&split| {
        let (outer, inner) = batch.dims().split_at(split);
        operands.iter().all(|strides| {
            stride_along(outer, &strides[..split]).is_some()
                && stride_along(inner, &strides[split..]).is_some()
        })
    })
}

/// An operand seen as matrices.
struct Matrix {
    rows: usize,
    columns: usize,
    batch: Shape,
}

impl Matrix {
    /// `None` for a scalar. A vector is a row on the left and a column on the right, and can't be transposed.
    fn new(shape: Shape, transposed: bool, left: bool) -> Option<Matrix> {
        let dims = shape.dims();
        let (rows, columns) = match *dims {
            [] => return None,
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
        Some(Matrix { rows, columns, batch: Shape::new(&dims[..dims.len().saturating_sub(2)])? })
    }
}
