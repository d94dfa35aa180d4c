//! Which requests of a trace are handed out: a part of its time, of its addresses, of its devices.

use super::Request;
use crate::error::{Error, Result};

/// A spatial sample takes whole chunks of this many bytes: what belongs together stays together.
const CHUNK_BYTES: u64 = 1 << 20;

/// See the module; the default takes everything.
#[derive(Clone, Debug, PartialEq)]
pub struct Select {
    /// Begins at this time of the trace, ns.
    pub from_ns: u64,
    /// Ends before this time of the trace, ns.
    pub to_ns: u64,
    /// Share of the addresses, `0 < share <= 1`: all requests of a chunk of 1 MiB, or none.
    ///
    /// Chunks are taken by a hash of their number and device (SHARDS, Waldspurger et al., FAST 2015), so
    /// that two samples of one trace hold the same addresses and a smaller one is part of a larger.
    pub share: f64,
    /// This device alone.
    pub device: Option<u32>,
}

impl Default for Select {
    fn default() -> Self {
        Select { from_ns: 0, to_ns: u64::MAX, share: 1.0, device: None }
    }
}

impl Select {
    pub(super) fn check(&self) -> Result<()> {
        if !(self.share > 0.0 && self.share <= 1.0) {
            let found = self.share.to_string();
            return Err(Error::value(found, "a share above 0 and at most 1").under("share"));
        }
        if self.from_ns >= self.to_ns {
            let found = format!("{} ns to {} ns", self.from_ns, self.to_ns);
            return Err(Error::value(found, "a window that ends after it begins").under("window"));
        }
        Ok(())
    }

    /// Whether this request and all behind it are too late.
    #[inline]
    pub fn is_past(&self, request: &Request) -> bool {
        request.time_ns >= self.to_ns
    }

    /// Whether the request is wanted.
    #[inline]
    pub fn takes(&self, request: &Request) -> bool {
        request.time_ns >= self.from_ns
            && self.device.is_none_or(|device| device == request.device)
            && (self.share >= 1.0 || self.takes_place(request))
    }

    /// What is selected, in words: `of device 1, from 10 s on`.
    pub(super) fn told(&self, end_ns: u64) -> String {
        let seconds = |ns: u64| ns as f64 / 1e9;
        let mut said = Vec::new();
        if let Some(device) = self.device {
            said.push(format!("of device {device}"));
        }
        if self.from_ns > 0 || self.to_ns < u64::MAX {
            let to = if self.to_ns < u64::MAX {
                format!("to {} s", seconds(self.to_ns))
            } else {
                "on".to_string()
            };
            said.push(format!("from {} s {to}", seconds(self.from_ns)));
        }
        if self.share < 1.0 {
            said.push(format!("in {} % of the addresses", 100.0 * self.share));
        }
        let end = if end_ns < self.from_ns {
            format!("; it ends at {} s", seconds(end_ns))
        } else {
            String::new()
        };
        said.join(", ") + &end
    }

    fn takes_place(&self, request: &Request) -> bool {
        let chunk = request.offset / CHUNK_BYTES;
        let hash = place_hash(request.device, chunk);
        (hash >> 11) as f64 / (1u64 << 53) as f64 <= self.share
    }
}

/// A hash of the `number`th chunk or block of a device; of one device, no two have the same. Numbers of devices
/// may take all of their bits (Linux: 12 of the driver and 20 of the device), so that those of devices cannot
/// stand beside those of blocks.
#[inline]
pub(super) fn place_hash(device: u32, number: u64) -> u64 {
    mix(number ^ u64::from(device).wrapping_mul(0x9e37_79b9_7f4a_7c15))
}

/// A hash of 64 bits (the finisher of splitmix64, Steele et al. 2014).
#[inline]
fn mix(value: u64) -> u64 {
    let mut x = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}
