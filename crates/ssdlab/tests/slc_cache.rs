//! The SLC cache against closed forms: speed before and after it is full, its length, what is folded.

use crate::common;

use common::{closed_loop, command, counters, fill_sequentially, ssd_of};
use ssdlab::device::ssd::Ssd;
use ssdlab::device::{Command, Device, Op};
use ssdlab::rig::Rig;
use ssdlab::rng::Stream;
use ssdlab::stats::Part;
use ssdlab::units::NEVER;

const UNIT: u64 = 4096;
/// Units of a page, pages of a block, dies.
const PAGE: u64 = 4;
const PAGES: u64 = 96;
const DIES: u64 = 4;
const T_READ: u64 = 60_000;
const T_PROGRAM: u64 = 600_000;
const T_ERASE: u64 = 1_600_000;
const T_READ_SLC: u64 = 25_000;
const T_PROGRAM_SLC: u64 = 200_000;
/// 4096 B at 400 MT/s.
const T_TRANSFER: u64 = 10_240;

/// A drive of four dies with pages of four units; `cache` are the lines of its cache, `sets` more keys.
fn drive(cache: &str, sets: &[(&str, &str)]) -> Rig {
    let slc = format!("[device.ftl.slc_cache]\nt_read = \"25us\"\nt_program = \"200us\"\n{cache}");
    let text = format!(
        "[device]\nkind = \"ssd\"\ncapacity = \"192MiB\"\n\
         [device.nand]\nchannels = 2\nways = 2\npage = \"16KiB\"\npages_per_block = {PAGES}\n\
         t_read = \"60us\"\nt_program = \"600us\"\nt_erase = \"1.6ms\"\ntransfer_mts = 400\n\
         [device.ftl]\nover_provisioning = 0.28\ngc = {{ pace = \"blocking\" }}\n\
         [device.write_buffer]\nsize = \"4MiB\"\npower_loss_protected = true\n{}",
        if cache.is_empty() { "" } else { &slc }
    );
    let mut rig = Rig::parse(&text, "cached").unwrap_or_else(|e| panic!("{e}\n{text}"));
    for (key, value) in sets {
        rig.set(key, value).unwrap_or_else(|e| panic!("{key} = {value}: {e}"));
    }
    rig
}

/// Units that a cache of `bytes` has: whole superblocks of every region.
fn cache_units(bytes: u64, bits: u64, regions: u64) -> u64 {
    let superblock = PAGES / bits * PAGE * DIES / regions;
    let size = regions * superblock;
    (bytes / UNIT + size / 2) / size * size
}

fn near(what: &str, measured: f64, expected: f64, tolerance: f64) {
    let error = measured / expected - 1.0;
    println!("{what}: {measured:.4}, expected {expected:.4}: {:+.3} %", error * 100.0);
    assert!(error.abs() <= tolerance, "{what}: {measured}, expected {expected}");
}

/// Lets all idle work come to its end; answers the instant.
fn rest(ssd: &mut Ssd, mut now: u64) -> u64 {
    while ssd.next_event() != NEVER {
        now = ssd.advance(ssd.next_event(), &mut Vec::new());
    }
    now
}

/// Sequential writes of 64 KiB from unit `first` on: instant and bytes of every completion.
fn fill(ssd: &mut Ssd, first: u64, units: u64, start: u64) -> Vec<(u64, u64)> {
    const BLOCK: u64 = 64 << 10;
    let mut at = first * UNIT;
    let mut bytes = 0;
    let mut seen = Vec::new();
    let mut now = start;
    let mut done = Vec::new();
    let total = units * UNIT / BLOCK;
    let next = |at: &mut u64| {
        *at += BLOCK;
        command(Op::Write, *at - BLOCK, BLOCK)
    };
    let mut issued = 0;
    while issued < total.min(32) {
        ssd.submit(now, Command { tag: issued, ..next(&mut at) });
        issued += 1;
    }
    while bytes < total * BLOCK {
        now = ssd.advance(NEVER - 1, &mut done);
        for c in done.drain(..) {
            bytes += BLOCK;
            seen.push((now, bytes));
            if issued < total {
                ssd.submit(now, Command { tag: c.tag, ..next(&mut at) });
                issued += 1;
            }
        }
    }
    seen
}

