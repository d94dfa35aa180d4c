//! The requests of traces, which simulations that replay the same file at the same time share: a trace of
//! millions takes as much memory as a drive.

use super::Reading;
use ssdlab::Result;
use ssdlab::trace::Request;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::SystemTime;

/// What the requests depend on.
#[derive(PartialEq)]
struct Source {
    path: PathBuf,
    bytes: u64,
    modified: Option<SystemTime>,
    reading: Reading,
}

/// Requests for as long as somebody replays them; whoever reads them holds the lock.
type Kept = Mutex<Weak<Vec<Request>>>;

static READ: Mutex<Vec<(Arc<Source>, Arc<Kept>)>> = Mutex::new(Vec::new());

/// All requests of a trace: those that another simulation has read of it, as long as it runs.
pub(super) fn requests(path: PathBuf, reading: Reading) -> Result<Arc<Vec<Request>>> {
    let about = path.metadata().ok().filter(std::fs::Metadata::is_file);
    let bytes = about.as_ref().map_or(0, std::fs::Metadata::len);
    let modified = about.as_ref().and_then(|about| about.modified().ok());
    let source = Source { path, bytes, modified, reading };
    if about.is_none() {
        return read(&source); // a pipe is read once
    }
    let (source, kept) = entry(source);
    let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(requests) = kept.upgrade() {
        return Ok(requests);
    }
    let requests = read(&source)?;
    *kept = Arc::downgrade(&requests);
    Ok(requests)
}

/// Where the requests of a source are kept; forgets those that nobody has or waits for.
fn entry(source: Source) -> (Arc<Source>, Arc<Kept>) {
    let mut all = READ.lock().unwrap_or_else(PoisonError::into_inner);
    all.retain(|(_, kept)| {
        Arc::strong_count(kept) > 1 || kept.try_lock().is_ok_and(|kept| kept.strong_count() > 0)
    });
    if let Some(known) = all.iter().find(|(known, _)| **known == source) {
        return known.clone();
    }
    all.push((Arc::new(source), Arc::default()));
    all.last().expect("it was put there").clone()
}

fn read(source: &Source) -> Result<Arc<Vec<Request>>> {
    let (mut trace, _) = source.reading.open(&source.path)?;
    let mut requests = Vec::new();
    while let Some(request) = trace.next_request()? {
        requests.push(request);
    }
    Ok(Arc::new(requests))
}
