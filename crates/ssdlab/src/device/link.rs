//! A host interface before a device: bandwidth, per-command overhead, queue slots.
//!
//! Data of writes crosses before the device sees the command, data of reads after the device has
//! it; a half-duplex link (SATA) carries one of both at a time, a full-duplex one (PCIe, SAS) has a
//! lane for each. A command without a free slot waits on the host's side, in one queue or in that of its process; of
//! those the device takes one command each in turn.
//!
//! A `latency` is the time of both ways through what lies between host and device, a network say, and
//! is spent after the device has answered, so that commands reach it in the order in which they were
//! sent. Where it varies, each command draws its own, and answers overtake each other: a later one that
//! drew a shorter latency is there first. Data of reads crosses the wire afterwards, in the order in
//! which the answers are there; on the wire nothing is overtaken. A slot is free when the answer is
//! complete.
//!
//! A `host_time` is what a processor of the host takes for an I/O before it is sent, one I/O of a process after
//! the other: the ceiling of a job, however fast the device. What it makes of the data of a write before that is sent
//! (fio changes its buffers) takes it longer, by `host_fill_rate`. Devices made of devices submit at no such cost.
//!
//! Nearly every drive has one, so a command takes one place on its way: the device below is asked under the number of
//! that, and its answer becomes the link's. At one instant what the link does goes before what the device does, which
//! goes on by itself until something of the link's is due.

use super::measured::{Drawn, LatencyOf};
use super::{Build, Command, Completion, Device, Distance, Drawing, Missed, Op};
use crate::error::{Error, Result};
use crate::fleet::{HostId, OfHost, Power};
use crate::persist::persistent;
use crate::rig::at_most_an_hour;
use crate::sim::{Slab, Turns, Wire};
use crate::stats::Part;
use crate::units::{NEVER, Nanos, Rate};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// What a rig says about a link.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LinkKeys {
    /// Host interface that exists, by its name in `ssdlab list interfaces`: it supplies those of the keys below that it
    /// has and the rig does not set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interface: Option<String>,
    /// Payload bandwidth, of each direction where it is full duplex.
    pub bandwidth: Rate,
    /// Time of the link for each command besides its data.
    #[serde(default)]
    pub command_time: Nanos,
    /// Commands that the device works on at a time (SATA NCQ: 32); the others wait on the host's side.
    pub queue_slots: u32,
    /// Where they wait there, and whose turn it is.
    #[serde(default)]
    pub queues: Queues,
    /// Time of the host's processor for each I/O, of each process (`numjobs`) by itself; not within an array.
    #[serde(default)]
    pub host_time: Nanos,
    /// Rate at which that processor makes the data of writes, on top of `host_time`; none where nothing is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host_fill_rate: Option<Rate>,
    /// Whether reads and writes share the bandwidth.
    #[serde(default)]
    pub duplex: Duplex,
    /// Time of both ways between host and device, for every command: a time, or a table as
    /// those of `measured` (`bins`, `series`, or a `mean` with `distribution`), without a size.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency: Option<LatencyOf>,
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

/// Where commands wait for a slot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Queues {
    /// In one queue, in the order in which they came (SATA, SAS).
    #[default]
    One,
    /// In a queue of each process (`numjobs`), of which the device takes one command each in turn (NVMe); what an
    /// array or a cache sends is in one.
    PerProcess,
}

/// What happens next to a command, in the order in which that goes at one instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// It has crossed to the device.
    Out,
    /// Its data has crossed back.
    In,
    /// The answer to it is there.
    Answer,
    /// The host's processor sends it.
    Send,
}
/// How many there are.
const STEPS: usize = 4;

/// A command on its way.
#[derive(Clone, Copy, Debug, Default)]
struct Passage {
    command: Command,
    submitted: u64,
    /// When it got its slot.
    admitted: u64,
    /// Whether the device has it, or had it.
    delivered: bool,
}
persistent!(Passage { state { command, submitted, admitted, delivered } });

