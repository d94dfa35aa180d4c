//! The plain map that every device is compared with: what each sector may hold.
//!
//! A sector may hold what was written last; where writes overlap in flight, what either wrote; and after a
//! loss of power what was last written for good, or anything that was submitted later.

use ssdlab::device::{Command, Op, SECTOR, mix};

/// What a sector was given by one command.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Version {
    value: u64,
    /// Position in the order of all submissions and answers.
    submitted: u64,
    answered: u64,
    /// It outlives a loss of power.
    durable: bool,
}

/// Not answered yet.
const IN_FLIGHT: u64 = u64::MAX;

/// Combinations of what the sectors of a read may hold that are tried; of more, one is taken to be right.
const COMBINATIONS: usize = 4096;

/// When what was answered outlives a loss of power.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Promise {
    /// Writes only after a flush.
    pub volatile_writes: bool,
    /// TRIMs only after a flush.
    pub volatile_trims: bool,
    /// A flush does nothing for what is volatile: a card with a battery takes the drives below to be safe.
    pub idle_flushes: bool,
}

/// What a sector may hold: one version, and what was submitted later.
#[derive(Clone, Debug)]
struct Sector {
    oldest: Version,
    later: Vec<Version>,
}

impl Sector {
    fn all(&self) -> impl Iterator<Item = &Version> + Clone {
        std::iter::once(&self.oldest).chain(&self.later)
    }

    fn all_mut(&mut self) -> impl Iterator<Item = &mut Version> {
        std::iter::once(&mut self.oldest).chain(&mut self.later)
    }

    fn is_settled(&self) -> bool {
        self.later.is_empty() && self.oldest.durable
    }

    /// What a read may find that was submitted at that place in the order.
    fn readable(&self, submitted: u64) -> impl Iterator<Item = u64> + '_ {
        let last = self.all().filter(|v| v.answered <= submitted).map(|v| v.submitted).max();
        let last = last.unwrap_or(0);
        self.all().filter(move |v| v.answered >= last).map(|v| v.value)
    }

    /// Drops what nobody can find any more: what was answered before something durable was submitted that
    /// itself was answered before the horizon.
    fn forget(&mut self, horizon: u64) {
        let safe = self.all().filter(|v| v.durable && v.answered < horizon);
        let Some(safe) = safe.map(|v| v.submitted).max() else { return };
        self.later.retain(|v| v.answered >= safe);
        if self.oldest.answered < safe {
            self.oldest = self.later.remove(0);
        }
    }
}

/// What a device should hold.
pub struct Oracle {
    content: Vec<Sector>,
    /// The sectors that were not [settled](Sector::is_settled) when they were last looked at, each once.
    unsettled: Vec<usize>,
    is_unsettled: Vec<bool>,
    /// TRIM deallocates units of so many sectors that lie wholly inside its range...
    unit: u64,
    /// ... where the device's first sector is so far into a unit.
    shift: u64,
    /// Purge of a partition is a TRIM of all of it.
    purge_is_trim: bool,
    promise: Promise,
    clock: u64,
}

impl Oracle {
    /// An empty device of `capacity` bytes.
    pub fn new(capacity: u64, unit_bytes: u64, shift_bytes: u64, purge_is_trim: bool) -> Self {
        let oldest = Version { value: 0, submitted: 0, answered: 0, durable: true };
        let sectors = (capacity / SECTOR) as usize;
        Oracle {
            content: vec![Sector { oldest, later: Vec::new() }; sectors],
            unsettled: Vec::new(),
            is_unsettled: vec![false; sectors],
            unit: unit_bytes / SECTOR,
            shift: shift_bytes / SECTOR,
            purge_is_trim,
            promise: Promise::default(),
            clock: 0,
        }
    }

    pub fn promising(self, promise: Promise) -> Self {
        Oracle { promise, ..self }
    }

    /// The sectors that the command changes.
    fn range(&self, command: &Command) -> std::ops::Range<u64> {
        let all = self.content.len() as u64;
        let (first, end) = (command.offset / SECTOR, (command.offset + command.len) / SECTOR);
        let whole = |first: u64, end: u64| {
            let begin = (first + self.shift).div_ceil(self.unit) * self.unit;
            let end = (end + self.shift) / self.unit * self.unit;
            begin.saturating_sub(self.shift)..end.saturating_sub(self.shift)
        };
        match command.op {
            Op::Read | Op::Flush => 0..0,
            Op::Write => first..end,
            Op::Trim => whole(first, end),
            Op::Purge if self.purge_is_trim => whole(0, all),
            Op::Purge => 0..all,
        }
    }

