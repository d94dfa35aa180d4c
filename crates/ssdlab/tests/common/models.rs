//! Closed forms, solved here, independently of the simulator: of write amplification under random writes, and of
//! hit ratios.
//!
//! `alpha` is physical / logical with only the blocks that may hold data while collection runs;
//! `b` is the mapping units of a superblock. Sources: Desnoyers, ACM ToS 10 (2014); Xiang & Kurkoski,
//! arXiv 1110.4245; Van Houdt, SIGMETRICS 2013; Hu et al., SYSTOR 2009; Frankie et al., arXiv
//! 1208.1794. Greedy with finite b and windowed greedy follow from the same fluid argument.

/// The root of a function that is negative at `low` and positive at `high`.
pub fn bisect(mut low: f64, mut high: f64, f: impl Fn(f64) -> f64) -> f64 {
    for _ in 0..200 {
        let middle = 0.5 * (low + high);
        if f(middle) < 0.0 { low = middle } else { high = middle }
    }
    0.5 * (low + high)
}

/// FIFO, one kind of data: a unit outlives a cycle of alpha/A writes per unit with probability
/// exp(-alpha/A), and A = 1 / (1 - that).
pub fn fifo(alpha: f64) -> f64 {
    hot_cold_fifo(alpha, &[(1.0, 1.0)])
}

/// FIFO, one log, kinds of data given as (share of the addresses, share of the writes).
pub fn hot_cold_fifo(alpha: f64, kinds: &[(f64, f64)]) -> f64 {
    let next = |a: f64| -> f64 {
        kinds.iter().map(|&(f, r)| r / (1.0 - (-(r / f) * alpha / a).exp())).sum()
    };
    bisect(1.0, 1e4, |a| a - next(a))
}

/// A random victim holds 1 / alpha of its units on average.
pub fn random(alpha: f64) -> f64 {
    alpha / (alpha - 1.0)
}

/// The state of greedy collection.
#[derive(Clone, Copy, Debug)]
pub struct Greedy {
    /// Victims hold this many valid units, or one more.
    pub level: u32,
    /// Collections per host write.
    pub rate: f64,
    pub wa: f64,
}

/// Greedy with superblocks of b units: above the victims' levels the superblocks sink through
/// the counts i at rates proportional to i.
pub fn greedy(alpha: f64, b: u32) -> Greedy {
    let bf = f64::from(b);
    (0..b)
        .find_map(|v| {
            let sum: f64 = (v + 2..=b).map(|i| 1.0 / f64::from(i)).sum();
            let (left, above) = (bf - f64::from(v) - 1.0, f64::from(v) + 1.0);
            // alpha/b = r sum + r_v/(v+1) with r_v = 1 - r (b-v-1)
            let r = (alpha / bf - 1.0 / above) / (sum - left / above);
            let r_v = 1.0 - r * left;
            (r > 0.0 && r_v >= 0.0 && r_v <= r).then_some(Greedy { level: v, rate: r, wa: bf * r })
        })
        .expect("one level fits")
}

impl Greedy {
    /// Share of the superblocks with i valid units, for i well above the victims' levels.
    pub fn share(&self, alpha: f64, b: u32, i: u32) -> f64 {
        self.rate * f64::from(b) / (alpha * f64::from(i))
    }
}

/// d-choices: with h_i the share of superblocks with at least i valid units and w host writes per
/// collection, w i (h_i - h_{i+1}) alpha / b = 1 - h_i^d.
pub fn d_choices(alpha: f64, b: u32, d: u32) -> f64 {
    let bf = f64::from(b);
    let valid = |w: f64| -> f64 {
        let mut above = 0.0;
        let mut sum = 0.0;
        for i in (1..=b).rev() {
            let k = w * f64::from(i) * alpha / bf;
            // k (h - above) = 1 - h^d, increasing in h.
            let h = bisect(above, 1.0, |h| k * (h - above) - 1.0 + h.powi(d as i32));
            sum += h;
            above = h;
        }
        sum
    };
    // More writes per collection, fewer valid units.
    let w = bisect(1e-3, bf, |w| bf / alpha - valid(w));
    bf / w
}

/// Greedy among the oldest share `window` of the superblocks. They enter it with a binomial number
/// of valid units; inside, F_i = P(entered with at least i) sink through the count i per collection,
/// down to the level where superblocks are taken.
pub fn windowed(alpha: f64, b: u32, window: f64) -> f64 {
    let bf = f64::from(b);
    // Valid units of the mean victim when there are w host writes per collection.
    let victim = |w: f64| -> f64 {
        let f = at_least(b, (-(1.0 - window) * alpha * w / bf).exp());
        let superblocks = window * alpha * w / bf;
        let mut sum = 0.0;
        for i in (1..=b as usize).rev() {
            let step = f[i] / i as f64;
            if sum + step >= superblocks {
                let sunk = (superblocks - sum) * i as f64;
                return f[1..=i].iter().sum::<f64>() - sunk;
            }
            sum += step;
        }
        0.0
    };
    let w = bisect(1e-3, bf, |w| w - (bf - victim(w)));
    bf / w
}

/// P(X >= i) for i in 0 ..= n, X binomial.
fn at_least(n: u32, p: f64) -> Vec<f64> {
    let mut probability = vec![0.0; n as usize + 2];
    let (mut log, lp, lq) = (0.0f64, p.ln(), (1.0 - p).ln());
    for i in 0..=n {
        probability[i as usize] = (log + f64::from(i) * lp + f64::from(n - i) * lq).exp();
        log += f64::from(n - i).ln() - f64::from(i + 1).ln();
    }
    for i in (0..=n as usize).rev() {
        probability[i] += probability[i + 1];
    }
    probability
}

/// Che, Tung & Wang 2002: LRU under independent draws. Answers the hit ratio and the characteristic time.
pub fn che(law: &[f64], capacity: f64) -> (f64, f64) {
    let held = |t: f64| law.iter().map(|p| 1.0 - (-p * t).exp()).sum::<f64>();
    let t = bisect(0.0, 1e9, |t| held(t) - capacity);
    (law.iter().map(|p| p * (1.0 - (-p * t).exp())).sum(), t)
}

/// The fixed point of FIFO and RANDOM (Gelenbe 1973; Dan & Towsley 1990).
pub fn fifo_theory(law: &[f64], capacity: f64) -> f64 {
    let t =
        bisect(0.0, 1e12, |t| law.iter().map(|p| p * t / (1.0 + p * t)).sum::<f64>() - capacity);
    law.iter().map(|p| p * p * t / (1.0 + p * t)).sum()
}
