//! Timers of a device made of devices: few, most of them not set, so no calendar but a row with the first of them.

use crate::persist::persistent;
use crate::units::NEVER;

/// More than any device has.
const TIMERS: usize = 6;

/// See the module. Of equal times the lower number goes first.
pub(super) struct Timers {
    times: [u64; TIMERS],
    first: u32,
    due: u64,
}
persistent!(Timers { state { times, first, due } });

impl Timers {
    /// None is set.
    pub fn new() -> Self {
        Timers { times: [NEVER; TIMERS], first: 0, due: NEVER }
    }

    /// Plans one; [`NEVER`] stops it.
    #[inline]
    pub fn set(&mut self, which: u32, time: u64) {
        let planned = &mut self.times[which as usize];
        if *planned == time {
            return;
        }
        *planned = time;
        if which == self.first && time > self.due {
            self.find_first();
        } else if time < self.due || time == self.due && which < self.first {
            (self.first, self.due) = (which, time);
        }
    }

    #[inline]
    fn find_first(&mut self) {
        (self.first, self.due) = (0, self.times[0]);
        for (which, &time) in (0..).zip(&self.times) {
            let earlier = time < self.due;
            self.first = if earlier { which } else { self.first };
            self.due = if earlier { time } else { self.due };
        }
    }

    /// When the first is due.
    #[inline]
    pub fn due(&self) -> u64 {
        self.due
    }

    /// Which that is.
    #[inline]
    pub fn first(&self) -> u32 {
        self.first
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Stream;

    #[test]
    fn the_first_is_the_lowest_of_the_earliest() {
        let mut rng = Stream::new(1, "timers");
        let (mut timers, mut plain) = (Timers::new(), [NEVER; TIMERS]);
        for _ in 0..20_000 {
            let which = rng.below(TIMERS as u64) as usize;
            let time = if rng.below(4) == 0 { NEVER } else { rng.below(8) };
            plain[which] = time;
            timers.set(which as u32, time);
            let first = (0..TIMERS).min_by_key(|&i| (plain[i], i)).expect("timers");
            assert_eq!(timers.due(), plain[first]);
            if timers.due() != NEVER {
                assert_eq!(timers.first() as usize, first);
            }
        }
    }
}
