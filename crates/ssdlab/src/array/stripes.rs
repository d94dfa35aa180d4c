//! Writes of RAID 5 and 6: stripes that wait for their turn, read what parity needs, and are written.
//!
//! A write takes the rows of 4 KiB of its stripe; writes of other rows of the stripe do not disturb
//! it. What must wait gathers further writes that follow on from it, so that a busy array writes
//! stripes whole. md's raid5 keeps each row of 4 KiB apart and leaves it to the block layer to join
//! the commands of neighbouring rows; here a stripe's rows go together.

use super::keys::ROW;
use super::layout::Layout;
use super::plan::{Part as StripePart, Segment};
use super::stripe_cache::{Span, StripeCache};
use super::{Array, Io, Purpose};
use crate::device::{Command, Op};
use crate::stats::{Part, Parts};
use std::collections::VecDeque;

const NONE: u32 = u32::MAX;
/// Chains of stripes by hash.
const CHAINS: usize = 1024;

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum State {
    /// It gathers writes.
    #[default]
    Waiting,
    Reading,
    Writing,
}

/// A stripe that is being written, or will be.
#[derive(Debug, Default)]
pub(super) struct Stripe {
    /// Its number.
    pub stripe: u64,
    /// Rows that it takes, of every chunk.
    rows: Span,
    state: State,
    /// It has its turn, but there is no room in the stripe cache.
    queued: bool,
    /// Commands of members that it waits for, and of those since the reads.
    remaining: u32,
    ios: u32,
    parts: Parts,
    started: u64,
    read: u64,
    compressible: u8,
    hosts: Vec<u32>,
    /// What is read before it is written, and what the cache has of that.
    pub reads: Vec<StripePart>,
    pub held: Vec<StripePart>,
    pub segments: Vec<Segment>,
    /// In tests: what is written, by role: span and version of its first sector.
    pub fresh: Vec<(StripePart, u64)>,
    next: u32,
}

/// What stripes count.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct StripeCounts {
    pub written: u64,
    /// Without a read, all data being new.
    pub whole: u64,
    /// Writes that went with another one.
    pub joined: u64,
    /// Stripes that waited for another one, or for room.
    pub waited: u64,
    pub read_modify_write: u64,
    pub reconstruct_write: u64,
    /// Reads of the host answered by the cache.
    pub read_hits: u64,
}

/// See the module.
pub(super) struct Stripes {
    pub all: Vec<Stripe>,
    free: Vec<u32>,
    /// What is written, of each chunk of data of each stripe.
    spans: Vec<Span>,
    data: usize,
    heads: Vec<u32>,
    /// Stripes that have their turn but no room.
    queue: VecDeque<u32>,
    rows_active: u64,
    rows_max: u64,
    pub cache: StripeCache,
    pub counts: StripeCounts,
    pub cuts: Vec<u64>,
}

impl Stripes {
    /// For a layout; nothing, where it has no stripes.
    pub fn new(layout: &Layout, rows: u32) -> Self {
        let (data, roles) = layout.parity().map_or((0, 0), |p| (p.data(), p.members));
        Stripes {
            all: Vec::new(),
            free: Vec::new(),
            spans: Vec::new(),
            data: data as usize,
            heads: vec![NONE; if roles > 0 { CHAINS } else { 0 }],
            queue: VecDeque::new(),
            rows_active: 0,
            rows_max: u64::from(rows),
            cache: StripeCache::new(roles, if roles > 0 { rows } else { 1 }),
            counts: StripeCounts::default(),
            cuts: Vec::new(),
        }
    }

    /// Everything held is void.
    pub fn forget(&mut self) {
        self.cache.forget(0, u64::MAX);
    }

    /// What is held of these stripes is void.
    pub fn forget_range(&mut self, first: u64, end: u64) {
        self.cache.forget(first, end);
    }

    /// What is written of a chunk of data.
    #[inline]
    pub fn span(&self, index: u32, role: u32) -> Span {
        self.spans[index as usize * self.data + role as usize]
    }

    fn span_mut(&mut self, index: u32, role: u32) -> &mut Span {
        &mut self.spans[index as usize * self.data + role as usize]
    }

