//! Which extent lies where.
//!
//! Space is numbered in slots of one extent, those of the fast tier first. A slot has an extent, is free, is
//! being moved into, or has been left and waits for the commands that are still at work there.

use super::keys::Placement;
use super::{BELOW, FAST};
use crate::persist::persistent;

/// In a place: the extent is being moved. Among users: the slot has been left.
const MARK: u32 = 1 << 31;

/// See the module.
pub struct Map {
    /// Slot of each extent, and whether it is being moved.
    place: Vec<u32>,
    /// Commands of the host in flight at each slot, and whether it has been left.
    users: Vec<u32>,
    /// Free slots of both tiers.
    pub free: [Vec<u32>; 2],
    /// Extents on both tiers.
    pub extents: [u32; 2],
    /// Slots of the fast tier.
    pub fast: u32,
    /// Those of them that are not free at first.
    pub filled: u32,
    placement: Placement,
}
persistent!(Map {
    state { free, extents }
    parts { place, users }
    built { fast, filled, placement }
});

impl Map {
    pub fn new(fast: u32, below: u32, reserve: u32, placement: Placement) -> Self {
        let filled = fast - reserve;
        let mut map = Map {
            place: vec![0; (filled + below) as usize],
            users: vec![0; (fast + below) as usize],
            free: [Vec::with_capacity(reserve as usize), Vec::new()],
            extents: [0; 2],
            fast,
            filled,
            placement,
        };
        map.reset();
        map
    }

    /// Back to how it was when new.
    pub fn reset(&mut self) {
        let (count, filled) = (self.place.len() as u64, u64::from(self.filled));
        let mut next = [0, self.fast];
        for extent in 0..count {
            let fast = match self.placement {
                Placement::FastFirst => extent < filled,
                Placement::BelowFirst => extent >= count - filled,
                Placement::Spread => (extent + 1) * filled / count > extent * filled / count,
            };
            let next = &mut next[usize::from(!fast)];
            self.place[extent as usize] = *next;
            *next += 1;
        }
        self.users.fill(0);
        self.free = [(self.filled..self.fast).rev().collect(), Vec::new()];
        self.extents = [self.filled, (count - filled) as u32];
    }

    /// Extents that the host sees.
    pub fn len(&self) -> u32 {
        self.place.len() as u32
    }

    #[inline]
    pub fn slot(&self, extent: u32) -> u32 {
        self.place[extent as usize] & !MARK
    }

    #[inline]
    pub fn moves(&self, extent: u32) -> bool {
        self.place[extent as usize] & MARK != 0
    }

    #[inline]
    pub fn tier_of(&self, slot: u32) -> usize {
        if slot < self.fast { FAST } else { BELOW }
    }

    /// An extent begins to be moved, or it is not after all.
    pub fn mark(&mut self, extent: u32, moves: bool) {
        let place = &mut self.place[extent as usize];
        *place = *place & !MARK | if moves { MARK } else { 0 };
    }

    /// An extent has been moved.
    pub fn switch(&mut self, extent: u32, to: u32) {
        let from = self.slot(extent);
        self.extents[self.tier_of(from)] -= 1;
        self.extents[self.tier_of(to)] += 1;
        self.place[extent as usize] = to;
    }

    /// A command of the host goes to a slot.
    #[inline]
    pub fn enter(&mut self, slot: u32) {
        self.users[slot as usize] += 1;
    }

    /// It has come back. Answers whether the slot had been left and nobody uses it any more.
    #[inline]
    pub fn leave(&mut self, slot: u32) -> bool {
        let users = &mut self.users[slot as usize];
        *users -= 1;
        let last = *users == MARK;
        *users = if last { 0 } else { *users };
        last
    }

    /// No extent lies in a slot any more. Answers whether nobody uses it.
    pub fn abandon(&mut self, slot: u32) -> bool {
        let users = &mut self.users[slot as usize];
        let unused = *users == 0;
        *users |= if unused { 0 } else { MARK };
        unused
    }

    /// Slots that have been left and are still used.
    fn left(&self) -> usize {
        self.users.iter().filter(|&&users| users & MARK != 0).count()
    }

    /// Nothing is in flight: a slot without an extent is free.
    pub fn settle(&mut self) {
        self.users.fill(0);
        let mut used = vec![false; self.users.len()];
        (0..self.len()).for_each(|extent| used[self.slot(extent) as usize] = true);
        self.free.iter_mut().for_each(Vec::clear);
        for slot in (0..self.users.len() as u32).rev().filter(|&slot| !used[slot as usize]) {
            self.free[self.tier_of(slot)].push(slot);
        }
    }

    /// Asserts that every slot has one use, `others` of them neither that of an extent nor none.
    pub fn verify(&self, others: usize, commands: usize) {
        let mut used = vec![false; self.users.len()];
        let mut on = [0, 0];
        for extent in 0..self.len() {
            on[self.tier_of(self.slot(extent))] += 1;
        }
        assert_eq!(on, self.extents, "extents on the tiers");
        let placed = (0..self.len()).map(|extent| self.slot(extent));
        for slot in placed.chain(self.free.iter().flatten().copied()) {
            assert!(!std::mem::replace(&mut used[slot as usize], true), "slot {slot} twice");
        }
        let rest = used.iter().filter(|used| !**used).count();
        assert_eq!(rest, others + self.left(), "slots that nobody knows of");
        let users: u32 = self.users.iter().map(|users| users & !MARK).sum();
        assert!(commands > 0 || users == 0, "{users} commands that are not in flight");
    }
}
