//! Steady states that are drawn, beside those that are written.

use crate::common::{amount, command, lab_reference, points, ssd_of};
use ssdlab::device::ssd::Ssd;
use ssdlab::device::{Device, Drawing, Op};
use ssdlab::ftl::OPEN;
use ssdlab::ftl::victim::VICTIMS;
use ssdlab::rig::Rig;
use ssdlab::rng::Stream;
use ssdlab::run::prepare;

/// Bytes of a write.
const WRITE: u64 = 4096;
/// A write buffer that lets program units fill up.
const BUFFER: &str = "{ size = \"1MiB\", power_loss_protected = true }";
/// A rig with its exceptions from the reference drive.
type Keys = &'static [(&'static str, &'static str)];

/// Superblocks of all dies, four times as long as those of a model, or more.
const LARGE: Keys =
    &[("capacity", "3GiB"), ("ftl.gc.scope", "drive"), ("nand.pages_per_block", "1024")];
const LARGE_STRIPED: Keys = &[
    ("capacity", "3GiB"),
    ("ftl.gc.scope", "drive"),
    ("nand.pages_per_block", "576"),
    ("nand.page", "8KiB"),
    ("ftl.parity.stripe", "48"),
    ("ftl.gc.pace", "paced"),
    ("write_buffer", BUFFER),
];

/// Takes the steady state at once, if it can be drawn.
fn draw(ssd: &mut Ssd, stream: &mut Stream) -> bool {
    ssd.draw_steady(WRITE, &mut Drawing::new(stream, &mut |_| true))
}

fn counter(device: &dyn Device, wanted: &str) -> f64 {
    let mut found = None;
    device.counters(&mut |name, value| {
        found = if name == wanted { Some(value as f64) } else { found };
    });
    found.unwrap_or_else(|| panic!("no counter {wanted}"))
}

/// Writes so many times the capacity at random; answers the write amplification.
fn write(device: &mut dyn Device, times: f64, stream: &mut Stream) -> f64 {
    let of = |device: &dyn Device| {
        (counter(device, "host_bytes_written"), counter(device, "flash_bytes_written"))
    };
    let (host, flash) = of(device);
    let blocks = device.capacity() / WRITE;
    for _ in 0..(blocks as f64 * times) as u64 {
        device.apply(&command(Op::Write, stream.below(blocks) * WRITE, WRITE));
    }
    let (host_after, flash_after) = of(device);
    (flash_after - flash) / (host_after - host)
}

/// Adds the shares of superblocks by the valid units that they hold, in eighths of what they have room for.
fn add_occupancy(ssd: &Ssd, shares: &mut [f64; 8]) {
    let blocks = ssd.ftl().blocks();
    for valid in &blocks.valid {
        let eighth = (valid & !OPEN) * 8 / (blocks.units_per_superblock + 1);
        shares[eighth as usize] += 1.0 / blocks.valid.len() as f64;
    }
}

/// Write amplification over so many drive writes after a drive was drawn or written, and its mean occupancy meanwhile.
fn observed(rig: &Rig, seed: u64, drawn: bool, times: u32) -> [f64; 9] {
    let looks = 4 * times;
    let mut ssd = ssd_of(rig, seed, false);
    let mut stream = Stream::new(seed, "test");
    if drawn {
        assert!(draw(&mut ssd, &mut stream), "a state to be drawn");
        ssd.verify();
        write(&mut ssd, 0.0625, &mut stream);
    } else {
        for block in 0..ssd.capacity() / WRITE {
            ssd.apply(&command(Op::Write, block * WRITE, WRITE));
        }
        write(&mut ssd, 6.0, &mut stream);
    }
    let (mut amplification, mut shares) = (0.0, [0.0; 8]);
    for _ in 0..looks {
        amplification += write(&mut ssd, 0.25, &mut stream);
        add_occupancy(&ssd, &mut shares);
    }
    let mut found = [amplification; 9];
    found[1..].copy_from_slice(&shares);
    found.map(|sum| sum / f64::from(looks))
}

