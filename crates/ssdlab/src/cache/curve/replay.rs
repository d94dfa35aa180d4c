//! Any policy at some sizes, each by a replay; of a sample, in a cache that is smaller by as much.

use super::Curve;
use super::sample::{Sampling, accesses, limit, rate, select};
use crate::cache::hit_ratio::{Counts, Request, Tally};
use crate::cache::policy::{BuildReplacement, Future, Parameters, REPLACEMENTS, check_capacity};
use crate::error::{Error, Result};
use crate::rng::Stream;

/// Frames of the smallest cache that stands for a larger one: rounding then moves its size by 3 % at most.
const FRAMES_MIN: f64 = 16.0;

/// The curve of a policy of [`REPLACEMENTS`] at `sizes` (blocks), from caches that begin empty.
///
/// Sampled at a rate, a cache is replayed at its size times the rate (miniature simulation: Waldspurger et al.,
/// "Cache modeling and optimization using miniature simulations", ATC 2017), of at least 16 blocks.
///
/// Errors: an unknown policy, sizes of 0, too large or too small for the rate, sampling of a fixed number of blocks.
pub fn replay_curve(
    policy: &str,
    parameters: &Parameters,
    requests: &[Request],
    sizes: &[u64],
    sampling: Sampling,
    seed: u64,
) -> Result<Curve> {
    let entry = REPLACEMENTS.find(policy)?;
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
    let capacities = sizes.iter().map(|&size| frames(size, share)).collect::<Result<Vec<u32>>>()?;
    let totals = accesses(requests);
    let parts = parts(requests, sampling, seed);
    let streams = match parts.is_empty() {
        true => vec![requests],
        false => parts.iter().map(Vec::as_slice).collect(),
    };
    let mut curves = Vec::new();
    for stream in streams {
        let future = matches!(entry.build, BuildReplacement::Offline(_))
            .then(|| Future::of(stream))
            .transpose()?;
        let mut curve =
            Curve { sizes: sizes.to_vec(), reads: totals.0, writes: totals.1, ..Curve::default() };
        let (reads, writes) = accesses(stream);
        for &capacity in &capacities {
            let counts = match (&entry.build, &future) {
                (BuildReplacement::Offline(play), Some(future)) => play(future, capacity),
                (build, _) => {
                    let stream_of_draws = Stream::new(seed, "cache/replacement");
                    let mut cache = build.online(policy, capacity, parameters, stream_of_draws)?;
                    let mut tally = Tally::new(capacity);
                    cache.replay(stream, &mut tally);
                    tally.counts
                }
            };
            push(&mut curve, counts, share);
        }
        curve.followed = reads + writes;
        curves.push(curve);
    }
    let [curve] = &curves[..] else { return Ok(Curve::mean(&curves)) };
    let error = if sampling == Sampling::Whole { 0.0 } else { f64::NAN };
    Ok(Curve { error: vec![error; sizes.len()], ..curve.clone() })
}

/// Frames that stand for a cache of `size` blocks.
fn frames(size: u64, share: f64) -> Result<u32> {
    let frames = size as f64 * share;
    if share < 1.0 && frames < FRAMES_MIN {
        let least = (FRAMES_MIN / share).ceil();
        return Err(Error::value(
            format!("a cache of {size} blocks at a sampling rate of {share}"),
            format!(
                "at least {least} blocks, or a higher rate: it is replayed as one of {frames:.1}"
            ),
        ));
    }
    let frames = frames.round().min(f64::from(u32::MAX)) as u32;
    check_capacity(frames).map(|()| frames)
}

/// The accesses of each sample; none where all are followed.
fn parts(requests: &[Request], sampling: Sampling, seed: u64) -> Vec<Vec<Request>> {
    let Sampling::Rate { rate, samples } = sampling else { return Vec::new() };
    let limit = limit(rate, samples);
    let mut parts = vec![Vec::new(); samples as usize];
    select(requests, samples, seed, limit, |sample, key, _, write| {
        parts[sample as usize].push(Request::one(key, write));
        limit
    });
    parts
}

/// Adds a size. What the sample has too much or too little of are hits.
fn push(curve: &mut Curve, counts: Counts, share: f64) {
    let scaled = |misses: u64, total: u64| (misses as f64 / share).min(total as f64);
    curve.read_misses.push(scaled(counts.read_misses, curve.reads));
    curve.write_misses.push(scaled(counts.write_misses, curve.writes));
    curve.write_backs.push(counts.write_backs as f64 / share);
}