/// Bytes per second between two volumes written.
fn rate(seen: &[(u64, u64)], from: u64, to: u64) -> f64 {
    let at = |bytes: u64| seen.iter().find(|s| s.1 >= bytes * UNIT).expect("written").0;
    (to - from) as f64 * UNIT as f64 * 1e9 / (at(to) - at(from)) as f64
}

/// What all dies together write when each spends so many ns on a page.
fn bound(ns: u64) -> f64 {
    (DIES * PAGE * UNIT) as f64 * 1e9 / ns as f64
}

const HOST_SLC: u64 = PAGE * T_TRANSFER + T_PROGRAM_SLC;
const HOST_NATIVE: u64 = PAGE * T_TRANSFER + T_PROGRAM;
/// A page read in SLC mode and programmed in native mode.
const FOLD: u64 = T_READ_SLC + 2 * PAGE * T_TRANSFER + T_PROGRAM;

#[test]
fn a_fill_is_as_fast_as_dies_in_slc_mode_and_then_as_folding_or_native_programs() {
    for scope in ["die", "channel", "drive"] {
        for pace in ["blocking", "paced"] {
            for (when_full, bits) in [("fold", 3), ("direct", 3), ("fold", 4), ("direct", 4)] {
                let rig = drive(
                    &format!("static_size = \"24MiB\"\nwhen_full = \"{when_full}\""),
                    &[
                        ("ftl.gc.scope", scope),
                        ("ftl.gc.pace", pace),
                        ("nand.bits_per_cell", &bits.to_string()),
                    ],
                );
                let mut ssd = ssd_of(&rig, 1, false);
                let size = cache_units(24 << 20, bits, u64::from(ssd.ftl().layout.regions));
                let seen = fill(&mut ssd, 0, 96 << 8, 0);
                // The buffer takes the first 4 MiB at once, and is full then.
                let first = rate(&seen, 2048, size - 1024);
                let then = rate(&seen, size + 4096, 23 << 10);
                let erase = T_ERASE * bits / PAGES;
                let expected = match when_full {
                    "fold" => bound(HOST_SLC + FOLD + erase),
                    _ => bound(HOST_NATIVE),
                };
                let what = format!("{scope}, {pace}, {bits} bits");
                near(&format!("{what}: in the cache"), first, bound(HOST_SLC), 0.03);
                near(&format!("{what}: {when_full} when it is full"), then, expected, 0.03);
                ssd.verify();
            }
        }
    }
}

/// Units written until the first goes past the cache or is folded.
fn fast_part(ssd: &mut Ssd, first: u64) -> u64 {
    let so_far = |ssd: &Ssd| {
        let cached = ssd.ftl().slc_counters().expect("a cache").units_written;
        (cached, ssd.ftl().counters.programs_fold)
    };
    let before = so_far(ssd);
    for lpn in first..ssd.capacity() / UNIT {
        ssd.apply(&command(Op::Write, lpn * UNIT, UNIT));
        let now = so_far(ssd);
        let cached = now.0 - before.0;
        if now.1 > before.1 || cached < lpn + 1 - first {
            return cached;
        }
    }
    panic!("the cache is never full");
}

#[test]
fn the_fast_part_is_as_long_as_the_cache() {
    for scope in ["die", "channel", "drive"] {
        for when_full in ["fold", "direct"] {
            for bits in [2, 3, 4] {
                for part in ["static", "dynamic"] {
                    for mib in [12, 30] {
                        let cache =
                            format!("{part}_size = \"{mib}MiB\"\nwhen_full = \"{when_full}\"");
                        let sets =
                            [("ftl.gc.scope", scope), ("nand.bits_per_cell", &bits.to_string())];
                        let mut ssd = ssd_of(&drive(&cache, &sets), 1, false);
                        let regions = u64::from(ssd.ftl().layout.regions);
                        let found = fast_part(&mut ssd, 0);
                        let superblocks = PAGES / bits * PAGE * DIES;
                        // Regions do not fill up at quite the same unit.
                        let expected = cache_units(mib << 20, bits, regions);
                        assert!(
                            found.abs_diff(expected) <= superblocks / regions,
                            "{cache}, {scope}: {found} units, expected {expected}"
                        );
                    }
                }
            }
        }
    }
}

