//! When a drive works for itself: batches of collection, idle time, the limit on host writes, parity.

use crate::common;

use common::models;
use common::{
    Sets, closed_loop, command, counters, fill_sequentially, lab_reference, lab_ssd, points, ssd_of,
};
use ssdlab::device::ssd::Ssd;
use ssdlab::device::{Command, Device, Op};
use ssdlab::rig::Rig;
use ssdlab::rng::Stream;
use ssdlab::stats::{Part, PartSums};

const UNIT: u64 = 4096;

fn near(what: &str, measured: f64, expected: f64, tolerance: f64) {
    let error = measured / expected - 1.0;
    println!("{what}: {measured:.5}, expected {expected:.5}: {:+.3} %", error * 100.0);
    assert!(error.abs() <= tolerance, "{what}: {measured}, expected {expected}");
}

fn units_of(ssd: &Ssd) -> u64 {
    ssd.capacity() / UNIT
}

fn random_writes(units: u64, label: &str) -> impl FnMut() -> Command {
    let mut rng = Stream::new(1, label);
    move || command(Op::Write, rng.below(units) * UNIT, UNIT)
}

/// Full of data, then `times` its capacity of random writes, without time.
fn used(sets: Sets, times: u64) -> Ssd {
    let mut ssd = lab_ssd(sets, 1);
    fill_sequentially(&mut ssd, UNIT);
    let units = units_of(&ssd);
    let mut next = random_writes(units, "preparation");
    (0..times * units).for_each(|_| ssd.apply(&next()));
    ssd
}

/// For each of `number` host writes, whether it carried copies, without time.
fn carried(ssd: &mut Ssd, number: u64) -> Vec<bool> {
    let mut next = random_writes(units_of(ssd), "measured");
    let mut last = ssd.ftl().counters.programs_collection;
    (0..number)
        .map(|_| {
            ssd.apply(&next());
            let now = ssd.ftl().counters.programs_collection;
            std::mem::replace(&mut last, now) < now
        })
        .collect()
}

/// Where batches begin and end: in a batch no more than `most` writes in a row carry nothing.
fn batches_in(carried: &[bool], most: usize) -> Vec<(usize, usize)> {
    let mut found: Vec<(usize, usize)> = Vec::new();
    for at in (0..carried.len()).filter(|&at| carried[at]) {
        match found.last_mut() {
            Some((_, end)) if at - *end <= most => *end = at + 1,
            _ => found.push((at, at + 1)),
        }
    }
    found
}

/// Means over the batches that were seen from beginning to end: width and period in host units.
fn width_and_period(batches: &[(usize, usize)]) -> (f64, f64) {
    let whole = &batches[1..batches.len() - 1];
    assert!(whole.len() >= 8, "only {} batches", whole.len());
    let width: usize = whole.iter().map(|(begin, end)| end - begin).sum();
    let periods = (whole[whole.len() - 1].0 - whole[0].0) as f64;
    (width as f64 / whole.len() as f64, periods / (whole.len() - 1) as f64)
}

const BATCHES: Sets = &[
    ("capacity", "1GiB"),
    ("ftl.over_provisioning", "0.4"),
    ("ftl.gc.pace", "periodic"),
    ("ftl.gc.batch", "{start=10, end=50, copies=4}"),
];
const START: f64 = 10.0;
const END: f64 = 50.0;

/// Units of the drive between the marks, with superblocks of 64 units on each of 16 dies. How full the
/// frontiers are at either mark is not counted: up to one superblock in 40.
const SWING: f64 = (END - START) * 64.0 * 16.0;

