//! A driver that holds a device to its promises while it runs a script.

use super::oracle::Oracle;
use ssdlab::device::{Command, Completion, Device, Missed, Op, SECTOR};
use ssdlab::rng::Stream;
use ssdlab::units::NEVER;
use std::collections::BTreeMap;

/// A promise broken.
#[derive(Debug, Clone, PartialEq)]
pub enum Violation {
    /// Commands that never completed.
    Lost(usize),
    /// A completion nobody waits for: the second of a command, or of none.
    Unasked(u64),
    /// A completion dated before the submission of its command.
    Early(Box<Completion>),
    /// A completion dated otherwise than the instant at which it was handed out, or that goes back.
    OutOfOrder { time: u64, handed_out: u64, before: u64 },
    /// Parts that do not add up to the latency.
    Parts { completion: Box<Completion>, latency: u64 },
    /// A read that did not answer what was written last.
    Stale { command: Command },
    /// A sector that holds what it must not after a loss of power.
    Forgotten { sector: u64, holds: u64 },
    /// A command that was answered before the device was ready again.
    Unready { time: u64, ready: u64 },
    /// Commands in flight, integrated over time, differ from the sum of the latencies reported.
    Little { in_flight_ns: u128, latencies_ns: u128 },
    /// The device is at rest but does not stop.
    Restless,
    /// Counters that disagree.
    Counters(String),
    /// More work than there is time.
    Utilisation(String),
    /// Two runs of one seed that differ.
    Different(String),
}

/// One step of a script.
#[derive(Clone, Copy, Debug)]
pub enum Step {
    /// Submit a command.
    Io(Op, u64, u64),
    /// Do it through the untimed path, when nothing is in flight.
    Apply(Op, u64, u64),
    /// Wait for everything, then for so many ns more.
    Idle(u64),
    /// Cut the power after so many ns, with whatever is in flight then.
    Cut(u64),
}

/// What was asked of a device, in commands and bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Asked {
    pub reads: u64,
    pub bytes_read: u64,
    pub writes: u64,
    pub bytes_written: u64,
    pub trims: u64,
    pub flushes: u64,
    pub purges: u64,
}

/// A device under audit.
pub struct Audit<'a> {
    pub device: &'a mut dyn Device,
    pub oracle: Option<Oracle>,
    pub now: u64,
    pub asked: Asked,
    /// Every completion in order.
    pub trace: Vec<Completion>,
    /// By tag: when it was submitted, and its place in the order of the oracle.
    in_flight: BTreeMap<u64, (u64, Command, u64)>,
    /// Whether commands in flight may overlap.
    pub overlap: bool,
    /// When the device is ready after a loss of power.
    ready: u64,
    /// Bytes that devices have counted so far of those that losses of power may take in spite of a flush.
    excused: u64,
    /// Whether the parts of every single completion are checked, and not only their sum.
    pub check_parts: bool,
    next_tag: u64,
    next_stamp: u64,
    in_flight_ns: u128,
    latencies_ns: u128,
}

/// What devices count of the bytes that a loss of power may take although a flush had made them safe.
fn named_losses(device: &dyn Device) -> u64 {
    let mut all = BTreeMap::new();
    super::all_counters(device, "", &mut all);
    all.iter().filter(|(name, _)| name.ends_with("power_exposed_bytes")).map(|(_, n)| n).sum()
}

fn conflict(a: &Command, b: &Command, overlap: bool) -> bool {
    if a.op == Op::Purge || b.op == Op::Purge {
        return true;
    }
    let both_read = a.op == Op::Read && b.op == Op::Read;
    !overlap && !both_read && a.offset < b.offset + b.len && b.offset < a.offset + a.len
}

impl<'a> Audit<'a> {
    pub fn new(device: &'a mut dyn Device, oracle: Option<Oracle>) -> Self {
        Audit {
            device,
            oracle,
            now: 0,
            asked: Asked::default(),
            trace: Vec::new(),
            in_flight: BTreeMap::new(),
            overlap: false,
            ready: 0,
            excused: 0,
            check_parts: true,
            next_tag: 0,
            next_stamp: 1,
            in_flight_ns: 0,
            latencies_ns: 0,
        }
    }

    /// Runs a script with up to `depth` commands in flight, reads everything at the end and lets the
    /// device come to rest.
    pub fn run(&mut self, script: &[Step], depth: usize) -> Result<(), Violation> {
        for step in script {
            match *step {
                Step::Io(op, offset, len) => self.issue(op, offset, len, depth)?,
                Step::Apply(op, offset, len) => {
                    self.settle()?;
                    let command = self.command(op, offset, len);
                    let place = self.note(&command);
                    self.device.apply(&command);
                    if let Some(oracle) = &mut self.oracle {
                        oracle.answer(&command, place, u64::MAX);
                    }
                }
                Step::Idle(time) => {
                    self.drain()?;
                    let until = self.now + time;
                    while self.now < until {
                        self.advance(until)?;
                    }
                }
                Step::Cut(after) => self.cut(after)?,
            }
        }
        self.read_all()?;
        self.rest()
    }

