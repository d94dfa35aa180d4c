//! LRU at all sizes from one pass.

use super::sample::{Sampling, Totals, check_sizes, limit, rate, select, smallest};
use super::{Curve, sizes_up_to};
use crate::cache::hit_ratio::Request;
use crate::cache::stack::Distances;
use crate::error::Result;
use std::collections::BinaryHeap;

/// Never written, or written and gone everywhere: no cache is large enough for it to be dirty there.
const CLEAN: u64 = u64::MAX;

/// Exact bins below this; above, so many per doubling.
const FINE: u64 = 1 << 10;
const FINE_BITS: u32 = 10;

/// Sums by distance. Bins are one distance wide; or, for distances scaled by a rate that changes, 0.2 % of it.
struct Profile {
    exact: bool,
    reads: Vec<f64>,
    writes: Vec<f64>,
    /// Write-backs at a size, less those at the size below.
    backs: Vec<f64>,
    /// Weight of all accesses, with those that are first uses.
    read_weight: f64,
    write_weight: f64,
}

impl Profile {
    fn new(exact: bool) -> Self {
        Profile {
            exact,
            reads: Vec::new(),
            writes: Vec::new(),
            backs: Vec::new(),
            read_weight: 0.0,
            write_weight: 0.0,
        }
    }

    #[inline]
    fn bin(&self, value: u64) -> usize {
        if self.exact || value < FINE {
            return value as usize;
        }
        let shift = 63 - value.leading_zeros() - (FINE_BITS - 1);
        let octave = u64::from(shift) << (FINE_BITS - 1);
        (octave + (value >> shift)) as usize
    }

    /// The lowest value of a bin.
    fn floor(&self, bin: usize) -> f64 {
        if self.exact || (bin as u64) < FINE {
            return bin as f64;
        }
        let shift = (bin as u64 >> (FINE_BITS - 1)) - 1;
        let mantissa = bin as u64 - (shift << (FINE_BITS - 1));
        libm::ldexp(mantissa as f64, shift as i32)
    }

    #[inline]
    fn add(column: &mut Vec<f64>, bin: usize, weight: f64) {
        if bin >= column.len() {
            column.resize((bin + 1).next_power_of_two(), 0.0);
        }
        column[bin] += weight;
    }

    #[inline]
    fn access(&mut self, write: bool, distance: Option<u64>, weight: f64) {
        if write {
            self.write_weight += weight;
        } else {
            self.read_weight += weight;
        }
        if let Some(distance) = distance {
            let bin = self.bin(distance);
            Self::add(if write { &mut self.writes } else { &mut self.reads }, bin, weight);
        }
    }

    /// A block dirty in caches of at least `from` blocks was evicted from those of at most `to`.
    #[inline]
    fn evicted(&mut self, from: u64, to: u64, weight: f64) {
        if from <= to {
            let (from, past) = (self.bin(from), self.bin(to + 1));
            Self::add(&mut self.backs, from, weight);
            Self::add(&mut self.backs, past, -weight);
        }
    }

    /// Sums over all bins below each of `sizes`, which rise; of the bin that a size cuts, a share.
    fn below(&self, column: &[f64], sizes: &[f64]) -> Vec<f64> {
        let (mut bin, mut sum) = (0, 0.0);
        let at = |&size: &f64| {
            while bin < column.len() && self.floor(bin + 1) <= size {
                sum += column[bin];
                bin += 1;
            }
            let share = (size - self.floor(bin)) / (self.floor(bin + 1) - self.floor(bin));
            sum + column.get(bin).map_or(0.0, |part| part * share.max(0.0))
        };
        sizes.iter().map(at).collect()
    }

