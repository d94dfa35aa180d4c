//! DiskSim's ASCII traces: `milliseconds device block blocks flags`, blocks of 512 bytes.
//!
//! Flags are hexadecimal; bit 0 means read. Reference: Bucy et al., "The DiskSim simulation environment
//! version 4.0 reference manual", CMU-PDL-08-101.

use super::text::{decimal, device, number, words};
use super::{ByLine, Lines, Raw, reads_or_writes, sectors, touched_sectors};
use crate::registry::Entry;
use crate::trace::format::KnownBy;
use crate::trace::format::first_line;
use crate::trace::{Encoder, FormatBuild, Kind, Request, WriteOptions};
use std::io::{self, Write};

pub const ENTRY: Entry<FormatBuild> = Entry {
    name: "disksim",
    summary: "DiskSim's ASCII trace, times in ms with a decimal point",
    reference: "DiskSim 4.0 reference manual, CMU-PDL-08-101",
    build: FormatBuild {
        // SSDSim's lines look alike but for the point.
        known_by: KnownBy::Look(|head| {
            first_line(head, |l| request(l).is_some()) && has_point(head)
        }),
        decoder: |_| Box::new(ByLine(DiskSim)),
        encoder: Some(|_: &WriteOptions| Box::new(DiskSim)),
        loses: "trims, flushes, parts of sectors",
        has_response_times: false,
        suffix: "",
    },
};

struct DiskSim;

/// Whether times are written with a decimal point.
fn has_point(head: &[u8]) -> bool {
    let mut lines = head.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii);
    let time = |line: &[u8]| {
        line.split(u8::is_ascii_whitespace).next().is_some_and(|word| word.contains(&b'.'))
    };
    lines.any(time)
}

fn flags(text: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(text).ok()?;
    u64::from_str_radix(text.strip_prefix("0x").unwrap_or(text), 16).ok()
}

fn request(line: &[u8]) -> Option<Raw> {
    let [time, unit, block, count, bits] = words(line)?;
    let kind = if flags(bits)? & 1 == 1 { Kind::Read } else { Kind::Write };
    let (offset, length) = (sectors(number(block)?)?, sectors(number(count)?)?);
    Some(super::raw(decimal(time, 6)?, kind, offset, length, device(unit)?))
}

impl Lines for DiskSim {
    fn line(&mut self, line: &[u8]) -> Result<Option<Raw>, &'static str> {
        request(line).map(Some).ok_or("time in ms, device, block, blocks, flags")
    }
}

impl Encoder for DiskSim {
    fn request(&mut self, request: &Request, out: &mut dyn Write) -> io::Result<bool> {
        if !reads_or_writes(request) {
            return Ok(false);
        }
        let (block, count) = touched_sectors(request);
        let flags = u8::from(request.kind == Kind::Read);
        let (ms, ns) = (request.time_ns / 1_000_000, request.time_ns % 1_000_000);
        writeln!(out, "{ms}.{ns:06} {} {block} {count} {flags}", request.device)?;
        Ok(true)
    }
}
