//! The sizes of the cells in which accesses are recorded.

use crate::functional::carried;
use crate::ir::{Kernel, OpKind, Space, Value};

/// The cell size of each memory, as a power of two.
#[derive(Clone, Copy, Debug)]
pub(in crate::functional) struct CellSizes {
    pub global: u32,
    pub shared: u32,
}

impl CellSizes {
    /// The smallest access to each memory. In global memory a vector counts as one access, since it is aligned to its size.
    pub(super) fn new(kernel: &Kernel) -> CellSizes {
        let mut smallest = CellSizes { global: 4, shared: 3 };
        let mut use_of = |space: Option<Space>, element: u32, length: usize| {
            let bits = |bytes: u32| bytes.max(1).trailing_zeros();
            if !matches!(space, Some(Space::Shared | Space::Private)) {
                smallest.global = smallest.global.min(bits(element * length as u32));
            }
            if !matches!(space, Some(Space::Global | Space::Private)) {
                smallest.shared = smallest.shared.min(bits(element));
            }
        };
        kernel.body.walk(&mut |op| {
            let element = |value: Option<&Value>| value.map_or(1, |&value| kernel.ty(value).bytes());
            match &op.kind {
                OpKind::Load { ptr, .. } => {
                    let element = element(op.results.first());
                    use_of(kernel.ty(*ptr).space(), element, op.results.len());
                }
                OpKind::Store { ptr, values, .. } => {
                    use_of(kernel.ty(*ptr).space(), element(values.first()), values.len());
                }
                OpKind::Atomic { ptr, values, .. } => {
                    let element = element(op.results.first().or(values.first()));
                    use_of(kernel.ty(*ptr).space(), element, 1);
                }
                // The driver's functions read byte by byte.
                OpKind::Opaque(what, _) => match carried::smallest_access(what) {
                    None => use_of(None, 1, 1),
                    Some(Some(bytes)) => use_of(Some(Space::Shared), bytes, 1),
                    Some(None) => {}
                },
                OpKind::Copy { bytes, .. } => {
                    use_of(Some(Space::Global), *bytes, 1);
                    use_of(Some(Space::Shared), 4, 1);
                }
                _ => {}
            }
        });
        smallest
    }
}
