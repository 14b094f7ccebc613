//! Moving elements, and elements from nothing.

use smallvec::SmallVec;

use super::call::Operands;
use super::chain::{Chain, Link, OpResult};
use super::work::Op;
use super::{Hybrid, Input, Ran};
use crate::cpu::{self, Number, View};
use crate::error::Result;
use crate::runtime::recording::{Recording, Value};
use crate::shape::ranges::Ranges;
use crate::shape::{DType, Shape, layout};

/// # Moving elements
///
/// Of f32, i32, u32.
///
/// ```
/// # fn main() -> tidemill::Result<()> {
/// use tidemill::hybrid::{Hybrid, Policy};
/// let hybrid = Hybrid::new(Policy::Auto)?;
/// let (x, mut turned, mut both) = ([1u32, 2, 3, 4, 5, 6], [0; 6], [0; 12]);
/// let ran = hybrid.transpose((&x, [2, 3]), &mut turned)?;
/// assert_eq!((turned, ran.shape), ([1, 4, 2, 5, 3, 6], [3, 2].into()));
/// hybrid.concat(&[(&x).into(), (&turned).into()], 0, &mut both)?;
/// assert_eq!(both, [1, 2, 3, 4, 5, 6, 1, 4, 2, 5, 3, 6]);
/// # Ok(()) }
/// ```
#[allow(missing_docs, reason = "the operations of the same names")]
#[allow(clippy::missing_errors_doc, reason = "those of the operations of the same names")]
impl Hybrid {
    pub fn permute<'a, T: Number>(
        &self,
        x: impl Into<Input<'a, T>>,
        order: &[usize],
        out: &mut [T],
    ) -> Result<Ran> {
        let x = [x.into()];
        self.run(
            Op::Permute,
            0.0,
            x,
            out,
            |[x], out| cpu::permute(x, order, out),
            |r, [x]| r.permute(x, order),
        )
    }

    pub fn transpose<'a, T: Number>(&self, x: impl Into<Input<'a, T>>, out: &mut [T]) -> Result<Ran> {
        let x = [x.into()];
        self.run(Op::Transpose, 0.0, x, out, |[x], out| cpu::transpose(x, out), |r, [x]| r.transpose(x))
    }

    pub fn slice<'a, T: Number>(
        &self,
        x: impl Into<Input<'a, T>>,
        ranges: impl Into<Ranges>,
        out: &mut [T],
    ) -> Result<Ran> {
        let (x, ranges) = ([x.into()], ranges.into());
        let again = ranges.clone();
        self.run(Op::Slice, 0.0, x, out, |[x], out| cpu::slice(x, ranges, out), |r, [x]| r.slice(x, again))
    }

    pub fn broadcast_to<'a, T: Number>(
        &self,
        x: impl Into<Input<'a, T>>,
        shape: impl Into<Shape>,
        out: &mut [T],
    ) -> Result<Ran> {
        let shape = shape.into();
        self.run(
            Op::BroadcastTo,
            0.0,
            [x.into()],
            out,
            |[x], out| cpu::broadcast_to(x, shape, out),
            |r, [x]| r.broadcast_to(x, shape),
        )
    }

    pub fn concat<T: Number>(&self, operands: &[Input<'_, T>], axis: isize, out: &mut [T]) -> Result<Ran> {
        self.run_on(
            Op::Concat,
            0.0,
            Operands::<T, T> { first: operands, second: &[] },
            out,
            |x, _, out| cpu::concat(x, axis, out),
            |r, x, _| r.concat(x, axis),
        )
    }

    pub fn stack<T: Number>(&self, operands: &[Input<'_, T>], axis: isize, out: &mut [T]) -> Result<Ran> {
        self.run_on(
            Op::Stack,
            0.0,
            Operands::<T, T> { first: operands, second: &[] },
            out,
            |x, _, out| cpu::stack(x, axis, out),
            |r, x, _| r.stack(x, axis),
        )
    }

    pub fn pad<'a, T: Number>(
        &self,
        x: impl Into<Input<'a, T>>,
        pads: &[(usize, usize)],
        element: T,
        out: &mut [T],
    ) -> Result<Ran> {
        self.run(
            Op::Pad,
            0.0,
            [x.into()],
            out,
            |[x], out| cpu::pad(x, pads, element, out),
            |r, [x]| r.pad(x, pads, element),
        )
    }

    pub fn gather_rows<'a, T: Number>(
        &self,
        table: impl Into<Input<'a, T>>,
        rows: impl Into<Input<'a, u32>>,
        out: &mut [T],
    ) -> Result<Ran> {
        self.run_on(
            Op::GatherRows,
            0.0,
            Operands { first: &[table.into()], second: &[rows.into()] },
            out,
            |table, rows, out| cpu::gather_rows(table[0], rows[0], out),
            |r, table, rows| r.gather_rows(table[0], rows[0]),
        )
    }
}

