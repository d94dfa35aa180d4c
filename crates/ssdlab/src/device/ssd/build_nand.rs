//! From the keys of the flash to what its operations take.

use super::build::between;
use super::keys::SsdKeys;
use crate::device::Build;
use crate::error::{Error, Result};
use crate::nand::{
    Flash, Geometry, ReadRetries, Registers, Suspend, Times, Timing, Variation, schedule,
};
use crate::rig::at_most_an_hour;
use crate::units::Nanos;

/// Largest relative deviation of times: a drawn one is within 3.5 times as much, and must be positive.
const VARIATION_MAX: f64 = 0.2;

impl SsdKeys {
    /// Pages of a word line that are programmed in one operation.
    pub(super) fn pages_per_program(&self) -> u32 {
        if self.nand.one_shot { self.nand.bits_per_cell } else { 1 }
    }

    /// Physical units that one sense operation of a host read can bring.
    pub(super) fn units_per_read(&self, geometry: &Geometry) -> u32 {
        let nand = &self.nand;
        if nand.multi_plane_read && !nand.independent_plane_reads {
            geometry.units_per_row()
        } else {
            geometry.units_per_page
        }
    }

    /// Checks the times of pages by type, and what is programmed together.
    pub(super) fn check_pages(&self) -> Result<()> {
        let nand = &self.nand;
        for (alike, one, key, times) in [
            ("nand.t_read", nand.t_read, "nand.read_times", &nand.read_times),
            ("nand.t_program", nand.t_program, "nand.program_times", &nand.program_times),
        ] {
            at_most_an_hour(alike, one.unwrap_or_default())?;
            let Some(times) = times else {
                let missing = || Error::rig(alike, format!("is missing, and so is {key}"));
                one.ok_or_else(missing)?;
                continue;
            };
            times.iter().try_for_each(|&time| at_most_an_hour(key, time))?;
            if times.len() != nand.bits_per_cell as usize {
                let message = format!(
                    "found {} times, expected {}: one for each of nand.bits_per_cell",
                    times.len(),
                    nand.bits_per_cell
                );
                return Err(Error::rig(key, message));
            }
        }
        between("nand.time_variation", nand.time_variation, 0.0, VARIATION_MAX)?;
        let retries = &nand.read_retries;
        between("nand.read_retries.share", retries.share, 0.0, 1.0)?;
        between("nand.read_retries.at_once", f64::from(retries.at_once), 0.0, 4096.0)?;
        if nand.one_shot && nand.program_times.is_some() {
            let message = "found with nand.one_shot, expected nand.t_program alone: all pages of a \
                           word line are programmed in one operation";
            return Err(Error::rig("nand.program_times", message));
        }
        if !nand.pages_per_block.is_multiple_of(self.pages_per_program()) {
            let message = format!(
                "found {}, expected a multiple of nand.bits_per_cell ({}) with nand.one_shot",
                nand.pages_per_block, nand.bits_per_cell
            );
            return Err(Error::rig("nand.pages_per_block", message));
        }
        Ok(())
    }

    /// Dies and channels.
    pub fn flash(&self, geometry: &Geometry, build: &Build) -> Result<Flash> {
        let nand = &self.nand;
        let schedule =
            schedule::SCHEDULES.find(&nand.schedule).map_err(|e| e.under("nand.schedule"))?;
        let slc = self.ftl.slc_cache.as_ref();
        let transfer = f64::from(geometry.unit_bytes) * 1e3 / nand.transfer_mts;
        let timing = Timing {
            read: times(nand.read_times.as_deref(), nand.t_read),
            program: times(nand.program_times.as_deref(), nand.t_program),
            slc_read: slc.map_or(0, |slc| slc.t_read.0),
            slc_program: slc.map_or(0, |slc| slc.t_program.0),
            erase: nand.t_erase.0,
            transfer: transfer.round() as u64,
            suspend: Suspend {
                erase: nand.suspend.erase,
                program: nand.suspend.program,
                enter: nand.suspend.enter.0,
                resume: nand.suspend.resume.0,
                limit: nand.suspend.limit,
            },
            pages_per_program: geometry.pages_per_program,
            variation: Variation {
                deviation: nand.time_variation,
                seed: build.stream("variation").bits(),
            },
            retries: ReadRetries {
                share: nand.read_retries.share,
                seed: build.stream("retries").bits(),
                at_once: nand.read_retries.at_once,
            },
        };
        let registers = Registers {
            planes: geometry.units_per_row() / self.units_per_read(geometry),
            independent: nand.independent_plane_reads,
            keep: nand.page_register,
            cache: nand.cache_operations,
        };
        Ok(Flash::new(geometry, timing, registers, schedule.build))
    }
}

/// By type of page, or the same for all.
fn times(by_type: Option<&[Nanos]>, alike: Option<Nanos>) -> Times {
    match by_type {
        Some(times) => Times::by_type(&times.iter().map(|time| time.0).collect::<Vec<_>>()),
        None => Times::alike(alike.unwrap_or_default().0),
    }
}
