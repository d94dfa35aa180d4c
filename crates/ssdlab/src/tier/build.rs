//! Tiers from their keys and devices: what fits.

use super::Tier;
use super::counters::Counts;
use super::heat::Heat;
use super::keys::{MapIn, TierKeys};
use super::map::Map;
use super::moves::table;
use crate::contract::{Build, Device};
use crate::error::{Error, Result};
use crate::fleet::{Exposed, Fleet};
use crate::rig::{keys_of, memory_below, memory_of_part};
use crate::sim::Slab;
use crate::units::Bytes;
use std::collections::VecDeque;

/// Bytes of memory per extent: place, heat, users, and the lists that are sorted.
const EXTENT_BYTES: u64 = 24;
/// A bit of a slot's number says that it is in use.
const SLOTS_MAX: u64 = 1 << 31;

/// Memory that tiers take, and their two devices; bytes.
///
/// # Errors
/// [`Error::Rig`] with the key that is wrong.
pub fn memory(mut table: toml::Table) -> Result<u64> {
    let devices = memory_of_part(&table, "fast")? + memory_below(table.clone())?;
    let size = |value: Option<toml::Value>| {
        let text = value.as_ref()?.get("capacity")?.as_str()?.to_string();
        Bytes::parse(&text).ok()
    };
    let sizes = [size(table.remove("fast")), size(table.remove("below"))];
    let keys: TierKeys = keys_of(table)?;
    let bytes: u64 = sizes.into_iter().flatten().map(|size| size.0).sum();
    Ok(devices + bytes / keys.extent.0.max(1) * EXTENT_BYTES)
}

/// Slots of both tiers, and where they begin on the fast one.
fn slots(keys: &TierKeys, fast: u64, below: u64) -> Result<(u32, u32, u64)> {
    let extent = keys.extent.0;
    let head = match keys.metadata {
        MapIn::Ram => 0,
        MapIn::Written => table((fast + below) / extent, keys.trim_unit.0),
    };
    let (first, second) = (fast.saturating_sub(head) / extent, below / extent);
    let spare = u64::from(keys.spare());
    if first <= spare {
        let problem = format!(
            "the fast device has {}, expected room for {} extents of {}, one more than reserve",
            Bytes(fast),
            spare + 1,
            keys.extent
        );
        return Err(Error::rig("extent", problem));
    }
    if second == 0 {
        let problem =
            format!("found {}, the device below has {}, expected less", keys.extent, Bytes(below));
        return Err(Error::rig("extent", problem));
    }
    if first + second >= SLOTS_MAX {
        let least = Bytes(((fast + below) / SLOTS_MAX).next_power_of_two() * 2);
        let problem = format!("found {}, expected at least {least} for so much space", keys.extent);
        return Err(Error::rig("extent", problem));
    }
    Ok((first as u32, second as u32, head))
}

impl Tier {
    /// Tiers of two devices.
    ///
    /// # Errors
    /// [`Error::Rig`] with the key that is wrong, or with what does not fit.
    pub fn new(
        keys: &TierKeys,
        fast: Box<dyn Device>,
        below: Box<dyn Device>,
        build: &Build,
    ) -> Result<Self> {
        keys.check()?;
        let (first, second, head) = slots(keys, fast.capacity(), below.capacity())?;
        let map = Map::new(first, second, keys.spare(), keys.placement);
        let size = u64::from(map.len()) * keys.extent.0;
        let mut device = Tier {
            shift: keys.extent.0.trailing_zeros(),
            data: [head, 0],
            heat: Heat::new(keys, map.len()),
            map,
            keys: keys.clone(),
            fleet: Fleet::new(size, vec![fast, below], false).with_payload(build.keep_versions),
            moves: Slab::new(),
            held: VecDeque::new(),
            paced: VecDeque::new(),
            next_piece: 0,
            blocked: 0,
            exposed: Exposed::default(),
            counts: Counts::default(),
        };
        device.plan_timer();
        Ok(device)
    }
}
