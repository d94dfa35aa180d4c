//! A session in a file, to go on from later.
//!
//! ```text
//! magic, format, version of ssdlab, rig, seed    what the file is and for which device
//! state                                          of the session and its device (see `persist`)
//! length, CRC-32                                 of all before them
//! ```
//!
//! A file is read twice: first whole for its checksum, so that nothing is overwritten by what is
//! damaged; then into the device in place. It takes the place of an older one at once, when it is
//! on the disk.

use super::Session;
use crate::error::{Error, Result};
use crate::persist::{Archive, Persist, persistent};
use crate::rig::Rig;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// With bytes that a transfer as text would change.
const MAGIC: [u8; 16] = *b"\x89ssdlab drive\r\n\x1a";
/// Of the state's form; one more whenever that changes within a version of ssdlab.
const FORMAT: u32 = 44;
const VERSION: &str = env!("CARGO_PKG_VERSION");
/// Length and checksum at the end.
const TRAILER: u64 = 12;

/// What a file says about itself.
#[derive(Clone, Debug, PartialEq)]
struct Header {
    magic: [u8; 16],
    format: u32,
    version: String,
    rig: String,
    seed: u64,
}
persistent!(Header { state { magic, format, version, rig, seed } });

impl Header {
    fn of(rig: &Rig, seed: u64) -> Self {
        Header { magic: MAGIC, format: FORMAT, version: VERSION.into(), rig: rig.identity(), seed }
    }

    /// Why a file that says this cannot be loaded into a device of `rig` and `seed`.
    fn refusal(&self, rig: &Rig, seed: u64) -> Option<String> {
        if self.version != VERSION {
            let found = &self.version;
            return Some(format!(
                "was saved by ssdlab {found}, and only that can restore it; this is {VERSION}"
            ));
        }
        if self.format != FORMAT {
            return Some("was saved by another state of this version of ssdlab".into());
        }
        if let Some(difference) = rig.difference(&self.rig) {
            return Some(format!("is of another drive: {difference}"));
        }
        let saved = self.seed;
        (saved != seed).then(|| {
            format!("is of a drive with another seed: it is {saved} there and {seed} here")
        })
    }
}

impl Session {
    /// Saves the session and all of its device's state; `rig` is what that was built from. Between
    /// two runs that is at any time: what the device still does by itself it goes on with after
    /// [`Session::restore`].
    ///
    /// # Errors
    /// [`Error::File`] where no file can be made there, [`Error::Failed`] where it cannot be written to its
    /// end: nothing is left of it then, and an older one stays. [`Error::Unfit`] if the session broke off.
    pub fn save(&mut self, path: &Path, rig: &Rig) -> Result<()> {
        self.check_life(0)?;
        let part = beside(path).ok_or_else(|| problem(path, "is no name of a file"))?;
        let file = File::create(&part).map_err(|error| at(path, text(error)))?;
        let saved = self.write(file, rig).and_then(|()| fs::rename(&part, path).map_err(text));
        if let Err(error) = saved {
            // What cannot be removed could not be made either.
            let _ = fs::remove_file(&part);
            return Err(Error::Failed(at(path, error).to_string()));
        }
        // The new name is safe when its folder is. The file is, and not every file system can do that.
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        let _ = File::open(folder.unwrap_or(Path::new("."))).and_then(|folder| folder.sync_all());
        Ok(())
    }

    fn write(&mut self, mut file: File, rig: &Rig) -> Result<()> {
        let mut archive = Archive::save(&mut file);
        Header::of(rig, self.seed()).persist(&mut archive)?;
        self.persist(&mut archive)?;
        let (length, sum) = archive.finish()?;
        file.write_all(&length.to_le_bytes()).map_err(text)?;
        file.write_all(&sum.to_le_bytes()).map_err(text)?;
        file.sync_all().map_err(text)
    }

