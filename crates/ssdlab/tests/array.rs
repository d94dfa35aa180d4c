//! Arrays against what is known exactly: md's layouts, capacities, the commands that a write costs,
//! the worked example of a slow member, and closed forms of waiting for the slowest.

use crate::common;

use common::{Measured, closed_loop, command, counters};
use ssdlab::array::{Array, ArrayKeys};
use ssdlab::device::{Build, Command, Device, Op};
use ssdlab::rig::{Rig, keys_of, take_members};
use ssdlab::rng::Stream;
use ssdlab::stats::Part;
use std::fmt::Write;

const NULL: &str = "kind = \"null\"\ncapacity = \"1MiB\"\nservice_time = \"100us\"";

fn table(keys: &str, member: &str) -> toml::Table {
    format!("{keys}\n[member]\n{member}").parse().unwrap()
}

/// An array with its type.
fn array_of(mut table: toml::Table) -> Array {
    let build = Build { seed: 1, keep_versions: false, path: "device".into() };
    let members = take_members(&mut table, &build).unwrap();
    let keys: ArrayKeys = keys_of(table).unwrap();
    Array::new(&keys, members, &build).unwrap()
}

fn array(keys: &str, member: &str) -> Array {
    array_of(table(keys, member))
}

fn rig(keys: &str, member: &str) -> Rig {
    let text = format!("[device]\nkind = \"array\"\n{keys}\n[device.member]\n{member}\n");
    Rig::parse(&text, "my.toml").unwrap()
}

/// Which chunk lies in which row of which member: letters by row, as md's documentation draws it.
fn drawn(keys: &str, rows: u64) -> Vec<String> {
    let array = array(&format!("chunk = \"4KiB\"\n{keys}"), NULL);
    let layout = array.layout();
    let members = array.children().len();
    let mut cells = vec![vec!['-'; members]; rows as usize];
    for chunk in 0..layout.capacity() / 4096 {
        for copy in 0..layout.copies() {
            let (place, run) = layout.place(chunk * 4096, copy);
            assert_eq!(run, 4096);
            let row = (place.offset / 4096) as usize;
            if let Some(row) = cells.get_mut(row) {
                let cell = &mut row[place.member as usize];
                assert_eq!(*cell, '-', "chunk {chunk} lies where another one does");
                *cell = char::from_u32('A' as u32 + chunk as u32).unwrap();
            }
        }
    }
    cells.iter().map(|row| row.iter().collect()).collect()
}

#[test]
fn raid0_and_raid10_lie_as_mds_documentation_draws_them() {
    assert_eq!(drawn("level = \"raid0\"\ncount = 3", 3), ["ABC", "DEF", "GHI"]);
    let raid10 = |layout: &str, count: u32, rows| {
        drawn(&format!("level = \"raid10\"\nlayout = \"{layout}\"\ncount = {count}"), rows)
    };
    // near=2: "copies of one chunk are near each other"; an odd number of members is allowed.
    assert_eq!(raid10("n2", 4, 3), ["AABB", "CCDD", "EEFF"]);
    assert_eq!(raid10("n2", 3, 4), ["AAB", "BCC", "DDE", "EFF"]);
    assert_eq!(raid10("n3", 4, 3), ["AAAB", "BBCC", "CDDD"]);
    // offset=2: "each stripe is duplicated and the duplicate is offset by one device".
    assert_eq!(raid10("o2", 4, 4), ["ABCD", "DABC", "EFGH", "HEFG"]);
    // far=2: the second half of each device holds the stripes of the first, one device further on.
    let far = drawn("level = \"raid10\"\nlayout = \"f2\"\ncount = 4", 256);
    assert_eq!(
        (&far[0][..], &far[1][..], &far[128][..], &far[129][..]),
        ("ABCD", "EFGH", "DABC", "HEFG")
    );
}

/// A stripe as mdadm(8) describes its layouts: where parity is, and where data begin and go on.
fn described(name: &str, members: usize, parities: usize, row: usize) -> Vec<usize> {
    let left = name.starts_with("left");
    let first = if left { members - 1 - row % members } else { row % members };
    let parity: Vec<usize> = (0..parities).map(|i| (first + i) % members).collect();
    let begin = if name.ends_with("-symmetric") { first + parities } else { 0 };
    let around = (begin..begin + members).map(|m| m % members);
    around.filter(|m| !parity.contains(m)).collect()
}

