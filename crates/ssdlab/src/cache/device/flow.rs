//! Commands in pieces, pieces in line, and reads.

use super::keys::Mode;
use super::{CACHE, CacheDevice, Cut, Hold, Kind, NONE, Piece, PieceId, Run, Stage};
use crate::contract::Op;
use crate::fleet::{Composite, HostId};
use crate::stats::Part;

impl CacheDevice {
    /// Does what a command of the host asks for.
    pub(super) fn begin_command(&mut self, host: HostId) {
        let command = self.fleet.hosts[host].command;
        match command.op {
            Op::Flush | Op::Purge => return self.everywhere(host),
            Op::Trim => return self.begin_trim(host),
            Op::Read | Op::Write => {}
        }
        let pending = self.fleet.members[CACHE].pending;
        let congested = self.congestion.is(self.fleet.now, pending);
        let sequential = self.streams.passes(command.offset, command.len);
        self.fleet.hosts[host].own.past = congested || sequential;
        self.counts.past(congested, sequential, command.len);
        let write = command.op == Op::Write;
        let (kind, hold) =
            if write { (Kind::Write, Hold::Alone) } else { (Kind::Read, Hold::Read) };
        let (mut at, end) = (command.offset, command.offset + command.len);
        while at < end {
            let key = self.key_of(at);
            let to = end.min((key + 1) * self.keys.block.0);
            self.add_piece(host, kind, hold, at, to);
            at = to;
        }
        self.begin_pieces(host);
    }

    /// Adds a piece to a host and to the line at its block.
    #[inline]
    pub(super) fn add_piece(&mut self, host: HostId, kind: Kind, hold: Hold, begin: u64, end: u64) {
        let key = self.key_of(begin);
        let mask = self.touched(begin, end);
        let block = self.busy.open(key);
        let last = self.busy.line(block).last;
        let index = self.pieces.insert(Piece {
            kind,
            hold,
            host,
            key,
            begin,
            end,
            mask,
            frame: NONE,
            since: self.fleet.now,
            block,
            prev: last,
            ..Piece::default()
        });
        let cut = &mut self.fleet.hosts[host].own;
        if cut.first == PieceId::NONE {
            cut.first = index;
        } else {
            self.pieces[cut.last].sibling = index;
        }
        cut.last = index;
        (cut.pieces, cut.unready) = (cut.pieces + 1, cut.unready + 1);
        if last == PieceId::NONE {
            self.busy.line(block).first = index;
        } else {
            self.pieces[last].next = index;
        }
        self.busy.line(block).last = index;
    }

    /// Begins those pieces of a host whose turn it is; what of them goes to the pool goes together.
    #[inline]
    pub(super) fn begin_pieces(&mut self, host: HostId) {
        let Cut { first: mut index, .. } = self.fleet.hosts[host].own;
        let mut run = Run::new(self.fleet.hosts[host].command.op);
        while index != PieceId::NONE {
            let sibling = self.pieces[index].sibling;
            if self.may_start(index) {
                self.start(index, &mut run);
            }
            index = sibling;
        }
        self.flush_run(&mut run);
    }

    /// Whether nothing before a piece keeps it.
    #[inline]
    fn may_start(&self, index: PieceId) -> bool {
        let Piece { mask, hold, mut prev, .. } = self.pieces[index];
        while prev != PieceId::NONE {
            let other = &self.pieces[prev];
            if other.mask & mask != 0
                && !hold.is_compatible(other.hold)
                && !self.may_write_beside(&self.pieces[index], other)
            {
                return false;
            }
            prev = other.prev;
        }
        true
    }

    /// Whether a write may go beside another one at the same sub-blocks: they share no byte, and each of those
    /// sub-blocks is in the cache for both of them to the end, or for neither.
    #[cold]
    fn may_write_beside(&self, piece: &Piece, other: &Piece) -> bool {
        let writes = piece.kind == Kind::Write && other.kind == Kind::Write;
        let apart = piece.end <= other.begin || other.end <= piece.begin;
        let under_way = matches!(other.stage, Stage::Data | Stage::Entry);
        if !writes || !apart || !under_way || self.mode == Mode::WriteAroundFill {
            return false;
        }
        let (_, (valid, dirty)) = self.store.look(piece.key);
        let shared = piece.mask & other.mask;
        let inside = shared & valid;
        let outside = shared & !valid;
        inside & !other.cached == 0
            && outside & (other.cached | other.dropped) == 0
            && (inside == 0 || self.stays_in(piece, valid, dirty))
    }

    /// Whether nothing makes a write leave valid sub-blocks out, or wait before it goes to them.
    fn stays_in(&self, piece: &Piece, valid: u64, dirty: u64) -> bool {
        let Piece { begin, end, mask, host, block, .. } = *piece;
        let past = self.mode.goes_around() || self.fleet.hosts[host].own.past;
        let fresh = (self.covered(begin, end) | valid) & mask & !dirty & !self.promised_at(block);
        let waits = self.mode.defers() && fresh != 0;
        !past && !waits && !self.store.dead && !self.races_with_trim(begin, end)
    }

