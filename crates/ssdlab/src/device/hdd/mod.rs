//! A hard disk: seeks, rotation, zones, read-ahead, a write cache, and a queue that it works off in
//! the order it likes best.
//!
//! Two things work beside each other: the heads, which do one transfer at a time, and the
//! electronics, which answer from RAM (hits, writes into the cache), in order of arrival. When the
//! heads have nothing to do they read on behind the last read. A flush lets no further write into
//! the cache until the cache is empty, as ATA's, which is not queued.

mod buffer;
mod mechanics;
pub mod schedule;

use super::versions::Versions;
use super::{Build, Command, Completion, Device, Op, SECTOR};
use crate::error::{Error, Result};
use crate::persist::{persistent, persistent_enum};
use crate::stats::{Part, Parts};
use crate::units::{Bytes, NEVER, Nanos, Rate};
use buffer::{Dirty, Segments};
use mechanics::{Mechanics, Positioning};
use schedule::{Candidate, DISK_SCHEDULES, Policy};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// What a rig says about a hard disk.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HddKeys {
    /// Bytes that the host can address.
    pub capacity: Bytes,
    /// Turns a minute.
    pub rpm: u32,
    /// Least seek, to the next cylinder.
    #[serde(default = "default_seek_track")]
    pub seek_track: Nanos,
    /// Mean seek of reads between random places.
    pub seek_average: Nanos,
    /// Seek over the whole stroke; without it seeks grow with the square root of the distance.
    #[serde(default)]
    pub seek_full: Option<Nanos>,
    /// What a seek takes longer before a write.
    #[serde(default)]
    pub write_settle: Nanos,
    /// Switching to another head of the cylinder.
    #[serde(default = "default_head_switch")]
    pub head_switch: Nanos,
    /// Surfaces with data.
    #[serde(default = "default_heads")]
    pub heads: u32,
    /// Sequential rate on the outermost tracks, switches counted in.
    pub sustained_outer: Rate,
    /// The same on the innermost tracks.
    pub sustained_inner: Rate,
    /// Stretches of the disk with tracks of one length.
    #[serde(default = "default_zones")]
    pub zones: u32,
    /// Time of the electronics for each command.
    #[serde(default = "default_command_time")]
    pub command_time: Nanos,
    /// Rate of the electronics for data from and into RAM.
    #[serde(default = "default_ram_rate")]
    pub ram_rate: Rate,
    /// Commands among which the next one is chosen (SATA NCQ: 32).
    #[serde(default = "default_queue_depth")]
    pub queue_depth: u32,
    /// In what order they are worked off.
    #[serde(default = "default_schedule")]
    pub schedule: String,
    /// A command that has waited so long goes first; without it none does.
    #[serde(default)]
    pub wait_limit: Option<Nanos>,
    /// RAM for what was read and read ahead; 0 for none.
    #[serde(default = "default_read_cache")]
    pub read_cache: Bytes,
    /// Stretches of the disk that it holds.
    #[serde(default = "default_segments")]
    pub segments: u32,
    /// RAM in which writes are finished before they are on the platters; 0: write-through.
    #[serde(default)]
    pub write_cache: Bytes,
}

fn default_seek_track() -> Nanos {
    Nanos::micros(800)
}
fn default_head_switch() -> Nanos {
    Nanos::micros(600)
}
fn default_heads() -> u32 {
    2
}
fn default_zones() -> u32 {
    16
}
fn default_command_time() -> Nanos {
    Nanos::micros(100)
}
fn default_ram_rate() -> Rate {
    Rate(1_000_000_000)
}
fn default_queue_depth() -> u32 {
    32
}
fn default_schedule() -> String {
    "sptf".into()
}
fn default_read_cache() -> Bytes {
    Bytes::mib(16)
}
fn default_segments() -> u32 {
    16
}

const QUEUE_DEPTH_MAX: u32 = 4096;
const SEGMENTS_MAX: u32 = 1024;

