//! Read-ahead: what a sequential stream will ask for next is fetched into RAM before it does.
//!
//! A read that begins at the byte where one of the last [`STREAMS`] other reads ended continues its
//! stream: the second read in a row already does. The units behind it, up to the window, are then
//! read from the flash like any host read; a page once sensed is taken to the end of what
//! belongs to the stream. The stream's next reads take them out of RAM, or wait for those on their
//! way. Units that are written or trimmed meanwhile drop out and are read again. The place of a
//! stream goes to a new read when no other has been quiet for longer, and its units with it.
//!
//! Cost: a look at the followed streams for every command; constant for each unit fetched.

use super::engine::Engine;
use super::page_reads::{is_in_ram, pages};
use super::parts::flash_parts;
use super::{PageRead, PageReads, Ssd};
use crate::device::{Command, Op, SECTOR};
use crate::ftl::Sink;
use crate::nand::{Finished, NONE, OpKind};
use crate::persist::persistent;
use crate::stats::{Part, Parts};
use std::collections::VecDeque;

/// Streams followed at once.
const STREAMS: usize = 8;
/// Marks the owner of a flash operation as a fetch, not a command.
pub(super) const FETCH: u32 = 1 << 31;

/// A unit fetched ahead.
#[derive(Clone, Debug, Default)]
struct Held {
    /// The fetches that bring it, two where it lies in two pages; none where it is not held.
    fetches: [Ticket; 2],
    /// Its sectors when it was fetched, where versions are kept.
    content: Box<[u64]>,
}

/// A fetch that something waits for.
#[derive(Clone, Copy, Debug, Default)]
struct Ticket {
    /// Index of the fetch, [`NONE`]: there is none.
    fetch: u32,
    /// Its serial number, by which one that is over is told from its successor.
    serial: u32,
}

const NO_FETCH: Ticket = Ticket { fetch: NONE, serial: 0 };

impl Held {
    /// Whether the unit is in RAM for the stream or on its way there.
    fn is_held(&self) -> bool {
        self.fetches[0].fetch != NONE
    }
}

#[derive(Debug, Default)]
struct Stream {
    /// The byte at which the stream goes on.
    next: u64,
    used: u64,
    /// Unit of the first of `held`, which are consecutive.
    first: u32,
    held: VecDeque<Held>,
}

impl Stream {
    fn end(&self) -> u32 {
        self.first + self.held.len() as u32
    }

    fn get(&mut self, lpn: u32) -> Option<&mut Held> {
        let at = lpn.checked_sub(self.first)?;
        self.held.get_mut(at as usize).filter(|h| h.is_held())
    }
}

/// A read of the flash on behalf of a stream.
#[derive(Debug, Default)]
struct Fetch {
    serial: u32,
    /// Commands that wait for it.
    waiting: Vec<u32>,
}

/// The streams that are followed and what is in RAM for them.
#[derive(Debug)]
pub(super) struct ReadAhead {
    /// Units fetched beyond a read.
    window: u32,
    streams: Vec<Stream>,
    fetches: Vec<Fetch>,
    free: Vec<u32>,
    recent: Vec<PageReads>,
    clock: u64,
    /// Units fetched before they were asked for.
    pub units_fetched: u64,
    /// Units that reads found in RAM or on their way there.
    pub units_found: u64,
}

/// What a stream holds of a unit.
enum Found {
    Nothing,
    InRam,
    /// On its way, by these fetches, or one and [`NONE`].
    Coming([u32; 2]),
}

persistent!(ReadAhead {
    state { streams, fetches, free, clock, units_fetched, units_found }
    parts { recent }
    built { window }
});
persistent!(Stream { state { next, used, first, held } });
persistent!(Held { state { fetches, content } });
persistent!(Ticket { state { fetch, serial } });
persistent!(Fetch { state { serial, waiting } });

impl ReadAhead {
    /// For a window of `window` units on a drive with `dies` dies.
    pub fn new(window: u32, dies: u32) -> Self {
        ReadAhead {
            window,
            streams: Vec::new(),
            fetches: Vec::new(),
            free: Vec::new(),
            recent: vec![PageReads::default(); dies as usize],
            clock: 0,
            units_fetched: 0,
            units_found: 0,
        }
    }

