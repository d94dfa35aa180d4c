//! Tiers: what lies where, what moving costs and when it pays, and what is lost when one of them fails.

use crate::common;

use common::audit::{Audit, Step, random_script};
use common::rigs::{SAMPLES, build, hold_to_promises, stack};
use common::{all_counters, closed_loop, command, counters};
use ssdlab::device::{Command, Completion, Device, Op, mix};
use ssdlab::rig::Rig;
use ssdlab::rng::Stream;
use ssdlab::stats::Part;
use ssdlab::units::NEVER;
use std::collections::BTreeMap;

const KIB: u64 = 1024;
const MS: u64 = 1_000_000;
const FAST: &str =
    "{ kind = \"null\", capacity = \"404KiB\", service_time = \"10us\", servers = 4 }";
const BELOW: &str =
    "{ kind = \"null\", capacity = \"3600KiB\", service_time = \"1ms\", servers = 1 }";
/// A hundred extents of 4 KiB on the fast tier, one more to move into, 900 below.
const SMALL: &str = "extent = \"4KiB\"\nperiod = \"100ms\"\nmargin = 0.0\n\
                     promote_after = 0\ntrim_unit = \"0B\"";

fn rig_of(keys: &str, fast: &str, below: &str) -> Rig {
    let text = format!("[device]\nkind = \"tier\"\n{keys}\nfast = {fast}\nbelow = {below}");
    Rig::parse(&text, "tier").unwrap_or_else(|e| panic!("{e}\n{text}"))
}

fn small(keys: &str) -> Box<dyn Device> {
    build(&rig_of(&format!("{SMALL}\n{keys}"), FAST, BELOW), 1, true)
}

fn block(op: Op, extent: u64) -> Command {
    command(op, extent * 4096, 4096)
}

/// Lets everything happen that happens up to an instant.
fn wait(device: &mut dyn Device, now: &mut u64, until: u64) {
    while device.next_event() <= until {
        *now = device.next_event();
        device.advance(*now, &mut Vec::new());
    }
    *now = until;
}

/// Does a command alone; its latency.
fn alone(device: &mut dyn Device, now: &mut u64, command: Command) -> (u64, Completion) {
    device.submit(*now, command);
    let mut done = Vec::new();
    let end = device.advance(NEVER - 1, &mut done);
    let latency = end - *now;
    *now = end;
    assert_eq!((done.len(), done[0].parts.total()), (1, latency));
    (latency, done[0].clone())
}

/// Keys of any tiers that agree about TRIM.
fn any_tier(seed: u64) -> Rig {
    let mut stream = Stream::new(seed, "keys");
    let mut one = |of: &[&str]| of[stream.below(of.len() as u64) as usize].to_string();
    let mut keys = Vec::new();
    let mut key = |name: &str, of: &[&str]| {
        let value = one(of);
        let bare = value.parse::<f64>().is_ok();
        let value = if bare { value } else { format!("\"{value}\"") };
        keys.push(format!("{name} = {value}"));
    };
    key("extent", &["8KiB", "32KiB", "128KiB"]);
    key("move_size", &["4KiB", "8KiB"]);
    key("period", &["1ms", "3ms", "20ms"]);
    key("half_life", &["1ms", "10ms", "1h"]);
    key("heat_of", &["both", "reads", "writes"]);
    key("promote_after", &["0", "1", "3"]);
    key("margin", &["0.0", "0.5"]);
    key("moves", &["0", "1", "2", "9"]);
    key("reserve", &["1", "2", "5"]);
    key("placement", &["fast-first", "below-first", "spread"]);
    key("metadata", &["ram", "written"]);
    key("trim_unit", &["512B", "4KiB"]);
    let rates = ["", "move_rate = \"2MB/s\"", "move_rate = \"100MB/s\""];
    keys.push(one(&rates));
    let keys = keys.join("\n");
    let below = one(&[
        BELOW,
        "{ kind = \"null\", capacity = \"4093KiB\", service_time = \"90us\", servers = 5 }",
        "{ kind = \"partition\", offset = \"1536B\", size = \"3MiB\", \
         below = { kind = \"null\", capacity = \"4MiB\" } }",
        "{ kind = \"array\", level = \"raid10\", count = 4, chunk = \"16KiB\", \
         member = { kind = \"null\", capacity = \"2MiB\", service_time = \"50us\" } }",
    ]);
    let fast = one(&[
        "{ kind = \"null\", capacity = \"1100KiB\", service_time = \"10us\", servers = 4 }",
        "{ kind = \"null\", capacity = \"3MiB\", service_time = \"30us\" }",
    ]);
    rig_of(&keys, &fast, &below)
}

