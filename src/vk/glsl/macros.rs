//! How much text the macros of a source make of it, at the most, before the compiler expands them. The compiler can't be stopped once it
//! has begun, so nothing is counted too low:
//!
//! - Each definition of a name counts, since conditions may choose any.
//! - An argument counts as often as the macro has it, times what the calls around it in the macro's body make of it.
//! - A macro with parameters whose name stands somewhere without a `(` behind it is *loose*: it may be handed on, and be called with any
//!   `(` that has a macro, a parameter or nothing definite before it.
//! - A macro whose name is made of words of the source may be named by any `##`.
//! - Macros that stand in each other's definitions are expanded in each other once each.

use rustc_hash::{FxHashMap, FxHashSet};

use super::limits::{MOST_CYCLIC, MOST_EXPANDED, MOST_FILES, readings, tokens, too_large};
use crate::error::GlslError;

/// The compiler cuts longer names off.
const MOST_NAME: usize = 1024;
/// Longer names count as made by `##` if a word of the source begins them.
const MOST_SPLIT: usize = 64;

/// All that was read, and what its macros make of it.
#[derive(Debug, Default)]
pub(super) struct Macros {
    texts: Vec<Text>,
}

#[derive(Debug)]
struct Text {
    text: String,
    /// How often it was read.
    times: usize,
    made: usize,
}

impl Macros {
    /// Takes in a text, and refuses it if all that was read would become too much. A text that was refused must not be compiled.
    pub(super) fn check(&mut self, file: &str, text: &str) -> Result<(), GlslError> {
        // Once more the same has no new definitions.
        if let Some(known) = self.texts.iter_mut().find(|known| known.text == text) {
            known.times += 1;
        } else {
            if self.texts.len() > MOST_FILES {
                let what = format!("{file}: files that are included");
                return Err(too_large(what, self.texts.len(), MOST_FILES));
            }
            self.texts.push(Text { text: text.to_owned(), times: 1, made: 0 });
            self.count_again(file)?;
        }
        let each = self.texts.iter().map(|text| text.made.saturating_mul(text.times));
        let made = each.fold(0, usize::saturating_add);
        if made > MOST_EXPANDED {
            let what = format!("{file}: bytes once its macros are expanded, at the most");
            return Err(too_large(what, made, MOST_EXPANDED));
        }
        Ok(())
    }

    /// A definition reaches what stands in other files, too.
    fn count_again(&mut self, file: &str) -> Result<(), GlslError> {
        let texts: Vec<Vec<String>> = self.texts.iter().map(|text| readings(&text.text)).collect();
        let mut sources: Vec<Vec<Source<'_>>> = Vec::new();
        for readings in &texts {
            sources.push(readings.iter().map(|reading| Source::new(reading)).collect());
        }
        let (names, growths) = Names::of(sources.iter().flatten(), file)?;
        for (text, readings) in self.texts.iter_mut().zip(&sources) {
            let made = readings.iter().map(|source| {
                let growth = walk(&names.items(&source.text, &[]), &growths, None, 0);
                // A call that a file leaves open may end in another one.
                growth.bytes.saturating_mul(growth.opens)
            });
            text.made = made.max().unwrap_or(0);
        }
        Ok(())
    }
}

/// A text, taken apart.
struct Source<'a> {
    definitions: Vec<(&'a str, Definition<'a>)>,
    /// All but definitions.
    text: Vec<&'a str>,
}

/// `None` for parameters: a macro without parentheses.
struct Definition<'a> {
    parameters: Option<Vec<&'a str>>,
    body: Vec<&'a str>,
}

impl<'a> Source<'a> {
    fn new(text: &'a str) -> Source<'a> {
        let all: Vec<&str> = tokens(text).collect();
        let mut source = Source { definitions: Vec::new(), text: Vec::new() };
        for line in all.split(|token| *token == "\n") {
            match line {
                ["#", "define", name, rest @ ..] => {
                    source.definitions.push((cut(name), Definition::new(name, rest)));
                }
                // Names, and no uses.
                ["#", "undef" | "ifdef" | "ifndef" | "extension" | "version", ..] => {}
                line => source.text.extend(line),
            }
        }
        source
    }
}

impl<'a> Definition<'a> {
    fn new(name: &'a str, rest: &[&'a str]) -> Definition<'a> {
        // Only a parenthesis right behind the name begins parameters.
        let is_behind =
            |token: &&&str| **token == "(" && token.as_ptr() == name.as_bytes().as_ptr_range().end;
        let end = rest.first().filter(is_behind).and_then(|_| rest.iter().position(|token| *token == ")"));
        match end {
            Some(end) => Definition {
                parameters: Some(rest[1..end].iter().copied().filter(|token| *token != ",").collect()),
                body: rest[end + 1..].to_vec(),
            },
            None => Definition { parameters: None, body: rest.to_vec() },
        }
    }
}

