//! Commands that a member does by itself: handed on as they are, and answered by its answer.
//!
//! They take no place here. Their tag stays that of the one above, so the tags of commands of the fleet's own must
//! not be taken for it: they begin with the fleet's height above the last device, which no fleet above or below it
//! has. A command that comes with such a tag is not handed on.

use super::{Fleet, IoId};
use crate::contract::{Command, Device, Op, hand_over};

/// Where the height of a fleet stands in the tags of its commands.
const HEIGHT: u32 = 56;

/// How many devices there are from this one down.
pub(super) fn height(device: &dyn Device) -> u64 {
    1 + device.children().iter().map(|(_, child)| height(*child)).max().unwrap_or(0)
}

impl<O: Copy + Default, P: Copy + Default + std::fmt::Debug> Fleet<O, P> {
    /// The tag of a command of its own.
    #[inline]
    pub(super) fn tag(&self, id: IoId) -> u64 {
        self.height << HEIGHT | id.bits()
    }

    /// Whether a tag is that of one.
    #[inline]
    pub(super) fn is_own(&self, tag: u64) -> bool {
        tag >> HEIGHT == self.height
    }

    /// Whether a command of the host may be handed on as it is. What is read is known only to who knows contents.
    #[inline]
    pub(super) fn may_pass(&self, command: &Command) -> bool {
        matches!(command.op, Op::Read | Op::Write)
            && !self.is_own(command.tag)
            && !self.purging
            && !self.power.is_off()
    }

    /// Hands it on.
    #[inline]
    pub(super) fn pass(&mut self, member: usize, command: Command) {
        let device = &mut self.members[member];
        device.pending += 1;
        device.submit(self.now, Command { process: 0, ..command });
        let next = device.next_event();
        self.plan(member, next);
    }

    /// So many of them have come back from a member.
    #[inline]
    pub(super) fn passed(&mut self, member: usize, commands: u32) {
        self.members[member].returned(self.now, commands);
        (self.in_flight, self.last_host) = (self.in_flight - commands, self.now);
    }

    /// Answers them where nothing else has arrived; whether that was so.
    #[inline]
    pub(super) fn passed_on(&mut self, member: usize) -> bool {
        let all = self.arrived.iter().all(|completion| !self.is_own(completion.tag));
        if all {
            self.passed(member, self.arrived.len() as u32);
            hand_over(&mut self.arrived, &mut self.ready);
        }
        all
    }
}
