//! What a rig says about a controller card.

use crate::device::SECTOR;
use crate::error::{Error, Result};
use crate::rig::at_most_an_hour;
use crate::units::{Bytes, Nanos, Rate};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a rig says about a controller card: an HBA, or a RAID card with RAM.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ControllerKeys {
    /// Data that passes between the host and the card in a second, both directions together.
    pub bandwidth: Rate,
    /// Time of one core for a command, the host's and the card's own alike; IOPS are at most
    /// `cores` / `command_time`.
    #[serde(default)]
    pub command_time: Nanos,
    /// Commands that the card handles at the same time.
    #[serde(default = "default_cores")]
    pub cores: u32,
    /// Commands that the card takes at a time; the others wait at the host, first in, first out.
    #[serde(default = "default_queue")]
    pub queue: u32,
    /// What the firmware of a RAID card takes of the cores on top; absent: nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub firmware: Option<FirmwareKeys>,
    /// RAM of the card; absent: everything passes through.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache: Option<RamKeys>,
}

/// What the firmware of a RAID card takes of its cores.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FirmwareKeys {
    /// Time of one core for a command of the host's that goes through the firmware, on top of the card's `command_time`.
    #[serde(default)]
    pub command_time: Nanos,
    /// Time of one core for each command that a drive below is given: of stripes and mirrors, of caches, of rebuilding.
    #[serde(default)]
    pub member_command_time: Nanos,
    /// Whether reads and writes that go to one drive as they are, of arrays in which nothing is missing, pass the firmware
    /// by at none of these times (LSI FastPath); not where the card's RAM buffers writes or keeps reads.
    #[serde(default = "default_fast_path")]
    pub fast_path: bool,
}

/// When a write is done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum WriteMode {
    /// When the devices below have it.
    WriteThrough,
    /// When it is in RAM.
    #[default]
    WriteBack,
}

/// In which order RAM is written below.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RamOrder {
    /// By address, one way round and again.
    #[default]
    Address,
    /// What has waited for the longest time first.
    Age,
}

/// RAM of a controller card.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RamKeys {
    /// Bytes of RAM that hold data.
    pub size: Bytes,
    /// Bytes of a line, which is taken and given up as a whole (512 B to 32 KiB, a power of two);
    /// sectors of it are known one by one, so that none is read before it is written.
    #[serde(default = "default_line")]
    pub line: Bytes,
    /// When a write is done. Without `battery` or `force`, `write-back` acts as `write-through`.
    #[serde(default)]
    pub mode: WriteMode,
    /// RAM outlives a power failure: a flush is done at once.
    #[serde(default)]
    pub battery: bool,
    /// Write-back even without `battery`: what is acknowledged in RAM is lost with the power.
    #[serde(default)]
    pub force: bool,
    /// Share of RAM that may hold data not yet written below; then host writes wait for room.
    #[serde(default = "default_dirty_high")]
    pub dirty_high: f64,
    /// Share of RAM above which data is written below at once; what is less waits for `destage_delay`.
    #[serde(default = "default_dirty_low")]
    pub dirty_low: f64,
    /// How long data below `dirty_low` stays in RAM before all of it is written below; 0: not at all.
    #[serde(default = "default_destage_delay")]
    pub destage_delay: Nanos,
    /// Commands that write RAM below at the same time.
    #[serde(default = "default_destage_depth")]
    pub destage_depth: u32,
    /// Largest of those: lines side by side go as one command, which does not cross a multiple of this.
    #[serde(default = "default_destage_size")]
    pub destage_size: Bytes,
    /// In which order RAM is written below; lines that follow side by side go along in any case.
    #[serde(default)]
    pub destage_order: RamOrder,
    /// Whether what was read from below stays in RAM for further reads.
    #[serde(default = "default_keep_reads")]
    pub keep_reads: bool,
}

fn default_cores() -> u32 {
    1
}

fn default_fast_path() -> bool {
    true
}

fn default_queue() -> u32 {
    1024
}

fn default_line() -> Bytes {
    Bytes::kib(4)
}

fn default_dirty_high() -> f64 {
    0.9
}

fn default_dirty_low() -> f64 {
    0.5
}

fn default_destage_delay() -> Nanos {
    Nanos::millis(4000)
}

fn default_destage_depth() -> u32 {
    64
}

fn default_destage_size() -> Bytes {
    Bytes::mib(1)
}

fn default_keep_reads() -> bool {
    true
}

