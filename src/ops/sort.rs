//! Sorting, searching, and packing what is wanted.

use smallvec::SmallVec;

use super::width::check_mask;
use crate::error::{Error, Result};
use crate::ir::index::{Scatter, Update};
use crate::ir::scan::{self, Key};
use crate::runtime::operand::IntoOperand;
use crate::runtime::recording::{Operand, Recording, Value};
use crate::shape::along::{Along, Sort};
use crate::shape::axes::{Axes, Geometry, resolve_axis};
use crate::shape::{DType, Shape};

/// # Sorting
///
/// Sorts are stable: equal elements keep their order. Elements are of any type. Floats have a total order: −0 is before
/// +0, and every NaN counts as larger than all numbers.
impl Recording {
    /// The elements in order, along an axis. A NaN comes last, in descending order first; all NaNs become the same one.
    ///
    /// ```
    /// # fn main() -> tidemill::Result<()> {
    /// let gpu = tidemill::Accelerator::global()?;
    /// let x = gpu.upload(&[3.0f32, -1.0, 2.0, 0.0, 5.0, 4.0], [2, 3])?;
    /// let y = gpu.run(|r| r.sort(&x, -1))?;
    /// assert_eq!(y.read::<f32>()?, [-1.0, 2.0, 3.0, 0.0, 4.0, 5.0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::Axis`], [`Error::Type`]; [`Error::BindingTooLarge`] if a binding of the device can't span the operand.
    pub fn sort<'a>(&self, operand: impl IntoOperand<'a>, how: impl Into<Sort>) -> Result<Value> {
        Ok(self.sorted("sort", operand.into(), how.into(), [true, false])?.0)
    }

    /// The places along the axis that the elements in order come from, as u32.
    ///
    /// ```
    /// # fn main() -> tidemill::Result<()> {
    /// let gpu = tidemill::Accelerator::global()?;
    /// let x = gpu.upload(&[3.0f32, -1.0, 2.0, -1.0], [4])?;
    /// assert_eq!(gpu.run(|r| r.argsort(&x, 0))?.read::<u32>()?, [1, 3, 2, 0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// Those of [`sort`](Recording::sort).
    pub fn argsort<'a>(&self, operand: impl IntoOperand<'a>, how: impl Into<Sort>) -> Result<Value> {
        Ok(self.sorted("argsort", operand.into(), how.into(), [false, true])?.1)
    }

    /// The keys in order along an axis, and the values in the order of their keys. Both have one shape. The values may
    /// be of another type than the keys.
    ///
    /// ```
    /// # fn main() -> tidemill::Result<()> {
    /// let gpu = tidemill::Accelerator::global()?;
    /// let keys = gpu.upload(&[3u32, 1, 2], [3])?;
    /// let values = gpu.upload(&[0.3f32, 0.1, 0.2], [3])?;
    /// let (keys, values) = gpu.run(|r| r.sort_by_key(&keys, &values, 0))?;
    /// assert_eq!(keys.read::<u32>()?, [1, 2, 3]);
    /// assert_eq!(values.read::<f32>()?, [0.1, 0.2, 0.3]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::Shapes`] if the shapes differ; otherwise those of [`sort`](Recording::sort).
    pub fn sort_by_key<'a>(
        &self,
        keys: impl IntoOperand<'a>,
        values: impl IntoOperand<'a>,
        how: impl Into<Sort>,
    ) -> Result<(Value, Value)> {
        let (op, how) = ("sort_by_key", how.into());
        let (axis, _) = how.parts();
        let (keys, values) = (self.resolve(op, keys)?, self.resolve(op, values)?);
        let (shape, other) = (self.kind(keys).0, self.kind(values).0);
        if shape != other {
            let why = "there must be a value for each key".to_owned();
            return Err(Error::Shapes { op, lhs: shape, rhs: other, why });
        }
        self.all_or_nothing(|r| {
            let (sorted, places) = r.sorted(op, r.handle(keys).into(), how, [true, true])?;
            Ok((sorted, r.gather_elements(r.handle(values), places, axis)?))
        })
    }

    /// The k largest elements along an axis, the largest first, and their places as u32. Of equal elements the first
    /// counts first. A NaN counts as the largest.
    ///
    /// ```
    /// # fn main() -> tidemill::Result<()> {
    /// let gpu = tidemill::Accelerator::global()?;
    /// let x = gpu.upload(&[3.0f32, -1.0, 9.0, 2.0], [4])?;
    /// let (largest, places) = gpu.run(|r| r.topk(&x, 2, 0))?;
    /// assert_eq!((largest.read::<f32>()?, places.read::<u32>()?), (vec![9.0, 3.0], vec![2, 0]));
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::Parameter`] if the axis has fewer than k elements; otherwise those of [`sort`](Recording::sort).
    pub fn topk<'a>(&self, operand: impl IntoOperand<'a>, k: usize, axis: isize) -> Result<(Value, Value)> {
        let op = "topk";
        let id = self.resolve(op, operand)?;
        let shape = self.kind(id).0;
        let at = resolve_axis(op, axis, shape.rank())?;
        let extent = shape.dims()[at];
        if k > extent {
            let rule = format!("be at most {extent}, the extent of axis {at} of {shape}");
            return Err(Error::Parameter { op, name: "k", value: k as f64, rule });
        }
        let first: SmallVec<[_; 4]> =
            shape.dims().iter().enumerate().map(|(d, &n)| 0..if d == at { k } else { n }).collect();
        self.all_or_nothing(|r| {
            let how = Sort::along(axis).descending();
            let (sorted, places) = r.sorted(op, r.handle(id).into(), how, [true, true])?;
            Ok((r.slice(sorted, &first[..])?, r.slice(places, &first[..])?))
        })
    }

    /// For each value, how many elements of a sorted list come before it, as u32: where it belongs in the list. With
    /// `behind`, equal elements of the list count, too: the place behind them. The list is of rank 1, ascending as
    /// [`sort`](Recording::sort) makes it, and of the values' type.
    ///
    /// ```
    /// # fn main() -> tidemill::Result<()> {
    /// let gpu = tidemill::Accelerator::global()?;
    /// let sorted = gpu.upload(&[10u32, 20, 20, 30], [4])?;
    /// let values = gpu.upload(&[5u32, 20, 99], [3])?;
    /// let (first, last) =
    ///     gpu.run(|r| Ok((r.searchsorted(&sorted, &values, false)?, r.searchsorted(&sorted, &values, true)?)))?;
    /// assert_eq!((first.read::<u32>()?, last.read::<u32>()?), (vec![0, 1, 4], vec![0, 3, 4]));
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::Shapes`] if the list has another rank, [`Error::Type`], [`Error::BindingTooLarge`].
    pub fn searchsorted<'a>(
        &self,
        sorted: impl IntoOperand<'a>,
        values: impl IntoOperand<'a>,
        behind: bool,
    ) -> Result<Value> {
        let op = "searchsorted";
        let (sorted, wanted) = (self.resolve(op, sorted)?, self.resolve(op, values)?);
        let ((list, dtype), (shape, got)) = (self.kind(sorted), self.kind(wanted));
        if got != dtype {
            return Err(Error::of_type(op, "values", &[dtype], got));
        }
        if list.rank() != 1 {
            let why = format!("the sorted list must have rank 1, not {}", list.rank());
            return Err(Error::Shapes { op, lhs: list, rhs: shape, why });
        }
        if list.elements() == 0 || shape.elements() == 0 {
            return self.fill(shape, 0u32);
        }
        if dtype.is_packed() {
            return self.all_or_nothing(|r| {
                let [sorted, wanted] = r.all_widened([sorted, wanted])?;
                r.searchsorted(r.handle(sorted), r.handle(wanted), behind)
            });
        }
        let output = self.produce(op, shape, DType::U32)?;
        let search = scan::Search { key: Key::of(dtype), behind, sorted, wanted, output };
        self.push(self.label(op, output), search)?;
        Ok(self.handle(output))
    }

    /// The slices along the first axis whose mask is not zero, one behind the other in their order, and how many there
    /// are as a u32 scalar. The result has the operand's shape; what is behind the last slice is zeros. The mask is
    /// u32, with an element for each slice.
    ///
    /// ```
    /// # fn main() -> tidemill::Result<()> {
    /// let gpu = tidemill::Accelerator::global()?;
    /// let x = gpu.upload(&[1.0f32, 2.0, 3.0, 4.0], [4])?;
    /// let (kept, count) = gpu.run(|r| r.compact(&x, r.gt_scalar(&x, 2.5f32)?))?;
    /// assert_eq!((kept.read::<f32>()?, count.read::<u32>()?), (vec![3.0, 4.0, 0.0, 0.0], vec![2]));
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::Shapes`] unless the mask has an element for each slice, [`Error::Axis`] if the operand is a scalar,
    /// [`Error::Type`], [`Error::BindingTooLarge`].
    pub fn compact<'a>(
        &self,
        operand: impl IntoOperand<'a>,
        mask: impl IntoOperand<'a>,
    ) -> Result<(Value, Value)> {
        let op = "compact";
        let (updates, mask) = (self.resolve(op, operand)?, self.resolve(op, mask)?);
        let ((shape, dtype), (by, got)) = (self.kind(updates), self.kind(mask));
        check_mask(op, "mask", got)?;
        resolve_axis(op, 0, shape.rank())?;
        if by.dims() != &shape.dims()[..1] {
            let why = format!("the mask must be [{}]", shape.dims()[0]);
            return Err(Error::Shapes { op, lhs: shape, rhs: by, why });
        }
        self.all_or_nothing(|r| {
            let [updates, mask] = r.all_widened([updates, mask])?;
            let wanted = r.ne_scalar(r.handle(mask), 0u32)?;
            let count = r.sum(wanted, Axes::ALL)?;
            let before = r.cumsum(wanted, Along::axis(0).exclusive())?;
            let nowhere = r.fill([], u32::MAX)?;
            let indices = r.resolve(op, r.select(wanted, before, nowhere)?)?;
            let packed = r.stored(op, r.handle(updates), r.handle(indices), shape)?;
            Ok((r.cast(packed, dtype)?, count))
        })
    }

    /// The places of the elements that are not zero, in order, as u32, and how many there are as a u32 scalar. Places
    /// count through the whole tensor, row by row, as those of [`argmax`](Recording::argmax). The result has rank 1 and
    /// room for all elements; what is behind the last place is zeros. A NaN is not zero, and −0 is.
    ///
    /// ```
    /// # fn main() -> tidemill::Result<()> {
    /// let gpu = tidemill::Accelerator::global()?;
    /// let x = gpu.upload(&[0i32, 7, 0, -2], [2, 2])?;
    /// let (places, count) = gpu.run(|r| r.nonzero(&x))?;
    /// assert_eq!((places.read::<u32>()?, count.read::<u32>()?), (vec![1, 3, 0, 0], vec![2]));
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::Type`], [`Error::BindingTooLarge`].
    pub fn nonzero<'a>(&self, operand: impl IntoOperand<'a>) -> Result<(Value, Value)> {
        let op = "nonzero";
        let id = self.resolve(op, operand)?;
        let shape = self.kind(id).0;
        self.all_or_nothing(|r| {
            let wide = r.widened(id)?;
            let line = r.reshape(r.handle(wide), [shape.elements()])?;
            let mask = match r.kind(wide).1 {
                DType::F32 => r.ne_scalar(line, 0.0f32)?,
                DType::I32 => r.ne_scalar(line, 0i32)?,
                _ => r.ne_scalar(line, 0u32)?,
            };
            r.compact(r.iota::<u32>([shape.elements()])?, mask)
        })
    }

    /// The different elements of the operand, in ascending order; of any type and shape. −0 and +0 are one, and each
    /// NaN is one of its own. All results have room for as many elements as the operand has, and [`Unique::count`] says
    /// how many of them there are.
    ///
    /// ```
    /// # fn main() -> tidemill::Result<()> {
    /// let gpu = tidemill::Accelerator::global()?;
    /// let x = gpu.upload(&[5u32, 2, 5, 5], [4])?;
    /// let (values, (counts, inverse, count)) = gpu.run(|r| {
    ///     let unique = r.unique(&x)?;
    ///     Ok((unique.values, (unique.counts, unique.inverse, unique.count)))
    /// })?;
    /// assert_eq!((values.read::<u32>()?, counts.read::<u32>()?), (vec![2, 5, 0, 0], vec![1, 3, 0, 0]));
    /// assert_eq!((inverse.read::<u32>()?, count.read::<u32>()?), (vec![1, 0, 1, 1], vec![2]));
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::Type`], [`Error::BindingTooLarge`].
    pub fn unique<'a>(&self, operand: impl IntoOperand<'a>) -> Result<Unique> {
        let op = "unique";
        let id = self.resolve(op, operand)?;
        let (shape, dtype) = self.kind(id);
        let n = shape.elements();
        if dtype.is_packed() {
            return self.all_or_nothing(|r| {
                let unique = r.unique(r.handle(r.widened(id)?))?;
                Ok(Unique { values: r.cast(unique.values, dtype)?, ..unique })
            });
        }
        self.all_or_nothing(|r| {
            let line = r.reshape(r.handle(id), [n])?;
            let (sorted, places) = r.sorted(op, line.into(), Sort::along(0), [true, true])?;
            // An element is a new one unless it is as the one before it.
            let (others, before) = (r.slice(sorted, 1.min(n)..n)?, r.slice(sorted, 0..n.saturating_sub(1))?);
            let changes = r.ne(others, before)?;
            let first = r.fill([1.min(n)], 1u32)?;
            let is_new = r.concat([first, changes], 0)?;
            let (values, count) = r.compact(sorted, is_new)?;
            let number = r.sub_scalar(r.cumsum(is_new, 0)?, 1u32)?;
            let inverse = r.stored(op, number, places, Shape::from([n]))?;
            let inverse = r.reshape(inverse, shape)?;
            Ok(Unique { values, counts: r.bincount(number, n)?, inverse, count })
        })
    }

    /// Updates at the places that the indices name, of which no two are the same, in a tensor of zeros.
    fn stored(&self, op: &'static str, updates: Value, indices: Value, shape: Shape) -> Result<Value> {
        let (updates, indices) = (self.resolve(op, updates)?, self.resolve(op, indices)?);
        let zeros = match self.kind(updates).1 {
            DType::F32 => self.fill(shape, 0.0f32)?,
            DType::I32 => self.fill(shape, 0i32)?,
            _ => self.fill(shape, 0u32)?,
        };
        if shape.elements() > 0 {
            let (output, geometry) = (self.resolve(op, zeros)?, Geometry::along(&shape, 0));
            let update = Update::Store;
            self.push(
                self.label(op, updates),
                Scatter { update, indices, updates, geometry, output, over: None },
            )?;
        }
        Ok(zeros)
    }

    /// The elements in order and the places that they come from, of which those that are not wanted are anything.
    pub(super) fn sorted(
        &self,
        op: &'static str,
        operand: Operand<'_>,
        how: Sort,
        [elements, places]: [bool; 2],
    ) -> Result<(Value, Value)> {
        let id = self.resolve(op, operand)?;
        let (shape, dtype) = self.kind(id);
        if dtype.is_packed() {
            return self.all_or_nothing(|r| {
                let wide = r.widened(id)?;
                let (sorted, from) = r.sorted(op, r.handle(wide).into(), how, [elements, places])?;
                Ok((if elements { r.cast(sorted, dtype)? } else { sorted }, from))
            });
        }
        let (axis, descending) = how.parts();
        let (axis, last) = (resolve_axis(op, axis, shape.rank())?, shape.rank() - 1);
        if shape.elements() == 0 {
            return Ok((self.handle(id), self.fill(shape, 0u32)?));
        }
        let mut order: SmallVec<[usize; 4]> = (0..shape.rank()).collect();
        order.swap(axis, last);
        self.all_or_nothing(|r| {
            let turn = |value| if axis == last { Ok(value) } else { r.permute(value, &order) };
            let input = r.resolve(op, turn(r.handle(id))?)?;
            let shape = r.kind(input).0;
            let extent = shape.dims()[last] as u64;
            let sorted = if elements { Some(r.produce(op, shape, dtype)?) } else { None };
            let from = if places { Some(r.produce(op, shape, DType::U32)?) } else { None };
            let key = Key::of(dtype);
            let sort = scan::Sort { key, descending, input, extent, sorted, places: from };
            r.push(r.label(op, input), sort)?;
            let made = |id: Option<_>| id.map_or(Ok(r.handle(input)), |id| turn(r.handle(id)));
            Ok((made(sorted)?, made(from)?))
        })
    }
}

/// What [`unique`](Recording::unique) makes.
#[derive(Clone, Copy, Debug)]
pub struct Unique {
    /// The different elements in ascending order, and zeros behind them.
    pub values: Value,
    /// How often each of them occurs, as u32, and zeros behind them.
    pub counts: Value,
    /// For each element of the operand, its place among the different ones, as u32; of the operand's shape.
    pub inverse: Value,
    /// How many different ones there are, as a u32 scalar.
    pub count: Value,
}
