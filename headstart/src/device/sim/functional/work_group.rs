//! A work-group: its memory, its copies in flight, its checks; and what memory operations do to them.

use super::address::{self, array_address, from_generic, to_generic};
use super::buffer::POISON;
use super::checks::Checks;
use super::copies::Copies;
use super::fault::{self, Access};
use super::lane_op::{LaneOp, LaneOpKind, SlotList};
use super::lanes::{LANES, Lanes, Mask, Registers};
use super::pure;
use super::shadow::{Cell, FastMap};
use super::state::LaunchState;
use crate::ir::{ConvertOp, Id, Place, Space, Type};
use crate::{Error, Result};

/// A work-group that runs. One is used for many groups, one after the other.
#[derive(Debug)]
pub struct WorkGroup<'l> {
    pub(super) state: &'l LaunchState<'l>,
    pub(super) number: u64,
    position: [u64; 3],
    pub(super) shared: Vec<u8>,
    private: Vec<u8>,
    /// The copies in flight of each work-item, and how many it has started.
    pub(super) copies: Vec<Copies>,
    pub(super) checks: Option<Checks>,
    pub(super) traffic: Traffic,
}

/// Bytes that a work-group moved, hints not counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Traffic {
    pub loaded_bytes: u64,
    pub stored_bytes: u64,
}

/// Some work-items of a work-group that run together.
#[derive(Clone, Debug)]
pub struct SubGroup {
    number: u32,
    first: u32,
    size: u32,
    /// Each lane's position in the work-group.
    local: [Lanes; 3],
}

impl SubGroup {
    /// Its lanes.
    pub fn mask(&self) -> Mask {
        Mask::first(self.size)
    }

    /// Its number in the work-group.
    pub fn number(&self) -> u32 {
        self.number
    }

    /// The linear number in the work-group of a lane's work-item.
    #[inline]
    pub fn work_item(&self, lane: usize) -> u32 {
        self.first + lane as u32
    }
}