/// # Moving elements
#[allow(missing_docs, reason = "the operations of the same names")]
#[allow(clippy::missing_errors_doc, reason = "those of the operations of the same names")]
impl Chain<'_> {
    pub fn permute(&mut self, x: Link, order: &[usize]) -> Result<Link> {
        let step =
            self.moving(Op::Permute, x, layout::permute(Op::Permute.name(), self.shape(x)?, order)?.shape)?;
        let (order, again) = (order.to_vec(), order.to_vec());
        self.step_on_words(
            step,
            &[x],
            move |x, out| cpu::permute(x[0], &order, out),
            move |r, x| r.permute(x[0], &again),
        )
    }

    pub fn transpose(&mut self, x: Link) -> Result<Link> {
        let shape = self.shape(x)?;
        let shape = layout::permute(Op::Transpose.name(), shape, &layout::transposed(shape.rank()))?.shape;
        let step = self.moving(Op::Transpose, x, shape)?;
        self.step_on_words(step, &[x], |x, out| cpu::transpose(x[0], out), |r, x| r.transpose(x[0]))
    }

    pub fn slice(&mut self, x: Link, ranges: impl Into<Ranges>) -> Result<Link> {
        let ranges = ranges.into();
        let step = self.moving(Op::Slice, x, layout::slice(self.shape(x)?, &ranges)?.shape)?;
        let again = ranges.clone();
        self.step_on_words(
            step,
            &[x],
            move |x, out| cpu::slice(x[0], ranges.clone(), out),
            move |r, x| r.slice(x[0], again.clone()),
        )
    }

    pub fn broadcast_to(&mut self, x: Link, shape: impl Into<Shape>) -> Result<Link> {
        let shape = shape.into();
        let step = self.moving(Op::BroadcastTo, x, layout::broadcast_to(self.shape(x)?, shape)?.shape)?;
        self.step_on_words(
            step,
            &[x],
            move |x, out| cpu::broadcast_to(x[0], shape, out),
            move |r, x| r.broadcast_to(x[0], shape),
        )
    }

    pub fn concat(&mut self, operands: &[Link], axis: isize) -> Result<Link> {
        let op = Op::Concat;
        let (shape, _) = layout::concat(op.name(), &self.shapes(operands)?, axis)?;
        let step = self.joining(op, operands, shape)?;
        self.step_on_words(
            step,
            operands,
            move |x, out| cpu::concat(x, axis, out),
            move |r, x| r.concat(x, axis),
        )
    }

    pub fn stack(&mut self, operands: &[Link], axis: isize) -> Result<Link> {
        let op = Op::Stack;
        let (single, at) = layout::stack(&self.shapes(operands)?, axis)?;
        let singles: SmallVec<[Shape; 8]> = operands.iter().map(|_| single).collect();
        let (shape, _) = layout::concat(op.name(), &singles, at as isize)?;
        let step = self.joining(op, operands, shape)?;
        self.step_on_words(
            step,
            operands,
            move |x, out| cpu::stack(x, axis, out),
            move |r, x| r.stack(x, axis),
        )
    }

    pub fn pad<T: Number>(&mut self, x: Link, pads: &[(usize, usize)], element: T) -> Result<Link> {
        let op = Op::Pad;
        self.check_type(op.name(), x, T::DTYPE)?;
        let shape = layout::pad(self.shape(x)?, pads)?;
        let (pads, again) = (pads.to_vec(), pads.to_vec());
        self.step::<T, T>(
            op,
            &[x],
            shape,
            0.0,
            move |x, out| cpu::pad(x[0], &pads, element, out),
            move |r, x| r.pad(x[0], &again, element),
        )
    }

    /// The rows' numbers are u32: a result of this chain, or an [`input_of`](Chain::input_of) it.
    pub fn gather_rows(&mut self, table: Link, rows: Link) -> Result<Link> {
        let op = Op::GatherRows;
        self.check_type(op.name(), rows, DType::U32)?;
        let (shape, _) = layout::gather("gather_rows", self.shape(table)?, self.shape(rows)?, 0)?;
        let step = self.moving(op, table, shape)?;
        self.step_on_words(
            step,
            &[table, rows],
            |x, out| cpu::gather_rows(x[0], x[1], out),
            |r, x| r.gather_rows(x[0], x[1]),
        )
    }

    fn shapes(&self, links: &[Link]) -> Result<SmallVec<[Shape; 8]>> {
        links.iter().map(|link| self.shape(*link)).collect()
    }

    /// A step that moves elements of a link.
    fn moving(&self, op: Op, x: Link, shape: Shape) -> Result<OpResult> {
        Ok(OpResult { op, shape, dtype: self.dtype(x)?, multiply_adds: 0.0 })
    }

    /// A step that moves elements of several links, which are of one type.
    fn joining(&self, op: Op, operands: &[Link], shape: Shape) -> Result<OpResult> {
        let step = self.moving(op, operands[0], shape)?;
        for operand in operands {
            self.check_type(op.name(), *operand, step.dtype)?;
        }
        Ok(step)
    }
}

