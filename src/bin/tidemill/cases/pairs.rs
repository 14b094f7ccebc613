//! Elementwise operations of several operands: broadcasting, scalars, comparisons, choices and casts.

use tidemill::{Accelerator, DType, Operand, Recording, Result, Shape, Tensor, Value};

use super::data::{LENGTHS, Random, SPECIAL, uniform};
use super::{Bound, Case, Check, On, compare, compare_words, reference, twin};

const ARITHMETIC: [&str; 7] = ["add", "sub", "mul", "div", "pow", "min", "max"];
const COMPARISONS: [&str; 6] = ["eq", "ne", "lt", "le", "gt", "ge"];
const TYPES: [DType; 3] = [DType::F32, DType::I32, DType::U32];

/// The accuracy that the documentation states.
fn bound(op: &str) -> Bound {
    match op {
        "min" | "max" => Bound::Exact,
        "pow" => Bound::Ulp(5.0),
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
pub fn cases(out: &mut Vec<Case>) {
    for op in ARITHMETIC {
        for n in LENGTHS {
            out.push(floats(op, &[n], &[n], 4.0));
        }
        // Order matters for these two, and every mode of indexing is one of these shapes.
        let shapes = if matches!(op, "add" | "sub") { &SHAPES[..] } else { &SHAPES[6..12] };
        for (a, b) in shapes {
            out.push(floats(op, a, b, 4.0));
        }
        out.push(sweep(op, "special values", || {
            SPECIAL.iter().flat_map(|a| SPECIAL.iter().map(move |b| (*a, *b))).collect()
        }));
        out.push(sweep(op, "200003 pairs of any bits", || {
            let mut random = Random::new(3);
            let mut any = move || f32::from_bits(random.bits() as u32);
            (0..200_003).map(|_| (any(), any())).collect()
        }));
        for dtype in [DType::I32, DType::U32] {
            if op != "pow" {
                for (a, b) in [(&[1][..], &[1][..]), (&[257], &[257]), (&[37, 61], &[61]), (&[9, 8], &[9, 1])]
                {
                    out.push(words(op, dtype, a, b));
                }
            }
        }
    }
    out.push(sweep("pow", "200003 powers of any size", || powers(1e-38, 3e38)).large());
    out.push(sweep("pow", "200003 powers of numbers near 1", || powers(0.5, 2.0)).large());
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
                    out.push(with_scalar(op, dtype, n));
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
                out.push(cast(dtype, to, n));
            }
        }
    }
    for (a, b) in
        [(&[33_554_437][..], &[33_554_437][..]), (&[4_194_305, 9], &[9]), (&[65_537, 513], &[65_537, 1])]
    {
        out.push(words("add", DType::U32, a, b).large());
    }
}

