//! The cache as a device: who waits for what, how it warms up, what it writes, and what is lost when it fails.

use crate::common;

use common::audit::{Audit, Step, random_script};
use common::rigs::{SAMPLES, Shape, build, hold_to_promises, stack};
use common::{closed_loop, command, counters};
use ssdlab::cache::device::PRESETS;
use ssdlab::cache::policy::BuildReplacement;
use ssdlab::cache::{Parameters, REPLACEMENTS, Request, Tally, hit_ratio};
use ssdlab::device::{Command, Completion, Device, Op, mix};
use ssdlab::rig::Rig;
use ssdlab::rng::Stream;
use ssdlab::stats::Part;
use ssdlab::units::NEVER;
use std::collections::{BTreeMap, BTreeSet};

const BLOCK: u64 = 4096;
/// A hundred frames of 4 KiB, and two pages for their entries of 64 B.
const HUNDRED: &str =
    "{ kind = \"null\", capacity = \"408KiB\", service_time = \"10us\", servers = 4 }";
const POOL: &str = "{ kind = \"null\", capacity = \"4MiB\", service_time = \"1ms\", servers = 1 }";
const SMALL: &str = "block = \"4KiB\"\nsub_block = \"4KiB\"";

fn rig_of(keys: &str, cache: &str, pool: &str) -> Rig {
    let text = format!("[device]\nkind = \"cache\"\n{keys}\ncache = {cache}\nbelow = {pool}");
    Rig::parse(&text, "cache").unwrap_or_else(|e| panic!("{e}\n{text}"))
}

fn small(keys: &str) -> Box<dyn Device> {
    build(&rig_of(&format!("{SMALL}\n{keys}"), HUNDRED, POOL), 1, true)
}

/// Does a command and lets everything come to rest that does so within a minute; its latency.
fn alone(device: &mut dyn Device, now: &mut u64, command: Command) -> (u64, Completion) {
    device.submit(*now, command);
    let mut done = Vec::new();
    let end = device.advance(NEVER - 1, &mut done);
    let latency = end - *now;
    *now = end;
    let completion = done[0].clone();
    assert_eq!((done.len(), completion.parts.total()), (1, latency));
    while device.next_event() < *now + 60_000_000_000 {
        *now = device.next_event();
        device.advance(*now, &mut done);
    }
    assert_eq!(done.len(), 1);
    (latency, completion)
}

fn block(op: Op, key: u64) -> Command {
    command(op, key * BLOCK, BLOCK)
}

#[test]
fn every_cache_keeps_its_promises_before_other_devices() {
    for (nth, sample) in SAMPLES.iter().filter(|s| s.kind == "cache").enumerate() {
        for leaf in SAMPLES.iter().filter(|s| !s.below).take(5) {
            let rig = stack(&[sample.layer(), leaf.layer()]);
            for depth in [1, 7, 40] {
                let seed = (nth * 10 + depth) as u64;
                let script = random_script(seed, build(&rig, seed, false).capacity(), 1500);
                if let Err(violation) = hold_to_promises(&rig, &script, depth, seed) {
                    panic!("{violation:?}\n{}", rig.to_toml());
                }
            }
        }
    }
}

