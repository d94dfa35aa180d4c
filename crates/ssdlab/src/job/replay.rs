//! Replaying a trace (`read_iolog`): what a job says about it, and the requests.

use super::size;
use crate::error::{Error, Result};
use crate::trace::{Placement, Request, Spans};
use std::sync::Arc;

/// Requests in flight at most where arrivals do not wait for completions.
pub(crate) const OPEN_LOOP_DEPTH: usize = 1 << 20;

/// What a job says about the trace that it replays, by fio's options.
#[derive(Clone, Debug, PartialEq)]
pub struct Replay {
    /// `read_iolog`: name of the trace.
    pub file: String,
    /// `replay_no_stall`: as fast as the depth allows, whatever the times are.
    pub no_stall: bool,
    /// `replay_time_scale`, percent of the recorded speed.
    pub time_scale: u64,
    /// `replay_redirect` was given: all devices of the trace are one.
    pub redirect: bool,
    /// `replay_align`, bytes; 0: not.
    pub align: u64,
    /// `replay_scale`: offsets are divided by this.
    pub scale: u64,
    /// The requests, once they are attached.
    pub attached: Option<Attached>,
}

impl Default for Replay {
    fn default() -> Self {
        Replay {
            file: String::new(),
            no_stall: false,
            time_scale: 100,
            redirect: false,
            align: 0,
            scale: 1,
            attached: None,
        }
    }
}

/// The requests of a trace, and how they are to be played beyond fio's options.
#[derive(Clone, Debug, PartialEq)]
pub struct Attached {
    /// In order of time; millions of them, which are not copied.
    pub requests: Arc<Vec<Request>>,
    /// How far they reach.
    pub spans: Spans,
    /// What is done about addresses beyond the target: see [`Placement::new`].
    pub fit: String,
    /// Requests arrive at their times whatever is still in flight, and flushes hold nobody up. Without it
    /// the job is played as fio plays it: at its depth, each pause counted from the last I/O issued.
    pub open_loop: bool,
}

impl Attached {
    /// Requests to be played as fio would.
    pub fn new(requests: impl Into<Arc<Vec<Request>>>) -> Self {
        let requests = requests.into();
        let mut spans = Spans::default();
        requests.iter().for_each(|request| spans.add(request));
        Attached { requests, spans, fit: "as-is".into(), open_loop: false }
    }
}

impl Replay {
    /// Reads an option; whether it is one of these.
    pub(super) fn option(&mut self, name: &str, value: &str, base: u64) -> Result<bool> {
        match name {
            "read_iolog" => self.file = value.to_string(),
            "replay_no_stall" => self.no_stall = value != "0",
            "replay_time_scale" => {
                self.time_scale = match size::bytes(value, base)? {
                    n @ 1..=1_000_000 => n,
                    _ => return Err(Error::value(value, "a percentage from 1 to 1000000")),
                }
            }
            "replay_redirect" => self.redirect = true,
            "replay_align" => {
                self.align = match size::bytes(value, base)? {
                    n if n.is_power_of_two() && n <= 1 << 30 => n,
                    _ => return Err(Error::value(value, "a power of two")),
                }
            }
            "replay_scale" => self.scale = size::bytes(value, base)?.max(1),
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Where the requests go on a device of `capacity` bytes.
    pub(crate) fn placement(&self, attached: &Attached, capacity: u64) -> Result<Placement> {
        let Replay { redirect, align, scale, .. } = *self;
        Placement::new(&attached.fit, &attached.spans, Some(capacity), redirect, align, scale)
    }
}
