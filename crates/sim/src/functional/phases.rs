//! Barriers with phases in shared memory: `mbarrier`, and the bulk copies that complete on them.
//!
//! ```text
//! mbarrier.init [bar], 32                 each phase expects 32 arrivals
//! mbarrier.arrive.expect_tx …, [bar], 512 one of them, and 512 bytes
//! cp.async.bulk … [tile], [from], 512, [bar]
//! mbarrier.try_wait.parity ok, [bar], 0   whether the phase before this one had parity 0
//! ```
//!
//! A phase ends with its last arrival, when all bytes that it expects have come. The state is in the barrier's 8 bytes, as
//! [`State`] has it; a GPU has other bits there, which PTX keeps to itself. An arrival releases, and a wait that succeeds
//! acquires: they are atomic operations on these bytes, and order what atomic operations do ([`order`](super::order)).
//!
//! A bulk copy's data come when somebody asks for the second time whether a phase of its barrier has ended, so that asking alone
//! is no waiting, and its target holds poison before.
//! They count as written by who started the copy, so that whoever reads them without having waited races.

use super::access::Location;
use super::copies::CopyInFlight;
use super::fault::{self, Access};
use super::lanes::{Registers, Slot};
use super::matrix::Run;
use super::order::Strong;
use super::shadow::Strength;
use super::work_group::WorkGroup;
use crate::ir::{MemoryOrder, MemoryScope, Opaque, Place, Space, Type};
use crate::{Error, Result};

/// Bytes of a barrier.
pub(super) const BARRIER_BYTES: u32 = 8;
/// Bytes that a bulk copy moves at once: addresses and sizes are multiples.
pub(super) const PIECE: u32 = 16;
/// The most arrivals of a phase, and bytes that may be expected (PTX ISA, "mbarrier object").
const MOST: u64 = (1 << 20) - 1;

/// Whether an instruction is run here.
pub(crate) fn is_phased(what: &Opaque) -> bool {
    PhaseStep::read(&what.text).is_some()
}

/// Whether an instruction asks for the end of a phase.
pub(super) fn asks(what: &Opaque) -> bool {
    ["mbarrier.test_wait", "mbarrier.try_wait"]
        .iter()
        .any(|start| what.text.starts_with(start))
}

/// Whether an instruction is a bulk copy that is run here.
pub(super) fn copies(what: &Opaque) -> bool {
    let step = PhaseStep::read(&what.text);
    step.is_some_and(|step| matches!(step.kind, Kind::Copy { .. }))
}

/// A barrier's state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct State {
    /// Arrivals that each phase expects; none if it is no barrier.
    expected: u64,
    /// Those that have yet to come.
    pending: u64,
    /// Bytes that have yet to come.
    bytes: i64,
    /// The phase's number, modulo 8.
    phase: u64,
}

impl State {
    fn of(bits: u64) -> State {
        State {
            expected: bits & MOST,
            pending: bits >> 20 & MOST,
            // 21 bits between the others, with a sign.
            bytes: ((bits << 3) as i64) >> 43,
            phase: bits >> 61,
        }
    }

    fn bits(self) -> u64 {
        let bytes = (self.bytes as u64) << 43 >> 3;
        self.expected | self.pending << 20 | bytes | self.phase << 61
    }

    /// The next phase begins, if nothing is to come any more.
    fn settled(mut self) -> State {
        if self.pending == 0 && self.bytes == 0 {
            self.pending = self.expected;
            self.phase = (self.phase + 1) % 8;
        }
        self
    }
}

/// An operand: one of the instruction's values, or a number in its text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Given {
    Value(usize),
    Number(u64),
}

/// An address: one of the instruction's values, and bytes from there on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct At {
    value: usize,
    offset: i64,
    space: Space,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Initialize(Given),
    Invalidate,
    Arrive {
        count: Given,
        /// Bytes that are expected besides.
        bytes: Option<Given>,
        /// Later phases expect as many arrivals less.
        drops: bool,
        /// The phase does not end by it.
        stays: bool,
    },
    Expect(Given),
    Complete(Given),
    /// Whether the phase of a state, or of a parity, has ended.
    Test {
        phase: Given,
        is_parity: bool,
    },
    /// The arrivals that a state has yet to come.
    Pending(usize),
    Copy {
        to: At,
        from: At,
        bytes: Given,
    },
}

/// An instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PhaseStep {
    kind: Kind,
    /// The barrier.
    barrier: Option<At>,
    order: MemoryOrder,
    scope: MemoryScope,
}

