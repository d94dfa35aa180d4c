//! Replacement policies: which frame of a full cache is given to another key.
//!
//! To add one: a file here that implements [`Policy`], and an entry in [`REPLACEMENTS`].

mod arc;
mod clock;
mod gdsf;
mod in_order;
mod lfu;
mod lhd;
mod lirs;
mod lirs_libcachesim;
mod optimal;
mod random;
mod s3_fifo;
mod sketch;
mod smq;
mod two_q;
mod w_tinylfu;

pub use optimal::{Future, optimal};

use super::directory::Directory;
use super::frames::{Cache, Frames};
use super::hit_ratio::Counts;
use crate::error::{Error, Result};
use crate::persist::Persist;
use crate::registry::{Entry, Registry};
use crate::rng::Stream;

/// What a policy can order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sizes {
    /// Blocks: it needs their number, or shares of it.
    One,
    /// Objects of different sizes, too.
    Any,
    /// Objects by their sizes: one that has just come may be the first to go.
    Weighed,
}

/// Orders frames, so that one can be chosen; may remember keys that have left, as ghosts of the directory.
///
/// The cache calls it with frames that are in use; the policy keeps what it needs in flat arrays by entry number.
pub trait Policy: Persist + Send {
    /// What it can order.
    const SIZES: Sizes = Sizes::One;

    /// A frame was used again.
    fn hit(&mut self, names: &mut Directory, slot: u32);

    /// The same where a hit may cost another frame its place: of those of which `may` holds one is released, which it
    /// answers.
    #[inline]
    fn hit_freeing(
        &mut self,
        names: &mut Directory,
        slot: u32,
        _may: impl FnMut(u32) -> bool,
    ) -> Option<u32> {
        self.hit(names, slot);
        None
    }

    /// Chooses a frame of which `may` holds and releases its key, or makes a ghost of it. `ghost` is the one that
    /// the key to come has left, if it has. Nothing has changed where there is no such frame, apart from reference
    /// bits.
    fn evict(
        &mut self,
        names: &mut Directory,
        ghost: Option<u32>,
        may: impl FnMut(u32) -> bool,
    ) -> Option<u32>;

    /// A released frame takes a key, which has left `ghost`, if it has; the cache revives the ghost afterwards.
    fn admit(&mut self, names: &mut Directory, slot: u32, ghost: Option<u32>);

    /// The frame holds its key now: for who counts by key.
    fn entered(&mut self, _names: &mut Directory, _slot: u32) {}

    /// What the frame holds takes so many bytes: for who weighs by them.
    fn sized(&mut self, _slot: u32, _bytes: u32) {}

    /// A frame is about to be freed without a trace.
    fn remove(&mut self, names: &mut Directory, slot: u32);

    /// A frame is pinned or no longer is: `may` will not hold of it for long, as it is dirty, or may hold again. Who
    /// makes nothing of it walks past pinned frames at every eviction.
    fn pin(&mut self, _slot: u32, _pinned: bool) {}

    /// Bytes of memory that it takes.
    fn bytes(&self) -> usize;
}

/// Parameters of all replacement policies; each takes its own. The defaults are those of libCacheSim 0.3.5.
#[derive(Clone, Debug, PartialEq, serde::Deserialize, serde::Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct Parameters {
    /// `s3-fifo`: share of the frames that form the small queue.
    pub small: f64,
    /// `s3-fifo`: ghosts, as a share of the frames.
    pub ghosts: f64,
    /// `s3-fifo`: uses in the small queue that move a frame to the main one.
    pub promote_after: u8,
    /// `2q`: share of the frames that form the queue of those used once (Kin).
    pub once: f64,
    /// `2q`: ghosts, as a share of the frames (Kout).
    pub remembered: f64,
    /// `lirs`: share of the frames for keys that come back late (HIR).
    pub late: f64,
    /// `w-tinylfu`: share of the frames that form the window.
    pub window: f64,
}

impl Default for Parameters {
    fn default() -> Self {
        Parameters {
            small: 0.1,
            ghosts: 0.9,
            promote_after: 2,
            once: 0.25,
            remembered: 0.5,
            late: 0.01,
            window: 0.01,
        }
    }
}

