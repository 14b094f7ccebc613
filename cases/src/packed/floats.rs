//! bf16 wherever f32 goes: computed with as f32, rounded once.

use tidemill::{Bf16, DType, Epilogue, Recording, Tensor};

use super::{OfTwo, SHORT, rounded};
use crate::data::{BENCHED, uniform};
use crate::matmul::operand;
use crate::reference::matmul::MatmulReference;
use crate::{Array, Bound, Case, Expected, Input, Kind};

/// bf16 wherever f32 goes: computed with as f32, rounded once.
pub(super) fn cases(out: &mut Vec<Case>) {
    let some = |extents: &[usize], seed| {
        let n = extents.iter().product();
        Input::new(extents, move || uniform(n, -0.5, 1.0, seed).into_iter().map(Bf16::from_f32).collect())
    };
    type Of = fn(f32, f32) -> f32;
    let pairs: [(&str, OfTwo, Of); 4] = [
        ("add", |r, a, b| r.add(a, b), |a, b| a + b),
        ("mul", |r, a, b| r.mul(a, b), |a, b| a * b),
        ("div", |r, a, b| r.div(a, b), |a, b| a / b),
        ("max", |r, a, b| r.max(a, b), f32::max),
    ];
    for (op, record, of) in pairs {
        for n in SHORT.into_iter().chain((op == "add").then_some(BENCHED)) {
            let expected = move |x: &[Array]| {
                let (a, b) = (x[0].floats(), x[1].floats());
                Expected::Floats(a.iter().zip(&*b).map(|(a, b)| rounded(DType::Bf16, of(*a, *b))).collect())
            };
            let (what, inputs) = (format!("{op} [{n}]"), vec![some(&[n], 1), some(&[n], 2)]);
            let result = Kind::of::<Bf16>(&[n]);
            let record = move |r: &Recording, t: &[Tensor]| record(r, &t[0], &t[1]);
            let case =
                Case::new("elementwise_bf16", "elementwise", what, inputs, result, record, expected).flops(n);
            out.push(if n == BENCHED { case.bench("op_elementwise_bf16") } else { case });
        }
    }
    let chain = |n: usize| {
        let record = |r: &Recording, t: &[Tensor]| {
            let product = r.mul(&t[0], &t[1])?;
            let sum = r.add(product, &t[0])?;
            r.scale(r.relu(sum)?, 3.0f32)
        };
        let expected = |x: &[Array]| {
            let store = |x: f32| Bf16::from_f32(x).to_f32();
            let exact = |(a, b): (&f32, &f32)| rounded(DType::Bf16, store(store(a * b) + a).max(0.0) * 3.0);
            Expected::Floats(x[0].floats().iter().zip(&*x[1].floats()).map(exact).collect())
        };
        let (what, inputs) = (format!("relu(a * b + a) * 3 [{n}]"), vec![some(&[n], 1), some(&[n], 2)]);
        Case::new("elementwise_bf16", "elementwise", what, inputs, Kind::of::<Bf16>(&[n]), record, expected)
            .flops(4 * n)
    };
    out.extend([5, 1000, 4097].map(chain));
    for (lhs, rhs) in [
        ([4, 4], [4, 4]),
        ([5, 9], [9, 7]),
        ([33, 20], [20, 64]),
        ([17, 12], [12, 35]),
        ([3, 300], [300, 10]),
        ([70, 130], [130, 66]),
        ([256, 256], [256, 256]),
    ] {
        // One operand, the other or both; with a bias that is one, too.
        for which in [[true, true], [true, false], [false, true]] {
            let (both, timed) = (which == [true; 2], lhs == [256, 256]);
            if timed && !both {
                continue;
            }
            let reference = MatmulReference::new(&lhs, &rhs, [false; 2]);
            let factor = |shape: &[usize], packed: bool, seed| match packed {
                true => some(shape, seed),
                false => operand(shape, false, seed),
            };
            let inputs = vec![factor(&lhs, which[0], 1), factor(&rhs, which[1], 2), some(&[rhs[1]], 3)];
            let result = Kind::new(if both { DType::Bf16 } else { DType::F32 }, &[lhs[0], rhs[1]]);
            let flops = reference.flops();
            let expected = move |x: &[Array]| {
                let (mut sums, bias) = (reference.of(&x[0].floats(), &x[1].floats()), x[2].floats());
                sums.iter_mut().enumerate().for_each(|(i, sum)| *sum += f64::from(bias[i % bias.len()]));
                Expected::Floats(sums)
            };
            let what = format!("{lhs:?} x {rhs:?} packed {which:?}");
            let record = |r: &Recording, t: &[Tensor]| r.matmul_with(&t[0], &t[1], Epilogue::bias(&t[2]));
            let case =
                Case::new("matmul_bf16", "matmul", what, inputs, result, record, expected).flops(flops);
            // The square of half of the last of 8 bits, relative, is 4e-6.
            let case = case.bound(Bound::Nmse(if both { 6e-6 } else { 1e-10 }));
            out.push(if timed { case.bench("op_matmul_bf16") } else { case });
        }
    }
}
