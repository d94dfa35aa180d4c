//! Frames from the oldest to the newest, of which those that stay pinned for long cost a search nothing.

use super::links::Links;
use crate::error::Result;
use crate::persist::{Archive, Persist};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Lists of frames, and of ghosts, whose oldest frame that may be taken is found in constant time, amortised.
///
/// Dirty frames stay where they are until they are destaged, which may take for ever. So a search sets those that it
/// passes over aside, once each, numbered by their age. What is set aside and no longer pinned waits in a heap, before
/// all that is still in the list.
pub struct Queue {
    links: Links,
    frames: u32,
    /// By frame: a number above [`BITS`] bits, 0 in a list. Empty until a frame is pinned for the first time.
    marks: Vec<u64>,
    /// The last number given.
    last: u64,
    /// By list: numbers and frames that are set aside and no longer pinned; also some that have changed since.
    back: Vec<BinaryHeap<Reverse<(u64, u32)>>>,
}

/// It may not be taken for long.
const PINNED: u64 = 1;
/// It is in the heap.
const WAITS: u64 = 2;
/// Beside them the list out of which it was set aside, of four.
const LIST: u32 = 2;
const BITS: u32 = 4;

impl Queue {
    /// So many empty lists, four at most, for frames and ghosts, whose entries follow those of the frames.
    pub fn new(frames: u32, ghosts: u32, lists: u32) -> Self {
        let back = (0..lists).map(|_| BinaryHeap::new()).collect();
        Queue {
            links: Links::new(frames + ghosts, lists),
            frames,
            marks: Vec::new(),
            last: 0,
            back,
        }
    }

    #[inline]
    fn mark(&self, slot: u32) -> u64 {
        self.marks.get(slot as usize).copied().unwrap_or(0)
    }

    /// Puts an entry that is in no list to the newest end of one.
    #[inline]
    pub fn push(&mut self, list: u32, slot: u32) {
        self.links.push(list, slot);
    }

    /// Makes a frame the newest of a list.
    #[inline]
    pub fn renew(&mut self, list: u32, slot: u32) {
        let mark = self.mark(slot);
        if mark >> BITS == 0 {
            self.links.renew(list, slot);
        } else {
            self.marks[slot as usize] = mark & PINNED;
            self.links.push(list, slot);
        }
    }

    /// Takes an entry out.
    #[inline]
    pub fn remove(&mut self, slot: u32) {
        if self.mark(slot) >> BITS == 0 {
            self.links.unlink(slot);
        }
        if let Some(mark) = self.marks.get_mut(slot as usize) {
            *mark = 0;
        }
    }

    /// From now on a frame may not be taken, or may again.
    pub fn pin(&mut self, slot: u32, pinned: bool) {
        if self.marks.is_empty() {
            self.marks.resize(self.frames as usize, 0);
        }
        let mark = &mut self.marks[slot as usize];
        *mark = *mark & !PINNED | u64::from(pinned);
        if !pinned && *mark >> BITS != 0 && *mark & WAITS == 0 {
            *mark |= WAITS;
            let list = *mark >> LIST & 3;
            self.back[list as usize].push(Reverse((*mark >> BITS, slot)));
        }
    }

    /// Takes the oldest entry of a list that is not pinned and of which `may` holds out. What `may` refuses is
    /// expected to be little.
    #[inline]
    pub fn take_oldest(&mut self, list: u32, mut may: impl FnMut(u32) -> bool) -> Option<u32> {
        let slot = match self.oldest_aside(list, &mut may) {
            Some(slot) => slot,
            None => self.oldest_listed(list, &mut may)?,
        };
        self.remove(slot);
        Some(slot)
    }

    #[inline]
    fn oldest_aside(&mut self, list: u32, may: &mut impl FnMut(u32) -> bool) -> Option<u32> {
        let back = &mut self.back[list as usize];
        let (mut found, mut refused) = (None, Vec::new());
        while let Some(&Reverse((number, slot))) = back.peek() {
            let mark = self.marks[slot as usize];
            if mark >> BITS != number {
                back.pop();
            } else if mark & PINNED != 0 {
                self.marks[slot as usize] &= !WAITS;
                back.pop();
            } else if may(slot) {
                found = Some(slot);
                break;
            } else {
                refused.extend(back.pop());
            }
        }
        back.extend(refused);
        found
    }

