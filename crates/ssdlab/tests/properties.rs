//! Properties over anything that can be drawn: the page map against a plain map, rigs against any
//! text, units against their own notation.

use crate::common;

use common::audit::{Audit, random_script};
use common::rigs::{SAMPLES, stack};
use common::{LAB_REFERENCE, cases};
use proptest::collection::vec;
use proptest::prelude::*;
use ssdlab::catalogue::device_keys;
use ssdlab::ftl::placement::PLACEMENTS;
use ssdlab::ftl::victim::{Parameters, VICTIMS, VictimPolicy};
use ssdlab::ftl::wear_leveling::{self, WEAR_LEVELINGS};
use ssdlab::ftl::{
    Batch, Blocks, Layout, Pace, PageMap, Policies, Scope, Settings, UnitWrite, Untimed,
};
use ssdlab::nand::{Geometry, NONE};
use ssdlab::persist::{Archive, Persist};
use ssdlab::rig::Rig;
use ssdlab::rng::Stream;
use ssdlab::units::{Bytes, Nanos, Rate};

const SECTORS: u32 = 8;

/// What can be done to a page map.
#[derive(Clone, Debug)]
enum Act {
    Write { lpn: u32, first: u32, sectors: u32, compressible: u8 },
    Trim(u32),
    PadAll,
    CollectIdle,
    Purge,
}

fn act(units: u32) -> impl Strategy<Value = Act> {
    prop_oneof![
        60 => (0..units, 0u8..=100).prop_map(|(lpn, compressible)| {
            Act::Write { lpn, first: 0, sectors: SECTORS, compressible }
        }),
        20 => (0..units, 0..SECTORS, 1..=SECTORS, 0u8..=100)
            .prop_map(|(lpn, first, sectors, compressible)| {
                let sectors = sectors.min(SECTORS - first);
                Act::Write { lpn, first, sectors, compressible }
            }),
        10 => (0..units).prop_map(Act::Trim),
        6 => Just(Act::PadAll),
        3 => Just(Act::CollectIdle),
        1 => Just(Act::Purge),
    ]
}

/// Shape and rules of a page map.
#[derive(Clone, Debug)]
struct Rules {
    geometry: Geometry,
    scope: Scope,
    superblocks: u32,
    settings: Settings,
    stripe: u32,
    victim: usize,
    placement: usize,
    wear: usize,
    /// Physical units of a mapping unit.
    granules: u32,
    seed: u64,
}

prop_compose! {
    fn rules()(
        channels in 1u32..3, ways in 1u32..3, planes in 1u32..3, units_per_page in 1u32..4,
        pages in 2u32..9,
        scope in prop_oneof![Just(Scope::Die), Just(Scope::Channel), Just(Scope::Drive)],
        superblocks in 7u32..20,
        low in 1u32..3, more in 0u32..3, pace in 0usize..3, separate_frontier: bool,
        in_row in proptest::option::of(1u32..5),
        copies in 0.1f64..20.0, stripe in prop_oneof![Just(0u32), 2u32..9],
        victim in 0..VICTIMS.entries.len(),
        placement in 0..PLACEMENTS.entries.len(),
        wear in 0..WEAR_LEVELINGS.entries.len(),
        (granules, seed) in (prop_oneof![3 => Just(1u32), 2 => Just(8), 1 => Just(2)], any::<u64>()),
    ) -> Rules {
        Rules {
            geometry: Geometry { channels, ways, planes, pages, pages_per_program: 1, units_per_page: units_per_page * granules, unit_bytes: 4096 / granules },
            scope,
            superblocks,
            settings: Settings {
                low,
                high: low + more,
                idle_superblocks: more,
                in_row,
                pace: [Pace::Blocking, Pace::Paced, Pace::Periodic][pace],
                // So full a drive has next to no free superblocks: its batches hardly end.
                batch: (pace == 2).then(|| Batch {
                    start: f64::from(low) + 0.5,
                    end: f64::from(low + 1 + more),
                    copies,
                    between: 0.0,
                }),
                separate_frontier,
                moves_for_wear: WEAR_LEVELINGS.entries[wear].name == "threshold",
            },
            stripe,
            victim, placement, wear, granules, seed,
        }
    }
}

