//! Bringing a device into a known state before a run, through its untimed path.

use super::counters::FlashWrites;
use super::{IOS_PER_PROGRESS, LOOK_AHEAD, Observer, Progress};
use crate::device::{Command, Device, Distance, Drawing, Op, SECTOR};
use crate::error::{Error, Result};
use crate::persist::persistent;
use crate::rng::Stream;
use crate::units::Nanos;
use std::collections::VecDeque;
use std::fmt;
use std::str::FromStr;

/// One step towards the state in which a run finds its device.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Step {
    /// Erased: fresh out of the box, but for the wear.
    Purge,
    /// Filled once in order, 128 KiB at a time.
    Sequential,
    /// This many times the capacity in random 4 KiB writes.
    Random(f64),
    /// Random 4 KiB writes until write amplification holds still.
    Steady,
    /// Everything deallocated.
    Trim,
    /// What the steps after this one write shrinks by so many percent, for drives that compress; at
    /// first nothing does.
    Compressible(u8),
    /// Left alone for so long; the only step that takes (virtual) time.
    Idle(Nanos),
}

/// What is done to a device before a run, in order; nothing leaves it fresh out of the box.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Preconditioning(pub Vec<Step>);

/// Longest idle step: sums of some stay far from the end of virtual time.
const IDLE_MAX: Nanos = Nanos::millis(1000 * 86_400_000);
/// Steps at most.
const STEPS_MAX: usize = 100;
/// Size of the sequential writes.
const FILL_BYTES: u64 = 128 << 10;
/// Size of the random writes.
const RANDOM_BYTES: u64 = 4 << 10;
/// A drive is steady when the write amplifications of so many neighbouring windows of half a
/// capacity ...
const STEADY_WINDOWS: usize = 3;
/// ... lie within this share of their mean. Two would do at the turning point of an overshoot.
const STEADY_SHARE: f64 = 0.005;
/// Devices of more random-write blocks than this (4 GiB) take their steady state at once where they can; others
/// are written, which takes no longer than a second or two.
const DRAWN_FROM: u64 = 1 << 20;
/// The share of the time that drawing takes; the rest goes into what is written then.
const DRAWING: f64 = 0.6;
/// Times the capacity that is then written, for what a drawn state has in common all over the device to part.
const SETTLING: f64 = 0.0625;
/// Windows before a drive may count as steady (two capacities), and after which it does in any
/// case (16 capacities).
const WINDOWS: std::ops::RangeInclusive<usize> = 4..=32;

impl FromStr for Preconditioning {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        if text == "fob" {
            return Ok(Preconditioning::default());
        }
        let steps = text
            .split(',')
            .map(|step| Step::parse(step.trim()))
            .collect::<Option<Vec<_>>>()
            .filter(|steps| steps.len() <= STEPS_MAX)
            .ok_or_else(|| {
                Error::value(
                    text,
                    "fob, or steps joined by commas: sequential, random:N (N times the capacity, \
                     above 0 and at most 1000), steady, trim, purge, compressible:N (percent by \
                     which data shrinks from there on), idle:TIME (such as idle:30s, at most 1000d)",
                )
            })?;
        if let Some(Step::Compressible(_)) = steps.last() {
            return Err(Error::value(text, "a step that writes after the last compressible:N"));
        }
        Ok(Preconditioning(steps))
    }
}

impl Step {
    fn parse(text: &str) -> Option<Self> {
        match text.split_once(':') {
            None => match text {
                "sequential" => Some(Step::Sequential),
                "steady" => Some(Step::Steady),
                "trim" => Some(Step::Trim),
                "purge" => Some(Step::Purge),
                _ => None,
            },
            Some(("random", times)) => {
                let times = times.parse::<f64>().ok()?;
                (times > 0.0 && times <= 1000.0).then_some(Step::Random(times))
            }
            Some(("compressible", percent)) => {
                percent.parse().ok().filter(|&p| p <= 100).map(Step::Compressible)
            }
            Some(("idle", time)) => {
                Nanos::parse(time).ok().filter(|time| *time <= IDLE_MAX).map(Step::Idle)
            }
            Some(_) => None,
        }
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Step::Purge => write!(f, "purge"),
            Step::Sequential => write!(f, "sequential"),
            Step::Random(times) => write!(f, "random:{times}"),
            Step::Steady => write!(f, "steady"),
            Step::Trim => write!(f, "trim"),
            Step::Compressible(percent) => write!(f, "compressible:{percent}"),
            Step::Idle(time) => write!(f, "idle:{time}"),
        }
    }
}

impl fmt::Display for Preconditioning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return write!(f, "fob");
        }
        let steps: Vec<String> = self.0.iter().map(Step::to_string).collect();
        write!(f, "{}", steps.join(","))
    }
}

