//! Matrix products.

/// A matrix product over the last two dimensions, batches broadcast.
pub struct Product {
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

impl Product {
    /// For operands of these shapes, as they are stored.
    pub fn new(lhs: &[usize], rhs: &[usize], transposed: [bool; 2]) -> Product {
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
        Product { shape, visible, rows, columns, inner, operands }
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
}
