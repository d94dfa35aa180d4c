//! Latency and throughput in time against closed forms: idle latency, dies and channels, links.

use crate::common;

use common::{Measured, Sets, closed_loop, command, fill_sequentially, lab_reference};
use ssdlab::device::{Device, Op};
use ssdlab::rig::Rig;
use ssdlab::rng::Stream;

fn near(what: &str, measured: f64, expected: f64, tolerance: f64) {
    let error = measured / expected - 1.0;
    println!("{what}: {measured:.5}, expected {expected:.5}: {:+.3} %", error * 100.0);
    assert!(error.abs() <= tolerance, "{what}: {measured}, expected {expected}");
}

/// Random reads of one unit on a full drive, in a closed loop.
fn random_reads(rig: &Rig, unit: u64, depth: u64, total: u64) -> Measured {
    let mut device = rig.build(1, false).unwrap();
    fill_sequentially(&mut *device, 1 << 20);
    let units = device.capacity() / unit;
    let mut rng = Stream::new(1, "reads");
    let next = || command(Op::Read, rng.below(units) * unit, unit);
    closed_loop(&mut *device, depth, total, 0, next, |_, _| {})
}

#[test]
fn an_idle_drive_reads_in_sense_plus_transfer_time() {
    let rig = lab_reference(&[("capacity", "64MiB")]);
    let reads = random_reads(&rig, 4096, 1, 1000);
    // 4096 B at 333 MT/s are 12.3 us.
    let expected = 75_000 + 12_300;
    assert_eq!((reads.latency_max, reads.latency_sum), (expected, 1000 * expected));
}

#[test]
fn an_idle_drive_writes_in_transfer_plus_program_time() {
    let rig = lab_reference(&[("capacity", "64MiB")]);
    let mut device = rig.build(1, false).unwrap();
    let mut at = 0;
    let next = || {
        at += 4096;
        command(Op::Write, at, 4096)
    };
    let writes = closed_loop(&mut *device, 1, 1000, 0, next, |_, _| {});
    let expected = 750_000 + 12_300;
    assert_eq!((writes.latency_max, writes.latency_sum), (expected, 1000 * expected));
}

#[test]
fn a_buffered_write_and_an_unmapped_read_take_no_flash_time() {
    let rig = buffered();
    let mut device = rig.build(1, false).unwrap();
    let mut k = 0;
    let next = || {
        k += 1;
        let op = if k % 2 == 0 { Op::Read } else { Op::Write };
        command(op, k * 4096, 4096)
    };
    let done = closed_loop(&mut *device, 1, 1000, 0, next, |_, _| {});
    assert_eq!(done.latency_max, 3_000, "the controller's time alone");
}

#[test]
fn a_trim_takes_the_command_and_the_entries_of_the_map_and_those_behind_it_wait() {
    let rig = lab_reference(&[
        ("capacity", "64MiB"),
        ("controller.command_time", "3us"),
        ("controller.trim_unit_time", "20ns"),
    ]);
    let mut device = rig.build(1, false).unwrap();
    fill_sequentially(&mut *device, 1 << 20);
    let entries = 1024 * 20;
    let all = || command(Op::Trim, 0, 4 << 20);
    let alone = closed_loop(&mut *device, 1, 100, 0, all, |_, _| {});
    assert_eq!((alone.latency_sum, alone.latency_max), (100 * (3_000 + entries), 3_000 + entries));
    // A trim that covers no whole unit changes nothing in the map.
    let none = || command(Op::Trim, 512, 4096);
    let nothing = closed_loop(&mut *device, 1, 10, alone.end, none, |_, _| {});
    assert_eq!(nothing.latency_max, 3_000);
    // A read that comes while the core is at it.
    device.submit(nothing.end, all());
    let at = device.advance(nothing.end + 4_000, &mut Vec::new());
    device.submit(at, command(Op::Read, 0, 4096));
    let mut done = Vec::new();
    while done.len() < 2 {
        device.advance(u64::MAX - 1, &mut done);
    }
    assert_eq!(done[1].time - at, entries - 1_000 + 3_000);
    let many = closed_loop(&mut *device, 8, 1000, done[1].time, all, |_, _| {});
    near("trims", many.per_second(), 1e9 / (3_000 + entries) as f64, 0.01);
}