fn cut(name: &str) -> &str {
    &name[..name.len().min(MOST_NAME)]
}

fn is_word(token: &str) -> bool {
    token.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
}

/// The words that the compiler may see in a token: behind a number that ends in letters, it sees one from some letter on.
fn words_in(token: &str) -> impl Iterator<Item = &str> {
    let token = cut(token);
    let starts = match token.as_bytes().first() {
        Some(first) if first.is_ascii_digit() => 1..token.len(),
        _ => 0..1,
    };
    starts.map(|start| &token[start..]).filter(|word| is_word(word))
}

/// What becomes of one use of a name.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Growth {
    bytes: usize,
    /// How often it has an argument.
    copies: usize,
    /// How often calls that it begins and does not end have what comes behind it.
    opens: usize,
}

/// Of a name that stands for nothing.
const NONE: Growth = Growth { bytes: 0, copies: 1, opens: 1 };

impl Growth {
    fn max(self, other: Growth) -> Growth {
        Growth {
            bytes: self.bytes.max(other.bytes),
            copies: self.copies.max(other.copies),
            opens: self.opens.max(other.opens),
        }
    }
}

/// Whatever is loose, and whatever `##` may name, as names of their own.
const LOOSE: usize = 0;
const PASTED: usize = 1;

/// A part of a body or of a text.
#[derive(Clone, Copy, Debug)]
enum Item {
    Bytes(usize),
    Name {
        index: usize,
        bytes: usize,
    },
    Parameter(usize),
    /// A parenthesis, with the macro it may belong to; with `loose` it may belong to any that is loose.
    Open {
        named: Option<usize>,
        loose: bool,
    },
    Close,
}

struct Names<'a> {
    indices: FxHashMap<&'a str, usize>,
    /// Whether all definitions of a name, or some, have parameters.
    always_called: Vec<bool>,
    ever_called: Vec<bool>,
}