/// A map that holds as many units as its regions can.
fn page_map(rules: &Rules) -> PageMap {
    let superblocks = rules.superblocks
        + u32::from(rules.settings.pace == Pace::Paced)
        + u32::from(rules.settings.moves_for_wear);
    let layout = Layout::new(&rules.geometry, rules.scope, superblocks);
    let stripe = rules.stripe.min(layout.programs_per_superblock());
    let mut layout = layout.with_parity(stripe).packed(rules.granules);
    // Superblocks of one program unit of data are too small to be packed.
    if layout.data_units_per_superblock() == layout.units_per_program() {
        layout = layout.packed(1);
    }
    let granules = PageMap::region_limit(&layout, &rules.settings) * layout.regions;
    let units = (granules / layout.granules()).max(1);
    let parameters = Parameters { choices: 3, window: 0.3 };
    let stream = Stream::new(rules.seed, "victim");
    let wear = wear_leveling::Parameters { spread: 3 };
    let policies = Policies {
        victim: (VICTIMS.entries[rules.victim].build)(&parameters, stream),
        placement: (PLACEMENTS.entries[rules.placement].build)(),
        wear: (WEAR_LEVELINGS.entries[rules.wear].build)(&wear),
    };
    PageMap::new(layout, units, rules.settings, policies, SECTORS, true)
}

fn rules_and_acts() -> impl Strategy<Value = (Rules, Vec<Act>)> {
    rules().prop_flat_map(|rules| {
        let units = page_map(&rules).units();
        (Just(rules), vec(act(units), 1..3000))
    })
}

proptest! {
    #![proptest_config(cases(80, 2500))]
    #[test]
    fn a_page_map_holds_what_a_plain_map_holds((rules, acts) in rules_and_acts()) {
        let mut map = page_map(&rules);
        let mut plain: Vec<Option<[u64; 8]>> = vec![None; map.units() as usize];
        for (stamp, act) in acts.iter().enumerate() {
            match *act {
                Act::Write { lpn, first, sectors, compressible } => {
                    let stamp = (stamp as u64 + 1) * 100;
                    let write = UnitWrite { lpn, first_sector: first, sectors, stamp, compressible };
                    let at = map.write(&write, &mut Untimed);
                    prop_assert_eq!(at, map.lookup(lpn));
                    let unit = plain[lpn as usize].get_or_insert([0; 8]);
                    for i in 0..sectors {
                        unit[(first + i) as usize] = stamp + u64::from(i);
                    }
                }
                Act::Trim(lpn) => {
                    map.trim(lpn, &mut Untimed);
                    plain[lpn as usize] = None;
                }
                Act::PadAll => map.pad_all(&mut Untimed),
                Act::CollectIdle => {
                    map.collect_idle(&mut Untimed);
                }
                Act::Purge => {
                    map.purge();
                    plain.fill(None);
                }
            }
        }
        map.check();
        for (lpn, unit) in plain.iter().enumerate() {
            let lpn = lpn as u32;
            prop_assert_eq!(map.lookup(lpn) == NONE, unit.is_none(), "unit {}", lpn);
            for sector in 0..SECTORS {
                let expected = unit.map_or(0, |u| u[sector as usize]);
                prop_assert_eq!(map.content(lpn, sector), expected, "unit {} + {}", lpn, sector);
            }
        }
        let c = map.counters;
        let mapped = plain.iter().flatten().count() as u64;
        let granules = u64::from(map.layout.granules());
        prop_assert!((mapped..=mapped * granules).contains(&c.units_mapped));
        prop_assert_eq!(c.programs_host + c.host_units_saved, c.host_units_written * granules);
    }
}

/// A canary: takes a superblock without asking whether it may.
struct TakesTheFirst;

impl Persist for TakesTheFirst {
    fn persist(&mut self, _: &mut Archive<'_>) -> ssdlab::Result<()> {
        Ok(())
    }
}

impl VictimPolicy for TakesTheFirst {
    fn pick(&mut self, blocks: &mut Blocks, region: u32, _: u64) -> u32 {
        blocks.of_region(region).start
    }
}

/// A canary: what frees nothing, as long as there is any.
struct TakesTheFullest;

impl Persist for TakesTheFullest {
    fn persist(&mut self, _: &mut Archive<'_>) -> ssdlab::Result<()> {
        Ok(())
    }
}

impl VictimPolicy for TakesTheFullest {
    fn pick(&mut self, blocks: &mut Blocks, region: u32, _: u64) -> u32 {
        let closed = blocks.oldest_first(region);
        closed.max_by_key(|&s| blocks.valid[s as usize]).expect("a closed superblock")
    }
}

