//! Tiers: two devices as one of their sum, between which extents move by their heat.
//!
//! A cache copies what is hot and its pool keeps all; here every extent lies on one of the devices. So there is more
//! space, and a device that fails takes data with it.
//!
//! A command of the host is cut where its extents do not lie side by side (`host.rs`). `heat.rs` counts and plans.
//! A move copies an extent into a free slot, piece by piece, and then switches the map (`moves.rs`), as LVM's pvmove
//! does through dm-mirror: reads go to the old place; writes of the piece that is being copied wait, those of what
//! has been copied go to both places.
//!
//! The time of a command is that of its part that ended last: the device's own parts, and `move_wait` before those.

mod build;
mod content;
mod counters;
mod fail;
mod heat;
mod host;
mod keys;
mod map;
mod moves;
mod untimed;

pub use build::memory;
pub use keys::{HeatOf, MapIn, Placement, TierKeys};

use crate::array::Slot;
use crate::device::{Command, Completion, Device, Op};
use crate::persist::{persistent, persistent_enum};
use crate::sim::{Calendar, Slab};
use crate::units::NEVER;
use content::Versions;
use counters::Counts;
use heat::Heat;
use host::{Held, Host};
use map::Map;
use moves::Move;
use std::collections::VecDeque;

/// The tiers; also their slots in the calendar.
const FAST: usize = 0;
const BELOW: usize = 1;
/// The slot of the calendar for what happens by the clock.
const TIMERS: u32 = 2;

/// What a command of a device is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum Kind {
    /// A command of the host: `owner`.
    #[default]
    Host,
    /// The same write once more, where a move of its extent goes.
    Mirror,
    /// A piece of a move: `owner`.
    Copy,
    /// The entry of a move's extent.
    Entry,
    /// TRIM of a slot that has been left: `owner`.
    Vacate,
}
persistent_enum!(Kind { Host, Mirror, Copy, Entry, Vacate });

/// A command of a device in flight.
#[derive(Clone, Copy, Debug, Default)]
struct Io {
    active: bool,
    kind: Kind,
    tier: usize,
    op: Op,
    /// Where it is on the device, and for the host.
    offset: u64,
    len: u64,
    at: u64,
    owner: u32,
}
persistent!(Io { state { active, kind, tier, op, offset, len, at, owner } });

/// Two tiers.
pub struct Tier {
    keys: TierKeys,
    /// The fast device and that below.
    slots: [Slot; 2],
    /// log2 of the bytes of an extent.
    shift: u32,
    /// Where the slots begin on each device.
    data: [u64; 2],
    size: u64,
    map: Map,
    heat: Heat,
    calendar: Calendar,
    hosts: Slab<Host>,
    ios: Slab<Io>,
    moves: Slab<Move>,
    /// Writes that wait for a piece.
    held: VecDeque<Held>,
    /// Moves that wait for their turn by the rate, and when that is.
    paced: VecDeque<u32>,
    next_piece: u64,
    /// Moves that wait for writes of before.
    blocked: u32,
    /// Commands that end in an error, and when.
    errors: VecDeque<(u64, u32)>,
    /// Hosts behind a purge, which is the first of them.
    behind: VecDeque<u32>,
    purging: bool,
    settling: bool,
    counts: Counts,
    versions: Option<Versions>,
    now: u64,
    ready: Vec<Completion>,
    arrived: Vec<Completion>,
}
persistent!(Tier {
    state {
        slots, map, heat, calendar, hosts, ios, moves, held, paced, next_piece, blocked, errors, behind, purging,
        settling, counts, now, ready,
    }
    parts { versions }
    built { keys, shift, data, size, arrived }
});

impl Tier {
    /// Where the byte at `at` of the host's, which lies in `slot`, is on its device.
    #[inline]
    fn place(&self, slot: u32, at: u64) -> u64 {
        let first = if slot < self.map.fast { 0 } else { self.map.fast };
        let within = at & ((1 << self.shift) - 1);
        self.data[self.map.tier_of(slot)] + (u64::from(slot - first) << self.shift) + within
    }

    /// The slots that a range of a device touches.
    #[inline]
    fn slots_of(&self, tier: usize, offset: u64, len: u64) -> std::ops::RangeInclusive<u32> {
        let first = if tier == FAST { 0 } else { self.map.fast };
        let slot = |at: u64| ((at - self.data[tier]) >> self.shift) as u32 + first;
        slot(offset)..=slot(offset + len - 1)
    }

