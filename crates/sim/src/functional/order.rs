//! Happens-before: the relation that distinguishes races from ordered accesses.
//!
//! It is that of the PTX memory model (PTX ISA, "Memory Consistency Model"), as far as a run that takes one step after
//! the other shows it. An access *happens before* another if
//!
//! - the same work-item makes it earlier; or
//! - all work-items of the group, those that met at a named barrier, or those of the sub-group that met, were at that
//!   barrier in between. A work-item that has ended counts as having reached every barrier of its group; or
//! - a *release* synchronises with an *acquire* in between: the release is an atomic write with release order, or a release
//!   fence followed by a strong write of the same work-item; the acquire is an atomic read with acquire order, or a strong read
//!   followed by an acquire fence of the same work-item. The read sees the release's write, or the result of a chain of atomic
//!   read-modify-write operations on it; a store outside the release breaks the chain, unless the work-item of the release
//!   makes it. *Strong* are atomic operations, and volatile accesses, which count as relaxed ones for the whole system. The
//!   fence, or else the operation, on either side must have a scope that includes the other's work-item: one for the work-group
//!   does not synchronise two work-groups; or
//! - there is a chain of those.
//!
//! Two further rules follow from the model's axioms on causality. A sequentially consistent device fence synchronises with a
//! later one if a strong write by one of its followers was seen by a predecessor of the later one, in particular across
//! barriers: all fence, a barrier, one draws a ticket, a barrier, all fence. And an event that was observed strongly happened,
//! itself, before the observer's later events: the work-item that draws the last ticket may reset the counter with a plain
//! store. The order of such fences among each other has no further effect here: no run shows it.
//!
//! Two accesses to the same memory *race* if one writes, neither happens before the other, and they are not *morally
//! strong*: both strong, of one size, the scope of each reaching the other's work-item. It does not matter which of
//! them ran first. Launches order everything: each begins with nothing to race with.
//!
//! If no work-group can see another's writes, because none uses results of atomic operations and none reads volatilely what
//! others write ([`super::atomics::depends_on_order`]), nothing orders work-groups. They run in parallel, each with records of
//! its own, and [`super::launch_shadow`] compares. Otherwise one thread runs them, switching when one waits for another
//! ([`super::schedule`]), with records that all share ([`super::histories`]).
//!
//! Each work-group counts its time in releases and barriers, so that an access is identified by work-item and time. A work-item
//! knows a time of each other one ([`Clock`]): that one's events until then happened before.

use super::clock::{self, Clock};
use super::lanes::Mask;
use super::shadow::{FastMap, Strength};
use crate::ir::{MemoryOrder, MemoryScope};

/// The orders and scopes that a kernel uses: they decide which records are needed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Scopes {
    /// Something orders for less than the device.
    pub narrow: bool,
}

/// Happens-before knowledge of the work-items of one work-group, beyond barriers.
#[derive(Debug)]
pub(super) struct Order {
    /// Bits of a work-item's number in its work-group.
    group_bits: u32,
    /// The number of the work-group's first work-item.
    first: u32,
    sub_group: u32,
    scopes: Scopes,
    /// Knowledge shared since the last barrier.
    base: Knowledge,
    /// Of work-items that know more, or have fenced or seen something.
    own: Vec<Option<Box<Own>>>,
}

#[derive(Clone, Debug, Default)]
struct Knowledge {
    /// Earlier events.
    known: Clock,
    /// Events before sequentially consistent device fences whose followers were seen.
    fenced: Clock,
}

#[derive(Clone, Debug, Default)]
struct Own {
    knowledge: Knowledge,
    /// Events before its last release fence, by the fence's scope.
    fences: [Clock; 3],
    /// Releases that it has read, which an acquire fence makes known.
    seen: Released,
}

/// The knowledge that comes with a value: the events before its releases, by their scope.
#[derive(Clone, Debug, Default)]
struct Released {
    /// Everybody.
    device: Clock,
    /// Those of a work-group or sub-group.
    parts: Vec<(Part, Clock)>,
}

/// Some of the launch's work-items.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Part {
    /// Those of the work-group with this first work-item.
    Group(u32),
    /// Those of the sub-group, the same.
    SubGroup(u32),
}

/// The knowledge attached to memory with strong operations, by address.
pub(super) type Locations = FastMap<Location>;

/// Such a piece of memory.
#[derive(Clone, Debug, Default)]
pub(super) struct Location {
    /// The knowledge that comes with its value.
    released: Released,
    fenced: Clock,
    /// Who wrote it, how.
    writer: Option<(u32, Strength)>,
    /// The last release here: by which work-item, and its knowledge.
    releaser: Option<(u32, Released)>,
    /// Who has seen the value there, and when.
    observers: Clock,
}

