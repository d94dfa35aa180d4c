//! An array from its keys and members: what fits, and what is wasted.

use super::bitmap::{Bitmap, REGIONS_MAX};
use super::keys::{ArrayKeys, Level, MEMBERS_MAX, ROW};
use super::layout::{Layout, Linear, Mirrored, Parity, Striped};
use crate::contract::Device;
use crate::error::{Error, Result};
use crate::rig::at_most_an_hour;
use crate::units::Bytes;

/// Share of the members that may be wasted without a word.
const WASTE_UNSAID: f64 = 0.01;

/// The layout of an array over members of these capacities.
///
/// # Errors
/// [`Error::Rig`] with the key that is wrong.
pub fn layout(keys: &ArrayKeys, members: &[Box<dyn Device>]) -> Result<Layout> {
    keys.check()?;
    let n = members.len() as u32;
    enough(keys, n)?;
    let chunk = keys.chunk.0;
    let page = if keys.bitmap.is_some() { ROW } else { 0 };
    let usable = |member: &dyn Device| (member.capacity() / ROW * ROW).saturating_sub(page);
    let smallest = members.iter().map(|m| usable(&**m)).min().unwrap_or(0);
    let unit = if matches!(keys.level, Level::Linear | Level::Raid1) { ROW } else { chunk };
    if smallest < unit {
        let problem = format!(
            "a member has {}, expected at least one chunk of {}",
            Bytes(smallest),
            Bytes(unit)
        );
        return Err(Error::rig("chunk", problem));
    }
    let rows = smallest / chunk;
    let layout = match keys.level {
        Level::Linear => {
            let sizes: Vec<u64> = members.iter().map(|m| usable(&**m)).collect();
            Layout::Linear(Linear::new(&sizes))
        }
        Level::Raid0 => Layout::Striped(Striped { members: n, chunk, rows }),
        Level::Raid1 => {
            let (arrangement, _) = keys.copies()?;
            let chunk = smallest / ROW * ROW;
            Layout::Mirrored(Mirrored { members: n, copies: n, arrangement, chunk, rows: 1 })
        }
        Level::Raid10 => {
            let (arrangement, copies) = keys.copies()?;
            let mirrored = Mirrored { members: n, copies, arrangement, chunk, rows };
            if mirrored.capacity() == 0 {
                let problem = format!(
                    "a member has {}, expected room for {copies} chunks of {}",
                    Bytes(smallest),
                    keys.chunk
                );
                return Err(Error::rig("chunk", problem));
            }
            Layout::Mirrored(mirrored)
        }
        Level::Raid5 | Level::Raid6 => {
            let (rotation, parities) = (keys.rotation()?, keys.level.parities());
            Layout::Parity(Parity { members: n, parities, rotation, chunk, rows })
        }
    };
    refuse_waste(keys, members)?;
    Ok(layout)
}

/// The write-intent bitmap behind the data, if there is to be one.
///
/// # Errors
/// [`Error::Rig`] with the key that is wrong.
pub fn bitmap(
    keys: &ArrayKeys,
    layout: &Layout,
    members: &[Box<dyn Device>],
) -> Result<Option<Bitmap>> {
    let Some(region) = keys.bitmap else { return Ok(None) };
    if layout.parity().is_none() && layout.copies() == 1 {
        let problem = format!("{} has no redundancy that it could keep", keys.level.name());
        return Err(Error::rig("bitmap", problem));
    }
    let capacity = layout.capacity();
    let least = capacity.div_ceil(REGIONS_MAX).next_multiple_of(ROW);
    if region.0 < least {
        let problem = format!("found {region}, expected at least {}", Bytes(least));
        return Err(Error::rig("bitmap", problem));
    }
    at_most_an_hour("bitmap_delay", keys.bitmap_delay)?;
    if keys.bitmap_delay.0 == 0 {
        return Err(Error::rig("bitmap_delay", "must be longer than 0"));
    }
    let smallest = members.iter().map(|m| m.capacity()).min().unwrap_or(0);
    let offset = smallest / ROW * ROW - ROW;
    Ok(Some(Bitmap::new(capacity, region.0, keys.bitmap_delay.0, offset)))
}

/// Refuses spares that are too small.
///
/// # Errors
/// [`Error::Rig`] with the size of the first of them.
pub fn check_spares(keys: &ArrayKeys, layout: &Layout, spares: &[Box<dyn Device>]) -> Result<()> {
    // The page of a bitmap lies behind what is used.
    let needed = layout.used(0) + if keys.bitmap.is_some() { ROW } else { 0 };
    match spares.iter().map(|spare| spare.capacity()).find(|&capacity| capacity < needed) {
        None => Ok(()),
        Some(found) => {
            let (found, needed) = (Bytes(found), Bytes(needed));
            Err(Error::rig("spares", format!("one has {found}, expected at least {needed}")))
        }
    }
}

fn enough(keys: &ArrayKeys, n: u32) -> Result<()> {
    let (least, name) = (keys.level.members_min(), keys.level.name());
    if n < least || n > MEMBERS_MAX {
        let problem = format!("found {n}, expected from {least} to {MEMBERS_MAX} for {name}");
        return Err(Error::rig(if keys.count.is_some() { "count" } else { "members" }, problem));
    }
    let copies = if keys.level == Level::Raid10 { keys.copies()?.1 } else { 0 };
    if copies > n {
        let found = keys.layout.as_deref().unwrap_or_default();
        let problem = format!("found \"{found}\", expected at most as many copies as members, {n}");
        return Err(Error::rig("layout", problem));
    }
    Ok(())
}

/// Refuses members of which much would never be used.
fn refuse_waste(keys: &ArrayKeys, members: &[Box<dyn Device>]) -> Result<()> {
    if keys.accept_waste || keys.level == Level::Linear {
        return Ok(());
    }
    let capacities = members.iter().map(|m| m.capacity());
    let total: u64 = capacities.clone().sum();
    let smallest = capacities.min().unwrap_or(0);
    let wasted = total - smallest * members.len() as u64;
    let share = wasted as f64 / total as f64;
    if share <= WASTE_UNSAID {
        return Ok(());
    }
    let problem = format!(
        "the smallest has {}, so {:.2} GB of {:.2} GB ({:.0} %) would never be used; \
         expected members of one size, or accept_waste = true",
        Bytes(smallest),
        wasted as f64 / 1e9,
        total as f64 / 1e9,
        share * 100.0
    );
    Err(Error::rig("members", problem))
}