    /// The stream that the read continues; if none, it may be the first of a new one.
    fn follow(&mut self, command: &Command) -> Option<usize> {
        self.clock += 1;
        let end = command.offset + command.len;
        if let Some(at) = self.streams.iter().position(|s| s.next == command.offset) {
            let stream = &mut self.streams[at];
            (stream.next, stream.used) = (end, self.clock);
            return Some(at);
        }
        if self.streams.len() < STREAMS {
            self.streams.push(Stream::default());
        }
        let oldest = self.streams.iter_mut().min_by_key(|s| s.used)?;
        (oldest.next, oldest.used) = (end, self.clock);
        oldest.held.clear();
        None
    }

    /// Units `first..end` are no longer what was fetched.
    pub fn forget(&mut self, first: u32, end: u32) {
        for stream in &mut self.streams {
            for lpn in first.max(stream.first)..end.min(stream.end()) {
                if let Some(held) = stream.get(lpn) {
                    held.fetches = [NO_FETCH; 2];
                }
            }
        }
    }

    /// Nothing that was fetched is there any more.
    pub fn forget_all(&mut self) {
        self.streams.iter_mut().for_each(|s| s.held.clear());
    }

    /// RAM is empty, and nothing is on its way into it.
    pub fn power_cut(&mut self) {
        self.streams.clear();
        for fetch in &mut self.fetches {
            fetch.serial = fetch.serial.wrapping_add(1);
            fetch.waiting.clear();
        }
        self.free = (0..self.fetches.len() as u32).collect();
    }

    fn begin_fetch(&mut self) -> u32 {
        self.free.pop().unwrap_or_else(|| {
            self.fetches.push(Fetch::default());
            (self.fetches.len() - 1) as u32
        })
    }

    /// Fetches a range, its first unit and their number, of the page `group`, with what else of it is fetched now; `place` is its die,
    /// and whether it is in SLC mode.
    fn fetch(
        &mut self,
        place: (u32, bool),
        group: u32,
        range: (u32, u32),
        engine: &mut Engine,
    ) -> Ticket {
        let (die, slc) = place;
        let queued = self.recent[die as usize].find(self.clock, group, NONE);
        let fetch = if let Some(page) = queued {
            engine.flash.widen_read(page.op, range.1);
            page.owner & !FETCH
        } else {
            let fetch = self.begin_fetch();
            let owner = FETCH | fetch;
            let op = engine.read(die, range, slc, owner, NONE);
            self.recent[die as usize].pages.push(PageRead { group, fetch: NONE, op, owner });
            fetch
        };
        Ticket { fetch, serial: self.fetches[fetch as usize].serial }
    }

    fn find(&mut self, stream: usize, lpn: u32) -> Found {
        let Some(held) = self.streams[stream].get(lpn) else { return Found::Nothing };
        let tickets = held.fetches;
        let coming = |t: Ticket| t.fetch != NONE && self.is_under_way(t);
        match tickets.map(|t| if coming(t) { t.fetch } else { NONE }) {
            [NONE, NONE] => Found::InRam,
            coming => Found::Coming(coming),
        }
    }

    fn is_under_way(&self, ticket: Ticket) -> bool {
        self.fetches[ticket.fetch as usize].serial == ticket.serial
    }
}

impl Ssd {
    /// A read that may continue a stream; answers the number of fetches that it waits for and the
    /// units that it must get for itself. `None`: it continues none.
    pub(super) fn read_stream(&mut self, index: u32) -> Option<(u32, Vec<u32>)> {
        let command = self.commands[index as usize].command;
        let stream = self.read_ahead.as_mut()?.follow(&command)?;
        let first = (command.offset / self.unit_bytes) as u32;
        let last = ((command.offset + command.len - 1) / self.unit_bytes) as u32;
        let known = self.fetch_ahead(stream, first, last);
        let (mut waits, mut missing) = (0, Vec::new());
        for lpn in first..=last {
            let ahead = self.read_ahead.as_mut()?;
            let found = ahead.find(stream, lpn);
            match found {
                Found::Nothing => {
                    missing.push(lpn);
                    continue;
                }
                Found::InRam => {}
                Found::Coming(fetches) => {
                    for fetch in fetches.into_iter().filter(|&fetch| fetch != NONE) {
                        let waiting = &mut ahead.fetches[fetch as usize].waiting;
                        if !waiting.contains(&index) {
                            waiting.push(index);
                            waits += 1;
                        }
                    }
                }
            }
            if lpn < known {
                ahead.units_found += 1;
            } else {
                self.host.units_read_flash += 1;
            }
        }
        if self.keep_versions {
            self.commands[index as usize].digest = self.digest(&command, Some(stream));
        }
        // What has been read whole is not kept.
        let ahead = self.read_ahead.as_mut()?;
        let stream = &mut ahead.streams[stream];
        let done = ((stream.next / self.unit_bytes) as u32).min(stream.end());
        stream.held.drain(..done.saturating_sub(stream.first) as usize);
        stream.first = stream.first.max(done);
        Some((waits, missing))
    }

