//! What of RAM goes below next, by address and one way round or by age, and when enough of it is there.

use super::{Ram, Run, mask};
use crate::device::SECTOR;

impl Ram {
    pub(super) fn epoch(&self) -> u64 {
        self.first_epoch + self.held.len() as u64 - 1
    }

    /// Begins a new epoch; answers the one before, for [`Ram::is_clean_of`].
    pub fn begin_epoch(&mut self) -> u64 {
        let epoch = self.epoch();
        self.held.push_back(0);
        self.settle_epochs();
        epoch
    }

    fn settle_epochs(&mut self) {
        while self.held.len() > 1 && self.held[0] == 0 {
            self.held.pop_front();
            self.first_epoch += 1;
        }
    }

    /// Whether all is below that was written up to an epoch.
    pub fn is_clean_of(&self, epoch: u64) -> bool {
        self.first_epoch > epoch
    }

    fn release(&mut self, epoch: u64) {
        self.held[(epoch - self.first_epoch) as usize] -= 1;
        self.settle_epochs();
    }

    /// Whether something of a run waits to go below.
    pub fn has_waiting(&self, run: &Run) -> bool {
        let found = self.order.first_from(run.offset / self.line);
        found.is_some_and(|slot| self.lines[slot as usize].block * self.line < run.end())
    }

    /// Takes the next run to be written below: of `wanted` if something of it waits, or where the
    /// elevator stands, or from the oldest. Answers how many lines it is from, and how much it would shrink on the average.
    pub fn next_run(&mut self, wanted: Option<Run>) -> Option<(Run, u64, u8)> {
        let of_wanted = wanted.filter(|run| self.has_waiting(run));
        let first = match (of_wanted, &self.by_age) {
            (None, Some(links)) => links.oldest_that(0, |_| true)?,
            _ => {
                let from = of_wanted.map_or(self.cursor, |run| run.offset / self.line);
                self.order.first_from(from).or_else(|| self.order.first_from(0))?
            }
        };
        let line = &self.lines[first as usize];
        let offset = line.block * self.line + u64::from(line.dirty.trailing_zeros()) * SECTOR;
        let limit = (offset / self.destage_size + 1) * self.destage_size;
        let mut run = Run { offset, len: 0 };
        let (mut count, mut shrinks) = (0, 0);
        let mut slot = first;
        loop {
            let (block, sectors) = self.start(slot, run.end(), limit);
            let bytes = u64::from(sectors.count_ones()) * SECTOR;
            run.len += bytes;
            shrinks += u64::from(self.lines[slot as usize].compressible) * bytes;
            count += 1;
            let end = (block + 1) * self.line;
            if run.end() < end || end >= limit {
                break;
            }
            match self.order.first_from(block + 1) {
                Some(next) if self.begins_at(next, end) => slot = next,
                _ => break,
            }
        }
        if of_wanted.is_none() {
            self.cursor = run.end().div_ceil(self.line);
        }
        Some((run, count, (shrinks / run.len) as u8))
    }

    /// Whether the dirty sectors of a line begin with its first, at `offset`.
    fn begins_at(&self, slot: u32, offset: u64) -> bool {
        let line = &self.lines[slot as usize];
        line.block * self.line == offset && line.dirty & 1 != 0
    }

    /// Sends the dirty sectors of a line from `from` on their way, as far as they follow each other
    /// and not beyond `limit`; its block and they.
    fn start(&mut self, slot: u32, from: u64, limit: u64) -> (u64, u64) {
        let line = &mut self.lines[slot as usize];
        let first = from % self.line / SECTOR;
        let follow = u64::from((!(line.dirty >> first)).trailing_zeros());
        let room = (limit - from) / SECTOR;
        let sectors = line.dirty & mask(first, follow.min(room));
        debug_assert!(sectors != 0 && line.flying == 0, "nothing to send");
        (line.flying, line.flying_epoch) = (sectors, line.epoch);
        line.dirty &= !sectors;
        let block = line.block;
        if line.dirty != 0 {
            let epoch = line.epoch;
            self.held[(epoch - self.first_epoch) as usize] += 1;
        }
        self.order.remove(slot, block);
        if let Some(links) = &mut self.by_age {
            links.unlink(slot);
        }
        (block, sectors)
    }

    /// A run has arrived below.
    pub fn landed(&mut self, mut run: Run) {
        while run.len > 0 {
            let (block, sectors, len) = self.piece(&run);
            let slot = self.find(block).expect("a line on its way stays");
            let line = &mut self.lines[slot as usize];
            debug_assert_eq!(line.flying, sectors, "another command was on its way");
            self.dirty_sectors -= u64::from((sectors & !line.dirty).count_ones());
            line.flying = 0;
            let (epoch, again) = (line.flying_epoch, line.dirty != 0);
            if again {
                self.order.insert(slot, block);
                if let Some(links) = &mut self.by_age {
                    links.push(0, slot);
                }
            } else {
                self.pinned -= 1;
                self.link(slot);
            }
            self.release(epoch);
            run = Run { offset: run.offset + len, len: run.len - len };
        }
    }
}
