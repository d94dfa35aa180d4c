//! Losses of power of arrays over members that keep what they have answered: what was acknowledged survives; what the write
//! hole takes is counted to the byte; copies and parity agree again after resynchronisation.

use crate::common;

use common::host::Host;
use common::rigs::build;
use common::{command, counters};
use ssdlab::device::{Device, Missed, Op};
use ssdlab::persist::Archive;
use ssdlab::rig::Rig;

const NULL: &str = "kind = \"null\"\ncapacity = \"1MiB\"\nservice_time = \"40us\"";
/// When power goes, ns.
const CUT: u64 = 5_000_000;
const CUTS: &[u64] = &[CUT];

fn rig_of(keys: &str, member: &str) -> Rig {
    let text = format!("[device]\nkind = \"array\"\n{keys}\n[device.member]\n{member}\n");
    Rig::parse(&text, "array").unwrap_or_else(|e| panic!("{e}\n{text}"))
}

fn rig(keys: &str) -> Rig {
    rig_of(keys, NULL)
}

/// Levels with redundancy, and whether they have parity.
const LEVELS: &[(&str, bool)] = &[
    ("level = \"raid1\"\ncount = 2", false),
    ("level = \"raid1\"\ncount = 3\nread_balance = \"round-robin\"", false),
    ("level = \"raid10\"\ncount = 4\nchunk = \"16KiB\"", false),
    ("level = \"raid10\"\ncount = 3\nchunk = \"16KiB\"\nlayout = \"f2\"", false),
    ("level = \"raid10\"\ncount = 4\nchunk = \"8KiB\"\nlayout = \"o2\"", false),
    ("level = \"raid5\"\ncount = 3\nchunk = \"8KiB\"", true),
    ("level = \"raid5\"\ncount = 6\nchunk = \"16KiB\"\nlayout = \"right-asymmetric\"", true),
    ("level = \"raid6\"\ncount = 4\nchunk = \"8KiB\"", true),
    ("level = \"raid6\"\ncount = 7\nchunk = \"16KiB\"", true),
];

/// An array after writes that a loss of power has cut, and after `rest` more.
fn cut(keys: &str, seed: u64, depth: usize, rest: u64) -> (Box<dyn Device>, Host) {
    let mut device = build(&rig(keys), seed, true);
    let mut host = Host::new(&*device, seed, CUTS);
    host.fill(&mut *device);
    host.write(&mut *device, depth, CUT);
    host.wait(&mut *device, CUT + rest);
    (device, host)
}

const FAST: &str = "rebuild_min = \"1GB/s\"\nrebuild_max = \"1GB/s\"";
const NEVER_READY: &str = "rebuild_min = \"1kB/s\"\nrebuild_max = \"1kB/s\"";
const SECOND: u64 = 1_000_000_000;

#[test]
fn all_that_was_acknowledged_survives_a_loss_of_power() {
    let (mut torn, mut lost) = (0, 0);
    for (n, (level, parity)) in LEVELS.iter().enumerate() {
        for seed in 0..6 {
            let depth = [1, 12, 40][(n + seed as usize) % 3];
            let (device, host) = cut(&format!("{level}\n{FAST}"), seed, depth, SECOND);
            assert_eq!(host.wrong(&*device), (0, 0), "{level} {seed}");
            device.verify();
            let c = counters(&*device);
            assert_eq!((c["power_losses"], c["power_exposed_bytes"]), (1, 0));
            assert_eq!((c["power_commands_cut"], c["resync_left_bytes"]), (host.cut, 0));
            assert_eq!(c["lost_bytes"], 0);
            (torn, lost) = (torn + c.get("power_torn_stripes").unwrap_or(&0), lost + host.cut);
            assert_eq!(c.contains_key("power_torn_stripes"), *parity);
        }
    }
    assert!(torn > 50 && lost > 500, "{torn} {lost}");
}

#[test]
fn writes_of_arrays_without_redundancy_are_done_or_not() {
    for level in ["level = \"raid0\"\ncount = 3\nchunk = \"8KiB\"", "level = \"linear\"\ncount = 2"]
    {
        let (device, host) = cut(level, 1, 30, SECOND);
        assert_eq!(host.wrong(&*device), (0, 0), "{level}");
        assert!(host.cut > 20, "{level}: {}", host.cut);
    }
}