#[test]
fn raid5_and_raid6_lie_as_mds_documentation_describes_them() {
    // The default of both, drawn: "-" is parity.
    let of = |level: &str, count| drawn(&format!("level = \"{level}\"\ncount = {count}"), 5);
    assert_eq!(of("raid5", 5), ["ABCD-", "FGH-E", "KL-IJ", "P-MNO", "-QRST"]);
    assert_eq!(of("raid6", 5), ["-ABC-", "DEF--", "HI--G", "L--JK", "--MNO"]);
    for (level, parities) in [("raid5", 1), ("raid6", 2)] {
        for name in ["left-symmetric", "left-asymmetric", "right-symmetric", "right-asymmetric"] {
            for members in parities + 2..8 {
                let keys = format!(
                    "level = \"{level}\"\ncount = {members}\nlayout = \"{name}\"\nchunk = \"4KiB\""
                );
                let array = array(&keys, NULL);
                for row in 0..3 * members {
                    let data = described(name, members, parities, row);
                    for (nth, &member) in data.iter().enumerate() {
                        let chunk = row * (members - parities) + nth;
                        let (place, _) = array.layout().place(chunk as u64 * 4096, 0);
                        let found = (place.member as usize, place.offset);
                        assert_eq!(found, (member, row as u64 * 4096), "{keys} chunk {chunk}");
                    }
                }
            }
        }
    }
}

#[test]
fn capacity_is_that_of_the_level() {
    let kib = |keys: &str| array(&format!("chunk = \"64KiB\"\n{keys}"), NULL).capacity() >> 10;
    assert_eq!(kib("level = \"linear\"\ncount = 5"), 5 * 1024);
    assert_eq!(kib("level = \"raid0\"\ncount = 8"), 8 * 1024);
    assert_eq!(kib("level = \"raid1\"\ncount = 3"), 1024);
    assert_eq!(kib("level = \"raid10\"\ncount = 8"), 4 * 1024);
    assert_eq!(kib("level = \"raid10\"\ncount = 3"), 3 * 512);
    assert_eq!(kib("level = \"raid10\"\ncount = 6\nlayout = \"f3\""), 5 * 6 * 64);
    assert_eq!(kib("level = \"raid5\"\ncount = 8"), 7 * 1024);
    assert_eq!(kib("level = \"raid6\"\ncount = 8"), 6 * 1024);
    // The smallest member counts, and of it whole chunks.
    let odd = "members = [{ kind = \"null\", capacity = \"1MiB\" }, \
               { kind = \"null\", capacity = \"1000KiB\" }, { kind = \"null\", capacity = \"3MiB\" }]";
    let unequal = |level: &str| {
        let keys = format!("level = \"{level}\"\nchunk = \"64KiB\"\naccept_waste = true\n{odd}");
        let array = array_of(keys.parse().unwrap());
        (array.capacity() >> 10, counters(&array)["wasted_bytes"] >> 10)
    };
    assert_eq!(unequal("raid0"), (3 * 960, 1024 + 1000 + 3072 - 3 * 960));
    assert_eq!(unequal("raid5"), (2 * 960, 1024 + 1000 + 3072 - 3 * 960));
    assert_eq!(unequal("raid1"), (1000, 1024 + 3072 - 2000));
    assert_eq!(unequal("linear"), (1024 + 1000 + 3072, 0));
}

/// Reads and writes of members that one write of the array takes.
fn cost(keys: &str, offset: u64, len: u64) -> (u64, u64) {
    let mut array = array(keys, NULL);
    let mut next = || command(Op::Write, offset, len);
    closed_loop(&mut array, 1, 1, 0, &mut next, |_, _| {});
    let sum = |name: &str| {
        array.children().iter().map(|(_, member)| counters(*member)[name]).sum::<u64>()
    };
    (sum("member_reads"), sum("member_writes"))
}

