//! Data that has left where it was safe, for a device that has it in a volatile write cache until a flush.
//!
//! Flushes are numbered as they begin. What is noted carries the number of the last one, so that it is safe when a
//! later one has ended.

use crate::persist::persistent;

/// See the module.
#[derive(Clone, Copy, Debug, Default)]
pub struct Exposed {
    /// Flushes that have begun, and the last that has ended.
    begun: u64,
    ended: u64,
    /// Amounts, and since which flush; what more flushes under way would part counts with the later one.
    amounts: [(u64, u64); 2],
}
persistent!(Exposed { state { begun, ended, amounts } });

impl Exposed {
    /// The number of the last flush that has begun.
    pub fn number(&self) -> u64 {
        self.begun
    }

    /// Whether what was noted with this number is safe.
    pub fn is_safe(&self, number: u64) -> bool {
        number < self.ended
    }

    /// So much is nowhere else now.
    pub fn add(&mut self, amount: u64) {
        let [older, newer] = self.amounts;
        if newer.0 != self.begun {
            let rest = if self.is_safe(older.0) { 0 } else { older.1 };
            self.amounts = [(newer.0, newer.1 + rest), (self.begun, 0)];
        }
        self.amounts[1].1 += amount;
    }

    /// How much is not safe.
    pub fn now(&self) -> u64 {
        let kept = self.amounts.iter().filter(|(number, _)| !self.is_safe(*number));
        kept.map(|(_, amount)| amount).sum()
    }

    /// A flush begins; its number.
    pub fn begin(&mut self) -> u64 {
        self.begun += 1;
        self.begun
    }

    /// A flush has ended: what was noted before it began is safe.
    pub fn end(&mut self, number: u64) {
        self.ended = self.ended.max(number);
    }

    /// All is safe.
    pub fn clear(&mut self) {
        self.ended = self.begin();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_noted_while_a_flush_is_under_way_waits_for_the_next() {
        let mut exposed = Exposed::default();
        exposed.add(3);
        let first = exposed.begin();
        exposed.add(1);
        assert_eq!(exposed.now(), 4);
        exposed.end(first);
        assert_eq!(exposed.now(), 1);
        exposed.clear();
        assert_eq!(exposed.now(), 0);
    }

    #[test]
    fn a_later_flush_may_end_first() {
        let mut exposed = Exposed::default();
        exposed.add(3);
        let first = exposed.begin();
        exposed.add(1);
        let second = exposed.begin();
        exposed.add(5);
        assert_eq!(exposed.now(), 9);
        exposed.end(second);
        assert_eq!(exposed.now(), 5);
        exposed.end(first);
        assert_eq!(exposed.now(), 5);
    }
}
