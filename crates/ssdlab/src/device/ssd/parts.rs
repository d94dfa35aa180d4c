//! Where the time of a flash operation went, and that of a command which ends with one.

use super::{Active, Ssd};
use crate::contract::{Command, Completion};
use crate::nand::{Finished, NONE, OpKind};
use crate::stats::{Part, Parts};

/// Whether an operation has brought a translation unit into the cache.
pub(super) fn fetches(f: &Finished) -> bool {
    f.kind == OpKind::Read && f.first != NONE
}

/// The same of most operations that a command waits for: those that waited neither for other operations nor for what
/// few drives do. `None` of any other.
#[inline]
fn plain_parts(f: &Finished, now: u64) -> Option<[(Part, u64); 5]> {
    let rare = f.map_wait | f.parity_wait | f.fold_wait | f.fed;
    let [cells, channel, channel_wait, collection, .., host, _, _] = flash_parts(f, now);
    (rare == 0 && !fetches(f)).then_some([cells, channel, channel_wait, collection, host])
}

/// The time of a flash operation that ends `now`, by part, the latest first.
pub(super) fn flash_parts(f: &Finished, now: u64) -> [(Part, u64); 10] {
    if fetches(f) {
        let mut parts = [(Part::MapFetch, 0); 10];
        parts[0].1 = now - f.ready;
        return parts;
    }
    let own = f.collection_wait + f.map_wait + f.parity_wait + f.fold_wait;
    [
        (Part::Cells, now - f.start - f.bus_wait - f.bus),
        (Part::Channel, f.bus),
        (Part::ChannelWait, f.bus_wait),
        (Part::DieCollection, f.collection_wait),
        (Part::DieMap, f.map_wait),
        (Part::DieParity, f.parity_wait),
        (Part::DieFold, f.fold_wait),
        (Part::DieHost, f.start - f.ready - own),
        (Part::ReadModifyWrite, f.fed - f.map_fed),
        (Part::MapFetch, f.map_fed),
    ]
}

impl Ssd {
    /// Completes a command that needs nothing more from the flash.
    ///
    /// If it waited for room in the buffer, or a flush for its data, the program that ended the
    /// wait says what the flash was busy with: its way back from now, as far as the wait reaches.
    /// What is left was spent behind other data in the buffer.
    pub(super) fn complete_at_once(&mut self, index: u32) {
        let now = self.engine.now;
        let &Active { submitted, handled, limited, .. } = &self.commands[index as usize];
        let controller = (Part::Controller, handled - submitted);
        let mut wait = now - handled - limited;
        if wait == 0 && limited == 0 {
            return self.complete(index).put_few([controller]);
        }
        let released = self.releasing;
        let parts = self.complete(index);
        let mut share = |(part, time): (Part, u64)| {
            let share = time.min(wait);
            wait -= share;
            (part, share)
        };
        if let (0, Some(f)) = (limited, &released)
            && let Some(plain) = plain_parts(f, now)
        {
            let [a, b, c, d, e] = plain.map(share);
            return parts.put_few([controller, a, b, c, d, e, (Part::BufferWait, wait)]);
        }
        parts.put([controller, (Part::WriteLimit, limited)]);
        if let Some(f) = &released {
            parts.put(flash_parts(f, now).map(&mut share));
        }
        parts.put([(Part::BufferWait, wait)]);
    }

    /// Completes a command whose last flash operation has just ended.
    pub(super) fn complete_after(&mut self, index: u32, f: &Finished) {
        let now = self.engine.now;
        let &Active { submitted, handled, entered, limited, .. } = &self.commands[index as usize];
        let (controller, wait) = ((Part::Controller, handled - submitted), entered - handled);
        let parts = self.complete(index);
        if let (0, Some([a, b, c, d, e])) = (wait, plain_parts(f, now)) {
            parts.put_few([controller, a, b, c, d, e]);
        } else {
            let waits = [(Part::WriteLimit, limited), (Part::BufferWait, wait - limited)];
            parts.put([controller].into_iter().chain(waits).chain(flash_parts(f, now)));
        }
        debug_assert_eq!(parts.total(), now - submitted, "{f:?} {parts:?}");
    }

    /// Ends a command; answers where it is to be said where its time went.
    #[inline(always)]
    pub(super) fn complete(&mut self, index: u32) -> &mut Parts {
        let Active { command: Command { tag, .. }, digest, .. } = self.commands[index as usize];
        self.free.push(index);
        self.in_flight -= 1;
        if self.in_flight == 0 {
            self.plan_idle();
        }
        let time = self.engine.now;
        self.ready.push(Completion { tag, time, parts: Parts::default(), digest });
        &mut self.ready.last_mut().expect("just put there").parts
    }
}
