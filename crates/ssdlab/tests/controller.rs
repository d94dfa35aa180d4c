//! What a controller card does, in closed form: caps, queue, RAM that fills and drains, the elevator.

use crate::common;

use common::rigs::build;
use common::{closed_loop, command, counters};
use ssdlab::device::{
    Build, Command, Completion, Controller, ControllerKeys, Device, Missed, Op, RamKeys, RamOrder,
    WriteMode,
};
use ssdlab::persist::{Archive, Persist};
use ssdlab::rig::Rig;
use ssdlab::rng::Stream;
use ssdlab::stats::Part;
use ssdlab::units::{Bytes, NEVER, Nanos, Rate};

const BLOCK: u64 = 4096;

/// A card of these keys above a null device.
fn card(keys: &str, null: &str) -> Box<dyn Device> {
    let text = format!(
        "[device]\nkind = \"controller\"\n{keys}\n\
         [device.below]\nkind = \"null\"\ncapacity = \"64MiB\"\n{null}\n"
    );
    build(&Rig::parse(&text, "card").unwrap_or_else(|e| panic!("{e}\n{text}")), 1, false)
}

fn within(what: &str, found: f64, expected: f64, share: f64) {
    assert!((found / expected - 1.0).abs() <= share, "{what}: {found}, expected {expected}");
}

/// Blocks of a device in an order without neighbours.
fn scattered(blocks: u64) -> impl FnMut() -> u64 {
    let mut at = 0;
    move || {
        at = (at + blocks * 5 / 8 + 1) % blocks;
        at * BLOCK
    }
}

#[test]
fn transfers_share_the_bandwidth_exactly() {
    for (len, depth) in [(4096, 64), (65_536, 8), (1 << 20, 4)] {
        let mut device = card("bandwidth = \"1GB/s\"", "service_time = \"1us\"\nservers = 1000");
        let mut offsets = scattered((64 << 20) / BLOCK - len / BLOCK);
        let mut nth = 0;
        // Reads and writes in turn.
        let next = || {
            nth += 1;
            command(if nth % 2 == 0 { Op::Read } else { Op::Write }, offsets(), len)
        };
        let found = closed_loop(&mut *device, depth, 2000, 0, next, |_, _| {});
        // The first transfer waits for a read below, at most.
        within("bytes a second", found.per_second() * len as f64, 1e9, 1e-3);
        assert_eq!(counters(&*device)["busy_bus_ns"], 2000 * len);
    }
}

#[test]
fn iops_are_cores_by_time_of_a_command() {
    for cores in [1, 3, 8] {
        let keys = format!("bandwidth = \"100GB/s\"\ncommand_time = \"10us\"\ncores = {cores}");
        let mut device = card(&keys, "service_time = \"1us\"\nservers = 1000");
        let mut offsets = scattered(1 << 14);
        let next = || command(Op::Read, offsets(), 512);
        let found = closed_loop(&mut *device, 64, 30_000, 0, next, |_, c| {
            assert_eq!(
                c.parts[Part::Card] + c.parts[Part::Service] + c.parts[Part::Bus],
                c.parts.total()
            );
        });
        within("IOPS", found.per_second(), f64::from(cores) * 1e5, 1e-3);
    }
}

#[test]
fn commands_beyond_the_queue_wait_in_order() {
    let mut device =
        card("bandwidth = \"100GB/s\"\nqueue = 3", "service_time = \"100us\"\nservers = 64");
    let mut offsets = scattered(1 << 14);
    let mut tags = Vec::new();
    let next = || command(Op::Read, offsets(), 512);
    let found = closed_loop(&mut *device, 32, 3000, 0, next, |_, c| tags.push(c.tag));
    within("IOPS of three places", found.per_second(), 3.0 / 100e-6, 1e-3);
    // First in, first out: each place in the loop comes round after all others.
    assert!(tags.windows(33).all(|w| w[0] == w[32]), "out of order");
}

/// Write-back with a battery, RAM of 1024 blocks, everything else as given.
fn write_back(more: &str) -> String {
    format!(
        "bandwidth = \"10GB/s\"\ncommand_time = \"10us\"\n\
         cache = {{ size = \"4MiB\", battery = true, dirty_high = 1.0, {more} }}"
    )
}