#[test]
fn a_small_write_costs_one_two_four_or_six_commands() {
    let small = |keys: &str| cost(keys, 12 << 10, 4 << 10);
    assert_eq!(small("level = \"raid0\"\ncount = 8"), (0, 1));
    assert_eq!(small("level = \"raid1\"\ncount = 2"), (0, 2));
    assert_eq!(small("level = \"raid10\"\ncount = 8"), (0, 2));
    assert_eq!(small("level = \"raid5\"\ncount = 8"), (2, 2));
    assert_eq!(small("level = \"raid6\"\ncount = 8"), (3, 3));
    // What is not written takes fewer reads than what is: reconstruct-write.
    assert_eq!(small("level = \"raid5\"\ncount = 3"), (1, 2));
    assert_eq!(small("level = \"raid6\"\ncount = 4"), (1, 3));
    // As many: md reconstructs. Three of four chunks: one read instead of four.
    assert_eq!(small("level = \"raid5\"\ncount = 4"), (2, 2));
    let keys = "level = \"raid5\"\ncount = 5\nchunk = \"16KiB\"";
    assert_eq!(cost(keys, 0, 48 << 10), (1, 4));
    assert_eq!(cost(keys, 0, 16 << 10), (2, 2));
}

#[test]
fn a_whole_stripe_is_written_without_a_read() {
    for members in [3, 5, 8] {
        let keys = |level| format!("level = \"{level}\"\ncount = {members}\nchunk = \"16KiB\"");
        let width = |parities| (members - parities) * (16 << 10);
        assert_eq!(cost(&keys("raid5"), width(1), width(1)), (0, members));
        if members > 3 {
            assert_eq!(cost(&keys("raid6"), width(2), width(2)), (0, members));
        }
    }
    // Two stripes and a chunk: the chunk alone is read for.
    let keys = "level = \"raid5\"\ncount = 5\nchunk = \"16KiB\"";
    assert_eq!(cost(keys, 0, (2 * 64 + 16) << 10), (2, 2 * 5 + 2));
    // A write over the border of two chunks, in rows that do not overlap, has two stretches of parity.
    assert_eq!(cost(keys, 12 << 10, 8 << 10), (4, 4));
}

#[test]
fn writes_that_wait_for_their_stripe_go_together() {
    // The first of 16 pieces of a stripe is written by itself, the other 15 as one.
    let mut array = array("level = \"raid5\"\ncount = 5\nchunk = \"16KiB\"", NULL);
    let mut at = 0;
    let mut next = || {
        at += 4096;
        command(Op::Write, at - 4096, 4096)
    };
    closed_loop(&mut array, 16, 16, 0, &mut next, |_, _| {});
    // Chunk 0 has four rows: each is a stripe of its own to begin with, and starts at once.
    let c = counters(&array);
    assert_eq!(c["array_writes"], 16);
    assert_eq!((c["stripes_written"], c["stripes_joined"]), (5, 11), "{c:?}");
}

/// Rows of a stripe do not disturb each other, so that it makes no difference over how many stripes
/// writes are scattered.
#[test]
fn scattered_writes_are_as_fast_in_few_stripes_as_in_many() {
    let rate = |stripes: u64| {
        let member = format!(
            "kind = \"null\"\ncapacity = \"{}KiB\"\nservice_time = \"100us\"\nservers = 16",
            stripes * 256
        );
        let mut array = array("level = \"raid6\"\ncount = 8\nchunk = \"256KiB\"", &member);
        let mut rng = Stream::new(3, "places");
        let blocks = array.capacity() / 4096;
        let next = || command(Op::Write, rng.below(blocks) * 4096, 4096);
        closed_loop(&mut array, 256, 20_000, 0, next, |_, _| {}).per_second()
    };
    let (few, many) = (rate(300), rate(3000));
    assert!((few / many - 1.0).abs() < 0.03, "{few} and {many} writes a second");
}

#[test]
fn reads_go_past_the_stripe_cache() {
    let mut array = array("level = \"raid5\"\ncount = 5\nchunk = \"16KiB\"", NULL);
    let mut ops = [
        command(Op::Write, 0, 64 << 10),
        command(Op::Read, 8192, 4096),
        command(Op::Write, 8192, 4096),
        command(Op::Read, 64 << 10, 4096),
    ]
    .into_iter();
    let mut latencies = Vec::new();
    closed_loop(&mut array, 1, 4, 0, || ops.next().unwrap(), |latency, _| latencies.push(latency));
    // The second write finds in the cache what its parity needs.
    assert_eq!(latencies, [100_000; 4], "ns");
}

