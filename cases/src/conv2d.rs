//! Convolutions.

mod layers;

use std::sync::Arc;

use tidemill::cpu::{self, View};
use tidemill::{Accelerator, Conv2d, Epilogue, Result, Shape, Tensor};

use super::matmul::operand;
use super::reference::{self, convolution::Convolution};
use super::{Array, Bound, Case, Expected, Input, Kind, Record, elementwise};

pub(crate) use layers::cases;

/// Sums in f32 of products in f32, as for matrix products.
const BOUND: Bound = Bound::Nmse(1e-10);

/// The operations after the convolution.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Then {
    /// One element per channel of the result.
    Bias,
    /// The same, by its other name.
    ColumnBias,
    /// A tensor of the result's shape.
    Residual,
    /// One element per image and channel.
    Gate,
    /// One element per pixel, the same for all images and channels.
    Mask,
    Scale(f32),
    Plus(f32),
    Unary(&'static str, [f32; 2]),
}

/// The places of the operands. Those that are not used are empty.
const X: usize = 0;
const WEIGHTS: usize = 1;
const BIAS: usize = 2;
/// Of the result's shape.
const DENSE: usize = 3;
const GATE: usize = 4;
const MASK: usize = 5;

/// One convolution.
#[derive(Clone, Debug)]
struct Spec {
    convolution: Convolution,
    then: Vec<Then>,
    /// The weights are laid out in the same recording.
    plain: bool,
    /// Operands are small whole numbers: their sums are exact, in any order, so that one term that is lost shows.
    whole: bool,
}

/// `images` of `channels` x `size`, to `rows` channels by a kernel of `taps`.
fn conv([images, channels, rows]: [usize; 3], [h, w]: [usize; 2], taps: [usize; 2]) -> Spec {
    let convolution = Convolution {
        input: [images, channels, h, w],
        weights: [rows, channels, taps[0], taps[1]],
        stride: [1; 2],
        padding: [0; 2],
        dilation: [1; 2],
        groups: 1,
    };
    Spec { convolution, then: Vec::new(), plain: false, whole: false }
}

impl Spec {
    fn stride(mut self, y: usize, x: usize) -> Spec {
        self.convolution.stride = [y, x];
        self
    }

    fn padding(mut self, y: usize, x: usize) -> Spec {
        self.convolution.padding = [y, x];
        self
    }

    fn dilation(mut self, y: usize, x: usize) -> Spec {
        self.convolution.dilation = [y, x];
        self
    }

    fn groups(mut self, groups: usize) -> Spec {
        self.convolution.groups = groups;
        self.convolution.weights[1] /= groups;
        self
    }

    fn then(mut self, then: &[Then]) -> Spec {
        self.then = then.to_vec();
        self
    }

    fn plain(mut self) -> Spec {
        self.plain = true;
        self
    }

    fn whole(mut self) -> Spec {
        self.whole = true;
        self
    }

    fn describe(&self) -> String {
        let Convolution { input, weights, stride, padding, dilation, groups } = &self.convolution;
        let mut what = format!("{input:?} * {weights:?}");
        if self.whole {
            what += " of whole numbers";
        }
        if *stride != [1; 2] {
            what += &format!(" stride {stride:?}");
        }
        if *padding != [0; 2] {
            what += &format!(" padding {padding:?}");
        }
        if *dilation != [1; 2] {
            what += &format!(" dilation {dilation:?}");
        }
        if *groups != 1 {
            what += &format!(" groups {groups}");
        }
        if !self.then.is_empty() {
            what += &format!(" then {:?}", self.then);
        }
        what
    }

    fn inputs(&self) -> Vec<Input> {
        let c = &self.convolution;
        let [images, rows, height, width] = c.result();
        let used = |thens: &[Then], extents: &[usize], seed| {
            let asked = self.then.iter().any(|then| thens.contains(then));
            operand(if asked { extents } else { &[0] }, self.whole, seed)
        };
        vec![
            operand(&c.input, self.whole, 1),
            operand(&c.weights, self.whole, 2),
            used(&[Then::Bias, Then::ColumnBias], &[rows], 3),
            used(&[Then::Residual], &c.result(), 4),
            used(&[Then::Gate], &[images, rows, 1, 1], 5),
            used(&[Then::Mask], &[height, width], 6),
        ]
    }