/// A host interface before a device.
pub struct Link {
    below: Box<dyn Device>,
    /// When it does something.
    due: u64,
    keys: LinkKeys,
    /// The present instant.
    now: u64,
    hosts: Slab<Passage, OfHost>,
    commands: u64,
    /// What the link itself does next by [`Step`]: sorted, and of what is equal the first to be planned first.
    steps: [VecDeque<(u64, HostId)>; STEPS],
    /// When the first of each is due; the first of all, or when power is back.
    firsts: [u64; STEPS],
    next: u64,
    /// To the device, and from it; a half-duplex link uses the first alone.
    wires: [Wire; 2],
    slots_free: u32,
    waiting: Turns<HostId>,
    latency: Option<Drawn>,
    /// What the device has answered to commands that are on their way back, by their places.
    answered: Vec<Completion>,
    /// When the processor of each process is free.
    hosts_free_at: Vec<u64>,
    power: Power,
}

persistent!(Link {
    state {
        below, due, now, hosts, commands, steps, firsts, next, wires, slots_free, waiting, answered, hosts_free_at, power,
    }
    parts { latency }
    built { keys }
});

impl Link {
    /// A link before `below`.
    ///
    /// # Errors
    /// [`Error::Rig`] with the key that is wrong.
    pub fn new(keys: &LinkKeys, below: Box<dyn Device>, build: &Build) -> Result<Self> {
        for (key, rate) in
            [("bandwidth", Some(keys.bandwidth)), ("host_fill_rate", keys.host_fill_rate)]
        {
            if let Some(rate) = rate.filter(|rate| rate.0 < 1000) {
                let problem = format!("found {rate}, expected at least 1kB/s, such as \"550MB/s\"");
                return Err(Error::rig(key, problem));
            }
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
            answered: Vec::new(),
            hosts_free_at: Vec::new(),
            due: below.next_event(),
            below,
            now: 0,
            hosts: Slab::new(),
            commands: 0,
            power: Power::default(),
            slots_free: keys.queue_slots,
            keys: keys.clone(),
            steps: Default::default(),
            firsts: [NEVER; STEPS],
            next: NEVER,
            wires: [Wire::default(); 2],
            waiting: Turns::default(),
        })
    }

    /// Time on the wire of the data of a command that crosses in the direction of `direction`.
    #[inline]
    fn data_time(&self, command: &Command, direction: Op) -> u64 {
        if command.op == direction { self.keys.bandwidth.time(command.len) } else { 0 }
    }

    /// A command begins to cross, for so long.
    #[inline(always)]
    fn cross(&mut self, host: HostId, step: Step, time: u64) {
        let nth = usize::from(step == Step::In && self.keys.duplex == Duplex::Full);
        let end = self.wires[nth].take(self.now, time);
        self.plan(end, step, host);
    }

    /// What is planned comes mostly after all that is of its kind.
    #[inline]
    fn plan(&mut self, time: u64, step: Step, host: HostId) {
        let (steps, first) = (&mut self.steps[step as usize], &mut self.firsts[step as usize]);
        *first = time.min(*first);
        self.next = time.min(self.next);
        match steps.back() {
            Some(&(last, _)) if last > time => insert(steps, time, host),
            _ => steps.push_back((time, host)),
        }
    }

    /// The processor of its process takes its time for a command before that is sent.
    #[inline(never)]
    fn submit_later(&mut self, host: HostId, process: usize) {
        if self.hosts_free_at.len() < process {
            self.hosts_free_at.resize(process, 0);
        }
        let command = &self.hosts[host].command;
        let fill = self.keys.host_fill_rate.filter(|_| command.op == Op::Write);
        let time = self.keys.host_time.0 + fill.map_or(0, |rate| rate.time(command.len));
        let free_at = &mut self.hosts_free_at[process - 1];
        *free_at = self.now.max(*free_at) + time;
        let sent = *free_at;
        self.plan(sent, Step::Send, host);
    }

    #[inline(always)]
    fn sent(&mut self, host: HostId) {
        if self.slots_free == 0 {
            let queue = match self.keys.queues {
                Queues::One => 0,
                Queues::PerProcess => self.hosts[host].command.process,
            };
            self.waiting.push(queue, host);
        } else {
            self.slots_free -= 1;
            self.admit(host);
        }
    }

    /// The command has a slot: it crosses, with its data if it is a write.
    #[inline(always)]
    fn admit(&mut self, host: HostId) {
        let now = self.now;
        let passage = &mut self.hosts[host];
        passage.admitted = now;
        let command = passage.command;
        let time = self.keys.command_time.0 + self.data_time(&command, Op::Write);
        if time == 0 {
            self.deliver(host);
        } else {
            self.cross(host, Step::Out, time);
        }
    }

    #[inline]
    fn deliver(&mut self, host: HostId) {
        let passage = &mut self.hosts[host];
        passage.delivered = true;
        let tag = host.bits();
        self.below.submit(self.now, Command { tag, process: 0, ..passage.command });
        self.due = self.below.next_event();
    }

    /// Lets the device go on, at most to an instant. What it answers then and is back at once stays in `done`.
    #[inline]
    fn proceed_below(&mut self, until: u64, done: &mut Vec<Completion>) {
        let before = done.len();
        self.due = self.below.proceed(until, done);
        let mut complete = before;
        for at in before..done.len() {
            let answer = &mut done[at];
            self.now = self.now.max(answer.time);
            if self.answer(answer) {
                if complete < at {
                    done.swap(complete, at);
                }
                complete += 1;
            }
        }
        done.truncate(complete);
    }

    /// The device is done: its answer is on its way. Whether it is back, and the link's.
    #[inline]
    fn answer(&mut self, answer: &mut Completion) -> bool {
        let host = HostId::from_bits(answer.tag);
        if let Some(latency) = &mut self.latency {
            let there = self.now + latency.draw();
            self.plan(there, Step::Answer, host);
        } else if !self.brings_data(host) {
            self.complete(host, answer);
            return true;
        }
        // Kept until it is back.
        if self.answered.len() <= host.index() {
            self.answered.resize(host.index() + 1, Completion::default());
        }
        self.answered[host.index()] = std::mem::take(answer);
        false
    }

    /// The answer is there: the data of a read crosses back. Whether there is any.
    #[inline]
    fn brings_data(&mut self, host: HostId) -> bool {
        let time = self.data_time(&self.hosts[host].command, Op::Read);
        if time > 0 {
            self.cross(host, Step::In, time);
        }
        time > 0
    }

    /// Makes the device's answer that of the link.
    #[inline(always)]
    fn complete(&mut self, host: HostId, answer: &mut Completion) {
        let Passage { command: Command { tag, .. }, submitted, admitted, .. } = self.hosts[host];
        self.hosts.remove(host);
        // What is left after the device's own parts is the way there and back.
        let way = self.now - admitted - answer.parts.total();
        answer.parts.add(Part::LinkWait, admitted - submitted);
        answer.parts.add(Part::Link, way);
        (answer.tag, answer.time) = (tag, self.now);
        match self.waiting.pop() {
            Some(next) => self.admit(next),
            None => self.slots_free += 1,
        }
    }

    /// What comes first happens.
    #[inline]
    fn step(&mut self, done: &mut Vec<Completion>) {
        let time = self.next;
        self.now = self.now.max(time);
        let step = match self.firsts.map(|first| first == time) {
            [true, ..] => Step::Out,
            [_, true, ..] => Step::In,
            [.., true, _] => Step::Answer,
            _ => Step::Send,
        };
        let steps = &mut self.steps[step as usize];
        let Some((_, host)) = steps.pop_front() else { return self.start() };
        self.firsts[step as usize] = steps.front().map_or(NEVER, |&(time, _)| time);
        let [out, back, answer, sent] = self.firsts;
        self.next = out.min(back).min(answer.min(sent));
        match step {
            Step::Out => self.deliver(host),
            Step::Send => self.sent(host),
            Step::Answer if self.brings_data(host) => {}
            Step::Answer | Step::In => {
                let mut answer = std::mem::take(&mut self.answered[host.index()]);
                self.complete(host, &mut answer);
                done.push(answer);
            }
        }
    }

    #[inline(always)]
    fn begin(&mut self, host: HostId) {
        let process = self.hosts[host].command.process as usize;
        if process > 0 && (self.keys.host_time.0 > 0 || self.keys.host_fill_rate.is_some()) {
            self.submit_later(host, process);
        } else {
            self.sent(host);
        }
    }

    /// Power is back: commands that came meanwhile begin. Nothing else was planned.
    #[cold]
    fn start(&mut self) {
        (self.power.back, self.next) = (NEVER, NEVER);
        for host in self.power.started(self.now) {
            self.begin(host);
        }
    }
}

