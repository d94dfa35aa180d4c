//! The sequence of I/Os of one process of a job.

use super::pattern::{Amount, BlockSizes, FileService, Pattern};
use super::region::{Order, Range, Region, Remember, Rules, Streams, Strips, unique_blocks};
use super::{Io, JobSpec};
use crate::device::{Op, SECTOR};
use crate::error::Result;
use crate::rng::Stream;
use crate::units::Bytes;

const READ: usize = 0;
const WRITE: usize = 1;
const TRIM: usize = 2;
const OPS: [Op; 3] = [Op::Read, Op::Write, Op::Trim];

/// Draws of a length before the largest that fits is taken.
const LENGTH_DRAWS_MAX: u32 = 64;

/// The I/Os of one process of a job, one after another, without any notion of time.
///
/// It ends when fio's process would: after `size` bytes (or `io_size`, `number_ios`, `loops`
/// passes), or when a pass has touched every block; a time-based job begins again without end.
#[derive(Clone, Debug)]
pub struct Generator {
    pattern: Pattern,
    rules: Rules,
    regions: Vec<Region>,
    streams: Streams,
    /// Where the streams began: passes repeat with `randrepeat`.
    first_streams: Streams,
    /// File of the next I/O.
    file: usize,
    /// I/Os until the next random offset.
    until_random: u32,
    /// Second half of a trim-and-write.
    pending: Option<Io>,
    /// Bytes of one pass.
    pass_limit: u64,
    /// Bytes and I/Os of all passes; `u64::MAX`: no limit.
    byte_limit: u64,
    io_limit: u64,
    /// `io_size`, if given: passes go on until it is reached.
    io_size: Option<u64>,
    pass_bytes: u64,
    pass_ios: u64,
    bytes: u64,
    /// Trims of a trim-and-write included.
    bytes_all: u64,
    ios: u64,
    passes: u64,
    writes: u64,
    last_was_flush: bool,
    flushes: bool,
    finished: bool,
    expected_bytes: u64,
}

impl Generator {
    /// The generator of process `thread` (from 0) of the job on a device of `capacity` bytes.
    ///
    /// # Errors
    /// [`Error::Job`] if the job does not fit the device, or an I/O would not be whole sectors.
    pub fn new(spec: &JobSpec, thread: u32, capacity: u64, seed: u64) -> Result<Self> {
        let pattern = &spec.pattern;
        whole_sectors(spec)?;
        let seed = seed ^ pattern.seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let stream = |what: &str| Stream::new(seed, &format!("job/{}/{thread}/{what}", spec.name));
        let [offset, mix] = ["offset", "mix"].map(stream);
        let [order, size, file] = ["order", "size", "file"].map(stream);
        let mut streams = Streams { offset, mix, order, size, file };
        let ranges = ranges(spec, thread, capacity, &mut stream("filesize"))?;
        let mut regions = Vec::with_capacity(ranges.len());
        for range in &ranges {
            let strips = strips(spec, range.room)?;
            regions.push(Region::new(pattern, *range, strips, &mut streams.offset));
        }
        let available = ranges.iter().fold(0u64, |sum, r| sum.saturating_add(r.span));
        let size = match pattern.size {
            Some(Amount::Bytes(n)) => n.min(available),
            _ => available,
        };
        let io_size = pattern.io_size.map(|a| a.of(size));
        let align = std::array::from_fn(|d| match pattern.align[d] {
            0 => pattern.sizes[d].min(),
            n => n,
        });
        let unbounded =
            pattern.random && matches!(unique_blocks(pattern, &align), Remember::Nothing);
        let halves = 1 + u64::from(pattern.trim_then_write);
        let amount = io_size.unwrap_or(size).saturating_mul(pattern.loops);
        let ios = pattern.number_ios.saturating_mul(pattern.loops).saturating_mul(halves);
        let endless = spec.schedule.time_based;
        Ok(Generator {
            rules: Rules { endless, skip: pattern.skip },
            first_streams: streams.clone(),
            streams,
            regions,
            file: 0,
            until_random: 1,
            pending: None,
            pass_limit: if unbounded { size.max(io_size.unwrap_or(0)) } else { size },
            byte_limit: amount,
            io_limit: if ios == 0 { u64::MAX } else { ios },
            io_size,
            pass_bytes: 0,
            pass_ios: 0,
            bytes: 0,
            bytes_all: 0,
            ios: 0,
            passes: 0,
            writes: 0,
            last_was_flush: false,
            flushes: (pattern.fsync > 0 || pattern.fdatasync > 0)
                && pattern.directions[WRITE]
                && !pattern.trim_then_write,
            finished: false,
            expected_bytes: match io_size {
                // Whole passes, both halves counted, until io_size is reached.
                Some(io_size) if io_size > size && !unbounded => {
                    let pass = size.saturating_mul(halves);
                    let least = pass.saturating_mul(pattern.loops);
                    let passes = if halves > 1 { io_size.div_ceil(pass) * pass } else { io_size };
                    least.max(passes)
                }
                _ => amount.saturating_mul(halves),
            },
            pattern: pattern.clone(),
        })
    }

