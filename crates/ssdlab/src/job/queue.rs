//! How the I/Os of a process go to the device and come back.

use super::{size, values};
use crate::error::{Error, Result};

/// How I/Os are handed to the device and taken back, by fio's options.
#[derive(Clone, Debug, PartialEq)]
pub struct Queue {
    /// A write is done when it is durable (`sync`).
    pub durable_writes: bool,
    /// I/Os handed over at once (`iodepth_batch`); 0: as many as the depth.
    pub submit: u32,
    /// I/Os taken back at once at least (`iodepth_batch_complete_min`).
    pub complete_min: u32,
    /// The same at most; below the least: as many as that.
    pub complete_max: u32,
    /// A full queue is filled again once so few are in flight (`iodepth_low`); 0: at once.
    pub low: u32,
    /// An I/O waits for those of its process in flight that it overlaps (`serialize_overlap`).
    pub serialize_overlap: bool,
}

impl Default for Queue {
    fn default() -> Self {
        Queue {
            durable_writes: false,
            submit: 1,
            complete_min: 1,
            complete_max: 0,
            low: 0,
            serialize_overlap: false,
        }
    }
}

impl Queue {
    /// Reads an option; whether it is one of these.
    pub(super) fn option(&mut self, name: &str, value: &str, base: u64) -> Result<bool> {
        let number = || {
            let n = size::bytes(value, base)?;
            u32::try_from(n).map_err(|_| Error::value(value, "a number below 2^32"))
        };
        match name {
            "sync" => {
                let known = ["none", "0", "sync", "1", "dsync"];
                self.durable_writes = values::choice(value, &known)? > 1;
            }
            "iodepth_batch" => self.submit = number()?,
            "iodepth_batch_complete_min" => self.complete_min = number()?,
            "iodepth_batch_complete_max" => self.complete_max = number()?,
            "iodepth_low" => self.low = number()?,
            "serialize_overlap" => self.serialize_overlap = value != "0",
            _ => return Ok(false),
        }
        Ok(true)
    }
}
