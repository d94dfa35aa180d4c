//! Commands in pieces, pieces in line, and reads.

use super::busy::NONE;
use super::keys::Mode;
use super::{CACHE, CacheDevice, Hold, Host, Kind, Piece, Run, Stage};
use crate::device::{Completion, Op};
use crate::stats::{Part, Parts};

impl CacheDevice {
    /// Does what a command of the host asks for.
    pub(super) fn begin(&mut self, host: u32) {
        let command = self.hosts.all[host as usize].command;
        match command.op {
            Op::Flush | Op::Purge => return self.everywhere(host),
            Op::Trim => return self.begin_trim(host),
            Op::Read | Op::Write => {}
        }
        let pending = self.slots[CACHE as usize].pending;
        let congested = self.congestion.is(self.now, pending);
        let sequential = self.streams.passes(command.offset, command.len);
        self.hosts.all[host as usize].past = congested || sequential;
        self.counts.past(congested, sequential, command.len);
        let write = command.op == Op::Write;
        let (kind, hold) =
            if write { (Kind::Write, Hold::Alone) } else { (Kind::Read, Hold::Read) };
        let (mut at, end) = (command.offset, command.offset + command.len);
        while at < end {
            let key = at / self.keys.block.0;
            let to = end.min((key + 1) * self.keys.block.0);
            self.add_piece(host, kind, hold, at, to);
            at = to;
        }
        self.begin_pieces(host);
    }

    /// Adds a piece to a host and to the line at its block. Answers whether it is its turn at once.
    pub(super) fn add_piece(&mut self, host: u32, kind: Kind, hold: Hold, begin: u64, end: u64) {
        let key = begin / self.keys.block.0;
        let mask = self.touched(begin, end);
        let block = self.busy.open(key);
        let last = self.busy.line(block).last;
        let active = &mut self.hosts.all[host as usize];
        let index = self.pieces.insert(Piece {
            kind,
            hold,
            active: true,
            host,
            sibling: NONE,
            key,
            begin,
            end,
            mask,
            frame: NONE,
            since: self.now,
            block,
            prev: last,
            next: NONE,
            ..Piece::default()
        });
        // The siblings form a chain; `whole` holds its end while it grows.
        if active.first == NONE {
            active.first = index;
        } else {
            let tail = active.whole;
            self.pieces.all[tail as usize].sibling = index;
        }
        let active = &mut self.hosts.all[host as usize];
        active.whole = index;
        (active.pieces, active.unready) = (active.pieces + 1, active.unready + 1);
        if last == NONE {
            self.busy.line(block).first = index;
        } else {
            self.pieces.all[last as usize].next = index;
        }
        self.busy.line(block).last = index;
    }

    /// Begins those pieces of a host whose turn it is; what of them goes to the pool goes together.
    pub(super) fn begin_pieces(&mut self, host: u32) {
        let Host { command, mut first, .. } = self.hosts.all[host as usize];
        self.hosts.all[host as usize].whole = 0;
        let mut run = Run::new(command.op);
        while first != NONE {
            let sibling = self.pieces.all[first as usize].sibling;
            if self.may_go(first) {
                self.go(first, &mut run);
            }
            first = sibling;
        }
        self.flush_run(&mut run);
    }

    /// Whether nothing before a piece keeps it.
    fn may_go(&self, index: u32) -> bool {
        let Piece { mask, hold, mut prev, .. } = self.pieces.all[index as usize];
        while prev != NONE {
            let other = &self.pieces.all[prev as usize];
            if other.mask & mask != 0 && !hold.bears(other.hold) {
                return false;
            }
            prev = other.prev;
        }
        true
    }

    /// It is a piece's turn.
    fn go(&mut self, index: u32, run: &mut Run) {
        let now = self.now;
        let piece = &mut self.pieces.all[index as usize];
        piece.granted = true;
        piece.spend(now, &Parts::default());
        match piece.kind {
            Kind::Read => self.begin_read(index, run),
            Kind::Write => self.begin_write(index, run),
            Kind::Trim | Kind::Destage => self.begin_copy(index),
            Kind::Fill => unreachable!("fills begin as reads and writes"),
        }
    }

    /// Lets those go at a block whose turn has come.
    pub(super) fn let_go(&mut self, block: u32) {
        let mut at = self.busy.first(block);
        while at != NONE {
            let next = self.pieces.all[at as usize].next;
            if !self.pieces.all[at as usize].granted && self.may_go(at) {
                self.go_alone(at);
            }
            at = next;
        }
    }

    /// The same for one piece, which joins no other.
    pub(super) fn go_alone(&mut self, index: u32) {
        let op = match self.pieces.all[index as usize].kind {
            Kind::Write => Op::Write,
            _ => Op::Read,
        };
        let mut run = Run::new(op);
        self.go(index, &mut run);
        self.flush_run(&mut run);
    }

