//! Sources with their macros expanded, their conditions decided and their files included. The compiler would do all of
//! that itself, but without bounds: a few lines of macros are more text than there is memory. It gets a text without
//! macros, conditions and includes, so that it can make no more of it than is there.

mod condition;
mod macros;
mod tokens;

use rustc_hash::FxHashMap;

use self::macros::{Failure, Macros, check_name};
use self::tokens::{Token, lines, write};
use super::limits::{MOST_BYTES, MOST_NESTING, too_large};
use crate::error::{GlslError, GlslMistake};

/// An `#include`.
pub(super) struct Wanted<'a> {
    pub(super) name: &'a str,
    /// Whether it is looked for beside the including file, too.
    pub(super) beside: bool,
    pub(super) including: &'a str,
    /// Files that include each other down to it.
    pub(super) depth: usize,
}

/// The environment of a source: defines and includes.
pub(super) trait Surroundings {
    /// The name and the text of a file; or why it can't be included, which is a mistake of the source.
    fn include(&mut self, wanted: &Wanted<'_>) -> Result<Result<(String, String), String>, GlslError>;

    /// What a macro of the compiler's own stands for, by the version that the source has declared.
    fn predefined(&mut self, version: &str, name: &str) -> Option<String>;
}

/// The text of a source for the compiler, with line numbers of its files.
pub(super) fn preprocess(
    file: &str,
    text: &str,
    defines: &[(String, String)],
    surroundings: &mut dyn Surroundings,
) -> Result<String, GlslError> {
    let mut source = Source {
        macros: Macros::default(),
        surroundings,
        predefined: FxHashMap::default(),
        version: String::new(),
        out: String::new(),
    };
    source.enter(file, 1);
    for (name, value) in defines {
        let mut all = tokens::tokens(value);
        all.insert(0, Token::new(name, true));
        if let Some(first) = all.get_mut(1) {
            // Parentheses are its value's.
            first.spaced = true;
        }
        let defined = source.macros.define(&all);
        source.told(defined)?;
    }
    source.file(text, 0)?;
    Ok(source.out)
}

/// A group between `#if` and `#endif`.
struct Condition {
    /// Whether the part that is being read counts,
    active: bool,
    /// some part of it was chosen,
    chosen: bool,
    /// `#else` was there.
    last: bool,
}

struct Source<'a> {
    macros: Macros,
    surroundings: &'a mut dyn Surroundings,
    predefined: FxHashMap<String, Option<String>>,
    version: String,
    out: String,
}

