//! What each command does when the controller has handled it, into the flash, the buffer, or the queue
//! for room; and its completion, which says where its time went.

use super::page_reads::{is_in_ram, pages};
use super::parts::{flash_parts, plain_parts};
use super::{Active, PageRead, Ssd};
use crate::contract::Completion;
use crate::device::{Command, Device, Op, SECTOR, mix};
use crate::ftl::{Sink, UnitWrite};
use crate::nand::{Finished, NONE};
use crate::stats::{Part, Parts};

impl Ssd {
    /// The controller is done with the command.
    #[inline(always)]
    pub(super) fn handled(&mut self, index: u32) {
        let now = self.engine.now;
        let active = &mut self.commands[index as usize];
        active.handled = now;
        active.entered = now;
        let command = active.command;
        self.serve(index, &command);
    }

    /// The same where that has taken no time.
    #[inline(always)]
    pub(super) fn serve(&mut self, index: u32, command: &Command) {
        if command.op == Op::Read {
            return self.read(index);
        }
        self.host.writes += u64::from(command.op == Op::Write);
        self.begin_limit(index);
        let waits = !self.waiting.is_empty() || self.purging != NONE;
        if waits || !self.enter(index, command) {
            self.waiting.push_back(index);
        }
    }

    /// Lets waiting commands in, in order, as far as there is room.
    pub(super) fn drain_waiting(&mut self) {
        while let Some(&index) = self.waiting.front() {
            let command = self.commands[index as usize].command;
            if self.purging != NONE || !self.enter(index, &command) {
                return;
            }
            self.waiting.pop_front();
        }
    }

    /// Takes in a write, TRIM, flush or purge; `false` if it must wait for room or for its turn.
    #[inline(always)]
    fn enter(&mut self, index: u32, command: &Command) -> bool {
        if self.limit.is_some() && !self.may_proceed(index) {
            return false;
        }
        if command.op == Op::Write {
            return self.write(index, command);
        }
        match command.op {
            Op::Trim => self.trim(index),
            Op::Flush => self.flush(index),
            Op::Purge => {
                self.ftl.pad_all(&mut self.engine);
                self.ftl.pad_map(&mut self.engine);
                self.purging = index;
                self.try_purge();
            }
            Op::Read | Op::Write => unreachable!("neither waits in this way"),
        }
        true
    }

    fn read(&mut self, index: u32) {
        let command = self.commands[index as usize].command;
        self.host.reads += 1;
        self.host.bytes_read += command.len;
        self.serial += 1;
        let (first, last) =
            (self.unit_of(command.offset), self.unit_of(command.offset + command.len - 1));
        let mut remaining = self.fetch_map(index, first, last);
        if self.read_ahead.is_some()
            && let Some((waits, missing)) = self.read_stream(index)
        {
            remaining += waits;
            missing.into_iter().for_each(|lpn| remaining += self.read_unit(index, first, lpn));
        } else {
            for lpn in first..=last {
                remaining += self.read_unit(index, first, lpn);
            }
            if self.keep_versions {
                self.commands[index as usize].digest = self.digest(&command, None);
            }
        }
        if remaining == 0 {
            self.complete_at_once(index);
        } else {
            self.commands[index as usize].remaining = remaining;
        }
    }

    /// Looks the units of a read up in the map; answers the number of translation units that must
    /// be fetched for it. Every unit is looked up, in RAM or not, so that the cache does not depend
    /// on timing; what is read ahead of a stream is looked up when it is asked for.
    #[inline]
    fn fetch_map(&mut self, index: u32, first: u32, last: u32) -> u32 {
        self.map_fetches.clear();
        if self.ftl.mapping().table().is_none() {
            return 0;
        }
        (self.engine.fetch_owner, self.engine.fetches) = (index, 0);
        for lpn in first..=last {
            let fetch = self.ftl.fetch(lpn, &mut self.engine);
            self.map_fetches.push(fetch);
        }
        self.engine.fetch_owner = NONE;
        self.engine.fetches
    }

    /// Gets a unit for a read that begins at `first`; answers the number of flash operations that
    /// it newly takes.
    #[inline]
    fn read_unit(&mut self, index: u32, first: u32, lpn: u32) -> u32 {
        if self.is_buffered(lpn, || self.sectors_in(&self.commands[index as usize].command, lpn)) {
            self.host.units_read_ram += 1;
            return 0;
        }
        let ppn = self.ftl.lookup(lpn);
        if ppn == NONE {
            self.host.units_read_unmapped += 1;
            return 0;
        }
        let length = self.ftl.length(lpn);
        let layout = self.ftl.layout;
        if is_in_ram(&layout, &self.engine, ppn, length) {
            self.host.units_read_ram += 1;
            return 0;
        }
        self.host.units_read_flash += 1;
        let fetch = self.map_fetches.get((lpn - first) as usize).copied().unwrap_or(NONE);
        if length == 1 {
            return self.sense(index, fetch, ppn, 1);
        }
        let mut queued = 0;
        for (ppn, units) in pages(layout, self.engine.by_read, ppn, length) {
            if !self.engine.in_ram(ppn) {
                queued += self.sense(index, fetch, ppn, units);
            }
        }
        queued
    }

