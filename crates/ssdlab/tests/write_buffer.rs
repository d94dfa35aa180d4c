//! The write buffer: what is written over in it is never programmed, and what it lets go of when.

use crate::common;

use common::{Sets, closed_loop, command, counters, fill_sequentially, lab_reference, ssd_of};
use ssdlab::device::ssd::{DRAINS, Ssd};
use ssdlab::device::{Command, Device, Op};
use ssdlab::rng::Stream;
use ssdlab::units::NEVER;
use std::collections::BTreeMap;

const UNIT: u64 = 4096;
/// Units of a program unit.
const PROGRAM: u64 = 4;

/// A drive whose program units are several units, with a buffer of so many KiB.
fn drive(kib: u64, protected: bool, sets: Sets) -> Ssd {
    let buffer = format!("{{ size = \"{kib}KiB\", power_loss_protected = {protected} }}");
    let mut all = vec![
        ("capacity", "64MiB"),
        ("nand.page", "16KiB"),
        ("ftl.over_provisioning", "0.3"),
        ("write_buffer", buffer.as_str()),
    ];
    all.extend(sets);
    ssd_of(&lab_reference(&all), 1, false)
}

/// Runs commands one after another; answers the latency of each.
fn one_by_one(ssd: &mut Ssd, start: u64, commands: &[Command]) -> (u64, Vec<u64>) {
    let mut next = commands.iter();
    let mut latencies = Vec::new();
    let end = closed_loop(
        ssd,
        1,
        commands.len() as u64,
        start,
        || *next.next().unwrap(),
        |_, completion| latencies.push(completion.parts.total()),
    )
    .end;
    (end, latencies)
}

fn write(unit: u64) -> Command {
    command(Op::Write, unit * UNIT, UNIT)
}

/// How much counters have grown.
fn grown(ssd: &Ssd, before: &BTreeMap<&'static str, u64>) -> impl Fn(&str) -> u64 + use<> {
    let (now, before) = (counters(ssd), before.clone());
    move |name| now[name] - before[name]
}

fn near(what: &str, measured: f64, expected: f64, tolerance: f64) {
    let error = measured / expected - 1.0;
    println!("{what}: {measured:.5}, expected {expected:.5}: {:+.3} %", error * 100.0);
    assert!(error.abs() <= tolerance, "{what}: {measured}, expected {expected}");
}

#[test]
fn a_thousand_writes_of_one_lba_cost_one_program_unit() {
    for drain in DRAINS.names() {
        let mut ssd = drive(1024, false, &[("write_buffer.drain", drain)]);
        let mut commands = vec![write(7); 1024];
        commands.push(command(Op::Flush, 0, 0));
        one_by_one(&mut ssd, 0, &commands);
        let c = counters(&ssd);
        let wa = c["flash_bytes_written"] as f64 / c["host_bytes_written"] as f64;
        println!("{drain}: {} program units, WA {wa:.4}", c["flash_programs"]);
        assert_eq!(c["host_units_written"], 1024, "{drain}");
        if drain == "immediate" {
            assert_eq!((c["flash_programs"], c["buffer_overwrites"]), (1024 / PROGRAM, 0));
        } else {
            assert_eq!((c["flash_programs"], c["buffer_overwrites"]), (1, 1023), "{drain}");
            assert!(wa < 0.005, "{drain}: {wa}");
        }
        assert_eq!(c["buffer_dirty"], 0, "{drain}: a flush leaves nothing behind");
    }
}

