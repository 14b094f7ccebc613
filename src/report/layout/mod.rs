//! Where the boxes and lines of a picture of a graph go: rows from top to bottom, few crossings, nothing on top of
//! anything else. Pure, and the same for the same graph.

mod order;
mod place;
mod rows;

/// The most boxes in a row: what has more goes into several.
const MOST_IN_A_ROW: usize = 5;
/// Between boxes, between rows, and what a line that passes a row keeps from its neighbours.
const BOX_GAP: f64 = 18.0;
const ROW_GAP: f64 = 46.0;
const LINE_GAP: f64 = 14.0;
/// Between the ends of lines at one box.
const PORT_GAP: f64 = 22.0;

/// A box to be placed.
#[derive(Clone, Debug)]
pub(super) struct Item {
    pub(super) width: f64,
    pub(super) height: f64,
    /// It stands below everything of lower stages. Stages don't fall from one item to the next. Without one, it stands
    /// right above what it leads to.
    pub(super) stage: Option<usize>,
}

/// Where a box went: its left upper corner.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Position {
    pub(super) x: f64,
    pub(super) y: f64,
    pub(super) row: usize,
}

/// A piece of a line: straight down from `from` to `bend`, a curve to `to`, which lies in the row below. Of pieces that
/// part, only the first goes down; the others begin at the bend.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Piece {
    pub(super) from: (f64, f64),
    pub(super) bend: f64,
    pub(super) to: (f64, f64),
    /// The item it comes from, however far up.
    pub(super) source: usize,
    /// The item it ends at; `None` where it goes on below.
    pub(super) target: Option<usize>,
}

/// A picture's geometry.
#[derive(Clone, Debug, Default)]
pub(super) struct Layout {
    pub(super) width: f64,
    pub(super) height: f64,
    /// In the order of the items.
    pub(super) positions: Vec<Position>,
    pub(super) pieces: Vec<Piece>,
    /// The heights between stages.
    pub(super) stage_lines: Vec<f64>,
}

/// What stands in a row: a box, or a line on its way to rows further down. All lines of one box share one way.
#[derive(Clone, Copy, Debug)]
enum Cell {
    Box(usize),
    Line { source: usize, row: usize },
}

/// Cells in their rows, and the links between neighbouring rows.
#[derive(Debug)]
struct Grid {
    cells: Vec<Cell>,
    /// The cells of each row, from left to right.
    rows: Vec<Vec<usize>>,
    above: Vec<Vec<usize>>,
    below: Vec<Vec<usize>>,
}

impl Grid {
    fn new(row_of: &[usize], edges: &[(usize, usize)]) -> Grid {
        let boxes = row_of.len();
        let mut last_row = row_of.to_vec();
        for &(from, to) in edges {
            last_row[from] = last_row[from].max(row_of[to] - 1);
        }
        let mut cells: Vec<Cell> = (0..boxes).map(Cell::Box).collect();
        let mut rows = vec![Vec::new(); row_of.iter().max().map_or(0, |last| last + 1)];
        let mut links = Vec::new();
        // The way of a box's lines: itself, then a cell in each row that they pass.
        let mut ways: Vec<Vec<usize>> = (0..boxes).map(|i| vec![i]).collect();
        for source in 0..boxes {
            rows[row_of[source]].push(source);
        }
        for source in 0..boxes {
            let mut upper = source;
            let passed = rows.iter_mut().enumerate().take(last_row[source] + 1).skip(row_of[source] + 1);
            for (row, others) in passed {
                let cell = cells.len();
                cells.push(Cell::Line { source, row });
                links.push((upper, cell));
                ways[source].push(cell);
                // In the middle, so that those who read one value in several rows stand around its line.
                others.insert(others.len() / 2, cell);
                upper = cell;
            }
        }
        links.extend(edges.iter().map(|&(from, to)| (ways[from][row_of[to] - 1 - row_of[from]], to)));
        let (mut above, mut below) = (vec![Vec::new(); cells.len()], vec![Vec::new(); cells.len()]);
        for (upper, lower) in links {
            above[lower].push(upper);
            below[upper].push(lower);
        }
        Grid { cells, rows, above, below }
    }

    fn is_line(&self, cell: usize) -> bool {
        matches!(self.cells[cell], Cell::Line { .. })
    }
}