#[test]
fn a_drive_whose_controller_takes_no_time_still_has_a_rate_of_trims() {
    let mut device = lab_reference(&[("capacity", "64MiB")]).build(1, false).unwrap();
    fill_sequentially(&mut *device, 1 << 20);
    let next = || command(Op::Trim, 0, 4096);
    let trims = closed_loop(&mut *device, 4, 1000, 0, next, |_, _| {});
    near("trims", trims.per_second(), 1e8, 1e-9);
    // What comes behind a large one waits for it here too.
    device.submit(trims.end, command(Op::Trim, 0, 4 << 20));
    device.submit(trims.end, command(Op::Read, 0, 4096));
    let mut done = Vec::new();
    while done.len() < 2 {
        device.advance(u64::MAX - 1, &mut done);
    }
    assert_eq!(done.iter().map(|c| c.time - trims.end).collect::<Vec<_>>(), [10_240; 2]);
}

fn buffered() -> Rig {
    let text = common::LAB_REFERENCE.to_string()
        + "\n[device.write_buffer]\nsize = \"8MiB\"\npower_loss_protected = true\n";
    let mut rig = Rig::parse(&text, "buffered").unwrap();
    rig.set("capacity", "64MiB").unwrap();
    rig.set("controller.command_time", "3us").unwrap();
    rig
}

#[test]
fn controller_link_and_flash_add_up_on_an_idle_drive() {
    let drive = lab_reference(&[("capacity", "64MiB"), ("controller.command_time", "5us")]);
    let link = "bandwidth = \"400MB/s\"\ncommand_time = \"2us\"\nqueue_slots = 32";
    let rig = Rig::wrap("link", link.parse().unwrap(), &[("below", vec![&drive])]).unwrap();
    let reads = random_reads(&rig, 4096, 1, 100);
    // 2 us, 5 us, 75 us, 12.3 us, and 4096 B at 400 MB/s: 10.24 us.
    assert_eq!((reads.latency_max, reads.mean_latency()), (104_540, 104_540.0));
}

/// Random reads over K channels x W ways, deterministic service, the die held during transfer:
/// an independent simulation (thousands of requests per second), and the exact bounds.
#[test]
fn read_rates_follow_the_channel_and_way_model_with_registers_held() {
    let eight: &[(u64, f64)] = &[
        (1, 11.11),
        (2, 22.03),
        (4, 43.11),
        (8, 82.54),
        (16, 150.05),
        (32, 244.74),
        (64, 336.39),
        (128, 395.69),
        (256, 427.04),
    ];
    let ten: &[(u64, f64)] = &[
        (1, 10.42),
        (2, 20.5),
        (4, 39.47),
        (8, 72.96),
        (16, 123.54),
        (32, 179.06),
        (64, 219.47),
        (128, 241.97),
        (256, 252.82),
    ];
    for (k, w, t_read, t_transfer, table) in
        [(8u64, 4u64, 60u64, 10u64, eight), (10, 2, 50, 26, ten)]
    {
        let (channels, ways) = (k.to_string(), w.to_string());
        let (read, rate) = (format!("{t_read}us"), format!("{}", 4096.0 / t_transfer as f64));
        let sets: Sets = &[
            ("capacity", "256MiB"),
            ("nand.channels", &channels),
            ("nand.ways", &ways),
            ("nand.t_read", &read),
            ("nand.transfer_mts", &rate),
            ("controller.command_time", "20us"),
            ("controller.cores", "256"),
        ];
        let rig = lab_reference(sets);
        for &(depth, reference) in table {
            let kiops = random_reads(&rig, 4096, depth, 60_000).per_second() / 1e3;
            near(&format!("{k} x {w}, depth {depth}"), kiops, reference, 0.01);
            let (one, dies) = ((20 + t_read + t_transfer) as f64, (k * w) as f64);
            let bounds = [
                depth as f64 * 1e3 / one,
                k as f64 * 1e3 / t_transfer as f64,
                dies * 1e3 / (t_read + t_transfer) as f64,
            ];
            assert!(bounds.iter().all(|b| kiops <= b * 1.0001), "{kiops} kIOPS above {bounds:?}");
        }
    }
}

