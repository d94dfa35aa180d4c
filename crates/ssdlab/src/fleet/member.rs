//! A member in its place: the device, and what is seen of it from outside.

use crate::contract::{Built, Command, Completion, Device, HostCounts, Missed, Op, host_counts};
use crate::persist::persistent;

/// See the module. It shows itself as the device that it holds, with a few counters more.
pub struct Member {
    /// What it is.
    pub device: Box<dyn Device>,
    /// Commands in flight, on their way to it, and chosen to be sent.
    pub pending: u32,
    /// It has failed.
    pub dead: bool,
    /// Where the last command ended.
    pub head: u64,
    /// Where the last read ended.
    pub read_end: u64,
    in_flight: u32,
    since: u64,
    busy: u64,
    /// Commands that have come to it in time.
    pub commands: u64,
    /// What has come to it, timed or not.
    pub counts: HostCounts,
    /// Purges that have.
    pub purges: u64,
}

persistent!(Member {
    state { device, pending, dead, head, read_end, in_flight, since, busy, commands, counts, purges }
});

impl Member {
    /// A device as a member.
    pub fn new(device: Box<dyn Device>) -> Self {
        Member {
            device,
            pending: 0,
            dead: false,
            head: 0,
            read_end: 0,
            in_flight: 0,
            since: 0,
            busy: 0,
            commands: 0,
            counts: HostCounts::default(),
            purges: 0,
        }
    }

    /// What it is, without the counters of its place.
    pub fn device(&self) -> &dyn Device {
        &*self.device
    }

    /// Adds the time up to now, so that also a member that is never idle shows when it was busy.
    #[inline]
    fn note_busy(&mut self, now: u64) {
        if self.in_flight > 0 {
            self.busy += now - self.since;
        }
        self.since = now;
    }

    /// So many commands have come back.
    #[inline]
    pub fn returned(&mut self, now: u64, commands: u32) {
        self.note_busy(now);
        self.in_flight -= commands;
        self.pending -= commands;
    }

    /// What was in flight is gone.
    pub fn cut(&mut self, now: u64) {
        self.note_busy(now);
        (self.in_flight, self.pending) = (0, 0);
    }

    /// The device has died, with all that was in flight.
    pub fn died(&mut self, now: u64) {
        self.cut(now);
        self.device.take_stock(now);
        self.dead = true;
    }

    /// Counts a command, timed or not.
    #[inline]
    pub fn count(&mut self, command: &Command) {
        self.counts.count(command);
        self.purges += u64::from(command.op == Op::Purge);
    }
}

impl Device for Member {
    fn kind(&self) -> &'static str {
        self.device.kind()
    }
    fn capacity(&self) -> u64 {
        self.device.capacity()
    }
    #[inline]
    fn submit(&mut self, now: u64, command: Command) {
        self.count(&command);
        self.note_busy(now);
        self.in_flight += 1;
        self.commands += 1;
        self.head = command.offset + command.len;
        if command.op == Op::Read {
            self.read_end = self.head;
        }
        self.device.submit(now, command);
    }
    fn heeds_hints(&self) -> bool {
        self.device.heeds_hints()
    }
    #[inline]
    fn next_event(&self) -> u64 {
        self.device.next_event()
    }
    #[inline]
    fn advance(&mut self, limit: u64, done: &mut Vec<Completion>) -> u64 {
        self.device.advance(limit, done)
    }
    fn take_stock(&mut self, now: u64) {
        self.device.take_stock(now);
    }
    fn settle(&mut self, now: u64) -> u64 {
        self.device.settle(now)
    }
    fn power_cut(&mut self, now: u64, missed: &mut Missed) -> u64 {
        self.device.power_cut(now, missed)
    }
    fn is_volatile(&self) -> bool {
        self.device.is_volatile()
    }
    fn fast_path(&self, command: &Command) -> bool {
        self.device.fast_path(command)
    }
    fn drive_commands(&self) -> Option<u64> {
        self.device.drive_commands()
    }
    fn apply(&mut self, command: &Command) {
        self.count(command);
        self.device.apply(command);
    }
    fn content(&self, offset: u64) -> u64 {
        self.device.content(offset)
    }
    fn counters(&self, visit: &mut dyn FnMut(&'static str, u64)) {
        self.counts.visit(host_counts!("member", "member"), visit);
        visit("member_purges", self.purges);
        visit("member_busy_ns", self.busy);
        self.device.counters(visit);
    }
    fn children(&self) -> Vec<(String, &dyn Device)> {
        self.device.children()
    }
    fn built(&self) -> Option<Built> {
        self.device.built()
    }
    fn verify(&self) {
        self.device.verify();
    }
}
