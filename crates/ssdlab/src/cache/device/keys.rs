//! What a rig says about a cache.

use super::presets;
use crate::error::{Error, Result};
use crate::rig::keys_of;
use crate::units::{Bytes, Nanos, Rate};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What becomes of writes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// To the pool and to the cache, acknowledged when both have it.
    #[default]
    WriteThrough,
    /// To the cache alone; the pool has it when it is destaged.
    WriteBack,
    /// To the pool; what the cache held of it is dropped.
    WriteAround,
    /// To the pool, acknowledged, and then filled into the cache in the background.
    WriteAroundFill,
    /// As write-back, but nothing is filled when it is read.
    WriteOnly,
}
crate::persist::persistent_enum!(Mode {
    WriteThrough,
    WriteBack,
    WriteAround,
    WriteAroundFill,
    WriteOnly
});

impl Mode {
    /// Whether writes are acknowledged before the pool has them.
    pub fn defers(self) -> bool {
        matches!(self, Mode::WriteBack | Mode::WriteOnly)
    }

    /// Whether writes go to the pool alone, though they may be brought in afterwards.
    pub fn goes_around(self) -> bool {
        matches!(self, Mode::WriteAround | Mode::WriteAroundFill)
    }
}

/// Where the cache's own table is kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Metadata {
    /// In RAM that survives; changes take no time.
    #[default]
    Ram,
    /// On the cache device: a change writes the 4 KiB page of the block's entry, before the write that caused
    /// it is acknowledged.
    Written,
}

/// What a miss brings in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FillSize {
    /// The sub-blocks that were asked for.
    #[default]
    Request,
    /// All of the block.
    Block,
}

/// Where a write goes that finds nothing in the cache and is let in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum WriteMiss {
    /// To the cache alone.
    #[default]
    Cache,
    /// To the pool and the cache; the next write of that place goes to the cache alone.
    Both,
}

/// Which dirty block is destaged next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum DestageOrder {
    /// The next one by address, round and round.
    #[default]
    Address,
    /// The one that has been dirty for the longest time.
    Age,
}

/// A change of the mode.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SwitchKeys {
    /// When, in virtual time since the cache was new.
    pub at: Nanos,
    /// The mode from then on. Where it does not defer writes, all that is dirty is destaged at once.
    pub to: Mode,
}

/// What a rig says about a cache. The fast device is the table `cache`, the slow one, whose capacity the host
/// sees, the table `below`.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CacheKeys {
    /// Defaults of a product for all keys that are not given: bcache, cachecade, dm-cache-smq, dm-writecache,
    /// l2arc, maxcache, open-cas, qsan.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preset: Option<String>,
    /// What becomes of writes.
    #[serde(default)]
    pub mode: Mode,
    /// Bytes of a block: what is let in, replaced and counted together.
    #[serde(default = "default_block")]
    pub block: Bytes,
    /// Bytes that are valid and dirty together; up to 64 make a block. A write of a part of one that is not in
    /// the cache goes to the pool.
    #[serde(default = "default_sub_block")]
    pub sub_block: Bytes,
    /// Which block leaves a full cache: a replacement policy by its name.
    #[serde(default = "default_replacement")]
    pub replacement: String,
    /// Where the cache's own table is kept.
    #[serde(default)]
    pub metadata: Metadata,
    /// Bytes of that table per block, on the cache device.
    #[serde(default = "default_metadata_bytes")]
    pub metadata_bytes: Bytes,
    /// Reads of a block, this one included, after which a miss fills it; 0: reads never fill.
    #[serde(default = "one")]
    pub read_threshold: u32,
    /// Writes of a block, this one included, after which a write lets it in; 0: writes never do.
    #[serde(default = "one")]
    pub write_threshold: u32,
    /// Requests after which all counts of reads and writes are halved; 0: never.
    #[serde(default)]
    pub age_after: u64,
    /// Share of the frames in use up to which both thresholds count as one.
    #[serde(default)]
    pub eager_until: f64,
    /// What a miss brings in.
    #[serde(default)]
    pub fill: FillSize,
    /// Fills under way at the same time; a miss beyond that fills nothing.
    #[serde(default = "default_fills")]
    pub fills: u32,
    /// Where a write goes that finds nothing in the cache and is let in (`write-back`, `write-only`).
    #[serde(default)]
    pub write_miss: WriteMiss,
    /// Bytes that may be written to the cache in a day; absent: any number. What an hour leaves over is not
    /// saved up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub write_budget: Option<Bytes>,
    /// Length from which on consecutive reads or writes go past the cache; absent: never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sequential_cutoff: Option<Bytes>,
    /// Mean latency of the cache device above which requests go past it as far as they can; absent: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub congested_latency: Option<Nanos>,
    /// Commands at the cache device from which on requests go past it as far as they can; absent: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub congested_queue: Option<u32>,
    /// Dirty share down to which destaging goes on that began above `dirty_low`; absent: `dirty_low`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dirty_until: Option<f64>,
    /// Dirty share of the cache above which it is destaged in any case.
    #[serde(default = "default_dirty_low")]
    pub dirty_low: f64,
    /// Dirty share above which writes wait for destaging.
    #[serde(default = "default_dirty_high")]
    pub dirty_high: f64,
    /// Quiet time after which everything dirty is destaged; absent: quiet time does not matter.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle_after: Option<Nanos>,
    /// Which dirty block is destaged next.
    #[serde(default)]
    pub destage_order: DestageOrder,
    /// Destaging goes no faster than this; absent: as fast as the devices can.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub destage_rate: Option<Rate>,
    /// Dirty neighbours go to the pool as one write of up to so many bytes.
    #[serde(default = "default_destage_merge")]
    pub destage_merge: Bytes,
    /// Such writes under way at the same time.
    #[serde(default = "default_destage_depth")]
    pub destage_depth: u32,
    /// How many times over the cache device was written at random, 4 KiB at a time and once in order before that,
    /// when it becomes a cache: it then has to keep what is on it. 0: it is new.
    #[serde(default)]
    pub used_before: f64,
    /// A change of the mode: `{ at, to }`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub switch: Option<SwitchKeys>,
    /// When the cache device fails, in virtual time since it was new. What was dirty is lost; everything goes
    /// to the pool from then on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_fails_at: Option<Nanos>,
}

