//! Elements of which several share a word: integers of 8 and 16 bits, truth values, and bf16.

mod floats;
mod moved;
mod rows;

use tidemill::{Bf16, Bool, DType, F16, Recording, Result, Tensor, Value};

use super::data::{BENCHED, Random};
use super::pairs::{broadcast, stretched};
use super::{Array, Case, Expected, Input, Kind, twin};

/// Adds the cases.
pub(crate) fn cases(out: &mut Vec<Case>) {
    casts(out);
    integers(out);
    chains(out);
    moved::layouts(out);
    moved::indices(out);
    rows::cases(out);
    floats::cases(out);
}

const NARROW: [DType; 4] = [DType::U8, DType::I8, DType::U16, DType::I16];
const SHORT: [usize; 11] = [1, 2, 3, 4, 5, 7, 8, 9, 257, 2049, 20_003];

/// Elements of a type: all bits occur, the extremes among them; floats are moderate.
fn some(dtype: DType, extents: &[usize], seed: u64) -> Input {
    macro_rules! of {
        ($type:ty, $from:expr) => {{
            let (n, from): (usize, fn(u32) -> $type) = (extents.iter().product(), $from);
            Input::new(extents, move || {
                let mut random = Random::new(seed);
                (0..n).map(|_| from((random.bits() >> 32) as u32)).collect::<Vec<$type>>()
            })
        }};
    }
    match dtype {
        DType::F32 => of!(f32, |x| x as i32 as f32 / 8_388_608.0),
        DType::F16 => of!(F16, |x| F16::from_f32(x as i32 as f32 / 8_388_608.0)),
        DType::Bf16 => of!(Bf16, |x| Bf16::from_f32(x as i32 as f32 / 8_388_608.0)),
        DType::I32 => of!(i32, |x| x as i32),
        DType::I16 => of!(i16, |x| x as i16),
        DType::I8 => of!(i8, |x| x as i8),
        DType::U16 => of!(u16, |x| x as u16),
        DType::U8 => of!(u8, |x| x as u8),
        DType::Bool => of!(Bool, |x| Bool::from(x % 2 == 1)),
        _ => of!(u32, |x| x),
    }
}

/// The number that the widened bits of an integer stand for.
fn number(dtype: DType, bits: u32) -> i64 {
    match dtype {
        DType::I8 | DType::I16 | DType::I32 => i64::from(bits as i32),
        _ => i64::from(bits),
    }
}

/// The widened bits of a number after a store, which wraps.
fn wrapped(dtype: DType, number: i64) -> u32 {
    match dtype {
        DType::I8 => i32::from(number as i8) as u32,
        DType::I16 => i32::from(number as i16) as u32,
        DType::U8 => u32::from(number as u8),
        DType::U16 => u32::from(number as u16),
        DType::Bool => u32::from(number != 0),
        _ => number as u32,
    }
}

fn numbers(x: &Array) -> Vec<i64> {
    x.widened().iter().map(|bits| number(x.kind.dtype, *bits)).collect()
}

fn stored(dtype: DType, numbers: impl Iterator<Item = i64>) -> Expected {
    Expected::Words(numbers.map(|n| wrapped(dtype, n)).collect())
}

fn is_float(dtype: DType) -> bool {
    matches!(dtype, DType::F32 | DType::F16 | DType::Bf16)
}

/// What a float becomes that is stored.
fn rounded(dtype: DType, x: f32) -> f64 {
    f64::from(match dtype {
        DType::F16 => F16::from_f32(x).to_f32(),
        DType::Bf16 => Bf16::from_f32(x).to_f32(),
        _ => x,
    })
}

/// The limits of an integer type.
fn limits(dtype: DType) -> [f64; 2] {
    let of = |least: i64, most: i64| [least as f64, most as f64];
    match dtype {
        DType::I8 => of(i8::MIN.into(), i8::MAX.into()),
        DType::I16 => of(i16::MIN.into(), i16::MAX.into()),
        DType::I32 => of(i32::MIN.into(), i32::MAX.into()),
        DType::U8 => of(0, u8::MAX.into()),
        DType::U16 => of(0, u16::MAX.into()),
        _ => of(0, u32::MAX.into()),
    }
}