#[test]
fn any_tiers_keep_their_promises() {
    let mut sums: BTreeMap<&str, u64> = BTreeMap::new();
    for seed in 0..150 {
        let rig = any_tier(seed);
        let script = random_script(seed, build(&rig, seed, false).capacity(), 700);
        if let Err(violation) = hold_to_promises(&rig, &script, 1 + seed as usize % 40, seed) {
            panic!("{seed}: {violation:?}\n{}", rig.to_toml());
        }
        let mut device = build(&rig, seed, false);
        Audit::new(&mut *device, None).run(&script, 9).unwrap();
        counters(&*device).into_iter().for_each(|(name, n)| *sums.entry(name).or_default() += n);
    }
    for name in ["moves_cancelled", "writes_held", "writes_doubled", "map_writes"] {
        assert!(sums[name] > 50, "{name}: {sums:?}");
    }
    assert!(sums["moves_up"] > 5000 && sums["moves_down"] > 1000, "{sums:?}");
}

#[test]
fn the_samples_of_the_laws_move_and_meet_writes_on_the_way() {
    let leaf = SAMPLES.iter().find(|s| s.kind == "null").unwrap();
    for sample in SAMPLES.iter().filter(|s| s.kind == "tier") {
        let layers = [sample.layer(), leaf.layer()];
        let rig = stack(if sample.below { &layers } else { &layers[..1] });
        let mut device = build(&rig, 1, true);
        let script = random_script(1, device.capacity(), 3000);
        Audit::new(&mut *device, None).run(&script, 16).unwrap();
        let c = counters(&*device);
        // Of those that are held to a rate, few are met.
        let met = if c["map_writes"] > 0 { 2 } else { 4 };
        for name in &["moves_up", "moves_down", "writes_held", "writes_doubled"][..met] {
            assert!(c[name] > 0, "no {name}: {c:?}\n{}", rig.to_toml());
        }
    }
}

/// Tag, time and digest of each.
type Completions = Vec<(u64, u64, u64)>;

/// Times and digests of a script, and what the devices counted.
fn shown(rig: &Rig, places: [&str; 2]) -> (Completions, Vec<BTreeMap<String, u64>>) {
    let mut device = build(rig, 1, true);
    let script = random_script(3, device.capacity(), 4000);
    let mut audit = Audit::new(&mut *device, None);
    audit.run(&script, 16).unwrap();
    let trace = audit.trace.iter().map(|c| (c.tag, c.time, c.digest)).collect();
    let children = device.children();
    let of = |place: &str| {
        let mut all = BTreeMap::new();
        let child = children.iter().find(|(name, _)| name == place).unwrap().1;
        all_counters(child, "", &mut all);
        all
    };
    (trace, places.map(of).to_vec())
}

#[test]
fn tiers_that_move_nothing_are_a_linear_array_bit_for_bit() {
    let fast = "{ kind = \"null\", capacity = \"2MiB\", service_time = \"10us\", servers = 3 }";
    let below = "{ kind = \"ssd\", capacity = \"6MiB\", ftl = { over_provisioning = 0.6 }, \
                 nand = { channels = 2, ways = 2, page = \"4KiB\", pages_per_block = 16, \
                 t_read = \"60us\", t_program = \"600us\", t_erase = \"3ms\", transfer_mts = 400 } }";
    let tier = rig_of("extent = \"64KiB\"\nmoves = 0\ntrim_unit = \"512B\"", fast, below);
    let text = format!(
        "[device]\nkind = \"array\"\nlevel = \"linear\"\nmembers = [{fast}, {below}]\ntrim = true"
    );
    let array = Rig::parse(&text, "array").unwrap();
    let (left, members) = shown(&tier, ["fast", "below"]);
    let (right, others) = shown(&array, ["member0", "member1"]);
    assert!(left == right && left.len() > 3000);
    assert_eq!(members, others);
}

/// Shares of ranks 1 to n under Zipf's law.
fn zipf(n: u64, exponent: f64) -> Vec<f64> {
    let weights: Vec<f64> = (1..=n).map(|rank| (rank as f64).powf(-exponent)).collect();
    let sum: f64 = weights.iter().sum();
    weights.iter().map(|weight| weight / sum).collect()
}

