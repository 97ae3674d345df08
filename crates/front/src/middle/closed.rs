//! What counted loops leave in their counters, where all is known before they run.
//!
//! ```text
//! before                                        after
//! %end = loop (%i = 0, %at = %a) -> i32 {       loop (%i = 0, %at = %a) {
//!   …                                             …
//!   %there = add %at, -32                         %there = add %at, -32
//!   %next = add %i, 1                             %next = add %i, 1
//!   %more = ne %next, 11                          %more = ne %next, 11
//!   if %more { yield } else { break %there }      if %more { yield } else { break }
//!   continue %next, %there                        continue %next, %there
//! }                                             }
//!                                               %end = add %a, -352
//! ```
//!
//! A loop around it whose own counter goes through it counts only so. Compilers make such pairs of a loop that they unroll in
//! parts.

use std::collections::{HashMap, HashSet};

use crate::analysis::definitions::Definitions;
use crate::analysis::loops::{CountedExit, Relation, Step, summarize};
use crate::ir::eval::signed;
use crate::ir::{BinaryOp, Kernel, Op, OpKind, Region, Value};

/// Most iterations that are gone through.
const MOST_ITERATIONS: u64 = 1 << 16;

/// Sums take the place of what counted loops leave in their counters. Says whether there are any.
pub(crate) fn close(kernel: &mut Kernel) -> bool {
    let definitions = Definitions::of(kernel);
    let mut inner = Vec::new();
    visit(&kernel.body, false, &mut inner);
    // Of others the initial value would only take a register for longer.
    let mut counts: HashSet<Value> = HashSet::new();
    kernel.body.walk(&mut |op| match &op.kind {
        OpKind::Continue(_, values) => counts.extend(values),
        OpKind::Compare(_, a, b) => counts.extend([a, b]),
        _ => {}
    });
    let sums = inner
        .into_iter()
        .filter_map(|op| left_by(kernel, &definitions, op))
        .flatten();
    let found: HashMap<Value, Sum> = sums.filter(|(result, _)| counts.contains(result)).collect();
    if found.is_empty() {
        return false;
    }
    let mut body = std::mem::take(&mut kernel.body);
    let mut again = HashMap::new();
    write(kernel, &found, &mut again, &mut body);
    kernel.body = body;
    true
}

/// A value plus a constant.
#[derive(Clone, Copy)]
struct Sum {
    of: Value,
    plus: u64,
}

/// The loops that lie in loops.
fn visit<'k>(region: &'k Region, is_inside: bool, found: &mut Vec<&'k Op>) {
    for op in &region.ops {
        let is_loop = matches!(op.kind, OpKind::Loop { .. });
        if is_loop && is_inside {
            found.push(op);
        }
        op.kind
            .regions()
            .for_each(|inner| visit(inner, is_inside || is_loop, found));
    }
}

/// The results of a loop that are sums.
fn left_by(kernel: &Kernel, definitions: &Definitions, op: &Op) -> Option<Vec<(Value, Sum)>> {
    let OpKind::Loop {
        label,
        params,
        initial,
        body,
        ..
    } = &op.kind
    else {
        return None;
    };
    if op.results.is_empty() {
        return None;
    }
    let (mut breaks, mut continues) = (Vec::new(), Vec::new());
    body.walk(&mut |op| match &op.kind {
        OpKind::Break(to, values) if to == label => breaks.push(values),
        OpKind::Continue(to, values) if to == label => continues.push(values),
        _ => {}
    });
    let ([values], [nexts]) = (&breaks[..], &continues[..]) else {
        return None;
    };
    let summary = summarize(kernel, definitions, op);
    let exit = summary
        .exit
        .as_ref()
        .ok()
        .filter(|_| summary.other_exits.is_empty())?;
    let iterations = iterations(kernel, exit, initial[exit.param], summary.steps[exit.param])?;
    let mut sums = Vec::new();
    for (&result, value) in op.results.iter().zip(*values) {
        let of = |index: usize| match summary.steps[index] {
            Step::Constant(step) => Some((index, step)),
            _ => None,
        };
        let here = params.iter().position(|param| param == value).and_then(of);
        let next = nexts.iter().position(|next| next == value).and_then(of);
        let (index, step, times) = match (here, next) {
            (Some((index, step)), _) => (index, step, iterations),
            (_, Some((index, step))) => (index, step, iterations + 1),
            _ => continue,
        };
        let ty = kernel.ty(result);
        if ty.is_integer() {
            let plus = (step as u64).wrapping_mul(times) & ty.mask();
            sums.push((
                result,
                Sum {
                    of: initial[index],
                    plus,
                },
            ));
        }
    }
    Some(sums)
}

