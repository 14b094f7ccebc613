//! What a recording will do, as a picture that needs no other program.

use std::fmt::Write;

use super::explain::{DROPPED, home, kind, thousands};
use super::layout::{Item, Layout, arrange};
use crate::schedule::explain::{ExplainedStep, Explanation, Role};

const STYLE: &str = include_str!("graph.css");
/// Widths of a character in the style's two sizes: fonts of fixed width take at most 0.605 of their size.
const NAME_CHARACTER: f64 = 7.9;
const DETAIL_CHARACTER: f64 = 6.7;
/// Longer labels are cut; the whole stands in the box's tooltip.
const LONGEST: usize = 44;
/// Inside a box, around everything, and between the two pictures.
const PADDING: f64 = 10.0;
const MARGIN: f64 = 18.0;
const BETWEEN: f64 = 44.0;
/// From a line of text to the next, and the height of a heading with the gap below it.
const LINE: f64 = 16.0;
const HEADING: f64 = 38.0;
/// The width of the word in front of a barrier's line.
const BARRIER: f64 = 58.0;
/// Pictures that are wider together stand one below the other.
const SIDE_BY_SIDE: f64 = 1120.0;

impl Explanation {
    /// A picture of the recording as it was recorded and as it will run, for browsers and documents: an SVG that holds
    /// everything it needs, in light and dark. Boxes are inputs and steps with the values that these write; frames of
    /// what is kept are bold, of what is never stored dashed, and of operations that will not run dotted. A dashed line
    /// across is a barrier: all above it is done before anything below it begins.
    ///
    /// ```
    /// # fn main() -> tidemill::Result<()> {
    /// let gpu = tidemill::Accelerator::global()?;
    /// let a = gpu.upload(&[1.0f32; 64], [8, 8])?;
    /// let r = gpu.begin_recording()?;
    /// let product = r.matmul(&a, &a)?;
    /// let positive = r.relu(product)?;
    /// let _kept = r.keep(positive)?;
    /// let svg = r.explain()?.to_svg();
    /// assert!(svg.starts_with("<svg") && svg.contains("matmul+relu 8x8x8 f32"));
    /// # Ok(()) }
    /// ```
    pub fn to_svg(&self) -> String {
        let recorded = Panel::new(self, self.count_recorded(), &self.recorded, false);
        let dispatches = ["dispatch", "dispatches"][usize::from(self.run.len() != 1)];
        let will_run = format!("{} {dispatches}, {}", self.run.len(), count(self.barriers, "barrier"));
        let run = Panel::new(self, will_run, &self.run, true);
        let memory = format!(
            "memory: inputs {} bytes, outputs {}, temporaries {} (each stored on its own: {})",
            thousands(self.input_bytes),
            thousands(self.output_bytes),
            thousands(self.temporary_bytes),
            thousands(self.unshared_bytes)
        );

        let beside = recorded.width + BETWEEN + run.width <= SIDE_BY_SIDE;
        let second = if beside {
            (MARGIN + recorded.width + BETWEEN, MARGIN)
        } else {
            (MARGIN, MARGIN + recorded.height + BETWEEN)
        };
        let right = (second.0 + run.width).max(MARGIN + recorded.width);
        let width = (right.max(MARGIN + DETAIL_CHARACTER * columns(&memory) as f64) + MARGIN).ceil();
        let bottom = (second.1 + run.height).max(MARGIN + recorded.height);
        let height = bottom + 2.0 * MARGIN + LINE;
        let mut out = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"tidemill-graph\" role=\"img\" \
             aria-label=\"{}; {}\" width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\">\n\
             <style>\n{STYLE}</style>\n<rect class=\"paper\" width=\"{width}\" height=\"{height}\" rx=\"8\"/>\n",
            recorded.heading, run.heading
        );
        recorded.draw(&mut out, (MARGIN, MARGIN));
        run.draw(&mut out, second);
        text(&mut out, "", (MARGIN, height - MARGIN), &memory);
        out.push_str("</svg>\n");
        out
    }
}

fn count(n: usize, what: &str) -> String {
    format!("{n} {what}{}", if n == 1 { "" } else { "s" })
}

