//! Elementwise operations of several operands: broadcasting, scalars, comparisons, choices and casts.

use tidemill::cpu;
use tidemill::{DType, Operand, Recording, Result, Tensor, Value};

use super::data::{BENCHED, BENCHED_SIDE, LENGTHS, Random, SPECIAL, benched, uniform};
use super::{Array, Bound, Case, Expected, Input, Kind, reference, twin};

const ARITHMETIC: [&str; 7] = ["add", "sub", "mul", "div", "pow", "min", "max"];
/// Those that have no form with a scalar; the first two have integers, too.
const MORE: [&str; 6] = ["fmod", "modulo", "atan2", "hypot", "copysign", "prelu"];
const COMPARISONS: [&str; 6] = ["eq", "ne", "lt", "le", "gt", "ge"];
const TYPES: [DType; 3] = [DType::F32, DType::I32, DType::U32];

/// The accuracy that the documentation states.
fn bound(op: &str) -> Bound {
    match op {
        "min" | "max" | "fmod" | "copysign" => Bound::Exact,
        "pow" => Bound::Ulp(5.0),
        "atan2" => Bound::Ulp(2.4),
        "hypot" => Bound::Ulp(1.3),
        _ => Bound::Ulp(0.5),
    }
}

/// Pairs of shapes that broadcast: scalars, rows, columns, channels, both sides at once, ones, nothing; extents that
/// are multiples of four and that are not.
const SHAPES: [(&[usize], &[usize]); 24] = [
    (&[], &[]),
    (&[5], &[]),
    (&[], &[64, 3]),
    (&[1], &[1000]),
    (&[128, 64], &[64]),
    (&[64], &[128, 64]),
    (&[37, 61], &[61]),
    (&[128, 64], &[128, 1]),
    (&[37, 61], &[37, 1]),
    (&[64, 1], &[1, 32]),
    (&[61, 1], &[1, 37]),
    (&[1, 61], &[37, 1]),
    (&[2, 3, 16, 16], &[3, 1, 1]),
    (&[2, 3, 7, 5], &[1, 3, 1, 1]),
    (&[2, 3, 7, 5], &[7, 5]),
    (&[2, 1, 8, 1], &[1, 3, 1, 4]),
    (&[2, 1, 7, 1], &[3, 1, 5]),
    (&[3, 4, 5], &[3, 1, 5]),
    (&[8, 4, 16], &[8, 1, 16]),
    (&[1, 1, 1, 1], &[2, 2, 2, 3]),
    (&[257, 1, 3], &[1, 255, 1]),
    (&[0, 3], &[3]),
    (&[4, 0, 2], &[1, 1, 2]),
    (&[10_007, 3], &[3]),
];

