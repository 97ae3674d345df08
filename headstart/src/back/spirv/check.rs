//! What no OpenCL device runs as the IR means it.

use super::Options;
use crate::ir::{Kernel, Meeting, OpKind, Region, Space, Type};
use crate::{Error, Result};

/// Most bytes of private arrays: what Intel's GPUs have for a work-item's scratch space.
const MOST_PRIVATE: u64 = 128 << 10;

/// Checks a kernel.
///
/// # Errors
/// - A parameter points to shared or private memory, or a parameter is a token: a launch has nothing to give it.
/// - A work-item may return while others still meet at a barrier: OpenCL wants all of them there.
/// - Some sub-groups of a work-group meet at a barrier of their own: OpenCL has that only as an extension.
/// - A sub-group size was asked for that is none of Intel's.
pub(super) fn check(kernel: &Kernel, options: &Options) -> Result<()> {
    for param in &kernel.params {
        let ty = kernel.ty(param.value);
        if matches!(ty, Type::Ptr(Space::Shared | Space::Private) | Type::Token) {
            return Err(Error::device(format!(
                "parameter `{}` of `{}` is a `{ty}`",
                param.name, kernel.name
            ))
            .accepted("OpenCL passes numbers and buffers"));
        }
    }
    let size = kernel.sub_group_size.or(options.sub_group_size);
    if let Some(size) = size.filter(|size| ![4, 8, 16, 32, 64].contains(size)) {
        return Err(Error::device(format!(
            "`{}` requires sub-groups of {size} work-items",
            kernel.name
        ))
        .accepted("OpenCL devices have 4, 8, 16, 32 or 64"));
    }
    if kernel.private_bytes() > MOST_PRIVATE {
        return Err(Error::device(format!(
            "the arrays of `{}` take {} bytes a work-item",
            kernel.name,
            kernel.private_bytes()
        ))
        .accepted(format!("at most {MOST_PRIVATE}")));
    }
    if has(kernel, |kind| matches!(kind, OpKind::Meet(Meeting::Named { .. }))) {
        return Err(Error::device(format!(
            "some sub-groups of `{}` meet at a barrier of their own",
            kernel.name
        ))
        .accepted("OpenCL has barriers of sub-groups and of whole work-groups"));
    }
    if returns_early(&kernel.body) && has(kernel, |kind| matches!(kind, OpKind::Barrier)) {
        return Err(Error::device(format!(
            "a work-item of `{}` may return while others wait at a barrier",
            kernel.name
        ))
        .accepted("OpenCL wants every work-item of the group at every barrier"));
    }
    Ok(())
}

/// Whether anything but the kernel's last operation returns.
fn returns_early(body: &Region) -> bool {
    let mut early = false;
    for op in &body.ops {
        for region in op.kind.regions() {
            region.walk(&mut |op| early |= matches!(op.kind, OpKind::Return));
        }
    }
    early
}

fn has(kernel: &Kernel, wanted: impl Fn(&OpKind) -> bool) -> bool {
    let mut found = false;
    kernel.body.walk(&mut |op| found |= wanted(&op.kind));
    found
}
