//! What a rig says about an SSD.

use crate::ftl::{Pace, Scope, WhenFull, victim, wear_leveling};
use crate::units::{Bytes, Nanos, Rate};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// An SSD: flash, translation layer, write buffer, controller.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SsdKeys {
    /// Size that the host sees.
    pub capacity: Bytes,
    /// The part of the capacity that is given to the host, as a namespace of an NVMe drive is; the rest is
    /// reserve like that of over-provisioning. Absent: all of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<Bytes>,
    /// What the host sees of the drive that this one stands for, which was made smaller to be simulated: `--scale` and
    /// `plan cache --save-rigs` say it. Endurance is told of that drive; nothing else depends on it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub full_capacity: Option<Bytes>,
    /// The flash.
    pub nand: NandKeys,
    /// The translation layer.
    #[serde(default)]
    pub ftl: FtlKeys,
    /// RAM in which writes are acknowledged; absent: they are acknowledged when programmed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub write_buffer: Option<BufferKeys>,
    /// Command handling.
    #[serde(default)]
    pub controller: ControllerKeys,
}

/// Geometry and timing of the flash.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NandKeys {
    /// Flash that exists, by its name in `ssdlab list parts`: it supplies those of the keys below, up to
    /// `rated_pe_cycles`, that it has and the rig does not set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub part: Option<String>,
    /// Bytes of a die that are sold as such, without the surplus blocks that replace bad ones. A rig that
    /// says it needs no `ftl.over_provisioning`, which is then what the dies of the file hold beyond the
    /// capacity of the file; setting the capacity of a drive for a run keeps it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub die_size: Option<Bytes>,
    /// Share of the dies that never holds data where over-provisioning follows from their size: tables,
    /// firmware, parity across dies that is not modelled by itself, bad blocks beyond the surplus.
    #[serde(default)]
    pub reserve: f64,
    /// Channels between controller and dies.
    pub channels: u32,
    /// Dies on each channel.
    pub ways: u32,
    /// Planes of a die that are programmed and erased together.
    #[serde(default = "one")]
    pub planes: u32,
    /// Page size.
    #[schemars(extend("examples" = ["16KiB"]))]
    pub page: Bytes,
    /// Pages of a block.
    pub pages_per_block: u32,
    /// Bits of a cell: 2 MLC, 3 TLC, 4 QLC. A block in SLC mode has so many times fewer pages; where there is no SLC
    /// cache, only `read_times`, `program_times` and `one_shot` depend on it.
    #[serde(default = "three")]
    pub bits_per_cell: u32,
    /// tR, unless `read_times` say it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub t_read: Option<Nanos>,
    /// tR by type of page, one time for each of `bits_per_cell`, in place of `t_read`: lower, middle, upper. The pages of a
    /// block take turns in the order in which they are programmed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read_times: Option<Vec<Nanos>>,
    /// tPROG, unless `program_times` say it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub t_program: Option<Nanos>,
    /// tPROG by type of page likewise, in place of `t_program`: each page is programmed by itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub program_times: Option<Vec<Nanos>>,
    /// All pages of a word line, `bits_per_cell` of them in each plane, are programmed in one operation, which takes
    /// `t_program`. Otherwise each page is an operation.
    #[serde(default)]
    pub one_shot: bool,
    /// Relative standard deviation of tR, tPROG and tBERS over all blocks, half of the variance between dies; at most 0.2.
    #[serde(default)]
    pub time_variation: f64,
    /// Pages that are sensed twice.
    #[serde(default)]
    pub read_retries: RetryKeys,
    /// tBERS.
    pub t_erase: Nanos,
    /// Mega-transfers per second of a channel, one byte each.
    pub transfer_mts: f64,
    /// One sense operation reads the same page of all planes.
    #[serde(default = "yes")]
    pub multi_plane_read: bool,
    /// Each plane senses a page of its own for host reads, at the same time as others; programs, erases and reads of what
    /// is moved take the whole die.
    #[serde(default)]
    pub independent_plane_reads: bool,
    /// A page that is still in the register of its plane is not sensed again, and reads of a page that wait while it is
    /// sensed share that.
    #[serde(default)]
    pub page_register: bool,
    /// Cache read and cache program: a page crosses the channel while the same plane senses, or the die programs, the
    /// next.
    #[serde(default)]
    pub cache_operations: bool,
    /// Which queue a die serves first.
    #[serde(default = "default_schedule")]
    pub schedule: String,
    /// Erase and program suspend.
    #[serde(default)]
    pub suspend: SuspendKeys,
    /// Program/erase cycles that the flash is rated for.
    #[serde(default = "default_cycles")]
    pub rated_pe_cycles: u32,
}

