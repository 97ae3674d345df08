//! Products of warp groups in flight: the registers and the shared memory that they use meanwhile.
//!
//! ```text
//! wgmma.fence                 what the program wrote to registers may be used
//! wgmma.mma_async … (twice)   in flight: the results may be used by further products alone, and no lane may write the factors
//! wgmma.commit_group          the two are a group
//! wgmma.wait_group 0          all groups have ended
//! ```
//!
//! Products read shared memory through another proxy than other instructions do: what those wrote must have been made known to it
//! by `fence.proxy.async`, of the writer, or of any lane behind a barrier. Asynchronous copies (`cp.async`) are left out:
//! compilers put no such fence behind them.

use std::collections::VecDeque;

use super::access::cells;
use super::fault::{self, AccessOf};
use super::lane_op::{LaneOp, LaneOpKind};
use super::lanes::{Mask, Slot};
use super::matrix::Run;
use super::matrix::group::instruction::{Product, SUB_GROUPS};
use super::shadow::{FastMap, Touch, did};
use super::work_group::{SubGroup, WorkGroup};
use crate::ir::{ConvertOp, Kernel, OpKind, Place, Space};
use crate::violation::Violation;
use crate::{Error, Result};

/// Bytes of shared memory that a product reads at once.
const PIECE: u32 = 16;

/// The products of a work-group in flight.
#[derive(Debug, Default)]
pub(super) struct Flights {
    /// By sub-group; none if the kernel has no products.
    own: Vec<Flight>,
    /// For each cell of shared memory, how many products read it.
    reading: Vec<u32>,
    /// For each work-item, when it made its writes known to the other proxy.
    fenced: Vec<u32>,
    /// Up to which barrier all lanes' writes are known to it: one behind which a lane fenced.
    fenced_for_all: u32,
    /// The products of the kernel that have been started.
    places: Vec<Place>,
}

/// Those of a sub-group.
#[derive(Clone, Debug, Default)]
pub(super) struct Flight {
    /// Whether `wgmma.fence` has been run.
    pub has_fenced: bool,
    started: u64,
    ended: u64,
    /// How many had been started at the end of each group that was not waited for.
    groups: VecDeque<u64>,
    /// The shared memory that each reads: its number, where it stands, and offsets of [`PIECE`]s.
    reads: VecDeque<(u64, Place, Vec<u64>)>,
    /// The registers that each is to give, by slot: its number, and where it stands.
    results: FastMap<(u64, Place)>,
}

impl Flight {
    /// The products so far are a group.
    pub(crate) fn commit(&mut self) {
        self.groups.push_back(self.started);
    }
}

/// Whether a kernel has products of warp groups.
pub(super) fn has_products(kernel: &Kernel) -> bool {
    let mut found = false;
    kernel.body.walk(&mut |op| {
        found |= matches!(&op.kind, OpKind::Opaque(what, _) if what.does.is_of_warp_group());
    });
    found
}

impl Flights {
    /// For a work-group with this many sub-groups, work-items and cells of shared memory.
    pub(crate) fn new(sub_groups: u32, items: u64, cells: u64) -> Flights {
        Flights {
            own: vec![Flight::default(); sub_groups as usize],
            reading: vec![0; cells as usize],
            fenced: vec![0; items as usize],
            ..Flights::default()
        }
    }

    /// Starts over, as another work-group.
    pub(crate) fn begin(&mut self) {
        self.own.fill(Flight::default());
        self.reading.fill(0);
        self.fenced.fill(0);
        self.fenced_for_all = 0;
    }

    /// Whether a product in flight reads a cell.
    #[inline]
    pub(crate) fn reads(&self, cell: u64) -> bool {
        self.reading.get(cell as usize).is_some_and(|&count| count != 0)
    }

    /// Where one stands that reads a cell.
    fn reader(&self, cell: u64, shift: u32) -> Option<Place> {
        let all = self.own.iter().flat_map(|flight| &flight.reads);
        let reads = |offset: &u64| cells(*offset, PIECE, shift).contains(&cell);
        let mut reading = all.filter(|(.., offsets)| offsets.iter().any(reads));
        reading.next().map(|&(_, place, _)| place)
    }

    /// Whether an access is a product's, which all work-items of its sub-group have waited for.
    #[inline]
    pub(crate) fn is_of_product(&self, touch: &Touch) -> bool {
        !touch.wrote && self.places.contains(&touch.place)
    }

