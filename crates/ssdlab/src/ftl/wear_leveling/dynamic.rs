//! Dynamic: nothing moves; wear is levelled among the blocks that data leaves by itself.

use super::WearLeveling;
use crate::persist::persistent;

pub struct Dynamic;

persistent!(Dynamic { state {} });

impl WearLeveling for Dynamic {}
