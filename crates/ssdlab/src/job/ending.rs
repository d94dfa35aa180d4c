//! What ends a job before its amount is done, and whom it takes along.

use super::{PerDirection, size, values};
use crate::error::{Error, Result};

const MICROSECOND: u64 = 1_000;

/// Which jobs end with one that ends (`exit_what`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum ExitWhat {
    /// Those of its report group, started or not.
    #[default]
    Group,
    /// All that run; those behind the next stonewall follow.
    Stonewall,
    /// All.
    All,
}

/// What ends a job early, by fio's options.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Ending {
    /// `exitall` stands somewhere in the job file: whichever job ends takes others along.
    pub exitall: bool,
    /// The same where the job fails (`exitall_on_error`).
    pub exitall_on_error: bool,
    /// Whom.
    pub exit_what: ExitWhat,
    /// A job fails whose I/O takes longer, ns by direction; 0: no limit.
    pub max_latency_ns: PerDirection<u64>,
}

impl Ending {
    /// Reads an option; whether it is one of these.
    pub(super) fn option(&mut self, name: &str, value: &str) -> Result<bool> {
        match name {
            "exitall" if value == "0" => {
                let expected = "the name alone, or 1: to fio the option is on whatever its value";
                return Err(Error::value(value, expected));
            }
            "exitall" => self.exitall = true,
            "exitall_on_error" => self.exitall_on_error = value != "0",
            "exit_what" => {
                let known = ["group", "stonewall", "all"];
                let what = [ExitWhat::Group, ExitWhat::Stonewall, ExitWhat::All];
                self.exit_what = what[values::choice(value, &known)?];
            }
            "max_latency" => {
                let time = |t: &str| size::time(t, MICROSECOND);
                size::per_direction(value, &mut self.max_latency_ns, time)?;
            }
            _ => return Ok(false),
        }
        Ok(true)
    }
}
