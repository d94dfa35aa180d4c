//! Smallest, largest, mean and deviation of a sequence of whole numbers.

/// Exact running sums: nothing is rounded before the end, so neither order nor number of values
/// matters to the result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Summary {
    count: u64,
    min: u64,
    max: u64,
    sum: u128,
    squares: u128,
}

impl Default for Summary {
    fn default() -> Self {
        Summary { count: 0, min: u64::MAX, max: 0, sum: 0, squares: 0 }
    }
}

impl Summary {
    /// Takes one value.
    #[inline]
    pub fn add(&mut self, value: u64) {
        self.count += 1;
        self.min = self.min.min(value);
        self.max = self.max.max(value);
        self.sum += u128::from(value);
        self.squares += u128::from(value) * u128::from(value);
    }
    /// Takes all values of `other`.
    pub fn merge(&mut self, other: &Summary) {
        self.count += other.count;
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
        self.sum += other.sum;
        self.squares += other.squares;
    }
    /// Number of values.
    pub fn count(&self) -> u64 {
        self.count
    }
    /// Smallest value; 0 without any.
    pub fn min(&self) -> u64 {
        if self.count == 0 { 0 } else { self.min }
    }
    /// Largest value; 0 without any.
    pub fn max(&self) -> u64 {
        self.max
    }
    /// All values together.
    pub fn sum(&self) -> u128 {
        self.sum
    }
    /// Mean; 0 without any value.
    pub fn mean(&self) -> f64 {
        if self.count == 0 { 0.0 } else { self.sum as f64 / self.count as f64 }
    }
    /// Sample standard deviation (divisor n - 1); 0 below two values.
    pub fn stddev(&self) -> f64 {
        if self.count < 2 {
            return 0.0;
        }
        // Squares about the whole part of the mean are exact; only what is left is rounded, so
        // nothing cancels. Wrapping, because 2 * whole * sum alone may overflow.
        let n = u128::from(self.count);
        let (whole, rest) = (self.sum / n, self.sum % n);
        let about = self
            .squares
            .wrapping_sub(whole.wrapping_mul(self.sum).wrapping_mul(2))
            .wrapping_add(n.wrapping_mul(whole).wrapping_mul(whole));
        let squares = about as f64 - (rest as f64) * (rest as f64) / self.count as f64;
        (squares.max(0.0) / (self.count - 1) as f64).sqrt()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deviation_survives_a_large_mean() {
        // The textbook formula on doubles would return noise here.
        let mut summary = Summary::default();
        for value in [4u64, 7, 13, 16] {
            summary.add(1_000_000_000_000_000 + value);
        }
        assert_eq!(summary.stddev(), 30f64.sqrt());
        assert_eq!(summary.mean(), 1e15 + 10.0);
        assert_eq!((summary.min() % 100, summary.max() % 100), (4, 16));
    }

    #[test]
    fn parts_merged_are_the_whole() {
        let (mut whole, mut left, mut right) =
            (Summary::default(), Summary::default(), Summary::default());
        for value in 0..1000u64 {
            whole.add(value * value);
            if value % 3 == 0 { &mut left } else { &mut right }.add(value * value);
        }
        left.merge(&right);
        assert_eq!(left, whole);
        assert_eq!(Summary::default().min(), 0);
        assert_eq!(Summary::default().stddev(), 0.0);
    }
}
