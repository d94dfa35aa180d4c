//! The simulator against closed forms: write amplification, occupancy, throughput, latency.

use crate::common;

use common::models;
use common::{Sets, command, lab_ssd, points};
use ssdlab::device::ssd::Ssd;
use ssdlab::device::{Device, Op};
use ssdlab::rig::Rig;
use ssdlab::rng::Stream;
use ssdlab::run::write_amplification;

const UNIT: u64 = 4096;
/// Mapping units of a superblock of `lab-reference` on one die.
const B: u32 = 64;

/// The models themselves, against values computed elsewhere (page-level Monte Carlo and numerical
/// solutions to four digits).
#[test]
fn the_closed_forms_reproduce_their_reference_values() {
    let near = |name: &str, value: f64, reference: f64| {
        assert!((value / reference - 1.0).abs() < 5e-5, "{name}: {value}, not {reference}");
    };
    near("fifo 7 %", models::fifo(1.07), 7.8172);
    near("fifo 40 %", models::fifo(1.4), 1.9569);
    near("random 12.7 %", models::random(1.127), 8.8740);
    near("greedy 7 %", models::greedy(1.07, 64).wa, 7.0099);
    near("greedy 28 %", models::greedy(1.28, 64).wa, 2.4028);
    near("greedy b=16", models::greedy(1.07, 16).wa, 5.3281);
    near("greedy b=256", models::greedy(1.07, 256).wa, 7.5969);
    near("d=2", models::d_choices(1.07, 64, 2), 10.2772);
    near("d=10", models::d_choices(1.28, 64, 10), 2.4711);
    near("window 10 %", models::windowed(1.07, 64, 0.1), 7.3314);
    near("window 30 %", models::windowed(1.28, 64, 0.3), 2.4038);
    near("hot/cold", models::hot_cold_fifo(1.07, &[(0.2, 0.8), (0.8, 0.2)]), 8.1818);
}

/// One die with about `superblocks` superblocks that may hold data.
fn one_die(superblocks: u64, op: f64, more: Sets) -> Ssd {
    let units = (superblocks as f64 * f64::from(B) / (1.0 + op)).round() as u64;
    let (capacity, op) = (format!("{}KiB", units * 4), op.to_string());
    let mut sets = vec![
        ("nand.channels", "1"),
        ("nand.ways", "1"),
        ("capacity", capacity.as_str()),
        ("ftl.over_provisioning", op.as_str()),
    ];
    sets.extend_from_slice(more);
    lab_ssd(&sets, 1)
}

/// Physical / logical as built; one superblock is the reserve.
fn alpha_of(ssd: &Ssd) -> f64 {
    1.0 + ssd.over_provisioning(1)
}

fn units_of(ssd: &Ssd) -> u64 {
    ssd.capacity() / UNIT
}

fn write(ssd: &mut Ssd, unit: u64) {
    ssd.apply(&command(Op::Write, unit * UNIT, UNIT));
}

/// Programs and host units so far.
fn programs(ssd: &Ssd) -> (u64, u64) {
    let c = &ssd.ftl().counters;
    (c.programs_host + c.programs_collection + c.programs_wear, c.host_units_written)
}

/// Write amplification of `steps` after `warm` steps, both in multiples of the capacity.
fn steady_wa(ssd: &mut Ssd, warm: u64, measured: u64, mut step: impl FnMut(&mut Ssd)) -> f64 {
    common::fill_sequentially(ssd, UNIT);
    let units = units_of(ssd);
    (0..warm * units).for_each(|_| step(ssd));
    let before = programs(ssd);
    (0..measured * units).for_each(|_| step(ssd));
    let after = programs(ssd);
    ssd.verify();
    (after.0 - before.0) as f64 / (after.1 - before.1) as f64
}

fn uniform_wa(ssd: &mut Ssd) -> f64 {
    let (units, mut rng) = (units_of(ssd), Stream::new(1, "uniform"));
    steady_wa(ssd, 8, 6, |ssd| write(ssd, rng.below(units)))
}