/// Sectors of one transfer from the write cache: longer stretches go in several.
const DESTAGE_SECTORS: u64 = (1 << 20) / SECTOR;

/// Stretches of the write cache on each side of the heads among which the next one is chosen: those
/// nearest by address are those nearest to reach.
const DESTAGE_NEAR: usize = 32;

#[derive(Clone, Copy, Debug, Default)]
struct Active {
    command: Command,
    submitted: u64,
    order: u64,
    digest: u64,
}

impl Active {
    fn start(&self) -> u64 {
        self.command.offset / SECTOR
    }
    fn end(&self) -> u64 {
        (self.command.offset + self.command.len) / SECTOR
    }
}

/// What the heads do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Task {
    /// Nothing, or reading ahead.
    #[default]
    Idle,
    /// A command of the host.
    Host,
    /// Writing a stretch of the write cache.
    Destage,
}

#[derive(Clone, Copy, Debug, Default)]
struct Work {
    task: Task,
    /// The command, of `Host`.
    active: Active,
    /// When the heads began to move, and when they will be done.
    begin: u64,
    end: u64,
    seek: u64,
    rotation: u64,
    /// Sectors of a `Destage`.
    sectors: u64,
    /// Where to keep what is read.
    segment: Option<u64>,
}

/// Reading on behind the last read.
#[derive(Clone, Copy, Debug, Default)]
struct Ahead {
    on: bool,
    segment: u64,
    /// A sector, and when its begin passes under the head.
    sector: u64,
    at: u64,
    /// Where it ends.
    limit: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    reads: u64,
    writes: u64,
    trims: u64,
    flushes: u64,
    bytes_read: u64,
    bytes_written: u64,
    hits: u64,
    accesses: u64,
    destages: u64,
    destaged_bytes: u64,
    busy: u64,
    seeking: u64,
    rotating: u64,
}

/// See the module.
pub struct Hdd {
    keys: HddKeys,
    policy: Policy,
    mechanics: Mechanics,
    /// Track under the head.
    track: u64,
    work: Work,
    /// When the heads choose what is next: once all that comes at that instant is there.
    choose_at: u64,
    ahead: Ahead,
    /// For the heads, in order of arrival.
    queue: Vec<Active>,
    arrivals: u64,
    /// Answers of the electronics, in order of time.
    answers: VecDeque<Completion>,
    electronics_free: u64,
    segments: Segments,
    dirty: Dirty,
    /// Sectors on their way from the write cache to the platters.
    destaging: u64,
    /// Writes that wait for room in the write cache, or for a flush.
    waiting: VecDeque<Active>,
    flushes: VecDeque<Active>,
    versions: Versions,
    counts: Counts,
}

persistent_enum!(Task { Idle, Host, Destage });
persistent!(Active { state { command, submitted, order, digest } });
persistent!(Work { state { task, active, begin, end, seek, rotation, sectors, segment } });
persistent!(Ahead { state { on, segment, sector, at, limit } });
persistent!(Counts {
    state {
        reads, writes, trims, flushes, bytes_read, bytes_written, hits, accesses, destages,
        destaged_bytes, busy, seeking, rotating,
    }
});
persistent!(Hdd {
    state {
        track, work, choose_at, ahead, queue, arrivals, answers, electronics_free, segments, dirty, destaging,
        waiting, flushes, versions, counts,
    }
    built { keys, policy, mechanics }
});