    /// Work-items make their writes known to the other proxy.
    pub(crate) fn fence(&mut self, items: impl Iterator<Item = u32>, (since, time): (u32, u32)) {
        for item in items {
            if let Some(fenced) = self.fenced.get_mut(item as usize) {
                *fenced = time;
            }
        }
        self.fenced_for_all = self.fenced_for_all.max(since);
    }

    fn knows(&self, item: u32, time: u32) -> bool {
        let own = self.fenced.get(item as usize).copied().unwrap_or(u32::MAX);
        time <= own || time <= self.fenced_for_all
    }
}

impl WorkGroup<'_> {
    /// Changes what is known of a sub-group's products, if anything is.
    pub(super) fn flight(&mut self, sub_group: u32, change: impl FnOnce(&mut Flight)) {
        let checks = self.checks.as_mut();
        if let Some(flight) = checks.and_then(|checks| checks.flights.own.get_mut(sub_group as usize)) {
            change(flight);
        }
    }

    /// A product is in flight from now on, which reads these pieces of shared memory.
    ///
    /// # Errors
    /// Nothing ordered it behind what its registers were used for.
    pub(super) fn start_product(&mut self, product: &Product, run: &Run<'_>, pieces: Vec<u64>) -> Result<()> {
        let shift = self.state.cells.shared;
        let Some(checks) = &mut self.checks else {
            return Ok(());
        };
        let flights = &mut checks.flights;
        let Some(flight) = flights.own.get_mut(run.by.sub_group.number() as usize) else {
            return Ok(());
        };
        if !flight.has_fenced {
            let what = format!(
                "{} starts `{}` with no `wgmma.fence` before",
                self.describe(run.by.sub_group.work_item(0)),
                product.name
            );
            return Err(fault::error(
                self.state.kernel,
                run.by.place,
                Violation::InFlight(what),
            ));
        }
        flight.started += 1;
        for &slot in run.to {
            flight
                .results
                .insert(slot.0.into(), (flight.started, run.by.place));
        }
        for &offset in &pieces {
            for cell in cells(offset, PIECE, shift) {
                flights.reading[cell as usize] += 1;
            }
        }
        flight.reads.push_back((flight.started, run.by.place, pieces));
        if !flights.places.contains(&run.by.place) {
            flights.places.push(run.by.place);
        }
        Ok(())
    }

    /// All groups of products of a sub-group end, but this many.
    pub(super) fn wait_for_products(&mut self, sub_group: u32, left: usize) {
        let shift = self.state.cells.shared;
        let Some(checks) = &mut self.checks else { return };
        let Some(flight) = checks.flights.own.get_mut(sub_group as usize) else {
            return;
        };
        let ending = flight.groups.len().saturating_sub(left);
        let Some(ended) = flight.groups.drain(..ending).next_back() else {
            return;
        };
        flight.ended = ended;
        flight.results.retain(|_, (number, _)| *number > ended);
        while let Some((_, _, offsets)) = flight.reads.pop_front_if(|(number, ..)| *number <= ended) {
            for offset in offsets {
                for cell in cells(offset, PIECE, shift) {
                    checks.flights.reading[cell as usize] -= 1;
                }
            }
        }
    }

    /// Looks out for an operation that uses what a product has yet to give.
    ///
    /// # Errors
    /// It does.
    pub(super) fn check_in_flight(&mut self, op: &LaneOp, sub_group: &SubGroup) -> Result<()> {
        let Some(checks) = &mut self.checks else {
            return Ok(());
        };
        let Some(flight) = checks.flights.own.get_mut(sub_group.number() as usize) else {
            return Ok(());
        };
        if flight.results.is_empty() {
            return Ok(());
        }
        let used = match &op.kind {
            // A move of the bits.
            LaneOpKind::Convert {
                op: ConvertOp::Bits,
                to,
                a,
                ..
            } => {
                let moves = [(*to, *a)];
                flight.assign(&moves);
                return Ok(());
            }
            LaneOpKind::Opaque { what, values, .. } => {
                let given = match what.group_product() {
                    // Accumulators may be in flight.
                    Some(product) => &values[..product.given.first_summand],
                    _ => &values[..],
                };
                given
                    .iter()
                    .find_map(|(_, slot)| flight.results.get(&slot.0.into()).copied())
            }
            _ => {
                let (results, mut number, mut used) = (op.results().len(), 0, None);
                // Results come first.
                op.clone().map_slots(|slot| {
                    if number >= results {
                        used = used.or(flight.results.get(&slot.0.into()).copied());
                    }
                    number += 1;
                });
                used
            }
        };
        for slot in op.results() {
            flight.results.remove(&slot.0.into());
        }
        let Some((_, started)) = used else { return Ok(()) };
        let what = format!(
            "{} uses a result of a product of its warp group that is in flight, started at {} and not waited for",
            self.describe(sub_group.work_item(0)),
            self.state.kernel.describe_place(started)
        );
        Err(
            fault::error(self.state.kernel, op.place, Violation::InFlight(what))
                .accepted("`wgmma.commit_group` and `wgmma.wait_group` before it"),
        )
    }

    /// Registers move, and what is in flight to them.
    pub(super) fn move_in_flight(&mut self, moves: &[(Slot, Slot)], sub_group: &SubGroup) {
        self.flight(sub_group.number(), |flight| {
            if !flight.results.is_empty() {
                flight.assign(moves);
            }
        });
    }

    /// A product of a sub-group reads memory that was written through the other proxy.
    ///
    /// # Errors
    /// Nothing made the write known to this one.
    pub(super) fn check_proxy(
        &self,
        address: u64,
        offset: u64,
        size: u32,
        item: u32,
        place: Place,
    ) -> Result<()> {
        let Some(checks) = &self.checks else { return Ok(()) };
        for cell in cells(offset, size, self.state.cells.shared) {
            let cell = &checks.shared[cell as usize];
            let Some(writer) = cell.writer().filter(|_| cell.did & did::COPIED == 0) else {
                continue;
            };
            let local = writer.item.wrapping_sub(checks.first);
            if !checks.flights.knows(local, writer.time) {
                let (region, at) = self.region(Space::Shared, address);
                let what = format!(
                    "a product of the warp group of {} reads {}, which work-item {local} wrote at {} with no `fence.proxy.async` between",
                    self.describe(item),
                    region.element(at),
                    self.state.kernel.describe_place(writer.place)
                );
                return Err(fault::error(self.state.kernel, place, Violation::InFlight(what)));
            }
        }
        Ok(())
    }

    /// A lane writes memory that a product in flight reads.
    #[cold]
    pub(super) fn read_by_product(&self, of: AccessOf, address: u64, cell: u64) -> Error {
        let AccessOf { access, item, place } = of;
        let (region, at) = self.region(Space::Shared, address);
        let started = self
            .checks
            .as_ref()
            .and_then(|checks| checks.flights.reader(cell, self.state.cells.shared));
        let what = format!(
            "{} {} {}, which a product of a warp group still reads, started at {} and not waited for",
            self.describe(item),
            access.verb(),
            region.element(at),
            self.state.kernel.describe_place(started.unwrap_or(place))
        );
        fault::error(self.state.kernel, place, Violation::InFlight(what))
    }

    /// Work-items make their writes known to the other proxy.
    pub(super) fn fence_proxy(&mut self, sub_group: &SubGroup, mask: Mask) {
        if let Some(checks) = &mut self.checks {
            let items = mask.lanes().map(|lane| sub_group.work_item(lane));
            checks.flights.fence(items, (checks.since, checks.time));
            checks.tick();
        }
    }

    /// All work-items have ended.
    ///
    /// # Errors
    /// Sub-groups of a warp group have not run its products together.
    pub(super) fn check_products_together(&self) -> Result<()> {
        let Some(checks) = &self.checks else { return Ok(()) };
        for (first, group) in (0..)
            .step_by(SUB_GROUPS as usize)
            .zip(checks.flights.own.chunks(SUB_GROUPS as usize))
        {
            let differs = |flight: &Flight| flight.started != group[0].started;
            let Some(other) = group.iter().position(differs) else {
                continue;
            };
            let item = |number: usize| (first + number as u32) * self.state.sub_group_size;
            let what = format!(
                "{} runs {} products of its warp group, and work-item {} runs {}",
                self.describe(item(0)),
                group[0].started,
                item(other),
                group[other].started
            );
            let place = checks.flights.places.first().copied();
            return Err(fault::error(
                self.state.kernel,
                place.unwrap_or(Kernel::NOWHERE),
                Violation::Apart(what),
            )
            .accepted("all sub-groups of a warp group run each of its products"));
        }
        Ok(())
    }
}

impl Flight {
    /// Each first slot takes over what is in flight to each second one.
    fn assign(&mut self, moves: &[(Slot, Slot)]) {
        let of = |slot: Slot| u64::from(slot.0);
        let flying: Vec<Option<(u64, Place)>> = moves
            .iter()
            .map(|&(_, from)| self.results.get(&of(from)).copied())
            .collect();
        for (&(to, _), flying) in moves.iter().zip(flying) {
            match flying {
                Some(product) => self.results.insert(of(to), product),
                None => self.results.remove(&of(to)),
            };
        }
    }
}
