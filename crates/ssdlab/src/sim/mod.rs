//! The simulation kernel: which component acts next, and what queues before it.

mod calendar;
mod lane;
mod slab;

pub use calendar::Calendar;
pub use lane::Lane;
pub use slab::{Id, Slab};