#[test]
fn a_burst_lasts_until_ram_is_full_and_then_the_disk_sets_the_pace() {
    // In: a core for each write and for each destage; out: one disk of 2000 a second.
    let keys = write_back("dirty_low = 0.0, destage_size = \"4KiB\", destage_depth = 1");
    let mut device = card(&keys, "service_time = \"490us\"");
    let mut offsets = scattered(1 << 14);
    let next = || command(Op::Write, offsets(), BLOCK);
    let (mut done, mut burst, mut ends) = (0u64, None, Vec::new());
    let mut now = 0;
    let seen = |latency: u64, c: &Completion| {
        assert_eq!(latency, c.parts.total());
        now = c.time;
        if c.parts[Part::Cache] > 0 && burst.is_none() {
            burst = Some((done, c.time));
        }
        if burst.is_some() {
            ends.push(c.time);
        }
        done += 1;
    };
    closed_loop(&mut *device, 32, 4000, 0, next, seen);
    let (writes, at) = burst.expect("RAM filled up");
    // A destage takes 10 us of the core and 490 us of the disk: 2000 a second, and 98 000 writes.
    within("length of the burst, s", at as f64 / 1e9, 1024.0 / (98_000.0 - 2000.0), 0.05);
    within("writes of the burst", writes as f64, 98_000.0 * at as f64 / 1e9, 0.01);
    let paces: Vec<u64> = ends.windows(2).map(|w| w[1] - w[0]).collect();
    assert!(paces[40..].iter().all(|&pace| pace == 500_000), "{:?}", &paces[40..60]);
    assert_eq!(counters(&*device)["dirty_bytes_max"], 4 << 20);
}

#[test]
fn neighbours_go_below_as_one_command() {
    for (size, commands) in [("4KiB", 256), ("64KiB", 16), ("1MiB", 1)] {
        let keys = write_back(&format!("destage_size = \"{size}\""));
        let mut device = card(&keys, "service_time = \"1ms\"");
        let mut at = 0;
        let next = || {
            // In an order that is not theirs.
            at = (at + 101) % 256;
            command(Op::Write, at * BLOCK, BLOCK)
        };
        closed_loop(&mut *device, 4, 256, 0, next, |_, _| {});
        device.settle(1_000_000_000);
        let c = counters(&*device);
        assert_eq!(c["destage_commands"], commands, "of {size}");
        assert_eq!(c["destage_merged_lines"], 256 - commands);
        assert_eq!((c["below_writes"], c["below_bytes_written"]), (commands, 1 << 20));
        assert_eq!(c["dirty_bytes"], 0);
    }
}

#[test]
fn what_is_written_again_in_ram_goes_below_once() {
    let mut device = card(&write_back("destage_delay = \"1s\""), "service_time = \"1ms\"");
    let mut nth = 0;
    let next = || {
        nth += 1;
        command(Op::Write, nth % 10 * BLOCK, BLOCK)
    };
    let found = closed_loop(&mut *device, 4, 1000, 0, next, |_, _| {});
    device.settle(found.end);
    let c = counters(&*device);
    assert_eq!(c["bytes_overwritten"], 990 * BLOCK);
    assert_eq!(c["below_bytes_written"], 10 * BLOCK);
}

#[test]
fn without_a_battery_a_write_is_done_when_it_is_below() {
    let cases = [
        ("battery = false", true),
        ("force = true", false),
        ("battery = true", false),
        ("battery = true, mode = \"write-through\"", true),
    ];
    for (keys, waits) in cases {
        let keys = format!("bandwidth = \"10GB/s\"\ncache = {{ size = \"4MiB\", {keys} }}");
        let mut device = card(&keys, "service_time = \"1ms\"");
        let found = closed_loop(&mut *device, 1, 1, 0, || command(Op::Write, 0, BLOCK), |_, _| {});
        assert_eq!(found.latency_max > 1_000_000, waits, "{keys}");
    }
}

