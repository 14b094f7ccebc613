//! Moving elements, and tensors from nothing.

use std::ops::Range;

use tidemill::cpu;
use tidemill::{Operand, Recording, Result, Shape, Value};

use super::data::Random;
use super::{Bound, Case, Check, On, compare, compare_words};

/// Adds the cases.
pub fn cases(out: &mut Vec<Case>) {
    permutations(out);
    transpositions(out);
    copies(out);
    slices(out);
    broadcasts(out);
    concatenations(out);
    paddings(out);
    gathers(out);
    counts(out);
    random(out);
}

/// A tensor whose elements tell where they were: coordinates are found by counting.
fn numbered(shape: &[usize], salt: u32) -> Vec<u32> {
    (0..shape.iter().product::<usize>() as u32)
        .map(|i| i.wrapping_mul(2_654_435_761).wrapping_add(salt))
        .collect()
}

/// The element of a dense tensor at the coordinates.
fn at<T: Copy>(data: &[T], shape: &[usize], coordinates: &[usize]) -> T {
    data[coordinates.iter().zip(shape).fold(0, |index, (c, extent)| index * extent + c)]
}

/// Calls `f` with the coordinates of each element, in order.
fn each(shape: &[usize], mut f: impl FnMut(&[usize])) {
    let mut coordinates = vec![0; shape.len()];
    for _ in 0..shape.iter().product::<usize>() {
        f(&coordinates);
        for d in (0..shape.len()).rev() {
            coordinates[d] += 1;
            if coordinates[d] < shape[d] {
                break;
            }
            coordinates[d] = 0;
        }
    }
}

