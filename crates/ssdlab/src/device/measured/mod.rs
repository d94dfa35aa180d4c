//! A drive given only by measured latencies: servers whose service times are drawn from what was
//! measured, so that an array of a drive can be predicted from one of it (without what the drive
//! would do under another load). Also for distributions in closed form, on which arrays are tested.
//!
//! A command waits for one of `concurrency` servers, first in, first out. O(log) per command.

mod latency;

pub(super) use latency::Drawn;
pub use latency::{Distribution, LatencyKeys, LatencyOf};

use super::versions::Versions;
use super::{
    Build, Command, Completion, Device, HOST, HostCounts, Missed, Op, PowerCounts, SECTOR,
};
use crate::error::{Error, Result};
use crate::persist::persistent;
use crate::rig::at_most_an_hour;
use crate::rng::Stream;
use crate::sim::Calendar;
use crate::stats::{Part, Parts};
use crate::units::{Bytes, NEVER, Nanos};
use latency::Latencies;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// What a rig says about a measured drive.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MeasuredKeys {
    /// Bytes that the host can address.
    pub capacity: Bytes,
    /// Commands that it works on at the same time; the depth at which the latencies were measured.
    #[serde(default = "one")]
    pub concurrency: u32,
    /// Latencies of reads: a table for each size of I/O that was measured, or one. Between two sizes
    /// a latency lies between theirs; beyond, the nearest holds.
    pub read: Vec<LatencyKeys>,
    /// Latencies of writes, likewise.
    pub write: Vec<LatencyKeys>,
    /// Time of a TRIM, flush or purge.
    #[serde(default = "default_other_time")]
    pub other_time: Nanos,
}

const CONCURRENCY_MAX: u32 = 4096;

fn one() -> u32 {
    1
}

fn default_other_time() -> Nanos {
    Nanos::micros(10)
}

/// A command in service or waiting for it.
#[derive(Clone, Copy, Debug, Default)]
struct Active {
    command: Command,
    submitted: u64,
    digest: u64,
}

/// See the module.
pub struct Measured {
    capacity: u64,
    other_time: u64,
    read: Latencies,
    write: Latencies,
    stream: Stream,
    /// What each server works on, and when it will have done it.
    servers: Vec<Active>,
    calendar: Calendar,
    idle: Vec<u32>,
    waiting: VecDeque<Active>,
    versions: Versions,
    counts: HostCounts,
    busy: u64,
    power: PowerCounts,
    /// How far writes get that a loss of power cuts.
    torn: Stream,
}

persistent!(Active { state { command, submitted, digest } });
persistent!(Measured {
    state { read, write, stream, idle, waiting, versions, counts, busy, calendar, power, torn }
    parts { servers }
    built { capacity, other_time }
});

impl Measured {
    /// A drive of these keys.
    ///
    /// # Errors
    /// [`Error::Rig`] with the key that is wrong.
    pub fn new(keys: &MeasuredKeys, build: &Build) -> Result<Self> {
        let MeasuredKeys { capacity, concurrency, other_time, .. } = *keys;
        if capacity.0 == 0 || !capacity.0.is_multiple_of(SECTOR) {
            let problem = format!("{capacity} is not a positive multiple of {SECTOR} B");
            return Err(Error::rig("capacity", problem));
        }
        if !(1..=CONCURRENCY_MAX).contains(&concurrency) {
            let problem = format!("found {concurrency}, expected from 1 to {CONCURRENCY_MAX}");
            return Err(Error::rig("concurrency", problem));
        }
        at_most_an_hour("other_time", other_time)?;
        Ok(Measured {
            capacity: capacity.0,
            other_time: other_time.0.max(1),
            read: Latencies::new(&keys.read, "read")?,
            write: Latencies::new(&keys.write, "write")?,
            stream: build.stream("latency"),
            servers: vec![Active::default(); concurrency as usize],
            calendar: Calendar::new(concurrency as usize),
            idle: (0..concurrency).rev().collect(),
            waiting: VecDeque::new(),
            versions: Versions::new(build.keep_versions),
            counts: HostCounts::default(),
            busy: 0,
            power: PowerCounts::default(),
            torn: build.stream("power"),
        })
    }

    fn serve(&mut self, now: u64, server: u32, active: Active) {
        let command = active.command;
        let time = match command.op {
            Op::Read => self.read.draw(command.len, &mut self.stream),
            Op::Write => self.write.draw(command.len, &mut self.stream),
            _ => self.other_time,
        };
        self.busy += time;
        self.servers[server as usize] = active;
        self.calendar.set(server, now + time);
    }
}

impl Device for Measured {
    fn kind(&self) -> &'static str {
        "measured"
    }

    fn capacity(&self) -> u64 {
        self.capacity
    }

    fn submit(&mut self, now: u64, command: Command) {
        self.counts.count(&command);
        let digest = self.versions.perform(&command);
        let active = Active { command, submitted: now, digest };
        match self.idle.pop() {
            Some(server) => self.serve(now, server, active),
            None => self.waiting.push_back(active),
        }
    }

    fn next_event(&self) -> u64 {
        self.calendar.earliest()
    }

    fn advance(&mut self, limit: u64, done: &mut Vec<Completion>) -> u64 {
        let now = self.calendar.earliest();
        if now > limit || now == NEVER {
            return limit;
        }
        while self.calendar.earliest() == now {
            let server = self.calendar.first();
            let Active { command, submitted, digest } = self.servers[server as usize];
            let parts = Parts::only(Part::Service, now - submitted);
            if command.op == Op::Write {
                self.versions.land(&command, command.len / SECTOR);
            }
            done.push(Completion { tag: command.tag, time: now, parts, digest });
            match self.waiting.pop_front() {
                Some(next) => self.serve(now, server, next),
                None => {
                    self.calendar.set(server, NEVER);
                    self.idle.push(server);
                }
            }
        }
        now
    }

    fn settle(&mut self, now: u64) -> u64 {
        debug_assert_eq!(self.idle.len(), self.servers.len(), "something is in flight");
        now
    }

    fn power_cut(&mut self, now: u64, missed: &mut Missed) -> u64 {
        self.power.losses += 1;
        self.power.commands_cut += self.waiting.len() as u64;
        self.waiting.drain(..).for_each(|active| missed.write(&active.command, 0));
        for server in 0..self.servers.len() as u32 {
            let end = self.calendar.at(server);
            if end == NEVER {
                continue;
            }
            self.busy -= end - now;
            self.calendar.set(server, NEVER);
            self.idle.push(server);
            self.power.commands_cut += 1;
            let command = self.servers[server as usize].command;
            if command.op == Op::Write {
                let sectors = command.len / SECTOR;
                let landed = self.torn.below(sectors + 1);
                self.versions.land(&command, landed);
                self.power.cut_write(landed, sectors);
                missed.write_from(&command, landed);
            }
        }
        self.versions.power_cut();
        now
    }

    fn apply(&mut self, command: &Command) {
        self.counts.count(command);
        self.versions.apply(command);
    }

    fn content(&self, offset: u64) -> u64 {
        self.versions.content(offset)
    }

    fn counters(&self, visit: &mut dyn FnMut(&'static str, u64)) {
        self.counts.visit(HOST, visit);
        visit("busy_servers_ns", self.busy);
        self.power.visit(visit);
    }
}
