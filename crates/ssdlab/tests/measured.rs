//! Drives given by measured latencies: what was measured comes out again.

use crate::common;

use common::{closed_loop, command};
use ssdlab::device::{Device, Op};
use ssdlab::rig::Rig;

fn drive(keys: &str) -> Box<dyn Device> {
    let text = format!("[device]\nkind = \"measured\"\ncapacity = \"4MiB\"\n{keys}\n");
    Rig::parse(&text, "m").unwrap().build(1, false).unwrap_or_else(|e| panic!("{e}"))
}

fn latencies(device: &mut dyn Device, op: Op, len: u64, total: u64) -> Vec<u64> {
    let mut all = Vec::new();
    closed_loop(device, 1, total, 0, || command(op, 0, len), |latency, _| all.push(latency));
    all
}

const WRITE: &str = "write = [{ mean = \"1ms\" }]";

#[test]
fn a_histogram_comes_out_with_its_shares() {
    let mut device =
        drive(&format!("{WRITE}\nread = [{{ bins = [[80000, 90], [95000, 9], [2000000, 1]] }}]"));
    let all = latencies(&mut *device, Op::Read, 4096, 100_000);
    for (value, share) in [(80_000, 0.90), (95_000, 0.09), (2_000_000, 0.01)] {
        let found = all.iter().filter(|&&l| l == value).count() as f64 / 1e5;
        // Six standard deviations.
        assert!(
            (found - share).abs() < 6.0 * (share * (1.0 - share) / 1e5f64).sqrt(),
            "{value} {found}"
        );
    }
}

#[test]
fn blocks_of_a_series_keep_its_order_and_single_values_do_not() {
    // A drive that is slow for ten I/Os in a hundred, all at a time.
    let series: Vec<String> =
        (0..1000).map(|i| if i % 100 < 10 { "900" } else { "100" }.into()).collect();
    let read = |block: u32| {
        let keys =
            format!("{WRITE}\nread = [{{ series = [{}], block = {block} }}]", series.join(","));
        latencies(&mut *drive(&keys), Op::Read, 4096, 50_000)
    };
    let slow_after_slow = |all: &[u64]| {
        let pairs = all.windows(2).filter(|w| w[0] == 900);
        let (slow, both) = pairs.fold((0, 0), |(n, b), w| (n + 1, b + u32::from(w[1] == 900)));
        f64::from(both) / f64::from(slow)
    };
    let (alone, together) = (read(1), read(500));
    for all in [&alone, &together] {
        let share = all.iter().filter(|&&l| l == 900).count() as f64 / 5e4;
        assert!((share - 0.1).abs() < 0.01, "{share}");
    }
    assert!((slow_after_slow(&alone) - 0.1).abs() < 0.02);
    assert!((slow_after_slow(&together) - 0.9).abs() < 0.02);
}

#[test]
fn a_size_between_two_measured_ones_takes_a_time_between_theirs() {
    let mut device = drive(
        "read = [{ size = \"4KiB\", mean = \"100us\" }, { size = \"36KiB\", mean = \"300us\" }]\n\
         write = [{ size = \"64KiB\", mean = \"500us\" }]",
    );
    for (len, expected) in [
        (512, 100_000),
        (4096, 100_000),
        (20 << 10, 200_000),
        (36 << 10, 300_000),
        (1 << 20, 300_000),
    ] {
        assert_eq!(latencies(&mut *device, Op::Read, len, 3), [expected; 3], "{len}");
    }
    assert_eq!(latencies(&mut *device, Op::Write, 4096, 1), [500_000]);
}

#[test]
fn as_many_commands_are_served_at_once_as_the_drive_has_concurrency() {
    let mut device = drive(&format!("concurrency = 4\nread = [{{ mean = \"100us\" }}]\n{WRITE}"));
    for (depth, expected) in [(1, 10_000.0), (4, 40_000.0), (32, 40_000.0)] {
        let next = || command(Op::Read, 0, 4096);
        let found = closed_loop(&mut *device, depth, 4000, depth * 1_000_000_000, next, |_, _| {});
        assert!((found.per_second() / expected - 1.0).abs() < 0.001, "{depth}");
    }
}

#[test]
fn what_cannot_be_a_measurement_is_refused() {
    let said = |read: &str| {
        let text =
            format!("[device]\nkind = \"measured\"\ncapacity = \"4MiB\"\n{WRITE}\nread = {read}\n");
        Rig::parse(&text, "m")
            .unwrap()
            .build(1, false)
            .err()
            .map(|e| e.to_string())
            .unwrap_or_default()
    };
    for (read, expected) in [
        ("[]", "read: is empty, expected at least one table"),
        ("[{}]", "read.0: expected bins, or a series, or a mean"),
        ("[{ mean = \"1ms\", bins = [[1, 1]] }]", "read.0: expected bins, or a series, or a mean"),
        ("[{ bins = [[1, 0]] }]", "read.0.bins: found 0 counts in all"),
        ("[{ series = [1, 2], block = 3 }]", "read.0.block: found 3, expected from 1 to 2"),
        ("[{ mean = \"1ms\" }, { mean = \"2ms\" }]", "read.0.size: is missing"),
        (
            "[{ mean = \"1ms\", distribution = \"normal\" }]",
            "read.0.spread: found nothing, expected a number",
        ),
        ("[{ mean = \"1ms\", spread = 2 }]", "read.0.spread: has no effect"),
        (
            "[{ mean = \"1ms\", distribution = \"gamma\" }]",
            "found \"gamma\", expected one of constant",
        ),
    ] {
        let said = said(read);
        assert!(said.contains(expected), "{read}: {said}");
    }
}
