//! Losses of power over every device that ends a stack, below links and partitions too: what was promised
//! is there afterwards, and the device goes on and keeps its promises.

use crate::common;
use crate::laws::{goes_on, samples, steps};

use common::audit::{Audit, Step, Violation, power_script};
use common::rigs::{Layer, Shape, any_ssd, build, fitting, hold_to_promises, run_once, stack};
use common::{cases, command, counters, long};
use proptest::prelude::*;
use serde::Deserialize;
use ssdlab::array::Array;
use ssdlab::cache::device::{CacheDevice, CacheKeys};
use ssdlab::device::{Command, Completion, Device, Missed, Op};
use ssdlab::persist::{Archive, Persist};
use ssdlab::rig::Rig;

/// Devices that end a stack, mixed arrays and tiers among them.
fn leaves() -> impl Iterator<Item = Layer> {
    samples(false).map(|leaf| leaf.layer())
}

/// Those that stand above others, and in which nothing fails by itself: what a failure takes after a loss of power, see
/// below.
fn tops() -> impl Iterator<Item = Layer> {
    let fails = |top: &Layer| top.keys.contains("fail");
    samples(true).map(|top| top.layer()).filter(move |top| !fails(top))
}

/// Every device above others, above each of a few leaves, which go by turns.
fn towers(each: usize) -> impl Iterator<Item = Vec<Layer>> {
    let leaves: Vec<Layer> = leaves().collect();
    let below = move |nth: usize| leaves[nth % leaves.len()].clone();
    tops().enumerate().flat_map(move |(nth, top)| {
        let below: Vec<Layer> = (0..each).map(|more| below(nth * each + more)).collect();
        below.into_iter().map(move |leaf| vec![top.clone(), leaf])
    })
}

fn hold(rig: &Rig, seed: u64, steps: usize, depth: usize) {
    let script = power_script(seed, build(rig, seed, false).capacity(), steps);
    if let Err(violation) = hold_to_promises(rig, &script, depth, seed) {
        panic!("{violation:?}\n{}", rig.to_toml());
    }
}

#[test]
fn every_leaf_keeps_what_it_promised_over_losses_of_power() {
    // What a loss may take is what was written since the last one: some sixty of them, or a hundred.
    for leaf in leaves() {
        for (seed, depth) in [(1, 1), (2, 7), (3, 64)] {
            hold(&stack(std::slice::from_ref(&leaf)), seed, steps(2000), depth);
        }
    }
}

#[test]
fn devices_above_others_keep_what_they_promised_over_losses_of_power() {
    for tower in towers(if long() { 3 } else { 1 }) {
        hold(&stack(&tower), 4, 1200, 16);
    }
}

#[test]
fn so_do_stacks_of_two() {
    let above: Vec<Layer> = tops().collect();
    for (nth, tower) in towers(1).enumerate() {
        let top = above[(nth + 1) % above.len()].clone();
        let layers = [vec![top], tower].concat();
        if let Some(rig) = fitting(&layers) {
            hold(&rig, 5, 800, 16);
        }
    }
}

proptest! {
    #![proptest_config(cases(100, 1500))]
    #[test]
    fn any_ssd_keeps_what_it_promised(ssd in any_ssd(), seed: u64, depth in 1usize..70) {
        hold(&fitting(&[ssd]).expect("an SSD fits"), seed, 1200, depth);
    }
}

#[test]
fn a_device_that_lost_power_goes_on_from_a_file() {
    for layers in leaves().map(|leaf| vec![leaf]).chain(towers(1).step_by(3)) {
        let rig = stack(&layers);
        let script = power_script(5, build(&rig, 5, false).capacity(), 1000);
        if let Err(violation) = goes_on(&rig, &|| build(&rig, 5, true), &script, 16) {
            panic!("{violation:?}\n{}", rig.to_toml());
        }
    }
}

/// A device that breaks a promise.
struct Liar {
    inner: Box<dyn Device>,
    /// It answers flushes at once when it is ready, whatever the drive below still has to do.
    hasty: bool,
    /// What it says of its write cache, true or not.
    volatile: bool,
    answered: Vec<Completion>,
    now: u64,
    ready: u64,
}

impl Liar {
    /// One that tells the truth so far.
    fn of(inner: Box<dyn Device>) -> Self {
        let volatile = inner.is_volatile();
        Liar { inner, hasty: false, volatile, answered: Vec::new(), now: 0, ready: 0 }
    }
}

impl Persist for Liar {
    fn persist(&mut self, archive: &mut Archive<'_>) -> ssdlab::Result<()> {
        self.inner.persist(archive)
    }
}

