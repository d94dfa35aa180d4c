//! An event queue for components that each have at most one event pending.
//!
//! A die, a channel, a controller core does one thing at a time, so a drive needs no heap of event
//! objects: one slot per component and a tournament of four over the slots. Setting a slot costs
//! log4(n) rounds along one path without data-dependent branches; whose the earliest instant is is
//! found on the way down. Equal times go to the lower slot, so the order never depends on history.

use crate::persist::persistent;
use crate::units::NEVER;

/// Slots with one pending instant each; the earliest is found in constant time.
#[derive(Clone, Debug)]
pub struct Calendar {
    /// The earliest of all.
    earliest: u64,
    /// A complete tree: in each place the earliest instant of a group below; that of place `i` is `i + 1`.
    groups: Vec<[u64; 4]>,
    /// Place of slot 0, in the last groups.
    leaves: usize,
}

impl Calendar {
    /// A calendar of `slots` empty slots.
    pub fn new(slots: usize) -> Self {
        let (mut above, mut last) = (0, 1);
        while 4 * last < slots {
            above += last;
            last *= 4;
        }
        Calendar { earliest: NEVER, groups: vec![[NEVER; 4]; above + last], leaves: 4 * above }
    }

    /// Plans the event of `slot` at `time`, in place of what was planned; [`NEVER`] clears it.
    #[inline]
    pub fn set(&mut self, slot: u32, time: u64) {
        let (mut at, mut earliest) = (self.leaves + slot as usize, time);
        loop {
            let group = &mut self.groups[at >> 2];
            group[at & 3] = earliest;
            let [a, b, c, d] = *group;
            earliest = a.min(b).min(c.min(d));
            if at < 4 {
                break;
            }
            at = (at >> 2) - 1;
        }
        self.earliest = earliest;
    }

    /// The earliest planned instant; [`NEVER`] if none.
    #[inline]
    pub fn earliest(&self) -> u64 {
        self.earliest
    }

    /// The slot whose instant that is: the lowest of those.
    #[inline]
    pub fn first(&self) -> u32 {
        let mut group = 0;
        loop {
            let [a, b, c, d] = self.groups[group];
            let (left, right) = (a.min(b), c.min(d));
            let within = if right < left { 2 + usize::from(d < c) } else { usize::from(b < a) };
            let at = 4 * group + within;
            if at >= self.leaves {
                return (at - self.leaves) as u32;
            }
            group = at + 1;
        }
    }

    /// Slots, those included that only fill the tree up.
    pub fn slots(&self) -> usize {
        4 * self.groups.len() - self.leaves
    }

    /// When the event of `slot` is planned.
    #[inline]
    pub fn at(&self, slot: u32) -> u64 {
        let at = self.leaves + slot as usize;
        self.groups[at >> 2][at & 3]
    }
}

persistent!(Calendar { state { earliest } parts { groups } built { leaves } });

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Stream;

    #[test]
    fn the_earliest_slot_wins_and_ties_go_to_the_lower() {
        let mut calendar = Calendar::new(5);
        assert_eq!(calendar.earliest(), NEVER);
        calendar.set(3, 10);
        calendar.set(1, 10);
        calendar.set(4, 9);
        assert_eq!((calendar.earliest(), calendar.first()), (9, 4));
        calendar.set(4, NEVER);
        assert_eq!((calendar.earliest(), calendar.first()), (10, 1));
    }

    #[test]
    fn agrees_with_a_linear_search_under_random_updates() {
        let mut rng = Stream::new(1, "calendar");
        let mut calendar = Calendar::new(37);
        let mut plain = [NEVER; 37];
        for _ in 0..20_000 {
            let slot = rng.below(37) as usize;
            let time = if rng.below(4) == 0 { NEVER } else { rng.below(1000) };
            plain[slot] = time;
            calendar.set(slot as u32, time);
            let best = (0..37).min_by_key(|&i| (plain[i], i)).unwrap();
            assert_eq!(calendar.earliest(), plain[best]);
            if plain[best] != NEVER {
                assert_eq!(calendar.first() as usize, best);
            }
        }
    }
}