/// A strong operation.
#[derive(Clone, Copy, Debug)]
pub(super) struct Strong {
    pub order: MemoryOrder,
    pub scope: MemoryScope,
    pub strength: Strength,
    pub reads: bool,
    pub writes: bool,
}

impl Released {
    fn join(&mut self, other: &Released) {
        self.device.join(&other.device);
        for (part, clock) in &other.parts {
            self.part(*part).join(clock);
        }
    }

    fn part(&mut self, part: Part) -> &mut Clock {
        let at = match self.parts.binary_search_by_key(&part, |(part, _)| *part) {
            Ok(at) => at,
            Err(at) => {
                self.parts.insert(at, (part, Clock::default()));
                at
            }
        };
        &mut self.parts[at].1
    }

    fn is_empty(&self) -> bool {
        self.device.is_empty() && self.parts.is_empty()
    }
}

impl Order {
    /// Of the work-group with this first work-item; work-items have numbers of `bits` bits, `group_bits` in their group.
    pub(super) fn new(items: u32, bits: u32, group_bits: u32, sub_group: u32, scopes: Scopes) -> Order {
        let nothing = Knowledge {
            known: Clock::new(bits),
            fenced: Clock::new(bits),
        };
        Order {
            group_bits,
            first: 0,
            sub_group,
            scopes,
            base: nothing,
            own: vec![None; items as usize],
        }
    }

    /// Starts over as another work-group.
    pub(super) fn begin(&mut self, first: u32) {
        self.first = first;
        self.base.known = self.base.known.emptied();
        self.base.fenced = self.base.fenced.emptied();
        self.own.fill(None);
    }

    /// The knowledge of a work-item, by its number in the work-group.
    #[inline]
    pub(super) fn known(&self, local: u32) -> &Clock {
        let own = self.own[local as usize].as_ref();
        own.map_or(&self.base.known, |own| &own.knowledge.known)
    }

    fn own(&mut self, local: u32) -> &mut Own {
        let base = &self.base;
        self.own[local as usize].get_or_insert_with(|| {
            Box::new(Own {
                knowledge: base.clone(),
                ..Own::default()
            })
        })
    }

    /// The knowledge of a work-item, and its own events so far.
    fn snapshot(&mut self, local: u32, time: u32) -> Clock {
        let item = self.first + local;
        let mut clock = self.known(local).clone();
        clock.raise(item, time);
        clock
    }

    /// The parts of the launch that a work-item is in, and that an order of some scope reaches.
    fn parts(&self, local: u32, scope: MemoryScope) -> impl Iterator<Item = Part> + use<> {
        let group = Part::Group(self.first);
        let sub_group = Part::SubGroup(self.first + local - local % self.sub_group);
        let parts = [
            (MemoryScope::WorkGroup, group),
            (MemoryScope::SubGroup, sub_group),
        ];
        let is_narrow = self.scopes.narrow;
        let reached = parts
            .into_iter()
            .filter(move |(part, _)| is_narrow && scope >= *part);
        reached.map(|(_, part)| part)
    }

    fn release(&self, to: &mut Released, clock: &Clock, local: u32, scope: MemoryScope) {
        if scope == MemoryScope::Device {
            to.device.join(clock);
        }
        for part in self.parts(local, scope) {
            to.part(part).join(clock);
        }
    }

    /// Acquires the releases that reach the work-item, with this scope.
    fn acquire(&mut self, from: &Released, local: u32, scope: MemoryScope) {
        let parts: Vec<Part> = self.parts(local, MemoryScope::WorkGroup.min(scope)).collect();
        let known = &mut self.own(local).knowledge.known;
        if scope == MemoryScope::Device {
            known.join(&from.device);
        }
        for part in parts {
            if let Some((_, clock)) = from.parts.iter().find(|(other, _)| *other == part) {
                known.join(clock);
            }
        }
    }

    /// A work-item fences.
    pub(super) fn fence(&mut self, order: MemoryOrder, scope: MemoryScope, local: u32, time: u32) {
        let is_total = order == MemoryOrder::SequentiallyConsistent && scope == MemoryScope::Device;
        if order.acquires() {
            let seen = std::mem::take(&mut self.own(local).seen);
            self.acquire(&seen, local, scope);
            let own = self.own(local);
            // A wider fence may come, which more of it reaches.
            if scope < MemoryScope::Device {
                own.seen = seen;
            }
            if is_total {
                own.knowledge.known.join(&own.knowledge.fenced);
            }
        }
        if order.releases() {
            let now = self.snapshot(local, time);
            let own = self.own(local);
            if is_total {
                own.knowledge.fenced.join(&now);
            }
            own.fences[scope as usize] = now;
        }
    }

