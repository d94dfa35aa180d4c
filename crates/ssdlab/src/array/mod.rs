//! Arrays: a device made of devices. RAID 0, 1, 10, 5, 6 and linear, with md's layouts.
//!
//! A command splits into commands of members; neighbouring pieces on one member go as one. Levels
//! without parity send them at once (`direct.rs`); writes of RAID 5 and 6 go through stripes
//! (`stripes.rs`), which are locked by rows of 4 KiB, read what parity needs (`plan.rs`) and then
//! write data and parity. `content.rs` has what tests know of contents.
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
mod stripe_cache;
mod stripes;
mod untimed;
mod write_hole;

pub use bus::BusKeys;
pub use keys::{ArrayKeys, FailKeys, Level, MEMBERS_MAX, ReadBalance};

use crate::contract::{Build, Command, Completion, Device, Distance, Missed, Op};
use crate::error::Result;
use crate::fleet::{Composite, Fleet, HostId, IoId, Member, fleet_of};
use crate::persist::{persistent, persistent_cases};
use crate::stats::Parts;
use bitmap::Bitmap;
use bus::Bus;
use content::Versions;
use failure::{Failures, Seat};
use host::Own;
use layout::{Layout, Place};
use power::Unsettled;
use rebuild::Rebuild;
use resync::Resync;
use stripes::Stripes;
use untimed::Unfinished;
use write_hole::WriteHole;

/// What a command of a member is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Task {
    /// A command of the host.
    Host(HostId),
    /// What a stripe must know before it is written.
    StripeRead(u32),
    /// Data and parity of a stripe.
    StripeWrite(u32),
    /// Copying a block of a mirror to a spare: which copy.
    CopyRead(u32),
    CopyWrite(u32),
    /// The page of the bitmap.
    Bitmap(),
    /// Making the copies of a mirror equal after a loss of power: which block.
    SyncRead(u32),
    SyncWrite(u32),
}
persistent_cases!(Task {
    Host(host),
    StripeRead(stripe),
    StripeWrite(stripe),
    CopyRead(copy),
    CopyWrite(copy),
    Bitmap(),
    SyncRead(block),
    SyncWrite(block),
});

/// A command of a member: of the device that has its seat.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Purpose {
    task: Task,
    seat: u32,
}
persistent!(Purpose { state { task, seat } });

/// In the fleet, a member is a device, whichever seat it has.
type Io = crate::fleet::Io<Purpose>;

/// Part of a command, on one member.
#[derive(Clone, Copy, Debug)]
struct Piece {
    member: u32,
    offset: u64,
    len: u64,
}