/// Keys of any cache, and a pool of any kind.
fn any_cache(seed: u64) -> Rig {
    let mut stream = Stream::new(seed, "keys");
    let mut one = |of: &[&str]| of[stream.below(of.len() as u64) as usize].to_string();
    let mut keys = Vec::new();
    let mut key = |name: &str, of: &[&str]| {
        let value = one(of);
        if !value.is_empty() {
            let bare = value.parse::<f64>().is_ok() || value.starts_with('{');
            let value = if bare { value } else { format!("\"{value}\"") };
            keys.push(format!("{name} = {value}"));
        }
    };
    let modes = ["write-through", "write-back", "write-around", "write-around-fill", "write-only"];
    key("mode", &modes);
    key("block", &["4KiB", "16KiB", "64KiB"]);
    key("sub_block", &["1KiB", "2KiB", "4KiB"]);
    let policies: Vec<&str> = online().collect();
    key("replacement", &policies);
    key("metadata", &["ram", "written"]);
    key("used_before", &["", "0.5"]);
    key("read_threshold", &["0", "1", "2", "3"]);
    key("write_threshold", &["0", "1", "1", "2"]);
    key("age_after", &["", "50"]);
    key("eager_until", &["", "0.5"]);
    key("fill", &["request", "block"]);
    key("fills", &["", "1", "3"]);
    key("write_miss", &["cache", "both"]);
    key("write_budget", &["", "", "9MB"]);
    key("sequential_cutoff", &["", "64KiB"]);
    key("congested_latency", &["", "60us"]);
    key("congested_queue", &["", "5"]);
    key("dirty_low", &["0.0", "0.1", "0.3"]);
    key("dirty_high", &["0.4", "0.9", "1.0"]);
    key("idle_after", &["", "0s", "2ms"]);
    key("destage_order", &["address", "age"]);
    key("destage_rate", &["", "5MB/s"]);
    key("destage_merge", &["1KiB", "64KiB", "512KiB"]);
    key("destage_depth", &["1", "4"]);
    let switches =
        ["", "{ at = \"20ms\", to = \"write-through\" }", "{ at = \"9ms\", to = \"write-back\" }"];
    key("switch", &switches);
    let keys = keys.join("\n");
    let pool = one(&[
        POOL,
        "{ kind = \"null\", capacity = \"4093KiB\", service_time = \"90us\", servers = 5 }",
        "{ kind = \"partition\", offset = \"1536B\", size = \"3MiB\", \
         below = { kind = \"null\", capacity = \"4MiB\" } }",
        "{ kind = \"array\", level = \"raid5\", count = 3, chunk = \"16KiB\", trim = true, \
         member = { kind = \"null\", capacity = \"2MiB\", service_time = \"50us\" } }",
    ]);
    let cache =
        one(&[HUNDRED, "{ kind = \"null\", capacity = \"2MiB\", service_time = \"30us\" }"]);
    rig_of(&keys, &cache, &pool)
}

#[test]
fn any_cache_keeps_its_promises() {
    for seed in 0..150 {
        let rig = any_cache(seed);
        let script = random_script(seed, build(&rig, seed, false).capacity(), 700);
        if let Err(violation) = hold_to_promises(&rig, &script, 1 + seed as usize % 40, seed) {
            panic!("{seed}: {violation:?}\n{}", rig.to_toml());
        }
    }
}

#[test]
fn the_samples_of_the_laws_hit_fill_destage_and_evict() {
    let leaf = SAMPLES.iter().find(|s| s.kind == "null").unwrap();
    let mut sums: BTreeMap<&str, u64> = BTreeMap::new();
    for sample in SAMPLES.iter().filter(|s| s.kind == "cache") {
        let mut device = build(&stack(&[sample.layer(), leaf.layer()]), 1, true);
        let script = random_script(1, device.capacity(), 3000);
        Audit::new(&mut *device, None).run(&script, 16).unwrap();
        counters(&*device).into_iter().for_each(|(name, n)| *sums.entry(name).or_default() += n);
    }
    for name in [
        "read_hits",
        "read_partial",
        "write_hits",
        "fills",
        "fills_skipped",
        "budget_refused",
        "evictions",
        "destages",
        "metadata_writes",
        "write_waits",
        "bypassed_sequential",
        "bypassed_congested",
        "cache_failed",
        "drained_at_ns",
    ] {
        assert!(sums[name] > 0, "no sample has any {name}: {sums:?}");
    }
}

/// Policies that a device can have.
fn online() -> impl Iterator<Item = &'static str> {
    let entries = REPLACEMENTS.entries.iter();
    entries.filter(|one| matches!(one.build, BuildReplacement::Online(_))).map(|one| one.name)
}

