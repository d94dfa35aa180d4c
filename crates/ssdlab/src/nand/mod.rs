//! Flash: parts that exist, geometry, timing, and the dies and channels that execute operations in time.

mod flash;
mod geometry;
pub mod parts;
pub mod schedule;

pub use flash::{Cause, Dropped, Finished, Flash, FlashCounters, NONE, OpKind, Program, Work};
pub use geometry::{FastDiv, Geometry, Suspend, Timing};
