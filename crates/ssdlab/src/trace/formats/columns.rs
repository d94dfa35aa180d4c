//! Text with columns of any order, as told: `time=0,op=2,lba=3,size=4`.
//!
//! A column is a number from 0 or a name of the first line. What separates columns is seen in the first line: a comma,
//! a semicolon, a tab, else blanks. `time` is in seconds, or as `time_ms`, `time_us`, `time_ns` say; a place is an
//! `lba` (512 bytes), an `offset` (bytes) or a `block` (of the size stated when it is read); a length a `size`
//! (bytes), `sectors` or `blocks`. Without an operation all are reads, without a length a block each. Instead of a place
//! a `key` names an object, by a number or any text; `ttl` says for how many seconds it is valid (0 or nothing: for
//! ever). As a block trace it is read with each object at its number times the size of a block.

use super::oracle_general::block_of;
use super::text::{decimal, device, number, shown};
use super::{ByLine, Kind, Lines, Object, Raw, SECTOR_BYTES};
use crate::error::nearest;
use crate::trace::format::Decoder;

/// What a column may hold.
const WHAT: [&str; 14] = [
    "time", "time_ms", "time_us", "time_ns", "op", "lba", "offset", "block", "size", "sectors",
    "blocks", "device", "key", "ttl",
];
const TIMES: [(&str, u32); 4] = [("time", 9), ("time_ms", 6), ("time_us", 3), ("time_ns", 0)];

/// Where something stands, and what one of it is.
#[derive(Clone, Copy)]
struct Column {
    at: usize,
    unit: u64,
}

struct Columns {
    separator: Option<u8>,
    /// Digits of its decimals.
    time: Option<(usize, u32)>,
    op: Option<usize>,
    place: Column,
    length: Option<Column>,
    device: Option<usize>,
    key: Option<usize>,
    ttl: Option<usize>,
    object: Option<Object>,
    block_bytes: u64,
    /// Whether the first line has the names of the columns.
    header: bool,
}

/// The reader of a text with such columns, which begins with `head`.
///
/// # Errors
/// What is wrong with what was told of the columns.
pub fn decoder(told: &str, head: &[u8], block_bytes: u64) -> Result<Box<dyn Decoder>, String> {
    let mut lines = head.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii);
    let first = lines.find(|line| !line.is_empty() && line[0] != b'#').unwrap_or_default();
    let separator = b",;\t".iter().copied().find(|byte| first.contains(byte));
    let heads: Vec<&[u8]> = split(first, separator).collect();
    let mut found = Columns {
        separator,
        time: None,
        op: None,
        place: Column { at: usize::MAX, unit: 0 },
        length: None,
        device: None,
        key: None,
        ttl: None,
        object: None,
        block_bytes,
        header: false,
    };
    let mut named = false;
    for part in told.split(',').map(str::trim) {
        let (what, place) = part
            .split_once('=')
            .ok_or_else(|| format!("\"{part}\": expected NAME=COLUMN, such as time=0,lba=3"))?;
        let (what, place) = (what.trim(), place.trim());
        let at = match number(place.as_bytes()) {
            Some(at) => at as usize,
            None => {
                named = true;
                column_named(place, &heads)?
            }
        };
        if at >= heads.len() {
            let count = heads.len();
            return Err(format!(
                "\"{part}\": there is no such column: they are counted from 0, and the first line has {count}"
            ));
        }
        let time = TIMES.iter().find(|(name, _)| *name == what);
        match what {
            _ if time.is_some() => found.time = time.map(|(_, digits)| (at, *digits)),
            "op" => found.op = Some(at),
            "lba" => found.place = Column { at, unit: SECTOR_BYTES },
            "offset" => found.place = Column { at, unit: 1 },
            "block" => found.place = Column { at, unit: block_bytes },
            "size" => found.length = Some(Column { at, unit: 1 }),
            "sectors" => found.length = Some(Column { at, unit: SECTOR_BYTES }),
            "blocks" => found.length = Some(Column { at, unit: block_bytes }),
            "device" => found.device = Some(at),
            "key" => found.key = Some(at),
            "ttl" => found.ttl = Some(at),
            _ => {
                let near = nearest(what, WHAT);
                let hint =
                    near.map_or(String::new(), |near| format!(" (did you mean \"{near}\"?)"));
                return Err(format!("\"{what}\"{hint}: expected one of {}", WHAT.join(", ")));
            }
        }
    }
    found.check()?;
    // A first line that is none of the requests has names, told by them or not.
    found.header = named || found.request(first).is_none();
    Ok(Box::new(ByLine(found)))
}

