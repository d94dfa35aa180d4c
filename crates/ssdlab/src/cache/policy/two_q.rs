//! 2Q: a FIFO of frames seen once (A1in), an LRU list of those asked for again after they had left it (Am), and the
//! keys that left it last (A1out, ghosts).
//!
//! Johnson & Shasha (1994), the full version; Kin 25 %, Kout 50 % of the frames as the paper has them and
//! libCacheSim. A hit in A1in changes nothing. Cost: constant; 1.5 entries per frame, and 8 bytes in a device that pins
//! frames.

use super::{Parameters, Policy, part};
use crate::cache::directory::Directory;
use crate::cache::frames::{Cache, Frames};
use crate::cache::queue::Queue;
use crate::persist::persistent;
use crate::rng::Stream;

const IN: u32 = 0;
const MAIN: u32 = 1;
const OUT: u32 = 2;

pub struct TwoQ {
    queue: Queue,
    /// Whether a frame is in the main list.
    main: Vec<u8>,
    once: u32,
    once_limit: u32,
    ghost_limit: u32,
}

persistent!(TwoQ { state { queue, once } parts { main } built { once_limit, ghost_limit } });

pub fn build(capacity: u32, parameters: &Parameters, _stream: Stream) -> Box<dyn Frames> {
    let ghost_limit = part(capacity, parameters.remembered);
    let policy = TwoQ {
        // One more: the ghost of the key to come is still there when its victim becomes one.
        queue: Queue::new(capacity, ghost_limit + 1, 3),
        main: vec![0; capacity as usize],
        once: 0,
        once_limit: part(capacity, parameters.once),
        ghost_limit,
    };
    Cache::boxed(capacity, ghost_limit + 1, policy)
}

impl Policy for TwoQ {
    #[inline]
    fn hit(&mut self, _names: &mut Directory, slot: u32) {
        if self.main[slot as usize] == 1 {
            self.queue.renew(MAIN, slot);
        }
    }

    #[inline]
    fn evict(
        &mut self,
        names: &mut Directory,
        ghost: Option<u32>,
        mut may: impl FnMut(u32) -> bool,
    ) -> Option<u32> {
        let (first, second) = if self.once > self.once_limit { (IN, MAIN) } else { (MAIN, IN) };
        let slot = match self.queue.take_oldest(first, &mut may) {
            Some(slot) => slot,
            None => self.queue.take_oldest(second, &mut may)?,
        };
        if self.main[slot as usize] == 1 {
            names.release(slot);
            return Some(slot);
        }
        self.once -= 1;
        if self.ghost_limit == 0 {
            names.release(slot);
            return Some(slot);
        }
        if names.ghosts() - u32::from(ghost.is_some()) >= self.ghost_limit {
            let oldest = self.queue.take_oldest(OUT, |one| Some(one) != ghost).expect("a ghost");
            names.forget(oldest);
        }
        let left = names.release_to_ghost(slot);
        self.queue.push(OUT, left);
        Some(slot)
    }

    #[inline]
    fn admit(&mut self, _names: &mut Directory, slot: u32, ghost: Option<u32>) {
        self.main[slot as usize] = u8::from(ghost.is_some());
        match ghost {
            Some(ghost) => {
                self.queue.remove(ghost);
                self.queue.push(MAIN, slot);
            }
            None => {
                self.queue.push(IN, slot);
                self.once += 1;
            }
        }
    }

    fn remove(&mut self, _names: &mut Directory, slot: u32) {
        self.queue.remove(slot);
        self.once -= u32::from(self.main[slot as usize] == 0);
    }

    fn pin(&mut self, slot: u32, pinned: bool) {
        self.queue.pin(slot, pinned);
    }

    fn bytes(&self) -> usize {
        self.queue.bytes() + self.main.capacity()
    }
}
