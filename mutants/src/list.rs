//! The list of mutants: a plain text that is read without a program, and changed in a review.

/// One mistake, and the tests that should see it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Mutant {
    pub(crate) name: String,
    /// Below the workspace.
    pub(crate) file: String,
    /// An expression, or statements that end with a semicolon. White space does not count.
    pub(crate) old: String,
    /// What stands there instead. Nothing, for a statement that is left out.
    pub(crate) new: String,
    pub(crate) runs: Vec<Run>,
}

/// A test binary with the names that it is to run; each is a part of a test's path, a variable (`NAME=value`), or an
/// option.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Run {
    pub(crate) binary: String,
    pub(crate) names: Vec<String>,
}

impl std::fmt::Display for Run {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.binary, self.names.join(" "))
    }
}

/// Reads the list. An error names the line.
pub(crate) fn parse(text: &str) -> Result<Vec<Mutant>, String> {
    let mut mutants: Vec<Mutant> = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        let line = line.trim();
        let wrong = |what: &str| format!("line {number}: {what}: {line}");
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        if let Some(name) = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            if mutants.iter().any(|mutant| mutant.name == name) {
                return Err(wrong("this name is there already"));
            }
            let [file, old, new] = [(); 3].map(|()| String::new());
            mutants.push(Mutant { name: name.to_owned(), file, old, new, runs: Vec::new() });
            continue;
        }
        let (Some(mutant), Some((key, value))) = (mutants.last_mut(), line.split_once(':')) else {
            return Err(wrong("neither [name] nor key: value"));
        };
        let value = value.trim();
        match key {
            "file" => mutant.file = value.to_owned(),
            "old" => mutant.old = value.to_owned(),
            "new" => mutant.new = value.to_owned(),
            "tests" => {
                let mut words = value.split_whitespace().map(str::to_owned);
                let binary = words.next().ok_or_else(|| wrong("no test binary"))?;
                mutant.runs.push(Run { binary, names: words.collect() });
            }
            _ => return Err(wrong("unknown key")),
        }
    }
    let incomplete = |mutant: &&Mutant| {
        let expression = !crate::rewrite::is_statement(&mutant.old);
        mutant.file.is_empty()
            || mutant.old.is_empty()
            || (expression && mutant.new.is_empty())
            || mutant.runs.is_empty()
    };
    match mutants.iter().find(incomplete) {
        Some(mutant) => Err(format!("[{}] lacks file, old, new or tests", mutant.name)),
        None => Ok(mutants),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_read() {
        let text = "# A word.\n\n[one]\nfile: a.rs\nold: x + 1\nnew: x\ntests: lib a:: b::\ntests: gpu c\n";
        let run = |binary: &str, names: &[&str]| Run {
            binary: binary.into(),
            names: names.iter().map(|&n| n.into()).collect(),
        };
        let one = Mutant {
            name: "one".into(),
            file: "a.rs".into(),
            old: "x + 1".into(),
            new: "x".into(),
            runs: vec![run("lib", &["a::", "b::"]), run("gpu", &["c"])],
        };
        assert_eq!(parse(text).unwrap(), [one]);
    }

    #[test]
    fn what_is_wrong_is_named() {
        let one = "[one]\nfile: a.rs\nold: x\nnew: y\ntests: lib a\n";
        assert_eq!(parse(&format!("{one}{one}")).unwrap_err(), "line 6: this name is there already: [one]");
        assert_eq!(parse(&format!("{one}odl: x")).unwrap_err(), "line 6: unknown key: odl: x");
        assert!(parse(&one.replace("new: y", "new:")).unwrap_err().starts_with("[one] lacks"));
        assert!(parse(&one.replace("old: x", "old: x;").replace("new: y", "new:")).is_ok());
    }
}
