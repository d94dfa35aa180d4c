//! A bandwidth that all members share: the lanes behind a SAS expander, the uplink of a PCIe switch, the
//! link between a chipset and its processor (DMI).
//!
//! It belongs to the array and not to a device of its own, since a device stands above one other, and
//! this one above several that know nothing of each other. Data of writes crosses before a member sees
//! its command, data of reads after the member has it; first in, first out, one transfer at a time and
//! direction. An array without one does not know of it.

use super::failure::BUS;
use super::{Array, Io};
use crate::contract::{Completion, Op};
use crate::device::Duplex;
use crate::error::{Error, Result};
use crate::fleet::IoId;
use crate::persist::persistent;
use crate::rig::at_most_an_hour;
use crate::sim::WireQueue;
use crate::stats::{Part, Parts};
use crate::units::{Nanos, Rate};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a rig says about a bus.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BusKeys {
    /// Data that all members together can send or receive in a second.
    pub bandwidth: Rate,
    /// Time of the bus for each command of a member, besides its data.
    #[serde(default)]
    pub command_time: Nanos,
    /// Whether reads and writes share the bandwidth (`half`), or each have it (`full`: PCIe, SAS, DMI).
    #[serde(default = "full")]
    pub duplex: Duplex,
}

fn full() -> Duplex {
    Duplex::Full
}

/// A command of a member between array and member.
#[derive(Clone, Debug, Default)]
struct Held {
    /// Of this crossing; another one of the same place has another.
    serial: u64,
    /// It comes from the member.
    back: bool,
    since: u64,
    stamp: u64,
    compressible: u8,
    parts: Parts,
    digest: u64,
}
persistent!(Held { state { serial, back, since, stamp, compressible, parts, digest } });

/// See the module.
pub(super) struct Bus {
    bandwidth: Rate,
    command_time: u64,
    full: bool,
    /// To the members, and from them; a half-duplex bus uses the first alone. Commands of members by
    /// their place, and the serial number of the crossing.
    lanes: [WireQueue<(IoId, u64)>; 2],
    /// By the place of the command.
    held: Vec<Held>,
    serial: u64,
}
persistent!(Bus { state { lanes, held, serial } built { bandwidth, command_time, full } });

impl Bus {
    /// As the rig says.
    ///
    /// # Errors
    /// [`Error::Rig`] with the key that is wrong.
    pub fn new(keys: &BusKeys) -> Result<Self> {
        if keys.bandwidth.0 < 1000 {
            let found = keys.bandwidth;
            let problem = format!("found {found}, expected at least 1kB/s, such as \"2GB/s\"");
            return Err(Error::rig("bus.bandwidth", problem));
        }
        at_most_an_hour("bus.command_time", keys.command_time)?;
        Ok(Bus {
            bandwidth: keys.bandwidth,
            command_time: keys.command_time.0,
            full: keys.duplex == Duplex::Full,
            lanes: [WireQueue::default(), WireQueue::default()],
            held: Vec::new(),
            serial: 0,
        })
    }

    /// When something has crossed next.
    fn next(&self) -> u64 {
        self.lanes[0].next().min(self.lanes[1].next())
    }

    /// Takes what has crossed at `now`; its place, unless something else has that place by now.
    fn pop(&mut self, now: u64) -> Option<IoId> {
        let lane = self.lanes.iter().position(|lane| lane.next() <= now)?;
        let (io, serial) = self.lanes[lane].pop()?;
        (self.held[io.index()].serial == serial).then_some(io)
    }

    fn send(&mut self, now: u64, io: IoId, held: Held, time: u64) {
        self.serial += 1;
        if self.held.len() <= io.index() {
            self.held.resize(io.index() + 1, Held::default());
        }
        self.held[io.index()] = Held { serial: self.serial, since: now, ..held };
        let lane = usize::from(held.back && self.full);
        self.lanes[lane].send(now, time, (io, self.serial));
    }

    /// Nothing is on the way any more; the places of commands that were, and whether they came from
    /// their member.
    pub fn cut(&mut self, now: u64) -> Vec<(IoId, bool)> {
        let mut cut = Vec::new();
        for lane in &mut self.lanes {
            let held = &self.held;
            let current = lane.cut(now).filter(|&(io, serial)| held[io.index()].serial == serial);
            cut.extend(current.map(|(io, _)| (io, held[io.index()].back)));
        }
        cut
    }

    pub fn counters(&self, visit: &mut dyn FnMut(&'static str, u64)) {
        visit("bus_out_ns", self.lanes[0].busy_ns());
        visit("bus_in_ns", self.lanes[1].busy_ns());
    }
}

impl Array {
    fn plan_bus(&mut self) {
        if let Some(bus) = &self.bus {
            let next = bus.next();
            self.fleet.set_timer(BUS, next);
        }
    }

    /// Sends a command to its member by way of the bus.
    pub(super) fn send_across(&mut self, io: IoId, stamp: u64, compressible: u8) {
        let Some(bus) = &mut self.bus else { return };
        let command = self.fleet.ios[io];
        let data = if command.op == Op::Write { bus.bandwidth.time(command.len) } else { 0 };
        let held = Held { stamp, compressible, ..Held::default() };
        bus.send(self.fleet.now, io, held, bus.command_time + data);
        self.plan_bus();
    }

    /// A member has answered a read: its data crosses.
    pub(super) fn transfer_read(&mut self, io: IoId, completion: &Completion) {
        let Some(bus) = &mut self.bus else { return };
        let mut parts = completion.parts.clone();
        parts.add_all(&bus.held[io.index()].parts);
        let held = Held { parts, back: true, digest: completion.digest, ..Held::default() };
        bus.send(self.fleet.now, io, held, bus.bandwidth.time(self.fleet.ios[io].len));
        self.plan_bus();
    }

    /// What the bus took of a command that has been answered, added to what its member took.
    pub(super) fn with_bus(&self, io: IoId, completion: &Completion) -> Completion {
        let mut all = completion.clone();
        if let Some(bus) = &self.bus {
            all.parts.add_all(&bus.held[io.index()].parts);
        }
        all
    }

    /// Everything on the bus is cut: writes that were on their way to their member.
    pub(super) fn cut_bus(&mut self, now: u64) -> Vec<Io> {
        let cut = self.bus.as_mut().map(|bus| bus.cut(now)).unwrap_or_default();
        let there = cut.into_iter().filter(|&(io, back)| !back && self.fleet.ios.holds(io));
        let commands = there.map(|(io, _)| self.fleet.ios[io]);
        commands.filter(|io| io.op == Op::Write).collect()
    }

    /// Something has crossed the bus.
    pub(super) fn bus_event(&mut self) {
        let now = self.fleet.now;
        let crossed = self.bus.as_mut().and_then(|bus| bus.pop(now));
        self.plan_bus();
        let Some(io) = crossed else { return };
        // A member that failed in the meantime has given its commands up.
        let Some(bus) = self.bus.as_mut().filter(|_| self.fleet.ios.holds(io)) else { return };
        let held = &mut bus.held[io.index()];
        held.parts.add(Part::Bus, now - held.since);
        let &mut Held { back, stamp, compressible, digest, .. } = held;
        if back {
            let parts = std::mem::take(&mut held.parts);
            self.finish_io(io, &Completion { tag: 0, time: now, parts, digest });
        } else {
            self.fleet.deliver(io, stamp, compressible);
        }
    }
}