/// What preparing a device goes on from: nothing, for one that is fresh out of the box.
pub(super) struct Prepared {
    stream: Stream,
    /// Virtual time that the device has seen, ns.
    pub now: u64,
    /// Every block holds data.
    pub filled: bool,
    /// The device has worked in time since it was last at rest.
    pub timed: bool,
}

persistent!(Prepared { state { stream, now, filled, timed } });

impl Prepared {
    /// For the run `seed`.
    pub fn new(seed: u64) -> Self {
        Prepared { stream: Stream::new(seed, "prepare"), now: 0, filled: false, timed: false }
    }

    /// Lets the device finish what it does in time, so that the untimed path may be taken.
    pub fn settle(&mut self, device: &mut dyn Device) {
        if std::mem::take(&mut self.timed) {
            self.now = device.settle(self.now);
        }
    }
}

/// Takes a device that is fresh out of the box through `steps`; answers the virtual time that
/// they took, ns: that of idle steps, and what the device needs after one to come to rest.
///
/// The data does not shrink unless `compressible:N` says so. `random:N` and `steady` begin with a
/// sequential fill unless the device has been filled before them. `steady` of a large SSD that was never written is
/// drawn where that can be ([`Device::draw_steady`]), and a sixteenth of the capacity written on top. A
/// device without counters of flash writes has no write amplification to watch and is steady after the first window.
///
/// # Errors
/// [`Error::Cancelled`] if the observer says so.
pub fn prepare(
    device: &mut dyn Device,
    steps: &Preconditioning,
    seed: u64,
    observer: &mut dyn Observer,
) -> Result<u64> {
    let mut prepared = Prepared::new(seed);
    prepare_further(device, steps, &mut prepared, observer)?;
    Ok(prepared.now)
}

/// The same for a device that has been prepared so far.
pub(super) fn prepare_further(
    device: &mut dyn Device,
    steps: &Preconditioning,
    prepared: &mut Prepared,
    observer: &mut dyn Observer,
) -> Result<()> {
    let mut work = Work { device, observer, prepared, ios: 0, compressible: 0 };
    steps.0.iter().try_for_each(|step| work.step(*step))
}

/// A command without data to it.
pub(super) fn bare(op: Op, offset: u64, len: u64) -> Command {
    Command { tag: 0, op, offset, len, compressible: 0, stamp: 0, process: 0 }
}

struct Work<'a> {
    device: &'a mut dyn Device,
    observer: &'a mut dyn Observer,
    prepared: &'a mut Prepared,
    ios: u64,
    /// How much what is written shrinks, percent.
    compressible: u8,
}