/// Draws extents by their shares, in an order of addresses that says nothing about heat.
fn draw(shares: &[f64], stream: &mut Stream) -> u64 {
    let mut rest = stream.unit();
    let rank = shares.iter().position(|share| {
        rest -= share;
        rest < 0.0
    });
    rank.unwrap_or(0) as u64 * 387 % shares.len() as u64
}

#[test]
fn static_heat_ends_with_the_hottest_extents_above() {
    for (exponent, rate) in [(0.8, "200kB/s"), (1.0, "200kB/s"), (1.2, "20kB/s")] {
        let keys = format!("half_life = \"1h\"\nmove_rate = \"{rate}\"\nheat_of = \"reads\"");
        let mut device = small(&keys);
        let shares = zipf(1000, exponent);
        let best: f64 = shares[..100].iter().sum();
        let mut stream = Stream::new(1, "reads");
        let at = |device: &dyn Device| {
            let c = counters(device);
            (c["fast_reads"], c["below_reads"], c["moves_up"], c["last_move_at_ns"])
        };
        let mut now = 0;
        let mut read = |device: &mut dyn Device, reads| {
            let next = || block(Op::Read, draw(&shares, &mut stream));
            let measured = closed_loop(device, 1, reads, now, next, |_, _| {});
            now = measured.end;
            measured
        };
        read(&mut *device, 10_000);
        let early = at(&*device);
        read(&mut *device, 190_000);
        let before = at(&*device);
        read(&mut *device, 40_000);
        let after = at(&*device);
        let share = (after.0 - before.0) as f64 / 40_000.0;
        assert!((share - best).abs() < 0.01, "{exponent}: {share}, best {best}");
        assert!(early.0 < 9_000, "{early:?}");
        // What has moved took its time.
        let c = counters(&*device);
        let bytes = c["moved_up_bytes"] + c["moved_down_bytes"];
        let rate = if rate == "20kB/s" { 20_000 } else { 200_000 };
        assert!(c["moves_up"] > 60, "{c:?}");
        assert!(c["last_move_at_ns"] >= (bytes - 4096) * 1_000_000_000 / rate, "{c:?}");
        // With nothing under way every read takes the time of where it lies.
        let later = now + 1000 * MS;
        wait(&mut *device, &mut now, later);
        let counted = at(&*device);
        let measured = {
            let next = || block(Op::Read, draw(&shares, &mut stream));
            closed_loop(&mut *device, 1, 100, now, next, |_, _| {})
        };
        let found = at(&*device);
        let (fast, below) = (found.0 - counted.0, found.1 - counted.1);
        assert_eq!(found.3, counted.3, "nothing was moved meanwhile");
        assert_eq!(measured.latency_sum, fast * 10_000 + below * MS);
    }
}

#[test]
fn the_mean_latency_is_that_of_both_tiers_by_their_shares() {
    let mut device = small("moves = 0\nreserve = 1\nplacement = \"spread\"");
    let shares = zipf(1000, 0.9);
    let mut stream = Stream::new(1, "reads");
    let next = || block(Op::Read, draw(&shares, &mut stream));
    let measured = closed_loop(&mut *device, 1, 5000, 0, next, |latency, completion| {
        assert_eq!(completion.parts[Part::Service], latency);
    });
    let c = counters(&*device);
    assert_eq!(c["fast_reads"] + c["below_reads"], 5000);
    assert!(c["fast_reads"] > 200 && c["below_reads"] > 2000, "{c:?}");
    assert_eq!(measured.latency_sum, c["fast_reads"] * 10_000 + c["below_reads"] * MS);
}