fn default_block() -> Bytes {
    Bytes::kib(64)
}
fn default_sub_block() -> Bytes {
    Bytes::kib(4)
}
fn default_replacement() -> String {
    "lru".into()
}
fn default_metadata_bytes() -> Bytes {
    Bytes(64)
}
fn one() -> u32 {
    1
}
fn default_fills() -> u32 {
    32
}
fn default_dirty_low() -> f64 {
    0.1
}
fn default_dirty_high() -> f64 {
    0.9
}
fn default_destage_merge() -> Bytes {
    Bytes::kib(512)
}
fn default_destage_depth() -> u32 {
    4
}

/// Highest threshold: counts are kept in a byte.
const THRESHOLD_MAX: u32 = 255;
/// Sub-blocks of a block: a bit each.
const SUB_BLOCKS_MAX: u64 = 64;
const SECTOR: u64 = crate::device::SECTOR;
const BLOCK_MAX: Bytes = Bytes::mib(64);
const DEPTH_MAX: u32 = 1 << 16;
const USED_MAX: f64 = 100.0;

fn refuse(key: &str, found: impl std::fmt::Display, expected: &str) -> Result<()> {
    Err(Error::rig(key, format!("found {found}, expected {expected}")))
}

impl CacheKeys {
    /// Reads the keys, those of a preset under those that are given.
    ///
    /// # Errors
    /// [`Error::Rig`] with the key that is wrong.
    pub fn read(table: toml::Table) -> Result<Self> {
        keys_of(presets::complete(table)?)
    }

    /// Checks what the types cannot.
    ///
    /// # Errors
    /// [`Error::Rig`] with the key that is wrong.
    pub fn check(&self) -> Result<()> {
        let (block, sub) = (self.block.0, self.sub_block.0);
        if sub < SECTOR || !sub.is_power_of_two() {
            return refuse("sub_block", self.sub_block, "a power of two from 512B on");
        }
        if block < sub || !block.is_power_of_two() || self.block > BLOCK_MAX {
            let expected = format!("a power of two from sub_block to {BLOCK_MAX}");
            return refuse("block", self.block, &expected);
        }
        if block / sub > SUB_BLOCKS_MAX {
            let least = Bytes(block / SUB_BLOCKS_MAX);
            let expected = format!("at least {least}, 64 of which make a block of {}", self.block);
            return refuse("sub_block", self.sub_block, &expected);
        }
        if self.metadata_bytes.0 == 0 || self.metadata_bytes.0 > 4096 {
            return refuse("metadata_bytes", self.metadata_bytes, "from 1B to 4KiB");
        }
        for (key, threshold) in
            [("read_threshold", self.read_threshold), ("write_threshold", self.write_threshold)]
        {
            if threshold > THRESHOLD_MAX {
                return refuse(key, threshold, "at most 255");
            }
        }
        for (key, share) in [
            ("eager_until", self.eager_until),
            ("dirty_until", self.dirty_until.unwrap_or_default()),
            ("dirty_low", self.dirty_low),
            ("dirty_high", self.dirty_high),
        ] {
            if !(0.0..=1.0).contains(&share) {
                return refuse(key, share, "a share from 0 to 1");
            }
        }
        if !(0.0..=USED_MAX).contains(&self.used_before) {
            return refuse("used_before", self.used_before, "times from 0 to 100");
        }
        if self.dirty_low >= self.dirty_high {
            let expected = format!("less than dirty_high, which is {}", self.dirty_high);
            return refuse("dirty_low", self.dirty_low, &expected);
        }
        if let Some(until) = self.dirty_until.filter(|&until| until > self.dirty_low) {
            let expected = format!("at most dirty_low, which is {}", self.dirty_low);
            return refuse("dirty_until", until, &expected);
        }
        for (key, depth) in [("fills", self.fills), ("destage_depth", self.destage_depth)] {
            if !(1..=DEPTH_MAX).contains(&depth) {
                return refuse(key, depth, "from 1 to 65536");
            }
        }
        if let Some(rate) = self.destage_rate.filter(|rate| rate.0 < 1000) {
            return refuse("destage_rate", rate, "at least 1kB/s");
        }
        if let Some(budget) = self.write_budget.filter(|budget| budget.0 < 24 * block) {
            let expected = format!("at least 24 blocks, {}", Bytes(24 * block));
            return refuse("write_budget", budget, &expected);
        }
        if let Some(0) = self.congested_queue {
            return refuse("congested_queue", 0, "at least 1");
        }
        Ok(())
    }
}
