//! The operations, once for single calls and once for chains.

use smallvec::SmallVec;

use super::call::Operands;
use super::chain::{Chain, Link};
use super::work::Op;
use super::{Hybrid, Input, Ran};
use crate::cpu::{self, View};
use crate::error::Result;
use crate::ops::conv2d::{Conv2d, ConvWeights};
use crate::ops::matmul::Matmul;
use crate::runtime::recording::Operand;
use crate::shape::axes::{Axes, resolve_axis};
use crate::shape::broadcast::broadcast;

macro_rules! unary {
    ($($name:ident($($parameter:ident),*): $op:ident;)*) => {
        /// # Operations of one operand
        ///
        /// As the [`Recording`](crate::Recording) methods and the [`cpu`](crate::cpu) functions of the same names; f32.
        /// Errors are theirs, and those of the device where it runs there.
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
                self.step::<f32, f32>(
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

macro_rules! from_the_table {
    (
        one_operand {
        signed $signed:tt
        $($section:ident { $($(#[$doc:meta])* $name:ident($op:ident) { $($row:tt)* })* })*
        }
        other_codes $codes:tt
    ) => {
        unary! {
            $($($name(): $op;)*)*
            leaky_relu(alpha): LeakyRelu;
            elu(alpha): Elu;
            celu(alpha): Celu;
            clip(lo, hi): Clip;
            pow_scalar(exponent): PowScalar;
        }
    };
}

crate::elementwise_ops!(from_the_table);

/// # Operations of two operands, which broadcast
#[allow(missing_docs, reason = "the operations of the same names")]
#[allow(clippy::missing_errors_doc, reason = "above, once for all")]
impl Hybrid {
    pub fn pow<'a>(
        &self,
        lhs: impl Into<Input<'a>>,
        rhs: impl Into<Input<'a>>,
        out: &mut [f32],
    ) -> Result<Ran> {
        let operands = [lhs.into(), rhs.into()];
        self.run(Op::Pow, 0.0, operands, out, |[x, y], out| cpu::pow(x, y, out), |r, [x, y]| r.pow(x, y))
    }
}

/// # Operations of two operands, which broadcast
#[allow(missing_docs, reason = "the operations of the same names")]
#[allow(clippy::missing_errors_doc, reason = "those of the operations of the same names")]
impl Chain<'_> {
    pub fn pow(&mut self, lhs: Link, rhs: Link) -> Result<Link> {
        let shape = broadcast(Op::Pow.name(), self.shape(lhs)?, self.shape(rhs)?)?;
        self.step::<f32, f32>(
            Op::Pow,
            &[lhs, rhs],
            shape,
            0.0,
            |x, out| cpu::pow(x[0], x[1], out),
            |r, x| r.pow(x[0], x[1]),
        )
    }
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
                let shape = axes.apply(stringify!($name), &self.shape(x)?)?.shape;
                self.step::<f32, f32>(
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
    mean: Mean;
    prod: Prod;
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
                self.step::<f32, f32>(
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
        out: &mut [f32],
    ) -> Result<Ran> {
        self.conv2d_with(input, weights, cpu::Conv2d::new(), out)
    }

    pub fn conv2d_with<'a>(
        &self,
        input: impl Into<Input<'a>>,
        weights: impl Into<Input<'a>>,
        with: cpu::Conv2d,
        out: &mut [f32],
    ) -> Result<Ran> {
        let inputs = [input.into(), weights.into()];
        let (_, multiply_adds) = cpu::conv2d::plan(inputs[0].shape(), inputs[1].shape(), with)?;
        self.run(
            Op::Conv2d,
            multiply_adds,
            inputs,
            out,
            |[x, w], out| cpu::conv2d_with(x, w, with, out),
            |r, [x, w]| r.conv2d_with(x, ConvWeights::Plain(w), on_device(with)),
        )
    }

    pub fn matmul<'a>(
        &self,
        lhs: impl Into<Input<'a>>,
        rhs: impl Into<Input<'a>>,
        out: &mut [f32],
    ) -> Result<Ran> {
        self.matmul_with(lhs, rhs, cpu::Matmul::new(), out)
    }

    /// ```
    /// # fn main() -> tidemill::Result<()> {
    /// use tidemill::cpu::Matmul;
    /// use tidemill::hybrid::{Hybrid, Policy};
    /// let (x, weights, before) = ([1.0, 2.0], [1.0, 1.0, 3.0, 4.0, 0.0, 1.0], [10.0, 20.0, 30.0]);
    /// let mut y = [0.0; 3];
    /// let how = Matmul::new().transpose_rhs().alpha(2.0).accumulate(0.5, &before);
    /// Hybrid::new(Policy::Auto)?.matmul_with((&x, [1, 2]), (&weights, [3, 2]), how, &mut y)?;
    /// assert_eq!(y, [11.0, 32.0, 19.0]);
    /// # Ok(()) }
    /// ```
    pub fn matmul_with<'a>(
        &self,
        lhs: impl Into<Input<'a>>,
        rhs: impl Into<Input<'a>>,
        with: cpu::Matmul<'_>,
        out: &mut [f32],
    ) -> Result<Ran> {
        let (factors, with) = ([lhs.into(), rhs.into()], MatmulOptions::new(with));
        let (_, multiply_adds) = cpu::matmul::plan(factors[0].shape(), factors[1].shape(), &with.how())?;
        let added: SmallVec<[Input<'_>; 1]> = with.added.map(Input::Host).into_iter().collect();
        self.run_on(
            Op::Matmul,
            multiply_adds,
            Operands { first: &factors, second: &added },
            out,
            |x, added, out| cpu::matmul_with(x[0], x[1], with.on_cpu(added), out),
            |r, x, added| r.matmul_with(x[0], x[1], with.on_device(added)),
        )
    }
}

/// A matrix product's choices, apart from the operand that is added.
#[derive(Clone, Copy)]
struct MatmulOptions<'a> {
    transposed: [bool; 2],
    alpha: f32,
    beta: f32,
    added: Option<View<'a, f32>>,
}

impl<'a> MatmulOptions<'a> {
    fn new(with: cpu::Matmul<'a>) -> MatmulOptions<'a> {
        let cpu::Matmul { transpose_lhs, transpose_rhs, alpha, accumulate } = with;
        let (beta, added) = accumulate.map_or((0.0, None), |(beta, operand)| (beta, Some(operand)));
        MatmulOptions { transposed: [transpose_lhs, transpose_rhs], alpha, beta, added }
    }

    /// Without the operand.
    fn how<'b>(&self) -> cpu::Matmul<'b> {
        let [transpose_lhs, transpose_rhs] = self.transposed;
        cpu::Matmul { transpose_lhs, transpose_rhs, alpha: self.alpha, accumulate: None }
    }

    fn on_cpu<'b>(&self, added: &[View<'b, f32>]) -> cpu::Matmul<'b> {
        added.iter().fold(self.how(), |how, added| how.accumulate(self.beta, *added))
    }

    fn on_device<'b>(&self, added: &[Operand<'b>]) -> Matmul<'b> {
        let mut how = Matmul::new().alpha(self.alpha);
        if self.transposed[0] {
            how = how.transpose_lhs();
        }
        if self.transposed[1] {
            how = how.transpose_rhs();
        }
        added.iter().fold(how, |how, added| how.accumulate(self.beta, *added))
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
impl<'a> Chain<'a> {
    pub fn dot(&mut self, lhs: Link, rhs: Link) -> Result<Link> {
        let shape = cpu::reduce::plan_dot(self.shape(lhs)?, self.shape(rhs)?)?;
        self.step::<f32, f32>(
            Op::Dot,
            &[lhs, rhs],
            shape,
            0.0,
            |x, out| cpu::dot(x[0], x[1], out),
            |r, x| r.dot(x[0], x[1]),
        )
    }

