//! Flash: geometry, timing, and the dies and channels that execute operations in time.

mod flash;
mod geometry;
pub mod schedule;

pub use flash::{Cause, Finished, Flash, FlashCounters, NONE, OpKind, Program};
pub use geometry::{FastDiv, Geometry, Suspend, Timing};
