//! What a controller's cores do, and what that leaves of throughput and latency, against closed forms.

use crate::common;

use common::{Sets, amount, closed_loop, command, counters, fill_sequentially, lab_reference};
use ssdlab::device::{Command, Completion, Device, Missed, Op};
use ssdlab::rng::Stream;
use std::collections::BTreeMap;

const UNIT: u64 = 4096;

fn near(what: &str, measured: f64, expected: f64, tolerance: f64) {
    let error = measured / expected - 1.0;
    println!("{what}: {measured:.5}, expected {expected:.5}: {:+.3} %", error * 100.0);
    assert!(error.abs() <= tolerance, "{what}: {measured}, expected {expected}");
}

/// A drive whose flash is never what it waits for.
fn quick_flash(sets: Sets) -> Box<dyn Device> {
    let mut all = vec![
        ("capacity", "64MiB"),
        ("nand.t_read", "1us"),
        ("nand.t_program", "1us"),
        ("nand.t_erase", "1us"),
        ("nand.transfer_mts", "10000"),
        ("write_buffer", "{ size = \"4MiB\", power_loss_protected = true }"),
    ];
    all.extend_from_slice(sets);
    let mut device = lab_reference(&all).build(1, false).unwrap();
    fill_sequentially(&mut *device, 1 << 20);
    device
}

fn random(device: &dyn Device, ops: &'static [Op]) -> impl FnMut() -> Command + use<> {
    let units = device.capacity() / UNIT;
    let mut rng = Stream::new(1, "places");
    let mut count = 0;
    move || {
        count += 1;
        command(ops[count % ops.len()], rng.below(units) * UNIT, UNIT)
    }
}

/// So many random I/Os in a steady state: commands a second, and how much each counter grew.
fn steady(
    device: &mut dyn Device,
    ops: &'static [Op],
    commands: u64,
) -> (f64, BTreeMap<&'static str, u64>) {
    let mut next = random(device, ops);
    let warm = closed_loop(device, 32, commands, 0, &mut next, |_, _| {});
    let before = counters(device);
    let run = closed_loop(device, 32, commands, warm.end, &mut next, |_, _| {});
    let after = counters(device);
    let grown = after.iter().map(|(&name, &value)| (name, value.saturating_sub(before[name])));
    (run.per_second(), grown.collect())
}