/// Adds the cases.
pub(crate) fn cases(out: &mut Vec<Case>) {
    for op in ARITHMETIC {
        for n in LENGTHS {
            out.push(floats(op, &[n], &[n], 4.0));
        }
        // Order matters for these two, and every mode of indexing is one of these shapes.
        let shapes = if matches!(op, "add" | "sub") { &SHAPES[..] } else { &SHAPES[6..12] };
        for (a, b) in shapes {
            out.push(floats(op, a, b, 4.0));
        }
        out.push(sweep(op, "special values", SPECIAL.len() * SPECIAL.len(), || {
            SPECIAL.iter().flat_map(|a| SPECIAL.iter().map(move |b| (*a, *b))).collect()
        }));
        out.push(sweep(op, "200003 pairs of any bits", 200_003, any_pairs));
        for dtype in [DType::I32, DType::U32] {
            if op != "pow" {
                for (a, b) in [(&[1][..], &[1][..]), (&[257], &[257]), (&[37, 61], &[61]), (&[9, 8], &[9, 1])]
                {
                    out.push(words(op, dtype, a, b));
                }
            }
        }
    }
    for op in MORE {
        for n in LENGTHS {
            out.push(floats(op, &[n], &[n], 4.0));
        }
        for (a, b) in &SHAPES[6..12] {
            out.push(floats(op, a, b, 4.0));
        }
        out.push(sweep(op, "special values", SPECIAL.len() * SPECIAL.len(), || {
            SPECIAL.iter().flat_map(|a| SPECIAL.iter().map(move |b| (*a, *b))).collect()
        }));
        out.push(sweep(op, "200003 pairs of any bits", 200_003, any_pairs));
        for dtype in [DType::I32, DType::U32] {
            if matches!(op, "fmod" | "modulo") {
                for (a, b) in
                    [(&[1][..], &[1][..]), (&[4099], &[4099]), (&[37, 61], &[61]), (&[9, 8], &[9, 1])]
                {
                    out.push(words(op, dtype, a, b));
                }
            }
        }
    }
    clamps(out);
    truths(out);
    out.push(sweep("pow", "200003 powers of any size", 200_003, || powers(1e-38, 3e38)).large());
    out.push(sweep("pow", "200003 powers of numbers near 1", 200_003, || powers(0.5, 2.0)).large());
    for op in COMPARISONS {
        for dtype in TYPES {
            for (a, b) in
                [(&[4099][..], &[4099][..]), (&[37, 61], &[61]), (&[64, 1], &[1, 32]), (&[], &[257])]
            {
                out.push(words(op, dtype, a, b));
            }
        }
    }
    for op in ARITHMETIC.into_iter().chain(COMPARISONS) {
        for dtype in TYPES {
            if op != "pow" || dtype == DType::F32 {
                for n in [0, 1, 257, 4099] {
                    let x = Input::words(dtype, &[n], move || any_words(dtype, n, 3));
                    out.push(with_scalar(op, format!("[{n}] {dtype}"), x));
                }
            }
        }
    }
    for dtype in TYPES {
        for shapes in [
            [&[1000][..], &[1000], &[1000]],
            [&[1001], &[1001], &[]],
            [&[37, 1], &[1, 61], &[61]],
            [&[64, 32], &[32], &[64, 1]],
            [&[2, 1, 8], &[3, 1], &[]],
            [&[0, 5], &[5], &[1]],
        ] {
            out.push(select(dtype, shapes));
        }
        for to in TYPES {
            for n in [1, 257, 100_003] {
                let x = Input::words(dtype, &[n], move || to_be_cast(dtype, n));
                out.push(cast(format!("[{n}] {dtype} to {to}"), x, to));
            }
        }
    }
    for (a, b) in
        [(&[33_554_437][..], &[33_554_437][..]), (&[4_194_305, 9], &[9]), (&[65_537, 513], &[65_537, 1])]
    {
        out.push(words("add", DType::U32, a, b).large());
    }
    timed(out);
}

/// Those that benches time.
fn timed(out: &mut Vec<Case>) {
    let pair = |op, a: &[usize], b: &[usize]| {
        let input = |extents: &[usize], seed| {
            let n = extents.iter().product();
            Input::new(extents, move || benched(n, seed))
        };
        binary(op, format!("{a:?} with {b:?}, positive"), [input(a, 1), input(b, 2)])
    };
    for op in ARITHMETIC.into_iter().chain(COMPARISONS) {
        out.push(pair(op, &[BENCHED], &[BENCHED]).bench(format!("op_{op}")));
        let x = Input::new(&[BENCHED], || benched(BENCHED, 3));
        out.push(
            with_scalar(op, format!("[{BENCHED}], positive"), x).bench(format!("op_{}", scalar_form(op))),
        );
    }
    for op in MORE {
        out.push(pair(op, &[BENCHED], &[BENCHED]).bench(format!("op_{op}")));
    }
    let numbers = |seed| Input::new(&[BENCHED], move || uniform(BENCHED, -4.0, 4.0, seed));
    out.push(clamp(format!("[{BENCHED}]"), [numbers(0), numbers(1), numbers(2)]).bench("op_clamp"));
    const SIDE: usize = BENCHED_SIDE;
    out.push(pair("add", &[SIDE, SIDE], &[SIDE]).bench("op_add_row"));
    out.push(pair("add", &[SIDE, SIDE], &[SIDE, 1]).bench("op_add_column"));
    out.push(pair("add", &[1 << 24], &[1 << 24]).bench("add_16m"));
    out.push(select(DType::F32, [&[BENCHED]; 3]).bench("op_select"));
    let positive = Input::new(&[BENCHED], || benched(BENCHED, 4));
    out.push(cast(format!("[{BENCHED}] positive f32 to u32"), positive, DType::U32).bench("op_cast"));
}