#[test]
fn moves_cost_the_host_time_and_none_where_nothing_moves() {
    let latency = |keys: &str| {
        let mut device = small(keys);
        let mut stream = Stream::new(1, "reads");
        // What is hot below, and as much that is not.
        let mut nth = 0;
        let next = || {
            nth += 1;
            let extent = if nth % 2 == 0 { 500 + nth / 2 % 90 } else { 600 + stream.below(400) };
            block(Op::Read, extent)
        };
        let mut waited = 0;
        let measured = closed_loop(&mut *device, 1, 600, 0, next, |_, c| {
            waited += c.parts[Part::Service].saturating_sub(MS);
        });
        (measured, waited, counters(&*device))
    };
    let (quiet, waited, c) = latency("moves = 0\nreserve = 1");
    assert_eq!((quiet.latency_sum, waited, c["moves_up"]), (600 * MS, 0, 0));
    let (busy, waited, c) = latency("heat_of = \"both\"");
    // The one server below serves the moves, too: a read or a write of a millisecond for each.
    let moved = (c["moved_up_bytes"] + c["moved_down_bytes"]) / 4096;
    assert!(c["moves_up"] > 80, "{c:?}");
    assert!(waited > 40 * MS && waited <= moved * MS, "{waited} {moved}");
    let saved = c["fast_reads"] * (MS - 10_000);
    assert_eq!(busy.latency_sum, 600 * MS - saved + waited);
    // Held to a rate, they cost the less.
    let (_, less, c) = latency("move_rate = \"200kB/s\"");
    assert!(c["moves_up"] > 8 && less < waited / 2, "{less} {waited}");
}

/// Bytes that were copied by an instant.
fn copied(device: &dyn Device) -> u64 {
    let c = counters(device);
    c["moved_up_bytes"] + c["moved_down_bytes"]
}

#[test]
fn moves_keep_to_their_rate_all_together() {
    for moves in [1, 4, 16] {
        let keys = format!("moves = {moves}\nmove_rate = \"400kB/s\"");
        let mut device = small(&keys);
        let mut now = 0;
        for extent in 0..60 {
            alone(&mut *device, &mut now, block(Op::Read, 900 - extent));
        }
        while device.next_event() != NEVER {
            now = device.next_event();
            device.advance(now, &mut Vec::new());
            assert!(copied(&*device) <= now * 4 / 10_000 + 4096, "{now}");
        }
        let c = counters(&*device);
        assert_eq!(c["moves_up"], 60, "{c:?}");
        // One after the other at the rate: there is nothing slower.
        let took = c["last_move_at_ns"] - 100 * MS;
        let least = (copied(&*device) - 4096) * 10_000 / 4;
        assert!((least..least + 4 * MS).contains(&took), "{moves}: {took} {least}");
    }
}

/// Tiers of extents of 64 KiB in four pieces, one of which, the tenth, is about to be moved up.
fn about_to_move(keys: &str) -> (Box<dyn Device>, u64) {
    let keys = format!(
        "extent = \"64KiB\"\nmove_size = \"16KiB\"\nperiod = \"100ms\"\npromote_after = 1\n\
         trim_unit = \"0B\"\n{keys}"
    );
    let fast = "{ kind = \"null\", capacity = \"192KiB\", service_time = \"100us\", servers = 9 }";
    let below = "{ kind = \"null\", capacity = \"1MiB\", service_time = \"1ms\", servers = 9 }";
    let mut device = build(&rig_of(&keys, fast, below), 1, true);
    let mut now = 0;
    alone(&mut *device, &mut now, command(Op::Read, 640 * KIB, 4096));
    wait(&mut *device, &mut now, 100 * MS - 1);
    (device, 100 * MS)
}

#[test]
fn writes_of_an_extent_on_its_way_wait_go_on_or_go_to_both_places() {
    // A piece is read in 1 ms and written in 0.1 ms: the first one from 100.0 to 101.1, the second to 102.2.
    for (after, at, latency, waited, doubled) in [
        // In the piece that is being copied: until it is, then to both.
        (200_000, 0, 900_000 + MS, 900_000, 1),
        (1_050_000, 8, 50_000 + MS, 50_000, 1),
        // In what has been copied: to both, the slower of which is the old place.
        (1_500_000, 0, MS, 0, 1),
        // In what has not: to the old place.
        (1_500_000, 32, MS, 0, 0),
        // Over what has been and what is being copied.
        (1_500_000, 12, 700_000 + MS, 700_000, 1),
        // After the end: to the new place.
        (4_500_000, 12, 100_000, 0, 0),
    ] {
        let (mut device, begin) = about_to_move("");
        let mut now = begin - 1;
        wait(&mut *device, &mut now, begin + after);
        let write = Command { stamp: 77, ..command(Op::Write, (640 + at) * KIB, 8 * KIB) };
        let (found, completion) = alone(&mut *device, &mut now, write);
        let c = counters(&*device);
        let expected = (latency, waited, doubled, u64::from(waited > 0));
        let wait_part = completion.parts[Part::MoveWait];
        let seen = (found, wait_part, c["writes_doubled"], c["writes_held"]);
        assert_eq!(seen, expected, "after {after} ns at {at} KiB");
        wait(&mut *device, &mut now, begin + 50 * MS);
        let (latency, completion) =
            alone(&mut *device, &mut now, Command { op: Op::Read, ..write });
        let digest = (0..16).fold(0u64, |sum, i| sum.wrapping_add(mix(77 + i, i)));
        assert_eq!((latency, completion.digest), (100_000, digest), "after {after} ns at {at} KiB");
        device.verify();
    }
}

