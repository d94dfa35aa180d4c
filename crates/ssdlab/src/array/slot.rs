//! A member in its place: the device, and what the array sees of it from outside.

use crate::device::{Built, Command, Completion, Device, Op};
use crate::persist::persistent;

/// See the module. It shows itself as the device that it holds, with a few counters more.
pub struct Slot {
    pub device: Box<dyn Device>,
    /// Commands of the array in flight, and chosen to be sent.
    pub pending: u32,
    /// It has failed.
    pub dead: bool,
    /// Where the last command ended.
    pub head: u64,
    in_flight: u32,
    since: u64,
    busy: u64,
    reads: u64,
    writes: u64,
    bytes_read: u64,
    bytes_written: u64,
    trims: u64,
    flushes: u64,
    purges: u64,
}

persistent!(Slot {
    state {
        device, pending, dead, head, in_flight, since, busy, reads, writes, bytes_read, bytes_written, trims,
        flushes, purges,
    }
});

impl Slot {
    /// A slot with a member.
    pub fn new(device: Box<dyn Device>) -> Self {
        Slot {
            device,
            pending: 0,
            dead: false,
            head: 0,
            in_flight: 0,
            since: 0,
            busy: 0,
            reads: 0,
            writes: 0,
            bytes_read: 0,
            bytes_written: 0,
            trims: 0,
            flushes: 0,
            purges: 0,
        }
    }

    /// Sends a command to the member.
    #[inline]
    pub fn send(&mut self, now: u64, command: Command) {
        self.count(&command);
        self.note_busy(now);
        self.in_flight += 1;
        self.head = command.offset + command.len;
        self.device.submit(now, command);
    }

    /// Adds the time up to now, so that also a member that is never idle shows when it was busy.
    #[inline]
    fn note_busy(&mut self, now: u64) {
        if self.in_flight > 0 {
            self.busy += now - self.since;
        }
        self.since = now;
    }

    /// A command has come back.
    #[inline]
    pub fn returned(&mut self, now: u64) {
        self.note_busy(now);
        self.in_flight -= 1;
        self.pending -= 1;
    }

    /// The device has died, with all that was in flight.
    pub fn died(&mut self, now: u64) {
        if self.in_flight > 0 {
            self.busy += now - self.since;
        }
        (self.in_flight, self.pending, self.dead) = (0, 0, true);
    }

    /// Writes so far.
    pub fn writes(&self) -> u64 {
        self.writes
    }

    /// Counts a command, timed or not.
    #[inline]
    pub fn count(&mut self, command: &Command) {
        match command.op {
            Op::Read => {
                self.reads += 1;
                self.bytes_read += command.len;
            }
            Op::Write => {
                self.writes += 1;
                self.bytes_written += command.len;
            }
            Op::Trim => self.trims += 1,
            Op::Flush => self.flushes += 1,
            Op::Purge => self.purges += 1,
        }
    }
}

impl Device for Slot {
    fn kind(&self) -> &'static str {
        self.device.kind()
    }
    fn capacity(&self) -> u64 {
        self.device.capacity()
    }
    fn submit(&mut self, now: u64, command: Command) {
        self.pending += 1;
        self.send(now, command);
    }
    fn next_event(&self) -> u64 {
        self.device.next_event()
    }
    #[inline]
    fn advance(&mut self, limit: u64, done: &mut Vec<Completion>) -> u64 {
        self.device.advance(limit, done)
    }
    fn settle(&mut self, now: u64) -> u64 {
        self.device.settle(now)
    }
    fn apply(&mut self, command: &Command) {
        self.count(command);
        self.device.apply(command);
    }
    fn content(&self, offset: u64) -> u64 {
        self.device.content(offset)
    }
    fn counters(&self, visit: &mut dyn FnMut(&'static str, u64)) {
        visit("member_reads", self.reads);
        visit("member_writes", self.writes);
        visit("member_bytes_read", self.bytes_read);
        visit("member_bytes_written", self.bytes_written);
        visit("member_trims", self.trims);
        visit("member_flushes", self.flushes);
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