impl Source<'_> {
    fn enter(&mut self, file: &str, line: usize) {
        (self.macros.file, self.macros.line) = (file.into(), line);
    }

    fn told<T>(&self, result: Result<T, Failure>) -> Result<T, GlslError> {
        result.map_err(|failure| match failure {
            Failure::Refused(error) => error,
            Failure::Mistake(text) => {
                let (file, line) = (self.macros.file.to_string(), Some(self.macros.line as u32));
                GlslError::Mistakes { mistakes: vec![GlslMistake { file, line, text }] }
            }
        })
    }

    fn mistake<T>(&self, text: impl Into<String>) -> Result<T, GlslError> {
        self.told(Err(Failure::Mistake(text.into())))
    }

    /// Takes in a file. Its groups of conditions end in it.
    fn file(&mut self, text: &str, depth: usize) -> Result<(), GlslError> {
        let (lines, open_comment) = lines(text);
        let mut conditions: Vec<Condition> = Vec::new();
        let mut run = Vec::new();
        for line in lines {
            let active = conditions.iter().all(|condition| condition.active);
            let ends = std::iter::repeat_n(Token::line_end(), line.count);
            match line.tokens.split_first() {
                Some((sign, directive)) if sign.is("#") => {
                    self.run(std::mem::take(&mut run))?;
                    let included = self.directive(directive, line.count, &mut conditions, depth)?;
                    if !included {
                        self.run(ends.collect())?;
                    }
                }
                _ => {
                    run.extend(line.tokens.into_iter().filter(|_| active));
                    run.extend(ends);
                }
            }
        }
        self.run(run)?;
        if open_comment {
            return self.mistake("'/*' : the comment does not end");
        }
        if !conditions.is_empty() {
            return self.mistake("'#if' : without #endif");
        }
        Ok(())
    }

    /// Expands lines without directives.
    fn run(&mut self, tokens: Vec<Token>) -> Result<(), GlslError> {
        let expanded = self.macros.expand(tokens);
        let expanded = self.told(expanded)?;
        self.put(&expanded)
    }

    fn put(&mut self, tokens: &[Token]) -> Result<(), GlslError> {
        write(tokens, &mut self.out);
        if self.out.len() > MOST_BYTES {
            let what = format!("{}: bytes of source once its macros are expanded", self.macros.file);
            return Err(too_large(what, self.out.len(), MOST_BYTES));
        }
        Ok(())
    }

    /// What stands behind `#`, on this many lines. Whether it was an `#include`, which writes its own line numbers.
    fn directive(
        &mut self,
        tokens: &[Token],
        lines: usize,
        conditions: &mut Vec<Condition>,
        depth: usize,
    ) -> Result<bool, GlslError> {
        let Some((name, rest)) = tokens.split_first() else { return Ok(false) };
        let active = conditions.iter().all(|condition| condition.active);
        match &*name.text {
            "if" | "ifdef" | "ifndef" => {
                if conditions.len() == MOST_NESTING {
                    let what = format!("{}: levels of #if", self.macros.file);
                    return Err(too_large(what, MOST_NESTING + 1, MOST_NESTING));
                }
                // What does not count is not looked at.
                let chosen = active && self.decide(&name.text, rest)?;
                conditions.push(Condition { active: chosen, chosen: chosen || !active, last: false });
            }
            "elif" | "else" => {
                let Some(mut condition) = conditions.pop().filter(|condition| !condition.last) else {
                    return self.mistake(format!("'#{}' : without #if", name.text));
                };
                condition.last = name.is("else");
                condition.active = !condition.chosen && (condition.last || self.decide("if", rest)?);
                condition.chosen |= condition.active;
                conditions.push(condition);
            }
            "endif" => {
                if conditions.pop().is_none() {
                    return self.mistake("'#endif' : without #if");
                }
            }
            _ if !active => {}
            "define" => {
                let defined = self.macros.define(rest);
                self.told(defined)?;
            }
            "undef" => {
                let [macro_name] = rest else { return self.mistake("'#undef' : takes one name") };
                self.told(check_name(macro_name))?;
                self.macros.forget(&macro_name.text);
            }
            "include" => {
                self.include(rest, self.macros.line + lines, depth)?;
                return Ok(true);
            }
            "line" => {
                let expanded = self.macros.expand(rest.to_vec());
                let expanded = self.told(expanded)?;
                let number = expanded.first().and_then(|token| token.text.parse::<usize>().ok());
                let Some(number) = number.filter(|number| *number < 1 << 31) else {
                    return self.mistake("'#line' : without a number");
                };
                self.pass("line", &expanded)?;
                // Line ends are still to come.
                self.macros.line = number.saturating_sub(lines);
                if let Some(file) = expanded.get(1).and_then(|token| token.text.strip_prefix('"')) {
                    self.macros.file = file.trim_end_matches('"').into();
                }
            }
            "version" | "extension" | "pragma" | "error" => {
                if name.is("version") {
                    write(rest, &mut self.version);
                }
                self.pass(&name.text, rest)?;
            }
            other => return self.mistake(format!("'#{other}' : invalid directive")),
        }
        Ok(false)
    }

    /// A directive that is the compiler's.
    fn pass(&mut self, name: &str, rest: &[Token]) -> Result<(), GlslError> {
        self.put(&[Token::new(&format!("#{name}"), false)])?;
        let mut rest = rest.to_vec();
        rest.iter_mut().take(1).for_each(|first| first.spaced = true);
        self.put(&rest)
    }

    fn include(&mut self, tokens: &[Token], next_line: usize, depth: usize) -> Result<(), GlslError> {
        let mut header = String::new();
        write(tokens, &mut header);
        let between = |open: char, close: char| header.strip_prefix(open)?.strip_suffix(close);
        let (wanted, beside) = match (between('"', '"'), between('<', '>')) {
            (Some(name), _) => (name, true),
            (_, Some(name)) => (name, false),
            _ => return self.mistake("'#include' : without \"a name\" or <a name>"),
        };
        let including = self.macros.file.clone();
        let wanted = Wanted { name: wanted, beside, including: &including, depth: depth + 1 };
        let (name, text) = match self.surroundings.include(&wanted)? {
            Ok(found) => found,
            Err(why) => return self.mistake(format!("'#include' : {why}")),
        };
        self.place(&name, 1)?;
        self.enter(&name, 1);
        self.file(&text, depth + 1)?;
        self.place(&including, next_line)?;
        self.enter(&including, next_line);
        Ok(())
    }

    /// Tells the compiler where the next line stands.
    fn place(&mut self, file: &str, line: usize) -> Result<(), GlslError> {
        // What would end the name, or begin a comment for some.
        let name: String = file
            .chars()
            .map(|c| match c {
                '\\' => '/',
                '"' | '*' => '?',
                c if c.is_control() => '?',
                c => c,
            })
            .collect();
        self.put(&[Token::new(&format!("#line {line} \"{name}\""), false), Token::line_end()])
    }

    fn decide(&mut self, name: &str, rest: &[Token]) -> Result<bool, GlslError> {
        if name != "if" {
            let [macro_name] = rest else { return self.mistake(format!("'#{name}' : takes one name")) };
            return Ok(self.is_defined(macro_name) == (name == "ifdef"));
        }
        let mut tokens = Vec::new();
        let mut rest = rest;
        while let Some((token, following)) = rest.split_first() {
            let (asked, behind) = match following {
                [open, asked, close, behind @ ..] if open.is("(") && close.is(")") => (Some(asked), behind),
                [asked, behind @ ..] => (Some(asked), behind),
                [] => (None, following),
            };
            match asked.filter(|_| token.is("defined")) {
                Some(asked) => {
                    tokens.push(Token::new(if self.is_defined(asked) { "1" } else { "0" }, true));
                    rest = behind;
                }
                None => {
                    tokens.push(token.clone());
                    rest = following;
                }
            }
        }
        let expanded = self.macros.expand(tokens);
        let mut expanded = self.told(expanded)?;
        for token in expanded.iter_mut().filter(|token| token.is_name()) {
            // An undefined name is zero.
            let value = self.predefined(&token.text);
            token.text = value.as_deref().unwrap_or("0").into();
        }
        let value = condition::evaluate(&expanded).map_err(Failure::Mistake);
        Ok(self.told(value)? != 0)
    }

    fn is_defined(&mut self, name: &Token) -> bool {
        name.is_name() && (self.macros.knows(&name.text) || self.predefined(&name.text).is_some())
    }

    fn predefined(&mut self, name: &str) -> Option<String> {
        let Source { surroundings, predefined, version, .. } = self;
        let found = || surroundings.predefined(version, name);
        predefined.entry(name.to_owned()).or_insert_with(found).clone()
    }
}

#[cfg(test)]
mod tests;
