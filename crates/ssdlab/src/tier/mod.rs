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
mod counters;
mod fail;
mod heat;
mod host;
mod keys;
mod map;
mod moves;
mod power;
mod untimed;

pub use build::memory;
pub use keys::{HeatOf, MapIn, Placement, TierKeys};

use crate::contract::{Command, Completion, Missed, Op};
use crate::fleet::{Composite, Exposed, Fleet, HostId, Io, fleet_of};
use crate::persist::{persistent, persistent_cases};
use crate::sim::{Id, Slab};
use crate::stats::{Part, Parts};
use counters::Counts;
use heat::Heat;
use host::Held;
use map::Map;
use moves::Move;
use std::collections::VecDeque;

/// The tiers: members of the fleet.
const FAST: usize = 0;
const BELOW: usize = 1;

/// What a command of a device is for.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Purpose {
    /// A command of the host, from this byte of the host's on.
    Host(HostId, u64),
    /// The same write once more, where a move of its extent goes.
    Mirror(HostId, u64),
    /// A piece of a move.
    Copy(Id<Move>),
    /// The entry of a move's extent.
    Entry(Id<Move>),
    /// TRIM of a slot that has been left.
    Vacate(u32),
    /// A flush of the host, and its number.
    Flush(HostId, u64),
    /// The map when the tiers start, of which this byte is next.
    Map(u64),
}
persistent_cases!(Purpose {
    Host(host, at),
    Mirror(host, at),
    Copy(id),
    Entry(id),
    Vacate(slot),
    Flush(host, number),
    Map(next),
});

/// Two tiers.
pub struct Tier {
    keys: TierKeys,
    /// The fast device and that below.
    fleet: Fleet<(), Purpose>,
    /// log2 of the bytes of an extent.
    shift: u32,
    /// Where the slots begin on each device.
    data: [u64; 2],
    map: Map,
    heat: Heat,
    moves: Slab<Move>,
    /// Writes that wait for a piece.
    held: VecDeque<Held>,
    /// Moves that wait for their turn by the rate, and when that is.
    paced: VecDeque<Id<Move>>,
    next_piece: u64,
    /// Moves that wait for writes of before.
    blocked: u32,
    /// What was moved since a tier with a volatile write cache was flushed.
    exposed: Exposed,
    counts: Counts,
}
persistent!(Tier {
    state { fleet, map, heat, moves, held, paced, next_piece, blocked, exposed, counts }
    built { keys, shift, data }
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

    /// Whether a tier has failed.
    #[inline]
    fn is_dead(&self, tier: usize) -> bool {
        self.fleet.members[tier].dead
    }

    /// A part of a command is done.
    fn part_done(&mut self, host: HostId, parts: &Parts) {
        if self.fleet.release(host) {
            self.complete(host, parts);
        }
    }

    /// A command is done, its last part in so much time.
    fn complete(&mut self, host: HostId, parts: &Parts) {
        let op = self.fleet.hosts[host].command.op;
        self.fleet.complete(host, parts, [], Part::MoveWait);
        if op == Op::Purge {
            self.map.reset();
            self.purged();
        }
    }
}

impl Composite for Tier {
    fleet_of!((), Purpose);
    const KIND: &'static str = "tier";
    const PLACES: &'static [&'static str] = &["fast", "below"];
    const PURGES_ALONE: bool = true;
    const PASSES: bool = true;

    #[inline]
    fn way_through(&mut self, command: &Command) -> Option<(usize, Command)> {
        self.only_tier(command)
    }

    fn begin(&mut self, host: HostId) {
        self.begin_command(host);
    }

    fn answered(&mut self, io: Io<Purpose>, completion: &Completion) {
        match io.purpose {
            Purpose::Host(host, at) | Purpose::Mirror(host, at) => {
                self.fleet.add_digest(host, &io, at);
                self.leave(&io);
                self.part_done(host, &completion.parts);
                if self.blocked > 0 && io.op != Op::Read {
                    self.unblock();
                }
            }
            Purpose::Copy(id) | Purpose::Entry(id) => self.move_answered(id),
            Purpose::Vacate(slot) => self.map.free[io.member].push(slot),
            Purpose::Flush(host, number) => {
                if self.fleet.hosts[host].remaining == 1 {
                    self.exposed.end(number);
                }
                self.part_done(host, &completion.parts);
            }
            Purpose::Map(next) => self.read_map(next),
        }
    }

    fn timer(&mut self, _which: u32) {
        self.something_is_due();
    }

    fn after_submit(&mut self) {
        self.plan_timer();
    }

    fn after_event(&mut self) {
        self.purge_if_quiet();
        self.start_moves();
        self.plan_timer();
    }

    fn after_untimed(&mut self) {
        self.plan_timer();
    }

    fn purge_comes(&mut self) {
        self.heat.forget();
        self.cancel_moves();
    }

    fn begin_settling(&mut self) {
        // Extents under way are brought to their places, no further ones begin.
        self.heat.postpone(self.fleet.now);
        self.plan_timer();
    }

    fn is_working(&self) -> bool {
        !self.moves.is_empty() || !self.fleet.ios.is_empty()
    }

    fn lose_power(&mut self, now: u64, missed: &mut Missed) -> u64 {
        missed.cannot_tell();
        self.cut_power(now)
    }

    fn start_up(&mut self) {
        self.read_map(0);
    }

    fn apply_untimed(&mut self, command: &Command) {
        self.apply_command(command);
    }

    fn content_of(&self, at: u64) -> u64 {
        self.content_at(at)
    }

    fn visit_counters(&self, visit: &mut dyn FnMut(&'static str, u64)) {
        self.show_counters(visit);
    }

    fn verify_own(&self) {
        let vacates = |io: &&Io<Purpose>| matches!(io.purpose, Purpose::Vacate(_));
        let vacating = self.fleet.ios.iter().filter(vacates).count();
        self.map.verify(self.moves.len() + vacating, self.fleet.ios.len());
    }
}
