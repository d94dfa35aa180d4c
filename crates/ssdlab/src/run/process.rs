//! One process of a job: which I/O comes next, and whether its time has come.

use super::LOOK_AHEAD;
use super::flow::Share;
use super::pacing::{Admit, Pacing, Rate, Think};
use super::replay::{Due, Replayed};
use super::watch::{Failure, Watch};
use crate::device::{Distance, Op};
use crate::job::{Generator, Io, JobSpec, PerDirection};
use crate::rng::Stream;
use crate::units::NEVER;

/// Where a process is in its life.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Stage {
    /// Not started: waits for a delay or for other jobs.
    Waiting,
    /// Issues I/Os.
    Running,
    /// Issues no more and waits for what is in flight.
    Draining,
    /// Ended.
    Done,
}

/// What a process would do now.
pub(super) enum Next {
    /// Issue what [`Process::take`] gives.
    Issue,
    /// Nothing before that instant.
    WaitUntil(u64),
    /// Nothing before something in flight completes.
    WaitForCompletion,
    /// No more I/O.
    End,
}

/// One process of a job.
pub(super) struct Process {
    /// Index of its job in the job file.
    pub job: u32,
    /// Collector of its statistics.
    pub unit: u32,
    pub stage: Stage,
    pub in_flight: u32,
    /// Slots for I/Os that are not in flight.
    pub free: Vec<u32>,
    /// A flush is in flight: fsync blocks the process.
    pub flushing: bool,
    /// More arrived than can be kept in flight.
    pub overrun: bool,
    /// Not started before this instant of the run.
    pub delay_until: u64,
    /// Waits for everything that runs (the first process of a job after a stonewall).
    pub stonewall: bool,
    pub started: u64,
    ramp_ns: u64,
    /// Completions from this instant on are measured; never where they are watched.
    pub record_from: u64,
    /// No I/O is issued from this instant on.
    pub end: u64,
    /// When the process has asked to be woken; `NEVER` if it has not.
    pub wake_at: u64,
    pub issued_ios: u64,
    pub issued_bytes: u64,
    /// What is looked at of its I/Os.
    pub watch: Option<Box<Watch>>,
    pub failure: Option<Failure>,
    /// Time, not the amount, has ended the issue of I/Os.
    timed_out: bool,
    generator: Generator,
    /// Drawn before their turn, the next one at `turn`.
    ahead: Vec<Io>,
    turn: usize,
    /// Nothing asks how far the generator has come, nor does time decide what it draws.
    looks_ahead: bool,
    pacing: Option<Box<Pacing>>,
}

impl Process {
    pub fn new(
        spec: &JobSpec,
        job: u32,
        thread: u32,
        generator: Generator,
        seed: u64,
        slots: std::ops::Range<u32>,
    ) -> Self {
        let label = |what: &str| format!("job/{}/{thread}/{what}", spec.name);
        let (least, most) = spec.schedule.start_delay_ns;
        let delay_until = match most.saturating_sub(least) {
            0 => least,
            span => least + Stream::new(seed, &label("startdelay")).below(span + 1),
        };
        let watch = Watch::new(spec);
        let watched = watch.as_ref().is_some_and(|watch| watch.paces());
        let stream = Stream::new(seed, &label("rate"));
        let pacing = Pacing::new(spec, stream, watched).map(Box::new);
        Process {
            job,
            unit: 0,
            stage: Stage::Waiting,
            in_flight: 0,
            free: slots.rev().collect(),
            flushing: false,
            overrun: false,
            delay_until,
            stonewall: spec.schedule.stonewall && thread == 0,
            started: 0,
            ramp_ns: spec.schedule.ramp_ns,
            record_from: NEVER,
            end: NEVER,
            wake_at: NEVER,
            issued_ios: 0,
            issued_bytes: 0,
            watch,
            failure: None,
            timed_out: false,
            generator,
            ahead: Vec::new(),
            turn: 0,
            looks_ahead: !spec.pattern.end_fsync && pacing.is_none(),
            pacing,
        }
    }

    /// Has the process replay a trace in place of its pattern.
    pub fn replay(&mut self, spec: &JobSpec, replayed: Replayed) {
        // As in fio a rate has no meaning for a trace.
        let stream = Stream::new(0, "unused");
        let think = Think::new(spec);
        self.looks_ahead = false;
        self.pacing = Some(Box::new(Pacing {
            rate: Rate::new(spec, stream),
            think,
            ramps: false,
            replayed: Some(replayed),
        }));
    }

    /// Starts at `now`; returns when measuring begins.
    pub fn start(&mut self, now: u64, runtime_ns: Option<u64>) -> u64 {
        self.stage = Stage::Running;
        self.started = now;
        if let Some(pacing) = &mut self.pacing {
            pacing.think.begin(now);
        }
        let measure_from = self.measure_from();
        // A completion at the very end of the ramp still belongs to it.
        let record_from = match &mut self.watch {
            Some(watch) => &mut watch.record_from,
            None => &mut self.record_from,
        };
        *record_from = measure_from.saturating_add(u64::from(self.ramp_ns > 0));
        if let Some(search) = self.watch.as_mut().and_then(|watch| watch.search.as_mut()) {
            search.begin(measure_from);
        }
        self.end = runtime_ns.map_or(NEVER, |ns| measure_from.saturating_add(ns));
        measure_from
    }