/// The operand with this text.
fn given(text: &str) -> Option<Given> {
    match text.strip_prefix('@') {
        Some(number) => Some(Given::Value(number.parse().ok()?)),
        None => {
            let number = match text.strip_prefix("0x") {
                Some(digits) => u64::from_str_radix(digits, 16).ok()?,
                None => text.parse().ok()?,
            };
            Some(Given::Number(number))
        }
    }
}

fn address(text: &str, space: Space) -> Option<At> {
    let inside = text.strip_prefix('[')?.strip_suffix(']')?;
    let (base, offset) = match inside.split_once('+') {
        Some((base, offset)) => (base, offset.parse().ok()?),
        None => (inside, 0),
    };
    let value = base.strip_prefix('@')?.parse().ok()?;
    Some(At { value, offset, space })
}

impl PhaseStep {
    /// The instruction of a text.
    pub fn read(text: &str) -> Option<PhaseStep> {
        let (name, rest) = text.split_once(' ')?;
        let words: Vec<&str> = name.split('.').collect();
        let has = |word: &str| words.contains(&word);
        let operands: Vec<&str> = rest.split(',').map(str::trim).collect();
        if words.starts_with(&["cp", "async", "bulk"]) {
            return PhaseStep::copy(&words[3..], &operands);
        }
        if words[0] != "mbarrier" || words.last() != Some(&"b64") {
            return None;
        }
        // What is made stands first.
        let makes = operands
            .first()
            .is_some_and(|first| *first == "_" || first.starts_with('='));
        let operands = &operands[usize::from(makes)..];
        let shared = ["shared", "shared::cta", "shared::cluster"]
            .iter()
            .any(|word| has(word));
        let space = if shared { Space::Shared } else { Space::Generic };
        let number = |index: usize| given(operands.get(index)?);
        let one = Given::Number(1);
        let kind = match words[1] {
            "init" => Kind::Initialize(number(1)?),
            "inval" => Kind::Invalidate,
            "expect_tx" => Kind::Expect(number(1)?),
            "complete_tx" => Kind::Complete(number(1)?),
            "arrive" | "arrive_drop" => {
                let expects = has("expect_tx");
                let last = match operands.len() {
                    1 => None,
                    _ => Some(number(1)?),
                };
                Kind::Arrive {
                    count: last.filter(|_| !expects).unwrap_or(one),
                    bytes: match expects {
                        true => Some(last?),
                        false => None,
                    },
                    drops: words[1] == "arrive_drop",
                    stays: has("noComplete"),
                }
            }
            "test_wait" | "try_wait" => Kind::Test {
                phase: number(1)?,
                is_parity: has("parity"),
            },
            "pending_count" => match number(0)? {
                Given::Value(state) => Kind::Pending(state),
                Given::Number(_) => return None,
            },
            _ => return None,
        };
        let barrier = match kind {
            Kind::Pending(_) => None,
            _ => Some(address(operands.first()?, space)?),
        };
        Some(PhaseStep {
            kind,
            barrier,
            order: match kind {
                _ if has("relaxed") => MemoryOrder::Relaxed,
                Kind::Arrive { .. } => MemoryOrder::Release,
                Kind::Test { .. } => MemoryOrder::Acquire,
                _ => MemoryOrder::Relaxed,
            },
            scope: match has("cluster") {
                true => MemoryScope::Device,
                false => MemoryScope::WorkGroup,
            },
        })
    }

    /// A bulk copy from global to shared memory that completes on a barrier.
    fn copy(words: &[&str], operands: &[&str]) -> Option<PhaseStep> {
        let [target, "global", "mbarrier::complete_tx::bytes", hints @ ..] = words else {
            return None;
        };
        // A multicast goes to other work-groups, too.
        let known =
            matches!(*target, "shared::cluster" | "shared::cta") && matches!(hints, [] | ["L2::cache_hint"]);
        let [to, from, bytes, barrier, ..] = operands else {
            return None;
        };
        known.then_some(PhaseStep {
            kind: Kind::Copy {
                to: address(to, Space::Shared)?,
                from: address(from, Space::Global)?,
                bytes: given(bytes)?,
            },
            barrier: Some(address(barrier, Space::Shared)?),
            order: MemoryOrder::Relaxed,
            scope: MemoryScope::WorkGroup,
        })
    }

    /// The smallest access that it makes to shared memory, in bytes.
    pub fn smallest_access(&self) -> Option<u32> {
        self.barrier.map(|_| BARRIER_BYTES)
    }
}

/// A bulk copy that has not come yet.
#[derive(Clone, Debug)]
pub(super) struct BulkCopy {
    /// Where its barrier lies in shared memory.
    barrier: u64,
    /// The first question about that since it was started.
    asked: Option<u64>,
    item: u32,
    bytes: u64,
    scope: MemoryScope,
    pieces: Vec<CopyInFlight>,
}

