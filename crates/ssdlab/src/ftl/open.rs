//! What units replace until they are programmed, and erases that wait for it.
//!
//! The old copy of a unit must outlive a loss of power until the new one is in flash. So a superblock is not
//! erased while something that replaces data in it is not programmed. What is in a closed program unit will
//! be soon: the erase is queued and held for as long (by the engine, in time). A program unit that is still
//! open can stay so for long: then the superblock is free as ever, but is erased no sooner than it is written
//! again, and what is open then is padded. That does not depend on time, so that the untimed path does the
//! same. Likewise where room for a unit is made
//! out of the superblock that holds its old copy. Cost: constant for a unit; a look at the open program units for every erase.

use super::Sink;
use super::append::{Piece, Unit};
use super::layout::Layout;
use super::page_map::PageMap;
use super::region::{LANES, Lane};
use crate::nand::{Cause, NONE};
use crate::persist::persistent;

/// TRIMs that are remembered until they are durable: a page of 4 KiB with eight bytes for each.
const TRIMS: usize = 512;

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
    /// Whether the erase of the superblock that holds the copy which it replaces must wait until it, at `ppn`, has been
    /// programmed; otherwise the order of its die's work sees to that.
    pub fn holds(&self, layout: &Layout, ppn: u32) -> bool {
        // What moves stays in its region, so where that is one die on its die.
        if self.from >= KEPT || !self.new && layout.dies_per_region == 1 {
            return false;
        }
        let die = layout.die_of(ppn);
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

/// A unit that was trimmed: where it lay, in how many physical units, and how often its superblock had been
/// erased.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Trimmed {
    pub lpn: u32,
    pub ppn: u32,
    pub length: u32,
    pub erases: u32,
}

/// What is in program units that are not full, and what follows from it.
#[derive(Debug)]
pub(super) struct OpenUnits {
    /// By region, frontier and place in the program unit.
    placed: Vec<Placed>,
    /// Free superblocks that are erased when they are written again, and on whose behalf.
    late: Vec<(u32, Cause)>,
    /// TRIMs that are not durable yet.
    pub trimmed: Vec<Trimmed>,
    /// Number in the drive of the first superblock.
    pub first_superblock: u32,
    /// Pieces placed so far.
    order: u64,
    /// The unit of the host that is about to be placed, once there is room.
    pub next: Unit,
    /// The run of copies at hand, empty between two; kept for its memory.
    pub run: Vec<(u32, Placed)>,
    /// Likewise what it is made of: where units lie, and which.
    pub moving: Vec<(u32, u32)>,
}

persistent!(Placed { state { lpn, from, length, new, first, order } });
persistent!(Trimmed { state { lpn, ppn, length, erases } });
persistent!(OpenUnits {
    state { late, order, trimmed }
    parts { placed }
    built { first_superblock, next, run, moving }
});

/// Where logical units begin in a program unit: physical units.
pub fn beginnings(first: u32, placed: &[Placed]) -> impl Iterator<Item = u32> + '_ {
    (first..).zip(placed).filter(|(_, unit)| unit.first).map(|(ppn, _)| ppn)
}

impl OpenUnits {
    pub fn new(layout: &Layout) -> Self {
        let lanes = layout.regions as usize * LANES.len();
        OpenUnits {
            placed: vec![NOTHING; lanes * layout.units_per_program() as usize],
            late: Vec::new(),
            order: 0,
            trimmed: Vec::new(),
            first_superblock: 0,
            next: Unit::new(NONE),
            run: Vec::new(),
            moving: Vec::new(),
        }
    }

    /// Whether the superblock, which is free, is still to be erased.
    pub fn is_late(&self, superblock: u32) -> bool {
        self.late.iter().any(|&(late, _)| late == superblock)
    }

    /// Nothing holds data any more, and everything is erased.
    pub fn purge(&mut self) {
        self.late.clear();
        self.trimmed.clear();
    }

    /// First place of a frontier.
    #[inline(always)]
    fn base(region: u32, lane: Lane, per_program: u32) -> usize {
        (region as usize * LANES.len() + lane as usize) * per_program as usize
    }
}

impl PageMap {
    /// The same, still empty, whose superblocks are numbered from there in the drive.
    pub(super) fn with_first_superblock(mut self, first: u32) -> Self {
        self.open.first_superblock = first;
        self
    }

    /// What is to be known of the piece that is placed next.
    #[inline(always)]
    pub(super) fn placed_next(&mut self, piece: &Piece) -> Placed {
        let unit = piece.unit;
        self.open.order += 1;
        Placed {
            lpn: unit.lpn,
            from: unit.from,
            length: unit.length as u16,
            new: matches!(piece.cause, Cause::HostWrite | Cause::HostRead),
            first: piece.first,
            order: self.open.order,
        }
    }

    /// A piece of so many units is `within` the program unit at a frontier.
    #[inline(always)]
    pub(super) fn note(
        &mut self,
        region: u32,
        lane: Lane,
        within: u32,
        units: u32,
        placed: Placed,
    ) {
        let at = OpenUnits::base(region, lane, self.layout.units_per_program()) + within as usize;
        let places = &mut self.open.placed[at..at + units as usize];
        places[0] = placed;
        places[1..].fill(NOTHING);
    }

    /// The first `units` of the program unit at a frontier.
    #[inline]
    pub(super) fn placed(&self, region: u32, lane: Lane, units: u32) -> &[Placed] {
        let base = OpenUnits::base(region, lane, self.layout.units_per_program());
        &self.open.placed[base..base + units as usize]
    }

