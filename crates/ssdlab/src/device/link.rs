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
//!
//! A `host_time` is what a processor of the host takes for an I/O before it is sent, one I/O of a process after
//! the other: the ceiling of a job, however fast the device. Devices made of devices submit at no such cost.

use super::measured::{Drawn, LatencyKeys};
use super::{Build, Command, Completion, Device, Drawing, Missed, Op};
use crate::error::{Error, Result};
use crate::fleet::{Composite, Fleet, HostId, Io, fleet_of};
use crate::persist::persistent;
use crate::rig::at_most_an_hour;
use crate::sim::Lane;
use crate::stats::Part;
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
    /// Time of the host's processor for each I/O, of each process (`numjobs`) by itself; not within an array.
    #[serde(default)]
    pub host_time: Nanos,
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

/// The timer of answers, after those of the lanes.
const ANSWERS: u32 = 2;

/// The timer of what the host is about to send.
const SENDS: u32 = 3;

/// How far a command has come.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Passage {
    /// When it got its slot.
    admitted: u64,
    /// Whether the device has it, or had it.
    delivered: bool,
}
persistent!(Passage { state { admitted, delivered } });

/// A host interface before a device.
pub struct Link {
    fleet: Fleet<Passage, HostId>,
    keys: LinkKeys,
    /// To the device, and from it; a half-duplex link uses the first alone.
    lanes: [Lane<HostId>; 2],
    slots_free: u32,
    waiting: VecDeque<HostId>,
    latency: Option<Drawn>,
    /// Answers on their way, by the instant at which they are there.
    answers: VecDeque<(u64, HostId)>,
    /// What the device has answered to commands that are on their way back, by their places.
    answered: Vec<Completion>,
    /// When the processor of each process is free.
    hosts_free_at: Vec<u64>,
    /// Commands that it has not sent yet, by the instant at which it has.
    sends: VecDeque<(u64, HostId)>,
}

persistent!(Link {
    state { fleet, lanes, slots_free, waiting, answers, answered, hosts_free_at, sends }
    parts { latency }
    built { keys }
});

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
        at_most_an_hour("host_time", keys.host_time)?;
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
            answered: Vec::new(),
            hosts_free_at: Vec::new(),
            sends: VecDeque::new(),
            fleet: Fleet::new(below.capacity(), vec![below], SENDS + 1, true),
            slots_free: keys.queue_slots,
            keys: keys.clone(),
            lanes: [Lane::default(), Lane::default()],
            waiting: VecDeque::new(),
        })
    }

    /// Time on the wire of the data of a command that crosses in the direction of `direction`.
    fn data_time(&self, command: &Command, direction: Op) -> u64 {
        if command.op == direction { self.keys.bandwidth.time(command.len) } else { 0 }
    }

    /// A command begins to cross, for so long.
    #[inline]
    fn cross(&mut self, host: HostId, inbound: bool, time: u64) {
        let nth = usize::from(inbound && self.keys.duplex == Duplex::Full);
        self.lanes[nth].send(self.fleet.now, time, host);
        self.fleet.set_timer(nth as u32, self.lanes[nth].next());
    }

    #[inline]
    fn plan_answers(&mut self) {
        let next = self.answers.front().map_or(NEVER, |&(time, _)| time);
        self.fleet.set_timer(ANSWERS, next);
    }

    /// The processor of its process takes its time for a command before that is sent.
    fn submit_later(&mut self, host: HostId, process: usize) {
        if self.hosts_free_at.len() < process {
            self.hosts_free_at.resize(process, 0);
        }
        let free_at = &mut self.hosts_free_at[process - 1];
        *free_at = self.fleet.now.max(*free_at) + self.keys.host_time.0;
        let sent = *free_at;
        let place = self.sends.partition_point(|&(time, _)| time <= sent);
        self.sends.insert(place, (sent, host));
        self.plan_sends();
    }

    #[inline]
    fn plan_sends(&mut self) {
        let next = self.sends.front().map_or(NEVER, |&(time, _)| time);
        self.fleet.set_timer(SENDS, next);
    }

    #[inline]
    fn sent(&mut self, host: HostId) {
        if self.slots_free == 0 {
            self.waiting.push_back(host);
        } else {
            self.slots_free -= 1;
            self.admit(host);
        }
    }

    /// The command has a slot: it crosses, with its data if it is a write.
    #[inline]
    fn admit(&mut self, host: HostId) {
        let now = self.fleet.now;
        let active = &mut self.fleet.hosts[host];
        active.own.admitted = now;
        let command = active.command;
        let time = self.keys.command_time.0 + self.data_time(&command, Op::Write);
        if time == 0 {
            self.deliver(host);
        } else {
            self.cross(host, false, time);
        }
    }

    #[inline]
    fn deliver(&mut self, host: HostId) {
        let active = &mut self.fleet.hosts[host];
        active.own.delivered = true;
        let Command { op, offset, len, compressible, stamp, .. } = active.command;
        self.fleet.send(Io { member: 0, op, offset, len, purpose: host }, stamp, compressible);
    }

    /// The answer is there: the data of a read crosses back.
    #[inline]
    fn bring_data(&mut self, host: HostId, answer: &Completion) {
        let command = self.fleet.hosts[host].command;
        let time = self.data_time(&command, Op::Read);
        if time == 0 {
            return self.complete(host, answer);
        }
        self.put_by(host, answer);
        self.cross(host, true, time);
    }

    /// Keeps what the device has answered until it is back.
    fn put_by(&mut self, host: HostId, answer: &Completion) {
        if self.answered.len() <= host.index() {
            self.answered.resize(host.index() + 1, Completion::default());
        }
        self.answered[host.index()] = answer.clone();
    }

    #[inline]
    fn complete(&mut self, host: HostId, answer: &Completion) {
        let active = &mut self.fleet.hosts[host];
        active.digest = answer.digest;
        let waited = active.own.admitted - active.submitted;
        // What is left after the device's own parts is the way there and back.
        self.fleet.complete(host, &answer.parts, [(Part::LinkWait, waited)], Part::Link);
        self.slots_free += 1;
        if let Some(next) = self.waiting.pop_front() {
            self.slots_free -= 1;
            self.admit(next);
        }
    }

    fn crossed(&mut self, lane: usize) {
        let Some(host) = self.lanes[lane].pop() else { return };
        self.fleet.set_timer(lane as u32, self.lanes[lane].next());
        if self.fleet.hosts[host].own.delivered {
            let answer = std::mem::take(&mut self.answered[host.index()]);
            self.complete(host, &answer);
        } else {
            self.deliver(host);
        }
    }
}

