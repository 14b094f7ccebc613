//! Products that feed products become one dispatch, with the bits of several.

use tidemill::{Accelerator, DType, Matmul, Recording, Result, Value};

use crate::fusion::{Tail, noise, on_each};
use crate::harness::{Gpu, config, gpu, gpu_with};

/// What comes between two products: the cheapest operation, or one that only the larger modules have.
pub(crate) const RELU: Tail = |_, r, h| r.relu(h);
pub(crate) const TANH: Tail = |_, r, h| r.tanh(h);

/// At least so many rows, and enough to share for all threads of a software driver.
pub(crate) fn rows(least: usize) -> usize {
    least + 16 * std::thread::available_parallelism().map_or(1, usize::from).saturating_sub(4)
}

/// A matrix of so many rows, and `widths[0]` columns, goes through products of the other widths: what comes out of each. Between
/// them stand a bias and an operation, and behind the last one a bias, if it has one.
pub(crate) fn layers(
    gpu: &Accelerator,
    (rows, widths): (usize, &[usize]),
    between: Tail,
    bias: bool,
    r: &mut Recording,
) -> Result<Vec<Value>> {
    let mut all: Vec<Value> = Vec::new();
    for (i, pair) in widths.windows(2).enumerate() {
        let weights = noise(gpu, 2 + i as u64, [pair[0], pair[1]]);
        let product = match all.last() {
            None => r.matmul(&noise(gpu, 1, [rows, pair[0]]), &weights)?,
            Some(h) => r.matmul(*h, &weights)?,
        };
        let row = noise(gpu, 20 + i as u64, [pair[1]]);
        let last = i + 2 == widths.len();
        let biased = if last && !bias { product } else { r.add(product, &row)? };
        all.push(if last { biased } else { between(gpu, r, biased)? });
    }
    Ok(all)
}

fn fused_and_not() -> [Gpu; 2] {
    [gpu(), gpu_with(config().fusion(false))]
}

/// The last of some layers is the same fused and not, and takes so many dispatches fused. Gives those that it takes else.
fn check(
    gpus: &[Gpu; 2],
    (rows, widths): (usize, &[usize]),
    between: Tail,
    bias: bool,
    dispatches: u64,
) -> u64 {
    let record = |gpu: &Accelerator, r: &mut Recording| {
        layers(gpu, (rows, widths), between, bias, r).map(|all| all[all.len() - 1..].to_vec())
    };
    let [fused, unfused] = on_each(gpus, record);
    assert_eq!(fused.0, unfused.0, "{rows} {widths:?}");
    assert_eq!(fused.1, dispatches, "{rows} {widths:?}");
    unfused.1
}

/// All layers are one dispatch, behind those that pack operands.
fn check_joined(gpus: &[Gpu; 2], layers: (usize, &[usize]), between: Tail, bias: bool, packed: u64) {
    let unfused = check(gpus, layers, between, bias, 1 + packed);
    let hidden = layers.1.len() as u64 - 2;
    assert_eq!(unfused, 3 * hidden + 1 + u64::from(bias) + packed, "{layers:?}");
}

#[test]
fn a_product_with_few_columns_joins_the_one_before_it() {
    let gpus = fused_and_not();
    // Rows that fill no tile, a step along k at the end, every number of columns that differs.
    check_joined(&gpus, (rows(64), &[184, 64, 10]), RELU, true, 0);
    check_joined(&gpus, (rows(64), &[256, 32, 10]), RELU, false, 0);
    check_joined(&gpus, (rows(65), &[20, 32, 16]), TANH, true, 0);
    check_joined(&gpus, (rows(79), &[64, 64, 5]), RELU, true, 0);
    check_joined(&gpus, (rows(128), &[4, 32, 13]), TANH, false, 0);
    // Both operands are packed first.
    check_joined(&gpus, (rows(100), &[33, 96, 1]), TANH, true, 2);
    check_joined(&gpus, (rows(50), &[5, 64, 2]), TANH, false, 2);
    // Nothing to add up, for which zeros are filled in.
    check_joined(&gpus, (rows(64), &[0, 64, 10]), RELU, true, 1);
    // Halves in front, which are made by a dispatch.
    let halves = |gpu: &Accelerator, r: &mut Recording| {
        let x = r.cast(&noise(gpu, 1, [rows(64), 40]), DType::F16)?;
        let h = r.matmul(x, &noise(gpu, 2, [40, 96]))?;
        Ok(vec![r.matmul(h, &noise(gpu, 3, [96, 7]))?])
    };
    let [fused, unfused] = on_each(&gpus, halves);
    assert_eq!((fused.0, fused.1), (unfused.0, 2));
}

