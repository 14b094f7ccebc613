//! How large a source may be. The compiler calls itself once for each level of nesting and each operand of a sum, and copies texts as
//! often as macros say: within these limits its stack holds, and its memory does.

use rustc_hash::FxHashMap;

use crate::error::GlslError;

/// The bytes of a source with all that it includes, before and after its macros are expanded.
pub(super) const MOST_BYTES: usize = 1 << 20;
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
        let length = match part(first) {
            true => rest.find(|c| !part(c)).unwrap_or(rest.len()),
            false => first.len_utf8(),
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

/// How much text the macros of a source make of it, at the most, in words and signs: each macro weighs as much as what it stands for,
/// and an argument counts as often as the macro has it.
#[derive(Debug, Default)]
pub(super) struct Macros {
    /// Every definition of each, since conditions may choose any.
    known: FxHashMap<String, Vec<Definition>>,
}

#[derive(Debug)]
struct Definition {
    parameters: Vec<String>,
    body: Vec<String>,
}

/// What one use of a macro makes.
#[derive(Clone, Copy, Debug)]
struct Growth {
    weight: usize,
    /// How often it has an argument.
    copies: usize,
}

/// Of whatever is no macro, and of a macro inside itself, which is not expanded.
const NONE: Growth = Growth { weight: 1, copies: 1 };

impl Macros {
    /// A macro from the outside.
    pub(super) fn define_value(&mut self, name: &str, value: &str) {
        self.define(name, &[], &tokens(value).filter(|token| *token != "\n").collect::<Vec<_>>());
    }

    fn define(&mut self, name: &str, parameters: &[&str], body: &[&str]) {
        let owned = |tokens: &[&str]| tokens.iter().map(|token| (*token).to_owned()).collect();
        let definition = Definition { parameters: owned(parameters), body: owned(body) };
        self.known.entry(name.to_owned()).or_default().push(definition);
    }

    /// What a macro makes, by what those in its body make.
    fn growth<'a>(&'a self, name: &'a str, done: &mut FxHashMap<&'a str, Growth>) -> Growth {
        if let Some(growth) = done.get(name) {
            return *growth;
        }
        let Some(definitions) = self.known.get(name) else { return NONE };
        done.insert(name, NONE);
        let mut most = NONE;
        for Definition { parameters, body } in definitions {
            let used = |parameter: &String| body.iter().filter(|token| *token == parameter).count();
            let mut copies = parameters.iter().map(used).max().unwrap_or(1).max(1);
            let mut weight = 1usize;
            for token in body {
                let inner = self.growth(token, done);
                weight = weight.saturating_add(inner.weight);
                // An argument may be handed on.
                copies = copies.saturating_mul(inner.copies);
            }
            most = Growth { weight: most.weight.max(weight), copies: most.copies.max(copies) };
        }
        done.insert(name, most);
        most
    }

    /// Takes in the macros of a text, and refuses it if it would become too much.
    pub(super) fn check(&mut self, file: &str, text: &str) -> Result<(), GlslError> {
        let all: Vec<&str> = tokens(text).collect();
        let lines = || all.split(|token| *token == "\n");
        for line in lines() {
            if let ["#", "define", name, rest @ ..] = line {
                let (parameters, body) = split_parameters(rest);
                self.define(name, &parameters, body);
            }
        }
        let mut done = FxHashMap::default();
        // What is made so far, and what the calls around a place make of it.
        let (mut made, mut factor) = (0usize, 1usize);
        let mut around: Vec<usize> = Vec::new();
        let mut before = NONE;
        for token in lines().filter(|line| !matches!(line, ["#", "define", ..])).flatten() {
            match *token {
                "(" => {
                    around.push(factor);
                    factor = factor.saturating_mul(before.copies);
                }
                ")" => factor = around.pop().unwrap_or(1),
                _ => {}
            }
            before = self.growth(token, &mut done);
            made = made.saturating_add(before.weight.saturating_mul(factor));
            if made > MOST_BYTES {
                let what = format!("{file}: words and signs once its macros are expanded");
                return Err(too_large(what, made, MOST_BYTES));
            }
        }
        Ok(())
    }
}

/// The parameters of a macro, if it has any, and its body.
fn split_parameters<'a, 'b>(rest: &'b [&'a str]) -> (Vec<&'a str>, &'b [&'a str]) {
    if rest.first() == Some(&"(")
        && let Some(end) = rest.iter().position(|token| *token == ")")
    {
        let names = rest[1..end].iter().copied().filter(|token| *token != ",").collect();
        return (names, &rest[end + 1..]);
    }
    (Vec::new(), rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bomb(levels: usize, arguments: &str) -> String {
        let step = |i: usize| format!("#define M{}{arguments} M{i}{arguments} M{i}{arguments}\n", i + 1);
        format!("#define M0{arguments} 1\n")
            + &(0..levels).map(step).collect::<String>()
            + &format!("M{levels}{arguments}")
    }

    #[test]
    fn macros_that_explode_are_refused_and_others_are_not() {
        let check = |text: &str| Macros::default().check("x", text);
        assert!(check(&bomb(30, "")).is_err());
        assert!(check(&bomb(30, "(x)")).is_err());
        assert!(check(&bomb(10, "")).is_ok());
        // In whatever order they are defined.
        let backwards = |text: String| text.lines().rev().map(|line| format!("{line}\n")).collect::<String>();
        assert!(check(&(backwards(bomb(30, "")) + "M30")).is_err());
        let nested = |depth: usize| {
            format!("#define TWICE(x) x + x\nfloat y = {}1{};", "TWICE(".repeat(depth), ")".repeat(depth))
        };
        assert!(check(&nested(30)).is_err());
        assert!(check(&nested(10)).is_ok());
        assert!(check("#define A B\n#define B A\nfloat y = A;").is_ok(), "no macro is expanded in itself");
        assert!(check(&"float f(float x) { return x; }\n".repeat(2000)).is_ok());
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
