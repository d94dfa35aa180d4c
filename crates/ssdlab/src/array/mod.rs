//! Arrays: a device made of devices. RAID 0, 1, 10, 5, 6 and linear, with md's layouts.
//!
//! A command splits into commands of members; neighbouring pieces on one member go as one. Levels
//! without parity send them at once (`direct.rs`); writes of RAID 5 and 6 go through stripes
//! (`stripes.rs`), which are locked by rows of 4 KiB, read what parity needs (`plan.rs`) and then
//! write data and parity. `slot.rs` holds a member, `content.rs` what tests know of contents.
//!
//! The time of a command goes to what its members needed on the average, and the rest to waiting for
//! the slowest of them; before that, for its turn at the stripe and for old data and parity.

mod bitmap;
mod build;
mod bus;
mod content;
mod counters;
mod direct;
mod failure;
mod galois;
mod host;
mod keys;
pub mod layout;
mod plan;
mod power;
mod rebuild;
mod resync;
mod slot;
mod stripe_cache;
mod stripes;
mod untimed;
mod write_hole;

pub use bus::BusKeys;
pub use failure::ERROR_TIME;
pub(crate) use slot::Slot;

pub use keys::{ArrayKeys, FailKeys, Level, MEMBERS_MAX, ReadBalance};

use crate::device::{Build, Command, Completion, Device, Op};
use crate::error::Result;
use crate::persist::{persistent, persistent_enum};
use crate::sim::{Calendar, Slab};
use crate::stats::Parts;
use crate::units::NEVER;
use bitmap::Bitmap;
use bus::Bus;
use content::Versions;
use counters::Counts;
use failure::{Failures, Seat};
use host::Host;
use layout::Layout;
use power::Power;
use rebuild::Rebuild;
use resync::Resync;
use stripes::Stripes;
use untimed::Unfinished;

/// What a command of a member is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum Purpose {
    /// A command of the host.
    #[default]
    Host,
    /// What a stripe must know before it is written.
    StripeRead,
    /// Data and parity of a stripe.
    StripeWrite,
    /// Copying a block of a mirror to a spare.
    CopyRead,
    CopyWrite,
    /// The page of the bitmap.
    Bitmap,
    /// Making the copies of a mirror equal after a loss of power.
    SyncRead,
    SyncWrite,
}
persistent_enum!(Purpose {
    Host,
    StripeRead,
    StripeWrite,
    CopyRead,
    CopyWrite,
    Bitmap,
    SyncRead,
    SyncWrite
});

/// A command of a member in flight.
#[derive(Clone, Copy, Debug, Default)]
struct Io {
    purpose: Purpose,
    /// The host's command or the stripe.
    owner: u32,
    member: u32,
    /// The slot that has it.
    slot: u32,
    /// It is in flight.
    active: bool,
    /// Power went meanwhile: nobody waits for it.
    cut: bool,
    op: Op,
    offset: u64,
    len: u64,
}
persistent!(Io { state { purpose, owner, member, slot, active, cut, op, offset, len } });

/// Part of a command, on one member.
#[derive(Clone, Copy, Debug)]
struct Piece {
    member: u32,
    offset: u64,
    len: u64,
}

/// Instead of a command of the host.
const NO_HOST: u32 = u32::MAX;

/// An array of devices.
pub struct Array {
    layout: Layout,
    read_balance: ReadBalance,
    /// TRIM reaches the members.
    trims: bool,
    /// Bytes of the members that no layout reaches.
    wasted: u64,
    /// Members and spares.
    slots: Vec<Slot>,
    /// Which of them has the place of each member.
    seats: Vec<Seat>,
    /// A member is missing, or not yet rebuilt.
    degraded: bool,
    /// Members fail by their wear.
    watches_wear: bool,
    /// Members fail at all.
    may_fail: bool,
    failures: Failures,
    rebuild: Rebuild,
    power: Power,
    resync: Resync,
    bitmap: Option<Bitmap>,
    bus: Option<Bus>,
    /// Next event of every slot, and of the array's own.
    calendar: Calendar,
    hosts: Slab<Host>,
    /// What the members of each of them needed together, where it took more than one command.
    sums: Vec<Parts>,
    ios: Slab<Io>,
    stripes: Stripes,
    /// Contents, in tests.
    versions: Option<Versions>,
    /// A stripe whose parity the untimed path has still to write.
    unfinished: Option<Unfinished>,
    /// Members changed without time, which the calendar does not know yet.
    unplanned: bool,
    /// Which copy the next read takes, in turn.
    turn: u32,
    counts: Counts,
    now: u64,
    ready: Vec<Completion>,
    arrived: Vec<Completion>,
    pieces: Vec<Piece>,
    /// The last piece of each member in `pieces`.
    last_piece: Vec<u32>,
    stripe_parts: Vec<plan::Part>,
}
persistent!(Array {
    state {
        seats, degraded, failures, rebuild, power, resync, calendar, hosts, sums, ios, stripes, unfinished, unplanned, turn, counts, now,
        ready,
    }
    parts { slots, versions, bitmap, bus }
    built {
        layout, read_balance, trims, wasted, watches_wear, may_fail, arrived, pieces, last_piece, stripe_parts,
    }
});

