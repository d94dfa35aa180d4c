//! Numbers as fio job files write them.
//!
//! Sizes are binary (`k` is 1024) unless `kb_base=1000`; `kib` is the other base, as in fio. Text
//! that fio reads only in part, such as `1.5m` (one byte to fio) or `4kx`, is refused here.

use super::pattern::Amount;
use crate::error::{Error, Result};

/// A whole number with an optional suffix `k m g t p`; `base` is 1024 or 1000 (`kb_base`).
///
/// # Errors
/// [`Error::Value`] for anything else, fractions and negative numbers included.
pub fn bytes(text: &str, base: u64) -> Result<u64> {
    let wrong = || {
        Error::value(
            text,
            "a whole number, with k, m, g, t or p behind it if need be (fio reads no fractions)",
        )
    };
    let (number, suffix) = split(text).ok_or_else(wrong)?;
    let factor = size_factor(&suffix, base).ok_or_else(wrong)?;
    number.checked_mul(factor).ok_or_else(|| Error::value(text, "a number below 2^64"))
}

/// The same above 0: fio refuses a 0 of options with a least value of 1, and in lists of several takes the 0 as
/// absent after a complaint.
///
/// # Errors
/// [`Error::Value`] as [`bytes`], and for 0.
pub fn above_zero(text: &str, base: u64) -> Result<u64> {
    match bytes(text, base)? {
        0 => Err(Error::value(text, "a size above 0")),
        n => Ok(n),
    }
}

/// A size, or a whole percentage of the device or file.
///
/// # Errors
/// [`Error::Value`] as [`bytes`], and for more than 100 %.
pub fn amount(text: &str, base: u64) -> Result<Amount> {
    let Some(percent) = text.trim().strip_suffix('%') else {
        return bytes(text, base).map(Amount::Bytes);
    };
    match percent.parse::<u8>() {
        Ok(p) if p <= 100 => Ok(Amount::Percent(f64::from(p))),
        _ => Err(Error::value(text, "a whole percentage from 0% to 100%")),
    }
}

const MICROSECOND: u64 = 1_000;

/// A time in ns; a number without a unit counts in `unit` ns.
///
/// # Errors
/// [`Error::Value`] for an unknown unit, or a fraction of another unit than the option's.
pub fn time(text: &str, unit: u64) -> Result<u64> {
    let wrong = || {
        let default = if unit == MICROSECOND { "microseconds" } else { "seconds" };
        Error::value(
            text,
            format!("a whole number of {default}, or one with us, ms, s, m, h or d behind it"),
        )
    };
    let (number, suffix) = split(text).ok_or_else(wrong)?;
    // fio reads up to the point and takes the option's own unit, whatever stands behind: 0.5 is 0.
    let own = if unit == MICROSECOND { "us" } else { "s" };
    let suffix = match suffix.strip_prefix('.') {
        Some(rest) => {
            let fraction = rest.trim_start_matches(|c: char| c.is_ascii_digit());
            let read = rest.len() > fraction.len() && (fraction.is_empty() || fraction == own);
            if read { "" } else { suffix.as_str() }
        }
        None => suffix.as_str(),
    };
    let factor = match suffix {
        "" => unit,
        "us" | "usec" => 1_000,
        "ms" | "msec" => 1_000_000,
        "s" => 1_000_000_000,
        "m" => 60_000_000_000,
        "h" => 3_600_000_000_000,
        "d" => 86_400_000_000_000,
        _ => return Err(wrong()),
    };
    number.checked_mul(factor).ok_or_else(|| Error::value(text, "a time below 584 years"))
}

/// `a-b` (or `a:b`) read by `part`, smaller first; `None` where there is no separator.
pub fn range<T: PartialOrd>(
    text: &str,
    part: impl Fn(&str) -> Result<T>,
) -> Option<Result<(T, T)>> {
    let (a, b) = text.split_once(['-', ':'])?;
    Some(part(a).and_then(|a| part(b).map(|b| if b < a { (b, a) } else { (a, b) })))
}

/// Values per direction: one for all, `r,wt`, or `r,w,t`; an empty place keeps the old value.
///
/// # Errors
/// [`Error::Value`] for more than three places or none, or what `part` refuses.
pub fn per_direction<T: Clone>(
    text: &str,
    old: &mut [T; 3],
    part: impl Fn(&str) -> Result<T>,
) -> Result<()> {
    let places: Vec<&str> = text.split(',').map(str::trim).collect();
    if places.len() > 3 || places.iter().all(|p| p.is_empty()) {
        return Err(Error::value(text, "one value, or up to three by comma: reads, writes, trims"));
    }
    for (i, place) in places.iter().enumerate().filter(|(_, p)| !p.is_empty()) {
        let value = part(place)?;
        let last = i + 1 == places.len();
        let through = if last { 3 } else { i + 1 };
        old[i..through].fill(value);
    }
    Ok(())
}