/// 32 equal dies and nothing else: share of their time that they work, by depth.
#[test]
fn dies_alone_are_used_as_the_closed_network_says() {
    let sets: Sets = &[
        ("capacity", "256MiB"),
        ("nand.channels", "32"),
        ("nand.ways", "1"),
        ("nand.t_read", "1ms"),
        ("nand.transfer_mts", "10000"),
    ];
    let rig = lab_reference(sets);
    for (depth, reference) in
        [(4, 0.1192), (8, 0.2232), (16, 0.3887), (32, 0.5948), (64, 0.7713), (128, 0.8816)]
    {
        let reads = random_reads(&rig, 4096, depth, 60_000);
        let used = reads.per_second() * 1.00041e-3 / 32.0;
        near(&format!("depth {depth}"), used, reference, 0.01);
        // With exponential service times it would be q / (n + q - 1); fixed times do better.
        assert!(used > depth as f64 / (32.0 + depth as f64 - 1.0));
    }
}

/// Bytes per second of blocks in order.
fn sequential(device: &mut dyn Device, op: Op, block: u64, depth: u64, total: u64) -> f64 {
    let capacity = device.capacity();
    let mut at = capacity - block;
    let next = || {
        at = (at + block) % capacity;
        command(op, at, block)
    };
    let done = closed_loop(device, depth, total, 0, next, |_, _| {});
    (done.commands * block) as f64 * 1e9 / done.elapsed as f64
}

#[test]
fn sequential_writes_run_at_the_speed_of_the_dies_or_of_the_channels() {
    // 16 dies, a unit in 12.3 + 750 us each.
    let rig = lab_reference(&[("capacity", "256MiB")]);
    let rate = sequential(&mut *rig.build(1, false).unwrap(), Op::Write, 1 << 20, 8, 200);
    near("bound by the dies", rate, 16.0 * 4096.0 / 762.3e-6, 0.005);
    // 64 dies with programs of 60 us on 2 channels: 12.3 us a unit and channel.
    let sets: Sets = &[
        ("capacity", "256MiB"),
        ("nand.channels", "2"),
        ("nand.ways", "32"),
        ("nand.t_program", "60us"),
    ];
    let rate =
        sequential(&mut *lab_reference(sets).build(1, false).unwrap(), Op::Write, 1 << 20, 8, 200);
    near("bound by the channels", rate, 2.0 * 4096.0 / 12.3e-6, 0.005);
}

#[test]
fn a_program_of_more_units_and_planes_takes_one_program_time() {
    let sets: Sets = &[("capacity", "256MiB"), ("nand.planes", "2"), ("nand.page", "16KiB")];
    let rig = lab_reference(sets);
    let rate = sequential(&mut *rig.build(1, false).unwrap(), Op::Write, 1 << 20, 8, 200);
    // Eight units cross before each program.
    near("multi-plane writes", rate, 16.0 * 8.0 * 4096.0 / (8.0 * 12.3e-6 + 750e-6), 0.005);
}

#[test]
fn sequential_reads_run_at_the_speed_of_the_dies_or_of_the_channels() {
    for (ways, expected) in [("1", 8.0 * 4096.0 / 87.3e-6), ("16", 8.0 * 4096.0 / 12.3e-6)] {
        let rig = lab_reference(&[("capacity", "256MiB"), ("nand.ways", ways)]);
        let mut device = rig.build(1, false).unwrap();
        fill_sequentially(&mut *device, 1 << 20);
        let rate = sequential(&mut *device, Op::Read, 1 << 20, 16, 400);
        near(&format!("{ways} ways"), rate, expected, 0.01);
    }
}

#[test]
fn units_of_one_page_are_read_together() {
    let rig = lab_reference(&[("capacity", "64MiB"), ("nand.page", "16KiB")]);
    let mut device = rig.build(1, false).unwrap();
    fill_sequentially(&mut *device, 16 << 10);
    let next = || command(Op::Read, 0, 16 << 10);
    let whole = closed_loop(&mut *device, 1, 1, 0, next, |_, _| {});
    assert_eq!(whole.latency_max, 75_000 + 4 * 12_300, "one sense, four transfers");
}

