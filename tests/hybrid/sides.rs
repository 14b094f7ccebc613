//! Operations and chains give the same on both sides.

use tidemill::cpu::{Matmul, View};
use tidemill::hybrid::{Chain, Hybrid, Link, Ran};
use tidemill::{DType, Error};

use crate::both_sides;

#[test]
fn both_sides_of_a_chain_give_the_same_numbers_and_the_same_refusals() {
    let (gpu, sides) = both_sides();
    let (x, w): (Vec<f32>, Vec<f32>) =
        ((0..32).map(|i| i as f32 / 16.0 - 1.0).collect(), (0..8).map(|i| i as f32 / 4.0 - 1.0).collect());
    let there = gpu.upload(&w, [4, 2]).unwrap();
    let results = sides.each_ref().map(|hybrid| {
        let (mut y, mut total) = (vec![0.0; 16], [0.0]);
        hybrid
            .chain(|c| {
                let (x, w) = (c.input((&x, [8, 4]))?, c.input(&there)?);
                let h = c.matmul(x, w)?;
                let h = c.tanh(h)?;
                let h = c.softmax(h, -1)?;
                let all = c.sum(h, tidemill::Axes::ALL)?;
                c.output(h, &mut y)?;
                c.output(all, &mut total)
            })
            .unwrap();
        assert!((total[0] - 8.0).abs() < 1e-5);
        y
    });
    assert!(results[0].iter().zip(&results[1]).all(|(a, b)| (a - b).abs() < 1e-6), "{results:?}");
    for hybrid in &sides {
        let refused = hybrid.add(&x, &w, &mut [0.0; 32]).unwrap_err();
        assert_eq!(refused.to_string(), "add: lhs [32] and rhs [8]: 32 != 8 in dimension 0");
        let refused = hybrid.relu(&x, &mut [0.0; 3]).unwrap_err();
        assert!(matches!(refused, Error::Length { op: "relu", got: 3, .. }), "{refused}");
        let mut out = [0.0; 8];
        hybrid.relu(&there, &mut out).unwrap();
        assert_eq!(out[7], 0.75);
    }
}

/// Calls an operation of `Hybrid` on both sides; results must be those of the CPU's function, which has the table of
/// cases.
macro_rules! same {
    ($sides:expr, $name:ident($($argument:expr),*) -> [$type:ty; $n:expr]) => {
        let mut expected = vec![<$type>::default(); $n];
        let shape = tidemill::cpu::$name($($argument,)* &mut expected).unwrap();
        for hybrid in $sides {
            let mut out = vec![<$type>::default(); $n];
            let ran = hybrid.$name($($argument,)* &mut out).unwrap();
            assert_eq!((&out, ran.shape), (&expected, shape), "{} at {:?}", stringify!($name), ran.decision.side);
        }
    };
}

