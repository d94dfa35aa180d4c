//! Where the time of a flash operation went.

use crate::nand::{Cause, Finished, NONE, OpKind};
use crate::stats::Part;

/// Whether an operation has brought a translation unit into the cache.
pub(super) fn fetches(f: &Finished) -> bool {
    f.kind == OpKind::Read && f.first != NONE
}

/// The same of most operations that a command waits for: those that waited neither for other operations nor for what
/// few drives do. `None` of any other.
#[inline]
pub(super) fn plain_parts(f: &Finished, now: u64) -> Option<[(Part, u64); 5]> {
    let rare = f.map_wait | f.parity_wait | f.fold_wait | f.fed;
    let [cells, channel, channel_wait, collection, ..] = flash_parts(f, now);
    let host = (Part::DieHost, f.start - f.ready - f.collection_wait);
    (rare == 0 && !fetches(f)).then_some([cells, channel, channel_wait, collection, host])
}

/// The time of a flash operation that ends `now`, by part, the latest first; a part may come twice.
pub(super) fn flash_parts(f: &Finished, now: u64) -> [(Part, u64); 10] {
    if fetches(f) {
        let mut parts = [(Part::MapFetch, 0); 10];
        parts[0].1 = now - f.ready;
        return parts;
    }
    let own = f.collection_wait + f.map_wait + f.parity_wait + f.fold_wait;
    // What is moved shares program units with what the host writes, which waits until it has been read.
    let by = |cause: Cause| f.fed_by == cause as u8;
    let fed_part = if by(Cause::Collection) || by(Cause::Wear) {
        Part::DieCollection
    } else if by(Cause::Fold) {
        Part::DieFold
    } else {
        Part::ReadModifyWrite
    };
    [
        (Part::Cells, now - f.start - f.bus_wait - f.bus),
        (Part::Channel, f.bus),
        (Part::ChannelWait, f.bus_wait),
        (Part::DieCollection, f.collection_wait),
        (Part::DieMap, f.map_wait),
        (Part::DieParity, f.parity_wait),
        (Part::DieFold, f.fold_wait),
        (Part::DieHost, f.start - f.ready - own),
        (fed_part, f.fed - f.map_fed),
        (Part::MapFetch, f.map_fed),
    ]
}
