//! What a job does, without when: operations, places, sizes and amounts.

use super::PerDirection;
use super::layout::Files;
use crate::rng::Stream;

/// Draws of a length before the smallest is taken.
const LENGTH_DRAWS_MAX: u32 = 64;

/// A size as a job file writes it: bytes, or a share of the file it refers to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Amount {
    /// Bytes.
    Bytes(u64),
    /// Percent of the device or file, `0 ..= 100`.
    Percent(f64),
}

impl Amount {
    /// In bytes, where the whole is `of` bytes.
    pub fn of(self, of: u64) -> u64 {
        match self {
            Amount::Bytes(n) => n,
            Amount::Percent(p) => (of as f64 * p / 100.0) as u64,
        }
    }
}

/// The sizes of the I/Os of one direction.
#[derive(Clone, Debug, PartialEq)]
pub enum BlockSizes {
    /// Always this many bytes (`bs=4k`).
    Fixed(u64),
    /// Uniform over the multiples of the smallest (`bsrange=4k-64k`).
    Range {
        /// Smallest, bytes.
        min: u64,
        /// Largest, bytes.
        max: u64,
    },
    /// Size in bytes and its weight in percent (`bssplit=4k/60:64k/40`), the lightest first; the weights add to 100.
    Split(Vec<(u64, f64)>),
}

impl BlockSizes {
    /// The smallest size, bytes.
    pub fn min(&self) -> u64 {
        match self {
            BlockSizes::Fixed(n) => *n,
            BlockSizes::Range { min, .. } => *min,
            BlockSizes::Split(parts) => parts.iter().map(|p| p.0).min().unwrap_or(0),
        }
    }
    /// The mean size, bytes.
    pub fn mean(&self) -> f64 {
        match self {
            BlockSizes::Fixed(n) => *n as f64,
            // Uniform up to the largest, rounded up to the smallest.
            BlockSizes::Range { min, max } => {
                let whole = max / min;
                let up_to = (min * whole * (whole + 1) / 2) as f64 * *min as f64;
                (up_to + (max - min * whole) as f64 * *max as f64) / *max as f64
            }
            BlockSizes::Split(parts) => parts.iter().map(|p| p.0 as f64 * p.1 / 100.0).sum(),
        }
    }
    /// The largest size, bytes.
    pub fn max(&self) -> u64 {
        match self {
            BlockSizes::Fixed(n) => *n,
            BlockSizes::Range { max, .. } => *max,
            BlockSizes::Split(parts) => parts.iter().map(|p| p.0).max().unwrap_or(0),
        }
    }

    /// A size of at most `room` bytes; `None` if even the smallest is longer.
    #[inline(always)]
    pub fn draw(&self, rng: &mut Stream, room: u64) -> Option<u64> {
        match self {
            BlockSizes::Fixed(len) => (*len <= room).then_some(*len),
            BlockSizes::Range { min, max } => {
                // As fio: uniform up to the largest, rounded up to the smallest.
                draw_fitting(rng, room, *min, |rng| {
                    (rng.below(*max) + 1).div_ceil(*min).saturating_mul(*min).min(*max)
                })
            }
            BlockSizes::Split(parts) => draw_fitting(rng, room, self.min(), |rng| {
                // As fio: what does not fit leaves its share to the next that does.
                let mut share = rng.unit() * 100.0;
                let mut drawn = parts.iter().filter(|(len, weight)| {
                    share -= weight;
                    share < 0.0 && *len <= room
                });
                drawn.next().or(parts.last()).map_or(u64::MAX, |part| part.0)
            }),
        }
    }
}

/// Draws until it fits; after many draws, the smallest.
#[inline(never)]
fn draw_fitting(
    rng: &mut Stream,
    room: u64,
    min: u64,
    draw: impl Fn(&mut Stream) -> u64,
) -> Option<u64> {
    if room < min {
        return None;
    }
    let found = (0..LENGTH_DRAWS_MAX).map(|_| draw(rng)).find(|len| *len <= room);
    Some(found.unwrap_or(min))
}

