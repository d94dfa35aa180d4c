//! The untimed path leaves what the timed path would have left: exactly, where placement does not
//! depend on timing; otherwise the same write amplification and occupancy of superblocks.

use crate::common;

use common::audit::Step;
use common::rigs::{Shape, any_ssd, fitting};
use common::{cases, closed_loop, command, lab_reference, ssd_of};
use proptest::prelude::*;
use ssdlab::device::ssd::Ssd;
use ssdlab::device::{Command, Device, Op};
use ssdlab::ftl::placement::PLACEMENTS;
use ssdlab::ftl::victim::VICTIMS;
use ssdlab::ftl::wear_leveling::WEAR_LEVELINGS;
use ssdlab::rig::Rig;
use ssdlab::rng::Stream;
use ssdlab::units::NEVER;

/// Commands of every kind over all of the device. Conflicts among those in flight are welcome:
/// they are carried out in order.
fn commands(seed: u64, capacity: u64, number: usize) -> Vec<Command> {
    common::audit::random_script(seed, capacity, number)
        .into_iter()
        .filter_map(|step| match step {
            Step::Io(op, offset, len) | Step::Apply(op, offset, len) => {
                let compressible = (offset / 4096 * 37 % 101) as u8;
                Some(Command { compressible, ..command(op, offset, len) })
            }
            Step::Idle(_) | Step::Cut(_) => None,
        })
        .collect()
}

/// Runs them in time, then for `rest` ns more.
fn in_time(ssd: &mut Ssd, commands: &[Command], depth: u64, start: u64, rest: u64) -> u64 {
    let mut next = commands.iter();
    let total = commands.len() as u64;
    let end = closed_loop(ssd, depth, total, start, || *next.next().unwrap(), |_, _| {}).end;
    until(ssd, end + rest);
    end + rest
}

fn until(ssd: &mut Ssd, time: u64) {
    let mut done = Vec::new();
    while ssd.advance(time, &mut done) < time {}
    assert!(done.is_empty());
}

/// Lets idle work come to its end.
fn at_rest(ssd: &mut Ssd) {
    while ssd.next_event() != NEVER {
        let time = ssd.next_event();
        until(ssd, time);
    }
}

fn without_time(ssd: &mut Ssd, commands: &[Command]) {
    commands.iter().for_each(|c| ssd.apply(c));
}

/// Both ways to the same state, and on from there in time to the same state again. Where a
/// map is cached, reads must not overtake writes, or what is cached depends on timing: so either no
/// reads (with a buffer or a limit, for room or a turn for which writes wait) or no purges (during
/// which they wait).
fn both_ways_agree(rig: &Rig, seed: u64, number: usize, depth: u64) {
    let rest = 60_000_000_000;
    let (mut timed, mut untimed) = (ssd_of(rig, seed, false), ssd_of(rig, seed, false));
    let shape = Shape::of(rig);
    let overtakes = if shape.buffered || shape.limited { Op::Read } else { Op::Purge };
    let keep = |c: &Command| c.op != overtakes || !shape.cached;
    let first: Vec<Command> =
        commands(seed, timed.capacity(), number).into_iter().filter(keep).collect();
    let now = in_time(&mut timed, &first, depth, 0, rest);
    without_time(&mut untimed, &first);
    let same = |a: &Ssd, b: &Ssd, when: &str| {
        let toml = rig.to_toml();
        assert_eq!(a.ftl().counters, b.ftl().counters, "counters {when}\n{toml}");
        assert_eq!(a.ftl().fingerprint(), b.ftl().fingerprint(), "state {when}\n{toml}");
    };
    same(&timed, &untimed, "after preconditioning");
    let second = commands(seed ^ 1, timed.capacity(), number / 4);
    let second: Vec<Command> = second.into_iter().rev().filter(keep).collect();
    in_time(&mut timed, &second, depth, now, rest);
    in_time(&mut untimed, &second, depth, now, rest);
    same(&timed, &untimed, "after going on in time");
    timed.verify();
}

