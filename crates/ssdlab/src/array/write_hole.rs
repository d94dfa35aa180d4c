//! The write hole. Stripes written in part when power went are left with a parity that is neither of
//! the old nor of the new data. A member that fails before such a stripe was made good (`resync.rs`)
//! is recovered wrong, in places that nobody wrote. That is found as contents would show it: every
//! chunk of such a stripe stands for its difference to what it was before, and what is recovered for
//! a chunk that was not written must be no difference.

use super::layout::Parity;
use super::plan::{How, Part};
use super::power::Power;
use super::stripe_cache::Span;
use super::stripes::Kind;
use super::{Array, Task, galois};
use crate::contract::mix;
use crate::persist::persistent;

/// A stretch of a stripe that was written in part.
#[derive(Clone, Debug, Default)]
pub(super) struct Run {
    stripe: u64,
    span: Span,
    /// By role: what the chunk holds, as its difference to before.
    values: Vec<u64>,
    /// By role: it was being written, so that it may hold either; it has been counted as lost.
    touched: Vec<bool>,
    lost: Vec<bool>,
}
persistent!(Run { state { stripe, span, values, touched, lost } });

impl Power {
    /// Whether some stripe does not agree.
    #[inline]
    pub fn is_torn(&self) -> bool {
        !self.open.is_empty()
    }

    /// A stretch of a stripe agrees again.
    pub fn heal(&mut self, stripe: u64, span: Span) {
        if self.open.is_empty() {
            return;
        }
        let mut rest = Vec::new();
        self.open.retain(|run| {
            let Span { lo, hi } = run.span;
            if run.stripe != stripe || span.hi <= lo || hi <= span.lo {
                return true;
            }
            for span in [Span { lo, hi: span.lo }, Span { lo: span.hi, hi }] {
                if span.lo < span.hi {
                    rest.push(Run { span, ..run.clone() });
                }
            }
            false
        });
        self.open.append(&mut rest);
    }

    /// A stretch of a stripe was written on these roles, and its parity changed by as much: they hold what
    /// they should, but the parity is as wrong as before.
    pub fn rewritten(&mut self, stripe: u64, span: Span, roles: &[u32], data: usize) {
        let inside =
            |run: &Run| run.stripe == stripe && run.span.lo < span.hi && span.lo < run.span.hi;
        let cut: Vec<Run> = self.open.iter().filter(|run| inside(run)).cloned().collect();
        if cut.is_empty() {
            return;
        }
        self.heal(stripe, span);
        for mut run in cut {
            run.span = Span { lo: run.span.lo.max(span.lo), hi: run.span.hi.min(span.hi) };
            let mut change = vec![0; data];
            for &role in roles {
                let role = role as usize;
                change[role] = std::mem::take(&mut run.values[role]);
                run.touched[role] = false;
            }
            let sums = galois::parities(&change);
            run.values[data..].iter_mut().zip(sums).for_each(|(value, sum)| *value ^= sum);
            self.open.push(run);
        }
    }

    /// All stripes in a range agree again.
    pub fn heal_stripes(&mut self, first: u64, end: u64) {
        self.open.retain(|run| !(first..end).contains(&run.stripe));
    }

    /// The smallest interval around all that does not agree in a stripe.
    pub fn torn(&self, stripe: u64) -> Span {
        let own = self.open.iter().filter(|run| run.stripe == stripe);
        own.fold(Span::default(), |hull, run| hull.hull(run.span))
    }
}

impl Array {
    /// Notes what the cut leaves of the stripes that were being written.
    pub(super) fn cut_stripes(&mut self, reached: &[bool]) {
        let Some(parity) = self.layout.parity().cloned() else { return };
        for index in 0..self.stripes.all.len() as u32 {
            if !self.stripes.is_written(index) {
                continue;
            }
            let own = &self.stripes.all[index as usize];
            let (stripe, rows) = (own.stripe, own.rows);
            match own.kind {
                Kind::Write => self.tear_stripe(&parity, index, reached),
                // Parity of what is there has been written, as far as all are concerned.
                Kind::Sync => self.power.heal(stripe, rows),
                Kind::Read | Kind::Rebuild => {}
            }
        }
    }

    fn tear_stripe(&mut self, parity: &Parity, index: u32, reached: &[bool]) {
        let stripe = self.stripes.all[index as usize].stripe;
        let mut parts = std::mem::take(&mut self.stripe_parts);
        self.parts_to_write(index, &mut parts);
        let in_flight = |part: &Part| {
            let member = parity.member(stripe, part.role);
            let offset = stripe * parity.chunk + part.span.lo;
            let id = self.fleet.ios.find(|io| {
                let own = io.purpose.task == Task::StripeWrite(index);
                own && io.purpose.seat == member && io.offset == offset
            });
            id.map(|id| id.index())
        };
        let arrived: Vec<(Part, bool)> = parts
            .iter()
            .map(|part| (*part, in_flight(part).is_none_or(|at| reached[at])))
            .collect();
        self.stripe_parts = parts;
        // Stretches in which everything is written as one.
        let own = &self.stripes.all[index as usize];
        let old = self.power.open.iter().filter(|run| run.stripe == stripe);
        let spans = (0..parity.data()).map(|role| self.stripes.span(index, role));
        let spans = spans.chain(own.segments.iter().map(|segment| segment.span));
        let mut cuts: Vec<u64> =
            spans.chain(old.map(|run| run.span)).flat_map(|span| [span.lo, span.hi]).collect();
        cuts.sort_unstable();
        cuts.dedup();
        let mut torn = false;
        for pair in cuts.windows(2) {
            torn |= self.tear(parity, index, Span { lo: pair[0], hi: pair[1] }, &arrived);
        }
        self.power.counts.open += 1;
        self.power.counts.torn += u64::from(torn);
    }