/// A case that moves the elements of one numbered tensor.
fn mover(
    op: &'static str,
    what: String,
    shape: Vec<usize>,
    record: impl Fn(&mut Recording, Operand<'_>) -> Result<Value> + Send + Sync + 'static,
    on_cpu: impl Fn(cpu::View<'_, u32>, &mut [u32]) -> Result<Shape> + Send + Sync + 'static,
    expected: impl Fn(&[u32]) -> Vec<u32> + Send + Sync + 'static,
) -> Case {
    Case::both(op, "map", what, move |on| {
        let data = numbered(&shape, 7);
        let expected = expected(&data);
        let dims = Shape::new(&shape).unwrap_or_default();
        let mut result = vec![0; expected.len()];
        match on {
            On::Gpu(gpu) => {
                let x = gpu.upload(&data, dims)?;
                result = gpu.run(|r| record(r, (&x).into()))?.read()?;
            }
            On::Cpu => {
                on_cpu(cpu::View::new(&data, dims), &mut result)?;
            }
        }
        Ok(compare_words(&expected, &result))
    })
}

fn permutations(out: &mut Vec<Case>) {
    let mut add = |shape: &[usize], order: &[usize]| {
        let (from, order): (Vec<_>, Vec<_>) = (shape.to_vec(), order.to_vec());
        let to: Vec<usize> = order.iter().map(|&d| shape[d]).collect();
        let what = format!("{shape:?} by {order:?}");
        let (record_order, cpu_order, input) = (order.clone(), order.clone(), from.clone());
        let expected = move |data: &[u32]| {
            let mut result = Vec::new();
            each(&to, |c| {
                let mut source = vec![0; c.len()];
                order.iter().zip(c).for_each(|(&d, &c)| source[d] = c);
                result.push(at(data, &input, &source));
            });
            result
        };
        let on_cpu = move |x: cpu::View<'_, u32>, out: &mut [u32]| cpu::permute(x, &cpu_order, out);
        out.push(mover("permute", what, from, move |r, x| r.permute(x, &record_order), on_cpu, expected));
    };
    for shape in [[1, 1], [1, 7], [7, 1], [4, 4], [5, 3], [16, 64], [33, 257], [0, 5], [255, 256], [1000, 3]]
    {
        add(&shape, &[1, 0]);
    }
    for order in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
        for shape in [[2, 3, 4], [5, 7, 9], [8, 16, 12], [1, 13, 1], [3, 4, 32]] {
            add(&shape, &order);
        }
    }
    for order in [[0, 1, 3, 2], [0, 2, 3, 1], [0, 3, 1, 2], [3, 2, 1, 0], [1, 0, 3, 2], [2, 3, 0, 1]] {
        for shape in [[2, 3, 4, 5], [3, 8, 4, 16], [1, 5, 1, 7]] {
            add(&shape, &order);
        }
    }
    add(&[257], &[0]);
}

fn transpositions(out: &mut Vec<Case>) {
    for shape in [&[1, 7][..], &[5, 3], &[16, 64], &[33, 257], &[3, 4, 5], &[2, 3, 8, 4], &[4, 0]] {
        let (rows, columns) = (shape[shape.len() - 2], shape[shape.len() - 1]);
        let expected = move |data: &[u32]| {
            let matrices = data.chunks(rows * columns.max(1));
            let turned = |m: &[u32]| -> Vec<u32> {
                (0..columns).flat_map(|j| (0..rows).map(move |i| i * columns + j)).map(|k| m[k]).collect()
            };
            matrices.flat_map(turned).collect()
        };
        let what = format!("{shape:?}");
        let on_cpu = |x: cpu::View<'_, u32>, out: &mut [u32]| cpu::transpose(x, out);
        out.push(mover("transpose", what, shape.to_vec(), |r, x| r.transpose(x), on_cpu, expected));
    }
}

/// What the device does by itself: fills, copies, and other shapes of the same memory.
fn copies(out: &mut Vec<Case>) {
    for n in super::data::LENGTHS {
        out.push(Case::new("fill", "map", format!("[{n}]"), move |gpu| {
            let y: Vec<u32> = gpu.run(|r| r.fill([n], 0x7fc0_1234_u32))?.read()?;
            Ok(compare_words(&vec![0x7fc0_1234; n], &y))
        }));
        out.push(Case::new("copy", "map", format!("[{n}]"), move |gpu| {
            let data = numbered(&[n], 9);
            let x = gpu.upload(&data, [n])?;
            Ok(compare_words(&data, &gpu.run(|r| r.copy(&x))?.read::<u32>()?))
        }));
        out.push(Case::new(
            "reshape",
            "map",
            format!("[{n}] to [1, {n}] and back, negated twice"),
            move |gpu| {
                let data = numbered(&[n], 11);
                let x = gpu.upload(bytemuck::cast_slice::<u32, i32>(&data), [n])?;
                let y = gpu.run(|r| {
                    let row = r.reshape(&x, [1, n])?;
                    let negated = r.neg(row)?;
                    let line = r.reshape(negated, [n])?;
                    r.neg(line)
                })?;
                Ok(compare_words(&data, bytemuck::cast_slice(&y.read::<i32>()?)))
            },
        ));
    }
}

fn slices(out: &mut Vec<Case>) {
    let mut add = |shape: &[usize], ranges: &[Range<usize>]| {
        let (from, ranges) = (shape.to_vec(), ranges.to_vec());
        let what = format!("{shape:?} at {ranges:?}");
        let (record_ranges, cpu_ranges, input) = (ranges.clone(), ranges.clone(), from.clone());
        let expected = move |data: &[u32]| {
            let mut result = Vec::new();
            let extent = |d: usize| ranges.get(d).map_or(input[d], |r| r.end - r.start);
            let to: Vec<usize> = (0..input.len()).map(extent).collect();
            each(&to, |c| {
                let shifted = |(d, &c): (usize, &usize)| c + ranges.get(d).map_or(0, |r| r.start);
                let source: Vec<usize> = c.iter().enumerate().map(shifted).collect();
                result.push(at(data, &input, &source));
            });
            result
        };
        let on_cpu = move |x: cpu::View<'_, u32>, out: &mut [u32]| cpu::slice(x, cpu_ranges.as_slice(), out);
        let record = move |r: &mut Recording, x: Operand<'_>| r.slice(x, record_ranges.as_slice());
        out.push(mover("slice", what, from, record, on_cpu, expected));
    };
    for range in [0..0, 0..1, 0..100, 1..100, 3..98, 4..8, 97..100, 0..4, 50..51] {
        add(&[100], std::slice::from_ref(&range));
    }
    for rows in [0..9, 2..5, 8..9] {
        for columns in [0..16, 0..4, 4..12, 1..16, 15..16, 3..7, 5..5] {
            add(&[9, 16], &[rows.clone(), columns]);
        }
    }
    add(&[9, 17], std::slice::from_ref(&(1..4)));
    for box_ in [[0..3, 1..4, 2..6], [1..2, 0..5, 0..7], [0..3, 4..5, 6..7], [2..3, 2..3, 2..3]] {
        add(&[3, 5, 7], &box_);
        add(&[2, 3, 5, 7].map(|n| n + 1), &[0..2, 1..2, 2..4, 0..8]);
    }
}

fn broadcasts(out: &mut Vec<Case>) {
    let mut add = |from: &[usize], to: &[usize]| {
        let (from, to) = (from.to_vec(), to.to_vec());
        let what = format!("{from:?} to {to:?}");
        let (shape, input) = (tidemill::Shape::new(&to).unwrap_or_default(), from.clone());
        let expected = move |data: &[u32]| {
            let mut result = Vec::new();
            let added = to.len() - input.len();
            each(&to, |c| {
                let source: Vec<usize> =
                    input.iter().zip(&c[added..]).map(|(&n, &c)| if n == 1 { 0 } else { c }).collect();
                result.push(at(data, &input, &source));
            });
            result
        };
        let on_cpu = move |x: cpu::View<'_, u32>, out: &mut [u32]| cpu::broadcast_to(x, shape, out);
        out.push(mover("broadcast_to", what, from, move |r, x| r.broadcast_to(x, shape), on_cpu, expected));
    };
    add(&[], &[]);
    for to in [&[1][..], &[257], &[3, 5], &[2, 3, 4, 5]] {
        add(&[], to);
        add(&[1], to);
    }
    for (rows, columns) in [(1, 1), (7, 5), (16, 64), (33, 255), (2, 1000)] {
        add(&[columns], &[rows, columns]);
        add(&[rows, 1], &[rows, columns]);
        add(&[1, columns], &[rows, columns]);
        add(&[rows, 1, 1], &[rows, columns, 3]);
        add(&[1, columns, 1], &[rows, columns, 4]);
        add(&[3, 1, columns], &[2, 3, rows, columns]);
    }
    add(&[0], &[4, 0]);
    add(&[1], &[0]);
}

/// What `concat` gives, or `stack`.
fn concatenated(op: &str, data: &[Vec<u32>], shapes: &[Vec<usize>], axis: usize) -> Vec<u32> {
    let mut shapes = shapes.to_vec();
    if op == "stack" {
        shapes.iter_mut().for_each(|s| s.insert(axis, 1));
    }
    let outer: usize = shapes[0][..axis].iter().product();
    let mut expected = Vec::new();
    for row in 0..outer {
        for (data, shape) in data.iter().zip(&shapes) {
            let width: usize = shape[axis..].iter().product();
            expected.extend_from_slice(&data[row * width..(row + 1) * width]);
        }
    }
    expected
}

fn concatenations(out: &mut Vec<Case>) {
    let mut add = |op: &'static str, shapes: &[Vec<usize>], axis: usize| {
        let shapes = shapes.to_vec();
        let what = format!("{shapes:?} along {axis}");
        out.push(Case::both(op, "map", what, move |on| {
            let data: Vec<Vec<u32>> = shapes.iter().enumerate().map(|(i, s)| numbered(s, i as u32)).collect();
            let dims = |shape: &[usize]| Shape::new(shape).unwrap_or_default();
            let expected = concatenated(op, &data, &shapes, axis);
            let mut result = vec![0; expected.len()];
            match on {
                On::Gpu(gpu) => {
                    let mut tensors = Vec::new();
                    for (data, shape) in data.iter().zip(&shapes) {
                        tensors.push(gpu.upload(data, dims(shape))?);
                    }
                    let operands: Vec<Operand<'_>> = tensors.iter().map(Operand::from).collect();
                    let y = gpu.run(|r| match op {
                        "concat" => r.concat(&operands, axis as isize),
                        _ => r.stack(&operands, axis as isize),
                    })?;
                    result = y.read()?;
                }
                On::Cpu => {
                    let pairs = data.iter().zip(&shapes);
                    let views: Vec<_> = pairs.map(|(x, shape)| cpu::View::new(x, dims(shape))).collect();
                    match op {
                        "concat" => cpu::concat(&views, axis as isize, &mut result),
                        _ => cpu::stack(&views, axis as isize, &mut result),
                    }?;
                }
            }
            Ok(compare_words(&expected, &result))
        }));
    };
    for lengths in [&[1][..], &[3, 4], &[0, 5], &[1, 1, 1, 1, 1], &[256, 1, 257], &[5, 0, 0, 2]] {
        add("concat", &lengths.iter().map(|&n| vec![n]).collect::<Vec<_>>(), 0);
        add("concat", &lengths.iter().map(|&n| vec![n, 3]).collect::<Vec<_>>(), 0);
        add("concat", &lengths.iter().map(|&n| vec![5, n]).collect::<Vec<_>>(), 1);
        add("concat", &lengths.iter().map(|&n| vec![4, 4 * n]).collect::<Vec<_>>(), 1);
        add("concat", &lengths.iter().map(|&n| vec![2, n, 3]).collect::<Vec<_>>(), 1);
        add("concat", &lengths.iter().map(|&n| vec![2, 3, n, 4]).collect::<Vec<_>>(), 2);
        add("concat", &lengths.iter().map(|&n| vec![2, 2, 3, n]).collect::<Vec<_>>(), 3);
    }
    for shape in [vec![], vec![1], vec![7], vec![3, 5], vec![4, 8], vec![2, 3, 4]] {
        for axis in 0..=shape.len() {
            for n in [1, 2, 5] {
                add("stack", &vec![shape.clone(); n], axis);
            }
        }
    }
}