impl Hdd {
    /// A disk of these keys.
    ///
    /// # Errors
    /// [`Error::Rig`] with the key that is wrong.
    pub fn new(keys: &HddKeys, build: &Build) -> Result<Self> {
        if keys.capacity.0 == 0 || !keys.capacity.0.is_multiple_of(SECTOR) {
            let problem = format!("{} is not a positive multiple of {SECTOR} B", keys.capacity);
            return Err(Error::rig("capacity", problem));
        }
        let counts = [
            ("queue_depth", keys.queue_depth, QUEUE_DEPTH_MAX),
            ("segments", keys.segments, SEGMENTS_MAX),
        ];
        for (key, found, most) in counts {
            if !(1..=most).contains(&found) {
                return Err(Error::rig(key, format!("found {found}, expected from 1 to {most}")));
            }
        }
        if keys.ram_rate.0 < 1_000_000 {
            let problem = format!("found {}, expected at least 1MB/s", keys.ram_rate);
            return Err(Error::rig("ram_rate", problem));
        }
        let schedule = DISK_SCHEDULES.find(&keys.schedule).map_err(|e| e.under("schedule"))?;
        Ok(Hdd {
            policy: schedule.build,
            mechanics: Mechanics::new(keys)?,
            track: 0,
            work: Work::default(),
            choose_at: NEVER,
            ahead: Ahead::default(),
            queue: Vec::new(),
            arrivals: 0,
            answers: VecDeque::new(),
            electronics_free: 0,
            segments: Segments::new(keys.read_cache.0 / SECTOR, keys.segments),
            dirty: Dirty::new(),
            destaging: 0,
            waiting: VecDeque::new(),
            flushes: VecDeque::new(),
            versions: Versions::new(build.keep_versions),
            counts: Counts::default(),
            keys: keys.clone(),
        })
    }

    fn count(&mut self, command: &Command) {
        let counts = &mut self.counts;
        match command.op {
            Op::Read => {
                counts.reads += 1;
                counts.bytes_read += command.len;
            }
            Op::Write => {
                counts.writes += 1;
                counts.bytes_written += command.len;
            }
            Op::Trim => counts.trims += 1,
            Op::Flush => counts.flushes += 1,
            Op::Purge => {}
        }
    }

    // --- the electronics

    /// Answers from RAM, at `now` or when earlier answers are out.
    fn answer(&mut self, now: u64, active: &Active) {
        let data = if matches!(active.command.op, Op::Read | Op::Write) {
            self.keys.ram_rate.time(active.command.len)
        } else {
            0
        };
        let begin = now.max(self.electronics_free);
        let time = begin + (self.keys.command_time.0 + data).max(1);
        self.electronics_free = time;
        let mut parts = Parts::default();
        let waited = if active.command.op == Op::Read { Part::DiskWait } else { Part::BufferWait };
        parts[waited] = now - active.submitted;
        parts[Part::Controller] = time - now;
        let tag = active.command.tag;
        self.answers.push_back(Completion { tag, time, parts, digest: active.digest });
    }

    /// Whether all of a read is in RAM.
    fn hit(&mut self, now: u64, active: &Active) -> bool {
        self.read_on(now);
        let (start, end) = (active.start(), active.end());
        if let Some(segment) = self.segments.holding(start, end) {
            self.segments.touch(segment);
            return true;
        }
        self.dirty.holds(start, end)
    }

    fn submit_write(&mut self, now: u64, active: Active) {
        self.segments.invalidate(active.start(), active.end());
        if self.ahead.on && self.segments.room() > 0 {
            // What is read ahead may just be what is written.
            self.read_on(now);
            self.ahead.on = false;
        }
        if self.keys.write_cache.0 == 0 {
            self.queue.push(active);
        } else if self.waiting.is_empty() && self.room_for(&active) {
            self.accept(now, &active);
        } else {
            self.waiting.push_back(active);
        }
    }

    fn room_for(&self, active: &Active) -> bool {
        let held = self.dirty.sectors() + self.destaging;
        let fits = held + active.command.len / SECTOR <= self.keys.write_cache.0 / SECTOR;
        self.flushes.is_empty() && (fits || held == 0)
    }

    fn accept(&mut self, now: u64, active: &Active) {
        self.dirty.insert(active.start(), active.end());
        self.answer(now, active);
    }

