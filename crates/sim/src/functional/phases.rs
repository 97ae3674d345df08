//! Barriers with phases in shared memory: `mbarrier`, and the bulk copies that complete on them.
//!
//! ```text
//! mbarrier.init [bar], 32                 each phase expects 32 arrivals
//! mbarrier.arrive.expect_tx …, [bar], 512 one of them, and 512 bytes
//! cp.async.bulk … [tile], [from], 512, [bar]
//! mbarrier.try_wait.parity ok, [bar], 0   whether the phase before this one had parity 0
//! ```
//!
//! A phase ends when its last arrival and all bytes that it expects have come. The barrier's 8 bytes hold the state, as in
//! [`State`]. A GPU has other bits there, which PTX does not document. An arrival releases, and a wait that succeeds
//! acquires: they are atomic operations on these bytes, and order what atomic operations do ([`order`](super::order)).
//!
//! A bulk copy's data come when a work-item asks for the second time whether a phase of its barrier has ended. Its target holds
//! poison before, so a kernel that asks without waiting is found. The data count as written by the work-item that started the
//! copy: a read without a wait is a race.

mod bulk;
mod state;

use state::{MOST, State};

use super::access::Location;
use super::fault::{self, Access};
use super::lanes::{Registers, Slot};
use super::matrix::Run;
use super::order::Strong;
use super::shadow::Strength;
use super::work_group::WorkGroup;
use crate::ir::carried::{BARRIER_BYTES, Operand, PhaseOperation, PhaseStep, Reference};
use crate::ir::{MemoryOrder, Place, Space, Type};
use crate::violation::Violation;
use crate::{Error, Result};

/// Addresses and sizes of bulk copies are multiples of this many bytes.
pub(super) const PIECE: u32 = 16;

/// An instruction on one lane: its operands, the work-item, and its place.
struct Runs<'r> {
    values: &'r [(Type, Slot)],
    registers: &'r Registers,
    lane: usize,
    item: u32,
    place: Place,
}

impl Runs<'_> {
    fn value(&self, operand: Operand) -> u64 {
        match operand {
            Operand::Number(number) => number,
            Operand::Value(value) => self
                .values
                .get(value)
                .map_or(0, |&(ty, slot)| self.registers.get(slot)[self.lane] & ty.mask()),
        }
    }

    fn location(&self, at: Reference, group: &WorkGroup<'_>) -> Location {
        let address = self.value(Operand::Value(at.value));
        // What is read has a value for each operand.
        let ty = self.values.get(at.value).map_or(Type::I64, |&(ty, _)| ty);
        Location::of_operand(group.state, (ty, address), at.space, at.offset)
    }
}