fn paddings(out: &mut Vec<Case>) {
    let mut add = |shape: &[usize], pads: &[(usize, usize)]| {
        let (from, pads) = (shape.to_vec(), pads.to_vec());
        let what = format!("{shape:?} by {pads:?}");
        let (record_pads, cpu_pads, input) = (pads.clone(), pads.clone(), from.clone());
        let expected = move |data: &[u32]| {
            let to: Vec<usize> = input.iter().zip(&pads).map(|(n, (b, a))| n + b + a).collect();
            let mut result = Vec::new();
            each(&to, |c| {
                let inside = c.iter().zip(&pads).zip(&input).all(|((&c, p), &n)| c >= p.0 && c < p.0 + n);
                result.push(if inside {
                    at(data, &input, &c.iter().zip(&pads).map(|(c, p)| c - p.0).collect::<Vec<_>>())
                } else {
                    99
                });
            });
            result
        };
        let on_cpu = move |x: cpu::View<'_, u32>, out: &mut [u32]| cpu::pad(x, &cpu_pads, 99, out);
        out.push(mover("pad", what, from, move |r, x| r.pad(x, &record_pads, 99u32), on_cpu, expected));
    };
    for (before, after) in [(0, 0), (1, 0), (0, 1), (3, 5), (4, 4), (8, 0), (257, 1)] {
        for n in [0, 1, 4, 257] {
            add(&[n], &[(before, after)]);
        }
        add(&[3, 8], &[(0, 0), (before, after)]);
        add(&[3, 5], &[(before, after), (1, 2)]);
        add(&[2, 3, 8], &[(1, 1), (before, after), (4, 8)]);
        add(&[2, 3, 4, 5], &[(0, 1), (1, 0), (2, 2), (before, after)]);
    }
}

