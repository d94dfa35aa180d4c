//! A controller card above a drive or an array: an HBA, or a RAID card with RAM.
//!
//! A command waits for one of the card's places, then for a core; data crosses one bandwidth that
//! all transfers share, first in, first out. RAM (`ram.rs`) answers reads of what it holds. In
//! write-back a write is done when its data is in RAM; it goes below later, by address (`order.rs`:
//! an elevator that goes one way and begins again) or by age, lines side by side as one command. While RAM is
//! as full of such data as it may be, writes wait for room, first in, first out.
//!
//! A flush ends when all is below that was written before and the devices below have flushed. With a
//! battery it ends at once: RAM is as safe as they are, and they are taken to be safe themselves, as
//! such cards do, which switch the volatile caches of drives off. A TRIM waits until what RAM
//! holds of its range is below, because a part of a unit keeps its content; then RAM forgets it.

mod content;
mod host;
mod keys;
mod order;
mod ram;
mod table;
mod write_back;

pub use keys::{ControllerKeys, RamKeys, RamOrder, WriteMode};

use super::{Build, Command, Completion, Device, HostCounts, Op};
use crate::error::Result;
use crate::persist::{persistent, persistent_enum};
use crate::sim::{Lane, Slab};
use crate::stats::Parts;
use crate::units::{NEVER, Rate};
use content::Contents;
use ram::Run;
use std::collections::VecDeque;
use write_back::Cache;

/// A command of the host.
#[derive(Clone, Copy, Debug, Default)]
struct Host {
    command: Command,
    /// Until when its time is accounted for.
    mark: u64,
    parts: Parts,
    digest: u64,
    /// Commands below that it waits for.
    remaining: u32,
    /// What of a write is not yet in RAM.
    left: Run,
}
persistent!(Host { state { command, mark, parts, digest, remaining, left } });

/// What a command below is for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Purpose {
    /// What a read of the host's misses in RAM.
    #[default]
    Read,
    /// A command of the host's as it is.
    Pass,
    /// Writing RAM below.
    Destage,
}
persistent_enum!(Purpose { Read, Pass, Destage });

/// A command below.
#[derive(Clone, Copy, Debug, Default)]
struct Io {
    purpose: Purpose,
    host: u32,
    run: Run,
    active: bool,
    compressible: u8,
    /// Version of what is written, or what a read must answer; in tests.
    digest: u64,
}
persistent!(Io { state { purpose, host, run, active, compressible, digest } });

/// What a core works on: a command of the host's, or one that writes RAM below.
#[derive(Clone, Copy, Debug, Default)]
struct Work {
    index: u32,
    destage: bool,
}
persistent!(Work { state { index, destage } });

/// Cores that take one time for anything: the first to begin is the first to end.
struct Cores {
    time: u64,
    free_at: Vec<u64>,
    next: usize,
    queue: VecDeque<(u64, Work)>,
    busy: u64,
}
persistent!(Cores { state { next, queue, busy } parts { free_at } built { time } });

impl Cores {
    fn send(&mut self, now: u64, work: Work) {
        let free_at = &mut self.free_at[self.next];
        *free_at = (*free_at).max(now) + self.time;
        self.busy += self.time;
        self.queue.push_back((*free_at, work));
        self.next = if self.next + 1 == self.free_at.len() { 0 } else { self.next + 1 };
    }

    fn due(&self) -> u64 {
        self.queue.front().map_or(NEVER, |&(time, _)| time)
    }
}

#[derive(Default)]
struct Counts {
    host: HostCounts,
    commands: u64,
    read_hits: u64,
    reads: u64,
    bytes_read: u64,
    writes: u64,
    bytes_written: u64,
    trims: u64,
    flushes: u64,
    purges: u64,
}
persistent!(Counts {
    state {
        host, commands, read_hits, reads, bytes_read, writes, bytes_written, trims, flushes, purges,
    }
});

const NAMES: [&str; 6] = [
    "card_reads",
    "card_writes",
    "card_trims",
    "card_flushes",
    "card_bytes_read",
    "card_bytes_written",
];

impl Counts {
    /// A command below, timed or not.
    fn below(&mut self, op: Op, len: u64) {
        match op {
            Op::Read => (self.reads, self.bytes_read) = (self.reads + 1, self.bytes_read + len),
            Op::Write => {
                (self.writes, self.bytes_written) = (self.writes + 1, self.bytes_written + len);
            }
            Op::Trim => self.trims += 1,
            Op::Flush => self.flushes += 1,
            Op::Purge => self.purges += 1,
        }
    }
}

/// See the module.
pub struct Controller {
    below: Box<dyn Device>,
    bandwidth: Rate,
    /// Places that are free, and who waits for one.
    places: u32,
    waiting: VecDeque<u32>,
    cores: Cores,
    wire: Lane<u32>,
    hosts: Slab<Host>,
    ios: Slab<Io>,
    cache: Option<Cache>,
    contents: Option<Contents>,
    counts: Counts,
    now: u64,
    ready: Vec<Completion>,
    arrived: Vec<Completion>,
    /// Runs that a read misses, and that left RAM.
    runs: Vec<Run>,
    lost: Vec<Run>,
}
persistent!(Controller {
    state { below, places, waiting, cores, wire, hosts, ios, counts, now, ready }
    parts { cache, contents }
    built { bandwidth, arrived, runs, lost }
});

