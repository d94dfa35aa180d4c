//! What is counted of the I/Os of one direction over some time.

use super::Summary;
use super::histogram::Histogram;

/// Counts of one direction: how many, how much, how long. Where the time went is for [`Attribution`](super::Attribution).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Bytes moved.
    pub bytes: u64,
    /// Latencies, ns.
    pub lat: Summary,
    /// Latencies by fio's bins.
    pub bins: Histogram,
}

impl Tally {
    /// Takes one I/O of `bytes` that took `lat_ns`, whose bin is `bin`.
    #[inline(always)]
    pub fn add(&mut self, bytes: u64, lat_ns: u64, bin: usize) {
        self.bytes += bytes;
        self.lat.add(lat_ns);
        self.bins.add(bin);
    }
    /// I/Os counted.
    pub fn ios(&self) -> u64 {
        self.lat.count()
    }
    /// Adds the counts of `other`.
    pub fn merge(&mut self, other: &Tally) {
        if other.ios() == 0 {
            return;
        }
        self.bytes += other.bytes;
        self.lat.merge(&other.lat);
        self.bins.merge(&other.bins);
    }
    /// Forgets everything.
    pub fn clear(&mut self) {
        if self.ios() > 0 {
            self.bytes = 0;
            self.lat = Summary::default();
            self.bins.clear();
        }
    }
}
