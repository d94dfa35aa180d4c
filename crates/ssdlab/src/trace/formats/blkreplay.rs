//! blkreplay's loads: `start ; sector ; sectors ; R|W ; delay ; duration`, times in seconds.
//!
//! Any text may stand before the first request. A duration above 0 is the time that the request took when
//! the load was replayed. Reference: Schoebel-Theuer, blkreplay manual.

use super::text::{decimal, number};
use super::{ByLine, Kind, Lines, Raw, reads_or_writes, sectors, touched_sectors};
use crate::registry::Entry;
use crate::trace::format::KnownBy;
use crate::trace::{Encoder, FormatBuild, Request, WriteOptions};
use std::io::{self, Write};

pub const ENTRY: Entry<FormatBuild> = Entry {
    name: "blkreplay",
    summary: "blkreplay's load, recorded on servers with blktrace",
    reference: "Schoebel-Theuer, blkreplay",
    build: FormatBuild {
        known_by: KnownBy::Look(|head| {
            head.split(|byte| *byte == b'\n').any(|line| request(line).is_some())
        }),
        decoder: |_| Box::new(ByLine(Blkreplay { began: false })),
        encoder: Some(|_: &WriteOptions| Box::new(Blkreplay { began: false })),
        loses: "trims, flushes, parts of sectors, devices",
        has_response_times: true,
        suffix: ".load",
    },
};

struct Blkreplay {
    /// The first request is behind us, and with it whatever text stands before it.
    began: bool,
}

fn request(line: &[u8]) -> Option<Raw> {
    let mut columns = line.split(|byte| *byte == b';').map(<[u8]>::trim_ascii);
    let time_ns = decimal(columns.next()?, 9)?;
    let offset = sectors(number(columns.next()?)?)?;
    let length = sectors(number(columns.next()?)?)?;
    // As blktrace's rwbs: RA is a read ahead, WS a synchronous write.
    let kind = match columns.next()?.first()? {
        b'R' | b'r' => Kind::Read,
        b'W' | b'w' => Kind::Write,
        _ => return None,
    };
    let duration = columns.nth(1).and_then(|text| decimal(text, 9));
    let response_ns = duration.filter(|ns| *ns > 0);
    Some(Raw { response_ns, ..super::raw(time_ns, kind, offset, length, 0) })
}

impl Lines for Blkreplay {
    fn line(&mut self, line: &[u8]) -> Result<Option<Raw>, &'static str> {
        let found = request(line);
        if found.is_none() && self.began {
            return Err("start ; sector ; sectors ; R or W ; delay ; duration");
        }
        self.began |= found.is_some();
        Ok(found)
    }
}

impl Encoder for Blkreplay {
    fn request(&mut self, request: &Request, out: &mut dyn Write) -> io::Result<bool> {
        if !reads_or_writes(request) {
            return Ok(false);
        }
        let (sector, count) = touched_sectors(request);
        let kind = if request.kind == Kind::Read { 'R' } else { 'W' };
        let seconds = |ns: u64| format!("{}.{:09}", ns / 1_000_000_000, ns % 1_000_000_000);
        let (start, took) = (seconds(request.time_ns), seconds(request.response_ns.unwrap_or(0)));
        writeln!(out, "{start} ; {sector} ; {count} ; {kind} ; 0.0 ; {took}")?;
        Ok(true)
    }
}
