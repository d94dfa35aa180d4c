//! Values of single options that are more than a number.

use super::pattern::{Amount, Distribution, FileService, Pattern, RandomGenerator};
use super::size;
use crate::error::{Error, Result, nearest};

/// `rw=`: the operation, and behind a colon how far to skip or how often to be random.
pub fn rw(value: &str, base: u64, p: &mut Pattern) -> Result<()> {
    const MODES: [(&str, [bool; 3], bool); 11] = [
        ("read", [true, false, false], false),
        ("write", [false, true, false], false),
        ("trim", [false, false, true], false),
        ("rw", [true, true, false], false),
        ("readwrite", [true, true, false], false),
        ("trimwrite", [false, true, true], false),
        ("randread", [true, false, false], true),
        ("randwrite", [false, true, false], true),
        ("randtrim", [false, false, true], true),
        ("randrw", [true, true, false], true),
        ("randtrimwrite", [false, true, true], true),
    ];
    let (mode, suffix) = match value.split_once(':') {
        Some((mode, suffix)) => (mode, Some(suffix)),
        None => (value, None),
    };
    let Some((name, directions, random)) = MODES.iter().find(|m| m.0 == mode) else {
        let hint = nearest(mode, MODES.iter().map(|m| m.0))
            .map(|m| format!("; did you mean \"{m}\"?"))
            .unwrap_or_default();
        let known = "read, write, trim, rw, trimwrite, randread, randwrite, randtrim, randrw or \
                     randtrimwrite";
        return Err(Error::value(mode, format!("{known}{hint}")));
    };
    (p.directions, p.random) = (*directions, *random);
    p.trim_then_write = name.ends_with("trimwrite");
    (p.random_every, p.skip) = (1, 0);
    match suffix {
        None => {}
        Some(n) if *random => {
            p.random_every = n
                .parse()
                .map_err(|_| Error::value(n, "the number of I/Os for each random offset"))?;
        }
        Some(n) => {
            let (sign, digits) = n.strip_prefix('-').map_or((1, n), |d| (-1, d));
            let skip = i64::try_from(size::bytes(digits, base)?)
                .map_err(|_| Error::value(n, "a size below 2^63"))?;
            p.skip = sign * skip;
        }
    }
    Ok(())
}

/// The index of `value` among `known`.
pub fn choice(value: &str, known: &[&str]) -> Result<usize> {
    let found = known.iter().position(|k| *k == value);
    found.ok_or_else(|| Error::value(value, known.join(" or ")))
}

/// Whether what was written is read back; how it is compared has no meaning here.
pub fn verify(value: &str) -> Result<bool> {
    const WAYS: &str = "md5 crc64 crc32 crc32c crc32c-intel crc16 crc7 sha1 sha256 sha512 sha3-224 \
                        sha3-256 sha3-384 sha3-512 xxhash meta pattern pattern_hdr null";
    match value {
        "0" => Ok(false),
        _ if WAYS.split(' ').any(|way| way == value) => Ok(true),
        _ => Err(Error::value(value, "a way of fio's to verify, such as crc32c, or 0")),
    }
}

/// A whole percentage.
pub fn percent(value: &str) -> Result<u32> {
    match value.trim().parse() {
        Ok(n) if n <= 100 => Ok(n),
        _ => Err(Error::value(value, "a whole percentage from 0 to 100")),
    }
}

/// A number from 1 to `max`.
pub fn count(value: &str, base: u64, max: u64) -> Result<u32> {
    match size::bytes(value, base)? {
        n if (1..=max).contains(&n) => {
            u32::try_from(n).map_err(|_| Error::value(value, "a number below 2^32"))
        }
        _ => Err(Error::value(value, format!("a number from 1 to {max}"))),
    }
}

