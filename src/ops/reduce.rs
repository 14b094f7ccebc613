//! Reductions.

use smallvec::SmallVec;

use crate::error::{Error, Result};
use crate::ir::copy::Fill;
use crate::ir::reduce::Reduce;
use crate::ir::reduce::Reduction;
use crate::ir::value::ValueId;
use crate::runtime::operand::IntoOperand;
use crate::runtime::recording::{Operand, Recording, Value};
use crate::shape::axes::{Along, Axes, Geometry};
use crate::shape::{DType, MAX_RANK, Shape, layout};

/// # Reductions
///
/// Each runs over an axis, several or all of them, says [`Axes`]: `r.sum(&x, -1)`, `r.sum(&x, Axes::at(1).keep())`,
/// `r.sum(&x, [0, 2])`, `r.sum(&x, Axes::ALL)`.
///
/// Of f16 and bf16, what is said of f32 holds: they are widened first, and results are f32.
///
/// The order in which elements combine is fixed: the same operand gives the same bits every time, on one device with
/// one driver and one choice of kernel variants.
impl Recording {
    /// The sum; of every element type. Packed elements are summed as f32, i32 or u32, which the result is, too: of u8,
    /// u16 and bool it is u32, of i8 and i16 i32, of f16 and bf16 f32. Integers wrap in 32 bits.
    ///
    /// ```
    /// # fn main() -> tidemill::Result<()> {
    /// use tidemill::Axes;
    /// let gpu = tidemill::Accelerator::global()?;
    /// let x = gpu.upload(&[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0], [2, 3])?;
    /// let (rows, columns, all) = gpu.run(|r| Ok((r.sum(&x, 1)?, r.sum(&x, 0)?, r.sum(&x, Axes::ALL)?)))?;
    /// assert_eq!(rows.read::<f32>()?, [6.0, 15.0]);
    /// assert_eq!(columns.read::<f32>()?, [5.0, 7.0, 9.0]);
    /// assert_eq!(all.read::<f32>()?, [21.0]);
    ///
    /// let refused = gpu.run(|r| r.sum(&x, 3)).unwrap_err();
    /// assert_eq!(refused.to_string(), "sum: axis 3 is out of range for rank 2");
    /// # Ok(()) }
    /// ```
    ///
    /// The sum of nothing is 0. A NaN, or infinities of both signs, give NaN; an infinity gives itself. A partial sum
    /// that overflows makes the result infinite or NaN, even if the whole would not. A sum of zeros is 0, of −0 alone,
    /// too. Denormals may be zeros on a device without
    /// [`preserves_denormals`](crate::device::Features::preserves_denormals).
    ///
    /// # Accuracy
    ///
    /// The error is at most 4 · 2⁻²⁴ · Σ|x|, however many elements there are: blocks of eight are summed as a tree, and
    /// their sums with the rounding errors collected beside (two-sum). Measured on lavapipe: 1.7 · 2⁻²⁴ · Σ|x|, up to
    /// 64 Mi elements. It is made of additions alone, which Vulkan wants correctly rounded; the collected errors are
    /// exact where the device rounds to the nearest.
    ///
    /// # Errors
    ///
    /// [`Error::Axis`] if there is no such axis, [`Error::Type`] for other element types.
    pub fn sum<'a>(&self, operand: impl IntoOperand<'a>, axes: impl Into<Axes>) -> Result<Value> {
        self.reduce("sum", Reduction::Sum, Types::All, operand.into(), axes.into())
    }

    /// The mean, as f32; of every element type. Integers become f32 first. It is the [`sum`](Recording::sum) divided by
    /// the number of elements, with the sum's special values; so a sum that overflows makes it infinite. The mean of
    /// nothing is NaN.
    ///
    /// # Accuracy
    ///
    /// The error is at most 5 · 2⁻²⁴ · Σ|x| / n (measured on lavapipe: 2.2 · 2⁻²⁴): the sum's, and that of one
    /// division, for which Vulkan guarantees 2.5 ULP where lavapipe has ½.
    ///
    /// # Errors
    ///
    /// [`Error::Axis`], [`Error::Type`].
    pub fn mean<'a>(&self, operand: impl IntoOperand<'a>, axes: impl Into<Axes>) -> Result<Value> {
        self.reduce("mean", Reduction::Mean, Types::All, operand.into(), axes.into())
    }

    /// The product; of every element type, as f32, i32 or u32, as [`sum`](Recording::sum). That of nothing is 1.
    /// Integers wrap; theirs is the last of the [running products](Recording::cumprod).
    ///
    /// NaN, or 0 times an infinity, give NaN. Partial products may overflow or underflow where the whole would not. A
    /// zero has the sign that the factors' signs make. Denormal factors and partial products may be zeros on a device
    /// without [`preserves_denormals`](crate::device::Features::preserves_denormals).
    ///
    /// # Accuracy
    ///
    /// A relative error of at most n · 2⁻²⁴ for n elements, as in any order of multiplication; measured on lavapipe:
    /// 0.7 n · 2⁻²⁴. Vulkan wants multiplications correctly rounded.
    ///
    /// # Errors
    ///
    /// [`Error::Axis`], [`Error::Type`].
    pub fn prod<'a>(&self, operand: impl IntoOperand<'a>, axes: impl Into<Axes>) -> Result<Value> {
        self.reduce("prod", Reduction::Prod, Types::All, operand.into(), axes.into())
    }

    /// The largest element; of every element type, which the result is of, too. Exact, on every device: bits are
    /// compared as integers, so denormals count as what they are, infinities are larger and smaller than all numbers,
    /// and +0 is larger than −0. If any element is NaN, the result is.
    ///
    /// ([`max`](Recording::max) is the larger of two operands, element for element.)
    ///
    /// # Errors
    ///
    /// [`Error::EmptyReduction`] if there are zero elements, [`Error::Axis`], [`Error::Type`].
    pub fn amax<'a>(&self, operand: impl IntoOperand<'a>, axes: impl Into<Axes>) -> Result<Value> {
        self.reduce("amax", Reduction::Max, Types::All, operand.into(), axes.into())
    }

    /// The smallest element; of every element type, which the result is of, too. Exact, on every device, as
    /// [`amax`](Recording::amax): −0 is smaller than +0, and if any element is NaN, the result is.
    ///
    /// # Errors
    ///
    /// Those of [`amax`](Recording::amax).
    pub fn amin<'a>(&self, operand: impl IntoOperand<'a>, axes: impl Into<Axes>) -> Result<Value> {
        self.reduce("amin", Reduction::Min, Types::All, operand.into(), axes.into())
    }

    /// The place of the largest element along the axis, as u32; of every element type. Over [`Axes::ALL`] it counts
    /// through the whole tensor, row by row.
    ///
    /// Of equal elements the first counts, and zeros are equal. NaN is larger than everything: the first NaN counts, as
    /// in NumPy. Exact, on every device: denormals and infinities count as what they are.
    ///
    /// ```
    /// # fn main() -> tidemill::Result<()> {
    /// let gpu = tidemill::Accelerator::global()?;
    /// let x = gpu.upload(&[1.0f32, 9.0, 9.0, 3.0, f32::NAN, 7.0], [2, 3])?;
    /// let places = gpu.run(|r| r.argmax(&x, -1))?;
    /// assert_eq!(places.read::<u32>()?, [1, 1]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// Those of [`amax`](Recording::amax).
    pub fn argmax<'a>(&self, operand: impl IntoOperand<'a>, axes: impl Into<Axes>) -> Result<Value> {
        self.reduce("argmax", Reduction::ArgMax, Types::All, operand.into(), axes.into())
    }

    /// The place of the smallest element along the axis, as u32; otherwise as [`argmax`](Recording::argmax). The first
    /// NaN counts before everything else here, too.
    ///
    /// # Errors
    ///
    /// Those of [`amax`](Recording::amax).
    pub fn argmin<'a>(&self, operand: impl IntoOperand<'a>, axes: impl Into<Axes>) -> Result<Value> {
        self.reduce("argmin", Reduction::ArgMin, Types::All, operand.into(), axes.into())
    }

    /// The Euclidean length √Σx²; f32. That of nothing is 0.
    ///
    /// Squares overflow from 1.9 · 10¹⁹ on, and the length is then infinite; below 10⁻¹⁹ they underflow, and count as 0
    /// where all are so small, as denormals do. NaN gives NaN, and an infinity of either sign gives ∞, unless there is
    /// a NaN, too.
    ///
    /// # Accuracy
    ///
    /// A relative error of at most 4 · 2⁻²⁴ on lavapipe (measured: 1.9 · 2⁻²⁴). Elsewhere the device's square root adds
    /// what it is off by more than ½ ULP: see [`sqrt`](Recording::sqrt).
    ///
    /// # Errors
    ///
    /// [`Error::Axis`], [`Error::Type`].
    pub fn norm<'a>(&self, operand: impl IntoOperand<'a>, axes: impl Into<Axes>) -> Result<Value> {
        self.reduce("norm", Reduction::Norm, Types::Floats, operand.into(), axes.into())
    }

    /// The inner product of two vectors of one length; f32. The result is a scalar, of shape `[]`; 0 for no elements.
    ///
    /// ```
    /// # fn main() -> tidemill::Result<()> {
    /// let gpu = tidemill::Accelerator::global()?;
    /// let x = gpu.upload(&[1.0f32, 2.0, 3.0], [3])?;
    /// let dot = gpu.run(|r| r.dot(&x, &x))?;
    /// assert_eq!(dot.read::<f32>()?, [14.0]);
    /// # Ok(()) }
    /// ```
    ///
    /// Special values are those of the products and of their [`sum`](Recording::sum): 0 times an infinity gives NaN,
    /// zeros of any sign give 0, and a product that is denormal may count as 0.
    ///
    /// # Accuracy
    ///
    /// The error is at most 5 · 2⁻²⁴ · Σ|x·y|, however long the vectors are; measured on lavapipe: 0.2 · 2⁻²⁴, up to 32
    /// Mi elements. Vulkan wants products and sums correctly rounded.
    ///
    /// # Errors
    ///
    /// [`Error::Shapes`] if they are not two vectors of one length, [`Error::Type`].
    pub fn dot<'a>(&self, lhs: impl IntoOperand<'a>, rhs: impl IntoOperand<'a>) -> Result<Value> {
        let op = "dot";
        let (lhs, rhs) = (self.resolve(op, lhs)?, self.resolve(op, rhs)?);
        let ((shape, dtype), (other, other_dtype)) = (self.kind(lhs), self.kind(rhs));
        for (operand, got) in [("lhs", dtype), ("rhs", other_dtype)] {
            Types::Floats.check(op, operand, got)?;
        }
        if shape.rank() != 1 || shape != other {
            let why = match (shape.dims(), other.dims()) {
                ([n], [m]) => format!("{n} != {m}"),
                _ => "both must be of rank 1".to_owned(),
            };
            return Err(Error::Shapes { op, lhs: shape, rhs: other, why });
        }
        if self.any_packed(&[lhs, rhs]) {
            return self.all_or_nothing(|r| {
                let [lhs, rhs] = r.all_widened([lhs, rhs])?;
                r.dot(r.handle(lhs), r.handle(rhs))
            });
        }
        let geometry = Geometry::whole(&shape);
        let output = self.produce(op, Shape::from([]), DType::F32)?;
        let reduce = Reduce {
            op,
            reduction: Reduction::Dot,
            input: lhs,
            second: Some(rhs),
            prologue: None,
            geometry,
            output,
        };
        self.record([reduce])?;
        Ok(self.handle(output))
    }

    /// The variance of the elements as a whole population, Σ(x − mean)² / n; f32. That of nothing is NaN, that of one
    /// element 0.
    ///
    /// In two passes: the mean first, then the squared distances from it, less what the rounding of the mean has added.
    /// So a large common offset costs no accuracy. NaN or an infinity gives NaN; equal elements give 0.
    ///
    /// # Accuracy
    ///
    /// A relative error of at most 8 · 2⁻²⁴, as long as no square underflows; measured on lavapipe: 3.2 · 2⁻²⁴. One
    /// division is the device's own, for which Vulkan guarantees 2.5 ULP.
    ///
    /// # Errors
    ///
    /// [`Error::Axis`], [`Error::Type`].
    pub fn variance<'a>(&self, operand: impl IntoOperand<'a>, axes: impl Into<Axes>) -> Result<Value> {
        let (_, variance) = self.mean_and_variance("variance", operand.into(), axes.into())?;
        Ok(variance)
    }

    /// The [`mean`](Recording::mean) and the [`variance`](Recording::variance), for which the mean is needed anyway;
    /// f32.
    ///
    /// ```
    /// # fn main() -> tidemill::Result<()> {
    /// let gpu = tidemill::Accelerator::global()?;
    /// let x = gpu.upload(&[1.0f32, 3.0, 5.0, 9.0], [2, 2])?;
    /// let (mean, variance) = gpu.run(|r| r.moments(&x, 1))?;
    /// assert_eq!((mean.read::<f32>()?, variance.read::<f32>()?), (vec![2.0, 7.0], vec![1.0, 4.0]));
    /// # Ok(()) }
    /// ```
    ///
    /// # Accuracy
    ///
    /// That of the two.
    ///
    /// # Errors
    ///
    /// [`Error::Axis`], [`Error::Type`].
    pub fn moments<'a>(
        &self,
        operand: impl IntoOperand<'a>,
        axes: impl Into<Axes>,
    ) -> Result<(Value, Value)> {
        self.mean_and_variance("moments", operand.into(), axes.into())
    }

    fn mean_and_variance(
        &self,
        op: &'static str,
        operand: Operand<'_>,
        axes: Axes,
    ) -> Result<(Value, Value)> {
        let operand = self.resolve(op, operand)?;
        let (shape, dtype) = self.kind(operand);
        Types::Floats.check(op, "operand", dtype)?;
        if dtype.is_packed() {
            return self.all_or_nothing(|r| {
                let wide = r.widened(operand)?;
                r.mean_and_variance(op, r.handle(wide).into(), axes)
            });
        }
        let Along { order, geometry, shape: result } = axes.apply(op, &shape)?;
        let input = self.side_by_side_axes(op, operand, order)?;
        let output = self.produce(op, result, DType::F32)?;
        let means = self.produce(op, result, DType::F32)?;
        let mean = Reduce {
            op,
            reduction: Reduction::Mean,
            input,
            second: None,
            prologue: None,
            geometry,
            output: means,
        };
        let variance = Reduce { reduction: Reduction::Variance, second: Some(means), output, ..mean.clone() };
        self.record([mean, variance])?;
        Ok((self.handle(means), self.handle(output)))
    }

    /// The operand with its dimensions in this order, in which the axes of a reduction lie side by side.
    fn side_by_side_axes(
        &self,
        op: &'static str,
        operand: ValueId,
        order: Option<SmallVec<[usize; MAX_RANK]>>,
    ) -> Result<ValueId> {
        let Some(order) = order else { return Ok(operand) };
        let (shape, _) = self.kind(operand);
        let copy = self.view(op, operand, layout::permute(op, shape, &order)?)?;
        self.resolve(op, copy)
    }

    fn reduce(
        &self,
        op: &'static str,
        reduction: Reduction,
        types: Types,
        operand: Operand<'_>,
        axes: Axes,
    ) -> Result<Value> {
        let input = self.resolve(op, operand)?;
        let (shape, dtype) = self.kind(input);
        types.check(op, "operand", dtype)?;
        let of = if reduction == Reduction::Mean { DType::F32 } else { dtype.wide() };
        if of != dtype {
            return self.all_or_nothing(|r| {
                let wide = r.cast(r.handle(input), of)?;
                let result = r.reduce(op, reduction, types, wide.into(), axes)?;
                let extreme = matches!(reduction, Reduction::Max | Reduction::Min);
                if extreme { r.cast(result, dtype) } else { Ok(result) }
            });
        }
        let Along { order, geometry, shape: result } = axes.apply(op, &shape)?;
        if geometry.extent == 0 && geometry.results() > 0 && of_nothing(reduction).is_none() {
            return Err(Error::EmptyReduction { op, shape });
        }
        if reduction == Reduction::Prod && dtype != DType::F32 {
            let axes = (order, geometry, result);
            return self.all_or_nothing(|r| r.integer_product(op, input, axes));
        }
        let input = self.side_by_side_axes(op, input, order)?;
        let indices = matches!(reduction, Reduction::ArgMax | Reduction::ArgMin);
        let output = self.produce(op, result, if indices { DType::U32 } else { dtype })?;
        self.record([Reduce { op, reduction, input, second: None, prologue: None, geometry, output }])?;
        Ok(self.handle(output))
    }

    /// The product of integers: the last of the running ones, which wrap.
    fn integer_product(
        &self,
        op: &'static str,
        input: ValueId,
        (order, geometry, result): (Option<SmallVec<[usize; MAX_RANK]>>, Geometry, Shape),
    ) -> Result<Value> {
        if geometry.extent == 0 || geometry.results() == 0 {
            return match self.kind(input).1 {
                DType::I32 => self.fill(result, 1i32),
                _ => self.fill(result, 1u32),
            };
        }
        let input = self.side_by_side_axes(op, input, order)?;
        let [outer, extent, inner] = [geometry.outer, geometry.extent, geometry.inner].map(|n| n as usize);
        let lines = self.reshape(self.handle(input), [outer, extent, inner])?;
        let last = self.slice(self.cumprod(lines, 1)?, (.., extent - 1..))?;
        self.reshape(last, result)
    }

    /// Appends all of them, or none.
    fn record<const N: usize>(&self, reductions: [Reduce; N]) -> Result<()> {
        self.all_or_nothing(|r| reductions.into_iter().try_for_each(|reduce| r.record_one(reduce)))
    }

    /// Appends a reduction; nothing where there is no result.
    fn record_one(&self, reduce: Reduce) -> Result<()> {
        let Reduce { op, reduction, input, geometry, output, .. } = reduce;
        if geometry.results() == 0 {
            return Ok(());
        }
        if geometry.extent == 0 {
            let word = of_nothing(reduction).unwrap_or(f32::NAN).to_bits();
            return self.push(self.label(op, output), Fill { word, output });
        }
        self.push(self.label(op, input), reduce)
    }
}

/// The result of a reduction of zero elements; `None` if there is none. As an integer, +0 is 0.
fn of_nothing(reduction: Reduction) -> Option<f32> {
    match reduction {
        Reduction::Sum | Reduction::Norm | Reduction::Dot => Some(0.0),
        Reduction::Prod => Some(1.0),
        Reduction::Mean | Reduction::Variance => Some(f32::NAN),
        Reduction::Max | Reduction::Min | Reduction::ArgMax | Reduction::ArgMin => None,
    }
}

/// The element types that an operation takes.
#[derive(Clone, Copy)]
enum Types {
    Floats,
    All,
}

impl Types {
    fn check(self, op: &'static str, operand: &str, got: DType) -> Result<()> {
        let takes: &[DType] = match self {
            Types::Floats => DType::FLOATS,
            Types::All => DType::ALL,
        };
        if takes.contains(&got) { Ok(()) } else { Err(Error::of_type(op, operand, takes, got)) }
    }
}
