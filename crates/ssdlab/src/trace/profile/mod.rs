//! What a trace is like: sizes, mix, footprint, working set, reuse, order, arrivals, where and when.
//!
//! One pass, O(log blocks) per touched block of 4 KiB, memory bounded (about 250 MB at most). Trims and
//! flushes are counted; blocks, reuse and order are those of reads and writes.

mod blocks;
mod map;
mod times;
mod windows;

use super::{DUPLICATE_NS, KINDS, Kind, Oddities, Request, SECTOR_BYTES};
use crate::stats::value_ns;
use blocks::{Blocks, Touch};
use map::{COLUMNS, Map, ROWS};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use times::Times;
use windows::{Window, Windows};

/// Bytes of the blocks that footprint and reuse are counted in.
pub const BLOCK_BYTES: u64 = 4096;

/// Ends of earlier requests that a request may continue: so many streams are followed.
const STREAMS: usize = 32;
/// Sizes up to so many sectors are counted in an array, longer ones in a map.
const COMMON_SECTORS: usize = 2048;
/// Quantiles told, percent.
const PERCENTS: [f64; 9] = [1.0, 5.0, 10.0, 25.0, 50.0, 75.0, 90.0, 95.0, 99.0];
/// Shares of the hottest blocks told, percent.
const HOTTEST: [f64; 9] = [0.1, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0];

/// See the module.
pub struct Profile {
    requests: [u64; 4],
    bytes: [u64; 3],
    last_ns: u64,
    common: Vec<[u64; 3]>,
    sizes: BTreeMap<u32, [u64; 3]>,
    lowest: u64,
    highest: u64,
    devices: BTreeMap<u32, u64>,
    /// Device, requests of it not yet in `devices`: runs of one device are the rule.
    device_run: (u32, u64),
    previous_end: Option<(u32, u64)>,
    ends: [(u32, u64); STREAMS],
    ends_next: usize,
    continues_previous: u64,
    continues_some: u64,
    gaps: Times,
    responses: [Times; 2],
    windows: Windows,
    blocks: Blocks,
    map: Map,
}

impl Default for Profile {
    fn default() -> Self {
        Profile {
            requests: [0; 4],
            bytes: [0; 3],
            last_ns: 0,
            common: vec![[0; 3]; COMMON_SECTORS + 1],
            sizes: BTreeMap::new(),
            lowest: u64::MAX,
            highest: 0,
            devices: BTreeMap::new(),
            device_run: (0, 0),
            previous_end: None,
            ends: [(0, u64::MAX); STREAMS],
            ends_next: 0,
            continues_previous: 0,
            continues_some: 0,
            gaps: Times::default(),
            responses: Default::default(),
            windows: Windows::new(),
            blocks: Blocks::new(),
            map: Map::new(),
        }
    }
}

impl Profile {
    /// Counts the next request; times must not go back.
    pub fn add(&mut self, request: &Request) {
        let kind = request.kind as usize;
        if self.requests != [0; 4] {
            self.gaps.add(request.time_ns - self.last_ns);
        }
        self.requests[kind] += 1;
        self.last_ns = request.time_ns;
        if self.device_run.0 == request.device {
            self.device_run.1 += 1;
        } else {
            self.end_run();
            self.device_run = (request.device, 1);
        }
        let length = u64::from(request.length);
        self.windows.request(request.time_ns, kind, length);
        if request.kind == Kind::Flush {
            return;
        }
        self.bytes[kind] += length;
        let sectors = (request.length / SECTOR_BYTES as u32) as usize;
        if sectors <= COMMON_SECTORS && length.is_multiple_of(SECTOR_BYTES) {
            self.common[sectors][kind] += 1;
        } else {
            self.sizes.entry(request.length).or_default()[kind] += 1;
        }
        self.lowest = self.lowest.min(request.offset);
        self.highest = self.highest.max(request.offset + length);
        if request.kind != Kind::Trim {
            self.place(request, length);
        }
    }