/// For each element of the larger shape, the one it has in the smaller, both dense.
fn stretched(from: &[usize], to: &[usize]) -> impl Fn(usize) -> usize + use<> {
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

fn broadcast(shapes: &[&[usize]]) -> Vec<usize> {
    let rank = shapes.iter().map(|s| s.len()).max().unwrap_or(0);
    let of = |shape: &[usize], d: usize| (d + shape.len()).checked_sub(rank).map_or(1, |d| shape[d]);
    // The extent that is not 1, which may be 0.
    let extent = |d| shapes.iter().map(|s| of(s, d)).find(|e| *e != 1).unwrap_or(1);
    (0..rank).map(extent).collect()
}

fn shape_of(shape: &[usize]) -> Shape {
    Shape::new(shape).unwrap_or_default()
}

fn upload(gpu: &Accelerator, dtype: DType, words: &[u32], shape: &[usize]) -> Result<Tensor> {
    let shape = shape_of(shape);
    match dtype {
        DType::F32 => gpu.upload::<f32>(bytemuck::cast_slice(words), shape),
        DType::I32 => gpu.upload::<i32>(bytemuck::cast_slice(words), shape),
        _ => gpu.upload(words, shape),
    }
}

fn read(tensor: &Tensor) -> Result<Vec<u32>> {
    Ok(match tensor.dtype() {
        DType::F32 => tensor.read::<f32>()?.into_iter().map(f32::to_bits).collect(),
        DType::I32 => tensor.read::<i32>()?.into_iter().map(|x| x as u32).collect(),
        _ => tensor.read::<u32>()?,
    })
}

fn apply<'a>(r: &mut Recording, op: &str, a: &'a Tensor, b: &'a Tensor) -> Result<Value> {
    let (a, b): (Operand<'a>, Operand<'a>) = (a.into(), b.into());
    match op {
        "add" => r.add(a, b),
        "sub" => r.sub(a, b),
        "mul" => r.mul(a, b),
        "div" => r.div(a, b),
        "pow" => r.pow(a, b),
        "min" => r.min(a, b),
        "max" => r.max(a, b),
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

fn floats(op: &'static str, a: &[usize], b: &[usize], size: f32) -> Case {
    let what = format!("{a:?} with {b:?}");
    let (a, b) = (a.to_vec(), b.to_vec());
    Case::both(op, "map", what, move |on| {
        let (a, b) = (a.as_slice(), b.as_slice());
        let to = broadcast(&[a, b]);
        let (count_a, count_b) = (a.iter().product(), b.iter().product());
        let low = if op == "pow" { 0.0 } else { -size };
        let (x, y) = (uniform(count_a, low, size, 1), uniform(count_b, -size, size, 2));
        let result = match on {
            On::Gpu(gpu) => {
                let (tx, ty) = (gpu.upload(&x, shape_of(a))?, gpu.upload(&y, shape_of(b))?);
                let result = gpu.run(|r| apply(r, op, &tx, &ty))?;
                if result.shape() != shape_of(&to) {
                    let at = format!("shape {} for {to:?}", result.shape());
                    return Ok(Check { worst: f64::INFINITY, at, bound: bound(op) });
                }
                result.read::<f32>()?
            }
            On::Cpu => cpu_floats(op, (&x, a), (&y, b), to.iter().product())?,
        };
        let (from_a, from_b) = (stretched(a, &to), stretched(b, &to));
        let element = |i| reference::binary(op, f64::from(x[from_a(i)]), f64::from(y[from_b(i)]));
        let expected: Vec<f64> = (0..to.iter().product()).map(element).collect();
        Ok(compare(&expected, &result, bound(op)))
    })
}

/// On the CPU; operands come with their shapes.
fn cpu_floats(op: &str, x: (&[f32], &[usize]), y: (&[f32], &[usize]), n: usize) -> Result<Vec<f32>> {
    let words = |(x, shape)| (bytemuck::cast_slice::<f32, u32>(x), shape);
    let result = twin::binary(op, DType::F32, words(x), words(y), n)?;
    Ok(result.into_iter().map(f32::from_bits).collect())
}

fn sweep(op: &'static str, what: &str, pairs: impl Fn() -> Vec<(f32, f32)> + Send + Sync + 'static) -> Case {
    Case::both(op, "map", what.to_owned(), move |on| {
        let (x, y): (Vec<f32>, Vec<f32>) = pairs().into_iter().unzip();
        let n = x.len();
        let result = match on {
            On::Gpu(gpu) => {
                let (tx, ty) = (gpu.upload(&x, [n])?, gpu.upload(&y, [n])?);
                gpu.run(|r| apply(r, op, &tx, &ty))?.read::<f32>()?
            }
            On::Cpu => cpu_floats(op, (&x, &[n]), (&y, &[n]), n)?,
        };
        let pairs = x.iter().zip(&y);
        let expected: Vec<f64> =
            pairs.map(|(x, y)| reference::binary(op, f64::from(*x), f64::from(*y))).collect();
        Ok(compare(&expected, &result, bound(op)))
    })
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

/// What an operation gives, word for word: integers, and whatever has no rounding.
fn word_reference(op: &str, dtype: DType, a: u32, b: u32) -> u32 {
    if dtype == DType::F32 {
        let value = reference::binary(op, f64::from(f32::from_bits(a)), f64::from(f32::from_bits(b)));
        return if COMPARISONS.contains(&op) { value as u32 } else { (value as f32).to_bits() };
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

fn words(op: &'static str, dtype: DType, a: &'static [usize], b: &'static [usize]) -> Case {
    Case::both(op, "map", format!("{a:?} with {b:?} {dtype}"), move |on| {
        let to = broadcast(&[a, b]);
        let x = any_words(dtype, a.iter().product(), 1);
        let y = any_words(dtype, b.iter().product(), 2);
        let result = match on {
            On::Gpu(gpu) => {
                let (tx, ty) = (upload(gpu, dtype, &x, a)?, upload(gpu, dtype, &y, b)?);
                read(&gpu.run(|r| apply(r, op, &tx, &ty))?)?
            }
            On::Cpu => twin::binary(op, dtype, (&x, a), (&y, b), to.iter().product())?,
        };
        let (from_a, from_b) = (stretched(a, &to), stretched(b, &to));
        let element = |i| word_reference(op, dtype, x[from_a(i)], y[from_b(i)]);
        let expected: Vec<u32> = (0..to.iter().product()).map(element).collect();
        Ok(compare_words(&expected, &result))
    })
}

fn apply_scalar(r: &mut Recording, op: &str, x: &Tensor, bits: u32) -> Result<Value> {
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

fn with_scalar(op: &'static str, dtype: DType, n: usize) -> Case {
    Case::both(scalar_form(op), "map", format!("[{n}] {dtype}"), move |on| {
        let x = any_words(dtype, n, 3);
        let scalar = if dtype == DType::F32 { 2.5f32.to_bits() } else { 3 };
        let got = match on {
            On::Gpu(gpu) => {
                let tensor = upload(gpu, dtype, &x, &[n])?;
                read(&gpu.run(|r| apply_scalar(r, op, &tensor, scalar))?)?
            }
            On::Cpu => twin::with_scalar(op, dtype, &x, scalar)?,
        };
        if dtype == DType::F32 && !COMPARISONS.contains(&op) {
            let float = |x: u32| f64::from(f32::from_bits(x));
            let expected: Vec<f64> =
                x.iter().map(|x| reference::binary(op, float(*x), float(scalar))).collect();
            return Ok(compare(&expected, bytemuck::cast_slice(&got), bound(op)));
        }
        let expected: Vec<u32> = x.iter().map(|x| word_reference(op, dtype, *x, scalar)).collect();
        Ok(compare_words(&expected, &got))
    })
}

fn select(dtype: DType, shapes: [&'static [usize]; 3]) -> Case {
    let [mask, a, b] = shapes;
    Case::both("select", "map", format!("{mask:?} {a:?} {b:?} {dtype}"), move |on| {
        let to = broadcast(&shapes);
        let count = |shape: &[usize]| shape.iter().product();
        let m: Vec<u32> = any_words(DType::U32, count(mask), 4).iter().map(|w| w % 3).collect();
        let (x, y) = (any_words(dtype, count(a), 5), any_words(dtype, count(b), 6));
        let result = match on {
            On::Gpu(gpu) => {
                let tm = gpu.upload(&m, shape_of(mask))?;
                let (tx, ty) = (upload(gpu, dtype, &x, a)?, upload(gpu, dtype, &y, b)?);
                read(&gpu.run(|r| r.select(&tm, &tx, &ty))?)?
            }
            On::Cpu => twin::select((&m, mask), (&x, a), (&y, b), count(&to))?,
        };
        let [from_mask, from_a, from_b] = shapes.map(|shape| stretched(shape, &to));
        let element = |i| if m[from_mask(i)] != 0 { x[from_a(i)] } else { y[from_b(i)] };
        let expected: Vec<u32> = (0..count(&to)).map(element).collect();
        Ok(compare_words(&expected, &result))
    })
}

fn cast(from: DType, to: DType, n: usize) -> Case {
    Case::both("cast", "map", format!("[{n}] {from} to {to}"), move |on| {
        let mut x = any_words(from, n, 7);
        if from == DType::F32 {
            // Numbers around the ends of both integer types, and those between.
            let mut random = Random::new(8);
            for word in x.iter_mut().skip(16).step_by(2) {
                *word = (random.uniform(-1.0, 1.0) * random.uniform(0.0, 34.0).exp2()).to_bits();
            }
        }
        let result = match on {
            On::Gpu(gpu) => {
                let tensor = upload(gpu, from, &x, &[n])?;
                read(&gpu.run(|r| r.cast(&tensor, to))?)?
            }
            On::Cpu => twin::cast(from, to, &x)?,
        };
        let element = |x: &u32| match (from, to) {
            (DType::F32, DType::I32) => f32::from_bits(*x) as i32 as u32,
            (DType::F32, DType::U32) => f32::from_bits(*x) as u32,
            (DType::I32, DType::F32) => (*x as i32 as f32).to_bits(),
            (DType::U32, DType::F32) => (*x as f32).to_bits(),
            _ => *x,
        };
        let expected: Vec<u32> = x.iter().map(element).collect();
        Ok(compare_words(&expected, &result))
    })
}
