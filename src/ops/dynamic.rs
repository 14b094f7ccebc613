//! Operations whose place or length is an argument, or another number that the device has: a part that begins there,
//! and what lies behind it.

use smallvec::{SmallVec, smallvec};

use super::elementwise::{broadcast_strides, scalar_bits};
use crate::error::{ArgumentError, Error, Result};
use crate::ir::copy::{Gather, Indexed, Sequence};
use crate::ir::elementwise::{
    Elementwise, ElementwiseInput, ElementwiseOutput, OpCode, Operand as ElementwiseOperand, Step,
};
use crate::ir::index::{Scatter, Update};
use crate::ir::value::ValueId;
use crate::runtime::operand::IntoOperand;
use crate::runtime::recording::{Operand, Recording, Value};
use crate::runtime::state::update_label;
use crate::runtime::tensor::Tensor;
use crate::shape::axes::{Geometry, resolve_axis};
use crate::shape::ranges::Ranges;
use crate::shape::{DType, Element, MAX_RANK, Shape};

/// A part of an axis.
#[derive(Clone, Copy)]
struct Part {
    axis: usize,
    extent: usize,
    length: usize,
}

/// # Places and lengths that change
///
/// They are [arguments](Recording::argument) of a plan, or any other u32 or i32 value of one element.
impl Recording {
    /// So many elements of the operand along an axis, from `start` on; all of the other axes. `start` is an
    /// [argument](Recording::argument), a number, or another value of one element, u32 or i32. Bits pass as in
    /// [`permute`](Recording::permute).
    ///
    /// The range of an argument is checked here, so that no part reaches out of the axis. Any other value is what the
    /// device finds: elements outside of the axis are zeros.
    ///
    /// ```
    /// # fn main() -> tidemill::Result<()> {
    /// let gpu = tidemill::Accelerator::global()?;
    /// let x = gpu.upload(&[1u32, 2, 3, 4, 5, 6], [2, 3])?;
    /// let r = gpu.begin_recording()?;
    /// let column = r.argument("column", 0..=1u32)?;
    /// let y = r.slice_at(&x, 1, column, 2)?;
    /// let y = r.keep(y)?;
    /// let mut plan = r.into_plan()?;
    /// plan.set(column, 1)?;
    /// let _ = plan.submit()?;
    /// assert_eq!(y.read::<u32>()?, [2, 3, 5, 6]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// [`ArgumentError::Start`] if an argument's range reaches out of the axis; [`Error::SliceRange`] if a number does,
    /// or the length alone; [`Error::Axis`]; [`Error::Type`]; [`Error::Shapes`] unless `start` is one element;
    /// [`Error::BindingTooLarge`] if a binding of the device can't span the operand.
    pub fn slice_at<'a, 'b>(
        &self,
        operand: impl IntoOperand<'a>,
        axis: isize,
        start: impl IntoOperand<'b>,
        length: usize,
    ) -> Result<Value> {
        let (op, start) = ("slice_at", start.into());
        let table = self.resolve(op, operand)?;
        let (shape, dtype) = self.kind(table);
        let part = part_of(op, shape, axis, length)?;
        if dtype.is_packed() {
            return self.all_or_nothing(|r| {
                let wide = r.widened(table)?;
                r.cast(r.slice_at(r.handle(wide), axis, start, length)?, dtype)
            });
        }
        if let Operand::Scalar(scalar) = start {
            let from = number(op, scalar.dtype, scalar.bits)?;
            return self.slice(self.handle(table), part.ranges(op, shape, from)?);
        }
        let rows = self.start(op, start, part)?;
        let output =
            self.produce(op, with_extents(shape, |d, all| if d == part.axis { length } else { all }), dtype)?;
        let geometry = Geometry::along(&shape, part.axis);
        self.push(self.label(op, output), Gather { table, geometry, rows, indexed: Indexed::First, output })?;
        Ok(self.handle(output))
    }