#[test]
fn a_dynamic_cache_shrinks_with_the_space_that_holds_no_data() {
    for scope in ["die", "drive"] {
        for bits in [3u64, 4] {
            let rig = drive(
                "dynamic_size = \"1GiB\"\nfold_idle_after = \"1ms\"",
                &[("ftl.gc.scope", scope), ("nand.bits_per_cell", &bits.to_string())],
            );
            for tenths in [0, 2, 4, 6, 8, 9] {
                let mut ssd = ssd_of(&rig, 1, false);
                let units = ssd.capacity() / UNIT;
                let full = units * tenths / 10;
                for lpn in 0..full {
                    ssd.apply(&command(Op::Write, lpn * UNIT, UNIT));
                }
                rest(&mut ssd, 0);
                let found = fast_part(&mut ssd, full);
                // The flash behind what holds no data, with its spare, at one of so many bits.
                let layout = &ssd.ftl().layout;
                let physical = u64::from(layout.superblocks - 1) * u64::from(layout.regions);
                let superblock = PAGES / bits * PAGE * DIES / u64::from(layout.regions);
                let expected = (physical * superblock) as f64 * (1.0 - tenths as f64 / 10.0);
                println!("{scope}, {bits} bits, {tenths}0 % full: {found}, expected {expected:.0}");
                // Two superblocks of each region are kept for folding, and nothing but whole ones lent.
                let apart = expected - found as f64;
                let most = (4 * superblock * u64::from(layout.regions)) as f64;
                assert!((-1.0..=most).contains(&apart), "{found}, expected {expected}");
            }
            let mut early = rig.clone();
            early.set("ftl.slc_cache.dynamic_until", "0.8").unwrap();
            let whole = fast_part(&mut ssd_of(&rig, 1, false), 0);
            let found = fast_part(&mut ssd_of(&early, 1, false), 0);
            near("nothing lent at 80 %", found as f64, 0.8 * whole as f64, 0.03);
            let mut ssd = ssd_of(&rig, 1, false);
            fill_sequentially(&mut ssd, 1 << 20);
            rest(&mut ssd, 0);
            let before = counters(&ssd)["slc_units_written"];
            (0..4096).for_each(|lpn| ssd.apply(&command(Op::Write, lpn * UNIT, UNIT)));
            assert_eq!(counters(&ssd)["slc_units_written"], before, "lent by a full drive");
        }
    }
}

/// Random writes of a working set: units folded per unit written.
fn folded(ssd: &mut Ssd, working_set: u64, writes: u64) -> f64 {
    let mut rng = Stream::new(3, "working set");
    let mut write = |ssd: &mut Ssd| {
        ssd.apply(&command(Op::Write, rng.below(working_set) * UNIT, UNIT));
    };
    (0..writes).for_each(|_| write(ssd));
    let before = ssd.ftl().counters;
    (0..writes).for_each(|_| write(ssd));
    let c = ssd.ftl().counters;
    (c.programs_fold - before.programs_fold) as f64
        / (c.programs_host - before.programs_host) as f64
}

#[test]
fn what_is_folded_follows_the_law_of_a_fifo() {
    // A unit is folded if it has not been written again when its superblock's turn comes: after all
    // writes that fill the cache but for what came before it in its own superblock.
    for scope in ["die", "drive"] {
        let mut ssd =
            ssd_of(&drive("static_size = \"24MiB\"", &[("ftl.gc.scope", scope)]), 1, false);
        let regions = u64::from(ssd.ftl().layout.regions);
        let cache = cache_units(24 << 20, 3, regions);
        let superblock = PAGES / 3 * PAGE * DIES;
        for working_set in [40_000, 12_000, 6_000, 3_000] {
            let stays = 1.0 - 1.0 / working_set as f64;
            let expected: f64 =
                (0..superblock).map(|p| stays.powf((cache - p) as f64) / superblock as f64).sum();
            let measured = folded(&mut ssd, working_set, 300_000);
            near(&format!("{scope}, {working_set} units"), measured, expected, 0.02);
        }
        let measured = folded(&mut ssd, 300, 100_000);
        println!("300 units: {measured}");
        assert_eq!(measured, 0.0, "folded of a working set that fits many times");
    }
}

