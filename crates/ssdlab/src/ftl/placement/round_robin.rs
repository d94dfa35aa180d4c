//! Round robin: the regions take program units in turn. Cost: constant.

use super::Placement;
use crate::persist::persistent;

pub struct RoundRobin;

persistent!(RoundRobin {});

impl Placement for RoundRobin {
    fn pick(
        &mut self,
        _lpn: u32,
        last: u32,
        open: bool,
        regions: u32,
        _backlog: &dyn Fn(u32) -> u32,
    ) -> u32 {
        if open {
            last
        } else if last + 1 >= regions {
            0
        } else {
            last + 1
        }
    }
}
