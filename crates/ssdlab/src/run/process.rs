//! One process of a job: which I/O comes next, and whether its time has come.

use super::LOOK_AHEAD;
use super::replay::{Due, Replayed};
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
    /// Completions from this instant on are measured.
    pub record_from: u64,
    /// No I/O is issued from this instant on.
    pub end: u64,
    /// When the process has asked to be woken; `NEVER` if it has not.
    pub wake_at: u64,
    pub issued_ios: u64,
    pub issued_bytes: u64,
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
        let pacing = Pacing::new(spec, Stream::new(seed, &label("rate"))).map(Box::new);
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
        let measure_from = self.measure_from();
        // A completion at the very end of the ramp still belongs to it.
        self.record_from = measure_from.saturating_add(u64::from(self.ramp_ns > 0));
        self.end = runtime_ns.map_or(NEVER, |ns| measure_from.saturating_add(ns));
        measure_from
    }

    /// When measuring began or would have begun.
    pub fn measure_from(&self) -> u64 {
        self.started.saturating_add(self.ramp_ns)
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
        let Some(pacing) = &mut self.pacing else { return Next::End };
        if pacing.ramps && now >= self.started.saturating_add(self.ramp_ns) {
            pacing.ramps = false;
            pacing.rate.restart(now - self.started);
            self.generator.end_ramp();
        }
        if let Some(wait) = pacing.think.wait(now, self.in_flight) {
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
        if let Some(direction) = direction(io.op) {
            pacing.rate.issued(direction, io.len);
            pacing.think.issued();
        }
        self.put(io)
    }

    /// Whether arrivals wait for nothing that is in flight.
    fn is_open(&self) -> bool {
        let replayed = self.pacing.as_ref().and_then(|pacing| pacing.replayed.as_ref());
        replayed.is_some_and(Replayed::is_open)
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

/// What keeps I/Os back; only processes with a limit have one.
struct Pacing {
    rate: Rate,
    think: Think,
    /// The end of the ramp is to come: rates and `number_ios` begin there once more, as in fio.
    ramps: bool,
    /// A trace in place of the pattern.
    replayed: Option<Replayed>,
}

impl Pacing {
    fn new(spec: &JobSpec, stream: Stream) -> Option<Self> {
        let rate = Rate::new(spec, stream);
        let think = Think::new(spec);
        let is_rated = rate.bytes_per_s != [0; 3];
        let ramps = spec.schedule.ramp_ns > 0 && (is_rated || spec.pattern.number_ios > 0);
        let limited = is_rated || think.pause_ns > 0 || ramps;
        limited.then_some(Pacing { rate, think, ramps, replayed: None })
    }
}

/// What a rate lets through.
enum Admit {
    /// Whatever the pattern draws.
    Any,
    /// I/Os of this direction.
    Only(usize),
    /// Nothing before this time, ns since the start of the process.
    After(u64),
}

/// Limits on bytes per second by direction (fio's `rate`, `rate_iops`).
///
/// As in fio, an I/O is due when the bytes issued before it would have taken their time at the
/// rate; a process that fell behind catches up. `rate_iops` counts I/Os of the smallest size.
struct Rate {
    bytes_per_s: PerDirection<u64>,
    /// Mean time of an I/O of the smallest size, for Poisson arrivals, ns.
    mean_gap_ns: PerDirection<f64>,
    /// When the next I/O is due, ns since the start of the process.
    due: PerDirection<u64>,
    issued_bytes: PerDirection<u64>,
    /// From when on it counts, ns since the start of the process.
    since_ns: u64,
    /// Draws the gaps of Poisson arrivals.
    poisson: Option<Stream>,
    /// Reads and writes are mixed: either may go when the other must wait.
    mixed: bool,
}

impl Rate {
    fn new(spec: &JobSpec, stream: Stream) -> Self {
        let schedule = &spec.schedule;
        let [read, write, _] = spec.pattern.shares();
        let smallest = |d: usize| spec.pattern.sizes[d].min().max(1);
        let bytes_per_s = std::array::from_fn(|d| match schedule.rate_bytes[d] {
            // As in fio a trim-and-write waits for its write alone.
            _ if d == 2 && spec.pattern.trim_then_write => 0,
            0 => schedule.rate_iops[d].saturating_mul(smallest(d)),
            rate => rate,
        });
        let mean_gap_ns = std::array::from_fn(|d| match bytes_per_s[d] {
            0 => 0.0,
            rate => smallest(d) as f64 * 1e9 / rate as f64,
        });
        Rate {
            bytes_per_s,
            mean_gap_ns,
            due: [0; 3],
            issued_bytes: [0; 3],
            since_ns: 0,
            poisson: schedule.rate_poisson.then_some(stream),
            mixed: read > 0.0 && write > 0.0,
        }
    }

    /// What may be issued `elapsed` ns after the start. In a mix of reads and writes the
    /// direction that is due goes, whatever the mix says; anything else waits for all that
    /// take part.
    fn admit(&self, elapsed: u64) -> Admit {
        let [read, write, _] = self.due;
        if self.mixed {
            return match (read <= elapsed, write <= elapsed) {
                (true, true) => Admit::Any,
                (true, false) => Admit::Only(0),
                (false, true) => Admit::Only(1),
                (false, false) => Admit::After(read.min(write)),
            };
        }
        match self.due.into_iter().max() {
            Some(due) if due > elapsed => Admit::After(due),
            _ => Admit::Any,
        }
    }

    /// Begins anew at `elapsed`, with no debts.
    fn restart(&mut self, elapsed: u64) {
        (self.since_ns, self.due, self.issued_bytes) = (elapsed, [elapsed; 3], [0; 3]);
    }

    fn issued(&mut self, d: usize, len: u64) {
        let rate = self.bytes_per_s[d];
        if rate == 0 {
            return;
        }
        self.issued_bytes[d] += len;
        self.due[d] = match &mut self.poisson {
            Some(stream) => {
                let gap = -libm::log(1.0 - stream.unit()) * self.mean_gap_ns[d];
                self.due[d].saturating_add(gap as u64)
            }
            None => {
                let ns = u128::from(self.issued_bytes[d]) * 1_000_000_000 / u128::from(rate);
                self.since_ns + ns as u64
            }
        };
    }
}

/// A pause after every so many I/Os (fio's `thinktime`); what is in flight completes first.
///
/// As in fio I/Os count when they are completed, unless the job says otherwise, and those that complete because of a
/// pause count towards the next one; between two pauses is at least one I/O.
struct Think {
    pause_ns: u64,
    blocks: u64,
    by_issue: bool,
    issued: u64,
    /// I/Os issued at the end of the last pause.
    issued_then: u64,
    /// I/Os that counted at its beginning.
    counted_then: u64,
    stage: Pause,
}

/// Where a [`Think`] is between one pause and the next.
#[derive(Clone, Copy)]
enum Pause {
    None,
    /// Due as soon as nothing is in flight.
    Due,
    Until(u64),
}

impl Think {
    fn new(spec: &JobSpec) -> Self {
        let schedule = &spec.schedule;
        Think {
            pause_ns: schedule.thinktime_ns,
            blocks: u64::from(schedule.thinktime_blocks.max(1)),
            by_issue: schedule.thinktime_by_issue,
            issued: 0,
            issued_then: 0,
            counted_then: 0,
            stage: Pause::None,
        }
    }

    fn wait(&mut self, now: u64, in_flight: u32) -> Option<Next> {
        if self.pause_ns == 0 || self.issued == self.issued_then {
            return None;
        }
        if let Pause::None = self.stage {
            let open = if self.by_issue { 0 } else { u64::from(in_flight) };
            let counted = self.issued.saturating_sub(open);
            if counted < self.counted_then + self.blocks {
                return None;
            }
            (self.counted_then, self.stage) = (counted, Pause::Due);
        }
        let until = match self.stage {
            Pause::Until(until) => until,
            _ if in_flight > 0 => return Some(Next::WaitForCompletion),
            _ => now.saturating_add(self.pause_ns),
        };
        self.stage = Pause::Until(until);
        if now < until {
            return Some(Next::WaitUntil(until));
        }
        (self.issued_then, self.stage) = (self.issued, Pause::None);
        None
    }

    fn issued(&mut self) {
        self.issued += 1;
    }
}