    fn read_all(&mut self) -> Result<(), Violation> {
        self.drain()?;
        let capacity = self.device.capacity();
        for offset in (0..capacity).step_by(60 << 10) {
            self.issue(Op::Read, offset, (60 << 10).min(capacity - offset), 8)?;
        }
        self.drain()
    }

    fn command(&mut self, op: Op, offset: u64, len: u64) -> Command {
        self.next_tag += 1;
        let stamp = self.next_stamp;
        self.next_stamp += len / SECTOR;
        // Not consecutive, so that a device that counts on it is found out.
        let tag = self.next_tag.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let compressible = [0, 50, 100, 33, 87, 12, 0][(self.next_tag % 7) as usize];
        Command { tag, op, offset, len, compressible, stamp, process: 0 }
    }

    /// Cuts the power after so many ns. What is in flight then is never answered.
    fn cut(&mut self, after: u64) -> Result<(), Violation> {
        let at = self.now + after;
        while self.now < at {
            self.advance(at)?;
        }
        // All of that instant.
        while self.device.next_event() <= at {
            self.advance(at)?;
        }
        self.ready = self.device.power_cut(at, &mut Missed::default());
        let cut = std::mem::take(&mut self.in_flight);
        self.latencies_ns += cut.values().map(|&(since, ..)| u128::from(at - since)).sum::<u128>();
        self.device.verify();
        let Self { device, oracle, .. } = self;
        let Some(oracle) = oracle else { return Ok(()) };
        let forgotten = oracle.cut(|at| device.content(at));
        let excused =
            named_losses(&**device) - std::mem::replace(&mut self.excused, named_losses(&**device));
        match forgotten.get((excused / SECTOR) as usize) {
            Some(&(sector, holds)) => Err(Violation::Forgotten { sector, holds }),
            None => Ok(()),
        }
    }

    /// Notes what the command asks for, in the oracle too; answers its place in the order there.
    fn note(&mut self, command: &Command) -> u64 {
        let asked = &mut self.asked;
        match command.op {
            Op::Read => {
                (asked.reads, asked.bytes_read) = (asked.reads + 1, asked.bytes_read + command.len)
            }
            Op::Write => {
                (asked.writes, asked.bytes_written) =
                    (asked.writes + 1, asked.bytes_written + command.len)
            }
            Op::Trim => asked.trims += 1,
            Op::Flush => asked.flushes += 1,
            Op::Purge => asked.purges += 1,
        }
        self.oracle.as_mut().map_or(0, |oracle| oracle.submit(command))
    }

    /// Submits a command when there is room, and nothing in flight conflicts with it where that is
    /// asked for.
    pub fn issue(&mut self, op: Op, offset: u64, len: u64, depth: usize) -> Result<(), Violation> {
        let command = self.command(op, offset, len);
        while self.in_flight.len() >= depth
            || self.in_flight.values().any(|(_, other, _)| conflict(&command, other, self.overlap))
        {
            self.advance(NEVER - 1)?;
        }
        let place = self.note(&command);
        self.in_flight.insert(command.tag, (self.now, command, place));
        self.device.submit(self.now, command);
        Ok(())
    }

    /// Waits until nothing is in flight.
    pub fn drain(&mut self) -> Result<(), Violation> {
        while !self.in_flight.is_empty() {
            self.advance(NEVER - 1)?;
        }
        Ok(())
    }

    /// Waits until nothing is in flight, and until the device has settled.
    fn settle(&mut self) -> Result<(), Violation> {
        self.drain()?;
        let before = self.now;
        self.now = self.device.settle(before);
        let again = self.device.settle(self.now);
        if self.now < before || again != self.now {
            return Err(Violation::OutOfOrder { time: self.now, handed_out: again, before });
        }
        Ok(())
    }

    /// Lets everything come to an end: nothing is left, and nothing goes on for ever.
    fn rest(&mut self) -> Result<(), Violation> {
        self.drain()?;
        for _ in 0..2_000_000 {
            match self.device.next_event() {
                NEVER => return self.little(),
                time => self.advance(time.max(self.now))?,
            }
        }
        Err(Violation::Restless)
    }

    fn little(&self) -> Result<(), Violation> {
        if self.in_flight_ns == self.latencies_ns {
            return Ok(());
        }
        Err(Violation::Little { in_flight_ns: self.in_flight_ns, latencies_ns: self.latencies_ns })
    }

    /// One step of the device, audited.
    pub fn advance(&mut self, limit: u64) -> Result<(), Violation> {
        if !self.in_flight.is_empty() && self.device.next_event() == NEVER {
            return Err(Violation::Lost(self.in_flight.len()));
        }
        let mut done = Vec::new();
        let reached = self.device.advance(limit, &mut done);
        if reached < self.now || reached > limit || (done.is_empty() && reached != limit) {
            let before = self.now;
            return Err(Violation::OutOfOrder { time: reached, handed_out: limit, before });
        }
        if done.is_empty() && limit == NEVER - 1 {
            return Err(Violation::Lost(self.in_flight.len()));
        }
        self.in_flight_ns += u128::from(reached - self.now) * self.in_flight.len() as u128;
        let before = std::mem::replace(&mut self.now, reached);
        for completion in done {
            self.completed(&completion, reached, before)?;
            self.trace.push(completion);
        }
        Ok(())
    }

