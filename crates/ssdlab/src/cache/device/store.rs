//! What is in the cache: frames, their valid and dirty sub-blocks, dirty blocks in order.

use super::keys::{CacheKeys, DestageOrder};
use crate::cache::links::Links;
use crate::cache::members::Members;
use crate::cache::{Frames, Parameters, REPLACEMENTS};
use crate::device::Build;
use crate::error::{Error, Result};
use crate::persist::persistent;

/// See the module.
pub struct Store {
    pub frames: Box<dyn Frames>,
    /// Valid and dirty sub-blocks of each frame; dirty ones are valid.
    pub valid: Vec<u64>,
    pub dirty: Vec<u64>,
    /// The block that each frame holds, or held last: the policy asks by frame, what is under way is known by block.
    names: Vec<u64>,
    /// Blocks with dirty sub-blocks, and their frames by the time at which they became dirty.
    by_address: Members,
    by_age: Option<Links>,
    /// Dirty sub-blocks now, and the most there were.
    pub dirty_now: u64,
    pub dirty_most: u64,
    pub evictions: u64,
    /// The device is gone.
    pub dead: bool,
}
persistent!(Store {
    state { frames, valid, dirty, names, by_address, dirty_now, dirty_most, evictions, dead }
    parts { by_age }
});

impl Store {
    /// An empty store of so many frames before a pool of `blocks` blocks.
    pub fn new(keys: &CacheKeys, frames: u32, blocks: u64, build: &Build) -> Result<Self> {
        let name = keys.replacement.as_str();
        let at = |error: Error| match error {
            Error::Rig { .. } => error,
            other => Error::rig("replacement", other.to_string()),
        };
        let entry = REPLACEMENTS.find(name).map_err(at)?;
        let stream = build.stream("replacement");
        let by_age = keys.destage_order == DestageOrder::Age;
        Ok(Store {
            frames: entry.build.online(name, frames, &Parameters::default(), stream).map_err(at)?,
            valid: vec![0; frames as usize],
            dirty: vec![0; frames as usize],
            names: vec![0; frames as usize],
            by_address: Members::new(blocks),
            by_age: by_age.then(|| Links::new(frames, 1)),
            dirty_now: 0,
            dirty_most: 0,
            evictions: 0,
            dead: false,
        })
    }

    /// The frame of a block.
    #[inline]
    pub fn find(&self, key: u64) -> Option<u32> {
        if self.dead { None } else { self.frames.find(key) }
    }

    /// Valid and dirty sub-blocks of a block.
    #[inline]
    pub fn masks(&self, key: u64) -> (u64, u64) {
        self.find(key).map_or((0, 0), |frame| self.masks_of(frame))
    }

    /// The same of a frame in use.
    #[inline]
    pub fn masks_of(&self, frame: u32) -> (u64, u64) {
        (self.valid[frame as usize], self.dirty[frame as usize])
    }

    /// The frame of a block, with its masks.
    #[inline]
    pub fn look(&self, key: u64) -> (Option<u32>, (u64, u64)) {
        let frame = self.find(key);
        (frame, frame.map_or((0, 0), |frame| self.masks_of(frame)))
    }

    /// A frame was used again; answers the one that this costs its place, which is clean and of which `may` holds.
    pub fn hit(&mut self, frame: u32, mut may: impl FnMut(u64) -> bool) -> Option<u32> {
        let Store { frames, dirty, names, .. } = self;
        let may = &mut |slot: u32| dirty[slot as usize] == 0 && may(names[slot as usize]);
        let freed = frames.hit(frame, may)?;
        self.valid[freed as usize] = 0;
        self.evictions += 1;
        Some(freed)
    }

    /// A frame for a block that has none; one that is clean, and of which `may` holds, gives way.
    pub fn admit(&mut self, key: u64, mut may: impl FnMut(u64) -> bool) -> Option<u32> {
        if self.dead {
            return None;
        }
        let Store { frames, dirty, names, .. } = self;
        let may = &mut |slot: u32| dirty[slot as usize] == 0 && may(names[slot as usize]);
        let admitted = frames.admit(key, may)?;
        names[admitted.slot as usize] = key;
        self.valid[admitted.slot as usize] = 0;
        self.evictions += u64::from(admitted.evicted.is_some());
        Some(admitted.slot)
    }

    /// Sets which sub-blocks of a frame are valid and dirty.
    pub fn set(&mut self, key: u64, frame: u32, valid: u64, dirty: u64) {
        let before = std::mem::replace(&mut self.dirty[frame as usize], dirty);
        self.valid[frame as usize] = valid;
        self.dirty_now += u64::from(dirty.count_ones());
        self.dirty_now -= u64::from(before.count_ones());
        self.dirty_most = self.dirty_most.max(self.dirty_now);
        match (before != 0, dirty != 0) {
            (false, true) => {
                self.by_address.insert(key);
                self.frames.pin(frame, true);
                if let Some(links) = &mut self.by_age {
                    links.push(0, frame);
                }
            }
            (true, false) => {
                self.by_address.remove(key);
                self.frames.pin(frame, false);
                if let Some(links) = &mut self.by_age {
                    links.unlink(frame);
                }
            }
            _ => {}
        }
    }

    /// A dirty block of which `may` holds: the next one from `cursor` on and around, or the oldest.
    pub fn next_dirty(&self, cursor: u64, mut may: impl FnMut(u64) -> bool) -> Option<u64> {
        if let Some(links) = &self.by_age {
            let key = |slot: u32| self.frames.key(slot).expect("a dirty frame is in use");
            return links.oldest_that(0, |slot| may(key(slot))).map(key);
        }
        self.by_address.around(cursor, may)
    }

    /// Whether a block has dirty sub-blocks.
    pub fn is_dirty(&self, key: u64) -> bool {
        self.by_address.has(key)
    }

    /// Frees the frame of a block without valid sub-blocks.
    #[inline]
    pub fn free_if_empty(&mut self, key: u64) {
        if let Some(frame) = self.find(key)
            && self.valid[frame as usize] == 0
        {
            self.frames.remove(frame);
        }
    }

    /// Frees everything.
    pub fn clear(&mut self) {
        for frame in 0..self.frames.capacity() {
            if let Some(key) = self.frames.key(frame) {
                self.set(key, frame, 0, 0);
                self.frames.remove(frame);
            }
        }
    }

    /// The device is gone: nothing is cached any more.
    pub fn die(&mut self) {
        self.clear();
        self.dead = true;
    }

    /// Asserts that it agrees with itself.
    pub fn verify(&self) {
        let mut sum = 0;
        for frame in 0..self.frames.capacity() {
            let (valid, dirty) = (self.valid[frame as usize], self.dirty[frame as usize]);
            sum += u64::from(dirty.count_ones());
            match self.frames.key(frame) {
                Some(key) => {
                    assert_eq!(dirty & !valid, 0, "block {key} is dirty where it is not valid");
                    assert_eq!(dirty != 0, self.by_address.has(key), "block {key}");
                }
                None => assert_eq!(dirty, 0, "frame {frame} is dirty and free"),
            }
        }
        assert_eq!(sum, self.dirty_now);
    }
}