    /// Bytes that the process will move in all, flushes aside, as far as can be told beforehand;
    /// `None`: until time is up.
    pub fn expected_bytes(&self) -> Option<u64> {
        let by_ios = self.io_limit.saturating_mul(self.pattern.block_max());
        (!self.rules.endless).then_some(self.expected_bytes.min(by_ios))
    }

    /// I/Os that the process will do in all, flushes aside; `None` where sizes vary or until time
    /// is up.
    pub fn expected_ios(&self) -> Option<u64> {
        let (min, max) = (self.pattern.block_min(), self.pattern.block_max());
        let by_bytes = self.expected_bytes / min;
        (!self.rules.endless && min == max).then_some(by_bytes.min(self.io_limit))
    }

    /// The next I/O; `None` when the amount is done (never for a time-based job).
    #[inline]
    #[allow(clippy::should_implement_trait)]
    pub fn next(&mut self) -> Option<Io> {
        self.draw(None)
    }

    /// The next I/O of a mix, in this direction whatever the mix says: the other one waits for its
    /// rate. Flushes come when they are due all the same.
    pub fn next_in(&mut self, direction: usize) -> Option<Io> {
        self.draw(Some(direction))
    }

    #[inline]
    fn draw(&mut self, wanted: Option<usize>) -> Option<Io> {
        if let Some(io) = self.pending.take() {
            return Some(self.count(io, WRITE));
        }
        loop {
            if self.finished {
                return None;
            }
            let exhausted = !self.rules.endless
                && (self.bytes >= self.byte_limit
                    || self.ios >= self.io_limit
                    || self.pass_bytes >= self.pass_limit);
            if !exhausted {
                if self.flushes && self.flush_is_due() {
                    self.last_was_flush = true;
                    return Some(FLUSH);
                }
                let direction = wanted.unwrap_or_else(|| self.direction());
                if let Some(io) = self.io(direction) {
                    return Some(self.count(io, direction));
                }
            }
            if self.end_pass() {
                return Some(FLUSH);
            }
        }
    }

    /// The flush that `end_fsync` asks for when time has ended the job.
    pub fn flush_at_end(&self) -> Option<Io> {
        (self.pattern.end_fsync && self.writes > 0 && !self.finished).then_some(FLUSH)
    }

    /// What `direction` does next, somewhere in the files that are left.
    #[inline]
    fn io(&mut self, direction: usize) -> Option<Io> {
        let order = self.order(direction);
        loop {
            let file = self.choose_file()?;
            let (rules, random) = (self.rules, self.pattern.random);
            let sizes = &self.pattern.sizes[direction];
            let draw = |rng: &mut Stream, room: u64| length(sizes, rng, room);
            let region = &mut self.regions[file];
            let mut place = region.place(direction, order, rules, &mut self.streams, draw);
            if place.is_none() && random && order != Order::Random {
                place = region.place(direction, Order::Random, rules, &mut self.streams, draw);
            }
            let Some((offset, len)) = place else {
                region.done = true;
                continue;
            };
            let offset = region.base() + offset;
            if self.pattern.file_service == FileService::RoundRobin {
                self.file += 1;
            }
            let io = Io { op: OPS[direction], offset, len, compressible: 0 };
            if self.pattern.trim_then_write {
                self.pending =
                    Some(Io { op: Op::Write, compressible: self.pattern.compressible, ..io });
            }
            let compressible = if direction == WRITE { self.pattern.compressible } else { 0 };
            return Some(Io { compressible, ..io });
        }
    }

    #[inline]
    fn direction(&mut self) -> usize {
        match self.pattern.directions {
            _ if self.pattern.trim_then_write => TRIM,
            [true, true, _] => {
                // fio draws from 1 to 100 and reads up to the share.
                usize::from(self.streams.mix.percent() >= self.pattern.mix_read)
            }
            [true, ..] => READ,
            [_, true, _] => WRITE,
            _ => TRIM,
        }
    }

