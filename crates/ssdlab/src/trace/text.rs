//! Numbers and columns of text formats, from bytes.

use super::Kind;

/// A whole number.
#[inline]
pub(super) fn number(text: &[u8]) -> Option<u64> {
    if text.is_empty() || text.len() > 20 {
        return None;
    }
    let mut value = 0u64;
    for byte in text {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        value = value.checked_mul(10)?.checked_add(u64::from(digit))?;
    }
    Some(value)
}

/// A decimal number times `10^digits`; what stands behind so many decimals is dropped.
#[inline]
pub(super) fn decimal(text: &[u8], digits: u32) -> Option<u64> {
    let point = text.iter().position(|byte| *byte == b'.');
    let (whole, part) = match point {
        Some(at) => (&text[..at], &text[at + 1..]),
        None => (text, &text[text.len()..]),
    };
    if whole.is_empty() && part.is_empty() || !part.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let whole = if whole.is_empty() { 0 } else { number(whole)? };
    let kept = part.len().min(digits as usize);
    let fraction = if kept == 0 { 0 } else { number(&part[..kept])? };
    let scale = |exponent: u32| 10u64.checked_pow(exponent);
    let fraction = fraction.checked_mul(scale(digits - kept as u32)?)?;
    whole.checked_mul(scale(digits)?)?.checked_add(fraction)
}

/// The columns of a line of exactly `N`, spaces around them taken off.
#[inline]
pub(super) fn columns<const N: usize>(line: &[u8], separator: u8) -> Option<[&[u8]; N]> {
    let mut columns = [&line[..0]; N];
    let mut rest = line.split(|byte| *byte == separator);
    for column in &mut columns {
        *column = rest.next()?.trim_ascii();
    }
    rest.next().is_none().then_some(columns)
}

/// The words of a line, if there are exactly `N`.
#[inline]
pub(super) fn words<const N: usize>(line: &[u8]) -> Option<[&[u8]; N]> {
    let mut found = [&line[..0]; N];
    let mut rest = word_iter(line);
    for word in &mut found {
        *word = rest.next()?;
    }
    rest.next().is_none().then_some(found)
}

/// The words of a line.
#[inline]
pub(super) fn word_iter(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty())
}

/// A device's number of 32 bits.
#[inline]
pub(super) fn device(text: &[u8]) -> Option<u32> {
    u32::try_from(number(text)?).ok()
}

/// `R` or `W`, or the words, in either case.
pub(super) fn read_or_write(text: &[u8]) -> Option<Kind> {
    match text {
        b"R" | b"r" => Some(Kind::Read),
        b"W" | b"w" => Some(Kind::Write),
        _ if text.eq_ignore_ascii_case(b"read") => Some(Kind::Read),
        _ if text.eq_ignore_ascii_case(b"write") => Some(Kind::Write),
        _ => None,
    }
}

/// A piece of a line for a message: short, and printable.
pub(super) fn shown(text: &[u8]) -> String {
    const MOST: usize = 60;
    let short = &text[..text.len().min(MOST)];
    let dots = if text.len() > MOST { "..." } else { "" };
    let text = String::from_utf8_lossy(short);
    let clean = text.chars().map(|c| if c.is_control() { '?' } else { c }).collect::<String>();
    format!("\"{clean}{dots}\"")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_are_exact_to_the_last_digit() {
        assert_eq!(decimal(b"3600.949610354", 9), Some(3_600_949_610_354));
        assert_eq!(decimal(b"7961.833", 6), Some(7_961_833_000));
        assert_eq!(decimal(b"0.0000000019", 9), Some(1));
        assert_eq!(decimal(b".5", 3), Some(500));
        assert_eq!(decimal(b"5.", 3), Some(5000));
        for wrong in [&b""[..], b".", b"1e9", b"-1", b"1.-5", b"1.2.3", b"99999999999999999999"] {
            assert_eq!(decimal(wrong, 9), None, "{}", shown(wrong));
        }
    }

    #[test]
    fn a_line_has_all_its_columns_or_none() {
        assert_eq!(columns::<2>(b"a , b", b','), Some([&b"a"[..], b"b"]));
        assert_eq!(columns::<2>(b"a", b','), None);
        assert_eq!(words::<2>(b"a b c"), None);
        assert_eq!(words::<2>(b"  a \t b "), Some([&b"a"[..], b"b"]));
    }
}
