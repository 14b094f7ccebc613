//! Moving elements.

use std::ops::Range;

use tidemill::cpu;
use tidemill::{DType, Operand, Recording, Result, Shape, Tensor, Value};

use super::array::shape;
use super::data::{BENCHED, BENCHED_SIDE as SIDE, LENGTHS, Random};
use super::{Array, Case, Expected, Input, Kind};

/// Adds the cases.
pub(crate) fn cases(out: &mut Vec<Case>) {
    permutations(out);
    transpositions(out);
    copies(out);
    slices(out);
    stepped_slices(out);
    broadcasts(out);
    concatenations(out);
    paddings(out);
    gathers(out);
}

/// A tensor whose elements tell where they were: coordinates are found by counting.
fn numbered(shape: &[usize], salt: u32) -> Input {
    numbered_as(DType::U32, shape, salt)
}

fn numbered_as(dtype: DType, shape: &[usize], salt: u32) -> Input {
    let n = shape.iter().product::<usize>() as u32;
    let number = move |i: u32| i.wrapping_mul(2_654_435_761).wrapping_add(salt);
    Input::words(dtype, shape, move || (0..n).map(number).collect())
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
    [from, to]: [&[usize]; 2],
    record: impl Fn(&Recording, &Tensor) -> Result<Value> + Send + Sync + 'static,
    on_cpu: impl Fn(cpu::View<'_, u32>, &mut [u32]) -> Result<Shape> + Send + Sync + 'static,
    expected: impl Fn(&[u32]) -> Vec<u32> + Send + Sync + 'static,
) -> Case {
    let record = move |r: &Recording, t: &[Tensor]| record(r, &t[0]);
    let expected = move |x: &[Array]| Expected::Words(expected(x[0].of()));
    Case::new(op, "elementwise", what, vec![numbered(from, 7)], Kind::of::<u32>(to), record, expected)
        .twin(move |x, out| on_cpu(x[0].view(), out.of_mut()))
}

fn permutations(out: &mut Vec<Case>) {
    let case = |shape: &[usize], order: &[usize]| {
        let (input, order): (Vec<_>, Vec<_>) = (shape.to_vec(), order.to_vec());
        let to: Vec<usize> = order.iter().map(|&d| shape[d]).collect();
        let what = format!("{shape:?} by {order:?}");
        let (record_order, cpu_order, extents) = (order.clone(), order.clone(), to.clone());
        let expected = move |data: &[u32]| {
            let mut result = Vec::new();
            each(&extents, |c| {
                let mut source = [0; 4];
                order.iter().zip(c).for_each(|(&d, &c)| source[d] = c);
                result.push(at(data, &input, &source[..c.len()]));
            });
            result
        };
        let on_cpu = move |x: cpu::View<'_, u32>, out: &mut [u32]| cpu::permute(x, &cpu_order, out);
        let record = move |r: &Recording, x: &Tensor| r.permute(x, &record_order);
        mover("permute", what, [shape, &to], record, on_cpu, expected)
    };
    for (shape, order, name) in [
        (&[64, 128, 128][..], &[0, 2, 1][..], "op_permute_021"),
        (&[64, 128, 128], &[1, 0, 2], "op_permute_102"),
        (&[64, 128, 128], &[2, 1, 0], "op_permute_210"),
        (&[4, 64, 64, 64], &[0, 2, 3, 1], "op_permute_0231"),
    ] {
        out.push(case(shape, order).bench(name));
    }
    let mut add = |shape: &[usize], order: &[usize]| out.push(case(shape, order));
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
    let case = |shape: &[usize]| {
        let (rows, columns) = (shape[shape.len() - 2], shape[shape.len() - 1]);
        let mut to = shape.to_vec();
        to.swap(shape.len() - 2, shape.len() - 1);
        let expected = move |data: &[u32]| {
            let matrices = data.chunks(rows * columns.max(1));
            let turned = |m: &[u32]| -> Vec<u32> {
                (0..columns).flat_map(|j| (0..rows).map(move |i| i * columns + j)).map(|k| m[k]).collect()
            };
            matrices.flat_map(turned).collect()
        };
        let on_cpu = |x: cpu::View<'_, u32>, out: &mut [u32]| cpu::transpose(x, out);
        mover("transpose", format!("{shape:?}"), [shape, &to], |r, x| r.transpose(x), on_cpu, expected)
    };
    for shape in [&[1, 7][..], &[5, 3], &[16, 64], &[33, 257], &[3, 4, 5], &[2, 3, 8, 4], &[4, 0]] {
        out.push(case(shape));
    }
    out.push(case(&[SIDE, SIDE]).bench("op_transpose"));
}

/// What the device does by itself: copies, and other shapes of the same memory.
fn copies(out: &mut Vec<Case>) {
    let copy = |n: usize| {
        let (inputs, result) = (vec![numbered(&[n], 9)], Kind::of::<u32>(&[n]));
        let expected = |x: &[Array]| Expected::Words(x[0].of().to_vec());
        Case::new("copy", "elementwise", format!("[{n}]"), inputs, result, |r, t| r.copy(&t[0]), expected)
    };
    let reshape = |n: usize| {
        let what = format!("[{n}] to [1, {n}] and back, negated twice");
        let input = numbered_as(DType::I32, &[n], 11);
        let record = move |r: &Recording, t: &[Tensor]| {
            let row = r.reshape(&t[0], [1, n])?;
            let negated = r.neg(row)?;
            let line = r.reshape(negated, [n])?;
            r.neg(line)
        };
        let expected = |x: &[Array]| Expected::Words(x[0].of().to_vec());
        Case::new("reshape", "elementwise", what, vec![input], Kind::of::<i32>(&[n]), record, expected)
            .flops(2 * n)
    };
    for n in LENGTHS {
        out.extend([copy(n), reshape(n)]);
    }
    out.extend([copy(BENCHED).bench("op_copy"), reshape(BENCHED).bench("op_reshape")]);
}

fn slices(out: &mut Vec<Case>) {
    let case = |shape: &[usize], ranges: &[Range<usize>]| {
        let (input, ranges) = (shape.to_vec(), ranges.to_vec());
        let what = format!("{shape:?} at {ranges:?}");
        let extent = |d: usize| ranges.get(d).map_or(shape[d], |r| r.end - r.start);
        let to: Vec<usize> = (0..shape.len()).map(extent).collect();
        let (record_ranges, cpu_ranges, extents) = (ranges.clone(), ranges.clone(), to.clone());
        let expected = move |data: &[u32]| {
            let mut result = Vec::new();
            each(&extents, |c| {
                let shifted = |(d, &c): (usize, &usize)| c + ranges.get(d).map_or(0, |r| r.start);
                let source: Vec<usize> = c.iter().enumerate().map(shifted).collect();
                result.push(at(data, &input, &source));
            });
            result
        };
        let on_cpu = move |x: cpu::View<'_, u32>, out: &mut [u32]| cpu::slice(x, cpu_ranges.as_slice(), out);
        let record = move |r: &Recording, x: &Tensor| r.slice(x, record_ranges.as_slice());
        mover("slice", what, [shape, &to], record, on_cpu, expected)
    };
    out.push(case(&[SIDE, SIDE + 4], &[0..SIDE, 4..SIDE + 4]).bench("op_slice"));
    out.push(case(&[SIDE, SIDE + 1], &[0..SIDE, 1..SIDE + 1]).bench("op_slice_unaligned"));
    let mut add = |shape: &[usize], ranges: &[Range<usize>]| out.push(case(shape, ranges));
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

/// Boxes of which every so many elements count, forwards and backwards.
fn stepped_slices(out: &mut Vec<Case>) {
    let stepped = |shape: &[usize], ranges: &[Range<usize>], steps: &[isize]| {
        let what = format!("{shape:?} at {ranges:?} by {steps:?}");
        // For each dimension the coordinates that count, in their order.
        let chosen = |d: usize| -> Vec<usize> {
            let step = steps.get(d).copied().unwrap_or(1);
            let range = ranges[d].clone();
            let by = step.unsigned_abs();
            if step > 0 { range.step_by(by).collect() } else { range.rev().step_by(by).collect() }
        };
        let chosen: Vec<Vec<usize>> = (0..shape.len()).map(chosen).collect();
        let (input, to) = (shape.to_vec(), chosen.iter().map(Vec::len).collect::<Vec<_>>());
        let extents = to.clone();
        let expected = move |data: &[u32]| {
            let mut result = Vec::new();
            each(&extents, |c| {
                let source: Vec<usize> = c.iter().enumerate().map(|(d, &c)| chosen[d][c]).collect();
                result.push(at(data, &input, &source));
            });
            result
        };
        let (boxes, by) = (ranges.to_vec(), steps.to_vec());
        let (cpu_boxes, cpu_by) = (boxes.clone(), by.clone());
        let on_cpu = move |x: cpu::View<'_, u32>, out: &mut [u32]| {
            cpu::slice_step(x, cpu_boxes.as_slice(), &cpu_by, out)
        };
        let record = move |r: &Recording, x: &Tensor| r.slice_step(x, boxes.as_slice(), &by);
        mover("slice_step", what, [shape, &to], record, on_cpu, expected)
    };
    for step in [1, 2, 3, 4, 7, 100, -1, -2, -3, -4, -100] {
        for range in [0..100, 3..98, 5..6, 7..7] {
            out.push(stepped(&[100], std::slice::from_ref(&range), &[step]));
        }
        out.push(stepped(&[9, 16], &[0..9, 0..16], &[step]));
        out.push(stepped(&[9, 16], &[1..8, 3..16], &[1, step]));
        out.push(stepped(&[6, 64], &[0..6, 0..64], &[step, -step]));
        out.push(stepped(&[3, 5, 7], &[0..3, 0..5, 1..7], &[-1, step, 2]));
        out.push(stepped(&[3, 4, 5, 6], &[0..3, 1..4, 0..5, 0..6], &[step, 1, -1, step]));
    }
    out.push(stepped(&[SIDE, SIDE], &[0..SIDE, 0..SIDE], &[-1, 1]).bench("op_slice_step"));
}

fn broadcasts(out: &mut Vec<Case>) {
    let case = |from: &[usize], to: &[usize]| {
        let (input, extents, whole) = (from.to_vec(), to.to_vec(), shape(to));
        let expected = move |data: &[u32]| {
            let mut result = Vec::new();
            let added = extents.len() - input.len();
            each(&extents, |c| {
                let source: Vec<usize> =
                    input.iter().zip(&c[added..]).map(|(&n, &c)| if n == 1 { 0 } else { c }).collect();
                result.push(at(data, &input, &source));
            });
            result
        };
        let on_cpu = move |x: cpu::View<'_, u32>, out: &mut [u32]| cpu::broadcast_to(x, whole, out);
        let record = move |r: &Recording, x: &Tensor| r.broadcast_to(x, whole);
        mover("broadcast_to", format!("{from:?} to {to:?}"), [from, to], record, on_cpu, expected)
    };
    out.push(case(&[SIDE], &[SIDE, SIDE]).bench("op_broadcast_to"));
    let mut add = |from: &[usize], to: &[usize]| out.push(case(from, to));
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

/// `concat`, or `stack`.
fn joined(op: &'static str, shapes: &[Vec<usize>], axis: usize) -> Case {
    // As stacked ones are concatenated.
    let mut parts = shapes.to_vec();
    if op == "stack" {
        parts.iter_mut().for_each(|part| part.insert(axis, 1));
    }
    let mut to = parts[0].clone();
    to[axis] = parts.iter().map(|part| part[axis]).sum();
    let expected = move |x: &[Array]| {
        let outer: usize = parts[0][..axis].iter().product();
        let mut expected = Vec::new();
        for row in 0..outer {
            for (x, part) in x.iter().zip(&parts) {
                let width: usize = part[axis..].iter().product();
                expected.extend_from_slice(&x.of()[row * width..(row + 1) * width]);
            }
        }
        Expected::Words(expected)
    };
    let record = move |r: &Recording, t: &[Tensor]| {
        let operands: Vec<Operand<'_>> = t.iter().map(Operand::from).collect();
        if op == "concat" { r.concat(&operands, axis as isize) } else { r.stack(&operands, axis as isize) }
    };
    let inputs = shapes.iter().zip(0..).map(|(shape, salt)| numbered(shape, salt)).collect();
    let what = format!("{shapes:?} along {axis}");
    Case::new(op, "elementwise", what, inputs, Kind::of::<u32>(&to), record, expected).twin(move |x, out| {
        let (views, axis): (Vec<_>, _) = (x.iter().map(Array::view::<u32>).collect(), axis as isize);
        if op == "concat" {
            cpu::concat(&views, axis, out.of_mut())
        } else {
            cpu::stack(&views, axis, out.of_mut())
        }
    })
}

fn concatenations(out: &mut Vec<Case>) {
    let half = vec![SIDE, SIDE / 2];
    out.push(joined("concat", &[half.clone(), half], 1).bench("op_concat"));
    out.push(joined("concat", &[vec![SIDE, 511], vec![SIDE, 513]], 1).bench("op_concat_unaligned"));
    out.push(joined("stack", &[vec![BENCHED / 2], vec![BENCHED / 2]], 1).bench("op_stack"));
    let mut add = |op, shapes: &[Vec<usize>], axis| out.push(joined(op, shapes, axis));
    for lengths in [&[1][..], &[3, 4], &[0, 5], &[1, 1, 1, 1, 1], &[256, 1, 257], &[5, 0, 0, 2]] {
        add("concat", &lengths.iter().map(|&n| vec![n]).collect::<Vec<_>>(), 0);
        add("concat", &lengths.iter().map(|&n| vec![n, 3]).collect::<Vec<_>>(), 0);
        add("concat", &lengths.iter().map(|&n| vec![5, n]).collect::<Vec<_>>(), 1);
        add("concat", &lengths.iter().map(|&n| vec![4, 4 * n]).collect::<Vec<_>>(), 1);
        add("concat", &lengths.iter().map(|&n| vec![2, n, 3]).collect::<Vec<_>>(), 1);
        add("concat", &lengths.iter().map(|&n| vec![2, 3, n, 4]).collect::<Vec<_>>(), 2);
        add("concat", &lengths.iter().map(|&n| vec![2, 2, 3, n]).collect::<Vec<_>>(), 3);
    }
    // Rows that subgroups walk over in whole: workgroups of them, with some left, and more than one dispatch reaches.
    for rows in [4, 8, 1028, 4104] {
        add("concat", &[vec![rows, 256], vec![rows, 512]], 1);
    }
    add("concat", &[vec![2, 12, 256], vec![2, 12, 256], vec![2, 12, 8]], 2);
    add("concat", &[vec![3, 2, 4, 256], vec![3, 1, 4, 256]], 1);
    for shape in [vec![], vec![1], vec![7], vec![3, 5], vec![4, 8], vec![2, 3, 4]] {
        for axis in 0..=shape.len() {
            for n in [1, 2, 5] {
                add("stack", &vec![shape.clone(); n], axis);
            }
        }
    }
}

fn paddings(out: &mut Vec<Case>) {
    let case = |shape: &[usize], pads: &[(usize, usize)]| {
        let (input, pads) = (shape.to_vec(), pads.to_vec());
        let what = format!("{shape:?} by {pads:?}");
        let to: Vec<usize> = input.iter().zip(&pads).map(|(n, (b, a))| n + b + a).collect();
        let (record_pads, cpu_pads, extents) = (pads.clone(), pads.clone(), to.clone());
        let expected = move |data: &[u32]| {
            let mut result = Vec::new();
            each(&extents, |c| {
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
        let record = move |r: &Recording, x: &Tensor| r.pad(x, &record_pads, 99u32);
        mover("pad", what, [shape, &to], record, on_cpu, expected)
    };
    out.push(case(&[SIDE, SIDE], &[(1, 1), (1, 1)]).bench("op_pad"));
    let mut add = |shape: &[usize], pads: &[(usize, usize)]| out.push(case(shape, pads));
    for (before, after) in [(0, 0), (1, 0), (0, 1), (3, 5), (4, 4), (8, 0), (257, 1)] {
        for n in [0, 1, 4, 257] {
            add(&[n], &[(before, after)]);
        }
        add(&[3, 8], &[(0, 0), (before, after)]);
        add(&[3, 5], &[(before, after), (1, 2)]);
        add(&[2, 3, 8], &[(1, 1), (before, after), (4, 8)]);
        add(&[2, 3, 4, 5], &[(0, 1), (1, 0), (2, 2), (before, after)]);
        add(&[2, 4, 256], &[(1, 0), (before, after), (before, 8)]);
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
            out.push(gather(height, &row, &rows));
        }
    }
    // Whole workgroups, and some elements more.
    out.push(gather(9, &[64], &[32]));
    out.push(gather(300, &[260], &[1030]));
    out.push(gather(SIDE, &[SIDE], &[SIDE]).bench("op_gather_rows"));
}

/// Rows of a table of so many.
fn gather(height: usize, row: &[usize], rows: &[usize]) -> Case {
    let what = format!("{rows:?} of [{height}, {row:?}]");
    let (n, width): (usize, usize) = (rows.iter().product(), row.iter().product());
    // Some lie outside the table.
    let wanted = move || {
        let mut random = Random::new(5);
        (0..n).map(|_| (random.bits() % (height as u64 + 2)) as u32).collect()
    };
    let expected = move |x: &[Array]| {
        let mut expected = Vec::new();
        for &w in x[1].of::<u32>() {
            let w = w as usize;
            match x[0].of().get(w * width..(w + 1) * width) {
                Some(row) if w < height => expected.extend_from_slice(row),
                _ => expected.extend(std::iter::repeat_n(0, width)),
            }
        }
        Expected::Words(expected)
    };
    let inputs = vec![numbered(&[&[height], row].concat(), 3), Input::new(rows, wanted)];
    let result = Kind::of::<u32>(&[rows, row].concat());
    let record = |r: &Recording, t: &[Tensor]| r.gather_rows(&t[0], &t[1]);
    Case::new("gather_rows", "elementwise", what, inputs, result, record, expected)
        .twin(|x, out| cpu::gather_rows::<u32>(x[0].view(), x[1].view(), out.of_mut()))
}
