//! The operations that integers have too, once for single calls and once for chains.

use super::chain::{Chain, Link};
use super::work::Op;
use super::{Hybrid, Input, Ran};
use crate::cpu::{self, Number, Signed};
use crate::error::Result;
use crate::shape::DType;
use crate::shape::axes::Axes;
use crate::shape::broadcast::broadcast;

/// A step on elements of whatever type a link has, f32 where the operation has not that type.
macro_rules! step {
    ($chain:ident, $op:ident, $operands:expr, $shape:expr, [$($dtype:ident $type:ty),*], $on_cpu:expr, $on_gpu:expr) => {
        match $chain.dtype($operands[0])? {
            $(DType::$dtype => $chain.step::<$type, $type>(Op::$op, &$operands, $shape, 0.0, $on_cpu, $on_gpu),)*
            _ => $chain.step::<f32, f32>(Op::$op, &$operands, $shape, 0.0, $on_cpu, $on_gpu),
        }
    };
}

macro_rules! arithmetic {
    ($($name:ident: $op:ident, $with_scalar:ident($parameter:ident): $scalar_op:ident;)*) => {
        /// # Arithmetic
        ///
        /// f32, i32, u32. Operands broadcast; a scalar is of the operand's type.
        ///
        /// ```
        /// # fn main() -> tidemill::Result<()> {
        /// use tidemill::hybrid::{Hybrid, Policy};
        /// let hybrid = Hybrid::new(Policy::Auto)?;
        /// let (counts, mut doubled, mut halved) = ([3u32, 5, 8], [0; 3], [0; 3]);
        /// hybrid.add(&counts, &counts, &mut doubled)?;
        /// hybrid.div_scalar(&counts, 2, &mut halved)?;
        /// assert_eq!((doubled, halved), ([6, 10, 16], [1, 2, 4]));
        /// # Ok(()) }
        /// ```
        #[allow(missing_docs, reason = "the operations of the same names")]
        #[allow(clippy::missing_errors_doc, reason = "those of the operations of the same names")]
        impl Hybrid {$(
            pub fn $name<'a, T: Number>(
                &self,
                lhs: impl Into<Input<'a, T>>,
                rhs: impl Into<Input<'a, T>>,
                out: &mut [T],
            ) -> Result<Ran> {
                self.run(
                    Op::$op,
                    0.0,
                    [lhs.into(), rhs.into()],
                    out,
                    |[x, y], out| cpu::$name(x, y, out),
                    |r, [x, y]| r.$name(x, y),
                )
            }

            pub fn $with_scalar<'a, T: Number>(
                &self,
                x: impl Into<Input<'a, T>>,
                $parameter: T,
                out: &mut [T],
            ) -> Result<Ran> {
                self.run(
                    Op::$scalar_op,
                    0.0,
                    [x.into()],
                    out,
                    |[x], out| cpu::$with_scalar(x, $parameter, out),
                    |r, [x]| r.$with_scalar(x, $parameter),
                )
            }
        )*}

        /// # Arithmetic
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
                    [I32 i32, U32 u32],
                    |x, out| cpu::$name(x[0], x[1], out),
                    |r, x| r.$name(x[0], x[1])
                )
            }

            pub fn $with_scalar<T: Number>(&mut self, x: Link, $parameter: T) -> Result<Link> {
                let shape = self.shape(x)?;
                self.step::<T, T>(
                    Op::$scalar_op,
                    &[x],
                    shape,
                    0.0,
                    move |x, out| cpu::$with_scalar(x[0], $parameter, out),
                    move |r, x| r.$with_scalar(x[0], $parameter),
                )
            }
        )*}
    };
}

arithmetic! {
    add: Add, add_scalar(scalar): AddScalar;
    sub: Sub, sub_scalar(scalar): SubScalar;
    mul: Mul, scale(factor): Scale;
    div: Div, div_scalar(scalar): DivScalar;
    min: Min, min_scalar(scalar): MinScalar;
    max: Max, max_scalar(scalar): MaxScalar;
}

macro_rules! signed {
    (
        one_operand {
            signed { $($(#[$doc:meta])* $name:ident($op:ident) { $($row:tt)* })* }
            $($section:ident $others:tt)*
        }
        other_codes $codes:tt
    ) => {
        /// # Signs
        ///
        /// f32, i32.
        #[allow(missing_docs, reason = "the operations of the same names")]
        #[allow(clippy::missing_errors_doc, reason = "those of the operations of the same names")]
        impl Hybrid {$(
            pub fn $name<'a, T: Signed>(&self, x: impl Into<Input<'a, T>>, out: &mut [T]) -> Result<Ran> {
                self.run(Op::$op, 0.0, [x.into()], out, |[x], out| cpu::$name(x, out), |r, [x]| r.$name(x))
            }
        )*}

        /// # Signs
        #[allow(missing_docs, reason = "the operations of the same names")]
        #[allow(clippy::missing_errors_doc, reason = "those of the operations of the same names")]
        impl Chain<'_> {$(
            pub fn $name(&mut self, x: Link) -> Result<Link> {
                let shape = self.shape(x)?;
                step!(self, $op, [x], shape, [I32 i32], |x, out| cpu::$name(x[0], out), |r, x| r.$name(x[0]))
            }
        )*}
    };
}

crate::elementwise_ops!(signed);

macro_rules! reductions {
    ($($name:ident: $op:ident;)*) => {
        /// # Reductions that integers have
        ///
        /// f32, i32, u32.
        #[allow(missing_docs, reason = "the operations of the same names")]
        #[allow(clippy::missing_errors_doc, reason = "those of the operations of the same names")]
        impl Hybrid {$(
            pub fn $name<'a, T: Number>(
                &self,
                x: impl Into<Input<'a, T>>,
                axes: impl Into<Axes>,
                out: &mut [T],
            ) -> Result<Ran> {
                let axes = axes.into();
                self.run(
                    Op::$op,
                    0.0,
                    [x.into()],
                    out,
                    |[x], out| cpu::$name(x, axes, out),
                    |r, [x]| r.$name(x, axes),
                )
            }
        )*}

        /// # Reductions that integers have
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
                    [I32 i32, U32 u32],
                    move |x, out| cpu::$name(x[0], axes, out),
                    move |r, x| r.$name(x[0], axes)
                )
            }
        )*}
    };
}

reductions! {
    sum: Sum;
    amax: Amax;
    amin: Amin;
}
