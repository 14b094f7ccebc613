//! Normalisation.

use tidemill::{Recording, Result, Shape, Tensor, Value, cpu};

use super::data::{BENCHED_SIDE, Random, uniform};
use super::{Array, Bound, Case, Expected, Input, Kind};

const EPS: f64 = 1.0 / (1u64 << 24) as f64;
const EPSILON: f32 = 1e-5;

/// Rows that one lane, one subgroup and one workgroup hold, and that none does; with every misalignment; and those that
/// are cut.
const ROWS: [usize; 32] = [
    1, 2, 3, 4, 5, 8, 12, 15, 16, 17, 20, 31, 32, 36, 64, 100, 127, 128, 257, 768, 1000, 1021, 1024, 1280,
    1284, 4096, 4099, 8192, 8196, 65_536, 65_537, 100_004,
];

/// Which of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Op {
    Layer,
    AddLayer,
    Rms,
    AddRms,
    Group(usize),
    Instance,
    Batch,
}

impl Op {
    fn name(self) -> &'static str {
        match self {
            Op::Layer => "layer_norm",
            Op::AddLayer => "add_layer_norm",
            Op::Rms => "rms_norm",
            Op::AddRms => "add_rms_norm",
            Op::Group(_) => "group_norm",
            Op::Instance => "instance_norm",
            Op::Batch => "batch_norm",
        }
    }

    fn adds(self) -> bool {
        matches!(self, Op::AddLayer | Op::AddRms)
    }

    fn is_centred(self) -> bool {
        !matches!(self, Op::Rms | Op::AddRms)
    }
}

/// What the elements are.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Data {
    Ordinary,
    /// With much in common.
    Offset,
    /// Infinities and NaNs, in some rows.
    Special,
}

impl Data {
    fn make(self, n: usize, extent: usize) -> Vec<f32> {
        let mut random = Random::new(n as u64);
        match self {
            Data::Ordinary => uniform(n, -3.0, 3.0, 3),
            Data::Offset => uniform(n, 4000.0, 4003.0, 4),
            Data::Special => {
                let mut x = uniform(n, -3.0, 3.0, 5);
                for row in x.chunks_mut(extent.max(1)).step_by(2) {
                    let at = random.bits() as usize % row.len();
                    row[at] = [f32::NAN, f32::INFINITY, f32::NEG_INFINITY][random.bits() as usize % 3];
                }
                x
            }
        }
    }
}

/// A problem: an operand's shape, how many of its last dimensions a layer has, and which result is compared.
#[derive(Clone, Debug)]
struct Problem {
    op: Op,
    shape: Vec<usize>,
    last: usize,
    data: Data,
    of_sum: bool,
}

/// Adds the cases.
pub(crate) fn cases(out: &mut Vec<Case>) {
    let all = |op, shape: &[usize], last, data| {
        let problem = Problem { op, shape: shape.to_vec(), last, data, of_sum: false };
        let sum = op.adds().then(|| Problem { of_sum: true, ..problem.clone() }.case());
        [problem.case()].into_iter().chain(sum)
    };
    for op in [Op::Layer, Op::AddLayer, Op::Rms, Op::AddRms] {
        for n in ROWS {
            let rows = if n > 8196 { 2 } else { 7 };
            out.extend(all(op, &[rows, n], 1, Data::Ordinary));
        }
        for (shape, last) in [
            (&[5][..], 1),
            (&[130, 1024], 1),
            (&[1000, 7], 1),
            (&[2, 3, 8, 5], 2),
            (&[2, 3, 4, 5], 3),
            (&[2, 3, 7, 5], 4),
            (&[0, 5], 1),
            (&[5, 0], 1),
        ] {
            out.extend(all(op, shape, last, Data::Ordinary));
        }
        for shape in [[40, 12], [9, 1024], [9, 1031], [3, 5000], [2, 70_000]] {
            out.extend(all(op, &shape, 1, Data::Offset));
            out.extend(all(op, &shape, 1, Data::Special));
        }
        // Past what one storage binding spans, in whole rows.
        if !op.adds() {
            out.extend(all(op, &[33_000, 1023], 1, Data::Ordinary).map(Case::large));
        }
    }
    for (shape, groups) in [
        (&[3, 8][..], 2),
        (&[3, 6], 2),
        (&[2, 6, 5, 7], 3),
        (&[1, 32, 4, 4], 8),
        (&[2, 8, 33], 2),
        (&[2, 12, 6, 6], 1),
        (&[1, 64, 28, 28], 32),
        (&[2, 8, 100, 100], 2),
        (&[1, 4, 301, 300], 2),
        (&[0, 4, 3, 3], 2),
        (&[2, 4, 0, 3], 2),
    ] {
        for data in [Data::Ordinary, Data::Offset, Data::Special] {
            out.extend(all(Op::Group(groups), shape, 0, data));
            out.extend(all(Op::Instance, shape, 0, data));
            out.extend(all(Op::Batch, shape, 0, data));
        }
    }
    timed(out);
}

