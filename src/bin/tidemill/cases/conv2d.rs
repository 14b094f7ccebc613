//! Convolutions.

use tidemill::cpu::{self, View};
use tidemill::{Accelerator, Conv2d, Epilogue, Result, Shape};

use super::data::uniform;
use super::matmul::unary;
use super::reference::{self, convolution::Convolution};
use super::{Bound, Case, Check, On, compare, twin};

/// Adds the cases.
pub fn cases(out: &mut Vec<Case>) {
    sizes(out);
    channels(out);
    kernels(out);
    spacings(out);
    groups(out);
    networks(out);
    long(out);
    epilogues(out);
    weights(out);
}

/// Sums in f32 of products in f32, as for matrix products.
const BOUND: Bound = Bound::Nmse(1e-10);

/// What is done after the convolution.
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

    /// What a tensor of this shape holds.
    fn data(&self, shape: &[usize], seed: u64) -> Vec<f32> {
        // Not around zero, so that no sum cancels.
        let (low, high) = if self.whole { (1.0, 3.0) } else { (-0.5, 1.0) };
        let mut data = uniform(shape.iter().product(), low, high, seed);
        data.iter_mut().filter(|_| self.whole).for_each(|x| *x = x.floor().min(2.0));
        data
    }

    fn bound(&self) -> Bound {
        if self.whole { Bound::Exact } else { BOUND }
    }

    fn case(self) -> Case {
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
        Case::both("conv2d", "conv2d", what, move |on| match on {
            On::Gpu(gpu) => self.run(gpu),
            On::Cpu => self.run_on_cpu(),
        })
    }

    /// The convolution, and what is done after it by operations of their own.
    fn run_on_cpu(&self) -> Result<Check> {
        let (c, inputs) = (&self.convolution, self.inputs());
        let how =
            cpu::Conv2d::new().stride(c.stride).padding(c.padding).dilation(c.dilation).groups(c.groups);
        let [images, rows, height, width] = c.result();
        let mut out = vec![f32::NAN; inputs.dense.len()];
        let shape = cpu::conv2d((&inputs.x, c.input), (&inputs.w, c.weights), how, &mut out)?;
        assert_eq!(shape.dims(), c.result());
        for then in &self.then {
            let before = out.clone();
            let x = View::new(&before, shape);
            match *then {
                Then::Bias | Then::ColumnBias => cpu::add(x, (&inputs.bias, [rows, 1, 1]), &mut out),
                Then::Residual => cpu::add(x, (&inputs.dense, shape), &mut out),
                Then::Gate => cpu::mul(x, (&inputs.gate, [images, rows, 1, 1]), &mut out),
                Then::Mask => cpu::sub(x, (&inputs.mask, [height, width]), &mut out),
                Then::Scale(s) => cpu::scale(x, s, &mut out),
                Then::Plus(s) => cpu::add_scalar(x, s, &mut out),
                Then::Unary(name, p) => twin::unary_into(name, &before, p, &mut out),
            }?;
        }
        Ok(compare(&self.expected(&inputs), &out, self.bound()))
    }

    fn inputs(&self) -> Inputs {
        let c = &self.convolution;
        let [images, rows, height, width] = c.result();
        let data = |shape: &[usize], seed| self.data(shape, seed);
        Inputs {
            x: data(&c.input, 1),
            w: data(&c.weights, 2),
            bias: data(&[rows], 3),
            dense: data(&c.result(), 4),
            gate: data(&[images, rows], 5),
            mask: data(&[height, width], 6),
        }
    }

    fn expected(&self, inputs: &Inputs) -> Vec<f64> {
        let [_, rows, height, width] = self.convolution.result();
        let mut expected = self.convolution.of(&inputs.x, &inputs.w);
        for then in &self.then {
            for (at, e) in expected.iter_mut().enumerate() {
                let (pixel, plane) = (at % (height * width), at / (height * width));
                *e = match *then {
                    Then::Bias | Then::ColumnBias => *e + f64::from(inputs.bias[plane % rows]),
                    Then::Residual => *e + f64::from(inputs.dense[at]),
                    Then::Gate => *e * f64::from(inputs.gate[plane]),
                    Then::Mask => *e - f64::from(inputs.mask[pixel]),
                    Then::Scale(s) => *e * f64::from(s),
                    Then::Plus(s) => *e + f64::from(s),
                    Then::Unary(name, p) => reference::unary(name, *e, p.map(f64::from)),
                };
            }
        }
        expected
    }

    fn run(&self, gpu: &Accelerator) -> Result<Check> {
        let (c, inputs) = (&self.convolution, self.inputs());
        let upload = |data: &[f32], shape: &[usize]| gpu.upload(data, Shape::new(shape).unwrap_or_default());
        let [images, rows, height, width] = c.result();
        let (x, w) = (upload(&inputs.x, &c.input)?, upload(&inputs.w, &c.weights)?);
        let (bias, dense) = (upload(&inputs.bias, &[rows])?, upload(&inputs.dense, &c.result())?);
        let gate = upload(&inputs.gate, &[images, rows, 1, 1])?;
        let mask = upload(&inputs.mask, &[height, width])?;
        let mut epilogue = Epilogue::new();
        for (i, then) in self.then.iter().enumerate() {
            assert!(!matches!(then, Then::Bias | Then::ColumnBias) || i == 0, "a bias comes first");
            epilogue = match *then {
                Then::Bias => Epilogue::bias(&bias),
                Then::ColumnBias => Epilogue::column_bias(&bias),
                Then::Residual => epilogue.plus(&dense),
                Then::Gate => epilogue.times(&gate),
                Then::Mask => epilogue.minus(&mask),
                Then::Scale(s) => epilogue.scale(s),
                Then::Plus(s) => epilogue.add_scalar(s),
                Then::Unary(name, p) => unary(epilogue, name, p),
            };
        }
        let how = Conv2d::new()
            .stride(c.stride)
            .padding(c.padding)
            .dilation(c.dilation)
            .groups(c.groups)
            .epilogue(epilogue);
        let y = if self.plain {
            gpu.run(|r| r.conv2d(&x, &w, how))?
        } else {
            let prepared = gpu.prepare_weights(&w, c.groups)?;
            gpu.run(|r| r.conv2d(&x, &prepared, how))?
        };
        assert_eq!(y.shape().dims(), c.result());
        Ok(compare(&self.expected(&inputs), &y.read::<f32>()?, self.bound()))
    }
}

