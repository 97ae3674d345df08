//! The element offset of Intel's functions.

use super::state::recorder;
use super::{At, Recorded};
use crate::Error;
use crate::ir::Value;
use crate::lang::pointer::{Global, Ptr};

/// `base` moved by `offset` elements of this many bytes. The offset is part of the instruction, so it must be known.
pub(crate) fn moved<T>(
    at: At,
    base: Recorded<Ptr<'_, T, Global>>,
    offset: Recorded<i32>,
    bytes: u32,
) -> Value {
    recorder(|recorder| {
        let Some(offset) = recorder.kernel.as_constant(offset.value) else {
            let error = Error::input("the element offset is computed when the kernel runs")
                .accepted("a constant; move the pointer for anything else: `p.add(n)`");
            recorder.fail(at, error);
            return base.value;
        };
        let offset = i64::from(offset as u32 as i32) * i64::from(bytes);
        let moved = recorder.build(at, |b| {
            let zero = b.i64(0);
            b.address(base.value, zero, 1, offset)
        });
        if let Some(&root) = recorder.pointer_roots.get(&base.value) {
            recorder.pointer_roots.insert(moved, root);
        }
        moved
    })
}
