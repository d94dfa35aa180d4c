//! Replacement policies as plainly as they can be written: vectors, linear searches, no ghosts by number.
//! The oldest stands first.

/// A cache that says whether a key was in it, and brings it in.
pub trait Model {
    fn access(&mut self, key: u64) -> bool;
}

fn place(list: &[u64], key: u64) -> Option<usize> {
    list.iter().position(|&k| k == key)
}

fn take(list: &mut Vec<u64>, key: u64) -> bool {
    place(list, key).map(|at| list.remove(at)).is_some()
}

pub struct Lru(pub usize, pub Vec<u64>);

impl Model for Lru {
    fn access(&mut self, key: u64) -> bool {
        let hit = take(&mut self.1, key);
        if self.1.len() == self.0 {
            self.1.remove(0);
        }
        self.1.push(key);
        hit
    }
}

pub struct Fifo(pub usize, pub Vec<u64>);

impl Model for Fifo {
    fn access(&mut self, key: u64) -> bool {
        if self.1.contains(&key) {
            return true;
        }
        if self.1.len() == self.0 {
            self.1.remove(0);
        }
        self.1.push(key);
        false
    }
}

/// As a queue with reinsertion.
pub struct Clock(pub usize, pub Vec<(u64, bool)>);

impl Model for Clock {
    fn access(&mut self, key: u64) -> bool {
        if let Some(one) = self.1.iter_mut().find(|one| one.0 == key) {
            one.1 = true;
            return true;
        }
        if self.1.len() == self.0 {
            while self.1[0].1 {
                let (key, _) = self.1.remove(0);
                self.1.push((key, false));
            }
            self.1.remove(0);
        }
        self.1.push((key, false));
        false
    }
}

/// Keys with their worth and when they came to it; what was worth least last, and the time.
pub struct Gdsf(pub usize, pub Vec<(u64, u64, u64, u64)>, pub u64, pub u64);

impl Model for Gdsf {
    fn access(&mut self, key: u64) -> bool {
        let Gdsf(capacity, held, least, now) = self;
        *now += 1;
        if let Some(one) = held.iter_mut().find(|one| one.0 == key) {
            *one = (key, one.1 + 1, *least + one.1 + 1, *now);
            return true;
        }
        if held.len() == *capacity {
            let at = (0..held.len()).min_by_key(|&at| (held[at].2, held[at].3)).unwrap();
            *least = held.remove(at).2;
        }
        held.push((key, 1, *least + 1, *now));
        false
    }
}

/// Levels of keys, and whether each has risen in this period.
pub struct Smq {
    pub capacity: usize,
    pub levels: Vec<Vec<(u64, bool)>>,
    pub uses: usize,
}

impl Smq {
    fn tick(&mut self) {
        self.uses += 1;
        if self.uses < self.capacity {
            return;
        }
        self.uses = 0;
        let mut all = self.levels.concat();
        all.iter_mut().for_each(|one| one.1 = false);
        // In order from the bottom up, as many on each as on the next, the rest on top.
        let each = all.len() / self.levels.len();
        for level in &mut self.levels {
            *level = all.drain(..each).collect();
        }
        self.levels.last_mut().unwrap().append(&mut all);
    }
}

impl Model for Smq {
    fn access(&mut self, key: u64) -> bool {
        let top = self.levels.len() - 1;
        let at = |level: &Vec<(u64, bool)>| level.iter().position(|one| one.0 == key);
        let found = (0..=top).find_map(|level| at(&self.levels[level]).map(|at| (level, at)));
        if let Some((level, at)) = found {
            if !self.levels[level][at].1 {
                let new = (level + 1).min(top);
                if new > level && !self.levels[new].is_empty() {
                    let other = self.levels[new].remove(0);
                    self.levels[level].push(other);
                }
                self.levels[level].remove(at);
                self.levels[new].push((key, true));
            }
        } else {
            if self.levels.iter().map(Vec::len).sum::<usize>() == self.capacity {
                self.levels.iter_mut().find(|level| !level.is_empty()).unwrap().remove(0);
            }
            self.levels[top].push((key, false));
        }
        self.tick();
        found.is_some()
    }
}

pub struct Sieve(pub usize, pub Vec<(u64, bool)>, pub usize);

impl Model for Sieve {
    fn access(&mut self, key: u64) -> bool {
        if let Some(one) = self.1.iter_mut().find(|one| one.0 == key) {
            one.1 = true;
            return true;
        }
        if self.1.len() == self.0 {
            loop {
                if self.2 == self.1.len() {
                    self.2 = 0;
                }
                if !self.1[self.2].1 {
                    break;
                }
                self.1[self.2].1 = false;
                self.2 += 1;
            }
            self.1.remove(self.2);
            // A hand at the newest begins anew before anything else comes in.
            if self.2 == self.1.len() {
                self.2 = 0;
            }
        }
        self.1.push((key, false));
        false
    }
}

