//! The operations, once for single calls and once for chains.

use super::chain::{Chain, Link};
use super::work::Op;
use super::{Hybrid, Input, Ran};
use crate::cpu;
use crate::error::Result;
use crate::ops::conv2d::{Conv2d, ConvWeights};
use crate::shape::axes::{Axes, resolve_axis};
use crate::shape::broadcast::broadcast;

macro_rules! unary {
    ($($name:ident($($parameter:ident),*): $op:ident;)*) => {
        /// # Operations of one operand
        ///
        /// As the [`Recording`](crate::Recording) methods and the [`cpu`](crate::cpu) functions of the same names; f32. Errors are
        /// theirs, and those of the device where it runs there.
        #[allow(missing_docs, reason = "the operations of the same names")]
        #[allow(clippy::missing_errors_doc, reason = "above, once for all")]
        impl Hybrid {$(
            pub fn $name<'a>(&self, x: impl Into<Input<'a>>, $($parameter: f32,)* out: &mut [f32]) -> Result<Ran> {
                self.run(
                    Op::$op,
                    0.0,
                    [x.into()],
                    out,
                    |[x], out| cpu::$name(x, $($parameter,)* out),
                    |r, [x]| r.$name(x, $($parameter),*),
                )
            }
        )*}

        /// # Operations of one operand
        #[allow(missing_docs, reason = "the operations of the same names")]
        #[allow(clippy::missing_errors_doc, reason = "those of the operations of the same names")]
        impl Chain<'_> {$(
            pub fn $name(&mut self, x: Link, $($parameter: f32),*) -> Result<Link> {
                let shape = self.shape(x)?;
                self.step(
                    Op::$op,
                    &[x],
                    shape,
                    0.0,
                    move |x, out| cpu::$name(x[0], $($parameter,)* out),
                    move |r, x| r.$name(x[0], $($parameter),*),
                )
            }
        )*}
    };
}

unary! {
    neg(): Neg;
    abs(): Abs;
    sign(): Sign;
    floor(): Floor;
    ceil(): Ceil;
    round(): Round;
    sqrt(): Sqrt;
    rsqrt(): Rsqrt;
    recip(): Recip;
    exp(): Exp;
    log(): Log;
    sin(): Sin;
    cos(): Cos;
    relu(): Relu;
    sigmoid(): Sigmoid;
    tanh(): Tanh;
    swish(): Swish;
    gelu(): Gelu;
    gelu_erf(): GeluErf;
    softplus(): Softplus;
    leaky_relu(alpha): LeakyRelu;
    elu(alpha): Elu;
    clip(lo, hi): Clip;
    add_scalar(scalar): AddScalar;
    scale(factor): Scale;
    pow_scalar(exponent): PowScalar;
}

macro_rules! binary {
    ($($name:ident: $op:ident;)*) => {
        /// # Operations of two operands, which broadcast
        #[allow(missing_docs, reason = "the operations of the same names")]
        #[allow(clippy::missing_errors_doc, reason = "above, once for all")]
        impl Hybrid {$(
            pub fn $name<'a>(
                &self,
                lhs: impl Into<Input<'a>>,
                rhs: impl Into<Input<'a>>,
                out: &mut [f32],
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
        )*}

        /// # Operations of two operands, which broadcast
        #[allow(missing_docs, reason = "the operations of the same names")]
        #[allow(clippy::missing_errors_doc, reason = "those of the operations of the same names")]
        impl Chain<'_> {$(
            pub fn $name(&mut self, lhs: Link, rhs: Link) -> Result<Link> {
                let shape = broadcast(stringify!($name), self.shape(lhs)?, self.shape(rhs)?)?;
                self.step(
                    Op::$op,
                    &[lhs, rhs],
                    shape,
                    0.0,
                    |x, out| cpu::$name(x[0], x[1], out),
                    |r, x| r.$name(x[0], x[1]),
                )
            }
        )*}
    };
}

binary! {
    add: Add;
    sub: Sub;
    mul: Mul;
    div: Div;
    min: Min;
    max: Max;
    pow: Pow;
}

macro_rules! reductions {
    ($($name:ident: $op:ident;)*) => {
        /// # Reductions
        #[allow(missing_docs, reason = "the operations of the same names")]
        #[allow(clippy::missing_errors_doc, reason = "above, once for all")]
        impl Hybrid {$(
            pub fn $name<'a>(
                &self,
                x: impl Into<Input<'a>>,
                axes: impl Into<Axes>,
                out: &mut [f32],
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

        /// # Reductions
        #[allow(missing_docs, reason = "the operations of the same names")]
        #[allow(clippy::missing_errors_doc, reason = "those of the operations of the same names")]
        impl Chain<'_> {$(
            pub fn $name(&mut self, x: Link, axes: impl Into<Axes>) -> Result<Link> {
                let axes = axes.into();
                let (_, shape) = axes.apply(stringify!($name), &self.shape(x)?)?;
                self.step(
                    Op::$op,
                    &[x],
                    shape,
                    0.0,
                    move |x, out| cpu::$name(x[0], axes, out),
                    move |r, x| r.$name(x[0], axes),
                )
            }
        )*}
    };
}

