//! Probabilistic: a miss comes in by lot.

use super::{Admission, Asked};
use crate::error::Result;
use crate::rng::Stream;

struct Probabilistic {
    share: f64,
    stream: Stream,
}

pub fn build(asked: Asked<'_>) -> Result<Box<dyn Admission>> {
    let share = asked.number("a probability", 0.5, 1e-6..=1.0)?;
    Ok(Box::new(Probabilistic { share, stream: asked.stream }))
}

impl Admission for Probabilistic {
    fn admits(&mut self, _key: u64, _bytes: u32, _used: f64) -> bool {
        self.stream.unit() < self.share
    }
}
