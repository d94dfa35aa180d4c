//! A cache: frames, the keys in them, and the policy that chooses among them.

use super::directory::Directory;
use super::hit_ratio::{Request, Tally};
use super::policy::{Policy, Sizes};
use crate::error::Result;
use crate::persist::{Archive, Persist};

/// A key has come into a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Admitted {
    /// The frame.
    pub slot: u32,
    /// The key that had to leave it.
    pub evicted: Option<u64>,
}

/// A cache of blocks under any policy: frames are numbered from 0 to the capacity, and each holds one key.
///
/// ```
/// use ssdlab::cache::{Parameters, REPLACEMENTS};
/// use ssdlab::rng::Stream;
///
/// let policy = REPLACEMENTS.find("lru")?;
/// let stream = Stream::new(1, "cache");
/// let mut cache = policy.build.online("lru", 2, &Parameters::default(), stream)?;
/// assert_eq!(cache.find(7), None);
/// let seven = cache.admit(7, &mut |_| true).unwrap().slot;
/// let eight = cache.admit(8, &mut |_| true).unwrap().slot;
/// cache.hit(seven, &mut |_| true);
/// // 8 is the least recently used, but its frame may not be taken: it is dirty, say.
/// let admitted = cache.admit(9, &mut |slot| slot != eight).unwrap();
/// assert_eq!((admitted.slot, admitted.evicted), (seven, Some(7)));
/// # Ok::<(), ssdlab::Error>(())
/// ```
pub trait Frames: Persist + Send {
    /// Frames in all.
    fn capacity(&self) -> u32;

    /// Frames in use.
    fn len(&self) -> u32;

    /// Whether no frame is in use.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The frame that holds a key. Changes nothing.
    fn find(&self, key: u64) -> Option<u32>;

    /// The key in a frame, if it is in use.
    fn key(&self, slot: u32) -> Option<u64>;

    /// A frame in use was used again. A policy to which that costs another frame its place frees that, if `may` holds of
    /// it; answers it.
    fn hit(&mut self, slot: u32, may: &mut dyn FnMut(u32) -> bool) -> Option<u32>;

    /// Brings a key that is absent into a frame: a free one, or one of which `may` holds and that the policy gives up
    /// for it. `may` can refuse frames that are dirty or at work. None where no frame may be taken; then nothing has
    /// changed but what the policy forgets when it passes over frames, such as reference bits.
    fn admit(&mut self, key: u64, may: &mut dyn FnMut(u32) -> bool) -> Option<Admitted>;

    /// Frees ahead of time the frame that the policy would give up first of those of which `may` holds; answers it
    /// and its key.
    fn evict(&mut self, may: &mut dyn FnMut(u32) -> bool) -> Option<(u32, u64)>;

    /// Frees a frame in use whose key is no longer valid (TRIM). The policy does not take it for an eviction.
    fn remove(&mut self, slot: u32);

    /// A frame in use is pinned or no longer is: `may` of [`Frames::admit`] will not hold of it for long (it is dirty),
    /// or may hold again. Changes what evictions cost, not what they take.
    fn pin(&mut self, slot: u32, pinned: bool);

    /// What a frame holds takes so many bytes; nothing to a policy that does not weigh.
    fn sized(&mut self, slot: u32, bytes: u32);

    /// What the policy can order.
    fn sizes(&self) -> Sizes;

    /// Plays requests with write-allocate and adds up hits and misses.
    fn replay(&mut self, requests: &[Request], tally: &mut Tally);

    /// Bytes of memory that frames, ghosts, index and policy take.
    fn bytes(&self) -> usize;
}

/// [`Frames`] under one policy.
pub struct Cache<P> {
    names: Directory,
    policy: P,
}

impl<P: Persist> Persist for Cache<P> {
    fn persist(&mut self, archive: &mut Archive<'_>) -> Result<()> {
        self.names.persist(archive)?;
        self.policy.persist(archive)
    }
}

impl<P: Policy + 'static> Cache<P> {
    /// An empty cache whose policy may use so many ghosts.
    pub(super) fn boxed(capacity: u32, ghosts: u32, policy: P) -> Box<dyn Frames> {
        Box::new(Cache { names: Directory::new(capacity, ghosts), policy })
    }
}

