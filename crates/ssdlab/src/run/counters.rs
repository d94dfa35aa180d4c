//! The counters of a device and of the devices it is made of.

use crate::device::{Built, Device};

/// Visits every device of the tree with the path of its place (`""`, `"below/"`).
fn visit_places(device: &dyn Device, path: &str, visit: &mut dyn FnMut(&str, &dyn Device)) {
    visit(path, device);
    for (place, child) in device.children() {
        visit_places(child, &format!("{path}{place}/"), visit);
    }
}

/// Visits every counter of the tree: the path of the place, name, value.
fn walk(device: &dyn Device, visit: &mut dyn FnMut(&str, &'static str, u64)) {
    visit_places(device, "", &mut |path, device| {
        device.counters(&mut |name, value| visit(path, name, value));
    });
}

/// Every counter of the tree: the path of its place and its name, the value.
pub(super) fn all(device: &dyn Device) -> Vec<(String, u64)> {
    let mut all = Vec::new();
    walk(device, &mut |path, name, value| all.push((format!("{path}{name}"), value)));
    all
}

/// What was built of each SSD in the tree, by its path (`""`, `"below"`).
pub(super) fn built(device: &dyn Device) -> Vec<(String, Built)> {
    let mut all = Vec::new();
    visit_places(device, "", &mut |path, device| {
        let path = path.trim_end_matches('/').to_string();
        all.extend(device.built().map(|built| (path, built)));
    });
    all
}

/// Sum of the counter `name` over all places.
pub(super) fn counter_sum(device: &dyn Device, name: &str) -> u64 {
    let mut sum = 0;
    walk(device, &mut |_, counter, value| sum += if counter == name { value } else { 0 });
    sum
}

/// What write amplification is made of, in bytes, over all flash devices in the tree.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct FlashWrites {
    /// Written to them.
    host: u64,
    /// Programmed, for whatever reason.
    flash: u64,
}

impl FlashWrites {
    /// The state now.
    pub fn of(device: &dyn Device) -> Self {
        let (mut host, mut flash) = (0, None);
        device.counters(&mut |name, value| match name {
            "host_bytes_written" => host = value,
            "flash_bytes_written" => flash = Some(value),
            _ => {}
        });
        // What was written to a device without flash wears nothing.
        let own = flash.map_or_else(FlashWrites::default, |flash| FlashWrites { host, flash });
        device.children().into_iter().fold(own, |sum, (_, child)| {
            let below = FlashWrites::of(child);
            FlashWrites { host: sum.host + below.host, flash: sum.flash + below.flash }
        })
    }
    /// Bytes programmed beyond those written since `earlier`.
    pub fn beyond_since(self, earlier: FlashWrites) -> u64 {
        (self.flash - earlier.flash).saturating_sub(self.host - earlier.host)
    }
    /// Bytes programmed per byte written since `earlier`; `None` without any.
    pub fn amplification_since(self, earlier: FlashWrites) -> Option<f64> {
        let host = self.host - earlier.host;
        (host > 0).then(|| (self.flash - earlier.flash) as f64 / host as f64)
    }
}

/// Write amplification of a device since it was new; `None` if it holds no flash or nothing was
/// written.
pub fn write_amplification(device: &dyn Device) -> Option<f64> {
    FlashWrites::of(device).amplification_since(FlashWrites::default())
}

/// Counters of the members of an array that a run keeps over time, beside `programs_*`: what pages and answers show of
/// them. There may be dozens of members, each with dozens of counters that nobody looks at.
const OF_MEMBERS: [&str; 13] = [
    "member_reads",
    "member_writes",
    "member_bytes_written",
    "member_busy_ns",
    "host_units_written",
    "host_bytes_written",
    "flash_bytes_written",
    "unit_bytes",
    "buffer_overwrites",
    "flash_erases",
    "free_superblocks",
    "slc_units_written",
    "slc_static_erases_sum",
];

/// Whether the counter of a member of an array is one of those.
fn shown_of_member(name: &str) -> bool {
    name.starts_with("programs_") || OF_MEMBERS.contains(&name)
}

/// Whether the place is a member of an array or a spare of one, or below such.
fn is_member(path: &str) -> bool {
    path.split('/').any(|place| place.starts_with("member") || place.starts_with("spare"))
}

/// Which counters of a device tree are kept over time. Those of the end are known of all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Kept {
    /// All but those of the members of arrays, of which only what pages and answers show is kept.
    #[default]
    Shown,
    /// All.
    All,
}

impl Kept {
    /// Visits every counter of the tree that is kept.
    fn walk(self, device: &dyn Device, visit: &mut dyn FnMut(&str, &'static str, u64)) {
        visit_places(device, "", &mut |path, device| {
            let all = self == Kept::All || !is_member(path);
            device.counters(&mut |name, value| {
                if all || shown_of_member(name) {
                    visit(path, name, value);
                }
            });
        });
    }

    /// How many counters of the device are kept.
    pub(super) fn count(self, device: &dyn Device) -> u64 {
        let mut count = 0;
        self.walk(device, &mut |_, _, _| count += 1);
        count
    }
}

/// A counter over time.
#[derive(Clone, Debug, PartialEq)]
pub struct Column {
    /// The path of its place and its name, as `below/programs_host`.
    pub name: String,
    /// Its value in each row, or, as long as it has never changed, in the first alone.
    pub values: Vec<u64>,
}

impl Column {
    /// Its value in a row of the series; 0 where there is none.
    pub fn at(&self, row: usize) -> u64 {
        let last = self.values.len().checked_sub(1);
        last.map_or(0, |last| self.values[row.min(last)])
    }

    /// Adds its value of one more row to those of `rows`.
    fn push(&mut self, value: u64, rows: usize) {
        if self.values.len() == 1 && self.values[0] == value {
            return;
        }
        self.values.resize(rows, self.at(0));
        self.values.push(value);
    }
}
/// Counters of a device tree over time, cumulative.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DeviceSeries {
    /// When the counters were read, seconds of virtual time; the first row is the start.
    pub time_s: Vec<f64>,
    /// Each counter that is kept.
    pub columns: Vec<Column>,
    kept: Kept,
}

impl DeviceSeries {
    pub(super) fn new(kept: Kept) -> Self {
        DeviceSeries { kept, ..DeviceSeries::default() }
    }

    /// Whether the last row is of that instant.
    pub(super) fn has(&self, now_ns: u64) -> bool {
        self.time_s.last() == Some(&(now_ns as f64 / 1e9))
    }

    /// Adds a row, or replaces that of the same instant.
    pub(super) fn sample(&mut self, now_ns: u64, device: &dyn Device) {
        if self.has(now_ns) {
            for column in &mut self.columns {
                column.values.truncate(self.time_s.len() - 1);
            }
            self.time_s.pop();
        }
        let before = self.time_s.len();
        self.time_s.push(now_ns as f64 / 1e9);
        let columns = &mut self.columns;
        let mut next = 0;
        self.kept.walk(device, &mut |path, name, value| {
            let known = columns.get(next).is_some_and(|c| c.name.strip_prefix(path) == Some(name));
            if !known {
                // Some counters show only when there is something to count.
                let values = vec![0; before.min(1)];
                columns.insert(next, Column { name: format!("{path}{name}"), values });
            }
            columns[next].push(value, before);
            next += 1;
        });
        assert_eq!(next, columns.len(), "a device has fewer counters, or in another order");
    }
}
