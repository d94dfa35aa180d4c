//! LIRS with the misses of libCacheSim 0.3.5 at every size, also where these are not those of a cache.
//!
//! From 200 blocks on that is `lirs`. Below, the queue Q has one place, and what is hit there with no room for another
//! LIR block goes out of it in favour of the oldest LIR block; libCacheSim still takes it for resident as long as the
//! stack S knows it, so that it holds more blocks than it may: of 2 blocks sometimes 3. Further traits that only show
//! there: the last entry of S is never pruned, and counts as LIR when it leaves. A cache of one block has no place for
//! LIR blocks and lets nothing in. Cost: a search through at most 400 entries.

use super::lirs::{self, hir_limit};
use super::{Future, Parameters};
use crate::cache::hit_ratio::{Counts, Request, replay};
use crate::rng::Stream;

#[derive(Clone, Copy, PartialEq)]
enum Status {
    Lir,
    Hir,
    Gone,
}

/// One with a single place in its queue.
struct Small {
    lir_limit: usize,
    /// The oldest first.
    stack: Vec<(u64, Status)>,
    queue: Option<u64>,
    /// Those of the stack that are gone, in the order in which they left.
    gone: Vec<u64>,
    lir: usize,
    /// Those that may have left with this access.
    left: Vec<u64>,
    dirty: Vec<u64>,
}

/// Misses of a whole trace.
pub fn play(future: &Future, capacity: u32) -> Counts {
    let parameters = Parameters::default();
    if hir_limit(capacity, &parameters) > 1 {
        let mut cache = lirs::build(capacity, &parameters, Stream::new(0, ""));
        return replay(cache.as_mut(), future.requests());
    }
    let mut small = Small::new(capacity as usize);
    let mut counts = Counts::default();
    for Request { key, write, .. } in future.requests() {
        let hit = capacity > 1 && small.access(key);
        let count = match (hit, write) {
            (true, false) => &mut counts.read_hits,
            (true, true) => &mut counts.write_hits,
            (false, false) => &mut counts.read_misses,
            (false, true) => &mut counts.write_misses,
        };
        *count += 1;
        if capacity > 1 {
            counts.write_backs += small.wrote_back(write.then_some(key));
        }
    }
    counts
}

impl Small {
    fn new(capacity: usize) -> Self {
        let (stack, gone, left, dirty) = Default::default();
        Small { lir_limit: capacity - 1, stack, queue: None, gone, lir: 0, left, dirty }
    }

    /// Dirty blocks that have left with the last access, which wrote a block or none.
    fn wrote_back(&mut self, written: Option<u64>) -> u64 {
        let Small { stack, queue, left, dirty, .. } = self;
        let there = |key| {
            *queue == Some(key) || stack.iter().any(|one| one.0 == key && one.1 != Status::Gone)
        };
        left.retain(|&key| !there(key));
        let before = dirty.len();
        dirty.retain(|key| !left.contains(key));
        left.clear();
        let gone = before - dirty.len();
        dirty.extend(written.filter(|key| !dirty.contains(key)));
        gone as u64
    }

    /// Whether a block was there; afterwards it is.
    fn access(&mut self, key: u64) -> bool {
        let at = self.stack.iter().position(|one| one.0 == key);
        let status = at.map(|at| self.stack.remove(at).1);
        let queued = self.queue == Some(key);
        if let Some(status) = status {
            self.stack.push((key, status));
        }
        match status {
            Some(Status::Lir) => self.prune(),
            Some(Status::Hir) => {
                self.queue.take_if(|_| queued);
                self.promote(key);
            }
            Some(Status::Gone) => {
                self.promote(key);
                self.gone.retain(|&other| other != key);
            }
            None => self.enter(key, queued),
        }
        while self.stack.len() > 2 * (self.lir_limit + 1) && !self.gone.is_empty() {
            let first = self.gone.remove(0);
            self.stack.retain(|one| one.0 != first);
        }
        queued || matches!(status, Some(Status::Lir | Status::Hir))
    }

    /// A block comes to the stack anew.
    fn enter(&mut self, key: u64, queued: bool) {
        let room = self.lir < self.lir_limit;
        if !queued && room {
            self.lir += 1;
            return self.stack.push((key, Status::Lir));
        }
        if !queued {
            self.drop_queued();
            self.queue = Some(key);
        } else if !room {
            self.demote();
        }
        self.stack.push((key, Status::Hir));
    }

    /// A block of the stack becomes LIR.
    fn promote(&mut self, key: u64) {
        if self.lir >= self.lir_limit {
            self.demote();
        }
        self.lir += 1;
        if let Some(one) = self.stack.iter_mut().find(|one| one.0 == key) {
            one.1 = Status::Lir;
        }
    }

    /// The oldest of the stack goes to the queue.
    fn demote(&mut self) {
        let (oldest, _) = self.stack.remove(0);
        self.lir -= 1;
        self.drop_queued();
        self.queue = Some(oldest);
        self.prune();
    }

    fn drop_queued(&mut self) {
        let Some(left) = self.queue.take() else { return };
        self.left.push(left);
        if let Some(one) = self.stack.iter_mut().find(|one| one.0 == left) {
            one.1 = Status::Gone;
            self.gone.push(left);
        }
    }

    fn prune(&mut self) {
        while self.stack.len() > 1 && self.stack[0].1 != Status::Lir {
            let (key, _) = self.stack.remove(0);
            self.left.push(key);
            self.gone.retain(|&other| other != key);
        }
    }
}
