//! Where the requests of a trace go on a target of another size.

use super::{Kind, Request, SECTOR_BYTES};
use crate::error::{Error, Result};
use std::collections::BTreeMap;

/// Devices of a trace are laid one behind another on multiples of this, bytes.
const DEVICE_ALIGN: u64 = 1 << 20;
/// Scaled addresses stay on multiples of this, bytes.
const SCALE_ALIGN: u64 = 4096;

/// How far the requests of each device reach.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Spans {
    ends: BTreeMap<u32, u64>,
    /// Devices in order of mention; the one last looked for first answered.
    last: Option<(u32, u64)>,
}

impl Spans {
    /// Counts a request.
    #[inline]
    pub fn add(&mut self, request: &Request) {
        let end = request.offset + u64::from(request.length);
        if self.last.is_some_and(|(device, known)| device == request.device && end <= known) {
            return;
        }
        let known = self.ends.entry(request.device).or_default();
        *known = (*known).max(end);
        self.last = Some((request.device, *known));
    }
}

/// What is done about addresses that a target does not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fit {
    /// Nothing: they must fit.
    AsIs,
    /// They begin again at 0.
    Wrap,
    /// All are stretched or shrunk to the target.
    Scale,
}

/// See the module.
#[derive(Clone, Debug, PartialEq)]
pub struct Placement {
    fit: Fit,
    /// First byte of each device; empty: all begin at 0.
    bases: BTreeMap<u32, u64>,
    capacity: u64,
    /// End of the last device, after `scale`.
    span: u64,
    align: u64,
    scale: u64,
}

impl Placement {
    /// A placement onto `capacity` bytes (`None`: as many as the trace reaches).
    ///
    /// `fit` is `as-is`, `wrap` or `scale`. Several devices are laid one behind another, or with
    /// `redirect` over each other, as fio's `replay_redirect` does. Offsets are divided by `scale` and
    /// rounded down to `align`, as fio's `replay_scale` and `replay_align` do (0: not).
    ///
    /// # Errors
    /// [`Error::Unfit`] where the trace reaches beyond the capacity and `fit` is `as-is`;
    /// [`Error::Value`] for an unknown `fit`.
    pub fn new(
        fit: &str,
        spans: &Spans,
        capacity: Option<u64>,
        redirect: bool,
        align: u64,
        scale: u64,
    ) -> Result<Self> {
        let fit = match fit {
            "as-is" => Fit::AsIs,
            "wrap" => Fit::Wrap,
            "scale" => Fit::Scale,
            _ => return Err(Error::value(fit, "as-is, wrap or scale").under("fit")),
        };
        let scale = scale.max(1);
        let align = align.max(1);
        let rounded = |end: u64| (end / scale).saturating_add(SECTOR_BYTES.max(align));
        let mut bases = BTreeMap::new();
        let mut span = 0u64;
        for (device, end) in &spans.ends {
            // One device keeps its very end; an aligned one may reach one unit farther.
            let end = if scale == 1 && align == 1 { *end } else { rounded(*end) };
            if redirect || spans.ends.len() == 1 {
                span = span.max(end);
            } else {
                bases.insert(*device, span);
                let next = span.saturating_add(end.next_multiple_of(DEVICE_ALIGN));
                span = next;
            }
        }
        let span = span.next_multiple_of(SECTOR_BYTES);
        let capacity = capacity.unwrap_or(span);
        if span > capacity && fit == Fit::AsIs && scale == 1 {
            let gib = |bytes: u64| bytes as f64 / (1u64 << 30) as f64;
            return Err(Error::Unfit(format!(
                "the trace reaches to byte {span} ({:.3} GiB) and the target has {capacity} ({:.3} GiB); \
                 divide its addresses (replay_scale), or have them wrapped or scaled to the target \
                 (ssdlab trace replay --fit wrap or --fit scale)",
                gib(span),
                gib(capacity),
            )));
        }
        Ok(Placement { fit, bases, capacity, span, align, scale })
    }

    /// Bytes from 0 to the end of the last device, before wrapping and scaling.
    pub fn span(&self) -> u64 {
        self.span
    }

