//! What the heads do next, and how long it takes them.

use super::mechanics::{Place, Positioning};
use super::schedule::Candidate;
use super::{Active, Ahead, Hdd, Task, Work};
use crate::device::{Command, Completion, Op, SECTOR};
use crate::stats::{Part, Parts};
use crate::units::NEVER;

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
        let track = || self.mechanics.track_sectors(self.mechanics.place(sector));
        first <= active.start() && active.end() > sector && active.start() <= sector + track()
    }

    fn candidate(&self, now: u64, order: u64, place: Place, write: bool) -> Candidate {
        let (here, there) = (self.mechanics.cylinder(self.track), place.cylinder);
        Candidate {
            order,
            distance: here.abs_diff(there),
            inwards: if there >= here {
                there - here
            } else {
                there + self.mechanics.cylinders() - here
            },
            positioning: self.mechanics.planned(now, self.track, place, write),
            waited: 0,
        }
    }

    fn score(&self, now: u64, active: &Active) -> u64 {
        if self.keys.wait_limit.is_some_and(|limit| now - active.submitted > limit.0) {
            return 0;
        }
        let write = active.command.op == Op::Write;
        let mut candidate = self.candidate(now, active.order, active.place, write);
        candidate.waited = now - active.submitted;
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

    /// The command of the host that is best begun at `now`, by its place in the queue.
    fn best_command(&self, now: u64) -> Option<usize> {
        let shown = self.queue.iter().take(self.keys.queue_depth as usize).enumerate();
        shown.map(|(place, active)| (self.score(now, active), place)).min().map(|(_, place)| place)
    }

    /// Chooses what comes after that which the heads are doing.
    pub(super) fn choose_ahead(&mut self) {
        if self.keys.choose_ahead && self.work.task != Task::Idle {
            let place = self.best_command(self.work.end);
            self.chosen = place.map(|place| self.queue[place].order);
        }
    }

    /// The next command of the host, by its place in the queue: the one that was chosen, if it still waits.
    fn next_command(&mut self, now: u64) -> Option<usize> {
        let order = self.chosen.take();
        let place = order.and_then(|order| self.queue.iter().position(|a| a.order == order));
        place.or_else(|| self.best_command(now))
    }

    /// The next stretch of the write cache, by its start, and its score.
    fn best_stretch(&self, now: u64) -> Option<(u64, u64)> {
        // The cylinder under the heads by address: that of what was transferred last.
        let here = self.work.active.end();
        let near = self.dirty.near(here, DESTAGE_NEAR);
        // Those in the cache were acknowledged before all that wait.
        let candidate = |start| self.candidate(now, 0, self.mechanics.place(start), true);
        near.map(|(start, _)| ((self.policy)(&candidate(start)), start)).min()
    }

    /// When the heads turn to the write cache though nothing waits for room in it: when no read has come for a
    /// while, so that a reader with pauses keeps the heads, or when its oldest data is too old to wait for that.
    fn destage_at(&self) -> u64 {
        if !self.waiting.is_empty() || !self.flushes.is_empty() {
            return 0;
        }
        self.quiet_at.min(self.dirty_since + self.keys.destage_age.0)
    }

    /// Gives the heads something to do, if they have nothing and there is something.
    pub(super) fn start(&mut self, now: u64) {
        let cached = self.dirty.sectors() > 0;
        if self.work.task != Task::Idle || (self.queue.is_empty() && !cached) {
            return;
        }
        self.read_on(now);
        self.answer_hits(now);
        let command = self.next_command(now);
        let destage_at = if cached { self.destage_at() } else { NEVER };
        let old = now >= destage_at;
        // Commands go first; of what has to be destaged a stretch goes behind each of them.
        match command {
            Some(place) if !old || self.destaged => {
                let active = self.queue.remove(place);
                self.start_command(now, active);
            }
            _ if old => {
                let (_, start) = self.best_stretch(now).expect("the write cache is not empty");
                self.destage(now, start);
            }
            _ => self.choose_at = destage_at,
        }
        self.choose_ahead();
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
        self.destaged = task == Task::Destage;
        if self.destaged {
            self.destaging = 0;
            self.versions.arrive(active.end());
            self.relieved(end);
        } else {
            if active.command.op == Op::Write {
                self.versions.land(&active.command, active.end() - active.start());
            } else {
                self.quiet_at = end + self.keys.destage_after.0;
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
        if self.chosen.is_some() {
            // Before anybody hears that this one is done.
            self.choose_at = NEVER;
            self.start(end);
        }
    }
}
