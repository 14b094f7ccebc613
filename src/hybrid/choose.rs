//! Comparisons, choices by them, places of extremes, and casts: what goes between element types.

use super::call::Operands;
use super::chain::{Chain, Link, OpResult, whole_words};
use super::work::Op;
use super::{Hybrid, Input, Ran};
use crate::cpu::{self, Cast, Number, View};
use crate::error::Result;
use crate::shape::axes::Axes;
use crate::shape::broadcast::broadcast;
use crate::shape::{DType, Shape};

/// A step with results of u32, on elements of whatever type a link has.
macro_rules! step {
    ($chain:ident, $op:ident, $operands:expr, $shape:expr, $on_cpu:expr, $on_gpu:expr) => {
        match $chain.dtype($operands[0])? {
            DType::I32 => $chain.step::<i32, u32>(Op::$op, &$operands, $shape, 0.0, $on_cpu, $on_gpu),
            DType::U32 => $chain.step::<u32, u32>(Op::$op, &$operands, $shape, 0.0, $on_cpu, $on_gpu),
            _ => $chain.step::<f32, u32>(Op::$op, &$operands, $shape, 0.0, $on_cpu, $on_gpu),
        }
    };
}

macro_rules! comparisons {
    ($($name:ident: $op:ident, $with_scalar:ident: $scalar_op:ident;)*) => {
        /// # Comparisons
        ///
        /// Of f32, i32 or u32, which broadcast; 1 where it holds, 0 elsewhere.
        ///
        /// ```
        /// # fn main() -> tidemill::Result<()> {
        /// use tidemill::hybrid::{Hybrid, Policy};
        /// let hybrid = Hybrid::new(Policy::Auto)?;
        /// let (x, mut negative, mut y) = ([-1.0f32, 2.0, -3.0], [0; 3], [0.0f32; 3]);
        /// hybrid.lt_scalar(&x, 0.0, &mut negative)?;
        /// hybrid.select(&negative, (&[0.0], []), &x, &mut y)?;
        /// assert_eq!((negative, y), ([1, 0, 1], [0.0, 2.0, 0.0]));
        /// # Ok(()) }
        /// ```
        #[allow(missing_docs, reason = "the operations of the same names")]
        #[allow(clippy::missing_errors_doc, reason = "those of the operations of the same names")]
        impl Hybrid {$(
            pub fn $name<'a, T: Number>(
                &self,
                lhs: impl Into<Input<'a, T>>,
                rhs: impl Into<Input<'a, T>>,
                out: &mut [u32],
            ) -> Result<Ran> {
                self.run(
                    Op::$op,
                    0.0,
                    [lhs.into(), rhs.into()],
                    out,
                    |[x, y], out| cpu::$name::<T>(x, y, out),
                    |r, [x, y]| r.$name(x, y),
                )
            }

            pub fn $with_scalar<'a, T: Number>(
                &self,
                x: impl Into<Input<'a, T>>,
                scalar: T,
                out: &mut [u32],
            ) -> Result<Ran> {
                self.run(
                    Op::$scalar_op,
                    0.0,
                    [x.into()],
                    out,
                    |[x], out| cpu::$with_scalar(x, scalar, out),
                    |r, [x]| r.$with_scalar(x, scalar),
                )
            }
        )*}

        /// # Comparisons
        #[allow(missing_docs, reason = "the operations of the same names")]
        #[allow(clippy::missing_errors_doc, reason = "those of the operations of the same names")]
        impl Chain<'_> {$(
            pub fn $name(&mut self, lhs: Link, rhs: Link) -> Result<Link> {
                let shape = broadcast(stringify!($name), self.shape(lhs)?, self.shape(rhs)?)?;
                step!(
                    self,
                    $op,
                    [lhs, rhs],
                    shape,
                    |x, out| cpu::$name(x[0], x[1], out),
                    |r, x| r.$name(x[0], x[1])
                )
            }

            pub fn $with_scalar<T: Number>(&mut self, x: Link, scalar: T) -> Result<Link> {
                let shape = self.shape(x)?;
                self.step::<T, u32>(
                    Op::$scalar_op,
                    &[x],
                    shape,
                    0.0,
                    move |x, out| cpu::$with_scalar(x[0], scalar, out),
                    move |r, x| r.$with_scalar(x[0], scalar),
                )
            }
        )*}
    };
}

comparisons! {
    eq: Eq, eq_scalar: EqScalar;
    ne: Ne, ne_scalar: NeScalar;
    lt: Lt, lt_scalar: LtScalar;
    le: Le, le_scalar: LeScalar;
    gt: Gt, gt_scalar: GtScalar;
    ge: Ge, ge_scalar: GeScalar;
}

