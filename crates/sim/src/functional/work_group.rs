//! A work-group: its memory, its copies in flight, its checks, and the effects of memory operations on them.

use super::address::{array_address, from_generic, to_generic};
use super::buffer::POISON;
use super::checks::{Checks, Global};
use super::fault;
use super::flights::Flights;
use super::histories::Histories;
use super::in_flight::{BulkCopy, Copies};
use super::lane_op::{LaneOp, LaneOpKind};
use super::lanes::{LANES, Lanes, Mask, Registers};
use super::matrix::Run;
use super::order::{Locations, Order};
use super::prefetched::Prefetches;
use super::printed::Prints;
use super::pure;
use super::shadow::{Cell, FastMap};
use super::state::LaunchState;
use super::written::SameBits;
use crate::ir::{ConvertOp, FloatRule, Id, Place, Space, line};
use crate::{Error, Result};

/// A work-group that runs. One is used for many groups, one after the other.
#[derive(Debug)]
pub struct WorkGroup<'l> {
    pub(super) state: &'l LaunchState<'l>,
    pub(super) number: u64,
    position: [u64; 3],
    pub(super) shared: Vec<u8>,
    pub(super) private: Vec<u8>,
    /// The copies in flight of each work-item, and how many it has started.
    pub(super) copies: Vec<Copies>,
    /// The bulk copies in flight.
    pub(super) bulk_copies: Vec<BulkCopy>,
    /// How often a lane has asked whether a phase has ended.
    pub(super) questions: u64,
    pub(super) checks: Option<Checks>,
    pub(super) traffic: Traffic,
    /// Counts writes that changed memory, if a lane may wait for one.
    pub(super) changes: u64,
    /// The values found by strong reads, if a lane may wait: their number, and a hash of places and values.
    pub(super) polls: Polls,
    pub(super) prints: Prints,
    /// How often clocks were read.
    pub(super) clock: u64,
    /// For how many something holds, and how many were asked, at the last barrier where that was the question.
    pub(super) asked: Option<(u32, u32)>,
}

/// The values found by strong reads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Polls {
    pub count: u64,
    pub digest: u64,
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

/// Those who run an operation.
#[derive(Clone, Copy, Debug)]
pub(super) struct Runners<'g> {
    pub sub_group: &'g SubGroup,
    /// Its active lanes.
    pub mask: Mask,
    /// Where the operation stands in the kernel.
    pub place: Place,
}