impl Parameters {
    /// That every share is one.
    pub fn check(&self) -> Result<()> {
        let share = |name: &str, value: f64, most: f64| {
            if (0.0..=most).contains(&value) {
                return Ok(());
            }
            Err(Error::value(value.to_string(), format!("for {name} a share from 0 to {most}")))
        };
        share("small", self.small, 1.0)?;
        share("ghosts", self.ghosts, 4.0)?;
        share("once", self.once, 1.0)?;
        share("remembered", self.remembered, 4.0)?;
        share("late", self.late, 1.0)?;
        share("window", self.window, 1.0)
    }
}

/// Builds a cache of so many frames; the stream is its own.
pub type BuildOnline = fn(u32, &Parameters, Stream) -> Box<dyn Frames>;

/// How a policy is made.
#[derive(Clone, Copy)]
pub enum BuildReplacement {
    /// It knows the past.
    Online(BuildOnline),
    /// It plays a whole trace, for hit ratios only: it knows what will be asked for, or holds more than a cache may.
    Offline(fn(&Future, u32) -> Counts),
}

impl BuildReplacement {
    /// What the policy can order; none for who is no cache.
    pub fn sizes(self) -> Option<Sizes> {
        match self {
            BuildReplacement::Online(build) => {
                Some(build(2, &Parameters::default(), Stream::new(0, "")).sizes())
            }
            BuildReplacement::Offline(_) => None,
        }
    }

    /// Builds a cache with the policy called `name`.
    ///
    /// Errors: a capacity of 0 or above [`CAPACITY_MAX`], parameters out of range, a policy that knows the future.
    pub fn online(
        self,
        name: &str,
        capacity: u32,
        parameters: &Parameters,
        stream: Stream,
    ) -> Result<Box<dyn Frames>> {
        check_capacity(capacity)?;
        parameters.check()?;
        match self {
            BuildReplacement::Online(build) => Ok(build(capacity, parameters, stream)),
            BuildReplacement::Offline(_) => Err(Error::value(
                name,
                "a policy that a cache can have, not one for hit ratios only",
            )),
        }
    }
}

/// Most frames of one cache; ghosts come on top, and entries are counted in 32 bits.
pub const CAPACITY_MAX: u32 = 1 << 29;

/// That so many frames can be.
pub fn check_capacity(capacity: u32) -> Result<()> {
    if (1..=CAPACITY_MAX).contains(&capacity) {
        return Ok(());
    }
    Err(Error::value(
        format!("{capacity} blocks"),
        format!("a cache of 1 to {CAPACITY_MAX} blocks"),
    ))
}

/// A part of the frames, rounded down.
fn part(capacity: u32, share: f64) -> u32 {
    (f64::from(capacity) * share) as u32
}

/// Names of the policies that hold objects of different sizes.
pub fn of_any_size() -> impl Iterator<Item = &'static str> {
    let any = |entry: &&Entry<BuildReplacement>| {
        matches!(entry.build.sizes(), Some(Sizes::Any | Sizes::Weighed))
    };
    REPLACEMENTS.entries.iter().filter(any).map(|entry| entry.name)
}

