//! nhit of Open CAS: what missed so often comes in, once the cache is nearly full; counts of twice as many blocks as the
//! cache holds are kept, the first forgotten first; what comes in is counted anew in its old place.

use super::remembered::Remembered;
use super::{Admission, Asked};
use crate::error::Result;

/// Part of the cache in use from which on it counts.
const TRIGGER: f64 = 0.8;
/// Counts per frame.
const COUNTED: f64 = 2.0;
/// Misses at which a block comes in.
const THRESHOLD: f64 = 3.0;

struct NHit {
    remembered: Remembered,
    threshold: u32,
}

pub fn build(asked: Asked<'_>) -> Result<Box<dyn Admission>> {
    let threshold = asked.number("a number of misses", THRESHOLD, 2.0..=1000.0)? as u32;
    Ok(Box::new(NHit { remembered: Remembered::new(asked.frames, COUNTED, true), threshold }))
}

impl Admission for NHit {
    fn admits(&mut self, key: u64, _bytes: u32, used: f64) -> bool {
        used < TRIGGER || self.remembered.misses(key, self.threshold) >= self.threshold
    }
}