#[test]
fn a_flush_waits_for_ram_unless_it_has_a_battery() {
    for (protection, least) in [("force = true", 10_000_000), ("battery = true", 0)] {
        let keys = format!(
            "bandwidth = \"100GB/s\"\ncache = {{ size = \"4MiB\", {protection}, destage_depth = 1 }}"
        );
        let mut device = card(&keys, "service_time = \"1ms\"");
        let mut offsets = scattered(1 << 14);
        let next = || command(Op::Write, offsets(), BLOCK);
        let found = closed_loop(&mut *device, 1, 9, 0, next, |_, _| {});
        let flush = || command(Op::Flush, 0, 0);
        let flushed = closed_loop(&mut *device, 1, 1, found.end, flush, |_, _| {});
        // Nine blocks one after the other, then the flush of the device below.
        assert_eq!(flushed.elapsed, least, "{protection}");
    }
}

#[test]
fn a_flush_ends_though_a_block_is_written_on_and_on() {
    let keys = "bandwidth = \"10GB/s\"\ncache = { size = \"1MiB\", force = true }";
    let mut device = card(keys, "service_time = \"100us\"");
    let mut nth = 0;
    let next = || {
        nth += 1;
        match nth {
            50 => command(Op::Flush, 0, 0),
            _ => command(Op::Write, 0, BLOCK),
        }
    };
    let mut longest = 0;
    let seen = |latency: u64, c: &Completion| {
        if c.parts[Part::Service] > 0 {
            longest = longest.max(latency);
        }
    };
    closed_loop(&mut *device, 4, 20_000, 0, next, seen);
    assert!((100_000..500_000).contains(&longest), "the flush took {longest} ns");
}

#[test]
fn ram_answers_what_was_read_or_written_before() {
    let keys = "bandwidth = \"4GB/s\"\ncommand_time = \"5us\"\n\
                cache = { size = \"1MiB\", battery = true }";
    let mut device = card(keys, "service_time = \"1ms\"");
    let one = |device: &mut dyn Device, at: u64, op: Op, offset: u64, len: u64| {
        closed_loop(device, 1, 1, at, || command(op, offset, len), |_, _| {})
    };
    let hit = 5_000 + 1024;
    let first = one(&mut *device, 0, Op::Read, 0, BLOCK);
    assert_eq!(first.elapsed, hit + 1_000_000);
    let again = one(&mut *device, first.end, Op::Read, 0, BLOCK);
    assert_eq!(again.elapsed, hit);
    let written = one(&mut *device, again.end, Op::Write, 80 * BLOCK, BLOCK);
    let read = one(&mut *device, written.end, Op::Read, 80 * BLOCK, BLOCK);
    assert_eq!((written.elapsed, read.elapsed), (hit, hit));
    // Half a hit: what is missing is read.
    let half = one(&mut *device, read.end, Op::Read, 79 * BLOCK, 2 * BLOCK);
    assert_eq!(half.elapsed, 5_000 + 2048 + 1_000_000);
    assert_eq!(counters(&*device)["below_bytes_read"], 2 * BLOCK);
}

#[test]
fn ram_keeps_what_was_used_last() {
    let keys = "bandwidth = \"4GB/s\"\ncache = { size = \"400KiB\" }";
    let mut device = card(keys, "service_time = \"10us\"");
    // A hundred lines; a cyclic scan of 101 never hits, one of 100 always does after the first round.
    let mut end = 0;
    for (blocks, hits) in [(101u64, 0), (100, 900)] {
        let before = counters(&*device)["read_hits"];
        device.submit(end, Command { tag: 99, ..command(Op::Purge, 0, 0) });
        let mut done = Vec::new();
        while done.is_empty() {
            end = device.advance(NEVER - 1, &mut done);
        }
        let mut nth = 0;
        let next = || {
            nth += 1;
            command(Op::Read, nth % blocks * BLOCK, BLOCK)
        };
        end = closed_loop(&mut *device, 1, 1000, end, next, |_, _| {}).end;
        assert_eq!(counters(&*device)["read_hits"] - before, hits, "{blocks} blocks");
    }
}

/// A disk without anything but its arm: a millisecond a GiB of distance, and 10 us.
struct Arm {
    head: u64,
    free_at: u64,
    queue: Vec<(u64, u64)>,
    travelled: u64,
}