/// Read retries: pages whose data is old or worn, so that only a second sense with other thresholds reads it, which takes
/// tR again. Which pages these are is drawn; in SLC mode there are none.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct RetryKeys {
    /// Share of the pages.
    pub share: f64,
    /// Pages that the firmware can have sensed again at a time, others wait with their dies; 0: any number.
    pub at_once: u32,
}

/// Erase and program suspend.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct SuspendKeys {
    /// Reads may suspend an erase.
    pub erase: bool,
    /// Reads may suspend a program.
    pub program: bool,
    /// Time until the die is ready for the read.
    pub enter: Nanos,
    /// Time added on resumption.
    pub resume: Nanos,
    /// Most suspensions of one operation.
    pub limit: u32,
}

impl Default for SuspendKeys {
    fn default() -> Self {
        SuspendKeys {
            erase: false,
            program: false,
            enter: Nanos::micros(20),
            resume: Nanos::micros(20),
            limit: 8,
        }
    }
}

/// The translation layer.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct FtlKeys {
    /// Granularity of the map.
    pub mapping_unit: Bytes,
    /// Physical / logical - 1; physical counts only blocks that may hold data while collection runs,
    /// and of those only what is not parity. Follows from `nand.die_size` where only that is given.
    pub over_provisioning: f64,
    /// Where host data goes.
    pub placement: String,
    /// RAM for the map, and what is done where it is too little.
    pub map: MapKeys,
    /// Compression of what is written; absent: none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub compression: Option<CompressionKeys>,
    /// Garbage collection.
    pub gc: GcKeys,
    /// Parity inside the drive.
    pub parity: ParityKeys,
    /// Wear levelling.
    pub wear_leveling: WearKeys,
    /// Blocks written with one bit per cell as a fast cache for writes; absent: none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slc_cache: Option<SlcCacheKeys>,
}

impl Default for FtlKeys {
    fn default() -> Self {
        FtlKeys {
            mapping_unit: Bytes::kib(4),
            over_provisioning: 0.07,
            placement: "round-robin".into(),
            map: MapKeys::default(),
            compression: None,
            gc: GcKeys::default(),
            parity: ParityKeys::default(),
            wear_leveling: WearKeys::default(),
            slc_cache: None,
        }
    }
}

/// Compression of what is written: a mapping unit takes the granules that its data needs, by the
/// `buffer_compress_percentage` of the job. Over-provisioning is counted with data that does not shrink.
/// Without a write buffer each command is programmed by itself and fills program units up, so that
/// little is gained.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CompressionKeys {
    /// Flash that data takes in multiples of, at least one for each mapping unit: a power of two from
    /// 64 B, or a 128th of the mapping unit where that is more, to the mapping unit.
    pub granule: Bytes,
}

/// The map.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct MapKeys {
    /// Kind of map.
    pub kind: String,
    /// `cached`: RAM for entries of the map, 4 bytes for each mapping unit of data; used in whole
    /// mapping units.
    pub cache: Bytes,
    /// `extent`: entries that the table in RAM holds.
    pub entries: u64,
    /// `extent`: aligned part of the logical space that an entry can cover at most, and that is
    /// merged together.
    pub segment: Bytes,
    /// `extent`: aligned parts of the logical space that have an entry each in a flat table, so that only what begins
    /// within one takes room among `entries`; 0: the segments.
    pub chunk: Bytes,
}

