//! A bandwidth that members share, and links with a latency: closed forms.

use crate::common;

use common::rigs::build;
use common::{Measured, closed_loop, command, counters};
use ssdlab::device::{Device, Op};
use ssdlab::rig::Rig;
use ssdlab::stats::Part;

const MIB: u64 = 1 << 20;

fn device(text: &str) -> Box<dyn Device> {
    build(&Rig::parse(text, "rig").unwrap_or_else(|e| panic!("{e}\n{text}")), 1, false)
}

fn within(what: &str, found: f64, expected: f64, share: f64) {
    assert!((found / expected - 1.0).abs() <= share, "{what}: {found}, expected {expected}");
}

/// An array of `count` members that take `service` for anything and as many at once as they get.
fn array(level: &str, count: u32, bus: &str, service: &str) -> Box<dyn Device> {
    device(&format!(
        "[device]\nkind = \"array\"\nlevel = \"{level}\"\ncount = {count}\nchunk = \"64KiB\"\n{bus}\n\
         [device.member]\nkind = \"null\"\ncapacity = \"64MiB\"\nservice_time = \"{service}\"\n\
         servers = 1000\n"
    ))
}

/// Bytes a second of requests of 64 KiB in order, by what `op` says of each.
fn rate(device: &mut dyn Device, depth: u64, op: impl Fn(u64) -> Op) -> f64 {
    let mut nth = 0;
    let next = || {
        nth += 1;
        command(op(nth), nth % 512 * 65_536, 65_536)
    };
    let found = closed_loop(device, depth, 4000, 0, next, |_, _| {});
    found.per_second() * 65_536.0
}

const BUS: &str = "bus = { bandwidth = \"1GB/s\" }";

#[test]
fn members_together_get_the_bandwidth_of_their_bus() {
    for count in [2, 8] {
        for op in [Op::Read, Op::Write] {
            let found = rate(&mut *array("raid0", count, BUS, "1us"), 64, |_| op);
            within("bytes a second", found, 1e9, 2e-3);
        }
    }
}

#[test]
fn a_bus_of_both_directions_carries_both() {
    for (bus, expected) in [(BUS, 2e9), ("bus = { bandwidth = \"1GB/s\", duplex = \"half\" }", 1e9)]
    {
        let op = |nth: u64| if nth.is_multiple_of(2) { Op::Read } else { Op::Write };
        let found = rate(&mut *array("raid0", 4, bus, "1us"), 64, op);
        within(bus, found, expected, 0.02);
    }
}

#[test]
fn a_mirror_sends_its_writes_over_the_bus_twice_and_parity_its_old_data_too() {
    let found = rate(&mut *array("raid1", 2, BUS, "1us"), 64, |_| Op::Write);
    within("mirror", found, 0.5e9, 2e-3);
    // A small write of RAID 5: old data and parity come in, new ones go out.
    let half = "bus = { bandwidth = \"1GB/s\", duplex = \"half\" }";
    let mut array = array("raid5", 8, half, "1us");
    let blocks = array.capacity() / 4096;
    let mut at = 0;
    let next = || {
        at = (at + 7919) % blocks;
        command(Op::Write, at * 4096, 4096)
    };
    let found = closed_loop(&mut *array, 64, 5000, 0, next, |_, _| {});
    within("RAID 5", found.per_second() * 4096.0, 0.25e9, 5e-3);
}

#[test]
fn a_bus_takes_its_time_for_each_command() {
    let bus = "bus = { bandwidth = \"100GB/s\", command_time = \"20us\" }";
    let mut array = array("raid0", 4, bus, "1us");
    let mut nth = 0;
    let next = || {
        nth += 1;
        command(Op::Read, nth % 8192 * 4096, 4096)
    };
    let found = closed_loop(&mut *array, 64, 5000, 0, next, |_, _| {});
    within("IOPS", found.per_second(), 50_000.0, 2e-3);
    assert_eq!(counters(&*array)["bus_out_ns"], 5000 * 20_000);
}