/// Writes a small drive over and over whose victims this policy takes.
fn collect_by(victim: impl VictimPolicy + 'static, pace: Pace) {
    let geometry = Geometry {
        channels: 1,
        ways: 1,
        planes: 1,
        pages: 4,
        pages_per_program: 1,
        units_per_page: 1,
        unit_bytes: 4096,
    };
    let layout = Layout::new(&geometry, Scope::Die, 8);
    let settings = Settings {
        low: 1,
        high: 2,
        idle_superblocks: 1,
        pace,
        batch: None,
        in_row: None,
        separate_frontier: false,
        moves_for_wear: false,
    };
    let policies = Policies {
        victim: Box::new(victim),
        placement: (PLACEMENTS.entries[0].build)(),
        wear: None,
    };
    let mut map = PageMap::new(layout, 20, settings, policies, SECTORS, false);
    for n in 0..2000 {
        let write = UnitWrite {
            lpn: n * 7 % 20,
            first_sector: 0,
            sectors: SECTORS,
            stamp: 0,
            compressible: 0,
        };
        map.write(&write, &mut Untimed);
    }
    map.check();
}

#[test]
#[should_panic(expected = "may not be collected")]
fn a_victim_policy_that_takes_an_open_superblock_is_caught() {
    collect_by(TakesTheFirst, Pace::Blocking);
}

#[test]
#[should_panic(expected = "free nothing")]
fn a_victim_policy_that_takes_full_superblocks_is_caught() {
    collect_by(TakesTheFullest, Pace::Blocking);
}

#[test]
#[should_panic(expected = "free nothing")]
fn a_victim_policy_that_takes_full_superblocks_is_caught_where_collection_is_paced() {
    collect_by(TakesTheFullest, Pace::Paced);
}

fn keys() -> impl Strategy<Value = String> {
    let known: Vec<String> = device_keys().into_iter().map(|k| k.key).collect();
    prop_oneof![
        4 => proptest::sample::select(known.clone()),
        1 => proptest::sample::select(known).prop_map(|k| format!("below.{k}")),
        1 => "[a-z._]{0,20}",
        1 => ".*",
    ]
}

fn values() -> impl Strategy<Value = String> {
    prop_oneof![
        any::<i64>().prop_map(|n| n.to_string()),
        any::<f64>().prop_map(|x| format!("{x:?}")),
        (0u64..u64::MAX, "(ns|us|ms|s|min|h|d|B|kB|MB|TB|KiB|PiB|B/s|GB/s|x)")
            .prop_map(|(n, unit)| format!("{n}{unit}")),
        (0u64..100, "(ns|us|ms|s|d|B|KiB|MiB|TiB|MB/s)").prop_map(|(n, unit)| format!("{n}{unit}")),
        proptest::sample::select(vec![
            "0",
            "-1",
            "1",
            "2",
            "64",
            "1024",
            "true",
            "false",
            "\"\"",
            "[]",
            "{}",
            "nan",
            "inf",
            "greedy",
            "drive",
            "channel",
            "paced",
            "striped",
            "threshold",
            "fifo",
            "full",
            "link",
            "{ value = 3 }",
            "{ value = 3, source = \"x\" }",
            "\"4KiB\"",
            "18446744073709551615",
        ])
        .prop_map(str::to_string),
        ".*",
    ]
}

/// A rig's text with some lines changed, taken out or put in.
fn nearly_a_rig() -> impl Strategy<Value = String> {
    let line = prop_oneof![
        (keys(), values()).prop_map(|(k, v)| format!("{k} = {v}")),
        keys().prop_map(|k| format!("[device.{k}]")),
        ".*",
    ];
    vec((0usize..40, 0u8..3, line), 0..6).prop_map(|changes| {
        let mut lines: Vec<String> = LAB_REFERENCE.lines().map(str::to_string).collect();
        for (at, how, line) in changes {
            let at = at % lines.len();
            match how {
                0 => lines[at] = line,
                1 => lines.insert(at, line),
                _ => {
                    lines.remove(at);
                }
            }
        }
        lines.join("\n")
    })
}

proptest! {
    #![proptest_config(cases(2000, 20_000))]
    #[test]
    fn no_text_makes_parsing_a_rig_panic(text in ".*", nearly in nearly_a_rig()) {
        let _ = Rig::parse(&text, "any");
        if let Err(e) = Rig::parse(&nearly, "nearly") {
            prop_assert!(!e.to_string().contains('\n'), "an error is one line: {}", e);
        }
    }

    #[test]
    fn no_key_and_value_make_setting_panic(key in keys(), value in values()) {
        let mut rig = Rig::parse(LAB_REFERENCE, "lab").unwrap();
        let before = rig.to_toml();
        match rig.set(&key, &value) {
            Ok(()) => {
                let again = Rig::parse(&rig.to_toml(), "again");
                prop_assert_eq!(again.map(|r| r.to_toml()), Ok(rig.to_toml()));
            }
            Err(_) => prop_assert_eq!(rig.to_toml(), before, "a refused key changes nothing"),
        }
    }
}

