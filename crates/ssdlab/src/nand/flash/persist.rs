//! What of dies, channels and queued operations is state.

use super::cause::OwnWork;
use super::{Cause, Channel, Die, Flash, FlashOp, OpKind, Phase, Queue};
use crate::error::Result;
use crate::persist::{Archive, Persist, persistent, persistent_enum};

persistent!(Flash {
    state { calendar, counters, ops, free, feeds, free_feed, order, active }
    parts { dies, channels }
    built { timing, units_per_program, policy }
});
persistent!(Die {
    state {
        stream, moving, reads, current, suspended, since, filled, remaining, busy, own, stuck, phase,
        suspended_phase,
    }
    built { channel }
});
persistent!(Channel { state { free_at, booked } });
persistent!(Queue { state { head, tail } });
persistent!(FlashOp {
    state {
        queued, ready, own_at_ready, map_fed, start, order, next, owner, first, units, repeat, feeds,
        feeds_more, host_units, epoch, bus_wait, overtaken, suspended, die, awaits, kind, cause, slc,
        in_stream, discarded,
    }
});

impl Persist for OwnWork {
    fn persist(&mut self, archive: &mut Archive<'_>) -> Result<()> {
        self.0.persist(archive)
    }
}
persistent_enum!(OpKind { Read, Program, Copy, Erase });
persistent_enum!(Phase { Idle, Sense, Bus, Program, Erase, Suspending });
persistent_enum!(Cause { HostRead, HostWrite, Collection, Wear, Map, Merge, Fold, Parity });
