//! The bounds of memory that hints to L1 are checked against: such a hint is a copy, which may not lead beyond.

use crate::ir::{CacheHint, CacheLevel, Kernel, OpKind, Type, Value};
use crate::roots::Roots;

/// Where memory begins and ends.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    /// The pointer to its first element, which a word of four bytes may start at.
    pub start: Value,
    /// The number of its elements, an `I64`.
    pub length: Value,
    pub element: Type,
}

impl Bounds {
    /// Those of the memory behind a pointer, if they are known.
    pub(super) fn of(kernel: &Kernel, roots: &Roots, ptr: Value) -> Option<Bounds> {
        let start = roots.of(ptr)?;
        let facts = kernel.param_of(start)?.facts.filter(|facts| facts.align >= 4)?;
        Some(Bounds {
            start,
            length: facts.length?,
            element: facts.element,
        })
    }

    /// The same for a prefetch that becomes a copy; none for others.
    pub(super) fn of_copy(kernel: &Kernel, roots: &Roots, ptr: Value, hint: CacheHint) -> Option<Bounds> {
        Bounds::of(kernel, roots, ptr).filter(|_| hint.level == CacheLevel::L1)
    }
}

/// The starts and lengths that bounds checks read, beside the operands of the kernel's operations.
pub(super) fn read_by_bounds_checks(kernel: &Kernel, roots: &Roots) -> Vec<Value> {
    let mut read = Vec::new();
    kernel.body.walk(&mut |op| {
        if let OpKind::Prefetch { ptr, hint, .. } = op.kind
            && let Some(bounds) = Bounds::of_copy(kernel, roots, ptr, hint)
        {
            read.extend([bounds.start, bounds.length]);
        }
    });
    read
}
