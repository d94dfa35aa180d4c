//! Registers of the planes: what they keep, and transfers beside the work of the cells.
//!
//! A plane has a page register, into which it senses, and with cache operations a second one before it, out of which
//! a page crosses the channel while the next one is sensed, or into which the next program is filled while one is
//! under way. A transfer is booked on the channel when its page has been sensed; since a channel carries transfers in
//! the order in which they were booked, the registers need no more than the instants at which they are free.

use super::cause::OwnWork;
use super::ops::{EMPTY, Queue};
use super::{Cause, Flash, NONE, OpKind, Phase};
use crate::units::NEVER;

/// What the registers of a die can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Registers {
    /// Planes of a die that sense a page of their own; 1 where one operation senses a page of all planes.
    pub planes: u32,
    /// They do so at the same time.
    pub independent: bool,
    /// What a register holds is not sensed again.
    pub keep: bool,
    /// There is a second register: cache read and cache program.
    pub cache: bool,
}

impl Registers {
    /// Whether they can do anything but take what is sensed or programmed.
    pub fn any(&self) -> bool {
        self.independent || self.keep || self.cache
    }
}

/// A plane, or all planes of a die together.
#[derive(Clone, Copy, Debug)]
pub(super) struct Plane {
    /// Reads that wait for it.
    pub reads: Queue,
    /// The read that has it, [`NONE`]: it is free.
    pub current: u32,
    /// On whose behalf.
    pub cause: Cause,
    /// It senses; otherwise its register is not free yet.
    pub sensing: bool,
    /// When that is over.
    pub until: u64,
    /// What its register holds.
    pub group: u32,
    /// When all transfers out of it are over.
    pub sent: u64,
    /// When it began to work.
    pub since: u64,
    /// What it has read on the drive's own behalf.
    pub own: OwnWork,
}

impl Plane {
    /// A plane that has never done anything.
    pub const IDLE: Plane = Plane {
        reads: EMPTY,
        current: NONE,
        cause: Cause::HostRead,
        sensing: false,
        until: NEVER,
        group: NONE,
        sent: 0,
        since: 0,
        own: OwnWork([0; 4]),
    };
}

/// What a die does beside what takes all of it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Beside {
    /// Reads whose transfer is booked, in that order.
    pub sending: Queue,
    /// The program whose data is in the second register or on its way there, and when it has arrived.
    pub loaded: u32,
    pub filled: u64,
    /// When what takes the whole die is over.
    pub event: u64,
    /// Up to when the work of the planes has been counted.
    pub since: u64,
    /// What planes have read on the drive's own behalf, at the same time counted once.
    pub own: OwnWork,
}

impl Beside {
    /// Nothing so far.
    pub const IDLE: Beside = Beside {
        sending: EMPTY,
        loaded: NONE,
        filled: 0,
        event: NEVER,
        since: 0,
        own: OwnWork([0; 4]),
    };
}

/// What registers have to know of an operation.
#[derive(Clone, Copy, Debug)]
pub(super) struct Aside {
    /// Of a read: what it senses, where, and when its transfer is over.
    pub group: u32,
    pub plane: u32,
    pub sent: u64,
    /// Of a read that others ride along with: the last of them, which is linked to the first.
    pub riders: u32,
    /// The next read in the list of those that others can ride along with.
    pub chain: u32,
    /// Of a program: its time on the channel while another one was under way.
    pub hidden: u32,
}

impl Default for Aside {
    fn default() -> Self {
        Aside { group: NONE, plane: 0, sent: 0, riders: NONE, chain: NONE, hidden: 0 }
    }
}

impl Flash {
    /// What the register that takes the `nth` page (or page of every plane) of the drive will hold then, and its plane.
    #[inline]
    pub fn register_of(&self, nth: u32) -> (u32, u32) {
        let planes = self.registers.planes;
        (nth, if planes == 1 { 0 } else { nth % planes })
    }

    /// Whether what is in a register is not sensed again.
    pub fn keeps_pages(&self) -> bool {
        self.registers.keep
    }

    /// Whether programs are filled while another one is under way, and reads leave their register early.
    #[inline]
    pub(super) fn caches(&self) -> bool {
        self.registers.cache
    }

