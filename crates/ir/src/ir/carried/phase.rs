//! The instructions on barriers with phases: `mbarrier`, and the bulk copies that complete on them.

use super::{Operand, Reference, reference};
use crate::ir::{MemoryOrder, MemoryScope, Space};

/// Bytes of a barrier.
pub const BARRIER_BYTES: u32 = 8;

/// What an instruction does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PhaseOperation {
    /// Each phase ends at this number of arrivals.
    Initialize(Operand),
    /// The memory is none any more.
    Invalidate,
    /// Some arrive.
    Arrive {
        /// How many.
        count: Operand,
        /// Bytes that the phase expects, too.
        bytes: Option<Operand>,
        /// Later phases expect fewer arrivals, by `count`.
        drops: bool,
        /// It must not end the phase.
        stays: bool,
    },
    /// The bytes that are still to come.
    Expect(Operand),
    /// The bytes that came.
    Complete(Operand),
    /// Whether the phase of a state, or of a parity, has ended.
    Test {
        /// Which.
        phase: Operand,
        /// Whether it is a parity.
        is_parity: bool,
    },
    /// The arrivals that are missing in a state.
    Pending(usize),
    /// Bytes from global to shared memory, which then count as come.
    Copy {
        /// Where to.
        to: Reference,
        /// Where from.
        from: Reference,
        /// How many.
        bytes: Operand,
    },
}

/// An instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PhaseStep {
    /// What it does.
    pub kind: PhaseOperation,
    /// The barrier.
    pub barrier: Option<Reference>,
    /// What it orders.
    pub order: MemoryOrder,
    /// Between which work-items.
    pub scope: MemoryScope,
}

impl PhaseStep {
    /// The instruction with these words and operands.
    pub(super) fn read(words: &[&str], rest: &str) -> Option<PhaseStep> {
        let has = |word: &str| words.contains(&word);
        let operands: Vec<&str> = rest.split(',').map(str::trim).collect();
        if words.starts_with(&["cp", "async", "bulk"]) {
            return PhaseStep::copy(&words[3..], &operands);
        }
        if words[0] != "mbarrier" || words.last() != Some(&"b64") {
            return None;
        }
        // The result comes first, if there is one.
        let makes = operands
            .first()
            .is_some_and(|first| *first == "_" || first.starts_with('='));
        let operands = &operands[usize::from(makes)..];
        let shared = ["shared", "shared::cta", "shared::cluster"]
            .iter()
            .any(|word| has(word));
        let space = if shared { Space::Shared } else { Space::Generic };
        let number = |index: usize| Operand::read(operands.get(index)?);
        let one = Operand::Number(1);
        let kind = match words[1] {
            "init" => PhaseOperation::Initialize(number(1)?),
            "inval" => PhaseOperation::Invalidate,
            "expect_tx" => PhaseOperation::Expect(number(1)?),
            "complete_tx" => PhaseOperation::Complete(number(1)?),
            "arrive" | "arrive_drop" => {
                let expects = has("expect_tx");
                let last = match operands.len() {
                    1 => None,
                    _ => Some(number(1)?),
                };
                PhaseOperation::Arrive {
                    count: last.filter(|_| !expects).unwrap_or(one),
                    bytes: match expects {
                        true => Some(last?),
                        false => None,
                    },
                    drops: words[1] == "arrive_drop",
                    stays: has("noComplete"),
                }
            }
            "test_wait" | "try_wait" => PhaseOperation::Test {
                phase: number(1)?,
                is_parity: has("parity"),
            },
            "pending_count" => match number(0)? {
                Operand::Value(state) => PhaseOperation::Pending(state),
                Operand::Number(_) => return None,
            },
            _ => return None,
        };
        let barrier = match kind {
            PhaseOperation::Pending(_) => None,
            _ => Some(reference(operands.first()?, space)?),
        };
        Some(PhaseStep {
            kind,
            barrier,
            order: match kind {
                _ if has("relaxed") => MemoryOrder::Relaxed,
                PhaseOperation::Arrive { .. } => MemoryOrder::Release,
                PhaseOperation::Test { .. } => MemoryOrder::Acquire,
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
        // A multicast also goes to other work-groups.
        let known =
            matches!(*target, "shared::cluster" | "shared::cta") && matches!(hints, [] | ["L2::cache_hint"]);
        let [to, from, bytes, barrier, ..] = operands else {
            return None;
        };
        known.then_some(PhaseStep {
            kind: PhaseOperation::Copy {
                to: reference(to, Space::Shared)?,
                from: reference(from, Space::Global)?,
                bytes: Operand::read(bytes)?,
            },
            barrier: Some(reference(barrier, Space::Shared)?),
            order: MemoryOrder::Relaxed,
            scope: MemoryScope::WorkGroup,
        })
    }

    /// The smallest access that it makes to shared memory, in bytes.
    pub fn smallest_access(&self) -> Option<u32> {
        self.barrier.map(|_| BARRIER_BYTES)
    }
}
