//! The write hole. Stripes written in part when power went are left with a parity that is neither of the old nor of
//! the new data. A member that fails before such a stripe was made good (`resync.rs`) is recovered wrong, in places that
//! nobody wrote.
//!
//! Where the members keep what they have answered, and say what of the writes in flight they have missed, that is known
//! for each parity and each stretch of a stripe in which everything was written as one. Otherwise all of a
//! stripe is taken to be wrong that was being written, deallocated, or not flushed: what is counted is then the most
//! that can be lost.

use super::layout::Parity;
use super::plan::{How, Part, Segment};
use super::stripe_cache::Span;
use super::stripes::Kind;
use super::{Array, Task};
use crate::contract::Missed;
use crate::persist::persistent;
use std::collections::BTreeMap;

/// A stretch of a stripe whose parity does not agree with its data.
#[derive(Clone, Debug, Default)]
struct Stretch {
    span: Span,
    /// P and Q are not those of the data that the members hold.
    wrong: [bool; 2],
    /// Chunks of data that are not counted when they are lost: they were being written and are recovered as before or
    /// after, or have been counted.
    spared: Vec<u32>,
}
persistent!(Stretch { state { span, wrong, spared } });

/// What does not agree, and what it has cost.
#[derive(Default)]
pub(super) struct WriteHole {
    /// By stripe, without overlaps.
    torn: BTreeMap<u64, Vec<Stretch>>,
    /// Stripes that were torn so far, and bytes lost that nobody wrote.
    pub stripes: u64,
    pub exposed_bytes: u64,
}
persistent!(WriteHole { state { torn, stripes, exposed_bytes } });

impl WriteHole {
    /// Whether some stripe does not agree.
    #[inline]
    pub fn is_open(&self) -> bool {
        !self.torn.is_empty()
    }

    /// The smallest interval around all that does not agree in a stripe.
    pub fn span(&self, stripe: u64) -> Span {
        let stretches = self.torn.get(&stripe).into_iter().flatten();
        stretches.fold(Span::default(), |hull, stretch| hull.hull(stretch.span))
    }

    /// A stretch of a stripe agrees.
    pub fn heal(&mut self, stripe: u64, span: Span) {
        self.take(stripe, span);
    }

    /// The stripes from `first` to before `end` agree.
    pub fn heal_stripes(&mut self, first: u64, end: u64) {
        let healed: Vec<u64> = self.torn.range(first..end).map(|(&stripe, _)| stripe).collect();
        healed.iter().for_each(|stripe| drop(self.torn.remove(stripe)));
    }

    /// Chunks of a stretch hold what they should, and the parity has changed by as much: it is as wrong as before.
    pub fn rewritten(&mut self, stripe: u64, span: Span, roles: &[u32]) {
        for mut stretch in self.take(stripe, span) {
            stretch.spared.retain(|role| !roles.contains(role));
            self.put(stripe, stretch);
        }
    }

    /// A stripe may be wrong all over.
    pub fn tear_all(&mut self, stripe: u64, chunk: u64) {
        let span = Span { lo: 0, hi: chunk };
        self.torn.insert(stripe, vec![Stretch { span, wrong: [true; 2], spared: Vec::new() }]);
    }

    /// Takes what is noted of a stretch of a stripe.
    fn take(&mut self, stripe: u64, within: Span) -> Vec<Stretch> {
        let Some(all) = self.torn.remove(&stripe) else { return Vec::new() };
        let mut taken = Vec::new();
        for stretch in all {
            let Span { lo, hi } = stretch.span;
            let cuts = [lo, within.lo.clamp(lo, hi), within.hi.clamp(lo, hi), hi];
            for (nth, pair) in cuts.windows(2).enumerate().filter(|(_, pair)| pair[0] < pair[1]) {
                let part = Stretch { span: Span { lo: pair[0], hi: pair[1] }, ..stretch.clone() };
                match nth {
                    1 => taken.push(part),
                    _ => self.put(stripe, part),
                }
            }
        }
        taken
    }