impl Default for MapKeys {
    fn default() -> Self {
        MapKeys {
            kind: "page".into(),
            cache: Bytes::mib(16),
            entries: 3_000_000,
            segment: Bytes::mib(1),
            chunk: Bytes(0),
        }
    }
}

/// Garbage collection.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct GcKeys {
    /// Victim policy.
    pub victim: String,
    /// `d-choices`: superblocks compared.
    pub choices: u32,
    /// `windowed`: share of the superblocks that is searched.
    pub window: f64,
    /// What is erased together.
    pub scope: Scope,
    /// How collection is spread over host writes.
    pub pace: Pace,
    /// `periodic`: the batches of collection.
    pub batch: BatchKeys,
    /// Free superblocks of a region at which a host write has to collect.
    pub low: u32,
    /// Free superblocks of a region up to which idle-time collection goes on.
    pub high: u32,
    /// Quiet time after which idle-time collection begins; absent: never.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idle_after: Option<Nanos>,
    /// Superblocks of each region that are collected after such a quiet time, before another one
    /// must pass; 0: none, as if there were no idle-time collection.
    pub idle_superblocks: u32,
    /// Collected data is kept apart from host data.
    pub separate_frontier: bool,
    /// Program units of each die of a superblock whose valid data is copied in a row, with what the host writes behind
    /// them, as long as no write waits for room; absent, and while one waits: two of each channel.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub in_row: Option<u32>,
}

impl Default for GcKeys {
    fn default() -> Self {
        let parameters = victim::Parameters::default();
        GcKeys {
            victim: "greedy".into(),
            choices: parameters.choices,
            window: parameters.window,
            scope: Scope::Die,
            pace: Pace::Paced,
            batch: BatchKeys::default(),
            low: 1,
            high: 2,
            idle_after: None,
            idle_superblocks: 1,
            separate_frontier: false,
            in_row: None,
        }
    }
}

/// Batches of collection. They begin and end with the free superblocks of a region, on the average of
/// the drive, so that all regions collect at the same time; the superblocks kept free between them
/// are part of the over-provisioning.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct BatchKeys {
    /// `periodic`: free superblocks at which a batch begins.
    pub start: f64,
    /// `periodic`: free superblocks at which it ends.
    pub end: f64,
    /// `periodic`: units copied for each unit that the host writes during a batch. It ends only if they
    /// are more than u / (1 - u), u being the share of valid units in a victim.
    pub copies: f64,
    /// `periodic`: the same between batches; where it is no less than u / (1 - u) there is no need for
    /// any.
    pub between: f64,
}

/// Parity inside the drive.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ParityKeys {
    /// Program units of a stripe, its parity included: after so many less one of a superblock's
    /// program units one of parity is written. They lie on consecutive dies of the region (with
    /// `ftl.gc.scope` = "die" all on one die); where the dies of a region are a multiple of it, parity is
    /// always on the same dies. 0: no parity.
    pub stripe: u32,
}

/// Wear levelling.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct WearKeys {
    /// Policy. `dynamic` needs free superblocks to choose from: on a drive that is full, a `gc.low` above 1.
    pub policy: String,
    /// `threshold`: how much more often a free superblock may have been erased than one whose data stays.
    pub spread: u32,
}

impl Default for WearKeys {
    fn default() -> Self {
        WearKeys { policy: "none".into(), spread: wear_leveling::Parameters::default().spread }
    }
}

/// The SLC cache. With both sizes 0 there is none.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SlcCacheKeys {
    /// What the static part holds: flash of its own beside capacity and over-provisioning, in
    /// whole superblocks in every region.
    #[serde(default)]
    pub static_size: Bytes,
    /// What the dynamic part holds at most: it borrows the flash behind logical space that holds no
    /// data, so that it shrinks as the drive fills, and is nothing when it is full.
    #[serde(default)]
    pub dynamic_size: Bytes,
    /// Share of the capacity in use at which the dynamic part is nothing already.
    #[serde(default = "all")]
    pub dynamic_until: f64,
    /// tR of a block in SLC mode.
    pub t_read: Nanos,
    /// tPROG of a block in SLC mode.
    pub t_program: Nanos,
    /// What a write does that finds the cache full: it waits for folding, or goes past the cache.
    #[serde(default = "default_when_full")]
    pub when_full: WhenFull,
    /// Quiet time after which folding goes on until the cache is empty or the host comes back;
    /// absent: never.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fold_idle_after: Option<Nanos>,
}

