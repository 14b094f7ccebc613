//! Matmuls.

mod shapes;

use std::sync::Arc;

use tidemill::cpu::{self, View};
use tidemill::{Epilogue, Matmul, Result, Shape, Tensor};

use super::array::shape;
use super::data::uniform;
use super::reference::{self, matmul::MatmulReference};
use super::{Array, Bound, Case, Expected, Input, Kind, Record, elementwise};

pub(crate) use shapes::cases;

/// Sums in f32 of matmuls in f32: what the bar for f32 accumulation is.
const BOUND: Bound = Bound::Nmse(1e-10);

/// From this many operations on, the reference's loops take seconds, and plain matmuls are checked by
/// [`MatmulReference::projected`].
const LONG: usize = 1 << 28;

/// The operations after the matmul.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Then {
    Bias,
    ColumnBias,
    Residual,
    Times,
    Minus,
    Scale(f32),
    Plus(f32),
    Unary(&'static str, [f32; 2]),
}

/// The places of the operands. Those that are not used are empty.
const LHS: usize = 0;
const RHS: usize = 1;
const BIAS: usize = 2;
const COLUMN_BIAS: usize = 3;
/// Of the result's shape.
const DENSE: usize = 4;

/// One matmul.
#[derive(Clone, Debug)]
struct Spec {
    /// As they are stored.
    lhs: Vec<usize>,
    rhs: Vec<usize>,
    transposed: [bool; 2],
    alpha: f32,
    beta: Option<f32>,
    then: Vec<Then>,
    /// Operands are small whole numbers: their sums are exact, in any order, so that one term that is lost shows.
    whole: bool,
}

fn matmul(m: usize, n: usize, k: usize) -> Spec {
    Spec {
        lhs: vec![m, k],
        rhs: vec![k, n],
        transposed: [false; 2],
        alpha: 1.0,
        beta: None,
        then: Vec::new(),
        whole: false,
    }
}

/// The elements of an operand: not around zero, so that no sum cancels.
pub(crate) fn operand(extents: &[usize], whole: bool, seed: u64) -> Input {
    let n = extents.iter().product();
    let (low, high) = if whole { (1.0, 3.0) } else { (-0.5, 1.0) };
    Input::new(extents, move || {
        let mut data = uniform(n, low, high, seed);
        data.iter_mut().filter(|_| whole).for_each(|x| *x = x.floor().min(2.0));
        data
    })
}

impl Spec {
    fn then(mut self, then: &[Then]) -> Spec {
        self.then = then.to_vec();
        self
    }

    fn transposed(mut self, lhs: bool, rhs: bool) -> Spec {
        for (shape, wanted) in [(&mut self.lhs, lhs), (&mut self.rhs, rhs)] {
            let rank = shape.len();
            if wanted {
                shape.swap(rank - 1, rank - 2);
            }
        }
        self.transposed = [lhs, rhs];
        self
    }

    fn whole(mut self) -> Spec {
        self.whole = true;
        self
    }

    fn describe(&self) -> String {
        let mut what = format!("{:?} x {:?}", self.lhs, self.rhs);
        if self.whole {
            what += " of whole numbers";
        }
        if self.transposed != [false; 2] {
            what += &format!(" transposed {:?}", self.transposed);
        }
        if self.alpha != 1.0 || self.beta.is_some() {
            what += &format!(" alpha {} beta {:?}", self.alpha, self.beta);
        }
        if !self.then.is_empty() {
            what += &format!(" then {:?}", self.then);
        }
        what
    }

    fn inputs(&self, reference: &MatmulReference) -> Vec<Input> {
        let used = |thens: &[Then], extents: &[usize], seed| {
            let asked = self.then.iter().any(|then| thens.contains(then));
            operand(if asked { extents } else { &[0] }, self.whole, seed)
        };
        let dense = match self.beta {
            Some(_) => operand(&reference.shape, self.whole, 5),
            None => used(&[Then::Residual, Then::Times, Then::Minus], &reference.shape, 5),
        };
        vec![
            operand(&self.lhs, self.whole, 1),
            operand(&self.rhs, self.whole, 2),
            used(&[Then::Bias], &[reference.columns], 3),
            used(&[Then::ColumnBias], &[reference.rows], 4),
            dense,
        ]
    }