fn gathers(out: &mut Vec<Case>) {
    for (height, row) in [
        (1, vec![]),
        (7, vec![]),
        (5, vec![1]),
        (5, vec![3]),
        (9, vec![4]),
        (9, vec![64]),
        (3, vec![2, 5]),
        (300, vec![257]),
    ] {
        for rows in [vec![], vec![0], vec![1], vec![5], vec![257], vec![3, 4]] {
            if row.len() + rows.len() > 4 || (row.len() == 2 && rows.len() == 2 && height == 0) {
                continue;
            }
            let (row, rows_shape) = (row.clone(), rows);
            let what = format!("{rows_shape:?} of [{height}, {row:?}]");
            out.push(Case::both("gather_rows", "map", what, move |on| {
                let mut shape = vec![height];
                shape.extend(&row);
                let width: usize = row.iter().product();
                let table = numbered(&shape, 3);
                let mut random = Random::new(5);
                let n: usize = rows_shape.iter().product();
                // Some lie outside the table.
                let wanted: Vec<u32> = (0..n).map(|_| (random.bits() % (height as u64 + 2)) as u32).collect();
                let mut expected = Vec::new();
                for &w in &wanted {
                    let w = w as usize;
                    match table.get(w * width..(w + 1) * width) {
                        Some(row) if w < height => expected.extend_from_slice(row),
                        _ => expected.extend(std::iter::repeat_n(0, width)),
                    }
                }
                let [table_shape, rows] = [&shape, &rows_shape].map(|s| Shape::new(s).unwrap_or_default());
                let mut result = vec![0; expected.len()];
                match on {
                    On::Gpu(gpu) => {
                        let (t, w) = (gpu.upload(&table, table_shape)?, gpu.upload(&wanted, rows)?);
                        result = gpu.run(|r| r.gather_rows(&t, &w))?.read()?;
                    }
                    On::Cpu => {
                        cpu::gather_rows((&table, table_shape), (&wanted, rows), &mut result)?;
                    }
                }
                Ok(compare_words(&expected, &result))
            }));
        }
    }
}

