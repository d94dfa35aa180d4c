//! What the host asked a device for, counted.

use super::{Command, Op};
use crate::persist::persistent;

/// Commands by kind, and their bytes. A purge counts as nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct HostCounts {
    /// Commands that read.
    pub reads: u64,
    /// Commands that write.
    pub writes: u64,
    /// TRIMs.
    pub trims: u64,
    /// Flushes.
    pub flushes: u64,
    /// Bytes read.
    pub bytes_read: u64,
    /// Bytes written.
    pub bytes_written: u64,
}
persistent!(HostCounts { state { reads, writes, trims, flushes, bytes_read, bytes_written } });

/// Names of [`HostCounts`] that begin with a word: commands by kind, and bytes with a word of their own.
macro_rules! host_counts {
    ($word:literal, $bytes:literal) => {
        [
            concat!($word, "_reads"),
            concat!($word, "_writes"),
            concat!($word, "_trims"),
            concat!($word, "_flushes"),
            concat!($bytes, "_bytes_read"),
            concat!($bytes, "_bytes_written"),
        ]
    };
}
pub(crate) use host_counts;

/// Names of the counters of a device that ends a stack: reads, writes, TRIMs, flushes, bytes read and written.
pub const HOST: [&str; 6] = host_counts!("host", "host");

impl HostCounts {
    /// Counts a command.
    #[inline]
    pub fn count(&mut self, command: &Command) {
        match command.op {
            Op::Read => {
                self.reads += 1;
                self.bytes_read += command.len;
            }
            Op::Write => {
                self.writes += 1;
                self.bytes_written += command.len;
            }
            Op::Trim => self.trims += 1,
            Op::Flush => self.flushes += 1,
            Op::Purge => {}
        }
    }

    /// Shows the counters under these names, in the order of [`HOST`].
    pub fn visit(&self, names: [&'static str; 6], visit: &mut dyn FnMut(&'static str, u64)) {
        let Self { reads, writes, trims, flushes, bytes_read, bytes_written } = *self;
        let values = [reads, writes, trims, flushes, bytes_read, bytes_written];
        names.into_iter().zip(values).for_each(|(name, value)| visit(name, value));
    }
}

/// What losses of power have cost a device that ends a stack.
#[derive(Clone, Copy, Debug, Default)]
pub struct PowerCounts {
    /// Losses of power.
    pub losses: u64,
    /// Commands in flight, which were never answered.
    pub commands_cut: u64,
    /// Of those, writes of which a part arrived.
    pub commands_torn: u64,
    /// Bytes that volatile memory held of what was written, and lost.
    pub lost_bytes: u64,
    /// Time until the device was ready again, ns.
    pub startup_ns: u64,
}
persistent!(PowerCounts { state { losses, commands_cut, commands_torn, lost_bytes, startup_ns } });

impl PowerCounts {
    /// A write of so many sectors is cut after `landed` of them.
    pub fn cut_write(&mut self, landed: u64, sectors: u64) {
        self.commands_torn += u64::from(landed > 0 && landed < sectors);
    }

    /// Shows the counters of a device that has lost power.
    pub fn visit(&self, visit: &mut dyn FnMut(&'static str, u64)) {
        if self.losses > 0 {
            visit("power_losses", self.losses);
            visit("power_commands_cut", self.commands_cut);
            visit("power_commands_torn", self.commands_torn);
            visit("power_lost_bytes", self.lost_bytes);
            visit("power_startup_ns", self.startup_ns);
        }
    }
}
