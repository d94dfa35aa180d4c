//! The device contract.
//!
//! A device is a state machine without a clock. Virtual time drives it in an experiment; nothing
//! in it reads a clock, sleeps, prints or draws randomness except from a labelled stream.
//!
//! What every device promises (the law tests run over every device and stack of devices):
//! each command completes exactly once, not before it was submitted; completions come in time
//! order; the parts of a completion add up to its latency.

mod built;
mod counts;
mod drawing;
mod missed;

pub use built::Built;
pub(crate) use counts::host_counts;
pub use counts::{HOST, HostCounts, PowerCounts};
pub use drawing::Drawing;
pub use missed::Missed;

use crate::persist::{Persist, persistent, persistent_enum};
use crate::rng::Stream;
use crate::stats::Parts;

/// What a command asks for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Hash)]
pub enum Op {
    /// Read `len` bytes at `offset`.
    #[default]
    Read,
    /// Write `len` bytes at `offset`.
    Write,
    /// Deallocate the device's mapping units that lie wholly within `len` bytes at `offset`; later
    /// reads of those answer zeros. Parts of units keep their content.
    Trim,
    /// Completes when everything that was completed before is safe from power loss.
    Flush,
    /// Erase everything: back to the state fresh out of the box (offset and length are ignored).
    Purge,
}

/// Bytes per sector: the unit of addresses; offsets and lengths are multiples of it.
pub const SECTOR: u64 = 512;

/// One request to a device.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Command {
    /// Chosen by the submitter, handed back in the completion; unique among those in flight.
    pub tag: u64,
    /// What is asked for.
    pub op: Op,
    /// First byte; a multiple of [`SECTOR`].
    pub offset: u64,
    /// Bytes; a multiple of [`SECTOR`].
    pub len: u64,
    /// How much the written data would shrink, in percent (fio's `buffer_compress_percentage`).
    pub compressible: u8,
    /// Version of what is written, for tests: sector `i` of a write holds `stamp + i`. 0 in runs.
    pub stamp: u64,
    /// Which process of the host submits it, from 1; 0 where none does, as within an array.
    pub process: u32,
}

/// The end of a command.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Completion {
    /// The command's tag.
    pub tag: u64,
    /// When it completed.
    pub time: u64,
    /// Where the time between submission and completion went; adds up to it.
    pub parts: Parts,
    /// Sum over the sectors read of [`mix`]`(content, sector index in the command)`; 0 unless the
    /// device was built to keep versions.
    pub digest: u64,
}

persistent_enum!(Op { Read, Write, Trim, Flush, Purge });
persistent!(Command { state { tag, op, offset, len, compressible, stamp, process } });
persistent!(Completion { state { tag, time, parts, digest } });

/// Moves what has completed to those who asked for it.
#[inline]
pub(crate) fn hand_over(ready: &mut Vec<Completion>, done: &mut Vec<Completion>) {
    if done.is_empty() {
        std::mem::swap(done, ready);
    } else {
        done.append(ready);
    }
}

