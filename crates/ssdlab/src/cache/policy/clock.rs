//! CLOCK and SIEVE: a hand goes from the oldest frame to the newest and round again, clears the reference bits of those
//! used since it last came by, and takes the first that was not. They differ in where it finds what comes in.
//!
//! CLOCK, Corbato (1968), puts it where the hand is, so that the hand comes to it last: the same as FIFO with
//! reinsertion, one bit. SIEVE, Zhang et al. (2024), puts it at the newest end, wherever the hand is: what was spared
//! stays where it is, and what is new is looked at soon. Cost: constant on average, a bit at a hit; 9 bytes per frame.

use super::{Policy, Sizes};
use crate::cache::directory::Directory;
use crate::cache::links::Links;
use crate::persist::persistent;

pub struct Clock {
    links: Links,
    used: Vec<u8>,
    /// Where the hand goes on; the end of the list: at the oldest.
    hand: u32,
    /// Whether what comes is put at the newest end, not at the hand.
    sieves: bool,
}

persistent!(Clock { state { links, hand } parts { used } built { sieves } });

impl Clock {
    pub fn new(capacity: u32) -> Self {
        let links = Links::new(capacity, 1);
        let used = vec![0; capacity as usize];
        Clock { hand: links.end(0), links, used, sieves: false }
    }

    pub fn sieve(capacity: u32) -> Self {
        Clock { sieves: true, ..Clock::new(capacity) }
    }

    #[inline]
    fn take(&mut self, slot: u32) {
        if self.hand == slot {
            self.hand = self.links.newer(slot);
        }
        self.links.unlink(slot);
    }
}

impl Policy for Clock {
    const SIZES: Sizes = Sizes::Any;

    #[inline]
    fn hit(&mut self, _names: &mut Directory, slot: u32) {
        self.used[slot as usize] = 1;
    }

    #[inline]
    fn evict(
        &mut self,
        names: &mut Directory,
        _ghost: Option<u32>,
        mut may: impl FnMut(u32) -> bool,
    ) -> Option<u32> {
        // The first round clears all bits; what the second passes over may not be taken.
        for _ in 0..2 * (u64::from(names.len()) + 1) {
            let slot = self.hand;
            if self.links.is_end(slot) {
                self.hand = self.links.oldest(0);
                continue;
            }
            if std::mem::take(&mut self.used[slot as usize]) == 0 && may(slot) {
                self.take(slot);
                names.release(slot);
                return Some(slot);
            }
            self.hand = self.links.newer(slot);
        }
        None
    }

    #[inline]
    fn admit(&mut self, _names: &mut Directory, slot: u32, _ghost: Option<u32>) {
        self.used[slot as usize] = 0;
        let newer = if self.sieves { self.links.end(0) } else { self.hand };
        self.links.push_below(newer, slot);
    }

    fn remove(&mut self, _names: &mut Directory, slot: u32) {
        self.take(slot);
    }

    fn bytes(&self) -> usize {
        self.links.bytes() + self.used.capacity()
    }
}
