//! Where sectors lie on the platters, and how long the heads take to reach and to pass over them.
//!
//! Sectors go around a track, then to the next head of the cylinder, then to the next cylinder
//! inwards; outer zones have longer tracks. Each track begins a little later in the turn than the
//! one before (skew), so that a sequential transfer goes on after a switch without losing a
//! revolution. Angles are nanoseconds of a revolution.

use super::HddKeys;
use crate::device::SECTOR;
use crate::error::{Error, Result};
use crate::persist::persistent;
use crate::rig::at_most_an_hour;
use crate::rng::Stream;
use crate::units::Nanos;

/// The mean of the square root of the distance between two random places, and of the distance
/// itself, as shares of the stroke.
const MEAN_ROOT: f64 = 8.0 / 15.0;
const MEAN_DISTANCE: f64 = 1.0 / 3.0;

const ZONES_MAX: u32 = 256;
const HEADS_MAX: u32 = 64;

/// Tracks of one length.
#[derive(Clone, Copy, Debug)]
struct Zone {
    first_sector: u64,
    first_track: u64,
    sectors_per_track: u64,
    /// Sectors by which a track begins after the one before: in the same cylinder, and what the next
    /// cylinder adds.
    skew: u64,
    skew_more: u64,
}

/// Where a sector lies.
#[derive(Clone, Copy, Debug, Default)]
pub struct Place {
    pub track: u64,
    pub cylinder: u64,
    zone: u32,
    /// The sector's place in the turn, counted in sectors of its track; may exceed a turn.
    slot: u64,
    /// The same as an angle.
    angle: u64,
    /// Sectors from here to the end of the track.
    left: u64,
}

persistent!(Place { state { track, cylinder, zone, slot, angle, left } });

/// Time before the first sector passes under the head.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Positioning {
    pub seek: u64,
    pub rotation: u64,
}

/// See the module.
#[derive(Clone, Debug)]
pub struct Mechanics {
    revolution: u64,
    /// Angle at time 0.
    phase: u64,
    heads: u64,
    cylinders: u64,
    /// Seek time over a share d of the stroke: a + b sqrt(d) + c d, ns.
    curve: [f64; 3],
    head_switch: u64,
    write_settle: u64,
    margin: u64,
    zones: Vec<Zone>,
}

impl Mechanics {
    /// The mechanics of these keys. `phase` draws where the platters stand at time 0: the spindles of two disks
    /// do not turn in step.
    ///
    /// # Errors
    /// [`Error::Rig`] with the key that is wrong.
    pub fn new(keys: &HddKeys, mut phase: Stream) -> Result<Self> {
        check(keys)?;
        let revolution = 60_000_000_000 / u64::from(keys.rpm);
        let curve = curve(keys)?;
        let mut this = Mechanics {
            revolution,
            phase: phase.below(revolution),
            heads: u64::from(keys.heads),
            cylinders: 1,
            curve,
            head_switch: keys.head_switch.0,
            write_settle: keys.write_settle.0,
            margin: keys.seek_margin.0,
            zones: Vec::new(),
        };
        let lengths = this.track_lengths(keys);
        let per_cylinder: u64 = lengths.iter().map(|sectors| sectors * this.heads).sum();
        let sectors = keys.capacity.0 / SECTOR;
        let cylinders = sectors.div_ceil(per_cylinder);
        this.cylinders = cylinders * lengths.len() as u64;
        let (mut first_sector, mut first_track) = (0, 0);
        for sectors_per_track in lengths {
            let skew = this.in_sectors(this.head_switch, sectors_per_track);
            let whole = this.in_sectors(this.track_seek(), sectors_per_track);
            this.zones.push(Zone {
                first_sector,
                first_track,
                sectors_per_track,
                skew,
                skew_more: whole.max(skew) - skew,
            });
            first_track += cylinders * this.heads;
            first_sector += cylinders * this.heads * sectors_per_track;
        }
        Ok(this)
    }

    /// Sectors per track of each zone, from the outside in: the sustained rate counts switches in.
    fn track_lengths(&self, keys: &HddKeys) -> Vec<u64> {
        let heads = self.heads;
        let switches = (heads - 1) * self.head_switch + self.track_seek().max(self.head_switch);
        let cylinder = (heads * self.revolution + switches) as f64 / 1e9;
        let (outer, inner) = (keys.sustained_outer.0 as f64, keys.sustained_inner.0 as f64);
        let last = f64::from(keys.zones.max(2) - 1);
        (0..keys.zones)
            .map(|zone| outer + (inner - outer) * f64::from(zone) / last)
            .map(|rate| (rate * cylinder / (heads * SECTOR) as f64).round().max(1.0) as u64)
            .collect()
    }

