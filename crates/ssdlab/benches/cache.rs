//! Hit ratios and curves of 50 million draws from Zipf's law (exponent 1) over a million blocks: 10 % of them cached.
//!
//! Items are requests; a sampled curve also prints how far it is from the whole one.

use divan::Bencher;
use divan::counter::ItemsCount;
use ssdlab::cache::curve::{Curve, Sampling, lru_curve};
use ssdlab::cache::{Counts, Parameters, Request, hit_ratio};
use ssdlab::rng::Stream;
use std::sync::OnceLock;

const REQUESTS: usize = 50_000_000;
const BLOCKS: u32 = 1_000_000;
const CACHED: u32 = 100_000;

fn main() {
    divan::main();
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

fn play(policy: &str) -> Counts {
    hit_ratio(policy, &Parameters::default(), CACHED, requests(), 1).expect("a cache")
}

#[divan::bench(
    args = ["lru", "sieve", "fifo", "clock", "s3-fifo", "2q", "arc", "lirs", "lfu", "random", "optimal"],
    sample_count = 1, sample_size = 1
)]
fn hit_ratios(bencher: Bencher, policy: &str) {
    keys();
    bencher.counter(ItemsCount::new(REQUESTS)).bench_local(|| play(policy));
}

/// Sizes at which curves are compared: about 80 from 1 % of the blocks on.
fn sizes() -> Vec<u64> {
    (1..=80).map(|n| n * u64::from(BLOCKS) / 80).collect()
}

fn whole() -> &'static Curve {
    static WHOLE: OnceLock<Curve> = OnceLock::new();
    WHOLE.get_or_init(|| lru_curve(requests(), &sizes(), Sampling::Whole, 1).expect("a curve"))
}

#[divan::bench(sample_count = 1, sample_size = 1)]
fn curve_whole(bencher: Bencher) {
    keys();
    bencher.counter(ItemsCount::new(REQUESTS)).bench_local(whole);
}

fn sampled(bencher: Bencher, sampling: Sampling) {
    let whole = whole().miss_ratios();
    let mut last = Curve::default();
    bencher.counter(ItemsCount::new(REQUESTS)).bench_local(|| {
        last = lru_curve(requests(), &sizes(), sampling, 1).expect("a curve");
    });
    let off: Vec<f64> = whole.iter().zip(last.miss_ratios()).map(|(a, b)| (a - b).abs()).collect();
    let mean = off.iter().sum::<f64>() / off.len() as f64;
    let worst = off.iter().copied().fold(0.0, f64::max);
    let error = last.error.iter().copied().fold(0.0, f64::max);
    let followed = last.followed as f64 / REQUESTS as f64;
    println!(
        "   off by {mean:.5} on average, {worst:.5} at most; greatest error stated {error:.5}; {followed:.3} followed"
    );
}

#[divan::bench(args = [0.001, 0.0025, 0.005, 0.01], sample_count = 1, sample_size = 1)]
fn curve_of_8_samples_of_a_rate(bencher: Bencher, rate: f64) {
    sampled(bencher, Sampling::Rate { rate, samples: 8 });
}

#[divan::bench(args = [2000, 8000], sample_count = 1, sample_size = 1)]
fn curve_of_8_samples_of_so_many_blocks(bencher: Bencher, blocks: u32) {
    sampled(bencher, Sampling::Blocks { blocks, samples: 8 });
}