    fn case(self) -> Case {
        let reference = MatmulReference::new(&self.lhs, &self.rhs, self.transposed);
        let (what, inputs, result) =
            (self.describe(), self.inputs(&reference), Kind::of::<f32>(&reference.visible));
        let (bound, flops) = (if self.whole { Bound::Exact } else { BOUND }, reference.flops());
        let all = Arc::new((self, reference));
        let (on_device, on_cpu) = (all.clone(), all.clone());
        let prepare = move |_: &_, t: Vec<Tensor>| -> Result<Record> {
            let all = on_device.clone();
            // Where a bias of columns does not come first, it is one more operand.
            let column = t[COLUMN_BIAS].reshape([t[COLUMN_BIAS].shape().elements(), 1])?;
            Ok(Box::new(move |r| r.matmul_with(&t[LHS], &t[RHS], all.0.how(&t, &column))))
        };
        let expected = move |x: &[Array]| all.0.expected(x, &all.1);
        Case::prepared("matmul", "matmul", what, inputs, result, prepare, expected)
            .bound(bound)
            .flops(flops)
            .twin(move |x, out| on_cpu.0.on_cpu(x, &on_cpu.1, out.of_mut()))
    }

    fn expected(&self, x: &[Array], reference: &MatmulReference) -> Expected {
        let [a, b, bias, column_bias, dense] = [LHS, RHS, BIAS, COLUMN_BIAS, DENSE].map(|k| x[k].of::<f32>());
        let plain = self.then.is_empty() && self.beta.is_none() && self.alpha == 1.0;
        if plain && !self.whole && reference.flops() >= LONG && reference.shape.len() == 2 {
            return Expected::Projected(reference.projected(a, b));
        }
        let mut expected = reference.of(a, b);
        for (at, e) in expected.iter_mut().enumerate() {
            let (row, column) = (at / reference.columns % reference.rows, at % reference.columns);
            *e *= f64::from(self.alpha);
            if let Some(beta) = self.beta {
                *e += f64::from(beta) * f64::from(dense[at]);
            }
            for then in &self.then {
                *e = match *then {
                    Then::Bias => *e + f64::from(bias[column]),
                    Then::ColumnBias => *e + f64::from(column_bias[row]),
                    Then::Residual => *e + f64::from(dense[at]),
                    Then::Times => *e * f64::from(dense[at]),
                    Then::Minus => *e - f64::from(dense[at]),
                    Then::Scale(s) => *e * f64::from(s),
                    Then::Plus(s) => *e + f64::from(s),
                    Then::Unary(name, p) => reference::unary(name, *e, p.map(f64::from)),
                };
            }
        }
        Expected::Floats(expected)
    }

    fn how<'a>(&self, t: &'a [Tensor], column: &'a Tensor) -> Matmul<'a> {
        let mut how = Matmul::new().alpha(self.alpha);
        if let Some(beta) = self.beta {
            how = how.accumulate(beta, &t[DENSE]);
        }
        if self.transposed[0] {
            how = how.transpose_lhs();
        }
        if self.transposed[1] {
            how = how.transpose_rhs();
        }
        let mut epilogue = Epilogue::new();
        for (i, then) in self.then.iter().enumerate() {
            epilogue = match *then {
                Then::Bias if i == 0 => Epilogue::bias(&t[BIAS]),
                Then::Bias => epilogue.plus(&t[BIAS]),
                Then::ColumnBias if i == 0 => Epilogue::column_bias(&t[COLUMN_BIAS]),
                Then::ColumnBias => epilogue.plus(column),
                Then::Residual => epilogue.plus(&t[DENSE]),
                Then::Times => epilogue.times(&t[DENSE]),
                Then::Minus => epilogue.minus(&t[DENSE]),
                Then::Scale(s) => epilogue.scale(s),
                Then::Plus(s) => epilogue.add_scalar(s),
                Then::Unary(name, p) => elementwise::step(epilogue, name, p),
            };
        }
        how.epilogue(epilogue)
    }

    /// The matmul, and what is done after it by operations of their own.
    fn on_cpu(&self, x: &[Array], reference: &MatmulReference, c: &mut [f32]) -> Result<Shape> {
        let mut how = cpu::Matmul::new().alpha(self.alpha);
        if let Some(beta) = self.beta {
            how = how.accumulate(beta, x[DENSE].view());
        }
        if self.transposed[0] {
            how = how.transpose_lhs();
        }
        if self.transposed[1] {
            how = how.transpose_rhs();
        }
        let visible = cpu::matmul_with(x[LHS].view(), x[RHS].view(), how, c)?;
        for then in &self.then {
            let (before, dense) = (c.to_vec(), x[DENSE].view::<f32>());
            let y = View::new(&before, shape(&reference.shape));
            match *then {
                Then::Bias => cpu::add(y, x[BIAS].view(), c),
                Then::ColumnBias => cpu::add(y, (x[COLUMN_BIAS].of(), [reference.rows, 1]), c),
                Then::Residual => cpu::add(y, dense, c),
                Then::Times => cpu::mul(y, dense, c),
                Then::Minus => cpu::sub(y, dense, c),
                Then::Scale(s) => cpu::scale(y, s, c),
                Then::Plus(s) => cpu::add_scalar(y, s, c),
                Then::Unary(name, p) => elementwise::on_cpu(name, &before, p, c),
            }?;
        }
        Ok(visible)
    }
}
