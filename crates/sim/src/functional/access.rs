//! Loads and stores: where an address leads, whether it may, and the bytes there.

use super::address;
use super::buffer::{little_endian, set_bits};
use super::fault::{Access, AccessOf};
use super::lane_op::{AccessedMemory, LaneOp, LaneOpKind, SlotList};
use super::lanes::{Lanes, Mask, Registers};
use super::shadow::Strength;
use super::state::LaunchState;
use super::work_group::{Runners, WorkGroup};
use super::written::Written;
use crate::ir::{MemoryScope, Space, Type};
use crate::{Error, Result};

impl WorkGroup<'_> {
    /// Runs one operation that accesses memory, or orders or awaits accesses.
    pub(super) fn access_memory(
        &mut self,
        op: &LaneOp,
        registers: &mut Registers,
        by: Runners<'_>,
    ) -> Result<()> {
        let Runners { sub_group, mask, .. } = by;
        match op.kind {
            LaneOpKind::Load { ref to, memory, .. } => self.load(to, memory, registers, by),
            LaneOpKind::Store { ref values, memory } => self.store(values, memory, registers, by),
            LaneOpKind::Copy {
                to,
                target,
                source,
                bytes,
                ..
            } => {
                let (targets, sources) = (registers.lanes(target), registers.lanes(source));
                for lane in mask.lanes() {
                    let item = sub_group.work_item(lane);
                    let token = self.start_copy(targets[lane], sources[lane], bytes, item, op.place)?;
                    registers.get_mut(to)[lane] = token;
                }
                Ok(())
            }
            LaneOpKind::Atomic { .. } => self.atomic(op, registers, sub_group, mask),
            LaneOpKind::Fence { order, scope } => {
                self.fence(order, scope, sub_group, mask);
                self.pass_fence(scope, sub_group, op.place);
                Ok(())
            }
            LaneOpKind::Wait { token } => {
                let tokens = registers.get(token);
                for lane in mask.lanes() {
                    self.finish_copies(sub_group.work_item(lane), tokens[lane])?;
                }
                Ok(())
            }
            LaneOpKind::Prefetch { .. } => self.prefetch(op, registers, sub_group, mask),
            _ => Err(Error::bug("an operation that no part of the engine takes")),
        }
    }

    /// Reads consecutive values on the lanes of `mask`.
    fn load(
        &mut self,
        to: &SlotList,
        memory: AccessedMemory,
        registers: &mut Registers,
        by: Runners<'_>,
    ) -> Result<()> {
        let AccessedMemory { ty, space, ptr, .. } = memory;
        let Runners {
            sub_group,
            mask,
            place,
        } = by;
        if memory.block {
            self.check_block(Access::Read, registers.get(ptr), ty, by)?;
        }
        if self.state.follows_prefetches && !matches!(space, Space::Shared | Space::Private) {
            self.use_prefetched(registers.get(ptr), mask, place);
        }
        let access = match memory.volatile {
            true => Access::VolatileRead(Strength::strong(MemoryScope::Device, ty.bytes())),
            false => Access::Read,
        };
        let addresses = registers.lanes(ptr);
        if !(space == Space::Global && self.load_together(to, ty, &addresses, registers, mask)) {
            let size = ty.bytes();
            for lane in mask.lanes() {
                let item = sub_group.work_item(lane);
                let at = Location::new(self.state, space, addresses[lane]);
                let base = self.access(access.of(item, place), at, size * to.length())?;
                for (slot, offset) in to.as_slice().iter().zip((base..).step_by(size as usize)) {
                    registers.get_mut(*slot)[lane] = self.read(at, offset, size, item) & ty.mask();
                }
            }
        }
        if memory.volatile {
            self.volatile(&addresses, space, access, sub_group, mask);
            for lane in mask.lanes() {
                let values = to.as_slice().iter().map(|&slot| registers.get(slot)[lane]);
                let digest = values.fold(0, |digest: u64, bits| digest.rotate_left(7) ^ bits);
                self.polled(addresses[lane], digest);
            }
        }
        Ok(())
    }

    /// Writes consecutive values on the lanes of `mask`, the lowest lane first.
    fn store(
        &mut self,
        values: &SlotList,
        memory: AccessedMemory,
        registers: &Registers,
        by: Runners<'_>,
    ) -> Result<()> {
        let AccessedMemory { ty, space, ptr, .. } = memory;
        let Runners {
            sub_group,
            mask,
            place,
        } = by;
        let addresses = registers.get(ptr);
        if memory.block {
            self.check_block(Access::Write, addresses, ty, by)?;
        }
        let access = match memory.volatile {
            true => Access::VolatileWrite(Strength::strong(MemoryScope::Device, ty.bytes())),
            false => Access::Write,
        };
        let size = ty.bytes();
        for lane in mask.lanes() {
            let item = sub_group.work_item(lane);
            let at = Location::new(self.state, space, addresses[lane]);
            let written = self.checks.is_some().then(|| {
                let values = values.as_slice().iter();
                Written::new(values.map(|&slot| registers.get(slot)[lane]), size)
            });
            let length = size * values.length();
            let base = self.access_writing(access.of(item, place), at, length, written.as_ref())?;
            for (slot, offset) in values.as_slice().iter().zip((base..).step_by(size as usize)) {
                self.write(at, offset, size, registers.get(*slot)[lane], item);
            }
        }
        if memory.volatile {
            self.volatile(addresses, space, access, sub_group, mask);
        }
        Ok(())
    }

    /// Loads on all lanes of `mask` at once, where all read the same buffer, inside and aligned, and no
    /// record is kept of it. Otherwise false, and nothing was done.
    fn load_together(
        &mut self,
        to: &SlotList,
        ty: Type,
        addresses: &Lanes,
        registers: &mut Registers,
        mask: Mask,
    ) -> bool {
        let Some(first) = mask.lanes().next() else {
            return true;
        };
        let (_, named) = self.state.resolve(Space::Global, addresses[first]);
        let (Some(number), _) = address::split(Space::Global, named) else {
            return false;
        };
        let Some(bound) = self.state.buffers.get(number) else {
            return false;
        };
        if self.checks.is_some() && (!bound.read_only || bound.memory.starts_uninitialized()) {
            return false;
        }
        let size = u64::from(ty.bytes());
        let total = size * u64::from(to.length());
        let start = bound.start;
        // Addresses outside the buffer, on either side, are beyond its end here.
        let offset = |lane: usize| match mask.contains(lane) {
            true => addresses[lane].wrapping_sub(start),
            false => 0,
        };
        let offsets: Lanes = std::array::from_fn(offset);
        let highest = offsets.iter().fold(0, |highest, &offset| offset.max(highest));
        let bits = offsets.iter().fold(0, |bits, &offset| bits | offset);
        if highest
            .checked_add(total)
            .is_none_or(|end| end > bound.memory.bytes())
            || !bits.is_multiple_of(total)
        {
            return false;
        }
        // Often all lanes read one place.
        let is_uniform = mask.lanes().all(|lane| offsets[lane] == highest);
        let fill = match is_uniform {
            true => None,
            false => bound.memory.only_fill(),
        };
        for (&slot, plus) in to.as_slice().iter().zip((0..).step_by(size as usize)) {
            let read = |offset: u64| bound.memory.read(offset + plus, ty.bytes()) & ty.mask();
            let lanes = registers.get_mut(slot);
            if is_uniform {
                lanes.fill(read(highest));
                continue;
            }
            match (fill, size) {
                (Some(fill), 4) => read_lanes(lanes, &offsets, mask, |offset| {
                    u64::from(u32::from_le_bytes(word(fill, offset + plus))) & ty.mask()
                }),
                (Some(fill), 8) => read_lanes(lanes, &offsets, mask, |offset| {
                    u64::from_le_bytes(word(fill, offset + plus))
                }),
                _ => read_lanes(lanes, &offsets, mask, read),
            }
        }
        self.traffic.loaded_bytes += total * u64::from(mask.count());
        true
    }

    /// Checks an access and gives the offset in its buffer, or in shared or private memory.
    #[inline]
    pub(super) fn access(&mut self, of: AccessOf, at: Location, size: u32) -> Result<u64> {
        self.access_writing(of, at, size, None)
    }

    /// The same of an access that writes this.
    #[inline]
    pub(super) fn access_writing(
        &mut self,
        of: AccessOf,
        at: Location,
        size: u32,
        written: Option<&Written>,
    ) -> Result<u64> {
        match at.space {
            Space::Global | Space::Generic => {
                let (buffer, offset) = self.global(of, at.address, size)?;
                let traffic = &mut self.traffic;
                if of.access.writes() {
                    traffic.stored_bytes += u64::from(size);
                }
                if of.access.reads() {
                    traffic.loaded_bytes += u64::from(size);
                }
                if self.checks.is_some() {
                    self.check_global(of, buffer, offset, size, written)?;
                }
                Ok(offset)
            }
            Space::Shared | Space::Private => {
                let layout = match at.space {
                    Space::Shared => &self.state.shared,
                    _ => &self.state.private,
                };
                let Some(offset) = layout.offset(at.address, size) else {
                    return Err(self.out_of_bounds(of, at.space, at.address, size));
                };
                if !at.address.is_multiple_of(u64::from(size)) {
                    return Err(self.misaligned(of, at.space, at.address, size));
                }
                if self.checks.is_some() {
                    match at.space {
                        Space::Shared => self.check_shared(of, at.address, offset, size, written)?,
                        _ => self.check_private(of, at.address, offset, size)?,
                    }
                }
                Ok(offset)
            }
        }
    }

    /// The buffer and offset of an access to global memory that lies inside and is aligned.
    #[inline]
    pub(super) fn global(&self, of: AccessOf, address: u64, size: u32) -> Result<(usize, u64)> {
        let (buffer, offset) = address::split(Space::Global, address);
        if let Some(number) = buffer
            && let Some(bound) = self.state.buffers.get(number)
            && offset >= 0
            && offset as u64 + u64::from(size) <= bound.memory.bytes()
        {
            if !(offset as u64).is_multiple_of(u64::from(size)) && of.access != Access::Prefetch {
                return Err(self.misaligned(of, Space::Global, address, size));
            }
            return Ok((number, offset as u64));
        }
        Err(self.out_of_bounds(of, Space::Global, address, size))
    }

    #[inline]
    pub(super) fn read(&self, at: Location, offset: u64, size: u32, item: u32) -> u64 {
        match at.space {
            Space::Global | Space::Generic => {
                let (buffer, _) = address::split(Space::Global, at.address);
                self.state.buffers[buffer.unwrap_or(0)].memory.read(offset, size)
            }
            Space::Shared => bits_of(&self.shared, offset, size),
            Space::Private => bits_of(self.private_of(item), offset, size),
        }
    }

    #[inline]
    pub(super) fn write(&mut self, at: Location, offset: u64, size: u32, bits: u64, item: u32) {
        if self.state.may_spin && self.read(at, offset, size, item) != bits & mask_of(size) {
            self.changes += 1;
        }
        match at.space {
            Space::Global | Space::Generic => {
                let (buffer, _) = address::split(Space::Global, at.address);
                let memory = &self.state.buffers[buffer.unwrap_or(0)].memory;
                memory.write(offset, size, bits);
                // Else it is known to all at the end of the launch, whatever the order of the groups.
                if self.checks.is_none() || self.state.in_order {
                    memory.mark_written(offset, size);
                }
            }
            Space::Shared => set_bits(&mut self.shared, offset, size, bits),
            Space::Private => {
                let bytes = self.state.private.bytes() as usize;
                let start = item as usize * bytes;
                set_bits(&mut self.private[start..start + bytes], offset, size, bits);
            }
        }
    }

    fn private_of(&self, item: u32) -> &[u8] {
        let bytes = self.state.private.bytes() as usize;
        &self.private[item as usize * bytes..][..bytes]
    }
}

