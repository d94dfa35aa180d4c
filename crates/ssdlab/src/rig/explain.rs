//! What serde says about a rig's keys, said to people: which key, what was found, what is right.

use crate::error::{Error, nearest};

const UNKNOWN: &str = "unknown key";
pub(super) const MISSING: &str = "is missing";
/// What is said of a value that is not even a text, where one of a few names is expected.
pub(super) const NO_NAME: &str = "found no text";
const KNOWN: &str = " (known here: ";
/// Keys that devices had once or that are no device's, and what to write instead.
const ELSEWHERE: [(&str, &str); 3] = [
    ("job", "expected a job's options in its file; sweep --vary job.OPTION=VALUES varies them"),
    (
        "power_loss",
        "expected power_loss beside name, above [device]: all of a rig loses power at once",
    ),
    (
        "restart_after",
        "expected none: after a loss of power a device is back when all its members are ready",
    ),
];

/// The error for `message`, which serde has about the value at `path`.
pub(super) fn explain(path: &str, message: &str) -> Error {
    let message = message.lines().next().unwrap_or_default().trim();
    let path = if path == "." { "" } else { path };
    if let Some((field, known)) = unknown_field(message) {
        let parent = path.strip_suffix(&field).unwrap_or(path).trim_end_matches('.');
        return Error::rig(below(parent, &field), unknown_key(&field, &known));
    }
    if let Some(rest) = message.strip_prefix("missing field `") {
        let field = rest.trim_end_matches('`');
        return Error::rig(below(path, field), MISSING);
    }
    if message.contains("expected string only") {
        return Error::rig(path, NO_NAME);
    }
    Error::rig(path, found_and_expected(message).unwrap_or_else(|| message.to_string()))
}

/// The key that a device cannot be without, where an error is that it is missing and who needs it.
pub(super) fn missing(error: &Error) -> Option<&str> {
    match error {
        Error::Rig { key, problem } if problem.starts_with(MISSING) => Some(key),
        _ => None,
    }
}

/// What is said of a key that is not among `known`.
fn unknown_key(field: &str, known: &[String]) -> String {
    if let Some((_, instead)) = ELSEWHERE.iter().find(|(key, _)| *key == field) {
        return format!("{UNKNOWN} of a device, {instead}");
    }
    let hint = nearest(field, known.iter().map(String::as_str))
        .map(|near| format!(", did you mean {near}?"))
        .unwrap_or_default();
    format!("{UNKNOWN}{hint}{KNOWN}{})", known.join(", "))
}

/// How much of a key a device knows that refuses it as unknown: the parts of its path up to the
/// wrong one, and whether it has a name like that one. `None` for every other error.
pub(super) fn knowledge(error: &Error) -> Option<(usize, bool)> {
    let Error::Rig { key, problem } = error else { return None };
    let rest = problem.strip_prefix(UNKNOWN)?;
    Some((key.split('.').count(), rest.starts_with(", did you mean")))
}

/// Of the errors of devices that do not know a key, that of the one that is most likely meant;
/// where none stands out, one that says what all of them know.
pub(super) fn nearest_miss(errors: Vec<Error>) -> Option<Error> {
    let (best, error) = errors.iter().map(|e| (knowledge(e), e)).rev().max_by_key(|(k, _)| *k)?;
    let Error::Rig { key, .. } = error else { return None };
    if best > Some((1, false)) {
        return Some(error.clone());
    }
    let known = |e: &Error| match e {
        Error::Rig { problem, .. } => problem.split_once(KNOWN).map(|(_, known)| known.to_string()),
        _ => None,
    };
    let known: Vec<String> = errors.iter().filter_map(known).collect();
    if known.is_empty() {
        return Some(error.clone());
    }
    let known = known.join("; below: ").replace(')', "");
    Some(Error::rig(key, format!("{UNKNOWN}{KNOWN}{known})")))
}

fn below(parent: &str, key: &str) -> String {
    if parent.is_empty() { key.to_string() } else { format!("{parent}.{key}") }
}

/// Takes serde's message apart: the unknown field and the known ones.
fn unknown_field(message: &str) -> Option<(String, Vec<String>)> {
    let rest = message.strip_prefix("unknown field `")?;
    let (field, rest) = rest.split_once('`')?;
    let known = rest.split('`').skip(1).step_by(2).map(str::to_string).collect();
    Some((field.to_string(), known))
}

/// `invalid type: integer `4`, expected f64` and its like, without Rust's names of types.
fn found_and_expected(message: &str) -> Option<String> {
    let starts = ["invalid type: ", "invalid value: ", "unknown variant "];
    let rest = starts.iter().find_map(|start| message.strip_prefix(start))?;
    let (found, expected) = rest.split_once(", expected ")?;
    let found = match found.split_once('`') {
        Some((_, quoted)) if message.starts_with(starts[2]) => {
            format!("\"{}\"", quoted.trim_end_matches('`'))
        }
        Some((_, quoted)) => quoted.trim_end_matches('`').to_string(),
        None => found
            .strip_prefix("string ")
            .unwrap_or(match found {
                "map" => "a table",
                "sequence" => "a list",
                other => other,
            })
            .to_string(),
    };
    let expected = expected.replace('`', "");
    let expected = match expected.as_str() {
        "u32" | "u64" | "usize" => "a whole number from 0 on",
        "f64" => "a number",
        "a boolean" => "true or false",
        "a string" => "a text",
        expected if expected.starts_with("struct ") => "a table of keys",
        expected => expected,
    };
    Some(format!("found {found}, expected {expected}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_serde_says_reads_as_found_and_expected() {
        for (message, said) in [
            ("invalid type: integer `4`, expected f64", "k: found 4, expected a number"),
            (
                "invalid type: string \"x\", expected a boolean",
                "k: found \"x\", expected true or false",
            ),
            (
                "invalid value: integer `-1`, expected u32",
                "k: found -1, expected a whole number from 0 on",
            ),
            ("invalid type: map, expected a string", "k: found a table, expected a text"),
            (
                "invalid type: integer `3`, expected struct GcKeys",
                "k: found 3, expected a table of keys",
            ),
            (
                "unknown variant `x`, expected one of `a`, `b`",
                "k: found \"x\", expected one of a, b",
            ),
            ("missing field `ways`", "k.ways: is missing"),
            (
                "unknown field `bat`, expected `bar` or `foo`",
                "k.bat: unknown key, did you mean bar? (known here: bar, foo)",
            ),
            ("anything else", "k: anything else"),
        ] {
            assert_eq!(explain("k", message).to_string(), said);
        }
    }
}