impl Composite for Link {
    fleet_of!(Passage, HostId);
    const KIND: &'static str = "link";
    const SOLE: bool = true;

    #[inline]
    fn begin(&mut self, host: HostId) {
        let process = self.fleet.hosts[host].command.process as usize;
        if process > 0 && self.keys.host_time.0 > 0 {
            self.submit_later(host, process);
        } else {
            self.sent(host);
        }
    }

    /// The device is done: its answer is on its way.
    fn answered(&mut self, io: Io<HostId>, completion: &Completion) {
        let host = io.purpose;
        match &mut self.latency {
            None => self.bring_data(host, completion),
            Some(latency) => {
                let there = self.fleet.now + latency.draw();
                let place = self.answers.partition_point(|&(time, _)| time <= there);
                self.answers.insert(place, (there, host));
                self.plan_answers();
                self.put_by(host, completion);
            }
        }
    }

    #[inline]
    fn timer(&mut self, which: u32) {
        if which == SENDS {
            let (_, host) = self.sends.pop_front().expect("a command is due");
            self.plan_sends();
            return self.sent(host);
        }
        if which != ANSWERS {
            return self.crossed(which as usize);
        }
        let (_, host) = self.answers.pop_front().expect("an answer is due");
        self.plan_answers();
        let answer = std::mem::take(&mut self.answered[host.index()]);
        self.bring_data(host, &answer);
    }

    fn is_working(&self) -> bool {
        false
    }

    fn lose_power(&mut self, now: u64, missed: &mut Missed) -> u64 {
        let waiting = self.fleet.hosts.iter().filter(|host| !host.own.delivered);
        waiting.for_each(|host| missed.write(&host.command, 0));
        let (ready, below) = self.fleet.cut(now);
        below.into_iter().for_each(|below| missed.append(below));
        self.lanes.iter_mut().for_each(|lane| lane.cut(now).for_each(drop));
        self.slots_free = self.keys.queue_slots;
        self.waiting.clear();
        self.answers.clear();
        self.sends.clear();
        self.hosts_free_at.clear();
        ready
    }

    fn apply_untimed(&mut self, command: &Command) {
        self.fleet.apply(0, command);
    }

    fn draw_steady_untimed(&mut self, write_bytes: u64, drawing: &mut Drawing<'_>) -> bool {
        self.fleet.draw_steady(0, write_bytes, drawing)
    }

    fn content_of(&self, offset: u64) -> u64 {
        self.fleet.members[0].content(offset)
    }

    fn visit_counters(&self, visit: &mut dyn FnMut(&'static str, u64)) {
        visit("commands", self.fleet.commands);
        visit("busy_out_ns", self.lanes[0].busy_ns());
        visit("busy_in_ns", self.lanes[1].busy_ns());
    }
}
