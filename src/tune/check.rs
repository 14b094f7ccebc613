//! Whether a result is right, for a fraction of the work that it took, after Freivalds: weighted sums of the result
//! must be what the operation makes of weighted sums of an operand.

use super::numbers::numbers;

/// Columns of a matmul, or channels of a convolution, that are checked together.
const CHECKED_TOGETHER: usize = 16;
/// Rows and columns of a convolution's kernel.
pub(super) use crate::kernels::conv2d::family::PROBLEM_TAPS as TAPS;

/// One square image that is convolved with padding that keeps its size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Images {
    pub(super) groups: usize,
    /// Of the input, in a group.
    pub(super) channels: usize,
    /// Channels of the result, in a group.
    pub(super) rows: usize,
    /// Pixels of a row and of a column.
    pub(super) size: usize,
}

/// Between 1 and 2, so that no element is lost in a sum.
fn weights(count: usize) -> Vec<f64> {
    numbers(count, 7).iter().map(|&x| 1.5 + 0.5 * f64::from(x)).collect()
}

/// By how much a weighted sum may be off: operands are below 1 and weights below 2; a sum of `depth` products in f32
/// is off by some roundings.
fn allowed(depth: usize) -> f64 {
    2.0 * CHECKED_TOGETHER as f64 * f64::from(f32::EPSILON) * depth as f64
}

/// Whether `c` is `a` x `b`: with weights w for some columns at a time, C w must be A (B w).
pub(super) fn is_matmul([m, n, k]: [usize; 3], a: &[f32], b: &[f32], c: &[f32]) -> bool {
    if c.len() != m * n || !c.iter().all(|x| x.is_finite()) {
        return false;
    }
    let weights = weights(n);
    let weighted = |row: &[f32], weights: &[f64]| -> f64 {
        row.iter().zip(weights).map(|(&x, weight)| f64::from(x) * weight).sum()
    };
    let allowed = allowed(k);
    (0..n).step_by(CHECKED_TOGETHER).all(|begin| {
        let columns = begin..(begin + CHECKED_TOGETHER).min(n);
        let weights = &weights[columns.clone()];
        let b_w: Vec<f64> = b.chunks_exact(n).map(|row| weighted(&row[columns.clone()], weights)).collect();
        let mut rows = a.chunks_exact(k).zip(c.chunks_exact(n));
        rows.all(|(of_a, of_c)| {
            let (wanted, got) = (weighted(of_a, &b_w), weighted(&of_c[columns.clone()], weights));
            (wanted - got).abs() <= allowed
        })
    })
}

/// Whether `y` is what all queries make of all keys and values: each row is worked out again.
pub(super) fn is_attention([heads, tokens, depth]: [usize; 3], [q, k, v]: [&[f32]; 3], y: &[f32]) -> bool {
    let row =
        |x: &[f32], at: usize| x[at * depth..][..depth].iter().map(|x| f64::from(*x)).collect::<Vec<_>>();
    let scale = 1.0 / (depth as f64).sqrt();
    y.len() == heads * tokens * depth
        && (0..heads).all(|head| {
            let rows = |x: &[f32]| (0..tokens).map(|token| row(x, head * tokens + token)).collect::<Vec<_>>();
            let (keys, values) = (rows(k), rows(v));
            rows(q).iter().zip(rows(y)).all(|(query, got)| {
                let score = |key: &Vec<f64>| query.iter().zip(key).map(|(a, b)| a * b).sum::<f64>();
                let weights: Vec<f64> = keys.iter().map(|key| (scale * score(key)).exp()).collect();
                let all: f64 = weights.iter().sum();
                let mut wanted = vec![0.0; depth];
                for (weight, value) in weights.iter().zip(&values) {
                    wanted.iter_mut().zip(value).for_each(|(wanted, v)| *wanted += weight / all * v);
                }
                wanted.iter().zip(&got).all(|(wanted, got)| (wanted - got).abs() <= 1e-4)
            })
        })
}