#[test]
fn choices_and_moves_are_the_cpus_on_both_sides() {
    let (_gpu, sides) = both_sides();
    let x: Vec<f32> = (0..60u32).map(|i| (i * 7919 % 41) as f32 - 20.0).collect();
    let y: Vec<f32> = x.iter().rev().copied().collect();
    let (ints, words): (Vec<i32>, Vec<u32>) = ((-30..30).collect(), (0..60).collect());
    let mask: Vec<u32> = (0..60).map(|i| i % 3).collect();
    let (a, b) = (View::new(&x, [3, 4, 5]), View::new(&y, [3, 4, 5]));
    let row = View::new(&y[..5], [5]);
    same!(&sides, eq(a, b) -> [u32; 60]);
    same!(&sides, ne(a, row) -> [u32; 60]);
    same!(&sides, lt(a, b) -> [u32; 60]);
    same!(&sides, le(a, row) -> [u32; 60]);
    same!(&sides, gt(a, b) -> [u32; 60]);
    same!(&sides, ge(a, b) -> [u32; 60]);
    same!(&sides, eq_scalar(a, 3.0) -> [u32; 60]);
    same!(&sides, ne_scalar(a, 3.0) -> [u32; 60]);
    same!(&sides, lt_scalar(a, 3.0) -> [u32; 60]);
    same!(&sides, le_scalar(a, 3.0) -> [u32; 60]);
    same!(&sides, gt_scalar(a, 3.0) -> [u32; 60]);
    same!(&sides, ge_scalar(a, 3.0) -> [u32; 60]);
    same!(&sides, argmax(a, 1) -> [u32; 15]);
    same!(&sides, argmin(a, tidemill::Axes::ALL) -> [u32; 1]);
    same!(&sides, select((&mask, [3, 4, 5]), a, row) -> [f32; 60]);
    same!(&sides, select(&mask, &ints, &ints) -> [i32; 60]);
    same!(&sides, cast(&x) -> [i32; 60]);
    same!(&sides, cast(&ints) -> [u32; 60]);
    same!(&sides, cast(&words) -> [f32; 60]);
    same!(&sides, cast(&x) -> [f32; 60]);
    same!(&sides, permute(a, &[2, 0, 1]) -> [f32; 60]);
    same!(&sides, transpose((&ints, [5, 12])) -> [i32; 60]);
    same!(&sides, slice(a, [1..3, 0..2, 2..5]) -> [f32; 12]);
    same!(&sides, broadcast_to(row, [4, 5]) -> [f32; 20]);
    same!(&sides, pad((&words, [12, 5]), &[(1, 0), (2, 3)], 9) -> [u32; 130]);
    same!(&sides, gather_rows((&x, [12, 5]), (&[3, 11, 3, 99], [2, 2])) -> [f32; 20]);
    let (mut joined, mut stacked) = (vec![0.0; 65], vec![0.0; 120]);
    tidemill::cpu::concat(&[View::new(&x, [12, 5]), View::new(&y[..5], [1, 5])], 0, &mut joined).unwrap();
    tidemill::cpu::stack(&[View::new(&x, [12, 5]), View::new(&y, [12, 5])], 1, &mut stacked).unwrap();
    for hybrid in &sides {
        let (mut out, row) = (vec![0.0; 65], &y[..5]);
        hybrid.concat(&[(&x, [12, 5]).into(), (row, [1, 5]).into()], 0, &mut out).unwrap();
        assert_eq!(out, joined);
        let mut out = vec![0.0; 120];
        let ran = hybrid.stack(&[(&x, [12, 5]).into(), (&y, [12, 5]).into()], 1, &mut out).unwrap();
        assert_eq!((out, ran.shape), (stacked.clone(), [12, 2, 5].into()));
        let (mut counts, mut uniform, mut normal) = ([0; 60], [0.0; 60], [0.0; 60]);
        hybrid.iota::<u32>(&mut counts).unwrap();
        hybrid.random_uniform(7, &mut uniform).unwrap();
        hybrid.random_normal(7, &mut normal).unwrap();
        let (mut bits, mut near) = ([0.0; 60], [0.0; 60]);
        tidemill::cpu::random_uniform(&mut bits, 7);
        tidemill::cpu::random_normal(&mut near, 7);
        assert_eq!((&counts[..], uniform), (&words[..], bits));
        assert!(normal.iter().zip(near).all(|(a, b)| (a - b).abs() < 1e-5));
    }
}

