//! Sources as lines of tokens, and back.

use std::rc::Rc;

/// A word, a number, a string, or one of the signs that are longer than a character.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Token {
    pub(super) text: Rc<str>,
    /// Whether there is space in front of it.
    pub(super) spaced: bool,
    /// Whether a macro has made it. Such tokens are written apart, so that two of them never become another one.
    pub(super) made: bool,
    /// The name of a macro inside of its own expansion, which is never expanded.
    pub(super) closed: bool,
}

/// A line, with those that it goes on with.
#[derive(Debug)]
pub(super) struct Line {
    pub(super) tokens: Vec<Token>,
    /// Lines of the file.
    pub(super) count: usize,
}

/// Signs of several characters, the longest first.
const SIGNS: [&str; 23] = [
    "<<=", ">>=", "<<", ">>", "<=", ">=", "==", "!=", "&&", "||", "^^", "++", "--", "+=", "-=", "*=", "/=",
    "%=", "&=", "|=", "^=", "##", "::",
];

pub(super) const LINE_END: &str = "\n";

impl Token {
    pub(super) fn new(text: &str, spaced: bool) -> Token {
        Token { text: text.into(), spaced, made: false, closed: false }
    }

    pub(super) fn made(text: &str) -> Token {
        Token { made: true, ..Token::new(text, true) }
    }

    pub(super) fn line_end() -> Token {
        Token::new(LINE_END, false)
    }

    pub(super) fn is(&self, text: &str) -> bool {
        &*self.text == text
    }

    pub(super) fn is_name(&self) -> bool {
        self.text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
    }
}

/// How long the first token of a text is.
fn length(text: &str) -> usize {
    let part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let mut chars = text.chars();
    let (first, second) = (chars.next().unwrap_or(' '), chars.next().unwrap_or(' '));
    if first.is_ascii_digit() || first == '.' && second.is_ascii_digit() {
        let hexadecimal = text.starts_with("0x") || text.starts_with("0X");
        let mut before = ' ';
        let mut goes_on = |c: char| {
            let sign = matches!(c, '+' | '-') && matches!(before, 'e' | 'E') && !hexadecimal;
            before = c;
            part(c) || c == '.' || sign
        };
        return text.find(|c| !goes_on(c)).unwrap_or(text.len());
    }
    if part(first) {
        return text.find(|c| !part(c)).unwrap_or(text.len());
    }
    if first == '"' {
        return text[1..].find('"').map_or(text.len(), |end| end + 2);
    }
    SIGNS.iter().find(|sign| text.starts_with(**sign)).map_or(first.len_utf8(), |sign| sign.len())
}

/// Two tokens as one, if they are one.
pub(super) fn paste(first: &Token, second: &Token) -> Option<Token> {
    let text = format!("{}{}", first.text, second.text);
    (length(&text) == text.len()).then(|| Token { spaced: first.spaced, ..Token::made(&text) })
}

/// The tokens of a piece of a line; a comment may begin or end in it.
fn scan(mut rest: &str, in_comment: &mut bool, tokens: &mut Vec<Token>) {
    let mut spaced = true;
    while !rest.is_empty() {
        if *in_comment {
            spaced = true;
            let Some(end) = rest.find("*/") else { return };
            (rest, *in_comment) = (&rest[end + 2..], false);
        } else if rest.starts_with("//") {
            return;
        } else if rest.starts_with("/*") {
            (rest, *in_comment) = (&rest[2..], true);
        } else if rest.starts_with(|c: char| c.is_ascii_whitespace() || c == '\x0b') {
            (rest, spaced) = (&rest[1..], true);
        } else {
            let (token, following) = rest.split_at(length(rest));
            tokens.push(Token::new(token, spaced));
            (rest, spaced) = (following, false);
        }
    }
}

/// The lines of a text, without comments. The second is whether a comment never ends.
pub(super) fn lines(text: &str) -> (Vec<Line>, bool) {
    let text = text.replace("\r\n", "\n").replace('\r', "\n");
    let text = text.strip_suffix('\n').unwrap_or(&text);
    let mut lines = Vec::new();
    let (mut in_comment, mut spliced) = (false, String::new());
    let mut line = Line { tokens: Vec::new(), count: 0 };
    for piece in text.split('\n') {
        line.count += 1;
        // A word may go on in the next line.
        if let Some(piece) = piece.strip_suffix('\\') {
            spliced.push_str(piece);
            continue;
        }
        spliced.push_str(piece);
        scan(&spliced, &mut in_comment, &mut line.tokens);
        spliced.clear();
        if !in_comment {
            lines.push(std::mem::replace(&mut line, Line { tokens: Vec::new(), count: 0 }));
        }
    }
    scan(&spliced, &mut in_comment, &mut line.tokens);
    if line.count > 0 {
        lines.push(line);
    }
    (lines, in_comment)
}

/// The tokens of a text, whatever its lines.
pub(super) fn tokens(text: &str) -> Vec<Token> {
    lines(text).0.into_iter().flat_map(|line| line.tokens).collect()
}

/// Writes tokens behind a text.
pub(super) fn write(tokens: &[Token], out: &mut String) {
    let mut apart = false;
    for token in tokens {
        if token.is(LINE_END) {
            out.push('\n');
            apart = false;
            continue;
        }
        if (token.spaced || token.made || apart) && !out.is_empty() && !out.ends_with([' ', '\n']) {
            out.push(' ');
        }
        out.push_str(&token.text);
        apart = token.made;
    }
}
