//! What a kernel's operations decide for all of its launches: what the engine tracks, and in which order work-groups run.

use super::CellSizes;
use crate::functional::address::Layout;
use crate::functional::order::Scopes;
use crate::functional::{atomics, flights};
use crate::ir::carried::{Carried, PhaseOperation};
use crate::ir::{CacheLevel, Kernel, OpKind, Space, VoteOp};

/// What a kernel's operations decide. To find it takes longer than a small launch.
#[derive(Clone, Debug)]
pub(in crate::functional) struct Traits {
    pub shared: Layout,
    pub private: Layout,
    pub cells: CellSizes,
    pub has_copies: bool,
    /// It has products of warp groups.
    pub has_products: bool,
    /// It prefetches to L1, and has fences that may empty it.
    pub has_fenced_prefetches: bool,
    /// Not only barriers order the work-items of a work-group.
    pub is_ordered: bool,
    pub scopes: Scopes,
    /// Work-groups may see each other's writes.
    pub in_order: bool,
    /// A work-item may wait in a loop for others.
    pub may_spin: bool,
    /// It names work-items of a sub-group by the bits of a mask.
    pub names_work_items: bool,
}

impl Traits {
    /// Those of a verified kernel.
    pub fn of(kernel: &Kernel) -> Traits {
        let in_order = atomics::depends_on_order(kernel);
        Traits {
            shared: Layout::new(kernel, Space::Shared),
            private: Layout::new(kernel, Space::Private),
            cells: CellSizes::new(kernel),
            has_copies: has_copies(kernel),
            has_products: flights::has_products(kernel),
            has_fenced_prefetches: has_fenced_prefetches(kernel),
            is_ordered: in_order || atomics::acquires(kernel),
            scopes: atomics::scopes(kernel),
            in_order,
            may_spin: atomics::may_spin(kernel),
            names_work_items: names_work_items(kernel),
        }
    }
}

/// Whether a kernel names work-items of a sub-group by the bits of a mask.
fn names_work_items(kernel: &Kernel) -> bool {
    let mut found = false;
    kernel.body.walk(&mut |op| {
        let is_ballot = matches!(op.kind, OpKind::Vote(VoteOp::Ballot, ..) | OpKind::Active);
        found |= is_ballot || op.kind.mask().is_some();
    });
    found
}

/// Whether a kernel prefetches to L1 and has fences that may empty it.
fn has_fenced_prefetches(kernel: &Kernel) -> bool {
    let (mut prefetches, mut fences) = (false, false);
    kernel.body.walk(&mut |op| match &op.kind {
        OpKind::Prefetch { hint, .. } => prefetches |= hint.level == CacheLevel::L1,
        OpKind::Fence(_, scope) => fences |= scope.is_wide(),
        _ => {}
    });
    prefetches && fences
}

/// Whether a kernel has asynchronous copies.
fn has_copies(kernel: &Kernel) -> bool {
    let mut found = false;
    kernel.body.walk(&mut |op| {
        found |= match &op.kind {
            OpKind::Copy { .. } => true,
            OpKind::Opaque(what, _) => matches!(
                &*what.does,
                Carried::Phase(step) if matches!(step.kind, PhaseOperation::Copy { .. })
            ),
            _ => false,
        };
    });
    found
}