#[test]
fn arithmetic_is_the_cpus_on_both_sides_for_integers_too() {
    let (_gpu, sides) = both_sides();
    let x: Vec<f32> = (0..60u32).map(|i| (i * 7919 % 41) as f32 - 20.0).collect();
    let (ints, words): (Vec<i32>, Vec<u32>) = ((-30..30).collect(), (1..61).collect());
    let (i, w) = (View::new(&ints, [3, 4, 5]), View::new(&words, [3, 4, 5]));
    let row = View::new(&words[..5], [5]);
    same!(&sides, add(&x, &x) -> [f32; 60]);
    same!(&sides, add(i, i) -> [i32; 60]);
    same!(&sides, sub(w, row) -> [u32; 60]);
    same!(&sides, mul(i, i) -> [i32; 60]);
    same!(&sides, div(w, row) -> [u32; 60]);
    same!(&sides, min(i, i) -> [i32; 60]);
    same!(&sides, max(w, row) -> [u32; 60]);
    same!(&sides, add_scalar(i, -7) -> [i32; 60]);
    same!(&sides, sub_scalar(&x, 0.5) -> [f32; 60]);
    same!(&sides, sub_scalar(w, 70) -> [u32; 60]);
    same!(&sides, scale(i, 3) -> [i32; 60]);
    same!(&sides, div_scalar(&x, 4.0) -> [f32; 60]);
    same!(&sides, div_scalar(i, 4) -> [i32; 60]);
    same!(&sides, min_scalar(&x, 0.5) -> [f32; 60]);
    same!(&sides, min_scalar(w, 30) -> [u32; 60]);
    same!(&sides, max_scalar(&x, 0.5) -> [f32; 60]);
    same!(&sides, max_scalar(i, 0) -> [i32; 60]);
    same!(&sides, neg(i) -> [i32; 60]);
    same!(&sides, abs(i) -> [i32; 60]);
    same!(&sides, sign(i) -> [i32; 60]);
    same!(&sides, sum(i, 1) -> [i32; 15]);
    same!(&sides, amax(w, 0) -> [u32; 20]);
    same!(&sides, amin(i, tidemill::Axes::ALL) -> [i32; 1]);
    same!(&sides, argmax(i, 2) -> [u32; 12]);
    same!(&sides, lt(w, row) -> [u32; 60]);
    same!(&sides, ge_scalar(i, 3) -> [u32; 60]);
    for hybrid in &sides {
        let refused = hybrid.div_scalar(&x, f32::NAN, &mut [0.0; 60]).unwrap_err();
        assert!(matches!(refused, Error::Parameter { op: "div_scalar", .. }), "{refused}");
    }
}

#[test]
fn matmuls_with_choices_are_the_cpus_on_both_sides_alone_and_in_chains() {
    let (_gpu, sides) = both_sides();
    // Small whole numbers: every order of summation gives the same exact result.
    let whole = |n: i32| -> Vec<f32> { (0..n).map(|i| (i * 7 % 5 - 2) as f32).collect() };
    let (a, b, c) = (whole(15), whole(20), whole(4));
    let how = || Matmul::new().transpose_lhs().transpose_rhs().alpha(2.0).accumulate(0.5, &c);
    let (lhs, rhs) = (View::new(&a, [5, 3]), View::new(&b, [4, 5]));
    same!(&sides, matmul_with(lhs, rhs, how()) -> [f32; 12]);
    let mut expected = vec![0.0; 12];
    tidemill::cpu::matmul_with(lhs, rhs, how(), &mut expected).unwrap();
    for hybrid in &sides {
        let (mut matmul, mut dot) = (vec![0.0; 12], [0.0]);
        hybrid
            .chain(|chain| {
                let (x, y) = (chain.input(lhs)?, chain.input(rhs)?);
                let z = chain.matmul_with(x, y, how())?;
                chain.output(z, &mut matmul)?;
                let v = chain.input(&b)?;
                let d = chain.dot(v, v)?;
                chain.output(d, &mut dot)
            })
            .unwrap();
        assert_eq!((&matmul, dot[0]), (&expected, b.iter().map(|b| b * b).sum::<f32>()));
        let alone = hybrid.dot(&a, &b, &mut [0.0]).unwrap_err().to_string();
        let chained = hybrid.chain(|chain| {
            let (x, y) = (chain.input(&a)?, chain.input(&b)?);
            chain.dot(x, y).map(|_| ())
        });
        assert_eq!(chained.unwrap_err().to_string(), alone);
        let refused = hybrid.matmul_with(lhs, rhs, Matmul::new(), &mut [0.0; 12]).unwrap_err();
        assert_eq!(refused.to_string(), "matmul: lhs [5, 3] x rhs [4, 5]: inner 3 != 4");
    }
}

