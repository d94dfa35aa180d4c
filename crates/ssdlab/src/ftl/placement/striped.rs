//! Striped by address: a unit always goes to the same region, however busy it is. Cost: constant.

use super::Placement;
use crate::persist::persistent;

pub struct Striped;

persistent!(Striped {});

impl Placement for Striped {
    fn pick(
        &mut self,
        lpn: u32,
        _last: u32,
        _open: bool,
        regions: u32,
        _backlog: &dyn Fn(u32) -> u32,
    ) -> u32 {
        lpn % regions
    }

    fn binds(&self) -> bool {
        true
    }
}
