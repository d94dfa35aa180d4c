//! The way of a stripe: it takes its rows, reads what parity needs, and is written.

use super::{Kind, State, StripePart};
use crate::array::keys::ROW;
use crate::array::plan::How;
use crate::array::stripe_cache::Span;
use crate::array::{Array, Task};
use crate::contract::{Command, Op};
use crate::fleet::HostId;
use crate::stats::{Part, Parts};

impl Array {
    /// Hands a write to its stripes.
    pub(in crate::array) fn write_stripes(&mut self, host: HostId) {
        let Command { offset, len, .. } = self.fleet.hosts[host].command;
        let width = self.layout.parity().expect("stripes").width();
        let (mut at, end) = (offset, offset + len);
        while at < end {
            let (stripe, from) = (at / width, at % width);
            let to = width.min(from + end - at);
            if self.is_lost(stripe) {
                self.fail_command(host);
            } else {
                self.join(host, stripe, from, to);
            }
            at += to - from;
        }
    }

    /// The bytes `from..to` of the data of a stripe are written.
    fn join(&mut self, host: HostId, stripe: u64, from: u64, to: u64) {
        let parity = self.layout.parity().expect("stripes");
        let (chunk, width) = (parity.chunk, parity.width());
        let mut parts = std::mem::take(&mut self.stripe_parts);
        parts.clear();
        let mut at = from;
        while at < to {
            let end = (at / chunk * chunk + chunk).min(to);
            let lo = at % chunk;
            parts.push(StripePart {
                role: (at / chunk) as u32,
                span: Span { lo, hi: lo + end - at },
            });
            at = end;
        }
        let joined = self.stripes.joinable(stripe, &parts);
        let index = joined.unwrap_or_else(|| self.stripes.begin(stripe));
        let active = &mut self.fleet.hosts[host];
        active.remaining += 1;
        let command = active.command;
        for part in &parts {
            let span = self.stripes.span_mut(index, part.role);
            *span = span.hull(part.span);
            let own = &mut self.stripes.all[index as usize];
            let Span { lo, hi } = part.span;
            let rows = Span { lo: lo / ROW * ROW, hi: hi.div_ceil(ROW) * ROW };
            own.rows = own.rows.hull(rows);
            if self.versions.is_some() {
                let at = stripe * width + u64::from(part.role) * chunk + lo;
                own.fresh.push((*part, command.stamp + (at - command.offset) / 512));
            }
        }
        self.stripe_parts = parts;
        let own = &mut self.stripes.all[index as usize];
        own.hosts.push(host);
        own.compressible = command.compressible;
        match joined {
            Some(_) => self.stripes.counts.joined += 1,
            None => {
                self.try_start(index);
                let waits = self.stripes.all[index as usize].state == State::Waiting;
                self.stripes.counts.waited += u64::from(waits);
            }
        }
    }

    /// Reads bytes of the host whose member is missing: from the rest of the stripe, or not at all.
    pub(in crate::array) fn read_without_member(&mut self, host: HostId, at: u64, len: u64) {
        let Some(parity) = self.layout.parity() else { return self.fail_command(host) };
        let (index, lo) = (at / parity.chunk, at % parity.chunk);
        let data = u64::from(parity.data());
        let (stripe, role) = (index / data, (index % data) as u32);
        if self.is_lost(stripe) {
            self.fail_command(host);
            return;
        }
        let wanted = StripePart { role, span: Span { lo, hi: lo + len } };
        let new = self.take_stripe(stripe, Kind::Read, wanted);
        self.stripes.all[new as usize].hosts.push(host);
        self.fleet.hosts[host].remaining += 1;
        self.try_start(new);
    }

    /// Rebuilds the chunk of a stripe that a spare must hold.
    pub(in crate::array) fn rebuild_stripe(&mut self, stripe: u64) {
        let Some(member) = self.rebuild.member else { return };
        let parity = self.layout.parity().expect("stripes");
        let roles = 0..parity.members;
        let role = roles.clone().find(|&role| parity.member(stripe, role) == member);
        let wanted = StripePart {
            role: role.expect("every member has a role"),
            span: Span { lo: 0, hi: parity.chunk },
        };
        let new = self.take_stripe(stripe, Kind::Rebuild, wanted);
        let own = &mut self.stripes.all[new as usize];
        (own.member, own.slot) = (member, self.seats[member as usize].slot);
        self.try_start(new);
    }

