//! The sequence of I/Os of one process of a job.

use super::distribution::Sampler;
use super::extent::{Amounts, Target, ranges, whole_sectors};
use super::pattern::{Distribution, FileService, Pattern};
use super::plain::Plain;
use super::region::{Order, Region, Rules, Streams};
use super::verify::Written;
use super::{Io, JobSpec, PerDirection};
use crate::device::Op;
use crate::error::Result;
use crate::rng::Stream;

pub(super) const READ: usize = 0;
pub(super) const WRITE: usize = 1;
pub(super) const TRIM: usize = 2;
const OPS: [Op; 3] = [Op::Read, Op::Write, Op::Trim];

/// Draws of a file before the first that is not done is taken; fio goes on.
const FILE_DRAWS_MAX: u32 = 1000;

/// The I/Os of one process of a job, one after another, without any notion of time.
///
/// It ends when fio's process would: after `size` bytes (or `io_size`, `number_ios`, `loops`
/// passes); as in fio a pass ends where its files do and not at `size`; a time-based job begins again without end.
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
    /// In turn it is followed by this one.
    next_file: usize,
    /// I/Os that go to it before another is chosen.
    file_left: u32,
    /// Draws files where they do not follow each other.
    drawn: Sampler,
    /// I/Os until the next random offset.
    until_random: u32,
    /// Second half of a trim-and-write.
    pending: Option<Io>,
    amounts: Amounts,
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
    pub(super) written: Option<Written>,
    plain: Option<Plain>,
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
        let ranges = ranges(spec, thread, Target::Device(capacity), &mut stream("filesize"))?;
        let mut regions = Vec::with_capacity(ranges.len());
        for range in &ranges {
            regions.push(Region::new(pattern, *range, &mut streams.offset));
        }
        let service = match &pattern.file_service {
            FileService::Shaped(distribution) => distribution,
            _ => &Distribution::Uniform,
        };
        let drawn = Sampler::of_files(service, regions.len() as u64, &mut streams.file);
        let mut amounts = Amounts::new(pattern, &ranges);
        let written = Written::new(spec, &amounts)?;
        let endless = spec.schedule.time_based && written.is_none();
        if spec.schedule.time_based && !endless {
            amounts.begin_again();
        }
        let flushes = (pattern.fsync > 0 || pattern.fdatasync > 0)
            && pattern.directions[WRITE]
            && !pattern.trim_then_write;
        Ok(Generator {
            plain: Plain::of(pattern)
                .filter(|_| regions.len() == 1 && !flushes && written.is_none()),
            written,
            rules: Rules { endless, skip: pattern.skip },
            first_streams: streams.clone(),
            streams,
            regions,
            file: 0,
            next_file: 0,
            file_left: 0,
            drawn,
            until_random: 1,
            pending: None,
            amounts,
            pass_ios: 0,
            bytes: 0,
            bytes_all: 0,
            ios: 0,
            passes: 0,
            writes: 0,
            last_was_flush: false,
            flushes,
            finished: false,
            pattern: pattern.clone(),
        })
    }

    /// Whether its pattern reads, writes and trims.
    pub fn directions(&self) -> PerDirection<bool> {
        self.pattern.directions
    }

    /// Bytes that the process will move in all, flushes aside, as far as can be told beforehand;
    /// `None`: until time is up.
    pub fn expected_bytes(&self) -> Option<u64> {
        let read_back = self.written.as_ref().map_or(0.0, |_| self.pattern.shares()[WRITE]);
        let moved = self.amounts.moved;
        (!self.rules.endless).then_some(moved.saturating_add((moved as f64 * read_back) as u64))
    }

    /// I/Os that the process will do in all, flushes aside; `None` where sizes vary or until time
    /// is up.
    pub fn expected_ios(&self) -> Option<u64> {
        let (min, max) = (self.pattern.block_min(), self.pattern.block_max());
        let by_bytes = self.amounts.moved_by_size / min;
        let told = !self.rules.endless && min == max && self.written.is_none();
        told.then_some(by_bytes.min(self.amounts.ios))
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

    /// The next I/Os, behind those in `ahead`, which becomes so long; fewer where no more come.
    pub fn draw_ahead(&mut self, ahead: &mut Vec<Io>, length: usize) {
        loop {
            self.draw_plain(ahead, length);
            if ahead.len() >= length {
                return;
            }
            let Some(io) = self.draw(None) else { return };
            ahead.push(io);
        }
    }

    /// What [`Generator::draw`] would, asking once for all I/Os; fewer where there is more to ask.
    fn draw_plain(&mut self, ahead: &mut Vec<Io>, length: usize) {
        let Some(Plain { direction, order, len }) = self.plain else { return };
        if self.finished || self.regions[0].done {
            return;
        }
        let wanted = length.saturating_sub(ahead.len()) as u64;
        let due = if self.rules.endless { wanted } else { wanted.min(self.ios_left(len)) };
        let compressible = if direction == WRITE { self.pattern.compressible } else { 0 };
        let region = &mut self.regions[0];
        let (base, op) = (region.base(), OPS[direction]);
        let draw = |_: &mut Stream, room: u64| (len <= room).then_some(len);
        let (mut ios, mut bytes) = (0, 0);
        if order == Order::Random && region.is_drawn(direction, len) {
            let places = region.draw(direction, len, due, &mut self.streams.offset);
            ahead.extend(places.map(|at| Io { op, offset: base + at, len, compressible }));
            (ios, bytes) = (due, due * len);
        }
        while ios < due {
            let place = region.place(direction, order, self.rules, &mut self.streams, draw);
            let Some((offset, len)) = place else {
                region.done = true;
                break;
            };
            ahead.push(Io { op, offset: base + offset, len, compressible });
            (ios, bytes) = (ios + 1, bytes + len);
        }
        if ios > 0 {
            self.count(ios, bytes, direction);
        }
    }

    /// I/Os of so many bytes before the amount is done.
    fn ios_left(&self, len: u64) -> u64 {
        let bytes = self.amounts.bytes.saturating_sub(self.bytes);
        bytes.div_ceil(len).min(self.amounts.ios.saturating_sub(self.ios))
    }

    /// The amount is done.
    #[inline]
    fn is_exhausted(&self) -> bool {
        !self.rules.endless && (self.bytes >= self.amounts.bytes || self.ios >= self.amounts.ios)
    }

    #[inline]
    fn draw(&mut self, wanted: Option<usize>) -> Option<Io> {
        if let Some(io) = self.pending.take() {
            self.drawn(&io, WRITE);
            return Some(io);
        }
        loop {
            if let Some(read) = self.written.as_mut().and_then(Written::next) {
                return Some(read);
            }
            if self.finished {
                return None;
            }
            if !self.is_exhausted() {
                if self.flushes && self.flush_is_due() {
                    // As in fio a flush takes the turn of a file.
                    self.choose_file();
                    self.last_was_flush = true;
                    return Some(Io::FLUSH);
                }
                let direction = wanted.unwrap_or_else(|| self.direction());
                if let Some(io) = self.io(direction) {
                    self.drawn(&io, direction);
                    return Some(io);
                }
            }
            if self.end_pass() {
                return Some(Io::FLUSH);
            }
        }
    }

    #[inline]
    fn drawn(&mut self, io: &Io, direction: usize) {
        self.count(1, io.len, direction);
        if let Some(written) = &mut self.written {
            written.add(io);
        }
    }

    /// Whether the next I/O moves data of the pattern, as far as that is known before it is drawn: flushes and the end wait for no rate.
    pub fn moves_next(&self) -> bool {
        let reads_back = |written: &Written| written.reads_next() || self.is_exhausted();
        let ends = self.ends() || self.is_exhausted() && self.flushes_behind_pass();
        let rests = ends || self.written.as_ref().is_some_and(reads_back);
        let flushes = self.flushes && !self.is_exhausted() && self.flush_is_due();
        self.pending.is_some() || !rests && !flushes
    }

    /// Whether the pattern has come to its end, as far as that is known before more is drawn.
    pub fn ends(&self) -> bool {
        self.pending.is_none() && (self.finished || self.is_exhausted() && !self.has_more_passes())
    }

    /// What was done so far, in the ramp, does not count towards `number_ios`.
    pub fn end_ramp(&mut self) {
        self.ios = 0;
    }

    /// The flush that `end_fsync` asks for when time has ended the job.
    pub fn flush_at_end(&self) -> Option<Io> {
        (self.pattern.end_fsync && self.writes > 0 && !self.finished).then_some(Io::FLUSH)
    }

    /// What `direction` does next, somewhere in the files that are left.
    #[inline]
    fn io(&mut self, direction: usize) -> Option<Io> {
        let order = self.order(direction);
        loop {
            let file = self.choose_file()?;
            let (rules, random) = (self.rules, self.pattern.random);
            let sizes = &self.pattern.sizes[direction];
            let draw = |rng: &mut Stream, room: u64| sizes.draw(rng, room);
            let region = &mut self.regions[file];
            let mut at = order;
            let place = loop {
                match region.place(direction, at, rules, &mut self.streams, draw) {
                    // Random places may be left where a sequential walk has come to its end.
                    None if random && at != Order::Random => at = Order::Random,
                    place => break place,
                }
            };
            let Some((offset, len)) = place else {
                // As in fio a file that is chosen by its heat begins again: the amount alone ends the pass.
                let shaped = matches!(self.pattern.file_service, FileService::Shaped(_));
                if shaped && region.has_begun() {
                    region.reset(&mut self.streams);
                } else {
                    region.done = true;
                }
                continue;
            };
            let offset = region.base() + offset;
            let io = Io { op: OPS[direction], offset, len, compressible: 0 };
            if self.pattern.trim_then_write {
                region.twice(len);
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
        if self.file_left > 0 && !self.regions[self.file].done {
            self.file_left -= 1;
            return Some(self.file);
        }
        let first = match self.pattern.file_service {
            FileService::RoundRobin => self.next_file,
            FileService::Sequential => self.file,
            FileService::Random | FileService::Shaped(_) => {
                let draw = |_| self.drawn.draw_file(&mut self.streams.file);
                let mut draws = (0..FILE_DRAWS_MAX).map(draw);
                draws.find(|file| !self.regions[*file].done).unwrap_or(0)
            }
        };
        let found = (first..files).chain(0..first).find(|f| !self.regions[*f].done)?;
        (self.file, self.file_left) = (found, self.pattern.file_every - 1);
        self.next_file = (found + 1) % files;
        Some(found)
    }

    /// fio looks before each I/O whether the number of writes is a multiple, so that a read behind
    /// the N-th write brings another flush.
    #[inline]
    fn flush_is_due(&self) -> bool {
        let every = |n: u64| n > 0 && self.writes.is_multiple_of(n);
        !self.last_was_flush
            && self.writes > 0
            && (every(self.pattern.fsync) || every(self.pattern.fdatasync))
    }

    /// So many I/Os of a direction have been drawn.
    #[inline]
    fn count(&mut self, ios: u64, bytes: u64, direction: usize) {
        self.last_was_flush = false;
        self.ios += ios;
        self.pass_ios += ios;
        self.bytes_all += bytes;
        self.writes += if direction == WRITE { ios } else { 0 };
        // Of a trim-and-write only the write counts towards the amount.
        if !(self.pattern.trim_then_write && direction == TRIM) {
            self.bytes += bytes;
        }
    }

    /// Ends the pass and begins the next, if there is one; whether a flush comes between.
    fn end_pass(&mut self) -> bool {
        // As in fio random writes without a map are read back behind the last pass alone, others behind each; what is
        // read back counts towards io_size.
        let last_only = self.pattern.random && self.pattern.norandommap && self.amounts.again == 0;
        if !(last_only && self.has_more_passes()) {
            self.bytes_all += self.written.as_mut().map_or(0, Written::turn);
        }
        let (wrote, more) = (self.flushes_behind_pass(), self.has_more_passes());
        self.passes += 1;
        self.finished = !more;
        if more {
            self.amounts.begin_pass(&self.pattern);
            if self.pattern.repeat && !self.rules.endless {
                self.streams = self.first_streams.clone();
            }
            self.regions.iter_mut().for_each(|region| region.reset(&mut self.streams));
            (self.pass_ios, self.last_was_flush) = (0, false);
            (self.file, self.next_file, self.file_left, self.until_random) = (0, 0, 0, 1);
        }
        wrote
    }

    /// Whether another pass follows this one.
    fn has_more_passes(&self) -> bool {
        match self.amounts.io_size {
            _ if self.pass_ios == 0 => false,
            _ if self.rules.endless || self.amounts.again > 0 => true,
            _ if self.passes + 1 < self.pattern.loops => true,
            Some(io_size) => {
                self.ios < self.amounts.ios
                    && io_size.saturating_sub(self.bytes_all) >= self.pattern.block_max()
            }
            None => false,
        }
    }

    /// Whether this pass ends with a flush.
    fn flushes_behind_pass(&self) -> bool {
        self.pattern.end_fsync && self.pattern.directions[WRITE] && self.pass_ios > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::{ParseSource, parse};

    fn generator(options: &str) -> Generator {
        let include = |_: &str| Err(std::io::Error::other("nothing to include"));
        let source = ParseSource { file: "a".into(), env: Default::default(), include: &include };
        let text = format!("[a]\nbs=4k\nsize=1m\n{options}");
        let jobs = parse(&text, &source).expect("a job");
        Generator::new(&jobs.jobs[0], 0, 1 << 24, 3).expect("it fits")
    }

    #[test]
    fn what_is_drawn_ahead_is_what_is_drawn_one_by_one() {
        let plain = [
            "rw=write",
            "rw=randread",
            "rw=randwrite\nnorandommap\nloops=3",
            "rw=randread\nrandom_generator=lfsr\nloops=2\nrandrepeat=0",
            "rw=randtrim\nnumber_ios=100",
            "rw=randwrite\nio_size=3m\nbuffer_compress_percentage=30",
            "rw=read\nzonemode=strided\nzonesize=64k\nzoneskip=64k",
            "rw=randwrite\nend_fsync=1\nrandom_distribution=zipf:1.1\nnorandommap",
            "rw=randread\ntime_based\nruntime=1",
            "rw=read\ntime_based\nruntime=1\nbs=12k",
        ];
        let others = [
            "rw=randrw",
            "rw=randwrite\nbsrange=4k-64k",
            "rw=randwrite\nfsync=3",
            "rw=randread:8",
            "rw=randread\npercentage_random=50",
            "rw=randtrimwrite",
        ];
        for (options, is_plain) in
            plain.map(|o| (o, true)).into_iter().chain(others.map(|o| (o, false)))
        {
            let (mut ahead, mut one_by_one) = (generator(options), generator(options));
            assert_eq!(ahead.plain.is_some(), is_plain, "{options}");
            let (mut few, mut all) = (Vec::new(), Vec::new());
            while all.len() < 3000 {
                ahead.draw_ahead(&mut few, 7);
                if few.is_empty() {
                    break;
                }
                all.append(&mut few);
            }
            assert!(all.len() >= 20, "{options}");
            let expected: Vec<_> = (0..all.len()).map_while(|_| one_by_one.next()).collect();
            assert_eq!(all, expected, "{options}");
            assert_eq!(all.len() >= 3000, one_by_one.next().is_some(), "{options}");
        }
    }
}
