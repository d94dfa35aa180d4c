//! What keeps the I/Os of a process back: rates, pauses, a trace.

use super::process::Next;
use super::replay::Replayed;
use crate::job::{JobSpec, PerDirection};
use crate::rng::Stream;
use crate::units::NEVER;

/// What keeps I/Os back; only processes with a limit have one.
pub(super) struct Pacing {
    pub rate: Rate,
    pub think: Think,
    /// The end of the ramp is to come: rates and `number_ios` begin there once more, as in fio.
    pub ramps: bool,
    /// A trace in place of the pattern.
    pub replayed: Option<Replayed>,
}

impl Pacing {
    pub fn new(spec: &JobSpec, stream: Stream, watched: bool) -> Option<Self> {
        let rate = Rate::new(spec, stream);
        let think = Think::new(spec);
        let is_rated = rate.bytes_per_s != [0; 3];
        let ramps = spec.schedule.ramp_ns > 0 && (is_rated || spec.pattern.number_ios > 0);
        let limited = is_rated || think.pause_ns > 0 || ramps || watched;
        limited.then_some(Pacing { rate, think, ramps, replayed: None })
    }

    /// What a process has to wait for that has so much in flight, because of a pause.
    pub fn pause(&mut self, now: u64, in_flight: u32) -> Option<Next> {
        let wait = self.think.wait(now, in_flight);
        if let Some(pause_ns) = self.think.over.take() {
            self.rate.paused(pause_ns);
        }
        wait
    }

    /// An I/O of so many bytes is issued.
    pub fn issued(&mut self, direction: usize, len: u64) {
        self.rate.issued(direction, len);
        self.think.issued();
    }
}

/// What a rate lets through.
pub(super) enum Admit {
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
pub(super) struct Rate {
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
    /// What would have been issued in a pause is not caught up on.
    ignores_pauses: bool,
    /// Direction of the last I/O, and bytes of the smallest by direction.
    last: usize,
    smallest: PerDirection<u64>,
}

impl Rate {
    pub fn new(spec: &JobSpec, stream: Stream) -> Self {
        let pace = &spec.schedule.pace;
        let [read, write, _] = spec.pattern.shares();
        let smallest: [u64; 3] = std::array::from_fn(|d| spec.pattern.sizes[d].min().max(1));
        let bytes_per_s = std::array::from_fn(|d| match pace.rate_bytes[d] {
            // As in fio a trim-and-write waits for its write alone.
            _ if d == 2 && spec.pattern.trim_then_write => 0,
            0 => pace.rate_iops[d].saturating_mul(smallest[d]),
            rate => rate,
        });
        let mean_gap_ns = std::array::from_fn(|d| match bytes_per_s[d] {
            0 => 0.0,
            rate => smallest[d] as f64 * 1e9 / rate as f64,
        });
        Rate {
            bytes_per_s,
            mean_gap_ns,
            due: [0; 3],
            issued_bytes: [0; 3],
            since_ns: 0,
            poisson: pace.rate_poisson.then_some(stream),
            mixed: read > 0.0 && write > 0.0,
            ignores_pauses: pace.rate_ignores_pauses,
            last: 0,
            smallest,
        }
    }

    /// What may be issued `elapsed` ns after the start. In a mix of reads and writes the
    /// direction that is due goes, whatever the mix says; anything else waits for all that
    /// take part.
    pub fn admit(&self, elapsed: u64) -> Admit {
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
    pub fn restart(&mut self, elapsed: u64) {
        (self.since_ns, self.due, self.issued_bytes) = (elapsed, [elapsed; 3], [0; 3]);
    }

    /// A pause is over behind an I/O. As in fio one I/O of its direction is due at once where the pause was long enough.
    fn paused(&mut self, pause_ns: u64) {
        let (d, rate) = (self.last, self.bytes_per_s[self.last]);
        if !self.ignores_pauses || rate == 0 {
            return;
        }
        let missed = u128::from(rate) * u128::from(pause_ns) / 1_000_000_000;
        let missed = u64::try_from(missed).unwrap_or(u64::MAX);
        let at_once = self.smallest[d];
        let over = if missed >= at_once { at_once } else { 0 };
        self.issued_bytes[d] = self.issued_bytes[d].saturating_add(missed - over);
        if self.poisson.is_some() {
            self.due[d] = self.due[d].saturating_add(pause_ns);
        }
    }

    fn issued(&mut self, d: usize, len: u64) {
        self.last = d;
        let rate = self.bytes_per_s[d];
        if rate == 0 {
            return;
        }
        self.issued_bytes[d] = self.issued_bytes[d].saturating_add(len);
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

/// A pause after every so many I/Os or after a time (fio's `thinktime`); what is in flight completes first.
///
/// As in fio I/Os count when they are completed, unless the job says otherwise, and those that complete because of a
/// pause count towards the next one; between two pauses is at least one I/O. Time counts from where the last pause began
/// to where the next one does, the first time from the start of the process.
pub(super) struct Think {
    pause_ns: u64,
    blocks: u64,
    /// From the beginning of one pause to that of the next at most, ns.
    cycle_ns: u64,
    by_issue: bool,
    /// When the last pause began.
    since: u64,
    /// A pause has ended that nobody has asked about yet: how long it was.
    over: Option<u64>,
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
    pub fn new(spec: &JobSpec) -> Self {
        let pace = &spec.schedule.pace;
        let timed = pace.thinktime_iotime_ns > 0;
        Think {
            pause_ns: pace.thinktime_ns,
            blocks: match u64::from(pace.thinktime_blocks) {
                0 if timed => u64::MAX,
                blocks => blocks.max(1),
            },
            cycle_ns: match timed {
                true => pace.thinktime_iotime_ns.saturating_add(pace.thinktime_ns),
                false => NEVER,
            },
            by_issue: pace.thinktime_by_issue,
            since: 0,
            over: None,
            issued: 0,
            issued_then: 0,
            counted_then: 0,
            stage: Pause::None,
        }
    }

    /// The process starts.
    pub fn begin(&mut self, now: u64) {
        self.since = now;
    }

    fn wait(&mut self, now: u64, in_flight: u32) -> Option<Next> {
        if self.pause_ns == 0 || self.issued == self.issued_then {
            return None;
        }
        if let Pause::None = self.stage {
            let open = if self.by_issue { 0 } else { u64::from(in_flight) };
            let counted = self.issued.saturating_sub(open);
            let due = self.counted_then.saturating_add(self.blocks);
            if counted < due && now - self.since < self.cycle_ns {
                return None;
            }
            (self.counted_then, self.since, self.stage) = (counted, now, Pause::Due);
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
        (self.issued_then, self.stage, self.over) = (self.issued, Pause::None, Some(self.pause_ns));
        None
    }

    pub fn issued(&mut self) {
        self.issued += 1;
    }
}
