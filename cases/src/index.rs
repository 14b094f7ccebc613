//! Reading and writing by index.

use tidemill::{DType, Recording, Result, Tensor, Value, cpu};

use super::data::{BENCHED, BENCHED_SIDE as SIDE, Random, SPECIAL};
use super::{Array, Bound, Case, Expected, Input, Kind};

/// Adds the cases.
pub(crate) fn cases(out: &mut Vec<Case>) {
    gathers(out);
    scatters(out);
    sums(out);
    counts(out);
}

/// Indices of which one in some lies outside the extent; as i32 those may be negative.
fn indices(dtype: DType, shape: &[usize], extent: usize, seed: u64) -> Input {
    let n: usize = shape.iter().product();
    Input::words(dtype, shape, move || {
        let mut random = Random::new(seed);
        let mut one = || match random.bits() {
            bits if bits % 16 == 0 => (bits >> 32) as u32 | 1 << 31,
            bits if bits % 16 == 1 => extent as u32,
            bits => ((bits >> 8) % extent.max(1) as u64) as u32,
        };
        (0..n).map(|_| one()).collect()
    })
}

/// Words that differ.
fn words(dtype: DType, shape: &[usize], seed: u64) -> Input {
    let n: usize = shape.iter().product();
    Input::words(dtype, shape, move || {
        let mut random = Random::new(seed);
        (0..n).map(|_| random.bits() as u32).collect()
    })
}

/// The shape that indices take from a table along an axis.
fn picked(table: &[usize], by: &[usize], axis: usize) -> Vec<usize> {
    [&table[..axis], by, &table[axis + 1..]].concat()
}

/// `[outer, extent, inner]` of a shape along an axis.
fn along(shape: &[usize], axis: usize) -> [usize; 3] {
    [shape[..axis].iter().product(), shape[axis], shape[axis + 1..].iter().product()]
}

/// Calls `f` with the place of each element of the updates, and its place in the table if it has one.
fn each(table: &[usize], axis: usize, indices: &[u32], mut f: impl FnMut(usize, Option<usize>)) {
    let [outer, extent, inner] = along(table, axis);
    let mut place = 0;
    for o in 0..outer {
        for &index in indices {
            for i in 0..inner {
                let index = index as usize;
                f(place, (index < extent).then(|| (o * extent + index) * inner + i));
                place += 1;
            }
        }
    }
}

fn gather(dtype: DType, table: &[usize], by: &[usize], axis: usize) -> Case {
    let (shape, extent) = (picked(table, by, axis), table[axis]);
    let what = format!("{by:?} {dtype} of {table:?} along {axis}");
    let table = table.to_vec();
    let inputs = vec![words(DType::U32, &table, 3), indices(dtype, by, extent, 5)];
    let n: usize = shape.iter().product();
    let expected = move |x: &[Array]| {
        let mut expected = vec![0u32; n];
        each(&table, axis, x[1].of(), |place, from| {
            expected[place] = from.map_or(0, |from| x[0].of::<u32>()[from]);
        });
        Expected::Words(expected)
    };
    let record = move |r: &Recording, t: &[Tensor]| r.gather(&t[0], &t[1], axis as isize);
    Case::new("gather", "elementwise", what, inputs, Kind::of::<u32>(&shape), record, expected)
        .twin(move |x, out| cpu::gather::<u32>(x[0].view(), x[1].view(), axis as isize, out.of_mut()))
}

fn gather_elements(table: &[usize], along_axis: usize, axis: usize) -> Case {
    let mut shape = table.to_vec();
    shape[axis] = along_axis;
    let what = format!("{shape:?} of {table:?} along {axis}");
    let [_, extent, inner] = along(table, axis);
    let inputs = vec![words(DType::U32, table, 3), indices(DType::U32, &shape, extent, 6)];
    let expected = move |x: &[Array]| {
        let element = |(place, &index): (usize, &u32)| {
            let (outer, index) = (place / (along_axis * inner), index as usize);
            if index < extent {
                x[0].of::<u32>()[(outer * extent + index) * inner + place % inner]
            } else {
                0
            }
        };
        Expected::Words(x[1].of::<u32>().iter().enumerate().map(element).collect())
    };
    let record = move |r: &Recording, t: &[Tensor]| r.gather_elements(&t[0], &t[1], axis as isize);
    Case::new("gather_elements", "elementwise", what, inputs, Kind::of::<u32>(&shape), record, expected).twin(
        move |x, out| cpu::gather_elements::<u32>(x[0].view(), x[1].view(), axis as isize, out.of_mut()),
    )
}

