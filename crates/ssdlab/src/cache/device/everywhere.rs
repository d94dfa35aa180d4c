//! Commands that are for all of a device: flush, purge, the pool's part of a TRIM.

use super::{CacheDevice, POOL, PieceId, Purpose};
use crate::contract::{Command, Op};
use crate::fleet::{Composite, HostId, Io};
use crate::stats::{Part, Parts};

impl CacheDevice {
    /// A flush or a purge: to both devices.
    pub(super) fn everywhere(&mut self, host: HostId) {
        let active = &mut self.fleet.hosts[host];
        if active.command.op == Op::Flush {
            active.own.flush = self.uncached.gone.begin();
            self.unpooled.gone.begin();
        }
        self.fleet.send_to_all(host, Purpose::Command(host));
    }

    /// Nothing waits for a flush any more.
    pub(super) fn all_safe(&mut self) {
        self.uncached.clear();
        self.unpooled.clear();
    }

    /// The pool gets all of a TRIM.
    pub(super) fn trim_pool(&mut self, host: HostId) {
        let command = self.fleet.hosts[host].command;
        let (op, Command { offset, len, .. }) = (Op::Trim, command);
        self.fleet.hosts[host].remaining += 1;
        let purpose = Purpose::Command(host);
        self.fleet.send(Io { member: POOL, op, offset, len, purpose }, 0, 0);
    }

    /// A device has done such a command.
    pub(super) fn command_answered(&mut self, host: HostId, parts: &Parts) {
        if !self.fleet.release(host) {
            return;
        }
        let active = &self.fleet.hosts[host];
        let (op, mut piece, last) = (active.command.op, active.own.first, active.own.ready_last);
        match op {
            Op::Flush => {
                let flush = active.own.flush;
                self.uncached.end(flush);
                self.unpooled.end(flush);
            }
            Op::Purge => {
                self.store.clear();
                self.all_safe();
            }
            _ => {}
        }
        let mut parts = parts.clone();
        if last != PieceId::NONE {
            parts.add_all(&self.pieces[last].parts);
        }
        if op == Op::Trim {
            self.trims.remove(host.number());
        }
        self.fleet.complete(host, &parts, [], Part::Cache);
        while piece != PieceId::NONE {
            let sibling = self.pieces[piece].sibling;
            self.finish(piece);
            piece = sibling;
        }
        if op == Op::Purge {
            self.purged();
        }
        self.purge_if_quiet();
    }
}
