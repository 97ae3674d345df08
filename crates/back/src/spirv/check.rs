//! Kernels that no OpenCL device runs as the IR specifies.

use super::Options;
use super::emitter::unlike_opencl;
use crate::ir::{AtomicOp, Kernel, Meeting, Op, OpKind, Place, Region, Rounding, Space, Type};
use crate::{Error, Result};

/// The mask of all work-items of a sub-group.
const EVERYBODY: u64 = 0xffff_ffff;

/// Most bytes of private arrays: Intel's GPUs' limit for a work-item's scratch space.
const MOST_PRIVATE: u64 = 128 << 10;

/// Checks a kernel.
///
/// # Errors
/// - A parameter points to shared or private memory, or a parameter is a token: a launch has nothing to give it.
/// - A work-item may return while others still meet at a barrier: OpenCL wants all of them there.
/// - Some sub-groups of a work-group meet at a barrier of their own: OpenCL has that only as an extension.
/// - A work-item ends the launch with an error, launches overlap, it asks who runs with it, or an operation does not
///   round to nearest.
/// - A part of a sub-group does something together: OpenCL's shuffles and votes are of all work-items.
/// - A sub-group size was asked for that is none of Intel's, or a number of registers.
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
    if let Some(registers) = kernel.max_registers {
        return Err(Error::device(format!(
            "`{}` is to have {registers} registers a work-item at most",
            kernel.name
        ))
        .accepted("OpenCL has nothing like that; `tune` tries Intel's register files beside the plan"));
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
    let mut refused = None;
    kernel.body.walk(&mut |op| {
        let what = match &op.kind {
            kind if is_odd_atomic(kernel, kind) => {
                Some("has an atomic operation on halves, on several values, or that wraps at a bound")
            }
            kind if kind.rule().rounding != Rounding::Nearest => Some("rounds other than to nearest"),
            kind => unlike_opencl(kind),
        };
        refused = refused.or(what);
    });
    if let Some(what) = refused {
        return Err(
            Error::device(format!("`{}` {what}", kernel.name)).accepted("OpenCL has nothing like that")
        );
    }
    let mut partial = None;
    kernel.body.walk(&mut |op| {
        let named = op.kind.mask().map(|mask| kernel.as_constant(mask));
        if named.is_some_and(|mask| mask != Some(EVERYBODY)) {
            partial.get_or_insert(op.place);
        }
    });
    if let Some(place) = partial {
        return Err(Error::device(format!(
            "a part of a sub-group of `{}` shuffles, votes or meets",
            kernel.name
        ))
        .at(kernel.describe_place(place))
        .accepted("no mask, or the constant mask -1: in OpenCL all work-items of a sub-group take part"));
    }
    if let Some(place) = returns_before(&kernel.body, false, &|kind| kind.mask().is_some()) {
        return Err(Error::device(format!(
            "a work-item of `{}` may return while others wait for it to shuffle, vote or meet",
            kernel.name
        ))
        .at(kernel.describe_place(place))
        .accepted(
            "in OpenCL all work-items of a sub-group must take part: put the code of the others into an `if`",
        ));
    }
    let barrier = |kind: &OpKind| kind.effects().meets_work_group();
    if let Some(place) = returns_before(&kernel.body, false, &barrier) {
        return Err(Error::device(format!(
            "a work-item of `{}` may return while others wait at a barrier",
            kernel.name
        ))
        .at(kernel.describe_place(place))
        .accepted(
            "OpenCL requires every work-item of the group at every barrier: put the code of the others into an `if`, and the barriers outside",
        ));
    }
    Ok(())
}

/// Whether an atomic operation is none of OpenCL's.
fn is_odd_atomic(kernel: &Kernel, kind: &OpKind) -> bool {
    let OpKind::Atomic { op, values, .. } = kind else {
        return false;
    };
    match op {
        AtomicOp::FAddHalves | AtomicOp::FAddBrainHalves | AtomicOp::IncrementU | AtomicOp::DecrementU => {
            true
        }
        AtomicOp::FAdd => values.len() > 1 || values.iter().any(|&value| kernel.ty(value).bits() == 16),
        _ => values.len() > op.operands(),
    }
}

/// The first place where a work-item returns although a barrier in `waits` may still come, for itself or for those on another
/// path. `later`: one comes behind the region.
fn returns_before(region: &Region, later: bool, waits: &dyn Fn(&OpKind) -> bool) -> Option<Place> {
    let waits_in = |op: &Op| {
        let mut found = waits(&op.kind);
        for region in op.kind.regions() {
            region.walk(&mut |op| found |= waits(&op.kind));
        }
        found
    };
    for (at, op) in region.ops.iter().enumerate() {
        if matches!(op.kind, OpKind::Return) && later {
            return Some(op.place);
        }
        // A loop may repeat its operations.
        let again = matches!(op.kind, OpKind::Loop { .. }) && waits_in(op);
        let later = later || again || region.ops[at + 1..].iter().any(waits_in);
        for (number, inner) in op.kind.regions().enumerate() {
            let mut others = op.kind.regions().enumerate();
            let beside = others.any(|(other, region)| other != number && region.ops.iter().any(waits_in));
            if let Some(place) = returns_before(inner, later || beside, waits) {
                return Some(place);
            }
        }
    }
    None
}

fn has(kernel: &Kernel, wanted: impl Fn(&OpKind) -> bool) -> bool {
    let mut found = false;
    kernel.body.walk(&mut |op| found |= wanted(&op.kind));
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spirv::SpirvTarget;

    fn checked(body: &str) -> Result<()> {
        let text = format!("hsir 1\nkernel @k(%n: i32) {{\n  %c = lt.s %n, 0:i32\n{body}\n  return\n}}\n");
        let kernel = crate::ir::parse(&text, "k.hsir").unwrap_or_else(|error| panic!("{error}"));
        check(&kernel, &Options::new(SpirvTarget::Portable))
    }

    #[test]
    fn a_return_is_refused_only_before_a_barrier() {
        checked("  if %c {\n    return\n  } else {\n    yield\n  }").expect("there is no barrier");
        checked("  barrier\n  if %c {\n    return\n  } else {\n    yield\n  }")
            .expect("the barrier came before");
        let error =
            checked("  if %c {\n    return\n  } else {\n    yield\n  }\n  barrier").expect_err("it comes");
        assert!(error.to_string().contains("others wait at a barrier"), "{error}");
        checked("  if %c {\n    return\n  } else {\n    barrier\n    yield\n  }").expect_err("others wait");
    }
}