#[test]
fn width_and_period_of_batches_follow_from_marks_rate_and_victims() {
    for copies in points([2.5, 4.0, 10.0]) {
        let rate = format!("{{start={START}, end={END}, copies={copies}}}");
        let mut sets = BATCHES.to_vec();
        sets.push(("ftl.gc.batch", &rate));
        let mut ssd = used(&sets, 6);
        let before = ssd.ftl().counters;
        let number = 3_000_000;
        let seen = carried(&mut ssd, number);
        let after = ssd.ftl().counters;
        let batches = batches_in(&seen, 200);
        let begun = after.batches - before.batches;
        assert!(begun.abs_diff(batches.len() as u64) <= 1, "{begun} begun, {} seen", batches.len());
        let (width, period) = width_and_period(&batches);
        let victims = (after.collections - before.collections) as f64;
        let moved = (after.programs_collection - before.programs_collection) as f64;
        let u = moved / (victims * 64.0);
        // Of the units between the marks each host unit takes one; its copies release c / u and
        // take c.
        let expected = SWING / (copies * (1.0 - u) / u - 1.0);
        near(&format!("width, {copies} copies"), width, expected, 0.02);
        near(&format!("period, {copies} copies"), period, SWING + expected, 0.02);
        // The victims of greedy collection with what is free on average as no spare.
        let layout = ssd.ftl().layout;
        let data = f64::from(layout.superblocks) - (START + END) / 2.0;
        let alpha = data * 16.0 * 64.0 / units_of(&ssd) as f64;
        near("valid share of victims", u, 1.0 - 1.0 / models::greedy(alpha, 64).wa, 0.03);
        ssd.verify();
    }
}

#[test]
fn collection_between_batches_makes_them_rare() {
    for between in points([0.0, 0.3, 0.6, 0.8]) {
        let rate = format!("{{start={START}, end={END}, copies=4, between={between}}}");
        let mut sets = BATCHES.to_vec();
        sets.push(("ftl.gc.batch", &rate));
        let mut ssd = used(&sets, 6);
        let number = 4_000_000;
        let before = ssd.ftl().counters;
        carried(&mut ssd, number);
        let after = ssd.ftl().counters;
        let victims = (after.collections - before.collections) as f64;
        let moved = (after.programs_collection - before.programs_collection) as f64;
        let u = moved / (victims * 64.0);
        let gained = |copies: f64| copies * (1.0 - u) / u - 1.0;
        let expected = SWING / -gained(between) + SWING / gained(4.0);
        // Not every run begins and ends at the same place of a period; and the less collection
        // lacks between batches, the more an error of the victims' share counts.
        let batches = (after.batches - before.batches) as f64;
        let off = 1.0 / batches + 0.02 / -gained(between);
        near(&format!("period, {between} between"), number as f64 / batches, expected, off);
        ssd.verify();
    }
}

#[test]
fn without_batches_collection_is_never_far_away() {
    // The canary: the same marks with another pace leave no gap and count no batch.
    for pace in ["blocking", "paced"] {
        let mut sets = BATCHES.to_vec();
        sets.push(("ftl.gc.pace", pace));
        let mut ssd = used(&sets, 4);
        let seen = carried(&mut ssd, 200_000);
        assert_eq!(ssd.ftl().counters.batches, 0);
        let longest = seen.split(|&c| c).map(<[bool]>::len).max().unwrap();
        println!("{pace}: at most {longest} host units without collection");
        assert!(longest < 2_000, "{pace}: {longest} host units without collection");
    }
}

/// Rates of random writes in time outside and inside of batches, and the shares of latency that are
/// waits for collection; what is within `margin` writes after a batch counts as neither.
fn rates(sets: Sets, margin: usize) -> ([f64; 2], [f64; 2], f64) {
    // The same drive without time says which writes carry copies, the other how long they took.
    let (mut untimed, mut timed) = (used(sets, 6), used(sets, 6));
    let number = 250_000;
    let batches = batches_in(&carried(&mut untimed, number), 200);
    let mut next = random_writes(units_of(&timed), "measured");
    let (mut times, mut waited) = (Vec::new(), [PartSums::default(); 2]);
    closed_loop(&mut timed, 128, number, 0, &mut next, |_, c| {
        times.push(c.time);
        let done = times.len();
        let within = |more: usize| {
            let near = |&(begin, end): &(usize, usize)| {
                (begin - begin.min(more.min(128))..end + more).contains(&done)
            };
            batches.iter().any(near)
        };
        if within(0) {
            waited[1].add(&c.parts);
        } else if !within(margin) {
            waited[0].add(&c.parts);
        }
    });
    assert_eq!(untimed.ftl().fingerprint(), timed.ftl().fingerprint());
    // Completions by their times, so what is in flight at the edges is left out.
    let mut sums = [(0, 0); 2];
    for pair in batches[1..].windows(2) {
        let ((begin, end), (next, _)) = (pair[0], pair[1]);
        for (sum, from, to) in [(0, end + margin, next - 128), (1, begin + 128, end - 128)] {
            let s: &mut (usize, u64) = &mut sums[sum];
            *s = (s.0 + to - from, s.1 + times[to] - times[from]);
        }
    }
    let c = untimed.ftl().counters;
    let u = c.programs_collection as f64
        / (c.collections * u64::from(untimed.ftl().layout.units_per_superblock())) as f64;
    (
        sums.map(|(writes, time)| writes as f64 * 1e9 / time as f64),
        waited.map(|parts| parts[Part::DieCollection] as f64 / parts.total() as f64),
        u,
    )
}

