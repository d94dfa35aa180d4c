//! Members that fail: data survive exactly when the level says so, with commands in flight; what is
//! lost is counted; rebuilding keeps to its rate.

use crate::common;

use common::audit::{Audit, random_script};
use common::rigs::{Shape, build, hold_to_promises};
use common::{all_counters, closed_loop, command, counters};
use ssdlab::device::Op;
use ssdlab::rig::Rig;
use ssdlab::rng::Stream;
use ssdlab::units::NEVER;
use std::collections::BTreeMap;

const NULL: &str = "kind = \"null\"\ncapacity = \"2MiB\"\nservice_time = \"40us\"";

const SSD: &str = "kind = \"ssd\"\ncapacity = \"4MiB\"\n\
                   nand = { channels = 2, ways = 2, page = \"8KiB\", pages_per_block = 16, \
                   t_read = \"60us\", t_program = \"600us\", t_erase = \"3ms\", transfer_mts = 400 }\n\
                   ftl = { over_provisioning = 0.5 }\n\
                   write_buffer = { size = \"256KiB\", power_loss_protected = false }";

fn rig(keys: &str, member: &str) -> Rig {
    let text = format!("[device]\nkind = \"array\"\n{keys}\n[device.member]\n{member}\n");
    Rig::parse(&text, "array").unwrap_or_else(|e| panic!("{e}\n{text}"))
}

/// `fail = [...]`: members and times in microseconds.
fn fail(members: &[(u32, u64)]) -> String {
    let one = |(member, at): &(u32, u64)| format!("{{ member = {member}, at = \"{at}us\" }}");
    format!("fail = [{}]", members.iter().map(one).collect::<Vec<_>>().join(", "))
}

/// Levels with the members that may be lost together.
const SURVIVES: &[(&str, &[&[u32]])] = &[
    ("level = \"raid1\"\ncount = 2", &[&[0], &[1]]),
    ("level = \"raid1\"\ncount = 3\nread_balance = \"nearest\"", &[&[0, 2], &[2, 1]]),
    ("level = \"raid10\"\ncount = 4\nchunk = \"16KiB\"", &[&[0, 2], &[3, 1], &[1]]),
    ("level = \"raid10\"\ncount = 3\nchunk = \"8KiB\"", &[&[0], &[1], &[2]]),
    ("level = \"raid10\"\ncount = 5\nchunk = \"8KiB\"\nlayout = \"n3\"", &[&[0, 1], &[4, 2]]),
    ("level = \"raid10\"\ncount = 4\nchunk = \"16KiB\"\nlayout = \"f2\"", &[&[0, 2], &[1]]),
    ("level = \"raid10\"\ncount = 3\nchunk = \"16KiB\"\nlayout = \"o2\"", &[&[0], &[2]]),
    ("level = \"raid5\"\ncount = 3\nchunk = \"8KiB\"", &[&[0], &[1], &[2]]),
    (
        "level = \"raid5\"\ncount = 5\nchunk = \"16KiB\"\nlayout = \"right-asymmetric\"\ntrim = true",
        &[&[0], &[4]],
    ),
    ("level = \"raid6\"\ncount = 4\nchunk = \"8KiB\"", &[&[0, 1], &[2, 0], &[3, 1]]),
    (
        "level = \"raid6\"\ncount = 6\nchunk = \"16KiB\"\nlayout = \"left-asymmetric\"\nstripe_cache = 17",
        &[&[0, 5], &[2, 3], &[4]],
    ),
    (
        "level = \"raid6\"\ncount = 5\nchunk = \"32KiB\"\nlayout = \"right-symmetric\"\ntrim = true",
        &[&[1, 2], &[4, 0]],
    ),
];

fn hold(rig: &Rig, seed: u64, steps: usize, depth: usize) {
    let script = random_script(seed, build(rig, seed, false).capacity(), steps);
    if let Err(violation) = hold_to_promises(rig, &script, depth, seed) {
        panic!("{violation:?}\n{}", rig.to_toml());
    }
}

#[test]
fn every_level_gives_back_all_data_without_the_members_that_it_can_do_without() {
    for (level, sets) in SURVIVES {
        for (n, members) in sets.iter().enumerate() {
            // One after the other, and both in one instant; early, and in the midst of it.
            for times in [[700, 700], [3_000, 9_000], [60_000, 61_000]] {
                let failures: Vec<(u32, u64)> = members.iter().copied().zip(times).collect();
                let rig = rig(&format!("{level}\n{}", fail(&failures)), NULL);
                hold(&rig, n as u64 + times[1], 700, [1, 16, 40][n % 3]);
            }
        }
    }
}

