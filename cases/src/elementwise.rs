//! Elementwise operations of one operand.

use tidemill::{Epilogue, Operand, Recording, Result, Shape, Tensor, Value, cpu};

use super::data::{self, BENCHED, Random, SPECIAL};
use super::unary;
pub use super::unary::{UNARY, Unary};
use super::{Array, Bound, Case, Expected, Input, Kind, reference, twin};

/// Records one of [`UNARY`].
///
/// # Errors
///
/// Those of the operation.
pub fn apply<'a>(r: &Recording, op: &Unary, x: impl Into<Operand<'a>>) -> Result<Value> {
    record(op.name, op.parameters, r, x.into())
}

/// What the table of elementwise operations has: the operations by name, on the device, the CPU and products.
/// A step's number is named only so that the row is left out if it has none.
macro_rules! by_name {
    (one_operand { $($section:ident {
        $($(#[$doc:meta])* $name:ident($variant:ident) {
            cost: $cost:ident, codes: $row_codes:tt, cpu: $cpu:expr,
            c: $c:ident = $number:literal $c_doc:literal $(, step: $step:ident = $step_number:literal)?
        })*
    })* } other_codes $codes:tt) => {
        /// The operations of one operand in the table of elementwise operations.
        pub const IN_THE_TABLE: &[&str] = &[$($(stringify!($name),)*)*];

        /// Those of them that an epilogue has.
        pub(crate) const STEPS: &[&str] = &[$($($({ let _: u32 = $step_number; stringify!($name) },)?)*)*];

        fn record(name: &str, [p, q]: [f32; 2], r: &Recording, x: Operand<'_>) -> Result<Value> {
            match name {
                $($(stringify!($name) => r.$name(x),)*)*
                "leaky_relu" => r.leaky_relu(x, p),
                "elu" => r.elu(x, p),
                "celu" => r.celu(x, p),
                "clip" => r.clip(x, p, q),
                _ => r.pow_scalar(x, q),
            }
        }

        pub(crate) fn on_cpu(name: &str, x: &[f32], [p, q]: [f32; 2], out: &mut [f32]) -> Result<Shape> {
            match name {
                $($(stringify!($name) => cpu::$name(x, out),)*)*
                "leaky_relu" => cpu::leaky_relu(x, p, out),
                "elu" => cpu::elu(x, p, out),
                "celu" => cpu::celu(x, p, out),
                "clip" => cpu::clip(x, p, q, out),
                _ => cpu::pow_scalar(x, q, out),
            }
        }

        /// The epilogue with one function more.
        pub(crate) fn step<'a>(epilogue: Epilogue<'a>, name: &str, [p, q]: [f32; 2]) -> Epilogue<'a> {
            match name {
                $($($(stringify!($name) => { let _: u32 = $step_number; epilogue.$name() })?)*)*
                "leaky_relu" => epilogue.leaky_relu(p),
                "elu" => epilogue.elu(p),
                _ => epilogue.clip(p, q),
            }
        }
    };
}

tidemill::elementwise_ops!(by_name);

/// Points of the dense sweeps.
const SWEEP: usize = 200_003;

/// Floats of every sign, exponent and kind, evenly over the bit patterns: magnitudes are spaced as logarithms.
pub fn every_exponent(n: usize) -> Vec<f32> {
    let stride = (1u64 << 32) as f64 / n as f64;
    (0..n).map(|i| f32::from_bits((i as f64 * stride) as u32)).collect()
}

/// The numbers at which one of the operations turns, their neighbours and special ones.
fn corners() -> Vec<f32> {
    let both = unary::TURNS.iter().flat_map(|x| [*x, -*x]);
    let neighbours =
        both.flat_map(|x: f32| [x, f32::from_bits(x.to_bits() + 1), f32::from_bits(x.to_bits() - 1)]);
    neighbours.chain(SPECIAL).collect()
}

/// Adds the cases.
pub fn cases(out: &mut Vec<Case>) {
    for &op in UNARY {
        let (lo, hi) = op.range;
        for n in [0, 1, 3, 4, 5, 255, 257, 2049, 65_537] {
            out.push(case(op, format!("[{n}]"), n, move || data::uniform(n, lo, hi, n as u64)));
        }
        out.push(case(op, "special values".to_owned(), corners().len(), corners));
        let what = format!("{SWEEP} numbers of every exponent");
        out.push(case(op, what, SWEEP, || every_exponent(SWEEP)));
        let what = format!("{SWEEP} numbers from {lo} to {hi}");
        out.push(case(op, what, SWEEP, move || data::uniform(SWEEP, lo, hi, 7)).large());
        // That one is timed with the scalars.
        if op.name != "pow_scalar" {
            let case = case(op, format!("[{BENCHED}]"), BENCHED, || data::benched(BENCHED, 1));
            out.push(case.bench(format!("op_{}", op.name)));
        }
    }
    for alpha in [0.01, 0.25, 0.7, 1.0, 1.9] {
        for (name, bound) in [("leaky_relu", Bound::Ulp(0.5)), ("elu", Bound::Ulp(2.0))] {
            let op = Unary { parameters: [alpha, 0.0], range: (-30.0, 2.0), bound, ..*unary::named(name) };
            let what = format!("{SWEEP} numbers of every exponent by {alpha}");
            out.push(case(op, what, SWEEP, || every_exponent(SWEEP)).large());
            let what = format!("{SWEEP} numbers from -30 to 2 by {alpha}");
            out.push(case(op, what, SWEEP, || data::uniform(SWEEP, -30.0, 2.0, 9)).large());
        }
    }
    // Only its tail is worse.
    let gelu = Unary { range: (-1.5, 8.0), bound: Bound::Ulp(6.0), ..*unary::named("gelu") };
    let what = format!("{SWEEP} numbers from -1.5 to 8");
    out.push(case(gelu, what, SWEEP, || data::uniform(SWEEP, -1.5, 8.0, 8)));
    const LARGE: usize = 1 << 24;
    out.push(case(gelu, format!("[{LARGE}]"), LARGE, || data::benched(LARGE, 2)).bench("gelu_16m"));
    for op in ["neg", "abs", "sign"] {
        for n in [1, 5, 4099] {
            out.push(unary_i32(op, n));
        }
    }
}

fn case(op: Unary, what: String, n: usize, x: impl Fn() -> Vec<f32> + Send + Sync + 'static) -> Case {
    let expected = move |x: &[Array]| {
        let exact = |x: &f32| reference::unary(op.name, f64::from(*x), op.parameters.map(f64::from));
        Expected::Floats(x[0].of().iter().map(exact).collect())
    };
    let (inputs, result) = (vec![Input::new(&[n], x)], Kind::of::<f32>(&[n]));
    Case::new(op.name, "elementwise", what, inputs, result, move |r, t| apply(r, &op, &t[0]), expected)
        .bound(op.bound)
        .flops(n)
        .twin(move |x, out| on_cpu(op.name, x[0].of(), op.parameters, out.of_mut()))
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
    let record = move |r: &Recording, t: &[Tensor]| match op {
        "neg" => r.neg(&t[0]),
        "abs" => r.abs(&t[0]),
        _ => r.sign(&t[0]),
    };
    Case::new(op, "elementwise", format!("[{n}] i32"), inputs, result, record, expected)
        .flops(n)
        .twin(move |x, out| twin::unary_i32(op, x[0].of(), out.of_mut()))
}