fn column_named(name: &str, heads: &[&[u8]]) -> Result<usize, String> {
    let texts: Vec<String> =
        heads.iter().map(|head| String::from_utf8_lossy(head).into_owned()).collect();
    let place = texts.iter().position(|head| head.eq_ignore_ascii_case(name));
    place.ok_or_else(|| {
        let near = nearest(name, texts.iter().map(String::as_str));
        let hint = near.map_or(String::new(), |near| format!(" (did you mean \"{near}\"?)"));
        let line = shown(texts.join(",").as_bytes());
        format!("no column is called \"{name}\"{hint}; the first line is {line}")
    })
}

fn split(line: &[u8], separator: Option<u8>) -> impl Iterator<Item = &[u8]> {
    let blank = move |byte: &u8| separator.map_or(byte.is_ascii_whitespace(), |s| *byte == s);
    let parts = line.split(blank).map(<[u8]>::trim_ascii);
    parts.filter(move |part| separator.is_some() || !part.is_empty())
}

fn kind(text: &[u8]) -> Option<Kind> {
    match text.first()?.to_ascii_lowercase() {
        b'r' | b'g' | b'0' => Some(Kind::Read),
        b'w' | b's' | b'1' => Some(Kind::Write),
        b't' | b'd' => Some(Kind::Trim),
        b'f' => Some(Kind::Flush),
        _ => None,
    }
}

impl Columns {
    /// Whether the columns belong together.
    fn check(&self) -> Result<(), String> {
        let problem = match (self.key, self.place.at == usize::MAX) {
            (None, true) => {
                "no column says where requests go; name lba, offset or block, or key for traces of objects"
            }
            (Some(_), false) => "key and a place exclude each other: an object has none",
            (None, false) if self.ttl.is_some() => "ttl is of objects; name them with key",
            _ if self.ttl.is_some() && self.time.is_none() => "ttl needs a time, such as time=0",
            _ => return Ok(()),
        };
        Err(problem.into())
    }

    fn request(&mut self, line: &[u8]) -> Option<Raw> {
        const MOST: usize = 64;
        let (mut parts, mut count) = ([&line[..0]; MOST], 0);
        for part in split(line, self.separator).take(MOST) {
            parts[count] = part;
            count += 1;
        }
        let at = |place: usize| parts[..count].get(place).copied();
        let number_at = |column: Column| number(at(column.at)?)?.checked_mul(column.unit);
        let time_ns = match self.time {
            Some((place, digits)) => decimal(at(place)?, digits)?,
            None => 0,
        };
        let kind = self.op.map_or(Some(Kind::Read), |place| kind(at(place)?))?;
        let length = self.length.map_or(Some(self.block_bytes), number_at)?;
        let device = self.device.map_or(Some(0), |place| device(at(place)?))?;
        let Some(key) = self.key else {
            return Some(super::raw(time_ns, kind, number_at(self.place)?, length, device));
        };
        let text = at(key).filter(|text| !text.is_empty())?;
        let key = number(text).unwrap_or_else(|| hash(text));
        let life = self.ttl.map_or(Some(0), |place| match at(place)? {
            b"" | b"-1" => Some(0),
            text => decimal(text, 9),
        });
        self.object = Some(Object { key, ttl_ns: life? });
        let offset = block_of(key) * self.block_bytes;
        Some(super::raw(time_ns, kind, offset, length, device))
    }
}

/// The key of a name that is no number: FNV-1a, mixed once more.
fn hash(text: &[u8]) -> u64 {
    let step = |h: u64, byte: &u8| (h ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    let hash = text.iter().fold(0xcbf2_9ce4_8422_2325, step);
    (hash ^ hash >> 32).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

impl Lines for Columns {
    fn line(&mut self, line: &[u8]) -> Result<Option<Raw>, &'static str> {
        if std::mem::take(&mut self.header) {
            return Ok(None);
        }
        let found = self.request(line).map(Some);
        found.ok_or("numbers in the columns that --columns names, r or w (0 or 1) for op")
    }
    fn object(&self) -> Option<Object> {
        self.object
    }
}