    /// A work-item operates strongly on a piece of memory.
    pub(crate) fn operate(&mut self, strong: Strong, at: &mut Location, local: u32, time: u32) {
        let item = self.first + local;
        // Other operations on the memory meanwhile broke the chain that they race with.
        let is_chained = at.writer.is_some_and(|(writer, strength)| {
            writer == item || self.reaches(local, strong.strength, writer, strength)
        });
        if strong.reads && is_chained {
            let own = self.own(local);
            own.seen.join(&at.released);
            own.knowledge.fenced.join(&at.fenced);
            if strong.order.acquires() {
                self.acquire(&at.released, local, strong.scope);
            }
        }
        if strong.writes || at.observers.is_empty() {
            at.observers = self.base.known.emptied();
        }
        if strong.reads {
            at.observers.raise(item, time);
        }
        if !strong.writes {
            return;
        }
        if !(strong.reads && is_chained) {
            at.released = Released::default();
            at.fenced = Clock::default();
        }
        if let Some((releaser, released)) = &at.releaser
            && *releaser == item
        {
            at.released.join(released);
        }
        if let Some(own) = &self.own[local as usize] {
            for (scope, fence) in MemoryScope::ALL.iter().zip(&own.fences) {
                if !fence.is_empty() {
                    self.release(&mut at.released, fence, local, *scope);
                }
            }
        }
        let knowledge = self.own[local as usize].as_ref();
        at.fenced
            .join(&knowledge.map_or(&self.base, |own| &own.knowledge).fenced);
        if strong.order.releases() {
            let now = self.snapshot(local, time);
            let mut released = Released::default();
            self.release(&mut released, &now, local, strong.scope);
            at.released.join(&released);
            at.releaser = Some((item, released));
        }
        at.writer = Some((item, strong.strength));
    }

    /// Whether a strong access of a work-item and one of another are morally strong.
    fn reaches(&self, local: u32, strength: Strength, other: u32, there: Strength) -> bool {
        let (item, bits) = (self.first + local, self.group_bits);
        let common = if u64::from(item ^ other) >> bits != 0 {
            MemoryScope::Device
        } else if local / self.sub_group != (other - self.first) / self.sub_group {
            MemoryScope::WorkGroup
        } else {
            MemoryScope::SubGroup
        };
        strength.is_morally_strong(there, common)
    }

    /// Whether a work-item has seen the last strong write to a place, itself or through others.
    pub(crate) fn has_seen(&self, at: &Location, local: u32) -> bool {
        let (item, known) = (self.first + local, self.known(local));
        at.observers.get(item) > 0 || at.observers.meets(known)
    }

    /// All work-items of the group have met, and share their knowledge and their own events so far.
    pub(super) fn barrier(&mut self, time: u32) {
        let mut base = std::mem::take(&mut self.base);
        for own in self.own.iter().flatten() {
            base.known.join(&own.knowledge.known);
            base.fenced.join(&own.knowledge.fenced);
        }
        base.known.raise_all(self.first, self.group_bits, time);
        for place in &mut self.own {
            if let Some(own) = place {
                match own.seen.is_empty() && own.fences.iter().all(Clock::is_empty) {
                    true => *place = None,
                    false => own.knowledge = base.clone(),
                }
            }
        }
        self.base = base;
    }

    /// The same of some of them: lanes of sub-groups, each with the number of its first work-item.
    pub(crate) fn meet(&mut self, who: &[(u32, Mask)], time: u32) {
        let members = || {
            who.iter()
                .flat_map(|&(first, lanes)| lanes.lanes().map(move |lane| first + lane as u32))
        };
        let mut all = self.base.clone();
        for local in members() {
            if let Some(own) = &self.own[local as usize] {
                all.known.join(&own.knowledge.known);
                all.fenced.join(&own.knowledge.fenced);
            }
        }
        for &(first, lanes) in who {
            if lanes == Mask::first(1 << clock::LEVEL) && first.is_multiple_of(1 << clock::LEVEL) {
                all.known.raise_all(self.first + first, clock::LEVEL, time);
                continue;
            }
            for lane in lanes.lanes() {
                all.known.raise(self.first + first + lane as u32, time);
            }
        }
        for local in members() {
            self.own(local).knowledge = all.clone();
        }
    }
}
