//! A host that knows what each sector may hold, over losses of power too.

use super::{command, counters};
use ssdlab::device::{Command, Device, Missed, Op, SECTOR};
use ssdlab::rng::Stream;
use ssdlab::units::NEVER;
use std::collections::{BTreeMap, VecDeque};

/// What each sector may hold: what was acknowledged last, or besides what was cut since.
pub struct Host {
    may: Vec<Vec<u64>>,
    rng: Stream,
    pub now: u64,
    /// What is answered later than that may be an error.
    pub doubt: u64,
    /// When power goes, in order.
    cuts: VecDeque<u64>,
    /// Writes in flight: first sector, sectors, version, submission.
    flying: BTreeMap<u64, (u64, u64, u64, u64)>,
    tag: u64,
    /// Writes that were cut.
    pub cut: u64,
}

impl Host {
    pub fn new(device: &dyn Device, seed: u64, cuts: &[u64]) -> Self {
        Host {
            may: vec![vec![0]; (device.capacity() / SECTOR) as usize],
            rng: Stream::new(seed, "host"),
            now: 0,
            doubt: NEVER,
            cuts: cuts.iter().copied().collect(),
            flying: BTreeMap::new(),
            tag: 0,
            cut: 0,
        }
    }

    /// Writes everything without time.
    pub fn fill(&mut self, device: &mut dyn Device) {
        let capacity = device.capacity();
        for offset in (0..capacity).step_by(4096) {
            let len = 4096.min(capacity - offset);
            let stamp = self.rng.below(1 << 60);
            device.apply(&Command { stamp, ..command(Op::Write, offset, len) });
            for i in 0..len / SECTOR {
                self.may[(offset / SECTOR + i) as usize] = vec![stamp + i];
            }
        }
    }

    /// Writes at random places with `depth` writes in flight until `until`, and waits for them.
    pub fn write(&mut self, device: &mut dyn Device, depth: usize, until: u64) {
        self.write_until(device, depth, until);
        while !self.flying.is_empty() {
            self.step(device, NEVER - 1);
        }
    }

    /// Writes at random places with `depth` writes in flight, up to an instant.
    pub fn write_until(&mut self, device: &mut dyn Device, depth: usize, until: u64) {
        while self.now < until {
            // Long enough to reach every state; the rest of the time is the array's own.
            if self.now < 30_000_000 {
                self.submit(device, depth);
            }
            self.step(device, until);
        }
    }

    fn submit(&mut self, device: &mut dyn Device, depth: usize) {
        let sectors = device.capacity() / SECTOR;
        while self.flying.len() < depth {
            let short = if depth == 1 { 1 } else { 3 };
            let (grain, most) = [(1, 8), (1, 40), (8, 40)][self.rng.below(short) as usize];
            let len = (1 + self.rng.below(most)) * grain;
            let first = self.rng.below(sectors - len) / grain * grain;
            let apart = |&(f, l, ..): &(u64, u64, u64, u64)| first >= f + l || f >= first + len;
            if !self.flying.values().all(apart) {
                continue;
            }
            self.tag += 1;
            let stamp = self.rng.below(1 << 60);
            self.flying.insert(self.tag, (first, len, stamp, self.now));
            let write = command(Op::Write, first * SECTOR, len * SECTOR);
            device.submit(self.now, Command { tag: self.tag, stamp, ..write });
        }
    }

    /// One step of the device: what was answered is held.
    fn step(&mut self, device: &mut dyn Device, limit: u64) {
        let mut done = Vec::new();
        let cut = self.cuts.front().copied().filter(|&cut| cut <= limit);
        self.now = device.advance(cut.unwrap_or(limit), &mut done);
        for completion in done {
            let (first, len, stamp, since) = self.flying.remove(&completion.tag).unwrap();
            assert_eq!(completion.parts.total(), self.now - since);
            for i in 0..len {
                let may = &mut self.may[(first + i) as usize];
                if self.now <= self.doubt {
                    may.clear();
                }
                may.push(stamp + i);
            }
        }
        if cut == Some(self.now) && device.next_event() > self.now {
            self.cut(device);
        }
    }

    /// Power goes: what is in flight has reached the device or not.
    fn cut(&mut self, device: &mut dyn Device) {
        self.cuts.pop_front();
        device.power_cut(self.now, &mut Missed::default());
        self.cut += self.flying.len() as u64;
        for (first, len, stamp, _) in std::mem::take(&mut self.flying).into_values() {
            (0..len).for_each(|i| self.may[(first + i) as usize].push(stamp + i));
        }
    }

    /// Lets time pass.
    pub fn wait(&mut self, device: &mut dyn Device, until: u64) {
        while self.now < until {
            self.step(device, until);
        }
    }

    /// Asserts that the array counts as lost what is: exactly, with one short write in flight. Of several
    /// some may not have begun, and what one tears another one may have been going to write.
    pub fn check_hole(&self, device: &dyn Device, depth: usize, what: &str) -> (u64, u64) {
        let (untouched, touched) = self.wrong(device);
        let counted = counters(device)["power_exposed_bytes"];
        let most = untouched + touched;
        let least = if depth == 1 { most } else { untouched };
        assert!((least..=most).contains(&counted), "{what}: {untouched} {counted} {most}");
        (untouched, touched)
    }

    /// Bytes that hold what they must not: of those that were not being written when power went, and
    /// of those that were.
    pub fn wrong(&self, device: &dyn Device) -> (u64, u64) {
        let mut wrong = (0, 0);
        for (may, at) in self.may.iter().zip((0..).step_by(SECTOR as usize)) {
            let sum = if may.len() > 1 { &mut wrong.1 } else { &mut wrong.0 };
            *sum += if may.contains(&device.content(at)) { 0 } else { SECTOR };
        }
        wrong
    }
}
