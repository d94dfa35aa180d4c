//! Placement policies: which region the next program unit of host data goes to.
//!
//! To add one: a file here that implements [`Placement`], and an entry in [`PLACEMENTS`].

mod least_busy;
mod round_robin;
mod striped;

use crate::persist::Persist;
use crate::registry::{Entry, Registry};

/// Chooses regions for host data.
pub trait Placement: Persist + Send {
    /// The region for unit `lpn`. `last` took the unit before, `open` says that its program unit
    /// is not full yet; `backlog` tells how busy a region's dies are (0: idle).
    fn pick(
        &mut self,
        lpn: u32,
        last: u32,
        open: bool,
        regions: u32,
        backlog: &dyn Fn(u32) -> u32,
    ) -> u32;

    /// Whether a unit always goes to the same region.
    fn binds(&self) -> bool {
        false
    }
}

/// Known placement policies.
pub const PLACEMENTS: Registry<fn() -> Box<dyn Placement>> = Registry {
    what: "placement policy",
    entries: &[
        Entry {
            name: "round-robin",
            summary: "program units go to the regions in turn",
            reference: "Tavakkol et al., Performance evaluation of dynamic page allocation strategies in SSDs, ACM TOMPECS 1 (2016)",
            build: || Box::new(round_robin::RoundRobin),
        },
        Entry {
            name: "least-busy",
            summary: "in turn, but regions whose dies are busy are passed over",
            reference: "Tavakkol et al., Performance evaluation of dynamic page allocation strategies in SSDs, ACM TOMPECS 1 (2016)",
            build: || Box::new(least_busy::LeastBusy),
        },
        Entry {
            name: "striped",
            summary: "fixed by address: unit n goes to region n mod the number of regions",
            reference: "Hu et al., Performance impact and interplay of SSD parallelism, ICS 2011 (static allocation)",
            build: || Box::new(striped::Striped),
        },
    ],
};