/// Takes what depends on timing out of a random rig: placement by backlog, collection in idle time, cores of which
/// one overtakes another that is at a write, copies in a row as long as no write waits, a buffer that absorbs overwrites, or
/// is too small for the program units that are open at once.
fn independent_of_timing(rig: Rig) -> Rig {
    let toml = rig.to_toml();
    let kept = toml.lines().filter(|line| !line.trim_start().starts_with("in_row"));
    let toml = kept.collect::<Vec<_>>().join("\n");
    let mut rig = Rig::parse(&toml, "drawn").expect("a rig without a key that may be absent");
    if toml.contains("least-busy") {
        rig.set("ftl.placement", "round-robin").unwrap();
    }
    if toml.contains("write_time") {
        rig.set("controller.cores", "1").unwrap();
    }
    rig.set("ftl.gc.idle_after", "1h").unwrap();
    if toml.contains("slc_cache") {
        rig.set("ftl.slc_cache.fold_idle_after", "1h").unwrap();
    }
    let shape = Shape::of(&rig);
    if shape.buffered {
        // Units may wait in a native frontier and in one in SLC mode.
        let bytes = (2 * shape.units_per_program * shape.granule + shape.unit) * shape.dies;
        rig.set("write_buffer.size", &format!("{}B", bytes + (12 << 10))).unwrap();
        rig.set("write_buffer.drain", "immediate").unwrap();
        rig.set("write_buffer.holds_moves", "false").unwrap();
    }
    rig
}

proptest! {
    #![proptest_config(cases(75, 3000))]
    #[test]
    fn any_drive_is_left_the_same_by_both_paths(ssd in any_ssd(), seed: u64, depth in 1u64..64) {
        let rig = independent_of_timing(fitting(&[ssd]).expect("an SSD fits"));
        both_ways_agree(&rig, seed, 900, depth);
    }
}

#[test]
fn every_combination_of_policies_is_left_the_same_by_both_paths() {
    let mut seed = 0;
    for victim in VICTIMS.names() {
        for placement in PLACEMENTS.names().filter(|&p| p != "least-busy") {
            for wear in WEAR_LEVELINGS.names() {
                for scope in ["die", "channel", "drive"] {
                    for (pace, separate) in [
                        ("blocking", "false"),
                        ("blocking", "true"),
                        ("paced", "false"),
                        ("paced", "true"),
                    ] {
                        let rig = lab_reference(&[
                            ("capacity", "6MiB"),
                            ("nand.channels", "2"),
                            ("nand.page", "8KiB"),
                            ("nand.pages_per_block", "8"),
                            ("ftl.over_provisioning", "0.5"),
                            ("ftl.placement", placement),
                            ("ftl.gc.victim", victim),
                            ("ftl.gc.scope", scope),
                            ("ftl.gc.pace", pace),
                            ("ftl.gc.separate_frontier", separate),
                            ("ftl.wear_leveling.policy", wear),
                            ("ftl.wear_leveling.spread", "3"),
                        ]);
                        seed += 1;
                        both_ways_agree(&rig, seed, 1000, 24);
                    }
                }
            }
        }
    }
}

/// The canary: where placement looks at the dies' backlog the two drives differ, and a single
/// command is enough to tell two drives apart.
#[test]
fn the_fingerprint_tells_drives_apart() {
    let rig = lab_reference(&[("capacity", "16MiB"), ("ftl.placement", "least-busy")]);
    let (mut timed, mut untimed) = (ssd_of(&rig, 1, false), ssd_of(&rig, 1, false));
    let first = commands(1, timed.capacity(), 4000);
    in_time(&mut timed, &first, 32, 0, 1_000_000_000);
    without_time(&mut untimed, &first);
    assert_ne!(timed.ftl().fingerprint(), untimed.ftl().fingerprint());
    for op in [Op::Write, Op::Trim] {
        let before = untimed.ftl().fingerprint();
        let mapped = (0..4096).find(|&n| untimed.ftl().lookup(n) != ssdlab::nand::NONE).unwrap();
        untimed.apply(&command(op, u64::from(mapped) * 4096, 4096));
        assert_ne!(untimed.ftl().fingerprint(), before, "{op:?}");
    }
}

