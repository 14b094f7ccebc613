//! What there is to compile: the modules that the headers under `glsl/` ask for, and a hash of what each is
//! made from.
//!
//! All of it is a pure function of file names and texts, so that `tests/build_script.rs` can test it without
//! a build.

use std::collections::{BTreeMap, BTreeSet};

use super::fnv1a::Fnv1a;

/// What every module is compiled for. Part of each source hash: changing it makes every checked-in module
/// stale.
pub(crate) const TARGET: &str = "vulkan1.3 spirv1.6";

const HEADER: &str = "//! build:";

/// One SPIR-V module: a kernel and one choice of its defines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Module {
    /// File stem and lowercased define values, joined by dots. A number has the name of its define in front of it, and
    /// numbers that follow each other are joined by dashes: `elementwise.texel.inputs2-steps8`.
    pub(crate) name: String,
    /// The file's stem: `elementwise`.
    pub(crate) kernel: String,
    /// In the order in which the header writes them.
    pub(crate) defines: Vec<(String, String)>,
    /// Over the file, all it includes, the defines and [`TARGET`].
    pub(crate) source_hash: u64,
}

impl Module {
    /// The hash as manifests write it.
    pub(crate) fn hash(&self) -> String {
        format!("{:016x}", self.source_hash)
    }
}

/// The texts under `glsl/`, by path relative to it, always with `/`.
#[derive(Debug, Default)]
pub(crate) struct Tree {
    files: BTreeMap<String, String>,
}

impl Tree {
    /// Line ends become `\n`: a checkout with `core.autocrlf` must hash alike.
    pub(crate) fn insert(&mut self, path: &str, text: &str) {
        self.files.insert(path.replace('\\', "/"), text.replace("\r\n", "\n"));
    }

    pub(crate) fn text(&self, path: &str) -> Option<&str> {
        self.files.get(path).map(String::as_str)
    }

    /// Every module, sorted by name; or every mistake found, each as `glsl/file:line: what`.
    pub(crate) fn modules(&self) -> Result<Vec<Module>, Vec<String>> {
        let mut by_name = BTreeMap::<String, Module>::new();
        let mut mistakes = Vec::new();
        for (path, text) in &self.files {
            let Some(kernel) = path.strip_suffix(".comp").filter(|stem| !stem.contains('/')) else {
                continue;
            };
            if !is_word(kernel) {
                mistakes
                    .push(format!("glsl/{path}:1: a kernel's file name is made of letters, digits and _"));
                continue;
            }
            let (combinations, sources) = match (combinations(text), self.sources_of(path)) {
                (Ok(combinations), Ok(sources)) => (combinations, sources),
                (combinations, sources) => {
                    let found = combinations.err().into_iter().chain(sources.err());
                    mistakes.extend(found.map(|Mistake { file, line, what }| {
                        format!("glsl/{}:{line}: {what}", file.as_deref().unwrap_or(path))
                    }));
                    continue;
                }
            };
            for defines in combinations {
                let name = module_name(kernel, &defines);
                let source_hash = self.hash(&sources, &defines);
                let module = Module { name: name.clone(), kernel: kernel.to_owned(), defines, source_hash };
                // Two header lines may overlap, their union has one module; but one name must not mean two
                // things.
                let known = by_name.entry(name).or_insert_with(|| module.clone());
                if *known != module {
                    let (name, a, b) = (&module.name, spell(&known.defines), spell(&module.defines));
                    mistakes.push(format!("glsl/{path}:1: `{name}` would be two modules: {a} and {b}"));
                }
            }
        }
        if mistakes.is_empty() { Ok(by_name.into_values().collect()) } else { Err(mistakes) }
    }

    /// The file and all that it includes, directly or not: itself first, the others sorted.
    pub(crate) fn sources_of(&self, path: &str) -> Result<Vec<String>, Mistake> {
        let mut seen = BTreeSet::from([path.to_owned()]);
        let mut open = vec![path.to_owned()];
        while let Some(file) = open.pop() {
            for (line, include) in includes(self.text(&file).unwrap_or_default()) {
                let include = include.map_err(|what| Mistake { file: Some(file.clone()), line, what })?;
                if !self.files.contains_key(include) {
                    let what = format!("includes \"{include}\", but there is no glsl/{include}");
                    return Err(Mistake { file: Some(file), line, what });
                }
                if seen.insert(include.to_owned()) {
                    open.push(include.to_owned());
                }
            }
        }
        seen.remove(path);
        Ok(std::iter::once(path.to_owned()).chain(seen).collect())
    }

