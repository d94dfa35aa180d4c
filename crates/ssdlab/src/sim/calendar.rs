//! An event queue for components that each have at most one event pending.
//!
//! A die, a channel, a controller core does one thing at a time, so a drive needs no heap of event
//! objects: one slot per component and a tournament of four over the slots. Setting a slot costs
//! log4(n) rounds along one path without data-dependent branches, and leaves whose the earliest
//! instant is. Equal times go to the lower slot, so the order never depends on history.

use crate::error::Result;
use crate::persist::{Archive, Part as _, Persist};
use crate::units::NEVER;

/// An instant, and the slot whose it is.
#[derive(Clone, Copy, Debug)]
struct Event {
    time: u64,
    slot: u32,
}

impl Event {
    /// The earlier one: this, where both are at the same instant. Does not branch.
    #[inline(always)]
    fn or(self, other: Event) -> Event {
        let other_first = other.time < self.time;
        Event {
            time: if other_first { other.time } else { self.time },
            slot: if other_first { other.slot } else { self.slot },
        }
    }
}

/// Slots with one pending instant each; the earliest is found in constant time.
#[derive(Clone, Debug)]
pub struct Calendar {
    /// The earliest of all.
    earliest: Event,
    /// A complete tree: in each place the earliest of a group below; that of place `i` is `i + 1`.
    groups: Vec<[Event; 4]>,
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
        let never = Event { time: NEVER, slot: 0 };
        Calendar { earliest: never, groups: vec![[never; 4]; above + last], leaves: 4 * above }
    }

    /// Plans the event of `slot` at `time`, in place of what was planned; [`NEVER`] clears it.
    #[inline]
    pub fn set(&mut self, slot: u32, time: u64) {
        let (mut at, mut earliest) = (self.leaves + slot as usize, Event { time, slot });
        loop {
            let group = &mut self.groups[at >> 2];
            group[at & 3] = earliest;
            let [a, b, c, d] = *group;
            earliest = a.or(b).or(c.or(d));
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
        self.earliest.time
    }

    /// The slot whose instant that is: the lowest of those.
    #[inline]
    pub fn first(&self) -> u32 {
        self.earliest.slot
    }

    /// Slots, those included that only fill the tree up.
    pub fn slots(&self) -> usize {
        4 * self.groups.len() - self.leaves
    }

    /// When the event of `slot` is planned.
    #[inline]
    pub fn at(&self, slot: u32) -> u64 {
        let at = self.leaves + slot as usize;
        self.groups[at >> 2][at & 3].time
    }
}

impl Persist for Calendar {
    fn persist(&mut self, archive: &mut Archive<'_>) -> Result<()> {
        let mut times: Vec<u64> = (0..self.slots() as u32).map(|slot| self.at(slot)).collect();
        times.persist_part(archive)?;
        (0..).zip(times).for_each(|(slot, time)| self.set(slot, time));
        Ok(())
    }
}

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