/// # Elements from nothing
///
/// ```
/// # fn main() -> tidemill::Result<()> {
/// use tidemill::hybrid::{Hybrid, Policy};
/// let (mut counts, mut noise) = ([0u32; 4], [0.0; 4]);
/// let hybrid = Hybrid::new(Policy::Auto)?;
/// hybrid.iota(&mut counts)?;
/// hybrid.random_uniform(7, &mut noise)?;
/// assert_eq!(counts, [0, 1, 2, 3]);
/// assert!(noise.iter().all(|x| (0.0..1.0).contains(x)));
/// # Ok(()) }
/// ```
#[allow(missing_docs, reason = "the operations of the same names")]
#[allow(clippy::missing_errors_doc, reason = "those of the operations of the same names")]
impl Hybrid {
    /// f32, i32, u32.
    pub fn iota<T: Number>(&self, out: &mut [T]) -> Result<Ran> {
        self.generate(Op::Iota, out, cpu::iota, |r, n| r.iota::<T>(n))
    }

    pub fn random_uniform(&self, seed: u64, out: &mut [f32]) -> Result<Ran> {
        let on_cpu = |out: &mut [f32]| cpu::random_uniform(out, seed);
        self.generate(Op::RandomUniform, out, on_cpu, |r, n| r.random_uniform(n, seed))
    }

    pub fn random_normal(&self, seed: u64, out: &mut [f32]) -> Result<Ran> {
        let on_cpu = |out: &mut [f32]| cpu::random_normal(out, seed);
        self.generate(Op::RandomNormal, out, on_cpu, |r, n| r.random_normal(n, seed))
    }

    fn generate<T: Number>(
        &self,
        op: Op,
        out: &mut [T],
        on_cpu: impl FnOnce(&mut [T]),
        on_gpu: impl FnOnce(&Recording, usize) -> Result<Value>,
    ) -> Result<Ran> {
        let n = out.len();
        let fill = |_: [View<'_, T>; 0], out: &mut [T]| {
            on_cpu(out);
            Ok(Shape::from(n))
        };
        self.run(op, 0.0, [], out, fill, |r, []| on_gpu(r, n))
    }
}
