//! The bytes of a trace as lines or as records, with the place for messages.

use std::io::{self, BufRead, Cursor, Read};

/// Longest line that can be part of a trace; anything longer is no text.
const LINE_MAX: u64 = 1 << 16;

/// What stops a reader.
#[derive(Debug)]
pub(super) enum Problem {
    /// This line or record is wrong; the next one may be right.
    Damaged(String),
    /// Nothing more can be read.
    Fatal(String),
}

impl From<io::Error> for Problem {
    fn from(error: io::Error) -> Self {
        let end = error.kind() == io::ErrorKind::UnexpectedEof;
        let why = if end { "the file ends too early".to_string() } else { error.to_string() };
        Problem::Fatal(format!("cannot be read on ({why})"))
    }
}

/// Reads up to `most` bytes, fewer at the end of the source.
pub(super) fn read_head(source: &mut dyn BufRead, most: usize) -> io::Result<Vec<u8>> {
    let mut head = Vec::with_capacity(most);
    source.take(most as u64).read_to_end(&mut head)?;
    Ok(head)
}

/// See the module.
pub(super) struct Input {
    source: io::Chain<Cursor<Vec<u8>>, Box<dyn BufRead + Send>>,
    line: Vec<u8>,
    lines: u64,
    records: u64,
    bytes: u64,
}

impl Input {
    /// What was read already, and the rest.
    pub fn new(head: Vec<u8>, rest: Box<dyn BufRead + Send>) -> Self {
        let source = Cursor::new(head).chain(rest);
        Input { source, line: Vec::with_capacity(256), lines: 0, records: 0, bytes: 0 }
    }

    /// The next line without its end and without spaces around it; `None` at the end.
    #[inline]
    pub fn line(&mut self) -> Result<Option<&[u8]>, Problem> {
        self.line.clear();
        let read = (&mut self.source).take(LINE_MAX).read_until(b'\n', &mut self.line)? as u64;
        if read == 0 {
            return Ok(None);
        }
        self.lines += 1;
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
            match self.source.read(&mut record[filled..])? {
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
