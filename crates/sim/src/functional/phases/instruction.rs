//! The instructions on barriers with phases, read from their text.
//!
//! [`PhaseStep::read`] gives none for the text of any other instruction.

use crate::ir::{MemoryOrder, MemoryScope, Space};

/// Bytes of a barrier.
pub(in crate::functional) const BARRIER_BYTES: u32 = 8;

/// An operand: one of the instruction's values, or a number in its text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operand {
    Value(usize),
    Number(u64),
}

/// An address: one of the instruction's values, and an offset in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct At {
    pub(super) value: usize,
    pub(super) offset: i64,
    pub(super) space: Space,
}

/// What an instruction does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PhaseOperation {
    Initialize(Operand),
    Invalidate,
    Arrive {
        count: Operand,
        /// Bytes that the phase expects, too.
        bytes: Option<Operand>,
        /// Later phases expect fewer arrivals, by `count`.
        drops: bool,
        /// It must not end the phase.
        stays: bool,
    },
    Expect(Operand),
    Complete(Operand),
    /// Whether the phase of a state, or of a parity, has ended.
    Test {
        phase: Operand,
        is_parity: bool,
    },
    /// The arrivals that are missing in a state.
    Pending(usize),
    Copy {
        to: At,
        from: At,
        bytes: Operand,
    },
}

/// An instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::functional) struct PhaseStep {
    pub(super) kind: PhaseOperation,
    /// The barrier.
    pub(super) barrier: Option<At>,
    pub(super) order: MemoryOrder,
    pub(super) scope: MemoryScope,
}

/// The operand with this text.
fn operand(text: &str) -> Option<Operand> {
    match text.strip_prefix('@') {
        Some(number) => Some(Operand::Value(number.parse().ok()?)),
        None => {
            let number = match text.strip_prefix("0x") {
                Some(digits) => u64::from_str_radix(digits, 16).ok()?,
                None => text.parse().ok()?,
            };
            Some(Operand::Number(number))
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
    pub(crate) fn read(text: &str) -> Option<PhaseStep> {
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
        // The result comes first, if there is one.
        let makes = operands
            .first()
            .is_some_and(|first| *first == "_" || first.starts_with('='));
        let operands = &operands[usize::from(makes)..];
        let shared = ["shared", "shared::cta", "shared::cluster"]
            .iter()
            .any(|word| has(word));
        let space = if shared { Space::Shared } else { Space::Generic };
        let number = |index: usize| operand(operands.get(index)?);
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
            _ => Some(address(operands.first()?, space)?),
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
                to: address(to, Space::Shared)?,
                from: address(from, Space::Global)?,
                bytes: operand(bytes)?,
            },
            barrier: Some(address(barrier, Space::Shared)?),
            order: MemoryOrder::Relaxed,
            scope: MemoryScope::WorkGroup,
        })
    }

    /// The smallest access that it makes to shared memory, in bytes.
    pub(crate) fn smallest_access(&self) -> Option<u32> {
        self.barrier.map(|_| BARRIER_BYTES)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instructions_are_read() {
        let read = |text: &str| PhaseStep::read(text);
        let step = read("mbarrier.arrive.expect_tx.release.cta.shared::cta.b64 =0, [@0+8], 512");
        let step = step.expect("an instruction");
        assert_eq!(
            step.kind,
            PhaseOperation::Arrive {
                count: Operand::Number(1),
                bytes: Some(Operand::Number(512)),
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
            PhaseOperation::Test {
                phase: Operand::Value(1),
                is_parity: true
            }
        );
        let step = read("mbarrier.pending_count.b64 =0, @0").expect("an instruction");
        assert_eq!((step.kind, step.barrier), (PhaseOperation::Pending(0), None));
        let copy = "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [@0], [@1], @2, [@3+8]";
        assert!(matches!(
            read(copy).map(|step| step.kind),
            Some(PhaseOperation::Copy { .. })
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