/// For each element of the larger shape, the one it has in the smaller, both dense.
pub(crate) fn stretched(from: &[usize], to: &[usize]) -> impl Fn(usize) -> usize + use<> {
    let mut steps = Vec::new();
    let (mut inner, mut stride) = (1, 1);
    for (d, extent) in to.iter().enumerate().rev() {
        let own = (d + from.len()).checked_sub(to.len()).map_or(1, |d| from[d]);
        steps.push((inner, *extent, if own == 1 { 0 } else { stride }));
        inner *= extent;
        stride *= own;
    }
    move |i| steps.iter().map(|(inner, extent, stride)| i / inner % extent * stride).sum()
}

/// The shape that these broadcast to.
pub(crate) fn broadcast(shapes: &[&[usize]]) -> Vec<usize> {
    let rank = shapes.iter().map(|s| s.len()).max().unwrap_or(0);
    let of = |shape: &[usize], d: usize| (d + shape.len()).checked_sub(rank).map_or(1, |d| shape[d]);
    // The extent that is not 1, which may be 0.
    let extent = |d| shapes.iter().map(|s| of(s, d)).find(|e| *e != 1).unwrap_or(1);
    (0..rank).map(extent).collect()
}

fn apply<'a>(r: &Recording, op: &str, a: &'a Tensor, b: &'a Tensor) -> Result<Value> {
    let (a, b): (Operand<'a>, Operand<'a>) = (a.into(), b.into());
    match op {
        "add" => r.add(a, b),
        "sub" => r.sub(a, b),
        "mul" => r.mul(a, b),
        "div" => r.div(a, b),
        "pow" => r.pow(a, b),
        "min" => r.min(a, b),
        "max" => r.max(a, b),
        "fmod" => r.fmod(a, b),
        "modulo" => r.modulo(a, b),
        "atan2" => r.atan2(a, b),
        "hypot" => r.hypot(a, b),
        "copysign" => r.copysign(a, b),
        "prelu" => r.prelu(a, b),
        "eq" => r.eq(a, b),
        "ne" => r.ne(a, b),
        "lt" => r.lt(a, b),
        "le" => r.le(a, b),
        "gt" => r.gt(a, b),
        _ => r.ge(a, b),
    }
}

/// The words of any number of elements, with those that matter in front.
fn any_words(dtype: DType, n: usize, seed: u64) -> Vec<u32> {
    let mut random = Random::new(seed);
    let corners = match dtype {
        DType::F32 => SPECIAL.map(f32::to_bits),
        _ => [
            0,
            1,
            u32::MAX,
            1 << 31,
            i32::MAX as u32,
            2,
            3,
            7,
            10,
            100,
            1 << 16,
            1 << 24,
            5,
            6,
            u32::MAX - 1,
            4,
        ],
    };
    let mut word = |i: usize| match random.bits() {
        _ if i < corners.len() => corners[(i + seed as usize) % corners.len()],
        // Some that are equal.
        bits if bits % 3 == 0 => corners[(bits >> 8) as usize % corners.len()],
        bits => (bits >> 32) as u32,
    };
    (0..n).map(&mut word).collect()
}

fn any_input(dtype: DType, extents: &[usize], seed: u64) -> Input {
    let n = extents.iter().product();
    Input::words(dtype, extents, move || any_words(dtype, n, seed))
}

