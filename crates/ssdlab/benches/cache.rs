//! Hit ratios and curves of 50 million draws from Zipf's law (exponent 1) over a million blocks, of which the cache
//! holds 10 %; requests per CPU-second of this process, so that other work on the machine does not count.
//!
//! `cargo bench -p ssdlab --bench cache [-- NAME ...]`: policies, or `curves`. The cost of drawing is not counted;
//! that of handing over requests is.

mod clock;

use clock::cpu;
use ssdlab::cache::curve::{Curve, Sampling, lru_curve};
use ssdlab::cache::{Parameters, REPLACEMENTS, Request, hit_ratio};
use ssdlab::rng::Stream;
use std::sync::OnceLock;

const REQUESTS: usize = 50_000_000;
const BLOCKS: u32 = 1_000_000;
const CACHED: u32 = 100_000;

fn main() {
    let named: Vec<String> = std::env::args().skip(1).filter(|a| a != "--bench").collect();
    let wanted = |name: &str| named.is_empty() || named.iter().any(|n| n == name);
    println!("{REQUESTS} requests, Zipf(1) over {BLOCKS} blocks, {CACHED} frames");
    for entry in REPLACEMENTS.entries.iter().filter(|entry| wanted(entry.name)) {
        let play = || hit_ratio(entry.name, &Parameters::default(), CACHED, requests(), 1);
        let (counts, seconds) = timed(play);
        let ratio = counts.expect("a cache").miss_ratio();
        row(entry.name, seconds, &format!("miss ratio {ratio:.4}"));
    }
    if wanted("curves") {
        curves();
    }
}

fn row(name: &str, seconds: f64, more: &str) {
    let rate = REQUESTS as f64 / seconds / 1e6;
    println!("{name:<34} {rate:7.1} M/s {seconds:7.2} s   {more}");
}

fn timed<T>(work: impl FnOnce() -> T) -> (T, f64) {
    keys();
    let begin = cpu();
    let result = work();
    (result, cpu() - begin)
}

/// Ranks, scattered over the block numbers, by Walker's alias method.
fn keys() -> &'static [u32] {
    static KEYS: OnceLock<Vec<u32>> = OnceLock::new();
    KEYS.get_or_init(|| {
        let n = BLOCKS as usize;
        let sum: f64 = (1..=BLOCKS).map(|rank| 1.0 / f64::from(rank)).sum();
        let mut share: Vec<f64> =
            (1..=BLOCKS).map(|rank| n as f64 / f64::from(rank) / sum).collect();
        let mut alias: Vec<u32> = (0..BLOCKS).collect();
        let (mut small, mut large): (Vec<usize>, Vec<usize>) =
            (0..n).partition(|&rank| share[rank] < 1.0);
        while let (Some(&s), Some(&l)) = (small.last(), large.last()) {
            small.pop();
            alias[s] = l as u32;
            share[l] -= 1.0 - share[s];
            if share[l] < 1.0 {
                large.pop();
                small.push(l);
            }
        }
        let mut random = Stream::new(1, "bench");
        let mut draw = || {
            let column = random.below(u64::from(BLOCKS)) as u32;
            let own = random.unit() < share[column as usize];
            let rank = if own { column } else { alias[column as usize] };
            // A prime that shares no factor with the number of blocks.
            (u64::from(rank) * 999_983 % u64::from(BLOCKS)) as u32
        };
        (0..REQUESTS).map(|_| draw()).collect()
    })
}

/// Every third request writes.
fn requests() -> impl Iterator<Item = Request> + Clone {
    keys().iter().map(|&key| Request::one(u64::from(key), key % 3 == 0))
}

/// 79 sizes up to all blocks, the smallest 16 blocks of the smallest sample and more.
fn curves() {
    let sizes: Vec<u64> = (2..=80).map(|n| n * u64::from(BLOCKS) / 80).collect();
    let curve = |sampling, seed| lru_curve(requests(), &sizes, sampling, seed).expect("a curve");
    let (whole, seconds) = timed(|| curve(Sampling::Whole, 1));
    row("LRU curve, whole", seconds, "");
    let mut ways = Vec::new();
    for rate in [0.001, 0.0025, 0.005, 0.0125] {
        ways.push((format!("8 samples of {rate}"), Sampling::Rate { rate, samples: 8 }));
    }
    for blocks in [2000, 12_000] {
        ways.push((
            format!("8 samples of {blocks} blocks"),
            Sampling::Blocks { blocks, samples: 8 },
        ));
    }
    for (name, sampling) in ways {
        let (sampled, seconds) = timed(|| curve(sampling, 1));
        // How far off the curve is does not depend on the luck of one seed.
        let others = (2..5).map(|seed| curve(sampling, seed));
        let (mean, worst) = others
            .chain([sampled.clone()])
            .map(|c| off(&whole, &c))
            .fold((0.0, 0f64), |(sum, most), (mean, worst)| (sum + mean / 4.0, most.max(worst)));
        let stated = sampled.error.iter().copied().fold(0.0, f64::max);
        let followed = sampled.followed as f64 / REQUESTS as f64;
        let more = format!(
            "off by {mean:.4}, {worst:.4} at most; stated error to {stated:.4}; {followed:.3} followed"
        );
        row(&name, seconds, &more);
    }
}

/// Mean and greatest difference of two curves.
fn off(whole: &Curve, sampled: &Curve) -> (f64, f64) {
    let both = whole.miss_ratios().into_iter().zip(sampled.miss_ratios());
    let off: Vec<f64> = both.map(|(a, b)| (a - b).abs()).collect();
    (off.iter().sum::<f64>() / off.len() as f64, off.iter().copied().fold(0.0, f64::max))
}
