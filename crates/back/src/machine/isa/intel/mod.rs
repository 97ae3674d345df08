//! IGC, for Xe: as `ocloc` lists it for pvc.
//!
//! Each of these was read in listings of IGC 2.40 for the kernels of the gallery and their plans; `gallery/tests/ocloc.rs` holds
//! the machine programs to them.

pub(crate) mod recipe;

use super::Rules;
use crate::machine::draft::Draft;
use crate::machine::program::Class;

/// Its habits.
pub(crate) const RULES: Rules = Rules {
    // A message without a destination is scheduled like others: it stays in its place, between its neighbours.
    // (`gather-hint-l3`: the load of the index, the next address, the hint, and only then the instructions that wait for the
    // index.)
    hints_last: false,
    loads_sunk: false,
    loads_behind_shuffles: false,
    // Each load has a token of its own (`$0` to `$15`).
    uses_before_loads: false,
    leaving_values_apart: false,
    pointers_in_constants: false,
    loops_unrolled: false,
    // `gather-hint-l1` jumps over its hint (`jmpi`, or `goto` where lanes part); IGC does not put predicates on messages.
    predicated_messages: false,
    // `(W) add (1|M0)`.
    scalar_instructions: true,
    // A comparison and a choice (`cmp (ne)`, `sel`) in front of a store.
    canonical_nans: true,
};

/// 32-bit registers that IGC takes besides those for the kernel's values: the thread's header, addresses of messages, losses to
/// pieces of 64 bytes. Fitted to the most live registers in its listings for 146 kernels and plans of the gallery.
pub(crate) const OVERHEAD: u32 = 4;

/// Registers of 64 bytes, of the 128 that a thread has, up to which it schedules for latency (`-presched-rp 100`).
pub(crate) const COMFORTABLE: (u32, u32) = (100, 128);

/// Where several scopes end together, one `join` brings the lanes of all together.
pub(crate) fn join_once(drafts: &mut [Draft]) {
    let mut joins_behind = false;
    for draft in drafts.iter_mut().rev() {
        match draft.class {
            Class::None => {}
            Class::Reconverge if joins_behind && draft.fixed => draft.class = Class::None,
            class => joins_behind = class == Class::Reconverge,
        }
    }
}
