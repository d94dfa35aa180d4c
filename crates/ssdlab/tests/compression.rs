//! Compression in the drive: what shrinks is programmed, collected and read as what it takes.

use crate::common;

use common::models;
use common::{Sets, amount, closed_loop, command, lab_reference, lab_ssd, points};
use ssdlab::device::ssd::Ssd;
use ssdlab::device::{Command, Device, Op};
use ssdlab::rig::Rig;
use ssdlab::rng::Stream;
use std::collections::BTreeMap;

const UNIT: u64 = 4096;
/// Granules of a mapping unit at `granule = "512B"`.
const G: u32 = 8;
const BUFFER: &str = "{ size = \"1MiB\", power_loss_protected = true }";

fn write(unit: u64, compressible: u8) -> Command {
    Command { compressible, ..command(Op::Write, unit * UNIT, UNIT) }
}

fn near(what: &str, measured: f64, expected: f64, tolerance: f64) {
    let error = measured / expected - 1.0;
    println!("{what}: {measured:.5}, expected {expected:.5}: {:+.3} %", error * 100.0);
    assert!(error.abs() <= tolerance, "{what}: {measured}, expected {expected}");
}

/// Bytes programmed for each byte that the host writes, from counters.
fn amplification(before: &BTreeMap<&'static str, u64>, after: &BTreeMap<&'static str, u64>) -> f64 {
    let since = |name: &str| after[name] - before[name];
    let programs: u64 =
        after.keys().filter(|name| name.starts_with("programs_")).map(|name| since(name)).sum();
    programs as f64 / since("host_units_written") as f64
}

/// One die with `superblocks` superblocks of 512 mapping units.
fn one_die(superblocks: u64, op: f64, more: Sets) -> Ssd {
    let units = (superblocks as f64 * 512.0 / (1.0 + op)).round() as u64;
    let (capacity, op) = (format!("{}KiB", units * 4), op.to_string());
    let mut sets = vec![
        ("nand.channels", "1"),
        ("nand.ways", "1"),
        ("nand.pages_per_block", "512"),
        ("capacity", capacity.as_str()),
        ("ftl.over_provisioning", op.as_str()),
        ("ftl.compression.granule", "512B"),
        // Without one every command would be programmed by itself.
        ("write_buffer", BUFFER),
    ];
    sets.extend_from_slice(more);
    lab_ssd(&sets, 1)
}

/// Write amplification in bytes of uniform random writes that shrink by `percent`.
fn uniform_wa(ssd: &mut Ssd, percent: u8) -> f64 {
    let units = ssd.capacity() / UNIT;
    (0..units).for_each(|unit| ssd.apply(&write(unit, percent)));
    let mut rng = Stream::new(1, "uniform");
    (0..amount(6, 8) * units).for_each(|_| ssd.apply(&write(rng.below(units), percent)));
    let before = common::counters(ssd);
    (0..amount(3, 6) * units).for_each(|_| ssd.apply(&write(rng.below(units), percent)));
    ssd.verify();
    amplification(&before, &common::counters(ssd))
}

#[test]
fn what_shrinks_leaves_spare_and_is_amplified_as_the_closed_forms_say() {
    for (op, victim) in [(0.07, "greedy"), (0.07, "fifo"), (0.28, "greedy")] {
        for (percent, granules) in points([(25, 6), (0, 8), (75, 2), (50, 4)]) {
            let mut ssd = one_die(amount(256, 512), op, &[("ftl.gc.victim", victim)]);
            let share = f64::from(granules) / f64::from(G);
            // Spare is what compression leaves of the flash, too.
            let alpha = (1.0 + ssd.over_provisioning(1)) / share;
            let amplified = match victim {
                "fifo" => models::fifo(alpha),
                _ => models::greedy(alpha, 512 * G / granules).wa,
            };
            let what = format!("{victim}, OP {op}, {percent} % compressible");
            near(&what, uniform_wa(&mut ssd, percent), share * amplified, 0.01);
        }
    }
}