impl Array {
    /// An array of `members`.
    ///
    /// # Errors
    /// [`crate::Error::Rig`] with the key that is wrong, or with what does not fit.
    pub fn new(keys: &ArrayKeys, members: Vec<Box<dyn Device>>, build: &Build) -> Result<Self> {
        let n = members.len().saturating_sub(keys.spares as usize);
        let layout = build::layout(keys, &members[..n])?;
        build::check_spares(keys, &layout, &members[n..])?;
        keys.check_failures(n as u32)?;
        let used: u64 = (0..n as u32).map(|m| layout.used(m)).sum();
        let total: u64 = members[..n].iter().map(|m| m.capacity()).sum();
        let mut calendar = Calendar::new(members.len() + failure::EXTRA_SLOTS + 1);
        for (slot, member) in members.iter().enumerate() {
            calendar.set(slot as u32, member.next_event());
        }
        let seats = (0..n as u32).map(|slot| Seat { slot, ..Seat::default() }).collect();
        let rebuild = Rebuild::new(keys, n as u32..members.len() as u32, build.stream("rebuild"));
        let mut array = Array {
            seats,
            degraded: false,
            may_fail: !keys.fail.is_empty(),
            watches_wear: keys.fail.iter().any(|fail| fail.worn.is_some()),
            failures: Failures::new(&keys.fail),
            rebuild,
            power: Power::new(keys, build.stream("power")),
            resync: Resync::new(),
            bitmap: build::bitmap(keys, &layout, &members[..n])?,
            bus: keys.bus.as_ref().map(Bus::new).transpose()?,
            read_balance: keys.read_balance,
            trims: keys.trim.unwrap_or(layout.parity().is_none()),
            wasted: total - used,
            slots: members.into_iter().map(Slot::new).collect(),
            calendar,
            hosts: Slab::new(),
            sums: Vec::new(),
            ios: Slab::new(),
            stripes: Stripes::new(&layout, keys.stripe_cache),
            versions: build.keep_versions.then(Versions::default),
            unfinished: None,
            unplanned: false,
            turn: 0,
            counts: Counts::default(),
            now: 0,
            ready: Vec::new(),
            arrived: Vec::new(),
            pieces: Vec::new(),
            last_piece: vec![u32::MAX; n],
            stripe_parts: Vec::new(),
            layout,
        };
        array.plan_timers();
        Ok(array)
    }

    /// The layout.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// What has the place of a member.
    #[inline]
    fn slot(&self, member: u32) -> &Slot {
        &self.slots[self.seats[member as usize].slot as usize]
    }

    #[inline]
    fn slot_mut(&mut self, member: u32) -> &mut Slot {
        &mut self.slots[self.seats[member as usize].slot as usize]
    }

    /// Sends a command to a member.
    #[inline]
    fn send(&mut self, io: Io, stamp: u64, compressible: u8) {
        let Io { member, op, offset, len, .. } = io;
        let index = self.seats[member as usize].slot;
        let tag = u64::from(self.ios.insert(Io { slot: index, active: true, ..io }));
        let command = Command { tag, op, offset, len, compressible, stamp };
        if self.bus.is_some() {
            return self.send_across(tag as u32, command);
        }
        self.deliver(index, &io, command);
    }

    /// Hands a command to its member.
    #[inline]
    fn deliver(&mut self, slot: u32, io: &Io, command: Command) {
        if self.versions.is_some() {
            self.note_old_content(command.tag as u32, io);
        }
        let member = &mut self.slots[slot as usize];
        member.send(self.now, command);
        let next = member.device.next_event();
        // A busy member mostly takes it on later.
        if self.calendar.at(slot) != next {
            self.calendar.set(slot, next);
        }
    }

    /// A member has answered.
    fn answer(&mut self, slot: u32, completion: &Completion) {
        let index = completion.tag as u32;
        let io = self.ios.all[index as usize];
        if !io.active || io.slot != slot {
            // The member failed in the very instant in which it answered.
            return;
        }
        self.slots[io.slot as usize].returned(self.now);
        if io.cut {
            self.drop_io(index);
            self.cut_returned();
            return;
        }
        if self.versions.is_some() && io.op == Op::Read {
            self.check_digest(&io, completion.digest);
        }
        match &self.bus {
            None => self.finish_io(completion),
            Some(_) if io.op == Op::Read => self.bring_across(index, completion),
            Some(_) => self.finish_io(&self.with_bus(index, completion)),
        }
    }

    /// The place of a command of a member is free.
    #[inline]
    fn drop_io(&mut self, index: u32) {
        self.ios.all[index as usize].active = false;
        self.ios.free.push(index);
    }