#[test]
fn raid1_reads_are_shared_out_and_wait_for_one_member_only() {
    for balance in ["round-robin", "least-pending", "nearest"] {
        let keys = format!("level = \"raid1\"\ncount = 2\nread_balance = \"{balance}\"");
        let mut array = array(&keys, NULL);
        let mut rng = Stream::new(1, "reads");
        let mut next = || command(Op::Read, rng.below(256) * 4096, 4096);
        let measured = closed_loop(&mut array, 8, 2000, 0, &mut next, |_, _| {});
        let reads = |i: usize| counters(array.children()[i].1)["member_reads"];
        if balance == "nearest" {
            // Each keeps to a part of the space, and one of them may be asked more often.
            assert!(reads(0).abs_diff(reads(1)) < 600, "{} {}", reads(0), reads(1));
        } else {
            assert_eq!((reads(0), reads(1)), (1000, 1000), "{balance}");
            assert!((measured.per_second() - 20_000.0).abs() < 100.0, "{balance}");
        }
    }
}

/// Reads by member after 400 commands of the host, `depth` at a time.
fn reads_by_member(keys: &str, depth: u64, mut next: impl FnMut() -> Command) -> Vec<u64> {
    let mut array = array(keys, NULL);
    closed_loop(&mut array, depth, 400, 0, &mut next, |_, _| {});
    array.children().iter().map(|(_, child)| counters(*child)["member_reads"]).collect()
}

#[test]
fn reads_in_order_stay_with_one_member_of_raid1_as_in_md() {
    for (balance, all) in [("least-pending", true), ("nearest", true), ("round-robin", false)] {
        let keys = format!("level = \"raid1\"\ncount = 2\nread_balance = \"{balance}\"");
        // One stream alone, between writes, and two streams.
        let mut at = 0..;
        let one = reads_by_member(&keys, 8, || command(Op::Read, at.next().unwrap() * 2048, 2048));
        let mut at = 0..;
        let written = reads_by_member(&keys, 8, || match at.next().unwrap() {
            n if n % 2 == 0 => command(Op::Read, n / 2 * 4096, 4096),
            n => command(Op::Write, (n * 37) % 256 * 4096, 4096),
        });
        let mut at = 0..;
        let two = reads_by_member(&keys, 8, || {
            let n = at.next().unwrap();
            command(Op::Read, (n / 2 + n % 2 * 40) * 4096, 4096)
        });
        if all {
            assert_eq!((one, written), (vec![400, 0], vec![200, 0]), "{balance}");
        } else {
            assert_eq!((one, written), (vec![200; 2], vec![100; 2]), "{balance}");
        }
        assert_eq!(two, [200; 2], "{balance}");
    }
}

#[test]
fn nearest_takes_an_idle_member_first_and_the_lowest_address_of_far_copies() {
    let random = |keys: &str, depth: u64| {
        let mut rng = Stream::new(1, "reads");
        let blocks = array(keys, NULL).capacity() / 4096;
        reads_by_member(keys, depth, || command(Op::Read, rng.below(blocks) * 4096, 4096))
    };
    let mirror = "level = \"raid1\"\ncount = 2\nread_balance = \"nearest\"";
    assert!(random(mirror, 1)[0] > 390, "all idle: the first, but where a read goes on");
    assert!(random(mirror, 2)[1] > 100, "one busy: the other one");
    let far = "level = \"raid10\"\ncount = 2\nlayout = \"f2\"\nchunk = \"4KiB\"\nread_balance = \"nearest\"";
    let mut chunk = 0..;
    let even =
        reads_by_member(far, 8, || command(Op::Read, chunk.next().unwrap() % 64 * 8192, 4096));
    assert_eq!(even, [400, 0], "chunks whose copy of the lower address is on the first");
}

#[test]
fn a_write_waits_for_its_bit_once_and_the_bit_is_cleared_when_it_rests() {
    let keys = "level = \"raid1\"\ncount = 2\nbitmap = \"64KiB\"\nbitmap_delay = \"1s\"";
    let mut array = array(keys, NULL);
    assert_eq!(array.capacity(), (1024 - 4) << 10);
    let mut offsets = [0, 4096, 8192, 64 << 10, 0].into_iter();
    let next = || command(Op::Write, offsets.next().unwrap(), 4096);
    let mut seen = Vec::new();
    closed_loop(&mut array, 1, 5, 0, next, |latency, c| {
        seen.push((latency, c.parts[Part::Bitmap]))
    });
    let (waits, goes) = ((200_000, 100_000), (100_000, 0));
    assert_eq!(seen, [waits, goes, goes, waits, goes], "latency and waiting for the bitmap, ns");
    assert_eq!(counters(&array)["bitmap_writes"], 2);
    // Looked at twice without a write between, both bits are cleared at once.
    array.advance(3_000_000_000, &mut Vec::new());
    assert_eq!(counters(&array)["bitmap_writes"], 3);
    assert_eq!(array.next_event(), ssdlab::units::NEVER);
    // Four writes at once to four regions that are clear: the first bit goes alone, the rest together.
    let mut at = 0;
    let next = || {
        at += 64 << 10;
        command(Op::Write, at, 4096)
    };
    closed_loop(&mut array, 4, 4, 4_000_000_000, next, |_, _| {});
    assert_eq!(counters(&array)["bitmap_writes"], 5);
}

