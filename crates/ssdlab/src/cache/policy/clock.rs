//! CLOCK: a hand goes round the frames, clears reference bits and stops at the first that is clear.
//!
//! Corbato (1968); the same as FIFO with reinsertion, one bit. Cost: constant on average, a bit at a hit; 1 byte
//! per frame. A frame freed by TRIM is filled again where it stands, as on a real clock.

use super::{Policy, Sizes};
use crate::cache::directory::Directory;
use crate::persist::persistent;

pub struct Clock {
    used: Vec<u8>,
    hand: u32,
}

persistent!(Clock { state { hand } parts { used } });

impl Clock {
    pub fn new(capacity: u32) -> Self {
        Clock { used: vec![0; capacity as usize], hand: 0 }
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
        let frames = names.capacity();
        // The first round clears all bits; what the second passes over may not be taken.
        for _ in 0..2 * u64::from(frames) {
            let slot = self.hand;
            self.hand = if slot + 1 == frames { 0 } else { slot + 1 };
            if std::mem::take(&mut self.used[slot as usize]) == 0
                && names.is_live(slot)
                && may(slot)
            {
                names.release(slot);
                return Some(slot);
            }
        }
        None
    }

    #[inline]
    fn admit(&mut self, _names: &mut Directory, slot: u32, _ghost: Option<u32>) {
        self.used[slot as usize] = 0;
    }

    fn remove(&mut self, _names: &mut Directory, _slot: u32) {}

    fn bytes(&self) -> usize {
        self.used.capacity()
    }
}
