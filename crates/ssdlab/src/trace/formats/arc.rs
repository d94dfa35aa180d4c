//! `.lis`, the traces that ARC was published with: first block, number of blocks, a zero, number of the request.
//!
//! There are neither times nor writes. The size of a block is stated when the trace is read (4096 bytes unless told
//! otherwise; those of the paper's P traces have 512). Reference: Megiddo & Modha, FAST 2003.

use super::text::{number, words};
use super::{ByLine, Kind, Lines, Raw};
use crate::registry::Entry;
use crate::trace::format::KnownBy;
use crate::trace::format::first_line;
use crate::trace::{Encoder, FormatBuild, Request, WriteOptions};
use std::io::{self, Write};

pub const ENTRY: Entry<FormatBuild> = Entry {
    name: "arc",
    summary: "ARC's .lis: first block, number of blocks, 0, number of the request",
    reference: "Megiddo & Modha, ARC: a self-tuning, low overhead replacement cache, FAST 2003",
    build: FormatBuild {
        known_by: KnownBy::Look(|head| first_line(head, |line| request(line, 1).is_some())),
        decoder: |options| Box::new(ByLine(Arc::new(options.block_bytes))),
        encoder: Some(|options: &WriteOptions| Box::new(Arc::new(options.block_bytes))),
        loses: "times, reads and writes alike, devices, trims, flushes; parts of blocks",
        has_response_times: false,
        suffix: "",
    },
};

struct Arc {
    block_bytes: u64,
    written: u64,
}

impl Arc {
    fn new(block_bytes: u64) -> Self {
        Arc { block_bytes, written: 0 }
    }
}

fn request(line: &[u8], block_bytes: u64) -> Option<Raw> {
    let [first, count, zero, own] = words(line)?;
    let (first, count) = (number(first)?, number(count)?);
    (number(zero)? == 0).then_some(())?;
    number(own)?;
    let bytes = |blocks: u64| blocks.checked_mul(block_bytes);
    Some(super::raw(0, Kind::Read, bytes(first)?, bytes(count)?, 0))
}

impl Lines for Arc {
    fn line(&mut self, line: &[u8]) -> Result<Option<Raw>, &'static str> {
        let found = request(line, self.block_bytes).map(Some);
        found.ok_or("first block, number of blocks, 0, number of the request")
    }
}

impl Encoder for Arc {
    fn request(&mut self, request: &Request, out: &mut dyn Write) -> io::Result<bool> {
        if !super::reads_or_writes(request) {
            return Ok(false);
        }
        let first = request.offset / self.block_bytes;
        let end = (request.offset + u64::from(request.length)).div_ceil(self.block_bytes);
        writeln!(out, "{first} {} 0 {}", end - first, self.written)?;
        self.written += 1;
        Ok(true)
    }
}
