//! Kinds of drives: what is asked of every unit, though it was decided when the drive was built, is compiled for each.

use super::{PageMap, Sink, SlcCache, UnitWrite};

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
    /// Places one unit of host data; answers its first physical unit.
    #[inline(always)]
    pub fn write<S: Sink>(&mut self, write: &UnitWrite, sink: &mut S) -> u32 {
        if self.bare && write.sectors == self.sectors_per_unit {
            self.write_unit::<S, Bare>(*write, sink)
        } else if self.map.packs() {
            self.write_packed(*write, sink)
        } else {
            self.write_unit::<S, Whole>(*write, sink)
        }
    }

    /// By itself, so that the other way has all registers.
    #[inline(never)]
    fn write_packed<S: Sink>(&mut self, write: UnitWrite, sink: &mut S) -> u32 {
        self.write_unit::<S, Packed>(write, sink)
    }

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
