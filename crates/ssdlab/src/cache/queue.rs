//! Frames from the oldest to the newest, of which those that stay pinned for long cost a search nothing.

use super::aside::{Aside, MIDDLE};
use super::links::Links;
use crate::persist::persistent;

/// Lists of frames, and of ghosts, whose oldest frame that may be taken is found in constant time, amortised.
pub struct Queue {
    /// The lists; and behind them, of each what is [set aside](Aside), all of it older, in a list of its own.
    links: Links,
    aside: Aside,
    /// The lowest and the highest number given to what is set aside.
    numbers: (u64, u64),
}

persistent!(Queue { state { links, aside, numbers } });

impl Queue {
    /// So many empty lists, 64 at most, for frames and ghosts, whose entries follow those of the frames.
    pub fn new(frames: u32, ghosts: u32, lists: u32) -> Self {
        let links = Links::new(frames + ghosts, 2 * lists);
        Queue { links, aside: Aside::new(frames, lists), numbers: (MIDDLE, MIDDLE) }
    }

    /// The list of what is set aside out of one.
    #[inline]
    fn older(&self, list: u32) -> u32 {
        self.aside.lists() + list
    }

    /// Puts an entry that is in no list to the newest end of one.
    #[inline]
    pub fn push(&mut self, list: u32, slot: u32) {
        self.links.push(list, slot);
    }

    /// Makes an entry the newest of a list, of whichever it was.
    #[inline]
    pub fn renew(&mut self, list: u32, slot: u32) {
        self.links.renew(list, slot);
        self.aside.take_back(slot);
    }

    /// Makes an entry the oldest of a list, of whichever it was.
    pub fn make_oldest(&mut self, list: u32, slot: u32) {
        self.links.unlink(slot);
        let older = self.older(list);
        if self.links.is_end(self.links.oldest(older)) {
            self.links.push_oldest(list, slot);
            return self.aside.take_back(slot);
        }
        self.links.push_oldest(older, slot);
        self.numbers.0 -= 1;
        self.aside.set(list, slot, 0, self.numbers.0);
    }

    /// Takes an entry out.
    #[inline]
    pub fn remove(&mut self, slot: u32) {
        self.links.unlink(slot);
        self.aside.forget(slot);
    }

    /// From now on a frame may not be taken, or may again.
    pub fn pin(&mut self, slot: u32, pinned: bool) {
        self.aside.pin(slot, pinned, 0);
    }

    /// The oldest entry of a list, pinned or not.
    #[inline]
    pub fn oldest(&self, list: u32) -> Option<u32> {
        let ends = [self.older(list), list];
        ends.map(|list| self.links.oldest(list)).into_iter().find(|&slot| !self.links.is_end(slot))
    }

    /// The newest entry of a list, pinned or not.
    pub fn newest(&self, list: u32) -> Option<u32> {
        let ends = [list, self.older(list)];
        let newest = |list| self.links.older(self.links.end(list));
        ends.map(newest).into_iter().find(|&slot| !self.links.is_end(slot))
    }

    /// The oldest entry of a list that is not pinned and of which `may` holds. What `may` refuses is expected to be
    /// little.
    #[inline]
    pub fn oldest_that(&mut self, list: u32, mut may: impl FnMut(u32) -> bool) -> Option<u32> {
        match self.aside.first(list, &mut may) {
            Some((_, slot)) => Some(slot),
            None => self.oldest_listed(list, &mut may),
        }
    }

    /// Takes that entry out.
    #[inline]
    pub fn take_oldest(&mut self, list: u32, may: impl FnMut(u32) -> bool) -> Option<u32> {
        let slot = self.oldest_that(list, may)?;
        self.remove(slot);
        Some(slot)
    }

    #[inline]
    fn oldest_listed(&mut self, list: u32, may: &mut impl FnMut(u32) -> bool) -> Option<u32> {
        let mut slot = self.links.oldest(list);
        let mut refused = Vec::new();
        while !self.links.is_end(slot) {
            let newer = self.links.newer(slot);
            if self.aside.is_pinned(slot) {
                // Older ones first: what is set aside is older than what is in the list.
                refused.drain(..).for_each(|older| self.set_aside(list, older));
                self.set_aside(list, slot);
            } else if may(slot) {
                return Some(slot);
            } else {
                refused.push(slot);
            }
            slot = newer;
        }
        None
    }

    fn set_aside(&mut self, list: u32, slot: u32) {
        self.links.renew(self.older(list), slot);
        self.numbers.1 += 1;
        self.aside.set(list, slot, 0, self.numbers.1);
    }

    /// Bytes of memory that it takes.
    pub fn bytes(&self) -> usize {
        self.links.bytes() + self.aside.bytes()
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
            match (rng.below(9), plain.place(slot)) {
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
                (8, Some(at)) => {
                    queue.make_oldest(0, slot);
                    let frame = plain.order.remove(at);
                    plain.order.insert(0, frame);
                }
                _ => {}
            }
            let ends = (queue.oldest(0), queue.newest(0));
            let end = |frame: Option<&(u32, bool)>| frame.map(|frame| frame.0);
            assert_eq!(ends, (end(plain.order.first()), end(plain.order.last())), "{step}");
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
            let before = queue.numbers.1;
            queue.take_oldest(0, |_| {
                asked += 1;
                true
            });
            queue.numbers.1 - before
        };
        assert_eq!(take(&mut queue), 900);
        assert!((0..50).all(|_| take(&mut queue) == 0));
        assert_eq!(asked, 51);
    }
}
