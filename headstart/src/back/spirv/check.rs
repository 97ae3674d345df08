//! What no OpenCL device runs as the IR means it.

use super::Options;
use crate::ir::{Kernel, Meeting, Op, OpKind, Place, Region, Space, Type};
use crate::{Error, Result};

/// Most bytes of private arrays: what Intel's GPUs have for a work-item's scratch space.
const MOST_PRIVATE: u64 = 128 << 10;

/// Checks a kernel.
///
/// # Errors
/// - A parameter points to shared or private memory, or a parameter is a token: a launch has nothing to give it.
/// - A work-item may return while others still meet at a barrier: OpenCL wants all of them there.
/// - Some sub-groups of a work-group meet at a barrier of their own: OpenCL has that only as an extension.
/// - A work-item ends the launch with an error, or launches overlap.
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
    for (found, what) in [
        (
            has(kernel, |kind| matches!(kind, OpKind::Trap)),
            "ends its launch with an error",
        ),
        (
            has(kernel, |kind| matches!(kind, OpKind::Depend(_))),
            "overlaps with other launches",
        ),
    ] {
        if found {
            return Err(
                Error::device(format!("`{}` {what}", kernel.name)).accepted("OpenCL has nothing like that")
            );
        }
    }
    if let Some(place) = returns_before_a_barrier(&kernel.body, false) {
        return Err(Error::device(format!(
            "a work-item of `{}` may return while others wait at a barrier",
            kernel.name
        ))
        .at(kernel.describe_place(place))
        .accepted(
            "OpenCL wants every work-item of the group at every barrier: put what the others do alone into an `if`, \
             and the barriers outside",
        ));
    }
    Ok(())
}

/// The first place where a work-item returns although a barrier may still come, for itself or for those that went another
/// way. `later`: one comes behind the region.
fn returns_before_a_barrier(region: &Region, later: bool) -> Option<Place> {
    for (at, op) in region.ops.iter().enumerate() {
        if matches!(op.kind, OpKind::Return) && later {
            return Some(op.place);
        }
        // What a loop does it may do again.
        let again = matches!(op.kind, OpKind::Loop { .. }) && waits(op);
        let later = later || again || region.ops[at + 1..].iter().any(waits);
        for (number, inner) in op.kind.regions().enumerate() {
            let mut others = op.kind.regions().enumerate();
            let beside = others.any(|(other, region)| other != number && region.ops.iter().any(waits));
            if let Some(place) = returns_before_a_barrier(inner, later || beside) {
                return Some(place);
            }
        }
    }
    None
}

/// Whether there is a barrier of the work-group in an operation.
fn waits(op: &Op) -> bool {
    let mut inside = op.kind.regions();
    matches!(op.kind, OpKind::Barrier) || inside.any(|region| region.ops.iter().any(waits))
}

fn has(kernel: &Kernel, wanted: impl Fn(&OpKind) -> bool) -> bool {
    let mut found = false;
    kernel.body.walk(&mut |op| found |= wanted(&op.kind));
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::back::spirv::Target;

    fn checked(body: &str) -> Result<()> {
        let text = format!("hsir 1\nkernel @k(%n: i32) {{\n  %c = lt.s %n, 0:i32\n{body}\n  return\n}}\n");
        let kernel = crate::ir::parse(&text, "k.hsir").unwrap_or_else(|error| panic!("{error}"));
        check(&kernel, &Options::new(Target::Portable))
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
