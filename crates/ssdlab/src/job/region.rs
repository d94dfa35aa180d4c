//! One file of a job: the range of offsets, and the next place in it.

use super::distribution::Sampler;
use super::lfsr::Lfsr;
use super::pattern::{BlockSizes, Pattern, Zones};
use super::random_map::RandomMap;
use crate::rng::Stream;

/// The streams that a process draws from.
#[derive(Clone, Debug)]
pub struct Streams {
    /// Offsets.
    pub offset: Stream,
    /// Read or write.
    pub mix: Stream,
    /// Random or sequential.
    pub order: Stream,
    /// Sizes.
    pub size: Stream,
    /// Files.
    pub file: Stream,
}

/// Whether blocks may come again within a pass.
#[derive(Clone, Debug)]
enum Unique {
    No,
    Map { map: RandomMap, unit: u64 },
    Lfsr(Lfsr),
}

/// Where a job works in one file.
#[derive(Clone, Copy, Debug)]
pub struct Range {
    /// First byte, on the device.
    pub base: u64,
    /// Bytes of the range.
    pub span: u64,
    /// Bytes from `base` to the end of the file.
    pub room: u64,
    /// Bytes of the file.
    pub file: u64,
}

/// How a place is to be found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Drawn.
    Random,
    /// Behind the last one of the direction.
    Next,
    /// The last one of the direction again.
    Same,
}

/// What does not change from I/O to I/O.
#[derive(Clone, Copy, Debug)]
pub struct Rules {
    /// At the end begin again instead of being done.
    pub endless: bool,
    /// Bytes skipped after each sequential I/O.
    pub skip: i64,
}

/// The I/O range of one file and the state of the walk through it.
#[derive(Clone, Debug)]
pub struct Region {
    range: Range,
    /// End of the last I/O of each direction, from `base`.
    last_end: [u64; 3],
    /// Start of the last I/O of each direction.
    last_start: [u64; 3],
    /// Nothing is left in this pass.
    pub done: bool,
    samplers: [Sampler; 3],
    align: [u64; 3],
    unique: Unique,
    strips: Option<Zones>,
    /// Bytes of the range, of which each strip has no more.
    size: u64,
    /// Where the last I/O of each direction ends at the latest.
    limits: [u64; 3],
    strip_base: u64,
    strip_bytes: u64,
}

impl Region {
    /// The beginning of a walk through `range`.
    pub fn new(pattern: &Pattern, mut range: Range, rng: &mut Stream) -> Self {
        let (strips, size) = (pattern.zones, range.span);
        // Random places lie within one strip where there are strips.
        if strips.is_some() {
            // fio lets strips go on to the end of the file.
            range.span = range.room;
        }
        let area = strips.map_or(range.span, |s| s.range.min(range.room));
        let align = pattern.alignment();
        // fio looks at the range where it draws lengths, and at the file alone where it does not.
        let is_drawn = |sizes: &BlockSizes| sizes.min() < sizes.max();
        let limits =
            std::array::from_fn(|d| if is_drawn(&pattern.sizes[d]) { size } else { range.room });
        let samplers = std::array::from_fn(|d| {
            // The last block is the last one where the smallest I/O fits.
            let blocks = area.saturating_sub(pattern.sizes[d].min()) / align[d] + 1;
            Sampler::new(&pattern.distribution, d, blocks, align[d], rng)
        });
        let unit = pattern.block_min();
        let unique = match unique_blocks(pattern) {
            Remember::Nothing => Unique::No,
            Remember::Blocks => Unique::Map { map: RandomMap::new(area / unit), unit },
            Remember::Order => Unique::Lfsr(Lfsr::new(area / unit, rng.bits())),
        };
        Region {
            range,
            last_end: [0; 3],
            last_start: [0; 3],
            done: false,
            samplers,
            align,
            unique,
            strips,
            size,
            limits,
            strip_base: 0,
            strip_bytes: 0,
        }
    }

    /// First byte on the device.
    #[inline]
    pub fn base(&self) -> u64 {
        self.range.base
    }

    /// Begins a new pass.
    pub fn reset(&mut self, streams: &mut Streams) {
        self.done = false;
        self.begin_strip(0, streams);
    }

