//! Where a trace goes when: requests by time and address, on a grid that grows with both.

/// Columns (time) and rows (addresses).
pub(super) const COLUMNS: usize = 160;
/// See [`COLUMNS`].
pub(super) const ROWS: usize = 96;

/// Requests by column and row, reads and writes apart. Where a request falls outside, neighbours are
/// added up and cells become twice as wide or as high.
pub(super) struct Map {
    pub column_ns: u64,
    pub row_bytes: u64,
    /// By row and column: reads, writes.
    pub cells: Vec<[u32; 2]>,
}

impl Map {
    pub fn new() -> Self {
        Map { column_ns: 1 << 10, row_bytes: 1 << 16, cells: vec![[0; 2]; COLUMNS * ROWS] }
    }

    /// Counts a request.
    #[inline]
    pub fn add(&mut self, time_ns: u64, offset: u64, write: bool) {
        while time_ns / self.column_ns >= COLUMNS as u64 {
            self.fold(|row, column| (row, column / 2));
            self.column_ns *= 2;
        }
        while offset / self.row_bytes >= ROWS as u64 {
            self.fold(|row, column| (row / 2, column));
            self.row_bytes *= 2;
        }
        let (row, column) = ((offset / self.row_bytes) as usize, time_ns / self.column_ns);
        let cell = &mut self.cells[row * COLUMNS + column as usize][usize::from(write)];
        *cell = cell.saturating_add(1);
    }

    #[cold]
    fn fold(&mut self, to: impl Fn(usize, usize) -> (usize, usize)) {
        let old = std::mem::replace(&mut self.cells, vec![[0; 2]; COLUMNS * ROWS]);
        for (at, counts) in old.into_iter().enumerate() {
            let (row, column) = to(at / COLUMNS, at % COLUMNS);
            for (into, count) in self.cells[row * COLUMNS + column].iter_mut().zip(counts) {
                *into = into.saturating_add(count);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn growing_keeps_every_request() {
        let mut map = Map::new();
        for i in 0..1000u64 {
            map.add(i * i * 1000, (i * 7919) << 20, i % 3 == 0);
        }
        let sum = |write: usize| map.cells.iter().map(|cell| u64::from(cell[write])).sum::<u64>();
        assert_eq!((sum(0), sum(1)), (666, 334));
        assert!(999 * 999 * 1000 / map.column_ns < COLUMNS as u64);
        assert!(999 * 999 * 1000 / map.column_ns >= COLUMNS as u64 / 2, "no wider than it must be");
    }
}