/// Key, uses, and when it reached them.
pub struct Lfu(pub usize, pub Vec<(u64, u32, u64)>, pub u64);

impl Model for Lfu {
    fn access(&mut self, key: u64) -> bool {
        self.2 += 1;
        if let Some(one) = self.1.iter_mut().find(|one| one.0 == key) {
            *one = (key, one.1 + 1, self.2);
            return true;
        }
        if self.1.len() == self.0 {
            let least = self.1.iter().min_by_key(|one| (one.1, one.2)).unwrap().0;
            self.1.retain(|one| one.0 != least);
        }
        self.1.push((key, 1, self.2));
        false
    }
}

#[derive(Default)]
pub struct TwoQ {
    pub capacity: usize,
    pub once: Vec<u64>,
    pub main: Vec<u64>,
    pub ghosts: Vec<u64>,
}

impl Model for TwoQ {
    fn access(&mut self, key: u64) -> bool {
        if self.once.contains(&key) {
            return true;
        }
        if take(&mut self.main, key) {
            self.main.push(key);
            return true;
        }
        let ghost = take(&mut self.ghosts, key);
        if self.once.len() + self.main.len() == self.capacity {
            if self.once.len() > self.capacity / 4 {
                self.ghosts.push(self.once.remove(0));
                if self.ghosts.len() > self.capacity / 2 {
                    self.ghosts.remove(0);
                }
            } else {
                self.main.remove(0);
            }
        }
        if ghost {
            self.main.push(key)
        } else {
            self.once.push(key)
        }
        false
    }
}

#[derive(Default)]
pub struct Arc {
    pub capacity: usize,
    pub t1: Vec<u64>,
    pub t2: Vec<u64>,
    pub b1: Vec<u64>,
    pub b2: Vec<u64>,
    pub p: f64,
}

impl Arc {
    fn replace(&mut self, in_b2: bool) {
        let t1 = self.t1.len() as f64;
        if t1 > 0.0 && (t1 > self.p || in_b2 && t1 == self.p) {
            self.b1.push(self.t1.remove(0));
        } else {
            self.b2.push(self.t2.remove(0));
        }
    }
}