/// Known replacement policies.
pub const REPLACEMENTS: Registry<BuildReplacement> = Registry {
    what: "replacement policy",
    entries: &[
        Entry {
            name: "lru",
            summary: "the block not used for the longest time",
            reference: "Mattson et al., Evaluation techniques for storage hierarchies, IBM Systems Journal 9 (1970)",
            build: BuildReplacement::Online(|n, _, _| Cache::boxed(n, 0, in_order::Lru::new(n))),
        },
        Entry {
            name: "fifo",
            summary: "the block that came first, used or not",
            reference: "Belady, A study of replacement algorithms for a virtual-storage computer, IBM Systems Journal 5 (1966)",
            build: BuildReplacement::Online(|n, _, _| Cache::boxed(n, 0, in_order::Fifo::new(n))),
        },
        Entry {
            name: "clock",
            summary: "FIFO, but a block used since the hand last came by is passed over once",
            reference: "Corbato, A paging experiment with the Multics system, 1968",
            build: BuildReplacement::Online(|n, _, _| Cache::boxed(n, 0, clock::Clock::new(n))),
        },
        Entry {
            name: "lfu",
            summary: "the block used least often since it came, among equals the one that became so first",
            reference: "Shah, Mitra & Matani, An O(1) algorithm for implementing the LFU cache eviction scheme, 2010",
            build: BuildReplacement::Online(|n, _, _| Cache::boxed(n, 0, lfu::Lfu::new(n))),
        },
        Entry {
            name: "gdsf",
            summary: "the object with the fewest uses for its bytes, above those evicted before; of blocks LFU that ages",
            reference: "Cherkasova, Improving WWW proxies performance with Greedy-Dual-Size-Frequency caching policy, HP Labs HPL-98-69 (1998)",
            build: BuildReplacement::Online(|n, _, _| Cache::boxed(n, 0, gdsf::Gdsf::new(n))),
        },
        Entry {
            name: "2q",
            summary: "a FIFO for blocks seen once, an LRU list for those asked for again after they left it",
            reference: "Johnson & Shasha, 2Q: a low overhead high performance buffer management replacement algorithm, VLDB 1994",
            build: BuildReplacement::Online(two_q::build),
        },
        Entry {
            name: "arc",
            summary: "two LRU lists, seen once and more often, whose shares follow the hits on what has left",
            reference: "Megiddo & Modha, ARC: a self-tuning, low overhead replacement cache, FAST 2003",
            build: BuildReplacement::Online(|n, _, _| Cache::boxed(n, n + 1, arc::Arc::new(n))),
        },
        Entry {
            name: "lirs",
            summary: "keeps blocks whose last two uses were close; others pass through one percent of the cache",
            reference: "Jiang & Zhang, LIRS: an efficient low inter-reference recency set replacement policy, SIGMETRICS 2002",
            build: BuildReplacement::Online(lirs::build),
        },
        Entry {
            name: "lirs-libcachesim",
            summary: "lirs as libCacheSim 0.3.5 has it: below 200 blocks it holds more than it may; for hit ratios only",
            reference: "Yang, libCacheSim 0.3.5 (2026), https://github.com/1a1a11a/libCacheSim",
            build: BuildReplacement::Offline(lirs_libcachesim::play),
        },
        Entry {
            name: "s3-fifo",
            summary: "a small FIFO that sorts out blocks used once, a main FIFO with second chances, a FIFO of ghosts",
            reference: "Yang et al., FIFO queues are all you need for cache eviction, SOSP 2023",
            build: BuildReplacement::Online(s3_fifo::build),
        },
        Entry {
            name: "sieve",
            summary: "a FIFO whose hand passes over used blocks and leaves them where they are",
            reference: "Zhang et al., SIEVE is simpler than LRU, NSDI 2024",
            build: BuildReplacement::Online(|n, _, _| Cache::boxed(n, 0, clock::Clock::sieve(n))),
        },
        Entry {
            name: "w-tinylfu",
            summary: "an LRU window for new blocks; the main cache takes those used more often than what would leave it",
            reference: "Einziger, Friedman & Manes, TinyLFU: a highly efficient cache admission policy, ACM TOS 13 (2017)",
            build: BuildReplacement::Online(w_tinylfu::build),
        },
        Entry {
            name: "lhd",
            summary: "of some blocks drawn, that with the fewest hits to come for the time it will stay, by age",
            reference: "Beckmann, Chen & Cidon, LHD: improving cache hit rate by maximizing hit density, NSDI 2018",
            build: BuildReplacement::Online(|n, _, stream| lhd::build(n, stream)),
        },
        Entry {
            name: "smq",
            summary: "the oldest block of the lowest of 64 levels; a use lifts a block by one, once in a period",
            reference: "Linux Documentation/admin-guide/device-mapper/cache-policies.rst: stochastic multiqueue of dm-cache",
            build: BuildReplacement::Online(|n, _, _| Cache::boxed(n, 0, smq::Smq::new(n))),
        },
        Entry {
            name: "random",
            summary: "any block",
            reference: "Belady, A study of replacement algorithms for a virtual-storage computer, IBM Systems Journal 5 (1966)",
            build: BuildReplacement::Online(|n, _, stream| {
                Cache::boxed(n, 0, random::Random::new(n, stream))
            }),
        },
        Entry {
            name: "optimal",
            summary: "the block whose next use is farthest: a bound that nothing can beat, for hit ratios only",
            reference: "Belady, A study of replacement algorithms for a virtual-storage computer, IBM Systems Journal 5 (1966)",
            build: BuildReplacement::Offline(optimal),
        },
    ],
};