#[test]
fn a_piece_waits_for_writes_that_began_earlier() {
    for (at, begins) in [(0, 500_000), (48, 0)] {
        let (mut device, begin) = about_to_move("");
        let now = begin - 500_000;
        // Half a millisecond of it is left when the move begins.
        device.submit(now, command(Op::Write, (640 + at) * KIB, 4096));
        // Four pieces of 1.1 ms; the last one is long after the write.
        assert_eq!(moved_up_at(&mut *device, now), begin + begins + 4_400_000);
    }
}

/// When the first extent has been moved up.
fn moved_up_at(device: &mut dyn Device, mut now: u64) -> u64 {
    while counters(device)["moves_up"] == 0 {
        now = device.next_event();
        device.advance(now, &mut Vec::new());
    }
    now
}

#[test]
fn an_entry_that_is_written_ends_the_move_and_one_in_ram_takes_no_time() {
    for (metadata, more) in [("ram", 0), ("written", 100_000)] {
        let (mut device, begin) = about_to_move(&format!("metadata = \"{metadata}\""));
        assert_eq!(moved_up_at(&mut *device, begin), begin + 4_400_000 + more);
        assert_eq!(counters(&*device)["map_writes"], u64::from(more > 0));
    }
}

#[test]
fn equal_heat_and_heat_within_the_margin_move_nothing() {
    let moved = |margin: f64, more: u64| {
        let keys = format!(
            "extent = \"4KiB\"\nperiod = \"1s\"\nhalf_life = \"1h\"\npromote_after = 0\n\
             margin = {margin}"
        );
        let mut device = build(&rig_of(&keys, FAST, BELOW), 1, false);
        // All above are read ten times, some below as often and `more` times.
        let above = (0..1000).map(|nth| nth % 100);
        let below = (0..5 * (10 + more)).map(|nth| 300 + nth % 5);
        for (tag, extent) in (0..).zip(above.chain(below)) {
            device.submit(0, Command { tag, ..block(Op::Read, extent) });
        }
        wait(&mut *device, &mut 0, 3000 * MS);
        counters(&*device)["moves_up"]
    };
    assert_eq!(moved(0.5, 0), 0);
    assert_eq!(moved(0.5, 5), 0);
    assert_eq!(moved(0.5, 6), 5);
    assert_eq!(moved(0.0, 1), 5);
}

#[test]
fn a_hot_spot_that_moves_is_followed_a_period_later_and_by_a_cache_at_once() {
    let period = 4_000 * MS;
    let keys = "extent = \"4KiB\"\nperiod = \"4s\"\nhalf_life = \"2s\"\nmargin = 0.0";
    let below = "{ kind = \"null\", capacity = \"3600KiB\", service_time = \"1ms\", servers = 8 }";
    let tier = rig_of(keys, FAST, below);
    let text = format!(
        "[device]\nkind = \"cache\"\nblock = \"4KiB\"\nsub_block = \"4KiB\"\ncache = {FAST}\n\
         below = {below}"
    );
    let cache = Rig::parse(&text, "cache").unwrap();
    // Every eight seconds another fifty extents are hot, a second into a period. When half of the reads are fast?
    let follows = |rig: &Rig| {
        let mut device = build(rig, 1, false);
        let mut stream = Stream::new(1, "reads");
        let (mut now, mut lags) = (0, Vec::new());
        for spot in 0..6u64 {
            let began = 2 * spot * period + 1_000 * MS;
            let from = began.max(now);
            wait(&mut *device, &mut now, from);
            let (mut lag, mut fast) = (None, 0u32);
            while now < began + 2 * period - 20 * MS {
                let extent = 100 + spot * 120 + stream.below(50);
                let (latency, _) = alone(&mut *device, &mut now, block(Op::Read, extent));
                // A moving mean of 32 reads.
                fast = fast * 31 / 32 + if latency < MS { 32 } else { 0 };
                if fast > 512 && lag.is_none() {
                    lag = Some(now - began);
                }
                now += 4 * MS;
            }
            lags.push(lag.expect("it was followed"));
        }
        lags
    };
    // The cache: each block once, five milliseconds apart. The tiers: at the end of the period.
    for lag in follows(&cache) {
        assert!(lag < 800 * MS, "{lag}");
    }
    for lag in follows(&tier) {
        assert!((3_000 * MS..3_900 * MS).contains(&lag), "{lag}");
    }
}