    #[inline]
    fn oldest_listed(&mut self, list: u32, may: &mut impl FnMut(u32) -> bool) -> Option<u32> {
        let mut slot = self.links.oldest(list);
        while !self.links.is_end(slot) {
            let newer = self.links.newer(slot);
            if self.mark(slot) & PINNED != 0 {
                self.last += 1;
                self.links.unlink(slot);
                self.marks[slot as usize] = self.last << BITS | u64::from(list) << LIST | PINNED;
            } else if may(slot) {
                return Some(slot);
            }
            slot = newer;
        }
        None
    }

    /// Bytes of memory that it takes.
    pub fn bytes(&self) -> usize {
        let waiting =
            self.back.iter().map(|b| b.capacity()).sum::<usize>() * size_of::<(u64, u32)>();
        self.links.bytes() + self.marks.capacity() * size_of::<u64>() + waiting
    }
}

impl Persist for Queue {
    fn persist(&mut self, archive: &mut Archive<'_>) -> Result<()> {
        self.links.persist(archive)?;
        self.marks.persist(archive)?;
        self.last.persist(archive)?;
        // A heap of the same members may lie in memory in several ways.
        for heap in &mut self.back {
            let mut back: Vec<(u64, u32)> =
                std::mem::take(heap).into_sorted_vec().into_iter().map(|r| r.0).collect();
            back.persist(archive)?;
            *heap = back.into_iter().map(Reverse).collect();
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Stream;

    /// The oldest that is not pinned, by a search through a vector.
    struct Plain {
        /// Oldest first, with what is pinned.
        order: Vec<(u32, bool)>,
    }

    impl Plain {
        fn take_oldest(&mut self) -> Option<u32> {
            let at = self.order.iter().position(|&(_, pinned)| !pinned)?;
            Some(self.order.remove(at).0)
        }
        fn place(&self, slot: u32) -> Option<usize> {
            self.order.iter().position(|&(s, _)| s == slot)
        }
    }

    #[test]
    fn takes_what_a_search_for_the_oldest_would_take() {
        let (mut queue, mut plain) = (Queue::new(50, 0, 1), Plain { order: Vec::new() });
        let mut rng = Stream::new(1, "queue");
        for step in 0..40_000 {
            let slot = rng.below(50) as u32;
            match (rng.below(8), plain.place(slot)) {
                (0..3, None) => {
                    queue.push(0, slot);
                    plain.order.push((slot, false));
                }
                (0, Some(at)) => {
                    queue.renew(0, slot);
                    let frame = plain.order.remove(at);
                    plain.order.push(frame);
                }
                (1, Some(at)) if rng.below(4) == 0 => {
                    queue.remove(slot);
                    plain.order.remove(at);
                }
                (2..7, Some(at)) => {
                    let pinned = rng.below(3) > 0;
                    queue.pin(slot, pinned);
                    plain.order[at].1 = pinned;
                }
                (7, _) => assert_eq!(queue.take_oldest(0, |_| true), plain.take_oldest(), "{step}"),
                _ => {}
            }
        }
    }

    #[test]
    fn what_is_refused_for_the_moment_is_taken_later() {
        let mut queue = Queue::new(4, 0, 1);
        (0..4).for_each(|slot| queue.push(0, slot));
        (0..3).for_each(|slot| queue.pin(slot, true));
        assert_eq!(queue.take_oldest(0, |_| true), Some(3));
        (0..3).for_each(|slot| queue.pin(slot, false));
        assert_eq!(queue.take_oldest(0, |slot| slot != 0), Some(1));
        assert_eq!(queue.take_oldest(0, |_| true), Some(0));
        assert_eq!(queue.take_oldest(0, |_| true), Some(2));
        assert_eq!(queue.take_oldest(0, |_| true), None);
    }

    #[test]
    fn a_pinned_frame_is_passed_over_once() {
        let mut queue = Queue::new(1000, 0, 1);
        (0..1000).for_each(|slot| queue.push(0, slot));
        (0..900).for_each(|slot| queue.pin(slot, true));
        let mut asked = 0;
        let mut take = |queue: &mut Queue| {
            let before = queue.last;
            queue.take_oldest(0, |_| {
                asked += 1;
                true
            });
            queue.last - before
        };
        assert_eq!(take(&mut queue), 900);
        assert!((0..50).all(|_| take(&mut queue) == 0));
        assert_eq!(asked, 51);
    }
}
