//! Types of pages, planes that read by themselves, registers, and times that differ: closed forms.

use crate::common;

use common::{Measured, Sets, closed_loop, command, counters, fill_sequentially, lab_reference};
use ssdlab::device::{Completion, Device, Op};
use ssdlab::rig::Rig;
use ssdlab::rng::Stream;
use ssdlab::stats::{Part, PartSums};

/// Transfer of 4 KiB at 333 MT/s.
const TRANSFER: u64 = 12_300;

fn near(what: &str, measured: f64, expected: f64, tolerance: f64) {
    let error = measured / expected - 1.0;
    println!("{what}: {measured:.5}, expected {expected:.5}: {:+.3} %", error * 100.0);
    assert!(error.abs() <= tolerance, "{what}: {measured}, expected {expected}");
}

/// One die on one channel, with pages of one unit in blocks of 96.
const ONE_DIE: Sets = &[
    ("capacity", "48MiB"),
    ("nand.channels", "1"),
    ("nand.ways", "1"),
    ("nand.pages_per_block", "96"),
];

fn filled(sets: &[Sets]) -> Box<dyn Device> {
    let mut device = lab_reference(&sets.concat()).build(1, false).unwrap();
    fill_sequentially(&mut *device, 1 << 20);
    device
}

/// Random reads of 4 KiB in the first `range` bytes.
fn random_reads(device: &mut dyn Device, range: u64, depth: u64, total: u64) -> Measured {
    random_reads_seen(device, range, depth, total, |_| {})
}

fn random_reads_seen(
    device: &mut dyn Device,
    range: u64,
    depth: u64,
    total: u64,
    mut seen: impl FnMut(&Completion),
) -> Measured {
    let mut rng = Stream::new(1, "reads");
    let next = || command(Op::Read, rng.below(range / 4096) * 4096, 4096);
    closed_loop(device, depth, total, 0, next, |_, completion| seen(completion))
}

/// Latencies of reads of 4 KiB, one after the other, of so many units in order.
fn latencies(device: &mut dyn Device, units: u64) -> Vec<u64> {
    let (mut at, mut all) = (0, Vec::new());
    let next = || {
        at += 4096;
        command(Op::Read, at - 4096, 4096)
    };
    closed_loop(device, 1, units, 0, next, |latency, _| all.push(latency));
    all
}

/// Bytes per second at which an empty drive of 48 MiB is written in order, by whole program units.
fn sequential_writes(sets: &[Sets]) -> f64 {
    let mut device = lab_reference(&sets.concat()).build(1, false).unwrap();
    let (block, mut at) = (768 << 10, 0);
    let next = || {
        at += block;
        command(Op::Write, at - block, block)
    };
    let done = closed_loop(&mut *device, 8, 64, 0, next, |_, _| {});
    (done.commands * block) as f64 * 1e9 / done.elapsed as f64
}

const READ_TYPES: Sets = &[("nand.read_times", "[\"45us\", \"60us\", \"75us\"]")];

#[test]
fn pages_of_a_block_take_turns_in_tr() {
    let mut device = filled(&[ONE_DIE, READ_TYPES]);
    let seen = latencies(&mut *device, 192);
    let turns = [45_000, 60_000, 75_000].map(|t| t + TRANSFER);
    assert!(seen.iter().zip(turns.iter().cycle()).all(|(seen, turn)| seen == turn), "{seen:?}");
    // Random ones take the mean of the types.
    let mut device = filled(&[ONE_DIE, READ_TYPES]);
    let mean = random_reads(&mut *device, 48 << 20, 1, 20_000).mean_latency();
    near("mean", mean, 60_000.0 + TRANSFER as f64, 0.003);
}

#[test]
fn pages_on_several_dies_take_turns_by_their_place_in_the_block() {
    // Two dies under one superblock: consecutive units are the same page of either.
    let two: Sets = &[("nand.ways", "2"), ("ftl.gc.scope", "drive")];
    let seen = latencies(&mut *filled(&[ONE_DIE, READ_TYPES, two]), 12);
    let turns = [45_000, 45_000, 60_000, 60_000, 75_000, 75_000].map(|t| t + TRANSFER);
    assert_eq!(seen, [turns, turns].concat());
}