    /// The command is submitted; answers its place in the order.
    pub fn submit(&mut self, command: &Command) -> u64 {
        self.clock += 1;
        for sector in self.range(command) {
            let written = command.stamp + sector.wrapping_sub(command.offset / SECTOR);
            let value = if command.op == Op::Write { written } else { 0 };
            let submitted = self.clock;
            let version = Version { value, submitted, answered: IN_FLIGHT, durable: false };
            self.content[sector as usize].later.push(version);
            if !std::mem::replace(&mut self.is_unsettled[sector as usize], true) {
                self.unsettled.push(sector as usize);
            }
        }
        self.clock
    }

    /// The command is answered, which was submitted at that place in the order; `horizon` is that of the
    /// oldest command in flight.
    pub fn answer(&mut self, command: &Command, submitted: u64, horizon: u64) {
        self.clock += 1;
        if command.op == Op::Flush && self.promise.idle_flushes {
            return;
        }
        if command.op == Op::Flush {
            let Self { content, unsettled, is_unsettled, .. } = self;
            unsettled.retain(|&at| {
                let sector = &mut content[at];
                let safe = sector.all_mut().filter(|v| v.answered < submitted);
                safe.for_each(|v| v.durable = true);
                sector.forget(horizon);
                is_unsettled[at] = !sector.is_settled();
                is_unsettled[at]
            });
            return;
        }
        let durable = match command.op {
            Op::Write => !self.promise.volatile_writes,
            Op::Purge if !self.purge_is_trim => true,
            _ => !self.promise.volatile_trims,
        };
        for sector in self.range(command) {
            let sector = &mut self.content[sector as usize];
            if let Some(v) = sector.all_mut().find(|v| v.submitted == submitted) {
                (v.answered, v.durable) = (self.clock, durable);
            }
            sector.forget(horizon);
        }
    }

    /// Whether a read that is answered now may have this digest.
    pub fn may_read(&self, command: &Command, submitted: u64, digest: u64) -> bool {
        let (first, sectors) = ((command.offset / SECTOR) as usize, command.len / SECTOR);
        let mut sums = vec![0u64];
        let mut values = Vec::new();
        for (sector, i) in self.content[first..].iter().zip(0..sectors) {
            let add = |value: u64| mix(value, i);
            if sector.later.is_empty() {
                let sum = add(sector.oldest.value);
                sums.iter_mut().for_each(|s| *s = s.wrapping_add(sum));
                continue;
            }
            values.clear();
            values.extend(sector.readable(submitted));
            values.sort_unstable();
            values.dedup();
            sums = values
                .iter()
                .flat_map(|&value| sums.iter().map(move |sum| sum.wrapping_add(add(value))))
                .collect();
            if sums.len() > COMBINATIONS {
                return true;
            }
        }
        sums.contains(&digest)
    }

    /// Power was lost: takes over what the sectors hold now. Answers those that must not.
    pub fn cut(&mut self, content: impl Fn(u64) -> u64) -> Vec<(u64, u64)> {
        let mut forgotten = Vec::new();
        self.clock += 2;
        for (at, sector) in self.content.iter_mut().enumerate() {
            let value = content(at as u64 * SECTOR);
            let safe = sector.all().filter(|v| v.durable).map(|v| v.submitted).max().unwrap_or(0);
            if !sector.all().any(|v| v.value == value && v.answered >= safe) {
                forgotten.push((at as u64, value));
            }
            // What a battery kept has still to go where it is volatile, and the next cut may find what was there before.
            let durable = !(self.promise.volatile_writes && self.promise.idle_flushes);
            let answered = self.clock;
            let found = Version { value, submitted: answered, answered, durable };
            if durable {
                *sector = Sector { oldest: found, later: Vec::new() };
                continue;
            }
            sector.all_mut().for_each(|v| v.answered = v.answered.min(answered - 1));
            sector.later.push(found);
            if !std::mem::replace(&mut self.is_unsettled[at], true) {
                self.unsettled.push(at);
            }
        }
        forgotten
    }
}