#[test]
fn a_cache_of_no_size_is_none() {
    let plain = drive("", &[]);
    let empty =
        drive("static_size = \"0B\"\ndynamic_size = \"0B\"\nfold_idle_after = \"1ms\"", &[]);
    let run = |rig: &Rig| {
        let mut ssd = ssd_of(rig, 1, false);
        fill_sequentially(&mut ssd, 1 << 20);
        let mut rng = Stream::new(1, "mixed");
        let units = ssd.capacity() / UNIT;
        let next = || {
            let op = if rng.below(3) == 0 { Op::Read } else { Op::Write };
            command(op, rng.below(units - 8) * UNIT, (1 + rng.below(8)) * UNIT)
        };
        let mut times = Vec::new();
        closed_loop(&mut ssd, 16, 20_000, 0, next, |latency, c| {
            times.push((latency, c.parts.clone()))
        });
        rest(&mut ssd, 0);
        (counters(&ssd), ssd.ftl().fingerprint(), times)
    };
    assert_eq!(run(&plain), run(&empty));
}

#[test]
fn reads_take_the_time_of_the_mode_that_their_unit_is_in() {
    let rig = drive("static_size = \"24MiB\"\nfold_idle_after = \"50ms\"", &[]);
    let mut ssd = ssd_of(&rig, 1, false);
    // More than the open superblocks hold, so that all of the first units are folded in idle time.
    (0..2000).for_each(|lpn| ssd.apply(&command(Op::Write, lpn * UNIT, UNIT)));
    let read = |ssd: &mut Ssd, start: u64| {
        let run = closed_loop(ssd, 1, 1, start, || command(Op::Read, 0, UNIT), |_, _| {});
        (run.latency_max, run.end)
    };
    let (cached, end) = read(&mut ssd, 0);
    assert_eq!(cached, T_READ_SLC + T_TRANSFER);
    let end = rest(&mut ssd, end);
    assert_eq!(read(&mut ssd, end).0, T_READ + T_TRANSFER);
    assert_eq!(ssd.ftl().counters.programs_fold + counters(&ssd)["slc_units_valid"], 2000);
}

#[test]
fn idle_time_empties_the_cache_at_the_dies_speed_and_stops_for_the_host() {
    // Dies that share a channel wait for it a little at the start of every step.
    let rig = drive(
        "static_size = \"24MiB\"\nfold_idle_after = \"20ms\"",
        &[("nand.channels", "4"), ("nand.ways", "1")],
    );
    let mut ssd = ssd_of(&rig, 1, false);
    let size = cache_units(24 << 20, 3, DIES);
    let end = fill(&mut ssd, 0, size, 0).last().unwrap().0;
    while ssd.ftl().counters.programs_fold == 0 {
        ssd.advance(ssd.next_event(), &mut Vec::new());
    }
    let begin = ssd.next_event();
    let all = rest(&mut ssd, end);
    let pages = size / PAGE;
    let expected = pages * FOLD / DIES + pages * 3 / PAGES * T_ERASE / DIES;
    near("idle folding, ns", (all - begin) as f64, expected as f64, 0.03);
    assert_eq!((counters(&ssd)["slc_units_valid"], counters(&ssd)["slc_superblocks"]), (0, 0));
    // The cache is as long as new.
    assert!(fast_part(&mut ssd, size).abs_diff(size) <= PAGES / 3 * PAGE);

    // A read that comes while it folds waits for the operations of one step and no more.
    let mut ssd = ssd_of(&rig, 1, false);
    let end = fill(&mut ssd, 0, size, 0).last().unwrap().0;
    let start = ssd.advance(end + 200_000_000, &mut Vec::new());
    let before = ssd.ftl().counters.programs_fold;
    assert!(before > 0);
    let mut parts = Vec::new();
    let next = || command(Op::Read, (size - 1) * UNIT, UNIT);
    let run = closed_loop(&mut ssd, 1, 1, start, next, |_, c| parts.push(c.parts.clone()));
    let longest = PAGE * T_TRANSFER + T_PROGRAM.max(T_ERASE);
    assert!(run.latency_max <= longest + T_READ_SLC + T_TRANSFER, "{}", run.latency_max);
    assert!(parts[0][Part::DieFold] > 0, "{parts:?}");
    ssd.advance(run.end + 19_000_000, &mut Vec::new());
    assert_eq!(ssd.ftl().counters.programs_fold, before, "folds although the host is back");
}