/// Decimal or hexadecimal digits and what follows, in lower case.
fn split(text: &str) -> Option<(u64, String)> {
    let text = text.trim();
    let text = text.strip_prefix('+').unwrap_or(text);
    let (digits, radix) = match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        Some(hex) => (hex, 16),
        None => (text, 10),
    };
    let end = digits.find(|c: char| !c.is_digit(radix)).unwrap_or(digits.len());
    let number = u64::from_str_radix(&digits[..end], radix).ok()?;
    Some((number, digits[end..].trim().to_lowercase()))
}

fn size_factor(suffix: &str, base: u64) -> Option<u64> {
    let (power, rest) = match suffix.chars().next() {
        None => return Some(1),
        Some(c) => match "kmgtp".find(c) {
            Some(place) => (place as u32 + 1, &suffix[1..]),
            None => (0, suffix),
        },
    };
    // fio reads "ki" like "k"; only "kib" means the other base.
    match rest {
        "" | "b" => Some(base.pow(power)),
        "i" if power > 0 => Some(base.pow(power)),
        "ib" if power > 0 => Some(if base == 1024 { 1000u64 } else { 1024 }.pow(power)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_read_as_in_fio() {
        // Each was tried on fio 3.33 (`offset=`, first I/O of `write_iolog`).
        let cases = [
            ("1k", 1024),
            ("1K", 1024),
            ("1kb", 1024),
            ("1ki", 1024),
            ("1kib", 1000),
            ("1pib", 1_000_000_000_000_000),
            ("1mb", 1 << 20),
            ("1t", 1 << 40),
            ("0x100000", 1 << 20),
            ("010k", 10240),
            ("+5k", 5120),
            ("1m ", 1 << 20),
            ("1b", 1),
            ("4096", 4096),
        ];
        for (text, expected) in cases {
            assert_eq!(bytes(text, 1024), Ok(expected), "{text}");
        }
        assert_eq!(bytes("1k", 1000), Ok(1000));
        assert_eq!(bytes("1ki", 1000), Ok(1000));
        assert_eq!(bytes("1kib", 1000), Ok(1024));
    }

    #[test]
    fn what_fio_would_misread_is_refused() {
        for text in ["1.5m", "1e6", "1mx", "-1", "", "k", "4k*4", "0xk", "99999p", "1kk", "ä"] {
            assert!(bytes(text, 1024).is_err(), "{text}");
        }
        assert!(amount("50.5%", 1024).is_err());
        assert!(amount("101%", 1024).is_err());
        assert!(time("1.5ms", 1_000).is_err(), "1 us to fio");
        assert!(time("1.5m", 1_000_000_000).is_err(), "1 s to fio");
        assert!(time("1.", 1_000).is_err());
        assert!(time("1sec", 1_000).is_err());
    }

    #[test]
    fn a_time_without_a_unit_takes_the_option_s_unit() {
        assert_eq!(time("5", 1_000_000_000), Ok(5_000_000_000));
        assert_eq!(time("5", 1_000), Ok(5_000));
        assert_eq!(time("500MS", 1_000), Ok(500_000_000));
        assert_eq!(time("2m", 1_000), Ok(120_000_000_000));
    }

    #[test]
    fn of_a_fraction_of_a_second_the_whole_part_counts_as_in_fio() {
        // Tried on fio 3.33 (`startdelay=`, time to the end).
        for (text, seconds) in [("0.5", 0), ("1.7", 1), ("1.6s", 1)] {
            assert_eq!(time(text, 1_000_000_000), Ok(seconds * 1_000_000_000), "{text}");
        }
    }

    #[test]
    fn the_last_value_of_a_triple_serves_the_directions_behind_it() {
        let read = |text: &str| {
            let mut values = [1u64; 3];
            per_direction(text, &mut values, |t| bytes(t, 1024)).map(|()| values)
        };
        assert_eq!(read("4"), Ok([4, 4, 4]));
        assert_eq!(read("4,8"), Ok([4, 8, 8]));
        assert_eq!(read("4,8,16"), Ok([4, 8, 16]));
        assert_eq!(read(",8"), Ok([1, 8, 8]));
        assert_eq!(read(",8,"), Ok([1, 8, 1]));
        assert_eq!(read("4,"), Ok([4, 1, 1]));
        assert_eq!(read(",,8"), Ok([1, 1, 8]));
        assert!(read("1,2,3,4").is_err());
        assert!(read(",").is_err());
    }
}