#[test]
fn in_time_the_drive_dips_while_a_batch_is_on_and_no_die_collects_in_between() {
    // Where each die collects by itself they do not finish together, and those behind hold up the
    // others for a while.
    for (scope, margin) in [("drive", 2500), ("die", 2500)] {
        let sets: Sets = &[
            ("capacity", "256MiB"),
            ("ftl.over_provisioning", "0.4"),
            ("ftl.gc.scope", scope),
            ("ftl.gc.pace", "periodic"),
            // Not 3: every fourth program would be the host's, on the same four of sixteen dies.
            ("ftl.gc.batch", "{start=3, end=9, copies=3.3}"),
        ];
        let (rate, waits, u) = rates(sets, margin);
        let (transfer, copies) = (12.3, 3.3);
        let write = transfer + 750.0;
        let copy = 75.0 + 2.0 * transfer + 750.0;
        near(&format!("between batches, {scope}"), rate[0], 16e6 / write, 0.02);
        let busy = write + copies * copy + copies / (u * 64.0) * 3800.0;
        near(&format!("in a batch, {scope}"), rate[1], 16e6 / busy, 0.03);
        println!("waits for collection: {waits:?}");
        assert!(waits[0] < 0.1 && waits[1] > 0.3, "waits for collection: {waits:?}");
    }
}

/// Write amplification of a drive whose batches copy so much, and batches begun meanwhile.
fn wa_with(copies: &str) -> (Ssd, f64, u64) {
    let rate = format!("{{start={START}, end={END}, copies={copies}}}");
    let mut sets = BATCHES.to_vec();
    sets.push(("ftl.gc.batch", &rate));
    let mut ssd = used(&sets, 8);
    let before = ssd.ftl().counters;
    carried(&mut ssd, 500_000);
    let after = ssd.ftl().counters;
    let programs = (after.programs_collection - before.programs_collection) as f64;
    ssd.verify();
    (ssd, 1.0 + programs / 500_000.0, after.batches - before.batches)
}

#[test]
fn a_batch_that_copies_too_little_to_end_is_helped_by_host_writes_that_wait() {
    // Next to nothing: collection is blocking, and as good.
    let (ssd, wa, begun) = wa_with("0.1");
    let alpha = 1.0 + ssd.over_provisioning(1);
    near("WA, 0.1 copies", wa, models::greedy(alpha, 64).wa, 0.01);
    assert_eq!((ssd.ftl().free_superblocks(), begun), (16, 0), "the reserve of every region");
    // As much as the victims that it leaves hold: u = c / (1 + c).
    let (ssd, wa, begun) = wa_with("1");
    near("WA, 1 copy", wa, 2.0, 0.005);
    assert!(ssd.ftl().free_superblocks() > 16 * 2 && begun == 0);
}

#[test]
fn regions_that_are_not_written_do_not_keep_a_batch_from_ending() {
    let mut sets = BATCHES.to_vec();
    sets.push(("ftl.placement", "striped"));
    let mut ssd = used(&sets, 6);
    // The first half of the dies only.
    let (before, mut rng) = (ssd.ftl().counters, Stream::new(1, "half"));
    for _ in 0..1_000_000 {
        let unit = rng.below(units_of(&ssd) / 16) * 16 + rng.below(8);
        ssd.apply(&command(Op::Write, unit * UNIT, UNIT));
    }
    let begun = ssd.ftl().counters.batches - before.batches;
    println!("{begun} batches");
    assert!(begun >= 8, "{begun} batches");
    ssd.verify();
}

