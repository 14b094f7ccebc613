//! In which order cells stand in their rows.

use super::Grid;

/// After this many passes hardly anything moves any more.
const PASSES: usize = 12;

/// Orders the rows so that few lines cross: cells go to the mean of their neighbours in the row before, down and up in
/// turns, and the best of all that is kept.
pub(super) fn untangle(grid: &mut Grid) {
    let (mut best, mut fewest) = (grid.rows.clone(), crossings(grid));
    for pass in 0..PASSES {
        if fewest == 0 {
            break;
        }
        let rows = grid.rows.len();
        if pass % 2 == 0 {
            (1..rows).for_each(|row| sort_row(grid, row, row - 1));
        } else {
            (1..rows).rev().for_each(|row| sort_row(grid, row - 1, row));
        }
        let now = crossings(grid);
        if now < fewest {
            (best, fewest) = (grid.rows.clone(), now);
        }
    }
    grid.rows = best;
}

/// Where each cell of a row stands in it, from 0 to 1.
fn positions(grid: &Grid, row: usize) -> Vec<f64> {
    let mut positions = vec![0.0; grid.cells.len()];
    let cells = &grid.rows[row];
    for (i, &cell) in cells.iter().enumerate() {
        positions[cell] = (i as f64 + 0.5) / cells.len() as f64;
    }
    positions
}

fn sort_row(grid: &mut Grid, row: usize, by: usize) {
    let (own, others) = (positions(grid, row), positions(grid, by));
    let neighbours = if by < row { &grid.above } else { &grid.below };
    let key = |cell: usize| match &neighbours[cell][..] {
        [] => own[cell],
        near => near.iter().map(|&other| others[other]).sum::<f64>() / near.len() as f64,
    };
    grid.rows[row].sort_by(|&a, &b| key(a).total_cmp(&key(b)));
}

/// How many pairs of links between neighbouring rows cross.
pub(super) fn crossings(grid: &Grid) -> usize {
    let mut place = vec![0; grid.cells.len()];
    for row in &grid.rows {
        row.iter().enumerate().for_each(|(i, &cell)| place[cell] = i);
    }
    let mut crossed = 0;
    for row in &grid.rows {
        // Ends of the links so far, in order: those beyond the end of the next one cross it.
        let mut ends: Vec<usize> = Vec::new();
        for &cell in row {
            let mut own: Vec<usize> = grid.below[cell].iter().map(|&lower| place[lower]).collect();
            own.sort_unstable();
            for &end in &own {
                crossed += ends.len() - ends.partition_point(|&e| e <= end);
            }
            for end in own {
                ends.insert(ends.partition_point(|&e| e <= end), end);
            }
        }
    }
    crossed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn crossings_are_counted_and_undone() {
        // 0 1 2 above 3 4 5, turned around.
        let mut grid = Grid::new(&[0, 0, 0, 1, 1, 1], &[(0, 5), (1, 4), (2, 3)]);
        assert_eq!(crossings(&grid), 3);
        untangle(&mut grid);
        assert_eq!(crossings(&grid), 0);
        assert_eq!(grid.rows, [vec![0, 1, 2], vec![5, 4, 3]]);
    }

    #[test]
    fn lines_from_one_box_do_not_cross_each_other() {
        let grid = Grid::new(&[0, 0, 1, 1], &[(0, 2), (0, 3), (1, 2), (1, 3)]);
        assert_eq!(crossings(&grid), 1);
    }
}
