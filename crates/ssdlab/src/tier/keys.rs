//! What a rig says about tiers.

use crate::error::{Error, Result};
use crate::units::{Bytes, Nanos, Rate};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Where extents lie before anything is known of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Placement {
    /// The first addresses on the fast tier.
    #[default]
    FastFirst,
    /// The first addresses on the tier below.
    BelowFirst,
    /// Every range of addresses has the same share on the fast tier.
    Spread,
}

/// What makes an extent hot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum HeatOf {
    /// Its reads and writes.
    #[default]
    Both,
    /// Its reads.
    Reads,
    /// Its writes.
    Writes,
}

/// Where the map of extents is kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum MapIn {
    /// In RAM that survives; changes take no time.
    #[default]
    Ram,
    /// On the fast tier: the end of a move writes the 4 KiB page of the extent's entry of 8 B, before the map
    /// switches.
    Written,
}

/// What a rig says about tiers. The fast device is the table `fast`, the slow one the table `below`; the host sees
/// the sum of both. A tier whose `below` is a tier makes three.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TierKeys {
    /// Bytes of an extent: what is counted and moved together. Storage Spaces: 1 MiB; FAST VP: 256 MiB (VNX2,
    /// Unity), 1 GiB (VNX).
    #[serde(default = "default_extent")]
    pub extent: Bytes,
    /// How often the heat of all extents is looked at, and moves are planned anew. Easy Tier counts in intervals of
    /// 5 minutes; Storage Spaces and FAST VP move once a day.
    #[serde(default = "default_period")]
    pub period: Nanos,
    /// After so much time an I/O counts half. Easy Tier takes means over a day.
    #[serde(default = "default_half_life")]
    pub half_life: Nanos,
    /// What makes an extent hot.
    #[serde(default)]
    pub heat_of: HeatOf,
    /// Least heat, in I/Os that count whole, of an extent that moves up.
    #[serde(default = "default_promote_after")]
    pub promote_after: u32,
    /// An extent takes the place of another one if it is hotter by more than this share.
    #[serde(default = "default_margin")]
    pub margin: f64,
    /// Extents that are moved at the same time; 0: nothing ever moves.
    #[serde(default = "default_moves")]
    pub moves: u32,
    /// Bytes of an extent that are copied at once; writes of these wait. Absent: 256 KiB, or an extent if that is
    /// less.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub move_size: Option<Bytes>,
    /// Extents are copied no faster than this, all moves together; absent: as fast as the devices can. Easy Tier:
    /// at most 12 GB in 5 minutes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub move_rate: Option<Rate>,
    /// Extents of space that the host does not see, to move into; free on the fast tier at first. Absent: as
    /// many as `moves`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reserve: Option<u32>,
    /// Where extents lie before anything is known of them.
    #[serde(default)]
    pub placement: Placement,
    /// Where the map of extents is kept.
    #[serde(default)]
    pub metadata: MapIn,
    /// Bytes that a TRIM deallocates together, and that both devices can deallocate; space that an extent has
    /// left is deallocated too. 0B: TRIM does not reach the devices.
    #[serde(default = "default_trim_unit")]
    pub trim_unit: Bytes,
    /// When the fast tier fails, in virtual time since it was new. What lies on it is lost, and commands for it
    /// end in an error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fast_fails_at: Option<Nanos>,
    /// When the tier below fails, likewise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub below_fails_at: Option<Nanos>,
}

fn default_extent() -> Bytes {
    Bytes::mib(1)
}
fn default_period() -> Nanos {
    Nanos::millis(300_000)
}
fn default_half_life() -> Nanos {
    Nanos::millis(3_600_000)
}
fn default_promote_after() -> u32 {
    2
}
fn default_margin() -> f64 {
    0.2
}
fn default_moves() -> u32 {
    1
}
fn default_trim_unit() -> Bytes {
    Bytes::kib(4)
}

/// A page of the map, and the least extent.
pub(super) const PAGE: u64 = 4096;
const EXTENT_MAX: Bytes = Bytes::gib(8);
const MOVE_SIZE: Bytes = Bytes::kib(256);
const MOVES_MAX: u32 = 1024;
const PERIOD_LEAST: Nanos = Nanos::millis(1);
const MARGIN_MAX: f64 = 100.0;
/// Heat is counted in 24 bits and a fraction.
const PROMOTE_MAX: u32 = 1 << 20;

fn refuse(key: &str, found: impl std::fmt::Display, expected: &str) -> Result<()> {
    Err(Error::rig(key, format!("found {found}, expected {expected}")))
}

impl TierKeys {
    /// Bytes that are copied at once.
    pub(super) fn piece(&self) -> u64 {
        self.move_size.unwrap_or(MOVE_SIZE.min(self.extent)).0
    }

    /// Extents of space to move into.
    pub(super) fn spare(&self) -> u32 {
        self.reserve.unwrap_or(self.moves)
    }

    /// Whether every extent stays where it is, and answers.
    pub(super) fn is_still(&self) -> bool {
        self.moves == 0 && self.fast_fails_at.is_none() && self.below_fails_at.is_none()
    }

    /// Checks what the types cannot.
    ///
    /// # Errors
    /// [`Error::Rig`] with the key that is wrong.
    pub fn check(&self) -> Result<()> {
        if self.extent.0 < PAGE || !self.extent.0.is_power_of_two() || self.extent > EXTENT_MAX {
            let expected = format!("a power of two from 4KiB to {EXTENT_MAX}");
            return refuse("extent", self.extent, &expected);
        }
        let piece = Bytes(self.piece());
        if piece.0 < PAGE || !piece.0.is_power_of_two() || piece > self.extent {
            let expected = format!("a power of two from 4KiB to extent, {}", self.extent);
            return refuse("move_size", piece, &expected);
        }
        let unit = self.trim_unit;
        if unit.0 > 0 && (unit.0 < crate::device::SECTOR || !unit.0.is_power_of_two())
            || unit > piece
        {
            let expected = format!("0B or a power of two from 512B to move_size, {piece}");
            return refuse("trim_unit", unit, &expected);
        }
        if self.period < PERIOD_LEAST {
            return refuse("period", self.period, "at least 1ms");
        }
        if self.half_life.0 == 0 {
            return refuse("half_life", self.half_life, "more than nothing");
        }
        if !(0.0..=MARGIN_MAX).contains(&self.margin) {
            return refuse("margin", self.margin, "a share from 0 to 100");
        }
        if self.moves > MOVES_MAX {
            return refuse("moves", self.moves, "at most 1024");
        }
        if self.promote_after > PROMOTE_MAX {
            return refuse("promote_after", self.promote_after, "at most 1048576");
        }
        if self.moves > 0 && self.spare() == 0 {
            return refuse("reserve", 0, "at least 1 extent to move into, or moves = 0");
        }
        if let Some(rate) = self.move_rate.filter(|rate| rate.0 < 1000) {
            return refuse("move_rate", rate, "at least 1kB/s");
        }
        Ok(())
    }
}
