//! Two builds of the speed table in turn: old, new, old, new, ...
//!
//! Rates of a shared machine drift by more than most changes are worth. A round measures both builds right after
//! each other, so that its ratio is of one and the same machine; the median over the rounds leaves out the rounds
//! in which something else came between them.

use serde_json::{Map, Value};
use std::path::Path;
use std::process::{Command, Stdio};

/// Rounds unless `--rounds` says otherwise.
const ROUNDS: usize = 5;

/// The figures of one row, by round.
#[derive(Default)]
struct Row {
    name: String,
    old: Vec<f64>,
    new: Vec<f64>,
}

/// Runs the program `old` and this one in turn with the same `arguments` and prints the ratios of their rows; with
/// `json` appends them to that file.
pub fn compare(old: &str, rounds: Option<&str>, json: Option<&str>, arguments: &[String]) {
    let wrong = || super::refuse("--rounds: expected a number from 1 on");
    let rounds = rounds.map_or(ROUNDS, |n| n.parse().ok().filter(|&n| n > 0).unwrap_or_else(wrong));
    let new = std::env::current_exe().expect("the path of this program");
    let mut rows: Vec<Row> = Vec::new();
    for round in 1..=rounds {
        eprintln!("round {round} of {rounds}");
        for (figures, is_new) in
            [(measure(Path::new(old), arguments), false), (measure(&new, arguments), true)]
        {
            for (name, value) in figures {
                let at = rows.iter().position(|row| row.name == name).unwrap_or_else(|| {
                    rows.push(Row { name, ..Row::default() });
                    rows.len() - 1
                });
                let values = if is_new { &mut rows[at].new } else { &mut rows[at].old };
                values.push(value.as_f64().expect("a figure"));
            }
        }
    }
    println!("{:<56} {:>9} {:>9} {:>8}   least .. most", "", "old", "new", "new/old");
    rows.iter().for_each(Row::print);
    if let Some(path) = json {
        let ratios: Map<String, Value> = rows
            .iter()
            .filter_map(|row| Some((row.name.clone(), median(&row.ratios())?.into())))
            .collect();
        super::append(path, &serde_json::json!({ "rounds": rounds, "new_over_old": ratios }));
    }
}

/// The figures of one run of a build, in the order of its table.
fn measure(program: &Path, arguments: &[String]) -> Map<String, Value> {
    let file = std::env::temp_dir().join(format!("ssdlab-bench-{}.json", std::process::id()));
    let done = Command::new(program)
        .args(arguments)
        .arg("--json")
        .arg(&file)
        .stdout(Stdio::null())
        .status()
        .unwrap_or_else(|e| panic!("cannot run {}: {e}", program.display()));
    assert!(done.success(), "{} failed", program.display());
    let text = std::fs::read_to_string(&file).expect("what the bench wrote");
    std::fs::remove_file(&file).expect("a file of ours");
    let mut line: Value = serde_json::from_str(&text).expect("a line of JSON");
    match line["figures"].take() {
        Value::Object(figures) => figures,
        _ => panic!("{} wrote no figures", program.display()),
    }
}

impl Row {
    fn ratios(&self) -> Vec<f64> {
        self.old.iter().zip(&self.new).map(|(old, new)| new / old).collect()
    }

    /// What only one of the builds has stands beside a dash.
    fn print(&self) {
        let figure =
            |values: &[f64]| median(values).map_or("-".to_string(), |value| format!("{value:.3}"));
        let (old, new, mut ratios) = (figure(&self.old), figure(&self.new), self.ratios());
        ratios.sort_by(f64::total_cmp);
        let spread = match (ratios.first(), ratios.last()) {
            (Some(least), Some(most)) => format!("{least:.3} .. {most:.3}"),
            _ => String::new(),
        };
        let name = &self.name;
        println!("{name:<56} {old:>9} {new:>9} {:>8}   {spread}", figure(&ratios));
    }
}

/// The middle of the values, or the mean of the two there.
fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let (n, half) = (sorted.len(), sorted.len() / 2);
    (n > 0).then(|| if n % 2 == 1 { sorted[half] } else { (sorted[half - 1] + sorted[half]) / 2.0 })
}