/// Places boxes and the lines between them. Each edge leads from a lower number to a higher one, and none stands twice.
pub(super) fn arrange(items: &[Item], edges: &[(usize, usize)]) -> Layout {
    if items.is_empty() {
        return Layout::default();
    }
    let row_of = rows::assign(items, edges, MOST_IN_A_ROW);
    let mut grid = Grid::new(&row_of, edges);
    order::untangle(&mut grid);
    let width_of = |cell: usize| match grid.cells[cell] {
        Cell::Box(item) => items[item].width,
        Cell::Line { .. } => 0.0,
    };
    // Whole numbers: sharp lines, and the same text on every machine.
    let is_step = |cell: usize| items.get(cell).is_some_and(|item| item.stage.is_some());
    let centres = place::centres(&grid, width_of, is_step);
    let mut centres: Vec<f64> = centres.into_iter().map(f64::round).collect();
    let edge = |side: f64| move |(cell, centre): (usize, &f64)| centre + side * width_of(cell) / 2.0;
    let left = centres.iter().enumerate().map(edge(-1.0)).fold(f64::INFINITY, f64::min).floor();
    centres.iter_mut().for_each(|centre| *centre -= left);
    let right = centres.iter().enumerate().map(edge(1.0)).fold(0.0, f64::max);

    let heights: Vec<f64> = (0..grid.rows.len())
        .map(|row| {
            (0..items.len()).filter(|&i| row_of[i] == row).map(|i| items[i].height).fold(0.0, f64::max)
        })
        .collect();
    let mut tops = vec![0.0; heights.len()];
    for row in 1..heights.len() {
        tops[row] = tops[row - 1] + heights[row - 1] + ROW_GAP;
    }
    let place =
        |i: usize| Position { x: centres[i] - items[i].width / 2.0, y: tops[row_of[i]], row: row_of[i] };
    let mut first_rows: Vec<(usize, usize)> =
        items.iter().zip(&row_of).filter_map(|(item, &row)| Some((item.stage?, row))).collect();
    first_rows.sort_unstable();
    first_rows.dedup_by_key(|(stage, _)| *stage);
    Layout {
        width: right.ceil(),
        height: tops.last().zip(heights.last()).map_or(0.0, |(top, height)| top + height),
        positions: (0..items.len()).map(place).collect(),
        pieces: pieces(&grid, items, &row_of, &centres, &tops, &heights),
        stage_lines: first_rows.iter().skip(1).map(|&(_, row)| tops[row] - ROW_GAP / 2.0).collect(),
    }
}

fn pieces(
    grid: &Grid,
    items: &[Item],
    row_of: &[usize],
    centres: &[f64],
    tops: &[f64],
    heights: &[f64],
) -> Vec<Piece> {
    let mut pieces = Vec::new();
    for (lower, uppers) in grid.above.iter().enumerate() {
        // Where several lines end at one box, they end side by side, in the order in which they come; around the middle
        // one, or around one that comes straight from above.
        let mut uppers = uppers.clone();
        uppers.sort_by(|a, b| centres[*a].total_cmp(&centres[*b]).then(a.cmp(b)));
        let last = uppers.len().saturating_sub(1) as f64;
        let straight = uppers.iter().position(|&upper| (centres[upper] - centres[lower]).abs() < PORT_GAP);
        let middle = straight.map_or(last / 2.0, |i| i as f64);
        for (i, &upper) in uppers.iter().enumerate() {
            let (row, target, shift) = match grid.cells[lower] {
                Cell::Box(item) => {
                    let step = (0.42 * items[item].width / middle.max(last - middle).max(1.0)).min(PORT_GAP);
                    (row_of[item], Some(item), step * (i as f64 - middle))
                }
                Cell::Line { row, .. } => (row, None, 0.0),
            };
            let (source, from) = match grid.cells[upper] {
                Cell::Box(item) => (item, tops[row - 1] + items[item].height),
                Cell::Line { source, row } => (source, tops[row]),
            };
            let bend = tops[row - 1] + heights[row - 1];
            let from = if grid.below[upper].first() == Some(&lower) { from } else { bend };
            let to = ((centres[lower] + shift).round(), tops[row]);
            pieces.push(Piece { from: (centres[upper], from), bend, to, source, target });
        }
    }
    pieces
}

#[cfg(test)]
mod tests;