/// Every key of a small stack is set to every one of these: it is refused in words, or the stack
/// keeps its promises.
#[test]
fn a_stack_with_any_single_value_is_refused_or_works() {
    let numbers =
        ["0", "1", "2", "3", "7", "1024", "65536", "4294967296", "9e18", "-1", "0.5", "nan", "inf"];
    let times = ["0ns", "1ns", "1us", "1h", "100d", "200000d", "213503d"];
    let sizes = ["0B", "1B", "511B", "512B", "1KiB", "3KiB", "64KiB", "1MiB", "64TiB", "16000PiB"];
    let rates = ["0B/s", "1B/s", "1MB/s", "1000TB/s"];
    let names = ["true", "false", "x", "drive", "channel", "paced", "full", "[]", "\"\""];
    let ssd = SAMPLES.iter().find(|s| s.kind == "ssd").unwrap();
    let mut built = 0;
    for key in device_keys() {
        let sample = SAMPLES.iter().find(|s| s.kind == key.device).expect("a sample");
        let layers: Vec<_> = [sample, ssd]
            .into_iter()
            .take(1 + usize::from(sample.below))
            .map(|s| s.layer())
            .collect();
        let values = [&numbers[..], &times, &sizes, &rates, &names].concat();
        for value in values {
            // A large drive is nobody's fault, but it does not fit a test.
            if key.key == "capacity" && Bytes::parse(value).is_ok_and(|b| b.0 > 1 << 26) {
                continue;
            }
            let mut rig = stack(&layers);
            if rig.set(&key.key, value).is_err() {
                continue;
            }
            let Ok(mut device) = rig.build(1, false) else { continue };
            built += 1;
            let script = random_script(1, device.capacity(), 200);
            let mut audit = Audit::new(&mut *device, None);
            if let Err(violation) = audit.run(&script, 4) {
                panic!("{} = {value}: {violation:?}\n{}", key.key, rig.to_toml());
            }
            device.verify();
        }
    }
    assert!(built > 150, "only {built} of the values could be tried");
}

#[test]
fn flash_too_large_to_number_is_refused_in_words() {
    let mut rig = common::lab_reference(&[
        ("nand.ways", "64"),
        ("nand.channels", "64"),
        ("nand.planes", "16"),
        ("nand.page", "1MiB"),
        ("nand.pages_per_block", "8192"),
    ]);
    for scope in ["die", "channel", "drive"] {
        rig.set("ftl.gc.scope", scope).unwrap();
        let error = rig.build(1, false).err().expect("2^40 units").to_string();
        assert!(error.contains("nand") && error.contains("2^32"), "{error}");
    }
}

proptest! {
    #![proptest_config(cases(5000, 50_000))]
    #[test]
    fn quantities_read_back_what_they_print(n in prop_oneof![0u64..1 << 20, any::<u64>()]) {
        prop_assert_eq!(Bytes::parse(&Bytes(n).to_string()), Ok(Bytes(n)));
        prop_assert_eq!(Nanos::parse(&Nanos(n).to_string()), Ok(Nanos(n)));
        prop_assert_eq!(Rate::parse(&Rate(n).to_string()), Ok(Rate(n)));
    }

    #[test]
    fn round_quantities_read_back_too(n in 0u64..1 << 20, power in 0u32..11) {
        let binary = n << (power * 3);
        let decimal = n * 10u64.pow(power);
        for n in [binary, decimal] {
            prop_assert_eq!(Bytes::parse(&Bytes(n).to_string()), Ok(Bytes(n)));
            prop_assert_eq!(Nanos::parse(&Nanos(n).to_string()), Ok(Nanos(n)));
            prop_assert_eq!(Rate::parse(&Rate(n).to_string()), Ok(Rate(n)));
        }
    }

    #[test]
    fn any_quantity_can_be_printed_and_any_text_read(n: u64, text in ".*") {
        let _ = (Bytes(n).to_string(), Nanos(n).to_string(), Rate(n).to_string());
        let _ = (Bytes::parse(&text), Nanos::parse(&text), Rate::parse(&text));
    }
}
