//! Plain lists: the number of a block on each line, and `R` or `W` behind it where it is known.
//!
//! Without a letter a request is a read. There are no times; the size of a block is stated when the list is
//! read (4096 bytes unless told otherwise).

use super::text::{number, read_or_write, word_iter};
use super::{ByLine, Kind, Lines, Raw};
use crate::registry::Entry;
use crate::trace::format::KnownBy;
use crate::trace::format::first_line;
use crate::trace::{Encoder, FormatBuild, Request};
use std::io::{self, Write};

pub const ENTRY: Entry<FormatBuild> = Entry {
    name: "lba",
    summary: "plain list of block numbers, one a line, with R or W behind where known",
    reference: "",
    build: FormatBuild {
        known_by: KnownBy::Look(|head| first_line(head, |line| block(line).is_some())),
        decoder: |options| Box::new(ByLine(Lba::new(options.block_bytes))),
        encoder: Some(|options| Box::new(Lba::new(options.block_bytes))),
        loses: "times, devices, trims, flushes; one line a block",
        has_response_times: false,
        suffix: ".lba",
    },
};

struct Lba {
    block_bytes: u64,
}

impl Lba {
    fn new(block_bytes: u64) -> Self {
        Lba { block_bytes }
    }
}

fn block(line: &[u8]) -> Option<(u64, Kind)> {
    let mut words = word_iter(line);
    let block = number(words.next()?)?;
    let kind = words.next().map_or(Some(Kind::Read), read_or_write)?;
    words.next().is_none().then_some((block, kind))
}

impl Lines for Lba {
    fn line(&mut self, line: &[u8]) -> Result<Option<Raw>, &'static str> {
        let found = block(line).and_then(|(block, kind)| {
            let offset = block.checked_mul(self.block_bytes)?;
            Some(super::raw(0, kind, offset, self.block_bytes, 0))
        });
        found.map(Some).ok_or("the number of a block, and R or W behind it where it is known")
    }
}

impl Encoder for Lba {
    fn request(&mut self, request: &Request, out: &mut dyn Write) -> io::Result<bool> {
        if !super::reads_or_writes(request) {
            return Ok(false);
        }
        let letter = if request.kind == Kind::Read { 'R' } else { 'W' };
        let end = request.offset + u64::from(request.length);
        for block in request.offset / self.block_bytes..end.div_ceil(self.block_bytes) {
            writeln!(out, "{block} {letter}")?;
        }
        Ok(true)
    }
}
