//! Writes that are done when they are in RAM, and how RAM is written below.

use super::keys::RamKeys;
use super::ram::{Ram, Run};
use super::{CORES, Controller, Purpose, SWEEP, Work};
use crate::contract::{Op, SECTOR};
use crate::fleet::{HostId, Io, IoId};
use crate::persist::persistent;
use crate::units::NEVER;
use std::collections::VecDeque;

/// RAM, and who waits for it.
pub(super) struct Cache {
    pub ram: Ram,
    writes_back: bool,
    battery: bool,
    pub keeps_reads: bool,
    /// Lines that may wait to go below without anything being done.
    low: u32,
    delay: u64,
    depth: u32,
    /// Commands that write RAM below.
    in_flight: u32,
    /// When all that is dirty is to go below.
    pub due: u64,
    /// The epoch that is going below because of that.
    pub sweep: Option<u64>,
    /// Flushes and what they wait for, TRIMs and purges, writes without room.
    flushes: VecDeque<(u64, HostId)>,
    trims: VecDeque<HostId>,
    full: VecDeque<HostId>,
    counts: Counts,
}
persistent!(Cache {
    state { ram, in_flight, due, sweep, flushes, trims, full, counts }
    built { writes_back, battery, keeps_reads, low, delay, depth }
});

#[derive(Default)]
struct Counts {
    bytes_buffered: u64,
    commands: u64,
    bytes: u64,
    /// Lines that went along with the one before.
    merged: u64,
    waits: u64,
}
persistent!(Counts { state { bytes_buffered, commands, bytes, merged, waits } });

impl Cache {
    pub fn new(keys: &RamKeys) -> Self {
        let at_once = keys.destage_delay.0 == 0 || keys.dirty_low == 0.0;
        Cache {
            ram: Ram::new(keys),
            writes_back: keys.writes_back(),
            battery: keys.battery,
            keeps_reads: keys.keep_reads,
            low: if at_once { 0 } else { keys.share(keys.dirty_low) },
            delay: keys.destage_delay.0,
            depth: keys.destage_depth,
            in_flight: 0,
            due: NEVER,
            sweep: None,
            flushes: VecDeque::new(),
            trims: VecDeque::new(),
            full: VecDeque::new(),
            counts: Counts::default(),
        }
    }

    pub fn counters(&self, visit: &mut dyn FnMut(&'static str, u64)) {
        let (ram, counts) = (&self.ram, &self.counts);
        visit("bytes_buffered", counts.bytes_buffered);
        visit("bytes_overwritten", ram.counts.overwritten);
        visit("evictions", ram.counts.evictions);
        visit("destage_commands", counts.commands);
        visit("destage_bytes", counts.bytes);
        visit("destage_merged_lines", counts.merged);
        visit("waits_for_room", counts.waits);
        visit("dirty_bytes", ram.dirty_bytes());
        visit("dirty_bytes_max", ram.counts.dirty_bytes_max);
    }

    /// Whether anything but writing through it is done with it.
    pub fn is_used(&self) -> bool {
        self.writes_back || self.keeps_reads
    }

    /// Whether a loss of power loses writes that were answered.
    pub fn is_volatile(&self) -> bool {
        self.writes_back && !self.battery
    }

    /// Whether something of RAM is to go below now.
    fn is_urgent(&self) -> bool {
        self.ram.waiting() > self.low
            || self.sweep.is_some()
            || !(self.flushes.is_empty() && self.trims.is_empty() && self.full.is_empty())
    }

    /// Plans when the rest goes below, if there is any and nothing is planned.
    fn plan(&mut self, now: u64) {
        if self.ram.pinned() == 0 {
            self.due = NEVER;
        } else if self.due == NEVER && self.sweep.is_none() && self.low > 0 {
            self.due = now + self.delay;
        }
    }
}

impl Controller {
    pub(super) fn writes_back(&self) -> bool {
        self.cache.as_ref().is_some_and(|cache| cache.writes_back)
    }

    /// Power goes: RAM keeps what is not below, if there is a battery.
    pub(super) fn cut_ram(&mut self) {
        let Some(cache) = &mut self.cache else { return };
        self.fleet.power.lost_bytes += cache.ram.cut(cache.battery);
        (cache.in_flight, cache.due, cache.sweep) = (0, NEVER, None);
        cache.flushes.clear();
        cache.trims.clear();
        cache.full.clear();
        if let Some(contents) = &mut self.contents {
            contents.keep_only(|offset| cache.ram.holds(offset));
        }
    }

    /// A write goes into RAM, after those that wait for room.
    pub(super) fn buffer(&mut self, host: HostId) {
        self.fleet.hosts[host].own.left = self.range(host);
        let cache = self.cache.as_mut().expect("RAM");
        cache.full.push_back(host);
        self.fill();
        let cache = self.cache.as_mut().expect("RAM");
        cache.counts.waits += u64::from(cache.full.back() == Some(&host));
        self.destage();
    }

