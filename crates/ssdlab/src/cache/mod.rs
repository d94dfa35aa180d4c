//! Caches of blocks: replacement policies, hit ratios, miss-ratio curves.
//!
//! - [`policy`]: which frame is given up, a file per policy; [`REPLACEMENTS`] lists them
//! - [`admission`]: what a cache takes in at all, a file per rule; [`ADMISSIONS`] lists them
//! - [`Frames`]: a cache of numbered frames under any policy, for a device or for a replay
//! - [`hit_ratio`](fn@hit_ratio): a whole trace through a cache of one size
//! - [`objects`](fn@objects): the same of objects of different sizes, in bytes
//! - [`curve`]: misses and write-backs at many sizes: LRU in one pass, others by replay; whole or sampled
//! - [`device`]: the cache as a device in time, before a slower one
//!
//! Apart from the device nothing here knows time. A cache moves frame numbers; what is in them, and when, is the
//! business of the device.

pub mod admission;
mod aside;
pub mod curve;
pub mod device;
mod directory;
mod frames;
pub mod hit_ratio;
mod index;
mod levels;
pub(crate) mod links;
mod members;
pub mod objects;
pub mod policy;
mod queue;
mod stack;

pub use admission::{ADMISSIONS, Choice};
pub use frames::{Admitted, Cache, Frames};
pub use hit_ratio::{Counts, Request, Tally, hit_ratio, let_past};
pub use objects::objects;
pub use policy::{Parameters, REPLACEMENTS};
