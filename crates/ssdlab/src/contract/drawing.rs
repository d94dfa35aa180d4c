//! A steady state that is being drawn, and who watches.

use crate::rng::Stream;

/// Units of work between two looks at who watches.
const UNITS_PER_LOOK: u64 = 1 << 17;

/// What a steady state is drawn with: randomness, and somebody who sees how far it is and may stop it.
pub struct Drawing<'a> {
    /// Where randomness comes from.
    pub stream: &'a mut Stream,
    /// Is told the share that is done; `false` stops.
    watch: &'a mut dyn FnMut(f64) -> bool,
    done: u64,
    all: u64,
    next: u64,
    stopped: bool,
}

impl<'a> Drawing<'a> {
    /// One that is watched.
    pub fn new(stream: &'a mut Stream, watch: &'a mut dyn FnMut(f64) -> bool) -> Self {
        Drawing { stream, watch, done: 0, all: 1, next: 0, stopped: false }
    }

    /// So many units of work are to be done in all.
    pub(crate) fn begin(&mut self, units: u64) {
        self.all = units.max(1);
    }

    /// So many more are done; whether it goes on.
    #[inline]
    pub(crate) fn advance(&mut self, units: u64) -> bool {
        self.done += units;
        if self.done >= self.next {
            self.look();
        }
        !self.stopped
    }

    #[cold]
    fn look(&mut self) {
        self.next = self.done + UNITS_PER_LOOK;
        let share = (self.done as f64 / self.all as f64).min(1.0);
        self.stopped |= !(self.watch)(share);
    }

    /// Whether it was stopped.
    pub fn is_stopped(&self) -> bool {
        self.stopped
    }
}
