//! What a drive's flash looks like.

/// Shape of the flash behind one controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Geometry {
    /// Channels (buses) between controller and dies.
    pub channels: u32,
    /// Dies on each channel.
    pub ways: u32,
    /// Planes of a die: blocks that are erased, programmed and read together.
    pub planes: u32,
    /// Pages of a block.
    pub pages: u32,
    /// Pages of a word line that are programmed in one operation, in each plane.
    pub pages_per_program: u32,
    /// Physical units of a page.
    pub units_per_page: u32,
    /// Bytes of a physical unit: a mapping unit, or a granule where the drive compresses.
    pub unit_bytes: u32,
}

impl Geometry {
    /// Dies altogether. Die `d` sits on channel `d % channels`.
    pub fn dies(&self) -> u32 {
        self.channels * self.ways
    }
    /// Physical units programmed by one (multi-plane) program operation.
    pub fn units_per_program(&self) -> u32 {
        self.units_per_row() * self.pages_per_program
    }
    /// Physical units of the same page of every plane of a die.
    pub fn units_per_row(&self) -> u32 {
        self.planes * self.units_per_page
    }
    /// Physical units of one erase operation on one die (a block of every plane).
    pub fn units_per_erase(&self) -> u32 {
        self.units_per_row() * self.pages
    }
}

/// Exact division of `u32` by a constant through one multiplication (Lemire, Kaser and Kurz,
/// "Faster remainder by direct computation", 2019).
#[derive(Clone, Copy, Debug)]
pub struct FastDiv {
    divisor: u32,
    magic: u64,
}

impl FastDiv {
    /// Divides by `divisor`, which must not be 0.
    pub fn new(divisor: u32) -> Self {
        assert!(divisor > 0);
        FastDiv { divisor, magic: (u64::MAX / u64::from(divisor)).wrapping_add(1) }
    }
    /// `n / divisor`
    #[inline]
    pub fn quotient(&self, n: u32) -> u32 {
        // For a divisor of 1 the magic number would be 2^64, which wraps to 0.
        if self.magic == 0 {
            return n;
        }
        ((u128::from(self.magic) * u128::from(n)) >> 64) as u32
    }
    /// `(n / divisor, n % divisor)`
    #[inline]
    pub fn split(&self, n: u32) -> (u32, u32) {
        let q = self.quotient(n);
        (q, n - q * self.divisor)
    }
    /// `count` numbers from `first` on, cut at the multiples of the divisor: first number and count
    /// of each part.
    #[inline]
    pub fn cut(self, first: u32, count: u32) -> impl Iterator<Item = (u32, u32)> {
        let (mut at, mut left) = (first, count);
        std::iter::from_fn(move || {
            let (_, within) = self.split(at);
            let part = (at, left.min(self.divisor - within));
            (at, left) = (at + part.1, left - part.1);
            (part.1 > 0).then_some(part)
        })
    }
    /// The divisor.
    #[inline]
    pub fn divisor(&self) -> u32 {
        self.divisor
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fast_division_is_exact() {
        for d in [1u32, 2, 3, 5, 64, 100, 1152, 65_537, u32::MAX] {
            let fast = FastDiv::new(d);
            for n in [0u32, 1, 2, d - 1, d, d.wrapping_add(1), 1 << 31, u32::MAX - 1, u32::MAX] {
                assert_eq!(fast.split(n), (n / d, n % d), "{n} / {d}");
            }
        }
    }

    #[test]
    fn a_run_is_cut_at_multiples() {
        let parts = |first, count| FastDiv::new(32).cut(first, count).collect::<Vec<_>>();
        assert_eq!(parts(0, 1), [(0, 1)]);
        assert_eq!(parts(24, 8), [(24, 8)]);
        assert_eq!(parts(30, 5), [(30, 2), (32, 3)]);
        assert_eq!(parts(31, 66), [(31, 1), (32, 32), (64, 32), (96, 1)]);
    }
}
