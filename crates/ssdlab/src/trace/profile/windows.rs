//! How a trace goes in time: windows of many lengths at once, since its own is known at the end alone.

/// Lengths of windows, ns: 1, 2, 5 ms and on to days.
const WIDTHS_NS: [u64; 28] = {
    const MS: u64 = 1_000_000;
    const S: u64 = 1_000 * MS;
    const H: u64 = 3_600 * S;
    [
        MS,
        2 * MS,
        5 * MS,
        10 * MS,
        20 * MS,
        50 * MS,
        100 * MS,
        200 * MS,
        500 * MS,
        S,
        2 * S,
        5 * S,
        10 * S,
        20 * S,
        30 * S,
        60 * S,
        120 * S,
        300 * S,
        600 * S,
        1200 * S,
        1800 * S,
        H,
        2 * H,
        6 * H,
        12 * H,
        24 * H,
        168 * H,
        24 * 365 * H,
    ]
};

/// Windows of a series at most; a finer one is dropped.
const SERIES_MAX: usize = 720;

/// What happened in a window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Window {
    /// Requests: read, write, trim, flush.
    pub requests: [u64; 4],
    /// Bytes: read, write, trim.
    pub bytes: [u64; 3],
    /// Different blocks touched.
    pub blocks: u64,
    /// Of these, never touched before.
    pub fresh: u64,
}

impl Window {
    fn all(&self) -> u64 {
        self.requests.iter().sum()
    }
}

/// Windows of one length.
#[derive(Clone, Debug)]
struct Scale {
    width_ns: u64,
    start_ns: u64,
    now: Window,
    /// Those that ended; dropped when there are too many.
    series: Option<Vec<Window>>,
    requests_max: u64,
    blocks_max: u64,
    squares: f64,
}

/// See the module.
pub(super) struct Windows {
    scales: Vec<Scale>,
    last_ns: u64,
}

/// How uneven arrivals are at one length of windows.
pub(super) struct Burstiness {
    pub width_ns: u64,
    /// Most requests in a window, and their mean over all windows.
    pub requests_max: u64,
    pub requests_mean: f64,
    /// Variance over mean of the requests in a window: 1 for a Poisson process.
    pub dispersion: f64,
    /// Most different blocks in a window.
    pub blocks_max: u64,
}

impl Windows {
    pub fn new() -> Self {
        let scale = |width_ns: &u64| Scale {
            width_ns: *width_ns,
            start_ns: 0,
            now: Window::default(),
            series: Some(Vec::new()),
            requests_max: 0,
            blocks_max: 0,
            squares: 0.0,
        };
        Windows { scales: WIDTHS_NS.iter().map(scale).collect(), last_ns: 0 }
    }

    /// Counts a request; times never go back.
    #[inline]
    pub fn request(&mut self, time_ns: u64, kind: usize, bytes: u64) {
        self.last_ns = time_ns;
        for scale in &mut self.scales {
            if time_ns - scale.start_ns >= scale.width_ns {
                scale.advance(time_ns);
            }
            scale.now.requests[kind] += 1;
            if kind < 3 {
                scale.now.bytes[kind] += bytes;
            }
        }
    }

    /// Counts a touch of a block that was touched last at `last_ns`, `weight` times.
    #[inline]
    pub fn block(&mut self, last_ns: Option<u64>, weight: u64) {
        for scale in &mut self.scales {
            let first = last_ns.is_none_or(|last| last < scale.start_ns);
            scale.now.blocks += weight * u64::from(first);
            scale.now.fresh += weight * u64::from(last_ns.is_none());
        }
    }

    /// The finest series that was kept: length of its windows and the windows.
    pub fn series(&self) -> (u64, Vec<Window>) {
        let kept = self.scales.iter().find(|scale| scale.series.is_some());
        kept.map_or((WIDTHS_NS[0], Vec::new()), |scale| {
            let mut windows = scale.series.clone().unwrap_or_default();
            windows.push(scale.now);
            (scale.width_ns, windows)
        })
    }

    /// How uneven arrivals are, for lengths of which the trace has several windows.
    pub fn burstiness(&self) -> Vec<Burstiness> {
        let several = self.scales.iter().filter(|scale| self.last_ns / scale.width_ns >= 4);
        several.map(|scale| scale.burstiness(self.last_ns)).collect()
    }
}

impl Scale {
    #[cold]
    fn advance(&mut self, time_ns: u64) {
        self.close();
        let windows = (time_ns - self.start_ns) / self.width_ns;
        let ended = std::mem::take(&mut self.now);
        if let Some(series) = &mut self.series {
            if series.len() as u64 + windows >= SERIES_MAX as u64 {
                self.series = None;
            } else {
                series.push(ended);
                series.extend((1..windows).map(|_| Window::default()));
            }
        }
        self.start_ns += windows * self.width_ns;
    }

    fn close(&mut self) {
        let requests = self.now.all();
        self.requests_max = self.requests_max.max(requests);
        self.blocks_max = self.blocks_max.max(self.now.blocks);
        self.squares += requests as f64 * requests as f64;
    }

    fn burstiness(&self, last_ns: u64) -> Burstiness {
        let mut whole = self.clone();
        whole.close();
        Burstiness {
            width_ns: self.width_ns,
            requests_max: whole.requests_max,
            blocks_max: whole.blocks_max,
            requests_mean: 0.0,
            dispersion: whole.squares / (last_ns / self.width_ns + 1) as f64,
        }
    }
}

impl Burstiness {
    /// Puts the mean in, which needs all requests.
    pub fn with_requests(mut self, requests: u64, last_ns: u64) -> Self {
        let windows = (last_ns / self.width_ns + 1) as f64;
        self.requests_mean = requests as f64 / windows;
        let variance = self.dispersion - self.requests_mean * self.requests_mean;
        self.dispersion = variance.max(0.0) / self.requests_mean.max(f64::MIN_POSITIVE);
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_count_what_falls_into_them_and_idle_ones_stay_empty() {
        let mut windows = Windows::new();
        // Two requests in the first 10 ms, one in the fourth, by hand.
        for (ms, fresh) in [(1, true), (9, false), (35, false)] {
            windows.request(ms * 1_000_000, 0, 4096);
            windows.block(if fresh { None } else { Some(1_000_000) }, 1);
        }
        let tens = windows.scales.iter().find(|scale| scale.width_ns == 10_000_000).unwrap();
        let mut series = tens.series.clone().unwrap();
        series.push(tens.now);
        let counts: Vec<u64> = series.iter().map(Window::all).collect();
        assert_eq!(counts, [2, 0, 0, 1]);
        let blocks: Vec<u64> = series.iter().map(|window| window.blocks).collect();
        assert_eq!(blocks, [1, 0, 0, 1], "a block counts once a window");
        assert_eq!(series[0].fresh, 1);
        assert_eq!(windows.series().0, 1_000_000, "the finest that fits");
    }

    #[test]
    fn even_arrivals_have_no_dispersion() {
        let mut windows = Windows::new();
        (0..1000).for_each(|ms| windows.request(ms * 1_000_000, 0, 512));
        let of = |width: u64| {
            let found = windows.burstiness().into_iter().find(|b| b.width_ns == width).unwrap();
            found.with_requests(1000, 999_000_000)
        };
        let even = of(10_000_000);
        assert_eq!((even.requests_max, even.requests_mean), (10, 10.0));
        assert!(even.dispersion < 1e-9, "{}", even.dispersion);
    }
}
