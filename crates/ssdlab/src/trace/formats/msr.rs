//! Microsoft Research Cambridge's traces: `timestamp,host,disk,Read|Write,offset,bytes,response`.
//!
//! Timestamp and response in units of 100 ns (Windows file time). Reference: Narayanan et al., "Write
//! off-loading", FAST 2008; SNIA IOTTA.

use super::text::{columns, device, number, read_or_write};
use super::{ByLine, Lines, Raw, reads_or_writes};
use crate::registry::Entry;
use crate::trace::format::KnownBy;
use crate::trace::format::first_line;
use crate::trace::{Encoder, FormatBuild, KINDS, Request, WriteOptions};
use std::io::{self, Write};

pub const ENTRY: Entry<FormatBuild> = Entry {
    name: "msr",
    summary: "Microsoft Research Cambridge's CSV of servers' volumes, with response times",
    reference: "Narayanan, Donnelly, Rowstron: Write off-loading, FAST 2008; SNIA IOTTA",
    build: FormatBuild {
        known_by: KnownBy::Look(|head| first_line(head, |line| request(line).is_some())),
        decoder: |_| Box::new(ByLine(Msr)),
        encoder: Some(|_: &WriteOptions| Box::new(Msr)),
        loses: "trims, flushes, times below 100 ns",
        has_response_times: true,
        suffix: "",
    },
};

struct Msr;

fn request(line: &[u8]) -> Option<Raw> {
    let [time, _host, disk, kind, offset, length, response] = columns(line, b',')?;
    let time_ns = number(time)?.checked_mul(100)?;
    let response_ns = Some(number(response)?.checked_mul(100)?);
    let (offset, length) = (number(offset)?, number(length)?);
    let raw = super::raw(time_ns, read_or_write(kind)?, offset, length, device(disk)?);
    Some(Raw { response_ns, ..raw })
}

impl Lines for Msr {
    fn line(&mut self, line: &[u8]) -> Result<Option<Raw>, &'static str> {
        request(line)
            .map(Some)
            .ok_or("timestamp,host,disk,Read or Write,offset in bytes,bytes,response time")
    }
}

impl Encoder for Msr {
    fn request(&mut self, request: &Request, out: &mut dyn Write) -> io::Result<bool> {
        if !reads_or_writes(request) {
            return Ok(false);
        }
        let kind = if KINDS[request.kind as usize] == "read" { "Read" } else { "Write" };
        let Request { time_ns, offset, length, device, response_ns, .. } = request;
        let response = response_ns.unwrap_or(0) / 100;
        writeln!(out, "{},trace,{device},{kind},{offset},{length},{response}", time_ns / 100)?;
        Ok(true)
    }
}
