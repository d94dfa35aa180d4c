//! Commands of the host: what they wait for, and their end.

use super::Fleet;
use crate::contract::{Command, Completion, Op};
use crate::persist::persistent;
use crate::sim::Id;
use crate::stats::{Part, Parts};
use crate::units::NEVER;

/// How long a command takes that ends in an error, ns.
pub const ERROR_TIME: u64 = 1_000_000;

/// Commands of the host, among ids.
pub enum OfHost {}
/// A command of the host in flight.
pub type HostId = Id<OfHost>;

/// A command of the host.
#[derive(Clone, Copy, Debug, Default)]
pub struct Host<O> {
    /// What it asks for.
    pub command: Command,
    /// When it came.
    pub submitted: u64,
    /// What it waits for.
    pub remaining: u32,
    /// It ends in an error.
    pub failed: bool,
    /// What was read of it so far.
    pub digest: u64,
    /// What the device knows of it.
    pub own: O,
}

persistent!(impl<O: Persist> Host<O> { state { command, submitted, remaining, failed, digest, own } });

impl<O: Copy + Default, P: Copy + Default + std::fmt::Debug> Fleet<O, P> {
    /// One thing less that a command waits for; whether that was the last.
    #[inline]
    pub fn release(&mut self, host: HostId) -> bool {
        let host = &mut self.hosts[host];
        host.remaining -= 1;
        host.remaining == 0
    }

    /// A command is done: `parts` and `more` of its time are accounted for, the rest went to `rest`.
    #[inline]
    pub fn complete(
        &mut self,
        id: HostId,
        parts: &Parts,
        more: impl IntoIterator<Item = (Part, u64)>,
        rest: Part,
    ) {
        let Host { command: Command { tag, .. }, submitted, digest, .. } = self.hosts[id];
        self.hosts.remove(id);
        let time = self.now;
        (self.in_flight, self.last_host) = (self.in_flight - 1, time);
        let mut left = time - submitted - parts.total();
        self.ready.push(Completion { tag, time, parts: parts.clone(), digest });
        // Mostly all of it.
        if left == 0 {
            return;
        }
        let parts = &mut self.ready.last_mut().expect("just put there").parts;
        for (part, time) in more {
            parts.add(part, time);
            left -= time;
        }
        parts.add(rest, left);
    }

    /// A command touches what is lost: it ends in an error after [`ERROR_TIME`], and not before.
    pub fn fail_host(&mut self, id: HostId) {
        let host = &mut self.hosts[id];
        host.remaining += 1;
        if !host.failed {
            host.failed = true;
            self.errors[usize::from(host.command.op != Op::Read)] += 1;
        }
        self.failing.push_back((self.now + ERROR_TIME, id));
    }

    /// When the next command ends in an error.
    #[inline]
    pub fn next_error(&self) -> u64 {
        self.failing.front().map_or(NEVER, |&(time, _)| time)
    }

    /// The command that ends in an error now, if one does.
    pub fn take_error(&mut self) -> Option<HostId> {
        if self.next_error() > self.now {
            return None;
        }
        self.failing.pop_front().map(|(_, host)| host)
    }
}