    /// Whether other writes are under way at the sub-blocks of one.
    pub(super) fn is_beside_others(&self, index: PieceId) -> bool {
        let Piece { mask, block, .. } = self.pieces[index];
        let mut at = self.busy.first(block);
        while at != PieceId::NONE {
            let other = &self.pieces[at];
            if at != index && other.granted && other.mask & mask != 0 {
                return true;
            }
            at = other.next;
        }
        false
    }

    /// It is a piece's turn.
    fn start(&mut self, index: PieceId, run: &mut Run) {
        let now = self.fleet.now;
        let piece = &mut self.pieces[index];
        piece.granted = true;
        piece.wait(now);
        match piece.kind {
            Kind::Read => self.begin_read(index, run),
            Kind::Write => self.begin_write(index, run),
            Kind::Trim | Kind::Destage => self.begin_copy(index),
            Kind::Fill => unreachable!("fills begin as reads and writes"),
        }
    }

    /// Starts those at a block whose turn has come.
    pub(super) fn resume_line(&mut self, block: u32) {
        let mut at = self.busy.first(block);
        while at != PieceId::NONE {
            let next = self.pieces[at].next;
            if !self.pieces[at].granted && self.may_start(at) {
                self.start_alone(at);
            }
            at = next;
        }
    }

    /// The same for one piece, which joins no other.
    fn start_alone(&mut self, index: PieceId) {
        let op = match self.pieces[index].kind {
            Kind::Write => Op::Write,
            _ => Op::Read,
        };
        let mut run = Run::new(op);
        self.start(index, &mut run);
        self.flush_run(&mut run);
    }

    /// A piece of a read: valid sub-blocks from the cache, the others from the pool.
    fn begin_read(&mut self, index: PieceId, run: &mut Run) {
        let Piece { key, begin, end, mask, host, .. } = self.pieces[index];
        let (frame, (valid, dirty)) = self.store.look(key);
        let past = self.fleet.hosts[host].own.past;
        let uses = self.uses.count(key, false);
        if let Some(frame) = frame
            && valid & mask != 0
        {
            self.hit(frame);
        }
        self.counts.looked_up(false, mask, valid);
        let missing = mask & !valid != 0;
        let filling = !past && !matches!(self.mode, Mode::WriteOnly) && missing;
        let fills = filling && self.admits(uses, self.keys.read_threshold);
        let piece = &mut self.pieces[index];
        piece.frame = frame.unwrap_or(NONE);
        piece.fills = fills;
        piece.stage = Stage::Data;
        let mut cached = mask & if past { dirty } else { valid };
        let mut rest = mask & !cached;
        let whole = (begin, end, mask);
        while let Some((from, to)) = self.next_part(key, whole, &mut cached) {
            self.send_to_frame(index, Op::Read, from, to);
        }
        while let Some((from, to)) = self.next_part(key, whole, &mut rest) {
            self.join(run, index, from, to);
        }
    }

    /// Whether so many uses are enough for a threshold.
    #[inline]
    pub(super) fn admits(&self, uses: u32, threshold: u32) -> bool {
        let frames = &self.store.frames;
        let eager =
            || f64::from(frames.len()) < self.keys.eager_until * f64::from(frames.capacity());
        !self.store.dead && threshold > 0 && (uses >= threshold || eager())
    }

    /// What a piece did is done.
    #[inline]
    pub(super) fn stage_done(&mut self, index: PieceId) {
        let Piece { kind, stage, .. } = self.pieces[index];
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
    #[inline]
    pub(super) fn host_part_done(&mut self, index: PieceId) {
        let piece = &mut self.pieces[index];
        let host = std::mem::replace(&mut piece.host, HostId::NONE);
        let cut = &mut self.fleet.hosts[host].own;
        cut.pieces -= 1;
        if cut.pieces == 0 {
            self.fleet.complete(host, &self.pieces[index].parts, [], Part::Cache);
        }
    }

    /// A piece leaves the line at its block.
    pub(super) fn finish(&mut self, index: PieceId) {
        let Piece { block, prev, next, key, .. } = self.pieces[index];
        self.pieces.remove(index);
        if (prev, next) == (PieceId::NONE, PieceId::NONE) {
            self.busy.close(block);
            self.store.free_if_empty(key);
        } else {
            if prev == PieceId::NONE {
                self.busy.line(block).first = next;
            } else {
                self.pieces[prev].next = next;
            }
            if next == PieceId::NONE {
                self.busy.line(block).last = prev;
            } else {
                self.pieces[next].prev = prev;
            }
            self.resume_line(block);
        }
        if !self.waiting.is_empty() {
            self.retry_waiting();
        }
        self.clean();
        self.purge_if_quiet();
    }

    /// Sub-blocks of a block that others want or have in another way than to read.
    pub(super) fn held_by_others(&self, block: u32, index: PieceId) -> u64 {
        let mut kept = 0;
        let mut at = self.busy.first(block);
        while at != PieceId::NONE {
            let other = &self.pieces[at];
            if at != index && other.hold != Hold::Read {
                kept |= other.mask;
            }
            at = other.next;
        }
        kept
    }

    /// Whether a TRIM under way that did not stand in line reaches into the range.
    pub(super) fn races_with_trim(&self, begin: u64, end: u64) -> bool {
        self.trims.overlap(0, begin, end - begin)
    }
}
