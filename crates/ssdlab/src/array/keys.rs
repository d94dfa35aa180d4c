//! What a rig says about an array.

use super::bus::BusKeys;
use super::layout::{Copies, Rotation};
use crate::error::{Error, Result};
use crate::units::{Bytes, Nanos, Rate};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How an array spreads its data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Level {
    /// One member after another (JBOD).
    Linear,
    /// Striped, without redundancy.
    Raid0,
    /// Every member holds everything.
    Raid1,
    /// Striped, every chunk on two members or more.
    Raid10,
    /// Striped, with one chunk of parity in every stripe.
    Raid5,
    /// Striped, with two chunks of parity in every stripe.
    Raid6,
}

impl Level {
    /// The name in rigs.
    pub fn name(self) -> &'static str {
        match self {
            Level::Linear => "linear",
            Level::Raid0 => "raid0",
            Level::Raid1 => "raid1",
            Level::Raid10 => "raid10",
            Level::Raid5 => "raid5",
            Level::Raid6 => "raid6",
        }
    }

    /// Members that it takes at least.
    pub fn members_min(self) -> u32 {
        match self {
            Level::Linear | Level::Raid0 => 1,
            Level::Raid1 | Level::Raid10 => 2,
            Level::Raid5 => 3,
            Level::Raid6 => 4,
        }
    }

    /// Chunks of parity in a stripe.
    pub fn parities(self) -> u32 {
        match self {
            Level::Raid5 => 1,
            Level::Raid6 => 2,
            _ => 0,
        }
    }
}

/// Which copy of mirrored data a read takes. But for `round-robin`, a read of RAID 1 that goes on where the last read
/// of a member ended stays with that member, as in md.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ReadBalance {
    /// That on the member with the fewest commands in flight (as md does with solid-state members), of equals the
    /// nearest (md: the first).
    #[default]
    LeastPending,
    /// Each copy in turn.
    RoundRobin,
    /// As md does with disks: that on the first idle member, or else on the one whose last command ended nearest; of
    /// far and offset copies always that with the lowest address.
    Nearest,
}

/// What a rig says about an array. Its members are tables: `[[device.members]]` for each, or
/// `[device.member]` with `count`.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ArrayKeys {
    /// How data is spread.
    pub level: Level,
    /// Members of one kind, described by the table `member`; absent where `members` lists them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub count: Option<u32>,
    /// Bytes of a chunk: what lies on one member before the next one's turn (a multiple of 4 KiB).
    /// Without meaning for `raid1` and `linear`.
    #[serde(default = "default_chunk")]
    pub chunk: Bytes,
    /// The layout as md names it. `raid5`, `raid6`: left-symmetric (md's default), left-asymmetric,
    /// right-symmetric, right-asymmetric. `raid10`: n2 (md's default), f2, o2 and so on: near, far or
    /// offset, and the number of copies.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub layout: Option<String>,
    /// Which copy of mirrored data a read takes: of the member with the fewest commands in flight, each in turn, or, as
    /// md does with disks, of an idle member or else the nearest (of far and offset copies that with the lowest address).
    /// But for `round-robin`, reads of `raid1` that go on where the last read of a member ended stay with it, as in md.
    #[serde(default)]
    pub read_balance: ReadBalance,
    /// Stripe cache of `raid5` and `raid6` in rows of 4 KiB on every member, as md counts (1 MiB a
    /// member): bounds the stripes being written; what was read or written lately is found in it.
    #[serde(default = "default_stripe_cache")]
    pub stripe_cache: u32,
    /// Whether TRIM reaches the members. Absent: yes, except for `raid5` and `raid6`, as in md; there,
    /// only whole stripes are passed on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trim: Option<bool>,
    /// Whether it is accepted that larger members give no more space than the smallest, where that
    /// wastes more than 1 % of them.
    #[serde(default)]
    pub accept_waste: bool,
    /// Bytes of the array for which a bit of the write-intent bitmap stands (md: 64 MiB); absent: there
    /// is none. A bit is set on every member before its region is written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bitmap: Option<Bytes>,
    /// Time between two looks for bits to clear; one that was not used from one to the next is cleared
    /// (md's `daemon_sleep`).
    #[serde(default = "default_bitmap_delay")]
    pub bitmap_delay: Nanos,
    /// Hot spares besides: so many more of `member`, or the last ones of `members`. One takes the
    /// place of a member that fails, and is rebuilt.
    #[serde(default)]
    pub spares: u32,
    /// Rebuilding goes no faster than this while the host wants something (md's `speed_limit_min`).
    #[serde(default = "default_rebuild_min")]
    pub rebuild_min: Rate,
    /// Rebuilding goes no faster than this while the host is quiet (md's `speed_limit_max`).
    #[serde(default = "default_rebuild_max")]
    pub rebuild_max: Rate,
    /// Bytes of a member that are rebuilt at once, in chunks (md's raid1 and raid10: 2 MiB); at least one
    /// chunk, of `raid5` and `raid6` at most half of the stripe cache.
    #[serde(default = "default_rebuild_window")]
    pub rebuild_window: Bytes,
    /// Unrecoverable errors per bit that is read to rebuild, as datasheets give it (such as 1e-15).
    #[serde(default)]
    pub uber: f64,
    /// A bandwidth that all members share; absent: each has its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bus: Option<BusKeys>,
    /// Failures of members: each `{ member, at }` or `{ member, worn }`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fail: Vec<FailKeys>,
}