fn gather_nd(table: &[usize], positions: &[usize], depth: usize) -> Case {
    let (by, shape) = ([positions, &[depth]].concat(), [positions, &table[depth..]].concat());
    let what = format!("{by:?} of {table:?}");
    let least = table[..depth].iter().copied().min().unwrap_or(0);
    let inputs = vec![words(DType::U32, table, 3), indices(DType::U32, &by, least, 7)];
    let table = table.to_vec();
    let expected = move |x: &[Array]| {
        let inner: usize = table[depth..].iter().product();
        let mut expected = Vec::new();
        for row in x[1].of::<u32>().chunks(depth) {
            let inside = row.iter().zip(&table).all(|(&index, &extent)| (index as usize) < extent);
            let at = row
                .iter()
                .zip(&table)
                .fold(0, |at, (&index, &extent)| at * extent + index as usize % extent.max(1));
            match inside {
                true => expected.extend_from_slice(&x[0].of::<u32>()[at * inner..][..inner]),
                false => expected.extend(std::iter::repeat_n(0, inner)),
            }
        }
        Expected::Words(expected)
    };
    let record = |r: &Recording, t: &[Tensor]| r.gather_nd(&t[0], &t[1]);
    Case::new("gather_nd", "elementwise", what, inputs, Kind::of::<u32>(&shape), record, expected)
        .twin(|x, out| cpu::gather_nd::<u32>(x[0].view(), x[1].view(), out.of_mut()))
}

fn gathers(out: &mut Vec<Case>) {
    for dtype in [DType::U32, DType::I32] {
        for (table, by, axis) in [
            (&[7][..], &[5][..], 0),
            (&[5, 7], &[4], 1),
            (&[5, 7], &[3, 2], 1),
            (&[3, 5, 4], &[6], 1),
            (&[3, 5, 4], &[1], 1),
            (&[3, 5, 7], &[], 1),
            (&[3, 5, 260], &[33], 1),
            (&[2, 3, 4, 5], &[257], 2),
            (&[1, 9, 8], &[1030], 1),
            (&[4, 0, 3], &[2], 1),
            (&[4, 5, 0], &[2], 1),
            (&[4, 5], &[0], 1),
        ] {
            out.push(gather(dtype, table, by, axis));
        }
    }
    out.push(gather(DType::U32, &[SIDE, SIDE], &[SIDE], 1).bench("op_gather"));
    for (table, axis_extent, axis) in [
        (&[7][..], 9, 0),
        (&[5, 7], 1, 1),
        (&[5, 7], 3, 0),
        (&[3, 5, 4], 8, 1),
        (&[3, 5, 7, 2], 257, 2),
        (&[3, 0, 4], 2, 1),
    ] {
        out.push(gather_elements(table, axis_extent, axis));
    }
    out.push(gather_elements(&[SIDE, SIDE], SIDE, 0).bench("op_gather_elements"));
    for (table, positions, depth) in [
        (&[7][..], &[5][..], 1),
        (&[5, 7], &[4], 2),
        (&[5, 7], &[4], 1),
        (&[3, 5, 4], &[6, 2], 2),
        (&[3, 5, 4, 2], &[257], 4),
        (&[3, 5, 4, 2], &[9], 3),
        (&[3, 5], &[], 2),
        (&[3, 0], &[4], 2),
    ] {
        out.push(gather_nd(table, positions, depth));
    }
    out.push(gather_nd(&[64, 64, 64], &[BENCHED / 4], 3).bench("op_gather_nd"));
}

/// What an update does to a place, for the reference.
#[derive(Clone, Copy, PartialEq)]
enum How {
    Set,
    Add,
    Max,
    Min,
}

type Scatter = fn(&Recording, &Tensor, &Tensor, &Tensor, isize) -> Result<Value>;

