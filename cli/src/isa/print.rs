//! How kernels that were judged are shown: as JSON, each pipeline on a line, or kernels and GPUs in one table.

use serde_json::Value;
use tidemill::device::DeviceInfo;

use super::Row;
use super::statistics::Compiler;
use crate::json::{figure, line};
use crate::style::Style;

/// An object a line.
pub(super) fn json(device: &DeviceInfo, compiler: Compiler, rows: &[Row<'_>]) -> String {
    let mut out = String::new();
    for row in rows {
        let bits = |bits: Option<u32>| bits.map_or(Value::Null, Value::from);
        let fields = [
            ("vendor", compiler.vendor().into()),
            ("kernel", row.kernel.kernel.as_str().into()),
            ("variant", row.kernel.variant.into()),
            ("default", row.kernel.default.into()),
            ("device", device.name.as_str().into()),
            ("driver", device.driver.as_str().into()),
            ("registers", row.statistics.registers.into()),
            ("spills", row.statistics.spills.into()),
            ("occupancy", row.statistics.occupancy.into()),
            ("instructions_per_mac", row.instructions_per_mac().map_or(Value::Null, figure)),
            ("fma_share", figure(row.main.fma_share())),
            ("global_load_bits", bits(row.main.global_load_bits)),
            ("lds_load_bits", bits(row.main.lds_load_bits)),
            ("family", row.kernel.family.into()),
            ("constants", row.constants().into()),
            ("scratch", row.statistics.scratch.into()),
            ("lds", row.statistics.shared.into()),
            // AMD's names of what `registers` and `occupancy` are on every GPU.
            ("vgprs", row.statistics.registers.into()),
            ("waves", row.statistics.occupancy.into()),
        ];
        out += &line(&fields);
        out.push('\n');
    }
    out
}

/// Every pipeline of one GPU.
pub(super) fn pipelines(device: &DeviceInfo, rows: &[Row<'_>], assembly: bool) -> String {
    let style = Style::stdout();
    let mut out = format!("{} {}\n", style.bold(&device.name), style.dim(&device.driver));
    let head = format!(
        "{:<32} {:<16} {:>4} {:>6} {:>6} {:>4} {:>6} {:>6} {:>7} {:>7}  constants",
        "kernel (* picked here)",
        "variant",
        "regs",
        "spills",
        "shared",
        "occ.",
        "in/MAC",
        "FMA",
        "global",
        "shared"
    );
    out += &format!("{}\n", style.dim(&head));
    for row in rows {
        let bits = |bits: Option<u32>| bits.map_or("-".to_owned(), |bits| format!("{bits} bit"));
        let star = if row.kernel.default { "*" } else { "" };
        let spills = format!("{:>6}", row.statistics.spills);
        out += &format!(
            "{:<32} {:<16} {:>4} {} {:>6} {:>4} {:>6} {:>5.1}% {:>7} {:>7}  {}\n",
            format!("{}{star}", row.kernel.kernel),
            row.kernel.variant,
            row.statistics.registers,
            if row.statistics.spills > 0 { style.bad(&spills) } else { spills },
            row.statistics.shared,
            row.statistics.occupancy,
            row.instructions_per_mac().map_or("-".to_owned(), |figure| format!("{figure:.2}")),
            100.0 * row.main.fma_share(),
            bits(row.main.global_load_bits),
            bits(row.main.lds_load_bits),
            style.dim(&row.constants()),
        );
        if assembly {
            out += &format!("{}\n", row.kernel.assembly);
        }
    }
    out.push('\n');
    out
}

/// What one kernel with one tile comes to on one GPU: the worst of its pipelines.
#[derive(Clone, Debug, Default, PartialEq)]
struct Cell {
    registers: u64,
    spills: u64,
    occupancy: u64,
    default: bool,
}

impl Cell {
    fn of(line: &Value) -> Cell {
        let figure = |key: &str| line[key].as_u64().unwrap_or_default();
        Cell {
            registers: figure("registers"),
            spills: figure("spills"),
            occupancy: figure("occupancy"),
            default: line["default"] == true,
        }
    }

    /// A figure counts only for pipelines that are picked, where some are.
    fn with(self, other: Cell) -> Cell {
        match (self.default, other.default) {
            (true, false) => self,
            (false, true) => other,
            _ => Cell {
                registers: self.registers.max(other.registers),
                spills: self.spills.max(other.spills),
                occupancy: self.occupancy.min(other.occupancy),
                default: self.default,
            },
        }
    }
}

/// A row of the table: a kernel with its tile and variant, and its cells by GPU.
struct Line {
    name: String,
    cells: Vec<Option<Cell>>,
}

const WIDTH: usize = 11;

/// Kernels and GPUs: of each GPU its code, and the objects that its process printed.
pub(super) fn matrix(devices: &[(&str, &str)]) -> Result<String, serde_json::Error> {
    let style = Style::stdout();
    let (mut lines, mut heads): (Vec<Line>, Vec<(String, String)>) = (Vec::new(), Vec::new());
    for (column, (code, objects)) in devices.iter().enumerate() {
        for object in objects.lines() {
            let object: Value = serde_json::from_str(object)?;
            let name = name_of(&object);
            let known = lines.iter().position(|line| line.name == name);
            let index = known.unwrap_or_else(|| {
                lines.push(Line { name, cells: vec![None; devices.len()] });
                lines.len() - 1
            });
            let cell = &mut lines[index].cells[column];
            *cell = Some(match cell.take() {
                Some(known) => known.with(Cell::of(&object)),
                None => Cell::of(&object),
            });
            if heads.len() == column {
                let driver = object["driver"].as_str().unwrap_or_default();
                heads.push(((*code).to_owned(), version_of(driver).to_owned()));
            }
        }
        if heads.len() == column {
            heads.push(((*code).to_owned(), String::new()));
        }
    }
    if lines.is_empty() {
        return Ok(String::new());
    }
    let widest = lines.iter().map(|line| line.name.len()).max().unwrap_or_default();
    let row = |name: &str, cells: Vec<String>| format!("{name:<widest$}{}\n", cells.concat());
    let mut out = style.bold(&row("", heads.iter().map(|(code, _)| format!(" {code:>WIDTH$}")).collect()));
    out += &style.dim(&row("Mesa", heads.iter().map(|(_, mesa)| format!(" {mesa:>WIDTH$}")).collect()));
    for line in &lines {
        out += &row(&line.name, line.cells.iter().map(|cell| shown(cell.as_ref(), style)).collect());
    }
    out += &style.dim(
        "registers/spills/occupancy, the worst of its pipelines; * is picked there by default.\n\
         AMD: vector registers, waves a SIMD holds. Intel: live registers of 32 bytes, invocations of a thread.\n",
    );
    out += &spilling(&lines, &heads);
    Ok(out)
}

fn shown(cell: Option<&Cell>, style: Style) -> String {
    let Some(Cell { registers, spills, occupancy, default }) = cell else {
        return format!(" {:>WIDTH$}", "-");
    };
    let star = if *default { "*" } else { " " };
    let text = format!(" {:>WIDTH$}", format!("{registers}/{spills}/{occupancy}{star}"));
    match (spills, default) {
        (1.., true) => style.bad(&text),
        (_, true) => text,
        _ => style.dim(&text),
    }
}

/// The defaults that spill, each with the GPUs where it does.
fn spilling(lines: &[Line], heads: &[(String, String)]) -> String {
    let mut out = String::new();
    for line in lines {
        let spills = |(cell, (code, _)): (&Option<Cell>, &(String, String))| {
            let cell = cell.as_ref().filter(|cell| cell.default && cell.spills > 0)?;
            Some(format!("{code} {}", cell.spills))
        };
        let devices: Vec<String> = line.cells.iter().zip(heads).filter_map(spills).collect();
        if !devices.is_empty() {
            out += &format!("  {}: {}\n", line.name, devices.join(", "));
        }
    }
    match out.is_empty() {
        true => "\nNo default spills.\n".to_owned(),
        false => format!("\nDefaults that spill, and how often:\n{out}"),
    }
}

/// The kernel, its tile and the variant, without what goes for most and what is said twice: a table has 120 columns.
fn name_of(object: &Value) -> String {
    let text = |key: &str| object[key].as_str().unwrap_or_default();
    let mut kernel = text("kernel").replace(".buffer", "").replace(".plain", "");
    let mut variant = text("variant").trim_start_matches("buffer-");
    if variant.starts_with("texel-") {
        kernel = kernel.replace(".texel", "");
    }
    if text("family") == "other" {
        variant = "";
    }
    let constant = |id: &str| {
        let mut pairs = text("constants").split(' ').filter_map(|pair| pair.split_once('='));
        pairs.find(|(known, _)| *known == id).map_or("?", |(_, value)| value)
    };
    let tile = match kernel.split('.').next() {
        Some("matmul_tile" | "conv_tile" | "matmul_rows" | "conv_direct") => {
            format!(" {}x{}", constant("1"), constant("2"))
        }
        Some("matmul_dot") => format!(" {}x{}", constant("2"), constant("3")),
        _ => String::new(),
    };
    format!("{kernel}{tile} {variant}").trim_end().to_owned()
}

/// "25.0.7" of "radv Mesa 25.0.7-2".
fn version_of(driver: &str) -> &str {
    driver.rsplit("Mesa ").next().and_then(|version| version.split(['-', ' ']).next()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(constants: &str, default: bool, figures: [u64; 3]) -> String {
        let [registers, spills, occupancy] = figures;
        serde_json::json!({
            "kernel": "matmul_tile.buffer.plain", "variant": "buffer-shared", "constants": constants,
            "default": default, "registers": registers, "spills": spills, "occupancy": occupancy,
            "driver": "Intel open-source Mesa driver Mesa 25.0.7-2~bpo12+1",
        })
        .to_string()
    }

    #[test]
    fn the_worst_pipeline_that_is_picked_counts() {
        let dg2 = [
            object("0=256 1=64 2=64", true, [70, 0, 16]),
            object("0=256 1=64 2=64", true, [60, 2, 8]),
            object("0=256 1=64 2=64", false, [99, 9, 1]),
        ]
        .join("\n");
        let tgl = object("0=256 1=128 2=128", false, [200, 126, 8]);
        let table = matrix(&[("dg2", &dg2), ("tgl", &tgl)]).unwrap();
        let lines: Vec<&str> = table.lines().collect();
        assert_eq!(lines[1].split_whitespace().collect::<Vec<_>>(), ["Mesa", "25.0.7", "25.0.7"]);
        let cells: Vec<Vec<&str>> =
            lines[2..4].iter().map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(cells[0], ["matmul_tile", "64x64", "shared", "70/2/8*", "-"]);
        assert_eq!(cells[1], ["matmul_tile", "128x128", "shared", "-", "200/126/8"]);
        assert!(table.ends_with("how often:\n  matmul_tile 64x64 shared: dg2 2\n"), "{table}");
    }

    #[test]
    fn nothing_is_no_table() {
        assert_eq!(matrix(&[("dg2", ""), ("tgl", "")]).unwrap(), "");
    }
}
