//! The figures as a text: a program a line, in columns of fixed width, so that a change touches the lines it is about.

use std::fmt::{self, Write};

use tidemill::stats::Stats;

/// What a program made an accelerator do.
pub(super) struct Figures([u64; COLUMNS.len()]);

/// The columns and their widths.
const COLUMNS: [(&str, usize); 13] = [
    ("submits", 7),
    ("dispatches", 10),
    ("barriers", 8),
    ("moved", 11),
    ("up", 10),
    ("down", 10),
    ("temps", 6),
    ("temp_bytes", 10),
    ("pool_peak", 10),
    ("pipelines", 9),
    ("encoded", 8),
    ("plan_copies", 11),
    ("plan_encoded", 12),
];

/// The width of a program's name.
const NAME: usize = 26;

/// What the columns are.
const INTRODUCTION: &str = "\
# What a fixed list of programs makes the device do, on lavapipe 22.3.6 with 2 threads. Made by `./dev counters`, compared by
# `./dev counters --check`; CONTRIBUTING.md says what for. Columns: submissions; dispatches, copies and fills; barriers between
# them; bytes that they move in the device's memory at the least; bytes from the host and to it; blocks of temporaries, and their
# bytes; the most bytes of the pool in use at once; pipelines made; command buffers encoded; encoded copies of plans, and the
# command buffers encoded for those.
";

impl From<Stats> for Figures {
    fn from(stats: Stats) -> Figures {
        Figures([
            stats.submissions,
            stats.dispatches,
            stats.barriers,
            stats.bytes_moved,
            stats.bytes_up,
            stats.bytes_down,
            stats.temporaries,
            stats.temporary_bytes,
            stats.pool.peak_bytes,
            stats.pipelines.made,
            stats.commands.encoded,
            stats.commands.plan_copies,
            stats.commands.plan_encoded,
        ])
    }
}

/// A figure of the whole crate.
pub(super) struct Bound {
    pub(super) what: &'static str,
    pub(super) figure: u64,
    /// What it may be.
    pub(super) most: Option<u64>,
}

impl Bound {
    /// What to say if it is too large.
    pub(super) fn exceeded(&self) -> Option<String> {
        let most = self.most.filter(|most| self.figure > *most)?;
        Some(format!("{}: {}, the maximum is {most}", self.what, self.figure))
    }
}

/// All figures.
#[derive(Default)]
pub(super) struct Table {
    pub(super) rows: Vec<(&'static str, Figures)>,
    pub(super) whole: Vec<Bound>,
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(INTRODUCTION)?;
        writeln!(f, "\n{}", head())?;
        for (name, Figures(figures)) in &self.rows {
            write!(f, "{name:<NAME$}")?;
            for (figure, (_, width)) in figures.iter().zip(COLUMNS) {
                write!(f, " {figure:>width$}")?;
            }
            writeln!(f)?;
        }
        if !self.whole.is_empty() {
            writeln!(f)?;
        }
        for Bound { what, figure, most } in &self.whole {
            write!(f, "{what:<NAME$} {figure:>10}")?;
            match most {
                Some(most) => writeln!(f, "  at most {most}")?,
                None => writeln!(f)?,
            }
        }
        Ok(())
    }
}

fn head() -> String {
    let columns = COLUMNS.iter().map(|(name, width)| format!(" {name:>width$}"));
    format!("{:<NAME$}{}", "program", columns.collect::<String>())
}

/// A line's name: what stands in front of its figures.
fn name(line: &str) -> &str {
    line.get(..NAME).unwrap_or(line).trim_end()
}

/// What differs between two texts, line by line: as it stands in the file, and as it is. Empty if nothing does.
pub(super) fn differences(kept: &str, made: &str) -> String {
    let mut out = String::new();
    let of = |text: &str, wanted: &str| text.lines().find(|line| name(line) == wanted).map(str::to_owned);
    let mut say = |sign: char, line: &str| {
        if out.is_empty() {
            let _ = writeln!(out, "  {}", head());
        }
        let _ = writeln!(out, "{sign} {line}");
    };
    for line in made.lines() {
        match of(kept, name(line)) {
            Some(known) if known == line => {}
            known => {
                known.iter().for_each(|known| say('-', known));
                say('+', line);
            }
        }
    }
    for line in kept.lines().filter(|line| of(made, name(line)).is_none()) {
        say('-', line);
    }
    if out.is_empty() && kept != made {
        out.push_str("the lines are the same, in another order\n");
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(rows: &[(&'static str, u64)]) -> String {
        let row = |&(name, figure): &(&'static str, u64)| {
            (name, Figures(std::array::from_fn(|column| if column == 1 { figure } else { 7 })))
        };
        let whole = vec![Bound { what: "modules in spirv/", figure: 3, most: Some(200) }];
        Table { rows: rows.iter().map(row).collect(), whole }.to_string()
    }

    #[test]
    fn only_lines_that_changed_are_told() {
        let kept = table(&[("one", 1), ("two", 2), ("gone", 3)]);
        assert_eq!(differences(&kept, &kept), "");
        let told = differences(&kept, &table(&[("one", 1), ("two", 4), ("new", 5)]));
        let told: Vec<(&str, Option<&str>)> =
            told.lines().map(|line| (line.split_at(2).0, line.split_whitespace().nth(1))).collect();
        let expected = [
            ("  ", Some("submits")),
            ("- ", Some("two")),
            ("+ ", Some("two")),
            ("+ ", Some("new")),
            ("- ", Some("gone")),
        ];
        assert_eq!(told, expected);
    }

    #[test]
    fn another_order_is_a_difference() {
        let told = differences(&table(&[("one", 1), ("two", 2)]), &table(&[("two", 2), ("one", 1)]));
        assert!(told.contains("another order"), "{told}");
    }

    #[test]
    fn a_bound_that_is_exceeded_names_both_numbers() {
        let bound = |figure| Bound { what: "modules", figure, most: Some(200) };
        assert_eq!(bound(200).exceeded(), None);
        assert_eq!(bound(201).exceeded().as_deref(), Some("modules: 201, the maximum is 200"));
    }
}
