//! The differences between vendors' compilers for the same operations and drafts: a folder or file for each instruction set.
//! The selector and the scheduler query the target's [`Rules`]. `results/ablation-sim-h200.txt` says what each is worth.

pub(crate) mod intel;
mod nvidia;

use super::target::Family;

/// The habits of a compiler.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Rules {
    /// Whether hints and copies, which write no register that is waited for, go behind all else of a segment.
    pub(crate) hints_last: bool,
    /// Whether loads are moved down to their first use before the scheduler moves them up.
    pub(crate) loads_sunk: bool,
    /// Whether a load behind a shuffle stays there.
    pub(crate) loads_behind_shuffles: bool,
    /// Whether the last iteration's loads are used before more is loaded on the same scoreboard.
    pub(crate) uses_before_loads: bool,
    /// Whether a value that goes on in the next iteration, and is wanted behind the loop as well, has two registers.
    pub(crate) leaving_values_apart: bool,
    /// Whether pointers stay in the constant bank until they are needed.
    pub(crate) pointers_in_constants: bool,
    /// Whether short loops are unrolled unless the source forbids it.
    pub(crate) loops_unrolled: bool,
    /// Whether a small `if` around messages becomes predicates on them; if not, it is a jump around them.
    pub(crate) predicated_messages: bool,
    /// Whether uniform values are computed once per sub-group, by an instruction for one work-item.
    pub(crate) scalar_instructions: bool,
    /// Whether the program contains the instructions that make visible NaNs canonical. (For NVIDIA the text has them, and they
    /// are few compared with the instructions that the model was fitted to.)
    pub(crate) canonical_nans: bool,
}

impl Family {
    /// The habits of its compiler.
    pub fn rules(self) -> Rules {
        match self {
            Family::Nvidia => nvidia::RULES,
            Family::Intel => intel::RULES,
        }
    }
}
