//! Operations before and after another one: views, elementwise ops, reductions.

use tidemill::Result;

use crate::random::Random;
use crate::twin::{Known, Made, Twin};

/// Larger values are not moved round: the reference walks over them element by element.
const MOVED: usize = 1 << 19;

impl Random {
    pub fn pick<T: Copy>(&mut self, list: &[T]) -> T {
        list[self.below(list.len())]
    }

    /// A number, or one of its neighbours.
    pub fn near(&mut self, n: usize) -> usize {
        (n + self.below(3)).saturating_sub(1).max(1)
    }

    /// One of these numbers, or one of its neighbours.
    pub fn near_one_of(&mut self, list: &[usize]) -> usize {
        let n = self.pick(list);
        self.near(n)
    }

    pub fn once_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    /// Extents of a tensor of this many elements.
    pub fn extents(&mut self, elements: usize) -> Vec<usize> {
        let mut dims = vec![elements];
        for _ in 0..self.below(4) {
            let last = dims.pop().unwrap_or(1);
            let factors: Vec<usize> = (1..=64).filter(|f| last.is_multiple_of(*f)).collect();
            let factor = if last == 0 { 1 } else { self.pick(&factors) };
            let both = if self.once_in(2) { [factor, last / factor] } else { [last / factor, factor] };
            dims.extend(both);
        }
        dims
    }

    /// An order of this many dimensions.
    pub fn order(&mut self, rank: usize) -> Vec<usize> {
        let mut order: Vec<usize> = (0..rank).collect();
        for d in (1..rank).rev() {
            order.swap(d, self.below(d + 1));
        }
        order
    }
}