    fn put(&mut self, stripe: u64, stretch: Stretch) {
        if stretch.wrong != [false; 2] {
            self.torn.entry(stripe).or_default().push(stretch);
        }
    }
}

/// A stripe that is being written.
pub(super) struct UnderWay {
    stripe: u64,
    /// What is written, and the place of the member if it has not answered.
    parts: Vec<(Part, Option<usize>)>,
    /// What is written of each chunk of data, and how the parity of that comes about.
    written: Vec<Span>,
    segments: Vec<Segment>,
}

impl Array {
    /// The stripes whose data or parity is on the way to the members.
    pub(super) fn stripes_under_way(&mut self) -> Vec<UnderWay> {
        let Some(parity) = self.layout.parity().cloned() else { return Vec::new() };
        let mut under_way = Vec::new();
        let mut parts = std::mem::take(&mut self.stripe_parts);
        for index in 0..self.stripes.all.len() as u32 {
            let own = &self.stripes.all[index as usize];
            if !self.stripes.is_written(index) || own.kind == Kind::Rebuild {
                continue;
            }
            self.parts_to_write(index, &mut parts);
            let (stripe, segments) = (own.stripe, own.segments.clone());
            let place = |part: &Part| {
                let seat = parity.member(stripe, part.role);
                let offset = stripe * parity.chunk + part.span.lo;
                let mut ios = self.fleet.ios.iter();
                let io = ios.find(|io| {
                    let of = io.purpose.task == Task::StripeWrite(index);
                    of && io.purpose.seat == seat && io.offset == offset
                });
                (*part, io.map(|io| io.member))
            };
            let roles = if own.kind == Kind::Write { parity.data() } else { 0 };
            let written = (0..roles).map(|role| self.stripes.span(index, role)).collect();
            let parts = parts.iter().map(place).collect();
            under_way.push(UnderWay { stripe, parts, written, segments });
        }
        self.stripe_parts = parts;
        under_way
    }

    /// Notes what a loss of power has left of a stripe that was being written, by what the members have missed.
    pub(super) fn tear_stripe(&mut self, under_way: &UnderWay, missed: &[Missed]) {
        let Some(parity) = self.layout.parity().cloned() else { return };
        let (stripe, begin) = (under_way.stripe, under_way.stripe * parity.chunk);
        // Stretches in which each part has arrived or has not.
        let inside = |&(from, to): &(u64, u64)| {
            [from, to].map(|at| at.saturating_sub(begin).min(parity.chunk))
        };
        let known = self.hole.torn.get(&stripe).into_iter().flatten().map(|stretch| stretch.span);
        let spans = under_way.parts.iter().map(|(part, _)| part.span);
        let spans = spans.chain(under_way.segments.iter().map(|segment| segment.span)).chain(known);
        let mut cuts: Vec<u64> = spans.flat_map(|span| [span.lo, span.hi]).collect();
        cuts.extend(missed.iter().flat_map(|missed| missed.ranges()).flat_map(inside));
        cuts.sort_unstable();
        cuts.dedup();
        for pair in cuts.windows(2) {
            let span = Span { lo: pair[0], hi: pair[1] };
            let covering = under_way.parts.iter().filter(|(part, _)| part.span.covers(span));
            let arrived: Vec<(u32, bool)> = covering
                .map(|&(part, slot)| {
                    let lost = |slot: usize| missed[slot].touches(begin + span.lo, begin + span.hi);
                    (part.role, !slot.is_some_and(lost))
                })
                .collect();
            if !arrived.is_empty() {
                self.tear(&parity, under_way, span, &arrived);
            }
        }
        self.hole.stripes += u64::from(self.hole.torn.contains_key(&stripe));
    }

