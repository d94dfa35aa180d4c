//! Wires, and who waits for them: transfers end in the order in which they began.

use crate::persist::persistent;
use crate::units::NEVER;
use std::collections::VecDeque;

/// One direction of a wire: transfers one at a time, first in, first out.
#[derive(Clone, Copy, Debug, Default)]
pub struct Wire {
    free_at: u64,
    busy: u64,
}

impl Wire {
    /// Queues a transfer of `time` ns; answers when it will end.
    #[inline]
    pub fn take(&mut self, now: u64, time: u64) -> u64 {
        self.free_at = self.free_at.max(now) + time;
        self.busy += time;
        self.free_at
    }

    /// Ends everything at `now`.
    pub fn cut(&mut self, now: u64) {
        self.busy -= self.free_at.saturating_sub(now);
        self.free_at = self.free_at.min(now);
    }

    /// Time of all transfers so far, queued ones included, ns.
    pub fn busy_ns(&self) -> u64 {
        self.busy
    }
}

/// A wire and what crosses it; `T` says whose each transfer is.
#[derive(Clone, Debug, Default)]
pub struct WireQueue<T> {
    wire: Wire,
    /// End of each transfer under way or waiting, and whose it is.
    queue: VecDeque<(u64, T)>,
}

impl<T> WireQueue<T> {
    /// Queues a transfer of `time` ns; answers when it will end.
    #[inline]
    pub fn send(&mut self, now: u64, time: u64, whose: T) -> u64 {
        let end = self.wire.take(now, time);
        self.queue.push_back((end, whose));
        end
    }

    /// When the next transfer ends; [`NEVER`] if there is none.
    #[inline]
    pub fn next(&self) -> u64 {
        self.queue.front().map_or(NEVER, |&(time, _)| time)
    }

    /// Takes the transfer that ends next.
    #[inline]
    pub fn pop(&mut self) -> Option<T> {
        self.queue.pop_front().map(|(_, whose)| whose)
    }

    /// Ends everything at `now`; whose transfers were under way or waiting, in order.
    pub fn cut(&mut self, now: u64) -> impl Iterator<Item = T> + '_ {
        self.wire.cut(now);
        self.queue.drain(..).map(|(_, whose)| whose)
    }

    /// Time of all transfers so far, queued ones included, ns.
    pub fn busy_ns(&self) -> u64 {
        self.wire.busy
    }

    /// Nothing is under way.
    pub fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }
}

persistent!(Wire { state { free_at, busy } });
persistent!(impl<T: Persist> WireQueue<T> { state { wire, queue } });
