//! The checks of single accesses, against the records of the work-group.

use super::access::cells;
use super::address;
use super::fault::{self, Access, Item};
use super::lanes::{Lanes, Mask};
use super::prefetch::Prefetches;
use super::shadow::{Cell, FastMap, Touch};
use super::work_group::{SubGroup, WorkGroup};
use crate::Result;
use crate::ir::{NoWrapOp, Place, Space, Type, Wrap};

/// The records of the checking mode.
#[derive(Debug)]
pub(super) struct Checks {
    pub(super) epoch: u32,
    pub(super) shared: Vec<Cell>,
    /// For each cell of shared memory, the work-item whose copy into it is in flight, plus 1.
    pub(super) targets: Vec<u32>,
    /// Cells of global memory that may be written.
    pub(super) global: FastMap<Cell>,
    /// Cells of such memory that copies in flight read: how many, and one of them.
    pub(super) sources: FastMap<(u32, Item, Place)>,
    /// For each byte of private memory: it was written.
    pub(super) private: Vec<bool>,
    /// Counts what was acquired, and when each work-item last did so; empty if the kernel never does.
    pub(super) clock: u32,
    pub(super) acquired: Vec<u32>,
    /// Something orders this work-group's accesses and other groups'.
    pub(super) is_ordered: bool,
    /// What was prefetched together, and what to L1.
    pub(super) prefetches: Prefetches,
}

impl Checks {
    /// An access now.
    pub(super) fn touch(&self, access: Access, item: u32, place: Place) -> Touch {
        Touch {
            local: item,
            epoch: self.epoch,
            place,
            time: self.clock,
            since: self.acquired.get(item as usize).copied().unwrap_or(0),
            is_atomic: access.is_atomic(),
        }
    }
}

impl WorkGroup<'_> {
    pub(super) fn check_global(
        &mut self,
        access: Access,
        buffer: usize,
        offset: u64,
        size: u32,
        item: u32,
        place: Place,
    ) -> Result<()> {
        let bound = &self.state.buffers[buffer];
        let writes = access.writes();
        if writes && bound.read_only {
            let what = format!(
                "{} writes {}, which is read-only",
                self.describe(item),
                bound.region.element(offset as i64)
            );
            return Err(fault::error(self.state.kernel, place, what));
        }
        let Some(checks) = &mut self.checks else {
            return Ok(());
        };
        let address = address::buffer_address(buffer) + offset;
        let shift = self.state.cells.global;
        let own = |checks: &Checks| {
            let wrote = |cell: u64| checks.global.get(&cell).is_some_and(|cell| cell.writer.is_some());
            cells(address, size, shift).all(wrote)
        };
        if access.reads() && !bound.memory.is_written(offset, size) && !own(checks) {
            return Err(self.uninitialized(access, Space::Global, address, item, place));
        }
        if bound.read_only {
            return Ok(());
        }
        let touch = checks.touch(access, item, place);
        for cell in cells(address, size, shift) {
            if writes && let Some(&(_, owner, started)) = checks.sources.get(&cell) {
                let what = format!(
                    "{} writes {}, which an asynchronous copy of {} still reads, started at {}",
                    self.describe(item),
                    bound.region.element(offset as i64),
                    self.describe(owner.local),
                    self.state.kernel.describe_place(started)
                );
                return Err(fault::error(self.state.kernel, place, what));
            }
            let history = checks.global.entry(cell).or_default();
            let result = if writes {
                history.write(touch)
            } else {
                history.read(touch)
            };
            if let Err(conflict) = result {
                return Err(self.race(access, Space::Global, address, item, place, conflict));
            }
        }
        Ok(())
    }

    pub(super) fn check_shared(
        &mut self,
        access: Access,
        address: u64,
        offset: u64,
        size: u32,
        item: u32,
        place: Place,
    ) -> Result<()> {
        let Some(checks) = &mut self.checks else {
            return Ok(());
        };
        let touch = checks.touch(access, item, place);
        for cell in cells(offset, size, self.state.cells.shared) {
            let cell = cell as usize;
            if checks.targets[cell] != 0 {
                let owner = checks.targets[cell] - 1;
                return Err(self.in_flight(access, address, offset, size, owner, item, place));
            }
            let history = &mut checks.shared[cell];
            if access.reads() && history.writer.is_none() {
                return Err(self.uninitialized(access, Space::Shared, address, item, place));
            }
            let result = match access.writes() {
                false => history.read(touch),
                true => history.write(touch),
            };
            if let Err(conflict) = result {
                return Err(self.race(access, Space::Shared, address, item, place, conflict));
            }
        }
        Ok(())
    }

    pub(super) fn check_private(
        &mut self,
        access: Access,
        address: u64,
        offset: u64,
        size: u32,
        item: u32,
        place: Place,
    ) -> Result<()> {
        let start = item as usize * self.state.private.bytes() as usize + offset as usize;
        let Some(checks) = &mut self.checks else {
            return Ok(());
        };
        let written = &mut checks.private[start..start + size as usize];
        match access {
            Access::Read if written.iter().all(|&written| written) => Ok(()),
            Access::Read => Err(self.uninitialized(access, Space::Private, address, item, place)),
            _ => {
                written.fill(true);
                Ok(())
            }
        }
    }

    #[expect(
        clippy::too_many_arguments,
        reason = "an operation's fields, a work-item and a place"
    )]
    pub(super) fn check_no_wrap(
        &self,
        op: NoWrapOp,
        wrap: Wrap,
        ty: Type,
        operands: &[Lanes; 2],
        sub_group: &SubGroup,
        mask: Mask,
        place: Place,
    ) -> Result<()> {
        let broken = super::no_wrap::broken(op, wrap, ty, operands).and(mask);
        let Some(lane) = broken.lanes().next() else {
            return Ok(());
        };
        let as_signed = wrap == Wrap::NotSigned;
        let number = |bits: u64| match as_signed {
            true => crate::ir::eval::signed(ty, bits).to_string(),
            false => bits.to_string(),
        };
        let sign = match op {
            NoWrapOp::Add => '+',
            NoWrapOp::Sub => '-',
            NoWrapOp::Mul => '×',
        };
        let what = format!(
            "{} computes {} {sign} {}, which does not fit a{} `{ty}`",
            self.describe(sub_group.work_item(lane)),
            number(operands[0][lane]),
            number(operands[1][lane]),
            if as_signed { " signed" } else { "n unsigned" },
        );
        Err(fault::error(self.state.kernel, place, what))
    }
}
