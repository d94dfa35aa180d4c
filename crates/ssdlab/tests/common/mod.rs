//! What the integration tests share: rigs, an auditing closed-loop driver, a version oracle.

// Fields of what tests alone see; their names say it.
#![allow(missing_docs)]

pub mod audit;
pub mod cache_models;
pub mod draws;
pub mod host;
pub mod models;
pub mod oracle;
pub mod rigs;
pub mod traces;

use proptest::test_runner::{Config, RngSeed};
use ssdlab::device::ssd::{Ssd, SsdKeys};
use ssdlab::device::{Build, Command, Completion, Device, Op};
use ssdlab::rig::{Rig, keys_of};
use std::collections::BTreeMap;

/// The profile of the speed table.
pub const LAB_REFERENCE: &str =
    include_str!("../../../../python/ssdlab/profiles/lab-reference.toml");

/// Whether laws search for rare faults: `./lab test --long`.
pub fn long() -> bool {
    std::env::var_os("SSDLAB_LONG").is_some_and(|value| !value.is_empty())
}

/// A number, or another one where there is time.
pub fn amount<T>(number: T, where_there_is_time: T) -> T {
    if long() { where_there_is_time } else { number }
}

/// So many cases, the same in every run; the more where there is time. `PROPTEST_CASES` and
/// `PROPTEST_RNG_SEED` search further.
///
/// For the laws of SSDs, arrays, stacks, sessions and losses of power the smaller number is one from which on more
/// cases enter no region of the core's code (`-C instrument-coverage`) that the suite as a whole has not entered: what
/// they have not found by then is rare, and for `--long`.
pub fn cases(number: u32, where_there_is_time: u32) -> Config {
    let mut config = Config { failure_persistence: None, ..Config::default() };
    if std::env::var_os("PROPTEST_CASES").is_none() {
        config.cases = amount(number, where_there_is_time);
    }
    if std::env::var_os("PROPTEST_RNG_SEED").is_none() {
        config.rng_seed = RngSeed::Fixed(1);
    }
    config
}

/// Of the points at which a closed form or a simulation of others is held every other one, all where there is
/// time. Each is held to the same tolerance.
pub fn points<T>(all: impl IntoIterator<Item = T>) -> impl Iterator<Item = T> {
    all.into_iter().step_by(amount(2, 1))
}

/// Keys and their values, as given to `--set`.
pub type Sets<'a> = &'a [(&'a str, &'a str)];

/// `lab-reference` with keys set.
pub fn lab_reference(sets: Sets) -> Rig {
    let mut rig = Rig::parse(LAB_REFERENCE, "lab-reference").expect("the shipped profile");
    for (key, value) in sets {
        rig.set(key, value).unwrap_or_else(|e| panic!("{key} = {value}: {e}"));
    }
    rig
}

/// The drive of a rig whose outermost device is an SSD, with its type, so that tests see inside.
pub fn ssd_of(rig: &Rig, seed: u64, keep_versions: bool) -> Ssd {
    let mut table: toml::Table = rig.to_toml().parse().expect("a rig prints as TOML");
    let Some(toml::Value::Table(mut device)) = table.remove("device") else {
        panic!("a rig has a device")
    };
    device.remove("kind");
    let keys: SsdKeys = keys_of(device).expect("the keys of an SSD");
    let build = Build { seed, keep_versions, path: "device".into() };
    Ssd::new(&keys, &build).unwrap_or_else(|e| panic!("{e}\n{}", rig.to_toml()))
}

/// `lab-reference` with keys set, as an SSD.
pub fn lab_ssd(sets: Sets, seed: u64) -> Ssd {
    ssd_of(&lab_reference(sets), seed, false)
}

/// Every counter of a device (not of its parts).
pub fn counters(device: &dyn Device) -> BTreeMap<&'static str, u64> {
    let mut all = BTreeMap::new();
    device.counters(&mut |name, value| {
        assert!(all.insert(name, value).is_none(), "counter {name} twice");
    });
    all
}

/// Counters of a device and of everything below it, by path.
pub fn all_counters(device: &dyn Device, path: &str, out: &mut BTreeMap<String, u64>) {
    device.counters(&mut |name, value| {
        out.insert(format!("{path}{name}"), value);
    });
    for (place, child) in device.children() {
        all_counters(child, &format!("{path}{place}."), out);
    }
}

/// A command without version and compressibility.
pub fn command(op: Op, offset: u64, len: u64) -> Command {
    Command { tag: 0, op, offset, len, compressible: 0, stamp: 0, process: 0 }
}

/// What a plain closed loop measured.
#[derive(Clone, Copy, Debug, Default)]
pub struct Measured {
    pub commands: u64,
    /// From the first submission to the last completion, ns.
    pub elapsed: u64,
    /// Sum of latencies, ns.
    pub latency_sum: u64,
    pub latency_max: u64,
    /// The instant of the last completion.
    pub end: u64,
}

impl Measured {
    pub fn per_second(&self) -> f64 {
        self.commands as f64 * 1e9 / self.elapsed as f64
    }
    pub fn mean_latency(&self) -> f64 {
        self.latency_sum as f64 / self.commands as f64
    }
}

/// Keeps `depth` commands in flight from `start` on until `total` are done. No oracle, no audit:
/// for the tests of throughput and of states.
pub fn closed_loop(
    device: &mut dyn Device,
    depth: u64,
    total: u64,
    start: u64,
    mut next: impl FnMut() -> Command,
    mut seen: impl FnMut(u64, &Completion),
) -> Measured {
    closed(device, depth, total, start, &mut next, &mut seen)
}

/// The same, compiled here and not where it is called.
fn closed(
    device: &mut dyn Device,
    depth: u64,
    total: u64,
    start: u64,
    next: &mut dyn FnMut() -> Command,
    seen: &mut dyn FnMut(u64, &Completion),
) -> Measured {
    let mut submitted = vec![0u64; depth as usize];
    let mut issued = 0;
    let mut measured = Measured { end: start, ..Measured::default() };
    while issued < depth.min(total) {
        submitted[issued as usize] = start;
        device.submit(start, Command { tag: issued, ..next() });
        issued += 1;
    }
    let mut done = Vec::new();
    while measured.commands < total {
        let now = device.advance(u64::MAX - 1, &mut done);
        assert!(!done.is_empty(), "a command was lost");
        for completion in done.drain(..) {
            let latency = now - submitted[completion.tag as usize];
            measured.commands += 1;
            measured.latency_sum += latency;
            measured.latency_max = measured.latency_max.max(latency);
            measured.end = now;
            seen(latency, &completion);
            if issued < total {
                submitted[completion.tag as usize] = now;
                device.submit(now, Command { tag: completion.tag, ..next() });
                issued += 1;
            }
        }
    }
    measured.elapsed = measured.end - start;
    device.take_stock(measured.end);
    measured
}

/// Writes the whole device in order through the untimed path.
pub fn fill_sequentially(device: &mut dyn Device, block: u64) {
    let capacity = device.capacity();
    for offset in (0..capacity).step_by(block as usize) {
        device.apply(&command(Op::Write, offset, block.min(capacity - offset)));
    }
}