    fn chain(stripe: u64) -> usize {
        (stripe.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as usize % CHAINS
    }

    /// A new one at the end of its chain.
    fn begin(&mut self, stripe: u64) -> u32 {
        let index = self.free.pop().unwrap_or_else(|| {
            self.all.push(Stripe::default());
            self.spans.resize(self.all.len() * self.data, Span::default());
            (self.all.len() - 1) as u32
        });
        let new = &mut self.all[index as usize];
        (new.stripe, new.rows, new.state, new.queued) =
            (stripe, Span::default(), State::Waiting, false);
        (new.remaining, new.ios, new.parts, new.next) = (0, 0, Parts::default(), NONE);
        new.hosts.clear();
        new.fresh.clear();
        self.spans[index as usize * self.data..][..self.data].fill(Span::default());
        let head = &mut self.heads[Self::chain(stripe)];
        if *head == NONE {
            *head = index;
        } else {
            let mut last = *head;
            while self.all[last as usize].next != NONE {
                last = self.all[last as usize].next;
            }
            self.all[last as usize].next = index;
        }
        index
    }

    fn end(&mut self, index: u32) {
        let Stripe { stripe, next, .. } = self.all[index as usize];
        let head = &mut self.heads[Self::chain(stripe)];
        if *head == index {
            *head = next;
        } else {
            let mut before = *head;
            while self.all[before as usize].next != index {
                before = self.all[before as usize].next;
            }
            self.all[before as usize].next = next;
        }
        self.free.push(index);
    }

    /// Those of the same stripe, in order of arrival.
    fn of_stripe(&self, stripe: u64) -> impl Iterator<Item = u32> {
        let some = |at: u32| (at != NONE).then_some(at);
        let first = some(self.heads[Self::chain(stripe)]);
        let chain = std::iter::successors(first, move |&at| some(self.all[at as usize].next));
        chain.filter(move |&at| self.all[at as usize].stripe == stripe)
    }

    /// Whether an earlier one has some of its rows.
    fn is_blocked(&self, index: u32) -> bool {
        let own = &self.all[index as usize];
        self.of_stripe(own.stripe).take_while(|&at| at != index).any(|at| {
            let rows = self.all[at as usize].rows;
            rows.lo < own.rows.hi && own.rows.lo < rows.hi
        })
    }

    /// The first of a stripe that waits for no other one any more.
    fn next_of(&self, stripe: u64) -> Option<u32> {
        self.of_stripe(stripe).find(|&at| {
            let other = &self.all[at as usize];
            other.state == State::Waiting && !other.queued && !self.is_blocked(at)
        })
    }

    /// One that still waits and takes these bytes of its stripe too.
    fn joinable(&self, stripe: u64, parts: &[StripePart]) -> Option<u32> {
        let last = self.of_stripe(stripe).last()?;
        let fits = |part: &StripePart| self.span(last, part.role).joins(part.span);
        let waits = self.all[last as usize].state == State::Waiting;
        (waits && parts.iter().all(fits)).then_some(last)
    }
}

impl Array {
    /// Hands a write to its stripes.
    pub(super) fn write_stripes(&mut self, host: u32) {
        let Command { offset, len, .. } = self.hosts.all[host as usize].command;
        let width = self.layout.parity().expect("stripes").width();
        let (mut at, end) = (offset, offset + len);
        while at < end {
            let (stripe, from) = (at / width, at % width);
            let to = width.min(from + end - at);
            self.join(host, stripe, from, to);
            at += to - from;
        }
    }

    /// The bytes `from..to` of the data of a stripe are written.
    fn join(&mut self, host: u32, stripe: u64, from: u64, to: u64) {
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
        let active = &mut self.hosts.all[host as usize];
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
        (own.state, own.queued, own.started) = (State::Reading, false, self.now);
        stripes.rows_active += own.rows.rows();
        stripes.cache.shrink(stripes.rows_max.saturating_sub(stripes.rows_active));
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
        let purpose = if op == Op::Read { Purpose::StripeRead } else { Purpose::StripeWrite };
        let len = part.span.hi - part.span.lo;
        self.slots[member as usize].pending += 1;
        self.send(Io { purpose, owner: index, member, op, offset, len }, stamp, compressible);
    }

    /// Everything needed is known: data and parity are written.
    fn write_stripe(&mut self, index: u32) {
        let own = &mut self.stripes.all[index as usize];
        (own.state, own.read) = (State::Writing, self.now);
        let mut parts = std::mem::take(&mut self.stripe_parts);
        self.parts_to_write(index, &mut parts);
        let own = &mut self.stripes.all[index as usize];
        (own.ios, own.remaining) = (parts.len() as u32, parts.len() as u32);
        self.stamp_parts(index, &parts);
        for (nth, part) in parts.iter().enumerate() {
            let stamp = self.stamp_of_part(nth);
            self.send_part(index, Op::Write, *part, stamp);
        }
        let none = parts.is_empty();
        self.stripe_parts = parts;
        if none {
            self.finish(index);
        }
    }

    /// A member has answered a command of a stripe.
    pub(super) fn stripe_answered(&mut self, io: Io, parts: &Parts) {
        let own = &mut self.stripes.all[io.owner as usize];
        own.remaining -= 1;
        if io.purpose == Purpose::StripeWrite {
            own.parts.add(parts);
        }
        if own.remaining > 0 {
            return;
        }
        match io.purpose {
            Purpose::StripeRead => self.write_stripe(io.owner),
            _ => self.finish(io.owner),
        }
    }

    /// The stripe is written: its hosts are answered, and others have their turn.
    fn finish(&mut self, index: u32) {
        self.hold_in_cache(index);
        let own = &mut self.stripes.all[index as usize];
        let (stripe, rows, started, read) = (own.stripe, own.rows.rows(), own.started, own.read);
        let (ios, sum) = (own.ios, own.parts);
        let hosts = std::mem::take(&mut own.hosts);
        for &host in &hosts {
            let active = &mut self.hosts.all[host as usize];
            active.remaining -= 1;
            if active.remaining == 0 {
                let mut before = Parts::default();
                before[Part::StripeWait] = started - active.submitted;
                before[Part::Parity] = read - started;
                self.complete(host, ios, &sum, before);
            }
        }
        self.stripes.all[index as usize].hosts = hosts;
        self.stripes.counts.written += 1;
        self.stripes.rows_active -= rows;
        self.stripes.end(index);
        while let Some(next) = self.stripes.next_of(stripe) {
            self.try_start(next);
        }
        self.drain_queue();
    }
}
