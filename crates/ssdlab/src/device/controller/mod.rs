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

use super::Build;
use crate::contract::{Command, Completion, Device};
use crate::error::Result;
use crate::fleet::{Composite, Fleet, HostId, Io, IoId};
use crate::persist::{persistent, persistent_cases};
use crate::sim::Lane;
use crate::stats::Parts;
use crate::units::{NEVER, Rate};
use content::Contents;
use ram::Run;
use std::collections::VecDeque;
use write_back::Cache;

/// How far a command of the host has come.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Progress {
    /// Until when its time is accounted for.
    mark: u64,
    parts: Parts,
    /// What of a write is not yet in RAM.
    left: Run,
}
persistent!(Progress { state { mark, parts, left } });

/// What a command below is for.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Purpose {
    /// What a read of the host's misses in RAM.
    Read(HostId),
    /// A command of the host's as it is.
    Pass(HostId),
    /// Writing RAM below; how much that shrinks.
    Destage(u8),
}
persistent_cases!(Purpose { Read(host), Pass(host), Destage(compressible) });

impl Default for Purpose {
    fn default() -> Self {
        Purpose::Destage(0)
    }
}

/// What a core works on.
#[derive(Clone, Copy, Debug)]
enum Work {
    /// A command of the host's.
    Host(HostId),
    /// One that writes RAM below.
    Destage(IoId),
}
persistent_cases!(Work { Host(host), Destage(io) });

impl Default for Work {
    fn default() -> Self {
        Work::Host(HostId::NONE)
    }
}

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

const NAMES: [&str; 6] = [
    "card_reads",
    "card_writes",
    "card_trims",
    "card_flushes",
    "card_bytes_read",
    "card_bytes_written",
];

/// See the module.
pub struct Controller {
    fleet: Fleet<Progress, Purpose>,
    bandwidth: Rate,
    /// Places that are free, and who waits for one.
    places: u32,
    waiting: VecDeque<HostId>,
    cores: Cores,
    wire: Lane<HostId>,
    cache: Option<Cache>,
    /// What RAM holds, in tests.
    contents: Option<Contents>,
    read_hits: u64,
    /// Runs that a read misses, and that left RAM.
    runs: Vec<Run>,
    lost: Vec<Run>,
}
persistent!(Controller {
    state { fleet, places, waiting, cores, wire, read_hits }
    parts { cache, contents }
    built { bandwidth, runs, lost }
});

impl Controller {
    /// A card above `below`.
    ///
    /// # Errors
    /// [`crate::Error::Rig`] with the key that is wrong.
    pub fn new(keys: &ControllerKeys, below: Box<dyn Device>, build: &Build) -> Result<Self> {
        keys.check()?;
        Ok(Controller {
            fleet: Fleet::new(below.capacity(), vec![below], 1, true)
                .with_payload(build.keep_versions),
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
            cache: keys.cache.as_ref().map(Cache::new),
            contents: build.keep_versions.then(Contents::default),
            read_hits: 0,
            runs: Vec::new(),
            lost: Vec::new(),
        })
    }

    /// Plans when the card itself does something next.
    #[inline]
    fn plan(&mut self) {
        let due = self.cache.as_ref().map_or(NEVER, |cache| cache.due);
        self.fleet.set_timer(0, self.cores.due().min(self.wire.next()).min(due));
    }
}

impl Composite for Controller {
    type Own = Progress;
    type Purpose = Purpose;
    const KIND: &'static str = "controller";
    const SOLE: bool = true;

    #[inline]
    fn fleet(&self) -> &Fleet<Progress, Purpose> {
        &self.fleet
    }

    #[inline]
    fn fleet_mut(&mut self) -> &mut Fleet<Progress, Purpose> {
        &mut self.fleet
    }

    fn begin(&mut self, host: HostId) {
        let now = self.fleet.now;
        self.fleet.hosts[host].own.mark = now;
        if self.places == 0 {
            self.waiting.push_back(host);
        } else {
            self.places -= 1;
            self.cores.send(now, Work::Host(host));
        }
    }

    fn answered(&mut self, io: Io<Purpose>, completion: &Completion) {
        match io.purpose {
            Purpose::Destage(_) => self.landed(Run { offset: io.offset, len: io.len }),
            Purpose::Read(host) | Purpose::Pass(host) => self.host_answered(host, completion),
        }
    }

    fn timer(&mut self, _which: u32) {
        let now = self.fleet.now;
        if self.cores.due() == now {
            match self.cores.queue.pop_front() {
                Some((_, Work::Host(host))) => self.handled(host),
                Some((_, Work::Destage(io))) => self.send_destage(io),
                None => {}
            }
        } else if self.wire.next() == now {
            let Some(host) = self.wire.pop() else { return };
            self.crossed(host);
        } else {
            self.begin_sweep();
        }
    }

    #[inline]
    fn after_submit(&mut self) {
        self.plan();
    }

    #[inline]
    fn after_event(&mut self) {
        self.plan();
    }

    fn after_untimed(&mut self) {
        self.plan();
    }

    fn begin_settling(&mut self) {
        self.destage();
        self.plan();
    }

    fn is_working(&self) -> bool {
        self.cache.as_ref().is_some_and(|cache| cache.ram.pinned() > 0)
    }

    fn end_settling(&mut self) {
        if let Some(cache) = &mut self.cache {
            (cache.due, cache.sweep) = (NEVER, None);
        }
    }

    fn apply_untimed(&mut self, command: &Command) {
        self.apply_below(command);
    }

    fn content_of(&self, offset: u64) -> u64 {
        self.contents.as_ref().map_or(0, |contents| contents.of(offset, &self.fleet))
    }

    fn visit_counters(&self, visit: &mut dyn FnMut(&'static str, u64)) {
        let below = &self.fleet.members[0];
        self.fleet.counts.visit(NAMES, visit);
        visit("commands", self.fleet.commands);
        visit("cores", self.cores.free_at.len() as u64);
        visit("busy_cores_ns", self.cores.busy);
        visit("busy_bus_ns", self.wire.busy_ns());
        visit("below_reads", below.reads);
        visit("below_bytes_read", below.bytes_read);
        visit("below_writes", below.writes);
        visit("below_bytes_written", below.bytes_written);
        visit("below_trims", below.trims);
        visit("below_flushes", below.flushes);
        visit("below_purges", below.purges);
        if let Some(cache) = &self.cache {
            visit("read_hits", self.read_hits);
            cache.counters(visit);
        }
    }

    fn place_name(&self, _member: usize) -> String {
        "below".into()
    }

    fn verify_own(&self) {
        if let Some(cache) = &self.cache {
            cache.ram.verify();
        }
    }
}