/// A box: how it is framed, its lines of text with their classes, and the whole of its first line.
struct Card {
    class: &'static str,
    lines: Vec<(&'static str, String)>,
    tip: String,
}

impl Card {
    fn item(&self, stage: Option<usize>) -> Item {
        let width = |(class, line): &(&str, String)| {
            let character = if *class == "name" { NAME_CHARACTER } else { DETAIL_CHARACTER };
            character * columns(line) as f64
        };
        // Even, so that its middle is a whole number.
        let width = (self.lines.iter().map(width).fold(0.0, f64::max) / 2.0 + PADDING).ceil() * 2.0;
        Item { width, height: LINE * self.lines.len() as f64 + PADDING, stage }
    }
}

/// One of the two pictures.
struct Panel {
    heading: String,
    cards: Vec<Card>,
    items: Vec<Item>,
    layout: Layout,
    /// Where the boxes begin: behind the words in front of the barriers, if there are any.
    indent: f64,
    width: f64,
    height: f64,
}

impl Panel {
    fn new(explanation: &Explanation, counts: String, steps: &[ExplainedStep], runs: bool) -> Panel {
        let names = explanation.names();
        let touched = |i: usize| steps.iter().any(|step| step.reads.contains(&i) || step.writes.contains(&i));
        let mut cards = Vec::new();
        let mut items = Vec::new();
        // Whose result a value is at the moment: several steps may write parts of it.
        let mut writers: Vec<Vec<usize>> = vec![Vec::new(); explanation.values.len()];
        for (i, value) in explanation.values.iter().enumerate() {
            if matches!(value.role, Role::Input | Role::Argument) && touched(i) {
                writers[i].push(cards.len());
                let name = format!("{}: {}", names[i], kind(value));
                let block = value.block.map_or(String::new(), |block| format!(", block {block}"));
                let lines = vec![
                    ("name", shortened(&name)),
                    ("", format!("{}{block}", value.argument.as_ref().map_or("input", |_| "argument"))),
                    ("", format!("{} bytes", thousands(value.bytes))),
                ];
                cards.push(Card { class: "input", lines, tip: name });
            }
        }
        items.extend(cards.iter().map(|card| card.item(None)));
        let (mut edges, mut stage) = (Vec::new(), 0);
        for step in steps {
            stage += usize::from(step.barrier);
            let own = cards.len();
            cards.push(step_card(explanation, step, &names));
            items.push(cards[own].item(Some(stage)));
            edges.extend(step.reads.iter().flat_map(|&read| &writers[read]).map(|&from| (from, own)));
            for &written in &step.writes {
                // Parts are written side by side; what comes later takes the place of what was there.
                if !runs || writers[written].iter().any(|&from| items[from].stage != Some(stage)) {
                    edges.extend(writers[written].drain(..).map(|from| (from, own)));
                }
                writers[written].push(own);
            }
        }
        edges.sort_unstable();
        edges.dedup();
        let layout = arrange(&items, &edges);
        let indent = if layout.stage_lines.is_empty() { 0.0 } else { BARRIER };
        let heading = format!("{}: {counts}", if runs { "will run" } else { "recorded" });
        // A heading's characters are larger than a name's.
        let width = (indent + layout.width).max(1.2 * NAME_CHARACTER * columns(&heading) as f64).ceil();
        let height = HEADING + layout.height;
        Panel { heading, cards, items, layout, indent, width, height }
    }

