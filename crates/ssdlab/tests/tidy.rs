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
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../src");
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

/// Module of a source as a path from the crate's root: `ftl/victim/mod.rs` is `ftl::victim`.
fn module_path(path: &Path) -> Vec<String> {
    let mut names: Vec<String> =
        path.with_extension("").iter().map(|n| n.to_str().unwrap().to_string()).collect();
    names.pop_if(|last| *last == "mod");
    names
}

/// Words, `::` and single signs of code, with their lines; what is quoted is left out.
fn tokens(text: &str) -> Vec<(usize, String)> {
    let end = text.find("\n#[cfg(test)]").unwrap_or(text.len());
    let (mut rest, mut line, mut out) = (&text[..end], 1, Vec::new());
    while let Some(sign) = rest.chars().next() {
        let word = |c: char| c.is_alphanumeric() || c == '_';
        let length = match sign {
            _ if rest.starts_with("//") => rest.find('\n').unwrap_or(rest.len()),
            '"' => quoted(rest),
            '\'' if rest[1..].starts_with('\\') => 4 + rest[3..].find('\'').unwrap(),
            '\'' => match rest.char_indices().nth(2) {
                Some((at, '\'')) => at + 1,
                _ => 1,
            },
            _ if word(sign) => rest.find(|c| !word(c)).unwrap_or(rest.len()),
            _ if rest.starts_with("::") => 2,
            _ => sign.len_utf8(),
        };
        let (token, behind) = rest.split_at(length);
        if !sign.is_whitespace() && !['"', '\'', '/'].contains(&sign) {
            out.push((line, token.to_string()));
        }
        line += token.matches('\n').count();
        rest = behind;
    }
    out
}

/// Bytes of the string at the start of a text.
fn quoted(text: &str) -> usize {
    let mut escaped = false;
    let end = text[1..].find(|c| {
        let end = c == '"' && !escaped;
        escaped = c == '\\' && !escaped;
        end
    });
    end.map_or(text.len(), |at| at + 2)
}

/// The paths that begin at the token `at` behind `prefix`, those in braces one by one, with their
/// lines; answers the token behind them.
fn paths(
    tokens: &[(usize, String)],
    mut at: usize,
    prefix: &[String],
    out: &mut Vec<(usize, Vec<String>)>,
) -> usize {
    let token = |at: usize| tokens.get(at).map_or("", |(_, token)| token.as_str());
    let mut path = prefix.to_vec();
    let line = tokens[at].0;
    loop {
        match token(at) {
            "{" => {
                while !["}", ""].contains(&token(at)) {
                    at = paths(tokens, at + 1, &path, out);
                    // The other name of what is renamed.
                    while !["}", ",", ""].contains(&token(at)) {
                        at += 1;
                    }
                }
                return at + 1;
            }
            "}" => return at,
            name => path.push(name.to_string()),
        }
        if token(at + 1) != "::" {
            out.push((line, path));
            return at + 1;
        }
        at += 2;
    }
}

/// Modules of the crate's root that a source names, by `crate`, or by enough `super`, with their
/// lines.
fn used(path: &Path, text: &str) -> Vec<(usize, String)> {
    let (tokens, mut found, mut at) = (tokens(text), Vec::new(), 0);
    while at + 1 < tokens.len() {
        let root = ["crate", "super", "self"].contains(&tokens[at].1.as_str());
        let begins = root && tokens[at + 1].1 == "::";
        at = if begins { paths(&tokens, at, &[], &mut found) } else { at + 1 };
    }
    let resolved = found.into_iter().filter_map(|(line, names)| {
        let mut module = module_path(path);
        for name in names {
            match name.as_str() {
                "crate" => module.clear(),
                "self" => {}
                "super" => drop(module.pop()),
                _ => module.push(name),
            }
        }
        Some((line, module.into_iter().next()?))
    });
    // Items of the crate's root begin with a capital letter.
    resolved.filter(|(_, name)| !name.starts_with(|c: char| c.is_uppercase())).collect()
}

