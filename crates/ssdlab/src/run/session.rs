//! A device that lives across several runs.

use super::counters::{self, counter_sum};
use super::prepare::{Prepared, Step, bare, prepare_further};
use super::{Observer, Preconditioning, RunOptions, RunResult, driver, shifted};
use crate::device::{Device, Missed, Op, SECTOR};
use crate::error::{Error, Result};
use crate::job::JobFile;
use crate::persist::persistent;
use crate::units::{Bytes, Nanos};

/// Virtual time that a device can see, ns (146 years): sums with times of a device stay far from
/// the end of what can be counted.
const LIFE_MAX: u64 = 1 << 62;

/// A device, and what is to be known of its past: the virtual time that it has seen, what it was
/// prepared with. Runs, steps of preparation and idle time follow each other on it as they are asked
/// for.
///
/// Between two of them nothing of the host is in flight, but the device may still be at work for
/// itself: writing out its buffer, collecting, folding. It goes on with that in the next run
/// or idle time. Before anything that takes no time it settles ([`Device::settle`]).
pub struct Session {
    device: Box<dyn Device>,
    seed: u64,
    prepared: Prepared,
    /// What has been done since the last run, as text.
    since: Vec<String>,
    runs: u64,
    /// Something broke off half-way.
    pub(super) broken: bool,
}

persistent!(Session { state { device, prepared, since, runs } built { seed, broken } });

impl Session {
    /// A session of a device that is fresh out of the box; `seed` is that of preparing it, and of
    /// runs that have none of their own.
    pub fn new(device: Box<dyn Device>, seed: u64) -> Self {
        let (since, prepared) = (Vec::new(), Prepared::new(seed));
        Session { device, seed, prepared, since, runs: 0, broken: false }
    }

    /// The device.
    pub fn device(&self) -> &dyn Device {
        self.device.as_ref()
    }

    /// The seed that it was begun with.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// Virtual time that the device has seen, ns.
    pub fn now_ns(&self) -> u64 {
        self.prepared.now
    }

    /// In which state the next run finds the device: what it was prepared with since the run before.
    pub fn state(&self) -> String {
        match (self.runs, self.since.join(",")) {
            (0, steps) if steps.is_empty() => Preconditioning::default().to_string(),
            (0, steps) => steps,
            (_, steps) if steps.is_empty() => "as left by the run before".into(),
            (_, steps) => format!("as left by the run before, then {steps}"),
        }
    }

    /// Takes the device through `steps`, as [`prepare`](super::prepare) does with a fresh one. The
    /// random writes of several calls are one stream; nothing shrinks at the beginning of each.
    ///
    /// # Errors
    /// [`Error::Cancelled`] if the observer says so, after which the session is of no use;
    /// [`Error::Unfit`] if it is not, or idle time would go beyond the end of virtual time.
    pub fn prepare(&mut self, steps: &Preconditioning, observer: &mut dyn Observer) -> Result<()> {
        let idle = steps.0.iter().map(|step| if let Step::Idle(time) = step { time.0 } else { 0 });
        self.check_life(idle.sum())?;
        self.broken = true;
        prepare_further(self.device.as_mut(), steps, &mut self.prepared, observer)?;
        self.broken = false;
        self.since.extend(steps.0.iter().map(Step::to_string));
        Ok(())
    }

    /// Leaves the device alone: it does what it does while its host is quiet.
    ///
    /// # Errors
    /// As [`Session::prepare`].
    pub fn idle(&mut self, time: Nanos) -> Result<()> {
        self.prepare(&Preconditioning(vec![Step::Idle(time)]), &mut ())
    }

    /// Deallocates `len` bytes at `offset`, in no time.
    ///
    /// # Errors
    /// [`Error::Unfit`] where those are not sectors of the device.
    pub fn trim(&mut self, offset: u64, len: u64) -> Result<()> {
        self.check_life(0)?;
        let capacity = self.device.capacity();
        if !offset.is_multiple_of(SECTOR) || !len.is_multiple_of(SECTOR) {
            let problem =
                format!("trim of {len} B at {offset} B: expected whole sectors of {SECTOR} B");
            return Err(Error::Unfit(problem));
        }
        if offset.checked_add(len).is_none_or(|end| end > capacity) {
            let problem = format!(
                "trim of {len} B at {offset} B: goes beyond the end of the device, which has {}",
                Bytes(capacity)
            );
            return Err(Error::Unfit(problem));
        }
        if len == 0 {
            return Ok(());
        }
        if len == capacity {
            return self.prepare(&Preconditioning(vec![Step::Trim]), &mut ());
        }
        self.prepared.settle(self.device.as_mut());
        self.prepared.filled = false;
        self.device.apply(&bare(Op::Trim, offset, len));
        self.since.push(format!("trim of {} at {}", Bytes(len), Bytes(offset)));
        Ok(())
    }

    /// Erases everything, in no time: fresh out of the box, but for the wear.
    ///
    /// # Errors
    /// [`Error::Unfit`] if the session is of no use any more.
    pub fn purge(&mut self) -> Result<()> {
        self.prepare(&Preconditioning(vec![Step::Purge]), &mut ())
    }

    /// Cuts the power of the device, of all of its parts, and gives it back at once. What was volatile is lost; the
    /// start-up goes on in the next run or idle time, and commands wait for it. Answers how long it takes at
    /// least, ns.
    ///
    /// # Errors
    /// [`Error::Unfit`] if the session is of no use any more.
    pub fn power_cut(&mut self) -> Result<u64> {
        self.check_life(0)?;
        let now = self.prepared.now;
        while self.device.next_event() <= now {
            self.device.advance(now, &mut Vec::new());
        }
        let ready = self.device.power_cut(now, &mut Missed::default());
        self.prepared.timed = true;
        self.since.push("loss of power".into());
        Ok(ready - now)
    }

    /// Plays `jobs` on the device; virtual time of the run begins at 0, the device goes on from where
    /// it was. What it had seen before takes the place of `elapsed_ns` of the options.
    ///
    /// # Errors
    /// As [`run`](super::run); after one that comes when the run has begun the session is of no use.
    pub fn run(
        &mut self,
        jobs: &JobFile,
        options: &RunOptions,
        observer: &mut dyn Observer,
    ) -> Result<RunResult> {
        self.check_life(0)?;
        let trims = counter_sum(self.device(), "host_trims");
        let mut device = shifted::Shifted { device: self.device.as_mut(), by: self.prepared.now };
        let driver = driver::Driver::new(&mut device, jobs, options)?;
        self.broken = true;
        let result = driver.run(observer)?;
        self.broken = false;
        self.prepared.now += result.simulated_ns;
        self.prepared.timed = true;
        self.prepared.filled &= counter_sum(self.device(), "host_trims") == trims;
        self.since.clear();
        self.runs += 1;
        Ok(result)
    }

    /// Every counter of the device and of its parts: the path of the place and the name, the value.
    pub fn counters(&self) -> Vec<(String, u64)> {
        counters::all(self.device())
    }

    /// Refuses a session that broke off, or whose virtual time would come to an end in `more` ns.
    pub(super) fn check_life(&self, more: u64) -> Result<()> {
        if self.broken {
            let problem = "the drive is of no use after a run or preparation that broke off: \
                           what it holds is unknown; make a new one";
            return Err(Error::Unfit(problem.into()));
        }
        if self.prepared.now.saturating_add(more) > LIFE_MAX {
            let problem = format!(
                "the drive would see more than {} of virtual time, which is as far as it can count",
                Nanos(LIFE_MAX)
            );
            return Err(Error::Unfit(problem));
        }
        Ok(())
    }
}
