//! RAM of a card: which sectors it holds, which of them are not yet below, and since when.
//!
//! A line is clean (in order of use), or pinned: it has dirty sectors, or some are on their way below.
//! Sectors that are written again while they are on their way are dirty once more; a line has one
//! command on its way at a time, so that older data never overtakes newer.
//!
//! *Epochs* tell what a flush waits for: each begins one, and is done when no line is pinned by what
//! became dirty before.

mod cut;
mod elevator;

use super::keys::{RamKeys, RamOrder};
use super::order::Order;
use super::table::Table;
use crate::cache::links::Links;
use crate::device::SECTOR;
use crate::persist::persistent;
use std::collections::VecDeque;

const NONE: u32 = u32::MAX;

#[derive(Clone, Copy, Debug, Default)]
struct Line {
    block: u64,
    /// Sectors whose content is here, one bit each, and of these the ones that are not below, and the
    /// ones on their way.
    valid: u64,
    dirty: u64,
    flying: u64,
    /// When the dirty sectors, and those on their way, became dirty.
    epoch: u64,
    flying_epoch: u64,
    /// Neighbours in the order of use.
    newer: u32,
    older: u32,
    /// Of what was written last.
    compressible: u8,
}
persistent!(Line {
    state { block, valid, dirty, flying, epoch, flying_epoch, newer, older, compressible }
});

/// A run of sectors: bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Run {
    pub offset: u64,
    pub len: u64,
}
persistent!(Run { state { offset, len } });

impl Run {
    pub fn end(&self) -> u64 {
        self.offset + self.len
    }

    pub fn overlaps(&self, other: &Run) -> bool {
        self.offset < other.end() && other.offset < self.end()
    }
}

#[derive(Default)]
pub(super) struct RamCounts {
    /// Bytes that the host wrote over before they went below.
    pub overwritten: u64,
    pub evictions: u64,
    pub dirty_bytes_max: u64,
}
persistent!(RamCounts { state { overwritten, evictions, dirty_bytes_max } });

/// See the module.
pub(super) struct Ram {
    line: u64,
    high: u32,
    destage_size: u64,
    lines: Vec<Line>,
    free: Vec<u32>,
    table: Table,
    /// Lines with dirty sectors of which none are on their way.
    order: Order,
    /// The same lines by the time since which they wait, where they go below in that order.
    by_age: Option<Links>,
    newest: u32,
    oldest: u32,
    pinned: u32,
    dirty_sectors: u64,
    /// What pins lines, by epoch from `first_epoch` on: a line counts for its dirty sectors, and
    /// again for those on their way.
    held: VecDeque<u64>,
    first_epoch: u64,
    /// Where the elevator goes on, a block.
    cursor: u64,
    pub counts: RamCounts,
}
persistent!(Ram {
    state {
        free, table, order, newest, oldest, pinned, dirty_sectors, held, first_epoch, cursor, counts,
    }
    parts { lines, by_age }
    built { line, high, destage_size }
});

impl Ram {
    pub fn new(keys: &RamKeys) -> Self {
        let lines = keys.lines() as u32;
        Ram {
            line: keys.line.0,
            high: keys.share(keys.dirty_high),
            destage_size: keys.destage_size.0,
            lines: vec![Line::default(); lines as usize],
            free: (0..lines).rev().collect(),
            table: Table::new(lines),
            order: Order::new(lines),
            by_age: (keys.destage_order == RamOrder::Age).then(|| Links::new(lines, 1)),
            newest: NONE,
            oldest: NONE,
            pinned: 0,
            dirty_sectors: 0,
            held: VecDeque::from([0]),
            first_epoch: 0,
            cursor: 0,
            counts: RamCounts::default(),
        }
    }

    /// Lines that are not below as they are here.
    pub fn pinned(&self) -> u32 {
        self.pinned
    }

    /// Bytes that would be lost with the RAM.
    pub fn dirty_bytes(&self) -> u64 {
        self.dirty_sectors * SECTOR
    }

    /// Lines that wait to go below and are not on their way.
    pub fn waiting(&self) -> u32 {
        self.order.len()
    }

    fn find(&self, block: u64) -> Option<u32> {
        self.table.find(block, |slot| self.lines[slot as usize].block)
    }

    /// Whether there is a line for the byte at `offset`.
    pub fn has_line(&self, offset: u64) -> bool {
        self.find(offset / self.line).is_some()
    }

    /// Whether the sector at `offset` is here.
    pub fn holds(&self, offset: u64) -> bool {
        let bit = 1 << (offset % self.line / SECTOR);
        self.find(offset / self.line).is_some_and(|slot| self.lines[slot as usize].valid & bit != 0)
    }

    /// A run with all of the lines that it touches.
    pub fn lines_of(&self, run: Run) -> Run {
        let offset = run.offset / self.line * self.line;
        Run { offset, len: run.end().next_multiple_of(self.line) - offset }
    }

