//! SSDSim's and MQSim's traces: `nanoseconds device sector sectors operation`, 1 reads and 0 writes.
//!
//! Reference: Hu et al., "Performance impact and interplay of SSD parallelism", ICS 2011; Tavakkol et al.,
//! "MQSim", FAST 2018 (whose traces may use another unit of time, named in its workload file).

use super::text::{device, number, words};
use super::{ByLine, Lines, Raw, reads_or_writes, sectors, touched_sectors};
use crate::registry::Entry;
use crate::trace::format::KnownBy;
use crate::trace::format::first_line;
use crate::trace::{Encoder, FormatBuild, Kind, Request, WriteOptions};
use std::io::{self, Write};

pub const ENTRY: Entry<FormatBuild> = Entry {
    name: "ssdsim",
    summary: "SSDSim's and MQSim's ASCII trace, times in whole ns",
    reference: "Hu et al., ICS 2011; Tavakkol et al., MQSim, FAST 2018",
    build: FormatBuild {
        known_by: KnownBy::Look(|head| first_line(head, |line| request(line).is_some())),
        decoder: |_| Box::new(ByLine(SsdSim)),
        encoder: Some(|_: &WriteOptions| Box::new(SsdSim)),
        loses: "trims, flushes, parts of sectors",
        has_response_times: false,
        suffix: "",
    },
};

struct SsdSim;

fn request(line: &[u8]) -> Option<Raw> {
    let [time, unit, sector, count, operation] = words(line)?;
    let kind = match operation {
        b"1" => Kind::Read,
        b"0" => Kind::Write,
        _ => return None,
    };
    let (offset, length) = (sectors(number(sector)?)?, sectors(number(count)?)?);
    Some(super::raw(number(time)?, kind, offset, length, device(unit)?))
}

impl Lines for SsdSim {
    fn line(&mut self, line: &[u8]) -> Result<Option<Raw>, &'static str> {
        request(line).map(Some).ok_or("time in ns, device, sector, sectors, 1 (read) or 0 (write)")
    }
}

impl Encoder for SsdSim {
    fn request(&mut self, request: &Request, out: &mut dyn Write) -> io::Result<bool> {
        if !reads_or_writes(request) {
            return Ok(false);
        }
        let (sector, count) = touched_sectors(request);
        let operation = u8::from(request.kind == Kind::Read);
        writeln!(out, "{} {} {sector} {count} {operation}", request.time_ns, request.device)?;
        Ok(true)
    }
}
