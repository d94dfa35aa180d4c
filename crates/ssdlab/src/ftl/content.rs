//! What units hold, in tests: the version of each sector, which moves as the data does.

use super::page_map::{PageMap, UnitWrite};
use crate::nand::NONE;

impl PageMap {
    /// Content of a sector of a logical unit (0: never written), where versions are kept.
    pub fn content(&self, lpn: u32, sector: u32) -> u64 {
        let ppn = self.lookup(lpn);
        match &self.content {
            Some(content) if ppn != NONE => {
                content[ppn as usize * self.sectors_per_unit as usize + sector as usize]
            }
            _ => 0,
        }
    }

    /// Records the versions of a unit just written.
    pub(super) fn stamp(&mut self, ppn: u32, write: UnitWrite, kept: Option<Vec<u64>>) {
        let n = self.sectors_per_unit as usize;
        let Some(content) = &mut self.content else { return };
        let unit = &mut content[ppn as usize * n..][..n];
        match kept {
            Some(old) => unit.copy_from_slice(&old),
            None => unit.fill(0),
        }
        let first = write.first_sector as usize;
        for (i, sector) in unit[first..first + write.sectors as usize].iter_mut().enumerate() {
            *sector = write.stamp + i as u64;
        }
    }

    /// The unit at `to` is a copy of the one at `from`, where versions are kept.
    #[inline]
    pub(super) fn copy_content(&mut self, from: u32, to: u32) {
        let n = self.sectors_per_unit as usize;
        if let Some(content) = &mut self.content {
            content.copy_within(from as usize * n..(from as usize + 1) * n, to as usize * n);
        }
    }

    /// The unit at `ppn` holds zeros, where versions are kept.
    pub(super) fn clear_content(&mut self, ppn: u32) {
        let n = self.sectors_per_unit as usize;
        if let Some(content) = &mut self.content {
            content[ppn as usize * n..][..n].fill(0);
        }
    }
}
