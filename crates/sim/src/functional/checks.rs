//! The checks of single accesses, against the records of the work-group.

use super::access::cells;
use super::address::{self, bit_of};
use super::fault::{self, Access, AccessOf, Item};
use super::flights::Flights;
use super::histories::Histories;
use super::order::{Locations, Order};
use super::prefetched::Prefetches;
use super::shadow::{Cell, FastMap, Now, Touch, did};
use super::state::{is_rust, meant_by};
use super::work_group::WorkGroup;
use super::written::{SameBits, Written};
use crate::ir::{Place, Races, Space};
use crate::violation::Violation;
use crate::{Error, Result};

/// The records of the checking mode.
#[derive(Debug)]
pub(super) struct Checks {
    /// Counts barriers and releases.
    pub(super) time: u32,
    /// The time of the last barrier.
    pub(super) since: u32,
    /// The number of the first work-item: 0, or that in the launch where work-groups may see each other.
    pub(super) first: u32,
    /// Bits of a work-item's number in its work-group.
    pub(super) group_bits: u32,
    pub(super) sub_group: u32,
    /// Orders beyond barriers; none if there are none.
    pub(super) order: Option<Order>,
    pub(super) shared: Vec<Cell>,
    /// Where strong operations meet in shared memory, by offset.
    pub(super) locations: Locations,
    /// For each cell of shared memory, the work-item whose copy into it is in flight, plus 1.
    pub(super) targets: Vec<u32>,
    pub(super) global: Global,
    /// Products of warp groups in flight.
    pub(super) flights: Flights,
    /// Cells of global memory that copies in flight read and that may be written: how many, and one of them.
    pub(super) sources: FastMap<(u32, Item, Place)>,
    /// For each byte of private memory: it was written.
    pub(super) private: Vec<bool>,
    /// Joint prefetches, and prefetches to L1.
    pub(super) prefetches: Prefetches,
    /// Stores that race with others of the same bits.
    pub(super) same_bits: SameBits,
    /// Accesses that race as the program means it.
    pub(super) meant: SameBits,
    /// Writable buffers that the work-group read without having written the element itself; none if work-groups see each other.
    pub(super) looked: u64,
}

/// Cells of global memory that may be written.
#[derive(Debug)]
pub(super) enum Global {
    /// Of this work-group alone.
    Own(FastMap<Cell>),
    /// Of all work-groups; with the one that runs.
    Common(Option<Box<Histories>>),
}

impl Checks {
    /// An access now.
    #[inline]
    pub(super) fn touch(&self, access: Access, local: u32, place: Place) -> Touch {
        Touch {
            item: self.first + local,
            time: self.time,
            place,
            strength: access.strength(),
            wrote: access.writes(),
        }
    }

    /// Advances the time: later events are distinguished from released ones.
    pub(super) fn tick(&mut self) {
        self.time = self.time.saturating_add(1);
    }
}

/// An access with its work-item's knowledge.
#[inline]
fn now(touch: Touch, checks: (u32, u32, u32), order: Option<&Order>, local: u32) -> Now<'_> {
    let (since, group_bits, sub_group) = checks;
    Now {
        touch,
        since,
        known: order.map(|order| order.known(local)),
        group_bits,
        sub_group,
    }
}

/// Whether a race is none after all: its work-item has strongly observed the other's write.
fn has_seen(
    order: Option<&Order>,
    locations: &Locations,
    cell: u64,
    shift: u32,
    with: &Touch,
    local: u32,
) -> bool {
    if !with.wrote || with.strength.is_plain() {
        return false;
    }
    let location = locations.get(&start_of(cell << shift, with));
    location.is_some_and(|location| order.is_some_and(|order| order.has_seen(location, local)))
}

/// Where the memory of a strong access begins, one of whose bytes this is.
fn start_of(byte: u64, touch: &Touch) -> u64 {
    byte & !((1 << touch.strength.size()) - 1)
}

/// A race within a sub-group, with the statement that a launch file may make about it; a program in Rust has none.
fn in_lockstep(error: Error) -> Error {
    if is_rust(&error) {
        return error;
    }
    error.or_accepted(
        "where the work-items of a sub-group run in lockstep, as on GPUs before Volta, `warp_synchronous = true` in the launch file of PTX",
    )
}

