//! Synthetic traces: independent draws from a law of popularity.

use ssdlab::cache::Request;
use ssdlab::rng::Stream;

/// Probabilities of ranks 1 to n under Zipf's law with exponent a.
pub fn zipf_law(n: u32, a: f64) -> Vec<f64> {
    let weights: Vec<f64> = (1..=n).map(|rank| f64::from(rank).powf(-a)).collect();
    let sum: f64 = weights.iter().sum();
    weights.into_iter().map(|w| w / sum).collect()
}

/// Independent draws from a law (Walker's alias method); keys are ranks from 0, `write_share` of them writes.
pub fn draws(law: &[f64], requests: usize, write_share: f64, seed: u64) -> Vec<Request> {
    let n = law.len();
    let mut share: Vec<f64> = law.iter().map(|p| p * n as f64).collect();
    let mut alias: Vec<usize> = (0..n).collect();
    let (mut small, mut large): (Vec<usize>, Vec<usize>) = (0..n).partition(|&i| share[i] < 1.0);
    while let (Some(&s), Some(&l)) = (small.last(), large.last()) {
        small.pop();
        alias[s] = l;
        share[l] -= 1.0 - share[s];
        if share[l] < 1.0 {
            large.pop();
            small.push(l);
        }
    }
    let mut random = Stream::new(seed, "draws");
    let mut draw = || {
        let column = random.below(n as u64) as usize;
        let rank = if random.unit() < share[column] { column } else { alias[column] };
        Request::one(rank as u64, random.unit() < write_share)
    };
    (0..requests).map(|_| draw()).collect()
}
