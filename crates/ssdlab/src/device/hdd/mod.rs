//! A hard disk: seeks, rotation, zones, read-ahead, a write cache, and a queue that it works off in
//! the order it likes best.
//!
//! Two things work beside each other: the heads, which do one transfer at a time, and the
//! electronics, which answer from RAM (hits, writes into the cache), in order of arrival. When the
//! heads have nothing to do they read on behind the last read. A flush lets no further write into
//! the cache until the cache is empty, as ATA's, which is not queued.

mod buffer;
mod heads;
mod keys;
mod mechanics;
mod power;
pub mod schedule;

use super::versions::Versions;
use super::{
    Build, Command, Completion, Device, HOST, HostCounts, Missed, Op, PowerCounts, SECTOR,
};
use crate::error::{Error, Result};
use crate::persist::{persistent, persistent_enum};
use crate::stats::{Part, Parts};
use crate::units::NEVER;
use buffer::{Dirty, Segments};
use mechanics::{Mechanics, Place};
use schedule::{DISK_SCHEDULES, Policy};
use std::collections::VecDeque;

pub use keys::HddKeys;

const QUEUE_DEPTH_MAX: u32 = 4096;
const SEGMENTS_MAX: u32 = 1024;
const WRITE_CACHE_SEGMENTS_MAX: u32 = 1 << 20;

#[derive(Clone, Copy, Debug, Default)]
struct Active {
    command: Command,
    /// Where it begins.
    place: Place,
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
    /// A sector, and when its start passes under the head.
    sector: u64,
    at: u64,
    /// Where it ends.
    limit: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    host: HostCounts,
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
    /// The one of them that is next, by its order, if it was chosen ahead.
    chosen: Option<u64>,
    /// Answers of the electronics, in order of time.
    answers: VecDeque<Completion>,
    electronics_free: u64,
    segments: Segments,
    dirty: Dirty,
    /// Sectors on their way from the write cache to the platters.
    destaging: u64,
    /// Since when the write cache has not been empty.
    dirty_since: u64,
    /// When reads will have been absent for `destage_after`.
    quiet_at: u64,
    /// Whether the last transfer was from the write cache.
    destaged: bool,
    /// Writes that wait for room in the write cache, or for a flush.
    waiting: VecDeque<Active>,
    flushes: VecDeque<Active>,
    versions: Versions,
    counts: Counts,
    /// When it is ready after a loss of power.
    ready_at: u64,
    power: PowerCounts,
}