/// An array of devices.
pub struct Array {
    layout: Layout,
    read_balance: ReadBalance,
    /// TRIM reaches the members.
    trims: bool,
    /// Bytes of the members that no layout reaches.
    wasted: u64,
    /// Members and spares.
    fleet: Fleet<Own, Purpose>,
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
    resync: Resync,
    /// What members may disagree on when power goes, whether any has a volatile write cache, and what was torn.
    unsettled: Unsettled,
    volatile_members: bool,
    hole: WriteHole,
    bitmap: Option<Bitmap>,
    bus: Option<Bus>,
    /// What the members needed together for each command of the host that took more than one of theirs, by place.
    sums: Vec<Parts>,
    stripes: Stripes,
    /// Contents, in tests.
    versions: Option<Versions>,
    /// A stripe whose parity the untimed path has still to write.
    unfinished: Option<Unfinished>,
    /// Which copy the next read takes, in turn.
    turn: u32,
    /// TRIMs that did not reach the members.
    trims_dropped: u64,
    pieces: Vec<Piece>,
    /// The last piece of each member in `pieces`.
    last_piece: Vec<u32>,
    stripe_parts: Vec<plan::Part>,
}
persistent!(Array {
    state {
        fleet, seats, degraded, failures, rebuild, resync, sums, stripes, unfinished, turn, trims_dropped,
        unsettled, hole,
    }
    parts { versions, bitmap, bus }
    built {
        layout, volatile_members, read_balance, trims, wasted, watches_wear, may_fail, pieces, last_piece, stripe_parts,
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
        let seats = (0..n as u32).map(|slot| Seat { slot, ..Seat::default() }).collect();
        let rebuild = Rebuild::new(keys, n as u32..members.len() as u32, build.stream("rebuild"));
        let bitmap = build::bitmap(keys, &layout, &members[..n])?;
        let mut array = Array {
            seats,
            degraded: false,
            may_fail: !keys.fail.is_empty(),
            watches_wear: keys.fail.iter().any(|fail| fail.worn.is_some()),
            failures: Failures::new(&keys.fail),
            rebuild,
            resync: Resync::new(),
            unsettled: Unsettled::new(&layout, bitmap.as_ref()),
            volatile_members: members.iter().any(|member| member.is_volatile()),
            hole: WriteHole::default(),
            bitmap,
            bus: keys.bus.as_ref().map(Bus::new).transpose()?,
            read_balance: keys.read_balance,
            trims: keys.trim.unwrap_or(layout.parity().is_none()),
            wasted: total - used,
            fleet: Fleet::new(layout.capacity(), members, false),
            sums: Vec::new(),
            stripes: Stripes::new(&layout, keys.stripe_cache),
            versions: build.keep_versions.then(Versions::default),
            unfinished: None,
            turn: 0,
            trims_dropped: 0,
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

    /// What has a seat.
    #[inline]
    fn member(&self, seat: u32) -> &Member {
        &self.fleet.members[self.seats[seat as usize].slot as usize]
    }

    #[inline]
    fn member_mut(&mut self, seat: u32) -> &mut Member {
        &mut self.fleet.members[self.seats[seat as usize].slot as usize]
    }

    /// A command for what has a seat.
    #[inline]
    fn io(&self, task: Task, seat: u32, op: Op, offset: u64, len: u64) -> Io {
        let member = self.seats[seat as usize].slot as usize;
        Io { member, op, offset, len, purpose: Purpose { task, seat } }
    }

    /// Sends a command to a member.
    #[inline]
    fn send(&mut self, io: Io, stamp: u64, compressible: u8) {
        // The copies of a mirror must not differ by a write that is on its way while they are made equal, if they may be.
        let unequal = self.may_fail || !self.resync.stale.is_empty();
        let watched = io.op == Op::Write && unequal && self.layout.copies() > 1;
        let id = if self.bus.is_none() {
            self.fleet.send(io, stamp, compressible)
        } else {
            self.fleet.enlist(io)
        };
        if watched {
            self.fleet.watch(id, io.purpose.seat, io.offset, io.len);
        }
        if self.bus.is_some() {
            self.send_across(id, stamp, compressible);
        }
    }

    /// Whether a write of so many bytes from a place of a mirror on is in flight.
    fn is_written_to(&self, Place { member, offset }: Place, len: u64) -> bool {
        self.fleet.is_touched(member, offset, len)
    }

    /// Does a command in no time on what has a seat.
    fn apply_to(&mut self, seat: u32, command: &Command) {
        self.fleet.apply(self.seats[seat as usize].slot as usize, command);
    }

    /// A command of a member has come to its end.
    fn finish_io(&mut self, id: IoId, completion: &Completion) {
        let io = self.fleet.take(id);
        self.answered(io, completion);
    }
}

impl Composite for Array {
    fleet_of!(Own, Purpose);
    const KIND: &'static str = "array";
    const PASSES: bool = true;

    #[inline]
    fn way_through(&mut self, command: &Command) -> Option<(usize, Command)> {
        self.only_member(command)
    }

    fn begin(&mut self, host: HostId) {
        if self.sums.len() <= host.index() {
            self.sums.push(Parts::default());
        }
        self.rebuild.host_seen = true;
        if !self.waits_for_block(host) {
            self.dispatch(host);
        }
    }

    #[inline]
    fn returned(&mut self, id: IoId, completion: &Completion) {
        let io = self.fleet.ios[id];
        if self.versions.is_some() && io.op == Op::Read {
            self.check_digest(&io, completion.digest);
        }
        match &self.bus {
            None => self.finish_io(id, completion),
            Some(_) if io.op == Op::Read => self.transfer_read(id, completion),
            Some(_) => self.finish_io(id, &self.with_bus(id, completion)),
        }
    }

    #[inline]
    fn answered(&mut self, io: Io, completion: &Completion) {
        match io.purpose.task {
            Task::Host(host) => self.host_answered(host, &io, &completion.parts),
            Task::StripeRead(stripe) => self.stripe_answered(stripe, false, &completion.parts),
            Task::StripeWrite(stripe) => self.stripe_answered(stripe, true, &completion.parts),
            Task::CopyRead(_) | Task::CopyWrite(_) => self.copy_answered(&io),
            Task::Bitmap() => self.bitmap_answered(),
            Task::SyncRead(_) | Task::SyncWrite(_) => self.sync_answered(&io),
        }
    }

    fn timer(&mut self, which: u32) {
        self.something_is_due(which);
    }

    fn expect_below(&self, op: Op, offset: u64, ahead: Distance) {
        self.expect_of_members(op, offset, ahead);
    }

    fn fast_path_below(&self, command: &Command) -> bool {
        self.is_fast_path(command)
    }

    #[inline]
    fn resume_time(&mut self) {
        if self.unfinished.is_some() {
            self.finish_untimed();
        }
        self.fleet.plan_members();
    }

    fn lose_power(&mut self, now: u64, missed: &mut Missed) -> u64 {
        missed.cannot_tell();
        self.resume_time();
        self.lose_all_power(now)
    }

    fn start_up(&mut self) {
        self.resume_after_outage();
    }

    fn begin_settling(&mut self) {
        // Blocks that are being rebuilt are brought to their end, the next one is not begun.
        self.pause_rebuild(true);
    }

    fn is_working(&self) -> bool {
        let bitmap = self.bitmap.as_ref().is_some_and(Bitmap::is_busy);
        bitmap || self.rebuild.is_under_way() || self.resync.busy
    }

    fn end_settling(&mut self) {
        self.pause_rebuild(false);
    }

    fn apply_untimed(&mut self, command: &Command) {
        self.apply_command(command);
    }

    fn content_of(&self, offset: u64) -> u64 {
        self.content_at(offset)
    }

    fn visit_counters(&self, visit: &mut dyn FnMut(&'static str, u64)) {
        self.show_counters(visit);
        if let Some(bus) = &self.bus {
            bus.counters(visit);
        }
    }

    fn place_name(&self, member: usize) -> String {
        match member.checked_sub(self.seats.len()) {
            None => format!("member{member}"),
            Some(nth) => format!("spare{nth}"),
        }
    }

    fn verify_own(&self) {
        self.verify_redundancy();
    }
}
