//! Units of one page are read together, wherever they stand in a command.

use super::Ssd;
use super::engine::Engine;
use crate::device::{Distance, Op};
use crate::ftl::{Layout, Sink};
use crate::nand::{FastDiv, NONE};
use crate::persist::persistent;

/// Whether all of the logical unit that is `length` from `ppn` on is still in the controller's RAM.
#[inline]
pub(super) fn is_in_ram(layout: &Layout, engine: &Engine, ppn: u32, length: u32) -> bool {
    // What goes into one program unit leaves RAM together.
    let whole = || layout.program_units(ppn, length).all(|(ppn, _)| engine.in_ram(ppn));
    engine.in_ram(ppn) && (length == 1 || whole())
}

/// The parts of the same by the pages that they are read from: first unit and number of each.
pub(super) fn pages(
    layout: Layout,
    by_read: FastDiv,
    ppn: u32,
    length: u32,
) -> impl Iterator<Item = (u32, u32)> {
    let parts = layout.program_units(ppn, length);
    parts.flat_map(move |(ppn, units)| by_read.cut(ppn, units))
}

/// A read of a page (or of that page of every plane) queued just now.
#[derive(Clone, Copy, Debug, Default)]
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

impl Ssd {
    /// A unit will be read or written.
    #[inline]
    pub(super) fn expect_unit(&self, op: Op, lpn: u32, ahead: Distance) {
        if ahead == Distance::Far {
            return self.ftl.expect(lpn);
        }
        let ppn = self.ftl.lookup(lpn);
        match op {
            _ if ppn == NONE => {}
            Op::Read => self.engine.expect(ppn),
            _ => self.ftl.expect_old(ppn),
        }
    }
}

persistent!(PageReads { state { serial, pages } });
persistent!(PageRead { state { group, fetch, op, owner } });

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
