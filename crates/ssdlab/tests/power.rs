//! Losses of power over every device that ends a stack, below links and partitions too: what was promised
//! is there afterwards, and the device goes on and keeps its promises.

use crate::common;
use crate::laws::{goes_on, samples};

use common::audit::{Audit, Step, Violation, power_script};
use common::rigs::{Layer, Shape, any_ssd, build, fitting, hold_to_promises, run_once, stack};
use common::{cases, command, counters};
use proptest::prelude::*;
use ssdlab::device::{Command, Completion, Device, Op};
use ssdlab::persist::{Archive, Persist};
use ssdlab::rig::Rig;

/// Kinds that do not model it yet.
const WITHOUT: &[&str] = &["array", "tier"];

fn leaves() -> impl Iterator<Item = Layer> {
    samples(false).filter(|leaf| !WITHOUT.contains(&leaf.kind)).map(|leaf| leaf.layer())
}

fn tops() -> impl Iterator<Item = Layer> {
    samples(true).filter(|top| !WITHOUT.contains(&top.kind)).map(|top| top.layer())
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
fn kinds_either_model_losses_of_power_or_say_so() {
    for sample in samples(false).chain(samples(true)) {
        let mut layers = vec![sample.layer()];
        layers.extend(sample.below.then(|| leaves().next().unwrap()));
        let mut device = build(&stack(&layers), 1, false);
        let known = device.power_cut(0).is_some();
        assert_eq!(known, !WITHOUT.contains(&sample.kind), "{}", sample.kind);
    }
}

#[test]
fn every_leaf_keeps_what_it_promised_over_losses_of_power() {
    for leaf in leaves() {
        for (seed, depth) in [(1, 1), (2, 7), (3, 64)] {
            hold(&stack(std::slice::from_ref(&leaf)), seed, 2000, depth);
        }
    }
}

#[test]
fn devices_above_others_keep_what_they_promised_over_losses_of_power() {
    for tower in towers(5) {
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
    #![proptest_config(cases(150))]
    #[test]
    fn any_ssd_keeps_what_it_promised(ssd in any_ssd(), seed: u64, depth in 1usize..70) {
        hold(&fitting(&[ssd]).expect("an SSD fits"), seed, 1200, depth);
    }
}

#[test]
fn a_device_that_lost_power_goes_on_from_a_file() {
    for layers in leaves().map(|leaf| vec![leaf]).chain(towers(1)) {
        let rig = stack(&layers);
        let script = power_script(5, build(&rig, 5, false).capacity(), 1000);
        if let Err(violation) = goes_on(&rig, &|| build(&rig, 5, true), &script, 16) {
            panic!("{violation:?}\n{}", rig.to_toml());
        }
    }
}

/// Answers flushes at once when it is ready, whatever the drive below still has to do.
struct Hasty {
    inner: Box<dyn Device>,
    answered: Vec<Completion>,
    now: u64,
    ready: u64,
}

impl Persist for Hasty {
    fn persist(&mut self, archive: &mut Archive<'_>) -> ssdlab::Result<()> {
        self.inner.persist(archive)
    }
}

impl Device for Hasty {
    fn kind(&self) -> &'static str {
        self.inner.kind()
    }
    fn capacity(&self) -> u64 {
        self.inner.capacity()
    }
    fn submit(&mut self, now: u64, command: Command) {
        self.now = now;
        if command.op == Op::Flush && now >= self.ready {
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
    fn power_cut(&mut self, now: u64) -> Option<u64> {
        self.ready = self.inner.power_cut(now)?;
        Some(self.ready)
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
        let script = power_script(1, inner.capacity(), 2000);
        let mut hasty = Hasty { inner, answered: Vec::new(), now: 0, ready: 0 };
        let verdict = run_once(&mut hasty, &shape, &script, 16, true);
        assert!(matches!(verdict, Err(Violation::Forgotten { .. })), "{verdict:?}");
    }
    assert!(tried >= 4, "only {tried} drives with a volatile cache");
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
    for leaf in leaves() {
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
        let ready = device.power_cut(1000).unwrap();
        device.submit(1500.min(ready), Command { tag: 2, ..command(Op::Read, 0, 4096) });
        let time = device.advance(u64::MAX - 1, &mut done);
        assert_eq!(done.iter().map(|c| c.tag).collect::<Vec<_>>(), [2]);
        assert!(time >= ready && done[0].parts.total() == time - 1500.min(ready));
    }
}
