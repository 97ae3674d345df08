//! IGC, for Xe: what `ocloc` lists for pvc.
//!
//! Each of these was read in listings of IGC 2.40 for the kernels of the gallery and their plans; `gallery/tests/ocloc.rs` holds
//! the machine programs to them.

pub mod recipe;

use super::Rules;

/// Its habits.
pub const RULES: Rules = Rules {
    // A message to nowhere is a message like others: it leaves in its place, between those around it. (`gather-hint-l3`: the
    // load of the index, the next address, the hint, and only then what waits for the index.)
    hints_last: false,
    loads_sunk: false,
    loads_behind_shuffles: false,
    // Each load has a token of its own (`$0` to `$15`).
    uses_before_loads: false,
    // `gather-hint-l1` jumps over its hint (`jmpi`, or `goto` where lanes part); IGC does not put predicates on messages.
    predicated_messages: false,
    // `(W) add (1|M0)`.
    scalar_instructions: true,
    // The whole of a basic block.
    look_ahead: usize::MAX,
};
