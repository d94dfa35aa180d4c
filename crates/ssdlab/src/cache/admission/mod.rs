//! Admission: whether what missed is let in at all. Written behind a replacement policy: `lru+ghost`, `lru+nhit:3`.
//!
//! To add one: a file here that implements [`Admission`], and an entry in [`ADMISSIONS`].

mod ghost;
mod hotspot;
mod nhit;
mod probabilistic;
mod remembered;
mod size;

use super::policy::{BuildReplacement, REPLACEMENTS};
use crate::error::{Error, Result};
use crate::registry::{Entry, Registry};
use crate::rng::Stream;

/// Decides about what a cache does not hold.
pub trait Admission: Send {
    /// A key missed: whether it comes in. It takes so many bytes (1: a block), and of the cache so much is in use.
    fn admits(&mut self, key: u64, bytes: u32, used: f64) -> bool;

    /// A key was found.
    fn hit(&mut self) {}
}

/// What an admission is built for.
pub struct Asked<'a> {
    /// What stands behind its name and a colon.
    pub value: Option<&'a str>,
    /// Blocks that the cache holds; of objects about so many.
    pub frames: u32,
    /// Whether it holds objects.
    pub objects: bool,
    /// Its own.
    pub stream: Stream,
}

impl Asked<'_> {
    /// The number behind the name, or `default`. Errors: none, or out of range.
    fn number(
        &self,
        what: &str,
        default: f64,
        range: std::ops::RangeInclusive<f64>,
    ) -> Result<f64> {
        let Some(text) = self.value else { return Ok(default) };
        let number = match text.strip_suffix('%') {
            Some(percent) => percent.parse::<f64>().ok().map(|n| n / 100.0),
            None => text.parse().ok(),
        };
        number.filter(|number| range.contains(number)).ok_or_else(|| {
            Error::value(text, format!("{what} from {} to {}", range.start(), range.end()))
        })
    }
}

/// Builds an admission, or says what is wrong with its value.
pub type BuildAdmission = fn(Asked<'_>) -> Result<Box<dyn Admission>>;

/// Known admissions.
pub const ADMISSIONS: Registry<BuildAdmission> = Registry {
    what: "admission policy",
    entries: &[
        Entry {
            name: "probabilistic",
            summary: "lets in one miss of some: probabilistic:0.5",
            reference: "libCacheSim (prob)",
            build: probabilistic::build,
        },
        Entry {
            name: "ghost",
            summary: "lets in at the second miss, among as many remembered as the cache holds: ghost:1 (times as many)",
            reference: "libCacheSim (bloomfilter), which never forgets; Maggs & Sitaraman, Algorithmic nuggets in content delivery, CCR 45 (2015)",
            build: ghost::build,
        },
        Entry {
            name: "size",
            summary: "lets in objects below a size: size:1MiB",
            reference: "libCacheSim (size)",
            build: size::build,
        },
        Entry {
            name: "nhit",
            summary: "lets in at the third miss, once 80 % of the cache are in use: nhit:3",
            reference: "Open CAS Linux, promotion policy nhit (OCF, src/promotion/nhit: threshold 3, trigger 80 %)",
            build: nhit::build,
        },
        Entry {
            name: "hotspot",
            summary: "lets in blocks of the hottest stretches of 16, by a multiqueue of those that miss: smq+hotspot is dm-cache's smq",
            reference: "Linux Documentation/admin-guide/device-mapper/cache-policies.rst: stochastic multiqueue of dm-cache",
            build: hotspot::build,
        },
    ],
};

/// A replacement policy with what is let in, as users write it.
#[derive(Clone, Copy)]
pub struct Choice<'a> {
    /// Which block leaves.
    pub policy: &'static Entry<BuildReplacement>,
    admission: Option<(BuildAdmission, Option<&'a str>)>,
}

impl<'a> Choice<'a> {
    /// Reads `POLICY`, `POLICY+ADMISSION` or `POLICY+ADMISSION:VALUE`.
    ///
    /// Errors: unknown names, a value that cannot be, an admission before a policy that knows the future.
    pub fn parse(text: &'a str) -> Result<Self> {
        let (policy, rule) = text.split_once('+').map_or((text, None), |(a, b)| (a, Some(b)));
        let policy = REPLACEMENTS.find(policy)?;
        let Some(rule) = rule else { return Ok(Choice { policy, admission: None }) };
        if let BuildReplacement::Offline(_) = policy.build {
            return Err(Error::value(
                text,
                format!("{} alone: it lets everything in", policy.name),
            ));
        }
        let (name, value) = rule.split_once(':').map_or((rule, None), |(a, b)| (a, Some(b)));
        let choice = Choice { policy, admission: Some((ADMISSIONS.find(name)?.build, value)) };
        // A value that holds for objects may not for blocks: that is said when it is played.
        choice
            .admission(1, true, 0)
            .or_else(|error| choice.admission(1, false, 0).map_err(|_| error))?;
        Ok(choice)
    }

    /// Who decides for a cache of so many frames, if not everything is let in.
    pub fn admission(
        &self,
        frames: u32,
        objects: bool,
        seed: u64,
    ) -> Result<Option<Box<dyn Admission>>> {
        let Some((build, value)) = self.admission else { return Ok(None) };
        let stream = Stream::new(seed, "cache/admission");
        build(Asked { value, frames, objects, stream }).map(Some)
    }
}