impl Runners<'_> {
    /// The first of its work-items.
    pub(super) fn first(&self) -> u32 {
        self.sub_group.work_item(self.mask.lanes().next().unwrap_or(0))
    }
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

    /// How many work-items it has.
    pub(crate) fn size(&self) -> usize {
        self.size as usize
    }

    /// The linear number in the work-group of a lane's work-item.
    #[inline]
    #[doc(hidden)]
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
                state.kernel.shown()
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
            bulk_copies: Vec::new(),
            questions: 0,
            checks: state.is_checking().then(|| Checks {
                time: 1,
                since: 0,
                first: 0,
                group_bits: state.group_bits,
                sub_group: state.sub_group_size,
                order: state.is_ordered.then(|| {
                    let (bits, group_bits) = (state.item_bits(), state.group_bits);
                    Order::new(items as u32, bits, group_bits, state.sub_group_size, state.scopes)
                }),
                locations: Locations::default(),
                shared: vec![Cell::default(); shared_cells as usize],
                targets: vec![0; shared_cells as usize],
                global: match state.in_order {
                    true => Global::Common(None),
                    false => Global::Own(FastMap::default()),
                },
                flights: match state.has_products {
                    true => Flights::new(state.sub_groups(), items, shared_cells),
                    false => Flights::default(),
                },
                sources: FastMap::default(),
                private: vec![false; private as usize],
                prefetches: Prefetches::default(),
                same_bits: SameBits::default(),
                meant: SameBits::default(),
                looked: 0,
            }),
            traffic: Traffic::default(),
            changes: 0,
            polls: Polls::default(),
            prints: Prints::default(),
            asked: None,
            clock: 0,
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
        self.bulk_copies.clear();
        self.questions = 0;
        if let Some(checks) = &mut self.checks {
            (checks.time, checks.since) = (1, 0);
            checks.first = match &mut checks.global {
                Global::Own(cells) => {
                    cells.clear();
                    0
                }
                Global::Common(_) => (number << self.state.group_bits) as u32,
            };
            if let Some(order) = &mut checks.order {
                order.begin(checks.first);
            }
            checks.shared.fill(Cell::default());
            checks.locations.clear();
            checks.targets.fill(0);
            checks.flights.begin();
            checks.sources.clear();
            checks.private.fill(false);
            checks.prefetches.clear();
            checks.same_bits = SameBits::default();
            checks.meant = SameBits::default();
            checks.looked = 0;
        }
        self.traffic = Traffic::default();
        self.prints = Prints::default();
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
            checks.since = checks.time;
            if let Some(order) = &mut checks.order {
                order.barrier(checks.time);
            }
            checks.tick();
        }
    }

    /// These lanes of these sub-groups have met: each of their work-items sees the earlier accesses.
    pub(super) fn met(&mut self, who: &[(&SubGroup, Mask)]) {
        if let Some(checks) = &mut self.checks {
            if let Some(order) = &mut checks.order {
                let who: Vec<(u32, Mask)> = who.iter().map(|&(group, lanes)| (group.first, lanes)).collect();
                order.meet(&who, checks.time);
            }
            checks.tick();
        }
    }

    /// How many of its writes changed memory, if a lane may wait for one.
    pub(crate) fn changes(&self) -> u64 {
        self.changes
    }

    /// A strong read found these bits.
    #[inline]
    pub(super) fn polled(&mut self, address: u64, bits: u64) {
        if self.state.may_spin {
            self.polls.count += 1;
            let found = (address ^ bits.rotate_left(32)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
            self.polls.digest = self.polls.digest.rotate_left(5) ^ found;
        }
    }

    /// The common state of all work-groups goes to the one that runs next.
    pub(super) fn take_histories(&mut self) -> Option<Box<Histories>> {
        match &mut self.checks.as_mut()?.global {
            Global::Common(histories) => histories.take(),
            Global::Own(_) => None,
        }
    }

    /// The other way.
    pub(super) fn give_histories(&mut self, given: Option<Box<Histories>>) {
        if let Some(checks) = &mut self.checks
            && let Global::Common(histories) = &mut checks.global
        {
            *histories = given;
        }
    }

    /// Bytes of memory that it takes, records of global memory not counted.
    pub(super) fn bytes(&self) -> u64 {
        let records = self.checks.as_ref().map_or(0, |checks| {
            (checks.shared.len() * size_of::<Cell>() + checks.private.len() + checks.targets.len() * 4) as u64
        });
        (self.shared.len() + self.private.len()) as u64 + records
    }

    /// All work-items have ended.
    ///
    /// # Errors
    /// Some of them should have done something together, and did not.
    pub(super) fn end(&mut self) -> Result<()> {
        self.check_joint_ends()?;
        self.check_products_together()?;
        self.check_bulk_copies()?;
        self.state
            .printed
            .add(self.number, std::mem::take(&mut self.prints));
        if let Some(checks) = &mut self.checks {
            if let Global::Own(cells) = &checks.global {
                self.state.shadow.merge(self.number, cells);
                self.state.add_looked(self.number, checks.looked);
            }
            self.state.add_same_bits(&mut checks.same_bits);
            self.state.add_meant(&mut checks.meant);
        }
        Ok(())
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
        if self.checks.is_some() {
            self.check_no_wrap(op, registers, sub_group, mask)?;
        }
        if op.rule != FloatRule::EXACT {
            pure::execute_ruled(op.rule, &op.kind, registers);
            return Ok(());
        }
        if pure::execute(&op.kind, registers) {
            return Ok(());
        }
        let by = Runners {
            sub_group,
            mask,
            place: op.place,
        };
        match op.kind {
            LaneOpKind::Id { to, id } => {
                registers.set(to, &self.id(id, sub_group));
                Ok(())
            }
            LaneOpKind::ArrayAddress { to, array } => {
                registers.broadcast(to, array_address(array));
                Ok(())
            }
            LaneOpKind::Shuffle { .. }
            | LaneOpKind::Vote { .. }
            | LaneOpKind::Reduce { .. }
            | LaneOpKind::MeetSubGroup { .. } => self.together(op, registers, by),
            LaneOpKind::GroupVote { op: vote, to, value } => {
                // In timing mode no other lane was asked.
                let own = (registers.truth(value, mask).count(), mask.count());
                let (holding, all) = self.asked.unwrap_or(own);
                registers.broadcast(to, vote.of(holding, all));
                Ok(())
            }
            LaneOpKind::Active { to } => {
                registers.broadcast(to, mask.0);
                Ok(())
            }
            LaneOpKind::Print { ref text, ref values } => {
                for lane in mask.lanes() {
                    let bits = values.iter().map(|&(ty, slot)| (ty, registers.get(slot)[lane]));
                    let line = line::written(text, &bits.collect::<Vec<_>>());
                    let limits = &self.state.launch.print_limits;
                    self.prints.add(sub_group.work_item(lane), line, limits);
                }
                Ok(())
            }
            LaneOpKind::Opaque {
                ref to,
                ref what,
                ref values,
            } => {
                let run = Run { to, values, by };
                self.opaque(what, &run, registers)
            }
            LaneOpKind::Convert {
                op: convert,
                from,
                into,
                to,
                a,
            } => {
                let space = from.space().unwrap_or(Space::Global);
                registers.map(to, [a], |[address]| match convert {
                    ConvertOp::ToGeneric => to_generic(space, address),
                    _ => from_generic(address).1,
                });
                debug_assert!(into.is_pointer());
                Ok(())
            }
            _ => self.access_memory(op, registers, by),
        }
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
}