/// File names separated by colons; `\:` is a colon in a name.
pub fn names(value: &str) -> Vec<String> {
    let mut names = vec![String::new()];
    let mut chars = value.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\\' if chars.peek() == Some(&':') => {
                names.last_mut().expect("never empty").push(':');
                chars.next();
            }
            ':' => names.push(String::new()),
            _ => names.last_mut().expect("never empty").push(c),
        }
    }
    names.retain(|n| !n.is_empty());
    names
}

/// A size of 0 means that none was given.
pub fn some_amount(amount: Amount) -> Option<Amount> {
    Some(amount).filter(|a| !matches!(a, Amount::Bytes(0)))
}

/// `bssplit` of one direction: sizes and percentages; those left out share what is left.
pub fn split(text: &str, block: impl Fn(&str) -> Result<u64>) -> Result<Vec<(u64, f64)>> {
    let mut parts = Vec::new();
    for part in text.split(':') {
        let (size, share) = part.split_once('/').unwrap_or((part, ""));
        let share = if share.is_empty() { None } else { Some(f64::from(percent(share)?)) };
        parts.push((block(size)?, share));
    }
    let (given, open) = parts.iter().fold((0.0, 0u32), |(sum, open), (_, s)| {
        (sum + s.unwrap_or(0.0), open + u32::from(s.is_none()))
    });
    if given > 100.0 {
        return Err(Error::value(text, "shares that add up to 100 percent"));
    }
    let share = (100.0 - given) / f64::from(open.max(1));
    let mut parts: Vec<(u64, f64)> =
        parts.into_iter().map(|(size, s)| (size, s.unwrap_or(share))).collect();
    // As in fio, the last one takes what is missing.
    if let (0, Some(last)) = (open, parts.last_mut()) {
        last.1 += 100.0 - given;
    }
    // In fio's order, in which a size that does not fit gives way to the next that does.
    parts.sort_by(|a, b| a.1.total_cmp(&b.1));
    Ok(parts)
}

/// `file_service_type`: how files follow, and behind a colon after how many I/Os, or how they are distributed.
pub fn file_service(value: &str) -> Result<(FileService, u32)> {
    let (name, every) = value.split_once(':').unwrap_or((value, "1"));
    let service = match name {
        "roundrobin" => FileService::RoundRobin,
        "sequential" => FileService::Sequential,
        "random" => FileService::Random,
        "zipf" | "pareto" | "normal" => {
            return Ok((FileService::Shaped(distribution(value, 1024)?), 1));
        }
        "gauss" => {
            let normal = distribution(&value.replacen(name, "normal", 1), 1024)?;
            return Ok((FileService::Shaped(normal), 1));
        }
        _ => {
            let known = "roundrobin, sequential, random, zipf:theta, pareto:h or normal:percent";
            return Err(Error::value(name, known));
        }
    };
    Ok((service, count(every, 1024, u64::from(u32::MAX))?))
}

/// `random_generator`.
pub fn generator(value: &str) -> Result<RandomGenerator> {
    Ok(match choice(value, &["tausworthe", "tausworthe64", "lfsr"])? {
        2 => RandomGenerator::Lfsr,
        _ => RandomGenerator::Prng,
    })
}