/// Otherwise a loss of power could leave its members different where no bit says so.
#[test]
fn a_write_waits_for_a_bit_that_another_one_has_asked_for() {
    let keys = "level = \"raid1\"\ncount = 2\nbitmap = \"64KiB\"\nbitmap_delay = \"1s\"";
    let mut array = array(keys, NULL);
    let mut done = Vec::new();
    // A member does one thing at a time, in 100 us: the page with the bit of the first region, its two
    // writes, the page with the bit of the second, its two writes.
    let writes = [(0, 0), (10_000, 4096), (20_000, 64 << 10), (30_000, 68 << 10)];
    for (at, offset) in writes {
        while array.advance(at, &mut done) < at {}
        array.submit(at, command(Op::Write, offset, 4096));
    }
    while array.advance(1_000_000, &mut done) < 1_000_000 {}
    let seen: Vec<_> = done.iter().map(|c| (c.time, c.parts[Part::Bitmap])).collect();
    let (first, second) =
        ([(200_000, 100_000), (300_000, 90_000)], [(500_000, 380_000), (600_000, 370_000)]);
    let expected = [first, second].concat();
    assert_eq!(seen, expected, "end and waiting for the bitmap, ns");
}

/// The request of the RAID article: 4 MiB over 8 members, 512 KiB each, served in these times.
const TIMES_US: [u64; 8] = [4100, 2200, 1900, 1400, 1000, 9700, 5400, 8600];

#[test]
fn a_write_takes_as_long_as_its_slowest_member_and_the_others_idle() {
    let mut members = String::from("level = \"raid0\"\nchunk = \"512KiB\"\nmembers = [");
    for time in TIMES_US {
        let _ = write!(
            members,
            "{{ kind = \"null\", capacity = \"8MiB\", service_time = \"{time}us\" }},"
        );
    }
    let mut array = array_of(format!("{members}]").parse().unwrap());
    let mut parts = None;
    let next = || command(Op::Write, 0, 4 << 20);
    let measured = closed_loop(&mut array, 1, 1, 0, next, |_, c| parts = Some(c.parts.clone()));
    assert_eq!(measured.latency_max, 9_700_000, "ns");
    for (time, (place, member)) in TIMES_US.iter().zip(array.children()) {
        assert_eq!(counters(member)["member_busy_ns"], time * 1000, "{place}");
    }
    // Member 4 (1.4 ms) is busy 14 % of the time, member 5 (1.0 ms) 10 %, member 6 all of it.
    let utilisation = |i: usize| (TIMES_US[i] * 1000) as f64 / measured.elapsed as f64;
    assert_eq!(utilisation(5), 1.0);
    assert!((0.10..0.15).contains(&utilisation(3)) && (0.10..0.15).contains(&utilisation(4)));
    // The mean is 4.2875 ms; the rest is waiting for the slowest: efficiency .442.
    let parts = parts.unwrap();
    assert_eq!(parts[Part::Service], 4_287_500);
    assert_eq!(parts[Part::SlowestMember], 9_700_000 - 4_287_500);
}

/// Whole stripes written to `n` members of one server each, `depth` at a time.
fn stripes(n: u64, latencies: &str, depth: u64, total: u64) -> Measured {
    let member = format!(
        "kind = \"measured\"\ncapacity = \"4MiB\"\nread = [{{ mean = \"1ms\" }}]\nwrite = [{{ mean = \"1ms\", {latencies} }}]"
    );
    let mut array = array(&format!("level = \"raid0\"\ncount = {n}\nchunk = \"4KiB\""), &member);
    let mut rng = Stream::new(3, "stripes");
    let next = || command(Op::Write, rng.below(1024) * n * 4096, n * 4096);
    closed_loop(&mut array, depth, total, 0, next, |_, _| {})
}