    /// What is counted of reads and writes alone.
    fn place(&mut self, request: &Request, length: u64) {
        let write = request.kind == Kind::Write;
        self.map.add(request.time_ns, request.offset, write);
        if let Some(ns) = request.response_ns {
            self.responses[usize::from(write)].add(ns);
        }
        let start = (request.device, request.offset);
        self.continues_previous += u64::from(self.previous_end == Some(start));
        let stream = self.ends.iter().position(|end| *end == start);
        self.continues_some += u64::from(stream.is_some());
        let end = (request.device, request.offset + length);
        self.previous_end = Some(end);
        // A continued stream keeps its place, a new one takes the oldest.
        let at = stream.unwrap_or_else(|| {
            self.ends_next = (self.ends_next + 1) % STREAMS;
            self.ends_next
        });
        self.ends[at] = end;
        let kind = 1 << u8::from(write);
        let mut alike: (Option<u64>, u64) = (None, 0);
        for block in request.offset / BLOCK_BYTES..(request.offset + length).div_ceil(BLOCK_BYTES) {
            let touch = self.blocks.touch(request.device, block, request.time_ns, kind);
            let Some(Touch { last_ns, weight }) = touch else { continue };
            // Neighbours were mostly touched together the last time too: they are counted at once.
            if alike.1 > 0 && alike.0 != last_ns {
                self.windows.block(alike.0, alike.1);
                alike.1 = 0;
            }
            alike = (last_ns, alike.1 + weight);
        }
        if alike.1 > 0 {
            self.windows.block(alike.0, alike.1);
        }
    }

    fn end_run(&mut self) {
        let (device, requests) = std::mem::take(&mut self.device_run);
        if requests > 0 {
            *self.devices.entry(device).or_default() += requests;
        }
    }

    /// Everything found, as JSON; sizes in bytes, times in ns or s as their names say.
    pub fn document(&mut self, oddities: &Oddities, has_times: bool) -> Value {
        self.end_run();
        let requests: u64 = self.requests.iter().sum();
        let seconds = self.last_ns as f64 / 1e9;
        let by_kind = |counts: &[u64]| {
            KINDS
                .iter()
                .zip(counts)
                .map(|(kind, n)| (kind.to_string(), json!(n)))
                .collect::<Value>()
        };
        json!({
            "requests": requests,
            "requests_by_kind": by_kind(&self.requests),
            "bytes_by_kind": by_kind(&self.bytes),
            "has_times": has_times,
            "seconds": seconds,
            "devices": self.devices.len(),
            "requests_by_device": self.device_list(),
            "lowest_byte": if self.highest == 0 { 0 } else { self.lowest },
            "end_byte": self.highest,
            "sizes": self.size_list(),
            "footprint": self.footprint(),
            "reuse": self.reuse(),
            "order": json!({
                "continues_the_request_before": self.continues_previous,
                "continues_one_of_the_last": self.continues_some,
                "streams_followed": STREAMS,
            }),
            "arrivals": if has_times { self.arrivals(requests) } else { Value::Null },
            "responses": self.responses(),
            "series": if has_times { self.series() } else { Value::Null },
            "map": self.map_document(),
            "oddities": odd(oddities),
        })
    }

    fn device_list(&self) -> Value {
        const MOST: usize = 64;
        let mut list: Vec<(u64, u32)> = self.devices.iter().map(|(d, n)| (*n, *d)).collect();
        list.sort_unstable_by(|a, b| b.cmp(a));
        list.truncate(MOST);
        list.iter().map(|(n, device)| json!({ "device": device, "requests": n })).collect()
    }

    fn size_list(&self) -> Value {
        let common = self.common.iter().enumerate().filter(|(_, counts)| **counts != [0; 3]);
        let common = common.map(|(n, counts)| (n as u64 * SECTOR_BYTES, *counts));
        let rest = self.sizes.iter().map(|(bytes, counts)| (u64::from(*bytes), *counts));
        let mut all: Vec<(u64, [u64; 3])> = common.chain(rest).collect();
        all.sort_unstable();
        let one = |(bytes, [read, write, trim]): &(u64, [u64; 3])| json!({ "bytes": bytes, "read": read, "write": write, "trim": trim });
        all.iter().map(one).collect()
    }

    fn footprint(&self) -> Value {
        let [all, read, written] = self.blocks.footprint();
        let shares = self.blocks.popularity(&HOTTEST);
        let hottest = HOTTEST.iter().zip(shares);
        let hottest: Vec<Value> = hottest
            .map(|(percent, share)| json!({ "percent_of_blocks": percent, "share_of_touches": share }))
            .collect();
        json!({
            "block_bytes": BLOCK_BYTES,
            "blocks": all,
            "blocks_read": read,
            "blocks_written": written,
            "estimated_from_one_in": self.blocks.weight(),
            "hottest": hottest,
        })
    }

