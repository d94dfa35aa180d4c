//! The simulation kernel: which component acts next, and what queues before it.

mod bits;
mod calendar;
mod ranges;
mod slab;
pub mod steps;
mod table;
mod turns;
mod wire;

pub use bits::{bits, ones, words};
pub use calendar::Calendar;
pub use ranges::Ranges;
pub use slab::{Id, Slab};
pub use table::Table;
pub use turns::Turns;
pub use wire::{Wire, WireQueue};