/// The operands of a convolution, and of what is done after it.
struct Inputs {
    x: Vec<f32>,
    w: Vec<f32>,
    bias: Vec<f32>,
    dense: Vec<f32>,
    /// One element per image and channel.
    gate: Vec<f32>,
    /// One element per pixel.
    mask: Vec<f32>,
}

/// Around groups of four pixels, of eight of those, and tiles.
fn sizes(out: &mut Vec<Case>) {
    for n in [1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33, 35] {
        out.push(conv([1, 3, 5], [n, n], [1, 1]).case());
        out.push(conv([1, 3, 5], [n, n], [3, 3]).padding(1, 1).case());
        out.push(conv([2, 2, 3], [3, n], [3, 3]).padding(1, 1).case());
        out.push(conv([1, 2, 9], [n + 2, 4], [3, 3]).case());
    }
    for images in [0, 1, 2, 3, 7] {
        out.push(conv([images, 3, 6], [5, 6], [3, 3]).padding(1, 1).case());
    }
}

/// Around groups of four channels, tiles of them, and steps of a sum.
fn channels(out: &mut Vec<Case>) {
    for rows in [1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65] {
        out.push(conv([1, 3, rows], [6, 7], [3, 3]).padding(1, 1).case());
    }
    for channels in [1, 2, 3, 4, 5, 7, 8, 15, 16, 17, 33, 64, 67] {
        out.push(conv([1, channels, 6], [5, 8], [3, 3]).padding(1, 1).case());
        out.push(conv([2, channels, 10], [4, 6], [1, 1]).case());
    }
}