/// With `held` units in the buffer at a write of one of `hot`, each as likely as the other, it hits with
/// `held / hot`. The buffer lets a program unit's worth go when it holds a unit more than the mark,
/// so between two such instants it holds every number from there on for `hot / (hot - held)` writes.
#[test]
fn a_hot_set_hits_as_often_as_the_buffer_holds_of_it() {
    const SIZE: u64 = 1024;
    for drain in ["watermark", "least-recent"] {
        for (share, hot) in [(0.5, 1024), (0.5, 2048), (0.25, 512), (0.75, 4096)] {
            let watermark = share.to_string();
            let mut ssd = drive(
                SIZE * UNIT / 1024,
                true,
                &[
                    ("write_buffer.drain", drain),
                    ("write_buffer.watermark", &watermark),
                    // Slow enough for the dies to keep up.
                    ("controller.command_time", "200us"),
                ],
            );
            let mut rng = Stream::new(1, "hot");
            let mut next = || write(rng.below(hot));
            let warm = 4 * hot + 4 * SIZE;
            let end = closed_loop(&mut ssd, 1, warm, 0, &mut next, |_, _| {}).end;
            let before = counters(&ssd);
            let writes = 400_000;
            closed_loop(&mut ssd, 1, writes, end, &mut next, |_, _| {});
            let hits = grown(&ssd, &before)("buffer_overwrites") as f64 / writes as f64;
            let mark = (share * SIZE as f64) as u64;
            let cycle: f64 =
                (mark + 1 - PROGRAM..=mark).map(|held| hot as f64 / (hot - held) as f64).sum();
            near(&format!("{drain}, {hot} hot"), hits, 1.0 - PROGRAM as f64 / cycle, 0.01);
            near(&format!("{drain}, {hot} hot, roughly"), hits, mark as f64 / hot as f64, 0.01);
        }
    }
}

/// Without a hot set there is next to nothing to absorb, and the dies are kept as busy as when
/// everything is placed at once.
#[test]
fn random_writes_over_all_of_the_drive_are_as_fast_as_without_absorbing() {
    for pace in ["paced", "blocking"] {
        let run = |drain: &str| {
            // Enough spare for the phases in which dies collect not to decide.
            let sets = [
                ("capacity", "256MiB"),
                ("nand.pages_per_block", "16"),
                ("ftl.over_provisioning", "1"),
                ("write_buffer.drain", drain),
                ("ftl.gc.pace", pace),
            ];
            let mut ssd = drive(1024, true, &sets);
            fill_sequentially(&mut ssd, UNIT);
            let units = ssd.capacity() / UNIT;
            let mut rng = Stream::new(1, "random");
            (0..3 * units).for_each(|_| ssd.apply(&write(rng.below(units))));
            let before = counters(&ssd);
            let total = 200_000;
            let run = closed_loop(&mut ssd, 32, total, 0, || write(rng.below(units)), |_, _| {});
            let grown = grown(&ssd, &before);
            let wa = grown("flash_bytes_written") as f64 / grown("host_bytes_written") as f64;
            (run.per_second(), wa)
        };
        let (expected, measured) = (run("immediate"), run("program-unit"));
        // Paced collection goes in rows of program units; where these fall among the host's differs.
        let tolerance = if pace == "paced" { 0.013 } else { 0.005 };
        near(&format!("{pace}: writes per second"), measured.0, expected.0, tolerance);
        near(&format!("{pace}: WA"), measured.1, expected.1, 0.002);
    }
}

#[test]
fn what_the_buffer_holds_is_read_without_flash() {
    let mut ssd = drive(1024, true, &[]);
    ssd.apply(&command(Op::Write, 0, 64 * UNIT));
    let sector = command(Op::Write, UNIT + 512, 512);
    let reads = [
        command(Op::Read, 0, UNIT),
        command(Op::Read, UNIT + 512, 512),
        command(Op::Read, UNIT, 512),
        command(Op::Read, UNIT, UNIT),
    ];
    let (end, _) = one_by_one(&mut ssd, 0, &[write(0), sector]);
    let (_, latencies) = one_by_one(&mut ssd, end, &reads);
    let flash: Vec<bool> = latencies.iter().map(|&latency| latency > 0).collect();
    assert_eq!(flash, [false, false, true, true], "{latencies:?}");
    // A unit that lies nowhere else is all there.
    let far = (ssd.capacity() / UNIT - 1) * UNIT;
    let commands = [command(Op::Write, far, 512), command(Op::Read, far, UNIT)];
    assert_eq!(one_by_one(&mut ssd, end + 1_000_000_000, &commands).1, [0, 0]);
}

