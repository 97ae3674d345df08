//! The instructions that ptxas puts between loads from shared memory and asynchronous copies.
//!
//! Before: `LDS r4 … LDGSTS [r2], [r6]`.
//! After:  `LDS r4 … @!PT LDS RZ, [RZ]` three times, `LDGSTS [r2], [r6]`.
//!
//! In a stretch without jumps the first copy, and the first one behind each load from shared memory, has three loads in
//! front of it that load nothing: so ptxas 13.0 writes for sm_80 and for sm_90.

use super::draft::Draft;
use super::program::{Class, InstructionStep};
use super::target::Target;
use crate::ir::{CacheLevel, OpKind, Space};

/// Loads of nothing in front of a copy.
const LOADS: usize = 3;

/// Puts them in, after scheduling.
pub fn space_copies(target: &Target, drafts: &mut Vec<Draft>) {
    let to_scratch = |step: &InstructionStep| match step {
        InstructionStep::Op(op) => {
            matches!(op.kind, OpKind::Prefetch { hint, .. } if hint.level == CacheLevel::L1)
        }
        InstructionStep::Assign(_) => false,
    };
    let copies = |draft: &Draft| match draft.class {
        Class::AsyncCopy { .. } => true,
        Class::Prefetch => target.copies_to_scratch && draft.steps.iter().any(to_scratch),
        _ => false,
    };
    if !target.rules.copies_spaced || !drafts.iter().any(copies) {
        return;
    }
    let mut spaced = Vec::with_capacity(drafts.len() + LOADS);
    let mut is_apart = false;
    for draft in drafts.drain(..) {
        if copies(&draft) {
            if !is_apart {
                let nothing = Class::Load {
                    space: Space::Shared,
                    bytes: 4,
                };
                spaced.extend(std::iter::repeat_n(Draft::new(nothing, draft.place), LOADS));
            }
            is_apart = true;
        }
        let loads = matches!(
            draft.class,
            Class::Load {
                space: Space::Shared,
                ..
            }
        );
        if loads || matches!(draft.class, Class::Branch | Class::Reconverge | Class::Barrier) {
            is_apart = false;
        }
        spaced.push(draft);
    }
    *drafts = spaced;
}
