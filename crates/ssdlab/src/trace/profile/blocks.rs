//! The blocks that a trace touched: when last, how often, and how many others since.
//!
//! Reuse distances are exact: the number of different blocks touched between two touches of a block,
//! counted in a tree of partial sums over the order of last touches (Bennett and Kruskal 1975), O(log n)
//! each. Past [`BLOCKS_MAX`] blocks a fixed share of them goes on being followed, chosen by a hash of their
//! numbers, and every count stands for its inverse (SHARDS, Waldspurger et al., FAST 2015): memory is
//! bounded however much a trace touches.

use super::super::select::place_hash;
use crate::stats::{BINS, bin_of};

/// Blocks that are followed at most; beyond, a half of them is let go.
const BLOCKS_MAX: usize = 1 << 22;

/// One block; the hash stands for its number and device.
#[derive(Clone, Copy, Default)]
struct Slot {
    /// 0: free.
    hash: u64,
    /// Time of the last touch, ns.
    time_ns: u64,
    /// Place of the last touch in the order of touches.
    order: u32,
    touches: u32,
    /// Bit 0: was read; bit 1: was written.
    kinds: u8,
}

/// What a touch found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Touch {
    /// Time of the touch before; `None` for a block never seen.
    pub last_ns: Option<u64>,
    /// How many touches this one stands for.
    pub weight: u64,
}

/// See the module.
pub(super) struct Blocks {
    slots: Vec<Slot>,
    live: usize,
    limit: usize,
    /// Blocks with a hash above this are not followed.
    threshold: u64,
    weight: u64,
    /// Partial sums over the order of touches: 1 where a block was last touched.
    tree: Vec<u32>,
    next: u32,
    /// Reuse distances in blocks, in fio's bins.
    pub distances: Box<[u64; BINS]>,
}

impl Blocks {
    pub fn new() -> Self {
        Self::limited(BLOCKS_MAX)
    }

    fn limited(limit: usize) -> Self {
        Blocks {
            slots: vec![Slot::default(); 1 << 12],
            live: 0,
            limit,
            threshold: u64::MAX,
            weight: 1,
            tree: vec![0; (1 << 13) + 1],
            next: 0,
            distances: Box::new([0; BINS]),
        }
    }

    /// Touches block `number` of `device`; `None` where it is not followed.
    #[inline]
    pub fn touch(&mut self, device: u32, number: u64, time_ns: u64, kind: u8) -> Option<Touch> {
        let hash = place_hash(device, number).max(1);
        if hash > self.threshold {
            return None;
        }
        if self.next as usize + 1 == self.tree.len() {
            self.renumber();
        }
        let order = self.next;
        self.next += 1;
        let at = self.find(hash);
        let slot = &mut self.slots[at];
        let known = (slot.hash != 0).then_some((slot.time_ns, slot.order));
        *slot = Slot {
            hash,
            time_ns,
            order,
            touches: slot.touches.saturating_add(1),
            kinds: slot.kinds | kind,
        };
        self.mark(order, 1);
        let weight = self.weight;
        match known {
            Some((last_ns, last)) => {
                self.mark(last, u32::MAX);
                // The block itself was marked anew; it is not among those between.
                let since = self.live as u64 - u64::from(self.upto(last));
                self.distances[bin_of((since - 1) * weight)] += weight;
                Some(Touch { last_ns: Some(last_ns), weight })
            }
            None => {
                self.live += 1;
                if self.live > self.limit {
                    self.halve_sample();
                } else if self.live * 2 > self.slots.len() {
                    self.rehash(self.slots.len() * 2);
                }
                Some(Touch { last_ns: None, weight })
            }
        }
    }

    /// Share of the blocks that is followed, as 1 to this number.
    pub fn weight(&self) -> u64 {
        self.weight
    }

    /// Blocks touched in all, read, written; estimates where not all are followed.
    pub fn footprint(&self) -> [u64; 3] {
        let mut counts = [0; 3];
        for slot in self.slots.iter().filter(|slot| slot.hash != 0) {
            counts[0] += self.weight;
            counts[1] += self.weight * u64::from(slot.kinds & 1);
            counts[2] += self.weight * u64::from(slot.kinds >> 1 & 1);
        }
        counts
    }

    /// Share of all touches that the hottest blocks take, for each share of the blocks (percent).
    pub fn popularity(&self, percents: &[f64]) -> Vec<f64> {
        let live = self.slots.iter().filter(|slot| slot.hash != 0);
        let mut counts: Vec<u32> = live.map(|slot| slot.touches).collect();
        counts.sort_unstable_by(|a, b| b.cmp(a));
        let all: u64 = counts.iter().map(|count| u64::from(*count)).sum();
        let share = |percent: &f64| {
            let hottest = ((counts.len() as f64 * percent / 100.0).round() as usize).max(1);
            let part: u64 = counts.iter().take(hottest).map(|count| u64::from(*count)).sum();
            if all == 0 { 0.0 } else { part as f64 / all as f64 }
        };
        percents.iter().map(share).collect()
    }

