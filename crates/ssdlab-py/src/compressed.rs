//! Files that may be compressed: read by what they begin with, written by what they are called.

use flate2::Compression;
use flate2::read::MultiGzDecoder;
use flate2::write::GzEncoder;
use lzma_rust2::{XzOptions, XzReader, XzWriter};
use ssdlab::{Error, Result};
use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, Read, Write};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

const BUFFER: usize = 1 << 18;

/// How far a file has been read, in its own bytes.
#[derive(Clone, Default)]
pub struct Position {
    read: Arc<AtomicU64>,
    size: u64,
}

impl Position {
    /// Share that has been read, `0 ..= 1`.
    pub fn fraction(&self) -> f64 {
        (self.read.load(Ordering::Relaxed) as f64 / self.size.max(1) as f64).min(1.0)
    }
}

/// Counts what is read of a file.
struct Counted {
    file: File,
    read: Arc<AtomicU64>,
}

impl Read for Counted {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.file.read(buffer)?;
        self.read.fetch_add(count as u64, Ordering::Relaxed);
        Ok(count)
    }
}

/// Opens a plain, gzip, zstd or xz file, whatever its name.
pub fn open(path: &Path) -> Result<(Box<dyn BufRead + Send>, Position)> {
    let file = File::open(path).map_err(|e| failed(path, &e))?;
    let size = file.metadata().map_err(|e| failed(path, &e))?.len();
    let position = Position { size, ..Position::default() };
    let counted = Counted { file, read: position.read.clone() };
    let mut source = BufReader::with_capacity(BUFFER, counted);
    let start = source.fill_buf().map_err(|e| failed(path, &e))?;
    let magic = |bytes: &[u8]| start.starts_with(bytes);
    let opened: Box<dyn BufRead + Send> = if magic(&[0x1f, 0x8b]) {
        Box::new(BufReader::with_capacity(BUFFER, MultiGzDecoder::new(source)))
    } else if magic(&[0x28, 0xb5, 0x2f, 0xfd]) {
        let decoder = zstd::Decoder::with_buffer(source).map_err(|e| failed(path, &e))?;
        Box::new(BufReader::with_capacity(BUFFER, decoder))
    } else if magic(&[0xfd, b'7', b'z', b'X', b'Z', 0]) {
        Box::new(BufReader::with_capacity(BUFFER, XzReader::new(source, true)))
    } else {
        Box::new(source)
    };
    Ok((opened, position))
}

/// A file being written, compressed where its name ends in `.gz`, `.zst` or `.xz`.
pub enum Sink {
    /// As it is.
    Plain(BufWriter<File>),
    /// gzip.
    Gz(GzEncoder<BufWriter<File>>),
    /// zstd.
    Zst(zstd::Encoder<'static, BufWriter<File>>),
    /// xz.
    Xz(Box<XzWriter<BufWriter<File>>>),
}

impl Sink {
    /// Writes `path`; `name` says how.
    pub fn create(path: &Path, name: &str) -> io::Result<Self> {
        let file = BufWriter::with_capacity(BUFFER, File::create(path)?);
        let suffix = Path::new(name).extension().and_then(|suffix| suffix.to_str());
        Ok(match suffix {
            Some("gz") => Sink::Gz(GzEncoder::new(file, Compression::default())),
            Some("zst") => Sink::Zst(zstd::Encoder::new(file, 0)?),
            Some("xz") => Sink::Xz(Box::new(XzWriter::new(file, XzOptions::with_preset(1))?)),
            _ => Sink::Plain(file),
        })
    }

    /// Writes what is left and has it on the disk.
    pub fn finish(self) -> io::Result<()> {
        let file = match self {
            Sink::Plain(file) => file,
            Sink::Gz(encoder) => encoder.finish()?,
            Sink::Zst(encoder) => encoder.finish()?,
            Sink::Xz(encoder) => encoder.finish()?,
        };
        file.into_inner().map_err(io::IntoInnerError::into_error)?.sync_all()
    }
}

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Sink::Plain(file) => file.write(bytes),
            Sink::Gz(encoder) => encoder.write(bytes),
            Sink::Zst(encoder) => encoder.write(bytes),
            Sink::Xz(encoder) => encoder.write(bytes),
        }
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// What the system said about a file, in one sentence.
pub fn failed(path: &Path, error: &io::Error) -> Error {
    let problem = match error.kind() {
        io::ErrorKind::NotFound => "there is no such file".to_string(),
        io::ErrorKind::PermissionDenied => "no permission to open this file".to_string(),
        io::ErrorKind::IsADirectory => "is a folder, not a file".to_string(),
        _ => error.to_string(),
    };
    Error::File { path: path.display().to_string(), problem }
}