/// Those that benches time.
fn timed(out: &mut Vec<Case>) {
    const SIDE: usize = BENCHED_SIDE;
    let ordinary = |op, shape: &[usize]| {
        Problem { op, shape: shape.to_vec(), last: 1, data: Data::Ordinary, of_sum: false }.case()
    };
    out.push(ordinary(Op::Layer, &[4096, 1024]).bench("layer_norm_4096x1024"));
    out.push(ordinary(Op::Rms, &[4096, 1024]).bench("rms_norm_4096x1024"));
    out.push(ordinary(Op::AddLayer, &[SIDE, SIDE]).bench("op_add_layer_norm"));
    out.push(ordinary(Op::AddRms, &[SIDE, SIDE]).bench("op_add_rms_norm"));
    out.push(ordinary(Op::Group(32), &[1, 320, 56, 56]).bench("op_group_norm"));
    out.push(ordinary(Op::Instance, &[1, 320, 56, 56]).bench("op_instance_norm"));
    out.push(ordinary(Op::Batch, &[1, 320, 56, 56]).bench("op_batch_norm"));
}

impl Problem {
    /// Elements of a row, and the shape of the weights.
    fn rows(&self) -> (usize, Vec<usize>) {
        let dims = &self.shape;
        match self.op {
            Op::Group(groups) => (dims[1..].iter().product::<usize>() / groups, vec![dims[1]]),
            Op::Instance | Op::Batch => (dims[2..].iter().product(), vec![dims[1]]),
            _ => {
                let weights = dims[dims.len() - self.last..].to_vec();
                (weights.iter().product(), weights)
            }
        }
    }

    fn case(self) -> Case {
        let Problem { op, ref shape, last, data, of_sum } = self;
        let (n, (extent, weights)) = (shape.iter().product::<usize>(), self.rows());
        let note = if data == Data::Ordinary { String::new() } else { format!(" {data:?}").to_lowercase() };
        let sum = if of_sum { ", the sum" } else { "" };
        let how = match op {
            Op::Group(groups) => format!(" in {groups}"),
            Op::Instance | Op::Batch => String::new(),
            _ => format!(" of {last}"),
        };
        let what = format!("{shape:?}{how}{note}{sum}");
        let count = weights.iter().product();
        let operand = |seed, lo, hi| {
            let weights = weights.clone();
            Input::new(&weights, move || uniform(count, lo, hi, seed))
        };
        let mut inputs = vec![Input::new(shape, move || data.make(n, extent))];
        if op.adds() {
            inputs.push(Input::new(shape, move || uniform(n, -2.0, 2.0, 8)));
        }
        if op == Op::Batch {
            inputs.extend([operand(9, -2.0, 2.0), operand(10, 0.25, 4.0)]);
        }
        inputs.push(operand(11, -2.0, 2.0));
        if op.is_centred() {
            inputs.push(operand(12, -2.0, 2.0));
        }
        let result = Kind::of::<f32>(shape);
        let (recorded, referred, twin) = (self.clone(), self.clone(), self.clone());
        let record = move |r: &Recording, t: &[Tensor]| recorded.record(r, t);
        let expected = move |x: &[Array]| referred.expected(x);
        let bound = if of_sum { Bound::Ulp(0.5) } else { Bound::Scaled(16.0 * EPS) };
        Case::new(op.name(), "norm", what, inputs, result, record, expected)
            .bound(bound)
            // A sum, a distance, its square and a product each.
            .flops(4 * n)
            .twin(move |x, out| twin.on_cpu(x, out))
    }

