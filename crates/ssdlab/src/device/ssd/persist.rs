//! What of the drive is state.

use super::{Active, Ssd};
use crate::persist::persistent;

persistent!(Ssd {
    state {
        ftl, engine, calendar, commands, free, in_flight, waiting, flushing, purging, idle_due, folding,
        map_fetches, serial, ready, host, trims, power,
    }
    parts { buffer, limit, last_reads, read_ahead }
    built {
        capacity, full_capacity, unit_bytes, keep_versions, rated_cycles, t_erase, idle_after,
        // Only while the end of a program lets commands go on.
        releasing,
    }
});
persistent!(Active {
    state {
        command, submitted, handled, entered, limited, placed, remaining, digest,
    }
});
