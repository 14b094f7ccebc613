//! Results for people and for scripts.

use serde_json::Value;

use super::benchmark::Target;
use super::runner::Measured;
use crate::json;
use crate::style::{Style, grouped, short};

/// One JSON object on a line; keys as in `docs/benchmarks.md`.
pub(crate) fn json_line(m: &Measured) -> String {
    json::line(&fields(m)) + "\n"
}

/// The keys with their values.
pub(crate) fn fields(m: &Measured) -> [(&'static str, Value); 11] {
    let (baseline, baseline_figure, ratio) = match m.baseline {
        Some((name, figure, ratio)) => (name.into(), json::figure(figure), json::figure(ratio)),
        None => (Value::Null, Value::Null, Value::Null),
    };
    [
        ("work", m.name.into()),
        ("n", m.n.into()),
        ("figure", json::figure(m.figure)),
        ("unit", m.unit.name().into()),
        ("anchor", baseline),
        ("anchor_figure", baseline_figure),
        ("ratio", ratio),
        ("p10", json::figure(m.p10)),
        ("p90", json::figure(m.p90)),
        ("pairs", m.pairs.into()),
        // What is wrong has no figures at all.
        ("verified", true.into()),
    ]
}

/// The table's head.
pub(crate) fn head(style: Style) -> String {
    let columns = format!(
        "{:<25} {:>10} {:>12} {:>12} {:>7} {:>15} {:>9}  baseline",
        "benchmark", "n", "ours", "baseline", "ratio", "p10 to p90", "target"
    );
    style.bold(&columns) + "\n"
}

/// A row of the table.
pub(crate) fn row(m: &Measured, style: Style) -> String {
    let unit = m.unit.name();
    let ours = format!("{} {unit}", short(m.figure));
    let (name, theirs, ratio) = match m.baseline {
        Some((name, figure, ratio)) => (name, format!("{} {unit}", short(figure)), format!("{ratio:.2}")),
        None => ("", "-".to_owned(), "-".to_owned()),
    };
    let spread = match m.baseline {
        Some(_) => format!("{:.2} to {:.2}", m.p10, m.p90),
        None => format!("{} to {}", short(m.p10), short(m.p90)),
    };
    let target = match m.target {
        Target::AtMost(most) => format!("<= {most}"),
        Target::AtLeast(least) | Target::Ratio(least) => format!(">= {least}"),
    };
    let target = format!("{target:>9}");
    let target = if m.passes() { style.good(&target) } else { style.bad(&target) };
    format!(
        "{:<25} {:>10} {ours:>12} {theirs:>12} {ratio:>7} {spread:>15} {target}  {}\n",
        m.name,
        grouped(m.n as u64),
        style.dim(name)
    )
}

#[cfg(test)]
mod tests {
    use super::super::benchmark::Unit;
    use super::*;

    fn measured(baseline: Option<(&'static str, f64, f64)>) -> Measured {
        Measured {
            name: "add_16m",
            n: 16_777_216,
            unit: Unit::GigabytesPerSecond,
            target: Target::Ratio(0.37),
            figure: 28.771,
            baseline,
            p10: 0.5,
            p90: 0.6512345,
            pairs: 101,
        }
    }

    #[test]
    fn a_line_for_scripts_has_the_documented_keys_in_order() {
        assert_eq!(
            json_line(&measured(Some(("AVX2", 45.74, 0.63)))),
            "{\"work\":\"add_16m\",\"n\":16777216,\"figure\":28.77,\"unit\":\"GB/s\",\"anchor\":\"AVX2\",\
             \"anchor_figure\":45.74,\"ratio\":0.63,\"p10\":0.5,\"p90\":0.6512,\"pairs\":101,\"verified\":true}\n"
        );
        assert!(
            json_line(&measured(None)).contains("\"anchor\":null,\"anchor_figure\":null,\"ratio\":null,")
        );
    }

    #[test]
    fn a_row_for_people_has_the_bar_and_whether_it_is_met() {
        let row = row(&measured(Some(("AVX2", 45.74, 0.63))), Style::stdout());
        for part in
            ["add_16m", "16,777,216", "28.77 GB/s", "45.74 GB/s", "0.63", "0.50 to 0.65", ">= 0.37", "AVX2"]
        {
            assert!(row.contains(part), "no {part} in {row}");
        }
    }
}
