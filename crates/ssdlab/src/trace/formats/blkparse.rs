//! Text that `blkparse` prints of a block-layer trace, in its default format.
//!
//! `major,minor cpu sequence seconds.nanoseconds pid action rwbs sector + sectors [process]`; events other
//! than the one asked for are passed over, and the summary at the end. Reference: blkparse(1).

use super::text::{number, word_iter};
use super::{ByLine, Kind, Lines, Raw, ReadOptions, sectors, text};
use crate::registry::Entry;
use crate::trace::FormatBuild;
use crate::trace::format::KnownBy;
use crate::trace::format::first_line;

pub const ENTRY: Entry<FormatBuild> = Entry {
    name: "blkparse",
    summary: "text that blkparse prints of a Linux block-layer trace",
    reference: "blkparse(1), default output format",
    build: FormatBuild {
        known_by: KnownBy::Look(|head| first_line(head, |line| major_minor(line).is_some())),
        decoder: |options| Box::new(ByLine(Blkparse::new(options))),
        encoder: None,
        loses: "",
        has_response_times: false,
        suffix: "",
    },
};

const EXPECTED: &str =
    "major,minor cpu sequence time pid action rwbs sector + sectors, as blkparse prints it";

/// The device of a line; `None` for a line that is no event.
#[inline]
fn major_minor(line: &[u8]) -> Option<u32> {
    let word = word_iter(line).next()?;
    let comma = word.iter().position(|byte| *byte == b',')?;
    let (major, minor) = (number(&word[..comma])?, number(&word[comma + 1..])?);
    // As the kernel's dev_t: 12 bits and 20 bits.
    (major < 1 << 12 && minor < 1 << 20).then_some((major as u32) << 20 | minor as u32)
}

struct Blkparse {
    action: u8,
    /// By letter, whether the action occurred.
    seen: [bool; 26],
}

impl Blkparse {
    fn new(options: &ReadOptions) -> Self {
        Blkparse { action: options.action as u8, seen: [false; 26] }
    }
}

/// What the letters of `rwbs` mean; `None` for events without data.
fn kind_of(rwbs: &[u8], sectors: u64) -> Option<Kind> {
    let has = |letter| rwbs.contains(&letter);
    match () {
        () if has(b'D') => Some(Kind::Trim),
        () if has(b'R') => Some(Kind::Read),
        () if has(b'F') && sectors == 0 => Some(Kind::Flush),
        () if has(b'W') => Some(Kind::Write),
        () => None,
    }
}

impl Lines for Blkparse {
    fn line(&mut self, line: &[u8]) -> Result<Option<Raw>, &'static str> {
        let Some(device) = major_minor(line) else {
            // The summary begins lines with words.
            return if line[0].is_ascii_alphabetic() { Ok(None) } else { Err(EXPECTED) };
        };
        let mut words = word_iter(line).skip(3);
        let (Some(time), Some(_pid), Some(action)) = (words.next(), words.next(), words.next())
        else {
            return Err(EXPECTED);
        };
        let [letter] = action else {
            // Several letters: messages and unplugs by timer.
            return Ok(None);
        };
        if letter.is_ascii_uppercase() {
            self.seen[usize::from(letter - b'A')] = true;
        }
        if *letter != self.action {
            return Ok(None);
        }
        let rwbs = words.next().ok_or(EXPECTED)?;
        let extent = |words: &mut dyn Iterator<Item = &[u8]>| {
            let first = number(words.next()?)?;
            (words.next()? == b"+").then_some(())?;
            Some((sectors(first)?, sectors(number(words.next()?)?)?))
        };
        let time_ns = text::decimal(time, 9).ok_or(EXPECTED)?;
        let (offset, length) = match extent(&mut words) {
            Some(extent) => extent,
            None if rwbs.contains(&b'F') => (0, 0),
            None if kind_of(rwbs, 1).is_none() => return Ok(None),
            None => return Err(EXPECTED),
        };
        let Some(kind) = kind_of(rwbs, length) else { return Ok(None) };
        Ok(Some(super::raw(time_ns, kind, offset, length, device)))
    }

    fn nothing_found(&self) -> String {
        let letters = (b'A'..=b'Z').zip(self.seen).filter(|(_, seen)| *seen);
        let seen: Vec<String> = letters.map(|(letter, _)| char::from(letter).to_string()).collect();
        if seen.is_empty() {
            return String::new();
        }
        format!(": no event {}, there are {}", char::from(self.action), seen.join(", "))
    }
}
