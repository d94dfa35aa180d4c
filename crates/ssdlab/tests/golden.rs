//! Snapshots of rig x workload x seed: whatever changes a number is seen in review.

use crate::common;

use common::{Measured, Sets, closed_loop, command, fill_sequentially, lab_reference};
use ssdlab::device::{Command, Completion, Device, Op};
use ssdlab::rig::Rig;
use ssdlab::rng::Stream;
use ssdlab::stats::PartSums;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::Path;

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

/// Compares with the text that is kept under that name, line by line; with `UPDATE_GOLDENS` set this one is kept.
fn hold(name: &str, found: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("golden/{name}.txt"));
    if std::env::var_os("UPDATE_GOLDENS").is_some() {
        fs::write(&path, found).expect("a folder that can be written");
    }
    let kept = fs::read_to_string(&path).unwrap_or_default();
    let only = |mark: &str, of: &str, other: &str| -> String {
        let lines = of.lines().filter(|line| !other.lines().any(|o| o == *line));
        lines.map(|line| format!("{mark} {line}\n")).collect()
    };
    let (gone, new) = (only("-", &kept, found), only("+", found, &kept));
    assert!(kept == found, "{name} (UPDATE_GOLDENS=1 where this is meant):\n{gone}{new}");
}

/// A mix of commands on a drive filled once, `depth` in flight.
fn run(rig: &Rig, seed: u64, depth: u64, next: impl Fn(&mut Stream, u64) -> Command) -> String {
    watched(rig, seed, depth, next, |_| {})
}

/// The same of a device made of devices, and a hash over tag, time and parts of every completion.
fn composed(text: &str, seed: u64, depth: u64) -> String {
    let rig = Rig::parse(text, "composed").unwrap_or_else(|e| panic!("{e}\n{text}"));
    let mut hash = 0u64;
    let mut note =
        |value: u64| hash = (hash ^ value).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29);
    let text = watched(&rig, seed, depth, skewed, |completion| {
        [completion.tag, completion.time].into_iter().for_each(&mut note);
        PartSums::from(&completion.parts)
            .0
            .into_iter()
            .filter(|&part| part > 0)
            .for_each(&mut note);
    });
    format!("{text}completions {hash:016x}\n")
}

