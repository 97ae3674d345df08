//! Loops that ptxas unrolls of its own accord.
//!
//! Before: a loop as nvcc leaves it, counted by a constant step, tested at its end, and short.
//!
//! ```text
//! loop 0 { load …; fma …; %k = add %k, 4; lt %k, %n; continue if … }
//! ```
//!
//! After: four iterations at a time, and the loop as it was for what is left over.
//!
//! ptxas 13.0 does so for sm_90 unless the text forbids it (`.pragma "nounroll"`). `corpus/` has 74 loops without inner jumps that
//! it may unroll; it unrolls 23 of them, all by 4. They are counted by a constant step, one jump leads back, which compares the
//! counter itself, and they have 45 instructions of PTX at most. Those that it leaves alone have a run-time step, compare a sum
//! with the counter in it, read a clock, leave by a jump of their own (`@%p bra exit; bra loop`, as clang writes them; it
//! unrolls two of 15 of these), or have 48 instructions or more: the front end for PTX, which counts them, says that such a loop
//! stays as it is.

use std::cell::OnceCell;

use crate::analysis::definitions::Definitions;
use crate::analysis::loops::{Step, summarize};
use crate::ir::effects::Memory;
use crate::ir::{Kernel, Label, Op, OpKind, UnrollWish, Value};
use crate::prefetch::{self, PlanTarget};

/// Iterations at a time.
const TIMES: u32 = 4;

/// Operations of a loop that is unrolled, at most.
const SHORT: usize = 46;

/// Unrolls what ptxas unrolls.
pub(super) fn unroll(kernel: Kernel) -> Kernel {
    let mut labels = Vec::new();
    let definitions = OnceCell::new();
    kernel.body.walk(&mut |op| {
        if let OpKind::Loop { label, .. } = &op.kind
            && is_unrolled(&kernel, &definitions, op)
        {
            labels.push(*label);
        }
    });
    if labels.is_empty() {
        return kernel;
    }
    if let Some(unrolled) = unrolled(&kernel, &labels) {
        return unrolled;
    }
    // What our own passes cannot unroll stays as it is.
    let mut kernel = kernel;
    for label in labels {
        if let Some(unrolled) = unrolled(&kernel, &[label]) {
            kernel = unrolled;
        }
    }
    kernel
}

/// A kernel with copies of these loops' iterations, if all of them can have some.
fn unrolled(kernel: &Kernel, labels: &[Label]) -> Option<Kernel> {
    let mut asked = kernel.clone();
    asked.body.walk_mut(&mut |op| {
        if let OpKind::Loop { label, wishes, .. } = &mut op.kind
            && labels.contains(label)
        {
            wishes.unroll = Some(UnrollWish::By(TIMES));
        }
    });
    prefetch::carry_out_wishes(&asked, &PlanTarget::default()).ok()
}

fn is_unrolled(kernel: &Kernel, definitions: &OnceCell<Definitions>, op: &Op) -> bool {
    let OpKind::Loop { wishes, body, .. } = &op.kind else {
        return false;
    };
    if wishes.unroll != Some(UnrollWish::Auto) || wishes.plan.is_some() || body.ops.len() > SHORT {
        return false;
    }
    let definitions = definitions.get_or_init(|| Definitions::of(kernel));
    let summary = summarize(kernel, definitions, op);
    let Ok(exit) = &summary.exit else {
        return false;
    };
    let (before, test) = body.ops.split_at(exit.position);
    // A load under a predicate is an `if` of a load and its jump.
    let is_straight = before
        .iter()
        .all(|op| op.kind.regions().all(|region| region.ops.len() <= 2));
    // Behind the test nothing but its jump back.
    let is_last = test
        .iter()
        .skip(1)
        .all(|op| op.kind.is_pure() || matches!(op.kind, OpKind::Continue(..)));
    let is_known = before.iter().all(|op| op.kind.effects().writes != Memory::Any);
    let counts = matches!(summary.steps[exit.param], Step::Constant(_));
    let is_direct = compares_counter(kernel, before, test, summary.params[exit.param]);
    exit.continues_on && is_straight && is_last && is_known && counts && is_direct
}