#[test]
fn every_level_gives_back_all_data_while_and_after_spares_are_rebuilt() {
    for (level, sets) in SURVIVES {
        for (n, members) in sets.iter().enumerate() {
            for (rate, spares) in [("200MB/s", 2), ("10MB/s", 1), ("1MB/s", 2)] {
                let failures: Vec<(u32, u64)> =
                    members.iter().copied().zip([2_000, 30_000]).collect();
                let keys = format!(
                    "{level}\n{}\nspares = {spares}\nrebuild_min = \"{rate}\"\nrebuild_max = \"{rate}\"",
                    fail(&failures)
                );
                hold(&rig(&keys, NULL), n as u64 + 50, 700, [16, 5, 40][n % 3]);
            }
        }
    }
}

#[test]
fn arrays_of_ssds_survive_what_their_level_survives() {
    for (level, failures) in [
        ("level = \"raid1\"\ncount = 2", fail(&[(1, 5_000)])),
        ("level = \"raid5\"\ncount = 4\nchunk = \"32KiB\"", fail(&[(2, 5_000)])),
        ("level = \"raid6\"\ncount = 5\nchunk = \"16KiB\"", fail(&[(0, 5_000), (3, 20_000)])),
    ] {
        for spares in [0, 1] {
            hold(&rig(&format!("{level}\nspares = {spares}\n{failures}"), SSD), 3, 700, 16);
        }
    }
}

#[test]
fn a_member_that_failed_and_was_rebuilt_may_be_followed_by_another() {
    // RAID 5, one after the other: three failures, three spares.
    let keys = format!(
        "level = \"raid5\"\ncount = 4\nchunk = \"16KiB\"\nspares = 3\nrebuild_min = \"400MB/s\"\n\
         rebuild_max = \"400MB/s\"\n{}",
        fail(&[(0, 2_000), (2, 250_000), (0, 500_000)])
    );
    let rig = rig(&keys, NULL);
    let mut device = build(&rig, 1, true);
    let script = random_script(1, device.capacity(), 3000);
    let oracle = Shape::of(&rig).oracle(device.capacity());
    let mut audit = Audit::new(&mut *device, Some(oracle));
    audit.run(&script, 8).unwrap();
    device.verify();
    let c = counters(&*device);
    assert_eq!((c["members_failed"], c["rebuilt_members"], c["members_missing"]), (3, 3, 0));
    assert_eq!(c["lost_bytes"], 0);
}

/// What an array says at the end of a script that it need not survive.
fn after(keys: &str) -> BTreeMap<&'static str, u64> {
    let rig = rig(keys, NULL);
    let mut device = build(&rig, 1, false);
    let script = random_script(1, device.capacity(), 700);
    let mut audit = Audit::new(&mut *device, None);
    audit.run(&script, 16).unwrap_or_else(|e| panic!("{e:?}\n{keys}"));
    counters(&*device)
}

#[test]
fn one_failure_more_than_the_level_survives_is_a_loss_that_is_counted() {
    let mib = |n: u64| n << 20;
    for (keys, failures, lost) in [
        ("level = \"linear\"\ncount = 2", fail(&[(1, 4_000)]), mib(2)),
        ("level = \"raid0\"\ncount = 3\nchunk = \"16KiB\"", fail(&[(1, 4_000)]), mib(2)),
        ("level = \"raid1\"\ncount = 2", fail(&[(0, 4_000), (1, 9_000)]), mib(2)),
        (
            "level = \"raid10\"\ncount = 4\nchunk = \"16KiB\"",
            fail(&[(2, 4_000), (3, 9_000)]),
            mib(2),
        ),
        // Of each stripe two chunks of four, parity being one of them in half of the stripes.
        (
            "level = \"raid5\"\ncount = 4\nchunk = \"16KiB\"",
            fail(&[(0, 4_000), (3, 9_000)]),
            mib(3),
        ),
        // Three of five; of the six places of parity in five stripes, three times two fifths are lost.
        (
            "level = \"raid6\"\ncount = 6\nchunk = \"16KiB\"",
            fail(&[(0, 4_000), (3, 9_000), (4, 9_000)]),
            mib(4),
        ),
    ] {
        let c = after(&format!("{keys}\n{failures}"));
        let slack = mib(2) / 64;
        assert!(c["lost_bytes"].abs_diff(lost) <= slack, "{keys}: {} not {lost}", c["lost_bytes"]);
        assert!(c["errors_read"] > 0 && c["errors_write"] > 0, "{keys}: {c:?}");
    }
    for (keys, sets) in SURVIVES {
        for members in *sets {
            let failures: Vec<_> = members.iter().copied().zip([4_000, 9_000]).collect();
            let c = after(&format!("{keys}\n{}", fail(&failures)));
            assert_eq!((c["lost_bytes"], c["errors_read"], c["errors_write"]), (0, 0, 0), "{keys}");
            assert_eq!(c["members_missing"], members.len() as u64);
        }
    }
}

