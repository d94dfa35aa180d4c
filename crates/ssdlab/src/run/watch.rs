//! What is looked at of every I/O of a process whose job asks for more than that its I/Os be done.

use super::batch::Batch;
use super::flow::Share;
use super::search::Search;
use crate::device::Op;
use crate::job::{Io, JobSpec, LeastRates, PerDirection};
use crate::stats::Parts;
use crate::units::{Bytes, NEVER, Nanos};

/// Why a job has failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The system's number, which fio's document has.
    pub error: u32,
    /// What was wrong.
    pub problem: String,
}

/// What an I/O took too long for.
const ETIMEDOUT: u32 = 110;

/// What a job was too slow for.
const EIO: u32 = 5;

/// As in fio rates are looked at from so long after the beginning on, ns.
const SETTLING_NS: u64 = 2_000_000_000;

/// What a job asks to be looked at.
pub(super) struct Watch {
    /// Completions from this instant on are measured. That of the process is never, which leads here.
    pub record_from: u64,
    /// Writes are done when they are durable.
    pub durable_writes: bool,
    /// Writes that were answered and are flushed, with where their time went until then.
    pub flushed: Vec<(u32, Parts)>,
    pub batch: Option<Batch>,
    pub search: Option<Search>,
    /// Its part in the I/Os of several.
    pub share: Option<Share>,
    /// Tags and places of what is in flight, where I/Os that overlap are not to be.
    pub places: Option<Vec<(u32, u64, u64)>>,
    /// The next I/O was drawn and waits for one that it overlaps, or for all.
    pub is_held: bool,
    /// What is read back.
    pub phase: Phase,
    least: Option<Least>,
    max_latency_ns: PerDirection<u64>,
    depth: u32,
    /// Others or what is in flight have a say in when its I/Os are issued.
    paces: bool,
}

/// Writing, and reading back what was written.
#[derive(Default)]
pub(super) struct Phase {
    /// It reads back.
    reads: bool,
    /// Its first I/O waits until nothing is in flight.
    begins: bool,
    since: u64,
    /// Measured time spent reading back until then, ns.
    read_ns: u64,
}

impl Phase {
    /// An I/O was drawn that reads back or does not.
    pub fn drawn(&mut self, reads_back: bool) {
        self.begins |= reads_back != self.reads;
    }

    /// That I/O is issued by a process that is measured from an instant on.
    pub fn issued(&mut self, now: u64, measure_from: u64) {
        if std::mem::take(&mut self.begins) {
            self.read_ns = self.spent(now, measure_from);
            (self.reads, self.since) = (!self.reads, now);
        }
    }

    /// Measuring begins once more.
    pub fn restart(&mut self) {
        self.read_ns = 0;
    }

    /// Measured time spent reading back, ns.
    pub fn spent(&self, now: u64, measure_from: u64) -> u64 {
        let reading = now.saturating_sub(self.since.max(measure_from));
        self.read_ns + if self.reads { reading } else { 0 }
    }
}

/// Rates below which a job fails.
struct Least {
    rates: LeastRates,
    /// Bytes and I/Os done, by direction.
    done: PerDirection<(u64, u64)>,
    /// When they were looked at last, and what had been done by then.
    then: PerDirection<(u64, u64, u64)>,
    /// They are looked at from then on.
    from: u64,
}

impl Least {
    /// `None` for a job that may be as slow as it likes.
    fn new(rates: &LeastRates) -> Option<Self> {
        let asked = rates.bytes != [0; 3] || rates.ios != [0; 3];
        let (rates, done, then) = (rates.clone(), [(0, 0); 3], [(0, 0, 0); 3]);
        asked.then_some(Least { rates, done, then, from: SETTLING_NS })
    }

    /// An I/O has been done so long after the beginning: whether one of the directions is too slow.
    fn look(&mut self, ddir: usize, bytes: u64, measured_ns: u64) -> Option<Failure> {
        let done = &mut self.done[ddir];
        *done = (done.0 + bytes, done.1 + 1);
        if measured_ns < self.from {
            return None;
        }
        (0..3).find_map(|ddir| self.judge(ddir, measured_ns))
    }

    /// It reads back, which may be as slow as it likes: what follows is looked at by itself.
    fn rest(&mut self, measured_ns: u64) {
        (self.then, self.from) = ([(0, 0, 0); 3], measured_ns.saturating_add(SETTLING_NS));
    }

