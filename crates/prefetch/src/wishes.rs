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
    // Loops that only have copies learn nothing from each other: they are tidied together, where a text has hundreds.
    let mut is_tidy = true;
    loop {
        let mut innermost = Vec::new();
        innermost_wishes(&kernel.body, &mut innermost);
        if innermost.is_empty() {
            break;
        }
        for (label, wishes) in innermost {
            clear_wishes(&mut kernel.body, label);
            let only_copies = wishes.plan.is_none() && matches!(wishes.unroll, Some(UnrollWish::By(_)));
            if !only_copies && !is_tidy {
                cleanup::tidy(&mut kernel);
            }
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
            is_tidy = false;
        }
        cleanup::tidy(&mut kernel);
        is_tidy = true;
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

/// The loops with a wish that have no loop with one inside, in the order of the text.
fn innermost_wishes(region: &Region, found: &mut Vec<(Label, LoopWishes)>) {
    for op in &region.ops {
        let before = found.len();
        op.kind
            .regions()
            .for_each(|region| innermost_wishes(region, found));
        if let OpKind::Loop { label, wishes, .. } = &op.kind
            && found.len() == before
            && (wishes.plan.is_some() || !matches!(wishes.unroll, None | Some(UnrollWish::Auto)))
        {
            found.push((*label, wishes.clone()));
        }
    }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::parse;

    #[test]
    fn what_is_to_stay_stays_beside_what_has_copies() {
        let counted = |label: &str, wish: &str| {
            format!(
                "  %s{label} = loop '{label} (%i{label} = 0:i32, %t{label} = 0:i32) -> i32 unroll {wish} {{\n    \
                 %m{label} = lt.s %i{label}, %n\n    if %m{label} {{ yield }} else {{ break %t{label} }}\n    \
                 %u{label} = add %t{label}, %i{label}\n    %j{label} = add.nsw %i{label}, 1:i32\n    \
                 continue %j{label}, %u{label}\n  }}\n"
            )
        };
        let loops = |wishes: [&str; 2]| {
            let [one, two] = wishes;
            let text = format!(
                "hsir 1\nkernel @k(%o: ptr.global i32[%l] align 4, %l: i64, %n: i32) {{\n{}{}  %both = add %sa, %sb\n  \
                 store %o, %both\n  return\n}}\n",
                counted("a", one),
                counted("b", two)
            );
            let kernel = parse(&text, "k.hsir").expect("it is right");
            let kernel = carry_out_wishes(&kernel, &PlanTarget::default()).expect("it is legal");
            let mut found = 0;
            kernel
                .body
                .walk(&mut |op| found += u32::from(matches!(op.kind, OpKind::Loop { .. })));
            found
        };
        assert_eq!(loops(["keep", "keep"]), 2);
        // The copies, and the loop for what is left of them.
        assert_eq!(loops(["4", "keep"]), 3);
        assert_eq!(loops(["4", "4"]), 4);
    }
}
