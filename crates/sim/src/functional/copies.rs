//! Asynchronous copies: their data arrive when they are waited for, and the target holds poison before, so that a missing wait
//! shows even without checks.

use super::access::{Location, cells};
use super::buffer::{POISON, set_bits};
use super::fault::{self, Access, Item};
use super::in_flight::CopyInFlight;
use super::lanes::Mask;
use super::shadow::{Cell, did};
use super::work_group::{SubGroup, WorkGroup};
use crate::Result;
use crate::ir::{Place, Space};
use crate::violation::Violation;

impl WorkGroup<'_> {
    /// Some work-items end.
    ///
    /// # Errors
    /// One has not waited for its copies.
    pub(crate) fn return_(&self, sub_group: &SubGroup, mask: Mask) -> Result<()> {
        if self.copies.is_empty() || self.checks.is_none() {
            return Ok(());
        }
        for lane in mask.lanes() {
            let item = sub_group.work_item(lane);
            if let Some(copy) = self.copies[item as usize].in_flight.front() {
                let region = self.region(Space::Shared, copy.target_address);
                let what = format!(
                    "{} ends without waiting for its asynchronous copy to {}",
                    self.describe(item),
                    region.0.element(region.1)
                );
                return Err(fault::error(
                    self.state.kernel,
                    copy.place,
                    Violation::InFlight(what),
                ));
            }
        }
        Ok(())
    }

    /// Starts an asynchronous copy; its token.
    pub(super) fn start_copy(
        &mut self,
        target: u64,
        source: u64,
        bytes: u32,
        item: u32,
        place: Place,
    ) -> Result<u64> {
        let offset = self.begin_copy(target, source, bytes, item, place)?;
        let copies = &mut self.copies[item as usize];
        copies.started += 1;
        copies.in_flight.push_back(CopyInFlight {
            number: copies.started,
            target: offset,
            target_address: target,
            source,
            bytes,
            place,
        });
        Ok(copies.started)
    }

    /// The target of a copy holds poison from now on; its offset in shared memory.
    pub(super) fn begin_copy(
        &mut self,
        target: u64,
        source: u64,
        bytes: u32,
        item: u32,
        place: Place,
    ) -> Result<u64> {
        let from = Location::new(self.state, Space::Global, source);
        self.access(Access::CopyFrom.of(item, place), from, bytes)?;
        let at = Location::new(self.state, Space::Shared, target);
        let offset = self.access(Access::CopyTo.of(item, place), at, bytes)?;
        self.shared[offset as usize..][..bytes as usize].fill(POISON);
        if let Some(checks) = &mut self.checks {
            for cell in cells(offset, bytes, self.state.cells.shared) {
                checks.targets[cell as usize] = item + 1;
            }
            if let Some((buffer, _)) = self.state.locate(source)
                && !self.state.buffers[buffer].read_only
            {
                let owner = Item {
                    group: self.number,
                    local: item,
                };
                for cell in cells(source, bytes, self.state.cells.global) {
                    checks.sources.entry(cell).or_insert((0, owner, place)).0 += 1;
                }
            }
        }
        Ok(offset)
    }

    /// The token of a work-item's next copy, which has no data.
    pub(super) fn next_copy(&mut self, item: u32) -> u64 {
        let copies = &mut self.copies[item as usize];
        copies.started += 1;
        copies.started
    }

    /// Completes the copies of a work-item up to number `token`.
    pub(super) fn finish_copies(&mut self, item: u32, token: u64) -> Result<()> {
        loop {
            // A kernel without copies has no lists; its tokens are all 0.
            let Some(copies) = self.copies.get_mut(item as usize) else {
                return Ok(());
            };
            let due = copies.in_flight.front().filter(|copy| copy.number <= token);
            let Some(&copy) = due else {
                return Ok(());
            };
            copies.in_flight.pop_front();
            self.deliver(&copy, item);
        }
    }

    /// A copy's data come from memory.
    pub(super) fn deliver(&mut self, copy: &CopyInFlight, item: u32) {
        if let Some((buffer, offset)) = self.state.locate(copy.source) {
            let memory = &self.state.buffers[buffer].memory;
            for part in (0..u64::from(copy.bytes)).step_by(4) {
                let bits = memory.read(offset + part, 4);
                set_bits(&mut self.shared, copy.target + part, 4, bits);
            }
            self.forget_copy(copy, buffer, item);
        }
    }

    /// The target of a copy becomes memory that its work-item wrote just now.
    pub(super) fn forget_copy(&mut self, copy: &CopyInFlight, buffer: usize, item: u32) {
        let Some(checks) = &mut self.checks else {
            return;
        };
        let touch = checks.touch(Access::CopyTo, item, copy.place);
        for cell in cells(copy.target, copy.bytes, self.state.cells.shared) {
            checks.targets[cell as usize] = 0;
            checks.shared[cell as usize] = Cell::of(touch);
            checks.shared[cell as usize].did = did::COPIED;
        }
        if !self.state.buffers[buffer].read_only {
            for cell in cells(copy.source, copy.bytes, self.state.cells.global) {
                if let Some(source) = checks.sources.get_mut(&cell) {
                    source.0 -= 1;
                    if source.0 == 0 {
                        checks.sources.remove(&cell);
                    }
                }
            }
        }
    }
}
