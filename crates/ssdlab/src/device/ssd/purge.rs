//! Purge: back to the state fresh out of the box.

use super::{PURGE, Ssd};
use crate::ftl::PageMap;

impl Ssd {
    /// Purges when everything under way has ended.
    pub(super) fn try_purge(&mut self) {
        if self.engine.quiet() && self.engine.open == 0 {
            let erases = self.purge();
            let time = self.engine.now + u64::from(erases) * self.t_erase;
            self.calendar.set(PURGE, time);
        }
    }

    /// Erases every superblock in use; answers the number of erases on the busiest die.
    pub(super) fn purge(&mut self) -> u32 {
        if let Some(ahead) = &mut self.read_ahead {
            ahead.forget_all();
        }
        if let Some(buffer) = &mut self.buffer {
            buffer.drop_all();
        }
        let erased =
            |ftl: &PageMap| ftl.counters.superblocks_erased + ftl.map_counters().superblocks_erased;
        let before = erased(&self.ftl);
        let most = self.ftl.purge();
        let erased = erased(&self.ftl) - before;
        self.engine.untimed.erases += erased * u64::from(self.ftl.layout.dies_per_region);
        most
    }
}