/// Contribution of one sector to a read's digest: content and position both matter.
#[inline]
pub fn mix(content: u64, index: u64) -> u64 {
    let x = (content ^ index.rotate_left(32)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (x ^ (x >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9)
}

/// The part of a read's digest that comes from these sectors, of which the first has index `first` in the command.
pub fn digest(first: u64, contents: impl Iterator<Item = u64>) -> u64 {
    contents.zip(first..).fold(0, |sum: u64, (content, i)| sum.wrapping_add(mix(content, i)))
}

/// How soon an expected command will come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Distance {
    /// After some more that were or will be expected: what says where its data lies will be needed.
    Far,
    /// It was expected before, and is one of the next: what is known of where its data lies will be needed.
    Near,
}

/// A storage device in virtual time.
///
/// All of its state can be saved, with commands in flight too, and loaded into a device built the
/// same way ([`Persist`]), which then goes on as this one would.
pub trait Device: Persist + Send {
    /// The kind's name in the registry.
    fn kind(&self) -> &'static str;

    /// Bytes that the host can address.
    fn capacity(&self) -> u64;

    /// Takes a command at `now`, which is not before any instant seen so far. The device queues
    /// as much as it is given. The command lies within the capacity and is not empty, except for
    /// `Flush` and `Purge`.
    fn submit(&mut self, now: u64, command: Command);

    /// A command for what lies at `offset` will come: a hint for the caches of the machine that simulates, which
    /// changes nothing of what is simulated.
    #[inline]
    fn expect(&self, op: Op, offset: u64, ahead: Distance) {
        let _ = (op, offset, ahead);
    }

    /// Whether such hints are of any use: one of the devices that it is made of looks things up in large tables.
    fn heeds_hints(&self) -> bool {
        self.children().iter().any(|(_, child)| child.heeds_hints())
    }

    /// The earliest instant at which the device would change by itself; [`crate::units::NEVER`] if none.
    fn next_event(&self) -> u64;

    /// Moves on to the first instant at which something completes, or to `limit` if that is
    /// earlier; appends what completed then (all of one instant) and returns the instant.
    fn advance(&mut self, limit: u64, done: &mut Vec<Completion>) -> u64;

    /// [`Device::advance`], and then [`Device::next_event`]: for who moves many devices in turn, in
    /// one call.
    #[inline]
    fn proceed(&mut self, limit: u64, done: &mut Vec<Completion>) -> u64 {
        self.advance(limit, done);
        self.next_event()
    }

    /// Its counters will be read at `now`, when all that was due by then has happened: what it counts later than it
    /// happens is counted. Its next event may be another one then.
    fn take_stock(&mut self, now: u64) {
        let _ = now;
    }

    /// Brings what the device still does by itself to an end, from `now` on, and begins nothing new:
    /// writes behind a buffer, a collection under way, not the next one. Answers when that was done:
    /// `now` if nothing was. No command may be in flight. The quiet time before idle work
    /// begins counts from there.
    fn settle(&mut self, now: u64) -> u64;

    /// Power goes at `now`, when all that was due by then has happened. Commands in flight are never
    /// answered and may have been done in part, what was volatile is gone, what is durable stays. Answers the
    /// earliest instant at which it may answer a command again; those that it is given before wait. What of the
    /// writes in flight has not arrived goes to `missed`.
    fn power_cut(&mut self, now: u64, missed: &mut Missed) -> u64;

    /// Whether writes that it has answered may be lost with the power until a flush.
    fn is_volatile(&self) -> bool {
        false
    }

    /// Does at once, in no time, what the command would leave behind: the untimed path for
    /// preconditioning. Nothing may be in flight, and a device that has worked in time has been
    /// settled.
    fn apply(&mut self, command: &Command);

    /// Brings a device that was never written into the state that aligned random writes of so many bytes lead to,
    /// without writing as much; as on the untimed path nothing is under way. Answers `false`, having done nothing,
    /// where that state has to be written; where it was stopped the device is empty.
    fn draw_steady(&mut self, write_bytes: u64, drawing: &mut Drawing<'_>) -> bool {
        let _ = (write_bytes, drawing);
        false
    }

    /// Whether a read or a write would go to one drive as one command, and nothing else would be done for it: what a RAID
    /// card need not show its firmware. A drive takes all of them so.
    fn fast_path(&self, command: &Command) -> bool {
        let _ = command;
        true
    }

    /// Commands that its drives were given in time so far; `None` of a drive, whose commands are counted by who gives them.
    fn drive_commands(&self) -> Option<u64> {
        None
    }

    /// Version of the sector at `offset`, as a read that begins now answers it; 0 unless the device
    /// was built to keep versions. For devices made of devices, which must know it in tests.
    fn content(&self, offset: u64) -> u64 {
        let _ = offset;
        0
    }

    /// Reports every counter of this device (not of its parts): name and value so far.
    fn counters(&self, visit: &mut dyn FnMut(&'static str, u64));

    /// What was built of this device (not of its parts); `None` without flash.
    fn built(&self) -> Option<Built> {
        None
    }

    /// The devices this one is made of, with the name of each place.
    fn children(&self) -> Vec<(String, &dyn Device)> {
        Vec::new()
    }

    /// Asserts that the device's own bookkeeping agrees with itself, in all its parts. For tests:
    /// it may look at every unit of flash.
    fn verify(&self) {
        for (_, child) in self.children() {
            child.verify();
        }
    }
}

/// What a device needs while it is built, besides its own keys.
pub struct Build {
    /// The run's seed; a device derives labelled streams from it.
    pub seed: u64,
    /// Keep versions of all content, for tests.
    pub keep_versions: bool,
    /// Dotted path of the device in the rig: the label of its streams and of its errors.
    pub path: String,
}

impl Build {
    /// The stream `label` of this device.
    pub fn stream(&self, label: &str) -> Stream {
        Stream::new(self.seed, &format!("{}/{label}", self.path))
    }
}
