//! Frames that a search has passed over as they are pinned.

use crate::persist::persistent;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Those that are pinned, those of them that are set aside out of a list, and in which order they are taken once they
/// are pinned no longer.
///
/// Dirty frames stay where they are until they are destaged, which may take for ever. So a search sets those that it
/// passes over aside, once each, numbered by their age; those that may be taken again wait in a heap.
pub struct Aside {
    /// By frame: a number above [`BITS`] bits, 0 where it is not set aside. Empty until a frame is pinned for the first
    /// time.
    marks: Vec<u64>,
    frames: u32,
    /// By list: ranks, numbers and frames that are no longer pinned; also some that have changed since.
    back: Vec<BinaryHeap<Reverse<(Rank, u32)>>>,
}

persistent!(Aside { state { marks } parts { back } built { frames } });

/// What goes before the number, and the number.
type Rank = (u32, u64);

/// It may not be taken for long.
const PINNED: u64 = 1;
/// It is in the heap.
const WAITS: u64 = 2;
/// Beside them the list out of which it was set aside.
const LIST: u32 = 2;
/// Most lists.
const LISTS: u32 = 64;
const BITS: u32 = LIST + LISTS.ilog2();
/// A number from which there are as many up as down.
pub const MIDDLE: u64 = 1 << (63 - BITS);

impl Aside {
    /// Of so many frames in so many lists, 64 at most.
    pub fn new(frames: u32, lists: u32) -> Self {
        assert!(lists <= LISTS);
        let back = (0..lists).map(|_| BinaryHeap::new()).collect();
        Aside { marks: Vec::new(), frames, back }
    }

    #[inline]
    fn mark(&self, slot: u32) -> u64 {
        self.marks.get(slot as usize).copied().unwrap_or(0)
    }

    /// How many lists there are.
    #[inline]
    pub fn lists(&self) -> u32 {
        self.back.len() as u32
    }

    #[inline]
    pub fn has(&self, slot: u32) -> bool {
        self.mark(slot) >> BITS != 0
    }

    #[inline]
    pub fn is_pinned(&self, slot: u32) -> bool {
        self.mark(slot) & PINNED != 0
    }

    /// A frame is back in a list.
    #[inline]
    pub fn take_back(&mut self, slot: u32) {
        if let Some(mark) = self.marks.get_mut(slot as usize) {
            *mark &= PINNED;
        }
    }

    /// A frame is in no list.
    #[inline]
    pub fn forget(&mut self, slot: u32) {
        if let Some(mark) = self.marks.get_mut(slot as usize) {
            *mark = 0;
        }
    }

    /// Sets a frame aside under a number that no other one has, and a rank, if it is not pinned.
    pub fn set(&mut self, list: u32, slot: u32, rank: u32, number: u64) {
        let pinned = self.mark(slot) & PINNED;
        self.marks[slot as usize] = number << BITS | u64::from(list) << LIST | pinned;
        self.wait(slot, rank);
    }

    /// From now on a frame may not be taken, or may again; of one that is set aside, under its rank.
    pub fn pin(&mut self, slot: u32, pinned: bool, rank: u32) {
        if self.marks.is_empty() {
            self.marks.resize(self.frames as usize, 0);
        }
        let mark = &mut self.marks[slot as usize];
        *mark = *mark & !PINNED | u64::from(pinned);
        self.wait(slot, rank);
    }

    fn wait(&mut self, slot: u32, rank: u32) {
        let mark = &mut self.marks[slot as usize];
        if *mark >> BITS != 0 && *mark & (PINNED | WAITS) == 0 {
            *mark |= WAITS;
            let list = *mark >> LIST & u64::from(LISTS - 1);
            self.back[list as usize].push(Reverse(((rank, *mark >> BITS), slot)));
        }
    }

    /// Of those set aside out of a list, the first that is not pinned and of which `may` holds, and its rank. What `may`
    /// refuses is expected to be little.
    #[inline]
    pub fn first(&mut self, list: u32, may: &mut impl FnMut(u32) -> bool) -> Option<(u32, u32)> {
        let back = &mut self.back[list as usize];
        let (mut found, mut refused) = (None, Vec::new());
        while let Some(&Reverse(((rank, number), slot))) = back.peek() {
            let mark = self.marks[slot as usize];
            if mark >> BITS != number {
                back.pop();
            } else if mark & PINNED != 0 {
                self.marks[slot as usize] &= !WAITS;
                back.pop();
            } else if may(slot) {
                found = Some((rank, slot));
                break;
            } else {
                refused.extend(back.pop());
            }
        }
        back.extend(refused);
        found
    }

    /// Bytes of memory that it takes.
    pub fn bytes(&self) -> usize {
        let waiting: usize = self.back.iter().map(|back| back.capacity()).sum();
        self.marks.capacity() * size_of::<u64>() + waiting * size_of::<(Rank, u32)>()
    }
}
