//! Programs of host data under way between one flush and the next.

use crate::persist::persistent;
use std::collections::VecDeque;

/// How many there are by flush epoch: a flush that waits for some ends one.
#[derive(Debug, Default)]
pub(super) struct Epochs {
    /// Of the epoch that has not ended.
    current: u32,
    /// Of those before it, the oldest in front.
    earlier: VecDeque<u32>,
    /// Number of the oldest.
    first: u32,
}

persistent!(Epochs { state { current, earlier, first } });

impl Epochs {
    /// A program is queued; answers its epoch.
    #[inline(always)]
    pub fn queued(&mut self) -> u32 {
        self.current += 1;
        self.first + self.earlier.len() as u32
    }

    /// A program of that epoch has ended.
    #[inline(always)]
    pub fn ended(&mut self, epoch: u32) {
        let programs = self.earlier.get_mut((epoch - self.first) as usize);
        *programs.unwrap_or(&mut self.current) -= 1;
    }

    /// Whether any is under way.
    pub fn any(&self) -> bool {
        self.current > 0 || self.earlier.iter().any(|&programs| programs > 0)
    }

    /// A flush ends the epoch.
    pub fn flush(&mut self) {
        self.earlier.push_back(std::mem::take(&mut self.current));
    }

    /// Whether all of the oldest epoch that a flush has ended are done, which is forgotten then.
    pub fn flushed(&mut self) -> bool {
        let done = self.earlier.front() == Some(&0);
        if done {
            self.earlier.pop_front();
            self.first += 1;
        }
        done
    }

    /// Nothing is under way any more.
    pub fn clear(&mut self) {
        (self.current, self.earlier) = (0, VecDeque::new());
    }
}
