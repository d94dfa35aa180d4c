//! Newtypes for quantities that users write: time and size.
//!
//! Both parse the way people write them (`"75us"`, `"3.8 ms"`, `"4GiB"`, `"160 GB"`) and refuse a
//! bare number where the unit would be a guess. KiB, MiB are binary; kB, MB decimal.

use crate::error::{Error, Result};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;

/// A time span or an instant of virtual time, in nanoseconds.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Hash, Debug)]
pub struct Nanos(pub u64);

/// A number of bytes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Hash, Debug)]
pub struct Bytes(pub u64);

/// Bytes per second.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Hash, Debug)]
pub struct Rate(pub u64);

/// An instant that never comes: a device without anything to do answers this.
pub const NEVER: u64 = u64::MAX;

const TIME_UNITS: [(&str, u64); 7] = [
    ("ns", 1),
    ("us", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("min", 60_000_000_000),
    ("h", 3_600_000_000_000),
    ("d", 86_400_000_000_000),
];

const SIZE_UNITS: [(&str, u64); 11] = [
    ("B", 1),
    ("kB", 1_000),
    ("KB", 1_000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
    ("TB", 1_000_000_000_000),
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
    ("TiB", 1 << 40),
    ("PiB", 1 << 50),
];

/// Digits after the point that are looked at: enough for a byte of a PiB.
const DECIMALS: usize = 18;

/// Splits `"3.8 ms"` into its number and unit and scales it, to the nearest whole; `None` where it
/// does not parse or is too large.
fn scaled(text: &str, units: &[(&str, u64)]) -> Option<u64> {
    let text = text.trim();
    let split = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = (&text[..split], text[split..].trim());
    let factor = u128::from(units.iter().find(|(name, _)| *name == unit)?.1);
    let (whole, decimals) = number.split_once('.').unwrap_or((number, ""));
    let digits = |text: &str| if text.is_empty() { Some(0) } else { text.parse::<u64>().ok() };
    if number.len() < 2 && whole.is_empty() || decimals.contains('.') {
        return None;
    }
    let decimals = &decimals[..decimals.len().min(DECIMALS)];
    let scale = 10u128.pow(decimals.len() as u32);
    let part = u128::from(digits(decimals)?) * factor + scale / 2;
    u64::try_from(u128::from(digits(whole)?) * factor + part / scale).ok()
}

/// `n / unit` with the decimals that it needs, at most two.
fn in_units(n: u64, unit: u64) -> String {
    let hundredths = u128::from(n % unit) * 100 / u128::from(unit);
    let text = format!("{}.{hundredths:02}", n / unit);
    text.trim_end_matches('0').trim_end_matches('.').to_string()
}

impl Nanos {
    /// Whole microseconds.
    pub const fn micros(us: u64) -> Self {
        Nanos(us * 1_000)
    }
    /// Whole milliseconds.
    pub const fn millis(ms: u64) -> Self {
        Nanos(ms * 1_000_000)
    }
    /// As seconds, for reports.
    pub fn seconds(self) -> f64 {
        self.0 as f64 * 1e-9
    }
    /// Reads `"75us"`, `"3.8 ms"`, `"2h"`.
    pub fn parse(text: &str) -> Result<Self> {
        scaled(text, &TIME_UNITS).map(Nanos).ok_or_else(|| {
            Error::value(text, "a time with its unit (ns, us, ms, s, min, h, d), such as \"75us\"")
        })
    }
}

impl Bytes {
    /// Whole KiB.
    pub const fn kib(n: u64) -> Self {
        Bytes(n << 10)
    }
    /// Whole MiB.
    pub const fn mib(n: u64) -> Self {
        Bytes(n << 20)
    }
    /// Whole GiB.
    pub const fn gib(n: u64) -> Self {
        Bytes(n << 30)
    }
    /// Reads `"4GiB"`, `"160 GB"`, `"512 B"`.
    pub fn parse(text: &str) -> Result<Self> {
        scaled(text, &SIZE_UNITS).map(Bytes).ok_or_else(|| {
            Error::value(
                text,
                "a size with its unit (B, kB, MB, GB, KiB, MiB, GiB, TiB), such as \"4GiB\"",
            )
        })
    }
}

impl Rate {
    /// Reads `"550MB/s"`, `"3.5 GB/s"`.
    pub fn parse(text: &str) -> Result<Self> {
        text.trim()
            .strip_suffix("/s")
            .and_then(|size| scaled(size, &SIZE_UNITS))
            .map(Rate)
            .ok_or_else(|| Error::value(text, "a rate with its unit, such as \"550MB/s\""))
    }
    /// Time that `bytes` take.
    #[inline]
    pub fn time(self, bytes: u64) -> u64 {
        let rate = self.0.max(1);
        // A wider division takes several times as long.
        match bytes.checked_mul(1_000_000_000) {
            Some(product) => product.div_ceil(rate),
            None => (u128::from(bytes) * 1_000_000_000).div_ceil(u128::from(rate)) as u64,
        }
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, unit) in [("GB", 1_000_000_000u64), ("MB", 1_000_000), ("kB", 1_000)] {
            if self.0 >= unit && self.0.is_multiple_of(unit / 10) {
                return write!(f, "{}{name}/s", in_units(self.0, unit));
            }
        }
        write!(f, "{}B/s", self.0)
    }
}

impl fmt::Display for Nanos {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let exact = |unit: u64| self.0.is_multiple_of(unit);
        match self.0 {
            n if n >= 1_000_000_000 && exact(10_000_000) => {
                write!(f, "{}s", in_units(n, 1_000_000_000))
            }
            n if n >= 1_000_000 && exact(10_000) => write!(f, "{}ms", in_units(n, 1_000_000)),
            n if n >= 1_000 && exact(10) => write!(f, "{}us", in_units(n, 1_000)),
            n => write!(f, "{n}ns"),
        }
    }
}

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Two decimals at most, and only where they are exact; 160 GB is no round number of MiB.
        for (name, unit) in [
            ("PiB", 1u64 << 50),
            ("TiB", 1 << 40),
            ("GiB", 1 << 30),
            ("MiB", 1 << 20),
            ("TB", 1_000_000_000_000),
            ("GB", 1_000_000_000),
            ("MB", 1_000_000),
            ("KiB", 1 << 10),
        ] {
            if self.0 >= unit && self.0.is_multiple_of(unit / 4) {
                return write!(f, "{}{name}", in_units(self.0, unit));
            }
        }
        write!(f, "{}B", self.0)
    }
}

