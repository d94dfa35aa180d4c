//! FIFO: the frame that was filled first, used since or not.
//!
//! Belady (1966). Cost: constant, nothing at a hit; 8 bytes per frame, 16 in a device that
//! pins frames.

use super::{Policy, Sizes};
use crate::cache::directory::Directory;
use crate::cache::queue::Queue;
use crate::persist::persistent;

pub struct Fifo {
    queue: Queue,
}

persistent!(Fifo { state { queue } });

impl Fifo {
    pub fn new(capacity: u32) -> Self {
        Fifo { queue: Queue::new(capacity) }
    }
}

impl Policy for Fifo {
    const SIZES: Sizes = Sizes::Any;

    #[inline]
    fn hit(&mut self, _names: &mut Directory, _slot: u32) {}

    #[inline]
    fn evict(
        &mut self,
        names: &mut Directory,
        _ghost: Option<u32>,
        may: impl FnMut(u32) -> bool,
    ) -> Option<u32> {
        let slot = self.queue.take_oldest(may)?;
        names.release(slot);
        Some(slot)
    }

    #[inline]
    fn admit(&mut self, _names: &mut Directory, slot: u32, _ghost: Option<u32>) {
        self.queue.push(slot);
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
