//! Other amounts of dynamic shared memory.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::plain::Compiled;
use crate::ir::Kernel;
use crate::tune::subject::Subject;
use crate::tune::subject::workload::Workload;

/// Other amounts of dynamic shared memory, in bytes more or less.
const SHARED: [i64; 3] = [-16, 16, 256];

/// The names of the arrays whose size the launch says.
pub(super) fn dynamic_arrays(workload: &Workload) -> Vec<String> {
    let original = workload.original.iter();
    let arrays = original.flat_map(|original| &original.arrays);
    arrays
        .filter(|array| array.is_dynamic)
        .map(|array| array.name.clone())
        .collect()
}

/// The plain kernel for other amounts of dynamic shared memory; nothing where a kernel has none, or would be another one.
pub(super) fn other_shared(
    subject: &dyn Subject,
    workload: &Workload,
    plain: &Kernel,
    dynamic: &[String],
) -> BTreeMap<u32, Arc<Compiled>> {
    let Some(own) = workload
        .original
        .as_ref()
        .map(|original| original.dynamic_shared_bytes)
    else {
        return BTreeMap::new();
    };
    if own == 0 && dynamic.is_empty() {
        return BTreeMap::new();
    }
    let amounts: BTreeSet<u32> = SHARED
        .iter()
        .filter_map(|&more| u32::try_from(i64::from(own) + more).ok())
        .filter(|&bytes| bytes > 0)
        .collect();
    let read = |bytes: u32| {
        let kernel = subject.with_shared_bytes(bytes).ok()??;
        (kernel.params.len() == plain.params.len()).then(|| (bytes, Arc::new(Compiled::new(&kernel))))
    };
    amounts.into_iter().filter_map(read).collect()
}

/// A derived kernel as it runs with another amount of dynamic shared memory: the arrays are longer or shorter, and all
/// else is as it was written.
pub(super) fn with_shared(derived: &Kernel, dynamic: &[String], bytes: u32) -> Kernel {
    let mut kernel = derived.clone();
    for array in kernel.arrays.values_mut() {
        if dynamic.contains(&array.name) {
            array.length = bytes / array.element.bytes().max(1);
        }
    }
    kernel
}