impl Device for Liar {
    fn kind(&self) -> &'static str {
        self.inner.kind()
    }
    fn capacity(&self) -> u64 {
        self.inner.capacity()
    }
    fn submit(&mut self, now: u64, command: Command) {
        self.now = now;
        if self.hasty && command.op == Op::Flush && now >= self.ready {
            self.answered.push(Completion { tag: command.tag, time: now, ..Default::default() });
        } else {
            self.inner.submit(now, command);
        }
    }
    fn next_event(&self) -> u64 {
        if self.answered.is_empty() { self.inner.next_event() } else { self.now }
    }
    fn advance(&mut self, limit: u64, done: &mut Vec<Completion>) -> u64 {
        if self.answered.is_empty() {
            return self.inner.advance(limit, done);
        }
        self.inner.advance(self.now, done);
        done.append(&mut self.answered);
        self.now
    }
    fn settle(&mut self, now: u64) -> u64 {
        self.inner.settle(now)
    }
    fn power_cut(&mut self, now: u64, missed: &mut Missed) -> u64 {
        self.ready = self.inner.power_cut(now, missed);
        self.ready
    }
    fn is_volatile(&self) -> bool {
        self.volatile
    }
    fn apply(&mut self, command: &Command) {
        self.inner.apply(command);
    }
    fn content(&self, offset: u64) -> u64 {
        self.inner.content(offset)
    }
    fn counters(&self, visit: &mut dyn FnMut(&'static str, u64)) {
        self.inner.counters(visit);
    }
}

#[test]
fn a_drive_that_answers_a_flush_at_once_is_caught() {
    let mut tried = 0;
    for leaf in leaves() {
        let rig = stack(&[leaf]);
        let shape = Shape::of(&rig);
        if !shape.promise.volatile_writes {
            continue;
        }
        tried += 1;
        let inner = build(&rig, 1, true);
        let script = power_script(1, inner.capacity(), steps(2000));
        let mut hasty = Liar { hasty: true, ..Liar::of(inner) };
        let verdict = run_once(&mut hasty, &shape, &script, 16, true);
        assert!(matches!(verdict, Err(Violation::Forgotten { .. })), "{verdict:?}");
    }
    assert!(tried >= 4, "only {tried} drives with a volatile cache");
}

/// What the audit says of a write-back cache over a pool, one of which may make false claims.
fn cache_of(pool: &Layer, cache: &Layer, claims: [Option<bool>; 2]) -> Result<(), Violation> {
    let [mut below, mut fast] =
        [pool, cache].map(|layer| build(&stack(std::slice::from_ref(layer)), 1, true));
    for (device, claim) in [(&mut below, claims[0]), (&mut fast, claims[1])] {
        if let Some(volatile) = claim {
            let inner = std::mem::replace(device, build(&stack(&[nothing()]), 1, true));
            *device = Box::new(Liar { volatile, ..Liar::of(inner) });
        }
    }
    let keys = "mode = \"write-back\"\nblock = \"16KiB\"\nidle_after = \"2ms\"\n";
    let keys = CacheKeys::read(keys.parse().unwrap()).unwrap();
    let around = ssdlab::device::Build { seed: 1, keep_versions: true, path: "device".into() };
    let mut device = CacheDevice::new(&keys, below, fast, &around).unwrap();
    let of = |layer: &Layer| Shape::of(&stack(std::slice::from_ref(layer)));
    let (below, fast) = (of(pool), of(cache));
    let mut shape = Shape { unit: below.unit, promise: below.promise, ..Shape::default() };
    shape.kinds.push("cache".into());
    shape.promise.volatile_writes |= fast.promise.volatile_writes;
    shape.cache = Some(Box::new((fast, below)));
    verdict(&mut device, &shape)
}

/// What the audit says of a device over losses of power, its own assertions among that.
fn verdict(device: &mut dyn Device, shape: &Shape) -> Result<(), Violation> {
    let script = power_script(1, device.capacity(), 2000);
    let audit = || run_once(device, shape, &script, 16, true).map(drop);
    let verdict = std::panic::catch_unwind(std::panic::AssertUnwindSafe(audit));
    verdict.unwrap_or_else(|_| Err(Violation::Different("what its parts hold".into())))
}

fn nothing() -> Layer {
    let keys = "capacity = \"1MiB\"\nservice_time = \"7us\"".into();
    Layer { kind: "null", keys, tables: Vec::new() }
}

fn volatile(kind: &str) -> Layer {
    let of = |leaf: &Layer| Shape::of(&stack(std::slice::from_ref(leaf))).promise.volatile_writes;
    leaves().find(|leaf| leaf.kind == kind && of(leaf)).expect("one with a volatile write cache")
}

