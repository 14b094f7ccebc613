//! As much JSON as reports need to write.

use std::fmt::{self, Write as _};

/// A string, quoted.
pub(crate) struct Text<'a>(pub(crate) &'a str);

impl fmt::Display for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_char('"')?;
        for c in self.0.chars() {
            match c {
                '"' => f.write_str("\\\"")?,
                '\\' => f.write_str("\\\\")?,
                // So that no string can end the script element that a page keeps its data in.
                '<' => f.write_str("\\u003c")?,
                c if c < ' ' || ('\u{7f}'..'\u{a0}').contains(&c) || matches!(c, '\u{2028}' | '\u{2029}') => {
                    write!(f, "\\u{:04x}", c as u32)?;
                }
                c => f.write_char(c)?,
            }
        }
        f.write_char('"')
    }
}

/// A number, or `null` if there is none or JSON can't express it.
pub(crate) struct Number(pub(crate) Option<f64>);

impl From<f64> for Number {
    fn from(x: f64) -> Number {
        Number(Some(x))
    }
}

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.filter(|x| x.is_finite()) {
            Some(x) => write!(f, "{x}"),
            None => f.write_str("null"),
        }
    }
}

/// Values with commas between them.
pub(crate) fn list<T: fmt::Display>(values: impl IntoIterator<Item = T>) -> String {
    let mut out = String::from("[");
    for (i, value) in values.into_iter().enumerate() {
        let _ = write!(out, "{}{value}", if i == 0 { "" } else { "," });
    }
    out.push(']');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_are_quoted_and_harmless() {
        assert_eq!(Text("a\"b\\c\n</script>µ").to_string(), "\"a\\\"b\\\\c\\u000a\\u003c/script>µ\"");
        assert_eq!(Number(Some(f64::NAN)).to_string(), "null");
        assert_eq!(list([Number::from(1.5), Number(None)]), "[1.5,null]");
    }
}
