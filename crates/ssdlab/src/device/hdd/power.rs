//! Loss of power: what has passed under the heads by then is on the platters.

use super::{Ahead, Hdd, Task, Work};
use crate::device::{Missed, Op, SECTOR};
use crate::units::NEVER;

impl Hdd {
    /// Power goes at `now`: the write cache is lost, a write under way ends after the sector under the
    /// head. Answers when the disk is up to speed again.
    pub(super) fn lose_power(&mut self, now: u64, missed: &mut Missed) -> u64 {
        let Work { task, active, begin, seek, rotation, .. } = self.work;
        let in_queues =
            self.queue.len() + self.answers.len() + self.waiting.len() + self.flushes.len();
        self.power.losses += 1;
        self.power.commands_cut += in_queues as u64 + u64::from(task == Task::Host);
        let at = begin + seek + rotation;
        let (start, end) = (active.start(), active.end());
        let passed = |hdd: &Self| hdd.mechanics.reading_on(start, at, end, now).0;
        if task == Task::Destage {
            let until = passed(self);
            self.versions.arrive(until);
            self.destaging -= until - start;
        } else if task == Task::Host && active.command.op == Op::Write {
            let landed = passed(self) - start;
            self.versions.land(&active.command, landed);
            self.power.cut_write(landed, end - start);
            missed.write_from(&active.command, landed);
        }
        let waiting = self.queue.iter().chain(&self.waiting);
        waiting.for_each(|active| missed.write(&active.command, 0));
        if task != Task::Idle {
            self.counts.busy += now.saturating_sub(begin);
        }
        self.power.lost_bytes += (self.dirty.sectors() + self.destaging) * SECTOR;
        self.versions.power_cut();
        self.forget();
        let ready = now + self.keys.spin_up.0;
        self.power.startup_ns += ready - now;
        (self.ready_at, self.electronics_free) = (ready, ready);
        ready
    }

    /// What was in RAM or under way is gone; the heads are parked outside.
    fn forget(&mut self) {
        (self.work, self.ahead, self.track) = (Work::default(), Ahead::default(), 0);
        self.choose_at = NEVER;
        self.queue.clear();
        self.chosen = None;
        self.answers.clear();
        self.waiting.clear();
        self.flushes.clear();
        self.segments.clear();
        self.dirty.clear();
        (self.destaging, self.destaged, self.quiet_at) = (0, false, 0);
    }
}