#[test]
fn idle_time_collects_so_many_superblocks_of_each_region_at_a_time() {
    for number in [0u64, 1, 3] {
        let count = number.to_string();
        let sets: Sets = &[
            ("capacity", "64MiB"),
            ("ftl.over_provisioning", "0.6"),
            ("ftl.gc.high", "8"),
            ("ftl.gc.idle_after", "10s"),
            ("ftl.gc.idle_superblocks", &count),
        ];
        let mut ssd = used(sets, 3);
        let (free, before) = (ssd.ftl().free_superblocks(), ssd.ftl().counters);
        let mut done = Vec::new();
        while ssd.advance(11_000_000_000, &mut done) < 11_000_000_000 {}
        let after = ssd.ftl().counters;
        assert_eq!(after.collections - before.collections, 16 * number, "collected at once");
        while ssd.advance(200_000_000_000, &mut done) < 200_000_000_000 {}
        let gained = ssd.ftl().free_superblocks() - free;
        println!("{number} at a time: {gained} superblocks after 200 s");
        if number == 0 {
            assert_eq!((gained, ssd.ftl().counters), (0, before));
        } else {
            assert_eq!(ssd.ftl().free_superblocks(), 16 * 8, "the reserve kept clean");
        }
    }
}

/// `lab-reference` with parity and about `superblocks` superblocks in each region.
fn with_parity(superblocks: f64, stripe: u32, scope: &str, victim: &str, op: f64) -> Ssd {
    // Four dies, two of them on each channel.
    let dies = match scope {
        "die" => 1,
        "channel" => 2,
        _ => 4,
    };
    let programs: u32 = 64 * dies;
    let parity = programs.checked_div(stripe).unwrap_or(0);
    let units = superblocks * f64::from((programs - parity) * (4 / dies)) / (1.0 + op);
    let (capacity, op) = (format!("{}KiB", units as u64 * 4), op.to_string());
    let stripe = stripe.to_string();
    lab_ssd(
        &[
            ("nand.channels", "2"),
            ("capacity", &capacity),
            ("ftl.over_provisioning", &op),
            ("ftl.gc.scope", scope),
            ("ftl.gc.victim", victim),
            ("ftl.parity.stripe", &stripe),
        ],
        1,
    )
}

/// Programs of every cause since the drive was new, and host units.
fn programs(ssd: &Ssd) -> (u64, u64) {
    let c = &ssd.ftl().counters;
    (c.programs_host + c.programs_collection + c.programs_parity, c.host_units_written)
}

fn uniform_wa(ssd: &mut Ssd) -> f64 {
    fill_sequentially(ssd, UNIT);
    let units = units_of(ssd);
    let mut next = random_writes(units, "uniform");
    (0..8 * units).for_each(|_| ssd.apply(&next()));
    let before = programs(ssd);
    (0..6 * units).for_each(|_| ssd.apply(&next()));
    let after = programs(ssd);
    ssd.verify();
    (after.0 - before.0) as f64 / (after.1 - before.1) as f64
}

#[test]
fn parity_multiplies_the_write_amplification_of_the_spare_that_it_leaves() {
    let all = [(2, "die", 0.28), (8, "die", 0.127), (16, "drive", 0.28), (4, "channel", 0.28)];
    for (nth, (stripe, scope, op)) in all.into_iter().enumerate() {
        // Both with each, by turns where there is no time.
        for victim in points(["greedy", "fifo"].into_iter().cycle().skip(nth).take(2)) {
            let superblocks = if scope == "drive" { 1500.0 } else { 600.0 };
            let mut ssd = with_parity(superblocks, stripe, scope, victim, op);
            let layout = ssd.ftl().layout;
            let b = layout.data_units_per_superblock();
            assert_eq!(b * stripe, layout.units_per_superblock() * (stripe - 1));
            let alpha = 1.0 + ssd.over_provisioning(1);
            near("over-provisioning net of parity", alpha, 1.0 + op, 0.005);
            let n = f64::from(stripe);
            let net = match victim {
                "fifo" => models::fifo(alpha),
                _ => models::greedy(alpha, b).wa,
            };
            let what = format!("WA, {victim}, a parity in {stripe}, {scope}");
            near(&what, uniform_wa(&mut ssd), n / (n - 1.0) * net, 0.01);
        }
    }
    // The canary: without parity the same spare costs what it did.
    let mut ssd = with_parity(600.0, 0, "die", "greedy", 0.127);
    let alpha = 1.0 + ssd.over_provisioning(1);
    near("WA without parity", uniform_wa(&mut ssd), models::greedy(alpha, 64).wa, 0.01);
    assert_eq!(ssd.ftl().counters.programs_parity, 0);
}