/// Whether `y` is the convolution of `x` with kernels `w`: channels of the result, weighted and added up, must be what
/// the kernels, weighted and added up, make of the input.
pub(super) fn is_convolution(images: Images, x: &[f32], w: &[f32], y: &[f32]) -> bool {
    let Images { groups, channels, rows, size } = images;
    let (pixels, depth) = (size * size, channels * TAPS * TAPS);
    if y.len() != groups * rows * pixels || !y.iter().all(|y| y.is_finite()) {
        return false;
    }
    let (weights, allowed) = (weights(rows), allowed(depth));
    let all = (0..groups).flat_map(|g| (0..rows).step_by(CHECKED_TOGETHER).map(move |begin| (g, begin)));
    all.into_iter().all(|(group, begin)| {
        let weighted = |of: &[f32], length: usize, at: usize| -> f64 {
            let row = |r: usize| f64::from(of[(group * rows + r) * length + at]);
            (begin..(begin + CHECKED_TOGETHER).min(rows)).map(|r| weights[r] * row(r)).sum()
        };
        let kernel: Vec<f64> = (0..depth).map(|at| weighted(w, depth, at)).collect();
        let input = &x[group * channels * pixels..][..channels * pixels];
        (0..pixels).all(|pixel| {
            let wanted = kernel_at(&kernel, input, size, pixel);
            (wanted - weighted(y, pixels, pixel)).abs() <= allowed
        })
    })
}

/// What a kernel makes of the surroundings of one pixel; beyond the edges there are zeros.
fn kernel_at(kernel: &[f64], input: &[f32], size: usize, pixel: usize) -> f64 {
    let mut sum = 0.0;
    for (taps, channel) in kernel.chunks_exact(TAPS * TAPS).zip(input.chunks_exact(size * size)) {
        for (tap, weight) in taps.iter().enumerate() {
            let (y, x) = (pixel / size + tap / TAPS, pixel % size + tap % TAPS);
            let seen = |at: usize| at.checked_sub(TAPS / 2).filter(|at| *at < size);
            if let (Some(y), Some(x)) = (seen(y), seen(x)) {
                sum += weight * f64::from(channel[y * size + x]);
            }
        }
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each of these elements, made wrong, must show.
    fn shows(mut result: Vec<f32>, places: &[usize], is_right: impl Fn(&[f32]) -> bool) {
        assert!(is_right(&result));
        for &at in places {
            let right = result[at];
            result[at] += 0.01;
            assert!(!is_right(&result), "element {at}");
            result[at] = f32::NAN;
            assert!(!is_right(&result), "element {at}");
            result[at] = right;
        }
        assert!(!is_right(&result[1..]));
    }

    #[test]
    fn a_matmul_with_one_wrong_element_is_not_right() {
        let [m, n, k] = [5, 33, 64];
        let (a, b) = (numbers(m * k, 1), numbers(k * n, 2));
        let element = |i: usize, j: usize| (0..k).map(|x| a[i * k + x] * b[x * n + j]).sum::<f32>();
        let c = (0..m * n).map(|e| element(e / n, e % n)).collect();
        shows(c, &[0, n - 1, m * n - 1], |c| is_matmul([m, n, k], &a, &b, c));
    }

    #[test]
    fn a_convolution_with_one_wrong_element_is_not_right() {
        let images = Images { groups: 2, channels: 3, rows: 17, size: 5 };
        let (x, w) = (numbers(2 * 3 * 25, 1), numbers(2 * 17 * 27, 2));
        let element = |row: usize, pixel: usize| {
            let kernel: Vec<f64> = w[row * 27..][..27].iter().map(|&w| f64::from(w)).collect();
            kernel_at(&kernel, &x[row / 17 * 75..][..75], 5, pixel) as f32
        };
        let y: Vec<f32> = (0..34 * 25).map(|e| element(e / 25, e % 25)).collect();
        // The middle of the first channel sees all that there is.
        let middle: f32 = (0..27).map(|at| w[at] * x[at / 9 * 25 + (1 + at % 9 / 3) * 5 + 1 + at % 3]).sum();
        assert!((y[12] - middle).abs() < 1e-5);
        shows(y, &[0, 12, 17 * 25, 34 * 25 - 1], |y| is_convolution(images, &x, &w, y));
    }
}
