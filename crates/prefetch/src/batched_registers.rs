//! `batched-registers:D` — every D-th iteration loads D values into registers.
//!
//! ```text
//! before                      after, D = 2
//! loop (%j = 0) {             loop (%j = 0) {
//!   (test)                      (test)
//!   %x = load %j                %v0 = load %j;  %v1 = load %j + 1 (guarded)
//!   use %x                      use %v0
//!   continue %j + 1             (test of %j + 1)
//! }                             use %v1
//!                               continue %j + 2
//!                             }
//! ```
//!
//! The frame makes the D copies; nothing is carried from batch to batch.

use super::early::Early;
use super::fetch::Fetch;
use super::planned::Planned;
use crate::analysis::loops::LoadSite;
use crate::error::Result;
use crate::ir::{Builder, Value};

pub(super) fn pass(load: &Planned<'_>) -> Result<Box<dyn Fetch>> {
    let site = load.site.clone();
    Ok(Box::new(BatchedRegisters { site }))
}

/// A batch of registers; its distance is the frame's group.
pub(super) struct BatchedRegisters {
    pub(super) site: LoadSite,
}

impl Fetch for BatchedRegisters {
    fn site(&self) -> &LoadSite {
        &self.site
    }

    fn advance(
        &mut self,
        early: &mut Early<'_>,
        b: &mut Builder<'_>,
        _: &[Value],
        group: u32,
    ) -> Result<Vec<Value>> {
        for ahead in 0..group {
            early.load(b, &self.site, ahead)?;
        }
        Ok(Vec::new())
    }

    fn replaces_load(&self) -> bool {
        true
    }
}
