//! `inner:N` — iterations of a loop inside become part of the loop around it.
//!
//! ```text
//! before                             after, N = 4
//! loop (%t = 0) {                    loop (%t = 0) {
//!   loop (%i = %item) {                %x0 = load %t, %item;       use %x0
//!     %x = load %t, %i; use %x         %x1 = load %t, %item + 64;  use %x1
//!     (test of %i + 64)                %x2 = load %t, %item + 128; use %x2
//!     continue %i + 64                 %x3 = load %t, %item + 192; use %x3
//!   }
//!   (compute)                          (compute)
//!   continue %t + 1                    continue %t + 1
//! }                                  }
//! ```
//!
//! Loops that bring a tile to shared memory are short: what they load can only be early as loads of the loop around them. The tests
//! go where every work-item is known to make the same number of iterations, at most N; elsewhere each iteration keeps its tests, and the
//! loop follows behind for what is left. The other parts of a plan are for what comes of it.

use super::apply::Loads;
use super::candidate::Candidate;
use super::loads::{find_loop, replace_loop, resolve};
use super::pipeline::fits;
use super::plan::Plan;
use super::planned::PlanTarget;
use super::unroll::written_out;
use crate::analysis::definitions::Definitions;
use crate::analysis::loops::{CountedExit, Relation, Step, summarize};
use crate::analysis::ranges::range;
use crate::cleanup;
use crate::error::{Error, Result};
use crate::ir::eval::signed;
use crate::ir::{Kernel, Label, Op, OpKind, Region, Value, verify};

/// A loop whose iterations become part of the one around it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InnerLoop {
    /// Its label.
    pub label: Label,
    /// That of the loop around it.
    pub around: Label,
    /// How many iterations.
    pub iterations: u32,
    /// They are all that there are, for every work-item.
    pub are_all: bool,
}

impl Loads<'_> {
    /// The loops inside others whose iterations a plan makes part of those.
    ///
    /// # Errors
    /// There are none, or the plan names loads that are not there.
    pub fn inner_loops(&self, plan: &Plan, target: &PlanTarget) -> Result<Vec<InnerLoop>> {
        let most = plan.inner().unwrap_or(0);
        let kernel = self.kernel();
        let mut meant = Vec::new();
        for (name, _) in plan.loads() {
            meant.extend(resolve(kernel, self.all(), name)?);
        }
        let meant: Vec<Label> = match plan.loads() {
            [] => self.all().iter().map(|load| load.looped).collect(),
            _ => meant.into_iter().map(|load| load.looped).collect(),
        };
        let sized = sized(kernel, target);
        let definitions = Definitions::of(&sized);
        let mut found = Vec::new();
        for (label, around) in innermost(&kernel.body, None) {
            if !meant.contains(&label) || kernel.labels[label].is_called {
                continue;
            }
            let op = find_loop(&sized.body, label).ok_or_else(|| Error::bug("a loop that is not there"))?;
            // The last one of a loop that tests first ends at its test.
            let is_short =
                |(all, exit): &(u64, CountedExit)| all - u64::from(exit.leading) <= u64::from(most);
            let all = all_iterations(&sized, &definitions, op).filter(is_short);
            found.push(InnerLoop {
                label,
                around,
                iterations: all.map_or(most, |(all, _)| all as u32),
                are_all: all.is_some(),
            });
        }
        match found.is_empty() {
            false => Ok(found),
            true => Err(Error::usage("no loop inside another one has the plan's loads")
                .accepted("a plan without `inner:N`")),
        }
    }

    /// The other parts of a plan, for `flat`, in which iterations of loops inside are part of those around: the loads of a loop inside are
    /// named as those of the loop around it.
    ///
    /// # Errors
    /// As [`Loads::inner_loops`], or a load of the plan is none of the loop around.
    pub fn in_loops_around(&self, plan: &Plan, target: &PlanTarget, flat: &Loads<'_>) -> Result<Plan> {
        let inner = self.inner_loops(plan, target)?;
        let mut other = plan.clone().with_inner(None).without_loads();
        for (name, strategy) in plan.loads() {
            for load in resolve(self.kernel(), self.all(), name)? {
                let around = inner
                    .iter()
                    .find(|own| own.label == load.looped)
                    .map(|own| own.around);
                let looped = loop_name(self.kernel(), around.unwrap_or(load.looped));
                let is_it = |own: &&Candidate| {
                    own.name.param() == name.param() && own.place == load.place && own.loop_name == looped
                };
                let own = flat.all().iter().find(is_it).ok_or_else(|| {
                    Error::usage(format!("`{name}` is no load of the loop around its own"))
                        .accepted("plans without `inner:N`, or for other loads")
                })?;
                if other.strategy(&own.name).is_none() {
                    other = other.with(own.name.clone(), *strategy)?;
                }
            }
        }
        Ok(other)
    }

    /// The kernel in which iterations of loops inside are part of the loops around them.
    ///
    /// # Errors
    /// As [`Loads::inner_loops`], or it would be too much code.
    pub(super) fn flattened(&self, plan: &Plan, target: &PlanTarget) -> Result<Kernel> {
        let mut kernel = sized(self.kernel(), target);
        for InnerLoop {
            label,
            iterations,
            are_all,
            ..
        } in self.inner_loops(plan, target)?
        {
            let definitions = Definitions::of(&kernel);
            replace_loop(&mut kernel, label, |kernel, op| {
                if let OpKind::Loop { body, .. } = &op.kind {
                    fits(kernel, op.place, body, iterations)?;
                }
                let summary = summarize(kernel, &definitions, &op);
                let exit = summary.counting().filter(|_| are_all);
                written_out(kernel, &op, &summary, u64::from(iterations), exit.as_ref())
            })?;
        }
        cleanup::tidy(&mut kernel);
        verify::verify_derived(&kernel)?;
        Ok(kernel)
    }
}