    fn draw(&self, out: &mut String, at: (f64, f64)) {
        text(out, "heading", (at.0, at.1 + LINE), &self.heading);
        let (left, top) = (at.0 + self.indent, at.1 + HEADING);
        // Writing to a string can't fail.
        for line in &self.layout.stage_lines {
            let (y, end) = (top + line, left + self.layout.width);
            text(out, "barrier", (at.0, y + 4.0), "barrier");
            let _ = writeln!(out, "<path class=\"barrier\" d=\"M{left},{y}H{end}\"/>");
        }
        for piece in &self.layout.pieces {
            let ((x1, y1), (x2, y2)) = (piece.from, piece.to);
            let (x1, y1, bend, x2, y2) = (left + x1, top + y1, top + piece.bend, left + x2, top + y2);
            // The head ends at the box, the line behind the head's tip.
            let end = if piece.target.is_some() { y2 - 5.0 } else { y2 };
            let middle = f64::midpoint(bend, end);
            let _ = writeln!(
                out,
                "<path class=\"edge\" d=\"M{x1},{y1}V{bend}C{x1},{middle} {x2},{middle} {x2},{end}\"/>"
            );
            if piece.target.is_some() {
                let _ = writeln!(out, "<path class=\"head\" d=\"M{x2},{y2}l-4,-8h8z\"/>");
            }
        }
        for ((card, item), place) in self.cards.iter().zip(&self.items).zip(&self.layout.positions) {
            let (x, y) = (left + place.x, top + place.y);
            let _ = writeln!(
                out,
                "<g><title>{}</title><rect class=\"{}\" x=\"{x}\" y=\"{y}\" width=\"{}\" height=\"{}\" rx=\"7\"/>",
                escape(&card.tip),
                card.class,
                item.width,
                item.height
            );
            for (i, (class, line)) in card.lines.iter().enumerate() {
                text(out, class, (x + PADDING, y + PADDING / 2.0 + LINE * (i as f64 + 0.75)), line);
            }
            out.push_str("</g>\n");
        }
    }
}

fn step_card(explanation: &Explanation, step: &ExplainedStep, names: &[String]) -> Card {
    let values = || step.writes.iter().map(|&i| &explanation.values[i]);
    let class = if step.dropped {
        "dropped"
    } else if values().any(|value| value.role == Role::Output) {
        "kept"
    } else if values().all(|value| value.block.is_none()) {
        "fused"
    } else {
        "step"
    };
    let mut lines = vec![("name", shortened(&step.label))];
    lines.extend(step.kernel.iter().map(|kernel| ("", kernel.clone())));
    lines.extend(step.bytes.map(|bytes| ("", format!("moves {} bytes", thousands(bytes)))));
    if step.dropped {
        lines.push(("", DROPPED.to_owned()));
        return Card { class, lines, tip: step.label.clone() };
    }
    for &written in &step.writes {
        let value = &explanation.values[written];
        let (class, kept) = if value.role == Role::Output { ("kept", ", kept") } else { ("result", "") };
        lines.push((class, format!("{}: {}{kept}", names[written], kind(value))));
        lines.push(("", home(value)));
    }
    Card { class, lines, tip: step.label.clone() }
}

fn text(out: &mut String, class: &str, (x, y): (f64, f64), text: &str) {
    let class = if class.is_empty() { String::new() } else { format!(" class=\"{class}\"") };
    let _ = writeln!(out, "<text{class} x=\"{x}\" y=\"{y}\">{}</text>", escape(text));
}

/// How many characters of a font of fixed width: those beyond ASCII may be twice as wide.
fn columns(text: &str) -> usize {
    text.chars().map(|c| if c.is_ascii() { 1 } else { 2 }).sum()
}

fn shortened(text: &str) -> String {
    if text.chars().count() <= LONGEST {
        return text.to_owned();
    }
    text.chars().take(LONGEST - 1).chain(['…']).collect()
}

/// For XML, which has no word for control characters.
fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schedule::explain::ExplainedValue;
    use crate::shape::DType;

    fn value(role: Role, block: Option<usize>) -> ExplainedValue {
        ExplainedValue { role, shape: [8, 8].into(), dtype: DType::F32, bytes: 256, block, argument: None }
    }

    fn step(label: &str, reads: &[usize], writes: &[usize], barrier: bool) -> ExplainedStep {
        let (label, reads, writes) = (label.to_owned(), reads.to_vec(), writes.to_vec());
        ExplainedStep { label, reads, writes, kernel: None, bytes: None, barrier, dropped: false }
    }

    fn explanation(values: Vec<ExplainedValue>, steps: Vec<ExplainedStep>) -> Explanation {
        let barriers = steps.iter().filter(|step| step.barrier).count();
        Explanation {
            values,
            recorded: steps.clone(),
            run: steps,
            barriers,
            input_bytes: 256,
            output_bytes: 256,
            temporary_bytes: 0,
            unshared_bytes: 0,
        }
    }

    /// Boxes of a class, both pictures together.
    fn boxes(svg: &str, class: &str) -> usize {
        svg.matches(&format!("<rect class=\"{class}\"")).count()
    }

