//! A host interface before a device: bandwidth, per-command overhead, queue slots.
//!
//! Data of writes crosses before the device sees the command, data of reads after the device has
//! it; a half-duplex link (SATA) carries one of both at a time, a full-duplex one (PCIe, SAS) has a
//! lane for each. A command without a free slot waits on the host's side.
//!
//! A `latency` is the time of both ways through what lies between host and device, a network say, and
//! is spent after the device has answered, so that commands reach it in the order in which they were
//! sent. Where it varies, each command draws its own, and answers overtake each other: a later one that
//! drew a shorter latency is there first. Data of reads crosses the wire afterwards, in the order in
//! which the answers are there; on the wire nothing is overtaken. A slot is free when the answer is
//! complete.

use super::measured::{Drawn, LatencyKeys};
use super::{Build, Command, Completion, Device, Op};
use crate::error::{Error, Result};
use crate::persist::persistent;
use crate::rig::at_most_an_hour;
use crate::sim::Lane;
use crate::stats::{Part, Parts};
use crate::units::{NEVER, Nanos, Rate};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// What a rig says about a link.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LinkKeys {
    /// Payload bandwidth, of each direction where it is full duplex.
    pub bandwidth: Rate,
    /// Time of the link for each command besides its data.
    #[serde(default)]
    pub command_time: Nanos,
    /// Commands that the device can hold (SATA NCQ: 32).
    pub queue_slots: u32,
    /// Whether reads and writes share the bandwidth.
    #[serde(default)]
    pub duplex: Duplex,
    /// Time of both ways between host and device, for every command: a time, or a table as
    /// those of `measured` (`bins`, `series`, or a `mean` with `distribution`), without a size.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency: Option<LatencyOf>,
}

/// A latency that is always the same, or drawn for each command.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum LatencyOf {
    /// Always the same.
    Fixed(Nanos),
    /// Drawn.
    Drawn(LatencyKeys),
}

impl<'de> Deserialize<'de> for LatencyOf {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> std::result::Result<Self, D::Error> {
        struct Either;
        impl<'de> serde::de::Visitor<'de> for Either {
            type Value = LatencyOf;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a time such as \"200us\", or a table with a distribution")
            }
            fn visit_str<E: serde::de::Error>(
                self,
                text: &str,
            ) -> std::result::Result<LatencyOf, E> {
                Nanos::parse(text).map(LatencyOf::Fixed).map_err(E::custom)
            }
            fn visit_map<A: serde::de::MapAccess<'de>>(
                self,
                map: A,
            ) -> std::result::Result<LatencyOf, A::Error> {
                let from = serde::de::value::MapAccessDeserializer::new(map);
                LatencyKeys::deserialize(from).map(LatencyOf::Drawn)
            }
        }
        from.deserialize_any(Either)
    }
}

/// Whether both directions can carry data at once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Duplex {
    /// One direction at a time (SATA).
    #[default]
    Half,
    /// Both at once (PCIe, SAS).
    Full,
}

#[derive(Clone, Copy, Debug, Default)]
struct Active {
    command: Command,
    submitted: u64,
    /// When it got its slot.
    admitted: u64,
    /// Whether the device has it, or had it.
    delivered: bool,
    parts: Parts,
    digest: u64,
}

/// A host interface before a device.
pub struct Link {
    below: Box<dyn Device>,
    keys: LinkKeys,
    /// To the device, and from it; a half-duplex link uses the first alone.
    lanes: [Lane<u32>; 2],
    active: Vec<Active>,
    free: Vec<u32>,
    slots_free: u32,
    waiting: VecDeque<u32>,
    arrived: Vec<Completion>,
    ready: Vec<Completion>,
    now: u64,
    commands: u64,
    latency: Option<Drawn>,
    /// Answers on their way, by the instant at which they are there.
    answers: VecDeque<(u64, u32)>,
}

persistent!(Link {
    state { below, lanes, active, free, slots_free, waiting, arrived, ready, now, commands, answers }
    parts { latency }
    built { keys }
});
persistent!(Active { state { command, submitted, admitted, delivered, parts, digest } });

impl Link {
    /// A link before `below`.
    ///
    /// # Errors
    /// [`Error::Rig`] with the key that is wrong.
    pub fn new(keys: &LinkKeys, below: Box<dyn Device>, build: &Build) -> Result<Self> {
        if keys.bandwidth.0 < 1000 {
            let problem =
                format!("found {}, expected at least 1kB/s, such as \"550MB/s\"", keys.bandwidth);
            return Err(Error::rig("bandwidth", problem));
        }
        at_most_an_hour("command_time", keys.command_time)?;
        if keys.queue_slots == 0 {
            return Err(Error::rig("queue_slots", "found 0, expected at least 1"));
        }
        let drawn = |latency: &LatencyOf| match latency {
            LatencyOf::Fixed(time) => Drawn::fixed(*time),
            LatencyOf::Drawn(keys) => Drawn::new(keys, build.stream("latency")),
        };
        let latency = keys.latency.as_ref().map(drawn).transpose();
        Ok(Link {
            latency: latency.map_err(|e| e.under("latency"))?,
            answers: VecDeque::new(),
            below,
            slots_free: keys.queue_slots,
            keys: keys.clone(),
            lanes: [Lane::default(), Lane::default()],
            active: Vec::new(),
            free: Vec::new(),
            waiting: VecDeque::new(),
            arrived: Vec::new(),
            ready: Vec::new(),
            now: 0,
            commands: 0,
        })
    }

    fn data_time(&self, command: &Command, direction: Op) -> u64 {
        if command.op == direction { self.keys.bandwidth.time(command.len) } else { 0 }
    }

    fn lane(&mut self, inbound: bool) -> &mut Lane<u32> {
        let full = self.keys.duplex == Duplex::Full;
        &mut self.lanes[usize::from(inbound && full)]
    }

