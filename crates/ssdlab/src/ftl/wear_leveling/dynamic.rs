//! Dynamic: nothing moves; wear is levelled among the blocks that data leaves by itself.

use super::WearLeveling;
use crate::ftl::Blocks;
use crate::persist::persistent;

pub struct Dynamic;

persistent!(Dynamic { state {} });

impl WearLeveling for Dynamic {
    fn moves_data(&self) -> bool {
        false
    }
    fn pick(
        &mut self,
        _: &Blocks,
        _: u32,
        _: &mut dyn Iterator<Item = u32>,
        _: u64,
    ) -> Option<u32> {
        None
    }
}
