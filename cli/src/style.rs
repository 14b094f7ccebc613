//! Plain text with a little colour where a person looks.

use std::error::Error;
use std::io::{self, IsTerminal, Write};

/// Colours for one stream: real ones on a terminal, none elsewhere and with `NO_COLOR`.
#[derive(Clone, Copy)]
pub(crate) struct Style {
    on: bool,
}

impl Style {
    /// For standard output.
    pub(crate) fn stdout() -> Style {
        Style { on: io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none() }
    }

    /// For standard error.
    pub(crate) fn stderr() -> Style {
        Style { on: io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none() }
    }

    fn paint(self, code: &str, text: &str) -> String {
        if self.on { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }

    /// A heading.
    pub(crate) fn bold(self, text: &str) -> String {
        self.paint("1", text)
    }

    /// Of less importance.
    pub(crate) fn dim(self, text: &str) -> String {
        self.paint("2", text)
    }

    /// As it should be.
    pub(crate) fn good(self, text: &str) -> String {
        self.paint("32", text)
    }

    /// Not as it should be.
    pub(crate) fn bad(self, text: &str) -> String {
        self.paint("31", text)
    }
}

/// Writes to standard output; a reader who has gone is an error like any other, not a panic.
pub(crate) fn print(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()
}

/// Says on standard error what went wrong.
pub(crate) fn complain(error: &dyn Error) {
    let _ = writeln!(io::stderr(), "{} {error}", Style::stderr().bad("tidemill:"));
}

/// Bytes as people say them.
pub(crate) fn bytes(n: u64) -> String {
    let units = [(30, "GiB"), (20, "MiB"), (10, "KiB")];
    match units.iter().find(|(shift, _)| n >> shift > 0) {
        Some((shift, unit)) => {
            let value = n as f64 / (1u64 << shift) as f64;
            if value.fract() == 0.0 { format!("{value} {unit}") } else { format!("{value:.1} {unit}") }
        }
        None => format!("{n} B"),
    }
}

/// A whole number with separators: 16,777,216.
pub(crate) fn grouped(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// A number with about four significant digits.
pub(crate) fn short(x: f64) -> String {
    let places = match x.abs() {
        x if x >= 1000.0 => 0,
        x if x >= 100.0 => 1,
        x if x >= 10.0 => 2,
        _ => 3,
    };
    format!("{x:.places$}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_read_well() {
        assert_eq!([bytes(17), bytes(1 << 27), bytes(3 << 29)], ["17 B", "128 MiB", "1.5 GiB"]);
        assert_eq!([grouped(0), grouped(999), grouped(16_777_216)], ["0", "999", "16,777,216"]);
        assert_eq!(
            [short(0.1234567), short(12.345), short(123.45), short(1234.5)],
            ["0.123", "12.35", "123.5", "1234"]
        );
    }

    #[test]
    fn no_colour_where_nobody_looks() {
        assert_eq!(Style { on: false }.bad("x"), "x");
        assert_eq!(Style { on: true }.good("x"), "\x1b[32mx\x1b[0m");
    }
}