#[test]
fn the_write_hole_takes_what_nobody_wrote_when_a_member_fails_before_the_resync() {
    for (level, parity) in LEVELS {
        let mut lost = 0;
        for seed in 0..24 {
            let fail = format!("fail = [{{ member = {}, at = \"9ms\" }}]", seed % 2);
            let keys = format!("{level}\n{NEVER_READY}\n{fail}");
            let depth = [1, 30][seed as usize / 2 % 2];
            let (device, host) = cut(&keys, seed, depth, SECOND / 10);
            let (untouched, touched) = host.check_hole(&*device, depth, level);
            assert!(*parity || touched == 0, "{level}: a copy holds neither");
            assert!(untouched == 0 || counters(&*device)["power_torn_stripes"] > 0);
            lost += untouched;
        }
        // RAID 6 of one missing member has a parity to spare, but it cannot tell which one is right.
        assert_eq!(lost > 0, *parity, "{level}: {lost}");
    }
}

#[test]
fn the_write_hole_is_counted_exactly_over_drives_that_keep_what_they_have_answered() {
    let ssd = "kind = \"ssd\"\ncapacity = \"16MiB\"\nftl = { over_provisioning = 0.3 }\n\
               nand = { channels = 2, ways = 2, page = \"4KiB\", pages_per_block = 64, t_read = \"75us\", \
               t_program = \"750us\", t_erase = \"3.8ms\", transfer_mts = 333 }\n\
               controller = { command_time = \"150us\" }";
    let buffered = "write_buffer = { size = \"256KiB\", power_loss_protected = true }";
    let disk = "kind = \"hdd\"\ncapacity = \"6MiB\"\nrpm = 7200\nseek_average = \"8.5ms\"\n\
                sustained_outer = \"2MB/s\"\nsustained_inner = \"1MB/s\"\nspin_up = \"20ms\"";
    let link = format!(
        "kind = \"link\"\nbandwidth = \"20MB/s\"\nqueue_slots = 4\nbelow = {{ kind = \"partition\", offset = \"12KiB\", \
                        below = {{ {} }} }}",
        NULL.replace('\n', ", ")
    );
    for member in [ssd, &format!("{ssd}\n{buffered}"), disk, &link] {
        let mut lost = 0;
        for seed in 0..16 {
            let at = 20_000_000 + seed * 600_000;
            let keys = "level = \"raid5\"\ncount = 3\nchunk = \"16KiB\"\nfail = [{ member = 1, at = \"1ns\" }]";
            let mut device = build(&rig_of(keys, member), seed, true);
            let mut host = Host::new(&*device, seed, &[at]);
            host.fill(&mut *device);
            let depth = [1, 12][seed as usize % 2];
            host.write(&mut *device, depth, at);
            host.wait(&mut *device, at + SECOND / 10);
            lost += host.check_hole(&*device, depth, member).0;
        }
        assert!(lost > 0, "{member}");
    }
}

#[test]
fn raid6_loses_more_by_the_write_hole_with_two_members() {
    let mut lost = 0;
    for seed in 0..12 {
        let fail = "fail = [{ member = 0, at = \"9ms\" }, { member = 3, at = \"10ms\" }]";
        let keys =
            format!("level = \"raid6\"\ncount = 6\nchunk = \"16KiB\"\n{NEVER_READY}\n{fail}");
        let (device, host) = cut(&keys, seed, 30, SECOND / 10);
        let (untouched, _) = host.wrong(&*device);
        // What the first failure has garbled, the second one may recover by the other parity.
        let counted = counters(&*device)["power_exposed_bytes"];
        assert!(untouched <= counted, "{seed}: {untouched} {counted}");
        lost += untouched;
    }
    assert!(lost > 0);
}

#[test]
fn after_the_resync_a_failure_loses_nothing() {
    for (level, _) in LEVELS {
        for seed in 0..4 {
            let fail = format!("fail = [{{ member = {}, at = \"500ms\" }}]", seed % 2);
            let keys = format!("{level}\n{FAST}\n{fail}");
            let (device, host) = cut(&keys, seed, 30, SECOND);
            let c = counters(&*device);
            assert_eq!((c["members_missing"], c["power_exposed_bytes"]), (1, 0));
            assert_eq!(host.wrong(&*device), (0, 0), "{level} {seed}");
        }
    }
}

