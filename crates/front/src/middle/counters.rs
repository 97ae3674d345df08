//! Loop counters as the passes look for them.
//!
//! ```text
//! before                                        after
//! loop (%i = 0: i32) {                          %m = and %n, -4
//!   …                                           loop (%i = 0: i32) {
//!   %next = add %i, 4                             …
//!   %t = add %start, %next                        %next = add %i, 4
//!   %more = ne %t, 0                              %more = ne %next, %m
//! ```
//!
//! Compilers compare a counter behind an addition of something that the loop does not change. An equality of
//! wrapping sums stays one when the addend changes sides, so the counter itself is compared. `-(n & -4)`, written
//! `(n & 3) - n` by nvcc, is recognised on the way.
//!
//! A counter that is compared behind an addition of its own, and is nothing else, starts with the addition made:
//!
//! ```text
//! loop (%i = %a) {                              %b = add %a, 1280
//!   %t = add %i, 1280                           loop (%i = %b) {
//!   %next = add %i, 2560                          %next = add %i, 2560
//!   %more = lt.s %t, %n                           %more = lt.s %i, %n
//! ```
//!
//! Where the caller says that counters do not overflow, the steps of those that a signed test bounds promise so, and of
//! those that more than one step at a time leads to a bound that ends the loop by being met; the simulator checks the
//! promise.

use std::collections::{HashMap, HashSet};

use cranelift_entity::EntitySet;

use crate::ir::eval::signed;
use crate::ir::{BinaryOp, CompareOp, Kernel, Label, NoWrapOp, Op, OpKind, Place, Region, Value, Wrap};

/// Rewrites the tests and steps of every loop.
pub(crate) fn prepare(kernel: &mut Kernel, no_overflow: bool) {
    let mut body = std::mem::take(&mut kernel.body);
    let mut pure = HashMap::new();
    body.walk(&mut |op| {
        if let (OpKind::Binary(..), [result]) = (&op.kind, &op.results[..]) {
            pure.insert(*result, op.kind.clone());
        }
    });
    region(kernel, &pure, &mut body, no_overflow);
    kernel.body = body;
}

type Pure = HashMap<Value, OpKind>;

fn region(kernel: &mut Kernel, pure: &Pure, region_: &mut Region, no_overflow: bool) {
    let mut ops = Vec::with_capacity(region_.ops.len());
    for mut op in std::mem::take(&mut region_.ops) {
        if let OpKind::Loop {
            label,
            params,
            initial,
            body,
            wishes,
            ..
        } = &mut op.kind
        {
            let mut before = Vec::new();
            let inside = body.defined(params);
            // The assembler would unroll such a loop now, and did not before: as it was is how it stays.
            if compare_counters(kernel, pure, &inside, body, &mut before) {
                wishes.unroll = None;
            }
            for index in 0..params.len() {
                if let Some((addend, sum)) =
                    only_compared_behind(*label, (index, params[index]), &inside, body)
                {
                    let shifted = added(kernel, initial[index], addend, op.place, &mut before);
                    initial[index] = shifted;
                    replace(body, sum, params[index]);
                }
            }
            if no_overflow {
                promise_steps(kernel, *label, params, &inside, body);
            }
            ops.extend(before);
        }
        for inner in op.kind.regions_mut() {
            region(kernel, pure, inner, no_overflow);
        }
        ops.push(op);
    }
    region_.ops = ops;
}

/// `add %start, %next == %y` becomes `%next == %y - %start`, the difference before the loop. Says whether there was one.
fn compare_counters(
    kernel: &mut Kernel,
    pure: &Pure,
    inside: &EntitySet<Value>,
    body: &mut Region,
    before: &mut Vec<Op>,
) -> bool {
    body.walk_mut(&mut |op| {
        let OpKind::Compare(CompareOp::Eq | CompareOp::Ne, x, y) = &mut op.kind else {
            return;
        };
        if inside.contains(*y) {
            std::mem::swap(x, y);
        }
        let Some(&OpKind::Binary(BinaryOp::Add, a, b)) = pure.get(x).filter(|_| inside.contains(*x)) else {
            return;
        };
        let (start, counter) = match (inside.contains(a), inside.contains(b)) {
            (false, true) => (a, b),
            (true, false) => (b, a),
            _ => return,
        };
        // A counter's own step is no start.
        if inside.contains(*y) || kernel.as_constant(start).is_some() {
            return;
        }
        let ty = kernel.ty(start);
        let multiple = negated_multiple(kernel, pure, start).filter(|_| kernel.as_constant(*y) == Some(0));
        let kind = match multiple {
            Some((number, mask)) => {
                let mask = kernel.constant(ty, !mask);
                OpKind::Binary(BinaryOp::And, number, mask)
            }
            None => OpKind::Binary(BinaryOp::Sub, *y, start),
        };
        let bound = kernel.value(ty);
        before.push(Op::new(kind, vec![bound], op.place));
        (*x, *y) = (counter, bound);
    });
    !before.is_empty()
}

