//! Members that fail, and their commands in flight, which nobody answers.

use super::{Fleet, Io};
use crate::units::NEVER;

impl<O: Copy + Default, P: Copy + Default + std::fmt::Debug> Fleet<O, P> {
    /// A member fails, with what it was doing: see [`Fleet::take_lost`].
    pub fn fail(&mut self, member: usize) {
        self.plan(member, NEVER);
        self.members[member].died(self.now);
    }

    /// The next command, from number `from` on, that a member which failed will not answer; its place is free.
    pub fn take_lost(&mut self, member: usize, from: &mut u32) -> Option<Io<P>> {
        while *from < self.ios.places() {
            let id = self.ios.at(*from);
            *from += 1;
            if let Some(id) = id.filter(|&id| self.ios[id].member == member) {
                return Some(self.take(id));
            }
        }
        None
    }

    /// All commands that a member which failed will not answer; their places are free.
    pub fn take_all_lost(&mut self, member: usize) -> Vec<Io<P>> {
        let mut from = 0;
        std::iter::from_fn(|| self.take_lost(member, &mut from)).collect()
    }
}