/// How often each part of the file is chosen by random I/O.
#[derive(Clone, Debug, PartialEq)]
pub enum Distribution {
    /// Every block alike.
    Uniform,
    /// Zipf: block of rank r in proportion to `r^-theta`.
    Zipf {
        /// Exponent; not 1.
        theta: f64,
        /// Where the hottest block is, as a share of the file; `None`: drawn.
        center: Option<f64>,
    },
    /// Pareto, as self-similar access: a share `h` of the blocks gets `1-h` of the I/Os, and again.
    Pareto {
        /// Shape, between 0 and 1.
        h: f64,
        /// As for zipf.
        center: Option<f64>,
    },
    /// fio's `normal`: a bell over the ranks and a uniform part of this width, percent of the file.
    Normal {
        /// Width of the uniform part, percent.
        deviation: f64,
        /// Where the middle is, as a share of the files that are chosen so (`file_service_type`).
        center: Option<f64>,
    },
    /// Access percent and size percent of consecutive zones, by direction (`zoned`).
    Zoned(PerDirection<Vec<(f64, f64)>>),
    /// Access percent and size in bytes of consecutive zones, by direction (`zoned_abs`).
    ZonedAbs(PerDirection<Vec<(f64, u64)>>),
}

/// Generator of the random block numbers (`random_generator`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RandomGenerator {
    /// Pseudo-random, made unique by the random map where there is one (`tausworthe`, `tausworthe64`).
    Prng,
    /// Linear feedback shift register: a permutation, without a map.
    Lfsr,
}

/// Reading or writing in strips (`zonemode=strided`), in bytes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Zones {
    /// Address range of one zone (`zonerange`).
    pub range: u64,
    /// Amount of I/O before the next zone (`zonesize`).
    pub size: u64,
    /// Skipped between zones (`zoneskip`).
    pub skip: u64,
}

/// Which of several files is next (`file_service_type`).
#[derive(Clone, Debug, PartialEq)]
pub enum FileService {
    /// Each in turn.
    RoundRobin,
    /// One file until it is done.
    Sequential,
    /// Any of those not done.
    Random,
    /// The same, some more often than others.
    Shaped(Distribution),
}

/// What a job does, without when.
#[derive(Clone, Debug, PartialEq)]
pub struct Pattern {
    /// Which of read, write, trim take part.
    pub directions: PerDirection<bool>,
    /// Random offsets (`rw=rand...`).
    pub random: bool,
    /// Each block is trimmed, then written (`rw=trimwrite`).
    pub trim_then_write: bool,
    /// `rw=randread:N`: a random offset for every N-th I/O only; 0: for none.
    pub random_every: u32,
    /// Between those, the same offset again instead of the next one (`rw_sequencer=identical`).
    pub identical: bool,
    /// `rw=write:64k`: bytes skipped after each sequential I/O, negative for backwards.
    pub skip: i64,
    /// Percent of reads in a mix of reads and writes.
    pub mix_read: u32,
    /// Percent of the random I/Os that are random, by direction.
    pub percentage_random: PerDirection<u32>,
    /// Sizes of the I/Os.
    pub sizes: PerDirection<BlockSizes>,
    /// Alignment of random offsets; 0: the smallest block.
    pub align: PerDirection<u64>,
    /// Files that the I/Os go to.
    pub files: Files,
    /// Which of them is next.
    pub file_service: FileService,
    /// After how many I/Os another is (`file_service_type=random:8`).
    pub file_every: u32,
    /// `filesize`, smallest and largest.
    pub file_size: Option<(u64, u64)>,
    /// `size`.
    pub size: Option<Amount>,
    /// `io_size`.
    pub io_size: Option<Amount>,
    /// `offset`.
    pub offset: Amount,
    /// `offset_increment`.
    pub offset_increment: Amount,
    /// `file_append`: the range begins where the file has ended so far.
    pub append: bool,
    /// `offset_align`, bytes; 0: the smallest block.
    pub offset_align: u64,
    /// `number_ios`; 0: no limit.
    pub number_ios: u64,
    /// Passes, at least 1.
    pub loops: u64,
    /// Random blocks may repeat within a pass.
    pub norandommap: bool,
    /// Where random block numbers come from.
    pub generator: RandomGenerator,
    /// How they are distributed.
    pub distribution: Distribution,
    /// Strips.
    pub zones: Option<Zones>,
    /// Flush after this many writes; 0: never.
    pub fsync: u64,
    /// As `fsync`, for data only.
    pub fdatasync: u64,
    /// Flush after each pass that writes (`end_fsync`, `fsync_on_close`).
    pub end_fsync: bool,
    /// What was written is read back (`verify`, else by `verify_pattern`).
    pub verify: Option<bool>,
    /// That is done, too (`do_verify`).
    pub do_verify: bool,
    /// How much written data would shrink, percent.
    pub compressible: u8,
    /// Every write carries new data.
    pub refill_buffers: bool,
    /// Every pass draws the same.
    pub repeat: bool,
    /// Changes what is drawn.
    pub seed: u64,
}

