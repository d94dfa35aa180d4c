//! Sample rigs of every device in the registry, stacks of them, and random ones.

use super::audit::{Asked, Audit, Step, Violation};
use super::long;
use super::oracle::{Oracle, Promise};
use proptest::prelude::*;
use ssdlab::device::Device;
use ssdlab::device::ssd::DRAINS;
use ssdlab::ftl::placement::PLACEMENTS;
use ssdlab::ftl::victim::VICTIMS;
use ssdlab::ftl::wear_leveling::WEAR_LEVELINGS;
use ssdlab::nand::schedule::SCHEDULES;
use ssdlab::registry::Registry;
use ssdlab::rig::Rig;
use ssdlab::stats::PartSums;
use ssdlab::units::{Bytes, Nanos};
use std::collections::BTreeMap;
use std::fmt::Write;

/// A layer of a stack: the lines of one device's table, the tables inside it by name.
#[derive(Clone, Debug)]
pub struct Layer {
    pub kind: &'static str,
    pub keys: String,
    pub tables: Vec<(&'static str, String)>,
}

/// A small device of every kind in the registry. `below` stands for whether it takes one below.
/// A new kind needs a line here; the laws do the rest.
pub struct Sample {
    pub kind: &'static str,
    pub below: bool,
    pub keys: &'static str,
    pub tables: Tables,
}

/// Tables inside that of a device, by name.
type Tables = &'static [(&'static str, &'static str)];

/// See [`Sample`].
pub const SAMPLES: &[Sample] = &[
    alone("null", "capacity = \"4MiB\"\nservice_time = \"20us\"\nservers = 3", &[]),
    alone(
        "hdd",
        "capacity = \"6MiB\"\nrpm = 7200\nseek_average = \"8.5ms\"\nwrite_settle = \"1ms\"\n\
         sustained_outer = \"2MB/s\"\nsustained_inner = \"1MB/s\"\nzones = 3\n\
         buffer = \"512KiB\"\nsegments = 4\nqueue_depth = 8",
        &[],
    ),
    alone(
        "hdd",
        "capacity = \"6MiB\"\nrpm = 15000\nseek_average = \"3ms\"\nseek_full = \"6ms\"\nheads = 3\n\
         sustained_outer = \"2MB/s\"\nsustained_inner = \"1MB/s\"\nwait_limit = \"60ms\"\n\
         buffer = \"256KiB\"\nsegments = 2\nwrite_cache_enabled = true",
        &[],
    ),
    alone(
        "measured",
        "capacity = \"4MiB\"\nconcurrency = 3\n\
         read = [{ size = \"4KiB\", bins = [[80000, 90], [95000, 9], [2000000, 1]] }, \
         { size = \"64KiB\", mean = \"200us\", distribution = \"lognormal\", spread = 0.5 }]\n\
         write = [{ series = [30000, 31000, 29000, 30000, 900000, 700000], block = 3 }]",
        &[],
    ),
    ssd(&[
        (
            "nand",
            "channels = 2\nways = 2\npage = \"8KiB\"\npages_per_block = 16\nt_read = \"60us\"\n\
             t_program = \"600us\"\nt_erase = \"3ms\"\ntransfer_mts = 400",
        ),
        ("ftl", "over_provisioning = 0.3"),
        ("ftl.gc", "pace = \"blocking\"\nidle_after = \"5ms\""),
        ("write_buffer", "size = \"256KiB\"\npower_loss_protected = false"),
        (
            "controller",
            "command_time = \"4us\"\nwrite_time = \"3us\"\nrelocate_time = \"5us\"\ncores = 2",
        ),
        ("controller.read_ahead", "size = \"128KiB\""),
    ]),
    ssd(&[
        (
            "nand",
            "channels = 2\nways = 2\npage = \"8KiB\"\npages_per_block = 16\nt_read = \"60us\"\n\
             t_program = \"600us\"\nt_erase = \"3ms\"\ntransfer_mts = 400",
        ),
        ("ftl", "over_provisioning = 0.3\nmapping_unit = \"1KiB\""),
        ("ftl.map", "kind = \"cached\"\ncache = \"8KiB\""),
        (
            "write_buffer",
            "size = \"256KiB\"\npower_loss_protected = false\n\
             drain = \"watermark\"\nwatermark = 0.4\nidle_after = \"3ms\"",
        ),
        ("controller", "relocate_time = \"3us\"\nmap_update_time = \"9us\""),
    ]),
    ssd(&[
        (
            "nand",
            "channels = 2\nways = 2\nplanes = 2\npage = \"4KiB\"\npages_per_block = 16\n\
             t_read = \"60us\"\nt_program = \"600us\"\nt_erase = \"3ms\"\n\
             transfer_mts = 400",
        ),
        ("ftl", "over_provisioning = 0.6"),
        ("ftl.map", "kind = \"extent\"\nentries = 500\nsegment = \"64KiB\"\nchunk = \"16KiB\""),
        ("ftl.gc", "pace = \"blocking\"\nscope = \"drive\""),
    ]),
    // Flash of a part, made smaller; over-provisioning by its dies.
    ssd(&[
        (
            "nand",
            "part = \"imft-25nm-mlc\"\nchannels = 2\nways = 2\nplanes = 1\npages_per_block = 16\n\
             die_size = \"2MiB\"\nreserve = 0.03",
        ),
        ("ftl.gc", "idle_after = \"2ms\""),
    ]),
    // SLC caches: static and folded, of two-bit cells with a cached map; dynamic and folded in time;
    // static, QLC, past it when full; both parts, with wear levelling.
    ssd(&[
        (
            "nand",
            "channels = 2\nways = 2\npage = \"8KiB\"\npages_per_block = 16\nbits_per_cell = 2\n\
             t_read = \"60us\"\nt_program = \"600us\"\nt_erase = \"3ms\"\ntransfer_mts = 400",
        ),
        ("ftl", "over_provisioning = 0.5\nmapping_unit = \"1KiB\""),
        ("ftl.map", "kind = \"cached\"\ncache = \"8KiB\""),
        ("ftl.gc", "pace = \"blocking\"\nscope = \"drive\"\nidle_after = \"5ms\""),
        (
            "ftl.slc_cache",
            "static_size = \"1MiB\"\nt_read = \"25us\"\nt_program = \"200us\"\n\
             fold_idle_after = \"8ms\"",
        ),
        ("write_buffer", "size = \"256KiB\"\npower_loss_protected = false"),
    ]),
    ssd(&[
        (
            "nand",
            "channels = 2\nways = 2\nplanes = 2\npage = \"4KiB\"\npages_per_block = 12\n\
             t_read = \"60us\"\nt_program = \"600us\"\nt_erase = \"3ms\"\ntransfer_mts = 400",
        ),
        ("ftl", "over_provisioning = 0.4"),
        ("ftl.gc", "pace = \"paced\"\nidle_after = \"5ms\""),
        (
            "ftl.slc_cache",
            "dynamic_size = \"2MiB\"\nt_read = \"25us\"\nt_program = \"200us\"\n\
             fold_idle_after = \"2ms\"",
        ),
        (
            "write_buffer",
            "size = \"256KiB\"\npower_loss_protected = true\n\
             drain = \"least-recent\"\nwatermark = 0.8",
        ),
        ("controller.read_ahead", "size = \"128KiB\""),
    ]),
    ssd(&[
        (
            "nand",
            "channels = 2\nways = 2\npage = \"4KiB\"\npages_per_block = 32\nbits_per_cell = 4\n\
             t_read = \"140us\"\nt_program = \"2ms\"\nt_erase = \"9ms\"\ntransfer_mts = 400",
        ),
        ("ftl", "over_provisioning = 0.4"),
        (
            "ftl.slc_cache",
            "static_size = \"512KiB\"\nt_read = \"25us\"\nt_program = \"200us\"\n\
             when_full = \"direct\"\nfold_idle_after = \"4ms\"",
        ),
    ]),
    ssd(&[
        (
            "nand",
            "channels = 2\nways = 2\npage = \"8KiB\"\npages_per_block = 12\n\
             t_read = \"60us\"\nt_program = \"600us\"\nt_erase = \"3ms\"\ntransfer_mts = 400",
        ),
        ("ftl", "over_provisioning = 0.6"),
        ("ftl.gc", "scope = \"channel\"\npace = \"paced\"\nseparate_frontier = true"),
        ("ftl.wear_leveling", "policy = \"threshold\"\nspread = 3"),
        (
            "ftl.slc_cache",
            "static_size = \"512KiB\"\ndynamic_size = \"1MiB\"\nt_read = \"25us\"\n\
             t_program = \"200us\"\nwhen_full = \"direct\"",
        ),
        ("write_buffer", "size = \"256KiB\"\npower_loss_protected = false"),
    ]),
    ssd(&[
        (
            "nand",
            "channels = 2\nways = 2\nplanes = 2\npage = \"4KiB\"\npages_per_block = 32\n\
             t_read = \"60us\"\nt_program = \"600us\"\nt_erase = \"3ms\"\n\
             transfer_mts = 400\nmulti_plane_read = false",
        ),
        ("ftl", "over_provisioning = 0.5\nplacement = \"least-busy\""),
        ("ftl.compression", "granule = \"512B\""),
        ("ftl.gc", "pace = \"paced\"\nidle_after = \"5ms\""),
        ("write_buffer", "size = \"256KiB\"\npower_loss_protected = false"),
        ("controller.read_ahead", "size = \"128KiB\""),
    ]),
    ssd(&[
        (
            "nand",
            "channels = 2\nways = 2\npage = \"8KiB\"\npages_per_block = 16\nt_read = \"60us\"\n\
             t_program = \"600us\"\nt_erase = \"3ms\"\ntransfer_mts = 400",
        ),
        ("ftl", "over_provisioning = 0.6"),
        ("ftl.gc", "pace = \"periodic\"\nidle_after = \"5ms\"\nidle_superblocks = 3"),
        ("ftl.gc.batch", "start = 3\nend = 5.5\ncopies = 2.5"),
        ("ftl.parity", "stripe = 5"),
        ("controller", "write_limit = \"20MB/s\""),
    ]),
    ssd(&[
        (
            "nand",
            "channels = 2\nways = 2\npage = \"12KiB\"\npages_per_block = 16\n\
             t_read = \"60us\"\nt_program = \"600us\"\nt_erase = \"3ms\"\ntransfer_mts = 400",
        ),
        ("ftl", "over_provisioning = 0.4"),
        ("ftl.compression", "granule = \"1KiB\""),
        ("ftl.parity", "stripe = 5"),
        ("ftl.map", "kind = \"cached\"\ncache = \"4KiB\""),
        (
            "ftl.gc",
            "scope = \"channel\"\nvictim = \"fifo\"\npace = \"paced\"\n\
             separate_frontier = true",
        ),
        ("ftl.wear_leveling", "policy = \"threshold\"\nspread = 3"),
    ]),
    ssd(&[
        (
            "nand",
            "channels = 2\nways = 2\nplanes = 2\npage = \"8KiB\"\npages_per_block = 16\n\
             t_read = \"60us\"\nt_program = \"600us\"\nt_erase = \"3ms\"\ntransfer_mts = 400",
        ),
        ("ftl", "over_provisioning = 0.5"),
        ("ftl.map", "kind = \"cached\"\ncache = \"4KiB\""),
        ("ftl.gc", "scope = \"channel\"\npace = \"periodic\""),
        ("ftl.gc.batch", "start = 1.5\nend = 3\ncopies = 4\nbetween = 0.5"),
        ("ftl.parity", "stripe = 4"),
        ("write_buffer", "size = \"256KiB\"\npower_loss_protected = false"),
        ("controller", "command_time = \"4us\"\nwrite_limit = \"40MB/s\""),
    ]),
    // Flash with types of pages: programmed one by one on planes that read by themselves, with both registers; in one
    // shot, kept in one register.
    ssd(&[
        (
            "nand",
            "channels = 2\nways = 2\nplanes = 2\npage = \"4KiB\"\npages_per_block = 16\n\
             t_read = \"60us\"\nt_program = \"600us\"\nt_erase = \"3ms\"\ntransfer_mts = 400\n\
             read_times = [\"45us\", \"60us\", \"75us\"]\n\
             program_times = [\"300us\", \"500us\", \"900us\"]\ntime_variation = 0.05\n\
             read_retries = { share = 0.2, at_once = 2 }\n\
             independent_plane_reads = true\npage_register = true\ncache_operations = true\n\
             suspend = { erase = true, program = true, enter = \"9us\", resume = \"7us\" }",
        ),
        ("ftl", "over_provisioning = 0.5"),
        ("ftl.map", "kind = \"cached\"\ncache = \"8KiB\""),
        ("ftl.gc", "pace = \"paced\"\nidle_after = \"5ms\""),
        ("write_buffer", "size = \"256KiB\"\npower_loss_protected = false"),
    ]),
    ssd(&[
        (
            "nand",
            "channels = 2\nways = 2\nplanes = 2\npage = \"4KiB\"\npages_per_block = 16\n\
             bits_per_cell = 2\none_shot = true\nt_read = \"60us\"\nt_program = \"900us\"\n\
             t_erase = \"3ms\"\ntransfer_mts = 400\nread_times = [\"50us\", \"70us\"]\n\
             page_register = true",
        ),
        ("ftl", "over_provisioning = 0.5"),
        ("ftl.gc", "pace = \"blocking\"\nscope = \"channel\"\nidle_after = \"5ms\""),
        (
            "ftl.slc_cache",
            "static_size = \"1MiB\"\nt_read = \"25us\"\nt_program = \"200us\"\n\
             fold_idle_after = \"8ms\"",
        ),
        ("ftl.parity", "stripe = 4"),
        ("controller.read_ahead", "size = \"128KiB\""),
    ]),
    above("partition", "offset = \"1MiB\"\nsize = \"2560KiB\""),
    above("link", "bandwidth = \"550MB/s\"\ncommand_time = \"2us\"\nqueue_slots = 8"),
    // Arrays of equal members: every level, layouts by turns.
    above("array", "level = \"linear\"\ncount = 2"),
    above("array", "level = \"raid0\"\ncount = 3\nchunk = \"16KiB\""),
    above("array", "level = \"raid1\"\ncount = 2\nread_balance = \"round-robin\""),
    above("array", "level = \"raid10\"\ncount = 3\nchunk = \"8KiB\"\ntrim = false"),
    above(
        "array",
        "level = \"raid10\"\ncount = 4\nchunk = \"16KiB\"\nlayout = \"f2\"\nread_balance = \"nearest\"",
    ),
    above("array", "level = \"raid10\"\ncount = 3\nchunk = \"16KiB\"\nlayout = \"o3\""),
    above("array", "level = \"raid5\"\ncount = 4\nchunk = \"16KiB\""),
    above(
        "array",
        "level = \"raid5\"\ncount = 3\nchunk = \"8KiB\"\nlayout = \"right-asymmetric\"\ntrim = true\nstripe_cache = 17",
    ),
    above(
        "array",
        "level = \"raid6\"\ncount = 5\nchunk = \"64KiB\"\nlayout = \"left-asymmetric\"\nstripe_cache = 40",
    ),
    above("array", "level = \"raid6\"\ncount = 7\nchunk = \"4KiB\"\ntrim = true"),
    // Members that fail, with and without a spare.
    above(
        "array",
        "level = \"raid6\"\ncount = 5\nchunk = \"16KiB\"\nspares = 1\n\
         fail = [{ member = 1, at = \"3ms\" }, { member = 4, at = \"40ms\" }]",
    ),
    above(
        "array",
        "level = \"raid1\"\ncount = 2\nspares = 1\nchunk = \"64KiB\"\nrebuild_min = \"9MB/s\"\n\
         fail = [{ member = 0, at = \"5ms\" }]",
    ),
    // Write-intent bitmaps.
    above("array", "level = \"raid1\"\ncount = 2\nbitmap = \"256KiB\"\nbitmap_delay = \"2ms\""),
    above(
        "array",
        "level = \"raid5\"\ncount = 4\nchunk = \"16KiB\"\nbitmap = \"1MiB\"\nbitmap_delay = \"30ms\"\n\
         spares = 1\nfail = [{ member = 2, at = \"7ms\" }]",
    ),
    // Members that share a bandwidth, and fail behind it.
    above(
        "array",
        "level = \"raid5\"\ncount = 3\nchunk = \"16KiB\"\n\
         bus = { bandwidth = \"400MB/s\", command_time = \"2us\" }",
    ),
    above(
        "array",
        "level = \"raid10\"\ncount = 4\nchunk = \"8KiB\"\nspares = 1\n\
         bus = { bandwidth = \"150MB/s\", duplex = \"half\" }\n\
         fail = [{ member = 1, at = \"6ms\" }]",
    ),
    // Links through something with a latency.
    above(
        "link",
        "bandwidth = \"1GB/s\"\nqueue_slots = 9\nduplex = \"full\"\n\
         latency = { mean = \"90us\", distribution = \"exponential\" }",
    ),
    // Controller cards: without RAM, writing through, writing back with and without a battery.
    above("controller", "bandwidth = \"900MB/s\"\ncommand_time = \"3us\"\ncores = 2\nqueue = 5"),
    above(
        "controller",
        "bandwidth = \"2GB/s\"\ncommand_time = \"1us\"\n\
         cache = { size = \"300KiB\", line = \"2KiB\" }",
    ),
    above(
        "controller",
        "bandwidth = \"3GB/s\"\ncommand_time = \"2us\"\ncores = 3\n\
         cache = { size = \"200KiB\", line = \"8KiB\", battery = true, destage_depth = 3, \
         destage_size = \"64KiB\", destage_delay = \"3ms\" }",
    ),
    above(
        "controller",
        "bandwidth = \"1GB/s\"\n\
         cache = { size = \"1MiB\", force = true, dirty_high = 0.4, dirty_low = 0.0, \
         destage_depth = 2, destage_order = \"age\", keep_reads = false }",
    ),
    // RAID cards, whose firmware takes the cores for commands of drives too: with and without RAM.
    above(
        "controller",
        "bandwidth = \"900MB/s\"\ncommand_time = \"2us\"\ncores = 2\n\
         firmware = { command_time = \"9us\", member_command_time = \"4us\" }",
    ),
    above(
        "controller",
        "bandwidth = \"2GB/s\"\ncommand_time = \"1us\"\n\
         firmware = { command_time = \"5us\", member_command_time = \"7us\", fast_path = false }\n\
         cache = { size = \"200KiB\", battery = true, destage_depth = 3, destage_delay = \"3ms\" }",
    ),
    // Caches before the device below: every mode, every order of destaging, policies by turns.
    cache("mode = \"write-through\"\nblock = \"32KiB\"", NULL_CACHE),
    cache(
        "mode = \"write-back\"\nblock = \"16KiB\"\nreplacement = \"arc\"\nidle_after = \"4ms\"\n\
         metadata = \"written\"",
        NULL_CACHE,
    ),
    cache(
        "mode = \"write-back\"\nblock = \"8KiB\"\nsub_block = \"1KiB\"\nreplacement = \"s3-fifo\"\n\
         destage_order = \"age\"\ndestage_rate = \"30MB/s\"\ndirty_low = 0.2\ndirty_high = 0.5\n\
         fill = \"block\"\nfills = 2\nwrite_miss = \"both\"\ncongested_queue = 6\n\
         sequential_cutoff = \"128KiB\"",
        NULL_CACHE,
    ),
    cache(
        "mode = \"write-around\"\nblock = \"16KiB\"\nreplacement = \"sieve\"\nread_threshold = 2\n\
         age_after = 300\nmetadata = \"written\"",
        NULL_CACHE,
    ),
    cache(
        "mode = \"write-around-fill\"\nblock = \"64KiB\"\nsub_block = \"16KiB\"\nfill = \"block\"\n\
         write_threshold = 2\nread_threshold = 2\neager_until = 0.3\nwrite_budget = \"30MB\"",
        NULL_CACHE,
    ),
    cache(
        "mode = \"write-only\"\nblock = \"4KiB\"\nsub_block = \"512B\"\nreplacement = \"2q\"\n\
         destage_order = \"age\"\ndestage_depth = 9\ndestage_merge = \"16KiB\"\ndirty_high = 1.0",
        NULL_CACHE,
    ),
    cache(
        "mode = \"write-back\"\nblock = \"16KiB\"\nreplacement = \"lfu\"\nidle_after = \"1ms\"\n\
         switch = { at = \"30ms\", to = \"write-through\" }\ncongested_latency = \"90us\"",
        NULL_CACHE,
    ),
    // The cache device fails when nothing was written back late.
    cache(
        "mode = \"write-through\"\nblock = \"16KiB\"\nreplacement = \"lirs\"\n\
         cache_fails_at = \"25ms\"",
        NULL_CACHE,
    ),
    // An SSD as the cache.
    cache(
        "mode = \"write-back\"\nblock = \"64KiB\"\nmetadata = \"written\"\nidle_after = \"6ms\"",
        &[
            ("cache", "kind = \"ssd\"\ncapacity = \"2MiB\""),
            (
                "cache.nand",
                "channels = 2\nways = 2\npage = \"4KiB\"\npages_per_block = 16\nt_read = \"60us\"\n\
                 t_program = \"600us\"\nt_erase = \"3ms\"\ntransfer_mts = 400",
            ),
            ("cache.ftl", "over_provisioning = 1.0"),
        ],
    ),
    // Tiers: the units that TRIM deallocates are those of the device below, or none.
    tier(
        "extent = \"64KiB\"\nmove_size = \"16KiB\"\nperiod = \"2ms\"\nhalf_life = \"8ms\"\n\
         promote_after = 1\nmargin = 0.0\nmoves = 3\nplacement = \"spread\"\ntrim_unit = \"0B\"",
    ),
    tier(
        "extent = \"32KiB\"\nperiod = \"5ms\"\nhalf_life = \"5ms\"\nmoves = 2\nreserve = 7\n\
         move_rate = \"20MB/s\"\nplacement = \"below-first\"\nmetadata = \"written\"\n\
         heat_of = \"writes\"\ntrim_unit = \"0B\"",
    ),
    alone(
        "tier",
        "extent = \"128KiB\"\nmove_size = \"8KiB\"\nperiod = \"1ms\"\nhalf_life = \"20ms\"\n\
         promote_after = 1\nmargin = 0.1\nmoves = 4\nmetadata = \"written\"",
        &[
            ("fast", "kind = \"null\"\ncapacity = \"1500KiB\"\nservice_time = \"30us\""),
            ("below", "kind = \"ssd\"\ncapacity = \"4MiB\""),
            (
                "below.nand",
                "channels = 2\nways = 2\npage = \"4KiB\"\npages_per_block = 16\nt_read = \"60us\"\n\
                 t_program = \"600us\"\nt_erase = \"3ms\"\ntransfer_mts = 400",
            ),
            ("below.ftl", "over_provisioning = 0.6"),
        ],
    ),
    // Members of different size and kind.
    alone(
        "array",
        "level = \"raid5\"\nchunk = \"32KiB\"\naccept_waste = true\nmembers = [\
         { kind = \"null\", capacity = \"4MiB\" }, \
         { kind = \"link\", bandwidth = \"300MB/s\", queue_slots = 4, \
           below = { kind = \"null\", capacity = \"5MiB\", servers = 2 } }, \
         { kind = \"array\", level = \"raid0\", count = 2, chunk = \"8KiB\", \
           member = { kind = \"null\", capacity = \"2500KiB\", service_time = \"90us\" } }, \
         { kind = \"partition\", offset = \"8KiB\", size = \"4MiB\", \
           below = { kind = \"null\", capacity = \"5MiB\", service_time = \"35us\" } }]",
        &[],
    ),
];

/// A small device that is faster than any of those below.
const NULL_CACHE: Tables =
    &[("cache", "kind = \"null\"\ncapacity = \"700KiB\"\nservice_time = \"7us\"\nservers = 2")];

/// A cache before the device below.
const fn cache(keys: &'static str, tables: Tables) -> Sample {
    Sample { kind: "cache", below: true, keys, tables }
}

/// A tier above the device below.
const fn tier(keys: &'static str) -> Sample {
    const FAST: Tables =
        &[("fast", "kind = \"null\"\ncapacity = \"1MiB\"\nservice_time = \"9us\"\nservers = 2")];
    Sample { kind: "tier", below: true, keys, tables: FAST }
}

/// A device above another, with nothing but its keys.
const fn above(kind: &'static str, keys: &'static str) -> Sample {
    Sample { kind, below: true, keys, tables: &[] }
}

/// A device of its own.
const fn alone(kind: &'static str, keys: &'static str, tables: Tables) -> Sample {
    Sample { kind, below: false, keys, tables }
}

const fn ssd(tables: Tables) -> Sample {
    alone("ssd", "capacity = \"6MiB\"", tables)
}

impl Sample {
    pub fn layer(&self) -> Layer {
        let tables = self.tables.iter().map(|&(name, keys)| (name, keys.to_string())).collect();
        Layer { kind: self.kind, keys: self.keys.to_string(), tables }
    }
}

/// A rig: layers from the outermost inwards.
pub fn stack(layers: &[Layer]) -> Rig {
    let text = stack_text(layers);
    Rig::parse(&text, "stack").unwrap_or_else(|e| panic!("{e}\n{text}"))
}

/// The same as text.
pub fn stack_text(layers: &[Layer]) -> String {
    let mut text = String::from("name = \"stack\"\n");
    let mut path = String::from("device");
    for layer in layers {
        let _ = writeln!(text, "[{path}]\nkind = \"{}\"\n{}", layer.kind, layer.keys);
        for (name, keys) in &layer.tables {
            let _ = writeln!(text, "[{path}.{name}]\n{keys}");
        }
        path.push_str(if layer.kind == "array" { ".member" } else { ".below" });
    }
    text
}

/// What a test must know of a rig beyond the device contract, read from the rig itself.
#[derive(Clone, Debug, Default)]
pub struct Shape {
    /// Kinds from the outermost inwards.
    pub kinds: Vec<String>,
    /// Bytes that TRIM deallocates together.
    pub unit: u64,
    /// Bytes of a physical unit.
    pub granule: u64,
    /// Sum of the offsets of the partitions before any array.
    pub shift: u64,
    /// A purge becomes a TRIM, in a partition before any array.
    pub purge_is_trim: bool,
    pub channels: u64,
    pub dies: u64,
    pub dies_per_superblock: u64,
    pub units_per_program: u64,
    pub buffered: bool,
    /// What outlives a loss of power.
    pub promise: Promise,
    /// Are host writes held to a rate?
    pub limited: bool,
    /// Is the map cached?
    pub cached: bool,
    /// May reads suspend other operations?
    pub suspends: bool,
    /// The least and the most that sensing a page, programming and erasing take.
    pub t_read: (u64, u64),
    pub t_program: (u64, u64),
    pub t_erase: (u64, u64),
    /// Planes that may read at the same time.
    pub planes_apart: u64,
    /// Is the channel used while the die does something else?
    pub caches: bool,
    /// In SLC mode, where there is a cache.
    pub t_read_slc: (u64, u64),
    pub t_program_slc: (u64, u64),
    /// Transfer of a physical unit.
    pub t_transfer: u64,
    /// Of the outermost cache or tier: the fast device, and the one below.
    pub cache: Option<Box<(Shape, Shape)>>,
}

impl Shape {
    pub fn of(rig: &Rig) -> Self {
        let table: toml::Table = rig.to_toml().parse().expect("a rig prints as TOML");
        Shape::of_device(table["device"].as_table())
    }

