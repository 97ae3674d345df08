//! Whether a kernel may be launched with another work-group size: its work-items use only their global ids.
//!
//! If a work-item's local ids occur only as `group × size + number`, which is its global id, and nothing is shared, waited for
//! or exchanged in a work-group, then the same global range gives the same results with any work-group size.

use std::collections::HashMap;

use crate::ir::{BinaryOp, ConvertOp, Id, Kernel, OpKind, Space, Value};

/// Along one dimension: parts of a work-item's number in the launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    /// Its number in the work-group.
    Local(u8),
    /// The work-group's number.
    Group(u8),
    /// Work-items of the work-group.
    Size(u8),
    /// Work-groups of the launch.
    Count(u8),
    /// The work-items before those of its work-group.
    Before(u8),
    /// Values independent of the division of the launch: the global id, or the global range.
    Whole,
}

/// Whether every launch of the kernel may be divided into work-groups in another way without another result.
pub fn may_be_divided_otherwise(kernel: &Kernel) -> bool {
    if kernel.group_size.is_some() || kernel.arrays.values().any(|array| array.space == Space::Shared) {
        return false;
    }
    let mut parts: HashMap<Value, Part> = HashMap::new();
    let mut fits = true;
    kernel.body.walk(&mut |op| {
        let mut own = None;
        match &op.kind {
            OpKind::Id(id) => match *id {
                Id::Local(axis) => own = Some(Part::Local(axis)),
                Id::Group(axis) => own = Some(Part::Group(axis)),
                Id::GroupSize(axis) => own = Some(Part::Size(axis)),
                Id::GroupCount(axis) => own = Some(Part::Count(axis)),
                _ => fits = false,
            },
            OpKind::Convert(ConvertOp::ExtendU | ConvertOp::ExtendS, value) => {
                own = parts.get(value).copied();
            }
            OpKind::Binary(..) | OpKind::NoWrap(..) => {
                let (binary, x, y) = match &op.kind {
                    OpKind::NoWrap(binary, _, x, y) => (BinaryOp::from(*binary), x, y),
                    OpKind::Binary(binary, x, y) => (*binary, x, y),
                    _ => return,
                };
                let (x, y) = (parts.get(x), parts.get(y));
                own = joined(binary, x, y);
                fits &= own.is_some() || (is_free(x) && is_free(y));
            }
            kind => {
                // A text may ask for the work-item's numbers.
                fits &= !kind.effects().meets() && !matches!(kind, OpKind::Opaque(..));
                kind.for_each_operand(|value| fits &= is_free(parts.get(&value)));
            }
        }
        if let (Some(part), [result]) = (own, op.results.as_slice()) {
            parts.insert(*result, part);
        }
    });
    fits
}

/// The combination of two parts, if it is a known one.
fn joined(binary: BinaryOp, x: Option<&Part>, y: Option<&Part>) -> Option<Part> {
    let (one, other) = (*x?, *y?);
    let of = |one, other| match (binary, one, other) {
        (BinaryOp::Mul, Part::Group(a), Part::Size(b)) if a == b => Some(Part::Before(a)),
        (BinaryOp::Mul, Part::Count(a), Part::Size(b)) if a == b => Some(Part::Whole),
        (BinaryOp::Add, Part::Before(a), Part::Local(b)) if a == b => Some(Part::Whole),
        _ => None,
    };
    of(one, other).or_else(|| of(other, one))
}

/// Whether a value may be used for anything.
fn is_free(part: Option<&Part>) -> bool {
    matches!(part, None | Some(Part::Whole))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir;

    fn kernel(header: &str, body: &str) -> Kernel {
        let text = format!(
            "hsir 1\nkernel @k(\n  %to: ptr.global i32[%to_length] align 4 unaliased,\n  %to_length: i64,\n) {header}{{\n{body}\n  \
             return\n}}\n"
        );
        ir::parse(&text, "k.hsir").expect("a kernel")
    }

    const GLOBAL: &str = "  %g = id.group.x\n  %s = id.group_size.x\n  %l = id.local.x\n  %b = mul %g, %s\n  %i = add %b, %l\n  \
                          %w = extend.u %i to i64\n  %a = address %to + %w * 4";

    #[test]
    fn a_number_in_the_launch_stays_what_it_is() {
        assert!(may_be_divided_otherwise(&kernel(
            "",
            &format!("{GLOBAL}\n  store %a, %i")
        )));
        // The stored values distinguish the work-groups.
        for told in ["%l", "%g", "%s", "%b"] {
            let body = format!("{GLOBAL}\n  store %a, {told}");
            assert!(!may_be_divided_otherwise(&kernel("", &body)), "{told}");
        }
    }

    #[test]
    fn what_a_work_group_does_together_keeps_its_size() {
        assert!(!may_be_divided_otherwise(&kernel(
            "",
            &format!("{GLOBAL}\n  barrier\n  store %a, %i")
        )));
        let size = kernel("group 64,1,1 ", &format!("{GLOBAL}\n  store %a, %i"));
        assert!(!may_be_divided_otherwise(&size));
        let lane = kernel("", &format!("{GLOBAL}\n  %x = id.lane\n  store %a, %x"));
        assert!(!may_be_divided_otherwise(&lane));
    }
}