    /// Sends a command to a device.
    fn send(&mut self, io: Io, stamp: u64, compressible: u8) {
        let Io { tier, op, offset, len, .. } = io;
        let tag = u64::from(self.ios.insert(Io { active: true, ..io }));
        let slot = &mut self.slots[tier];
        slot.submit(self.now, Command { tag, op, offset, len, compressible, stamp });
        self.calendar.set(tier as u32, slot.next_event());
    }

    /// A device has answered.
    fn answer(&mut self, tier: usize, completion: &Completion) {
        let index = completion.tag as u32;
        let io = self.ios.all[index as usize];
        if !io.active || io.tier != tier {
            // The device failed in the very instant in which it answered.
            return;
        }
        self.ios.all[index as usize].active = false;
        self.ios.free.push(index);
        self.slots[tier].returned(self.now);
        if io.op == Op::Read {
            self.check_digest(&io, completion.digest);
        }
        match io.kind {
            Kind::Host | Kind::Mirror => {
                self.add_digest(&io);
                self.leave(&io);
                self.part_done(io.owner, &completion.parts);
                if self.blocked > 0 && io.op != Op::Read {
                    self.unblock();
                }
            }
            Kind::Copy | Kind::Entry => self.move_answered(io.owner),
            Kind::Vacate => self.map.free[tier].push(io.owner),
        }
    }

    /// Lets the next event happen, at `time`.
    fn happen(&mut self, time: u64, slot: u32) {
        self.now = self.now.max(time);
        if slot == TIMERS {
            self.timer();
        } else {
            let mut arrived = std::mem::take(&mut self.arrived);
            let device = &mut self.slots[slot as usize];
            device.advance(time, &mut arrived);
            self.calendar.set(slot, device.next_event());
            for completion in arrived.drain(..) {
                self.answer(slot as usize, &completion);
            }
            self.arrived = arrived;
        }
        self.purge_if_quiet();
        self.start_moves();
        self.plan_timers();
    }

    /// Whether anything is under way that is not the host's.
    fn is_moving(&self) -> bool {
        !self.moves.is_empty() || !self.ios.is_empty()
    }
}

impl Device for Tier {
    fn kind(&self) -> &'static str {
        "tier"
    }

    #[inline]
    fn capacity(&self) -> u64 {
        self.size
    }

    fn submit(&mut self, now: u64, command: Command) {
        self.now = now;
        self.counts.host.count(&command);
        let host = self.hosts.insert(Host { command, submitted: now, ..Host::default() });
        if self.purging || command.op == Op::Purge {
            self.behind.push_back(host);
            self.begin_purge();
        } else {
            self.begin(host);
        }
        self.plan_timers();
    }

    fn next_event(&self) -> u64 {
        if self.ready.is_empty() { self.calendar.first().0 } else { self.now }
    }

    fn advance(&mut self, limit: u64, done: &mut Vec<Completion>) -> u64 {
        loop {
            let (time, slot) = self.calendar.first();
            if !self.ready.is_empty() && time > self.now {
                done.append(&mut self.ready);
                return self.now;
            }
            if time > limit || time == NEVER {
                return limit;
            }
            self.happen(time, slot);
        }
    }

    fn settle(&mut self, now: u64) -> u64 {
        debug_assert_eq!(self.hosts.free.len(), self.hosts.all.len(), "something is in flight");
        self.now = self.now.max(now);
        self.settling = true;
        // Extents under way are brought to their places, no further ones begin.
        self.heat.postpone(self.now);
        self.plan_timers();
        while self.is_moving() {
            let (time, slot) = self.calendar.first();
            self.happen(time, slot);
        }
        let now = self.now;
        let mut end = now;
        for tier in self.live() {
            end = end.max(self.slots[tier].settle(now));
        }
        // Both have been quiet since the last one was.
        for tier in self.live() {
            self.slots[tier].settle(end);
        }
        self.settling = false;
        self.now = end;
        self.plan_devices();
        end
    }

    fn apply(&mut self, command: &Command) {
        self.apply_untimed(command);
        self.plan_devices();
    }

    fn content(&self, offset: u64) -> u64 {
        self.content_of(offset)
    }

    fn counters(&self, visit: &mut dyn FnMut(&'static str, u64)) {
        self.visit_counters(visit);
    }

    fn children(&self) -> Vec<(String, &dyn Device)> {
        vec![("fast".into(), &self.slots[FAST]), ("below".into(), &self.slots[BELOW])]
    }

    fn verify(&self) {
        for tier in self.live() {
            self.slots[tier].verify();
        }
        let vacating =
            self.ios.all.iter().filter(|io| io.active && io.kind == Kind::Vacate).count();
        let moving = self.moves.all.len() - self.moves.free.len();
        let ios = self.ios.all.len() - self.ios.free.len();
        self.map.verify(moving + vacating, ios);
    }
}