/// How many iterations a loop goes through before the one that ends it, if that is known.
fn iterations(kernel: &Kernel, exit: &CountedExit, initial: Value, step: Step) -> Option<u64> {
    let Step::Constant(step) = step else { return None };
    let ty = kernel.ty(initial);
    let same = kernel.ty(exit.bound) == ty && ty.is_integer();
    let (first, bound) = (
        kernel.as_constant(initial)?,
        kernel.as_constant(exit.bound).filter(|_| same)?,
    );
    let at = |ahead: i64| first.wrapping_add(ahead.wrapping_mul(step) as u64) & ty.mask();
    let compared = |a: u64, b: u64, is_signed: bool| match is_signed {
        true => signed(ty, a).cmp(&signed(ty, b)),
        false => a.cmp(&b),
    };
    (0..MOST_ITERATIONS).find(|&number| {
        let tested = at(number as i64 + exit.steps_ahead);
        let goes_on = match exit.relation {
            Relation::Less { signed, or_equal } => {
                let order = compared(tested, bound, signed);
                order.is_lt() || or_equal && order.is_eq()
            }
            Relation::Greater { signed, or_equal } => {
                let order = compared(tested, bound, signed);
                order.is_gt() || or_equal && order.is_eq()
            }
            Relation::NotEqual => tested != bound,
        };
        !goes_on
    })
}

/// Writes each sum behind its loop, and names it where the result was used.
fn write(
    kernel: &mut Kernel,
    sums: &HashMap<Value, Sum>,
    again: &mut HashMap<Value, Value>,
    region: &mut Region,
) {
    let mut ops = Vec::with_capacity(region.ops.len());
    for mut op in std::mem::take(&mut region.ops) {
        op.kind
            .map_operands(|value| again.get(&value).copied().unwrap_or(value));
        for inner in op.kind.regions_mut() {
            write(kernel, sums, again, inner);
        }
        let (results, place) = (op.results.clone(), op.place);
        ops.push(op);
        for result in results {
            let Some(&Sum { of, plus }) = sums.get(&result) else {
                continue;
            };
            let ty = kernel.ty(result);
            let of = again.get(&of).copied().unwrap_or(of);
            let sum = match kernel.as_constant(of) {
                Some(bits) => kernel.constant(ty, bits.wrapping_add(plus) & ty.mask()),
                None => {
                    let (plus, sum) = (kernel.constant(ty, plus), kernel.value(ty));
                    let kind = OpKind::Binary(BinaryOp::Add, of, plus);
                    ops.push(Op::new(kind, vec![sum], place));
                    sum
                }
            };
            again.insert(result, sum);
        }
    }
    region.ops = ops;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cleanup;
    use crate::ir::{parse, print, verify};

    /// A kernel with a loop in a loop, rewritten, and whether the outer one counts then.
    fn closed(inner: &str) -> (String, bool) {
        let text = format!(
            "hsir 1\nkernel @t(%out: ptr.global i32[] align 4, %n: i32) {{\nloop 'l (%left = %n) {{\n{inner}\n\
             %more = lt.u 319:i32, %end\nif %more {{ yield }} else {{ break }}\ncontinue %end\n}}\nreturn\n}}\n"
        );
        let mut kernel = parse(&text, "t.hsir").unwrap_or_else(|error| panic!("{error}\n{text}"));
        close(&mut kernel);
        verify(&kernel).unwrap_or_else(|error| panic!("{error}\n{}", print(&kernel)));
        cleanup::tidy(&mut kernel);
        let definitions = Definitions::of(&kernel);
        let outer = kernel
            .body
            .ops
            .iter()
            .find(|op| matches!(op.kind, OpKind::Loop { .. }));
        let exit = summarize(&kernel, &definitions, outer.expect("a loop")).exit;
        (print(&kernel), exit.is_ok())
    }

    fn inner(test: &str, left: &str) -> String {
        format!(
            "%end = loop 'm (%i = 0:i32, %at = %left) -> i32 {{\nstore %out, %at\n%there = add %at, -32:i32\n\
             %next = add %i, 1:i32\n{test}\nif %go {{ yield }} else {{ break {left} }}\ncontinue %next, %there\n}}"
        )
    }

    #[test]
    fn a_counter_behind_a_counted_loop_is_a_sum() {
        let (text, counts) = closed(&inner("%go = ne %next, 10:i32", "%there"));
        assert!(text.contains("add %left, -320:i32") && counts, "{text}");
        // The last step is not made: then 9 of them are less than what the test leaves.
        let (text, _) = closed(&inner("%go = ne %next, 10:i32", "%at"));
        assert!(text.contains("add %left, -288:i32"), "{text}");
        // The test is of the value before its step.
        let (text, counts) = closed(&inner("%go = lt.s %i, 9:i32", "%there"));
        assert!(text.contains("add %left, -320:i32") && counts, "{text}");
        // How often it goes round is not known.
        let (text, counts) = closed(&inner("%go = ne %next, %n", "%there"));
        assert!(!text.contains("-320") && !counts, "{text}");
    }
}
