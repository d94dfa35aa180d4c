//! What devices made of devices share.
//!
//! An array, a cache, a tier, a card: each has members, sends them commands, waits for their answers and
//! does some things by the clock. A [`Fleet`] holds what is the same in all of them, and [`Composite`] says what
//! is not:
//!
//! | event | the fleet | the device |
//! |---|---|---|
//! | a command of the host | counts it, gives it a place in `hosts`; behind a purge it waits | `begin` |
//! | a member's own event | moves the member on, plans its next event, drops answers of those that failed | `answered` |
//! | a timer | finds the earliest | `timer` |
//! | a loss of power | cuts the members, forgets what is in flight, holds what comes meanwhile ([`Fleet::cut`]) | `lose_power`, `start_up` |
//! | the end of a command | accounts for the rest of its time, frees its place ([`Fleet::complete`]) | |
//! | no time passes | settles members, plans anew what changed | `apply_untimed`, `is_working` |
//!
//! Whatever implements [`Composite`] is a [`Device`].
//!
//! ```text
//!  host ── submit ──> hosts ── begin ──┐                      ┌── send ──> ios ──> member
//!                                      ├─ the device's own ───┤
//!  host <── ready <── complete ────────┘                      └── answered <────── member
//! ```
//!
//! A command for a member is an [`Io`]: where it goes, and in the device's own type what it is for. What a member does
//! by itself is handed on and answered without one (`pass.rs`). The calendar has a slot for each member, and timers
//! stand beside it; of equal times members go first, except in a device with one member ([`Composite::SOLE`]): the
//! device's own events go first, and the member may go on by itself until one is due.
//!
//! Typed ids name commands of the host ([`HostId`]) and of members ([`IoId`]), each with a generation, so that an id of one
//! that has ended does not stand for the one that took its place; members are numbered.

mod device;
mod exposed;
mod fail;
mod host;
mod member;
mod pass;
mod payload;
mod power;
mod timers;
mod watch;

pub use exposed::Exposed;
pub use host::{ERROR_TIME, Host, HostId, OfHost};
pub use member::Member;
pub use payload::sectors;
pub use power::Power;

use crate::contract::{Command, Completion, Device, Distance, HostCounts, Missed, Op};
use crate::persist::{Persist, persistent};
use crate::sim::{Calendar, Id, Ranges, Slab};
use crate::units::NEVER;
use payload::Payload;
use std::collections::VecDeque;
use timers::Timers;
use watch::clears;

/// Commands of members, among ids.
pub enum OfIo {}
/// A command of a member in flight.
pub type IoId = Id<OfIo>;

/// A command of a member, and what it is for.
#[derive(Clone, Copy, Debug, Default)]
pub struct Io<P> {
    /// Which member.
    pub member: usize,
    /// What is asked of it.
    pub op: Op,
    /// First byte on the member.
    pub offset: u64,
    /// Bytes.
    pub len: u64,
    /// What it is for.
    pub purpose: P,
}

persistent!(impl<P: Persist> Io<P> { state { member, op, offset, len, purpose } });

