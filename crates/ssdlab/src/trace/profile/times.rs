//! Times between requests and of responses, counted in fio's bins however long they are.

use crate::stats::{Histogram, bin_of, percentiles_of};

/// fio's bins end here, at 17 s; longer times are counted in units of `2^LONG_SHIFT` ns, to 26 days.
const LONG_NS: u64 = 1 << 34;
const LONG_SHIFT: u32 = 17;

/// See the module.
#[derive(Default)]
pub struct Times {
    short: Histogram,
    long: Histogram,
    /// The shortest and the longest; None without any.
    ends_ns: Option<(u64, u64)>,
}

impl Times {
    /// Counts a time.
    pub fn add(&mut self, ns: u64) {
        if ns < LONG_NS {
            self.short.add(bin_of(ns));
        } else {
            self.long.add(bin_of(ns >> LONG_SHIFT));
        }
        let (least, most) = self.ends_ns.unwrap_or((ns, ns));
        self.ends_ns = Some((least.min(ns), most.max(ns)));
    }
    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.ends_ns.is_none()
    }
    /// The percentiles of `list` (percent, ascending) in ns, none beyond the shortest and the
    /// longest time, as the middle of a bin may be; empty without any.
    pub fn percentiles(&self, list: &[f64]) -> Vec<u64> {
        let Some((least, most)) = self.ends_ns else { return Vec::new() };
        let long = self.long.counted().map(|(value, count)| (value << LONG_SHIFT, count));
        let total = self.short.total() + self.long.total();
        let found = percentiles_of(self.short.counted().chain(long), total, list);
        found.into_iter().map(|ns| ns.clamp(least, most)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_told_to_one_in_128_however_long_and_never_beyond_their_ends() {
        let mut times = Times::default();
        assert!(times.is_empty() && times.percentiles(&[50.0]).is_empty());
        (0..9).for_each(|_| times.add(100_000));
        assert_eq!(times.percentiles(&[1.0, 50.0, 99.0]), [100_000; 3]);
        (0..10).for_each(|_| times.add(60_000_000_000));
        times.add(86_400_000_000_000);
        for (told, exact) in times.percentiles(&[50.0, 99.0]).iter().zip([60, 86_400]) {
            let exact = exact * 1_000_000_000;
            assert!(told.abs_diff(exact) <= exact / 128, "{told}");
        }
    }
}