#[test]
fn pages_that_are_programmed_by_themselves_take_the_mean_tprog() {
    let times: Sets = &[("nand.program_times", "[\"300us\", \"600us\", \"1500us\"]")];
    let rate = sequential_writes(&[ONE_DIE, times]);
    near("writes", rate, 4096e9 / (800_000 + TRANSFER) as f64, 0.002);
    // Not by a fourth one more than t_program says.
    let rate = sequential_writes(&[ONE_DIE]);
    near("writes of one type", rate, 4096e9 / (750_000 + TRANSFER) as f64, 0.002);
}

#[test]
fn one_shot_programs_all_pages_of_a_word_line_and_senses_each() {
    let one_shot: Sets = &[("nand.one_shot", "true"), ("nand.planes", "2")];
    let rate = sequential_writes(&[ONE_DIE, one_shot]);
    // Three pages of two planes cross before each program.
    near("writes", rate, 6.0 * 4096e9 / (750_000 + 6 * TRANSFER) as f64, 0.003);
    let seen = latencies(&mut *filled(&[ONE_DIE, one_shot, READ_TYPES]), 12);
    // Both planes have a page of a type.
    let turns = [45_000, 45_000, 60_000, 60_000, 75_000, 75_000].map(|t| t + TRANSFER);
    assert_eq!(seen, [turns, turns].concat());
}

#[test]
fn one_shot_reads_to_collect_sense_every_page_that_holds_something() {
    let sets: Sets = &[
        ("nand.one_shot", "true"),
        ("nand.read_times", "[\"45us\", \"60us\", \"75us\"]"),
        ("ftl.over_provisioning", "0.4"),
    ];
    let mut device = lab_reference(&[ONE_DIE, sets].concat()).build(1, false).unwrap();
    fill_sequentially(&mut *device, 12 << 10);
    let units = device.capacity() / 4096;
    let mut rng = Stream::new(1, "writes");
    let mut next = || command(Op::Write, rng.below(units / 3) * 3 * 4096, 3 * 4096);
    for _ in 0..units {
        device.apply(&next());
    }
    let before = counters(&*device);
    closed_loop(&mut *device, 8, 4 * units, 0, next, |_, _| {});
    let after = counters(&*device);
    let since = |name: &str| after[name] - before[name];
    // What was written together is valid together: a program unit of three pages, or nothing of it.
    assert_eq!(since("flash_reads"), since("flash_units_read"));
    assert_eq!(since("programs_collection"), since("flash_units_read"));
    // On one die all that it does follows each other; of a program unit that moves the pages are of all types.
    let transfers = (since("flash_units_read") + since("flash_units_programmed")) * TRANSFER;
    let busy = since("flash_reads") * 60_000
        + since("flash_programs") * 750_000
        + since("flash_erases") * 3_800_000
        + transfers;
    let counted: u64 =
        ["host_write", "collection"].iter().map(|cause| since(&format!("busy_{cause}_ns"))).sum();
    near("busy", counted as f64, busy as f64, 0.001);
}

const PLANES: Sets = &[("nand.planes", "4"), ("nand.independent_plane_reads", "true")];
const CACHE: Sets = &[("nand.cache_operations", "true")];

#[test]
fn independent_planes_read_at_the_same_time_until_the_channel_is_full() {
    let together: Sets = &[("nand.planes", "4")];
    let rate =
        |sets: &[Sets]| random_reads(&mut *filled(sets), 48 << 20, 256, 40_000).per_second() / 1e3;
    near("planes together", rate(&[ONE_DIE, together]), 1e6 / 87_300.0, 0.001);
    // Four planes of 75 us, of which transfers take less than a half: no plane waits for the next read.
    let slow: Sets = &[("nand.transfer_mts", "4096")];
    near("cells", rate(&[ONE_DIE, PLANES, CACHE, slow]), 4e6 / 75_000.0, 0.01);
    // Without a second register a plane waits for its own transfer too, and now and then for another one's.
    let held = rate(&[ONE_DIE, PLANES, slow]);
    near("registers held", held, 4e6 / 76_000.0, 0.01);
    // Planes that take 20 us ask for four transfers in that time, of which two fit.
    let fast: Sets = &[("nand.t_read", "20us")];
    near("channel", rate(&[ONE_DIE, PLANES, CACHE, fast]), 1e6 / TRANSFER as f64, 0.005);
}