persistent_enum!(Task { Idle, Host, Destage });
persistent!(Active { state { command, place, submitted, order, digest } });
persistent!(Work { state { task, active, begin, end, seek, rotation, sectors, segment } });
persistent!(Ahead { state { on, segment, sector, at, limit } });
persistent!(Counts {
    state {
        host, hits, accesses, destages,
        destaged_bytes, busy, seeking, rotating,
    }
});
persistent!(Hdd {
    state {
        track, work, choose_at, ahead, queue, arrivals, chosen, answers, electronics_free, segments, dirty, destaging,
        dirty_since, quiet_at, destaged, waiting, flushes, versions, counts, ready_at, power,
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
            ("queue_depth", keys.queue_depth, 1, QUEUE_DEPTH_MAX),
            ("segments", keys.segments, 0, SEGMENTS_MAX),
            ("write_cache_segments", keys.write_cache_segments, 1, WRITE_CACHE_SEGMENTS_MAX),
        ];
        for (key, found, least, most) in counts {
            if !(least..=most).contains(&found) {
                let problem = format!("found {found}, expected from {least} to {most}");
                return Err(Error::rig(key, problem));
            }
        }
        if keys.ram_rate.0 < 1_000_000 {
            let problem = format!("found {}, expected at least 1MB/s", keys.ram_rate);
            return Err(Error::rig("ram_rate", problem));
        }
        let schedule = DISK_SCHEDULES.find(&keys.schedule).map_err(|e| e.under("schedule"))?;
        Ok(Hdd {
            policy: schedule.build,
            mechanics: Mechanics::new(keys, build.stream("spindle"))?,
            track: 0,
            work: Work::default(),
            choose_at: NEVER,
            ahead: Ahead::default(),
            queue: Vec::new(),
            arrivals: 0,
            chosen: None,
            answers: VecDeque::new(),
            electronics_free: 0,
            segments: Segments::new(keys.share(), keys.segments),
            dirty: Dirty::new(),
            destaging: 0,
            dirty_since: 0,
            quiet_at: 0,
            destaged: false,
            waiting: VecDeque::new(),
            flushes: VecDeque::new(),
            versions: Versions::new(build.keep_versions),
            counts: Counts::default(),
            ready_at: 0,
            power: PowerCounts::default(),
            keys: keys.clone(),
        })
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
        let waited = if active.command.op == Op::Read { Part::DiskWait } else { Part::BufferWait };
        let parts = Parts::of([(waited, now - active.submitted), (Part::Controller, time - now)]);
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
        self.read_on(now);
        let (start, end) = (active.start(), active.end());
        // What is being read into a segment that goes must not bring it back.
        if self.ahead.on && self.segments.overlaps(self.ahead.segment as usize, start, end) {
            self.ahead.on = false;
        }
        let reading = &self.work.active;
        let written = reading.start() < end && start < reading.end();
        let lost = |segment: u64| written || self.segments.overlaps(segment as usize, start, end);
        if self.work.segment.is_some_and(lost) {
            self.work.segment = None;
        }
        self.segments.invalidate(start, end);
        if !self.caches_writes() {
            self.queue.push(active);
        } else if self.waiting.is_empty() && self.room_for(&active) {
            self.accept(now, &active);
        } else {
            self.waiting.push_back(active);
        }
    }

    fn caches_writes(&self) -> bool {
        self.keys.write_cache_enabled && self.keys.share() > 0
    }

    fn room_for(&self, active: &Active) -> bool {
        let held = self.dirty.sectors() + self.destaging;
        let fits = held + active.command.len / SECTOR <= self.keys.share();
        let stretches = self.dirty.stretches() + usize::from(self.destaging > 0);
        let tracked = stretches < self.keys.write_cache_segments as usize
            || self.dirty.touches(active.start(), active.end());
        self.flushes.is_empty() && (fits && tracked || held == 0)
    }

    fn accept(&mut self, now: u64, active: &Active) {
        if self.dirty.sectors() + self.destaging == 0 {
            self.dirty_since = now;
        }
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
}

impl Device for Hdd {
    fn kind(&self) -> &'static str {
        "hdd"
    }

    fn capacity(&self) -> u64 {
        self.keys.capacity.0
    }

    fn submit(&mut self, now: u64, command: Command) {
        self.counts.host.count(&command);
        let digest = self.versions.perform(&command);
        self.arrivals += 1;
        let place = self.mechanics.place(command.offset / SECTOR);
        let active = Active { command, place, submitted: now, order: self.arrivals, digest };
        if command.op == Op::Read {
            self.quiet_at = now + self.keys.destage_after.0;
        }
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
            self.choose_at = now.max(self.ready_at);
        } else if self.chosen.is_none() {
            self.choose_ahead();
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

    fn power_cut(&mut self, now: u64, missed: &mut Missed) -> u64 {
        self.lose_power(now, missed)
    }

    fn is_volatile(&self) -> bool {
        self.caches_writes()
    }

    fn apply(&mut self, command: &Command) {
        self.counts.host.count(command);
        self.versions.apply(command);
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
        counts.host.visit(HOST, visit);
        visit("read_hits", counts.hits);
        visit("accesses", counts.accesses);
        visit("destages", counts.destages);
        visit("destaged_bytes", counts.destaged_bytes);
        visit("heads_busy_ns", counts.busy);
        visit("heads_seek_ns", counts.seeking);
        visit("heads_rotation_ns", counts.rotating);
        self.power.visit(visit);
    }
}