    fn case(self) -> Case {
        let (what, inputs, result) =
            (self.describe(), self.inputs(), Kind::of::<f32>(&self.convolution.result()));
        let (bound, flops) = (if self.whole { Bound::Exact } else { BOUND }, self.convolution.flops());
        let spec = Arc::new(self);
        let (on_device, on_cpu) = (spec.clone(), spec.clone());
        let prepare = move |gpu: &Accelerator, t: Vec<Tensor>| -> Result<Record> {
            let spec = on_device.clone();
            if spec.plain {
                return Ok(Box::new(move |r| r.conv2d_with(&t[X], &t[WEIGHTS], spec.how(&t))));
            }
            let weights = gpu.prepare_weights(&t[WEIGHTS], spec.convolution.groups)?;
            Ok(Box::new(move |r| r.conv2d_with(&t[X], &weights, spec.how(&t))))
        };
        let expected = move |x: &[Array]| spec.expected(x);
        Case::prepared("conv2d", "conv2d", what, inputs, result, prepare, expected)
            .bound(bound)
            .flops(flops)
            .twin(move |x, out| on_cpu.on_cpu(x, out.of_mut()))
    }

    /// The convolution, and what is done after it by operations of their own.
    fn on_cpu(&self, x: &[Array], out: &mut [f32]) -> Result<Shape> {
        let c = &self.convolution;
        let how =
            cpu::Conv2d::new().stride(c.stride).padding(c.padding).dilation(c.dilation).groups(c.groups);
        let [_, rows, _, _] = c.result();
        let shape = cpu::conv2d_with(x[X].view(), x[WEIGHTS].view(), how, out)?;
        for then in &self.then {
            let before = out.to_vec();
            let y = View::new(&before, shape);
            match *then {
                Then::Bias | Then::ColumnBias => cpu::add(y, (x[BIAS].of(), [rows, 1, 1]), out),
                Then::Residual => cpu::add(y, x[DENSE].view(), out),
                Then::Gate => cpu::mul(y, x[GATE].view(), out),
                Then::Mask => cpu::sub(y, x[MASK].view(), out),
                Then::Scale(s) => cpu::scale(y, s, out),
                Then::Plus(s) => cpu::add_scalar(y, s, out),
                Then::Unary(name, p) => elementwise::on_cpu(name, &before, p, out),
            }?;
        }
        Ok(shape)
    }

    fn expected(&self, x: &[Array]) -> Expected {
        let [_, rows, height, width] = self.convolution.result();
        let [bias, dense, gate, mask] = [BIAS, DENSE, GATE, MASK].map(|k| x[k].of::<f32>());
        let mut expected = self.convolution.of(x[X].of(), x[WEIGHTS].of());
        for then in &self.then {
            for (at, e) in expected.iter_mut().enumerate() {
                let (pixel, plane) = (at % (height * width), at / (height * width));
                *e = match *then {
                    Then::Bias | Then::ColumnBias => *e + f64::from(bias[plane % rows]),
                    Then::Residual => *e + f64::from(dense[at]),
                    Then::Gate => *e * f64::from(gate[plane]),
                    Then::Mask => *e - f64::from(mask[pixel]),
                    Then::Scale(s) => *e * f64::from(s),
                    Then::Plus(s) => *e + f64::from(s),
                    Then::Unary(name, p) => reference::unary(name, *e, p.map(f64::from)),
                };
            }
        }
        Expected::Floats(expected)
    }

    fn how<'a>(&self, t: &'a [Tensor]) -> Conv2d<'a> {
        let c = &self.convolution;
        // A bias can only come first.
        let mut epilogue = match self.then.first() {
            Some(Then::Bias) => Epilogue::bias(&t[BIAS]),
            Some(Then::ColumnBias) => Epilogue::column_bias(&t[BIAS]),
            _ => Epilogue::new(),
        };
        for then in &self.then {
            epilogue = match *then {
                Then::Bias | Then::ColumnBias => epilogue,
                Then::Residual => epilogue.plus(&t[DENSE]),
                Then::Gate => epilogue.times(&t[GATE]),
                Then::Mask => epilogue.minus(&t[MASK]),
                Then::Scale(s) => epilogue.scale(s),
                Then::Plus(s) => epilogue.add_scalar(s),
                Then::Unary(name, p) => elementwise::step(epilogue, name, p),
            };
        }
        let how = Conv2d::new().stride(c.stride).padding(c.padding).dilation(c.dilation).groups(c.groups);
        how.epilogue(epilogue)
    }
}
