//! Caches of objects that differ in size, and that may expire: misses counted and weighed by bytes.
//!
//! An object comes in when it misses, if it is admitted and not larger than the cache, after as many have left as its
//! bytes need. On a hit by a read it keeps the size with which it came, as in libCacheSim 0.3.5; a write makes it what
//! the request says. One that lives for a time expires that long after it came or was written: asked for later, it
//! misses and comes anew.

use super::Frames;
use super::admission::{Admission, Choice};
use super::policy::{BuildReplacement, CAPACITY_MAX, Parameters, Sizes, of_any_size};
use crate::error::{Error, Result};
use crate::rng::Stream;

/// A request for an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ObjectRequest {
    /// Its name.
    pub key: u64,
    /// Its size, bytes; 1 at least.
    pub bytes: u32,
    /// Whether it is written.
    pub write: bool,
    /// When, ns; never goes back.
    pub time_ns: u64,
    /// How long it lives from now on where it comes in or is written, ns; 0: for ever.
    pub ttl_ns: u64,
}

/// What a cache of objects did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ObjectCounts {
    /// Requests.
    pub requests: u64,
    /// Of them writes.
    pub writes: u64,
    /// Bytes asked for.
    pub bytes: u64,
    /// Requests whose object was not there.
    pub misses: u64,
    /// Of them writes.
    pub write_misses: u64,
    /// Bytes of the misses.
    pub miss_bytes: u64,
    /// Misses of what had expired.
    pub expired: u64,
    /// Misses that were not let in: refused by the admission, or larger than the cache.
    pub passed: u64,
}

/// What holds of the objects of a trace, whatever the cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Objects {
    /// Different objects.
    pub count: u64,
    /// Bytes of all, each with the size that it had first.
    pub bytes: u64,
    /// Size of the smallest.
    pub least: u32,
}

/// Plays requests through a cache of `capacity` bytes that begins empty. `of` are the objects of the trace.
///
/// Errors: unknown names, a policy that only orders blocks of one size, a capacity of 0.
pub fn objects(
    choice: &Choice<'_>,
    capacity: u64,
    of: &Objects,
    requests: impl Iterator<Item = ObjectRequest>,
    seed: u64,
) -> Result<ObjectCounts> {
    let name = choice.policy.name;
    let unfit = || {
        let known: Vec<_> = of_any_size().collect();
        Error::value(name, format!("for objects of different sizes one of {}", known.join(", ")))
    };
    if capacity == 0 {
        return Err(Error::value("a cache of 0 bytes", "at least one byte"));
    }
    let BuildReplacement::Online(build) = choice.policy.build else { return Err(unfit()) };
    // No more objects fit than are there, or than of the smallest.
    let most = of.count.min(capacity / u64::from(of.least.max(1))).max(1);
    if most > u64::from(CAPACITY_MAX) {
        let found = format!("a cache of {most} objects");
        return Err(Error::value(found, format!("at most {CAPACITY_MAX}")));
    }
    let stream = Stream::new(seed, "cache/replacement");
    // One more, which may come before others have left.
    let frames = build(most as u32 + 1, &Parameters::default(), stream);
    let weighs = match frames.sizes() {
        Sizes::One => return Err(unfit()),
        Sizes::Any => false,
        Sizes::Weighed => true,
    };
    let mean = of.bytes as f64 / of.count.max(1) as f64;
    let about = ((capacity as f64 / mean.max(1.0)) as u32).clamp(1, most as u32);
    let admission = choice.admission(about, true, seed)?;
    let held = vec![Held::default(); most as usize + 1];
    let counts = ObjectCounts::default();
    let mut store = Store { frames, weighs, admission, held, used: 0, capacity, counts };
    requests.for_each(|request| store.request(&request));
    Ok(store.counts)
}

/// An object in the cache.
#[derive(Clone, Copy, Default)]
struct Held {
    bytes: u32,
    /// Last instant at which it is valid; 0: for ever.
    until_ns: u64,
}

struct Store {
    frames: Box<dyn Frames>,
    /// Whether what comes is weighed against what is there.
    weighs: bool,
    admission: Option<Box<dyn Admission>>,
    held: Vec<Held>,
    used: u64,
    capacity: u64,
    counts: ObjectCounts,
}

impl Store {
    fn request(&mut self, request: &ObjectRequest) {
        self.counts.requests += 1;
        self.counts.writes += u64::from(request.write);
        self.counts.bytes += u64::from(request.bytes);
        if let Some(slot) = self.frames.find(request.key) {
            let held = self.held[slot as usize];
            if held.until_ns == 0 || held.until_ns >= request.time_ns {
                return self.hit(slot, request);
            }
            self.counts.expired += 1;
            self.leave(slot);
        }
        self.counts.misses += 1;
        self.counts.write_misses += u64::from(request.write);
        self.counts.miss_bytes += u64::from(request.bytes);
        let full = self.used as f64 / self.capacity as f64;
        let admission = self.admission.as_mut();
        let admitted = admission.is_none_or(|rule| rule.admits(request.key, request.bytes, full));
        let stays = admitted && self.bring_in(request);
        self.counts.passed += u64::from(!stays);
    }

    fn hit(&mut self, slot: u32, request: &ObjectRequest) {
        if let Some(admission) = &mut self.admission {
            admission.hit();
        }
        self.frames.hit(slot, &mut |_| true);
        if !request.write {
            return;
        }
        if request.bytes == self.held[slot as usize].bytes {
            self.held[slot as usize].until_ns = until(request);
            return;
        }
        // An object of another size: room is made for all of it.
        self.leave(slot);
        self.bring_in(request);
    }

    fn leave(&mut self, slot: u32) {
        self.used -= u64::from(self.held[slot as usize].bytes);
        self.frames.remove(slot);
    }

    /// One leaves; answers its frame.
    fn evict(&mut self) -> u32 {
        let (slot, _) = self.frames.evict(&mut |_| true).expect("objects take the bytes in use");
        self.used -= u64::from(self.held[slot as usize].bytes);
        slot
    }

    /// Whether an object is in the cache afterwards.
    fn bring_in(&mut self, request: &ObjectRequest) -> bool {
        let bytes = u64::from(request.bytes);
        if bytes > self.capacity {
            return false;
        }
        while !self.weighs && self.used + bytes > self.capacity {
            self.evict();
        }
        let slot = self.frames.admit(request.key, &mut |_| true).expect("a frame for each").slot;
        self.frames.sized(slot, request.bytes);
        self.held[slot as usize] = Held { bytes: request.bytes, until_ns: until(request) };
        self.used += bytes;
        let mut stays = true;
        while self.used > self.capacity {
            stays &= self.evict() != slot;
        }
        stays
    }
}

fn until(request: &ObjectRequest) -> u64 {
    if request.ttl_ns == 0 { 0 } else { request.time_ns.saturating_add(request.ttl_ns) }
}