    fn reuse(&self) -> Value {
        let bins = &self.blocks.distances;
        let reused: u64 = bins.iter().sum();
        let fresh = self.blocks.footprint()[0];
        let all = (reused + fresh).max(1);
        let mut quantiles = Vec::new();
        let mut seen = 0;
        let mut wanted = PERCENTS.iter().peekable();
        let mut cache = Vec::new();
        let mut size = 64u64;
        for (bin, count) in bins.iter().enumerate().filter(|(_, count)| **count > 0) {
            let blocks = value_ns(bin);
            while size <= blocks {
                cache.push((size, seen));
                size *= 2;
            }
            seen += count;
            while wanted.next_if(|p| seen as f64 >= reused as f64 * **p / 100.0).is_some() {
                quantiles.push(blocks);
            }
        }
        cache.push((size, seen));
        let quantiles: Vec<Value> = PERCENTS
            .iter()
            .zip(quantiles)
            .map(|(percent, blocks)| json!({ "percent": percent, "blocks": blocks }))
            .collect();
        let hits = cache.iter().map(
            |(blocks, hits)| json!({ "blocks": blocks, "hit_ratio": *hits as f64 / all as f64 }),
        );
        json!({
            "touches": all,
            "reused": reused,
            "distances": quantiles,
            "lru_hits": hits.collect::<Vec<_>>(),
        })
    }

    fn arrivals(&self, requests: u64) -> Value {
        let quantiles = self.gaps.percentiles(&PERCENTS);
        let gaps: Vec<Value> = PERCENTS
            .iter()
            .zip(quantiles)
            .map(|(percent, ns)| json!({ "percent": percent, "ns": ns }))
            .collect();
        let windows = self.windows.burstiness().into_iter().map(|found| {
            let found = found.with_requests(requests, self.last_ns);
            json!({
                "window_ns": found.width_ns,
                "requests_max": found.requests_max,
                "requests_mean": found.requests_mean,
                "dispersion": found.dispersion,
                "blocks_max": found.blocks_max,
            })
        });
        json!({ "gaps": gaps, "windows": windows.collect::<Vec<_>>() })
    }

    fn responses(&self) -> Value {
        if self.responses.iter().all(Times::is_empty) {
            return Value::Null;
        }
        let list = |responses: &Times| {
            let quantiles = responses.percentiles(&PERCENTS);
            let pairs = PERCENTS.iter().zip(quantiles);
            pairs.map(|(p, ns)| json!({ "percent": p, "ns": ns })).collect::<Vec<_>>()
        };
        json!({ "read": list(&self.responses[0]), "write": list(&self.responses[1]) })
    }

    fn series(&self) -> Value {
        let (width_ns, windows) = self.windows.series();
        let column = |of: fn(&Window) -> u64| windows.iter().map(of).collect::<Vec<_>>();
        json!({
            "window_ns": width_ns,
            "reads": column(|w| w.requests[0]),
            "writes": column(|w| w.requests[1]),
            "trims": column(|w| w.requests[2]),
            "flushes": column(|w| w.requests[3]),
            "read_bytes": column(|w| w.bytes[0]),
            "write_bytes": column(|w| w.bytes[1]),
            "blocks": column(|w| w.blocks),
            "fresh_blocks": column(|w| w.fresh),
        })
    }

    fn map_document(&self) -> Value {
        let cells =
            |write: usize| self.map.cells.iter().map(|cell| cell[write]).collect::<Vec<_>>();
        json!({
            "columns": COLUMNS,
            "rows": ROWS,
            "column_ns": self.map.column_ns,
            "row_bytes": self.map.row_bytes,
            "reads": cells(0),
            "writes": cells(1),
        })
    }
}

/// Oddities as JSON.
fn odd(oddities: &Oddities) -> Value {
    json!({
        "damaged": oddities.damaged,
        "first_damage": oddities.first_damage,
        "zero_length": oddities.zero_length,
        "unaligned": oddities.unaligned,
        "backwards": oddities.backwards,
        "backwards_ns_max": oddities.backwards_ns_max,
        "duplicates": oddities.duplicates,
        "duplicate_ns": DUPLICATE_NS,
    })
}