#[test]
fn at_depth_one_hits_are_those_of_the_policy_alone() {
    for policy in online().filter(|name| !["random", "lhd"].contains(name)) {
        let mut device = small(&format!("replacement = \"{policy}\""));
        assert_eq!(counters(&*device)["blocks_capacity"], 100);
        let mut stream = Stream::new(7, "requests");
        let draw = |_| {
            let key = (stream.unit().powi(3) * 1024.0) as u64;
            Request::one(key, stream.below(10) < 3)
        };
        let requests: Vec<Request> = (0..4000).map(draw).collect();
        let mut now = 0;
        for request in &requests {
            let op = if request.write { Op::Write } else { Op::Read };
            alone(&mut *device, &mut now, block(op, request.key));
        }
        let c = counters(&*device);
        let (build, stream) = (REPLACEMENTS.find(policy).unwrap().build, Stream::new(1, "x"));
        let mut alone = build.online(policy, 100, &Parameters::default(), stream).unwrap();
        let mut tally = Tally::new(100);
        alone.replay(&requests, &mut tally);
        let expected = tally.counts;
        // What GDSF lets past where nothing but misses are counted, a device lets in.
        let counted = hit_ratio(policy, &Parameters::default(), 100, requests, 1).unwrap();
        assert!(policy == "gdsf" || counted == expected, "{policy}");
        assert_eq!(
            (c["read_hits"], c["read_misses"], c["write_hits"], c["write_misses"]),
            (expected.read_hits, expected.read_misses, expected.write_hits, expected.write_misses),
            "{policy}"
        );
        assert!(expected.read_hits > 500 && c["evictions"] > 500, "{policy}: {expected:?}");
    }
}

#[test]
fn a_hit_takes_the_time_of_the_cache_and_a_miss_that_of_the_pool() {
    let (cache, pool) = (10_000, 1_000_000);
    for (mode, write_miss, write_hit) in [
        ("write-through", pool, pool),
        ("write-back", cache, cache),
        ("write-around", pool, pool),
        ("write-around-fill", pool, pool),
        ("write-only", cache, cache),
    ] {
        let mut device = small(&format!("mode = \"{mode}\"\ndirty_low = 0.5"));
        let mut now = 0;
        let mut time = |op, key| alone(&mut *device, &mut now, block(op, key)).0;
        assert_eq!(time(Op::Read, 1), pool, "{mode}");
        let read_only = mode == "write-only";
        assert_eq!(time(Op::Read, 1), if read_only { pool } else { cache }, "{mode}");
        assert_eq!(time(Op::Write, 2), write_miss, "{mode}");
        assert_eq!(time(Op::Write, 1), write_hit, "{mode}");
        let around = mode == "write-around";
        assert_eq!(time(Op::Read, 2), if around { pool } else { cache }, "{mode}");
    }
}

/// Does two writes that begin together, at half a sub-block each and so many bytes apart; how long both take.
fn together(device: &mut dyn Device, now: &mut u64, key: u64, apart: u64) -> u64 {
    for (tag, offset) in [(0, 0), (1, apart)] {
        let half = command(Op::Write, key * BLOCK + offset, BLOCK / 2);
        device.submit(*now, Command { tag, ..half });
    }
    let (begun, mut done) = (*now, Vec::new());
    while done.len() < 2 {
        *now = device.advance(NEVER - 1, &mut done);
    }
    *now - begun
}

#[test]
fn writes_at_a_sub_block_wait_for_each_other_where_they_share_bytes() {
    let pool = "{ kind = \"null\", capacity = \"4MiB\", service_time = \"1ms\", servers = 4 }";
    let built = |keys: &str| build(&rig_of(&format!("{SMALL}\n{keys}"), HUNDRED, pool), 1, true);
    let (cold, valid) = (7, 1);
    for mode in ["write-through", "write-back\"\ndirty_low = 0.5\nwrite_miss = \"both"] {
        let mut device = built(&format!("mode = \"{mode}\""));
        let mut now = 0;
        alone(&mut *device, &mut now, block(Op::Read, valid));
        // What is in neither goes to the pool.
        assert_eq!(together(&mut *device, &mut now, cold, BLOCK / 2), 1_000_000, "{mode}");
        assert_eq!(together(&mut *device, &mut now, cold, BLOCK / 4), 2_000_000, "{mode}");
        device.verify();
    }
    let mut through = built("mode = \"write-through\"");
    let mut now = 0;
    alone(&mut *through, &mut now, block(Op::Read, valid));
    assert_eq!(together(&mut *through, &mut now, valid, BLOCK / 2), 1_000_000);
    assert_eq!(together(&mut *through, &mut now, valid, BLOCK / 4), 2_000_000);
    through.verify();
    let mut back = built("mode = \"write-back\"\ndirty_low = 0.5");
    let mut now = 0;
    alone(&mut *back, &mut now, block(Op::Read, valid));
    // What the first makes dirty has its room, so that the second needs none.
    assert_eq!(together(&mut *back, &mut now, valid, BLOCK / 2), 10_000);
    assert_eq!(counters(&*back)["dirty_bytes"], BLOCK);
    assert_eq!(together(&mut *back, &mut now, valid, BLOCK / 2), 10_000);
    assert_eq!(together(&mut *back, &mut now, valid, BLOCK / 4), 20_000);
    back.verify();
}

