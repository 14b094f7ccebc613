//! Elementwise operations of one operand.

use tidemill::{Operand, Recording, Result, Tensor, Value};

use super::data::{self, BENCHED, Random, SPECIAL};
use super::{Array, Bound, Case, Expected, Input, Kind, reference, twin};

/// An operation of one f32 operand.
#[derive(Clone, Copy, Debug)]
pub struct Unary {
    /// Its name.
    pub name: &'static str,
    /// The range in which most of it happens.
    pub range: (f32, f32),
    /// The accuracy that its documentation states.
    pub bound: Bound,
    /// Its parameters, if it has some.
    pub parameters: [f32; 2],
}

/// The first is SELU's: a product with it rounds, as one with a power of two would not.
const PARAMETERS: [f32; 2] = [1.673_263_2, 2.5];

const fn row(name: &'static str, range: (f32, f32), bound: Bound) -> Unary {
    Unary { name, range, bound, parameters: PARAMETERS }
}

/// Every operation of one f32 operand.
pub const UNARY: [Unary; 24] = [
    row("neg", (-4.0, 4.0), Bound::Exact),
    row("abs", (-4.0, 4.0), Bound::Exact),
    row("sign", (-4.0, 4.0), Bound::Exact),
    row("floor", (-9.0, 9.0), Bound::Exact),
    row("ceil", (-9.0, 9.0), Bound::Exact),
    row("round", (-9.0, 9.0), Bound::Exact),
    row("sqrt", (0.0, 9.0), Bound::Ulp(0.5)),
    row("rsqrt", (0.0, 9.0), Bound::Ulp(1.5)),
    row("recip", (-9.0, 9.0), Bound::Ulp(0.5)),
    row("exp", (-106.0, 90.0), Bound::Ulp(1.0)),
    row("log", (0.0, 4.0), Bound::Ulp(0.9)),
    row("sin", (-100.0, 100.0), Bound::Ulp(1.6)),
    row("cos", (-100.0, 100.0), Bound::Ulp(1.6)),
    row("relu", (-4.0, 4.0), Bound::Exact),
    row("leaky_relu", (-4.0, 4.0), Bound::Ulp(0.5)),
    row("elu", (-30.0, 2.0), Bound::Ulp(2.0)),
    row("clip", (-4.0, 4.0), Bound::Exact),
    row("sigmoid", (-106.0, 20.0), Bound::Ulp(2.5)),
    row("tanh", (-11.0, 11.0), Bound::Ulp(1.4)),
    row("swish", (-106.0, 20.0), Bound::Ulp(2.5)),
    row("gelu", (-11.0, 8.0), Bound::Ulp(200.0)),
    row("gelu_erf", (-15.0, 8.0), Bound::Ulp(4.5)),
    row("softplus", (-106.0, 20.0), Bound::Ulp(1.8)),
    row("pow_scalar", (0.0, 100.0), Bound::Ulp(1.2)),
];

/// Records one of [`UNARY`].
///
/// # Errors
///
/// Those of the operation.
pub fn apply<'a>(r: &mut Recording, op: &Unary, x: impl Into<Operand<'a>>) -> Result<Value> {
    let [p, q] = op.parameters;
    match op.name {
        "neg" => r.neg(x),
        "abs" => r.abs(x),
        "sign" => r.sign(x),
        "floor" => r.floor(x),
        "ceil" => r.ceil(x),
        "round" => r.round(x),
        "sqrt" => r.sqrt(x),
        "rsqrt" => r.rsqrt(x),
        "recip" => r.recip(x),
        "exp" => r.exp(x),
        "log" => r.log(x),
        "sin" => r.sin(x),
        "cos" => r.cos(x),
        "relu" => r.relu(x),
        "leaky_relu" => r.leaky_relu(x, p),
        "elu" => r.elu(x, p),
        "clip" => r.clip(x, p, q),
        "sigmoid" => r.sigmoid(x),
        "tanh" => r.tanh(x),
        "swish" => r.swish(x),
        "gelu" => r.gelu(x),
        "gelu_erf" => r.gelu_erf(x),
        "softplus" => r.softplus(x),
        _ => r.pow_scalar(x, q),
    }
}

/// Points of the dense sweeps.
const SWEEP: usize = 200_003;

/// Floats of every sign, exponent and kind, evenly over the bit patterns: magnitudes are spaced as logarithms.
pub fn every_exponent(n: usize) -> Vec<f32> {
    let stride = (1u64 << 32) as f64 / n as f64;
    (0..n).map(|i| f32::from_bits((i as f64 * stride) as u32)).collect()
}

