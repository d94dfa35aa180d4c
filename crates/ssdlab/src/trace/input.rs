//! The bytes of a trace as lines or as records, with the place for messages.

use std::io::{self, BufRead, BufReader, Cursor, Read};

/// The bytes of a trace, decompressed.
pub(super) type Source = Box<dyn BufRead + Send>;

/// Longest line that can be part of a trace; anything longer is no text.
const LINE_MAX: u64 = 1 << 16;

/// What stops a reader.
#[derive(Debug)]
pub(super) enum Problem {
    /// This line or record is wrong; the next one may be right.
    Damaged(String),
    /// What is compressed breaks off here, or is damaged from here on; what was read before is right.
    Cut(String),
    /// Nothing more can be read.
    Fatal(String),
}

impl From<io::Error> for Problem {
    fn from(error: io::Error) -> Self {
        if error.raw_os_error().is_some() {
            return Problem::Fatal(format!("cannot be read on ({error})"));
        }
        let end = error.kind() == io::ErrorKind::UnexpectedEof;
        let why = if end { "the file ends too early".to_string() } else { error.to_string() };
        Problem::Cut(format!("cannot be decompressed from here on ({why})"))
    }
}

/// A source that broke off, and breaks off again.
struct Broken(io::Error);

impl Read for Broken {
    fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
        Err(match self.0.raw_os_error() {
            Some(code) => io::Error::from_raw_os_error(code),
            None => io::Error::new(self.0.kind(), self.0.to_string()),
        })
    }
}

/// Reads up to `most` bytes, fewer at the end of the source; and the rest of it.
///
/// # Errors
/// Where not a byte can be read.
pub(super) fn read_head(mut source: Source, most: usize) -> io::Result<(Vec<u8>, Source)> {
    let mut head = Vec::with_capacity(most);
    match source.by_ref().take(most as u64).read_to_end(&mut head) {
        Err(error) if head.is_empty() => Err(error),
        Err(error) => Ok((head, Box::new(BufReader::new(Broken(error))))),
        Ok(_) => Ok((head, source)),
    }
}

/// See the module.
pub(super) struct Input {
    source: io::Chain<Cursor<Vec<u8>>, Source>,
    line: Vec<u8>,
    lines: u64,
    records: u64,
    bytes: u64,
}

impl Input {
    /// What was read already, and the rest.
    pub fn new(head: Vec<u8>, rest: Source) -> Self {
        let source = Cursor::new(head).chain(rest);
        Input { source, line: Vec::with_capacity(256), lines: 0, records: 0, bytes: 0 }
    }

    /// The next line without its end and without spaces around it; `None` at the end.
    #[inline]
    pub fn line(&mut self) -> Result<Option<&[u8]>, Problem> {
        self.line.clear();
        let read = (&mut self.source).take(LINE_MAX).read_until(b'\n', &mut self.line);
        self.lines += u64::from(!matches!(read, Ok(0)));
        let read = read? as u64;
        if read == 0 {
            return Ok(None);
        }
        if read == LINE_MAX && self.line.last() != Some(&b'\n') {
            return Err(Problem::Fatal(format!("a line longer than {LINE_MAX} bytes is no text")));
        }
        Ok(Some(self.line.trim_ascii()))
    }

    /// The next `N` bytes; `None` at the end.
    pub fn record<const N: usize>(&mut self) -> Result<Option<[u8; N]>, Problem> {
        let mut record = [0; N];
        let mut filled = 0;
        while filled < N {
            let read = self.source.read(&mut record[filled..]);
            self.records += u64::from(read.is_err());
            match read? {
                0 if filled == 0 => return Ok(None),
                0 => {
                    self.records += 1;
                    let problem = format!("the last record has {filled} of {N} bytes");
                    return Err(Problem::Damaged(problem));
                }
                n => filled += n,
            }
        }
        self.records += 1;
        self.bytes += N as u64;
        Ok(Some(record))
    }

    /// Passes over `count` bytes.
    pub fn skip(&mut self, count: u64) -> Result<(), Problem> {
        let skipped = io::copy(&mut (&mut self.source).take(count), &mut io::sink())?;
        self.bytes += skipped;
        Ok(())
    }

    /// Everything up to the byte `end`, which is passed over; at most `most` bytes.
    pub fn until(&mut self, end: u8, most: u64) -> Result<Vec<u8>, Problem> {
        let mut bytes = Vec::new();
        (&mut self.source).take(most).read_until(end, &mut bytes)?;
        self.bytes += bytes.len() as u64;
        if bytes.pop() != Some(end) {
            return Err(Problem::Fatal(format!("its header does not end within {most} bytes")));
        }
        Ok(bytes)
    }

    /// `name` and where in it the last line or record stands.
    pub fn place(&self, name: &str) -> String {
        match (self.lines, self.records) {
            (0, 0) => name.to_string(),
            (0, record) => format!("{name}: record {record} (before byte {})", self.bytes),
            (line, _) => format!("{name}:{line}"),
        }
    }
}
