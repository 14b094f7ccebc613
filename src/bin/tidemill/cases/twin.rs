//! The same operations on the CPU, by the names that cases have for them. Words are the bits of elements.

use tidemill::cpu::{self, Cast, Number, View};
use tidemill::{Axes, DType, Element, Result, Shape};

use super::elementwise::PARAMETERS;

fn words<T: Element>(elements: &[T]) -> Vec<u32> {
    bytemuck::cast_slice(elements).to_vec()
}

fn view<'a, T: Element>(words: &'a [u32], shape: &[usize]) -> View<'a, T> {
    View::new(bytemuck::cast_slice(words), Shape::new(shape).unwrap_or_default())
}

/// One of [`UNARY`](super::elementwise::UNARY).
pub fn unary(op: &str, x: &[f32]) -> Result<Vec<f32>> {
    let [p, q] = PARAMETERS.map(|p| p as f32);
    let mut out = vec![0.0; x.len()];
    unary_into(op, x, [p, q], &mut out)?;
    Ok(out)
}

/// Likewise, with parameters.
pub fn unary_into(op: &str, x: &[f32], [p, q]: [f32; 2], out: &mut [f32]) -> Result<Shape> {
    match op {
        "neg" => cpu::neg(x, out),
        "abs" => cpu::abs(x, out),
        "sign" => cpu::sign(x, out),
        "floor" => cpu::floor(x, out),
        "ceil" => cpu::ceil(x, out),
        "round" => cpu::round(x, out),
        "sqrt" => cpu::sqrt(x, out),
        "rsqrt" => cpu::rsqrt(x, out),
        "recip" => cpu::recip(x, out),
        "exp" => cpu::exp(x, out),
        "log" => cpu::log(x, out),
        "sin" => cpu::sin(x, out),
        "cos" => cpu::cos(x, out),
        "relu" => cpu::relu(x, out),
        "leaky_relu" => cpu::leaky_relu(x, p, out),
        "elu" => cpu::elu(x, p, out),
        "clip" => cpu::clip(x, p, q, out),
        "sigmoid" => cpu::sigmoid(x, out),
        "tanh" => cpu::tanh(x, out),
        "swish" => cpu::swish(x, out),
        "gelu" => cpu::gelu(x, out),
        "gelu_erf" => cpu::gelu_erf(x, out),
        "softplus" => cpu::softplus(x, out),
        _ => cpu::pow_scalar(x, q, out),
    }
}

pub fn unary_i32(op: &str, x: &[i32]) -> Result<Vec<i32>> {
    let mut out = vec![0; x.len()];
    match op {
        "neg" => cpu::neg(x, &mut out),
        "abs" => cpu::abs(x, &mut out),
        _ => cpu::sign(x, &mut out),
    }?;
    Ok(out)
}

/// Operands as words and shapes.
pub type Words<'a> = (&'a [u32], &'a [usize]);

/// An operation of two operands with a result of `n` elements.
pub fn binary(op: &str, dtype: DType, x: Words<'_>, y: Words<'_>, n: usize) -> Result<Vec<u32>> {
    fn with<T: Number>(op: &str, x: Words<'_>, y: Words<'_>, n: usize) -> Result<Vec<u32>> {
        let (x, y) = (view::<T>(x.0, x.1), view::<T>(y.0, y.1));
        let (mut out, mut truth) = (vec![T::zeroed(); n], vec![0u32; n]);
        match op {
            "add" => cpu::add(x, y, &mut out),
            "sub" => cpu::sub(x, y, &mut out),
            "mul" => cpu::mul(x, y, &mut out),
            "div" => cpu::div(x, y, &mut out),
            "min" => cpu::min(x, y, &mut out),
            "max" => cpu::max(x, y, &mut out),
            "eq" => cpu::eq(x, y, &mut truth),
            "ne" => cpu::ne(x, y, &mut truth),
            "lt" => cpu::lt(x, y, &mut truth),
            "le" => cpu::le(x, y, &mut truth),
            "gt" => cpu::gt(x, y, &mut truth),
            _ => cpu::ge(x, y, &mut truth),
        }?;
        Ok(if ARITHMETIC.contains(&op) { words(&out) } else { truth })
    }
    match dtype {
        DType::F32 if op == "pow" => {
            let mut out = vec![0.0; n];
            cpu::pow(view(x.0, x.1), view(y.0, y.1), &mut out)?;
            Ok(words(&out))
        }
        DType::F32 => with::<f32>(op, x, y, n),
        DType::I32 => with::<i32>(op, x, y, n),
        _ => with::<u32>(op, x, y, n),
    }
}

