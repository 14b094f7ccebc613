//! How far right cells stand, their order given.

use super::{BOX_GAP, Grid, LINE_GAP};

/// Enough for chains to become straight.
const PASSES: usize = 10;
/// How much a cell keeps to its wanted position: lines that pass several rows should be straight before all, and inputs
/// give way.
const LINE_WEIGHT: f64 = 4.0;
const INPUT_WEIGHT: f64 = 0.001;

/// The middle of every cell: near its neighbours in other rows, with the gaps kept in its own.
pub(super) fn centres(
    grid: &Grid,
    width_of: impl Fn(usize) -> f64,
    is_step: impl Fn(usize) -> bool,
) -> Vec<f64> {
    let distance = |left: usize, right: usize| {
        let gap = if grid.is_line(left) || grid.is_line(right) { LINE_GAP } else { BOX_GAP };
        (width_of(left) + width_of(right)) / 2.0 + gap
    };
    let weight = |cell: usize| match (grid.is_line(cell), is_step(cell)) {
        (true, _) => LINE_WEIGHT,
        (false, true) => 1.0,
        (false, false) => INPUT_WEIGHT,
    };
    let mut centres = vec![0.0; grid.cells.len()];
    let mut settle = |row: &[usize], [first, second]: [&[Vec<usize>]; 2]| {
        // By the steps among its neighbours, if there are any, so that chains are straight and inputs stand beside
        // them; least by lines that come from far away.
        let pull = |cell: usize| u8::from(!grid.is_line(cell)) + u8::from(is_step(cell));
        let wanted = |cell: usize| {
            let near = if first[cell].is_empty() { &second[cell] } else { &first[cell] };
            let strongest = near.iter().map(|&other| pull(other)).max();
            let near = near.iter().filter(|&&other| Some(pull(other)) == strongest);
            let (sum, n) = near.fold((0.0, 0), |(sum, n), &other| (sum + centres[other], n + 1));
            if n == 0 { centres[cell] } else { sum / f64::from(n) }
        };
        // As offsets from a row in which all cells stand as close as they may, wanted must only not fall.
        let mut starts = vec![0.0; row.len()];
        for i in 1..row.len() {
            starts[i] = starts[i - 1] + distance(row[i - 1], row[i]);
        }
        let wanted: Vec<(f64, f64)> =
            row.iter().zip(&starts).map(|(&cell, start)| (wanted(cell) - start, weight(cell))).collect();
        for ((&cell, start), offset) in row.iter().zip(&starts).zip(rising(&wanted)) {
            centres[cell] = start + offset;
        }
    };
    for _ in 0..PASSES {
        grid.rows.iter().rev().for_each(|row| settle(row, [&grid.below, &grid.above]));
        grid.rows.iter().for_each(|row| settle(row, [&grid.above, &grid.below]));
    }
    centres
}

/// The numbers nearest to these (each with its weight, in the sense of least squares) that don't fall.
fn rising(wanted: &[(f64, f64)]) -> Vec<f64> {
    // Runs of equal numbers: mean, weight, length. A run below the one before joins it.
    let mut runs: Vec<(f64, f64, usize)> = Vec::new();
    for &(wanted, weight) in wanted {
        let mut run = (wanted, weight, 1);
        while let Some(&(mean, before, length)) = runs.last() {
            if mean <= run.0 {
                break;
            }
            runs.pop();
            let both = before + run.1;
            run = ((mean * before + run.0 * run.1) / both, both, length + run.2);
        }
        runs.push(run);
    }
    runs.into_iter().flat_map(|(mean, _, length)| std::iter::repeat_n(mean, length)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_rise_and_stay_near() {
        assert_eq!(rising(&[(1.0, 1.0), (2.0, 1.0), (5.0, 1.0)]), [1.0, 2.0, 5.0]);
        assert_eq!(rising(&[(3.0, 1.0), (1.0, 1.0), (5.0, 1.0)]), [2.0, 2.0, 5.0]);
        assert_eq!(rising(&[(4.0, 3.0), (0.0, 1.0)]), [3.0, 3.0]);
        assert_eq!(rising(&[(6.0, 1.0), (4.0, 1.0), (2.0, 1.0)]), [4.0, 4.0, 4.0]);
    }

    #[test]
    fn a_chain_is_straight_and_inputs_stand_beside_it() {
        let grid = Grid::new(&[0, 0, 1, 2], &[(0, 2), (1, 2), (2, 3), (0, 3)]);
        let width_of = |cell: usize| if grid.is_line(cell) { 0.0 } else { 100.0 };
        let centres = centres(&grid, width_of, |cell| cell == 2 || cell == 3);
        assert_eq!(centres[2], centres[3], "{centres:?}");
        assert!(
            (centres[0] - centres[1]).abs() >= 100.0 + BOX_GAP && (centres[4] - centres[2]).abs() >= 50.0
        );
    }
}