    fn hash(&self, sources: &[String], defines: &[(String, String)]) -> u64 {
        let mut hash = Fnv1a::new();
        add_field(&mut hash, TARGET);
        add_field(&mut hash, &spell(defines));
        for path in sources {
            add_field(&mut hash, path);
            add_field(&mut hash, self.text(path).unwrap_or_default());
        }
        hash.0
    }
}

/// A mistake in a file under `glsl/`; `file` is `None` for the kernel's own.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Mistake {
    pub(crate) file: Option<String>,
    pub(crate) line: usize,
    pub(crate) what: String,
}

/// `LOAD=TEXEL STEPS=8`
pub(crate) fn spell(defines: &[(String, String)]) -> String {
    if defines.is_empty() {
        return "(no defines)".to_owned();
    }
    defines.iter().map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>().join(" ")
}

/// The kernel, then the values of its defines.
fn module_name(kernel: &str, defines: &[(String, String)]) -> String {
    let mut name = kernel.to_owned();
    let mut after_number = false;
    for (key, value) in defines {
        let is_number = value.starts_with(|c: char| c.is_ascii_digit());
        name.push(if is_number && after_number { '-' } else { '.' });
        if is_number {
            name += &key.to_lowercase();
        }
        name += &value.to_lowercase();
        after_number = is_number;
    }
    name
}

/// The sets of defines that a kernel's `//! build:` lines ask for: per line a cross product, together their
/// union.
pub(crate) fn combinations(text: &str) -> Result<Vec<Vec<(String, String)>>, Mistake> {
    let mut all = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let Some(header) = line.trim_start().strip_prefix(HEADER) else { continue };
        let mistake = |what: String| Mistake { file: None, line: index + 1, what };
        let mut product = vec![Vec::<(String, String)>::new()];
        for choice in header.split_whitespace() {
            let Some((key, values)) = choice.split_once('=') else {
                return Err(mistake(format!("`{choice}`: expected KEY=VALUE or KEY=VALUE,VALUE")));
            };
            let values = values.split(',').collect::<Vec<_>>();
            if !is_word(key) || !values.iter().all(|value| is_word(value)) {
                return Err(mistake(format!(
                    "`{choice}`: keys and values are made of letters, digits and _"
                )));
            }
            if product[0].iter().any(|(known, _)| known == key) {
                return Err(mistake(format!("`{key}` is given twice in one line")));
            }
            product = product
                .iter()
                .flat_map(|defines| {
                    values.iter().map(move |value| {
                        let define = (key.to_owned(), (*value).to_owned());
                        defines.iter().cloned().chain([define]).collect()
                    })
                })
                .collect();
        }
        if product[0].is_empty() {
            return Err(mistake("expected KEY=VALUE after `//! build:`".to_owned()));
        }
        all.extend(product);
    }
    if all.is_empty() {
        all.push(Vec::new());
    }
    Ok(all)
}

/// The `#include "…"` lines of a text, with their line numbers; an `Err` says what is wrong with one.
///
/// Lines that the preprocessor would skip count too: at worst a module is called stale that is not.
pub(crate) fn includes(text: &str) -> impl Iterator<Item = (usize, Result<&str, String>)> {
    text.lines().enumerate().filter_map(|(index, line)| {
        let directive = line.trim_start().strip_prefix('#')?.trim_start().strip_prefix("include")?.trim();
        let path = directive.strip_prefix('"').and_then(|rest| rest.split_once('"')).map(|(path, _)| path);
        let what = "expected #include \"lib/name.glsl\", as seen from glsl/";
        Some((index + 1, path.ok_or_else(|| what.to_owned())))
    })
}

fn is_word(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

/// The length goes first, so that moving text from one field to the next changes the hash.
fn add_field(hash: &mut Fnv1a, text: &str) {
    hash.add(&(text.len() as u64).to_le_bytes());
    hash.add(text.as_bytes());
}