/// `random_distribution`: the name, and behind colons its parameters.
pub fn distribution(value: &str, base: u64) -> Result<Distribution> {
    let (name, rest) = match value.split_once(':') {
        Some((name, rest)) => (name, Some(rest)),
        None => (value, None),
    };
    let number = |text: Option<&str>, default: f64, range: std::ops::RangeInclusive<f64>| {
        let Some(text) = text else { return Ok(default) };
        text.parse().ok().filter(|n| range.contains(n)).ok_or_else(|| {
            Error::value(text, format!("a number from {} to {}", range.start(), range.end()))
        })
    };
    let (first, second) =
        match rest.map(|r| r.split_once(':').map_or((r, None), |(a, b)| (a, Some(b)))) {
            Some((first, second)) => (Some(first), second),
            None => (None, None),
        };
    let center = || second.map(|_| number(second, 0.0, 0.0..=1.0)).transpose();
    Ok(match name {
        "random" => Distribution::Uniform,
        "zipf" => {
            let theta = number(first, 1.1, 0.0..=100.0)?;
            if theta == 1.0 {
                return Err(Error::value(value, "an exponent other than 1 (as in fio)"));
            }
            Distribution::Zipf { theta, center: center()? }
        }
        "pareto" => {
            let h = number(first, 0.2, 0.0..=1.0)?;
            if h == 0.0 || h == 1.0 {
                return Err(Error::value(value, "a shape between 0 and 1, such as pareto:0.2"));
            }
            Distribution::Pareto { h, center: center()? }
        }
        "normal" => {
            let deviation = number(first, 0.0, 0.0..=100.0)?;
            if deviation == 100.0 {
                return Err(Error::value(value, "a deviation below 100 percent (as in fio)"));
            }
            Distribution::Normal { deviation, center: center()? }
        }
        "zoned" => {
            let mut zones = [const { Vec::new() }; 3];
            size::per_direction(rest.unwrap_or_default(), &mut zones, shares_of_range)?;
            if zones.iter().any(|z: &Vec<(f64, f64)>| z.iter().map(|z| z.1).sum::<f64>() > 100.0) {
                return Err(Error::value(value, "sizes of at most 100 percent in all"));
            }
            Distribution::Zoned(zones)
        }
        "zoned_abs" => {
            let mut zones = [const { Vec::new() }; 3];
            size::per_direction(rest.unwrap_or_default(), &mut zones, |t| {
                accesses(t, |s| size::bytes(s, base))
            })?;
            Distribution::ZonedAbs(zones)
        }
        _ => {
            let known = "random, zipf:theta, pareto:h, normal:percent, zoned:access/size:... or \
                         zoned_abs:access/bytes:...";
            return Err(Error::value(value, known));
        }
    })
}

/// Zones of one direction: percent of the accesses, and of the range; sizes left out share what is left, as in fio in
/// whole percent.
fn shares_of_range(text: &str) -> Result<Vec<(f64, f64)>> {
    let size = |s: &str| if s.is_empty() { Ok(None) } else { percent(s).map(Some) };
    let zones = accesses(text, size)?;
    let given: u32 = zones.iter().filter_map(|zone| zone.1).sum();
    let open = zones.iter().filter(|zone| zone.1.is_none()).count() as u32;
    let share = 100u32.saturating_sub(given) / open.max(1);
    Ok(zones.into_iter().map(|(access, s)| (access, f64::from(s.unwrap_or(share)))).collect())
}

/// Zones of one direction: shares of access, and sizes.
fn accesses<T>(text: &str, size: impl Fn(&str) -> Result<T>) -> Result<Vec<(f64, T)>> {
    let wrong = || Error::value(text, "zones as access/size, access adding up to 100 percent");
    let mut zones = Vec::new();
    for zone in text.split(':') {
        let (access, len) = zone.split_once('/').unwrap_or((zone, ""));
        let len = size(len).map_err(|other| if len.is_empty() { wrong() } else { other })?;
        zones.push((f64::from(percent(access)?), len));
    }
    if (zones.iter().map(|z| z.0).sum::<f64>() - 100.0).abs() > 1e-9 {
        return Err(wrong());
    }
    Ok(zones)
}

/// `percentile_list`: up to 20 numbers separated by colons.
pub fn percentiles(value: &str) -> Result<Vec<f64>> {
    let wrong = || Error::value(value, "up to 20 percentiles by colon, such as 50:99:99.9");
    let list: Option<Vec<f64>> = value
        .split(':')
        .map(|t| t.trim().parse().ok().filter(|p| (0.0..=100.0).contains(p)))
        .collect();
    let mut list = list.ok_or_else(wrong)?;
    if list.len() > 20 {
        return Err(wrong());
    }
    list.sort_by(f64::total_cmp);
    Ok(list)
}
