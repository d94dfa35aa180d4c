//! fio's log files of a simulated run: bandwidth, IOPS, latencies and their histograms.
//!
//! One set per process, named `<prefix>_<type>.<number>.log` like fio's. Times are since measuring
//! of the process began. With `log_avg_msec` a line stands for a window and carries its end;
//! without, for one I/O.

use super::recorder::Done;
use crate::job::Logging;
use crate::stats::BINS;
use std::io::{self, Write};

/// One line of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogRow {
    /// Milliseconds since measuring began.
    pub ms: u64,
    /// KiB/s, I/Os per second or ns.
    pub value: u64,
    /// 0 read, 1 write, 2 trim.
    pub ddir: u8,
    /// Bytes of the I/O; 0 for a window.
    pub bs: u64,
    /// Offset of the I/O; 0 for a window.
    pub offset: u64,
}

/// The lines of a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LogRows {
    /// One value per line; with the offset if `log_offset` asks for it.
    Values {
        /// The lines.
        rows: Vec<LogRow>,
        /// Whether the offset is written.
        offset: bool,
    },
    /// Time in ms, direction, block size and the counts of the (coarsened) bins.
    Histograms(Vec<(u64, u8, u64, Box<[u64]>)>),
}

/// One log file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogFile {
    /// Its name, the prefix as the job file gives it.
    pub name: String,
    /// What it holds.
    pub rows: LogRows,
}

impl LogFile {
    /// Writes the file as fio does.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        match &self.rows {
            LogRows::Values { rows, offset } => {
                for LogRow { ms, value, ddir, bs, offset: at } in rows {
                    if *offset {
                        writeln!(out, "{ms}, {value}, {ddir}, {bs}, {at}, 0")?;
                    } else {
                        writeln!(out, "{ms}, {value}, {ddir}, {bs}, 0")?;
                    }
                }
            }
            LogRows::Histograms(rows) => {
                for (ms, ddir, bs, counts) in rows {
                    write!(out, "{ms}, {ddir}, {bs}")?;
                    for count in counts {
                        write!(out, ", {count}")?;
                    }
                    writeln!(out)?;
                }
            }
        }
        Ok(())
    }
}

/// Files of one name become one, the processes behind each other as fio writes them.
pub(super) fn joined(files: impl Iterator<Item = LogFile>) -> Vec<LogFile> {
    let mut all: Vec<LogFile> = Vec::new();
    for file in files {
        match (all.iter_mut().find(|other| other.name == file.name).map(|f| &mut f.rows), file.rows)
        {
            (None, rows) => all.push(LogFile { name: file.name, rows }),
            (Some(LogRows::Values { rows, .. }), LogRows::Values { rows: more, .. }) => {
                rows.extend(more);
            }
            (Some(LogRows::Histograms(rows)), LogRows::Histograms(more)) => rows.extend(more),
            (Some(_), _) => unreachable!("the name tells the kind"),
        }
    }
    all
}

/// Sums of a window.
#[derive(Clone, Copy, Default)]
struct Window {
    ios: u64,
    bytes: u64,
    lat_sum_ns: u64,
    lat_max_ns: u64,
}

struct HistogramWindow {
    counts: Box<[u64; BINS]>,
    ios: u64,
    bs: u64,
}

impl Default for HistogramWindow {
    fn default() -> Self {
        HistogramWindow { counts: Box::new([0; BINS]), ios: 0, bs: 0 }
    }
}

/// From the end of a window to the end of the one that holds `now_ns`, which is later.
fn next_end(end_ns: u64, now_ns: u64, window_ns: u64) -> u64 {
    (now_ns - end_ns).div_ceil(window_ns) * window_ns
}

/// The logs of one process while it runs.
pub(super) struct ProcessLog {
    settings: Logging,
    number: usize,
    window_ns: u64,
    window_end_ns: u64,
    windows: [Window; 3],
    hist_window_ns: u64,
    hist_end_ns: u64,
    hist: [HistogramWindow; 3],
    bw: Vec<LogRow>,
    iops: Vec<LogRow>,
    lat: Vec<LogRow>,
    histograms: Vec<(u64, u8, u64, Box<[u64]>)>,
}

impl ProcessLog {
    /// The logs of process `number` (from 1); `None` if it writes none.
    pub fn new(settings: &Logging, number: usize) -> Option<Self> {
        let any = [&settings.bw, &settings.lat, &settings.iops, &settings.hist];
        any.iter().any(|prefix| prefix.is_some()).then(|| {
            let window_ns = settings.avg_msec * 1_000_000;
            // fio falls back to one second where no window is given.
            let hist_window_ns = if settings.hist_msec == 0 { 1000 } else { settings.hist_msec };
            ProcessLog {
                settings: settings.clone(),
                number,
                window_ns,
                window_end_ns: window_ns,
                windows: Default::default(),
                hist_window_ns: hist_window_ns * 1_000_000,
                hist_end_ns: hist_window_ns * 1_000_000,
                hist: Default::default(),
                bw: Vec::new(),
                iops: Vec::new(),
                lat: Vec::new(),
                histograms: Vec::new(),
            }
        })
    }

