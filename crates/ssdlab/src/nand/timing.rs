//! How long flash operations take: by type of page and mode of the block, by die and block.
//!
//! A cell of several bits belongs to as many pages of its word line: lower, middle, upper. They differ in how many
//! levels are told apart to sense them and in how finely they are programmed, so tR and tPROG depend on the type of the page.
//! Dies and blocks differ besides: of two blocks that are told to do the same, one is always the slower one. Which, is
//! drawn by a hash of their numbers, so that nothing is kept for a block. So is which pages are to be sensed twice. Cost:
//! constant.

use super::flash::Place;

/// Types of pages at most: bits of a cell.
pub const PAGE_TYPES: usize = 4;

/// The time of an operation by type of page, ns; the pages of a block take turns in the order in which they are programmed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Times {
    of: [u64; PAGE_TYPES],
    types: u32,
}

impl Times {
    /// The same for every page.
    pub fn alike(time: u64) -> Self {
        Times { of: [time; PAGE_TYPES], types: 1 }
    }

    /// From the lower page on: one to [`PAGE_TYPES`] times.
    pub fn by_type(times: &[u64]) -> Self {
        let of = std::array::from_fn(|page| times[page % times.len()]);
        Times { of, types: times.len() as u32 }
    }

    /// Of so many pages from `page` of the block on, one after the other.
    fn of_pages(&self, page: u32, pages: u32) -> u64 {
        (page..page + pages).map(|page| self.of[(page % self.types) as usize]).sum()
    }

    /// Mean over the types.
    pub fn mean(&self) -> u64 {
        self.of[..self.types as usize].iter().sum::<u64>() / u64::from(self.types)
    }
}

/// Times of flash operations, ns.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Timing {
    /// tR: array to page register.
    pub read: Times,
    /// tPROG: page register to array.
    pub program: Times,
    /// tR of a block in SLC mode.
    pub slc_read: u64,
    /// tPROG of a block in SLC mode.
    pub slc_program: u64,
    /// tBERS: erase of a block.
    pub erase: u64,
    /// Transfer of one physical unit over the channel.
    pub transfer: u64,
    /// Suspension of operations by reads, if the flash does it.
    pub suspend: Suspend,
    /// Pages of a word line that one operation programs: all, or one. In SLC mode they are as many word
    /// lines and programmed one after the other.
    pub pages_per_program: u32,
    /// How dies and blocks differ.
    pub variation: Variation,
    /// Which pages are sensed twice.
    pub retries: ReadRetries,
}

/// Erase and program suspend.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Suspend {
    /// Reads may suspend an erase.
    pub erase: bool,
    /// Reads may suspend a program.
    pub program: bool,
    /// From the suspend command to the die being ready for a read, ns.
    pub enter: u64,
    /// Added to the remaining time on resumption, ns.
    pub resume: u64,
    /// An operation is suspended at most so often.
    pub limit: u32,
}

/// How the times of dies and blocks differ.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Variation {
    /// Relative standard deviation of a time over the blocks of all dies; half of its square is between dies.
    pub deviation: f64,
    /// Which of the drives that are built alike this is.
    pub seed: u64,
}

/// Pages whose data is old or worn, so that only a second sense with other thresholds reads it: the same page of all
/// planes alike, and not in SLC mode, whose levels lie far apart.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ReadRetries {
    /// Share of the pages.
    pub share: f64,
    /// Which of the drives that are built alike this is.
    pub seed: u64,
    /// Dies that the firmware can have sense again at a time; 0: all.
    pub at_once: u32,
}

/// What is done, for [`Variation`]: a block that is slow to read need not be slow to program.
#[derive(Clone, Copy, Debug)]
enum Work {
    Read,
    Program,
    Erase,
}

impl Timing {
    /// Whether any time depends on where in the flash an operation works.
    pub fn depends_on_place(&self) -> bool {
        self.read.types > 1
            || self.program.types > 1
            || self.pages_per_program > 1
            || self.variation.deviation > 0.0
            || self.retries.share > 0.0
    }

    /// Sensing again what it takes of the pages at `at`: how often, and for how long.
    pub(super) fn retries(&self, die: u32, at: Place) -> (u32, u64) {
        if self.retries.share == 0.0 || at.slc {
            return (0, 0);
        }
        let pages = at.page..at.page + at.pages;
        let again = pages.filter(|&page| self.retries.takes(die, at.block, page));
        let sum = |(count, time), page| (count + 1, time + self.read.of_pages(page, 1));
        let (count, time) = again.fold((0, 0), sum);
        (count, self.variation.of(Work::Read, die, at.block, time))
    }

    /// Sensing a page, where that does not depend on the place but for the mode of the block.
    #[inline]
    pub(super) fn sensing_anywhere(&self, slc: bool) -> u64 {
        if slc { self.slc_read } else { self.read.of[0] }
    }