impl<'a> Names<'a> {
    /// The names that are defined, and what becomes of each.
    fn of<'s>(
        sources: impl Iterator<Item = &'s Source<'a>> + Clone,
        file: &str,
    ) -> Result<(Names<'a>, Vec<Growth>), GlslError>
    where
        'a: 's,
    {
        let mut names = Names {
            indices: FxHashMap::default(),
            always_called: vec![false; 2],
            ever_called: vec![false; 2],
        };
        for (name, definition) in sources.clone().flat_map(|source| &source.definitions) {
            let index = *names.indices.entry(name).or_insert(names.always_called.len());
            if index == names.always_called.len() {
                names.always_called.push(true);
                names.ever_called.push(false);
            }
            names.always_called[index] &= definition.parameters.is_some();
            names.ever_called[index] |= definition.parameters.is_some();
        }
        let bodies = || sources.clone().flat_map(|source| &source.definitions);
        let mut graph = Graph::new(names.always_called.len());
        for (name, definition) in bodies() {
            let parameters = definition.parameters.as_deref().unwrap_or(&[]);
            let items = names.items(&definition.body, parameters);
            graph.definitions[names.indices[name]].push((items, parameters.len()));
        }
        let all = || {
            let text = sources.clone().map(|source| &source.text);
            bodies().map(|(_, definition)| &definition.body).chain(text)
        };
        graph.members[PASTED] = names.pasted(all());
        graph.members[LOOSE] = names.loose(all(), &graph.members[PASTED]);
        let growths = graph.growths(file)?;
        Ok((names, growths))
    }

    fn items(&self, tokens: &[&str], parameters: &[&str]) -> Vec<Item> {
        let mut items = Vec::with_capacity(tokens.len());
        for (at, token) in tokens.iter().enumerate() {
            let before = at.checked_sub(1).map(|before| tokens[before]);
            // With the space that the compiler puts between.
            let bytes = token.len() + 1;
            let parameter = || parameters.iter().position(|parameter| parameter == token);
            match *token {
                "(" => {
                    let is_pasted = at > 1 && tokens[at - 2] == "#";
                    items.push(self.open(before, is_pasted, parameters));
                }
                ")" => items.push(Item::Close),
                "#" if before == Some("#") => items.push(Item::Name { index: PASTED, bytes }),
                _ => match parameter() {
                    Some(parameter) => items.push(Item::Parameter(parameter)),
                    None => {
                        let known = words_in(token).filter_map(|word| self.indices.get(word));
                        let start = items.len();
                        items.extend(known.map(|&index| Item::Name { index, bytes }));
                        if items.len() == start {
                            items.push(Item::Bytes(bytes));
                        }
                    }
                },
            }
        }
        items
    }

    fn open(&self, before: Option<&str>, is_pasted: bool, parameters: &[&str]) -> Item {
        // Nothing is before it yet, or what is before it may go.
        let Some(before) = before.filter(|before| !matches!(*before, "(" | ")" | "," | "#")) else {
            return Item::Open { named: None, loose: true };
        };
        if is_pasted || parameters.contains(&before) {
            return Item::Open { named: None, loose: true };
        }
        let named = words_in(before).find_map(|word| self.indices.get(word).copied());
        let certain = is_word(before) && named.is_some_and(|index| self.always_called[index]);
        Item::Open { named, loose: named.is_some() && !certain }
    }

    /// Names with parameters that stand somewhere without a parenthesis behind them, or that `##` may make.
    fn loose<'s>(&self, all: impl Iterator<Item = &'s Vec<&'a str>>, pasted: &[usize]) -> Vec<usize>
    where
        'a: 's,
    {
        let mut loose: FxHashSet<usize> = pasted.iter().copied().collect();
        for tokens in all {
            for (at, token) in tokens.iter().enumerate() {
                let is_asked_for = matches!(tokens[..at], [.., "defined"] | [.., "defined", "("]);
                let is_certain = is_word(token) && tokens.get(at + 1) == Some(&"(");
                if !is_asked_for && !is_certain {
                    loose.extend(words_in(token).filter_map(|word| self.indices.get(word)));
                }
            }
        }
        loose.into_iter().filter(|&index| self.ever_called[index]).collect()
    }

    /// Names that `##` may make of words of the source.
    fn pasted<'s>(&self, all: impl Iterator<Item = &'s Vec<&'a str>> + Clone) -> Vec<usize>
    where
        'a: 's,
    {
        if !all.clone().any(|tokens| tokens.windows(2).any(|pair| pair == ["#", "#"])) {
            return Vec::new();
        }
        let mut words: FxHashSet<&str> = FxHashSet::default();
        for token in all.flatten() {
            words.extend(words_in(token));
            // A part of a name may begin with a digit.
            if token.len() <= MOST_SPLIT && token.starts_with(|c: char| c.is_ascii_digit()) {
                words.insert(token);
            }
        }
        let names = self.indices.iter().filter(|(name, _)| can_be_made(name, &words));
        names.map(|(_, index)| *index).collect()
    }
}

/// Whether a name is several words, one behind the other. Digits are words, since a number may end anywhere.
fn can_be_made(name: &str, words: &FxHashSet<&str>) -> bool {
    let mut begins = (1..name.len()).filter(|&end| words.contains(&name[..end]));
    if name.len() > MOST_SPLIT {
        return begins.next().is_some();
    }
    // Whether it can be made up to there.
    let mut made: Vec<bool> = vec![false; name.len() + 1];
    begins.for_each(|end| made[end] = true);
    for end in 2..=name.len() {
        let is_part = |start: usize| {
            let part = &name[start..end];
            words.contains(part) || part.bytes().all(|b| b.is_ascii_digit())
        };
        made[end] = made[end] || (1..end).any(|start| made[start] && is_part(start));
    }
    made[name.len()]
}

/// Which names stand in which definitions.
struct Graph {
    /// What each name stands for, with the number of parameters.
    definitions: Vec<Vec<(Vec<Item>, usize)>>,
    /// Names that one of [`LOOSE`] and [`PASTED`] may be.
    members: Vec<Vec<usize>>,
}

impl Graph {
    fn new(names: usize) -> Graph {
        let definitions = (0..names).map(|_| Vec::new()).collect();
        Graph { definitions, members: vec![Vec::new(); names] }
    }

    fn needs(&self, name: usize) -> FxHashSet<usize> {
        let items = self.definitions[name].iter().flat_map(|(items, _)| items);
        let of_item = |item: &Item| match *item {
            Item::Name { index, .. } => [Some(index), None],
            Item::Open { named, loose } => [named, loose.then_some(LOOSE)],
            _ => [None; 2],
        };
        let used = items.flat_map(of_item).flatten();
        // No macro is expanded in itself.
        used.chain(self.members[name].iter().copied()).filter(|needed| *needed != name).collect()
    }

    fn growth(&self, name: usize, known: &[Growth]) -> Growth {
        let bodies = self.definitions[name]
            .iter()
            .map(|(items, parameters)| walk(items, known, Some(name), *parameters));
        let members = self.members[name].iter().map(|&member| known[member]);
        bodies.chain(members).fold(NONE, Growth::max)
    }

