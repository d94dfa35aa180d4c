//! A cache from its keys and devices: what fits.

use super::CacheDevice;
use super::admit::{Budget, Congestion, Streams, Uses};
use super::busy::Busy;
use super::counters::Counts;
use super::keys::CacheKeys;
use super::store::Store;
use super::unflushed::Unflushed;
use super::write::PAGE;
use crate::cache::policy::CAPACITY_MAX;
use crate::contract::{Build, Command, Device, Op, SECTOR};
use crate::error::{Error, Result};
use crate::fleet::Fleet;
use crate::rig::{memory_below, memory_of_part};
use crate::sim::{Ranges, Slab};
use crate::units::Bytes;
use std::collections::VecDeque;

/// Bytes of memory per frame: keys, index, links, masks, marks of what a flush has to make safe, and ghosts of the
/// policies that have them.
const FRAME_BYTES: u64 = 184;

/// Memory that a cache takes, and its two devices; bytes.
///
/// # Errors
/// [`Error::Rig`] with the key that is wrong.
pub fn memory(mut table: toml::Table) -> Result<u64> {
    let cache = memory_of_part(&table, "cache")?;
    let below = memory_below(table.clone())?;
    table.remove("below");
    let size = |value: Option<&toml::Value>| {
        value.and_then(toml::Value::as_str).and_then(|text| Bytes::parse(text).ok())
    };
    let capacity = size(table.remove("cache").as_ref().and_then(|device| device.get("capacity")));
    let keys = CacheKeys::read(table)?;
    let frames = capacity.map_or(0, |capacity| capacity.0 / keys.block.0.max(1));
    Ok(cache + below + frames * FRAME_BYTES)
}

/// Frames of a cache device, and where they begin on it.
fn frames(keys: &CacheKeys, capacity: u64) -> Result<(u32, u64)> {
    let (block, entry) = (keys.block.0, keys.metadata_bytes.0);
    let table = |frames: u64| (frames * entry).next_multiple_of(PAGE);
    let mut count = (capacity / (block + entry)).min(u64::from(CAPACITY_MAX));
    while count > 0 && table(count) + count * block > capacity {
        count -= 1;
    }
    if count == 0 {
        let problem = format!(
            "the cache device has {}, expected room for a block of {} and {} of metadata",
            Bytes(capacity),
            keys.block,
            Bytes(table(1))
        );
        return Err(Error::rig("block", problem));
    }
    Ok((count as u32, table(count)))
}

/// Sizes of the writes that a used device has seen.
const FILL_BYTES: u64 = 128 << 10;
const RANDOM_BYTES: u64 = 4 << 10;

/// Writes a device once in order and `times` over at random, in no time.
fn write_over(device: &mut dyn Device, times: f64, build: &Build) {
    let capacity = device.capacity() / SECTOR * SECTOR;
    let mut write = |offset: u64, len: u64| {
        device.apply(&Command { op: Op::Write, offset, len, ..Command::default() });
    };
    let blocks = capacity / RANDOM_BYTES;
    for begin in (0..capacity).step_by(FILL_BYTES as usize) {
        write(begin, FILL_BYTES.min(capacity - begin));
    }
    let mut stream = build.stream("used before");
    for _ in 0..(blocks as f64 * times) as u64 {
        write(stream.below(blocks) * RANDOM_BYTES, RANDOM_BYTES);
    }
}

impl CacheDevice {
    /// A cache in front of `pool`.
    ///
    /// # Errors
    /// [`Error::Rig`] with the key that is wrong, or with what does not fit.
    pub fn new(
        keys: &CacheKeys,
        pool: Box<dyn Device>,
        mut cache: Box<dyn Device>,
        build: &Build,
    ) -> Result<Self> {
        keys.check()?;
        let (frames, data) = frames(keys, cache.capacity())?;
        if keys.used_before > 0.0 {
            write_over(&mut *cache, keys.used_before, build);
        }
        let blocks = pool.capacity().div_ceil(keys.block.0);
        let subs = u64::from(frames) * (keys.block.0 / keys.sub_block.0);
        let mark = |share: f64| (subs as f64 * share) as u64;
        let mut device = CacheDevice {
            mode: keys.mode,
            data,
            until: mark(keys.dirty_until.unwrap_or(keys.dirty_low)),
            low: mark(keys.dirty_low),
            high: mark(keys.dirty_high),
            store: Store::new(keys, frames, blocks, build)?,
            uncached: Unflushed::new(frames, cache.is_volatile()),
            unpooled: Unflushed::new(frames, pool.is_volatile()),
            uses: Uses::new(keys, frames, blocks),
            streams: Streams::new(keys),
            budget: Budget::new(keys),
            congestion: Congestion::new(keys),
            keys: keys.clone(),
            fleet: Fleet::new(pool.capacity(), vec![pool, cache], false)
                .with_payload(build.keep_versions),
            busy: Busy::new(),
            pieces: Slab::new(),
            waiting: VecDeque::new(),
            trims: Ranges::default(),
            fills: 0,
            destages: 0,
            promised: 0,
            cursor: 0,
            next_destage: 0,
            draining: false,
            reducing: false,
            switched: false,
            counts: Counts::default(),
        };
        device.plan_timer();
        Ok(device)
    }
}
