//! Alibaba's block traces of 2020: `device,R|W,offset,bytes,microseconds`.
//!
//! Reference: Li et al., "An in-depth analysis of cloud block storage workloads in large-scale production",
//! IISWC 2020.

use super::text::{columns, device, number, read_or_write};
use super::{ByLine, Lines, Raw, reads_or_writes};
use crate::registry::Entry;
use crate::trace::format::KnownBy;
use crate::trace::format::first_line;
use crate::trace::{Encoder, FormatBuild, Kind, Request, WriteOptions};
use std::io::{self, Write};

pub const ENTRY: Entry<FormatBuild> = Entry {
    name: "alibaba",
    summary: "Alibaba Cloud's CSV of virtual disks, 2020",
    reference: "Li et al., IISWC 2020; columns device_id,opcode,offset,length,timestamp",
    build: FormatBuild {
        known_by: KnownBy::Look(|head| first_line(head, |line| request(line).is_some())),
        decoder: |_| Box::new(ByLine(Alibaba)),
        encoder: Some(|_: &WriteOptions| Box::new(Alibaba)),
        loses: "trims, flushes, times below a microsecond",
        has_response_times: false,
        suffix: "",
    },
};

struct Alibaba;

fn request(line: &[u8]) -> Option<Raw> {
    let [unit, kind, offset, length, time] = columns(line, b',')?;
    let time_ns = number(time)?.checked_mul(1000)?;
    let (offset, length) = (number(offset)?, number(length)?);
    Some(super::raw(time_ns, read_or_write(kind)?, offset, length, device(unit)?))
}

impl Lines for Alibaba {
    fn line(&mut self, line: &[u8]) -> Result<Option<Raw>, &'static str> {
        request(line).map(Some).ok_or("device,R or W,offset in bytes,bytes,time in us")
    }
}

impl Encoder for Alibaba {
    fn request(&mut self, request: &Request, out: &mut dyn Write) -> io::Result<bool> {
        if !reads_or_writes(request) {
            return Ok(false);
        }
        let kind = if request.kind == Kind::Read { 'R' } else { 'W' };
        let Request { time_ns, offset, length, device, .. } = request;
        writeln!(out, "{device},{kind},{offset},{length},{}", time_ns / 1000)?;
        Ok(true)
    }
}