    /// Those whose definitions have nothing that is not known yet come first, again and again. What is left then stands in each other's
    /// definitions: a name is not expanded in itself, so as many rounds as there are names are enough.
    fn growths(&self, file: &str) -> Result<Vec<Growth>, GlslError> {
        let needs: Vec<FxHashSet<usize>> = (0..self.definitions.len()).map(|name| self.needs(name)).collect();
        let mut users: Vec<Vec<usize>> = vec![Vec::new(); needs.len()];
        for (user, needed) in needs.iter().enumerate() {
            needed.iter().for_each(|&name| users[name].push(user));
        }
        let mut growths = vec![NONE; needs.len()];
        let mut missing: Vec<usize> = needs.iter().map(FxHashSet::len).collect();
        let mut ready: Vec<usize> = (0..needs.len()).filter(|&name| missing[name] == 0).collect();
        let mut is_known = vec![false; needs.len()];
        loop {
            while let Some(name) = ready.pop() {
                if !std::mem::replace(&mut is_known[name], true) {
                    growths[name] = self.growth(name, &growths);
                }
                for &user in &users[name] {
                    missing[user] -= 1;
                    if missing[user] == 0 && !is_known[user] {
                        ready.push(user);
                    }
                }
            }
            let cyclic = cyclic(&needs, &users, &is_known);
            if cyclic.is_empty() {
                return Ok(growths);
            }
            if cyclic.len() > MOST_CYCLIC {
                let what = format!("{file}: macros in each other's definitions");
                return Err(too_large(what, cyclic.len(), MOST_CYCLIC));
            }
            for _ in 0..cyclic.len() {
                let next: Vec<Growth> = cyclic.iter().map(|&name| self.growth(name, &growths)).collect();
                cyclic.iter().zip(next).for_each(|(&name, growth)| growths[name] = growth);
            }
            cyclic.iter().for_each(|&name| is_known[name] = true);
            ready = cyclic;
        }
    }
}

/// The names that are not known, without those that only lead to such: these can be counted afterwards.
fn cyclic(needs: &[FxHashSet<usize>], users: &[Vec<usize>], is_known: &[bool]) -> Vec<usize> {
    let mut is_left: Vec<bool> = is_known.iter().map(|known| !known).collect();
    let mut used: Vec<usize> =
        users.iter().map(|users| users.iter().filter(|user| is_left[**user]).count()).collect();
    let mut unused: Vec<usize> = (0..needs.len()).filter(|&name| is_left[name] && used[name] == 0).collect();
    while let Some(name) = unused.pop() {
        is_left[name] = false;
        for &needed in needs[name].iter().filter(|needed| is_left[**needed]) {
            used[needed] -= 1;
            if used[needed] == 0 {
                unused.push(needed);
            }
        }
    }
    (0..needs.len()).filter(|&name| is_left[name]).collect()
}

/// What becomes of a body or of a text.
fn walk(items: &[Item], known: &[Growth], own: Option<usize>, parameters: usize) -> Growth {
    let mut copies = vec![0usize; parameters];
    // What the calls around a place make of it: those that end here, and those that macros have begun.
    let (mut factor, mut opened, mut bytes) = (1usize, 1usize, 0usize);
    let mut around: Vec<usize> = Vec::new();
    for item in items {
        let times = factor.saturating_mul(opened);
        let mut add = |more: usize| bytes = bytes.saturating_add(more.saturating_mul(times));
        match *item {
            Item::Bytes(bytes) => add(bytes),
            Item::Name { index, bytes } if Some(index) == own => add(bytes),
            Item::Name { index, bytes } => {
                // Its own bytes, too: it may be left as it is.
                add(known[index].bytes.max(bytes));
                opened = opened.saturating_mul(known[index].opens);
            }
            Item::Parameter(parameter) => copies[parameter] = copies[parameter].saturating_add(times),
            Item::Open { named, loose } => {
                let named = named.filter(|index| Some(*index) != own).map_or(1, |index| known[index].copies);
                let loose = if loose { known[LOOSE] } else { NONE };
                add(loose.bytes.saturating_add(2));
                around.push(factor);
                factor = factor.saturating_mul(named.max(loose.copies));
            }
            Item::Close => {
                add(2);
                factor = around.pop().unwrap_or(1);
            }
        }
    }
    let copies = copies.into_iter().max().unwrap_or(1).max(1);
    Growth { bytes, copies, opens: opened.saturating_mul(factor) }
}

#[cfg(test)]
mod tests;