fn casts(out: &mut Vec<Case>) {
    let case = |from: DType, to: DType, n: usize| {
        let expected = move |x: &[Array]| match (is_float(from), is_float(to)) {
            (true, true) => Expected::Floats(x[0].floats().iter().map(|x| rounded(to, *x)).collect()),
            (true, false) if to == DType::Bool => {
                Expected::Words(x[0].floats().iter().map(|x| u32::from(*x != 0.0)).collect())
            }
            (true, false) => {
                let [least, most] = limits(to);
                let whole = |x: &f32| if x.is_nan() { 0.0 } else { f64::from(*x).trunc().clamp(least, most) };
                stored(to, x[0].floats().iter().map(|x| whole(x) as i64))
            }
            (false, true) => {
                Expected::Floats(numbers(&x[0]).iter().map(|n| rounded(to, *n as f32)).collect())
            }
            (false, false) => stored(to, numbers(&x[0]).into_iter()),
        };
        let (what, input) = (format!("{from} to {to} [{n}]"), vec![some(from, &[n], 1)]);
        Case::new(
            "cast_packed",
            "elementwise",
            what,
            input,
            Kind::new(to, &[n]),
            move |r, t| r.cast(&t[0], to),
            expected,
        )
        .flops(n)
        .twin(move |x, out| twin::cast(&x[0], out))
    };
    for &from in DType::ALL {
        out.extend(DType::ALL.iter().filter(|to| **to != from).map(|to| case(from, *to, 1003)));
    }
    for n in SHORT {
        out.extend([
            case(DType::F32, DType::U8, n),
            case(DType::I8, DType::F32, n),
            case(DType::U8, DType::I16, n),
        ]);
    }
    // Everything that is no ordinary number.
    for to in NARROW.into_iter().chain([DType::Bool, DType::Bf16]) {
        let special = || {
            let around = [
                0.0, -0.0, 0.5, -0.5, 126.9, 127.0, 128.0, -128.9, -129.0, 255.9, 256.0, 32767.5, 65535.5,
                1e20,
            ];
            let others = [
                f32::NAN,
                f32::INFINITY,
                f32::MAX,
                f32::MIN_POSITIVE,
                3.3961776e38,
                1.003_906_2,
                1.011_718_8,
            ];
            around.into_iter().chain(others).flat_map(|x| [x, -x]).collect::<Vec<f32>>()
        };
        let n = special().len();
        let base = case(DType::F32, to, n);
        out.push(Case {
            what: format!("special numbers to {to}"),
            inputs: vec![Input::new(&[n], special)],
            ..base
        });
    }
    out.push(case(DType::F32, DType::U8, BENCHED).bench("op_cast_packed"));
}

type OfTwo = fn(&Recording, &Tensor, &Tensor) -> Result<Value>;

/// What an operation makes of two numbers of so many bits.
fn exact(op: &str, a: i64, b: i64, bits: i64) -> i64 {
    match op {
        "add" => a + b,
        "sub" => a - b,
        "mul" => a.wrapping_mul(b),
        "div" => {
            if b == 0 {
                0
            } else {
                a / b
            }
        }
        "min" => a.min(b),
        "max" => a.max(b),
        "bit_and" => a & b,
        "bit_or" => a | b,
        "bit_xor" => a ^ b,
        "shift_left" => {
            if (0..bits).contains(&b) {
                a << b
            } else {
                0
            }
        }
        "shift_right" => {
            if (0..bits).contains(&b) {
                a >> b
            } else if a < 0 {
                -1
            } else {
                0
            }
        }
        "lt" => i64::from(a < b),
        _ => i64::from(a == b),
    }
}

