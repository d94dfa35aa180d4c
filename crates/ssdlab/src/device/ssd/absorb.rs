//! The way of host data through the write buffer: in, over what is there already, and out to the flash.

use super::{DRAIN, Ssd};
use crate::ftl::UnitWrite;
use crate::nand::{Finished, NONE};
use crate::units::NEVER;

/// Dirty units ahead of the one being placed whose map entries are fetched into the processor's cache.
const AHEAD: usize = 2;

impl Ssd {
    /// Takes a unit into the buffer; `false` where there is no room for it.
    #[inline]
    pub(super) fn take_in(&mut self, write: &UnitWrite) -> bool {
        let Some(buffer) = &mut self.buffer else { return false };
        let room = buffer.units.saturating_sub(buffer.used + self.engine.held_by_moves);
        let found = buffer.dirty.look_up(write.lpn);
        if let Ok(slot) = found {
            let merged = buffer.dirty.merged(slot, write);
            let (before, length) = (buffer.dirty.length_of(slot), self.ftl.length_after(&merged));
            if length > before + room {
                return false;
            }
            buffer.used = buffer.used - before + length;
            let renewed = buffer.renews();
            buffer.dirty.overwrite(slot, write, &merged, length, renewed);
            buffer.overwrites += 1;
            return true;
        }
        let length = self.ftl.length_after(write);
        if let Err(place) = found
            && length <= room
        {
            buffer.used += length;
            buffer.dirty.insert(place, write, length);
            return true;
        }
        false
    }

    /// Lets go of what the policy says; `full`: a write waits for room.
    #[inline]
    pub(super) fn drain(&mut self, full: bool) {
        while let Some(buffer) = &self.buffer
            && buffer.drains(self.engine.has_free_die(), full)
        {
            self.drain_next();
        }
    }

    /// Lets go of everything.
    pub(super) fn drain_all(&mut self) {
        while self.drain_next() {}
    }

    /// Places a program unit's worth of the oldest units in flash; `false` if there are none.
    fn drain_next(&mut self) -> bool {
        let Some(buffer) = &self.buffer else { return false };
        let mut left = buffer.program;
        let any = buffer.dirty.count() > 0;
        while let Some(length) = self.place_oldest::<false>()
            && length < left
        {
            left -= length;
        }
        any
    }

    /// Places the oldest unit, `AT_ONCE` without time; answers how many physical units it takes.
    #[inline]
    fn place_oldest<const AT_ONCE: bool>(&mut self) -> Option<u32> {
        let buffer = self.buffer.as_mut()?;
        let slot = buffer.dirty.oldest()?;
        let mut ahead = Some(slot);
        for _ in 0..AHEAD {
            ahead = ahead.and_then(|slot| buffer.dirty.newer(slot));
        }
        if let Some(ahead) = ahead {
            self.ftl.expect(buffer.dirty.lpn(ahead));
        }
        let (write, length) = (buffer.dirty.unit(slot), buffer.dirty.length_of(slot));
        let content = self.keep_versions.then(|| self.content_of_unit(write.lpn));
        if let Some(buffer) = &mut self.buffer {
            buffer.dirty.remove(slot);
        }
        debug_assert_eq!(length, self.ftl.length_after(&write), "the room it takes");
        self.engine.pressed = !self.waiting.is_empty();
        let ppn = if AT_ONCE {
            self.ftl.write(&write, &mut self.engine.untimed())
        } else {
            self.place(&write, length)
        };
        if let Some(content) = content {
            self.ftl.contents.replace(ppn, &content);
        }
        Some(length)
    }

    /// A write waits for room. A full buffer whose units all wait for their program units to fill would wait
    /// for ever.
    pub(super) fn unblock(&mut self) {
        self.drain(true);
        if self.engine.held_by_moves > 0 {
            return;
        }
        while !self.engine.epochs.any() {
            if !self.drain_next() {
                self.ftl.pad_all(&mut self.engine);
                return;
            }
        }
    }

    /// Host data has reached the flash: buffer room is free, flushes may be done.
    pub(super) fn programmed(&mut self, f: &Finished) {
        self.engine.epochs.ended(f.epoch);
        if self.buffer.is_none() && self.flushing.is_empty() {
            return;
        }
        self.releasing = Some(*f);
        while self.engine.epochs.flushed() {
            let index = self.flushing.pop_front().expect("an epoch ends with a flush");
            self.complete_at_once(index);
        }
        if let Some(buffer) = &mut self.buffer {
            buffer.used -= f.host_units;
            if !self.waiting.is_empty() {
                self.drain_waiting();
            }
            if self.purging == NONE {
                self.drain(false);
            }
        }
        self.releasing = None;
    }

    /// All that a protected buffer held when power went is programmed before the drive is ready.
    pub(super) fn program_protected(&mut self) {
        while self.place_oldest::<true>().is_some() {}
    }

    /// Whether a read of these sectors of a unit is answered from the buffer. What it does not hold of a
    /// unit that is not in flash are zeros.
    #[inline]
    pub(super) fn is_buffered(&self, lpn: u32, sectors: impl FnOnce() -> (u32, u32)) -> bool {
        let Some(buffer) = &self.buffer else { return false };
        let Some(slot) = buffer.dirty.find(lpn) else { return false };
        let (first, end) = sectors();
        self.ftl.lookup(lpn) == NONE || buffer.dirty.covers(slot, first..end)
    }

    /// Version of a sector, in the buffer or behind it.
    pub(super) fn version(&self, lpn: u32, sector: u32) -> u64 {
        let dirty = self.buffer.as_ref().map(|buffer| &buffer.dirty);
        let held = dirty.and_then(|dirty| dirty.version(dirty.find(lpn)?, sector));
        held.unwrap_or_else(|| self.ftl.content(lpn, sector))
    }

    /// Versions of all sectors of a unit.
    #[cold]
    fn content_of_unit(&self, lpn: u32) -> Vec<u64> {
        let sectors = (self.unit_bytes / crate::device::SECTOR) as u32;
        (0..sectors).map(|sector| self.version(lpn, sector)).collect()
    }

    /// The host is quiet from `now` on.
    pub(super) fn plan_drain(&mut self, now: u64) {
        if let Some(after) = self.buffer.as_ref().and_then(|buffer| buffer.idle_after) {
            self.calendar.set(DRAIN, now + after);
        }
    }

    /// The host is back.
    #[inline]
    pub(super) fn cancel_drain(&mut self) {
        if let Some(buffer) = &mut self.buffer
            && buffer.idle_after.is_some()
        {
            buffer.idle = false;
            self.calendar.set(DRAIN, NEVER);
        }
    }

    /// It has been quiet for long enough.
    pub(super) fn drain_idle(&mut self) {
        if let Some(buffer) = &mut self.buffer {
            buffer.idle = true;
            self.drain(false);
        }
    }
}
