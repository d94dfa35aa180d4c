//! What the stripe cache holds of stripes lately read or written: an interval of each chunk.
//! Least recently used stripes make room; the size is counted in rows of 4 KiB of all members.

use super::keys::ROW;
use crate::persist::persistent;

const NONE: u32 = u32::MAX;

/// Bytes of a chunk, `lo..hi`; empty where they are equal.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Span {
    pub lo: u64,
    pub hi: u64,
}

persistent!(Span { state { lo, hi } });

impl Span {
    /// Whether it holds nothing.
    #[inline]
    pub fn is_empty(self) -> bool {
        self.lo == self.hi
    }
    /// Whether all of `other` lies in it.
    #[inline]
    pub fn covers(self, other: Span) -> bool {
        self.lo <= other.lo && other.hi <= self.hi
    }
    /// Whether the two together are one interval.
    #[inline]
    pub fn joins(self, other: Span) -> bool {
        self.is_empty() || other.is_empty() || (self.lo <= other.hi && other.lo <= self.hi)
    }
    /// The smallest interval around both.
    #[inline]
    pub fn hull(self, other: Span) -> Span {
        match (self.is_empty(), other.is_empty()) {
            (true, _) => other,
            (_, true) => self,
            _ => Span { lo: self.lo.min(other.lo), hi: self.hi.max(other.hi) },
        }
    }
    /// Rows of 4 KiB that it touches.
    #[inline]
    pub fn rows(self) -> u64 {
        if self.is_empty() { 0 } else { self.hi.div_ceil(ROW) - self.lo / ROW }
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct Entry {
    stripe: u64,
    rows: u64,
    /// In the chain of its hash, and in the order of use.
    next: u32,
    newer: u32,
    older: u32,
}

persistent!(Entry { state { stripe, rows, next, newer, older } });

/// See the module.
pub struct StripeCache {
    roles: usize,
    entries: Vec<Entry>,
    free: Vec<u32>,
    /// `roles` spans of each entry.
    spans: Vec<Span>,
    heads: Vec<u32>,
    newest: u32,
    oldest: u32,
    rows: u64,
}

persistent!(StripeCache {
    state { entries, free, spans, newest, oldest, rows }
    parts { heads }
    built { roles }
});

impl StripeCache {
    /// An empty cache for stripes of `roles` chunks; `size` is a hint.
    pub fn new(roles: u32, size: u32) -> Self {
        StripeCache {
            roles: roles as usize,
            entries: Vec::new(),
            free: Vec::new(),
            spans: Vec::new(),
            heads: vec![NONE; (size as usize).next_power_of_two()],
            newest: NONE,
            oldest: NONE,
            rows: 0,
        }
    }

    fn bucket(&self, stripe: u64) -> usize {
        (stripe.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as usize & (self.heads.len() - 1)
    }

    fn find(&self, stripe: u64) -> Option<u32> {
        let mut at = self.heads[self.bucket(stripe)];
        while at != NONE {
            let entry = &self.entries[at as usize];
            if entry.stripe == stripe {
                return Some(at);
            }
            at = entry.next;
        }
        None
    }

    /// Whether a part of a chunk is held.
    pub fn covers(&self, stripe: u64, role: u32, part: Span) -> bool {
        let held = |entry: u32| self.spans[entry as usize * self.roles + role as usize];
        self.find(stripe).is_some_and(|entry| held(entry).covers(part))
    }

    /// Holds a part of a chunk, with what it has of it where both are one interval.
    pub fn hold(&mut self, stripe: u64, role: u32, part: Span) {
        let entry = self.find(stripe).unwrap_or_else(|| self.insert(stripe));
        let all = entry as usize * self.roles..(entry as usize + 1) * self.roles;
        let span = &mut self.spans[all.start + role as usize];
        let held = std::mem::replace(span, if span.joins(part) { span.hull(part) } else { part });
        if held == *span {
            return;
        }
        let hull = self.spans[all].iter().fold(Span::default(), |hull, &s| hull.hull(s));
        let rows = std::mem::replace(&mut self.entries[entry as usize].rows, hull.rows());
        self.rows = self.rows + hull.rows() - rows;
    }

    /// The stripe was used just now.
    pub fn touch(&mut self, stripe: u64) {
        if let Some(entry) = self.find(stripe) {
            self.unlink(entry);
            self.link(entry);
        }
    }

    /// Drops the least recently used until at most `rows` are left.
    pub fn shrink(&mut self, rows: u64) {
        while self.rows > rows {
            self.remove(self.oldest);
        }
    }

    /// Drops what lies in the stripes `first..end`.
    pub fn forget(&mut self, first: u64, end: u64) {
        let mut at = self.oldest;
        while at != NONE {
            let Entry { stripe, newer, .. } = self.entries[at as usize];
            if (first..end).contains(&stripe) {
                self.remove(at);
            }
            at = newer;
        }
    }

    fn insert(&mut self, stripe: u64) -> u32 {
        let bucket = self.bucket(stripe);
        let entry = Entry { stripe, rows: 0, next: self.heads[bucket], newer: NONE, older: NONE };
        let at = match self.free.pop() {
            Some(at) => {
                self.entries[at as usize] = entry;
                at
            }
            None => {
                self.entries.push(entry);
                self.spans.resize(self.entries.len() * self.roles, Span::default());
                (self.entries.len() - 1) as u32
            }
        };
        self.spans[at as usize * self.roles..][..self.roles].fill(Span::default());
        self.heads[bucket] = at;
        self.link(at);
        at
    }

    fn remove(&mut self, at: u32) {
        self.unlink(at);
        let Entry { stripe, rows, next, .. } = self.entries[at as usize];
        self.rows -= rows;
        let bucket = self.bucket(stripe);
        if self.heads[bucket] == at {
            self.heads[bucket] = next;
        } else {
            let mut before = self.heads[bucket];
            while self.entries[before as usize].next != at {
                before = self.entries[before as usize].next;
            }
            self.entries[before as usize].next = next;
        }
        self.free.push(at);
    }

    fn link(&mut self, at: u32) {
        let newest = std::mem::replace(&mut self.newest, at);
        let entry = &mut self.entries[at as usize];
        (entry.newer, entry.older) = (NONE, newest);
        match newest {
            NONE => self.oldest = at,
            newest => self.entries[newest as usize].newer = at,
        }
    }

    fn unlink(&mut self, at: u32) {
        let Entry { newer, older, .. } = self.entries[at as usize];
        match newer {
            NONE => self.newest = older,
            newer => self.entries[newer as usize].older = older,
        }
        match older {
            NONE => self.oldest = newer,
            older => self.entries[older as usize].newer = newer,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Stream;
    use std::collections::BTreeMap;

    #[test]
    fn it_holds_what_a_plain_list_in_order_of_use_holds() {
        let mut rng = Stream::new(1, "stripe cache");
        let mut cache = StripeCache::new(3, 4);
        // Stripe to spans; order of use, the oldest first.
        let mut plain: BTreeMap<u64, [Span; 3]> = BTreeMap::new();
        let mut order: Vec<u64> = Vec::new();
        let rows =
            |spans: &[Span; 3]| spans.iter().fold(Span::default(), |hull, &s| hull.hull(s)).rows();
        for _ in 0..20_000 {
            let (stripe, role) = (rng.below(12), rng.below(3) as usize);
            let lo = rng.below(20) * 2048;
            let part = Span { lo, hi: lo + (1 + rng.below(4)) * 2048 };
            match rng.below(10) {
                0..6 => {
                    cache.hold(stripe, role as u32, part);
                    cache.touch(stripe);
                    let span = &mut plain.entry(stripe).or_default()[role];
                    *span = if span.joins(part) { span.hull(part) } else { part };
                    order.retain(|&s| s != stripe);
                    order.push(stripe);
                }
                6..9 => {
                    cache.shrink(40);
                    while plain.values().map(rows).sum::<u64>() > 40 {
                        plain.remove(&order.remove(0));
                    }
                }
                _ => {
                    cache.forget(stripe, stripe + 2);
                    plain.retain(|s, _| !(stripe..stripe + 2).contains(s));
                    order.retain(|s| plain.contains_key(s));
                }
            }
            assert_eq!(cache.rows, plain.values().map(rows).sum::<u64>());
            let held = plain.get(&stripe).is_some_and(|spans| spans[role].covers(part));
            assert_eq!(cache.covers(stripe, role as u32, part), held);
        }
    }
}
