//! What happens by the clock: periods, the rate of moves, and a tier that fails.

use super::{Io, Kind, TIMERS, Tier};
use crate::array::ERROR_TIME;
use crate::device::{Device, Op};
use crate::stats::{Part, Parts};
use crate::units::NEVER;

impl Tier {
    /// The tiers that are there.
    pub(super) fn live(&self) -> impl Iterator<Item = usize> + use<> {
        let dead = self.slots.each_ref().map(|slot| slot.dead);
        (0..2).filter(move |&tier| !dead[tier])
    }

    /// The calendar after devices changed without time.
    pub(super) fn plan_devices(&mut self) {
        for tier in self.live() {
            self.calendar.set(tier as u32, self.slots[tier].next_event());
        }
        self.plan_timers();
    }

    fn fails_at(&self, tier: usize) -> u64 {
        let at = [self.keys.fast_fails_at, self.keys.below_fails_at][tier];
        if self.slots[tier].dead { NEVER } else { at.map_or(NEVER, |at| at.0) }
    }

    /// When the heat is looked at.
    fn looks_at(&self) -> u64 {
        let never = self.keys.moves == 0 || self.settling || self.purging;
        if never || self.slots.iter().any(|slot| slot.dead) { NEVER } else { self.heat.due() }
    }

    /// When something happens by the clock.
    #[inline]
    pub(super) fn plan_timers(&mut self) {
        let paced = if self.paced.is_empty() { NEVER } else { self.next_piece };
        let error = self.errors.front().map_or(NEVER, |&(time, _)| time);
        let fails = self.fails_at(0).min(self.fails_at(1));
        let due = paced.min(error).min(fails).min(self.looks_at());
        self.calendar.set(TIMERS, due.max(self.now));
    }

    /// Something is due.
    pub(super) fn timer(&mut self) {
        for tier in 0..2 {
            if self.fails_at(tier) <= self.now {
                self.fail(tier);
            }
        }
        while let Some(&(time, host)) = self.errors.front()
            && time <= self.now
        {
            self.errors.pop_front();
            let mut parts = Parts::default();
            parts[Part::Controller] = ERROR_TIME;
            self.part_done(host, &parts);
        }
        if self.looks_at() <= self.now {
            self.look();
        }
        self.next_paced();
    }

    /// A command touches what is lost: it ends in an error.
    pub(super) fn fail_command(&mut self, host: u32) {
        let active = &mut self.hosts.all[host as usize];
        active.remaining += 1;
        if !active.failed {
            active.failed = true;
            self.counts.error(active.command.op);
        }
        self.errors.push_back((self.now + ERROR_TIME, host));
    }

    /// A tier fails, with what it was doing.
    fn fail(&mut self, tier: usize) {
        self.calendar.set(tier as u32, NEVER);
        self.slots[tier].died(self.now);
        self.counts.lost_bytes += u64::from(self.map.extents[tier]) << self.shift;
        self.heat.forget();
        let gone: Vec<Io> =
            self.ios.all.iter().filter(|io| io.active && io.tier == tier).copied().collect();
        for index in 0..self.ios.all.len() {
            let io = &mut self.ios.all[index];
            if io.active && io.tier == tier {
                io.active = false;
                self.ios.free.push(index as u32);
            }
        }
        for io in gone {
            match io.kind {
                Kind::Copy | Kind::Entry => self.moves.all[io.owner as usize].waits = false,
                Kind::Vacate => self.map.free[tier].push(io.owner),
                Kind::Host | Kind::Mirror => {
                    self.leave(&io);
                    let whole = matches!(io.op, Op::Flush | Op::Purge);
                    // What a move has copied lies where it comes from, too.
                    if io.kind == Kind::Host && !whole {
                        self.fail_command(io.owner);
                    }
                    self.part_done(io.owner, &Parts::default());
                }
            }
        }
        self.cancel_moves();
    }
}
