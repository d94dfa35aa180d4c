//! The house in order: dependencies point down, files and functions stay readable, registries are
//! complete, nothing looks at the world outside.

use ssdlab::catalogue::catalogue;
use std::fs;
use std::path::{Path, PathBuf};

/// The modules from the bottom up. What stands in one row may use each other.
const LAYERS: &[&[&str]] = &[
    &["units", "error"],
    &["registry", "rng", "persist"],
    &["sim"],
    &["stats"],
    &["contract"],
    &["fleet"],
    &["nand"],
    &["ftl"],
    &["device", "rig", "array", "cache", "tier"],
    &["trace"],
    &["catalogue"],
    &["job"],
    &["run"],
    &["output"],
];

const LINES_PER_FILE: usize = 500;
const LINES_PER_FUNCTION: usize = 70;

fn sources() -> Vec<(PathBuf, String)> {
    fn walk(folder: &Path, out: &mut Vec<(PathBuf, String)>) {
        let mut entries: Vec<PathBuf> =
            fs::read_dir(folder).unwrap().map(|e| e.unwrap().path()).collect();
        entries.sort();
        for path in entries {
            if path.is_dir() {
                walk(&path, out);
            } else if path.extension().is_some_and(|e| e == "rs") {
                out.push((path.clone(), fs::read_to_string(&path).unwrap()));
            }
        }
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut out = Vec::new();
    walk(&root, &mut out);
    out.iter_mut().for_each(|(path, _)| *path = path.strip_prefix(&root).unwrap().to_path_buf());
    assert!(out.len() > 30, "only {} sources found", out.len());
    out
}

/// The module of a source: the first folder or the file's own name.
fn module_of(path: &Path) -> String {
    let first = path.components().next().unwrap().as_os_str().to_str().unwrap();
    first.trim_end_matches(".rs").to_string()
}

/// Where a module stands; an unknown one needs a place in `LAYERS` first.
fn layer(module: &str) -> Option<usize> {
    LAYERS.iter().position(|row| row.contains(&module))
}

/// The code before the unit tests, without comments.
fn code(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.lines()
        .enumerate()
        .take_while(|(_, line)| !line.starts_with("#[cfg(test)]"))
        .map(|(n, line)| (n + 1, line.split("//").next().unwrap_or("")))
}

/// Modules named after `crate::` in a line, those in braces too.
fn used(line: &str) -> Vec<String> {
    let mut names = Vec::new();
    for (at, _) in line.match_indices("crate::") {
        let rest = &line[at + 7..];
        let word = |s: &str| -> String {
            s.trim().chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect()
        };
        match rest.strip_prefix('{') {
            Some(list) => names.extend(list.split([',', '}']).map(word)),
            None => names.push(word(rest)),
        }
    }
    // Items of the crate's root begin with a capital letter.
    names.retain(|n| n.starts_with(|c: char| c.is_lowercase()));
    names
}

/// Uses that point up.
fn upward(path: &Path, text: &str) -> Vec<String> {
    let module = module_of(path);
    let Some(own) = layer(&module) else { return vec![format!("{module} has no layer")] };
    code(text)
        .flat_map(|(n, line)| used(line).into_iter().map(move |name| (n, name)))
        .filter(|(_, name)| layer(name).is_none_or(|l| l > own))
        .map(|(n, name)| format!("{}:{n}: {module} uses {name}", path.display()))
        .collect()
}

#[test]
fn dependencies_point_down() {
    let wrong: Vec<String> = sources()
        .iter()
        .filter(|(path, _)| path.as_os_str() != "lib.rs")
        .flat_map(|(path, text)| upward(path, text))
        .collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn files_are_short() {
    let long: Vec<String> = sources()
        .iter()
        .filter(|(_, text)| text.lines().count() > LINES_PER_FILE)
        .map(|(path, text)| format!("{}: {} lines", path.display(), text.lines().count()))
        .collect();
    assert!(long.is_empty(), "over {LINES_PER_FILE} lines: {long:#?}");
}

/// Functions longer than the limit: from the line of `fn` to the brace that closes it, found by
/// indentation, which rustfmt guarantees.
fn long_functions(text: &str) -> Vec<(usize, usize)> {
    let mut long = Vec::new();
    let lines: Vec<&str> = text.lines().collect();
    for (begin, line) in lines.iter().enumerate() {
        let bare = line.trim_start();
        let is_function = ["fn ", "pub fn ", "pub(super) fn ", "pub(crate) fn ", "const fn "]
            .iter()
            .any(|p| bare.starts_with(p));
        if !is_function || bare.ends_with(';') {
            continue;
        }
        let close = format!("{}}}", " ".repeat(line.len() - bare.len()));
        let length = lines[begin..].iter().position(|l| *l == close).map_or(1, |n| n + 1);
        if length > LINES_PER_FUNCTION {
            long.push((begin + 1, length));
        }
    }
    long
}

#[test]
fn functions_are_short() {
    let long: Vec<String> = sources()
        .iter()
        .flat_map(|(path, text)| {
            long_functions(text)
                .into_iter()
                .map(|(line, length)| format!("{}:{line}: {length} lines", path.display()))
                .collect::<Vec<_>>()
        })
        .collect();
    assert!(long.is_empty(), "over {LINES_PER_FUNCTION} lines: {long:#?}");
}

#[test]
fn nothing_reads_a_clock_or_iterates_in_hash_order() {
    const BANNED: &[&str] =
        &["Instant::now", "SystemTime", "thread::", "HashMap", "HashSet", "println!", "eprintln!"];
    let wrong: Vec<String> = sources()
        .iter()
        .flat_map(|(path, text)| {
            code(text)
                .filter(|(_, line)| BANNED.iter().any(|b| line.contains(b)))
                .map(|(n, line)| format!("{}:{n}: {}", path.display(), line.trim()))
                .collect::<Vec<_>>()
        })
        .collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn every_test_file_is_part_of_the_suite() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    let suite = fs::read_to_string(root.join("suite.rs")).unwrap();
    let named = |name: &str| suite.lines().any(|line| line == format!("mod {name};"));
    let forgotten: Vec<String> = fs::read_dir(&root)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|e| e == "rs"))
        .map(|path| path.file_stem().unwrap().to_str().unwrap().to_string())
        .filter(|name| name != "suite" && !named(name))
        .collect();
    assert!(forgotten.is_empty(), "not in tests/suite.rs, so never run: {forgotten:?}");
    assert!(named("laws") && named("tidy"));
}