    fn record(&self, r: &Recording, t: &[Tensor]) -> Result<Value> {
        let one = usize::from(!self.of_sum);
        match self.op {
            Op::Layer => r.layer_norm(&t[0], &t[1], &t[2], EPSILON),
            Op::AddLayer => r.add_layer_norm(&t[0], &t[1], &t[2], &t[3], EPSILON).map(|both| both[one]),
            Op::Rms => r.rms_norm(&t[0], &t[1], EPSILON),
            Op::AddRms => r.add_rms_norm(&t[0], &t[1], &t[2], EPSILON).map(|both| both[one]),
            Op::Group(groups) => r.group_norm(&t[0], groups, &t[1], &t[2], EPSILON),
            Op::Instance => r.instance_norm(&t[0], &t[1], &t[2], EPSILON),
            Op::Batch => r.batch_norm(&t[0], &t[1], &t[2], &t[3], &t[4], EPSILON),
        }
    }

    fn on_cpu(&self, x: &[Array], out: &mut Array) -> Result<Shape> {
        let at = |k: usize| x[k].view::<f32>();
        let mut other = vec![f32::NAN; out.of::<f32>().len()];
        let out = out.of_mut();
        let (sum, out) = if self.of_sum { (out, &mut other[..]) } else { (&mut other[..], out) };
        match self.op {
            Op::Layer => cpu::layer_norm(at(0), at(1), at(2), EPSILON, out),
            Op::AddLayer => cpu::add_layer_norm(at(0), at(1), at(2), at(3), EPSILON, sum, out),
            Op::Rms => cpu::rms_norm(at(0), at(1), EPSILON, out),
            Op::AddRms => cpu::add_rms_norm(at(0), at(1), at(2), EPSILON, sum, out),
            Op::Group(groups) => cpu::group_norm(at(0), groups, at(1), at(2), EPSILON, out),
            Op::Instance => cpu::instance_norm(at(0), at(1), at(2), EPSILON, out),
            Op::Batch => cpu::batch_norm(at(0), at(1), at(2), at(3), at(4), EPSILON, out),
        }
    }

    fn expected(&self, inputs: &[Array]) -> Expected {
        let x = inputs[0].of::<f32>();
        let x: Vec<f32> = match self.op.adds() {
            true => x.iter().zip(inputs[1].of::<f32>()).map(|(a, b): (&f32, &f32)| a + b).collect(),
            false => x.to_vec(),
        };
        if self.of_sum {
            return Expected::Floats(x.into_iter().map(f64::from).collect());
        }
        let (extent, weights) = self.rows();
        let weights: usize = weights.iter().product();
        let last = inputs.len() - usize::from(self.op.is_centred());
        let (gamma, beta) = (inputs[last - 1].of::<f32>(), inputs.get(last).map(Array::of::<f32>));
        // Elements that a weight is for.
        let spread = match self.op {
            Op::Group(_) | Op::Instance | Op::Batch => self.shape[2..].iter().product(),
            _ => 1,
        };
        let mut expected = Vec::with_capacity(x.len());
        for (row, x) in x.chunks(extent.max(1)).enumerate() {
            let mean_of =
                |f: &dyn Fn(f64) -> f64| x.iter().map(|x| f(f64::from(*x))).sum::<f64>() / x.len() as f64;
            let (mean, variance) = match self.op {
                Op::Batch => {
                    let at = row % weights;
                    (f64::from(inputs[1].of::<f32>()[at]), f64::from(inputs[2].of::<f32>()[at]))
                }
                Op::Rms | Op::AddRms => (0.0, mean_of(&|x| x * x)),
                _ => {
                    let mean = mean_of(&|x| x);
                    (mean, mean_of(&|x| (x - mean) * (x - mean)))
                }
            };
            let scale = 1.0 / (variance + f64::from(EPSILON)).sqrt();
            for (k, x) in x.iter().enumerate() {
                let at = (row * extent + k) / spread % weights;
                let scaled = (f64::from(*x) - mean) * scale * f64::from(gamma[at]);
                let shift = beta.map_or(0.0, |beta| f64::from(beta[at]));
                let least = if self.op.is_centred() { f64::from(gamma[at]).abs() } else { 0.0 };
                // Without a beta nothing is added, and the sign of a zero is that of the product.
                let y = if beta.is_some() { scaled + shift } else { scaled };
                expected.push((y, scaled.abs() + least + shift.abs()));
            }
        }
        Expected::Scaled(expected)
    }
}
