//! Losses of power of a device made of devices: all that is in flight is forgotten, the members lose power too, and
//! what comes until they are ready waits.

use super::{Fleet, HostId, Timers};
use crate::contract::{Device, Missed};
use crate::persist::persistent;
use crate::sim::Slab;
use crate::units::NEVER;

/// What a fleet knows of losses of power.
pub struct Power {
    /// When the members are ready again; [`NEVER`] but between a loss of power and that instant.
    pub back: u64,
    /// When power was lost; [`NEVER`] while commands are taken.
    since: u64,
    /// Commands that wait for the start.
    held: Vec<HostId>,
    pub losses: u64,
    pub commands_cut: u64,
    startup_ns: u64,
    /// Bytes that volatile memory of the device itself held of what was written, and lost.
    pub lost_bytes: u64,
}
persistent!(Power { state { back, since, held, losses, commands_cut, startup_ns, lost_bytes } });

impl Default for Power {
    fn default() -> Self {
        Power {
            back: NEVER,
            since: NEVER,
            held: Vec::new(),
            losses: 0,
            commands_cut: 0,
            startup_ns: 0,
            lost_bytes: 0,
        }
    }
}

impl Power {
    /// Whether commands have to wait.
    #[inline]
    pub fn is_off(&self) -> bool {
        self.since != NEVER
    }

    /// A command waits for the start.
    pub fn hold(&mut self, host: HostId) {
        self.held.push(host);
    }

    /// Power goes, with so many commands in flight; it is back at `ready`.
    pub fn cut(&mut self, now: u64, ready: u64, in_flight: u64) {
        self.losses += 1;
        self.commands_cut += in_flight;
        self.held.clear();
        (self.back, self.since) = (ready, self.since.min(now));
    }

    /// Commands are taken again: those that waited, in their order.
    pub fn started(&mut self, now: u64) -> Vec<HostId> {
        self.startup_ns += now - self.since;
        self.since = NEVER;
        std::mem::take(&mut self.held)
    }

    /// Shows the counters of a device that has lost power.
    pub fn counters(&self, visit: &mut dyn FnMut(&'static str, u64)) {
        if self.losses > 0 {
            visit("power_losses", self.losses);
            visit("power_commands_cut", self.commands_cut);
            visit("power_lost_bytes", self.lost_bytes);
            visit("power_startup_ns", self.startup_ns);
        }
    }
}

impl<O: Copy + Default, P: Copy + Default + std::fmt::Debug> Fleet<O, P> {
    /// Power goes at `now`, for the members too; everything in flight is forgotten. Answers when all members
    /// are ready again, and what has not arrived at each.
    pub fn cut(&mut self, now: u64) -> (u64, Vec<Missed>) {
        let mut ready = now;
        let mut missed = vec![Missed::default(); self.members.len()];
        let members = self.members.iter_mut().zip(&mut missed);
        for (member, missed) in members.filter(|(member, _)| !member.dead) {
            ready = ready.max(member.power_cut(now, missed));
            member.cut(now);
        }
        self.power.cut(now, ready, u64::from(self.in_flight));
        self.now = now;
        (self.ios, self.hosts) = (Slab::new(), Slab::new());
        self.watched.clear();
        self.clearing = 0;
        (self.in_flight, self.last_host, self.purging) = (0, now, false);
        self.failing.clear();
        self.behind.clear();
        self.ready.clear();
        self.timers = Timers::new();
        self.unplanned = true;
        self.plan_members();
        (ready, missed)
    }
}
