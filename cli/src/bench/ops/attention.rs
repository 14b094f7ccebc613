//! Attention as one writes it by hand: a query's scores, their weights, and the weighted rows added up.

use tidemill::{DType, F16};

use crate::cases::Array;

/// Rows of the result, of so many tokens in each head.
pub(super) fn attention(x: &[Array], out: &mut Array) {
    let dims = x[0].kind.shape;
    let (tokens, depth) = (dims.dims()[1], dims.dims()[2]);
    let (q, k, v) = (x[0].floats(), x[1].floats(), x[2].floats());
    let scale = 1.0 / (depth as f32).sqrt();
    let (mut weights, mut sums) = (vec![0.0f32; tokens], vec![0.0f32; depth]);
    for (row, query) in q.chunks_exact(depth).enumerate() {
        let first = row / tokens * tokens * depth;
        let (keys, values) = (&k[first..][..tokens * depth], &v[first..][..tokens * depth]);
        for (weight, key) in weights.iter_mut().zip(keys.chunks_exact(depth)) {
            *weight = scale * query.iter().zip(key).map(|(a, b)| a * b).sum::<f32>();
        }
        let top = weights.iter().copied().fold(f32::MIN, f32::max);
        weights.iter_mut().for_each(|weight| *weight = (*weight - top).exp());
        let share = 1.0 / weights.iter().sum::<f32>();
        sums.fill(0.0);
        for (weight, value) in weights.iter().zip(values.chunks_exact(depth)) {
            sums.iter_mut().zip(value).for_each(|(sum, v)| *sum += weight * v);
        }
        let results = sums.iter().map(|sum| sum * share);
        let place = row * depth..(row + 1) * depth;
        match out.kind.dtype {
            DType::F16 => {
                out.of_mut::<F16>()[place].iter_mut().zip(results).for_each(|(o, x)| *o = F16::from_f32(x));
            }
            _ => out.of_mut::<f32>()[place].iter_mut().zip(results).for_each(|(o, x)| *o = x),
        }
    }
}

/// Rotary embedding of halves of rows, whose angles are worked out for each head.
pub(super) fn rotary(x: &[Array], out: &mut Array) {
    let dims = x[0].kind.shape;
    let (tokens, depth) = (dims.dims()[1], dims.dims()[2]);
    let (start, half) = (x[1].of::<u32>()[0], depth / 2);
    let rows = x[0].of::<f32>().chunks_exact(depth).zip(out.of_mut::<f32>().chunks_exact_mut(depth));
    for (row, (x, out)) in rows.enumerate() {
        let position = f64::from(start + (row % tokens) as u32);
        for pair in 0..half {
            let angle = position * 10_000f64.powf(-2.0 * pair as f64 / depth as f64);
            let (sin, cos) = (angle.sin() as f32, angle.cos() as f32);
            out[pair] = x[pair] * cos - x[pair + half] * sin;
            out[pair + half] = x[pair + half] * cos + x[pair] * sin;
        }
    }
}
