//! Matmuls.

use super::super::data::Random;

/// A matmul over the last two dimensions, batches broadcast.
#[derive(Debug)]
pub struct MatmulReference {
    /// Of the result, with the dimensions that vectors stand for.
    pub shape: Vec<usize>,
    /// Of the result, as users see it.
    pub visible: Vec<usize>,
    /// Of one result.
    pub rows: usize,
    /// Of one result.
    pub columns: usize,
    inner: usize,
    /// For each operand: batch extents, and the strides of its rows and columns.
    operands: [(Vec<usize>, usize, usize); 2],
}

impl MatmulReference {
    /// For operands of these shapes, as they are stored.
    pub fn new(lhs: &[usize], rhs: &[usize], transposed: [bool; 2]) -> MatmulReference {
        let with_vector = |shape: &[usize], left: bool| match *shape {
            [n] if left => vec![1, n],
            [n] => vec![n, 1],
            _ => shape.to_vec(),
        };
        let (a, b) = (with_vector(lhs, true), with_vector(rhs, false));
        let matrix = |shape: &[usize], transposed: bool| {
            let (rows, columns) = (shape[shape.len() - 2], shape[shape.len() - 1]);
            let batch = shape[..shape.len() - 2].to_vec();
            if transposed { (batch, columns, rows, 1, columns) } else { (batch, rows, columns, columns, 1) }
        };
        let (batch_a, rows, inner, row_a, column_a) = matrix(&a, transposed[0]);
        let (batch_b, _, columns, row_b, column_b) = matrix(&b, transposed[1]);
        let rank = batch_a.len().max(batch_b.len());
        let extent = |batch: &[usize], d: usize| (d + batch.len()).checked_sub(rank).map_or(1, |d| batch[d]);
        let batch: Vec<usize> = (0..rank)
            .map(|d| if extent(&batch_a, d) == 1 { extent(&batch_b, d) } else { extent(&batch_a, d) })
            .collect();
        let mut visible = batch.clone();
        visible.extend((lhs.len() > 1).then_some(rows));
        visible.extend((rhs.len() > 1).then_some(columns));
        let shape = batch.iter().copied().chain([rows, columns]).collect();
        let operands = [(batch_a, row_a, column_a), (batch_b, row_b, column_b)];
        MatmulReference { shape, visible, rows, columns, inner, operands }
    }

    /// Where an operand's matrix begins for the result's batch of this number.
    fn matrix(&self, operand: usize, mut number: usize) -> usize {
        let batch = &self.shape[..self.shape.len() - 2];
        let own = &self.operands[operand].0;
        let size = self.inner * if operand == 0 { self.rows } else { self.columns };
        let (mut at, mut stride) = (0, size);
        for d in (0..batch.len()).rev() {
            let coordinate = number % batch[d];
            number /= batch[d];
            if let Some(d) = (d + own.len()).checked_sub(batch.len()) {
                at += if own[d] == 1 { 0 } else { coordinate * stride };
                stride *= own[d];
            }
        }
        at
    }

    /// The result.
    pub fn of(&self, a: &[f32], b: &[f32]) -> Vec<f64> {
        let batches = self.shape[..self.shape.len() - 2].iter().product();
        let [(_, row_a, column_a), (_, row_b, column_b)] = &self.operands;
        let mut out = Vec::new();
        for number in 0..batches {
            let (a, b) = (&a[self.matrix(0, number)..], &b[self.matrix(1, number)..]);
            for i in 0..self.rows {
                for j in 0..self.columns {
                    let terms = (0..self.inner).map(|k| {
                        f64::from(a[i * row_a + k * column_a]) * f64::from(b[k * row_b + j * column_b])
                    });
                    out.push(terms.sum());
                }
            }
        }
        out
    }

    /// Two for each multiplication with its addition.
    pub fn flops(&self) -> usize {
        2 * self.shape.iter().product::<usize>() * self.inner
    }