    /// Nothing that was sensed is in the registers of die `d` any more.
    #[inline]
    pub(super) fn overwrite_registers(&mut self, d: u32) {
        let planes = self.planes_of(d);
        self.planes[planes].iter_mut().for_each(|plane| plane.group = NONE);
    }

    /// Something begins that takes all planes of die `d`; answers what that has done on the drive's own behalf.
    #[inline(never)]
    pub(super) fn take_planes(&mut self, d: u32, now: u64) -> OwnWork {
        self.overwrite_registers(d);
        self.dies[d as usize].own.plus(self.own_of_planes(d, now))
    }

    /// The operation `index` is new.
    #[inline(never)]
    pub(super) fn set_aside(&mut self, index: u32) {
        self.asides.resize(self.ops.len(), Aside::default());
        self.asides[index as usize] = Aside::default();
    }

    /// Books the transfer of the read `index`, whose page has been sensed; answers when it is over.
    pub(super) fn send(&mut self, d: u32, index: u32, now: u64) -> u64 {
        let end = self.book(index, self.channel_of(d), now);
        self.asides[index as usize].sent = end;
        Self::push(&mut self.beside[d as usize].sending, &mut self.ops, index);
        end
    }

    /// When a register is free whose page is sent until `end`, while an earlier one was sent until `before`: with
    /// a second register as soon as that one is free.
    #[inline]
    pub(super) fn register_free(&self, now: u64, before: u64, end: u64) -> u64 {
        if self.caches() { before.max(now) } else { end }
    }

    /// A read that took all planes has sensed.
    #[inline(never)]
    pub(super) fn send_of_die(&mut self, d: u32, now: u64) {
        let before = self.planes[self.planes_of(d)].iter().map(|plane| plane.sent).max();
        let end = self.send(d, self.dies[d as usize].current, now);
        let free = self.register_free(now, before.unwrap_or(0), end);
        let planes = self.planes_of(d);
        self.planes[planes].iter_mut().for_each(|plane| plane.sent = end);
        self.dies[d as usize].phase = Phase::Bus;
        self.plan(d, free);
    }

    /// Its register is free.
    #[inline(never)]
    pub(super) fn release_die(&mut self, d: u32, now: u64) {
        let die = &mut self.dies[d as usize];
        die.worked(now);
        die.current = NONE;
        self.dispatch(d, now);
    }

    /// Fills the second register with the next program while one is under way, unless reads go before it.
    pub(super) fn load_next(&mut self, d: u32, now: u64) {
        let die = &self.dies[d as usize];
        let under_way = die.phase == Phase::Program && die.filled <= now;
        if !self.caches() || !under_way || self.beside[d as usize].loaded != NONE {
            return;
        }
        let (next, moving) = die.next(&self.ops);
        if next == NONE || moving || self.ops[next as usize].kind != OpKind::Program {
            return;
        }
        let read = self.oldest_read(d);
        if read != NONE && self.overtakes(read, next) {
            return;
        }
        let die = &mut self.dies[d as usize];
        Self::pop(&mut die.stream, &mut self.ops, &self.own_at_ready);
        let filled = self.book(next, self.channel_of(d), now);
        let beside = &mut self.beside[d as usize];
        (beside.loaded, beside.filled) = (next, filled);
    }

    /// The program that is loaded goes on; of its transfer counts what is left.
    pub(super) fn start_loaded(&mut self, d: u32, now: u64) {
        let beside = &mut self.beside[d as usize];
        let (index, filled) = (beside.loaded, beside.filled);
        beside.loaded = NONE;
        self.begin(d, index, now);
        let op = &mut self.ops[index as usize];
        let (time, left) = (u64::from(op.units) * self.timing.transfer, filled.saturating_sub(now));
        op.bus_wait = left.saturating_sub(time) as u32;
        self.asides[index as usize].hidden = time.saturating_sub(left) as u32;
        if left > 0 {
            self.dies[d as usize].filled = filled;
            self.dies[d as usize].phase = Phase::Bus;
            self.plan(d, filled);
        } else {
            self.program_filled(d, now);
        }
    }
}
