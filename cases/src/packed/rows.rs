//! Reductions and softmax of packed elements.

use tidemill::{Axes, Bf16, DType, F16, Recording, Result, Tensor, Value};

use super::{NARROW, number, numbers, some, stored, twin, wrapped};
use crate::data::{BENCHED, uniform};
use crate::{Array, Bound, Case, Expected, Input, Kind};

/// Sums in 32 bits; extremes in the operand's own type.
pub(super) fn cases(out: &mut Vec<Case>) {
    type Record = fn(&Recording, &[Tensor]) -> Result<Value>;
    type Of = fn(&[i64]) -> i64;
    let ops: [(&str, Record, Of); 6] = [
        ("sum", |r, t| r.sum(&t[0], 1), |row| row.iter().sum()),
        (
            "prod",
            |r, t| r.prod(&t[0], 1),
            |row| row.iter().fold(1, |product: i64, n| product.wrapping_mul(*n)),
        ),
        ("amax", |r, t| r.amax(&t[0], 1), |row| row.iter().copied().max().unwrap_or(0)),
        ("amin", |r, t| r.amin(&t[0], 1), |row| row.iter().copied().min().unwrap_or(0)),
        (
            "argmax",
            |r, t| r.argmax(&t[0], 1),
            |row| {
                row.iter()
                    .enumerate()
                    .fold((0, i64::MIN), |best, (i, n)| if *n > best.1 { (i, *n) } else { best })
                    .0 as i64
            },
        ),
        ("sum of all", |r, t| r.sum(&t[0], Axes::ALL), |row| row.iter().sum()),
    ];
    for dtype in NARROW.into_iter().chain([DType::Bool]) {
        for columns in [1, 5, 1001] {
            for (what, record, of) in ops {
                let all = what == "sum of all";
                let wide = if number(dtype, wrapped(dtype, -1)) < 0 { DType::I32 } else { DType::U32 };
                let result = match what {
                    "amax" | "amin" => dtype,
                    "argmax" => DType::U32,
                    _ => wide,
                };
                let kind = if all { Kind::new(result, &[]) } else { Kind::new(result, &[7]) };
                let length = if all { 7 * columns } else { columns };
                let expected = move |x: &[Array]| stored(result, numbers(&x[0]).chunks(length).map(of));
                let (what, inputs) =
                    (format!("{what} {dtype} [7, {columns}]"), vec![some(dtype, &[7, columns], 1)]);
                out.push(
                    Case::new("rows_packed", "reduce", what, inputs, kind, record, expected)
                        .flops(7 * columns),
                );
            }
        }
        let expected = |x: &[Array]| {
            Expected::Floats(
                numbers(&x[0]).chunks(1001).map(|row| row.iter().sum::<i64>() as f64 / 1001.0).collect(),
            )
        };
        let (what, inputs) = (format!("mean {dtype}"), vec![some(dtype, &[7, 1001], 1)]);
        out.push(
            Case::new(
                "rows_packed",
                "reduce",
                what,
                inputs,
                Kind::of::<f32>(&[7]),
                |r, t| r.mean(&t[0], 1),
                expected,
            )
            .bound(Bound::Absolute(1e-4)),
        );
    }
    // Words, which have a twin.
    for (dtype, axis, extents) in [DType::I32, DType::U32].into_iter().flat_map(|dtype| {
        [(0, [1, 1]), (0, [5, 3]), (1, [3, 5]), (1, [2, 1001]), (0, [1001, 2]), (1, [2, 0])]
            .map(|(axis, extents)| (dtype, axis, extents))
    }) {
        let [rows, columns] = extents;
        let line = move |i: usize| -> Vec<usize> {
            if axis == 0 {
                (0..rows).map(|k| k * columns + i).collect()
            } else {
                (i * columns..(i + 1) * columns).collect()
            }
        };
        let n = extents[1 - axis];
        let expected = move |x: &[Array]| {
            let x = numbers(&x[0]);
            let product = |i| line(i).iter().fold(1, |product: i64, at| product.wrapping_mul(x[*at]));
            stored(dtype, (0..n).map(product))
        };
        let (what, inputs) = (format!("{dtype} {extents:?} axis {axis}"), vec![odd(dtype, &extents)]);
        let record = move |r: &Recording, t: &[Tensor]| r.prod(&t[0], axis as isize);
        let case = Case::new("prod", "reduce", what, inputs, Kind::new(dtype, &[n]), record, expected);
        out.push(case.twin(move |x, out| twin::reduce("prod", &x[0], Axes::at(axis as isize), out)));
    }
    let expected = |x: &[Array]| stored(DType::U32, [numbers(&x[0]).iter().sum()].into_iter());
    let (what, inputs) = (format!("sum of {BENCHED} bytes"), vec![some(DType::U8, &[BENCHED], 1)]);
    let record: Record = |r, t| r.sum(&t[0], Axes::ALL);
    let case = Case::new("rows_packed", "reduce", what, inputs, Kind::of::<u32>(&[]), record, expected);
    out.push(case.flops(BENCHED).bench("op_rows_packed"));
    for dtype in [DType::F16, DType::Bf16] {
        let expected = |x: &[Array]| {
            let of = |row: &[f32]| {
                let powers: Vec<f64> = row.iter().map(|x| f64::from(*x).exp()).collect();
                let sum: f64 = powers.iter().sum();
                powers.into_iter().map(move |power| power / sum).collect::<Vec<_>>()
            };
            Expected::Floats(x[0].floats().chunks(50).flat_map(of).collect())
        };
        let (what, result) = (format!("softmax {dtype} [9, 50]"), Kind::new(dtype, &[9, 50]));
        let input = match dtype {
            DType::Bf16 => {
                Input::new(&[9, 50], || uniform(450, -0.5, 1.0, 1).into_iter().map(Bf16::from_f32).collect())
            }
            _ => Input::new(&[9, 50], || uniform(450, -0.5, 1.0, 1).into_iter().map(F16::from_f32).collect()),
        };
        let case = Case::new(
            "rows_packed",
            "softmax",
            what,
            vec![input],
            result,
            |r, t| r.softmax(&t[0], 1),
            expected,
        );
        out.push(case.bound(Bound::Nmse(6e-6)).flops(450));
    }
}

/// Odd numbers, whose products are never 0.
fn odd(dtype: DType, extents: &[usize]) -> Input {
    let n: usize = extents.iter().product();
    let numbers = move || (0..n).map(|i| (2 * i as i32 + 1) * if i % 3 == 0 { -1 } else { 1 });
    match dtype {
        DType::I32 => Input::new(extents, move || numbers().collect::<Vec<i32>>()),
        _ => Input::new(extents, move || numbers().map(|x| x as u32).collect::<Vec<u32>>()),
    }
}
