//! Elementwise operations. Where an operand may be a number, it gets the type of the others.

use pyo3::prelude::*;

use super::operations;
use crate::array::dtype;
use crate::errors::Result;
use crate::operand::{Operand, Term, Value, terms};
use crate::recording::{Recording, value};

macro_rules! unary {
    (one_operand { $($section:ident {
        $($(#[$doc:meta])* $name:ident($variant:ident) {
            cost: $cost:ident, codes: $row_codes:tt, cpu: $cpu:expr,
            c: $c:ident = $number:literal $c_doc:literal $($step:tt)*
        })*
    })* } other_codes $codes:tt) => {
        operations! {$($(
            #[doc = $c_doc]
            $name(x; );
        )*)*}
    };
}

tidemill::elementwise_ops!(unary);

operations! {
    /// 1 where a mask is 0, else 0.
    logical_not(mask; );
    /// 1 where an element is NaN, else 0.
    is_nan(x; );
    /// 1 where an element is infinite, else 0.
    is_inf(x; );
    /// x above 0, alpha * x below.
    leaky_relu(x; alpha: f32);
    /// x above 0, alpha * (exp(x) - 1) below.
    elu(x; alpha: f32);
    /// x above 0, alpha * (exp(x / alpha) - 1) below.
    celu(x; alpha: f32);
    /// Not below `lo`, and not above `hi`.
    clip(x; lo: f32, hi: f32);
}

/// Methods of operands of which some may be numbers.
macro_rules! with_numbers {
    ($($(#[$meta:meta])* $name:ident($($operand:ident),*);)*) => {
        #[pymethods]
        impl Recording {$(
            $(#[$meta])*
            fn $name(slf: &Bound<'_, Self>, $($operand: Term<'_>),*) -> Result<Value> {
                value(slf, |r| {
                    let [$($operand),*] = terms(r, stringify!($name), [$(&$operand),*])?;
                    Ok(r.$name($($operand),*)?)
                })
            }
        )*}
    };
}

with_numbers! {
    /// a + b.
    add(a, b);
    /// a - b.
    sub(a, b);
    /// a * b.
    mul(a, b);
    /// a / b; integers are cut towards zero.
    div(a, b);
    /// a to the power of b.
    pow(a, b);
    /// The smaller one.
    min(a, b);
    /// The larger one.
    max(a, b);
    /// The remainder of a / b with the sign of a.
    fmod(a, b);
    /// The remainder of a / b with the sign of b.
    modulo(a, b);
    /// The angle of the point (b, a).
    atan2(a, b);
    /// The square root of a * a + b * b.
    hypot(a, b);
    /// The magnitude of a with the sign of b.
    copysign(a, b);
    /// x above 0, x * slopes elsewhere.
    prelu(x, slopes);
    /// 1 where a == b, else 0; uint32, as of all comparisons.
    eq(a, b);
    /// 1 where a != b, else 0.
    ne(a, b);
    /// 1 where a < b, else 0.
    lt(a, b);
    /// 1 where a <= b, else 0.
    le(a, b);
    /// 1 where a > b, else 0.
    gt(a, b);
    /// 1 where a >= b, else 0.
    ge(a, b);
    /// 1 where both masks are not 0, else 0.
    logical_and(a, b);
    /// 1 where one of the masks is not 0, else 0.
    logical_or(a, b);
    /// 1 where exactly one of the masks is not 0, else 0.
    logical_xor(a, b);
    /// Not below `lo`, and not above `hi`, which are tensors or numbers.
    clamp(x, lo, hi);
}

#[pymethods]
impl Recording {
    /// Elements of `a` where the mask is not 0, of `b` elsewhere.
    fn select(slf: &Bound<'_, Self>, mask: Operand<'_>, a: Term<'_>, b: Term<'_>) -> Result<Value> {
        value(slf, |r| {
            let [a, b] = terms(r, "select", [&a, &b])?;
            Ok(r.select(mask.get(), a, b)?)
        })
    }

    /// The same numbers as another element type; floats are cut towards zero.
    fn cast(slf: &Bound<'_, Self>, x: Operand<'_>, to: &Bound<'_, PyAny>) -> Result<Value> {
        let to = dtype(to)?;
        value(slf, |r| Ok(r.cast(x.get(), to)?))
    }
}