#[test]
fn the_product_in_front_of_those_two_joins_them() {
    let gpus = fused_and_not();
    check_joined(&gpus, (rows(64), &[184, 64, 32, 10]), RELU, true, 0);
    check_joined(&gpus, (rows(64), &[40, 32, 96, 1]), RELU, false, 0);
    check_joined(&gpus, (rows(71), &[8, 96, 32, 16]), TANH, true, 0);
    check_joined(&gpus, (rows(100), &[24, 64, 64, 3]), TANH, false, 0);
    // One more stays by itself.
    check(&gpus, (rows(64), &[16, 32, 32, 32, 10]), RELU, true, 2);
    // Operands that lie otherwise are packed, each by a dispatch; alpha is the same for both.
    let transposed = |gpu: &Accelerator, r: &mut Recording| {
        let with = || Matmul::new().alpha(0.5).transpose_rhs();
        let h =
            r.matmul_with(&noise(gpu, 1, [16, rows(66)]), &noise(gpu, 2, [96, 16]), with().transpose_lhs())?;
        let h = r.matmul_with(h, &noise(gpu, 3, [64, 96]), with())?;
        Ok(vec![r.matmul(h, &noise(gpu, 4, [64, 6]))?])
    };
    let [fused, unfused] = on_each(&gpus, transposed);
    assert_eq!((fused.0, fused.1), (unfused.0, 4));
    // Inputs that have something for each row, and scalars.
    let residual = |gpu: &Accelerator, r: &mut Recording| {
        let m = rows(70);
        let mut h = r.matmul(&noise(gpu, 1, [m, 32]), &noise(gpu, 2, [32, 32]))?;
        for seed in [3, 4] {
            h = r.scale(h, 0.5)?;
            h = r.add(h, &noise(gpu, seed, [m, 32]))?;
            h = r.mul(h, &noise(gpu, seed + 5, [m, 1]))?;
            h = r.matmul(h, &noise(gpu, seed + 10, [32, if seed == 3 { 32 } else { 10 }]))?;
        }
        Ok(vec![h])
    };
    let [fused, unfused] = on_each(&gpus, residual);
    assert_eq!((fused.0, fused.1), (unfused.0, 1));
}

#[test]
fn products_that_can_not_be_joined_are_right_by_themselves() {
    let gpus = fused_and_not();
    // Too few rows to share, columns that fill no tile, too many columns behind, too much work, no columns behind.
    check(&gpus, (48, &[20, 64, 10]), TANH, true, 2);
    check(&gpus, (rows(64), &[20, 40, 10]), TANH, true, 2);
    check(&gpus, (rows(64), &[20, 64, 20]), TANH, true, 2);
    check(&gpus, (rows(512), &[256, 256, 10]), RELU, true, 2);
    check(&gpus, (rows(64), &[24, 64, 0]), RELU, true, 1);
    // In front of two: short steps along k, columns that fill no tile, too much work, too much to store.
    check(&gpus, (rows(64), &[20, 32, 32, 10]), RELU, true, 2);
    check(&gpus, (rows(64), &[24, 40, 32, 10]), RELU, true, 2);
    check(&gpus, (rows(520), &[1024, 32, 32, 10]), RELU, true, 2);
    check(&gpus, (rows(1040), &[8, 256, 32, 10]), RELU, true, 2);
    let shape: (usize, &[usize]) = (rows(64), &[24, 32, 64, 10]);
    // What is kept, all of it or the first one, whose reader is stored then; what has other operations behind it; halves.
    type Record<'a> = &'a dyn Fn(&Accelerator, &mut Recording) -> Result<Vec<Value>>;
    let all: Record<'_> = &|gpu, r| layers(gpu, shape, RELU, true, r);
    let first: Record<'_> = &|gpu, r| {
        let all = layers(gpu, shape, RELU, true, r)?;
        Ok(vec![all[0], all[2]])
    };
    let other_tails: Record<'_> = &|gpu, r| {
        let h = r.matmul(&noise(gpu, 1, [shape.0, 24]), &noise(gpu, 2, [24, 32]))?;
        let h = r.abs(h)?;
        let h = r.matmul(h, &noise(gpu, 3, [32, 32]))?;
        let h = r.relu(h)?;
        Ok(vec![r.matmul(h, &noise(gpu, 4, [32, 10]))?])
    };
    let halves: Record<'_> = &|gpu, r| {
        let weights = r.cast(&noise(gpu, 2, [24, 32]), DType::F16)?;
        let h = r.matmul(&noise(gpu, 1, [shape.0, 24]), weights)?;
        let h = r.matmul(h, &noise(gpu, 3, [32, 32]))?;
        Ok(vec![r.matmul(h, &noise(gpu, 4, [32, 10]))?])
    };
    let cases =
        [(all, 3, "all kept"), (first, 2, "first kept"), (other_tails, 2, "tails"), (halves, 3, "halves")];
    for (record, dispatches, what) in cases {
        let [fused, unfused] = on_each(&gpus, record);
        assert_eq!((fused.0, fused.1), (unfused.0, dispatches), "{what}");
    }
}
