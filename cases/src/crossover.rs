//! The cells of `tidemill crossover`: which operations and sizes there are, and what a call of one is.

use tidemill::hybrid::{Hybrid, Input, Op, Ran};
use tidemill::{Result, Shape, cpu};

/// The operations of the classic comparison.
pub const OPS: [Op; 14] = [
    Op::Add,
    Op::Dot,
    Op::Matmul,
    Op::Relu,
    Op::LeakyRelu,
    Op::Elu,
    Op::Clip,
    Op::Sigmoid,
    Op::Tanh,
    Op::Swish,
    Op::Gelu,
    Op::Softmax,
    Op::LogSoftmax,
    Op::Conv2d,
];

/// Elements of an operand: 1 Ki to 16 Mi.
pub fn sizes() -> impl Iterator<Item = usize> {
    (10..=24).step_by(2).map(|bits| 1 << bits)
}

/// Columns of what softmax works on.
const ROW: usize = 1024;
/// Channels of convolutions, before and after.
const CHANNELS: usize = 16;
/// The shape of the weights of convolutions.
pub const KERNEL: [usize; 4] = [CHANNELS, CHANNELS, 3, 3];
/// The weights of convolutions.
pub const WEIGHTS: [f32; 9 * CHANNELS * CHANNELS] = [0.1; 9 * CHANNELS * CHANNELS];
/// The parameters of `leaky_relu`, `elu` and `clip`.
pub const PARAMETERS: [f32; 2] = [0.1, 0.5];

/// A matrix product has square operands, so not every size.
pub fn elements(op: Op, n: usize) -> usize {
    if op == Op::Matmul { ((n as f64).sqrt() as usize).pow(2) } else { n }
}

/// The shape of an operand of this many elements.
pub fn shape(op: Op, n: usize) -> Shape {
    match op {
        Op::Matmul => Shape::from([(n as f64).sqrt() as usize; 2]),
        Op::Softmax | Op::LogSoftmax => Shape::from([n / ROW, ROW]),
        Op::Conv2d => {
            let side = ((n / CHANNELS) as f64).sqrt() as usize;
            Shape::from([1, CHANNELS, side, side])
        }
        _ => Shape::from([n]),
    }
}

/// One call from slices to a slice.
pub fn call(hybrid: &Hybrid, op: Op, x: &[f32], out: &mut [f32]) -> Result<Ran> {
    let [p, q] = PARAMETERS;
    let x = || Input::from((x, shape(op, x.len())));
    match op {
        Op::Add => hybrid.add(x(), x(), out),
        Op::Dot => hybrid.dot(x(), x(), &mut out[..1]),
        Op::Matmul => hybrid.matmul(x(), x(), out),
        Op::Relu => hybrid.relu(x(), out),
        Op::LeakyRelu => hybrid.leaky_relu(x(), p, out),
        Op::Elu => hybrid.elu(x(), p, out),
        Op::Clip => hybrid.clip(x(), p, q, out),
        Op::Sigmoid => hybrid.sigmoid(x(), out),
        Op::Tanh => hybrid.tanh(x(), out),
        Op::Swish => hybrid.swish(x(), out),
        Op::Softmax => hybrid.softmax(x(), -1, out),
        Op::LogSoftmax => hybrid.log_softmax(x(), -1, out),
        Op::Conv2d => hybrid.conv2d_with(x(), (&WEIGHTS, KERNEL), cpu::Conv2d::new().padding([1, 1]), out),
        _ => hybrid.gelu(x(), out),
    }
}