fn watched(
    rig: &Rig,
    seed: u64,
    depth: u64,
    next: impl Fn(&mut Stream, u64) -> Command,
    mut seen: impl FnMut(&Completion),
) -> String {
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
        |latency, completion| {
            latencies.push(latency);
            seen(completion);
        },
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

/// Mixed commands, most of them in a part of the device.
fn skewed(rng: &mut Stream, capacity: u64) -> Command {
    let hot = if rng.below(5) > 0 { capacity / 8 } else { capacity };
    mixed(rng, hot)
}

const SMALL: Sets = &[("capacity", "32MiB")];

#[test]
fn lab_reference_random_write() {
    hold("lab_reference_random_write", &run(&lab_reference(SMALL), 1, 32, random_write));
}

#[test]
fn lab_reference_mixed() {
    hold("lab_reference_mixed", &run(&lab_reference(SMALL), 2, 16, mixed));
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
    hold("a_client_drive_behind_sata_mixed", &run(&rig, 3, 32, mixed));
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
    hold("a_partition_leaves_the_rest_as_spare", &run(&rig, 4, 8, random_write));
}

/// Drives that answer in 80 us, four commands at a time.
const DRIVE: &str =
    "{ kind = \"null\", capacity = \"16MiB\", service_time = \"80us\", servers = 4 }";

#[test]
fn raid5_that_loses_a_member_and_rebuilds() {
    hold(
        "raid5_that_loses_a_member_and_rebuilds",
        &composed(
            &format!(
                "[device]\nkind = \"array\"\nlevel = \"raid5\"\ncount = 4\nspares = 1\nchunk = \"16KiB\"\n\
             bitmap = \"1MiB\"\nbitmap_delay = \"30ms\"\nfail = [{{ member = 2, at = \"50ms\" }}]\n\
             bus = {{ bandwidth = \"1GB/s\", command_time = \"1us\" }}\nmember = {DRIVE}"
            ),
            5,
            24,
        ),
    );
}

#[test]
fn raid10_of_drives() {
    let drive = "kind = \"ssd\"\ncapacity = \"16MiB\"\nftl = { over_provisioning = 0.3 }\n\
                 nand = { channels = 2, ways = 2, page = \"4KiB\", pages_per_block = 64, t_read = \"75us\", \
                 t_program = \"750us\", t_erase = \"3.8ms\", transfer_mts = 333 }";
    hold(
        "raid10_of_drives",
        &composed(
            &format!(
                "[device]\nkind = \"array\"\nlevel = \"raid10\"\ncount = 4\nspares = 1\nchunk = \"64KiB\"\n\
             fail = [{{ member = 1, at = \"30ms\" }}]\n[device.member]\n{drive}"
            ),
            6,
            16,
        ),
    );
}

/// A disk of 4 GB with a volatile write cache, of which a partition is used.
const DISK: &str = "{ kind = \"partition\", size = \"64MiB\", below = { kind = \"hdd\", capacity = \"4GB\", \
                    rpm = 7200, seek_average = \"8.5ms\", sustained_outer = \"200MB/s\", \
                    sustained_inner = \"100MB/s\", buffer = \"4MiB\", write_cache_enabled = true } }";

#[test]
fn a_disk() {
    hold("a_disk", &composed(&format!("device = {DISK}"), 7, 16));
}

#[test]
fn a_cache_before_a_disk_writes_back() {
    hold(
        "a_cache_before_a_disk_writes_back",
        &composed(
            &format!(
                "[device]\nkind = \"cache\"\nmode = \"write-back\"\nblock = \"32KiB\"\nmetadata = \"written\"\n\
             idle_after = \"20ms\"\ndirty_low = 0.2\ndirty_high = 0.6\ncache = {DRIVE}\nbelow = {DISK}"
            ),
            8,
            16,
        ),
    );
}

#[test]
fn a_cache_that_fails_goes_past() {
    hold(
        "a_cache_that_fails_goes_past",
        &composed(
            &format!(
                "[device]\nkind = \"cache\"\nmode = \"write-back\"\nblock = \"16KiB\"\nfill = \"block\"\n\
             cache_fails_at = \"300ms\"\ncache = {DRIVE}\nbelow = {{ kind = \"null\", \
             capacity = \"64MiB\", service_time = \"500us\", servers = 2 }}"
            ),
            9,
            16,
        ),
    );
}

#[test]
fn a_tier_that_moves() {
    hold(
        "a_tier_that_moves",
        &composed(
            &format!(
                "[device]\nkind = \"tier\"\nextent = \"64KiB\"\nmove_size = \"16KiB\"\nperiod = \"20ms\"\n\
             half_life = \"100ms\"\nmoves = 3\nplacement = \"below-first\"\nmetadata = \"written\"\n\
             move_rate = \"50MB/s\"\nbelow_fails_at = \"1500ms\"\nfast = {DRIVE}\nbelow = {{ kind = \"null\", \
             capacity = \"64MiB\", service_time = \"500us\", servers = 2 }}"
            ),
            10,
            16,
        ),
    );
}

#[test]
fn a_card_that_writes_back_before_an_array() {
    hold(
        "a_card_that_writes_back_before_an_array",
        &composed(
            &format!(
                "[device]\nkind = \"controller\"\nbandwidth = \"2GB/s\"\ncommand_time = \"2us\"\ncores = 2\n\
             queue = 12\ncache = {{ size = \"2MiB\", force = true, destage_depth = 4, destage_delay = \"3ms\" }}\n\
             below = {{ kind = \"array\", level = \"raid0\", count = 3, chunk = \"64KiB\", member = {DRIVE} }}"
            ),
            11,
            16,
        ),
    );
}
