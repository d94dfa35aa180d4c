//! Storage Performance Council's traces: `unit,block,bytes,opcode,seconds`, blocks of 512 bytes.
//!
//! Lines may have further columns. Used by the UMass traces (Financial, WebSearch). Reference: SPC trace
//! file format specification, revision 1.0.1.

use super::text::{decimal, device, number, read_or_write};
use super::{ByLine, Lines, Raw, reads_or_writes, sectors, touched_sectors};
use crate::registry::Entry;
use crate::trace::format::KnownBy;
use crate::trace::format::first_line;
use crate::trace::{Encoder, FormatBuild, Kind, Request, WriteOptions};
use std::io::{self, Write};

pub const ENTRY: Entry<FormatBuild> = Entry {
    name: "spc",
    summary: "Storage Performance Council's CSV (UMass Financial and WebSearch)",
    reference: "SPC trace file format specification 1.0.1",
    build: FormatBuild {
        known_by: KnownBy::Look(|head| first_line(head, |line| request(line).is_some())),
        decoder: |_| Box::new(ByLine(Spc)),
        encoder: Some(|_: &WriteOptions| Box::new(Spc)),
        loses: "trims, flushes, offsets within sectors",
        has_response_times: false,
        suffix: ".spc",
    },
};

struct Spc;

fn request(line: &[u8]) -> Option<Raw> {
    let mut columns = line.split(|byte| *byte == b',').map(<[u8]>::trim_ascii);
    let unit = device(columns.next()?)?;
    let offset = sectors(number(columns.next()?)?)?;
    let length = number(columns.next()?)?;
    let kind = read_or_write(columns.next()?)?;
    Some(super::raw(decimal(columns.next()?, 9)?, kind, offset, length, unit))
}

impl Lines for Spc {
    fn line(&mut self, line: &[u8]) -> Result<Option<Raw>, &'static str> {
        request(line).map(Some).ok_or("unit,block,bytes,R or W,seconds")
    }
}

impl Encoder for Spc {
    fn request(&mut self, request: &Request, out: &mut dyn Write) -> io::Result<bool> {
        if !reads_or_writes(request) {
            return Ok(false);
        }
        let kind = if request.kind == Kind::Read { 'r' } else { 'w' };
        let (block, _) = touched_sectors(request);
        let (s, ns) = (request.time_ns / 1_000_000_000, request.time_ns % 1_000_000_000);
        writeln!(out, "{},{block},{},{kind},{s}.{ns:09}", request.device, request.length)?;
        Ok(true)
    }
}
