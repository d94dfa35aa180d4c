//! Queues whose heads are taken in turn.

use crate::persist::persistent;
use std::collections::VecDeque;

/// Queues by number, each first in, first out; those that hold something give one thing each in turn. Cost: constant,
/// however many queues there are.
#[derive(Clone, Debug, Default)]
pub struct Turns<T> {
    queues: Vec<VecDeque<T>>,
    /// Those that hold something, in the order of their turns.
    order: VecDeque<u32>,
}

impl<T> Turns<T> {
    /// Puts a thing behind all others of its queue.
    pub fn push(&mut self, queue: u32, thing: T) {
        let at = queue as usize;
        if self.queues.len() <= at {
            self.queues.resize_with(at + 1, VecDeque::new);
        }
        if self.queues[at].is_empty() {
            self.order.push_back(queue);
        }
        self.queues[at].push_back(thing);
    }

    /// Takes the first thing of the queue whose turn it is.
    #[inline]
    pub fn pop(&mut self) -> Option<T> {
        let queue = self.order.pop_front()?;
        let things = &mut self.queues[queue as usize];
        let first = things.pop_front();
        if !things.is_empty() {
            self.order.push_back(queue);
        }
        first
    }

    /// Drops everything.
    pub fn clear(&mut self) {
        self.queues.iter_mut().for_each(VecDeque::clear);
        self.order.clear();
    }
}

persistent!(impl<T: Persist> Turns<T> { state { queues, order } });

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_queue_that_holds_something_has_its_turn() {
        let mut turns = Turns::default();
        for thing in [10, 11, 12] {
            turns.push(1, thing);
        }
        turns.push(3, 30);
        assert_eq!(turns.pop(), Some(10));
        turns.push(0, 0);
        let rest: Vec<i32> = std::iter::from_fn(|| turns.pop()).collect();
        assert_eq!(rest, [30, 11, 0, 12]);
        turns.push(3, 31);
        turns.clear();
        assert_eq!(turns.pop(), None);
    }
}
