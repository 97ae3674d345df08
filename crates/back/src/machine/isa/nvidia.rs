//! ptxas, for sm_80 and sm_90.

use super::Rules;

/// Its habits.
pub(crate) const RULES: Rules = Rules {
    // Pauses or not. (On an H200 a `cache:L1:1` comes too late for `article`.)
    hints_last: true,
    loads_sunk: true,
    loads_behind_shuffles: true,
    uses_before_loads: true,
    // A chain of hits in L1 is 60 cycles a step on an H200, and 49 without the move that this costs
    // (`micro/latency footprint=16384`).
    leaving_values_apart: true,
    pointers_in_constants: true,
    loops_unrolled: true,
    predicated_messages: true,
    // Its uniform registers cost nothing here.
    scalar_instructions: false,
    canonical_nans: false,
};