#[test]
fn a_chain_has_integers_on_both_sides_alike() {
    let (_gpu, sides) = both_sides();
    let (ints, words): (Vec<i32>, Vec<u32>) = ((-6..6).collect(), (1..13).collect());
    let results = sides.each_ref().map(|hybrid| {
        let (mut totals, mut halves, mut places) = ([0i32; 3], [0u32; 12], [0u32; 3]);
        hybrid
            .chain(|c| {
                let (x, y) = (c.input_of::<i32>((&ints, [3, 4]))?, c.input_of::<u32>((&words, [3, 4]))?);
                let z = c.neg(x)?;
                let z = c.mul(z, x)?;
                let z = c.add_scalar(z, 40)?;
                let z = c.min_scalar(z, 30)?;
                let sums = c.sum(z, 1)?;
                c.output(sums, &mut totals)?;
                let place = c.argmax(x, 1)?;
                c.output(place, &mut places)?;
                let half = c.div_scalar(y, 2u32)?;
                let even = c.eq_scalar(half, 3u32)?;
                let half = c.sub(half, even)?;
                c.output(half, &mut halves)
            })
            .unwrap();
        let refused = hybrid.chain(|c| {
            let y = c.input_of::<u32>(&words)?;
            c.neg(y).map(|_| ())
        });
        assert_eq!(refused.unwrap_err().to_string(), "neg: the operand is u32, this needs f32");
        let refused = hybrid.chain(|c| {
            let y = c.input_of::<u32>(&words)?;
            c.add_scalar(y, 1.5f32).map(|_| ())
        });
        assert_eq!(refused.unwrap_err().to_string(), "add_scalar: the operand is u32, this needs f32");
        (totals, halves, places)
    });
    assert_eq!(results[0], results[1]);
    // 40 - x * x, at most 30.
    assert_eq!(results[0].0, [4 + 15 + 24 + 30, 30 + 30 + 30 + 30, 30 + 30 + 24 + 15]);
    assert_eq!(results[0].1, [0, 1, 1, 2, 2, 2, 2, 4, 4, 5, 5, 6]);
}

#[test]
fn a_chain_chooses_gathers_and_moves_on_both_sides_alike() {
    let (gpu, sides) = both_sides();
    let (table, rows): (Vec<f32>, Vec<u32>) = ((0..24).map(|i| i as f32 - 12.0).collect(), vec![5, 0, 2]);
    let counted = gpu.upload(&[7u32, 8, 9], [3]).unwrap();
    let results = sides.map(|hybrid| {
        let (mut y, mut best, mut whole) = (vec![0.0; 30], [0u32; 3], [0i32; 12]);
        hybrid
            .chain(|c| {
                let (table, rows) = (c.input((&table, [6, 4]))?, c.input_of::<u32>(&rows)?);
                let x = c.gather_rows(table, rows)?;
                let negative = c.lt_scalar(x, 0.0)?;
                let up = c.add_scalar(x, 100.0)?;
                let x = c.select(negative, up, x)?;
                let top = c.argmax(x, 1)?;
                c.output(top, &mut best)?;
                let ints = c.cast(x, DType::I32)?;
                let turned = c.permute(ints, &[1, 0])?;
                c.output(turned, &mut whole)?;
                let there = c.input(&counted)?;
                let there = c.cast(there, DType::F32)?;
                let column = c.stack(&[there], 1)?;
                let wide = c.concat(&[x, column], 1)?;
                let wide = c.pad(wide, &[(0, 1), (0, 0)], 0.5f32)?;
                let (left, right) = (c.slice(wide, [0..4, 0..3])?, c.slice(wide, [0..4, 3..5])?);
                let swapped = c.concat(&[right, left], 1)?;
                let turned = c.transpose(swapped)?;
                let line = c.slice(turned, 0..1)?;
                let line = c.broadcast_to(line, [2, 4])?;
                let longer = c.slice(line, [0..2, 0..2])?;
                let same = c.ge(longer, longer)?;
                let same = c.cast(same, DType::F32)?;
                let flat = c.sum(same, tidemill::Axes::ALL)?;
                let flat = c.broadcast_to(flat, [2, 5])?;
                let turned = c.transpose(turned)?;
                let both = c.concat(&[turned, flat], 0)?;
                c.output(both, &mut y)
            })
            .unwrap();
        (y, best, whole)
    });
    let (y, best, whole) = &results[0];
    assert_eq!(results[0], results[1]);
    // Rows 5, 0, 2 of the table with 100 added where they are negative.
    assert_eq!(*whole, [8, 88, 96, 9, 89, 97, 10, 90, 98, 11, 91, 99]);
    assert_eq!(*best, [3, 3, 3]);
    assert_eq!(y[..10], [11.0, 7.0, 8.0, 9.0, 10.0, 91.0, 8.0, 88.0, 89.0, 90.0]);
    assert_eq!(y[15..], [0.5, 0.5, 0.5, 0.5, 0.5, 4.0, 4.0, 4.0, 4.0, 4.0, 4.0, 4.0, 4.0, 4.0, 4.0]);
}

