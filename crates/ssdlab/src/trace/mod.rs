//! Block traces: what real systems asked of their drives, read from the formats they are kept in.
//!
//! [`Trace`] reads one request after another from anything that is [`BufRead`], whatever the format
//! (see [`FORMATS`]); memory does not grow with the trace. Times count from the first request.
//! [`profile`] says what a trace is like; [`FormatBuild::encoder`] writes one.
//!
//! ```
//! use ssdlab::trace::{Kind, ReadOptions, Trace};
//!
//! let text: &[u8] = b"0.5,0,R,4096\n";
//! let error = Trace::open(Box::new(text), "a.txt", None, &ReadOptions::default());
//! let error = error.err().unwrap();
//! assert!(error.to_string().contains("a.txt"), "{error}");
//!
//! let text: &[u8] = b"3,W,8192,4096,1577808000000046\n3,R,0,512,1577808000000050\n";
//! let mut trace = Trace::open(Box::new(text), "io.csv", None, &ReadOptions::default())?;
//! assert_eq!(trace.format(), "alibaba");
//! let first = trace.next_request()?.unwrap();
//! assert_eq!((first.kind, first.offset, first.length), (Kind::Write, 8192, 4096));
//! assert_eq!(trace.next_request()?.unwrap().time_ns, 4_000);
//! # Ok::<(), ssdlab::Error>(())
//! ```

mod format;
mod formats;
mod input;
mod place;
pub mod profile;
mod select;
mod text;

pub use format::{Encoder, FORMATS, FormatBuild, HEAD_BYTES, MakeEncoder, WriteOptions, detect};
pub use place::{Placement, Spans};
pub use select::Select;

use crate::error::{Error, Result};
use format::Decoder;
use input::{Input, Problem};
use std::io::BufRead;

/// What a request asks for; the numbers are those of the columns handed out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Kind {
    /// Read.
    Read = 0,
    /// Write.
    Write = 1,
    /// Trim (discard, deallocate).
    Trim = 2,
    /// Flush of the write cache; has no extent.
    Flush = 3,
}

/// Names of the kinds, by number.
pub const KINDS: [&str; 4] = ["read", "write", "trim", "flush"];

/// One request of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// When it was made, ns since the first request; never less than that of the request before it.
    pub time_ns: u64,
    /// First byte on its device.
    pub offset: u64,
    /// Bytes; 0 for a flush only.
    pub length: u32,
    /// What it asks for.
    pub kind: Kind,
    /// Device, volume or stream, as numbered in the trace.
    pub device: u32,
    /// How long it took when it was recorded, ns; `None` where the format does not say.
    pub response_ns: Option<u64>,
}

/// What a request names that asks for an object; its size is the length of the request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Object {
    /// Its name: a number, or the hash of a text.
    pub key: u64,
    /// How long it is valid once it is stored, ns; 0: for ever.
    pub ttl_ns: u64,
}

/// A request as it stands in a file: times from any origin, nothing checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Raw {
    time_ns: u64,
    offset: u64,
    length: u64,
    kind: Kind,
    device: u32,
    response_ns: Option<u64>,
}

/// How a trace is read.
#[derive(Clone, Debug, PartialEq)]
pub struct ReadOptions {
    /// Which event of a block-layer trace is the request: `Q` queued, `D` sent to the drive, `C` done.
    pub action: char,
    /// Bytes of a block, for formats that number blocks without saying their size.
    pub block_bytes: u64,
    /// Leave out damaged lines, and what cannot be decompressed, and count them, instead of stopping at the first.
    pub skip_damaged: bool,
    /// Which requests to hand out.
    pub select: Select,
    /// Of a text with columns, where each stands, such as `time=0,op=2,lba=3,size=4`; empty for the known formats.
    pub columns: String,
}

impl Default for ReadOptions {
    fn default() -> Self {
        let select = Select::default();
        ReadOptions {
            action: 'Q',
            block_bytes: 4096,
            skip_damaged: false,
            select,
            columns: String::new(),
        }
    }
}

