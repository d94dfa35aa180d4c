//! What the tests of runs share.

use serde_json::{Value, json};
use ssdlab::device::Device;
use ssdlab::job::{JobFile, ParseSource, parse};
use ssdlab::output::{Context, document};
use ssdlab::rig::Rig;
use ssdlab::run::{RunOptions, RunResult, run};
use std::collections::BTreeMap;
use std::process::Command;

/// Whether fio, the oracle of a test, can be run. Where it cannot the test says so and ends, but not with
/// `CI` set: what answers for a commit must not pass because nothing was compared.
pub fn has_fio() -> bool {
    let found = Command::new("fio").arg("--version").output().is_ok_and(|o| o.status.success());
    let in_ci = std::env::var_os("CI").is_some_and(|value| !value.is_empty());
    assert!(found || !in_ci, "CI is set, and fio is missing: install the package fio");
    if !found {
        eprintln!("skipped: fio is not installed, and it is what this test compares with");
    }
    found
}

/// A null device of 1 GiB.
pub fn null(service_time: &str, servers: u32) -> Box<dyn Device> {
    let rig = format!(
        "[device]\nkind = \"null\"\ncapacity = \"1GiB\"\n\
         service_time = \"{service_time}\"\nservers = {servers}\n"
    );
    Rig::parse(&rig, "null").unwrap().build(1, false).unwrap()
}

/// Reads a job file.
pub fn jobs(text: &str) -> JobFile {
    try_jobs(text).unwrap()
}

/// Reads a job file that may be wrong.
pub fn try_jobs(text: &str) -> ssdlab::Result<JobFile> {
    let include = |_: &str| Err(std::io::Error::other("nothing to include"));
    let source = ParseSource { file: "test.fio".into(), env: BTreeMap::new(), include: &include };
    parse(text, &source)
}

/// Plays a job file on a device.
pub fn play(mut device: Box<dyn Device>, text: &str) -> RunResult {
    run(device.as_mut(), &jobs(text), &RunOptions::default(), &mut ()).unwrap()
}

/// The document of a job file played on a device, as text.
pub fn document_text(device: Box<dyn Device>, text: &str) -> String {
    let result = play(device, text);
    let context = Context {
        seed: 1,
        target: json!({ "kind": "sim", "name": "null" }),
        profile: Value::Null,
        preconditioning: "fob".into(),
    };
    document(&result, &jobs(text), &context)
}

/// `jobs` of what fio makes of each job file, all at the same time, each in a folder of its own; `None` without fio.
pub fn fio_jobs<'a>(files: impl IntoIterator<Item = &'a str>) -> Option<Vec<Vec<Value>>> {
    use std::sync::atomic::{AtomicU32, Ordering};
    static FOLDERS: AtomicU32 = AtomicU32::new(0);
    if !has_fio() {
        return None;
    }
    let begin = |text: &str| {
        let number = FOLDERS.fetch_add(1, Ordering::Relaxed);
        let name = format!("ssdlab-fio-jobs-{}-{number}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("x.fio"), text).unwrap();
        let mut fio = Command::new("fio");
        fio.current_dir(&folder).args(["--output-format=json", "--output=out", "x.fio"]);
        (folder, fio.stderr(std::process::Stdio::null()).spawn().unwrap())
    };
    let running: Vec<_> = files.into_iter().map(begin).collect();
    let end = |(folder, mut fio): (std::path::PathBuf, std::process::Child)| {
        fio.wait().unwrap();
        let text = std::fs::read_to_string(folder.join("out")).unwrap();
        std::fs::remove_dir_all(&folder).unwrap();
        // Lines for people stand before it.
        let text = text.get(text.find('{').unwrap_or(0)..).unwrap();
        let mut document: Value =
            serde_json::from_str(text).unwrap_or_else(|e| panic!("{e}: {text}"));
        match document["jobs"].take() {
            Value::Array(jobs) => jobs,
            other => panic!("{other}"),
        }
    };
    Some(running.into_iter().map(end).collect())
}
