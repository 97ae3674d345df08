//! The tests that leave loops: at the start of a body, where a loop is turned around, or at its end, where it already is.
//!
//! ```text
//! loop { if done { break } … continue }      leading
//! loop { … if done { break } continue }      trailing
//! ```

use super::small_ifs::cost;
use crate::ir::{Kernel, Label, Op, OpKind, Region, Value};

/// A test at the start of a loop's body that leaves the loop.
pub(super) struct LeadingTest<'k> {
    /// The operations that compute the condition.
    pub ops: &'k [Op],
    pub cond: Value,
    /// Leaves where the condition has this value.
    pub leaves_if: bool,
    /// The values that it passes on leaving.
    pub values: &'k [Value],
    /// The label and the side of the `if` that stays, if it holds the loop's body.
    pub staying: Option<(Label, &'k Region)>,
}

/// Finds the test that a loop starts with, if it is short enough to be written twice.
pub(super) fn leading_test<'k>(kernel: &Kernel, body: &'k Region, own: Label) -> Option<LeadingTest<'k>> {
    let end = body.ops.iter().position(|op| !op.kind.is_pure())?;
    let ops = &body.ops[..end];
    let OpKind::If {
        label,
        cond,
        then,
        otherwise,
    } = &body.ops[end].kind
    else {
        return None;
    };
    if ops.iter().map(|op| cost(kernel, &op.kind)).sum::<u32>() > 10 {
        return None;
    }
    for (leaving, staying, leaves_if) in [(then, otherwise, true), (otherwise, then, false)] {
        let [leave] = &leaving.ops[..] else { continue };
        let OpKind::Break(to, values) = &leave.kind else {
            continue;
        };
        if *to != own {
            continue;
        }
        let empty = only_yields_nothing(staying, *label);
        if empty || !breaks_to(staying, *label) {
            let staying = (!empty).then_some((*label, staying));
            return Some(LeadingTest {
                ops,
                cond: *cond,
                leaves_if,
                values,
                staying,
            });
        }
    }
    None
}

/// A test at the end of a loop's body: leave the loop, or start the next iteration.
pub(super) struct TrailingTest<'k> {
    /// The body in front of the test.
    pub before: &'k [Op],
    /// Pure operations between the test and the next iteration.
    pub after: &'k [Op],
    pub cond: Value,
    /// Starts the next iteration where the condition has this value.
    pub continues_if: bool,
    /// The values that it passes on leaving.
    pub left: &'k [Value],
    /// The values that it passes to the next iteration.
    pub continued: &'k [Value],
}

/// Finds the test that a loop ends with.
pub(super) fn trailing_test(body: &Region, own: Label) -> Option<TrailingTest<'_>> {
    let test = body
        .ops
        .iter()
        .rposition(|op| matches!(op.kind, OpKind::If { .. }))?;
    let OpKind::If {
        label,
        cond,
        then,
        otherwise,
    } = &body.ops[test].kind
    else {
        return None;
    };
    for (leaving, staying, continues_if) in [(then, otherwise, false), (otherwise, then, true)] {
        let [leave] = &leaving.ops[..] else { continue };
        let OpKind::Break(to, left) = &leave.kind else {
            continue;
        };
        if *to != own {
            continue;
        }
        // The next iteration starts in the side that stays, or behind an `if` whose side is empty.
        let empty = only_yields_nothing(staying, *label);
        let rest = if empty {
            &body.ops[test + 1..]
        } else {
            &staying.ops[..]
        };
        let (terminator, after) = rest.split_last()?;
        if let OpKind::Continue(to, continued) = &terminator.kind
            && *to == own
            && after.len() <= 16
            && after.iter().all(|op| op.kind.is_pure())
        {
            let before = &body.ops[..test];
            return Some(TrailingTest {
                before,
                after,
                cond: *cond,
                continues_if,
                left,
                continued,
            });
        }
    }
    None
}

/// Whether anything in a region breaks to this label.
fn breaks_to(region: &Region, label: Label) -> bool {
    let mut breaks = false;
    region.walk(&mut |op| breaks |= matches!(op.kind, OpKind::Break(to, _) if to == label));
    breaks
}

/// Whether a region does nothing but leave its own construct, with no results.
fn only_yields_nothing(region: &Region, own: Label) -> bool {
    match &region.ops[..] {
        [op] => matches!(&op.kind, OpKind::Break(to, values) if *to == own && values.is_empty()),
        _ => false,
    }
}

/// Whether a region's last operation continues this loop.
pub(super) fn ends_with_continue(region: &Region, label: Label) -> bool {
    matches!(region.ops.last().map(|op| &op.kind), Some(OpKind::Continue(to, _)) if *to == label)
}