#[test]
fn a_tier_that_fails_takes_exactly_what_lies_on_it() {
    for (key, lost_tier) in [("fast_fails_at", 0), ("below_fails_at", 1)] {
        let mut device = small(&format!("{key} = \"20min\""));
        for extent in 0..1000 {
            device.apply(&Command { stamp: 1 + extent * 8, ..block(Op::Write, extent) });
        }
        let mut now = 0;
        for nth in 0..3000 {
            alone(&mut *device, &mut now, block(Op::Read, 300 + nth % 50));
        }
        wait(&mut *device, &mut now, 600_000 * MS);
        let c = counters(&*device);
        assert!(c["moves_up"] >= 50, "{c:?}");
        wait(&mut *device, &mut now, 1_300_000 * MS);
        let after = counters(&*device);
        let on = [c["extents_fast"], c["extents_below"]];
        assert_eq!((after["lost_bytes"], after["tiers_failed"]), (on[lost_tier] * 4096, 1));
        let mut errors = 0;
        for extent in 0..1000 {
            let above = lost_tier == 0 && (300..350).contains(&extent);
            let (latency, completion) = alone(&mut *device, &mut now, block(Op::Read, extent));
            let stamp = 1 + extent * 8;
            let digest = (0..8).fold(0u64, |sum, i| sum.wrapping_add(mix(stamp + i, i)));
            if latency == MS && completion.parts[Part::Controller] == MS {
                assert_eq!(completion.digest, 0);
                errors += 1;
            } else {
                assert!(!above && completion.digest == digest, "extent {extent}");
            }
        }
        assert_eq!(errors, on[lost_tier]);
        assert_eq!(counters(&*device)["errors_read"], errors);
        device.verify();
    }
}

#[test]
fn a_failure_in_the_midst_of_work_answers_everything_and_keeps_the_rest() {
    let mut cancelled = 0;
    for (nth, keys) in [
        "extent = \"64KiB\"\nmove_size = \"4KiB\"\nmoves = 3",
        "extent = \"16KiB\"\nmoves = 5\nmetadata = \"written\"\nplacement = \"below-first\"",
        "extent = \"8KiB\"\nmove_rate = \"9MB/s\"\nplacement = \"spread\"\nmoves = 2",
    ]
    .iter()
    .enumerate()
    {
        for (at, key) in [1, 4, 9, 22, 41, 80].iter().zip(["fast", "below"].iter().cycle()) {
            let keys =
                format!("{keys}\nperiod = \"1ms\"\npromote_after = 1\n{key}_fails_at = \"{at}ms\"");
            let fast =
                "{ kind = \"null\", capacity = \"1MiB\", service_time = \"40us\", servers = 2 }";
            let rig = rig_of(&keys, fast, BELOW);
            let mut device = build(&rig, 1, true);
            let timed = |step: &Step| matches!(step, Step::Io(op, ..) if *op != Op::Purge);
            let mut script = random_script(nth as u64 + at, device.capacity(), 900);
            script.retain(timed);
            // All is answered, and after it everything that was not lost is read as it was written.
            let mut audit = Audit::new(&mut *device, None);
            audit.run(&script, 16).unwrap_or_else(|e| panic!("{e:?}\n{keys}"));
            let c = counters(&*device);
            assert!(c["tiers_failed"] == 1 && c["lost_bytes"] > 0, "{c:?}");
            cancelled += c["moves_cancelled"];
            let mut now = 1_000 * MS;
            let mut served = 0;
            for at in (0..device.capacity()).step_by(8192) {
                let before = counters(&*device)["errors_write"];
                let write = Command { stamp: 1 + at, ..command(Op::Write, at, 8192) };
                alone(&mut *device, &mut now, write);
                let lost = counters(&*device)["errors_write"] > before;
                let (_, read) = alone(&mut *device, &mut now, Command { op: Op::Read, ..write });
                let digest = (0..16).fold(0u64, |sum, i| sum.wrapping_add(mix(1 + at + i, i)));
                assert!(lost && read.digest == 0 || read.digest == digest, "{at}\n{keys}");
                served += u64::from(!lost) * 8192;
            }
            assert_eq!(served, device.capacity() - c["lost_bytes"]);
            device.verify();
        }
    }
    assert!(cancelled > 5, "{cancelled}");
}

