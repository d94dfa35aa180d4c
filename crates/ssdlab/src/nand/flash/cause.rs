//! On whose behalf dies work, and how long for what the host did not ask for, so that waits can be
//! told apart.

use super::{Die, Flash, NONE};

/// On whose behalf a die works.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[repr(usize)]
pub enum Cause {
    /// Host reads, and the reads of read-modify-write.
    #[default]
    HostRead,
    /// Host writes.
    HostWrite,
    /// Garbage collection, its erases included.
    Collection,
    /// Wear levelling.
    Wear,
    /// Translation units of a cached map: fetched, written back, collected.
    Map,
    /// Merging of the fragments of an extent map.
    Merge,
    /// Folding of the SLC cache, its erases included.
    Fold,
    /// Parity of the stripes inside the drive.
    Parity,
}
pub(super) const CAUSES: usize = 8;

/// Time that a die has worked on the drive's own behalf, or stood still because the head of its
/// stream, which is that, waited for data.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct OwnWork(pub [u64; OWN]);

/// Kinds of what is not for the host.
const OWN: usize = 4;

/// By cause, which of [`OwnWork`] its time is: the last one is what the host asked for.
const KIND: [u8; CAUSES] = [HOST as u8, HOST as u8, 0, 0, 1, 1, 3, 2];
const HOST: usize = 4;

impl Cause {
    /// Whether it is not what the host asked for.
    pub(super) fn is_own(self) -> bool {
        usize::from(KIND[self as usize]) != HOST
    }
}

impl OwnWork {
    /// Which of the drive's own causes it is cannot be foretold, so that this does not branch on it; all are written, as they
    /// are read together soon, which would wait for a single one to reach the cache.
    #[inline]
    pub fn add(&mut self, cause: Cause, time: u64) {
        let kind = usize::from(KIND[cause as usize]);
        if kind == HOST {
            return;
        }
        *self = OwnWork(std::array::from_fn(|k| self.0[k] + if k == kind { time } else { 0 }));
    }
    #[inline]
    pub fn plus(self, other: OwnWork) -> Self {
        OwnWork(std::array::from_fn(|kind| self.0[kind] + other.0[kind]))
    }
    #[inline]
    pub fn since(self, earlier: OwnWork) -> Self {
        OwnWork(std::array::from_fn(|kind| self.0[kind] - earlier.0[kind]))
    }
    /// Garbage collection and wear levelling.
    #[inline]
    pub fn collection(&self) -> u64 {
        self.0[0]
    }
    /// The map: translation units and merging.
    #[inline]
    pub fn map(&self) -> u64 {
        self.0[1]
    }
    /// Parity.
    #[inline]
    pub fn parity(&self) -> u64 {
        self.0[2]
    }
    /// Folding of the SLC cache.
    #[inline]
    pub fn fold(&self) -> u64 {
        self.0[3]
    }
}

impl Die {
    /// The die has worked on the current operation since the last change.
    #[inline]
    pub(super) fn worked(&mut self, now: u64) {
        self.busy[self.cause as usize] += now - self.since;
        self.own.add(self.cause, now - self.since);
    }
}

impl Flash {
    /// What the die has done on the drive's own behalf up to `now`, its planes included.
    #[inline(always)]
    pub(super) fn own_work(&self, die: u32, now: u64) -> OwnWork {
        let own = self.own_of_array(die, now);
        if self.beside.is_empty() { own } else { own.plus(self.own_of_planes(die, now)) }
    }

    /// The same of what takes the whole die.
    #[inline(always)]
    pub(super) fn own_of_array(&self, die: u32, now: u64) -> OwnWork {
        let die = &self.dies[die as usize];
        let mut own = die.own;
        if die.current != NONE {
            own.add(die.cause, now - die.since);
        } else if let Some(cause) = die.stuck {
            own.add(cause, now - die.since);
        }
        own
    }
}