impl Work<'_> {
    fn step(&mut self, step: Step) -> Result<()> {
        if !matches!(step, Step::Idle(_) | Step::Compressible(_)) {
            self.prepared.settle(self.device);
        }
        if step == Step::Steady && self.draw_steady()? {
            return Ok(());
        }
        if matches!(step, Step::Random(_) | Step::Steady) && !self.prepared.filled {
            self.fill()?;
        }
        match step {
            Step::Sequential => self.fill(),
            Step::Random(times) => {
                let writes = (self.blocks() as f64 * times).round() as u64;
                self.random(writes, 0.0, 1.0)
            }
            Step::Steady => self.until_steady(),
            Step::Purge => {
                self.prepared.filled = false;
                self.device.apply(&bare(Op::Purge, 0, 0));
                Ok(())
            }
            Step::Trim => {
                self.prepared.filled = false;
                self.device.apply(&bare(Op::Trim, 0, self.device.capacity()));
                Ok(())
            }
            Step::Compressible(percent) => {
                self.compressible = percent;
                Ok(())
            }
            Step::Idle(time) => {
                let now = &mut self.prepared.now;
                let end = *now + time.0;
                while *now < end {
                    *now = self.device.advance(end, &mut Vec::new());
                }
                self.device.take_stock(end);
                self.prepared.timed = true;
                Ok(())
            }
        }
    }

    /// Random-write blocks of the device.
    fn blocks(&self) -> u64 {
        self.device.capacity() / RANDOM_BYTES
    }

    fn write(&mut self, offset: u64, len: u64) {
        let compressible = self.compressible;
        self.device.apply(&Command { compressible, ..bare(Op::Write, offset, len) });
        self.ios += 1;
    }

    fn look(&mut self, phase: &'static str, fraction: f64) -> Result<()> {
        if !self.ios.is_multiple_of(IOS_PER_PROGRESS) {
            return Ok(());
        }
        let progress = Progress { phase, fraction, simulated_s: 0.0, ios: self.ios };
        if self.observer.progress(&progress) { Ok(()) } else { Err(Error::Cancelled) }
    }

    fn fill(&mut self) -> Result<()> {
        let capacity = self.device.capacity() / SECTOR * SECTOR;
        let mut offset = 0;
        while offset < capacity {
            let len = FILL_BYTES.min(capacity - offset);
            self.write(offset, len);
            offset += len;
            self.look("sequential fill", offset as f64 / capacity as f64)?;
        }
        self.prepared.filled = true;
        Ok(())
    }

    /// Does `writes` random writes: the share `from .. to` of the phase.
    fn random(&mut self, writes: u64, from: f64, to: f64) -> Result<()> {
        let blocks = self.blocks();
        if blocks == 0 {
            return Ok(());
        }
        let mut ahead = VecDeque::with_capacity(LOOK_AHEAD);
        let mut drawn = 0;
        for done in 0..writes {
            // No more than are written, so that the stream goes on as without looking ahead.
            while ahead.len() < LOOK_AHEAD && drawn < writes {
                let offset = self.prepared.stream.below(blocks) * RANDOM_BYTES;
                self.device.expect(Op::Write, offset, Distance::Far);
                ahead.push_back(offset);
                drawn += 1;
            }
            if let Some(&soon) = ahead.get(LOOK_AHEAD / 2) {
                self.device.expect(Op::Write, soon, Distance::Near);
            }
            let offset = ahead.pop_front().expect("one is drawn for each");
            self.write(offset, RANDOM_BYTES);
            self.look("random writes", from + (to - from) * done as f64 / writes as f64)?;
        }
        Ok(())
    }

    /// Takes the steady state at once where the device can; answers whether it could.
    fn draw_steady(&mut self) -> Result<bool> {
        let prepared = &mut *self.prepared;
        let long = self.device.capacity() / RANDOM_BYTES > DRAWN_FROM;
        let fits = long && !prepared.filled && self.compressible == 0;
        if !fits {
            return Ok(false);
        }
        let observer = &mut *self.observer;
        let mut watch = |done: f64| {
            let (phase, fraction) = ("steady state", DRAWING * done);
            observer.progress(&Progress { phase, fraction, simulated_s: 0.0, ios: 0 })
        };
        let mut drawing = Drawing::new(&mut prepared.stream, &mut watch);
        let drawn = self.device.draw_steady(RANDOM_BYTES, &mut drawing);
        if drawing.is_stopped() {
            return Err(Error::Cancelled);
        }
        if !drawn {
            return Ok(false);
        }
        prepared.filled = true;
        let writes = (self.blocks() as f64 * SETTLING).round() as u64;
        self.random(writes, DRAWING, 1.0)?;
        Ok(true)
    }

    fn until_steady(&mut self) -> Result<()> {
        let mut windows: Vec<f64> = Vec::new();
        for window in 0..*WINDOWS.end() {
            let start = FlashWrites::of(self.device);
            let share = |window: usize| window as f64 / *WINDOWS.end() as f64;
            self.random(self.blocks().div_ceil(2), share(window), share(window + 1))?;
            let Some(waf) = FlashWrites::of(self.device).amplification_since(start) else {
                return Ok(());
            };
            windows.push(waf);
            if windows.len() >= *WINDOWS.start() && is_steady(&windows) {
                return Ok(());
            }
        }
        Ok(())
    }
}

/// Whether the last windows lie within the share allowed of their mean.
fn is_steady(windows: &[f64]) -> bool {
    let last = &windows[windows.len().saturating_sub(STEADY_WINDOWS)..];
    let mean = last.iter().sum::<f64>() / last.len() as f64;
    last.iter().all(|waf| (waf - mean).abs() <= STEADY_SHARE * mean)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_read_back_as_written_and_others_are_refused_by_example() {
        for text in [
            "fob",
            "sequential",
            "random:2",
            "random:0.5",
            "steady",
            "steady,idle:30s",
            "random:1,trim,purge",
            "compressible:46,sequential",
        ] {
            assert_eq!(text.parse::<Preconditioning>().unwrap().to_string(), text);
        }
        for text in [
            "",
            "random",
            "random:",
            "random:-1",
            "random:nan",
            "random:1e9",
            "full",
            "idle:",
            "idle:3",
            "compressible",
            "compressible:101",
            "idle:1001d",
            "fob,steady",
        ] {
            let message = text.parse::<Preconditioning>().unwrap_err().to_string();
            assert!(message.contains("random:N"), "{message}");
        }
    }

    #[test]
    fn compressibility_of_nothing_is_refused() {
        let message = "sequential,compressible:46".parse::<Preconditioning>().unwrap_err();
        assert!(message.to_string().contains("after the last compressible:N"), "{message}");
    }
}