#[test]
fn a_program_takes_all_planes() {
    let fifo: Sets = &[("nand.schedule", "fifo")];
    let mut device = filled(&[ONE_DIE, PLANES, fifo]);
    // A page of each plane, and a program between the second and the third.
    for (tag, (op, offset)) in
        [(Op::Read, 0), (Op::Read, 4096), (Op::Write, 1 << 20), (Op::Read, 8192)]
            .into_iter()
            .enumerate()
    {
        let command = command(op, offset, if op == Op::Write { 16 << 10 } else { 4096 });
        device.submit(0, ssdlab::device::Command { tag: tag as u64, ..command });
    }
    let mut done = Vec::new();
    while done.len() < 4 {
        device.advance(u64::MAX - 1, &mut done);
    }
    let ends: Vec<(u64, u64)> = done.iter().map(|c| (c.tag, c.time)).collect();
    let reads = 75_000 + 2 * TRANSFER;
    let program = reads + 4 * TRANSFER + 750_000;
    let expected =
        [(0, reads - TRANSFER), (1, reads), (2, program), (3, program + 75_000 + TRANSFER)];
    assert_eq!(ends, expected);
}

#[test]
fn a_cache_read_takes_the_longer_of_sensing_and_transfer() {
    for (read, transfer_mts, longer) in [("75us", "333", 75_000.0), ("8us", "333", 12_300.0)] {
        let times: Sets = &[("nand.t_read", read), ("nand.transfer_mts", transfer_mts)];
        let rate = |sets: &[Sets]| {
            random_reads(&mut *filled(sets), 48 << 20, 16, 20_000).per_second() / 1e3
        };
        near(&format!("{read} overlapped"), rate(&[ONE_DIE, times, CACHE]), 1e6 / longer, 0.001);
        let sum = 12_300.0 + if read == "75us" { 75_000.0 } else { 8_000.0 };
        near(&format!("{read} one by one"), rate(&[ONE_DIE, times]), 1e6 / sum, 0.001);
    }
    // Alone, a read takes what it did.
    let alone = random_reads(&mut *filled(&[ONE_DIE, CACHE]), 48 << 20, 1, 1000);
    assert_eq!(alone.latency_max, 75_000 + TRANSFER);
}

#[test]
fn cache_programs_take_the_longer_of_transfer_and_programming() {
    for (program, longer) in [("750us", 750_000.0), ("100us", 16.0 * TRANSFER as f64)] {
        let page: Sets = &[("nand.page", "64KiB"), ("nand.t_program", program)];
        let rate = sequential_writes(&[ONE_DIE, page, CACHE]);
        near(&format!("{program} overlapped"), rate, 65_536e9 / longer, 0.005);
        let sum = 16.0 * TRANSFER as f64 + if longer > 500_000.0 { longer } else { 100_000.0 };
        let rate = sequential_writes(&[ONE_DIE, page]);
        near(&format!("{program} one by one"), rate, 65_536e9 / sum, 0.005);
    }
}

#[test]
fn what_overlaps_is_told_once() {
    // Sixteen reads wait for one die: what passes before one of them is over is the sensing of sixteen.
    let mut device = filled(&[ONE_DIE, CACHE]);
    let mut sums = PartSums::default();
    let reads = random_reads_seen(&mut *device, 48 << 20, 16, 4000, |c| sums.add(&c.parts));
    let of = |part: Part| sums.0[part as usize];
    assert_eq!((of(Part::Cells), of(Part::Channel)), (4000 * 75_000, 4000 * TRANSFER));
    assert_eq!(of(Part::Cells) + of(Part::Channel) + of(Part::DieHost), reads.latency_sum);
    let c = counters(&*device);
    // The die was at work all the time, and counts it once.
    near("busy", c["busy_host_read_ns"] as f64, reads.elapsed as f64, 0.001);
    assert_eq!(c["busy_channels_ns"], 4000 * TRANSFER);
}

