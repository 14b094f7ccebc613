//! Results for people and for scripts.

use serde_json::Value;

use super::runner::Measured;
use super::work::Bar;
use crate::json;
use crate::style::{Style, grouped, short};

/// One JSON object on a line; keys as in `docs/benchmarks.md`.
pub(crate) fn json_line(m: &Measured) -> String {
    let (anchor, anchor_figure, ratio) = match m.anchor {
        Some((name, figure, ratio)) => (name.into(), json::figure(figure), json::figure(ratio)),
        None => (Value::Null, Value::Null, Value::Null),
    };
    let fields = [
        ("work", m.name.into()),
        ("n", m.n.into()),
        ("figure", json::figure(m.figure)),
        ("unit", m.unit.name().into()),
        ("anchor", anchor),
        ("anchor_figure", anchor_figure),
        ("ratio", ratio),
        ("p10", json::figure(m.p10)),
        ("p90", json::figure(m.p90)),
        ("pairs", m.pairs.into()),
        // What is wrong has no figures at all.
        ("verified", true.into()),
    ];
    json::line(&fields) + "\n"
}

/// The table's head.
pub(crate) fn head(style: Style) -> String {
    let columns = format!(
        "{:<25} {:>10} {:>12} {:>12} {:>7} {:>15} {:>9}  anchor",
        "work", "n", "ours", "anchor", "ratio", "p10 to p90", "bar"
    );
    style.bold(&columns) + "\n"
}

/// A row of the table.
pub(crate) fn row(m: &Measured, style: Style) -> String {
    let unit = m.unit.name();
    let ours = format!("{} {unit}", short(m.figure));
    let (name, theirs, ratio) = match m.anchor {
        Some((name, figure, ratio)) => (name, format!("{} {unit}", short(figure)), format!("{ratio:.2}")),
        None => ("", "-".to_owned(), "-".to_owned()),
    };
    let spread = match m.anchor {
        Some(_) => format!("{:.2} to {:.2}", m.p10, m.p90),
        None => format!("{} to {}", short(m.p10), short(m.p90)),
    };
    let bar = match m.bar {
        Bar::AtMost(most) => format!("<= {most}"),
        Bar::AtLeast(least) | Bar::Ratio(least) => format!(">= {least}"),
    };
    let bar = format!("{bar:>9}");
    let bar = if m.passes() { style.good(&bar) } else { style.bad(&bar) };
    format!(
        "{:<25} {:>10} {ours:>12} {theirs:>12} {ratio:>7} {spread:>15} {bar}  {}\n",
        m.name,
        grouped(m.n as u64),
        style.dim(name)
    )
}