    fn of_device(mut at: Option<&toml::Table>) -> Self {
        let mut shape = Shape { unit: 512, ..Shape::default() };
        let mut trim_unit = 0;
        while let Some(device) = at {
            let kind = device["kind"].as_str().expect("a kind");
            shape.kinds.push(kind.to_string());
            if kind == "partition" && !shape.has("array") && !shape.has("tier") {
                shape.shift += size_of(device.get("offset"), 0);
                shape.purge_is_trim = true;
            }
            if kind == "ssd" {
                shape.ssd(device);
            }
            if kind == "hdd" {
                let enabled = device.get("write_cache_enabled");
                shape.promise.volatile_writes |= enabled.and_then(|on| on.as_bool()) == Some(true);
            }
            if kind == "controller" {
                shape.card(device);
            }
            // A card has a table of that name, too.
            let fast = device.get(if kind == "tier" { "fast" } else { "cache" });
            if let ("cache" | "tier", None, Some(fast)) = (kind, &shape.cache, fast) {
                let inner = |of: &toml::Value| Shape::of_device(of.as_table());
                let (fast, below) = (inner(fast), inner(&device["below"]));
                shape.promise.volatile_writes |= fast.promise.volatile_writes;
                shape.promise.volatile_trims |= kind == "tier" && fast.promise.volatile_trims;
                shape.promise.idle_flushes |= fast.promise.idle_flushes;
                shape.cache = Some(Box::new((fast, below)));
            }
            if kind == "tier" {
                // Where TRIM does not reach the devices, nothing is ever deallocated.
                let unit = size_of(device.get("trim_unit"), 4096);
                trim_unit = trim_unit.max(if unit == 0 { 1 << 60 } else { unit });
            }
            if kind == "array" {
                trim_unit = trim_unit.max(trim_unit_of(device));
            }
            let below = device.get("below").or(device.get("member"));
            at = below.and_then(toml::Value::as_table);
        }
        shape.unit = shape.unit.max(trim_unit);
        shape
    }