#[test]
fn a_write_of_both_makes_the_next_one_fast() {
    let mut device = small("mode = \"write-back\"\nwrite_miss = \"both\"\ndirty_low = 0.5");
    let mut now = 0;
    let mut time = |key| alone(&mut *device, &mut now, block(Op::Write, key)).0;
    assert_eq!([time(5), time(5), time(6)], [1_000_000, 10_000, 1_000_000]);
}

#[test]
fn metadata_that_is_written_costs_a_write_per_change() {
    let keys = "mode = \"write-back\"\nmetadata = \"written\"\ndirty_low = 0.5";
    let mut device = small(keys);
    let mut now = 0;
    let mut time = |key| alone(&mut *device, &mut now, block(Op::Write, key)).0;
    assert_eq!([time(5), time(5), time(6)], [20_000, 10_000, 20_000]);
    assert_eq!(counters(&*device)["metadata_writes"], 2);
}

#[test]
fn parts_of_a_block_come_from_where_they_are() {
    let keys = "block = \"64KiB\"\nsub_block = \"4KiB\"";
    let cache = "{ kind = \"null\", capacity = \"1MiB\", service_time = \"10us\" }";
    let mut device = build(&rig_of(keys, cache, POOL), 1, true);
    let mut now = 0;
    alone(&mut *device, &mut now, command(Op::Read, 8192, 8192));
    assert_eq!(counters(&*device)["fill_bytes"], 8192);
    // Four sub-blocks, the middle two of which are there: two commands of the pool one after the other.
    let (latency, _) = alone(&mut *device, &mut now, command(Op::Read, 4096, 16384));
    assert_eq!(latency, 2_000_000);
    let c = counters(&*device);
    assert_eq!((c["read_misses"], c["read_partial"], c["cache_bytes_read"]), (1, 1, 8192));
    assert_eq!((c["fill_bytes"], c["pool_bytes_read"]), (16384, 16384));
    // A miss over several blocks is one command of the pool.
    let (latency, _) = alone(&mut *device, &mut now, command(Op::Read, 1 << 20, 256 << 10));
    assert_eq!(latency, 1_000_000);
    // With whole blocks filled, the rest is read after the host has its answer.
    let mut device = build(&rig_of(&format!("{keys}\nfill = \"block\""), cache, POOL), 1, true);
    let (latency, _) = alone(&mut *device, &mut now, command(Op::Read, 8192, 4096));
    let c = counters(&*device);
    assert_eq!((latency, c["fill_bytes"], c["pool_bytes_read"]), (1_000_000, 65536, 65536));
}

#[test]
fn write_back_is_as_fast_as_the_cache_up_to_the_mark_and_then_as_destaging() {
    let keys = "mode = \"write-back\"\ndirty_low = 0.25\ndirty_high = 0.5\ndestage_depth = 1\n\
                destage_merge = \"4KiB\"";
    let mut device = small(keys);
    let mut key = 0;
    let (mut latencies, mut waited) = (Vec::new(), Vec::new());
    closed_loop(
        &mut *device,
        1,
        200,
        0,
        || {
            key += 1;
            block(Op::Write, key * 3)
        },
        |latency, completion| {
            latencies.push(latency);
            waited.push(completion.parts[Part::Cache]);
        },
    );
    assert!(latencies[..50].iter().all(|&l| l == 10_000), "{latencies:?}");
    // From then on a write for each block that is read from the cache and written to the pool.
    assert!(latencies[60..].iter().all(|&l| l == 1_010_000), "{latencies:?}");
    assert!(waited[60..].iter().all(|&w| w == 1_000_000), "{waited:?}");
    assert_eq!(counters(&*device)["dirty_bytes_most"], 50 * BLOCK);
}