/// What is added to a counter for each of its comparisons, and the sum, where the counter is for nothing else.
fn only_compared_behind(
    label: Label,
    (index, counter): (usize, Value),
    inside: &EntitySet<Value>,
    body: &Region,
) -> Option<(Value, Value)> {
    let (mut sums, mut uses, mut next) = (Vec::new(), 0usize, Vec::new());
    body.walk(&mut |op| {
        op.kind
            .for_each_operand(|operand| uses += usize::from(operand == counter));
        match &op.kind {
            OpKind::Binary(BinaryOp::Add, a, b) if *a == counter || *b == counter => {
                let other = if *a == counter { *b } else { *a };
                if !inside.contains(other) {
                    sums.push((other, op.results[0]));
                }
            }
            OpKind::Continue(to, args) if *to == label => next.extend(args.get(index).copied()),
            _ => {}
        }
    });
    let [(x, of_x), (y, of_y)] = sums[..] else {
        return None;
    };
    let (addend, sum, step) = match (next.contains(&of_x), next.contains(&of_y)) {
        (false, true) => (x, of_x, of_y),
        (true, false) => (y, of_y, of_x),
        _ => return None,
    };
    let (mut sum_uses, mut step_uses, mut compared) = (0usize, 0usize, 0usize);
    body.walk(&mut |op| {
        op.kind.for_each_operand(|operand| {
            sum_uses += usize::from(operand == sum);
            step_uses += usize::from(operand == step);
        });
        if let OpKind::Compare(_, a, b) = op.kind {
            let bound = if a == sum { b } else { a };
            compared += usize::from((a == sum || b == sum) && !inside.contains(bound));
        }
    });
    // The next value is for the next iteration alone, too.
    let passed_on = step_uses == next.len() && next.iter().all(|&next| next == step);
    let alone = uses == 2 && sum_uses == compared && compared > 0 && passed_on;
    alone.then_some((addend, sum))
}

/// The sum of two values in front of a loop.
fn added(kernel: &mut Kernel, a: Value, b: Value, place: Place, before: &mut Vec<Op>) -> Value {
    let ty = kernel.ty(a);
    if let (Some(a), Some(b)) = (kernel.as_constant(a), kernel.as_constant(b)) {
        return kernel.constant(ty, a.wrapping_add(b) & ty.mask());
    }
    let sum = kernel.value(ty);
    before.push(Op::new(OpKind::Binary(BinaryOp::Add, a, b), vec![sum], place));
    sum
}

/// Uses of one value become uses of another, and what made it goes.
fn replace(body: &mut Region, old: Value, new: Value) {
    body.ops.retain(|op| op.results.first() != Some(&old));
    body.walk_mut(&mut |op| {
        for inner in op.kind.regions_mut() {
            inner.ops.retain(|op| op.results.first() != Some(&old));
        }
        op.kind
            .map_operands(|value| if value == old { new } else { value });
    });
}

/// The number and the mask, where a value is `(number & mask) - number` and the mask has only low bits.
fn negated_multiple(kernel: &Kernel, pure: &Pure, value: Value) -> Option<(Value, u64)> {
    let &OpKind::Binary(BinaryOp::Sub, rest, number) = pure.get(&value)? else {
        return None;
    };
    let &OpKind::Binary(BinaryOp::And, a, b) = pure.get(&rest)? else {
        return None;
    };
    let mask = kernel.as_constant(b)?;
    (a == number && mask.wrapping_add(1).is_power_of_two()).then_some((number, mask))
}

