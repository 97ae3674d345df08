//! Which array of shared memory a descriptor leads into.
//!
//! A descriptor has the lowest 18 bits of an address, and here addresses tell their array by higher ones. So the array is that
//! from whose address the descriptor was computed, along any way that passes no memory.

use crate::ir::{Array, Kernel, Op, OpKind, Space, Value};

/// The only array of shared memory whose address a value may follow from; none if there are several or no such.
pub(crate) fn array_of(kernel: &Kernel, value: Value) -> Option<Array> {
    let shared = |array: &Array| {
        kernel
            .arrays
            .get(*array)
            .is_some_and(|data| data.space == Space::Shared)
    };
    let mut all = kernel.arrays.keys().filter(shared);
    if let (Some(only), None) = (all.next(), all.next()) {
        return Some(only);
    }
    let (mut found, mut seen, mut open) = (Vec::new(), vec![value], vec![value]);
    while let Some(value) = open.pop() {
        for source in sources(kernel, value) {
            match source {
                Source::Array(array) if !found.contains(&array) => found.push(array),
                Source::Value(from) if !seen.contains(&from) => {
                    seen.push(from);
                    open.push(from);
                }
                _ => {}
            }
        }
    }
    found.retain(shared);
    match found[..] {
        [only] => Some(only),
        _ => None,
    }
}

enum Source {
    Array(Array),
    Value(Value),
}

/// What a value is computed from.
fn sources(kernel: &Kernel, value: Value) -> Vec<Source> {
    let mut found = Vec::new();
    let mut labels = Vec::new();
    kernel.body.walk(&mut |op: &Op| {
        if let OpKind::Loop {
            label,
            params,
            initial,
            ..
        } = &op.kind
            && let Some(at) = params.iter().position(|&param| param == value)
        {
            found.extend(initial.get(at).map(|&from| Source::Value(from)));
            labels.push((*label, at, true));
        }
        let Some(at) = op.results.iter().position(|&result| result == value) else {
            return;
        };
        match &op.kind {
            OpKind::ArrayAddress(array) => found.push(Source::Array(*array)),
            OpKind::Block { label, .. } | OpKind::Loop { label, .. } | OpKind::If { label, .. } => {
                labels.push((*label, at, false));
            }
            OpKind::Load { .. } | OpKind::Atomic { .. } => {}
            kind => kind.for_each_operand(|from| found.push(Source::Value(from))),
        }
    });
    for (wanted, at, continues) in labels {
        kernel.body.walk(&mut |op: &Op| match &op.kind {
            OpKind::Break(label, values) if *label == wanted && !continues => {
                found.extend(values.get(at).map(|&from| Source::Value(from)));
            }
            OpKind::Continue(label, values) if *label == wanted && continues => {
                found.extend(values.get(at).map(|&from| Source::Value(from)));
            }
            _ => {}
        });
    }
    found
}