    /// As [`update`](Recording::update), of so many elements along an axis as the value has, from `start` on; all of
    /// the other axes. `start` is as in [`slice_at`](Recording::slice_at). With it, one plan writes row after row, as a
    /// cache of keys and values is filled.
    ///
    /// The range of an argument is checked here. Any other value is what the device finds: elements outside of the axis
    /// are dropped. [`Recording::argument`] has an example.
    ///
    /// # Errors
    ///
    /// [`ArgumentError::Start`] if an argument's range reaches out of the axis; [`Error::SliceRange`] if a number does,
    /// or the value's length alone; [`Error::Shapes`] if the value has another shape than the tensor in another axis,
    /// or `start` more than one element; [`Error::Axis`]; [`Error::BindingTooLarge`] if a binding of the device can't
    /// span the tensor; otherwise those of [`update`](Recording::update).
    pub fn update_at<'a, 'b>(
        &self,
        tensor: &Tensor,
        axis: isize,
        start: impl IntoOperand<'a>,
        value: impl IntoOperand<'b>,
    ) -> Result<()> {
        let (op, start, shape) = ("update_at", start.into(), tensor.shape());
        let id = self.resolve(op, value)?;
        let (of, dtype) = self.kind(id);
        if dtype != tensor.dtype() {
            return Err(Error::of_type(op, "value", &[tensor.dtype()], dtype));
        }
        if dtype.is_packed() {
            return Err(Error::of_type(op, "value", DType::WORDS, dtype));
        }
        let at = resolve_axis(op, axis, shape.rank())?;
        let agrees = |(d, (a, b)): (usize, (&usize, &usize))| d == at || a == b;
        if of.rank() != shape.rank() || !of.dims().iter().zip(shape.dims()).enumerate().all(agrees) {
            let why = format!("the value must have the shape of the tensor in all dimensions but {at}");
            return Err(Error::Shapes { op, lhs: shape, rhs: of, why });
        }
        let part = part_of(op, shape, axis, of.dims()[at])?;
        if let Operand::Scalar(scalar) = start {
            let from = number(op, scalar.dtype, scalar.bits)?;
            return self.update(tensor, part.ranges(op, shape, from)?, self.handle(id));
        }
        let start = self.start(op, start, part)?;
        let state = self.updated_tensor(op, tensor, false)?;
        if of.elements() == 0 {
            return Ok(());
        }
        let (indices, updates) = (self.apart_from(tensor, start)?, self.apart_from(tensor, id)?);
        let (over, output) = (self.current(state), self.next_version(state, shape));
        let (update, geometry) = (Update::Run, Geometry::along(&shape, part.axis));
        let label = update_label(self, op, of, output);
        self.push(label, Scatter { update, indices, updates, geometry, output, over: Some(over) })?;
        self.set_current(output);
        Ok(())
    }

    /// The operand with `outside` in the place of all elements whose index along an axis is `length` or more. `length`
    /// is an [argument](Recording::argument), a number, or another value of one element, u32 or i32. So an operation
    /// along the axis works on the first `length` elements alone, with the `outside` that leaves no trace in it:
    ///
    /// | operation | `outside` |
    /// |---|---|
    /// | [`sum`](Recording::sum), [`norm`](Recording::norm), [`dot`](Recording::dot) and other products | 0 |
    /// | [`prod`](Recording::prod) | 1 |
    /// | [`amax`](Recording::amax), [`argmax`](Recording::argmax) | −∞, or the least integer |
    /// | [`amin`](Recording::amin), [`argmin`](Recording::argmin) | ∞, or the largest integer |
    /// | [`softmax`](Recording::softmax), which gives 0 there, and [`log_softmax`](Recording::log_softmax) | −∞ |
    ///
    /// A mean is the sum divided by the length. Before a reduction or a softmax of rows it is a part of their kernel,
    /// as other elementwise operations are: nothing is stored. Bits pass unchanged, as in
    /// [`select`](Recording::select).
    ///
    /// ```
    /// # fn main() -> tidemill::Result<()> {
    /// let gpu = tidemill::Accelerator::global()?;
    /// let x = gpu.upload(&[1.0f32, 1.0, 5.0, 2.0, 2.0, 6.0], [2, 3])?;
    /// let r = gpu.begin_recording()?;
    /// let length = r.argument("length", 1..=3u32)?;
    /// let seen = r.mask_from(&x, -1, length, f32::NEG_INFINITY)?;
    /// let shares = r.softmax(seen, -1)?;
    /// let shares = r.keep(shares)?;
    /// assert_eq!(r.explain()?.run.len(), 1);
    /// let mut plan = r.into_plan()?;
    /// plan.set(length, 2)?;
    /// let _ = plan.submit()?;
    /// assert_eq!(shares.read::<f32>()?, [0.5, 0.5, 0.0, 0.5, 0.5, 0.0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::Axis`]; [`Error::Type`] unless `outside` has the operand's type, or the one that it is computed with
    /// and the length is u32 or i32; [`Error::Shapes`] unless the length is one element.
    pub fn mask_from<'a, 'b, T: Element>(
        &self,
        operand: impl IntoOperand<'a>,
        axis: isize,
        length: impl IntoOperand<'b>,
        outside: T,
    ) -> Result<Value> {
        let op = "mask_from";
        let (id, length) = (self.resolve(op, operand)?, self.one_integer(op, "length", length.into())?);
        let ((shape, dtype), (_, counts)) = (self.kind(id), self.kind(length));
        let axis = resolve_axis(op, axis, shape.rank())?;
        if ![dtype, dtype.wide()].contains(&T::DTYPE) {
            return Err(Error::of_type(op, "number outside", &[dtype], T::DTYPE));
        }
        let line = with_extents(shape, |d, all| if d == axis { all } else { 1 });
        self.all_or_nothing(|r| {
            let places = r.generate("iota", line, counts, Sequence::IotaU32, 0)?;
            let places = r.resolve(op, places)?;
            let output = r.produce(op, shape, dtype)?;
            let input = |value: ValueId, from: &Shape| ElementwiseInput {
                value,
                strides: broadcast_strides(from, &shape),
                offset: 0,
            };
            let less = if counts == DType::I32 { OpCode::LtI32 } else { OpCode::LtU32 };
            let (first, second, third) =
                (ElementwiseOperand::Input(0), ElementwiseOperand::Input(1), ElementwiseOperand::Input(2));
            let elementwise = Elementwise {
                steps: smallvec![
                    Step { op: less, operands: [second, third, second] },
                    Step {
                        op: OpCode::Select,
                        operands: [ElementwiseOperand::Step(0), first, ElementwiseOperand::Scalar(0)]
                    },
                ],
                inputs: smallvec![
                    input(id, &shape),
                    input(places, &line),
                    ElementwiseInput { value: length, strides: [0; MAX_RANK], offset: 0 },
                ],
                scalars: smallvec![scalar_bits(outside).0],
                outputs: smallvec![ElementwiseOutput { step: 1, value: output }],
            };
            r.push(r.label(op, output), elementwise)?;
            Ok(r.handle(output))
        })
    }

