//! Macros and their expansion, as C has it: arguments are expanded before they are put in, but beside `##`; the result
//! is looked through again, and no macro is expanded in itself.

use std::rc::Rc;

use rustc_hash::{FxHashMap, FxHashSet};

use super::tokens::{LINE_END, Token, paste};
use crate::error::GlslError;
use crate::vk::glsl::limits::{MOST_BYTES, MOST_NESTING, too_large};

/// The bytes that all expansions may make, with those that do not stay.
const MOST_MADE: usize = 16 * MOST_BYTES;

#[derive(Debug, PartialEq)]
struct Macro {
    /// `None` if it takes none.
    parameters: Option<Vec<Token>>,
    body: Vec<Token>,
}

/// Parameters of a macro.
const MOST_PARAMETERS: usize = 256;

/// Why an expansion ends.
pub(super) enum Failure {
    Mistake(String),
    Refused(GlslError),
}

type Result<T> = std::result::Result<T, Failure>;

fn mistake<T>(text: String) -> Result<T> {
    Err(Failure::Mistake(text))
}

/// Tokens to be read, and the macro that they are of: it is not expanded while they are.
struct Frame {
    tokens: std::vec::IntoIter<Token>,
    of: Option<Rc<str>>,
}

/// What is to be read, the last frame first.
struct Input(Vec<Frame>);

/// The macros that are known.
#[derive(Default)]
pub(super) struct Macros {
    known: FxHashMap<Rc<str>, Rc<Macro>>,
    /// Those that are being expanded.
    open: FxHashSet<Rc<str>>,
    /// Bytes that expansions have made.
    made: usize,
    depth: usize,
    /// For messages.
    pub(super) file: Rc<str>,
    pub(super) line: usize,
}

impl Macros {
    pub(super) fn knows(&self, name: &str) -> bool {
        self.known.contains_key(name)
    }

    pub(super) fn forget(&mut self, name: &str) {
        self.known.remove(name);
    }

    /// What stands behind `#define`.
    pub(super) fn define(&mut self, tokens: &[Token]) -> Result<()> {
        let [name, rest @ ..] = tokens else { return mistake("'#define' : without a name".to_owned()) };
        check_name(name)?;
        let (parameters, body) = match rest {
            [open, rest @ ..] if open.is("(") && !open.spaced => {
                let Some(end) = rest.iter().position(|token| token.is(")")) else {
                    return mistake(format!("'{}' : its parameters do not end", name.text));
                };
                (Some(parameters(name, &rest[..end])?), &rest[end + 1..])
            }
            _ => (None, rest),
        };
        let ends = [body.first(), body.last()];
        if ends.into_iter().flatten().any(|token| token.is("##")) {
            return mistake("'##' : at an end of a macro".to_owned());
        }
        let bare = |token: &Token| Token::new(&token.text, false);
        let defined =
            Macro { parameters: parameters.map(|all| all.iter().map(bare).collect()), body: body.to_vec() };
        if let Some(before) = self.known.get(&name.text) {
            let texts = |of: &Macro| of.body.iter().map(|token| token.text.clone()).collect::<Vec<_>>();
            if before.parameters != defined.parameters || texts(before) != texts(&defined) {
                return mistake(format!("'{}' : macro redefined with another meaning", name.text));
            }
        }
        self.known.insert(name.text.clone(), Rc::new(defined));
        Ok(())
    }

    fn count(&mut self, token: &Token) -> Result<()> {
        // What is empty takes time, too.
        self.made += token.text.len() + 1;
        if self.made > MOST_MADE {
            let what = format!("{}: bytes while its macros are expanded", self.file);
            return Err(Failure::Refused(too_large(what, self.made, MOST_MADE)));
        }
        Ok(())
    }

    fn next(&mut self, input: &mut Input) -> Option<Token> {
        loop {
            if let Some(token) = input.0.last_mut()?.tokens.next() {
                return Some(token);
            }
            if let Some(name) = input.0.pop().and_then(|frame| frame.of) {
                self.open.remove(&name);
            }
        }
    }

    /// Tokens with their macros expanded. Line ends stay, and are counted.
    pub(super) fn expand(&mut self, tokens: Vec<Token>) -> Result<Vec<Token>> {
        let mut input = Input(Vec::new());
        input.push(tokens, None);
        let mut out = Vec::new();
        while let Some(mut token) = self.next(&mut input) {
            self.count(&token)?;
            if token.is(LINE_END) {
                self.line += 1;
            } else if token.is("#") || token.is("##") {
                // The compiler would take it for a directive.
                return mistake("'#' : not at the beginning of a line".to_owned());
            } else if token.is("__LINE__") {
                token = Token::made(&self.line.to_string());
            } else if let Some(known) = self.known.get(&token.text).filter(|_| !token.closed).cloned() {
                if self.open.contains(&token.text) {
                    token.closed = true;
                } else if self.begin(&known, &token, &mut input)? {
                    continue;
                }
            }
            out.push(token);
        }
        Ok(out)
    }