/// Puts a step in its place among others of its kind.
#[inline(never)]
fn insert(steps: &mut VecDeque<(u64, HostId)>, time: u64, host: HostId) {
    let place = steps.partition_point(|&(planned, _)| planned <= time);
    steps.insert(place, (time, host));
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
        let host = self.hosts.insert(Passage { command, submitted: now, ..Passage::default() });
        if self.power.is_off() {
            self.power.hold(host);
        } else {
            self.begin(host);
        }
    }
    fn expect(&self, op: Op, offset: u64, ahead: Distance) {
        self.below.expect(op, offset, ahead);
    }
    #[inline]
    fn next_event(&self) -> u64 {
        self.next.min(self.due)
    }
    fn advance(&mut self, limit: u64, done: &mut Vec<Completion>) -> u64 {
        let (before, mut limit) = (done.len(), limit);
        loop {
            let next = self.next_event();
            if next > limit || next == NEVER {
                return limit;
            }
            if self.due < self.next {
                self.proceed_below(self.next.min(limit), done);
            } else {
                self.step(done);
            }
            if done.len() > before {
                limit = self.now;
            }
        }
    }
    fn take_stock(&mut self, now: u64) {
        self.below.take_stock(now);
        self.due = self.below.next_event();
    }
    fn settle(&mut self, now: u64) -> u64 {
        debug_assert!(self.hosts.is_empty(), "something is in flight");
        self.now = self.now.max(now);
        if self.power.is_off() {
            self.advance(self.power.back, &mut Vec::new());
        }
        self.now = self.below.settle(self.now);
        self.due = self.below.next_event();
        self.now
    }
    fn power_cut(&mut self, now: u64, missed: &mut Missed) -> u64 {
        let waiting = self.hosts.iter().filter(|host| !host.delivered);
        waiting.for_each(|host| missed.write(&host.command, 0));
        let ready = self.below.power_cut(now, missed);
        self.due = self.below.next_event();
        self.power.cut(now, ready, self.hosts.len() as u64);
        self.now = now;
        self.hosts = Slab::new();
        self.wires.iter_mut().for_each(|wire| wire.cut(now));
        self.slots_free = self.keys.queue_slots;
        self.waiting.clear();
        self.steps.iter_mut().for_each(VecDeque::clear);
        (self.firsts, self.next) = ([NEVER; STEPS], ready);
        self.hosts_free_at.clear();
        ready
    }
    fn is_volatile(&self) -> bool {
        self.below.is_volatile()
    }
    fn fast_path(&self, command: &Command) -> bool {
        self.below.fast_path(command)
    }
    fn drive_commands(&self) -> Option<u64> {
        self.below.drive_commands()
    }
    fn apply(&mut self, command: &Command) {
        debug_assert!(self.hosts.is_empty(), "something is in flight");
        self.below.apply(command);
        self.due = self.below.next_event();
    }
    fn draw_steady(&mut self, write_bytes: u64, drawing: &mut Drawing<'_>) -> bool {
        let drawn = self.below.draw_steady(write_bytes, drawing);
        self.due = self.below.next_event();
        drawn
    }
    fn content(&self, offset: u64) -> u64 {
        self.below.content(offset)
    }
    fn counters(&self, visit: &mut dyn FnMut(&'static str, u64)) {
        visit("commands", self.commands);
        visit("busy_out_ns", self.wires[0].busy_ns());
        visit("busy_in_ns", self.wires[1].busy_ns());
        self.power.counters(visit);
    }
    fn children(&self) -> Vec<(String, &dyn Device)> {
        vec![("below".into(), &*self.below)]
    }
}