    /// A command of a member has come to its end.
    fn finish_io(&mut self, completion: &Completion) {
        let index = completion.tag as u32;
        let io = self.ios.all[index as usize];
        self.drop_io(index);
        match io.purpose {
            Purpose::Host => self.host_answered(io, &completion.parts),
            Purpose::StripeRead | Purpose::StripeWrite => {
                self.stripe_answered(io, &completion.parts)
            }
            Purpose::CopyRead | Purpose::CopyWrite => self.copy_answered(io),
            Purpose::Bitmap => self.bitmap_answered(),
            Purpose::SyncRead | Purpose::SyncWrite => self.sync_answered(io),
        }
    }
}

impl Array {
    /// Lets the next event happen, at `time`.
    fn happen(&mut self, time: u64, slot: u32) {
        self.now = self.now.max(time);
        if let Some(which) = slot.checked_sub(self.slots.len() as u32) {
            match which as usize {
                failure::EXTRA_SLOTS => self.bus_event(),
                _ => self.timer(which),
            }
            return;
        }
        let next = self.slots[slot as usize].device.proceed(time, &mut self.arrived);
        self.calendar.set(slot, next);
        if self.arrived.is_empty() {
            return;
        }
        let mut arrived = std::mem::take(&mut self.arrived);
        for completion in &arrived {
            self.answer(slot, completion);
        }
        arrived.clear();
        self.arrived = arrived;
    }
}

impl Device for Array {
    fn kind(&self) -> &'static str {
        "array"
    }

    fn capacity(&self) -> u64 {
        self.layout.capacity()
    }

    fn submit(&mut self, now: u64, command: Command) {
        self.now = now;
        self.end_untimed();
        self.counts.host.count(&command);
        let host = self.hosts.insert(Host { command, submitted: now, ..Host::default() });
        if self.sums.len() < self.hosts.all.len() {
            self.sums.push(Parts::default());
        }
        self.rebuild.host_seen = true;
        if !self.waits_for_power(host) && !self.waits_for_block(host) {
            self.dispatch(host);
        }
    }

    fn next_event(&self) -> u64 {
        match (self.ready.is_empty(), self.unplanned) {
            (false, _) => self.now,
            (true, false) => self.calendar.first().0,
            (true, true) => {
                let members = self.slots.iter().filter(|slot| !slot.dead);
                let own =
                    (self.slots.len()..self.calendar.slots()).map(|s| self.calendar.at(s as u32));
                members.map(Slot::next_event).chain(own).min().unwrap_or(NEVER)
            }
        }
    }

    fn advance(&mut self, limit: u64, done: &mut Vec<Completion>) -> u64 {
        self.end_untimed();
        loop {
            let (time, slot) = self.calendar.first();
            if !self.ready.is_empty() && time > self.now {
                done.append(&mut self.ready);
                return self.now;
            }
            if time > limit || time == NEVER {
                return limit;
            }
            self.happen(time, slot);
        }
    }

    fn settle(&mut self, now: u64) -> u64 {
        debug_assert_eq!(self.hosts.free.len(), self.hosts.all.len(), "something is in flight");
        if self.unplanned {
            self.plan_members();
        }
        self.now = self.now.max(now);
        // Blocks that are being rebuilt are brought to their end, the next one is not begun.
        self.pause_rebuild(true);
        while self.acts_by_itself() {
            let (time, slot) = self.calendar.first();
            self.happen(time, slot);
        }
        self.pause_rebuild(false);
        let now = self.now;
        let settled = |slot: &mut Slot, at: u64| if slot.dead { at } else { slot.settle(at) };
        let end = self.slots.iter_mut().map(|slot| settled(slot, now)).max().unwrap_or(now);
        // All of them have been quiet since the last one was.
        for slot in &mut self.slots {
            settled(slot, end);
        }
        self.now = end;
        self.plan_members();
        end
    }

    fn apply(&mut self, command: &Command) {
        self.apply_untimed(command);
        self.unplanned = true;
    }

    fn content(&self, offset: u64) -> u64 {
        self.content_of(offset)
    }

    fn counters(&self, visit: &mut dyn FnMut(&'static str, u64)) {
        self.visit_counters(visit);
        if let Some(bus) = &self.bus {
            bus.counters(visit);
        }
    }

    fn children(&self) -> Vec<(String, &dyn Device)> {
        let members = self.seats.len();
        let place = |i: usize| match i.checked_sub(members) {
            None => format!("member{i}"),
            Some(nth) => format!("spare{nth}"),
        };
        self.slots.iter().enumerate().map(|(i, s)| (place(i), s as &dyn Device)).collect()
    }

    fn verify(&self) {
        // What died may have died in the midst of something.
        self.slots.iter().filter(|slot| !slot.dead).for_each(Slot::verify);
        self.verify_redundancy();
    }
}