fn kernels(out: &mut Vec<Case>) {
    for (h, w) in
        [(1, 2), (2, 1), (1, 3), (3, 1), (2, 2), (2, 3), (4, 4), (5, 5), (1, 7), (7, 7), (6, 9), (3, 16)]
    {
        out.push(conv([1, 3, 6], [h + 5, w + 7], [h, w]).case());
        out.push(conv([2, 4, 9], [11, 12], [h, w]).padding(h / 2, w / 2).case());
    }
    // As large as the input, and larger than what is unrolled.
    out.push(conv([1, 2, 5], [8, 17], [8, 17]).case());
    out.push(conv([1, 2, 5], [4, 40], [2, 33]).case());
    out.push(conv([1, 1, 3], [40, 4], [33, 2]).case());
}

fn spacings(out: &mut Vec<Case>) {
    for (y, x) in [(2, 2), (1, 2), (2, 1), (3, 3), (4, 4), (5, 7), (1, 16)] {
        out.push(conv([1, 3, 6], [13, 18], [3, 3]).stride(y, x).padding(1, 1).case());
        out.push(conv([2, 2, 5], [12, 16], [1, 1]).stride(y, x).case());
    }
    for (y, x) in [(2, 2), (1, 2), (3, 1), (4, 5)] {
        out.push(conv([1, 3, 6], [13, 18], [3, 3]).dilation(y, x).padding(2, 2).case());
        out.push(conv([1, 2, 4], [16, 17], [2, 3]).dilation(y, x).stride(2, 2).padding(1, 3).case());
    }
    for (y, x) in [(0, 1), (1, 0), (2, 3), (4, 4), (7, 5)] {
        out.push(conv([1, 2, 5], [6, 9], [3, 3]).padding(y, x).case());
    }
    // What the direct kernel leaves to tiles.
    out.push(conv([1, 2, 3], [5, 120], [2, 3]).stride(1, 40).case());
    out.push(conv([1, 2, 3], [5, 120], [2, 3]).dilation(1, 50).case());
    // Padding that the input does not reach into.
    out.push(conv([1, 2, 3], [2, 2], [3, 3]).padding(6, 6).stride(3, 3).case());
}

fn groups(out: &mut Vec<Case>) {
    for (channels, rows, groups) in
        [(4, 4, 2), (6, 4, 2), (6, 9, 3), (8, 8, 4), (10, 20, 5), (16, 32, 2), (12, 66, 2), (64, 64, 4)]
    {
        out.push(conv([2, channels, rows], [6, 9], [3, 3]).groups(groups).padding(1, 1).case());
        out.push(conv([1, channels, rows], [5, 8], [1, 1]).groups(groups).case());
    }
    // Depthwise, with one and with more results per channel.
    for (channels, multiple) in [(1, 1), (3, 1), (8, 1), (33, 1), (5, 2), (4, 3), (3, 8)] {
        let depthwise = || conv([2, channels, channels * multiple], [9, 11], [3, 3]).groups(channels);
        out.push(depthwise().padding(1, 1).case());
        out.push(depthwise().stride(2, 2).then(&[Then::Bias, Then::Unary("relu", [0.0; 2])]).case());
    }
    out.push(conv([1, 6, 6], [14, 14], [5, 5]).groups(6).padding(4, 4).dilation(2, 2).case());
}

