//! Tables for the terminal.

use std::collections::BTreeMap;
use std::fmt;

use crate::runtime::measure::run::Run;
use crate::runtime::profile::Profiling;
use crate::runtime::profile::guard::Figure;
use crate::runtime::profile::row::{HostTime, Profile, Row};

/// Columns as wide as their widest cell: the first two to the left, the rest to the right.
#[derive(Debug, Default)]
struct Table {
    rows: Vec<Vec<String>>,
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let columns = self.rows.first().map_or(0, Vec::len);
        let width = |column: usize| {
            self.rows
                .iter()
                .filter_map(|row| row.get(column))
                .map(|cell| cell.chars().count())
                .max()
                .unwrap_or(0)
        };
        let widths: Vec<usize> = (0..columns).map(width).collect();
        for row in &self.rows {
            let mut line = String::new();
            for (i, cell) in row.iter().enumerate() {
                // A cell too many is a remark, and free of the columns.
                let width = widths.get(i).copied().unwrap_or(0);
                line += &if i < 2 { format!("  {cell:<width$}") } else { format!("  {cell:>width$}") };
            }
            writeln!(f, "{}", line.trim_end())?;
        }
        Ok(())
    }
}

const HEADINGS: [&str; 11] =
    ["row", "kernel", "groups", "n", "µs each", "µs", "share", "MB", "GB/s", "GFLOP/s", "roofline"];

fn us(ns: u64) -> String {
    format!("{:.1}", ns as f64 / 1e3)
}

fn groups(groups: [u32; 3]) -> String {
    match groups {
        [0, 0, 0] => String::new(),
        [x, 1, 1] => x.to_string(),
        [x, y, 1] => format!("{x}x{y}"),
        [x, y, z] => format!("{x}x{y}x{z}"),
    }
}

/// Rows that are the same work, together.
struct Group<'a> {
    first: &'a Row,
    count: u64,
    total_ns: u64,
    /// The one of median duration, whose figure stands for all.
    rows: Vec<&'a Row>,
}

fn grouped<'a>(rows: impl Iterator<Item = &'a Row>) -> Vec<Group<'a>> {
    let mut groups: Vec<Group<'a>> = Vec::new();
    let mut known: BTreeMap<(&str, &str, [u32; 3]), usize> = BTreeMap::new();
    for row in rows {
        let at = *known.entry((&row.label, &row.kernel, row.groups)).or_insert_with(|| {
            groups.push(Group { first: row, count: 0, total_ns: 0, rows: Vec::new() });
            groups.len() - 1
        });
        groups[at].count += 1;
        groups[at].total_ns += row.duration_ns();
        groups[at].rows.push(row);
    }
    for group in &mut groups {
        group.rows.sort_by_key(|row| row.duration_ns());
    }
    groups
}

impl Group<'_> {
    fn median(&self) -> &Row {
        self.rows.get(self.rows.len() / 2).copied().unwrap_or(self.first)
    }

    fn cells(&self, busy_ns: u64) -> Vec<String> {
        let row = self.median();
        let overlaps = self.rows.iter().any(|row| row.overlaps);
        let share = 100.0 * self.total_ns as f64 / busy_ns.max(1) as f64;
        let number = |x: Option<f64>, unit: &str| x.map_or(String::new(), |x| format!("{x:.2}{unit}"));
        let mut cells = vec![
            format!("{}{}", if overlaps { "~ " } else { "" }, row.label),
            row.kernel.clone(),
            groups(row.groups),
            self.count.to_string(),
            us(row.duration_ns()),
            us(self.total_ns),
            format!("{share:.1} %"),
            number(row.bytes.map(|b| b as f64 / 1e6), ""),
        ];
        // One impossible figure is one too many: the whole group shows it.
        let impossible = self.rows.iter().find_map(|row| match &row.figure {
            Figure::Impossible(error) => Some(error),
            Figure::None | Figure::Measured(_) => None,
        });
        if let Some(error) = impossible {
            cells.extend([
                String::new(),
                String::new(),
                String::new(),
                format!("measurement error: {error}"),
            ]);
        } else if let Some(figures) = row.figure.throughput() {
            cells.push(number(figures.gbytes_per_s, ""));
            cells.push(number(figures.gflops, ""));
            cells.push(figures.roofline.map_or(String::new(), |share| format!("{:.0} %", 100.0 * share)));
        }
        cells
    }
}

fn rows_table<'a>(rows: impl Iterator<Item = &'a Row> + Clone, busy_ns: u64, mode: Profiling) -> String {
    let columns = if mode == Profiling::Isolated { HEADINGS.len() } else { HEADINGS.len() - 3 };
    let mut table = Table { rows: vec![HEADINGS[..columns].iter().map(ToString::to_string).collect()] };
    table.rows.extend(grouped(rows.clone()).iter().map(|group| group.cells(busy_ns)));
    let mut text = table.to_string();
    if rows.clone().any(|row| row.overlaps) {
        text += "  ~ may have run side by side with others: the time is not its own, and shares may add up to more\n";
    }
    text
}

impl fmt::Display for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "submission {}, {}: {} rows, {} barriers, busy {} µs of {} µs",
            self.submission,
            self.mode,
            self.rows.len(),
            self.barriers,
            us(self.busy_ns()),
            us(self.span_ns())
        )?;
        f.write_str(&rows_table(self.rows.iter(), self.busy_ns(), self.mode))?;
        writeln!(f, "  host: {}", self.host)
    }
}

impl fmt::Display for HostTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "recording {} µs, encoding {} µs", us(self.record_ns), us(self.encode_ns))?;
        if self.pipelines_made > 0 {
            write!(f, " ({} new pipelines {} µs)", self.pipelines_made, us(self.pipelines_ns))?;
        }
        write!(f, ", submitting {} µs, waiting {} µs", us(self.submit_ns), us(self.wait_ns))
    }
}

impl fmt::Display for Run {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}, {} on {}", self.name, self.mode, self.device)?;
        write!(f, "  wall   {} µs to completion", us(self.wall_ns))?;
        let mut busy = 0;
        match &self.gpu {
            None => writeln!(f)?,
            Some(Err(error)) => writeln!(f, "; measurement error: {error}")?,
            Some(Ok(gpu)) => {
                busy = gpu.busy_ns;
                write!(f, "; GPU busy {} µs", us(gpu.busy_ns))?;
                if let Some(idle) = gpu.idle_ns {
                    write!(f, ", idle {} µs", us(idle))?;
                }
                if let Some(utilisation) = gpu.utilisation {
                    write!(f, ", utilisation {:.1} %", 100.0 * utilisation)?;
                }
                writeln!(f)?;
            }
        }
        writeln!(f, "  clock  {}", self.clock)?;
        writeln!(f, "  host   {}", self.host)?;
        writeln!(
            f,
            "  work   {} submissions, {} dispatches, {} barriers; {} bytes up, {} down; pool {} hits, {} misses; {} pipelines made",
            self.submissions,
            self.dispatches,
            self.barriers,
            self.bytes_up,
            self.bytes_down,
            self.pool_hits,
            self.pool_misses,
            self.pipelines_made
        )?;
        if let Some(peaks) = &self.peaks {
            writeln!(
                f,
                "  peaks  {:.0} GFLOP/s; {:.0} GB/s from caches, {:.0} from memory; {:.1} µs per empty dispatch",
                peaks.gflops,
                peaks.gbytes_per_s(0),
                peaks.memory_gbytes_per_s(),
                peaks.dispatch_floor_ns / 1e3
            )?;
        }
        f.write_str(&rows_table(self.rows(), busy, self.mode))
    }
}
