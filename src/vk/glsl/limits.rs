//! How large a source may be. The compiler calls itself once for each level of nesting and each operand of a sum, and
//! copies texts as often as macros say: within these limits its stack holds, and its memory does.

use crate::error::GlslError;

/// The bytes of a source with all that it includes, before and after its macros are expanded.
pub(super) const MOST_BYTES: usize = 1 << 20;
/// How deep parentheses, brackets and braces are nested.
pub(super) const MOST_NESTING: usize = 256;
/// The words and signs of one statement, an initializer's included.
pub(super) const MOST_TOKENS: usize = 1 << 16;
/// The compiler's own stack. It takes less than 1 KiB for an operand of a sum, or for one more `else if`, of which a
/// source of [`MOST_BYTES`] has less than 2^17. Memory is taken only as it is used.
pub(super) const STACK_BYTES: usize = 256 << 20;

pub(super) fn too_large(what: impl Into<String>, got: usize, most: usize) -> GlslError {
    GlslError::TooLarge { what: what.into(), got, most }
}

/// Adds a text to what was read before.
pub(super) fn add_bytes(file: &str, so_far: usize, text: &str) -> Result<usize, GlslError> {
    let all = so_far.saturating_add(text.len());
    if all > MOST_BYTES {
        return Err(too_large(format!("{file}: bytes of source"), all, MOST_BYTES));
    }
    Ok(all)
}

/// Words, numbers and signs; comments are left out. Line ends count only where a directive ends.
fn tokens(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        loop {
            rest = rest.trim_start_matches(|c: char| c.is_whitespace() && c != '\n');
            // A line that goes on.
            if let Some(next) = rest.strip_prefix("\\\n").or_else(|| rest.strip_prefix("\\\r\n")) {
                rest = next;
            } else if rest.starts_with("//") {
                rest = &rest[rest.find('\n').unwrap_or(rest.len())..];
            } else if rest.starts_with("/*") {
                rest = rest[2..].find("*/").map_or("", |end| &rest[2 + end + 2..]);
            } else {
                break;
            }
        }
        let first = rest.chars().next()?;
        let part = |c: char| c.is_alphanumeric() || c == '_' || (c == '.' && first.is_ascii_digit());
        let length = match first {
            // Comments do not begin in it.
            '"' => rest[1..].find(['"', '\n']).map_or(rest.len(), |end| end + 2),
            _ if part(first) => rest.find(|c| !part(c)).unwrap_or(rest.len()),
            _ => first.len_utf8(),
        };
        let (token, following) = rest.split_at(length);
        rest = following;
        Some(token)
    })
}

/// How deep and how long the code is at some place.
#[derive(Default)]
struct Extent {
    /// Levels of nesting.
    depth: usize,
    /// Words and signs of the statement so far.
    statement: usize,
}

impl Extent {
    fn add(&mut self, token: &str) {
        match token {
            "(" | "[" | "{" => self.depth += 1,
            ")" | "]" | "}" => self.depth = self.depth.saturating_sub(1),
            _ => {}
        }
        // Blocks end statements; the braces of an initializer are part of one.
        let ends = token == ";" || (token == "}" && self.depth == 0);
        self.statement = if ends { 0 } else { self.statement + 1 };
    }
}

/// Refuses what would take the compiler too deep.
pub(super) fn check_nesting(file: &str, text: &str) -> Result<(), GlslError> {
    // A directive may stand in the middle of a statement, and ends nothing of it.
    let (mut code, mut directive) = (Extent::default(), None);
    let mut begins_line = true;
    for token in tokens(text) {
        if token == "\n" {
            (begins_line, directive) = (true, None);
            continue;
        }
        if begins_line && token == "#" {
            directive = Some(Extent::default());
        }
        begins_line = false;
        let extent = directive.as_mut().unwrap_or(&mut code);
        extent.add(token);
        if extent.depth > MOST_NESTING {
            return Err(too_large(format!("{file}: levels of nesting"), extent.depth, MOST_NESTING));
        }
        if extent.statement > MOST_TOKENS {
            let what = format!("{file}: words and signs in a statement");
            return Err(too_large(what, extent.statement, MOST_TOKENS));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nesting_and_statements_are_bounded() {
        let deep = |n: usize| format!("float y = {}1{};", "(".repeat(n), ")".repeat(n));
        assert!(check_nesting("x", &deep(MOST_NESTING)).is_ok());
        assert!(check_nesting("x", &deep(MOST_NESTING + 1)).is_err());
        let sum = |n: usize| format!("float y = 1{};", " + 1".repeat(n));
        assert!(check_nesting("x", &sum(5_000)).is_ok());
        assert!(check_nesting("x", &sum(MOST_TOKENS / 2)).is_err());
        // Over many lines it is one statement still; many statements are many.
        assert!(check_nesting("x", &sum(MOST_TOKENS / 2).replace("+ 1", "+ 1\n")).is_err());
        assert!(check_nesting("x", &"y += 1.0;\n".repeat(MOST_TOKENS)).is_ok());
        assert!(check_nesting("x", "// ((((\n/* { [ */ void main() {}").is_ok());
        let behind = |text: &str| check_nesting("x", &format!("f({text}, {});", deep(MOST_NESTING)));
        assert!(behind("1").is_err() && behind("\"/*\"").is_err() && behind("\"//\"").is_err());
    }

    #[test]
    fn directives_end_no_statement_and_close_nothing() {
        let sum = format!("float y = 1{};", " + 1\n#pragma a\n".repeat(MOST_TOKENS / 2));
        assert!(check_nesting("x", &sum).is_err());
        let (open, close) = ("(".repeat(MOST_NESTING), ")".repeat(MOST_NESTING));
        assert!(check_nesting("x", &format!("f{open}\n#pragma {close}\n(1){close};")).is_err());
        // They have the same limits, each for itself.
        assert!(check_nesting("x", &format!("#line 1 {}\n", "-".repeat(MOST_TOKENS))).is_err());
        assert!(check_nesting("x", &format!("#line 1 ({open}\n")).is_err());
        assert!(check_nesting("x", &format!("#pragma {open}\n").repeat(1000)).is_ok());
        // Only at the beginning of a line is it one.
        assert!(check_nesting("x", &format!("f # {open}(")).is_err());
    }
}
