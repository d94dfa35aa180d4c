//! What a cache counts.

use super::{CACHE, CacheDevice, POOL};
use crate::contract::host_counts;
use crate::persist::persistent;

/// Pieces of requests (one per block) by what they found.
#[derive(Clone, Copy, Debug, Default)]
struct Found {
    hits: u64,
    partial: u64,
    misses: u64,
}
persistent!(Found { state { hits, partial, misses } });

/// See the module.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counts {
    read: Found,
    write: Found,
    sequential: u64,
    congested: u64,
    past_bytes: u64,
    pub fills: u64,
    pub fill_bytes: u64,
    pub fills_skipped: u64,
    pub destages: u64,
    pub destaged_bytes: u64,
    pub entries: u64,
    pub waits: u64,
    pub sent_past: u64,
    pub lost_bytes: u64,
    pub exposed_bytes: u64,
    pub drained_ns: u64,
}
persistent!(Counts {
    state {
        read, write, sequential, congested, past_bytes, fills,
        fill_bytes, fills_skipped, destages, destaged_bytes, entries, waits, sent_past, lost_bytes, exposed_bytes, drained_ns,
    }
});

impl Counts {
    /// Counts what a request found at a block.
    #[inline]
    pub fn looked_up(&mut self, write: bool, mask: u64, valid: u64) {
        let found = if write { &mut self.write } else { &mut self.read };
        match mask & valid {
            0 => found.misses += 1,
            some if some == mask => found.hits += 1,
            _ => found.partial += 1,
        }
    }

    /// Counts a request that goes past the cache.
    pub fn past(&mut self, congested: bool, sequential: bool, len: u64) {
        self.sequential += u64::from(sequential);
        self.congested += u64::from(congested && !sequential);
        self.past_bytes += if congested || sequential { len } else { 0 };
    }
}

impl CacheDevice {
    pub(super) fn show_counters(&self, visit: &mut dyn FnMut(&'static str, u64)) {
        let c = &self.counts;
        let sub = self.keys.sub_block.0;
        let [pool, cache] = [POOL, CACHE].map(|member| &self.fleet.members[member]);
        self.fleet.counts.visit(host_counts!("cache", "cache_host"), visit);
        visit("read_hits", c.read.hits);
        visit("read_partial", c.read.partial);
        visit("read_misses", c.read.misses);
        visit("write_hits", c.write.hits);
        visit("write_partial", c.write.partial);
        visit("write_misses", c.write.misses);
        visit("cache_bytes_read", cache.counts.bytes_read);
        visit("cache_bytes_written", cache.counts.bytes_written);
        visit("pool_bytes_read", pool.counts.bytes_read);
        visit("pool_bytes_written", pool.counts.bytes_written);
        visit("bypassed_sequential", c.sequential);
        visit("bypassed_congested", c.congested);
        visit("bypassed_bytes", c.past_bytes);
        visit("fills", c.fills);
        visit("fill_bytes", c.fill_bytes);
        visit("fills_skipped", c.fills_skipped);
        visit("budget_refused", self.budget.refused);
        visit("evictions", self.store.evictions);
        visit("destages", c.destages);
        visit("destaged_bytes", c.destaged_bytes);
        visit("metadata_writes", c.entries);
        visit("write_waits", c.waits);
        visit("write_waits_given_up", c.sent_past);
        visit(
            "blocks_cached",
            u64::from(if self.store.dead { 0 } else { self.store.frames.len() }),
        );
        visit("blocks_capacity", u64::from(self.store.frames.capacity()));
        visit("block_bytes", self.keys.block.0);
        visit("dirty_bytes", self.store.dirty_now * sub);
        visit("dirty_bytes_most", self.store.dirty_most * sub);
        visit("lost_bytes", c.lost_bytes);
        if self.fleet.power.losses > 0 {
            visit("power_exposed_bytes", c.exposed_bytes);
        }
        visit("cache_failed", u64::from(self.store.dead));
        visit("drained_at_ns", c.drained_ns);
    }
}