    /// The sectors of a unit that a command asks for: the first, and where they end.
    fn sectors_in(&self, command: &Command, lpn: u32) -> (u32, u32) {
        let unit = u64::from(lpn) * self.unit_bytes;
        let first = command.offset.saturating_sub(unit);
        let end = (command.offset + command.len - unit).min(self.unit_bytes);
        ((first / SECTOR) as u32, (end / SECTOR) as u32)
    }

    /// Gets `units` of one page from `ppn` on for a read.
    #[inline]
    fn sense(&mut self, index: u32, fetch: u32, ppn: u32, units: u32) -> u32 {
        let die = self.ftl.layout.die_of(ppn);
        let group = self.engine.by_read.quotient(ppn);
        let recent = &mut self.last_reads[die as usize];
        if let Some(page) = recent.find(self.serial, group, fetch) {
            self.engine.flash.widen_read(page.op, units);
            return 0;
        }
        let slc = self.ftl.in_slc(ppn);
        let op = self.engine.read(die, (ppn, units), slc, index, fetch);
        recent.pages.push(PageRead { group, fetch, op, owner: index });
        1
    }

    /// What a read leaves in the map's cache.
    pub(super) fn fetch_untimed(&mut self, command: &Command) {
        if self.ftl.mapping().table().is_none() {
            return;
        }
        let last = (command.offset + command.len - 1) / self.unit_bytes;
        for lpn in command.offset / self.unit_bytes..=last {
            self.ftl.fetch(lpn as u32, &mut self.engine.untimed());
        }
    }

    /// Digest of what a read answers, `stream` being the one that it continues.
    pub(super) fn digest(&self, command: &Command, stream: Option<usize>) -> u64 {
        let per_unit = self.unit_bytes / SECTOR;
        (0..command.len / SECTOR).fold(0u64, |sum, i| {
            let at = command.offset / SECTOR + i;
            let (lpn, sector) = ((at / per_unit) as u32, (at % per_unit) as u32);
            let ahead = stream.and_then(|s| self.content_ahead(s, lpn, sector));
            sum.wrapping_add(mix(ahead.unwrap_or_else(|| self.version(lpn, sector)), i))
        })
    }

    /// The next unit of a write from byte `placed` on, and the bytes of it.
    pub(super) fn unit_write(&self, command: &Command, placed: u64) -> (UnitWrite, u64) {
        let at = command.offset + placed;
        let within = at & (self.unit_bytes - 1);
        let bytes = (self.unit_bytes - within).min(command.len - placed);
        let write = UnitWrite {
            lpn: self.unit_of(at),
            first_sector: (within / SECTOR) as u32,
            sectors: (bytes / SECTOR) as u32,
            stamp: command.stamp + placed / SECTOR,
            compressible: command.compressible,
        };
        (write, bytes)
    }

    /// Takes in as many units as there is room for, or places them; `true` when none is left.
    #[inline(always)]
    fn write(&mut self, index: u32, command: &Command) -> bool {
        if self.buffer.is_some() {
            return self.write_to_buffer(index);
        }
        self.write_to_flash(index, command);
        true
    }

    fn write_to_buffer(&mut self, index: u32) -> bool {
        let Active { command, mut placed, .. } = self.commands[index as usize];
        while placed < command.len {
            let (write, bytes) = self.unit_write(&command, placed);
            if !self.take_in(&write) {
                self.host_bytes_placed(index, placed);
                self.unblock();
                return false;
            }
            self.forget_ahead(write.lpn);
            placed += bytes;
        }
        self.host_bytes_placed(index, placed).entered = self.engine.now;
        self.drain(false);
        self.complete_at_once(index);
        true
    }

    /// Nothing but flash holds the data, so a partly filled program unit cannot wait.
    #[inline(always)]
    fn write_to_flash(&mut self, index: u32, command: &Command) {
        (self.engine.owner, self.engine.queued) = (index, 0);
        let mut placed = 0;
        while placed < command.len {
            placed += self.place_next(command, placed);
        }
        self.ftl.pad_all(&mut self.engine);
        let (now, queued) = (self.engine.now, self.engine.queued);
        self.engine.owner = NONE;
        let active = self.host_bytes_placed(index, placed);
        (active.entered, active.remaining) = (now, queued);
    }