#[test]
fn zeros_take_a_granule_each() {
    let mut ssd = one_die(64, 0.07, &[]);
    let units = ssd.capacity() / UNIT;
    near("write amplification", uniform_wa(&mut ssd, 100), 1.0 / f64::from(G), 0.002);
    let c = common::counters(&ssd);
    assert_eq!(c["units_mapped"], units);
}

/// 20 000 random writes of incompressible data and reads in time on a full drive.
fn busy(rig: &Rig) -> (u64, BTreeMap<&'static str, u64>) {
    let mut device = rig.build(1, false).unwrap();
    common::fill_sequentially(&mut *device, 128 << 10);
    let units = device.capacity() / UNIT;
    let mut rng = Stream::new(1, "busy");
    (0..3 * units).for_each(|_| device.apply(&write(rng.below(units), 0)));
    let next = || {
        let unit = rng.below(units);
        if rng.below(4) > 0 { write(unit, 0) } else { command(Op::Read, unit * UNIT, UNIT) }
    };
    let run = closed_loop(&mut *device, 32, 20_000, 0, next, |_, _| {});
    (run.elapsed, common::counters(&*device))
}

/// Drives with pages of several units, with and without a buffer and read-ahead.
fn plain_rigs() -> [Rig; 3] {
    let pages: Sets =
        &[("capacity", "256MiB"), ("nand.page", "16KiB"), ("nand.transfer_mts", "400")];
    let with = |more: Sets| lab_reference(&[pages, more].concat());
    [
        with(&[]),
        with(&[("write_buffer", BUFFER)]),
        with(&[
            ("write_buffer", BUFFER),
            ("ftl.gc.pace", "paced"),
            ("ftl.map.kind", "cached"),
            ("ftl.map.cache", "8KiB"),
            ("nand.multi_plane_read", "false"),
        ]),
    ]
}

#[test]
fn a_granule_of_a_mapping_unit_changes_nothing() {
    for plain in plain_rigs() {
        let mut rig = plain.clone();
        rig.set("ftl.compression.granule", "4KiB").unwrap();
        assert_eq!(busy(&rig), busy(&plain));
    }
}

#[test]
fn data_that_does_not_shrink_is_written_as_by_a_plain_drive() {
    for plain in plain_rigs() {
        let mut rig = plain.clone();
        rig.set("ftl.compression.granule", "512B").unwrap();
        let ((elapsed, mut c), (plain_elapsed, plain_c)) = (busy(&rig), busy(&plain));
        assert_eq!(elapsed, plain_elapsed);
        assert_eq!(c.remove("host_units_saved"), Some(0));
        for (name, value) in c {
            if name == "unit_bytes" {
                assert_eq!(value, plain_c[name] / 8);
                continue;
            }
            let units = name.contains("units_") && !name.starts_with("data_units")
                || name.starts_with("programs_")
                || name.starts_with("buffer_")
                || name == "superblock_units";
            assert_eq!(value, plain_c[name] * if units { 8 } else { 1 }, "{name}");
        }
    }
}

/// Bytes per second of sequential writes of 128 KiB through a buffer.
fn sequential_write_rate(percent: u8, command_time: &str) -> f64 {
    let rig = lab_reference(&[
        ("capacity", "256MiB"),
        ("nand.page", "16KiB"),
        ("ftl.compression.granule", "512B"),
        ("write_buffer", "{ size = \"2MiB\", power_loss_protected = true }"),
        ("controller.command_time", command_time),
    ]);
    let mut device = rig.build(1, false).unwrap();
    let mut at = 0;
    let len = 128 << 10;
    let mut next = || {
        at += len;
        Command { compressible: percent, ..command(Op::Write, at - len, len) }
    };
    // The first of them fill the buffer.
    let start = closed_loop(&mut *device, 8, 400, 0, &mut next, |_, _| {}).end;
    closed_loop(&mut *device, 8, 1500, start, next, |_, _| {}).per_second() * len as f64
}