    /// Puts what a macro stands for in front of what is to be read. Not where it takes arguments, and none are there.
    fn begin(&mut self, known: &Macro, name: &Token, input: &mut Input) -> Result<bool> {
        let mut body = match &known.parameters {
            None => self.put_in(known, &[])?,
            Some(parameters) => {
                let mut line_ends = Vec::new();
                let first = loop {
                    match self.next(input) {
                        Some(token) if token.is(LINE_END) => line_ends.push(token),
                        first => break first,
                    }
                };
                if !first.as_ref().is_some_and(|token| token.is("(")) {
                    input.push(line_ends.into_iter().chain(first).collect(), None);
                    return Ok(false);
                }
                let arguments = self.arguments(name, parameters.len(), input, &mut line_ends)?;
                let body = self.put_in(known, &arguments)?;
                input.push(line_ends, None);
                body
            }
        };
        if let Some(first) = body.first_mut() {
            first.spaced |= name.spaced;
        }
        self.open.insert(name.text.clone());
        input.push(body, Some(name.text.clone()));
        Ok(true)
    }

    /// What stands between parentheses; line ends come after it.
    fn arguments(
        &mut self,
        name: &Token,
        wanted: usize,
        input: &mut Input,
        line_ends: &mut Vec<Token>,
    ) -> Result<Vec<Vec<Token>>> {
        let mut all = vec![Vec::new()];
        let mut depth = 0usize;
        loop {
            let Some(token) = self.next(input) else {
                return mistake(format!("'{}' : its arguments do not end", name.text));
            };
            self.count(&token)?;
            match &*token.text {
                LINE_END => {
                    line_ends.push(token);
                    continue;
                }
                ")" if depth == 0 => break,
                "," if depth == 0 => {
                    all.push(Vec::new());
                    continue;
                }
                "(" => depth += 1,
                ")" => depth -= 1,
                _ => {}
            }
            if let Some(last) = all.last_mut() {
                last.push(Token { spaced: true, ..token });
            }
        }
        let none = wanted == 0 && all == [Vec::new()];
        if all.len() != wanted && !none {
            let text = format!("'{}' : takes {wanted} arguments, {} were given", name.text, all.len());
            return mistake(text);
        }
        Ok(all)
    }

    /// A macro's body with these arguments.
    fn put_in(&mut self, known: &Macro, arguments: &[Vec<Token>]) -> Result<Vec<Token>> {
        let parameters = known.parameters.as_deref().unwrap_or_default();
        let mut expanded: Vec<Option<Vec<Token>>> = vec![None; arguments.len()];
        let mut out: Vec<Token> = Vec::new();
        // Where the operands begin that are pasted together.
        let mut begin = 0;
        for (i, token) in known.body.iter().enumerate() {
            self.count(token)?;
            if token.is("##") {
                continue;
            }
            let pasted = i > 0 && known.body[i - 1].is("##");
            if !pasted {
                begin = out.len();
            }
            let is_pasted = pasted || known.body.get(i + 1).is_some_and(|next| next.is("##"));
            let argument = parameters.iter().position(|parameter| parameter.text == token.text);
            let operand = match argument {
                None => std::slice::from_ref(token),
                Some(k) if is_pasted => &arguments[k][..],
                Some(k) => {
                    if expanded[k].is_none() {
                        expanded[k] = Some(self.argument(arguments[k].clone())?);
                    }
                    expanded[k].as_deref().unwrap_or_default()
                }
            };
            let mut rest = operand;
            if pasted
                && out.len() > begin
                && let (Some(first), Some((second, others))) = (out.last_mut(), operand.split_first())
            {
                let Some(both) = paste(first, second) else {
                    return mistake(format!(
                        "'##' : {} and {} are no word together",
                        first.text, second.text
                    ));
                };
                (*first, rest) = (both, others);
            }
            for token in rest {
                self.count(token)?;
                out.push(Token { made: true, ..token.clone() });
            }
        }
        Ok(out)
    }

    fn argument(&mut self, tokens: Vec<Token>) -> Result<Vec<Token>> {
        self.depth += 1;
        if self.depth > MOST_NESTING {
            let what = format!("{}: macros inside of arguments of macros", self.file);
            return Err(Failure::Refused(too_large(what, self.depth, MOST_NESTING)));
        }
        let expanded = self.expand(tokens)?;
        self.depth -= 1;
        Ok(expanded)
    }
}

impl Input {
    fn push(&mut self, tokens: Vec<Token>, of: Option<Rc<str>>) {
        self.0.push(Frame { tokens: tokens.into_iter(), of });
    }
}

/// Names that a source may give to a macro.
pub(super) fn check_name(name: &Token) -> Result<()> {
    const OWN: [&str; 4] = ["defined", "__LINE__", "__FILE__", "__VERSION__"];
    if !name.is_name() {
        return mistake(format!("'{}' : is no name for a macro", name.text));
    }
    if name.text.starts_with("GL_") || OWN.contains(&&*name.text) {
        return mistake(format!("'{}' : is a name of the language's own", name.text));
    }
    Ok(())
}

fn parameters(name: &Token, tokens: &[Token]) -> Result<Vec<Token>> {
    if tokens.is_empty() {
        return Ok(Vec::new());
    }
    let mut all: Vec<Token> = Vec::new();
    for part in tokens.split(|token| token.is(",")) {
        match part {
            _ if all.len() == MOST_PARAMETERS => {
                return mistake(format!("'{}' : more than {MOST_PARAMETERS} parameters", name.text));
            }
            [one] if one.is_name() && all.iter().all(|other| other.text != one.text) => all.push(one.clone()),
            _ => return mistake(format!("'{}' : its parameters are no names, or twice the same", name.text)),
        }
    }
    Ok(all)
}
