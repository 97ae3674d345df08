//! The bounds of memory that hints to L1 are checked against: such a hint is a copy, which may not lead beyond.

use super::{L1Hint, Options};
use crate::ir::{CacheHint, CacheLevel, Kernel, OpKind, Value};
use crate::roots::Roots;

/// Whether the memory behind this pointer has bounds that an L1 hint can be checked against.
pub(super) fn has_bounds(kernel: &Kernel, roots: &Roots, ptr: Value) -> bool {
    let facts = roots
        .of(ptr)
        .and_then(|root| kernel.param_of(root))
        .and_then(|param| param.facts);
    facts.is_some_and(|facts| facts.length.is_some() && facts.align >= 4)
}

/// Whether a prefetch becomes a copy under a bounds check.
pub(super) fn is_copied(
    kernel: &Kernel,
    roots: &Roots,
    ptr: Value,
    hint: CacheHint,
    options: &Options,
) -> bool {
    hint.level == CacheLevel::L1 && options.l1 == L1Hint::Copy && has_bounds(kernel, roots, ptr)
}

/// The starts and lengths of memory that bounds checks read, beside the operands of the kernel's operations.
pub(super) fn read_by_bounds_checks(kernel: &Kernel, roots: &Roots, options: &Options) -> Vec<Value> {
    let mut read = Vec::new();
    kernel.body.walk(&mut |op| {
        if let OpKind::Prefetch { ptr, hint, .. } = op.kind
            && is_copied(kernel, roots, ptr, hint, options)
            && let Some(root) = roots.of(ptr)
        {
            let facts = kernel.param_of(root).and_then(|param| param.facts);
            read.push(root);
            read.extend(facts.and_then(|facts| facts.length));
        }
    });
    read
}