    /// Measuring begins once more, with what counts from its beginning: the runtime, `number_ios`, rates.
    pub fn restart(&mut self, now: u64, runtime_ns: Option<u64>) {
        self.ramp_ns = now - self.started;
        self.end = runtime_ns.map_or(NEVER, |ns| now.saturating_add(ns));
        self.generator.end_ramp();
        if let Some(watch) = &mut self.watch {
            watch.record_from = now;
            watch.phase.restart();
        }
        if let Some(pacing) = &mut self.pacing {
            pacing.rate.restart(now - self.started);
        }
    }

    /// When measuring began or would have begun.
    pub fn measure_from(&self) -> u64 {
        self.started.saturating_add(self.ramp_ns)
    }

    /// Measured time by direction, ns: as in fio one that the pattern lacks has none, and what is read back has a time
    /// of its own.
    pub fn runtimes(&self, now: u64) -> PerDirection<u64> {
        let from = self.measure_from();
        let measured = now.saturating_sub(from);
        let back = self.watch.as_ref().map_or(0, |watch| watch.phase.spent(now, from));
        let replays = self.pacing.as_ref().is_some_and(|pacing| pacing.replayed.is_some());
        let does = self.generator.directions().map(|does| does || replays);
        let own = |does: bool, time: u64| if does { time } else { 0 };
        let [reads, writes, trims] = does;
        let read = if reads { measured } else { back };
        [read, own(writes, measured - back), own(trims, measured - back)]
    }

    /// What to do at `now` with a free slot.
    #[inline]
    pub fn next(&mut self, now: u64) -> Next {
        if now >= self.end {
            self.timed_out = true;
            return Next::End;
        }
        if self.flushing && !self.is_open() {
            return Next::WaitForCompletion;
        }
        if self.pacing.is_some() {
            return self.next_paced(now);
        }
        if self.turn >= self.ahead.len().min(LOOK_AHEAD) {
            self.draw();
        }
        if self.turn < self.ahead.len() { Next::Issue } else { Next::End }
    }

    /// Draws what is next of the pattern: many at a time where they can be before their turn.
    #[inline(never)]
    fn draw(&mut self) {
        self.ahead.drain(..self.turn);
        self.turn = 0;
        if self.looks_ahead {
            self.generator.draw_ahead(&mut self.ahead, 2 * LOOK_AHEAD);
        } else {
            self.ahead.extend(self.generator.next());
        }
    }

    /// The I/O whose time has come.
    #[inline]
    pub fn take(&mut self) -> Io {
        let io = self.ahead[self.turn];
        self.turn += 1;
        io
    }

    /// The time of an I/O has come that nothing was drawn before.
    fn put(&mut self, io: Io) -> Next {
        self.ahead.clear();
        self.ahead.push(io);
        self.turn = 0;
        Next::Issue
    }

    /// An I/O has been issued: shows those that will follow after a while, as far as they are known before their time,
    /// the later one first.
    #[inline(always)]
    pub fn look_ahead(&self, show: impl Fn(&Io, Distance)) {
        for (places, ahead) in [(LOOK_AHEAD - 1, Distance::Far), (LOOK_AHEAD / 2, Distance::Near)] {
            if let Some(io) = self.ahead.get(self.turn + places) {
                show(io, ahead);
            }
        }
    }

    #[inline(never)]
    fn next_paced(&mut self, now: u64) -> Next {
        if let Some(watch) = self.watch.as_mut().filter(|watch| !watch.admits(self.in_flight)) {
            let drains = watch.search.as_ref().is_some_and(|search| search.drains);
            if let Some(batch) = &mut watch.batch {
                batch.quiet = drains;
                batch.draining &= !drains;
            }
            return Next::WaitForCompletion;
        }
        let next = self.next_in_turn(now);
        if let Some(batch) = self.watch.as_mut().and_then(|watch| watch.batch.as_mut()) {
            batch.quiet = matches!(next, Next::WaitForCompletion | Next::WaitUntil(_));
        }
        next
    }

