//! An event queue for components that each have at most one event pending.
//!
//! A die, a channel, a controller core does one thing at a time, so a drive needs no heap of event
//! objects: one slot per component and a tournament over the slots. Setting a slot costs log2(n)
//! comparisons along one path without data-dependent branches; the earliest event stands at the
//! root. Equal times go to the lower slot, so the order never depends on history.

use crate::persist::persistent;
use crate::units::NEVER;

/// Slots with one pending instant each; the earliest is found in constant time.
#[derive(Clone, Debug)]
pub struct Calendar {
    /// A complete binary tree: node 1 is the root, leaves start at `leaves`.
    nodes: Vec<Node>,
    leaves: usize,
}

#[derive(Clone, Copy, Debug)]
struct Node {
    time: u64,
    slot: u32,
}

impl Calendar {
    /// A calendar of `slots` empty slots.
    pub fn new(slots: usize) -> Self {
        let leaves = slots.next_power_of_two().max(2);
        let nodes = (0..2 * leaves)
            .map(|i| Node { time: NEVER, slot: i.saturating_sub(leaves) as u32 })
            .collect();
        Calendar { nodes, leaves }
    }

    /// Plans the event of `slot` at `time`, in place of what was planned; [`NEVER`] clears it.
    #[inline]
    pub fn set(&mut self, slot: u32, time: u64) {
        let (pairs, _) = self.nodes.as_chunks_mut::<2>();
        let mut i = self.leaves + slot as usize;
        let mut winner = Node { time, slot };
        while i > 1 {
            let pair = &mut pairs[i >> 1];
            pair[i & 1] = winner;
            // Of equal times the left one wins.
            winner = if pair[1].time < pair[0].time { pair[1] } else { pair[0] };
            i >>= 1;
        }
        pairs[0][1] = winner;
    }

    /// The earliest planned instant ([`NEVER`] if none) and its slot.
    #[inline]
    pub fn first(&self) -> (u64, u32) {
        let root = self.nodes[1];
        (root.time, root.slot)
    }

    /// Slots, those included that only fill the tree up.
    pub fn slots(&self) -> usize {
        self.leaves
    }

    /// When the event of `slot` is planned.
    #[inline]
    pub fn at(&self, slot: u32) -> u64 {
        self.nodes[self.leaves + slot as usize].time
    }
}

persistent!(Calendar { parts { nodes } built { leaves } });
persistent!(Node { state { time, slot } });

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Stream;

    #[test]
    fn the_earliest_slot_wins_and_ties_go_to_the_lower() {
        let mut calendar = Calendar::new(5);
        assert_eq!(calendar.first().0, NEVER);
        calendar.set(3, 10);
        calendar.set(1, 10);
        calendar.set(4, 9);
        assert_eq!(calendar.first(), (9, 4));
        calendar.set(4, NEVER);
        assert_eq!(calendar.first(), (10, 1));
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
            assert_eq!(calendar.first().0, plain[best]);
            if plain[best] != NEVER {
                assert_eq!(calendar.first().1 as usize, best);
            }
        }
    }
}