impl Default for Pattern {
    fn default() -> Self {
        Pattern {
            directions: [true, false, false],
            random: false,
            trim_then_write: false,
            random_every: 1,
            identical: false,
            skip: 0,
            mix_read: 50,
            percentage_random: [100; 3],
            sizes: std::array::from_fn(|_| BlockSizes::Fixed(4096)),
            align: [0; 3],
            files: Files::default(),
            file_service: FileService::RoundRobin,
            file_every: 1,
            file_size: None,
            size: None,
            io_size: None,
            offset: Amount::Bytes(0),
            offset_increment: Amount::Bytes(0),
            append: false,
            offset_align: 0,
            number_ios: 0,
            loops: 1,
            norandommap: false,
            generator: RandomGenerator::Prng,
            distribution: Distribution::Uniform,
            zones: None,
            fsync: 0,
            fdatasync: 0,
            end_fsync: false,
            verify: None,
            do_verify: true,
            compressible: 0,
            refill_buffers: false,
            repeat: true,
            seed: 0,
        }
    }
}

impl Pattern {
    /// Smallest I/O of the directions that take part, bytes.
    pub fn block_min(&self) -> u64 {
        self.taking_part().map(BlockSizes::min).min().unwrap_or(512)
    }
    /// The same of all directions: what fio rounds shares of a file by.
    pub fn grain(&self) -> u64 {
        self.sizes.iter().map(BlockSizes::min).min().expect("three directions")
    }
    /// Multiples on which random places stand, bytes by direction.
    pub fn alignment(&self) -> PerDirection<u64> {
        std::array::from_fn(|d| match self.align[d] {
            0 => self.sizes[d].min(),
            n => n,
        })
    }
    /// fio's `rw`, without what stands behind a colon.
    pub fn mode(&self) -> String {
        let order = if self.random { "rand" } else { "" };
        let directions = match self.directions {
            _ if self.trim_then_write => "trimwrite",
            [true, true, _] => "rw",
            [true, ..] => "read",
            [_, true, _] => "write",
            _ => "trim",
        };
        format!("{order}{directions}")
    }
    /// Shares of the directions in the I/Os, 0 ..= 1.
    pub fn shares(&self) -> PerDirection<f64> {
        let percent = |n: u32| f64::from(n) / 100.0;
        match self.directions {
            _ if self.trim_then_write => [0.0, 0.5, 0.5],
            [true, true, _] => [percent(self.mix_read), percent(100 - self.mix_read), 0.0],
            only => only.map(|takes_part| f64::from(u8::from(takes_part))),
        }
    }
    /// Largest I/O of the directions that take part, bytes.
    pub fn block_max(&self) -> u64 {
        self.taking_part().map(BlockSizes::max).max().unwrap_or(512)
    }
    fn taking_part(&self) -> impl Iterator<Item = &BlockSizes> {
        self.sizes.iter().zip(self.directions).filter(|(_, on)| *on).map(|(sizes, _)| sizes)
    }
}
