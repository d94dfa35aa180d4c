//! Real traces, where the folder that `SSDLAB_TRACES` names has them.

use ssdlab::cache::Request;
use std::path::PathBuf;
use std::process::Command;

/// The bytes of a gzipped trace; none, and a line that says why, where it is absent.
fn unpacked(name: &str) -> Option<Vec<u8>> {
    let Some(folder) = std::env::var_os("SSDLAB_TRACES") else {
        eprintln!("skipped: SSDLAB_TRACES names no folder with {name}");
        return None;
    };
    let path = PathBuf::from(folder).join(name);
    if !path.exists() {
        eprintln!("skipped: {} is absent", path.display());
        return None;
    }
    match Command::new("gzip").arg("-dc").arg(&path).output() {
        Ok(output) if output.status.success() => Some(output.stdout),
        other => panic!("gzip -dc {}: {other:?}", path.display()),
    }
}

/// cloudPhysicsIO as (first 512-byte sector, bytes, whether it writes): vscsi version 1, 32 bytes a record.
pub fn cloud_physics() -> Option<Vec<(u64, u64, bool)>> {
    let bytes = unpacked("cloudPhysicsIO.vscsi.gz")?;
    let record = |r: &[u8]| {
        let length = u32::from_le_bytes(r[4..8].try_into().unwrap());
        let command = u16::from_le_bytes(r[12..14].try_into().unwrap());
        let sector = u64::from_le_bytes(r[16..24].try_into().unwrap());
        (sector, u64::from(length), command == 0x2a)
    };
    let records: Vec<_> = bytes.chunks_exact(32).map(record).collect();
    assert_eq!(records.len(), 113_872);
    assert_eq!(records.iter().filter(|r| r.2).count(), 66_898);
    Some(records)
}

/// An object per first sector.
pub fn as_objects(records: &[(u64, u64, bool)]) -> Vec<Request> {
    records.iter().map(|&(sector, _, write)| Request::one(sector, write)).collect()
}

/// The 4 KiB blocks of each request; whoever reads nothing reads a byte, as trace simulators have it.
pub fn as_blocks(records: &[(u64, u64, bool)]) -> Vec<Request> {
    let blocks = |&(sector, bytes, write): &(u64, u64, bool)| {
        let (offset, end) = (sector * 512, sector * 512 + bytes.max(1) - 1);
        Request { key: offset / 4096, blocks: (end / 4096 - offset / 4096 + 1) as u32, write }
    };
    records.iter().map(blocks).collect()
}
