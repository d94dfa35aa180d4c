//! The heat of extents, and which of them change places.
//!
//! Heat is a count of I/Os that halves with time. Every period all extents are looked at: the hottest ones below
//! take the places of the coldest ones above, pair by pair, as long as that makes a difference that is worth it.

use super::keys::{HeatOf, TierKeys};
use super::map::Map;
use crate::device::Op;
use crate::persist::persistent;
use crate::units::NEVER;
use std::cmp::Reverse;
use std::collections::VecDeque;

/// An I/O that counts whole.
const ONE: u32 = 1 << 8;
/// A factor that leaves things as they are.
const WHOLE: u64 = 1 << 32;

/// See the module.
pub struct Heat {
    heat: Vec<u32>,
    /// The last period whose end was seen, and whether there were I/Os since.
    seen: u64,
    touched: bool,
    /// Extents to be moved up, the hottest first, and down.
    pub ups: VecDeque<u32>,
    pub downs: VecDeque<u32>,
    pub scans: u64,
    /// What is left of heat after a period.
    decay: u64,
    period: u64,
    least: u32,
    over: f64,
    reads: bool,
    writes: bool,
    hot: Vec<u32>,
    cold: Vec<u32>,
}
persistent!(Heat {
    state { seen, touched, ups, downs, scans }
    parts { heat }
    built { decay, period, least, over, reads, writes, hot, cold }
});

impl Heat {
    pub fn new(keys: &TierKeys, extents: u32) -> Self {
        let period = keys.period.0;
        let left = libm::exp2(-(period as f64) / keys.half_life.0 as f64);
        // To 16 bits, finer than a half-life is known.
        let decay = (left * 65536.0).round() as u64 * (WHOLE >> 16);
        Heat {
            heat: vec![0; extents as usize],
            seen: 0,
            touched: false,
            ups: VecDeque::new(),
            downs: VecDeque::new(),
            scans: 0,
            decay,
            period,
            least: keys.promote_after * ONE,
            over: 1.0 + keys.margin,
            // Where nothing moves nobody asks.
            reads: keys.moves > 0 && keys.heat_of != HeatOf::Writes,
            writes: keys.moves > 0 && keys.heat_of != HeatOf::Reads,
            hot: Vec::new(),
            cold: Vec::new(),
        }
    }

    /// Back to how it was when new, at `now`.
    pub fn reset(&mut self, now: u64) {
        self.heat.fill(0);
        (self.seen, self.touched) = (now / self.period, false);
        self.forget();
    }

    /// Drops what was to be moved; answers whether there was anything.
    pub fn forget(&mut self) -> bool {
        let any = !self.ups.is_empty() || !self.downs.is_empty();
        self.ups.clear();
        self.downs.clear();
        any
    }

    /// What was to be moved is thought over at the next look.
    pub fn postpone(&mut self, now: u64) {
        if self.forget() {
            self.catch_up(now);
        }
    }

    /// Counts an I/O of an extent.
    #[inline]
    pub fn count(&mut self, now: u64, op: Op, extent: u32) {
        if !(op == Op::Read && self.reads || op == Op::Write && self.writes) {
            return;
        }
        if !self.touched {
            self.catch_up(now);
        }
        let heat = &mut self.heat[extent as usize];
        *heat = heat.saturating_add(ONE);
    }

    /// The first I/O after a quiet time: the periods that nobody looked at.
    fn catch_up(&mut self, now: u64) {
        self.touched = true;
        let missed = now / self.period - self.seen;
        if missed > 0 {
            self.cool(missed);
            self.seen += missed;
        }
    }

    fn cool(&mut self, periods: u64) {
        let (mut factor, mut power, mut rest) = (WHOLE, self.decay, periods);
        while rest > 0 && factor > 0 {
            if rest & 1 == 1 {
                factor = ((u128::from(factor) * u128::from(power)) >> 32) as u64;
            }
            power = ((u128::from(power) * u128::from(power)) >> 32) as u64;
            rest >>= 1;
        }
        for heat in &mut self.heat {
            *heat = ((u64::from(*heat) * factor) >> 32) as u32;
        }
    }

    /// When the heat is looked at next; never while nothing changes.
    #[inline]
    pub fn due(&self) -> u64 {
        if self.touched { (self.seen + 1).saturating_mul(self.period) } else { NEVER }
    }

    /// A period is over: plans moves anew. `rising` extents are on their way up.
    pub fn look(&mut self, now: u64, map: &Map, rising: u32) {
        self.scans += 1;
        let periods = now / self.period - self.seen;
        (self.seen, self.touched) = (self.seen + periods, false);
        self.forget();
        self.plan(map, rising);
        self.cool(periods);
    }

    fn plan(&mut self, map: &Map, rising: u32) {
        self.hot.clear();
        self.cold.clear();
        for extent in 0..map.len() {
            if map.moves(extent) {
                continue;
            }
            if map.slot(extent) < map.fast {
                self.cold.push(extent);
            } else if self.heat[extent as usize] >= self.least {
                self.hot.push(extent);
            }
        }
        // Of the hottest no more than there is place for, and of the coldest one for each of them.
        let (above, filled) = (self.cold.len() + rising as usize, map.filled as usize);
        let heat = &self.heat;
        first_of(&mut self.hot, filled, |&e| (Reverse(heat[e as usize]), e));
        let over = above.saturating_sub(filled).min(self.cold.len());
        first_of(&mut self.cold, over + self.hot.len(), |&e| (heat[e as usize], e));
        let room = filled.saturating_sub(above).min(self.hot.len());
        self.ups.extend(&self.hot[..room]);
        self.downs.extend(&self.cold[..over]);
        for (&up, &down) in self.hot[room..].iter().zip(&self.cold[over..]) {
            if f64::from(heat[up as usize]) <= f64::from(heat[down as usize]) * self.over {
                break;
            }
            self.ups.push_back(up);
            self.downs.push_back(down);
        }
    }
}

/// Leaves the first `count` by `key`, in order.
fn first_of<K: Ord>(list: &mut Vec<u32>, count: usize, key: impl Fn(&u32) -> K) {
    if count < list.len() {
        list.select_nth_unstable_by_key(count, &key);
        list.truncate(count);
    }
    list.sort_unstable_by_key(key);
}
