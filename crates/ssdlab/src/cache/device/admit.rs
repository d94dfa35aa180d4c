//! Who is let in: counts of reads and writes, streams that go past, a budget of bytes.

use super::keys::CacheKeys;
use crate::persist::persistent;

/// Microseconds of a day.
const DAY: u64 = 86_400_000_000;
const HOURS: u64 = 24;

/// Reads and writes per block, halved from time to time.
///
/// A table of bytes by block. Where the pool has more blocks than the table has room for, blocks share a count
/// (a count-min sketch of one row): it is then too high, never too low.
pub struct Uses {
    reads: Vec<u8>,
    writes: Vec<u8>,
    mask: u64,
    requests: u64,
    age_after: u64,
}
persistent!(Uses { state { reads, writes, requests } built { mask, age_after } });

/// Counts for a cache of so many frames: room for so many blocks per frame.
const TRACKED_PER_FRAME: u64 = 16;

impl Uses {
    pub fn new(keys: &CacheKeys, frames: u32, blocks: u64) -> Self {
        let counts = |threshold: u32| threshold > 1;
        let room = (u64::from(frames) * TRACKED_PER_FRAME).min(blocks).next_power_of_two();
        let table = |wanted: bool| if wanted { vec![0; room as usize] } else { Vec::new() };
        Uses {
            reads: table(counts(keys.read_threshold)),
            writes: table(counts(keys.write_threshold)),
            mask: room - 1,
            requests: 0,
            age_after: keys.age_after,
        }
    }

    /// A block is used; how often it was, this time included. One where nobody counts.
    #[inline]
    pub fn count(&mut self, key: u64, write: bool) -> u32 {
        if self.reads.is_empty() && self.writes.is_empty() {
            return 1;
        }
        self.requests += 1;
        if self.age_after > 0 && self.requests.is_multiple_of(self.age_after) {
            self.reads.iter_mut().chain(&mut self.writes).for_each(|count| *count /= 2);
        }
        let table = if write { &mut self.writes } else { &mut self.reads };
        // An odd factor permutes the places, and spreads blocks that lie in strides.
        let at = key.wrapping_mul(0x9e37_79b9_7f4a_7c15) & self.mask;
        match table.get_mut(at as usize) {
            Some(count) => {
                *count = count.saturating_add(1);
                u32::from(*count)
            }
            None => 1,
        }
    }
}

/// Runs of consecutive requests, the last ones of many.
pub struct Streams {
    /// Where each ends, how long it is, when it was last continued.
    runs: Vec<(u64, u64)>,
    used: Vec<u64>,
    requests: u64,
    cutoff: u64,
}
persistent!(Streams { state { runs, used, requests } built { cutoff } });

/// Streams that are told apart.
const STREAMS: usize = 64;

impl Streams {
    pub fn new(keys: &CacheKeys) -> Self {
        let cutoff = keys.sequential_cutoff.map_or(u64::MAX, |bytes| bytes.0);
        let streams = if cutoff == u64::MAX { 0 } else { STREAMS };
        Streams { runs: vec![(0, 0); streams], used: vec![0; streams], requests: 0, cutoff }
    }

    /// A request; whether it belongs to a run that goes past the cache.
    pub fn passes(&mut self, offset: u64, len: u64) -> bool {
        if self.runs.is_empty() {
            return false;
        }
        self.requests += 1;
        let at = match self.runs.iter().position(|&(end, run)| end == offset && run > 0) {
            Some(at) => at,
            None => {
                let oldest = (0..STREAMS).min_by_key(|&i| self.used[i]).expect("streams");
                self.runs[oldest].1 = 0;
                oldest
            }
        };
        self.runs[at] = (offset + len, self.runs[at].1 + len);
        self.used[at] = self.requests;
        self.runs[at].1 >= self.cutoff
    }
}

/// Bytes that may be written in a day: a bucket that an hour fills.
#[derive(Default)]
pub struct Budget {
    /// Bytes a day; 0: any number.
    daily: u64,
    /// Bytes in it, and parts of a byte: so many microseconds of a day's bytes. Below zero where a write could not
    /// be refused.
    level: i64,
    part: u64,
    /// The microsecond up to which it was filled.
    since: u64,
    /// What it refused.
    pub refused: u64,
}
persistent!(Budget { state { level, part, since, refused } built { daily } });

impl Budget {
    pub fn new(keys: &CacheKeys) -> Self {
        let daily = keys.write_budget.map_or(0, |bytes| bytes.0);
        Budget { daily, level: (daily / HOURS) as i64, part: 0, since: 0, refused: 0 }
    }

    fn fill(&mut self, now: u64) {
        let now = now / 1000;
        let more = u128::from(self.daily) * u128::from(now - self.since) + u128::from(self.part);
        let full = (self.daily / HOURS) as i64;
        let bytes = i64::try_from(more / u128::from(DAY)).unwrap_or(full);
        self.part = (more % u128::from(DAY)) as u64;
        self.level = full.min(self.level.saturating_add(bytes));
        self.since = now;
    }

    /// Takes so many bytes out, if they are in it.
    pub fn take(&mut self, now: u64, bytes: u64) -> bool {
        if self.daily == 0 {
            return true;
        }
        self.fill(now);
        if self.level < bytes as i64 {
            self.refused += 1;
            return false;
        }
        self.level -= bytes as i64;
        true
    }

    /// Takes them out in any case.
    pub fn charge(&mut self, now: u64, bytes: u64) {
        if self.daily > 0 {
            self.fill(now);
            self.level -= bytes as i64;
        }
    }
}

/// How long commands of the cache device take.
pub struct Congestion {
    limit: u64,
    queue: u32,
    mean: u64,
    seen: u64,
}
persistent!(Congestion { state { mean, seen } built { limit, queue } });

/// The mean is forgotten after so many times the mark without a command.
const MEMORY: u64 = 16;

impl Congestion {
    pub fn new(keys: &CacheKeys) -> Self {
        Congestion {
            limit: keys.congested_latency.map_or(u64::MAX, |time| time.0),
            queue: keys.congested_queue.unwrap_or(u32::MAX),
            mean: 0,
            seen: 0,
        }
    }

    /// A command took so long.
    #[inline]
    pub fn note(&mut self, now: u64, latency: u64) {
        self.mean = (self.mean * 15 + latency) / 16;
        self.seen = now;
    }

    /// Whether requests had better go past, with so many commands at the device.
    #[inline]
    pub fn is(&self, now: u64, pending: u32) -> bool {
        let fresh = now - self.seen < self.limit.saturating_mul(MEMORY);
        pending >= self.queue || (self.mean > self.limit && fresh)
    }
}
