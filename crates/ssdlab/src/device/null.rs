//! The null device: k servers with a fixed service time behind one first-in first-out queue.
//!
//! The counterpart of fio's null engine, and the plainest device there is: what it does is known
//! in closed form (M/D/k without randomness), so drivers and layers are tested on it. O(1) per
//! command.

use super::versions::Versions;
use super::{
    Build, Command, Completion, Device, HOST, HostCounts, Missed, Op, PowerCounts, SECTOR,
};
use crate::error::{Error, Result};
use crate::persist::persistent;
use crate::rig::at_most_an_hour;
use crate::rng::Stream;
use crate::stats::{Part, Parts};
use crate::units::{Bytes, NEVER, Nanos};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// Keys of the null device in a rig.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NullKeys {
    /// Bytes that the host can address.
    pub capacity: Bytes,
    /// Time that a server needs for any command.
    #[serde(default = "default_service_time")]
    pub service_time: Nanos,
    /// Commands served at the same time.
    #[serde(default = "default_servers")]
    pub servers: u32,
}

/// More servers than any queue is deep.
const SERVERS_MAX: u32 = 1 << 20;

fn default_service_time() -> Nanos {
    Nanos::micros(10)
}

fn default_servers() -> u32 {
    1
}

impl NullKeys {
    /// Checks what the types cannot.
    ///
    /// # Errors
    /// [`Error::Rig`] with the key that is wrong.
    pub fn check(&self) -> Result<()> {
        if self.capacity.0 == 0 || !self.capacity.0.is_multiple_of(SECTOR) {
            let problem = format!("{} is not a positive multiple of {SECTOR} B", self.capacity);
            return Err(Error::rig("capacity", problem));
        }
        if self.service_time.0 == 0 {
            return Err(Error::rig(
                "service_time",
                "must be longer than 0: time would stand still",
            ));
        }
        at_most_an_hour("service_time", self.service_time)?;
        if !(1..=SERVERS_MAX).contains(&self.servers) {
            let problem = format!("found {}, expected from 1 to {SERVERS_MAX}", self.servers);
            return Err(Error::rig("servers", problem));
        }
        Ok(())
    }
}

/// See the module.
pub struct Null {
    keys: NullKeys,
    /// When each server is free again; the one at `next` is the first to be free, because
    /// service times are equal and the queue is first in, first out.
    free_at: Vec<u64>,
    next: usize,
    /// In flight, in order of completion.
    queue: VecDeque<Served>,
    versions: Versions,
    counts: HostCounts,
    power: PowerCounts,
    /// How far writes get that a loss of power cuts.
    torn: Stream,
}

/// A command in flight, and what its completion will say.
#[derive(Clone, Copy, Debug, Default)]
struct Served {
    command: Command,
    submitted: u64,
    time: u64,
    digest: u64,
}

persistent!(Served { state { command, submitted, time, digest } });
persistent!(Null {
    state { next, queue, versions, counts, power, torn }
    parts { free_at }
    built { keys }
});

impl Null {
    /// A device of these keys.
    ///
    /// # Errors
    /// [`Error::Rig`] with the key that is wrong.
    pub fn new(keys: NullKeys, build: &Build) -> Result<Self> {
        keys.check()?;
        Ok(Null {
            free_at: vec![0; keys.servers as usize],
            next: 0,
            queue: VecDeque::new(),
            versions: Versions::new(build.keep_versions),
            counts: HostCounts::default(),
            power: PowerCounts::default(),
            torn: build.stream("power"),
            keys,
        })
    }
}

