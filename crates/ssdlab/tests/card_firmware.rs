//! What the firmware of a RAID card takes of its cores, in closed form: for commands of the host, for those of the
//! drives below, and what passes it by.

use crate::common;

use common::rigs::build;
use common::{Measured, all_counters, closed_loop, command, counters};
use ssdlab::device::{Command, Completion, Device, Missed, Op};
use ssdlab::rig::Rig;
use ssdlab::stats::Part;
use ssdlab::units::NEVER;
use std::collections::BTreeMap;

const BLOCK: u64 = 4096;
const QUICK: &str =
    "{ kind = \"null\", capacity = \"8MiB\", service_time = \"1us\", servers = 64 }";
const SLOW: &str =
    "{ kind = \"null\", capacity = \"8MiB\", service_time = \"100us\", servers = 64 }";

/// An array of these keys and members.
fn array(keys: &str, member: &str) -> String {
    format!("{{ kind = \"array\", chunk = \"64KiB\", {keys}, member = {member} }}")
}

/// A card of these keys above a device.
fn card(keys: &str, below: &str) -> Box<dyn Device> {
    let text = format!(
        "[device]\nkind = \"controller\"\nbandwidth = \"100GB/s\"\ncommand_time = \"3us\"\n{keys}\nbelow = {below}\n"
    );
    build(&Rig::parse(&text, "card").unwrap_or_else(|e| panic!("{e}\n{text}")), 1, false)
}

/// Blocks all over a device, each in another stripe than the 32 before.
fn scattered(device: &dyn Device, op: Op) -> impl FnMut() -> Command + use<> {
    let blocks = device.capacity() / BLOCK;
    let mut at = 0;
    move || {
        at = (at + 97) % blocks;
        command(op, at * BLOCK, BLOCK)
    }
}

fn blocks(device: &mut dyn Device, op: Op, depth: u64, total: u64) -> Measured {
    let next = scattered(device, op);
    closed_loop(device, depth, total, 0, next, |_, _| {})
}

/// Commands of the host that the firmware saw to, and of drives.
fn seen(device: &dyn Device) -> (u64, u64) {
    let all = counters(device);
    (all["firmware_commands"], all["firmware_member_commands"])
}

/// Commands of all drives below.
fn given(device: &dyn Device) -> u64 {
    let mut all = BTreeMap::new();
    all_counters(device, "", &mut all);
    let ends = ["host_reads", "host_writes", "host_trims", "host_flushes"];
    let of_drives = |name: &String| ends.iter().any(|end| name.ends_with(end));
    all.iter().filter(|(name, _)| of_drives(name)).map(|(_, value)| value).sum()
}

fn near(what: &str, found: f64, expected: f64) {
    assert!((found / expected - 1.0).abs() <= 5e-3, "{what}: {found}, expected {expected}");
}

/// Levels, and the commands of their members that a write of a block takes.
const LEVELS: [(&str, u64); 5] = [
    ("level = \"raid0\", count = 8", 1),
    ("level = \"raid1\", count = 2", 2),
    ("level = \"raid10\", count = 8", 2),
    ("level = \"raid5\", count = 4", 4),
    ("level = \"raid6\", count = 8", 6),
];

#[test]
fn writes_are_cores_by_the_time_of_the_command_and_those_of_its_members() {
    for (level, members) in LEVELS {
        for (cores, host_us, member_us) in [(1, 20, 7), (2, 52, 12), (4, 0, 5), (2, 30, 0)] {
            let keys = format!(
                "cores = {cores}\nfirmware = {{ command_time = \"{host_us}us\", \
                 member_command_time = \"{member_us}us\", fast_path = false }}"
            );
            let mut device = card(&keys, &array(level, QUICK));
            let found = blocks(&mut *device, Op::Write, 32, 4000);
            let each_us = 3 + host_us + members * member_us;
            near(level, found.per_second(), f64::from(cores) * 1e6 / each_us as f64);
            assert_eq!(seen(&*device), (4000, 4000 * members), "{level}");
            assert_eq!(counters(&*device)["busy_cores_ns"], 4000 * each_us * 1000, "{level}");
        }
        // Without a firmware that takes time there is nothing of this.
        let mut device = card("cores = 2", &array(level, QUICK));
        let found = blocks(&mut *device, Op::Write, 32, 4000);
        near(level, found.per_second(), 2e6 / 3.0);
    }
}

const FIRMWARE: &str = "firmware = { command_time = \"20us\", member_command_time = \"5us\" }";

