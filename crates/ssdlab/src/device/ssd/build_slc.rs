//! From the keys of an SLC cache to its superblocks.

use super::build::between;
use super::keys::{SlcCacheKeys, SsdKeys};
use crate::error::{Error, Result};
use crate::ftl::{Layout, SlcCache, SlcSettings};
use crate::rig::at_most_an_hour;
use crate::units::Bytes;

fn refused(key: &str, message: String) -> Error {
    Error::rig(format!("ftl.slc_cache.{key}"), message)
}

impl SsdKeys {
    /// The cache, if it has a size, its values checked.
    fn slc_cache(&self) -> Result<Option<&SlcCacheKeys>> {
        let Some(slc) = &self.ftl.slc_cache else { return Ok(None) };
        for (key, time) in [
            ("t_read", slc.t_read),
            ("t_program", slc.t_program),
            ("fold_idle_after", slc.fold_idle_after.unwrap_or_default()),
        ] {
            at_most_an_hour(&format!("ftl.slc_cache.{key}"), time)?;
        }
        between("ftl.slc_cache.dynamic_until", slc.dynamic_until, 0.0, 1.0)?;
        if slc.static_size.0 == 0 && slc.dynamic_size.0 == 0 {
            return Ok(None);
        }
        let (bits, pages) = (self.nand.bits_per_cell, self.nand.pages_per_block);
        if bits < 2 {
            let message = "found 1, expected 2, 3 or 4 with an SLC cache: cells of one bit have no \
                           faster mode";
            return Err(Error::rig("nand.bits_per_cell", message));
        }
        let least = bits * self.pages_per_program();
        if pages < least {
            let message = format!(
                "found {pages}, expected at least {least} with an SLC cache: a block in SLC mode has \
                 {bits} times fewer pages, and holds a program unit"
            );
            return Err(Error::rig("nand.pages_per_block", message));
        }
        if self.ftl.map.kind == "extent" {
            let message = "found an SLC cache with ftl.map.kind = \"extent\", expected \"page\" or \
                           \"cached\": folding and merging would move the same data";
            return Err(Error::rig("ftl.slc_cache", message));
        }
        if self.ftl.compression.as_ref().is_some_and(|c| c.granule < self.ftl.mapping_unit) {
            let message = "found an SLC cache with ftl.compression, expected one of them: a cache of \
                           units that shrink is not modelled";
            return Err(Error::rig("ftl.slc_cache", message));
        }
        Ok(Some(slc))
    }

    /// Quiet time after which folding begins, if it ever does.
    pub(super) fn fold_idle_after(&self) -> Option<u64> {
        let slc = self.ftl.slc_cache.as_ref()?;
        let any = slc.static_size.0 > 0 || slc.dynamic_size.0 > 0;
        slc.fold_idle_after.filter(|_| any).map(|after| after.0)
    }

    /// Superblocks in each region that `size` in SLC mode takes, to the nearest, one at least.
    fn slc_superblocks(&self, layout: &Layout, size: Bytes) -> u64 {
        let units = SlcCache::data_units_per_superblock(layout, self.nand.bits_per_cell);
        let bytes = u64::from(units) * self.ftl.mapping_unit.0 * u64::from(layout.regions);
        match size.0 {
            0 => 0,
            size => ((size + bytes / 2) / bytes).max(1),
        }
    }

    /// Superblocks in each region of the static part.
    pub(super) fn set_aside(&self, layout: &Layout) -> Result<u32> {
        let Some(slc) = self.slc_cache()? else { return Ok(0) };
        let superblocks = self.slc_superblocks(layout, slc.static_size);
        let all = u64::from(layout.superblocks).saturating_add(superblocks);
        let stripes = u64::from(layout.regions) * u64::from(layout.units_per_superblock());
        if all.saturating_mul(stripes) >= u64::from(u32::MAX) {
            let message = format!(
                "found {}, expected less: with it the drive has more than the 2^32 units that it can \
                 have; or take a larger ftl.mapping_unit",
                slc.static_size
            );
            return Err(refused("static_size", message));
        }
        Ok(superblocks as u32)
    }

    /// What the translation layer is told of the cache.
    pub(super) fn slc_settings(&self, layout: &Layout) -> Result<Option<SlcSettings>> {
        Ok(self.slc_cache()?.map(|slc| SlcSettings {
            bits: self.nand.bits_per_cell,
            dynamic: self.slc_superblocks(layout, slc.dynamic_size).min(u64::from(u32::MAX)) as u32,
            until: slc.dynamic_until,
            when_full: slc.when_full,
        }))
    }
}
