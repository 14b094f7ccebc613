//! The specialization constants that a file under `glsl/` declares.

use crate::kernels::Mistake;

/// What a constant is in GLSL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// `local_size_x_id`, which has no name.
    LocalSize,
    Uint,
    Bool,
}

/// One declaration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Constant {
    pub(crate) id: u32,
    pub(crate) kind: Kind,
    /// As in GLSL.
    pub(crate) name: String,
    /// The comment at the end of the line.
    pub(crate) comment: String,
}

/// What a text declares itself, in its order. Conditions of the preprocessor are not looked at: an id may be two
/// constants, in different modules.
pub(crate) fn constants(text: &str) -> Result<Vec<Constant>, Mistake> {
    let mut all = Vec::<Constant>::new();
    for (index, line) in text.lines().enumerate() {
        let (code, comment) = line.split_once("//").unwrap_or((line, ""));
        let is_local_size = code.contains("local_size_") && code.contains("_id");
        if !is_local_size && !code.contains("constant_id") {
            continue;
        }
        let mistake = |what: String| Mistake { file: None, line: index + 1, what };
        let Some((id, kind, name)) = declaration(code) else {
            let what = "expected layout(constant_id = 1) const uint NAME = 0; (or bool), or layout(local_size_x_id = 0) in;";
            return Err(mistake(what.to_owned()));
        };
        let constant = Constant { id, kind, name: name.to_owned(), comment: comment.trim().to_owned() };
        match all.iter().find(|known| known.name == constant.name) {
            Some(known) if (known.id, known.kind) != (id, kind) => {
                return Err(mistake(format!("`{name}` was declared as another constant: {}", known.id)));
            }
            Some(_) => {}
            None => all.push(constant),
        }
    }
    Ok(all)
}

/// Id, type and name of `layout(constant_id = 1) const uint NAME = 0;` and of `layout(local_size_x_id = 0) in;`.
fn declaration(code: &str) -> Option<(u32, Kind, &str)> {
    let (layout, rest) = code.trim().strip_prefix("layout(")?.split_once(')')?;
    let (key, id) = layout.split_once('=')?;
    let id = id.trim().parse().ok()?;
    let words: Vec<_> = rest.trim().strip_suffix(';')?.split_whitespace().collect();
    match (key.trim(), words.as_slice()) {
        ("local_size_x_id", ["in"]) => Some((id, Kind::LocalSize, "LOCAL_SIZE")),
        ("constant_id", ["const", "uint", name, "=", _]) => Some((id, Kind::Uint, name)),
        ("constant_id", ["const", "bool", name, "=", _]) => Some((id, Kind::Bool, name)),
        _ => None,
    }
}

/// Constants of one name in Rust: a single one, or an array of those that are numbered from 0 on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Group {
    pub(crate) name: String,
    pub(crate) kind: Kind,
    pub(crate) ids: Vec<u32>,
    pub(crate) is_array: bool,
    pub(crate) comment: String,
}

/// `STEP0`, `STEP1`, … are the array `STEP`; all others stay as they are.
pub(crate) fn groups(constants: &[Constant]) -> Vec<Group> {
    let mut all = Vec::<Group>::new();
    for Constant { id, kind, name, comment } in constants {
        let stem = name.trim_end_matches(|c: char| c.is_ascii_digit());
        let digits = &name[stem.len()..];
        let of_array = |group: &&mut Group| group.is_array && group.name == stem && group.kind == *kind;
        match all.iter_mut().find(of_array) {
            Some(group) if digits == group.ids.len().to_string() => group.ids.push(*id),
            _ => all.push(Group {
                name: if digits == "0" { stem.to_owned() } else { name.clone() },
                kind: *kind,
                ids: vec![*id],
                is_array: digits == "0",
                comment: comment.clone(),
            }),
        }
    }
    all
}
