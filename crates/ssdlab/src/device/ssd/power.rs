//! Loss of power, and the start-up after it.
//!
//! What was programmed to its end stays; of a drive whose buffer is protected also what was in RAM. At
//! start-up a drive reads its map, or finds it again: closed superblocks end with a list of what they
//! hold, of those that are being written every page says so in its spare area (pblk in Linux does the same:
//! Bjorling, Gonzalez & Bonnet, LightNVM: the Linux open-channel SSD subsystem, FAST 2017). Then it does what
//! was under way: moves what was being moved, erases what was to be erased, and rewrites with the last copies in
//! flash what was being written. All dies work on that together, and commands wait for it.

use super::{FOLD, IDLE, SLOTS, Ssd};
use crate::device::{Missed, Op, SECTOR};
use crate::ftl::Lost;
use crate::nand::{Finished, FlashCounters, NONE, OpKind, Work};
use crate::sim::Calendar;

/// Bytes of an entry of the map.
const ENTRY_BYTES: u64 = 4;

impl Ssd {
    /// Power goes at `now`; answers when the drive is ready again.
    pub(super) fn lose_power(&mut self, now: u64, missed: &mut Missed) -> u64 {
        self.engine.now = now;
        let protected = self.buffer.as_ref().is_some_and(|b| b.protected);
        let scan = self.scan(protected);
        let before = self.engine.untimed;
        let dropped = self.engine.flash.power_cut(now);
        let cut = self.engine.cut(&dropped);
        let mut erased = Vec::new();
        for d in &dropped {
            match d.kind {
                OpKind::Copy => self.ftl.contents.programmed(self.engine.copied(d.op, d.repeat)),
                OpKind::Erase => erased.push((d.first, d.die)),
                OpKind::Read | OpKind::Program => {}
            }
        }
        erased.extend(self.engine.unqueued());
        self.engine.power_cut(&dropped);
        let data = self.ftl.layout.units();
        let cut = cut.into_iter().filter(|cut| u64::from(cut.first) < data).collect();
        let superblocks = self.ftl.blocks().valid.len() as u32;
        erased.retain(|&(superblock, _)| superblock < superblocks);
        let mut lost = self.ftl.power_cut(cut, &erased, protected);
        if protected {
            self.program_protected();
        } else if let Some(buffer) = &mut self.buffer {
            lost.units.extend(buffer.dirty.units());
            buffer.drop_all();
        }
        self.count_cut(&lost, missed);
        self.ftl.pad_all(&mut self.engine.untimed());
        self.ftl.restart_map(&mut self.engine.untimed());
        let ready = now + self.engine.flash.time_of(sum(scan, work(&before, &self.engine.untimed)));
        self.power.startup_ns += ready - now;
        self.restart(ready);
        ready
    }

    /// What reading or finding the map takes.
    fn scan(&self, protected: bool) -> Work {
        let layout = &self.ftl.layout;
        let page =
            self.unit_bytes / u64::from(layout.granules()) * u64::from(layout.units_per_program());
        let pages = |entries: u64| (entries * ENTRY_BYTES).div_ceil(page);
        // A cached map stays where it is, but for the directory of it.
        let entries = match self.ftl.mapping().table() {
            Some(table) if protected => u64::from(table.units()),
            _ => u64::from(self.ftl.units()),
        };
        let open = if protected { 0 } else { self.ftl.programs_of_open_superblocks() };
        Work { reads: pages(entries) + open, ..Work::default() }
    }

    /// Counts what is never answered, and what is lost.
    fn count_cut(&mut self, lost: &Lost, missed: &mut Missed) {
        self.power.losses += 1;
        self.power.commands_cut += u64::from(self.in_flight) + self.ready.len() as u64;
        if self.buffer.is_some() {
            self.power.lost_bytes += lost.units.len() as u64 * self.unit_bytes;
        }
        let mut waits = vec![true; self.commands.len()];
        self.free.iter().for_each(|&index| waits[index as usize] = false);
        for active in self.commands.iter().zip(waits).filter(|(_, waits)| *waits).map(|(a, _)| a) {
            missed.write(&active.command, active.placed);
            if active.command.op != Op::Write || active.placed == 0 {
                continue;
            }
            let first = active.command.offset / self.unit_bytes;
            let end = (active.command.offset + active.placed).div_ceil(self.unit_bytes);
            let mut gone = 0;
            for &unit in lost.units.range(first as u32..end as u32) {
                missed.range(u64::from(unit) * self.unit_bytes, self.unit_bytes);
                gone += 1;
            }
            let landed = (end - first - gone) * self.unit_bytes / SECTOR;
            self.power.cut_write(
                landed,
                active.command.len.div_ceil(self.unit_bytes) * self.unit_bytes / SECTOR,
            );
        }
    }

    /// Everything in RAM is gone, and what comes before `ready` waits.
    fn restart(&mut self, ready: u64) {
        self.calendar = Calendar::new(SLOTS);
        self.engine.controller.power_cut(ready);
        self.engine.returned = 0;
        if let Some(buffer) = &mut self.buffer {
            (buffer.used, buffer.idle) = (0, false);
        }
        self.trims.power_cut(ready);
        if let Some(limit) = &mut self.limit {
            limit.power_cut();
        }
        if let Some(ahead) = &mut self.read_ahead {
            ahead.power_cut();
        }
        (self.commands, self.free) = (Vec::new(), Vec::new());
        self.in_flight = 0;
        self.waiting.clear();
        self.flushing.clear();
        self.ready.clear();
        self.purging = NONE;
        self.idle_due = false;
        self.cancel_fold();
        for (slot, after) in [(IDLE, self.idle_after), (FOLD, self.folding.after())] {
            if let Some(after) = after {
                self.calendar.set(slot, ready + after);
            }
        }
    }

    /// A flash operation has ended: what it has done to contents, in tests.
    pub(super) fn note_content(&mut self, die: u32, f: &Finished) {
        let data = self.ftl.layout.units();
        match f.kind {
            OpKind::Program if u64::from(f.first) < data => {
                self.ftl.contents.programmed(self.engine.programmed(f));
            }
            OpKind::Copy => self.ftl.contents.programmed(self.engine.copied(f.op, 0)),
            OpKind::Erase if (f.first as usize) < self.ftl.blocks().valid.len() => {
                self.ftl.contents.erased(f.first, die);
            }
            _ => {}
        }
    }
}

/// What was done between two counts.
fn work(before: &FlashCounters, after: &FlashCounters) -> Work {
    Work {
        reads: after.reads - before.reads,
        programs: after.programs - before.programs,
        erases: after.erases - before.erases,
    }
}

fn sum(a: Work, b: Work) -> Work {
    Work {
        reads: a.reads + b.reads,
        programs: a.programs + b.programs,
        erases: a.erases + b.erases,
    }
}