    /// The last I/O is done twice, as a trim and as a write; both count towards a strip.
    pub fn twice(&mut self, len: u64) {
        self.strip_bytes += len;
    }

    /// Whether there was an I/O in this pass.
    pub fn has_begun(&self) -> bool {
        self.strip_bytes > 0
    }

    fn forget(&mut self, streams: &mut Streams) {
        match &mut self.unique {
            Unique::No => {}
            Unique::Map { map, .. } => map.clear(),
            Unique::Lfsr(lfsr) => lfsr.restart(streams.offset.bits()),
        }
    }

    /// The next place for an I/O: offset from `base` and length; `None` if this file is done.
    /// `draw_len` draws a length that is at most what it is given, if there is one.
    #[inline(always)]
    pub fn place(
        &mut self,
        direction: usize,
        order: Order,
        rules: Rules,
        streams: &mut Streams,
        draw_len: impl Fn(&mut Stream, u64) -> Option<u64>,
    ) -> Option<(u64, u64)> {
        if self.strips.is_some() {
            self.enter_strip(streams);
        }
        let sequential = match order {
            Order::Random => None,
            Order::Next => self.end_of_last(direction, rules),
            Order::Same => Some(self.last_start[direction]),
        };
        let (offset, len) = match (sequential, order) {
            // As in fio the last one of a range that is no whole number of blocks goes beyond it, if the
            // file does, and so does the last one of a strip.
            (Some(offset), _) => {
                let left = self.limits[direction].checked_sub(offset);
                match left.and_then(|left| draw_len(&mut streams.size, left)) {
                    Some(len) => (offset, len),
                    None if rules.endless => {
                        if self.strips.is_some() {
                            self.begin_strip(0, streams);
                        }
                        (0, draw_len(&mut streams.size, self.size)?)
                    }
                    None => return None,
                }
            }
            // Where a sequential walk within a random job has come to the end, it is random again.
            (None, Order::Random) => self.random(direction, rules, streams, draw_len)?,
            (None, _) => return None,
        };
        self.last_start[direction] = offset;
        self.last_end[direction] = offset + len;
        self.strip_bytes += len;
        Some((offset, len))
    }

    /// Whether nothing but a draw of one block among as many decides on random places for so many bytes.
    pub fn is_drawn(&self, direction: usize, len: u64) -> bool {
        let Sampler::Uniform { blocks } = self.samplers[direction] else { return false };
        let last = (blocks - 1) * self.align[direction];
        let fits = last < self.size && last + len <= self.range.span.min(self.limits[direction]);
        fits && self.strips.is_none() && matches!(self.unique, Unique::No)
    }

    /// The next so many random places then: offsets from `base`.
    pub fn draw(
        &mut self,
        direction: usize,
        len: u64,
        count: u64,
        rng: &mut Stream,
    ) -> impl Iterator<Item = u64> {
        let (sampler, align) = (&self.samplers[direction], self.align[direction]);
        let (start, end) = (&mut self.last_start[direction], &mut self.last_end[direction]);
        self.strip_bytes += count * len;
        (0..count).map(move |_| {
            *start = sampler.draw(rng) * align;
            *end = *start + len;
            *start
        })
    }

    fn enter_strip(&mut self, streams: &mut Streams) {
        let Some(strips) = self.strips else { return };
        if self.strip_bytes < strips.size {
            return;
        }
        let next = self.strip_base.saturating_add(strips.range).saturating_add(strips.skip);
        self.begin_strip(if next < self.range.room { next } else { 0 }, streams);
    }

    fn begin_strip(&mut self, base: u64, streams: &mut Streams) {
        (self.strip_base, self.strip_bytes) = (base, 0);
        self.last_end = [base; 3];
        self.last_start = [base; 3];
        self.forget(streams);
    }