const ARITHMETIC: [&str; 6] = ["add", "sub", "mul", "div", "min", "max"];

/// An operation of an operand and a scalar.
pub fn with_scalar(op: &str, dtype: DType, x: &[u32], scalar: u32) -> Result<Vec<u32>> {
    fn with<T: Number>(op: &str, x: &[u32], scalar: u32) -> Result<Vec<u32>> {
        let (x, scalar): (&[T], T) = (bytemuck::cast_slice(x), bytemuck::cast(scalar));
        let (mut out, mut truth) = (vec![T::zeroed(); x.len()], vec![0u32; x.len()]);
        match op {
            "add" => cpu::add_scalar(x, scalar, &mut out),
            "sub" => cpu::sub_scalar(x, scalar, &mut out),
            "mul" => cpu::scale(x, scalar, &mut out),
            "div" => cpu::div_scalar(x, scalar, &mut out),
            "min" => cpu::min_scalar(x, scalar, &mut out),
            "max" => cpu::max_scalar(x, scalar, &mut out),
            "eq" => cpu::eq_scalar(x, scalar, &mut truth),
            "ne" => cpu::ne_scalar(x, scalar, &mut truth),
            "lt" => cpu::lt_scalar(x, scalar, &mut truth),
            "le" => cpu::le_scalar(x, scalar, &mut truth),
            "gt" => cpu::gt_scalar(x, scalar, &mut truth),
            _ => cpu::ge_scalar(x, scalar, &mut truth),
        }?;
        Ok(if ARITHMETIC.contains(&op) { words(&out) } else { truth })
    }
    match dtype {
        DType::F32 if op == "pow" => {
            let mut out = vec![0.0; x.len()];
            cpu::pow_scalar(bytemuck::cast_slice::<u32, f32>(x), f32::from_bits(scalar), &mut out)?;
            Ok(words(&out))
        }
        DType::F32 => with::<f32>(op, x, scalar),
        DType::I32 => with::<i32>(op, x, scalar),
        _ => with::<u32>(op, x, scalar),
    }
}

pub fn select(mask: Words<'_>, a: Words<'_>, b: Words<'_>, n: usize) -> Result<Vec<u32>> {
    let mut out = vec![0u32; n];
    cpu::select::<u32>(view(mask.0, mask.1), view(a.0, a.1), view(b.0, b.1), &mut out)?;
    Ok(out)
}

pub fn cast(from: DType, to: DType, x: &[u32]) -> Result<Vec<u32>> {
    fn between<A: Element, B: Cast<A>>(x: &[u32]) -> Result<Vec<u32>> {
        let mut out = vec![B::zeroed(); x.len()];
        cpu::cast(bytemuck::cast_slice::<u32, A>(x), &mut out)?;
        Ok(words(&out))
    }
    fn to_any<A: Element>(to: DType, x: &[u32]) -> Result<Vec<u32>>
    where
        f32: Cast<A>,
        i32: Cast<A>,
        u32: Cast<A>,
    {
        match to {
            DType::F32 => between::<A, f32>(x),
            DType::I32 => between::<A, i32>(x),
            _ => between::<A, u32>(x),
        }
    }
    match from {
        DType::F32 => to_any::<f32>(to, x),
        DType::I32 => to_any::<i32>(to, x),
        _ => to_any::<u32>(to, x),
    }
}

/// A reduction to `n` elements, as words, and the result's shape.
pub fn reduce<T: Number>(op: &str, x: &[T], shape: Shape, axes: Axes, n: usize) -> Result<(Vec<u32>, Shape)> {
    let x = View::new(x, shape);
    let (mut out, mut places) = (vec![T::zeroed(); n], vec![0u32; n]);
    let shape = match op {
        "sum" => cpu::sum(x, axes, &mut out),
        "amax" => cpu::amax(x, axes, &mut out),
        "amin" => cpu::amin(x, axes, &mut out),
        "argmax" => cpu::argmax(x, axes, &mut places),
        "argmin" => cpu::argmin(x, axes, &mut places),
        _ => {
            let floats = View::<f32>::new(bytemuck::cast_slice(x.data()), shape);
            let out = bytemuck::cast_slice_mut::<T, f32>(&mut out);
            match op {
                "mean" => cpu::mean(floats, axes, out),
                "prod" => cpu::prod(floats, axes, out),
                "norm" => cpu::norm(floats, axes, out),
                _ => cpu::variance(floats, axes, out),
            }
        }
    }?;
    Ok((if op.starts_with("arg") { places } else { words(&out) }, shape))
}