#[test]
fn a_degraded_array_that_loses_power_has_its_write_hole_at_once() {
    for (level, parity) in LEVELS {
        let mut lost = 0;
        for seed in 0..24 {
            let fail = format!("fail = [{{ member = {}, at = \"1ms\" }}]", seed % 2);
            let keys = format!("{level}\n{FAST}\n{fail}");
            let depth = [1, 30][seed as usize / 2 % 2];
            let (device, host) = cut(&keys, seed, depth, SECOND);
            let (untouched, touched) = host.check_hole(&*device, depth, level);
            assert!(*parity || touched == 0, "{level}: a copy holds neither");
            lost += untouched;
        }
        assert_eq!(lost > 0, *parity, "{level}: {lost}");
    }
}

#[test]
fn a_spare_is_rebuilt_to_what_the_write_hole_has_left() {
    for (level, parity) in LEVELS {
        for seed in 0..6 {
            let fail = format!("fail = [{{ member = {}, at = \"9ms\" }}]", seed % 2);
            let slow = "rebuild_min = \"50MB/s\"\nrebuild_max = \"50MB/s\"";
            let keys = format!("{level}\nspares = 1\n{slow}\n{fail}");
            let depth = [1, 30][seed as usize / 2 % 2];
            let (device, host) = cut(&keys, seed, depth, SECOND);
            let c = counters(&*device);
            assert_eq!((c["rebuilt_members"], c["resync_left_bytes"]), (1, 0));
            let (_, touched) = host.check_hole(&*device, depth, level);
            assert!(*parity || touched == 0, "{level}");
            device.verify();
        }
    }
}

#[test]
fn writes_go_on_while_the_array_is_resynchronised() {
    for (level, _) in LEVELS {
        for seed in 0..4 {
            let slow = "rebuild_min = \"20MB/s\"\nrebuild_max = \"40MB/s\"";
            let mut device = build(&rig(&format!("{level}\n{slow}")), seed, true);
            let mut host = Host::new(&*device, seed, &[CUT, 40_000_000]);
            host.fill(&mut *device);
            host.write(&mut *device, 20, 34_000_000);
            assert!(host.now < 40_000_000);
            // Again, in the midst of the resync, with nothing in flight.
            host.wait(&mut *device, SECOND);
            assert_eq!(host.wrong(&*device), (0, 0), "{level} {seed}");
            device.verify();
            let c = counters(&*device);
            assert_eq!((c["power_losses"], c["resync_left_bytes"]), (2, 0), "{level}");
        }
    }
}

#[test]
fn without_a_bitmap_all_is_resynchronised_at_the_rate_with_one_what_is_dirty() {
    for (level, read) in [
        ("level = \"raid1\"\ncount = 2\nchunk = \"16KiB\"", 1 << 20),
        ("level = \"raid5\"\ncount = 4\nchunk = \"16KiB\"", 4 << 20),
        ("level = \"raid6\"\ncount = 6\nchunk = \"16KiB\"", 6 << 20),
    ] {
        let rates = "rebuild_min = \"10MB/s\"\nrebuild_max = \"10MB/s\"";
        // 1 MiB of each member: 105 ms.
        for (after, left) in [(100_000_000, true), (106_000_000, false)] {
            let (device, _) = cut(&format!("{level}\n{rates}"), 1, 4, after);
            let c = counters(&*device);
            assert_eq!(c["resync_left_bytes"] > 0, left, "{level}: {c:?}");
            assert!(left || c["resync_bytes_read"] == read, "{level}: {c:?}");
        }
        // A few writes in one region.
        let mut device = build(&rig(&format!("{level}\n{rates}\nbitmap = \"64KiB\"")), 1, true);
        device.submit(0, command(Op::Write, 200 << 10, 4096));
        device.submit(0, command(Op::Write, 204 << 10, 4096));
        let done = lose_power(&mut *device, CUT);
        let c = counters(&*device);
        assert_eq!((done, c["power_losses"], c["resync_left_bytes"]), (2, 1, 0));
        // The region has 64 KiB of data: with chunks of 16 KiB, of three or four to a stripe.
        let share = c["resync_bytes_read"];
        let most = if level.contains("raid1") { 64 << 10 } else { 3 * (read >> 6) };
        assert!(share > 0 && share <= most, "{level}: {share} of {read}");
    }
}