/// Who runs an instruction, and where it stands.
struct Runs<'r> {
    values: &'r [(Type, Slot)],
    registers: &'r Registers,
    lane: usize,
    item: u32,
    place: Place,
}

impl Runs<'_> {
    fn value(&self, given: Given) -> u64 {
        match given {
            Given::Number(number) => number,
            Given::Value(value) => self
                .values
                .get(value)
                .map_or(0, |&(ty, slot)| self.registers.get(slot)[self.lane] & ty.mask()),
        }
    }

    fn location(&self, at: At, group: &WorkGroup<'_>) -> Location {
        let address = self.value(Given::Value(at.value));
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
        self.questions += u64::from(matches!(step.kind, Kind::Test { .. }));
        for lane in run.mask.lanes() {
            let runs = Runs {
                values: run.values,
                registers,
                lane,
                item: run.sub_group.work_item(lane),
                place: run.place,
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
                Kind::Pending(state) => State::of(runs.value(Given::Value(state))).pending,
                _ => 0,
            });
        };
        let at = runs.location(barrier, self);
        if at.space != Space::Shared {
            let what = format!(
                "{} uses a barrier that is not in shared memory",
                self.describe(runs.item)
            );
            return Err(fault::error(self.state.kernel, runs.place, what));
        }
        let strength = Strength::strong(step.scope, BARRIER_BYTES);
        let (reads, writes) = match step.kind {
            Kind::Initialize(count) => {
                let count = runs.value(count);
                if count == 0 || count > MOST {
                    let what = format!("for {count} arrivals: 1 to {MOST} are possible");
                    return Err(self.barrier_fault(at, runs, "is initialised", &what));
                }
                let offset = self.access(Access::Write, at, BARRIER_BYTES, runs.item, runs.place)?;
                let state = State {
                    expected: count,
                    pending: count,
                    bytes: 0,
                    phase: 0,
                };
                self.write(at, offset, BARRIER_BYTES, state.bits(), runs.item);
                return Ok(0);
            }
            Kind::Invalidate => {
                let offset = self.access(Access::Write, at, BARRIER_BYTES, runs.item, runs.place)?;
                self.write(at, offset, BARRIER_BYTES, 0, runs.item);
                return Ok(0);
            }
            Kind::Copy { to, from, bytes } => {
                return self.start_bulk_copy(at, (to, from), runs.value(bytes), step.scope, runs);
            }
            Kind::Test { .. } => (true, false),
            _ => (true, true),
        };
        let access = Access::Atomic {
            reads,
            writes,
            strength,
        };
        let offset = self.access(access, at, BARRIER_BYTES, runs.item, runs.place)?;
        if matches!(step.kind, Kind::Test { .. }) {
            self.deliver_to(at, offset, runs)?;
        }
        let old = self.read(at, offset, BARRIER_BYTES, runs.item);
        let (new, result) = self.changed(step, State::of(old), old, at, runs)?;
        if writes {
            self.write(at, offset, BARRIER_BYTES, new.bits(), runs.item);
        }
        let succeeds = !matches!(step.kind, Kind::Test { .. }) || result == 1;
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
            Kind::Arrive {
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
            Kind::Expect(bytes) => {
                new.bytes += runs.value(bytes) as i64;
                0
            }
            Kind::Complete(bytes) => {
                new.bytes -= runs.value(bytes) as i64;
                0
            }
            Kind::Test { phase, is_parity } => {
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
        fault::error(self.state.kernel, runs.place, what)
    }

    // Bulk copies.

    fn start_bulk_copy(
        &mut self,
        at: Location,
        (to, from): (At, At),
        bytes: u64,
        scope: MemoryScope,
        runs: &Runs<'_>,
    ) -> Result<u64> {
        let (to, from) = (runs.location(to, self), runs.location(from, self));
        let piece = u64::from(PIECE);
        let addresses = [to.address, from.address, bytes];
        if to.space != Space::Shared || addresses.iter().any(|number| !number.is_multiple_of(piece)) {
            let what = format!(
                "{} starts a bulk copy of {bytes} bytes: it goes to shared memory, and its addresses and its size are multiples of {PIECE}",
                self.describe(runs.item)
            );
            return Err(fault::error(self.state.kernel, runs.place, what));
        }
        let barrier = self
            .state
            .shared
            .offset(at.address, BARRIER_BYTES)
            .unwrap_or_default();
        let mut pieces = Vec::new();
        for start in (0..bytes).step_by(PIECE as usize) {
            let (target, source) = (to.address + start, from.address + start);
            let offset = self.begin_copy(target, source, PIECE, runs.item, runs.place)?;
            pieces.push(CopyInFlight {
                number: 0,
                target: offset,
                target_address: target,
                source,
                bytes: PIECE,
                place: runs.place,
            });
        }
        self.bulk_copies.push(BulkCopy {
            barrier,
            asked: None,
            item: runs.item,
            bytes,
            scope,
            pieces,
        });
        Ok(0)
    }

    /// The copies that complete on a barrier come, but those that nobody has asked for yet.
    fn deliver_to(&mut self, at: Location, offset: u64, runs: &Runs<'_>) -> Result<()> {
        let now = self.questions;
        for copy in self.bulk_copies.iter_mut().filter(|copy| copy.barrier == offset) {
            copy.asked.get_or_insert(now);
        }
        let is_due = |copy: &BulkCopy| copy.barrier == offset && copy.asked.is_some_and(|asked| asked < now);
        while let Some(found) = self.bulk_copies.iter().position(is_due) {
            let copy = self.bulk_copies.remove(found);
            for piece in &copy.pieces {
                self.deliver(piece, copy.item);
            }
            let runs = Runs {
                item: copy.item,
                place: copy.pieces.first().map_or(runs.place, |piece| piece.place),
                ..*runs
            };
            let step = PhaseStep {
                kind: Kind::Complete(Given::Number(copy.bytes)),
                barrier: None,
                order: MemoryOrder::Release,
                scope: copy.scope,
            };
            let old = self.read(at, offset, BARRIER_BYTES, copy.item);
            let (new, _) = self.changed(&step, State::of(old), old, at, &runs)?;
            self.write(at, offset, BARRIER_BYTES, new.bits(), copy.item);
            let strong = Strong {
                order: step.order,
                scope: copy.scope,
                strength: Strength::strong(copy.scope, BARRIER_BYTES),
                reads: true,
                writes: true,
            };
            self.operate(strong, at, copy.item);
            self.tick();
        }
        Ok(())
    }

    /// All work-items have ended.
    ///
    /// # Errors
    /// Nobody waited for a bulk copy.
    pub(super) fn check_bulk_copies(&self) -> Result<()> {
        let Some(copy) = self.bulk_copies.first().filter(|_| self.checks.is_some()) else {
            return Ok(());
        };
        let Some(piece) = copy.pieces.first() else {
            return Ok(());
        };
        let (region, offset) = self.region(Space::Shared, piece.target_address);
        let what = format!(
            "{} ends without anybody waiting for its bulk copy to {}",
            self.describe(copy.item),
            region.element(offset)
        );
        Err(fault::error(self.state.kernel, piece.place, what))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_have_their_bits() {
        for state in [
            State {
                expected: 1,
                pending: MOST,
                bytes: -(MOST as i64),
                phase: 7,
            },
            State {
                expected: MOST,
                pending: 0,
                bytes: MOST as i64,
                phase: 2,
            },
            State {
                expected: 3,
                pending: 2,
                bytes: -1,
                phase: 0,
            },
        ] {
            assert_eq!(State::of(state.bits()), state);
        }
    }

    #[test]
    fn instructions_are_read() {
        let read = |text: &str| PhaseStep::read(text);
        let step = read("mbarrier.arrive.expect_tx.release.cta.shared::cta.b64 =0, [@0+8], 512");
        let step = step.expect("an instruction");
        assert_eq!(
            step.kind,
            Kind::Arrive {
                count: Given::Number(1),
                bytes: Some(Given::Number(512)),
                drops: false,
                stays: false
            }
        );
        assert_eq!(
            (step.order, step.barrier.map(|at| at.offset)),
            (MemoryOrder::Release, Some(8))
        );
        let step = read("mbarrier.try_wait.parity.shared.b64 =0, [@0], @1, 1000").expect("an instruction");
        assert_eq!(
            step.kind,
            Kind::Test {
                phase: Given::Value(1),
                is_parity: true
            }
        );
        let step = read("mbarrier.pending_count.b64 =0, @0").expect("an instruction");
        assert_eq!((step.kind, step.barrier), (Kind::Pending(0), None));
        let copy = "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [@0], [@1], @2, [@3+8]";
        assert!(matches!(
            read(copy).map(|step| step.kind),
            Some(Kind::Copy { .. })
        ));
        // Of several dimensions, to other work-groups, out of shared memory.
        for other in [
            "cp.async.bulk.tensor.1d.shared::cluster.global.mbarrier::complete_tx::bytes [@0], [@1, {@2}], [@3]",
            "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [@0], [@1], 16, [@2], @3",
            "cp.async.bulk.global.shared::cta.bulk_group [@0], [@1], 16",
            "cp.async.mbarrier.arrive.shared.b64 [@0]",
        ] {
            assert_eq!(read(other), None, "{other}");
        }
    }
}