macro_rules! places {
    ($($name:ident: $op:ident;)*) => {
        /// # Places of extremes
        ///
        /// Of f32, i32 or u32; the first of equals.
        ///
        /// ```
        /// # fn main() -> tidemill::Result<()> {
        /// use tidemill::hybrid::{Hybrid, Policy};
        /// let (scores, mut best) = ([0.1f32, 0.7, 0.2, 0.5, 0.3, 0.2], [0; 2]);
        /// Hybrid::new(Policy::Auto)?.argmax((&scores, [2, 3]), 1, &mut best)?;
        /// assert_eq!(best, [1, 0]);
        /// # Ok(()) }
        /// ```
        #[allow(missing_docs, reason = "the operations of the same names")]
        #[allow(clippy::missing_errors_doc, reason = "those of the operations of the same names")]
        impl Hybrid {$(
            pub fn $name<'a, T: Number>(
                &self,
                x: impl Into<Input<'a, T>>,
                axes: impl Into<Axes>,
                out: &mut [u32],
            ) -> Result<Ran> {
                let axes = axes.into();
                self.run(
                    Op::$op,
                    0.0,
                    [x.into()],
                    out,
                    |[x], out| cpu::$name::<T>(x, axes, out),
                    |r, [x]| r.$name(x, axes),
                )
            }
        )*}

        /// # Places of extremes
        #[allow(missing_docs, reason = "the operations of the same names")]
        #[allow(clippy::missing_errors_doc, reason = "those of the operations of the same names")]
        impl Chain<'_> {$(
            pub fn $name(&mut self, x: Link, axes: impl Into<Axes>) -> Result<Link> {
                let axes = axes.into();
                let shape = axes.apply(stringify!($name), &self.shape(x)?)?.shape;
                step!(
                    self,
                    $op,
                    [x],
                    shape,
                    move |x, out| cpu::$name(x[0], axes, out),
                    move |r, x| r.$name(x[0], axes)
                )
            }
        )*}
    };
}

places! {
    argmax: Argmax;
    argmin: Argmin;
}

/// # Choices and casts
#[allow(missing_docs, reason = "the operations of the same names")]
#[allow(clippy::missing_errors_doc, reason = "those of the operations of the same names")]
impl Hybrid {
    /// f32, i32, u32.
    pub fn select<'a, T: Number>(
        &self,
        mask: impl Into<Input<'a, u32>>,
        a: impl Into<Input<'a, T>>,
        b: impl Into<Input<'a, T>>,
        out: &mut [T],
    ) -> Result<Ran> {
        self.run_on(
            Op::Select,
            0.0,
            Operands { first: &[mask.into()], second: &[a.into(), b.into()] },
            out,
            |mask, x, out| cpu::select(mask[0], x[0], x[1], out),
            |r, mask, x| r.select(mask[0], x[0], x[1]),
        )
    }

    /// Between f32, i32 and u32, to the type of the output.
    ///
    /// ```
    /// # fn main() -> tidemill::Result<()> {
    /// use tidemill::hybrid::{Hybrid, Policy};
    /// let mut out = [0i32; 3];
    /// Hybrid::new(Policy::Auto)?.cast(&[-1.5f32, 2.9, 1e20], &mut out)?;
    /// assert_eq!(out, [-1, 2, i32::MAX]);
    /// # Ok(()) }
    /// ```
    pub fn cast<'a, A: Number, B: Number + Cast<A>>(
        &self,
        x: impl Into<Input<'a, A>>,
        out: &mut [B],
    ) -> Result<Ran> {
        self.run(Op::Cast, 0.0, [x.into()], out, |[x], out| cpu::cast(x, out), |r, [x]| r.cast(x, B::DTYPE))
    }
}

/// # Choices and casts
#[allow(missing_docs, reason = "the operations of the same names")]
#[allow(clippy::missing_errors_doc, reason = "those of the operations of the same names")]
impl Chain<'_> {
    pub fn select(&mut self, mask: Link, a: Link, b: Link) -> Result<Link> {
        let (op, dtype) = (Op::Select, self.dtype(a)?);
        self.check_type(op.name(), mask, DType::U32)?;
        self.check_type(op.name(), b, dtype)?;
        // As the CPU's own, pair by pair.
        let shapes = [self.shape(mask)?, self.shape(a)?, self.shape(b)?];
        broadcast(op.name(), shapes[1], shapes[2])?;
        let shape =
            shapes.into_iter().try_fold(Shape::default(), |all, shape| broadcast(op.name(), all, shape))?;
        self.step_on_words(
            OpResult { op, shape, dtype, multiply_adds: 0.0 },
            &[mask, a, b],
            |x, out| cpu::select(x[0], x[1], x[2], out),
            |r, x| r.select(x[0], x[1], x[2]),
        )
    }

    /// Between f32, i32 and u32; [`Error::Type`](crate::Error::Type) if `to` is f16.
    pub fn cast(&mut self, x: Link, to: DType) -> Result<Link> {
        let (shape, from) = (self.shape(x)?, self.dtype(x)?);
        whole_words(Op::Cast.name(), to)?;
        self.step_on_words(
            OpResult { op: Op::Cast, shape, dtype: to, multiply_adds: 0.0 },
            &[x],
            move |x, out| match whole_words(Op::Cast.name(), from)? {
                DType::I32 => cast_to::<i32>(x[0], to, out),
                DType::U32 => cast_to::<u32>(x[0], to, out),
                _ => cast_to::<f32>(x[0], to, out),
            },
            move |r, x| r.cast(x[0], to),
        )
    }
}

/// A cast of words that are elements of type `A`.
fn cast_to<A: Number>(x: View<'_, u32>, to: DType, out: &mut [u32]) -> Result<Shape>
where
    f32: Cast<A>,
    i32: Cast<A>,
    u32: Cast<A>,
{
    let x = View::<A>::new(bytemuck::cast_slice(x.data()), x.shape());
    match whole_words(Op::Cast.name(), to)? {
        DType::I32 => cpu::cast::<A, i32>(x, bytemuck::cast_slice_mut(out)),
        DType::U32 => cpu::cast::<A, u32>(x, out),
        _ => cpu::cast::<A, f32>(x, bytemuck::cast_slice_mut(out)),
    }
}
