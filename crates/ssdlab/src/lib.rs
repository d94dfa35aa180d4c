//! # ssdlab: a laboratory for solid-state storage
//!
//! The simulation core: an ordinary fio job, on a drive that exists only as a few lines of TOML, in
//! virtual time. A tour, from the outside in:
//!
//! ```
//! use ssdlab::job::{ParseSource, parse};
//! use ssdlab::rig::Rig;
//! use ssdlab::run::{Preconditioning, RunOptions, Session};
//!
//! // A rig is a tree of devices: here an SSD alone. Errors name the key and what would be right.
//! let mut rig = Rig::parse(
//!     r#"
//!     [device]
//!     kind = "ssd"
//!     capacity = "64MiB"
//!     nand = { channels = 2, ways = 2, page = "4KiB", pages_per_block = 64, t_read = "75us", t_program = "750us", t_erase = "3.8ms", transfer_mts = 333 }
//!     "#,
//!     "small",
//! )?;
//! rig.set("ftl.over_provisioning", "0.28")?;
//! let mut drive = Session::new(rig.build(1, false)?, 1);
//!
//! // It begins in a known state, reached in no time: filled, then overwritten until it is steady.
//! let state: Preconditioning = "steady".parse()?;
//! drive.prepare(&state, &mut ())?;
//!
//! // A job file means what it means to fio.
//! let source = ParseSource {
//!     file: "w.fio".into(),
//!     env: Default::default(),
//!     include: &|_| Err(std::io::Error::other("nothing to include")),
//! };
//! let jobs = parse("[w]\nrw=randwrite\nbs=4k\niodepth=32\nnorandommap\nnumber_ios=50k\n", &source)?;
//!
//! // The driver moves virtual time from event to event until the job is done. The next one would
//! // find the drive as this one leaves it.
//! let result = drive.run(&jobs, &RunOptions::default(), &mut ())?;
//!
//! // Greedy collection at 28 % over-provisioning rewrites about 2.4 units for each one written.
//! let waf = result.waf.expect("an SSD counts its programs");
//! assert!((2.2..2.6).contains(&waf), "{waf}");
//! # Ok::<(), ssdlab::Error>(())
//! ```
//!
//! What each room is for, from the bottom up; a room uses only those above it in this list:
//!
//! - [`units`], [`error`], [`registry`], [`rng`]: quantities, what users get wrong, names, randomness
//! - [`persist`]: state in and out of a file
//! - [`sim`]: which component acts next
//! - [`stats`]: histograms, series, where time goes
//! - [`contract`]: what a device is, its commands and completions
//! - `fleet`: what devices made of devices share
//! - [`nand`]: dies and channels in time
//! - [`ftl`]: where data is placed and how space is reclaimed
//! - [`device`], [`array`](mod@array) and [`rig`]: the devices, and their description
//! - [`cache`]: replacement policies, hit ratios, miss-ratio curves
//! - [`tier`]: extents that move between two devices by their heat
//! - [`trace`]: block traces, their formats and what they are like
//! - [`job`]: fio job files
//! - [`run`]: device x job x seed -> result
//! - [`output`]: results as fio writes them
//! - [`catalogue`]: everything that has a name

pub mod array;
pub mod cache;
pub mod catalogue;
pub mod contract;
pub mod device;
pub mod error;
pub(crate) mod fleet;
pub mod ftl;
pub mod job;
pub mod nand;
pub mod output;
pub mod persist;
pub mod registry;
pub mod rig;
pub mod rng;
pub mod run;
pub mod sim;
pub mod stats;
pub mod tier;
pub mod trace;
pub mod units;

pub use error::{Error, Result};