impl How {
    fn op(self) -> (&'static str, Scatter) {
        match self {
            How::Set => ("scatter", |r, x, i, u, axis| r.scatter(x, i, u, axis)),
            How::Add => ("scatter_add", |r, x, i, u, axis| r.scatter_add(x, i, u, axis)),
            How::Max => ("scatter_max", |r, x, i, u, axis| r.scatter_max(x, i, u, axis)),
            How::Min => ("scatter_min", |r, x, i, u, axis| r.scatter_min(x, i, u, axis)),
        }
    }

    /// What becomes of the bits of an element.
    fn join(self, dtype: DType, a: u32, b: u32) -> u32 {
        let larger = match dtype {
            _ if self == How::Set => true,
            DType::U32 => b > a,
            DType::I32 => b as i32 > a as i32,
            _ => {
                let (x, y) = (f32::from_bits(a), f32::from_bits(b));
                if x.is_nan() || y.is_nan() {
                    return f32::NAN.to_bits();
                }
                y.total_cmp(&x).is_gt()
            }
        };
        match self {
            How::Set => b,
            How::Add => a.wrapping_add(b),
            How::Max => {
                if larger {
                    b
                } else {
                    a
                }
            }
            How::Min => {
                if larger {
                    a
                } else {
                    b
                }
            }
        }
    }
}

/// Where floats are joined, any NaN is as good as another one.
fn result_of(how: How, dtype: DType, expected: Vec<u32>) -> Expected {
    match (how, dtype) {
        (How::Max | How::Min, DType::F32) => {
            Expected::Floats(expected.into_iter().map(|bits| f64::from(f32::from_bits(bits))).collect())
        }
        _ => Expected::Words(expected),
    }
}

fn scatter(how: How, dtype: DType, table: &[usize], by: &[usize], axis: usize) -> Case {
    let (op, record) = how.op();
    let what = format!("{by:?} into {table:?} {dtype} along {axis}");
    let (of_updates, extent) = (picked(table, by, axis), table[axis]);
    // Floats of all kinds.
    let elements = move |shape: &[usize], seed: u64| {
        let n: usize = shape.iter().product();
        Input::words(dtype, shape, move || {
            let mut random = Random::new(seed);
            let mut one = || match random.bits() {
                bits if dtype != DType::F32 => bits as u32,
                bits if how == How::Add => ((bits >> 40) as f32 / 1e6 - 8.0).to_bits(),
                bits if bits % 64 == 0 => SPECIAL[(bits >> 8) as usize % SPECIAL.len()].to_bits(),
                bits if bits % 256 == 1 => 0xffc0_0001,
                bits => ((bits >> 40) as f32 - 8e6).to_bits(),
            };
            (0..n).map(|_| one()).collect()
        })
    };
    let inputs = vec![elements(table, 3), indices(DType::U32, by, extent, 5), elements(&of_updates, 4)];
    let (result, table) = (Kind::new(dtype, table), table.to_vec());
    let adds_floats = how == How::Add && dtype == DType::F32;
    let expected = move |x: &[Array]| {
        if adds_floats {
            let mut sums: Vec<(f64, f64)> =
                x[0].of::<f32>().iter().map(|x| (f64::from(*x), f64::from(x.abs()))).collect();
            each(&table, axis, x[1].of(), |place, to| {
                let (Some(to), update) = (to, f64::from(x[2].of::<f32>()[place])) else { return };
                sums[to] = (sums[to].0 + update, sums[to].1 + update.abs());
            });
            return Expected::Scaled(sums);
        }
        let mut expected = x[0].of::<u32>().to_vec();
        each(&table, axis, x[1].of(), |place, to| {
            let Some(to) = to else { return };
            expected[to] = how.join(dtype, expected[to], x[2].of::<u32>()[place]);
        });
        result_of(how, dtype, expected)
    };
    let axis = axis as isize;
    let record = move |r: &Recording, t: &[Tensor]| record(r, &t[0], &t[1], &t[2], axis);
    let bound = if adds_floats { Bound::Scaled(1e-6) } else { Bound::Exact };
    let case = Case::new(op, "elementwise", what, inputs, result, record, expected).repeated().bound(bound);
    macro_rules! twin {
        ($name:ident, $($type:ident => $of:ty),*) => {
            case.twin(move |x, out| match dtype {
                $(DType::$type => {
                    let (base, by, updates) = (x[0].view::<$of>(), x[1].view(), x[2].view());
                    cpu::$name(base, by, updates, axis, out.of_mut())
                })*
                _ => Err(tidemill::Error::Closed),
            })
        };
    }
    match how {
        How::Set => twin!(scatter, F32 => f32, I32 => i32, U32 => u32),
        How::Add => twin!(scatter_add, F32 => f32, I32 => i32, U32 => u32),
        How::Max => twin!(scatter_max, F32 => f32, I32 => i32, U32 => u32),
        How::Min => twin!(scatter_min, F32 => f32, I32 => i32, U32 => u32),
    }
}