impl ReadOptions {
    /// Refuses what no format could honour.
    fn check(&self) -> Result<()> {
        if !['Q', 'D', 'C'].contains(&self.action) {
            return Err(Error::value(self.action, "an action: Q (queued), D (issued) or C (done)")
                .under("action"));
        }
        if self.block_bytes == 0 || self.block_bytes > 1 << 30 {
            let found = self.block_bytes.to_string();
            return Err(Error::value(found, "a size of 1 to 1073741824 bytes").under("block"));
        }
        self.select.check()
    }
}

/// What a text is called whose columns are told.
const COLUMNS: &str = "columns";
/// A repetition of the request before it counts as a duplicate within this time, ns.
pub const DUPLICATE_NS: u64 = 1_000_000;
/// Requests are counted as unaligned where they are not whole sectors of this many bytes.
pub const SECTOR_BYTES: u64 = 512;

/// What is odd about a trace, and how it was treated.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Oddities {
    /// Damaged lines or records, left out (with [`ReadOptions::skip_damaged`]).
    pub damaged: u64,
    /// What was wrong with the first of them, place included.
    pub first_damage: Option<String>,
    /// Requests without a byte that are no flushes; left out.
    pub zero_length: u64,
    /// Requests that are not whole sectors; kept as they are.
    pub unaligned: u64,
    /// Requests with a time before that of the request before them; they take its time.
    pub backwards: u64,
    /// Farthest that a time went back, ns.
    pub backwards_ns_max: u64,
    /// Requests that repeat the one before them within a millisecond; kept.
    pub duplicates: u64,
}

/// A trace being read. See the module.
pub struct Trace {
    name: String,
    format: &'static str,
    decoder: Box<dyn Decoder>,
    input: Input,
    options: ReadOptions,
    /// Time of the first request in the file, as it stands there.
    origin: Option<u64>,
    /// The last request that was read, selected or not.
    last: Option<Request>,
    /// Time of the first request that was selected.
    first_selected: Option<u64>,
    oddities: Oddities,
    requests: u64,
    ended: bool,
}

const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

impl Trace {
    /// Opens a trace; `name` stands in messages. Without `format` it is found by its content.
    ///
    /// # Errors
    /// [`Error::File`] where the format is not to be found, or found twice; [`Error::Unknown`] for an
    /// unknown `format`.
    pub fn open(
        source: Box<dyn BufRead + Send>,
        name: &str,
        format: Option<&str>,
        options: &ReadOptions,
    ) -> Result<Self> {
        options.check()?;
        let (mut head, source) = input::read_head(source, HEAD_BYTES)
            .map_err(|e| file_error(name, format!("cannot be read ({e})")))?;
        // Spreadsheets put it before a text; nothing else of what is read begins so.
        if head.starts_with(BYTE_ORDER_MARK) && !head.contains(&0) {
            head.drain(..BYTE_ORDER_MARK.len());
        }
        let (format, decoder) = match format {
            _ if !options.columns.is_empty() => {
                let found = formats::columns::decoder(&options.columns, &head, options.block_bytes);
                let wrong = |problem| file_error(name, format!("--columns {problem}"));
                (COLUMNS, found.map_err(wrong)?)
            }
            Some(format) => {
                let entry = FORMATS.find(format)?;
                (entry.name, (entry.build.decoder)(options))
            }
            None => {
                let entry = detect(&head, options).map_err(|problem| file_error(name, problem))?;
                (entry.name, (entry.build.decoder)(options))
            }
        };
        Ok(Trace {
            name: name.to_string(),
            format,
            decoder,
            input: Input::new(head, source),
            options: options.clone(),
            origin: None,
            last: None,
            first_selected: None,
            oddities: Oddities::default(),
            requests: 0,
            ended: false,
        })
    }

