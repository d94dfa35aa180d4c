//! Latency histogram in fio's bins.
//!
//! 64 linear bins below 64 ns, then 64 per power of two: a value is known to 1/128 of itself.
//! Reference: fio's `stat.h` (PLAT_BITS 6, 29 groups), as its JSON+ output and `clat_hist` logs
//! show them. O(1) per value, 14.5 KiB.

/// Number of bins.
pub const BINS: usize = 29 * 64;

/// The bin of a latency of `ns`.
#[inline]
pub fn bin_of(ns: u64) -> usize {
    let msb = 63 - (ns | 1).leading_zeros();
    if msb <= 6 {
        return ns as usize;
    }
    let shift = msb - 6;
    let bin = ((shift as usize + 1) << 6) + ((ns >> shift) & 63) as usize;
    bin.min(BINS - 1)
}

/// The first latency that falls into `bin`, in ns; for `bin == BINS` the end of the last.
pub fn lower_bound_ns(bin: usize) -> u64 {
    if bin < 128 {
        return bin as u64;
    }
    let shift = (bin >> 6) - 1;
    (64 + (bin as u64 & 63)) << shift
}

/// The latency that stands for `bin` in results: its middle, in ns.
pub fn value_ns(bin: usize) -> u64 {
    if bin < 128 {
        return bin as u64;
    }
    let shift = (bin >> 6) - 1;
    lower_bound_ns(bin) + (1u64 << shift) / 2
}

/// Counts of latencies by bin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Histogram {
    counts: Box<[u64; BINS]>,
}

impl Default for Histogram {
    fn default() -> Self {
        Histogram { counts: Box::new([0; BINS]) }
    }
}

impl Histogram {
    /// Counts one value of `bin`.
    #[inline]
    pub fn add(&mut self, bin: usize) {
        self.counts[bin] += 1;
    }
    /// Counts by bin.
    pub fn counts(&self) -> &[u64; BINS] {
        &self.counts
    }
    /// All values counted.
    pub fn total(&self) -> u64 {
        self.counts.iter().sum()
    }
    /// Adds the counts of `other`.
    pub fn merge(&mut self, other: &Histogram) {
        for (a, b) in self.counts.iter_mut().zip(other.counts.iter()) {
            *a += b;
        }
    }
    /// Forgets everything.
    pub fn clear(&mut self) {
        self.counts.fill(0);
    }
    /// The percentiles of `list` (percent, ascending) as fio computes them: the value of the
    /// first bin at which at least that share has been counted. Empty without any value.
    pub fn percentiles(&self, list: &[f64]) -> Vec<u64> {
        percentiles_of(self.counted(), self.total(), list)
    }
    /// Values of the bins that hold any, in ns, ascending, and their counts.
    pub fn counted(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        let counts = self.counts.iter().enumerate().filter(|(_, count)| **count > 0);
        counts.map(|(bin, count)| (value_ns(bin), *count))
    }
    /// One percentile in ns; 0 without any value.
    pub fn percentile(&self, percent: f64) -> u64 {
        self.percentiles(&[percent]).first().copied().unwrap_or(0)
    }
}

/// The percentiles of `list` (percent, ascending) of `total` values, counted in ascending order;
/// empty without any.
pub fn percentiles_of(
    counted: impl Iterator<Item = (u64, u64)>,
    total: u64,
    list: &[f64],
) -> Vec<u64> {
    let mut values = Vec::with_capacity(list.len());
    // Of what holds nothing, as many intervals do, no bin is looked at.
    if total == 0 {
        return values;
    }
    let mut wanted = list.iter().map(|p| rank(*p, total)).peekable();
    let mut seen = 0;
    for (value, count) in counted {
        seen += count;
        while wanted.next_if(|rank| seen >= *rank).is_some() {
            values.push(value);
        }
        if values.len() == list.len() {
            break;
        }
    }
    values
}

/// The smallest count that is at least `percent` of `total`, and at most `total`.
///
/// fio compares in extended precision, where 99.9 percent of 1000 is a little more than 999 since
/// the double 99.9 is; computed exactly here, since doubles would round that away.
fn rank(percent: f64, total: u64) -> u64 {
    if percent <= 0.0 {
        return 0;
    }
    if percent >= 100.0 {
        return total;
    }
    // percent = mantissa * 2^-shift; a double below 100 and above 2^-20 has shift in 46 ..= 73.
    let bits = percent.max(1e-6).to_bits();
    let shift = 1075 - (bits >> 52) as u32;
    let mantissa = u128::from(bits & ((1 << 52) - 1) | (1 << 52));
    // (mantissa * total) / (100 << shift), rounded up; the product fits for totals below 2^75.
    let share = mantissa * u128::from(total);
    share.div_ceil(100u128 << shift) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Stream;

    #[test]
    fn every_value_lies_in_its_bin_and_is_known_to_one_in_128() {
        let mut stream = Stream::new(1, "bins");
        // The last bin ends at 2^34 ns, 17 s; what is longer is counted in it.
        for bits in 1..35 {
            for _ in 0..2000 {
                let ns = stream.below(1 << bits);
                let bin = bin_of(ns);
                assert!(lower_bound_ns(bin) <= ns && ns < lower_bound_ns(bin + 1), "{ns} in {bin}");
                assert!(value_ns(bin).abs_diff(ns) * 128 <= ns, "{ns} stands as {}", value_ns(bin));
            }
        }
        assert_eq!(bin_of(u64::MAX), BINS - 1);
    }

    #[test]
    fn bins_stand_for_the_values_that_fio_prints() {
        // From JSON+ output of fio 3.33: all of these are keys of `bins`.
        for ns in [143, 173, 286, 780, 1384, 1528, 1544, 5344, 11584, 262] {
            assert_eq!(value_ns(bin_of(ns)), ns);
        }
    }

    #[test]
    fn percentiles_agree_with_hdrhistogram_within_a_bin() {
        let mut ours = Histogram::default();
        let mut oracle = hdrhistogram::Histogram::<u64>::new(3).unwrap();
        let mut stream = Stream::new(3, "latencies");
        for _ in 0..200_000 {
            let ns = (1e4 * (-8.0 * (1.0 - stream.unit()).ln()).exp2()) as u64 % (1 << 33);
            ours.add(bin_of(ns));
            oracle.record(ns).unwrap();
        }
        for percent in [1.0, 25.0, 50.0, 90.0, 99.0, 99.9, 99.99] {
            let (got, want) = (ours.percentile(percent), oracle.value_at_percentile(percent));
            // Half a bin of ours and the last digit of three of theirs.
            let tolerance = want as f64 * (1.0 / 128.0 + 1e-3);
            assert!((got as f64 - want as f64).abs() <= tolerance, "p{percent}: {got}, {want}");
        }
    }

    #[test]
    fn a_percentile_needs_its_whole_share() {
        let mut histogram = Histogram::default();
        for ns in 1..=100 {
            histogram.add(bin_of(ns));
        }
        assert_eq!(histogram.percentiles(&[1.0, 50.0, 99.0, 100.0]), [1, 50, 99, 100]);
        assert_eq!(rank(50.0, 1001), 501);
        // The double nearest 99.9 is above 99.9, so 999 of 1000 are not enough.
        assert_eq!(rank(99.9, 1000), 1000);
        assert_eq!(Histogram::default().percentiles(&[50.0]), [] as [u64; 0]);
    }
}
