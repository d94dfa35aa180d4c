//! ssdlab's own CSV, which loses nothing: a header, then
//! `time_ns,kind,offset,length,device,response_ns`.
//!
//! Kinds are read, write, trim and flush; the response is empty where it is not known.

use super::text::{columns, device, number};
use super::{ByLine, Kind, Lines, Raw};
use crate::registry::Entry;
use crate::trace::format::KnownBy;
use crate::trace::{Encoder, FormatBuild, KINDS, Request, WriteOptions};
use std::io::{self, Write};

pub const ENTRY: Entry<FormatBuild> = Entry {
    name: "csv",
    summary: "ssdlab's own CSV, which keeps everything",
    reference: "",
    build: FormatBuild {
        known_by: KnownBy::Beginning(HEADER.as_bytes()),
        decoder: |_| Box::new(ByLine(Csv)),
        encoder: Some(|_: &WriteOptions| Box::new(Csv)),
        loses: "",
        has_response_times: true,
        suffix: ".csv",
    },
};

const HEADER: &str = "time_ns,kind,offset,length,device,response_ns";
const NUMBERS: [Kind; 4] = [Kind::Read, Kind::Write, Kind::Trim, Kind::Flush];

struct Csv;

fn request(line: &[u8]) -> Option<Raw> {
    let [time, kind, offset, length, unit, response] = columns(line, b',')?;
    let kind = NUMBERS[KINDS.iter().position(|name| name.as_bytes() == kind)?];
    let response_ns = if response.is_empty() { None } else { Some(number(response)?) };
    let raw = super::raw(number(time)?, kind, number(offset)?, number(length)?, device(unit)?);
    Some(Raw { response_ns, ..raw })
}

impl Lines for Csv {
    fn line(&mut self, line: &[u8]) -> Result<Option<Raw>, &'static str> {
        if line == HEADER.as_bytes() {
            return Ok(None);
        }
        request(line).map(Some).ok_or("time_ns,kind,offset,length,device,response_ns")
    }
}

impl Encoder for Csv {
    fn start(&mut self, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "{HEADER}")
    }
    fn request(&mut self, request: &Request, out: &mut dyn Write) -> io::Result<bool> {
        let Request { time_ns, offset, length, device, .. } = request;
        let kind = KINDS[request.kind as usize];
        write!(out, "{time_ns},{kind},{offset},{length},{device},")?;
        match request.response_ns {
            Some(ns) => writeln!(out, "{ns}")?,
            None => writeln!(out)?,
        }
        Ok(true)
    }
}
