//! Random: any frame with equal probability.
//!
//! Belady (1966). Cost: one draw, repeated for frames that may not be taken; a bit per frame.

use super::Policy;
use crate::cache::directory::Directory;
use crate::cache::members::Members;
use crate::persist::persistent;
use crate::rng::Stream;

/// Draws before the frames are asked one after the other, from a random one on.
const DRAWS: u32 = 64;

pub struct Random {
    stream: Stream,
    /// Frames that are not pinned.
    loose: Members,
}

persistent!(Random { state { stream, loose } });

impl Random {
    pub fn new(capacity: u32, stream: Stream) -> Self {
        Random { stream, loose: Members::all(u64::from(capacity)) }
    }
}

impl Policy for Random {
    #[inline]
    fn hit(&mut self, _names: &mut Directory, _slot: u32) {}

    #[inline]
    fn evict(
        &mut self,
        names: &mut Directory,
        _ghost: Option<u32>,
        mut may: impl FnMut(u32) -> bool,
    ) -> Option<u32> {
        let frames = names.capacity();
        let mut fits = |names: &Directory, slot| names.is_live(slot) && may(slot);
        let mut slot = self.stream.below(u64::from(frames)) as u32;
        for _ in 1..DRAWS {
            if fits(names, slot) {
                break;
            }
            slot = self.stream.below(u64::from(frames)) as u32;
        }
        let taken = self.loose.around(u64::from(slot), |slot| fits(names, slot as u32))? as u32;
        names.release(taken);
        Some(taken)
    }

    #[inline]
    fn admit(&mut self, _names: &mut Directory, _slot: u32, _ghost: Option<u32>) {}

    fn remove(&mut self, _names: &mut Directory, slot: u32) {
        self.loose.insert(u64::from(slot));
    }

    fn pin(&mut self, slot: u32, pinned: bool) {
        self.loose.set(u64::from(slot), !pinned);
    }

    fn bytes(&self) -> usize {
        self.loose.bytes()
    }
}
