//! Size: small objects come in.

use super::{Admission, Asked};
use crate::error::{Error, Result};
use crate::units::Bytes;

struct Size(u64);

pub fn build(asked: Asked<'_>) -> Result<Box<dyn Admission>> {
    if !asked.objects {
        return Err(Error::value("size", "a trace that names objects: blocks are all of one size"));
    }
    let Some(text) = asked.value else {
        return Err(Error::value("size", "the size from which on nothing is let in: size:1MiB"));
    };
    let plain = text.parse().ok().map(Bytes);
    let below = plain.map_or_else(|| Bytes::parse(text), Ok)?;
    Ok(Box::new(Size(below.0)))
}

impl Admission for Size {
    fn admits(&mut self, _key: u64, bytes: u32, _used: f64) -> bool {
        u64::from(bytes) < self.0
    }
}
