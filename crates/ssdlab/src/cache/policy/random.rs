//! Random: any frame with equal probability.
//!
//! Belady (1966). Cost: one draw, repeated for frames that may not be taken; no memory.

use super::Policy;
use crate::cache::directory::Directory;
use crate::persist::persistent;
use crate::rng::Stream;

/// Draws before the frames are asked one after the other, from a random one on.
const DRAWS: u32 = 64;

pub struct Random {
    pub stream: Stream,
}

persistent!(Random { state { stream } });

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
        let taken = (slot..frames).chain(0..slot).find(|&slot| fits(names, slot))?;
        names.release(taken);
        Some(taken)
    }

    #[inline]
    fn admit(&mut self, _names: &mut Directory, _slot: u32, _ghost: Option<u32>) {}

    fn remove(&mut self, _names: &mut Directory, _slot: u32) {}

    fn bytes(&self) -> usize {
        0
    }
}
