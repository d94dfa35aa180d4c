//! Sequential reading: read-ahead, and what random overwrites do to it (internal fragmentation).

use crate::common;

use common::audit::{Audit, Step};
use common::rigs::{Shape, build};
use common::{Sets, cases, closed_loop, command, counters, fill_sequentially, ssd_of};
use proptest::prelude::*;
use ssdlab::device::ssd::Ssd;
use ssdlab::device::{Command, Device, Op};
use ssdlab::rig::Rig;
use ssdlab::rng::Stream;

const MIB: u64 = 1 << 20;
const UNIT: u64 = 4096;

fn near(what: &str, measured: f64, expected: f64, tolerance: f64) {
    let error = measured / expected - 1.0;
    println!("{what}: {measured:.5}, expected {expected:.5}: {:+.3} %", error * 100.0);
    assert!(error.abs() <= tolerance, "{what}: {measured}, expected {expected}");
}

/// `lab-reference` of `capacity` with 16 dies on a channel each, a page of 16 units in four planes
/// and room for all that the tests write, so that nothing is ever collected. 1 MiB is one sense of
/// each die.
fn wide(capacity: &str, ahead: Option<&str>, sets: Sets) -> Rig {
    let mut text = common::LAB_REFERENCE.to_string()
        + "\n[device.write_buffer]\nsize = \"8MiB\"\npower_loss_protected = true\n";
    if let Some(size) = ahead {
        text += &format!("[device.controller.read_ahead]\nsize = \"{size}\"\n");
    }
    let mut rig = Rig::parse(&text, "wide").unwrap();
    let defaults: Sets = &[
        ("capacity", capacity),
        ("nand.channels", "16"),
        ("nand.ways", "1"),
        ("nand.planes", "4"),
        ("nand.page", "16KiB"),
        ("nand.t_read", "60us"),
        ("nand.transfer_mts", "4096"),
        ("ftl.over_provisioning", "1.2"),
    ];
    for (key, value) in defaults.iter().chain(sets) {
        rig.set(key, value).unwrap();
    }
    rig
}

/// Random overwrites of one unit, without time.
fn overwrite(device: &mut dyn Device, units: u64, seed: u64) {
    let all = device.capacity() / UNIT;
    let mut rng = Stream::new(seed, "overwrites");
    (0..units).for_each(|_| device.apply(&command(Op::Write, rng.below(all) * UNIT, UNIT)));
}

/// Mean time of a 1 MiB read at depth 1, over the whole device in order, ns.
fn read_through(device: &mut dyn Device, start: u64) -> (f64, u64) {
    let mut at = 0;
    let next = || {
        at += MIB;
        command(Op::Read, at - MIB, MIB)
    };
    let total = device.capacity() / MIB;
    let read = closed_loop(device, 1, total, start, next, |_, _| {});
    (read.mean_latency(), read.end)
}

/// Largest of `dies` counts when `balls` fall at random, on average; the number of balls is
/// binomial, `chances` times with probability `p`.
fn fullest(chances: u64, p: f64, dies: u64) -> f64 {
    let mut rng = Stream::new(7, "balls");
    let rounds = 20_000;
    let mut sum = 0;
    for _ in 0..rounds {
        let mut counts = vec![0u64; dies as usize];
        for _ in 0..chances {
            if rng.unit() < p {
                counts[rng.below(dies) as usize] += 1;
            }
        }
        sum += counts.iter().max().unwrap();
    }
    sum as f64 / f64::from(rounds)
}

#[test]
fn fragments_cost_a_read_what_the_fullest_die_takes_for_them() {
    let rig = wide("1GiB", None, &[]);
    let mut device = rig.build(1, false).unwrap();
    fill_sequentially(&mut *device, MIB);
    let units = device.capacity() / UNIT;
    let (fresh, mut now) = read_through(&mut *device, 0);
    // One sense of every die, 16 units each over its own channel: 60 us + 16 x 1 us.
    assert_eq!(fresh, 76_000.0);
    let mut overwritten = 0;
    for part in [0.0122, 0.0488, 0.1953, 0.9766] {
        let writes = (part * units as f64) as u64 - overwritten;
        overwritten += writes;
        overwrite(&mut *device, writes, overwritten);
        let (mean, end) = read_through(&mut *device, now);
        now = end;
        // Each fragment is a sense and a transfer. A little less is right: the old pages have as
        // many units less to transfer, and now and then two fragments meet in one page.
        let phi = 1.0 - (-(overwritten as f64) / units as f64).exp();
        let extra = fullest(256, phi, 16) * 61_000.0;
        near(&format!("{phi:.3} overwritten"), mean - fresh, extra, 0.03);
        assert!(mean - fresh < extra);
    }
    assert_eq!(counters(&*device)["collections"], 0);
}