    /// The offset behind the last I/O of the direction, skips included.
    #[inline]
    fn end_of_last(&self, direction: usize, rules: Rules) -> Option<u64> {
        let end = self.last_end[direction];
        if let Some(strips) = &self.strips {
            // Within a strip the walk goes round until the strip has had its bytes.
            let inside = end < self.strip_base.saturating_add(strips.range);
            return if inside && end - self.strip_base < self.size {
                Some(end).filter(|e| *e < self.range.span)
            } else {
                (!inside || rules.endless).then_some(self.strip_base)
            };
        }
        if rules.endless && end >= self.range.span {
            return Some(0);
        }
        if end >= self.range.room {
            return None;
        }
        let mut offset = end;
        let before = self.range.file - self.range.room;
        if (end != 0 || before > 0 && rules.skip < 0) && rules.skip != 0 {
            // A walk backwards that does not begin with the file begins at the end of the range,
            // which fio counts from the start of the file.
            let from = if end == 0 { self.range.span.checked_sub(before) } else { Some(end) };
            if from == Some(0) {
                return Some(0);
            }
            offset = match from.and_then(|at| at.checked_add_signed(rules.skip)) {
                // fio turns round a file's length behind the start of the range.
                Some(at) if at < self.range.file => at,
                // What begins again does so as far behind the start of the range as that is behind the file's.
                _ if rules.skip > 0 => before,
                _ => self.range.span.checked_add_signed(rules.skip)?,
            };
        }
        match offset < self.range.span {
            true => Some(offset),
            false if rules.endless => Some(0),
            false => None,
        }
    }

    #[inline(always)]
    fn random(
        &mut self,
        direction: usize,
        rules: Rules,
        streams: &mut Streams,
        draw_len: impl Fn(&mut Stream, u64) -> Option<u64>,
    ) -> Option<(u64, u64)> {
        let room = self.range.span.min(self.limits[direction]).checked_sub(self.strip_base)?;
        // As in fio a strip begins again where it has had its range as often as it goes into that, and else ends the pass;
        // no place in it is farther from its start than the range is long.
        let again = match self.strips {
            Some(strips) => self.strip_bytes.is_multiple_of(strips.range),
            None => rules.endless,
        };
        let size = self.size;
        let inside = |at: u64| (at < size).then_some(at);
        match &mut self.unique {
            Unique::No => {
                let block = self.samplers[direction].draw(&mut streams.offset);
                let at = inside(block * self.align[direction])?;
                let len = draw_len(&mut streams.size, room.checked_sub(at)?)?;
                Some((self.strip_base + at, len))
            }
            Unique::Map { map, unit } => {
                let first = self.samplers[direction].draw(&mut streams.offset);
                let block = match map.next_free(first) {
                    Some(block) => block,
                    None if again => {
                        map.clear();
                        map.next_free(first)?
                    }
                    None => return None,
                };
                let at = inside(block * *unit)?;
                let len = draw_len(&mut streams.size, room.checked_sub(at)?)?;
                // What is done already is not done again: the I/O ends before it, but not where the strip does.
                let taken = map.take(block, len.div_ceil(*unit));
                let uncut = self.strips.is_some() && map.is_end(block + taken);
                Some((self.strip_base + at, if uncut { len } else { len.min(taken * *unit) }))
            }
            Unique::Lfsr(lfsr) => {
                let block = match lfsr.next() {
                    Some(block) => block,
                    None if again => {
                        lfsr.restart(streams.offset.bits());
                        lfsr.next()?
                    }
                    None => return None,
                };
                let at = inside(block * self.align[direction])?;
                let len = draw_len(&mut streams.size, room.checked_sub(at)?)?;
                Some((self.strip_base + at, len))
            }
        }
    }
}

/// What has to be remembered for blocks to be unique.
pub enum Remember {
    Nothing,
    Blocks,
    Order,
}

/// How blocks of the job are made unique.
///
/// As in fio only uniform random blocks are, and only where they stand on multiples of the
/// smallest I/O. (Where directions differ in that, fio's map goes wrong and ends the job early;
/// here such a job has none.)
pub fn unique_blocks(pattern: &Pattern) -> Remember {
    use super::pattern::{Distribution, RandomGenerator};
    let unit = pattern.block_min();
    let aligned =
        pattern.alignment().iter().zip(pattern.directions).all(|(a, on)| !on || *a == unit);
    let uniform = pattern.distribution == Distribution::Uniform;
    match pattern.generator {
        _ if !pattern.random || !uniform || !aligned => Remember::Nothing,
        RandomGenerator::Lfsr => Remember::Order,
        RandomGenerator::Prng if pattern.norandommap => Remember::Nothing,
        RandomGenerator::Prng => Remember::Blocks,
    }
}
