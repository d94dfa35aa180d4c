//! Sub-blocks of frames that a flush has still to make safe, where a device has a volatile write cache.
//!
//! Flushes are numbered as they begin. A mark carries the number of the last one, so that it is safe when a later
//! one has ended. A frame has room for the marks of two numbers; more come only while flushes overlap.

use crate::persist::persistent;

#[derive(Clone, Copy, Debug, Default)]
struct Mark {
    epoch: u64,
    mask: u64,
}
persistent!(Mark { state { epoch, mask } });

/// See the module.
pub(super) struct Unflushed {
    /// By frame, the older mark first; none where both devices are safe.
    marks: Vec<[Mark; 2]>,
    /// Marks that had to give way, and their frames.
    more: Vec<(u32, Mark)>,
    /// Flushes that have begun, and the last that has ended.
    begun: u64,
    ended: u64,
    /// Sub-blocks that have left the cache unflushed since two of the numbers.
    gone: [Mark; 2],
}
persistent!(Unflushed { state { marks, more, begun, ended, gone } });

impl Unflushed {
    /// For so many frames, if they are `watched` at all.
    pub fn new(frames: u32, watched: bool) -> Self {
        let marks = if watched { vec![Default::default(); frames as usize] } else { Vec::new() };
        Unflushed { marks, more: Vec::new(), begun: 0, ended: 0, gone: Default::default() }
    }

    /// Sub-blocks of a frame have been written.
    pub fn add(&mut self, frame: u32, mask: u64) {
        let Some([older, newer]) = self.marks.get_mut(frame as usize).filter(|_| mask != 0) else {
            return;
        };
        if newer.epoch != self.begun && newer.mask != 0 {
            if older.epoch >= self.ended && older.mask != 0 {
                self.more.push((frame, *older));
            }
            *older = std::mem::take(newer);
        }
        (newer.epoch, newer.mask) = (self.begun, newer.mask | mask);
    }

    /// Those of a frame that are not safe.
    pub fn of(&self, frame: u32) -> u64 {
        let Some(marks) = self.marks.get(frame as usize) else { return 0 };
        let more = self.more.iter().filter(|(of, _)| *of == frame).map(|(_, mark)| mark);
        let unsafe_now = marks.iter().chain(more).filter(|mark| mark.epoch >= self.ended);
        unsafe_now.fold(0, |all, mark| all | mark.mask)
    }

    /// Sub-blocks of a frame are there no more.
    pub fn remove(&mut self, frame: u32, mask: u64) {
        let Some(marks) = self.marks.get_mut(frame as usize) else { return };
        marks.iter_mut().for_each(|mark| mark.mask &= !mask);
        self.more.iter_mut().filter(|(of, _)| *of == frame).for_each(|(_, m)| m.mask &= !mask);
    }

    /// So many sub-blocks are nowhere else now that are not safe.
    pub fn leave(&mut self, count: u32) {
        if self.marks.is_empty() || count == 0 {
            return;
        }
        let [older, newer] = &mut self.gone;
        if newer.epoch != self.begun {
            let unsafe_still = older.epoch >= self.ended;
            newer.mask += if unsafe_still { older.mask } else { 0 };
            *older = std::mem::take(newer);
            newer.epoch = self.begun;
        }
        newer.mask += u64::from(count);
    }

    /// How many that are.
    pub fn gone(&self) -> u64 {
        self.gone.iter().filter(|mark| mark.epoch >= self.ended).map(|mark| mark.mask).sum()
    }

    /// A flush begins; its number.
    pub fn begin(&mut self) -> u64 {
        self.begun += 1;
        self.begun
    }

    /// A flush has ended: what was written before it began is safe.
    pub fn end(&mut self, number: u64) {
        self.ended = self.ended.max(number);
        let ended = self.ended;
        self.more.retain(|(_, mark)| mark.epoch >= ended);
    }

    /// Nothing is unsafe any more.
    pub fn clear(&mut self) {
        self.ended = self.begin();
        self.more.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_before_a_flush_began_is_safe_when_it_ends() {
        let mut unflushed = Unflushed::new(2, true);
        unflushed.add(0, 1);
        let first = unflushed.begin();
        unflushed.add(0, 2);
        let second = unflushed.begin();
        unflushed.add(0, 4);
        unflushed.add(1, 8);
        assert_eq!((unflushed.of(0), unflushed.of(1)), (7, 8));
        unflushed.end(first);
        assert_eq!(unflushed.of(0), 6);
        unflushed.remove(0, 4);
        unflushed.end(second);
        assert_eq!((unflushed.of(0), unflushed.of(1)), (0, 8));
    }

    #[test]
    fn a_later_flush_may_end_first() {
        let mut unflushed = Unflushed::new(1, true);
        unflushed.add(0, 1);
        let first = unflushed.begin();
        unflushed.leave(3);
        let second = unflushed.begin();
        unflushed.leave(1);
        assert_eq!(unflushed.gone(), 4);
        unflushed.end(second);
        assert_eq!((unflushed.of(0), unflushed.gone()), (0, 1));
        unflushed.end(first);
        assert_eq!((unflushed.of(0), unflushed.gone()), (0, 1));
        unflushed.clear();
        assert_eq!(unflushed.gone(), 0);
    }
}
