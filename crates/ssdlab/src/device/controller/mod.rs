//! A controller card above a drive or an array: an HBA, or a RAID card with RAM.
//!
//! A command waits for one of the card's places, then for a core; data crosses one bandwidth that
//! all transfers share, first in, first out. RAM (`ram.rs`) answers reads of what it holds. In
//! write-back a write is done when its data is in RAM; it goes below later, by address (`order.rs`:
//! an elevator that goes one way and begins again) or by age, lines side by side as one command. While RAM is
//! as full of such data as it may be, writes wait for room, first in, first out.
//!
//! The firmware of a RAID card takes its cores too (`firmware.rs`), for commands of the drives below.
//!
//! After a loss of power RAM with a battery holds what was not below, which goes there at once; all else in RAM
//! is gone.
//!
//! A flush ends when all is below that was written before and the devices below have flushed. With a
//! battery it ends at once: RAM is as safe as they are, and they are taken to be safe themselves, as
//! such cards do, which switch the volatile caches of drives off. A TRIM waits until what RAM
//! holds of its range is below, because a part of a unit keeps its content; then RAM forgets it.

mod content;
mod cores;
mod firmware;
mod host;
mod keys;
mod order;
mod ram;
mod table;
mod write_back;

pub use keys::{ControllerKeys, FirmwareKeys, RamKeys, RamOrder, WriteMode};

use super::Build;
use crate::contract::{Command, Completion, Device, Missed, host_counts};
use crate::error::Result;
use crate::fleet::{Composite, Fleet, HostId, Io, fleet_of};
use crate::persist::{persistent, persistent_cases};
use crate::sim::WireQueue;
use crate::stats::{Part, Parts};
use crate::units::{NEVER, Rate};
use content::Contents;
use cores::{Cores, Work};
use firmware::Firmware;
use ram::Run;
use std::collections::VecDeque;
use write_back::Cache;

/// How far a command of the host has come.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Progress {
    /// Until when its time is accounted for.
    mark: u64,
    /// What went to cores, wire and RAM.
    spent: [u64; 3],
    /// What the devices below needed is in `below`.
    answered: bool,
    /// The firmware sees to it.
    by_firmware: bool,
    /// What of a write is not yet in RAM.
    left: Run,
}
persistent!(Progress { state { mark, spent, answered, by_firmware, left } });

/// Where the time of a card goes, in the order of `spent`.
const SPENT: [Part; 3] = [Part::Card, Part::Bus, Part::Cache];

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

/// Timers, in the order in which they go at one instant.
const CORES: u32 = 0;
const WIRE: u32 = 1;
const SWEEP: u32 = 2;

/// See the module.
pub struct Controller {
    fleet: Fleet<Progress, Purpose>,
    bandwidth: Rate,
    /// Places in all, those that are free, and who waits for one.
    queue: u32,
    places: u32,
    waiting: VecDeque<HostId>,
    /// Time of a core for any command.
    command_time: u64,
    cores: Cores,
    firmware: Option<Firmware>,
    wire: WireQueue<HostId>,
    cache: Option<Cache>,
    /// What RAM holds, in tests.
    contents: Option<Contents>,
    read_hits: u64,
    /// What the devices below needed for commands of the host, by their places.
    below: Vec<Parts>,
    /// Runs that a read misses, and that left RAM.
    runs: Vec<Run>,
    lost: Vec<Run>,
}
persistent!(Controller {
    state { fleet, places, waiting, cores, wire, read_hits, below }
    parts { cache, contents, firmware }
    built { bandwidth, queue, command_time, runs, lost }
});

impl Controller {
    /// A card above `below`.
    ///
    /// # Errors
    /// [`crate::Error::Rig`] with the key that is wrong.
    pub fn new(keys: &ControllerKeys, below: Box<dyn Device>, build: &Build) -> Result<Self> {
        keys.check()?;
        Ok(Controller {
            fleet: Fleet::new(below.capacity(), vec![below], true)
                .with_payload(build.keep_versions),
            bandwidth: keys.bandwidth,
            queue: keys.queue,
            places: keys.queue,
            waiting: VecDeque::new(),
            command_time: keys.command_time.0,
            cores: Cores::new(keys.cores),
            firmware: keys.firmware.as_ref().and_then(Firmware::new),
            wire: WireQueue::default(),
            cache: keys.cache.as_ref().map(Cache::new),
            contents: build.keep_versions.then(Contents::default),
            read_hits: 0,
            below: Vec::new(),
            runs: Vec::new(),
            lost: Vec::new(),
        })
    }

