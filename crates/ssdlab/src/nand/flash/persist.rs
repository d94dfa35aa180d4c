//! What of dies, channels and queued operations is state.

use super::cause::OwnWork;
use super::{
    Aside, Beside, Cause, Channel, Die, Flash, FlashOp, OpKind, Phase, Plane, Queue, Riders,
};
use crate::error::Result;
use crate::persist::{Archive, Persist, persistent, persistent_enum};

persistent!(Flash {
    state { calendar, counters, ops, own_at_ready, free, feeds, free_feed, order, active, riders, asides }
    parts { dies, channels, rows, beside, planes, retrying }
    built { timing, places, units_per_program, policy, registers, acting }
});
persistent!(Die {
    state {
        stream, moving, reads, current, cause, suspended, since, filled, remaining, busy, own, stuck, phase,
        suspended_phase,
    }
    built { channel }
});
persistent!(Channel { state { free_at, settled, booked } });
persistent!(Beside { state { sending, loaded, filled, event, since, own } });
persistent!(Plane { state { reads, current, cause, sensing, until, group, sent, since, own } });
persistent!(Aside { state { group, plane, sent, riders, chain, hidden } });
persistent!(Riders { parts { leaders } });
persistent!(Queue { state { head, tail } });
persistent!(FlashOp {
    state {
        queued, ready, map_fed, start, order, next, owner, first, units, repeat, feeds,
        feeds_more, host_units, epoch, bus_wait, overtaken, suspended, sensing, working, senses,
        die, awaits, kind, cause, fed_by, slc, in_stream, moves, discarded,
    }
});

impl Persist for OwnWork {
    fn persist(&mut self, archive: &mut Archive<'_>) -> Result<()> {
        self.0.persist(archive)
    }
}
persistent_enum!(OpKind { Read, Program, Copy, Erase });
persistent_enum!(Phase { Idle, Sense, Bus, Program, Erase, Suspending, Planes, Copying });
persistent_enum!(Cause { HostRead, HostWrite, Collection, Wear, Map, Merge, Fold, Parity });