/// `n` elements from nothing.
fn filled<T: tidemill::Element>(
    on: On<'_>,
    n: usize,
    record: impl FnOnce(&mut Recording) -> Result<Value>,
    on_cpu: impl FnOnce(&mut [T]),
) -> Result<Vec<T>> {
    match on {
        On::Gpu(gpu) => gpu.run(record)?.read(),
        On::Cpu => {
            let mut out = vec![T::zeroed(); n];
            on_cpu(&mut out);
            Ok(out)
        }
    }
}

fn counts(out: &mut Vec<Case>) {
    for n in super::data::LENGTHS {
        out.push(Case::both("iota", "map", format!("u32 [{n}]"), move |on| {
            let y = filled(on, n, |r| r.iota::<u32>([n]), cpu::iota)?;
            Ok(compare_words(&(0..n as u32).collect::<Vec<_>>(), &y))
        }));
        out.push(Case::both("iota", "map", format!("f32 [{n}]"), move |on| {
            let y = filled(on, n, |r| r.iota::<f32>([n]), cpu::iota)?;
            let expected: Vec<f64> = (0..n).map(|i| i as f64).collect();
            Ok(compare(&expected, &y, Bound::Exact))
        }));
    }
}

/// Philox 4x32 with 10 rounds, as published.
fn philox(counter: u32, seed: u64) -> [u32; 4] {
    let mut c = [counter, 0, 0, 0];
    let mut k = [seed as u32, (seed >> 32) as u32];
    for _ in 0..10 {
        let (p, q) = (u64::from(c[0]) * 0xD251_1F53, u64::from(c[2]) * 0xCD9E_8D57);
        c = [(q >> 32) as u32 ^ c[1] ^ k[0], q as u32, (p >> 32) as u32 ^ c[3] ^ k[1], p as u32];
        k = [k[0].wrapping_add(0x9E37_79B9), k[1].wrapping_add(0xBB67_AE85)];
    }
    c
}

fn random(out: &mut Vec<Case>) {
    for seed in [0, 1, 0xdead_beef_0123_4567] {
        for n in super::data::LENGTHS {
            let bits = move |i: usize| philox((i / 4) as u32, seed)[i % 4];
            out.push(Case::both("random_uniform", "map", format!("[{n}] seed {seed:#x}"), move |on| {
                let y = filled(on, n, |r| r.random_uniform([n], seed), |out| cpu::random_uniform(out, seed))?;
                let expected: Vec<f64> =
                    (0..n).map(|i| f64::from(bits(i) >> 8) / f64::from(1 << 24)).collect();
                Ok(compare(&expected, &y, Bound::Exact))
            }));
            out.push(Case::both("random_normal", "map", format!("[{n}] seed {seed:#x}"), move |on| {
                let y = filled(on, n, |r| r.random_normal([n], seed), |out| cpu::random_normal(out, seed))?;
                let expected: Vec<f64> = (0..n)
                    .map(|i| {
                        let pair = philox((i / 4) as u32, seed);
                        let (u, v) = (pair[i % 4 / 2 * 2], pair[i % 4 / 2 * 2 + 1]);
                        let radius = (-2.0 * ((f64::from(u >> 8) + 1.0) / f64::from(1 << 24)).ln()).sqrt();
                        let turn = std::f64::consts::TAU * f64::from(v >> 8) / f64::from(1 << 24);
                        radius * if i % 2 == 0 { turn.cos() } else { turn.sin() }
                    })
                    .collect();
                Ok::<Check, _>(compare(&expected, &y, Bound::Absolute(2e-6)))
            }));
        }
    }
}