    /// Makes the parity of a stripe right.
    pub(in crate::array) fn sync_stripe(&mut self, stripe: u64) {
        let span = Span { lo: 0, hi: self.layout.parity().expect("stripes").chunk };
        let new = self.take_stripe(stripe, Kind::Sync, StripePart { role: 0, span });
        self.try_start(new);
    }

    fn take_stripe(&mut self, stripe: u64, kind: Kind, wanted: StripePart) -> u32 {
        let new = self.stripes.begin(stripe);
        let own = &mut self.stripes.all[new as usize];
        let Span { lo, hi } = wanted.span;
        (own.kind, own.wanted, own.compressible) = (kind, wanted, 0);
        own.rows = Span { lo: lo / ROW * ROW, hi: hi.div_ceil(ROW) * ROW };
        new
    }

    /// Starts a stripe whose rows are free, where there is room; in turn where there is none.
    fn try_start(&mut self, index: u32) {
        let stripes = &mut self.stripes;
        if stripes.is_blocked(index) {
            return;
        }
        let rows = stripes.all[index as usize].rows.rows();
        let room = stripes.rows_active == 0 || stripes.rows_active + rows <= stripes.rows_max;
        if room && stripes.queue.is_empty() {
            self.start(index);
        } else {
            stripes.all[index as usize].queued = true;
            stripes.queue.push_back(index);
        }
    }

    /// Starts those that waited for room only.
    fn drain_queue(&mut self) {
        while let Some(&index) = self.stripes.queue.front() {
            let stripes = &mut self.stripes;
            // It may have grown meanwhile.
            if stripes.is_blocked(index) {
                stripes.all[index as usize].queued = false;
                stripes.queue.pop_front();
                continue;
            }
            let rows = stripes.all[index as usize].rows.rows();
            if stripes.rows_active > 0 && stripes.rows_active + rows > stripes.rows_max {
                return;
            }
            stripes.queue.pop_front();
            self.start(index);
        }
    }

    /// Reads what the parity of a stripe needs.
    fn start(&mut self, index: u32) {
        let stripes = &mut self.stripes;
        let own = &mut stripes.all[index as usize];
        (own.state, own.queued, own.started) = (State::Reading, false, self.fleet.now);
        stripes.rows_active += own.rows.rows();
        stripes.cache.shrink(stripes.rows_max.saturating_sub(stripes.rows_active));
        self.read_stripe(index);
    }

    /// Reads what a stripe must know; it may have lost too much since it was asked for.
    fn read_stripe(&mut self, index: u32) {
        let own = &mut self.stripes.all[index as usize];
        own.again = false;
        if self.is_lost(self.stripes.all[index as usize].stripe) {
            self.fail_stripe(index);
            return;
        }
        self.plan(index);
        let own = &mut self.stripes.all[index as usize];
        let reads = std::mem::take(&mut own.reads);
        own.remaining = reads.len() as u32;
        for part in &reads {
            self.send_part(index, Op::Read, *part, 0);
        }
        let own = &mut self.stripes.all[index as usize];
        own.reads = reads;
        if own.remaining == 0 {
            self.write_stripe(index);
        }
    }

    /// Sends a command for a part of a stripe.
    fn send_part(&mut self, index: u32, op: Op, part: StripePart, stamp: u64) {
        let own = &self.stripes.all[index as usize];
        let (stripe, compressible) = (own.stripe, own.compressible);
        let parity = self.layout.parity().expect("stripes");
        let member = parity.member(stripe, part.role);
        let offset = stripe * parity.chunk + part.span.lo;
        // Parity of data that shrinks does not.
        let compressible = if part.role < parity.data() { compressible } else { 0 };
        let task = if op == Op::Read { Task::StripeRead(index) } else { Task::StripeWrite(index) };
        let len = part.span.hi - part.span.lo;
        let io = self.io(task, member, op, offset, len);
        self.send(io, stamp, compressible);
    }

    /// Everything needed is known: data and parity are written.
    fn write_stripe(&mut self, index: u32) {
        let own = &mut self.stripes.all[index as usize];
        (own.state, own.read) = (State::Writing, self.fleet.now);
        let mut parts = std::mem::take(&mut self.stripe_parts);
        self.parts_to_write(index, &mut parts);
        let own = &mut self.stripes.all[index as usize];
        (own.ios, own.remaining) = (parts.len() as u32, parts.len() as u32);
        self.stamp_parts(index, &parts);
        for (nth, part) in parts.iter().enumerate() {
            let stamp = self.stamp_of_part(nth);
            self.send_part(index, Op::Write, *part, stamp);
        }
        if self.watches_wear {
            for part in &parts {
                let parity = self.layout.parity().expect("stripes");
                let member = parity.member(self.stripes.all[index as usize].stripe, part.role);
                self.look_at_wear(member);
            }
        }
        let none = parts.is_empty();
        self.stripe_parts = parts;
        if none {
            self.finish(index);
        }
    }

