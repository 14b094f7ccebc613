//! A network of two layers, trained in place: one plan is a step of stochastic gradient descent, and nothing is
//! recorded or encoded after the first.
//!
//! cargo run --release --example mlp_train
//!
//! The network learns to tell which of ten directions a point of a plane lies in. Its gradients are checked against
//! differences of the loss, and its answers against the truth; a wrong result is an error of the program.

use std::time::Instant;

use tidemill::{Accelerator, Axes, Epilogue, Matmul, Plan, Recording, Result, Tensor, Value};

const BATCH: usize = 256;
const HIDDEN: usize = 64;
const CLASSES: usize = 10;
const STEPS: usize = 1500;
const RATE: f32 = 0.5;

/// Points and their classes, as rows of ones and zeros. SplitMix64 draws them.
struct Points(u64);

impl Points {
    fn number(&mut self) -> f32 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 40) as f32 / (1u64 << 24) as f32
    }

    fn batch(&mut self) -> (Vec<f32>, Vec<f32>) {
        let (mut points, mut truth) = (Vec::new(), vec![0.0; BATCH * CLASSES]);
        for row in 0..BATCH {
            let turn = self.number();
            let angle = turn * std::f32::consts::TAU;
            points.extend([angle.cos(), angle.sin()]);
            truth[row * CLASSES + ((turn * CLASSES as f32) as usize).min(CLASSES - 1)] = 1.0;
        }
        (points, truth)
    }

    fn weights(&mut self, gpu: &Accelerator, rows: usize, columns: usize) -> Result<Tensor> {
        let scale = 2.0 / (rows as f32).sqrt();
        let weights: Vec<f32> = (0..rows * columns).map(|_| (self.number() - 0.5) * scale).collect();
        gpu.upload(&weights, [rows, columns])
    }
}

/// The network, and the batch that it works on.
struct Network {
    points: Tensor,
    truth: Tensor,
    /// Weights and biases of the first layer, then those of the second.
    parameters: [Tensor; 4],
}

/// The results of a batch: its mean loss, the shares of the classes, and a gradient for each of the parameters.
struct Pass {
    loss: Value,
    shares: Value,
    gradients: [Value; 4],
}

impl Network {
    fn new(gpu: &Accelerator, random: &mut Points) -> Result<Network> {
        Ok(Network {
            points: gpu.zeros::<f32>([BATCH, 2])?,
            truth: gpu.zeros::<f32>([BATCH, CLASSES])?,
            parameters: [
                random.weights(gpu, 2, HIDDEN)?,
                gpu.zeros::<f32>([HIDDEN])?,
                random.weights(gpu, HIDDEN, CLASSES)?,
                gpu.zeros::<f32>([CLASSES])?,
            ],
        })
    }

    /// Records the way forth and back.
    fn pass(&self, r: &Recording) -> Result<Pass> {
        let [w1, b1, w2, b2] = &self.parameters;
        let hidden = r.matmul_with(&self.points, w1, Epilogue::bias(b1).relu())?;
        let scores = r.matmul_with(hidden, w2, Epilogue::bias(b2))?;
        let shares = r.softmax(scores, -1)?;
        let losses = r.mul(r.log_softmax(scores, -1)?, &self.truth)?;
        let loss = r.scale(r.sum(losses, Axes::ALL)?, -1.0 / BATCH as f32)?;

        let back = r.scale(r.sub(shares, &self.truth)?, 1.0 / BATCH as f32)?;
        let by_w2 = r.matmul_with(hidden, back, Matmul::new().transpose_lhs())?;
        let by_b2 = r.reshape(r.sum(back, 0)?, [CLASSES])?;
        let through = r.matmul_with(back, w2, Matmul::new().transpose_rhs())?;
        let open = r.cast(r.gt_scalar(hidden, 0.0f32)?, tidemill::DType::F32)?;
        let through = r.mul(through, open)?;
        let by_w1 = r.matmul_with(&self.points, through, Matmul::new().transpose_lhs())?;
        let by_b1 = r.reshape(r.sum(through, 0)?, [HIDDEN])?;
        Ok(Pass { loss, shares, gradients: [by_w1, by_b1, by_w2, by_b2] })
    }