/// Share of the time in which a member works: 1 if nobody waited for anybody.
fn efficiency(n: u64, latencies: &str, depth: u64, total: u64) -> f64 {
    stripes(n, latencies, depth, total).per_second() / 1000.0
}

#[test]
fn at_depth_1_throughput_falls_by_the_mean_over_the_mean_maximum() {
    let harmonic = |n: u64| (1..=n).map(|i| 1.0 / i as f64).sum::<f64>();
    let exponential = "distribution = \"exponential\"";
    let normal = "distribution = \"normal\", spread = 0.2";
    let two = "distribution = \"two-point\", spread = 5, share = 0.02";
    let two_point = |n: i32| (1.0 - 0.02 + 0.1) / (5.0 - 4.0 * 0.98f64.powi(n));
    let lognormal = "distribution = \"lognormal\", spread = 0.3";
    for (n, latencies, expected) in [
        (8, exponential, 1.0 / harmonic(8)),
        (4, exponential, 1.0 / harmonic(4)),
        (8, normal, 1.0 / (1.0 + 1.424 * 0.2)),
        (16, normal, 1.0 / (1.0 + 1.766 * 0.2)),
        (8, two, two_point(8)),
        (16, two, two_point(16)),
        (4, lognormal, 0.751),
        (8, lognormal, 0.671),
        (16, lognormal, 0.608),
    ] {
        let found = efficiency(n, latencies, 1, 60_000);
        assert!((found / expected - 1.0).abs() < 0.01, "{n} {latencies}: {found}, not {expected}");
    }
}

#[test]
fn more_stripes_in_flight_bring_the_efficiency_of_fork_and_join() {
    for (latencies, depths, expected) in [
        (
            "distribution = \"lognormal\", spread = 0.5",
            [1, 2, 4, 8, 32],
            [0.530, 0.767, 0.890, 0.947, 0.987],
        ),
        ("distribution = \"exponential\"", [1, 2, 4, 8, 32], [0.368, 0.559, 0.728, 0.845, 0.959]),
    ] {
        for (depth, expected) in depths.into_iter().zip(expected) {
            let found = efficiency(8, latencies, depth, 60_000);
            let off = (found / expected - 1.0).abs();
            assert!(off < 0.01, "{latencies} depth {depth}: {found}, not {expected}");
        }
    }
}

#[test]
fn raid0_of_one_member_is_the_member() {
    let ssd = "kind = \"ssd\"\ncapacity = \"16MiB\"\nwrite_buffer = { size = \"256KiB\", power_loss_protected = false }\n\
               nand = { channels = 2, ways = 2, page = \"8KiB\", pages_per_block = 16, t_read = \"60us\", \
               t_program = \"600us\", t_erase = \"3ms\", transfer_mts = 400 }\n\
               ftl = { over_provisioning = 0.3 }";
    let run = |text: &str| {
        let mut device = Rig::parse(text, "r").unwrap().build(1, false).unwrap();
        common::fill_sequentially(&mut *device, 128 << 10);
        let mut rng = Stream::new(5, "commands");
        let mut tag = 0;
        let next = || {
            tag += 1;
            let op = [Op::Write, Op::Read, Op::Write, Op::Trim, Op::Flush][rng.below(5) as usize];
            let len = if op == Op::Flush { 0 } else { (1 + rng.below(300)) * 512 };
            let offset = if op == Op::Flush { 0 } else { rng.below(30_000) * 512 };
            ssdlab::device::Command { stamp: tag * 1000, ..command(op, offset, len) }
        };
        let mut seen = Vec::new();
        closed_loop(&mut *device, 16, 20_000, 0, next, |latency, c| {
            seen.push((c.tag, c.time, c.parts.clone(), latency));
        });
        (device.capacity(), seen)
    };
    let alone = run(&format!("[device]\n{ssd}\n"));
    let keys = "kind = \"array\"\nlevel = \"raid0\"\ncount = 1\nchunk = \"64KiB\"";
    let array = run(&format!("[device]\n{keys}\n[device.member]\n{ssd}\n"));
    assert!(alone == array);
}