impl Persist for Arm {
    fn persist(&mut self, _: &mut Archive<'_>) -> ssdlab::Result<()> {
        Ok(())
    }
}

impl Device for Arm {
    fn kind(&self) -> &'static str {
        "arm"
    }
    fn capacity(&self) -> u64 {
        8 << 30
    }
    fn submit(&mut self, now: u64, command: Command) {
        let distance = self.head.abs_diff(command.offset);
        self.travelled += distance;
        self.head = command.offset + command.len;
        self.free_at = self.free_at.max(now) + 10_000 + distance / 1074;
        self.queue.push((self.free_at, command.tag));
    }
    fn next_event(&self) -> u64 {
        self.queue.first().map_or(NEVER, |&(time, _)| time)
    }
    fn advance(&mut self, limit: u64, done: &mut Vec<Completion>) -> u64 {
        let time = self.next_event();
        if time > limit {
            return limit;
        }
        let (time, tag) = self.queue.remove(0);
        done.push(Completion { tag, time, ..Completion::default() });
        time
    }
    fn settle(&mut self, now: u64) -> u64 {
        now.max(self.free_at)
    }
    fn power_cut(&mut self, now: u64, _: &mut Missed) -> u64 {
        self.queue.clear();
        now
    }
    fn apply(&mut self, _: &Command) {}
    fn counters(&self, visit: &mut dyn FnMut(&'static str, u64)) {
        visit("travelled", self.travelled);
    }
}

fn arm(cache: Option<RamKeys>) -> Controller {
    let keys = ControllerKeys {
        bandwidth: Rate(100_000_000_000),
        command_time: Nanos(0),
        cores: 1,
        queue: 64,
        firmware: None,
        cache,
    };
    let below = Arm { head: 0, free_at: 0, queue: Vec::new(), travelled: 0 };
    let build = Build { seed: 1, keep_versions: false, path: "device".into() };
    Controller::new(&keys, Box::new(below), &build).unwrap()
}

/// RAM of 1024 blocks below which one command goes at a time.
fn one_by_one(destage_order: RamOrder) -> RamKeys {
    RamKeys {
        size: Bytes::mib(4),
        line: Bytes::kib(4),
        mode: WriteMode::WriteBack,
        battery: true,
        force: false,
        dirty_high: 1.0,
        dirty_low: 0.9,
        destage_delay: Nanos::millis(1000),
        destage_depth: 1,
        destage_size: Bytes::kib(4),
        destage_order,
        keep_reads: false,
    }
}

#[test]
fn by_age_the_arm_goes_the_way_of_the_writes() {
    let way = |cache: Option<RamKeys>| {
        let mut device = arm(cache);
        let mut offsets = scattered(2 << 20);
        let (mut last, mut nth) = (0, 0);
        let next = || {
            // Every other write repeats the one before, which keeps its place in RAM.
            nth += 1;
            last = if nth % 2 == 0 { last } else { offsets() };
            command(Op::Write, last, BLOCK)
        };
        closed_loop(&mut device, 1, 1600, 0, next, |_, _| {});
        device.settle(2_000_000_000);
        counters(device.children()[0].1)["travelled"]
    };
    let [plain, age, address] =
        [None, Some(RamOrder::Age), Some(RamOrder::Address)].map(|o| way(o.map(one_by_one)));
    // To write a block again at once the arm goes back over it.
    assert_eq!(plain, age + 800 * BLOCK);
    assert!(address * 100 < age, "{address} against {age}");
}

#[test]
fn the_elevator_goes_round_instead_of_to_and_fro() {
    let cache = one_by_one(RamOrder::Address);
    let mut travelled = Vec::new();
    for cache in [None, Some(cache)] {
        let mut device = arm(cache);
        let mut rng = Stream::new(3, "offsets");
        let next = || command(Op::Write, rng.below(2 << 20) * BLOCK, BLOCK);
        closed_loop(&mut device, 32, 20_000, 0, next, |_, _| {});
        let below = device.children();
        travelled.push(counters(below[0].1)["travelled"] as f64 / (8u64 << 30) as f64 / 20_000.0);
    }
    // At random a third of the disk for each. Of m blocks waiting, those before the elevator lie the
    // denser the longer they have waited: 2 m to a disk's width where it stands, none where it was
    // last. So it writes 2 m in a round, and a round is the disk there and back.
    within("share of the disk, in order of arrival", travelled[0], 1.0 / 3.0, 0.02);
    within("share of the disk, by address", travelled[1], 2.0 / (2.0 * 1024.0), 0.1);
}

