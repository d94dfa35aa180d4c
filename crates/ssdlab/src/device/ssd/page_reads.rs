//! Units of one page are read together, wherever they stand in a command.

/// A read of a page (or of that page of every plane) queued just now.
#[derive(Clone, Copy, Debug)]
pub(super) struct PageRead {
    /// Page, or page of every plane: what one sense operation brings.
    pub group: u32,
    /// The fetch of map entries that it waits for.
    pub fetch: u32,
    /// The flash operation.
    pub op: u32,
    /// On whose behalf, as the flash will say.
    pub owner: u32,
}

/// The reads of one die queued for one command, so that all its units in a page share one.
#[derive(Clone, Debug, Default)]
pub(super) struct PageReads {
    serial: u64,
    pub pages: Vec<PageRead>,
}

impl PageReads {
    /// The read of the page `group` queued for command `serial`, waiting for the same `fetch`. Forgets those of others.
    #[inline]
    pub fn find(&mut self, serial: u64, group: u32, fetch: u32) -> Option<PageRead> {
        if self.serial != serial {
            self.serial = serial;
            self.pages.clear();
            return None;
        }
        // Neighbours mostly ask for the page queued last.
        self.pages.iter().rev().find(|p| p.group == group && p.fetch == fetch).copied()
    }
}