/// Uses that point up.
fn upward(path: &Path, text: &str) -> Vec<String> {
    let module = module_of(path);
    let Some(own) = layer(&module) else { return vec![format!("{module} has no layer")] };
    used(path, text)
        .into_iter()
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

/// Calls of functions whose last digits the standard library leaves to the system, by method and by path.
fn inexact(text: &str) -> Vec<usize> {
    const NAMES: &[&str] = &[
        "exp", "exp2", "exp_m1", "ln", "ln_1p", "log", "log2", "log10", "powf", "powi", "sin",
        "cos", "tan", "sin_cos", "asin", "acos", "atan", "atan2", "sinh", "cosh", "tanh", "asinh",
        "acosh", "atanh", "cbrt", "hypot",
    ];
    let tokens = tokens(text);
    let method = |at: usize| tokens[at].1 == "." && tokens.get(at + 2).is_some_and(|t| t.1 == "(");
    let path = |at: usize| at > 0 && tokens[at].1 == "::" && tokens[at - 1].1 == "f64";
    (0..tokens.len().saturating_sub(1))
        .filter(|&at| method(at) || path(at))
        .filter(|&at| NAMES.contains(&tokens[at + 1].1.as_str()))
        .map(|at| tokens[at].0)
        .collect()
}

#[test]
fn functions_of_numbers_are_the_same_on_every_machine() {
    let wrong: Vec<String> = sources()
        .iter()
        .flat_map(|(path, text)| {
            inexact(text).into_iter().map(move |line| format!("{}:{line}", path.display()))
        })
        .collect();
    assert!(wrong.is_empty(), "take them from libm: {wrong:#?}");
}

#[test]
fn every_test_file_is_part_of_the_suite() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let suite = fs::read_to_string(root.join("suite.rs")).unwrap();
    let named = |name: &str| suite.lines().any(|line| line == format!("mod {name};"));
    let forgotten: Vec<String> = fs::read_dir(root)
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
    assert!(
        upward(ftl, "use crate::{Error, nand::NONE};\n// use crate::run;\n/// It's \"\n")
            .is_empty()
    );
    let lines = "use crate::{\n    nand::{Cause as C, self},\n    rig::{\n        Rig,\n    },\n    run,\n};\n";
    assert_eq!(
        upward(ftl, lines),
        ["ftl/page_map.rs:4: ftl uses rig", "ftl/page_map.rs:6: ftl uses run"]
    );
    assert_eq!(upward(ftl, "use super::super::device::Op;\n").len(), 1);
    assert_eq!(upward(ftl, "use super::{super::{job, nand}, blocks};\n").len(), 1);
    assert_eq!(upward(ftl, "use super::super::*;\n").len(), 1);
    assert_eq!(upward(ftl, "fn f(c: char) { c == '\"'; super::super::run::g() }\n").len(), 1);
    let deeper = Path::new("ftl/victim/greedy.rs");
    assert!(upward(deeper, "use super::super::device::Op;\n").is_empty(), "that is ftl::device");
    assert_eq!(upward(Path::new("ftl/mod.rs"), "use super::device::Op;\n").len(), 1);
    assert!(upward(ftl, "const A: &str = \"\\\"crate::run\";\npub(super) fn f() {}\n").is_empty());
    assert_eq!(inexact("let a = (1.0 - u)\n    .ln();\nlet b = f64::powf(a, 2.0);\n"), [2, 3]);
    assert!(inexact("let a = x.sqrt() * libm::log(b).abs(); c.exp;\n// a.ln()\n").is_empty());
    let body = "        x();\n".repeat(70);
    assert_eq!(long_functions(&format!("    fn f() {{\n{body}    }}\n")), [(1, 72)]);
    assert!(long_functions("    fn f() {\n        x();\n    }\n").is_empty());
}
