//! LRU: the frame not used for the longest time; FIFO: the frame that was filled first, used since or not.
//!
//! Mattson et al. (1970), Belady (1966). Cost: constant; of LRU a list is relinked at every hit, of FIFO nothing is
//! done then; 8 bytes per frame, 16 in a device that pins frames.

use super::{Policy, Sizes};
use crate::cache::directory::Directory;
use crate::cache::queue::Queue;
use crate::persist::{Persist, persistent};

/// Frames in the order in which they came; used ones come anew where it `RENEWS` them.
pub struct InOrder<const RENEWS: bool> {
    queue: Queue,
}

pub type Lru = InOrder<true>;
pub type Fifo = InOrder<false>;

persistent!(Lru { state { queue } });
persistent!(Fifo { state { queue } });

impl<const RENEWS: bool> InOrder<RENEWS> {
    pub fn new(capacity: u32) -> Self {
        InOrder { queue: Queue::new(capacity, 0, 1) }
    }
}

impl<const RENEWS: bool> Policy for InOrder<RENEWS>
where
    Self: Persist,
{
    const SIZES: Sizes = Sizes::Any;

    #[inline]
    fn hit(&mut self, _names: &mut Directory, slot: u32) {
        if RENEWS {
            self.queue.renew(0, slot);
        }
    }

    #[inline]
    fn evict(
        &mut self,
        names: &mut Directory,
        _ghost: Option<u32>,
        may: impl FnMut(u32) -> bool,
    ) -> Option<u32> {
        let slot = self.queue.take_oldest(0, may)?;
        names.release(slot);
        Some(slot)
    }

    #[inline]
    fn admit(&mut self, _names: &mut Directory, slot: u32, _ghost: Option<u32>) {
        self.queue.push(0, slot);
    }

    fn remove(&mut self, _names: &mut Directory, slot: u32) {
        self.queue.remove(slot);
    }

    fn pin(&mut self, slot: u32, pinned: bool) {
        self.queue.pin(slot, pinned);
    }

    fn bytes(&self) -> usize {
        self.queue.bytes()
    }
}