#[test]
fn preparation_in_idle_time_folds_too() {
    let rig = drive("static_size = \"24MiB\"\nfold_idle_after = \"1s\"", &[]);
    let mut device = rig.build(1, false).unwrap();
    let prepare = "sequential,idle:10s".parse::<ssdlab::run::Preconditioning>().unwrap();
    ssdlab::run::prepare(&mut *device, &prepare, 1, &mut ()).unwrap();
    assert_eq!(counters(&*device)["slc_units_valid"], 0);
}

#[test]
fn a_write_says_how_long_it_waited_for_folding() {
    let waits = |when_full: &str| {
        let rig = drive(&format!("static_size = \"6MiB\"\nwhen_full = \"{when_full}\""), &[]);
        let mut ssd = ssd_of(&rig, 1, false);
        let units = ssd.capacity() / UNIT;
        let mut at = 0;
        let next = || {
            at = (at + 1) % units;
            command(Op::Write, at * UNIT, UNIT)
        };
        let (mut fold, mut total) = (0, 0);
        closed_loop(&mut ssd, 4, 20_000, 0, next, |latency, c| {
            fold += c.parts[Part::DieFold];
            total += latency;
        });
        fold as f64 / total as f64
    };
    let (fold, direct) = (waits("fold"), waits("direct"));
    println!("share of the time waiting for folding: {fold:.3}; direct: {direct:.3}");
    assert!(fold > 0.1 && direct == 0.0);
}

#[test]
fn a_dynamic_cache_lost_to_overwrites_comes_back_in_idle_time() {
    for pace in ["blocking", "paced"] {
        let rig = drive(
            "dynamic_size = \"1GiB\"\nfold_idle_after = \"10ms\"",
            &[("ftl.gc.idle_after", "10ms"), ("ftl.gc.pace", pace)],
        );
        let mut ssd = ssd_of(&rig, 1, false);
        let units = ssd.capacity() / UNIT / 2;
        (0..units).for_each(|lpn| ssd.apply(&command(Op::Write, lpn * UNIT, UNIT)));
        rest(&mut ssd, 0);
        let mut fresh = ssd_of(&rig, 1, false);
        (0..units).for_each(|lpn| fresh.apply(&command(Op::Write, lpn * UNIT, UNIT)));
        rest(&mut fresh, 0);
        let most = fast_part(&mut fresh, units);
        let mut rng = Stream::new(1, "overwrites");
        (0..4 * units).for_each(|_| {
            ssd.apply(&command(Op::Write, rng.below(units) * UNIT, UNIT));
        });
        let before = counters(&ssd)["slc_units_written"];
        (0..100).for_each(|lpn| ssd.apply(&command(Op::Write, lpn * UNIT, UNIT)));
        assert_eq!(counters(&ssd)["slc_units_written"], before, "overwrites left a cache");
        rest(&mut ssd, 0);
        let found = fast_part(&mut ssd, units);
        println!("{pace}: {found} units after idle time, {most} when nothing was overwritten");
        // All but two superblocks of each region.
        assert!(found + 2 * (PAGES / 3 * PAGE * DIES) >= most);
    }
}

#[test]
fn what_is_set_aside_wears_alone_and_takes_nothing_from_the_spare() {
    let plain = ssd_of(&drive("", &[]), 1, false);
    let mut ssd = ssd_of(&drive("static_size = \"24MiB\"", &[]), 1, false);
    assert_eq!(ssd.over_provisioning(1), plain.over_provisioning(1));
    for n in 0..400_000 {
        ssd.apply(&command(Op::Write, n % 1000 * UNIT, UNIT));
    }
    let c = counters(&ssd);
    let superblock = PAGES / 3 * PAGE;
    let erases = 400_000 / superblock;
    assert!(
        c["slc_static_erases_sum"].abs_diff(erases)
            < cache_units(24 << 20, 3, DIES) / superblock + DIES
    );
    assert_eq!((c["erases_sum"], c["erases_min"]), (c["slc_static_erases_sum"], 0));
    let share = cache_units(24 << 20, 3, DIES) / superblock;
    assert!(c["slc_static_erases_max"] <= c["slc_static_erases_sum"].div_ceil(share) + 1);
    assert_eq!((c["percentage_used"], c["programs_fold"]), (0, 0));
}

