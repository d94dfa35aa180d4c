//! Writes of RAID 5 and 6: stripes that wait for their turn, read what parity needs, and are written.
//!
//! A write takes the rows of 4 KiB of its stripe; writes of other rows of the stripe do not disturb
//! it. What must wait gathers further writes that follow on from it, so that a busy array writes
//! stripes whole. md's raid5 keeps each row of 4 KiB apart and leaves it to the block layer to join
//! the commands of neighbouring rows; here a stripe's rows go together.

mod flow;

use super::keys::ROW;
use super::layout::Layout;
use super::plan::{Part as StripePart, Segment};
use super::stripe_cache::{Span, StripeCache};
use crate::fleet::HostId;
use crate::persist::{persistent, persistent_enum};
use crate::stats::Parts;
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
persistent_enum!(State { Waiting, Reading, Writing });

/// What a stripe is taken for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) enum Kind {
    /// Writes of the host.
    #[default]
    Write,
    /// A read of the host of a chunk whose member is missing.
    Read,
    /// A chunk for a spare.
    Rebuild,
    /// Parity that may be wrong after a loss of power.
    Sync,
}
persistent_enum!(Kind { Write, Read, Rebuild, Sync });

/// A stripe that is being written, or will be.
#[derive(Debug, Default)]
pub(super) struct Stripe {
    /// Its number.
    pub stripe: u64,
    /// Rows that it takes, of every chunk.
    pub rows: Span,
    pub kind: Kind,
    /// What is read or rebuilt; the member and the slot of the spare.
    pub wanted: StripePart,
    pub member: u32,
    pub slot: u32,
    state: State,
    /// A member failed while it read: it must be planned again.
    pub again: bool,
    /// It has its turn, but there is no room in the stripe cache.
    queued: bool,
    /// Commands of members that it waits for, and of those since the reads.
    remaining: u32,
    pub ios: u32,
    parts: Parts,
    started: u64,
    read: u64,
    compressible: u8,
    pub hosts: Vec<HostId>,
    /// What is read before it is written, and what the cache has of that.
    pub reads: Vec<StripePart>,
    pub held: Vec<StripePart>,
    pub segments: Vec<Segment>,
    /// In tests: what is written, by role: span and version of its first sector.
    pub fresh: Vec<(StripePart, u64)>,
    next: u32,
}
persistent!(Stripe {
    state {
        stripe, rows, kind, wanted, member, slot, state, again, queued, remaining, ios, parts, started,
        read, compressible, hosts, reads, held, segments, fresh, next,
    }
});

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
    /// Reads of a chunk whose member is missing.
    pub recovered: u64,
}
persistent!(StripeCounts {
    state {
        written, whole, joined, waited, read_modify_write, reconstruct_write, recovered,
    }
});

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
persistent!(Stripes {
    state { all, free, spans, queue, rows_active, cache, counts }
    parts { heads }
    built { data, rows_max, cuts }
});

impl Stripes {
    /// Stripes whose data and parity are on the way.
    pub fn being_written(&self) -> u64 {
        self.all.iter().filter(|s| s.state == State::Writing && s.kind == Kind::Write).count()
            as u64
    }

    /// Whether data or parity of it are on the way.
    pub fn is_written(&self, index: u32) -> bool {
        self.all[index as usize].state == State::Writing
    }

    /// Power is gone: none is left.
    pub fn cut(&mut self) {
        self.all.clear();
        self.free.clear();
        self.spans.clear();
        self.heads.fill(NONE);
        self.queue.clear();
        self.rows_active = 0;
        self.forget();
    }

    /// Plans those again that read.
    pub fn read_again(&mut self) {
        for stripe in &mut self.all {
            stripe.again |= stripe.state == State::Reading;
        }
    }

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
        (new.kind, new.again) = (Kind::Write, false);
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
        // Neither reading nor writing, for those who look at all.
        self.all[index as usize].state = State::Waiting;
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
        let own = &self.all[last as usize];
        // Rows between those of two writes would be taken for nothing, and keep others waiting.
        let beside = |span: Span| {
            own.rows.joins(Span { lo: span.lo / ROW * ROW, hi: span.hi.div_ceil(ROW) * ROW })
        };
        let fits =
            |part: &StripePart| beside(part.span) && self.span(last, part.role).joins(part.span);
        let waits = own.state == State::Waiting && own.kind == Kind::Write;
        (waits && parts.iter().all(fits)).then_some(last)
    }
}