#[test]
fn a_stripe_spans_the_dies_of_its_region_and_ends_with_its_parity() {
    for (scope, stripe, dies) in [("drive", 4, 4), ("channel", 2, 2), ("die", 4, 1)] {
        let ssd = with_parity(100.0, stripe, scope, "greedy", 0.4);
        let layout = ssd.ftl().layout;
        for first in (0..layout.units_per_superblock()).step_by(stripe as usize) {
            let mut seen: Vec<u32> = (first..first + stripe).map(|n| layout.die_of(n)).collect();
            seen.sort_unstable();
            seen.dedup();
            assert_eq!(seen.len(), dies, "dies of a stripe of {stripe}, {scope}");
            let parity: Vec<bool> = (first..first + stripe).map(|n| layout.is_parity(n)).collect();
            assert_eq!(parity.iter().position(|&p| p), Some(stripe as usize - 1));
        }
    }
    // A stripe cut short by the end of the superblock has its parity all the same.
    let ssd = with_parity(100.0, 10, "die", "greedy", 0.4);
    let layout = ssd.ftl().layout;
    assert_eq!(layout.data_units_per_superblock(), 64 - 7);
    assert!(layout.is_parity(63) && layout.is_parity(59) && !layout.is_parity(60));
}

#[test]
fn parity_takes_its_share_of_the_dies_and_says_so() {
    let run = |stripe: &str| {
        let rig = lab_reference(&[
            ("capacity", "64MiB"),
            ("nand.ways", "1"),
            ("ftl.gc.scope", "drive"),
            ("ftl.over_provisioning", "0.5"),
            ("ftl.parity.stripe", stripe),
        ]);
        let mut ssd = ssd_of(&rig, 1, false);
        let (mut at, mut parts) = (0, PartSums::default());
        let next = || {
            at += UNIT;
            command(Op::Write, at - UNIT, UNIT)
        };
        let done = closed_loop(&mut ssd, 64, 64 << 8, 0, next, |_, c| parts.add(&c.parts));
        (done.per_second(), parts, counters(&ssd))
    };
    let (without, parts, c) = run("0");
    near("sequential writes", without, 8e6 / 762.3, 0.01);
    assert_eq!((c["programs_parity"], c["busy_parity_ns"], parts[Part::DieParity]), (0, 0, 0));
    for (stripe, n) in [("5", 5.0), ("16", 16.0)] {
        let (with, parts, c) = run(stripe);
        near("with parity", with / without, (n - 1.0) / n, 0.01);
        assert_eq!(c["busy_parity_ns"], c["programs_parity"] * 762_300, "time of parity");
        near(
            "share of parity",
            c["programs_parity"] as f64 / c["programs_host"] as f64,
            1.0 / (n - 1.0),
            0.01,
        );
        let share = parts[Part::DieParity] as f64 / parts.total() as f64;
        // Every fifth program unit goes round the eight dies, every 16th is always on the same one.
        let waits = if n == 5.0 { 1.0 / n } else { 0.5 / (n - 1.0) };
        near("waits for parity", share, waits, 0.1);
    }
}

fn limited(limit: &str, buffer: bool) -> Rig {
    let mut sets =
        vec![("capacity", "256MiB"), ("ftl.over_provisioning", "0.4"), ("ftl.gc.pace", "paced")];
    if !limit.is_empty() {
        sets.push(("controller.write_limit", limit));
    }
    if buffer {
        sets.push(("write_buffer", "{size=\"4MiB\", power_loss_protected=true}"));
    }
    lab_reference(&sets)
}

#[test]
fn a_limit_on_host_writes_is_their_steady_rate_and_where_their_time_goes() {
    for buffer in [false, true] {
        for block in [UNIT, 1 << 20] {
            let run = |limit: &str| {
                let mut ssd = ssd_of(&limited(limit, buffer), 1, false);
                fill_sequentially(&mut ssd, 1 << 20);
                let blocks = ssd.capacity() / block;
                let mut rng = Stream::new(1, "limited");
                let mut parts = PartSums::default();
                let next = || command(Op::Write, rng.below(blocks) * block, block);
                // Twice the drive, of which the first commands find no bytes before them.
                let done =
                    closed_loop(&mut ssd, 32, 2 * blocks, 0, next, |_, c| parts.add(&c.parts));
                let share = parts[Part::WriteLimit] as f64 / parts.total() as f64;
                (((2 * blocks - 1) * block) as f64 * 1e9 / done.elapsed as f64, share)
            };
            let (rate, share) = run("15MB/s");
            near(&format!("{block} B, buffer {buffer}"), rate, 15e6, 0.005);
            assert!(share > 0.6, "{share} of the time for the limit");
            // The canary: without it the drive is faster, and nothing waits for it.
            let (free, share) = run("");
            assert!(free > 1.3 * rate && share == 0.0, "{free} B/s, {share} without a limit");
        }
    }
}