fn loop_name(kernel: &Kernel, label: Label) -> Option<String> {
    kernel.labels[label].name.clone()
}

/// A kernel for work-groups of the target's size.
fn sized(kernel: &Kernel, target: &PlanTarget) -> Kernel {
    let mut kernel = kernel.clone();
    kernel.group_size = kernel.group_size.or(target.group_size);
    kernel
}

/// The loops inside others that have no loops inside, each with the one around it.
fn innermost(region: &Region, around: Option<Label>) -> Vec<(Label, Label)> {
    let mut found = Vec::new();
    for op in &region.ops {
        let own = match op.kind {
            OpKind::Loop { label, .. } => Some(label),
            _ => around,
        };
        let before = found.len();
        let mut has_loop = false;
        for inner in op.kind.regions() {
            inner.walk(&mut |op| has_loop |= matches!(op.kind, OpKind::Loop { .. }));
            found.extend(innermost(inner, own));
        }
        if let (OpKind::Loop { label, .. }, Some(around), false) = (&op.kind, around, has_loop) {
            found.truncate(before);
            found.push((*label, around));
        }
    }
    found
}

/// How many iterations a loop begins, if every work-item begins as many, with the test that counts them.
fn all_iterations(kernel: &Kernel, definitions: &Definitions, op: &Op) -> Option<(u64, CountedExit)> {
    let OpKind::Loop { initial, .. } = &op.kind else {
        return None;
    };
    let summary = summarize(kernel, definitions, op);
    let exit = summary.counting()?;
    let ty = kernel.ty(exit.bound);
    if kernel.ty(summary.params[exit.param]) != ty || !ty.is_integer() {
        return None;
    }
    // Below the sign bit both readings of a number agree.
    let most = i128::from(ty.mask() >> 1);
    let bounds = |value: Value| {
        let range = range(kernel, definitions, value);
        (i128::from(range.max) <= most).then_some((i128::from(range.min), i128::from(range.max)))
    };
    let (first, bound) = (bounds(initial[exit.param])?, bounds(exit.bound)?);
    let step = match summary.steps[exit.param] {
        Step::Constant(step) => i128::from(step),
        Step::Value { value, scale } => {
            let step = range(kernel, definitions, value);
            let one = (step.min == step.max).then_some(step.min)?;
            i128::from(signed(kernel.ty(value), one)) * i128::from(scale)
        }
        _ => return None,
    };
    // What is left of the way, at least and at most.
    let (least, largest, step) = match exit.relation {
        Relation::Less { or_equal, .. } if step > 0 => {
            let past = i128::from(or_equal);
            (bound.0 - first.1 + past, bound.1 - first.0 + past, step)
        }
        Relation::Greater { or_equal, .. } if step < 0 => {
            let past = i128::from(or_equal);
            (first.0 - bound.1 + past, first.1 - bound.0 + past, -step)
        }
        _ => return None,
    };
    // Tests that pass: the smallest p with (p + steps_ahead) * step >= way.
    let passed = |way: i128| ((way + step - 1).div_euclid(step) - i128::from(exit.steps_ahead)).max(0);
    let number = passed(least);
    let furthest = (number + i128::from(exit.steps_ahead)) * step;
    let fits = match exit.relation {
        Relation::Less { .. } => first.1 + furthest <= most,
        _ => first.0 - furthest >= 0,
    };
    match number == passed(largest) && fits {
        true => Some((u64::try_from(number).ok()? + 1, exit)),
        false => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is found of a loop that goes from the work-item's number in steps of the work-group's size, 32, while `test`.
    fn found(test: &str, most: u32) -> Vec<(u32, bool)> {
        found_from(0, test, most)
    }

    /// The same from so much more on.
    fn found_from(start: u32, test: &str, most: u32) -> Vec<(u32, bool)> {
        let text = format!(
            "hsir 1
             kernel @k(%p: ptr.global i32[] align 4, %n: i32) {{
               load @p
               %id = id.local.x
               %size = id.group_size.x
               %first = add %id, {start}:i32
               loop 'outer (%i = 0:i32) {{
                 %more = lt.s %i, %n
                 if %more {{ yield }} else {{ break }}
                 loop 'inner (%k = %first) {{
                   %wide = extend.s %k to i64
                   %at = address %p + %wide * 4
                   %x = load i32 %at, @p
                   store %at, %i
                   %next = add %k, %size
                   %again = {test}
                   if %again {{ yield }} else {{ break }}
                   continue 'inner %next
                 }}
                 %j = add.nsw %i, 1:i32
                 continue 'outer %j
               }}
               return
             }}"
        );
        let kernel = crate::ir::parse(&text, "k.hsir").expect("a kernel");
        let target = PlanTarget::of([32, 1, 1]);
        let plan = Plan::none().with_inner(Some(most));
        let found = Loads::of(&kernel)
            .inner_loops(&plan, &target)
            .expect("a loop inside");
        found.iter().map(|own| (own.iterations, own.are_all)).collect()
    }

    #[test]
    fn iterations_are_counted_where_every_work_item_has_as_many() {
        assert_eq!(found("lt.s %next, 96:i32", 8), [(3, true)]);
        assert_eq!(found("lt.u %next, 96:i32", 3), [(3, true)]);
        assert_eq!(found("le.s %next, 96:i32", 8), [(8, false)]);
        assert_eq!(found("le.s %next, 95:i32", 8), [(3, true)]);
        // More than are asked for, work-items with one more, a bound that is not known.
        assert_eq!(found("lt.s %next, 96:i32", 2), [(2, false)]);
        assert_eq!(found("lt.s %next, 97:i32", 8), [(8, false)]);
        assert_eq!(found("lt.s %next, %n", 8), [(8, false)]);
        // Before the sum passes this bound it is negative.
        assert_eq!(found_from(32, "lt.s %next, 128:i32", 8), [(3, true)]);
        assert_eq!(
            found_from(2147483551, "lt.s %next, 2147483647:i32", 8),
            [(8, false)]
        );
    }

    #[test]
    fn an_author_may_wish_for_it() {
        let text = include_str!("../../../headstart/tests/pass/inner/staged.hsir");
        let kernel = crate::ir::parse(text, "staged.hsir").expect("a kernel");
        let target = PlanTarget::of([32, 1, 1]);
        for plan in ["inner:2", "inner:2,p=rolling-registers:1"] {
            let mut wished = kernel.clone();
            wished.body.walk_mut(&mut |op| {
                if let OpKind::Loop { label, wishes, .. } = &mut op.kind
                    && kernel.labels[*label].name.as_deref() == Some("j")
                {
                    wishes.plan = Some(plan.to_owned());
                }
            });
            let wished = crate::carry_out_wishes(&wished, &target).expect("carried out");
            let mut planned = crate::apply(&kernel, &plan.parse().expect("a plan"), &target).expect("legal");
            // Wishes are tidied up after once more.
            cleanup::tidy(&mut planned.kernel);
            let shown = |kernel: &Kernel| {
                crate::ir::print(kernel)
                    .lines()
                    .skip(2)
                    .collect::<Vec<_>>()
                    .join("\n")
            };
            assert_eq!(shown(&wished), shown(&planned.kernel), "{plan}");
            // Every work-item stages two elements: nothing is left of the loop inside.
            assert!(!shown(&wished).contains("'stage"), "{plan}");
        }
    }
}
