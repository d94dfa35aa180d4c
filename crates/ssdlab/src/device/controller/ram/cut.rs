//! What a loss of power leaves of RAM.

use super::{Line, Ram};
use std::collections::VecDeque;

impl Ram {
    /// Power goes. With a battery, what is not below stays and has to go there, again if it was on its way; all else is
    /// gone. Answers the bytes lost that were nowhere else.
    pub fn cut(&mut self, battery: bool) -> u64 {
        let lost = if battery { 0 } else { self.dirty_bytes() };
        self.first_epoch = self.epoch();
        for slot in 0..self.lines.len() as u32 {
            let line = self.lines[slot as usize];
            match (self.is_pinned(slot), battery) {
                (true, true) => self.return_line(slot),
                (true, false) => self.lose_line(slot),
                (false, _) if line.valid != 0 => self.drop_line(slot),
                (false, _) => {}
            }
        }
        self.held = VecDeque::from([u64::from(self.pinned)]);
        lost
    }

    /// What of a line was on its way below has not arrived, as far as RAM knows.
    fn return_line(&mut self, slot: u32) {
        let epoch = self.first_epoch;
        let line = &mut self.lines[slot as usize];
        let flying = std::mem::take(&mut line.flying);
        line.dirty |= flying;
        (line.valid, line.epoch) = (line.dirty, epoch);
        let block = line.block;
        if flying != 0 {
            self.order.insert(slot, block);
            if let Some(links) = &mut self.by_age {
                links.push(0, slot);
            }
        }
    }

    /// A pinned line is lost.
    fn lose_line(&mut self, slot: u32) {
        let Line { block, dirty, flying, .. } = self.lines[slot as usize];
        if flying == 0 {
            self.order.remove(slot, block);
            if let Some(links) = &mut self.by_age {
                links.unlink(slot);
            }
        }
        self.pinned -= 1;
        self.dirty_sectors -= u64::from((dirty | flying).count_ones());
        (self.lines[slot as usize].dirty, self.lines[slot as usize].flying) = (0, 0);
        self.link(slot);
        self.drop_line(slot);
    }
}