#[test]
fn idle_time_collection_finds_the_same_drive_after_both_paths() {
    for victim in VICTIMS.names() {
        let rig = lab_reference(&[
            ("capacity", "16MiB"),
            ("ftl.gc.victim", victim),
            ("ftl.gc.high", "4"),
            ("ftl.gc.idle_after", "30ms"),
        ]);
        let (mut timed, mut untimed) = (ssd_of(&rig, 1, false), ssd_of(&rig, 1, false));
        let mut rng = Stream::new(1, "writes");
        let units = timed.capacity() / 4096;
        let writes: Vec<Command> =
            (0..5 * units).map(|_| command(Op::Write, rng.below(units) * 4096, 4096)).collect();
        in_time(&mut timed, &writes, 32, 0, 0);
        without_time(&mut untimed, &writes);
        let before = untimed.ftl().free_superblocks();
        at_rest(&mut timed);
        at_rest(&mut untimed);
        assert!(untimed.ftl().free_superblocks() > before, "{victim}: no idle-time collection");
        assert_eq!(timed.ftl().fingerprint(), untimed.ftl().fingerprint(), "{victim}");
    }
}

/// Steady state seen over time: write amplification, and how many superblocks hold how much.
struct Seen {
    wa: f64,
    /// Share of the closed superblocks with at most so many valid units.
    at_most: Vec<f64>,
}

/// Watches in time how a drive goes on under random writes with `pause` between bursts.
fn watch(ssd: &mut Ssd, mut now: u64, seed: u64, pause: u64) -> Seen {
    let units = ssd.capacity() / 4096;
    let mut rng = Stream::new(seed, "watch");
    let b = ssd.ftl().blocks().units_per_superblock;
    let mut seen = vec![0u64; b as usize + 1];
    let programs = |ssd: &Ssd| {
        let c = &ssd.ftl().counters;
        (c.programs_host + c.programs_collection, c.programs_host)
    };
    let before = programs(ssd);
    for _ in 0..60 {
        let next = || command(Op::Write, rng.below(units) * 4096, 4096);
        now = closed_loop(ssd, 32, units / 12, now, next, |_, _| {}).end + pause;
        until(ssd, now);
        ssd.ftl().blocks().valid.iter().filter(|&&v| v <= b).for_each(|&v| seen[v as usize] += 1);
    }
    let after = programs(ssd);
    let all: u64 = seen.iter().sum();
    let mut sum = 0;
    let at_most = seen
        .iter()
        .map(|&n| {
            sum += n;
            sum as f64 / all as f64
        })
        .collect();
    Seen { wa: (after.0 - before.0) as f64 / (after.1 - before.1) as f64, at_most }
}

/// Preconditions by both paths and watches both drives; compares within half a percent.
fn both_ways_are_equivalent(what: &str, rig: &Rig, pause: u64) {
    let (mut timed, mut untimed) = (ssd_of(rig, 1, false), ssd_of(rig, 1, false));
    let units = timed.capacity() / 4096;
    let mut rng = Stream::new(9, "fill");
    let mut fill: Vec<Command> = (0..units).map(|n| command(Op::Write, n * 4096, 4096)).collect();
    fill.extend((0..5 * units).map(|_| command(Op::Write, rng.below(units) * 4096, 4096)));
    let now = in_time(&mut timed, &fill, 32, 0, 0);
    without_time(&mut untimed, &fill);
    let (a, b) = (watch(&mut timed, now, 1, pause), watch(&mut untimed, now, 2, pause));
    let apart = a.at_most.iter().zip(&b.at_most).map(|(x, y)| (x - y).abs()).fold(0.0, f64::max);
    println!("{what}: WA {:.4} timed, {:.4} untimed; occupancy apart by {apart:.5}", a.wa, b.wa);
    assert!((a.wa / b.wa - 1.0).abs() < 0.005, "{what}: WA {} timed, {} untimed", a.wa, b.wa);
    assert!(apart < 0.005, "{what}: occupancy apart by {apart}");
}

#[test]
fn placement_by_backlog_is_left_equivalent() {
    for (victim, op) in [("greedy", "0.28"), ("greedy", "0.127"), ("fifo", "0.28")] {
        let rig = lab_reference(&[
            ("capacity", "256MiB"),
            ("ftl.placement", "least-busy"),
            ("ftl.gc.victim", victim),
            ("ftl.over_provisioning", op),
        ]);
        both_ways_are_equivalent(&format!("least busy, {victim}, OP {op}"), &rig, 0);
    }
}

#[test]
fn idle_time_collection_leaves_equivalent_drives() {
    let rig = lab_reference(&[
        ("capacity", "256MiB"),
        ("ftl.gc.idle_after", "20ms"),
        ("ftl.gc.high", "4"),
    ]);
    both_ways_are_equivalent("idle-time collection", &rig, 500_000_000);
}