/// An operation of two operands of one type.
fn binary(op: &'static str, what: String, inputs: [Input; 2]) -> Case {
    let kinds = [inputs[0].kind, inputs[1].kind];
    let (dtype, to) = (kinds[0].dtype, broadcast(&[kinds[0].shape.dims(), kinds[1].shape.dims()]));
    let (n, compares) = (to.iter().product(), COMPARISONS.contains(&op));
    let rounds = dtype == DType::F32 && !compares;
    let result = Kind::new(if compares { DType::U32 } else { dtype }, &to);
    let expected = move |x: &[Array]| {
        let [from_a, from_b] = kinds.map(|kind| stretched(kind.shape.dims(), &to));
        if rounds {
            let (x, y) = (x[0].of::<f32>(), x[1].of::<f32>());
            let exact = |i| reference::binary(op, f64::from(x[from_a(i)]), f64::from(y[from_b(i)]));
            return Expected::Floats((0..n).map(exact).collect());
        }
        let (x, y) = (x[0].of::<u32>(), x[1].of::<u32>());
        Expected::Words((0..n).map(|i| word_reference(op, dtype, x[from_a(i)], y[from_b(i)])).collect())
    };
    let record = move |r: &Recording, t: &[Tensor]| apply(r, op, &t[0], &t[1]);
    Case::new(op, "elementwise", what, inputs.into(), result, record, expected)
        .bound(if rounds { bound(op) } else { Bound::Exact })
        .flops(n)
        .twin(move |x, out| twin::binary(op, x, out))
}

fn any_pairs() -> Vec<(f32, f32)> {
    let mut random = Random::new(3);
    let mut any = move || f32::from_bits(random.bits() as u32);
    (0..200_003).map(|_| (any(), any())).collect()
}

/// Every choice of three numbers that break things, and shapes that broadcast.
fn clamps(out: &mut Vec<Case>) {
    const N: usize = SPECIAL.len();
    let all = |k: u32| {
        Input::new(&[N * N * N], move || (0..N * N * N).map(|i| SPECIAL[i / N.pow(k) % N]).collect())
    };
    out.push(clamp("special values".to_owned(), [all(0), all(1), all(2)]));
    for extents in [
        [&[1000][..], &[1000], &[1000]],
        [&[1001], &[], &[1001]],
        [&[37, 1], &[1, 61], &[61]],
        [&[64, 32], &[32], &[64, 1]],
        [&[2, 1, 8], &[3, 1], &[]],
        [&[0, 5], &[5], &[1]],
    ] {
        let input = |k: usize| {
            let n = extents[k].iter().product();
            Input::new(extents[k], move || uniform(n, -4.0, 4.0, k as u64))
        };
        out.push(clamp(format!("{extents:?}"), [input(0), input(1), input(2)]));
    }
}

fn clamp(what: String, inputs: [Input; 3]) -> Case {
    let shapes = inputs.each_ref().map(|input| input.kind.shape);
    let to = broadcast(&shapes.each_ref().map(|shape| shape.dims()));
    let (n, result) = (to.iter().product(), Kind::of::<f32>(&to));
    let expected = move |x: &[Array]| {
        let from = shapes.each_ref().map(|shape| stretched(shape.dims(), &to));
        let at = |k: usize, i| f64::from(x[k].of::<f32>()[from[k](i)]);
        let element = |i| reference::binary("max", reference::binary("min", at(0, i), at(2, i)), at(1, i));
        Expected::Floats((0..n).map(element).collect())
    };
    let record = |r: &Recording, t: &[Tensor]| r.clamp(&t[0], &t[1], &t[2]);
    Case::new("clamp", "elementwise", what, inputs.into(), result, record, expected)
        .flops(n)
        .twin(|x, out| cpu::clamp(x[0].view(), x[1].view(), x[2].view(), out.of_mut()))
}