    fn judge(&mut self, ddir: usize, now: u64) -> Option<Failure> {
        let (bytes, ios) = (self.rates.bytes[ddir], self.rates.ios[ddir]);
        let (done_bytes, done_ios) = self.done[ddir];
        let (then, then_bytes, then_ios) = self.then[ddir];
        let spent = now - then;
        if bytes.max(ios) == 0 || done_ios == 0 || then > 0 && spent < self.rates.cycle_ns.max(1) {
            return None;
        }
        self.then[ddir] = (now, done_bytes, done_ios);
        let rate = |done: u64| (u128::from(done) * 1_000_000_000 / u128::from(spent)) as u64;
        let (bytes_came, ios_came) = (rate(done_bytes - then_bytes), rate(done_ios - then_ios));
        let what = ["reads", "writes", "trims"][ddir];
        let over = Nanos(spent);
        let problem = match bytes {
            _ if then == 0 => return None,
            0 if ios_came < ios => {
                format!("rate_iops_min={ios}: {ios_came} {what} a second over {over}")
            }
            1.. if bytes_came < bytes => {
                let (bytes, came) = (Bytes(bytes), Bytes(bytes_came));
                format!("rate_min={bytes}: {came} of {what} a second over {over}")
            }
            _ => return None,
        };
        Some(Failure { error: EIO, problem })
    }
}

impl Watch {
    /// `None` for a job that asks for nothing of it.
    pub fn new(spec: &JobSpec) -> Option<Box<Self>> {
        let (queue, ending) = (&spec.schedule.queue, &spec.schedule.ending);
        let (batch, search) = (Batch::new(spec), Search::new(spec));
        let limits = ending.max_latency_ns != [0; 3];
        let least = Least::new(&spec.schedule.pace.least);
        let places = (queue.serialize_overlap && spec.schedule.iodepth > 1).then(Vec::new);
        let reads_back = spec.pattern.reads_back();
        let paces = spec.schedule.pace.flow.weight > 0 || places.is_some() || reads_back;
        let looks = queue.durable_writes || limits || least.is_some();
        let asked = looks || paces || batch.is_some() || search.is_some();
        asked.then(|| {
            Box::new(Watch {
                record_from: NEVER,
                durable_writes: queue.durable_writes,
                flushed: Vec::new(),
                batch,
                search,
                share: None,
                places,
                is_held: false,
                phase: Phase::default(),
                least,
                max_latency_ns: ending.max_latency_ns,
                depth: spec.schedule.iodepth.max(1),
                paces,
            })
        })
    }

    /// Whether it has a say in when I/Os are issued.
    pub fn paces(&self) -> bool {
        self.batch.is_some() || self.search.is_some() || self.paces
    }

    /// Whether an I/O has to wait for one in flight, of so many.
    pub fn holds(&self, io: &Io, in_flight: u32) -> bool {
        let end = io.offset + io.len;
        let mut places = self.places.iter().flatten();
        self.phase.begins && in_flight > 0
            || places.any(|(_, from, to)| io.offset < *to && *from < end)
    }

    /// I/Os in flight with which the process issues no more.
    pub fn full_at(&self) -> u32 {
        let depth = self.search.as_ref().map_or(self.depth, |search| search.depth);
        self.batch.as_ref().map_or(depth, |batch| batch.full_at(depth))
    }

    /// Whether another I/O may be issued beside those in flight.
    pub fn admits(&self, in_flight: u32) -> bool {
        let drains = self.search.as_ref().is_some_and(|search| search.drains)
            || self.batch.as_ref().is_some_and(|batch| batch.draining);
        in_flight < self.full_at() && !drains
    }

    /// A measured I/O took so long: whether that is more than the job bears.
    pub fn judge(&mut self, op: Op, ddir: usize, lat_ns: u64, at: (u64, u64)) -> Option<Failure> {
        let most = self.max_latency_ns[ddir];
        let target = self.search.as_ref().map_or(0, Search::target_ns);
        let slow = self.search.as_mut().is_some_and(|search| search.done(lat_ns));
        let (option, limit) = match most > 0 && lat_ns > most {
            true => ("max_latency", most),
            false if slow => ("latency_target", target),
            false => return None,
        };
        let what = match op {
            Op::Read => "read",
            Op::Write => "write",
            _ => "trim",
        };
        let alone = if option == "latency_target" { " alone" } else { "" };
        let (limit, took, bytes, offset) = (Nanos(limit), Nanos(lat_ns), Bytes(at.1), Bytes(at.0));
        let problem =
            format!("{option}={limit}: a {what} of {bytes} at {offset} took {took}{alone}");
        Some(Failure { error: ETIMEDOUT, problem })
    }

    /// So many bytes were done so long after measuring began: whether the job is too slow.
    pub fn judge_rate(&mut self, ddir: usize, bytes: u64, measured_ns: u64) -> Option<Failure> {
        let least = self.least.as_mut()?;
        if self.phase.reads {
            least.rest(measured_ns);
            return None;
        }
        least.look(ddir, bytes, measured_ns)
    }
}
