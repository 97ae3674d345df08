//! Whether a profile is of the launch that it is used for.
//!
//! Times, stalls and occupancy of one launch say nothing of another: a profile that contradicts the launch is refused, with
//! both numbers.

use super::Profiled;
use crate::error::{Error, Result};
use crate::report::Geometry;
use crate::report::number::{duration, figures};

/// Times and registers of one launch do not differ by more than this factor, whatever the clocks and the compiler's version.
const SAME: f64 = 1.5;

impl Profiled {
    /// Refuses a launch of another geometry than the profile has.
    ///
    /// # Errors
    /// They differ, and the profile is not said to be of another launch.
    pub(in crate::advise) fn is_of_geometry(&self, own: Geometry) -> Result<()> {
        let (groups, group) = (self.evidence.groups, self.evidence.group);
        let profiled = Geometry { groups, group };
        match groups > 0 && group > 0 && profiled != own {
            true => self.refuse(&profiled.to_string(), &own.to_string()),
            false => Ok(()),
        }
    }

    /// Refuses a launch that takes another time or, where a compiler counted them, other registers than the profile has.
    ///
    /// # Errors
    /// As for [`Profiled::is_of_geometry`].
    pub(in crate::advise) fn is_of_run(&self, time_ns: f64, registers: Option<u32>) -> Result<()> {
        if let Some((profiled, own)) = self.registers.zip(registers)
            && are_apart(f64::from(profiled), f64::from(own))
        {
            let named = |count: u32| format!("{} registers a work-item", figures(f64::from(count)));
            self.refuse(&named(profiled), &named(own))?;
        }
        match are_apart(self.evidence.time_ns, time_ns) {
            true => self.refuse(&duration(self.evidence.time_ns), &duration(time_ns)),
            false => Ok(()),
        }
    }

    fn refuse(&self, profiled: &str, own: &str) -> Result<()> {
        if self.is_of_another_launch {
            return Ok(());
        }
        Err(Error::usage(format!(
            "the profile is of another launch than this one: it has {profiled}, and this launch {own}"
        ))
        .accepted(
            "the profiled launch, by `--set`, `--launch` or `FILE.csv#N`; or `--profile-is-of-another-launch`",
        ))
    }
}

fn are_apart(one: f64, other: f64) -> bool {
    one > 0.0 && other > 0.0 && one.max(other) > SAME * one.min(other)
}