fn within(what: &str, measured: f64, expected: f64, tolerance: f64) {
    let error = measured / expected - 1.0;
    println!("{what}: {measured:.4}, closed form {expected:.4}: {:+.3} %", error * 100.0);
    assert!(error.abs() < tolerance, "{what}: {measured}, closed form {expected}");
}

const OPS: [f64; 4] = [0.07, 0.127, 0.28, 0.40];

#[test]
fn fifo_follows_the_lambert_form_within_half_a_percent() {
    for op in points(OPS) {
        let mut ssd = one_die(2048, op, &[("ftl.gc.victim", "fifo")]);
        let expected = models::fifo(alpha_of(&ssd));
        within(&format!("fifo, OP {op}"), uniform_wa(&mut ssd), expected, 0.005);
    }
}

#[test]
fn greedy_follows_the_fluid_limit_of_finite_superblocks() {
    for op in points(OPS) {
        let mut ssd = one_die(2048, op, &[]);
        let expected = models::greedy(alpha_of(&ssd), B).wa;
        within(&format!("greedy, OP {op}"), uniform_wa(&mut ssd), expected, 0.01);
    }
}

#[test]
fn d_choices_follow_the_mean_field() {
    for op in points(OPS) {
        for d in [2, 10] {
            let choices = d.to_string();
            let sets = [("ftl.gc.victim", "d-choices"), ("ftl.gc.choices", choices.as_str())];
            let mut ssd = one_die(2048, op, &sets);
            let expected = models::d_choices(alpha_of(&ssd), B, d);
            within(&format!("d={d}, OP {op}"), uniform_wa(&mut ssd), expected, 0.01);
        }
    }
}

#[test]
fn random_victims_hold_their_share_of_the_data() {
    for op in points(OPS) {
        let mut ssd = one_die(2048, op, &[("ftl.gc.victim", "random")]);
        let expected = models::random(alpha_of(&ssd));
        within(&format!("random, OP {op}"), uniform_wa(&mut ssd), expected, 0.01);
    }
}

#[test]
fn windowed_greedy_lies_where_the_binomial_entry_puts_it() {
    for op in points(OPS) {
        for window in [0.1, 0.3] {
            let share = window.to_string();
            let sets = [("ftl.gc.victim", "windowed"), ("ftl.gc.window", share.as_str())];
            let mut ssd = one_die(1024, op, &sets);
            let expected = models::windowed(alpha_of(&ssd), B, window);
            within(&format!("window {window}, OP {op}"), uniform_wa(&mut ssd), expected, 0.01);
        }
    }
}

#[test]
fn the_laws_tell_policies_apart() {
    // The canary: the wrong policy must miss the form by far more than the tolerances above.
    let mut ssd = one_die(1024, 0.07, &[]);
    let alpha = alpha_of(&ssd);
    let greedy = uniform_wa(&mut ssd);
    for (name, form) in [
        ("fifo", models::fifo(alpha)),
        ("d=10", models::d_choices(alpha, B, 10)),
        ("window 10 %", models::windowed(alpha, B, 0.1)),
        ("b=128", models::greedy(alpha, 128).wa),
    ] {
        assert!((greedy / form - 1.0).abs() > 0.03, "greedy passes for {name}: {greedy}, {form}");
    }
}

#[test]
fn write_amplification_does_not_depend_on_how_the_flash_is_divided() {
    // Many regions, superblocks over several dies, several units to a page: b is what counts.
    let cases: [(&str, u32, Sets); 4] = [
        ("16 dies, round robin", 64, &[]),
        ("16 dies, striped", 64, &[("ftl.placement", "striped")]),
        (
            "4 dies in one superblock of 256",
            256,
            &[("nand.channels", "2"), ("ftl.gc.scope", "drive")],
        ),
        (
            "2 dies of a channel, superblocks of 128",
            128,
            &[("nand.channels", "4"), ("ftl.gc.scope", "channel")],
        ),
    ];
    for (what, b, more) in points(cases) {
        let mut sets = vec![("capacity", "1GiB"), ("ftl.over_provisioning", "0.127")];
        sets.extend_from_slice(more);
        let mut ssd = lab_ssd(&sets, 1);
        let expected = models::greedy(alpha_of(&ssd), b).wa;
        within(what, uniform_wa(&mut ssd), expected, 0.01);
    }
}