#[test]
fn destaging_keeps_to_its_rate_and_joins_neighbours() {
    let keys = "mode = \"write-back\"\ndirty_low = 0.1\ndirty_high = 0.99\ndestage_rate = \"1MB/s\"\n\
                destage_merge = \"64KiB\"";
    let mut device = small(keys);
    let mut done = Vec::new();
    for key in 0..90 {
        device.submit(0, Command { tag: key, ..block(Op::Write, key) });
    }
    while device.next_event() != NEVER {
        let next = device.next_event();
        device.advance(next, &mut done);
        let (c, bucket) = (counters(&*device), 65_536);
        let allowed = next / 1000 + bucket;
        assert!(c["destaged_bytes"] <= allowed, "{} B at {next} ns", c["destaged_bytes"]);
    }
    let c = counters(&*device);
    // Down to the mark of ten blocks, in runs of up to 16; the first one found fewer.
    assert!(c["dirty_bytes"] <= 10 * BLOCK && (5..=7).contains(&c["destages"]), "{c:?}");
    let pool = device.children().into_iter().find(|(place, _)| place == "below").unwrap();
    assert_eq!(counters(pool.1)["member_writes"], c["destages"]);
}

/// Blocks filled after so many reads of a hot set of 90, in three runs together.
fn filled(threshold: u32, reads: u64) -> f64 {
    let mut fills = 0;
    for seed in 0..3 {
        let mut device = small(&format!("read_threshold = {threshold}"));
        let mut stream = Stream::new(seed, "hot");
        let mut now = 0;
        for _ in 0..reads {
            alone(&mut *device, &mut now, block(Op::Read, stream.below(90) * 7));
        }
        fills += counters(&*device)["fills"];
    }
    fills as f64
}

#[test]
fn a_hot_set_warms_up_as_coupons_are_collected() {
    let hot = 90.0f64;
    for (threshold, reads) in [(1, 45u64), (1, 90), (1, 180), (2, 90), (2, 180), (2, 360)] {
        let (p, n) = (1.0 / hot, reads as f64);
        let none = (1.0 - p).powf(n);
        let one = n * p * (1.0 - p).powf(n - 1.0);
        let share = 1.0 - none - if threshold == 2 { one } else { 0.0 };
        let (expected, found) = (3.0 * hot * share, filled(threshold, reads));
        let sigma = (3.0 * hot * share * (1.0 - share)).sqrt();
        assert!((found - expected).abs() < 4.0 * sigma, "{threshold} {reads}: {found}, {expected}");
        // T = C P / (I S D) is a lower bound: after P reads per block it is not yet warm.
        if reads == 90 * u64::from(threshold) {
            assert!(found < 3.0 * hot * 0.75);
        }
    }
}

#[test]
fn a_long_run_of_consecutive_requests_goes_past() {
    let keys = "block = \"64KiB\"\nsub_block = \"4KiB\"\nsequential_cutoff = \"256KiB\"";
    let cache = "{ kind = \"null\", capacity = \"2MiB\", service_time = \"10us\" }";
    let mut device = build(&rig_of(keys, cache, POOL), 1, true);
    let mut now = 0;
    for nth in 0..16u64 {
        alone(&mut *device, &mut now, command(Op::Read, nth << 16, 64 << 10));
        // Others in between do not break the run.
        alone(&mut *device, &mut now, command(Op::Read, (2 << 20) + nth * 81920, 4096));
    }
    let c = counters(&*device);
    assert_eq!(c["bypassed_sequential"], 13);
    assert_eq!(c["fill_bytes"], (192 << 10) + 16 * 4096);
}

#[test]
fn a_congested_cache_device_is_left_alone() {
    let slow = "{ kind = \"null\", capacity = \"408KiB\", service_time = \"300us\" }";
    let fast = "{ kind = \"null\", capacity = \"4MiB\", service_time = \"100us\", servers = 64 }";
    let rate = |keys: &str| {
        let mut device = build(&rig_of(&format!("{SMALL}\n{keys}"), slow, fast), 1, false);
        let mut now = 0;
        for key in 0..50 {
            alone(&mut *device, &mut now, block(Op::Read, key));
        }
        let mut stream = Stream::new(1, "reads");
        let next = || block(Op::Read, stream.below(50));
        closed_loop(&mut *device, 16, 40_000, now, next, |_, _| {}).per_second()
    };
    let through_one = rate("");
    assert!((through_one - 1e6 / 300.0).abs() < 40.0, "{through_one}");
    // Four at the cache, twelve at the pool: 3333 + 12 x 10 000 a second.
    let by_queue = rate("congested_queue = 4");
    assert!((by_queue / 123_333.0 - 1.0).abs() < 0.03, "{by_queue}");
    assert!(rate("congested_latency = \"1ms\"") > 2.0 * through_one);
}