#[test]
fn what_is_acknowledged_and_not_below_is_counted() {
    let mut device = card(&write_back("destage_delay = \"1s\""), "service_time = \"1ms\"");
    let mut offsets = scattered(1 << 14);
    let next = || command(Op::Write, offsets(), BLOCK);
    closed_loop(&mut *device, 4, 100, 0, next, |_, _| {});
    assert_eq!(counters(&*device)["dirty_bytes"], 100 * BLOCK);
    // After the delay all of it goes below without being asked.
    let mut done = Vec::new();
    device.advance(999_000_000, &mut done);
    assert_eq!(counters(&*device)["dirty_bytes"], 100 * BLOCK);
    device.advance(2_000_000_000, &mut done);
    assert_eq!(counters(&*device)["dirty_bytes"], 0);
}

#[test]
fn impossible_keys_are_refused_by_name() {
    let cases = [
        ("bandwidth = \"1B/s\"", "bandwidth: found 1B/s, expected at least 1kB/s"),
        ("bandwidth = \"1GB/s\"\ncores = 0", "cores: found 0, expected from 1 to 4096"),
        ("bandwidth = \"1GB/s\"\nqueue = 0", "queue: found 0, expected from 1 to 65536"),
        (
            "bandwidth = \"1GB/s\"\ncommand_time = \"2h\"",
            "command_time: found 7200s, expected at most an hour",
        ),
        (
            "bandwidth = \"1GB/s\"\ncache = { size = \"1MiB\", line = \"3KiB\" }",
            "cache.line: found 3KiB, expected a power of two from 512B to 32KiB",
        ),
        (
            "bandwidth = \"1GB/s\"\ncache = { size = \"2KiB\" }",
            "cache.size: found 2KiB, expected from one line of 4KiB to",
        ),
        (
            "bandwidth = \"1GB/s\"\ncache = { size = \"1MiB\", dirty_high = 1.5 }",
            "cache.dirty_high: found 1.5, expected a share above 0 and up to 1",
        ),
        (
            "bandwidth = \"1GB/s\"\ncache = { size = \"1MiB\", dirty_high = 0.5, dirty_low = 0.6 }",
            "cache.dirty_low: found 0.6, expected a share from 0 to dirty_high, 0.5",
        ),
        (
            "bandwidth = \"1GB/s\"\ncache = { size = \"1MiB\", destage_size = \"6KiB\" }",
            "cache.destage_size: found 6KiB, expected a multiple of a line of 4KiB up to",
        ),
        (
            "bandwidth = \"1GB/s\"\ncache = { size = \"1MiB\", baterry = true }",
            "cache.baterry: unknown key, did you mean battery?",
        ),
    ];
    for (keys, expected) in cases {
        let text = format!(
            "[device]\nkind = \"controller\"\n{keys}\n[device.below]\nkind = \"null\"\ncapacity = \"1MiB\"\n"
        );
        let rig = Rig::parse(&text, "card.toml").unwrap();
        let said = rig.build(1, false).err().unwrap().to_string();
        assert!(said.contains(expected), "{said}\n{expected}");
    }
}

#[test]
fn ram_counts_as_memory_of_the_simulation() {
    let rig = |size: &str| {
        let text = format!(
            "[device]\nkind = \"controller\"\nbandwidth = \"1GB/s\"\ncache = {{ size = \"{size}\" }}\n\
             [device.below]\nkind = \"null\"\ncapacity = \"1MiB\"\n"
        );
        Rig::parse(&text, "card.toml").unwrap()
    };
    assert!(rig("1GiB").check_memory(100 << 20).is_ok());
    let said = rig("64GiB").check_memory(100 << 20).unwrap_err().to_string();
    assert!(said.contains("needs about 2.3 GB of memory"), "{said}");
}