    /// Places the next unit of a write from byte `placed` on; answers the bytes of it. By itself, as most writes have one.
    #[inline(never)]
    fn place_next(&mut self, command: &Command, placed: u64) -> u64 {
        let (write, bytes) = self.unit_write(command, placed);
        let length = self.ftl.length_after(&write);
        self.place(&write, length);
        self.forget_ahead(write.lpn);
        bytes
    }

    /// Places a unit that takes so many physical ones, and is in RAM until it has been programmed.
    #[inline(always)]
    pub(super) fn place(&mut self, write: &UnitWrite, length: u32) -> u32 {
        let ppn = self.ftl.write(write, &mut self.engine);
        if length == 1 {
            self.engine.hold(ppn, 1);
        } else {
            let parts = self.ftl.layout.program_units(ppn, length);
            parts.for_each(|(ppn, units)| self.engine.hold(ppn, units));
        }
        ppn
    }

    /// What was read ahead of a unit is not what a read of it would find now.
    #[inline]
    fn forget_ahead(&mut self, lpn: u32) {
        if let Some(ahead) = &mut self.read_ahead {
            ahead.forget(lpn, lpn + 1);
        }
    }

    /// Of a write the bytes up to `placed` are in the buffer, or placed: they count with the units that they
    /// are in.
    #[inline(always)]
    fn host_bytes_placed(&mut self, index: u32, placed: u64) -> &mut Active {
        let active = &mut self.commands[index as usize];
        self.host.bytes_written += placed - active.placed;
        active.placed = placed;
        active
    }

    fn flush(&mut self, index: u32) {
        self.host.flushes += 1;
        self.ftl.trims_are_durable();
        self.commands[index as usize].entered = self.engine.now;
        let volatile = Device::is_volatile(self);
        if volatile {
            self.drain_all();
            self.ftl.pad_all(&mut self.engine);
            if self.engine.epochs.any() {
                self.engine.epochs.flush();
                self.flushing.push_back(index);
                return;
            }
        }
        self.complete_at_once(index);
    }

    /// Completes a command that needs nothing more from the flash.
    ///
    /// If it waited for room in the buffer, or a flush for its data, the program that ended the
    /// wait says what the flash was busy with: its way back from now, as far as the wait reaches.
    /// What is left was spent behind other data in the buffer.
    pub(super) fn complete_at_once(&mut self, index: u32) {
        let now = self.engine.now;
        let &Active { submitted, handled, limited, .. } = &self.commands[index as usize];
        let controller = (Part::Controller, handled - submitted);
        let mut wait = now - handled - limited;
        if wait == 0 && limited == 0 {
            return self.complete(index, Parts::few([controller]));
        }
        let released = self.releasing;
        let mut share = |(part, time): (Part, u64)| {
            let share = time.min(wait);
            wait -= share;
            (part, share)
        };
        if let (0, Some(f)) = (limited, &released)
            && let Some(plain) = plain_parts(f, now)
        {
            let [a, b, c, d, e] = plain.map(share);
            let last = (Part::BufferWait, wait);
            return self.complete(index, Parts::few([controller, a, b, c, d, e, last]));
        }
        let mut parts = Parts::of([controller, (Part::WriteLimit, limited)]);
        if let Some(f) = &released {
            flash_parts(f, now)
                .map(&mut share)
                .into_iter()
                .for_each(|(part, ns)| parts.add(part, ns));
        }
        parts.put([(Part::BufferWait, wait)]);
        self.complete(index, parts);
    }

    /// Completes a command whose last flash operation has just ended.
    pub(super) fn complete_after(&mut self, index: u32, f: &Finished) {
        let now = self.engine.now;
        let &Active { submitted, handled, entered, limited, .. } = &self.commands[index as usize];
        let (controller, wait) = ((Part::Controller, handled - submitted), entered - handled);
        if let (0, Some([a, b, c, d, e])) = (wait, plain_parts(f, now)) {
            return self.complete(index, Parts::few([controller, a, b, c, d, e]));
        }
        let waits = [(Part::WriteLimit, limited), (Part::BufferWait, wait - limited)];
        let mut parts = Parts::of([controller].into_iter().chain(waits));
        flash_parts(f, now).into_iter().for_each(|(part, ns)| parts.add(part, ns));
        self.complete(index, parts);
    }

    /// Ends a command, whose time went there.
    #[inline(always)]
    pub(super) fn complete(&mut self, index: u32, parts: Parts) {
        let Active { submitted, .. } = self.commands[index as usize];
        debug_assert_eq!(parts.total(), self.engine.now - submitted, "{parts:?}");
        let Active { command: Command { tag, .. }, digest, .. } = self.commands[index as usize];
        self.free.push(index);
        self.in_flight -= 1;
        if self.in_flight == 0 {
            self.plan_idle();
        }
        let time = self.engine.now;
        self.ready.push(Completion { tag, time, parts, digest });
    }
}
