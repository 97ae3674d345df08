//! Accesses without their data: whether they may be made, for those who time them.

use super::access::Location;
use super::address;
use super::fault::Access;
use super::lane_op::{LaneOp, LaneOpKind};
use super::lanes::{Mask, Registers};
use super::work_group::{Runners, SubGroup, WorkGroup};
use crate::Result;
use crate::ir::Space;

impl WorkGroup<'_> {
    /// Makes the accesses of a load, store or asynchronous copy on the lanes of `mask`, but moves no data: a load's result and
    /// the memory's contents are undefined afterwards. A copy gives its tokens.
    ///
    /// # Errors
    /// An access is out of bounds or misaligned: which, where, and for which work-item.
    pub(crate) fn touch(
        &mut self,
        op: &LaneOp,
        registers: &mut Registers,
        sub_group: &SubGroup,
        mask: Mask,
    ) -> Result<()> {
        let by = Runners {
            sub_group,
            mask,
            place: op.place,
        };
        match op.kind {
            LaneOpKind::Load { ref to, memory, .. } => {
                let pointers = registers.get(memory.ptr);
                self.touch_all(Access::Read, memory.space, pointers, memory.bytes(to), by)
            }
            LaneOpKind::Store { ref values, memory } => {
                let pointers = registers.get(memory.ptr);
                self.touch_all(Access::Write, memory.space, pointers, memory.bytes(values), by)
            }
            LaneOpKind::Copy {
                to,
                target,
                source,
                bytes,
                ..
            } => {
                let sources = registers.get(source);
                self.touch_all(Access::CopyFrom, Space::Global, sources, bytes, by)?;
                let targets = registers.get(target);
                self.touch_all(Access::CopyTo, Space::Shared, targets, bytes, by)?;
                for lane in mask.lanes() {
                    registers.get_mut(to)[lane] = self.next_copy(sub_group.work_item(lane));
                }
                Ok(())
            }
            _ => self.execute(op, registers, sub_group, mask),
        }
    }

    fn touch_all(
        &mut self,
        access: Access,
        space: Space,
        addresses: &[u64],
        size: u32,
        Runners {
            sub_group,
            mask,
            place,
        }: Runners<'_>,
    ) -> Result<()> {
        if self.checks.is_none() && self.are_inside(space, addresses, size, mask) {
            return Ok(());
        }
        for lane in mask.lanes() {
            let at = Location::new(self.state, space, addresses[lane]);
            self.access(access.of(sub_group.work_item(lane), place), at, size)?;
        }
        Ok(())
    }

    /// Whether all addresses are aligned and lie in one buffer or array. If not, they may still be right.
    fn are_inside(&self, space: Space, addresses: &[u64], size: u32, mask: Mask) -> bool {
        let (mut low, mut high, mut bits) = (u64::MAX, 0, 0);
        for (lane, &address) in addresses.iter().enumerate() {
            if mask.contains(lane) {
                (low, high, bits) = (low.min(address), high.max(address), bits | address);
            }
        }
        if mask.is_empty() || !bits.is_multiple_of(u64::from(size)) {
            return mask.is_empty();
        }
        let layout = match space {
            Space::Shared => &self.state.shared,
            Space::Private => &self.state.private,
            Space::Generic => return false,
            Space::Global => {
                let named = [low, high].map(|end| self.state.resolve(Space::Global, end).1);
                let ends = named.map(|end| address::split(Space::Global, end));
                let [(Some(buffer), first), (Some(same), last)] = ends else {
                    return false;
                };
                return buffer == same
                    && first >= 0
                    && self
                        .state
                        .buffers
                        .get(buffer)
                        .is_some_and(|bound| last as u64 + u64::from(size) <= bound.memory.bytes());
            }
        };
        match (layout.offset(low, size), layout.offset(high, size)) {
            (Some(first), Some(last)) => last.wrapping_sub(first) == high - low,
            _ => false,
        }
    }
}
