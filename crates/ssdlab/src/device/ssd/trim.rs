//! TRIM: units leave the map at once, and their entries take the controller's time.
//!
//! One TRIM changes the map at a time, and a core is busy with it: commands that come behind find
//! it later. What a map that RAM does not hold takes from the flash comes on top.

use super::{Ssd, TRIM};
use crate::device::Command;
use crate::persist::persistent;
use crate::stats::{Part, Parts};
use std::collections::VecDeque;

/// The TRIMs that the controller works on.
pub(super) struct Trims {
    /// Time of a core for each unit.
    unit_time: u64,
    /// When the last of them will be done.
    free_at: u64,
    /// When each is done, in order.
    queue: VecDeque<(u64, u32)>,
}

persistent!(Trims { state { free_at, queue } built { unit_time } });

impl Trims {
    pub fn new(unit_time: u64) -> Self {
        Trims { unit_time, free_at: 0, queue: VecDeque::new() }
    }

    /// Those that are not done are never answered; the next begins when the drive is `ready`.
    pub fn power_cut(&mut self, ready: u64) {
        self.queue.clear();
        self.free_at = ready;
    }
}

impl Ssd {
    /// A TRIM whose turn it is.
    pub(super) fn trim(&mut self, index: u32) {
        let (now, command) = (self.engine.now, self.commands[index as usize].command);
        self.host.trims += 1;
        self.commands[index as usize].entered = now;
        let time = self.trim_units(&command, true) * self.trims.unit_time;
        self.engine.controller.occupy(now, time);
        let done = self.trims.free_at.max(now) + time;
        self.trims.free_at = done;
        if self.trims.queue.is_empty() {
            if done == now {
                return self.trim_done(index);
            }
            self.calendar.set(TRIM, done);
        }
        self.trims.queue.push_back((done, index));
    }

    /// The event of the TRIM at the head.
    pub(super) fn trim_event(&mut self) {
        let Some((_, index)) = self.trims.queue.pop_front() else { return };
        if let Some(&(next, _)) = self.trims.queue.front() {
            self.calendar.set(TRIM, next);
        }
        self.trim_done(index);
    }

    fn trim_done(&mut self, index: u32) {
        let active = &self.commands[index as usize];
        let after = self.engine.now - active.entered;
        let parts = Parts::of([
            (Part::Controller, active.handled - active.submitted + after),
            (Part::WriteLimit, active.limited),
            (Part::BufferWait, active.entered - active.handled - active.limited),
        ]);
        self.complete(index, parts);
    }

    /// Unmaps the units that lie wholly inside the command's range; answers how many those are.
    pub(super) fn trim_units(&mut self, command: &Command, timed: bool) -> u64 {
        let first = command.offset.div_ceil(self.unit_bytes);
        let end = (command.offset + command.len) / self.unit_bytes;
        if let Some(ahead) = &mut self.read_ahead {
            ahead.forget(first as u32, end as u32);
        }
        for lpn in first..end {
            if let Some(buffer) = &mut self.buffer {
                buffer.drop_unit(lpn as u32);
            }
            if timed {
                self.ftl.trim(lpn as u32, &mut self.engine);
            } else {
                self.ftl.trim(lpn as u32, &mut self.engine.untimed());
            }
        }
        end.saturating_sub(first)
    }
}
