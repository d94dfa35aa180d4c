//! Flash: parts that exist, geometry, timing, and the dies and channels that execute operations in time.

mod flash;
mod geometry;
pub mod parts;
pub mod schedule;
mod timing;

pub use flash::{
    Cause, Dropped, Finished, Flash, FlashCounters, NONE, OpKind, Place, Program, Registers, Work,
};
pub use geometry::{FastDiv, Geometry};
pub use timing::{PAGE_TYPES, ReadRetries, Suspend, Times, Timing, Variation};