#[test]
fn keys_of_members_can_be_set() {
    let mut rig = rig("level = \"raid0\"\ncount = 2", NULL);
    rig.set("member.capacity", "2MiB").unwrap();
    assert_eq!(rig.build(1, false).unwrap().capacity(), 4 << 20);
    // As with what is below: a key that the array does not know is its members'.
    rig.set("capacity", "3MiB").unwrap();
    assert_eq!(rig.build(1, false).unwrap().capacity(), 6 << 20);
    let listed = "[device]\nkind = \"array\"\nlevel = \"linear\"\n\
                  members = [{ kind = \"null\", capacity = { value = \"1MiB\", source = \"assumed\" } }, \
                  { kind = \"null\", capacity = \"1MiB\" }]\n";
    let mut rig = Rig::parse(listed, "l").unwrap();
    assert!(rig.sources().iter().any(|s| s.key == "members.0.capacity" && s.source == "assumed"));
    rig.set("members.1.capacity", "5MiB").unwrap();
    assert_eq!(rig.build(1, false).unwrap().capacity(), 6 << 20);
}

#[test]
fn what_is_wrong_with_an_array_is_told_in_a_sentence() {
    let said = |keys: &str, member: &str| {
        rig(keys, member).build(1, false).err().map(|e| e.to_string()).unwrap_or_default()
    };
    let mib = |keys: &str| said(keys, NULL);
    for (keys, expected) in [
        (
            "level = \"raid5\"\ncount = 2",
            "my.toml: count: found 2, expected from 3 to 255 for raid5",
        ),
        ("level = \"raid6\"\ncount = 3", "count: found 3, expected from 4 to 255 for raid6"),
        ("level = \"raid1\"\ncount = 1", "count: found 1, expected from 2 to 255 for raid1"),
        ("level = \"raid0\"\ncount = 0", "count: found 0, expected from 1 to 255"),
        ("level = \"raid5\"", "count: is missing"),
        (
            "level = \"raid7\"\ncount = 4",
            "level: found \"raid7\", expected one of linear, raid0, raid1",
        ),
        (
            "level = \"raid0\"\ncount = 2\nchunk = \"6KiB\"",
            "chunk: found 6KiB, expected a multiple of 4KiB",
        ),
        (
            "level = \"raid0\"\ncount = 2\nchunk = \"2MiB\"",
            "chunk: a member has 1MiB, expected at least one",
        ),
        (
            "level = \"raid5\"\ncount = 4\nlayout = \"left\"",
            "layout: found \"left\" for raid5, expected left-symmetric, left-asymmetric",
        ),
        (
            "level = \"raid10\"\ncount = 4\nlayout = \"near\"",
            "layout: found \"near\" for raid10, expected n2 (near)",
        ),
        (
            "level = \"raid10\"\ncount = 4\nlayout = \"n5\"",
            "layout: found \"n5\", expected at most as many copies as members, 4",
        ),
        (
            "level = \"raid0\"\ncount = 4\nlayout = \"n2\"",
            "layout: found \"n2\" for raid0, expected none",
        ),
        (
            "level = \"raid5\"\ncount = 4\nstripe_cache = 3",
            "stripe_cache: found 3, expected from 17 to 32768",
        ),
        ("level = \"raid0\"\ncount = 4\nbitmap = \"64MiB\"", "bitmap: raid0 has no redundancy"),
        (
            "level = \"raid5\"\ncount = 4\nbitmap = \"1B\"",
            "bitmap: found 1B, expected at least 4KiB",
        ),
        ("level = \"raid5\"\ncount = 4\nchunk_size = \"4KiB\"", "chunk_size: unknown key"),
    ] {
        let said = mib(keys);
        assert!(said.contains(expected), "{keys}: {said}");
    }
    let inner = said("level = \"raid0\"\ncount = 2", "kind = \"null\"\ncapacity = \"7B\"");
    assert!(inner.starts_with("my.toml: member.capacity: 7B is not"), "{inner}");
    let members = "[device]\nkind = \"array\"\nlevel = \"raid0\"\nmembers = [\
                   { kind = \"null\", capacity = \"1GB\" }, { kind = \"null\", capacity = \"3GB\" }]\n";
    let said = Rig::parse(members, "m").unwrap().build(1, false).err().unwrap().to_string();
    assert_eq!(
        said,
        "m: members: the smallest has 1GB, so 2.00 GB of 4.00 GB (50 %) would never be used; \
         expected members of one size, or accept_waste = true"
    );
    let bare = Rig::parse("[device]\nkind = \"array\"\nlevel = \"raid0\"\n", "b").unwrap();
    let said = bare.build(1, false).err().unwrap().to_string();
    assert!(said.starts_with("b: members: expected the members: a table"), "{said}");
}
