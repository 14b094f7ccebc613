//! Conditions of `#if`: expressions of whole numbers.

use super::tokens::Token;
use crate::vk::glsl::limits::MOST_NESTING;

/// Signs of two operands, and how closely they bind.
const BINARY: [(&str, u32); 18] = [
    ("||", 1),
    ("&&", 2),
    ("|", 3),
    ("^", 4),
    ("&", 5),
    ("==", 6),
    ("!=", 6),
    ("<", 7),
    (">", 7),
    ("<=", 7),
    (">=", 7),
    ("<<", 8),
    (">>", 8),
    ("+", 9),
    ("-", 9),
    ("*", 10),
    ("/", 10),
    ("%", 10),
];

struct Expression<'a> {
    rest: &'a [Token],
    depth: usize,
}

/// The value of an expression, or what is wrong with it.
pub(super) fn evaluate(tokens: &[Token]) -> Result<i64, String> {
    let mut expression = Expression { rest: tokens, depth: 0 };
    let value = expression.binary(1)?;
    match expression.rest.first() {
        None => Ok(value),
        Some(token) => Err(format!("'{}' : not expected behind an expression", token.text)),
    }
}

fn number(text: &str) -> Option<i64> {
    let digits = text.trim_end_matches(['u', 'U']);
    if let Some(hexadecimal) = digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X")) {
        return i64::from_str_radix(hexadecimal, 16).ok();
    }
    match digits.strip_prefix('0') {
        Some(octal) if !octal.is_empty() => i64::from_str_radix(octal, 8).ok(),
        _ => digits.parse().ok(),
    }
}

fn apply(sign: &str, a: i64, b: i64) -> Option<i64> {
    let shift =
        |shifted: fn(i64, u32) -> i64| u32::try_from(b).ok().filter(|by| *by < 64).map(|by| shifted(a, by));
    Some(match sign {
        "||" => i64::from(a != 0 || b != 0),
        "&&" => i64::from(a != 0 && b != 0),
        "|" => a | b,
        "^" => a ^ b,
        "&" => a & b,
        "==" => i64::from(a == b),
        "!=" => i64::from(a != b),
        "<" => i64::from(a < b),
        ">" => i64::from(a > b),
        "<=" => i64::from(a <= b),
        ">=" => i64::from(a >= b),
        "<<" => shift(|a, by| a << by)?,
        ">>" => shift(|a, by| a >> by)?,
        "+" => a.wrapping_add(b),
        "-" => a.wrapping_sub(b),
        "*" => a.wrapping_mul(b),
        "/" => a.checked_div(b)?,
        _ => a.checked_rem(b)?,
    })
}

impl Expression<'_> {
    fn next(&mut self) -> Option<&str> {
        let (first, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(&first.text)
    }

    /// Operands joined by signs that bind as closely as this, or closer.
    fn binary(&mut self, least: u32) -> Result<i64, String> {
        let mut value = self.unary()?;
        while let Some(&(sign, close)) =
            BINARY.iter().find(|(sign, _)| self.rest.first().is_some_and(|t| t.is(sign)))
            && close >= least
        {
            self.next();
            let second = self.binary(close + 1)?;
            value = apply(sign, value, second).ok_or_else(|| format!("'{sign}' : has no value here"))?;
        }
        Ok(value)
    }

    fn unary(&mut self) -> Result<i64, String> {
        let mut signs = Vec::new();
        while let Some(sign) =
            ["!", "-", "+", "~"].into_iter().find(|s| self.rest.first().is_some_and(|t| t.is(s)))
        {
            signs.push(sign);
            self.next();
        }
        let value = match self.next() {
            Some("(") => {
                self.depth += 1;
                if self.depth > MOST_NESTING {
                    return Err(format!("'(' : nested more than {MOST_NESTING} deep"));
                }
                let value = self.binary(1)?;
                self.depth -= 1;
                match self.next() {
                    Some(")") => value,
                    _ => return Err("')' : is missing".to_owned()),
                }
            }
            Some(text) => number(text).ok_or_else(|| format!("'{text}' : is no whole number"))?,
            None => return Err("'#if' : an operand is missing".to_owned()),
        };
        let apply = |value: i64, sign: &str| match sign {
            "!" => i64::from(value == 0),
            "-" => value.wrapping_neg(),
            "~" => !value,
            _ => value,
        };
        Ok(signs.into_iter().rev().fold(value, apply))
    }
}

#[cfg(test)]
mod tests {
    use super::super::tokens::tokens;
    use super::*;

    #[test]
    fn expressions_have_the_values_of_c() {
        for (text, value) in [
            ("1", 1),
            ("0x1fu", 31),
            ("010", 8),
            ("1 + 2 * 3 - 4", 3),
            ("10 - 3 - 2", 5),
            ("(1 + 2) * 3", 9),
            ("1 << 4 >> 2", 4),
            ("1 < 2 == 1", 1),
            ("1 | 2 ^ 2 & 3", 1),
            ("0 || 1 && 0", 0),
            ("!0 + -1 + ~0 - -+2", 1),
            ("7 % 4 / 2", 1),
            ("450 >= 460", 0),
        ] {
            assert_eq!(evaluate(&tokens(text)), Ok(value), "{text}");
        }
        let deep = |n: usize| evaluate(&tokens(&format!("{}1{}", "(".repeat(n), ")".repeat(n))));
        assert_eq!(deep(MOST_NESTING), Ok(1));
        for text in ["", "1 +", "1 2", "(1", "1 / 0", "1 % 0", "1 << 64", "x", "1.5"] {
            assert!(evaluate(&tokens(text)).is_err(), "{text}");
        }
        assert!(deep(MOST_NESTING + 1).is_err());
        assert_eq!(evaluate(&tokens(&format!("{}1", "- ".repeat(100_000)))), Ok(1));
    }
}
