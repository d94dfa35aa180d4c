//! What a stripe must read before its parity can be written: the old content of what is written and
//! of the parity (read-modify-write), or of what is not written (reconstruct-write), whichever takes
//! fewer reads; reconstruct-write where both take as many, as md decides. What the stripe cache holds
//! need not be read. A stretch of rows in which the same chunks are written is decided by itself.

use super::Array;
use super::stripe_cache::Span;

/// A part of one chunk of a stripe.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Part {
    /// Data 0, 1, ..., then P, then Q.
    pub role: u32,
    pub span: Span,
}

/// How new parity comes about.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum How {
    /// From the old parity and the old and new content of what is written.
    Modify,
    /// From all data, new and old.
    Reconstruct,
}

/// A stretch of rows and how its parity comes about.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Segment {
    pub span: Span,
    pub how: How,
}

/// Adds a part to a list, to the one before it of the same chunk where it follows on.
fn add(list: &mut Vec<Part>, role: u32, span: Span) {
    match list.iter_mut().rev().find(|part| part.role == role) {
        Some(last) if last.span.hi == span.lo => last.span.hi = span.hi,
        _ => list.push(Part { role, span }),
    }
}

impl Array {
    /// Whether a chunk of a stripe can be read and written.
    pub(super) fn has_chunk(&self, stripe: u64, role: u32) -> bool {
        let parity = self.layout.parity().expect("stripes");
        self.alive(parity.member(stripe, role))
    }

    /// Fills in what a stripe reads, what the cache holds of that, and its segments.
    pub(super) fn plan(&mut self, index: u32) {
        let parity = self.layout.parity().expect("stripes");
        let (data, roles) = (parity.data(), parity.members);
        let mut cuts = std::mem::take(&mut self.stripes.cuts);
        cuts.clear();
        for role in 0..data {
            let Span { lo, hi } = self.stripes.span(index, role);
            if lo < hi {
                cuts.extend([lo, hi]);
            }
        }
        cuts.sort_unstable();
        cuts.dedup();
        let own = &mut self.stripes.all[index as usize];
        let (stripe, mut reads) = (own.stripe, std::mem::take(&mut own.reads));
        let (mut held, mut segments) =
            (std::mem::take(&mut own.held), std::mem::take(&mut own.segments));
        reads.clear();
        held.clear();
        segments.clear();
        let mut modified = false;
        for pair in cuts.windows(2) {
            let span = Span { lo: pair[0], hi: pair[1] };
            let Some(how) = self.decide(index, stripe, span) else { continue };
            modified |= how == How::Modify;
            segments.push(Segment { span, how });
            for role in 0..roles {
                let written = role < data && self.stripes.span(index, role).covers(span);
                let needed = match how {
                    How::Modify => written || role >= data,
                    How::Reconstruct => !written && role < data,
                };
                if !needed || !self.has_chunk(stripe, role) {
                    continue;
                }
                let list = if self.stripes.cache.covers(stripe, role, span) {
                    &mut held
                } else {
                    &mut reads
                };
                add(list, role, span);
            }
        }
        let counts = &mut self.stripes.counts;
        if reads.is_empty() && held.is_empty() {
            counts.whole += 1;
        } else if modified {
            counts.read_modify_write += 1;
        } else {
            counts.reconstruct_write += 1;
        }
        self.stripes.cuts = cuts;
        let own = &mut self.stripes.all[index as usize];
        (own.reads, own.held, own.segments) = (reads, held, segments);
    }

    /// How the parity of a stretch comes about; `None` where nothing in it is written.
    fn decide(&self, index: u32, stripe: u64, span: Span) -> Option<How> {
        let parity = self.layout.parity().expect("stripes");
        let (mut modify, mut reconstruct, mut any) = (0, 0, false);
        for role in 0..parity.members {
            let cached = self.stripes.cache.covers(stripe, role, span);
            if role >= parity.data() {
                modify += u32::from(!cached);
            } else if self.stripes.span(index, role).covers(span) {
                any = true;
                modify += u32::from(!cached);
            } else {
                reconstruct += u32::from(!cached);
            }
        }
        let how = if modify < reconstruct { How::Modify } else { How::Reconstruct };
        any.then_some(how)
    }

    /// What is written of a stripe: the data, and parity of every stretch with some.
    pub(super) fn parts_to_write(&self, index: u32, parts: &mut Vec<Part>) {
        let parity = self.layout.parity().expect("stripes");
        let own = &self.stripes.all[index as usize];
        parts.clear();
        for role in 0..parity.data() {
            let span = self.stripes.span(index, role);
            if !span.is_empty() && self.has_chunk(own.stripe, role) {
                parts.push(Part { role, span });
            }
        }
        for role in parity.data()..parity.members {
            if self.has_chunk(own.stripe, role) {
                own.segments.iter().for_each(|segment| add(parts, role, segment.span));
            }
        }
    }

    /// What was read and written of a stripe is in the cache now.
    pub(super) fn hold_in_cache(&mut self, index: u32) {
        let own = &mut self.stripes.all[index as usize];
        let (stripe, reads) = (own.stripe, std::mem::take(&mut own.reads));
        for part in &reads {
            self.stripes.cache.hold(stripe, part.role, part.span);
        }
        self.stripes.all[index as usize].reads = reads;
        let mut parts = std::mem::take(&mut self.stripe_parts);
        self.parts_to_write(index, &mut parts);
        for part in &parts {
            self.stripes.cache.hold(stripe, part.role, part.span);
        }
        self.stripe_parts = parts;
        self.stripes.cache.touch(stripe);
    }

    /// Whether the cache holds all of a read.
    pub(super) fn in_stripe_cache(&mut self, command: &crate::device::Command) -> bool {
        let parity = self.layout.parity().expect("stripes");
        let (chunk, data) = (parity.chunk, u64::from(parity.data()));
        let (mut at, end) = (command.offset, command.offset + command.len);
        while at < end {
            let (index, lo) = (at / chunk, at % chunk);
            let hi = chunk.min(lo + end - at);
            let role = (index % data) as u32;
            if !self.stripes.cache.covers(index / data, role, Span { lo, hi }) {
                return false;
            }
            at += hi - lo;
        }
        self.stripes.cache.touch(command.offset / (chunk * data));
        true
    }
}