    /// The request where it belongs on the target, in whole sectors, on device 0. One that would cross
    /// the target's end is moved to end there.
    #[inline]
    pub fn place(&self, request: Request) -> Request {
        if request.kind == Kind::Flush {
            return Request { offset: 0, device: 0, ..request };
        }
        let base = if self.bases.is_empty() { 0 } else { self.bases[&request.device] };
        let mut length = u64::from(request.length);
        let mut offset = request.offset / self.scale / self.align * self.align + base;
        match self.fit {
            Fit::AsIs => {}
            Fit::Wrap if offset < self.capacity => {}
            Fit::Wrap => offset %= self.capacity,
            Fit::Scale => {
                let to = u128::from(offset) * u128::from(self.capacity) / u128::from(self.span);
                offset = to as u64 / SCALE_ALIGN * SCALE_ALIGN;
            }
        }
        let start = offset / SECTOR_BYTES * SECTOR_BYTES;
        length = (offset - start + length).next_multiple_of(SECTOR_BYTES);
        let room = self.capacity / SECTOR_BYTES * SECTOR_BYTES;
        length = length.min(room).min(u64::from(u32::MAX) / SECTOR_BYTES * SECTOR_BYTES);
        let offset = start.min(room - length);
        Request { offset, length: length as u32, device: 0, ..request }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(device: u32, offset: u64, length: u32) -> Request {
        Request { time_ns: 0, offset, length, kind: Kind::Read, device, response_ns: None }
    }

    fn placed(placement: &Placement, request: Request) -> (u64, u32) {
        let request = placement.place(request);
        assert_eq!(request.device, 0);
        (request.offset, request.length)
    }

    #[test]
    fn devices_lie_one_behind_another_or_over_each_other() {
        let mut spans = Spans::default();
        [at(3, 8192, 4096), at(9, 0, 512), at(3, 0, 512)].iter().for_each(|r| spans.add(r));
        let behind = Placement::new("as-is", &spans, None, false, 0, 0).unwrap();
        assert_eq!(placed(&behind, at(9, 512, 512)), ((1 << 20) + 512, 512));
        assert_eq!(behind.span(), 2 << 20);
        let over = Placement::new("as-is", &spans, None, true, 0, 0).unwrap();
        assert_eq!(placed(&over, at(9, 512, 512)), (512, 512));
        assert_eq!(over.span(), 12_288);
    }

    #[test]
    fn addresses_wrap_scale_and_never_leave_the_target() {
        let mut spans = Spans::default();
        spans.add(&at(0, 1 << 30, 0));
        let error = Placement::new("as-is", &spans, Some(1 << 20), false, 0, 0).unwrap_err();
        assert!(error.to_string().contains("1.000 GiB"), "{error}");
        let wrap = Placement::new("wrap", &spans, Some(1 << 20), false, 0, 0).unwrap();
        assert_eq!(placed(&wrap, at(0, (5 << 20) + 4096, 512)), (4096, 512));
        assert_eq!(placed(&wrap, at(0, (1 << 20) - 512, 4096)), ((1 << 20) - 4096, 4096));
        let scale = Placement::new("scale", &spans, Some(1 << 20), false, 0, 0).unwrap();
        assert_eq!(placed(&scale, at(0, 1 << 29, 512)), (1 << 19, 512));
        assert_eq!(placed(&scale, at(0, (1 << 30) - 1, 1 << 21)), (0, 1 << 20));
    }

    #[test]
    fn parts_of_sectors_and_fios_align_and_scale() {
        let mut spans = Spans::default();
        spans.add(&at(0, 1 << 20, 0));
        let plain = Placement::new("as-is", &spans, None, false, 0, 0).unwrap();
        assert_eq!(placed(&plain, at(0, 700, 500)), (512, 1024));
        // 20480 / 2 = 10240, down to 8192.
        let fio = Placement::new("as-is", &spans, None, false, 8192, 2).unwrap();
        assert_eq!(placed(&fio, at(0, 20_480, 4096)), (8192, 4096));
    }
}