    /// The part of a run in its first line: the block, the sectors, and the bytes.
    fn piece(&self, run: &Run) -> (u64, u64, u64) {
        let block = run.offset / self.line;
        let within = run.offset % self.line;
        let len = (self.line - within).min(run.len);
        (block, mask(within / SECTOR, len / SECTOR), len)
    }

    /// Calls `visit` with each line's part of a run: its slot if there is one, block, and sectors.
    fn pieces(&self, mut run: Run, mut visit: impl FnMut(Option<u32>, u64, u64)) {
        while run.len > 0 {
            let (block, sectors, len) = self.piece(&run);
            visit(self.find(block), block, sectors);
            run = Run { offset: run.offset + len, len: run.len - len };
        }
    }

    /// Whether all sectors are here; then they count as used.
    pub fn hit(&mut self, run: Run) -> bool {
        let mut all = true;
        self.pieces(run, |slot, _, sectors| {
            all &= slot.is_some_and(|slot| sectors & !self.lines[slot as usize].valid == 0);
        });
        if all {
            self.use_lines(run);
        }
        all
    }

    fn use_lines(&mut self, mut run: Run) {
        while run.len > 0 {
            let (block, _, len) = self.piece(&run);
            if let Some(slot) = self.find(block)
                && !self.is_pinned(slot)
            {
                self.unlink(slot);
                self.link(slot);
            }
            run = Run { offset: run.offset + len, len: run.len - len };
        }
    }

    /// What of a run must be read below: from the first sector that is not here to the last, cut where
    /// sectors lie between that are here alone.
    pub fn missing(&self, run: Run, out: &mut Vec<Run>) {
        let mut open: Option<Run> = None;
        let mut at = run;
        while at.len > 0 {
            let (block, _, len) = self.piece(&at);
            let line = self.find(block).map(|slot| self.lines[slot as usize]).unwrap_or_default();
            let first = at.offset % self.line / SECTOR;
            for nth in 0..len / SECTOR {
                let bit = 1 << (first + nth);
                let offset = at.offset + nth * SECTOR;
                if line.valid & bit == 0 {
                    let begin = open.map_or(offset, |run| run.offset);
                    open = Some(Run { offset: begin, len: offset + SECTOR - begin });
                } else if (line.dirty | line.flying) & bit != 0 {
                    out.extend(open.take());
                }
            }
            at = Run { offset: at.offset + len, len: at.len - len };
        }
        out.extend(open);
    }

    fn is_pinned(&self, slot: u32) -> bool {
        let line = &self.lines[slot as usize];
        line.dirty | line.flying != 0
    }

    fn unlink(&mut self, slot: u32) {
        let Line { newer, older, .. } = self.lines[slot as usize];
        match newer {
            NONE => self.newest = older,
            newer => self.lines[newer as usize].older = older,
        }
        match older {
            NONE => self.oldest = newer,
            older => self.lines[older as usize].newer = newer,
        }
    }

    fn link(&mut self, slot: u32) {
        let newest = self.newest;
        let line = &mut self.lines[slot as usize];
        (line.newer, line.older) = (NONE, newest);
        match newest {
            NONE => self.oldest = slot,
            newest => self.lines[newest as usize].newer = slot,
        }
        self.newest = slot;
    }

    /// Gives up a clean line.
    fn drop_line(&mut self, slot: u32) {
        self.unlink(slot);
        let block = self.lines[slot as usize].block;
        self.table.remove(block, slot, |slot| self.lines[slot as usize].block);
        self.lines[slot as usize] = Line::default();
        self.free.push(slot);
    }

    /// A line for a block that has none: a free one, or the clean one that was used the longest ago.
    fn take(&mut self, block: u64, lost: &mut Vec<Run>) -> Option<u32> {
        if self.free.is_empty() {
            let oldest = self.oldest;
            if oldest == NONE {
                return None;
            }
            let Line { block, .. } = self.lines[oldest as usize];
            lost.push(Run { offset: block * self.line, len: self.line });
            self.counts.evictions += 1;
            self.drop_line(oldest);
        }
        let slot = self.free.pop()?;
        self.lines[slot as usize] = Line { block, newer: NONE, older: NONE, ..Line::default() };
        self.table.insert(block, slot);
        Some(slot)
    }