    /// A core has one thing more to do.
    #[inline]
    fn assign_core(&mut self, time: u64, work: Work) {
        self.cores.send(self.fleet.now, time, work);
        self.fleet.set_timer(CORES, self.cores.due());
    }

    /// A command of the host's has a place.
    #[inline]
    fn admit(&mut self, host: HostId) {
        let time = self.command_time + self.firmware_time(host);
        self.assign_core(time, Work::Host(host));
    }
}

impl Composite for Controller {
    fleet_of!(Progress, Purpose);
    const KIND: &'static str = "controller";
    const SOLE: bool = true;

    fn begin(&mut self, host: HostId) {
        self.fleet.hosts[host].own.mark = self.fleet.now;
        if self.places == 0 {
            self.waiting.push_back(host);
        } else {
            self.places -= 1;
            self.admit(host);
        }
    }

    fn answered(&mut self, io: Io<Purpose>, completion: &Completion) {
        match io.purpose {
            Purpose::Destage(_) => self.landed(Run { offset: io.offset, len: io.len }),
            Purpose::Read(host) | Purpose::Pass(host) => self.host_answered(host, completion),
        }
    }

    fn timer(&mut self, which: u32) {
        match which {
            CORES => {
                let Some(work) = self.cores.pop() else { return };
                self.fleet.set_timer(CORES, self.cores.due());
                match work {
                    Work::Host(host) => self.handled(host),
                    Work::Answer(host) => self.answer_seen(host),
                    Work::Destage(io) => self.send_destage(io),
                }
            }
            WIRE => {
                let Some(host) = self.wire.pop() else { return };
                self.fleet.set_timer(WIRE, self.wire.next());
                self.crossed(host);
            }
            _ => self.begin_sweep(),
        }
    }

    fn watches_below(&self) -> bool {
        self.firmware.is_some()
    }

    #[inline]
    fn after_event(&mut self) {
        if self.firmware.is_some() {
            self.see_to_members();
        }
    }

    fn after_untimed(&mut self) {
        self.ignore_members();
    }

    fn begin_settling(&mut self) {
        self.destage();
    }

    fn is_working(&self) -> bool {
        self.cache.as_ref().is_some_and(|cache| cache.ram.pinned() > 0)
    }

    fn end_settling(&mut self) {
        if let Some(cache) = &mut self.cache {
            (cache.due, cache.sweep) = (NEVER, None);
        }
        self.fleet.set_timer(SWEEP, NEVER);
    }

    fn lose_power(&mut self, now: u64, missed: &mut Missed) -> u64 {
        missed.cannot_tell();
        let (ready, _) = self.fleet.cut(now);
        self.cores.cut(now);
        self.ignore_members();
        self.wire.cut(now).for_each(drop);
        (self.places, self.waiting) = (self.queue, VecDeque::new());
        self.cut_ram();
        ready
    }

    fn start_up(&mut self) {
        // What the battery kept goes below.
        self.begin_sweep();
        self.started();
    }

    fn answers_early(&self) -> bool {
        self.cache.as_ref().is_some_and(Cache::is_volatile)
    }

    fn apply_untimed(&mut self, command: &Command) {
        self.apply_below(command);
    }

    fn content_of(&self, offset: u64) -> u64 {
        self.contents.as_ref().map_or(0, |contents| contents.of(offset, &self.fleet))
    }

    fn visit_counters(&self, visit: &mut dyn FnMut(&'static str, u64)) {
        let below = &self.fleet.members[0];
        self.fleet.counts.visit(host_counts!("card", "card"), visit);
        visit("commands", self.fleet.commands);
        self.cores.counters(visit);
        visit("busy_bus_ns", self.wire.busy_ns());
        below.counts.visit(host_counts!("below", "below"), visit);
        visit("below_purges", below.purges);
        if let Some(firmware) = &self.firmware {
            firmware.counters(visit);
        }
        if let Some(cache) = &self.cache {
            visit("read_hits", self.read_hits);
            cache.counters(visit);
        }
    }

    fn verify_own(&self) {
        if let Some(cache) = &self.cache {
            cache.ram.verify();
        }
    }
}