impl Controller {
    /// A card above `below`.
    ///
    /// # Errors
    /// [`crate::Error::Rig`] with the key that is wrong.
    pub fn new(keys: &ControllerKeys, below: Box<dyn Device>, build: &Build) -> Result<Self> {
        keys.check()?;
        Ok(Controller {
            below,
            bandwidth: keys.bandwidth,
            places: keys.queue,
            waiting: VecDeque::new(),
            cores: Cores {
                time: keys.command_time.0,
                free_at: vec![0; keys.cores as usize],
                next: 0,
                queue: VecDeque::new(),
                busy: 0,
            },
            wire: Lane::default(),
            hosts: Slab::new(),
            ios: Slab::new(),
            cache: keys.cache.as_ref().map(Cache::new),
            contents: build.keep_versions.then(Contents::new),
            counts: Counts::default(),
            now: 0,
            ready: Vec::new(),
            arrived: Vec::new(),
            runs: Vec::new(),
            lost: Vec::new(),
        })
    }

    /// When the card itself does something next.
    fn own_event(&self) -> u64 {
        let due = self.cache.as_ref().map_or(NEVER, |cache| cache.due);
        self.cores.due().min(self.wire.next()).min(due)
    }

    /// Lets the card's own next event happen.
    fn happen(&mut self, time: u64) {
        self.now = time;
        if self.cores.due() == time {
            let Some((_, work)) = self.cores.queue.pop_front() else { return };
            if work.destage { self.send_destage(work.index) } else { self.handled(work.index) }
        } else if self.wire.next() == time {
            let Some(host) = self.wire.pop() else { return };
            self.crossed(host);
        } else {
            self.begin_sweep();
        }
    }

    /// Lets the next event happen, of the card's or below, up to `limit`; whether there was one.
    fn step(&mut self, limit: u64) -> bool {
        let own = self.own_event();
        let time = own.min(self.below.next_event());
        if time > limit || time == NEVER {
            return false;
        }
        if own == time {
            self.happen(time);
            return true;
        }
        // The devices below may go on by themselves until something of the card's is due.
        let bound = if self.ready.is_empty() { own.min(limit) } else { self.now };
        let mut arrived = std::mem::take(&mut self.arrived);
        let reached = self.below.advance(bound, &mut arrived);
        if !arrived.is_empty() {
            self.now = reached;
        }
        for completion in arrived.drain(..) {
            self.answer(&completion);
        }
        self.arrived = arrived;
        true
    }
}

impl Device for Controller {
    fn kind(&self) -> &'static str {
        "controller"
    }

    fn capacity(&self) -> u64 {
        self.below.capacity()
    }

    fn submit(&mut self, now: u64, command: Command) {
        self.now = now;
        self.counts.commands += 1;
        self.counts.host.count(&command);
        let host = self.hosts.insert(Host { command, mark: now, ..Host::default() });
        if self.places == 0 {
            self.waiting.push_back(host);
        } else {
            self.places -= 1;
            self.cores.send(now, Work { index: host, destage: false });
        }
    }

    fn next_event(&self) -> u64 {
        if !self.ready.is_empty() {
            return self.now;
        }
        self.own_event().min(self.below.next_event())
    }

    fn advance(&mut self, limit: u64, done: &mut Vec<Completion>) -> u64 {
        loop {
            let time = self.own_event().min(self.below.next_event());
            if !self.ready.is_empty() && time > self.now {
                done.append(&mut self.ready);
                return self.now;
            }
            if !self.step(limit) {
                return limit;
            }
        }
    }

    fn settle(&mut self, now: u64) -> u64 {
        debug_assert!(self.hosts.is_empty(), "something is in flight");
        self.now = self.now.max(now);
        self.write_all();
        self.now = self.below.settle(self.now);
        self.now
    }

    fn apply(&mut self, command: &Command) {
        debug_assert!(self.hosts.is_empty(), "something is in flight");
        self.counts.host.count(command);
        self.apply_below(command);
    }

    fn content(&self, offset: u64) -> u64 {
        self.contents.as_ref().map_or(0, |contents| contents.of(offset, &*self.below))
    }

    fn counters(&self, visit: &mut dyn FnMut(&'static str, u64)) {
        let counts = &self.counts;
        counts.host.visit(NAMES, visit);
        visit("commands", counts.commands);
        visit("cores", self.cores.free_at.len() as u64);
        visit("busy_cores_ns", self.cores.busy);
        visit("busy_bus_ns", self.wire.busy_ns());
        visit("below_reads", counts.reads);
        visit("below_bytes_read", counts.bytes_read);
        visit("below_writes", counts.writes);
        visit("below_bytes_written", counts.bytes_written);
        visit("below_trims", counts.trims);
        visit("below_flushes", counts.flushes);
        visit("below_purges", counts.purges);
        if let Some(cache) = &self.cache {
            visit("read_hits", counts.read_hits);
            cache.counters(visit);
        }
    }

    fn children(&self) -> Vec<(String, &dyn Device)> {
        vec![("below".into(), &*self.below)]
    }

    fn verify(&self) {
        if let Some(cache) = &self.cache {
            cache.ram.verify();
        }
        self.below.verify();
    }
}