/// The conditions of which one branch ends by starting the loop's next iteration, or by leaving the loop.
fn deciding(looped: Label, body: &Region) -> HashSet<Value> {
    let (mut inner, mut ends) = (HashSet::new(), HashSet::new());
    body.walk(&mut |op| inner.extend(op.kind.label()));
    body.walk(&mut |op| {
        let OpKind::If {
            cond,
            then,
            otherwise,
            ..
        } = &op.kind
        else {
            return;
        };
        let ends_it = |branch: &Region| match branch.ops.last().map(|op| &op.kind) {
            Some(OpKind::Continue(label, _)) => *label == looped,
            Some(OpKind::Break(label, _)) => !inner.contains(label),
            Some(OpKind::Return) => true,
            _ => false,
        };
        if ends_it(then) || ends_it(otherwise) {
            ends.insert(*cond);
        }
    });
    ends
}

/// Steps of counters that a test bounds promise not to overflow.
fn promise_steps(
    kernel: &Kernel,
    label: Label,
    params: &[Value],
    inside: &EntitySet<Value>,
    body: &mut Region,
) {
    // Compared with something that the loop does not change.
    let counted = |x: Value, y: Value| match (inside.contains(x), inside.contains(y)) {
        (true, false) => Some(x),
        (false, true) => Some(y),
        _ => None,
    };
    let ends = deciding(label, body);
    let (mut bounded, mut met): (HashSet<Value>, HashSet<Value>) = Default::default();
    body.walk(&mut |op| {
        if let OpKind::Compare(CompareOp::LtS | CompareOp::LeS, x, y) = op.kind {
            bounded.extend(counted(x, y));
        }
        if let OpKind::Compare(CompareOp::Eq | CompareOp::Ne, x, y) = op.kind
            && ends.contains(&op.results[0])
        {
            met.extend(counted(x, y));
        }
    });
    let chained = chained_steps(params, inside, body, &bounded);
    body.walk_mut(&mut |op| {
        let OpKind::Binary(step @ (BinaryOp::Add | BinaryOp::Sub), a, b) = op.kind else {
            return;
        };
        if step == BinaryOp::Add && chained.contains(&op.results[0]) {
            op.kind = OpKind::NoWrap(NoWrapOp::Add, Wrap::NotSigned, a, b);
            return;
        }
        let counter = [a, b].into_iter().find(|value| params.contains(value));
        let other = if counter == Some(a) { b } else { a };
        let Some(counter) = counter else { return };
        let is_in = |set: &HashSet<Value>| set.contains(&counter) || set.contains(&op.results[0]);
        // One step at a time meets every bound, by way of a wrap if need be.
        let jumps = || {
            let step = kernel
                .as_constant(other)
                .map(|bits| signed(kernel.ty(other), bits));
            step.is_some_and(|step| step.unsigned_abs() > 1)
        };
        if !(is_in(&bounded) || is_in(&met) && jumps()) {
            return;
        }
        if inside.contains(other) || step == BinaryOp::Sub && counter != a {
            return;
        }
        let step = if step == BinaryOp::Add {
            NoWrapOp::Add
        } else {
            NoWrapOp::Sub
        };
        op.kind = OpKind::NoWrap(step, Wrap::NotSigned, a, b);
    });
}

