//! A device whose time has gone on before the run: to the driver it begins at 0.

use crate::device::{Built, Command, Completion, Device, Distance, Missed, Op};
use crate::error::Result;
use crate::persist::{Archive, Persist};
use crate::units::NEVER;

/// `device`, seen by a clock that started when `by` ns had passed on it.
pub(super) struct Shifted<'a> {
    pub device: &'a mut dyn Device,
    pub by: u64,
}

impl Persist for Shifted<'_> {
    fn persist(&mut self, archive: &mut Archive<'_>) -> Result<()> {
        self.device.persist(archive)
    }
}

impl Device for Shifted<'_> {
    fn kind(&self) -> &'static str {
        self.device.kind()
    }
    fn capacity(&self) -> u64 {
        self.device.capacity()
    }
    fn submit(&mut self, now: u64, command: Command) {
        self.device.submit(now + self.by, command);
    }
    fn expect(&self, op: Op, offset: u64, ahead: Distance) {
        self.device.expect(op, offset, ahead);
    }
    fn heeds_hints(&self) -> bool {
        self.device.heeds_hints()
    }
    fn next_event(&self) -> u64 {
        match self.device.next_event() {
            NEVER => NEVER,
            time => time - self.by,
        }
    }
    fn advance(&mut self, limit: u64, done: &mut Vec<Completion>) -> u64 {
        let first = done.len();
        let reached = self.device.advance(limit.saturating_add(self.by), done) - self.by;
        for completion in &mut done[first..] {
            completion.time -= self.by;
        }
        reached
    }
    fn take_stock(&mut self, now: u64) {
        self.device.take_stock(now + self.by);
    }
    fn settle(&mut self, now: u64) -> u64 {
        self.device.settle(now + self.by) - self.by
    }
    fn power_cut(&mut self, now: u64, missed: &mut Missed) -> u64 {
        self.device.power_cut(now + self.by, missed) - self.by
    }
    fn is_volatile(&self) -> bool {
        self.device.is_volatile()
    }
    fn apply(&mut self, command: &Command) {
        self.device.apply(command);
    }
    fn counters(&self, visit: &mut dyn FnMut(&'static str, u64)) {
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
