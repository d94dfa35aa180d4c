//! Micro-benches of the parts that decide the speed of the whole: the median of some batches, per call.
//!
//! `cargo bench -p ssdlab --bench micro [-- WORD]`: those whose name has the word.

mod clock;

use clock::cpu;
use ssdlab::device::{Command, Device, Op};
use ssdlab::job::{ParseSource, parse};
use ssdlab::rig::Rig;
use ssdlab::rng::Stream;
use ssdlab::run::{RunOptions, run};
use ssdlab::sim::Calendar;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::hint::black_box;

const BATCHES: usize = 25;

fn main() {
    let word = std::env::args().skip(1).find(|a| a != "--bench").unwrap_or_default();
    let bench = |name: &str, calls: u32, prepare: &dyn Fn() -> Box<dyn FnMut()>| {
        if name.contains(&word) {
            println!("{name:<40} {:>12.1} ns", median(calls, &mut *prepare()));
        }
    };
    for slots in [16, 64, 256] {
        bench(&format!("calendar {slots}"), 1_000_000, &|| calendar(slots));
        bench(&format!("binary_heap {slots}"), 1_000_000, &|| binary_heap(slots));
    }
    for map in ["page", "cached", "extent", "extent, merging"] {
        bench(&format!("random_write_with_map {map}"), 20_000, &|| random_write_with_map(map));
    }
    for rw in ["write", "randwrite", "randrw"] {
        bench(&format!("closed_loop_100k_ios {rw}"), 1, &|| closed_loop_100k_ios(rw));
    }
}

/// What a call takes, ns of CPU time.
fn median(calls: u32, work: &mut dyn FnMut()) -> f64 {
    let mut batches: Vec<f64> = (0..BATCHES)
        .map(|_| {
            let begin = cpu();
            (0..calls).for_each(|_| work());
            (cpu() - begin) * 1e9 / f64::from(calls)
        })
        .collect();
    batches.sort_unstable_by(f64::total_cmp);
    batches[BATCHES / 2]
}

/// Take the earliest event and plan the next of the same component, as dies do.
fn calendar(slots: u32) -> Box<dyn FnMut()> {
    let mut rng = Stream::new(1, "bench");
    let mut calendar = Calendar::new(slots as usize);
    for slot in 0..slots {
        calendar.set(slot, rng.below(1000));
    }
    Box::new(move || {
        let (time, slot) = (calendar.earliest(), calendar.first());
        calendar.set(slot, time + 1 + (rng.bits() & 1023));
        black_box(slot);
    })
}

/// The same with a heap of events.
fn binary_heap(slots: u32) -> Box<dyn FnMut()> {
    let mut rng = Stream::new(1, "bench");
    let mut heap: BinaryHeap<Reverse<(u64, u64, u32)>> =
        (0..slots).map(|slot| Reverse((rng.below(1000), u64::from(slot), slot))).collect();
    let mut order = u64::from(slots);
    Box::new(move || {
        let mut first = heap.peek_mut().expect("never empty");
        order += 1;
        let Reverse((time, _, slot)) = *first;
        *first = Reverse((time + 1 + (rng.bits() & 1023), order, slot));
        black_box(slot);
    })
}

/// A small drive with a kind of map, filled in order and then written at random for a while.
fn drive(map: &str) -> Box<dyn Device> {
    let text = format!(
        "[device]\nkind = \"ssd\"\ncapacity = \"1GiB\"\n[device.nand]\nchannels = 8\nways = 1\n\
         page = \"4KiB\"\npages_per_block = 64\nt_read = \"75us\"\nt_program = \"750us\"\n\
         t_erase = \"3ms\"\ntransfer_mts = 333\n[device.ftl]\nover_provisioning = 0.28\n\
         [device.ftl.gc]\nscope = \"drive\"\n[device.ftl.map]\n{map}\n"
    );
    let rig = Rig::parse(&text, "bench").expect("the rig is right");
    let mut device = rig.build(1, false).expect("the rig is right");
    (0..1 << 10).for_each(|n| device.apply(&write(n << 20, 1 << 20)));
    let mut rng = Stream::new(1, "fill");
    (0..300_000).for_each(|_| device.apply(&write(rng.below(1 << 18) << 12, 4096)));
    device
}

fn write(offset: u64, len: u64) -> Command {
    Command { op: Op::Write, offset, len, ..Command::default() }
}

/// An untimed random write of 4 KiB: all in RAM, a quarter of the map cached, a table that never
/// fills, and one that makes a segment of 64 units merge now and then.
fn random_write_with_map(map: &str) -> Box<dyn FnMut()> {
    let mut device = drive(match map {
        "cached" => "kind = \"cached\"\ncache = \"256KiB\"",
        "extent" => "kind = \"extent\"\nentries = 1000000",
        "extent, merging" => "kind = \"extent\"\nentries = 100000\nsegment = \"256KiB\"",
        _ => "kind = \"page\"",
    });
    let mut rng = Stream::new(2, "bench");
    Box::new(move || device.apply(&write(rng.below(1 << 18) << 12, 4096)))
}

/// What the driver itself costs, beside the device and the generator: a second of virtual time, 100 000 I/Os
/// through the null device, which takes no time to make.
fn closed_loop_100k_ios(rw: &str) -> Box<dyn FnMut()> {
    let include = |_: &str| Err(std::io::Error::other("nothing to include"));
    let source = ParseSource { file: "bench.fio".into(), env: BTreeMap::new(), include: &include };
    let text = format!("[a]\nrw={rw}\nbs=4k\niodepth=32\nnorandommap=1\ntime_based=1\nruntime=1\n");
    let jobs = parse(&text, &source).expect("the job is right");
    let rig =
        "[device]\nkind = \"null\"\ncapacity = \"4GiB\"\nservice_time = \"320us\"\nservers = 32\n";
    let rig = Rig::parse(rig, "null").expect("the rig is right");
    Box::new(move || {
        let mut device = rig.build(1, false).expect("the rig is right");
        let done = run(device.as_mut(), &jobs, &RunOptions::default(), &mut ());
        black_box(done.expect("the job fits"));
    })
}
