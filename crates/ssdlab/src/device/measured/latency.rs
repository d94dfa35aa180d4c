//! Latencies as they were measured, or in closed form.

use crate::error::{Error, Result};
use crate::persist::{Archive, Persist};
use crate::rig::at_most_an_hour;
use crate::rng::Stream;
use crate::units::{Bytes, Nanos};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::f64::consts::TAU;

/// Latencies of one direction and size: `bins`, `series`, or a `mean` with a `distribution`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LatencyKeys {
    /// Size of the I/Os that were measured; may be left out where there is one table only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub size: Option<Bytes>,
    /// A histogram: pairs of a latency in nanoseconds and a count, as in the bins of fio's JSON+.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub bins: Vec<(u64, u64)>,
    /// Latencies in nanoseconds in the order in which they were measured, as in a latency log of fio.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub series: Vec<u64>,
    /// So many neighbours of a series follow each other as they were measured, from a random place;
    /// then from another one. 1: each by itself, without correlation in time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub block: Option<u32>,
    /// Form of the distribution round the mean.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub distribution: Option<Distribution>,
    /// Mean latency.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mean: Option<Nanos>,
    /// Normal: standard deviation by mean. Lognormal: standard deviation of the logarithm.
    /// Two-point: how many times longer the slow ones take. Pareto: the exponent of the tail, above 1;
    /// up to 2 the variance is infinite.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spread: Option<f64>,
    /// Two-point: share of the slow ones.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub share: Option<f64>,
}

/// Distributions in closed form.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Distribution {
    /// Always the mean.
    Constant,
    /// Exponential.
    Exponential,
    /// Normal, cut off at zero.
    Normal,
    /// Lognormal.
    Lognormal,
    /// Pareto (of the first kind): nothing below mean x (1 - 1 / exponent), and a long tail.
    Pareto,
    /// A time, or for a share of the commands a longer one.
    TwoPoint,
}

/// One measurement.
#[derive(Clone, Debug)]
enum Source {
    /// Cumulative counts and latencies.
    Bins(Vec<(u64, u64)>),
    Series {
        values: Vec<u64>,
        block: u32,
        next: u32,
        left: u32,
    },
    Constant(f64),
    Exponential(f64),
    Normal {
        mean: f64,
        deviation: f64,
    },
    Lognormal {
        scale: f64,
        sigma: f64,
    },
    Pareto {
        least: f64,
        exponent: f64,
    },
    TwoPoint {
        fast: f64,
        slow: f64,
        share: f64,
    },
}

/// One latency for all, whatever their size: a source and its stream.
#[derive(Clone, Debug)]
pub(in crate::device) struct Drawn {
    source: Source,
    stream: Stream,
}

impl Drawn {
    /// Of these keys.
    pub fn new(keys: &LatencyKeys, stream: Stream) -> Result<Self> {
        if keys.size.is_some() {
            return Err(Error::rig("size", "has no effect here: one latency is for all sizes"));
        }
        Ok(Drawn { source: keys.source()?, stream })
    }

    /// Always `time`.
    pub fn fixed(time: Nanos) -> Result<Self> {
        at_most_an_hour("", time)?;
        Ok(Drawn { source: Source::Constant(time.0 as f64), stream: Stream::new(0, "") })
    }

    /// The next one, ns.
    pub fn draw(&mut self) -> u64 {
        if let Source::Constant(time) = self.source {
            return time as u64;
        }
        let (u, v) = (self.stream.unit(), self.stream.unit());
        self.source.value(u, v)
    }
}

impl Persist for Drawn {
    fn persist(&mut self, archive: &mut Archive<'_>) -> Result<()> {
        self.source.persist_place(archive)?;
        self.stream.persist(archive)
    }
}

/// Latencies of a direction, by size.
#[derive(Clone, Debug)]
pub(super) struct Latencies {
    /// In ascending order of size.
    by_size: Vec<(u64, Source)>,
}

impl Persist for Latencies {
    fn persist(&mut self, archive: &mut Archive<'_>) -> Result<()> {
        self.by_size.iter_mut().try_for_each(|(_, source)| source.persist_place(archive))
    }
}