impl<'l> WorkGroup<'l> {
    /// The first work-group of a launch.
    ///
    /// # Errors
    /// It needs more memory than the options allow.
    pub fn new(state: &'l LaunchState<'l>) -> Result<WorkGroup<'l>> {
        let items = state.launch.group_items();
        let private = state.private.bytes().saturating_mul(items);
        let shared_cells = state.shared.bytes().div_ceil(1 << state.cells.shared);
        let checks = match state.is_checking() {
            true => shared_cells * size_of::<Cell>() as u64 + private,
            false => 0,
        };
        let bytes = state
            .shared
            .bytes()
            .saturating_add(private)
            .saturating_add(checks);
        if bytes > state.options.group_memory_limit {
            return Err(Error::device(format!(
                "a work-group of `{}` takes {bytes} bytes of memory in the simulator",
                state.kernel.name
            ))
            .accepted(format!("at most {}", state.options.group_memory_limit)));
        }
        let mut group = WorkGroup {
            state,
            number: 0,
            position: [0; 3],
            shared: vec![POISON; state.shared.bytes() as usize],
            private: vec![POISON; private as usize],
            copies: vec![Copies::default(); if state.has_copies { items as usize } else { 0 }],
            checks: state.is_checking().then(|| Checks {
                epoch: 0,
                shared: vec![Cell::default(); shared_cells as usize],
                targets: vec![0; shared_cells as usize],
                global: FastMap::default(),
                sources: FastMap::default(),
                private: vec![false; private as usize],
            }),
            traffic: Traffic::default(),
        };
        group.begin(0);
        Ok(group)
    }

    /// Starts over, as work-group `number`.
    pub fn begin(&mut self, number: u64) {
        self.number = number;
        self.position = fault::position(number, self.state.launch.groups);
        self.shared.fill(POISON);
        self.private.fill(POISON);
        for copies in &mut self.copies {
            copies.started = 0;
            copies.in_flight.clear();
        }
        if let Some(checks) = &mut self.checks {
            checks.epoch = 0;
            checks.shared.fill(Cell::default());
            checks.targets.fill(0);
            checks.global.clear();
            checks.sources.clear();
            checks.private.fill(false);
        }
        self.traffic = Traffic::default();
    }

    /// Its linear number in the launch.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// Sub-group `number` of it.
    pub fn sub_group(&self, number: u32) -> SubGroup {
        let items = self.state.launch.group_items() as u32;
        let first = number * self.state.sub_group_size;
        let item = |lane: usize| u64::from(first) + lane as u64;
        let local = [0, 1, 2].map(|axis| {
            std::array::from_fn(|lane| fault::position(item(lane), self.state.launch.group)[axis])
        });
        SubGroup {
            number,
            first,
            size: items.saturating_sub(first).min(self.state.sub_group_size),
            local,
        }
    }

    /// All work-items have reached a barrier.
    pub fn barrier(&mut self) {
        if let Some(checks) = &mut self.checks {
            checks.epoch += 1;
        }
    }

    /// All work-items have ended.
    pub(super) fn end(&mut self) {
        if let Some(checks) = &self.checks {
            self.state.shadow.merge(self.number, &checks.global);
        }
    }

    /// Runs one operation on the lanes of `mask`. Other lanes of its results may change.
    ///
    /// # Errors
    /// A check failed: which, where, and for which work-item.
    #[inline]
    pub fn execute(
        &mut self,
        op: &LaneOp,
        registers: &mut Registers,
        sub_group: &SubGroup,
        mask: Mask,
    ) -> Result<()> {
        if let LaneOpKind::NoWrap {
            op: kind,
            wrap,
            ty,
            a,
            b,
            ..
        } = op.kind
            && self.checks.is_some()
        {
            let operands = [*registers.get(a), *registers.get(b)];
            self.check_no_wrap(kind, wrap, ty, &operands, sub_group, mask, op.place)?;
        }
        if pure::execute(&op.kind, registers) {
            return Ok(());
        }
        match op.kind {
            LaneOpKind::Id { to, id } => {
                *registers.get_mut(to) = self.id(id, sub_group);
                Ok(())
            }
            LaneOpKind::ArrayAddress { to, array } => {
                registers.broadcast(to, array_address(array));
                Ok(())
            }
            LaneOpKind::Load {
                to, ty, space, ptr, ..
            } => {
                let addresses = *registers.get(ptr);
                if space == Space::Global && self.load_together(&to, ty, &addresses, registers, mask) {
                    return Ok(());
                }
                for lane in mask.lanes() {
                    let item = sub_group.work_item(lane);
                    let to = to.as_slice();
                    let size = ty.bytes();
                    let at = Location::new(space, addresses[lane]);
                    let total = size * to.len() as u32;
                    let base = self.access(Access::Read, at, total, item, op.place)?;
                    for (slot, offset) in to.iter().zip((base..).step_by(size as usize)) {
                        let bits = self.read(at, offset, size, item) & ty.mask();
                        registers.get_mut(*slot)[lane] = bits;
                    }
                }
                Ok(())
            }
            LaneOpKind::Store {
                values,
                ty,
                space,
                ptr,
            } => {
                let addresses = *registers.get(ptr);
                for lane in mask.lanes() {
                    let item = sub_group.work_item(lane);
                    let values = values.as_slice();
                    let size = ty.bytes();
                    let at = Location::new(space, addresses[lane]);
                    let total = size * values.len() as u32;
                    let base = self.access(Access::Write, at, total, item, op.place)?;
                    for (slot, offset) in values.iter().zip((base..).step_by(size as usize)) {
                        self.write(at, offset, size, registers.get(*slot)[lane], item);
                    }
                }
                Ok(())
            }
            LaneOpKind::Copy {
                to,
                target,
                source,
                bytes,
                ..
            } => {
                let (targets, sources) = (*registers.get(target), *registers.get(source));
                for lane in mask.lanes() {
                    let item = sub_group.work_item(lane);
                    let token = self.start_copy(targets[lane], sources[lane], bytes, item, op.place)?;
                    registers.get_mut(to)[lane] = token;
                }
                Ok(())
            }
            LaneOpKind::Wait { token } => {
                let tokens = *registers.get(token);
                for lane in mask.lanes() {
                    self.finish_copies(sub_group.work_item(lane), tokens[lane])?;
                }
                Ok(())
            }
            LaneOpKind::Prefetch { ptr, bytes, .. } => {
                if self.state.options.check_prefetch_bounds {
                    let addresses = *registers.get(ptr);
                    for lane in mask.lanes() {
                        let item = sub_group.work_item(lane);
                        self.global(Access::Prefetch, addresses[lane], bytes, item, op.place)?;
                    }
                }
                Ok(())
            }
            LaneOpKind::Convert {
                op: convert,
                from,
                into,
                to,
                a,
            } => {
                let addresses = *registers.get(a);
                let space = from.space().unwrap_or(Space::Global);
                *registers.get_mut(to) = addresses.map(|address| match convert {
                    ConvertOp::ToGeneric => to_generic(space, address),
                    _ => from_generic(address).1,
                });
                debug_assert!(into.is_pointer());
                Ok(())
            }
            _ => Err(Error::bug("an operation that no part of the engine takes")),
        }
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
        let (Some(number), _) = address::split(Space::Global, addresses[first]) else {
            return false;
        };
        let Some(bound) = self.state.buffers.get(number) else {
            return false;
        };
        if self.checks.is_some() && !(bound.read_only && !bound.memory.starts_uninitialized()) {
            return false;
        }
        let size = u64::from(ty.bytes());
        let total = size * u64::from(to.length());
        let start = address::buffer_address(number);
        // What is outside the buffer, on either side, is beyond its end here.
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
            || bits % total != 0
        {
            return false;
        }
        for (&slot, plus) in to.as_slice().iter().zip((0..).step_by(size as usize)) {
            let lanes = registers.get_mut(slot);
            for lane in mask.lanes() {
                lanes[lane] = bound.memory.read(offsets[lane] + plus, ty.bytes()) & ty.mask();
            }
        }
        self.traffic.loaded_bytes += total * u64::from(mask.count());
        true
    }

    /// The answer to a question about the work-item.
    fn id(&self, id: Id, sub_group: &SubGroup) -> Lanes {
        let launch = self.state.launch;
        let same = |number: u64| [number; LANES];
        let axis = |axis: u8| usize::from(axis).min(2);
        match id {
            Id::Local(dimension) => sub_group.local[axis(dimension)],
            Id::Group(dimension) => same(self.position[axis(dimension)]),
            Id::GroupSize(dimension) => same(u64::from(launch.group[axis(dimension)])),
            Id::GroupCount(dimension) => same(u64::from(launch.groups[axis(dimension)])),
            Id::Lane => std::array::from_fn(|lane| lane as u64),
            Id::SubGroup => same(u64::from(sub_group.number)),
            Id::SubGroupSize => same(u64::from(sub_group.size)),
            Id::MaxSubGroupSize => same(u64::from(self.state.sub_group_size)),
            Id::SubGroupCount => same(u64::from(self.state.sub_groups())),
        }
    }

    /// Checks an access and gives the offset in its buffer, or in shared or private memory.
    #[inline]
    pub(super) fn access(
        &mut self,
        access: Access,
        at: Location,
        size: u32,
        item: u32,
        place: Place,
    ) -> Result<u64> {
        match at.space {
            Space::Global | Space::Generic => {
                let (buffer, offset) = self.global(access, at.address, size, item, place)?;
                let traffic = &mut self.traffic;
                match access {
                    Access::Write => traffic.stored_bytes += u64::from(size),
                    _ => traffic.loaded_bytes += u64::from(size),
                }
                if self.checks.is_some() {
                    self.check_global(access, buffer, offset, size, item, place)?;
                }
                Ok(offset)
            }
            Space::Shared | Space::Private => {
                let layout = match at.space {
                    Space::Shared => &self.state.shared,
                    _ => &self.state.private,
                };
                let Some(offset) = layout.offset(at.address, size) else {
                    return Err(self.out_of_bounds(access, at.space, at.address, size, item, place));
                };
                if !at.address.is_multiple_of(u64::from(size)) {
                    return Err(self.misaligned(access, at.space, at.address, size, item, place));
                }
                if self.checks.is_some() {
                    match at.space {
                        Space::Shared => self.check_shared(access, at.address, offset, size, item, place)?,
                        _ => self.check_private(access, at.address, offset, size, item, place)?,
                    }
                }
                Ok(offset)
            }
        }
    }

    /// The buffer and offset of an access to global memory that lies inside and is aligned.
    #[inline]
    fn global(
        &self,
        access: Access,
        address: u64,
        size: u32,
        item: u32,
        place: Place,
    ) -> Result<(usize, u64)> {
        let (buffer, offset) = address::split(Space::Global, address);
        if let Some(number) = buffer
            && let Some(bound) = self.state.buffers.get(number)
            && offset >= 0
            && offset as u64 + u64::from(size) <= bound.memory.bytes()
        {
            if offset as u64 % u64::from(size) != 0 && access != Access::Prefetch {
                return Err(self.misaligned(access, Space::Global, address, size, item, place));
            }
            return Ok((number, offset as u64));
        }
        Err(self.out_of_bounds(access, Space::Global, address, size, item, place))
    }

    #[inline]
    fn read(&self, at: Location, offset: u64, size: u32, item: u32) -> u64 {
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
    fn write(&mut self, at: Location, offset: u64, size: u32, bits: u64, item: u32) {
        match at.space {
            Space::Global | Space::Generic => {
                let (buffer, _) = address::split(Space::Global, at.address);
                let memory = &self.state.buffers[buffer.unwrap_or(0)].memory;
                memory.write(offset, size, bits);
                if self.checks.is_none() {
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

/// An address with its space, generic ones resolved.
#[derive(Clone, Copy, Debug)]
pub(super) struct Location {
    pub space: Space,
    pub address: u64,
}

impl Location {
    #[inline]
    pub fn new(space: Space, address: u64) -> Location {
        let (space, address) = match space {
            Space::Generic => from_generic(address),
            _ => (space, address),
        };
        Location { space, address }
    }
}

/// The cells that some bytes touch.
pub(super) fn cells(offset: u64, size: u32, shift: u32) -> std::ops::Range<u64> {
    offset >> shift..(offset + u64::from(size)).div_ceil(1 << shift)
}

#[inline]
fn bits_of(memory: &[u8], offset: u64, size: u32) -> u64 {
    let bytes = &memory[offset as usize..][..size as usize];
    match *bytes {
        [a] => u64::from(a),
        [a, b] => u64::from(u16::from_le_bytes([a, b])),
        [a, b, c, d] => u64::from(u32::from_le_bytes([a, b, c, d])),
        [a, b, c, d, e, f, g, h] => u64::from_le_bytes([a, b, c, d, e, f, g, h]),
        _ => 0,
    }
}

#[inline]
pub(super) fn set_bits(memory: &mut [u8], offset: u64, size: u32, bits: u64) {
    let size = size as usize;
    memory[offset as usize..][..size].copy_from_slice(&bits.to_le_bytes()[..size]);
}