    /// The units of program units that are not full: first unit, and what they are.
    pub(super) fn open_programs(&self) -> impl Iterator<Item = (u32, Lane, u32, &[Placed])> {
        let per_program = self.layout.units_per_program();
        let lanes = (0..self.layout.regions).flat_map(|r| LANES.map(|lane| (r, lane)));
        lanes.filter_map(move |(region, lane)| {
            let frontier = self.regions[region as usize].frontier(lane);
            let within = frontier.offset % per_program;
            let open = frontier.superblock != NONE && within > 0;
            open.then(|| {
                let first = self.layout.first_unit(frontier.superblock) + frontier.offset - within;
                (region, lane, first, self.placed(region, lane, within))
            })
        })
    }

    /// Program units of superblocks that are being written, up to where that has come.
    pub fn programs_of_open_superblocks(&self) -> u64 {
        let per_program = self.layout.units_per_program();
        let frontiers = self.regions.iter().flat_map(|r| LANES.map(|lane| *r.frontier(lane)));
        let open = frontiers.filter(|frontier| frontier.superblock != NONE);
        open.map(|frontier| u64::from(frontier.offset.div_ceil(per_program))).sum()
    }

    /// Whether a unit lies in a program unit that is not full.
    pub(super) fn is_open(&self, ppn: u32) -> bool {
        let program = self.layout.program_of(ppn);
        self.open_programs().any(|(_, _, first, _)| self.layout.program_of(first) == program)
    }

    /// A frontier whose program unit is not full and replaces something in the superblock.
    fn replaces(&self, superblock: u32) -> Option<(u32, Lane)> {
        let first = self.layout.first_unit(superblock);
        let units = self.layout.units_per_superblock();
        let inside = |p: &Placed| p.from != NONE && p.from.wrapping_sub(first) < units;
        let mut open = self.open_programs().filter(|(.., placed)| placed.iter().any(inside));
        open.next().map(|(region, lane, ..)| (region, lane))
    }

    /// Whether what is about to be placed replaces something in the superblock.
    pub(super) fn replaces_next(&self, superblock: u32) -> bool {
        let from = self.open.next.from;
        from < KEPT && self.layout.superblock_of(from) == superblock
    }

    /// Takes a free superblock of a region for a frontier: the one that wear levelling chooses or that became free
    /// first, another one than what is about to be placed replaces something in, if there is one.
    #[cold]
    pub(super) fn take_free(&mut self, region: u32, lane: Lane) -> u32 {
        let free = &self.regions[region as usize].free;
        let other = |&(_, superblock): &(usize, u32)| !self.replaces_next(superblock);
        let mut suitable = free.iter().copied().enumerate().filter(other);
        let at = match &self.wear {
            None => suitable.next().map(|(at, _)| at),
            Some(wear) => wear.choose(&self.blocks, &mut suitable, lane == Lane::Wear),
        };
        self.free -= 1;
        self.regions[region as usize].free.remove(at.unwrap_or(0)).expect("a reserve superblock")
    }

    /// Erases a superblock of which nothing is valid, at once or when it is written again.
    pub(super) fn erase_in_turn<S: Sink>(&mut self, superblock: u32, cause: Cause, sink: &mut S) {
        let open = self.layout.units_per_program() > 1 && self.replaces(superblock).is_some();
        if open || self.replaces_next(superblock) {
            self.open.late.push((superblock, cause));
        } else {
            self.erase_now(superblock, cause, sink);
        }
    }

    fn erase_now<S: Sink>(&mut self, superblock: u32, cause: Cause, sink: &mut S) {
        let region = self.layout.region_of(superblock);
        for k in 0..self.layout.dies_per_region {
            let die = self.layout.die_in_region(region, k);
            sink.erase(die, self.open.first_superblock + superblock, cause);
        }
        self.blocks.erases[superblock as usize] += 1;
        self.counters.superblocks_erased += 1;
    }

    /// The superblock, which was free, is about to be written.
    #[inline]
    pub(super) fn see_to_erase<S: Sink>(&mut self, superblock: u32, sink: &mut S) {
        if !self.open.late.is_empty() {
            self.erase_late(superblock, sink);
        }
    }

    #[cold]
    fn erase_late<S: Sink>(&mut self, superblock: u32, sink: &mut S) {
        let Some(at) = self.open.late.iter().position(|&(late, _)| late == superblock) else {
            return;
        };
        while let Some((region, lane)) = self.replaces(superblock) {
            self.pad(region, lane, lane.cause(), sink);
        }
        if self.replaces_next(superblock) {
            let Unit { lpn, from, .. } = self.open.next;
            if let Some(sectors) = self.unit_content(from) {
                self.keep_content(lpn, sectors);
            }
            self.open.next.from = KEPT;
        }
        let (_, cause) = self.open.late.remove(at);
        self.erase_now(superblock, cause, sink);
    }

    /// A unit was trimmed that lay at `ppn`.
    #[inline]
    pub(super) fn note_trim(&mut self, lpn: u32, ppn: u32) {
        if self.open.trimmed.len() == TRIMS {
            self.trims_are_durable();
        }
        let erases = self.blocks.erases[self.layout.superblock_of(ppn) as usize];
        let length = self.length(lpn);
        self.open.trimmed.push(Trimmed { lpn, ppn, length, erases });
    }

    /// A loss of power does not undo the TRIMs so far.
    pub fn trims_are_durable(&mut self) {
        self.open.trimmed.clear();
    }
}