#[test]
fn a_dynamic_cache_costs_a_full_drive_nothing_and_a_half_full_one_no_spare() {
    let wa = |cache: &str, share: f64| {
        let mut ssd = ssd_of(&drive(cache, &[]), 1, false);
        let units = (ssd.capacity() / UNIT) as f64 * share;
        let units = units as u64;
        (0..units).for_each(|lpn| ssd.apply(&command(Op::Write, lpn * UNIT, UNIT)));
        let mut rng = Stream::new(1, "overwrites");
        let mut write =
            |ssd: &mut Ssd| ssd.apply(&command(Op::Write, rng.below(units) * UNIT, UNIT));
        (0..6 * units).for_each(|_| write(&mut ssd));
        let before = ssd.ftl().counters;
        (0..4 * units).for_each(|_| write(&mut ssd));
        let c = ssd.ftl().counters;
        let all = |c: &ssdlab::ftl::FtlCounters| {
            c.programs_host + c.programs_collection + c.programs_fold + c.programs_padding
        };
        (all(&c) - all(&before)) as f64 / (c.programs_host - before.programs_host) as f64
    };
    let (full, none) = (wa("dynamic_size = \"1GiB\"", 1.0), wa("", 1.0));
    near("write amplification of a full drive", full, none, 0.01);
    for when_full in ["fold", "direct"] {
        let half = wa(&format!("dynamic_size = \"1GiB\"\nwhen_full = \"{when_full}\""), 0.5);
        println!("half full, {when_full}: {half:.3}");
        assert!(half < none, "half full {half}, full {none}");
    }
}

#[test]
fn bad_values_are_refused_with_what_would_be_right() {
    let said = |cache: &str, sets: &[(&str, &str)]| {
        drive(cache, sets).build(1, false).err().map(|e| e.to_string()).unwrap_or_default()
    };
    for (cache, sets, expected) in [
        (
            "static_size = \"8MiB\"",
            &[("nand.bits_per_cell", "1")][..],
            "nand.bits_per_cell: found 1, expected 2, 3 or 4 with an SLC cache",
        ),
        ("", &[("nand.bits_per_cell", "5")], "nand.bits_per_cell: found 5, expected a number"),
        (
            "static_size = \"8MiB\"",
            &[("nand.pages_per_block", "2"), ("ftl.over_provisioning", "2")],
            "nand.pages_per_block: found 2, expected at least 3",
        ),
        (
            "dynamic_size = \"8MiB\"",
            &[
                ("nand.bits_per_cell", "3"),
                ("nand.one_shot", "true"),
                ("nand.pages_per_block", "6"),
            ],
            "nand.pages_per_block: found 6, expected at least 9",
        ),
        (
            "dynamic_size = \"8MiB\"\ndynamic_until = 1.5",
            &[],
            "ftl.slc_cache.dynamic_until: found 1.5, expected a number from 0 to 1",
        ),
        ("static_size = \"8PiB\"", &[], "ftl.slc_cache.static_size: found 8PiB, expected less"),
        (
            "static_size = \"8MiB\"",
            &[("ftl.slc_cache.t_program", "2h")],
            "ftl.slc_cache.t_program: found 7200s, expected at most an hour",
        ),
        (
            "dynamic_size = \"8MiB\"",
            &[("ftl.map.kind", "extent"), ("ftl.gc.scope", "drive")],
            "ftl.slc_cache: found an SLC cache with ftl.map.kind = \"extent\", expected \"page\"",
        ),
    ] {
        let said = said(cache, sets);
        assert!(said.contains(expected), "{said}");
    }
    let mut rig = drive("", &[]);
    let said = rig.set("ftl.slc_cache.static_size", "8MiB").err().map(|e| e.to_string());
    assert!(
        said.as_ref().is_some_and(|s| s.contains("ftl.slc_cache.t_read: is missing")),
        "{said:?}"
    );
}
