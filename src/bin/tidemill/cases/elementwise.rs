//! Elementwise operations.

use super::data::{LENGTHS, SPECIAL, uniform};
use super::{Bound, Case, compare, reference};

/// Adds the cases.
pub fn cases(out: &mut Vec<Case>) {
    for op in ["add", "sub", "mul", "div"] {
        for n in LENGTHS {
            let (a, b) = (uniform(n, -4.0, 4.0, 1), uniform(n, -4.0, 4.0, 2));
            out.push(binary(op, format!("[{n}]"), a, b));
        }
        let pairs = SPECIAL.iter().flat_map(|a| SPECIAL.iter().map(move |b| (*a, *b)));
        let (a, b) = pairs.unzip();
        out.push(binary(op, "special values".to_owned(), a, b));
    }
}

fn binary(op: &'static str, what: String, a: Vec<f32>, b: Vec<f32>) -> Case {
    Case::new(op, "map", what, move |gpu| {
        let (ta, tb) = (gpu.upload(&a, [a.len()])?, gpu.upload(&b, [b.len()])?);
        let result = gpu.run(|r| match op {
            "add" => r.add(&ta, &tb),
            "sub" => r.sub(&ta, &tb),
            "mul" => r.mul(&ta, &tb),
            _ => r.div(&ta, &tb),
        })?;
        let pairs = a.iter().zip(&b);
        let expected: Vec<f64> =
            pairs.map(|(a, b)| reference::binary(op, f64::from(*a), f64::from(*b))).collect();
        let bound = if op == "div" { Bound::Ulp(2.5) } else { Bound::Ulp(0.5) };
        Ok(compare(&expected, &result.read::<f32>()?, bound))
    })
}
