//! The plainest pattern, for which the least has to be asked.

use super::generator::{READ, TRIM, WRITE};
use super::pattern::{BlockSizes, Pattern};
use super::region::Order;

/// I/Os that differ in nothing but their offsets, in one file, with nothing between: what most jobs do.
#[derive(Clone, Copy, Debug)]
pub struct Plain {
    pub direction: usize,
    pub order: Order,
    pub len: u64,
}

impl Plain {
    /// What I/Os of this pattern have in common; `None` where more than the offset is drawn.
    pub fn of(pattern: &Pattern) -> Option<Self> {
        let direction = match pattern.directions {
            [true, false, false] => READ,
            [false, true, false] => WRITE,
            [false, false, true] if !pattern.trim_then_write => TRIM,
            _ => return None,
        };
        let order = match pattern.percentage_random[direction] {
            _ if pattern.random_every != 1 => return None,
            _ if !pattern.random => Order::Next,
            100 => Order::Random,
            _ => return None,
        };
        match pattern.sizes[direction] {
            BlockSizes::Fixed(len) => Some(Plain { direction, order, len }),
            BlockSizes::Range { .. } | BlockSizes::Split(_) => None,
        }
    }
}