/// Share of the addresses that is hot, and of the writes that goes there.
fn hot_cold_wa(ssd: &mut Ssd, addresses: f64, writes: f64, warm: u64) -> f64 {
    let (units, mut rng) = (units_of(ssd), Stream::new(2, "hot and cold"));
    let hot = (units as f64 * addresses).round() as u64;
    steady_wa(ssd, warm, 8, |ssd| {
        let unit = if rng.unit() < writes { rng.below(hot) } else { hot + rng.below(units - hot) };
        write(ssd, unit);
    })
}

#[test]
fn hot_and_cold_data_in_one_fifo_log_mix_as_desnoyers_says() {
    for (op, f, r) in
        points([(0.07, 0.2, 0.8), (0.07, 0.1, 0.9), (0.28, 0.1, 0.9), (0.15, 0.2, 0.8)])
    {
        let mut ssd = one_die(2048, op, &[("ftl.gc.victim", "fifo")]);
        let expected = models::hot_cold_fifo(alpha_of(&ssd), &[(f, r), (1.0 - f, 1.0 - r)]);
        let wa = hot_cold_wa(&mut ssd, f, r, 12);
        within(&format!("{f}/{r}, OP {op}"), wa, expected, 0.01);
    }
}

/// Not closed forms but an independent page-level Monte Carlo of 4096 blocks, two seeds. Of greedy with
/// two frontiers one point is here: at others the rule for ties decides, most where the reserve is
/// small (10/90, OP 7 %: 7.11 with the older superblock first, 7.27 at random, 7.61 with the newer
/// first; OP 28 %: 2.75, 2.80, 2.87).
#[test]
fn hot_and_cold_data_agree_with_an_independent_simulation() {
    let d10: Sets = &[("ftl.gc.victim", "d-choices"), ("ftl.gc.choices", "10")];
    let d10_two: Sets = &[
        ("ftl.gc.victim", "d-choices"),
        ("ftl.gc.choices", "10"),
        ("ftl.gc.separate_frontier", "true"),
    ];
    let two: Sets = &[("ftl.gc.separate_frontier", "true")];
    for (what, op, f, r, sets, reference) in points([
        ("d=10", 0.28, 0.2, 0.8, d10, 2.7959),
        ("greedy", 0.28, 0.2, 0.8, &[] as Sets, 2.7528),
        ("greedy, two frontiers", 0.28, 0.2, 0.8, two, 2.6458),
        ("d=10, two frontiers", 0.28, 0.2, 0.8, d10_two, 2.4906),
        ("d=10, two frontiers", 0.28, 0.1, 0.9, d10_two, 2.1034),
        ("d=10, two frontiers", 0.07, 0.1, 0.9, d10_two, 5.6909),
    ]) {
        let mut ssd = one_die(4096, op, sets);
        let wa = hot_cold_wa(&mut ssd, f, r, 25);
        within(&format!("{what}, {f}/{r}, OP {op}"), wa, reference, 0.01);
    }
}

#[test]
fn trimmed_space_is_spare_space() {
    let spares = [(0.07, 0.05), (0.07, 0.1), (0.07, 0.2), (0.07, 0.3), (0.15, 0.1)];
    for (nth, (op, q)) in spares.into_iter().enumerate() {
        // Both at each, by turns where there is no time.
        for victim in points(["greedy", "fifo"].into_iter().cycle().skip(nth).take(2)) {
            let mut ssd = one_die(2048, op, &[("ftl.gc.victim", victim)]);
            let alpha = alpha_of(&ssd) * (1.0 - q) / (1.0 - 2.0 * q);
            let expected = match victim {
                "fifo" => models::fifo(alpha),
                _ => models::greedy(alpha, B).wa,
            };
            let units = units_of(&ssd);
            let mut rng = Stream::new(3, "trim");
            let wa = steady_wa(&mut ssd, 10, 8, |ssd| {
                if rng.unit() < q {
                    // A unit in use, each as likely as the next.
                    let unit = loop {
                        let unit = rng.below(units);
                        if ssd.ftl().lookup(unit as u32) != ssdlab::nand::NONE {
                            break unit;
                        }
                    };
                    ssd.apply(&command(Op::Trim, unit * UNIT, UNIT));
                } else {
                    write(ssd, rng.below(units));
                }
            });
            within(&format!("{victim}, {q} TRIMs, OP {op}"), wa, expected, 0.01);
            let in_use = ssd.ftl().counters.units_mapped as f64 / units as f64;
            within("share in use", in_use, (1.0 - 2.0 * q) / (1.0 - q), 0.01);
        }
    }
}

