//! Any policy at some sizes, each by a replay; of a sample, in a cache that is smaller by as much.

use super::Curve;
use super::lru::lru_curve;
use super::sample::{Sampling, Totals, check_sizes, limit, rate, select};
use crate::cache::admission::Choice;
use crate::cache::hit_ratio::{Counts, Request, play};
use crate::cache::policy::{BuildReplacement, Future, Parameters, check_capacity};
use crate::error::{Error, Result};

/// The curve of a [`Choice`] at `sizes` (blocks), from caches that begin empty.
///
/// Without sizes a few up to the footprint are chosen. Sampled at a rate, a cache is replayed at its size times the rate (miniature simulation: Waldspurger et al.,
/// "Cache modeling and optimization using miniature simulations", ATC 2017), of at least 16 blocks.
///
/// Errors: an unknown policy, sizes of 0, too large or too small for the rate, sampling of a fixed number of blocks.
pub fn replay_curve(
    policy: &str,
    parameters: &Parameters,
    requests: impl Iterator<Item = Request> + Clone,
    sizes: &[u64],
    sampling: Sampling,
    seed: u64,
) -> Result<Curve> {
    let choice = Choice::parse(policy)?;
    sampling.check()?;
    parameters.check()?;
    let share = match sampling {
        Sampling::Whole => 1.0,
        Sampling::Rate { rate: wanted, samples } => rate(limit(wanted, samples), samples),
        Sampling::Blocks { .. } => {
            return Err(Error::value(
                format!("a fixed number of sampled blocks for {policy}"),
                "a sampling rate: only LRU needs no size before it begins",
            ));
        }
    };
    let chosen: Vec<u64>;
    let sizes = if sizes.is_empty() {
        let lru = lru_curve(requests.clone(), &[], sampling, seed)?;
        chosen = lru.sizes.into_iter().step_by(5).collect();
        &chosen
    } else {
        sizes
    };
    check_sizes(sizes, share)?;
    let play = Play { choice, parameters, sizes, share, seed };
    let (totals, parts) = match sampling {
        Sampling::Rate { rate, samples } => {
            let (totals, parts) = parts(requests, rate, samples, seed);
            let played =
                parts.iter().map(|part| play.counts(part.iter().copied(), part.len() as u64));
            (totals, played.collect::<Result<Vec<_>>>()?)
        }
        _ => {
            let mut totals = Totals::default();
            requests.clone().for_each(|request| totals.add(&request));
            (totals, vec![play.counts(requests, totals.reads + totals.writes)?])
        }
    };
    let curve = |counts: &Vec<Counts>| {
        // What the sample has too much or too little of are hits: misses are not weighed by accesses found.
        let column = |of: fn(&Counts) -> u64, most: u64| -> Vec<f64> {
            counts.iter().map(|c| (of(c) as f64 / share).min(most as f64)).collect()
        };
        Curve {
            sizes: sizes.to_vec(),
            reads: totals.reads,
            writes: totals.writes,
            read_misses: column(|c| c.read_misses, totals.reads),
            write_misses: column(|c| c.write_misses, totals.writes),
            write_backs: column(|c| c.write_backs, totals.writes),
            error: vec![if share == 1.0 { 0.0 } else { f64::NAN }; sizes.len()],
            footprint: f64::NAN,
            followed: counts.first().map_or(0, Counts::accesses),
        }
    };
    Ok(Curve::mean(&parts.iter().map(curve).collect::<Vec<_>>()))
}

/// What is replayed on each sample.
struct Play<'a> {
    choice: Choice<'a>,
    parameters: &'a Parameters,
    sizes: &'a [u64],
    share: f64,
    seed: u64,
}

impl Play<'_> {
    /// Counts at each size. A cache of as many frames as there are accesses evicts nothing: more would only take
    /// memory.
    fn counts(
        &self,
        requests: impl Iterator<Item = Request> + Clone,
        accesses: u64,
    ) -> Result<Vec<Counts>> {
        let frames = |&size: &u64| {
            let frames = (size as f64 * self.share).round().min(accesses.max(1) as f64);
            let frames = frames.min(f64::from(u32::MAX)) as u32;
            check_capacity(frames).map(|()| frames)
        };
        let frames = self.sizes.iter().map(frames).collect::<Result<Vec<u32>>>()?;
        if let BuildReplacement::Offline(play) = self.choice.policy.build {
            let future = Future::of(requests)?;
            return Ok(frames.iter().map(|&frames| play(&future, frames)).collect());
        }
        let count = |&frames: &u32| {
            play(&self.choice, self.parameters, frames, requests.clone(), self.seed)
        };
        frames.iter().map(count).collect()
    }
}

/// The accesses of each sample.
fn parts(
    requests: impl Iterator<Item = Request>,
    rate: f64,
    samples: u32,
    seed: u64,
) -> (Totals, Vec<Vec<Request>>) {
    let limit = limit(rate, samples);
    let mut parts = vec![Vec::new(); samples as usize];
    let totals = select(requests, samples, seed, limit, |sample, key, _, write| {
        parts[sample as usize].push(Request::one(key, write));
        limit
    });
    (totals, parts)
}
