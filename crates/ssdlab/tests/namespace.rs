//! Namespaces: a part of a drive for the host, the rest in reserve.

use crate::common::{command, counters, lab_ssd};
use ssdlab::device::ssd::Ssd;
use ssdlab::device::{Device, Op};
use ssdlab::rig::Rig;
use ssdlab::rng::Stream;

const UNIT: u64 = 4096;

/// Fills a drive and overwrites it at random, four times.
fn overwritten(mut ssd: Ssd) -> Ssd {
    let units = ssd.capacity() / UNIT;
    let mut rng = Stream::new(1, "uniform");
    (0..units).for_each(|unit| ssd.apply(&command(Op::Write, unit * UNIT, UNIT)));
    (0..4 * units).for_each(|_| ssd.apply(&command(Op::Write, rng.below(units) * UNIT, UNIT)));
    ssd.verify();
    ssd
}

#[test]
fn a_namespace_wears_as_the_drive_of_its_size_that_has_the_rest_in_reserve() {
    let whole = [("capacity", "256MiB"), ("ftl.over_provisioning", "0.1")];
    let of_part = [whole.as_slice(), &[("namespace", "192MiB")]].concat();
    let part = overwritten(lab_ssd(&of_part, 1));
    assert_eq!(part.capacity(), 192 << 20);
    // 256 / 192 times 1.1.
    let reserve = (256.0 / 192.0 * 1.1 - 1.0).to_string();
    let smaller = [("capacity", "192MiB"), ("ftl.over_provisioning", reserve.as_str())];
    assert_eq!(counters(&part), counters(&overwritten(lab_ssd(&smaller, 1))));
    let programs = |ssd: &Ssd| ssd.ftl().counters.programs_collection;
    let full = overwritten(lab_ssd(&whole, 1));
    assert!(programs(&part) < programs(&full) / 2, "{} of {}", programs(&part), programs(&full));
}

#[test]
fn a_namespace_of_all_of_a_drive_changes_nothing() {
    let part = overwritten(lab_ssd(&[("capacity", "128MiB"), ("namespace", "128MiB")], 1));
    assert_eq!(counters(&part), counters(&overwritten(lab_ssd(&[("capacity", "128MiB")], 1))));
}

#[test]
fn a_namespace_that_does_not_fit_is_answered_with_what_would() {
    let said = |namespace: &str| {
        let text = include_str!("../../../python/ssdlab/profiles/lab-reference.toml");
        let mut rig = Rig::parse(text, "my.toml").unwrap();
        rig.set("capacity", "1GiB").unwrap();
        rig.set("namespace", namespace).unwrap();
        let memory = rig.memory_bytes().err().map(|e| e.to_string());
        let built = rig.build(1, false).err().map(|e| e.to_string());
        assert_eq!(memory, built);
        built.unwrap_or_default()
    };
    for namespace in ["2GiB", "0B", "1000B"] {
        let expected =
            "expected a multiple of the mapping unit (4KiB) above 0, at most the capacity (1GiB)";
        assert!(said(namespace).contains(expected), "{namespace}: {}", said(namespace));
    }
    assert!(said("4MiB").contains("expected a larger one"), "{}", said("4MiB"));
    assert_eq!(said("512MiB"), "");
}

#[test]
fn a_smaller_drive_keeps_the_share_of_its_namespace() {
    let text = include_str!("../../../python/ssdlab/profiles/micron-7450-960.toml");
    let mut rig = Rig::parse(text, "drive").unwrap();
    rig.set("namespace", "447GiB").unwrap();
    for (key, value) in rig.scale(100, 64).unwrap() {
        rig.set(&key, &value).unwrap();
    }
    let size = |key| rig.bytes(key).unwrap().unwrap() as f64;
    let share = 447.0 * f64::powi(2.0, 30) / 960_197_124_096.0;
    assert!((size("namespace") / size("capacity") / share - 1.0).abs() < 1e-4);
    rig.build(1, false).unwrap();
}

#[test]
fn a_drive_stands_for_none_that_is_smaller() {
    let text = include_str!("../../../python/ssdlab/profiles/micron-7450-960.toml");
    let mut rig = Rig::parse(text, "drive").unwrap();
    rig.set("namespace", "447GiB").unwrap();
    for (key, value) in rig.scale(100, 64).unwrap() {
        rig.set(&key, &value).unwrap();
    }
    assert_eq!(
        rig.get("full_capacity").as_deref(),
        Some("479962595328B"),
        "what the host sees of it"
    );
    rig.build(1, false).unwrap();
    rig.set("full_capacity", "1MiB").unwrap();
    let said = rig.build(1, false).err().unwrap().to_string();
    assert!(said.contains("full_capacity: found 1MiB, expected at least the capacity ("), "{said}");
}