const KEEPS: Sets = &[("nand.page", "16KiB"), ("nand.page_register", "true")];

#[test]
fn a_page_in_its_register_is_read_at_the_rate_of_the_channel() {
    for depth in [1, 32] {
        let mut device = filled(&[ONE_DIE, KEEPS]);
        let reads = random_reads(&mut *device, 16 << 10, depth, 10_000);
        near(&format!("depth {depth}"), reads.per_second() / 1e3, 1e6 / TRANSFER as f64, 0.001);
        let c = counters(&*device);
        assert_eq!((c["flash_reads"], c["flash_register_hits"]), (1, 9_999));
    }
}

#[test]
fn reads_of_a_page_that_wait_share_its_sensing() {
    // Two pages, 32 in flight. All that wait for the page that is sensed next go with it: x of them. When they are done,
    // half have come back for it, half for the other page: x = 32 - x / 2.
    let batch = 32.0 / 1.5;
    let mut device = filled(&[ONE_DIE, KEEPS]);
    let reads = random_reads(&mut *device, 32 << 10, 32, 40_000);
    let us = 75.0 + batch * TRANSFER as f64 / 1e3;
    near("two pages", reads.per_second(), batch * 1e6 / us, 0.01);
    let c = counters(&*device);
    near("senses", c["flash_reads"] as f64, 40_000.0 / batch, 0.01);
    assert_eq!(c["flash_reads"] + c["flash_register_hits"], 40_000);
}

#[test]
fn hot_data_is_read_no_slower_than_all() {
    // 64 KiB are four pages on four of the dies; without registers each read is sensed.
    let page: Sets = &[("capacity", "64MiB"), ("nand.page", "16KiB")];
    let register: Sets = &[("nand.page_register", "true")];
    let rate = |sets: &[Sets], range: u64| {
        random_reads(&mut *filled(sets), range, 32, 20_000).per_second() / 1e3
    };
    let all = rate(&[page, register], 64 << 20);
    let hot = rate(&[page, register], 64 << 10);
    assert!(hot > all, "hot {hot} kIOPS, all {all} kIOPS");
    let without = rate(&[page], 64 << 10);
    assert!(without < 4e6 / 87_300.0, "{without} kIOPS without registers");
    println!("hot {hot} kIOPS, all {all} kIOPS, hot without registers {without} kIOPS");
}

#[test]
fn a_program_or_another_page_takes_the_register() {
    let mut device = filled(&[ONE_DIE, KEEPS]);
    let mut at = 0;
    let mut one = |device: &mut dyn Device, op: Op, offset: u64, len: u64| {
        let done = closed_loop(device, 1, 1, at, || command(op, offset, len), |_, _| {});
        at = done.end;
        done.latency_sum
    };
    let sensed = 75_000 + TRANSFER;
    assert_eq!(one(&mut *device, Op::Read, 0, 4096), sensed);
    assert_eq!(one(&mut *device, Op::Read, 8192, 4096), TRANSFER);
    assert_eq!(one(&mut *device, Op::Read, 16 << 10, 4096), sensed, "another page");
    assert_eq!(one(&mut *device, Op::Read, 0, 4096), sensed, "the first again");
    one(&mut *device, Op::Write, 1 << 20, 16 << 10);
    assert_eq!(one(&mut *device, Op::Read, 0, 4096), sensed, "after a program");
    assert_eq!(one(&mut *device, Op::Read, 4096, 4096), TRANSFER);
}

