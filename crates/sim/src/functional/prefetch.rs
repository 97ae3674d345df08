//! Prefetches: they move nothing here, but have rules, and a fence may undo them.
//!
//! A prefetch goes to global memory; one to L1 stays inside its buffer, for outside some devices fault; one that a
//! sub-group or work-group asks for together is reached by all its work-items, with the same pointer and count.
//!
//! A fence of the device may empty the L1 of the core. A load of a line that was prefetched to L1 before such a fence, and
//! not read since, has lost its prefetch: that is no error, but a note of the launch.

use super::address::from_generic;
use super::fault::{self, Access};
use super::lane_op::{LaneOp, LaneOpKind};
use super::lanes::{Mask, Registers};
use super::options::PrefetchBounds;
use super::prefetched::{Call, Calls, CutOff};
use super::work_group::{SubGroup, WorkGroup};
use crate::ir::{CacheLevel, MemoryScope, Place, PrefetchScope, Space};
use crate::violation::Violation;
use crate::{Error, Result};

/// Bytes of the lines in which lost prefetches are reported, as a power of two: the smallest that devices have.
const LINE_BITS: u32 = 6;

/// Calls of one joint prefetch that are kept until all sub-groups have made them; more are not compared.
const MOST_CALLS: usize = 1 << 20;

/// The most lines that are followed of one prefetch, and in all.
const MOST_LINES: u64 = 1 << 10;
const MOST_FOLLOWED: usize = 1 << 20;