/// A member that fails.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FailKeys {
    /// Which one, from 0.
    pub member: u32,
    /// When, in virtual time since the array was new.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at: Option<Nanos>,
    /// At which wear, in percent of its rated cycles (`percentage_used`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub worn: Option<u64>,
}

fn default_bitmap_delay() -> Nanos {
    Nanos::millis(5000)
}

fn default_rebuild_window() -> Bytes {
    Bytes::mib(2)
}

fn default_rebuild_min() -> Rate {
    Rate(1_024_000)
}

fn default_rebuild_max() -> Rate {
    Rate(204_800_000)
}

fn default_chunk() -> Bytes {
    Bytes::kib(512)
}

fn default_stripe_cache() -> u32 {
    256
}

/// Members at most; GF(2^8) has places for 255 chunks of data.
pub const MEMBERS_MAX: u32 = 255;
/// Bytes of a row of the stripe cache, and the least chunk.
pub const ROW: u64 = 4096;
/// One error in a million bits: far beyond any drive.
const UBER_MAX: f64 = 1e-6;
const CHUNK_MAX: Bytes = Bytes::gib(1);
const STRIPE_CACHE: std::ops::RangeInclusive<u32> = 17..=32768;

impl ArrayKeys {
    /// Checks what the types cannot.
    ///
    /// # Errors
    /// [`Error::Rig`] with the key that is wrong.
    pub fn check(&self) -> Result<()> {
        if self.chunk.0 == 0 || !self.chunk.0.is_multiple_of(ROW) || self.chunk > CHUNK_MAX {
            let problem = format!(
                "found {}, expected a multiple of 4KiB up to {CHUNK_MAX}, such as \"512KiB\"",
                self.chunk
            );
            return Err(Error::rig("chunk", problem));
        }
        if !STRIPE_CACHE.contains(&self.stripe_cache) {
            let (least, most) = (STRIPE_CACHE.start(), STRIPE_CACHE.end());
            let problem =
                format!("found {}, expected from {least} to {most} rows", self.stripe_cache);
            return Err(Error::rig("stripe_cache", problem));
        }
        if !(0.0..=UBER_MAX).contains(&self.uber) {
            let problem = format!("found {}, expected from 0 to {UBER_MAX} per bit", self.uber);
            return Err(Error::rig("uber", problem));
        }
        for (key, rate) in [("rebuild_min", self.rebuild_min), ("rebuild_max", self.rebuild_max)] {
            if rate.0 < 1000 {
                let problem = format!("found {rate}, expected at least 1kB/s");
                return Err(Error::rig(key, problem));
            }
        }
        self.rotation()?;
        self.copies().map(|_| ())
    }

    /// Checks the failures for `members` members.
    ///
    /// # Errors
    /// [`Error::Rig`] with the one that is wrong.
    pub fn check_failures(&self, members: u32) -> Result<()> {
        for (i, fail) in self.fail.iter().enumerate() {
            if fail.member >= members {
                let problem =
                    format!("found {}, expected a member from 0 to {}", fail.member, members - 1);
                return Err(Error::rig(format!("fail.{i}.member"), problem));
            }
            if fail.at.is_some() == fail.worn.is_some() {
                let problem = "expected either at (a time) or worn (percent)";
                return Err(Error::rig(format!("fail.{i}"), problem));
            }
        }
        Ok(())
    }

    /// How parity moves.
    ///
    /// # Errors
    /// [`Error::Rig`] for a layout that RAID 5 and 6 do not have.
    pub fn rotation(&self) -> Result<Rotation> {
        let (Some(layout), true) = (&self.layout, self.level.parities() > 0) else {
            return self.no_layout().map(|()| Rotation::NAMES[0].1);
        };
        let found = Rotation::NAMES.iter().find(|(name, _)| name == layout);
        found.map(|&(_, rotation)| rotation).ok_or_else(|| {
            let names: Vec<&str> = Rotation::NAMES.iter().map(|(name, _)| *name).collect();
            self.wrong_layout(&names.join(", "))
        })
    }

    /// How the copies of RAID 10 lie, and how many there are.
    ///
    /// # Errors
    /// [`Error::Rig`] for a layout that RAID 10 does not have.
    pub fn copies(&self) -> Result<(Copies, u32)> {
        let (Some(layout), Level::Raid10) = (&self.layout, self.level) else {
            return self.no_layout().map(|()| (Copies::Near, 2));
        };
        let arrangement = match layout.as_bytes().first() {
            Some(b'n') => Some(Copies::Near),
            Some(b'f') => Some(Copies::Far),
            Some(b'o') => Some(Copies::Offset),
            _ => None,
        };
        let copies = layout.get(1..).and_then(|digits| digits.parse::<u32>().ok());
        match (arrangement, copies) {
            (Some(arrangement), Some(copies @ 2..=MEMBERS_MAX)) => Ok((arrangement, copies)),
            _ => Err(self.wrong_layout("n2 (near), f2 (far) or o2 (offset), 2 being the copies")),
        }
    }

    fn no_layout(&self) -> Result<()> {
        match (&self.layout, self.level) {
            (Some(_), Level::Linear | Level::Raid0 | Level::Raid1) => {
                Err(self.wrong_layout("none: only raid5, raid6 and raid10 have layouts"))
            }
            _ => Ok(()),
        }
    }

    fn wrong_layout(&self, expected: &str) -> Error {
        let found = self.layout.as_deref().unwrap_or_default();
        let problem = format!("found \"{found}\" for {}, expected {expected}", self.level.name());
        Error::rig("layout", problem)
    }
}