#[test]
fn sequential_writes_are_faster_by_what_is_saved_until_the_controller_is_the_limit() {
    let plain = sequential_write_rate(0, "1us");
    for (percent, share) in [(25, 0.75), (50, 0.5), (75, 0.25), (100, 0.125)] {
        let rate = sequential_write_rate(percent, "1us");
        near(&format!("{percent} %"), rate / plain, 1.0 / share, 0.03);
    }
    let limit = 131_072.0 / 200e-6;
    assert!(limit > 1.5 * plain && limit < 3.0 * plain);
    near("at the controller's limit", sequential_write_rate(75, "200us"), limit, 0.03);
    near("below it", sequential_write_rate(0, "200us"), plain, 0.03);
}

/// A drive without a buffer, pages of one mapping unit, every unit written with `percent`.
fn filled(percent: u8, more: Sets) -> Ssd {
    let mut sets = vec![
        ("capacity", "16MiB"),
        ("ftl.compression.granule", "512B"),
        ("nand.transfer_mts", "400"),
        ("ftl.gc.scope", "drive"),
        ("ftl.over_provisioning", "1"),
    ];
    sets.extend_from_slice(more);
    let mut ssd = lab_ssd(&sets, 1);
    for offset in (0..ssd.capacity()).step_by(1 << 20) {
        let fill = command(Op::Write, offset, 1 << 20);
        ssd.apply(&Command { compressible: percent, ..fill });
    }
    ssd
}

#[test]
fn a_read_senses_every_page_that_a_unit_lies_in_and_transfers_what_it_takes() {
    // By how much it shrinks, granules, and units of four that lie in two pages of 8 granules.
    for (percent, granules, across) in [(0, 8, 0), (25, 6, 2), (37, 6, 2), (50, 4, 0), (75, 2, 0)] {
        let mut ssd = filled(percent, &[]);
        let before = common::counters(&ssd);
        let units = 256 * 4;
        let mut unit = 0;
        let next = || {
            unit += 1;
            command(Op::Read, (unit - 1) * UNIT, UNIT)
        };
        let (mut short, mut long) = (0, 0);
        closed_loop(&mut ssd, 1, units, 0, next, |latency, _| {
            // The dies of both pages sense at the same time, and what each holds crosses its channel.
            let whole = 75_000 + granules * 1280;
            assert!(latency <= whole);
            if latency == whole { short += 1 } else { long += 1 }
        });
        assert_eq!((short, long), (units / 4 * (4 - across), units / 4 * across), "{percent} %");
        let after = common::counters(&ssd);
        let since = |name: &str| after[name] - before[name];
        assert_eq!(since("flash_reads"), units / 4 * (4 + across), "{percent} %");
        assert_eq!(since("flash_units_read"), units * granules);
        assert_eq!(since("units_read_flash"), units * 8);
    }
}

#[test]
fn a_part_of_a_unit_is_stored_with_the_rest_as_it_was() {
    let mut ssd = filled(0, &[]);
    let half = |percent| Command { compressible: percent, ..command(Op::Write, 0, UNIT / 2) };
    for (percent, granules) in [(100, 4), (0, 6), (50, 5)] {
        let before = common::counters(&ssd);
        closed_loop(&mut ssd, 1, 1, 0, || half(percent), |_, _| {});
        assert_eq!(ssd.ftl().length(0), granules, "{percent} %");
        let after = common::counters(&ssd);
        assert_eq!(after["read_modify_writes"] - before["read_modify_writes"], 1);
        assert!(after["flash_reads"] > before["flash_reads"], "the old half is read");
    }
    ssd.apply(&command(Op::Trim, 0, UNIT));
    ssd.apply(&half(0));
    assert_eq!(ssd.ftl().length(0), 4, "what was never written is zeros");
}