/// The write buffer.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BufferKeys {
    /// RAM for data on its way to the flash, compressed where the drive does that. What it holds is
    /// replaced by the next write to the same mapping unit, read from there, dropped by TRIM, and never programmed
    /// then; what it has let go takes room until it is programmed. Where it is
    /// smaller than the program units that are open at once (one; with `striped` placement or
    /// compression one per region; twice as many with an SLC cache), they are programmed partly
    /// filled, and which are depends on timing.
    pub size: Bytes,
    /// What collection and the like move takes room in it, too: of each die two program units at most.
    #[serde(default)]
    pub holds_moves: bool,
    /// Capacitors keep it over a power failure, so a flush need not wait.
    pub power_loss_protected: bool,
    /// When it lets go, and of what.
    #[serde(default = "default_drain")]
    pub drain: String,
    /// `watermark`, `least-recent`: share of it that is held while the host is busy.
    #[serde(default = "half")]
    pub watermark: f64,
    /// `watermark`, `least-recent`: quiet time after which whole program units go down to the last; absent:
    /// never.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idle_after: Option<Nanos>,
}

/// Command handling.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ControllerKeys {
    /// Time of a core for each command.
    pub command_time: Nanos,
    /// What a write takes a core on top.
    pub write_time: Nanos,
    /// What a read takes on top without taking a core, as stages in a row do: looking it up, correcting its errors,
    /// handing it over. It delays a read and is no ceiling of their rate.
    pub read_latency: Nanos,
    /// The same for a write: fetching its data, placing it.
    pub write_latency: Nanos,
    /// Time of a core for each mapping unit that is moved for collection, wear levelling or folding: in gaps between
    /// commands, as long as no more of it waits than one program unit of every die brings.
    pub relocate_time: Nanos,
    /// The same for each translation unit of a cached map that is read from the flash or programmed.
    pub map_update_time: Nanos,
    /// Time of a core for each mapping unit that a TRIM takes from the map, one TRIM after the other.
    pub trim_unit_time: Nanos,
    /// Cores that handle commands; 0 counts as 1.
    pub cores: u32,
    /// Rate to which host writes are held, each waiting for its turn before it enters the buffer or
    /// the flash; absent: as fast as there is room.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub write_limit: Option<Rate>,
    /// Fetching ahead of sequential reads; absent: none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read_ahead: Option<ReadAheadKeys>,
}

impl Default for ControllerKeys {
    fn default() -> Self {
        ControllerKeys {
            command_time: Nanos(0),
            write_time: Nanos(0),
            read_latency: Nanos(0),
            write_latency: Nanos(0),
            relocate_time: Nanos(0),
            map_update_time: Nanos(0),
            // An entry of the map and a count of valid units in the controller's RAM.
            trim_unit_time: Nanos(10),
            cores: 0,
            write_limit: None,
            read_ahead: None,
        }
    }
}

/// Fetching ahead of sequential reads. A read that begins at the byte where one of the last eight
/// other reads ended continues its stream, from the second read in a row on.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReadAheadKeys {
    /// Bytes behind the end of each such read that are fetched from the flash into RAM, for each
    /// of up to eight streams.
    pub size: Bytes,
}

fn one() -> u32 {
    1
}
fn three() -> u32 {
    3
}
fn all() -> f64 {
    1.0
}
fn default_when_full() -> WhenFull {
    WhenFull::Fold
}
fn yes() -> bool {
    true
}
fn default_schedule() -> String {
    "reads-first-bounded".into()
}
fn default_drain() -> String {
    "program-unit".into()
}
fn half() -> f64 {
    0.5
}
fn default_cycles() -> u32 {
    3000
}
