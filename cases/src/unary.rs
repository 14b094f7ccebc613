//! What tests and benches know of each operation of one f32 operand.

use std::f32::consts::{FRAC_1_SQRT_2, FRAC_2_SQRT_PI, FRAC_PI_2, FRAC_PI_4, LN_2, PI, SQRT_2, TAU};

use super::Bound;
use super::reference::{binary, erfc, gated, sigmoid};

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
    /// What must come out, with these parameters. NaN is not asked for: it stays NaN.
    pub exact: fn(f64, [f64; 2]) -> f64,
    /// The loop that one writes by hand, which benches compare with.
    pub by_hand: fn(&[f32], &mut [f32]),
    /// Numbers that its documentation names, with what they become, to the bit.
    pub special: &'static [(f32, f32)],
}

/// The first is SELU's: a product with it rounds, as one with a power of two would not.
const PARAMETERS: [f32; 2] = [1.673_263_2, 2.5];
const INF: f32 = f32::INFINITY;
const NAN: f32 = f32::NAN;
const TINY: f32 = 1e-40;

const fn row(
    name: &'static str,
    range: (f32, f32),
    bound: Bound,
    exact: fn(f64, [f64; 2]) -> f64,
    by_hand: fn(&[f32], &mut [f32]),
    special: &'static [(f32, f32)],
) -> Unary {
    Unary { name, range, bound, parameters: PARAMETERS, exact, by_hand, special }
}

#[inline(always)]
fn each(x: &[f32], out: &mut [f32], f: impl Fn(f32) -> f32) {
    out.iter_mut().zip(x).for_each(|(o, x)| *o = f(*x));
}