    /// The write cache has more room, or is empty.
    fn relieved(&mut self, now: u64) {
        if self.dirty.sectors() + self.destaging == 0 {
            while let Some(flush) = self.flushes.pop_front() {
                self.answer(now, &flush);
            }
        }
        while let Some(next) = self.waiting.front().copied()
            && self.room_for(&next)
        {
            self.waiting.pop_front();
            self.accept(now, &next);
        }
    }

    // --- the heads

    /// Brings what was read ahead up to date.
    fn read_on(&mut self, now: u64) {
        if !self.ahead.on || self.work.task != Task::Idle {
            return;
        }
        let Ahead { segment, sector, at, limit, .. } = self.ahead;
        let (until, sector, at) = self.mechanics.reading_on(sector, at, limit, now);
        self.segments.extend(segment as usize, until);
        (self.ahead.sector, self.ahead.at) = (sector, at);
        self.track = self.mechanics.place(until.max(1) - 1).track;
        // At its end the heads stay on the track and the platters turn on.
        self.ahead.on = until < limit;
    }

    /// Where a read can be had by reading on: not before what was read, and at most a track beyond.
    fn follows(&self, active: &Active) -> bool {
        if !self.ahead.on || active.command.op != Op::Read {
            return false;
        }
        let Ahead { segment, sector, .. } = self.ahead;
        let first = self.segments.start(segment as usize);
        let track = self.mechanics.track_sectors(self.mechanics.place(sector));
        first <= active.start() && active.start() <= sector + track && active.end() > sector
    }

    fn candidate(&self, now: u64, order: u64, sector: u64, write: bool) -> Candidate {
        let place = self.mechanics.place(sector);
        let (here, there) =
            (self.mechanics.cylinder(self.track), self.mechanics.cylinder(place.track));
        let Positioning { seek, rotation } =
            self.mechanics.positioning(now, self.track, place, write);
        Candidate {
            order,
            distance: here.abs_diff(there),
            inwards: if there >= here {
                there - here
            } else {
                there + self.mechanics.cylinders() - here
            },
            positioning: seek + rotation,
        }
    }

    fn score(&self, now: u64, active: &Active) -> u64 {
        if self.keys.wait_limit.is_some_and(|limit| now - active.submitted > limit.0) {
            return 0;
        }
        let write = active.command.op == Op::Write;
        let mut candidate = self.candidate(now, active.order, active.start(), write);
        if self.follows(active) {
            (candidate.distance, candidate.inwards, candidate.positioning) = (0, 0, 0);
        }
        (self.policy)(&candidate)
    }

    /// What was read since it came may hold what a waiting read asks for.
    fn answer_hits(&mut self, now: u64) {
        let mut place = 0;
        while place < self.queue.len().min(self.keys.queue_depth as usize) {
            let active = self.queue[place];
            if active.command.op == Op::Read && self.hit(now, &active) {
                self.queue.remove(place);
                self.counts.hits += 1;
                self.answer(now, &active);
            } else {
                place += 1;
            }
        }
    }

    /// The next command of the host, by its place in the queue, and its score.
    fn best_command(&self, now: u64) -> Option<(u64, usize)> {
        let shown = self.queue.iter().take(self.keys.queue_depth as usize).enumerate();
        shown.map(|(place, active)| (self.score(now, active), place)).min()
    }

    /// The next stretch of the write cache, by its start, and its score.
    fn best_stretch(&self, now: u64) -> Option<(u64, u64)> {
        // The cylinder under the heads by address: that of what was transferred last.
        let here = self.work.active.end();
        let near = self.dirty.near(here, DESTAGE_NEAR);
        // Those in the cache were acknowledged before all that wait.
        near.map(|(start, _)| ((self.policy)(&self.candidate(now, 0, start, true)), start)).min()
    }

