//! Scans and sorts.

use tidemill::args::{Along, Sort};
use tidemill::{DType, Recording, Result, Tensor, Value, cpu};

use super::data::{BENCHED, BENCHED_SIDE as SIDE, Random, SPECIAL};
use super::{Array, Bound, Case, Expected, Input, Kind};

/// What a case's keys are called, and what each is of its number.
type Pattern = (&'static str, fn(u32) -> u32);

/// Adds the cases.
pub(crate) fn cases(out: &mut Vec<Case>) {
    scans(out);
    sorts(out);
    packed(out);
}

/// Elements of all kinds of which many are the same.
fn few(dtype: DType, shape: &[usize], seed: u64) -> Input {
    let n: usize = shape.iter().product();
    Input::words(dtype, shape, move || {
        let mut random = Random::new(seed);
        let mut one = || match (dtype, random.bits()) {
            (DType::F32, bits) if bits % 4 == 0 => SPECIAL[(bits >> 8) as usize % SPECIAL.len()].to_bits(),
            (DType::F32, bits) => ((bits >> 54) as f32 - 500.0).to_bits(),
            (_, bits) if bits % 4 == 0 => (bits >> 8) as u32,
            (_, bits) => ((bits >> 54) as u32).wrapping_sub(500),
        };
        (0..n).map(|_| one()).collect()
    })
}

/// An unsigned key that orders as the elements do; NaN is behind all else.
fn key(dtype: DType, bits: u32) -> u32 {
    match dtype {
        DType::F32 if f32::from_bits(bits).is_nan() => u32::MAX,
        DType::F32 if bits >> 31 == 1 => !bits,
        DType::F32 | DType::I32 => bits ^ 1 << 31,
        _ => bits,
    }
}

/// Bits of elements: any NaN is as good as another one.
fn elements(dtype: DType, bits: Vec<u32>) -> Expected {
    match dtype {
        DType::F32 => {
            Expected::Floats(bits.into_iter().map(|bits| f64::from(f32::from_bits(bits))).collect())
        }
        _ => Expected::Words(bits),
    }
}

/// `[outer, extent, inner]` of a shape along an axis.
fn along(shape: &[usize], axis: usize) -> [usize; 3] {
    [shape[..axis].iter().product(), shape[axis], shape[axis + 1..].iter().product()]
}

/// The places of each line along an axis.
fn lines([outer, extent, inner]: [usize; 3]) -> impl Iterator<Item = Vec<usize>> {
    let line = move |o: usize, i: usize| -> Vec<usize> {
        (0..extent).map(|k| (o * extent + k) * inner + i).collect()
    };
    (0..outer).flat_map(move |o| (0..inner).map(move |i| line(o, i)))
}

macro_rules! of_type {
    ($dtype:expr, $type:ident => $run:expr) => {
        match $dtype {
            DType::F32 => {
                type $type = f32;
                $run
            }
            DType::I32 => {
                type $type = i32;
                $run
            }
            _ => {
                type $type = u32;
                $run
            }
        }
    };
}

type Scan = fn(&Recording, &Tensor, Along) -> Result<Value>;

const SCANS: [(&str, Scan); 4] = [
    ("cumsum", |r, x, along| r.cumsum(x, along)),
    ("cumprod", |r, x, along| r.cumprod(x, along)),
    ("cummax", |r, x, along| r.cummax(x, along)),
    ("cummin", |r, x, along| r.cummin(x, along)),
];

/// What a scan should come to, line by line; for sums of floats with the sum of magnitudes as the scale.
fn scanned(op: &str, dtype: DType, view: [usize; 3], [exclusive, reverse]: [bool; 2], x: &[u32]) -> Expected {
    let is_float = dtype == DType::F32;
    let mut words = vec![0u32; x.len()];
    let mut floats = vec![(0.0f64, 0.0f64); x.len()];
    for mut line in lines(view) {
        if reverse {
            line.reverse();
        }
        let (mut float, mut scale) = (if op == "cumprod" { 1.0f64 } else { 0.0 }, 0.0);
        let mut word = match (op, dtype) {
            ("cumsum", _) => 0,
            ("cumprod", _) => 1,
            ("cummax", DType::F32) => f32::NEG_INFINITY.to_bits(),
            ("cummax", DType::I32) => i32::MIN as u32,
            ("cummax", _) => 0,
            (_, DType::F32) => f32::INFINITY.to_bits(),
            (_, DType::I32) => i32::MAX as u32,
            _ => u32::MAX,
        };
        for at in line {
            let (before, float_before) = (word, (float, scale));
            let (bits, value) = (x[at], f64::from(f32::from_bits(x[at])));
            let nan = is_float && [word, bits].iter().any(|bits| f32::from_bits(*bits).is_nan());
            let above = key(dtype, bits) > key(dtype, word);
            match op {
                "cumsum" => {
                    (word, float, scale) = (word.wrapping_add(bits), float + value, scale + value.abs())
                }
                "cumprod" => (word, float) = (word.wrapping_mul(bits), float * value),
                _ if nan => word = f32::NAN.to_bits(),
                "cummax" => word = if above { bits } else { word },
                _ => word = if above { word } else { bits },
            }
            if op == "cumprod" {
                scale = float.abs();
            }
            words[at] = if exclusive { before } else { word };
            floats[at] = if exclusive { float_before } else { (float, scale) };
        }
    }
    if is_float && (op.starts_with("cums") || op == "cumprod") {
        return Expected::Scaled(floats);
    }
    elements(dtype, words)
}

fn scan(
    (op, record): (&'static str, Scan),
    dtype: DType,
    shape: &[usize],
    axis: usize,
    flags: [bool; 2],
) -> Case {
    let what = format!("{shape:?} {dtype} axis {axis}, exclusive {}, reverse {}", flags[0], flags[1]);
    let how = Along::axis(axis as isize);
    let how = if flags[0] { how.exclusive() } else { how };
    let how = if flags[1] { how.reverse() } else { how };
    let (view, n) = (along(shape, axis), shape.iter().product::<usize>());
    let input = match (op, dtype) {
        // Sums and products that neither overflow nor vanish.
        ("cumsum", DType::F32) => Input::new(shape, move || super::data::uniform(n, -1.0, 1.0, 3)),
        // Many factors that come to little, exactly.
        ("cumprod", DType::F32) if n > 200_000 => {
            Input::new(shape, move || (0..n).map(|i| [2.0f32, -0.5, 0.5, 2.0, 1.0][i % 5]).collect())
        }
        ("cumprod", DType::F32) => Input::new(shape, move || super::data::uniform(n, 0.9999, 1.0001, 3)),
        ("cumsum" | "cumprod", _) => Input::words(dtype, shape, move || {
            (0..n as u32).map(|i| i.wrapping_mul(2_654_435_761) | 1).collect()
        }),
        _ => few(dtype, shape, 3),
    };
    let bound = match (op, dtype) {
        ("cumsum", DType::F32) => Bound::Scaled(1e-5),
        ("cumprod", DType::F32) => Bound::Scaled(n as f64 * 2f64.powi(-24)),
        _ => Bound::Exact,
    };
    let expected = move |x: &[Array]| scanned(op, dtype, view, flags, x[0].of());
    let record = move |r: &Recording, t: &[Tensor]| record(r, &t[0], how);
    Case::new(op, "reduce", what, vec![input], Kind::new(dtype, shape), record, expected)
        .bound(bound)
        .flops(if dtype == DType::F32 { n } else { 0 })
        .repeated()
        .twin(move |x, out| {
            of_type!(dtype, T => match op {
                "cumsum" => cpu::cumsum::<T>(x[0].view(), how, out.of_mut()),
                "cumprod" => cpu::cumprod::<T>(x[0].view(), how, out.of_mut()),
                "cummax" => cpu::cummax::<T>(x[0].view(), how, out.of_mut()),
                _ => cpu::cummin::<T>(x[0].view(), how, out.of_mut()),
            })
        })
}

fn scans(out: &mut Vec<Case>) {
    for op in SCANS {
        for dtype in [DType::F32, DType::I32, DType::U32] {
            // Rows and columns, by fours and not, of one part and of several, and totals of several.
            for (shape, axis) in [
                (&[1][..], 0),
                (&[257], 0),
                (&[1024], 0),
                (&[100_003], 0),
                (&[5, 7], 0),
                (&[5, 8], 0),
                (&[3, 300, 5], 1),
                (&[3, 1000, 8], 1),
                (&[2, 1001], 1),
                (&[0, 3], 0),
            ] {
                let flags = [shape.len() % 2 == 0, axis == 0];
                out.push(scan(op, dtype, shape, axis, flags));
                out.push(scan(op, dtype, shape, axis, [!flags[0], flags[1]]));
            }
            out.push(scan(op, dtype, &[7, 9, 4], 1, [true; 2]));
            out.push(scan(op, dtype, &[7, 9, 4], 2, [false, true]));
        }
        let name = format!("op_{}", op.0);
        out.push(scan(op, DType::F32, &[BENCHED], 0, [false; 2]).bench(name));
    }
    out.push(scan(SCANS[0], DType::F32, &[16 * BENCHED], 0, [false; 2]).bench("cumsum_16m"));
    out.push(scan(SCANS[0], DType::U32, &[300_001, 8], 0, [false; 2]).large());
}

/// The order of each line's places.
fn ordered(dtype: DType, view: [usize; 3], descending: bool, x: &[u32]) -> Vec<Vec<usize>> {
    let order = |mut line: Vec<usize>| {
        line.sort_by_key(|&at| if descending { !key(dtype, x[at]) } else { key(dtype, x[at]) });
        line
    };
    lines(view).map(order).collect()
}

/// What each line in its order gives, along the axis.
fn placed(view: [usize; 3], ordered: &[Vec<usize>], f: impl Fn(usize) -> u32) -> Vec<u32> {
    let mut out = vec![0; view.iter().product()];
    for (to, from) in lines(view).zip(ordered) {
        to.into_iter().zip(from).for_each(|(to, &from)| out[to] = f(from));
    }
    out
}

fn how(axis: usize, descending: bool) -> Sort {
    let how = Sort::along(axis as isize);
    if descending { how.descending() } else { how }
}

fn sort(input: Input, name: &str, axis: usize, descending: bool) -> Case {
    let Kind { dtype, shape } = input.kind;
    let view = along(shape.dims(), axis);
    let what = format!("{shape} {dtype} axis {axis}, descending {descending}{name}");
    let how = how(axis, descending);
    let expected = move |x: &[Array]| {
        let bits = x[0].of::<u32>();
        elements(dtype, placed(view, &ordered(dtype, view, descending, bits), |at| bits[at]))
    };
    let (result, record) = (input.kind, move |r: &Recording, t: &[Tensor]| r.sort(&t[0], how));
    Case::new("sort", "elementwise", what, vec![input], result, record, expected)
        .twin(move |x, out| of_type!(dtype, T => cpu::sort::<T>(x[0].view(), how, out.of_mut())))
}

fn argsort(dtype: DType, shape: &[usize], axis: usize, descending: bool) -> Case {
    let view = along(shape, axis);
    let what = format!("{shape:?} {dtype} axis {axis}, descending {descending}");
    let how = how(axis, descending);
    let expected = move |x: &[Array]| {
        let [_, extent, inner] = view;
        let ordered = ordered(dtype, view, descending, x[0].of());
        Expected::Words(placed(view, &ordered, |at| (at / inner % extent) as u32))
    };
    let record = move |r: &Recording, t: &[Tensor]| r.argsort(&t[0], how);
    Case::new(
        "argsort",
        "elementwise",
        what,
        vec![few(dtype, shape, 3)],
        Kind::of::<u32>(shape),
        record,
        expected,
    )
    .twin(move |x, out| of_type!(dtype, T => cpu::argsort::<T>(x[0].view(), how, out.of_mut())))
}

/// The values alone: the keys are those of a sort.
fn sort_by_key(dtype: DType, shape: &[usize], axis: usize) -> Case {
    let view = along(shape, axis);
    let inputs = vec![few(dtype, shape, 3), few(DType::U32, shape, 4)];
    let expected = move |x: &[Array]| {
        let ordered = ordered(dtype, view, false, x[0].of());
        Expected::Words(placed(view, &ordered, |at| x[1].of::<u32>()[at]))
    };
    let record = move |r: &Recording, t: &[Tensor]| Ok(r.sort_by_key(&t[0], &t[1], axis as isize)?.1);
    let what = format!("{shape:?} {dtype} axis {axis}");
    Case::new("sort_by_key", "elementwise", what, inputs, Kind::of::<u32>(shape), record, expected).twin(
        move |x, out| {
            of_type!(dtype, T => {
                let mut keys = vec![T::default(); x[0].of::<T>().len()];
                cpu::sort_by_key::<T, u32>(x[0].view(), x[1].view(), axis as isize, &mut keys, out.of_mut())
            })
        },
    )
}

/// The elements along the axis, and behind them their places as elements.
fn topk(shape: &[usize], k: usize, axis: usize) -> Case {
    let view = along(shape, axis);
    let mut part = shape.to_vec();
    part[axis] = k;
    let result = Kind::of::<u32>(&[&[2], &part[..]].concat());
    let expected = move |x: &[Array]| {
        let [outer, extent, inner] = view;
        let (bits, ordered) = (x[0].of::<u32>(), ordered(DType::U32, view, true, x[0].of()));
        let pick = |f: &dyn Fn(usize) -> u32| {
            let mut out = vec![0; outer * k * inner];
            for (to, from) in lines([outer, k, inner]).zip(&ordered) {
                to.into_iter().zip(from).for_each(|(to, &from)| out[to] = f(from));
            }
            out
        };
        Expected::Words([pick(&|at| bits[at]), pick(&|at| (at / inner % extent) as u32)].concat())
    };
    let record = move |r: &Recording, t: &[Tensor]| {
        let (largest, places) = r.topk(&t[0], k, axis as isize)?;
        r.stack([largest, places], 0)
    };
    let (what, stacked) = (format!("{k} of {shape:?} axis {axis}"), result.shape);
    Case::new("topk", "elementwise", what, vec![few(DType::U32, shape, 3)], result, record, expected).twin(
        move |x, out| {
            let (largest, places) = out.of_mut().split_at_mut(stacked.elements() / 2);
            cpu::topk::<u32>(x[0].view(), k, axis as isize, largest, places)?;
            Ok(stacked)
        },
    )
}

fn searchsorted(dtype: DType, length: usize, shape: &[usize], behind: bool) -> Case {
    let list = Input::words(dtype, &[length], move || {
        let mut bits = few(dtype, &[length], 5).make().of::<u32>().to_vec();
        bits.sort_by_key(|bits| key(dtype, *bits));
        bits
    });
    let expected = move |x: &[Array]| {
        let list = x[0].of::<u32>();
        let place = |bits: &u32| {
            let wanted = key(dtype, *bits);
            let before = |x: &u32| if behind { key(dtype, *x) <= wanted } else { key(dtype, *x) < wanted };
            list.iter().filter(|x| before(x)).count() as u32
        };
        Expected::Words(x[1].of::<u32>().iter().map(place).collect())
    };
    let record = move |r: &Recording, t: &[Tensor]| r.searchsorted(&t[0], &t[1], behind);
    let (what, inputs) =
        (format!("{shape:?} {dtype} in [{length}], behind {behind}"), vec![list, few(dtype, shape, 3)]);
    Case::new("searchsorted", "elementwise", what, inputs, Kind::of::<u32>(shape), record, expected).twin(move |x, out| {
        of_type!(dtype, T => cpu::searchsorted::<T>(x[0].view(), x[1].view(), behind, out.of_mut()))
    })
}

fn sorts(out: &mut Vec<Case>) {
    for dtype in [DType::F32, DType::I32, DType::U32] {
        // Rows by fours and not, of one run and of several.
        for (shape, axis) in [
            (&[1][..], 0),
            (&[7], 0),
            (&[252], 0),
            (&[253], 0),
            (&[1000], 0),
            (&[20_011], 0),
            (&[33, 16], 1),
            (&[5, 300], 1),
            (&[7, 5], 0),
            (&[3, 257, 4], 1),
            (&[0, 3], 1),
        ] {
            for descending in [false, true] {
                out.push(sort(few(dtype, shape, 3), "", axis, descending));
                out.push(argsort(dtype, shape, axis, descending));
            }
            out.push(sort_by_key(dtype, shape, axis));
        }
        for (length, shape) in [(1, &[5][..]), (1000, &[31, 33]), (257, &[]), (0, &[4]), (5, &[0])] {
            for behind in [false, true] {
                out.push(searchsorted(dtype, length, shape, behind));
            }
        }
    }
    let patterns: [Pattern; 3] =
        [(", all equal", |_| 7), (", sorted", |i| i * 3), (", turned round", |i| u32::MAX - i * 5)];
    for (name, f) in patterns {
        let n = 5003;
        let input = Input::new(&[n], move || (0..n as u32).map(f).collect());
        out.push(sort(input, name, 0, false));
    }
    for (shape, k, axis) in
        [(&[7][..], 3, 0), (&[1000], 100, 0), (&[5, 300], 4, 1), (&[6, 5], 6, 0), (&[5], 0, 0)]
    {
        out.push(topk(shape, k, axis));
    }
    let random = |n: usize| {
        Input::new(&[n], move || {
            let mut random = Random::new(9);
            (0..n).map(|_| random.bits() as u32).collect()
        })
    };
    out.push(sort(random(BENCHED), ", any", 0, false).bench("sort_1m_u32"));
    out.push(sort(few(DType::F32, &[SIDE, SIDE], 3), "", 1, false).bench("op_sort"));
    out.push(argsort(DType::F32, &[BENCHED], 0, false).bench("op_argsort"));
    out.push(sort_by_key(DType::U32, &[BENCHED], 0).bench("op_sort_by_key"));
    out.push(topk(&[BENCHED], 100, 0).bench("topk_1m_100"));
    out.push(topk(&[SIDE, SIDE], 10, 1).bench("op_topk"));
    out.push(searchsorted(DType::U32, 4096, &[BENCHED / 16], false).bench("op_searchsorted"));
}

/// The slices, and how many there are behind them.
fn compact(n: usize, every: u32) -> Case {
    let mask = Input::new(&[n], move || (0..n as u32).map(|i| u32::from(i.is_multiple_of(every))).collect());
    let expected = move |x: &[Array]| {
        let kept = x[0].of::<u32>().iter().zip(x[1].of::<u32>()).filter(|(_, wanted)| **wanted != 0);
        let mut kept: Vec<u32> = kept.map(|(x, _)| *x).collect();
        let count = kept.len() as u32;
        kept.resize(n, 0);
        kept.push(count);
        Expected::Words(kept)
    };
    let record = |r: &Recording, t: &[Tensor]| {
        let (kept, count) = r.compact(&t[0], &t[1])?;
        r.concat([kept, r.reshape(count, [1])?], 0)
    };
    let (what, result) = (format!("each {every} of [{n}]"), Kind::of::<u32>(&[n + 1]));
    let inputs = vec![few(DType::U32, &[n], 3), mask];
    Case::new("compact", "elementwise", what, inputs, result, record, expected).twin(move |x, out| {
        let (kept, count) = out.of_mut::<u32>().split_at_mut(n);
        count[0] = cpu::compact::<u32>(x[0].view(), x[1].view(), kept)? as u32;
        Ok(result.shape)
    })
}

fn nonzero(dtype: DType, shape: &[usize]) -> Case {
    let n: usize = shape.iter().product();
    let input = Input::words(dtype, shape, move || {
        // Zeros of both signs, and NaN.
        let one = |i: u32| [0, 5, 0, 1 << 31, 0x7fc0_0000, 0, 1][i as usize % 7];
        (0..n as u32).map(|i| one(i.wrapping_mul(2_654_435_761) >> 8)).collect()
    });
    let expected = move |x: &[Array]| {
        let is_zero = |bits: u32| bits == 0 || dtype == DType::F32 && bits == 1 << 31;
        let places = (0..n as u32).filter(|&i| !is_zero(x[0].of::<u32>()[i as usize]));
        let mut places: Vec<u32> = places.collect();
        let count = places.len() as u32;
        places.resize(n, 0);
        places.push(count);
        Expected::Words(places)
    };
    let record = |r: &Recording, t: &[Tensor]| {
        let (places, count) = r.nonzero(&t[0])?;
        r.concat([places, r.reshape(count, [1])?], 0)
    };
    let (what, result) = (format!("{shape:?} {dtype}"), Kind::of::<u32>(&[n + 1]));
    Case::new("nonzero", "elementwise", what, vec![input], result, record, expected).twin(move |x, out| {
        let (places, count) = out.of_mut::<u32>().split_at_mut(n);
        count[0] = of_type!(dtype, T => cpu::nonzero::<T>(x[0].view(), places))? as u32;
        Ok(result.shape)
    })
}

/// Values, counts, places and their number, one behind the other.
fn unique(n: usize, different: u32) -> Case {
    let input = Input::new(&[n], move || {
        (0..n as u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 8) % different).collect()
    });
    let expected = move |x: &[Array]| {
        let mut values = x[0].of::<u32>().to_vec();
        values.sort_unstable();
        values.dedup();
        let place = |x: &u32| values.partition_point(|v| v < x);
        let inverse: Vec<u32> = x[0].of::<u32>().iter().map(|x| place(x) as u32).collect();
        let (mut counts, count) = (vec![0; n], values.len() as u32);
        inverse.iter().for_each(|place| counts[*place as usize] += 1);
        values.resize(n, 0);
        Expected::Words([values, counts, inverse, vec![count]].concat())
    };
    let record = |r: &Recording, t: &[Tensor]| {
        let all = r.unique(&t[0])?;
        let count = r.reshape(all.count, [1])?;
        r.concat([all.values, all.counts, all.inverse, count], 0)
    };
    let (what, result) = (format!("{different} in [{n}]"), Kind::of::<u32>(&[3 * n + 1]));
    Case::new("unique", "elementwise", what, vec![input], result, record, expected).twin(move |x, out| {
        let (values, rest) = out.of_mut::<u32>().split_at_mut(n);
        let (counts, rest) = rest.split_at_mut(n);
        let (inverse, count) = rest.split_at_mut(n);
        count[0] = cpu::unique::<u32>(x[0].view(), values, counts, inverse)? as u32;
        Ok(result.shape)
    })
}

fn packed(out: &mut Vec<Case>) {
    for n in [1, 5, 257, 3001] {
        for every in [1, 3, 10_000] {
            out.push(compact(n, every));
        }
    }
    for dtype in [DType::F32, DType::I32, DType::U32] {
        for shape in [&[][..], &[5], &[31, 33], &[0, 4]] {
            out.push(nonzero(dtype, shape));
        }
    }
    for (n, different) in [(1, 1), (5, 2), (1000, 300), (1000, 1), (0, 1)] {
        out.push(unique(n, different));
    }
    out.push(compact(BENCHED, 3).bench("op_compact"));
    out.push(nonzero(DType::I32, &[BENCHED]).bench("op_nonzero"));
    out.push(unique(BENCHED / 4, 1000).bench("op_unique"));
}