    #[inline]
    fn order(&mut self, direction: usize) -> Order {
        let (pattern, streams) = (&self.pattern, &mut self.streams);
        let hit = match pattern.random_every {
            1 => true,
            0 => false,
            n => {
                self.until_random -= 1;
                let hit = self.until_random == 0;
                self.until_random = if hit { n } else { self.until_random };
                hit
            }
        };
        match pattern.percentage_random[direction] {
            _ if !hit && pattern.identical => Order::Same,
            _ if !hit || !pattern.random => Order::Next,
            100 => Order::Random,
            share if streams.order.percent() < share => Order::Random,
            _ => Order::Next,
        }
    }

    #[inline]
    fn choose_file(&mut self) -> Option<usize> {
        let files = self.regions.len();
        if files == 1 {
            return (!self.regions[0].done).then_some(0);
        }
        if self.pattern.file_service == FileService::Random {
            self.file = self.streams.file.below(files as u64) as usize;
        }
        let first = self.file % files;
        let found = (first..files).chain(0..first).find(|f| !self.regions[*f].done)?;
        self.file = found;
        Some(found)
    }

    /// fio looks before each I/O whether the number of writes is a multiple, so that a read behind
    /// the N-th write brings another flush.
    #[inline]
    fn flush_is_due(&mut self) -> bool {
        let every = |n: u64| n > 0 && self.writes.is_multiple_of(n);
        !self.last_was_flush
            && self.writes > 0
            && (every(self.pattern.fsync) || every(self.pattern.fdatasync))
    }

    #[inline]
    fn count(&mut self, io: Io, direction: usize) -> Io {
        self.last_was_flush = false;
        self.ios += 1;
        self.pass_ios += 1;
        self.bytes_all += io.len;
        self.writes += u64::from(direction == WRITE);
        // Of a trim-and-write only the write counts towards the amount.
        if !(self.pattern.trim_then_write && direction == TRIM) {
            self.bytes += io.len;
            self.pass_bytes += io.len;
        }
        io
    }

    /// Ends the pass and begins the next, if there is one; whether a flush comes between.
    fn end_pass(&mut self) -> bool {
        self.passes += 1;
        let moved = self.pass_ios > 0;
        let wrote = self.pattern.end_fsync && self.pattern.directions[WRITE] && moved;
        let more = match self.io_size {
            _ if !moved => false,
            _ if self.rules.endless || self.passes < self.pattern.loops => true,
            Some(io_size) => {
                self.ios < self.io_limit
                    && io_size.saturating_sub(self.bytes_all) >= self.pattern.block_max()
            }
            None => false,
        };
        self.finished = !more;
        if more {
            if self.pattern.repeat && !self.rules.endless {
                self.streams = self.first_streams.clone();
            }
            for region in &mut self.regions {
                region.reset(&mut self.streams);
            }
            (self.pass_bytes, self.pass_ios, self.last_was_flush) = (0, 0, false);
            (self.file, self.until_random) = (0, 1);
        }
        wrote
    }
}

const FLUSH: Io = Io { op: Op::Flush, offset: 0, len: 0, compressible: 0 };

/// A length of at most `room` bytes; `None` if even the smallest is longer.
#[inline]
fn length(sizes: &BlockSizes, rng: &mut Stream, room: u64) -> Option<u64> {
    match sizes {
        BlockSizes::Fixed(len) => (*len <= room).then_some(*len),
        BlockSizes::Range { min, max } => {
            // As fio: uniform up to the largest, rounded up to the smallest.
            draw_fitting(rng, room, *min, |rng| {
                (rng.below(*max) + 1).div_ceil(*min).saturating_mul(*min).min(*max)
            })
        }
        BlockSizes::Split(parts) => {
            let min = sizes.min();
            draw_fitting(rng, room, min, |rng| {
                let mut share = rng.unit() * 100.0;
                for (len, weight) in parts {
                    share -= weight;
                    if share < 0.0 {
                        return *len;
                    }
                }
                parts.last().map_or(min, |p| p.0)
            })
        }
    }
}

/// Draws until it fits; after many draws, the smallest.
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

