//! The controller's cores: commands of the host first, the firmware's own work in the gaps.
//!
//! A command takes the core that is free first, for a time that depends on what it is. Units that collection, wear
//! levelling and folding move take a core's time too, and so do translation units that are read or written. That work
//! waits for gaps between commands, but not for ever: at most as much of it waits as one program unit of every die
//! brings, for so long the flash is busy with it anyway. What is more is done before the next command. So a light load
//! hides the firmware's work, and a heavy one pays for it with throughput. Reads and writes can have a latency besides,
//! which passes without a core. Cost: a look at each core for a command.

use super::keys::ControllerKeys;
use crate::contract::Op;
use crate::nand::Geometry;
use crate::persist::persistent;
use std::collections::VecDeque;

/// Cores that handle commands, and do what the drive has to do for itself.
pub(super) struct Controller {
    /// Time for a command, and what a write takes on top.
    command_time: u64,
    write_time: u64,
    /// What reads and writes take on top without taking a core.
    read_latency: u64,
    write_latency: u64,
    /// By [`Op`]: whether it takes any of these.
    takes_time: [bool; OPS.len()],
    /// How much of the firmware's own work can wait, ns.
    patience: u64,
    /// How much of it does, ns.
    backlog: u64,
    /// When the last of that arose: no gap before is filled with it.
    since: u64,
    /// When each core is free again.
    cores: Vec<u64>,
    /// Commands in the order in which they will have been handled.
    queue: VecDeque<(u64, u32)>,
    /// Time of cores that went to commands, and to the firmware's own work, ns.
    pub command_busy: u64,
    pub own_busy: u64,
}

persistent!(Controller {
    state { queue, backlog, since, command_busy, own_busy }
    parts { cores }
    built { command_time, write_time, read_latency, write_latency, takes_time, patience }
});

/// In the order of their numbers.
const OPS: [Op; 5] = [Op::Read, Op::Write, Op::Trim, Op::Flush, Op::Purge];

impl Controller {
    /// Idle cores.
    pub fn new(keys: &ControllerKeys, geometry: &Geometry) -> Self {
        let open = u64::from(geometry.dies()) * u64::from(geometry.units_per_program());
        let mut controller = Controller {
            command_time: keys.command_time.0,
            write_time: keys.write_time.0,
            read_latency: keys.read_latency.0,
            write_latency: keys.write_latency.0,
            takes_time: [false; OPS.len()],
            patience: open * keys.relocate_time.0.max(keys.map_update_time.0),
            backlog: 0,
            since: 0,
            cores: vec![0; keys.cores.max(1) as usize],
            queue: VecDeque::new(),
            command_busy: 0,
            own_busy: 0,
        };
        let takes = |op| controller.time_of(op) + controller.latency_of(op) > 0;
        controller.takes_time = OPS.map(takes);
        controller
    }

    /// Whether other things than any command as such take it time.
    pub fn has_firmware(&self) -> bool {
        self.write_time > 0 || self.patience > 0
    }

    /// Time that a command takes a core.
    #[inline]
    fn time_of(&self, op: Op) -> u64 {
        self.command_time + if op == Op::Write { self.write_time } else { 0 }
    }

    /// Time that passes for a command besides.
    #[inline]
    fn latency_of(&self, op: Op) -> u64 {
        match op {
            Op::Read => self.read_latency,
            Op::Write => self.write_latency,
            Op::Trim | Op::Flush | Op::Purge => 0,
        }
    }

    /// Whether a command that takes it no time need not wait for it: for the TRIM before it,
    /// say, or for the drive to be ready after a loss of power.
    #[inline]
    pub fn is_free(&self, now: u64, op: Op) -> bool {
        let idle = self.cores[0] <= now && self.queue.is_empty();
        idle && self.backlog == 0 && !self.takes_time[op as usize]
    }

    /// A command comes; answers when the first of all that came will have been handled, if that has changed.
    pub fn take(&mut self, now: u64, index: u32, op: Op) -> Option<u64> {
        if self.backlog > 0 {
            self.fill_gaps(now);
            self.catch_up(now);
        }
        let time = self.time_of(op);
        let done = self.occupy(now, time) + self.latency_of(op);
        self.command_busy += time;
        // Reads overtake a write that another core is at; of equal times the one that came first.
        let at = self.queue.iter().rposition(|&(other, _)| other <= done).map_or(0, |at| at + 1);
        self.queue.insert(at, (done, index));
        (at == 0).then_some(done)
    }

    /// The command that has been handled now, and when the next one will have been.
    pub fn handled(&mut self) -> Option<(u32, Option<u64>)> {
        let (_, index) = self.queue.pop_front()?;
        Some((index, self.queue.front().map(|&(next, _)| next)))
    }

    /// A core is busy from now on, or when it is free; answers until when.
    pub fn occupy(&mut self, now: u64, time: u64) -> u64 {
        let core = self.cores.iter_mut().min().expect("a core");
        *core = (*core).max(now) + time;
        *core
    }

    /// The firmware has so much more to do for itself from now on, ns.
    #[inline]
    pub fn add_own_work(&mut self, now: u64, time: u64) {
        if time > 0 {
            if self.backlog > 0 && self.since < now {
                self.fill_gaps(now);
            }
            (self.backlog, self.since) = (self.backlog + time, now);
        }
    }

    /// Does the firmware's own work in the gaps up to now.
    fn fill_gaps(&mut self, now: u64) {
        for core in &mut self.cores {
            // What is left of earlier work has left no gap before the last of it arose.
            let free = (*core).max(self.since);
            let gap = now.saturating_sub(free).min(self.backlog);
            if gap > 0 {
                *core = free + gap;
                self.backlog -= gap;
                self.own_busy += gap;
            }
        }
    }

    /// Does as much of the firmware's own work as cannot wait.
    fn catch_up(&mut self, now: u64) {
        let late = self.backlog.saturating_sub(self.patience);
        if late > 0 {
            self.occupy(now, late);
            self.backlog -= late;
            self.own_busy += late;
        }
    }

    /// Nothing is handled any more; cores begin anew when the drive is ready.
    pub fn power_cut(&mut self, ready: u64) {
        self.queue.clear();
        self.backlog = 0;
        self.cores.fill(ready);
    }
}
