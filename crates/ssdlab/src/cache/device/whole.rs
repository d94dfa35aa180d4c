//! Commands that are for all of a device: flush, purge, the pool's part of a TRIM.

use super::busy::NONE;
use super::{CACHE, CacheDevice, Host, Io, POOL};
use crate::device::Op;
use crate::stats::Parts;

impl CacheDevice {
    /// A flush or a purge: to both devices.
    pub(super) fn everywhere(&mut self, host: u32) {
        let command = self.hosts.all[host as usize].command;
        if command.op == Op::Purge {
            self.store.clear();
        }
        self.send_whole(host, POOL, command.op, 0, 0);
        if !self.store.dead {
            self.send_whole(host, CACHE, command.op, 0, 0);
        }
    }

    /// The pool gets all of a TRIM.
    pub(super) fn trim_pool(&mut self, host: u32) {
        let command = self.hosts.all[host as usize].command;
        self.send_whole(host, POOL, Op::Trim, command.offset, command.len);
    }

    fn send_whole(&mut self, host: u32, device: u32, op: Op, offset: u64, len: u64) {
        self.hosts.all[host as usize].whole += 1;
        let io = Io { device, op, offset, len, owner: host, whole: true, ..Io::default() };
        self.send(io, 0, 0);
    }

    /// A device has done such a command.
    pub(super) fn whole_answered(&mut self, host: u32, parts: &Parts) {
        let active = &mut self.hosts.all[host as usize];
        active.whole -= 1;
        if active.whole > 0 {
            return;
        }
        active.parts.add(parts);
        let Host { command, first, .. } = *active;
        if command.op == Op::Trim {
            self.trims.retain(|&other| other != host);
        }
        self.complete(host);
        let mut piece = first;
        while piece != NONE {
            let sibling = self.pieces.all[piece as usize].sibling;
            self.finish(piece);
            piece = sibling;
        }
        if command.op == Op::Purge {
            self.purging = false;
            while let Some(next) = self.held.pop_front() {
                if self.hosts.all[next as usize].command.op == Op::Purge {
                    self.held.push_front(next);
                    self.purging = true;
                    break;
                }
                self.begin(next);
            }
        }
        self.purge_if_quiet();
        self.plan_timers();
    }

    /// Begins a purge when nothing else is under way; what came after it waits.
    pub(super) fn purge_if_quiet(&mut self) {
        let Some(&first) = self.held.front() else { return };
        self.purging = true;
        let active = self.hosts.all.len() - self.hosts.free.len();
        let quiet = self.pieces.free.len() == self.pieces.all.len();
        if quiet && active == self.held.len() {
            self.held.pop_front();
            self.everywhere(first);
        } else if !self.waiting.is_empty() {
            self.clean();
        }
    }
}
