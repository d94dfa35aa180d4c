//! Hits and misses of a stream of requests, without time.

use super::admission::{Admission, Choice};
use super::frames::Frames;
use super::policy::{
    BuildReplacement, CAPACITY_MAX, Future, Parameters, REPLACEMENTS, Sizes, check_capacity,
};
use crate::error::Result;
use crate::rng::Stream;

/// A use of some consecutive blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// The first block, or the name of an object.
    pub key: u64,
    /// How many blocks; each is looked up by itself, in order. 1 for an object.
    pub blocks: u32,
    /// Whether it writes.
    pub write: bool,
}

impl Request {
    /// A use of one block.
    pub fn one(key: u64, write: bool) -> Self {
        Request { key, blocks: 1, write }
    }
}

/// Blocks found in the cache and not, reads and writes apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Blocks read that were in the cache.
    pub read_hits: u64,
    /// Blocks read that were not.
    pub read_misses: u64,
    /// Blocks written that were in the cache.
    pub write_hits: u64,
    /// Blocks written that were not.
    pub write_misses: u64,
    /// Blocks that were dirty when they were evicted, and go to the backing store (write-back). Those still dirty
    /// at the end are not among them.
    pub write_backs: u64,
}

impl Counts {
    /// Blocks asked for.
    pub fn accesses(&self) -> u64 {
        self.read_hits + self.read_misses + self.write_hits + self.write_misses
    }

    /// Blocks that were not in the cache.
    pub fn misses(&self) -> u64 {
        self.read_misses + self.write_misses
    }

    /// Misses per access; 0 where nothing was asked for.
    pub fn miss_ratio(&self) -> f64 {
        self.misses() as f64 / self.accesses().max(1) as f64
    }
}

/// Adds up a replay; knows which frames are dirty.
pub struct Tally {
    /// What was counted so far.
    pub counts: Counts,
    /// A bit per frame.
    dirty: Vec<u64>,
}

impl Tally {
    /// For a cache of `capacity` frames, none dirty.
    pub fn new(capacity: u32) -> Self {
        Tally { counts: Counts::default(), dirty: vec![0; capacity.div_ceil(64) as usize] }
    }

    /// A block was asked for, and is in `slot` now.
    #[inline]
    pub fn count(&mut self, hit: bool, slot: u32, write: bool) {
        let (hit, wrote) = (u64::from(hit), u64::from(write));
        let counts = &mut self.counts;
        counts.read_hits += hit & (1 - wrote);
        counts.read_misses += (1 - hit) & (1 - wrote);
        counts.write_hits += hit & wrote;
        counts.write_misses += (1 - hit) & wrote;
        let word = &mut self.dirty[slot as usize / 64];
        let dirty = *word >> (slot % 64) & 1;
        // Without a hit the frame held another block, if any; a frame never used is clean.
        counts.write_backs += dirty & (1 - hit);
        let now = dirty & hit | wrote;
        *word = *word & !(1 << (slot % 64)) | now << (slot % 64);
    }

    /// What is in `slot` leaves, and nothing takes its place yet.
    pub fn leave(&mut self, slot: u32) {
        let word = &mut self.dirty[slot as usize / 64];
        self.counts.write_backs += *word >> (slot % 64) & 1;
        *word &= !(1 << (slot % 64));
    }

    /// A block was asked for that is not in the cache, and is not let in.
    pub fn pass(&mut self, write: bool) {
        self.counts.read_misses += u64::from(!write);
        self.counts.write_misses += u64::from(write);
    }

    /// Blocks that are dirty now.
    pub fn dirty(&self) -> u64 {
        self.dirty.iter().map(|word| u64::from(word.count_ones())).sum()
    }
}

/// Plays a whole trace through a cache that begins empty; every miss brings the block in, reads and writes alike, if
/// the admission lets it.
///
/// `policy` is a [`Choice`], such as `lru` or `lru+ghost`, `capacity` in blocks. Randomness, where a policy has any, comes from
/// the stream `cache/replacement` of `seed`.
///
/// Errors: an unknown name, a capacity of 0 or too large, parameters out of range.
pub fn hit_ratio(
    policy: &str,
    parameters: &Parameters,
    capacity: u32,
    requests: impl IntoIterator<Item = Request>,
    seed: u64,
) -> Result<Counts> {
    let choice = Choice::parse(policy)?;
    if let BuildReplacement::Offline(play) = choice.policy.build {
        check_capacity(capacity)?;
        return Ok(play(&Future::of(requests)?, capacity));
    }
    play(&choice, parameters, capacity, requests, seed)
}

