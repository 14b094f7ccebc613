//! How large a source may be. The compiler calls itself once for each level of nesting and each operand of a sum, and copies texts as
//! often as macros say: within these limits its stack holds, and its memory does.

use crate::error::GlslError;

/// The bytes of a source with all that it includes, before and after its macros are expanded.
pub(super) const MOST_BYTES: usize = 1 << 20;
/// The bytes that macros make of a source, counted so that they are never too few (`macros.rs`): what they really make may have
/// [`MOST_BYTES`].
pub(super) const MOST_EXPANDED: usize = 16 << 20;
/// The different files that one source includes. All that was read is counted again with each.
pub(super) const MOST_FILES: usize = 256;
/// The macros that stand in each other's definitions.
pub(super) const MOST_CYCLIC: usize = 256;
/// How deep parentheses, brackets and braces are nested.
pub(super) const MOST_NESTING: usize = 256;
/// The words and signs of one statement, an initializer's included.
pub(super) const MOST_TOKENS: usize = 1 << 16;
/// The compiler's own stack. It takes less than 1 KiB for an operand of a sum, or for one more `else if`, of which a source of
/// [`MOST_BYTES`] has less than 2^17. Memory is taken only as it is used.
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

/// A text as the compiler may read it, with lines that end in `\n` and go on nowhere. What a backslash does before a line's end depends
/// on the version that the text declares, and before a quotation mark on the compiler's: both readings count then.
pub(super) fn readings(text: &str) -> Vec<String> {
    let lines = text.replace("\r\n", "\n").replace('\r', "\n");
    let mut readings = vec![lines.replace("\\\n", "")];
    if lines.contains("\\\n") {
        readings.push(lines);
    }
    if text.contains("\\\"") {
        let escaped: Vec<String> = readings.iter().map(|text| text.replace("\\\"", "  ")).collect();
        readings.extend(escaped);
    }
    readings
}

/// Words, numbers, texts in quotation marks, signs and line ends; comments are left out.
pub(super) fn tokens(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        loop {
            rest = rest.trim_start_matches(|c: char| c.is_whitespace() && c != '\n');
            if rest.starts_with("//") {
                rest = &rest[rest.find('\n').unwrap_or(rest.len())..];
            } else if rest.starts_with("/*") {
                rest = rest[2..].find("*/").map_or("", |end| &rest[2 + end + 2..]);
            } else {
                break;
            }
        }
        let first = rest.chars().next()?;
        // The compiler's words are ASCII: another character ends one.
        let part = |c: char| c.is_ascii_alphanumeric() || c == '_' || (c == '.' && first.is_ascii_digit());
        let length = match first {
            // A comment can't begin in it.
            '"' => rest[1..]
                .find(['"', '\n'])
                .map_or(rest.len(), |end| if rest[1 + end..].starts_with('"') { end + 2 } else { end + 1 }),
            _ if part(first) => rest.find(|c| !part(c)).unwrap_or(rest.len()),
            _ => first.len_utf8(),
        };
        let (token, following) = rest.split_at(length);
        rest = following;
        Some(token)
    })
}

/// Refuses what would take the compiler too deep.
pub(super) fn check_nesting(file: &str, text: &str) -> Result<(), GlslError> {
    let (mut depth, mut deepest, mut statement) = (0usize, 0usize, 0usize);
    for token in tokens(text) {
        match token {
            "(" | "[" | "{" => depth += 1,
            ")" | "]" | "}" => depth = depth.saturating_sub(1),
            _ => {}
        }
        deepest = deepest.max(depth);
        // Blocks end statements; the braces of an initializer are part of one.
        let ends = matches!(token, ";" | "#") || (token == "}" && depth == 0);
        statement = if ends { 0 } else { statement + 1 };
        if deepest > MOST_NESTING {
            return Err(too_large(format!("{file}: levels of nesting"), deepest, MOST_NESTING));
        }
        if statement > MOST_TOKENS {
            return Err(too_large(format!("{file}: words and signs in a statement"), statement, MOST_TOKENS));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_those_of_the_compiler() {
        let list = |text: &str| tokens(text).map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(list("a1+0x2f /* b */ 1.5f // c\nd"), ["a1", "+", "0x2f", "1.5f", "\n", "d"]);
        assert_eq!(list("\"/*\" a \"b\nc"), ["\"/*\"", "a", "\"b", "\n", "c"]);
        assert_eq!(list("éM1"), ["é", "M1"]);
        assert_eq!(readings("a\rb\r\nc"), ["a\nb\nc"]);
        assert_eq!(readings("M\\\r\n1"), ["M1", "M\\\n1"]);
    }

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
    }
}