const PAIRS: [(&str, OfTwo); 13] = [
    ("add", |r, a, b| r.add(a, b)),
    ("sub", |r, a, b| r.sub(a, b)),
    ("mul", |r, a, b| r.mul(a, b)),
    ("div", |r, a, b| r.div(a, b)),
    ("min", |r, a, b| r.min(a, b)),
    ("max", |r, a, b| r.max(a, b)),
    ("bit_and", |r, a, b| r.bit_and(a, b)),
    ("bit_or", |r, a, b| r.bit_or(a, b)),
    ("bit_xor", |r, a, b| r.bit_xor(a, b)),
    ("shift_left", |r, a, b| r.shift_left(a, b)),
    ("shift_right", |r, a, b| r.shift_right(a, b)),
    ("lt", |r, a, b| r.lt(a, b)),
    ("eq", |r, a, b| r.eq(a, b)),
];

fn integers(out: &mut Vec<Case>) {
    let case = |(op, record): (&'static str, OfTwo), dtype: DType, lhs: &[usize], rhs: &[usize]| {
        let to = broadcast(&[lhs, rhs]);
        let (n, from) = (to.iter().product::<usize>(), [stretched(lhs, &to), stretched(rhs, &to)]);
        let result = if ["lt", "eq"].contains(&op) { DType::U32 } else { dtype };
        let shifts = op.starts_with("shift");
        let expected = move |x: &[Array]| {
            let (a, b) = (numbers(&x[0]), numbers(&x[1]));
            let bits = 8 * dtype.size_bytes() as i64;
            stored(result, (0..n).map(|i| exact(op, a[from[0](i)], b[from[1](i)], bits)))
        };
        // Counts of shifts: in the type, and a few beyond it.
        let second = match (shifts, dtype) {
            (true, DType::U8) => Input::new(rhs, counts::<u8>(rhs, |x| x as u8)),
            (true, DType::I8) => Input::new(rhs, counts::<i8>(rhs, |x| x as i8)),
            (true, DType::U16) => Input::new(rhs, counts::<u16>(rhs, |x| x as u16)),
            (true, DType::I16) => Input::new(rhs, counts::<i16>(rhs, |x| x as i16)),
            (true, DType::I32) => Input::new(rhs, counts::<i32>(rhs, |x| x as i32)),
            (true, DType::U32) => Input::new(rhs, counts::<u32>(rhs, |x| x as u32)),
            _ => some(dtype, rhs, 2),
        };
        let name = if shifts || op.starts_with("bit") { "bits" } else { "integer_packed" };
        let (what, inputs) =
            (format!("{op} {dtype} {lhs:?} with {rhs:?}"), vec![some(dtype, lhs, 1), second]);
        let case = Case::new(
            name,
            "elementwise",
            what,
            inputs,
            Kind::new(result, &to),
            move |r, t| record(r, &t[0], &t[1]),
            expected,
        );
        let case = case.flops(n);
        if name == "bits" { case.twin(move |x, out| twin::bits(op, x, out)) } else { case }
    };
    for pair in PAIRS {
        for dtype in NARROW {
            out.push(case(pair, dtype, &[1003], &[1003]));
        }
    }
    for n in SHORT {
        out.push(case(PAIRS[0], DType::U8, &[n], &[n]));
        out.push(case(PAIRS[2], DType::I16, &[n], &[n]));
    }
    for (lhs, rhs) in
        [([7, 5], [1, 5]), ([6, 8], [1, 8]), ([6, 8], [6, 1]), ([9, 3], [1, 1]), ([1, 12], [5, 12])]
    {
        for dtype in NARROW {
            out.push(case(PAIRS[1], dtype, &lhs, &rhs));
        }
    }
    for pair in &PAIRS[6..11] {
        for dtype in [DType::I32, DType::U32] {
            out.push(case(*pair, dtype, &[1003], &[1003]));
        }
    }
    out.push(case(PAIRS[0], DType::U8, &[BENCHED], &[BENCHED]).bench("op_integer_packed"));
    out.push(case(PAIRS[8], DType::U32, &[BENCHED], &[BENCHED]).bench("op_bits"));
    ones(out);
}