impl Twin<'_> {
    /// An operand of this shape: a tensor, a view of one, or the result of an elementwise op.
    pub fn operand(&mut self, dims: &[usize]) -> Made {
        let elements: usize = dims.iter().product();
        let way = if elements > MOVED || dims.is_empty() { 0 } else { self.random.below(12) };
        match way {
            0 => {
                let other = self.random.extents(elements);
                let x = self.tensor(&other)?;
                self.reshape(&x, dims)
            }
            1 => {
                let order = self.random.order(dims.len());
                let mut from = vec![0; dims.len()];
                order.iter().zip(dims).for_each(|(d, n)| from[*d] = *n);
                let x = self.tensor(&from)?;
                self.permute(&x, &order)
            }
            2 => self.part(dims),
            3 => {
                let from: Vec<usize> =
                    dims.iter().map(|n| if self.random.once_in(2) { 1 } else { *n }).collect();
                let x = self.tensor(&from)?;
                self.broadcast(&x, dims)
            }
            4 => {
                let x = self.tensor(dims)?;
                self.unary("neg", &x)
            }
            5 => {
                let x = self.tensor_of(dims, true)?;
                self.unary("to_float", &x)
            }
            _ => self.tensor(dims),
        }
    }

    /// A box of a larger tensor.
    fn part(&mut self, dims: &[usize]) -> Made {
        let before: Vec<usize> = dims.iter().map(|_| self.random.pick(&[0, 0, 1, 4])).collect();
        let after: Vec<usize> = dims.iter().map(|_| self.random.pick(&[0, 0, 2, 3])).collect();
        let from: Vec<usize> = (0..dims.len()).map(|d| before[d] + dims[d] + after[d]).collect();
        let x = self.tensor(&from)?;
        let ranges: Vec<_> = (0..dims.len()).map(|d| before[d]..before[d] + dims[d]).collect();
        self.slice(&x, &ranges)
    }

    /// Something to be combined with a value, element by element.
    fn partner(&mut self, x: &Known) -> Made {
        let last = x.rank().saturating_sub(1);
        let stretched = |keep: fn(usize, usize) -> bool| -> Vec<usize> {
            x.dims.iter().enumerate().map(|(d, n)| if keep(d, last_of(x)) { *n } else { 1 }).collect()
        };
        match self.random.below(9) {
            0 | 1 => self.tensor(&x.dims),
            2 => self.tensor(&x.dims[last..]),
            3 => {
                let dims = stretched(|d, last| d < last);
                self.tensor(&dims)
            }
            4 => self.tensor(&[1]),
            5 => {
                let dims = stretched(|d, _| d % 2 == 0);
                self.tensor(&dims)
            }
            6 if x.elements() <= MOVED => self.part(&x.dims),
            7 => {
                let dims = stretched(|d, _| d == 0);
                self.tensor(&dims)
            }
            8 => {
                let x = self.tensor_of(&x.dims, true)?;
                self.unary("to_float", &x)
            }
            _ => self.operand(&x.dims),
        }
    }

    /// The elements in another order, in the same shape.
    fn turned(&mut self, x: &Known) -> Made {
        let dims: Vec<usize> = x.dims.iter().rev().copied().collect();
        let turned = self.reshape(x, &dims)?;
        let order: Vec<usize> = (0..x.rank()).rev().collect();
        self.permute(&turned, &order)
    }

    /// One operation behind a value.
    fn step(&mut self, x: Known) -> Made {
        let large = x.elements() > MOVED || x.elements() == 0;
        match self.random.below(16) {
            0 | 1 => self.unary("relu", &x),
            2 => self.unary("neg", &x),
            3 => self.unary("clip", &x),
            4 => self.unary("double", &x),
            5..8 => {
                let partner = self.partner(&x)?;
                let op = self.random.pick(&["add", "sub", "max"]);
                self.binary(op, &x, &partner)
            }
            8 => {
                let dims = self.random.extents(x.elements());
                self.reshape(&x, &dims)
            }
            9 if !large && x.rank() > 1 => {
                let order = self.random.order(x.rank());
                self.permute(&x, &order)
            }
            10 if !large => {
                let ranges: Vec<_> = x.dims.iter().map(|n| self.random.below((*n).min(6))..*n).collect();
                self.slice(&x, &ranges)
            }
            11 if !large && x.rank() > 0 => {
                let turned = self.turned(&x)?;
                self.binary("sub", &x, &turned)
            }
            12 if x.data.iter().all(|x| x.abs() <= 2048.0) => {
                let half = self.unary("to_half", &x)?;
                self.unary("to_float", &half)
            }
            13 => {
                self.keep(&x)?;
                Ok(x)
            }
            14 => {
                // The same twice, and what leads to nothing.
                let (once, again) = (self.unary("neg", &x)?, self.unary("neg", &x)?);
                self.unary("abs", &again)?;
                self.binary("max", &once, &again)
            }
            _ => self.unary("abs", &x),
        }
    }

    /// What is done with a result: nothing, some operations, or more than fit one elementwise op; at last, something
    /// that is not elementwise.
    pub fn after(&mut self, mut x: Known) -> Result<Known> {
        if !x.exact() {
            return Ok(x);
        }
        let steps = if self.random.once_in(12) { 9 } else { self.random.below(4) };
        for _ in 0..steps {
            x = self.step(x)?;
        }
        let small = x.data.iter().all(|x| x.abs() <= 1024.0);
        let along = (0..x.rank()).filter(|d| x.dims[*d] > 0).collect::<Vec<_>>();
        if x.elements() == 0 || along.is_empty() {
            return Ok(x);
        }
        let axis = self.random.pick(&along);
        match self.random.below(10) {
            0 if small && x.elements() <= MOVED => self.reduce("sum", &x, axis),
            1 => self.reduce("amax", &x, axis),
            2 if small => {
                let x = self.unary("clip", &x)?;
                self.softmax(&x, axis, false)
            }
            3 if small => self.unary("sigmoid", &x),
            _ => Ok(x),
        }
    }
}

fn last_of(x: &Known) -> usize {
    x.rank().saturating_sub(1)
}