/// Whether the test of a loop compares its counter, or that and a constant, with something that is no sum with the counter in it.
fn compares_counter(kernel: &Kernel, before: &[Op], test: &[Op], counter: Value) -> bool {
    let made_by = |value: Value| before.iter().find(|op| op.results.contains(&value));
    let Some(OpKind::If { cond, .. }) = test.first().map(|op| &op.kind) else {
        return false;
    };
    let Some(OpKind::Compare(_, one, other)) = made_by(*cond).map(|op| &op.kind) else {
        return false;
    };
    let is_counter = |value: Value| {
        let is_next = |op: &Op| {
            let mut operands = Vec::new();
            op.kind.for_each_operand(|operand| operands.push(operand));
            let is_given = |&value: &Value| value == counter || kernel.as_constant(value).is_some();
            operands.len() == 2 && operands.contains(&counter) && operands.iter().all(is_given)
        };
        value == counter || made_by(value).is_some_and(is_next)
    };
    is_counter(*one) || is_counter(*other)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir;

    /// Lowers a loop with one load and counts the loads of the code. `wish` is the loop's wish, `next` its next counter, `test`
    /// its condition; `more` operations are added to its body.
    fn loads(wish: &str, next: &str, test: &str, more: usize) -> usize {
        let more: String = (0..more)
            .map(|at| format!("%m{} = xor %m{at}, 5:i32\n", at + 1))
            .collect();
        let text = format!(
            "hsir 1
            kernel @sum(%in: ptr.global f32[%in_len] align 4 readonly, %in_len: i64,
              %out: ptr.global f32[%out_len] align 4 unaliased, %out_len: i64, %n: i32, %way: i32) {{
              load @in
              %wide = extend.u %way to i64
              %of = and %n, 65532:i32
              %sum = loop 'sum (%s = 0.0:f32, %k = %of, %p = %in) -> f32 {wish} {{
                %m0 = xor %k, 1:i32
                {more}
                %x = load f32 %p, @in
                %t = fadd %s, %x
                %q = address %p + %wide * 4
                %next = {next}
                %more = {test}
                if %more {{ yield }} else {{ break %t }}
                continue %t, %next, %q
              }}
              store %out, %sum
              return
            }}"
        );
        let kernel = ir::read(&text, "sum.hsir").unwrap_or_else(|error| panic!("{error}\n{text}"));
        let mut count = 0;
        unroll(kernel)
            .body
            .walk(&mut |op| count += usize::from(matches!(op.kind, OpKind::Load { .. })));
        count
    }

    #[test]
    fn short_counted_loops_are_unrolled_by_four() {
        let (down, left) = ("add.nsw %k, -4:i32", "ne %next, 0:i32");
        // Four together, and one of what is left over.
        assert_eq!(loads("unroll auto", down, left, 0), 5);
        assert_eq!(loads("unroll auto", "add.nsw %k, 4:i32", "lt.s %next, %n", 0), 5);
        // The author, or a plan, has decided.
        assert_eq!(loads("", down, left, 0), 1);
        // Too long.
        assert_eq!(loads("unroll auto", down, left, SHORT), 1);
    }

    #[test]
    fn others_stay_as_they_are() {
        let (down, left) = ("add.nsw %k, -4:i32", "ne %next, 0:i32");
        assert_eq!(loads("unroll auto", down, left, 0), 5);
        // A step that the run tells, and a search.
        assert_eq!(loads("unroll auto", "add.nsw %k, %way", "lt.s %next, %n", 0), 1);
        assert_eq!(loads("unroll auto", "shr.u %k, 1:i32", left, 0), 1);
        // A sum with the counter in it.
        assert_eq!(loads("unroll auto", "add.nsw %k, 4:i32", "ne %m0, %n", 0), 1);
    }
}