impl WorkGroup<'_> {
    /// Runs an instruction on each lane of `mask`, the lowest first.
    ///
    /// # Errors
    /// An address leads nowhere, the access races with another, or the barrier does not allow the operation.
    pub(super) fn phase_step(
        &mut self,
        step: &PhaseStep,
        run: &Run<'_>,
        registers: &mut Registers,
    ) -> Result<()> {
        self.questions += u64::from(matches!(step.kind, PhaseOperation::Test { .. }));
        for lane in run.by.mask.lanes() {
            let runs = Runs {
                values: run.values,
                registers,
                lane,
                item: run.by.sub_group.work_item(lane),
                place: run.by.place,
            };
            let result = self.phase_step_of(step, &runs)?;
            for &slot in run.to {
                registers.get_mut(slot)[lane] = result;
            }
        }
        if step.order.releases() {
            self.tick();
        }
        Ok(())
    }

    fn phase_step_of(&mut self, step: &PhaseStep, runs: &Runs<'_>) -> Result<u64> {
        let Some(barrier) = step.barrier else {
            return Ok(match step.kind {
                PhaseOperation::Pending(state) => State::of(runs.value(Operand::Value(state))).pending,
                _ => 0,
            });
        };
        let at = runs.location(barrier, self);
        if at.space != Space::Shared {
            let what = format!(
                "{} uses a barrier that is not in shared memory",
                self.describe(runs.item)
            );
            return Err(fault::error(
                self.state.kernel,
                runs.place,
                Violation::Misused(what),
            ));
        }
        let strength = Strength::strong(step.scope, BARRIER_BYTES);
        let (reads, writes) = match step.kind {
            PhaseOperation::Initialize(count) => {
                let count = runs.value(count);
                if count == 0 || count > MOST {
                    let what = format!("for {count} arrivals: 1 to {MOST} are possible");
                    return Err(self.barrier_fault(at, runs, "is initialised", &what));
                }
                let offset = self.access(Access::Write.of(runs.item, runs.place), at, BARRIER_BYTES)?;
                let state = State {
                    expected: count,
                    pending: count,
                    bytes: 0,
                    phase: 0,
                };
                self.write(at, offset, BARRIER_BYTES, state.bits(), runs.item);
                return Ok(0);
            }
            PhaseOperation::Invalidate => {
                let offset = self.access(Access::Write.of(runs.item, runs.place), at, BARRIER_BYTES)?;
                self.write(at, offset, BARRIER_BYTES, 0, runs.item);
                return Ok(0);
            }
            PhaseOperation::Copy { to, from, bytes } => {
                return self.start_bulk_copy(at, (to, from), runs.value(bytes), step.scope, runs);
            }
            PhaseOperation::Test { .. } => (true, false),
            _ => (true, true),
        };
        let access = Access::Atomic {
            reads,
            writes,
            strength,
        };
        let offset = self.access(access.of(runs.item, runs.place), at, BARRIER_BYTES)?;
        if matches!(step.kind, PhaseOperation::Test { .. }) {
            self.deliver_to(at, offset, runs)?;
        }
        let old = self.read(at, offset, BARRIER_BYTES, runs.item);
        let (new, result) = self.changed(step, State::of(old), old, at, runs)?;
        if writes {
            self.write(at, offset, BARRIER_BYTES, new.bits(), runs.item);
        }
        let succeeds = !matches!(step.kind, PhaseOperation::Test { .. }) || result == 1;
        if !writes {
            self.polled(at.address, old);
        }
        let strong = Strong {
            order: if succeeds {
                step.order
            } else {
                MemoryOrder::Relaxed
            },
            scope: step.scope,
            strength,
            reads,
            writes,
        };
        self.operate(strong, at, runs.item);
        Ok(result)
    }

    /// A barrier's state after an operation, and the operation's result.
    fn changed(
        &self,
        step: &PhaseStep,
        state: State,
        bits: u64,
        at: Location,
        runs: &Runs<'_>,
    ) -> Result<(State, u64)> {
        let mut new = state;
        if state.expected == 0 {
            let what = "and is no barrier: `mbarrier.init` has not been run there, or `mbarrier.inval` has";
            return Err(self.barrier_fault(at, runs, "is used", what));
        }
        let result = match step.kind {
            PhaseOperation::Arrive {
                count,
                bytes,
                drops,
                stays,
            } => {
                if let Some(bytes) = bytes {
                    new.bytes += runs.value(bytes) as i64;
                }
                let count = runs.value(count);
                if count == 0 || count > new.pending {
                    let what = format!(
                        "{count} times: its phase expects {} arrivals, {} of which have yet to come",
                        state.expected, state.pending
                    );
                    return Err(self.barrier_fault(at, runs, "is arrived at", &what));
                }
                new.pending -= count;
                if drops {
                    new.expected -= count;
                }
                if stays && new.pending == 0 {
                    let what = "by `noComplete`, which must not be the phase's last arrival";
                    return Err(self.barrier_fault(at, runs, "is arrived at", what));
                }
                bits
            }
            PhaseOperation::Expect(bytes) => {
                new.bytes += runs.value(bytes) as i64;
                0
            }
            PhaseOperation::Complete(bytes) => {
                new.bytes -= runs.value(bytes) as i64;
                0
            }
            PhaseOperation::Test { phase, is_parity } => {
                let phase = runs.value(phase);
                let ended = match is_parity {
                    true => state.phase & 1 != phase & 1,
                    false => match (state.phase + 8 - State::of(phase).phase) % 8 {
                        0 => false,
                        1 => true,
                        _ => {
                            let what = "about a phase that is neither its present nor its last one";
                            return Err(self.barrier_fault(at, runs, "is asked", what));
                        }
                    },
                };
                return Ok((state, u64::from(ended)));
            }
            _ => 0,
        };
        if new.bytes.unsigned_abs() > MOST {
            let what = format!("with {} bytes to come: {MOST} are possible", new.bytes);
            return Err(self.barrier_fault(at, runs, "is left", &what));
        }
        Ok((new.settled(), result))
    }

    fn barrier_fault(&self, at: Location, runs: &Runs<'_>, happens: &str, what: &str) -> Error {
        let (region, offset) = self.region(Space::Shared, at.address);
        let what = format!(
            "{}: the barrier {} {happens} {what}",
            self.describe(runs.item),
            region.element(offset)
        );
        fault::error(self.state.kernel, runs.place, Violation::Misused(what))
    }
}