#[test]
fn single_unit_pages_striped_by_address_do_not_fragment() {
    let sets: Sets = &[("nand.planes", "1"), ("nand.page", "4KiB"), ("ftl.placement", "striped")];
    for ahead in [None, Some("2MiB")] {
        let rig = wide("128MiB", ahead, sets);
        let mut device = rig.build(1, false).unwrap();
        fill_sequentially(&mut *device, MIB);
        let (fresh, now) = read_through(&mut *device, 0);
        overwrite(&mut *device, 32 << 10, 1);
        let (after, _) = read_through(&mut *device, now);
        assert_eq!(fresh, after, "read-ahead {ahead:?}");
        let c = counters(&*device);
        assert_eq!(c["flash_reads"], c["flash_units_read"]);
    }
}

/// Senses of the die and transfers, of 1 MiB on 16 dies, one after the other.
const DIES_RATE: f64 = 16.0 * 16.0 * 4096.0 / 76e-6;

#[test]
fn a_fresh_area_is_read_at_the_speed_of_the_dies_at_depth_one() {
    // Two pages of every die: while one of them is read out, the next is asked for.
    let sets: Sets = &[("controller.command_time", "20us")];
    let rate = |ahead| {
        let mut device = wide("256MiB", ahead, sets).build(1, false).unwrap();
        fill_sequentially(&mut *device, MIB);
        MIB as f64 * 1e9 / read_through(&mut *device, 0).0
    };
    near("read-ahead", rate(Some("2MiB")), DIES_RATE, 0.01);
    near("no read-ahead", rate(None), MIB as f64 / 96e-6, 1e-9);
}

#[test]
fn a_fresh_area_is_read_at_the_speed_of_the_link_at_depth_one() {
    let drive = wide("256MiB", Some("2MiB"), &[]);
    let link = "bandwidth = \"2GB/s\"\nqueue_slots = 32".parse().unwrap();
    let rig = Rig::wrap("link", link, &[("below", vec![&drive])]).unwrap();
    let mut device = rig.build(1, false).unwrap();
    fill_sequentially(&mut *device, MIB);
    near("link", MIB as f64 * 1e9 / read_through(&mut *device, 0).0, 2e9, 0.01);
}

#[test]
fn the_same_stream_falls_after_random_overwrites() {
    let mut device = wide("1GiB", Some("2MiB"), &[]).build(1, false).unwrap();
    fill_sequentially(&mut *device, MIB);
    let units = device.capacity() / UNIT;
    let (fresh, mut now) = read_through(&mut *device, 0);
    let mut last = fresh;
    for (k, part) in [0.0122, 0.0366, 0.1465, 0.7813].into_iter().enumerate() {
        overwrite(&mut *device, (part * units as f64) as u64, k as u64);
        let (mean, end) = read_through(&mut *device, now);
        now = end;
        assert!(mean > last * 1.02, "{k}: {mean} after {last}");
        last = mean;
    }
    let before = counters(&*device);
    // Written again in order, it is as it was: nothing but its place on the flash had changed.
    fill_sequentially(&mut *device, MIB);
    near("written anew", read_through(&mut *device, now).0, fresh, 0.01);
    let after = counters(&*device);
    let senses = after["flash_reads"] - before["flash_reads"];
    assert!(senses < units / 16 + 256, "{senses} senses for {units} units in pages of 16");
}

#[test]
fn small_sequential_reads_sense_each_page_once() {
    let mut device = wide("64MiB", Some("256KiB"), &[]).build(1, false).unwrap();
    fill_sequentially(&mut *device, MIB);
    let mut at = 0;
    let next = || {
        at += 2048;
        command(Op::Read, at - 2048, 2048)
    };
    closed_loop(&mut *device, 4, 32 << 10, 0, next, |_, _| {});
    let c = counters(&*device);
    let asked = (64 << 20) / UNIT;
    // But for the first read, which is not a stream yet.
    assert!((asked / 16..=asked / 16 + 1).contains(&c["flash_reads"]), "{}", c["flash_reads"]);
    assert_eq!(c["flash_units_read"], c["units_read_flash"] + c["units_fetched_ahead"]);
    assert!(c["units_read_ahead"] >= 2 * asked - 66, "{} found", c["units_read_ahead"]);
}

