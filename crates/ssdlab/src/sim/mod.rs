//! The simulation kernel: which component acts next, and what queues before it.

mod bits;
mod calendar;
mod lane;
mod slab;
pub mod steps;
mod stretches;
mod table;

pub use bits::{bits, ones, words};
pub use calendar::Calendar;
pub use lane::{Lane, Wire};
pub use slab::{Id, Slab};
pub use stretches::Stretches;
pub use table::Table;