#[test]
fn every_named_thing_says_what_it_is() {
    let mut seen = Vec::new();
    for listing in catalogue() {
        let what = format!("{} {}", listing.kind, listing.name);
        let good = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        assert!(!listing.name.is_empty() && listing.name.chars().all(good), "name of {what}");
        assert!(listing.summary.len() > 8, "no summary of {what}");
        assert!(!listing.summary.ends_with('.'), "a summary is not a sentence: {what}");
        assert!(!seen.contains(&what), "{what} twice");
        seen.push(what);
    }
    assert!(seen.len() > 15, "only {} things have a name", seen.len());
}

/// The canaries: each rule finds what breaks it.
#[test]
fn the_rules_catch_what_breaks_them() {
    let ftl = Path::new("ftl/page_map.rs");
    assert_eq!(upward(ftl, "use crate::device::Op;\n").len(), 1);
    assert_eq!(upward(ftl, "use crate::{nand::Cause, run::Driver};\n").len(), 1);
    assert_eq!(upward(ftl, "fn f() { crate::output::g() }\n").len(), 1);
    assert_eq!(upward(ftl, "use crate::nowhere::X;\n").len(), 1);
    assert!(upward(ftl, "use crate::{Error, nand::NONE};\n// use crate::run;\n").is_empty());
    let body = "        x();\n".repeat(70);
    assert_eq!(long_functions(&format!("    fn f() {{\n{body}    }}\n")), [(1, 72)]);
    assert!(long_functions("    fn f() {\n        x();\n    }\n").is_empty());
}
