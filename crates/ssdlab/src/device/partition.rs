//! A slice of another device. What is never written outside it acts as spare in the device below.

use super::{Command, Completion, Device, Distance, Missed, Op, SECTOR};
use crate::error::{Error, Result};
use crate::persist::persistent;
use crate::units::Bytes;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a rig says about a partition.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PartitionKeys {
    /// Where it begins in the device below.
    #[serde(default)]
    pub offset: Bytes,
    /// Its size; absent: to the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub size: Option<Bytes>,
}

/// A slice of a device.
pub struct Partition {
    below: Box<dyn Device>,
    offset: u64,
    size: u64,
}

persistent!(Partition { state { below } built { offset, size } });

impl Partition {
    /// A slice of `below`.
    pub fn new(keys: &PartitionKeys, below: Box<dyn Device>) -> Result<Self> {
        let whole = below.capacity();
        let offset = keys.offset.0;
        let size = keys.size.map_or(whole.saturating_sub(offset), |s| s.0);
        for (key, value) in [("offset", offset), ("size", size)] {
            if !value.is_multiple_of(SECTOR) {
                let found = Bytes(value);
                return Err(Error::rig(
                    key,
                    format!("found {found}, expected whole sectors of 512 B"),
                ));
            }
        }
        if size == 0 || offset.checked_add(size).is_none_or(|end| end > whole) {
            return Err(Error::rig(
                "size",
                format!(
                    "offset {} and size {} do not fit the device below, which has {}",
                    Bytes(offset),
                    Bytes(size),
                    Bytes(whole)
                ),
            ));
        }
        Ok(Partition { below, offset, size })
    }

    /// The command as the device below sees it. A partition cannot purge the device: its purge
    /// deallocates its own range.
    fn translate(&self, command: &Command) -> Command {
        let mut inner = *command;
        if command.op == Op::Purge {
            inner.op = Op::Trim;
            inner.offset = 0;
            inner.len = self.size;
        }
        if inner.op != Op::Flush {
            inner.offset += self.offset;
        }
        inner
    }
}

impl Device for Partition {
    fn kind(&self) -> &'static str {
        "partition"
    }
    fn capacity(&self) -> u64 {
        self.size
    }
    fn submit(&mut self, now: u64, command: Command) {
        let inner = self.translate(&command);
        self.below.submit(now, inner);
    }
    fn expect(&self, op: Op, offset: u64, ahead: Distance) {
        self.below.expect(op, self.offset + offset, ahead);
    }
    fn next_event(&self) -> u64 {
        self.below.next_event()
    }
    fn advance(&mut self, limit: u64, done: &mut Vec<Completion>) -> u64 {
        self.below.advance(limit, done)
    }
    fn take_stock(&mut self, now: u64) {
        self.below.take_stock(now);
    }
    fn settle(&mut self, now: u64) -> u64 {
        self.below.settle(now)
    }
    fn power_cut(&mut self, now: u64, missed: &mut Missed) -> u64 {
        let mut below = Missed::default();
        let ready = self.below.power_cut(now, &mut below);
        missed.append(below.behind(self.offset));
        ready
    }
    fn is_volatile(&self) -> bool {
        self.below.is_volatile()
    }
    fn fast_path(&self, command: &Command) -> bool {
        self.below.fast_path(&self.translate(command))
    }
    fn drive_commands(&self) -> Option<u64> {
        self.below.drive_commands()
    }
    fn apply(&mut self, command: &Command) {
        let inner = self.translate(command);
        self.below.apply(&inner);
    }
    fn content(&self, offset: u64) -> u64 {
        self.below.content(self.offset + offset)
    }
    fn counters(&self, _visit: &mut dyn FnMut(&'static str, u64)) {}
    fn children(&self) -> Vec<(String, &dyn Device)> {
        vec![("below".into(), &*self.below)]
    }
}