    /// The same of one stretch: what was written, and whether it has arrived.
    fn tear(&mut self, parity: &Parity, own: &UnderWay, span: Span, arrived: &[(u32, bool)]) {
        let (stripe, data) = (own.stripe, parity.data());
        let before = self.hole.take(stripe, span).pop();
        let mut stretch = before.unwrap_or_else(|| Stretch { span, ..Stretch::default() });
        let modified = own.segments.iter().any(|s| s.span.covers(span) && s.how == How::Modify);
        // Parity that was computed from all data is right if everything is there.
        let anew = |before: bool| before && modified;
        let written = (0..).zip(&own.written).filter(|(_, written)| written.covers(span));
        let written: Vec<u32> = written.map(|(role, _)| role).collect();
        let all = arrived.iter().all(|&(_, arrived)| arrived);
        if all || !arrived.iter().any(|&(_, arrived)| arrived) {
            if all {
                stretch.wrong = stretch.wrong.map(anew);
                stretch.spared.retain(|role| !written.contains(role));
            }
            return self.hole.put(stripe, stretch);
        }
        // What is written to a chunk that is missing stands in the parities alone, which must say the same.
        let missing = written.iter().any(|&role| !self.has_chunk(stripe, role));
        let of_data = || arrived.iter().filter(|&&(role, _)| role < data);
        let (all, none) = (of_data().all(|&(_, there)| there), of_data().all(|&(_, there)| !there));
        for (role, wrong) in (data..parity.members).zip(&mut stretch.wrong) {
            let there = arrived.contains(&(role, true));
            *wrong = match there {
                _ if missing => true,
                true if all => anew(*wrong),
                false if none => *wrong,
                _ => true,
            };
        }
        // A chunk that was being written is recovered as it was, or is to be, where the rest of the data and the parity
        // that it is recovered by say the same. What was counted before is lost once more.
        let by = if self.has_chunk(stripe, data) { data } else { data + 1 };
        let same = |role: u32| {
            let rest = arrived.iter().filter(|(other, _)| *other != role);
            let mut rest = rest.filter(|(other, _)| *other < data || *other == by);
            let first = rest.next();
            first.is_none_or(|(_, first)| rest.all(|(_, there)| there == first))
        };
        stretch.spared = written.into_iter().filter(|&role| same(role)).collect();
        self.hole.put(stripe, stretch);
    }

    /// Counts what is missing now and recovered wrong.
    pub(super) fn count_exposed(&mut self) {
        if !self.hole.is_open() || !self.degraded {
            return;
        }
        let data = self.layout.parity().expect("stripes").data();
        let mut hole = std::mem::take(&mut self.hole);
        for (&stripe, stretches) in &mut hole.torn {
            if self.is_lost(stripe) {
                continue;
            }
            let gone: Vec<u32> = (0..data).filter(|&role| !self.has_chunk(stripe, role)).collect();
            let has_p = self.has_chunk(stripe, data);
            for stretch in stretches {
                let [p, q] = stretch.wrong;
                let wrong = match (gone.len(), has_p) {
                    (1, true) => p,
                    (1, false) => q,
                    _ => p || q,
                };
                for &role in gone.iter().filter(|_| wrong) {
                    if !stretch.spared.contains(&role) {
                        stretch.spared.push(role);
                        hole.exposed_bytes += stretch.span.hi - stretch.span.lo;
                    }
                }
            }
        }
        self.hole = hole;
    }

    /// The chunk of a stripe was rebuilt for a member from what does not agree: it agrees with what it came from.
    pub(super) fn rebuilt_as_is(&mut self, stripe: u64, member: u32) {
        if !self.hole.torn.contains_key(&stripe) {
            return;
        }
        let parity = self.layout.parity().expect("stripes");
        let data = parity.data();
        let gone = (0..data).filter(|&role| !self.has_chunk(stripe, role)).count();
        let has_p = self.has_chunk(stripe, data);
        let role = (0..parity.members).find(|&role| parity.member(stripe, role) == member);
        for stretch in self.hole.torn.get_mut(&stripe).into_iter().flatten() {
            let [p, q] = stretch.wrong;
            stretch.wrong = match (role.and_then(|role| role.checked_sub(data)), gone) {
                (Some(0), 0) => [false, q],
                (Some(_), 0) => [p, false],
                // Q is that of what was there.
                (None, 1) if has_p => [false, p || q],
                (None, 1) => [p, false],
                _ => [false; 2],
            };
        }
    }
}