/// Numbers at which one of the operations turns: ends of ranges, ties, quadrants, thresholds of our own.
fn corners() -> Vec<f32> {
    use std::f32::consts::{FRAC_1_SQRT_2, FRAC_PI_2, FRAC_PI_4, PI, SQRT_2, TAU};
    #[rustfmt::skip]
    let turns = [
        0.5, 1.5, 2.5, 3.5, 8_388_607.5, 8_388_608.0, 16_777_216.0, 0.625, 0.6, FRAC_PI_4, FRAC_PI_2, PI, TAU, 1e5, 1e9,
        1e22, 88.722_84, 87.336_54, 103.972_08, 104.0, 94.2, 64.0, 14.6, 13.2, 10.0, 9.0, 20.0, FRAC_1_SQRT_2, SQRT_2,
        1e-45, 1e-38, 1e-8, 2.4e-4, 1e30,
    ];
    let both = turns.iter().flat_map(|x| [*x, -*x]);
    let neighbours =
        both.flat_map(|x: f32| [x, f32::from_bits(x.to_bits() + 1), f32::from_bits(x.to_bits() - 1)]);
    neighbours.chain(SPECIAL).collect()
}

/// Adds the cases.
pub fn cases(out: &mut Vec<Case>) {
    for op in UNARY {
        let (lo, hi) = op.range;
        for n in [0, 1, 3, 4, 5, 255, 257, 2049, 65_537] {
            out.push(unary(op, format!("[{n}]"), n, move || data::uniform(n, lo, hi, n as u64)));
        }
        out.push(unary(op, "special values".to_owned(), corners().len(), corners));
        let what = format!("{SWEEP} numbers of every exponent");
        out.push(unary(op, what, SWEEP, || every_exponent(SWEEP)));
        let what = format!("{SWEEP} numbers from {lo} to {hi}");
        out.push(unary(op, what, SWEEP, move || data::uniform(SWEEP, lo, hi, 7)).large());
        // That one is timed with the scalars.
        if op.name != "pow_scalar" {
            let case = unary(op, format!("[{BENCHED}]"), BENCHED, || data::benched(BENCHED, 1));
            out.push(case.bench(format!("op_{}", op.name)));
        }
    }
    for alpha in [0.01, 0.25, 0.7, 1.0, 1.9] {
        for (name, bound) in [("leaky_relu", Bound::Ulp(0.5)), ("elu", Bound::Ulp(2.0))] {
            let op = Unary { parameters: [alpha, 0.0], ..row(name, (-30.0, 2.0), bound) };
            let what = format!("{SWEEP} numbers of every exponent by {alpha}");
            out.push(unary(op, what, SWEEP, || every_exponent(SWEEP)).large());
            let what = format!("{SWEEP} numbers from -30 to 2 by {alpha}");
            out.push(unary(op, what, SWEEP, || data::uniform(SWEEP, -30.0, 2.0, 9)).large());
        }
    }
    // Only its tail is worse.
    let gelu = row("gelu", (-1.5, 8.0), Bound::Ulp(6.0));
    let what = format!("{SWEEP} numbers from -1.5 to 8");
    out.push(unary(gelu, what, SWEEP, || data::uniform(SWEEP, -1.5, 8.0, 8)));
    const LARGE: usize = 1 << 24;
    out.push(unary(gelu, format!("[{LARGE}]"), LARGE, || data::benched(LARGE, 2)).bench("gelu_16m"));
    for op in ["neg", "abs", "sign"] {
        for n in [1, 5, 4099] {
            out.push(unary_i32(op, n));
        }
    }
}

fn unary(op: Unary, what: String, n: usize, x: impl Fn() -> Vec<f32> + Send + Sync + 'static) -> Case {
    let expected = move |x: &[Array]| {
        let exact = |x: &f32| reference::unary(op.name, f64::from(*x), op.parameters.map(f64::from));
        Expected::Floats(x[0].of().iter().map(exact).collect())
    };
    let (inputs, result) = (vec![Input::new(&[n], x)], Kind::of::<f32>(&[n]));
    Case::new(op.name, "map", what, inputs, result, move |r, t| apply(r, &op, &t[0]), expected)
        .bound(op.bound)
        .flops(n)
        .twin(move |x, out| twin::unary(op.name, x[0].of(), op.parameters, out.of_mut()))
}

fn unary_i32(op: &'static str, n: usize) -> Case {
    let x = move || {
        let mut random = Random::new(n as u64);
        let mut x: Vec<i32> = (0..n).map(|_| random.bits() as i32).collect();
        x[0] = i32::MIN;
        if n > 1 {
            x[1] = 0;
        }
        x
    };
    let expected = move |x: &[Array]| {
        let exact = |x: &i32| match op {
            "neg" => x.wrapping_neg(),
            "abs" => x.wrapping_abs(),
            _ => x.signum(),
        };
        Expected::Words(x[0].of().iter().map(|x| exact(x) as u32).collect())
    };
    let (inputs, result) = (vec![Input::new(&[n], x)], Kind::of::<i32>(&[n]));
    let record = move |r: &mut Recording, t: &[Tensor]| match op {
        "neg" => r.neg(&t[0]),
        "abs" => r.abs(&t[0]),
        _ => r.sign(&t[0]),
    };
    Case::new(op, "map", format!("[{n}] i32"), inputs, result, record, expected)
        .flops(n)
        .twin(move |x, out| twin::unary_i32(op, x[0].of(), out.of_mut()))
}
