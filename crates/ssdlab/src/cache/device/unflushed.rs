//! Sub-blocks of frames that a flush has still to make safe, where a device has a volatile write cache.
//!
//! A mark carries the number of the last flush that had begun. A frame has room for the marks of two numbers; more
//! come only while flushes overlap.

use crate::fleet::Exposed;
use crate::persist::persistent;

#[derive(Clone, Copy, Debug, Default)]
struct Mark {
    flush: u64,
    mask: u64,
}
persistent!(Mark { state { flush, mask } });

/// See the module.
pub(super) struct Unflushed {
    /// By frame, the older mark first; none where both devices are safe.
    marks: Vec<[Mark; 2]>,
    /// Marks that had to give way, and their frames.
    more: Vec<(u32, Mark)>,
    /// Flushes, and sub-blocks that have left the cache unflushed.
    pub gone: Exposed,
}
persistent!(Unflushed { state { marks, more, gone } });

impl Unflushed {
    /// For so many frames, if they are `watched` at all.
    pub fn new(frames: u32, watched: bool) -> Self {
        let marks = if watched { vec![Default::default(); frames as usize] } else { Vec::new() };
        Unflushed { marks, more: Vec::new(), gone: Exposed::default() }
    }

    /// Sub-blocks of a frame have been written.
    pub fn add(&mut self, frame: u32, mask: u64) {
        let Some([older, newer]) = self.marks.get_mut(frame as usize).filter(|_| mask != 0) else {
            return;
        };
        let flush = self.gone.number();
        if newer.flush != flush && newer.mask != 0 {
            if older.mask != 0 && !self.gone.is_safe(older.flush) {
                self.more.push((frame, *older));
            }
            *older = std::mem::take(newer);
        }
        (newer.flush, newer.mask) = (flush, newer.mask | mask);
    }

    /// Those of a frame that are not safe.
    pub fn of(&self, frame: u32) -> u64 {
        let Some(marks) = self.marks.get(frame as usize) else { return 0 };
        let more = self.more.iter().filter(|(of, _)| *of == frame).map(|(_, mark)| mark);
        let exposed = marks.iter().chain(more).filter(|mark| !self.gone.is_safe(mark.flush));
        exposed.fold(0, |all, mark| all | mark.mask)
    }

    /// Sub-blocks of a frame are there no more.
    pub fn remove(&mut self, frame: u32, mask: u64) {
        let Some(marks) = self.marks.get_mut(frame as usize) else { return };
        marks.iter_mut().for_each(|mark| mark.mask &= !mask);
        self.more.iter_mut().filter(|(of, _)| *of == frame).for_each(|(_, m)| m.mask &= !mask);
    }

    /// So many sub-blocks are nowhere else now that are not safe.
    pub fn leave(&mut self, count: u32) {
        if !self.marks.is_empty() {
            self.gone.add(u64::from(count));
        }
    }

    /// A flush has ended: what was written before it began is safe.
    pub fn end(&mut self, number: u64) {
        self.gone.end(number);
        let gone = self.gone;
        self.more.retain(|(_, mark)| !gone.is_safe(mark.flush));
    }

    /// Nothing is unsafe any more.
    pub fn clear(&mut self) {
        self.gone.clear();
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
        let first = unflushed.gone.begin();
        unflushed.add(0, 2);
        let second = unflushed.gone.begin();
        unflushed.add(0, 4);
        unflushed.add(1, 8);
        assert_eq!((unflushed.of(0), unflushed.of(1)), (7, 8));
        unflushed.end(first);
        assert_eq!(unflushed.of(0), 6);
        unflushed.remove(0, 4);
        unflushed.end(second);
        assert_eq!((unflushed.of(0), unflushed.of(1)), (0, 8));
    }
}
