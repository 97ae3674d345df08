//! `rolling-registers:D` — a ring of registers, one load an iteration.
//!
//! ```text
//! before                      after, D = 2
//! loop (%j = 0) {             %v0 = load 0;  %v1 = load 1
//!   %x = load %j              loop (%j = 0, %a = %v0, %b = %v1) {
//!   use %x                      %c = load %j + 2 (guarded)
//!   continue %j + 1             use %a
//! }                             continue %j + 1, %b, %c
//!                             }
//! ```
//!
//! The ring holds the values of iterations `j` to `j + D - 1`. Cleanup removes its unused slots: a ring that only feeds the
//! address of a load further ahead keeps the registers between the two distances. Moves from one register to the next disappear
//! when the loop is unrolled over the ring ([`super::apply`]).

use super::early::Early;
use super::fetch::Fetch;
use super::planned::Planned;
use crate::analysis::loops::LoadSite;
use crate::error::Result;
use crate::ir::{Builder, Value};

pub(super) fn pass(load: &Planned<'_>) -> Result<Box<dyn Fetch>> {
    Ok(Box::new(RollingRegisters {
        site: load.site.clone(),
        distance: load.ahead(),
    }))
}

/// A ring of registers.
pub(super) struct RollingRegisters {
    pub(super) site: LoadSite,
    /// How many iterations ahead.
    pub(super) distance: u32,
}

impl Fetch for RollingRegisters {
    fn site(&self) -> &LoadSite {
        &self.site
    }

    fn prologue(&mut self, early: &mut Early<'_>, b: &mut Builder<'_>) -> Result<Vec<Value>> {
        let mut state = Vec::new();
        for ahead in 0..self.distance {
            state.extend(early.load(b, &self.site, ahead)?);
        }
        Ok(state)
    }

    fn advance(
        &mut self,
        early: &mut Early<'_>,
        b: &mut Builder<'_>,
        state: &[Value],
        group: u32,
    ) -> Result<Vec<Value>> {
        for (ahead, values) in (0..).zip(state.chunks(self.site.results.len())) {
            for (&result, &value) in self.site.results.iter().zip(values) {
                early.know(result, ahead, value);
            }
        }
        let mut window: Vec<Value> = state.to_vec();
        for ahead in self.distance..self.distance + group {
            window.extend(early.load(b, &self.site, ahead)?);
        }
        Ok(window.split_off(group as usize * self.site.results.len()))
    }

    fn replaces_load(&self) -> bool {
        true
    }
}