#[test]
fn under_greedy_the_occupancy_falls_off_as_one_over_the_valid_count() {
    for op in [0.07, 0.28] {
        let mut ssd = one_die(2048, op, &[]);
        let (units, mut rng) = (units_of(&ssd), Stream::new(4, "occupancy"));
        common::fill_sequentially(&mut ssd, UNIT);
        (0..8 * units).for_each(|_| write(&mut ssd, rng.below(units)));
        let mut seen = vec![0u64; B as usize + 1];
        let mut all = 0u64;
        for _ in 0..400 {
            (0..units / 20).for_each(|_| write(&mut ssd, rng.below(units)));
            for &valid in ssd.ftl().blocks().valid.iter().filter(|&&v| v <= B) {
                seen[valid as usize] += 1;
                all += 1;
            }
        }
        let alpha = alpha_of(&ssd);
        let model = models::greedy(alpha, B);
        let (mut apart, mut worst) = (0.0, 0.0f64);
        for i in model.level + 2..=B {
            let measured = seen[i as usize] as f64 / all as f64;
            let expected = model.share(alpha, B, i);
            apart += (measured - expected).abs() / 2.0;
            worst = worst.max((measured / expected - 1.0).abs());
        }
        let below: u64 = seen[..model.level as usize].iter().sum();
        println!("OP {op}: total variation {apart:.5}, worst level {worst:.4}, below {below}");
        assert!(apart < 0.005, "OP {op}: the histogram is {apart} from the 1/i law");
        assert!(worst < 0.02, "OP {op}: one level is {worst} off the 1/i law");
        assert!((below as f64) < 0.005 * all as f64, "OP {op}: {below} below the victims' level");
    }
}

/// Without collection a random write of 4 KiB programs the whole unit that it lies in: a drive of
/// 4 KiB units programs as much as it is written, one of 16 KiB units four times as much, an array
/// of both the mean. Of units both program one per write.
#[test]
fn write_amplification_of_an_array_is_by_bytes_also_where_units_differ() {
    let member = |unit: &str| {
        format!(
            "{{ kind = \"ssd\", capacity = \"64MiB\", nand = {{ channels = 1, ways = 1, page = \"16KiB\", \
             pages_per_block = 64, t_read = \"75us\", t_program = \"750us\", t_erase = \"3.8ms\", \
             transfer_mts = 333 }}, ftl = {{ over_provisioning = 4, mapping_unit = \"{unit}\" }}, \
             write_buffer = {{ size = \"1MiB\", power_loss_protected = true }} }}"
        )
    };
    let of = |members: &[&str]| {
        let members: Vec<String> = members.iter().map(|unit| member(unit)).collect();
        let text = format!(
            "[device]\nkind = \"array\"\nlevel = \"raid0\"\nchunk = \"16KiB\"\nmembers = [{}]\n",
            members.join(", ")
        );
        let mut array = Rig::parse(&text, "array").unwrap().build(1, false).unwrap();
        let mut stream = Stream::new(1, "test");
        for _ in 0..8192 {
            let block = stream.below(array.capacity() / UNIT);
            array.apply(&command(Op::Write, block * UNIT, UNIT));
        }
        write_amplification(array.as_ref()).unwrap()
    };
    let (small, large) = (of(&["4KiB"; 2]), of(&["16KiB"; 2]));
    assert!((1.0 - small).abs() < 0.01 && (4.0 - large).abs() < 0.01, "{small}, {large}");
    let both = of(&["4KiB", "16KiB"]);
    assert!((2.5 - both).abs() < 0.03, "{both}");
}