/// The cell no longer holds a strong write.
fn forget_location(locations: &mut Locations, cell: u64, shift: u32, writer: Option<Touch>) {
    if let Some(writer) = writer.filter(|writer| !writer.strength.is_plain()) {
        locations.remove(&start_of(cell << shift, &writer));
    }
}

impl WorkGroup<'_> {
    pub(super) fn check_global(
        &mut self,
        own: AccessOf,
        buffer: usize,
        offset: u64,
        size: u32,
        written: Option<&Written>,
    ) -> Result<()> {
        let AccessOf { access, item, place } = own;
        let state = self.state;
        let bound = &state.buffers[buffer];
        let writes = access.writes();
        if writes && bound.read_only {
            let violation = Violation::ReadOnly {
                who: self.describe(item),
                element: bound.region.element(offset as i64),
            };
            return Err(fault::error(state.kernel, place, violation));
        }
        let Some(checks) = &mut self.checks else {
            return Ok(());
        };
        let address = address::buffer_address(buffer) + offset;
        let shift = state.cells.global;
        let wrote_itself = |checks: &Checks| {
            let Global::Own(cells_of_group) = &checks.global else {
                return false;
            };
            let wrote = |cell: u64| {
                let cell = cells_of_group.get(&cell);
                cell.is_some_and(|cell| cell.writer().is_some())
            };
            cells(address, size, shift).all(wrote)
        };
        if access.reads() && !bound.memory.is_written(offset, size) && !wrote_itself(checks) {
            return Err(self.uninitialized(own, Space::Global, address));
        }
        if bound.read_only {
            return Ok(());
        }
        let bit = bit_of(buffer);
        if access.reads() && checks.looked & bit == 0 && !wrote_itself(checks) {
            checks.looked |= bit;
        }
        let touch = checks.touch(access, item, place);
        let group = (checks.since, checks.group_bits, checks.sub_group);
        let bytes = 1u64 << shift;
        for cell in cells(address, size, shift) {
            if writes && let Some(&(_, owner, started)) = checks.sources.get(&cell) {
                let what = format!(
                    "{} writes {}, which an asynchronous copy of {} still reads, started at {}",
                    self.describe(item),
                    bound.region.element(offset as i64),
                    self.describe(owner.local),
                    state.kernel.describe_place(started)
                );
                return Err(fault::error(state.kernel, place, Violation::InFlight(what)));
            }
            // Of the store and of the buffer, where the cell begins.
            let (from, at) = (cell * bytes - address, cell * bytes - address + offset);
            let are_plain_writes = |with: &Touch| {
                let is_one = |touch: &Touch| touch.wrote && touch.strength.is_plain();
                is_one(&touch) && is_one(with)
            };
            let is_meant = |with: &Touch| match bound.races {
                Races::None => false,
                Races::Reads => touch.strength.is_plain() && !(touch.wrote && with.wrote),
                Races::Any => true,
            };
            let (mut same, mut meant) = (false, false);
            let order = checks.order.as_ref();
            let now = now(touch, group, order, item);
            let conflict = match &mut checks.global {
                Global::Own(cells_of_group) => {
                    let history = cells_of_group.entry(cell).or_default();
                    // Concurrent writes of other work-groups to the memory do not count.
                    let bits = written.map(|written| written.bits(from, bytes));
                    let conflict = history.conflict(&now, &mut |with| {
                        let found = are_plain_writes(with) && bits == Some(history.bits);
                        same |= found;
                        meant |= !found && is_meant(with);
                        found || is_meant(with)
                    });
                    if conflict.is_none() {
                        history.record(&now, same, true);
                        history.did |= did::of(touch);
                        history.bits = bits.unwrap_or(history.bits);
                    }
                    conflict
                }
                Global::Common(histories) => {
                    let histories = histories.get_or_insert_with(|| state.histories());
                    let equals = |written: &Written| {
                        (0..bytes).step_by(8).all(|half| {
                            let length = bytes.min(8);
                            let there = bound.memory.read(at + half, length as u32).to_le_bytes();
                            written.part(from + half, length) == &there[..length as usize]
                        })
                    };
                    let conflict = histories.conflict(cell, &now, &mut |with, locations| {
                        if has_seen(order, locations, cell, shift, with, item) {
                            return true;
                        }
                        let found = are_plain_writes(with) && written.is_some_and(equals);
                        same |= found;
                        meant |= !found && is_meant(with);
                        found || is_meant(with)
                    });
                    if conflict.is_none() {
                        if writes && touch.strength.is_plain() && !histories.locations.is_empty() {
                            let writer = histories.writer(cell);
                            forget_location(&mut histories.locations, cell, shift, writer);
                        }
                        histories.record(cell, &now, same);
                    }
                    conflict
                }
            };
            if let Some(with) = conflict {
                let race = self.race(own, Space::Global, address, with);
                return Err(meant_by(race, &bound.region.name, !(touch.wrote && with.wrote)));
            }
            if same {
                checks
                    .same_bits
                    .add(place, buffer as u64, Space::Global, address, 1);
            }
            if meant {
                checks.meant.add(place, buffer as u64, Space::Global, address, 1);
            }
        }
        Ok(())
    }

    pub(super) fn check_shared(
        &mut self,
        own: AccessOf,
        address: u64,
        offset: u64,
        size: u32,
        written: Option<&Written>,
    ) -> Result<()> {
        let AccessOf { access, item, place } = own;
        let Some(checks) = &mut self.checks else {
            return Ok(());
        };
        let touch = checks.touch(access, item, place);
        let group = (checks.since, checks.group_bits, checks.sub_group);
        let shift = self.state.cells.shared;
        let bytes = 1u64 << shift;
        for cell in cells(offset, size, shift) {
            if checks.targets[cell as usize] != 0 {
                let owner = checks.targets[cell as usize] - 1;
                return Err(self.in_flight(own, address, offset, size, owner));
            }
            if access.writes() && checks.flights.reads(cell) {
                return Err(self.read_by_product(own, address, cell));
            }
            let history = &mut checks.shared[cell as usize];
            if access.reads() && history.writer().is_none() {
                return Err(self.uninitialized(own, Space::Shared, address));
            }
            let order = checks.order.as_ref();
            let now = now(touch, group, order, item);
            let (memory, locations, flights) = (&self.shared, &checks.locations, &checks.flights);
            let is_within = |with: &Touch| touch.item / group.2.max(1) == with.item / group.2.max(1);
            let mut same = false;
            let conflict = history.conflict(&now, &mut |with| {
                if has_seen(order, locations, cell, shift, with, item) {
                    return true;
                }
                // It is none in flight, so the sub-group has waited for it.
                if flights.is_of_product(with) && is_within(with) {
                    return true;
                }
                let is_plain =
                    touch.wrote && with.wrote && touch.strength.is_plain() && with.strength.is_plain();
                let at = cell * bytes;
                let equals = |written: &Written| {
                    let there = memory.get(at as usize..(at + bytes) as usize);
                    let from = at.checked_sub(offset);
                    from.is_some_and(|from| Some(written.part(from, bytes)) == there)
                };
                let found = is_plain && written.is_some_and(equals);
                same |= found;
                found
            });
            if let Some(with) = conflict {
                let is_within = is_within(&with);
                let race = self.race(own, Space::Shared, address, with);
                return Err(match is_within {
                    true => in_lockstep(race),
                    false => race,
                });
            }
            if touch.wrote && touch.strength.is_plain() && !checks.locations.is_empty() {
                forget_location(&mut checks.locations, cell, shift, history.writer());
            }
            history.record(&now, same, true);
            if touch.wrote {
                history.did = 0;
            }
            if same {
                let (array, _) = address::split(Space::Shared, address);
                let array = array.unwrap_or(0) as u64;
                checks.same_bits.add(place, array, Space::Shared, address, 1);
            }
        }
        Ok(())
    }

    pub(super) fn check_private(
        &mut self,
        own: AccessOf,
        address: u64,
        offset: u64,
        size: u32,
    ) -> Result<()> {
        let AccessOf { access, item, .. } = own;
        let start = item as usize * self.state.private.bytes() as usize + offset as usize;
        let Some(checks) = &mut self.checks else {
            return Ok(());
        };
        let written = &mut checks.private[start..start + size as usize];
        match access {
            Access::Read if written.iter().all(|&written| written) => Ok(()),
            Access::Read => Err(self.uninitialized(own, Space::Private, address)),
            _ => {
                written.fill(true);
                Ok(())
            }
        }
    }
}