impl<P: Policy> Cache<P> {
    /// Brings in a key whose ghost, if it has left one, is known; answers its frame and the key that left.
    #[inline]
    fn bring_in(
        &mut self,
        key: u64,
        ghost: Option<u32>,
        may: impl FnMut(u32) -> bool,
    ) -> Option<(u32, Option<u64>)> {
        let (slot, evicted) = match self.names.vacant() {
            Some(slot) => (slot, None),
            None => {
                let slot = self.policy.evict(&mut self.names, ghost, may)?;
                (slot, Some(self.names.last_key(slot)))
            }
        };
        // The eviction may have cost the ghost its place.
        let ghost = ghost.filter(|&g| self.names.is_live(g) && self.names.key(g) == key);
        self.policy.admit(&mut self.names, slot, ghost);
        match ghost {
            Some(ghost) => self.names.revive(ghost, slot),
            None => self.names.insert(key, slot),
        }
        self.policy.entered(&mut self.names, slot);
        Some((slot, evicted))
    }

    #[inline]
    fn use_again(&mut self, slot: u32, may: impl FnMut(u32) -> bool) -> Option<u32> {
        let freed = self.policy.hit_freeing(&mut self.names, slot, may);
        if let Some(freed) = freed {
            self.names.give_back(freed);
        }
        freed
    }

    /// A use of a key, which comes in if it is absent.
    #[inline]
    fn touch(&mut self, key: u64, write: bool, tally: &mut Tally) {
        let found = self.names.find(key);
        match found {
            Some(slot) if !self.names.is_ghost(slot) => {
                tally.count(true, slot, write);
                if let Some(freed) = self.use_again(slot, |_| true) {
                    tally.leave(freed);
                }
            }
            ghost => {
                let (slot, _) = self.bring_in(key, ghost, |_| true).expect("any may be taken");
                tally.count(false, slot, write);
            }
        }
    }
}

impl<P: Policy> Frames for Cache<P> {
    fn capacity(&self) -> u32 {
        self.names.capacity()
    }

    fn len(&self) -> u32 {
        self.names.len()
    }

    fn find(&self, key: u64) -> Option<u32> {
        self.names.find(key).filter(|&entry| !self.names.is_ghost(entry))
    }

    fn key(&self, slot: u32) -> Option<u64> {
        self.names.is_live(slot).then(|| self.names.key(slot))
    }

    fn hit(&mut self, slot: u32, may: &mut dyn FnMut(u32) -> bool) -> Option<u32> {
        debug_assert!(self.names.is_live(slot));
        self.use_again(slot, may)
    }

    fn admit(&mut self, key: u64, may: &mut dyn FnMut(u32) -> bool) -> Option<Admitted> {
        let ghost = self.names.find(key);
        assert!(ghost.is_none_or(|entry| self.names.is_ghost(entry)), "the key is in a frame");
        let (slot, evicted) = self.bring_in(key, ghost, may)?;
        Some(Admitted { slot, evicted })
    }

    fn evict(&mut self, may: &mut dyn FnMut(u32) -> bool) -> Option<(u32, u64)> {
        let slot = self.policy.evict(&mut self.names, None, may)?;
        let key = self.names.last_key(slot);
        self.names.give_back(slot);
        Some((slot, key))
    }

    fn remove(&mut self, slot: u32) {
        assert!(self.names.is_live(slot), "the frame is in use");
        self.policy.remove(&mut self.names, slot);
        self.names.release(slot);
        self.names.give_back(slot);
    }

    fn pin(&mut self, slot: u32, pinned: bool) {
        self.policy.pin(slot, pinned);
    }

    fn sized(&mut self, slot: u32, bytes: u32) {
        self.policy.sized(slot, bytes);
    }

    fn sizes(&self) -> Sizes {
        P::SIZES
    }

    fn replay(&mut self, requests: &[Request], tally: &mut Tally) {
        for request in requests {
            for block in 0..u64::from(request.blocks) {
                self.touch(request.key.wrapping_add(block), request.write, tally);
            }
        }
    }

    fn bytes(&self) -> usize {
        self.names.bytes() + self.policy.bytes()
    }
}
