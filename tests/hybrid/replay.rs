//! The table of crossovers on other machines: their times are in `tests/machines/`.

use tidemill::hybrid::{Calibration, Class, Curve, DeviceTimes, Op, Placement, Policy, Side, Work};

use crate::machines::{self, Cell, Noise, Profile};
use tidemill_cases::crossover as cells;

/// Calls of a cell, of which the median counts.
const CALLS: usize = 15;
/// How often the whole table is replayed, each time disturbed otherwise; of a cell's regrets the median counts.
const REPLAYS: u64 = 5;

/// How many times as long as the better side a placement takes, after half a microsecond for deciding and some calls
/// that do not count: for every cell, with operands in the host's memory and on the device.
fn replay(profile: &Profile, placement: &Placement, before: usize, mut noise: Noise) -> Vec<f64> {
    let mut regrets = Vec::new();
    for resident in [false, true] {
        for cell in &profile.cells {
            let (work, times) = (cell.work(resident), profile.times(cell, resident));
            for _ in 0..before {
                call(placement, &work, times, &mut noise);
            }
            let mut took: Vec<f64> =
                (0..CALLS).map(|_| times[call(placement, &work, times, &mut noise) as usize]).collect();
            took.sort_by(f64::total_cmp);
            regrets.push(((took[CALLS / 2] - 0.5) / times[0].min(times[1])).max(1.0));
        }
    }
    regrets
}

