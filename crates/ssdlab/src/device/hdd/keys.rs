//! What a rig may say about a hard disk.

use crate::contract::SECTOR;
use crate::units::{Bytes, Nanos, Rate};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a rig says about a hard disk.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HddKeys {
    /// Bytes that the host can address.
    pub capacity: Bytes,
    /// Turns a minute.
    pub rpm: u32,
    /// Least seek, to the next cylinder.
    #[serde(default = "default_seek_track")]
    pub seek_track: Nanos,
    /// Mean seek of reads between random places.
    pub seek_average: Nanos,
    /// Seek over the whole stroke; without it seeks grow with the square root of the distance.
    #[serde(default)]
    pub seek_full: Option<Nanos>,
    /// What a seek takes longer before a write.
    #[serde(default)]
    pub write_settle: Nanos,
    /// Switching to another head of the cylinder.
    #[serde(default = "default_head_switch")]
    pub head_switch: Nanos,
    /// Surfaces with data.
    #[serde(default = "default_heads")]
    pub heads: u32,
    /// Sequential rate on the outermost tracks, switches counted in.
    pub sustained_outer: Rate,
    /// The same on the innermost tracks.
    pub sustained_inner: Rate,
    /// Stretches of the disk with tracks of one length.
    #[serde(default = "default_zones")]
    pub zones: u32,
    /// Time of the electronics for each command.
    #[serde(default = "default_command_time")]
    pub command_time: Nanos,
    /// Rate of the electronics for data from and into RAM.
    #[serde(default = "default_ram_rate")]
    pub ram_rate: Rate,
    /// Commands among which the next one is chosen (SATA NCQ: 32).
    #[serde(default = "default_queue_depth")]
    pub queue_depth: u32,
    /// In what order they are worked off.
    #[serde(default = "default_schedule")]
    pub schedule: String,
    /// Whether the next command is chosen while the heads are busy with the one before, as soon as that has begun: what comes
    /// later, such as what the host sends when it is answered, takes no part.
    #[serde(default = "default_choose_ahead")]
    pub choose_ahead: bool,
    /// By how much a seek may take longer than the drive expects: of a sector that passes sooner than that after the heads should
    /// have settled, it expects to miss it and to wait for a turn. What a specification has between its typical and its
    /// maximum seek.
    #[serde(default)]
    pub seek_margin: Nanos,
    /// A command that has waited so long goes first; without it none does.
    #[serde(default)]
    pub wait_limit: Option<Nanos>,
    /// RAM for data. What was read and read ahead may take half of it, and writes that wait for the platters the other.
    #[serde(default = "default_buffer")]
    pub buffer: Bytes,
    /// Stretches of the disk that it holds of what was read; 0: nothing is read ahead, or kept.
    #[serde(default = "default_segments")]
    pub segments: u32,
    /// From power to ready, after a loss of power.
    #[serde(default = "default_spin_up")]
    pub spin_up: Nanos,
    /// Whether writes are answered when they are in RAM (SCSI WCE, `hdparm -W`). Off: when they are on the platters.
    #[serde(default)]
    pub write_cache_enabled: bool,
    /// Writes that it holds, those that touch each other counted as one.
    #[serde(default = "default_write_cache_segments")]
    pub write_cache_segments: u32,
    /// The heads begin to destage when they have had no read for so long, unless something waits for room.
    #[serde(default = "default_destage_after")]
    pub destage_after: Nanos,
    /// A cache that has not been empty for so long is destaged between reads.
    #[serde(default = "default_destage_age")]
    pub destage_age: Nanos,
}

impl HddKeys {
    /// Sectors of RAM for what was read, and as many for writes that wait. How real disks share it out is known of none.
    pub fn share(&self) -> u64 {
        self.buffer.0 / 2 / SECTOR
    }
}

fn default_seek_track() -> Nanos {
    Nanos::micros(800)
}
fn default_head_switch() -> Nanos {
    Nanos::micros(600)
}
fn default_heads() -> u32 {
    2
}
fn default_zones() -> u32 {
    16
}
fn default_command_time() -> Nanos {
    Nanos::micros(100)
}
fn default_ram_rate() -> Rate {
    Rate(1_000_000_000)
}
fn default_queue_depth() -> u32 {
    32
}
fn default_schedule() -> String {
    "asptf".into()
}
/// The command to be ordered is the one after that which is being executed: Berning, Hall & Welter, US patent 6763404 (2004).
/// Reads of a Hitachi HTS721010G9SA00 at depths 4 to 16 wait at least for two others (fio-plot's benchmark data).
fn default_choose_ahead() -> bool {
    true
}
fn default_buffer() -> Bytes {
    Bytes::mib(32)
}
/// Power-on to ready, at most: Seagate Barracuda 7200.8 Serial ATA product manual, rev. B, 2.7.
fn default_spin_up() -> Nanos {
    Nanos::millis(10_000)
}
fn default_segments() -> u32 {
    16
}
/// Writes at random to a disk of 7200 rpm and 32 MiB (Samsung HD103UJ): 148 to 152 a second at any depth, 344 at most
/// in a second (fio-plot's benchmark data). It held some hundred of them, not the 8192 that its RAM has room for.
fn default_write_cache_segments() -> u32 {
    64
}
fn default_destage_after() -> Nanos {
    Nanos::millis(20)
}
fn default_destage_age() -> Nanos {
    Nanos::millis(1000)
}
