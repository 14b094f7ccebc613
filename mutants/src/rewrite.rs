//! Puts switches into a source: where a mutant has its place, what it says stands beside what is right.

use std::ops::Range;

/// A place of a source that has a switch.
#[derive(Clone, Debug)]
pub(crate) struct Site<'a> {
    /// By which the switch is turned on.
    pub(crate) number: usize,
    pub(crate) span: Range<usize>,
    pub(crate) new: &'a str,
}

/// Whether statements are replaced, and not an expression.
pub(crate) fn is_statement(old: &str) -> bool {
    old.trim_end().ends_with(';')
}

/// Where a snippet stands in a source, whatever white space is in between. It must stand there once.
pub(crate) fn find(source: &str, old: &str) -> Result<Range<usize>, String> {
    let visible = |text: &str| -> Vec<(usize, char)> {
        text.char_indices().filter(|(_, c)| !c.is_whitespace()).collect()
    };
    let (text, wanted) = (visible(source), visible(old));
    let same = |window: &&[(usize, char)]| window.iter().zip(&wanted).all(|((_, a), (_, b))| a == b);
    let found: Vec<_> = text.windows(wanted.len().max(1)).filter(same).collect();
    match found[..] {
        [[(begin, _), .., (last, c)]] => Ok(*begin..last + c.len_utf8()),
        [[(begin, c)]] => Ok(*begin..begin + c.len_utf8()),
        _ => Err(format!("stands there {} times and not once: {old}", found.len())),
    }
}

/// The source with its switches. Sites may be the same or lie in each other, but not overlap otherwise.
pub(crate) fn rewrite(source: &str, sites: &[Site<'_>]) -> Result<String, String> {
    let mut sites = sites.to_vec();
    sites.sort_by_key(|site| (site.span.start, std::cmp::Reverse(site.span.end), site.number));
    render(source, 0..source.len(), &sites)
}

fn render(source: &str, range: Range<usize>, sites: &[Site<'_>]) -> Result<String, String> {
    let mut out = String::new();
    let (mut at, mut rest) = (range.start, sites);
    while let Some(first) = rest.first() {
        let span = first.span.clone();
        let inside = rest.iter().take_while(|site| site.span.start < span.end).count();
        let (these, others) = rest.split_at(inside);
        rest = others;
        let (same, nested) = these.split_at(these.iter().take_while(|site| site.span == span).count());
        if let Some(over) = these.iter().find(|site| site.span.end > span.end) {
            let text = &source[over.span.clone()];
            return Err(format!("overlaps with another mutant's place: {text}"));
        }
        out.push_str(&source[at..span.start]);
        let statement = is_statement(&source[span.clone()]);
        out.push_str(if statement { "" } else { "(" });
        for Site { number, new, .. } in same {
            out.push_str(&format!("if crate::mutant::is({number}) {{ {new} }} else "));
        }
        out.push_str(&format!("{{ {} }}", render(source, span.clone(), nested)?));
        out.push_str(if statement { "" } else { ")" });
        at = span.end;
    }
    out.push_str(&source[at..range.end]);
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(source: &str, mutants: &[(&str, &'static str)]) -> Result<String, String> {
        let sites: Result<Vec<Site<'_>>, String> = mutants
            .iter()
            .enumerate()
            .map(|(number, (old, new))| Ok(Site { number, span: find(source, old)?, new }))
            .collect();
        rewrite(source, &sites?)
    }

    #[test]
    fn expressions_and_statements_get_switches() {
        assert_eq!(
            with("let a = b +\n    1;\nc();\n", &[("b + 1", "b"), ("c();", "")]).unwrap(),
            "let a = (if crate::mutant::is(0) { b } else { b +\n    1 });\n\
             if crate::mutant::is(1) {  } else { c(); }\n"
        );
    }

    #[test]
    fn places_may_be_the_same_or_lie_in_each_other() {
        assert_eq!(
            with("f(a && b)", &[("a", "x"), ("a && b", "y"), ("a && b", "z")]).unwrap(),
            "f((if crate::mutant::is(1) { y } else if crate::mutant::is(2) { z } else \
             { (if crate::mutant::is(0) { x } else { a }) && b }))"
        );
        assert!(with("a + b + c", &[("a + b", "0"), ("b + c", "0")]).unwrap_err().starts_with("overlaps"));
    }

    #[test]
    fn a_snippet_stands_there_once() {
        assert!(with("a + a", &[("a", "b")]).unwrap_err().starts_with("stands there 2 times"));
        assert!(with("a + a", &[("b", "a")]).unwrap_err().starts_with("stands there 0 times"));
    }
}
