//! Commands of the host on their way through a card.

use super::ram::Run;
use super::{Controller, Purpose, SPENT, WIRE, Work};
use crate::contract::{Command, Completion, Op};
use crate::fleet::{HostId, Io};
use crate::stats::{Part, Parts};

fn run_of(command: &Command) -> Run {
    Run { offset: command.offset, len: command.len }
}

impl Controller {
    /// The time since it was last looked at went to `SPENT[nth]`.
    #[inline]
    fn lap(&mut self, host: HostId, nth: usize) {
        let now = self.fleet.now;
        let own = &mut self.fleet.hosts[host].own;
        own.spent[nth] += now - own.mark;
        own.mark = now;
    }

    /// What a command acts on: a purge acts on everything.
    pub(super) fn range(&self, host: HostId) -> Run {
        let command = self.fleet.hosts[host].command;
        match command.op {
            Op::Purge => Run { offset: 0, len: self.fleet.capacity },
            _ => run_of(&command),
        }
    }

    /// A core has looked at it.
    #[inline]
    pub(super) fn handled(&mut self, host: HostId) {
        self.lap(host, 0);
        match self.fleet.hosts[host].command.op {
            Op::Read => self.read(host),
            Op::Write => self.transfer(host),
            Op::Flush => self.flush(host),
            Op::Trim | Op::Purge => self.trim(host),
        }
    }

    fn read(&mut self, host: HostId) {
        let run = self.range(host);
        if let Some(contents) = &self.contents {
            self.fleet.hosts[host].digest = contents.digest(run, &self.fleet);
        }
        let mut runs = std::mem::take(&mut self.runs);
        match &mut self.cache {
            Some(cache) => {
                if cache.ram.hit(run) {
                    self.read_hits += 1;
                } else {
                    cache.ram.missing(run, &mut runs);
                }
            }
            None => runs.push(run),
        }
        self.fleet.hosts[host].remaining = runs.len() as u32;
        if runs.is_empty() {
            self.transfer(host);
        }
        for Run { offset, len } in runs.drain(..) {
            let io = Io { member: 0, op: Op::Read, offset, len, purpose: Purpose::Read(host) };
            self.send_for(host, io, 0, 0);
        }
        self.runs = runs;
    }

    #[inline]
    fn transfer(&mut self, host: HostId) {
        let len = self.fleet.hosts[host].command.len;
        self.wire.send(self.fleet.now, self.bandwidth.time(len), host);
        self.fleet.set_timer(WIRE, self.wire.next());
    }

    /// Its data has crossed.
    #[inline]
    pub(super) fn crossed(&mut self, host: HostId) {
        self.lap(host, 1);
        match self.fleet.hosts[host].command.op {
            Op::Write if self.writes_back() => self.buffer(host),
            Op::Write => self.pass(host),
            _ => self.complete(host),
        }
    }

    /// Sends it below as it is, once nothing of it is in RAM alone; RAM forgets what it changes.
    #[inline]
    pub(super) fn pass(&mut self, host: HostId) {
        let command = self.fleet.hosts[host].command;
        let run = self.range(host);
        if command.op != Op::Flush {
            self.forget(run);
        }
        let stamp = match command.op {
            Op::Write => self.fleet.stamp_of_host(&command, run.offset, run.end()),
            _ => 0,
        };
        self.fleet.hosts[host].remaining = 1;
        let Command { op, offset, len, compressible, .. } = command;
        let io = Io { member: 0, op, offset, len, purpose: Purpose::Pass(host) };
        self.send_for(host, io, stamp, compressible);
    }

    #[inline]
    fn forget(&mut self, run: Run) {
        if let Some(cache) = &mut self.cache {
            cache.ram.forget(run);
            if let Some(contents) = &mut self.contents {
                contents.forget(run);
            }
        }
    }

    /// A command below has ended that was sent for one of the host's.
    #[inline]
    pub(super) fn host_answered(&mut self, host: HostId, completion: &Completion) {
        if !self.fleet.release(host) {
            return;
        }
        // All of them were sent in one instant, so the last one took all of the time.
        let now = self.fleet.now;
        let active = &mut self.fleet.hosts[host];
        (active.own.answered, active.own.mark) = (true, now);
        let op = active.command.op;
        let by_firmware = active.own.by_firmware;
        if matches!(op, Op::Read | Op::Write) {
            self.keep(host);
        }
        if op != Op::Read && !by_firmware {
            return self.complete_with(host, &completion.parts);
        }
        // Kept until a core has seen it, and its data has crossed.
        if self.below.len() <= host.index() {
            self.below.resize(host.index() + 1, Parts::default());
        }
        self.below[host.index()] = completion.parts.clone();
        if by_firmware { self.assign_core(0, Work::Answer(host)) } else { self.transfer(host) }
    }

    /// A core has seen that it is answered.
    pub(super) fn answer_seen(&mut self, host: HostId) {
        self.lap(host, 0);
        match self.fleet.hosts[host].command.op {
            Op::Read => self.transfer(host),
            _ => self.complete(host),
        }
    }

    /// RAM keeps what has passed it.
    #[inline]
    fn keep(&mut self, host: HostId) {
        if self.cache.as_ref().is_some_and(|cache| cache.keeps_reads) {
            self.keep_in_ram(host);
        }
    }

    fn keep_in_ram(&mut self, host: HostId) {
        let run = self.range(host);
        let Some(cache) = &mut self.cache else { return };
        let mut lost = std::mem::take(&mut self.lost);
        let kept = cache.ram.keep(run, &mut lost);
        if let Some(contents) = &mut self.contents {
            contents.keep(kept, &self.fleet);
            for &run in lost.iter().filter(|run| !cache.ram.has_line(run.offset)) {
                contents.forget(run);
            }
        }
        lost.clear();
        self.lost = lost;
    }

    pub(super) fn complete(&mut self, host: HostId) {
        let answered = self.fleet.hosts[host].own.answered;
        let below =
            if answered { std::mem::take(&mut self.below[host.index()]) } else { Parts::default() };
        self.complete_with(host, &below);
    }

    /// The same where the devices below needed so much.
    #[inline]
    fn complete_with(&mut self, host: HostId, below: &Parts) {
        let own = self.fleet.hosts[host].own;
        debug_assert_eq!(own.mark, self.fleet.now, "its time is not accounted for");
        self.fleet.complete(host, below, SPENT.into_iter().zip(own.spent), Part::Card);
        match self.waiting.pop_front() {
            Some(next) => self.admit(next),
            None => self.places += 1,
        }
    }

    /// It has waited for RAM.
    pub(super) fn waited(&mut self, host: HostId) {
        self.lap(host, 2);
    }

    /// Does at once what a command leaves behind; RAM holds nothing that is not below.
    pub(super) fn apply_below(&mut self, command: &Command) {
        let run = match command.op {
            Op::Purge => Run { offset: 0, len: self.fleet.capacity },
            _ => run_of(command),
        };
        if matches!(command.op, Op::Write | Op::Trim | Op::Purge) {
            self.forget(run);
        }
        let stamp = match command.op {
            Op::Write => self.fleet.stamp_of_host(command, run.offset, run.end()),
            _ => 0,
        };
        self.fleet.apply(0, &Command { stamp, ..*command });
    }
}