/// Operations on truth values, and tests of floats.
fn truths(out: &mut Vec<Case>) {
    for op in ["logical_not", "is_nan", "is_inf"] {
        let dtype = if op == "logical_not" { DType::U32 } else { DType::F32 };
        let of = |n| test(op, Input::words(dtype, &[n], move || any_words(dtype, n, 3)));
        out.extend([0, 1, 5, 257, 4099].map(of));
        out.push(of(BENCHED).bench(format!("op_{op}")));
    }
    for op in ["logical_and", "logical_or", "logical_xor"] {
        let flags = |extents: &[usize], seed| {
            let n = extents.iter().product();
            Input::new(extents, move || any_words(DType::U32, n, seed).iter().map(|w| w % 3).collect())
        };
        let of = |a, b| logical(op, [flags(a, 1), flags(b, 2)]);
        for (a, b) in [(&[4099][..], &[4099][..]), (&[37, 61], &[61]), (&[64, 1], &[1, 32]), (&[], &[257])] {
            out.push(of(a, b));
        }
        out.push(of(&[BENCHED], &[BENCHED]).bench(format!("op_{op}")));
    }
}

fn test(op: &'static str, x: Input) -> Case {
    let Kind { dtype, shape } = x.kind;
    let expected = move |x: &[Array]| {
        let holds = |x: &u32| match op {
            "logical_not" => *x == 0,
            "is_nan" => f32::from_bits(*x).is_nan(),
            _ => f32::from_bits(*x).is_infinite(),
        };
        Expected::Words(x[0].of().iter().map(|x| u32::from(holds(x))).collect())
    };
    let record = move |r: &Recording, t: &[Tensor]| match op {
        "logical_not" => r.logical_not(&t[0]),
        "is_nan" => r.is_nan(&t[0]),
        _ => r.is_inf(&t[0]),
    };
    let result = Kind { dtype: DType::U32, shape };
    Case::new(op, "elementwise", format!("{shape} {dtype}"), vec![x], result, record, expected)
        .flops(shape.elements())
        .twin(move |x, out| match op {
            "logical_not" => cpu::logical_not(x[0].view(), out.of_mut()),
            "is_nan" => cpu::is_nan(x[0].view(), out.of_mut()),
            _ => cpu::is_inf(x[0].view(), out.of_mut()),
        })
}

fn logical(op: &'static str, inputs: [Input; 2]) -> Case {
    let shapes = inputs.each_ref().map(|input| input.kind.shape);
    let [a, b] = shapes;
    let to = broadcast(&[a.dims(), b.dims()]);
    let (n, result, what) = (to.iter().product(), Kind::of::<u32>(&to), format!("{a} with {b}"));
    let expected = move |x: &[Array]| {
        let [from_a, from_b] = shapes.each_ref().map(|shape| stretched(shape.dims(), &to));
        let (x, y) = (x[0].of::<u32>(), x[1].of::<u32>());
        let element = |i| {
            let (x, y) = (x[from_a(i)] != 0, y[from_b(i)] != 0);
            u32::from(match op {
                "logical_and" => x && y,
                "logical_or" => x || y,
                _ => x != y,
            })
        };
        Expected::Words((0..n).map(element).collect())
    };
    let record = move |r: &Recording, t: &[Tensor]| match op {
        "logical_and" => r.logical_and(&t[0], &t[1]),
        "logical_or" => r.logical_or(&t[0], &t[1]),
        _ => r.logical_xor(&t[0], &t[1]),
    };
    Case::new(op, "elementwise", what, inputs.into(), result, record, expected).flops(n).twin(
        move |x, out| {
            let (x, y) = (x[0].view(), x[1].view());
            match op {
                "logical_and" => cpu::logical_and(x, y, out.of_mut()),
                "logical_or" => cpu::logical_or(x, y, out.of_mut()),
                _ => cpu::logical_xor(x, y, out.of_mut()),
            }
        },
    )
}

fn floats(op: &'static str, a: &[usize], b: &[usize], size: f32) -> Case {
    let input = |extents: &[usize], low, seed| {
        let n = extents.iter().product();
        Input::new(extents, move || uniform(n, low, size, seed))
    };
    let low = if op == "pow" { 0.0 } else { -size };
    binary(op, format!("{a:?} with {b:?}"), [input(a, low, 1), input(b, -size, 2)])
}

