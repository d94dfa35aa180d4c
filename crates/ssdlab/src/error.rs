//! What the user got wrong. Our own bugs are asserts.

use thiserror::Error;

/// The crate's result.
pub type Result<T> = std::result::Result<T, Error>;

/// One clear sentence about wrong input: what, where, and what would be right.
#[derive(Error, Debug, Clone, PartialEq, Eq)]
pub enum Error {
    /// A value that does not fit, without its place; the caller adds the place.
    #[error("found \"{found}\", expected {expected}")]
    Value {
        /// The text that was found.
        found: String,
        /// What would be right.
        expected: String,
    },
    /// A rig or profile: which key, and what is wrong with it.
    #[error("{key}: {problem}")]
    Rig {
        /// Dotted path of the key, such as `ftl.gc.victim`.
        key: String,
        /// What is wrong and what would be right.
        problem: String,
    },
    /// A job file: file, line, option.
    #[error("{}: {}{problem}", at(.file, *.line), place(.option))]
    Job {
        /// Name of the job file.
        file: String,
        /// Line number from 1; 0 where no line is meant.
        line: u32,
        /// The option's name as written, or the section; empty where the file as a whole is meant.
        option: String,
        /// What is wrong and what would be right.
        problem: String,
    },
    /// A name that no registry knows.
    #[error("{}no {what} is called \"{name}\"{}; there are: {known}", place(.key), hint(.suggestion))]
    Unknown {
        /// Dotted path of the rig key that names it; empty elsewhere.
        key: String,
        /// The kind of thing: "victim policy", "device".
        what: &'static str,
        /// The name asked for.
        name: String,
        /// The nearest known name, if one is near.
        suggestion: Option<String>,
        /// All known names, comma-separated.
        known: String,
    },
    /// The job does not fit the device, or the device cannot do it.
    #[error("{0}")]
    Unfit(String),
    /// What a rig needs is more memory than there is, or than it may take.
    #[error("{0}")]
    Memory(String),
    /// A file that cannot be opened, or is not what it should be.
    #[error("{path}: {problem}")]
    File {
        /// Its name.
        path: String,
        /// What is wrong.
        problem: String,
    },
    /// What the machine could not do, such as write to a full disk.
    #[error("{0}")]
    Failed(String),
    /// The observer of a run asked it to stop; what was done is discarded.
    #[error("stopped; nothing was kept")]
    Cancelled,
}

fn place(key: &str) -> String {
    if key.is_empty() { String::new() } else { format!("{key}: ") }
}

fn at(file: &str, line: u32) -> String {
    if line == 0 { file.to_string() } else { format!("{file}:{line}") }
}

fn hint(suggestion: &Option<String>) -> String {
    suggestion.as_ref().map(|s| format!(" (did you mean \"{s}\"?)")).unwrap_or_default()
}

impl Error {
    /// A value that does not fit.
    pub fn value(found: impl Into<String>, expected: impl Into<String>) -> Self {
        Error::Value { found: found.into(), expected: expected.into() }
    }
    /// A rig key that is wrong.
    pub fn rig(key: impl Into<String>, problem: impl Into<String>) -> Self {
        Error::Rig { key: key.into(), problem: problem.into() }
    }
    /// Puts the name of the rig's file before a rig path.
    pub fn in_file(self, file: &str) -> Self {
        let place =
            |key: &str| if key.is_empty() { file.to_string() } else { format!("{file}: {key}") };
        match self {
            Error::Rig { key, problem } => Error::Rig { key: place(&key), problem },
            Error::Unknown { key, what, name, suggestion, known } => {
                Error::Unknown { key: place(&key), what, name, suggestion, known }
            }
            other => other,
        }
    }
    /// Puts a rig path before an error that has none, or a parent before its path.
    pub fn under(self, parent: &str) -> Self {
        match self {
            Error::Rig { key, problem } if parent.is_empty() => Error::Rig { key, problem },
            Error::Rig { key, problem } if key.is_empty() => Error::rig(parent, problem),
            Error::Rig { key, problem } => Error::rig(format!("{parent}.{key}"), problem),
            Error::Unknown { key, what, name, suggestion, known } => {
                let key = match (parent, key.as_str()) {
                    ("", key) => key.to_string(),
                    (parent, "") => parent.to_string(),
                    (parent, key) => format!("{parent}.{key}"),
                };
                Error::Unknown { key, what, name, suggestion, known }
            }
            other => Error::rig(parent, other.to_string()),
        }
    }
}

/// The known name that `name` most likely means, if any is near: what it is the beginning of, a space for a hyphen, or
/// else what differs least; of equals the first by its letters.
pub fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let limit = (name.chars().count() / 3).max(1);
    let asked = name.to_lowercase().split_whitespace().collect::<Vec<_>>().join("-");
    let begun = |known: &str| {
        let rest = known.strip_prefix(&asked).filter(|_| !asked.is_empty());
        rest.is_some_and(|rest| rest.starts_with(['-', '_']))
    };
    known
        .into_iter()
        .map(|known| {
            let low = known.to_lowercase();
            (!begun(&low), distance(&asked, &low), known)
        })
        .filter(|(other, distance, _)| !other || *distance <= limit)
        .min()
        .map(|(.., known)| known)
}

/// Edit distance with transpositions of neighbours (optimal string alignment).
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut rows = vec![vec![0; b.len() + 1]; a.len() + 1];
    for (i, row) in rows.iter_mut().enumerate() {
        row[0] = i;
    }
    for (j, cell) in rows[0].iter_mut().enumerate() {
        *cell = j;
    }
    for i in 1..=a.len() {
        for j in 1..=b.len() {
            let substitute = rows[i - 1][j - 1] + usize::from(a[i - 1] != b[j - 1]);
            let mut best = substitute.min(rows[i - 1][j] + 1).min(rows[i][j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                best = best.min(rows[i - 2][j - 2] + 1);
            }
            rows[i][j] = best;
        }
    }
    rows[a.len()][b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_name_stays_one_when_it_gets_its_place() {
        let unknown = crate::device::DEVICES.find("sdd").err().unwrap();
        let placed = unknown.under("kind").under("below");
        assert!(matches!(placed, Error::Unknown { .. }));
        let message = placed.to_string();
        assert!(message.starts_with("below.kind: no device is called \"sdd\""), "{message}");
    }

    #[test]
    fn a_near_name_is_suggested_and_a_far_one_is_not() {
        assert_eq!(nearest("iodpeth", ["iodepth", "bs"]), Some("iodepth"));
        assert_eq!(nearest("gredy", ["greedy", "fifo"]), Some("greedy"));
        assert_eq!(nearest("zzz", ["greedy", "fifo"]), None);
        assert_eq!(nearest("", ["-x", "greedy"]), None);
    }

    #[test]
    fn the_beginning_of_a_name_is_near_however_long_the_rest_is() {
        let known = ["samsung-pm9a3-960", "samsung-840-pro-512", "samsong"];
        assert_eq!(nearest("Samsung PM9A3", known), Some("samsung-pm9a3-960"));
        assert_eq!(nearest("read", ["write_threshold", "read_threshold"]), Some("read_threshold"));
        assert_eq!(nearest("rea", ["write_threshold", "read_threshold"]), None);
    }
}