/// Takes a text; anything else is answered with what it should have been.
struct TextVisitor(&'static str);

impl serde::de::Visitor<'_> for TextVisitor {
    type Value = String;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
    fn visit_str<E: serde::de::Error>(self, text: &str) -> std::result::Result<String, E> {
        Ok(text.to_string())
    }
}

macro_rules! text_serde {
    ($type:ident, $what:literal, $example:literal) => {
        impl schemars::JsonSchema for $type {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($type).into()
            }
            fn inline_schema() -> bool {
                true
            }
            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                schemars::json_schema!({ "type": "string", "examples": [$example] })
            }
        }
        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: Deserializer<'de>>(d: D) -> std::result::Result<Self, D::Error> {
                let expected = concat!($what, " with its unit, such as \"", $example, "\"");
                let text = d.deserialize_str(TextVisitor(expected))?;
                $type::parse(&text).map_err(serde::de::Error::custom)
            }
        }
        impl Serialize for $type {
            fn serialize<S: Serializer>(&self, s: S) -> std::result::Result<S::Ok, S::Error> {
                s.collect_str(self)
            }
        }
    };
}
text_serde!(Nanos, "a time", "75us");
text_serde!(Bytes, "a size", "4GiB");
text_serde!(Rate, "a rate", "550MB/s");

/// A number in so many figures at most, without those that binary fractions leave behind.
pub(crate) fn figures(most: usize, x: f64) -> String {
    let rounded: f64 = format!("{x:.*e}", most - 1).parse().unwrap_or(x);
    rounded.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_and_sizes_read_as_people_write_them() {
        assert_eq!(Nanos::parse("3.8 ms").unwrap(), Nanos::micros(3800));
        assert_eq!(Nanos::parse("75us").unwrap(), Nanos::micros(75));
        assert_eq!(Bytes::parse("4GiB").unwrap(), Bytes::gib(4));
        assert_eq!(Bytes::parse("160 GB").unwrap(), Bytes(160_000_000_000));
        assert_eq!(Bytes::gib(4).to_string(), "4GiB");
        assert_eq!(Bytes(160_000_000_000).to_string(), "160GB");
        assert_eq!(Bytes(5 << 50).to_string(), "5PiB");
        assert_eq!(Bytes(u64::MAX).to_string(), "18446744073709551615B");
        assert_eq!(Bytes::parse("1.5KiB").unwrap().to_string(), "1.5KiB");
        assert_eq!(Nanos::micros(3800).to_string(), "3.8ms");
    }

    #[test]
    fn a_number_has_no_figures_that_binary_fractions_leave_behind() {
        assert_eq!(figures(9, 1.07 - 1.0), "0.07");
        assert_eq!(figures(9, 0.394_140_077_138_849_9), "0.394140077");
        assert_eq!(figures(6, 20.0), "20");
    }

    #[test]
    fn a_number_without_a_unit_is_refused_with_an_example() {
        let message = Nanos::parse("75").unwrap_err().to_string();
        assert!(message.contains("75") && message.contains("75us"), "{message}");
        assert!(Bytes::parse("4 GiBs").is_err());
        assert!(Bytes::parse("").is_err());
    }
}