    /// Name of the format.
    pub fn format(&self) -> &'static str {
        self.format
    }

    /// The object of the request that was handed out last, in formats that name objects.
    pub fn object(&self) -> Option<Object> {
        self.decoder.object()
    }

    /// What is odd about what has been read so far.
    pub fn oddities(&self) -> &Oddities {
        &self.oddities
    }

    /// Requests handed out so far.
    pub fn requests(&self) -> u64 {
        self.requests
    }

    /// Whether the format says when requests were made.
    pub fn has_times(&self) -> bool {
        !matches!(self.format, "lba" | "arc" | "keys-u32" | "keys-u64" | "iolog-v2" | COLUMNS)
            || self.last.is_some_and(|request| request.time_ns > 0)
    }

    /// The next selected request; `None` at the end.
    ///
    /// # Errors
    /// [`Error::File`] with file and line for a damaged line, for a file that cannot be read on, and at
    /// the end for a trace without a single request, or without one that is selected.
    #[allow(clippy::should_implement_trait)]
    pub fn next_request(&mut self) -> Result<Option<Request>> {
        while let Some(mut request) = self.next_whole()? {
            if self.options.select.is_past(&request) {
                self.ended = true;
                break;
            }
            if self.options.select.takes(&request) {
                let first = *self.first_selected.get_or_insert(request.time_ns);
                request.time_ns -= first;
                self.requests += 1;
                return Ok(Some(request));
            }
        }
        if self.requests == 0 {
            let selected = self.options.select.told(self.last.map_or(0, |last| last.time_ns));
            return Err(file_error(&self.name, format!("has no request {selected}")));
        }
        Ok(None)
    }

    /// The next request of the file that is one, checked and put in order.
    fn next_whole(&mut self) -> Result<Option<Request>> {
        while !self.ended {
            let (problem, hint) = match self.decoder.next(&mut self.input) {
                Ok(Some(raw)) => match self.settle(raw) {
                    Ok(Some(request)) => return Ok(Some(request)),
                    Ok(None) => continue,
                    Err(problem) => (problem, ""),
                },
                Ok(None) => {
                    self.ended = true;
                    break;
                }
                Err(Problem::Damaged(problem)) => (problem, ""),
                Err(Problem::Cut(problem)) => {
                    self.ended = true;
                    (problem, "; with --skip-damaged what is before is read")
                }
                Err(Problem::Fatal(problem)) => return Err(self.at_place(problem)),
            };
            if !self.options.skip_damaged {
                return Err(self.at_place(problem + hint));
            }
            let error = self.at_place(problem);
            self.oddities.damaged += 1;
            self.oddities.first_damage.get_or_insert_with(|| error.to_string());
        }
        if self.last.is_none() {
            let why = self.decoder.nothing_found();
            let problem = format!("has no request in it{why} (read as {})", self.format);
            return Err(file_error(&self.name, problem));
        }
        Ok(None)
    }

    /// Checks a request and counts what is odd; `None` for one that is left out.
    fn settle(&mut self, raw: Raw) -> std::result::Result<Option<Request>, String> {
        let length = u32::try_from(raw.length)
            .map_err(|_| format!("a request of {} bytes; 4 GiB are the most", raw.length))?;
        if raw.offset.checked_add(raw.length).is_none() {
            return Err(format!("a request at byte {} reaches beyond 2^64", raw.offset));
        }
        if length == 0 && raw.kind != Kind::Flush {
            self.oddities.zero_length += 1;
            return Ok(None);
        }
        let odd = |n: u64| !n.is_multiple_of(SECTOR_BYTES);
        self.oddities.unaligned += u64::from(odd(raw.offset) || odd(raw.length));
        let origin = *self.origin.get_or_insert(raw.time_ns);
        let floor = self.last.map_or(0, |last| last.time_ns);
        let time_ns = match raw.time_ns.checked_sub(origin) {
            Some(time) if time >= floor => time,
            _ => {
                self.oddities.backwards += 1;
                let back = (origin + floor).saturating_sub(raw.time_ns);
                self.oddities.backwards_ns_max = self.oddities.backwards_ns_max.max(back);
                floor
            }
        };
        let request = Request {
            time_ns,
            offset: raw.offset,
            length,
            kind: raw.kind,
            device: raw.device,
            response_ns: raw.response_ns,
        };
        if let Some(last) = &self.last {
            let key = |r: &Request| (r.device, r.kind, r.offset, r.length);
            let near = time_ns - last.time_ns <= DUPLICATE_NS && self.has_times();
            self.oddities.duplicates +=
                u64::from(near && key(last) == key(&request) && raw.kind != Kind::Flush);
        }
        self.last = Some(request);
        Ok(Some(request))
    }

    fn at_place(&self, problem: String) -> Error {
        file_error(&self.input.place(&self.name), problem)
    }
}

fn file_error(path: &str, problem: impl Into<String>) -> Error {
    Error::File { path: path.to_string(), problem: problem.into() }
}