    fn ssd(&mut self, device: &toml::Table) {
        let nand = device["nand"].as_table().expect("nand");
        let number = |key: &str| nand.get(key).map_or(1, |v| v.as_integer().expect(key) as u64);
        let ftl = device.get("ftl").and_then(toml::Value::as_table);
        let scope =
            ftl.and_then(|f| f.get("gc")?.get("scope")?.as_str()).unwrap_or("die").to_string();
        let kind = ftl.and_then(|f| f.get("map")?.get("kind")?.as_str());
        self.cached = kind == Some("cached");
        self.unit = size_of(ftl.and_then(|f| f.get("mapping_unit")), 4096);
        let granule = ftl.and_then(|f| f.get("compression")?.get("granule"));
        self.granule = size_of(granule, self.unit);
        self.channels = number("channels");
        self.dies = number("channels") * number("ways");
        self.dies_per_superblock = match scope.as_str() {
            "die" => 1,
            "channel" => number("ways"),
            _ => self.dies,
        };
        self.units_per_program = number("planes") * size_of(nand.get("page"), 4096) / self.granule;
        self.times(nand, ftl);
        let mts = &nand["transfer_mts"];
        let mts = mts.as_float().or(mts.as_integer().map(|n| n as f64)).expect("a rate");
        self.t_transfer = (self.granule as f64 * 1e3 / mts).round() as u64;
        self.suspends = nand.get("suspend").and_then(toml::Value::as_table).is_some_and(|s| {
            ["erase", "program"]
                .iter()
                .any(|k| s.get(*k).and_then(toml::Value::as_bool) == Some(true))
        });
        self.buffered = device.contains_key("write_buffer");
        let protected = |b: &toml::Value| b.get("power_loss_protected")?.as_bool();
        let protected = device.get("write_buffer").and_then(protected).unwrap_or(false);
        self.promise.volatile_writes |= self.buffered && !protected;
        self.promise.volatile_trims |= !protected;
        let controller = device.get("controller").and_then(toml::Value::as_table);
        self.limited = controller.is_some_and(|c| c.contains_key("write_limit"));
    }