    #[test]
    fn every_step_value_and_barrier_is_drawn() {
        let values = vec![
            value(Role::Input, Some(0)),
            value(Role::Temporary, None),
            value(Role::Temporary, Some(2)),
            value(Role::Output, Some(1)),
        ];
        let steps = vec![
            step("neg 8x8 f32", &[0], &[1], false),
            step("exp 8x8 f32", &[1], &[2], true),
            step("add 8x8 f32", &[2, 0], &[3], true),
        ];
        let svg = explanation(values, steps).to_svg();
        let kinds = ["input", "fused", "step", "kept"].map(|class| boxes(&svg, class));
        assert_eq!(kinds, [2; 4], "{svg}");
        assert_eq!(svg.matches("class=\"head\"").count(), 2 * 4);
        assert_eq!(svg.matches("<path class=\"barrier\"").count(), 4);
        for text in [
            "recorded: 3 operations",
            "will run: 3 dispatches, 2 barriers",
            "x0: 8x8 f32",
            "y0: 8x8 f32, kept",
            "input, block 0",
            "256 bytes, block 1",
            "256 bytes, never stored",
            "memory: inputs 256 bytes, outputs 256, temporaries 0 (each stored on its own: 0)",
        ] {
            assert!(svg.contains(&format!(">{text}</text>")), "no `{text}` in\n{svg}");
        }
    }

    #[test]
    fn what_will_not_run_is_drawn_as_such() {
        let values = vec![value(Role::Output, Some(0)), value(Role::Temporary, None)];
        let mut steps = vec![step("fill 8x8 f32", &[], &[0], false), step("neg 8x8 f32", &[0], &[1], false)];
        steps[1].dropped = true;
        let mut it = explanation(values, steps);
        it.run.truncate(1);
        let svg = it.to_svg();
        assert_eq!(["kept", "dropped"].map(|class| boxes(&svg, class)), [2, 1], "{svg}");
        assert!(svg.contains("recorded: 2 operations, 1 dropped"));
        assert!(svg.contains(">dropped: nothing that is kept needs it</text>"));
        let dot = it.to_dot();
        assert!(dot.contains("[shape=box, style=dotted, label=\"neg 8x8 f32\\ndropped: "), "{dot}");
    }

    #[test]
    fn nothing_and_a_single_step_are_pictures_too() {
        let svg = explanation(Vec::new(), Vec::new()).to_svg();
        assert!(svg.contains("recorded: 0 operations") && svg.ends_with("</svg>\n"));
        let svg =
            explanation(vec![value(Role::Output, Some(0))], vec![step("fill", &[], &[0], false)]).to_svg();
        assert!(svg.contains("will run: 1 dispatch, 0 barriers") && boxes(&svg, "kept") == 2);
    }

    #[test]
    fn what_is_written_over_leads_to_what_writes_it() {
        let values = || vec![value(Role::Output, Some(0))];
        let over = vec![step("fill", &[], &[0], false), step("own", &[], &[0], true)];
        assert_eq!(explanation(values(), over).to_svg().matches("class=\"head\"").count(), 2);
        // Parts of one value, side by side when they run.
        let parts = vec![step("part", &[], &[0], false), step("part", &[], &[0], false)];
        let panel = Panel::new(&explanation(values(), parts.clone()), String::new(), &parts, true);
        assert!(panel.layout.pieces.is_empty());
    }

    #[test]
    fn labels_are_escaped_and_cut() {
        let long = format!("<b>\"&\u{7}{}", "+add".repeat(50));
        let svg =
            explanation(vec![value(Role::Output, Some(0))], vec![step(&long, &[], &[0], false)]).to_svg();
        assert!(svg.contains("&lt;b&gt;&quot;&amp;\u{fffd}+add+add"));
        assert!(
            svg.contains("…</text>") && svg.contains(&"+add".repeat(50)),
            "cut, and whole in the tooltip"
        );
        let width = svg.split("width=\"").nth(1).and_then(|rest| rest.split('"').next()).unwrap();
        assert!(width.parse::<f64>().unwrap() < 1000.0, "{width}");
    }

    #[test]
    fn two_hundred_steps_are_drawn_the_same_every_time() {
        let values: Vec<_> = (0..201).map(|i| value(Role::Temporary, Some(i))).collect();
        let steps: Vec<_> =
            (0..200).map(|i| step("op", &[i * 7 / 8, i], &[i + 1], i % 3 == 0 && i > 0)).collect();
        let of = || explanation(values.clone(), steps.clone()).to_svg();
        assert_eq!(boxes(&of(), "step"), 400);
        assert_eq!(of(), of());
    }
}