impl Latencies {
    /// Of the tables `keys` of the direction `name`.
    pub fn new(keys: &[LatencyKeys], name: &str) -> Result<Self> {
        if keys.is_empty() {
            return Err(Error::rig(name, "is empty, expected at least one table of latencies"));
        }
        let one = |(i, table): (usize, &LatencyKeys)| {
            let place = format!("{name}.{i}");
            if table.size.is_none() && keys.len() > 1 {
                let problem = "is missing, expected the size of the I/Os that were measured";
                return Err(Error::rig(format!("{place}.size"), problem));
            }
            Ok((table.size.map_or(0, |s| s.0), table.source().map_err(|e| e.under(&place))?))
        };
        let mut by_size = keys.iter().enumerate().map(one).collect::<Result<Vec<_>>>()?;
        by_size.sort_by_key(|(size, _)| *size);
        if let Some(pair) = by_size.windows(2).find(|pair| pair[0].0 == pair[1].0) {
            let problem = format!("two tables are for {}, expected one", Bytes(pair[0].0));
            return Err(Error::rig(name, problem));
        }
        Ok(Latencies { by_size })
    }

    /// Latency of an I/O of `len` bytes, ns, at least 1: at the same place in the distributions of
    /// the sizes next to it.
    pub fn draw(&mut self, len: u64, stream: &mut Stream) -> u64 {
        let (u, v) = (stream.unit(), stream.unit());
        let above = self.by_size.partition_point(|(size, _)| *size < len);
        let last = self.by_size.len() - 1;
        let (below, above) = (above.saturating_sub(1), above.min(last));
        let high = self.by_size[above].1.value(u, v);
        let (from, to) = (self.by_size[below].0, self.by_size[above].0);
        if from >= to || len >= to {
            return high.max(1);
        }
        let low = self.by_size[below].1.value(u, v);
        let share = (len.saturating_sub(from)) as f64 / (to - from) as f64;
        ((low as f64 + (high as f64 - low as f64) * share).round() as u64).max(1)
    }
}

impl Source {
    /// What was measured follows from how it was built; the place in it does not.
    fn persist_place(&mut self, archive: &mut Archive<'_>) -> Result<()> {
        if let Source::Series { next, left, .. } = self {
            next.persist(archive)?;
            left.persist(archive)?;
        }
        Ok(())
    }

    /// The latency at the place `u` of the distribution; `v` is as random.
    fn value(&mut self, u: f64, v: f64) -> u64 {
        let time = match self {
            Source::Bins(bins) => {
                let total = bins.last().map_or(0, |bin| bin.0);
                let rank = (u * total as f64) as u64;
                let at = bins.partition_point(|bin| bin.0 <= rank).min(bins.len() - 1);
                return bins[at].1;
            }
            Source::Series { values, block, next, left } => {
                if *left == 0 {
                    *next = (u * values.len() as f64) as u32;
                    *left = *block;
                }
                let value = values[*next as usize];
                *left -= 1;
                *next = if *next as usize + 1 == values.len() { 0 } else { *next + 1 };
                return value;
            }
            Source::Constant(mean) => *mean,
            Source::Exponential(mean) => -*mean * libm::log(1.0 - u),
            Source::Normal { mean, deviation } => *mean + *deviation * normal(u, v),
            Source::Lognormal { scale, sigma } => *scale * libm::exp(*sigma * normal(u, v)),
            Source::Pareto { least, exponent } => *least * libm::pow(1.0 - u, -1.0 / *exponent),
            Source::TwoPoint { fast, slow, share } => {
                if u < *share {
                    *slow
                } else {
                    *fast
                }
            }
        };
        // Beyond an hour no tail goes.
        time.clamp(0.0, 3.6e12).round() as u64
    }
}

/// A standard normal variate of two uniform ones (Box and Muller).
fn normal(u: f64, v: f64) -> f64 {
    (-2.0 * libm::log(1.0 - u)).sqrt() * libm::cos(TAU * v)
}

/// A latency that is always the same, or drawn for each command.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum LatencyOf {
    /// Always the same.
    Fixed(Nanos),
    /// Drawn.
    Drawn(LatencyKeys),
}