    /// Gives the heads something to do, if they have nothing and there is something.
    fn start(&mut self, now: u64) {
        if self.work.task != Task::Idle || (self.queue.is_empty() && self.dirty.sectors() == 0) {
            return;
        }
        self.read_on(now);
        self.answer_hits(now);
        let command = self.best_command(now);
        // What is in the cache can wait until something waits for it.
        let pressed = !self.waiting.is_empty() || !self.flushes.is_empty();
        let stretch = if command.is_none() || pressed { self.best_stretch(now) } else { None };
        match (command, stretch) {
            (Some((score, place)), other) if other.is_none_or(|(least, _)| score <= least) => {
                let active = self.queue.remove(place);
                self.start_command(now, active);
            }
            (_, Some((_, start))) => self.destage(now, start),
            _ => {}
        }
    }

    fn start_command(&mut self, now: u64, active: Active) {
        // The electronics have read the command while the heads were busy with others.
        let begin = now.max(active.submitted + self.keys.command_time.0);
        let (start, sectors) = (active.start(), active.end() - active.start());
        let mut work = Work { task: Task::Host, active, begin, ..Work::default() };
        if self.follows(&active) {
            let Ahead { segment, sector, at, .. } = self.ahead;
            let (end, track) = self.mechanics.transfer(sector, active.end() - sector, at);
            (work.end, self.track, work.segment) = (end.max(begin + 1), track, Some(segment));
        } else {
            let write = active.command.op == Op::Write;
            if !write {
                let known = self.segments.extending(start);
                work.segment = known.or_else(|| self.segments.begin(start)).map(|s| s as u64);
            }
            self.move_heads(&mut work, start, sectors, write);
        }
        self.work = work;
        self.ahead.on = false;
    }

    fn destage(&mut self, now: u64, start: u64) {
        let sectors = self.dirty.take(start, DESTAGE_SECTORS) - start;
        self.destaging = sectors;
        // Its address is where the heads will be.
        let command =
            Command { offset: start * SECTOR, len: sectors * SECTOR, ..Command::default() };
        let active = Active { command, ..Active::default() };
        let mut work = Work { task: Task::Destage, active, begin: now, sectors, ..Work::default() };
        self.counts.destages += 1;
        self.counts.destaged_bytes += sectors * SECTOR;
        self.move_heads(&mut work, start, sectors, true);
        self.work = work;
        self.ahead.on = false;
    }

    fn move_heads(&mut self, work: &mut Work, start: u64, sectors: u64, write: bool) {
        let place = self.mechanics.place(start);
        let Positioning { seek, rotation } =
            self.mechanics.positioning(work.begin, self.track, place, write);
        (work.seek, work.rotation) = (seek, rotation);
        let at = work.begin + seek + rotation;
        (work.end, self.track) = self.mechanics.transfer(start, sectors, at);
        self.counts.accesses += 1;
        self.counts.seeking += seek;
        self.counts.rotating += rotation;
    }

    /// The heads are done.
    fn finish(&mut self, done: &mut Vec<Completion>) {
        let Work { task, active, begin, end, seek, rotation, segment, .. } = self.work;
        self.counts.busy += end - begin;
        self.work.task = Task::Idle;
        if task == Task::Destage {
            self.destaging = 0;
            self.relieved(end);
        } else {
            let mut parts = Parts::default();
            parts[Part::Controller] = self.keys.command_time.0;
            parts[Part::DiskWait] = begin - active.submitted - self.keys.command_time.0;
            (parts[Part::Seek], parts[Part::Rotation]) = (seek, rotation);
            parts[Part::Platter] = end - begin - seek - rotation;
            let tag = active.command.tag;
            done.push(Completion { tag, time: end, parts, digest: active.digest });
        }
        if let Some(segment) = segment {
            self.segments.extend(segment as usize, active.end());
            self.segments.touch(segment as usize);
            let last = self.keys.capacity.0 / SECTOR;
            // Half of it behind the host, so that what was read can be read again.
            let limit = (active.end() + self.segments.room() / 2).min(last);
            let on = active.end() < limit;
            self.ahead = Ahead { on, segment, sector: active.end(), at: end, limit };
            if on {
                // The first sector read ahead may lie on the next track.
                let place = self.mechanics.place(active.end());
                let ahead = self.mechanics.positioning(end, self.track, place, false);
                self.ahead.at = end + ahead.seek + ahead.rotation;
            }
        }
        self.choose_at = end;
    }
}

