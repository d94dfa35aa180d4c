//! The steady state of random writes at once.

use super::Ssd;
use crate::contract::Drawing;

impl Ssd {
    /// See [`crate::device::Device::draw_steady`]; each write is counted as one of its own.
    pub(super) fn draw_steady_map(&mut self, write_bytes: u64, drawing: &mut Drawing<'_>) -> bool {
        if write_bytes != self.unit_bytes {
            return false;
        }
        let before = self.engine.untimed;
        let pads = self.buffer.is_none();
        let drawn = self.ftl.draw_steady(drawing, pads, &mut self.engine.untimed());
        let Some(times) = drawn else { return false };
        let (ftl, flash) = (&self.ftl, &mut self.engine.untimed);
        // What the model read, and what the drive programmed and erased.
        let more = |now: u64, before: u64| before + ((now - before) as f64 * times).round() as u64;
        flash.reads = more(flash.reads, before.reads);
        flash.units_read = more(flash.units_read, before.units_read);
        let c = &ftl.counters;
        let programmed = c.programs_host + c.programs_collection + c.programs_padding;
        let programmed = programmed + c.programs_parity - ftl.open_units();
        flash.units_programmed = before.units_programmed + programmed;
        flash.programs = before.programs + programmed / u64::from(ftl.layout.units_per_program());
        flash.erases = before.erases + c.superblocks_erased * u64::from(ftl.layout.dies_per_region);
        self.host.writes += c.host_units_written;
        self.host.bytes_written += c.host_units_written * self.unit_bytes;
        true
    }
}