    /// Time from one cylinder to the next.
    fn track_seek(&self) -> u64 {
        self.curve[0] as u64
    }

    fn in_sectors(&self, time: u64, sectors_per_track: u64) -> u64 {
        (time * sectors_per_track).div_ceil(self.revolution)
    }

    /// Where `sector` lies.
    pub fn place(&self, sector: u64) -> Place {
        let zone = self.zones.partition_point(|zone| zone.first_sector <= sector) - 1;
        let of = &self.zones[zone];
        let inside = sector - of.first_sector;
        let (track, number) = (inside / of.sectors_per_track, inside % of.sectors_per_track);
        let cylinder = track / self.heads;
        let skew = track * of.skew + cylinder * of.skew_more;
        let slot = skew % of.sectors_per_track + number;
        Place {
            track: of.first_track + track,
            cylinder: of.first_track / self.heads + cylinder,
            zone: zone as u32,
            slot,
            angle: self.angle(zone, slot),
            left: of.sectors_per_track - number,
        }
    }

    /// The cylinder of a track.
    pub fn cylinder(&self, track: u64) -> u64 {
        track / self.heads
    }

    /// Cylinders of the disk.
    pub fn cylinders(&self) -> u64 {
        self.cylinders
    }

    /// Sectors of the track at `place`.
    pub fn track_sectors(&self, place: Place) -> u64 {
        self.zones[place.zone as usize].sectors_per_track
    }

    /// When the start of slot `slot` passes, from slot 0 on.
    fn angle(&self, zone: usize, slot: u64) -> u64 {
        slot * self.revolution / self.zones[zone].sectors_per_track
    }

    /// Time to move from a track to another place.
    fn travel(&self, from: u64, to: Place, write: bool) -> u64 {
        if from == to.track {
            return 0;
        }
        let (from, to) = (self.cylinder(from), to.cylinder);
        if from == to {
            return self.head_switch;
        }
        // The first cylinder costs the least seek; the rest is a share of the stroke.
        let share = (from.abs_diff(to) - 1) as f64 / self.cylinders as f64;
        let [a, b, c] = self.curve;
        let settle = if write { self.write_settle } else { 0 };
        (a + b * share.sqrt() + c * share) as u64 + settle
    }

    /// What it takes from `track` at `now` until the head stands before `place`.
    pub fn positioning(&self, now: u64, track: u64, place: Place, write: bool) -> Positioning {
        let seek = self.travel(track, place, write);
        Positioning { seek, rotation: self.wait(now + seek, place) }
    }

    /// What the drive plans with: as `positioning`, but with a turn more where the sector passes so soon after the seek that
    /// it may be missed. Tracks of a cylinder and of its neighbours are laid out for the switch between them.
    pub fn planned(&self, now: u64, track: u64, place: Place, write: bool) -> u64 {
        let Positioning { seek, rotation } = self.positioning(now, track, place, write);
        let missed = rotation < self.margin && self.cylinder(track).abs_diff(place.cylinder) > 1;
        let missed = if missed { self.revolution } else { 0 };
        seek + rotation + missed
    }

    /// Until the sector at `place` comes around.
    fn wait(&self, now: u64, place: Place) -> u64 {
        let angle = place.angle % self.revolution;
        let phase = (now + self.phase) % self.revolution;
        if angle >= phase { angle - phase } else { angle + self.revolution - phase }
    }

    /// End of the transfer of `sectors` from `sector` on, whose begin passes at `at`, and the track
    /// on which it ends. O(tracks).
    pub fn transfer(&self, sector: u64, sectors: u64, mut at: u64) -> (u64, u64) {
        let (mut sector, mut sectors) = (sector, sectors);
        loop {
            let place = self.place(sector);
            let here = place.left.min(sectors);
            at += self.over(place, here);
            (sector, sectors) = (sector + here, sectors - here);
            if sectors == 0 {
                return (at, place.track);
            }
            at = self.next_track(place.track, sector, at);
        }
    }

    /// Time in which `sectors` pass, all on the track of `place`.
    fn over(&self, place: Place, sectors: u64) -> u64 {
        self.angle(place.zone as usize, place.slot + sectors) - place.angle
    }