    /// What is next once its share in the I/Os of several and what is in flight have had their say.
    fn next_in_turn(&mut self, now: u64) -> Next {
        if let Some(watch) = self.watch.as_mut().filter(|watch| !watch.is_held) {
            // As in fio a process ends whatever its share was, unless it has read back.
            let ends = self.generator.ends() && !self.generator.is_reading_back();
            let share = watch.share.as_mut().filter(|_| !ends);
            let wait = share.and_then(|share| share.wait(now, self.in_flight));
            if let Some(wait) = wait {
                return wait;
            }
            let next = self.next_by_pace(now);
            if !matches!(next, Next::Issue) {
                return next;
            }
            if let Some(watch) = &mut self.watch {
                watch.share.iter_mut().for_each(Share::count);
                watch.phase.drawn(self.generator.is_reading_back());
            }
        }
        let Some(watch) = &mut self.watch else { return self.next_by_pace(now) };
        watch.is_held = watch.holds(&self.ahead[self.turn], self.in_flight);
        if watch.is_held {
            return Next::WaitForCompletion;
        }
        watch.phase.issued(now, self.started.saturating_add(self.ramp_ns));
        Next::Issue
    }

    #[inline]
    fn next_by_pace(&mut self, now: u64) -> Next {
        let Some(pacing) = &mut self.pacing else { return Next::End };
        if pacing.ramps && now >= self.started.saturating_add(self.ramp_ns) {
            pacing.ramps = false;
            pacing.rate.restart(now - self.started);
            self.generator.end_ramp();
        }
        let pattern_next = !self.generator.reads_back_next();
        let pause = pattern_next.then(|| pacing.pause(now, self.in_flight)).flatten();
        if let Some(wait) = pause {
            return wait;
        }
        if let Some(replayed) = &mut pacing.replayed {
            return match replayed.next(now - self.started) {
                Due::Now(io) => {
                    pacing.think.issued();
                    // The last slot is taken: the next arrival would have to wait.
                    self.overrun |=
                        replayed.is_open() && self.free.len() == 1 && replayed.fraction() < 1.0;
                    self.put(io)
                }
                Due::At(due) => Next::WaitUntil(self.started.saturating_add(due)),
                Due::End => Next::End,
            };
        }
        let drawn = match pacing.rate.admit(now - self.started) {
            Admit::Any => self.generator.next(),
            Admit::Only(direction) => self.generator.next_in(direction),
            Admit::After(due) if self.generator.moves_next() => {
                return Next::WaitUntil(self.started.saturating_add(due));
            }
            Admit::After(_) => self.generator.next(),
        };
        let Some(io) = drawn else { return Next::End };
        if let Some(direction) = direction(io.op).filter(|_| !self.generator.is_reading_back()) {
            pacing.issued(direction, io.len);
        }
        self.put(io)
    }

    /// It has written more than can be remembered to be read back.
    pub fn remembers_too_much(&self) -> bool {
        self.generator.is_full()
    }

    /// Whether arrivals wait for nothing that is in flight.
    fn is_open(&self) -> bool {
        let replayed = self.pacing.as_ref().and_then(|pacing| pacing.replayed.as_ref());
        replayed.is_some_and(Replayed::is_open)
    }

    /// Some of its I/Os wait for a batch to be complete.
    pub fn is_queuing(&self) -> bool {
        let batch = self.watch.as_ref().and_then(|watch| watch.batch.as_ref());
        batch.is_some_and(|batch| batch.queued > 0)
    }

    /// I/Os that are done and not taken back.
    pub fn held(&self) -> impl Iterator<Item = &u32> {
        let batch = self.watch.iter().flat_map(|watch| &watch.batch);
        batch.flat_map(|batch| &batch.held).map(|(tag, _)| tag)
    }

    /// Its job has failed: it issues no more.
    pub fn fail(&mut self, failure: Failure) {
        self.failure.get_or_insert(failure);
        (self.stage, self.timed_out) = (Stage::Draining, false);
    }

    /// The flush that the job asks for when time has ended it; once.
    pub fn flush_at_end(&mut self) -> Option<Io> {
        let due = std::mem::take(&mut self.timed_out);
        if due { self.generator.flush_at_end() } else { None }
    }

    /// Share of the process that is done, estimated, `0 ..= 1`.
    pub fn fraction(&self, now: u64) -> f64 {
        let share = |done: u64, all: Option<u64>| {
            all.filter(|all| *all > 0).map_or(0.0, |all| done as f64 / all as f64)
        };
        let by_time = (self.end != NEVER)
            .then(|| share(now.saturating_sub(self.started), Some(self.end - self.started)));
        match self.stage {
            Stage::Waiting => 0.0,
            Stage::Done => 1.0,
            Stage::Running | Stage::Draining => {
                if let Some(replayed) = self.pacing.as_ref().and_then(|p| p.replayed.as_ref()) {
                    return replayed.fraction();
                }
                share(self.issued_bytes, self.generator.expected_bytes())
                    .max(share(self.issued_ios, self.generator.expected_ios()))
                    .max(by_time.unwrap_or(0.0))
                    .min(1.0)
            }
        }
    }
}

/// The direction of an I/O that moves or trims data.
#[inline]
pub(super) fn direction(op: Op) -> Option<usize> {
    const { assert!(matches!((Op::Read as u8, Op::Write as u8, Op::Trim as u8), (0, 1, 2))) };
    Some(op as usize).filter(|&direction| direction < 3)
}