/// When the last member was rebuilt, ns: with the host quiet, or reading all the time.
fn rebuilt_after(level: &str, rates: (&str, &str), busy: bool) -> u64 {
    let keys = format!(
        "{level}\nchunk = \"16KiB\"\nspares = 1\nrebuild_min = \"{}\"\nrebuild_max = \"{}\"\n{}",
        rates.0,
        rates.1,
        fail(&[(1, 1_000)])
    );
    let mut device = build(&rig(&keys, NULL), 1, false);
    let (mut now, mut done, mut tag) = (0, Vec::new(), 0);
    let mut rng = Stream::new(1, "reads");
    while counters(&*device)["rebuilt_members"] == 0 {
        if busy && tag == done.len() as u64 {
            let offset = rng.below(device.capacity() / 4096) * 4096;
            tag += 1;
            device.submit(now, ssdlab::device::Command { tag, ..command(Op::Read, offset, 4096) });
        }
        now = device.advance(now + 20_000, &mut done);
    }
    now
}

#[test]
fn rebuilding_keeps_to_its_rate() {
    for level in [
        "level = \"raid1\"\ncount = 2",
        "level = \"raid5\"\ncount = 4",
        "level = \"raid6\"\ncount = 5",
    ] {
        for (busy, seconds) in [(false, 2.097152 / 20.0), (true, 2.097152 / 4.0)] {
            let found = (rebuilt_after(level, ("4MB/s", "20MB/s"), busy) - 1_000_000) as f64 / 1e9;
            assert!(
                (found / seconds - 1.0).abs() < 0.02,
                "{level} {busy}: {found} s, not {seconds}"
            );
        }
    }
}

#[test]
fn several_blocks_at_once_keep_the_spare_busy() {
    for level in [
        "level = \"raid1\"\ncount = 2",
        "level = \"raid10\"\ncount = 4",
        "level = \"raid5\"\ncount = 4",
        "level = \"raid6\"\ncount = 5",
    ] {
        let time = |window: &str| {
            let level = format!("{level}\nrebuild_window = \"{window}\"");
            rebuilt_after(&level, ("1GB/s", "1GB/s"), false) - 1_000_000
        };
        // 128 blocks, each read in 40 us and then written in 40 us; or written while the next is read.
        assert!(time("4KiB").abs_diff(128 * 80_000) < 100_000, "{level}: {}", time("4KiB"));
        assert!(time("64KiB").abs_diff(129 * 40_000) < 400_000, "{level}: {}", time("64KiB"));
    }
}

#[test]
fn errors_while_rebuilding_lose_data_only_without_another_parity() {
    let of = |level: &str, count: u32| {
        let keys = format!(
            "level = \"{level}\"\ncount = {count}\nchunk = \"16KiB\"\nspares = 1\nuber = 1e-6\n{}",
            fail(&[(1, 1_000)])
        );
        after(&keys)
    };
    // 128 blocks of 16 KiB times the members read: 1 - exp(-8 x 49152 x 1e-6) = 0.325 of each.
    let raid5 = of("raid5", 4);
    assert!((25..60).contains(&raid5["rebuild_read_errors"]), "{raid5:?}");
    assert_eq!(raid5["lost_bytes"], 4096 * raid5["rebuild_read_errors"]);
    let raid6 = of("raid6", 5);
    assert!(raid6["rebuild_read_errors"] > 25 && raid6["lost_bytes"] == 0, "{raid6:?}");
}

#[test]
fn stripes_that_are_written_when_a_member_fails_are_open_to_the_write_hole() {
    let keys = format!("level = \"raid5\"\ncount = 4\nchunk = \"16KiB\"\n{}", fail(&[(1, 10_000)]));
    let mut device = build(&rig(&keys, NULL), 1, false);
    let mut rng = Stream::new(1, "writes");
    let blocks = device.capacity() / 4096;
    let next = || command(Op::Write, rng.below(blocks) * 4096, 4096);
    closed_loop(&mut *device, 32, 4000, 0, next, |_, _| {});
    let open = counters(&*device)["write_hole_stripes"];
    assert!((1..=32).contains(&open), "{open}");
}

