//! Ghost: what missed before and is remembered comes in.

use super::remembered::Remembered;
use super::{Admission, Asked};
use crate::error::Result;

struct Ghost(Remembered);

pub fn build(asked: Asked<'_>) -> Result<Box<dyn Admission>> {
    let times = asked.number("times as many as the cache holds", 1.0, 0.001..=1000.0)?;
    Ok(Box::new(Ghost(Remembered::new(asked.frames, times, false))))
}

impl Admission for Ghost {
    fn admits(&mut self, key: u64, _bytes: u32, _used: f64) -> bool {
        self.0.misses(key, 2) == 2
    }
}
