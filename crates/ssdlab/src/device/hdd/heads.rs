//! What the heads do next, and how long it takes them.

use super::mechanics::Positioning;
use super::schedule::Candidate;
use super::{Active, Ahead, Hdd, Task, Work};
use crate::device::{Command, Completion, Op, SECTOR};
use crate::stats::{Part, Parts};

/// Sectors of one transfer from the write cache: longer stretches go in several.
const DESTAGE_SECTORS: u64 = (1 << 20) / SECTOR;

/// Stretches of the write cache on each side of the heads among which the next one is chosen: those
/// nearest by address are those nearest to reach.
const DESTAGE_NEAR: usize = 32;

impl Hdd {
    /// Brings what was read ahead up to date.
    pub(super) fn read_on(&mut self, now: u64) {
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
    pub(super) fn answer_hits(&mut self, now: u64) {
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
    pub(super) fn start(&mut self, now: u64) {
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
        self.versions.leave(start, start + sectors);
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
    pub(super) fn finish(&mut self, done: &mut Vec<Completion>) {
        let Work { task, active, begin, end, seek, rotation, segment, .. } = self.work;
        self.counts.busy += end - begin;
        self.work.task = Task::Idle;
        if task == Task::Destage {
            self.destaging = 0;
            self.versions.arrive(active.end());
            self.relieved(end);
        } else {
            if active.command.op == Op::Write {
                self.versions.land(&active.command, active.end() - active.start());
            }
            let handling = self.keys.command_time.0;
            let parts = Parts::of([
                (Part::Controller, handling),
                (Part::DiskWait, begin - active.submitted - handling),
                (Part::Seek, seek),
                (Part::Rotation, rotation),
                (Part::Platter, end - begin - seek - rotation),
            ]);
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