    /// What one result gives for some vectors, without making it: `(A B) v` is `A (B v)`.
    pub fn projected(&self, a: &[f32], b: &[f32]) -> Projections {
        const VECTORS: usize = 8;
        let [(_, row_a, column_a), (_, row_b, column_b)] = &self.operands;
        let mut random = Random::new(1);
        let pair = |_| {
            let sign = |_| if random.bits() & 1 == 0 { 1.0 } else { -1.0 };
            let signs: Vec<f64> = (0..self.columns).map(sign).collect();
            let inner = times(b, [*row_b, *column_b], self.inner, &signs);
            let gives = times(a, [*row_a, *column_a], self.rows, &inner);
            (signs, gives)
        };
        Projections((0..VECTORS).map(pair).collect())
    }
}

/// Rows of a matrix with these strides, times a vector.
fn times(matrix: &[f32], [row, column]: [usize; 2], rows: usize, vector: &[f64]) -> Vec<f64> {
    let of_row = |i: usize| {
        let terms = vector.iter().enumerate().map(|(j, v)| v * f64::from(matrix[i * row + j * column]));
        terms.sum()
    };
    (0..rows).map(of_row).collect()
}

/// Vectors of 1 and -1, and what a matrix should give for each.
#[derive(Debug)]
pub struct Projections(Vec<(Vec<f64>, Vec<f64>)>);

impl Projections {
    /// The normalized mean squared error of a matrix, estimated: with signs by chance, `|E v|^2` is `|E|^2` on average
    /// (matmuls of two different signs cancel), for the errors as for the matrix itself. It takes no longer than to
    /// read the matrix some times. One wrong element shows in every vector; several in a row would have to cancel in
    /// each of them.
    pub fn nmse(&self, matrix: &[f32]) -> f64 {
        let (mut noise, mut signal) = (0.0, 0.0);
        for (vector, expected) in &self.0 {
            if matrix.len() != vector.len() * expected.len() {
                return f64::INFINITY;
            }
            let got = times(matrix, [vector.len(), 1], expected.len(), vector);
            noise += expected.iter().zip(&got).map(|(e, g)| (e - g).powi(2)).sum::<f64>();
            signal += expected.iter().map(|e| e * e).sum::<f64>();
        }
        if noise == 0.0 { 0.0 } else { noise / signal }
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::data::uniform;
    use super::MatmulReference;

    #[test]
    fn projections_estimate_the_error_of_the_whole() {
        for transposed in [[false; 2], [true; 2]] {
            let (lhs, rhs) = if transposed[0] { ([80, 60], [70, 80]) } else { ([60, 80], [80, 70]) };
            let matmul = MatmulReference::new(&lhs, &rhs, transposed);
            let (a, b) = (uniform(60 * 80, -0.5, 1.0, 1), uniform(80 * 70, -0.5, 1.0, 2));
            let (exact, projections) = (matmul.of(&a, &b), matmul.projected(&a, &b));
            let mut c: Vec<f32> = exact.iter().map(|c| *c as f32).collect();
            assert!(projections.nmse(&c) < 1e-14, "{}", projections.nmse(&c));
            let noise = uniform(c.len(), -0.01, 0.01, 3);
            let noisy: Vec<f32> = c.iter().zip(&noise).map(|(c, noise)| c + noise).collect();
            let square = |x: f64| x * x;
            let nmse = noise.iter().map(|x| square(f64::from(*x))).sum::<f64>()
                / exact.iter().map(|x| square(*x)).sum::<f64>();
            let estimate = projections.nmse(&noisy);
            assert!((0.2..5.0).contains(&(estimate / nmse)), "{estimate} for {nmse}");
            c[1234] += 0.01;
            assert!(projections.nmse(&c) > 1e-10);
            c[1234] = f32::NAN;
            assert!(projections.nmse(&c).is_nan());
            assert_eq!(projections.nmse(&c[1..]), f64::INFINITY);
        }
    }
}