    /// A piece of a read: valid sub-blocks from the cache, the others from the pool.
    fn begin_read(&mut self, index: u32, run: &mut Run) {
        let Piece { key, begin, end, mask, host, .. } = self.pieces.all[index as usize];
        let (valid, dirty) = self.store.masks(key);
        let past = self.hosts.all[host as usize].past;
        let uses = self.uses.count(key, false);
        let frame = self.store.find(key);
        if let Some(frame) = frame
            && valid & mask != 0
        {
            self.store.frames.hit(frame);
        }
        self.counts.looked_up(false, mask, valid);
        let missing = mask & !valid != 0;
        let filling = !past && !matches!(self.mode, Mode::WriteOnly) && missing;
        let fills = filling && self.let_in(uses, self.keys.read_threshold);
        let piece = &mut self.pieces.all[index as usize];
        piece.frame = frame.unwrap_or(NONE);
        piece.fills = fills;
        piece.stage = Stage::Data;
        let mut cached = mask & if past { dirty } else { valid };
        let mut rest = mask & !cached;
        while let Some((from, to)) = self.next_run(key, &mut cached) {
            self.send_to_frame(index, Op::Read, from.max(begin), to.min(end));
        }
        while let Some((from, to)) = self.next_run(key, &mut rest) {
            self.join(run, index, from.max(begin), to.min(end));
        }
    }

    /// Whether so many uses are enough for a threshold.
    pub(super) fn let_in(&self, uses: u32, threshold: u32) -> bool {
        let frames = &self.store.frames;
        let eager = f64::from(frames.len()) < self.keys.eager_until * f64::from(frames.capacity());
        !self.store.dead && threshold > 0 && (uses >= threshold || eager)
    }

    /// What a piece did is done.
    pub(super) fn stage_done(&mut self, index: u32) {
        let Piece { kind, stage, .. } = self.pieces.all[index as usize];
        match (kind, stage) {
            (Kind::Read, Stage::Data) => {
                self.host_part_done(index);
                self.fill_or_finish(index);
            }
            (Kind::Write, Stage::Data) => self.written(index),
            (Kind::Write, Stage::Entry) => self.write_done(index),
            (Kind::Fill, Stage::CopyRead) => self.fill_write(index),
            (Kind::Fill, _) => self.filled(index, stage),
            (Kind::Trim | Kind::Destage, Stage::CopyRead) => self.copy_read(index),
            (Kind::Trim, _) => self.trim_destaged(index),
            (Kind::Destage, _) => self.destaged(index, stage),
            _ => unreachable!("{kind:?} {stage:?}"),
        }
    }

    /// The host has what it wanted of a piece.
    pub(super) fn host_part_done(&mut self, index: u32) {
        let Piece { host, parts, .. } = self.pieces.all[index as usize];
        self.pieces.all[index as usize].host = NONE;
        let active = &mut self.hosts.all[host as usize];
        active.pieces -= 1;
        if active.pieces == 0 {
            active.parts = parts;
            self.complete(host);
        }
    }

    /// A command of the host is done.
    pub(super) fn complete(&mut self, host: u32) {
        let Host { command, submitted, mut parts, digest, .. } = self.hosts.all[host as usize];
        self.hosts.free.push(host);
        parts[Part::Cache] += self.now - submitted - parts.total();
        (self.in_flight, self.last_host) = (self.in_flight - 1, self.now);
        self.ready.push(Completion { tag: command.tag, time: self.now, parts, digest });
        self.plan_timers();
    }

    /// A piece leaves the line at its block.
    pub(super) fn finish(&mut self, index: u32) {
        let Piece { block, prev, next, key, .. } = self.pieces.all[index as usize];
        match prev {
            NONE => self.busy.line(block).first = next,
            prev => self.pieces.all[prev as usize].next = next,
        }
        match next {
            NONE => self.busy.line(block).last = prev,
            next => self.pieces.all[next as usize].prev = prev,
        }
        self.pieces.all[index as usize].active = false;
        self.pieces.free.push(index);
        if self.busy.first(block) == NONE {
            self.busy.close(block);
            self.store.free_if_empty(key);
        } else {
            self.let_go(block);
        }
        self.let_wait_end();
        self.clean();
        self.purge_if_quiet();
    }

    /// Sub-blocks of a block that others want or have in another way than to read.
    pub(super) fn kept_by_others(&self, block: u32, index: u32) -> u64 {
        let mut kept = 0;
        let mut at = self.busy.first(block);
        while at != NONE {
            let other = &self.pieces.all[at as usize];
            if at != index && other.hold != Hold::Read {
                kept |= other.mask;
            }
            at = other.next;
        }
        kept
    }

    /// Whether a TRIM under way that did not stand in line reaches into the range.
    pub(super) fn races_with_trim(&self, begin: u64, end: u64) -> bool {
        self.trims.iter().any(|&host| {
            let command = &self.hosts.all[host as usize].command;
            command.offset < end && begin < command.offset + command.len
        })
    }
}
