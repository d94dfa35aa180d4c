//! Arrays: a device made of devices. RAID 0, 1, 10, 5, 6 and linear, with md's layouts.
//!
//! A command splits into commands of members; neighbouring pieces on one member go as one. Levels
//! without parity send them at once (`direct.rs`); writes of RAID 5 and 6 go through stripes
//! (`stripes.rs`), which are locked by rows of 4 KiB, read what parity needs (`plan.rs`) and then
//! write data and parity. `slot.rs` holds a member, `content.rs` what tests know of contents.
//!
//! The time of a command goes to what its members needed on the average, and the rest to waiting for
//! the slowest of them; before that, for its turn at the stripe and for old data and parity.

mod build;
mod content;
mod counters;
mod direct;
mod galois;
mod keys;
pub mod layout;
mod plan;
mod slot;
mod stripe_cache;
mod stripes;
mod untimed;

pub use keys::{ArrayKeys, Level, MEMBERS_MAX, ReadBalance};

use crate::device::{Build, Command, Completion, Device, Op};
use crate::error::Result;
use crate::sim::Calendar;
use crate::stats::{PARTS, Part, Parts};
use crate::units::NEVER;
use content::Versions;
use counters::Counts;
use layout::Layout;
use slot::Slot;
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
}

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
}

/// A command of a member in flight.
#[derive(Clone, Copy, Debug, Default)]
struct Io {
    purpose: Purpose,
    /// The host's command or the stripe.
    owner: u32,
    member: u32,
    op: Op,
    offset: u64,
    len: u64,
}

/// Part of a command, on one member.
#[derive(Clone, Copy, Debug)]
struct Piece {
    member: u32,
    offset: u64,
    len: u64,
}

/// Things by index, with the free indices.
struct Slab<T> {
    all: Vec<T>,
    free: Vec<u32>,
}

impl<T> Slab<T> {
    fn new() -> Self {
        Slab { all: Vec::new(), free: Vec::new() }
    }
    #[inline]
    fn insert(&mut self, value: T) -> u32 {
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

/// An array of devices.
pub struct Array {
    layout: Layout,
    read_balance: ReadBalance,
    /// TRIM reaches the members.
    trims: bool,
    /// Bytes of the members that no layout reaches.
    wasted: u64,
    slots: Vec<Slot>,
    /// Next event of every member.
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

impl Array {
    /// An array of `members`.
    ///
    /// # Errors
    /// [`crate::Error::Rig`] with the key that is wrong, or with what does not fit.
    pub fn new(keys: &ArrayKeys, members: Vec<Box<dyn Device>>, build: &Build) -> Result<Self> {
        let layout = build::layout(keys, &members)?;
        let n = members.len();
        let used: u64 = (0..n as u32).map(|m| layout.used(m)).sum();
        let total: u64 = members.iter().map(|m| m.capacity()).sum();
        let mut calendar = Calendar::new(n);
        for (slot, member) in members.iter().enumerate() {
            calendar.set(slot as u32, member.next_event());
        }
        Ok(Array {
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
        })
    }

    /// The layout.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Whether the member answers and takes commands.
    fn alive(&self, _member: u32) -> bool {
        true
    }

    /// Sends a command to a member.
    fn send(&mut self, io: Io, stamp: u64, compressible: u8) {
        let Io { member, op, offset, len, .. } = io;
        let tag = u64::from(self.ios.insert(io));
        let slot = &mut self.slots[member as usize];
        slot.send(self.now, Command { tag, op, offset, len, compressible, stamp });
        self.calendar.set(member, slot.device.next_event());
    }

    /// A member has answered.
    fn answer(&mut self, completion: &Completion) {
        let index = completion.tag as u32;
        let io = self.ios.all[index as usize];
        self.ios.free.push(index);
        self.slots[io.member as usize].returned(self.now);
        if io.op == Op::Read {
            self.check_digest(&io, completion.digest);
        }
        match io.purpose {
            Purpose::Host => self.host_answered(io, &completion.parts),
            Purpose::StripeRead | Purpose::StripeWrite => {
                self.stripe_answered(io, &completion.parts)
            }
        }
    }

    /// The command is done: what its last members needed on the average, and what came on top.
    fn complete(&mut self, host: u32, ios: u32, sum: &Parts, before: Parts) {
        let Host { command, submitted, digest, .. } = self.hosts.all[host as usize];
        self.hosts.free.push(host);
        let mut parts = before;
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
        match command.op {
            Op::Flush | Op::Purge => self.everywhere(host),
            Op::Trim if !self.trims => self.counts.trims_dropped += 1,
            Op::Trim => self.trim(host),
            Op::Read => self.read(host),
            Op::Write if self.layout.parity().is_some() => self.write_stripes(host),
            Op::Write => self.write(host),
        }
        if self.hosts.all[host as usize].remaining == 0 {
            self.complete(host, 0, &Parts::default(), Parts::default());
        }
    }

    fn next_event(&self) -> u64 {
        if self.ready.is_empty() { self.calendar.first().0 } else { self.now }
    }

    fn advance(&mut self, limit: u64, done: &mut Vec<Completion>) -> u64 {
        loop {
            let (time, slot) = self.calendar.first();
            if !self.ready.is_empty() && time > self.now {
                done.append(&mut self.ready);
                return self.now;
            }
            if time > limit || time == NEVER {
                return limit;
            }
            self.now = time;
            let mut arrived = std::mem::take(&mut self.arrived);
            let member = &mut self.slots[slot as usize].device;
            member.advance(time, &mut arrived);
            self.calendar.set(slot, member.next_event());
            for completion in arrived.drain(..) {
                self.answer(&completion);
            }
            self.arrived = arrived;
        }
    }

    fn settle(&mut self, now: u64) -> u64 {
        debug_assert_eq!(self.hosts.free.len(), self.hosts.all.len(), "something is in flight");
        let end = self.slots.iter_mut().map(|slot| slot.settle(now)).max().unwrap_or(now);
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
        let place = |(i, slot)| (format!("member{i}"), slot as &dyn Device);
        self.slots.iter().enumerate().map(place).collect()
    }

    fn verify(&self) {
        self.slots.iter().for_each(Slot::verify);
        self.verify_redundancy();
    }
}