    fn times(&mut self, nand: &toml::Table, ftl: Option<&toml::Table>) {
        let is = |key: &str| nand.get(key).and_then(toml::Value::as_bool) == Some(true);
        let pages = match is("one_shot") {
            true => nand.get("bits_per_cell").and_then(toml::Value::as_integer).unwrap_or(3) as u64,
            false => 1,
        };
        self.units_per_program *= pages;
        let planes = nand.get("planes").and_then(toml::Value::as_integer).unwrap_or(1) as u64;
        self.planes_apart = if is("independent_plane_reads") { planes } else { 1 };
        self.caches = is("cache_operations");
        let spread = nand.get("time_variation").and_then(toml::Value::as_float).unwrap_or(0.0);
        let time = |value: &toml::Value| Nanos::parse(value.as_str().unwrap()).unwrap().0;
        let range = |times: &[u64]| {
            let (least, most) = (times.iter().min().unwrap(), times.iter().max().unwrap());
            let by = |times: f64, time: &u64| (*time as f64 * times) as u64;
            (by(1.0 - 3.5 * spread, least), by(1.0 + 3.5 * spread, most))
        };
        let listed = |key: &str, alone: &str| match nand.get(key).and_then(toml::Value::as_array) {
            Some(times) => range(&times.iter().map(time).collect::<Vec<_>>()),
            None => range(&[time(&nand[alone])]),
        };
        self.t_read = listed("read_times", "t_read");
        self.t_program = listed("program_times", "t_program");
        self.t_erase = range(&[time(&nand["t_erase"])]);
        if let Some(slc) = ftl.and_then(|f| f.get("slc_cache")?.as_table()) {
            self.t_read_slc = range(&[time(&slc["t_read"])]);
            self.t_program_slc = range(&[pages * time(&slc["t_program"])]);
        }
    }

