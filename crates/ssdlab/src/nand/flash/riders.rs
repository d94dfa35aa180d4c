//! Reads of a page that waits to be sensed: they ride along with the first of them.
//!
//! The first read of a page that waits, or is being sensed, is found by the page. Those that come until it has been
//! sensed are linked to it, and their transfers follow its own. Cost: constant, as long as not many more pages are waited
//! for than there are lists.

use super::{Aside, Flash, NONE};

/// Lists of pages, by the bits of their number.
const LISTS: u32 = 1024;

/// The reads that others can ride along with, in lists by page.
pub(super) struct Riders {
    /// The first of each list; no lists where nothing rides along.
    pub leaders: Vec<u32>,
}

impl Riders {
    /// Nobody waits; whether anybody ever will.
    pub fn new(any: bool) -> Self {
        Riders { leaders: vec![NONE; if any { LISTS as usize } else { 0 }] }
    }

    fn list(&mut self, group: u32) -> &mut u32 {
        let list = group.wrapping_mul(0x9e37_79b1) >> (32 - LISTS.ilog2());
        &mut self.leaders[list as usize]
    }

    /// After a loss of power.
    pub fn clear(&mut self) {
        self.leaders.fill(NONE);
    }
}

impl Flash {
    /// Lets the read `index` ride along with one of the same page that has not been sensed; `false`: there is none, and
    /// others may ride along with this one.
    pub(super) fn rides_along(&mut self, index: u32) -> bool {
        let group = self.asides[index as usize].group;
        if !self.registers.keep || group == NONE {
            return false;
        }
        let list = self.riders.list(group);
        let mut leader = *list;
        while leader != NONE && self.asides[leader as usize].group != group {
            leader = self.asides[leader as usize].chain;
        }
        if leader == NONE {
            self.asides[index as usize].chain = *list;
            *list = index;
            return false;
        }
        let last = self.asides[leader as usize].riders;
        let first = if last == NONE { index } else { self.ops[last as usize].next };
        if last != NONE {
            self.ops[last as usize].next = index;
        }
        self.ops[index as usize].next = first;
        self.asides[leader as usize].riders = index;
        true
    }

    /// The page of the read `index` has been sensed, so that nothing can ride along any more.
    pub(super) fn sensed(&mut self, index: u32) {
        let Aside { group, chain, .. } = self.asides[index as usize];
        if !self.registers.keep || group == NONE {
            return;
        }
        let list = self.riders.list(group);
        if *list == index {
            *list = chain;
            return;
        }
        let mut before = *list;
        while self.asides[before as usize].chain != index {
            before = self.asides[before as usize].chain;
        }
        self.asides[before as usize].chain = chain;
    }

    /// Sends what rode along with `index`, which has begun at `start`, from the registers of plane `plane`; answers
    /// when the last transfer is over, `end` without any.
    pub(super) fn send_riders(&mut self, d: u32, index: u32, now: u64, mut end: u64) -> u64 {
        let leader = self.ops[index as usize];
        let Aside { riders, plane, .. } = self.asides[index as usize];
        if riders == NONE {
            return end;
        }
        let plane = self.planes_of(d).start + plane as usize;
        let own = self.dies[d as usize].own.plus(self.planes[plane].own);
        let mut next = self.ops[riders as usize].next;
        loop {
            let rider = next;
            let op = &mut self.ops[rider as usize];
            next = op.next;
            op.next = NONE;
            // Who came while the page was sensed has not waited for anything else.
            let waited = leader.start > op.ready;
            let at_ready = &mut self.own_at_ready[rider as usize];
            *at_ready = if waited { own.since(*at_ready) } else { Default::default() };
            op.start = leader.start.max(op.ready);
            self.counters.register_hits += 1;
            end = self.send(d, rider, now);
            if rider == riders {
                return end;
            }
        }
    }
}