/// An address with its space, generic ones and those of a program's choosing resolved.
#[derive(Clone, Copy, Debug)]
pub(super) struct Location {
    pub space: Space,
    pub address: u64,
}

impl Location {
    #[inline]
    pub(crate) fn new(state: &LaunchState<'_>, space: Space, address: u64) -> Location {
        let (space, address) = state.resolve(space, address);
        Location { space, address }
    }

    /// Where an operand of a carried instruction leads, and `offset` bytes from there. Its type names the memory; if that is
    /// generic, `space` of the instruction does, and if that is, too, the address.
    pub(crate) fn of_operand(
        state: &LaunchState<'_>,
        (ty, address): (Type, u64),
        space: Space,
        offset: i64,
    ) -> Location {
        let named = ty.space().filter(|&space| space != Space::Generic);
        let (space, address) = match named.unwrap_or(space) {
            Space::Generic => address::from_generic(address),
            space => (space, address),
        };
        Location::new(state, space, address.wrapping_add_signed(offset))
    }
}

/// Reads the value of each lane of `mask` from its offset. The host reads many of them at once where `read` does not branch.
#[inline]
fn read_lanes(lanes: &mut [u64], offsets: &Lanes, mask: Mask, read: impl Fn(u64) -> u64) {
    for lane in mask.lanes() {
        lanes[lane] = read(offsets[lane]);
    }
}

/// Some bytes; zeros beyond the end.
#[inline]
fn word<const SIZE: usize>(bytes: &[u8], offset: u64) -> [u8; SIZE] {
    let found = bytes.get(offset as usize..).and_then(<[u8]>::first_chunk);
    found.copied().unwrap_or([0; SIZE])
}

/// The cells that some bytes touch.
pub(super) fn cells(offset: u64, size: u32, shift: u32) -> std::ops::Range<u64> {
    offset >> shift..(offset + u64::from(size)).div_ceil(1 << shift)
}

/// A mask of the bits of this number of bytes, up to eight.
fn mask_of(size: u32) -> u64 {
    u64::MAX >> (64 - 8 * size.clamp(1, 8))
}

#[inline]
fn bits_of(memory: &[u8], offset: u64, size: u32) -> u64 {
    little_endian(&memory[offset as usize..][..size as usize])
}
