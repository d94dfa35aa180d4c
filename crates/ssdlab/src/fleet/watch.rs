//! What is asked of commands of members in flight: whether any of them touches some bytes, or lets members forget.

use super::{Fleet, IoId};
use crate::contract::Op;

/// Whether what was there may be gone after it.
#[inline]
pub(super) fn clears(op: Op) -> bool {
    matches!(op, Op::Trim | Op::Purge)
}

impl<O, P> Fleet<O, P> {
    /// Whether a command is in flight that lets members forget what they hold.
    #[inline]
    pub fn is_clearing(&self) -> bool {
        self.clearing > 0
    }

    /// It will be asked whether the command touches bytes of a space, which are these of it.
    #[inline]
    pub fn watch(&mut self, id: IoId, space: u32, begin: u64, len: u64) {
        self.watched.insert(id.number(), space, begin, len);
    }

    /// Whether a command in flight that is watched touches these bytes of a space.
    pub fn is_touched(&self, space: u32, begin: u64, len: u64) -> bool {
        self.watched.overlap(space, begin, len)
    }
}