/// What is a device's own, among those that are made of devices.
pub(crate) trait Composite: Persist + Send {
    /// What it knows of a command of the host, besides what all know.
    type Own: Copy + Default + Persist + Send;
    /// What a command of a member is for.
    type Purpose: Copy + Default + std::fmt::Debug + Persist + Send;
    /// The kind's name in the registry.
    const KIND: &'static str;
    /// The names of the members' places, where they are always the same.
    const PLACES: &'static [&'static str] = &["below"];
    /// It has one member. Its timers go before the member at the same instant, and the member goes on by itself until
    /// one of them is due; it shows without counters of its place.
    const SOLE: bool = false;
    /// A purge begins when nothing else is under way, and what comes after it waits for its end.
    const PURGES_ALONE: bool = false;

    /// It may hand commands on as they are ([`Composite::way_through`]).
    const PASSES: bool = false;

    /// Its members, and what is in flight.
    fn fleet(&self) -> &Fleet<Self::Own, Self::Purpose>;
    /// The same, to be changed.
    fn fleet_mut(&mut self) -> &mut Fleet<Self::Own, Self::Purpose>;

    /// Which member does a read or a write by itself, and as what: no more is done for it, here or when it is answered,
    /// and no member that may have it can fail. Counts what it counts of it. See `pass.rs`; only with
    /// [`Composite::PASSES`].
    #[inline]
    fn way_through(&mut self, command: &Command) -> Option<(usize, Command)> {
        let _ = command;
        None
    }
    /// Does what a command of the host asks for.
    fn begin(&mut self, host: HostId);
    /// A member has answered; the command's place is free.
    fn answered(&mut self, io: Io<Self::Purpose>, completion: &Completion);
    /// A timer is due.
    fn timer(&mut self, which: u32);
    /// A member has answered: frees the command's place, unless that comes later.
    #[inline]
    fn returned(&mut self, id: IoId, completion: &Completion) {
        let io = self.fleet_mut().take(id);
        self.answered(io, completion);
    }

    /// Time goes on, perhaps after commands without time.
    #[inline]
    fn resume_time(&mut self) {
        self.fleet_mut().plan_members();
    }
    /// A command of the host has begun.
    #[inline]
    fn after_submit(&mut self) {}
    /// All of an event has been seen to.
    #[inline]
    fn after_event(&mut self) {}
    /// Commands without time have been done, or all has come to rest.
    #[inline]
    fn after_untimed(&mut self) {}
    /// A purge has come, or something behind one.
    fn purge_comes(&mut self) {}
    /// A purge has still to wait.
    fn purge_waits(&mut self) {}

    /// What is under way is brought to its end, and nothing else begins while `fleet.settling`.
    fn begin_settling(&mut self) {}
    /// Whether work of its own is under way.
    fn is_working(&self) -> bool;
    /// Nothing is, but members have still to settle.
    fn end_settling(&mut self) {}

    /// Loses power, as [`Device::power_cut`]: what is its own, besides [`Fleet::cut`].
    fn lose_power(&mut self, now: u64, missed: &mut Missed) -> u64;
    /// The members are ready after a loss of power: does what must be done before commands are taken, and then
    /// [`Composite::started`].
    fn start_up(&mut self) {
        self.started();
    }
    /// Commands are taken again: those that came meanwhile first.
    fn started(&mut self) {
        let fleet = self.fleet_mut();
        for host in fleet.power.started(fleet.now) {
            self.take_in(host);
        }
    }
    /// Whether writes are answered before they are with the members, in memory that does not outlive the power.
    fn answers_early(&self) -> bool {
        false
    }
    /// Whether it sees to each instant at which its only member does something ([`Composite::SOLE`]), which then does not
    /// go on by itself.
    #[inline]
    fn watches_below(&self) -> bool {
        false
    }
    /// As [`Device::fast_path`]; not where it has to do with every command.
    fn fast_path_below(&self, command: &Command) -> bool {
        let _ = command;
        false
    }
    /// Hands a hint to the members that it concerns, as [`Device::expect`].
    #[inline]
    fn expect_below(&self, op: Op, offset: u64, ahead: Distance) {
        if Self::SOLE {
            self.fleet().members[0].device.expect(op, offset, ahead);
        }
    }
    /// Does a command in no time.
    fn apply_untimed(&mut self, command: &Command);
    /// Content of a sector, as [`Device::content`].
    fn content_of(&self, offset: u64) -> u64;
    /// Shows all counters but those of members.
    fn visit_counters(&self, visit: &mut dyn FnMut(&'static str, u64));
    /// The name of a member's place: that in `PLACES`.
    fn place_name(&self, member: usize) -> String {
        Self::PLACES[member].into()
    }
    /// Asserts that its own bookkeeping agrees with itself.
    fn verify_own(&self) {}

    /// Begins a command of the host, or puts it behind a purge.
    #[inline]
    fn take_in(&mut self, host: HostId) {
        let fleet = self.fleet_mut();
        if Self::PURGES_ALONE && (fleet.purging || fleet.hosts[host].command.op == Op::Purge) {
            fleet.purging = true;
            fleet.behind.push_back(host);
            self.purge_comes();
            self.purge_if_quiet();
        } else {
            self.begin(host);
        }
    }

    /// Begins a purge that waits, when nothing else is under way.
    fn purge_if_quiet(&mut self) {
        let fleet = self.fleet();
        let Some(&first) = fleet.behind.front() else { return };
        if fleet.in_flight as usize == fleet.behind.len() && !self.is_working() {
            self.fleet_mut().behind.pop_front();
            self.begin(first);
        } else {
            self.purge_waits();
        }
    }

    /// A purge is done: what came after it begins.
    fn purged(&mut self) {
        self.fleet_mut().purging = false;
        while let Some(&next) = self.fleet().behind.front() {
            if self.fleet().hosts[next].command.op == Op::Purge {
                self.fleet_mut().purging = true;
                return;
            }
            self.fleet_mut().behind.pop_front();
            self.begin(next);
        }
    }
}

/// The part of an implementation of [`Composite`] that says where its fleet is, and of what.
macro_rules! fleet_of {
    ($own:ty, $purpose:ty) => {
        type Own = $own;
        type Purpose = $purpose;
        #[inline]
        fn fleet(&self) -> &$crate::fleet::Fleet<$own, $purpose> {
            &self.fleet
        }
        #[inline]
        fn fleet_mut(&mut self) -> &mut $crate::fleet::Fleet<$own, $purpose> {
            &mut self.fleet
        }
    };
}
pub(crate) use fleet_of;

/// Members, commands in flight, and when something happens next. `O`: [`Composite::Own`], `P`:
/// [`Composite::Purpose`].
pub struct Fleet<O, P> {
    /// Bytes that the host can address.
    pub capacity: u64,
    /// The devices.
    pub members: Vec<Member>,
    /// Their commands in flight.
    pub ios: Slab<Io<P>, OfIo>,
    /// Those of them that are watched: where they change what others must not see changing.
    watched: Ranges,
    /// Those of them that TRIM or purge.
    clearing: u32,
    /// Commands of the host.
    pub hosts: Slab<Host<O>, OfHost>,
    /// The present instant.
    pub now: u64,
    /// Commands of the host, counted.
    pub counts: HostCounts,
    /// Those of them that took time, purges too.
    pub commands: u64,
    /// Those in flight, and when the last of them came or went.
    pub in_flight: u32,
    pub last_host: u64,
    /// Commands of the host that ended in an error: reads, and all others.
    pub errors: [u64; 2],
    /// A purge is under way, or waits for its turn.
    pub purging: bool,
    /// Nothing new begins.
    pub settling: bool,
    /// What tags of its own commands begin with.
    height: u64,
    /// When the only member of a device does something ([`Composite::SOLE`]); [`NEVER`] in others.
    sole_due: u64,
    sole: bool,
    /// Of the members, where there may be more than one.
    calendar: Calendar,
    timers: Timers,
    /// Members changed without time, which the calendar does not know yet.
    unplanned: bool,
    /// Commands of the host that will end in an error, and when.
    failing: VecDeque<(u64, HostId)>,
    /// Commands behind a purge, which is the first of them.
    behind: VecDeque<HostId>,
    /// Losses of power.
    pub power: Power,
    /// Contents, in tests.
    payload: Option<Payload>,
    ready: Vec<Completion>,
    arrived: Vec<Completion>,
    /// The same of several members at one instant, one after the other, and how many are of which.
    together: (Vec<Completion>, Vec<(usize, usize)>),
}

persistent!(impl<O: Persist, P: Persist> Fleet<O, P> {
    state {
        ios, watched, clearing, hosts, now, counts, commands, in_flight, last_host, errors, purging, settling, sole_due, calendar, timers,
        unplanned, failing, behind, power, ready,
    }
    parts { members, payload }
    built { capacity, height, sole, arrived, together }
});

impl<O: Copy + Default, P: Copy + Default + std::fmt::Debug> Fleet<O, P> {
    /// Of devices. `sole`: [`Composite::SOLE`].
    pub fn new(capacity: u64, devices: Vec<Box<dyn Device>>, sole: bool) -> Self {
        let members: Vec<Member> = devices.into_iter().map(Member::new).collect();
        let planned = if sole { 0 } else { members.len() };
        let mut fleet = Fleet {
            capacity,
            height: members.iter().map(|member| pass::height(member)).max().unwrap_or(0) + 1,
            members,
            ios: Slab::new(),
            watched: Ranges::default(),
            clearing: 0,
            hosts: Slab::new(),
            now: 0,
            counts: HostCounts::default(),
            commands: 0,
            in_flight: 0,
            last_host: 0,
            errors: [0; 2],
            purging: false,
            settling: false,
            sole_due: NEVER,
            sole,
            calendar: Calendar::new(planned),
            timers: Timers::new(),
            unplanned: true,
            failing: VecDeque::new(),
            behind: VecDeque::new(),
            power: Power::default(),
            payload: None,
            ready: Vec::new(),
            arrived: Vec::new(),
            together: Default::default(),
        };
        fleet.plan_members();
        fleet
    }

    /// Plans a timer; [`NEVER`] stops it.
    #[inline]
    pub fn set_timer(&mut self, which: u32, time: u64) {
        self.timers.set(which, time);
    }

    /// Plans what a member does next.
    #[inline]
    fn plan(&mut self, member: usize, next: u64) {
        if self.sole {
            self.sole_due = next;
        } else if self.calendar.at(member as u32) != next {
            // A busy member mostly takes on later what it was given.
            self.calendar.set(member as u32, next);
        }
    }

    /// Gives a command of a member its place.
    #[inline]
    pub fn enlist(&mut self, io: Io<P>) -> IoId {
        self.members[io.member].pending += 1;
        self.clearing += u32::from(clears(io.op));
        self.ios.insert(io)
    }

    /// Hands a command that has a place to its member. `stamp`: see [`Command::stamp`].
    #[inline]
    pub fn deliver(&mut self, id: IoId, stamp: u64, compressible: u8) {
        let io = self.ios[id];
        self.hand_over(id, &io, stamp, compressible);
    }

    /// Sends a command to a member; the place that it has.
    #[inline]
    pub fn send(&mut self, io: Io<P>, stamp: u64, compressible: u8) -> IoId {
        let id = self.enlist(io);
        self.hand_over(id, &io, stamp, compressible);
        id
    }

    #[inline]
    fn hand_over(&mut self, id: IoId, io: &Io<P>, stamp: u64, compressible: u8) {
        let &Io { member, op, offset, len, .. } = io;
        let tag = self.tag(id);
        let device = &mut self.members[member];
        device.submit(self.now, Command { tag, op, offset, len, compressible, stamp, process: 0 });
        let next = device.next_event();
        self.plan(member, next);
    }

    /// Sends all that is live what a command of the host asks of all: a flush, a purge.
    pub fn send_to_all(&mut self, host: HostId, purpose: P) {
        let op = self.hosts[host].command.op;
        for member in 0..self.members.len() {
            if !self.members[member].dead {
                self.hosts[host].remaining += 1;
                self.send(Io { member, op, purpose, ..Io::default() }, 0, 0);
            }
        }
    }

    /// The same in no time.
    pub fn apply_to_all(&mut self, op: Op) {
        for member in 0..self.members.len() {
            if !self.members[member].dead {
                self.apply(member, &Command { op, ..Command::default() });
            }
        }
    }

    /// A command of a member has come to its end; its place is free.
    #[inline]
    pub fn take(&mut self, id: IoId) -> Io<P> {
        self.ios.remove(id);
        self.watched.remove(id.number());
        let io = self.ios[id];
        self.clearing -= u32::from(clears(io.op));
        io
    }

    /// Does a command of a member in no time.
    #[inline]
    pub fn apply(&mut self, member: usize, command: &Command) {
        self.unplanned = true;
        self.members[member].apply(command);
    }

    /// The calendar after members changed without time.
    #[inline]
    pub fn plan_members(&mut self) {
        if self.unplanned {
            self.plan_all();
        }
    }

    /// The same after members may have changed what they do next.
    #[cold]
    pub fn plan_all(&mut self) {
        self.unplanned = false;
        for nth in 0..self.members.len() {
            let member = &self.members[nth];
            let next = if member.dead { NEVER } else { member.next_event() };
            self.plan(nth, next);
        }
    }

    /// As [`Device::drive_commands`].
    pub fn drive_commands(&self) -> u64 {
        let given = |member: &Member| member.device.drive_commands().unwrap_or(member.commands);
        self.members.iter().map(given).sum()
    }

    /// When a member or a timer is due, or power is back.
    #[inline]
    fn due(&self) -> u64 {
        let members = self.calendar.earliest().min(self.sole_due);
        members.min(self.timers.due()).min(self.power.back)
    }

    /// When something happens next.
    fn next_event(&self) -> u64 {
        match (self.ready.is_empty(), self.unplanned) {
            (false, _) => self.now,
            (true, false) => self.due(),
            (true, true) => {
                let members = self.members.iter().filter(|member| !member.dead);
                let members = members.map(Member::next_event).min().unwrap_or(NEVER);
                members.min(self.timers.due()).min(self.power.back)
            }
        }
    }
}