/// Where the process works in each of its files.
fn ranges(spec: &JobSpec, thread: u32, capacity: u64, rng: &mut Stream) -> Result<Vec<Range>> {
    let p = &spec.pattern;
    let files = p.files.regions(&spec.name, thread, capacity);
    let files = files.map_err(|e| spec.error("size", e.to_string()))?;
    let block = p.block_min();
    let count = files.len() as u64;
    let mut ranges = Vec::with_capacity(files.len());
    for (index, (start, file)) in files.into_iter().enumerate() {
        let offset = offset_in(spec, thread, file);
        if offset >= file {
            let problem =
                format!("begins at {}, and there are only {}", Bytes(offset), Bytes(file));
            return Err(spec.error("offset", problem));
        }
        let room = file - offset;
        let span = match (p.file_size, p.size) {
            (Some((low, high)), _) => {
                let size = low + rng.below(high - low + 1) / block * block;
                size.saturating_sub(offset)
            }
            (None, Some(Amount::Bytes(size))) => {
                // What does not divide evenly goes to the first files, block by block.
                let extra = (size % count) / block > index as u64;
                size / count + if extra { block } else { 0 }
            }
            (None, Some(percent)) => percent.of(file).min(room) / block * block,
            (None, None) => room,
        };
        if span > room {
            let problem = format!(
                "{} from offset {} on does not fit into {}",
                Bytes(span),
                Bytes(offset),
                Bytes(file)
            );
            return Err(
                spec.error(if p.file_size.is_some() { "filesize" } else { "size" }, problem)
            );
        }
        if span < block {
            let problem = format!("{} is less than one I/O of {}", Bytes(span), Bytes(block));
            return Err(spec.error("size", problem));
        }
        ranges.push(Range { base: start + offset, span, room, file });
    }
    Ok(ranges)
}

/// Where the range begins in a file of `file` bytes; percentages are rounded up to a block.
fn offset_in(spec: &JobSpec, thread: u32, file: u64) -> u64 {
    let p = &spec.pattern;
    let align = if p.offset_align > 0 { p.offset_align } else { p.block_min() };
    let relative = matches!(p.offset, Amount::Percent(_))
        || (matches!(p.offset_increment, Amount::Percent(_)) && thread > 0);
    let step = p.offset_increment.of(file).saturating_mul(u64::from(thread));
    let offset = p.offset.of(file).saturating_add(step);
    if relative { offset.div_ceil(align).saturating_mul(align) } else { offset }
}

fn strips(spec: &JobSpec, room: u64) -> Result<Option<Strips>> {
    let Some(zones) = spec.pattern.zones else { return Ok(None) };
    let block = spec.pattern.block_min();
    let bytes = |amount: Amount| match amount {
        Amount::Bytes(n) => n,
        percent => percent.of(room) / block * block,
    };
    let strips =
        Strips { range: bytes(zones.range), size: bytes(zones.size), skip: bytes(zones.skip) };
    for (option, bytes) in [("zonerange", strips.range), ("zonesize", strips.size)] {
        if bytes < block {
            let problem = format!("{} is less than one I/O of {}", Bytes(bytes), Bytes(block));
            return Err(spec.error(option, problem));
        }
    }
    Ok(Some(strips))
}

/// A drive is read and written in whole sectors.
fn whole_sectors(spec: &JobSpec) -> Result<()> {
    let p = &spec.pattern;
    let check = |option: &str, bytes: u64| {
        if bytes.is_multiple_of(SECTOR) {
            return Ok(());
        }
        let problem = format!("{bytes} bytes: a drive moves whole sectors of {SECTOR} bytes");
        Err(spec.error(option, problem))
    };
    for d in (0..3).filter(|d| p.directions[*d]) {
        match &p.sizes[d] {
            BlockSizes::Fixed(n) => check("bs", *n)?,
            BlockSizes::Range { min, max } => {
                check("bsrange", *min)?;
                check("bsrange", *max)?;
            }
            BlockSizes::Split(parts) => {
                parts.iter().try_for_each(|part| check("bssplit", part.0))?;
            }
        }
        check("ba", p.align[d])?;
    }
    check("rw", p.skip.unsigned_abs())?;
    for (option, amount) in [("offset", p.offset), ("offset_increment", p.offset_increment)] {
        if let Amount::Bytes(n) = amount {
            check(option, n)?;
        }
    }
    check("offset_align", p.offset_align)?;
    for zone in p.zones.iter().flat_map(|z| [z.range, z.skip]) {
        if let Amount::Bytes(n) = zone {
            check("zonemode", n)?;
        }
    }
    Ok(())
}
