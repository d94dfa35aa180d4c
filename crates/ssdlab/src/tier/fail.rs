//! What happens by the clock: periods, the rate of moves, and a tier that fails.

use super::{Purpose, Tier};
use crate::contract::Op;
use crate::fleet::ERROR_TIME;
use crate::stats::{Part, Parts};
use crate::units::NEVER;

impl Tier {
    fn fails_at(&self, tier: usize) -> u64 {
        let at = [self.keys.fast_fails_at, self.keys.below_fails_at][tier];
        if self.is_dead(tier) { NEVER } else { at.map_or(NEVER, |at| at.0) }
    }

    /// When the heat is looked at.
    fn looks_at(&self) -> u64 {
        let fleet = &self.fleet;
        let stopped = fleet.settling || fleet.purging || fleet.power.is_off();
        let never = self.keys.moves == 0 || stopped;
        if never || (0..2).any(|tier| self.is_dead(tier)) { NEVER } else { self.heat.due() }
    }

    /// When something happens by the clock.
    #[inline]
    pub(super) fn plan_timer(&mut self) {
        let paced = if self.paced.is_empty() { NEVER } else { self.next_piece };
        let fails = self.fails_at(0).min(self.fails_at(1));
        let due = paced.min(self.fleet.next_error()).min(fails).min(self.looks_at());
        self.fleet.set_timer(0, due.max(self.fleet.now));
    }

    /// Something is due.
    pub(super) fn something_is_due(&mut self) {
        for tier in 0..2 {
            if self.fails_at(tier) <= self.fleet.now {
                self.fail(tier);
            }
        }
        while let Some(host) = self.fleet.take_error() {
            self.part_done(host, &Parts::only(Part::Controller, ERROR_TIME));
        }
        if self.looks_at() <= self.fleet.now {
            self.look();
        }
        self.next_paced();
    }

    /// A tier fails, with what it was doing.
    fn fail(&mut self, tier: usize) {
        self.fleet.fail(tier);
        self.counts.lost_bytes += u64::from(self.map.extents[tier]) << self.shift;
        self.heat.forget();
        for io in self.fleet.take_all_lost(tier) {
            match io.purpose {
                Purpose::Copy(id) | Purpose::Entry(id) => self.moves[id].waits = false,
                Purpose::Vacate(slot) => self.map.free[tier].push(slot),
                Purpose::Flush(host, _) => self.part_done(host, &Parts::default()),
                Purpose::Map(_) => self.read_map(0),
                Purpose::Host(host, _) | Purpose::Mirror(host, _) => {
                    self.leave(&io);
                    let everywhere = matches!(io.op, Op::Flush | Op::Purge);
                    // What a move has copied lies where it comes from, too.
                    if matches!(io.purpose, Purpose::Host(..)) && !everywhere {
                        self.fleet.fail_host(host);
                    }
                    self.part_done(host, &Parts::default());
                }
            }
        }
        self.cancel_moves();
    }
}