    /// Programming likewise.
    #[inline]
    pub(super) fn programming_anywhere(&self, slc: bool) -> u64 {
        if slc { self.slc_program } else { self.program.of[0] }
    }

    /// Sensing the pages at `at`.
    #[inline(never)]
    pub(super) fn sensing(&self, die: u32, at: Place) -> u64 {
        let time = match at.slc {
            true => self.slc_read * u64::from(at.pages),
            false => self.read.of_pages(at.page, at.pages),
        };
        self.variation.of(Work::Read, die, at.block, time)
    }

    /// Programming the program unit that begins at `at`.
    #[inline(never)]
    pub(super) fn programming(&self, die: u32, at: Place) -> u64 {
        let time = match at.slc {
            true => self.slc_program * u64::from(self.pages_per_program),
            false => self.program.of_pages(at.page, 1),
        };
        self.variation.of(Work::Program, die, at.block, time)
    }

    /// Erasing the part of a superblock on a die.
    pub(super) fn erasing(&self, die: u32, superblock: u32) -> u64 {
        self.variation.of(Work::Erase, die, superblock, self.erase)
    }
}

impl Variation {
    fn of(&self, work: Work, die: u32, block: u32, time: u64) -> u64 {
        if self.deviation == 0.0 {
            return time;
        }
        let die = u64::from(die) << 34 | (work as u64) << 32;
        // A die's own number has no block beside it.
        let of_die = normal(spread(self.seed ^ spread(die)));
        let of_block = normal(spread(self.seed ^ spread(!(die | u64::from(block)))));
        let relative = (of_die + of_block) * std::f64::consts::FRAC_1_SQRT_2;
        (time as f64 * (1.0 + self.deviation * relative)).round() as u64
    }
}

impl ReadRetries {
    /// Whether it takes a second sense to read a page of a die.
    fn takes(&self, die: u32, block: u32, page: u32) -> bool {
        let place = u64::from(die) << 48 | u64::from(block) << 16 | u64::from(page);
        let drawn = spread(self.seed ^ spread(place)) >> 11;
        (drawn as f64) < self.share * (1u64 << 53) as f64
    }
}

/// Bits that follow from `n` and look like no others (the finalizer of SplitMix64).
fn spread(n: u64) -> u64 {
    let n = n.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let n = (n ^ (n >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let n = (n ^ (n >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    n ^ (n >> 31)
}

/// Nearly normal, with mean 0 and standard deviation 1, and never beyond 3.5: the sum of four uniform
/// numbers, which every machine computes alike.
fn normal(bits: u64) -> f64 {
    let sum: u64 = (0..4).map(|part| bits >> (16 * part) & 0xffff).sum();
    (sum as f64 / 65_535.0 - 2.0) * 3f64.sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_take_turns_in_the_order_of_programming() {
        let times = Times::by_type(&[45, 60, 75]);
        let single: Vec<u64> = (0..6).map(|page| times.of_pages(page, 1)).collect();
        assert_eq!(single, [45, 60, 75, 45, 60, 75]);
        assert_eq!((times.of_pages(1, 3), times.mean()), (180, 60));
        assert_eq!(Times::alike(50).of_pages(7, 2), 100);
    }

    #[test]
    fn times_spread_over_dies_and_blocks_as_asked_for_and_stay_what_they_are() {
        let variation = Variation { deviation: 0.05, seed: 7 };
        let time = |work, die, block| variation.of(work, die, block, 1_000_000) as f64 / 1e6 - 1.0;
        let (dies, blocks) = (256, 256);
        let all = |work: Work| -> Vec<Vec<f64>> {
            let of_die = |die| (0..blocks).map(move |block| time(work, die, block)).collect();
            (0..dies).map(of_die).collect()
        };
        let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
        let variance = |values: &[f64]| {
            let middle = mean(values);
            mean(&values.iter().map(|v| (v - middle).powi(2)).collect::<Vec<_>>())
        };
        let read = all(Work::Read);
        // 256 dies: 4.4 % of a standard deviation is one of the estimate of theirs.
        let dies: Vec<f64> = read.iter().map(|of| mean(of)).collect();
        let within = mean(&read.iter().map(|of| variance(of)).collect::<Vec<_>>());
        for (what, variance) in [("dies", variance(&dies)), ("blocks", within)] {
            let deviation = (2.0 * variance).sqrt();
            assert!((deviation / 0.05 - 1.0).abs() < 0.14, "{what}: {deviation}");
        }
        assert!(mean(&dies).abs() < 4.0 * 0.05 / 2f64.sqrt() / 16.0);
        assert_eq!(read, all(Work::Read));
        // Programs are drawn for themselves.
        let program = all(Work::Program);
        let product = |(a, b): (&f64, &f64)| a * b;
        let (read, program) = (read.concat(), program.concat());
        let both = mean(&read.iter().zip(&program).map(product).collect::<Vec<_>>());
        assert!(both.abs() < 0.3 * 0.05 * 0.05, "{both}");
    }
}