    /// Notes what the cut leaves of a stretch of a stripe; whether that disagrees.
    fn tear(&mut self, parity: &Parity, index: u32, span: Span, parts: &[(Part, bool)]) -> bool {
        let (data, roles) = (parity.data() as usize, parity.members as usize);
        let own = &self.stripes.all[index as usize];
        let stripe = own.stripe;
        let written = |role: usize| self.stripes.span(index, role as u32).covers(span);
        if !(0..data).any(written) {
            return false;
        }
        let covering = |run: &&Run| run.stripe == stripe && run.span.covers(span);
        let mut run = self.power.open.iter().find(covering).cloned().unwrap_or_else(|| Run {
            stripe,
            values: vec![0; roles],
            touched: vec![false; roles],
            lost: vec![false; roles],
            ..Run::default()
        });
        run.span = span;
        let salt = self.power.counts.losses;
        let change: Vec<u64> = (0..data)
            .map(|role| if written(role) { mix(stripe, salt << 8 | role as u64) | 1 } else { 0 })
            .collect();
        let known = self.run_whole(&run).unwrap_or_else(|| run.values.clone());
        let new: Vec<u64> = (0..data)
            .map(|role| if written(role) { run.values[role] ^ change[role] } else { known[role] })
            .collect();
        let how = own.segments.iter().find(|s| s.span.covers(span)).map(|segment| segment.how);
        let sums = match how {
            Some(How::Modify) => {
                let sums = galois::parities(&change);
                [0, 1].map(|p| run.values.get(data + p).copied().unwrap_or(0) ^ sums[p])
            }
            _ => galois::parities(&new),
        };
        for &(part, arrived) in parts.iter().filter(|(part, _)| part.span.covers(span)) {
            let role = part.role as usize;
            if arrived {
                run.values[role] = if role < data { new[role] } else { sums[role - data] };
            }
        }
        (0..data).filter(|&role| written(role)).for_each(|role| run.touched[role] = true);
        self.power.heal(stripe, span);
        let agree = galois::parities(&run.values[..data])[..roles - data] == run.values[data..];
        let torn = !agree || self.degraded;
        if torn {
            self.power.open.push(run);
        }
        torn
    }

    /// Every chunk of a stretch as it is read or recovered, if it can be.
    fn run_whole(&self, run: &Run) -> Option<Vec<u64>> {
        let parity = self.layout.parity().expect("stripes");
        let held = |(role, &value)| self.has_chunk(run.stripe, role).then_some(value);
        let mut chunks: Vec<Option<u64>> = (0..).zip(&run.values).map(held).collect();
        galois::recover(&mut chunks, parity.parities as usize)
            .then(|| chunks.into_iter().map(|chunk| chunk.unwrap_or(0)).collect())
    }

    /// Counts what is missing now and recovered wrong.
    pub(super) fn count_write_hole(&mut self) {
        if self.power.open.is_empty() || !self.degraded {
            return;
        }
        let data = self.layout.parity().expect("stripes").data();
        let mut open = std::mem::take(&mut self.power.open);
        let mut hole = 0;
        for run in &mut open {
            let Some(whole) = self.run_whole(run) else { continue };
            for role in (0..data).filter(|&role| !self.has_chunk(run.stripe, role)) {
                let nth = role as usize;
                if whole[nth] != 0 && !run.touched[nth] && !run.lost[nth] {
                    run.lost[nth] = true;
                    hole += run.span.hi - run.span.lo;
                }
            }
        }
        self.power.counts.hole += hole;
        self.power.open = open;
    }

    /// The chunk of a stripe was rebuilt for a member from what does not agree.
    pub(super) fn rebuilt_as_is(&mut self, stripe: u64, member: u32) {
        if self.power.open.is_empty() {
            return;
        }
        let parity = self.layout.parity().expect("stripes").clone();
        let mut open = std::mem::take(&mut self.power.open);
        for run in open.iter_mut().filter(|run| run.stripe == stripe) {
            let role = (0..parity.members).find(|&role| parity.member(stripe, role) == member);
            if let (Some(role), Some(whole)) = (role, self.run_whole(run)) {
                run.values[role as usize] = whole[role as usize];
            }
        }
        self.power.open = open;
    }
}