impl Device for Hdd {
    fn kind(&self) -> &'static str {
        "hdd"
    }

    fn capacity(&self) -> u64 {
        self.keys.capacity.0
    }

    fn submit(&mut self, now: u64, command: Command) {
        self.count(&command);
        let digest = self.versions.perform(&command);
        self.arrivals += 1;
        let active = Active { command, submitted: now, order: self.arrivals, digest };
        match command.op {
            Op::Read if self.hit(now, &active) => {
                self.counts.hits += 1;
                self.answer(now, &active);
            }
            Op::Read => self.queue.push(active),
            Op::Write => self.submit_write(now, active),
            Op::Flush => {
                self.flushes.push_back(active);
                self.relieved(now);
            }
            Op::Trim | Op::Purge => {
                if command.op == Op::Purge {
                    self.segments.clear();
                    self.ahead.on = false;
                    self.dirty.clear();
                    self.relieved(now);
                }
                self.answer(now, &active);
            }
        }
        if self.work.task == Task::Idle {
            self.choose_at = now;
        }
    }

    fn next_event(&self) -> u64 {
        let heads = if self.work.task == Task::Idle { self.choose_at } else { self.work.end };
        heads.min(self.answers.front().map_or(NEVER, |answer| answer.time))
    }

    fn advance(&mut self, limit: u64, done: &mut Vec<Completion>) -> u64 {
        let before = done.len();
        loop {
            let now = self.next_event();
            if now > limit || now == NEVER {
                return limit;
            }
            if self.work.task == Task::Idle && self.choose_at == now {
                self.choose_at = NEVER;
                self.start(now);
            } else if self.work.task != Task::Idle && self.work.end == now {
                self.finish(done);
            }
            while self.answers.front().is_some_and(|answer| answer.time == now) {
                done.extend(self.answers.pop_front());
            }
            if done.len() > before {
                return now;
            }
        }
    }

    fn settle(&mut self, now: u64) -> u64 {
        let mut done = Vec::new();
        let mut settled = now;
        while self.next_event() != NEVER {
            settled = settled.max(self.next_event());
            self.advance(settled, &mut done);
        }
        debug_assert!(done.is_empty(), "something is in flight");
        self.read_on(settled);
        self.ahead.on = false;
        settled
    }

    fn apply(&mut self, command: &Command) {
        self.count(command);
        self.versions.perform(command);
        match command.op {
            Op::Write => self
                .segments
                .invalidate(command.offset / SECTOR, (command.offset + command.len) / SECTOR),
            Op::Purge => self.segments.clear(),
            _ => {}
        }
    }

    fn content(&self, offset: u64) -> u64 {
        self.versions.content(offset)
    }

    fn counters(&self, visit: &mut dyn FnMut(&'static str, u64)) {
        let counts = &self.counts;
        visit("host_reads", counts.reads);
        visit("host_writes", counts.writes);
        visit("host_trims", counts.trims);
        visit("host_flushes", counts.flushes);
        visit("host_bytes_read", counts.bytes_read);
        visit("host_bytes_written", counts.bytes_written);
        visit("read_hits", counts.hits);
        visit("accesses", counts.accesses);
        visit("destages", counts.destages);
        visit("destaged_bytes", counts.destaged_bytes);
        visit("heads_busy_ns", counts.busy);
        visit("heads_seek_ns", counts.seeking);
        visit("heads_rotation_ns", counts.rotating);
    }
}
