//! Least busy: the next region in turn whose dies have the smallest backlog.
//!
//! Depends on timing, so the untimed path leaves an equivalent state, not the same one. Cost: one
//! look at each region until an idle one is found.

use super::Placement;
use crate::persist::persistent;

pub struct LeastBusy;

persistent!(LeastBusy {});

impl Placement for LeastBusy {
    fn pick(
        &mut self,
        _lpn: u32,
        last: u32,
        open: bool,
        regions: u32,
        backlog: &dyn Fn(u32) -> u32,
    ) -> u32 {
        if open {
            return last;
        }
        let (mut best, mut least) = (0, u32::MAX);
        for k in 1..=regions {
            let region = (last + k) % regions;
            let busy = backlog(region);
            if busy < least {
                (best, least) = (region, busy);
            }
            if busy == 0 {
                break;
            }
        }
        best
    }
}
