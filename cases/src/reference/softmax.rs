//! Softmax.

/// What a line becomes, and how far each element is below the largest.
pub fn softmax(logarithm: bool, line: impl Iterator<Item = f64> + Clone) -> Vec<(f64, f64)> {
    let max = line
        .clone()
        .fold(f64::NEG_INFINITY, |m, x| if m.is_nan() || x.is_nan() { f64::NAN } else { m.max(x) });
    let sum = line.clone().fold(0.0, |s, x| s + (x - max).exp());
    line.map(|x| {
        let below = x - max;
        let y = if logarithm { below - sum.ln() } else { below.exp() / sum };
        // An infinite or NaN maximum leaves nothing to divide by.
        (if max.is_finite() { y } else { f64::NAN }, below.abs())
    })
    .collect()
}
