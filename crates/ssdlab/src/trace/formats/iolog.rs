//! Traces of fio's own (`write_iolog`, `read_iolog`), versions 2 and 3.
//!
//! After `fio version N iolog` lines of `file action [offset length]`, in version 3 with the time in us
//! before them. Actions: add, open, close, read, write, trim, sync, datasync, wait. A wait of version 2 is
//! read as the manual says, in us since the wait before; fio 3.33 itself waits until so many ms after its
//! start, so version 2 is written without times. Reference: fio(1), "trace file format".

use super::text::{number, word_iter};
use super::{Decoder, Input, Kind, Problem, Raw, text};
use crate::registry::Entry;
use crate::trace::format::KnownBy;
use crate::trace::{Encoder, FormatBuild, Request, WriteOptions};
use std::io::{self, Write};

pub const V2: Entry<FormatBuild> = Entry {
    name: "iolog-v2",
    summary: "fio's trace without times",
    reference: "fio(1), trace file format v2",
    build: FormatBuild {
        known_by: KnownBy::Beginning(b"fio version 2 iolog"),
        decoder: |_| Box::new(Iolog::new(2)),
        encoder: Some(|options| Box::new(Writer::new(2, options))),
        loses: "times",
        has_response_times: false,
        suffix: "",
    },
};

pub const V3: Entry<FormatBuild> = Entry {
    name: "iolog-v3",
    summary: "fio's trace with times, since fio 3.31",
    reference: "fio(1), trace file format v3; times in us as fio 3.33 writes and reads them",
    build: FormatBuild {
        known_by: KnownBy::Beginning(b"fio version 3 iolog"),
        decoder: |_| Box::new(Iolog::new(3)),
        encoder: Some(|options| Box::new(Writer::new(3, options))),
        loses: "times below a microsecond",
        has_response_times: false,
        suffix: ".iolog",
    },
};

const EXPECTED: [&str; 2] = [
    "a line of a fio iolog of version 2, such as \"file read 0 4096\"",
    "a line of a fio iolog of version 3, such as \"1000 file read 0 4096\"",
];

/// Files of one iolog at most; each is a device.
const FILES_MAX: usize = 4096;

struct Iolog {
    version: usize,
    started: bool,
    files: Vec<Vec<u8>>,
    /// File of the last request: the next one is mostly of the same.
    last: usize,
    time_us: u64,
}

impl Iolog {
    fn new(version: usize) -> Self {
        Iolog { version, started: false, files: Vec::new(), last: 0, time_us: 0 }
    }

    /// The file's number in order of mention.
    fn file(&mut self, name: &[u8]) -> Option<u32> {
        if self.files.get(self.last).is_none_or(|file| file != name) {
            self.last = match self.files.iter().position(|file| file == name) {
                Some(known) => known,
                None if self.files.len() == FILES_MAX => return None,
                None => {
                    self.files.push(name.to_vec());
                    self.files.len() - 1
                }
            };
        }
        Some(self.last as u32)
    }

    fn line(&mut self, line: &[u8]) -> Option<Option<Raw>> {
        let mut words = word_iter(line);
        if self.version == 3 {
            self.time_us = number(words.next()?)?;
        }
        let (file, action) = (words.next()?, words.next()?);
        let kind = match action {
            b"read" => Kind::Read,
            b"write" => Kind::Write,
            b"trim" => Kind::Trim,
            b"sync" | b"datasync" | b"sync_file_range" => Kind::Flush,
            b"wait" if self.version == 2 => {
                self.time_us = self.time_us.checked_add(number(words.next()?)?)?;
                return Some(None);
            }
            b"add" | b"open" | b"close" => return Some(None),
            _ => return None,
        };
        let (offset, length) = match kind {
            Kind::Flush => (0, 0),
            _ => (number(words.next()?)?, number(words.next()?)?),
        };
        let device = self.file(file)?;
        Some(Some(super::raw(self.time_us.checked_mul(1000)?, kind, offset, length, device)))
    }
}

impl Decoder for Iolog {
    fn next(&mut self, input: &mut Input) -> Result<Option<Raw>, Problem> {
        loop {
            let Some(line) = input.line()? else { return Ok(None) };
            if !self.started {
                self.started = true;
                let wanted = if self.version == 2 {
                    &b"fio version 2 iolog"[..]
                } else {
                    b"fio version 3 iolog"
                };
                if line != wanted {
                    let (found, wanted) = (text::shown(line), text::shown(wanted));
                    return Err(Problem::Fatal(format!("found {found}, expected {wanted}")));
                }
                continue;
            }
            if line.is_empty() {
                continue;
            }
            // The line lives in the input: the borrow ends before a message needs it.
            match self.line(line) {
                Some(Some(raw)) => return Ok(Some(raw)),
                Some(None) => {}
                None => {
                    let (found, expected) = (text::shown(line), EXPECTED[self.version - 2]);
                    return Err(Problem::Damaged(format!("found {found}, expected {expected}")));
                }
            }
        }
    }
}

struct Writer {
    version: u32,
    file: String,
    /// Devices in order of mention; device 0 of them is the file, others have a suffix.
    devices: Vec<u32>,
    last_us: u64,
}

impl Writer {
    fn new(version: u32, options: &WriteOptions) -> Self {
        Writer { version, file: options.file.clone(), devices: Vec::new(), last_us: 0 }
    }

    fn name(&self, index: usize) -> String {
        if index == 0 { self.file.clone() } else { format!("{}.{index}", self.file) }
    }

    fn stamp(&self) -> String {
        if self.version == 3 { format!("{} ", self.last_us) } else { String::new() }
    }
}

impl Encoder for Writer {
    fn start(&mut self, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "fio version {} iolog", self.version)
    }

    fn request(&mut self, request: &Request, out: &mut dyn Write) -> io::Result<bool> {
        // fio takes a time of 0 for none: everything is one microsecond later.
        self.last_us = request.time_ns / 1000 + 1;
        let stamp = self.stamp();
        let index = match self.devices.iter().position(|device| *device == request.device) {
            Some(index) => index,
            None => {
                self.devices.push(request.device);
                let name = self.name(self.devices.len() - 1);
                // The first file is there from the start: fio counts the first pause from here.
                let stamp = match (self.devices.len(), self.version) {
                    (1, 3) => "1 ".to_string(),
                    _ => stamp.clone(),
                };
                writeln!(out, "{stamp}{name} add\n{stamp}{name} open")?;
                self.devices.len() - 1
            }
        };
        let action = match request.kind {
            Kind::Read => "read",
            Kind::Write => "write",
            Kind::Trim => "trim",
            Kind::Flush => "sync",
        };
        let (offset, length) = (request.offset, request.length);
        if index == 0 {
            writeln!(out, "{stamp}{} {action} {offset} {length}", self.file)?;
        } else {
            writeln!(out, "{stamp}{}.{index} {action} {offset} {length}", self.file)?;
        }
        Ok(true)
    }

    fn finish(&mut self, out: &mut dyn Write) -> io::Result<()> {
        let stamp = self.stamp();
        for index in 0..self.devices.len() {
            writeln!(out, "{stamp}{} close", self.name(index))?;
        }
        Ok(())
    }
}