#[test]
fn each_plane_keeps_its_page() {
    let planes: Sets = &[("nand.planes", "2"), ("nand.multi_plane_read", "false")];
    let mut device = filled(&[ONE_DIE, KEEPS, planes]);
    let mut k = 0;
    // By turns a unit of the page of either plane.
    let next = || {
        k += 1;
        command(Op::Read, k % 2 * (16 << 10), 4096)
    };
    let reads = closed_loop(&mut *device, 1, 1000, 0, next, |_, _| {});
    assert_eq!(reads.latency_sum, 1000 * TRANSFER + 2 * 75_000);
}

#[test]
fn times_of_blocks_differ_by_drive_and_stay_what_they_are() {
    let varied: Sets = &[("nand.time_variation", "0.05"), ("capacity", "64MiB")];
    let seen = |seed: u64| {
        let mut device = lab_reference(varied).build(seed, false).unwrap();
        fill_sequentially(&mut *device, 1 << 20);
        latencies(&mut *device, 16 << 10)
    };
    let (first, other) = (seen(1), seen(2));
    assert_eq!(first, seen(1));
    assert!(first != other);
    // 4096 * 16 units in blocks of 64 on 16 dies: pages of a block are alike.
    let mut kinds = first.clone();
    kinds.sort_unstable();
    kinds.dedup();
    assert!((128..=256).contains(&kinds.len()), "{} blocks", kinds.len());
    let mean = first.iter().sum::<u64>() as f64 / first.len() as f64 - TRANSFER as f64;
    // The mean of 16 dies.
    near("mean", mean, 75_000.0, 4.0 * 0.05 / 2f64.sqrt() / 4.0);
    let square = |&time: &u64| (time as f64 - TRANSFER as f64 - mean).powi(2);
    let deviation = (first.iter().map(square).sum::<f64>() / first.len() as f64).sqrt() / 75_000.0;
    // That of dies is known to a fifth from 16 of them.
    near("deviation", deviation, 0.05, 0.3);
}

/// Share of pages that are sensed twice.
const RETRIES: Sets = &[("nand.read_retries.share", "0.3")];

/// The firmware sees to one of them after the other.
const ONE_AT_A_TIME: Sets = &[("nand.read_retries.at_once", "1")];

#[test]
fn a_share_of_the_pages_takes_tr_twice() {
    let seen = |sets: &[Sets], seed| {
        let mut device = lab_reference(&sets.concat()).build(seed, false).unwrap();
        fill_sequentially(&mut *device, 1 << 20);
        let before = counters(&*device)["flash_reads"];
        let seen = latencies(&mut *device, 12 << 10);
        (seen, counters(&*device)["flash_reads"] - before)
    };
    let (first, senses) = seen(&[ONE_DIE, RETRIES], 1);
    let twice = |&latency: &u64| match latency - TRANSFER {
        75_000 => false,
        150_000 => true,
        other => panic!("sensed for {other} ns"),
    };
    let pages: Vec<bool> = first.iter().map(twice).collect();
    let share = pages.iter().filter(|&&twice| twice).count() as f64 / pages.len() as f64;
    near("share", share, 0.3, 4.0 * (0.7f64 / 0.3 / (12 << 10) as f64).sqrt());
    let mean = first.iter().sum::<u64>() as f64 / first.len() as f64;
    near("mean", mean, (1.0 + share) * 75_000.0 + TRANSFER as f64, 1e-9);
    near("senses", senses as f64, (1.0 + share) * (12 << 10) as f64, 1e-9);
    // The same pages every time, and others in another drive.
    assert_eq!(seen(&[ONE_DIE, RETRIES, ONE_AT_A_TIME], 1).0, first);
    assert!(seen(&[ONE_DIE, RETRIES], 2).0 != first);
    // A page of another type takes its own tR twice.
    let by_type = seen(&[ONE_DIE, RETRIES, READ_TYPES], 1).0;
    let turns = [45_000, 60_000, 75_000].into_iter().cycle();
    let expected = pages.iter().zip(turns).map(|(&twice, t)| t * (1 + u64::from(twice)) + TRANSFER);
    assert_eq!(by_type, expected.collect::<Vec<_>>());
}