#[test]
fn reads_of_an_array_in_which_nothing_is_missing_do_not_pay() {
    for (level, _) in LEVELS {
        let mut device = card(FIRMWARE, &array(level, QUICK));
        let found = blocks(&mut *device, Op::Read, 64, 4000);
        near(level, found.per_second(), 1e6 / 3.0);
        assert_eq!(seen(&*device), (0, 0), "{level}");
    }
    // Of eight members of RAID 6 one is missing: what lay there is read from six others.
    let level = "level = \"raid6\", count = 8, fail = [{ member = 0, at = \"0s\" }]";
    let mut device = card(FIRMWARE, &array(level, QUICK));
    blocks(&mut *device, Op::Read, 64, 4000);
    let (commands, members) = seen(&*device);
    // Those of the first instant were sent before anything failed.
    assert!((3936..=4000).contains(&commands), "{commands}");
    assert!((6000..8000).contains(&members), "{members}");
}

#[test]
fn what_goes_to_one_drive_as_it_is_takes_the_fast_path() {
    let raid0 = &array("level = \"raid0\", count = 2", QUICK);
    let raid1 = &array("level = \"raid1\", count = 2", QUICK);
    let of_arrays =
        &array("level = \"raid0\", count = 2", &array("level = \"raid5\", count = 3", QUICK));
    let shared = &array("level = \"raid0\", count = 2, bus = { bandwidth = \"1GB/s\" }", QUICK);
    let linked =
        &format!("{{ kind = \"link\", bandwidth = \"9GB/s\", queue_slots = 9, below = {raid1} }}");
    let shifted = &format!("{{ kind = \"partition\", offset = \"60KiB\", below = {raid0} }}");
    let cached = &format!(
        "{{ kind = \"cache\", mode = \"write-through\", block = \"4KiB\", cache = {QUICK}, below = {raid1} }}"
    );
    let (read, write) = (Op::Read, Op::Write);
    let cases = [
        ("a drive", QUICK, write, BLOCK, (0, 0)),
        ("stripes", raid0, write, BLOCK, (0, 0)),
        ("two strips", raid0, write, 128 << 10, (1, 2)),
        ("two strips", raid0, read, 128 << 10, (1, 2)),
        ("a TRIM", raid0, Op::Trim, BLOCK, (1, 1)),
        ("a flush", raid0, Op::Flush, 0, (1, 2)),
        ("behind a bus", shared, write, BLOCK, (0, 0)),
        ("behind a bus", shared, write, 128 << 10, (1, 2)),
        ("a mirror", raid1, read, BLOCK, (0, 0)),
        ("a mirror", raid1, write, BLOCK, (1, 2)),
        ("behind a link", linked, read, BLOCK, (0, 0)),
        ("behind a link", linked, write, BLOCK, (1, 2)),
        ("a strip shifted", shifted, write, BLOCK, (0, 0)),
        ("a strip shifted", shifted, write, 2 * BLOCK, (1, 2)),
        ("RAID 50", of_arrays, read, BLOCK, (0, 0)),
        ("RAID 50", of_arrays, write, BLOCK, (1, 3)),
        ("a cache, which is filled", cached, read, BLOCK, (1, 2)),
        ("a cache and the mirror", cached, write, BLOCK, (1, 3)),
        ("none", "", read, BLOCK, (1, 1)),
        ("none", "", write, BLOCK, (1, 1)),
    ];
    for (what, below, op, len, expected) in cases {
        let mut device = match below {
            "" => card(&FIRMWARE.replace(" }", ", fast_path = false }"), raid0),
            _ => card(FIRMWARE, below),
        };
        closed_loop(&mut *device, 1, 1, 0, || command(op, 0, len), |_, _| {});
        device.advance(1_000_000_000, &mut Vec::new());
        assert_eq!(seen(&*device), expected, "{what}: {op:?} of {len}");
    }
}

#[test]
fn a_card_whose_ram_is_in_use_has_no_fast_path() {
    let through = "mode = \"write-through\", battery = true, keep_reads";
    for (ram, read, write) in [
        ("battery = true, keep_reads = false", 1, 1),
        ("mode = \"write-through\"", 1, 1),
        (&format!("{through} = true"), 1, 1),
        (&format!("{through} = false"), 0, 0),
    ] {
        for (op, expected) in [(Op::Read, read), (Op::Write, write)] {
            let keys = format!("{FIRMWARE}\ncache = {{ size = \"1MiB\", {ram} }}");
            let mut device = card(&keys, &array("level = \"raid0\", count = 2", QUICK));
            blocks(&mut *device, op, 1, 1);
            assert_eq!(seen(&*device).0, expected, "{op:?}, {ram}");
        }
    }
}

#[test]
fn an_answer_waits_for_what_its_members_take() {
    let one = |member: &str, op: Op| {
        let mut device = card(FIRMWARE, &array("level = \"raid1\", count = 2", member));
        let mut parts = (0, 0);
        let seen = |latency, c: &Completion| {
            assert_eq!(latency, c.parts.total());
            parts = (latency - c.parts[Part::Bus], c.parts[Part::Card]);
        };
        closed_loop(&mut *device, 1, 1, 0, || command(op, 0, BLOCK), seen);
        parts
    };
    // 23 us before the mirrors, of 1 us each; the core is at both of their commands for 10 us.
    assert_eq!(one(QUICK, Op::Write), (33_000, 32_000));
    // Of slow ones it is done long before they are.
    assert_eq!(one(SLOW, Op::Write), (123_000, 23_000));
    assert_eq!(one(QUICK, Op::Read), (4_000, 3_000));
}