    /// When `sector`, the first of the track after `track`, passes for a head that was at the end of
    /// `track` at `at`.
    fn next_track(&self, track: u64, sector: u64, at: u64) -> u64 {
        let place = self.place(sector);
        let arrived = at + self.travel(track, place, false);
        arrived + self.wait(arrived, place)
    }

    /// How far a head gets by `now` that reads on from `sector`, whose begin passes at `at`, at most
    /// to `limit`: the first sector that has not passed yet, the sector from which the next question may
    /// go on and when it passes. O(tracks).
    pub fn reading_on(
        &self,
        mut sector: u64,
        mut at: u64,
        limit: u64,
        now: u64,
    ) -> (u64, u64, u64) {
        while sector < limit {
            let place = self.place(sector);
            let here = place.left.min(limit - sector);
            let end = at + self.over(place, here);
            if end > now {
                let passed = now.saturating_sub(at) * self.track_sectors(place) / self.revolution;
                return (sector + passed.min(here), sector, at);
            }
            sector += here;
            at = if sector < limit { self.next_track(place.track, sector, end) } else { end };
        }
        (sector, sector, at)
    }
}

/// The seek curve through the least, the mean and the full seek.
fn curve(keys: &HddKeys) -> Result<[f64; 3]> {
    let (least, mean) = (keys.seek_track.0 as f64, keys.seek_average.0 as f64);
    let Some(full) = keys.seek_full else {
        return Ok([least, (mean - least) / MEAN_ROOT, 0.0]);
    };
    let full = full.0 as f64;
    let root = (mean - least - MEAN_DISTANCE * (full - least)) / (MEAN_ROOT - MEAN_DISTANCE);
    let linear = full - least - root;
    if root < 0.0 || root / 2.0 + linear < 0.0 {
        // From all square root but for what still rises at the end, to all linear.
        let way = mean - least;
        let lowest = least + way / (2.0 * MEAN_ROOT - MEAN_DISTANCE);
        let problem = format!(
            "found {}: no curve that rises all the way has this full seek beside an average of {}; \
             expected from {} to {}",
            keys.seek_full.unwrap_or_default(),
            keys.seek_average,
            Nanos(lowest.ceil() as u64),
            Nanos((least + way / MEAN_DISTANCE) as u64),
        );
        return Err(Error::rig("seek_full", problem));
    }
    Ok([least, root, linear])
}

fn check(keys: &HddKeys) -> Result<()> {
    if !(1000..=60_000).contains(&keys.rpm) {
        let problem = format!("found {}, expected from 1000 to 60000 turns a minute", keys.rpm);
        return Err(Error::rig("rpm", problem));
    }
    for (key, found, most) in [("heads", keys.heads, HEADS_MAX), ("zones", keys.zones, ZONES_MAX)] {
        if !(1..=most).contains(&found) {
            return Err(Error::rig(key, format!("found {found}, expected from 1 to {most}")));
        }
    }
    let times = [
        ("seek_track", keys.seek_track),
        ("seek_average", keys.seek_average),
        ("seek_full", keys.seek_full.unwrap_or_default()),
        ("head_switch", keys.head_switch),
        ("write_settle", keys.write_settle),
        ("seek_margin", keys.seek_margin),
        ("command_time", keys.command_time),
        ("spin_up", keys.spin_up),
    ];
    times.iter().try_for_each(|(key, time)| at_most_an_hour(key, *time))?;
    if keys.seek_track.0 == 0 || keys.seek_average < keys.seek_track {
        let problem = format!(
            "found {}, expected more than 0 and at most seek_average ({})",
            keys.seek_track, keys.seek_average
        );
        return Err(Error::rig("seek_track", problem));
    }
    let revolution = 60_000_000_000 / u64::from(keys.rpm);
    if keys.head_switch.0 > revolution {
        let problem = format!("found {}, expected at most a turn", keys.head_switch);
        return Err(Error::rig("head_switch", problem));
    }
    let (outer, inner) = (keys.sustained_outer, keys.sustained_inner);
    if inner.0 < 100_000 || outer < inner || outer.0 > 10_000_000_000 {
        let problem = format!(
            "found {inner} inside and {outer} outside, expected from 100kB/s to 10GB/s and the \
             inner tracks not faster"
        );
        return Err(Error::rig("sustained_inner", problem));
    }
    Ok(())
}