#[test]
fn random_reads_fetch_nothing_ahead() {
    let run = |ahead: Option<&str>| {
        let mut device = wide("256MiB", ahead, &[]).build(1, false).unwrap();
        fill_sequentially(&mut *device, MIB);
        let mut rng = Stream::new(1, "reads");
        // Even units only, so that none follows another.
        let next = || command(Op::Read, rng.below(32 << 10) * 2 * UNIT, UNIT);
        let read = closed_loop(&mut *device, 8, 20_000, 0, next, |_, _| {});
        (read.latency_sum, counters(&*device).get("units_fetched_ahead").copied().unwrap_or(0))
    };
    assert_eq!(run(Some("1MiB")), run(None));
}

/// Reads in order with writes, TRIMs and pauses between them, most of them close ahead.
fn disturbed_stream(seed: u64, capacity: u64) -> Vec<Step> {
    let mut rng = Stream::new(seed, "disturbed");
    let mut script = Vec::new();
    for offset in (0..capacity).step_by(64 << 10) {
        script.push(Step::Apply(Op::Write, offset, (64 << 10).min(capacity - offset)));
    }
    let mut at = 0;
    for _ in 0..600 {
        let len = (1 + rng.below(24)) * 512;
        if at + len > capacity || rng.below(40) == 0 {
            at = rng.below(capacity / 1024) * 512;
            continue;
        }
        script.push(Step::Io(Op::Read, at, len));
        at += len;
        let len = (1 + rng.below(16)) * 512;
        let near = (at + rng.below(128) * 512).min(capacity - len);
        match rng.below(12) {
            0..5 => script.push(Step::Io(Op::Write, near, len)),
            5 => script.push(Step::Io(Op::Trim, near, 2 * len.min(capacity - near - len))),
            6 => script.push(Step::Apply(Op::Write, near, len)),
            7 => script.push(Step::Idle(rng.below(2_000_000))),
            8 if rng.below(50) == 0 => script.push(Step::Io(Op::Purge, 0, 0)),
            _ => {}
        }
    }
    script.retain(|s| !matches!(s, Step::Io(_, _, 0) if !matches!(s, Step::Io(Op::Purge, ..))));
    script
}

proptest! {
    #![proptest_config(cases(100, 2000))]
    #[test]
    fn a_stream_never_answers_what_was_overwritten(seed: u64, window in 1u64..64, depth in 1usize..9) {
        let size = format!("{}KiB", window * 4);
        let rig = wide("4MiB", Some(&size), &[
            ("nand.channels", "2"), ("nand.ways", "2"), ("nand.planes", "2"),
            ("nand.page", "8KiB"), ("nand.pages_per_block", "16"), ("write_buffer.size", "64KiB"),
        ]);
        let mut device = build(&rig, seed, true);
        let oracle = Shape::of(&rig).oracle(device.capacity());
        let script = disturbed_stream(seed, device.capacity());
        let mut audit = Audit::new(&mut *device, Some(oracle));
        audit.run(&script, depth).map_err(|v| TestCaseError::fail(format!("{v:?}")))?;
        audit.device.verify();
        prop_assert!(counters(audit.device)["units_read_ahead"] > 0);
    }
}

#[test]
fn eight_streams_are_followed_at_once_and_a_ninth_displaces_one() {
    let found = |streams: u64| {
        let mut ssd: Ssd = ssd_of(&wide("64MiB", Some("128KiB"), &[]), 1, false);
        fill_sequentially(&mut ssd, MIB);
        let mut k = 0;
        let next = || -> Command {
            let (stream, step) = (k % streams, k / streams);
            k += 1;
            command(Op::Read, stream * 4 * MIB + step * 16384, 16384)
        };
        closed_loop(&mut ssd, 1, streams * 100, 0, next, |_, _| {});
        counters(&ssd)["units_read_ahead"]
    };
    assert_eq!(found(8), 8 * 98 * 4);
    assert_eq!(found(9), 0);
}
