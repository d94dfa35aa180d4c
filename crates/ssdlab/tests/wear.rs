//! Wear levelling: what it levels, and what that costs.

use crate::common;

use common::{Sets, command, lab_ssd};
use ssdlab::device::ssd::Ssd;
use ssdlab::device::{Command, Device, Op};
use ssdlab::rng::Stream;

const UNIT: u64 = 4096;
/// Mapping units of a superblock of `lab-reference` on one die.
const B: f64 = 64.0;

/// A full drive of one die.
fn full(policy: &str, more: Sets) -> Ssd {
    let mut sets = vec![
        ("nand.channels", "1"),
        ("nand.ways", "1"),
        ("capacity", "100MiB"),
        ("ftl.over_provisioning", "0.28"),
        ("ftl.wear_leveling.policy", policy),
    ];
    sets.extend_from_slice(more);
    let mut ssd = lab_ssd(&sets, 1);
    common::fill_sequentially(&mut ssd, UNIT);
    ssd
}

/// Overwrites all but the first `cold` of the units at random, until each superblock has been erased so often on the
/// mean.
fn overwrite(ssd: &mut Ssd, cold: u64, erases: u64) {
    let (units, mut rng) = (ssd.capacity() / UNIT, Stream::new(1, "overwrite"));
    let superblocks = ssd.ftl().blocks().erases.len() as u64;
    let until = ssd.ftl().counters.superblocks_erased + erases * superblocks;
    while ssd.ftl().counters.superblocks_erased < until {
        let unit = cold + rng.below(units - cold);
        ssd.apply(&command(Op::Write, unit * UNIT, UNIT));
    }
    ssd.verify();
}

/// Least, mean and most erases of a superblock.
fn wear(ssd: &Ssd) -> [f64; 3] {
    let erases = &ssd.ftl().blocks().erases;
    let mean = f64::from(erases.iter().sum::<u32>()) / erases.len() as f64;
    [f64::from(*erases.iter().min().unwrap()), mean, f64::from(*erases.iter().max().unwrap())]
}

/// A share `c` of the superblocks with data that never changes: one more move of each for every `spread + 1` erases.
#[test]
fn moving_cold_data_costs_its_share_over_the_spread() {
    for (spread, value) in [(4, "4"), (16, "16")] {
        for pace in ["blocking", "paced"] {
            let keys: Sets = &[("ftl.wear_leveling.spread", value), ("ftl.gc.pace", pace)];
            let mut ssd = full("threshold", keys);
            let cold = ssd.capacity() / UNIT / 2;
            overwrite(&mut ssd, cold, 60);
            let before = ssd.ftl().counters;
            // Moves come in waves of so many erases.
            overwrite(&mut ssd, cold, 8 * (spread + 1));
            let after = ssd.ftl().counters;
            let share = cold as f64 / B / ssd.ftl().blocks().erases.len() as f64;
            let moves = (after.wear_moves - before.wear_moves) as f64;
            let erases = (after.superblocks_erased - before.superblocks_erased) as f64;
            let (measured, expected) = (moves / erases, share / (spread + 1) as f64);
            println!("spread {spread}, {pace}: {measured:.5}, closed form {expected:.5}");
            assert!((measured / expected - 1.0).abs() < 0.03, "{measured}, not {expected}");
            let units = (after.programs_wear - before.programs_wear) as f64;
            assert!(units > 0.99 * moves * B, "only what is cold moves: {}", units / moves);
        }
    }
}

#[test]
fn only_what_moves_cold_data_levels_the_wear_of_its_blocks() {
    for policy in ["none", "dynamic", "threshold"] {
        let mut ssd = full(policy, &[("ftl.wear_leveling.spread", "8")]);
        let cold = ssd.capacity() / UNIT / 2;
        overwrite(&mut ssd, cold, 100);
        let [least, mean, most] = wear(&ssd);
        if policy == "threshold" {
            assert!(most - least <= 2.0 * 8.0, "{least} to {most}");
            continue;
        }
        let all = ssd.ftl().blocks().erases.len() as f64;
        let expected = all / (all - cold as f64 / B);
        assert_eq!(least, 0.0, "{policy}");
        assert!((most / mean / expected - 1.0).abs() < 0.05, "{policy}: {most}, mean {mean}");
    }
}

/// Data that is written in two streams of different lives, in a drive that has many free superblocks.
#[test]
fn the_least_worn_free_superblock_is_written_next() {
    let spread = |policy, low| {
        let mut ssd = lab_ssd(
            &[
                ("nand.channels", "1"),
                ("nand.ways", "1"),
                ("capacity", "100MiB"),
                ("ftl.over_provisioning", "0.28"),
                ("ftl.gc.separate_frontier", "true"),
                ("ftl.gc.low", low),
                ("ftl.wear_leveling.policy", policy),
            ],
            1,
        );
        common::fill_sequentially(&mut ssd, UNIT);
        overwrite(&mut ssd, 0, 60);
        let [least, _, most] = wear(&ssd);
        most - least
    };
    let (rotation, dynamic) = (spread("none", "64"), spread("dynamic", "64"));
    assert!(dynamic <= 3.0 && rotation >= 3.0 * dynamic, "{dynamic}, in rotation {rotation}");
    // As its description says.
    assert_eq!(spread("none", "1"), spread("dynamic", "1"));
}

/// Parity takes of the superblock to which cold data moves, so that less of it is there for what moves: without counting
/// that, collection finds no superblock to go on with.
#[test]
fn parity_in_the_superblock_that_cold_data_moves_to_is_counted() {
    for seed in 1..=40 {
        let sets = [
            ("nand.channels", "2"),
            ("nand.ways", "2"),
            ("nand.planes", "2"),
            ("nand.page", "16KiB"),
            ("nand.pages_per_block", "32"),
            ("capacity", "48MiB"),
            ("ftl.over_provisioning", "0.25"),
            ("ftl.compression.granule", "512B"),
            ("ftl.gc.scope", "drive"),
            ("ftl.gc.pace", "paced"),
            ("ftl.gc.separate_frontier", "true"),
            ("ftl.parity.stripe", "4"),
            ("ftl.wear_leveling.policy", "threshold"),
            ("ftl.wear_leveling.spread", "1"),
        ];
        let mut ssd = lab_ssd(&sets, seed);
        common::fill_sequentially(&mut ssd, UNIT);
        let (units, mut rng) = (ssd.capacity() / UNIT * 6 / 10, Stream::new(seed, "writes"));
        for _ in 0..20_000 {
            let len = 1 + rng.below(5);
            let at = rng.below(units - len);
            let write = command(Op::Write, at * UNIT, len * UNIT);
            ssd.apply(&Command { compressible: 40, ..write });
        }
        ssd.verify();
    }
}
