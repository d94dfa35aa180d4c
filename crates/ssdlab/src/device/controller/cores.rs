//! The cores of a card: each piece of work goes to the one that is free first, in the order in which it comes.

use crate::fleet::{HostId, IoId};
use crate::persist::{persistent, persistent_cases};
use crate::units::NEVER;
use std::collections::VecDeque;

/// What is done when a core has been at it.
#[derive(Clone, Copy, Debug)]
pub(super) enum Work {
    /// A command of the host's is looked at.
    Host(HostId),
    /// The same when the devices below have answered it, where the firmware sees to it.
    Answer(HostId),
    /// One that writes RAM below is sent.
    Destage(IoId),
}
persistent_cases!(Work { Host(host), Answer(host), Destage(io) });

/// See the module.
pub(super) struct Cores {
    /// When each is free, in order of that.
    free_at: Vec<u64>,
    /// In order of its end, and of what ends at once in that of its coming.
    queue: VecDeque<(u64, Work)>,
    busy: u64,
}
persistent!(Cores { state { queue, busy } parts { free_at } });

impl Cores {
    pub fn new(count: u32) -> Self {
        Cores { free_at: vec![0; count as usize], queue: VecDeque::new(), busy: 0 }
    }

    /// A core is at something for `time`, of which nothing follows; when that ends.
    #[inline]
    pub fn take(&mut self, now: u64, time: u64) -> u64 {
        self.busy += time;
        if let [only] = &mut self.free_at[..] {
            *only = now.max(*only) + time;
            return *only;
        }
        let end = self.free_at[0].max(now) + time;
        let place = self.free_at[1..].partition_point(|&at| at <= end);
        self.free_at.copy_within(1..=place, 0);
        self.free_at[place] = end;
        end
    }

    #[inline]
    pub fn send(&mut self, now: u64, time: u64, work: Work) {
        let end = self.take(now, time);
        match self.queue.back() {
            Some(&(last, _)) if last > end => {
                let place = self.queue.partition_point(|&(at, _)| at <= end);
                self.queue.insert(place, (end, work));
            }
            _ => self.queue.push_back((end, work)),
        }
    }

    #[inline]
    pub fn pop(&mut self) -> Option<Work> {
        self.queue.pop_front().map(|(_, work)| work)
    }

    /// Ends everything at `now`.
    pub fn cut(&mut self, now: u64) {
        self.queue.clear();
        for free_at in &mut self.free_at {
            self.busy -= free_at.saturating_sub(now);
            *free_at = (*free_at).min(now);
        }
    }

    #[inline]
    pub fn due(&self) -> u64 {
        self.queue.front().map_or(NEVER, |&(time, _)| time)
    }

    pub fn counters(&self, visit: &mut dyn FnMut(&'static str, u64)) {
        visit("cores", self.free_at.len() as u64);
        visit("busy_cores_ns", self.busy);
    }
}
