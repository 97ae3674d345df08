//! Where work-items of a sub-group diverge, and how many are idle meanwhile.

use serde::Serialize;

use crate::analysis::uniform::Divergence;
use crate::ir::{Kernel, OpKind, Place, Region};

/// The cost of divergence.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Diverging {
    /// Work-items that an instruction acts on, of those of its sub-group, on average, 0 to 1.
    pub active: f64,
    /// Conditions in loops that may part a sub-group, ends of loops left out.
    pub conditions: u32,
    /// The one that the most code depends on: where it is written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub place: Option<String>,
}

impl Diverging {
    /// For a kernel with this fraction of active work-items per instruction; none if no condition can diverge.
    pub(crate) fn of(kernel: &Kernel, active: f64) -> Option<Diverging> {
        let divergence = Divergence::of(kernel);
        let mut found = DivergentBranches::default();
        found.region(&kernel.body, &divergence, 0);
        let (_, place) = found.largest?;
        Some(Diverging {
            active,
            conditions: found.in_loops,
            place: Some(kernel.describe_place(place)).filter(|place| !place.is_empty()),
        })
    }
}

#[derive(Default)]
struct DivergentBranches {
    in_loops: u32,
    /// Operations, each counted as often as it is deep in loops, and the place.
    largest: Option<(u64, Place)>,
}

impl DivergentBranches {
    fn region(&mut self, region: &Region, divergence: &Divergence, depth: u32) {
        for op in &region.ops {
            let deeper = depth + u32::from(matches!(op.kind, OpKind::Loop { .. }));
            if let OpKind::If {
                cond,
                then,
                otherwise,
                ..
            } = &op.kind
                && divergence.differs(*cond)
                // Where neither side does more than to go on or to leave, it is the test of a loop.
                && size(then) + size(otherwise) > 2
            {
                let weight = (size(then) + size(otherwise)) << (4 * depth.min(8));
                if self.largest.is_none_or(|(most, _)| weight > most) {
                    self.largest = Some((weight, op.place));
                }
                self.in_loops += u32::from(depth > 0);
            }
            for inner in op.kind.regions() {
                self.region(inner, divergence, deeper);
            }
        }
    }
}

fn size(region: &Region) -> u64 {
    let mut operations = 0;
    region.walk(&mut |_| operations += 1);
    operations
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir;

    fn of(body: &str) -> Option<Diverging> {
        let text = format!(
            "hsir 1\nkernel @k(\n  %to: ptr.global i32[%to_length] align 4 unaliased,\n  %to_length: i64,\n  %n: i32,\n) {{\n  \
             %l = id.local.x\n{body}\n  return\n}}\n"
        );
        Diverging::of(&ir::parse(&text, "k.hsir").expect("a kernel"), 0.5)
    }

    #[test]
    fn only_what_parts_a_sub_group_counts() {
        let branch = |cond: &str| {
            format!(
                "  %c = lt.u {cond}, 7:i32\n  %x = if %c -> i32 {{ %y = mul %l, 3:i32\n yield %y }} else {{ yield %l }}\n  \
                 %w = extend.u %l to i64\n  %a = address %to + %w * 4\n  store %a, %x"
            )
        };
        assert!(of(&branch("%l")).is_some());
        // All go the same way.
        assert_eq!(of(&branch("%n")), None);
    }
}