impl<'de> Deserialize<'de> for LatencyOf {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> std::result::Result<Self, D::Error> {
        struct Either;
        impl<'de> serde::de::Visitor<'de> for Either {
            type Value = LatencyOf;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a time such as \"200us\", or a table with a distribution")
            }
            fn visit_str<E: serde::de::Error>(
                self,
                text: &str,
            ) -> std::result::Result<LatencyOf, E> {
                Nanos::parse(text).map(LatencyOf::Fixed).map_err(E::custom)
            }
            fn visit_map<A: serde::de::MapAccess<'de>>(
                self,
                map: A,
            ) -> std::result::Result<LatencyOf, A::Error> {
                let from = serde::de::value::MapAccessDeserializer::new(map);
                LatencyKeys::deserialize(from).map(LatencyOf::Drawn)
            }
        }
        from.deserialize_any(Either)
    }
}

impl LatencyKeys {
    fn source(&self) -> Result<Source> {
        let given = [!self.bins.is_empty(), !self.series.is_empty(), self.mean.is_some()];
        if given.iter().filter(|g| **g).count() != 1 {
            return Err(Error::rig("", "expected bins, or a series, or a mean; one of the three"));
        }
        if self.block.is_some() && self.series.is_empty() {
            return Err(Error::rig("block", "has no effect without a series"));
        }
        if self.mean.is_none() && self.distribution.is_some() {
            return Err(Error::rig("distribution", "has no effect without a mean"));
        }
        if let Some(mean) = self.mean {
            at_most_an_hour("mean", mean)?;
            return self.closed_form(mean.0 as f64);
        }
        let longest = self.bins.iter().map(|bin| bin.0).chain(self.series.iter().copied()).max();
        at_most_an_hour(if given[0] { "bins" } else { "series" }, Nanos(longest.unwrap_or(0)))?;
        if given[1] {
            let block = self.block.unwrap_or(1);
            if block == 0 || block as usize > self.series.len() {
                let most = self.series.len();
                let problem =
                    format!("found {block}, expected from 1 to {most}, all of the series");
                return Err(Error::rig("block", problem));
            }
            return Ok(Source::Series { values: self.series.clone(), block, next: 0, left: 0 });
        }
        let mut bins = self.bins.clone();
        bins.sort_unstable();
        let mut total = 0u64;
        let mut cumulative = Vec::with_capacity(bins.len());
        for (latency, count) in bins.into_iter().filter(|bin| bin.1 > 0) {
            total = total.saturating_add(count);
            cumulative.push((total, latency));
        }
        if total == 0 || total > 1 << 52 {
            let problem = format!("found {total} counts in all, expected from 1 to 2^52");
            return Err(Error::rig("bins", problem));
        }
        Ok(Source::Bins(cumulative))
    }

    fn closed_form(&self, mean: f64) -> Result<Source> {
        let number = |key: &str, value: Option<f64>, range: std::ops::RangeInclusive<f64>| {
            let found = value.map_or("nothing".to_string(), |v| v.to_string());
            value.filter(|v| range.contains(v)).ok_or_else(|| {
                let (least, most) = (range.start(), range.end());
                Error::rig(key, format!("found {found}, expected a number from {least} to {most}"))
            })
        };
        let distribution = self.distribution.unwrap_or(Distribution::Constant);
        let two_point = distribution == Distribution::TwoPoint;
        if self.share.is_some() && !two_point {
            return Err(Error::rig("share", "has no effect but with distribution = \"two-point\""));
        }
        let plain = matches!(distribution, Distribution::Constant | Distribution::Exponential);
        if self.spread.is_some() && plain {
            return Err(Error::rig("spread", "has no effect with this distribution"));
        }
        Ok(match distribution {
            Distribution::Constant => Source::Constant(mean),
            Distribution::Exponential => Source::Exponential(mean),
            Distribution::Normal => {
                let deviation = mean * number("spread", self.spread, 0.0..=10.0)?;
                Source::Normal { mean, deviation }
            }
            Distribution::Lognormal => {
                let sigma = number("spread", self.spread, 0.0..=5.0)?;
                Source::Lognormal { scale: mean * libm::exp(-sigma * sigma / 2.0), sigma }
            }
            Distribution::Pareto => {
                let exponent = number("spread", self.spread, 1.01..=100.0)?;
                Source::Pareto { least: mean * (1.0 - 1.0 / exponent), exponent }
            }
            Distribution::TwoPoint => {
                let factor = number("spread", self.spread, 1.0..=1e6)?;
                let share = number("share", self.share, 0.0..=1.0)?;
                let fast = mean / (1.0 - share + share * factor);
                Source::TwoPoint { fast, slow: fast * factor, share }
            }
        })
    }
}
