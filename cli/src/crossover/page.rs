//! The table as a page: a plot for each operation, both axes logarithmic. Nothing is loaded from anywhere.

use std::fmt::Write;

use tidemill::hybrid::Side;

use super::table::{Cell, regret};
use crate::style::{grouped, short};

const STYLE: &str = include_str!("../page.css");
/// A plot's size, and its margins: left, right, top, bottom.
const SIZE: [f64; 2] = [360.0, 250.0];
const MARGIN: [f64; 4] = [44.0, 10.0, 10.0, 26.0];

/// What is drawn, and in which class of the style.
type Line = (&'static str, &'static str, fn(&Cell) -> f64);
const LINES: [Line; 4] = [
    ("cpu", "CPU", |cell| cell.cpu_us),
    ("gpu", "GPU, from slices to a slice", |cell| cell.gpu_us),
    ("resident", "GPU, operands there", |cell| cell.resident_us),
    ("auto", "Auto", |cell| cell.auto_us),
];

/// A plot for each operation.
pub(crate) fn plots(cells: &[Cell]) -> String {
    cells.chunk_by(|a, b| a.op == b.op).map(plot).collect()
}

/// Which line is what.
pub(crate) fn key() -> String {
    LINES.iter().map(|(class, name, _)| format!("<span><i class=\"{class}\"></i>{name}</span>")).collect()
}

/// The whole page.
pub(super) fn page(device: &str, cells: &[Cell]) -> String {
    let plots = plots(cells);
    let (median, worst) = regret(cells);
    let on_device = cells.iter().filter(|cell| cell.chose == Side::Gpu).count();
    format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"color-scheme\" content=\"light dark\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"><title>Crossover</title>\n\
         <style>\n{STYLE}</style></head>\n<body><header><h1>CPU or GPU, by size</h1><p>{}. Medians of rounds in which the sides \
         took turns; {} cells, {on_device} on the device. Auto took {median:.2} times as long as the better side in the median, \
         {worst:.2} at worst.</p>\n<p class=\"key\">{}</p></header>\n<main>\n{plots}</main></body></html>\n",
        escaped(device),
        cells.len(),
        key(),
    )
}

pub(crate) fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;")
}

/// Powers of ten around some values.
fn decades(values: impl Iterator<Item = f64> + Clone) -> (i32, i32) {
    let low = values.clone().fold(f64::INFINITY, f64::min).max(1e-3);
    let high = values.fold(low, f64::max);
    let (low, high) = (low.log10().floor() as i32, high.log10().ceil() as i32);
    (low, high.max(low + 1))
}

fn plot(cells: &[Cell]) -> String {
    let [left, right, top, bottom] = MARGIN;
    let times = cells.iter().flat_map(|cell| LINES.iter().map(move |(_, _, time)| time(cell)));
    let (low, high) = decades(times);
    let bits = |n: usize| (n as f64).log2();
    let (first, last) = (bits(cells[0].n), bits(cells[cells.len() - 1].n));
    let x = |n: usize| left + (bits(n) - first) / (last - first).max(1.0) * (SIZE[0] - left - right);
    let y = |us: f64| {
        let share = (us.max(1e-3).log10() - f64::from(low)) / f64::from(high - low);
        SIZE[1] - bottom - share * (SIZE[1] - top - bottom)
    };
    let mut svg = String::new();
    for decade in low..=high {
        let (at, label) = (y(10f64.powi(decade)), time_label(decade));
        let _ = write!(
            svg,
            "<line class=\"grid\" x1=\"{left}\" x2=\"{:.1}\" y1=\"{at:.1}\" y2=\"{at:.1}\"/>\
             <text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{label}</text>",
            SIZE[0] - right,
            left - 5.0,
            at + 4.0
        );
    }
    for cell in cells.iter().step_by(2) {
        let (at, under) = (x(cell.n), SIZE[1] - 8.0);
        let _ = write!(
            svg,
            "<text x=\"{at:.1}\" y=\"{under}\" text-anchor=\"middle\">{}</text>",
            size_label(cell.n)
        );
    }
    for (class, _, time) in LINES.iter().filter(|line| line.0 != "auto") {
        let points: Vec<String> =
            cells.iter().map(|cell| format!("{:.1},{:.1}", x(cell.n), y(time(cell)))).collect();
        let _ = write!(svg, "<polyline class=\"{class}\" points=\"{}\"/>", points.join(" "));
    }
    for cell in cells {
        let side = if cell.chose == Side::Gpu { "GPU" } else { "CPU" };
        let _ = write!(
            svg,
            "<circle class=\"auto\" cx=\"{:.1}\" cy=\"{:.1}\" r=\"4\"><title>{} elements: CPU {} us, GPU {} us, Auto {} us on the \
             {side}, regret {:.2}</title></circle>",
            x(cell.n),
            y(cell.auto_us),
            grouped(cell.n as u64),
            short(cell.cpu_us),
            short(cell.gpu_us),
            short(cell.auto_us),
            cell.regret
        );
    }
    format!(
        "<figure><figcaption>{}</figcaption><svg viewBox=\"0 0 {} {}\" role=\"img\">{svg}</svg></figure>\n",
        cells[0].op.name(),
        SIZE[0],
        SIZE[1]
    )
}

/// A power of ten of microseconds.
fn time_label(decade: i32) -> String {
    match decade {
        ..0 => format!("{} ns", 10i64.pow((decade + 3).max(0) as u32)),
        0..3 => format!("{} us", 10i64.pow(decade as u32)),
        3..6 => format!("{} ms", 10i64.pow(decade as u32 - 3)),
        _ => format!("{} s", 10i64.pow(decade as u32 - 6)),
    }
}

fn size_label(n: usize) -> String {
    if n >= 1 << 20 { format!("{}M", n >> 20) } else { format!("{}K", n >> 10) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidemill::hybrid::Op;

    #[test]
    fn every_cell_is_drawn_inside_its_plot() {
        let cell = |op, bits: u32, us: f64| Cell {
            op,
            n: 1 << bits,
            cpu_us: us,
            gpu_us: 30.0 + us / 10.0,
            resident_us: 20.0 + us / 20.0,
            auto_us: us.min(30.0 + us / 10.0),
            chose: if us < 33.0 { Side::Cpu } else { Side::Gpu },
            regret: 1.0,
        };
        let cells = [cell(Op::Add, 10, 0.4), cell(Op::Add, 24, 9000.0), cell(Op::Gelu, 10, 2.0)];
        let page = page("a <device>", &cells);
        assert!(page.contains("a &lt;device>") && page.contains("3 cells, 1 on the device"));
        assert_eq!((page.matches("<figure>").count(), page.matches("<circle").count()), (2, 3));
        for (attribute, most) in [(" cx=\"", SIZE[0]), (" cy=\"", SIZE[1]), (" points=\"", SIZE[0])] {
            let values = page.split(attribute).skip(1).filter_map(|rest| rest.split('"').next());
            let numbers: Vec<f64> =
                values.flat_map(|value| value.split([' ', ','])).map(|n| n.parse().unwrap()).collect();
            assert!(!numbers.is_empty() && numbers.iter().all(|n| (0.0..=most).contains(n)), "{numbers:?}");
        }
    }
}