#[test]
fn retries_one_at_a_time_are_a_ceiling_of_reads() {
    for planes in [&[] as Sets, &[("nand.independent_plane_reads", "true")]] {
        let rig = lab_reference(&[RETRIES, ONE_AT_A_TIME, planes].concat());
        let mut device = rig.build(1, false).unwrap();
        fill_sequentially(&mut *device, 1 << 20);
        let (before, range) = (counters(&*device), device.capacity());
        let rate = random_reads(&mut *device, range, 256, 100_000).per_second();
        let after = counters(&*device);
        let grown = |name: &str| (after[name] - before[name]) as f64;
        let retries = grown("flash_reads") / grown("flash_units_read") - 1.0;
        near("share", retries, 0.3, 0.02);
        near("reads", rate, 1e9 / (retries * 75_000.0), 0.002);
    }
}

#[test]
fn what_is_moved_is_sensed_as_often_as_the_host_would() {
    // Each unit that is copied is sensed by itself.
    let retries = |sets: &[Sets]| {
        let mut device = filled(sets);
        let mut rng = Stream::new(1, "writes");
        let units = device.capacity() / 4096;
        let next = || command(Op::Write, rng.below(units) * 4096, 4096);
        closed_loop(&mut *device, 4, 4 * units, 0, next, |_, _| {});
        let seen = counters(&*device);
        seen["flash_reads"] as f64 / seen["flash_units_read"] as f64
    };
    near("once each", retries(&[ONE_DIE]), 1.0, 1e-9);
    near("senses of a copy", retries(&[ONE_DIE, RETRIES]), 1.3, 0.01);
}

#[test]
fn times_by_page_type_stand_in_place_of_those_of_all_pages() {
    let built = |times: &str| {
        let text = format!(
            "[device]\nkind = \"ssd\"\ncapacity = \"48MiB\"\nftl.over_provisioning = 0.2\n[device.nand]\n\
             channels = 1\nways = 1\npage = \"4KiB\"\npages_per_block = 96\ntransfer_mts = 333\n\
             t_erase = \"3ms\"\n{times}"
        );
        Rig::parse(&text, "r")?.build(1, false)
    };
    let reads = "read_times = [\"45us\", \"60us\", \"75us\"]\n";
    let types = format!("{reads}program_times = [\"500us\", \"1ms\", \"2ms\"]\n");
    let seen =
        [types.clone(), format!("{types}t_read = \"1ms\"\nt_program = \"9ms\"\n")].map(|times| {
            let mut device = built(&times).unwrap();
            fill_sequentially(&mut *device, 1 << 20);
            latencies(&mut *device, 12)
        });
    assert_eq!(seen[0], seen[1]);
    assert!(seen[0].contains(&(45_000 + TRANSFER)), "{seen:?}");
    let error = built(reads).map(drop).unwrap_err().to_string();
    assert_eq!(error, "r: nand.t_program: is missing, and so is nand.program_times");
}

#[test]
fn what_cannot_be_is_refused_in_a_sentence() {
    for (sets, message) in [
        (
            &[("nand.read_times", "[\"45us\", \"60us\"]")][..],
            "nand.read_times: found 2 times, expected 3: one for each of nand.bits_per_cell",
        ),
        (
            &[("nand.one_shot", "true")],
            "nand.pages_per_block: found 64, expected a multiple of nand.bits_per_cell (3) with \
             nand.one_shot",
        ),
        (
            &[("nand.one_shot", "true"), ("nand.program_times", "[\"1us\", \"2us\", \"3us\"]")],
            "nand.program_times: found with nand.one_shot, expected nand.t_program alone",
        ),
        (
            &[("nand.program_times", "[\"1us\", \"2h\", \"3us\"]")],
            "nand.program_times: found 7200s, expected at most an hour",
        ),
        (
            &[("nand.read_retries.share", "1.5")],
            "nand.read_retries.share: found 1.5, expected a number from 0 to 1",
        ),
        (&[("nand.time_variation", "0.3")], "nand.time_variation: found 0.3, expected a number"),
    ] {
        let error = lab_reference(sets).build(1, false).err().expect(message).to_string();
        assert!(error.contains(message), "{error}");
    }
}
