//! What a stripe must read before its parity can be written: the old content of what is written and
//! of the parity (read-modify-write), or of what is not written (reconstruct-write), whichever takes
//! fewer reads; reconstruct-write where both take as many, as md decides. What the stripe cache holds
//! need not be read. A stretch of rows in which the same chunks are written is decided by itself.

use super::Array;
use super::stripe_cache::Span;
use super::stripes::Kind;
use crate::persist::{persistent, persistent_enum};

/// A part of one chunk of a stripe.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Part {
    /// Data 0, 1, ..., then P, then Q.
    pub role: u32,
    pub span: Span,
}

persistent!(Part { state { role, span } });

/// How new parity comes about.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) enum How {
    /// From the old parity and the old and new content of what is written.
    Modify,
    /// From all data, new and old.
    #[default]
    Reconstruct,
    /// The same, where some old data are on a member that is missing: from as many chunks of data and
    /// parity as recover them.
    Recover,
}
persistent_enum!(How { Modify, Reconstruct, Recover });

/// A stretch of rows and how its parity comes about.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Segment {
    pub span: Span,
    pub how: How,
}
persistent!(Segment { state { span, how } });

/// Adds a part to a list, to the one before it of the same chunk where it follows on.
fn add(list: &mut Vec<Part>, role: u32, span: Span) {
    match list.iter_mut().rev().find(|part| part.role == role) {
        Some(last) if last.span.hi == span.lo => last.span.hi = span.hi,
        _ => list.push(Part { role, span }),
    }
}

impl Array {
    /// Fills in what a stripe reads, what the cache holds of that, and its segments.
    pub(super) fn plan(&mut self, index: u32) {
        if self.stripes.all[index as usize].kind != Kind::Write {
            self.plan_recovery(index);
            return;
        }
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
        let (mut modified, mut reconstructed) = (false, false);
        for pair in cuts.windows(2) {
            let span = Span { lo: pair[0], hi: pair[1] };
            let Some(how) = self.decide(index, stripe, span) else { continue };
            segments.push(Segment { span, how });
            let mut enough = 0;
            for role in 0..roles {
                let written = role < data && self.stripes.span(index, role).covers(span);
                let needed = match how {
                    How::Modify => written || role >= data,
                    How::Reconstruct => !written && role < data,
                    How::Recover => enough < data,
                };
                if !needed || !self.has_chunk(stripe, role) {
                    continue;
                }
                enough += 1;
                modified |= how == How::Modify;
                reconstructed |= how != How::Modify;
                let list = if self.stripes.cache.covers(stripe, role, span) {
                    &mut held
                } else {
                    &mut reads
                };
                add(list, role, span);
            }
        }
        let counts = &mut self.stripes.counts;
        counts.whole += u64::from(!modified && !reconstructed);
        counts.read_modify_write += u64::from(modified);
        counts.reconstruct_write += u64::from(reconstructed);
        self.stripes.cuts = cuts;
        let own = &mut self.stripes.all[index as usize];
        (own.reads, own.held, own.segments) = (reads, held, segments);
    }

    /// As many chunks as recover what is wanted of one.
    fn plan_recovery(&mut self, index: u32) {
        let own = &mut self.stripes.all[index as usize];
        let (stripe, span) = (own.stripe, own.wanted.span);
        own.held.clear();
        own.segments.clear();
        let mut reads = std::mem::take(&mut own.reads);
        reads.clear();
        let parity = self.layout.parity().expect("stripes");
        for role in (0..parity.members).filter(|&role| self.has_chunk(stripe, role)) {
            // What is to agree is read whole.
            let all = self.stripes.all[index as usize].kind == Kind::Sync;
            if all || reads.len() < parity.data() as usize {
                reads.push(Part { role, span });
            }
        }
        self.stripes.all[index as usize].reads = reads;
    }

    /// How the parity of a stretch comes about; `None` where nothing in it is written.
    fn decide(&self, index: u32, stripe: u64, span: Span) -> Option<How> {
        let parity = self.layout.parity().expect("stripes");
        let (mut modify, mut reconstruct, mut any) = (0, 0, false);
        let (mut can_modify, mut can_reconstruct, mut parities) = (true, true, 0);
        for role in 0..parity.members {
            let cached = self.stripes.cache.covers(stripe, role, span);
            let missing = !self.has_chunk(stripe, role);
            if role >= parity.data() {
                parities += u32::from(!missing);
                modify += u32::from(!cached && !missing);
            } else if self.stripes.span(index, role).covers(span) {
                any = true;
                can_modify &= !missing;
                modify += u32::from(!cached);
            } else {
                can_reconstruct &= !missing;
                reconstruct += u32::from(!cached);
            }
        }
        let how = match (can_modify, can_reconstruct) {
            // Without a parity to write, nothing need be known.
            (true, _) if parities == 0 => How::Modify,
            // Old parity may be wrong where power was lost (md does not rely on it either).
            (true, true) if modify < reconstruct && !self.has_stale_parity(stripe) => How::Modify,
            (_, true) => How::Reconstruct,
            (true, false) => How::Modify,
            (false, false) => How::Recover,
        };
        (any && parities > 0).then_some(how)
    }

    #[inline]
    fn has_stale_parity(&self, stripe: u64) -> bool {
        !self.resync.stale.is_empty() && self.resync.touches(stripe, stripe + 1)
    }

    /// What is written of a stripe: the data, and parity of every stretch with some.
    pub(super) fn parts_to_write(&self, index: u32, parts: &mut Vec<Part>) {
        let parity = self.layout.parity().expect("stripes");
        let own = &self.stripes.all[index as usize];
        parts.clear();
        match own.kind {
            Kind::Write => {}
            Kind::Read => return,
            Kind::Sync => return self.parts_to_sync(own.stripe, parts),
            Kind::Rebuild => {
                if self.seats[own.member as usize].slot == own.slot {
                    parts.push(own.wanted);
                }
                return;
            }
        }
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
        if self.degraded {
            return;
        }
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
}
