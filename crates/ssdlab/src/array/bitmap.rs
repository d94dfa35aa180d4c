//! The write-intent bitmap, as md keeps one on every member: before a region is written, its bit is
//! set on all of them, and the write waits for that; a bit that was not needed for a while is cleared
//! again (md(4), "bitmap write-intent logging"). Bits that are asked for while the bitmap is being
//! written go together with the next write of it.
//!
//! Modelled is what it costs: a page of 4 KiB to every member, behind the data.

use super::keys::ROW;
use super::{Array, Task};
use crate::contract::Op;
use crate::fleet::HostId;
use crate::persist::{persistent, persistent_enum};
use crate::units::NEVER;

/// Regions at most: the bits of a page.
pub const REGIONS_MAX: u64 = 8 * ROW;

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum Bit {
    #[default]
    Clear,
    /// Waits for the next write of the bitmap.
    Asked,
    /// Is being set.
    Underway,
    Set,
    /// Not used since the last look.
    Idle,
}
persistent_enum!(Bit { Clear, Asked, Underway, Set, Idle });

/// See the module.
pub(super) struct Bitmap {
    region: u64,
    /// Where its page lies on every member.
    offset: u64,
    /// Time between two looks for bits to clear.
    delay: u64,
    bits: Vec<Bit>,
    /// Writes of the host in flight, by region.
    writes: Vec<u32>,
    /// Writes that wait for their bits.
    waiting: Vec<HostId>,
    /// Commands of the page in flight.
    in_flight: u32,
    /// Bits have changed since the page was last sent.
    changed: bool,
    /// Bits that are not clear.
    set: u64,
    /// When bits are looked at.
    pub due: u64,
    pub written: u64,
}
persistent!(Bitmap {
    state { waiting, in_flight, changed, set, due, written }
    parts { bits, writes }
    built { region, offset, delay }
});

impl Bitmap {
    /// All clear, for so many bytes of an array; the page lies at `offset`.
    pub fn new(capacity: u64, region: u64, delay: u64, offset: u64) -> Self {
        let regions = capacity.div_ceil(region) as usize;
        Bitmap {
            region,
            offset,
            delay,
            bits: vec![Bit::Clear; regions],
            writes: vec![0; regions],
            waiting: Vec::new(),
            in_flight: 0,
            changed: false,
            set: 0,
            due: NEVER,
            written: 0,
        }
    }

    /// Bytes that a bit stands for.
    pub fn region(&self) -> u64 {
        self.region
    }

    fn regions(&self, offset: u64, len: u64) -> std::ops::Range<usize> {
        (offset / self.region) as usize..(offset + len).div_ceil(self.region) as usize
    }

    /// Whether the page is being written.
    pub fn is_busy(&self) -> bool {
        self.in_flight > 0
    }

    /// A write begins: asks for its bits; whether all of them are set.
    fn begin(&mut self, offset: u64, len: u64) -> bool {
        let mut ready = true;
        for region in self.regions(offset, len) {
            self.writes[region] += 1;
            match self.bits[region] {
                Bit::Set => {}
                Bit::Idle => self.bits[region] = Bit::Set,
                Bit::Clear => {
                    self.bits[region] = Bit::Asked;
                    self.set += 1;
                    (self.changed, ready) = (true, false);
                }
                Bit::Asked | Bit::Underway => ready = false,
            }
        }
        ready
    }

    fn is_ready(&self, offset: u64, len: u64) -> bool {
        self.regions(offset, len).all(|region| matches!(self.bits[region], Bit::Set | Bit::Idle))
    }

    /// Bytes of the array whose bits are set on the members.
    pub fn dirty(&self) -> impl Iterator<Item = (u64, u64)> {
        let set = |bit: &Bit| matches!(bit, Bit::Set | Bit::Idle | Bit::Underway);
        let regions = (0u64..).zip(&self.bits).filter(move |(_, bit)| set(bit));
        regions.map(|(nth, _)| (nth * self.region, (nth + 1) * self.region))
    }

    /// Power is gone: what was asked for is forgotten, a page on the way counts as written.
    pub fn cut(&mut self) {
        for bit in &mut self.bits {
            match *bit {
                Bit::Underway => *bit = Bit::Set,
                Bit::Asked => {
                    *bit = Bit::Clear;
                    self.set -= 1;
                }
                _ => {}
            }
        }
        self.writes.fill(0);
        self.waiting.clear();
        (self.in_flight, self.changed, self.due) = (0, false, NEVER);
    }

    /// Power is back: bits are looked at again.
    pub fn resume(&mut self, now: u64) {
        self.due = if self.set > 0 { now + self.delay } else { NEVER };
    }

    /// A write has ended.
    pub fn end(&mut self, offset: u64, len: u64) {
        for region in self.regions(offset, len) {
            self.writes[region] -= 1;
        }
    }
}