    /// A member has answered a command of a stripe.
    pub(in crate::array) fn stripe_answered(&mut self, index: u32, written: bool, parts: &Parts) {
        let own = &mut self.stripes.all[index as usize];
        own.remaining -= 1;
        if written || own.kind == Kind::Read {
            own.parts.add_all(parts);
        }
        if own.remaining > 0 {
            return;
        }
        match (written, own.again) {
            (true, _) => self.finish(index),
            (false, true) => self.read_stripe(index),
            (false, false) => self.write_stripe(index),
        }
    }

    /// The stripe is written: its hosts are answered, and others have their turn.
    fn finish(&mut self, index: u32) {
        let own = &mut self.stripes.all[index as usize];
        match own.kind {
            Kind::Write => {
                self.stripes.counts.written += 1;
                if self.power.is_torn() {
                    self.note_written(index);
                }
                self.hold_in_cache(index);
            }
            // A read has its time from what it read.
            Kind::Read => {
                (own.read, own.ios) = (own.started, own.reads.len() as u32);
                self.stripes.counts.recovered += 1;
                self.add_digest_recovered(index);
            }
            Kind::Rebuild => {
                let parity = self.layout.parity().expect("stripes");
                let spare = (self.missing() as u32).min(parity.parities);
                let read = u64::from(parity.data()) * parity.chunk;
                let spare = parity.parities - spare;
                self.rebuild_was_read(read, spare);
            }
            Kind::Sync => {
                let bytes = |parts: &[StripePart]| -> u64 {
                    parts.iter().map(|part| part.span.hi - part.span.lo).sum()
                };
                let (stripe, rows, read) = (own.stripe, own.rows, bytes(&own.reads));
                let mut parts = std::mem::take(&mut self.stripe_parts);
                self.parts_to_write(index, &mut parts);
                self.resync.bytes_written += bytes(&parts);
                self.resync.bytes_read += read;
                self.stripe_parts = parts;
                self.power.heal(stripe, rows);
            }
        }
        self.end_stripe(index);
    }

    /// What a write has made of the parity of a stripe that does not agree.
    fn note_written(&mut self, index: u32) {
        let data = self.layout.parity().expect("stripes").data();
        let own = &self.stripes.all[index as usize];
        for segment in &own.segments {
            if segment.how != How::Modify {
                self.power.heal(own.stripe, segment.span);
                continue;
            }
            let written = |&role: &u32| self.stripes.span(index, role).covers(segment.span);
            let roles: Vec<u32> = (0..data).filter(written).collect();
            self.power.rewritten(own.stripe, segment.span, &roles, data as usize);
        }
    }

    /// The stripe has lost too much: its hosts get an error.
    fn fail_stripe(&mut self, index: u32) {
        let own = &mut self.stripes.all[index as usize];
        (own.read, own.ios, own.parts) = (self.fleet.now, 0, Parts::default());
        let hosts = std::mem::take(&mut own.hosts);
        hosts.iter().for_each(|&host| self.fail_command(host));
        self.stripes.all[index as usize].hosts = hosts;
        self.end_stripe(index);
    }

    /// The stripe is done with, one way or the other.
    fn end_stripe(&mut self, index: u32) {
        self.keep_content(index, false);
        let own = &mut self.stripes.all[index as usize];
        let (kind, slot) = (own.kind, own.slot);
        let (stripe, rows, started, read) = (own.stripe, own.rows.rows(), own.started, own.read);
        let (ios, sum) = (own.ios, std::mem::take(&mut own.parts));
        let hosts = std::mem::take(&mut own.hosts);
        for &host in &hosts {
            if self.fleet.release(host) {
                let active = &self.fleet.hosts[host];
                let waited = started - active.submitted - active.own.held.max(active.own.logged);
                let before = [(Part::StripeWait, waited), (Part::Parity, read - started)];
                self.complete(host, ios, &sum, &before);
            }
        }
        self.stripes.all[index as usize].hosts = hosts;
        self.stripes.rows_active -= rows;
        self.stripes.end(index);
        match kind {
            Kind::Rebuild => self.stripe_rebuilt(slot, stripe),
            Kind::Sync => self.stripe_synced(stripe),
            Kind::Write | Kind::Read => {}
        }
        while let Some(next) = self.stripes.next_of(stripe) {
            self.try_start(next);
        }
        self.drain_queue();
    }
}