#[test]
fn settling_ends_the_moves_under_way_and_begins_none() {
    let mut device = small("moves = 2\nmove_rate = \"100kB/s\"");
    let mut now = 0;
    for extent in 500..560 {
        alone(&mut *device, &mut now, block(Op::Read, extent));
    }
    wait(&mut *device, &mut now, 600 * MS);
    let before = counters(&*device);
    assert!(before["moves_under_way"] > 0 && before["moves_planned"] > 20, "{before:?}");
    let settled = device.settle(now);
    assert_eq!(device.settle(settled), settled);
    let after = counters(&*device);
    assert_eq!((after["moves_under_way"], after["moves_planned"]), (0, 0));
    let ended = |c: &BTreeMap<&str, u64>| c["moves_up"] + c["moves_down"];
    assert_eq!(ended(&after), ended(&before) + before["moves_under_way"]);
    // What was planned is thought over when the next period is over.
    wait(&mut *device, &mut now, settled + 60_000 * MS);
    assert_eq!(counters(&*device)["moves_up"], 60);
}

#[test]
fn tiers_that_make_no_sense_are_refused() {
    let said = |keys: &str| {
        let rig = rig_of(keys, FAST, BELOW);
        rig.build(1, false).err().map(|e| e.to_string()).unwrap_or_default()
    };
    for (keys, expected) in [
        ("extent = \"48KiB\"", "extent: found 48KiB, expected a power of two from 4KiB to 8GiB"),
        ("extent = \"1MiB\"", "extent: the fast device has 404KiB, expected room for 2 extents of"),
        (
            "extent = \"4KiB\"\nmove_size = \"8KiB\"",
            "move_size: found 8KiB, expected a power of two",
        ),
        (
            "extent = \"4KiB\"\ntrim_unit = \"8KiB\"",
            "trim_unit: found 8KiB, expected 0B or a power",
        ),
        ("period = \"10us\"", "period: found 10us, expected at least 1ms"),
        ("half_life = \"0s\"", "half_life: found 0ns, expected more than nothing"),
        ("margin = -0.5", "margin: found -0.5, expected a share from 0 to 100"),
        ("moves = 2000", "moves: found 2000, expected at most 1024"),
        ("reserve = 0", "reserve: found 0, expected at least 1 extent to move into"),
        ("move_rate = \"10B/s\"", "move_rate: found 10B/s, expected at least 1kB/s"),
        ("placement = \"slow\"", "placement: found \"slow\", expected one of fast-first"),
        ("extend = \"1MiB\"", "extend"),
    ] {
        let said = said(keys);
        assert!(said.contains(expected), "{keys}: {said}");
    }
    let text = format!("[device]\nkind = \"tier\"\nbelow = {BELOW}");
    let error = Rig::parse(&text, "t").unwrap().build(1, false).err().unwrap().to_string();
    assert!(error.contains("fast: is missing, expected a table with the fast device"), "{error}");
}

#[test]
fn keys_of_the_fast_tier_are_set_by_its_name_and_capacity_is_the_sum() {
    let mut rig = rig_of(SMALL, FAST, BELOW);
    assert_eq!(build(&rig, 1, false).capacity(), 4000 * KIB);
    rig.set("fast.capacity", "804KiB").unwrap();
    rig.set("service_time", "2ms").unwrap();
    rig.set("placement", "below-first").unwrap();
    let mut device = build(&rig, 1, false);
    assert_eq!(device.capacity(), 4400 * KIB);
    let mut now = 0;
    assert_eq!(alone(&mut *device, &mut now, block(Op::Read, 0)).0, 2 * MS);
    assert_eq!(alone(&mut *device, &mut now, block(Op::Read, 1000)).0, 10_000);
}