    /// The curve; sizes are multiplied by `scale` to be in the units of the distances.
    fn curve(&self, sizes: &[u64], totals: Totals, scale: f64, share: f64) -> Curve {
        let mut order: Vec<usize> = (0..sizes.len()).collect();
        order.sort_by_key(|&n| sizes[n]);
        let scaled = |shift: f64| -> Vec<f64> {
            order.iter().map(|&n| sizes[n] as f64 * scale + shift).collect()
        };
        let back = |sorted: Vec<f64>| {
            let mut column = vec![0.0; sizes.len()];
            order.iter().zip(sorted).for_each(|(&n, value)| column[n] = value);
            column
        };
        // What the sample has too much or too little of is at distance 0: hits in any cache.
        let misses = |column: &[f64], total: u64, weight: f64| -> Vec<f64> {
            let missing = total as f64 * share - weight;
            let hits = self.below(column, &scaled(0.0));
            let missed =
                |hits: &f64| (total as f64 - (hits + missing) / share).clamp(0.0, total as f64);
            back(hits.iter().map(missed).collect())
        };
        let backs = self.below(&self.backs, &scaled(1.0));
        Curve {
            sizes: sizes.to_vec(),
            reads: totals.reads,
            writes: totals.writes,
            read_misses: misses(&self.reads, totals.reads, self.read_weight),
            write_misses: misses(&self.writes, totals.writes, self.write_weight),
            write_backs: back(backs.iter().map(|n| (n / share).max(0.0)).collect()),
            error: vec![0.0; sizes.len()],
            footprint: 0.0,
            followed: 0,
        }
    }
}

/// One sample under way, or the whole trace.
struct Pass {
    distances: Distances,
    profile: Profile,
    /// Smallest cache, in blocks, in which each entry is still dirty.
    dirty_from: Vec<u64>,
    /// Places in the sample, if it may hold only so many, with their entries.
    held: BinaryHeap<(u64, u32)>,
    limit: u64,
    /// Blocks that one followed block stands for, where that changes; else 1.
    stands_for: f64,
    followed: u64,
}

impl Pass {
    fn new(limit: u64, exact: bool) -> Self {
        Pass {
            distances: Distances::default(),
            profile: Profile::new(exact),
            dirty_from: Vec::new(),
            held: BinaryHeap::new(),
            limit,
            stands_for: 1.0,
            followed: 0,
        }
    }

    #[inline]
    fn scaled(&self, distance: u32) -> u64 {
        if self.profile.exact {
            u64::from(distance)
        } else {
            (f64::from(distance) * self.stands_for) as u64
        }
    }

    /// Uses a block; answers its entry if that is new.
    #[inline]
    fn access(&mut self, key: u64, write: bool) -> Option<u32> {
        self.followed += 1;
        let used = self.distances.touch(key);
        let entry = used.entry as usize;
        let distance = used.distance.map(|distance| self.scaled(distance));
        self.profile.access(write, distance, self.stands_for);
        let Some(distance) = distance else {
            if entry == self.dirty_from.len() {
                self.dirty_from.push(CLEAN);
            }
            self.dirty_from[entry] = if write { 0 } else { CLEAN };
            return Some(used.entry);
        };
        let from = self.dirty_from[entry];
        if from != CLEAN {
            // No cache has fewer than one block.
            self.profile.evicted(from.max(1), distance, self.stands_for);
            self.dirty_from[entry] = from.max(distance + 1);
        }
        if write {
            self.dirty_from[entry] = 0;
        }
        None
    }

    /// A block of a sample that holds only so many: the highest place leaves, and with it all as high.
    /// Answers whether that happened.
    fn hold(&mut self, place: u64, entry: u32, most: u32, samples: u32) -> bool {
        let limit = self.limit;
        self.held.push((place, entry));
        while self.held.len() > most as usize {
            let highest = self.held.peek().expect("more than none").0;
            while let Some(&(place, entry)) = self.held.peek()
                && place == highest
            {
                self.held.pop();
                self.distances.forget(entry);
            }
            self.limit = highest.max(1) - 1;
            self.stands_for = 1.0 / rate(self.limit, samples);
        }
        self.limit < limit
    }

    /// What is dirty and has left the smaller caches by now.
    fn finish(&mut self) {
        for (entry, depth) in self.distances.depths() {
            let from = self.dirty_from[entry as usize];
            if from != CLEAN {
                let depth = if self.profile.exact {
                    u64::from(depth)
                } else {
                    (f64::from(depth) * self.stands_for) as u64
                };
                self.profile.evicted(from.max(1), depth, self.stands_for);
            }
        }
    }
}