fn scatters(out: &mut Vec<Case>) {
    for how in [How::Set, How::Add, How::Max, How::Min] {
        for dtype in [DType::U32, DType::I32, DType::F32] {
            for (table, by, axis) in [
                (&[7][..], &[5][..], 0),
                (&[1], &[300], 0),
                (&[257], &[1000], 0),
                (&[3], &[20_000], 0),
                (&[5, 7], &[9], 1),
                (&[5, 7], &[3, 4], 0),
                (&[3, 5, 4], &[6], 1),
                (&[2, 3, 4, 5], &[257], 2),
                (&[4, 5], &[], 1),
                (&[4, 0, 3], &[2], 1),
                (&[4, 5], &[0], 1),
            ] {
                out.push(scatter(how, dtype, table, by, axis));
            }
        }
    }
    for (how, name) in [
        (How::Set, "op_scatter"),
        (How::Add, "op_scatter_add"),
        (How::Max, "op_scatter_max"),
        (How::Min, "op_scatter_min"),
    ] {
        out.push(scatter(how, DType::I32, &[BENCHED / 16], &[BENCHED], 0).bench(name));
    }
}

fn segment_sum(dtype: DType, shape: &[usize], segments: usize) -> Case {
    let what = format!("{shape:?} {dtype} in {segments} segments");
    let inputs = vec![words(dtype, shape, 3), indices(DType::U32, &shape[..1], segments, 5)];
    let width: usize = shape[1..].iter().product();
    let expected = move |x: &[Array]| {
        let mut expected = vec![0u32; segments * width];
        for (row, &id) in x[1].of::<u32>().iter().enumerate().filter(|(_, id)| (**id as usize) < segments) {
            for i in 0..width {
                let sum = &mut expected[id as usize * width + i];
                *sum = sum.wrapping_add(x[0].of::<u32>()[row * width + i]);
            }
        }
        Expected::Words(expected)
    };
    let result = Kind::new(dtype, &[&[segments], &shape[1..]].concat());
    let record = move |r: &Recording, t: &[Tensor]| r.segment_sum(&t[0], &t[1], segments);
    Case::new("segment_sum", "elementwise", what, inputs, result, record, expected)
        .twin(move |x, out| cpu::segment_sum::<u32>(x[0].view(), x[1].view(), segments, out.of_mut()))
}

fn bincount_weighted(dtype: DType, shape: &[usize], bins: usize) -> Case {
    let what = format!("{shape:?} {dtype} in {bins} bins");
    let inputs = vec![indices(DType::U32, shape, bins, 5), words(dtype, shape, 3)];
    let expected = move |x: &[Array]| {
        let mut expected = vec![0u32; bins];
        for (&number, &weight) in x[0].of::<u32>().iter().zip(x[1].of::<u32>()) {
            if let Some(sum) = expected.get_mut(number as usize) {
                *sum = sum.wrapping_add(weight);
            }
        }
        Expected::Words(expected)
    };
    let record = move |r: &Recording, t: &[Tensor]| r.bincount_weighted(&t[0], &t[1], bins);
    let result = Kind::new(dtype, &[bins]);
    Case::new("bincount_weighted", "elementwise", what, inputs, result, record, expected)
        .twin(move |x, out| cpu::bincount_weighted::<u32>(x[0].view(), x[1].view(), bins, out.of_mut()))
}