#[test]
fn writes_that_keep_below_the_limit_never_wait_for_it() {
    for (apart, waits) in [(270_000, false), (240_000, true)] {
        // 4096 B at 16 MB/s are 256 us.
        let mut ssd = ssd_of(&limited("16MB/s", true), 1, false);
        let (mut done, mut total) = (Vec::new(), PartSums::default());
        for n in 0..2_000u64 {
            let write = command(Op::Write, n * UNIT, UNIT);
            let now = n * apart;
            while ssd.advance(now, &mut done) < now {}
            ssd.submit(now, Command { tag: n, ..write });
            done.drain(..).for_each(|c| total.add(&c.parts));
        }
        assert_eq!(total[Part::WriteLimit] > 0, waits, "{apart} ns apart: {total:?}");
    }
}

/// Latencies of random writes that come every `interval`, and the write amplification.
fn waits(sets: Sets, interval: u64, number: u64) -> (Vec<u64>, f64) {
    let mut ssd = used(sets, 3);
    let mut next = random_writes(units_of(&ssd), "measured");
    let before = ssd.ftl().counters;
    let (mut done, mut waits, mut now) = (Vec::new(), Vec::new(), 0);
    for tag in 0..number {
        let at = (tag + 1) * interval;
        while now < at {
            now = ssd.advance(at, &mut done);
            waits.extend(done.drain(..).map(|c| now - (c.tag + 1) * interval));
        }
        ssd.submit(at, Command { tag, ..next() });
    }
    let c = ssd.ftl().counters;
    let copies = (c.programs_collection - before.programs_collection) as f64;
    (waits, 1.0 + copies / (c.host_units_written - before.host_units_written) as f64)
}