    /// Fetches what the stream lacks of the units from `first` to the end of its window beyond
    /// `last`; answers the first unit that had not been fetched before.
    fn fetch_ahead(&mut self, stream: usize, first: u32, last: u32) -> u32 {
        let layout = self.ftl.layout;
        let Some(ahead) = &mut self.read_ahead else { return first };
        ahead.clock += 1;
        let s = &mut ahead.streams[stream];
        if s.held.is_empty() {
            s.first = first;
        }
        let known = s.end();
        let target = (u64::from(last) + 1 + u64::from(ahead.window)) as u32;
        let per_unit = (self.unit_bytes / SECTOR) as u32;
        let mut page = NONE;
        for lpn in known..self.ftl.units() {
            let ppn = self.ftl.lookup(lpn);
            let length = self.ftl.length(lpn);
            let dirty = self.buffer.as_ref().is_some_and(|b| b.dirty.find(lpn).is_some());
            let flash = ppn != NONE && !dirty && !is_in_ram(&layout, &self.engine, ppn, length);
            let parts = pages(layout, self.engine.by_read, ppn, length);
            let last_page =
                || parts.last().map_or(NONE, |(ppn, _)| self.engine.by_read.quotient(ppn));
            let group = if flash { last_page() } else { NONE };
            if lpn >= target && (group == NONE || group != page) {
                break;
            }
            page = group;
            let mut held = Held { fetches: [NO_FETCH; 2], content: Box::default() };
            if flash {
                let parts = pages(layout, self.engine.by_read, ppn, length);
                let engine = &mut self.engine;
                let mut tickets = held.fetches.iter_mut();
                for (ppn, units) in parts {
                    if engine.in_ram(ppn) {
                        continue;
                    }
                    let ticket = tickets.next().expect("a unit lies in one or two pages");
                    let group = engine.by_read.quotient(ppn);
                    let place = (layout.die_of(ppn), self.ftl.in_slc(ppn));
                    *ticket = ahead.fetch(place, group, (ppn, units), engine);
                }
                ahead.units_fetched += u64::from(lpn > last);
                if self.keep_versions {
                    held.content = (0..per_unit).map(|i| self.ftl.content(lpn, i)).collect();
                }
            }
            ahead.streams[stream].held.push_back(held);
        }
        known
    }

    /// Content of a sector as the stream holds it, `None` if it does not.
    pub(super) fn content_ahead(&self, stream: usize, lpn: u32, sector: u32) -> Option<u64> {
        let stream = &self.read_ahead.as_ref()?.streams[stream];
        let held = stream.held.get(lpn.checked_sub(stream.first)? as usize)?;
        held.is_held().then(|| held.content[sector as usize])
    }

    /// A fetch is done: it is in RAM, and commands that waited for it may be complete.
    pub(super) fn fetched(&mut self, f: &Finished) {
        let Some(ahead) = &mut self.read_ahead else { return };
        let fetch = f.owner & !FETCH;
        let done = &mut ahead.fetches[fetch as usize];
        done.serial = done.serial.wrapping_add(1);
        let mut waiting = std::mem::take(&mut done.waiting);
        ahead.free.push(fetch);
        for index in waiting.drain(..) {
            let active = &mut self.commands[index as usize];
            active.remaining -= 1;
            if active.remaining == 0 {
                self.complete_fetched(index, f);
            }
        }
        // Hands the memory back.
        if let Some(ahead) = &mut self.read_ahead {
            ahead.fetches[fetch as usize].waiting = waiting;
        }
    }

    /// Completes a read whose last part was on its way when it came: of the fetch's time, the end
    /// is the read's.
    fn complete_fetched(&mut self, index: u32, f: &Finished) {
        debug_assert_eq!(f.kind, OpKind::Read);
        let active = &self.commands[index as usize];
        debug_assert_eq!(active.command.op, Op::Read);
        let mut parts = Parts::only(Part::Controller, active.handled - active.submitted);
        let mut wait = self.engine.now - active.handled;
        // In a read the transfer comes last, and the cells are sensed before it.
        let mut times = flash_parts(f, self.engine.now);
        times[..3].rotate_left(1);
        for (part, time) in times {
            let share = time.min(wait);
            parts.add(part, share);
            wait -= share;
        }
        debug_assert_eq!(wait, 0);
        self.complete(index, parts);
    }
}
