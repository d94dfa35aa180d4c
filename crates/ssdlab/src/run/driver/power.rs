//! Losses of power during a run. The host goes on: what was not answered is sent again at once, and waits until the
//! device is back, as Linux does after the reset of a SCSI or SATA link. So every I/O ends once, without an error, and its
//! latency counts from when it was first sent.

use super::{Driver, Slot};
use crate::device::{Command, Completion, Missed};
use crate::run::process::Process;
use crate::stats::{Part, Parts};
use crate::units::NEVER;

/// Losses of power in the order in which they are taken: from the end.
pub(super) fn planned(times: &[u64]) -> Vec<u64> {
    let mut times = times.to_vec();
    times.sort_unstable_by(|a, b| b.cmp(a));
    times.dedup();
    times
}

/// Where the time of an I/O went that may have been sent again.
#[cold]
pub(super) fn waited(slot: &Slot, completion: &Completion) -> Parts {
    let mut parts = completion.parts.clone();
    parts.add(Part::Controller, slot.sent - slot.issued);
    parts
}

impl Driver<'_> {
    /// When power is lost next.
    #[inline]
    pub(super) fn next_power_loss(&self) -> u64 {
        self.power_losses.last().copied().unwrap_or(NEVER)
    }

    /// Power is lost now.
    pub(super) fn lose_power(&mut self, now: u64) {
        self.power_losses.pop();
        self.device.power_cut(now, &mut Missed::default());
        // What was not yet durable is written again.
        self.processes.iter_mut().flat_map(|p| &mut p.watch).for_each(|w| w.flushed.clear());
        let mut in_flight = vec![true; self.slots.len()];
        let free = self.processes.iter().flat_map(|process| &process.free);
        let held = self.processes.iter().flat_map(Process::held);
        free.chain(held).for_each(|&tag| in_flight[tag as usize] = false);
        let mut again: Vec<usize> = (0..self.slots.len()).filter(|&tag| in_flight[tag]).collect();
        again.sort_by_key(|&tag| self.slots[tag].issued);
        for tag in again {
            let slot = &mut self.slots[tag];
            slot.sent = now;
            let &mut Slot { offset, len, op, compressible, process, .. } = slot;
            let (tag, process) = (tag as u64, process + 1);
            let command = Command { tag, op, offset, len, compressible, stamp: 0, process };
            self.device.submit(now, command);
        }
    }
}
