//! Snapshots of rig x workload x seed: whatever changes a number is seen in review.

use crate::common;

use common::{Measured, Sets, closed_loop, command, fill_sequentially, lab_reference};
use ssdlab::device::{Command, Device, Op};
use ssdlab::rig::Rig;
use ssdlab::rng::Stream;
use std::collections::BTreeMap;
use std::fmt::Write;

/// Counters that are not 0, and latencies, as text.
fn summary(device: &dyn Device, run: &Measured, latencies: &mut [u64]) -> String {
    latencies.sort_unstable();
    let at = |share: f64| latencies[((latencies.len() - 1) as f64 * share) as usize];
    let mut text = format!(
        "elapsed_ns {}\nlatency_ns mean {:.1} p50 {} p99 {} p99.9 {} max {}\n",
        run.elapsed,
        run.mean_latency(),
        at(0.5),
        at(0.99),
        at(0.999),
        run.latency_max
    );
    let mut all = BTreeMap::new();
    common::all_counters(device, "", &mut all);
    for (name, value) in all.into_iter().filter(|(_, value)| *value > 0) {
        let _ = writeln!(text, "{name} {value}");
    }
    text
}

/// A mix of commands on a drive filled once, `depth` in flight.
fn run(rig: &Rig, seed: u64, depth: u64, next: impl Fn(&mut Stream, u64) -> Command) -> String {
    let mut device = rig.build(seed, false).unwrap();
    fill_sequentially(&mut *device, 128 << 10);
    let mut rng = Stream::new(seed, "golden");
    let capacity = device.capacity();
    let mut latencies = Vec::new();
    let measured = closed_loop(
        &mut *device,
        depth,
        20_000,
        0,
        || next(&mut rng, capacity),
        |latency, _| latencies.push(latency),
    );
    summary(&*device, &measured, &mut latencies)
}

fn random_write(rng: &mut Stream, capacity: u64) -> Command {
    command(Op::Write, rng.below(capacity / 4096) * 4096, 4096)
}

fn mixed(rng: &mut Stream, capacity: u64) -> Command {
    let offset = rng.below(capacity / 512 - 64) * 512;
    let len = (1 + rng.below(64)) * 512;
    match rng.below(100) {
        0..60 => command(Op::Read, offset, len),
        60..94 => command(Op::Write, offset, len),
        94..98 => command(Op::Trim, offset, len),
        _ => command(Op::Flush, 0, 0),
    }
}

const SMALL: Sets = &[("capacity", "32MiB")];

#[test]
fn lab_reference_random_write() {
    insta::assert_snapshot!(run(&lab_reference(SMALL), 1, 32, random_write));
}

#[test]
fn lab_reference_mixed() {
    insta::assert_snapshot!(run(&lab_reference(SMALL), 2, 16, mixed));
}

#[test]
fn a_client_drive_behind_sata_mixed() {
    let rig = Rig::parse(
        r#"
        [device]
        kind = "link"
        bandwidth = "550MB/s"
        command_time = "2us"
        queue_slots = 32
        [device.below]
        kind = "ssd"
        capacity = "64MiB"
        [device.below.nand]
        channels = 4
        ways = 2
        planes = 2
        page = "16KiB"
        pages_per_block = 32
        t_read = "60us"
        t_program = "900us"
        t_erase = "5ms"
        transfer_mts = 400
        suspend = { erase = true, program = true }
        [device.below.ftl]
        over_provisioning = 0.3
        placement = "least-busy"
        [device.below.ftl.gc]
        victim = "d-choices"
        pace = "paced"
        separate_frontier = true
        [device.below.ftl.wear_leveling]
        policy = "threshold"
        spread = 4
        [device.below.write_buffer]
        size = "2MiB"
        power_loss_protected = false
        [device.below.controller]
        command_time = "3us"
        "#,
        "client",
    )
    .unwrap();
    insta::assert_snapshot!(run(&rig, 3, 32, mixed));
}

#[test]
fn a_partition_leaves_the_rest_as_spare() {
    let rig = Rig::parse(
        r#"
        [device]
        kind = "partition"
        offset = "1MiB"
        size = "16MiB"
        [device.below]
        kind = "ssd"
        capacity = "32MiB"
        nand = { channels = 2, ways = 2, page = "4KiB", pages_per_block = 64, t_read = "75us", t_program = "750us", t_erase = "3.8ms", transfer_mts = 333 }
        ftl = { over_provisioning = 0.1, gc = { scope = "drive", victim = "fifo", pace = "blocking" } }
        "#,
        "partition",
    )
    .unwrap();
    insta::assert_snapshot!(run(&rig, 4, 8, random_write));
}