#[test]
fn waiting_for_the_bus_is_told_from_the_members_time() {
    // Four chunks at once: they cross one after the other, 65.536 us each.
    let mut array = array("raid0", 4, BUS, "100us");
    let next = || command(Op::Write, 0, 4 * 65_536);
    let mut parts = None;
    let found = closed_loop(&mut *array, 1, 1, 0, next, |_, c| parts = Some(c.parts.clone()));
    let parts = parts.unwrap();
    assert_eq!(found.elapsed, 4 * 65_536 + 100_000);
    // On the average of the four: 1, 2, 3, 4 crossings, and the rest is the slowest's.
    assert_eq!(parts[Part::Bus], 65_536 * 10 / 4);
    assert_eq!(parts[Part::Service], 100_000);
    assert_eq!(parts[Part::SlowestMember], 65_536 * 6 / 4);
    assert_eq!(counters(&*array)["array_writes"], 1);
}

#[test]
fn a_member_is_not_busy_while_its_data_waits_for_the_bus() {
    let mut array = array("raid0", 2, BUS, "100us");
    let next = || command(Op::Read, 0, 65_536);
    closed_loop(&mut *array, 1, 10, 0, next, |_, _| {});
    let children = array.children();
    assert_eq!(counters(children[0].1)["member_busy_ns"], 10 * 100_000);
}

/// A link with a latency before a device that takes 1 us.
fn link(latency: &str, slots: u32) -> String {
    format!(
        "kind = \"link\"\nbandwidth = \"100GB/s\"\nqueue_slots = {slots}\nlatency = {latency}\n\
         below = {{ kind = \"null\", capacity = \"1GiB\", service_time = \"1us\", servers = 64 }}\n"
    )
}

