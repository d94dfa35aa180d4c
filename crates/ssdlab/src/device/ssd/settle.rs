//! Bringing the flash to rest without letting idle work begin.

use super::{IDLE, Ssd};
use crate::device::Device;
use crate::units::NEVER;

impl Ssd {
    /// Lets the flash do what is queued, from `now` on; collection and folding of idle time stop
    /// between two steps and wait for another quiet while. Program units that are not full stay open.
    pub(super) fn settle_flash(&mut self, now: u64) -> u64 {
        debug_assert_eq!(self.in_flight, 0, "only a drive without commands comes to rest");
        let slot = self.slot(IDLE);
        self.engine.flash.calendar.set(slot, NEVER);
        self.idle_due = false;
        self.cancel_fold();
        while !self.engine.quiet() {
            let done = &mut Vec::new();
            let (time, _) = self.engine.flash.calendar.first();
            assert!(time != NEVER, "flash operations that never end");
            self.advance(time, done);
            debug_assert!(done.is_empty(), "nobody has asked for anything");
        }
        self.engine.now = self.engine.now.max(now);
        self.plan_idle();
        self.engine.now
    }
}
