//! Packed elements that are moved: by layout, by index, and into order.

use tidemill::args::Along;
use tidemill::{Bf16, Bool, DType, F16, Recording, Result, Tensor, Value};

use super::{NARROW, is_float, limits, number, numbers, some, stored, wrapped};
use crate::data::BENCHED;
use crate::{Array, Case, Expected, Input, Kind};

/// Where elements go, element for element: neighbours in one word come from anywhere.
pub(super) fn layouts(out: &mut Vec<Case>) {
    type Record = fn(&Recording, &[Tensor]) -> Result<Value>;
    /// Which element of which operand comes where; none is 7.
    type From = fn(usize) -> Option<(usize, usize)>;
    /// The name, the operands' extents, the result's.
    type Moved = (&'static str, &'static [&'static [usize]], &'static [usize], Record, From);
    let cases: [Moved; 9] = [
        (
            "concat at 5",
            &[&[5], &[6], &[1]],
            &[12],
            |r, t| r.concat(t, 0),
            |i| {
                Some(if i < 5 {
                    (0, i)
                } else if i < 11 {
                    (1, i - 5)
                } else {
                    (2, 0)
                })
            },
        ),
        (
            "concat of columns",
            &[&[3, 5], &[3, 2]],
            &[3, 7],
            |r, t| r.concat(t, 1),
            |i| {
                let (row, column) = (i / 7, i % 7);
                Some(if column < 5 { (0, 5 * row + column) } else { (1, 2 * row + column - 5) })
            },
        ),
        ("stack", &[&[7], &[7]], &[7, 2], |r, t| r.stack(t, 1), |i| Some((i % 2, i / 2))),
        (
            "pad",
            &[&[3, 5]],
            &[6, 9],
            |r, t| pad(r, &t[0]),
            |i| {
                let (row, column) = (i / 9, i % 9);
                ((1..4).contains(&row) && (3..8).contains(&column)).then(|| (0, 5 * (row - 1) + column - 3))
            },
        ),
        ("slice at 3", &[&[20]], &[9], |r, t| r.slice(&t[0], 3..12), |i| Some((0, i + 3))),
        (
            "slice of columns",
            &[&[6, 7]],
            &[6, 5],
            |r, t| r.slice(&t[0], (.., 1..6)),
            |i| Some((0, i / 5 * 7 + i % 5 + 1)),
        ),
        ("flip", &[&[13]], &[13], |r, t| r.slice_step(&t[0], .., &[-1]), |i| Some((0, 12 - i))),
        ("transpose", &[&[7, 9]], &[9, 7], |r, t| r.transpose(&t[0]), |i| Some((0, i % 7 * 9 + i / 7))),
        ("broadcast", &[&[3, 1]], &[3, 6], |r, t| r.broadcast_to(&t[0], [3, 6]), |i| Some((0, i / 6))),
    ];
    for dtype in NARROW.into_iter().chain([DType::F16, DType::Bf16, DType::Bool]) {
        for (what, from, to, record, place) in cases {
            let inputs = from.iter().zip(1..).map(|(extents, seed)| some(dtype, extents, seed)).collect();
            let n: usize = to.iter().product();
            let expected = move |x: &[Array]| {
                let words: Vec<_> = x.iter().map(Array::widened).collect();
                let seven = || if is_float(dtype) { 7f32.to_bits() } else { wrapped(dtype, 7) };
                Expected::Words((0..n).map(|i| place(i).map_or_else(seven, |(k, at)| words[k][at])).collect())
            };
            let what = format!("{what} {dtype}");
            out.push(Case::new(
                "moved_packed",
                "elementwise",
                what,
                inputs,
                Kind::new(dtype, to),
                record,
                expected,
            ));
        }
    }
    let inputs = vec![some(DType::U8, &[BENCHED / 2 - 3], 1), some(DType::U8, &[BENCHED / 2 + 3], 2)];
    let joined = |x: &[Array]| stored(DType::U8, numbers(&x[0]).into_iter().chain(numbers(&x[1])));
    let (what, result) = (format!("concat of {BENCHED} bytes"), Kind::of::<u8>(&[BENCHED]));
    let case = Case::new("moved_packed", "elementwise", what, inputs, result, |r, t| r.concat(t, 0), joined);
    out.push(case.bench("op_moved_packed"));
}

fn pad(r: &Recording, x: &Tensor) -> Result<Value> {
    let pads = [(1, 2), (3, 1)];
    match x.dtype() {
        DType::F16 => r.pad(x, pads, F16::from_f32(7.0)),
        DType::Bf16 => r.pad(x, pads, Bf16::from_f32(7.0)),
        DType::I16 => r.pad(x, pads, 7i16),
        DType::I8 => r.pad(x, pads, 7i8),
        DType::U16 => r.pad(x, pads, 7u16),
        DType::U8 => r.pad(x, pads, 7u8),
        _ => r.pad(x, pads, Bool::TRUE),
    }
}

/// Indices of 8 bits, and elements that are read and written by them.
pub(super) fn indices(out: &mut Vec<Case>) {
    type Record = fn(&Recording, &[Tensor]) -> Result<Value>;
    const PLACES: [i8; 9] = [4, 0, 12, -1, 4, 7, 100, 5, 6];
    let inside = |at: i8, extent: usize| usize::try_from(at).ok().filter(|at| *at < extent);
    for dtype in NARROW {
        let places = || Input::new(&[9], || PLACES.to_vec());
        let gathered = move |x: &[Array]| {
            let x = numbers(&x[0]);
            stored(dtype, PLACES.iter().map(|at| inside(*at, 13).map_or(0, |at| x[at])))
        };
        let case = |what: &str, record: Record, result, expected: fn(i64, i64) -> i64| {
            let scattered = move |x: &[Array]| {
                let (mut base, updates) = (numbers(&x[0]), numbers(&x[2]));
                for (at, update) in PLACES.iter().zip(updates) {
                    if let Some(at) = inside(*at, 13) {
                        base[at] = number(dtype, wrapped(dtype, expected(base[at], update)));
                    }
                }
                stored(dtype, base.into_iter())
            };
            let inputs = vec![some(dtype, &[13], 1), places(), some(dtype, &[9], 2)];
            Case::new(
                "moved_packed",
                "elementwise",
                format!("{what} {dtype}"),
                inputs,
                result,
                record,
                scattered,
            )
        };
        let result = Kind::new(dtype, &[13]);
        out.push(Case::new(
            "moved_packed",
            "elementwise",
            format!("gather {dtype}"),
            vec![some(dtype, &[13], 1), places()],
            Kind::new(dtype, &[9]),
            |r, t| r.gather(&t[0], &t[1], 0),
            gathered,
        ));
        out.push(case("scatter", |r, t| r.scatter(&t[0], &t[1], &t[2], 0), result, |_, update| update));
        out.push(case(
            "scatter_add",
            |r, t| r.scatter_add(&t[0], &t[1], &t[2], 0),
            result,
            |base, update| base + update,
        ));
        out.push(case("scatter_max", |r, t| r.scatter_max(&t[0], &t[1], &t[2], 0), result, i64::max));
        let sorted = move |x: &[Array]| {
            let mut x = numbers(&x[0]);
            x.sort_unstable();
            stored(dtype, x.into_iter())
        };
        out.push(Case::new(
            "moved_packed",
            "elementwise",
            format!("sort {dtype}"),
            vec![some(dtype, &[1003], 1)],
            Kind::new(dtype, &[1003]),
            |r, t| r.sort(&t[0], 0),
            sorted,
        ));
        for (what, exclusive) in [("cummax", false), ("exclusive cummax", true)] {
            let running = move |x: &[Array]| {
                let x = numbers(&x[0]);
                let mut largest = limits(dtype)[0] as i64;
                let step = |n: &i64| {
                    let before = largest;
                    largest = largest.max(*n);
                    if exclusive { before } else { largest }
                };
                stored(dtype, x.iter().map(step).collect::<Vec<_>>().into_iter())
            };
            let record = move |r: &Recording, t: &[Tensor]| {
                let along = Along::axis(0);
                r.cummax(&t[0], if exclusive { along.exclusive() } else { along })
            };
            out.push(Case::new(
                "moved_packed",
                "elementwise",
                format!("{what} {dtype}"),
                vec![some(dtype, &[1003], 1)],
                Kind::new(dtype, &[1003]),
                record,
                running,
            ));
        }
    }
}