    /// Goes on from where a session was saved. The device has been built as that one was: from the
    /// same `rig`, seed and version of ssdlab. What it has done since does not matter, nor does whether
    /// this session broke off.
    ///
    /// # Errors
    /// [`Error::File`] where the file cannot be read, is damaged, or is of another device: the session
    /// is as it was then.
    pub fn restore(&mut self, path: &Path, rig: &Rig) -> Result<()> {
        let mut file = File::open(path).map_err(|error| at(path, text(error)))?;
        let length = check(&mut file).map_err(|error| at(path, error))?;
        let seed = self.seed();
        let mut content = file.take(length);
        let mut archive = Archive::load(&mut content);
        let mut header = Header::of(rig, seed);
        header.persist(&mut archive).map_err(|error| at(path, error))?;
        if let Some(refusal) = header.refusal(rig, seed) {
            return Err(problem(path, &refusal));
        }
        self.broken = true;
        let loaded = self.persist(&mut archive).and_then(|()| archive.finish());
        loaded.map_err(|error| at(path, error))?;
        self.broken = false;
        Ok(())
    }
}

/// Reads a file to its end; answers the length of what its checksum is of.
fn check(file: &mut File) -> Result<u64> {
    let mut magic = [0; MAGIC.len()];
    let begins = file.read_exact(&mut magic).is_ok() && magic == MAGIC;
    let all = file.metadata().map_err(text)?.len();
    if !begins || all < MAGIC.len() as u64 + TRAILER {
        return Err(Error::Unfit(
            "is no checkpoint of a drive, or its beginning is damaged".into(),
        ));
    }
    let length = all - TRAILER;
    let mut sum =
        crc32fast::Hasher::new_with_initial_len(crc32fast::hash(&magic), MAGIC.len() as u64);
    let mut left = length - MAGIC.len() as u64;
    let mut buffer = vec![0; 1 << 18];
    while left > 0 {
        let part = &mut buffer[..left.min(1 << 18) as usize];
        file.read_exact(part).map_err(text)?;
        sum.update(part);
        left -= part.len() as u64;
    }
    let mut trailer = [0; TRAILER as usize];
    file.read_exact(&mut trailer).map_err(text)?;
    let expected: Vec<u8> =
        length.to_le_bytes().into_iter().chain(sum.finalize().to_le_bytes()).collect();
    if trailer != expected[..] {
        return Err(Error::Unfit("is damaged or cut short: its checksum does not fit".into()));
    }
    file.seek(SeekFrom::Start(0)).map_err(text)?;
    Ok(length)
}

/// A name in the same folder that nobody else uses.
fn beside(path: &Path) -> Option<PathBuf> {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let mut name = OsString::from(".");
    name.push(path.file_name()?);
    name.push(format!(".{}-{count}.part", std::process::id()));
    Some(path.with_file_name(name))
}

fn text(error: std::io::Error) -> Error {
    Error::Unfit(error.to_string())
}

fn problem(path: &Path, problem: &str) -> Error {
    Error::File { path: path.display().to_string(), problem: problem.to_string() }
}

/// An error with the name of the file.
fn at(path: &Path, error: Error) -> Error {
    problem(path, &error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_of_another_version_is_refused_by_its_name() {
        let rig = Rig::parse("[device]\nkind = \"null\"\ncapacity = \"1MiB\"\n", "null").unwrap();
        let path = std::env::temp_dir().join(format!("ssdlab-{}.drive", std::process::id()));
        let mut session = Session::new(rig.build(1, false).unwrap(), 1);
        for (format, version, says) in [
            (FORMAT, "0.0.1", "was saved by ssdlab 0.0.1"),
            (FORMAT + 1, VERSION, "another state of this version"),
        ] {
            let mut header = Header { format, version: version.into(), ..Header::of(&rig, 1) };
            let mut bytes = Vec::new();
            let mut archive = Archive::save(&mut bytes);
            header.persist(&mut archive).unwrap();
            let (length, sum) = archive.finish().unwrap();
            bytes.extend(length.to_le_bytes());
            bytes.extend(sum.to_le_bytes());
            fs::write(&path, bytes).unwrap();
            let message = session.restore(&path, &rig).unwrap_err().to_string();
            assert!(message.contains(says), "{message}");
        }
        fs::remove_file(&path).unwrap();
        session.purge().unwrap();
    }
}
