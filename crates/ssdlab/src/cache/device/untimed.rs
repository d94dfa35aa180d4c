//! The untimed path: the pool takes it all, and the cache drops what is written. So a cache begins cold after
//! preconditioning, and what was in it and is not touched stays.

use super::{CACHE, CacheDevice, POOL};
use crate::contract::{Command, Op};
use crate::fleet::Composite;

impl CacheDevice {
    /// Does a command in no time.
    pub(super) fn apply_command(&mut self, command: &Command) {
        debug_assert!(!self.is_working(), "something is under way");
        let (begin, end) = (command.offset, command.offset + command.len);
        match command.op {
            Op::Read => self.apply_to(POOL, Op::Read, begin, command.len, 0),
            Op::Flush | Op::Purge => {
                if command.op == Op::Purge {
                    self.store.clear();
                }
                self.all_safe();
                self.fleet.apply_to_all(command.op);
            }
            Op::Trim => {
                self.drop_untimed(begin, end, 0);
                self.apply_to(POOL, Op::Trim, begin, command.len, 0);
            }
            Op::Write => {
                self.drop_untimed(begin, end, u64::MAX);
                let stamp = self.fleet.stamp_of_host(command, begin, end);
                self.fleet.apply(POOL, &Command { stamp, ..*command });
            }
        }
    }

    /// Drops what is cached of a range. What is dirty there goes to the pool first, except where all of a sub-block
    /// is in the range and in `replaced`.
    fn drop_untimed(&mut self, begin: u64, end: u64, replaced: u64) {
        if self.store.frames.is_empty() {
            return;
        }
        for key in self.known_blocks(begin, end) {
            let from = begin.max(key * self.keys.block.0);
            let to = end.min((key + 1) * self.keys.block.0);
            let Some(frame) = self.store.find(key) else { continue };
            let (valid, dirty) = self.store.masks_of(frame);
            let mask = self.touched(from, to);
            let mut rest = dirty & mask & !(self.covered(from, to) & replaced);
            while let Some((from, to)) = self.next_run(key, &mut rest) {
                self.apply_to(CACHE, Op::Read, self.place(frame, from), to - from, 0);
                let stamp = self.stamp_of_frames(from, to);
                self.apply_to(POOL, Op::Write, from, to - from, stamp);
            }
            self.store.set(key, frame, valid & !mask, dirty & !mask);
            self.left(frame, mask);
            self.store.free_if_empty(key);
        }
    }
}