    /// Puts writes into RAM as far as there is room.
    fn fill(&mut self) {
        let Some(cache) = &mut self.cache else { return };
        let mut lost = std::mem::take(&mut self.lost);
        let mut done = 0;
        'writes: for &host in &cache.full {
            let active = &mut self.fleet.hosts[host];
            while active.own.left.len > 0 {
                let compressible = active.command.compressible;
                let taken = cache.ram.absorb(&active.own.left, compressible, &mut lost);
                let Some(len) = taken else { break 'writes };
                cache.counts.bytes_buffered += len;
                let Run { offset, .. } = active.own.left;
                if let Some(contents) = &mut self.contents {
                    lost.iter().for_each(|&run| contents.forget(run));
                    let nth = (offset - active.command.offset) / SECTOR;
                    contents.write(Run { offset, len }, active.command.stamp + nth);
                }
                lost.clear();
                active.own.left = Run { offset: offset + len, len: active.own.left.len - len };
            }
            done += 1;
        }
        cache.plan(self.fleet.now);
        self.fleet.set_timer(SWEEP, cache.due);
        self.lost = lost;
        for _ in 0..done {
            let host = self.cache.as_mut().and_then(|cache| cache.full.pop_front());
            let host = host.expect("a write that is in RAM");
            self.waited(host);
            self.complete(host);
        }
    }

    /// Begins to write RAM below as far as that is called for.
    pub(super) fn destage(&mut self) {
        let settling = self.fleet.settling;
        let Some(cache) = &mut self.cache else { return };
        let urgent = |cache: &Cache| settling || cache.is_urgent();
        while cache.in_flight < cache.depth && cache.ram.waiting() > 0 && urgent(cache) {
            let trim = cache.trims.front().map(|&host| self.fleet.hosts[host].command);
            let wanted = trim.map(|trim| match trim.op {
                Op::Purge => Run { offset: 0, len: self.fleet.capacity },
                _ => Run { offset: trim.offset, len: trim.len },
            });
            let Some((run, lines, compressible)) = cache.ram.next_run(wanted) else { return };
            cache.in_flight += 1;
            cache.counts.commands += 1;
            cache.counts.bytes += run.len;
            cache.counts.merged += lines - 1;
            let (Run { offset, len }, purpose) = (run, Purpose::Destage(compressible));
            let io = self.fleet.enlist(Io { member: 0, op: Op::Write, offset, len, purpose });
            self.fleet.watch(io, 0, offset, len);
            self.cores.send(self.fleet.now, self.command_time, Work::Destage(io));
            self.fleet.set_timer(CORES, self.cores.due());
        }
    }

    /// A core has looked at a command that writes RAM below.
    pub(super) fn send_destage(&mut self, id: IoId) {
        let Io { offset, len, purpose, .. } = self.fleet.ios[id];
        let run = Run { offset, len };
        let contents = self.contents.as_ref();
        let stamp = contents.map_or(0, |contents| contents.stamp_of_ram(run, &mut self.fleet));
        let compressible = if let Purpose::Destage(share) = purpose { share } else { 0 };
        self.fleet.deliver(id, stamp, compressible);
    }

    /// RAM has been written below.
    pub(super) fn landed(&mut self, run: Run) {
        let Some(cache) = &mut self.cache else { return };
        cache.ram.landed(run);
        cache.in_flight -= 1;
        if cache.sweep.is_some_and(|epoch| cache.ram.is_clean_of(epoch)) {
            cache.sweep = None;
        }
        cache.plan(self.fleet.now);
        self.fill();
        while let Some(cache) = &mut self.cache
            && let Some(&(epoch, host)) = cache.flushes.front()
            && cache.ram.is_clean_of(epoch)
        {
            cache.flushes.pop_front();
            self.waited(host);
            self.pass(host);
        }
        self.release_trims();
        self.destage();
    }

    /// All that is dirty now is to go below.
    pub(super) fn begin_sweep(&mut self) {
        let Some(cache) = &mut self.cache else { return };
        cache.due = NEVER;
        self.fleet.set_timer(SWEEP, NEVER);
        if cache.ram.pinned() > 0 {
            cache.sweep = Some(cache.ram.begin_epoch());
        }
        self.destage();
    }

    pub(super) fn flush(&mut self, host: HostId) {
        match &mut self.cache {
            Some(cache) if cache.writes_back && cache.battery => self.complete(host),
            Some(cache) if cache.ram.pinned() > 0 => {
                let epoch = cache.ram.begin_epoch();
                cache.flushes.push_back((epoch, host));
                self.destage();
            }
            _ => self.pass(host),
        }
    }

    /// A TRIM or a purge.
    pub(super) fn trim(&mut self, host: HostId) {
        if self.is_below(host) {
            return self.pass(host);
        }
        let cache = self.cache.as_mut().expect("it waits for RAM");
        cache.trims.push_back(host);
        self.destage();
    }

    /// Whether nothing of its range is in RAM alone or on its way.
    fn is_below(&self, host: HostId) -> bool {
        let Some(cache) = self.cache.as_ref().filter(|cache| cache.ram.pinned() > 0) else {
            return true;
        };
        // A line of which something is on its way may hold more that waits.
        let range = cache.ram.lines_of(self.range(host));
        !cache.ram.has_waiting(&range) && !self.fleet.is_touched(0, range.offset, range.len)
    }

    fn release_trims(&mut self) {
        let mut at = 0;
        while let Some(&host) = self.cache.as_ref().and_then(|cache| cache.trims.get(at)) {
            if self.is_below(host) {
                self.cache.as_mut().and_then(|cache| cache.trims.remove(at));
                self.waited(host);
                self.pass(host);
            } else {
                at += 1;
            }
        }
    }
}