    /// What a card with RAM promises: with a battery nothing goes further than RAM when it answers a flush.
    fn card(&mut self, device: &toml::Table) {
        let Some(cache) = device.get("cache").and_then(toml::Value::as_table) else { return };
        let is = |key: &str| cache.get(key).and_then(toml::Value::as_bool) == Some(true);
        let back = cache.get("mode").and_then(toml::Value::as_str) != Some("write-through");
        self.promise.idle_flushes |= back && is("battery");
        self.promise.volatile_writes |= back && is("force") && !is("battery");
    }

    pub fn has(&self, kind: &str) -> bool {
        self.kinds.iter().any(|k| k == kind)
    }

    /// The plain map for a device of this shape.
    pub fn oracle(&self, capacity: u64) -> Oracle {
        Oracle::new(capacity, self.unit, self.shift % self.unit, self.purge_is_trim)
            .promising(self.promise)
    }

    /// Whether all of it is of kinds that model losses of power, and take commands that overlap.
    pub fn is_plain(&self) -> bool {
        let plain = ["ssd", "hdd", "null", "measured", "link", "partition"];
        self.kinds.iter().all(|kind| plain.contains(&kind.as_str()))
    }
}

/// Bytes that an array deallocates together: whole stripes, or nothing ever.
fn trim_unit_of(array: &toml::Table) -> u64 {
    let level = array["level"].as_str().expect("a level");
    let parities = match level {
        "raid5" => 1,
        "raid6" => 2,
        _ => 0,
    };
    let trims = array.get("trim").and_then(toml::Value::as_bool).unwrap_or(parities == 0);
    let members = array.get("count").and_then(toml::Value::as_integer).unwrap_or(0) as u64;
    match (trims, parities) {
        (false, _) => 1 << 60,
        (true, 0) => 0,
        (true, parities) => (members - parities) * size_of(array.get("chunk"), 512 << 10),
    }
}

fn size_of(value: Option<&toml::Value>, default: u64) -> u64 {
    value.map_or(default, |v| Bytes::parse(v.as_str().expect("a size")).expect("a size").0)
}

/// Holds a rig to all promises over one script; answers what the audit saw.
pub fn hold_to_promises(
    rig: &Rig,
    script: &[Step],
    depth: usize,
    seed: u64,
) -> Result<(), Violation> {
    let shape = Shape::of(rig);
    let first = run_once(&mut *build(rig, seed, true), &shape, script, depth, true)?;
    // What stacks answer is drawn from the same streams as what their devices do.
    if long() || shape.kinds.len() == 1 {
        let second = run_once(&mut *build(rig, seed, true), &shape, script, depth, true)?;
        if first != second {
            return Err(Violation::Different(format!("{first:?}\n{second:?}")));
        }
    }
    // Another run is the same; that versions are kept must not show either, except in what reads answer.
    let without = run_once(&mut *build(rig, seed, false), &shape, script, depth, false)?;
    if without.counters != first.counters || without.times != first.times {
        return Err(Violation::Different("with and without versions".into()));
    }
    Ok(())
}

/// The rig of a random stack. Where collection needs more spare than was drawn, as much as the
/// error says; where a partition does not fit, none.
pub fn fitting(layers: &[Layer]) -> Option<Rig> {
    let mut rig = stack(layers);
    let Err(error) = rig.build(0, false) else { return Some(rig) };
    let error = error.to_string();
    let Some((_, least)) = error.split_once("need at least ") else {
        assert!(error.contains("do not fit the device below"), "{error}");
        return None;
    };
    let least = least.split(',').next().unwrap_or(least);
    rig.set("ftl.over_provisioning", least).expect("the spare that the error asks for");
    match rig.build(0, false) {
        Ok(_) => Some(rig),
        Err(e) if e.to_string().contains("do not fit the device below") => None,
        Err(e) => panic!("the advice does not help: {error}; {e}\n{}", rig.to_toml()),
    }
}

/// Builds a rig that must build.
pub fn build(rig: &Rig, seed: u64, keep_versions: bool) -> Box<dyn Device> {
    rig.build(seed, keep_versions).unwrap_or_else(|e| panic!("{e}\n{}", rig.to_toml()))
}

/// All that a run shows.
#[derive(PartialEq, Debug)]
pub struct Shown {
    pub counters: BTreeMap<String, u64>,
    pub times: Vec<(u64, u64, PartSums)>,
    pub digests: Vec<u64>,
}

/// One audited run: promises 1, 4, 5, 6 by the audit, 3 and the utilisations by the counters.
pub fn run_once(
    device: &mut dyn Device,
    shape: &Shape,
    script: &[Step],
    depth: usize,
    versions: bool,
) -> Result<Shown, Violation> {
    let oracle = versions.then(|| shape.oracle(device.capacity()));
    let mut audit = Audit::new(device, oracle);
    audit.overlap = shape.is_plain();
    audit.run(script, depth)?;
    audit.device.verify();
    let shown = show(&audit);
    check_counters(audit.device, shape, &audit.asked, audit.now)?;
    Ok(shown)
}

fn show(audit: &Audit) -> Shown {
    let mut counters = BTreeMap::new();
    super::all_counters(audit.device, "", &mut counters);
    Shown {
        counters,
        times: audit.trace.iter().map(|c| (c.tag, c.time, PartSums::from(&c.parts))).collect(),
        digests: audit.trace.iter().map(|c| c.digest).collect(),
    }
}

/// Walks the stack and checks every device's counters against each other, the clock and what was
/// asked of the whole.
pub fn check_counters(
    device: &dyn Device,
    shape: &Shape,
    asked: &Asked,
    now: u64,
) -> Result<(), Violation> {
    let mut asked = *asked;
    match device.kind() {
        "ssd" => check_ssd(device, shape, &asked, now)?,
        "link" => {
            let c = super::counters(device);
            for name in ["busy_out_ns", "busy_in_ns"] {
                at_most(name, c[name], now)?;
            }
        }
        "controller" => {
            let c = super::counters(device);
            at_most("bus", c["busy_bus_ns"], now)?;
            asked = asked_below("below", &c);
        }
        "partition" => {
            asked.trims += asked.purges;
            asked.purges = 0;
        }
        _ => {}
    }
    // What died never did all that it was asked for.
    if device.kind() == "cache" && super::counters(device)["cache_failed"] > 0 {
        return Ok(());
    }
    if device.kind() == "tier" && super::counters(device)["tiers_failed"] > 0 {
        return Ok(());
    }
    if device.kind() == "array" && super::counters(device)["members_failed"] > 0 {
        return Ok(());
    }
    let inner = shape.cache.as_deref();
    for (place, child) in device.children() {
        let shape = match (device.kind(), inner) {
            ("cache" | "tier", Some((fast, pool))) => {
                if place == "below" {
                    pool
                } else {
                    fast
                }
            }
            _ => shape,
        };
        if matches!(device.kind(), "array" | "cache" | "tier") {
            let c = super::counters(child);
            at_most("member", c["member_busy_ns"], now)?;
            asked = asked_below("member", &c);
        }
        check_counters(child, shape, &asked, now)?;
    }
    Ok(())
}

/// What was asked of a device by the one above it, which counts it as `who` did.
fn asked_below(who: &str, counters: &BTreeMap<&'static str, u64>) -> Asked {
    let count = |what: &str| counters[format!("{who}_{what}").as_str()];
    Asked {
        reads: count("reads"),
        bytes_read: count("bytes_read"),
        writes: count("writes"),
        bytes_written: count("bytes_written"),
        trims: count("trims"),
        flushes: count("flushes"),
        purges: count("purges"),
    }
}

fn at_most(what: &str, busy: u64, available: u64) -> Result<(), Violation> {
    if busy <= available {
        return Ok(());
    }
    Err(Violation::Utilisation(format!("{what}: {busy} ns of work in {available} ns")))
}

fn equal<T: PartialEq + std::fmt::Display>(what: &str, left: T, right: T) -> Result<(), Violation> {
    if left == right {
        return Ok(());
    }
    Err(Violation::Counters(format!("{what}: {left} is not {right}")))
}

/// Whether the drive counts what it was asked for, all of which it has done.
fn check_host(c: &BTreeMap<&'static str, u64>, a: &Asked) -> Result<(), Violation> {
    equal("reads", c["host_reads"], a.reads)?;
    equal("bytes read", c["host_bytes_read"], a.bytes_read)?;
    equal("writes", c["host_writes"], a.writes)?;
    equal("bytes written", c["host_bytes_written"], a.bytes_written)?;
    equal("trims", c["host_trims"], a.trims)?;
    equal("flushes", c["host_flushes"], a.flushes)?;
    equal("data units", c["data_units_written"], a.bytes_written.div_ceil(512_000))
}

fn check_ssd(device: &dyn Device, shape: &Shape, a: &Asked, now: u64) -> Result<(), Violation> {
    let c = super::counters(device);
    if !c.contains_key("power_losses") {
        check_host(&c, a)?;
    }
    let saved = c.get("host_units_saved").copied().unwrap_or(0);
    let in_buffer: u64 =
        c.iter().filter(|(name, _)| name.starts_with("buffer_")).map(|(_, units)| units).sum();
    let placed = c["host_units_written"] - in_buffer;
    equal("units written for the host", c["programs_host"] + saved, placed)?;
    let programs: u64 =
        c.iter().filter(|(name, _)| name.starts_with("programs_")).map(|(_, n)| n).sum();
    if let Some(&cached) = c.get("slc_units_written") {
        equal("cached past the host", cached.saturating_sub(c["programs_host"]), 0)?;
        // A unit leaves the cache at most once.
        equal("folded unasked", c["programs_fold"].saturating_sub(cached), 0)?;
        equal("folded without a cache", c["slc_units_valid"] > cached, false)?;
    }
    equal("units merged", c["programs_merge"] > 0, c["map_merges"] > 0)?;
    equal("units programmed", programs, c["flash_units_programmed"] + c["units_open"])?;
    if !shape.buffered {
        equal("units open without a buffer", c["units_open"], c["map_units_open"])?;
    }
    equal(
        "programs of whole units",
        c["flash_programs"] * shape.units_per_program,
        c["flash_units_programmed"],
    )?;
    let erased = c["superblocks_erased"];
    equal("erases", c["flash_erases"], erased * shape.dies_per_superblock)?;
    equal("erase counts", c["erases_sum"], erased)?;
    at_most("dies", die_time(&c), now * shape.dies)?;
    at_most("channels", c["busy_channels_ns"], now * shape.channels)
}

/// The work of dies and channels in a run without untimed commands and purges: a channel is busy for exactly
/// the units that crossed it, the dies for all their operations and transfers together; more only
/// where they waited for a channel with other dies on it, or resumed what was suspended, less only where planes
/// read at the same time or transfers overlap operations.
pub fn check_work(device: &dyn Device, shape: &Shape) -> Result<(), Violation> {
    let c = super::counters(device);
    let causes = ["host", "collection", "wear", "map", "merge", "fold", "parity"];
    let programmed: u64 = causes.iter().map(|cause| c[format!("programs_{cause}").as_str()]).sum();
    let moved = c["flash_units_read"] + programmed - c["units_open"];
    equal("channel time", c["busy_channels_ns"], moved * shape.t_transfer)?;
    let slc = |name: &str| c.get(name).copied().unwrap_or(0);
    let (reads, programs) = (slc("flash_reads_slc"), slc("flash_programs_slc"));
    let work = |of: fn((u64, u64)) -> u64, planes: u64| {
        let sensing = (c["flash_reads"] - reads) * of(shape.t_read) + reads * of(shape.t_read_slc);
        sensing / planes
            + (c["flash_programs"] - programs) * of(shape.t_program)
            + programs * of(shape.t_program_slc)
            + c["flash_erases"] * of(shape.t_erase)
    };
    let (least, most) = (work(|t| t.0, shape.planes_apart), work(|t| t.1, 1));
    let (busy, channels) = (die_time(&c), c["busy_channels_ns"]);
    let overlaps = shape.planes_apart > 1 || shape.caches;
    at_most("operations", if overlaps { least } else { least + channels }, busy)?;
    if shape.dies == shape.channels && !shape.suspends {
        at_most("die time", busy, most + channels)?;
    }
    Ok(())
}

fn die_time(c: &BTreeMap<&'static str, u64>) -> u64 {
    ["host_read", "host_write", "collection", "wear", "map", "merge", "fold", "parity"]
        .iter()
        .map(|cause| c[format!("busy_{cause}_ns").as_str()])
        .sum()
}

fn names<B>(registry: &'static Registry<B>) -> impl Strategy<Value = &'static str>
where
    B: 'static,
{
    proptest::sample::select(registry.names().collect::<Vec<_>>())
}

prop_compose! {
    /// `[nand]`, with the bytes of a block of all planes of a die and the number of dies.
    fn nand()(
        channels in 1u64..4,
        ways in 1u64..4,
        planes in prop_oneof![3 => Just(1u64), 2 => Just(2u64), 1 => Just(4u64)],
        units in prop_oneof![Just(1u64), Just(2), Just(3), Just(4)],
        pages in 4u64..24,
        t_read in 1u64..100,
        t_program in 10u64..1000,
        mts in 50u64..1000,
        multi in any::<bool>(),
        schedule in names(&SCHEDULES),
        suspend in any::<(bool, bool)>(),
        limit in 1u64..4,
    ) -> (Vec<(&'static str, String)>, Nand) {
        let keys = format!(
            "channels = {channels}\nways = {ways}\nplanes = {planes}\npage = \"{}KiB\"\n\
             pages_per_block = {pages}\nt_read = \"{t_read}us\"\nt_program = \"{t_program}us\"\n\
             t_erase = \"{}us\"\ntransfer_mts = {mts}\nmulti_plane_read = {multi}\n\
             schedule = \"{schedule}\"",
            units * 4, t_program * 4);
        let suspend = format!(
            "erase = {}\nprogram = {}\nenter = \"9us\"\nresume = \"7us\"\nlimit = {limit}",
            suspend.0, suspend.1);
        (vec![("nand", keys), ("nand.suspend", suspend)],
         Nand { channels, ways, planes, units, pages })
    }
}

/// The geometry that was drawn.
#[derive(Clone, Copy, Debug)]
pub struct Nand {
    pub channels: u64,
    pub ways: u64,
    pub planes: u64,
    pub units: u64,
    pub pages: u64,
}

prop_compose! {
    fn gc()(
        victim in names(&VICTIMS),
        scope in proptest::sample::select(vec!["die", "channel", "drive"]),
        pace in proptest::sample::select(vec!["blocking", "paced", "periodic"]),
        low in 1u64..3,
        more in 0u64..3,
        idle in proptest::option::of(1u64..20_000),
        separate in any::<bool>(),
        choices in 1u64..6,
        superblocks in 0u64..4,
        in_row in proptest::option::of(1u64..5),
    ) -> (String, Gc) {
        let in_row = in_row.map(|units| format!("in_row = {units}\n")).unwrap_or_default();
        let idle = idle.map(|t| format!("idle_after = \"{t}us\"\n")).unwrap_or_default();
        let frontiers = if separate { 2 } else { 1 };
        let extents = scope == "drive" && (pace == "blocking" || separate);
        let drawn = Gc { scope, extents, periodic: pace == "periodic", low, frontiers };
        (format!(
            "victim = \"{victim}\"\nscope = \"{scope}\"\npace = \"{pace}\"\nlow = {low}\n\
             high = {}\n{idle}{in_row}idle_superblocks = {superblocks}\nseparate_frontier = {separate}\n\
             choices = {choices}\nwindow = 0.3",
            low + more), drawn)
    }
}

/// What was drawn of collection.
#[derive(Clone, Copy, Debug)]
pub struct Gc {
    scope: &'static str,
    /// Whether an extent map is possible.
    extents: bool,
    periodic: bool,
    low: u64,
    frontiers: u64,
}

prop_compose! {
    /// Bits of a cell, superblocks set aside and lent, and the other keys of an SLC cache.
    fn slc_cache()(
        bits in 2u64..5,
        fixed in 0u64..4,
        lent in prop_oneof![Just(0u64), 1u64..6, Just(1000)],
        t_read in 1u64..50,
        t_program in 10u64..300,
        direct in any::<bool>(),
        idle in proptest::option::of(1u64..20_000),
    ) -> (u64, u64, u64, String) {
        let idle = idle.map(|t| format!("\nfold_idle_after = \"{t}us\"")).unwrap_or_default();
        let when_full = if direct { "direct" } else { "fold" };
        (bits, fixed, lent, format!(
            "t_read = \"{t_read}us\"\nt_program = \"{t_program}us\"\n\
             when_full = \"{when_full}\"{idle}"))
    }
}

/// What was drawn of the types of pages: times by type for one to four bits.
#[derive(Clone, Debug)]
struct Pages {
    read: Option<[u64; 4]>,
    program: Option<[u64; 4]>,
    one_shot: bool,
    variation: f64,
    retries: f64,
}

prop_compose! {
    fn any_pages()(
        read in proptest::option::of(any::<[u8; 4]>()),
        program in proptest::option::of(any::<[u8; 4]>()),
        one_shot in any::<bool>(),
        variation in prop_oneof![Just(0.0), 0.001f64..0.2],
        retries in prop_oneof![Just(0.0), 0.0f64..1.0],
    ) -> Pages {
        let times = |drawn: [u8; 4], unit| drawn.map(|time| (u64::from(time) + 1) * unit);
        Pages {
            read: read.map(|drawn| times(drawn, 400)),
            program: program.map(|drawn| times(drawn, 4000)),
            one_shot,
            variation,
            retries,
        }
    }
}

impl Pages {
    fn add_to(&self, ssd: &mut Layer) {
        let number = |table: &str, key: &str| {
            let (_, keys) = ssd.tables.iter().find(|(name, _)| *name == table)?;
            let line = keys.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(" = "))?;
            line.parse::<u64>().ok()
        };
        let bits = number("nand", "bits_per_cell").unwrap_or(3);
        let pages = number("nand", "pages_per_block").expect("pages");
        let stripe = number("ftl.parity", "stripe").expect("a stripe");
        // Of word lines there are fewer than pages: enough for an SLC cache and for a stripe.
        let whole = pages.is_multiple_of(bits) && pages >= bits * bits && stripe <= pages / bits;
        let one_shot = self.one_shot && whole;
        let list = |key: &str, times: Option<[u64; 4]>| {
            let quoted = |time: &u64| format!("\"{time}ns\"");
            let times = times.iter().flatten().take(bits as usize).map(quoted).collect::<Vec<_>>();
            if times.is_empty() {
                String::new()
            } else {
                format!("\n{key} = [{}]", times.join(", "))
            }
        };
        let program = self.program.filter(|_| !one_shot);
        let keys = list("read_times", self.read) + &list("program_times", program);
        ssd.tables[0].1 += &format!(
            "{keys}\none_shot = {one_shot}\ntime_variation = {:.3}\nread_retries = {{ share = {:.3}, at_once = 1 }}",
            self.variation, self.retries
        );
    }
}

prop_compose! {
    /// Any SSD that the keys can describe, in the small.
    pub fn any_ssd()(
        mut ssd in any_plain_ssd(),
        granule in prop_oneof![
            5 => Just(0u64), 3 => Just(512), 1 => Just(64), 1 => Just(1024), 1 => Just(2048),
            1 => Just(4096),
        ],
        pages in any_pages(),
        registers in any::<(bool, bool, bool)>(),
    ) -> Layer {
        // Extents and SLC caches are of whole units.
        let whole = |(table, keys): &(&str, String)| {
            keys.contains("\"extent\"") || *table == "ftl.slc_cache"
        };
        if granule == 4096 || (granule > 0 && !ssd.tables.iter().any(whole)) {
            ssd.tables.push(("ftl.compression", format!("granule = \"{granule}B\"")));
        }
        pages.add_to(&mut ssd);
        let (independent, keep, cache) = registers;
        ssd.tables[0].1 += &format!(
            "\nindependent_plane_reads = {independent}\npage_register = {keep}\n\
             cache_operations = {cache}");
        ssd
    }
}

prop_compose! {
    /// When a write buffer lets go.
    fn drain()(
        drain in names(&DRAINS),
        watermark in 0.0f64..1.0,
        idle in proptest::option::of(0u64..20),
    ) -> String {
        let idle = idle.map(|ms| format!("\nidle_after = \"{ms}ms\"")).unwrap_or_default();
        format!("drain = \"{drain}\"\nwatermark = {watermark:.2}{idle}")
    }
}

prop_compose! {
    /// The same without compression.
    fn any_plain_ssd()(
        (mut tables, nand) in nand(),
        (gc, Gc { scope, extents, periodic, low, frontiers }) in gc(),
        blocks in 9u64..24,
        odd in 0u64..5,
        op in prop_oneof![2 => Just(0.001), 3 => 0.05f64..0.8],
        placement in names(&PLACEMENTS),
        wear in names(&WEAR_LEVELINGS),
        spread in 1u64..6,
        buffer in proptest::option::of((1u64..200, any::<bool>(), drain())),
        controller in (0u64..20, 0u64..4),
        firmware in proptest::option::of((0u64..20, 0u64..20, 0u64..40)),
        ahead in proptest::option::of(1u64..80),
        (map, cache, segment, entries) in (0usize..4, 1u64..12, 1u32..7, 0u64..300),
        (start, marks, copies) in (1u32..9, 1u32..7, 0.1f64..20.0),
        stripe in prop_oneof![3 => Just(0u64), 2 => 2u64..12],
        (limit, slc) in (proptest::option::of(1u64..200), proptest::option::of(slc_cache())),
    ) -> Layer {
        let dies = nand.channels * nand.ways;
        let (regions, per_region) = match scope {
            "die" => (dies, 1),
            "channel" => (nand.channels, nand.ways),
            _ => (1, dies),
        };
        // Not too much for the time that the tests have, and not whole superblocks.
        let superblock = nand.planes * nand.units * nand.pages * per_region;
        let blocks = blocks.min((4000 / (superblock * regions)).max(5));
        let units = superblock * regions * blocks + odd;
        // Batches begin and end with more superblocks free than `low` and a little.
        let frontiers = frontiers + u64::from(wear == "threshold");
        let op = if periodic { op.max((frontiers + 2) as f64 / blocks as f64) } else { op };
        tables.push(("ftl", format!(
            "over_provisioning = {op:.3}\nplacement = \"{placement}\"")));
        // One translation unit holds 1024 units, so that the caches are small and many units missing.
        let segments = units.div_ceil(1 << segment);
        let programs = nand.pages * per_region;
        let stripe = stripe.min(programs);
        let data = match stripe {
            0 => superblock,
            n => (programs - programs.div_ceil(n)) * nand.planes * nand.units,
        };
        let least = ((1 << segment) - 1) / data + 4;
        let map = ["page", "cached", if extents { "extent" } else { "cached" }, "page"][map];
        tables.push(("ftl.map", format!(
            "kind = \"{map}\"\ncache = \"{}KiB\"\nentries = {}\nsegment = \"{}KiB\"\nchunk = \"{}KiB\"",
            cache * 4, least * segments + entries, 4 << segment, 4 << (1 + entries as u32 % segment))));
        if let (Some((bits, fixed, lent, keys)), false) = (slc, map == "extent") {
            tables[0].1 += &format!("\nbits_per_cell = {bits}");
            let unit = superblock * regions / bits * 4;
            tables.push(("ftl.slc_cache", format!(
                "static_size = \"{}KiB\"\ndynamic_size = \"{}KiB\"\n{keys}",
                fixed * unit, lent * unit)));
        }
        tables.push(("ftl.gc", gc));
        if periodic {
            let start = low as f64 + f64::from(start) / 10.0;
            let end = start + f64::from(marks) / 10.0;
            tables.push(("ftl.gc.batch", format!(
                "start = {start:.1}\nend = {end:.1}\ncopies = {copies:.2}\nbetween = {:.2}",
                copies * f64::from(marks % 3) / 3.0)));
        }
        tables.push(("ftl.parity", format!("stripe = {stripe}")));
        tables.push(("ftl.wear_leveling", format!("policy = \"{wear}\"\nspread = {spread}")));
        if let Some((units, protected, drain)) = buffer {
            tables.push(("write_buffer", format!(
                "size = \"{}KiB\"\npower_loss_protected = {protected}\n\
                 holds_moves = {}\n{drain}", units * 4, units % 3 == 0)));
        }
        let (time, cores) = controller;
        let time = time.saturating_sub(8);
        let limit = limit.map(|mb| format!("write_limit = \"{mb}MB/s\"\n")).unwrap_or_default();
        let firmware = firmware.map(|(write, relocate, map)| format!(
            "\nwrite_time = \"{write}us\"\nrelocate_time = \"{relocate}us\"\n\
             map_update_time = \"{map}us\""));
        tables.push(("controller", format!(
            "{limit}command_time = \"{time}us\"\ncores = {cores}{}",
            firmware.unwrap_or_default())));
        if let Some(units) = ahead {
            tables.push(("controller.read_ahead", format!("size = \"{}KiB\"", units * 4)));
        }
        Layer { kind: "ssd", keys: format!("capacity = \"{}KiB\"", units * 4), tables }
    }
}

prop_compose! {
    fn any_link()(
        megabytes in 20u64..4000,
        command_time in 0u64..5,
        slots in 1u64..40,
        full in any::<bool>(),
        own in any::<bool>(),
    ) -> Layer {
        let duplex = if full { "full" } else { "half" };
        let queues = if own { "per-process" } else { "one" };
        Layer {
            kind: "link",
            keys: format!(
                "bandwidth = \"{megabytes}MB/s\"\ncommand_time = \"{command_time}us\"\n\
                 queue_slots = {slots}\nduplex = \"{duplex}\"\nqueues = \"{queues}\""),
            tables: Vec::new(),
        }
    }
}

prop_compose! {
    fn any_partition()(
        offset in prop_oneof![Just(0u64), 0u64..64, (0u64..8).prop_map(|n| n * 8)],
        size in proptest::option::of(32u64..300),
    ) -> Layer {
        let size = size.map(|kib| format!("size = \"{kib}KiB\"")).unwrap_or_default();
        Layer {
            kind: "partition",
            keys: format!("offset = \"{}B\"\n{size}", offset * 512),
            tables: Vec::new(),
        }
    }
}

prop_compose! {
    fn any_cache()(
        kib in 32u64..800,
        line in 0u32..7,
        mode in prop_oneof![
            Just("mode = \"write-through\""), Just("battery = true"), Just("force = true"),
        ],
        high in 0.01f64..=1.0,
        low in 0.0f64..1.0,
        delay in prop_oneof![Just(0u64), 1u64..20],
        depth in 1u32..40,
        lines in 1u64..40,
        keep in any::<bool>(),
        order in prop_oneof![Just("address"), Just("age")],
    ) -> String {
        let line = 512u64 << line;
        format!(
            "size = \"{kib}KiB\"\nline = \"{line}B\"\n{mode}\ndirty_high = {high}\n\
             dirty_low = {}\ndestage_delay = \"{delay}ms\"\ndestage_depth = {depth}\n\
             destage_size = \"{}B\"\nkeep_reads = {keep}\ndestage_order = \"{order}\"",
            low * high, lines * line)
    }
}

prop_compose! {
    fn any_controller()(
        megabytes in 100u64..8000,
        command_time in 0u64..10,
        cores in 1u32..5,
        queue in 1u32..80,
        cache in proptest::option::weighted(0.8, any_cache()),
        firmware in proptest::option::of((0u64..60, 0u64..20, any::<bool>())),
    ) -> Layer {
        let firmware = firmware.map_or(String::new(), |(command, member, fast_path)| {
            format!(
                "firmware = {{ command_time = \"{command}us\", \
                 member_command_time = \"{member}us\", fast_path = {fast_path} }}\n")
        });
        Layer {
            kind: "controller",
            keys: format!(
                "{firmware}bandwidth = \"{megabytes}MB/s\"\ncommand_time = \"{command_time}us\"\n\
                 cores = {cores}\nqueue = {queue}"),
            tables: cache.into_iter().map(|keys| ("cache", keys)).collect(),
        }
    }
}

/// Up to three layers over an SSD.
pub fn any_stack() -> impl Strategy<Value = Vec<Layer>> {
    let any_layer = prop_oneof![any_link(), any_partition(), any_controller()];
    let above = proptest::collection::vec(any_layer, 0..4);
    (above, any_ssd()).prop_map(|(mut layers, leaf)| {
        layers.push(leaf);
        layers
    })
}
