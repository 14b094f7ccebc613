//! What a report may not tell: who made it, on which machine, and where. No part asks for that, but errors of the
//! system and of drivers have paths in them.

use serde_json::Value;

/// What stands for it.
const HIDDEN: &str = "(hidden)";

/// Texts of this machine and its user.
pub(super) struct Private {
    /// Folders: hidden wherever they stand, the longest first.
    folders: Vec<String>,
    /// Names: hidden where they are whole words.
    names: Vec<String>,
}

impl Private {
    pub(super) fn of_this_process() -> Private {
        let var = |name: &str| std::env::var(name).ok();
        let folders = ["HOME", "USERPROFILE", "TIDEMILL_CACHE", "XDG_CACHE_HOME", "LOCALAPPDATA"];
        let here = [std::env::current_dir(), std::env::current_exe()];
        let here = here.into_iter().flatten().map(|path| path.to_string_lossy().into_owned());
        let folders = folders
            .into_iter()
            .filter_map(var)
            .chain(here)
            .chain([std::env::temp_dir().to_string_lossy().into_owned()]);
        let names = ["USER", "LOGNAME", "USERNAME", "HOSTNAME", "COMPUTERNAME"].into_iter().filter_map(var);
        let host = ["/proc/sys/kernel/hostname", "/etc/hostname"].into_iter();
        let host =
            host.filter_map(|file| std::fs::read_to_string(file).ok()).map(|text| text.trim().to_owned());
        Private::new(folders.collect(), names.chain(host).collect())
    }

    fn new(mut folders: Vec<String>, mut names: Vec<String>) -> Private {
        folders.retain(|folder| folder.len() > 1);
        folders.sort_by_key(|folder| std::cmp::Reverse(folder.len()));
        names.retain(|name| !name.is_empty());
        Private { folders, names }
    }

    /// Hides it in every text of a value.
    pub(super) fn hide_in(&self, value: &mut Value) {
        match value {
            Value::String(text) => *text = self.hidden(text),
            Value::Array(values) => values.iter_mut().for_each(|value| self.hide_in(value)),
            Value::Object(fields) => fields.values_mut().for_each(|value| self.hide_in(value)),
            _ => {}
        }
    }

    fn hidden(&self, text: &str) -> String {
        let text = self.folders.iter().fold(text.to_owned(), |text, folder| text.replace(folder, HIDDEN));
        self.names.iter().fold(text, |text, name| without_word(&text, name))
    }
}

/// A text with something else for a word, where that is not a part of another.
fn without_word(text: &str, word: &str) -> String {
    let is_part = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
    let (mut out, mut rest) = (String::new(), text);
    while let Some(at) = rest.find(word) {
        let (before, after) = (&rest[..at], &rest[at + word.len()..]);
        let last = before.chars().next_back().or_else(|| out.chars().next_back());
        let alone = !is_part(last) && !is_part(after.chars().next());
        out += before;
        out += if alone { HIDDEN } else { word };
        rest = after;
    }
    out + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_and_names_are_hidden_and_words_around_names_are_not() {
        let texts = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
        let private = Private::new(texts(&["/home/ann", "/home/ann/work", "/"]), texts(&["ann", "vm", ""]));
        let mut value = serde_json::json!({
            "ann": [" /home/ann/work/x and /home/ann/y", "ann@vm: channel, annann, ann_1, ann"], "n": 1.5,
        });
        private.hide_in(&mut value);
        let wanted = serde_json::json!({
            "ann": [" (hidden)/x and (hidden)/y", "(hidden)@(hidden): channel, annann, ann_1, (hidden)"], "n": 1.5,
        });
        assert_eq!(value, wanted);
    }
}
