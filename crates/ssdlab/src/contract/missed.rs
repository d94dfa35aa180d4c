//! What a loss of power has kept from arriving.

use super::{Command, Op, SECTOR};

/// Bytes of writes in flight that are not there after a loss of power. What holds redundant data of several devices must
/// know it to say what no longer agrees.
#[derive(Clone, Debug, Default)]
pub struct Missed {
    /// From each to before its end, in no order.
    ranges: Vec<(u64, u64)>,
    unknown: bool,
}

impl Missed {
    /// A write has not arrived from byte `landed` of it on; nothing is noted of other commands.
    pub fn write(&mut self, command: &Command, landed: u64) {
        if command.op == Op::Write && landed < command.len {
            self.ranges.push((command.offset + landed, command.offset + command.len));
        }
    }

    /// A write has not arrived from sector `landed` of it on.
    pub fn write_from(&mut self, command: &Command, landed: u64) {
        self.write(command, landed * SECTOR);
    }

    /// These bytes hold what they held before.
    pub fn range(&mut self, offset: u64, len: u64) {
        self.ranges.push((offset, offset + len));
    }

    /// The device cannot tell.
    pub fn cannot_tell(&mut self) {
        self.unknown = true;
    }

    /// Whether the device can tell.
    pub fn is_known(&self) -> bool {
        !self.unknown
    }

    /// The ranges.
    pub fn ranges(&self) -> &[(u64, u64)] {
        &self.ranges
    }

    /// Whether something of `from..to` has not arrived.
    pub fn touches(&self, from: u64, to: u64) -> bool {
        self.ranges.iter().any(|&(begin, end)| begin < to && from < end)
    }

    /// The same of a device that begins `offset` into this one.
    pub fn behind(self, offset: u64) -> Self {
        let behind =
            |(from, to): (u64, u64)| (from.saturating_sub(offset), to.saturating_sub(offset));
        Missed { ranges: self.ranges.into_iter().map(behind).collect(), ..self }
    }

    /// Takes over what another device knows.
    pub fn append(&mut self, mut other: Missed) {
        self.ranges.append(&mut other.ranges);
        self.unknown |= other.unknown;
    }
}
