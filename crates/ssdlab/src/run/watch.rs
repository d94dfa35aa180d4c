//! What is looked at of every I/O of a process whose job asks for more than that its I/Os be done.

use super::batch::Batch;
use super::search::Search;
use crate::device::Op;
use crate::job::{JobSpec, PerDirection};
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
    max_latency_ns: PerDirection<u64>,
    depth: u32,
}

impl Watch {
    /// `None` for a job that asks for nothing of it.
    pub fn new(spec: &JobSpec) -> Option<Box<Self>> {
        let (queue, ending) = (&spec.schedule.queue, &spec.schedule.ending);
        let (batch, search) = (Batch::new(spec), Search::new(spec));
        let limits = ending.max_latency_ns != [0; 3];
        let asked = queue.durable_writes || limits || batch.is_some() || search.is_some();
        asked.then(|| {
            Box::new(Watch {
                record_from: NEVER,
                durable_writes: queue.durable_writes,
                flushed: Vec::new(),
                batch,
                search,
                max_latency_ns: ending.max_latency_ns,
                depth: spec.schedule.iodepth.max(1),
            })
        })
    }

    /// Whether it has a say in when I/Os are issued.
    pub fn paces(&self) -> bool {
        self.batch.is_some() || self.search.is_some()
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
}
