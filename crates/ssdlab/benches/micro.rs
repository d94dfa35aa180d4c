//! Micro-benches of the parts that decide the speed of the whole.

use divan::{Bencher, black_box};
use ssdlab::device::{Command, Device, Op};
use ssdlab::rig::Rig;
use ssdlab::rng::Stream;
use ssdlab::sim::Calendar;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

fn main() {
    divan::main();
}

/// Take the earliest event and plan the next of the same component, as dies do.
#[divan::bench(args = [16, 64, 256])]
fn calendar(bencher: Bencher, slots: u32) {
    let mut rng = Stream::new(1, "bench");
    let mut calendar = Calendar::new(slots as usize);
    for slot in 0..slots {
        calendar.set(slot, rng.below(1000));
    }
    bencher.bench_local(|| {
        let (time, slot) = calendar.first();
        calendar.set(slot, time + 1 + (rng.bits() & 1023));
        black_box(slot)
    });
}

/// The same with a heap of events.
#[divan::bench(args = [16, 64, 256])]
fn binary_heap(bencher: Bencher, slots: u32) {
    let mut rng = Stream::new(1, "bench");
    let mut heap: BinaryHeap<Reverse<(u64, u64, u32)>> =
        (0..slots).map(|slot| Reverse((rng.below(1000), u64::from(slot), slot))).collect();
    let mut order = u64::from(slots);
    bencher.bench_local(|| {
        let mut first = heap.peek_mut().expect("never empty");
        order += 1;
        let Reverse((time, _, slot)) = *first;
        *first = Reverse((time + 1 + (rng.bits() & 1023), order, slot));
        black_box(slot)
    });
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
#[divan::bench(args = ["page", "cached", "extent", "extent, merging"])]
fn random_write_with_map(bencher: Bencher, map: &str) {
    let mut device = drive(match map {
        "cached" => "kind = \"cached\"\ncache = \"256KiB\"",
        "extent" => "kind = \"extent\"\nentries = 1000000",
        "extent, merging" => "kind = \"extent\"\nentries = 100000\nsegment = \"256KiB\"",
        _ => "kind = \"page\"",
    });
    let mut rng = Stream::new(2, "bench");
    bencher.bench_local(|| device.apply(&write(rng.below(1 << 18) << 12, 4096)));
}