impl Device for Null {
    fn kind(&self) -> &'static str {
        "null"
    }

    fn capacity(&self) -> u64 {
        self.keys.capacity.0
    }

    fn submit(&mut self, now: u64, command: Command) {
        self.counts.count(&command);
        let digest = self.versions.perform(&command);
        let free_at = &mut self.free_at[self.next];
        let time = now.max(*free_at) + self.keys.service_time.0;
        *free_at = time;
        self.next = if self.next + 1 == self.free_at.len() { 0 } else { self.next + 1 };
        self.queue.push_back(Served { command, submitted: now, time, digest });
    }

    fn next_event(&self) -> u64 {
        self.queue.front().map_or(NEVER, |served| served.time)
    }

    fn advance(&mut self, limit: u64, done: &mut Vec<Completion>) -> u64 {
        let now = self.next_event().min(limit);
        while let Some(&Served { command, submitted, time, digest }) = self.queue.front()
            && time <= now
        {
            self.queue.pop_front();
            if command.op == Op::Write {
                self.versions.land(&command, command.len / SECTOR);
            }
            let parts = Parts::only(Part::Service, time - submitted);
            done.push(Completion { tag: command.tag, time, parts, digest });
        }
        now
    }

    fn settle(&mut self, now: u64) -> u64 {
        debug_assert!(self.queue.is_empty(), "something is in flight");
        now
    }

    fn power_cut(&mut self, now: u64, missed: &mut Missed) -> u64 {
        self.power.losses += 1;
        self.power.commands_cut += self.queue.len() as u64;
        for Served { command, time, .. } in std::mem::take(&mut self.queue) {
            let begun = time < now + self.keys.service_time.0;
            if command.op != Op::Write || !begun {
                missed.write(&command, 0);
                continue;
            }
            let sectors = command.len / SECTOR;
            let landed = self.torn.below(sectors + 1);
            self.versions.land(&command, landed);
            self.power.cut_write(landed, sectors);
            missed.write_from(&command, landed);
        }
        self.versions.power_cut();
        self.free_at.fill(now);
        now
    }

    fn apply(&mut self, command: &Command) {
        debug_assert!(self.queue.is_empty(), "something is in flight");
        self.counts.count(command);
        self.versions.apply(command);
    }

    fn content(&self, offset: u64) -> u64 {
        self.versions.content(offset)
    }

    fn counters(&self, visit: &mut dyn FnMut(&'static str, u64)) {
        self.counts.visit(HOST, visit);
        self.power.visit(visit);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::mix;

    fn device(servers: u32, keep_versions: bool) -> Null {
        let keys = NullKeys { capacity: Bytes::mib(1), service_time: Nanos(100), servers };
        Null::new(keys, &Build { seed: 1, keep_versions, path: String::new() }).unwrap()
    }

    fn command(tag: u64, op: Op, offset: u64, len: u64, stamp: u64) -> Command {
        Command { tag, op, offset, len, compressible: 0, stamp, process: 0 }
    }

    #[test]
    fn the_third_command_waits_for_the_first_of_two_servers() {
        let mut null = device(2, false);
        for (tag, at) in [(0, 0), (1, 30), (2, 40)] {
            null.submit(at, command(tag, Op::Write, 0, 4096, 0));
        }
        let mut done = Vec::new();
        let times: Vec<u64> = (0..3).map(|_| null.advance(NEVER, &mut done)).collect();
        assert_eq!(times, [100, 130, 200]);
        assert_eq!(done[2].parts.total(), 160);
        assert_eq!(null.next_event(), NEVER);
    }

    #[test]
    fn a_read_returns_the_version_last_written() {
        let mut null = device(1, true);
        let mut done = Vec::new();
        null.apply(&command(0, Op::Write, 0, 2048, 100));
        null.apply(&command(0, Op::Write, 512, 512, 200));
        null.apply(&command(0, Op::Trim, 1024, 512, 0));
        null.submit(0, command(7, Op::Read, 0, 2048, 0));
        null.advance(NEVER, &mut done);
        let want = [100, 200, 0, 103].iter().zip(0..);
        let want = want.fold(0u64, |sum, (version, i)| sum.wrapping_add(mix(*version, i)));
        assert_eq!(done[0].digest, want);
    }

    #[test]
    fn impossible_keys_are_refused_by_name() {
        let keys = NullKeys { capacity: Bytes(1000), service_time: Nanos(1), servers: 1 };
        let build = Build { seed: 1, keep_versions: false, path: String::new() };
        let message = Null::new(keys, &build).err().unwrap().to_string();
        assert!(message.starts_with("capacity:"), "{message}");
    }
}
