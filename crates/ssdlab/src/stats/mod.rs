//! What is counted while devices run: where time goes, latency histograms, series.

mod attribution;
mod histogram;
mod parts;
mod segments;
mod series;
mod summary;
mod tally;

pub use attribution::{Attribution, ROWS as ATTRIBUTION_ROWS, Row as AttributionRow};
pub use histogram::{BINS, Histogram, bin_of, lower_bound_ns, percentiles_of, value_ns};
pub use parts::{PART_NAMES, PARTS, Part, PartSums, Parts};
pub use segments::{KINDS, Latencies, Segments};
pub use series::{DIRECTIONS, Series};
pub use summary::Summary;
pub use tally::Tally;