/// Asserts that the means of drawn drives are those of written ones within half a percent: write amplification, and
/// the shares of superblocks by what they hold. Both are over ten drive writes: a drawn state is seen for two of them,
/// as another state was drawn for the next two; a written drive, which seven are written to first, is seen for longer.
fn compare(keys: Keys, victim: &str) {
    let mut rig = lab_reference(keys);
    rig.set("ftl.gc.victim", victim).unwrap();
    let mean = |drawn, drives: u32, times| {
        let all = (1..=u64::from(drives)).map(|seed| observed(&rig, seed, drawn, times));
        all.fold([0.0; 9], |sum, one| std::array::from_fn(|i| sum[i] + one[i] / f64::from(drives)))
    };
    let (drives, times) = amount((2, 5), (5, 2));
    let (drawn, written) = (mean(true, 5, 2), mean(false, drives, times));
    println!("{victim} {keys:?}\n  drawn   {drawn:.4?}\n  written {written:.4?}");
    let of = |at: usize| if at == 0 { written[0] } else { 1.0 };
    let off = (0..9).map(|at| (drawn[at] - written[at]) / of(at));
    let off: Vec<f64> = off.collect();
    assert!(off.iter().all(|x| x.abs() < 0.005), "{victim} {keys:?}: {off:.4?} off");
}

#[test]
fn every_victim_policy_finds_a_drawn_drive_as_a_written_one() {
    for victim in VICTIMS.names() {
        // Random victims scatter four times as far as others.
        let capacity: Keys = match victim {
            "random" => &[("capacity", "1GiB")],
            _ => amount(&[("capacity", "512MiB")], &[("capacity", "1GiB")]),
        };
        compare(capacity, victim);
    }
}

#[test]
fn a_drawn_drive_is_as_a_written_one_however_it_collects() {
    for keys in points([
        &[("capacity", "512MiB"), ("ftl.gc.separate_frontier", "true")] as Keys,
        &[("capacity", "512MiB"), ("ftl.gc.pace", "paced")],
        &[("capacity", "512MiB"), ("ftl.parity.stripe", "8")],
        &[("capacity", "512MiB"), ("ftl.over_provisioning", "0.07")],
        &[("capacity", "512MiB"), ("nand.planes", "2"), ("write_buffer", BUFFER)],
        &[("capacity", "512MiB"), ("nand.page", "8KiB"), ("ftl.gc.scope", "channel")],
    ]) {
        compare(keys, "greedy");
    }
}

#[test]
fn a_drive_of_large_superblocks_is_drawn_from_a_model_of_short_ones() {
    let all = [
        (LARGE_STRIPED, "greedy"),
        (LARGE_STRIPED, "cost-benefit"),
        (LARGE, "greedy"),
        (LARGE, "fifo"),
        (LARGE, "d-choices"),
    ];
    for (keys, victim) in all.into_iter().take(amount(1, all.len())) {
        compare(keys, victim);
    }
}

#[test]
fn a_drawn_drive_has_programmed_and_erased_what_it_counts() {
    for keys in [
        &[("capacity", "256MiB"), ("nand.page", "8KiB"), ("write_buffer", BUFFER)] as Keys,
        &[("capacity", "256MiB"), ("nand.page", "8KiB"), ("ftl.parity.stripe", "16")],
        &[("capacity", "256MiB"), ("ftl.gc.scope", "channel"), ("ftl.gc.pace", "paced")],
        LARGE,
        LARGE_STRIPED,
    ] {
        let mut ssd = ssd_of(&lab_reference(keys), 1, false);
        assert!(draw(&mut ssd, &mut Stream::new(1, "test")));
        let of = |name: &str| counter(&ssd, name);
        let causes = ["host", "collection", "padding", "parity"];
        let programs: f64 = causes.iter().map(|cause| of(&format!("programs_{cause}"))).sum();
        assert_eq!(of("flash_units_programmed"), programs - of("units_open"), "{keys:?}");
        assert_eq!(of("flash_bytes_written"), programs * of("unit_bytes"));
        assert_eq!(of("host_bytes_written"), of("programs_host") * of("unit_bytes"));
        assert_eq!(of("units_mapped"), (ssd.capacity() / WRITE) as f64);
        assert_eq!(of("erases_sum"), of("superblocks_erased"));
        let blocks_per_superblock = of("flash_erases") / of("superblocks_erased");
        assert_eq!(blocks_per_superblock, f64::from(ssd.ftl().layout.dies_per_region));
        // Everything that was programmed lies in superblocks, or was erased with one.
        let full = of("data_superblocks") - of("free_superblocks") + of("superblocks_erased");
        let room = full * of("superblock_units");
        let frontiers = f64::from(ssd.ftl().layout.regions) * of("superblock_units");
        assert!((room - frontiers..=room).contains(&programs), "{programs} of {room} {keys:?}");
        // The first in order; regions come to differ by two more.
        let expected = if ssd.ftl().layout.regions > 1 { 10.0 } else { 9.0 };
        let writes = of("host_bytes_written") / ssd.capacity() as f64;
        assert!((writes - expected).abs() < 0.5, "{writes} drive writes");
        ssd.verify();
    }
}