/// Every operation of one f32 operand.
pub const UNARY: &[Unary] = &[
    row(
        "neg",
        (-4.0, 4.0),
        Bound::Exact,
        |x, _| -x,
        |x, o| each(x, o, |x: f32| -x),
        &[(0.0, -0.0), (INF, -INF), (TINY, -TINY)],
    ),
    row(
        "abs",
        (-4.0, 4.0),
        Bound::Exact,
        |x, _| x.abs(),
        |x, o| each(x, o, f32::abs),
        &[(-0.0, 0.0), (-INF, INF), (-TINY, TINY)],
    ),
    row(
        "sign",
        (-4.0, 4.0),
        Bound::Exact,
        |x, _| if x == 0.0 { x } else { x.signum() },
        |x, o| each(x, o, |x: f32| if x == 0.0 { x } else { x.signum() }),
        &[(-0.0, -0.0), (0.0, 0.0), (-INF, -1.0), (TINY, 1.0), (-TINY, -1.0)],
    ),
    row(
        "floor",
        (-9.0, 9.0),
        Bound::Exact,
        |x, _| x.floor(),
        |x, o| each(x, o, f32::floor),
        &[(-0.0, -0.0), (-INF, -INF), (INF, INF)],
    ),
    row(
        "ceil",
        (-9.0, 9.0),
        Bound::Exact,
        |x, _| x.ceil(),
        |x, o| each(x, o, f32::ceil),
        &[(-0.0, -0.0), (-0.5, -0.0), (-INF, -INF), (INF, INF)],
    ),
    row(
        "round",
        (-9.0, 9.0),
        Bound::Exact,
        |x, _| x.round_ties_even(),
        |x, o| each(x, o, f32::round_ties_even),
        &[(-0.0, -0.0), (-0.3, -0.0), (2.5, 2.0), (INF, INF)],
    ),
    row(
        "sqrt",
        (0.0, 9.0),
        Bound::Ulp(0.5),
        |x, _| x.sqrt(),
        |x, o| each(x, o, f32::sqrt),
        &[(-0.0, -0.0), (0.0, 0.0), (INF, INF), (-1.0, NAN), (-INF, NAN)],
    ),
    row(
        "rsqrt",
        (0.0, 9.0),
        Bound::Ulp(1.5),
        |x, _| 1.0 / x.sqrt(),
        |x, o| each(x, o, |x: f32| 1.0 / x.sqrt()),
        &[(0.0, INF), (-0.0, -INF), (INF, 0.0), (-1.0, NAN)],
    ),
    row(
        "recip",
        (-9.0, 9.0),
        Bound::Ulp(0.5),
        |x, _| 1.0 / x,
        |x, o| each(x, o, f32::recip),
        &[(0.0, INF), (-0.0, -INF), (INF, 0.0), (-INF, -0.0)],
    ),
    row(
        "exp",
        (-106.0, 90.0),
        Bound::Ulp(1.0),
        |x, _| x.exp(),
        |x, o| each(x, o, f32::exp),
        &[(-INF, 0.0), (88.73, INF), (INF, INF), (-0.0, 1.0), (TINY, 1.0)],
    ),
    row(
        "log",
        (0.0, 4.0),
        Bound::Ulp(0.9),
        |x, _| x.ln(),
        |x, o| each(x, o, f32::ln),
        &[(0.0, -INF), (-0.0, -INF), (INF, INF), (-TINY, NAN), (1.0, 0.0)],
    ),
    row(
        "sin",
        (-100.0, 100.0),
        Bound::Ulp(1.6),
        |x, _| x.sin(),
        |x, o| each(x, o, f32::sin),
        &[(-0.0, -0.0), (0.0, 0.0), (-TINY, -TINY), (INF, NAN)],
    ),
    row(
        "cos",
        (-100.0, 100.0),
        Bound::Ulp(1.6),
        |x, _| x.cos(),
        |x, o| each(x, o, f32::cos),
        &[(-0.0, 1.0), (TINY, 1.0), (-INF, NAN)],
    ),
    row(
        "erf",
        (-4.5, 4.5),
        Bound::Ulp(1.4),
        |x, _| erf(x),
        |x, o| each(x, o, erf_by_hand),
        &[(-INF, -1.0), (INF, 1.0), (3.93, 1.0), (-0.0, -0.0), (0.0, 0.0), (TINY, TINY * FRAC_2_SQRT_PI)],
    ),
    row(
        "relu",
        (-4.0, 4.0),
        Bound::Exact,
        |x, _| binary("max", x, 0.0),
        |x, o| each(x, o, |x: f32| x.max(0.0)),
        &[(-0.0, 0.0), (TINY, TINY), (-INF, 0.0), (INF, INF)],
    ),
    row(
        "leaky_relu",
        (-4.0, 4.0),
        Bound::Ulp(0.5),
        |x, [p, _]| if x.is_sign_negative() { p * x } else { x },
        |x, o| each(x, o, |x: f32| if x < 0.0 { 1.673_263_2 * x } else { x }),
        &[],
    ),
    row(
        "elu",
        (-30.0, 2.0),
        Bound::Ulp(2.0),
        |x, [p, _]| if x.is_sign_negative() { p * x.exp_m1() } else { x },
        |x, o| each(x, o, |x: f32| if x < 0.0 { 1.673_263_2 * x.exp_m1() } else { x }),
        &[],
    ),
    row(
        "clip",
        (-4.0, 4.0),
        Bound::Exact,
        |x, [p, q]| binary("max", binary("min", x, q), p),
        |x, o| each(x, o, |x: f32| x.clamp(1.673_263_2, 2.5)),
        &[],
    ),
    row(
        "sigmoid",
        (-106.0, 20.0),
        Bound::Ulp(2.5),
        |x, _| sigmoid(x),
        |x, o| each(x, o, |x: f32| 1.0 / (1.0 + (-x).exp())),
        &[(-INF, 0.0), (INF, 1.0), (-0.0, 0.5), (TINY, 0.5)],
    ),
    row(
        "tanh",
        (-11.0, 11.0),
        Bound::Ulp(1.4),
        |x, _| x.tanh(),
        |x, o| each(x, o, f32::tanh),
        &[(-INF, -1.0), (INF, 1.0), (-0.0, -0.0), (0.0, 0.0), (-TINY, -TINY)],
    ),
    row(
        "swish",
        (-106.0, 20.0),
        Bound::Ulp(2.5),
        |x, _| gated(x, sigmoid(x)),
        |x, o| each(x, o, |x: f32| x / (1.0 + (-x).exp())),
        &[(-INF, -0.0), (INF, INF), (-0.0, -0.0), (0.0, 0.0), (TINY, TINY / 2.0)],
    ),
    row(
        "gelu",
        (-11.0, 8.0),
        Bound::Ulp(200.0),
        |x, _| gated(x, sigmoid(2.0 * (2.0 / std::f64::consts::PI).sqrt() * (x + 0.044715 * x.powi(3)))),
        |x, o| each(x, o, gelu_by_hand),
        &[(-INF, -0.0), (INF, INF), (-0.0, -0.0), (0.0, 0.0), (TINY, TINY / 2.0)],
    ),
    row(
        "gelu_erf",
        (-15.0, 8.0),
        Bound::Ulp(4.5),
        |x, _| gated(x, 0.5 * erfc(-x * std::f64::consts::FRAC_1_SQRT_2)),
        |x, o| each(x, o, |x| 0.5 * x * (1.0 + erf_by_hand(x * FRAC_1_SQRT_2))),
        &[(-INF, -0.0), (INF, INF), (-0.0, -0.0), (0.0, 0.0), (TINY, TINY / 2.0)],
    ),
    row(
        "softplus",
        (-106.0, 20.0),
        Bound::Ulp(1.8),
        |x, _| x.max(0.0) + (-x.abs()).exp().ln_1p(),
        |x, o| each(x, o, |x: f32| x.exp().ln_1p()),
        &[(-INF, 0.0), (INF, INF), (-0.0, LN_2), (TINY, LN_2)],
    ),
    row(
        "trunc",
        (-9.0, 9.0),
        Bound::Exact,
        |x, _| x.trunc(),
        |x, o| each(x, o, f32::trunc),
        &[(-0.0, -0.0), (-0.5, -0.0), (-INF, -INF), (INF, INF)],
    ),
    row(
        "exp2",
        (-152.0, 130.0),
        Bound::Ulp(1.1),
        |x, _| x.exp2(),
        |x, o| each(x, o, f32::exp2),
        &[(-INF, 0.0), (128.0, INF), (INF, INF), (-0.0, 1.0), (TINY, 1.0), (-126.0, f32::MIN_POSITIVE)],
    ),
    row(
        "expm1",
        (-20.0, 90.0),
        Bound::Ulp(1.7),
        |x, _| x.exp_m1(),
        |x, o| each(x, o, f32::exp_m1),
        &[(-INF, -1.0), (88.73, INF), (INF, INF), (-0.0, -0.0), (0.0, 0.0), (TINY, TINY)],
    ),
    row(
        "log2",
        (0.0, 4.0),
        Bound::Ulp(0.6),
        |x, _| x.log2(),
        |x, o| each(x, o, f32::log2),
        &[
            (0.0, -INF),
            (-0.0, -INF),
            (INF, INF),
            (-TINY, NAN),
            (1.0, 0.0),
            (8.0, 3.0),
            (f32::MIN_POSITIVE, -126.0),
        ],
    ),
    row(
        "log1p",
        (-1.0, 4.0),
        Bound::Ulp(1.5),
        |x, _| x.ln_1p(),
        |x, o| each(x, o, f32::ln_1p),
        &[(-1.0, -INF), (-0.0, -0.0), (0.0, 0.0), (INF, INF), (-1.5, NAN), (-INF, NAN), (TINY, TINY)],
    ),
    row(
        "sinh",
        (-90.0, 90.0),
        Bound::Ulp(1.8),
        |x, _| x.sinh(),
        |x, o| each(x, o, f32::sinh),
        &[(-INF, -INF), (INF, INF), (-0.0, -0.0), (0.0, 0.0), (-TINY, -TINY), (89.5, INF)],
    ),
    row(
        "cosh",
        (-90.0, 90.0),
        Bound::Ulp(1.6),
        |x, _| x.cosh(),
        |x, o| each(x, o, f32::cosh),
        &[(-INF, INF), (INF, INF), (-0.0, 1.0), (TINY, 1.0), (-89.5, INF)],
    ),
    row(
        "asinh",
        (-9.0, 9.0),
        Bound::Ulp(2.0),
        |x, _| asinh(x),
        |x, o| each(x, o, |x| f64::from(x).asinh() as f32),
        &[(-INF, -INF), (INF, INF), (-0.0, -0.0), (0.0, 0.0), (-TINY, -TINY)],
    ),
    row(
        "acosh",
        (0.9, 9.0),
        Bound::Ulp(2.4),
        |x, _| acosh(x),
        |x, o| each(x, o, |x| f64::from(x).acosh() as f32),
        &[(1.0, 0.0), (INF, INF), (0.5, NAN), (-INF, NAN), (-0.0, NAN)],
    ),
    row(
        "atanh",
        (-1.0, 1.0),
        Bound::Ulp(2.2),
        |x, _| if x == 0.0 { x } else { 0.5 * (2.0 * x / (1.0 - x)).ln_1p() },
        |x, o| each(x, o, |x| f64::from(x).atanh() as f32),
        &[(1.0, INF), (-1.0, -INF), (1.5, NAN), (-INF, NAN), (-0.0, -0.0), (0.0, 0.0), (TINY, TINY)],
    ),
    row(
        "asin",
        (-1.0, 1.0),
        Bound::Ulp(2.6),
        |x, _| x.asin(),
        |x, o| each(x, o, f32::asin),
        &[
            (1.0, FRAC_PI_2),
            (-1.0, -FRAC_PI_2),
            (1.5, NAN),
            (-INF, NAN),
            (-0.0, -0.0),
            (0.0, 0.0),
            (TINY, TINY),
        ],
    ),
    row(
        "acos",
        (-1.0, 1.0),
        Bound::Ulp(1.3),
        |x, _| x.acos(),
        |x, o| each(x, o, f32::acos),
        &[(1.0, 0.0), (-1.0, PI), (1.5, NAN), (INF, NAN), (-0.0, FRAC_PI_2), (0.0, FRAC_PI_2)],
    ),
    row(
        "atan",
        (-9.0, 9.0),
        Bound::Ulp(2.4),
        |x, _| x.atan(),
        |x, o| each(x, o, f32::atan),
        &[(INF, FRAC_PI_2), (-INF, -FRAC_PI_2), (-0.0, -0.0), (0.0, 0.0), (-TINY, -TINY)],
    ),
    row(
        "erfc",
        (-4.5, 10.2),
        Bound::Ulp(4.7),
        |x, _| if x.abs() < 0.5 { 1.0 - erf(x) } else { erfc(x) },
        |x, o| each(x, o, erfc_by_hand),
        &[(-INF, 2.0), (INF, 0.0), (10.1, 0.0), (-0.0, 1.0), (0.0, 1.0)],
    ),
    row(
        "hard_sigmoid",
        (-4.0, 4.0),
        Bound::Ulp(1.5),
        |x, _| (x + 3.0).clamp(0.0, 6.0) / 6.0,
        |x, o| each(x, o, |x: f32| (x + 3.0).clamp(0.0, 6.0) / 6.0),
        &[(-INF, 0.0), (INF, 1.0), (3.0, 1.0), (-3.0, 0.0), (-0.0, 0.5)],
    ),
    row(
        "hard_swish",
        (-4.0, 4.0),
        Bound::Ulp(2.5),
        |x, _| gated(x, (x + 3.0).clamp(0.0, 6.0) / 6.0),
        |x, o| each(x, o, |x: f32| x * (x + 3.0).clamp(0.0, 6.0) / 6.0),
        &[(-INF, -0.0), (INF, INF), (3.0, 3.0), (-3.0, -0.0), (-0.0, -0.0), (0.0, 0.0)],
    ),
    row(
        "softsign",
        (-9.0, 9.0),
        Bound::Ulp(1.6),
        |x, _| if x.is_infinite() { x.signum() } else { x / (1.0 + x.abs()) },
        |x, o| each(x, o, |x: f32| x / (1.0 + x.abs())),
        &[(-INF, -1.0), (INF, 1.0), (-0.0, -0.0), (0.0, 0.0), (TINY, TINY)],
    ),
    row(
        "mish",
        (-106.0, 20.0),
        Bound::Ulp(4.5),
        |x, _| mish(x),
        |x, o| each(x, o, |x: f32| x * x.exp().ln_1p().tanh()),
        &[(-INF, -0.0), (INF, INF), (-0.0, -0.0), (0.0, 0.0)],
    ),
    row(
        "selu",
        (-30.0, 2.0),
        Bound::Ulp(2.0),
        |x, _| {
            1.050_700_987_355_480_5
                * if x.is_sign_negative() { 1.673_263_242_354_377_2 * x.exp_m1() } else { x }
        },
        |x, o| each(x, o, |x: f32| if x < 0.0 { 1.758_099_3 * x.exp_m1() } else { 1.050_701 * x }),
        &[(-INF, -1.758_099_3), (INF, INF), (-0.0, -0.0), (0.0, 0.0)],
    ),
    row(
        "celu",
        (-30.0, 2.0),
        Bound::Ulp(2.4),
        |x, [p, _]| if x.is_sign_negative() { p * (x / p).exp_m1() } else { x },
        |x, o| each(x, o, |x: f32| if x < 0.0 { 1.673_263_2 * (x / 1.673_263_2).exp_m1() } else { x }),
        &[],
    ),
    row(
        "pow_scalar",
        (0.0, 100.0),
        Bound::Ulp(1.2),
        |x, [_, q]| x.powf(q),
        |x, o| each(x, o, |x: f32| x.powf(2.5)),
        &[],
    ),
];