#[test]
fn a_cache_that_forgets_what_is_dirty_is_caught() {
    let (pool, cache) = (volatile("hdd"), volatile("ssd"));
    let plain = Layer { keys: nothing().keys.replace("1MiB", "4MiB"), ..nothing() };
    // As they are, all of them keep their promises.
    for (pool, cache) in [(&plain, &nothing()), (&plain, &cache), (&pool, &nothing())] {
        assert_eq!(cache_of(pool, cache, [None, None]), Ok(()));
    }
    let caught = |verdict: Result<(), Violation>| assert!(verdict.is_err());
    // It drops blocks because it takes them to be lost.
    caught(cache_of(&plain, &nothing(), [None, Some(true)]));
    // It takes for clean what the pool may have lost.
    caught(cache_of(&pool, &nothing(), [Some(false), None]));
}

#[test]
fn devices_know_whether_they_have_a_volatile_write_cache() {
    for layers in leaves().map(|leaf| vec![leaf]).chain(towers(4)) {
        let rig = stack(&layers);
        let volatile = Shape::of(&rig).promise.volatile_writes;
        assert_eq!(build(&rig, 1, false).is_volatile(), volatile, "{}", rig.to_toml());
    }
}

/// Writes the drive once, then at random until power goes, and reads it after that.
fn cut_while_writing(rig: &Rig) -> (Box<dyn Device>, u64) {
    let mut device = build(rig, 1, true);
    let mut script: Vec<Step> = Vec::new();
    for at in 0..300 {
        script.push(Step::Io(Op::Write, at * 7 % 160 * 16384, 8192));
    }
    script.push(Step::Cut(0));
    let oracle = Shape::of(rig).oracle(device.capacity());
    let mut audit = Audit::new(&mut *device, Some(oracle));
    audit.overlap = true;
    audit.run(&script, 24).unwrap();
    let now = audit.now;
    (device, now)
}

#[test]
fn what_is_lost_is_counted() {
    for leaf in leaves().filter(|leaf| !["array", "tier"].contains(&leaf.kind)) {
        let rig = stack(&[leaf]);
        let promise = Shape::of(&rig).promise;
        let (device, _) = cut_while_writing(&rig);
        let c = counters(&*device);
        let toml = rig.to_toml();
        assert_eq!(c["power_losses"], 1, "{toml}");
        assert!(c["power_commands_cut"] > 0, "{toml}");
        assert!(c["power_commands_torn"] <= c["power_commands_cut"], "{toml}");
        assert_eq!(c["power_lost_bytes"] > 0, promise.volatile_writes, "{toml}");
        if device.kind() == "ssd" || device.kind() == "hdd" {
            assert!(c["power_startup_ns"] > 0, "{toml}");
        }
    }
}

#[test]
fn commands_wait_until_the_device_is_ready() {
    for layers in leaves().map(|leaf| vec![leaf]).chain(towers(2)) {
        let rig = stack(&layers);
        let mut device = build(&rig, 1, false);
        device.submit(0, Command { tag: 1, ..command(Op::Write, 0, 65536) });
        let mut done = Vec::new();
        while device.advance(1000, &mut done) < 1000 {}
        done.clear();
        let ready = device.power_cut(1000, &mut Missed::default());
        device.submit(1500.min(ready), Command { tag: 2, ..command(Op::Read, 0, 4096) });
        let time = device.advance(u64::MAX - 1, &mut done);
        assert_eq!(done.iter().map(|c| c.tag).collect::<Vec<_>>(), [2]);
        assert!(time >= ready && done[0].parts.total() == time - 1500.min(ready));
    }
}

/// A small SSD as the fast device of a cache or tier, with or without a volatile write cache.
fn fast_ssd(place: &'static str, volatile: bool) -> Vec<(&'static str, String)> {
    let part = |name: &str| -> &'static str { format!("{place}.{name}").leak() };
    let nand = "channels = 2\nways = 2\npage = \"4KiB\"\npages_per_block = 16\nt_read = \"60us\"\n\
                t_program = \"600us\"\nt_erase = \"3ms\"\ntransfer_mts = 400";
    let buffer = format!("size = \"256KiB\"\npower_loss_protected = {}", !volatile);
    vec![
        (place, "kind = \"ssd\"\ncapacity = \"1MiB\"".into()),
        (part("nand"), nand.into()),
        (part("ftl"), "over_provisioning = 1.0".into()),
        (part("write_buffer"), buffer),
    ]
}

/// What lies below caches and tiers: safe, and with volatile write caches.
fn pools() -> [Layer; 3] {
    let safe = Layer { keys: nothing().keys.replace("1MiB", "4MiB"), ..nothing() };
    [safe, volatile("hdd"), volatile("ssd")]
}

