//! What a command costs does not grow with what is in flight or with the size of the device: nothing walks over all
//! of it. Counted, not timed: what slabs and ranges are looked at one by one.

use crate::common::rigs::{SAMPLES, build, stack};
use crate::common::{closed_loop, command};
use ssdlab::device::{Command, Completion, Device, Missed, Op};
use ssdlab::persist::{Archive, Persist};
use ssdlab::rng::Stream;
use ssdlab::sim::Slab;
use ssdlab::sim::steps::looks;

/// Commands of a run: long enough for what an array, a cache or a tier does by itself.
const COMMANDS: u64 = 3000;

/// In flight, and how many times as much of everything.
const DEPTH: u64 = 24;
const TIMES: u64 = 4;

/// Things looked at for each command with so many in flight.
fn looks_per_command(device: &mut dyn Device, depth: u64) -> f64 {
    let mut rng = Stream::new(3, "work");
    let sectors = device.capacity() / 512;
    let next = || {
        let len = 1 + rng.below(32);
        let offset = rng.below(sectors - len) * 512;
        match rng.below(60) {
            0 => command(Op::Flush, 0, 0),
            1..10 => command(Op::Trim, offset, len * 512),
            10..30 => command(Op::Read, offset, len * 512),
            _ => command(Op::Write, offset, len * 512),
        }
    };
    let before = looks();
    closed_loop(device, depth, COMMANDS, 0, next, |_, _| ());
    (looks() - before) as f64 / COMMANDS as f64
}

/// Whether a device looks at more things for a command, the more there are.
fn grows([few, many]: [f64; 2]) -> bool {
    many > 2.0 * few + 1.0
}

#[test]
fn no_device_walks_over_what_is_in_flight() {
    if !cfg!(debug_assertions) {
        return;
    }
    let mut walking = Vec::new();
    for sample in SAMPLES {
        let mut text = String::new();
        let looked = [1, TIMES].map(|times| {
            let mut layers = vec![sample.layer()];
            if sample.below {
                let mut null = SAMPLES[0].layer();
                null.keys = null.keys.replace("\"4MiB\"", &format!("\"{}MiB\"", 4 * times));
                layers.push(null);
            }
            let rig = stack(&layers);
            text = rig.to_toml();
            looks_per_command(&mut *build(&rig, 1, false), DEPTH * times)
        });
        if grows(looked) {
            walking.push(format!("{looked:?} looks per command\n{text}"));
        }
    }
    assert!(walking.is_empty(), "{}", walking.join("\n"));
}

/// A device that looks at all of its commands whenever another one comes.
struct Walker {
    inner: Box<dyn Device>,
    tags: Slab<u64>,
}

impl Persist for Walker {
    fn persist(&mut self, archive: &mut Archive<'_>) -> ssdlab::Result<()> {
        self.inner.persist(archive)
    }
}

impl Device for Walker {
    fn kind(&self) -> &'static str {
        "walker"
    }
    fn capacity(&self) -> u64 {
        self.inner.capacity()
    }
    fn submit(&mut self, now: u64, command: Command) {
        assert!(self.tags.iter().all(|&tag| tag != command.tag), "a tag of one in flight");
        self.tags.insert(command.tag);
        self.inner.submit(now, command);
    }
    fn next_event(&self) -> u64 {
        self.inner.next_event()
    }
    fn advance(&mut self, limit: u64, done: &mut Vec<Completion>) -> u64 {
        let now = self.inner.advance(limit, done);
        for completion in &*done {
            if let Some(id) = self.tags.find(|&tag| tag == completion.tag) {
                self.tags.remove(id);
            }
        }
        now
    }
    fn settle(&mut self, now: u64) -> u64 {
        self.inner.settle(now)
    }
    fn power_cut(&mut self, now: u64, missed: &mut Missed) -> u64 {
        self.inner.power_cut(now, missed)
    }
    fn apply(&mut self, command: &Command) {
        self.inner.apply(command);
    }
    fn counters(&self, visit: &mut dyn FnMut(&'static str, u64)) {
        self.inner.counters(visit);
    }
}

#[test]
fn a_device_that_walks_is_found() {
    if !cfg!(debug_assertions) {
        return;
    }
    let looked = [1, TIMES].map(|times| {
        let inner = build(&stack(&[SAMPLES[0].layer()]), 1, false);
        looks_per_command(&mut Walker { inner, tags: Slab::new() }, DEPTH * times)
    });
    assert!(grows(looked), "{looked:?} looks per command");
}

/// Whether there is an SSD anywhere in a device.
fn holds_ssd(device: &dyn Device) -> bool {
    device.kind() == "ssd" || device.children().iter().any(|&(_, child)| holds_ssd(child))
}

#[test]
fn hints_are_asked_for_where_an_ssd_is_somewhere_below() {
    let named = |kind| SAMPLES.iter().find(|sample| sample.kind == kind).expect("a sample").layer();
    let mut heeding = [0, 0];
    for sample in SAMPLES.iter().filter(|sample| sample.below) {
        for lowest in ["ssd", "null"] {
            let rig = stack(&[sample.layer(), named(lowest)]);
            let device = build(&rig, 1, false);
            assert_eq!(device.heeds_hints(), holds_ssd(&*device), "{}", rig.to_toml());
            heeding[usize::from(device.heeds_hints())] += 1;
        }
    }
    assert!(heeding.iter().all(|&stacks| stacks > 0), "{heeding:?} stacks without and with");
}
