//! What a recording will do, as a text and as a picture.

use std::fmt::{self, Write};

use crate::schedule::explain::{ExplainedArgument, ExplainedStep, ExplainedValue, Explanation, Role};

impl Explanation {
    /// A name for each value: `x0` and on for inputs, `a0` for arguments, `s0` for versions of tensors that are
    /// updated, `y0` for what is kept, `t0` for the rest.
    pub(super) fn names(&self) -> Vec<String> {
        let mut counts = [0; 5];
        let name = |value: &ExplainedValue| {
            let (letter, count) = match value.role {
                Role::Input => ('x', &mut counts[0]),
                Role::Output => ('y', &mut counts[1]),
                Role::Temporary => ('t', &mut counts[2]),
                Role::State => ('s', &mut counts[3]),
                Role::Argument => ('a', &mut counts[4]),
            };
            *count += 1;
            format!("{letter}{}", *count - 1)
        };
        self.values.iter().map(name).collect()
    }

    /// The recording as it will run, in the language of Graphviz: `dot -Tsvg` makes a picture of it. Values are
    /// ellipses, with their block if they are stored, and dispatches are boxes; a bold frame stands for a barrier, a
    /// dotted one for an operation that was recorded and will not run.
    ///
    /// ```
    /// # fn main() -> tidemill::Result<()> {
    /// let gpu = tidemill::Accelerator::global()?;
    /// let a = gpu.upload(&[1.0f32; 8], [8])?;
    /// let r = gpu.begin_recording()?;
    /// let twice = r.add(&a, &a)?;
    /// let _kept = r.keep(twice)?;
    /// let dot = r.explain()?.to_dot();
    /// assert!(dot.starts_with("digraph recording {") && dot.contains("add 8 f32"));
    /// # Ok(()) }
    /// ```
    pub fn to_dot(&self) -> String {
        let names = self.names();
        let mut out = String::from("digraph recording {\n  rankdir=TB;\n  node [fontname=\"sans-serif\"];\n");
        let used = |i: usize| self.run.iter().any(|step| step.reads.contains(&i) || step.writes.contains(&i));
        // Writing to a string can't fail.
        for (i, value) in self.values.iter().enumerate().filter(|(i, _)| used(*i)) {
            let style = match value.role {
                Role::Input => ", style=filled, fillcolor=lightblue",
                Role::Output => ", style=filled, fillcolor=lightgreen",
                Role::State => ", style=filled, fillcolor=lightyellow",
                Role::Argument => ", style=filled, fillcolor=lavender",
                Role::Temporary => "",
            };
            let label = escaped(&describe(value, &names[i]));
            let _ = writeln!(out, "  v{i} [label=\"{label}\"{style}];");
        }
        for (i, step) in self.run.iter().enumerate() {
            let frame = if step.barrier { ", penwidth=3" } else { "" };
            let label = escaped(&step.label);
            let kernel = step.kernel.as_deref().unwrap_or("");
            let _ = writeln!(out, "  s{i} [shape=box, label=\"{label}\\n{kernel}\"{frame}];");
            for read in &step.reads {
                let _ = writeln!(out, "  v{read} -> s{i};");
            }
            for written in &step.writes {
                let _ = writeln!(out, "  s{i} -> v{written};");
            }
        }
        for (i, step) in self.recorded.iter().enumerate().filter(|(_, step)| step.dropped) {
            let label = escaped(&step.label);
            let _ = writeln!(out, "  d{i} [shape=box, style=dotted, label=\"{label}\\n{DROPPED}\"];");
        }
        out.push_str("}\n");
        out
    }

    /// `5 operations`, and how many of them are dropped.
    pub(super) fn count_recorded(&self) -> String {
        let (all, dropped) = (self.recorded.len(), self.recorded.iter().filter(|step| step.dropped).count());
        let operations = if all == 1 { "operation" } else { "operations" };
        match dropped {
            0 => format!("{all} {operations}"),
            _ => format!("{all} {operations}, {dropped} dropped"),
        }
    }
}

/// What is said of an operation that will not run.
pub(super) const DROPPED: &str = "dropped: nothing that is kept needs it";

/// For Graphviz.
fn escaped(label: &str) -> String {
    label.replace('\\', "\\\\").replace('"', "\\\"")
}

/// `t0: 64x256 f32, 65,536 bytes, block 4`.
fn describe(value: &ExplainedValue, name: &str) -> String {
    format!("{name}: {}, {}{}", kind(value), home(value), declared(value))
}

/// `, argument "row" from 0 to 3`.
fn declared(value: &ExplainedValue) -> String {
    value.argument.as_ref().map_or_else(String::new, |ExplainedArgument { name, least, most, .. }| {
        format!(", argument {name:?} from {least} to {most}")
    })
}

/// `64x256 f32`.
pub(super) fn kind(value: &ExplainedValue) -> String {
    let dims: Vec<String> = value.shape.dims().iter().map(ToString::to_string).collect();
    let shape = if dims.is_empty() { "scalar".to_owned() } else { dims.join("x") };
    format!("{shape} {}", value.dtype)
}

/// `65,536 bytes, block 4`.
pub(super) fn home(value: &ExplainedValue) -> String {
    let block = value.block.map_or_else(|| "never stored".to_owned(), |block| format!("block {block}"));
    format!("{} bytes, {block}", thousands(value.bytes))
}

pub(super) fn thousands(n: u64) -> String {
    let digits = n.to_string();
    let groups: Vec<&str> = digits
        .as_bytes()
        .rchunks(3)
        .rev()
        .map(|group| std::str::from_utf8(group).unwrap_or_default())
        .collect();
    groups.join(",")
}

fn write_step(f: &mut fmt::Formatter<'_>, step: &ExplainedStep, names: &[String]) -> fmt::Result {
    let list = |places: &[usize]| places.iter().map(|&i| names[i].as_str()).collect::<Vec<_>>().join(" ");
    if step.barrier {
        writeln!(f, "  ---- barrier")?;
    }
    write!(f, "  {} = {} <- {}", list(&step.writes), step.label, list(&step.reads))?;
    if let Some(kernel) = &step.kernel {
        write!(f, "  [{kernel}]")?;
    }
    if let Some(bytes) = step.bytes {
        write!(f, " {} bytes", thousands(bytes))?;
    }
    if step.dropped {
        write!(f, "  ({DROPPED})")?;
    }
    writeln!(f)
}

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = self.names();
        writeln!(f, "values")?;
        for (value, name) in self.values.iter().zip(&names) {
            writeln!(f, "  {}", describe(value, name))?;
        }
        writeln!(f, "recorded: {}", self.count_recorded())?;
        for step in &self.recorded {
            write_step(f, step, &names)?;
        }
        writeln!(f, "will run: {} dispatches, {} barriers", self.run.len(), self.barriers)?;
        for step in &self.run {
            write_step(f, step, &names)?;
        }
        writeln!(
            f,
            "memory: inputs {} bytes, outputs {}, temporaries {} (each stored on its own: {})",
            thousands(self.input_bytes),
            thousands(self.output_bytes),
            thousands(self.temporary_bytes),
            thousands(self.unshared_bytes)
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_grouped() {
        assert_eq!([0, 999, 1000, 1_234_567].map(thousands), ["0", "999", "1,000", "1,234,567"]);
    }
}
