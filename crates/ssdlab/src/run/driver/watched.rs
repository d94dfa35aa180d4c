//! Processes whose I/Os are looked at one by one ([`Watch`](crate::run::watch::Watch)): apart from those of ordinary
//! jobs, whose way is shorter.

use super::{Driver, Slot, power};
use crate::device::{Command, Completion, Op};
use crate::run::process::{Stage, direction};
use crate::run::recorder::Done;
use crate::stats::{Part, Parts};

impl Driver<'_> {
    /// An I/O of such a process has completed, or the first half of one.
    #[cold]
    pub(super) fn complete_watched(&mut self, now: u64, completion: &Completion) {
        let tag = completion.tag as u32;
        let index = self.slots[tag as usize].process as usize;
        // It is not back yet.
        let process = &mut self.processes[index];
        process.in_flight += 1;
        process.free.pop();
        self.ios -= 1;
        if self.processes[index].is_queuing() {
            self.hand_over(index, now, self.processes[index].in_flight, true);
        }
        let slot = &mut self.slots[tag as usize];
        let Some(watch) = &mut self.processes[index].watch else { return };
        let half = watch.flushed.iter().position(|(flushed, _)| *flushed == tag);
        let parts = match half {
            Some(half) => {
                let mut parts = watch.flushed.swap_remove(half).1;
                parts.add_all(&completion.parts);
                parts
            }
            None => power::waited(slot, completion),
        };
        let durable = half.is_some() || !self.device.is_volatile();
        if slot.op == Op::Write && watch.durable_writes && !durable {
            // As Linux does it where a drive is not told to write through its cache.
            watch.flushed.push((tag, parts));
            slot.sent = now;
            let (tag, process) = (completion.tag, slot.process + 1);
            self.device.submit(now, Command { tag, op: Op::Flush, process, ..Command::default() });
            return;
        }
        match &mut watch.batch {
            // A flush holds its process up, which waits for nothing else.
            Some(batch) if slot.op != Op::Flush => {
                batch.held.push_back((tag, parts));
                if !std::mem::replace(&mut batch.called, true) {
                    self.called.push(index);
                    self.attention = true;
                }
            }
            batch => {
                let has_batch = batch.is_some();
                self.take(now, tag, &parts);
                self.look_for_depth(index, now);
                self.fill(index, now);
                if has_batch {
                    self.reap(index, now);
                }
            }
        }
    }

    /// Something has happened for which a process may have waited.
    pub(super) fn resume(&mut self, index: usize, now: u64) {
        match self.processes[index].watch.as_mut().and_then(|watch| watch.batch.as_mut()) {
            None => self.fill(index, now),
            Some(batch) => {
                batch.called = false;
                // Until its queue is drained it looks at nothing else.
                if !batch.draining {
                    self.fill(index, now);
                }
                self.reap(index, now);
            }
        }
    }

    /// A process with batches takes back what it takes, and issues what it may then.
    fn reap(&mut self, index: usize, now: u64) {
        loop {
            let process = &mut self.processes[index];
            let ends = process.stage == Stage::Draining;
            let Some(watch) = &mut process.watch else { return };
            let full_at = watch.full_at();
            let measured = now >= watch.record_from;
            let Some(batch) = &mut watch.batch else { return };
            let in_flight = process.in_flight - u32::from(process.flushing);
            let count = batch.due(in_flight, full_at, ends);
            if count == 0 {
                return;
            }
            let taken: Vec<_> = batch.held.drain(..count).collect();
            if ends && batch.unnoted > 0 {
                self.hand_over(index, now, in_flight, true);
            }
            let process = &self.processes[index];
            if measured {
                self.recorder.reaped(process.unit, count as u32);
            }
            for (tag, mut parts) in taken {
                let waited = now - self.slots[tag as usize].issued - parts.total();
                parts.add(Part::Host, waited);
                self.take(now, tag, &parts);
            }
            let process = &mut self.processes[index];
            let ends = process.stage == Stage::Draining;
            let Some(batch) = process.watch.as_mut().and_then(|watch| watch.batch.as_mut()) else {
                return;
            };
            batch.taken(process.in_flight, ends);
            if !batch.draining {
                self.look_for_depth(index, now);
                self.fill(index, now);
            }
        }
    }

    /// The process of an I/O takes it back.
    fn take(&mut self, now: u64, tag: u32, parts: &Parts) {
        let slot = self.slots[tag as usize];
        let index = slot.process as usize;
        let process = &mut self.processes[index];
        process.in_flight -= 1;
        process.free.push(tag);
        self.ios += 1;
        let ddir = direction(slot.op).unwrap_or(3);
        process.flushing &= ddir != 3;
        let measured_ns = now.saturating_sub(process.measure_from());
        let Some(watch) = &mut process.watch else { return };
        if let Some(places) = &mut watch.places {
            places.retain(|place| place.0 != tag);
        }
        if now < watch.record_from {
            return;
        }
        let (unit, lat_ns) = (process.unit, now - slot.issued);
        self.recorder.completed_late(&Done {
            process: index,
            unit,
            ddir,
            offset: slot.offset,
            bytes: slot.len,
            lat_ns,
            measured_ns,
            parts,
        });
        if ddir < 3 {
            let slow = watch.judge_rate(ddir, slot.len, measured_ns);
            let late = watch.judge(slot.op, ddir, lat_ns, (slot.offset, slot.len));
            late.or(slow).into_iter().for_each(|failure| process.fail(failure));
        }
    }

    /// An I/O of such a process has been issued.
    #[cold]
    pub(super) fn issued_watched(&mut self, index: usize, now: u64, tag: u32) {
        let process = &mut self.processes[index];
        let (unit, in_flight) = (process.unit, process.in_flight);
        let Some(watch) = &mut process.watch else { return };
        if let Some(places) = &mut watch.places {
            let Slot { offset, len, .. } = self.slots[tag as usize];
            places.push((tag, offset, offset + len));
        }
        if let Some(share) = &watch.share {
            self.called.append(&mut share.called());
            self.attention |= !self.called.is_empty();
        }
        let (measured, full_at) = (now >= watch.record_from, watch.full_at());
        let Some(batch) = &mut watch.batch else {
            if measured && !process.flushing {
                self.recorder.issued(unit, in_flight);
            }
            return;
        };
        if process.flushing {
            return self.hand_over(index, now, in_flight - 1, true);
        }
        (batch.queued, batch.unnoted) = (batch.queued + 1, batch.unnoted + 1);
        let complete = batch.unnoted >= batch.submit;
        if complete || batch.queued >= batch.submit || in_flight >= full_at {
            self.hand_over(index, now, in_flight, complete);
        }
    }

    /// What was issued has gone to the device at once; the depth may be noted then.
    fn hand_over(&mut self, index: usize, now: u64, in_flight: u32, noted: bool) {
        let process = &mut self.processes[index];
        let Some(watch) = &mut process.watch else { return };
        let Some(batch) = &mut watch.batch else { return };
        let queued = std::mem::take(&mut batch.queued);
        let count = if noted { std::mem::take(&mut batch.unnoted) } else { 0 };
        if now >= watch.record_from {
            self.recorder.handed_over(process.unit, queued, (in_flight, count));
        }
    }
}
