//! Kinds of map against what they must equal, and against closed forms.

use crate::common;

use common::rigs::Shape;
use common::{Sets, closed_loop, command, fill_sequentially, lab_reference, lab_ssd, ssd_of};
use ssdlab::device::ssd::Ssd;
use ssdlab::device::{Command, Device, Op};
use ssdlab::rng::Stream;
use ssdlab::stats::{Part, Parts};

const UNIT: u64 = 4096;

/// Tag, latency, parts and digest of every completion; the counters.
type Shown = (Vec<(u64, u64, Parts, u64)>, Vec<(&'static str, u64)>);

/// Everything that a run shows, except what only a map counts.
fn shown(sets: Sets, seed: u64) -> Shown {
    let mut device = ssd_of(&lab_reference(sets), seed, true);
    let capacity = device.capacity();
    fill_sequentially(&mut device, 128 << 10);
    let mut rng = Stream::new(seed, "maps");
    let mut stamp = 1 << 32;
    let next = || {
        let sectors = 1 + rng.below(40);
        let offset = rng.below(capacity / 512 - sectors) * 512;
        let op = [Op::Write, Op::Write, Op::Read, Op::Trim][rng.below(4) as usize];
        stamp += sectors;
        Command { stamp, ..command(op, offset, sectors * 512) }
    };
    let mut trace = Vec::new();
    closed_loop(&mut device, 16, 20_000, 0, next, |latency, c| {
        trace.push((c.tag, latency, c.parts.clone(), c.digest));
    });
    device.verify();
    let counters = common::counters(&device).into_iter();
    (trace, counters.filter(|(name, _)| !name.starts_with("map_")).collect())
}

/// Drives on which a map without want of memory is compared with the page map.
const DRIVES: [Sets; 3] = [
    &[("capacity", "64MiB"), ("ftl.gc.scope", "drive"), ("nand.channels", "2")],
    &[
        ("capacity", "64MiB"),
        ("nand.page", "16KiB"),
        ("nand.channels", "2"),
        ("nand.pages_per_block", "16"),
        ("ftl.gc.scope", "drive"),
        ("ftl.gc.pace", "paced"),
        ("ftl.gc.separate_frontier", "true"),
    ],
    &[
        ("capacity", "64MiB"),
        ("nand.planes", "2"),
        ("nand.channels", "4"),
        ("nand.pages_per_block", "16"),
        ("ftl.gc.scope", "drive"),
        ("write_buffer", "{ size = \"2MiB\", power_loss_protected = false }"),
    ],
];

#[test]
fn a_cache_that_holds_everything_equals_the_page_map_exactly() {
    for (seed, drive) in DRIVES.into_iter().enumerate() {
        let cached = [drive, &[("ftl.map.kind", "cached"), ("ftl.map.cache", "1MiB")]].concat();
        let (page, cached) = (shown(drive, seed as u64), shown(&cached, seed as u64));
        assert!(page.1.iter().any(|&(name, n)| name == "collections" && n > 50), "no collection");
        assert!(page == cached, "a cache without misses makes a difference to drive {seed}");
    }
}

#[test]
fn a_table_of_extents_that_never_fills_equals_the_page_map_exactly() {
    for (seed, drive) in DRIVES.into_iter().enumerate() {
        let extent = [drive, &[("ftl.map.kind", "extent"), ("ftl.map.entries", "40000")]].concat();
        let (page, extent) = (shown(drive, seed as u64), shown(&extent, seed as u64));
        assert!(page == extent, "a table without limit makes a difference to drive {seed}");
    }
}

/// The canary of the two tests above: a map short of memory does make a difference.
#[test]
fn a_map_short_of_memory_differs_from_the_page_map() {
    let page = shown(DRIVES[0], 0);
    for map in [
        [("ftl.map.kind", "cached"), ("ftl.map.cache", "40KiB")],
        [("ftl.map.kind", "extent"), ("ftl.map.entries", "2000")],
    ] {
        assert!(page != shown(&[DRIVES[0], &map].concat(), 0), "{map:?}");
    }
}

fn counter(ssd: &Ssd, name: &str) -> u64 {
    common::counters(ssd)[name]
}

fn within(what: &str, measured: f64, expected: f64, tolerance: f64) {
    let error = measured / expected - 1.0;
    println!("{what}: {measured:.4}, closed form {expected:.4}: {:+.3} %", error * 100.0);
    assert!(error.abs() < tolerance, "{what}: {measured}, closed form {expected}");
}

/// 256 MiB in 64 translation units, so many of them cached.
fn cached(units: u64, more: Sets) -> Ssd {
    let cache = format!("{}KiB", units * 4);
    let map = [("ftl.map.kind", "cached"), ("ftl.map.cache", cache.as_str())];
    lab_ssd(&[&[("capacity", "256MiB")] as Sets, &map, more].concat(), 1)
}

#[test]
fn a_read_that_misses_takes_the_time_of_two() {
    for units in [1, 16, 48] {
        let mut ssd = cached(units, &[]);
        fill_sequentially(&mut ssd, UNIT);
        let mut rng = Stream::new(1, "reads");
        let mut next = || command(Op::Read, rng.below(65536) * UNIT, UNIT);
        // What the fill left changed in the cache is written back first.
        let warm = closed_loop(&mut ssd, 1, 2000, 0, &mut next, |_, _| {}).end + 1_000_000_000;
        ssd.advance(warm, &mut Vec::new());
        let before = counter(&ssd, "map_misses");
        let mut fetching = 0;
        let seen = |_, c: &ssdlab::device::Completion| fetching += c.parts[Part::MapFetch];
        let run = closed_loop(&mut ssd, 1, 100_000, warm, &mut next, seen);
        let misses = counter(&ssd, "map_misses") - before;
        let shape = Shape::of(&lab_reference(&[]));
        let one = shape.t_read.0 + shape.t_transfer;
        assert_eq!(run.latency_sum, (run.commands + misses) * one, "{units} units cached");
        assert_eq!(fetching, misses * one, "time of map fetches, {units} units cached");
        let share = misses as f64 / run.commands as f64;
        within(&format!("misses, {units} of 64"), share, 1.0 - units as f64 / 64.0, 0.01);
    }
}

#[test]
fn a_write_that_misses_costs_a_write_back() {
    for units in [4, 16, 48] {
        // So much spare that nothing is collected.
        let mut ssd = cached(units, &[("ftl.over_provisioning", "4")]);
        fill_sequentially(&mut ssd, UNIT);
        let mut rng = Stream::new(1, "writes");
        let mut write =
            |ssd: &mut Ssd| ssd.apply(&command(Op::Write, rng.below(65536) * UNIT, UNIT));
        (0..20_000).for_each(|_| write(&mut ssd));
        let table = |ssd: &Ssd| ssd.ftl().mapping().table().expect("a cached map").counters;
        let before = table(&ssd).programs_host;
        (0..150_000).for_each(|_| write(&mut ssd));
        let written = (table(&ssd).programs_host - before) as f64 / 150_000.0;
        assert_eq!(counter(&ssd, "collections"), 0);
        ssd.verify();
        within(&format!("write-backs, {units} of 64"), written, 1.0 - units as f64 / 64.0, 0.01);
    }
}

#[test]
fn collection_writes_the_translation_units_of_what_it_moves_once_for_each_victim() {
    // Victims of 64 units over 64 translation units, two of them cached: what moves is in
    // 62 (1 - (1 - 1/64)^moved) others, for each victim.
    let mut ssd = cached(2, &[("ftl.over_provisioning", "0.28")]);
    fill_sequentially(&mut ssd, UNIT);
    let mut rng = Stream::new(1, "writes");
    let mut write = |ssd: &mut Ssd| ssd.apply(&command(Op::Write, rng.below(65536) * UNIT, UNIT));
    (0..400_000).for_each(|_| write(&mut ssd));
    let table = |ssd: &Ssd| ssd.ftl().mapping().table().expect("a cached map").counters;
    let before = (table(&ssd), ssd.ftl().counters);
    (0..200_000).for_each(|_| write(&mut ssd));
    let after = (table(&ssd), ssd.ftl().counters);
    let victims = (after.1.collections - before.1.collections) as f64;
    let moved = (after.1.programs_collection - before.1.programs_collection) as f64 / victims;
    let changed = (after.0.read_modify_writes - before.0.read_modify_writes) as f64 / victims;
    let expected = 62.0 * (1.0 - (1.0 - 1.0 / 64.0f64).powf(moved));
    within(&format!("{moved:.1} units moved"), changed, expected, 0.01);
}

/// 1 GiB over 8 dies, with so many entries for each of 1024 segments of 256 units.
fn extents(per_segment: u64, more: Sets) -> Ssd {
    let entries = (per_segment * 1024).to_string();
    let map = [
        ("capacity", "1GiB"),
        ("nand.ways", "1"),
        ("ftl.gc.scope", "drive"),
        ("ftl.map.kind", "extent"),
        ("ftl.map.entries", entries.as_str()),
    ];
    lab_ssd(&[&map as Sets, more].concat(), 1)
}

#[test]
fn what_is_written_in_order_is_one_entry_for_each_segment() {
    for block in [4 << 10, 64 << 10, 1 << 20] {
        let mut ssd = extents(4, &[]);
        for _ in 0..3 {
            fill_sequentially(&mut ssd, block);
        }
        assert_eq!(counter(&ssd, "map_merges"), 0);
        let boundaries = (1 << 18) / u64::from(ssd.ftl().layout.units_per_superblock());
        let extents = counter(&ssd, "map_extents");
        assert!((1024..=1024 + boundaries).contains(&extents), "{extents} entries");
    }
}

#[test]
fn random_writes_on_an_empty_drive_split_entries_as_on_a_full_one() {
    // A run begins at a unit if it or the one before it holds data: two units written one after the
    // other lie apart, but for one in 2^18.
    // Of 256 units of a segment all but the first may begin one, or all but the first of each chunk of 8.
    for (chunk, places) in [("0B", 255.0), ("32KiB", 256.0 - 32.0)] {
        let mut ssd = extents(257, &[("ftl.map.chunk", chunk)]);
        let mut rng = Stream::new(1, "writes");
        let mut written = 0;
        for until in [2_000, 20_000, 100_000, 300_000] {
            (written..until).for_each(|_| {
                ssd.apply(&command(Op::Write, rng.below(1 << 18) * UNIT, UNIT));
            });
            written = until;
            let empty = (-f64::from(until) / f64::from(1 << 18)).exp();
            let expected = 1024.0 * (1.0 + places * (1.0 - empty * empty));
            let found = counter(&ssd, "map_extents") as f64;
            within(&format!("{until} writes, chunks of {chunk}"), found, expected, 0.005);
        }
        ssd.verify();
    }
}

#[test]
fn writes_of_whole_chunks_take_no_room_in_the_table() {
    for (chunk, splits) in [("32KiB", false), ("0B", true)] {
        let mut ssd = extents(8, &[("ftl.map.chunk", chunk)]);
        let mut rng = Stream::new(1, "writes");
        for _ in 0..20_000 {
            ssd.apply(&command(Op::Write, rng.below(1 << 15) * 8 * UNIT, 8 * UNIT));
        }
        assert_eq!(counter(&ssd, "map_merges") > 0, splits, "chunks of {chunk}");
        ssd.verify();
    }
}

#[test]
fn merging_a_segment_of_an_empty_drive_writes_zeros_where_it_held_no_data() {
    let mut ssd = extents(8, &[]);
    let mut rng = Stream::new(1, "writes");
    let mut writes = 0;
    while counter(&ssd, "map_merges") < 100 {
        ssd.apply(&command(Op::Write, rng.below(1 << 18) * UNIT, UNIT));
        writes += 1;
    }
    // Each merge writes the 256 units of a segment.
    assert_eq!(counter(&ssd, "programs_merge"), 256 * counter(&ssd, "map_merges"));
    assert!(counter(&ssd, "units_mapped") > 100 * 256 - 100, "zeros are data");
    assert!(writes < 6_000, "far fewer than the drive holds: {writes}");
    ssd.verify();
}

/// Units merged for each unit written at random, where a table of `share` entries for each segment of
/// `s` units is full.
///
/// After n writes into a merged segment a unit still follows the one before it if neither has been
/// overwritten: (1 - 1/s)^2n. So there are f(n) = 1 + (s-1) (1 - (1 - 1/s)^2n) entries. Greedy
/// takes the fullest, so that each segment is merged after N writes, and at any time the n of the
/// segments are spread evenly over 0 .. N-1: the mean of f over them is `share`. A merged segment
/// that reaches into a second superblock, as s / `superblock` of them do, has an entry more until a
/// write falls there. Where chunks of `chunk` units have entries elsewhere, as many places less can have one.
fn merged_per_write(s: f64, superblock: f64, chunk: f64, share: f64) -> f64 {
    let places = s - s / chunk;
    let entries = |n: f64| {
        let follows = (1.0 - 1.0 / s).powf(2.0 * n);
        1.0 + places * (1.0 - follows) + places / superblock * follows
    };
    let (mut sum, mut n) = (0.0, 0.0);
    while (sum + entries(n)) / (n + 1.0) < share {
        sum += entries(n);
        n += 1.0;
    }
    // Between n and n + 1 writes, where the mean is just right.
    s / (n + (share * n - sum) / (entries(n) - share))
}

#[test]
fn merging_under_random_writes_follows_the_fluid_form() {
    for (share, chunk) in [(8, 256), (21, 256), (60, 256), (21, 8)] {
        let bytes = format!("{}B", chunk * UNIT);
        let mut ssd = extents(share, &[("ftl.over_provisioning", "1"), ("ftl.map.chunk", &bytes)]);
        fill_sequentially(&mut ssd, UNIT);
        let units = 1 << 18;
        let mut rng = Stream::new(1, "writes");
        let mut write =
            |ssd: &mut Ssd| ssd.apply(&command(Op::Write, rng.below(units) * UNIT, UNIT));
        (0..150_000).for_each(|_| write(&mut ssd));
        let before = ssd.ftl().counters.programs_merge;
        (0..100_000).for_each(|_| write(&mut ssd));
        let merged = (ssd.ftl().counters.programs_merge - before) as f64 / 100_000.0;
        ssd.verify();
        assert!(counter(&ssd, "map_extents") <= share * 1024, "the table is never overdrawn");
        let superblock = f64::from(ssd.ftl().layout.units_per_superblock());
        let expected = merged_per_write(256.0, superblock, chunk as f64, share as f64);
        within(&format!("{share} entries, chunks of {chunk}"), merged, expected, 0.01);
    }
}

#[test]
fn merging_is_a_part_of_its_own_of_the_time() {
    let mut time = [0; 2];
    for (sum, entries) in time.iter_mut().zip([8, 1000]) {
        let mut ssd = extents(entries, &[]);
        fill_sequentially(&mut ssd, UNIT);
        let mut rng = Stream::new(1, "writes");
        let next = || command(Op::Write, rng.below(1 << 18) * UNIT, UNIT);
        closed_loop(&mut ssd, 4, 20_000, 0, next, |_, c| *sum += c.parts[Part::DieMap]);
    }
    assert!(time[0] > 0, "no time waited for merging");
    assert_eq!(time[1], 0, "time waited for merging that did not happen");
}