impl Array {
    /// Whether a write must wait for the bitmap; it does so then.
    pub(super) fn waits_for_bitmap(&mut self, host: HostId) -> bool {
        let active = &mut self.fleet.hosts[host];
        let command = active.command;
        let Some(bitmap) = &mut self.bitmap else { return false };
        if command.op != Op::Write || std::mem::replace(&mut active.own.marked, true) {
            return false;
        }
        if bitmap.begin(command.offset, command.len) {
            return false;
        }
        bitmap.waiting.push(host);
        self.fleet.hosts[host].remaining += 1;
        self.write_bitmap();
        true
    }

    /// Whether a purge must wait until the page is not on its way to the members: it would be written
    /// into what is being erased. With all erased no bit need be set but those of writes under way.
    pub(super) fn purge_waits_for_bitmap(&mut self, host: HostId) -> bool {
        let Some(bitmap) = &mut self.bitmap else { return false };
        for (bit, _) in
            bitmap.bits.iter_mut().zip(&bitmap.writes).filter(|(_, writes)| **writes == 0)
        {
            bitmap.set -= u64::from(*bit != Bit::Clear);
            *bit = Bit::Clear;
        }
        bitmap.changed = bitmap.bits.contains(&Bit::Asked);
        if bitmap.in_flight == 0 {
            return false;
        }
        bitmap.waiting.push(host);
        self.fleet.hosts[host].remaining += 1;
        true
    }

    /// Sends the page to every member, unless it is on the way.
    fn write_bitmap(&mut self) {
        let Some(bitmap) = &mut self.bitmap else { return };
        if bitmap.in_flight > 0 || !bitmap.changed {
            return;
        }
        bitmap.changed = false;
        bitmap.bits.iter_mut().filter(|b| **b == Bit::Asked).for_each(|b| *b = Bit::Underway);
        bitmap.written += 1;
        if bitmap.due == NEVER {
            bitmap.due = self.fleet.now + bitmap.delay;
        }
        let offset = bitmap.offset;
        let alive = (0..self.seats.len() as u32).filter(|&member| self.alive(member)).count();
        if let Some(bitmap) = &mut self.bitmap {
            bitmap.in_flight = alive as u32;
        }
        for member in 0..self.seats.len() as u32 {
            if self.alive(member) {
                let stamp = self.stamp_blank(ROW);
                let io = self.io(Task::Bitmap(), member, Op::Write, offset, ROW);
                self.send(io, stamp, 0);
            }
        }
        self.plan_timers();
        if alive == 0 {
            self.bitmap_written();
        }
    }

    /// A member has the page, or is gone.
    pub(super) fn bitmap_answered(&mut self) {
        let Some(bitmap) = &mut self.bitmap else { return };
        bitmap.in_flight -= 1;
        if bitmap.in_flight == 0 {
            self.bitmap_written();
        }
    }

    /// The page is on every member: writes that waited for it go on.
    fn bitmap_written(&mut self) {
        let Some(bitmap) = &mut self.bitmap else { return };
        bitmap.bits.iter_mut().filter(|b| **b == Bit::Underway).for_each(|b| *b = Bit::Set);
        let mut waiting = std::mem::take(&mut bitmap.waiting);
        waiting.retain(|&host| {
            let command = self.fleet.hosts[host].command;
            let ready =
                self.bitmap.as_ref().is_none_or(|b| b.is_ready(command.offset, command.len));
            if ready {
                let active = &mut self.fleet.hosts[host];
                active.own.logged = self.fleet.now - active.submitted;
                active.remaining -= 1;
                // A block may be under way by now.
                match self.waits_for_block(host) {
                    true => {}
                    false if command.op == Op::Purge => self.everywhere(host),
                    false => self.begin_write(host),
                }
            }
            !ready
        });
        if let Some(bitmap) = &mut self.bitmap {
            // None came in meanwhile: members answer later.
            waiting.append(&mut bitmap.waiting);
            bitmap.waiting = waiting;
        }
        self.write_bitmap();
    }

    /// Clears the bits that were not needed since the last look.
    pub(super) fn look_at_bitmap(&mut self) {
        let Some(bitmap) = &mut self.bitmap else { return };
        for (bit, writes) in bitmap.bits.iter_mut().zip(&bitmap.writes) {
            match *bit {
                Bit::Set if *writes == 0 => *bit = Bit::Idle,
                Bit::Idle => {
                    *bit = Bit::Clear;
                    bitmap.set -= 1;
                    bitmap.changed = true;
                }
                _ => {}
            }
        }
        bitmap.due = if bitmap.set > 0 { self.fleet.now + bitmap.delay } else { NEVER };
        self.write_bitmap();
    }
}
