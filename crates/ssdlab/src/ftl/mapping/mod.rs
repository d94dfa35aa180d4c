//! Kinds of map: what it costs to know where a unit lies.
//!
//! The page map ([`PageMap`](super::PageMap)) always decides and remembers where data is. A kind of
//! map says how much RAM the drive has for that knowledge, and which flash operations a look-up or
//! an update takes because of it.
//!
//! To add one: a file here, a variant of [`Mapping`], and an entry in [`MAPS`].

mod cached;
mod extent;
mod merge;

pub use cached::CachedMap;
pub use extent::ExtentTable;

use super::check::digest;
use super::{Layout, PageMap, Scope, Settings, Sink};
use crate::error::{Error, Result};
use crate::nand::{Geometry, NONE};
use crate::persist::{Archive, Persist};
use crate::registry::{Entry, Registry};

/// The kind of map of a drive, with its state.
pub enum Mapping {
    /// All of it in RAM: look-ups and updates cost nothing.
    Page,
    /// Translation units in flash, some of them in RAM.
    Cached(Box<CachedMap>),
    /// A table of extents in RAM.
    Extent(Box<ExtentTable>),
}

/// Parameters of all kinds of map; each takes its own.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Parameters {
    /// `cached`: bytes of RAM for map entries.
    pub cache_bytes: u64,
    /// `extent`: entries that the table holds.
    pub entries: u64,
    /// `extent`: bytes that an entry can cover at most, and that are merged together.
    pub segment_bytes: u64,
    /// `extent`: bytes of the parts that have an entry each beside the table; 0: the segments.
    pub chunk_bytes: u64,
}

/// The drive that the map is for.
#[derive(Clone, Copy, Debug)]
pub struct Drive {
    /// Its flash.
    pub geometry: Geometry,
    /// What it collects inside.
    pub scope: Scope,
    /// How it collects.
    pub settings: Settings,
    /// Physical units for data.
    pub layout: Layout,
    /// Logical units.
    pub units: u32,
}

/// Builds a map; errors name the key below `ftl.map`.
pub type BuildMapping = fn(&Parameters, &Drive) -> Result<Mapping>;

/// Known kinds of map.
pub const MAPS: Registry<BuildMapping> = Registry {
    what: "map",
    entries: &[
        Entry {
            name: "page",
            summary: "an entry for each unit, all of them in RAM",
            reference: "",
            build: |_, _| Ok(Mapping::Page),
        },
        Entry {
            name: "cached",
            summary: "an entry for each unit in flash, a cache of them in RAM",
            reference: "Gupta, Kim & Urgaonkar, DFTL: a flash translation layer employing demand-based selective caching of page-level address mappings, ASPLOS 2009",
            build: |p, drive| CachedMap::new(p, drive).map(|m| Mapping::Cached(Box::new(m))),
        },
        Entry {
            name: "extent",
            summary: "entries of variable length in a bounded table; fragments are merged when it is full",
            reference: "Lee et al., u-FTL: a memory-efficient flash translation layer supporting multiple mapping granularities, EMSOFT 2008 (entries of variable length); merging as Intel's X25-M shows it",
            build: |p, drive| ExtentTable::new(p, drive).map(|t| Mapping::Extent(Box::new(t))),
        },
    ],
};

/// Work and state of a map so far; all 0 for what a kind does not have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MapCounters {
    /// Look-ups and updates of translation units in the cache.
    pub hits: u64,
    /// Translation units fetched into the cache.
    pub misses: u64,
    /// Translation units written: evicted, changed by collection, or moved.
    pub programs: u64,
    /// Units left empty by programs of translation units.
    pub padding: u64,
    /// Units programmed as parity of translation units.
    pub parity: u64,
    /// Superblocks of translation units erased.
    pub superblocks_erased: u64,
    /// Units in program units of translation units that are not full yet.
    pub units_open: u64,
    /// Extents in the table.
    pub extents: u64,
    /// Segments merged.
    pub merges: u64,
}

impl Mapping {
    /// What it has done so far.
    pub fn counters(&self) -> MapCounters {
        match self {
            Mapping::Page => MapCounters::default(),
            Mapping::Cached(cached) => cached.counters(),
            Mapping::Extent(table) => MapCounters {
                extents: table.extents(),
                merges: table.merges,
                ..MapCounters::default()
            },
        }
    }

    /// The map of the translation units, where they are kept in flash.
    pub fn table(&self) -> Option<&PageMap> {
        match self {
            Mapping::Cached(cached) => Some(&cached.table),
            Mapping::Page | Mapping::Extent(_) => None,
        }
    }

    /// Sees to it that the entry of `lpn` is in RAM, changed or not; answers the flash read that brings it,
    /// or [`NONE`].
    #[inline]
    pub(super) fn fetch<S: Sink>(&mut self, lpn: u32, change: bool, sink: &mut S) -> u32 {
        match self {
            Mapping::Cached(cached) => cached.fetch(lpn, change, sink),
            Mapping::Page | Mapping::Extent(_) => NONE,
        }
    }

    /// A superblock of `region` that is being emptied no longer holds `lpn`.
    #[inline]
    pub(super) fn moved(&mut self, region: u32, lpn: u32) {
        if let Mapping::Cached(cached) = self {
            cached.moved(region, lpn);
        }
    }

    /// All of a superblock of `region` has moved.
    pub(super) fn settle<S: Sink>(&mut self, region: u32, sink: &mut S) {
        if let Mapping::Cached(cached) = self {
            cached.settle(region, sink);
        }
    }

    /// Visits all that decides what it does next, for fingerprints.
    pub(super) fn state(&self, add: &mut dyn FnMut(u64)) {
        match self {
            Mapping::Page => {}
            Mapping::Cached(cached) => cached.state(add),
            Mapping::Extent(table) => add(digest(&**table)),
        }
    }
}

impl Persist for Mapping {
    fn persist(&mut self, archive: &mut Archive<'_>) -> Result<()> {
        match self {
            Mapping::Page => Ok(()),
            Mapping::Cached(cached) => cached.persist(archive),
            Mapping::Extent(table) => table.persist(archive),
        }
    }
}

fn refused(key: &str, message: String) -> Error {
    Error::rig(format!("ftl.map.{key}"), message)
}
