//! Operations that wait for reads: programs for the data that they write, reads for the map.

use super::{Cause, Flash, FlashOp, NONE, OpKind, Place};

impl Flash {
    /// Queues a read of so many units at a place that is not before the operation `fetch` is done.
    pub fn read_after(
        &mut self,
        now: u64,
        die: u32,
        units: u32,
        at: Place,
        owner: u32,
        fetch: u32,
    ) -> u32 {
        let op = self.read_op(now, die, units, at, Cause::HostRead);
        let index = self.allocate_read(FlashOp { owner, ..op }, at);
        self.feed(fetch, index);
        index
    }

    /// What tells the read `op` from others that will have its number.
    pub fn stamp(&self, op: u32) -> u64 {
        self.ops[op as usize].order
    }

    /// Whether the read with that number and stamp is not done yet.
    pub fn under_way(&self, op: u32, stamp: u64) -> bool {
        self.ops[op as usize].order == stamp
    }

    /// Makes `op`, a program or a read, wait until the read `read` is done.
    pub fn feed(&mut self, read: u32, op: u32) {
        let feeds = &mut self.ops[read as usize].feeds;
        if feeds[0] == op || feeds[1] == op {
            return;
        }
        match feeds.iter().position(|&f| f == NONE) {
            Some(place) => feeds[place] = op,
            None => self.feed_more(read, op),
        }
        self.ops[op as usize].awaits += 1;
    }

    fn feed_more(&mut self, read: u32, op: u32) {
        let entry = (op, self.ops[read as usize].feeds_more);
        let at = match self.free_feed {
            NONE => {
                self.feeds.push(entry);
                (self.feeds.len() - 1) as u32
            }
            free => {
                self.free_feed = self.feeds[free as usize].1;
                self.feeds[free as usize] = entry;
                free
            }
        };
        self.ops[read as usize].feeds_more = at;
    }

    /// The read `read` is done: lets go what awaits it.
    pub(super) fn feed_all(&mut self, read: &FlashOp, now: u64) {
        for op in read.feeds.into_iter().filter(|&op| op != NONE) {
            self.fed(op, read, now);
        }
        let mut at = read.feeds_more;
        while at != NONE {
            let (op, next) = self.feeds[at as usize];
            self.feeds[at as usize].1 = self.free_feed;
            self.free_feed = at;
            self.fed(op, read, now);
            at = next;
        }
    }

    /// What the held erase `index` has waited for is done.
    pub fn release(&mut self, index: u32, now: u64) {
        let die = u32::from(self.ops[index as usize].die);
        let own = self.own_work(die, now);
        self.own_at_ready[index as usize] = own;
        let op = &mut self.ops[index as usize];
        (op.awaits, op.ready) = (0, now);
        self.arrival(die, now, false);
    }

    /// One of the reads that `index` awaits is done.
    fn fed(&mut self, index: u32, read: &FlashOp, now: u64) {
        let op = &mut self.ops[index as usize];
        op.awaits -= 1;
        if op.awaits > 0 {
            return;
        }
        if op.discarded {
            self.free.push(index);
        }
        if !op.in_stream && op.kind != OpKind::Read {
            return;
        }
        // The read that came last is what it has waited for.
        let waited = now - op.queued;
        op.map_fed = if read.cause == Cause::Map { waited } else { read.map_fed.min(waited) };
        op.fed_by = read.cause as u8;
        let (d, kind) = (u32::from(op.die), op.kind);
        op.ready = now;
        if kind == OpKind::Read {
            return self.admit_read(index, now);
        }
        self.own_at_ready[index as usize] = self.own_work(d, now);
        self.arrival(d, now, false);
    }
}
