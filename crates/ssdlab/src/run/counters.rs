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
pub(super) fn walk(device: &dyn Device, visit: &mut dyn FnMut(&str, &'static str, u64)) {
    visit_places(device, "", &mut |path, device| {
        device.counters(&mut |name, value| visit(path, name, value));
    });
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

/// All counters of a device tree over time, cumulative.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DeviceSeries {
    /// When the counters were read, seconds of virtual time; the first row is the start.
    pub time_s: Vec<f64>,
    /// Name of each counter (`below/programs_host`) and its values.
    pub columns: Vec<(String, Vec<u64>)>,
}

impl DeviceSeries {
    /// Whether the last row is of that instant.
    pub(super) fn has(&self, now_ns: u64) -> bool {
        self.time_s.last() == Some(&(now_ns as f64 / 1e9))
    }

    /// Adds a row, or replaces that of the same instant.
    pub(super) fn sample(&mut self, now_ns: u64, device: &dyn Device) {
        if self.has(now_ns) {
            self.time_s.pop();
            for (_, values) in &mut self.columns {
                values.pop();
            }
        }
        let before = self.time_s.len();
        self.time_s.push(now_ns as f64 / 1e9);
        let columns = &mut self.columns;
        let mut next = 0;
        walk(device, &mut |path, name, value| {
            let known =
                columns.get(next).is_some_and(|(of, _)| of.strip_prefix(path) == Some(name));
            if !known {
                // Some counters show only when there is something to count.
                columns.insert(next, (format!("{path}{name}"), vec![0; before]));
            }
            columns[next].1.push(value);
            next += 1;
        });
        assert_eq!(next, columns.len(), "a device has fewer counters, or in another order");
    }
    /// The counters at the end: name and value.
    pub fn last(&self) -> impl Iterator<Item = (&str, u64)> {
        let value = |values: &Vec<u64>| values.last().copied().unwrap_or(0);
        self.columns.iter().map(move |(name, values)| (name.as_str(), value(values)))
    }
}