#[test]
fn a_daily_budget_is_never_exceeded() {
    for mode in ["write-through", "write-back", "write-around-fill"] {
        let keys = format!("mode = \"{mode}\"\nwrite_budget = \"10MB\"\ndirty_low = 0.2");
        let mut device = small(&keys);
        let mut stream = Stream::new(1, "writes");
        let mut now = 0;
        for nth in 0..1500u64 {
            alone(&mut *device, &mut now, block(Op::Write, stream.below(150)));
            // Four hours in all.
            now += if nth % 100 == 99 { 960_000_000_000 } else { 0 };
            let written = counters(&*device)["cache_bytes_written"] as f64;
            let allowed = 10e6 / 24.0 + 10e6 * now as f64 / 86_400e9;
            assert!(written <= allowed, "{mode}: {written} B after {now} ns, {allowed} allowed");
        }
        let c = counters(&*device);
        assert!(c["budget_refused"] > 100, "{mode}: {c:?}");
        assert!(c["cache_bytes_written"] > 1_200_000, "{mode}: {c:?}");
    }
}

#[test]
fn a_switch_to_write_through_destages_everything_first() {
    let keys = "mode = \"write-back\"\ndirty_low = 0.8\ndestage_rate = \"4kB/s\"\n\
                switch = { at = \"50ms\", to = \"write-through\" }";
    let mut device = small(keys);
    let (mut now, mut done) = (0, Vec::new());
    for key in 0..60 {
        device.submit(now, block(Op::Write, key * 5));
        now = device.advance(NEVER - 1, &mut done);
    }
    assert_eq!(counters(&*device)["dirty_bytes"], 60 * BLOCK);
    let (latency, _) = alone(&mut *device, &mut now, block(Op::Write, 5));
    assert_eq!(latency, 10_000);
    let c = counters(&*device);
    assert_eq!((c["dirty_bytes"], c["destaged_bytes"]), (0, 60 * BLOCK));
    // The pool writes one after the other, a millisecond each.
    assert!((109..112).contains(&(c["drained_at_ns"] / 1_000_000)), "{}", c["drained_at_ns"]);
    let (latency, _) = alone(&mut *device, &mut now, block(Op::Write, 5));
    assert_eq!((latency, counters(&*device)["dirty_bytes"]), (1_000_000, 0));
}

/// What a read of a block must answer that holds `stamp` and on.
fn digest(stamp: u64) -> u64 {
    (0..BLOCK / 512).fold(0u64, |sum, i| sum.wrapping_add(mix(stamp + i, i)))
}

#[test]
fn a_failure_loses_exactly_what_is_dirty() {
    let mut device = small("mode = \"write-back\"\ndirty_low = 0.8\ncache_fails_at = \"20min\"");
    let (mut now, mut older, mut dirty) = (0, BTreeMap::new(), BTreeSet::new());
    let mut stamp = 1;
    for key in 0..1024 {
        device.apply(&Command { stamp, ..block(Op::Write, key) });
        older.insert(key, stamp);
        stamp += 8;
    }
    let mut stream = Stream::new(1, "writes");
    for nth in 0..300 {
        let key = stream.below(1024);
        let write = nth % 3 == 0 && dirty.len() < 75;
        let op = if write { Op::Write } else { Op::Read };
        alone(&mut *device, &mut now, Command { stamp, ..block(op, key) });
        stamp += 8;
        if write {
            dirty.insert(key);
        }
    }
    assert_eq!(counters(&*device)["dirty_bytes"], dirty.len() as u64 * BLOCK);
    let mut done = Vec::new();
    now = device.advance(1_300_000_000_000, &mut done);
    let c = counters(&*device);
    assert_eq!((c["lost_bytes"], c["cache_failed"]), (dirty.len() as u64 * BLOCK, 1));
    for (&key, &stamp) in &older {
        let (latency, completion) = alone(&mut *device, &mut now, block(Op::Read, key));
        assert_eq!((latency, completion.digest), (1_000_000, digest(stamp)), "block {key}");
    }
    let new = Command { stamp: 1 << 40, ..block(Op::Write, 3) };
    assert_eq!(alone(&mut *device, &mut now, new).0, 1_000_000);
    let (_, completion) = alone(&mut *device, &mut now, block(Op::Read, 3));
    assert_eq!(completion.digest, digest(1 << 40));
    device.verify();
}