impl Model for Arc {
    fn access(&mut self, key: u64) -> bool {
        let c = self.capacity;
        if take(&mut self.t1, key) || take(&mut self.t2, key) {
            self.t2.push(key);
            return true;
        }
        let (b1, b2) = (self.b1.len() as f64, self.b2.len() as f64);
        if self.b1.contains(&key) {
            self.p = (self.p + (b2 / b1).max(1.0)).min(c as f64);
            self.replace(false);
            take(&mut self.b1, key);
            self.t2.push(key);
        } else if self.b2.contains(&key) {
            self.p = (self.p - (b1 / b2).max(1.0)).max(0.0);
            self.replace(true);
            take(&mut self.b2, key);
            self.t2.push(key);
        } else {
            let l1 = self.t1.len() + self.b1.len();
            let all = l1 + self.t2.len() + self.b2.len();
            if l1 == c {
                if self.t1.len() < c {
                    self.b1.remove(0);
                    self.replace(false);
                } else {
                    self.t1.remove(0);
                }
            } else if all >= c {
                if all == 2 * c {
                    self.b2.remove(0);
                }
                self.replace(false);
            }
            self.t1.push(key);
        }
        false
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Status {
    Lir,
    Hir,
    Gone,
}

#[derive(Default)]
pub struct Lirs {
    capacity: usize,
    lir_limit: usize,
    hir_limit: usize,
    stack: Vec<(u64, Status)>,
    queue: Vec<u64>,
    /// Non-resident keys in the order in which they left.
    gone: Vec<u64>,
}

impl Lirs {
    pub fn new(capacity: usize) -> Self {
        let hir = (capacity / 100).max(1);
        Lirs { capacity, lir_limit: capacity - hir, hir_limit: hir, ..Lirs::default() }
    }

    fn lir(&self) -> usize {
        self.stack.iter().filter(|one| one.1 == Status::Lir).count()
    }

    /// The oldest of the queue leaves.
    fn leave(&mut self) {
        let left = self.queue.remove(0);
        if let Some(one) = self.stack.iter_mut().find(|one| one.0 == left) {
            one.1 = Status::Gone;
            self.gone.push(left);
        }
    }

    /// Too many LIR keys: the oldest becomes HIR.
    fn demote(&mut self) {
        self.prune();
        if self.lir() > self.lir_limit {
            self.queue.push(self.stack.remove(0).0);
        }
        self.prune();
    }

    fn prune(&mut self) {
        while self.stack.first().is_some_and(|one| one.1 != Status::Lir) {
            let (key, _) = self.stack.remove(0);
            take(&mut self.gone, key);
        }
    }
}

impl Model for Lirs {
    fn access(&mut self, key: u64) -> bool {
        let at = self.stack.iter().position(|one| one.0 == key);
        let status = at.map(|at| self.stack.remove(at).1);
        let queued = take(&mut self.queue, key);
        let hit = status == Some(Status::Lir) || queued;
        if !hit && self.lir() + self.queue.len() == self.capacity {
            self.leave();
        }
        take(&mut self.gone, key);
        if status.is_some() || !hit && self.lir() < self.lir_limit {
            self.stack.push((key, Status::Lir));
            self.demote();
        } else {
            // Forgotten by the stack, but in the queue: as in libCacheSim it costs two others their places.
            if hit && self.lir() == self.lir_limit && self.hir_limit > 1 {
                if self.queue.len() + 1 == self.hir_limit {
                    self.leave();
                }
                self.queue.push(key);
                let late = self.stack.remove(0).0;
                self.queue.push(late);
                self.prune();
            } else {
                self.queue.push(key);
            }
            self.stack.push((key, Status::Hir));
        }
        while self.stack.len() > 2 * self.capacity && !self.gone.is_empty() {
            let first = self.gone.remove(0);
            self.stack.retain(|one| one.0 != first);
        }
        hit
    }
}

#[derive(Default)]
pub struct S3Fifo {
    pub capacity: usize,
    pub small: Vec<(u64, u8)>,
    pub main: Vec<(u64, u8)>,
    pub ghosts: Vec<u64>,
    pub was_full: bool,
}

impl S3Fifo {
    fn small_limit(&self) -> usize {
        (self.capacity / 10).max(1)
    }

    fn evict(&mut self) {
        self.was_full = true;
        if self.main.len() <= self.capacity - self.small_limit() {
            while !self.small.is_empty() {
                let (key, uses) = self.small.remove(0);
                if uses < 2 {
                    self.ghosts.push(key);
                    if self.ghosts.len() > (self.capacity as f64 * 0.9) as usize {
                        self.ghosts.remove(0);
                    }
                    return;
                }
                self.main.push((key, 0));
            }
        }
        loop {
            let (key, uses) = self.main.remove(0);
            if uses == 0 {
                return;
            }
            self.main.push((key, uses - 1));
        }
    }
}

impl Model for S3Fifo {
    fn access(&mut self, key: u64) -> bool {
        if let Some(one) = self.small.iter_mut().chain(&mut self.main).find(|one| one.0 == key) {
            one.1 = (one.1 + 1).min(3);
            return true;
        }
        let ghost = take(&mut self.ghosts, key);
        if self.small.len() + self.main.len() == self.capacity {
            self.evict();
        }
        if ghost || !self.was_full && self.small.len() >= self.small_limit() {
            self.main.push((key, 0));
        } else {
            self.small.push((key, 0));
        }
        false
    }
}

/// Fewest misses, by looking through the rest of the trace at every eviction; where what misses `may_pass`, it need
/// not come in.
pub fn fewest_misses(keys: &[u64], capacity: usize, may_pass: bool) -> u64 {
    let mut cache: Vec<u64> = Vec::new();
    let mut misses = 0;
    for (now, &key) in keys.iter().enumerate() {
        if cache.contains(&key) {
            continue;
        }
        misses += 1;
        cache.push(key);
        if cache.len() > capacity {
            let rest = &keys[now + 1..];
            let next = |k: u64| rest.iter().position(|&other| other == k).unwrap_or(usize::MAX);
            let candidates = if may_pass { cache.len() } else { capacity };
            let far = (0..candidates).max_by_key(|&at| next(cache[at])).unwrap();
            cache.remove(far);
        }
    }
    misses
}

/// The model of a policy of the registry, if it follows from the past alone.
pub fn model(policy: &str, capacity: usize) -> Option<Box<dyn Model>> {
    Some(match policy {
        "lru" => Box::new(Lru(capacity, Vec::new())),
        "fifo" => Box::new(Fifo(capacity, Vec::new())),
        "clock" => Box::new(Clock(capacity, Vec::new())),
        "gdsf" => Box::new(Gdsf(capacity, Vec::new(), 0, 0)),
        "smq" => Box::new(Smq { capacity, levels: vec![Vec::new(); capacity.min(64)], uses: 0 }),
        "lfu" => Box::new(Lfu(capacity, Vec::new(), 0)),
        "2q" => Box::new(TwoQ { capacity, ..TwoQ::default() }),
        "arc" => Box::new(Arc { capacity, ..Arc::default() }),
        "lirs" => Box::new(Lirs::new(capacity)),
        "s3-fifo" => Box::new(S3Fifo { capacity, ..S3Fifo::default() }),
        "sieve" => Box::new(Sieve(capacity, Vec::new(), 0)),
        "random" | "optimal" | "lhd" | "w-tinylfu" => return None,
        other => panic!("{other} has no model"),
    })
}
