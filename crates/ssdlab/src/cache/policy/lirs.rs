//! LIRS: keeps the keys whose last two uses were close (LIR); others (HIR) pass through a short queue, and become LIR
//! if they are asked for again while the stack of recent uses still knows them.
//!
//! Jiang & Zhang (2002). Stack S: all LIR frames, and whatever was used since the oldest of them, in the cache or not
//! (ghosts). Queue Q: the HIR frames, 1 % of all and one at least. S is bounded to twice the frames as in
//! libCacheSim; the ghost that left the cache first is forgotten. A hit on an HIR frame that is not in S puts it into
//! S and to the end of Q. The paper leaves it at that; libCacheSim 0.3.5, to whose misses this is held, also makes the
//! oldest LIR frame HIR, if there is no room for another, and takes the oldest of Q out of the cache for it. So does
//! this, where Q has room for two and that frame may be taken. Where Q has room for one it would be the frame just used,
//! which libCacheSim keeps beyond its capacity: see `lirs_libcachesim`. Cost: constant on average; two entries per
//! frame.

use super::{Parameters, Policy, part};
use crate::cache::directory::Directory;
use crate::cache::frames::{Cache, Frames};
use crate::cache::links::Links;
use crate::cache::queue::Queue;
use crate::persist::persistent;
use crate::rng::Stream;

const HIR_LIST: u32 = 0;
const LIR_LIST: u32 = 1;

const IN_STACK: u8 = 1;
const LIR: u8 = 2;

pub struct Lirs {
    stack: Links,
    /// HIR frames; and LIR frames, too, in the order of the stack, from when a frame is pinned.
    queue: Queue,
    has_lir_list: bool,
    state: Vec<u8>,
    in_stack: u32,
    lir: u32,
    hir: u32,
    /// From here on towards the newest lie the ghosts; the end of the stack: at its oldest entry.
    hand: u32,
    lir_limit: u32,
    hir_limit: u32,
}

persistent!(Lirs {
    state { stack, queue, has_lir_list, in_stack, lir, hir, hand }
    parts { state }
    built { lir_limit, hir_limit }
});

pub fn build(capacity: u32, parameters: &Parameters, _stream: Stream) -> Box<dyn Frames> {
    let hir_limit = hir_limit(capacity, parameters);
    let lir_limit = capacity - hir_limit;
    // The stack holds two entries per frame, all but one LIR frame at least among them; and one on its way.
    let ghosts = 2 * capacity - lir_limit + 2;
    let stack = Links::new(capacity + ghosts, 1);
    let policy = Lirs {
        hand: stack.end(0),
        stack,
        queue: Queue::new(capacity, 0, 2),
        has_lir_list: false,
        state: vec![0; capacity as usize],
        in_stack: 0,
        lir: 0,
        hir: 0,
        lir_limit,
        hir_limit,
    };
    Cache::boxed(capacity, ghosts, policy)
}

/// Frames in the queue.
pub fn hir_limit(capacity: u32, parameters: &Parameters) -> u32 {
    part(capacity, parameters.late).clamp(1, capacity)
}

impl Lirs {
    fn has(&self, slot: u32, state: u8) -> bool {
        self.state[slot as usize] & state != 0
    }

    fn push_stack(&mut self, slot: u32) {
        self.stack.push(0, slot);
        self.state[slot as usize] |= IN_STACK;
        self.in_stack += 1;
    }

    fn leave_stack(&mut self, entry: u32) {
        if self.hand == entry {
            self.hand = self.stack.newer(entry);
        }
        self.stack.unlink(entry);
        self.in_stack -= 1;
    }

    /// Puts an entry of the stack on its top.
    fn renew_stack(&mut self, slot: u32) {
        self.leave_stack(slot);
        self.push_stack(slot);
    }

    /// The oldest of the stack is LIR afterwards: only that makes its length mean anything.
    fn prune(&mut self, names: &mut Directory) {
        loop {
            let oldest = self.stack.oldest(0);
            if self.stack.is_end(oldest) {
                return;
            }
            if names.is_ghost(oldest) {
                self.leave_stack(oldest);
                names.forget(oldest);
            } else if self.has(oldest, LIR) {
                return;
            } else {
                self.leave_stack(oldest);
                self.state[oldest as usize] &= !IN_STACK;
            }
        }
    }

    /// The oldest LIR frame becomes HIR, the newest of the queue.
    fn make_late(&mut self, names: &mut Directory) {
        self.prune(names);
        let oldest = self.stack.oldest(0);
        self.leave_stack(oldest);
        self.state[oldest as usize] = 0;
        self.lir -= 1;
        if self.has_lir_list {
            self.queue.renew(HIR_LIST, oldest);
        } else {
            self.queue.push(HIR_LIST, oldest);
        }
        self.hir += 1;
        self.prune(names);
    }

    /// There may be a LIR frame too many.
    fn demote(&mut self, names: &mut Directory) {
        if self.lir > self.lir_limit {
            self.make_late(names);
        }
        self.prune(names);
    }

    /// Forgets the ghost that left first. Ghosts lie in the stack in the order in which they left, since the queue
    /// keeps the order of the stack; what frames that could not be taken have mixed up is found from the oldest on.
    fn forget_ghost(&mut self, names: &mut Directory, spared: Option<u32>) {
        for _ in 0..2 {
            while !self.stack.is_end(self.hand) {
                let entry = self.hand;
                if names.is_ghost(entry) && Some(entry) != spared {
                    self.leave_stack(entry);
                    names.forget(entry);
                    return;
                }
                self.hand = self.stack.newer(entry);
            }
            self.hand = self.stack.oldest(0);
        }
    }