fn counts<T: tidemill::Element>(
    extents: &[usize],
    from: fn(i64) -> T,
) -> impl Fn() -> Vec<T> + Send + Sync + 'static {
    let n: usize = extents.iter().product();
    move || (0..n).map(|i| from([0, 1, 3, 7, 8, 9, 15, 16, 31, 32, 100, -1][i % 12])).collect()
}

/// Operations on the bits of one operand.
fn ones(out: &mut Vec<Case>) {
    for dtype in NARROW.into_iter().chain([DType::I32, DType::U32]) {
        let bits = 8 * dtype.size_bytes() as u32;
        let own = u32::MAX >> (32 - bits);
        let count = move |x: &[Array]| {
            Expected::Words(x[0].widened().iter().map(|x| (x & own).count_ones()).collect())
        };
        let other = move |x: &[Array]| stored(dtype, numbers(&x[0]).into_iter().map(|n| !n));
        let n = 1003;
        let input = || vec![some(dtype, &[n], 1)];
        let (counted, same) = (Kind::of::<u32>(&[n]), Kind::new(dtype, &[n]));
        let case = Case::new(
            "bits",
            "elementwise",
            format!("count_ones {dtype}"),
            input(),
            counted,
            |r, t| r.count_ones(&t[0]),
            count,
        );
        out.push(case.twin(|x, out| twin::bits("count_ones", x, out)));
        let case = Case::new(
            "bits",
            "elementwise",
            format!("bit_not {dtype}"),
            input(),
            same,
            |r, t| r.bit_not(&t[0]),
            other,
        );
        out.push(case.twin(|x, out| twin::bits("bit_not", x, out)));
    }
}

/// Fused, the results in between wrap as if they had been stored.
fn chains(out: &mut Vec<Case>) {
    let case = |dtype: DType, n: usize| {
        let record = |r: &Recording, t: &[Tensor]| {
            let product = r.mul(&t[0], &t[1])?;
            let sum = r.add(product, &t[0])?;
            let quotient = r.div(sum, &t[1])?;
            r.max(quotient, &t[0])
        };
        let expected = move |x: &[Array]| {
            let store = |n: i64| number(dtype, wrapped(dtype, n));
            let (a, b) = (numbers(&x[0]), numbers(&x[1]));
            let exact = |(a, b): (i64, i64)| store(exact("div", store(store(a * b) + a), b, 0)).max(a);
            stored(dtype, a.into_iter().zip(b).map(exact))
        };
        let inputs = vec![some(dtype, &[n], 1), some(dtype, &[n], 2)];
        let what = format!("max((a * b + a) / b, a) {dtype} [{n}]");
        Case::new("chain_packed", "elementwise", what, inputs, Kind::new(dtype, &[n]), record, expected)
            .flops(4 * n)
    };
    for dtype in NARROW {
        out.extend([5, 1000, 4097].map(|n| case(dtype, n)));
    }
    out.push(case(DType::U8, BENCHED).bench("op_chain_packed"));
    let select = |n: usize| {
        let record = |r: &Recording, t: &[Tensor]| {
            let mask = r.logical_or(r.logical_not(&t[0])?, &t[1])?;
            r.select(mask, &t[2], r.bit_not(&t[2])?)
        };
        let expected = |x: &[Array]| {
            let (a, b, c) = (numbers(&x[0]), numbers(&x[1]), numbers(&x[2]));
            stored(DType::U8, (0..a.len()).map(|i| if a[i] == 0 || b[i] != 0 { c[i] } else { !c[i] }))
        };
        let inputs = vec![some(DType::Bool, &[n], 1), some(DType::Bool, &[n], 2), some(DType::U8, &[n], 3)];
        let what = format!("select by bool [{n}]");
        Case::new("chain_packed", "elementwise", what, inputs, Kind::of::<u8>(&[n]), record, expected)
            .flops(3 * n)
    };
    out.extend([1, 6, 1001].map(select));
}
