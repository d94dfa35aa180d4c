//! The firmware of a RAID card on its cores: it sees to a command of the host's, and to each command that the drives
//! below are given, for the host, for parity, for copies, for caches, for rebuilding.
//!
//! Which commands the drives are given is the business of the devices below. They count them, and the card looks at each
//! instant at which something happens there. A command of the host's ends when a core is free again after that: the
//! interrupts of its drives are seen to first. What the devices below do by themselves is not held back.
//!
//! A read or a write that goes to one drive as it is takes the fast path, if there is one, and costs neither; not in
//! a card whose RAM buffers writes or keeps reads.

use super::keys::FirmwareKeys;
use super::write_back::Cache;
use super::{Controller, Purpose};
use crate::contract::{Device, Op};
use crate::fleet::{HostId, Io};
use crate::persist::persistent;

/// See the module.
pub(super) struct Firmware {
    command_time: u64,
    member_command_time: u64,
    fast_path: bool,
    /// Commands of the host's that it has seen to, and of drives.
    commands: u64,
    member_commands: u64,
    /// Commands of drives that it has not seen to: by the fast path, and while all came to rest.
    passed: u64,
}
persistent!(Firmware {
    state { commands, member_commands, passed }
    built { command_time, member_command_time, fast_path }
});

impl Firmware {
    /// `None` where it takes no time.
    pub fn new(keys: &FirmwareKeys) -> Option<Self> {
        let (command_time, member_command_time) = (keys.command_time.0, keys.member_command_time.0);
        (command_time > 0 || member_command_time > 0).then_some(Firmware {
            command_time,
            member_command_time,
            fast_path: keys.fast_path,
            commands: 0,
            member_commands: 0,
            passed: 0,
        })
    }

    pub fn counters(&self, visit: &mut dyn FnMut(&'static str, u64)) {
        visit("firmware_commands", self.commands);
        visit("firmware_member_commands", self.member_commands);
    }
}

impl Controller {
    /// What a command of the host's takes of a core besides the time that all take.
    #[inline]
    pub(super) fn firmware_time(&mut self, host: HostId) -> u64 {
        let Some(firmware) = &mut self.firmware else { return 0 };
        let in_ram = self.cache.as_ref().is_some_and(Cache::is_used);
        let host = &mut self.fleet.hosts[host];
        let moves_data = matches!(host.command.op, Op::Read | Op::Write);
        let below = &self.fleet.members[0];
        let passes = firmware.fast_path && moves_data && !in_ram && below.fast_path(&host.command);
        host.own.by_firmware = !passes;
        if passes {
            return 0;
        }
        firmware.commands += 1;
        firmware.command_time
    }

    /// Sends a command below for one of the host's.
    #[inline]
    pub(super) fn send_for(&mut self, host: HostId, io: Io<Purpose>, stamp: u64, compressible: u8) {
        self.fleet.send(io, stamp, compressible);
        if let Some(firmware) = &mut self.firmware {
            firmware.passed += u64::from(!self.fleet.hosts[host].own.by_firmware);
        }
    }

    /// The cores see to the commands that the drives were given at this instant.
    #[inline(never)]
    pub(super) fn see_to_members(&mut self) {
        let Some(firmware) = &mut self.firmware else { return };
        // A command on the fast path may be given later than it was sent, by a bus.
        let seen = firmware.passed + firmware.member_commands;
        for _ in seen..self.fleet.drive_commands() {
            firmware.member_commands += 1;
            self.cores.take(self.fleet.now, firmware.member_command_time);
        }
    }

    /// What the drives were given meanwhile is not seen to.
    pub(super) fn ignore_members(&mut self) {
        if let Some(firmware) = &mut self.firmware {
            firmware.passed = self.fleet.drive_commands() - firmware.member_commands;
        }
    }
}