reductions! {
    sum: Sum;
    mean: Mean;
    prod: Prod;
    amax: Amax;
    amin: Amin;
    norm: Norm;
    variance: Variance;
}

macro_rules! softmaxes {
    ($($name:ident: $op:ident;)*) => {
        /// # Softmax
        #[allow(missing_docs, reason = "the operations of the same names")]
        #[allow(clippy::missing_errors_doc, reason = "above, once for all")]
        impl Hybrid {$(
            pub fn $name<'a>(&self, x: impl Into<Input<'a>>, axis: isize, out: &mut [f32]) -> Result<Ran> {
                self.run(
                    Op::$op,
                    0.0,
                    [x.into()],
                    out,
                    |[x], out| cpu::$name(x, axis, out),
                    |r, [x]| r.$name(x, axis),
                )
            }
        )*}

        /// # Softmax
        #[allow(missing_docs, reason = "the operations of the same names")]
        #[allow(clippy::missing_errors_doc, reason = "those of the operations of the same names")]
        impl Chain<'_> {$(
            pub fn $name(&mut self, x: Link, axis: isize) -> Result<Link> {
                let shape = self.shape(x)?;
                resolve_axis(stringify!($name), axis, shape.rank())?;
                self.step(
                    Op::$op,
                    &[x],
                    shape,
                    0.0,
                    move |x, out| cpu::$name(x[0], axis, out),
                    move |r, x| r.$name(x[0], axis),
                )
            }
        )*}
    };
}

softmaxes! {
    softmax: Softmax;
    log_softmax: LogSoftmax;
}

/// # Products
#[allow(missing_docs, reason = "the operations of the same names")]
#[allow(clippy::missing_errors_doc, reason = "above, once for all")]
impl Hybrid {
    pub fn dot<'a>(
        &self,
        lhs: impl Into<Input<'a>>,
        rhs: impl Into<Input<'a>>,
        out: &mut [f32],
    ) -> Result<Ran> {
        self.run(
            Op::Dot,
            0.0,
            [lhs.into(), rhs.into()],
            out,
            |[x, y], out| cpu::dot(x, y, out),
            |r, [x, y]| r.dot(x, y),
        )
    }

    pub fn conv2d<'a>(
        &self,
        input: impl Into<Input<'a>>,
        weights: impl Into<Input<'a>>,
        with: cpu::Conv2d,
        out: &mut [f32],
    ) -> Result<Ran> {
        let inputs = [input.into(), weights.into()];
        let (_, products) = cpu::conv2d::plan(inputs[0].shape(), inputs[1].shape(), with)?;
        self.run(
            Op::Conv2d,
            products,
            inputs,
            out,
            |[x, w], out| cpu::conv2d(x, w, with, out),
            |r, [x, w]| r.conv2d(x, ConvWeights::Plain(w), on_device(with)),
        )
    }

    pub fn matmul<'a>(
        &self,
        lhs: impl Into<Input<'a>>,
        rhs: impl Into<Input<'a>>,
        out: &mut [f32],
    ) -> Result<Ran> {
        let inputs = [lhs.into(), rhs.into()];
        let (_, products) = cpu::matmul::plan(inputs[0].shape(), inputs[1].shape())?;
        self.run(
            Op::Matmul,
            products,
            inputs,
            out,
            |[x, y], out| cpu::matmul(x, y, out),
            |r, [x, y]| r.matmul(x, y),
        )
    }
}

/// A convolution's choices as the device has them.
fn on_device(with: cpu::Conv2d) -> Conv2d<'static> {
    let cpu::Conv2d { stride, padding, dilation, groups } = with;
    Conv2d::new().stride(stride).padding(padding).dilation(dilation).groups(groups)
}

/// # Products
#[allow(missing_docs, reason = "the operations of the same names")]
#[allow(clippy::missing_errors_doc, reason = "those of the operations of the same names")]
impl Chain<'_> {
    pub fn conv2d(&mut self, input: Link, weights: Link, with: cpu::Conv2d) -> Result<Link> {
        let (shape, products) = cpu::conv2d::plan(self.shape(input)?, self.shape(weights)?, with)?;
        self.step(
            Op::Conv2d,
            &[input, weights],
            shape,
            products,
            move |x, out| cpu::conv2d(x[0], x[1], with, out),
            move |r, x| r.conv2d(x[0], ConvWeights::Plain(x[1]), on_device(with)),
        )
    }

    pub fn matmul(&mut self, lhs: Link, rhs: Link) -> Result<Link> {
        let (shape, products) = cpu::matmul::plan(self.shape(lhs)?, self.shape(rhs)?)?;
        self.step(
            Op::Matmul,
            &[lhs, rhs],
            shape,
            products,
            |x, out| cpu::matmul(x[0], x[1], out),
            |r, x| r.matmul(x[0], x[1]),
        )
    }
}