    fn completed(&mut self, c: &Completion, at: u64, before: u64) -> Result<(), Violation> {
        let Some((submitted, command, place)) = self.in_flight.remove(&c.tag) else {
            return Err(Violation::Unasked(c.tag));
        };
        if c.time < self.ready {
            return Err(Violation::Unready { time: c.time, ready: self.ready });
        }
        if c.time < submitted {
            return Err(Violation::Early(Box::new(c.clone())));
        }
        if c.time != at {
            return Err(Violation::OutOfOrder { time: c.time, handed_out: at, before });
        }
        let latency = c.time - submitted;
        if self.check_parts && c.parts.total() != latency {
            return Err(Violation::Parts { completion: Box::new(c.clone()), latency });
        }
        self.latencies_ns += u128::from(c.parts.total());
        let horizon = self.in_flight.values().map(|&(_, _, place)| place).min();
        let Some(oracle) = &mut self.oracle else { return Ok(()) };
        if command.op == Op::Read && !oracle.may_read(&command, place, c.digest) {
            return Err(Violation::Stale { command });
        }
        oracle.answer(&command, place, horizon.unwrap_or(u64::MAX));
        Ok(())
    }
}

/// A script that covers everything a device can be asked for, over all of its capacity.
pub fn random_script(seed: u64, capacity: u64, steps: usize) -> Vec<Step> {
    let mut script = prefilled_script(seed, capacity, steps);
    script.truncate(steps.max(64));
    script
}

/// The same in time, and without purges.
pub fn timed_script(seed: u64, capacity: u64, steps: usize) -> Vec<Step> {
    let timed = |step: Step| match step {
        Step::Io(Op::Purge, ..) | Step::Apply(Op::Purge, ..) => Step::Io(Op::Flush, 0, 0),
        Step::Apply(op, offset, len) => Step::Io(op, offset, len),
        other => other,
    };
    random_script(seed, capacity, steps).into_iter().map(timed).collect()
}

fn prefilled_script(seed: u64, capacity: u64, steps: usize) -> Vec<Step> {
    let mut rng = Stream::new(seed, "script");
    let mut script = Vec::with_capacity(steps + 64);
    for offset in (0..capacity).step_by(128 << 10) {
        // Most of the device holds data, most of it placed without time.
        let len = (128 << 10).min(capacity - offset);
        let step = if rng.below(8) == 0 { Step::Io } else { Step::Apply };
        script.push(step(Op::Write, offset, len));
    }
    while script.len() < steps {
        let (offset, len) = random_extent(&mut rng, capacity);
        match rng.below(1000) {
            0..520 => script.push(Step::Io(Op::Write, offset, len)),
            520..860 => script.push(Step::Io(Op::Read, offset, len)),
            860..930 => script.push(Step::Io(Op::Trim, offset, len)),
            930..960 => script.push(Step::Io(Op::Flush, 0, 0)),
            960..975 => script.push(Step::Idle(rng.below(20_000_000))),
            975..977 => script.push(Step::Io(Op::Purge, 0, 0)),
            977..978 => script.push(Step::Apply(Op::Purge, 0, 0)),
            978..990 => {
                for _ in 0..rng.below(40) {
                    let (offset, len) = random_extent(&mut rng, capacity);
                    script.push(Step::Apply(Op::Write, offset, len));
                }
            }
            990..995 => script.push(Step::Apply(Op::Trim, offset, len)),
            _ => script.push(Step::Apply(Op::Flush, 0, 0)),
        }
    }
    script
}

/// Some sectors: whole 4 KiB blocks, odd sectors, now and then a long run.
fn random_extent(rng: &mut Stream, capacity: u64) -> (u64, u64) {
    let sectors = capacity / SECTOR;
    let (grain, most) = match rng.below(10) {
        0..4 => (8, 8),
        4..7 => (1, 24),
        7..9 => (8, 128),
        _ => (1, 600),
    };
    let len = ((1 + rng.below(most / grain)) * grain).min(sectors);
    let first = rng.below(sectors - len + 1) / grain * grain;
    (first * SECTOR, len * SECTOR)
}

/// The same with losses of power now and then.
pub fn power_script(seed: u64, capacity: u64, steps: usize) -> Vec<Step> {
    let mut rng = Stream::new(seed, "power");
    let mut script = Vec::new();
    for step in random_script(seed, capacity, steps) {
        script.push(step);
        if rng.below(60) == 0 {
            // At once, or while what was submitted is under way, or when most of it is done.
            let most = [1, 300_000, 5_000_000][rng.below(3) as usize];
            script.push(Step::Cut(rng.below(most)));
        }
    }
    script
}