#[test]
fn a_member_fails_by_its_wear() {
    let keys = "level = \"raid1\"\ncount = 2\nfail = [{ member = 1, worn = 40 }]";
    let member = SSD.replace("channels = 2,", "rated_pe_cycles = 20, channels = 2,");
    let mut device = build(&rig(keys, &member), 1, false);
    let mut rng = Stream::new(1, "writes");
    let next = || command(Op::Write, rng.below(1000) * 4096, 4096);
    closed_loop(&mut *device, 8, 20_000, 0, next, |_, _| {});
    let mut all = BTreeMap::new();
    all_counters(&*device, "", &mut all);
    assert_eq!(all["members_failed"], 1);
    // It was seen at the next look, and wore on no further.
    assert!((40..48).contains(&all["member1.percentage_used"]), "{all:?}");
    assert!(all["member0.percentage_used"] > 60, "{}", all["member0.percentage_used"]);
}

#[test]
fn a_degraded_read_costs_a_read_of_every_other_member() {
    let keys = format!("level = \"raid5\"\ncount = 5\nchunk = \"16KiB\"\n{}", fail(&[(0, 10)]));
    let mut device = build(&rig(&keys, NULL), 1, false);
    assert_eq!(device.advance(1_000_000, &mut Vec::new()), 1_000_000);
    // Chunk 0 of stripe 0 lies on member 0 (left-symmetric, parity on the last member).
    device.submit(1_000_000, command(Op::Read, 0, 4096));
    let mut done = Vec::new();
    assert_eq!(device.advance(NEVER - 1, &mut done), 1_040_000);
    let mut all = BTreeMap::new();
    all_counters(&*device, "", &mut all);
    let reads = |i: u32| all[&format!("member{i}.member_reads")];
    assert_eq!([0, 1, 2, 3, 4].map(reads), [0, 1, 1, 1, 1]);
}

#[test]
fn failures_and_spares_that_make_no_sense_are_refused() {
    let said = |keys: &str| {
        let keys = format!("level = \"raid5\"\ncount = 3\n{keys}");
        rig(&keys, NULL).build(1, false).err().map(|e| e.to_string()).unwrap_or_default()
    };
    for (keys, expected) in [
        (
            "fail = [{ member = 3, at = \"1s\" }]",
            "fail.0.member: found 3, expected a member from 0 to 2",
        ),
        ("fail = [{ member = 1 }]", "fail.0: expected either at (a time) or worn (percent)"),
        ("uber = 0.1", "uber: found 0.1, expected from 0 to 0.000001 per bit"),
        ("rebuild_max = \"1B/s\"", "rebuild_max: found 1B/s, expected at least 1kB/s"),
    ] {
        let said = said(keys);
        assert!(said.contains(expected), "{keys}: {said}");
    }
}

/// Clearing the bitmap of the array above was once under way, in a stripe of this one, when a purge
/// came: the stripe was then made of what had been before.
#[test]
fn a_purge_waits_for_the_write_of_the_bitmap() {
    let keys = "level = \"raid1\"\ncount = 2\nbitmap = \"256KiB\"\nbitmap_delay = \"2ms\"";
    let member = "kind = \"array\"\nlevel = \"raid6\"\ncount = 5\nspares = 1\nchunk = \"16KiB\"\n\
                  fail = [{ member = 1, at = \"3ms\" }, { member = 4, at = \"40ms\" }]\n\
                  [device.member.member]\nkind = \"ssd\"\ncapacity = \"6MiB\"\n\
                  ftl = { over_provisioning = 0.4, slc_cache = { static_size = \"512KiB\", \
                  when_full = \"direct\", fold_idle_after = \"4ms\", t_read = \"25us\", \
                  t_program = \"200us\" } }\n\
                  nand = { channels = 2, ways = 2, page = \"4KiB\", pages_per_block = 32, \
                  bits_per_cell = 4, t_read = \"140us\", t_program = \"2ms\", t_erase = \"9ms\", \
                  transfer_mts = 400 }";
    let rig = rig(keys, member);
    let script = random_script(3, build(&rig, 3, false).capacity(), 1500);
    hold_to_promises(&rig, &script, 16, 3).unwrap();
}