    /// One step as a plan: it leaves better parameters where the old ones were.
    fn step(&self, gpu: &Accelerator) -> Result<(Plan, Tensor)> {
        let r = gpu.begin_recording()?;
        let pass = self.pass(&r)?;
        for (parameter, gradient) in self.parameters.iter().zip(pass.gradients) {
            let next = r.sub(parameter, r.scale(gradient, RATE)?)?;
            r.assign(parameter, next)?;
        }
        let loss = r.keep(pass.loss)?;
        Ok((r.into_plan()?, loss))
    }

    fn write(&self, (points, truth): &(Vec<f32>, Vec<f32>)) -> Result<()> {
        self.points.write(points)?;
        self.truth.write(truth)
    }

    fn loss(&self, gpu: &Accelerator) -> Result<f32> {
        Ok(gpu.run(|r| self.pass(r).map(|pass| pass.loss))?.read::<f32>()?[0])
    }

    /// The gradients must be what the loss changes by.
    fn check_gradients(&self, gpu: &Accelerator) -> Result<()> {
        let gradients = gpu.run(|r| self.pass(r).map(|pass| pass.gradients.to_vec()))?;
        for (i, (parameter, gradient)) in self.parameters.iter().zip(&gradients).enumerate() {
            let (old, gradient) = (parameter.read::<f32>()?, gradient.read::<f32>()?);
            let element = old.len() / 2;
            let nudge = 1e-2;
            let mut losses = [0.0; 2];
            for (loss, by) in losses.iter_mut().zip([-nudge, nudge]) {
                let mut nudged = old.clone();
                nudged[element] += by;
                parameter.write(&nudged)?;
                *loss = self.loss(gpu)?;
            }
            parameter.write(&old)?;
            let measured = (losses[1] - losses[0]) / (2.0 * nudge);
            let difference = (measured - gradient[element]).abs();
            assert!(difference < 2e-3, "parameter {i}: {measured} measured, {} computed", gradient[element]);
        }
        Ok(())
    }

    /// The share of points whose class gets the largest share.
    fn accuracy(&self, gpu: &Accelerator, truth: &[f32]) -> Result<f32> {
        let shares = gpu.run(|r| self.pass(r).map(|pass| pass.shares))?.read::<f32>()?;
        let largest = |row: &[f32]| (0..CLASSES).max_by(|&a, &b| row[a].total_cmp(&row[b]));
        let rows = shares.chunks_exact(CLASSES).zip(truth.chunks_exact(CLASSES));
        let right = rows.filter(|(share, truth)| largest(share) == largest(truth)).count();
        Ok(right as f32 / BATCH as f32)
    }
}

fn main() -> Result<()> {
    let gpu = Accelerator::global()?;
    let mut random = Points(7);
    let network = Network::new(&gpu, &mut random)?;
    let test = random.batch();
    network.write(&test)?;
    network.check_gradients(&gpu)?;
    let before = (network.loss(&gpu)?, network.accuracy(&gpu, &test.1)?);

    let (mut step, loss) = network.step(&gpu)?;
    network.write(&random.batch())?;
    step.submit()?.wait()?;
    let encoded = |gpu: &Accelerator| (gpu.stats().commands.encoded, gpu.stats().commands.plan_encoded);
    let first = (loss.read::<f32>()?[0], encoded(&gpu));
    let begun = Instant::now();
    for _ in 1..STEPS {
        // Work in flight does not matter: the next step works on what this one leaves.
        network.write(&random.batch())?;
        let _ = step.submit()?;
    }
    let last = loss.read::<f32>()?[0];
    let elapsed = begun.elapsed();
    assert_eq!(encoded(&gpu), first.1, "a step encodes nothing");

    network.write(&test)?;
    let after = (network.loss(&gpu)?, network.accuracy(&gpu, &test.1)?);
    println!("{STEPS} steps of {BATCH} points in {elapsed:.1?}, loss {:.3} to {last:.3}", first.0);
    println!(
        "on points not seen: loss {:.3} to {:.3}, {:.0} % to {:.0} % right",
        before.0,
        after.0,
        100.0 * before.1,
        100.0 * after.1
    );
    assert!(after.0 < 0.4 * before.0, "the loss must fall: {} to {}", before.0, after.0);
    assert!(after.1 > 0.9, "most answers must be right: {}", after.1);
    Ok(())
}