#[test]
fn a_unit_written_piece_by_piece_needs_no_read() {
    let mut ssd = drive(1024, false, &[]);
    ssd.apply(&command(Op::Write, 0, 64 * UNIT));
    let before = counters(&ssd);
    let pieces = |sectors: &[u64]| -> Vec<Command> {
        let mut all: Vec<Command> =
            sectors.iter().map(|&n| command(Op::Write, 8 * UNIT + n * 512, 512)).collect();
        all.push(command(Op::Flush, 0, 0));
        all
    };
    let (end, _) = one_by_one(&mut ssd, 0, &pieces(&[3, 0, 7, 1, 2, 5, 6, 4]));
    let whole = grown(&ssd, &before);
    assert_eq!((whole("read_modify_writes"), whole("flash_reads")), (0, 0));
    assert_eq!((whole("programs_host"), whole("buffer_overwrites")), (1, 7));
    // One that is missing is read.
    one_by_one(&mut ssd, end, &pieces(&[3, 0, 7, 1, 2, 5, 6]));
    let part = grown(&ssd, &before);
    assert_eq!((part("read_modify_writes"), part("flash_reads")), (1, 1));
}

#[test]
fn what_is_trimmed_or_purged_in_the_buffer_is_never_programmed() {
    for (op, len) in [(Op::Trim, 2 * UNIT), (Op::Purge, 0)] {
        let mut ssd = drive(1024, false, &[]);
        one_by_one(&mut ssd, 0, &[write(0), write(1), command(op, 0, len)]);
        let flush = one_by_one(&mut ssd, 1_000_000_000, &[command(Op::Flush, 0, 0)]).1;
        let c = counters(&ssd);
        let seen = [c["flash_programs"], c["buffer_dropped"], c["buffer_dirty"], flush[0]];
        assert_eq!(seen, [0, 2, 0, 0], "{op:?}");
    }
}

#[test]
fn a_quiet_drive_lets_whole_program_units_go() {
    let sets = [
        ("write_buffer.drain", "watermark"),
        ("write_buffer.watermark", "1"),
        ("write_buffer.idle_after", "5ms"),
    ];
    let mut ssd = drive(1024, true, &sets);
    let writes: Vec<Command> = (0..4 * PROGRAM + 3).map(write).collect();
    let (end, _) = one_by_one(&mut ssd, 0, &writes);
    let held = |ssd: &Ssd| (counters(ssd)["buffer_dirty"], counters(ssd)["flash_programs"]);
    ssd.advance(end + 4_999_999, &mut Vec::new());
    assert_eq!(held(&ssd), (4 * PROGRAM + 3, 0));
    while ssd.next_event() != NEVER {
        let time = ssd.next_event();
        ssd.advance(time, &mut Vec::new());
    }
    assert_eq!(held(&ssd), (3, 4));
    // All of it before work without time.
    ssd.settle(end + 1_000_000_000);
    assert_eq!(held(&ssd), (0, 4));
}

/// A full buffer of which nothing is under way lets go whatever the policy says.
#[test]
fn a_buffer_smaller_than_a_program_unit_does_not_stand_still() {
    for drain in DRAINS.names() {
        for kib in [1, 4, 8, 12] {
            let sets = [("write_buffer.drain", drain), ("write_buffer.watermark", "1")];
            let mut ssd = drive(kib, true, &sets);
            let writes: Vec<Command> = (0..100).map(|n| write(n % 37)).collect();
            one_by_one(&mut ssd, 0, &writes);
            assert_eq!(counters(&ssd)["host_units_written"], 100, "{drain}, {kib} KiB");
        }
    }
}