#[test]
fn collection_in_time_takes_what_its_copies_and_erases_take() {
    // One die: steady random writes of one unit cost WA programs, WA - 1 reads, two transfers for
    // each copy, and an erase per b programs.
    let sets: Sets = &[
        ("capacity", "128MiB"),
        ("nand.channels", "1"),
        ("nand.ways", "1"),
        ("ftl.over_provisioning", "0.28"),
    ];
    let mut device = lab_reference(sets).build(1, false).unwrap();
    fill_sequentially(&mut *device, 4096);
    let units = device.capacity() / 4096;
    let mut rng = Stream::new(1, "writes");
    for _ in 0..8 * units {
        device.apply(&command(Op::Write, rng.below(units) * 4096, 4096));
    }
    let next = || command(Op::Write, rng.below(units) * 4096, 4096);
    let writes = closed_loop(&mut *device, 32, 4 * units, 0, next, |_, _| {});
    let wa = common::models::greedy(1.28, 64).wa;
    let transfer = 12.3;
    let us = (transfer + 750.0) + (wa - 1.0) * (75.0 + 2.0 * transfer + 750.0) + wa / 64.0 * 3800.0;
    near("random writes", writes.per_second(), 1e6 / us, 0.01);
}

fn fast_drive_behind(link: &str) -> Rig {
    let text = format!(
        "[device]\nkind = \"link\"\n{link}\n[device.below]\nkind = \"ssd\"\ncapacity = \"256MiB\"\n\
         [device.below.nand]\nchannels = 16\nways = 4\npage = \"16KiB\"\npages_per_block = 64\n\
         t_read = \"20us\"\nt_program = \"100us\"\nt_erase = \"1ms\"\ntransfer_mts = 1200\n\
         [device.below.ftl]\nover_provisioning = 0.4\ngc = {{ pace = \"blocking\" }}\n"
    );
    Rig::parse(&text, "linked").unwrap()
}

#[test]
fn a_link_limits_throughput_to_its_bandwidth() {
    let rig = fast_drive_behind("bandwidth = \"550MB/s\"\nqueue_slots = 32");
    for op in [Op::Write, Op::Read] {
        let mut device = rig.build(1, false).unwrap();
        if op == Op::Read {
            fill_sequentially(&mut *device, 1 << 20);
        }
        let rate = sequential(&mut *device, op, 128 << 10, 32, 2000);
        near(&format!("{op:?}"), rate, 550e6, 0.005);
    }
}

#[test]
fn a_half_duplex_link_shares_its_bandwidth_and_a_full_duplex_one_does_not() {
    for (duplex, expected) in [("half", 500e6), ("full", 1000e6)] {
        let link = format!("bandwidth = \"500MB/s\"\nqueue_slots = 64\nduplex = \"{duplex}\"");
        let mut device = fast_drive_behind(&link).build(1, false).unwrap();
        fill_sequentially(&mut *device, 1 << 20);
        let (block, mut k) = (128 << 10, 0u64);
        let next = || {
            k += 1;
            let op = if k % 2 == 0 { Op::Read } else { Op::Write };
            command(op, k * block % (256 << 20), block)
        };
        let done = closed_loop(&mut *device, 64, 4000, 0, next, |_, _| {});
        near(duplex, (done.commands * block) as f64 * 1e9 / done.elapsed as f64, expected, 0.02);
    }
}

#[test]
fn command_time_and_queue_slots_of_a_link_limit_small_requests() {
    let small = |link: &str, depth: u64| {
        random_reads(&fast_drive_behind(link), 4096, depth, 20_000).per_second()
    };
    // 8 us for the command and 4096 B at 4.096 GB/s: 1 us.
    let rate = small("bandwidth = \"4.096GB/s\"\ncommand_time = \"8us\"\nqueue_slots = 64", 64);
    near("command time", rate, 1e6 / 9.0, 0.005);
    // One slot: link, sense, transfer, one after the other, however many commands wait.
    let rate = small("bandwidth = \"4.096GB/s\"\ncommand_time = \"8us\"\nqueue_slots = 1", 64);
    near("one slot", rate, 1e6 / (9.0 + 20.0 + 4096.0 / 1200.0), 0.005);
}