/// Lets a device lose power at an instant and rest for a second; how many commands have ended.
fn lose_power(device: &mut dyn Device, at: u64) -> usize {
    let mut done = Vec::new();
    while device.advance(at, &mut done) < at {}
    device.power_cut(at, &mut Missed::default());
    while device.advance(at + SECOND, &mut done) < at + SECOND {}
    done.len()
}

#[test]
fn an_array_that_was_quiet_is_clean() {
    for (bitmap, clean_after_ms) in
        [("", 210), ("bitmap = \"64KiB\"\nbitmap_delay = \"50ms\"", 160)]
    {
        for (at, clean) in [(90, false), (clean_after_ms, true)] {
            let keys = format!("level = \"raid5\"\ncount = 4\nchunk = \"16KiB\"\n{bitmap}");
            let mut device = build(&rig(&keys), 1, false);
            device.submit(0, command(Op::Write, 0, 4096));
            lose_power(&mut *device, at * 1_000_000);
            let read = counters(&*device)["resync_bytes_read"];
            assert_eq!(read == 0, clean, "{bitmap} {at}: {read}");
        }
    }
}

/// All state of a device.
fn saved(device: &mut dyn Device) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut archive = Archive::save(&mut bytes);
    device.persist(&mut archive).unwrap();
    archive.finish().unwrap();
    bytes
}

#[test]
fn an_array_goes_on_from_a_file_as_it_would_have_before_in_and_after_a_loss_of_power() {
    for (level, _) in LEVELS {
        let fail = "fail = [{ member = 0, at = \"12ms\" }]\nspares = 1";
        let rates = "rebuild_min = \"10MB/s\"\nrebuild_max = \"10MB/s\"\nbitmap = \"64KiB\"";
        let rig = rig(&format!("{level}\n{rates}\n{fail}"));
        // Moments at which it goes on as a copy: in flight, cut, while resynchronising, rebuilding.
        let run = |copies: &[u64]| {
            let mut device = build(&rig, 1, true);
            let mut host = Host::new(&*device, 1, CUTS);
            host.fill(&mut *device);
            let mut shown = Vec::new();
            for &at in &[4_990_000, 5_010_000, 6_000_000, 8_000_000, 11_000_000, 13_000_000, SECOND]
            {
                host.write_until(&mut *device, 12, at);
                if copies.contains(&at) {
                    let bytes = saved(&mut *device);
                    let mut input = &bytes[..];
                    let mut archive = Archive::load(&mut input);
                    device = build(&rig, 1, true);
                    device.persist(&mut archive).and_then(|()| archive.finish()).unwrap();
                    assert!(saved(&mut *device) == bytes, "what was loaded is saved otherwise");
                }
                shown.push((host.now, host.cut, counters(&*device)));
            }
            assert_eq!(counters(&*device)["rebuilt_members"], 1);
            shown
        };
        let expected = run(&[]);
        for copies in
            [&[4_990_000][..], &[5_010_000], &[6_000_000, 8_000_000], &[11_000_000, 13_000_000]]
        {
            assert!(run(copies) == expected, "{level} {copies:?}");
        }
    }
}

#[test]
fn an_array_that_is_to_lose_power_alone_is_refused() {
    for (key, instead) in
        [("power_loss = [\"1s\"]", "above [device]"), ("restart_after = \"2s\"", "are ready")]
    {
        let text = format!(
            "[device]\nkind = \"array\"\nlevel = \"raid1\"\ncount = 2\n{key}\n[device.member]\n{NULL}\n"
        );
        let said = Rig::parse(&text, "array").and_then(|rig| rig.build(1, false));
        let said = said.err().map(|e| e.to_string()).unwrap_or_default();
        assert!(said.contains(key.split(' ').next().unwrap()) && said.contains(instead), "{said}");
    }
}