/// Numbers at which one of them turns: ends of ranges, ties, quadrants, thresholds of our own.
#[rustfmt::skip]
pub(crate) const TURNS: &[f32] = &[
    0.5, 1.5, 2.5, 3.5, 8_388_607.5, 8_388_608.0, 16_777_216.0, 0.625, 0.6, FRAC_PI_4, FRAC_PI_2, PI, TAU, 1e5, 1e9,
    1e22, 88.722_84, 87.336_54, 103.972_08, 104.0, 94.2, 64.0, 14.6, 13.2, 10.0, 9.0, 20.0, FRAC_1_SQRT_2, SQRT_2,
    1e-45, 1e-38, 1e-8, 2.4e-4, 1e30, 0.9, 3.92, 4.0, 0.47, 0.414_213_57, 1.0, 2.414_213_5, 3.0, 6.0, 10.06, 26.0, 30.0, 89.0,
    89.415_99, 90.0, 126.0, 127.5, 128.0, 149.0, 150.0, 160.0, 4096.0, 3e-8, 1.2e-4,
];

/// The row of this name; the first one if there is none.
pub(crate) fn named(name: &str) -> &'static Unary {
    UNARY.iter().find(|row| row.name == name).unwrap_or(&UNARY[0])
}

/// The error function; near zero by its series, since there 1 − erfc has few digits.
fn erf(x: f64) -> f64 {
    if x.abs() >= 0.5 {
        return 1.0 - erfc(x);
    }
    let (mut term, mut sum) = (1.0, 1.0);
    for n in 1..20 {
        let n = f64::from(n);
        term *= -x * x / n;
        sum += term / (2.0 * n + 1.0);
    }
    x * sum * std::f64::consts::FRAC_2_SQRT_PI
}

