//! What is counted of the I/Os of one direction over some time.

use super::histogram::Histogram;
use super::{PartSums, Parts, Summary};

/// Counts of one direction: how many, how much, how long, and where the time went.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Bytes moved.
    pub bytes: u64,
    /// Latencies, ns.
    pub lat: Summary,
    /// Latencies by fio's bins.
    pub bins: Histogram,
    /// Time by part, ns.
    pub parts: PartSums,
}

impl Tally {
    /// Takes one I/O of `bytes` that took `lat_ns`, whose bin is `bin`, and adds its parts to `row` as well.
    #[inline(always)]
    pub fn add(&mut self, bytes: u64, lat_ns: u64, bin: usize, parts: &Parts, row: &mut PartSums) {
        self.bytes += bytes;
        self.lat.add(lat_ns);
        self.bins.add(bin);
        self.parts.add_to_both(row, parts);
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
        self.parts.merge(&other.parts);
    }
    /// Forgets everything.
    pub fn clear(&mut self) {
        if self.ios() > 0 {
            self.bytes = 0;
            self.lat = Summary::default();
            self.bins.clear();
            self.parts = PartSums::default();
        }
    }
}
