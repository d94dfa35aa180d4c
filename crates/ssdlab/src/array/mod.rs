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
mod content;
mod counters;
mod direct;
mod failure;
mod galois;
mod keys;
pub mod layout;
mod plan;
mod rebuild;
mod slot;
mod stripe_cache;
mod stripes;
mod untimed;

pub(crate) use slot::Slot;

pub use keys::{ArrayKeys, FailKeys, Level, MEMBERS_MAX, ReadBalance};

use crate::device::{Build, Command, Completion, Device, Op};
use crate::error::Result;
use crate::persist::{Archive, Persist, persistent, persistent_enum};
use crate::sim::Calendar;
use crate::stats::{PARTS, Part, Parts};
use crate::units::NEVER;
use bitmap::Bitmap;
use content::Versions;
use counters::Counts;
use failure::{Failures, Seat};
use layout::Layout;
use rebuild::Rebuild;
use stripes::Stripes;
use untimed::Unfinished;

/// A command of the host.
#[derive(Clone, Copy, Debug, Default)]
struct Host {
    command: Command,
    submitted: u64,
    /// Commands of members and stripes that it waits for.
    remaining: u32,
    /// Commands of members sent for it directly, and their parts together.
    ios: u32,
    parts: Parts,
    digest: u64,
    /// It waited so long for a block that was being rebuilt.
    held: u64,
    /// Until when it waited for the bitmap, from its submission.
    logged: u64,
    /// It touches what is lost.
    failed: bool,
}
persistent!(Host {
    state { command, submitted, remaining, ios, parts, digest, held, logged, failed }
});

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
}
persistent_enum!(Purpose { Host, StripeRead, StripeWrite, CopyRead, CopyWrite, Bitmap });

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
    op: Op,
    offset: u64,
    len: u64,
}
persistent!(Io { state { purpose, owner, member, slot, active, op, offset, len } });

/// Part of a command, on one member.
#[derive(Clone, Copy, Debug)]
struct Piece {
    member: u32,
    offset: u64,
    len: u64,
}

/// Things by index, with the free indices.
pub(crate) struct Slab<T> {
    pub all: Vec<T>,
    pub free: Vec<u32>,
}

impl<T> Slab<T> {
    pub fn new() -> Self {
        Slab { all: Vec::new(), free: Vec::new() }
    }
    #[inline]
    pub fn insert(&mut self, value: T) -> u32 {
        match self.free.pop() {
            Some(index) => {
                self.all[index as usize] = value;
                index
            }
            None => {
                self.all.push(value);
                (self.all.len() - 1) as u32
            }
        }
    }
}

impl<T: Persist + Default> Persist for Slab<T> {
    fn persist(&mut self, archive: &mut Archive<'_>) -> Result<()> {
        let Slab { all, free } = self;
        all.persist(archive)?;
        free.persist(archive)
    }
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
    bitmap: Option<Bitmap>,
    /// Next event of every slot, and of the array's own.
    calendar: Calendar,
    hosts: Slab<Host>,
    ios: Slab<Io>,
    stripes: Stripes,
    /// Contents, in tests.
    versions: Option<Versions>,
    /// A stripe whose parity the untimed path has still to write.
    unfinished: Option<Unfinished>,
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
        seats, degraded, failures, rebuild, calendar, hosts, ios, stripes, unfinished, turn, counts, now,
        ready,
    }
    parts { slots, versions, bitmap }
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
        let mut calendar = Calendar::new(members.len() + failure::EXTRA_SLOTS);
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
            bitmap: build::bitmap(keys, &layout, &members[..n])?,
            read_balance: keys.read_balance,
            trims: keys.trim.unwrap_or(layout.parity().is_none()),
            wasted: total - used,
            slots: members.into_iter().map(Slot::new).collect(),
            calendar,
            hosts: Slab::new(),
            ios: Slab::new(),
            stripes: Stripes::new(&layout, keys.stripe_cache),
            versions: build.keep_versions.then(Versions::default),
            unfinished: None,
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
    fn send(&mut self, io: Io, stamp: u64, compressible: u8) {
        let Io { member, op, offset, len, .. } = io;
        let index = self.seats[member as usize].slot;
        let tag = u64::from(self.ios.insert(Io { slot: index, active: true, ..io }));
        let slot = &mut self.slots[index as usize];
        slot.send(self.now, Command { tag, op, offset, len, compressible, stamp });
        self.calendar.set(index, slot.device.next_event());
    }

    /// A member has answered.
    fn answer(&mut self, slot: u32, completion: &Completion) {
        let index = completion.tag as u32;
        let io = self.ios.all[index as usize];
        if !io.active || io.slot != slot {
            // The member failed in the very instant in which it answered.
            return;
        }
        self.ios.all[index as usize].active = false;
        self.ios.free.push(index);
        self.slots[io.slot as usize].returned(self.now);
        if io.op == Op::Read {
            self.check_digest(&io, completion.digest);
        }
        match io.purpose {
            Purpose::Host => self.host_answered(io, &completion.parts),
            Purpose::StripeRead | Purpose::StripeWrite => {
                self.stripe_answered(io, &completion.parts)
            }
            Purpose::CopyRead | Purpose::CopyWrite => self.copy_answered(io),
            Purpose::Bitmap => self.bitmap_answered(),
        }
    }

    /// The command is done: what its last members needed on the average, and what came on top.
    fn complete(&mut self, host: u32, ios: u32, sum: &Parts, before: Parts) {
        let Host { command, submitted, digest, held, logged, .. } = self.hosts.all[host as usize];
        self.hosts.free.push(host);
        if self.rebuild.member.is_some() && !self.rebuild.busy && self.rebuild.due == NEVER {
            // It waited for writes to end.
            self.rebuild.due = self.now;
            self.plan_timers();
        }
        let mut parts = before;
        parts[Part::StripeWait] += held;
        parts[Part::Bitmap] += logged - held.min(logged);
        if let (Some(bitmap), Op::Write) = (&mut self.bitmap, command.op) {
            bitmap.end(command.offset, command.len);
        }
        if ios == 1 {
            parts.add(sum);
        } else if ios > 1 {
            for i in 0..PARTS {
                parts.0[i] += sum.0[i] / u64::from(ios);
            }
        }
        parts[Part::SlowestMember] += self.now - submitted - parts.total();
        self.ready.push(Completion { tag: command.tag, time: self.now, parts, digest });
    }
}