#[test]
fn every_command_of_every_drive_takes_a_core_those_of_caches_and_rebuilding_too() {
    let pool = array(
        "level = \"raid5\", count = 3, spares = 1, rebuild_min = \"100MB/s\", \
         fail = [{ member = 1, at = \"3ms\" }]",
        SLOW,
    );
    let keys = "mode = \"write-back\", block = \"16KiB\", sub_block = \"4KiB\", dirty_high = 0.2, dirty_low = 0.1";
    let fast = array("level = \"raid1\", count = 2", QUICK).replace("8MiB", "1MiB");
    let cached = format!("{{ kind = \"cache\", {keys}, cache = {fast}, below = {pool} }}");
    let mut device = card(FIRMWARE, &cached);
    let found = blocks(&mut *device, Op::Write, 16, 3000);
    // What the cache and the rebuilding still do by themselves.
    device.advance(found.end + 500_000_000, &mut Vec::new());
    let (commands, members) = seen(&*device);
    assert_eq!((commands, members), (3000, given(&*device)));
    let mut all = BTreeMap::new();
    all_counters(&*device, "", &mut all);
    let rebuilt = all.iter().find(|(name, _)| name.ends_with("rebuilt_bytes"));
    assert!(rebuilt.is_some_and(|(_, bytes)| *bytes == 8 << 20), "{rebuilt:?}");
    assert!(members > 9000, "{members}: two for each write of a mirror, and destaging");
    assert_eq!(counters(&*device)["busy_cores_ns"], 3000 * 23_000 + members * 5_000);
}

#[test]
fn what_is_done_below_takes_the_cores_when_it_is_done() {
    // Rebuilding keeps the core at work for a part of the time; nothing of that is owed later.
    let rebuilding = array(
        "level = \"raid1\", count = 2, spares = 1, rebuild_min = \"10MB/s\", rebuild_max = \"10MB/s\", \
         fail = [{ member = 1, at = \"1us\" }]",
        QUICK,
    );
    let mut latencies = Vec::new();
    for step in [NEVER, 7_000, 90_000_000] {
        let mut device = card(FIRMWARE, &rebuilding);
        let (mut now, end, mut done) = (0, 400_000_000, Vec::new());
        while now < end {
            now = (now + step.min(end)).min(end);
            device.advance(now, &mut done);
        }
        assert!(seen(&*device).1 > 50, "{:?}", seen(&*device));
        device.submit(end, command(Op::Write, 0, BLOCK));
        device.advance(end + 10_000_000, &mut done);
        latencies.push((done[0].time - end, seen(&*device)));
    }
    assert!(latencies[0].0 < 60_000, "{latencies:?}");
    assert!(latencies.iter().all(|one| *one == latencies[0]), "{latencies:?}");
}

#[test]
fn times_of_zero_change_nothing() {
    let with = "firmware = { command_time = \"0us\", member_command_time = \"0us\" }";
    let ends = ["", with].map(|keys| {
        let mut device =
            card(&format!("cores = 3\n{keys}"), &array("level = \"raid6\", count = 8", SLOW));
        let mut ends: Vec<Completion> = Vec::new();
        let next = scattered(&*device, Op::Write);
        closed_loop(&mut *device, 24, 600, 0, next, |_, c| ends.push(c.clone()));
        (ends, counters(&*device))
    });
    assert!(ends[0] == ends[1]);
}

#[test]
fn after_a_loss_of_power_as_before() {
    let shared = array("level = \"raid0\", count = 2, bus = { bandwidth = \"1GB/s\" }", SLOW);
    let mut device = card(FIRMWARE, &shared);
    let mut next = scattered(&*device, Op::Write);
    // On the fast path, some of them on the bus.
    (0..16).for_each(|tag| device.submit(0, Command { tag, ..next() }));
    let mut done = Vec::new();
    device.advance(40_000, &mut done);
    assert!(done.is_empty());
    assert!(given(&*device) < 16, "all have reached their drives");
    let ready = device.power_cut(40_000, &mut Missed::default());
    let both = || command(Op::Write, 60 << 10, 2 * BLOCK);
    closed_loop(&mut *device, 4, 100, ready, both, |_, _| {});
    assert_eq!(seen(&*device), (100, 200));
    let end = device.settle(1_000_000_000);
    closed_loop(&mut *device, 4, 100, end, both, |_, _| {});
    assert_eq!(seen(&*device), (200, 400));
}