/// More than any card has.
const CORES_MAX: u32 = 4096;
const DEPTH_MAX: u32 = 65_536;
const RATE_MIN: u64 = 1000;
const LINE_MAX: Bytes = Bytes::kib(32);
const DESTAGE_MAX: Bytes = Bytes::mib(64);
/// Lines at most: their indices are 32 bits wide.
const LINES_MAX: u64 = 1 << 30;
/// Memory of the simulation for a line: its state, its places in table and order; and in order of age.
const MEMORY_PER_LINE: u64 = 64 + 16 + 56;
const MEMORY_PER_LINE_BY_AGE: u64 = 8;

impl ControllerKeys {
    /// Checks what the types cannot.
    ///
    /// # Errors
    /// [`Error::Rig`] with the key that is wrong.
    pub fn check(&self) -> Result<()> {
        if self.bandwidth.0 < RATE_MIN {
            let problem =
                format!("found {}, expected at least 1kB/s, such as \"4GB/s\"", self.bandwidth);
            return Err(Error::rig("bandwidth", problem));
        }
        at_most_an_hour("command_time", self.command_time)?;
        if let Some(firmware) = &self.firmware {
            at_most_an_hour("firmware.command_time", firmware.command_time)?;
            at_most_an_hour("firmware.member_command_time", firmware.member_command_time)?;
        }
        within("cores", u64::from(self.cores), 1, u64::from(CORES_MAX))?;
        within("queue", u64::from(self.queue), 1, u64::from(DEPTH_MAX))?;
        self.cache.as_ref().map_or(Ok(()), |cache| cache.check().map_err(|e| e.under("cache")))
    }

    /// Memory that the card's state takes, bytes.
    ///
    /// # Errors
    /// [`Error::Rig`] with the key that is wrong.
    pub fn memory(&self) -> Result<u64> {
        self.check()?;
        Ok(self.cache.as_ref().map_or(0, |cache| {
            let by_age = cache.destage_order == RamOrder::Age;
            let more = if by_age { MEMORY_PER_LINE_BY_AGE } else { 0 };
            cache.lines() * (MEMORY_PER_LINE + more)
        }))
    }
}

impl RamKeys {
    fn check(&self) -> Result<()> {
        let line = self.line.0;
        if !line.is_power_of_two() || !(SECTOR..=LINE_MAX.0).contains(&line) {
            let problem = format!(
                "found {}, expected a power of two from 512B to {LINE_MAX}, such as \"4KiB\"",
                self.line
            );
            return Err(Error::rig("line", problem));
        }
        if self.size.0 < line || self.lines() > LINES_MAX {
            let most = Bytes(LINES_MAX * line);
            let problem = format!(
                "found {}, expected from one line of {} to {most}, such as \"1GiB\"",
                self.size, self.line
            );
            return Err(Error::rig("size", problem));
        }
        if !(self.dirty_high > 0.0 && self.dirty_high <= 1.0) {
            let problem =
                format!("found {}, expected a share above 0 and up to 1", self.dirty_high);
            return Err(Error::rig("dirty_high", problem));
        }
        if !(0.0..=self.dirty_high).contains(&self.dirty_low) {
            let problem = format!(
                "found {}, expected a share from 0 to dirty_high, {}",
                self.dirty_low, self.dirty_high
            );
            return Err(Error::rig("dirty_low", problem));
        }
        at_most_an_hour("destage_delay", self.destage_delay)?;
        within("destage_depth", u64::from(self.destage_depth), 1, u64::from(DEPTH_MAX))?;
        let size = self.destage_size;
        if size.0 < line || !size.0.is_multiple_of(line) || size > DESTAGE_MAX {
            let problem = format!(
                "found {size}, expected a multiple of a line of {} up to {DESTAGE_MAX}",
                self.line
            );
            return Err(Error::rig("destage_size", problem));
        }
        Ok(())
    }

    /// Lines that there are.
    pub fn lines(&self) -> u64 {
        self.size.0 / self.line.0.max(1)
    }

    /// Whether writes are done when they are in RAM.
    pub fn writes_back(&self) -> bool {
        self.mode == WriteMode::WriteBack && (self.battery || self.force)
    }

    /// Lines of which `share` are, at least one.
    pub(super) fn share(&self, share: f64) -> u32 {
        ((self.lines() as f64 * share) as u32).max(1)
    }
}

fn within(key: &str, found: u64, least: u64, most: u64) -> Result<()> {
    if (least..=most).contains(&found) {
        return Ok(());
    }
    Err(Error::rig(key, format!("found {found}, expected from {least} to {most}")))
}