impl Array {
    /// Does what a command of the host asks for.
    fn dispatch(&mut self, host: u32) {
        let command = self.hosts.all[host as usize].command;
        match command.op {
            Op::Flush | Op::Purge => self.everywhere(host),
            Op::Trim if !self.trims => self.counts.trims_dropped += 1,
            Op::Trim => self.trim(host),
            Op::Read => self.read(host),
            Op::Write if self.waits_for_bitmap(host) => {}
            Op::Write => return self.begin_write(host),
        }
        if self.hosts.all[host as usize].remaining == 0 {
            self.complete(host, 0, &Parts::default(), Parts::default());
        }
    }

    /// Does what a write asks for.
    fn begin_write(&mut self, host: u32) {
        match self.layout.parity() {
            Some(_) => self.write_stripes(host),
            None => self.write(host),
        }
        if self.hosts.all[host as usize].remaining == 0 {
            self.complete(host, 0, &Parts::default(), Parts::default());
        }
    }

    /// Lets the next event happen, at `time`.
    fn happen(&mut self, time: u64, slot: u32) {
        self.now = self.now.max(time);
        if let Some(which) = slot.checked_sub(self.slots.len() as u32) {
            self.timer(which);
            return;
        }
        let mut arrived = std::mem::take(&mut self.arrived);
        let member = &mut self.slots[slot as usize].device;
        member.advance(time, &mut arrived);
        self.calendar.set(slot, member.next_event());
        for completion in arrived.drain(..) {
            self.answer(slot, &completion);
        }
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
        self.finish_untimed();
        self.counts.host(&command);
        let host = self.hosts.insert(Host { command, submitted: now, ..Host::default() });
        self.rebuild.host_seen = true;
        if !self.waits_for_block(host) {
            self.dispatch(host);
        }
    }

    fn next_event(&self) -> u64 {
        if self.ready.is_empty() { self.calendar.first().0 } else { self.now }
    }

    fn advance(&mut self, limit: u64, done: &mut Vec<Completion>) -> u64 {
        self.finish_untimed();
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
        self.now = self.now.max(now);
        // The block that is being rebuilt is brought to its end, the next one is not begun.
        while self.rebuild.is_under_way() || self.bitmap.as_ref().is_some_and(Bitmap::is_busy) {
            let (time, slot) = self.calendar.first();
            self.happen(time, slot);
        }
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
        self.plan_members();
    }

    fn content(&self, offset: u64) -> u64 {
        self.content_of(offset)
    }

    fn counters(&self, visit: &mut dyn FnMut(&'static str, u64)) {
        self.visit_counters(visit);
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