fn sums(out: &mut Vec<Case>) {
    for dtype in [DType::U32, DType::I32] {
        for (shape, segments) in
            [(&[5][..], 3), (&[257], 1), (&[1000], 300), (&[33, 7], 5), (&[9, 2, 4], 20), (&[0, 3], 4)]
        {
            out.push(segment_sum(dtype, shape, segments));
        }
        for (shape, bins) in [(&[5][..], 3), (&[31, 33], 100), (&[0], 4), (&[7], 0), (&[3001], 2049)] {
            out.push(bincount_weighted(dtype, shape, bins));
        }
    }
    out.push(segment_sum(DType::U32, &[BENCHED / 16, 16], 4096).bench("op_segment_sum"));
    out.push(bincount_weighted(DType::U32, &[BENCHED], 1000).bench("op_bincount_weighted"));
}

fn bincount(dtype: DType, shape: &[usize], bins: usize) -> Case {
    let what = format!("{shape:?} {dtype} in {bins} bins");
    let inputs = vec![indices(dtype, shape, bins, 5)];
    let expected = move |x: &[Array]| {
        let mut expected = vec![0u32; bins];
        for &number in x[0].of::<u32>() {
            if let Some(count) = expected.get_mut(number as usize) {
                *count += 1;
            }
        }
        Expected::Words(expected)
    };
    let record = move |r: &Recording, t: &[Tensor]| r.bincount(&t[0], bins);
    Case::new("bincount", "elementwise", what, inputs, Kind::of::<u32>(&[bins]), record, expected)
        .twin(move |x, out| cpu::bincount(x[0].view(), bins, out.of_mut()))
}

fn one_hot(dtype: DType, shape: &[usize], classes: usize) -> Case {
    let inputs = vec![indices(dtype, shape, classes, 5)];
    let expected = move |x: &[Array]| {
        let row = |&index: &u32| (0..classes).map(move |class| u32::from(class == index as usize));
        Expected::Words(x[0].of::<u32>().iter().flat_map(row).collect())
    };
    let record = move |r: &Recording, t: &[Tensor]| r.one_hot(&t[0], classes);
    let (what, result) =
        (format!("{shape:?} {dtype}, {classes} classes"), Kind::of::<u32>(&[shape, &[classes]].concat()));
    Case::new("one_hot", "elementwise", what, inputs, result, record, expected)
        .flops(shape.iter().product::<usize>() * classes)
        .twin(move |x, out| cpu::one_hot(x[0].view(), classes, out.of_mut()))
}

fn count_outside(dtype: DType, shape: &[usize], extent: usize) -> Case {
    let inputs = vec![indices(dtype, shape, extent, 5)];
    let expected = move |x: &[Array]| {
        let outside = x[0].of::<u32>().iter().filter(|index| **index as usize >= extent);
        Expected::Words(vec![outside.count() as u32])
    };
    let record = move |r: &Recording, t: &[Tensor]| r.count_outside(&t[0], extent);
    let what = format!("{shape:?} {dtype} of {extent}");
    Case::new("count_outside", "elementwise", what, inputs, Kind::of::<u32>(&[]), record, expected)
        .twin(move |x, out| cpu::count_outside(x[0].view(), extent, out.of_mut()))
}

fn counts(out: &mut Vec<Case>) {
    for dtype in [DType::U32, DType::I32] {
        // Bins on both sides of what a workgroup counts in memory of its own.
        for (shape, bins) in [
            (&[][..], 3),
            (&[5], 1),
            (&[257], 7),
            (&[31, 33], 2048),
            (&[31, 33], 2049),
            (&[0], 4),
            (&[7], 0),
            (&[100_003], 50),
        ] {
            out.push(bincount(dtype, shape, bins));
        }
        for (shape, classes) in [(&[][..], 3), (&[5], 1), (&[31, 33], 10), (&[3], 0), (&[0], 4)] {
            out.push(one_hot(dtype, shape, classes));
        }
        for (shape, extent) in [(&[][..], 3), (&[5], 1), (&[31, 33], 10), (&[300], 0), (&[0], 4)] {
            out.push(count_outside(dtype, shape, extent));
        }
    }
    // More stretches than workgroups.
    out.push(bincount(DType::U32, &[5 << 20], 2000).large());
    out.push(bincount(DType::U32, &[BENCHED], 256).bench("op_bincount"));
    out.push(one_hot(DType::U32, &[BENCHED / 16], 16).bench("op_one_hot"));
    out.push(count_outside(DType::U32, &[BENCHED], 1000).bench("op_count_outside"));
}