#[test]
fn a_failure_in_the_midst_of_work_answers_everything_and_keeps_what_came_after() {
    for (nth, keys) in [
        "mode = \"write-back\"\nidle_after = \"1ms\"",
        "mode = \"write-back\"\ndirty_low = 0.1\nmetadata = \"written\"",
        "mode = \"write-back\"\ndirty_low = 0.2\ndirty_high = 0.3\nfill = \"block\"",
        "mode = \"write-only\"\ndestage_order = \"age\"",
    ]
    .iter()
    .enumerate()
    {
        for at in [1, 3, 8, 13, 30, 77] {
            let keys = format!("block = \"16KiB\"\n{keys}\ncache_fails_at = \"{at}ms\"");
            let rig = rig_of(&keys, HUNDRED, POOL);
            let mut device = build(&rig, 1, true);
            let io = |step: &Step| matches!(step, Step::Io(op, ..) if *op != Op::Purge);
            let mut script = random_script(nth as u64 + at, device.capacity(), 900);
            script.retain(io);
            let mut audit = Audit::new(&mut *device, None);
            audit.run(&script, 16).unwrap_or_else(|e| panic!("{e:?}\n{keys}"));
            // From then on it is as if there were no cache: all that is written now is read again.
            let oracle = Shape::of(&rig).oracle(4 << 20);
            audit.oracle = Some(oracle);
            let fill: Vec<Step> = (0..64).map(|n| Step::Io(Op::Write, n << 16, 64 << 10)).collect();
            audit.run(&fill, 1).unwrap_or_else(|e| panic!("{e:?}\n{keys}"));
            device.verify();
            assert_eq!(counters(&*device)["cache_failed"], 1);
        }
    }
}

#[test]
fn once_everything_is_destaged_the_pool_has_every_version() {
    for keys in [
        "mode = \"write-back\"\nidle_after = \"2ms\"\nmetadata = \"written\"",
        "mode = \"write-only\"\nidle_after = \"1ms\"\ndestage_order = \"age\"\nsub_block = \"512B\"",
        "mode = \"write-back\"\nidle_after = \"5ms\"\nreplacement = \"sieve\"\nwrite_miss = \"both\"",
    ] {
        let keys = format!("block = \"16KiB\"\n{keys}\ncache_fails_at = \"1h\"");
        let rig = rig_of(&keys, HUNDRED, POOL);
        let mut device = build(&rig, 1, true);
        let script = random_script(5, device.capacity(), 2500);
        let oracle = Shape::of(&rig).oracle(device.capacity());
        let mut audit = Audit::new(&mut *device, Some(oracle));
        // At rest it has failed, and all that was there is read again.
        audit.run(&script, 16).unwrap_or_else(|e| panic!("{e:?}\n{keys}"));
        audit.run(&[], 16).unwrap_or_else(|e| panic!("{e:?}\n{keys}"));
        let c = counters(&*device);
        assert_eq!((c["cache_failed"], c["lost_bytes"], c["dirty_bytes"]), (1, 0, 0));
        assert!(c["destaged_bytes"] > 1 << 20, "{c:?}");
    }
}

/// A cache of 16 MiB on flash, with ten percent of reserve.
const FLASH: &str = "{ kind = \"ssd\", capacity = \"16MiB\", nand = { channels = 1, ways = 1, planes = 1, \
                     page = \"4KiB\", pages_per_block = 64, t_read = \"50us\", t_program = \"500us\", \
                     t_erase = \"3ms\", transfer_mts = 400 }, ftl = { mapping_unit = \"4KiB\", \
                     over_provisioning = 0.2 } }";