/// Latencies of 512-byte reads without the device's microsecond and the wire, in order.
fn latencies(latency: &str, depth: u64, total: u64) -> Vec<f64> {
    let mut device = device(&format!("[device]\n{}", link(latency, 64)));
    let mut all = Vec::new();
    closed_loop(
        &mut *device,
        depth,
        total,
        0,
        || command(Op::Read, 0, 512),
        |ns, c| {
            assert_eq!(c.parts[Part::Link] + c.parts[Part::Service], ns);
            all.push(ns as f64 - 1006.0);
        },
    );
    all.sort_by(f64::total_cmp);
    all
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// The value below which so much lies.
fn quantile(values: &[f64], share: f64) -> f64 {
    values[(share * values.len() as f64) as usize]
}

#[test]
fn a_fixed_latency_is_added_to_every_command() {
    let all = latencies("\"250us\"", 1, 100);
    assert!(all.iter().all(|&ns| ns == 250_000.0), "{all:?}");
}

#[test]
fn latencies_have_the_mean_and_the_quantiles_of_their_distribution() {
    let table = |form: &str| format!("{{ mean = \"200us\", {form} }}");
    let erf_1 = 0.841_344_746; // share below one standard deviation
    let cases: [(&str, Vec<(f64, f64)>); 4] = [
        ("distribution = \"exponential\"", vec![(0.5, 2f64.ln()), (0.99, 100f64.ln())]),
        ("distribution = \"normal\", spread = 0.1", vec![(0.5, 1.0), (erf_1, 1.1)]),
        (
            "distribution = \"lognormal\", spread = 0.5",
            vec![(0.5, (-0.125f64).exp()), (erf_1, (0.375f64).exp())],
        ),
        // x_q = least (1 - q)^(-1 / exponent), least = mean (1 - 1 / exponent).
        (
            "distribution = \"pareto\", spread = 4.0",
            vec![(0.0, 0.75), (0.5, 0.75 * 2f64.powf(0.25)), (0.99, 0.75 * 100f64.powf(0.25))],
        ),
    ];
    for (form, quantiles) in cases {
        let all = latencies(&table(form), 1, 100_000);
        within(form, mean(&all), 200_000.0, 0.01);
        for (share, expected) in quantiles {
            let what = format!("{form}, {share}");
            within(&what, quantile(&all, share), expected * 200_000.0, 0.02);
        }
    }
}

#[test]
fn answers_overtake_each_other_and_slots_do_not() {
    // With all slots taken the rate is slots by mean, however the latencies lie.
    let text =
        format!("[device]\n{}", link("{ mean = \"1ms\", distribution = \"exponential\" }", 8));
    let mut device = device(&text);
    let mut tags = Vec::new();
    let next = || command(Op::Read, 0, 512);
    let found = closed_loop(&mut *device, 32, 40_000, 0, next, |_, c| tags.push(c.tag));
    within("IOPS", found.per_second(), 8.0 / 1.001e-3, 0.02);
    let overtaken = tags.windows(33).filter(|w| w[0] != w[32]).count();
    assert!(overtaken > tags.len() / 2, "{overtaken} of {}", tags.len());
}

/// One write of a chunk to each of `count` members at a time, each behind a network: efficiency.
fn efficiency(latency: &str, count: u32) -> f64 {
    let run = |count: u32| -> Measured {
        let mut device = device(&format!(
            "[device]\nkind = \"array\"\nlevel = \"raid0\"\ncount = {count}\nchunk = \"4KiB\"\n\
             [device.member]\n{}",
            link(latency, 32)
        ));
        let len = u64::from(count) * 4096;
        closed_loop(&mut *device, 1, 40_000, 0, || command(Op::Write, 0, len), |_, _| {})
    };
    run(1).elapsed as f64 / run(count).elapsed as f64
}

#[test]
fn an_array_behind_a_network_loses_what_the_slowest_of_n_says() {
    // E[X] / E[max of N]: exponential 1 / H_N; the others by Monte Carlo and tables.
    let table = |form: &str| format!("{{ mean = \"10ms\", {form} }}");
    let harmonic = |n: u32| (1..=n).map(|i| 1.0 / f64::from(i)).sum::<f64>();
    for n in [2, 4, 8] {
        let found = efficiency(&table("distribution = \"exponential\""), n);
        within(&format!("exponential, {n}"), found, 1.0 / harmonic(n), 0.02);
    }
    let normal = |e: f64| 1.0 / (1.0 + 0.2 * e);
    for (n, e) in [(4, 1.029), (8, 1.424)] {
        let found = efficiency(&table("distribution = \"normal\", spread = 0.2"), n);
        within(&format!("normal, {n}"), found, normal(e), 0.01);
    }
    for (n, expected) in [(4, 0.751), (8, 0.671)] {
        let found = efficiency(&table("distribution = \"lognormal\", spread = 0.3"), n);
        within(&format!("lognormal, {n}"), found, expected, 0.01);
    }
    let two = "distribution = \"two-point\", spread = 5.0, share = 0.02";
    within("two-point, 8", efficiency(&table(two), 8), 0.676, 0.02);
}

#[test]
fn a_link_without_a_latency_is_as_it_was() {
    let text = "[device]\nkind = \"link\"\nbandwidth = \"1GB/s\"\nqueue_slots = 2\n\
                below = { kind = \"null\", capacity = \"64MiB\", service_time = \"1ms\" }";
    let mut device = device(text);
    let found = closed_loop(&mut *device, 1, 1, 0, || command(Op::Write, 0, MIB), |_, _| {});
    assert_eq!(found.elapsed, 1_000_000 + 1_048_576);
}

#[test]
fn impossible_buses_and_latencies_are_refused_by_name() {
    let array = "kind = \"array\"\nlevel = \"raid0\"\ncount = 2\n\
                 member = { kind = \"null\", capacity = \"1MiB\" }";
    let link = "kind = \"link\"\nbandwidth = \"1GB/s\"\nqueue_slots = 2\n\
                below = { kind = \"null\", capacity = \"1MiB\" }";
    let cases = [
        (array, "bus = { bandwidth = \"1B/s\" }", "bus.bandwidth: found 1B/s, expected at least"),
        (
            array,
            "bus = { bandwidth = \"1GB/s\", command_time = \"2h\" }",
            "bus.command_time: found 7200s",
        ),
        (link, "latency = \"2h\"", "latency: found 7200s, expected at most an hour"),
        (link, "latency = 5", "latency: "),
        (link, "latency = { mean = \"1ms\", size = \"4KiB\" }", "latency.size: has no effect here"),
        (
            link,
            "latency = { mean = \"1ms\", distribution = \"pareto\", spread = 0.9 }",
            "latency.spread: found 0.9, expected a number from 1.01 to 100",
        ),
        (link, "latency = { distribution = \"normal\" }", "latency: "),
        (link, "latency = { meen = \"1ms\" }", "meen"),
    ];
    for (device, keys, expected) in cases {
        let rig = Rig::parse(&format!("[device]\n{device}\n{keys}\n"), "x.toml").unwrap();
        let said = rig.build(1, false).err().unwrap().to_string();
        println!("{said}");
        assert!(said.contains(expected), "{said}\n{expected}");
        assert!(!said.contains(": :") && !said.contains(".:"), "{said}");
    }
}