/// The inverse hyperbolic sine, without the loss of digits near zero.
fn asinh(x: f64) -> f64 {
    let z = x.abs();
    if z.is_infinite() {
        return x;
    }
    (z + z * z / (1.0 + (z * z + 1.0).sqrt())).ln_1p().copysign(x)
}

/// The inverse hyperbolic cosine, without the loss of digits near 1.
fn acosh(x: f64) -> f64 {
    if x < 1.0 {
        return f64::NAN;
    }
    let t = x - 1.0;
    (t + (t * (t + 2.0)).sqrt()).ln_1p()
}

/// x · tanh(log(1 + eˣ)), by the exponential on the side where it is small.
fn mish(x: f64) -> f64 {
    let e = (-x.abs()).exp();
    let gate = if x >= 0.0 {
        (1.0 + 2.0 * e) / (1.0 + 2.0 * e + 2.0 * e * e)
    } else {
        e * (e + 2.0) / (e * (e + 2.0) + 2.0)
    };
    gated(x, gate)
}

fn gelu_by_hand(x: f32) -> f32 {
    0.5 * x * (1.0 + (0.797_884_6 * (x + 0.044_715 * x * x * x)).tanh())
}

/// By the Chebyshev fit of Numerical Recipes, whose relative error is 1.2e-7 everywhere.
fn erfc_by_hand(x: f32) -> f32 {
    const FIT: [f64; 10] = [
        -1.265_512_23,
        1.000_023_68,
        0.374_091_96,
        0.096_784_18,
        -0.186_288_06,
        0.278_868_07,
        -1.135_203_98,
        1.488_515_87,
        -0.822_152_23,
        0.170_872_77,
    ];
    let z = f64::from(x.abs());
    let t = 1.0 / (1.0 + 0.5 * z);
    let fit = FIT.iter().rev().fold(0.0, |sum, c| sum * t + c);
    let right = t * (fit - z * z).exp();
    (if x < 0.0 { 2.0 - right } else { right }) as f32
}

/// The error function of Abramowitz and Stegun (7.1.26), which is good to 1.5e-7.
fn erf_by_hand(x: f32) -> f32 {
    let z = x.abs();
    let t = 1.0 / (1.0 + 0.327_591_1 * z);
    let series =
        ((((1.061_405_4 * t - 1.453_152) * t + 1.421_413_7) * t - 0.284_496_74) * t + 0.254_829_6) * t;
    (1.0 - series * (-z * z).exp()).copysign(x)
}
