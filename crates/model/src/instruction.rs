//! How long each class of machine instructions takes, and how many of them a core starts.

use serde::Deserialize;

use super::quantity::{Cycles, LanesPerCycle, Quantity};

/// The timing of one class of instructions.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InstructionTiming {
    /// From issue until an instruction that uses the result can issue. For memory instructions, the time beyond the memory
    /// hierarchy's own latency.
    pub latency: Quantity<Cycles>,
    /// Work-items per cycle, all schedulers of a core together.
    pub rate: Quantity<LanesPerCycle>,
}

impl InstructionTiming {
    /// The meaning of each of its numbers: its field, and a sentence for the class that follows.
    pub(super) const MEANINGS: &'static [(&'static str, &'static str)] = &[
        (
            "latency",
            "Cycles from issue until an instruction that uses the result can issue:",
        ),
        ("rate", "Work-items per cycle, all schedulers of a core together:"),
    ];
}

macro_rules! classes {
    ($($(#[doc = $doc:literal])* $field:ident),+ $(,)?) => {
        /// The timing of every class of instructions that a lowering emits.
        #[derive(Clone, Debug, PartialEq, Deserialize)]
        #[serde(deny_unknown_fields, rename_all = "kebab-case")]
        pub struct Instructions {
            $($(#[doc = $doc])* pub $field: InstructionTiming,)+
        }

        impl Instructions {
            /// The meaning of each class: its field, and its documentation.
            pub(super) const MEANINGS: &'static [(&'static str, &'static str)] =
                &[$((stringify!($field), concat!($($doc),*))),+];

            /// Each class's timing.
            pub fn iter(&self) -> impl Iterator<Item = &InstructionTiming> {
                [$(&self.$field),+].into_iter()
            }
        }
    };
}

classes! {
    /// 32-bit integer addition, logic, shift, comparison, selection, move.
    int32,
    /// 32-bit integer multiplication (and addition).
    int_multiply,
    /// 64-bit integer arithmetic, on devices that have it as one instruction.
    int64,
    /// 32-bit floating point: addition, multiplication, fused multiply-add, comparison.
    fp32,
    /// 64-bit floating point.
    fp64,
    /// 16-bit floating point.
    fp16,
    /// The special-function unit: approximate reciprocal, reciprocal square root, power of two.
    special,
    /// Conversions between integers and floats and between float widths, rounding, bit counting.
    convert,
    /// Questions about the work-item that the hardware answers.
    read_id,
    /// Values from the constant bank: kernel parameters, wide constants.
    load_constant,
    /// Loads from global memory.
    load,
    /// Stores to global memory.
    store,
    /// Loads from shared memory; `shared.latency` is on top.
    shared_load,
    /// Stores to shared memory.
    shared_store,
    /// Atomic operations on global memory; they take place in L2.
    atomic,
    /// Atomic operations on shared memory; `shared.latency` is on top.
    shared_atomic,
    /// Exchanges and votes inside a sub-group.
    shuffle,
    /// Fences.
    fence,
    /// Asynchronous copies from global to shared memory.
    async_copy,
    /// Closing a group of asynchronous copies.
    commit,
    /// Waiting for asynchronous copies: from their completion to the next instruction.
    wait,
    /// Cache hints.
    prefetch,
    /// The work-group barrier: from the last arrival to the next instruction.
    barrier,
    /// Jumps.
    branch,
    /// Marks where lanes part or meet.
    reconverge,
    /// The end of a work-item.
    exit,
}
