//! The attributes that the author put on loops.

use super::apply::apply_wish;
use super::loads::replace_loop;
use super::plan::Plan;
use super::planned::PlanTarget;
use super::unroll::unroll_fully;
use crate::cleanup;
use crate::error::Result;
use crate::ir::{Kernel, Label, LoopWishes, OpKind, Region, UnrollWish, verify};

/// Applies the author's requests for loops: `#[unroll]`, `#[unroll(N)]`, `#[prefetch("PLAN")]`. Inner loops come first. The
/// result has no requests left.
///
/// # Errors
/// A wish cannot be carried out: the message says why, and where.
pub fn carry_out_wishes(kernel: &Kernel, target: &PlanTarget) -> Result<Kernel> {
    let mut kernel = kernel.clone();
    while let Some((label, wishes)) = innermost_wish(&kernel.body) {
        clear_wishes(&mut kernel.body, label);
        if let Some(plan) = &wishes.plan {
            apply_wish(&mut kernel, label, wishes.unroll, plan, target)?;
        } else {
            match wishes.unroll {
                Some(UnrollWish::Full) => {
                    replace_loop(&mut kernel, label, |kernel, op| unroll_fully(kernel, &op, None))?
                }
                Some(UnrollWish::By(count)) if count > 1 => {
                    apply_wish(&mut kernel, label, None, &format!("unroll:{count}"), target)?;
                }
                _ => {}
            }
        }
        cleanup::tidy(&mut kernel);
    }
    verify::verify_derived(&kernel)?;
    Ok(kernel)
}

/// The authors' requests that change a kernel's loops, as plans.
pub fn wishes(kernel: &Kernel) -> Vec<Plan> {
    let mut plans = Vec::new();
    kernel.body.walk(&mut |op| {
        let OpKind::Loop { wishes, .. } = &op.kind else {
            return;
        };
        let unroll = match wishes.unroll {
            Some(UnrollWish::Full) => Some("unroll:full".to_owned()),
            Some(UnrollWish::By(count)) if count > 1 => Some(format!("unroll:{count}")),
            _ => None,
        };
        // An invalid plan is refused where it is applied.
        let asked = wishes.plan.iter().cloned().chain(unroll);
        plans.extend(asked.filter_map(|plan| plan.parse::<Plan>().ok()));
    });
    plans
}

/// The first loop with a wish that has no loop with one inside.
fn innermost_wish(region: &Region) -> Option<(Label, LoopWishes)> {
    for op in &region.ops {
        if let Some(found) = op.kind.regions().find_map(innermost_wish) {
            return Some(found);
        }
        if let OpKind::Loop { label, wishes, .. } = &op.kind
            && (wishes.plan.is_some() || !matches!(wishes.unroll, None | Some(UnrollWish::Auto)))
        {
            return Some((*label, wishes.clone()));
        }
    }
    None
}

fn clear_wishes(region: &mut Region, looped: Label) {
    region.walk_mut(&mut |op| {
        if let OpKind::Loop { label, wishes, .. } = &mut op.kind
            && *label == looped
        {
            *wishes = LoopWishes::default();
        }
    });
}