    /// Takes the first line's part of a write; answers its bytes, or nothing where there is no room.
    /// What had to go for it is added to `lost`.
    pub fn absorb(&mut self, run: &Run, compressible: u8, lost: &mut Vec<Run>) -> Option<u64> {
        let (block, sectors, len) = self.piece(run);
        let known = self.find(block);
        let pinned = known.is_some_and(|slot| self.is_pinned(slot));
        if !pinned && self.pinned >= self.high {
            return None;
        }
        let slot = match known {
            Some(slot) => {
                if !pinned {
                    self.unlink(slot);
                }
                slot
            }
            None => self.take(block, lost)?,
        };
        let now = self.epoch();
        let line = &mut self.lines[slot as usize];
        let again = line.dirty & sectors;
        self.counts.overwritten += u64::from(again.count_ones()) * SECTOR;
        // What is on its way and written again is lost with the RAM once, not twice.
        self.dirty_sectors += u64::from((sectors & !line.dirty & !line.flying).count_ones());
        self.counts.dirty_bytes_max = self.counts.dirty_bytes_max.max(self.dirty_sectors * SECTOR);
        line.valid |= sectors;
        line.compressible = compressible;
        if line.dirty == 0 {
            line.epoch = now;
            *self.held.back_mut().expect("the present epoch") += 1;
            if line.flying == 0 {
                self.order.insert(slot, block);
                if let Some(links) = &mut self.by_age {
                    links.push(0, slot);
                }
            }
        }
        line.dirty |= sectors;
        self.pinned += u32::from(!pinned);
        Some(len)
    }

    /// Keeps what is below in RAM too, as far as there are lines; answers how far.
    pub fn keep(&mut self, mut run: Run, lost: &mut Vec<Run>) -> Run {
        let begin = run.offset;
        while run.len > 0 {
            let (block, sectors, len) = self.piece(&run);
            let known = self.find(block);
            let slot = known.or_else(|| self.take(block, lost));
            let Some(slot) = slot else { break };
            self.lines[slot as usize].valid |= sectors;
            if !self.is_pinned(slot) {
                if known.is_some() {
                    self.unlink(slot);
                }
                self.link(slot);
            }
            run = Run { offset: run.offset + len, len: run.len - len };
        }
        Run { offset: begin, len: run.offset - begin }
    }

    /// Forgets a run, of which nothing is dirty or on its way.
    pub fn forget(&mut self, run: Run) {
        if run.len / self.line > self.lines.len() as u64 {
            for slot in 0..self.lines.len() as u32 {
                let Line { block, valid, .. } = self.lines[slot as usize];
                let line = Run { offset: block * self.line, len: self.line };
                if valid != 0 && line.overlaps(&run) {
                    let first = run.offset.saturating_sub(line.offset) / SECTOR;
                    let end = (run.end() - line.offset).min(self.line) / SECTOR;
                    self.forget_sectors(slot, mask(first, end - first));
                }
            }
            return;
        }
        let mut rest = run;
        while rest.len > 0 {
            let (block, sectors, len) = self.piece(&rest);
            if let Some(slot) = self.find(block) {
                self.forget_sectors(slot, sectors);
            }
            rest = Run { offset: rest.offset + len, len: rest.len - len };
        }
    }

    fn forget_sectors(&mut self, slot: u32, sectors: u64) {
        let line = &mut self.lines[slot as usize];
        line.valid &= !sectors | line.dirty | line.flying;
        if line.valid == 0 {
            self.drop_line(slot);
        }
    }

    /// Asserts that the bookkeeping agrees with itself.
    pub fn verify(&self) {
        let (mut pinned, mut sectors, mut held, mut waiting, mut used) = (0, 0, 0, 0, 0);
        for (slot, line) in self.lines.iter().enumerate().filter(|(_, line)| line.valid != 0) {
            used += 1;
            assert_eq!(self.find(line.block), Some(slot as u32), "found by its block");
            assert_eq!((line.dirty | line.flying) & !line.valid, 0, "dirty and not here");
            pinned += u32::from(line.dirty | line.flying != 0);
            sectors += u64::from((line.dirty | line.flying).count_ones());
            held += u64::from(line.dirty != 0) + u64::from(line.flying != 0);
            waiting += u32::from(line.dirty != 0 && line.flying == 0);
        }
        assert_eq!(used + self.free.len(), self.lines.len(), "lines used and free");
        assert_eq!(pinned, self.pinned, "lines pinned");
        assert_eq!(sectors, self.dirty_sectors, "dirty sectors");
        assert_eq!(held, self.held.iter().sum::<u64>(), "lines held by epochs");
        assert_eq!(waiting, self.order.len(), "lines in order");
        let mut last = None;
        self.order.each(|slot, block| {
            assert!(last < Some(block) && self.lines[slot as usize].block == block, "in order");
            last = Some(block);
        });
        let (mut at, mut clean) = (self.newest, 0);
        while at != NONE {
            assert!(!self.is_pinned(at) && self.lines[at as usize].valid != 0, "clean");
            (at, clean) = (self.lines[at as usize].older, clean + 1);
        }
        assert_eq!(clean + pinned, used as u32, "clean lines");
    }
}

/// `count` bits from `first` on.
fn mask(first: u64, count: u64) -> u64 {
    if count >= 64 { u64::MAX } else { ((1 << count) - 1) << first }
}
