//! The reports of failed checks.

use super::address;
use super::fault::{self, AccessOf, Item, Region};
use super::in_flight::CopyInFlight;
use super::lanes::Mask;
use super::shadow::Touch;
use super::work_group::{Runners, SubGroup, WorkGroup};
use crate::Error;
use crate::ir::{Array, Place, ShuffleOp, Space, Type};
use crate::violation::{Racing, Violation, WorkItem};

/// A work-item that waits for others of its sub-group.
#[derive(Clone, Copy, Debug)]
pub(super) struct PartyMember {
    /// Its number in the work-group.
    pub item: u32,
    /// Where it waits.
    pub place: Place,
    /// The lanes that it is for, if a mask says that.
    pub mask: Option<u32>,
}

/// Whether an error of a run is that of a sub-group that has run its limit of operations, and may end later.
#[doc(hidden)]
pub fn has_not_ended(error: &Error) -> bool {
    matches!(error.cause(), Some(Violation::NotEnded { .. }))
}

impl WorkGroup<'_> {
    pub(super) fn describe(&self, item: u32) -> WorkItem {
        let item = Item {
            group: self.number,
            local: item,
        };
        fault::describe_item(self.state.launch, item)
    }

    /// The buffer or array an address is meant for, and the offset in it.
    pub(super) fn region(&self, space: Space, address: u64) -> (Region, i64) {
        self.known_region(space, address).unwrap_or_else(|| {
            let name = format!("{space} memory");
            (
                Region {
                    name,
                    element: Type::I8,
                    bytes: 0,
                },
                address as i64,
            )
        })
    }

    /// The same; none if the address is meant for no buffer or array.
    fn known_region(&self, space: Space, address: u64) -> Option<(Region, i64)> {
        let (number, offset) = address::split(space, address);
        let region = match space {
            Space::Global | Space::Generic => number
                .and_then(|number| self.state.buffers.get(number))
                .map(|bound| bound.region.clone()),
            Space::Shared | Space::Private => number
                .and_then(|number| u32::try_from(number).ok())
                .map(Array::from_u32)
                .and_then(|array| self.state.kernel.arrays.get(array))
                .filter(|array| array.space == space)
                .map(|array| Region {
                    name: array.name.clone(),
                    element: array.element,
                    bytes: array.bytes(),
                }),
        };
        Some((region?, offset))
    }

    #[cold]
    pub(super) fn out_of_bounds(&self, of: AccessOf, space: Space, address: u64, size: u32) -> Error {
        let AccessOf { access, item, place } = of;
        let (who, does) = (self.describe(item), access.verb());
        let violation = match self.known_region(space, address) {
            None => Violation::Nowhere {
                who,
                does,
                bytes: size,
                address: self.state.shown(address),
                of_array: !matches!(space, Space::Global | Space::Generic),
                at: place.as_u32(),
            },
            Some((region, offset)) => Violation::OutOfBounds {
                who,
                does,
                element: region.element(offset),
                length: region.length(),
                memory: region.name,
            },
        };
        fault::error(self.state.kernel, place, violation)
    }

    #[cold]
    pub(super) fn misaligned(&self, of: AccessOf, space: Space, address: u64, size: u32) -> Error {
        let AccessOf { access, item, place } = of;
        let (region, offset) = self.region(space, address);
        let violation = Violation::Misaligned {
            who: self.describe(item),
            does: access.verb(),
            bytes: size,
            memory: region.name,
            offset,
        };
        fault::error(self.state.kernel, place, violation)
    }

    #[cold]
    pub(super) fn uninitialized(&self, of: AccessOf, space: Space, address: u64) -> Error {
        let AccessOf { access, item, place } = of;
        let (region, offset) = self.region(space, address);
        let violation = Violation::NeverWritten {
            who: self.describe(item),
            does: access.verb(),
            element: region.element(offset),
        };
        fault::error(self.state.kernel, place, violation)
    }

    #[cold]
    pub(super) fn race(&self, of: AccessOf, space: Space, address: u64, with: Touch) -> Error {
        let AccessOf { access, item, place } = of;
        let (region, offset) = self.region(space, address);
        let bits = self.state.group_bits;
        let (group, local) = match self.state.in_order {
            true => (
                u64::from(with.item) >> bits,
                (u64::from(with.item) & ((1 << bits) - 1)) as u32,
            ),
            false => (self.number, with.item),
        };
        let is_own = group == self.number;
        let race = Violation::Race {
            who: self.describe(item),
            does: access.verb(),
            element: region.element(offset),
            with: match is_own {
                true => Racing::Neighbour(local),
                false => Racing::OtherGroup(fault::describe_item(self.state.launch, Item { group, local })),
            },
            did: if with.wrote { "wrote" } else { "read" },
            there: self.state.kernel.describe_place(with.place),
        };
        let error = fault::error(self.state.kernel, place, race);
        match is_own {
            true => error,
            false => error.accepted(
                "a release behind the first and an acquire in front of the second, both for the device, or a launch \
                 for each",
            ),
        }
    }

    #[cold]
    pub(super) fn in_flight(
        &self,
        AccessOf { access, item, place }: AccessOf,
        address: u64,
        offset: u64,
        size: u32,
        owner: u32,
    ) -> Error {
        let (region, element) = self.region(Space::Shared, address);
        let overlaps = |copy: &&CopyInFlight| {
            copy.target < offset + u64::from(size) && offset < copy.target + u64::from(copy.bytes)
        };
        let started = self.copies[owner as usize].in_flight.iter().find(overlaps);
        let started = started.map_or(place, |copy| copy.place);
        let whose = match owner == item {
            true => "its".to_owned(),
            false => format!("work-item {owner}'s"),
        };
        let what = format!(
            "{} {} {} while {whose} asynchronous copy to it is in flight, started at {} and not waited for",
            self.describe(item),
            access.verb(),
            region.element(element),
            self.state.kernel.describe_place(started)
        );
        fault::error(self.state.kernel, place, Violation::InFlight(what))
    }

    /// A sub-group has run longer than the limit.
    #[cold]
    pub(super) fn endless(&self, sub_group: &SubGroup, alive: Mask, limit: u64, place: Place) -> Error {
        let lane = alive.lanes().next().unwrap_or(0);
        let violation = Violation::NotEnded {
            who: self.describe(sub_group.work_item(lane)),
            operations: limit,
        };
        fault::error(self.state.kernel, place, violation).accepted(
            "if the loop does end, raise the limit: `--max-steps`, or `operation_limit` of a launch",
        )
    }

    /// A work-item waits in a loop for an event that cannot happen.
    #[cold]
    pub(super) fn waits_for_ever(&self, item: u32, place: Place, others: Option<String>) -> Error {
        let accepted = match others {
            None => {
                "a loop that another work-item ends, which is not of its sub-group and gets to the place where it does"
            }
            Some(_) => "work-groups that wait for each other must be resident together: launch fewer",
        };
        let who = self.describe(item);
        fault::error(self.state.kernel, place, Violation::WaitsForEver { who, others }).accepted(accepted)
    }

    /// The kernel ends the launch itself.
    #[cold]
    pub(super) fn trapped(&self, sub_group: &SubGroup, active: Mask, place: Place) -> Error {
        let lane = active.lanes().next().unwrap_or(0);
        let violation = Violation::Trapped {
            who: self.describe(sub_group.work_item(lane)),
            assertion: None,
        };
        fault::error(self.state.kernel, place, violation)
    }

    /// Some lanes reach a barrier and `missing` goes another way.
    #[cold]
    pub(super) fn divergent_barrier(&self, reached: Runners<'_>, missing: usize) -> Error {
        let what = format!(
            "{} reaches a barrier that work-item {} does not reach with it",
            self.describe(reached.first()),
            reached.sub_group.work_item(missing)
        );
        let place = reached.place;
        fault::error(self.state.kernel, place, Violation::Apart(what))
            .accepted("all work-items of a work-group that have not ended must reach it")
    }

    /// A barrier that `item` waits at would have to be reached by `missing`, which has ended.
    #[cold]
    pub(super) fn ended_before_barrier(&self, item: u32, missing: u32, place: Place) -> Error {
        let what = format!(
            "{} reaches a barrier that work-item {missing} does not reach: it has ended",
            self.describe(item)
        );
        fault::error(self.state.kernel, place, Violation::Apart(what)).accepted(
            "on this device all work-items of a work-group must reach it; only NVIDIA's since Volta do without those that have \
             ended",
        )
    }

    /// Some lanes run a shuffle or vote without `missing`.
    #[cold]
    pub(super) fn divergent_collective(&self, what: &str, by: Runners<'_>, missing: usize) -> Error {
        let what = format!(
            "{} runs a {what} of its sub-group without work-item {}",
            self.describe(by.first()),
            by.sub_group.work_item(missing)
        );
        let place = by.place;
        fault::error(self.state.kernel, place, Violation::Apart(what))
            .accepted("all work-items of a sub-group run it together, and none has ended before")
    }

    /// A lane runs an operation of a party that it is not in.
    #[cold]
    pub(super) fn outside_its_party(&self, what: &str, item: u32, mask: u32, place: Place) -> Error {
        let what = format!(
            "{} runs a {what} with the mask {mask:#010x}, which does not name it",
            self.describe(item)
        );
        fault::error(self.state.kernel, place, Violation::Apart(what))
            .accepted("a work-item that runs it must be in its mask")
    }

    /// A lane takes a value from one that gives none.
    #[cold]
    pub(super) fn shuffled_from_absent(&self, item: u32, from: usize, place: Place) -> Error {
        let what = format!(
            "{} shuffles from lane {from}, which has ended or is not in its mask",
            self.describe(item)
        );
        fault::error(self.state.kernel, place, Violation::Apart(what))
            .accepted("the number of one that its mask names and that runs the shuffle with it")
    }

    /// A deadlock inside a sub-group: `waiting` runs an operation with a mask that names `missing`, which waits elsewhere.
    #[cold]
    pub(super) fn party_incomplete(&self, what: &str, waiting: PartyMember, missing: PartyMember) -> Error {
        let mask = waiting.mask.unwrap_or_default();
        let there = self.state.kernel.describe_place(missing.place);
        let elsewhere = match missing.mask {
            Some(other) => format!("waits at {there} with the mask {other:#010x}"),
            None => format!("waits at {there}"),
        };
        let what = format!(
            "{} runs a {what} with the mask {mask:#010x}, which names work-item {}, and that one {elsewhere}",
            self.describe(waiting.item),
            missing.item
        );
        fault::error(self.state.kernel, waiting.place, Violation::Apart(what)).accepted(
            "all work-items that the mask names and that have not ended run an operation of the same kind with the same mask",
        )
    }

    /// A block's elements do not follow each other: one of the work-items has another one.
    #[cold]
    pub(super) fn scattered_block(
        &self,
        what: &str,
        item: u32,
        [first, own]: [u64; 2],
        place: Place,
    ) -> Error {
        let element = |address| {
            let (region, offset) = self.region(Space::Global, address);
            region.element(offset)
        };
        let what = format!(
            "{} takes {} in a {what} of its sub-group that begins at {}",
            self.describe(item),
            element(own),
            element(first)
        );
        fault::error(self.state.kernel, place, Violation::Misused(what))
            .accepted("the same first element for all work-items of the sub-group; each has the one behind its neighbour's")
    }

    /// A block does not begin where devices want it to.
    #[cold]
    pub(super) fn misaligned_block(
        &self,
        what: &str,
        item: u32,
        first: u64,
        align: u64,
        place: Place,
    ) -> Error {
        let (region, offset) = self.region(Space::Global, first);
        let what = format!(
            "{} begins a {what} of its sub-group at byte {offset} of `{}`, which is not a multiple of {align}",
            self.describe(item),
            region.name
        );
        fault::error(self.state.kernel, place, Violation::Misused(what))
            .accepted("block loads begin at a multiple of 4 bytes, block stores at one of 16")
    }

    /// A shuffle names a lane that no sub-group has.
    #[cold]
    pub(super) fn shuffled_too_far(
        &self,
        item: u32,
        op: ShuffleOp,
        by: u64,
        most: u32,
        place: Place,
    ) -> Error {
        let what = format!(
            "{} shuffles {} {by}",
            self.describe(item),
            match op {
                ShuffleOp::Index => "from",
                ShuffleOp::Up => "up by",
                ShuffleOp::Down => "down by",
                ShuffleOp::Xor => "by the bits of",
            }
        );
        fault::error(self.state.kernel, place, Violation::Misused(what))
            .accepted(format!("a number below {most}"))
    }

    /// Fewer sub-groups come to a named barrier than it waits for.
    #[cold]
    pub(super) fn lonely_meeting(&self, item: u32, number: u32, wanted: u32, place: Place) -> Error {
        let what = format!(
            "{} waits at barrier {number} for {wanted} sub-groups, and no others will come",
            self.describe(item)
        );
        fault::error(self.state.kernel, place, Violation::Apart(what))
            .accepted("as many sub-groups of the work-group must reach a named barrier as it says")
    }

    /// Two sub-groups at a named barrier wait for different numbers of them.
    #[cold]
    pub(super) fn different_meetings(&self, item: u32, other: u32, number: u32, place: Place) -> Error {
        let what = format!(
            "{} and work-item {other} wait at barrier {number} for different numbers of sub-groups",
            self.describe(item)
        );
        fault::error(self.state.kernel, place, Violation::Apart(what))
            .accepted("the same number for all work-items that meet there")
    }

    /// Two sub-groups wait at different barriers.
    #[cold]
    pub(super) fn different_barriers(&self, item: u32, place: Place, other: u32, there: Place) -> Error {
        let what = format!(
            "{} waits at a barrier while work-item {other} waits at another, at {}",
            self.describe(item),
            self.state.kernel.describe_place(there)
        );
        fault::error(self.state.kernel, place, Violation::Apart(what))
            .accepted("all work-items of a work-group that have not ended must reach the same")
    }
}