/// Layers as they are, or a quarter of them.
fn networks(out: &mut Vec<Case>) {
    out.push(conv([1, 3, 16], [56, 56], [7, 7]).stride(2, 2).padding(3, 3).case().large());
    out.push(conv([1, 32, 32], [28, 28], [3, 3]).padding(1, 1).case().large());
    out.push(conv([2, 64, 32], [14, 14], [1, 1]).stride(2, 2).case().large());
    // One image of whole tiles, whose subgroups may store together.
    out.push(conv([1, 8, 32], [16, 16], [3, 3]).padding(1, 1).case());
    out.push(conv([1, 3, 48], [32, 32], [16, 16]).stride(16, 16).case().large());
    out.push(conv([1, 64, 64], [28, 28], [3, 3]).groups(64).padding(1, 1).case().large());
    out.push(conv([1, 128, 40], [7, 7], [3, 3]).padding(1, 1).case().large());
}

/// More of a sum than one invocation's loops may take on lavapipe (65,535 iterations).
fn long(out: &mut Vec<Case>) {
    out.push(conv([1, 65_537, 2], [1, 3], [1, 1]).whole().case());
    out.push(conv([1, 65_539, 1], [2, 2], [2, 1]).whole().case().large());
    out.push(conv([1, 1, 3], [70_000, 2], [66_001, 1]).whole().case().large());
    out.push(conv([1, 1, 2], [3, 70_000], [1, 69_998]).whole().case().large());
    // Split among workgroups, and not evenly.
    for channels in [100, 257, 300, 515] {
        out.push(conv([1, channels, 5], [3, 5], [3, 3]).padding(1, 1).case());
        let then = [Then::Bias, Then::Unary("relu", [0.0; 2]), Then::Residual];
        out.push(conv([2, channels, 6], [2, 3], [1, 1]).then(&then).case());
    }
}

fn epilogues(out: &mut Vec<Case>) {
    let plain = |name| Then::Unary(name, [0.0; 2]);
    let relu = plain("relu");
    for (size, padding) in [([6, 8], 1), ([6, 6], 1), ([5, 7], 0), ([3, 3], 0)] {
        let spec = |then: &[Then]| conv([2, 3, 9], size, [3, 3]).padding(padding, padding).then(then);
        // New constants are new pipelines: two epilogues with all ways of indexing are enough for most variants.
        out.push(spec(&[Then::Bias, relu, Then::Residual]).case());
        out.push(spec(&[Then::Gate, Then::Mask]).case());
        let others =
            [&[Then::Bias][..], &[Then::ColumnBias, relu], &[Then::Residual], &[Then::Gate], &[Then::Mask]];
        for then in others {
            out.push(spec(then).case().large());
        }
    }
    // The module with every operation, of every kernel: a whole sum, one in parts, and few channels in a group.
    let gelu = plain("gelu");
    out.push(conv([1, 3, 10], [6, 9], [3, 3]).padding(1, 1).then(&[Then::Bias, gelu]).case());
    out.push(conv([1, 100, 6], [3, 5], [3, 3]).then(&[Then::Bias, gelu, Then::Residual]).case());
    out.push(conv([1, 6, 6], [5, 8], [3, 3]).groups(6).then(&[Then::Plus(-1.0), gelu]).case());
    let with = |name, a, b| Then::Unary(name, [a, b]);
    let functions =
        ["sigmoid", "tanh", "swish", "gelu", "gelu_erf", "softplus", "exp", "abs", "neg"].map(plain);
    let parameters = [with("leaky_relu", 0.1, 0.0), with("elu", 0.7, 0.0), with("clip", -0.5, 2.0)];
    for function in functions.into_iter().chain(parameters) {
        let then = [Then::Bias, Then::Plus(-1.0), function, Then::Scale(0.5)];
        out.push(conv([1, 3, 10], [6, 9], [3, 3]).padding(1, 1).then(&then).case().large());
    }
}

/// Laid out in the same recording.
fn weights(out: &mut Vec<Case>) {
    out.push(conv([1, 3, 6], [6, 9], [3, 3]).padding(1, 1).plain().case());
    out.push(conv([2, 6, 9], [5, 8], [3, 2]).groups(3).plain().case());
}