fn sweep(op: &'static str, what: &str, n: usize, pairs: fn() -> Vec<(f32, f32)>) -> Case {
    let x = Input::new(&[n], move || pairs().into_iter().map(|(x, _)| x).collect());
    let y = Input::new(&[n], move || pairs().into_iter().map(|(_, y)| y).collect());
    binary(op, what.to_owned(), [x, y])
}

fn words(op: &'static str, dtype: DType, a: &[usize], b: &[usize]) -> Case {
    binary(op, format!("{a:?} with {b:?} {dtype}"), [any_input(dtype, a, 1), any_input(dtype, b, 2)])
}

/// Bases between two numbers, spaced as logarithms, and exponents that lead to every size of result.
fn powers(lo: f32, hi: f32) -> Vec<(f32, f32)> {
    let mut random = Random::new(5);
    let pair = |_| {
        let base = random.uniform(lo.log2(), hi.log2()).exp2();
        (base, random.uniform(-152.0, 130.0) / base.log2())
    };
    (0..200_003).map(pair).collect()
}

/// What an operation gives, word for word: of integers, and comparisons of floats.
fn word_reference(op: &str, dtype: DType, a: u32, b: u32) -> u32 {
    if dtype == DType::F32 {
        return reference::binary(op, f64::from(f32::from_bits(a)), f64::from(f32::from_bits(b))) as u32;
    }
    let wide = |x: u32| if dtype == DType::I32 { i64::from(x as i32) } else { i64::from(x) };
    let (a, b) = (wide(a), wide(b));
    let truth = |b: bool| i64::from(b);
    (match op {
        "add" => a + b,
        "sub" => a - b,
        "mul" => a.wrapping_mul(b),
        "div" if b == 0 => 0,
        "div" => a / b,
        "fmod" | "modulo" if b == 0 => 0,
        "fmod" => a % b,
        // Both 0 or of one sign, or one divisor further.
        "modulo" => (a % b + b) % b,
        "min" => a.min(b),
        "max" => a.max(b),
        "eq" => truth(a == b),
        "ne" => truth(a != b),
        "lt" => truth(a < b),
        "le" => truth(a <= b),
        "gt" => truth(a > b),
        _ => truth(a >= b),
    }) as u32
}

fn apply_scalar(r: &Recording, op: &str, x: &Tensor, bits: u32) -> Result<Value> {
    macro_rules! with {
        ($scalar:expr) => {
            match op {
                "add" => r.add_scalar(x, $scalar),
                "sub" => r.sub_scalar(x, $scalar),
                "mul" => r.scale(x, $scalar),
                "div" => r.div_scalar(x, $scalar),
                "pow" => r.pow_scalar(x, $scalar),
                "min" => r.min_scalar(x, $scalar),
                "max" => r.max_scalar(x, $scalar),
                "eq" => r.eq_scalar(x, $scalar),
                "ne" => r.ne_scalar(x, $scalar),
                "lt" => r.lt_scalar(x, $scalar),
                "le" => r.le_scalar(x, $scalar),
                "gt" => r.gt_scalar(x, $scalar),
                _ => r.ge_scalar(x, $scalar),
            }
        };
    }
    match x.dtype() {
        DType::F32 => with!(f32::from_bits(bits)),
        DType::I32 => with!(bits as i32),
        _ => with!(bits),
    }
}

/// The operation's name where one operand is a scalar.
fn scalar_form(op: &str) -> &'static str {
    match op {
        "add" => "add_scalar",
        "sub" => "sub_scalar",
        "mul" => "scale",
        "div" => "div_scalar",
        "pow" => "pow_scalar",
        "min" => "min_scalar",
        "max" => "max_scalar",
        "eq" => "eq_scalar",
        "ne" => "ne_scalar",
        "lt" => "lt_scalar",
        "le" => "le_scalar",
        "gt" => "gt_scalar",
        _ => "ge_scalar",
    }
}