#[test]
fn what_can_not_be_chosen_or_moved_is_refused_alike_alone_and_in_chains() {
    let (gpu, sides) = both_sides();
    let (x, mask) = ([1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0], [1u32, 0, 1]);
    let wide = View::new(&x, [2, 3]);
    let words = gpu.upload(&mask, [3]).unwrap();
    let refused = |alone: tidemill::Result<Ran>,
                   chain: &dyn Fn(&mut Chain<'_>, Link) -> tidemill::Result<Link>,
                   hybrid: &Hybrid| {
        let alone = alone.unwrap_err().to_string();
        let mut out = [0.0f32; 6];
        let chained = hybrid.chain(|c| {
            let x = c.input((&x, [2, 3]))?;
            let link = chain(c, x)?;
            c.output(link, &mut out)
        });
        assert_eq!(chained.unwrap_err().to_string(), alone);
        alone
    };
    for hybrid in &sides {
        let out = &mut [0.0f32; 6];
        let said = refused(hybrid.permute(wide, &[0, 0], out), &|c, x| c.permute(x, &[0, 0]), hybrid);
        assert_eq!(said, "permute: the order [0, 0] does not name each of the 2 dimensions of [2, 3] once");
        let said = refused(hybrid.slice(wide, 0..3, out), &|c, x| c.slice(x, 0..3), hybrid);
        assert_eq!(said, "slice: the range 0..3 of dimension 0 does not lie in shape [2, 3]");
        let said =
            refused(hybrid.pad(wide, &[(1, 1)], 0.0, out), &|c, x| c.pad(x, &[(1, 1)], 0.0f32), hybrid);
        assert_eq!(
            said,
            "pad: 1 pairs were given, shape [2, 3] has 2 dimensions; give one pair per dimension"
        );
        refused(hybrid.broadcast_to(wide, [2, 4], out), &|c, x| c.broadcast_to(x, [2, 4]), hybrid);
        refused(hybrid.concat::<f32>(&[], 0, out), &|c, _| c.concat(&[], 0), hybrid);
        refused(
            hybrid.stack(&[wide.into(), (&x[..4], [2, 2]).into()], 0, out),
            &|c, x| {
                let flat = c.slice(x, [0..2, 0..2])?;
                c.stack(&[x, flat], 0)
            },
            hybrid,
        );
        let lt = hybrid.lt_scalar(wide, f32::NAN, &mut [0; 6]).unwrap_err();
        assert!(matches!(lt, Error::Parameter { op: "lt_scalar", .. }), "{lt}");
        let axis = hybrid.argmax(wide, 2, &mut [0; 2]).unwrap_err();
        assert!(matches!(axis, Error::Axis { op: "argmax", .. }), "{axis}");
        let got = hybrid.cast::<f32, i32>(&words, &mut [0; 3]).unwrap_err();
        assert_eq!(got.to_string(), "cast: the operand is u32, this needs f32");
        let got = hybrid.chain(|c| {
            let x = c.input((&x, [2, 3]))?;
            let link = c.select(x, x, x)?;
            c.output(link, out)
        });
        let said = got.unwrap_err().to_string();
        assert_eq!(said, "select: the operand is f32, this needs u32");
    }
}
