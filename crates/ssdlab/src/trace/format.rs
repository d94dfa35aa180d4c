//! The list of formats, what each can do, and finding one by content.

use super::input::{Input, Problem};
use super::{Object, Raw, ReadOptions, Request, formats, text};
use crate::registry::{Entry, Registry};
use std::io::{self, Write};

/// Bytes at the beginning of a trace by which its format is found.
pub const HEAD_BYTES: usize = 1 << 16;

/// Lines or records of the beginning that that are tried.
const TRIED: usize = 64;

/// Reads the requests of one format.
pub(super) trait Decoder: Send {
    /// The next request; `None` at the end.
    fn next(&mut self, input: &mut Input) -> Result<Option<Raw>, Problem>;
    /// What the request that was read last names, in formats that name objects.
    fn object(&self) -> Option<Object> {
        None
    }
    /// Why there may be no request at all: what was found instead, beginning with `": "`.
    fn nothing_found(&self) -> String {
        String::new()
    }
}

/// What a written trace holds beside the requests.
#[derive(Clone, Debug, PartialEq)]
pub struct WriteOptions {
    /// File or device that a fio iolog names.
    pub file: String,
    /// Bytes of a block, for formats that number blocks.
    pub block_bytes: u64,
}

impl Default for WriteOptions {
    fn default() -> Self {
        WriteOptions { file: "trace.dat".into(), block_bytes: 4096 }
    }
}

/// Writes requests in one format.
pub trait Encoder: Send {
    /// Writes what stands before the first request.
    fn start(&mut self, _out: &mut dyn Write) -> io::Result<()> {
        Ok(())
    }
    /// Writes one request; false where the format cannot say it (a trim, a flush, a length).
    fn request(&mut self, request: &Request, out: &mut dyn Write) -> io::Result<bool>;
    /// Writes what stands behind the last one.
    fn finish(&mut self, _out: &mut dyn Write) -> io::Result<()> {
        Ok(())
    }
}

/// Makes the writer of a format.
pub type MakeEncoder = fn(&WriteOptions) -> Box<dyn Encoder>;

/// What a format can do.
#[derive(Clone, Copy)]
pub struct FormatBuild {
    pub(super) known_by: KnownBy,
    pub(super) decoder: fn(&ReadOptions) -> Box<dyn Decoder>,
    /// Writes the format; `None`: it can only be read.
    pub encoder: Option<MakeEncoder>,
    /// What is lost when a trace is written in it; empty where nothing is. The law that what is written reads back
    /// goes by these words: `trims`, `flushes`, `devices`, `times`, `times below a second` (`a millisecond`,
    /// `a microsecond`, `100 ns`), and `block` of formats of whole blocks, which it leaves out.
    pub loses: &'static str,
    /// Whether it tells how long requests took.
    pub has_response_times: bool,
    /// How names of files in it end, such as `.csv`: a trace written to one is written in this format; empty where
    /// names say nothing.
    pub suffix: &'static str,
}

/// What a file of a format is known by.
#[derive(Clone, Copy)]
pub(super) enum KnownBy {
    /// All files of it begin so, and no others: one whose requests cannot be read is a damaged one.
    Beginning(&'static [u8]),
    /// Whether the beginning of a file looks like it, before it is tried.
    Look(fn(&[u8]) -> bool),
}

/// All formats.
pub const FORMATS: Registry<FormatBuild> = Registry {
    what: "trace format",
    entries: &[
        formats::blkparse::ENTRY,
        formats::blktrace::ENTRY,
        formats::iolog::V2,
        formats::iolog::V3,
        formats::msr::ENTRY,
        formats::vscsi::V1,
        formats::vscsi::V2,
        formats::spc::ENTRY,
        formats::disksim::ENTRY,
        formats::ssdsim::ENTRY,
        formats::blkreplay::ENTRY,
        formats::hp_srt::ENTRY,
        formats::alibaba::ENTRY,
        formats::tencent::ENTRY,
        formats::oracle_general::ENTRY,
        formats::lba::ENTRY,
        formats::arc::ENTRY,
        formats::keys::U32,
        formats::keys::U64,
        formats::csv::ENTRY,
    ],
};

/// The format of a trace that begins with `head`.
///
/// A format is taken where the beginning names it, or looks like it and most of its first requests can be read.
///
/// # Errors
/// What is wrong, without the file's name: no format fits, or several do.
pub fn detect(head: &[u8], options: &ReadOptions) -> Result<&'static Entry<FormatBuild>, String> {
    if head.is_empty() {
        return Err("is empty".into());
    }
    let fitting: Vec<_> = FORMATS
        .entries
        .iter()
        .filter(|entry| match entry.build.known_by {
            KnownBy::Beginning(own) => head.starts_with(own),
            KnownBy::Look(like) => like(head) && reads(entry, head, options),
        })
        .collect();
    match fitting[..] {
        [one] => Ok(one),
        [] => Err(unknown(head)),
        _ => {
            let names: Vec<_> = fitting.iter().map(|entry| entry.name).collect();
            Err(format!("could be {}; name the format that it is", names.join(" or ")))
        }
    }
}

/// What was looked for where no format fits, and what else there is.
fn unknown(head: &[u8]) -> String {
    let found = |entry: &&Entry<FormatBuild>| !entry.name.starts_with("keys-");
    let names: Vec<_> = FORMATS.entries.iter().filter(found).map(|entry| entry.name).collect();
    let begins = text::shown(head.split(|byte| *byte == b'\n').next().unwrap_or_default());
    format!(
        "is no trace in a known format: begins with {begins}, looked for {}; if it is one of them, \
         name its format; a text with columns is read with --columns time=0,op=2,lba=3,size=4, raw \
         keys with --format keys-u64",
        names.join(", ")
    )
}

/// Whether most of the beginning reads as this format.
fn reads(entry: &Entry<FormatBuild>, head: &[u8], options: &ReadOptions) -> bool {
    let whole = head.len() < HEAD_BYTES;
    // Of a file that goes on the last line is cut off.
    let binary = entry.build.is_binary(head);
    let end = match head.iter().rposition(|byte| *byte == b'\n') {
        Some(last) if !whole && !binary => last + 1,
        _ => head.len(),
    };
    let start = &head[..end.min(HEAD_BYTES)];
    let mut input = Input::new(start.to_vec(), Box::new(io::empty()));
    let mut decoder = (entry.build.decoder)(options);
    let (mut good, mut bad) = (0, 0);
    for _ in 0..TRIED {
        match decoder.next(&mut input) {
            Ok(Some(_)) => good += 1,
            Ok(None) => break,
            Err(Problem::Damaged(_)) => bad += 1,
            Err(Problem::Cut(_) | Problem::Fatal(_)) => {
                bad += u32::from(whole || !binary);
                break;
            }
        }
    }
    good >= bad
}

impl FormatBuild {
    /// Whether the beginning is no text; binary formats are cut anywhere.
    fn is_binary(&self, head: &[u8]) -> bool {
        head.contains(&0)
    }
}

/// Whether the first line of `head` that is not blank and no `#` comment fits.
pub(super) fn first_line(head: &[u8], fits: impl Fn(&[u8]) -> bool) -> bool {
    let mut lines = head.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii);
    lines.find(|line| !line.is_empty() && line[0] != b'#').is_some_and(fits)
}