#[test]
fn a_part_of_a_unit_in_two_pages_waits_for_both() {
    // Units of 6 granules: unit 1 lies in pages 0 and 1, unit 2 in pages 1 and 2, each page on a
    // die of its own; so do units 64 further on.
    for (unit, busy) in [(1, 0), (2, 3)] {
        let latency = |reads: u64| {
            let mut ssd = filled(25, &[]);
            let mut k = 0;
            let next = || {
                k += 1;
                let part = Command { compressible: 25, ..command(Op::Write, unit * UNIT, 512) };
                let read = command(Op::Read, (busy + 64 * k) * UNIT, UNIT);
                if k > reads { part } else { read }
            };
            let mut last = 0;
            closed_loop(&mut ssd, reads + 1, reads + 1, 0, next, |latency, c| {
                last = if c.tag == reads { latency } else { last };
            });
            last
        };
        let (alone, behind) = (latency(0), latency(8));
        // Alone for the page with four of its granules, then for that with two.
        let expected = 8 * (75_000 + 6 * 1280) - (4 - 2) * 1280;
        assert_eq!(behind - alone, expected, "unit {unit}");
    }
}

#[test]
fn the_buffer_holds_what_has_been_compressed() {
    for (percent, fit) in [(0, 16), (50, 32), (75, 64)] {
        let mut ssd = filled(
            0,
            &[
                ("nand.page", "256KiB"),
                ("nand.pages_per_block", "8"),
                ("ftl.over_provisioning", "2"),
                ("write_buffer", "{ size = \"64KiB\", power_loss_protected = true }"),
            ],
        );
        let mut unit = 0;
        let next = || {
            unit += 1;
            write(unit - 1, percent)
        };
        let mut latencies = Vec::new();
        closed_loop(&mut ssd, 1, 65, 0, next, |latency, _| latencies.push(latency));
        assert_eq!(latencies.iter().position(|&t| t > 0), Some(fit), "{percent} %");
    }
}

#[test]
fn paced_collection_reads_each_program_unit_of_a_victim_once() {
    for percent in [25, 40] {
        let mut ssd = one_die(
            64,
            0.07,
            &[("nand.page", "16KiB"), ("nand.pages_per_block", "128"), ("ftl.gc.pace", "paced")],
        );
        uniform_wa(&mut ssd, percent);
        let c = common::counters(&ssd);
        let per_victim = c["flash_reads"] as f64 / c["collections"] as f64;
        println!("{percent} %: {per_victim:.2} reads of 128 program units");
        // Nearly all of them hold something valid.
        assert!((110.0..=128.0).contains(&per_victim), "{per_victim} reads for a victim");
    }
}

#[test]
fn what_cannot_be_is_refused_in_words() {
    let said = |sets: Sets| {
        let mut rig = lab_reference(&[("capacity", "64MiB")]);
        let error = sets.iter().find_map(|(key, value)| rig.set(key, value).err());
        error.or_else(|| rig.build(1, false).err()).expect("refused").to_string()
    };
    for (granule, found) in [("8KiB", "8KiB"), ("3KiB", "3KiB"), ("32B", "32B"), ("0B", "0B")] {
        let said = said(&[("ftl.compression.granule", granule)]);
        let expected = format!(
            "lab-reference: ftl.compression.granule: found {found}, expected a power of two from 64B to"
        );
        assert!(said.starts_with(&expected), "{said}");
    }
    let extent = said(&[
        ("ftl.compression.granule", "512B"),
        ("ftl.map.kind", "extent"),
        ("ftl.gc.scope", "drive"),
    ]);
    assert!(extent.contains("extent") && extent.contains("ftl.compression.granule"), "{extent}");
    let pages = said(&[("ftl.compression.granule", "512B"), ("nand.pages_per_block", "1")]);
    assert!(pages.contains("ftl.compression") && pages.contains("pages_per_block"), "{pages}");
}
