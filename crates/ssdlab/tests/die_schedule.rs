//! What a die does next, against closed forms: one die, reads without end, writes beside them.

use crate::common;
use crate::support;

use common::{all_counters, command, fill_sequentially, lab_reference};
use ssdlab::device::{Command, Op};
use ssdlab::rig::Rig;
use ssdlab::rng::Stream;
use ssdlab::run::{RunOptions, run};
use std::collections::BTreeMap;
use support::jobs;

const READ_US: f64 = 75.0 + 12.3;
const WRITE_US: f64 = 750.0 + 12.3;
const HALF: u64 = 32 << 20;

/// What ran for five seconds beside each other.
struct Rates {
    reads: f64,
    writes: f64,
    read_max_us: f64,
    write_max_us: f64,
    counters: BTreeMap<String, u64>,
}

/// Random reads of one half at `depth` beside sequential writes of the other, four in flight.
fn beside(schedule: &str, suspend: common::Sets, depth: u32) -> Rates {
    let mut rig =
        lab_reference(&[("capacity", "64MiB"), ("nand.channels", "1"), ("nand.ways", "1")]);
    for (key, value) in [("nand.schedule", schedule)].iter().chain(suspend) {
        rig.set(key, value).unwrap();
    }
    let mut device = rig.build(1, false).unwrap();
    for offset in (0..HALF).step_by(128 << 10) {
        device.apply(&command(Op::Write, offset, 128 << 10));
    }
    let job = format!(
        "[global]\nbs=4k\ntime_based\nruntime=5\nsize={HALF}\n[read]\nrw=randread\niodepth={depth}\n\
         [write]\nrw=write\noffset={HALF}\niodepth=4\n"
    );
    let result = run(device.as_mut(), &jobs(&job), &RunOptions::default(), &mut ()).unwrap();
    let mut counters = BTreeMap::new();
    all_counters(&*device, "", &mut counters);
    let tally = |report: usize, ddir: usize| &result.reports[report].directions[ddir].tally;
    Rates {
        reads: tally(0, 0).ios() as f64 / 5.0,
        writes: tally(1, 1).ios() as f64 / 5.0,
        read_max_us: tally(0, 0).lat.max() as f64 / 1e3,
        write_max_us: tally(1, 1).lat.max() as f64 / 1e3,
        counters,
    }
}

fn near(what: &str, measured: f64, expected: f64) {
    assert!((measured / expected - 1.0).abs() < 0.01, "{what}: {measured}, expected {expected}");
}

const SUSPENDS: common::Sets = &[
    ("nand.suspend.erase", "true"),
    ("nand.suspend.program", "true"),
    ("nand.suspend.enter", "20us"),
    ("nand.suspend.resume", "10us"),
    ("nand.suspend.limit", "100"),
];

#[test]
fn bounded_read_priority_lets_eight_reads_before_each_program() {
    let cycle = 8.0 * READ_US + WRITE_US;
    let r = beside("reads-first-bounded", &[], 256);
    near("writes", r.writes, 1e6 / cycle);
    near("reads", r.reads, 8e6 / cycle);
}

#[test]
fn bounded_read_priority_counts_what_overtakes_by_suspension_too() {
    // All eight come while the program is queued, and none is left to suspend it.
    let cycle = 8.0 * READ_US + WRITE_US;
    let r = beside("reads-first-bounded", SUSPENDS, 256);
    near("writes", r.writes, 1e6 / cycle);
    assert_eq!(r.counters["flash_suspensions"], 0);
}

#[test]
fn unbounded_read_priority_leaves_writes_nothing() {
    let r = beside("reads-first", &[], 256);
    near("reads", r.reads, 1e6 / READ_US);
    // Before the first read, and after the last.
    assert!(r.writes * 5.0 <= 5.0, "{} writes", r.writes * 5.0);
}

#[test]
fn first_come_first_served_never_suspends() {
    let depth = 8.0;
    let r = beside("fifo", SUSPENDS, 8);
    assert_eq!(r.counters["flash_suspensions"], 0);
    // Each command waits for all that were there before it.
    let around = depth * READ_US + 4.0 * WRITE_US;
    near("reads", r.reads, depth * 1e6 / around);
    near("writes", r.writes, 4e6 / around);
    assert!(r.read_max_us <= around + 0.1 && r.write_max_us <= around + 0.1);
}

#[test]
fn a_read_suspends_a_program_at_its_cost_and_the_program_ends_after_its_bound() {
    // One read in flight: the next comes when the last one ends, before the program has come any further.
    let r = beside("reads-first-bounded", SUSPENDS, 1);
    assert!(r.counters["flash_suspensions"] > 0);
    // The ninth waits for the whole program and for what resuming it eight times has cost.
    near("longest read", r.read_max_us, 750.0 + 8.0 * 10.0 + READ_US);
    // The die is never idle, and each suspension costs what it costs.
    let suspensions = r.counters["flash_suspensions"] as f64 / 5.0;
    let busy = r.reads * READ_US + r.writes * WRITE_US + suspensions * 30.0;
    near("busy", busy, 1e6);
}

/// What comes of reads and writes on a drive that collects: each completion, and all counters every 137 us. `watched`:
/// stock is taken at each of its events, so that none of them stands for two.
fn course(rig: &Rig, watched: bool) -> Vec<(u64, String)> {
    let mut device = rig.build(1, false).unwrap();
    fill_sequentially(&mut *device, 128 << 10);
    let mut rng = Stream::new(1, "course");
    let units = device.capacity() / 4096;
    let mut next = |tag| {
        let op = if rng.below(2) == 0 { Op::Read } else { Op::Write };
        Command { tag, ..command(op, rng.below(units) * 4096, 4096) }
    };
    (0..4 * units).for_each(|_| device.apply(&Command { op: Op::Write, ..next(0) }));
    (0..16).for_each(|tag| device.submit(0, next(tag)));
    let (mut seen, mut done, mut sample, mut commands) = (Vec::new(), Vec::new(), 137_000, 0);
    while commands < 8000 {
        let limit = if watched { device.next_event().min(sample) } else { sample };
        let now = device.advance(limit, &mut done);
        for completion in done.drain(..) {
            commands += 1;
            seen.push((now, format!("{} {:?}", completion.tag, completion.parts)));
            device.submit(now, next(completion.tag));
        }
        if watched || now == sample {
            device.take_stock(now);
        }
        if now == sample {
            sample += 137_000;
            let mut all = BTreeMap::new();
            all_counters(&*device, "", &mut all);
            seen.push((now, format!("{all:?}")));
        }
    }
    seen
}

#[test]
fn an_event_that_stands_for_two_changes_nothing() {
    for schedule in ["reads-first-bounded", "fifo"] {
        for suspend in [&[][..], SUSPENDS] {
            let mut rig = lab_reference(&[("capacity", "32MiB"), ("nand.schedule", schedule)]);
            for (key, value) in suspend {
                rig.set(key, value).unwrap();
            }
            let (seen, watched) = (course(&rig, false), course(&rig, true));
            let differs = seen.iter().zip(&watched).find(|(one, two)| one != two);
            assert_eq!(differs, None, "{schedule}, {suspend:?}");
            assert_eq!(seen.len(), watched.len());
            let collected = |(_, text): &(u64, String)| {
                text.contains("busy_collection_ns") && !text.contains("busy_collection_ns\": 0")
            };
            assert!(seen.iter().any(collected), "nothing was collected");
        }
    }
}