    /// Takes a completion; syncs are not logged.
    pub fn completed(&mut self, done: &Done, bin: usize) {
        if done.ddir > 2 {
            return;
        }
        if self.settings.hist.is_some() {
            self.close_histograms(done.measured_ns, false);
            let window = &mut self.hist[done.ddir];
            window.counts[bin] += 1;
            window.ios += 1;
            window.bs = done.bytes;
        }
        if self.window_ns == 0 {
            self.log_one(done);
            return;
        }
        self.close_windows(done.measured_ns, false);
        let window = &mut self.windows[done.ddir];
        window.ios += 1;
        window.bytes += done.bytes;
        window.lat_sum_ns += done.lat_ns;
        window.lat_max_ns = window.lat_max_ns.max(done.lat_ns);
    }

    fn log_one(&mut self, done: &Done) {
        let row = |value| LogRow {
            ms: done.measured_ns / 1_000_000,
            value,
            ddir: done.ddir as u8,
            bs: done.bytes,
            offset: done.offset,
        };
        if self.settings.bw.is_some() {
            // fio gives the rate of a single I/O in kB/s, unlike that of a window.
            self.bw.push(row(done.bytes * 1_000_000 / done.lat_ns.max(1)));
        }
        if self.settings.iops.is_some() {
            self.iops.push(row(1));
        }
        if self.settings.lat.is_some() {
            self.lat.push(row(done.lat_ns));
        }
    }

    /// The process has ended: windows that are whole are written, and the rest of the latencies.
    pub fn ended(&mut self, measured_ns: u64) {
        self.close_histograms(measured_ns + 1, true);
        if self.window_ns > 0 {
            self.close_windows(measured_ns + 1, true);
        }
    }

    /// Writes the window if it ended before `now_ns`; at the end also the latencies of the one
    /// that has begun (fio drops its bandwidth and IOPS).
    fn close_windows(&mut self, now_ns: u64, ended: bool) {
        if self.window_end_ns < now_ns {
            self.write_windows(true);
            self.window_end_ns += next_end(self.window_end_ns, now_ns, self.window_ns);
        }
        if ended {
            self.write_windows(false);
        }
    }

    fn write_windows(&mut self, whole: bool) {
        let ms = self.window_end_ns / 1_000_000;
        for (ddir, window) in self.windows.iter_mut().enumerate() {
            let Window { ios, bytes, lat_sum_ns, lat_max_ns } = std::mem::take(window);
            if ios == 0 {
                continue;
            }
            let row = |value| LogRow { ms, value, ddir: ddir as u8, bs: 0, offset: 0 };
            let per_second =
                |n: u64| (u128::from(n) * 1_000_000_000 / u128::from(self.window_ns)) as u64;
            if self.settings.bw.is_some() && whole {
                self.bw.push(row(per_second(bytes) / 1024));
            }
            if self.settings.iops.is_some() && whole {
                self.iops.push(row(per_second(ios)));
            }
            if self.settings.lat.is_some() {
                let mean = lat_sum_ns / ios;
                self.lat.push(row(if self.settings.max_value { lat_max_ns } else { mean }));
            }
        }
    }

    fn close_histograms(&mut self, now_ns: u64, ended: bool) {
        if self.hist_end_ns < now_ns {
            self.write_histograms();
            self.hist_end_ns += next_end(self.hist_end_ns, now_ns, self.hist_window_ns);
        }
        if ended {
            self.write_histograms();
        }
    }

    fn write_histograms(&mut self) {
        let ms = self.hist_end_ns / 1_000_000;
        let step = 1usize << self.settings.hist_coarseness.min(6);
        for (ddir, window) in self.hist.iter_mut().enumerate().filter(|(_, w)| w.ios > 0) {
            let counts = window.counts.chunks(step).map(|bins| bins.iter().sum()).collect();
            self.histograms.push((ms, ddir as u8, window.bs, counts));
            *window = HistogramWindow::default();
        }
    }

    /// The files, in fio's order.
    pub fn into_files(self) -> Vec<LogFile> {
        let offset = self.settings.offset;
        let number =
            if self.settings.shared_files { String::new() } else { format!(".{}", self.number) };
        let values = |prefix: &str, kind: &str, rows: Vec<LogRow>| LogFile {
            name: format!("{prefix}_{kind}{number}.log"),
            rows: LogRows::Values { rows, offset },
        };
        let mut files = Vec::new();
        if let Some(prefix) = &self.settings.bw {
            files.push(values(prefix, "bw", self.bw));
        }
        if let Some(prefix) = &self.settings.iops {
            files.push(values(prefix, "iops", self.iops));
        }
        if let Some(prefix) = &self.settings.lat {
            let submission = self.lat.iter().map(|row| LogRow { value: 0, ..*row }).collect();
            files.push(values(prefix, "slat", submission));
            files.push(values(prefix, "clat", self.lat.clone()));
            files.push(values(prefix, "lat", self.lat));
        }
        if let Some(prefix) = &self.settings.hist {
            let name = format!("{prefix}_clat_hist{number}.log");
            files.push(LogFile { name, rows: LogRows::Histograms(self.histograms) });
        }
        files
    }
}