#[test]
fn caches_in_every_mode_keep_what_they_promised_whatever_of_them_is_volatile() {
    let modes = [
        "mode = \"write-through\"\nmetadata = \"written\"",
        "mode = \"write-back\"\nmetadata = \"written\"\nidle_after = \"3ms\"",
        "mode = \"write-back\"\nwrite_miss = \"both\"\nfill = \"block\"\ndestage_order = \"age\"",
        "mode = \"write-around\"",
        "mode = \"write-around-fill\"",
        "mode = \"write-only\"\ndirty_low = 0.1",
        "mode = \"write-back\"\nswitch = { at = \"30ms\", to = \"write-through\" }",
    ];
    for (seed, mode) in (0..).zip(modes) {
        for (nth, pool) in pools().into_iter().enumerate() {
            for fast_is_volatile in [false, true] {
                let keys = format!("block = \"16KiB\"\nsub_block = \"2KiB\"\n{mode}");
                let tables = fast_ssd("cache", fast_is_volatile);
                let cache = Layer { kind: "cache", keys, tables };
                hold(&stack(&[cache, pool.clone()]), seed * 3 + nth as u64, 1000, 16);
            }
        }
    }
}

#[test]
fn tiers_keep_what_they_promised_whatever_of_them_is_volatile() {
    let keys = "extent = \"32KiB\"\nmove_size = \"8KiB\"\nperiod = \"2ms\"\nhalf_life = \"8ms\"\n\
                promote_after = 1\nmargin = 0.0\nmoves = 3\nplacement = \"spread\"\ntrim_unit = \"0B\"";
    for metadata in ["ram", "written"] {
        for (nth, pool) in pools().into_iter().enumerate() {
            for fast_is_volatile in [false, true] {
                let keys = format!("{keys}\nmetadata = \"{metadata}\"");
                let tables = fast_ssd("fast", fast_is_volatile);
                let tier = Layer { kind: "tier", keys, tables };
                hold(&stack(&[tier, pool.clone()]), nth as u64, 1000, 16);
            }
        }
    }
}

/// Arrays with parity over members with and without a volatile write cache; the last loses one before anything is written.
fn parity_arrays(fails: bool) -> impl Iterator<Item = Layer> {
    let fail = if fails { "\nfail = [{ member = 1, at = \"1ns\" }]" } else { "" };
    [
        "level = \"raid5\"\ncount = 4\nchunk = \"16KiB\"",
        "level = \"raid6\"\ncount = 5\nchunk = \"8KiB\"",
    ]
    .into_iter()
    .flat_map(|level| {
        ["", "\nbitmap = \"256KiB\"\nbitmap_delay = \"2ms\""].map(|bitmap| (level, bitmap))
    })
    .map(move |(level, bitmap)| Layer {
        kind: "array",
        keys: format!("{level}{bitmap}{fail}"),
        tables: Vec::new(),
    })
}

#[test]
fn a_degraded_array_with_parity_loses_what_it_counts_as_its_write_hole() {
    let mut exposed = 0;
    for (array, seed) in parity_arrays(true).zip(1..) {
        for leaf in [nothing(), volatile("ssd")] {
            let rig = stack(&[array.clone(), leaf]);
            hold(&rig, seed, 1200, 16);
            let (device, _) = cut_while_writing(&rig);
            exposed += counters(&*device)["power_exposed_bytes"];
        }
    }
    assert!(exposed > 0);
}

#[test]
fn a_whole_array_with_parity_has_no_write_hole() {
    for array in parity_arrays(false) {
        for leaf in [nothing(), volatile("ssd")] {
            let (device, _) = cut_while_writing(&stack(&[array.clone(), leaf]));
            assert_eq!(counters(&*device)["power_exposed_bytes"], 0);
        }
    }
}

/// An array of members that may make a false claim about their write caches.
fn array_of(keys: &str, leaf: &Layer, claim: Option<bool>) -> Result<(), Violation> {
    let member = || {
        let inner = build(&stack(std::slice::from_ref(leaf)), 1, true);
        match claim {
            Some(volatile) => Box::new(Liar { volatile, ..Liar::of(inner) }) as Box<dyn Device>,
            None => inner,
        }
    };
    let table: ssdlab::rig::Table = keys.parse().unwrap();
    let keys = ssdlab::array::ArrayKeys::deserialize(table).unwrap();
    let around = ssdlab::device::Build { seed: 1, keep_versions: true, path: "device".into() };
    let mut device = Array::new(&keys, (0..2).map(|_| member()).collect(), &around).unwrap();
    let mut shape = Shape::of(&stack(std::slice::from_ref(leaf)));
    shape.kinds.insert(0, "array".into());
    verdict(&mut device, &shape)
}

#[test]
fn an_array_that_forgets_what_it_wrote_is_caught() {
    let keys = "level = \"raid1\"\ncount = 2\nchunk = \"64KiB\"\nbitmap = \"64KiB\"\nbitmap_delay = \"1us\"";
    let leaf = volatile("ssd");
    assert_eq!(array_of(keys, &leaf, None), Ok(()));
    // It clears the bits of what its members have in their write caches alone.
    assert!(array_of(keys, &leaf, Some(false)).is_err());
}
