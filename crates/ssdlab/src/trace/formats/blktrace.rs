//! The kernel's binary records of a block-layer trace, as blktrace keeps them per processor and
//! `blkparse -d` merges them.
//!
//! Records of 48 bytes in the byte order of the machine that wrote them: u32 magic 0x65617400 + version,
//! u32 sequence, u64 ns, u64 sector, u32 bytes, u32 action, u32 pid, u32 device, u32 cpu, u16 error,
//! u16 length of what follows. Reference: include/uapi/linux/blktrace_api.h.

use super::super::format::Decoder;
use super::{Input, Kind, Problem, Raw, ReadOptions, sectors};
use crate::registry::Entry;
use crate::trace::format::KnownBy;
use crate::trace::{Encoder, FormatBuild, Request, WriteOptions};
use std::io::{self, Write};

pub const ENTRY: Entry<FormatBuild> = Entry {
    name: "blktrace",
    summary: "binary records of a Linux block-layer trace",
    reference: "linux/blktrace_api.h; blkparse -d merges the files of several processors",
    build: FormatBuild {
        known_by: KnownBy::Look(|head| byte_order(head).is_some()),
        decoder: |options| Box::new(Blktrace::new(options)),
        encoder: Some(|_: &WriteOptions| Box::new(Writer { sequence: 0 })),
        loses: "parts of sectors",
        has_response_times: false,
        suffix: "",
    },
};

const MAGIC: u32 = 0x6561_7400;
const VERSION: u32 = 7;
/// `struct blk_io_trace`.
const RECORD: usize = 48;

const QUEUE: u32 = 1;
const ISSUE: u32 = 7;
const COMPLETE: u32 = 8;

// Categories, in the upper half of `action`.
const READ: u32 = 1 << 0;
const WRITE: u32 = 1 << 1;
const FLUSH: u32 = 1 << 2;
const TC_QUEUE: u32 = 1 << 4;
const COMMAND: u32 = 1 << 9;
const NOTIFY: u32 = 1 << 10;
const DISCARD: u32 = 1 << 13;

#[derive(Clone, Copy, PartialEq)]
enum Order {
    Little,
    Big,
}

fn byte_order(head: &[u8]) -> Option<Order> {
    let magic: [u8; 4] = head.get(..4)?.try_into().ok()?;
    match (u32::from_le_bytes(magic) & !0xff, u32::from_be_bytes(magic) & !0xff) {
        (MAGIC, _) => Some(Order::Little),
        (_, MAGIC) => Some(Order::Big),
        _ => None,
    }
}

struct Blktrace {
    action: u32,
    letter: char,
    order: Option<Order>,
    /// Events of requests that were passed over.
    others: u64,
}

impl Blktrace {
    fn new(options: &ReadOptions) -> Self {
        let action = match options.action {
            'D' => ISSUE,
            'C' => COMPLETE,
            _ => QUEUE,
        };
        Blktrace { action, letter: options.action, order: None, others: 0 }
    }
}

impl Decoder for Blktrace {
    fn next(&mut self, input: &mut Input) -> Result<Option<Raw>, Problem> {
        loop {
            let Some(bytes) = input.record::<RECORD>()? else { return Ok(None) };
            let order = match self.order.or_else(|| byte_order(&bytes)) {
                Some(order) if byte_order(&bytes) == Some(order) => order,
                // Without the length of what follows the next record cannot be found.
                _ => return Err(Problem::Fatal("found no blktrace magic number here".into())),
            };
            self.order = Some(order);
            let u16_at = |at: usize| {
                let bytes = [bytes[at], bytes[at + 1]];
                if order == Order::Big {
                    u16::from_be_bytes(bytes)
                } else {
                    u16::from_le_bytes(bytes)
                }
            };
            let u32_at = |at: usize| {
                let bytes: [u8; 4] = std::array::from_fn(|i| bytes[at + i]);
                if order == Order::Big {
                    u32::from_be_bytes(bytes)
                } else {
                    u32::from_le_bytes(bytes)
                }
            };
            let u64_at = |at: usize| {
                let bytes: [u8; 8] = std::array::from_fn(|i| bytes[at + i]);
                if order == Order::Big {
                    u64::from_be_bytes(bytes)
                } else {
                    u64::from_le_bytes(bytes)
                }
            };
            input.skip(u64::from(u16_at(46)))?;
            let (action, category) = (u32_at(28) & 0xff, u32_at(28) >> 16);
            if category & (NOTIFY | COMMAND) != 0 {
                continue;
            }
            if action != self.action {
                self.others += 1;
                continue;
            }
            let length = u64::from(u32_at(24));
            let kind = match category {
                c if c & DISCARD != 0 => Kind::Trim,
                c if c & FLUSH != 0 && length == 0 => Kind::Flush,
                c if c & WRITE != 0 => Kind::Write,
                c if c & READ != 0 => Kind::Read,
                _ => continue,
            };
            let sector = u64_at(16);
            let offset = if length == 0 { Some(0) } else { sectors(sector) };
            let Some(offset) = offset else {
                return Err(Problem::Damaged(format!("sector {sector} is beyond 2^64 bytes")));
            };
            return Ok(Some(super::raw(u64_at(8), kind, offset, length, u32_at(36))));
        }
    }

    fn nothing_found(&self) -> String {
        match self.others {
            0 => String::new(),
            n => format!(": no event {}, but {n} others", self.letter),
        }
    }
}

struct Writer {
    sequence: u32,
}

impl Encoder for Writer {
    fn request(&mut self, request: &Request, out: &mut dyn Write) -> io::Result<bool> {
        self.sequence = self.sequence.wrapping_add(1);
        let category = match request.kind {
            Kind::Read => READ,
            Kind::Write => WRITE,
            Kind::Trim => DISCARD | WRITE,
            Kind::Flush => FLUSH | WRITE,
        };
        let (sector, count) = super::touched_sectors(request);
        let Ok(bytes) = u32::try_from(count * super::SECTOR_BYTES) else { return Ok(false) };
        let mut record = [0; RECORD];
        record[..4].copy_from_slice(&(MAGIC | VERSION).to_le_bytes());
        record[4..8].copy_from_slice(&self.sequence.to_le_bytes());
        record[8..16].copy_from_slice(&request.time_ns.to_le_bytes());
        record[16..24].copy_from_slice(&sector.to_le_bytes());
        record[24..28].copy_from_slice(&bytes.to_le_bytes());
        // Bit 8 of the category: a request of a file system, the only ones that fio replays.
        let action = QUEUE | (category | TC_QUEUE | 1 << 8) << 16;
        record[28..32].copy_from_slice(&action.to_le_bytes());
        record[36..40].copy_from_slice(&request.device.to_le_bytes());
        out.write_all(&record)?;
        Ok(true)
    }
}