/// The sums between a counter and its next value, if an unrolling compiler made a step for each copy of the body and one of
/// them is bounded: each equals the counter of the source's loop at that copy.
fn chained_steps(
    params: &[Value],
    inside: &EntitySet<Value>,
    body: &Region,
    bounded: &HashSet<Value>,
) -> HashSet<Value> {
    let (mut sums, mut continues) = (HashMap::new(), Vec::new());
    body.walk(&mut |op| match &op.kind {
        OpKind::Binary(BinaryOp::Add, a, b) => {
            sums.insert(op.results[0], (*a, *b));
        }
        OpKind::Continue(_, args) if args.len() == params.len() => continues.push(args.clone()),
        _ => {}
    });
    let mut found = HashSet::new();
    for (index, &param) in params.iter().enumerate() {
        for args in &continues {
            let (mut at, mut chain) = (args[index], Vec::new());
            while at != param
                && let Some(&(a, b)) = sums.get(&at)
            {
                chain.push(at);
                at = match (inside.contains(a), inside.contains(b)) {
                    (true, false) => a,
                    (false, true) => b,
                    _ => break,
                };
            }
            if at == param && (bounded.contains(&param) || chain.iter().any(|sum| bounded.contains(sum))) {
                found.extend(chain);
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::{parse, print, verify};

    fn prepared(body: &str, no_overflow: bool) -> String {
        let text = format!("hsir 1\nkernel @t(%n: i32) {{\n{body}\nreturn\n}}\n");
        let mut kernel = parse(&text, "t.hsir").unwrap_or_else(|error| panic!("{error}"));
        prepare(&mut kernel, no_overflow);
        verify(&kernel).unwrap_or_else(|error| panic!("{error}"));
        print(&kernel)
    }

    #[test]
    fn a_counter_is_compared_itself() {
        let text = prepared(
            "%rest = and %n, 3:i32\n%start = sub %rest, %n\nloop 'l (%i = 0:i32) {\n%next = add %i, 4:i32\n\
             %t = add %start, %next\n%more = ne %t, 0:i32\nif %more { yield } else { break }\ncontinue %next\n}",
            false,
        );
        assert!(
            text.contains("and %n, -4:i32") && text.contains("ne %next, "),
            "{text}"
        );
        // `%i + 4 == n` is no test of `%i` against another bound.
        let own = "loop 'l (%i = 0:i32) {\n%next = add %i, 4:i32\n%more = ne %next, %n\n\
                   if %more { yield } else { break }\ncontinue %next\n}";
        assert!(prepared(own, false).contains("ne %next, %n"));
    }

    #[test]
    fn a_counter_that_is_compared_behind_an_addition_starts_behind_it() {
        let body = |more: &str| {
            format!(
                "%m = mul %n, %n\nloop 'l (%i = %n) {{\n%t = add %i, 2:i32\n%next = add %i, 4:i32\n{more}\
                 %more = lt.s %t, %m\nif %more {{ yield }} else {{ break }}\ncontinue %next\n}}"
            )
        };
        let text = prepared(&body(""), false);
        assert!(
            text.contains("add %n, 2:i32") && text.contains("lt.s %i, %m"),
            "{text}"
        );
        // Something else looks at it, or at the next value.
        assert!(prepared(&body("%other = mul %next, %next\n"), false).contains("add %i, 2:i32"));
        assert!(prepared(&body("%other = mul %i, %i\n"), false).contains("add %i, 2:i32"));
    }

    #[test]
    fn steps_promise_what_the_caller_says() {
        let body = "loop 'l (%i = 0:i32) {\n%next = add %i, 4:i32\n%more = lt.s %next, %n\n\
                    if %more { yield } else { break }\ncontinue %next\n}";
        assert!(prepared(body, true).contains("add.nsw") && !prepared(body, false).contains("add.n"));
        // Every step of a loop that a compiler unrolled.
        let unrolled = "loop 'l (%i = 0:i32) {\n%a = add %i, %n\n%b = add %n, %a\n%other = add %a, 7:i32\n\
                        %more = lt.s %b, %m\nif %more { yield } else { break }\ncontinue %b\n}";
        let text = prepared(&format!("%m = mul %n, %n\n{unrolled}"), true);
        assert_eq!(text.matches("add.nsw").count(), 2, "{text}");
        // Where the bound is met, only steps that could jump over it.
        let met = |step: &str| {
            format!(
                "loop 'l (%i = %n) {{\n%next = add %i, {step}:i32\n%more = ne %next, 0:i32\n\
                 if %more {{ yield }} else {{ break }}\ncontinue %next\n}}"
            )
        };
        assert!(
            prepared(&met("-4"), true).contains("add.nsw") && !prepared(&met("-1"), true).contains("add.n")
        );
        // What is compared with a value that ends nothing is no counter.
        let picked = "loop 'l (%i = 0:i32, %k = %n) {\n%next = add %i, 1:i32\n%less = add %k, -4:i32\n\
                      %is = eq %k, -13:i32\nif %is { yield } else { yield }\n\
                      %more = ne %next, %n\nif %more { yield } else { break }\ncontinue %next, %less\n}";
        assert!(!prepared(picked, true).contains("add.n"));
    }
}