    fn limit_stack(&mut self, names: &mut Directory) {
        while self.in_stack > 2 * names.capacity() && names.ghosts() > 0 {
            self.forget_ghost(names, None);
        }
    }

    /// The oldest of the queue leaves the cache. Its ghost stays in the stack, if that knows it.
    fn release(&mut self, names: &mut Directory, slot: u32, ghost: Option<u32>) {
        self.queue.remove(slot);
        self.hir -= 1;
        if !self.has(slot, IN_STACK) {
            return names.release(slot);
        }
        if names.ghosts_full() {
            self.forget_ghost(names, ghost);
        }
        let left = names.release_to_ghost(slot);
        self.stack.replace(slot, left);
        if self.hand == slot {
            self.hand = left;
        }
    }

    /// An HIR frame was used that the stack does not know: it is the newest of both, and the oldest LIR frame becomes
    /// HIR in the place of the oldest of the queue, which is released.
    fn pass_through(
        &mut self,
        names: &mut Directory,
        slot: u32,
        mut may: impl FnMut(u32) -> bool,
    ) -> Option<u32> {
        self.queue.renew(HIR_LIST, slot);
        let crowded = self.lir == self.lir_limit && self.hir == self.hir_limit;
        let mut freed = None;
        if crowded && self.hir_limit > 1 {
            freed = self.queue.oldest_that(HIR_LIST, |other| other != slot && may(other));
        }
        if let Some(freed) = freed {
            self.release(names, freed, None);
        }
        if self.lir == self.lir_limit && self.hir < self.hir_limit {
            self.make_late(names);
        }
        self.push_stack(slot);
        self.limit_stack(names);
        freed
    }

    /// An HIR frame that the stack knows was used.
    fn promote(&mut self, slot: u32) {
        if self.has_lir_list {
            self.queue.renew(LIR_LIST, slot);
        } else {
            self.queue.remove(slot);
        }
        self.hir -= 1;
        self.state[slot as usize] |= LIR;
        self.lir += 1;
    }
}

impl Policy for Lirs {
    fn hit(&mut self, names: &mut Directory, slot: u32) {
        self.hit_freeing(names, slot, |_| false);
    }

    fn hit_freeing(
        &mut self,
        names: &mut Directory,
        slot: u32,
        may: impl FnMut(u32) -> bool,
    ) -> Option<u32> {
        match self.state[slot as usize] {
            0 => return self.pass_through(names, slot, may),
            IN_STACK => {
                self.renew_stack(slot);
                self.promote(slot);
                self.demote(names);
            }
            _ => {
                self.renew_stack(slot);
                if self.has_lir_list {
                    self.queue.renew(LIR_LIST, slot);
                }
                self.prune(names);
            }
        }
        None
    }

    fn evict(
        &mut self,
        names: &mut Directory,
        ghost: Option<u32>,
        mut may: impl FnMut(u32) -> bool,
    ) -> Option<u32> {
        // Where no HIR frame may be taken, the oldest LIR frame that may.
        let slot = match self.queue.oldest_that(HIR_LIST, &mut may) {
            Some(slot) => slot,
            None if self.has_lir_list => self.queue.oldest_that(LIR_LIST, may)?,
            None => self.stack.oldest_that(0, |e| !names.is_ghost(e) && may(e))?,
        };
        if self.has(slot, LIR) {
            self.remove(names, slot);
            names.release(slot);
            return Some(slot);
        }
        self.release(names, slot, ghost);
        Some(slot)
    }

    fn admit(&mut self, names: &mut Directory, slot: u32, ghost: Option<u32>) {
        self.state[slot as usize] = 0;
        if let Some(ghost) = ghost {
            self.leave_stack(ghost);
        }
        self.push_stack(slot);
        if ghost.is_some() || self.lir < self.lir_limit {
            self.state[slot as usize] |= LIR;
            if self.has_lir_list {
                self.queue.push(LIR_LIST, slot);
            }
            self.lir += 1;
            self.demote(names);
        } else {
            self.queue.push(HIR_LIST, slot);
            self.hir += 1;
        }
        self.limit_stack(names);
    }

    fn remove(&mut self, names: &mut Directory, slot: u32) {
        if self.has(slot, IN_STACK) {
            self.leave_stack(slot);
        }
        let lir = self.has(slot, LIR);
        if self.has_lir_list || !lir {
            self.queue.remove(slot);
        }
        if lir {
            self.lir -= 1;
        } else {
            self.hir -= 1;
        }
        self.prune(names);
    }

    fn pin(&mut self, slot: u32, pinned: bool) {
        if !self.has_lir_list {
            self.has_lir_list = true;
            let mut entry = self.stack.oldest(0);
            while !self.stack.is_end(entry) {
                // Ghosts follow the frames.
                if self.state.get(entry as usize).is_some_and(|state| state & LIR != 0) {
                    self.queue.push(LIR_LIST, entry);
                }
                entry = self.stack.newer(entry);
            }
        }
        self.queue.pin(slot, pinned);
    }

    fn bytes(&self) -> usize {
        self.stack.bytes() + self.queue.bytes() + self.state.capacity()
    }
}
