//! ptxas, for sm_80 and sm_90.

use super::Rules;

/// How far ptxas looks ahead.
///
/// ptxas 13.0 for sm_90 starts nine loads at once in `article` under `unroll:16`, whose iterations have 33 instructions, and the
/// tenth ten instructions later; in `option-pricing` under any unrolling the loads of one iteration of 305, and those of the second
/// when 40 instructions of the first are issued; all sixteen in `embedding-bag`, with seven instructions each.
const LOOK_AHEAD: usize = 256;

/// Its habits.
pub const RULES: Rules = Rules {
    // Pauses or not. (On an H200 a `cache:L1:1` comes too late for `article`.)
    hints_last: true,
    loads_sunk: true,
    loads_behind_shuffles: true,
    uses_before_loads: true,
    products_behind_loads: true,
    leaving_values_apart: true,
    vectors_moved: true,
    copies_spaced: true,
    pointers_in_constants: true,
    loops_unrolled: true,
    predicated_messages: true,
    // Its uniform registers cost nothing here.
    scalar_instructions: false,
    canonical_nans: false,
    look_ahead: LOOK_AHEAD,
};