#[test]
fn a_write_takes_a_core_longer_than_a_read() {
    let times: Sets = &[("controller.command_time", "4us"), ("controller.write_time", "6us")];
    for (ops, expected) in [
        (&[Op::Read] as &'static [Op], 4.0),
        (&[Op::Write], 10.0),
        (&[Op::Read, Op::Write], 7.0),
        (&[Op::Read, Op::Read, Op::Write], 6.0),
    ] {
        for cores in [1.0, 3.0] {
            let many = format!("{cores}");
            let sets = [times, &[("controller.cores", many.as_str())]].concat();
            let mut device = quick_flash(&sets);
            let next = random(&*device, ops);
            let run = closed_loop(&mut *device, 32, 20_000, 0, next, |_, _| {});
            near("commands", run.per_second(), cores * 1e6 / expected, 0.002);
        }
    }
}

#[test]
fn at_depth_one_a_command_takes_its_own_time() {
    let times: Sets = &[("controller.command_time", "4us"), ("controller.write_time", "6us")];
    let mut device = quick_flash(times);
    let next = random(&*device, &[Op::Write]);
    let writes = closed_loop(&mut *device, 1, 1000, 0, next, |_, _| {});
    assert_eq!((writes.latency_sum, writes.latency_max), (10_000_000, 10_000));
}

/// A latency delays each read, or each write, and is no ceiling of their rate.
#[test]
fn latencies_take_no_core() {
    for (key, op) in
        [("controller.read_latency", Op::Read), ("controller.write_latency", Op::Write)]
    {
        let run = |depth: u64, op: Op, latency: &str| {
            let mut device = quick_flash(&[("controller.command_time", "4us"), (key, latency)]);
            let ops: &'static [Op] = if op == Op::Read { &[Op::Read] } else { &[Op::Write] };
            let next = random(&*device, ops);
            closed_loop(&mut *device, depth, 2000, 0, next, |_, _| {})
        };
        let (without, with) = (run(1, op, "0us"), run(1, op, "7us"));
        assert_eq!(with.latency_sum, without.latency_sum + 2000 * 7_000);
        near("commands at depth 64", run(64, op, "7us").per_second(), 250_000.0, 0.005);
        let other = if op == Op::Read { Op::Write } else { Op::Read };
        assert_eq!(run(1, other, "7us").latency_sum, run(1, other, "0us").latency_sum);
    }
}

/// Where the cores are the bottleneck, they have time for so many writes, each with what is moved for its sake.
#[test]
fn a_full_drive_writes_as_fast_as_its_cores_move_what_is_in_the_way() {
    let own: Sets = &[
        ("controller.command_time", "2us"),
        ("controller.write_time", "3us"),
        ("controller.relocate_time", "7us"),
    ];
    let apart: Sets = &[("ftl.gc.separate_frontier", "true")];
    let pages: Sets = &[("nand.page", "16KiB"), ("ftl.gc.pace", "paced")];
    let wide: Sets = &[("ftl.gc.scope", "drive"), ("ftl.gc.separate_frontier", "true")];
    // What is moved for a write in the midst of large pages counts for more than the edges do.
    let fewer = amount(12_000, 60_000);
    for (how, commands) in [(&[] as Sets, 60_000), (apart, 60_000), (pages, fewer), (wide, 60_000)]
    {
        for cores in ["1", "2"] {
            let sets = [own, how, &[("controller.cores", cores)]].concat();
            let mut device = quick_flash(&sets);
            let (rate, grown) = steady(&mut *device, &[Op::Write], commands);
            let moved = grown["programs_collection"] as f64 / grown["host_writes"] as f64;
            assert!(moved > 0.5, "{how:?}: hardly anything is moved: {moved}");
            let each = (5.0 + 7.0 * moved) / cores.parse::<f64>().unwrap();
            near(&format!("{how:?}, {cores} cores, moved {moved:.2}"), rate, 1e6 / each, 0.01);
            let busy = grown["busy_cores_firmware_ns"] as f64 / 7_000.0;
            near("units moved", busy, grown["programs_collection"] as f64, 0.01);
            assert_eq!(grown["busy_cores_commands_ns"], grown["host_writes"] * 5_000);
        }
    }
}

/// Without what it takes to move, the same drive is held up by nothing but its commands.
#[test]
fn what_is_moved_costs_nothing_where_it_takes_no_core() {
    let mut device = quick_flash(&[("controller.command_time", "5us")]);
    let (rate, grown) = steady(&mut *device, &[Op::Write], 60_000);
    assert!(grown["programs_collection"] > grown["host_writes"] / 2);
    assert!(!grown.contains_key("busy_cores_firmware_ns"));
    near("writes", rate, 1e6 / 5.0, 0.01);
}

/// Commands far enough apart: what is moved fits between them.
#[test]
fn a_light_load_does_not_see_the_firmwares_own_work() {
    let times: Sets = &[
        ("controller.command_time", "2us"),
        ("controller.write_time", "3us"),
        ("controller.relocate_time", "7us"),
        ("ftl.gc.pace", "paced"),
    ];
    let mut device = quick_flash(times);
    let mut next = random(&*device, &[Op::Write]);
    let warm = closed_loop(&mut *device, 32, 60_000, 0, &mut next, |_, _| {});
    // What the heavy load left is done.
    let mut at = warm.end + 1_000_000;
    let mut done: Vec<Completion> = Vec::new();
    for _ in 0..20_000 {
        at += 60_000;
        while device.advance(at, &mut done) < at {}
        done.clear();
        device.submit(at, next());
        while done.is_empty() {
            device.advance(u64::MAX - 1, &mut done);
        }
        assert_eq!(done[0].time - at, 5_000);
    }
}

/// A drive whose collection began `ago`, when it had been idle for so many milliseconds; and that instant.
fn collecting_when_idle(idle: u64, ago: u64) -> (Box<dyn Device>, u64) {
    let idle_after = format!("{idle}ms");
    let mut device = quick_flash(&[
        ("controller.command_time", "2us"),
        ("controller.relocate_time", "7us"),
        ("ftl.gc.idle_after", &idle_after),
        ("ftl.gc.high", "5"),
    ]);
    let mut next = random(&*device, &[Op::Write]);
    let warm = closed_loop(&mut *device, 32, 60_000, 0, &mut next, |_, _| {});
    // What is owed from before is done, and idle work begins anew.
    let last = closed_loop(&mut *device, 1, 1, warm.end + 900_000, &mut next, |_, _| {});
    let at = last.end + idle * 1_000_000 + ago;
    while device.advance(at, &mut Vec::new()) < at {}
    (device, at)
}

/// What arises now is not done in the idle time before, however long that was; who comes later waits for that much less.
#[test]
fn work_takes_no_time_that_had_passed_when_it_arose() {
    let waits = [(1, 0), (2, 0), (3, 0), (2, 30_000)].map(|(idle, ago)| {
        let (mut device, at) = collecting_when_idle(idle, ago);
        let read = closed_loop(&mut *device, 1, 1, at, || command(Op::Read, 0, UNIT), |_, _| {});
        read.latency_max + ago
    });
    assert!(waits[0] > 100_000, "hardly anything is owed: {waits:?}");
    assert!(waits.iter().all(|&wait| wait == waits[0]), "{waits:?}");
}

/// What power took from the firmware's hands is not paid for when power is back.
#[test]
fn work_that_is_owed_goes_with_the_power() {
    let paid = |cut: bool| {
        let (mut device, mut at) = collecting_when_idle(1, 0);
        let before = counters(&*device)["busy_cores_firmware_ns"];
        if cut {
            at = device.power_cut(at, &mut Missed::default());
        }
        closed_loop(&mut *device, 1, 1, at, || command(Op::Read, 0, UNIT), |_, _| {});
        counters(&*device)["busy_cores_firmware_ns"] - before
    };
    assert!(paid(false) > 100_000, "hardly anything is owed");
    assert_eq!(paid(true), 0);
}

/// Each miss of the map reads a translation unit, which takes a core too.
#[test]
fn a_translation_unit_takes_a_core() {
    let times: Sets = &[
        ("controller.command_time", "2us"),
        ("controller.map_update_time", "8us"),
        ("ftl.map.kind", "cached"),
        ("ftl.map.cache", "8KiB"),
    ];
    let mut device = quick_flash(times);
    let (rate, grown) = steady(&mut *device, &[Op::Read], 60_000);
    let misses = grown["map_misses"] as f64 / grown["host_reads"] as f64;
    assert!(misses > 0.5, "of 16 translation units two are in RAM");
    near("reads", rate, 1e6 / (2.0 + 8.0 * misses), 0.01);
}