/// Plays requests through a new cache whose policy knows the past only.
pub(super) fn play(
    choice: &Choice<'_>,
    parameters: &Parameters,
    capacity: u32,
    requests: impl IntoIterator<Item = Request>,
    seed: u64,
) -> Result<Counts> {
    let stream = Stream::new(seed, "cache/replacement");
    let Choice { policy, .. } = choice;
    check_capacity(capacity)?;
    // What comes is weighed against all that is there, in a frame more.
    let weighs = policy.build.sizes() == Some(Sizes::Weighed);
    let frames = capacity + u32::from(weighs && capacity < CAPACITY_MAX);
    let mut cache = policy.build.online(policy.name, frames, parameters, stream)?;
    let admission = choice.admission(capacity, false, seed)?;
    if admission.is_none() && !weighs {
        return Ok(replay(cache.as_mut(), requests));
    }
    Ok(admitted(cache.as_mut(), capacity, admission, requests))
}

/// What a cache that writes through lets past to what is behind it: of a read the runs of blocks that are not in it,
/// and every write, each with the place of its request. The cache begins empty and lets every miss in.
///
/// Errors: as [`hit_ratio`], and a policy that has to know the future.
pub fn let_past(
    policy: &str,
    capacity: u32,
    requests: impl IntoIterator<Item = Request>,
    seed: u64,
) -> Result<Vec<(usize, Request)>> {
    let policy = REPLACEMENTS.find(policy)?;
    let stream = Stream::new(seed, "cache/replacement");
    let mut cache = policy.build.online(policy.name, capacity, &Parameters::default(), stream)?;
    let mut past: Vec<(usize, Request)> = Vec::new();
    for (place, request) in requests.into_iter().enumerate() {
        for block in 0..u64::from(request.blocks) {
            let key = request.key.wrapping_add(block);
            let found = cache.find(key);
            match found {
                Some(slot) => drop(cache.hit(slot, &mut |_| true)),
                None => drop(cache.admit(key, &mut |_| true).expect("any may be taken")),
            }
            if found.is_some() && !request.write {
                continue;
            }
            match past.last_mut() {
                Some((of, run))
                    if *of == place && run.key.wrapping_add(run.blocks.into()) == key =>
                {
                    run.blocks += 1;
                }
                _ => past.push((place, Request { key, blocks: 1, write: request.write })),
            }
        }
    }
    Ok(past)
}

/// Plays requests of which not every miss is let in, through a cache of `capacity` blocks that may have a frame more.
fn admitted(
    cache: &mut dyn Frames,
    capacity: u32,
    mut admission: Option<Box<dyn Admission>>,
    requests: impl IntoIterator<Item = Request>,
) -> Counts {
    let mut tally = Tally::new(cache.capacity());
    for request in requests {
        for block in 0..u64::from(request.blocks) {
            let key = request.key.wrapping_add(block);
            if let Some(slot) = cache.find(key) {
                if let Some(rule) = &mut admission {
                    rule.hit();
                }
                tally.count(true, slot, request.write);
                if let Some(freed) = cache.hit(slot, &mut |_| true) {
                    tally.leave(freed);
                }
                continue;
            }
            let used = f64::from(cache.len()) / f64::from(capacity);
            if !admission.as_mut().is_none_or(|rule| rule.admits(key, 1, used)) {
                tally.pass(request.write);
                continue;
            }
            let slot = cache.admit(key, &mut |_| true).expect("any may be taken").slot;
            let over = cache.len() > capacity;
            match over.then(|| cache.evict(&mut |_| true).expect("any may be taken").0) {
                Some(left) if left == slot => tally.pass(request.write),
                left => {
                    tally.count(false, slot, request.write);
                    left.into_iter().for_each(|left| tally.leave(left));
                }
            }
        }
    }
    tally.counts
}

/// Requests that go to the cache at once: one call, whose loop knows the policy.
const BATCH: usize = 4096;

/// Plays requests through a cache whose frames are clean.
pub(super) fn replay(
    cache: &mut dyn Frames,
    requests: impl IntoIterator<Item = Request>,
) -> Counts {
    let mut tally = Tally::new(cache.capacity());
    let mut requests = requests.into_iter();
    let mut batch = Vec::with_capacity(BATCH);
    loop {
        batch.clear();
        batch.extend(requests.by_ref().take(BATCH));
        if batch.is_empty() {
            return tally.counts;
        }
        cache.replay(&batch, &mut tally);
    }
}
