//! Folding of the SLC cache while the host is quiet.

use super::{FOLD, Ssd};
use crate::persist::persistent;
use crate::units::NEVER;

/// When folding goes on by itself.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct IdleFolding {
    /// Quiet time before it begins.
    after: Option<u64>,
    /// The host has been quiet for long enough, but the flash has not.
    due: bool,
}

persistent!(IdleFolding { state { due } built { after } });

impl IdleFolding {
    /// After so many ns, or never.
    pub fn new(after: Option<u64>) -> Self {
        IdleFolding { after, due: false }
    }

    /// Quiet time before it begins, if it ever does.
    pub fn after(&self) -> Option<u64> {
        self.after
    }
}

impl Ssd {
    /// The host is quiet from now on.
    pub(super) fn plan_fold(&mut self) {
        if let Some(after) = self.folding.after {
            self.calendar.set(FOLD, self.engine.now + after);
        }
    }

    /// The host is back.
    #[inline]
    pub(super) fn cancel_fold(&mut self) {
        if self.folding.after.is_some() {
            self.calendar.set(FOLD, NEVER);
            self.folding.due = false;
        }
    }

    /// It has been quiet for long enough: as soon as the flash is quiet too.
    pub(super) fn begin_fold(&mut self) {
        self.folding.due = true;
        self.fold_if_quiet();
    }

    /// Folds a little of each region whenever the flash has done the last bit, so that a command
    /// that comes meanwhile does not wait for much.
    #[inline(always)]
    pub(super) fn fold_if_quiet(&mut self) {
        if self.folding.due {
            self.fold_while_quiet();
        }
    }

    #[inline(never)]
    fn fold_while_quiet(&mut self) {
        if self.engine.quiet() {
            self.folding.due = self.ftl.fold_idle(&mut self.engine);
            if self.buffer.is_none() {
                // Collection for its sake may have left a program unit partly filled.
                self.ftl.pad_all(&mut self.engine);
            }
        }
    }
}