    #[inline]
    fn find(&self, hash: u64) -> usize {
        let mask = self.slots.len() - 1;
        let mut at = hash as usize & mask;
        while self.slots[at].hash != hash && self.slots[at].hash != 0 {
            at = (at + 1) & mask;
        }
        at
    }

    /// Adds `by` (wrapping) at a place of the order.
    #[inline]
    fn mark(&mut self, order: u32, by: u32) {
        let mut at = order as usize + 1;
        while at < self.tree.len() {
            self.tree[at] = self.tree[at].wrapping_add(by);
            at += at & at.wrapping_neg();
        }
    }

    /// Marks at `order` and before.
    #[inline]
    fn upto(&self, order: u32) -> u32 {
        let mut at = order as usize + 1;
        let mut sum = 0u32;
        while at > 0 {
            sum = sum.wrapping_add(self.tree[at]);
            at &= at - 1;
        }
        sum
    }

    fn rehash(&mut self, size: usize) {
        let old = std::mem::replace(&mut self.slots, vec![Slot::default(); size]);
        for slot in old.into_iter().filter(|slot| slot.hash != 0) {
            let at = self.find(slot.hash);
            self.slots[at] = slot;
        }
    }

    /// Drops every block in the upper half of the hashes.
    fn halve_sample(&mut self) {
        self.threshold /= 2;
        self.weight *= 2;
        for slot in &mut self.slots {
            if slot.hash > self.threshold {
                *slot = Slot::default();
            }
        }
        self.rehash(self.slots.len());
        self.live = self.slots.iter().filter(|slot| slot.hash != 0).count();
        self.renumber();
    }

    /// Numbers the last touches anew, without gaps.
    fn renumber(&mut self) {
        let mut order: Vec<(u32, u32)> = Vec::with_capacity(self.live);
        for (at, slot) in self.slots.iter().enumerate().filter(|(_, slot)| slot.hash != 0) {
            order.push((slot.order, at as u32));
        }
        order.sort_unstable();
        let size = (order.len() * 2).next_power_of_two().max(1 << 13);
        self.tree.clear();
        self.tree.resize(size + 1, 0);
        for (new, (_, at)) in order.iter().enumerate() {
            self.slots[*at as usize].order = new as u32;
            self.tree[new + 1] = 1;
        }
        for at in 1..=size {
            let parent = at + (at & at.wrapping_neg());
            if parent <= size {
                self.tree[parent] += self.tree[at];
            }
        }
        self.next = order.len() as u32;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Stream;

    /// Distances counted the plain way.
    fn plain(touches: &[u64]) -> [u64; BINS] {
        let mut bins = [0; BINS];
        for (at, block) in touches.iter().enumerate() {
            if let Some(last) = touches[..at].iter().rposition(|other| other == block) {
                let between: std::collections::BTreeSet<_> = touches[last + 1..at].iter().collect();
                bins[bin_of(between.len() as u64)] += 1;
            }
        }
        bins
    }

    #[test]
    fn reuse_distances_are_those_of_plain_counting() {
        let mut stream = Stream::new(1, "reuse");
        let mut block = || {
            let most = 1 + stream.below(300);
            stream.below(most)
        };
        let touches: Vec<u64> = (0..20_000).map(|_| block()).collect();
        let mut blocks = Blocks::new();
        for block in &touches {
            blocks.touch(0, *block, 0, 1);
        }
        assert_eq!(*blocks.distances, plain(&touches));
    }

    #[test]
    fn what_is_dropped_stands_for_as_much_as_stays() {
        let mut stream = Stream::new(2, "sample");
        let (mut exact, mut some) = (Blocks::new(), Blocks::limited(10_000));
        for _ in 0..600_000 {
            let block = stream.below(100_000);
            exact.touch(0, block, 0, 1);
            some.touch(0, block, 0, 1);
        }
        assert_eq!((exact.weight(), some.weight()), (1, 16));
        let all = exact.footprint()[0] as f64;
        let told = some.footprint()[0] as f64;
        assert!((told / all - 1.0).abs() < 0.05, "{told} of {all}");
        let half = |blocks: &Blocks| {
            let mut left = blocks.distances.iter().sum::<u64>() / 2;
            let bin = blocks.distances.iter().position(|n| {
                let here = *n >= left;
                left = left.saturating_sub(*n);
                here
            });
            crate::stats::value_ns(bin.unwrap()) as f64
        };
        let (exact, told) = (half(&exact), half(&some));
        assert!((told / exact - 1.0).abs() < 0.06, "median {told}, exact {exact}");
    }
}
