//! The report as a page: tables of what the data has, and the data itself at its end. Nothing is loaded from anywhere.

use std::fmt::Write;

use serde_json::Value;

use crate::crossover::page::{escaped, key};
use crate::style::{bytes, grouped, short};

const STYLE: &str = include_str!("../page.css");

/// The whole page.
pub(super) fn page(report: &Value, plots: &str) -> String {
    let mut sections = String::new();
    for (name, title, of) in SECTIONS {
        let part = &report[*name];
        if part.is_null() {
            continue;
        }
        let body = match part["error"].as_str() {
            Some(why) => {
                // What a driver need not have is no failure.
                let failed = list(&report["failures"]).iter().filter_map(Value::as_str);
                let class =
                    if failed.into_iter().any(|text| text.starts_with(name)) { "bad" } else { "note" };
                format!("<p class=\"{class}\">{}</p>\n", escaped(why))
            }
            None if *name == "crossover" => {
                format!("<p class=\"key\">{}</p>\n<div class=\"plots\">{plots}</div>\n", key())
            }
            None => of(part),
        };
        let seconds = short(part["seconds"].as_f64().unwrap_or_default());
        let _ = write!(
            sections,
            "<section><h2>{title}</h2><p class=\"note\">{seconds} s</p>\n{body}</section>\n"
        );
    }
    // No text can end the element early.
    let data = report.to_string().replace("</", "<\\/");
    let quick = if report["quick"] == true { ", the quick form" } else { "" };
    format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"color-scheme\" content=\"light dark\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"><title>Tidemill report</title>\n\
         <style>\n{STYLE}</style></head>\n<body><header><h1>{}</h1><p>Tidemill {}{quick}; {} on {}, {} threads</p></header>\n\
         <div class=\"tiles\">{}</div>\n{}{sections}\
         <script type=\"application/json\" id=\"report\">{data}</script>\n</body></html>\n",
        escaped(used(&report["device"])["name"].as_str().unwrap_or("No device")),
        text(&report["tidemill"]),
        text(&report["system"]["os"]),
        text(&report["system"]["architecture"]),
        text(&report["system"]["threads"]),
        tiles(report),
        failures(report),
    )
}

/// A part's name in the data, its heading, and what makes its body.
type Section = (&'static str, &'static str, fn(&Value) -> String);
const SECTIONS: &[Section] = &[
    ("device", "Device", device),
    ("cases", "Cases", cases),
    ("bench", "Benchmarks", bench),
    ("tune", "Variants", tune),
    ("crossover", "CPU or GPU, by size", |_| String::new()),
    ("pipelines", "The driver's statistics", pipelines),
];

