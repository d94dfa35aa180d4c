//! Kinds of drives: what is asked of every unit, though it was decided when the drive was built, is compiled for each.

use super::{PageMap, SlcCache};

/// What units are like.
pub(super) trait Kind {
    /// They are packed, so that they have lengths.
    const PACKED: bool = false;
    /// Whole units, each of which is a program unit; and there is no more than a page map in RAM: neither an SLC cache nor
    /// parity, and versions are not kept.
    const BARE: bool = false;
}

/// Packed units.
pub(super) struct Packed;

/// Units that take one physical unit each.
pub(super) struct Whole;

/// The same where there is nothing else.
pub(super) struct Bare;

impl Kind for Packed {
    const PACKED: bool = true;
}

impl Kind for Whole {}

impl Kind for Bare {
    const BARE: bool = true;
}

impl PageMap {
    /// Physical units of a program unit.
    #[inline(always)]
    pub(super) fn per_program<K: Kind>(&self) -> u32 {
        if K::BARE { 1 } else { self.layout.units_per_program() }
    }

    /// The SLC cache, if there is one.
    #[inline(always)]
    pub(super) fn slc<K: Kind>(&self) -> Option<&SlcCache> {
        if K::BARE { None } else { self.cache.as_deref() }
    }
}
