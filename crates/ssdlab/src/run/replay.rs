//! When the requests of a replayed trace are due.

use crate::device::Op;
use crate::error::{Error, Result};
use crate::job::{Io, JobSpec};
use crate::trace::{Kind, Placement, Request};
use std::sync::Arc;

/// What is next of a trace.
pub(super) enum Due {
    /// Issue this.
    Now(Io),
    /// Nothing before this time, ns since the start of the process.
    At(u64),
    /// No more.
    End,
}

/// How the times of a trace are kept.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Times {
    /// Not at all (`replay_no_stall`).
    NoStall,
    /// As fio does: the pause before a request counts from the last I/O issued, so that what was late
    /// makes everything behind it later.
    FromLastIssue,
    /// Each request arrives at its own time.
    OpenLoop,
}

/// A trace on its way to the device.
pub(super) struct Replayed {
    requests: Arc<Vec<Request>>,
    placement: Placement,
    times: Times,
    /// Percent of the recorded speed.
    time_scale: u64,
    compressible: u8,
    at: usize,
    last_issue_ns: u64,
}

impl Replayed {
    /// The trace of a job on a device of `capacity` bytes; `None` for a job that replays none.
    pub fn new(spec: &JobSpec, capacity: u64) -> Result<Option<Self>> {
        let Some(replay) = &spec.replay else { return Ok(None) };
        let Some(attached) = &replay.attached else {
            return Err(spec.error("read_iolog", "no trace can be read here"));
        };
        let placement = replay.placement(attached, capacity).map_err(|error| match error {
            Error::Unfit(problem) => spec.error("read_iolog", problem),
            other => other,
        })?;
        let times = match (replay.no_stall, attached.open_loop) {
            (true, _) => Times::NoStall,
            (false, true) => Times::OpenLoop,
            (false, false) => Times::FromLastIssue,
        };
        Ok(Some(Replayed {
            requests: attached.requests.clone(),
            placement,
            times,
            time_scale: replay.time_scale,
            compressible: spec.pattern.compressible,
            at: 0,
            last_issue_ns: 0,
        }))
    }

    /// Whether arrivals wait for nothing.
    pub fn is_open(&self) -> bool {
        self.times == Times::OpenLoop
    }

    /// Share that has been issued.
    pub fn fraction(&self) -> f64 {
        self.at as f64 / self.requests.len().max(1) as f64
    }

    /// What to do `elapsed` ns after the start.
    #[inline]
    pub fn next(&mut self, elapsed: u64) -> Due {
        let Some(request) = self.requests.get(self.at) else { return Due::End };
        let scaled = |ns: u64| (u128::from(ns) * 100 / u128::from(self.time_scale)) as u64;
        let due = match self.times {
            Times::NoStall => 0,
            Times::OpenLoop => scaled(request.time_ns),
            Times::FromLastIssue if self.at == 0 => 0,
            Times::FromLastIssue => {
                let pause = request.time_ns - self.requests[self.at - 1].time_ns;
                self.last_issue_ns.saturating_add(scaled(pause))
            }
        };
        if due > elapsed {
            return Due::At(due);
        }
        self.at += 1;
        self.last_issue_ns = elapsed;
        let placed = self.placement.place(*request);
        let (op, compressible) = match request.kind {
            Kind::Read => (Op::Read, 0),
            Kind::Write => (Op::Write, self.compressible),
            Kind::Trim => (Op::Trim, 0),
            Kind::Flush => (Op::Flush, 0),
        };
        Due::Now(Io { op, offset: placed.offset, len: u64::from(placed.length), compressible })
    }
}
