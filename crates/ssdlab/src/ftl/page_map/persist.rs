//! What of the page map is state.

use super::PageMap;
use crate::error::Result;
use crate::nand::NONE;
use crate::persist::{Archive, Part, Persist};

impl Persist for PageMap {
    fn persist(&mut self, archive: &mut Archive<'_>) -> Result<()> {
        let Self {
            layout: _,
            blocks,
            counters,
            settings: _,
            mapping,
            map,
            owner,
            valid,
            regions,
            partial,
            free,
            batches,
            victim,
            wear,
            placement,
            cache,
            last_region,
            last_length,
            packing,
            region_limit: _,
            sectors_per_unit: _,
            open,
            content,
        } = self;
        blocks.persist(archive)?;
        counters.persist(archive)?;
        mapping.persist(archive)?;
        map.persist_part(archive)?;
        valid.persist_part(archive)?;
        regions.persist_part(archive)?;
        free.persist(archive)?;
        batches.persist_part(archive)?;
        victim.persist(archive)?;
        wear.persist_part(archive)?;
        placement.persist(archive)?;
        cache.persist_part(archive)?;
        last_region.persist(archive)?;
        last_length.persist(archive)?;
        packing.persist(archive)?;
        open.persist(archive)?;
        content.persist_part(archive)?;
        if archive.loads() {
            // Half of the state, were it stored; of units that hold nothing nobody asks.
            for (lpn, &ppn) in map.iter().enumerate().filter(|&(_, &ppn)| ppn != NONE) {
                owner[ppn as usize] = lpn as u32;
            }
            // Those that have none are passed over.
            partial.fill(u64::MAX);
        }
        Ok(())
    }
}