/// Far below saturation writes wait only where many copies go in a row and what they hold in RAM leaves little for
/// the host: as long as the copies of a die take, less what the room that is left takes in.
#[test]
fn copies_in_a_row_hold_writes_up_where_they_take_the_room() {
    const INTERVAL: u64 = 500_000;
    const IN_ROW: f64 = 16.0;
    const ROOM: f64 = 4.0;
    let row = ("ftl.gc.in_row", "16");
    // Two units of each of eight dies, and four.
    let buffer = "{ size = \"80KiB\", power_loss_protected = true, holds_moves = ";
    let holds = format!("{buffer}true }}");
    let apart = format!("{buffer}false }}");
    let drive = |more: &[(&'static str, &str)]| {
        let common = [
            ("capacity", "256MiB"),
            ("nand.channels", "4"),
            ("nand.t_erase", "10us"),
            ("ftl.gc.scope", "drive"),
            ("ftl.gc.pace", "paced"),
        ];
        let sets: Vec<(&str, &str)> = common.iter().chain(more).copied().collect();
        waits(&sets, INTERVAL, 20_000)
    };
    let longest = |(waits, _): &(Vec<u64>, f64)| *waits.iter().max().expect("writes") as f64;
    let both = drive(&[row, ("write_buffer", &holds)]);
    let copies = IN_ROW * (1.0 - 1.0 / both.1);
    // Read, programmed, and both transferred.
    let copy = 75_000.0 + 750_000.0 + 2.0 * 4096.0 / 0.333;
    let expected = copies * copy - ROOM * INTERVAL as f64;
    near("the longest wait, ns", longest(&both), expected, 0.1);
    let late = both.0.iter().filter(|&&wait| wait as f64 > expected / 2.0).count();
    assert!(late * 100 > both.0.len(), "of 100 writes more than one waits: {late}");
    for others in [vec![("write_buffer", &*holds)], vec![row, ("write_buffer", &*apart)]] {
        let wait = longest(&drive(&others));
        assert!(wait < expected / 4.0, "{others:?}: {wait}");
    }
}

#[test]
fn trims_and_flushes_keep_their_place_behind_writes_that_wait_for_their_turn() {
    for buffer in [false, true] {
        let mut ssd = ssd_of(&limited("4.096MB/s", buffer), 1, false);
        // 1 ms for each write; the second waits, TRIM and flush behind it; the read passes.
        let ops = [Op::Write, Op::Write, Op::Trim, Op::Flush, Op::Read, Op::Write];
        for (tag, op) in ops.into_iter().enumerate() {
            let len = if op == Op::Flush { 0 } else { UNIT };
            let write = command(op, 7 * UNIT, len);
            ssd.submit(0, Command { tag: tag as u64, ..write });
        }
        let mut done = Vec::new();
        while done.len() < ops.len() {
            ssd.advance(u64::MAX - 1, &mut done);
        }
        let of = |tag: u64| done.iter().find(|c| c.tag == tag).unwrap();
        let entered = if buffer { 0 } else { 762_300 };
        for (tag, turn, time) in [
            (0, 0, entered),
            (1, 1_000_000, 1_000_000 + entered),
            // One entry of the map is its own to change.
            (2, 1_000_000, 1_000_010),
            (3, 1_000_000, 1_000_000),
            (5, 2_000_000, 2_000_000 + entered),
        ] {
            let c = of(tag);
            assert_eq!((c.parts[Part::WriteLimit], c.time), (turn, time), "{tag}, buffer {buffer}");
            assert_eq!(c.parts.total(), c.time, "parts of {tag}");
        }
        assert_eq!(of(4).parts[Part::WriteLimit], 0, "a read waited for the limit");
        // The TRIM came after the second write and before the third.
        assert_eq!(ssd.ftl().counters.units_trimmed, 1);
        assert_eq!(ssd.ftl().counters.units_mapped, 1);
    }
}

#[test]
fn what_cannot_be_is_refused_in_a_sentence() {
    let said = |sets: Sets| {
        let mut rig = lab_reference(&[("capacity", "1GiB")]);
        for (key, value) in sets {
            if let Err(e) = rig.set(key, value) {
                return e.to_string();
            }
        }
        rig.build(1, false).err().map(|e| e.to_string()).unwrap_or_default()
    };
    let pace = ("ftl.gc.pace", "periodic");
    let cases: [(Sets, &str); 12] = [
        (
            &[pace],
            "ftl.gc.batch: is missing: ftl.gc.pace = \"periodic\" needs its start, end and copies",
        ),
        (
            &[pace, ("ftl.gc.batch", "{start=3}")],
            "ftl.gc.batch.copies: found 0, expected a number from 0.001 to 65536",
        ),
        (
            &[pace, ("ftl.gc.batch", "{start=1, end=4, copies=3}")],
            "ftl.gc.batch.start: found 1, expected more free superblocks than ftl.gc.low (1)",
        ),
        (
            &[pace, ("ftl.gc.batch", "{start=4, end=4, copies=3}")],
            "ftl.gc.batch.end: found 4, expected more free superblocks than ftl.gc.batch.start (4), \
             and at most 72.00",
        ),
        (&[pace, ("ftl.gc.batch", "{start=4, end=73, copies=3}")], "ftl.gc.batch.end: found 73, "),
        (
            &[pace, ("ftl.gc.batch", "{start=nan, end=9, copies=3}")],
            "ftl.gc.batch.start: found NaN",
        ),
        (
            &[pace, ("ftl.gc.batch", "{start=2, end=9, copies=0}")],
            "ftl.gc.batch.copies: found 0, expected a number from 0.001 to 65536",
        ),
        (
            &[("ftl.parity.stripe", "1")],
            "ftl.parity.stripe: found 1, expected 0 for no parity, or from 2 to the 64 program units \
             of a superblock",
        ),
        (&[("ftl.parity.stripe", "65")], "ftl.parity.stripe: found 65, expected 0 for no parity"),
        (
            &[("controller.write_limit", "10B/s")],
            "controller.write_limit: found 10B/s, expected at least 1kB/s, such as \"200MB/s\"",
        ),
        (
            &[("controller.write_limit", "200")],
            "controller.write_limit: found 200, expected a rate with its unit, such as \"550MB/s\"",
        ),
        (
            &[("ftl.gc.idle_superblocks", "70000")],
            "ftl.gc.idle_superblocks: found 70000, expected a number from 0 to 65536",
        ),
    ];
    for (sets, expected) in cases {
        let said = said(sets);
        assert!(said.contains(expected), "{sets:?}: {said}");
    }
    assert_eq!(said(&[pace, ("ftl.gc.batch", "{start=4, end=72, copies=3}")]), "");
}