#[test]
fn a_cache_device_that_was_used_before_has_to_collect() {
    let pool = "{ kind = \"null\", capacity = \"64MiB\" }";
    let amplification = |used: f64| {
        let keys = format!("mode = \"write-back\"\n{SMALL}\ndirty_low = 0.8\nused_before = {used}");
        let mut device = build(&rig_of(&keys, FLASH, pool), 1, true);
        let before = counters(device.children()[1].1);
        let units = (16 << 20) / BLOCK;
        let written = if used > 0.0 { units + (units as f64 * used) as u64 } else { 0 };
        assert_eq!(before["host_bytes_written"], written * BLOCK);
        // 500 hot blocks, over and over: much less than the device holds.
        let mut stream = Stream::new(5, "hot");
        let next = || block(Op::Write, stream.below(500));
        closed_loop(&mut *device, 4, 3000, 0, next, |_, _| {});
        let after = counters(device.children()[1].1);
        let grown = |name: &str| (after[name] - before[name]) as f64;
        assert_eq!(grown("host_bytes_written"), 3000.0 * BLOCK as f64);
        device.verify();
        grown("programs_collection") / grown("programs_host")
    };
    assert_eq!(amplification(0.0), 0.0);
    assert!(amplification(2.0) > 0.2, "{}", amplification(2.0));
}

#[test]
fn presets_are_defaults_that_keys_override() {
    let large = "{ kind = \"null\", capacity = \"16MiB\" }";
    for preset in PRESETS.entries {
        let rig = rig_of(&format!("preset = \"{}\"", preset.name), large, POOL);
        let mut device = build(&rig, 1, true);
        let script = random_script(1, device.capacity(), 600);
        let oracle = Shape::of(&rig).oracle(device.capacity());
        Audit::new(&mut *device, Some(oracle)).run(&script, 16).unwrap();
        device.verify();
    }
    let frames =
        |keys: &str| counters(&*build(&rig_of(keys, large, POOL), 1, false))["blocks_capacity"];
    assert_eq!(frames("preset = \"qsan\""), 31);
    assert_eq!(frames("preset = \"qsan\"\nblock = \"256KiB\""), 63);
}

#[test]
fn caches_that_make_no_sense_are_refused() {
    let said = |keys: &str| {
        let rig = rig_of(keys, HUNDRED, POOL);
        rig.build(1, false).err().map(|e| e.to_string()).unwrap_or_default()
    };
    for (keys, expected) in [
        ("block = \"48KiB\"", "block: found 48KiB, expected a power of two from sub_block"),
        ("sub_block = \"256B\"", "sub_block: found 256B, expected a power of two from 512B on"),
        ("sub_block = \"512B\"", "sub_block: found 512B, expected at least 1KiB"),
        ("block = \"1MiB\"\nsub_block = \"64KiB\"", "the cache device has 408KiB, expected room"),
        ("replacement = \"lur\"", "did you mean \"lru\"?"),
        (
            "replacement = \"optimal\"",
            "replacement: found \"optimal\", expected a policy that a cache can have",
        ),
        ("dirty_low = 0.95", "dirty_low: found 0.95, expected less than dirty_high, which is 0.9"),
        ("preset = \"bcashe\"", "preset: found \"bcashe\", did you mean bcache?"),
        ("write_budget = \"1MB\"", "write_budget: found 1MB, expected at least 24 blocks"),
        ("used_before = -1.0", "used_before: found -1, expected times from 0 to 100"),
        ("mode = \"writeback\"", "mode: found \"writeback\", expected one of write-through"),
    ] {
        let said = said(keys);
        assert!(said.contains(expected), "{keys}: {said}");
    }
    let text = format!("[device]\nkind = \"cache\"\nbelow = {POOL}");
    let error = Rig::parse(&text, "c").unwrap().build(1, false).err().unwrap().to_string();
    assert!(error.contains("cache: is missing, expected a table with the fast device"), "{error}");
}

#[test]
fn keys_of_the_fast_device_are_set_by_its_name() {
    let mut rig = rig_of(SMALL, HUNDRED, POOL);
    rig.set("cache.capacity", "816KiB").unwrap();
    rig.set("mode", "write-back").unwrap();
    rig.set("service_time", "2ms").unwrap();
    let mut device = build(&rig, 1, false);
    assert_eq!(counters(&*device)["blocks_capacity"], 200);
    let mut now = 0;
    assert_eq!(alone(&mut *device, &mut now, block(Op::Read, 0)).0, 2_000_000);
}
