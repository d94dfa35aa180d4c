//! Bringing the flash to rest without letting idle work begin.

use super::{IDLE, Ssd};
use crate::device::Device;
use crate::nand::NONE;
use crate::units::NEVER;

impl Ssd {
    /// Lets the flash do what is queued, from `now` on; collection and folding of idle time stop
    /// between two steps and wait for another quiet while. The write buffer lets go of everything; program
    /// units that are not full stay open.
    pub(super) fn settle_flash(&mut self, now: u64) -> u64 {
        debug_assert_eq!(self.in_flight, 0, "only a drive without commands comes to rest");
        self.calendar.set(IDLE, NEVER);
        self.idle_due = false;
        self.cancel_fold();
        self.cancel_drain();
        self.work_off(now);
        (self.engine.now, self.engine.flash.acting) = (self.engine.now.max(now), NONE);
        self.drain_all();
        self.work_off(NEVER);
        self.plan_idle();
        self.engine.now
    }

    /// What is queued, as far as it is done by `limit`.
    fn work_off(&mut self, limit: u64) {
        while !self.engine.quiet() {
            let done = &mut Vec::new();
            let time = self.next_due();
            assert!(time != NEVER, "flash operations that never end");
            if time > limit {
                return;
            }
            self.advance(time, done);
            debug_assert!(done.is_empty(), "nobody has asked for anything");
        }
    }
}