/// A value as a text of the page.
fn text(value: &Value) -> String {
    match value {
        Value::String(text) => escaped(text),
        Value::Number(n) => match n.as_u64() {
            Some(n) => grouped(n),
            None => short(n.as_f64().unwrap_or_default()),
        },
        Value::Array(values) => values.iter().map(text).collect::<Vec<_>>().join(", "),
        Value::Null => "–".to_owned(),
        other => other.to_string(),
    }
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// The device that the report is about.
fn used(device: &Value) -> &Value {
    let is_used = |one: &&Value| one["index"] == device["used"];
    list(&device["devices"]).iter().find(is_used).unwrap_or(&Value::Null)
}

fn tiles(report: &Value) -> String {
    let tile = |figure: String, what: &str, class: &str| {
        format!("<div class=\"tile {class}\"><b>{figure}</b><span>{what}</span></div>")
    };
    let mut out = String::new();
    if let Some(failed) = report["cases"]["failed"].as_u64() {
        let class = if failed > 0 { "bad" } else { "" };
        out += &tile(text(&report["cases"]["cases"]), "cases", "");
        out += &tile(grouped(failed), "failed", class);
    }
    if let Some(gain) = list(&report["tune"]["trials"]).first().map(|_| best_gain(&report["tune"])) {
        out += &tile(format!("{gain:.2}x"), "most that tuning gains", "");
    }
    if let Some(regret) = report["crossover"]["regret_median"].as_f64() {
        out += &tile(format!("{regret:.2}"), "regret of Auto, median", "");
    }
    if let Some(count) = report["pipelines"]["pipelines"].as_array() {
        out += &tile(grouped(count.len() as u64), "pipelines compiled", "");
    }
    out
}

fn failures(report: &Value) -> String {
    let lines = list(&report["failures"]).iter().map(|why| format!("<p class=\"bad\">{}</p>\n", text(why)));
    lines.collect()
}

/// A table whose first `words` columns are texts.
fn table(words: usize, columns: &[&str], rows: impl Iterator<Item = (Vec<String>, &'static str)>) -> String {
    let class = |i: usize| if i < words { " class=\"word\"" } else { "" };
    let cells = |tag: &str, cells: &[String]| -> String {
        cells.iter().enumerate().map(|(i, cell)| format!("<{tag}{}>{cell}</{tag}>", class(i))).collect()
    };
    let columns: Vec<String> = columns.iter().map(|name| (*name).to_owned()).collect();
    let rows: String =
        rows.map(|(row, class)| format!("<tr class=\"{class}\">{}</tr>\n", cells("td", &row))).collect();
    format!(
        "<div class=\"scroll\"><table><thead><tr>{}</tr></thead><tbody>\n{rows}</tbody></table></div>\n",
        cells("th", &columns)
    )
}

fn device(part: &Value) -> String {
    let one = used(part);
    let mut rows: Vec<(String, String)> = ["name", "kind", "driver", "vulkan", "features"]
        .map(|name| (name.to_owned(), text(&one[name])))
        .to_vec();
    rows.push(("memory".to_owned(), bytes(one["memory_bytes"].as_u64().unwrap_or_default())));
    let limits = one["limits"].as_object().into_iter().flatten();
    rows.extend(limits.map(|(name, value)| (name.replace('_', " "), text(value))));
    let others = list(&part["devices"]).iter().filter(|other| other["index"] != part["used"]);
    rows.extend(others.map(|other| {
        let refused = list(&other["refused"]).iter().map(text).collect::<Vec<_>>().join(", ");
        (
            "another device".to_owned(),
            format!("{}, {} {refused}", text(&other["name"]), text(&other["driver"])),
        )
    }));
    if !part["problem"].is_null() {
        rows.push(("problem".to_owned(), text(&part["problem"])));
    }
    table(2, &["", ""], rows.into_iter().map(|(name, value)| (vec![name, value], "")))
}

fn cases(part: &Value) -> String {
    let failures = list(&part["failures"]).iter().map(|why| format!("<p class=\"bad\">{}</p>\n", text(why)));
    let rows = list(&part["operations"]).iter().map(|row| {
        let keys = ["op", "where", "cases", "failed", "worst", "allowed", "unit", "guard_bytes_touched"];
        let mut cells: Vec<String> = keys.iter().map(|key| text(&row[*key])).collect();
        for (place, key) in [(4, "worst"), (5, "allowed")] {
            let value = row[key].as_f64().unwrap_or(f64::INFINITY);
            cells[place] = match value {
                0.0 => "0".to_owned(),
                1e-3..1e3 => short(value),
                _ => format!("{value:.2e}"),
            };
        }
        (cells, if row["failed"] == 0 { "" } else { "bad" })
    });
    let columns = ["operation", "worst case", "cases", "failed", "worst", "allowed", "unit", "guard bytes"];
    failures.collect::<String>() + &folded("Every operation", &table(2, &columns, rows))
}

fn bench(part: &Value) -> String {
    let errors = part["errors"].as_object().into_iter().flatten();
    let errors = errors.map(|(name, why)| format!("<p class=\"bad\">{}: {}</p>\n", escaped(name), text(why)));
    let rows = list(&part["benchmarks"]).iter().map(|row| {
        let keys = ["work", "anchor", "n", "figure", "anchor_figure", "unit", "ratio", "p10", "p90", "pairs"];
        (keys.iter().map(|key| text(&row[*key])).collect(), "")
    });
    let columns = ["benchmark", "baseline", "n", "ours", "baseline", "unit", "ratio", "p10", "p90", "pairs"];
    errors.collect::<String>() + &table(2, &columns, rows)
}

/// How many times as long as the winner the default takes, of the class where that is most.
fn best_gain(part: &Value) -> f64 {
    let trials = list(&part["trials"]);
    let classes = trials.chunk_by(|a, b| (&a["family"], &a["class"]) == (&b["family"], &b["class"]));
    let gain = |class: &[Value]| -> Option<f64> {
        let ns = |key: &str| class.iter().find(|trial| trial[key] == true)?["ns"].as_f64();
        Some(ns("default")? / ns("winner")?)
    };
    classes.filter_map(gain).fold(1.0, f64::max)
}

fn tune(part: &Value) -> String {
    let rows = list(&part["trials"]).iter().map(|trial| {
        let time = match trial["ns"].as_f64() {
            Some(ns) => format!("{} µs", short(ns / 1e3)),
            None => text(&trial["outcome"]),
        };
        let is = |key: &str| trial[key] == true;
        let mark = match (is("winner"), is("default")) {
            (true, true) => "winner, as by default",
            (true, false) => "winner",
            (false, true) => "default",
            _ => "",
        };
        let keys = ["family", "class", "work", "variant"];
        let mut cells: Vec<String> = keys.iter().map(|key| text(&trial[*key])).collect();
        cells.extend([mark.to_owned(), time]);
        (cells, if trial["outcome"] == "wrong" { "bad" } else { "" })
    });
    let note = match part["out_of_time"] == true {
        true => "<p class=\"note\">Time ran out: not all variants were tried.</p>\n",
        false => "",
    };
    note.to_owned()
        + &folded("Every variant", &table(5, &["family", "class", "problem", "variant", "", "time"], rows))
}

/// Registers, spills and the like have another name in every driver: all statistics that some pipeline has are columns.
fn pipelines(part: &Value) -> String {
    let all = list(&part["pipelines"]);
    let mut names: Vec<&String> = Vec::new();
    for name in
        all.iter().flat_map(|one| one["statistics"].as_object().into_iter().flatten()).map(|(name, _)| name)
    {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let rows = all.iter().map(|one| {
        let constants = one["constants"].as_object().into_iter().flatten();
        let constants: Vec<String> = constants.map(|(id, bits)| format!("{id}={bits}")).collect();
        let star = if one["default"] == true { "*" } else { "" };
        let mut cells = vec![text(&one["kernel"]) + star, text(&one["variant"]), constants.join(" ")];
        cells.extend(names.iter().map(|name| text(&one["statistics"][name.as_str()])));
        (cells, "")
    });
    let titles: Vec<String> = names.iter().map(|name| escaped(name)).collect();
    let mut columns = vec!["kernel (* a default)", "variant", "constants"];
    columns.extend(titles.iter().map(String::as_str));
    folded("Every pipeline", &table(3, &columns, rows))
}

fn folded(title: &str, body: &str) -> String {
    format!("<details><summary>{title}</summary>\n{body}</details>\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn every_part_is_shown_and_no_text_leaves_its_place() {
        let report = json!({
            "tidemill": "0.2.0", "quick": true, "failures": ["cases: 1 of 2 <wrong>"],
            "system": { "os": "linux", "architecture": "x86_64", "threads": 2 },
            "device": { "used": 1, "seconds": 0.1, "devices": [
                { "index": 0, "name": "other", "driver": "d", "refused": ["old"] },
                { "index": 1, "name": "<card>", "driver": "d", "features": ["a", "b"], "memory_bytes": 1024, "limits": { "x_y": 5 } },
            ] },
            "cases": { "cases": 2, "failed": 1, "seconds": 1, "failures": ["</script>"],
                "operations": [{ "op": "add", "failed": 1, "worst": null, "allowed": 0.5 }] },
            "bench": { "benchmarks": [{ "work": "add_1k", "figure": 2.5 }], "errors": { "other": "is wrong" }, "seconds": 2 },
            "tune": { "seconds": 3, "trials": [
                { "family": "softmax", "class": "small", "variant": "a", "ns": 300, "default": true },
                { "family": "softmax", "class": "small", "variant": "b", "ns": 200, "winner": true },
            ] },
            "crossover": { "cells": [], "regret_median": 1.0, "seconds": 4 },
            "pipelines": { "error": "the driver tells nothing", "seconds": 0 },
        });
        let page = page(&report, "<figure></figure>");
        for part in [
            "&lt;card>",
            "&lt;wrong>",
            "1.50x",
            "the quick form",
            "another device",
            "x y",
            "1 KiB",
            "<figure>",
            "inf",
            "the driver tells nothing",
            "add_1k",
            "other: is wrong",
        ] {
            assert!(page.contains(part), "{part}\n{page}");
        }
        assert_eq!(page.matches("<section>").count(), SECTIONS.len());
        // The element of the data is the only one, and its text the report.
        assert_eq!(page.matches("</script>").count(), 1);
        let data = page.split_once("id=\"report\">").and_then(|(_, rest)| rest.split_once("</script>"));
        let data: Value = serde_json::from_str(data.unwrap().0).unwrap();
        assert_eq!(data, report);
    }
}