    /// A value of one element that says where a part begins; an argument must keep it inside.
    fn start(&self, op: &'static str, start: Operand<'_>, part: Part) -> Result<ValueId> {
        let id = self.one_integer(op, "start", start)?;
        if let Some(declared) = self.declared(id) {
            let Part { axis, extent, length } = part;
            if declared.least < 0.0 || declared.most + length as f64 > extent as f64 {
                let (name, least, most) = (declared.name, declared.least, declared.most);
                return Err(ArgumentError::Start { op, name, least, most, axis, extent, length }.into());
            }
        }
        Ok(id)
    }

    fn one_integer(&self, op: &'static str, name: &str, operand: Operand<'_>) -> Result<ValueId> {
        let id = self.resolve(op, operand)?;
        let (shape, dtype) = self.kind(id);
        check_integers(op, name, dtype)?;
        if shape.elements() != 1 {
            let why = format!("the {name} must be one element, not {}", shape.elements());
            return Err(Error::Shapes { op, lhs: Shape::default(), rhs: shape, why });
        }
        Ok(id)
    }
}

/// Refuses what is no integer of 32 bits.
fn check_integers(op: &'static str, operand: &str, got: DType) -> Result<()> {
    let takes = [DType::U32, DType::I32];
    if takes.contains(&got) { Ok(()) } else { Err(Error::of_type(op, operand, &takes, got)) }
}

/// A shape of as many dimensions.
fn with_extents(shape: Shape, extent: impl Fn(usize, usize) -> usize) -> Shape {
    let extents: SmallVec<[usize; MAX_RANK]> =
        shape.dims().iter().enumerate().map(|(d, &all)| extent(d, all)).collect();
    Shape::new(&extents).unwrap_or(shape)
}

/// So much of an axis, if it has as much.
fn part_of(op: &'static str, shape: Shape, axis: isize, length: usize) -> Result<Part> {
    let axis = resolve_axis(op, axis, shape.rank())?;
    let extent = shape.dims()[axis];
    if length > extent {
        return Err(Error::SliceRange { op, dimension: axis, range: 0..length, shape });
    }
    Ok(Part { axis, extent, length })
}

impl Part {
    /// The box that begins there, with all of the other axes.
    fn ranges(self, op: &'static str, shape: Shape, from: usize) -> Result<Ranges> {
        let Part { axis, extent, length } = self;
        let range = from..from.saturating_add(length);
        if range.end > extent {
            return Err(Error::SliceRange { op, dimension: axis, range, shape });
        }
        let all = shape.dims().iter().enumerate();
        let ranges: Vec<_> = all.map(|(d, &all)| if d == axis { range.clone() } else { 0..all }).collect();
        Ok(Ranges::from(&ranges[..]))
    }
}

/// A number that says where a part begins.
fn number(op: &'static str, dtype: DType, bits: u32) -> Result<usize> {
    check_integers(op, "start", dtype)?;
    let signed = i64::from(bits.cast_signed());
    let from = if dtype == DType::I32 { signed } else { i64::from(bits) };
    usize::try_from(from).map_err(|_| Error::Parameter {
        op,
        name: "start",
        value: from as f64,
        rule: "be 0 or more".to_owned(),
    })
}
