//! Tencent's block traces of 2018: `seconds,sector,sectors,0|1,volume`, 0 reads and 1 writes.
//!
//! Sectors of 512 bytes. Reference: Zhang et al., "OSCA: an online-model based cache allocation scheme in
//! cloud block storage systems", USENIX ATC 2020; SNIA IOTTA 27917.

use super::text::{columns, device, number};
use super::{ByLine, Lines, Raw, reads_or_writes, sectors, touched_sectors};
use crate::registry::Entry;
use crate::trace::format::KnownBy;
use crate::trace::format::first_line;
use crate::trace::{Encoder, FormatBuild, Kind, Request, WriteOptions};
use std::io::{self, Write};

pub const ENTRY: Entry<FormatBuild> = Entry {
    name: "tencent",
    summary: "Tencent Cloud's CSV of virtual disks, 2018, times in whole seconds",
    reference: "Zhang et al., OSCA, USENIX ATC 2020; SNIA IOTTA 27917",
    build: FormatBuild {
        known_by: KnownBy::Look(|head| first_line(head, |line| request(line).is_some())),
        decoder: |_| Box::new(ByLine(Tencent)),
        encoder: Some(|_: &WriteOptions| Box::new(Tencent)),
        loses: "trims, flushes, times below a second, parts of sectors",
        has_response_times: false,
        suffix: "",
    },
};

struct Tencent;

fn request(line: &[u8]) -> Option<Raw> {
    let [time, sector, count, kind, volume] = columns(line, b',')?;
    let kind = match kind {
        b"0" => Kind::Read,
        b"1" => Kind::Write,
        _ => return None,
    };
    let time_ns = number(time)?.checked_mul(1_000_000_000)?;
    let (offset, length) = (sectors(number(sector)?)?, sectors(number(count)?)?);
    Some(super::raw(time_ns, kind, offset, length, device(volume)?))
}

impl Lines for Tencent {
    fn line(&mut self, line: &[u8]) -> Result<Option<Raw>, &'static str> {
        request(line).map(Some).ok_or("seconds,sector,sectors,0 (read) or 1 (write),volume")
    }
}

impl Encoder for Tencent {
    fn request(&mut self, request: &Request, out: &mut dyn Write) -> io::Result<bool> {
        if !reads_or_writes(request) {
            return Ok(false);
        }
        let (sector, count) = touched_sectors(request);
        let kind = u8::from(request.kind == Kind::Write);
        let seconds = request.time_ns / 1_000_000_000;
        writeln!(out, "{seconds},{sector},{count},{kind},{}", request.device)?;
        Ok(true)
    }
}