    /// The command has a slot: it crosses, with its data if it is a write.
    fn admit(&mut self, index: u32) {
        let now = self.now;
        self.active[index as usize].admitted = now;
        let command = self.active[index as usize].command;
        let time = self.keys.command_time.0 + self.data_time(&command, Op::Write);
        if time == 0 {
            self.deliver(index);
        } else {
            self.lane(false).send(now, time, index);
        }
    }

    fn deliver(&mut self, index: u32) {
        let active = &mut self.active[index as usize];
        active.delivered = true;
        active.parts[Part::LinkWait] = active.admitted - active.submitted;
        active.parts[Part::Link] = self.now - active.admitted;
        let inner = Command { tag: u64::from(index), ..active.command };
        self.below.submit(self.now, inner);
    }

    /// The device is done: its answer is on its way.
    fn answer(&mut self, completion: &Completion) {
        let index = completion.tag as u32;
        let active = &mut self.active[index as usize];
        active.parts.add(&completion.parts);
        active.digest = completion.digest;
        match &mut self.latency {
            None => self.bring_data(index),
            Some(latency) => {
                let there = self.now + latency.draw();
                let place = self.answers.partition_point(|&(time, _)| time <= there);
                self.answers.insert(place, (there, index));
            }
        }
    }

    /// The answer is there: the data of a read crosses back.
    fn bring_data(&mut self, index: u32) {
        let command = self.active[index as usize].command;
        let time = self.data_time(&command, Op::Read);
        if time == 0 {
            self.complete(index);
        } else {
            let now = self.now;
            self.lane(true).send(now, time, index);
        }
    }

    fn complete(&mut self, index: u32) {
        let active = &mut self.active[index as usize];
        // What is left after the device's own parts is the way back.
        let link = self.now - active.submitted - active.parts.total();
        active.parts[Part::Link] += link;
        self.ready.push(Completion {
            tag: active.command.tag,
            time: self.now,
            parts: active.parts,
            digest: active.digest,
        });
        self.free.push(index);
        self.slots_free += 1;
        if let Some(next) = self.waiting.pop_front() {
            self.slots_free -= 1;
            self.admit(next);
        }
    }

    /// When the link itself does something next.
    fn own_event(&self) -> u64 {
        let answer = self.answers.front().map_or(NEVER, |&(time, _)| time);
        self.lanes[0].next().min(self.lanes[1].next()).min(answer)
    }

    /// Lets the link's own event at `now` happen.
    fn happen(&mut self) {
        match self.lanes.iter().position(|lane| lane.next() == self.now) {
            Some(lane) => self.lane_event(lane),
            None => {
                let (_, index) = self.answers.pop_front().expect("an answer is due");
                self.bring_data(index);
            }
        }
    }

    fn lane_event(&mut self, lane: usize) {
        let Some(index) = self.lanes[lane].pop() else { return };
        if self.active[index as usize].delivered {
            self.complete(index);
        } else {
            self.deliver(index);
        }
    }
}

impl Device for Link {
    fn kind(&self) -> &'static str {
        "link"
    }

    fn capacity(&self) -> u64 {
        self.below.capacity()
    }

    fn submit(&mut self, now: u64, command: Command) {
        self.now = now;
        self.commands += 1;
        let active = Active {
            command,
            submitted: now,
            admitted: now,
            delivered: false,
            parts: Parts::default(),
            digest: 0,
        };
        let index = match self.free.pop() {
            Some(index) => {
                self.active[index as usize] = active;
                index
            }
            None => {
                self.active.push(active);
                (self.active.len() - 1) as u32
            }
        };
        if self.slots_free == 0 {
            self.waiting.push_back(index);
        } else {
            self.slots_free -= 1;
            self.admit(index);
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
            let own = self.own_event();
            let time = own.min(self.below.next_event());
            if !self.ready.is_empty() && time > self.now {
                done.append(&mut self.ready);
                return self.now;
            }
            if time > limit || time == NEVER {
                return limit;
            }
            if own == time {
                self.now = time;
                self.happen();
                continue;
            }
            // The device may go on by itself until something of the link is due.
            let bound = if self.ready.is_empty() { own.min(limit) } else { self.now };
            let reached = self.below.advance(bound, &mut self.arrived);
            if self.arrived.is_empty() {
                continue;
            }
            self.now = reached;
            let mut arrived = std::mem::take(&mut self.arrived);
            for completion in arrived.drain(..) {
                self.answer(&completion);
            }
            self.arrived = arrived;
        }
    }

    fn settle(&mut self, now: u64) -> u64 {
        debug_assert_eq!(self.slots_free, self.keys.queue_slots, "something is in flight");
        self.below.settle(now)
    }

    fn power_cut(&mut self, now: u64) -> Option<u64> {
        let ready = self.below.power_cut(now)?;
        self.lanes.iter_mut().for_each(|lane| lane.cut(now).for_each(drop));
        (self.active, self.free) = (Vec::new(), Vec::new());
        self.slots_free = self.keys.queue_slots;
        self.waiting.clear();
        self.answers.clear();
        self.ready.clear();
        self.now = now;
        Some(ready)
    }

    fn apply(&mut self, command: &Command) {
        self.below.apply(command);
    }

    fn content(&self, offset: u64) -> u64 {
        self.below.content(offset)
    }

    fn counters(&self, visit: &mut dyn FnMut(&'static str, u64)) {
        visit("commands", self.commands);
        visit("busy_out_ns", self.lanes[0].busy_ns());
        visit("busy_in_ns", self.lanes[1].busy_ns());
    }

    fn children(&self) -> Vec<(String, &dyn Device)> {
        vec![("below".into(), &*self.below)]
    }
}
