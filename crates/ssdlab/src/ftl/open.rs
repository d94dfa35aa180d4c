//! What units replace until they are programmed, and erases that wait for it.
//!
//! The old copy of a unit must outlive a loss of power until the new one is in flash. So a superblock is not
//! erased while something that replaces data in it is not programmed. What is in a closed program unit will
//! be soon: the erase is queued and held for as long (by the engine, in time). A program unit that is still
//! open can stay so for long: then the superblock is free as ever, but is erased when that program unit is closed; at
//! the latest when it is written again, and what is open then is padded. That does not depend on time, so that the
//! untimed path does the same. Likewise where room for a unit is made
//! out of the superblock that holds its old copy. Cost: constant for a unit; a look at the open program units for every erase.

use super::append::Piece;
use super::layout::Layout;
use super::space::{LANES, Lane, Space};
use crate::nand::{Cause, NONE};
use crate::persist::persistent;

/// A unit in a program unit that is not in flash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Placed {
    /// Logical unit that it belongs to, [`NONE`]: to none, or to that of the unit before it.
    pub lpn: u32,
    /// Where the copy begins that it replaces, [`NONE`]: there is none.
    pub from: u32,
    /// Physical units of the copy that it replaces.
    pub length: u16,
    /// It is new from the host, not moved.
    pub new: bool,
    /// The logical unit begins here.
    pub first: bool,
    /// Position in the order in which units were placed.
    pub order: u64,
}

impl Placed {
    /// Whether any erase may have to wait for it. What moves stays in its region, so where that is one die on its die.
    #[inline]
    pub fn may_hold(&self, layout: &Layout) -> bool {
        self.from < KEPT && (self.new || layout.dies_per_region > 1)
    }

    /// Whether the erase of the superblock that holds the copy which it replaces must wait until it, at `ppn`, has been
    /// programmed; otherwise the order of its die's work sees to that.
    pub fn holds(&self, layout: &Layout, ppn: u32) -> bool {
        if !self.may_hold(layout) {
            return false;
        }
        let die = layout.die_of(ppn);
        if self.length == 1 {
            return layout.die_of(self.from) != die;
        }
        let mut parts = layout.program_units(self.from, u32::from(self.length));
        parts.any(|(part, _)| layout.die_of(part) != die)
    }
}

/// In place of where a copy lies: in a block of the drive's own. So is kept the old copy of a unit where no
/// other superblock than the one that holds it is left to place the new one in. It costs nothing here: that
/// is rare, and needs a drive with hardly any spare.
pub(super) const KEPT: u32 = NONE - 1;

/// No unit.
pub const NOTHING: Placed =
    Placed { lpn: NONE, from: NONE, length: 0, new: false, first: false, order: 0 };

impl Default for Placed {
    fn default() -> Self {
        NOTHING
    }
}

persistent!(Placed { state { lpn, from, length, new, first, order } });

/// A unit of one physical unit that is copied within its die.
#[derive(Clone, Copy, Debug, Default)]
pub struct Copied {
    /// Logical unit.
    pub lpn: u32,
    /// Where it lay before.
    pub from: u32,
    /// Where it will lie, in the numbers of the drive.
    pub to: u32,
    /// As [`Placed::order`].
    pub order: u64,
}

persistent!(Copied { state { lpn, from, to, order } });

impl Copied {
    /// The same as any other unit that is placed.
    pub fn placed(self) -> Placed {
        let Copied { lpn, from, order, .. } = self;
        Placed { lpn, from, length: 1, new: false, first: true, order }
    }
}

/// Where logical units begin in a program unit: physical units.
pub fn first_units(first: u32, placed: &[Placed]) -> impl Iterator<Item = u32> + '_ {
    (first..).zip(placed).filter(|(_, unit)| unit.first).map(|(ppn, _)| ppn)
}

impl Space {
    /// What is to be known of the piece that is placed next.
    #[inline(always)]
    pub fn place(&mut self, piece: &Piece) -> Placed {
        let unit = piece.unit;
        self.order += 1;
        Placed {
            lpn: unit.lpn,
            from: unit.from,
            length: unit.length as u16,
            new: matches!(piece.cause, Cause::HostWrite | Cause::HostRead),
            first: piece.first,
            order: self.order,
        }
    }

    /// The first `units` of the program unit at a frontier.
    #[inline]
    pub fn placed(&self, region: u32, lane: Lane, units: u32) -> &[Placed] {
        let base = self.place_of(region, lane);
        &self.placed[base..base + units as usize]
    }

    /// A piece of so many units is `within` the program unit at a frontier.
    #[inline(always)]
    pub fn note(&mut self, region: u32, lane: Lane, within: u32, units: u32, placed: Placed) {
        let at = self.place_of(region, lane) + within as usize;
        let places = &mut self.placed[at..at + units as usize];
        places[0] = placed;
        places[1..].fill(NOTHING);
    }

    /// Where the program unit at a frontier begins among those that are not full.
    #[inline(always)]
    fn place_of(&self, region: u32, lane: Lane) -> usize {
        let per_program = self.layout.units_per_program() as usize;
        (region as usize * LANES.len() + lane as usize) * per_program
    }

    /// The units of program units that are not full: first unit, and what they are.
    pub fn open_programs(&self) -> impl Iterator<Item = (u32, Lane, u32, &[Placed])> {
        self.frontiers().filter_map(|(region, lane, frontier)| {
            let within = frontier.offset % self.layout.units_per_program();
            let first = self.layout.first_unit(frontier.superblock) + frontier.offset - within;
            (within > 0).then(|| (region, lane, first, self.placed(region, lane, within)))
        })
    }

    /// Whether a unit lies in a program unit that is not full.
    pub fn is_open(&self, ppn: u32) -> bool {
        let program = self.layout.program_of(ppn);
        self.open_programs().any(|(_, _, first, _)| self.layout.program_of(first) == program)
    }

    /// A frontier whose program unit is not full and replaces something in the superblock.
    pub fn replaces(&self, superblock: u32) -> Option<(u32, Lane)> {
        let units = self.layout.units_of(superblock);
        let inside = |p: &Placed| p.from < KEPT && units.contains(&p.from);
        let mut open = self.open_programs().filter(|(.., placed)| placed.iter().any(inside));
        open.next().map(|(region, lane, ..)| (region, lane))
    }

    /// Whether something that is not in a closed program unit replaces data in the superblock.
    pub fn is_replaced(&self, superblock: u32) -> bool {
        let several = self.layout.units_per_program() > 1;
        several && self.replaces(superblock).is_some() || self.next_replaces(superblock)
    }

    /// Whether what is about to be placed replaces something in the superblock.
    pub fn next_replaces(&self, superblock: u32) -> bool {
        let from = self.next.from;
        from < KEPT && self.layout.superblock_of(from) == superblock
    }

    /// The superblock, which is free, will be erased later, on whose behalf.
    pub fn put_off(&mut self, superblock: u32, cause: Cause) {
        if let Err(at) = self.find_late(superblock) {
            self.late.insert(at, (superblock, cause));
        }
    }

    /// Whether the superblock, which is free, is still to be erased.
    #[inline]
    pub fn is_late(&self, superblock: u32) -> bool {
        self.find_late(superblock).is_ok()
    }

    /// It is erased now; answers on whose behalf, if that was still to be done.
    pub fn take_late(&mut self, superblock: u32) -> Option<Cause> {
        self.find_late(superblock).ok().map(|at| self.late.remove(at).1)
    }

    #[inline]
    fn find_late(&self, superblock: u32) -> Result<usize, usize> {
        self.late.binary_search_by_key(&superblock, |&(late, _)| late)
    }
}