impl WorkGroup<'_> {
    /// Checks a prefetch of the lanes of `mask`, and records the prefetched lines.
    ///
    /// # Errors
    /// A rule is broken: which, and the values that break it.
    pub(super) fn prefetch(
        &mut self,
        op: &LaneOp,
        registers: &Registers,
        sub_group: &SubGroup,
        mask: Mask,
    ) -> Result<()> {
        if mask.is_empty() {
            return Ok(());
        }
        let place = op.place;
        let LaneOpKind::Prefetch {
            ptr,
            bytes,
            count,
            space,
            level,
            scope,
            ..
        } = op.kind
        else {
            return Err(Error::bug("an operation that is no prefetch"));
        };
        let addresses = registers.get(ptr);
        let counts = count.map(|count| registers.get(count));
        let count = |lane: usize| counts.map_or(1, |counts| counts[lane]);
        if self.checks.is_some() {
            if space == Space::Generic {
                self.check_space(addresses, sub_group, mask, place)?;
            }
            if scope.is_joint() {
                self.check_joint(scope, addresses, &count, sub_group, mask, place)?;
            }
        }
        let bounded = match self.state.options.prefetch_bounds {
            PrefetchBounds::Free => false,
            PrefetchBounds::L1 => level == CacheLevel::L1,
            PrefetchBounds::All => true,
        };
        for lane in mask.lanes() {
            let bytes = count(lane).saturating_mul(u64::from(bytes));
            if bytes == 0 {
                continue;
            }
            if bounded {
                let item = sub_group.work_item(lane);
                self.check_bounds(addresses[lane], bytes, item, place)?;
            }
            if self.state.follows_prefetches && level == CacheLevel::L1 {
                self.follow(addresses[lane], bytes, sub_group, place);
            }
            if scope.is_joint() {
                break;
            }
        }
        Ok(())
    }

    fn check_space(&self, addresses: &[u64], sub_group: &SubGroup, mask: Mask, place: Place) -> Result<()> {
        for lane in mask.lanes() {
            let (space, address) = from_generic(addresses[lane]);
            if space != Space::Global {
                let (region, offset) = self.region(space, address);
                let what = format!(
                    "{} prefetches {} through a generic pointer, which is in {space} memory",
                    self.describe(sub_group.work_item(lane)),
                    region.element(offset)
                );
                return Err(fault::error(self.state.kernel, place, Violation::Misused(what))
                    .accepted("a generic pointer that is prefetched leads to global memory"));
            }
        }
        Ok(())
    }

    fn check_bounds(&self, address: u64, bytes: u64, item: u32, place: Place) -> Result<()> {
        // Sizes beyond 32 bits end behind every buffer's end anyway.
        let last = address.saturating_add(bytes - 1);
        let look_up = |address| {
            let (_, address) = self.state.resolve(Space::Global, address);
            self.global(Access::Prefetch.of(item, place), address, 1)
        };
        let inside = look_up(address).and_then(|_| look_up(last));
        inside.map(|_| ()).map_err(|error| {
            let one = self.state.options.prefetch_bounds == PrefetchBounds::L1;
            match one {
                true => {
                    error.accepted("a prefetch to L1 stays in bounds: guard it, or prefetch to L2, L3 or L4")
                }
                false => error,
            }
        })
    }

    /// A prefetch of a sub-group or work-group: all are here, and want the same.
    fn check_joint(
        &mut self,
        scope: PrefetchScope,
        addresses: &[u64],
        count: &impl Fn(usize) -> u64,
        sub_group: &SubGroup,
        mask: Mask,
        place: Place,
    ) -> Result<()> {
        let whole = scope == PrefetchScope::WorkGroup;
        if let Some(missing) = sub_group.mask().without(mask).lanes().next() {
            let lane = mask.lanes().next().unwrap_or(0);
            let what = format!(
                "{} reaches a joint prefetch of its {} without work-item {}",
                self.describe(sub_group.work_item(lane)),
                if whole { "work-group" } else { "sub-group" },
                sub_group.work_item(missing)
            );
            return Err(fault::error(self.state.kernel, place, Violation::Apart(what))
                .accepted("all work-items of the group reach it together, and none has ended before"));
        }
        let call = |lane: usize| Call {
            address: addresses[lane],
            count: count(lane),
            item: sub_group.work_item(lane),
        };
        let first = call(0);
        for lane in mask.lanes() {
            self.check_same(first, call(lane), whole, place)?;
        }
        if whole {
            self.check_group_call(first, sub_group, place)?;
        }
        Ok(())
    }

    /// Two work-items want the same.
    fn check_same(&self, first: Call, other: Call, whole: bool, place: Place) -> Result<()> {
        let what = if first.address != other.address {
            let of = |call: Call| self.state.element(from_generic(call.address).1);
            format!("{} and {} for work-item {}", of(first), of(other), other.item)
        } else if first.count != other.count {
            format!(
                "a count of {} and {} for work-item {}",
                first.count, other.count, other.item
            )
        } else {
            return Ok(());
        };
        let what = format!(
            "a joint prefetch of a {} differs between its work-items: {what}; {} asks for the first",
            if whole { "work-group" } else { "sub-group" },
            self.describe(first.item)
        );
        Err(fault::error(self.state.kernel, place, Violation::Apart(what))
            .accepted("pointer and count are the same for all work-items of the group"))
    }

    /// The sub-groups of a work-group make the same calls in the same order.
    fn check_group_call(&mut self, call: Call, sub_group: &SubGroup, place: Place) -> Result<()> {
        let sub_groups = self.state.sub_groups() as usize;
        let Some(checks) = &mut self.checks else {
            return Ok(());
        };
        let calls = checks
            .prefetches
            .joint
            .entry(u64::from(place.as_u32()))
            .or_default();
        calls.made.resize(sub_groups, 0);
        let number = calls.made[sub_group.number() as usize];
        calls.made[sub_group.number() as usize] += 1;
        let known = usize::try_from(number.saturating_sub(calls.first)).unwrap_or(usize::MAX);
        let first = match calls.calls.get(known) {
            Some(&first) => first,
            None if calls.calls.len() < MOST_CALLS && known == calls.calls.len() => {
                calls.calls.push_back(call);
                call
            }
            None => {
                calls.is_incomplete = true;
                return Ok(());
            }
        };
        let done = calls.made.iter().copied().min().unwrap_or(0);
        while calls.first < done && calls.calls.pop_front().is_some() {
            calls.first += 1;
        }
        self.check_same(first, call, true, place)
    }

    /// All work-items have ended: each prefetch of the work-group was reached by all of them.
    ///
    /// # Errors
    /// One was not.
    pub(super) fn check_joint_ends(&self) -> Result<()> {
        let Some(checks) = &self.checks else { return Ok(()) };
        let mut places: Vec<(&u64, &Calls)> = checks.prefetches.joint.iter().collect();
        places.sort_unstable_by_key(|(place, _)| **place);
        for (&place, calls) in places {
            let most = calls.made.iter().copied().max().unwrap_or(0);
            let reached = calls.made.iter().position(|&made| made == most);
            let missing = calls.made.iter().position(|&made| made < most);
            if let (Some(reached), Some(missing)) = (reached, missing) {
                let item = |number: usize| self.sub_group(number as u32).work_item(0);
                let what = format!(
                    "{} reaches a joint prefetch of its work-group {most} times, work-item {} {} times",
                    self.describe(item(reached)),
                    item(missing),
                    calls.made[missing]
                );
                return Err(fault::error(
                    self.state.kernel,
                    Place::from_u32(place as u32),
                    Violation::Apart(what),
                )
                .accepted("all work-items of the group reach it"));
            }
        }
        Ok(())
    }

    /// Records the lines that a prefetch to L1 brought.
    fn follow(&mut self, address: u64, bytes: u64, sub_group: &SubGroup, place: Place) {
        let Some(checks) = &mut self.checks else { return };
        let own = sub_group.number();
        let fences = checks
            .prefetches
            .fences
            .get(own as usize)
            .map_or(0, |fences| fences.0);
        let address = from_generic(address).1;
        let (first, last) = (
            address >> LINE_BITS,
            address.saturating_add(bytes - 1) >> LINE_BITS,
        );
        for line in (first..=last).take(MOST_LINES as usize) {
            let lines = &mut checks.prefetches.lines;
            if lines.len() < MOST_FOLLOWED || lines.contains_key(&line) {
                lines.insert(line, (own, fences, place));
            }
        }
    }

    /// A sub-group passes a fence.
    pub(super) fn pass_fence(&mut self, scope: MemoryScope, sub_group: &SubGroup, place: Place) {
        if scope != MemoryScope::Device || !self.state.follows_prefetches {
            return;
        }
        if let Some(checks) = &mut self.checks {
            let fences = &mut checks.prefetches.fences;
            fences.resize(fences.len().max(sub_group.number() as usize + 1), (0, place));
            let own = &mut fences[sub_group.number() as usize];
            *own = (own.0 + 1, place);
        }
    }

    /// A load of global memory: notes prefetches that a fence undid.
    pub(super) fn use_prefetched(&mut self, addresses: &[u64], mask: Mask, place: Place) {
        let Some(checks) = &mut self.checks else { return };
        for lane in mask.lanes() {
            let (space, address) = from_generic(addresses[lane]);
            if space != Space::Global {
                continue;
            }
            let Some((by, passed, prefetch)) = checks.prefetches.lines.remove(&(address >> LINE_BITS)) else {
                continue;
            };
            let now = checks.prefetches.fences.get(by as usize);
            if let Some(&(_, fence)) = now.filter(|(now, _)| *now > passed) {
                self.state.note(CutOff {
                    prefetch,
                    fence,
                    load: place,
                });
            }
        }
    }
}
