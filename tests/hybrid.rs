//! Placement: on recorded machines, where each side has its share, and live with a slow CPU, where both are used.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]
#![allow(unreachable_pub, reason = "a test binary exports nothing")]

#[allow(dead_code, reason = "other tests use the rest")]
#[path = "gpu/harness.rs"]
mod harness;
mod machines;

use machines::{DISCRETE, INTEGRATED, LAVAPIPE, Model};
use tidemill::hybrid::{Calibration, Hybrid, Op, Placement, Policy, Side};
use tidemill::{Accelerator, Error};

/// Times of one cell: both sides, and what the policy made of it after some calls.
struct Cell {
    cpu_us: f64,
    gpu_us: f64,
    got_us: f64,
}

/// Replays the table on a model of a machine: it is calibrated as a real one is, and calls take what the model says.
fn replay(model: &Model, policy: Policy) -> Vec<Cell> {
    let calibration = Calibration::measure(&mut { *model }).unwrap().unwrap();
    let placement = Placement::new(calibration, policy);
    let mut cells = Vec::new();
    for (op, n, resident) in machines::table() {
        let (work, cpu_us, gpu_us) = model.cell(op, n, resident);
        let mut took: Vec<f64> = (0..9)
            .map(|_| {
                let decision = placement.decide(&work);
                let us = if decision.side == Side::Cpu { cpu_us } else { gpu_us };
                placement.learn(&work, &decision, us);
                us
            })
            .collect();
        took.sort_by(f64::total_cmp);
        cells.push(Cell { cpu_us, gpu_us, got_us: took[4] });
    }
    cells
}

/// How much longer than the better side, after half a microsecond of allowance: the worst and the median.
fn regret(cells: &[Cell]) -> (f64, f64) {
    let one = |cell: &Cell| ((cell.got_us - 0.5) / cell.cpu_us.min(cell.gpu_us)).max(1.0);
    let mut all: Vec<f64> = cells.iter().map(one).collect();
    all.sort_by(f64::total_cmp);
    (all[all.len() - 1], all[all.len() / 2])
}

#[test]
fn auto_is_right_where_both_sides_have_their_share_and_neither_side_alone_is() {
    for model in [DISCRETE, INTEGRATED, LAVAPIPE] {
        let cells = replay(&model, Policy::Auto);
        let gpu_wins = cells.iter().filter(|cell| cell.gpu_us < cell.cpu_us).count();
        let share = gpu_wins as f64 / cells.len() as f64;
        assert!((0.25..=0.75).contains(&share), "{}: the device wins {share} of the cells", model.name);
        let (worst, median) = regret(&cells);
        assert!(worst <= 1.25 && median <= 1.05, "{}: worst {worst}, median {median}", model.name);
        for policy in [Policy::Cpu, Policy::Gpu] {
            let (worst, _) = regret(&replay(&model, policy));
            assert!(worst > 1.25, "{}: {policy:?} alone has a regret of {worst} only", model.name);
        }
    }
}

#[test]
fn the_discrete_card_gets_large_products_and_no_small_elementwise_operation() {
    let calibration = Calibration::measure(&mut { DISCRETE }).unwrap().unwrap();
    let placement = Placement::new(calibration, Policy::Auto);
    for op in [Op::Add, Op::Relu, Op::Tanh, Op::Gelu, Op::Sigmoid, Op::Clip] {
        let (work, ..) = DISCRETE.cell(op, 1 << 10, false);
        assert_eq!(placement.decide(&work).side, Side::Cpu, "{op:?}");
    }
    let (work, ..) = DISCRETE.cell(Op::Matmul, 1 << 20, false);
    assert_eq!(placement.decide(&work).side, Side::Gpu);
}

#[test]
fn with_a_slow_cpu_both_sides_are_used_and_both_are_right() {
    let gpu = harness::gpu();
    let calibration = Hybrid::calibrate(&gpu).unwrap();
    let hybrid =
        Hybrid::with_calibration(Accelerator::clone(&gpu), calibration, Policy::Auto).slow_cpu(300.0);
    let mut sides = Vec::new();
    for n in [64usize, 1 << 18] {
        let x: Vec<f32> = (0..n).map(|i| (i % 1000) as f32 * 0.001).collect();
        let mut y = vec![0.0; n];
        for _ in 0..8 {
            let ran = hybrid.gelu(&x, &mut y).unwrap();
            sides.push((n, ran.decision.side));
            assert!((y[63] - 0.033_08).abs() < 1e-3, "{} at {:?}", y[63], ran.decision.side);
        }
    }
    // A submission takes longer than 64 elements even so; a quarter of a million don't.
    assert_eq!(sides[7], (64, Side::Cpu), "{sides:?}");
    assert_eq!(sides[15], (1 << 18, Side::Gpu), "{sides:?}");
}

#[test]
fn both_sides_of_a_chain_give_the_same_numbers_and_the_same_refusals() {
    let gpu = harness::gpu();
    let calibration = Hybrid::calibrate(&gpu).unwrap();
    let on = |policy| Hybrid::with_calibration(Accelerator::clone(&gpu), calibration.clone(), policy);
    let (x, w): (Vec<f32>, Vec<f32>) =
        ((0..32).map(|i| i as f32 / 16.0 - 1.0).collect(), (0..8).map(|i| i as f32 / 4.0 - 1.0).collect());
    let there = gpu.upload(&w, [4, 2]).unwrap();
    let results = [Policy::Cpu, Policy::Gpu].map(|policy| {
        let (mut y, mut total) = (vec![0.0; 16], [0.0]);
        let decision = on(policy)
            .chain(|c| {
                let (x, w) = (c.input((&x, [8, 4])), c.input(&there));
                let h = c.matmul(x, w)?;
                let h = c.tanh(h)?;
                let h = c.softmax(h, -1)?;
                let all = c.sum(h, tidemill::Axes::ALL)?;
                c.output(h, &mut y)?;
                c.output(all, &mut total)
            })
            .unwrap();
        assert_eq!(decision.side == Side::Gpu, policy == Policy::Gpu);
        assert!((total[0] - 8.0).abs() < 1e-5);
        y
    });
    assert!(results[0].iter().zip(&results[1]).all(|(a, b)| (a - b).abs() < 1e-6), "{results:?}");
    for policy in [Policy::Cpu, Policy::Gpu] {
        let hybrid = on(policy);
        let refused = hybrid.add(&x, &w, &mut [0.0; 32]).unwrap_err();
        assert_eq!(refused.to_string(), "add: lhs [32] and rhs [8]: 32 != 8 in dimension 0");
        let refused = hybrid.relu(&x, &mut [0.0; 3]).unwrap_err();
        assert!(matches!(refused, Error::Length { op: "relu", got: 3, .. }), "{refused}");
        let mut out = [0.0; 8];
        hybrid.relu(&there, &mut out).unwrap();
        assert_eq!(out[7], 0.75);
    }
}
