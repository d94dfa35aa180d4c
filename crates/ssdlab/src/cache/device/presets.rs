//! Caches that are sold or ship with an operating system, as defaults of the keys.
//!
//! A preset stands for what its maker documents: mode, block, thresholds, bypasses, order of destaging. What a maker
//! does not say keeps the default of the key.

use crate::error::{Error, Result, nearest};
use crate::registry::{Entry, Registry};
use toml::{Table, Value};

/// All presets, by name: the software of which version it stands for, where its values come from, keys as TOML.
pub const PRESETS: Registry<&'static str> = Registry {
    what: "preset of a cache",
    entries: &[
        Entry {
            name: "bcache",
            summary: "bcache of Linux 6.12",
            reference: "Linux Documentation/admin-guide/bcache.rst: cache_mode writethrough by default, sequential_cutoff 4M, \
                 congested_read_threshold_us 2000 (20 ms for writes, which have no mark of their own here), written \
                 back in order of the index, that is of address; sectors are cached as they are asked for, LRU among \
                 buckets. drivers/md/bcache/super.c: writeback_percent 10",
            build: "mode = \"write-through\"\nblock = \"32KiB\"\nsub_block = \"512B\"\nreplacement = \"lru\"\n\
               metadata = \"written\"\nsequential_cutoff = \"4MiB\"\ncongested_latency = \"2ms\"\n\
               dirty_low = 0.1\ndirty_high = 0.7\ndestage_order = \"address\"",
        },
        Entry {
            name: "cachecade",
            summary: "LSI CacheCade Pro 2.0",
            reference: "LSI CacheCade Pro 2.0: read and write cache, blocks of 64 KiB, hot ones by their counts; \
                 a write that misses goes to the disks and the cache",
            build: "mode = \"write-back\"\nblock = \"64KiB\"\nsub_block = \"4KiB\"\nwrite_miss = \"both\"",
        },
        Entry {
            name: "dm-cache-smq",
            summary: "dm-cache of Linux 6.12, policy smq",
            reference: "Linux Documentation/admin-guide/device-mapper/cache.rst and cache-policies.rst: writeback by default, \
                 blocks of 256 KB and more, promoted whole, migration_threshold 2048 sectors: four blocks at a time. \
                 Metadata has its own device and is committed at a flush, or every second; whether a block is dirty \
                 is not kept up to date there. Thresholds assumed: they stand in for the queue of hotspots",
            build: "mode = \"write-back\"\nblock = \"256KiB\"\nsub_block = \"4KiB\"\nreplacement = \"smq\"\n\
               fill = \"block\"\nfills = 4\nread_threshold = 2\nwrite_threshold = 2\n\
               eager_until = 0.9\ndestage_depth = 4\ndestage_order = \"age\"\nidle_after = \"1s\"",
        },
        Entry {
            name: "dm-writecache",
            summary: "dm-writecache of Linux 6.12",
            reference: "Linux Documentation/admin-guide/device-mapper/writecache.rst: writes only, block size 4096 recommended, \
                 written back from high_watermark 50 on to low_watermark 45, without limit of the jobs under way; \
                 metadata is committed at a flush, every second, or after 65536 blocks, not with each write",
            build: "mode = \"write-only\"\nblock = \"4KiB\"\nsub_block = \"4KiB\"\n\
               metadata_bytes = \"16B\"\nread_threshold = 0\ndirty_until = 0.45\ndirty_low = 0.5\ndirty_high = 0.99\n\
               destage_order = \"age\"\ndestage_depth = 64",
        },
        Entry {
            name: "l2arc",
            summary: "L2ARC of OpenZFS 2.3",
            reference: "OpenZFS zfs(4): L2ARC is filled from what is about to leave RAM, l2arc_noprefetch 1 (sequential reads go \
                 past it), l2arc_write_max 32 MiB (8 MiB before version 2.3) each l2arc_feed_secs 1 s: 2700 GiB in a day; a rotor (first in, first \
                 out)",
            build: "mode = \"write-around\"\nblock = \"128KiB\"\nsub_block = \"4KiB\"\nreplacement = \"fifo\"\n\
               sequential_cutoff = \"1MiB\"\nfills = 8\nwrite_budget = \"2700GiB\"",
        },
        Entry {
            name: "maxcache",
            summary: "Adaptec maxCache 4.0",
            reference: "Adaptec maxCache 4.0: a write that misses goes to the disks and the cache, the next one to the cache \
                 alone; the block not used for the longest time is destaged",
            build: "mode = \"write-back\"\nblock = \"64KiB\"\nsub_block = \"4KiB\"\nwrite_miss = \"both\"\n\
               destage_order = \"age\"",
        },
        Entry {
            name: "open-cas",
            summary: "Open CAS Linux 24.9",
            reference: "Open CAS Linux Administration Guide: write-through by default, cache line 4 KiB, LRU. Its requirements \
                 (doc/requirements): sequential cutoff 1024 KiB (by default when the cache is full, here always), ALRU \
                 cleans after 10 s of quiet, 100 lines at a time, oldest first. OCF, inc/cleaning/alru.h: whatever \
                 share is dirty",
            build: "mode = \"write-through\"\nblock = \"4KiB\"\nsub_block = \"4KiB\"\nreplacement = \"lru\"\n\
               metadata = \"written\"\nmetadata_bytes = \"48B\"\nsequential_cutoff = \"1MiB\"\n\
               destage_order = \"age\"\nidle_after = \"10s\"\ndestage_depth = 100\n\
               dirty_low = 0.99\ndirty_high = 1.0",
        },
        Entry {
            name: "open-cas-nhit",
            summary: "Open CAS Linux 24.9 with the promotion policy nhit",
            reference: "As open-cas, with casadm --set-param --name promotion --policy nhit: a line is let in at its third use \
                 (insertion threshold 3) once 80 % of the cache are in use (trigger 80), the defaults of OCF, \
                 src/promotion/nhit",
            build: "mode = \"write-through\"\nblock = \"4KiB\"\nsub_block = \"4KiB\"\nreplacement = \"lru\"\n\
               metadata = \"written\"\nmetadata_bytes = \"48B\"\nsequential_cutoff = \"1MiB\"\n\
               destage_order = \"age\"\nidle_after = \"10s\"\ndestage_depth = 100\n\
               dirty_low = 0.99\ndirty_high = 1.0\nread_threshold = 3\nwrite_threshold = 3\neager_until = 0.8",
        },
        Entry {
            name: "qsan",
            summary: "Qsan AegisSAN Q500 (2014), SSD caching",
            reference: "Qsan AegisSAN Q500 User Manual (2014), SSD caching, I/O type database: blocks of 1 MB in sub-blocks of \
                 8 KB, populate-on-read threshold 2, populate-on-write 0; sub-blocks are populated; a write goes to the \
                 disks, is acknowledged, and populates what is cached. Half of that block here: 64 sub-blocks",
            build: "mode = \"write-around-fill\"\nblock = \"512KiB\"\nsub_block = \"8KiB\"\nreplacement = \"lru\"\n\
               fill = \"request\"\nread_threshold = 2\nwrite_threshold = 0",
        },
    ],
};

/// Adds the keys of the preset that a table names, where it does not give them itself.
///
/// # Errors
/// [`Error::Rig`] where there is no such preset.
pub fn complete(mut table: Table) -> Result<Table> {
    let Some(Value::String(name)) = table.get("preset") else { return Ok(table) };
    let Some(preset) = PRESETS.entries.iter().find(|preset| preset.name == name) else {
        let names: Vec<&str> = PRESETS.names().collect();
        let hint = nearest(name, names.iter().copied())
            .map(|near| format!(", did you mean {near}?"))
            .unwrap_or_default();
        let problem = format!("found \"{name}\"{hint}, expected one of {}", names.join(", "));
        return Err(Error::rig("preset", problem));
    };
    let keys: Table = preset.build.parse().expect("a preset is TOML");
    for (key, value) in keys {
        table.entry(key).or_insert(value);
    }
    Ok(table)
}