#[test]
fn the_same_seed_draws_the_same_state() {
    let fingerprint = |seed: u64| {
        let mut ssd = ssd_of(&lab_reference(&[("capacity", "128MiB")]), 1, false);
        assert!(draw(&mut ssd, &mut Stream::new(seed, "test")));
        ssd.ftl().fingerprint()
    };
    assert_eq!(fingerprint(1), fingerprint(1));
    assert_ne!(fingerprint(1), fingerprint(2));
}

#[test]
fn what_cannot_be_drawn_is_left_as_it_is() {
    for keys in [
        &[("ftl.placement", "striped")] as Keys,
        &[("ftl.gc.scope", "drive")],
        &[("ftl.map.kind", "cached"), ("ftl.map.cache", "64KiB")],
        &[("ftl.compression.granule", "512B")],
        &[("ftl.wear_leveling.policy", "threshold")],
        &[("ftl.mapping_unit", "2KiB")],
        &[
            ("ftl.gc.pace", "periodic"),
            ("ftl.gc.batch", "{ start = 2.0, end = 2.5, copies = 8.0 }"),
        ],
    ] {
        let mut rig = lab_reference(&[("capacity", "128MiB")]);
        keys.iter().for_each(|(key, value)| rig.set(key, value).unwrap());
        let mut ssd = ssd_of(&rig, 1, false);
        let before = ssd.ftl().fingerprint();
        assert!(!draw(&mut ssd, &mut Stream::new(1, "test")), "{keys:?}");
        assert_eq!(ssd.ftl().fingerprint(), before, "{keys:?}");
    }
    // A drive that was written, and one whose content is looked at.
    let rig = lab_reference(&[("capacity", "128MiB")]);
    let mut ssd = ssd_of(&rig, 1, false);
    ssd.apply(&command(Op::Write, 0, WRITE));
    assert!(!draw(&mut ssd, &mut Stream::new(1, "test")));
    assert!(!draw(&mut ssd_of(&rig, 1, true), &mut Stream::new(1, "test")));
}

#[test]
fn preparing_a_large_drive_draws_its_steady_state_and_a_link_hands_it_on() {
    let link = "[device]\nkind = \"link\"\nbandwidth = \"500MB/s\"\nqueue_slots = 32\nduplex = \"half\"\n\
                [device.below]\n";
    let ssd = lab_reference(&[("capacity", "5GiB")]).to_toml();
    let below = ssd.split_once("[device]").unwrap().1.replace("[device.", "[device.below.");
    for rig in [ssd.clone(), format!("{link}{below}")] {
        let mut device = Rig::parse(&rig, "large").unwrap().build(1, false).unwrap();
        prepare(&mut *device, &"steady".parse().unwrap(), 1, &mut ()).unwrap();
        let root: &dyn Device = &*device;
        let below = root.children();
        let ssd = below.first().map_or(root, |(_, ssd)| *ssd);
        let writes = counter(ssd, "host_bytes_written") / ssd.capacity() as f64;
        // Those of the model, and those that let it settle.
        assert!((writes - 10.0625).abs() < 0.2, "{writes} drive writes");
    }
}

#[test]
fn drawing_tells_how_far_it_is_and_leaves_an_empty_drive_when_it_is_stopped() {
    let rig = lab_reference(&[("capacity", "1GiB")]);
    for after in [usize::MAX, 1, 3, 6] {
        let mut ssd = ssd_of(&rig, 1, false);
        let (mut stream, mut told) = (Stream::new(1, "test"), Vec::new());
        let mut watch = |share| {
            told.push(share);
            told.len() <= after
        };
        let mut drawing = Drawing::new(&mut stream, &mut watch);
        let drawn = ssd.draw_steady(WRITE, &mut drawing);
        assert_eq!((drawn, drawing.is_stopped()), (after == usize::MAX, after != usize::MAX));
        assert!(told.is_sorted() && told[0] < 0.05, "{told:?}");
        if drawn {
            assert!(told.len() > 7 && told[told.len() - 1] > 0.95, "{told:?}");
        } else {
            assert_eq!((told.len(), ssd.ftl().counters.units_mapped), (after + 1, 0));
        }
        ssd.verify();
        write(&mut ssd, 0.1, &mut stream);
        ssd.verify();
    }
}
