//! `batched-shared:D` — every D-th iteration loads D values into slots in shared memory.
//!
//! ```text
//! before                      after
//! loop (%j = 0) {             loop (%j = 0, %slot = first) {
//!   %x = load %j                if %slot is first { D loads, guarded, then D stores }
//!   use %x                      %x = load %slot
//!   continue %j + 1             use %x
//! }                             continue %j + 1, next slot
//!                             }
//! ```

use super::early::Early;
use super::fetch::Fetch;
use super::plan::{Distance, Layout};
use super::planned::Planned;
use super::slots::{Holds, Slots};
use crate::analysis::loops::LoadSite;
use crate::error::{Error, Result};
use crate::ir::{Builder, Value};

pub(super) fn pass(load: &Planned<'_>) -> Result<Box<dyn Fetch>> {
    Ok(Box::new(BatchedShared {
        site: load.site.clone(),
        distance: load.ahead(),
        layout: load.strategy.layout().unwrap_or_default(),
        slots: None,
    }))
}

/// A batch of slots in shared memory.
pub(super) struct BatchedShared {
    pub(super) site: LoadSite,
    /// Slots; a multiple of the frame's group.
    pub(super) distance: u32,
    pub(super) layout: Layout,
    slots: Option<Slots>,
}

impl Fetch for BatchedShared {
    fn site(&self) -> &LoadSite {
        &self.site
    }

    fn prologue(&mut self, _: &mut Early<'_>, b: &mut Builder<'_>) -> Result<Vec<Value>> {
        let slots = Slots::declare(
            b,
            &self.site,
            Distance::new(self.distance)?,
            self.layout,
            Holds::Result,
        )?;
        let first = slots.first();
        self.slots = Some(slots);
        Ok(vec![first])
    }

    fn advance(
        &mut self,
        early: &mut Early<'_>,
        b: &mut Builder<'_>,
        state: &[Value],
        group: u32,
    ) -> Result<Vec<Value>> {
        super::legality::may_move(
            b.kernel,
            early.definitions,
            early.summary,
            &self.site,
            self.distance,
        )?;
        let slots = self
            .slots
            .as_ref()
            .ok_or_else(|| Error::bug("slots are used before they are declared"))?;
        let pointer = state[0];
        let empty = slots.at_first(b, pointer);
        let mut failed = None;
        let fill = |b: &mut Builder<'_>| {
            // Values computed inside are known inside only.
            let mut early = early.clone();
            for ahead in 0..self.distance {
                if let Err(error) = early.load(b, &self.site, ahead) {
                    failed = Some(error);
                    return Vec::new();
                }
            }
            for ahead in 0..self.distance {
                let slot = slots.slot(b, slots.first(), ahead, true);
                if let Some(values) = early.known_load(&self.site, ahead) {
                    slots.write(b, slot, values);
                }
            }
            Vec::new()
        };
        b.if_(empty, &[], fill, |_| Vec::new());
        if let Some(error) = failed {
            return Err(error);
        }
        for ahead in 0..group {
            let guard = early.guard(b, &self.site, ahead, true)?;
            let slot = slots.slot(b, pointer, ahead, true);
            slots.read(b, early, guard, slot, ahead);
        }
        Ok(vec![slots.step(b, pointer, group)])
    }

    fn replaces_load(&self) -> bool {
        true
    }
}
