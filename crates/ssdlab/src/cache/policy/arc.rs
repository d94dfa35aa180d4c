//! ARC: one LRU list for frames seen once (T1), one for those seen more often (T2); what left each is remembered
//! (B1, B2, ghosts), and asking for it again moves the target size of T1.
//!
//! Megiddo & Modha (2003), fig. 4, without a parameter. Cost: constant; two entries per frame, and 8 bytes in a device
//! that pins frames.

use super::Policy;
use crate::cache::directory::Directory;
use crate::cache::queue::Queue;
use crate::persist::persistent;

const T1: u32 = 0;
const T2: u32 = 1;
const B1: u32 = 2;
const B2: u32 = 3;

pub struct Arc {
    queue: Queue,
    /// The list in which an entry is.
    list: Vec<u8>,
    /// Lengths of the lists.
    length: [u32; 4],
    /// Wanted length of T1.
    target: f64,
}

persistent!(Arc { state { queue, length, target } parts { list } });

impl Arc {
    pub fn new(capacity: u32) -> Self {
        // One ghost more than frames: that of the key to come is still there when its victim becomes one.
        let entries = 2 * capacity + 1;
        Arc {
            queue: Queue::new(capacity, capacity + 1, 4),
            list: vec![0; entries as usize],
            length: [0; 4],
            target: 0.0,
        }
    }

    #[inline]
    fn len(&self, list: u32) -> u32 {
        self.length[list as usize]
    }

    #[inline]
    fn push(&mut self, list: u32, entry: u32) {
        self.queue.push(list, entry);
        self.list[entry as usize] = list as u8;
        self.length[list as usize] += 1;
    }

    #[inline]
    fn unlink(&mut self, entry: u32) {
        self.queue.remove(entry);
        self.length[usize::from(self.list[entry as usize])] -= 1;
    }

    fn forget_oldest(&mut self, names: &mut Directory, list: u32) {
        if let Some(oldest) = self.queue.take_oldest(list, |_| true) {
            self.length[list as usize] -= 1;
            names.forget(oldest);
        }
    }

    /// The target after a ghost of B1 or B2 was asked for.
    fn moved_target(&self, ghost: u32, capacity: u32) -> f64 {
        let (b1, b2) = (f64::from(self.len(B1)), f64::from(self.len(B2)));
        if u32::from(self.list[ghost as usize]) == B1 {
            (self.target + (b2 / b1).max(1.0)).min(f64::from(capacity))
        } else {
            (self.target - (b1 / b2).max(1.0)).max(0.0)
        }
    }
}

impl Policy for Arc {
    #[inline]
    fn hit(&mut self, _names: &mut Directory, slot: u32) {
        self.queue.renew(T2, slot);
        let list = std::mem::replace(&mut self.list[slot as usize], T2 as u8);
        self.length[usize::from(list)] -= 1;
        self.length[T2 as usize] += 1;
    }

    fn evict(
        &mut self,
        names: &mut Directory,
        ghost: Option<u32>,
        mut may: impl FnMut(u32) -> bool,
    ) -> Option<u32> {
        let capacity = names.capacity();
        let target = ghost.map_or(self.target, |ghost| self.moved_target(ghost, capacity));
        let from_b2 = ghost.is_some_and(|ghost| u32::from(self.list[ghost as usize]) == B2);
        // Case IV A with B1 empty: T1 is all there is, and what leaves it is forgotten.
        let only_t1 = ghost.is_none() && self.len(T1) >= capacity;
        let t1 = f64::from(self.len(T1));
        let (first, second) =
            if t1 >= 1.0 && (t1 > target || from_b2 && t1 == target) { (T1, T2) } else { (T2, T1) };
        let slot = match self.queue.take_oldest(first, &mut may) {
            Some(slot) => slot,
            None => self.queue.take_oldest(second, &mut may)?,
        };
        self.target = target;
        if ghost.is_none() {
            let l1 = self.len(T1) + self.len(B1);
            let all = self.length.iter().map(|&n| u64::from(n)).sum::<u64>();
            if l1 >= capacity {
                self.forget_oldest(names, B1);
            } else if all >= 2 * u64::from(capacity) {
                self.forget_oldest(names, B2);
            }
            // Frames that are freed ahead of time leave ghosts without a key coming in.
            if names.ghosts() >= capacity && !only_t1 {
                let list = if self.len(B1) > self.len(B2) { B1 } else { B2 };
                self.forget_oldest(names, list);
            }
        }
        let list = u32::from(self.list[slot as usize]);
        self.length[list as usize] -= 1;
        if only_t1 {
            names.release(slot);
        } else {
            let left = names.release_to_ghost(slot);
            self.push(if list == T1 { B1 } else { B2 }, left);
        }
        Some(slot)
    }

    #[inline]
    fn admit(&mut self, names: &mut Directory, slot: u32, ghost: Option<u32>) {
        match ghost {
            Some(ghost) => {
                self.unlink(ghost);
                self.push(T2, slot);
            }
            None => {
                self.push(T1, slot);
                // Into a frame that was free: no eviction has made room for it among the ghosts.
                if self.len(T1) + self.len(B1) > names.capacity() {
                    self.forget_oldest(names, B1);
                }
            }
        }
    }

    fn remove(&mut self, _names: &mut Directory, slot: u32) {
        self.unlink(slot);
    }

    fn pin(&mut self, slot: u32, pinned: bool) {
        self.queue.pin(slot, pinned);
    }

    fn bytes(&self) -> usize {
        self.queue.bytes() + self.list.capacity()
    }
}