/// The curve of an LRU cache that begins empty, reads and writes alike brought in.
///
/// `sizes` in blocks; none: about 100 up to the footprint. A sample stands for caches that hold 16 of its blocks at
/// least, and `seed` chooses the samples.
///
/// Errors: a sampling that cannot be done, a size too small for it.
pub fn lru_curve(
    requests: impl IntoIterator<Item = Request>,
    sizes: &[u64],
    sampling: Sampling,
    seed: u64,
) -> Result<Curve> {
    sampling.check()?;
    if let Sampling::Rate { rate: wanted, samples } = sampling {
        check_sizes(sizes, rate(limit(wanted, samples), samples))?;
    }
    let (totals, mut passes) = match sampling {
        Sampling::Whole => every_request(requests),
        Sampling::Rate { rate, samples } => {
            let limit = limit(rate, samples);
            let mut passes: Vec<Pass> = (0..samples).map(|_| Pass::new(limit, true)).collect();
            let totals = select(requests, samples, seed, limit, |sample, key, _, write| {
                passes[sample as usize].access(key, write);
                limit
            });
            (totals, passes)
        }
        Sampling::Blocks { blocks, samples } => bounded(requests, blocks, samples, seed),
    };
    let share = |pass: &Pass| match sampling {
        Sampling::Whole => 1.0,
        _ => rate(pass.limit, sampling.samples()),
    };
    let lowest = passes.iter().map(share).fold(1.0, f64::min);
    let footprint = |pass: &Pass| f64::from(pass.distances.len()) / share(pass);
    let everything = passes.iter().map(footprint).sum::<f64>() / passes.len() as f64;
    let chosen: Vec<u64> = if sizes.is_empty() {
        let least = smallest(lowest);
        let sizes = sizes_up_to(everything.ceil() as u64, 100);
        sizes.into_iter().filter(|&size| size >= least).collect()
    } else {
        sizes.to_vec()
    };
    check_sizes(&chosen, lowest)?;
    let curve = |pass: &mut Pass| {
        pass.finish();
        let share = share(pass);
        let scale = if pass.profile.exact { share } else { 1.0 };
        let curve = pass.profile.curve(&chosen, totals, scale, scale);
        let error = if sampling == Sampling::Whole { 0.0 } else { f64::NAN };
        let error = vec![error; chosen.len()];
        Curve { footprint: footprint(pass), followed: pass.followed, error, ..curve }
    };
    Ok(Curve::mean(&passes.iter_mut().map(curve).collect::<Vec<_>>()))
}

/// All of a trace.
fn every_request(requests: impl IntoIterator<Item = Request>) -> (Totals, Vec<Pass>) {
    let mut totals = Totals::default();
    let mut pass = Pass::new(u64::MAX, true);
    for request in requests {
        totals.add(&request);
        for block in 0..u64::from(request.blocks) {
            pass.access(request.key.wrapping_add(block), request.write);
        }
    }
    (totals, vec![pass])
}

/// Samples of so many blocks at most.
fn bounded(
    requests: impl IntoIterator<Item = Request>,
    blocks: u32,
    samples: u32,
    seed: u64,
) -> (Totals, Vec<Pass>) {
    let all = u64::from(u32::MAX);
    let mut passes: Vec<Pass> = (0..samples).map(|_| Pass::new(all, false)).collect();
    for pass in &mut passes {
        pass.stands_for = 1.0 / rate(all, samples);
    }
    let mut limit = all;
    let totals = select(requests, samples, seed, all, |sample, key, place, write| {
        let pass = &mut passes[sample as usize];
        if place <= pass.limit
            && let Some(entry) = pass.access(key, write)
            && pass.hold(place, entry, blocks, samples)
        {
            limit = passes.iter().map(|pass| pass.limit).max().expect("a sample");
        }
        limit
    });
    (totals, passes)
}
