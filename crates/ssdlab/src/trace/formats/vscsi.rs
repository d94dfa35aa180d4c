//! CloudPhysics' traces of virtual disks, versions 1 and 2, little-endian.
//!
//! Version 1, 32 bytes: u32 serial number, u32 bytes, u32 scatter-gather elements, u16 SCSI command,
//! u16 version (0x0100), u64 block (512 bytes), u64 us. Version 2, 40 bytes: u16 command, u16 version
//! (0x0200), u32 serial number, u32 bytes, u32 elements, u64 block, u64 us, u64 response us.
//! Reference: Waldspurger et al., "Efficient MRC construction with SHARDS", FAST 2015, and the reader of
//! libCacheSim.

use super::{Decoder, Input, Kind, Problem, Raw, sectors};
use crate::registry::Entry;
use crate::trace::format::KnownBy;
use crate::trace::{Encoder, FormatBuild, Request, WriteOptions};
use std::io::{self, Write};

pub const V1: Entry<FormatBuild> = Entry {
    name: "vscsi-v1",
    summary: "CloudPhysics' trace of a virtual disk, version 1",
    reference: "Waldspurger et al., FAST 2015; records as libCacheSim reads them",
    build: FormatBuild {
        known_by: KnownBy::Look(|head| versions(head, 32, 14, 1)),
        decoder: |_| Box::new(Vscsi::<1>),
        encoder: Some(|_: &WriteOptions| Box::new(Writer { serial: 0, version: 1 })),
        loses: "times below a microsecond, parts of sectors, devices",
        has_response_times: false,
        suffix: ".vscsi",
    },
};

pub const V2: Entry<FormatBuild> = Entry {
    name: "vscsi-v2",
    summary: "CloudPhysics' trace of a virtual disk, version 2, with response times",
    reference: "records as libCacheSim reads them",
    build: FormatBuild {
        known_by: KnownBy::Look(|head| versions(head, 40, 2, 2)),
        decoder: |_| Box::new(Vscsi::<2>),
        encoder: Some(|_: &WriteOptions| Box::new(Writer { serial: 0, version: 2 })),
        loses: "times below a microsecond, parts of sectors, devices",
        has_response_times: true,
        suffix: "",
    },
};

/// Whether the first two records (one, if there are not two) have this version.
fn versions(head: &[u8], size: usize, at: usize, version: u8) -> bool {
    let of = |record: &[u8]| record[at + 1] == version && record[at] == 0;
    let mut records = head.chunks_exact(size).take(2).peekable();
    records.peek().is_some() && records.all(of)
}

/// SCSI commands: READ and WRITE of 6, 10, 12 and 16 bytes, UNMAP, WRITE SAME, SYNCHRONIZE CACHE.
fn kind_of(command: u16) -> Option<Kind> {
    match command {
        0x08 | 0x28 | 0xa8 | 0x88 => Some(Kind::Read),
        0x0a | 0x2a | 0xaa | 0x8a | 0x2e | 0x8e => Some(Kind::Write),
        0x42 => Some(Kind::Trim),
        0x35 | 0x91 => Some(Kind::Flush),
        _ => None,
    }
}

fn command_of(kind: Kind) -> u16 {
    match kind {
        Kind::Read => 0x28,
        Kind::Write => 0x2a,
        Kind::Trim => 0x42,
        Kind::Flush => 0x35,
    }
}

struct Vscsi<const VERSION: u8>;

struct Fields {
    length: u32,
    command: u16,
    version: u16,
    block: u64,
    time_us: u64,
    response_us: Option<u64>,
}

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([bytes[at], bytes[at + 1]])
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(std::array::from_fn(|i| bytes[at + i]))
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(std::array::from_fn(|i| bytes[at + i]))
}

fn first(input: &mut Input) -> Result<Option<Fields>, Problem> {
    let Some(bytes) = input.record::<32>()? else { return Ok(None) };
    Ok(Some(Fields {
        length: u32_at(&bytes, 4),
        command: u16_at(&bytes, 12),
        version: u16_at(&bytes, 14),
        block: u64_at(&bytes, 16),
        time_us: u64_at(&bytes, 24),
        response_us: None,
    }))
}

fn second(input: &mut Input) -> Result<Option<Fields>, Problem> {
    let Some(bytes) = input.record::<40>()? else { return Ok(None) };
    Ok(Some(Fields {
        command: u16_at(&bytes, 0),
        version: u16_at(&bytes, 2),
        length: u32_at(&bytes, 8),
        block: u64_at(&bytes, 16),
        time_us: u64_at(&bytes, 24),
        response_us: Some(u64_at(&bytes, 32)),
    }))
}

impl<const VERSION: u8> Decoder for Vscsi<VERSION> {
    fn next(&mut self, input: &mut Input) -> Result<Option<Raw>, Problem> {
        loop {
            let fields = if VERSION == 1 { first(input)? } else { second(input)? };
            let Some(fields) = fields else { return Ok(None) };
            if fields.version >> 8 != u16::from(VERSION) {
                let (found, expected) = (fields.version, u16::from(VERSION) << 8);
                let problem = format!("found version 0x{found:04x}, expected 0x{expected:04x}");
                return Err(Problem::Damaged(problem));
            }
            // Other commands (INQUIRY, TEST UNIT READY) move no data of the disk.
            let Some(kind) = kind_of(fields.command) else { continue };
            let whole = (fields.time_us.checked_mul(1000), sectors(fields.block));
            let (Some(time_ns), Some(offset)) = whole else {
                return Err(Problem::Damaged("a time or block beyond 2^64".into()));
            };
            let length = u64::from(fields.length);
            let response_ns = fields.response_us.and_then(|us| us.checked_mul(1000));
            return Ok(Some(Raw { response_ns, ..super::raw(time_ns, kind, offset, length, 0) }));
        }
    }
}

struct Writer {
    serial: u32,
    version: u8,
}

impl Encoder for Writer {
    fn request(&mut self, request: &Request, out: &mut dyn Write) -> io::Result<bool> {
        self.serial = self.serial.wrapping_add(1);
        let (block, count) = super::touched_sectors(request);
        let Ok(length) = u32::try_from(count * super::SECTOR_BYTES) else { return Ok(false) };
        let time_us = request.time_ns / 1000;
        let mut record = Vec::with_capacity(40);
        if self.version == 1 {
            for word in [self.serial, length, 1] {
                record.extend(word.to_le_bytes());
            }
            record.extend(command_of(request.kind).to_le_bytes());
            record.extend(0x0100u16.to_le_bytes());
        } else {
            record.extend(command_of(request.kind).to_le_bytes());
            record.extend(0x0200u16.to_le_bytes());
            for word in [self.serial, length, 1] {
                record.extend(word.to_le_bytes());
            }
        }
        record.extend(block.to_le_bytes());
        record.extend(time_us.to_le_bytes());
        if self.version == 2 {
            record.extend((request.response_ns.unwrap_or(0) / 1000).to_le_bytes());
        }
        out.write_all(&record)?;
        Ok(true)
    }
}