/// One call, and what is learned from it.
fn call(placement: &Placement, work: &Work, times: [f64; 2], noise: &mut Noise) -> Side {
    let decision = placement.decide(work);
    placement.learn(work, &decision, times[decision.side as usize] * noise.factor());
    decision.side
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// The worst and the median of the cells.
fn regret(replays: &[Vec<f64>]) -> (f64, f64) {
    let cells = (0..replays[0].len()).map(|cell| median(replays.iter().map(|r| r[cell]).collect()));
    let cells: Vec<f64> = cells.collect();
    (cells.iter().copied().fold(1.0, f64::max), median(cells))
}

/// With the profile's own calibration.
fn regret_of(profile: &Profile, policy: Policy) -> (f64, f64) {
    let replays = (0..REPLAYS).map(|seed| {
        let placement = Placement::new(profile.calibration.clone(), policy);
        replay(profile, &placement, 0, Noise(seed))
    });
    regret(&replays.collect::<Vec<_>>())
}

#[test]
fn profiles_have_every_cell_of_the_table_and_each_side_wins_a_quarter() {
    for profile in machines::all() {
        let there: Vec<_> = profile.cells.iter().map(|cell| (cell.op, cell.n)).collect();
        let table: Vec<_> =
            cells::OPS.into_iter().flat_map(|op| cells::sizes().map(move |n| (op, n))).collect();
        assert_eq!(there, table, "{}", profile.name);
        let gpu_wins = |resident: bool| {
            let wins = |cell: &&Cell| {
                let [cpu_us, gpu_us] = profile.times(cell, resident);
                gpu_us < cpu_us
            };
            profile.cells.iter().filter(wins).count()
        };
        let share = (gpu_wins(false) + gpu_wins(true)) as f64 / (2 * table.len()) as f64;
        assert!((0.25..=0.75).contains(&share), "{}: the device wins {share} of the cells", profile.name);
    }
}

#[test]
fn auto_is_right_where_both_sides_have_their_share_and_neither_side_alone_is() {
    for profile in machines::all() {
        let (worst, median) = regret_of(&profile, Policy::Auto);
        assert!(worst <= 1.25 && median <= 1.05, "{}: worst {worst}, median {median}", profile.name);
        for policy in [Policy::Cpu, Policy::Gpu] {
            let (worst, _) = regret_of(&profile, policy);
            assert!(worst > 1.25, "{}: {policy:?} alone has a regret of {worst} only", profile.name);
        }
    }
}

/// How many times as long as it should a point of a disturbed calibration takes at most.
const DISTURBED: f64 = 8.0;
/// Calls of a cell after which that must be made good. A side that is priced too high by so much is tried once calls
/// have taken 20 times its price: after 20 * 8 of them if it is as good as the other one.
const MADE_GOOD: usize = 200;

/// Each point for itself.
fn disturbed(calibration: &Calibration, noise: &mut Noise) -> Calibration {
    let mut factor = move || DISTURBED.powf(noise.unit());
    let mut curve = |curve: &Curve| {
        Curve::new(curve.points().iter().map(|(amount, us)| (*amount, us * factor())).collect()).unwrap()
    };
    let gpu = calibration.gpu.as_ref().unwrap();
    Calibration {
        cpu: calibration.cpu.each_ref().map(&mut curve),
        gpu: Some(DeviceTimes {
            ops: gpu.ops.each_ref().map(&mut curve),
            upload: curve(&gpu.upload),
            download: curve(&gpu.download),
            ..*gpu
        }),
    }
}

#[test]
fn a_disturbed_calibration_is_made_good_by_calls() {
    for profile in machines::all() {
        let after = |before: usize| {
            let replays = (0..REPLAYS).map(|seed| {
                let mut noise = Noise(100 + seed);
                let calibration = disturbed(&profile.calibration, &mut noise);
                replay(&profile, &Placement::new(calibration, Policy::Auto), before, noise)
            });
            replays.collect::<Vec<_>>()
        };
        let (worst, median) = regret(&after(MADE_GOOD));
        assert!(worst <= 1.25 && median <= 1.05, "{}: worst {worst}, median {median}", profile.name);
        // It was worth it: at first, some cell of each replay is on the wrong side by far.
        for regrets in after(0) {
            let worst = regrets.into_iter().fold(1.0, f64::max);
            assert!(worst > 1.25, "{}: the disturbed calibration was as good: {worst}", profile.name);
        }
    }
}

/// Operations that go over elements, and how many operands they have.
fn elementwise() -> Vec<(Op, usize)> {
    let others = [
        Op::Chain,
        Op::Permute,
        Op::Transpose,
        Op::Slice,
        Op::BroadcastTo,
        Op::Concat,
        Op::Stack,
        Op::Pad,
        Op::GatherRows,
        Op::Iota,
        Op::RandomUniform,
        Op::RandomNormal,
    ];
    let pairs = [
        Op::Add,
        Op::Sub,
        Op::Mul,
        Op::Div,
        Op::Min,
        Op::Max,
        Op::Pow,
        Op::Eq,
        Op::Ne,
        Op::Lt,
        Op::Le,
        Op::Gt,
        Op::Ge,
    ];
    let of_elements =
        |op: &&Op| matches!(op.class(), Class::Memory | Class::Transcendental) && !others.contains(op);
    let operands = |op: &Op| match op {
        Op::Select => 3,
        op if pairs.contains(op) => 2,
        _ => 1,
    };
    Op::ALL.iter().filter(of_elements).map(|op| (*op, operands(op))).collect()
}

#[test]
fn the_discrete_card_gets_large_matmuls_and_no_small_elementwise_operation() {
    let [card, ..] = machines::all();
    let placement = Placement::new(card.calibration.clone(), Policy::Auto);
    let mut noise = Noise(0);
    let ops = elementwise();
    assert!(ops.len() > 50, "{ops:?}");
    for (op, operands) in ops {
        let work = Work::on_host(op, operands * 1000, 1000, 0.0);
        // As the one of its class that the report has.
        let like = if op.class() == Class::Memory { Op::Add } else { Op::Gelu };
        let times = card.times(&card.cell(like, 1 << 10), false);
        for number in 0..20 {
            assert_eq!(placement.decide(&work).side, Side::Cpu, "{op:?} after {number} calls");
            call(&placement, &work, times, &mut noise);
        }
    }
    // The report's own times of 1000 x 1000.
    let (work, times) = (Work::on_host(Op::Matmul, 2_000_000, 1_000_000, 1e9), [638_700.0, 7_840.0]);
    for number in 0..20 {
        assert_eq!(placement.decide(&work).side, Side::Gpu, "after {number} calls");
        call(&placement, &work, times, &mut noise);
    }
}
