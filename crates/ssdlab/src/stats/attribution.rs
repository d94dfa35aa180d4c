//! Where the time of requests went, by how long they took.
//!
//! A table of coarse latency bins (16 of fio's bins to a row: a quarter of a power of two) with the
//! parts summed in each. Cut at any latency, it says where the time of the requests beyond went.

use super::histogram::{BINS, lower_bound_ns};
use super::{PARTS, PartSums, Parts};

/// fio bins per row, as a shift.
const ROW_SHIFT: usize = 4;
/// Rows of the table.
pub const ROWS: usize = BINS >> ROW_SHIFT;

/// One row: the requests whose latency lay below `upper_ns` and not below the row before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Row {
    /// Requests.
    pub ios: u64,
    /// Their time by part, ns.
    pub parts: PartSums,
}

impl Row {
    /// Adds the requests of `other`.
    pub fn merge(&mut self, other: &Row) {
        self.ios += other.ios;
        self.parts.merge(&other.parts);
    }
}

/// Upper latency of the row of that index, ns.
pub fn upper_ns(index: u16) -> u64 {
    lower_bound_ns((usize::from(index) + 1) << ROW_SHIFT)
}

/// The table for one direction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attribution {
    rows: Box<[Row; ROWS]>,
}

impl Default for Attribution {
    fn default() -> Self {
        Attribution { rows: Box::new([Row::default(); ROWS]) }
    }
}

impl Attribution {
    /// Adds a request by the fio bin of its latency.
    #[inline]
    pub fn add(&mut self, bin: usize, parts: &Parts) {
        let row = &mut self.rows[bin >> ROW_SHIFT];
        row.ios += 1;
        row.parts.add(parts);
    }
    /// Adds the requests of `other`.
    pub fn merge(&mut self, other: &Attribution) {
        self.rows.iter_mut().zip(other.rows.iter()).for_each(|(row, others)| row.merge(others));
    }
    /// Adds requests of one row.
    pub fn merge_row(&mut self, index: u16, others: &Row) {
        self.rows[usize::from(index)].merge(others);
    }
    /// The rows that hold requests, each with its index, ascending; forgets them.
    pub fn take(&mut self) -> Vec<(u16, Row)> {
        let rows = self.rows.iter_mut().enumerate().filter(|(_, row)| row.ios > 0);
        rows.map(|(index, row)| (index as u16, std::mem::take(row))).collect()
    }
    /// All requests together, ns by part.
    pub fn total(&self) -> [u64; PARTS] {
        let mut total = PartSums::default();
        self.rows.iter().for_each(|row| total.merge(&row.parts));
        total.0
    }
    /// The rows that hold requests, each with its upper latency in ns.
    pub fn rows(&self) -> impl Iterator<Item = (u64, &Row)> {
        let rows = self.rows.iter().enumerate().filter(|(_, row)| row.ios > 0);
        rows.map(|(index, row)| (upper_ns(index as u16), row))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::{Part, bin_of};

    #[test]
    fn slow_requests_can_be_told_from_fast_ones() {
        let mut table = Attribution::default();
        for (latency, part) in [(100_000, Part::Cells), (100_000, Part::Cells)] {
            table.add(bin_of(latency), &Parts::only(part, latency));
        }
        let slow = Parts::only(Part::DieCollection, 5_000_000);
        table.add(bin_of(5_000_000), &slow);

        let rows: Vec<_> = table.rows().collect();
        assert_eq!(rows.len(), 2);
        assert!(rows[0].0 > 100_000 && rows[0].0 <= 114_688, "{}", rows[0].0);
        assert_eq!((rows[0].1.ios, rows[1].1.ios), (2, 1));
        assert_eq!(rows[1].1.parts[Part::DieCollection], 5_000_000);
        assert_eq!(table.total().iter().sum::<u64>(), 5_200_000);
    }
}