fn with_scalar(op: &'static str, what: String, x: Input) -> Case {
    let (dtype, shape) = (x.kind.dtype, x.kind.shape);
    let compares = COMPARISONS.contains(&op);
    let rounds = dtype == DType::F32 && !compares;
    let scalar = if dtype == DType::F32 { 2.5f32.to_bits() } else { 3 };
    let expected = move |x: &[Array]| {
        if rounds {
            let exact = |x: &f32| reference::binary(op, f64::from(*x), f64::from(f32::from_bits(scalar)));
            return Expected::Floats(x[0].of().iter().map(exact).collect());
        }
        Expected::Words(x[0].of().iter().map(|x| word_reference(op, dtype, *x, scalar)).collect())
    };
    let result = Kind { dtype: if compares { DType::U32 } else { dtype }, shape };
    let record = move |r: &Recording, t: &[Tensor]| apply_scalar(r, op, &t[0], scalar);
    Case::new(scalar_form(op), "elementwise", what, vec![x], result, record, expected)
        .bound(if rounds { bound(op) } else { Bound::Exact })
        .flops(shape.elements())
        .twin(move |x, out| twin::with_scalar(op, &x[0], scalar, out))
}

fn select(dtype: DType, extents: [&'static [usize]; 3]) -> Case {
    let [mask, a, b] = extents;
    let count = mask.iter().product();
    let flags = move || any_words(DType::U32, count, 4).iter().map(|w| w % 3).collect();
    let inputs = vec![Input::new(mask, flags), any_input(dtype, a, 5), any_input(dtype, b, 6)];
    let to = broadcast(&extents);
    let (n, result) = (to.iter().product(), Kind::new(dtype, &to));
    let expected = move |x: &[Array]| {
        let [m, x, y] = [0, 1, 2].map(|k| x[k].of::<u32>());
        let [from_mask, from_a, from_b] = extents.map(|from| stretched(from, &to));
        let element = |i| if m[from_mask(i)] != 0 { x[from_a(i)] } else { y[from_b(i)] };
        Expected::Words((0..n).map(element).collect())
    };
    let record = |r: &Recording, t: &[Tensor]| r.select(&t[0], &t[1], &t[2]);
    Case::new(
        "select",
        "elementwise",
        format!("{mask:?} {a:?} {b:?} {dtype}"),
        inputs,
        result,
        record,
        expected,
    )
    .flops(n)
    .twin(|x, out| cpu::select::<u32>(x[0].view(), x[1].view(), x[2].view(), out.of_mut()))
}

/// Any elements; of floats, those around the ends of both integer types, too.
fn to_be_cast(dtype: DType, n: usize) -> Vec<u32> {
    let mut x = any_words(dtype, n, 7);
    if dtype == DType::F32 {
        let mut random = Random::new(8);
        for word in x.iter_mut().skip(16).step_by(2) {
            *word = (random.uniform(-1.0, 1.0) * random.uniform(0.0, 34.0).exp2()).to_bits();
        }
    }
    x
}

fn cast(what: String, x: Input, to: DType) -> Case {
    let Kind { dtype: from, shape } = x.kind;
    let element = move |x: &u32| match (from, to) {
        (DType::F32, DType::I32) => f32::from_bits(*x) as i32 as u32,
        (DType::F32, DType::U32) => f32::from_bits(*x) as u32,
        (DType::I32, DType::F32) => (*x as i32 as f32).to_bits(),
        (DType::U32, DType::F32) => (*x as f32).to_bits(),
        _ => *x,
    };
    let expected = move |x: &[Array]| Expected::Words(x[0].of().iter().map(element).collect());
    let result = Kind { dtype: to, shape };
    Case::new("cast", "elementwise", what, vec![x], result, move |r, t| r.cast(&t[0], to), expected)
        .flops(shape.elements())
        .twin(|x, out| twin::cast(&x[0], out))
}
