//! Commands of the host on their way through a card.

use super::content::Contents;
use super::ram::Run;
use super::{Controller, Io, Purpose, Work};
use crate::device::{Command, Completion, Op};
use crate::stats::Part;

fn run_of(command: &Command) -> Run {
    Run { offset: command.offset, len: command.len }
}

impl Controller {
    /// The time since it was last looked at went to `part`.
    fn lap(&mut self, host: u32, part: Part) {
        let now = self.now;
        let host = &mut self.hosts.all[host as usize];
        host.parts[part] += now - host.mark;
        host.mark = now;
    }

    /// What a command acts on: a purge acts on everything.
    pub(super) fn range(&self, host: u32) -> Run {
        let command = self.hosts.all[host as usize].command;
        match command.op {
            Op::Purge => Run { offset: 0, len: self.below.capacity() },
            _ => run_of(&command),
        }
    }

    /// A core has looked at it.
    pub(super) fn handled(&mut self, host: u32) {
        self.lap(host, Part::Card);
        match self.hosts.all[host as usize].command.op {
            Op::Read => self.read(host),
            Op::Write => self.transfer(host),
            Op::Flush => self.flush(host),
            Op::Trim | Op::Purge => self.trim(host),
        }
    }

    fn read(&mut self, host: u32) {
        let run = self.range(host);
        if let Some(contents) = &self.contents {
            self.hosts.all[host as usize].digest = contents.digest(run, &*self.below);
        }
        let mut runs = std::mem::take(&mut self.runs);
        match &mut self.cache {
            Some(cache) => {
                if cache.ram.hit(run) {
                    self.counts.read_hits += 1;
                } else {
                    cache.ram.missing(run, &mut runs);
                }
            }
            None => runs.push(run),
        }
        self.hosts.all[host as usize].remaining = runs.len() as u32;
        if runs.is_empty() {
            self.transfer(host);
        }
        for run in runs.drain(..) {
            let digest = match &self.contents {
                Some(_) => Contents::digest_below(run, &*self.below),
                None => 0,
            };
            let io = Io { purpose: Purpose::Read, host, run, digest, ..Io::default() };
            let index = self.insert(io);
            self.send(index, Op::Read, 0);
        }
        self.runs = runs;
    }

    fn transfer(&mut self, host: u32) {
        let len = self.hosts.all[host as usize].command.len;
        self.wire.send(self.now, self.bandwidth.time(len), host);
    }

    /// Its data has crossed.
    pub(super) fn crossed(&mut self, host: u32) {
        self.lap(host, Part::Bus);
        match self.hosts.all[host as usize].command.op {
            Op::Write if self.writes_back() => self.buffer(host),
            Op::Write => self.pass(host),
            _ => self.complete(host),
        }
    }

    /// Sends it below as it is, once nothing of it is in RAM alone; RAM forgets what it changes.
    pub(super) fn pass(&mut self, host: u32) {
        let command = self.hosts.all[host as usize].command;
        let run = self.range(host);
        let mut stamp = 0;
        if command.op != Op::Flush {
            self.forget(run);
        }
        if let (Some(contents), Op::Write) = (&mut self.contents, command.op) {
            stamp = contents.stamp_of_host(run, command.stamp);
        }
        self.hosts.all[host as usize].remaining = 1;
        let (run, compressible) = (run_of(&command), command.compressible);
        let io = Io { purpose: Purpose::Pass, host, run, compressible, ..Io::default() };
        let index = self.insert(io);
        self.send(index, command.op, stamp);
    }

    fn forget(&mut self, run: Run) {
        if let Some(cache) = &mut self.cache {
            cache.ram.forget(run);
            if let Some(contents) = &mut self.contents {
                contents.forget(run);
            }
        }
    }

    pub(super) fn insert(&mut self, io: Io) -> u32 {
        self.ios.insert(Io { active: true, ..io })
    }

    /// Sends a command below.
    pub(super) fn send(&mut self, index: u32, op: Op, stamp: u64) {
        let Io { run: Run { offset, len }, compressible, .. } = self.ios.all[index as usize];
        self.counts.below(op, len);
        let tag = u64::from(index);
        self.below.submit(self.now, Command { tag, op, offset, len, compressible, stamp });
    }

    /// Something below has ended.
    pub(super) fn answer(&mut self, completion: &Completion) {
        let index = completion.tag as u32;
        let Io { purpose, host, run, digest, .. } = self.ios.all[index as usize];
        self.ios.all[index as usize].active = false;
        self.ios.free.push(index);
        if purpose == Purpose::Destage {
            return self.landed(run);
        }
        if self.contents.is_some() && purpose == Purpose::Read {
            assert_eq!(completion.digest, digest, "below answered another content than it holds");
        }
        let now = self.now;
        let active = &mut self.hosts.all[host as usize];
        active.remaining -= 1;
        if active.remaining > 0 {
            return;
        }
        // All of them were sent in one instant, so the last one took all of the time.
        active.parts.add(&completion.parts);
        active.mark = now;
        let op = active.command.op;
        if matches!(op, Op::Read | Op::Write) {
            self.keep(host);
        }
        if op == Op::Read { self.transfer(host) } else { self.complete(host) }
    }

    /// RAM keeps what has passed it.
    fn keep(&mut self, host: u32) {
        let run = self.range(host);
        let Some(cache) = self.cache.as_mut().filter(|cache| cache.keeps_reads) else { return };
        let mut lost = std::mem::take(&mut self.lost);
        let kept = cache.ram.keep(run, &mut lost);
        if let Some(contents) = &mut self.contents {
            contents.keep(kept, &*self.below);
            for &run in lost.iter().filter(|run| !cache.ram.has_line(run.offset)) {
                contents.forget(run);
            }
        }
        lost.clear();
        self.lost = lost;
    }

    pub(super) fn complete(&mut self, host: u32) {
        let done = self.hosts.all[host as usize];
        let tag = done.command.tag;
        debug_assert_eq!(done.mark, self.now, "its time is not accounted for");
        self.ready.push(Completion { tag, time: self.now, parts: done.parts, digest: done.digest });
        self.hosts.free.push(host);
        match self.waiting.pop_front() {
            Some(next) => self.cores.send(self.now, Work { index: next, destage: false }),
            None => self.places += 1,
        }
    }

    /// It has waited for RAM.
    pub(super) fn waited(&mut self, host: u32) {
        self.lap(host, Part::Cache);
    }

    /// Does at once what a command leaves behind; RAM holds nothing that is not below.
    pub(super) fn apply_below(&mut self, command: &Command) {
        let run = match command.op {
            Op::Purge => Run { offset: 0, len: self.below.capacity() },
            _ => run_of(command),
        };
        if matches!(command.op, Op::Write | Op::Trim | Op::Purge) {
            self.forget(run);
        }
        let mut inner = *command;
        if let (Some(contents), Op::Write) = (&mut self.contents, command.op) {
            inner.stamp = contents.stamp_of_host(run, command.stamp);
        }
        self.counts.below(inner.op, inner.len);
        self.below.apply(&inner);
    }
}