    pub fn conv2d(&mut self, input: Link, weights: Link) -> Result<Link> {
        self.conv2d_with(input, weights, cpu::Conv2d::new())
    }

    pub fn conv2d_with(&mut self, input: Link, weights: Link, with: cpu::Conv2d) -> Result<Link> {
        let (shape, multiply_adds) = cpu::conv2d::plan(self.shape(input)?, self.shape(weights)?, with)?;
        self.step::<f32, f32>(
            Op::Conv2d,
            &[input, weights],
            shape,
            multiply_adds,
            move |x, out| cpu::conv2d_with(x[0], x[1], with, out),
            move |r, x| r.conv2d_with(x[0], ConvWeights::Plain(x[1]), on_device(with)),
        )
    }

    pub fn matmul(&mut self, lhs: Link, rhs: Link) -> Result<Link> {
        self.matmul_with(lhs, rhs, cpu::Matmul::new())
    }

    pub fn matmul_with(&mut self, lhs: Link, rhs: Link, with: cpu::Matmul<'a>) -> Result<Link> {
        let with = MatmulOptions::new(with);
        let (shape, multiply_adds) = cpu::matmul::plan(self.shape(lhs)?, self.shape(rhs)?, &with.how())?;
        let mut operands: SmallVec<[Link; 3]> = SmallVec::from_slice(&[lhs, rhs]);
        if let Some(added) = with.added {
            operands.push(self.input_of(added)?);
        }
        self.step::<f32, f32>(
            Op::Matmul,
            &operands,
            shape,
            multiply_adds,
            move |x, out| cpu::matmul_with(x[0], x[1], with.on_cpu(&x[2..]), out),
            move |r, x| r.matmul_with(x[0], x[1], with.on_device(&x[2..])),
        )
    }
}
